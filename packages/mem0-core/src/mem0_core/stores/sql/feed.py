"""The change feed in SQL tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.feed import ChangeEvent, Reason, ScopeEvent, SpaceEvent
from mem0_core.domain.records import Scope
from mem0_core.domain.timestamps import utc_now
from mem0_core.stores.sql.engine.dialect import Condition, Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    fetch_rows,
    insert_sql,
    lookup_method,
    read_method,
)
from mem0_core.stores.sql.rows import scope_ids
from mem0_core.stores.sql.schema import EVENT_COLUMNS

_COLUMNS = ", ".join(EVENT_COLUMNS)


class SqlChangeFeed(StepMethods):
    """A `ChangeFeed`. The numbers are those of the store's changes: a projection and a reader share one order."""

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect: Dialect = db.dialect

    @read_method
    def changes(self, scope: Scope | None, *, after: int, limit: int) -> Steps[list[ChangeEvent]]:
        dialect = self._dialect
        yield from dialect.set_scope(scope)
        where, values = dialect.in_scope(scope)
        reach: list[Any] = []
        if scope is None or scope.user_id is None:  # a user is one partition, where numbers become visible in order
            safe = yield from dialect.safe_read_seq()
            where, reach = (where, []) if safe is None else (f"{where} AND seq <= ?", [safe])
        rows = yield from fetch_rows(
            f"SELECT {_COLUMNS} FROM events WHERE {where} AND seq > ? ORDER BY seq LIMIT ?",
            (*values, *reach, after, limit),
        )
        return [ChangeEvent(*row) for row in rows]

    @read_method
    def changes_of(self, scopes: Sequence[Scope], *, after: int, limit: int) -> Steps[list[ChangeEvent]]:
        safe = yield from self._dialect.safe_read_seq()
        reach = [] if safe is None else [safe]
        found: list[ChangeEvent] = []
        for scope in scopes:
            yield from self._dialect.set_scope(scope)
            where, values = self._dialect.in_scope(scope)
            rows = yield from fetch_rows(
                f"SELECT {_COLUMNS} FROM events WHERE {where}{' AND seq <= ?' if reach else ''} AND seq > ?"
                " ORDER BY seq LIMIT ?",
                (*values, *reach, after, limit),
            )
            found += [ChangeEvent(*row) for row in rows]
        return sorted(found, key=lambda event: event.seq)[:limit]

    @lookup_method
    def latest_time(self, scope: Scope) -> Steps[str | None]:
        scope = scope.partition_scope
        yield from self._dialect.set_scope(scope)
        return (yield from fetch_latest_time(self._dialect, scope))


def event_sql(dialect: Dialect, scope: Scope) -> Condition:
    """Return the statement that inserts an event of a scope, and the last of its values, after those of the columns.

    The time of an event is not before that of the event before it, whatever the clock says.
    """
    columns = f"{dialect.part}{_COLUMNS}"
    marks = ", ".join("?" * (columns.count(",")))
    latest, values = latest_time_sql(dialect, scope)
    return f"INSERT INTO events ({columns}) VALUES ({marks}, {dialect.greatest}(?, {latest}))", values


def fetch_latest_time(dialect: Dialect, scope: Scope) -> Steps[str | None]:
    """Return the time of the latest event in the partition of a scope; None without one."""
    sql, values = latest_time_sql(dialect, scope)
    [(at,)] = yield from fetch_rows(f"SELECT {sql}", values)
    return at or None


def latest_time_sql(dialect: Dialect, scope: Scope) -> Condition:
    """Return an expression for the time of the latest event in the partition of a scope; an empty text without one."""
    where, values = dialect.in_scope(scope.partition_scope)
    return f"coalesce((SELECT at FROM events WHERE {where} ORDER BY seq DESC LIMIT 1), '')", values


def insert_space_event(dialect: Dialect, scope: Scope, event: SpaceEvent, write_id: str, actor: str) -> Steps[None]:
    """Insert an event of a space's pending write. Call it within a write transaction that holds the space."""
    [seq] = yield from dialect.reserve_seqs(1)
    now = utc_now()
    sql, latest = event_sql(dialect, scope)
    values = (*dialect.part_values(scope), seq, event, write_id, *scope_ids(scope), actor, None, None, "approval", now)
    yield from execute(sql, (*values, *latest))


def insert_scope_event(dialect: Dialect, event: ScopeEvent, why: Reason) -> Steps[None]:
    """Insert an event without ids: the data that it is about is gone. Call it within a write transaction."""
    yield from dialect.set_scope(None)
    [seq] = yield from dialect.reserve_seqs(1)
    part = ("",) if dialect.part else ()
    values = (*part, seq, event, *[None] * 7, why, utc_now())
    yield from execute(insert_sql("events", f"{dialect.part}{_COLUMNS}"), values)
