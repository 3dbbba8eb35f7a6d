"""Embedded store: one SQLite file, one transaction per add."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core.domain.records import Event, HistoryEvent, MemoryItem, Scope, same_fact_key
from mem0_core.errors import StoreError
from mem0_core.interfaces import (
    GraphStore,
    JobQueue,
    Lexicon,
    RetractionResult,
)
from mem0_core.interfaces.archive import Archive, check_load_complete
from mem0_core.interfaces.keys import KeyProvider
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.stores.sql.changes.memories import Cause, insert_event, record_change
from mem0_core.stores.sql.engine.steps import Steps, execute, insert_sql
from mem0_core.stores.sql.graph.reader import SqlGraph
from mem0_core.stores.sql.queue import SqlJobQueue
from mem0_core.stores.sql.rows import CONTENT_COLUMNS, content_values, scope_ids, session_number
from mem0_core.stores.sql.store import SqlStore
from mem0_core.stores.sql.vectors import EDGE_VECTORS, NODE_VECTORS, SqlVectors
from mem0_core.stores.sqlite._layout import (
    APPLICATION_ID,
    has_newest_layout,
    refuse_foreign,
    refuse_other_layout,
    split_statements,
)
from mem0_core.stores.sqlite.archive import SQLiteArchive
from mem0_core.stores.sqlite.dialect import SQLITE, tenant_of
from mem0_core.stores.sqlite.encryption.files import check_keys, encrypt_file, has_rows, is_encrypted
from mem0_core.stores.sqlite.encryption.vault import Vault
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


class SQLiteStore(SqlStore):
    """A `MemoryStore` in one file. Safe to share between threads. After a fork, open a new one.

    Args:
        path: the file, created with its folder if missing, or ``":memory:"`` for a store that ends with the object.
        durability: with ``"full"`` an acknowledged commit survives a power failure; with ``"process"`` it survives the
            end of the process only, and takes a fraction of the time.
        busy_timeout: seconds that a write waits for another process's write before StoreError.
        is_loading: open the file although a transfer into it is not complete.
        keys: keys of an encrypted file, one per tenant; a new or empty file becomes encrypted.

    Raises:
        StoreError: the file cannot be opened, belongs to another program, or a transfer into it is not complete.
        EncryptionError: the file is encrypted and `keys` are missing or others, or it contains plain data.
    """

    _db: Database

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Literal["full", "process"] = "full",
        busy_timeout: float = 30.0,
        is_loading: bool = False,
        keys: KeyProvider | None = None,
    ) -> None:
        vault = None if keys is None else Vault(keys)
        db = Database(path, durability=durability, busy_timeout=busy_timeout, vault=vault)
        super().__init__(db, _SQLiteMemoryWriter(db))
        self.path = db.path
        self.graph: GraphStore = SqlGraph(db, SqlVectors(db, NODE_VECTORS), SqlVectors(db, EDGE_VECTORS))
        self.jobs: JobQueue = SqlJobQueue(db)
        self.lexicon: Lexicon = SQLiteLexicon(db)
        self.maintenance: StoreMaintenance = SQLiteMaintenance(db)
        self.archive: Archive = SQLiteArchive(db)
        with db.as_store_error("open"):
            self._prepare_tables()
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
        if purge and self._db.vault is not None and len(scope.ids) == 1:
            count += self._forget_key(scope, self._db.vault, at)
        return count

    def _forget_key(self, scope: Scope, vault: Vault, at: str) -> int:
        """Destroy the key of an erased tenant; erase rows that others have added since, and return their number."""
        with self._db.write() as db:  # no process adds anything between the check and the end of the key
            if not has_rows(db, scope):
                vault.forget(tenant_of(scope))
                return 0
        return self.erase_scope(scope, at=at, purge=True)

    def retract(
        self, source: str, scope: Scope | None, *, at: str, relearn: bool = False, purge: bool = False
    ) -> RetractionResult:
        result = super().retract(source, scope, at=at, relearn=relearn, purge=purge)
        self._purge_deleted_text(rewrite_file=purge)
        return result

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

    def _replace_vectors(self, table: str, new: Sequence[tuple[Any, int]]) -> Steps[None]:
        for values in new:
            yield from execute(f"UPDATE {table} SET vector = ? WHERE row = ?", values)

    def _clear_indexes(self, *, keep_words: bool) -> Steps[None]:
        yield from ()
        if not keep_words:
            clear_word_index(self._db.writer)

    # --- connections -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._db.close()

    def _prepare_tables(self) -> None:
        """Check the tables of the file, and bring them to the newest schema where that is needed."""
        with self._db.read("open") as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version != len(SCHEMA_VERSIONS) or not has_newest_layout(db):
                refuse_foreign(db, self.path)
                if 0 < version <= len(SCHEMA_VERSIONS):
                    refuse_other_layout(db, self.path, SCHEMA_VERSIONS[:version], len(SCHEMA_VERSIONS))
            if 0 < version <= len(SCHEMA_VERSIONS):
                check_keys(db, self.path, self._db.vault)
            is_current = version == len(SCHEMA_VERSIONS) and (self._db.vault is None or is_encrypted(db))
            # Words of another version of the analyzer are found less well until the store can be written.
            is_usable = is_current and (self._db.is_read_only or not is_word_index_stale(db))
        if not is_usable:
            self._migrate(version)
        elif self._db.vault is not None:
            self._db.unseal()

    def _migrate(self, version: int) -> None:
        if self._db.is_read_only and version <= len(SCHEMA_VERSIONS):
            raise StoreError(
                f"{self.path} has the schema {version} and is read-only: open it once where it can be written, which"
                f" brings it to {len(SCHEMA_VERSIONS)}"
            )
        if not self._db.in_memory:
            self._db.retry_while_locked("PRAGMA journal_mode = WAL")
        with self._db.write() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > len(SCHEMA_VERSIONS):
                raise StoreError(
                    f"{self.path} was written by a newer version (schema {version}, known {len(SCHEMA_VERSIONS)})"
                )
            for script in SCHEMA_VERSIONS[version:]:
                for statement in split_statements(script):
                    db.execute(statement)
            if self._db.vault is not None:
                encrypt_file(db, self.path, self._db.vault)
                self._db.unseal()
            refresh_words(db, self._db.vault)
            db.execute(f"PRAGMA user_version = {len(SCHEMA_VERSIONS)}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

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

    def insert(
        self, item: MemoryItem, vector: Any, seq: int, session: int, cause: Cause, event: HistoryEvent = Event.ADD
    ) -> Steps[int | None]:
        # RETURNING would open a savepoint, at which FTS5 writes the words of the memory before as a segment of its own.
        inserted = self._db.writer.execute(
            insert_sql("memories", f"{CONTENT_COLUMNS}, same, valid_from", "ON CONFLICT DO NOTHING"),
            (
                *content_values(item, SQLITE.to_json, seq),
                same_fact_key(item.text, item.actor_id),
                item.created_at,
            ),
        )
        row = inserted.lastrowid
        if not inserted.rowcount or row is None:
            return None
        yield from execute("INSERT INTO vectors VALUES (?, ?)", (row, vector))
        yield from self.write_words(row, item, session_number(*scope_ids(item.scope), session))
        feed = insert_event(SQLITE, item, event, seq, cause)
        yield from record_change(SQLITE, item, event, (None, item.text), None, feed)
        return row

    def clear_words(self, row: int) -> Steps[int]:
        yield from ()
        return unindex_memory(self._db.writer, row, self._db.vault)

    def write_words(self, row: int, item: MemoryItem, session: int) -> Steps[None]:
        yield from ()
        index_memory(self._db.writer, row, item, session, self._db.vault)
