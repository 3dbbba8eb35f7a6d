"""The explicit methods of `Memory` and `AsyncMemory`: signatures, documentation, and async forms."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, HistoryDict, Memory
from mem0_core.testing import HashEmbedder
from tests.support import open_memory

SYNC_METHODS = [name for name in vars(Memory) if not name.startswith("_") and f"a{name}" in vars(Memory)]
FLOW_METHODS = [name for name in SYNC_METHODS if name != "close"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path) as opened:
        yield opened


def public_functions(owner: type) -> set[str]:
    return {name for name, value in vars(owner).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_every_method_has_its_async_forms() -> None:
    assert public_functions(Memory) == {form for name in SYNC_METHODS for form in (name, f"a{name}")}
    assert public_functions(AsyncMemory) == set(SYNC_METHODS)


def test_a_method_shows_the_result_of_its_flow() -> None:
    assert inspect.signature(Memory.get).return_annotation == "MemoryDict | None"
    assert typing.get_type_hints(AsyncMemory.history)["return"] == list[HistoryDict]


@pytest.mark.parametrize("name", FLOW_METHODS)
def test_every_method_is_defined_in_all_its_forms(name: str) -> None:
    forms = vars(Memory)[name], vars(Memory)[f"a{name}"], vars(AsyncMemory)[name]
    assert all(inspect.isfunction(form) and form.__module__ == "mem0_core.memory" for form in forms)
    assert [form.__name__ for form in forms] == [name, f"a{name}", name]
    assert [inspect.iscoroutinefunction(form) for form in forms] == [False, True, True]
    assert len({str(inspect.signature(form)) for form in forms}) == 1
    assert forms[0].__doc__
    assert [form.__doc__ for form in forms[1:]] == [f"Async version of `{name}`.", f"Async version of `Memory.{name}`."]


def test_positional_arguments_work_as_in_mem0(memory: Memory) -> None:
    (entry,) = memory.add("I like tea", user_id="u")["results"]
    assert memory.search("tea", user_id="u")["results"][0]["id"] == entry["id"]
    found = memory.get(entry["id"])
    assert found is not None
    assert found["memory"] == "I like tea"
    memory.update(entry["id"], "I like green tea")
    assert [row["event"] for row in memory.history(entry["id"])] == ["ADD", "UPDATE"]
    memory.delete(entry["id"])
    memory.add("I like cake", user_id="u")
    memory.delete_all("u")
    assert memory.get_all(user_id="u")["results"] == []


@pytest.mark.parametrize("client", [Memory, AsyncMemory])
def test_a_wrong_keyword_is_named_with_the_public_method(tmp_path: Path, client: Any) -> None:
    opened = client({"path": str(tmp_path)}, embedder=HashEmbedder())
    with pytest.raises(TypeError, match=rf"^{client.__name__}\.add\(\) got an unexpected keyword argument 'usr_id'"):
        opened.add("I like tea", usr_id="u")
    (opened if isinstance(opened, Memory) else opened.memory).close()
