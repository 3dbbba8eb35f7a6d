"""Memories with relations that a caller states, in place of those extracted from their texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
    Relation,
    RelationChange,
    Scope,
    Triplet,
    content_hash,
    entity_key,
    new_id,
)
from mem0_core.errors import CapabilityError
from mem0_core.flow import Flow, do
from mem0_core.ingest._relation_plan import build_relation, collect_entity_names, plan_end
from mem0_core.ingest.relations import embed_changes, sync_projections
from mem0_core.ingest.updates import commit_texts
from mem0_core.interfaces import PlannedUpdate, Ports
from mem0_core.recall.embedding import embed_texts, embedding_space_of


@dataclass(frozen=True, slots=True)
class StatedMemory:
    """A memory to write, with the relations that it states.

    Attributes:
        text: its text.
        item: the memory as it was read, with its new metadata; None for a new memory.
        metadata: of a new memory.
        triplets: all relations that it states; None leaves those of an existing memory as they are.
    """

    text: str
    item: MemoryItem | None = None
    metadata: Mapping[str, object] = dataclasses.field(default_factory=dict)
    triplets: Sequence[Triplet] | None = None


def write_stated_memories(
    ports: Ports, memories: Sequence[StatedMemory], *, scope: Scope, types: Mapping[bytes, str], at: str
) -> Flow[bool]:
    """Write memories of one scope with the relations that they state; a relation without other support ends.

    Args:
        types: entity key -> type, for new nodes of the graph.

    Returns:
        False if another writer changed one of the memories after it was read: read again, and repeat the call.

    Raises:
        CapabilityError: the memory has no graph.
        InputError: another memory of the scope has one of the new texts; nothing is written.
        ModelError: a model call failed; nothing is written.
        StoreError: the commit failed; nothing is written.
    """
    if ports.graph is None:
        raise CapabilityError("this memory", "graph", "property graphs (open it without graph=False)")
    relations = yield from _plan_relations(ports, [memory.triplets or () for memory in memories], scope, types)
    texts = [memory.text for memory in memories if memory.item is None or memory.item.text != memory.text]
    vectors: Iterator[Any] = iter((yield from embed_texts(ports, texts)) if texts else ())
    added: list[MemoryChange] = []
    stated: list[RelationChange] = []
    updates: list[PlannedUpdate] = []
    for memory, changes in zip(memories, relations, strict=True):
        item = memory.item
        if item is None:
            new = MemoryItem(
                new_id(), memory.text, scope, content_hash(memory.text), created_at=at, metadata=dict(memory.metadata)
            )
            stated += [dataclasses.replace(change, change_indexes=(len(added),)) for change in changes]
            added.append(MemoryChange(Event.ADD, new, vector=next(vectors)))
            continue
        vector = None if item.text == memory.text else next(vectors)
        after = dataclasses.replace(item, text=memory.text, hash=content_hash(memory.text), updated_at=at)
        change = MemoryChange(Event.UPDATE, after, before=item.text, vector=vector)
        updates.append(PlannedUpdate(change, changes, replaces_relations=memory.triplets is not None))
    return (yield from _commit(ports, added, stated, updates, scope=scope, at=at))


def _commit(
    ports: Ports,
    added: Sequence[MemoryChange],
    stated: Sequence[RelationChange],
    updates: Sequence[PlannedUpdate],
    *,
    scope: Scope,
    at: str,
) -> Flow[bool]:
    """Commit updates, then new memories, which a repeated call does not duplicate."""
    if updates:
        changes = [update.change for update in updates]
        related = [change for update in updates for change in update.relations]
        space = embedding_space_of(ports, changes, related)
        done = yield from do(
            ports.store.commit_updates, updates, at=at, embedding_space=space, on_conflict=ports.on_conflict
        )
        if done.conflicts:
            return False
    if added:
        yield from commit_texts(ports, added, stated, scope, at)
    else:
        yield from sync_projections(ports)
    return True


def _plan_relations(
    ports: Ports, stated: Sequence[Sequence[Triplet]], scope: Scope, types: Mapping[bytes, str]
) -> Flow[list[tuple[RelationChange, ...]]]:
    """Return the changes of the graph that each memory supports; a name takes the node of exactly this name."""
    triplets = [triplet for some in stated for triplet in some]
    if not triplets:
        return [() for _ in stated]
    names = list(dict.fromkeys(collect_entity_names(triplets)))
    known = yield from do(ports.store.graph.nodes_by_names, scope, names)
    nodes = {key: node for key, (node, _) in known.items()}
    ready = {node.entity.name: vector for node, vector in known.values()}
    changes = [
        dataclasses.replace(
            build_relation(triplet, nodes),
            types=(types.get(entity_key(triplet.source), ""), types.get(entity_key(triplet.destination), "")),
            change_indexes=(0,),
        )
        for triplet in triplets
    ]
    embedded = iter((yield from embed_changes(ports, changes, ready)))
    return [tuple(next(embedded) for _ in some) for some in stated]


def end_relations(ports: Ports, relations: Sequence[Relation], *, at: str) -> Flow[None]:
    """End relations, whichever memories support them; the memories stay."""
    by_scope: dict[Scope, list[RelationChange]] = {}
    for relation in relations:
        by_scope.setdefault(relation.scope, []).append(dataclasses.replace(plan_end(relation), effective_at=at))
    for scope, changes in by_scope.items():
        yield from do(ports.store.commit, [], scope=scope, at=at, relations=changes, on_conflict=ports.on_conflict)
    yield from sync_projections(ports)
