"""Gathering and ranking candidates: what scoring needs of each memory is read once, however many sources bring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mem0_core.domain.recipes import Recipe
from mem0_core.domain.records import DateRange, MemoryItem, Scope
from mem0_core.flow import Flow, do
from mem0_core.interfaces import MemoryFeatures, Ports
from mem0_core.language import terms as words
from mem0_core.recall.ranking import (
    MAX_NAME_MEMORIES,
    MAX_WALK_NAMES,
    Candidate,
    GraphSignals,
    ParsedQuery,
    RankedMemory,
    Ranker,
    TextMatches,
)
from mem0_core.recall.relations import GraphEvidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CandidatePool", "TransientCandidate", "clamp_cosine", "filter_rows", "rank_candidates"]


class TransientCandidate(NamedTuple):
    """A memory that is not in the store as it is ranked, with its cosine to the query.

    Attributes:
        pending: it is a message that waits to be remembered.
    """

    item: MemoryItem
    cosine: float
    is_unprocessed: bool = False


class CandidatePool:
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
        parsed_query: ParsedQuery,
        vectors: NDArray[np.float32],
        near: Iterable[tuple[int, float]],
    ) -> None:
        self.parsed_query = parsed_query
        self.matches = TextMatches(parsed_query.weights)
        self.told: dict[int, list[DateRange]] = {}
        self._ports, self._scope, self._today, self._vectors = ports, scope, today, vectors
        self._cosines = dict(near)
        self._indexes: dict[int | None, int] = {}  # in `matches`, by row
        self._read: set[int] = set()
        self.nearest_rows = list(self._cosines)

    def read_candidates(self, rows: Iterable[int]) -> Flow[list[Candidate]]:
        """Those of `rows` that live and were not read before, as candidates."""
        fresh = [row for row in dict.fromkeys(rows) if row not in self._read]
        if not fresh:
            return []
        read = self._ports.store.lexicon.memory_features
        sketches, beside, cosines = yield from do(read, self._scope, fresh, today=self._today, vector=self._vectors[0])
        self._cosines |= cosines
        self._read.update([sketch.row for sketch in sketches])
        if self.parsed_query.dates and self._ports.graph is not None:
            self.told |= yield from do(self._ports.store.graph.event_dates, [sketch.row for sketch in sketches])
        yield from self._match_texts({**beside, **{sketch.row: sketch.terms for sketch in sketches}})
        place = self._indexes.get
        return [
            Candidate(one, self._indexes[one.row], place(one.previous_row, 0), place(one.next_row, 0))
            for one in sketches
        ]

    def add_transient(self, outsiders: Sequence[TransientCandidate]) -> list[Candidate]:
        """Memories that are not in the store as they are ranked, as candidates."""
        sketches = [_compute_features(one.item) for one in outsiders]
        first = self.matches.add([sketch.terms for sketch in sketches], [one.cosine for one in outsiders])
        return [
            Candidate(sketch, place, item=one.item, is_unprocessed=one.is_unprocessed)
            for place, (sketch, one) in enumerate(zip(sketches, outsiders, strict=True), first)
        ]

    def named(self, names: Sequence[str]) -> Flow[dict[str, NDArray[np.int64]]]:
        """For each name the rows of the memories that have it, unless it is everybody's."""
        if not names:
            return {}
        most = MAX_NAME_MEMORIES + 1
        return (yield from do(self._ports.store.lexicon.postings, self._scope, names, kind="name", limit=most))

    def _match_texts(self, terms: Mapping[int, str]) -> Flow[None]:
        """Note how these texts match the query, unless they were noted before."""
        rows = [row for row in terms if row not in self._indexes]
        if unmeasured := sorted(row for row in rows if row not in self._cosines):
            import numpy as np

            only = np.array(unmeasured, dtype=np.int64)
            (near,) = yield from do(self._ports.index.nearest, self._scope, self._vectors, len(only), allowed_rows=only)
            self._cosines.update(near)
        first = self.matches.add([terms[row] for row in rows], [self._cosines.get(row, 0.0) for row in rows])
        self._indexes.update(zip(rows, count(first)))


def _compute_features(item: MemoryItem) -> MemoryFeatures:
    """What a sketch says of a memory that has none in the store."""
    read = words.read(item.text, item.actor_id)
    terms, names = " ".join(read.terms), "\n".join(read.names)
    return MemoryFeatures(0, None, read.length, read.asks, terms, names, item.actor_id, item.role, item.created_at)


def rank_candidates(
    pool: CandidatePool,
    recipe: Recipe,
    extra_rows: Sequence[int],
    graph_evidence: GraphEvidence,
    transient: Sequence[TransientCandidate],
    only: NDArray[np.int64] | None,
) -> Flow[Iterator[RankedMemory]]:
    """Rank the nearest of a pool, what other sources `extra_rows`, and what a walk over shared names brings.

    Args:
        beside: memories that are not in the store as they are ranked.
        only: the rows that may be found; None for any.
    """
    parsed_query = pool.parsed_query
    ranking = Ranker(
        recipe, parsed_query, pool.matches, GraphSignals(graph_evidence.support, graph_evidence.paths, pool.told)
    )
    first = yield from pool.read_candidates([*pool.nearest_rows, *extra_rows])
    ranking.add([*first, *pool.add_transient(transient)])
    ranking.add((yield from pool.read_candidates(filter_rows(ranking.get_context_rows(), only))))
    seeds = ranking.seeds()
    said = (name for seed in seeds if seed.features.names for name in seed.features.names.split("\n"))
    named = (yield from pool.named(list(dict.fromkeys([*parsed_query.names, *said]))[:MAX_WALK_NAMES])) if seeds else {}
    reached = filter_rows(
        {row for rows in named.values() if len(rows) <= MAX_NAME_MEMORIES for row in rows.tolist()}, only
    )
    ranking.add((yield from pool.read_candidates(sorted(reached))))
    return ranking.iter_ranked(named)


def filter_rows(rows: Iterable[int], only: NDArray[np.int64] | None) -> list[int]:
    """Those of `rows` that may be found; None for any."""
    if only is None:
        return list(rows)
    allowed = set(only.tolist())
    return [row for row in rows if row in allowed]


def clamp_cosine(cosine: float) -> float:
    """A cosine as a signal in [0, 1]."""
    return min(1.0, max(0.0, cosine))
