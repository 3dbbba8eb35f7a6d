"""Comparison of two evaluations, question by question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mem0_core.errors import InputError
from mem0_core.evaluation.figures import FIGURES, Figure, bootstrap_intervals

__all__ = ["compare_arms"]

_TIME = "milliseconds"  # differs from run to run


def compare_arms(first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]) -> dict[str, Any]:
    """Compare an arm of each of two results on the questions that both were asked.

    Args:
        first, second: arms of `evaluate`, with their rows.
        names: labels for the report.

    Returns:
        For each figure both means, the ``difference`` (second less first) with its interval, and a ``verdict``:
        better, worse, or no difference if the interval contains 0.

    Raises:
        InputError: they have no question in common.
    """
    rows = {row["question"]: row["values"] for row in first["rows"]}
    pairs = [(rows[row["question"]], row["values"]) for row in second["rows"] if row["question"] in rows]
    if not pairs:
        raise InputError(
            f"{names[0]!r} and {names[1]!r} have no question in common; evaluate both on the same chats and questions"
        )
    figures = {}
    for name in FIGURES:
        both = [(one[name], other[name]) for one, other in pairs if name in one and name in other]
        if both:
            figures[name] = _compare_figure(name, np.array(both))
    return {"first": names[0], "second": names[1], "questions": len(pairs), "figures": figures}


def _compare_figure(name: str, both: Any) -> dict[str, Any]:
    ((low, high),) = bootstrap_intervals(both[:, 1:] - both[:, :1])
    difference = float((both[:, 1] - both[:, 0]).mean())
    sides = {side: {"value": round(float(both[:, place].mean()), 4)} for place, side in enumerate(("first", "second"))}
    return {
        **sides,
        "difference": Figure(difference, low, high, len(both)).as_dict(),
        "verdict": _judge_difference(name, low, high),
    }


def _judge_difference(name: str, low: float, high: float) -> str:
    better = FIGURES[name].better
    if low <= 0 <= high or not better or name == _TIME:
        return "no difference" if name != _TIME else ""
    return "better" if (low > 0) == (better > 0) else "worse"
