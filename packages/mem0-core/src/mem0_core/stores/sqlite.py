"""The embedded truth: one SQLite file, one transaction per add.

Write-ahead logging lets other threads and processes read while one writes; writers queue on the file's lock
(`busy_timeout`). With ``durability="full"`` (the default) an acknowledged commit survives a power cut, with
``"process"`` the death of the process only, at a fraction of the wait.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.archive import Archive, check_filled
from mem0_core.care import Care
from mem0_core.errors import InputError, StoreError
from mem0_core.files import make_file, make_folder
from mem0_core.filters import Filter
from mem0_core.ports import (
    Commit,
    Embeddable,
    GraphTruth,
    JobQueue,
    Lease,
    Lexicon,
    MergeLedger,
    OnConflict,
    Position,
    Summary,
    Talk,
    VectorChanges,
    check_space,
)
from mem0_core.records import (
    Change,
    Event,
    HistoryRow,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    Triplet,
    same_fact_key,
)
from mem0_core.stores.schema import HISTORY_COLUMNS, MIGRATIONS
from mem0_core.stores.sqlite_archive import SQLiteArchive
from mem0_core.stores.sqlite_care import SQLiteCare
from mem0_core.stores.sqlite_filters import casefold, filter_sql
from mem0_core.stores.sqlite_foreign import refuse_foreign, refuse_foreign_file
from mem0_core.stores.sqlite_graph import GraphWriter, SQLiteGraph, erase_graph, erase_support
from mem0_core.stores.sqlite_jobs import SQLiteJobs, erase_jobs, finish, put
from mem0_core.stores.sqlite_merges import SQLiteMerges, forget_merges, forget_support
from mem0_core.stores.sqlite_messages import SQLiteTalk, erase_summaries, insert_messages, write_summary
from mem0_core.stores.sqlite_rows import (
    SAME_SCOPE,
    begin_epoch,
    chunks,
    exact_ids,
    held_space,
    limit_sql,
    marks,
    next_seq,
    scope_sql,
    scope_sql_unindexed,
    set_mark,
    stack,
    to_blob,
    to_json,
)
from mem0_core.stores.sqlite_vectors import TableVectors
from mem0_core.stores.sqlite_words import (
    SQLiteLexicon,
    empty_words,
    erase_words,
    is_stale,
    refresh_words,
    scrub_words,
    write_words,
)
from mem0_core.stores.truth import (
    SAID_COLUMNS,
    Placed,
    aims_at,
    history_row,
    ids_of,
    item_of,
    numbers,
    renewed,
    said_of,
    scope_of,
    session_of,
    what_goes_first,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SQLiteStore"]

_MEMORY_COLUMNS = f"row, {SAID_COLUMNS}, pinned"
_TABLES = (
    *("aliases", "merges"),
    *(
        "sources",
        "messages",
        "vectors",
        "sketches",
        "memories",
        "past",
        "tombstones",
        "history",
        "evidence",
        "edge_messages",
    ),
    *("edge_vectors", "edges", "node_vectors", "nodes", "edge_tombstones", "node_tombstones"),
    *("jobs", "summaries", "imports"),
)
"""All but `meta`, those that refer to others first."""

_VECTORS: dict[str, str] = {
    "memory": "UPDATE vectors SET vector = ?1 WHERE row = (SELECT row FROM memories WHERE row = ?2 AND seq = ?3)",
    "past": "UPDATE past SET vector = ?1 WHERE row = ?2 AND seq = ?3",
    "node": "UPDATE node_vectors SET vector = ?1 WHERE row = (SELECT row FROM nodes WHERE row = ?2 AND seq = ?3)",
    "relation": "UPDATE edge_vectors SET vector = ?1 WHERE row = (SELECT row FROM edges WHERE row = ?2 AND seq = ?3)",
}
"""How the vector of each kind of `Embeddable` is replaced."""


class SQLiteStore:
    """A `MemoryStore` in one file.

    Args:
        path: the file (made with its folder if missing), or ``":memory:"`` for a store that dies with the object.
        durability: ``"full"`` or ``"process"``, see the module.
        busy_timeout: seconds a write waits for another process's write before StoreError.
        filling: open it even where a migration into it has not come to its end.

    Safe to share between threads. After a fork, open a new one.
    """

    inline = True  # see `flow`

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Literal["full", "process"] = "full",
        busy_timeout: float = 30.0,
        filling: bool = False,
    ) -> None:
        self.path = str(path)
        self._durability = durability
        self._busy_timeout = busy_timeout
        self._in_memory = self.path == ":memory:"
        self._lock = RLock()  # held by the one writer of this process
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._vectors = TableVectors(self._read, "memories", "vectors", "tombstones")
        self.graph: GraphTruth = SQLiteGraph(self._read)
        self.merges: MergeLedger = SQLiteMerges(self._read, self._write)
        self.talk: Talk = SQLiteTalk(self._read)
        self.jobs: JobQueue = SQLiteJobs(self._read, self._write)
        self.lexicon: Lexicon = SQLiteLexicon(self._read)
        self.care: Care = SQLiteCare(self._read, self._write)
        self.archive: Archive = SQLiteArchive(self._read, self._write)
        if not self._in_memory:
            _make_folder(Path(self.path))
        with _as_store_error(f"open {self.path}"):
            if not self._in_memory:
                refuse_foreign_file(Path(self.path))
                _make_file(Path(self.path))  # its log and its shared memory take its permissions over
            self._writer = self._connect()
            self._writer.execute("PRAGMA cache_size = -32768")  # so that the inner pages of all indexes stay at hand
            self._migrate()
            if not filling:
                self._refuse_half_filled()

    # --- writing -------------------------------------------------------------------------------------------------

    def commit(
        self,
        changes: Sequence[Change],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        space: tuple[str, int] | None = None,
        refuse_twins: bool = False,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        mark: tuple[str, int] | None = None,
        apart: bool = False,
        rederived: bool = False,
    ) -> Commit:
        with self._write() as db:
            dims = _fix_space(db, space)
            targets = [_target(db, change) for change in changes]
            conflicts = tuple(i for i, change in enumerate(changes) if change.before is not None and not targets[i])
            if conflicts:
                return Commit(conflicts=conflicts)
            if lease is not None and not finish(db, lease):
                return Commit(lost=True)
            if mark is not None:
                set_mark(db, scope, *mark)
            heard = insert_messages(db, messages, scope, at)
            seq = next_seq(db, len(changes))
            applied, rows = list(changes), dict[int, int]()
            for place in what_goes_first(changes):
                change = changes[place]
                number = seq + place
                session = number if apart else seq
                row, applied[place] = _apply(db, change, targets[place], number, at, refuse_twins, dims, session)
                if row is not None and applied[place].event is not Event.DELETE:
                    rows[place] = row
                    _insert_sources(db, row, (heard[i] for i in change.sources))
            graph = GraphWriter(db, scope, at, dims, on_conflict)
            retracted = {
                target[0]: graph.retract(target[0])
                for change, target in zip(applied, targets, strict=True)
                if rederived and target is not None and change.event is Event.UPDATE
            }
            related = graph.apply(relations, rows, heard)
            for change, target in zip(applied, targets, strict=True):
                if target is not None and target[0] in retracted:
                    related += graph.settle(retracted[target[0]])
                elif target is not None and change.event is not Event.NONE:
                    left = change.after.text if change.event is Event.UPDATE else None
                    related += graph.withdraw(target[0], target[1].text, left)
            return Commit(applied=tuple(applied), relations=tuple(related))

    def pin(self, memory_id: str, pinned: bool) -> bool:
        with self._write() as db:
            return db.execute("UPDATE memories SET pinned = ? WHERE id = ?", (pinned, memory_id)).rowcount > 0

    def pinned(self, scope: Scope) -> list[MemoryItem]:
        where, values = scope_sql(scope)
        with self._read() as db:
            return [item for _, item in _select(db, f"WHERE {where} AND pinned ORDER BY created_at, row", values)]

    def summarise(self, scope: Scope, summary: Summary, lease: Lease) -> bool:
        with self._write() as db:
            if not finish(db, lease):
                return False
            write_summary(db, scope, summary)
            return True

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        with self._write() as db:
            rows = [row for memory_id in memory_ids for row in _select(db, "WHERE id = ?", (memory_id,))]
            bygone = _erase_past(db, memory_ids, at, sparing={item.id for _, item in rows})
            _erase_rows(db, rows, at)
            if purge:
                _purge(db, memory_ids)
        self._wipe(thoroughly=purge)
        return len(rows) + bygone

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        where, values = scope_sql(scope)
        with self._write() as db:
            rows = _select(db, f"WHERE {where}", values)
            past = db.execute(f"SELECT DISTINCT id FROM past WHERE {where}", values).fetchall()
            _erase_past(db, [memory_id for (memory_id,) in past], at)
            _erase_rows(db, rows, at)
            forget_merges(db, scope)
            erase_graph(db, scope)
            erase_jobs(db, scope)
            db.execute(f"DELETE FROM summaries WHERE {where}", values)
            db.execute(f"DELETE FROM imports WHERE {where}", values)
            db.execute(f"DELETE FROM messages WHERE {where}", values)
            if purge:
                gone = db.execute(f"SELECT memory_id FROM tombstones WHERE {where}", values).fetchall()
                _purge(db, [memory_id for (memory_id,) in gone])
                for tombstones in ("tombstones", "node_tombstones", "edge_tombstones"):
                    db.execute(f"DELETE FROM {tombstones} WHERE {where}", values)
                begin_epoch(db)  # with the tombstones gone, projections cannot follow: they start anew
        self._wipe(thoroughly=purge)
        return len(rows)

    def embeddables(self) -> list[Embeddable]:
        with self._read() as db:
            told = "SELECT row, seq, text FROM"
            said = [Embeddable("memory", *row) for row in db.execute(f"{told} memories ORDER BY row")]
            gone = [Embeddable("past", *row) for row in db.execute(f"{told} past ORDER BY row")]
            named = [Embeddable("node", *row) for row in db.execute("SELECT row, seq, name FROM nodes ORDER BY row")]
            joined = (
                "SELECT e.row, e.seq, s.name, e.relationship, d.name FROM edges AS e"
                " JOIN nodes AS s ON s.row = e.source JOIN nodes AS d ON d.row = e.destination ORDER BY e.row"
            )
            related = [
                Embeddable("relation", row, seq, Triplet(*parts).sentence) for row, seq, *parts in db.execute(joined)
            ]
        return [*said, *gone, *named, *related]

    def reembed(self, vectors: Sequence[tuple[Embeddable, Any]], *, space: tuple[str, int]) -> None:
        with self._write() as db:
            replaced = sum(
                db.execute(_VECTORS[part.kind], (to_blob(vector, space[1]), part.row, part.seq)).rowcount
                for part, vector in vectors
            )
            tables = ("vectors", "past", "node_vectors", "edge_vectors")
            held = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
            if not held == replaced == len(vectors):
                raise StoreError("memories changed while they were embedded anew; nothing is replaced, try again")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('space', ?)", (json.dumps(space),))
            begin_epoch(db)

    def reset(self) -> None:
        with self._write() as db:
            empty_words(db)
            for table in _TABLES:
                db.execute(f"DELETE FROM {table}")
            db.execute("DELETE FROM meta WHERE key = 'space'")
            begin_epoch(db)
        self._wipe(thoroughly=True)

    # --- reading -------------------------------------------------------------------------------------------------

    def marked(self, scope: Scope, key: str) -> int:
        with self._read() as db:
            found = db.execute(f"SELECT done FROM imports WHERE {SAME_SCOPE} AND key = ?", (*exact_ids(scope), key))
            return int((found.fetchone() or (0,))[0])

    def space(self) -> tuple[str, int] | None:
        with self._read() as db:
            return held_space(db)

    def get(self, memory_id: str) -> MemoryItem | None:
        with self._read() as db:
            found = _select(db, "WHERE id = ?", (memory_id,))
        return found[0][1] if found else None

    def row(self, memory_id: str) -> int | None:
        with self._read() as db:
            found = db.execute("SELECT row FROM memories WHERE id = ?", (memory_id,)).fetchone()
        return found[0] if found else None

    def known(self, scope: Scope, keys: Sequence[bytes]) -> dict[bytes, MemoryItem]:
        with self._read() as db:
            return {key: twin[1] for key in keys if (twin := _twin(db, scope, key))}

    def find(self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None) -> list[MemoryItem]:
        where, values = _where(scope, filter)
        with self._read() as db:
            tail = f"WHERE {where} ORDER BY created_at, row LIMIT ?"
            return [item for _, item in _select(db, tail, (*values, limit_sql(limit)))]

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        where, values = _where(scope, filter)
        if as_of is not None:
            where, values = f"{where} AND valid_from <= ?", [*values, as_of]
        with self._read() as db:
            return numbers(db.execute(f"SELECT row FROM memories WHERE {where}", values).fetchall())

    def past(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> tuple[list[MemoryItem], NDArray[np.float32]]:
        where, values = _where(scope, filter)
        sql = f"SELECT row, {SAID_COLUMNS}, 0, vector FROM past WHERE {where} AND valid_to > ? AND valid_from <= ?"
        with self._read() as db:
            rows = db.execute(f"{sql} ORDER BY row", (*values, as_of, as_of)).fetchall()
        return [item_of(row, json.loads) for row in rows], stack([row[-1] for row in rows])

    def by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, MemoryItem]:
        where = scope_sql_unindexed(scope)
        found: dict[int, MemoryItem] = {}
        with self._read() as db:
            for chunk in chunks(rows):
                found |= _select(db, f"WHERE row IN ({marks(chunk)}) AND {where}", (*chunk, *scope.ids.values()))
        return found

    def history(self, memory_id: str) -> list[HistoryRow]:
        with self._read() as db:
            rows = db.execute(
                f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE memory_id = ? ORDER BY rowid", (memory_id,)
            ).fetchall()
        return [dataclasses.replace(HistoryRow(*row), is_deleted=bool(row[7])) for row in rows]

    # --- what projections read -----------------------------------------------------------------------------------

    def position(self, scope: Scope) -> Position:
        return self._vectors.position(scope)

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        return self._vectors.vector_changes(scope, after=after, limit=limit)

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._vectors.vectors(rows)

    # --- connections ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._closed = True
            connections, self._idle = [*self._idle, self._writer], []
            for connection in connections:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path,
            timeout=self._busy_timeout,
            isolation_level=None,  # we write BEGIN and COMMIT ourselves
            check_same_thread=False,  # a connection serves one thread at a time, but not always the same
            cached_statements=256,
        )
        db.create_function("casefold", 1, casefold, deterministic=True)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA cache_size = -8192")  # KiB; the file system's cache holds the rest
        db.execute("PRAGMA wal_autocheckpoint = 4000")  # pages (16 MB): what many commits change is copied back once
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")
        return db

    def _migrate(self) -> None:
        db = self._writer
        refuse_foreign(db, self.path)
        if db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS) and not is_stale(db):
            return
        if not self._in_memory:
            _retry_while_locked(lambda: db.execute("PRAGMA journal_mode = WAL"), self._busy_timeout)
        with self._write():
            step = db.execute("PRAGMA user_version").fetchone()[0]
            if step > len(MIGRATIONS):
                raise StoreError(f"{self.path} was written by a newer version (schema {step}, known {len(MIGRATIONS)})")
            for script in MIGRATIONS[step:]:
                for statement in _statements(script):
                    db.execute(statement)
            refresh_words(db)
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _refuse_half_filled(self) -> None:
        try:
            check_filled(self.archive.progress())
        except StoreError as error:
            self._writer.close()
            raise StoreError(f"{self.path}: {error}") from error

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        with self._lock, _as_store_error(f"write to {self.path}"):
            self._check_open()
            db = self._writer
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back by itself
                    db.execute("ROLLBACK")
                raise

    def _read(self) -> _Reading:
        """A connection of its own, so that reading never waits for a commit of this process."""
        return _Reading(self)

    def _lend(self) -> sqlite3.Connection:
        self._check_open()
        if self._in_memory:
            self._lock.acquire()
            return self._writer
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _take_back(self, db: sqlite3.Connection) -> None:
        if self._in_memory:
            self._lock.release()
        elif self._closed:
            db.close()
        else:
            self._idle.append(db)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed")

    def _wipe(self, *, thoroughly: bool) -> None:
        """Let no deleted text outlive the call in the log; thoroughly, nor in free pages, by rewriting the file.

        Without `thoroughly` a reader in the way is left in peace: the log is emptied when it is gone.
        """
        if self._in_memory:
            return
        with self._lock, _as_store_error(f"scrub {self.path}"):
            if thoroughly:
                with self._write() as db:
                    scrub_words(db)
                _retry_while_locked(lambda: self._writer.execute("VACUUM"), self._busy_timeout)
            deadline = time.monotonic() + (self._busy_timeout if thoroughly else 0)
            while self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    if thoroughly:
                        raise StoreError(f"purged, but a reader of {self.path} keeps its old log: purge again later")
                    break
                time.sleep(0.02)


# --- changes -----------------------------------------------------------------------------------------------------


def _target(db: sqlite3.Connection, change: Change) -> Placed | None:
    """The memory an UPDATE or DELETE was planned on, if it still is what the plan saw."""
    if change.before is None:
        return None
    found = _select(db, "WHERE id = ?", (change.after.id,))
    return found[0] if found and aims_at(change, found[0][1]) else None


def _apply(
    db: sqlite3.Connection,
    change: Change,
    target: Placed | None,
    seq: int,
    at: str,
    refuse_twins: bool,
    dims: int,
    session: int,
) -> tuple[int | None, Change]:
    """Write one change; returns the memory's row (None if it is gone) and the change as it took effect."""
    if change.event is Event.NONE:
        found = _select(db, "WHERE id = ?", (change.after.id,)) if change.sources else []
        return (found[0][0] if found else None), change
    if target is None:
        return _add(db, change, seq, dims, session)
    row, item = target
    if change.event is Event.UPDATE and _update(db, row, change, seq, dims):
        return row, change
    if change.event is Event.UPDATE and refuse_twins:
        raise InputError(f"another memory of this scope says this already: delete {item.id!r} instead")
    # An UPDATE to what another memory of the scope already says would make a twin: this one goes instead.
    _end_row(db, row, item, at)
    return row, dataclasses.replace(change, event=Event.DELETE, after=item)


