"""Agents, graphs and stores cancelled after each call of the memory: nothing is lost, half written or stored twice."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from mem0_core import Memory, MemoryDict
from mem0_langchain import MemoryMiddleware
from mem0_langchain.langgraph import Mem0Store, RecallNode, RememberNode
from tests.frameworks.langchain.fakes import Chatbot
from tests.support import Canceller, cancel_everywhere, open_memory

FIRST, SECOND = "I drink green tea.", "I live in Porto."


@pytest.fixture
def canceller() -> Canceller:
    return Canceller()


@pytest.fixture
def memory(tmp_path: Path, canceller: Canceller) -> Iterator[Memory]:
    with open_memory(tmp_path, on_step=canceller) as opened:
        yield opened


class State(MessagesState):
    memories: list[MemoryDict]


def build_agent(memory: Memory, background: bool) -> Any:
    middleware = MemoryMiddleware(memory, background=background)
    return create_agent(Chatbot(), middleware=[middleware], checkpointer=InMemorySaver())


def build_graph(memory: Memory, background: bool) -> Any:
    graph = StateGraph(State)
    graph.add_node("recall", RecallNode(memory))
    graph.add_node("reply", lambda state: {"messages": AIMessage("Noted.")})
    graph.add_node("remember", RememberNode(memory, background=background))
    for one, other in itertools.pairwise(["__start__", "recall", "reply", "remember"]):
        graph.add_edge(one, other)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("build", [build_agent, build_graph])
def test_a_turn_cancelled_after_any_call_is_stored_once_when_the_thread_goes_on(
    memory: Memory, canceller: Canceller, build: Callable[[Memory, bool], Any], background: bool
) -> None:
    graph = build(memory, background)

    async def talk(calls: int) -> bool:
        run: Any = {"configurable": {"user_id": f"user {calls}", "thread_id": str(calls)}}
        cancelled = await canceller.run(graph.ainvoke({"messages": FIRST}, run), calls)
        if cancelled:
            await graph.ainvoke(None, run)
        await graph.ainvoke({"messages": SECOND}, run)
        return cancelled

    ended = asyncio.run(cancel_everywhere(talk))
    assert ended > 3
    assert memory.flush(timeout=120)
    for calls in range(1, ended + 1):
        known = [each["memory"] for each in memory.get_all(user_id=f"user {calls}")["results"]]
        assert sorted(text for text in known if text != "Noted.") == [FIRST, SECOND], calls
        said = memory.context(None, user_id=f"user {calls}", recent=100)["messages"]
        assert [message["content"] for message in said] == [FIRST, "Noted.", SECOND, "Noted."], calls


def test_an_add_cancelled_after_any_call_is_done_or_not_done_and_can_be_repeated(
    memory: Memory, canceller: Canceller
) -> None:
    async def add(calls: int) -> bool:
        said: Any = [{"role": "user", "content": FIRST, "id": "1"}, {"role": "user", "content": SECOND, "id": "2"}]
        cancelled = await canceller.run(memory.aadd(said, user_id=f"user {calls}"), calls)
        stored = (await memory.aget_all(user_id=f"user {calls}"))["results"]
        assert len(stored) in ((0, 2) if cancelled else (2,))
        await memory.aadd(said, user_id=f"user {calls}")
        assert len((await memory.aget_all(user_id=f"user {calls}"))["results"]) == 2
        return cancelled

    assert asyncio.run(cancel_everywhere(add)) > 3


@pytest.mark.parametrize("stop", ["embed", "commit"])
def test_a_put_cancelled_while_it_embeds_or_commits_is_whole_or_absent(
    memory: Memory, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Mem0Store(memory, fields=["text", "title"])
    place, old, new = ("notes", "maya"), {"text": "tea", "title": "old"}, {"text": "bees", "title": "new"}
    store.put(place, "note", old)
    owner: Any = memory.embedder if stop == "embed" else memory.store
    entered, go_on, left = threading.Event(), threading.Event(), threading.Event()
    whole = getattr(owner, stop)

    def wait(*args: Any, **kwargs: Any) -> Any:
        entered.set()
        assert go_on.wait(60)
        try:
            return whole(*args, **kwargs)
        finally:
            left.set()

    async def cancel() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(owner, stop, wait)
            put = asyncio.create_task(store.aput(place, "note", new))
            assert await asyncio.to_thread(entered.wait, 60)
            put.cancel()
            with pytest.raises(asyncio.CancelledError):
                await put
            go_on.set()
            assert await asyncio.to_thread(left.wait, 60)
        item = await store.aget(place, "note")
        assert item is not None
        assert item.value == (old if stop == "embed" else new)
        await store.aput(place, "other", new)
        assert {each.key for each in await store.asearch(place, query="bees")} == {"note", "other"}

    asyncio.run(cancel())
