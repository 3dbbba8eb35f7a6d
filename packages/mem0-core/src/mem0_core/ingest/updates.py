"""Maintenance of stored memories: update and delete by id, erase a scope, embed everything again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mem0_core.domain.records import (
    Event,
    LaggingProjection,
    MemoryChange,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    content_hash,
    is_valid_text,
)
from mem0_core.errors import InputError, NotFoundError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest._relation_plan import Evidence
from mem0_core.ingest.relations import extract_relations, sync_projections
from mem0_core.ingest.request import RelationInput, stored_messages
from mem0_core.interfaces import EmbeddedItem, Ports
from mem0_core.recall.embedding import embed_texts, embedding_space_of

__all__ = [
    "UpdateResult",
    "check_memory_text",
    "delete_memories",
    "delete_memory",
    "delete_scope",
    "reembed_all",
    "reset_store",
    "update_memory",
]

_MAX_ATTEMPTS = 3
_BATCH_SIZE = 256


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Outcome of an update; in a dry run, the planned outcome.

    Attributes:
        relations: relations that started and ended.
        pending: projections that could not be updated yet.
    """

    relations: tuple[RelationChange, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()


def update_memory(
    ports: Ports, memory_id: str, text: str, *, metadata: Mapping[str, Any] | None, at: str
) -> Flow[UpdateResult]:
    """Give a memory a new text, add `metadata` to its own, and extract its relations again.

    Raises:
        NotFoundError: no memory has that id.
        InputError: the text is empty or not valid Unicode, or another memory of the scope has the same text.
        ModelError: a model call failed; nothing is written.
        StoreError: the commit failed, or other writers kept changing the memory; nothing is written.
    """
    check_memory_text(text)
    for _ in range(_MAX_ATTEMPTS):
        item = yield from do(ports.store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        after = dataclasses.replace(
            item, text=text, hash=content_hash(text), updated_at=at, metadata={**item.metadata, **(metadata or {})}
        )
        has_new_text = text != item.text
        vector = (yield from embed_texts(ports, [text]))[0] if has_new_text else None
        change = MemoryChange(Event.UPDATE, after, before=item.text, vector=vector)
        relations = (yield from _derive_relations(ports, after)) if has_new_text else ()
        commit = yield from do(
            ports.store.commit,
            [change],
            scope=item.scope,
            at=at,
            embedding_space=embedding_space_of(ports, [change], relations),
            reject_duplicates=True,
            relations=relations,
            on_conflict=ports.on_conflict,
            replace_relations=has_new_text and ports.graph is not None,
        )
        if not commit.conflicts:
            return UpdateResult(commit.relations, (yield from sync_projections(ports)))
    raise StoreError(
        f"other writers changed the memory {memory_id!r} {_MAX_ATTEMPTS} times; nothing was written, try again"
    )


def check_memory_text(text: object) -> None:
    """Check that a value can be the text of a memory.

    Raises:
        InputError: it is not a string, is blank, or is not valid Unicode.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"text must be a non-empty string, not {text!r}")
    if not is_valid_text(text):
        raise InputError("text is not valid Unicode (it contains a lone surrogate)")


def _derive_relations(ports: Ports, item: MemoryItem) -> Flow[tuple[RelationChange, ...]]:
    """Return the graph changes of a memory's text, with the memory as their evidence."""
    if ports.graph is None:
        return ()
    message = Message(item.role or "user", item.text, name=item.actor_id)
    changes, _ = yield from extract_relations(ports, ports.graph, RelationInput(item.scope, stored_messages([message])))
    evidence = Evidence([MemoryChange(Event.UPDATE, item)])
    return tuple(evidence.attach_memories(dataclasses.replace(change, message_indexes=()), (0,)) for change in changes)


def delete_memory(ports: Ports, memory_id: str, *, at: str, purge: bool) -> Flow[tuple[LaggingProjection, ...]]:
    """Erase a memory, the data derived from it and its source messages; with `purge` its history too.

    Raises:
        NotFoundError: no memory has that id (and, with `purge`, no history either).
    """
    item = yield from do(ports.store.get, memory_id)
    history = (yield from do(ports.store.history, memory_id)) if purge and item is None else []
    erased = yield from do(ports.store.erase, [memory_id], at=at, purge=purge)
    if not erased and not history:
        raise NotFoundError(memory_id)
    if item is not None:
        yield from do(ports.index.purge_deleted, item.scope)
    return (yield from _purge_graph(ports, item.scope if item is not None else None))


def delete_memories(
    ports: Ports, items: Sequence[MemoryItem], *, at: str, purge: bool
) -> Flow[tuple[LaggingProjection, ...]]:
    """Erase several memories as `delete_memory` does, in one transaction."""
    yield from do(ports.store.erase, [item.id for item in items], at=at, purge=purge)
    pending: tuple[LaggingProjection, ...] = ()
    for scope in dict.fromkeys(item.scope for item in items):
        yield from do(ports.index.purge_deleted, scope)
        pending = yield from _purge_graph(ports, scope)
    return pending


def _purge_graph(ports: Ports, scope: Scope | None) -> Flow[tuple[LaggingProjection, ...]]:
    if ports.graph is None:
        return ()
    yield from do(ports.graph.embedded_index.purge_deleted, scope)
    return (yield from sync_projections(ports))


def delete_scope(
    ports: Ports, scope: Scope, *, at: str, purge: bool
) -> Flow[tuple[int, tuple[LaggingProjection, ...]]]:
    """Erase everything in a scope; return the number of memories erased."""
    erased = yield from do(ports.store.erase_scope, scope, at=at, purge=purge)
    yield from do(ports.index.purge_deleted, None)  # its memories may be in partitions of other ids too
    return erased, (yield from _purge_graph(ports, None))


def reset_store(ports: Ports) -> Flow[None]:
    """Empty the store and its projections."""
    yield from do(ports.store.reset)
    yield from do(ports.index.purge_deleted, None)
    yield from _purge_graph(ports, None)


def reembed_all(ports: Ports, on_progress: Callable[[int, int | None], object] | None = None) -> Flow[int]:
    """Embed everything with the current embedder; return the number of memories.

    The old vectors serve reads until the last new one is ready. Then all are replaced at once.

    Raises:
        StoreError: memories were added during the call; nothing has changed. Call it again.
    """
    parts = yield from do(ports.store.embedded_items)
    vectors: list[tuple[EmbeddedItem, Any]] = []
    for batch in _split_batches(parts):
        fresh = yield from embed_texts(ports, [part.text for part in batch])
        vectors += zip(batch, fresh, strict=True)
        if on_progress is not None:
            on_progress(len(vectors), len(parts))
    yield from do(ports.store.replace_vectors, vectors, embedding_space=(ports.embedder.name, ports.embedder.dims))
    yield from sync_projections(ports)
    return sum(part.kind == "memory" for part in parts)


def _split_batches(items: Sequence[EmbeddedItem]) -> Iterator[Sequence[EmbeddedItem]]:
    for start in range(0, len(items), _BATCH_SIZE):
        yield items[start : start + _BATCH_SIZE]
