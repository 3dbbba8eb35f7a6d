"""Embedded store: one SQLite file, one transaction per add."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core.domain.records import Event, MemoryItem, Scope, same_fact_key
from mem0_core.errors import StoreError
from mem0_core.interfaces import GraphStore, JobQueue, Lexicon, MergeLedger, MessageLog
from mem0_core.interfaces.archive import Archive, check_load_complete
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.stores.sql.changes import insert_history
from mem0_core.stores.sql.engine.steps import Steps, execute, fetch_rows, insert_sql
from mem0_core.stores.sql.graph.merges import SqlMerges
from mem0_core.stores.sql.graph.reader import SqlGraph
from mem0_core.stores.sql.messages import SqlMessageLog
from mem0_core.stores.sql.queue import SqlJobQueue
from mem0_core.stores.sql.rows import CONTENT_COLUMNS, content_values, scope_ids, session_number
from mem0_core.stores.sql.store import SqlStore
from mem0_core.stores.sql.vectors import EDGE_VECTORS, NODE_VECTORS, SqlVectors
from mem0_core.stores.sqlite.archive import SQLiteArchive
from mem0_core.stores.sqlite.dialect import SQLITE
from mem0_core.stores.sqlite.foreign_file import refuse_foreign
from mem0_core.stores.sqlite.lexicon import (
    SQLiteLexicon,
    clear_word_index,
    index_memory,
    is_word_index_stale,
    purge_word_index,
    refresh_words,
    unindex_memory,
)
from mem0_core.stores.sqlite.maintenance import SQLiteMaintenance
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.session import Database

__all__ = ["SQLiteStore"]


class SQLiteStore(SqlStore):
    """A `MemoryStore` in one file. Safe to share between threads. After a fork, open a new one.

    Args:
        path: the file, created with its folder if missing, or ``":memory:"`` for a store that ends with the object.
        durability: with ``"full"`` an acknowledged commit survives a power failure; with ``"process"`` it survives the
            end of the process only, and takes a fraction of the time.
        busy_timeout: seconds that a write waits for another process's write before StoreError.
        is_loading: open the file although a transfer into it is not complete.

    Raises:
        StoreError: the file cannot be opened, belongs to another program, or a transfer into it is not complete.
    """

    _db: Database

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Literal["full", "process"] = "full",
        busy_timeout: float = 30.0,
        is_loading: bool = False,
    ) -> None:
        db = Database(path, durability=durability, busy_timeout=busy_timeout)
        super().__init__(db, _SQLiteMemoryWriter(db))
        self.path = db.path
        self.graph: GraphStore = SqlGraph(db, SqlVectors(db, NODE_VECTORS), SqlVectors(db, EDGE_VECTORS))
        self.merges: MergeLedger = SqlMerges(db)
        self.message_log: MessageLog = SqlMessageLog(db)
        self.jobs: JobQueue = SqlJobQueue(db)
        self.lexicon: Lexicon = SQLiteLexicon(db.read)
        self.maintenance: StoreMaintenance = SQLiteMaintenance(db)
        self.archive: Archive = SQLiteArchive(db)
        with db.as_store_error("open"):
            self._migrate()
            if not is_loading:
                self._check_load_finished()

    # --- erasing -----------------------------------------------------------------------------------------------------

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        count = super().erase(memory_ids, at=at, purge=purge)
        self._purge_deleted_text(rewrite_file=purge)
        return count

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        count = super().erase_scope(scope, at=at, purge=purge)
        self._purge_deleted_text(rewrite_file=purge)
        return count

    def reset(self) -> None:
        super().reset()
        self._purge_deleted_text(rewrite_file=True)

    def _purge_deleted_text(self, *, rewrite_file: bool) -> None:
        """Remove deleted text from the log; with `rewrite_file` also from the file's free pages.

        Without `rewrite_file` an active reader is not waited for: a later call empties the log.
        """
        if self._db.in_memory:
            return
        with self._db.exclusive("scrub") as writer:
            if rewrite_file:
                with self._db.write() as db:
                    purge_word_index(db)
                self._db.retry_while_locked("VACUUM")
            deadline = time.monotonic() + (self._db.busy_timeout if rewrite_file else 0)
            while writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    if rewrite_file:
                        raise StoreError(f"purged, but a reader of {self.path} keeps its old log: purge again later")
                    break
                time.sleep(0.02)

    # --- differences from PostgreSQL ---------------------------------------------------------------------------------

    def _replace_vectors(self, table: str, rows: str, new: Sequence[tuple[int, int, Any]]) -> Steps[int]:
        current = f"row = (SELECT row FROM {rows} WHERE row = ? AND seq = ?)"
        replaced = 0
        for row, seq, vector in new:
            replaced += yield from execute(f"UPDATE {table} SET vector = ? WHERE {current}", (vector, row, seq))
        return replaced

    def _clear_indexes(self, *, keep_words: bool) -> Steps[None]:
        yield from ()
        if not keep_words:
            clear_word_index(self._db.writer)

    # --- connections -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._db.close()

    def _migrate(self) -> None:
        db = self._db.writer
        refuse_foreign(db, self.path)
        if db.execute("PRAGMA user_version").fetchone()[0] == len(SCHEMA_VERSIONS) and not is_word_index_stale(db):
            return
        if not self._db.in_memory:
            self._db.retry_while_locked("PRAGMA journal_mode = WAL")
        with self._db.write():
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > len(SCHEMA_VERSIONS):
                raise StoreError(
                    f"{self.path} was written by a newer version (schema {version}, known {len(SCHEMA_VERSIONS)})"
                )
            for script in SCHEMA_VERSIONS[version:]:
                for statement in _statements(script):
                    db.execute(statement)
            refresh_words(db)
            db.execute(f"PRAGMA user_version = {len(SCHEMA_VERSIONS)}")

    def _check_load_finished(self) -> None:
        try:
            check_load_complete(self.archive.load_progress())
        except StoreError as error:
            self._db.close()
            raise StoreError(f"{self.path}: {error}") from error


class _SQLiteMemoryWriter:
    """A `MemoryWriter` whose words go to an FTS5 table. It runs within a write transaction of `db`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def insert(self, item: MemoryItem, vector: Any, seq: int, session: int) -> Steps[int | None]:
        inserted = yield from fetch_rows(
            insert_sql("memories", f"{CONTENT_COLUMNS}, same, valid_from", "ON CONFLICT DO NOTHING RETURNING row"),
            (
                *content_values(item, SQLITE.to_json, seq),
                same_fact_key(item.text, item.actor_id),
                item.created_at,
            ),
        )
        if not inserted:
            return None
        row: int = inserted[0][0]
        yield from execute("INSERT INTO vectors VALUES (?, ?)", (row, vector))
        yield from self.write_words(row, item, session_number(*scope_ids(item.scope), session))
        yield from insert_history(SQLITE, item, Event.ADD, None, item.text, None)
        return row

    def clear_words(self, row: int) -> Steps[int]:
        yield from ()
        return unindex_memory(self._db.writer, row)

    def write_words(self, row: int, item: MemoryItem, session: int) -> Steps[None]:
        yield from ()
        index_memory(self._db.writer, row, item, session)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script: `executescript` would commit the transaction around them."""
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            yield buffer
            buffer = ""
