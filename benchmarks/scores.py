"""Scores of rankings against gold answers, with intervals.

R@k is the share of a question's gold units among the first k, averaged over the questions that have any; all@10 the
share of questions with all of them among the first ten; MRR and nDCG use binary relevance. Means have the middle 95 %
of those over questions drawn with replacement (bootstrap), differences that of paired questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.collection import Dataset
from mem0_core.evaluation import bootstrap_intervals

__all__ = ["DEPTH", "MEASURES", "Figure", "Scores", "measures"]

DEPTH = 20
"""How many results are looked at."""
MEASURES = ("R@5", "R@10", "R@20", "all@10", "MRR", "nDCG@10")

Figure = tuple[float, float, float]
"""A mean, and its interval of 95 %."""


class Scores:
    """The measures of every question that has gold, in percent.

    Args:
        ranked: for each question of the dataset the ids of units, best first; ``|`` joins those of one memory.
    """

    def __init__(self, dataset: Dataset, ranked: Sequence[Sequence[str]]) -> None:
        pairs = [(asked, found) for (_, asked), found in zip(dataset.questions, ranked, strict=True) if asked.gold]
        self._kinds = np.array([asked.kind for asked, _ in pairs])
        self._counts = np.array([dataset.scored(asked) for asked, _ in pairs])
        self._values = np.array([[100 * one for one in measures(asked.gold, found)] for asked, found in pairs])

    def of(self, kind: str | None = None) -> NDArray[np.float64]:
        """Return (questions, measures): of one kind, or of all that count."""
        rows: NDArray[np.float64] = self._values[self._counts if kind is None else self._kinds == kind]
        return rows

    def figures(self, resamples: int, kind: str | None = None) -> dict[str, Figure]:
        return _figures(self.of(kind), resamples)

    def above(self, other: Scores, resamples: int) -> dict[str, Figure]:
        """Return the lead over other scores of the same questions, in points."""
        return _figures(self.of() - other.of(), resamples)


def measures(gold: Sequence[str], ranked: Sequence[str]) -> list[float]:
    """Return the values of `MEASURES` for one question, each in [0, 1]."""
    rank_of = {unit: rank for rank, units in reversed(list(enumerate(ranked[:DEPTH], 1))) for unit in units.split("|")}
    ranks = [rank_of.get(unit, DEPTH + 1) for unit in gold]
    shares = [sum(rank <= k for rank in ranks) / len(ranks) for k in (5, 10, 20)]
    first = min(ranks)
    return [*shares, float(max(ranks) <= 10), 1 / first if first <= DEPTH else 0.0, _ndcg(ranks)]


def _ndcg(ranks: Sequence[int]) -> float:
    """Return nDCG; two units of one memory are one hit and one place in the ideal order."""
    found = {rank for rank in ranks if rank <= DEPTH}
    wanted = len(found) + sum(rank > DEPTH for rank in ranks)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(wanted, 10) + 1))
    return sum(1 / math.log2(rank + 1) for rank in found if rank <= 10) / best


def _figures(rows: NDArray[np.float64], resamples: int) -> dict[str, Figure]:
    means, bounds = rows.mean(axis=0).tolist(), bootstrap_intervals(rows, resamples)
    return {name: (mean, *bound) for name, mean, bound in zip(MEASURES, means, bounds, strict=True)}
