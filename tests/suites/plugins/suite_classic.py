"""Pytest plugin that puts `Mem0Memory` in the place of the buffer memories of langchain-classic."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import langchain_classic.chains.conversation.memory
import langchain_classic.memory.buffer
import langchain_classic.memory.buffer_window

from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from mem0_langchain.classic import Mem0Memory

__all__ = ["ConversationBufferMemory", "ConversationBufferWindowMemory"]

_ALL_MESSAGES = 1000


class ConversationBufferMemory(Mem0Memory):
    """`Mem0Memory` with the constructor of `ConversationBufferMemory`, over a memory in a temporary folder."""

    def __init__(self, **options: Any) -> None:
        path = tempfile.mkdtemp(prefix="mem0-suite-")
        memory = Memory({"path": path, "durability": "process"}, embedder=HashEmbedder())
        super().__init__(**{"memory": memory, "user_id": "suite", "recent": _ALL_MESSAGES, **options})


class ConversationBufferWindowMemory(ConversationBufferMemory):
    """The same with the name of another class."""


for _name in ("langchain_classic.memory", "langchain_classic.chains.conversation.memory"):
    for _class in (ConversationBufferMemory, ConversationBufferWindowMemory):
        setattr(sys.modules[_name], _class.__name__, _class)
langchain_classic.memory.buffer.ConversationBufferMemory = ConversationBufferMemory  # type: ignore[misc,assignment]
langchain_classic.memory.buffer_window.ConversationBufferWindowMemory = (  # type: ignore[misc]
    ConversationBufferWindowMemory  # type: ignore[assignment]
)
