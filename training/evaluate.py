"""Recall of models on the validation pools, with bootstrap intervals: ``python -m training.evaluate --help``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.bert import Bert, Tokenizer, encode_texts, load_bert
from training.bm25 import Bm25
from training.pools import Pool, Question, read_pools
from training.runtime import add_device_options, prepare_device
from training.sources import SOURCES

__all__ = [
    "Evaluation",
    "Figure",
    "evaluate_model",
    "format_table",
    "main",
    "rank_places",
    "rank_scores",
    "score_pools",
]

MEASURES = ("R@10", "MRR")
MAX_DOCUMENT_TOKENS = 128
MAX_QUERY_TOKENS = 64
_RESAMPLES = 1000
_TOLERANCE = 0.5  # points that a kind may lose before it counts as a loss

Figure = tuple[float, float, float]
"""A mean in percent, and its interval of 95 %."""
Rows = NDArray[np.float64]
"""One row per question, one column per measure, in percent."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measures of each question, with its source."""

    sources: tuple[str, ...]
    rows: Rows

    def of_kind(self, kind: str | None) -> Rows:
        """Return the rows of one kind of source; None for all."""
        chosen = [kind is None or SOURCES[source].kind == kind for source in self.sources]
        rows: Rows = self.rows[np.array(chosen)]
        return rows

    def of_source(self, source: str) -> Rows:
        rows: Rows = self.rows[np.array([one == source for one in self.sources])]
        return rows

    def mean(self, kind: str | None = None) -> float:
        """Return the mean over sources, each weighing the same, of R@10 and MRR."""
        names = sorted({one for one in self.sources if kind is None or SOURCES[one].kind == kind})
        return float(np.mean([self.of_source(name).mean() for name in names])) if names else 0.0

    def measures(self, kind: str) -> list[float]:
        """Return the mean over sources of each measure."""
        names = sorted({one for one in self.sources if SOURCES[one].kind == kind})
        means: list[float] = np.mean([self.of_source(name).mean(axis=0) for name in names], axis=0).tolist()
        return means

    def choice_score(self, frozen: Evaluation) -> float:
        """Return the score by which checkpoints are chosen: the mean, reduced by three times the loss of a kind."""
        kinds = {SOURCES[source].kind for source in self.sources}
        losses = (max(0.0, frozen.mean(kind) - self.mean(kind) - _TOLERANCE) for kind in kinds)
        return self.mean() - 3 * sum(losses)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write the figures of models and of BM25, and the differences to the first model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=Path, required=True, help="valid.jsonl")
    parser.add_argument("--models", type=Path, nargs="+", required=True, help="model folders; the first is the base")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    add_device_options(parser)
    options = parser.parse_args(arguments)
    device = prepare_device(options)
    pools = read_pools(options.pools)
    found = {"BM25": score_pools(pools, bm25_scores)}
    for folder in options.models:
        found[str(folder)] = evaluate_model(load_bert(folder).to(device), Tokenizer(folder), pools)
    base = str(options.models[0])
    table = {name: summarize(one, found[base]) for name, one in found.items()}
    print(format_table(table))
    if options.out is not None:
        options.out.write_text(json.dumps(table, indent=1), encoding="utf-8")


def evaluate_model(model: Bert, tokenizer: Tokenizer, pools: Sequence[Pool]) -> Evaluation:
    """Score a bi-encoder on pools."""
    units = encode_texts(model, tokenizer, [unit.text for pool in pools for unit in pool.units], MAX_DOCUMENT_TOKENS)
    asked = [question.query for pool in pools for question in pool.questions]
    queries = encode_texts(model, tokenizer, asked, MAX_QUERY_TOKENS)
    bounds = np.cumsum([0, *(len(pool.units) for pool in pools)])
    asked_bounds = np.cumsum([0, *(len(pool.questions) for pool in pools)])
    places = {id(pool): place for place, pool in enumerate(pools)}

    def cosine(pool: Pool) -> NDArray[np.float64]:
        at = places[id(pool)]
        own = queries[asked_bounds[at] : asked_bounds[at + 1]] @ units[bounds[at] : bounds[at + 1]].T
        return np.asarray(own, np.float64)

    return score_pools(pools, cosine)


