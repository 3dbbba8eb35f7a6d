"""LangGraph's stores: a memory is an item of the namespace of its owner."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memory_conformance.api import Fields, Record, Records, System
from memory_conformance.systems.embedding import DIMS, embed_all

PAGE = 100
OPERATORS = {"gt": "$gt", "lt": "$lt", "ne": "$ne"}


class BaseStoreSystem(System):
    """Any `BaseStore`; subclasses set `store`."""

    store: Any
    index = False

    def add(
        self, owner: str, text: str, *, metadata: Fields = None, key: str | None = None, expires: datetime | None = None
    ) -> str:
        """Put an item under a new key, or under the given one."""
        name = key or str(uuid.uuid4())
        options = {}
        if expires is not None:
            options["ttl"] = (expires - datetime.now(UTC)).total_seconds() / 60
        self.store.put((owner,), name, {"text": text, **(metadata or {})}, **options)
        return name

    def search(
        self, owner: str, query: str, *, limit: int = 10, offset: int = 0, filters: Fields = None, **_: Any
    ) -> Records:
        """Search by the index of the store."""
        items = self.store.search((owner,), query=query, limit=limit, offset=offset, filter=dict(filters or {}) or None)
        return [to_record(item) for item in items]

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Get an item."""
        item = self.store.get((owner,), memory_id)
        return None if item is None else to_record(item)

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Put the changed value of an item that exists."""
        item = self.store.get((owner,), memory_id)
        if item is None:
            raise KeyError(memory_id)
        self.store.put((owner,), memory_id, {**item.value, "text": text})

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete an item."""
        self.store.delete((owner,), memory_id)

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, filters: Fields = None) -> Records:
        """Search without a query, in pages if no limit is given."""
        selected = translate(filters)
        if limit is not None:
            return [
                to_record(item) for item in self.store.search((owner,), filter=selected, limit=limit, offset=offset)
            ]
        records: dict[str, Record] = {}
        for start in range(offset, 100_000, PAGE):
            page = self.store.search((owner,), filter=selected, limit=PAGE, offset=start)
            records |= {item.key: to_record(item) for item in page}
            if len(page) < PAGE:
                break
        return list(records.values())

    def erase(self, owner: str) -> None:
        """Delete all items of the namespace."""
        for record in self.list(owner):
            self.store.delete((owner,), record.id)


def translate(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Write the kit's operators as those of LangGraph."""
    if not filters:
        return None
    return {
        key: {OPERATORS[name]: operand for name, operand in value.items()} if isinstance(value, Mapping) else value
        for key, value in filters.items()
    }


def to_record(item: Any) -> Record:
    """Read an item."""
    value = item.value
    metadata = value if "text" not in value else {key: value[key] for key in value if key != "text"}
    return Record(item.key, value["text"], metadata, item.created_at, item.updated_at)


BASE = frozenset({"metadata", "filters", "paging", "keys", "owned_ids", "timestamps", "threads"})


class InMemory(BaseStoreSystem):
    """`InMemoryStore` with an index."""

    capabilities = BASE | {"ranked", "search_paging"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from langgraph.store.memory import InMemoryStore

        self.store = InMemoryStore(index={"dims": DIMS, "embed": embed_all, "fields": ["text"]})


class Sqlite(BaseStoreSystem):
    """`SqliteStore` on a file; it searches only if sqlite-vec is installed."""

    capabilities = BASE | {"ttl", "durable", "crash_safe", "shared", "files"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from langgraph.store.sqlite import SqliteStore

        self._stack = ExitStack()
        options: dict[str, Any] = {}
        if find_spec("sqlite_vec") and hasattr(sqlite3.Connection, "enable_load_extension"):
            options["index"] = {"dims": DIMS, "embed": embed_all, "fields": ["text"]}
            self.capabilities |= {"ranked", "search_paging"}
        else:
            self.lacks = frozenset({"search"})
        connection = SqliteStore.from_conn_string(str(folder / "store.db"), **options)
        self.store = self._stack.enter_context(connection)
        self.store.setup()

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()


class Postgres(BaseStoreSystem):
    """`PostgresStore` on the database that an environment variable names."""

    capabilities = BASE | {"durable", "crash_safe", "shared", "ttl"}
    lacks = frozenset({"search"})  # without pgvector a search ignores its query

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from langgraph.store.postgres import PostgresStore

        self._stack = ExitStack()
        url = os.environ["MEMORY_CONFORMANCE_POSTGRES"]
        self.store = self._stack.enter_context(PostgresStore.from_conn_string(url))
        self.store.setup()

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()
