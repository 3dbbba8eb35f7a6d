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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.domain.filters import Filter
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    Triplet,
    same_fact_key,
)
from mem0_core.errors import InputError, StoreError
from mem0_core.interfaces import (
    ChangePosition,
    CommitResult,
    EmbeddedItem,
    GraphStore,
    JobQueue,
    Lease,
    Lexicon,
    MergeLedger,
    MessageLog,
    OnConflict,
    Summary,
    VectorChanges,
)
from mem0_core.interfaces.archive import Archive, check_load_complete
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.stores.sql.graph import GraphWriter, SqlGraph, erase_evidence, erase_graph
from mem0_core.stores.sql.merges import SqlMerges, erase_from_merges, erase_merges
from mem0_core.stores.sql.messages import SqlMessageLog, erase_summaries, insert_messages, insert_summary
from mem0_core.stores.sql.meta import (
    begin_epoch,
    claim_embedding_space,
    read_embedding_space,
    read_import_checkpoint,
    save_import_checkpoint,
)
from mem0_core.stores.sql.queue import SqlJobQueue, enqueue_job, erase_jobs, finish_jobs
from mem0_core.stores.sql.rows import (
    CONTENT_COLUMNS,
    StoredMemory,
    content_values,
    first_column,
    history_values,
    is_plan_current,
    memory_from_row,
    resolve_duplicate_add,
    scope_from_ids,
    scope_ids,
    session_number,
    write_order,
)
from mem0_core.stores.sql.vectors import EDGE_VECTORS, MEMORY_VECTORS, NODE_VECTORS, SqlVectors
from mem0_core.stores.sqlite.archive import SQLiteArchive
from mem0_core.stores.sqlite.dialect import SQLITE
from mem0_core.stores.sqlite.filters import filter_sql
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
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    chunks,
    exact_scope_values,
    limit_sql,
    placeholders,
    reserve_seqs,
    scope_sql,
    scope_sql_unindexed,
    stack_vectors,
    to_blob,
    to_json,
)
from mem0_core.stores.sqlite.schema import HISTORY_COLUMNS, SCHEMA_VERSIONS
from mem0_core.stores.sqlite.session import Database, drive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SQLiteStore"]

_MEMORY_COLUMNS = f"row, {CONTENT_COLUMNS}, pinned"
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

