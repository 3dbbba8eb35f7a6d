"""Rows and records: conversions that SQLite and PostgreSQL share, as pure functions."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import (
    Axis,
    DateRange,
    Entity,
    Event,
    HistoryEvent,
    MemoryChange,
    MemoryItem,
    Message,
    Node,
    Relation,
    Scope,
    Triplet,
    Trust,
    expires_later,
    new_id,
)
from mem0_core.errors import LimitError, StoreError
from mem0_core.interfaces import Job
from mem0_core.interfaces.queue import TRACE_OPTION
from mem0_core.language.terms import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

CONTENT_COLUMNS = (
    "id, user_id, agent_id, run_id, text, hash, metadata, actor_id, role, memory_type,"
    " created_at, updated_at, expiration_date, seq, trust"
)
"""Columns that a memory and its earlier texts share."""

MEMORY_COLUMNS = f"row, {CONTENT_COLUMNS}, pinned, useful, useless"
"""Columns of a memory, as `memory_from_row` reads them."""

PAST_COLUMNS = f"row, {CONTENT_COLUMNS}, false, 0, 0"
"""Columns of an earlier text, as `memory_from_row` reads them."""

StoredMemory = tuple[int, MemoryItem]
"""Row and memory."""


TRUST = tuple(Trust)

_MAX_ID_CHARS = 200  # characters of an id in a partition key: an index entry has a limit, an id has none


@text_cache(4096)
def partition_key(scope: Scope) -> str:
    """Return the name of a scope's partition, its first id: ``user_id=alice``."""
    axis, value = scope.partition
    if len(value) > _MAX_ID_CHARS:
        value = f"{value[:64]}#{hashlib.blake2b(value.encode(), digest_size=16).hexdigest()}"
    return f"{axis.value}={value}"


