"""A test collection in a memory, through its public API: `add` with ``infer=False``, then `search`.

Units are identified by the ids that `add` returned, so that two units that are one memory are one hit.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.collection import Collection, Dataset, Occasion
from benchmarks.scores import DEPTH
from mem0_core import Memory
from mem0_core.domain.recipes import Recipe
from mem0_core.domain.records import list_added, same_fact_key
from mem0_core.interfaces import Embedder

__all__ = ["Found", "Remembered", "Search", "add_occasion", "remembered"]


class Found(NamedTuple):
    """The result of one search: ids of units, best first, ``|`` between those of one memory; and the best score."""

    ranked: Sequence[str]
    best: float = 0.0


Search = Callable[[str, str], Found]
"""Asks a question, given second, of a collection by its name."""


def add_occasion(memory: Memory, user: str, occasion: Occasion, *, relations: bool = False) -> list[str]:
    """Add the messages of an occasion and return the id of each unit's memory, new or existing.

    With `relations`, rules also read relations: a memory without a model keeps texts verbatim in either case.
    """
    messages = [{"role": unit.role, "name": unit.speaker, "content": unit.text} for unit in occasion.units]
    run_id, said_at = occasion.run_id, occasion.said_at
    added = memory.add(messages, user_id=user, run_id=run_id, infer=relations, timestamp=said_at)
    named = list_added(added)
    ids = {(entry.get("actor_id"), same_fact_key(entry["memory"])): entry["id"] for entry in named}
    return [ids[unit.speaker or None, same_fact_key(unit.text)] for unit in occasion.units]


class Remembered:
    """A memory with a dataset, each collection as one user."""

    def __init__(self, memory: Memory, dataset: Dataset, relations: bool, opened: ExitStack) -> None:
        self._memory = memory
        self._opened = opened
        self._relations = relations
        self._units: dict[str, list[str]] = {}
        for collection in dataset.collections:
            self._add(collection)

    def _add(self, collection: Collection) -> None:
        for occasion in collection.occasions:
            ids = add_occasion(self._memory, collection.name, occasion, relations=self._relations)
            for unit, memory_id in zip(occasion.units, ids, strict=True):
                self._units.setdefault(memory_id, []).append(unit.id)

    def count_useful(self, units: Sequence[str]) -> None:
        """Mark the memories of units, in the form of `Found.ranked`, as useful."""
        ids = {"|".join(names): memory_id for memory_id, names in self._units.items()}
        for names in units:
            self._memory.feedback(ids[names], True)

    def explain(
        self, user: str, question: str, recipe: Recipe, limit: int
    ) -> list[tuple[Sequence[str], Mapping[str, Mapping[str, float]]]]:
        """Return the units of the best memories, each with the signals of its score."""
        hits = self._memory.search(question, user_id=user, limit=limit, recipe=recipe, explain=True)["results"]
        return [(self._units[hit["id"]], hit["explanation"]["signals"]) for hit in hits]

    def with_reranker(self, reranker: str) -> Remembered:
        """Return the same memories, whose searches use a reranker, by its name or folder."""
        other, memory = copy.copy(self), self._memory
        other._memory = self._opened.enter_context(Memory(memory.config, embedder=memory.embedder, reranker=reranker))
        return other

    def by(self, recipe: Recipe) -> Search:
        """Return searches by a recipe."""

        def search(user: str, question: str) -> Found:
            hits = self._memory.search(question, user_id=user, limit=DEPTH, recipe=recipe)["results"]
            return Found(["|".join(self._units[hit["id"]]) for hit in hits], hits[0]["score"] if hits else 0.0)

        return search


@contextmanager
def remembered(dataset: Dataset, embedder: Embedder, *, relations: bool = False) -> Iterator[Remembered]:
    """Add a whole dataset to a new memory, in order; optionally with the relations that rules read."""
    with (
        tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder,
        Memory({"path": Path(folder), "durability": "process"}, embedder=embedder) as memory,
        ExitStack() as opened,
    ):
        yield Remembered(memory, dataset, relations, opened)
