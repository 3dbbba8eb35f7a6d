"""Fit the weights of a recipe to questions of the validation pools: ``python -m training.fusion --help``.

The pools go through the product, which gives the signals of the best candidates of each question. A softmax over the
candidates ranks the golds first; no weight may change its sign, so the sum stays monotone in each signal and
`explain=True` shows the same contributions. A penalty holds the weights near those of the recipe. The signal
``session`` depends on the others and is taken as it was, so run the program again with its result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.collection import Dataset
from benchmarks.remembered import Remembered, remembered
from benchmarks.timed import CachedEmbedder
from mem0_core.domain.recipes import Recipe, resolve_recipe
from mem0_core.providers.numpy_embedder import create_local_embedder
from training.datasets import read_dataset
from training.evaluate import rank_places

__all__ = ["Asked", "fit_weights", "main"]

_POOLS, _CANDIDATES, _SCANNED = 14, 60, 120
_ROUNDS, _RATE, _SCALE, _PENALTY = 400, 0.01, 12.0, 0.2
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """The candidates of one question: their signals (candidates, signals), which are gold, and the number of golds."""

    signals: NDArray[np.float64]
    is_gold: NDArray[np.bool_]
    golds: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the measures before and after, by cross-validation, and the weights fitted to all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sources")
    parser.add_argument("--sources", default="own_friends,own_persona,friendsqa", help="sources of one length of texts")
    parser.add_argument("--recipe", default="hybrid", help="a name, or a mapping as JSON")
    parser.add_argument("--model", default="mem0-minilm")
    options = parser.parse_args(arguments)
    recipe = resolve_recipe(json.loads(options.recipe) if options.recipe.startswith("{") else options.recipe)
    embedder = CachedEmbedder(create_local_embedder(options.model))
    asked: list[Asked] = []
    weights: dict[str, float] = {}
    for name in options.sources.split(","):
        dataset = read_dataset(options.data, name, _POOLS)
        with remembered(dataset, embedder) as memory:
            asked += _collect(memory, dataset, dataclasses.replace(recipe, pool=_SCANNED), weights)
    names, start = list(weights), np.array(list(weights.values()))
    before, after = _cross_validate(asked, start)
    print("R@10 and MRR", before, "->", after, "of", len(asked), "questions")
    print(json.dumps(dict(zip(names, fit_weights(asked, start).round(2).tolist(), strict=True))))


def _collect(memory: Remembered, dataset: Dataset, recipe: Recipe, weights: dict[str, float]) -> Iterator[Asked]:
    """Yield the candidates of each question that has a gold among them; note the weights of the recipe."""
    for collection, question in dataset.questions:
        hits = memory.explain(collection.name, question.text, recipe, _CANDIDATES)
        gold = np.array([not {*units}.isdisjoint(question.gold) for units, _ in hits])
        if not gold.any():
            continue
        for name, signal in hits[0][1].items():
            weights.setdefault(name, signal["weight"])
        rows = [[signals.get(name, {"value": 0.0})["value"] for name in weights] for _, signals in hits]
        yield Asked(np.array(rows), gold, len(question.gold))


def fit_weights(asked: Sequence[Asked], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights with the signs and the sum of those to start with."""
    width = max(len(one.signals) for one in asked)
    signals = torch.zeros(len(asked), width, len(start))
    gold, absent = torch.zeros(len(asked), width), torch.full((len(asked), width), -1e4)
    for place, one in enumerate(asked):
        count = len(one.signals)
        signals[place, :count, : one.signals.shape[1]] = torch.from_numpy(one.signals)
        gold[place, :count], absent[place, :count] = torch.from_numpy(one.is_gold), 0
    first = torch.from_numpy(start).float()
    low, high = torch.where(first < 0, -1.0, 0.0), torch.where(first < 0, 0.0, 1.0)
    weights, scale = first.clone().requires_grad_(), torch.tensor(_SCALE, requires_grad=True)
    optimizer = torch.optim.Adam([weights, scale], lr=_RATE)
    for _ in range(_ROUNDS):
        shares = ((signals @ weights) * scale + absent).log_softmax(1)
        loss = -((shares * gold).sum(1) / gold.sum(1)).mean() + _PENALTY * ((weights - first) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            weights.clamp_(low, high)
    found = weights.detach().double().numpy()
    result: NDArray[np.float64] = found * (start[start > 0].sum() / found[found > 0].sum())
    return result


def _cross_validate(asked: Sequence[Asked], start: NDArray[np.float64]) -> tuple[list[float], list[float]]:
    """Return R@10 and MRR in percent, with the weights to start with and with those fitted to other questions."""
    folds = np.array_split(np.random.default_rng(1).permutation(len(asked)), _FOLDS)
    before, after = [], []
    for fold in folds:
        kept = fold.tolist()
        others = [asked[place] for place in sorted({*range(len(asked))} - {*kept})]
        weights = fit_weights(others, start)
        for place in kept:
            before.append(_measure(asked[place], start))
            after.append(_measure(asked[place], weights))
    return [(100 * np.mean(rows, axis=0)).round(1).tolist() for rows in (before, after)]  # type: ignore[return-value]


def _measure(asked: Asked, weights: NDArray[np.float64]) -> tuple[float, float]:
    order = np.argsort(-(asked.signals @ weights[: asked.signals.shape[1]]), kind="stable")
    recall, reciprocal = rank_places(order.tolist(), set(np.flatnonzero(asked.is_gold).tolist()))
    return recall * asked.is_gold.sum() / asked.golds, reciprocal


if __name__ == "__main__":
    main()
