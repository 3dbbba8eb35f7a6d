"""`Mem0Memory`: long-term memory for LangChain 0.x chains and agents (`langchain_classic`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import Field

try:
    from langchain_classic.base_memory import BaseMemory
except ImportError as error:
    raise ImportError("langchain-classic is not installed: pip install 'mem0-langchain[classic]'") from error

from mem0_core import ContextDict, InputError, Scope
from mem0_core._system.boundary import convert_errors_of
from mem0_core.language.prompt_data import quote_text
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION
from mem0_langchain._fields import MemoryFields
from mem0_langchain.convert import read_messages
from mem0_langchain.history import stamp_messages, to_langchain_messages
from mem0_langchain.runs import to_ids

__all__ = ["Mem0Memory"]


@convert_errors_of("load_memory_variables", "aload_memory_variables", "save_context", "asave_context")
class Mem0Memory(MemoryFields, BaseMemory):
    """Drop-in replacement for `ConversationBufferMemory` that adds long-term memories to the recent messages.

    >>> ConversationChain(llm=model, memory=Mem0Memory(memory=Memory(), user_id="maya"))

    Under `memory_key` a chain sees the memories, relations and summary relevant to its input, marked as data, followed
    by the last messages of the conversation, all within a token budget. Its inputs and outputs are learned from.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the memories; give at least one.
        memory_key: the prompt variable.
        input_key: the chain input, or inputs, written by the user; several are joined line by line. By default the
            only input other than the memory and ``stop``.
        output_key: the chain output to remember; by default the only one.
        return_messages: return messages in place of one text.
        recent: maximum number of recent messages; 0 for memories only.
        k: maximum number of memories.
        threshold, filters: as in `Memory.context`.
        max_tokens: token budget for the whole text.
        introduction: text that introduces the memories to the model.
        human_prefix, ai_prefix: speaker labels when the result is one text.
        infer, keep, background: as for `mem0_langchain.Mem0ChatMessageHistory`.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    memory_key: str = "history"
    input_key: str | list[str] | None = None
    output_key: str | None = None
    return_messages: bool = False
    recent: int = Field(default=10, ge=0)
    k: int = Field(default=10, ge=1)
    threshold: float | None = Field(default=None, ge=0, le=1)
    filters: dict[str, Any] | None = None
    max_tokens: int = Field(default=2000, ge=1)
    introduction: str = MEMORIES_INTRODUCTION
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    infer: bool = True
    keep: Literal["all", "statements"] = "statements"
    background: bool = True

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._scope_ids()  # reject invalid ids early

    @property
    def memory_variables(self) -> list[str]:
        """Return the variable that `load_memory_variables` sets."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memory context for the chain's inputs."""
        recent = self.memory.context(None, **self._recent_request())
        return {self.memory_key: self._render_context(self.memory.context(**self._build_request(inputs, recent)))}

    async def aload_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Async version of `load_memory_variables`."""
        recent = await self.memory.acontext(None, **self._recent_request())
        return {
            self.memory_key: self._render_context(await self.memory.acontext(**self._build_request(inputs, recent)))
        }

    def save_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Store a question and its answer, and learn from them."""
        if turn := self._turn_messages(inputs, outputs):
            self.memory.add(turn, **self._add_options())

    async def asave_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Async version of `save_context`."""
        if turn := self._turn_messages(inputs, outputs):
            await self.memory.aadd(turn, **self._add_options())

    def clear(self) -> None:
        """Delete all memories of these ids, including the conversation."""
        self.memory.delete_all(**self._scope_ids())

    async def aclear(self) -> None:
        """Async version of `clear`."""
        await self.memory.adelete_all(**self._scope_ids())

    def _scope_ids(self) -> dict[str, Any]:
        return to_ids(Scope(self.user_id, self.agent_id, self.run_id))

    def _add_options(self) -> dict[str, Any]:
        options = {"infer": self.infer, "keep": self.keep, "facts_about": "owner", "background": self.background}
        return self._scope_ids() | options

    def _recent_request(self) -> dict[str, Any]:
        return {**self._scope_ids(), "recent": self.recent, "max_tokens": self.max_tokens}

    def _build_request(self, inputs: Mapping[str, Any], recent: ContextDict) -> dict[str, Any]:
        """Return the arguments of `Memory.context`; memories do not repeat the recent messages."""
        query = "\n".join(str(message.text) for message in self._input_messages(inputs))
        return {
            "query": query if query.strip() else None,
            **self._recent_request(),
            "limit": self.k,
            "exclude": [message["content"] for message in recent["messages"]],
            "threshold": self.threshold,
            "filters": self.filters,
            "introduction": self.introduction,
        }

    def _render_context(self, seen: ContextDict) -> str | list[BaseMessage]:
        if self.return_messages:
            return [
                *([SystemMessage(seen["text"])] if seen["text"] else []),
                *to_langchain_messages(seen["messages"]),
            ]
        prefixes = {"user": self.human_prefix, "assistant": self.ai_prefix}
        talk = "\n".join(f"{prefixes[said['role']]}: {quote_text(said['content'])}" for said in seen["messages"])
        return "\n\n".join(part for part in (seen["text"], talk) if part)

    def _turn_messages(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        if not self._offered_inputs(inputs):
            raise InputError("One input key expected got []: there is no input to remember")
        if not outputs:
            raise InputError("Got multiple output keys: none; there is no output to remember")
        answers = _to_messages(_select_values(outputs, self.output_key, "output"), AIMessage)
        return stamp_messages([*self._input_messages(inputs), *answers])

    def _input_messages(self, inputs: Mapping[str, Any]) -> list[BaseMessage]:
        return _to_messages(_select_values(self._offered_inputs(inputs), self.input_key, "input"), HumanMessage)

    def _offered_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in inputs.items() if key not in (self.memory_key, "stop")}


def _select_values(offered: Mapping[str, Any], key: str | Sequence[str] | None, what: str) -> list[Any]:
    """Return the values under the given key or keys, or else the only value."""
    if key is None:
        if len(offered) > 1:
            problem = "One input key expected got" if what == "input" else "Got multiple output keys:"
            names = sorted(map(str, offered))
            raise InputError(f"{problem} {names}; {what}_key= names the {what}, or several of them")
        return list(offered.values())
    keys = [key] if isinstance(key, str) else key
    missing = [name for name in keys if name not in offered]
    if missing:
        raise InputError(f"{what}_key: {missing[0]!r} is not among {sorted(offered)}")
    return [offered[name] for name in keys]


def _to_messages(values: Sequence[Any], kind: type[BaseMessage]) -> list[BaseMessage]:
    """Wrap texts in one message class and pass messages through."""
    texts = [value for value in values if isinstance(value, str)]
    messages = [message for value in values if not isinstance(value, str) for message in read_messages(value)]
    joined = "\n".join(text for text in texts if text.strip())
    return [*messages, *([kind(content=joined)] if joined else [])]
