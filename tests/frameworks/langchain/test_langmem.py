"""Tools with langmem's signatures and arguments, over the memories of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from mem0_core import ConfigError, Memory, Scope, ScopeError
from mem0_langchain import MemoryMiddleware
from mem0_langchain.langmem import create_manage_memory_tool, create_search_memory_tool
from tests.frameworks.langchain.fakes import Chatbot, calls

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
NAMESPACE = ("memories", "{langgraph_user_id}")
UNKNOWN = "6f1c1f6e-7f9c-4b7a-9d39-3a7c0d3a1b11"


def user(name: str) -> Any:
    return {"configurable": {"langgraph_user_id": name}}


def use(tool: BaseTool, mode: Mode, config: Any = None, **arguments: Any) -> str:
    config = config or user("maya")
    return str(asyncio.run(tool.ainvoke(arguments, config)) if mode == "async" else tool.invoke(arguments, config))


def texts(memory: Memory, **ids: str) -> list[str]:
    return [each["memory"] for each in memory.get_all(**(ids or {"user_id": "maya"}))["results"]]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_a_memory_is_created_found_updated_and_deleted(memory: Memory, mode: Mode) -> None:
    manage = create_manage_memory_tool(NAMESPACE, memory=memory)
    search = create_search_memory_tool(NAMESPACE, memory=memory)
    created = use(manage, mode, content="Maya keeps bees.")
    id = created.removeprefix("created memory ")
    assert id in use(search, mode, query="bees")
    assert use(manage, mode, content="Maya keeps goats.", action="update", id=id) == f"updated memory {id}"
    assert "goats" in use(search, mode, query="Which animals does Maya keep?", limit=1)
    assert use(manage, mode, action="delete", id=id) == f"Deleted memory {id}"
    assert texts(memory) == []


class Profile(BaseModel):
    name: str
    age: int | None = None
    favorite_teas: list[str] = []


class Trip(TypedDict):
    city: str
    nights: int


@dataclass
class Pet:
    name: str
    kind: str


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("schema", "first", "second", "words"),
    [
        (Profile, {"name": "Maya", "age": 60}, {"name": "Maya", "favorite_teas": ["oolong"]}, "favorite teas"),
        (Trip, {"city": "Porto", "nights": 2}, {"city": "Oslo", "nights": 3}, "city: Oslo; nights: 3"),
        (Pet, {"name": "Bruno", "kind": "dog"}, {"name": "Bruno", "kind": "cat"}, "kind: cat"),
    ],
)
def test_a_memory_of_a_schema_is_kept_as_text_and_as_fields(
    memory: Memory, mode: Mode, schema: Any, first: dict[str, Any], second: dict[str, Any], words: str
) -> None:
    manage = create_manage_memory_tool(NAMESPACE, memory=memory, schema=schema)
    id = use(manage, mode, content=first).removeprefix("created memory ")
    kept = memory.get(id)
    assert kept is not None
    assert {key: kept["metadata"]["content"][key] for key in first} == first
    assert use(manage, mode, content=second, action="update", id=id) == f"updated memory {id}"
    changed = memory.get(id)
    assert changed is not None
    assert words in changed["memory"]
    assert {key: changed["metadata"]["content"][key] for key in second} == second
    assert words in use(create_search_memory_tool(NAMESPACE, memory=memory), mode, query=words)


def test_a_memory_that_does_not_fit_its_schema_is_refused(memory: Memory) -> None:
    manage = create_manage_memory_tool(NAMESPACE, memory=memory, schema=Profile)
    with pytest.raises(ValidationError, match="age"):
        manage.invoke({"content": {"name": "Maya", "age": "old"}}, user("maya"))
    assert use(manage, "sync").startswith("Error: the content of the memory to create is missing")
    assert texts(memory) == []


@pytest.mark.parametrize("mode", MODES)
def test_pages_and_filters(memory: Memory, mode: Mode) -> None:
    for number in range(4):
        memory.add(f"Maya likes tea number {number}.", user_id="maya", infer=False, metadata={"stars": number})
    search = create_search_memory_tool("{langgraph_user_id}", memory=memory)
    pages = [use(search, mode, query="tea", limit=2, offset=offset).splitlines() for offset in (0, 2, 4)]
    assert [len(page) for page in pages[:2]] == [2, 2]
    assert len({*pages[0], *pages[1]}) == 4
    assert pages[2] == ["Nothing is known about this."]
    assert "number 3" in use(search, mode, query="tea", filter={"stars": {"gte": 3}})
    assert use(search, mode, query="tea", filter={"stars": {"near": 3}}).startswith("Error: ")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"content": "Tea.", "id": UNKNOWN}, "Error: a new memory has no id yet"),
        ({"content": "Tea.", "action": "update"}, "Error: the id of the memory to update is missing"),
        ({"action": "delete"}, "Error: the id of the memory to delete is missing"),
        ({"action": "create", "content": "  "}, "Error: the content of the memory to create is missing"),
        ({"action": "delete", "id": UNKNOWN}, "There is no memory with the id"),
        ({"action": "update", "content": "Tea.", "id": UNKNOWN}, "There is no memory with the id"),
    ],
)
def test_the_model_is_told_what_it_cannot_do(
    memory: Memory, mode: Mode, arguments: dict[str, Any], answer: str
) -> None:
    assert use(create_manage_memory_tool(NAMESPACE, memory=memory), mode, **arguments).startswith(answer)
    assert texts(memory) == []


@pytest.mark.parametrize("mode", MODES)
def test_nobody_reaches_the_memories_of_somebody_else(memory: Memory, mode: Mode) -> None:
    manage = create_manage_memory_tool(NAMESPACE, memory=memory)
    search = create_search_memory_tool(NAMESPACE, memory=memory)
    id = use(manage, mode, content="Maya keeps bees.").removeprefix("created memory ")
    assert use(search, mode, user("ana"), query="bees") == "Nothing is known about this."
    assert "no memory" in use(manage, mode, user("ana"), action="delete", id=id)
    notes = create_search_memory_tool(("notes", "{langgraph_user_id}"), memory=memory)
    assert use(notes, mode, query="bees") == "Nothing is known about this."
    with pytest.raises(ScopeError, match="langgraph_user_id"):
        use(search, mode, {"configurable": {"user_id": "maya"}}, query="bees")


@pytest.mark.parametrize("first", [("{org}", "{user}"), ("{user}", "{org}")])
def test_labels_of_a_namespace_stay_apart(memory: Memory, first: tuple[str, str]) -> None:
    manage = create_manage_memory_tool(first, memory=memory)
    search = create_search_memory_tool(first, memory=memory)
    use(manage, "sync", {"configurable": {"org": "a/b", "user": "c"}}, content="Maya keeps bees.")
    for other in ({"org": "a", "user": "b/c"}, {"org": "a%2Fb", "user": "c"}):
        assert use(search, "sync", {"configurable": other}, query="bees") == "Nothing is known about this."


@pytest.mark.parametrize("mode", MODES)
def test_without_a_namespace_the_run_names_the_owner(memory: Memory, mode: Mode) -> None:
    manage = create_manage_memory_tool(memory=memory)
    use(manage, mode, {"configurable": {"user_id": "maya"}}, content="Maya keeps bees.")
    assert texts(memory) == ["Maya keeps bees."]


def test_permitted_actions_are_all_that_the_model_sees(memory: Memory) -> None:
    manage = create_manage_memory_tool(NAMESPACE, memory=memory, actions_permitted=["create", "delete"])
    assert manage.args["action"]["enum"] == ["create", "delete"]
    assert manage.description.startswith("Create or delete a memory")
    for wrong in ([], ["forget"]):
        with pytest.raises(ConfigError, match="actions_permitted"):
            create_manage_memory_tool(NAMESPACE, memory=memory, actions_permitted=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="namespace must be labels"):
        create_manage_memory_tool(("memories", ""), memory=memory)


@pytest.mark.parametrize("mode", MODES)
def test_the_middleware_recalls_what_the_tool_of_an_agent_created(memory: Memory, mode: Mode) -> None:
    answers: Iterator[AIMessage | str] = iter([calls("manage_memory", content="Maya keeps bees."), "Saved."])
    agent: Any = create_agent(
        Chatbot(answer=lambda _: next(answers)), tools=[create_manage_memory_tool(NAMESPACE, memory=memory)]
    )
    input: Any = {"messages": "Note it."}
    _ = asyncio.run(agent.ainvoke(input, user("maya"))) if mode == "async" else agent.invoke(input, user("maya"))
    model = Chatbot()
    recalling: Any = create_agent(
        model, middleware=[MemoryMiddleware(memory, remember=False, scope=Scope(user_id="maya"))]
    )
    recalling.invoke({"messages": [("user", "Who keeps bees?")]})
    assert "Maya keeps bees." in model.systems[0]
