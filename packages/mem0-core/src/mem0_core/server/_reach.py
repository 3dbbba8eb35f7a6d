"""Memories that one connection reaches: those of its scope, and for a user also those of their spaces."""

from __future__ import annotations

from functools import partial
from typing import Any

from mem0_core.domain.spaces import MAX_MEMBER_CHARS
from mem0_core.errors import CapabilityError
from mem0_core.memory import Memory
from mem0_core.server.scope import ScopeIds, ServerScope
from mem0_core.views import AsyncPrincipal

__all__ = ["OwnMemories", "Reach", "open_reach"]


class OwnMemories:
    """The memories of one scope alone, with the methods of `AsyncPrincipal` that a connection needs."""

    def __init__(self, memory: Memory, ids: ScopeIds) -> None:
        self.search: Any = partial(memory.asearch, **ids)
        self.answer: Any = partial(memory.aanswer, **ids)
        self.context: Any = partial(memory.acontext, **ids)
        self.get: Any = partial(memory.aget, **ids)
        self.get_all: Any = partial(memory.aget_all, **ids)
        self.history: Any = partial(memory.ahistory, **ids)
        self.update: Any = partial(memory.aupdate, **ids)
        self.delete: Any = partial(memory.adelete, **ids)
        self.pin: Any = partial(memory.apin, **ids)


Reach = OwnMemories | AsyncPrincipal


def open_reach(memory: Memory, scope: ServerScope) -> Reach:
    """Return the memories of a connection: of a principal, if it is for one user and the store has spaces."""
    user = scope.user_id
    is_principal = scope.has_spaces and user is not None and scope.agent_id is None and scope.run_id is None
    if user is None or not is_principal or len(user) > MAX_MEMBER_CHARS or not _has_spaces(memory):
        return OwnMemories(memory, scope.ids)
    return AsyncPrincipal(memory, user)


def _has_spaces(memory: Memory) -> bool:
    try:
        _ = memory.store.spaces.memberships
    except CapabilityError:
        return False
    return True
