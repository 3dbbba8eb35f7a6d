"""`Mem0ChatMessageHistory`: a conversation kept in a memory, where LangChain wants a chat message history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from mem0_core import AsyncMemory, Memory, Scope
from mem0_langchain.convert import to_mem0_messages, unwrap_memory
from mem0_langchain.runs import to_ids

__all__ = ["Mem0ChatMessageHistory", "stamp_messages", "to_langchain_messages"]

_UNLIMITED_TOKENS = 10_000_000  # tokens: the number of messages is the limit here


class Mem0ChatMessageHistory(BaseChatMessageHistory):
    """What the user and the assistant said in one conversation. What is added is learnt from, too.

    >>> history = Mem0ChatMessageHistory(memory, user_id="maya", run_id="monday")

    Texts are kept, and who said them. Tool calls, tool results and system messages are not: they belong to an agent's
    state, and to a checkpointer.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: whose conversation; at least one. A ``run_id`` makes it one of several of a user.
        limit: how many messages at most, the last ones.
        infer: False keeps messages as they were said, instead of the facts a model finds in them.
        background: keep them durably and go on; a worker of the memory learns from them.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 100,
        infer: bool = True,
        background: bool = True,
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._ids: dict[str, Any] = to_ids(Scope(user_id, agent_id, run_id))
        self._limit, self._infer, self._background = limit, infer, background

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The last messages, oldest first."""
        seen = self._memory.context(None, **self._ids, recent=self._limit, max_tokens=_UNLIMITED_TOKENS)
        return to_langchain_messages(seen["messages"])

    async def aget_messages(self) -> list[BaseMessage]:
        """`messages`, awaited."""
        seen = await self._memory.acontext(None, **self._ids, recent=self._limit, max_tokens=_UNLIMITED_TOKENS)
        return to_langchain_messages(seen["messages"])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages, and learn from them."""
        if spoken := stamp_messages(messages):
            self._memory.add(spoken, **self._ids, infer=self._infer, background=self._background)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """`add_messages`, awaited."""
        if spoken := stamp_messages(messages):
            await self._memory.aadd(spoken, **self._ids, infer=self._infer, background=self._background)

    def clear(self) -> None:
        """Erase the conversation, and what was learnt in it."""
        self._memory.delete_all(**self._ids)

    async def aclear(self) -> None:
        """`clear`, awaited."""
        await self._memory.adelete_all(**self._ids)


def stamp_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """What was said, and when: with the time, the same words said twice are two messages."""
    now = datetime.now(UTC).isoformat()
    return [{**message, "timestamp": now} for message in to_mem0_messages(messages)]


def to_langchain_messages(messages: Sequence[Any]) -> list[BaseMessage]:
    """The messages of `Memory.context` as LangChain's."""
    kinds: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage}
    return [
        kinds[message["role"]](content=message["content"], name=message.get("name"))
        for message in messages
        if message["role"] in kinds
    ]
