"""Comparison of two evaluations, and of the memories of one, question by question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mem0_core.errors import InputError
from mem0_core.evaluation.figures import FIGURES, Figure, bootstrap_intervals

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


def rank_memories(arms: Mapping[str, Any]) -> dict[str, Any]:
    """Order the memories of a result: by their judged answers, else by the answering messages in their prompts.

    Returns:
        ``figure``, ``correct`` or ``found``, and ``memories``, best first. Each but the first has the ``difference`` of
        the one before it to itself, with its interval, and ``is_tied``: True if the interval contains 0. Without a
        question that was judged for both, they are tied and have no ``difference``.
    """
    memories = [name for name, arm in arms.items() if arm["settings"] is not None]
    figure = "correct" if all("correct" in arms[name]["figures"] for name in memories) else "found"
    ranked = [name for name in memories if figure in arms[name]["figures"]]
    ranked.sort(key=lambda name: -arms[name]["figures"][figure]["value"])
    entries: list[dict[str, Any]] = [{"arm": name} for name in ranked]
    for place in range(1, len(ranked)):
        pair = (ranked[place], ranked[place - 1])
        one = compare_arms(arms[pair[0]], arms[pair[1]], pair)["figures"].get(figure)
        if one is None:
            entries[place]["is_tied"] = True
        else:
            entries[place] |= {"difference": one["difference"], "is_tied": one["verdict"] == "no difference"}
    return {"figure": figure, "memories": entries}


def describe_ranking(ranking: Mapping[str, Any]) -> str:
    """Return the order of several memories as a line; empty for fewer than two."""
    memories = ranking["memories"]
    if len(memories) < 2:
        return ""
    words = [memories[0]["arm"]]
    for one in memories[1:]:
        words += ["=" if one["is_tied"] else ">", one["arm"]]
    return f"order by {ranking['figure']}: {' '.join(words)}"
