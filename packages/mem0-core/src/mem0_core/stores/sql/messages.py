"""Message log and rolling summaries of each scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Message, Scope, trust_of_role
from mem0_core.interfaces import Summary
from mem0_core.stores.sql.engine.dialect import Condition, Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    MAX_LOOKUP_ROWS,
    Statement,
    StepMethods,
    Steps,
    execute,
    execute_batch,
    fetch_rows,
    insert_sql,
    lookup_method,
    lookup_method_if,
    read_method,
)
from mem0_core.stores.sql.rows import TRUST, message_digests, pages, scope_ids

_WRITTEN_COLUMNS = "digest, role, content, name, metadata, created_at, source, trust"
MESSAGE_COLUMNS = "m.row, m.role, m.content, m.name, m.metadata, m.created_at, m.source, m.trust"


class SqlMessageLog(StepMethods):
    """A `MessageLog`, for reading. Messages are written within the transactions of the store and of its queue."""

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect = db.dialect

    @read_method
    def messages(self, scope: Scope, *, limit: int | None = None) -> Steps[list[Message]]:
        yield from self._dialect.set_scope(scope)
        return (yield from self._newest(self._dialect.in_scope(scope, "m"), limit))

    @lookup_method_if(lambda scope, row, *, limit: limit <= MAX_LOOKUP_ROWS)
    def messages_before(self, scope: Scope, row: int | None, *, limit: int) -> Steps[list[Message]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_exact_scope(scope, "m")
        if row is not None:
            where, values = f"{where} AND m.row < ?", [*values, row]
        return (yield from self._newest((where, values), limit))

    @lookup_method_if(lambda scope, row, *, limit: limit <= MAX_LOOKUP_ROWS)
    def messages_since(self, scope: Scope, row: int, *, limit: int) -> Steps[list[Message]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_exact_scope(scope, "m")
        sql = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE {where} AND m.row > ? ORDER BY m.row LIMIT ?"
        found = yield from fetch_rows(sql, (*values, row, limit))
        return [message_from_row(each, self._dialect) for each in found]

    @lookup_method
    def count_unsummarized(self, scope: Scope, *, limit: int) -> Steps[int]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_exact_scope(scope, "m")
        of_summaries, summary_values = self._dialect.in_exact_scope(scope, "s")
        last = f"(SELECT upto FROM summaries AS s WHERE {of_summaries} ORDER BY s.row DESC LIMIT 1)"
        since = f"SELECT 1 FROM messages AS m WHERE {where} AND m.row > coalesce({last}, 0) LIMIT ?"
        [(count,)] = yield from fetch_rows(
            f"SELECT count(*) FROM ({since}) AS counted", (*values, *summary_values, limit)
        )
        return int(count)

    @lookup_method_if(lambda scope, messages: len(messages) <= MAX_LOOKUP_ROWS)
    def are_stored(self, scope: Scope, messages: Sequence[Message]) -> Steps[list[bool]]:
        if all(message.key is None for message in messages):
            return [False] * len(messages)
        yield from self._dialect.set_scope(scope)
        digests = message_digests(messages, scope, self._dialect.to_json)
        keyed = [message.key is not None for message in messages]
        wanted = [digest for has_key, digest in zip(keyed, digests, strict=True) if has_key]
        stored = yield from find_message_rows(self._dialect, wanted, scope)
        return [has_key and digest in stored for has_key, digest in zip(keyed, digests, strict=True)]

    @lookup_method
    def latest_summary(self, scope: Scope, *, as_of: str | None = None) -> Steps[Summary | None]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_exact_scope(scope)
        if as_of is not None:
            where, values = f"{where} AND valid_from <= ?", [*values, as_of]
        sql = f"SELECT text, upto, valid_from FROM summaries WHERE {where} ORDER BY row DESC LIMIT 1"
        found = yield from fetch_rows(sql, values)
        return Summary(*found[0]) if found else None

    def _newest(self, condition: Condition, limit: int | None) -> Steps[list[Message]]:
        where, values = condition
        sql = f"SELECT {MESSAGE_COLUMNS} FROM messages AS m WHERE {where} ORDER BY m.row DESC LIMIT ?"
        found = yield from fetch_rows(sql, (*values, self._dialect.limit(limit)))
        return [message_from_row(row, self._dialect) for row in reversed(found)]


def message_from_row(row: Sequence[Any], dialect: Dialect) -> Message:
    """Return the message in a row that begins with `MESSAGE_COLUMNS`."""
    trust = TRUST[row[7]]
    return Message(
        row[1],
        row[2],
        name=row[3],
        metadata=dialect.from_json(row[4]),
        timestamp=row[5],
        source=row[6],
        trust=None if trust is trust_of_role(row[1]) else trust,
        row=row[0],
    )


# --- steps of a write transaction that holds the scope's partition -------------------------------------------------


def insert_messages(
    dialect: Dialect, messages: Sequence[Message], scope: Scope, at: str, *, skips_repeated: bool = False
) -> Steps[list[int]]:
    """Store the messages of one add and return their rows. Messages that are stored already keep theirs.

    Args:
        skips_repeated: leave out the rows of messages with a key that were stored before.
    """
    if not messages:
        return []
    digests = message_digests(messages, scope, dialect.to_json)
    new = [(digest, message) for message, digest in zip(messages, digests, strict=True) if message.row is None]
    rows = iter((yield from insert_unique_messages(dialect, new, scope, at)))
    stored = [(message.row, False) if message.row is not None else next(rows) for message in messages]
    return [
        row
        for message, (row, is_new) in zip(messages, stored, strict=True)
        if is_new or message.key is None or not skips_repeated
    ]


def insert_unique_messages(
    dialect: Dialect, messages: Sequence[tuple[bytes, Message]], scope: Scope, at: str
) -> Steps[list[tuple[int, bool]]]:
    """Store messages whose digests are not stored yet; return the row of each, and True if it was stored now."""
    if not messages:
        return []
    columns = f"{dialect.exact}user_id, agent_id, run_id, {_WRITTEN_COLUMNS}"
    insert = insert_sql("messages", columns, "ON CONFLICT DO NOTHING RETURNING row")
    scope_values = (*dialect.exact_values(scope), *scope_ids(scope))
    inserted = yield from execute_batch(
        *(
            Statement(
                insert,
                (
                    *scope_values,
                    *(digest, message.role, message.content, message.name),
                    *(dialect.to_json(message.metadata), message.timestamp or at),
                    *(message.source, int(message.trust_class)),
                ),
            )
            for digest, message in messages
        )
    )
    new = {digest: done.rows[0][0] for (digest, _), done in zip(messages, inserted, strict=True) if done.rows}
    known = yield from find_message_rows(dialect, [digest for digest, _ in messages if digest not in new], scope)
    return [(new[digest], True) if digest in new else (known[digest], False) for digest, _ in messages]


def find_message_rows(dialect: Dialect, digests: Sequence[bytes], scope: Scope) -> Steps[dict[bytes, int]]:
    """Return the rows of the stored messages with these digests."""
    rows: dict[bytes, int] = {}
    part, part_values = dialect.in_part(scope)
    for page in pages(digests):
        where, values = dialect.equals_key("digest", page, scope)
        found = yield from fetch_rows(f"SELECT digest, row FROM messages WHERE {part}{where}", part_values + values)
        rows.update((bytes(digest), row) for digest, row in found)
    return rows


def insert_summary(dialect: Dialect, scope: Scope, summary: Summary) -> Steps[None]:
    """Insert a rolling summary of a scope."""
    columns = f"{dialect.exact}user_id, agent_id, run_id, text, upto, valid_from"
    values = (summary.text, summary.last_message_row, summary.valid_from)
    yield from execute(insert_sql("summaries", columns), (*dialect.exact_values(scope), *scope_ids(scope), *values))


def erase_summaries(dialect: Dialect, scope: Scope) -> Steps[int]:
    """Erase the summaries of exactly this scope and return their number."""
    where, values = dialect.in_exact_scope(scope)
    return (yield from execute(f"DELETE FROM summaries WHERE {where}", values))
