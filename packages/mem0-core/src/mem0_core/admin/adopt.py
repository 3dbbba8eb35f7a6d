"""Import memories from another store one by one, in the order of their times and under their own ids.

Their source messages are imported first, so that each memory is linked to its messages and deleted with them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.policy import Policy, apply_policy, filter_messages
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Message,
    Scope,
    Trust,
    content_hash,
    is_valid_text,
)
from mem0_core.domain.suggestions import describe_value
from mem0_core.domain.timestamps import parse_date, parse_timestamp
from mem0_core.domain.trust import parse_origin, parse_trust
from mem0_core.errors import InputError, ScopeError
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import extract_memory_relations, sync_projections
from mem0_core.interfaces import Ports
from mem0_core.interfaces.maintenance import ProgressCallback
from mem0_core.language.messages import check_metadata
from mem0_core.recall.embedding import embed_texts, embedding_space_of

_MAX_MARKS = 10**9  # the counts of a memory stay far below the largest integer of a store
_BATCH_SIZE = 256
_PROBES = 8  # texts that are embedded to compare them with the vectors of another store
_SAME_SPACE = 0.999  # cosine of two runs of one model; those of two models of one family are below 0.9


@dataclass(frozen=True, slots=True)
class AdoptedMessage:
    """A message of another store.

    Attributes:
        id: Number of the message in that store.
        digest: Identifier of the message in every store (`archive.SECTIONS`).
    """

    id: int
    scope: Scope
    digest: bytes
    message: Message


@dataclass(frozen=True, slots=True)
class AdoptionData:
    """Validated records of another store.

    Attributes:
        items: Memories, oldest first.
        messages: Messages in their order.
        sources: Numbers of the source messages by memory id.
        vectors: Vectors of the memories' texts in that store, by memory id.
    """

    items: Sequence[MemoryItem]
    history: Sequence[HistoryRow]
    messages: Sequence[AdoptedMessage]
    sources: Mapping[str, Sequence[int]]
    vectors: Mapping[str, Any]


def parse_adoption(
    memories: Sequence[Mapping[str, Any]],
    history: Sequence[Mapping[str, Any]] = (),
    messages: Sequence[Mapping[str, Any]] = (),
) -> AdoptionData:
    """Validate the arguments of `Memory.adopt`.

    Raises:
        InputError, ScopeError: An item is invalid; names the memory, row or message, and the reason.
    """
    items = sorted(
        (_parse_memory(memory, index) for index, memory in enumerate(memories)), key=lambda item: item.created_at
    )
    return AdoptionData(
        items=items,
        history=[_parse_history_row(row, index) for index, row in enumerate(history)],
        messages=[_parse_message(message, index) for index, message in enumerate(messages)],
        sources={memory["id"]: list(memory.get("messages") or ()) for memory in memories},
        vectors={
            memory["id"]: _parse_vector(memory["vector"], f"memory {memory['id']!r}.vector")
            for memory in memories
            if memory.get("vector") is not None
        },
    )


def _parse_memory(memory: Mapping[str, Any], index: int) -> MemoryItem:
    if not isinstance(memory, Mapping):
        raise InputError(f"memories[{index}] must be a mapping, not {describe_value(memory)}")
    memory_id, text = memory.get("id"), memory.get("memory")
    label = f"memory {memory_id!r}" if memory_id else f"memories[{index}]"
    if not isinstance(memory_id, str) or not memory_id or not is_valid_text(memory_id):
        raise InputError(f"{label}: its id must be a non-empty string, not {memory_id!r}; pass a text")
    if not isinstance(text, str) or not text.strip() or not is_valid_text(text):
        raise InputError(f"{label} has no text: {text!r}")
    try:
        scope = Scope.from_stored(memory.get("user_id"), memory.get("agent_id"), memory.get("run_id"))
    except ScopeError as error:
        raise ScopeError(f"{label}: {error}") from error
    at = {key: memory.get(key) for key in ("created_at", "updated_at")}
    until = memory.get("expiration_date")
    return MemoryItem(
        id=memory_id,
        text=text,
        scope=scope,
        hash=content_hash(text),
        created_at=parse_timestamp(at["created_at"], f"{label}.created_at"),
        updated_at=None if at["updated_at"] is None else parse_timestamp(at["updated_at"], f"{label}.updated_at"),
        metadata=check_metadata(memory.get("metadata"), label),
        actor_id=memory.get("actor_id"),
        role=memory.get("role"),
        memory_type=memory.get("memory_type"),
        expiration_date=None if until is None else parse_date(until, f"{label}.expiration_date"),
        trust=Trust.USER if (trust := parse_trust(memory.get("trust"), f"{label}.trust")) is None else trust,
        useful=_parse_count(memory.get("useful"), f"{label}.useful"),
        useless=_parse_count(memory.get("useless"), f"{label}.useless"),
    )


def _parse_count(count: object, label: str) -> int:
    if count is None:
        return 0
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MAX_MARKS:
        raise InputError(f"{label} must be a whole number from 0 to {_MAX_MARKS}, not {count!r}")
    return count


def _parse_vector(vector: object, label: str) -> Any:
    import numpy as np  # only where vectors exist: the import takes 0.1 s

    try:
        found = np.asarray(vector, np.float32)
        if found.ndim == 1 and found.size:
            return found
    except (TypeError, ValueError):
        pass
    raise InputError(f"{label} must be a list of numbers, not {describe_value(vector)}; pass one, or leave it out")


def _parse_history_row(row: Mapping[str, Any], index: int) -> HistoryRow:
    """Validate a row of mem0's history table."""
    if not all(isinstance(row.get(key), str) for key in ("id", "memory_id", "event")):
        raise InputError(f"history[{index}] must have an id, memory_id and event")
    values: dict[str, Any] = {field.name: row.get(field.name) for field in dataclasses.fields(HistoryRow)}
    return HistoryRow(**{**values, "is_deleted": bool(values["is_deleted"])})


