"""Feedback: its effect on questions that are asked again, and on questions that it was not about.

Half of the questions of each LoCoMo conversation are asked first, and the memories that their answers would cite are
counted: the gold turns among the first ten. In the noisy arms, three answers in ten cite a wrong one of the ten,
and in one of them the questions are asked ten times. Then both halves are ranked by recipes that differ in the weight
of the signal ``feedback``.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from benchmarks import locomo
from benchmarks.collection import Collection, Dataset
from benchmarks.cost import real_embedder
from benchmarks.plan import Plan
from benchmarks.remembered import Remembered, remembered
from benchmarks.report import Report
from benchmarks.scores import Scores
from benchmarks.timed import CachedEmbedder
from mem0_core.domain.recipes import HYBRID, Recipe

__all__ = ["measure"]

_WEIGHTS = (0.0, HYBRID.short.feedback, 0.05, 0.1)
_ARMS = {"right citations": (0.0, 1), "three in ten wrong": (0.3, 1), "three in ten wrong, ten times": (0.3, 10)}
"""For each arm the share of wrong citations, and how often the questions are asked."""
_SHOWN = 10


def measure(plan: Plan) -> Report:
    report = Report("feedback")
    embedder = real_embedder() if locomo.PATH.exists() else None
    if embedder is None:
        report.skip("LoCoMo", "the evaluation data, or the weights of the embedder, are not here")
        return report
    whole = locomo.dataset(locomo.load()[: plan.conversations]).part(plan.sessions, plan.questions)
    halves = {"asked before": _half(whole, 0), "not asked before": _half(whole, 1)}
    cached = CachedEmbedder(embedder)
    for arm, (wrong_share, times) in _ARMS.items():
        with remembered(whole, cached) as memory:
            before = {name: _rank(memory, half, HYBRID) for name, half in halves.items()}
            for _ in range(times):
                _cite(memory, halves["asked before"], before["asked before"], wrong_share)
            for name, half in halves.items():
                _rows(report, f"{arm}: questions {name}", half, before[name], memory, plan.resamples)
    return report


def _half(whole: Dataset, rest: int) -> Dataset:
    def part(one: Collection) -> Collection:
        return dataclasses.replace(one, questions=tuple(one.questions[rest::2]))

    return dataclasses.replace(whole, collections=tuple(map(part, whole.collections)))


def _rank(memory: Remembered, half: Dataset, recipe: Recipe) -> list[Sequence[str]]:
    search = memory.by(recipe)
    return [search(collection.name, question.text).ranked for collection, question in half.questions]


def _cite(memory: Remembered, half: Dataset, ranked: Sequence[Sequence[str]], wrong_share: float) -> None:
    """Count the citations of one answer to each question."""
    chance = random.Random(7)
    for (_, question), found in zip(half.questions, ranked, strict=True):
        shown = found[:_SHOWN]
        gold = [units for units in shown if not set(units.split("|")).isdisjoint(question.gold)]
        others = [units for units in shown if units not in gold]
        is_wrong = chance.random() < wrong_share
        memory.count_useful([chance.choice(others)] if is_wrong and others else gold)


def _rows(
    report: Report, section: str, half: Dataset, before: list[Sequence[str]], memory: Remembered, resamples: int
) -> None:
    plain = Scores(half, before)
    detail: dict[str, Mapping[str, object]] = report.details.setdefault(section, {})
    for weight in _WEIGHTS:
        long = HYBRID.long and dataclasses.replace(HYBRID.long, feedback=weight)
        recipe = dataclasses.replace(HYBRID, short=dataclasses.replace(HYBRID.short, feedback=weight), long=long)
        lead = Scores(half, _rank(memory, half, recipe)).above(plain, resamples)
        (gain, low, high), (mrr, *_) = lead["R@10"], lead["MRR"]
        report.add(
            section, f"weight {weight:g}", gain, "points of R@10", note=f"{low:+.1f} to {high:+.1f}, MRR {mrr:+.1f}"
        )
        detail[f"{weight:g}"] = lead
