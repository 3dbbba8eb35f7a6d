"""Wrong usages of the LangChain classes: each message names the argument, the value, what is accepted, a next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_langchain import (
    Mem0ChatMessageHistory,
    Mem0Compressor,
    Mem0Memory,
    Mem0Retriever,
    MemoryMiddleware,
    memory_tools,
)
from mem0_langchain.langgraph import Mem0Store, RecallNode
from tests.support import check_four_parts, open_memory

MISTAKES: dict[str, Callable[..., Any]] = {
    "retriever": lambda memory: Mem0Retriever(memory=memory, usr_id="u"),  # type: ignore[call-arg]
    "compressor": lambda memory: Mem0Compressor(usr_id="u"),  # type: ignore[call-arg]
    "classic memory": lambda memory: Mem0Memory(memory=memory, usr_id="u"),  # type: ignore[call-arg]
    "middleware": lambda memory: MemoryMiddleware(memory, usr_id="u"),  # type: ignore[call-arg]
    "tools": lambda memory: memory_tools(memory, usr_id="u"),  # type: ignore[call-arg]
    "history": lambda memory: Mem0ChatMessageHistory(memory, usr_id="u"),  # type: ignore[call-arg]
    "recall node": lambda memory: RecallNode(memory, usr_id="u"),  # type: ignore[call-arg]
    "store": lambda memory: Mem0Store(memory, usr_id="u"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_misspelled_argument_is_explained(tmp_path: Path, mistake: str) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(TypeError) as raised:
        MISTAKES[mistake](memory)
    step = "accepted" if mistake in ("compressor", "store") else "did you mean 'user_id'?"  # these have no user_id
    check_four_parts(str(raised.value), ("usr_id", "usr_id='u'", "accepted: ", step))


@pytest.mark.parametrize("wrap", [MemoryMiddleware, RecallNode, Mem0Store])
def test_an_object_that_is_no_memory_is_explained(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as raised:
        wrap("data")
    check_four_parts(str(raised.value), ("memory", "'data'", "mem0_core.Memory", "Memory('data')"))


def test_a_subclass_may_take_arguments_of_its_own(tmp_path: Path) -> None:
    class Tagged(MemoryMiddleware):
        def __init__(self, memory: Memory, *, tag: str) -> None:
            super().__init__(memory, user_id="alice")
            self.tag = tag

    with open_memory(tmp_path) as memory:
        assert Tagged(memory, tag="x").tag == "x"