def bm25_scores(pool: Pool) -> NDArray[np.float64]:
    """Return the BM25 score of each unit for each question."""
    index = Bm25([f"{unit.speaker} {unit.text}" for unit in pool.units])
    return np.array([index.scores(question.text) for question in pool.questions])


def score_pools(pools: Sequence[Pool], scorer: Callable[[Pool], NDArray[np.float64]]) -> Evaluation:
    """Score the rankings by a function from a pool to (questions, units)."""
    sources: list[str] = []
    rows: list[tuple[float, float]] = []
    for pool in pools:
        scores = scorer(pool)
        for place, question in enumerate(pool.questions):
            sources.append(pool.source)
            rows.append(rank_scores(scores[place], question))
    return Evaluation(tuple(sources), 100 * np.array(rows))


def rank_scores(scores: NDArray[np.float64], question: Question) -> tuple[float, float]:
    """Return R@10 and MRR of one ranking; masked units and those after the question are left out."""
    gold = set(question.gold)
    skipped = set(question.masked) - gold
    end = len(scores) if question.before is None else question.before
    order = [int(place) for place in np.argsort(-scores, kind="stable") if place < end and place not in skipped]
    return rank_places(order, gold)


def rank_places(order: Sequence[int], gold: Container[int]) -> tuple[float, float]:
    """Return R@10 and MRR of a ranking that contains all golds."""
    ranks = [rank for rank, place in enumerate(order, 1) if place in gold]
    return sum(rank <= 10 for rank in ranks) / max(1, len(ranks)), 1 / ranks[0] if ranks else 0.0


# --- figures -----------------------------------------------------------------------------------------------------


def bootstrap(rows: Rows) -> list[Figure]:
    """Return each column's mean and the middle 95 % of the means over rows drawn with replacement."""
    drawn = np.random.default_rng(5).integers(len(rows), size=(_RESAMPLES, len(rows)))
    bounds = [np.percentile(column[drawn].mean(axis=1), [2.5, 97.5]) for column in rows.T]
    means = rows.mean(axis=0).tolist()
    return [(mean, float(low), float(high)) for mean, (low, high) in zip(means, bounds, strict=True)]


def summarize(found: Evaluation, base: Evaluation) -> dict[str, dict[str, Figure]]:
    """Return the figures of each source and kind, and their differences to the base on the same questions."""
    groups: dict[str, tuple[Rows, Rows]] = {"all": (found.rows, base.rows)}
    for kind in sorted({SOURCES[source].kind for source in found.sources}):
        groups[kind] = found.of_kind(kind), base.of_kind(kind)
    for source in sorted(set(found.sources)):
        groups[source] = found.of_source(source), base.of_source(source)
    summary: dict[str, dict[str, Figure]] = {}
    for name, (own, other) in groups.items():
        figures = dict(zip(MEASURES, bootstrap(own), strict=True))
        leads = {f"d{label}": figure for label, figure in zip(MEASURES, bootstrap(own - other), strict=True)}
        summary[name] = {**figures, **leads}
    return summary


def format_table(table: Mapping[str, Mapping[str, Mapping[str, Figure]]]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| model | questions of | R@10 | MRR | R@10 against the base | MRR against the base |", "|---" * 6 + "|"]
    for model, groups in table.items():
        for group, figures in groups.items():
            cells = [f"{figures[label][0]:.1f}" for label in MEASURES]
            cells += ["{:+.1f} [{:.1f}, {:.1f}]".format(*figures[f"d{label}"]) for label in MEASURES]
            lines.append("| " + " | ".join([Path(model).name, group, *cells]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
