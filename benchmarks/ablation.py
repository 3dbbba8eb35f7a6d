"""Ablation: the score of a recipe with one signal, source or choice changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from benchmarks.collection import Dataset
from benchmarks.report import Report
from benchmarks.scores import Figure, Scores
from mem0_core.domain.recipes import SIGNALS, Recipe, Source

__all__ = ["rows", "variants", "without_relations"]

_POOLS = (50, 100, 200)
_OF_RELATIONS = ("graph", "evidence", "path")


def variants(recipe: Recipe) -> dict[str, Recipe]:
    """Return the recipe without each of its signals and sources, with other pools, and with one text kind's weights."""
    names = [name for name in SIGNALS if name in recipe.signals and name not in _OF_RELATIONS]
    found = {f"without {name}": recipe.without(name) for name in names}
    sources = [source for source in recipe.sources if source != "graph"]
    found |= {f"without the {source} source": _without_source(recipe, source) for source in sources}
    found |= {f"pool of {size}": dataclasses.replace(recipe, pool=size) for size in _POOLS if size != recipe.pool}
    if recipe.long is not None:
        found["weights of short texts only"] = dataclasses.replace(recipe, long=None)
        found["weights of long texts only"] = dataclasses.replace(recipe, short=recipe.long, long=None)
    return found


def without_relations(recipe: Recipe) -> dict[str, Recipe]:
    """Return the recipe without each signal or source that depends on relations."""
    found = {f"without {name}": recipe.without(name) for name in _OF_RELATIONS if name in recipe.signals}
    return found | {"without the graph source": _without_source(recipe, "graph")}


def _without_source(recipe: Recipe, left_out: Source) -> Recipe:
    return dataclasses.replace(recipe, sources=tuple(source for source in recipe.sources if source != left_out))


def rows(
    report: Report, dataset: Dataset, whole: Scores, changed: Mapping[str, Scores], resamples: int, aside: str = ""
) -> None:
    """Return the gain of changed recipes over the whole one, in points, with intervals of paired questions."""
    section = f"{dataset.name}, what a change of the default does to its {dataset.headline}{aside}"
    detail = report.details.setdefault(dataset.name, {}).setdefault(f"ablation{aside}", {})
    for name, scores in changed.items():
        figures = scores.above(whole, resamples)
        _, low, high = headline = figures[dataset.headline]
        others = "  ".join(f"{label} {_signed(figures[label])}" for label in ("MRR", "nDCG@10"))
        note = f"{low:+.1f} to {high:+.1f}  {others}"
        report.add(section, name, round(headline[0], 9), "points", note=note)
        detail[name] = figures


def _signed(figure: Figure) -> str:
    difference, low, high = figure
    return f"{difference:+.1f} ({low:+.1f} to {high:+.1f})"
