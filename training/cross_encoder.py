"""Train a reranker on a pack, or distill a small one: ``python -m training.cross_encoder --help``.

A listwise loss ranks each gold of a question above its negatives, and a pointwise one makes the output a probability.
With a teacher, the student begins with some of its layers and also learns its distribution over the same list.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from numpy.typing import NDArray
from torch import nn

from training.batches import (
    Negatives,
    Questions,
    TextBatches,
    compute_by_length,
    embed_all,
    mine_negatives,
    score_pools,
)
from training.bert import Bert, load_bert
from training.evaluate import Evaluation, rank_places
from training.export import apply_changes, write_changes
from training.pack import Pack
from training.runtime import (
    add_data_options,
    add_device_options,
    learning_rate,
    prepare_device,
    seed_everything,
)
from training.sources import SOURCES

__all__ = ["CrossEncoder", "main"]

_WARMUP_STEPS = 100
_POINTWISE = 0.2  # weight of the pointwise loss
_MAX_GOLDS = 2  # of one question in a step
_QUESTION_TOKENS, _UNIT_TOKENS, _LABEL_TOKENS = 40, 80, 6
_BEFORE_TOKENS, _AFTER_TOKENS = 20, 10  # the end of what was said before, and the beginning of what was said after
_SCORE_PAIRS = 2048
_VECTOR_TOKENS = 130
WEIGHTS = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, choose the weight of the blend by validation, and write the weights with a record of the run."""
    options = parse_options(arguments)
    device = prepare_device(options)
    seed_everything(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    layers = [int(one) for one in options.layers.split(",")]
    student = CrossEncoder(load_bert(options.base, layers)).to(device)
    original = {name: one.clone() for name, one in student.bert.state_dict().items()}
    teacher, base = None, load_bert(options.base)
    if options.teacher is not None:
        teacher = CrossEncoder(copy.deepcopy(base)).to(device).eval()
        teacher.restore(options.teacher, base.state_dict())
        student.take_layers(teacher, layers)
    if options.first_stage is not None:
        base.load_state_dict(apply_changes(options.first_stage, base.state_dict()))
    first_stage = base.to(device).eval()
    log = Trainer(student, teacher, first_stage, options, device).train()
    found = evaluate(student, first_stage, Pack.load(options.valid), options.candidates, device)
    scores = {str(weight): round(one.mean(), 2) for weight, one in found.items()}
    chosen = max(found, key=lambda weight: found[weight].mean())
    kinds = sorted({SOURCES[source].kind for source in found[0.0].sources})
    detail = {weight: {k: [round(x, 1) for x in found[weight].measures(k)] for k in kinds} for weight in found}
    print("weights", json.dumps(scores), json.dumps(detail), flush=True)
    head = {f"head.{name}": one for name, one in student.head.state_dict().items()}
    write_changes({**student.bert.state_dict(), **head}, original, options.out / "changes.npz")
    named = {name: str(value) for name, value in vars(options).items()}
    run = {"options": named, "log": log, "weights": scores, "detail": detail, "weight": chosen}
    (options.out / "run.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, help="changes.npz of a cross-encoder with all layers")
    parser.add_argument("--first-stage", type=Path, help="changes.npz of the embedder that ranks first")
    parser.add_argument("--layers", default="0,1,2,3,4,5", help="layers of the base that the model begins with")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=48, help="questions per step")
    parser.add_argument("--hard", type=int, default=8, help="hard negatives per question")
    parser.add_argument("--easy", type=int, default=3, help="other negatives per question")
    parser.add_argument("--distill", type=float, default=0.6, help="share of the teacher in the loss")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--candidates", type=int, default=30, help="units that are reranked in validation")
    add_data_options(parser)
    add_device_options(parser)
    return parser.parse_args(arguments)


class CrossEncoder(nn.Module):
    """An encoder that reads a question and a unit together, with one output."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(bert.config["hidden_size"], 1)
        nn.init.zeros_(self.head.bias)

    @property
    def max_tokens(self) -> int:
        return int(self.bert.config["max_position_embeddings"])

    def forward(self, rows: NDArray[np.int64], types: NDArray[np.int64]) -> Any:
        """Return the logit of each pair, given as ids and segments, (pairs, tokens)."""
        device = self.head.weight.device

        def compute(places: NDArray[np.int64], ids: Any) -> Any:
            kinds = torch.from_numpy(types[places, : ids.shape[1]]).to(device)
            return self.head(self.bert.pool(self.bert(ids, kinds), ids)).float()[:, 0]

        return compute_by_length(rows, device, compute)

    def take_layers(self, teacher: CrossEncoder, layers: Sequence[int]) -> None:
        """Begin with the weights of a teacher, of which some layers are left out."""
        self.head.load_state_dict(teacher.head.state_dict())
        self.bert.embeddings.load_state_dict(teacher.bert.embeddings.state_dict())
        for own, place in zip(self.bert.layers, layers, strict=True):
            own.load_state_dict(teacher.bert.layers[place].state_dict())

    def restore(self, changes: Path, original: dict[str, Any]) -> None:
        """Load the weights that `main` wrote."""
        state = apply_changes(changes, original)
        self.head.load_state_dict({name: state.pop(f"head.{name}") for name in ("weight", "bias")})
        self.bert.load_state_dict(state)


class PairBatches:
    """Questions and units as rows of ids: ``question [SEP] speaker day : text [SEP] before [SEP] after [SEP]``."""

    def __init__(self, pack: Pack, max_tokens: int) -> None:
        self._pack, self._texts, self._max_tokens = pack, TextBatches(pack), max_tokens

    def encode(self, questions: NDArray[Any], units: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ids and segments, (pairs, tokens)."""
        pack, read = self._pack, self._texts.rows
        asked = read(pack.asked[questions, 1], _QUESTION_TOKENS)
        text, speaker, day, before, after = pack.units[units].T
        columns = zip(
            read(speaker, _LABEL_TOKENS),
            read(day, _LABEL_TOKENS),
            read(text, _UNIT_TOKENS),
            read(before, _BEFORE_TOKENS, tail=True),
            read(after, _AFTER_TOKENS),
            strict=True,
        )
        first, last, colon = ([one] for one in pack.markers)
        rows = []
        for question, (who, when, said, ahead, behind) in zip(asked, columns, strict=True):
            parts: list[Any] = [first, question, last, who, when, colon, said, last, ahead, last, behind, last]
            rows.append((np.concatenate(parts)[: self._max_tokens], len(question) + 2))
        ids = np.zeros((len(rows), max(len(row) for row, _ in rows)), np.int64)
        types = np.zeros_like(ids)
        for place, (row, start) in enumerate(rows):
            ids[place, : len(row)] = row
            types[place, start : len(row)] = 1
        return ids, types


class Trainer:
    """A student, perhaps with a teacher, and the data to train on."""

    def __init__(
        self, student: CrossEncoder, teacher: CrossEncoder | None, first_stage: Bert, options: Any, device: Any
    ) -> None:
        self.student, self.teacher, self.options, self.device = student, teacher, options, device
        self.rng = np.random.default_rng(options.seed)
        self.pack = Pack.load(options.train)
        self.pairs = PairBatches(self.pack, student.max_tokens)
        texts = TextBatches(self.pack)
        units = embed_all(first_stage, texts, self.pack.units[:, 0], _VECTOR_TOKENS, device)
        queries = embed_all(first_stage, texts, self.pack.asked[:, 2], _VECTOR_TOKENS, device)
        self.negatives = Negatives(self.pack, mine_negatives(self.pack, units, queries, options.margin), self.rng)

    def train(self) -> list[dict[str, float]]:
        """Run all steps and return the log."""
        options = self.options
        self.student.bert.dropout = options.dropout
        self.student.bert.embeddings.requires_grad_(False)
        parameters = [one for one in self.student.parameters() if one.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=0.01)
        questions, log = Questions(self.pack, self.rng), list[dict[str, float]]()
        started = time.monotonic()
        for step in range(1, options.steps + 1):
            seconds = time.monotonic() - started
            progress = max(step / options.steps, seconds / options.seconds)
            for group in optimizer.param_groups:
                group["lr"] = options.rate * learning_rate(step, _WARMUP_STEPS, progress)
            self.student.train()
            loss = self._compute_loss(questions.draw(options.questions))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            if step % 200 == 0 or step == options.steps:
                log.append({"step": step, "seconds": round(seconds), "loss": round(float(loss.detach()), 4)})
                print(json.dumps(log[-1]), flush=True)
            if seconds > options.seconds:
                break
        return log

    def _compute_loss(self, batch: list[int]) -> Any:
        options, width = self.options, _MAX_GOLDS + self.options.hard + self.options.easy
        asked: list[int] = []
        units: list[int] = []
        columns: list[int] = []
        rows: list[int] = []
        for place, question in enumerate(batch):
            gold = self.rng.permutation(self.pack.gold[question])[:_MAX_GOLDS].tolist()
            negatives = self.negatives.draw(question, options.hard, options.easy)
            units += [*gold, *negatives]
            asked += [question] * (len(gold) + len(negatives))
            rows += [place] * (len(gold) + len(negatives))
            columns += [*range(len(gold)), *range(_MAX_GOLDS, _MAX_GOLDS + len(negatives))]
        ids, types = self.pairs.encode(np.array(asked), np.array(units))
        where = (torch.tensor(rows, device=self.device), torch.tensor(columns, device=self.device))
        shape = (len(batch), width)
        flat = self.student(ids, types)
        logits = torch.full(shape, -1e4, device=self.device).index_put(where, flat)
        is_gold = (where[1] < _MAX_GOLDS).float()
        loss = self._rank(logits) + _POINTWISE * functional.binary_cross_entropy_with_logits(flat, is_gold)
        if self.teacher is None:
            return loss
        with torch.no_grad():
            wanted = torch.full(shape, -1e4, device=self.device).index_put(where, self.teacher(ids, types)).softmax(1)
        divergence = (wanted * (wanted.clamp(min=1e-9).log() - logits.log_softmax(1))).sum(1).mean()
        return (1 - options.distill) * loss + options.distill * divergence

    def _rank(self, logits: Any) -> Any:
        """Return the mean cross entropy of each gold against the negatives."""
        others = logits[:, _MAX_GOLDS:].logsumexp(1)
        losses, counts = torch.zeros_like(others), torch.zeros_like(others)
        for column in range(_MAX_GOLDS):
            gold = logits[:, column]
            present = gold > -1e3
            losses = losses + torch.where(present, torch.logaddexp(others, gold) - gold, 0.0)
            counts = counts + present
        return (losses / counts.clamp(min=1)).mean()


# --- validation --------------------------------------------------------------------------------------------------


def evaluate(
    model: CrossEncoder, first_stage: Bert, pack: Pack, candidates: int, device: Any
) -> dict[float, Evaluation]:
    """Return the evaluation for each weight of the reranker beside the cosine; 0 is the first stage alone."""
    model.eval()
    texts, pairs = TextBatches(pack), PairBatches(pack, model.max_tokens)
    units = embed_all(first_stage, texts, pack.units[:, 0], _VECTOR_TOKENS, device)
    queries = embed_all(first_stage, texts, pack.asked[:, 2], _VECTOR_TOKENS, device)
    ranked: list[tuple[NDArray[np.int64], NDArray[np.float32], list[int]]] = []
    for question, first, cosines in score_pools(pack, units, queries):
        places = pack.candidates(question)
        order = places[np.argsort(-cosines[places - first], kind="stable")]
        ranked.append((order[:candidates], cosines[order[:candidates] - first], order[candidates:].tolist()))
    asked = np.repeat(np.arange(len(ranked)), [len(read) for read, _, _ in ranked])
    scores = _score(model, pairs, asked, np.concatenate([read for read, _, _ in ranked]))
    ends = np.cumsum([len(read) for read, _, _ in ranked])
    found = {}
    for weight in WEIGHTS:
        rows = []
        for question, (read, cosines, rest) in enumerate(ranked):
            own = scores[ends[question] - len(read) : ends[question]]
            blended = (1 - weight) * cosines + weight * own
            reranked = [*read[np.argsort(-blended, kind="stable")].tolist(), *rest]
            rows.append(rank_places(reranked, set(pack.gold[question].tolist())))
        found[weight] = Evaluation(tuple(map(pack.source_of, range(len(rows)))), 100 * np.array(rows))
    return found


def _score(model: CrossEncoder, pairs: PairBatches, asked: Any, units: Any) -> NDArray[np.float32]:
    """Return the probability of each pair."""
    scores = []
    with torch.inference_mode():
        for start in range(0, len(asked), _SCORE_PAIRS):
            part = slice(start, start + _SCORE_PAIRS)
            scores.append(model(*pairs.encode(asked[part], units[part])).sigmoid().cpu().numpy())
    return np.concatenate(scores)


if __name__ == "__main__":
    main()