_UPDATE_VECTOR_SQL: dict[str, str] = {
    "memory": "UPDATE vectors SET vector = ?1 WHERE row = (SELECT row FROM memories WHERE row = ?2 AND seq = ?3)",
    "past": "UPDATE past SET vector = ?1 WHERE row = ?2 AND seq = ?3",
    "node": "UPDATE node_vectors SET vector = ?1 WHERE row = (SELECT row FROM nodes WHERE row = ?2 AND seq = ?3)",
    "relation": "UPDATE edge_vectors SET vector = ?1 WHERE row = (SELECT row FROM edges WHERE row = ?2 AND seq = ?3)",
}
"""How the vector of each kind of `EmbeddedItem` is replaced."""


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
        is_loading: bool = False,
    ) -> None:
        self._db = Database(path, durability=durability, busy_timeout=busy_timeout)
        self.path = self._db.path
        self._read, self._write = self._db.read, self._db.write
        self._vectors = SqlVectors(self._db, MEMORY_VECTORS)
        self.graph: GraphStore = SqlGraph(
            self._db, SqlVectors(self._db, NODE_VECTORS), SqlVectors(self._db, EDGE_VECTORS)
        )
        self.merges: MergeLedger = SqlMerges(self._db)
        self.message_log: MessageLog = SqlMessageLog(self._db)
        self.jobs: JobQueue = SqlJobQueue(self._db)
        self.lexicon: Lexicon = SQLiteLexicon(self._read)
        self.maintenance: StoreMaintenance = SQLiteMaintenance(self._read, self._write)
        self.archive: Archive = SQLiteArchive(self._read, self._write)
        with self._db.as_store_error("open"):
            self._migrate()
            if not is_loading:
                self._check_load_finished()

    # --- writing -------------------------------------------------------------------------------------------------

    def commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        reject_duplicates: bool = False,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
        replace_relations: bool = False,
    ) -> CommitResult:
        with self._write() as db:
            dims = drive(db, claim_embedding_space(embedding_space))
            targets = [_find_target(db, change) for change in changes]
            conflicts = tuple(i for i, change in enumerate(changes) if change.before is not None and not targets[i])
            if conflicts:
                return CommitResult(conflicts=conflicts)
            if lease is not None and not drive(db, finish_jobs(SQLITE, lease)):
                return CommitResult(lease_lost=True)
            if import_checkpoint is not None:
                drive(db, save_import_checkpoint(SQLITE, scope, *import_checkpoint))
            heard = drive(db, insert_messages(SQLITE, messages, scope, at))
            seq = reserve_seqs(db, len(changes))
            applied, rows = list(changes), dict[int, int]()
            for place in write_order(changes):
                change = changes[place]
                number = seq + place
                session = number if distinct_sessions else seq
                row, applied[place] = _apply(db, change, targets[place], number, at, reject_duplicates, dims, session)
                if row is not None and applied[place].event is not Event.DELETE:
                    rows[place] = row
                    _insert_sources(db, row, (heard[i] for i in change.message_indexes))
            graph = GraphWriter(SQLITE, scope, at, dims, on_conflict)
            retracted = {
                target[0]: drive(db, graph.withdraw_relations(target[0]))
                for change, target in zip(applied, targets, strict=True)
                if replace_relations and target is not None and change.event is Event.UPDATE
            }
            related = drive(db, graph.apply(relations, rows, heard))
            for change, target in zip(applied, targets, strict=True):
                if target is not None and target[0] in retracted:
                    related += drive(db, graph.close_unsupported(retracted[target[0]]))
                elif target is not None and change.event is not Event.NONE:
                    left = change.after.text if change.event is Event.UPDATE else None
                    related += drive(db, graph.withdraw(target[0], target[1].text, left))
            return CommitResult(applied=tuple(applied), relations=tuple(related))

    def pin(self, memory_id: str, pinned: bool) -> bool:
        with self._write() as db:
            return db.execute("UPDATE memories SET pinned = ? WHERE id = ?", (pinned, memory_id)).rowcount > 0

    def pinned_memories(self, scope: Scope) -> list[MemoryItem]:
        where, values = scope_sql(scope)
        with self._read() as db:
            return [item for _, item in _select(db, f"WHERE {where} AND pinned ORDER BY created_at, row", values)]

    def save_summary(self, scope: Scope, summary: Summary, lease: Lease) -> bool:
        with self._write() as db:
            if not drive(db, finish_jobs(SQLITE, lease)):
                return False
            drive(db, insert_summary(SQLITE, scope, summary))
            return True

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        with self._write() as db:
            rows = [row for memory_id in memory_ids for row in _select(db, "WHERE id = ?", (memory_id,))]
            bygone = _erase_past(db, memory_ids, at, keep_ids={item.id for _, item in rows})
            _erase_rows(db, rows, at)
            if purge:
                _purge(db, memory_ids)
        self._purge_deleted_text(rewrite_file=purge)
        return len(rows) + bygone

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        where, values = scope_sql(scope)
        with self._write() as db:
            rows = _select(db, f"WHERE {where}", values)
            past = db.execute(f"SELECT DISTINCT id FROM past WHERE {where}", values).fetchall()
            _erase_past(db, [memory_id for (memory_id,) in past], at)
            _erase_rows(db, rows, at)
            drive(db, erase_merges(SQLITE, scope))
            drive(db, erase_graph(SQLITE, scope))
            drive(db, erase_jobs(SQLITE, scope))
            db.execute(f"DELETE FROM summaries WHERE {where}", values)
            db.execute(f"DELETE FROM imports WHERE {where}", values)
            db.execute(f"DELETE FROM messages WHERE {where}", values)
            if purge:
                gone = db.execute(f"SELECT memory_id FROM tombstones WHERE {where}", values).fetchall()
                _purge(db, [memory_id for (memory_id,) in gone])
                for tombstones in ("tombstones", "node_tombstones", "edge_tombstones"):
                    db.execute(f"DELETE FROM {tombstones} WHERE {where}", values)
                drive(db, begin_epoch())  # with the tombstones gone, projections cannot follow: they start anew
        self._purge_deleted_text(rewrite_file=purge)
        return len(rows)

    def embedded_items(self) -> list[EmbeddedItem]:
        with self._read() as db:
            told = "SELECT row, seq, text FROM"
            said = [EmbeddedItem("memory", *row) for row in db.execute(f"{told} memories ORDER BY row")]
            gone = [EmbeddedItem("past", *row) for row in db.execute(f"{told} past ORDER BY row")]
            named = [EmbeddedItem("node", *row) for row in db.execute("SELECT row, seq, name FROM nodes ORDER BY row")]
            joined = (
                "SELECT e.row, e.seq, s.name, e.relationship, d.name FROM edges AS e"
                " JOIN nodes AS s ON s.row = e.source JOIN nodes AS d ON d.row = e.destination ORDER BY e.row"
            )
            related = [
                EmbeddedItem("relation", row, seq, Triplet(*parts).sentence) for row, seq, *parts in db.execute(joined)
            ]
        return [*said, *gone, *named, *related]

    def replace_vectors(self, vectors: Sequence[tuple[EmbeddedItem, Any]], *, embedding_space: tuple[str, int]) -> None:
        with self._write() as db:
            replaced = sum(
                db.execute(
                    _UPDATE_VECTOR_SQL[part.kind], (to_blob(vector, embedding_space[1]), part.row, part.seq)
                ).rowcount
                for part, vector in vectors
            )
            tables = ("vectors", "past", "node_vectors", "edge_vectors")
            held = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
            if not held == replaced == len(vectors):
                raise StoreError("memories changed while they were embedded anew; nothing is replaced, try again")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('space', ?)", (json.dumps(embedding_space),))
            drive(db, begin_epoch())

    def reset(self) -> None:
        with self._write() as db:
            clear_word_index(db)
            for table in _TABLES:
                db.execute(f"DELETE FROM {table}")
            db.execute("DELETE FROM meta WHERE key = 'space'")
            drive(db, begin_epoch())
        self._purge_deleted_text(rewrite_file=True)

    # --- reading -------------------------------------------------------------------------------------------------

    def import_checkpoint(self, scope: Scope, key: str) -> int:
        return self._db.run(lambda: read_import_checkpoint(SQLITE, scope, key), "read")

    def embedding_space(self) -> tuple[str, int] | None:
        with self._read() as db:
            return drive(db, read_embedding_space())

    def get(self, memory_id: str) -> MemoryItem | None:
        with self._read() as db:
            found = _select(db, "WHERE id = ?", (memory_id,))
        return found[0][1] if found else None

    def row(self, memory_id: str) -> int | None:
        with self._read() as db:
            found = db.execute("SELECT row FROM memories WHERE id = ?", (memory_id,)).fetchone()
        return found[0] if found else None

    def find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> dict[bytes, MemoryItem]:
        with self._read() as db:
            return {key: duplicate[1] for key in keys if (duplicate := _find_duplicate(db, scope, key))}

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        where, values = _where(scope, filter)
        with self._read() as db:
            tail = f"WHERE {where} ORDER BY created_at, row LIMIT ?"
            return [item for _, item in _select(db, tail, (*values, limit_sql(limit)))]

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        where, values = _where(scope, filter)
        if as_of is not None:
            where, values = f"{where} AND valid_from <= ?", [*values, as_of]
        with self._read() as db:
            return first_column(db.execute(f"SELECT row FROM memories WHERE {where}", values).fetchall())

    def past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> tuple[list[MemoryItem], NDArray[np.float32]]:
        where, values = _where(scope, filter)
        sql = f"SELECT row, {CONTENT_COLUMNS}, 0, vector FROM past WHERE {where} AND valid_to > ? AND valid_from <= ?"
        with self._read() as db:
            rows = db.execute(f"{sql} ORDER BY row", (*values, as_of, as_of)).fetchall()
        return [memory_from_row(row, json.loads) for row in rows], stack_vectors([row[-1] for row in rows])

    def memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, MemoryItem]:
        where = scope_sql_unindexed(scope)
        found: dict[int, MemoryItem] = {}
        with self._read() as db:
            for chunk in chunks(rows):
                found |= _select(db, f"WHERE row IN ({placeholders(chunk)}) AND {where}", (*chunk, *scope.ids.values()))
        return found

    def history(self, memory_id: str) -> list[HistoryRow]:
        with self._read() as db:
            rows = db.execute(
                f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE memory_id = ? ORDER BY rowid", (memory_id,)
            ).fetchall()
        return [dataclasses.replace(HistoryRow(*row), is_deleted=bool(row[7])) for row in rows]

    # --- what projections read -----------------------------------------------------------------------------------

    def position(self, scope: Scope) -> ChangePosition:
        return self._vectors.position(scope)

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        return self._vectors.vector_changes(scope, after=after, limit=limit)

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._vectors.vectors(rows)

    # --- connections ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._db.close()

    def _migrate(self) -> None:
        db = self._db.writer
        refuse_foreign(db, self.path)
        if db.execute("PRAGMA user_version").fetchone()[0] == len(SCHEMA_VERSIONS) and not is_word_index_stale(db):
            return
        if not self._db.in_memory:
            self._db.retry_while_locked("PRAGMA journal_mode = WAL")
        with self._write():
            step = db.execute("PRAGMA user_version").fetchone()[0]
            if step > len(SCHEMA_VERSIONS):
                raise StoreError(
                    f"{self.path} was written by a newer version (schema {step}, known {len(SCHEMA_VERSIONS)})"
                )
            for script in SCHEMA_VERSIONS[step:]:
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

    def _purge_deleted_text(self, *, rewrite_file: bool) -> None:
        """Let no deleted text outlive the call in the log; thoroughly, nor in free pages, by rewriting the file.

        Without `rewrite_file` a reader in the way is left in peace: the log is emptied when it is gone.
        """
        if self._db.in_memory:
            return
        with self._db.exclusive("scrub") as writer:
            if rewrite_file:
                with self._write() as db:
                    purge_word_index(db)
                self._db.retry_while_locked("VACUUM")
            deadline = time.monotonic() + (self._db.busy_timeout if rewrite_file else 0)
            while writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > deadline:
                    if rewrite_file:
                        raise StoreError(f"purged, but a reader of {self.path} keeps its old log: purge again later")
                    break
                time.sleep(0.02)


