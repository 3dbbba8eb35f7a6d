"""Changes of memories: applying a planned change, and erasing memories with everything derived from them.

All functions are steps of a write transaction that holds the partitions they change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence, Set
from typing import Any, Literal, Protocol

from mem0_core._system.records import dataclass
from mem0_core.domain.feed import EventKind, Reason
from mem0_core.domain.records import (
    Event,
    HistoryEvent,
    MemoryChange,
    MemoryItem,
    RelationChange,
    Scope,
    Trust,
    same_fact_key,
)
from mem0_core.domain.timestamps import utc_now
from mem0_core.errors import InputError, StoreError
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import (
    Statement,
    Steps,
    execute,
    execute_batch,
    execute_many,
    fetch_rows,
    insert_sql,
)
from mem0_core.stores.sql.feed import event_sql
from mem0_core.stores.sql.graph.erasure import erase_evidence
from mem0_core.stores.sql.graph.merges import erase_from_merges
from mem0_core.stores.sql.messages import erase_summaries
from mem0_core.stores.sql.queue import enqueue_job
from mem0_core.stores.sql.rows import (
    CONTENT_COLUMNS,
    MEMORY_COLUMNS,
    StoredMemory,
    history_values,
    is_plan_current,
    memory_from_row,
    resolve_duplicate_add,
    scope_from_ids,
    scope_ids,
)
from mem0_core.stores.sql.schema import HISTORY_COLUMNS

_PAST_COLUMNS = ", ".join(f"m.{column.strip()}" for column in CONTENT_COLUMNS.split(","))
_HISTORY_COLUMNS = ", ".join(HISTORY_COLUMNS)


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason of a change, for the change feed.

    Attributes:
        why: operation that made the change.
        source: source of the messages behind it; None if none has one.
    """

    why: Reason
    source: str | None = None


