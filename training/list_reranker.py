"""Train the listwise reranker on candidates of searches: ``python -m training.list_reranker --help``.

A cross-encoder reads the question with each candidate, and two layers of attention compare the candidates in the order
of time. The loss is the cross entropy of the golds, with one more class for questions that no candidate answers; a
second output learns which candidates are out of date.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import nn

from mem0_core.providers.list_reranker import MAX_TOKENS, describe_candidates, encode_candidates
from training.bert import Bert, Layer, Tokenizer, load_bert, pad_rows
from training.export import apply_changes, write_changes
from training.list_data import AskedList, read_lists
from training.runtime import add_device_options, prepare_device, seed_everything

__all__ = ["ListReranker", "main"]

_FEATURES, _HEADS, _MAX_LIST = 6, 6, 15
_RELATIVE_SCORE, _IS_ANSWER = 1, 3  # features of `describe_candidates` whose weights begin above 0
_WARMUP_STEPS, _FINAL_RATE = 80, 0.02
_STALE_WEIGHT = 0.3  # of the second output in the loss
_NONE_BIAS = -2.0
_PART = 48  # pairs that are read at once
_SHUFFLED = 256  # questions that are sorted by length into batches
_SLIP_SHARE, _DROPPED_SHARE, _EMPTIED_SHARE = 0.15, 0.12, 0.06  # of questions and candidates that are varied
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print how often a gold comes first on lists kept aside, and write the weights with a record of the run."""
    options = parse_options(arguments)
    device = prepare_device(options)
    rng = seed_everything(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    bert = load_bert(options.base)
    original = {name: tensor.clone() for name, tensor in bert.state_dict().items()}
    model = ListReranker(bert)
    for file in (options.shared, options.begin):
        if file is not None:
            model.restore(file, original)
    model.to(device)
    tokenizer = Tokenizer(options.base)
    valid = [one for file in options.valid for one in read_lists(file)]
    log = train(model, tokenizer, options, rng)
    log.append(evaluate(model, tokenizer, valid))
    print(json.dumps(log[-1]), flush=True)
    shared_layers = 0 if options.shared is None else options.frozen
    write_changes(model.export(shared_layers), original, options.out / "changes.npz")
    record = {"options": {name: str(value) for name, value in vars(options).items()}, "log": log}
    (options.out / "run.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--shared", type=Path, help="changes.npz of a reranker that has the frozen layers in a wheel")
    parser.add_argument("--begin", type=Path, help="changes.npz of an earlier run to begin with")
    parser.add_argument("--train", type=Path, nargs="+", required=True, help="files of training.list_data")
    parser.add_argument("--valid", type=Path, nargs="*", default=[], help="files that are kept aside")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop early; not repeatable")
    parser.add_argument("--tokens", type=int, default=4500, help="tokens of the lists of a step")
    parser.add_argument("--frozen", type=int, default=2, help="lower layers that stay as they are")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16; for processors with AVX512-BF16")
    parser.add_argument("--seed", type=int, default=1)
    add_device_options(parser)
    return parser.parse_args(arguments)


class ListReranker(nn.Module):
    """Scores the candidates of a question, and their absence; `mem0_core.providers.list_reranker` computes the same."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        dims = bert.config["hidden_size"]
        self.bert, self.frozen = bert, 0
        self.head = nn.Linear(dims, 1)
        self.signals = nn.Linear(_FEATURES, 1, bias=False)
        self.list = nn.ModuleDict(
            {
                "enter": nn.Linear(dims, dims),
                "features": nn.Linear(_FEATURES, dims),
                "order": nn.Embedding(1 + _MAX_LIST, dims),
                "layer": nn.ModuleList(Layer(dims, 2 * dims, _HEADS, bert.config["layer_norm_eps"]) for _ in range(2)),
                "score": nn.Linear(dims, 1),
                "score_none": nn.Linear(dims, 1),
            }
        )
        self.none = nn.Parameter(torch.zeros(1, dims))
        self.stale = nn.Linear(dims, 1)
        with torch.no_grad():
            nn.init.normal_(self.list["order"].weight, std=0.01)
            for zero in (self.list["score"], self.list["score_none"], self.stale):
                nn.init.zeros_(zero.weight)
            self.list["score_none"].bias.fill_(_NONE_BIAS)
            self.signals.weight.zero_()
            self.signals.weight[0, _RELATIVE_SCORE], self.signals.weight[0, _IS_ANSWER] = 2.0, 1.0

    def forward(self, lists: Sequence[AskedList], pairs: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return the logits of candidates, of none, and of being out of date: (lists, longest), (lists,) and as first.

        Candidates are in the order of time; a shorter list is padded.
        """
        device = self.head.weight.device
        sizes = [len(one.candidates) for one in lists]
        places = torch.tensor([row * max(sizes) + place for row, size in enumerate(sizes) for place in range(size)])
        dims = self.bert.config["hidden_size"]
        flat = torch.zeros(len(lists) * max(sizes), dims, device=device)
        vectors = flat.index_copy(0, places.to(device), self._read(pairs)).view(len(lists), max(sizes), dims)
        features = torch.zeros(len(lists), max(sizes), _FEATURES)
        mask = torch.ones(len(lists), 1 + max(sizes), dtype=torch.bool)
        for row, one in enumerate(lists):
            features[row, : sizes[row]] = torch.from_numpy(describe_candidates(one.candidates))
            mask[row, 1 + sizes[row] :] = False
        features, mask = features.to(device), mask.to(device)
        entered = self.list["enter"](vectors) + self.list["features"](features)
        entered = entered + self.list["order"](torch.arange(1, 1 + max(sizes), device=device))
        states = torch.cat([self.none.expand(len(lists), 1, -1), entered], 1)
        for layer in self.list["layer"]:
            states = layer(states, mask[:, None, None, :], self.bert.dropout)
        alone = self.head(vectors) + self.signals(features)
        logits = (alone + self.list["score"](states[:, 1:]))[..., 0]
        none = self.list["score_none"](states[:, 0])[:, 0]
        return logits.float(), none.float(), self.stale(states[:, 1:])[..., 0].float()

    def _read(self, pairs: Sequence[Any]) -> Any:
        """Return the mean state of each pair, in float32."""
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]))
        device = self.head.weight.device
        found = []
        for start in range(0, len(order), _PART):
            part = [pairs[place] for place in order[start : start + _PART]]
            ids = pad_rows([row for row, _ in part], device)
            kinds = pad_rows([[0] * asked + [1] * (len(row) - asked) for row, asked in part], device)
            found.append(self.bert.pool(self.bert(ids, kinds, self.frozen), ids).float())
        return torch.cat(found)[torch.tensor(np.argsort(order), device=device)]

    def restore(self, changes: Path, original: dict[str, Any]) -> None:
        """Take over the tensors that `training.cross_encoder` or `main` wrote; `original` are those they changed."""
        state, own = apply_changes(changes, original), self.state_dict()
        with np.load(changes) as arrays:
            names = [name for name in arrays.files if not name.endswith(":scale")]
        for name in names:
            own["none" if name == "list.none" else f"bert.{name}" if name in original else name] = state[name]
        self.load_state_dict(own)

    def export(self, shared_layers: int = 0) -> dict[str, Any]:
        """Return the tensors by the names that the product reads, without the layers that another model has."""
        shared = tuple(f"bert.encoder.layer.{number}." for number in range(shared_layers))
        state = {name: one for name, one in self.state_dict().items() if not name.startswith(("stale.", *shared))}
        state["list.none"] = state.pop("none")
        return {name.removeprefix("bert."): tensor for name, tensor in state.items()}