# --- changes -----------------------------------------------------------------------------------------------------


def _find_target(db: sqlite3.Connection, change: MemoryChange) -> StoredMemory | None:
    """The memory an UPDATE or DELETE was planned on, if it still is what the plan saw."""
    if change.before is None:
        return None
    found = _select(db, "WHERE id = ?", (change.after.id,))
    return found[0] if found and is_plan_current(change, found[0][1]) else None


def _apply(
    db: sqlite3.Connection,
    change: MemoryChange,
    target: StoredMemory | None,
    seq: int,
    at: str,
    reject_duplicates: bool,
    dims: int,
    session: int,
) -> tuple[int | None, MemoryChange]:
    """Write one change; returns the memory's row (None if it is gone) and the change as it took effect."""
    if change.event is Event.NONE:
        found = _select(db, "WHERE id = ?", (change.after.id,)) if change.message_indexes else []
        return (found[0][0] if found else None), change
    if target is None:
        return _add(db, change, seq, dims, session)
    row, item = target
    if change.event is Event.UPDATE and _update(db, row, change, seq, dims):
        return row, change
    if change.event is Event.UPDATE and reject_duplicates:
        raise InputError(f"another memory of this scope says this already: delete {item.id!r} instead")
    # An UPDATE to what another memory of the scope already says would make a twin: this one goes instead.
    _close_memory(db, row, item, at)
    return row, dataclasses.replace(change, event=Event.DELETE, after=item)


