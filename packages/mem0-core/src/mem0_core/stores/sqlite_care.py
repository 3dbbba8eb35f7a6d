"""Looking after the SQLite truth: whether it is sound, what was taken from it by hand, copies and sums of it."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import uuid
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, Literal

from mem0_core.care import Flaw, Lost, Progress, VectorTable
from mem0_core.errors import StoreError
from mem0_core.records import Axis, HistoryRow, RelationChange, Scope, Triplet, entity_key
from mem0_core.stores.schema import HISTORY_COLUMNS, MIGRATIONS
from mem0_core.stores.sqlite_graph import GraphWriter
from mem0_core.stores.sqlite_rows import (
    SAME_SCOPE,
    chunks,
    exact_ids,
    from_blob,
    marks,
    next_seq,
    scope_of,
    scope_sql,
    to_blob,
)
from mem0_core.stores.sqlite_vectors import Reader
from mem0_core.stores.sqlite_words import refresh_words

__all__ = ["SQLiteCare", "check_file", "restore_file", "torn_log"]

_PAGES = 2_000  # copied at once, between two looks at who is watching
_VECTORS: dict[VectorTable, str] = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
_JOINED = "edges AS e JOIN nodes AS s ON s.row = e.source JOIN nodes AS d ON d.row = e.destination"
_LIVING_MEMORIES = "SELECT row FROM memories"
_STRAYS = {
    "vectors": f"row NOT IN ({_LIVING_MEMORIES})",
    "node_vectors": "row NOT IN (SELECT row FROM nodes)",
    "sources": "message NOT IN (SELECT row FROM messages)",
    "edge_messages": "message NOT IN (SELECT row FROM messages)",
    "job_messages": "job NOT IN (SELECT row FROM jobs) OR message NOT IN (SELECT row FROM messages)",
}
"""Rows that refer to what is not there. (Evidence may: it outlives its memory.)"""

_COUNTED = ("memories", "tombstones", "nodes", "edges", "node_tombstones", "edge_tombstones")
_LAST_SEQ = f"SELECT max(seq) FROM ({' UNION ALL '.join(f'SELECT max(seq) AS seq FROM {table}' for table in _COUNTED)})"
_LOOKS = 25  # at a log that somebody is writing


class SQLiteCare:
    """A `Care`."""

    inline = True  # see `flow`

    def __init__(self, read: Reader, write: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._read = read
        self._write = write

    # --- soundness ---------------------------------------------------------------------------------------------------

    def flaws(self) -> list[Flaw]:
        with self._read() as db:
            damage = _damage(db)
            if any(flaw.kind == "damaged" for flaw in damage):
                return damage  # what else is counted in such a file means nothing
            return [*damage, *_unlisted(db, known={flaw.kind for flaw in damage}), *_vectorless(db), *_strays(db)]

    def mend(self, flaw: Flaw) -> str:
        with self._write() as db:
            if flaw.kind == "index":
                db.execute("REINDEX")
                return "indexes built anew"
            if flaw.kind == "words":
                db.execute("DELETE FROM meta WHERE key = 'words'")
                refresh_words(db)
                return "read the words of all memories anew"
            if flaw.kind == "counter":
                db.execute(f"UPDATE meta SET value = max(value, ({_LAST_SEQ})) WHERE key = 'seq'")
                return "set to the last change"
            if flaw.kind == "stray":
                db.execute(f"DELETE FROM {flaw.table} WHERE {_STRAYS[flaw.table]}")
                return "removed"
        raise StoreError(f"{flaw.what}: not the truth's own to mend")

    def texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        with self._read() as db:
            for chunk in chunks(rows):
                among = f"row IN ({marks(chunk)})"
                if table == "edges":
                    sql = f"SELECT e.row, s.name, e.relationship, d.name FROM {_JOINED} WHERE e.{among}"
                    found += [(row, Triplet(*parts).sentence) for row, *parts in db.execute(sql, chunk)]
                else:
                    column = "text" if table == "memories" else "name"
                    found += db.execute(f"SELECT row, {column} FROM {table} WHERE {among}", chunk).fetchall()
        return found

    def set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> None:
        with self._write() as db:
            dims = _dims(db)
            for row, vector in vectors:
                put = f"INSERT OR REPLACE INTO {_VECTORS[table]} VALUES (?, ?)"
                db.execute(put, (row, to_blob(vector, dims)))
                seq = next_seq(db, 1)
                db.execute(f"UPDATE {table} SET seq = ? WHERE row = ?", (seq, row))
                if table != "memories":
                    db.execute(f"UPDATE {table} SET changed = ? WHERE row = ?", (seq, row))

    def begin_epoch(self) -> None:
        with self._write() as db:
            _begin_epoch(db)

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def lost(self) -> list[Lost]:
        ends = "SELECT row FROM nodes"
        gone = (
            "SELECT row FROM edge_vectors WHERE row NOT IN (SELECT row FROM edges)"
            " UNION SELECT edge FROM evidence WHERE edge NOT IN (SELECT row FROM edges)"
            " UNION SELECT edge FROM edge_messages WHERE edge NOT IN (SELECT row FROM edges)"
            f" UNION SELECT row FROM edges WHERE source NOT IN ({ends}) OR destination NOT IN ({ends}) ORDER BY 1"
        )
        says = "SELECT id FROM evidence JOIN memories ON memories.row = memory WHERE edge = ? AND NOT withdrawn"
        found = []
        with self._read() as db:
            for (row,) in db.execute(gone).fetchall():
                blob = db.execute("SELECT vector FROM edge_vectors WHERE row = ?", (row,)).fetchone()
                memories = tuple(memory_id for (memory_id,) in db.execute(says, (row,)))
                found.append(Lost(row, None if blob is None else from_blob(blob[0]), memories))
        return found

    def merged(self) -> bool:
        with self._read() as db:
            return db.execute("SELECT 1 FROM aliases WHERE standing LIMIT 1").fetchone() is not None

    def holes(self) -> int:
        with self._read() as db:
            given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'edges'").fetchone()
            accounted = (
                "SELECT count(*) FROM (SELECT row FROM edges UNION SELECT row FROM edge_tombstones WHERE erased"
                " UNION SELECT row FROM edge_vectors UNION SELECT edge FROM evidence)"
            )
            held: int = db.execute(accounted).fetchone()[0]
        return max(0, (given or (0,))[0] - held)

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        triplet = relation.triplet
        sql = (
            f"SELECT 1 FROM {_JOINED} WHERE {SAME_SCOPE.replace('ifnull(', 'ifnull(e.')} AND e.relationship = ?"
            " AND (s.row = ? OR s.key = ?) AND (d.row = ? OR d.key = ?)"
        )
        ends = (
            relation.source,
            entity_key(triplet.source),
            relation.destination,
            entity_key(triplet.destination),
        )
        with self._read() as db:
            return db.execute(sql, (*exact_ids(scope), triplet.relationship, *ends)).fetchone() is not None

    def regain(self, lost: Lost | None, memory_id: str, relation: RelationChange) -> None:
        with self._write() as db:
            memory = "SELECT row, user_id, agent_id, run_id, created_at FROM memories WHERE id = ?"
            row, *ids, created_at = db.execute(memory, (memory_id,)).fetchone()
            writer = GraphWriter(db, scope_of(*ids), relation.at or created_at, _dims(db), "invalidate")
            if lost is None:
                writer.apply([relation], dict.fromkeys(relation.memories, row), ())
            else:
                writer.put_back(lost.row, relation)

    def give_up(self, lost: Lost) -> None:
        with self._write() as db:
            db.execute("DELETE FROM edges WHERE row = ?", (lost.row,))
            for table, column in (("edge_vectors", "row"), ("evidence", "edge"), ("edge_messages", "edge")):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (lost.row,))
            _begin_epoch(db)  # projections may have it, and no tombstone tells them

    # --- copies ------------------------------------------------------------------------------------------------------

    def copy(self, path: Path, *, on_progress: Progress | None = None) -> None:
        unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            with self._read() as db, closing(sqlite3.connect(unfinished)) as target:
                db.execute("BEGIN")  # what others commit meanwhile does not make the copy begin anew
                try:
                    db.execute("SELECT count(*) FROM meta").fetchone()
                    db.backup(target, pages=_PAGES, progress=_watched(on_progress))
                finally:
                    db.execute("COMMIT")
                target.execute("PRAGMA journal_mode = DELETE")  # one file, whatever the store's own mode
            check_file(unfinished)
            with unfinished.open("rb+") as file:
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error}") from error
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    # --- sums --------------------------------------------------------------------------------------------------------

    def partitions(self, table: VectorTable) -> list[Scope]:
        sql = (
            f"SELECT DISTINCT user_id, NULL, NULL FROM {table} WHERE user_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, agent_id, NULL FROM {table}"
            " WHERE user_id IS NULL AND agent_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, NULL, run_id FROM {table} WHERE user_id IS NULL AND agent_id IS NULL"
        )
        with self._read() as db:
            return [Scope(*row) for row in db.execute(sql)]

    def addresses(self, table: VectorTable) -> list[Scope]:
        with self._read() as db:
            return [
                Scope(**{axis.value: value})
                for axis in Axis
                for (value,) in db.execute(f"SELECT DISTINCT {axis.value} FROM {table} WHERE {axis.value} IS NOT NULL")
            ]

    def sums(self, scope: Scope | None) -> dict[str, Any]:
        where, values = scope_sql(scope) if scope else ("1", [])
        with self._read() as db:

            def count(table: str, condition: str = "1") -> int:
                sql = f"SELECT count(*) FROM {table} WHERE {where} AND {condition}"
                return int(db.execute(sql, values).fetchone()[0])

            def ids(axis: Axis) -> int:
                sql = f"SELECT count(DISTINCT {axis.value}) FROM memories WHERE {where}"
                return int(db.execute(sql, values).fetchone()[0])

            span = f"SELECT min(created_at), max(created_at) FROM memories WHERE {where}"
            first, last = db.execute(span, values).fetchone()
            changes = "SELECT event, count(*) FROM history"
            if scope:
                changes += f" WHERE memory_id IN (SELECT id FROM memories WHERE {where})"
            history = dict(db.execute(f"{changes} GROUP BY event ORDER BY event", values).fetchall())
            summed: dict[str, Any] = {
                "memories": count("memories"),
                "pinned": count("memories", "pinned"),
                "users": ids(Axis.USER),
                "agents": ids(Axis.AGENT),
                "runs": ids(Axis.RUN),
                "oldest": first,
                "newest": last,
                "history": history,
                "messages": count("messages"),
                "entities": count("nodes"),
                "relations": count("edges", "valid_to IS NULL"),
                "ended_relations": count("edges", "valid_to IS NOT NULL"),
                "jobs": {"waiting": count("jobs", "state = 'waiting'"), "parked": count("jobs", "state = 'parked'")},
            }
            if scope is None:
                meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
                name, dims = json.loads(meta["space"]) if "space" in meta else (None, None)
                summed["embedder"] = {"name": name, "dims": dims}
                summed["changes"] = meta["seq"]
                summed["schema"] = db.execute("PRAGMA user_version").fetchone()[0]
        return summed

    # --- everything --------------------------------------------------------------------------------------------------

    def records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        where, values = scope_sql(scope) if scope else ("1", [])
        with self._read() as db:
            db.execute("BEGIN")
            try:
                yield from _memories(db, where, values)
                yield from _messages(db, where, values)
                yield from _nodes(db, where, values)
                yield from _relations(db, where, values)
                yield from _bygone(db, scope, where, values)
            finally:
                db.execute("COMMIT")

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
                sql = f"INSERT OR IGNORE INTO history ({columns}) VALUES ({marks(values)})"
                added += db.execute(sql, values).rowcount
        return added


# --- what is wrong -----------------------------------------------------------------------------------------------


def _damage(db: sqlite3.Connection) -> list[Flaw]:
    """What SQLite itself finds."""
    try:
        told = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as error:
        return [Flaw("damaged", f"the file cannot be read: {error}")]
    flaws = []
    if words := [line for line in told if "fts5" in line.lower() or "words" in line]:
        flaws.append(Flaw("words", f"the index of words is damaged ({words[0]})"))
    if index := [line for line in told if "index" in line.lower() and line not in words]:
        flaws.append(Flaw("index", f"an index does not agree with its table ({index[0]})"))
    if worse := [line for line in told if line not in words and line not in index]:
        flaws.insert(0, Flaw("damaged", f"the file is damaged ({worse[0]})"))
    return flaws


def _unlisted(db: sqlite3.Connection, *, known: set[str]) -> Iterator[Flaw]:
    """The index of words against the memories; the counter against what it counted."""
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
                yield Flaw("words", f"the words of {worst} memories are missing, or of memories that are gone")
        except sqlite3.DatabaseError as error:
            yield Flaw("words", f"the index of words is damaged ({error})")
    both = f"SELECT (SELECT value FROM meta WHERE key = 'seq'), ({_LAST_SEQ})"  # at once: others may be writing
    counted, last = db.execute(both).fetchone()
    if (last or 0) > counted:
        yield Flaw("counter", f"the counter of changes says {counted}, the last change is {last}")


def _vectorless(db: sqlite3.Connection) -> Iterator[Flaw]:
    dims = _dims(db)
    for table, vectors in _VECTORS.items():
        sql = (
            f"SELECT row FROM {table} LEFT JOIN {vectors} AS v USING (row)"
            " WHERE v.vector IS NULL OR length(v.vector) <> ? ORDER BY row"
        )
        if rows := tuple(row for (row,) in db.execute(sql, (4 * dims,))):
            yield Flaw("vectorless", f"{len(rows)} {table} have no vector, or one of another length", table, rows)


def _strays(db: sqlite3.Connection) -> Iterator[Flaw]:
    for table, condition in _STRAYS.items():
        count: int = db.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]
        if count:
            yield Flaw("stray", f"{count} rows of {table} refer to what is not there", table)


def _dims(db: sqlite3.Connection) -> int:
    found = db.execute("SELECT value FROM meta WHERE key = 'space'").fetchone()
    return int(json.loads(found[0])[1]) if found else 0


def _begin_epoch(db: sqlite3.Connection) -> None:
    db.execute("UPDATE meta SET value = lower(hex(randomblob(8))) WHERE key = 'epoch'")


# --- the log -----------------------------------------------------------------------------------------------------


def torn_log(database: Path) -> str | None:
    """What is wrong with the end of a store's write-ahead log; None where it ends with the last commit.

    To be asked before the store is opened: SQLite then drops what has no commit, without a word. While somebody writes,
    it looks until nothing moves between two looks.
    """
    seen: tuple[str, int] | None = None
    for _ in range(_LOOKS):
        what = _looked(database)
        log = database.with_name(f"{database.name}-wal")
        state = None if what is None else (what, log.stat().st_mtime_ns if log.exists() else 0)
        if state is None or state == seen:
            return what
        seen = state
        time.sleep(0.2)
    return None  # it is being written all the time


def _looked(database: Path) -> str | None:
    log, index = (database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))
    try:
        told = index.read_bytes()[:48] if index.exists() else b""
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(32)
            if size and (len(head) < 32 or head[:3] != b"\x37\x7f\x06"):
                return f"{log.name} ({size} bytes) has no head: nothing in it can be read"
            torn, frames = _torn(file.read, size, head, log.name) if size else (None, 0)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{log.name} cannot be read: {error}"
    # What a process that crashed leaves beside the log: SQLite's wal-index, whose head says how long the log was.
    of_this_log = len(told) == 48 and told[12] and (not size or told[32:40] == head[16:24])
    if torn is None and of_this_log and (named := int.from_bytes(told[16:20], sys.byteorder)) > frames:
        return f"{log.name} ends in the middle: it has {frames} pages, its index {index.name} names {named}"
    return torn


def _torn(read: Callable[[int], bytes], size: int, head: bytes, name: str) -> tuple[str | None, int]:
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


def check_file(path: Path) -> int:
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
            if not 0 < step <= len(MIGRATIONS):
                raise StoreError(f"{path} has the schema {step}; this version knows 1 to {len(MIGRATIONS)}")
            count: int = db.execute("SELECT count(*) FROM memories").fetchone()[0]
            return count
    except sqlite3.Error as error:
        raise StoreError(f"{path} is no store: {error}") from error


def restore_file(source: Path, database: Path, *, on_progress: Progress | None = None) -> None:
    """Make the store what a copy of it is, for whoever has it open too, in one transaction.

    Projections start anew: what they hold may be newer than the copy.
    """
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as copy:
            database.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(database, timeout=30.0)) as target:
                copy.backup(target, pages=_PAGES, progress=_watched(on_progress))
                target.execute("PRAGMA journal_mode = WAL")
                with target:
                    _begin_epoch(target)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot restore {database}: {error}") from error


def _watched(on_progress: Progress | None) -> Callable[[int, int, int], object] | None:
    if on_progress is None:
        return None
    return lambda status, remaining, total: on_progress(total - remaining, total)


# --- everything, as JSON -----------------------------------------------------------------------------------------


def _rows(db: sqlite3.Connection, sql: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    cursor = db.execute(sql, values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield {name: value for name, value in zip(names, row, strict=True) if value is not None}


def _memories(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    sql = (
        "SELECT row, id, text AS memory, user_id, agent_id, run_id, hash, metadata, actor_id, role, memory_type,"
        " created_at, updated_at, valid_from, expiration_date, pinned FROM memories"
        f" WHERE {where} ORDER BY row"
    )
    history = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE memory_id = ? ORDER BY rowid"
    for one in _rows(db, sql, values):
        row = one.pop("row")
        one |= {"metadata": json.loads(one["metadata"]), "pinned": bool(one["pinned"])}
        one["history"] = [_history(entry) for entry in _rows(db, history, (one["id"],))]
        heard = "SELECT message FROM sources WHERE memory = ? ORDER BY message"
        one["messages"] = [message for (message,) in db.execute(heard, (row,))]
        yield {"kind": "memory", **one}


def _history(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "is_deleted": bool(entry.get("is_deleted"))}


def _messages(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    sql = (
        "SELECT row AS id, user_id, agent_id, run_id, role, content, name, metadata, created_at FROM messages"
        f" WHERE {where} ORDER BY row"
    )
    for one in _rows(db, sql, values):
        yield {"kind": "message", **one, "metadata": json.loads(one["metadata"])}


def _nodes(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    sql = f"SELECT row AS id, user_id, agent_id, run_id, name, type FROM nodes WHERE {where} ORDER BY row"
    for one in _rows(db, sql, values):
        yield {"kind": "entity", **one}


def _relations(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    scoped = " AND ".join(condition if condition == "1" else f"e.{condition}" for condition in where.split(" AND "))
    sql = (
        "SELECT e.row AS id, e.user_id, e.agent_id, e.run_id, s.name AS source, e.relationship, d.name AS destination,"
        " e.source AS source_id, e.destination AS destination_id, e.weight, e.valid_from, e.valid_to, e.invalidated_at"
        f" FROM {_JOINED} WHERE {scoped} ORDER BY e.row"
    )
    evidence = (
        "SELECT id, withdrawn FROM evidence JOIN memories ON memories.row = memory WHERE edge = ? ORDER BY memory"
    )
    for one in _rows(db, sql, values):
        said = db.execute(evidence, (one["id"],)).fetchall()
        heard = db.execute("SELECT message FROM edge_messages WHERE edge = ? ORDER BY message", (one["id"],)).fetchall()
        one["evidence"] = [memory for memory, withdrawn in said if not withdrawn]
        one["withdrawn"] = [memory for memory, withdrawn in said if withdrawn]
        yield {"kind": "relation", **one, "messages": [message for (message,) in heard]}


def _bygone(db: sqlite3.Connection, scope: Scope | None, where: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The history of memories that are gone; within a scope, of those that have a tombstone there."""
    gone = "memory_id NOT IN (SELECT id FROM memories)"
    if scope:
        gone += f" AND memory_id IN (SELECT memory_id FROM tombstones WHERE {where})"
    sql = f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE {gone} ORDER BY rowid"
    for one in _rows(db, sql, values if scope else ()):
        yield {"kind": "history", **_history(one)}
