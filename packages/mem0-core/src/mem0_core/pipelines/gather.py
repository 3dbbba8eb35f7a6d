"""Gathering and ranking candidates: what scoring needs of each memory is read once, however many sources bring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mem0_core import words
from mem0_core.flow import Flow, do
from mem0_core.pipelines.related import Related
from mem0_core.ports import Ports, Sketch
from mem0_core.ranking import CROWD, NAMES, Asked, Candidate, Ranked, Ranking, Said, said
from mem0_core.recipes import Recipe
from mem0_core.records import Days, MemoryItem, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Pool", "cut", "outsider", "rank", "within"]


class Pool:
    """The memories one search has read: their sketches, and their cosines to the query.

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
        self._ports, self._scope, self._today, self._vectors = ports, scope, today, vectors
        self._cosines = dict(near)
        self._said: dict[int, Said] = {}
        self._told: dict[int, list[Days]] = {}
        self._ranked: set[int] = set()
        self.near = list(self._cosines)

    def read(self, rows: Iterable[int]) -> Flow[list[Sketch]]:
        """The sketches of those of `rows` that live and were not read before, with all that `said` needs of them."""
        fresh = [row for row in dict.fromkeys(rows) if row not in self._ranked]
        if not fresh:
            return []
        lexicon = self._ports.store.lexicon
        sketches = yield from do(lexicon.sketches, self._scope, fresh, today=self._today)
        self._ranked |= sketches.keys()
        terms: dict[int, Sequence[str]] = {row: sketch.words.terms for row, sketch in sketches.items()}
        beside = {row for sketch in sketches.values() for row in (sketch.before, sketch.after) if row is not None}
        if unread := list(beside - terms.keys() - self._said.keys()):
            terms |= yield from do(lexicon.neighbours, unread)
        if self.asked.dates and self._ports.graph is not None:
            self._told |= yield from do(self._ports.store.graph.told, list(sketches))
        yield from self._measure([row for row in terms if row not in self._cosines])
        for row, words_ in terms.items():
            self._said[row] = said(words_, self.asked.weights, cut(self._cosines.get(row, 0.0)))
        return list(sketches.values())

    def candidate(self, sketch: Sketch, related: Related) -> Candidate:
        """What scoring needs of a memory that was read."""
        assert sketch.row is not None
        graph, often = related.support.get(sketch.row, (0.0, 0))
        beside: tuple[Said, ...] = ()
        if sketch.before is not None or sketch.after is not None:
            beside = tuple(self._said[row] for row in (sketch.before, sketch.after) if row in self._said)
        path, told = related.paths.get(sketch.row, 0.0), self._told.get(sketch.row, ())
        return Candidate(sketch, self._said[sketch.row], beside, graph, often, path, told)

    def named(self, names: Sequence[str]) -> Flow[dict[str, NDArray[np.int64]]]:
        """For each name the rows of the memories that have it, unless it is everybody's."""
        if not names:
            return {}
        most = CROWD + 1
        return (yield from do(self._ports.store.lexicon.postings, self._scope, names, kind="name", most=most))

    def _measure(self, rows: Sequence[int]) -> Flow[None]:
        if not rows:
            return
        import numpy as np

        only = np.array(sorted(rows), dtype=np.int64)
        (near,) = yield from do(self._ports.index.nearest, self._scope, self._vectors, len(rows), only=only)
        self._cosines.update(near)


def rank(
    pool: Pool,
    recipe: Recipe,
    brought: Sequence[int],
    related: Related,
    beside: Sequence[Candidate],
    only: NDArray[np.int64] | None,
) -> Flow[Iterator[Ranked]]:
    """Rank the nearest of a pool, what other sources `brought`, and what a walk over shared names brings.

    Args:
        beside: candidates that are not in the store as they are ranked.
        only: the rows that may be found; None for any.
    """
    asked = pool.asked
    ranking = Ranking(recipe, asked)
    first = yield from pool.read([*pool.near, *brought])
    ranking.add([*(pool.candidate(sketch, related) for sketch in first), *beside])
    beside_them = within(ranking.beside(), only)
    ranking.add([pool.candidate(sketch, related) for sketch in (yield from pool.read(beside_them))])
    seeds = ranking.seeds()
    names = list(dict.fromkeys([*asked.names, *(name for seed in seeds for name in seed.sketch.words.names)]))[:NAMES]
    named = (yield from pool.named(names)) if seeds else {}
    reached = within({row for rows in named.values() if len(rows) <= CROWD for row in rows.tolist()}, only)
    ranking.add([pool.candidate(sketch, related) for sketch in (yield from pool.read(sorted(reached)))])
    return ranking.best(named)


def within(rows: Iterable[int], only: NDArray[np.int64] | None) -> list[int]:
    """Those of `rows` that may be found; None for any."""
    if only is None:
        return list(rows)
    allowed = set(only.tolist())
    return [row for row in rows if row in allowed]


def outsider(item: MemoryItem, cosine: float, asked: Asked, *, pending: bool = False) -> Candidate:
    """A memory that is not in the store as it is ranked."""
    sketch = Sketch(words.read(item.text, item.actor_id), item.actor_id, item.role, item.created_at)
    return Candidate(sketch, said(sketch.words.terms, asked.weights, cut(cosine)), item=item, pending=pending)


def cut(cosine: float) -> float:
    """A cosine as a signal in [0, 1]."""
    return min(1.0, max(0.0, cosine))
