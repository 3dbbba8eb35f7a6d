"""Taking memories over from another store, one by one in the order of their times, under their own ids.

The messages that they came from go before them, so that each is kept with its own, and deleted with them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mem0_core.domain.policy import Policy, apply_policy, filter_messages
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Message,
    Scope,
    content_hash,
    is_valid_text,
)
from mem0_core.errors import InputError, ScopeError
from mem0_core.flow import Flow, do
from mem0_core.ingest.memory_relations import extract_memory_relations
from mem0_core.ingest.relations import sync_projections
from mem0_core.interfaces import Ports
from mem0_core.language.messages import check_metadata, parse_date, parse_timestamp
from mem0_core.recall.embedding import embed_texts, embedding_space_of

__all__ = ["AdoptionData", "ImportedMessage", "adopt", "filter_adoption", "parse_adoption"]

_BATCH_SIZE = 256

ProgressCallback = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message of another store.

    Attributes:
        id: its number there.
        digest: what it is known by, wherever it is kept (`archive.SECTIONS`).
    """

    id: int
    scope: Scope
    digest: bytes
    message: Message


@dataclass(frozen=True, slots=True)
class AdoptionData:
    """What another store had, checked.

    Attributes:
        items: memories, oldest first.
        messages: in the order in which they were said.
        sources: for the id of a memory the numbers of the messages it came from.
    """

    items: Sequence[MemoryItem]
    history: Sequence[HistoryRow]
    messages: Sequence[ImportedMessage]
    sources: Mapping[str, Sequence[int]]


def parse_adoption(
    memories: Sequence[Mapping[str, Any]],
    history: Sequence[Mapping[str, Any]] = (),
    messages: Sequence[Mapping[str, Any]] = (),
) -> AdoptionData:
    """What comes from elsewhere, checked; see `Memory.adopt`.

    Raises:
        InputError, ScopeError: naming the memory, the row or the message, and what is wrong with it.
    """
    items = sorted(
        (_parse_memory(memory, place) for place, memory in enumerate(memories)), key=lambda item: item.created_at
    )
    return AdoptionData(
        items=items,
        history=[_parse_history_row(row, place) for place, row in enumerate(history)],
        messages=[_parse_message(message, place) for place, message in enumerate(messages)],
        sources={memory["id"]: list(memory.get("messages") or ()) for memory in memories},
    )


def _parse_memory(memory: Mapping[str, Any], place: int) -> MemoryItem:
    memory_id, text = memory.get("id"), memory.get("memory")
    what = f"memory {memory_id!r}" if memory_id else f"memories[{place}]"
    if not isinstance(memory_id, str) or not memory_id or not is_valid_text(memory_id):
        raise InputError(f"{what}: its id must be a non-empty string, not {memory_id!r}")
    if not isinstance(text, str) or not text.strip() or not is_valid_text(text):
        raise InputError(f"{what} has no text: {text!r}")
    try:
        scope = Scope(memory.get("user_id"), memory.get("agent_id"), memory.get("run_id"))
    except ScopeError as error:
        raise ScopeError(f"{what}: {error}") from error
    at = {key: memory.get(key) for key in ("created_at", "updated_at")}
    until = memory.get("expiration_date")
    return MemoryItem(
        id=memory_id,
        text=text,
        scope=scope,
        hash=content_hash(text),
        created_at=parse_timestamp(at["created_at"], f"{what}.created_at"),
        updated_at=None if at["updated_at"] is None else parse_timestamp(at["updated_at"], f"{what}.updated_at"),
        metadata=check_metadata(memory.get("metadata"), what),
        actor_id=memory.get("actor_id"),
        role=memory.get("role"),
        memory_type=memory.get("memory_type"),
        expiration_date=None if until is None else parse_date(until, f"{what}.expiration_date"),
    )


def _parse_history_row(row: Mapping[str, Any], place: int) -> HistoryRow:
    """A row of mem0's history table."""
    if not all(isinstance(row.get(key), str) for key in ("id", "memory_id", "event")):
        raise InputError(f"history[{place}] has no id, memory_id or event")
    values: dict[str, Any] = {field.name: row.get(field.name) for field in dataclasses.fields(HistoryRow)}
    return HistoryRow(**{**values, "is_deleted": bool(values["is_deleted"])})


def _parse_message(message: Mapping[str, Any], place: int) -> ImportedMessage:
    what = f"messages[{place}]"
    content, role, name = message.get("content"), message.get("role"), message.get("name")
    if not isinstance(content, str) or not is_valid_text(content) or not isinstance(role, str):
        raise InputError(f"{what} has no role or content")
    try:
        scope = Scope(message.get("user_id"), message.get("agent_id"), message.get("run_id"))
        digest = bytes.fromhex(message["digest"])
        number = int(message["id"])
    except ScopeError as error:
        raise ScopeError(f"{what}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{what} has no id or digest: {error}") from error
    at = parse_timestamp(message.get("created_at"), f"{what}.created_at")
    metadata = check_metadata(message.get("metadata"), what)
    return ImportedMessage(number, scope, digest, Message(role, content, name=name, metadata=metadata, timestamp=at))