def _add(db: sqlite3.Connection, change: Change, seq: int, dims: int, session: int) -> tuple[int, Change]:
    item = change.after
    same = same_fact_key(item.text, item.actor_id)
    inserted = db.execute(
        f"INSERT INTO memories ({SAID_COLUMNS}, same, valid_from)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING row",
        (*said_of(item, to_json, seq), same, item.created_at),
    ).fetchone()
    if inserted is None:
        twin = _twin(db, item.scope, same)
        if twin is None:
            raise StoreError(f"a memory with the id {item.id!r} exists already")
        return twin[0], _renew(db, twin[0], twin[1], change, seq)
    row: int = inserted[0]
    db.execute("INSERT INTO vectors VALUES (?, ?)", (row, to_blob(change.vector, dims)))
    write_words(db, row, item, session_of(*ids_of(item.scope), session))
    _insert_history(db, item, Event.ADD, None, item.text, None)
    return row, Change(change.event, dataclasses.replace(item, seq=seq), sources=change.sources)


def _renew(db: sqlite3.Connection, row: int, twin: MemoryItem, change: Change, seq: int) -> Change:
    done = renewed(change, twin, seq)
    if done.event is Event.UPDATE:
        db.execute(
            "UPDATE memories SET expiration_date = ?, seq = ? WHERE row = ?", (done.after.expiration_date, seq, row)
        )
    return done


