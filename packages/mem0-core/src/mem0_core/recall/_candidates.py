"""Candidates of a search: the features of each memory are read once, however many sources bring it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from mem0_core.domain.records import DateRange, MemoryItem
from mem0_core.flow import Flow, do
from mem0_core.interfaces import MemoryFeatures, Ports
from mem0_core.language.terms import analyze_text
from mem0_core.recall._columns import MemoryColumns
from mem0_core.recall._plan import Search, TransientCandidate, find_postings
from mem0_core.recall._ranking import (
    MAX_NAME_MEMORIES,
    MAX_WALK_NAMES,
    Batch,
    RankedMemory,
    Ranker,
    TextMatches,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_SMALL_SCOPE = 256  # memories, all of which are scored faster than some are selected


def rank_candidates(
    ports: Ports, search: Search, near: Sequence[tuple[int, float]], extra_rows: Sequence[int]
) -> Flow[Iterator[RankedMemory]]:
    """Rank memories near the query, those of other sources, their neighbors, and those that share names with the best.

    Args:
        near: rows and cosines of the memories nearest to the query.
        extra_rows: rows that other sources bring.
    """
    pool = _StoredCandidates(ports, search, dict(near)) if search.active is None else _ActiveCandidates(ports, search)
    ranker = Ranker(search, pool.matches, pool.event_dates)
    first = yield from pool.read(list(dict.fromkeys([*(row for row, _ in near), *extra_rows])))
    ranker.add(first.join(pool.add_transient(search.transient)) if search.transient else first)
    if rows := ranker.select(search.filter_rows(ranker.get_context_rows())):
        ranker.add((yield from pool.read(rows)))
    rows_by_name: dict[str, NDArray[np.int64]] = {}
    if leaders := ranker.get_walk_starts():
        shared = (name for names in leaders if names for name in names.split("\n"))
        names = list(dict.fromkeys([*search.names, *shared]))[:MAX_WALK_NAMES]
        rows_by_name = yield from find_postings(ports, search, names, kind="name", limit=MAX_NAME_MEMORIES + 1)
    rare = (rows for rows in rows_by_name.values() if len(rows) <= MAX_NAME_MEMORIES)
    if reached := ranker.select(search.filter_rows({row for rows in rare for row in rows.tolist()})):
        ranker.add((yield from pool.read(sorted(reached))))
    return ranker.iter_ranked(rows_by_name)


class _Candidates:
    """Memories that one search has read, and how they and their neighbors match the query.

    Attributes:
        event_dates: for rows of memories the days of the events that their relations describe.
    """

    def __init__(self, ports: Ports, search: Search) -> None:
        self.matches = TextMatches(search.word_weights)
        self.event_dates: dict[int, list[DateRange]] = {}
        self._ports, self._search = ports, search

    def read(self, rows: Sequence[int]) -> Flow[Batch]:
        """Return as candidates those of `rows` that exist, and perhaps others that are none."""
        batch = (yield from self._read(rows)) if rows else _no_candidates()
        if self._search.time_spans and self._ports.graph is not None and len(batch.positions):
            found = batch.memories.rows.tolist()
            self.event_dates |= yield from do(self._ports.store.graph.event_dates, found)
        return batch

    def _read(self, rows: Sequence[int]) -> Flow[Batch]:
        raise NotImplementedError

    def add_transient(self, transient: Sequence[TransientCandidate]) -> Batch:
        """Return as candidates memories that the store does not have in the form that is ranked."""
        import numpy as np

        features = [_compute_features(candidate.item) for candidate in transient]
        first = self.matches.add([memory.terms for memory in features], [one.cosine for one in transient])
        positions, none = np.arange(first, first + len(features)), np.zeros(len(features), dtype=np.int64)
        return Batch(MemoryColumns.of(features), positions, none, none, none == 0, transient)


class _ActiveCandidates(_Candidates):
    """Candidates of a scope that is kept in memory."""

    def __init__(self, ports: Ports, search: Search) -> None:
        super().__init__(ports, search)
        assert search.active is not None
        self._active = search.active
        self.matches.add_counted(search.term_counts.T, self._active.lengths, search.cosines)

    def _read(self, rows: Sequence[int]) -> Flow[Batch]:
        """Return memories with their neighbors, which are likely candidates; of a small scope, all memories."""
        import numpy as np

        yield from ()
        active, today = self._active, self._search.request.today
        found, expired = active.find(rows, today), active.find_expired(today)
        is_candidate = np.zeros(active.size, dtype=np.bool_)
        is_candidate[found] = True
        chosen: NDArray[np.int64] | slice = slice(None)
        if active.size > _SMALL_SCOPE or expired:
            is_near = np.zeros(1 + active.size, dtype=np.bool_)
            is_near[found + 1] = is_near[active.previous[found]] = is_near[active.following[found]] = True
            is_near[1:][expired] = False
            chosen = is_near[1:].nonzero()[0]
        return Batch(
            active.memories.take(chosen),
            active.positions[chosen],
            active.previous[chosen],
            active.following[chosen],
            is_candidate[chosen],
        )


class _StoredCandidates(_Candidates):
    """Candidates whose features are read from the store.

    Args:
        cosines: cosines of memories to the query, by row.
    """

    def __init__(self, ports: Ports, search: Search, cosines: dict[int, float]) -> None:
        super().__init__(ports, search)
        self._cosines = cosines
        self._indexes: dict[int | None, int] = {}  # in `matches`, by row

    def _read(self, rows: Sequence[int]) -> Flow[Batch]:
        import numpy as np

        store, search = self._ports.store, self._search
        features, neighbor_terms, cosines = yield from do(
            store.lexicon.memory_features,
            search.request.scope,
            rows,
            today=search.request.today,
            vector=search.vectors[0],
        )
        self._cosines |= cosines
        yield from self._match_texts({**neighbor_terms, **{memory.row: memory.terms for memory in features}})
        index_of = self._indexes.get
        positions = [
            (self._indexes[memory.row], index_of(memory.previous_row, 0), index_of(memory.next_row, 0))
            for memory in features
        ]
        own, previous, following = np.array(positions, dtype=np.int64).reshape(-1, 3).T
        return Batch(MemoryColumns.of(features), own, previous, following, own > 0)

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


@cache
def _no_candidates() -> Batch:
    import numpy as np

    none = np.zeros(0, dtype=np.int64)
    return Batch(MemoryColumns.of(()), none, none, none, none == 0)


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
