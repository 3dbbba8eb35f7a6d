"""Pytest plugin that puts `Mem0Store` in the place of LangGraph's own stores."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from langgraph.store.base import ensure_embeddings

from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from mem0_langchain.langgraph import Mem0Store
from mem0_langchain.models import LangChainEmbedder

__all__ = ["AsyncSqliteStore", "InMemoryStore", "SqliteStore"]


class InMemoryStore(Mem0Store):
    """`Mem0Store` with the constructor of LangGraph's `InMemoryStore`, over a memory in a temporary folder."""

    def __init__(self, *, index: Mapping[str, Any] | None = None, ttl: Any = None, folder: str | None = None) -> None:
        self.index_config = index
        self._temporary = None if folder else tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        path = folder or (self._temporary.name if self._temporary else None)
        embed = ensure_embeddings(index["embed"]) if index else None
        embedder = HashEmbedder() if embed is None else LangChainEmbedder(embed)
        self.own_memory = Memory({"path": path, "durability": "process"}, embedder=embedder)
        fields = (index or {}).get("fields") or (index or {}).get("text_fields")
        super().__init__(self.own_memory, fields=fields, ttl=ttl)

    def __del__(self) -> None:
        if hasattr(self, "own_memory"):
            self.own_memory.close()


class SqliteStore(InMemoryStore):
    """The same with the constructors of LangGraph's `SqliteStore`, and its default: reads refresh no time to live."""

    def __init__(self, *, ttl: Any = None, **options: Any) -> None:
        super().__init__(ttl=ttl and {"refresh_on_read": False, **ttl}, **options)

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, *, index: Any = None, ttl: Any = None) -> Iterator[SqliteStore]:
        store = cls(index=index, ttl=ttl, folder=None if conn_string == ":memory:" else f"{conn_string}.mem0")
        try:
            yield store
        finally:
            store.stop_ttl_sweeper()
            store.own_memory.close()

    def setup(self) -> None:
        """Do nothing: the store is ready."""


class AsyncSqliteStore(SqliteStore):
    """The same with the constructors and the async sweeper of LangGraph's `AsyncSqliteStore`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sweeping = Mem0Store(self.own_memory, ttl=self.ttl_config)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]
        cls, conn_string: str, *, index: Any = None, ttl: Any = None
    ) -> AsyncIterator[AsyncSqliteStore]:
        store = cls(index=index, ttl=ttl, folder=None if conn_string == ":memory:" else f"{conn_string}.mem0")
        try:
            yield store
        finally:
            store._sweeping.stop_ttl_sweeper()
            store.own_memory.close()

    async def setup(self) -> None:  # type: ignore[override]
        """Do nothing: the store is ready."""

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return self._sweeping.sweep_ttl()

    async def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> None:  # type: ignore[override]
        self._sweeping.start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        return self._sweeping.stop_ttl_sweeper(timeout)


def _replace(ours: type, *modules: str) -> None:
    for module in modules:
        setattr(importlib.import_module(module), ours.__name__, ours)


_replace(InMemoryStore, "langgraph.store.memory")
with suppress(ImportError):  # only one of the suites needs it
    _replace(SqliteStore, "langgraph.store.sqlite", "langgraph.store.sqlite.base")
    _replace(AsyncSqliteStore, "langgraph.store.sqlite", "langgraph.store.sqlite.aio")
