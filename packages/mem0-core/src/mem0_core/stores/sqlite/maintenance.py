"""Looking after the SQLite truth: whether its file is sound, putting right what is not, and copies of it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mem0_core._files import make_file, make_folder
from mem0_core.domain.records import HistoryRow, Message, RelationChange, Scope
from mem0_core.errors import StoreError
from mem0_core.interfaces.maintenance import OrphanedRelation, ProgressCallback, StoreIssue, VectorTable
from mem0_core.stores.sql.graph import GraphWriter
from mem0_core.stores.sql.maintenance import LAST_SEQ_SQL, ORPHAN_CONDITIONS, VECTOR_TABLES, SqlMaintenance
from mem0_core.stores.sql.messages import insert_unique_messages
from mem0_core.stores.sql.meta import begin_epoch, read_embedding_space
from mem0_core.stores.sqlite.dialect import SQLITE
from mem0_core.stores.sqlite.lexicon import refresh_words
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    exact_scope_values,
    from_blob,
    placeholders,
    reserve_seqs,
    scope_from_ids,
    scope_sql,
    to_blob,
)
from mem0_core.stores.sqlite.schema import HISTORY_COLUMNS, SCHEMA_VERSIONS
from mem0_core.stores.sqlite.session import drive
from mem0_core.stores.sqlite.vectors import ConnectionFactory, snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SQLiteMaintenance", "copy_file", "find_log_damage", "merge_into_one_file", "restore_file", "verify_file"]

_BACKUP_STEP_PAGES = 2_000  # copied at once, between two looks at who is watching
_SINGLE_FILE_MODE = "PRAGMA journal_mode = DELETE"  # whatever the store's own mode is
_MAX_LOG_CHECKS = 25  # at a log that somebody is writing


class SQLiteTableReader:
    """The `TableReader` of a connection."""

    history_order_column = "rowid"
    last_seq_sql = "(SELECT value FROM meta WHERE key = 'seq')"
    schema_version_sql = "(SELECT user_version FROM pragma_user_version)"
    wrong_dims_condition = "length(v.vector) <> 4 * ?"

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def fetch_rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, values).fetchall()

    def scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        return scope_sql(scope, table)

    def exact_scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        return EXACT_SCOPE_CONDITION.replace("ifnull(", f"ifnull({table}."), list(exact_scope_values(scope))

    def same_partition_condition(self, one: str, other: str) -> str:
        return ""  # a row is known by its number

    def read_json(self, text: str) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(text)
        return read

    def vector(self, stored: bytes) -> NDArray[np.float32]:
        return from_blob(stored)


class SQLiteMaintenance(SqlMaintenance):
    """A `StoreMaintenance`."""

    inline = True  # see `flow`

    def __init__(
        self, read: ConnectionFactory, write: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        super().__init__(lambda: _tables(read), lambda: _tables(partial(snapshot, read)))
        self._read = read
        self._write = write

    @property
    def file(self) -> Path | None:
        with self._read() as db:
            path: str = db.execute("PRAGMA database_list").fetchone()[2]
        return Path(path) if path else None

    def disk_usage(self) -> dict[str, Any]:
        if self.file is None:
            return {"path": None, "store": 0, "log": 0}
        log = self.file.with_name(f"{self.file.name}-wal")
        return {"path": str(self.file), "store": _bytes(self.file), "log": _bytes(log)}

    # --- soundness ---------------------------------------------------------------------------------------------------

    def find_issues(self) -> list[StoreIssue]:
        with self._read() as db:
            damage = _check_integrity(db)
            if any(flaw.kind == "damaged" for flaw in damage):
                return damage  # what else is counted in such a file means nothing
            unread = list(_check_word_index(db, known={flaw.kind for flaw in damage}))
        return [*damage, *unread, *super().find_issues()]

    def repair(self, issue: StoreIssue) -> str:
        with self._write() as db:
            if issue.kind == "index":
                db.execute("REINDEX")
                return "indexes built anew"
            if issue.kind == "words":
                db.execute("DELETE FROM meta WHERE key = 'words'")
                refresh_words(db)
                return "read the words of all memories anew"
            if issue.kind == "counter":
                db.execute(f"UPDATE meta SET value = max(value, ({LAST_SEQ_SQL})) WHERE key = 'seq'")
                return "set to the last change"
            if issue.kind == "stray":
                db.execute(f"DELETE FROM {issue.table} WHERE {ORPHAN_CONDITIONS[issue.table]}")
                return "removed"
        raise StoreError(f"{issue.description}: not the truth's own to mend")

    def set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> None:
        with self._write() as db:
            _, dims = drive(db, read_embedding_space()) or ("", 0)
            for row, vector in vectors:
                put = f"INSERT OR REPLACE INTO {VECTOR_TABLES[table]} VALUES (?, ?)"
                db.execute(put, (row, to_blob(vector, dims)))
                seq = reserve_seqs(db, 1)
                db.execute(f"UPDATE {table} SET seq = ? WHERE row = ?", (seq, row))
                if table != "memories":
                    db.execute(f"UPDATE {table} SET changed = ? WHERE row = ?", (seq, row))

    def begin_new_epoch(self) -> None:
        with self._write() as db:
            drive(db, begin_epoch())

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def count_missing_relations(self) -> int:
        with self._read() as db:
            given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'edges'").fetchone()
            accounted = (
                "SELECT count(*) FROM (SELECT row FROM edges UNION SELECT row FROM edge_tombstones WHERE erased"
                " UNION SELECT row FROM edge_vectors UNION SELECT edge FROM evidence)"
            )
            held: int = db.execute(accounted).fetchone()[0]
        return max(0, (given or (0,))[0] - held)

    def restore_relation(self, lost: OrphanedRelation | None, memory_id: str, relation: RelationChange) -> None:
        with self._write() as db:
            memory = "SELECT row, user_id, agent_id, run_id, created_at FROM memories WHERE id = ?"
            row, *ids, created_at = db.execute(memory, (memory_id,)).fetchone()
            _, dims = drive(db, read_embedding_space()) or ("", 0)
            writer = GraphWriter(SQLITE, scope_from_ids(*ids), relation.effective_at or created_at, dims, "invalidate")
            if lost is None:
                drive(db, writer.apply([relation], dict.fromkeys(relation.change_indexes, row), ()))
            else:
                drive(db, writer.restore_relation(lost.row, relation))

    def remove_orphan(self, lost: OrphanedRelation) -> None:
        with self._write() as db:
            db.execute("DELETE FROM edges WHERE row = ?", (lost.row,))
            for table, column in (("edge_vectors", "row"), ("evidence", "edge"), ("edge_messages", "edge")):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (lost.row,))
            drive(db, begin_epoch())  # projections may have it, and no tombstone tells them

    # --- taking in ---------------------------------------------------------------------------------------------------

    def adopt_history(self, rows: Sequence[HistoryRow]) -> int:
        columns = ", ".join(HISTORY_COLUMNS)
        added = 0
        with self._write() as db:
            theirs = {row.id for row in rows}
            for memory_id in dict.fromkeys(row.memory_id for row in rows if row.event == "ADD"):
                ours = "SELECT id FROM history WHERE memory_id = ? AND event = 'ADD'"
                for (row_id,) in db.execute(ours, (memory_id,)).fetchall():
                    if row_id not in theirs:
                        db.execute("DELETE FROM history WHERE id = ?", (row_id,))
            for row in rows:
                values = [getattr(row, column) for column in HISTORY_COLUMNS]
                sql = f"INSERT OR IGNORE INTO history ({columns}) VALUES ({placeholders(values)})"
                added += db.execute(sql, values).rowcount
        return added

    def adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> list[int]:
        with self._write() as db:
            return drive(db, insert_unique_messages(SQLITE, messages, scope, ""))


@contextmanager
def _tables(read: ConnectionFactory) -> Iterator[SQLiteTableReader]:
    with read() as db:
        yield SQLiteTableReader(db)


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# --- what is wrong -----------------------------------------------------------------------------------------------


def _check_integrity(db: sqlite3.Connection) -> list[StoreIssue]:
    """What SQLite itself finds."""
    try:
        told = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as error:
        return [StoreIssue("damaged", f"the file cannot be read: {error}")]
    flaws = []
    if words := [line for line in told if "fts5" in line.lower() or "words" in line]:
        flaws.append(StoreIssue("words", f"the index of words is damaged ({words[0]})"))
    if index := [line for line in told if "index" in line.lower() and line not in words]:
        flaws.append(StoreIssue("index", f"an index does not agree with its table ({index[0]})"))
    if worse := [line for line in told if line not in words and line not in index]:
        flaws.insert(0, StoreIssue("damaged", f"the file is damaged ({worse[0]})"))
    return flaws


def _check_word_index(db: sqlite3.Connection, *, known: set[str]) -> Iterator[StoreIssue]:
    """The index of words against the memories."""
    if "words" not in known:
        try:
            db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
            sql = (
                "SELECT count(*) FROM (SELECT row FROM memories EXCEPT SELECT id FROM words_docsize)"
                " UNION ALL SELECT count(*) FROM (SELECT row FROM memories EXCEPT SELECT row FROM sketches)"
                " UNION ALL SELECT count(*) FROM (SELECT id FROM words_docsize EXCEPT SELECT row FROM memories)"
                " UNION ALL SELECT count(*) FROM (SELECT row FROM sketches EXCEPT SELECT row FROM memories)"
            )
            worst = max(count for (count,) in db.execute(sql))
            if worst:
                yield StoreIssue("words", f"the words of {worst} memories are missing, or of memories that are gone")
        except sqlite3.DatabaseError as error:
            yield StoreIssue("words", f"the index of words is damaged ({error})")


# --- the log -----------------------------------------------------------------------------------------------------


def find_log_damage(database: Path) -> str | None:
    """What is wrong with the end of a store's write-ahead log; None where it ends with the last commit.

    To be asked before the store is opened: SQLite then drops what has no commit, without a word. While somebody writes,
    it looks until nothing moves between two looks.
    """
    seen: tuple[str, int] | None = None
    for _ in range(_MAX_LOG_CHECKS):
        what = _check_log(database)
        log = database.with_name(f"{database.name}-wal")
        state = None if what is None else (what, log.stat().st_mtime_ns if log.exists() else 0)
        if state is None or state == seen:
            return what
        seen = state
        time.sleep(0.2)
    return None  # it is being written all the time


def _check_log(database: Path) -> str | None:
    log, index = (database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))
    try:
        told = index.read_bytes()[:48] if index.exists() else b""
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(32)
            if size and (len(head) < 32 or head[:3] != b"\x37\x7f\x06"):
                return f"{log.name} ({size} bytes) has no head: nothing in it can be read"
            torn, frames = _check_frames(file.read, size, head, log.name) if size else (None, 0)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{log.name} cannot be read: {error}"
    # What a process that crashed leaves beside the log: SQLite's wal-index, whose head says how long the log was.
    of_this_log = len(told) == 48 and told[12] and (not size or told[32:40] == head[16:24])
    if torn is None and of_this_log and (named := int.from_bytes(told[16:20], sys.byteorder)) > frames:
        return f"{log.name} ends in the middle: it has {frames} pages, its index {index.name} names {named}"
    return torn


def _check_frames(read: Callable[[int], bytes], size: int, head: bytes, name: str) -> tuple[str | None, int]:
    """What is wrong with the frames of a log, and how many of them there are up to the last commit."""
    page, salts = int.from_bytes(head[8:12]), head[16:24]
    order: Literal["big", "little"] = "big" if head[3] & 1 else "little"
    sums = _checksum(head[:24], (0, 0), order)
    frames, committed = 0, 0
    while frame := read(24):
        if len(frame) == 24 and frame[8:16] != salts:
            break  # what an earlier round of the log left behind
        body, last = read(page), 32 + committed * (24 + page)
        if len(frame) < 24 or len(body) < page:
            return f"{name} ends in the middle of a page, at byte {size}; committed up to byte {last}", committed
        sums = _checksum(frame[:8] + body, sums, order)
        if sums != (int.from_bytes(frame[16:20]), int.from_bytes(frame[20:24])):
            return f"{name} is altered behind page {frames}; committed up to byte {last}", committed
        frames += 1
        if int.from_bytes(frame[4:8]):
            committed = frames
    if frames > committed:
        return (
            f"{name} ends in the middle of a transaction: {frames - committed} pages after its last commit",
            committed,
        )
    return None, committed


def _checksum(data: bytes, sums: tuple[int, int], order: Literal["big", "little"]) -> tuple[int, int]:
    """SQLite's checksum of its log, which goes on from one frame to the next."""
    one, other = sums
    words = array("I", data)
    if order != sys.byteorder:
        words.byteswap()
    for place in range(0, len(words), 2):
        one = (one + words[place] + other) & 0xFFFFFFFF
        other = (other + words[place + 1] + one) & 0xFFFFFFFF
    return one, other