def train(model: ListReranker, tokenizer: Tokenizer, options: argparse.Namespace, rng: random.Random) -> list[Any]:
    """Train for the steps or seconds of the options; return the log."""
    model.bert.dropout, model.frozen = options.dropout, options.frozen
    model.bert.embeddings.requires_grad_(False)
    for layer in model.bert.layers[: options.frozen]:
        layer.requires_grad_(False)
    parameters = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=0.01)
    lists = [one for file in options.train for one in read_lists(file)]
    if not lists:
        raise ValueError(f"no questions in {', '.join(map(str, options.train))}")
    log, losses, step, started = list[Any](), list[float](), 0, time.monotonic()
    while step < options.steps:
        for batch in _draw_batches(lists, tokenizer, options.tokens, rng):
            seconds = time.monotonic() - started
            progress = max(step / options.steps, seconds / options.seconds)
            if progress >= 1:
                return log
            step += 1
            decay = max(_FINAL_RATE, 0.5 * (1 + math.cos(math.pi * progress)))
            for group in optimizer.param_groups:
                group["lr"] = options.rate * min(1.0, step / _WARMUP_STEPS) * decay
            model.train()
            with torch.autocast(model.head.weight.device.type, torch.bfloat16, enabled=options.bfloat16):
                outputs = model(batch, [pair for one in batch for pair in encode(tokenizer, one)])
            loss = compute_loss(batch, *outputs)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            losses.append(float(loss.detach()))
            if step % 100 == 0:
                log.append({"step": step, "seconds": round(seconds), "loss": round(float(np.mean(losses[-100:])), 4)})
                print(json.dumps(log[-1]), flush=True)
    return log