class MemoryWriter(Protocol):
    """Statements that write a memory and its words, which the two databases index differently."""

    def insert(
        self, item: MemoryItem, vector: Any, seq: int, session: int, cause: Cause, event: HistoryEvent = Event.ADD
    ) -> Steps[int | None]:
        """Insert a memory with all that belongs to it, and return its row; None for a duplicate id or fact."""
        ...

    def clear_words(self, row: int) -> Steps[int]:
        """Remove the words of a memory that is about to change or to go, and return its session."""
        ...

    def write_words(self, row: int, item: MemoryItem, session: int) -> Steps[None]:
        """Write the words of a changed memory."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeWriter:
    """Writes one planned change.

    Attributes:
        dialect: SQL of the database.
        writer: statements that write memories.
        seq: number of the change.
        at: ISO 8601 time of a deletion.
        reject_duplicates: raise InputError where an UPDATE would repeat another memory.
        dims: length of the vectors.
        session: session of an added memory without a run.
        cause: reason of the change.
    """

    dialect: Dialect
    writer: MemoryWriter
    seq: int
    at: str
    reject_duplicates: bool
    dims: int
    session: int
    cause: Cause

    def apply(self, change: MemoryChange, target: StoredMemory | None) -> Steps[tuple[int | None, MemoryChange]]:
        """Write the change. Return the memory's row (None if it is gone) and the change as it took effect."""
        if change.event is Event.NONE:
            if not change.message_indexes:
                return None, change
            found = yield from select_memories(self.dialect, "WHERE id = ?", (change.after.id,))
            return (found[0][0] if found else None), change
        if target is None:
            return (yield from self._add(change))
        row, item = target
        if change.event is Event.UPDATE and (yield from self._update(row, change)):
            return row, change
        if change.event is Event.UPDATE and self.reject_duplicates:
            raise InputError(f"another memory of this scope says this already: delete {item.id!r} instead")
        # After an UPDATE to the text of another memory of the scope, this one would be its duplicate: delete it.
        yield from self._insert_past(row, item, self.at)  # its messages stay, as part of the conversation
        yield from remove_row(self.dialect, self.writer, row, item, self.at, self.cause)
        return row, dataclasses.replace(change, event=Event.DELETE, after=item)

    def _add(self, change: MemoryChange) -> Steps[tuple[int, MemoryChange]]:
        item = change.after
        vector = self.dialect.vector(change.vector, self.dims)
        row = yield from self.writer.insert(item, vector, self.seq, self.session, self.cause)
        if row is not None:
            after = dataclasses.replace(item, seq=self.seq)
            return row, MemoryChange(change.event, after, message_indexes=change.message_indexes)
        duplicate = yield from self._find_duplicate(item)
        if duplicate is None:
            raise StoreError(f"a memory with the id {item.id!r} exists already")
        applied = resolve_duplicate_add(change, duplicate[1], self.seq)
        if applied.event is Event.UPDATE:
            part, part_values = self.dialect.in_part(item.scope)
            yield from execute(
                f"UPDATE memories SET expiration_date = ?, seq = ? WHERE {part}row = ?",
                (applied.after.expiration_date, self.seq, *part_values, duplicate[0]),
            )
            yield insert_event(self.dialect, duplicate[1], Event.UPDATE, self.seq, self.cause)
        return duplicate[0], applied

    def _update(self, row: int, change: MemoryChange) -> Steps[bool]:
        """Write an UPDATE. Return False if another memory of the scope has the new text."""
        item = change.after
        duplicate = yield from self._find_duplicate(item)
        if duplicate is not None and duplicate[0] != row:
            return False
        since = item.said_at
        is_new_text = item.text != change.before
        if is_new_text:
            yield from self._insert_past(row, item, since)
        session = yield from self.writer.clear_words(row)
        part, part_values = self.dialect.in_part(item.scope)
        yield from execute(
            "UPDATE memories SET text = ?, hash = ?, same = ?, metadata = ?, actor_id = ?, role = ?, updated_at = ?,"
            " expiration_date = ?, trust = ?, seq = ?,"
            f" valid_from = CASE WHEN ? THEN {self.dialect.greatest}(valid_from, ?) ELSE valid_from END"
            f" WHERE {part}row = ?",
            (
                *(item.text, item.hash, same_fact_key(item.text, item.actor_id), self.dialect.to_json(item.metadata)),
                *(item.actor_id, item.role, item.updated_at, item.expiration_date, int(item.trust), self.seq),
                *(is_new_text, since),
                *(*part_values, row),
            ),
        )
        yield from self.writer.write_words(row, item, session)
        if change.vector is not None:
            vector = self.dialect.vector(change.vector, self.dims)
            yield from execute(f"UPDATE vectors SET vector = ? WHERE {part}row = ?", (vector, *part_values, row))
        event = insert_event(self.dialect, item, Event.UPDATE, self.seq, self.cause)
        if is_new_text:  # the history is of texts: a change of metadata alone adds nothing to it
            yield from record_change(
                self.dialect, item, Event.UPDATE, (change.before, item.text), item.updated_at, event
            )
        else:
            yield event
        return True

    def _find_duplicate(self, item: MemoryItem) -> Steps[StoredMemory | None]:
        where, values = self.dialect.in_exact_scope(item.scope)
        same, keys = self.dialect.equals_key("same", [same_fact_key(item.text, item.actor_id)], item.scope)
        found = yield from select_memories(self.dialect, f"WHERE {where} AND {same}", (*values, *keys))
        return found[0] if found else None

    def _insert_past(self, row: int, item: MemoryItem, until: str) -> Steps[None]:
        """Keep the current text of a memory as its text before `until`."""
        dialect = self.dialect
        part, part_values = dialect.in_part(item.scope, "m")
        yield from execute(
            f"INSERT INTO past ({dialect.part}memory, {CONTENT_COLUMNS}, valid_from, valid_to, vector)"
            f" SELECT {'m.part, ' if dialect.part else ''}m.row, {_PAST_COLUMNS}, m.valid_from,"
            f" {dialect.greatest}(m.valid_from, ?), v.vector"
            f" FROM memories AS m JOIN vectors AS v ON {dialect.same_part('v', 'm')}v.row = m.row"
            f" WHERE {part}m.row = ?",
            (until, *part_values, row),
        )


def select_memories(dialect: Dialect, tail: str, values: Sequence[Any]) -> Steps[list[StoredMemory]]:
    """Return the memories that a WHERE clause selects, with their rows."""
    rows = yield from fetch_rows(f"SELECT {MEMORY_COLUMNS} FROM memories {tail}", values)
    return [(row[0], memory_from_row(row, dialect.from_json, row[0])) for row in rows]