def _twin(db: sqlite3.Connection, scope: Scope, same: bytes) -> Placed | None:
    twins = _select(db, f"WHERE {SAME_SCOPE} AND same = ?", (*exact_ids(scope), same))
    return twins[0] if twins else None


def _update(db: sqlite3.Connection, row: int, change: Change, seq: int, dims: int) -> bool:
    """Whether the memory could take the new text: not if another memory of its scope says the same."""
    item = change.after
    same = same_fact_key(item.text, item.actor_id)
    twin = _twin(db, item.scope, same)
    if twin is not None and twin[0] != row:
        return False
    since = item.updated_at or item.created_at
    said_anew = item.text != change.before
    if said_anew:
        _keep_past(db, row, since)
    session = erase_words(db, row)
    db.execute(
        "UPDATE memories SET text = ?, hash = ?, same = ?, metadata = ?, actor_id = ?, role = ?, updated_at = ?,"
        " expiration_date = ?, seq = ?, valid_from = iif(?, max(valid_from, ?), valid_from) WHERE row = ?",
        (
            item.text,
            item.hash,
            same,
            to_json(item.metadata),
            item.actor_id,
            item.role,
            item.updated_at,
            item.expiration_date,
            seq,
            said_anew,
            since,
            row,
        ),
    )
    write_words(db, row, item, session)
    if change.vector is not None:
        db.execute("UPDATE vectors SET vector = ? WHERE row = ?", (to_blob(change.vector, dims), row))
    if said_anew:  # the history is of texts; metadata alone leaves no row
        _insert_history(db, item, Event.UPDATE, change.before, item.text, item.updated_at)
    return True


