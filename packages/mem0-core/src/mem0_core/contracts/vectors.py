"""Contracts of vectors: the store's `VectorSource`, and `VectorIndex`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.contracts.samples import (
    ALICE,
    BOB,
    COSINE_TOLERANCE,
    LATER,
    StoreContract,
    assert_nearest,
    commit_plan,
    in_threads,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    Scope,
)
from mem0_core.interfaces import MemoryStore, VectorIndex


class VectorsContract(StoreContract):
    """Suite for the `VectorSource` of a store."""

    def test_positions_change_with_their_scope_only(self, store: MemoryStore) -> None:
        start = store.position(ALICE)
        self.add(store, "bob's", scope=BOB)
        assert store.position(ALICE) == start
        (item,) = self.add(store, "one")
        added = store.position(ALICE)
        assert added.seq > start.seq
        self.change(store, Event.UPDATE, item, "two")
        updated = store.position(ALICE)
        assert updated.seq > added.seq
        changes = store.vector_changes(ALICE, after=added.seq)
        assert np.allclose(changes.vectors, unit_vectors(1, seed=9))
        self.change(store, Event.DELETE, item, "two")
        changes = store.vector_changes(ALICE, after=updated.seq)
        assert (len(changes.rows), len(changes.removed)) == (0, 1)


class VectorIndexContract:
    """Suite for `VectorIndex`. Subclasses provide the fixtures `store` (an empty MemoryStore) and `make_index`."""

    @pytest.fixture
    def index(self, store: MemoryStore, make_index: Callable[[MemoryStore], VectorIndex]) -> Any:
        index = make_index(store)
        yield index
        index.close()

    def fill(self, store: MemoryStore, count: int, *, scope: Scope = ALICE, seed: int = 1) -> NDArray[np.float32]:
        """Add `count` memories. Returns their vectors in the order of their rows."""
        items = [make_item(f"fact {seed} {i}", scope, metadata={"i": i}) for i in range(count)]
        commit_plan(store, make_changes(items, seed=seed), scope=scope)
        return unit_vectors(count, seed=seed)

    def test_finds_the_nearest_best_first(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 200)
        rows = store.rows(ALICE)
        queries = unit_vectors(20, seed=3)
        for query, found in zip(queries, index.nearest(ALICE, queries, 10), strict=True):
            assert_nearest(found, rows, vectors, query, 10)

    def test_finds_none_below_a_threshold(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 100)
        rows = store.rows(ALICE)
        (query,) = unit_vectors(1, seed=3)
        cosines = np.sort(vectors @ query)[::-1]
        threshold = float(cosines[4] + cosines[5]) / 2
        for only in (None, rows):
            assert_nearest(
                index.nearest(ALICE, query[None], 3, allowed_rows=only, threshold=threshold)[0], rows, vectors, query, 3
            )
            (found,) = index.nearest(ALICE, query[None], 30, allowed_rows=only, threshold=threshold)
            assert_nearest(found, rows, vectors, query, 5)
            assert index.nearest(ALICE, query[None], 3, allowed_rows=only, threshold=1.0) == [[]]

    def test_an_empty_scope_finds_nothing(self, store: MemoryStore, index: VectorIndex) -> None:
        assert index.nearest(ALICE, unit_vectors(2), 5) == [[], []]
        self.fill(store, 3, scope=BOB)
        assert index.nearest(ALICE, unit_vectors(1), 5) == [[]]

    def test_never_finds_another_scope(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 50, scope=ALICE)
        theirs = self.fill(store, 50, scope=BOB, seed=2)
        run = Scope("alice", None, "r")
        self.fill(store, 5, scope=run, seed=4)
        mine = set(store.rows(ALICE).tolist())
        assert {row for found in index.nearest(ALICE, theirs, 60) for row, _ in found} == mine
        assert {row for row, _ in index.nearest(run, theirs[:1], 60)[0]} == set(store.rows(run).tolist())

    def test_follows_additions_updates_and_deletions(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 10)
        index.nearest(ALICE, unit_vectors(1), 1)
        late = self.fill(store, 1, seed=7)
        (row, score) = index.nearest(ALICE, late, 1)[0][0]
        assert score == pytest.approx(1.0, abs=COSINE_TOLERANCE)
        item = store.memories_by_rows([row], scope=ALICE)[row]
        moved = unit_vectors(1, seed=8)
        commit_plan(store, [MemoryChange(Event.UPDATE, item, before=item.text, vector=moved[0])])
        (nearest, score) = index.nearest(ALICE, moved, 1)[0][0]
        assert nearest == row
        assert score == pytest.approx(1.0, abs=COSINE_TOLERANCE)
        assert len(index.nearest(ALICE, moved, 50)[0]) == 11
        store.erase([item.id], at=LATER)
        assert row not in {found for found, _ in index.nearest(ALICE, moved, 50)[0]}
        store.erase_scope(ALICE, at=LATER, purge=True)
        assert index.nearest(ALICE, moved, 5) == [[]]

    def test_searches_only_among_given_rows(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 300)
        rows = store.rows(ALICE)
        for share in (1, 3, 30, 299):
            only = np.sort(np.random.default_rng(share).choice(rows, share, replace=False))
            query = unit_vectors(1, seed=share)
            among = np.isin(rows, only)
            (found,) = index.nearest(ALICE, query, 10, allowed_rows=only)
            assert_nearest(found, rows[among], vectors[among], query[0], 10)
        assert index.nearest(ALICE, query, 10, allowed_rows=np.empty(0, dtype=np.int64)) == [[]]

    def test_a_scope_that_lost_everything_can_begin_again(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 3)
        store.erase([item.id for item in store.list_memories(ALICE)], at=LATER)
        assert index.nearest(ALICE, unit_vectors(1), 1) == [[]]
        vectors = self.fill(store, 3, seed=2)
        assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE)

    def test_forgets_what_it_kept(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 60)
        index.nearest(ALICE, vectors[:1], 1)
        for scope in (ALICE, Scope("nobody"), None):
            index.purge_deleted(scope)
            assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE)

    def test_serves_threads_while_others_write(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 50)

        def work(number: int) -> None:
            for step in range(5):
                vectors = self.fill(store, 2, seed=1000 + number * 10 + step)
                found = index.nearest(ALICE, vectors, 1)
                assert all(of_query[0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE) for of_query in found)

        in_threads(work, 4)
