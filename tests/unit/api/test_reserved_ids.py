"""Ids of the library's own data are refused from callers, in every method, adapter and command."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory, Scope, ScopeError
from mem0_core.cli import main
from mem0_core.domain.records import RESERVED_PREFIX, InternalId
from mem0_core.testing import HashEmbedder

INTERNAL = f"{RESERVED_PREFIX}langgraph/items"
AXES = ("user_id", "agent_id", "run_id")
ARGUMENTS: dict[str, Any] = {
    "messages": "I live in Rome.",
    "query": "Where?",
    "question": "Where?",
    "memory_id": "m",
    "data": "x",
    "text": "x",
    "path": "out",
    "what": "entities",
    "reason": "request 1",
    "receipt": {},
    "merge_id": "1",
    "job_id": "1",
    "fields": {},
    "pinned": True,
    "message": "x",
    "start": "I",
    "source": "a",
    "useful": True,
    "answer": "x [1]",
    "citations": {"1": "x"},
    "target": "b",
}


def _takes_ids(name: str, method: Callable[..., Any]) -> bool:
    is_sync = not inspect.iscoroutinefunction(method)
    return is_sync and not name.startswith("_") and "user_id" in inspect.signature(method).parameters


METHODS = [name for name, method in inspect.getmembers(Memory, inspect.isfunction) if _takes_ids(name, method)]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as made:
        scope = Scope(InternalId(INTERNAL))
        made.add("An internal text.", user_id=scope.user_id, infer=False)
        yield made


def required(method: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters.values()
    names = [one.name for one in parameters if one.default is one.empty and one.name not in ("self", *AXES)]
    return {name: ARGUMENTS[name] for name in names}


def test_every_method_refuses_a_reserved_id(memory: Memory, tmp_path: Path) -> None:
    assert len(METHODS) > 25
    for name in METHODS:
        for axis in AXES:
            given = {**required(getattr(Memory, name)), axis: INTERNAL}
            if "path" in given:
                given["path"] = tmp_path / "out"
            with pytest.raises(ScopeError, match="reserved"):
                getattr(memory, name)(**given)
            with pytest.raises(ScopeError, match="reserved"):
                asyncio.run(getattr(memory, f"a{name}")(**given))
    assert [item.text for item in memory.store.list_memories(None)] == ["An internal text."]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("filters", [{"user_id": INTERNAL}, {"AND": [{"agent_id": INTERNAL}]}])
def test_a_filter_refuses_a_reserved_id(memory: Memory, filters: dict[str, Any]) -> None:
    for call in (memory.get_all, lambda **given: memory.search("text", **given)):
        with pytest.raises(ScopeError, match="reserved"):
            call(filters=filters)


@pytest.mark.parametrize("filters", [{"OR": [{"user_id": INTERNAL}, {"user_id": "ann"}]}, {"user_id": "*"}])
def test_a_filter_finds_no_internal_memory(memory: Memory, filters: dict[str, Any]) -> None:
    try:
        found = memory.get_all(user_id="ann", filters=filters)["results"]
    except ValueError:
        return
    assert found == []


@pytest.mark.parametrize(
    "command", [["get-all"], ["search", "text"], ["delete-all", "--yes"], ["add", "I live in Rome."]]
)
def test_the_command_refuses_a_reserved_id(command: list[str], tmp_path: Path) -> None:
    shown = StringIO()
    with redirect_stderr(shown):
        assert main(["--path", str(tmp_path), *command, "--user", INTERNAL]) != 0
    assert "reserved" in shown.getvalue()


def test_a_stored_id_is_restored(memory: Memory) -> None:
    (item,) = memory.store.list_memories(None)
    assert isinstance(item.scope.user_id, InternalId)
    assert Scope.from_stored(INTERNAL) == item.scope == copy.deepcopy(item.scope)
    assert memory.doctor()["healthy"]
