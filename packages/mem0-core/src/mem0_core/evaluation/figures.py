"""Figures of an evaluation, from the outcomes of an arm, with bootstrap intervals over the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core.evaluation.arms import Outcome
from mem0_core.evaluation.questions import Question
from mem0_core.llm.replies import read_citations

RESAMPLES = 2_000
_SEED = 5


@dataclass(frozen=True, slots=True)
class FigureDefinition:
    """Meaning of a figure.

    Attributes:
        better: 1 if more is better, -1 if less is, 0 if neither.
    """

    title: str
    better: int
    unit: str = "%"


FIGURES: Mapping[str, FigureDefinition] = {
    "hit@1": FigureDefinition("An answering message is the first search result", 1),
    "hit@5": FigureDefinition("An answering message is among the first five search results", 1),
    "hit@10": FigureDefinition("An answering message is among the first ten search results", 1),
    "recall@10": FigureDefinition("Share of the answering messages among the first ten search results", 1),
    "mrr": FigureDefinition("Reciprocal rank of the first answering message", 1),
    "found": FigureDefinition("Share of the answering messages that the prompt contains", 1),
    "precision": FigureDefinition("Share of the injected memories that answer the question", 1),
    "stale_above_fresh": FigureDefinition("Changed facts whose old value ranks above the new one", -1),
    "refused": FigureDefinition("Unanswerable questions that the memory declines", 1),
    "wrongly_refused": FigureDefinition("Answerable questions that the memory declines", -1),
    "correct": FigureDefinition("Answers that the model judges correct", 1),
    "cited": FigureDefinition("Share of the injected memories that the answer cites", 0),
    "cited_right": FigureDefinition("Share of the cited memories that answer the question", 1),
    "lift": FigureDefinition("Questions answered correctly only with this arm", 1),
    "harm": FigureDefinition("Questions answered correctly only without it", -1),
    "tokens": FigureDefinition("Tokens injected", -1, "tokens"),
    "milliseconds": FigureDefinition("Time of the recall", -1, "ms"),
    "cost": FigureDefinition("Price of the injected tokens for a thousand questions", -1, "$"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over `count` questions, and its interval of 95 %."""

    value: float
    low: float
    high: float
    count: int

    def as_dict(self) -> dict[str, float]:
        """Return the figure for JSON."""
        return {
            "value": round(self.value, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "questions": self.count,
        }


def measure(question: Question, outcome: Outcome) -> dict[str, float]:
    """Return the figures of one question; those that do not apply to it are left out."""
    values: dict[str, float] = {"tokens": float(outcome.tokens), "milliseconds": outcome.milliseconds}
    if not question.answerable:
        return {**values, "refused": float(outcome.refused)}
    values["wrongly_refused"] = float(outcome.refused)
    gold = set(question.gold)
    if not gold:
        return values
    injected = {line for lines in outcome.injected for line in lines}
    values["found"] = len(gold & injected) / len(gold)
    if outcome.injected:
        values["precision"] = sum(bool(gold & set(lines)) for lines in outcome.injected) / len(outcome.injected)
    if outcome.ranked is not None:
        values |= _measure_ranking(question, outcome.ranked)
    return values


def measure_citations(question: Question, outcome: Outcome, reply: str) -> dict[str, float]:
    """Return the figures of the citations in an answer; none if the prompt numbers no memories."""
    if not outcome.cited:
        return {}
    cited = read_citations(reply, {number: number for number in outcome.cited})
    values = {"cited": len(cited) / len(outcome.cited)}
    if cited and question.gold:
        right = [number for number in cited if not set(question.gold).isdisjoint(outcome.cited[number])]
        values["cited_right"] = len(right) / len(cited)
    return values


def _measure_ranking(question: Question, ranked: Sequence[Sequence[str]]) -> dict[str, float]:
    rank_of = {line: rank for rank, lines in reversed(list(enumerate(ranked, 1))) for line in lines}
    ranks = [rank_of[line] for line in question.gold if line in rank_of]
    first = min(ranks, default=None)
    values = {f"hit@{k}": float(first is not None and first <= k) for k in (1, 5, 10)}
    values["recall@10"] = sum(rank <= 10 for rank in ranks) / len(question.gold)
    values["mrr"] = 0.0 if first is None else 1 / first
    if question.stale:
        stale = min((rank_of[line] for line in question.stale if line in rank_of), default=None)
        values["stale_above_fresh"] = float(stale is not None and (first is None or stale < first))
    return values


def summarize(rows: Sequence[Mapping[str, float]], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Return the mean of each figure over the questions that have it, with its interval."""
    figures: dict[str, Figure] = {}
    for name in FIGURES:
        values = [row[name] for row in rows if name in row]
        if values:
            ((low, high),) = bootstrap_intervals(np.array([values]).T, resamples)
            figures[name] = Figure(float(np.mean(values)), low, high, len(values))
    return figures


def bootstrap_intervals(rows: NDArray[Any], resamples: int = RESAMPLES) -> list[tuple[float, float]]:
    """Return for each column the middle 95 % of its means over rows drawn with replacement."""
    drawn = np.random.default_rng(_SEED).integers(len(rows), size=(resamples, len(rows)))
    bounds = [np.percentile(column[drawn].mean(axis=1), [2.5, 97.5]) for column in rows.T]
    return [(float(low), float(high)) for low, high in bounds]