# --- whole files -------------------------------------------------------------------------------------------------


def verify_file(path: Path) -> int:
    """Whether a file is a sound store; returns how many memories it holds.

    Raises:
        StoreError: it is not, and why.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            told = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if told != "ok":
                raise StoreError(f"{path} is damaged: {told}")
            step = db.execute("PRAGMA user_version").fetchone()[0]
            if not 0 < step <= len(SCHEMA_VERSIONS):
                raise StoreError(f"{path} has the schema {step}; this version knows 1 to {len(SCHEMA_VERSIONS)}")
            count: int = db.execute("SELECT count(*) FROM memories").fetchone()[0]
            return count
    except sqlite3.Error as error:
        raise StoreError(f"{path} is no store: {error}") from error


def copy_file(database: Path, path: Path, *, on_progress: ProgressCallback | None = None) -> None:
    """Write all that is committed into a new file, while others write."""
    try:
        with (
            closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db,
            closing(sqlite3.connect(path)) as target,
        ):
            db.execute("BEGIN")  # what others commit meanwhile does not make the copy begin anew
            db.execute("SELECT count(*) FROM meta").fetchone()
            db.backup(target, pages=_BACKUP_STEP_PAGES, progress=_backup_progress(on_progress))
            target.execute(_SINGLE_FILE_MODE)
    except sqlite3.Error as error:
        raise StoreError(f"cannot copy {database} to {path}: {error}") from error


def merge_into_one_file(path: Path) -> None:
    """Let all of a store that nobody has open lie in its file, wherever it is copied."""
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute(_SINGLE_FILE_MODE)
    except sqlite3.Error as error:
        raise StoreError(f"cannot write {path}: {error}") from error


def restore_file(source: Path, database: Path, *, on_progress: ProgressCallback | None = None) -> None:
    """Make the store what a copy of it is, for whoever has it open too, in one transaction.

    Projections start anew: what they hold may be newer than the copy.
    """
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as copy:
            make_folder(database.parent)
            make_file(database)
            with closing(sqlite3.connect(database, timeout=30.0)) as target:
                copy.backup(target, pages=_BACKUP_STEP_PAGES, progress=_backup_progress(on_progress))
                target.execute("PRAGMA journal_mode = WAL")
                with target:
                    drive(target, begin_epoch())
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot restore {database}: {error}") from error


def _backup_progress(on_progress: ProgressCallback | None) -> Callable[[int, int, int], object] | None:
    if on_progress is None:
        return None
    return lambda status, remaining, total: on_progress(total - remaining, total)
