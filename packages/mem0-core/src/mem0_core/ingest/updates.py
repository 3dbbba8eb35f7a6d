"""Maintenance of stored memories: create, update and delete them, erase a scope, embed everything again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import (
    Event,
    LaggingProjection,
    MemoryChange,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    SkippedItem,
    Trust,
    content_hash,
    is_valid_text,
    new_id,
    same_fact_key,
)
from mem0_core.errors import InputError, NotFoundError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest._relation_plan import Evidence
from mem0_core.ingest.relations import extract_relations, sync_projections
from mem0_core.ingest.request import RelationInput, stored_messages
from mem0_core.interfaces import EmbeddedItem, PlannedUpdate, Ports, RetractionResult
from mem0_core.recall.embedding import embed_texts, embedding_space_of

MAX_ATTEMPTS = 3
_BATCH_SIZE = 256
_REEMBED_ROUNDS = 20  # each has only the changes of the round before


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Outcome of an update; in a dry run, the planned outcome.

    Attributes:
        relations: relations that started and ended.
        pending: projections that could not be updated yet.
        skipped: unusable parts of the model's replies about relations.
    """

    relations: tuple[RelationChange, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()


def create_memories(
    ports: Ports,
    texts: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    scope: Scope,
    at: str,
    extract: bool = True,
    trust: Trust = Trust.USER,
) -> Flow[list[MemoryItem | None]]:
    """Add texts as memories, unchanged and without messages in the conversation, in one transaction.

    Args:
        texts: each with its metadata.
        extract: also extract the relations of each text.
        trust: class of the origin of the texts.

    Returns:
        The new memories, in order; None for a text that the scope has already, up to case, spacing and punctuation.

    Raises:
        InputError: a text is empty or not valid Unicode.
        ModelError: a model call failed; nothing is written.
        StoreError: the commit failed; nothing is written.
    """
    for text, _ in texts:
        check_memory_text(text)
    keys = [same_fact_key(text) for text, _ in texts]
    known = yield from do(ports.store.find_by_fact_keys, scope, list(dict.fromkeys(keys)))
    new = {key: index for index, key in reversed(list(enumerate(keys))) if key not in known}
    indexes = sorted(new.values())
    if not indexes:
        return [None for _ in texts]
    vectors = yield from embed_texts(ports, [texts[index][0] for index in indexes])
    changes: list[MemoryChange] = []
    relations: list[RelationChange] = []
    for index, vector in zip(indexes, vectors, strict=True):
        text, metadata = texts[index]
        item = MemoryItem(new_id(), text, scope, content_hash(text), created_at=at, metadata=metadata, trust=trust)
        stated, _ = (yield from _derive_relations(ports, item)) if extract else ((), ())
        relations += [dataclasses.replace(change, change_indexes=(len(changes),)) for change in stated]
        changes.append(MemoryChange(Event.ADD, item, vector=vector))
    pairs = zip(indexes, (yield from commit_texts(ports, changes, relations, scope, at)), strict=True)
    created = {index: change.after for index, change in pairs if change.event is Event.ADD}
    return [created.get(index) for index in range(len(texts))]


def commit_texts(
    ports: Ports, changes: Sequence[MemoryChange], relations: Sequence[RelationChange], scope: Scope, at: str
) -> Flow[Sequence[MemoryChange]]:
    """Commit new memories without messages, and return the changes as they took effect."""
    commit = yield from do(
        ports.store.commit,
        changes,
        scope=scope,
        at=at,
        embedding_space=embedding_space_of(ports, changes, relations),
        relations=relations,
        on_conflict=ports.on_conflict,
        distinct_sessions=len(changes) > 1,
    )
    yield from sync_projections(ports)
    return commit.applied


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
    for _ in range(MAX_ATTEMPTS):
        item = yield from do(ports.store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        updated = yield from update_memories(ports, [(item, text)], metadata=metadata, at=at)
        if updated is not None:
            return updated
    raise StoreError(
        f"other writers changed the memory {memory_id!r} {MAX_ATTEMPTS} times; nothing was written, try again"
    )


def update_memories(
    ports: Ports, texts: Sequence[tuple[MemoryItem, str]], *, metadata: Mapping[str, Any] | None, at: str
) -> Flow[UpdateResult | None]:
    """Give memories their new texts, as `update_memory` does, in one transaction.

    Returns:
        The outcome; None if another writer changed one of the memories after it was read, and nothing is written.

    Raises:
        InputError: another memory of a scope has the same text; nothing is written.
        ModelError: a model call failed; nothing is written.
    """
    updates, skipped = yield from plan_updates(ports, texts, metadata=metadata, at=at)
    related = [change for update in updates for change in update.relations]
    commit = yield from do(
        ports.store.commit_updates,
        updates,
        at=at,
        embedding_space=embedding_space_of(ports, [update.change for update in updates], related),
        on_conflict=ports.on_conflict,
    )
    if commit.conflicts:
        return None
    return UpdateResult(commit.relations, (yield from sync_projections(ports)), skipped)


def plan_updates(
    ports: Ports, texts: Sequence[tuple[MemoryItem, str]], *, metadata: Mapping[str, Any] | None, at: str
) -> Flow[tuple[list[PlannedUpdate], tuple[SkippedItem, ...]]]:
    """Return the updates of memories with their relations, and the unusable parts of the model's replies.

    A memory that gives up its text comes before the one that takes this text.
    """
    changed = [text for item, text in texts if text != item.text]
    vectors: Iterator[Any] = iter((yield from embed_texts(ports, changed)) if changed else ())
    updates: list[PlannedUpdate] = []
    skipped: list[SkippedItem] = []
    for item, text in texts:
        after = dataclasses.replace(
            item, text=text, hash=content_hash(text), updated_at=at, metadata={**item.metadata, **(metadata or {})}
        )
        if text == item.text:
            updates.append(PlannedUpdate(MemoryChange(Event.UPDATE, after, before=item.text)))
            continue
        change = MemoryChange(Event.UPDATE, after, before=item.text, vector=next(vectors))
        relations, unusable = yield from _derive_relations(ports, after)
        updates.append(PlannedUpdate(change, relations, replaces_relations=ports.graph is not None))
        skipped += unusable
    return _order_updates(updates, texts), tuple(skipped)


def _order_updates(updates: Sequence[PlannedUpdate], texts: Sequence[tuple[MemoryItem, str]]) -> list[PlannedUpdate]:
    """Return the updates so that a memory gives up its text before another memory of the scope takes it."""
    holders = {
        (item.scope, same_fact_key(item.text, item.actor_id)): index
        for index, (item, text) in enumerate(texts)
        if text != item.text
    }
    ordered: dict[int, None] = {}
    for start in range(len(updates)):
        chain: list[int] = []
        index: int | None = start
        while index is not None and index not in ordered and index not in chain:
            chain.append(index)
            item, text = texts[index]
            index = holders.get((item.scope, same_fact_key(text, item.actor_id)))
        ordered |= dict.fromkeys(reversed(chain))
    return [updates[index] for index in ordered]


def check_memory_text(text: object) -> None:
    """Check that a value can be the text of a memory.

    Raises:
        InputError: it is not a string, is blank, or is not valid Unicode.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"data must be a non-empty string, not {text!r}; pass the new text, or call delete")
    if not is_valid_text(text):
        raise InputError("text is not valid Unicode (it contains a lone surrogate)")


def _derive_relations(
    ports: Ports, item: MemoryItem
) -> Flow[tuple[tuple[RelationChange, ...], tuple[SkippedItem, ...]]]:
    """Return the graph changes of a memory's text, with the memory as their evidence, and unusable replies."""
    if ports.graph is None:
        return (), ()
    message = Message(item.role or "user", item.text, name=item.actor_id)
    stated = RelationInput(item.scope, stored_messages([message]))
    changes, skipped = yield from extract_relations(ports, ports.graph, stated)
    evidence = Evidence([MemoryChange(Event.UPDATE, item)])
    of_memory = (dataclasses.replace(change, message_indexes=()) for change in changes)
    return tuple(evidence.attach_memories(change, (0,)) for change in of_memory), skipped


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
    return (yield from _purge_projections(ports, item.scope if item is not None else None))


def delete_memories(
    ports: Ports, items: Sequence[MemoryItem], *, at: str, purge: bool
) -> Flow[tuple[LaggingProjection, ...]]:
    """Erase several memories as `delete_memory` does, in one transaction."""
    yield from do(ports.store.erase, [item.id for item in items], at=at, purge=purge)
    pending: tuple[LaggingProjection, ...] = ()
    for scope in dict.fromkeys(item.scope for item in items):
        yield from do(ports.index.purge_deleted, scope)
        pending = yield from _purge_projections(ports, scope)
    return pending


def _purge_projections(ports: Ports, scope: Scope | None) -> Flow[tuple[LaggingProjection, ...]]:
    """Remove erased data from the graph, and from what searches keep."""
    ports.forget(scope)
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
    return erased, (yield from _purge_projections(ports, None))


def retract_source(
    ports: Ports, source: str, scope: Scope | None, *, at: str, purge: bool
) -> Flow[tuple[RetractionResult, tuple[LaggingProjection, ...]]]:
    """Withdraw everything that was learned in a scope from a source and from nothing else."""
    relearn = ports.chat is not None
    done = yield from do(ports.store.retract, source, scope, at=at, relearn=relearn, purge=purge)
    yield from do(ports.index.purge_deleted, None)
    return done, (yield from _purge_projections(ports, None))


def reset_store(ports: Ports) -> Flow[None]:
    """Empty the store and its projections."""
    yield from do(ports.store.reset)
    yield from do(ports.index.purge_deleted, None)
    yield from _purge_projections(ports, None)


def reembed_all(ports: Ports, on_progress: Callable[[int, int | None], object] | None = None) -> Flow[int]:
    """Embed everything with the current embedder; return the number of memories.

    The old vectors serve reads until the last new one is ready. Then all are replaced at once. Memories that
    others change in between are embedded in a further round.

    Raises:
        StoreError: others changed the store in each of the rounds; nothing is replaced.
    """
    space = (ports.embedder.name, ports.embedder.dims)
    vectors: dict[EmbeddedItem, Any] = {}
    for _ in range(_REEMBED_ROUNDS):
        items = yield from do(ports.store.embedded_items)
        vectors = {item: vectors[item] for item in items if item in vectors}
        for batch in _split_batches([item for item in items if item not in vectors]):
            fresh = yield from embed_texts(ports, [item.text for item in batch])
            vectors.update(zip(batch, fresh, strict=True))
            if on_progress is not None:
                on_progress(len(vectors), len(items))
        if (yield from do(ports.store.replace_vectors, vectors, embedding_space=space)):
            yield from sync_projections(ports)
            return sum(item.kind == "memory" for item in items)
    raise StoreError(
        f"the store changed in each of {_REEMBED_ROUNDS} rounds of embedding; nothing was replaced: call rebuild again"
        " when there are fewer writes"
    )


def _split_batches(items: Sequence[EmbeddedItem]) -> Iterator[Sequence[EmbeddedItem]]:
    for start in range(0, len(items), _BATCH_SIZE):
        yield items[start : start + _BATCH_SIZE]
