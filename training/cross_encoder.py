"""Train a reranker on mined examples, or distill a small one: ``python -m training.cross_encoder --help``.

A listwise loss ranks one gold of a question above its negatives. With a teacher, the student also learns the teacher's
distribution over the same list. The student begins with some layers of the base model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn

from training.bert import Bert, Tokenizer, batch_by_length, encode_texts, load_bert, pad_rows
from training.evaluate import MAX_DOCUMENT_TOKENS, MAX_QUERY_TOKENS, Evaluation, score_pools
from training.export import write_folder
from training.mine import Example, read_examples
from training.pools import Pool, Unit, read_pools
from training.runtime import add_device_options, prepare_device, reduced_precision, seed_everything

__all__ = ["CrossEncoder", "describe_unit", "load_cross_encoder", "main", "rerank_pools"]

HEAD = "classifier"
_WARMUP_STEPS = 50
_FINAL_RATE = 0.05
_MAX_NEIGHBOR_WORDS = 20
_FIRST_TYPES = (0, 1)  # segments of the question and of the unit
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, choose the weight of the blend by validation, and write the model folder with a record of the run."""
    options = parse_options(arguments)
    device = prepare_device(options)
    rng = seed_everything(options.seed)
    tokenizer = Tokenizer(options.base, max_tokens=512)
    layers = [int(one) for one in options.layers.split(",")]
    student = CrossEncoder(load_bert(options.base, layers), tokenizer, options.tokens).to(device)
    teacher = None if options.teacher is None else load_cross_encoder(options.teacher, options.tokens).to(device).eval()
    options.out.mkdir(parents=True, exist_ok=True)
    log = train(student, teacher, read_examples(options.examples), options, rng)
    valid = read_pools(options.valid)
    first_stage = load_bert(options.first_stage or options.base).to(device)
    found = rerank_pools(
        student, first_stage, Tokenizer(options.first_stage or options.base), valid, options.candidates
    )
    scores = {str(weight): round(one.mean(), 2) for weight, one in found.items()}
    chosen = max(found, key=lambda weight: found[weight].mean())
    print("weights", json.dumps(scores), flush=True)
    head = {f"{HEAD}.{name}": one for name, one in student.head.state_dict().items()}
    write_folder(student.bert, options.base, options.out / "model", half=True, extra=head)
    named = {name: str(value) for name, value in vars(options).items()}
    run = {"options": named, "log": log, "weights": scores, "weight": chosen}
    (options.out / "run.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--teacher", type=Path, help="folder of a trained cross-encoder; default: no distillation")
    parser.add_argument("--first-stage", type=Path, help="embedder that ranks first; default: the base")
    parser.add_argument("--examples", type=Path, required=True, help="file of training.mine")
    parser.add_argument("--valid", type=Path, required=True, help="valid.jsonl of training.pools")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", default="0,2,5", help="layers of the base that the model begins with")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop early, so that runs are not repeatable"
    )
    parser.add_argument("--questions", type=int, default=16, help="questions per step")
    parser.add_argument("--negatives", type=int, default=7, help="negatives per question")
    parser.add_argument("--distill", type=float, default=0.7, help="share of the teacher in the loss")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=128, help="of a question and a unit together")
    parser.add_argument("--candidates", type=int, default=30, help="units that are reranked in validation")
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    return parser.parse_args(arguments)


