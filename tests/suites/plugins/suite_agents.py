"""Pytest plugin that gives every agent of `create_agent` our middleware, and every test our store."""

from __future__ import annotations

import functools
import tempfile
import uuid
from collections.abc import Sequence
from typing import Any

import langchain.agents
import langchain.agents.factory
import langgraph.store.memory
import pytest
from blockbuster import BlockBuster

from mem0_core import Memory, Scope
from mem0_core.testing import HashEmbedder
from mem0_langchain import MemoryMiddleware
from mem0_langchain.langgraph import Mem0Store

__all__ = ["InMemoryStore", "create_agent"]

_create_agent = langchain.agents.factory.create_agent

# Opened here, since the tests report each blocking call on an event loop.
_memory = Memory({"path": tempfile.mkdtemp(prefix="mem0-suite-"), "durability": "process"}, embedder=HashEmbedder())


class InMemoryStore(Mem0Store):
    """`Mem0Store` with the constructor of LangGraph's `InMemoryStore`; all share one memory."""

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        super().__init__(_memory, fields=(index or {}).get("fields"), ttl=ttl, name=uuid.uuid4().hex)


@functools.wraps(_create_agent)
def create_agent(model: Any, tools: Any = None, *, middleware: Sequence[Any] = (), **options: Any) -> Any:
    """Create the agent with a middleware that recalls and remembers, for a user of its own."""
    ours = MemoryMiddleware(_memory, scope=Scope(uuid.uuid4().hex))
    return _create_agent(model, tools, middleware=[*middleware, ours], **options)


langgraph.store.memory.InMemoryStore = InMemoryStore  # type: ignore[misc,assignment]
langchain.agents.create_agent = create_agent
langchain.agents.factory.create_agent = create_agent


@pytest.fixture(autouse=True)
def _let_sync_hooks_block(blockbuster: BlockBuster) -> None:
    """Allow our sync hooks to read a database: some tests run an agent synchronously on an event loop.

    The async hooks stay forbidden to block.
    """
    for function in blockbuster.functions.values():
        function.can_block_in("mem0_langchain/middleware.py", {"before_agent", "after_agent"})
