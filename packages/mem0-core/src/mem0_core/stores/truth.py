"""What a truth kept in SQL tables does alike, whichever database it is: pure, and free of any SQL but column names."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mem0_core.errors import LimitError, StoreError
from mem0_core.ports import Job
from mem0_core.records import (
    Axis,
    Change,
    Days,
    Entity,
    Event,
    MemoryItem,
    Message,
    Node,
    Relation,
    Scope,
    Triplet,
    new_id,
    outlives,
)
from mem0_core.words import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "SAID_COLUMNS",
    "Placed",
    "aims_at",
    "alike",
    "check_room",
    "chunks",
    "digests_of",
    "history_row",
    "ids_of",
    "item_of",
    "marks",
    "narrowest",
    "node_of",
    "numbers",
    "relation_of",
    "renewed",
    "said_of",
    "scope_of",
    "session_of",
    "vector_of",
    "what_goes_first",
    "words_said",
]

SAID_COLUMNS = (
    "id, user_id, agent_id, run_id, text, hash, metadata, actor_id, role, memory_type,"
    " created_at, updated_at, expiration_date, seq"
)
"""What a memory says, and what it said in the past: the columns that `item_of` reads, after a row number."""

Placed = tuple[int, MemoryItem]
"""A memory, and its row."""


@lru_cache(maxsize=4096)
def scope_of(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    return Scope(user_id, agent_id, run_id)  # cached: the rows of one search mostly share theirs


def check_room(waiting: int, most: int, scope: Scope) -> None:
    """Refuse a job where as many of its scope wait as may (LimitError)."""
    if waiting >= most:
        whose = ", ".join(f"{axis}={value!r}" for axis, value in scope.ids.items())
        raise LimitError(f"max_pending: {waiting} adds of {whose} wait to be learnt from, {most} allowed")


def ids_of(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.user_id, scope.agent_id, scope.run_id


def item_of(row: Sequence[Any], read_json: Callable[[str], Any], number: int | None = None) -> MemoryItem:
    """The memory in ``(row, *SAID_COLUMNS, pinned)``, of the memories, which have numbers, or of the past."""
    return MemoryItem(
        id=row[1],
        scope=scope_of(row[2], row[3], row[4]),
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
        pinned=bool(row[15]),
        row=number,
    )


def said_of(item: MemoryItem, to_json: Callable[[Any], str], seq: int) -> tuple[Any, ...]:
    """The values of `SAID_COLUMNS`."""
    return (
        item.id,
        *ids_of(item.scope),
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
    )


def node_of(row: Sequence[Any]) -> Node:
    """The node in a row: its number, its scope's ids, name, type."""
    return Node(row[0], Entity(row[4], row[5]), scope_of(row[1], row[2], row[3]))


def relation_of(row: Sequence[Any], memories: Sequence[str], days: Days | None) -> Relation:
    """The relation in a row: its number, its scope's ids, the triplet, weight, three times, its nodes' numbers."""
    return Relation(
        row=row[0],
        scope=scope_of(row[1], row[2], row[3]),
        triplet=Triplet(row[4], row[5], row[6]),
        weight=row[7],
        valid_from=row[8],
        valid_to=row[9],
        invalidated_at=row[10],
        source=row[11],
        destination=row[12],
        memories=tuple(memories),
        days=days,
    )


# --- a plan ------------------------------------------------------------------------------------------------------


def aims_at(change: Change, found: MemoryItem | None) -> bool:
    """Whether the memory that an UPDATE or DELETE was planned on still is what the plan saw."""
    return found is not None and (found.text, found.seq) == (change.before, change.after.seq)


def what_goes_first(changes: Sequence[Change]) -> list[int]:
    """The places of a plan in the order of writing: an UPDATE or ADD must not give way to a twin that goes too."""
    return sorted(range(len(changes)), key=lambda place: changes[place].event is not Event.DELETE)


def renewed(change: Change, twin: MemoryItem, seq: int) -> Change:
    """What becomes of an ADD of what `twin` says already: nothing, unless it would be remembered for longer."""
    until = change.after.expiration_date
    if not outlives(until, twin.expiration_date):
        return dataclasses.replace(change, event=Event.NONE, after=twin)
    after = dataclasses.replace(twin, expiration_date=until, seq=seq)
    return dataclasses.replace(change, event=Event.UPDATE, after=after, before=twin.text)


def history_row(
    item: MemoryItem, event: Event, old: str | None, new: str | None, updated_at: str | None
) -> tuple[Any, ...]:
    """The values of `schema.HISTORY_COLUMNS`."""
    gone = int(event is Event.DELETE)
    created_at = item.created_at
    return new_id(), item.id, old, new, event.value, created_at, updated_at, gone, item.actor_id, item.role


# --- messages and jobs -------------------------------------------------------------------------------------------


def digests_of(messages: Sequence[Message], scope: Scope, to_json: Callable[[Any], str]) -> list[bytes]:
    """What the messages of one add are known by, each of 16 bytes: of the whole add and the place in it."""
    add = repr((ids_of(scope), [(m.role, m.content, m.name, m.timestamp, to_json(m.metadata)) for m in messages]))
    whole, digests = hashlib.blake2b(add.encode(), digest_size=16), []
    for place in range(len(messages)):
        its = whole.copy()
        its.update(b"#%d" % place)
        digests.append(its.digest())
    return digests


def alike(jobs: Sequence[Job]) -> list[Job]:
    """The jobs at the head that can be done as one: turns of one conversation, under one set of options, untried."""
    first = jobs[0]
    together = [first]
    for job in jobs[1:]:
        same = _alike_by(job) == _alike_by(first)
        if first.kind != "remember" or first.attempts or job.attempts or not same:
            break
        together.append(job)
    return together


def _alike_by(job: Job) -> tuple[Any, ...]:
    return job.kind, job.scope, job.options, job.at[:10]


# --- words -------------------------------------------------------------------------------------------------------


def session_of(user_id: str | None, agent_id: str | None, run_id: str | None, alone: int) -> int:
    """The number of what a memory was said with: its run, or else `alone`, which is above 0."""
    if run_id is None:
        return alone
    exact = "\0".join((user_id or "", agent_id or "", run_id)).encode()
    return -1 - int.from_bytes(hashlib.blake2b(exact, digest_size=8).digest()) // 2


def words_said(terms: Iterable[str], names: Iterable[str], speaker: str | None) -> list[tuple[str, str]]:
    """What a memory is found by, each with its kind: its terms and names, and the words of its speaker's name."""
    said = [("term", term) for term in dict.fromkeys(terms)]
    said += [("name", name) for name in names]
    return said + [("speaker", word) for word in dict.fromkeys(plain(speaker or ""))]


def narrowest(scope: Scope) -> Axis:
    """The id of a scope that the fewest memories share."""
    return Axis.RUN if scope.run_id else Axis.USER if scope.user_id else Axis.AGENT


# --- statements --------------------------------------------------------------------------------------------------

_CHUNK = 500  # bound variables per statement; the databases' own limits are far higher


def chunks(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), _CHUNK):
        # NumPy's integers are unknown to sqlite3
        yield tuple(v.item() if hasattr(v, "item") else v for v in values[start : start + _CHUNK])


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


# --- vectors -----------------------------------------------------------------------------------------------------


def vector_of(vector: Any, dims: int) -> NDArray[np.float32]:
    """The vector as it is stored, (dims,) float32.

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


def numbers(rows: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """The first column of `rows`."""
    import numpy as np

    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
