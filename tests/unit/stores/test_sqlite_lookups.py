"""Short reads of a SQLite store, which borrow its writing connection while no thread writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mem0_core import Memory
from mem0_core.domain.records import Message, Scope
from mem0_core.errors import StoreError
from mem0_core.stores.sql.engine.steps import MAX_LOOKUP_ROWS
from mem0_core.stores.sqlite.lexicon import SQLiteLexicon
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector import faiss
from mem0_core.testing import HashEmbedder
from tests.support import hang_guard

SCOPE = Scope("maya")
AT = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "memory.db")
    opened.commit((), scope=SCOPE, messages=[Message("user", "Likes tea")], at=AT)
    yield opened
    opened.close()


def read_messages(store: SQLiteStore) -> list[str]:
    return [message.content for message in store.message_log.messages_before(SCOPE, None, limit=10)]


def test_a_lookup_uses_the_writing_connection_while_nobody_writes(store: SQLiteStore) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    assert read_messages(store) == ["Likes tea"]
    assert len(statements) == 1


def test_a_lookup_does_not_wait_for_a_writer_and_reads_what_is_committed(store: SQLiteStore) -> None:
    with hang_guard(), ThreadPoolExecutor(1) as pool, store._db.write() as db:
        db.execute("DELETE FROM messages")
        assert pool.submit(read_messages, store).result() == ["Likes tea"]


def test_a_lookup_of_the_writing_thread_does_not_see_its_transaction(store: SQLiteStore) -> None:
    with store._db.write() as db:
        db.execute("DELETE FROM messages")
        assert read_messages(store) == ["Likes tea"]
    assert read_messages(store) == []


def test_other_reads_leave_the_writing_connection_to_writers(store: SQLiteStore) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    assert len(store.message_log.messages(SCOPE)) == 1
    assert statements == []


def test_a_lookup_in_a_closed_store_raises_a_store_error(store: SQLiteStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        read_messages(store)


def test_the_state_of_a_scope_is_read_on_the_writing_connection(store: SQLiteStore) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    assert isinstance(store.lexicon, SQLiteLexicon)
    state = store.lexicon.state(SCOPE)
    store.lexicon.feature_changes(SCOPE, after=state.seq + 1, limit=10)
    assert len(statements) == 3


def test_all_features_of_a_scope_are_read_beside_the_writing_connection(store: SQLiteStore) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    assert isinstance(store.lexicon, SQLiteLexicon)
    store.lexicon.feature_changes(SCOPE, after=0, limit=10)
    assert statements == []


SIZED_READS: dict[str, Callable[[SQLiteStore, int], object]] = {
    "memories by id": lambda store, n: store.get_many(["m"] * n),
    "memories by row": lambda store, n: store.memories_by_rows([1] * n, scope=SCOPE),
    "memories by fact": lambda store, n: store.find_by_fact_keys(SCOPE, [b"k"] * n),
    "changed vectors": lambda store, n: store.vector_changes(SCOPE, after=1, limit=n),
    "messages before": lambda store, n: store.message_log.messages_before(SCOPE, None, limit=n),
    "messages since": lambda store, n: store.message_log.messages_since(SCOPE, 0, limit=n),
    "stored messages": lambda store, n: store.message_log.are_stored(SCOPE, [Message("user", "Hi", key="k")] * n),
}


@pytest.mark.parametrize("name", SIZED_READS)
def test_only_a_read_of_few_rows_uses_the_writing_connection(store: SQLiteStore, name: str) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    SIZED_READS[name](store, MAX_LOOKUP_ROWS + 1)
    assert statements == []
    SIZED_READS[name](store, MAX_LOOKUP_ROWS)
    assert statements


@pytest.mark.parametrize("limits", [{}, {"after": 1}, {"limit": 1}], ids=["all", "all changes", "from the first"])
def test_all_vectors_of_a_scope_are_read_beside_the_writing_connection(
    store: SQLiteStore, limits: dict[str, int]
) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)
    store.vector_changes(SCOPE, **limits)
    assert statements == []


def test_an_index_reads_a_few_changes_on_the_writing_connection_and_many_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss, "FIRST_CHANGED_VECTORS", 2)
    statements: list[str] = []
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
        assert isinstance(memory.store, SQLiteStore)
        index, query = faiss.FaissIndex(memory.store), np.ones((1, 384), dtype=np.float32)
        memory.store._db.writer.set_trace_callback(statements.append)
        for texts, lookups in ((["Likes tea."], 0), (["Likes milk."], 1), ([f"Likes {n} cats." for n in range(5)], 1)):
            memory.add_many(texts, user_id="maya")
            statements.clear()
            index.nearest(SCOPE, query, 1)
            assert len([one for one in statements if "JOIN vectors AS v" in one]) == lookups
        assert len(index.nearest(SCOPE, query, 9, threshold=-1.0)[0]) == 7


def test_no_lookup_overtakes_a_waiting_writer(store: SQLiteStore) -> None:
    statements: list[str] = []
    store._db.writer.set_trace_callback(statements.append)

    def write() -> None:
        store.commit((), scope=SCOPE, messages=[Message("user", "Likes milk")], at=AT)

    with hang_guard(), ThreadPoolExecutor(1) as pool:
        with store._db.read(is_short=True):
            written = pool.submit(write)
            while not store._db._lock._waiting:
                time.sleep(0.001)
            read_messages(store)
            assert statements == []
        written.result()
    assert len(read_messages(store)) == 2