def _keep_past(db: sqlite3.Connection, row: int, until: str) -> None:
    """Keep what a memory says as what it said before `until`."""
    db.execute(
        f"INSERT INTO past ({SAID_COLUMNS}, memory, valid_from, valid_to, vector)"
        f" SELECT {SAID_COLUMNS}, row, valid_from, max(valid_from, ?), vector"
        " FROM memories JOIN vectors USING (row) WHERE row = ?",
        (until, row),
    )


def _end_row(db: sqlite3.Connection, row: int, item: MemoryItem, at: str) -> None:
    """A plan's DELETE: what the memory said no longer holds. Its messages stay, as part of the conversation."""
    _keep_past(db, row, at)
    _remove_row(db, row, item, at)


def _erase_rows(db: sqlite3.Connection, rows: Iterable[Placed], at: str) -> None:
    """A user's delete: memories go with all that came of them and the messages they came from."""
    for row, item in rows:
        _erase_traces(db, row, item.scope, at)
        _remove_row(db, row, item, at)


def _erase_past(db: sqlite3.Connection, memory_ids: Iterable[str], at: str, *, sparing: Set[str] = frozenset()) -> int:
    """Erase what memories said; those not in `sparing` are gone, so their traces go too. Returns how many were gone."""
    bygone: set[str] = set()
    erase = "DELETE FROM past WHERE id = ? RETURNING memory, user_id, agent_id, run_id"
    for memory_id in memory_ids:
        for row, *ids in db.execute(erase, (memory_id,)).fetchall():
            if memory_id not in sparing:
                bygone.add(memory_id)
                _erase_traces(db, row, scope_of(*ids), at)
    return len(bygone)


