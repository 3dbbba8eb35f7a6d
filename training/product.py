"""Measure embedders on the evaluation sets, alone and through the product: ``python -m training.product --help``.

The sets are for measuring only: nothing may be trained on them or chosen by them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import beam, locomo, musique
from benchmarks.collection import Collection, Dataset
from benchmarks.remembered import remembered
from benchmarks.scores import DEPTH, Figure, Scores
from benchmarks.timed import CachedEmbedder
from mem0_core.domain.recipes import HYBRID
from mem0_core.interfaces import Embedder
from mem0_core.providers.onnx import OnnxEmbedder
from training.pools import remove_names

__all__ = ["load_sets", "main", "measure", "rank_by_vectors"]

SHOWN = ("R@5", "R@10", "MRR")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write the figures of each model, and its lead over the first one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, nargs="+", required=True, help="model folders; the first is the base")
    parser.add_argument("--sets", default="locomo,beam,musique")
    parser.add_argument("--conversations", type=int, help="of LoCoMo; default: all")
    parser.add_argument("--chats", type=int, help="of BEAM; default: all")
    parser.add_argument("--vectors-only", action="store_true", help="leave out the runs through the product")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args(arguments)
    figures: dict[str, dict[str, dict[str, Figure]]] = {}
    for dataset in load_sets(options.sets.split(","), options.conversations, options.chats):
        base: dict[str, Scores] = {}
        for folder in options.models:
            embedder = OnnxEmbedder(path=folder, threads=options.threads)
            for system, scores in measure(dataset, embedder, through_product=not options.vectors_only):
                lead = scores.above(base.setdefault(system, scores), options.resamples)
                own = scores.figures(options.resamples)
                name = f"{dataset.name}, {system}"
                figures.setdefault(name, {})[str(folder)] = {
                    **{label: own[label] for label in SHOWN},
                    **{f"d{label}": lead[label] for label in SHOWN},
                }
                print(name, folder, _format(figures[name][str(folder)]), flush=True)
                if options.out is not None:
                    options.out.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def load_sets(names: Sequence[str], conversations: int | None, chats: int | None) -> Iterator[Dataset]:
    """Yield the named evaluation sets."""
    for name in names:
        match name:
            case "locomo":
                yield locomo.dataset(locomo.load(locomo.PATH)[:conversations])
            case "beam":
                yield beam.dataset(beam.load(beam.PATH)[:chats])
            case "musique":
                yield musique.dataset(musique.load(musique.PATH))
            case _:
                raise ValueError(f"--sets: {name!r} is none of locomo, beam, musique")


def measure(dataset: Dataset, embedder: Embedder, *, through_product: bool) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of the vectors alone, then those of the default recipe."""
    cached = CachedEmbedder(embedder)
    ranked = {one.name: rank_by_vectors(one, cached) for one in dataset.collections}
    rankings = [ranking for one in dataset.collections for ranking in ranked[one.name]]
    yield "vectors", Scores(dataset, rankings)
    if through_product:
        with remembered(dataset, cached) as memory:
            ask = memory.by(HYBRID)
            yield (
                "product",
                Scores(dataset, [ask(one.name, question.text).ranked for one, question in dataset.questions]),
            )


def rank_by_vectors(collection: Collection, embedder: Embedder) -> list[list[str]]:
    """Return for each question the units nearest to it, with the names of speakers removed from it."""
    units = collection.units
    vectors = embedder.embed([unit.text for unit in units])
    names = {unit.speaker for unit in units if unit.speaker}
    asked = [remove_names(question.text, names) for question in collection.questions]
    queries = embedder.embed(asked, kind="query")
    order = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :DEPTH]
    return [[units[place].id for place in row] for row in order.tolist()]


def _format(figures: Mapping[str, Figure]) -> str:
    own = "  ".join(f"{label} {figures[label][0]:.1f}" for label in SHOWN)
    leads = "  ".join("d{} {:+.1f} [{:.1f}, {:.1f}]".format(label, *figures[f"d{label}"]) for label in SHOWN)
    return f"{own}  {leads}"


if __name__ == "__main__":
    main()