def find_targets(dialect: Dialect, changes: Sequence[MemoryChange]) -> Steps[list[StoredMemory | None]]:
    """Return for each change the memory that it changes; None for a new memory, or one that differs from the plan."""
    planned = [change for change in changes if change.before is not None]
    if not planned:
        return [None] * len(changes)
    scopes = {change.after.scope for change in planned}
    part, part_values = dialect.in_part(scopes.pop()) if len(scopes) == 1 else ("", [])
    among, ids = dialect.among("id", [change.after.id for change in planned], "text")
    found = yield from select_memories(dialect, f"WHERE {part}{among}", (*part_values, *ids))
    stored = {item.id: (row, item) for row, item in found}
    targets: list[StoredMemory | None] = []
    for change in changes:
        target = stored.get(change.after.id) if change.before is not None else None
        targets.append(target if target is not None and is_plan_current(change, target[1]) else None)
    return targets


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_memories(
    dialect: Dialect, writer: MemoryWriter, memories: Iterable[StoredMemory], at: str, cause: Cause
) -> Steps[None]:
    """Erase memories with everything derived from them, and the messages they came from."""
    for row, item in memories:
        yield from _erase_traces(dialect, row, item.scope, at)
        yield from remove_row(dialect, writer, row, item, at, cause)


def erase_past(dialect: Dialect, memory_ids: Sequence[str], at: str, *, keep_ids: Set[str] = frozenset()) -> Steps[int]:
    """Erase earlier texts of memories. Return the number of memories that were deleted before.

    Args:
        dialect: SQL of the database.
        memory_ids: ids of memories, deleted ones included.
        at: ISO 8601 time of the erasure.
        keep_ids: ids of memories that exist, whose traces are not erased here.
    """
    among, ids = dialect.among("id", memory_ids, "text")
    erased = yield from fetch_rows(
        f"DELETE FROM past WHERE {among} RETURNING id, memory, user_id, agent_id, run_id", ids
    )
    deleted = {(memory_id, row): scope_from_ids(*ids) for memory_id, row, *ids in erased if memory_id not in keep_ids}
    for (_, row), scope in deleted.items():
        yield from _erase_traces(dialect, row, scope, at)
    return len({memory_id for memory_id, _ in deleted})


def _erase_traces(dialect: Dialect, row: int, scope: Scope, at: str) -> Steps[None]:
    """Erase the relations and messages of a memory; a summary of them is written again."""
    yield from erase_from_merges(dialect, row, scope)
    yield from erase_evidence(dialect, row)
    if (yield from erase_summaries(dialect, scope)):
        yield from enqueue_job(dialect, scope, "summary", at=at)
    yield from _erase_messages(dialect, [row])


def _erase_messages(dialect: Dialect, memories: Sequence[int]) -> Steps[None]:
    """Erase the messages that memories came from."""
    among, rows = dialect.among("memory", memories)
    key = "(part, row)" if dialect.part else "row"
    yield from execute(
        f"DELETE FROM messages WHERE {key} IN (SELECT {dialect.part}message FROM sources WHERE {among})", rows
    )


def remove_row(
    dialect: Dialect,
    writer: MemoryWriter,
    row: int,
    item: MemoryItem,
    at: str,
    cause: Cause,
    event: HistoryEvent = Event.DELETE,
) -> Steps[None]:
    """Delete the row of a memory and leave a tombstone."""
    [seq] = yield from dialect.reserve_seqs(1)
    yield from writer.clear_words(row)
    part, part_values = dialect.in_part(item.scope)
    yield from execute(f"DELETE FROM memories WHERE {part}row = ?", (*part_values, row))
    yield from execute(
        insert_sql("tombstones", f"{dialect.part}seq, row, memory_id, user_id, agent_id, run_id"),
        (*dialect.part_values(item.scope), seq, row, item.id, *scope_ids(item.scope)),
    )
    yield from record_change(
        dialect, item, event, (item.text, None), at, insert_event(dialect, item, event, seq, cause)
    )


def purge_deleted(dialect: Dialect, memory_ids: Sequence[str]) -> Steps[None]:
    """Erase the history of deleted memories, the rest of their messages, and the names in their events.

    Their tombstones and events, which have no text, stay: projections learn from them which rows to drop, and readers
    of the change feed that the memories are gone.
    """
    among, ids = dialect.among("memory_id", memory_ids, "text")
    deleted = yield from fetch_rows(f"SELECT row, user_id, agent_id, run_id FROM tombstones WHERE {among}", ids)
    yield from _erase_messages(dialect, [row for row, *_ in deleted])
    yield from execute(f"DELETE FROM history WHERE {among}", ids)
    # The index on their ids finds the events of a scope.
    for scope in dict.fromkeys(Scope.from_stored(*owner) for _, *owner in deleted):
        where, values = dialect.in_scope(scope)
        named = "(actor_id IS NOT NULL OR source IS NOT NULL)"
        yield from execute(
            f"UPDATE events SET actor_id = NULL, source = NULL WHERE {where} AND {among} AND {named}", (*values, *ids)
        )


