"""Fit the order of messages for questions about the present: ``python -m training.current --help``.

Stories of changes and of facts that last, and chats in which most things stay as they are, go through the product. A
softmax over the best messages of each question ranks the golds first. The weights belong in
`mem0_core.recall._current.FEATURES`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.collection import Collection, Dataset, Question
from benchmarks.remembered import remembered
from benchmarks.timed import CachedEmbedder
from mem0_core.domain.recipes import HYBRID
from mem0_core.domain.records import Hit
from mem0_core.flow import Flow
from mem0_core.interfaces import Embedder, Ports
from mem0_core.providers.numpy_embedder import create_local_embedder
from mem0_core.recall import _current
from mem0_core.recall import search as search_module
from mem0_core.recall._current import FEATURES
from mem0_core.recall.search import Search
from training.datasets import read_dataset, read_stories

__all__ = ["Ordered", "collect", "fit_features", "main", "measure"]

FOLDER = Path(__file__).parent / "stories"
STORIES = {"changes": 1.0, "lasting": 2.0}  # files with the weights of their questions; those of what lasts are few
_CHATS, _POOLS, _CHAT_WEIGHT = ("own_assistant", "own_chats"), 40, 0.7
_FOLDS, _ROUNDS, _RATE, _PENALTY = 5, 1200, 0.02, 0.002


@dataclass(frozen=True, slots=True)
class Ordered:
    """The best messages of one question: their features (n, features), which are gold (n,), and its weight."""

    features: NDArray[np.float64]
    is_gold: NDArray[np.bool_]
    weight: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how often a gold is first before and after, by cross-validation, and the weights fitted to everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the sources, for the chats")
    parser.add_argument("--model", default="mem0-minilm")
    parser.add_argument("--measure", type=Path, nargs="+", default=(), help="stories to ask the product, without a fit")
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(create_local_embedder(options.model))
    for file in options.measure:
        before, after, count = measure(read_stories(file), embedder)
        print(
            f"{file.stem}: a gold is first in {before} of {count} about the present, with the shipped order in {after}"
        )
    if options.measure:
        return
    asked: list[Ordered] = []
    for name, weight in STORIES.items():
        asked += collect(read_stories(FOLDER / f"{name}.jsonl"), embedder, weight)
    for name in _CHATS:
        for split in ("train", "valid"):
            dataset = read_dataset(options.data, name, _POOLS, split)
            asked += collect(dataset, embedder, _CHAT_WEIGHT)
    for label, weight in (*STORIES.items(), ("chats", _CHAT_WEIGHT)):
        before, after, count = _cross_validate(asked, weight)
        print(f"{label}: a gold is first in {before} of {count}, with the model in {after}")
    print(dict(zip(FEATURES, fit_features(asked).round(1).tolist(), strict=True)))


def measure(dataset: Dataset, embedder: Embedder) -> tuple[int, int, int]:
    """Return how many questions about the present have a gold first without the order, how many with it, and all."""
    with patch.object(search_module, "prefer_current", _keep_order):
        before = _count_first(dataset, embedder)
    return before, _count_first(dataset, embedder), len(_about_now(dataset))


def _count_first(dataset: Dataset, embedder: Embedder) -> int:
    with remembered(dataset, embedder, relations=True) as memory:
        search = memory.by(HYBRID)
        found = ((search(user.name, one.text).ranked[:1], one.gold) for user, one in _about_now(dataset))
        return sum(not set(gold).isdisjoint("|".join(best).split("|")) for best, gold in found)


def _about_now(dataset: Dataset) -> list[tuple[Collection, Question]]:
    return [(collection, question) for collection, question in dataset.questions if question.kind == "present"]


def _keep_order(ports: Ports, search: Search, hits: list[Hit]) -> Flow[list[Hit]]:
    yield from ()
    return hits


def collect(dataset: Dataset, embedder: Embedder, weight: float = 1.0) -> list[Ordered]:
    """Return the questions of a dataset whose answers the product orders by time, with the features of the answers."""
    found: list[Ordered] = []
    seen: list[tuple[list[str], NDArray[np.float64]]] = []
    describe = _current.describe_hits

    def watch(hits: Sequence[Any], *rest: Any) -> NDArray[np.float64]:
        features = describe(hits, *rest)
        seen.append(([hit.item.text for hit in hits], features))
        return features

    with remembered(dataset, embedder, relations=True) as memory, patch.object(_current, "describe_hits", watch):
        search = memory.by(HYBRID)
        for collection, question in dataset.questions:
            seen.clear()
            search(collection.name, question.text)
            golds = {unit.text for unit in collection.units if unit.id in question.gold}
            found += [Ordered(rows, np.array([text in golds for text in texts]), weight) for texts, rows in seen]
    return found


def fit_features(asked: Sequence[Ordered]) -> NDArray[np.float64]:
    """Return the weights of the features, by gradient descent (Adam)."""
    known = [one for one in asked if one.is_gold.any()]
    weights, total = np.zeros(len(FEATURES)), sum(one.weight for one in known)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _ROUNDS + 1):
        gradient = 2 * _PENALTY * weights
        for one in known:
            gradient = gradient + one.weight / total * _differentiate(one, weights)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        weights = weights - _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def _differentiate(one: Ordered, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient of the cross entropy between the shares of all messages and those of the golds."""
    sums = one.features @ weights
    shares = np.exp(sums - sums.max())
    shares /= shares.sum()
    golds = shares * one.is_gold
    gradient: NDArray[np.float64] = one.features.T @ (shares - golds / golds.sum())
    return gradient


def _cross_validate(asked: Sequence[Ordered], weight: float) -> tuple[int, int, int]:
    """Return how many questions of a weight have a gold first, how many by the model, and their number."""
    folds = np.array_split(np.random.default_rng(1).permutation(len(asked)), _FOLDS)
    before = after = 0
    for fold in folds:
        kept = set(fold.tolist())
        weights = fit_features([one for place, one in enumerate(asked) if place not in kept])
        for one in (asked[place] for place in kept if asked[place].weight == weight):
            before += bool(one.is_gold[0])
            after += bool(one.is_gold[int((one.features @ weights).argmax())])
    return before, after, sum(one.weight == weight for one in asked)


if __name__ == "__main__":
    main()
