"""Primary store in SQL tables: one transaction per add."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.domain.feed import Reason
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
)
from mem0_core.interfaces import (
    ChangeFeed,
    CommitResult,
    EmbeddedItem,
    Lease,
    MergeLedger,
    MessageLog,
    OnConflict,
    PlannedUpdate,
    RetractionResult,
    SpaceLedger,
    Summary,
)
from mem0_core.stores.sql.changes.memories import (
    Cause,
    ChangeWriter,
    MemoryWriter,
    erase_memories,
    erase_past,
    find_targets,
    insert_event,
    link_endings,
    link_messages,
    purge_deleted,
    select_memories,
)
from mem0_core.stores.sql.changes.retraction import Retraction
from mem0_core.stores.sql.engine.dialect import Condition, Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    MAX_LOOKUP_ROWS,
    Steps,
    execute,
    fetch_rows,
    lookup_method,
    lookup_method_if,
    read_method,
    snapshot_method,
    write_method,
)
from mem0_core.stores.sql.feed import SqlChangeFeed, insert_scope_event
from mem0_core.stores.sql.graph.erasure import erase_graph
from mem0_core.stores.sql.graph.merges import SqlMerges, erase_merges
from mem0_core.stores.sql.graph.reader import edges_with_nodes
from mem0_core.stores.sql.graph.writer import GraphWriter
from mem0_core.stores.sql.messages import SqlMessageLog, insert_messages, insert_summary
from mem0_core.stores.sql.meta import (
    begin_epoch,
    claim_embedding_space,
    read_embedding_space,
    read_import_checkpoint,
    save_import_checkpoint,
    set_meta,
)
from mem0_core.stores.sql.queue import erase_jobs, finish_jobs
from mem0_core.stores.sql.rows import (
    MEMORY_COLUMNS,
    PAST_COLUMNS,
    StoredMemory,
    first_column,
    memory_from_row,
    pages,
    scope_from_ids,
    write_order,
)
from mem0_core.stores.sql.schema import HISTORY_COLUMNS, TABLES
from mem0_core.stores.sql.spaces import SPACE_TABLES, SqlSpaceLedger
from mem0_core.stores.sql.vectors import MEMORY_VECTORS, SqlVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VECTOR_TABLES = {"memory": "vectors", "past": "past", "node": "node_vectors", "relation": "edge_vectors"}
"""Table of the vectors of each kind of `EmbeddedItem`."""


class SqlStore(SqlVectors):
    """The methods of a `MemoryStore` that read and write memories. It is the `VectorSource` of its memories.

    Args:
        db: connections to the database.
        writer: statements that write memories.
    """

    def __init__(self, db: Engine, writer: MemoryWriter) -> None:
        super().__init__(db, MEMORY_VECTORS)
        self._writer = writer
        self.merges: MergeLedger = SqlMerges(db)
        self.message_log: MessageLog = SqlMessageLog(db)
        self.feed: ChangeFeed = SqlChangeFeed(db)
        self.spaces: SpaceLedger = SqlSpaceLedger(db)

    # --- differences between databases -------------------------------------------------------------------------------

    def _lock_plan(
        self, scope: Scope, changes: Sequence[MemoryChange], relations: Sequence[RelationChange]
    ) -> Steps[None]:
        """Lock the partitions that a plan changes, before any of them is read."""
        yield from self._dialect.lock_scope(scope)

    def _lock_memories(self, condition: Condition, scope: Scope | None = None) -> Steps[None]:
        """Lock `scope`, and the partitions with data of the memories that a condition selects."""
        yield from ()

    def _replace_vectors(self, table: str, new: Sequence[tuple[Any, int]]) -> Steps[None]:
        """Replace vectors, given as (vector, row)."""
        raise NotImplementedError

    def _clear_indexes(self, *, keep_words: bool) -> Steps[None]:
        """Remove indexes that refer to vectors about to be replaced; without `keep_words` also the word index."""
        yield from ()

    # --- writing -----------------------------------------------------------------------------------------------------

    @write_method
    def commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
    ) -> Steps[CommitResult]:
        dialect = self._dialect
        yield from self._lock_plan(scope, changes, relations)
        dims = yield from claim_embedding_space(embedding_space)
        targets = yield from find_targets(dialect, changes)
        conflicts = tuple(i for i, change in enumerate(changes) if change.before is not None and not targets[i])
        if conflicts:
            return CommitResult(conflicts=conflicts)
        if lease is not None and not (yield from finish_jobs(dialect, lease)):
            return CommitResult(lease_lost=True)
        if import_checkpoint is not None:
            yield from save_import_checkpoint(dialect, scope, *import_checkpoint)
        stored = yield from insert_messages(dialect, messages, scope, at)
        seqs = yield from dialect.reserve_seqs(len(changes))
        why: Reason = "add" if import_checkpoint is None else "import"
        applied, rows = list(changes), dict[int, int]()
        for index in write_order(changes):
            change, session = changes[index], seqs[index if distinct_sessions else 0]
            cause = Cause(why, _find_source(change, messages))
            write = ChangeWriter(dialect, self._writer, seqs[index], at, False, dims, session, cause)
            row, applied[index] = yield from write.apply(change, targets[index])
            if row is not None:
                yield from link_messages(dialect, scope, row, applied[index], stored, seqs[index], cause)
            if row is not None and applied[index].event is not Event.DELETE:
                rows[index] = row
        replaced = [
            (change, target)
            for change, target in zip(applied, targets, strict=True)
            if target is not None and change.event is not Event.NONE
        ]
        graph = GraphWriter(dialect, scope, at, dims, on_conflict)
        related = yield from graph.apply(relations, rows, stored)
        for change, (row, before) in replaced:
            text = change.after.text if change.event is Event.UPDATE else None
            related += yield from graph.withdraw(row, before.text, text, is_by_model=True)
        yield from link_endings(dialect, scope, related, stored)
        return CommitResult(applied=tuple(applied), relations=tuple(related))

    @write_method
    def commit_updates(
        self,
        updates: Sequence[PlannedUpdate],
        *,
        at: str,
        embedding_space: tuple[str, int] | None = None,
        on_conflict: OnConflict = "invalidate",
    ) -> Steps[CommitResult]:
        dialect, changes = self._dialect, [update.change for update in updates]
        if not changes:
            return CommitResult()
        related = [change for update in updates for change in update.relations]
        yield from self._lock_plan(changes[0].after.scope, changes, related)
        dims = yield from claim_embedding_space(embedding_space)
        targets = yield from find_targets(dialect, changes)
        if conflicts := tuple(index for index, target in enumerate(targets) if target is None):
            return CommitResult(conflicts=conflicts)
        applied: list[MemoryChange] = []
        related = []
        seqs = yield from dialect.reserve_seqs(len(changes))
        for update, target, seq in zip(updates, targets, seqs, strict=True):
            assert target is not None
            writer = ChangeWriter(dialect, self._writer, seq, at, True, dims, seq, Cause("update"))
            _, done = yield from writer.apply(update.change, target)
            applied.append(done)
            graph = GraphWriter(dialect, target[1].scope, at, dims, on_conflict)
            related += yield from _update_relations(graph, update, target)
        return CommitResult(applied=tuple(applied), relations=tuple(related))

    @write_method
    def pin(self, memory_id: str, pinned: bool) -> Steps[bool]:
        found = yield from self._select("WHERE id = ?", (memory_id,))
        if not found:
            return False
        row, item = found[0]
        yield from self._dialect.lock_scope(item.scope)
        part, values = self._dialect.in_part(item.scope)
        sql = f"UPDATE memories SET pinned = ? WHERE {part}row = ? AND pinned <> ?"
        if (yield from execute(sql, (pinned, *values, row, pinned))):
            [seq] = yield from self._dialect.reserve_seqs(1)
            yield insert_event(self._dialect, item, Event.UPDATE, seq, Cause("pin" if pinned else "unpin"))
        return True

    @write_method
    def mark(self, memory_ids: Sequence[str], *, useful: int = 0, useless: int = 0, clear: bool = False) -> Steps[int]:
        condition = self._dialect.among("id", list(dict.fromkeys(memory_ids)), "text")
        yield from self._lock_memories(condition)
        memories = yield from self._select(f"WHERE {condition[0]} ORDER BY row", condition[1])
        for row, item in memories:
            before = (0, 0) if clear else (item.useful, item.useless)
            counts = before[0] + useful, before[1] + useless
            if counts == (item.useful, item.useless):
                continue
            part, values = self._dialect.in_part(item.scope)
            yield from execute(
                f"UPDATE memories SET useful = ?, useless = ? WHERE {part}row = ?", (*counts, *values, row)
            )
            [seq] = yield from self._dialect.reserve_seqs(1)
            yield insert_event(self._dialect, item, Event.UPDATE, seq, Cause("feedback"))
        return len(memories)

    @write_method
    def save_summary(self, scope: Scope, summary: Summary, lease: Lease) -> Steps[bool]:
        yield from self._dialect.lock_scope(scope)
        if not (yield from finish_jobs(self._dialect, lease)):
            return False
        yield from insert_summary(self._dialect, scope, summary)
        return True

    @write_method
    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> Steps[int]:
        ids = list(dict.fromkeys(memory_ids))
        condition = self._dialect.among("id", ids, "text")
        yield from self._lock_memories(condition)
        memories = yield from self._select(f"WHERE {condition[0]} ORDER BY row", condition[1])
        deleted_before = yield from erase_past(self._dialect, ids, at, keep_ids={item.id for _, item in memories})
        yield from erase_memories(self._dialect, self._writer, memories, at, Cause("delete"))
        if purge:
            yield from purge_deleted(self._dialect, ids)
        return len(memories) + deleted_before

    @write_method
    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> Steps[int]:
        dialect = self._dialect
        where, values = dialect.in_scope(scope)
        yield from self._lock_memories((where, values), scope)
        memories = yield from self._select(f"WHERE {where} ORDER BY row", values)
        past = yield from fetch_rows(f"SELECT DISTINCT id FROM past WHERE {where}", values)
        yield from erase_past(dialect, [memory_id for (memory_id,) in past], at)
        yield from erase_memories(dialect, self._writer, memories, at, Cause("delete"))
        yield from erase_merges(dialect, scope)
        yield from erase_graph(dialect, scope)
        yield from erase_jobs(dialect, scope)
        for table in ("summaries", "imports", "messages", *SPACE_TABLES):
            yield from execute(f"DELETE FROM {table} WHERE {where}", values)
        if purge:
            deleted = yield from fetch_rows(f"SELECT memory_id FROM tombstones WHERE {where}", values)
            yield from purge_deleted(dialect, [memory_id for (memory_id,) in deleted])
            for tombstones in ("tombstones", "node_tombstones", "edge_tombstones"):
                yield from execute(f"DELETE FROM {tombstones} WHERE {where}", values)
            yield from begin_epoch()  # without the tombstones, projections cannot follow: they start from the beginning
            if (yield from execute(f"DELETE FROM events WHERE {where}", values)):
                yield from insert_scope_event(dialect, "ERASE", "erase")
        return len(memories)

    @write_method
    def retract(
        self, source: str, scope: Scope | None, *, at: str, relearn: bool = False, purge: bool = False
    ) -> Steps[RetractionResult]:
        dialect = self._dialect
        if scope is not None and scope.user_id is not None:  # all its rows are in one partition
            yield from self._lock_memories(dialect.in_scope(scope), scope)
        else:
            yield from dialect.lock_all()
        result, gone = yield from Retraction(dialect, self._writer, at, relearn).run(scope, source)
        if purge:
            yield from purge_deleted(dialect, gone)
        return result

    @write_method
    def replace_vectors(self, vectors: Mapping[EmbeddedItem, Any], *, embedding_space: tuple[str, int]) -> Steps[bool]:
        yield from self._dialect.lock_all()
        if set((yield from _read_embedded_items(self._dialect))) != vectors.keys():
            return False
        yield from self._clear_indexes(keep_words=True)
        for kind, table in _VECTOR_TABLES.items():
            new = [
                (self._dialect.vector(vector, embedding_space[1]), item.row)
                for item, vector in vectors.items()
                if item.kind == kind
            ]
            yield from self._replace_vectors(table, new)
        yield from set_meta("space", json.dumps(embedding_space))
        yield from begin_epoch()
        return True

    @write_method
    def reset(self) -> Steps[None]:
        yield from self._dialect.lock_all()
        yield from self._clear_indexes(keep_words=False)
        events = yield from fetch_rows("SELECT event FROM events LIMIT 2")
        is_repeated = [event for (event,) in events] == ["RESET"]  # no memory has changed since
        for table in TABLES:
            if table != "events" or not is_repeated:
                yield from execute(f"DELETE FROM {table}")
        yield from execute("DELETE FROM meta WHERE key = 'space'")
        if not is_repeated:
            yield from insert_scope_event(self._dialect, "RESET", "reset")
        yield from begin_epoch()

    # --- reading -----------------------------------------------------------------------------------------------------

    @snapshot_method
    def embedded_items(self) -> Steps[list[EmbeddedItem]]:
        yield from self._dialect.set_scope(None)
        return (yield from _read_embedded_items(self._dialect))

    @lookup_method
    def import_checkpoint(self, scope: Scope, key: str) -> Steps[int]:
        yield from self._dialect.set_scope(scope)
        return (yield from read_import_checkpoint(self._dialect, scope, key))

    @lookup_method
    def embedding_space(self) -> Steps[tuple[str, int] | None]:
        return read_embedding_space()

    @lookup_method
    def get(self, memory_id: str) -> Steps[MemoryItem | None]:
        found = yield from self._select("WHERE id = ?", (memory_id,))
        return found[0][1] if found else None

    @lookup_method_if(lambda memory_ids: len(memory_ids) <= MAX_LOOKUP_ROWS)
    def get_many(self, memory_ids: Sequence[str]) -> Steps[dict[str, MemoryItem]]:
        where, values = self._dialect.among("id", list(dict.fromkeys(memory_ids)), "text")
        return {item.id: item for _, item in (yield from self._select(f"WHERE {where}", values))}

    @lookup_method
    def row(self, memory_id: str) -> Steps[int | None]:
        found = yield from fetch_rows("SELECT row FROM memories WHERE id = ?", (memory_id,))
        return int(found[0][0]) if found else None

    @lookup_method_if(lambda scope, keys: len(keys) <= MAX_LOOKUP_ROWS)
    def find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, MemoryItem]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_exact_scope(scope)
        found: dict[bytes, MemoryItem] = {}
        for page in pages(keys):
            among, same = self._dialect.equals_key("same", page, scope)
            rows = yield from fetch_rows(
                f"SELECT {MEMORY_COLUMNS}, same FROM memories WHERE {where} AND {among}", (*values, *same)
            )
            found |= {bytes(row[-1]): memory_from_row(row, self._dialect.from_json, row[0]) for row in rows}
        return found

    @read_method
    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> Steps[list[MemoryItem]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._condition(scope, filter)
        tail = f"WHERE {where} ORDER BY created_at, row LIMIT ?"
        found = yield from self._select(tail, (*values, self._dialect.limit(limit)))
        return [item for _, item in found]

    @lookup_method
    def pinned_memories(self, scope: Scope) -> Steps[list[MemoryItem]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope)
        found = yield from self._select(f"WHERE {where} AND pinned ORDER BY created_at, row", values)
        return [item for _, item in found]

    @read_method
    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> Steps[NDArray[np.int64]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._condition(scope, filter)
        if as_of is not None:
            where, values = f"{where} AND valid_from <= ?", [*values, as_of]
        return first_column((yield from fetch_rows(f"SELECT row FROM memories WHERE {where} ORDER BY row", values)))

    @read_method
    def past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> Steps[tuple[list[MemoryItem], NDArray[np.float32]]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._condition(scope, filter)
        rows = yield from fetch_rows(
            f"SELECT {PAST_COLUMNS}, vector FROM past WHERE {where} AND valid_to > ? AND valid_from <= ? ORDER BY row",
            (*values, as_of, as_of),
        )
        memories = [memory_from_row(row, self._dialect.from_json) for row in rows]
        return memories, self._dialect.stack_vectors([row[-1] for row in rows])

    @read_method
    def replaced_texts(
        self, scope: Scope, *, filter: Filter | None = None, limit: int
    ) -> Steps[tuple[list[tuple[MemoryItem, str]], NDArray[np.float32]]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._condition(scope, filter)
        rows = yield from fetch_rows(
            f"SELECT {PAST_COLUMNS}, valid_to, vector FROM past WHERE {where} ORDER BY row DESC LIMIT ?",
            (*values, limit),
        )
        rows = rows[::-1]
        texts = [(memory_from_row(row, self._dialect.from_json), row[-2]) for row in rows]
        return texts, self._dialect.stack_vectors([row[-1] for row in rows])

    @lookup_method_if(lambda rows, *, scope: len(rows) <= MAX_LOOKUP_ROWS)
    def memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> Steps[dict[int, MemoryItem]]:
        yield from self._dialect.set_scope(scope)
        among, row_values = self._dialect.among("row", rows)
        where, values = self._dialect.in_scope(scope, by_row=True)
        return dict((yield from self._select(f"WHERE {among} AND {where}", (*row_values, *values))))

    @read_method
    def history(self, memory_id: str) -> Steps[list[HistoryRow]]:
        rows = yield from fetch_rows(
            f"SELECT {', '.join(HISTORY_COLUMNS)} FROM history WHERE memory_id = ?"
            f" ORDER BY {self._dialect.insertion_order}",
            (memory_id,),
        )
        return [dataclasses.replace(HistoryRow(*row), is_deleted=bool(row[7])) for row in rows]

    @lookup_method
    def owner(self, memory_id: str) -> Steps[Scope | None]:
        for table, column in (("memories", "id"), ("tombstones", "memory_id")):
            found = yield from fetch_rows(
                f"SELECT user_id, agent_id, run_id FROM {table} WHERE {column} = ? LIMIT 1", (memory_id,)
            )
            if found:
                return scope_from_ids(*found[0])
        return None

    @read_method
    def find_memory_ids(self, part: str) -> Steps[list[str]]:
        """Return the ids of present and deleted memories that begin or end with `part`."""
        like = (f"{part}%", f"%{part}")
        rows = yield from fetch_rows(
            "SELECT id FROM memories WHERE id LIKE ? OR id LIKE ?"
            " UNION SELECT memory_id FROM history WHERE memory_id LIKE ? OR memory_id LIKE ?",
            (*like, *like),
        )
        return [row[0] for row in rows]

    def _select(self, tail: str, values: Sequence[Any]) -> Steps[list[StoredMemory]]:
        return select_memories(self._dialect, tail, values)

    def _condition(self, scope: Scope | None, filter: Filter | None) -> Condition:
        where, values = self._dialect.in_scope(scope)
        if filter is not None:
            condition, more = self._dialect.matches(filter)
            where, values = f"{where} AND {condition}", values + more
        return where, values


def _find_source(change: MemoryChange, messages: Sequence[Message]) -> str | None:
    """Return the source of the first message behind a change that has one."""
    behind = [messages[index] for index in change.message_indexes] or messages
    return next((message.source for message in behind if message.source is not None), None)


def _update_relations(graph: GraphWriter, update: PlannedUpdate, before: StoredMemory) -> Steps[list[RelationChange]]:
    """Write the graph changes of an updated memory, and end the relations that it no longer supports."""
    row, item = before
    if not update.replaces_relations:
        changed = yield from graph.apply(update.relations, {0: row}, ())
        return changed + (yield from graph.withdraw(row, item.text, update.change.after.text))
    retracted = yield from graph.withdraw_relations(row)
    changed = yield from graph.apply(update.relations, {0: row}, ())
    return changed + (yield from graph.close_unsupported(retracted))


def _read_embedded_items(dialect: Dialect) -> Steps[list[EmbeddedItem]]:
    items: list[EmbeddedItem] = []
    memories = yield from fetch_rows("SELECT row, seq, text FROM memories ORDER BY row")
    items += (EmbeddedItem("memory", *row) for row in memories)
    past = yield from fetch_rows("SELECT row, seq, text FROM past ORDER BY row")
    items += (EmbeddedItem("past", *row) for row in past)
    nodes = yield from fetch_rows("SELECT row, seq, name FROM nodes ORDER BY row")
    items += (EmbeddedItem("node", *row) for row in nodes)
    sql = f"SELECT e.row, e.seq, s.name, e.relationship, d.name FROM {edges_with_nodes(dialect)} ORDER BY e.row"
    relations = yield from fetch_rows(sql)
    items += (EmbeddedItem("relation", row, seq, Triplet(*parts).sentence) for row, seq, *parts in relations)
    return items
