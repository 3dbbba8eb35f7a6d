"""Agents of other packages with our store and middleware: react agents, supervisors, swarms, and langmem's tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.runtime import get_runtime
from pydantic import BaseModel

from mem0_core import Memory
from mem0_langchain import MemoryMiddleware, memory_tools
from mem0_langchain.langgraph import Mem0Store, RecallNode, format_memory_prompt
from tests.frameworks.langchain.fakes import Chatbot, calls

supervisor = pytest.importorskip("langgraph_supervisor")
swarm = pytest.importorskip("langgraph_swarm")
langmem = pytest.importorskip("langmem")

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
MAYA: Any = {"configurable": {"user_id": "maya", "langgraph_user_id": "maya", "thread_id": "1"}}


def run(graph: Any, text: str, mode: Mode, config: Any = MAYA) -> Any:
    input = {"messages": [("user", text)]}
    return asyncio.run(graph.ainvoke(input, config)) if mode == "async" else graph.invoke(input, config)


def script(*replies: AIMessage | str) -> Chatbot:
    rest: Iterator[AIMessage | str] = iter(replies)
    return Chatbot(answer=lambda _: next(rest))


def log_of(memory: Memory) -> list[str]:
    assert memory.flush(timeout=60)
    return [str(message["content"]) for message in memory.context(None, user_id="maya", recent=100)["messages"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_react_agent_uses_the_tools_and_the_store(memory: Memory, mode: Mode) -> None:
    store = Mem0Store(memory)
    seen: list[Any] = []

    def note(topic: str) -> str:
        """Note a topic."""
        kept = get_runtime().store
        assert kept is not None
        kept.put(("notes", "maya"), topic, {"topic": topic})
        seen.append(kept)
        return "Noted."

    model = script(calls("save_memory", text="Maya keeps bees."), calls("note", topic="bees"), "Done.")
    agent = create_react_agent(model, [*memory_tools(memory), note], store=store)
    assert run(agent, "Note that I keep bees.", mode)["messages"][-1].text == "Done."
    assert seen == [store]
    assert [item.key for item in store.search(("notes",), query="bees")] == ["bees"]
    assert [each["memory"] for each in memory.get_all(user_id="maya")["results"]] == ["Maya keeps bees."]


@pytest.mark.parametrize("mode", MODES)
def test_a_react_agent_recalls_in_its_model_hook(memory: Memory, mode: Mode) -> None:
    memory.add("I drink green tea.", user_id="maya")
    recall = RecallNode(memory)

    def show(state: dict[str, Any]) -> dict[str, Any]:
        block = format_memory_prompt(recall.invoke(state)["memories"])
        return {"llm_input_messages": [SystemMessage(block), *state["messages"]]}

    model = script("Green tea.")
    run(create_react_agent(model, [], pre_model_hook=show), "Which tea do I drink?", mode)
    assert "I drink green tea." in model.systems[0]


@pytest.mark.parametrize("mode", MODES)
def test_agents_of_a_supervisor_recall_and_remember_the_user_once(memory: Memory, mode: Mode) -> None:
    memory.add("I live in Porto.", user_id="maya")
    workers = {name: script(f"The {name} is done.") for name in ("cook", "clerk")}
    agents = [create_agent(model, name=name, middleware=[MemoryMiddleware(memory)]) for name, model in workers.items()]
    boss = script(calls("transfer_to_cook"), calls("transfer_to_clerk"), "All is done.")
    graph = supervisor.create_supervisor(agents, model=boss).compile(
        checkpointer=InMemorySaver(), store=Mem0Store(memory)
    )
    run(graph, "I want a fish dish from where I live in Porto.", mode)
    for model in workers.values():
        assert "I live in Porto." in model.systems[-1]
    said = log_of(memory)[1:]
    assert said == ["I want a fish dish from where I live in Porto.", "The cook is done.", "The clerk is done."]


@pytest.mark.parametrize("mode", MODES)
def test_agents_of_a_swarm_recall_and_remember_the_user_once(memory: Memory, mode: Mode) -> None:
    memory.add("I live in Porto.", user_id="maya")
    models = {
        "cook": script(calls("transfer_to_clerk"), "Grilled sardines."),
        "clerk": script("The table is booked.", calls("transfer_to_cook")),
    }
    agents = [
        create_agent(
            model,
            tools=[swarm.create_handoff_tool(agent_name=other)],
            name=name,
            middleware=[MemoryMiddleware(memory)],
        )
        for (name, model), other in zip(models.items(), ("clerk", "cook"), strict=True)
    ]
    graph = swarm.create_swarm(agents, default_active_agent="cook").compile(
        checkpointer=InMemorySaver(), store=Mem0Store(memory)
    )
    run(graph, "Book a table where I live.", mode)
    run(graph, "Which dish do they have in Porto?", mode)
    assert any("I live in Porto." in system for system in models["clerk"].systems)
    assert log_of(memory)[1:] == [
        "Book a table where I live.",
        "The table is booked.",
        "Which dish do they have in Porto?",
        "Grilled sardines.",
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [create_agent, create_react_agent])
def test_tools_of_langmem_work_on_the_store(memory: Memory, mode: Mode, make: Any) -> None:
    namespace = ("memories", "{langgraph_user_id}")
    tools = [
        langmem.create_manage_memory_tool(namespace=namespace),
        langmem.create_search_memory_tool(namespace=namespace),
    ]
    answers = iter(["manage", "search", "update", "search", "delete", "search", "end"])
    found: list[str] = []
    store = Mem0Store(memory)

    def answer(messages: list[BaseMessage]) -> AIMessage | str:
        step = next(answers)
        found.append(str(messages[-1].content))
        items = store.search(("memories", "maya"))
        if step == "manage":
            return calls("manage_memory", content="Maya keeps bees.")
        if step == "update":
            return calls("manage_memory", content="Maya keeps goats.", action="update", id=items[0].key)
        if step == "delete":
            return calls("manage_memory", action="delete", id=items[0].key)
        return calls("search_memory", query="Which animals?") if step == "search" else "Done."

    run(make(Chatbot(answer=answer), tools, store=store), "Keep a note.", mode)
    assert ["bees" in found[2], "goats" in found[4], found[6]] == [True, True, "[]"]
    assert store.search(("memories",)) == []


class Profile(BaseModel):
    called: str
    age: int | None = None


@pytest.mark.parametrize("mode", MODES)
def test_structured_memories_of_langmem_are_kept_in_the_store(memory: Memory, mode: Mode) -> None:
    store, place = Mem0Store(memory), ("profiles", "maya")
    tool = langmem.create_manage_memory_tool(("profiles", "{langgraph_user_id}"), schema=Profile, store=store)

    def use(**arguments: Any) -> str:
        return str(asyncio.run(tool.ainvoke(arguments, MAYA)) if mode == "async" else tool.invoke(arguments, MAYA))

    key = use(content={"called": "Maya", "age": 60}).removeprefix("created memory ")
    use(content={"called": "Maya", "age": 61}, action="update", id=key)
    assert [(item.key, item.value["content"]["age"]) for item in store.search(place, query="Maya")] == [(key, 61)]


@pytest.mark.parametrize("mode", MODES)
def test_the_manager_of_langmem_extracts_structured_memories_into_the_store(memory: Memory, mode: Mode) -> None:
    store, place = Mem0Store(memory), ("profiles", "maya")
    model = Chatbot(answer=lambda _: calls("Profile", called="Maya", age=60))
    manager = langmem.create_memory_store_manager(
        model, schemas=[Profile], namespace=("profiles", "{langgraph_user_id}"), store=store
    )
    said = {"messages": [{"role": "user", "content": "I am Maya, and I am 60."}]}
    written = asyncio.run(manager.ainvoke(said, MAYA)) if mode == "async" else manager.invoke(said, MAYA)
    found = store.search(place, query="Maya")
    assert [item.key for item in found] == [put["key"] for put in written]
    assert found[0].value["kind"] == "Profile"
    assert found[0].value["content"] == {"called": "Maya", "age": 60}
