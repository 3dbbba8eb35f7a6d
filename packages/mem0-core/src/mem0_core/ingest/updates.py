"""Looking after what is there: update and delete by id, erase a scope, embed everything anew."""

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
from mem0_core.ingest.relation_plan import Evidence
from mem0_core.ingest.relations import extract_relations, sync_projections
from mem0_core.ingest.request import RelationInput
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
    """What an update did, or in a dry run would do; `relations` are those that began to hold, and that ended."""

    relations: tuple[RelationChange, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()


def update_memory(
    ports: Ports, memory_id: str, text: str, *, metadata: Mapping[str, Any] | None, at: str
) -> Flow[UpdateResult]:
    """Give a memory a new text, add `metadata` to what it has, and derive its relations anew.

    Raises:
        NotFoundError: no memory has that id.
        InputError: the text is empty or not valid Unicode, or another memory of the scope says the same already.
        ModelError: a model call failed; nothing is written.
    """
    check_memory_text(text)
    for _ in range(_MAX_ATTEMPTS):
        item = yield from do(ports.store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        after = dataclasses.replace(
            item, text=text, hash=content_hash(text), updated_at=at, metadata={**item.metadata, **(metadata or {})}
        )
        said_anew = text != item.text
        vector = (yield from embed_texts(ports, [text]))[0] if said_anew else None
        change = MemoryChange(Event.UPDATE, after, before=item.text, vector=vector)
        relations = (yield from _derive_relations(ports, after)) if said_anew else ()
        commit = yield from do(
            ports.store.commit,
            [change],
            scope=item.scope,
            at=at,
            embedding_space=embedding_space_of(ports, [change], relations),
            reject_duplicates=True,
            relations=relations,
            on_conflict=ports.on_conflict,
            replace_relations=said_anew and ports.graph is not None,
        )
        if not commit.conflicts:
            return UpdateResult(commit.relations, (yield from sync_projections(ports)))
    raise StoreError(f"the memory {memory_id!r} changed {_MAX_ATTEMPTS} times meanwhile; try again")


def check_memory_text(text: object) -> None:
    """Raises InputError where this cannot be the text of a memory."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a memory's text must be a non-empty string, not {text!r}")
    if not is_valid_text(text):
        raise InputError("the text is not valid Unicode (it holds a lone surrogate)")


def _derive_relations(ports: Ports, item: MemoryItem) -> Flow[tuple[RelationChange, ...]]:
    """What the text of a memory says of the graph, with the memory as its evidence."""
    if ports.graph is None:
        return ()
    said = Message(item.role or "user", item.text, name=item.actor_id)
    changes, _ = yield from extract_relations(ports, ports.graph, RelationInput(item.scope, (said,)))
    evidence = Evidence([MemoryChange(Event.UPDATE, item)])
    return tuple(evidence.attach_memories(dataclasses.replace(change, message_indexes=()), (0,)) for change in changes)


def delete_memory(ports: Ports, memory_id: str, *, at: str, purge: bool) -> Flow[tuple[LaggingProjection, ...]]:
    """Erase a memory, all that came of it, and the messages it came from; its history too with `purge`.

    Raises:
        NotFoundError: no memory has that id (and, with `purge`, no history either).
    """
    item = yield from do(ports.store.get, memory_id)
    past = (yield from do(ports.store.history, memory_id)) if purge and item is None else []
    erased = yield from do(ports.store.erase, [memory_id], at=at, purge=purge)
    if not erased and not past:
        raise NotFoundError(memory_id)
    if item is not None:
        yield from do(ports.index.purge_deleted, item.scope)
    return (yield from _forget_graph(ports, item.scope if item is not None else None))


def delete_memories(
    ports: Ports, items: Sequence[MemoryItem], *, at: str, purge: bool
) -> Flow[tuple[LaggingProjection, ...]]:
    """`delete_memory` for several memories, in one transaction."""
    yield from do(ports.store.erase, [item.id for item in items], at=at, purge=purge)
    pending: tuple[LaggingProjection, ...] = ()
    for scope in dict.fromkeys(item.scope for item in items):
        yield from do(ports.index.purge_deleted, scope)
        pending = yield from _forget_graph(ports, scope)
    return pending


def _forget_graph(ports: Ports, scope: Scope | None) -> Flow[tuple[LaggingProjection, ...]]:
    if ports.graph is None:
        return ()
    yield from do(ports.graph.embedded_index.purge_deleted, scope)
    return (yield from sync_projections(ports))


def delete_scope(
    ports: Ports, scope: Scope, *, at: str, purge: bool
) -> Flow[tuple[int, tuple[LaggingProjection, ...]]]:
    """Erase everything in a scope; returns how many memories there were."""
    erased = yield from do(ports.store.erase_scope, scope, at=at, purge=purge)
    yield from do(ports.index.purge_deleted, None)  # its memories may lie in partitions of other ids as well
    return erased, (yield from _forget_graph(ports, None))


def reset_store(ports: Ports) -> Flow[None]:
    """Empty the store and its projections."""
    yield from do(ports.store.reset)
    yield from do(ports.index.purge_deleted, None)
    yield from _forget_graph(ports, None)


def reembed_all(ports: Ports, on_progress: Callable[[int, int | None], object] | None = None) -> Flow[int]:
    """Embed everything anew with the embedder at hand; returns how many memories there are.

    All old vectors serve until the last new one is ready: then they are exchanged at once.

    Raises:
        StoreError: memories were added meanwhile; nothing has changed, try again.
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