def _erase_traces(db: sqlite3.Connection, row: int, scope: Scope, at: str) -> None:
    """Erase what came of a memory: its relations, its messages; summaries of them are to be made anew."""
    forget_support(db, row, scope)
    erase_support(db, row)
    if erase_summaries(db, scope):
        put(db, scope, "summary", at=at)
    db.execute("DELETE FROM messages WHERE row IN (SELECT message FROM sources WHERE memory = ?)", (row,))


def _remove_row(db: sqlite3.Connection, row: int, item: MemoryItem, at: str) -> None:
    tombstone = (next_seq(db, 1), row, item.id, *ids_of(item.scope))
    erase_words(db, row)
    db.execute("DELETE FROM memories WHERE row = ?", (row,))
    db.execute("INSERT INTO tombstones VALUES (?, ?, ?, ?, ?, ?)", tombstone)
    _insert_history(db, item, Event.DELETE, item.text, None, at)


def _purge(db: sqlite3.Connection, memory_ids: Sequence[str]) -> None:
    """Remove the history of memories that are gone, and what is left of the messages they came from.

    Their tombstones stay, without text, so that projections still learn what to drop.
    """
    for chunk in chunks(memory_ids):
        among = f"IN ({marks(chunk)})"
        rows = f"SELECT row FROM tombstones WHERE memory_id {among}"
        db.execute(f"DELETE FROM messages WHERE row IN (SELECT message FROM sources WHERE memory IN ({rows}))", chunk)
        db.execute(f"DELETE FROM history WHERE memory_id {among}", chunk)