def _add(db: sqlite3.Connection, change: MemoryChange, seq: int, dims: int, session: int) -> tuple[int, MemoryChange]:
    item = change.after
    same = same_fact_key(item.text, item.actor_id)
    inserted = db.execute(
        f"INSERT INTO memories ({CONTENT_COLUMNS}, same, valid_from)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING row",
        (*content_values(item, to_json, seq), same, item.created_at),
    ).fetchone()
    if inserted is None:
        duplicate = _find_duplicate(db, item.scope, same)
        if duplicate is None:
            raise StoreError(f"a memory with the id {item.id!r} exists already")
        return duplicate[0], _resolve_duplicate(db, duplicate[0], duplicate[1], change, seq)
    row: int = inserted[0]
    db.execute("INSERT INTO vectors VALUES (?, ?)", (row, to_blob(change.vector, dims)))
    index_memory(db, row, item, session_number(*scope_ids(item.scope), session))
    _insert_history(db, item, Event.ADD, None, item.text, None)
    return row, MemoryChange(change.event, dataclasses.replace(item, seq=seq), message_indexes=change.message_indexes)


def _resolve_duplicate(
    db: sqlite3.Connection, row: int, duplicate: MemoryItem, change: MemoryChange, seq: int
) -> MemoryChange:
    done = resolve_duplicate_add(change, duplicate, seq)
    if done.event is Event.UPDATE:
        db.execute(
            "UPDATE memories SET expiration_date = ?, seq = ? WHERE row = ?", (done.after.expiration_date, seq, row)
        )
    return done


def _find_duplicate(db: sqlite3.Connection, scope: Scope, same: bytes) -> StoredMemory | None:
    twins = _select(db, f"WHERE {EXACT_SCOPE_CONDITION} AND same = ?", (*exact_scope_values(scope), same))
    return twins[0] if twins else None


