"""The store of docs/how-to/write-a-store.md keeps the contracts it declares, and works behind `Memory`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.contracts import RecordsContract, VectorsContract
from mem0_core.domain.records import Scope
from mem0_core.errors import CapabilityError, ConfigError, NotFoundError, StoreError
from mem0_core.interfaces import MemoryStore, RecordStore
from mem0_core.stores.minimal import complete_store
from mem0_core.testing import HashEmbedder
from tests.docs.test_documentation import ROOT, blocks_of
from tests.support import MODES, MemoryDriver, Mode, open_memory

PAGE = ROOT / "docs" / "how-to" / "write-a-store.md"
SOURCE = next(block.source for block in blocks_of(PAGE) if block.language == "python")


def load_store() -> type[Any]:
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, str(PAGE), "exec"), namespace)
    store: type[Any] = namespace["JsonStore"]
    return store


JsonStore = load_store()


class TestJsonStore(RecordsContract, VectorsContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[MemoryStore]:
        store = complete_store(JsonStore(tmp_path / "memories.json"))
        yield store
        store.close()


@pytest.fixture(params=MODES)
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path, store=JsonStore(tmp_path / "memories.json")) as memory:
        yield MemoryDriver(memory, mode)


def add_memory(memory: MemoryDriver, text: str, **options: Any) -> str:
    (added,) = memory.add(text, user_id="maya", **options)["results"]
    return str(added["id"])


def all_texts(memory: MemoryDriver) -> list[str]:
    return [entry["memory"] for entry in memory.get_all(user_id="maya")["results"]]


def test_a_first_store_has_at_most_twelve_methods() -> None:
    required = [name for name, _ in inspect.getmembers(RecordStore, inspect.isfunction) if not name.startswith("_")]
    assert len(required) <= 12
    assert len(SOURCE.splitlines()) <= 110


def test_memories_are_added_searched_and_read(memory: MemoryDriver) -> None:
    tea = add_memory(memory, "I like green tea", metadata={"topic": "drinks"})
    add_memory(memory, "My sister lives in Lisbon")
    assert memory.search("green tea", user_id="maya")["results"][0]["id"] == tea
    assert memory.search("tea", user_id="maya", filters={"topic": "drinks"})["results"][0]["id"] == tea
    assert memory.search("tea", user_id="ben")["results"] == []
    assert memory.get(tea)["memory"] == "I like green tea"
    assert all_texts(memory) == ["I like green tea", "My sister lives in Lisbon"]


def test_the_same_fact_is_stored_once(memory: MemoryDriver) -> None:
    add_memory(memory, "I like green tea")
    assert memory.add("I like green tea", user_id="maya")["unchanged"][0]["event"] == "NONE"
    assert len(all_texts(memory)) == 1


def test_memories_are_updated_and_deleted(memory: MemoryDriver) -> None:
    tea, sister = add_memory(memory, "I like green tea"), add_memory(memory, "My sister lives in Lisbon")
    memory.update(tea, "I like black tea")
    assert memory.search("black tea", user_id="maya")["results"][0]["memory"] == "I like black tea"
    memory.delete(tea, purge=True)
    assert memory.get(tea) is None
    with pytest.raises(NotFoundError):
        memory.delete(tea)
    memory.delete(sister)
    add_memory(memory, "I like milk")
    memory.delete_all(user_id="maya")
    assert all_texts(memory) == []


def test_empty_capabilities_answer_with_nothing(memory: MemoryDriver) -> None:
    add_memory(memory, "I like green tea")
    context = memory.context("tea", user_id="maya")
    assert (context["summary"], context["messages"]) == ("", [])
    assert "green tea" in context["text"]
    assert memory.pending(user_id="maya") == []
    memory.flush()


def test_refused_features_name_the_capability_and_the_store(memory: MemoryDriver) -> None:
    tea = add_memory(memory, "I like green tea")
    refused: dict[str, Callable[[], Any]] = {
        "queue": lambda: memory.add("I ski", user_id="maya", background=True),
        "history": lambda: memory.history(tea),
        "graph": lambda: memory.relations(user_id="maya"),
        "maintenance": memory.doctor,
    }
    for capability, call in refused.items():
        with pytest.raises(CapabilityError, match=rf"JsonStore has no {capability}.*'sqlite' or 'postgres'"):
            call()
    with pytest.raises(CapabilityError, match="has no history"):
        memory.search("tea", user_id="maya", as_of="2020-01-01")
    assert all_texts(memory) == ["I like green tea"]


def test_graph_memory_is_refused_when_it_is_requested(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match=r"JsonStore has no graph"):
        open_memory(tmp_path, store=JsonStore(tmp_path / "memories.json"), graph=True)


def test_an_object_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"object.* lacks get, list_memories.*write-a-store"):
        Memory({"path": str(tmp_path)}, store=object(), embedder=HashEmbedder())  # type: ignore[arg-type]


def test_memories_survive_reopening(tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    for text in ("I like green tea", "I like black tea"):
        with open_memory(tmp_path, store=JsonStore(file)) as memory:
            memory.add(text, user_id="maya", metadata={"n": 1})
    with open_memory(tmp_path, store=JsonStore(file)) as memory:
        entries = memory.get_all(user_id="maya")["results"]
        assert [(entry["memory"], entry["metadata"]) for entry in entries] == [
            ("I like green tea", {"n": 1}),
            ("I like black tea", {"n": 1}),
        ]
        assert len(set(memory.store.rows(Scope(user_id="maya")).tolist())) == 2
        memory.rebuild()
    file.write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot read"):
        JsonStore(file)
