"""Maintenance of a SQLite store: problems of its file, their repair, and copies of the file."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from mem0_core._system.files import make_file, make_folder
from mem0_core.domain.records import HistoryRow
from mem0_core.errors import StoreError
from mem0_core.interfaces.maintenance import ProgressCallback, StoreIssue
from mem0_core.stores.sql.engine.steps import Statement, Steps, execute, insert_sql
from mem0_core.stores.sql.maintenance import LAST_SEQ_SQL, SqlMaintenance
from mem0_core.stores.sql.meta import begin_epoch
from mem0_core.stores.sql.schema import HISTORY_COLUMNS
from mem0_core.stores.sqlite._file_access import read_only_uri
from mem0_core.stores.sqlite.lexicon import refresh_words
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.session import Database, drive

_BACKUP_STEP_PAGES = 2_000  # copied between two reports of progress
_SINGLE_FILE_MODE = "PRAGMA journal_mode = DELETE"  # one file, without a log
_MAX_LOG_CHECKS = 25  # of a log that is being written


class SQLiteMaintenance(SqlMaintenance):
    """A `StoreMaintenance`."""

    last_seq_sql = "(SELECT value FROM meta WHERE key = 'seq')"
    schema_version_sql = "(SELECT user_version FROM pragma_user_version)"
    wrong_dims_condition = "length(v.vector) <> 4 * ?"

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._database = db

    @property
    def file(self) -> Path | None:
        path = self._tables.fetch_rows("PRAGMA database_list")[0][2]
        return Path(path) if path else None

    def disk_usage(self) -> dict[str, Any]:
        if self.file is None:
            return {"path": None, "store": 0, "log": 0}
        log = self.file.with_name(f"{self.file.name}-wal")
        return {"path": str(self.file), "store": _bytes(self.file), "log": _bytes(log)}

    def find_issues(self) -> list[StoreIssue]:
        with self._database.read() as db:
            issues = _check_integrity(db)
            if any(issue.kind == "damaged" for issue in issues):
                return issues  # further counts mean nothing in a damaged file
            known: set[str] = {issue.kind for issue in issues}
            is_writable = not self._database.is_read_only
            issues += list(_check_word_index(db, known=known, is_writable=is_writable))
        return [*issues, *super().find_issues()]

    def repair(self, issue: StoreIssue) -> str:
        if issue.kind != "words":
            return super().repair(issue)
        with self._database.write() as db:
            db.execute("DELETE FROM meta WHERE key = 'words'")
            refresh_words(db, self._database.vault)
        return "rebuilt the word index of all memories"

    def scrub(self) -> None:
        if self.file is None:
            return
        with self._database.exclusive("scrub") as writer:
            deadline = time.monotonic() + self._database.busy_timeout
            while writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    raise StoreError(f"a reader of {self.file} keeps its old log; repeat the call later")
                time.sleep(0.02)

    def _rebuild_indexes(self) -> Steps[None]:
        yield from execute("REINDEX")

    def _raise_counter(self) -> Steps[None]:
        yield from execute(f"UPDATE meta SET value = max(value, ({LAST_SEQ_SQL})) WHERE key = 'seq'")

    def count_missing_relations(self) -> int:
        last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'edges'"
        accounted = (
            "SELECT count(*) FROM (SELECT row FROM edges UNION SELECT row FROM edge_tombstones WHERE erased"
            " UNION SELECT row FROM edge_vectors UNION SELECT edge FROM evidence)"
        )
        [(missing,)] = self._tables.fetch_rows(f"SELECT ({last}) - ({accounted})")
        return max(0, int(missing))

    def _history_statement(self, row: HistoryRow) -> Statement:
        values = [getattr(row, column) for column in HISTORY_COLUMNS]
        return Statement(insert_sql("history", ", ".join(HISTORY_COLUMNS), "ON CONFLICT DO NOTHING"), values)


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# --- problems ---------------------------------------------------------------------------------------------------


def _check_integrity(db: sqlite3.Connection) -> list[StoreIssue]:
    """Return the problems that SQLite reports."""
    try:
        lines = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as error:
        return [StoreIssue("damaged", f"the file cannot be read: {error}")]
    issues = []
    if words := [line for line in lines if "fts5" in line.lower() or "words" in line]:
        issues.append(StoreIssue("words", f"the word index is damaged ({words[0]})"))
    if index := [line for line in lines if "index" in line.lower() and line not in words]:
        issues.append(StoreIssue("index", f"an index does not agree with its table ({index[0]})"))
    if worse := [line for line in lines if line not in words and line not in index]:
        issues.insert(0, StoreIssue("damaged", f"the file is damaged ({worse[0]})"))
    return issues


def _check_word_index(db: sqlite3.Connection, *, known: set[str], is_writable: bool) -> Iterator[StoreIssue]:
    """Compare the word index with the memories; the index checks itself only where it can be written."""
    if "words" not in known:
        try:
            if is_writable:
                db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
            sql = (
                "SELECT count(*) FROM (SELECT row FROM memories EXCEPT SELECT id FROM words_docsize)"
                " UNION ALL SELECT count(*) FROM (SELECT row FROM memories EXCEPT SELECT row FROM sketches)"
                " UNION ALL SELECT count(*) FROM (SELECT id FROM words_docsize EXCEPT SELECT row FROM memories)"
                " UNION ALL SELECT count(*) FROM (SELECT row FROM sketches EXCEPT SELECT row FROM memories)"
            )
            worst = max(count for (count,) in db.execute(sql))
            if worst:
                yield StoreIssue(
                    "words", f"{worst} memories are missing from the word index, or were deleted outside it"
                )
        except sqlite3.DatabaseError as error:
            yield StoreIssue("words", f"the word index is damaged ({error})")


# --- the log -----------------------------------------------------------------------------------------------------


def find_log_damage(database: Path) -> str | None:
    """Return the damage at the end of a store's write-ahead log; None if it ends with the last commit.

    Call it before the store is opened: SQLite then drops uncommitted pages silently. While another process writes, the
    check repeats until two results agree.
    """
    seen: tuple[str, int] | None = None
    for _ in range(_MAX_LOG_CHECKS):
        damage = _check_log(database)
        log = database.with_name(f"{database.name}-wal")
        state = None if damage is None else (damage, log.stat().st_mtime_ns if log.exists() else 0)
        if state is None or state == seen:
            return damage
        seen = state
        time.sleep(0.2)
    return None  # the log is written all the time


def _check_log(database: Path) -> str | None:
    log, index = (database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))
    try:
        wal_index = index.read_bytes()[:48] if index.exists() else b""
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(32)
            if size and (len(head) < 32 or head[:3] != b"\x37\x7f\x06"):
                return f"{log.name} ({size} bytes) has no header and cannot be read"
            torn, frames = _check_frames(file.read, size, head, log.name) if size else (None, 0)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{log.name} cannot be read: {error}"
    # A crashed process leaves SQLite's wal-index behind. Its header holds the length of the log.
    of_this_log = len(wal_index) == 48 and wal_index[12] and (not size or wal_index[32:40] == head[16:24])
    if torn is None and of_this_log and (named := int.from_bytes(wal_index[16:20], sys.byteorder)) > frames:
        return f"{log.name} ends in the middle: it has {frames} pages, its index {index.name} lists {named}"
    return torn


def _check_frames(read: Callable[[int], bytes], size: int, head: bytes, name: str) -> tuple[str | None, int]:
    """Return the damage of the frames of a log, and the number of frames up to the last commit."""
    page, salts = int.from_bytes(head[8:12]), head[16:24]
    order: Literal["big", "little"] = "big" if head[3] & 1 else "little"
    sums = _checksum(head[:24], (0, 0), order)
    frames, committed = 0, 0
    while frame := read(24):
        if len(frame) == 24 and frame[8:16] != salts:
            break  # the rest belongs to an earlier round of the log
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
    """Return SQLite's checksum of its log, which continues from one frame to the next."""
    one, other = sums
    words = array("I", data)
    if order != sys.byteorder:
        words.byteswap()
    for index in range(0, len(words), 2):
        one = (one + words[index] + other) & 0xFFFFFFFF
        other = (other + words[index + 1] + one) & 0xFFFFFFFF
    return one, other