class CrossEncoder(nn.Module):
    """An encoder that reads a question and a unit together, with one output."""

    def __init__(self, bert: Bert, tokenizer: Tokenizer, max_tokens: int) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(bert.config["hidden_size"], 1)
        nn.init.zeros_(self.head.bias)
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def forward(self, questions: Sequence[str], texts: Sequence[str]) -> Any:
        """Return the logit of each pair."""
        device = self.head.weight.device
        rows, types = self._encode_pairs(questions, texts)
        logits, order = [], []
        for batch in batch_by_length(rows, 1 << (12 if device.type == "cpu" else 17)):
            ids = pad_rows([rows[place] for place in batch], device, self.bert.config["pad_token_id"])
            kinds = pad_rows([types[place] for place in batch], device)
            with reduced_precision(device):
                logits.append(self.head(self.bert.pool(self.bert(ids, kinds), ids)).float()[:, 0])
            order += batch
        return torch.cat(logits)[torch.tensor(order, device=device).argsort()]

    def _encode_pairs(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        asked = self._tokenizer.encode(questions, min(MAX_QUERY_TOKENS, self._max_tokens // 2))
        units = self._tokenizer.encode(texts, self._max_tokens)
        rows, types = [], []
        for first, second in zip(asked, units, strict=True):
            kept = second[1 : self._max_tokens - len(first)] + second[-1:]
            rows.append([*first, *kept])
            types.append([_FIRST_TYPES[0]] * len(first) + [_FIRST_TYPES[1]] * len(kept))
        return rows, types

    def score(self, questions: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the logits without gradients."""
        self.eval()
        with torch.inference_mode():
            logits: NDArray[np.float64] = self(questions, texts).double().cpu().numpy()
        return logits


def load_cross_encoder(folder: Path, max_tokens: int) -> CrossEncoder:
    """Load a folder that this program wrote."""
    model = CrossEncoder(load_bert(folder), Tokenizer(folder, max_tokens=512), max_tokens)
    tensors = load_file(folder / "model.safetensors")
    model.head.load_state_dict({name: tensors[f"{HEAD}.{name}"].float() for name in ("weight", "bias")})
    return model


def describe_unit(unit: Unit) -> str:
    """Return the text of a unit with its speaker, its time and its neighbors, the most important first."""
    spoken = f"{unit.speaker}: {unit.text}" if unit.speaker else unit.text
    parts = [spoken, unit.time]
    parts += [" ".join(text.split()[:_MAX_NEIGHBOR_WORDS]) for text in (unit.previous, unit.following)]
    return " | ".join(part for part in parts if part)


def train(
    student: CrossEncoder,
    teacher: CrossEncoder | None,
    examples: Sequence[Example],
    options: argparse.Namespace,
    rng: random.Random,
) -> list[dict[str, float]]:
    """Run all steps and return the log."""
    student.bert.dropout = options.dropout
    student.bert.embeddings.requires_grad_(False)
    parameters = [one for one in student.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=0.01)
    log: list[dict[str, float]] = []
    started = time.monotonic()
    batches = iterate_lists(examples, options.questions, options.negatives, rng)
    for step in range(1, options.steps + 1):
        seconds = time.monotonic() - started
        progress = max(step / options.steps, seconds / options.seconds)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, step / _WARMUP_STEPS) * max(_FINAL_RATE, 1 - progress)
        student.train()
        loss = compute_loss(student, teacher, *next(batches), options)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if step % 20 == 0 or step == options.steps:
            log.append({"step": step, "seconds": round(seconds), "loss": round(float(loss.detach()), 4)})
            print(json.dumps(log[-1]), flush=True)
        if seconds > options.seconds:
            break
    return log


def iterate_lists(
    examples: Sequence[Example], questions: int, negatives: int, rng: random.Random
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield pairs forever, as questions and texts; each list of `negatives` + 1 begins with a gold."""
    usable = [one for one in examples if len(one.hard) + len(one.easy) >= negatives]
    if not usable:
        raise ValueError(f"no example has {negatives} negatives: mine more of them or use fewer")
    order: list[Example] = []
    for _ in itertools.count():
        while len(order) < questions:
            order += rng.sample(usable, len(usable))
        batch, order = order[:questions], order[questions:]
        texts: list[str] = []
        for one in batch:
            hard = rng.sample(one.hard, min(len(one.hard), -(-2 * negatives // 3)))
            easy = rng.sample(one.easy, min(len(one.easy), negatives - len(hard)))
            chosen = [*hard, *easy]
            chosen += [unit for unit in one.hard if unit not in chosen][: negatives - len(chosen)]
            texts += [describe_unit(unit) for unit in (rng.choice(one.gold), *chosen)]
        yield [one.text for one in batch for _ in range(negatives + 1)], texts


def compute_loss(
    student: CrossEncoder,
    teacher: CrossEncoder | None,
    questions: Sequence[str],
    texts: Sequence[str],
    options: argparse.Namespace,
) -> Any:
    """Return the listwise loss, mixed with the divergence from the teacher's distribution."""
    logits = student(questions, texts).view(-1, options.negatives + 1)
    targets = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    loss = functional.cross_entropy(logits, targets)
    if teacher is None:
        return loss
    with torch.no_grad():
        wanted = teacher(questions, texts).view_as(logits).softmax(1)
    divergence = functional.kl_div(logits.log_softmax(1), wanted, reduction="batchmean")
    return (1 - options.distill) * loss + options.distill * divergence


# --- validation --------------------------------------------------------------------------------------------------


def rerank_pools(
    model: CrossEncoder, first_stage: Bert, tokenizer: Tokenizer, pools: Sequence[Pool], candidates: int
) -> dict[float, Evaluation]:
    """Return the evaluation for each weight of the reranker; 0 is the first stage alone."""
    stages = {id(pool): _score_pool(model, first_stage, tokenizer, pool, candidates) for pool in pools}

    def evaluate(weight: float) -> Evaluation:
        return score_pools(pools, lambda pool: _blend(*stages[id(pool)], weight))

    return {weight: evaluate(weight) for weight in WEIGHTS}


def _score_pool(
    model: CrossEncoder, first_stage: Bert, tokenizer: Tokenizer, pool: Pool, candidates: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cosines, and the reranker's scores in [0, 1], which are NaN for units that it does not read."""
    units = encode_texts(first_stage, tokenizer, [unit.text for unit in pool.units], MAX_DOCUMENT_TOKENS)
    queries = encode_texts(first_stage, tokenizer, [one.query for one in pool.questions], MAX_QUERY_TOKENS)
    cosines = np.asarray(queries @ units.T, np.float64)
    reranked = np.full(cosines.shape, np.nan)
    for row, question in enumerate(pool.questions):
        best = np.argsort(-cosines[row], kind="stable")[:candidates]
        texts = [describe_unit(pool.units[place]) for place in best]
        logits = model.score([question.text] * len(texts), texts)
        reranked[row, best] = 1 / (1 + np.exp(logits.max() - logits))  # the best one scores 0.5
    return cosines, reranked


def _blend(cosines: NDArray[np.float64], reranked: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Return the blended scores; units that were not read keep their order below the others."""
    read = ~np.isnan(reranked)
    blended = (1 - weight) * cosines + weight * np.where(read, reranked, 0.0)
    result: NDArray[np.float64] = np.where(read, blended, cosines - 10)
    return result


if __name__ == "__main__":
    main()
