"""Conversations in the PostgreSQL truth: the messages of each scope, and the rolling summaries of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Message, Scope
from mem0_core.interfaces import Summary
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_ids, scope_sql
from mem0_core.stores.postgres.session import (
    Database,
    Statement,
    Steps,
    execute,
    execute_batch,
    fetch_rows,
    read_methods,
    set_scope,
)
from mem0_core.stores.postgres.text import from_json, to_json
from mem0_core.stores.sql.rows import message_digests

__all__ = [
    "MESSAGE_COLUMNS",
    "PostgresMessageLog",
    "erase_summaries",
    "insert_messages",
    "insert_unique_messages",
    "message_from_row",
    "write_summary",
]

MESSAGE_COLUMNS = "m.row, m.role, m.content, m.name, m.metadata, m.created_at"

_EXACT_SCOPE_CONDITION = "m.part = %s AND m.exact = %s"


def _exact_scope_values(scope: Scope) -> list[Any]:
    return [partition_key(scope), scope_digest(scope)]


class PostgresMessageLog:
    """The reading side: a `MessageLog`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _messages(self, scope: Scope, *, limit: int | None = None) -> Steps[list[Message]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "m")
        return (yield from _select_newest(where, values, limit))

    messages, amessages = read_methods(_messages)

    def _messages_before(self, scope: Scope, row: int | None, *, limit: int) -> Steps[list[Message]]:
        yield from set_scope(scope)
        if row is None:
            return (yield from _select_newest(_EXACT_SCOPE_CONDITION, _exact_scope_values(scope), limit))
        return (
            yield from _select_newest(
                f"{_EXACT_SCOPE_CONDITION} AND m.row < %s", [*_exact_scope_values(scope), row], limit
            )
        )

    messages_before, amessages_before = read_methods(_messages_before)

    def _messages_since(self, scope: Scope, row: int, *, limit: int) -> Steps[list[Message]]:
        yield from set_scope(scope)
        sql = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE {_EXACT_SCOPE_CONDITION} AND m.row > %s ORDER BY m.row LIMIT %s"  # noqa: E501
        return [
            message_from_row(found) for found in (yield from fetch_rows(sql, (*_exact_scope_values(scope), row, limit)))
        ]

    messages_since, amessages_since = read_methods(_messages_since)

    def _count_since(self, scope: Scope, row: int, *, limit: int) -> Steps[int]:
        yield from set_scope(scope)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM messages AS m WHERE {_EXACT_SCOPE_CONDITION} AND m.row > %s LIMIT %s) AS them"  # noqa: E501
        [(count,)] = yield from fetch_rows(sql, (*_exact_scope_values(scope), row, limit))
        return int(count)

    count_messages_since, acount_since = read_methods(_count_since)

    def _latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Steps[Summary | None]:
        yield from set_scope(scope)
        then, values = ("", []) if as_of is None else (" AND m.valid_from <= %s", [as_of])
        sql = f"SELECT text, upto, valid_from FROM summaries AS m WHERE {_EXACT_SCOPE_CONDITION}{then} ORDER BY m.row DESC LIMIT 1"  # noqa: E501
        found = yield from fetch_rows(sql, (*_exact_scope_values(scope), *values))
        return Summary(*found[0]) if found else None

    latest_summary, alatest_summary = read_methods(_latest_summary)


def _select_newest(where: str, values: Sequence[Any], limit: int | None) -> Steps[list[Message]]:
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE {where} ORDER BY m.row DESC LIMIT %s"
    return [message_from_row(row) for row in (yield from fetch_rows(sql, (*values, limit)))][::-1]


def message_from_row(row: Sequence[Any]) -> Message:
    return Message(row[1], row[2], name=row[3], metadata=from_json(row[4]), timestamp=row[5], row=row[0])


# --- writing, within a transaction of the store's that holds the part --------------------------------------------


def insert_messages(messages: Sequence[Message], scope: Scope, at: str) -> Steps[list[int]]:
    """Store the messages of one add and return their rows; those kept already, by row or an identical add, stay."""
    digests = message_digests(messages, scope, to_json)
    new = [(digest, message) for message, digest in zip(messages, digests, strict=True) if message.row is None]
    rows = iter((yield from insert_unique_messages(new, scope, at)))
    return [message.row if message.row is not None else next(rows) for message in messages]


def insert_unique_messages(messages: Sequence[tuple[bytes, Message]], scope: Scope, at: str) -> Steps[list[int]]:
    """Store messages, unless those of their digests are kept already; returns the rows of the ones or the others."""
    if not messages:
        return []
    _, found = yield from execute_batch(
        Statement(
            "INSERT INTO messages (part, exact, digest, user_id, agent_id, run_id, role, content, name, metadata,"
            " created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (
                    *(
                        *_exact_scope_values(scope),
                        digest,
                        *scope_ids(scope),
                        message.role,
                        message.content,
                        message.name,
                    ),
                    *(to_json(message.metadata), message.timestamp or at),
                )
                for digest, message in messages
            ],
            many=True,
        ),
        Statement(
            "SELECT digest, row FROM messages WHERE part = %s AND digest = ANY(%s)",
            (partition_key(scope), [digest for digest, _ in messages]),
        ),
    )
    known = {bytes(digest): row for digest, row in found.rows}
    return [known[digest] for digest, _ in messages]


def write_summary(scope: Scope, summary: Summary) -> Steps[None]:
    yield from execute(
        "INSERT INTO summaries (part, exact, user_id, agent_id, run_id, text, upto, valid_from)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (*_exact_scope_values(scope), *scope_ids(scope), summary.text, summary.last_message_row, summary.valid_from),
    )


def erase_summaries(scope: Scope) -> Steps[int]:
    """Erase the summaries of exactly this conversation; returns how many there were."""
    return (yield from execute("DELETE FROM summaries WHERE part = %s AND exact = %s", _exact_scope_values(scope)))