def _insert_history(
    db: sqlite3.Connection, item: MemoryItem, event: Event, old: str | None, new: str | None, updated_at: str | None
) -> None:
    row = history_row(item, event, old, new, updated_at)
    db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _insert_sources(db: sqlite3.Connection, memory: int, messages: Iterable[int]) -> None:
    db.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?)", [(memory, message) for message in messages])


# --- meta --------------------------------------------------------------------------------------------------------


def _fix_space(db: sqlite3.Connection, space: tuple[str, int] | None) -> int:
    """Check a commit's space against the store's, or make it the store's; returns its dims, 0 for none."""
    if space is None:
        return 0
    held = held_space(db)
    check_space(held, space)
    if held is None:
        db.execute("INSERT INTO meta VALUES ('space', ?)", (json.dumps(space),))
    return space[1]


# --- rows and SQL ------------------------------------------------------------------------------------------------


def _select(db: sqlite3.Connection, tail: str, values: Sequence[Any]) -> list[Placed]:
    rows = db.execute(f"SELECT {_MEMORY_COLUMNS} FROM memories {tail}", values).fetchall()
    return [(row[0], item_of(row, json.loads, row[0])) for row in rows]


def _where(scope: Scope | None, filter: Filter | None) -> tuple[str, list[Any]]:
    where, values = scope_sql(scope) if scope else ("1", [])
    if filter is not None:
        condition, more = filter_sql(filter)
        where, values = f"{where} AND {condition}", values + more
    return where, values


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one at a time: `executescript` would commit the transaction around them."""
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            yield buffer
            buffer = ""


def _make_folder(path: Path) -> None:
    try:
        make_folder(path.parent)
    except OSError as error:
        raise StoreError(f"cannot make the folder {path.parent}: {error}") from error


def _make_file(path: Path) -> None:
    try:
        make_file(path)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error}") from error


def _retry_while_locked(action: Any, seconds: float) -> None:
    """Some statements (switching to WAL, VACUUM) do not wait for a lock by themselves."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class _Reading:
    """A connection lent for a block; a class, as `contextmanager` takes as long as the shortest statements."""

    __slots__ = ("_db", "_store")

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._db = self._store._lend()
        except sqlite3.Error as error:
            _raise_as_ours(error, f"read {self._store.path}")
            raise
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._store._take_back(self._db)
        if error is not None:
            _raise_as_ours(error, f"read {self._store.path}")


@contextmanager
def _as_store_error(doing: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _raise_as_ours(error, doing)
        raise


def _raise_as_ours(error: BaseException, doing: str) -> None:
    """Raise what stands for an error of SQLite's; other errors are let be."""
    if isinstance(error, UnicodeEncodeError):
        raise InputError(f"not valid Unicode (a lone surrogate): {error.object[:40]!r}") from error
    if isinstance(error, sqlite3.Error | sqlite3.Warning):
        raise StoreError(f"cannot {doing}: {error}") from error