def _parse_message(message: Mapping[str, Any], index: int) -> AdoptedMessage:
    label = f"messages[{index}]"
    content, role, name = message.get("content"), message.get("role"), message.get("name")
    if not isinstance(content, str) or not is_valid_text(content) or not isinstance(role, str):
        raise InputError(f"{label} has no role or content")
    try:
        scope = Scope.from_stored(message.get("user_id"), message.get("agent_id"), message.get("run_id"))
        digest = bytes.fromhex(message["digest"])
        number = int(message["id"])
    except ScopeError as error:
        raise ScopeError(f"{label}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{label} has no id or digest: {error}") from error
    at = parse_timestamp(message.get("created_at"), f"{label}.created_at")
    metadata = check_metadata(message.get("metadata"), label)
    source, trust = parse_origin(message.get("source"), message.get("trust"))
    adopted = Message(role, content, name=name, metadata=metadata, timestamp=at, source=source, trust=trust)
    return AdoptedMessage(number, scope, digest, adopted)


def filter_adoption(data: AdoptionData, policy: Policy | None) -> AdoptionData:
    """Apply a policy to memories, history and messages; drop the history of memories that are not imported."""
    if policy is None:
        return data
    checked = [(item, apply_policy(policy, item.text, item.scope)) for item in data.items]
    allowed = [
        dataclasses.replace(item, text=text, hash=content_hash(text)) for item, text in checked if text is not None
    ]
    scopes = {item.id: item.scope for item in allowed}
    rows = []
    for row in data.history:
        if row.memory_id in scopes:
            texts = [
                text and apply_policy(policy, text, scopes[row.memory_id]) for text in (row.old_memory, row.new_memory)
            ]
            rows.append(dataclasses.replace(row, old_memory=texts[0], new_memory=texts[1]))
    messages = []
    for one in data.messages:
        remaining, _ = filter_messages(policy, [one.message], one.scope)
        messages += [dataclasses.replace(one, message=message) for message in remaining]
    kept = {item.id for item, text in checked if text == item.text}  # a vector of a changed text is wrong
    vectors = {id: vector for id, vector in data.vectors.items() if id in kept}
    return dataclasses.replace(data, items=allowed, history=rows, messages=messages, vectors=vectors)


def adopt(ports: Ports, data: AdoptionData, on_progress: ProgressCallback | None = None) -> Flow[dict[str, Any]]:
    """Import the messages, then each new memory with its relations, then the history.

    Each memory has its own commit, so that a later one can end relations of an earlier one, as with `Memory.add`.
    """
    counts = {"added": 0, "known": 0, "deleted": 0}
    fresh: list[MemoryItem] = []
    deleted_sources: set[int] = set()
    for item in data.items:
        status = yield from _find_existing_status(ports, item)
        if status is None:
            fresh.append(item)
        else:
            counts[status] += 1
        if status == "deleted":
            deleted_sources.update(data.sources.get(item.id, ()))  # deleted together with it
    stored = yield from _store_messages(ports, [one for one in data.messages if one.id not in deleted_sources])
    done = len(data.items) - len(fresh)
    report = on_progress or (lambda done, total: None)
    report(done, len(data.items))
    known, reason = yield from _check_vectors(ports, fresh, data.vectors)
    for start in range(0, len(fresh), _BATCH_SIZE):
        batch = fresh[start : start + _BATCH_SIZE]
        rest = [item for item in batch if item.id not in known]
        made = (yield from embed_texts(ports, [item.text for item in rest])) if rest else ()
        vectors = {**known, **dict(zip((item.id for item in rest), made, strict=True))}
        for item in batch:
            sources = [stored[number] for number in data.sources.get(item.id, ()) if number in stored]
            is_new = yield from _commit_memory(ports, item, vectors[item.id], sources)
            counts["added" if is_new else "known"] += 1
        done += len(batch)
        report(done, len(data.items))
    yield from sync_projections(ports)
    new = (yield from do(ports.store.maintenance.adopt_history, data.history)) if data.history else 0
    moved = {"moved": len(known), "embedded": len(fresh) - len(known), "reason": reason}
    return {**counts, "history": new, "adopted_messages": len(stored), "vectors": moved}


