"""What each signal, each source and some choices of a recipe are worth: the score with one thing changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from mem0_core.recipes import SIGNALS, Recipe
from tests.benchmarks.collection import Dataset
from tests.benchmarks.report import Report
from tests.benchmarks.scores import Scores

__all__ = ["rows", "variants"]

_POOLS = (50, 200)


def variants(recipe: Recipe) -> dict[str, Recipe]:
    """The recipe without each of its signals and sources, with other pools, and with one kind of text's weights."""
    found = {f"without {name}": recipe.without(name) for name in SIGNALS if name in recipe.signals}
    for source in recipe.sources:
        kept = tuple(other for other in recipe.sources if other != source)
        found[f"without the {source} source"] = dataclasses.replace(recipe, sources=kept)
    found |= {f"pool of {size}": dataclasses.replace(recipe, pool=size) for size in _POOLS}
    if recipe.long is not None:
        found["weights of short texts only"] = dataclasses.replace(recipe, long=None)
        found["weights of long texts only"] = dataclasses.replace(recipe, short=recipe.long, long=None)
    return found


def rows(report: Report, dataset: Dataset, whole: Scores, varied: Mapping[str, Scores], resamples: int) -> None:
    """What the changed recipes score above the whole one, in points, with the intervals of paired questions."""
    section = f"{dataset.name}, what a change of the default does to its {dataset.headline}"
    detail = report.details.setdefault(dataset.name, {}).setdefault("ablation", {})
    for name, scores in varied.items():
        figures = scores.above(whole, resamples)
        note = "  ".join(
            f"{'' if label == dataset.headline else f'{label} {figures[label][0]:+.1f} '}"
            f"({figures[label][1]:+.1f} to {figures[label][2]:+.1f})"
            for label in (dataset.headline, "MRR")
        )
        report.add(section, name, figures[dataset.headline][0], "points", note=note)
        detail[name] = figures
