"""Candidates of a search: the features of each memory are read once, however many sources bring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from mem0_core.domain.records import DateRange, MemoryItem
from mem0_core.flow import Flow, do
from mem0_core.interfaces import MemoryFeatures, Ports
from mem0_core.language.terms import analyze_text
from mem0_core.recall._plan import Search, TransientCandidate
from mem0_core.recall._ranking import (
    MAX_NAME_MEMORIES,
    MAX_WALK_NAMES,
    Candidate,
    RankedMemory,
    Ranker,
    TextMatches,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def rank_candidates(
    ports: Ports, search: Search, near: Iterable[tuple[int, float]], extra_rows: Sequence[int]
) -> Flow[Iterator[RankedMemory]]:
    """Rank memories near the query, those of other sources, their neighbors, and those that share names with the best.

    Args:
        near: rows and cosines of the memories nearest to the query.
        extra_rows: rows that other sources bring.
    """
    pool = _CandidatePool(ports, search, near)
    ranker = Ranker(search, pool.matches, pool.event_dates)
    first = yield from pool.read_candidates([*pool.nearest_rows, *extra_rows])
    ranker.add([*first, *pool.add_transient(search.transient)])
    ranker.add((yield from pool.read_candidates(search.filter_rows(ranker.get_context_rows()))))
    rows_by_name: dict[str, NDArray[np.int64]] = {}
    if leaders := ranker.get_walk_starts():
        shared = (name for leader in leaders if leader.features.names for name in leader.features.names.split("\n"))
        names = list(dict.fromkeys([*search.names, *shared]))[:MAX_WALK_NAMES]
        rows_by_name = yield from pool.find_named_rows(names)
    rare = (rows for rows in rows_by_name.values() if len(rows) <= MAX_NAME_MEMORIES)
    reached = search.filter_rows({row for rows in rare for row in rows.tolist()})
    ranker.add((yield from pool.read_candidates(sorted(reached))))
    return ranker.iter_ranked(rows_by_name)


class _CandidatePool:
    """Memories that one search has read, and how they and their neighbors match the query.

    Attributes:
        event_dates: for rows of memories the days of the events that their relations describe.
    """

    def __init__(self, ports: Ports, search: Search, near: Iterable[tuple[int, float]]) -> None:
        self.matches = TextMatches(search.word_weights)
        self.event_dates: dict[int, list[DateRange]] = {}
        self._ports, self._search = ports, search
        self._cosines = dict(near)
        self._indexes: dict[int | None, int] = {}  # in `matches`, by row
        self._rows_read: set[int] = set()
        self.nearest_rows = list(self._cosines)

    def read_candidates(self, rows: Iterable[int]) -> Flow[list[Candidate]]:
        """Return as candidates those of `rows` that exist and were not read before."""
        new_rows = [row for row in dict.fromkeys(rows) if row not in self._rows_read]
        if not new_rows:
            return []
        store, search = self._ports.store, self._search
        features, neighbor_terms, cosines = yield from do(
            store.lexicon.memory_features,
            search.request.scope,
            new_rows,
            today=search.request.today,
            vector=search.vectors[0],
        )
        self._cosines |= cosines
        self._rows_read.update([memory.row for memory in features])
        if search.time_spans and self._ports.graph is not None:
            self.event_dates |= yield from do(store.graph.event_dates, [memory.row for memory in features])
        yield from self._match_texts({**neighbor_terms, **{memory.row: memory.terms for memory in features}})
        index_of = self._indexes.get
        return [
            Candidate(
                memory,
                self._indexes[memory.row],
                index_of(memory.previous_row, 0),
                index_of(memory.next_row, 0),
            )
            for memory in features
        ]

    def add_transient(self, transient: Sequence[TransientCandidate]) -> list[Candidate]:
        """Return as candidates memories that the store does not have in the form that is ranked."""
        features = [_compute_features(candidate.item) for candidate in transient]
        first = self.matches.add([memory.terms for memory in features], [one.cosine for one in transient])
        return [
            Candidate(memory, index, item=candidate.item, is_unprocessed=candidate.is_unprocessed)
            for index, (memory, candidate) in enumerate(zip(features, transient, strict=True), first)
        ]

    def find_named_rows(self, names: Sequence[str]) -> Flow[dict[str, NDArray[np.int64]]]:
        """Return for each name the rows of the memories that contain it; at most one row more than count as rare."""
        if not names:
            return {}
        postings = self._ports.store.lexicon.postings
        limit = MAX_NAME_MEMORIES + 1
        return (yield from do(postings, self._search.request.scope, names, kind="name", limit=limit))

    def _match_texts(self, terms: Mapping[int, str]) -> Flow[None]:
        """Match the texts of some rows to the query, unless they were matched before."""
        rows = [row for row in terms if row not in self._indexes]
        if unmeasured := sorted(row for row in rows if row not in self._cosines):
            import numpy as np

            allowed = np.array(unmeasured, dtype=np.int64)
            nearest, scope = self._ports.index.nearest, self._search.request.scope
            (near,) = yield from do(nearest, scope, self._search.vectors, len(allowed), allowed_rows=allowed)
            self._cosines.update(near)
        first = self.matches.add([terms[row] for row in rows], [self._cosines.get(row, 0.0) for row in rows])
        self._indexes.update(zip(rows, count(first)))


def _compute_features(item: MemoryItem) -> MemoryFeatures:
    """Return the features of a memory that has none in the store."""
    analysis = analyze_text(item.text, item.actor_id, item.role)
    return MemoryFeatures(
        row=0,
        session=None,
        word_count=analysis.word_count,
        is_question=analysis.is_question,
        terms=" ".join(analysis.terms),
        names="\n".join(analysis.names),
        actor_id=item.actor_id,
        role=item.role,
        timestamp=item.created_at,
        slots="\n".join(analysis.slots),
    )
