"""The threshold for a gate: best scores of questions with an answer, and of questions without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.collection import Dataset
from benchmarks.report import Report

__all__ = ["rows", "separation", "strangers"]

_LOST = 3  # percent of the questions with an answer that a gate may turn away
_STRANGERS = 40


def strangers(dataset: Dataset, others: Sequence[Dataset]) -> list[str]:
    """Return questions unrelated to a dataset: some of each of the other datasets."""
    found: list[str] = []
    for other in others:
        if other.name != dataset.name:
            texts = [question.text for _, question in other.questions if other.scored(question)]
            found += texts[:: max(1, len(texts) // _STRANGERS)][:_STRANGERS]
    return found


def rows(report: Report, dataset: Dataset, best: Sequence[float], strange: Sequence[float]) -> None:
    """Return the score that all but 3 % of the answerable questions reach, and the share of the others below it.

    Args:
        best: the score of the best hit for each question of the dataset; `strange` those of `strangers`.
    """
    pairs = [(question, score) for (_, question), score in zip(dataset.questions, best, strict=True)]
    good = [score for question, score in pairs if dataset.scored(question)]
    gate = float(np.percentile(good, _LOST))
    section = f"the best hit's score that {100 - _LOST} % of answerable questions reach"
    report.add(section, dataset.name, gate, note=f"median {np.median(good):.2f}")
    detail: dict[str, Any] = {"answerable": _spread(good)}
    near = [score for question, score in pairs if question.kind == dataset.unanswerable]
    for name, bad in ((dataset.unanswerable or "", near), ("questions of the other datasets", strange)):
        if bad:
            below, sure = 100 * float(np.mean(np.array(bad) < gate)), separation(good, bad)
            note = f"{len(bad)} with a median of {np.median(bad):.2f}; separation from the answerable {sure:.2f}"
            report.add(section, f"  {name}: below it", below, "%", note=note)
            detail[name] = {**_spread(bad), "below, %": below, "separation": sure}
    report.details.setdefault(dataset.name, {})["best hit"] = detail


def separation(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return the area under the ROC curve: the share of pairs in order, ties counting half."""
    above = np.subtract.outer(np.array(good), np.array(bad))
    return float((above > 0).mean() + (above == 0).mean() / 2)


def _spread(scores: Sequence[float]) -> dict[str, float]:
    return {f"{share} %": float(np.percentile(scores, share)) for share in (1, 3, 5, 10, 25, 50, 75, 90)}
