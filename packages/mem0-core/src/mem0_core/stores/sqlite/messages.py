"""Conversations in the SQLite truth: the messages of each scope, and the rolling summaries of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Message, Scope
from mem0_core.interfaces import Summary
from mem0_core.stores.sql.rows import message_digests
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    exact_scope_values,
    limit_sql,
    scope_ids,
    scope_sql,
    to_json,
)
from mem0_core.stores.sqlite.vectors import ConnectionFactory

__all__ = [
    "MESSAGE_COLUMNS",
    "SQLiteMessageLog",
    "erase_summaries",
    "insert_messages",
    "insert_unique_message",
    "message_from_row",
    "write_summary",
]

MESSAGE_COLUMNS = "messages.row, messages.role, messages.content, messages.name, messages.metadata, messages.created_at"


class SQLiteMessageLog:
    """The reading side: a `MessageLog`."""

    inline = True  # see `flow`

    def __init__(self, read: ConnectionFactory) -> None:
        self._read = read

    def messages(self, scope: Scope, *, limit: int | None = None) -> list[Message]:
        where, values = scope_sql(scope)
        with self._read() as db:
            return _select_newest(db, where, values, limit)

    def messages_before(self, scope: Scope, row: int | None, *, limit: int) -> list[Message]:
        where, values = f"{EXACT_SCOPE_CONDITION}", list[Any](exact_scope_values(scope))
        if row is not None:
            where, values = f"{where} AND row < ?", [*values, row]
        with self._read() as db:
            return _select_newest(db, where, values, limit)

    def messages_since(self, scope: Scope, row: int, *, limit: int) -> list[Message]:
        sql = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {EXACT_SCOPE_CONDITION} AND row > ? ORDER BY row LIMIT ?"
        with self._read() as db:
            return [message_from_row(found) for found in db.execute(sql, (*exact_scope_values(scope), row, limit))]

    def count_messages_since(self, scope: Scope, row: int, *, limit: int) -> int:
        sql = f"SELECT count(*) FROM (SELECT 1 FROM messages WHERE {EXACT_SCOPE_CONDITION} AND row > ? LIMIT ?)"
        with self._read() as db:
            count: int = db.execute(sql, (*exact_scope_values(scope), row, limit)).fetchone()[0]
        return count

    def latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Summary | None:
        then, values = ("", []) if as_of is None else (" AND valid_from <= ?", [as_of])
        sql = f"SELECT text, upto, valid_from FROM summaries WHERE {EXACT_SCOPE_CONDITION}{then} ORDER BY row DESC LIMIT 1"  # noqa: E501
        with self._read() as db:
            found = db.execute(sql, (*exact_scope_values(scope), *values)).fetchone()
        return Summary(*found) if found else None


def _select_newest(db: sqlite3.Connection, where: str, values: Sequence[Any], limit: int | None) -> list[Message]:
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {where} ORDER BY row DESC LIMIT ?"
    return [message_from_row(row) for row in db.execute(sql, (*values, limit_sql(limit)))][::-1]


def message_from_row(row: Sequence[Any]) -> Message:
    return Message(
        row[1], row[2], name=row[3], metadata=json.loads(row[4]) if row[4] != "{}" else {}, timestamp=row[5], row=row[0]
    )


def insert_messages(db: sqlite3.Connection, messages: Sequence[Message], scope: Scope, at: str) -> list[int]:
    """Store the messages of one add and return their rows; those kept already, by row or an identical add, stay."""
    if not messages:
        return []
    ids = scope_ids(scope)
    return [
        message.row if message.row is not None else insert_unique_message(db, message, ids, at, digest)
        for message, digest in zip(messages, message_digests(messages, scope, to_json), strict=True)
    ]


def insert_unique_message(
    db: sqlite3.Connection, message: Message, ids: tuple[str | None, ...], at: str, digest: bytes
) -> int:
    """Store a message, unless one of its digest is kept already; returns the row of the one or the other."""
    inserted = db.execute(
        "INSERT INTO messages (digest, user_id, agent_id, run_id, role, content, name, metadata, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING row",
        (
            digest,
            *ids,
            message.role,
            message.content,
            message.name,
            to_json(message.metadata),
            message.timestamp or at,
        ),
    ).fetchone()
    found = inserted or db.execute("SELECT row FROM messages WHERE digest = ?", (digest,)).fetchone()
    return int(found[0])


def write_summary(db: sqlite3.Connection, scope: Scope, summary: Summary) -> None:
    db.execute(
        "INSERT INTO summaries (user_id, agent_id, run_id, text, upto, valid_from) VALUES (?, ?, ?, ?, ?, ?)",
        (*scope_ids(scope), summary.text, summary.last_message_row, summary.valid_from),
    )


def erase_summaries(db: sqlite3.Connection, scope: Scope) -> int:
    """Erase the summaries of exactly this conversation; returns how many there were."""
    return db.execute(f"DELETE FROM summaries WHERE {EXACT_SCOPE_CONDITION}", exact_scope_values(scope)).rowcount