@text_cache(4096)
def scope_from_ids(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    """Return the cached scope of three id columns."""
    return Scope.from_stored(user_id, agent_id, run_id)  # cached: the rows of one search mostly share theirs


def check_queue_limit(queued: int, most: int, scope: Scope) -> None:
    """Raise LimitError if a scope has the maximum number of queued jobs."""
    if queued >= most:
        whose = ", ".join(f"{axis}={value!r}" for axis, value in scope.ids.items())
        raise LimitError(f"max_pending: {queued} adds of {whose} wait to be learnt from, {most} allowed")


def scope_ids(scope: Scope) -> tuple[str | None, str | None, str | None]:
    """Return the ids of a scope as column values."""
    return scope.user_id, scope.agent_id, scope.run_id


def memory_from_row(row: Sequence[Any], read_json: Callable[[str], Any], number: int | None = None) -> MemoryItem:
    """Return the memory in `MEMORY_COLUMNS` or `PAST_COLUMNS`; `number` is its row, None for an earlier text."""
    return MemoryItem(
        id=row[1],
        scope=scope_from_ids(row[2], row[3], row[4]),
        text=row[5],
        hash=row[6],
        metadata=read_json(row[7]) if row[7] != "{}" else {},
        actor_id=row[8],
        role=row[9],
        memory_type=row[10],
        created_at=row[11],
        updated_at=row[12],
        expiration_date=row[13],
        seq=row[14],
        trust=TRUST[row[15]],
        pinned=bool(row[16]),
        useful=row[17],
        useless=row[18],
        row=number,
    )


def content_values(item: MemoryItem, to_json: Callable[[Any], str], seq: int) -> tuple[Any, ...]:
    """Return the values of `CONTENT_COLUMNS`."""
    return (
        item.id,
        *scope_ids(item.scope),
        item.text,
        item.hash,
        to_json(item.metadata),
        item.actor_id,
        item.role,
        item.memory_type,
        item.created_at,
        item.updated_at,
        item.expiration_date,
        seq,
        int(item.trust),
    )


def node_from_row(row: Sequence[Any]) -> Node:
    """Return the node in a row: its number, the ids of its scope, name, type."""
    return Node(row[0], Entity(row[4], row[5]), scope_from_ids(row[1], row[2], row[3]))


def relation_from_row(row: Sequence[Any], memories: Sequence[str], days: DateRange | None) -> Relation:
    """Return the relation in a row: number, ids of its scope, triplet, weight, three times, rows of its nodes."""
    return Relation(
        row=row[0],
        scope=scope_from_ids(row[1], row[2], row[3]),
        triplet=Triplet(row[4], row[5], row[6]),
        weight=row[7],
        valid_from=row[8],
        valid_to=row[9],
        invalidated_at=row[10],
        source_node=row[11],
        destination_node=row[12],
        memories=tuple(memories),
        event_dates=days,
    )


# --- a plan ------------------------------------------------------------------------------------------------------


def is_plan_current(change: MemoryChange, found: MemoryItem | None) -> bool:
    """Return True if the memory of a planned UPDATE or DELETE is unchanged since the plan."""
    return found is not None and (found.text, found.seq) == (change.before, change.after.seq)


def write_order(changes: Sequence[MemoryChange]) -> list[int]:
    """Return the indexes of a plan in writing order: deletions first, so that no change repeats a deleted memory."""
    return sorted(range(len(changes)), key=lambda place: changes[place].event is not Event.DELETE)


def resolve_duplicate_add(change: MemoryChange, duplicate: MemoryItem, seq: int) -> MemoryChange:
    """Return the outcome of an ADD that repeats `duplicate`: NONE, or an UPDATE if it expires later."""
    until = change.after.expiration_date
    if not expires_later(until, duplicate.expiration_date):
        return dataclasses.replace(change, event=Event.NONE, after=duplicate)
    after = dataclasses.replace(duplicate, expiration_date=until, seq=seq)
    return dataclasses.replace(change, event=Event.UPDATE, after=after, before=duplicate.text)


def history_values(
    item: MemoryItem, event: HistoryEvent, old: str | None, new: str | None, updated_at: str | None
) -> tuple[Any, ...]:
    """Return the values of `schema.HISTORY_COLUMNS`."""
    gone = int(new is None)
    created_at = item.created_at
    return new_id(), item.id, old, new, event.value, created_at, updated_at, gone, item.actor_id, item.role


# --- messages and jobs -------------------------------------------------------------------------------------------


def message_digests(messages: Sequence[Message], scope: Scope, to_json: Callable[[Any], str]) -> list[bytes]:
    """Return 16 bytes for each message of an add that identify it in the store.

    Those of a message with a key are a digest of the key, and of any other message a digest of the whole add and its
    index in it.
    """
    ids, others = scope_ids(scope), [message for message in messages if message.key is None]
    add = repr((ids, [_digest_parts(message, to_json) for message in others]))
    whole, place, digests = hashlib.blake2b(add.encode(), digest_size=16), 0, []
    for message in messages:
        if message.key is not None:
            named = (ids, message.key) if message.source is None else (ids, message.key, message.source)
            digests.append(hashlib.blake2b(repr(named).encode(), digest_size=16).digest())
            continue
        its = whole.copy()
        its.update(b"#%d" % place)
        digests.append(its.digest())
        place += 1
    return digests


def _digest_parts(message: Message, to_json: Callable[[Any], str]) -> tuple[Any, ...]:
    """Return the parts of a message that tell it from others; another source makes it another message."""
    parts = (message.role, message.content, message.name, message.timestamp, to_json(message.metadata))
    origin = (message.source, message.trust)
    return parts if origin == (None, None) else (*parts, message.source, int(message.trust_class))


def batchable_jobs(jobs: Sequence[Job]) -> list[Job]:
    """Return the leading jobs that can run as one: turns of one conversation with the same options, not yet tried."""
    first = jobs[0]
    together = [first]
    for job in jobs[1:]:
        same = _batch_key(job) == _batch_key(first)
        if first.kind != "remember" or first.attempts or job.attempts or not same:
            break
        together.append(job)
    return together


def _batch_key(job: Job) -> tuple[Any, ...]:
    options = {name: value for name, value in job.options.items() if name != TRACE_OPTION}
    return job.kind, job.scope, options, job.timestamp[:10]


# --- words -------------------------------------------------------------------------------------------------------


def session_number(user_id: str | None, agent_id: str | None, run_id: str | None, own_session: int) -> int:
    """Return the session of a memory: a negative number for its run, or else `own_session`, which is above 0."""
    if run_id is None:
        return own_session
    exact = "\0".join((user_id or "", agent_id or "", run_id)).encode()
    return -1 - int.from_bytes(hashlib.blake2b(exact, digest_size=8).digest()) // 2


def index_keys(
    terms: Iterable[str], names: Iterable[str], speaker: str | None, slots: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the keys of a memory, each with its kind: terms, names, words of its speaker's name, and slots."""
    said = [("term", term) for term in dict.fromkeys(terms)]
    said += [("name", name) for name in names]
    said += [("slot", slot) for slot in slots]
    return said + [("speaker", word) for word in dict.fromkeys(split_words(speaker or ""))]


def narrowest_axis(scope: Scope) -> Axis:
    """Return the id of a scope that the fewest memories share."""
    return Axis.RUN if scope.run_id else Axis.USER if scope.user_id else Axis.AGENT


# --- statements --------------------------------------------------------------------------------------------------

_CHUNK_VALUES = 500  # bound variables per statement; the databases' own limits are far higher


def chunks(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values in chunks that fit into one statement."""
    for start in range(0, len(values), _CHUNK_VALUES):
        # NumPy's integers are unknown to sqlite3
        yield tuple(v.item() if hasattr(v, "item") else v for v in values[start : start + _CHUNK_VALUES])


def pages(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield `values` in slices that fit into one statement."""
    for start in range(0, len(values), _CHUNK_VALUES):
        yield values[start : start + _CHUNK_VALUES]


def placeholders(values: Sequence[Any]) -> str:
    """Return one placeholder per value."""
    return ", ".join("?" * len(values))


# --- vectors -----------------------------------------------------------------------------------------------------


def to_stored_vector(vector: Any, dims: int) -> NDArray[np.float32]:
    """Return a vector as it is stored, (dims,) float32.

    Raises:
        StoreError: there is none, or it has another form.
    """
    import numpy as np

    if vector is None or not dims:
        raise StoreError("what is embedded is stored with its vector, and the commit names the embedder's space")
    array = np.ascontiguousarray(vector, dtype="<f4")
    if array.shape != (dims,):
        raise StoreError(f"the embedder promised {dims} dims and gave a vector of shape {array.shape}")
    return array


def first_column(rows: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Return the first column of `rows`."""
    import numpy as np

    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
