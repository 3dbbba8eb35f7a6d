"""The explicit methods of `Memory` and `AsyncMemory`: signatures, documentation, and their generated text."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.testing import HashEmbedder
from tests.support import open_memory
from tools import generate_memory

SYNC_METHODS = [name for name in vars(Memory) if not name.startswith("_") and f"a{name}" in vars(Memory)]
FLOW_METHODS = [name for name in SYNC_METHODS if name != "close"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path) as opened:
        yield opened


def test_the_generated_methods_are_up_to_date() -> None:
    source = generate_memory.MEMORY.read_text(encoding="utf-8")
    assert source == generate_memory.generate(source), "memory.py is stale: run python tools/generate_memory.py"


def test_the_generator_restores_a_lost_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = generate_memory.MEMORY.read_text(encoding="utf-8")
    stale = tmp_path / "memory.py"
    stale.write_text(source.replace("async def aget(", "async def aget_one("), encoding="utf-8")
    monkeypatch.setattr(generate_memory, "MEMORY", stale)
    assert generate_memory.main(["--check"]) == 1
    assert generate_memory.main([]) == 0
    assert stale.read_text(encoding="utf-8") == source
    assert generate_memory.main(["--check"]) == 0


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
