"""Remembering does not hold up the event loop: no model and no store is called on its thread."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from mem0_core import AsyncMemory, Memory
from mem0_core.stores.sqlite.session import Database
from mem0_core.stores.vector.faiss import FaissIndex
from mem0_core.testing import HashEmbedder, ScriptedChat
from mem0_llamaindex import Mem0Memory


def brew(tea: str) -> str:
    """Make tea."""
    return f"{tea} is ready"


def an_agent() -> FunctionAgent:
    """It calls one tool, then it answers."""
    call = ToolCallBlock(tool_call_id="1", tool_name="brew", tool_kwargs={"tea": "oolong"})

    def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(role="assistant", content="Here it is.")
        return ChatMessage(role="assistant", blocks=[call])

    return FunctionAgent(tools=[brew], llm=MockFunctionCallingLLM(response_generator=answer))


def model(seconds: float, heard: Callable[[], None] = lambda: None) -> ScriptedChat:
    """A chat model that takes its time, and finds one fact in everything."""

    def answer(task: str, messages: Any) -> dict[str, Any]:
        heard()
        time.sleep(seconds)
        if task == "facts":
            return {"facts": ["Prefers oolong"]}
        facts = json.loads(messages[-1]["content"])["facts"]
        return {"memory": [{"id": "new", "text": fact, "event": "ADD"} for fact in facts]}

    return ScriptedChat(answer)


@pytest.mark.parametrize("background", [True, False])
async def test_no_model_and_no_store_is_called_on_the_loops_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    threads: dict[str, set[int]] = {"model": set(), "embedder": set(), "read": set(), "write": set(), "index": set()}

    def note(kind: str) -> None:
        threads[kind].add(threading.get_ident())

    def noted(owner: type, name: str, kind: str) -> None:
        inner = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            note(kind)
            return inner(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    noted(Database, "read", "read")
    noted(Database, "write", "write")
    noted(FaissIndex, "nearest", "index")
    noted(HashEmbedder, "embed", "embedder")
    chat = model(0.0, lambda: note("model"))
    core = await asyncio.to_thread(Memory, {"path": str(tmp_path)}, llm=chat, embedder=HashEmbedder())
    memory = Mem0Memory.from_defaults(core, user_id="maya", background=background)
    await an_agent().run("I prefer oolong. Make some.", memory=memory)
    assert await core.aflush(timeout=20)
    assert [item["memory"] for item in (await core.aget_all(user_id="maya"))["results"]] == ["Prefers oolong"]
    await core.aclose()
    assert all(threads.values())  # each was called,
    assert threading.get_ident() not in set().union(*threads.values())  # and none of them here


@dataclass
class Lag:
    """How late callbacks of a loop came, in seconds, at most; and how long its thread computed between two of them."""

    late: float = 0.0
    busy: float = 0.0


@contextmanager
def measured() -> Iterator[Lag]:
    """The lag of the running loop, of which a callback is due every millisecond."""
    loop = asyncio.get_running_loop()
    lag, computed = Lag(), time.thread_time()
    timer = loop.call_soon(lambda: None)

    def tick(due: float) -> None:
        nonlocal computed, timer
        before, computed = computed, time.thread_time()
        lag.late, lag.busy = max(lag.late, loop.time() - due), max(lag.busy, computed - before)
        due = loop.time() + 0.001
        timer = loop.call_at(due, tick, due)

    timer = loop.call_soon(tick, loop.time())
    try:
        yield lag
    finally:
        timer.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("background", [True, False])
async def test_the_loop_is_never_blocked_for_five_milliseconds(
    tmp_path: Path, background: bool, record_property: Callable[[str, object], None]
) -> None:
    """With a model that takes 300 ms.

    Other work on the machine delays the loop as well: so the lag of a loop that does nothing is measured beside it, the
    best of some runs counts, and only where the idle loop was in time.
    """
    runs: list[tuple[Lag, Lag]] = []
    for number in range(8):
        folder = {"path": str(tmp_path / str(number))}
        async with AsyncMemory(folder, llm=model(0.3), embedder=HashEmbedder()) as core:
            memory = Mem0Memory.from_defaults(core, user_id="maya", background=background)
            await memory.aget("What do I prefer?")  # opens the index
            with measured() as idle:
                await asyncio.sleep(0.7)
            with measured() as lag:
                await memory.aput(ChatMessage(role="user", content="I prefer oolong. Make some."))
                await memory.aget()
                await memory.aput(ChatMessage(role="assistant", content="Here it is."))
                assert await core.flush(timeout=20)
        runs.append((lag, idle))
        if lag.late < 0.005:
            break
    told = [f"{lag.late * 1000:.1f} ({idle.late * 1000:.1f} idle), busy {lag.busy * 1000:.1f}" for lag, idle in runs]
    record_property("loop lag in ms", told)
    assert min(lag.busy for lag, _ in runs) < 0.005, told
    in_time = [lag.late for lag, idle in runs if idle.late < 0.002]
    assert not in_time or min(in_time) < 0.005, told
