"""What LlamaIndex's instrumentation is told of a long-term memory: events, inside the spans of `ScopedMemory`."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]

__all__ = ["MemoryRecallEndEvent", "MemoryRecallStartEvent", "MemoryRememberEndEvent", "MemoryRememberStartEvent"]


class MemoryRecallStartEvent(BaseEvent):
    """Long-term memory is about to be searched.

    Args:
        query: what is asked.
        scope: whose memories, by ``user_id``, ``agent_id``, ``run_id``.
    """

    query: str
    scope: dict[str, str]

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRecallStartEvent"


class MemoryRecallEndEvent(BaseEvent):
    """What a search of long-term memory found for the prompt.

    Args:
        memories, relations: as `mem0_core.Memory.context` returns them.
        tokens: how many the text for the prompt takes.
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
    """A turn is about to be written to long-term memory.

    Args:
        messages: what was said, as `mem0_core.Memory.add` takes it.
    """

    messages: list[dict[str, Any]]
    scope: dict[str, str]

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRememberStartEvent"


class MemoryRememberEndEvent(BaseEvent):
    """A turn is written.

    Args:
        results: what it changed, as `mem0_core.Memory.add` returns it; empty where it is learnt in the background.
        job_id: of the job that learns from it in the background, else None.
    """

    scope: dict[str, str]
    results: list[dict[str, Any]]
    job_id: str | None = None

    @classmethod
    def class_name(cls) -> str:
        return "MemoryRememberEndEvent"
