"""A chart of the recall of all systems, with intervals.

Raises:
    ModuleNotFoundError: matplotlib is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw"]

_COLOURS = ("#1b5e8c", "#7fb2d5", "#b9d6e8", "#9a9a9a", "#bdbdbd", "#d98b5b")


def draw(details: Mapping[str, Mapping[str, Any]], path: Path) -> Path:
    """Draw a bar for each system, in a group for each dataset of a recall report's `details`; returns `path`.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    systems = list(next(iter(details.values()))["systems"])
    width = 0.86 / len(systems)
    figure = Figure(figsize=(10, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for place, system in enumerate(systems):
        figures = [found["systems"][system][found["headline"]] for found in details.values()]
        middles = [group - 0.43 + width * (place + 0.5) for group in range(len(figures))]
        bars = axes.bar(
            middles,
            [mean for mean, _, _ in figures],
            width,
            yerr=_errors(figures),
            label=system,
            color=_COLOURS[place % len(_COLOURS)],
            error_kw={"lw": 0.8, "capsize": 2},
        )
        axes.bar_label(bars, fmt="%.1f", label_type="center", fontsize=7, color="white" if place == 0 else "black")
    axes.set_xticks(range(len(details)), [_title(name, found) for name, found in details.items()])
    axes.set_ylim(0, 100)
    axes.set_ylabel("% of the gold units; bars of 95 %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, ncols=2, frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)
    return path


def _errors(figures: Sequence[tuple[float, float, float]]) -> tuple[list[float], list[float]]:
    return [mean - low for mean, low, _ in figures], [high - mean for mean, _, high in figures]


def _title(name: str, found: Mapping[str, Any]) -> str:
    return f"{name}: {found['headline']}\n{found['questions']['scored']} questions, {found['units']:,} units"