def _check_vectors(
    ports: Ports, items: Sequence[MemoryItem], given: Mapping[str, Any]
) -> Flow[tuple[Mapping[str, Any], str]]:
    """Return the given vectors of memories if the embedder would make the same, else none of them, and the reason.

    Some texts, from the oldest to the newest, are embedded for this: the other store may have changed its model.
    """
    import numpy as np  # only where vectors exist: the import takes 0.1 s

    owners = [item for item in items if item.id in given]
    if not owners:
        return {}, "the store has no vectors that can be read"
    name, dims = ports.embedder.name, ports.embedder.dims
    lengths = {len(given[item.id]) for item in owners}
    if lengths != {dims}:
        return {}, f"the stored vectors have {min(lengths - {dims})} dimensions, and those of {name} have {dims}"
    vectors = np.stack([given[item.id] for item in owners])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        return {}, "a stored vector is no direction"
    vectors /= norms
    rows = np.unique(np.linspace(0, len(owners) - 1, _PROBES).astype(int))
    made = yield from embed_texts(ports, [owners[row].text for row in rows])
    lowest = float(np.min(np.sum(vectors[rows] * made, axis=1) / np.linalg.norm(made, axis=1)))
    shown = f"{name} embedded {len(rows)} of the texts, and the lowest cosine with a stored vector is"
    if not lowest >= _SAME_SPACE:  # also for the embedding of no direction, whose cosine is no number
        return {}, f"{shown} {lowest:.3f}, below {_SAME_SPACE}"
    return dict(zip((item.id for item in owners), vectors, strict=True)), f"{shown} {lowest:.4f}"


def _store_messages(ports: Ports, messages: Sequence[AdoptedMessage]) -> Flow[dict[int, AdoptedMessage]]:
    """Store messages, consecutive ones of a scope together; return them, with their new rows, by their old numbers."""
    stored: dict[int, AdoptedMessage] = {}
    for scope, group in itertools.groupby(messages, key=lambda one: one.scope):
        of_scope = list(group)
        for start in range(0, len(of_scope), _BATCH_SIZE):
            batch = of_scope[start : start + _BATCH_SIZE]
            rows = yield from do(
                ports.store.maintenance.adopt_messages, scope, [(one.digest, one.message) for one in batch]
            )
            for one, row in zip(batch, rows, strict=True):
                stored[one.id] = dataclasses.replace(one, message=dataclasses.replace(one.message, row=row))
    return stored


def _find_existing_status(ports: Ports, item: MemoryItem) -> Flow[str | None]:
    """Return the status of a memory that was imported before: "known" or "deleted"; None for a new one."""
    if (yield from do(ports.store.get, item.id)) is not None:
        return "known"
    history = yield from do(ports.store.history, item.id)
    return "deleted" if history and history[-1].event == Event.DELETE else None


def _commit_memory(ports: Ports, item: MemoryItem, vector: Any, sources: Sequence[AdoptedMessage]) -> Flow[bool]:
    """Commit a memory with its relations and source messages; return False if the scope has the same text already."""
    messages = [one.message for one in sources if one.scope.partition == item.scope.partition]
    change = MemoryChange(Event.ADD, item, vector=vector, message_indexes=tuple(range(len(messages))))
    by_rules = ports.graph is not None and ports.graph.chat is None  # imports never call a model
    relations = (yield from extract_memory_relations(ports, item)) if by_rules else ()
    commit = yield from do(
        ports.store.commit,
        [change],
        scope=item.scope,
        messages=messages,
        at=item.said_at,
        embedding_space=embedding_space_of(ports, [change], relations),
        relations=relations,
        on_conflict=ports.on_conflict,
    )
    is_new = commit.applied[0].event is Event.ADD
    if is_new and (item.useful or item.useless):
        yield from do(ports.store.mark, [item.id], useful=item.useful, useless=item.useless, clear=True)
    return is_new
