"""The contract suites, run on PostgreSQL: over threads, and over an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.contracts import (
    AT,
    BOB,
    SPACE,
    MemoryStoreContract,
    VectorIndexContract,
    assert_nearest,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.contracts.graph_index import GraphIndexContract
from mem0_core.domain.records import Scope
from mem0_core.interfaces import GraphIndex, MemoryStore, VectorIndex
from mem0_core.stores.graph.embedded import EmbeddedGraph
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.postgres.vectors import PgvectorIndex
from mem0_core.stores.sql.rows import partition_key
from mem0_core.stores.vector.faiss import FaissIndex

pytestmark = pytest.mark.needs_server


class Awaited:
    """A part of a store with methods awaited on one event loop; any thread may call.

    A method without an async counterpart runs in a thread there, as under `flow.arun`.
    """

    def __init__(self, part: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._part, self._loop = part, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        twin = getattr(self._part, f"a{name}", None)
        if name == "close":  # of the store, with the connections of every loop
            return found
        if twin is None and not inspect.ismethod(found):
            return Awaited(found, self._loop)

        async def in_a_thread(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(found, *args, **kwargs)

        awaited = twin if twin is not None else in_a_thread
        return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(awaited(*args, **kwargs), self._loop).result(60)


class TestPostgres(MemoryStoreContract):
    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def awaited_store(postgres_store: PostgresStore, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    yield Awaited(postgres_store, loop)
    asyncio.run_coroutine_threadsafe(postgres_store.aclose(), loop).result(10)


class TestPostgresAwaited(MemoryStoreContract):
    @pytest.fixture
    def store(self, awaited_store: MemoryStore) -> MemoryStore:
        return awaited_store


class TestPgvector(VectorIndexContract):
    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store

    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return PgvectorIndex


class TestPgvectorHalf(TestPgvector):
    """Vectors in half precision."""

    @pytest.fixture
    def store(self, postgres_server_url: str) -> Iterator[MemoryStore]:
        store = PostgresStore(postgres_server_url, schema="mem0_tests_half", partitions=2, halfvec=True)
        store.reset()
        yield store
        store.close()


class TestPgvectorGraph(VectorIndexContract):
    """Every user with more than four vectors gets an HNSW graph; such small ones it finds exactly."""

    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store

    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: PgvectorIndex(store, exact_limit=4)


class TestEmbeddedGraph(GraphIndexContract):
    """The embedded graph search over PostgreSQL."""

    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store

    @pytest.fixture
    def other_store(self, postgres_server_url: str) -> Iterator[MemoryStore]:
        store = PostgresStore(postgres_server_url, schema="mem0_tests_other", partitions=2)
        store.reset()
        yield store
        store.close()

    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], GraphIndex]:
        return lambda store: EmbeddedGraph(
            store.graph, PgvectorIndex(store.graph.node_vectors), PgvectorIndex(store.graph.relation_vectors)
        )


class TestFaissOverPostgres(VectorIndexContract):
    """A projection that follows the primary store from another machine."""

    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store

    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: FaissIndex(store, folder=tmp_path / "faiss")


def test_a_graph_of_a_very_large_user_finds_what_comparing_finds(postgres_store: PostgresStore) -> None:
    """With every other user's vectors in the same table, and with more asked for than it is wide."""
    vectors, alice = {}, Scope("100%s of 'Alice\\'")
    for seed, scope in enumerate((alice, BOB)):
        items = [make_item(f"fact {seed} {number}", scope) for number in range(400)]
        vectors[scope] = unit_vectors(400, seed=seed)
        postgres_store.commit(make_changes(items, seed=seed), scope=scope, at=AT, embedding_space=SPACE)
    graphs = PgvectorIndex(postgres_store, exact_limit=300)._hnsw
    assert graphs.build(partition_key(alice))
    index = PgvectorIndex(postgres_store, exact_limit=300)
    queries = unit_vectors(20, seed=9)
    exact = PgvectorIndex(postgres_store, exact_limit=None).nearest(alice, queries, 10)
    found = index.nearest(alice, queries, 10)
    assert index._hnsw._indexes[partition_key(alice)][1] is not None, "searched by the graph"
    shared = [len({row for row, _ in one} & {row for row, _ in other}) for one, other in zip(exact, found, strict=True)]
    assert sum(shared) >= 0.99 * 10 * len(queries)
    assert all(len(one) == 10 for one in found)
    assert len(index.nearest(alice, queries[:1], 900)[0]) == 400
    rows = postgres_store.rows(alice)
    assert_nearest(index.nearest(alice, queries[:1], 10)[0], rows, vectors[alice], queries[0], 10)
    postgres_store.erase_scope(alice, at=AT)
    assert index.nearest(alice, queries[:1], 10) == [[]]
    index.close()
