"""The contract suites, run on PostgreSQL: over threads, and over an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mem0_core.contracts import MemoryStoreContract
from mem0_core.ports import MemoryStore
from mem0_core.stores.postgres import PostgresStore

pytestmark = pytest.mark.needs_server


class Awaited:
    """A part of a store whose methods are awaited on one event loop; any thread may call."""

    def __init__(self, part: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._part, self._loop = part, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        twin = getattr(self._part, f"a{name}", None)
        if twin is None:
            return found if name == "close" or not hasattr(found, "_db") else Awaited(found, self._loop)
        return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(twin(*args, **kwargs), self._loop).result(60)


class TestPostgres(MemoryStoreContract):
    @pytest.fixture
    def store(self, postgres_store: PostgresStore) -> MemoryStore:
        return postgres_store
