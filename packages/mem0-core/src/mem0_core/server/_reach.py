"""Memories that one connection reaches: those of its scope, and for a user also those of their spaces."""

from __future__ import annotations

from functools import partial
from typing import Any

from mem0_core.memory import Memory
from mem0_core.server.scope import ScopeIds, ServerScope
from mem0_core.views import AsyncPrincipal, has_spaces


class OwnMemories:
    """The memories of one scope alone, with the methods of `AsyncPrincipal` that a connection needs."""

    def __init__(self, memory: Memory, ids: ScopeIds) -> None:
        self.search: Any = partial(memory.asearch, **ids)
        self.explain_missing: Any = partial(memory.aexplain_missing, **ids)
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
    if not scope.has_spaces or scope.user_id is None or not has_spaces(memory, **scope.ids):
        return OwnMemories(memory, scope.ids)
    return AsyncPrincipal(memory, scope.user_id)