def compute_loss(lists: Sequence[AskedList], logits: Any, none: Any, stale: Any) -> Any:
    """Return the cross entropy of the golds, or of none, and a share of that of being out of date."""
    is_gold = torch.zeros(len(lists), 1 + logits.shape[1], dtype=torch.bool, device=logits.device)
    is_real, is_stale = torch.zeros_like(is_gold), torch.zeros_like(is_gold)
    for row, one in enumerate(lists):
        is_gold[row, one.gold or [logits.shape[1]]] = True
        is_real[row, [*range(len(one.candidates)), logits.shape[1]]] = True
        is_stale[row, one.stale] = True
    both = torch.cat([logits, none[:, None]], 1).masked_fill(~is_real, -1e4)
    ranked = (torch.logsumexp(both, 1) - torch.logsumexp(both.masked_fill(~is_gold, -1e9), 1)).mean()
    kept = is_real[:, :-1]
    outdated = functional.binary_cross_entropy_with_logits(stale[kept], is_stale[:, :-1][kept].float())
    return ranked + _STALE_WEIGHT * outdated


def evaluate(model: ListReranker, tokenizer: Tokenizer, lists: Sequence[AskedList]) -> dict[str, Any]:
    """Return, for each kind of question: its number, and the shares with a gold first before, after, and with none."""
    model.eval()
    found: dict[str, list[tuple[bool, bool, bool]]] = {}
    with torch.inference_mode():
        for one in map(_sort_by_time, lists):
            logits, none, _ = model([one], encode(tokenizer, one))
            best = int(logits[0].argmax())
            before = max(range(len(one.candidates)), key=lambda place: one.candidates[place].score)
            found.setdefault(one.kind, []).append((before in one.gold, best in one.gold, bool(none > logits[0].max())))
    rates = {kind: [len(rows), *np.mean(rows, axis=0).round(3).tolist()] for kind, rows in found.items()}
    return {"first": rates}


def encode(tokenizer: Tokenizer, one: AskedList) -> list[Any]:
    """Return the ids of each pair of a list, and the number of those of the question."""
    return encode_candidates(tokenizer.wordpiece, one.question, one.candidates, MAX_TOKENS)


def _draw_batches(
    lists: Sequence[AskedList], tokenizer: Tokenizer, tokens: int, rng: random.Random
) -> Iterator[list[AskedList]]:
    """Yield every list once, varied, in batches of a number of tokens and of similar lengths."""
    varied = [vary(one, rng) for one in lists]
    rng.shuffle(varied)
    for start in range(0, len(varied), _SHUFFLED):
        part = [one for one in varied[start : start + _SHUFFLED] if one.candidates]
        sizes = [sum(len(ids) for ids, _ in encode(tokenizer, one)) for one in part]
        batches: list[list[AskedList]] = [[]]
        total = 0
        for place in sorted(range(len(part)), key=lambda place: sizes[place]):
            if batches[-1] and total + sizes[place] > tokens:
                batches.append([])
                total = 0
            batches[-1].append(part[place])
            total += sizes[place]
        rng.shuffle(batches)
        yield from filter(None, batches)


def vary(one: AskedList, rng: random.Random) -> AskedList:
    """Return a list in the order of time, without some candidates, and at times with slips in the question."""
    is_emptied = bool(one.gold) and not one.stale and rng.random() < _EMPTIED_SHARE
    kept = [
        place
        for place in range(len(one.candidates))
        if (not is_emptied if place in one.gold else rng.random() >= _DROPPED_SHARE)
    ]
    question = slip(one.question, rng) if rng.random() < _SLIP_SHARE else one.question
    return _sort_by_time(_keep(replace(one, question=question), kept))


def _keep(one: AskedList, places: Sequence[int]) -> AskedList:
    """Return a list with some of its candidates, in the given order."""
    gold, stale = (
        [new for new, place in enumerate(places) if place in found] for found in (set(one.gold), set(one.stale))
    )
    return replace(one, candidates=[one.candidates[place] for place in places], gold=gold, stale=stale)


def _sort_by_time(one: AskedList) -> AskedList:
    return _keep(one, sorted(range(len(one.candidates)), key=lambda place: one.candidates[place].day))


def slip(text: str, rng: random.Random) -> str:
    """Return a text with a letter of one word left out, doubled, swapped or replaced."""
    words = text.split()
    index = rng.randrange(len(words))
    word = words[index]
    if len(word) < 3:
        return text
    at = rng.randrange(1, len(word) - 1)
    variants = (
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + rng.choice(_LETTERS) + word[at + 1 :],
    )
    return " ".join([*words[:index], rng.choice(variants), *words[index + 1 :]])


if __name__ == "__main__":
    main()
