"""The contract suites, run on PostgreSQL: over threads, and over an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mem0_core.contracts import MemoryStoreContract, VectorIndexContract
from mem0_core.ports import MemoryStore, VectorIndex
from mem0_core.stores.postgres import PostgresStore
from mem0_core.stores.postgres_vectors import PgvectorIndex

pytestmark = pytest.mark.needs_server


class Awaited:
    """A part of a store whose methods are awaited on one event loop; any thread may call."""

    def __init__(self, part: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._part, self._loop = part, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        twin = getattr(self._part, f"a{name}", None)
        if name == "close":  # of the store, with the connections of every loop
            return found
        if twin is None:
            return Awaited(found, self._loop)
        return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(twin(*args, **kwargs), self._loop).result(60)


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


class TestPgvectorGraph(VectorIndexContract):
    """Every user with more than four vectors gets an HNSW graph; such small ones it finds exactly."""

    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store

    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: PgvectorIndex(store, exact_limit=4)
