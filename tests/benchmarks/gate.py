"""Where a gate would have to stand: the best hit's score where there is an answer, and where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.benchmarks.collection import Dataset
from tests.benchmarks.report import Report

__all__ = ["rows", "separation"]

_LOST = 3  # percent of the questions with an answer that a gate may turn away


def rows(report: Report, dataset: Dataset, best: Sequence[float]) -> None:
    """The score that all but 3 % of the answerable questions reach, and how many of the others do not.

    Args:
        best: for each question of the dataset the score of the best hit.
    """
    pairs = [(question, score) for (_, question), score in zip(dataset.questions, best, strict=True)]
    good = [score for question, score in pairs if dataset.scored(question)]
    bad = [score for question, score in pairs if question.kind == dataset.unanswerable]
    gate = float(np.percentile(good, _LOST))
    found: dict[str, Any] = {"answerable": _spread(good), "unanswerable": _spread(bad) if bad else None}
    note = f"median {np.median(good):.2f}"
    if bad:
        turned_away, sure = 100 * float(np.mean(np.array(bad) < gate)), separation(good, bad)
        found |= {"turned away, %": turned_away, "separation": sure}
        note += f"; of {len(bad)} without an answer (median {np.median(bad):.2f}) {turned_away:.0f} % are below it"
        note += f", separation {sure:.2f}"
    section = f"the best hit's score that {100 - _LOST} % of answerable questions reach"
    report.add(section, dataset.name, gate, note=note)
    report.details.setdefault(dataset.name, {})["best hit"] = found


def separation(good: Sequence[float], bad: Sequence[float]) -> float:
    """How often a good one is above a bad one (the area under the ROC curve); equals count half."""
    above = np.subtract.outer(np.array(good), np.array(bad))
    return float((above > 0).mean() + (above == 0).mean() / 2)


def _spread(scores: Sequence[float]) -> dict[str, float]:
    return {f"{share} %": float(np.percentile(scores, share)) for share in (1, 3, 5, 10, 25, 50, 75, 90)}