# --- history and sources -----------------------------------------------------------------------------------------


def record_change(
    dialect: Dialect,
    item: MemoryItem,
    event: HistoryEvent,
    texts: tuple[str | None, str | None],
    updated_at: str | None,
    feed: Statement,
) -> Steps[None]:
    """Insert one change of a memory into its history, and into the change feed.

    Args:
        dialect: SQL of the database.
        item: the memory.
        event: kind of the change.
        texts: text before and after the change.
        updated_at: ISO 8601 time of the change.
        feed: the statement of `insert_event`.
    """
    row = (*dialect.part_values(item.scope), *history_values(item, event, *texts, updated_at))
    yield from execute_batch(Statement(insert_sql("history", f"{dialect.part}{_HISTORY_COLUMNS}"), row), feed)


def insert_event(dialect: Dialect, item: MemoryItem, event: EventKind, seq: int, cause: Cause) -> Statement:
    """Return the statement that inserts one change of a memory into the change feed."""
    sql, latest = event_sql(dialect, item.scope)
    return Statement(sql, (*dialect.part_values(item.scope), *event_values(item, event, seq, cause), *latest))


def event_values(item: MemoryItem, event: EventKind, seq: int, cause: Cause) -> tuple[Any, ...]:
    """Return the values of `schema.EVENT_COLUMNS`. The time is that of the clock, not that of the conversation."""
    at = utc_now()
    ids = scope_ids(item.scope)
    return seq, str(event), item.id, *ids, item.actor_id, item.role, cause.source, cause.why, at


def link_messages(
    dialect: Dialect,
    scope: Scope,
    memory: int,
    change: MemoryChange,
    messages: Sequence[int],
    seq: int,
    cause: Cause,
) -> Steps[None]:
    """Record the messages that a memory came from, or that deleted it. A repetition of its text may raise its trust.

    Args:
        change: the change as it took effect.
        messages: rows of the messages of the plan, all in `scope`.
        seq: number of the change.
        cause: its reason.
    """
    linked = [messages[index] for index in change.message_indexes]
    if change.event is Event.DELETE:
        yield from _insert_endings(dialect, scope, "memory", memory, linked or messages)
        return
    repeats = change.event is Event.NONE or (change.event is Event.UPDATE and change.before == change.after.text)
    part = dialect.part_values(scope)
    yield from execute_many(
        insert_sql("sources", f"{dialect.part}memory, message, seq, repeats", "ON CONFLICT DO NOTHING"),
        [(*part, memory, message, seq, repeats) for message in linked],
    )
    if repeats and linked and change.after.trust is not Trust.USER:
        where, values = dialect.in_part(scope, "m")
        among, rows = dialect.among("m.row", linked)
        [(trust,)] = yield from fetch_rows(
            f"SELECT min(m.trust) FROM messages AS m WHERE {where}{among}", [*values, *rows]
        )
        sql = "UPDATE memories SET trust = ? WHERE row = ? AND trust < ?"
        if (yield from execute(sql, (trust, memory, trust))) and change.event is Event.NONE:
            yield from record_trust(dialect, change.after, cause)


def record_trust(dialect: Dialect, item: MemoryItem, cause: Cause) -> Steps[None]:
    """Record that the trust of a memory was changed, so that searches that keep the memory read it again."""
    [seq] = yield from dialect.reserve_seqs(1)
    yield insert_event(dialect, item, Event.UPDATE, seq, cause)


def link_endings(
    dialect: Dialect, scope: Scope, relations: Iterable[RelationChange], messages: Sequence[int]
) -> Steps[None]:
    """Record the messages that ended relations.

    Args:
        relations: changes of the graph as they took effect.
        messages: rows of the messages of the plan, all in `scope`.
    """
    for change in relations:
        if change.event is Event.DELETE and change.relation_row is not None:
            causes = [messages[index] for index in change.message_indexes] or messages
            yield from _insert_endings(dialect, scope, "relation", change.relation_row, causes)


def _insert_endings(
    dialect: Dialect, scope: Scope, kind: Literal["memory", "relation"], target: int, messages: Sequence[int]
) -> Steps[None]:
    part = dialect.part_values(scope)
    yield from execute_many(
        insert_sql("endings", f"{dialect.part}kind, target, message", "ON CONFLICT DO NOTHING"),
        [(*part, kind, target, message) for message in messages],
    )
