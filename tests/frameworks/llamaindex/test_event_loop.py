"""Remembering does not hold up the event loop. ``python -m benchmarks loop`` measures by how much it is late."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from mem0_core import AsyncMemory
from mem0_core.stores.sqlite.session import Database
from mem0_core.stores.vector.faiss import FaissIndex
from mem0_core.testing import HashEmbedder, ScriptedChat
from mem0_llamaindex import Mem0Memory

HANG_SECONDS = 60.0


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


def model(called: Callable[[], None]) -> ScriptedChat:
    """A chat model that finds one fact in everything."""

    def answer(task: str, messages: Any) -> dict[str, Any]:
        called()
        if task == "facts":
            return {"facts": ["Prefers oolong"]}
        facts = json.loads(messages[-1]["content"])["facts"]
        return {"memory": [{"id": "new", "text": fact, "event": "ADD"} for fact in facts]}

    return ScriptedChat(answer)


class LoopProbe:
    """Makes calls wait for the event loop, so that a loop that waits for them is found."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failures: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def check(self, kind: str) -> None:
        """Wait until the loop has run a callback; fail on the loop's own thread."""
        self.calls[kind] += 1
        if threading.get_ident() == self._thread:
            self.failures.append(f"{kind}: on the thread of the loop")
            return
        ran = threading.Event()
        self._loop.call_soon_threadsafe(ran.set)
        if not ran.wait(HANG_SECONDS):
            self.failures.append(f"{kind}: the loop waited for it")

    def attach(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, kind: str) -> None:
        """Check the loop at the start of each call of a method."""
        inner = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.check(kind)
            return inner(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("background", [True, False])
async def test_the_loop_runs_callbacks_during_each_call_of_a_model_store_or_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    probe = LoopProbe()
    probe.attach(monkeypatch, Database, "read", "read")
    probe.attach(monkeypatch, Database, "write", "write")
    probe.attach(monkeypatch, FaissIndex, "nearest", "index")
    probe.attach(monkeypatch, HashEmbedder, "embed", "embedder")
    chat = model(lambda: probe.check("model"))
    async with await asyncio.to_thread(AsyncMemory, {"path": str(tmp_path)}, llm=chat, embedder=HashEmbedder()) as core:
        memory = Mem0Memory.from_defaults(core, user_id="maya", background=background)
        await an_agent().run("I prefer oolong. Make some.", memory=memory)
        await memory.aput(ChatMessage(role="user", content="I still prefer oolong."))
        await memory.aget("Which tea?")
        assert await core.flush(timeout=HANG_SECONDS)
        assert [item["memory"] for item in (await core.get_all(user_id="maya"))["results"]] == ["Prefers oolong"]
    assert probe.calls.keys() == {"model", "embedder", "read", "write", "index"}
    assert probe.failures == []
