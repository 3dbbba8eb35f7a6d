"""Only errors of the library leave a public call, whatever the caller's functions, models, stores and files do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from mem0_core import (
    ArgumentError,
    AsyncMemory,
    CallbackError,
    InputError,
    Mem0Error,
    Memory,
    ModelError,
    StoreError,
)
from mem0_core.api.options import unwrap_memory
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import MODES, MemoryDriver, Mode, open_memory

ERRORS = (TypeError("odd"), StopIteration("end"), AttributeError("none"), RuntimeError("server"), KeyError("key"))


def fail(error: BaseException) -> Any:
    """Return a function that raises `error`, whatever it is called with."""

    def call(*args: object, **kwargs: object) -> NoReturn:
        raise error

    return call


def open_in(folder: Path, **options: Any) -> Memory:
    return Memory({"path": str(folder)}, **{"embedder": HashEmbedder(dims=32), **options})


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_in(tmp_path) as opened:
        opened.add("I like green tea.", user_id="u")
        yield MemoryDriver(opened, mode)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_a_model_becomes_a_model_error(tmp_path: Path, mode: Mode, error: Exception) -> None:
    chat, embedder = ScriptedChat(lambda task, messages: {"facts": ["Likes tea"]}), HashEmbedder(dims=32)
    with open_in(tmp_path, llm=chat, embedder=embedder) as opened:
        memory = MemoryDriver(opened, mode)
        chat.complete = fail(error)  # type: ignore[method-assign]
        with pytest.raises(ModelError, match=type(error).__name__) as raised:
            memory.add("I like tea.", user_id="u")
        assert raised.value.__cause__ is not None
        embedder.embed = fail(error)  # type: ignore[method-assign]
        for call in (memory.search, memory.context):
            with pytest.raises(ModelError, match=type(error).__name__):
                call("tea", user_id="u")
        assert memory.get_all(user_id="u")["results"] == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_store_becomes_a_store_error(memory: MemoryDriver, error: Exception) -> None:
    store: Any = memory.memory.store
    store.find_by_fact_keys = store.get = fail(error)
    with pytest.raises(Mem0Error) as raised:
        memory.add("I like rice.", user_id="u")
    assert raised.value.__cause__ is not None
    with pytest.raises(Mem0Error):
        memory.get("some-id")


def test_observing_functions_that_fail_are_logged_and_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_in(tmp_path, on_step=fail(RuntimeError("no tracer"))) as memory:
        with caplog.at_level(logging.WARNING):
            memory.add("I like tea.", user_id="u")
            done = memory.add_many(["I like rice."], user_id="u", on_progress=fail(KeyError("bar")))
        assert done["added"] == 1
        assert len(memory.get_all(user_id="u")["results"]) == 2
    assert "on_step failed, and is ignored" in caplog.text
    assert "on_progress failed, and is ignored" in caplog.text


def test_functions_whose_result_is_needed_raise_a_callback_error(memory: MemoryDriver, tmp_path: Path) -> None:
    with pytest.raises(CallbackError, match="data failed: ZeroDivisionError") as raised:
        memory.update_by_query("tea", lambda found: 1 / 0, user_id="u", threshold=0.0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with open_in(tmp_path / "other", policy=fail(ValueError("policy"))) as other, pytest.raises(CallbackError):
        other.add("I like tea.", user_id="u")

    def messages() -> Iterator[str]:
        yield "I like rice."
        raise OSError("the source is gone")

    with pytest.raises(CallbackError, match="messages failed: OSError"):
        memory.add_many(messages(), user_id="u")
    with pytest.raises(CallbackError, match="messages failed: TypeError"):
        memory.add_many(np.array("I like rice."), user_id="u")  # it claims to have a length, and has none


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda memory: memory.context("tea", user_id="u", max_tokens=[]), "max_tokens"),
        (lambda memory: memory.context("tea", user_id="u", recent=-1), "recent"),
        (lambda memory: memory.search("tea", user_id="u", filters=5), "filters"),
        (lambda memory: memory.add("tea", user_id="u", ttl="soon"), "ttl"),
        (lambda memory: memory.add("tea", user_id=object()), "user_id"),
        (lambda memory: memory.rebuild(on_progress=5), "on_progress"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(memory: MemoryDriver, call: Any, name: str) -> None:
    with pytest.raises((ArgumentError, InputError, Mem0Error), match=name):
        call(memory)


class Raising:
    """An object whose every attribute raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"no {name} here")


@pytest.mark.parametrize("given", [Raising(), "data", None], ids=["raising", "text", "none"])
def test_another_object_in_the_place_of_a_memory_is_an_argument_error(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"memory must be a mem0_core\.Memory, not"):
        unwrap_memory(given)


def test_an_object_that_has_a_memory_does_not_pass_for_one(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        assert unwrap_memory(AsyncMemory(memory=memory)) is memory
        owner: Any = SimpleNamespace(memory=memory)
        with pytest.raises(ArgumentError, match=r"memory must be a mem0_core\.Memory, not"):
            unwrap_memory(owner)


def test_a_huge_number_of_recent_messages_is_all_of_them(memory: MemoryDriver) -> None:
    memory.add("I like tea.", user_id="w")
    assert len(memory.context(None, user_id="w", recent=2**63)["messages"]) == 1


@pytest.mark.parametrize("path", ["a\0b", "n" * 5_000, ""])
def test_impossible_paths_are_refused_by_name(memory: MemoryDriver, path: str) -> None:
    for call in (memory.backup, memory.export):
        with pytest.raises(InputError, match="path"):
            call(path)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(3), MemoryError("full")])
def test_interrupts_pass_through(tmp_path: Path, interrupt: BaseException) -> None:
    embedder = HashEmbedder(dims=32)
    with open_in(tmp_path, embedder=embedder) as memory:
        embed, embedder.embed = embedder.embed, fail(interrupt)  # type: ignore[method-assign]
        with pytest.raises(type(interrupt)):
            memory.add("I like tea.", user_id="u")
        embedder.embed = embed  # type: ignore[method-assign]
        assert memory.get_all(user_id="u")["results"] == []
        assert memory.add("I like tea.", user_id="u")["results"]


async def test_a_cancellation_passes_through(tmp_path: Path) -> None:
    class Waiting(HashEmbedder):
        async def aembed(self, texts: Any, *, kind: Any = "document") -> Any:
            await asyncio.sleep(60)

    memory = AsyncMemory(memory=open_in(tmp_path, embedder=Waiting(dims=32)))
    task = asyncio.create_task(memory.add("I like tea.", user_id="u"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await memory.get_all(user_id="u"))["results"] == []
    await memory.close()


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises((StoreError, InputError)):
        Memory({"path": str(tmp_path / "file" / "inside")}, embedder=HashEmbedder(dims=32))
