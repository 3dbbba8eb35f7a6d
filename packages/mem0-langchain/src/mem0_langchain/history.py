"""`Mem0ChatMessageHistory`: a conversation stored in a memory, as a LangChain chat message history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Literal

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from mem0_core import AsyncMemory, Memory, Scope
from mem0_core._system.boundary import convert_errors_of
from mem0_core.api.options import check_constructor, unwrap_memory
from mem0_core.domain.timestamps import utc_now
from mem0_core.flow import Flow, arun, do, run
from mem0_langchain.convert import to_mem0_messages
from mem0_langchain.runs import to_ids

__all__ = ["Mem0ChatMessageHistory", "stamp_messages", "to_langchain_messages"]


@convert_errors_of("add_messages", "aadd_messages", "clear", "aclear")
@check_constructor
class Mem0ChatMessageHistory(BaseChatMessageHistory):
    """Chat message history of one conversation that also learns from its messages.

    >>> history = Mem0ChatMessageHistory(memory, user_id="maya", run_id="monday")

    It stores texts and their speakers, and learns from the user's and the assistant's. System messages are stored in
    their place, but nothing is learned from them and recall does not find them. Tool calls and tool results are not
    stored: they belong to an agent's state and its checkpointer.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the conversation; give at least one. A ``run_id`` separates several
            conversations of a user.
        limit: maximum number of messages returned, the latest ones.
        infer: False stores messages verbatim, without extracting facts.
        keep: without a chat model, ``"statements"`` makes memories of statements only; questions, greetings and
            acknowledgements stay in the conversation. ``"all"`` makes a memory of each message.
        background: store messages durably and return; a worker of the memory learns from them.
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
        keep: Literal["all", "statements"] = "statements",
        background: bool = True,
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._scope = Scope(user_id, agent_id, run_id)
        self._scope_ids = user_id, agent_id, run_id
        self._ids: dict[str, Any] = to_ids(self._scope)
        self._limit = limit
        self._options: dict[str, Any] = {"infer": infer, "keep": keep, "facts_about": "owner", "background": background}

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return the latest messages, oldest first."""
        return run(self._read())

    async def aget_messages(self) -> list[BaseMessage]:
        """Async version of `messages`."""
        return await arun(self._read())

    def _read(self) -> Flow[list[BaseMessage]]:
        log = self._memory.store.message_log
        stored = yield from do(log.messages_before, self._scope, None, limit=self._limit)
        return to_langchain_messages([asdict(message) for message in stored])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages and learn from them."""
        run(self._add(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Async version of `add_messages`."""
        await arun(self._add(messages))

    def _add(self, messages: Sequence[BaseMessage]) -> Flow[None]:
        """Store system messages as they are, and add the messages between them; all stay in their order."""
        for is_system, group in groupby(messages, lambda message: isinstance(message, SystemMessage)):
            if is_system:
                said = [{"role": "system", "content": str(message.text)} for message in group if message.text.strip()]
                if said:
                    yield from self._memory._log_flow(_stamp(said), ids=self._scope_ids)
            elif spoken := stamp_messages(list(group)):
                yield from do(self._memory.add, spoken, **self._ids, **self._options)

    def clear(self) -> None:
        """Delete the conversation and everything learned from it."""
        self._memory.delete_all(**self._ids)

    async def aclear(self) -> None:
        """Async version of `clear`."""
        await self._memory.adelete_all(**self._ids)


def stamp_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Convert messages and add the current time, so that repeated words are separate messages."""
    return _stamp(to_mem0_messages(messages))


def _stamp(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    now = utc_now()
    return [{**message, "timestamp": now} for message in messages]


def to_langchain_messages(messages: Sequence[Any]) -> list[BaseMessage]:
    """Convert stored messages, or those of `Memory.context`, to LangChain's."""
    kinds: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
    return [
        kinds[message["role"]](content=message["content"], name=message.get("name"))
        for message in messages
        if message["role"] in kinds
    ]
