"""Recall and remember are spans of LlamaIndex's instrumentation, with events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage

from mem0_core import StoreError
from mem0_llamaindex import Mem0Memory, Mem0MemoryBlock
from mem0_llamaindex.events import (
    MemoryRecallEndEvent,
    MemoryRecallStartEvent,
    MemoryRememberEndEvent,
    MemoryRememberStartEvent,
)

from .conftest import Counted
from .events import heard
from .test_event_loop import an_agent

RECALL, REMEMBER = (MemoryRecallStartEvent, MemoryRecallEndEvent), (MemoryRememberStartEvent, MemoryRememberEndEvent)


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def turn(memory: Mem0Memory, mode: str) -> None:
    async def awaited() -> None:
        await memory.aput(user("What do I like?"))
        await memory.aget()
        await memory.aput(assistant("Figs."))

    if mode == "async":
        asyncio.run(awaited())
    else:
        memory.put(user("What do I like?"))
        memory.get()
        memory.put(assistant("Figs."))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("background", [True, False])
def test_a_turn_is_a_recall_and_a_remember(counted: Counted, mode: str, background: bool) -> None:
    counted.memory.add("I like figs.", user_id="maya")
    with heard() as log:
        turn(Mem0Memory.from_defaults(counted.memory, user_id="maya", background=background), mode)
    asked, told = log.of(*RECALL)
    assert asked.query == told.query == "What do I like?"
    assert asked.scope == told.scope == {"user_id": "maya"}
    assert [memory["memory"] for memory in told.memories] == ["I like figs."]
    assert told.tokens > 0
    said, done = log.of(*REMEMBER)
    assert [(one["role"], one["content"]) for one in said.messages] == [
        ("user", "What do I like?"),
        ("assistant", "Figs."),
    ]
    assert len({one["id"] for one in said.messages}) == 2
    assert (done.job_id is not None) is background
    assert bool(done.results) is not background
    way = "a" if mode == "async" else ""
    assert str(asked.span_id).startswith(f"ScopedMemory.{way}recall-")
    assert asked.span_id == told.span_id
    assert str(said.span_id).startswith(f"ScopedMemory.{way}remember-")
    assert log.span(said.span_id).duration is not None


async def test_in_an_agent_they_lie_within_its_own_spans(counted: Counted) -> None:
    with heard() as log:
        await an_agent().run("Make tea.", memory=Mem0Memory.from_defaults(counted.memory, user_id="maya"))
    events = log.of(*RECALL, *REMEMBER)
    assert [type(event) for event in events] == [*RECALL, *REMEMBER]
    for event in events:
        assert log.span(event.span_id).parent_id is not None


async def test_a_block_tells_of_them_too(counted: Counted) -> None:
    with heard() as log:
        block = Mem0MemoryBlock(counted.memory, user_id="maya")
        await block.aget([user("I like figs."), assistant("Noted."), user("What do I like?")], session_id="1")
    assert [type(event) for event in log.of(*RECALL, *REMEMBER)] == [*REMEMBER, *RECALL]


def test_one_that_fails_is_a_dropped_span(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise StoreError("full")

    monkeypatch.setattr(type(counted.memory._store.jobs), "enqueue", full)
    with heard() as log, pytest.raises(StoreError):
        turn(Mem0Memory.from_defaults(counted.memory, user_id="maya"), "sync")
    (said,) = log.of(*REMEMBER)  # it never came to an end
    assert said.span_id in {span.id_ for span in log.spans.dropped_spans}
