"""The cost of `add`: blocks of calls on copies of stores of several sizes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.corpus import USERS, Memo, take, user_name
from mem0_core import Memory
from mem0_core.interfaces import Embedder

__all__ = ["Block", "Site", "add_block"]

FACTS_PER_ADD = 2
_WARM_UP = 20
_GROWTH = 0.05

Durability = Literal["full", "process"]


class Site:
    """A copy of a filled store to add to, replaced once adds have made it 5 % too large."""

    def __init__(self, base: Path, size: int, work: Path) -> None:
        self._base = base
        self._size = size
        self._copy = work / f"copy-{size}"
        self._grown: int | None = None

    def folder(self, adds: int) -> Path:
        """Return a folder for this number of `adds` of two facts."""
        if self._grown is None or self._grown + adds * FACTS_PER_ADD > self._size * _GROWTH:
            self.remove()
            shutil.copytree(self._base, self._copy)
            os.sync()  # else the first checkpoint would be charged with writing the copy to disk
            self._grown = 0
        self._grown += adds * FACTS_PER_ADD
        return self._copy

    def remove(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Block:
    """Measurements of one block of adds: CPU per call, of the whole process, and wall time of each call."""

    cpu_ms: float
    walls_ms: Sequence[float]


def add_block(
    site: Site, embedder: Embedder, durability: Durability, memos: Iterator[Memo], calls: int
) -> tuple[Block, list[float]]:
    """Time `calls` adds of two messages each, of one user after the other.

    Returns the block, and the milliseconds of a search of the user just added to (its embedding included), for each of
    20
    more adds: that search has a change to catch up with.
    """
    folder = site.folder(calls + 2 * _WARM_UP)
    with Memory({"path": folder, "durability": durability}, embedder=embedder) as memory:
        _adds(memory, _pairs(memos, _WARM_UP))
        pairs = _pairs(memos, calls)
        before = time.process_time()
        walls = _adds(memory, pairs)
        cpu = time.process_time() - before
        return Block(1e3 * cpu / calls, walls), _searches_after_adds(memory, memos)


def _adds(memory: Memory, pairs: Iterable[tuple[Memo, Memo]]) -> list[float]:
    walls = []
    for call, (first, second) in enumerate(pairs):
        messages = [{"role": "user", "content": first.text}, {"role": "assistant", "content": second.text}]
        started = time.perf_counter()
        result = memory.add(messages, user_id=user_name(call % USERS))
        walls.append(1e3 * (time.perf_counter() - started))
        assert [entry["event"] for entry in result["results"]] == ["ADD", "ADD"]
    return walls


def _pairs(memos: Iterator[Memo], count: int) -> list[tuple[Memo, Memo]]:
    given = take(memos, FACTS_PER_ADD * count)
    return list(zip(given[::2], given[1::2], strict=True))


def _searches_after_adds(memory: Memory, memos: Iterator[Memo]) -> list[float]:
    took = []
    memory.search("anything", user_id=user_name(0))
    for memo in take(memos, _WARM_UP):
        memory.add(memo.text, user_id=user_name(0))
        started = time.perf_counter()
        memory.search(memo.question, user_id=user_name(0))
        took.append(1e3 * (time.perf_counter() - started))
    return took
