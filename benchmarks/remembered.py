"""A test collection in a memory, by its front door: `add` with ``infer=False``, then `search`.

Units are told by the ids that `add` returned, so that two units which are one memory are one hit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.collection import Collection, Dataset, Occasion
from benchmarks.scores import DEPTH
from mem0_core import Memory
from mem0_core.domain.recipes import Recipe
from mem0_core.interfaces import Embedder

__all__ = ["Found", "Remembered", "Search", "add_occasion", "remembered"]


class Found(NamedTuple):
    """What one search found: ids of units, best first, ``|`` between those of one memory; and the best one's score."""

    ranked: Sequence[str]
    best: float = 0.0


Search = Callable[[str, str], Found]
"""Asks a question, given second, of a collection by its name."""


def add_occasion(memory: Memory, user: str, occasion: Occasion, *, relations: bool = False) -> list[str]:
    """Add what was said at once, and return the id of the memory that each unit became, or was already.

    With `relations` they are read too, by rules: a memory without a model keeps texts as they are in either case.
    """
    messages = [{"role": unit.role, "name": unit.speaker, "content": unit.text} for unit in occasion.units]
    run_id, said_at = occasion.run_id, occasion.said_at
    added = memory.add(messages, user_id=user, run_id=run_id, infer=relations, timestamp=said_at)
    return [entry["id"] for entry in added["results"]]


class Remembered:
    """A memory that holds a dataset, each collection as a user's."""

    def __init__(self, memory: Memory, dataset: Dataset, relations: bool) -> None:
        self._memory = memory
        self._relations = relations
        self._units: dict[str, list[str]] = {}
        for collection in dataset.collections:
            self._add(collection)

    def _add(self, collection: Collection) -> None:
        for occasion in collection.occasions:
            ids = add_occasion(self._memory, collection.name, occasion, relations=self._relations)
            for unit, memory_id in zip(occasion.units, ids, strict=True):
                self._units.setdefault(memory_id, []).append(unit.id)

    def by(self, recipe: Recipe) -> Search:
        """Searches by a recipe."""

        def search(user: str, question: str) -> Found:
            hits = self._memory.search(question, user_id=user, limit=DEPTH, recipe=recipe)["results"]
            return Found(["|".join(self._units[hit["id"]]) for hit in hits], hits[0]["score"] if hits else 0.0)

        return search


@contextmanager
def remembered(dataset: Dataset, embedder: Embedder, *, relations: bool = False) -> Iterator[Remembered]:
    """Everything in a dataset added to a new memory, in order; with the relations that rules read, if asked."""
    with (
        tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder,
        Memory({"path": Path(folder), "durability": "process"}, embedder=embedder) as memory,
    ):
        yield Remembered(memory, dataset, relations)
