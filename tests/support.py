"""What many tests share: a memory with cheap parts, driven by sync or async code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core import Memory
from mem0_core.testing import HashEmbedder, ScriptedChat

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")


class Driven:
    """A memory whose verbs run under one of the two drivers: ``driven.add(...)`` is `add` or an awaited `aadd`."""

    def __init__(self, memory: Memory, mode: Mode) -> None:
        self.memory = memory
        self._mode = mode

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if self._mode == "sync":
            found: Callable[..., Any] = getattr(self.memory, verb)
            return found
        return lambda *args, **kwargs: asyncio.run(getattr(self.memory, f"a{verb}")(*args, **kwargs))


def open_memory(
    folder: Path,
    script: Sequence[Any] | Callable[..., Any] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Memory:
    """A memory in `folder` with a cheap embedder and, where a script is given, a scripted model."""
    parts.setdefault("embedder", HashEmbedder())
    if script is not None:
        parts["llm"] = ScriptedChat(script)
    return Memory({"path": str(folder), "durability": "process", **(config or {})}, **parts)


def texts(result: Mapping[str, Any]) -> list[str]:
    return [entry["memory"] for entry in result["results"]]


def events(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(entry["event"], entry["memory"]) for entry in result["results"]]
