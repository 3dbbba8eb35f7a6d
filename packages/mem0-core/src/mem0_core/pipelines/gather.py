"""Gathering and ranking candidates: what scoring needs of each memory is read once, however many sources bring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mem0_core import words
from mem0_core.flow import Flow, do
from mem0_core.pipelines.related import Related
from mem0_core.ports import Ports, Sketch
from mem0_core.ranking import CROWD, NAMES, Asked, Bearing, Candidate, Matches, Ranked, Ranking
from mem0_core.recipes import Recipe
from mem0_core.records import Days, MemoryItem, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Outsider", "Pool", "cut", "rank", "within"]


class Outsider(NamedTuple):
    """A memory that is not in the store as it is ranked, with its cosine to the query.

    Attributes:
        pending: it is a message that waits to be remembered.
    """

    item: MemoryItem
    cosine: float
    pending: bool = False


class Pool:
    """The memories one search has read: their sketches, and how they and what was said beside them match the query.

    Args:
        vectors: the query's, (1, dims).
        near: rows and cosines of the memories nearest to it.
    """

    def __init__(
        self,
        ports: Ports,
        scope: Scope,
        today: str,
        asked: Asked,
        vectors: NDArray[np.float32],
        near: Iterable[tuple[int, float]],
    ) -> None:
        self.asked = asked
        self.matches = Matches(asked.weights)
        self.told: dict[int, list[Days]] = {}
        self._ports, self._scope, self._today, self._vectors = ports, scope, today, vectors
        self._cosines = dict(near)
        self._places: dict[int | None, int] = {}  # in `matches`, by row
        self._read: set[int] = set()
        self.near = list(self._cosines)

    def read(self, rows: Iterable[int]) -> Flow[list[Candidate]]:
        """Those of `rows` that live and were not read before, as candidates."""
        fresh = [row for row in dict.fromkeys(rows) if row not in self._read]
        if not fresh:
            return []
        read = self._ports.store.lexicon.sketches
        sketches, beside, cosines = yield from do(read, self._scope, fresh, today=self._today, vector=self._vectors[0])
        self._cosines |= cosines
        self._read.update([sketch.row for sketch in sketches])
        if self.asked.dates and self._ports.graph is not None:
            self.told |= yield from do(self._ports.store.graph.told, [sketch.row for sketch in sketches])
        yield from self._match({**beside, **{sketch.row: sketch.terms for sketch in sketches}})
        place = self._places.get
        return [Candidate(one, self._places[one.row], place(one.before, 0), place(one.after, 0)) for one in sketches]

    def take_in(self, outsiders: Sequence[Outsider]) -> list[Candidate]:
        """Memories that are not in the store as they are ranked, as candidates."""
        sketches = [_sketch(one.item) for one in outsiders]
        first = self.matches.add([sketch.terms for sketch in sketches], [one.cosine for one in outsiders])
        return [
            Candidate(sketch, place, item=one.item, pending=one.pending)
            for place, (sketch, one) in enumerate(zip(sketches, outsiders, strict=True), first)
        ]

    def named(self, names: Sequence[str]) -> Flow[dict[str, NDArray[np.int64]]]:
        """For each name the rows of the memories that have it, unless it is everybody's."""
        if not names:
            return {}
        most = CROWD + 1
        return (yield from do(self._ports.store.lexicon.postings, self._scope, names, kind="name", most=most))

    def _match(self, terms: Mapping[int, str]) -> Flow[None]:
        """Note how these texts match the query, unless they were noted before."""
        rows = [row for row in terms if row not in self._places]
        if unmeasured := sorted(row for row in rows if row not in self._cosines):
            import numpy as np

            only = np.array(unmeasured, dtype=np.int64)
            (near,) = yield from do(self._ports.index.nearest, self._scope, self._vectors, len(only), only=only)
            self._cosines.update(near)
        first = self.matches.add([terms[row] for row in rows], [self._cosines.get(row, 0.0) for row in rows])
        self._places.update(zip(rows, count(first)))


def _sketch(item: MemoryItem) -> Sketch:
    """What a sketch says of a memory that has none in the store."""
    read = words.read(item.text, item.actor_id)
    terms, names = " ".join(read.terms), "\n".join(read.names)
    return Sketch(0, None, read.length, read.asks, terms, names, item.actor_id, item.role, item.created_at)


def rank(
    pool: Pool,
    recipe: Recipe,
    brought: Sequence[int],
    related: Related,
    beside: Sequence[Outsider],
    only: NDArray[np.int64] | None,
) -> Flow[Iterator[Ranked]]:
    """Rank the nearest of a pool, what other sources `brought`, and what a walk over shared names brings.

    Args:
        beside: memories that are not in the store as they are ranked.
        only: the rows that may be found; None for any.
    """
    asked = pool.asked
    ranking = Ranking(recipe, asked, pool.matches, Bearing(related.support, related.paths, pool.told))
    first = yield from pool.read([*pool.near, *brought])
    ranking.add([*first, *pool.take_in(beside)])
    ranking.add((yield from pool.read(within(ranking.beside(), only))))
    seeds = ranking.seeds()
    said = (name for seed in seeds if seed.sketch.names for name in seed.sketch.names.split("\n"))
    named = (yield from pool.named(list(dict.fromkeys([*asked.names, *said]))[:NAMES])) if seeds else {}
    reached = within({row for rows in named.values() if len(rows) <= CROWD for row in rows.tolist()}, only)
    ranking.add((yield from pool.read(sorted(reached))))
    return ranking.best(named)


def within(rows: Iterable[int], only: NDArray[np.int64] | None) -> list[int]:
    """Those of `rows` that may be found; None for any."""
    if only is None:
        return list(rows)
    allowed = set(only.tolist())
    return [row for row in rows if row in allowed]


def cut(cosine: float) -> float:
    """A cosine as a signal in [0, 1]."""
    return min(1.0, max(0.0, cosine))
