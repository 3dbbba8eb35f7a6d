"""A long-term memory with a cheap embedder, and a count of what it was asked to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from mem0_core import Memory
from mem0_core.flow import StepRecord
from mem0_core.testing import HashEmbedder


class Counted:
    """A memory, and how often it searched and committed."""

    def __init__(self, folder: Path) -> None:
        self.calls: Counter[str] = Counter()
        config = {"path": str(folder), "durability": "process"}
        self.memory = Memory(config, embedder=HashEmbedder(), on_step=self._count)

    def _count(self, step: StepRecord) -> None:
        self.calls[step.call.name.rpartition(".")[2]] += 1

    def taken(self) -> dict[str, int]:
        """Recalls and remembers since this was last asked; a turn kept for the background is one that is remembered."""
        counted = {"recalls": self.calls["open"], "remembers": self.calls["commit"] + self.calls["enqueue"]}
        self.calls.clear()
        return counted

    async def texts(self, **ids: Any) -> list[str]:
        """All memories of a scope, once everything is learnt."""
        return await texts_of(self.memory, **ids)


async def texts_of(memory: Memory, **ids: Any) -> list[str]:
    assert await memory.aflush(timeout=20)
    return [item["memory"] for item in (await memory.aget_all(**ids))["results"]]


@pytest.fixture
def forget_live_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing that is restored find an open memory, as in another process."""
    monkeypatch.setattr("mem0_llamaindex.long_term._live_keys", Blank())


class Blank(WeakKeyDictionary[Memory, str]):
    def items(self) -> Any:
        return []


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    made = Counted(tmp_path)
    yield made
    made.memory.close()


@pytest.fixture
def core(counted: Counted) -> Memory:
    return counted.memory
