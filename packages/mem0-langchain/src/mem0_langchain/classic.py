"""`Mem0Memory`: the memory of LangChain 0.x chains and agents, as `langchain_classic` keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, get_buffer_string
from pydantic import Field, field_validator

try:
    from langchain_classic.base_memory import BaseMemory
except ImportError as error:
    raise ImportError("langchain-classic is not installed: pip install 'mem0-langchain[classic]'") from error

from mem0_core import ContextDict, InputError, Memory, Scope
from mem0_core.prompts import MEMORIES_INTRODUCTION
from mem0_langchain.convert import as_memory, read_messages
from mem0_langchain.history import as_messages, told
from mem0_langchain.runs import as_ids

__all__ = ["Mem0Memory"]


class Mem0Memory(BaseMemory):
    """A drop-in for `ConversationBufferMemory` and its kin: what is remembered, and the last messages.

    >>> ConversationChain(llm=model, memory=Mem0Memory(memory=Memory(), user_id="maya"))

    A chain sees, under `memory_key`, what bears on its input (memories, relations, a summary, marked as data) and then
    the last messages of the conversation, within a budget; what it answers is learnt from.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: whose memory; at least one.
        memory_key: the variable of the prompt.
        input_key: which of the chain's inputs the user said; several are joined, line by line. By default the only one
            there is besides the memory and ``stop``.
        output_key: which of the outputs was answered; by default the only one.
        return_messages: messages in place of one text.
        recent: how many of the last messages at most; 0 for memories only.
        k: how many memories at most.
        threshold, filters: as in `Memory.search`.
        max_tokens: how long all of it may be.
        introduction: what the model is told about the memories.
        human_prefix, ai_prefix: who speaks, where it is one text.
        infer, background: as for `mem0_langchain.Mem0ChatMessageHistory`.
    """

    memory: Memory
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    memory_key: str = "history"
    input_key: str | list[str] | None = None
    output_key: str | None = None
    return_messages: bool = False
    recent: int = Field(default=10, ge=0)
    k: int = Field(default=10, ge=1)
    threshold: float | None = None
    filters: dict[str, Any] | None = None
    max_tokens: int = Field(default=2000, ge=1)
    introduction: str = MEMORIES_INTRODUCTION
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    infer: bool = True
    background: bool = True

    @field_validator("memory", mode="before")
    @classmethod
    def _memory_itself(cls, value: Any) -> Any:
        return as_memory(value)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._ids()  # ids that cannot be ones are refused here

    @property
    def memory_variables(self) -> list[str]:
        """The variable that `load_memory_variables` sets."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the chain should see now."""
        return {self.memory_key: self._shown(self.memory.context(**self._request(inputs)))}

    async def aload_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """`load_memory_variables`, awaited."""
        return {self.memory_key: self._shown(await self.memory.acontext(**self._request(inputs)))}

    def save_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Keep what was asked and answered, and learn from it."""
        if spoken := self._turn(inputs, outputs):
            self.memory.add(spoken, **self._ids(), infer=self.infer, background=self.background)

    async def asave_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """`save_context`, awaited."""
        if spoken := self._turn(inputs, outputs):
            await self.memory.aadd(spoken, **self._ids(), infer=self.infer, background=self.background)

    def clear(self) -> None:
        """Erase all that is remembered under these ids, the conversation included."""
        self.memory.delete_all(**self._ids())

    async def aclear(self) -> None:
        """`clear`, awaited."""
        await self.memory.adelete_all(**self._ids())

    def _ids(self) -> dict[str, Any]:
        return as_ids(Scope(self.user_id, self.agent_id, self.run_id))

    def _request(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        asked = "\n".join(str(message.text) for message in self._said(inputs))
        return {
            "query": asked if asked.strip() else None,
            **self._ids(),
            "limit": self.k,
            "recent": self.recent,
            "max_tokens": self.max_tokens,
            "threshold": self.threshold,
            "filters": self.filters,
            "introduction": self.introduction,
        }

    def _shown(self, seen: ContextDict) -> str | list[BaseMessage]:
        messages = as_messages(seen["messages"])
        if self.return_messages:
            return [*([SystemMessage(seen["text"])] if seen["text"] else []), *messages]
        talk = get_buffer_string(messages, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
        return "\n\n".join(part for part in (seen["text"], talk) if part)

    def _turn(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        answers = _texts_or_messages(_picked(outputs, self.output_key, "output"), AIMessage)
        return told([*self._said(inputs), *answers])

    def _said(self, inputs: Mapping[str, Any]) -> list[BaseMessage]:
        offered = {key: value for key, value in inputs.items() if key not in (self.memory_key, "stop")}
        return _texts_or_messages(_picked(offered, self.input_key, "input"), HumanMessage)


def _picked(offered: Mapping[str, Any], key: str | Sequence[str] | None, what: str) -> list[Any]:
    """The values that count: those under the key or keys, else the only one."""
    if key is None:
        if len(offered) > 1:
            raise InputError(f"{what}_key: which of {sorted(offered)} is the {what}? Name it, or several of them")
        return list(offered.values())
    keys = [key] if isinstance(key, str) else key
    missing = [name for name in keys if name not in offered]
    if missing:
        raise InputError(f"{what}_key: {missing[0]!r} is not among {sorted(offered)}")
    return [offered[name] for name in keys]


def _texts_or_messages(values: Sequence[Any], kind: type[BaseMessage]) -> list[BaseMessage]:
    """Texts as one message of a kind; messages as they are."""
    texts = [value for value in values if isinstance(value, str)]
    messages = [message for value in values if not isinstance(value, str) for message in read_messages(value)]
    joined = "\n".join(text for text in texts if text.strip())
    return [*messages, *([kind(content=joined)] if joined else [])]
