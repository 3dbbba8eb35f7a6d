"""Pytest plugin that puts `Mem0ChatMessageHistory` in the place of `InMemoryChatMessageHistory`."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence

import langchain_core.chat_history
from langchain_core.messages import BaseMessage

from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from mem0_langchain import Mem0ChatMessageHistory

__all__ = ["InMemoryChatMessageHistory"]

_theirs = langchain_core.chat_history.InMemoryChatMessageHistory

_memories: list[Memory] = []


class InMemoryChatMessageHistory(Mem0ChatMessageHistory):
    """The history with the constructor and the equality of LangChain's; all share one memory."""

    def __init__(self, *, messages: Sequence[BaseMessage] = ()) -> None:
        if not _memories:
            path = tempfile.mkdtemp(prefix="mem0-suite-")
            _memories.append(Memory({"path": path, "durability": "process"}, embedder=HashEmbedder()))
        super().__init__(_memories[0], user_id="suite", run_id=uuid.uuid4().hex, keep="all")
        if messages:
            self.add_messages(messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemoryChatMessageHistory) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]


InMemoryChatMessageHistory.__doc__ = _theirs.__doc__  # a test reads it
langchain_core.chat_history.InMemoryChatMessageHistory = InMemoryChatMessageHistory  # type: ignore[misc,assignment]
