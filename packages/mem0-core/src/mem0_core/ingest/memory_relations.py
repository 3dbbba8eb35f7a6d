"""What one memory, as it stands, says of the graph."""

from __future__ import annotations

import dataclasses

from mem0_core.domain.records import MemoryItem, Message, RelationChange
from mem0_core.flow import Flow
from mem0_core.ingest.relations import extract_relations
from mem0_core.ingest.request import RelationInput
from mem0_core.interfaces import Ports

__all__ = ["extract_memory_relations"]


def extract_memory_relations(ports: Ports, item: MemoryItem) -> Flow[tuple[RelationChange, ...]]:
    """The changes to the graph that a memory brings about, for a plan whose only change is of this memory.

    What it says holds since the memory's own time.

    Raises:
        ModelError: a model call failed.
    """
    if ports.graph is None:
        return ()
    at = item.updated_at or item.created_at
    said = Message(item.role or "user", item.text, name=item.actor_id, timestamp=at)
    changes, _ = yield from extract_relations(ports, ports.graph, RelationInput(item.scope, (said,)))
    return tuple(
        dataclasses.replace(change, change_indexes=(0,), message_indexes=(), effective_at=change.effective_at or at)
        for change in changes
    )
