"""Wrong usages of the LangChain classes: each message names the argument, the value, what is accepted, a next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError

from mem0_core import Mem0Error, Memory
from mem0_langchain import (
    Mem0ChatMessageHistory,
    Mem0Compressor,
    Mem0Memory,
    Mem0Retriever,
    Mem0VectorStore,
    MemoryMiddleware,
    MemoryVectors,
    VectorStoreIndex,
    memory_tools,
)
from mem0_langchain.langgraph import Mem0Store, RecallNode, RememberNode
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


Parts = tuple[str, str, str, str]

WRONG: dict[str, tuple[Callable[[Memory], Any], Parts]] = {
    "retriever without memory": (
        lambda memory: Mem0Retriever(),  # type: ignore[call-arg]
        ("Mem0Retriever()", "'memory'", "accepted: name", "pass it by name"),
    ),
    "retriever with a memory by position": (
        lambda memory: Mem0Retriever(memory),  # type: ignore[call-arg, arg-type]
        ("Mem0Retriever()", "<Memory", "accepted: name", "memory=..."),
    ),
    "retriever of nothing": (
        lambda memory: Mem0Retriever(memory=memory, k=0),
        ("k", "not 0", "greater than or equal to 1", "leave k out"),
    ),
    "retriever with a name of other libraries": (
        lambda memory: Mem0Retriever(memory=memory, top_k=3),  # type: ignore[call-arg]
        ("'top_k'", "top_k=3", "memory, user_id", "did you mean 'k'?"),
    ),
    "classic memory without ids": (
        lambda memory: Mem0Memory(memory=memory),
        ("user_id", "none was given", "user_id, agent_id, run_id", "user_id='alice'"),
    ),
    "middleware with a limit": (
        lambda memory: MemoryMiddleware(memory, limit=3),  # type: ignore[call-arg]
        ("'limit'", "limit=3", "memory, k", "did you mean 'k'?"),
    ),
    "middleware with a word as switch": (
        lambda memory: MemoryMiddleware(memory, background="yes"),  # type: ignore[arg-type]
        ("background", "'yes'", "True or False", "pass background=True"),
    ),
    "middleware of nothing": (
        lambda memory: MemoryMiddleware(memory, k=0, on_error="log"),
        ("k", "not 0", "greater than or equal to 1", "leave k out"),
    ),
    "middleware with a threshold in percent": (
        lambda memory: MemoryMiddleware(memory, threshold=40),
        ("threshold", "not 40", "less than or equal to 1", "leave threshold out"),
    ),
    "middleware with an unknown way to keep": (
        lambda memory: MemoryMiddleware(memory, keep="none"),  # type: ignore[arg-type]
        ("keep", "'none'", "'all' or 'statements'", "leave keep out"),
    ),
    "middleware with an unknown way to fail": (
        lambda memory: MemoryMiddleware(memory, on_error="ignore"),  # type: ignore[arg-type]
        ("on_error", "'ignore'", "'raise' or 'log'", "leave on_error out"),
    ),
    "recall node of a word": (
        lambda memory: RecallNode(memory, k="2"),  # type: ignore[arg-type]
        ("k", "not '2'", "a valid integer", "leave k out"),
    ),
    "remember node with an unknown way to keep": (
        lambda memory: RememberNode(memory, keep="none"),  # type: ignore[arg-type]
        ("keep", "'none'", "'all' or 'statements'", "leave keep out"),
    ),
    "history of a word": (
        lambda memory: Mem0ChatMessageHistory(memory, user_id="u", limit="5"),  # type: ignore[arg-type]
        ("limit", "not '5'", "a valid integer", "leave limit out"),
    ),
    "store with one field": (
        lambda memory: Mem0Store(memory, fields="text"),
        ("fields", "'text'", "a list of paths", "pass ['text']"),
    ),
    "word as namespace": (
        lambda memory: Mem0Store(memory).search("notes"),  # type: ignore[arg-type]
        ("namespace", "'notes'", "a tuple of labels", "pass ('notes',)"),
    ),
    "word as time to live": (
        lambda memory: Mem0Store(memory).put(("a",), "k", {}, ttl="x"),  # type: ignore[arg-type]
        ("ttl", "'x'", "a number of minutes", "ttl=60"),
    ),
    "compressor of nothing": (
        lambda memory: Mem0Compressor(top_n=0),
        ("top_n", "not 0", "greater than or equal to 1", "leave top_n out"),
    ),
    "tool of a number": (
        lambda memory: memory_tools(memory, user_id=1),  # type: ignore[arg-type]
        ("user_id", "not 1", "a valid string", "leave user_id out"),
    ),
    "text as item": (
        lambda memory: Mem0Store(memory).put(("a",), "k", "text"),  # type: ignore[arg-type]
        ("value of ('a',) 'k'", "'text'", "a mapping", "{'text': ...}"),
    ),
    "word as limit of items": (
        lambda memory: Mem0Store(memory).search(("a",), limit="x"),  # type: ignore[arg-type]
        ("limit", "'x'", "whole numbers", "limit=10"),
    ),
    "vector store without memory": (
        lambda memory: Mem0VectorStore(),  # type: ignore[call-arg]
        ("Mem0VectorStore()", "'memory'", "accepted: memory", "pass it first or by name"),
    ),
    "vectors of a word": (
        lambda memory: MemoryVectors("x"),  # type: ignore[arg-type]
        ("dims", "'x'", "a whole number", "for example 384"),
    ),
    "index over a word": (
        lambda memory: VectorStoreIndex("x", source=memory.store),  # type: ignore[arg-type]
        ("store", "'x'", "a vector store of LangChain", "InMemoryVectorStore"),
    ),
}


@pytest.mark.parametrize("usage", WRONG)
def test_a_wrong_usage_is_explained(tmp_path: Path, usage: str) -> None:
    call, parts = WRONG[usage]
    with open_memory(tmp_path) as memory, pytest.raises((Mem0Error, InvalidNamespaceError)) as raised:
        call(memory)
    check_four_parts(str(raised.value), parts)


def test_a_subclass_may_take_arguments_of_its_own(tmp_path: Path) -> None:
    class Tagged(MemoryMiddleware):
        def __init__(self, memory: Memory, *, tag: str) -> None:
            super().__init__(memory, user_id="alice")
            self.tag = tag

    with open_memory(tmp_path) as memory:
        assert Tagged(memory, tag="x").tag == "x"
