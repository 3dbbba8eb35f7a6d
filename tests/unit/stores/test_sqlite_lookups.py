"""Short reads of a SQLite store, which borrow its writing connection while no thread writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mem0_core.domain.records import Message, Scope
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite.lexicon import SQLiteLexicon
from mem0_core.stores.sqlite.store import SQLiteStore
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