# --- whole files -------------------------------------------------------------------------------------------------


def verify_file(path: Path) -> int:
    """Check that a file is an intact store, and return its number of memories.

    Raises:
        StoreError: the file is damaged, no store, or of an unknown schema version.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            result = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if result != "ok":
                raise StoreError(f"{path} is damaged: {result}")
            step = db.execute("PRAGMA user_version").fetchone()[0]
            if not 0 < step <= len(SCHEMA_VERSIONS):
                raise StoreError(f"{path} has the schema {step}; this version knows 1 to {len(SCHEMA_VERSIONS)}")
            count: int = db.execute("SELECT count(*) FROM memories").fetchone()[0]
            return count
    except sqlite3.Error as error:
        raise StoreError(f"{path} is no store: {error}; pass a file that backup wrote") from error


def copy_file(database: Path, path: Path, *, on_progress: ProgressCallback | None = None) -> None:
    """Copy everything that is committed into a new file, while others may write."""
    try:
        with (
            closing(sqlite3.connect(read_only_uri(database), uri=True)) as db,
            closing(sqlite3.connect(path)) as target,
        ):
            db.execute("BEGIN")  # concurrent commits do not restart the copy
            db.execute("SELECT count(*) FROM meta").fetchone()
            db.backup(target, pages=_BACKUP_STEP_PAGES, progress=_backup_progress(on_progress))
            target.execute(_SINGLE_FILE_MODE)
    except sqlite3.Error as error:
        raise StoreError(f"cannot copy {database} to {path}: {error}") from error


def merge_into_one_file(path: Path) -> None:
    """Move the log of a closed store into its file, so that the file can be copied alone."""
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute(_SINGLE_FILE_MODE)
    except sqlite3.Error as error:
        raise StoreError(f"cannot write {path}: {error}") from error


def restore_file(source: Path, database: Path, *, on_progress: ProgressCallback | None = None) -> None:
    """Replace the content of a store by a copy, in one transaction; other processes may have the store open.

    Projections are rebuilt: they may be newer than the copy.
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
