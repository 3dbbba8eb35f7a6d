"""Sample data and helpers of the contract suites."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
    RelationChange,
    Scope,
    Triplet,
    content_hash,
    new_id,
)
from mem0_core.interfaces import CommitResult, MemoryStore

AT = "2025-06-01T12:00:00+00:00"
BEFORE = "2025-05-31T12:00:00+00:00"
LATER = "2025-06-02T12:00:00+00:00"
LATEST = "2025-06-03T12:00:00+00:00"
DIMS = 16
SPACE = ("test-space", DIMS)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
LIKES_TEA = Triplet("alice", "likes", "tea")
COSINE_TOLERANCE = 1e-3
"""Allowed error of an index's cosines; rows with closer cosines may change places.

An index may hold vectors in half precision, whose 11 bits move the cosine of two unit vectors by 2 ** -11 (5e-4) at
most, and the difference of two cosines by twice as much. The vectors of the store are float32 and come back exactly.
"""
HOSTILE_NAMES = (
    *("'", '"', "`", "``", "\\", "--", "'; DROP TABLE edges; --", "}) DETACH DELETE n //", "$scope", "%s", "{x}"),
    *("a\0b", "🍣", "مرحبا", "  spaced  ", "1st", "-1", "NULL", "x" * 10_000),
)
"""Names with a meaning in some language: quotes, comments, Cypher, SQL, NUL; and names without letters or very long."""


def unit_vectors(count: int, *, seed: int = 0, dims: int = DIMS) -> NDArray[np.float32]:
    """Return (count, dims) random float32 rows of norm 1."""
    rows = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def make_item(text: str, scope: Scope = ALICE, **fields: Any) -> MemoryItem:
    """Return a new memory with this text."""
    fields = {"id": new_id(), "created_at": AT, "hash": content_hash(text), **fields}
    return MemoryItem(text=text, scope=scope, **fields)


def make_changes(items: Sequence[MemoryItem], *, seed: int = 0, sources: tuple[int, ...] = ()) -> list[MemoryChange]:
    """Return ADDs of `items` with random vectors."""
    vectors = unit_vectors(len(items), seed=seed)
    return [MemoryChange(Event.ADD, item, vector=vectors[i], message_indexes=sources) for i, item in enumerate(items)]


def make_relation_changes(*triplets: Triplet, seed: int = 0, **fields: Any) -> list[RelationChange]:
    """Return ADDs of `triplets` with random vectors."""
    vectors = unit_vectors(3 * len(triplets), seed=seed)
    return [
        RelationChange(Event.ADD, triplet, vectors=tuple(vectors[3 * place : 3 * place + 3]), **fields)
        for place, triplet in enumerate(triplets)
    ]


def commit_plan(
    store: MemoryStore, changes: Sequence[MemoryChange] = (), *, scope: Scope = ALICE, at: str = AT, **options: Any
) -> CommitResult:
    """Commit a plan in the embedding space of the suites."""
    return store.commit(changes, scope=scope, at=at, embedding_space=SPACE, **options)


def assert_nearest(
    found: Sequence[tuple[int, float]],
    rows: NDArray[np.int64],
    vectors: NDArray[np.float32],
    query: NDArray[np.float32],
    k: int,
) -> None:
    """Check that `found` are the k nearest rows to `query`, best first, with their cosines."""
    exact = dict(zip(rows.tolist(), (vectors @ query).tolist() if len(rows) else (), strict=True))
    scores = [score for _, score in found]
    assert {row for row, _ in found} <= exact.keys()
    assert len(dict(found)) == len(found)
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([exact[row] for row, _ in found], abs=COSINE_TOLERANCE)
    assert scores == pytest.approx(sorted(exact.values(), reverse=True)[:k], abs=COSINE_TOLERANCE)


def item_fields(item: MemoryItem) -> dict[str, Any]:
    """Return the fields of a memory by name, to build a changed copy."""
    return {name: getattr(item, name) for name in item.__slots__}


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Run `work` in `count` threads. Raises the first error of any."""
    errors: list[BaseException] = []

    def run_guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run_guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class StoreContract:
    """Helpers of the contract suites of stores."""

    def add(self, store: MemoryStore, *texts: str, scope: Scope = ALICE, **fields: Any) -> list[MemoryItem]:
        """Commit memories with these texts. Returns them as stored."""
        items = [make_item(text, scope, **fields) for text in texts]
        commit = commit_plan(store, make_changes(items), scope=scope)
        return [change.after for change in commit.applied]

    def change(self, store: MemoryStore, event: Event, item: MemoryItem, text: str, *stated: Triplet) -> CommitResult:
        """Update `item` to `text`, which states relations, or delete it if its text is `text`."""
        now = store.get(item.id)
        assert now is not None
        if event is Event.DELETE:
            change = MemoryChange(Event.DELETE, now, before=text)
        else:
            after = MemoryItem(**{**item_fields(now), "text": text, "hash": content_hash(text), "updated_at": LATER})
            change = MemoryChange(Event.UPDATE, after, before=now.text, vector=unit_vectors(1, seed=9)[0])
        relations = make_relation_changes(*stated, change_indexes=(0,)) if stated else ()
        return commit_plan(store, [change], relations=relations, scope=item.scope, at=LATER)

    def add_relations(
        self, store: MemoryStore, *triplets: Triplet, scope: Scope = ALICE, **options: Any
    ) -> CommitResult:
        """Commit `triplets` as new relations."""
        return commit_plan(store, relations=make_relation_changes(*triplets), scope=scope, **options)

    def current_relations(self, store: MemoryStore, scope: Scope = ALICE, **options: Any) -> list[str]:
        return [str(relation.triplet) for relation in store.graph.relations(scope, **options)]

    def end_relation(self, store: MemoryStore, triplet: Triplet, at: str = LATER, **options: Any) -> CommitResult:
        (row,) = [one.row for one in store.graph.relations(ALICE) if one.triplet == triplet]
        change = RelationChange(Event.DELETE, triplet, relation_row=row)
        return store.commit((), relations=[change], scope=ALICE, at=at, **options)
