"""Conversations in the PostgreSQL truth: the messages of each scope, and the rolling summaries of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.ports import Summary
from mem0_core.records import Message, Scope
from mem0_core.stores.postgres_rows import exact_of, ids_of, part_of, scope_sql
from mem0_core.stores.postgres_session import Database, Statement, Steps, ask, change, reads, together, within
from mem0_core.stores.postgres_text import from_json, to_json
from mem0_core.stores.truth import digests_of

__all__ = [
    "MESSAGE",
    "PostgresTalk",
    "erase_summaries",
    "insert_digested",
    "insert_messages",
    "message_of",
    "write_summary",
]

MESSAGE = "m.row, m.role, m.content, m.name, m.metadata, m.created_at"

_EXACT = "m.part = %s AND m.exact = %s"


def _exact(scope: Scope) -> list[Any]:
    return [part_of(scope), exact_of(scope)]


class PostgresTalk:
    """The reading side: a `Talk`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _messages(self, scope: Scope, *, limit: int | None = None) -> Steps[list[Message]]:
        yield from within(scope)
        where, values = scope_sql(scope, "m")
        return (yield from _newest(where, values, limit))

    messages, amessages = reads(_messages)

    def _before(self, scope: Scope, row: int | None, *, limit: int) -> Steps[list[Message]]:
        yield from within(scope)
        if row is None:
            return (yield from _newest(_EXACT, _exact(scope), limit))
        return (yield from _newest(f"{_EXACT} AND m.row < %s", [*_exact(scope), row], limit))

    before, abefore = reads(_before)

    def _since(self, scope: Scope, row: int, *, limit: int) -> Steps[list[Message]]:
        yield from within(scope)
        sql = f"SELECT {MESSAGE} FROM messages AS m WHERE {_EXACT} AND m.row > %s ORDER BY m.row LIMIT %s"
        return [message_of(found) for found in (yield from ask(sql, (*_exact(scope), row, limit)))]

    since, asince = reads(_since)

    def _count_since(self, scope: Scope, row: int, *, most: int) -> Steps[int]:
        yield from within(scope)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM messages AS m WHERE {_EXACT} AND m.row > %s LIMIT %s) AS them"
        [(count,)] = yield from ask(sql, (*_exact(scope), row, most))
        return int(count)

    count_since, acount_since = reads(_count_since)

    def _summary(self, scope: Scope, *, as_of: str | None = None) -> Steps[Summary | None]:
        yield from within(scope)
        then, values = ("", []) if as_of is None else (" AND m.valid_from <= %s", [as_of])
        sql = f"SELECT text, upto, valid_from FROM summaries AS m WHERE {_EXACT}{then} ORDER BY m.row DESC LIMIT 1"
        found = yield from ask(sql, (*_exact(scope), *values))
        return Summary(*found[0]) if found else None

    summary, asummary = reads(_summary)


def _newest(where: str, values: Sequence[Any], limit: int | None) -> Steps[list[Message]]:
    sql = f"SELECT {MESSAGE} FROM messages AS m WHERE {where} ORDER BY m.row DESC LIMIT %s"
    return [message_of(row) for row in (yield from ask(sql, (*values, limit)))][::-1]


def message_of(row: Sequence[Any]) -> Message:
    return Message(row[1], row[2], name=row[3], metadata=from_json(row[4]), timestamp=row[5], row=row[0])


# --- writing, within a transaction of the store's that holds the part --------------------------------------------


def insert_messages(messages: Sequence[Message], scope: Scope, at: str) -> Steps[list[int]]:
    """Store the messages of one add and return their rows; those kept already, by row or an identical add, stay."""
    digests = digests_of(messages, scope, to_json)
    new = [(digest, message) for message, digest in zip(messages, digests, strict=True) if message.row is None]
    rows = iter((yield from insert_digested(new, scope, at)))
    return [message.row if message.row is not None else next(rows) for message in messages]


def insert_digested(messages: Sequence[tuple[bytes, Message]], scope: Scope, at: str) -> Steps[list[int]]:
    """Store messages, unless those of their digests are kept already; returns the rows of the ones or the others."""
    if not messages:
        return []
    _, found = yield from together(
        Statement(
            "INSERT INTO messages (part, exact, digest, user_id, agent_id, run_id, role, content, name, metadata,"
            " created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (
                    *(*_exact(scope), digest, *ids_of(scope), message.role, message.content, message.name),
                    *(to_json(message.metadata), message.timestamp or at),
                )
                for digest, message in messages
            ],
            many=True,
        ),
        Statement(
            "SELECT digest, row FROM messages WHERE part = %s AND digest = ANY(%s)",
            (part_of(scope), [digest for digest, _ in messages]),
        ),
    )
    known = {bytes(digest): row for digest, row in found.rows}
    return [known[digest] for digest, _ in messages]


def write_summary(scope: Scope, summary: Summary) -> Steps[None]:
    yield from change(
        "INSERT INTO summaries (part, exact, user_id, agent_id, run_id, text, upto, valid_from)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (*_exact(scope), *ids_of(scope), summary.text, summary.upto, summary.valid_from),
    )


def erase_summaries(scope: Scope) -> Steps[int]:
    """Erase the summaries of exactly this conversation; returns how many there were."""
    return (yield from change("DELETE FROM summaries WHERE part = %s AND exact = %s", _exact(scope)))
