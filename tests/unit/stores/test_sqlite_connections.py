"""Connections to the file of a SQLite store: when they are opened, and of which file they are."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from tests.support import hang_guard


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Return the connections of the sessions that are opened from now on."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def record(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", record)
    return opened


def open_memory(folder: Path) -> Memory:
    return Memory({"path": str(folder), "durability": "process"}, embedder=HashEmbedder())


def test_a_process_that_only_searches_opens_no_writing_connection(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I like tea from Porto.", user_id="u")
    connections.clear()
    with open_memory(tmp_path) as memory:
        assert len(connections) == 1
        assert memory.search("tea", user_id="u")["results"]
        assert len(connections) == 2  # and the one that reads the version of the file
        memory.add("I like tea from Assam.", user_id="u")
        assert len(connections) == 3
        memory.add("I like tea from Kyoto.", user_id="u")
        assert len(connections) == 3
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_the_first_write_to_a_file_that_was_replaced_is_refused(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with open_memory(tmp_path / name) as memory:
            memory.add(f"I like tea, says the {name}.", user_id="u")
    with open_memory(tmp_path / "first") as memory:
        (tmp_path / "second" / "memory.db").replace(tmp_path / "first" / "memory.db")
        with pytest.raises(StoreError, match="removed or replaced"):
            memory.add("I like coffee.", user_id="u")
    with open_memory(tmp_path / "first") as memory:
        assert [one["memory"] for one in memory.get_all(user_id="u")["results"]] == ["I like tea, says the second."]


def test_lookups_never_read_a_file_that_is_replaced_while_the_writer_connects(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for name in ("first", "second"):
        with open_memory(tmp_path / name) as memory:
            ids.append(memory.add("I like tea.", user_id="u", infer=False)["results"][0]["id"])
    store = SQLiteStore(tmp_path / "first" / "memory.db")
    assert store.get(ids[0]) is not None
    connect = store._db._connect

    def replace_and_connect() -> sqlite3.Connection:
        (tmp_path / "second" / "memory.db").replace(tmp_path / "first" / "memory.db")
        return connect()

    monkeypatch.setattr(store._db, "_connect", replace_and_connect)
    with pytest.raises(StoreError, match="removed or replaced"), store._db.exclusive("write to"):
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[-1].execute("SELECT 1")
    assert store.get(ids[0]) is not None
    assert store.get(ids[1]) is None
    store.close()


def test_a_read_that_waited_while_the_store_was_closed_keeps_no_lock() -> None:
    store = SQLiteStore(":memory:")
    with hang_guard(), ThreadPoolExecutor(1) as pool:
        with store._db.exclusive("write to"):
            read = pool.submit(store.get, "m")
            while not store._db._lock._waiting:
                time.sleep(0.001)
            store.close()
        with pytest.raises(StoreError, match="is closed"):
            read.result()
        store.close()


def test_the_first_search_of_a_process_reads_the_graph_once(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("My sister Anna lives in Porto.", user_id="u")
        assert memory.relations(user_id="u")
    connections.clear()
    statements: list[str] = []
    with open_memory(tmp_path) as memory:
        for connection in connections:
            connection.set_trace_callback(statements.append)
        assert memory.search("tea and biscuits", user_id="u")["results"]
    assert sum("e.name, e.type FROM nodes" in statement for statement in statements) == 1
