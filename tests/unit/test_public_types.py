"""The types that a type checker sees at the front door; `nox -s types` checks the assertions."""

from __future__ import annotations

import inspect
from typing import Any, assert_type

import pytest

from mem0_core import (
    AddManyResult,
    AddResult,
    AsyncMemory,
    ContextDict,
    HistoryDict,
    Memory,
    MemoryDict,
    QueryResult,
    SearchResult,
)


def check_sync(memory: Memory) -> None:
    assert_type(memory.add("I live in Porto.", user_id="maya"), AddResult)
    assert_type(memory.add_many(["I live in Porto."], user_id="maya"), AddManyResult)
    assert_type(memory.search("Where does she live?", user_id="maya"), SearchResult)
    assert_type(memory.get("id"), MemoryDict | None)
    assert_type(memory.get_all(user_id="maya"), SearchResult)
    assert_type(memory.context("Where does she live?", user_id="maya"), ContextDict)
    assert_type(memory.history("id"), list[HistoryDict])
    assert_type(memory.query("MATCH (a)-[r]->(b) RETURN a", user_id="maya"), QueryResult)
    assert_type(memory.delete("id"), dict[str, Any])
    assert_type(memory.flush(), bool)


async def check_async(memory: Memory, other: AsyncMemory) -> None:
    assert_type(await memory.aadd("I live in Porto.", user_id="maya"), AddResult)
    assert_type(await memory.asearch("Where does she live?", user_id="maya"), SearchResult)
    assert_type(await other.add("I live in Porto.", user_id="maya"), AddResult)
    assert_type(await other.search("Where does she live?", user_id="maya"), SearchResult)
    assert_type(await other.get("id"), MemoryDict | None)
    assert_type(await other.context("Where does she live?", user_id="maya"), ContextDict)


def public_methods(owner: type) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(owner).items() if inspect.isfunction(value) and name[0] != "_"]


@pytest.mark.parametrize("owner", [Memory, AsyncMemory])
def test_every_public_method_is_defined_in_the_class_with_types_and_a_docstring(owner: type) -> None:
    methods = public_methods(owner)
    assert len(methods) > 30
    for name, method in methods:
        assert method.__doc__, name
        assert "return" in method.__annotations__, name


def test_the_async_methods_take_the_arguments_of_the_sync_ones() -> None:
    for name, method in public_methods(Memory):
        twin = getattr(Memory, f"a{name}", None)
        if twin is not None and not inspect.iscoroutinefunction(method):
            assert inspect.signature(twin).parameters == inspect.signature(method).parameters, name