def _update(db: sqlite3.Connection, row: int, change: MemoryChange, seq: int, dims: int) -> bool:
    """Whether the memory could take the new text: not if another memory of its scope says the same."""
    item = change.after
    same = same_fact_key(item.text, item.actor_id)
    duplicate = _find_duplicate(db, item.scope, same)
    if duplicate is not None and duplicate[0] != row:
        return False
    since = item.updated_at or item.created_at
    said_anew = item.text != change.before
    if said_anew:
        _insert_past(db, row, since)
    session = unindex_memory(db, row)
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
    index_memory(db, row, item, session)
    if change.vector is not None:
        db.execute("UPDATE vectors SET vector = ? WHERE row = ?", (to_blob(change.vector, dims), row))
    if said_anew:  # the history is of texts; metadata alone leaves no row
        _insert_history(db, item, Event.UPDATE, change.before, item.text, item.updated_at)
    return True


def _insert_past(db: sqlite3.Connection, row: int, until: str) -> None:
    """Keep what a memory says as what it said before `until`."""
    db.execute(
        f"INSERT INTO past ({CONTENT_COLUMNS}, memory, valid_from, valid_to, vector)"
        f" SELECT {CONTENT_COLUMNS}, row, valid_from, max(valid_from, ?), vector"
        " FROM memories JOIN vectors USING (row) WHERE row = ?",
        (until, row),
    )


def _close_memory(db: sqlite3.Connection, row: int, item: MemoryItem, at: str) -> None:
    """A plan's DELETE: what the memory said no longer holds. Its messages stay, as part of the conversation."""
    _insert_past(db, row, at)
    _remove_row(db, row, item, at)


def _erase_rows(db: sqlite3.Connection, rows: Iterable[StoredMemory], at: str) -> None:
    """A user's delete: memories go with all that came of them and the messages they came from."""
    for row, item in rows:
        _erase_traces(db, row, item.scope, at)
        _remove_row(db, row, item, at)


def _erase_past(db: sqlite3.Connection, memory_ids: Iterable[str], at: str, *, keep_ids: Set[str] = frozenset()) -> int:
    """Erase what memories said; those not in `keep_ids` are gone, so their traces go too. Returns how many were
    gone."""
    bygone: set[str] = set()
    erase = "DELETE FROM past WHERE id = ? RETURNING memory, user_id, agent_id, run_id"
    for memory_id in memory_ids:
        for row, *ids in db.execute(erase, (memory_id,)).fetchall():
            if memory_id not in keep_ids:
                bygone.add(memory_id)
                _erase_traces(db, row, scope_from_ids(*ids), at)
    return len(bygone)


def _erase_traces(db: sqlite3.Connection, row: int, scope: Scope, at: str) -> None:
    """Erase what came of a memory: its relations, its messages; summaries of them are to be made anew."""
    drive(db, erase_from_merges(SQLITE, row, scope))
    drive(db, erase_evidence(SQLITE, row))
    if drive(db, erase_summaries(SQLITE, scope)):
        drive(db, enqueue_job(SQLITE, scope, "summary", at=at))
    db.execute("DELETE FROM messages WHERE row IN (SELECT message FROM sources WHERE memory = ?)", (row,))


def _remove_row(db: sqlite3.Connection, row: int, item: MemoryItem, at: str) -> None:
    tombstone = (reserve_seqs(db, 1), row, item.id, *scope_ids(item.scope))
    unindex_memory(db, row)
    db.execute("DELETE FROM memories WHERE row = ?", (row,))
    db.execute("INSERT INTO tombstones VALUES (?, ?, ?, ?, ?, ?)", tombstone)
    _insert_history(db, item, Event.DELETE, item.text, None, at)


def _purge(db: sqlite3.Connection, memory_ids: Sequence[str]) -> None:
    """Remove the history of memories that are gone, and what is left of the messages they came from.

    Their tombstones stay, without text, so that projections still learn what to drop.
    """
    for chunk in chunks(memory_ids):
        among = f"IN ({placeholders(chunk)})"
        rows = f"SELECT row FROM tombstones WHERE memory_id {among}"
        db.execute(f"DELETE FROM messages WHERE row IN (SELECT message FROM sources WHERE memory IN ({rows}))", chunk)
        db.execute(f"DELETE FROM history WHERE memory_id {among}", chunk)


def _insert_history(
    db: sqlite3.Connection, item: MemoryItem, event: Event, old: str | None, new: str | None, updated_at: str | None
) -> None:
    row = history_values(item, event, old, new, updated_at)
    db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _insert_sources(db: sqlite3.Connection, memory: int, messages: Iterable[int]) -> None:
    db.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?)", [(memory, message) for message in messages])


# --- rows and SQL ------------------------------------------------------------------------------------------------


def _select(db: sqlite3.Connection, tail: str, values: Sequence[Any]) -> list[StoredMemory]:
    rows = db.execute(f"SELECT {_MEMORY_COLUMNS} FROM memories {tail}", values).fetchall()
    return [(row[0], memory_from_row(row, json.loads, row[0])) for row in rows]


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