def filter_adoption(data: AdoptionData, policy: Policy | None) -> AdoptionData:
    """What a policy leaves of it. Of history it is asked for texts of memories that come along; others have none."""
    if policy is None:
        return data
    left = [(item, apply_policy(policy, item.text, item.scope)) for item in data.items]
    kept = [dataclasses.replace(item, text=text, hash=content_hash(text)) for item, text in left if text is not None]
    scopes = {item.id: item.scope for item in kept}
    rows = []
    for row in data.history:
        if row.memory_id in scopes:
            texts = [
                text and apply_policy(policy, text, scopes[row.memory_id]) for text in (row.old_memory, row.new_memory)
            ]
            rows.append(dataclasses.replace(row, old_memory=texts[0], new_memory=texts[1]))
    messages = []
    for one in data.messages:
        said, _ = filter_messages(policy, [one.message], one.scope)
        messages += [dataclasses.replace(one, message=message) for message in said]
    return dataclasses.replace(data, items=kept, history=rows, messages=messages)


def adopt(ports: Ports, data: AdoptionData, on_progress: ProgressCallback | None = None) -> Flow[dict[str, int]]:
    """Take in the messages, commit each memory that is not here yet, with its relations; then take in the history.

    Each is a commit of its own, so that a later one can end what an earlier one says, as if they had been added so.
    """
    counts = {"added": 0, "known": 0, "deleted": 0}
    fresh: list[MemoryItem] = []
    unwanted: set[int] = set()
    for item in data.items:
        fate = yield from _find_existing_status(ports, item)
        if fate is None:
            fresh.append(item)
        else:
            counts[fate] += 1
        if fate == "deleted":
            unwanted.update(data.sources.get(item.id, ()))  # they were deleted with it
    heard = yield from _store_messages(ports, [one for one in data.messages if one.id not in unwanted])
    done = len(data.items) - len(fresh)
    report = on_progress or (lambda done, total: None)
    report(done, len(data.items))
    for start in range(0, len(fresh), _BATCH_SIZE):
        batch = fresh[start : start + _BATCH_SIZE]
        vectors = yield from embed_texts(ports, [item.text for item in batch])
        for item, vector in zip(batch, vectors, strict=True):
            came_from = [heard[number] for number in data.sources.get(item.id, ()) if number in heard]
            counts["added" if (yield from _commit_memory(ports, item, vector, came_from)) else "known"] += 1
        done += len(batch)
        report(done, len(data.items))
    yield from sync_projections(ports)
    new = (yield from do(ports.store.maintenance.adopt_history, data.history)) if data.history else 0
    return {**counts, "history": new, "heard": len(heard)}


def _store_messages(ports: Ports, messages: Sequence[ImportedMessage]) -> Flow[dict[int, ImportedMessage]]:
    """Keep messages, those said in one scope one after the other at once; returns them by their numbers elsewhere,
    with the rows they have here."""
    heard: dict[int, ImportedMessage] = {}
    for scope, group in itertools.groupby(messages, key=lambda one: one.scope):
        said = list(group)
        for start in range(0, len(said), _BATCH_SIZE):
            batch = said[start : start + _BATCH_SIZE]
            rows = yield from do(
                ports.store.maintenance.adopt_messages, scope, [(one.digest, one.message) for one in batch]
            )
            for one, row in zip(batch, rows, strict=True):
                heard[one.id] = dataclasses.replace(one, message=dataclasses.replace(one.message, row=row))
    return heard


def _find_existing_status(ports: Ports, item: MemoryItem) -> Flow[str | None]:
    """What became of a memory that was taken over before; None for one that was not."""
    if (yield from do(ports.store.get, item.id)) is not None:
        return "known"
    past = yield from do(ports.store.history, item.id)
    return "deleted" if past and past[-1].event == Event.DELETE else None


def _commit_memory(ports: Ports, item: MemoryItem, vector: Any, heard: Sequence[ImportedMessage]) -> Flow[bool]:
    """Whether the scope did not say it yet."""
    messages = [one.message for one in heard if one.scope.partition == item.scope.partition]
    change = MemoryChange(Event.ADD, item, vector=vector, message_indexes=tuple(range(len(messages))))
    by_rules = ports.graph is not None and ports.graph.chat is None  # a model is not asked, as in other imports
    relations = (yield from extract_memory_relations(ports, item)) if by_rules else ()
    commit = yield from do(
        ports.store.commit,
        [change],
        scope=item.scope,
        messages=messages,
        at=item.updated_at or item.created_at,
        embedding_space=embedding_space_of(ports, [change], relations),
        relations=relations,
        on_conflict=ports.on_conflict,
    )
    return commit.applied[0].event is Event.ADD
