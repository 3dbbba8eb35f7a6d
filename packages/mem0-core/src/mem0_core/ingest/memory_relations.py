"""Relations extracted from one stored memory."""

from __future__ import annotations

import dataclasses

from mem0_core.domain.records import MemoryItem, Message, RelationChange
from mem0_core.flow import Flow
from mem0_core.ingest.relations import extract_relations
from mem0_core.ingest.request import RelationInput, stored_messages
from mem0_core.interfaces import Ports

__all__ = ["extract_memory_relations"]


def extract_memory_relations(ports: Ports, item: MemoryItem) -> Flow[tuple[RelationChange, ...]]:
    """Return the graph changes of one memory, for a plan that changes only this memory.

    The relations are valid from the time of the memory.

    Raises:
        ModelError: a model call failed.
    """
    if ports.graph is None:
        return ()
    at = item.updated_at or item.created_at
    message = Message(item.role or "user", item.text, name=item.actor_id, timestamp=at)
    changes, _ = yield from extract_relations(ports, ports.graph, RelationInput(item.scope, stored_messages([message])))
    return tuple(
        dataclasses.replace(change, change_indexes=(0,), message_indexes=(), effective_at=change.effective_at or at)
        for change in changes
    )
