"""Events for LlamaIndex's instrumentation, sent inside the spans of `ScopedMemory`."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]

__all__ = ["MemoryRecallEndEvent", "MemoryRecallStartEvent", "MemoryRememberEndEvent", "MemoryRememberStartEvent"]


class MemoryRecallStartEvent(BaseEvent):
    """Sent before long-term memory is searched.

    Args:
        query: the question.
        scope: owner of the memories, by ``user_id``, ``agent_id``, ``run_id``.
    """

    query: str
    scope: dict[str, str]

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRecallStartEvent"


class MemoryRecallEndEvent(BaseEvent):
    """Sent after a search of long-term memory for the prompt.

    Args:
        memories, relations: as `mem0_core.Memory.context` returns them.
        tokens: tokens of the text for the prompt.
    """

    query: str
    scope: dict[str, str]
    memories: list[dict[str, Any]]
    relations: list[dict[str, Any]]
    tokens: int

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRecallEndEvent"


class MemoryRememberStartEvent(BaseEvent):
    """Sent before a turn is written to long-term memory.

    Args:
        messages: the messages, as `mem0_core.Memory.add` takes them.
    """

    messages: list[dict[str, Any]]
    scope: dict[str, str]

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRememberStartEvent"


class MemoryRememberEndEvent(BaseEvent):
    """Sent after a turn is written.

    Args:
        results: the changes, as `mem0_core.Memory.add` returns them; empty if a worker learns from the turn.
        job_id: id of the background job that learns from it, else None.
    """

    scope: dict[str, str]
    results: list[dict[str, Any]]
    job_id: str | None = None

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRememberEndEvent"
