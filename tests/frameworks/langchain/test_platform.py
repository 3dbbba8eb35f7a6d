"""The store factory for `langgraph.json`, used as LangGraph's servers use it."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, ConfigError, Memory, StoreError
from mem0_langchain.langgraph import Mem0Store, open_store
from tests.support import open_memory

VALUE = {"title": "Allergies", "content": {"text": "No peanuts."}}


def load(path: str) -> Any:
    """The object of a dotted path, as a server finds it: among the module's own names."""
    module, _, name = path.rpartition(".")
    return importlib.import_module(module).__dict__[name]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.delenv("LANGGRAPH_STORE", raising=False)
    return {"path": str(tmp_path / "data"), "embedder": {"provider": "hash"}, "durability": "process"}


async def test_a_server_enters_the_factory_without_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = {
        "path": "mem0_langchain.langgraph.open_store",
        "index": {"fields": ["title"], "embed": "other", "dims": 3},
        "ttl": {"default_ttl": 60, "refresh_on_read": False, "sweep_interval_minutes": 60},
    }
    monkeypatch.setenv("LANGGRAPH_STORE", json.dumps(section))
    monkeypatch.setenv("MEM0_CORE_HOME", str(tmp_path / "home"))
    factory = load(str(section["path"]))
    async with factory() as store:
        assert isinstance(store, Mem0Store)
        assert store.ttl_config == section["ttl"]
        await store.aput(("users", "maya"), "1", VALUE)
        (found,) = await store.asearch(("users",), query="Allergies")
        assert found.value == VALUE
        assert found.score == pytest.approx(1, abs=1e-3), "the title alone is indexed"
    assert (tmp_path / "home").is_dir()


async def test_arguments_go_before_the_servers_section(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STORE", json.dumps({"ttl": {"default_ttl": 60}, "index": None}))
    async with open_store(config, fields=["content.text"], ttl={"default_ttl": 5}) as store:
        assert store.ttl_config == {"default_ttl": 5}
        await store.aput(("users",), "1", VALUE)
        assert (await store.asearch(("users",), query="No peanuts."))[0].score == pytest.approx(1, abs=1e-3)


async def test_the_memory_and_the_sweeper_end_with_the_server(config: dict[str, Any]) -> None:
    async with open_store(config, ttl={"default_ttl": 5, "sweep_interval_minutes": 60}) as store:
        sweepers = [thread for thread in threading.enumerate() if thread.name == "mem0-ttl" and thread.is_alive()]
        assert sweepers
    for sweeper in sweepers:
        sweeper.join(60)
    with pytest.raises(StoreError):
        await store.aget(("users",), "1")
    async with open_store(config) as again:  # another start
        assert await again.alist_namespaces() == []


async def test_an_open_memory_stays_open(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        for given in (memory, AsyncMemory(memory=memory)):
            async with open_store(given) as store:
                await store.aput(("users",), "1", VALUE)
        assert not memory.closed


def test_each_event_loop_of_a_server_has_a_store_of_the_same_items(config: dict[str, Any]) -> None:
    async def serve(number: int, ready: threading.Barrier) -> list[str]:
        async with open_store(config) as store:
            await store.aput(("users",), str(number), {"text": f"item {number}"})
            await asyncio.to_thread(ready.wait, 120)
            return sorted(item.key for item in await store.asearch(("users",)))

    ready, seen = threading.Barrier(2), []
    loops = [threading.Thread(target=lambda n=n: seen.append(asyncio.run(serve(n, ready)))) for n in range(2)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(240)
    assert seen == [["0", "1"]] * 2


@pytest.mark.parametrize("section", ["[]", "{", '"memory"'])
async def test_a_section_of_another_form_is_refused(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, section: str
) -> None:
    monkeypatch.setenv("LANGGRAPH_STORE", section)
    with pytest.raises(ConfigError, match="LANGGRAPH_STORE must be a JSON object"):
        async with open_store(config):
            pass


class LoopGuard:
    """A store that refuses calls on a thread with a running event loop, as the dev server does for SQLite."""

    def __init__(self, guarded: Any) -> None:
        self._guarded = guarded

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._guarded, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return value(*args, **kwargs)
            raise AssertionError(f"{name} blocks the event loop")

        return call


async def test_no_async_method_of_the_store_blocks_the_event_loop(memory: Memory) -> None:
    store = Mem0Store(memory, fields=["title", "content.text"], ttl={"default_ttl": 5, "refresh_on_read": True})
    guard = LoopGuard(memory.store)
    store._primary_store = store._namespaces._primary_store = guard
    for number in range(3):
        await store.aput(("users", str(number)), "1", VALUE, index=False if number == 2 else None)
    assert len(await store.asearch(("users",), query="peanuts", filter={"title": "Allergies"})) == 3
    assert len(await store.asearch(("users", "0"), query="No peanuts.")) == 1
    assert len(await store.asearch(("users",))) == 3
    assert await store.aget(("users", "1"), "1")
    assert len(await store.alist_namespaces()) == 3
    await store.adelete(("users", "1"), "1")
