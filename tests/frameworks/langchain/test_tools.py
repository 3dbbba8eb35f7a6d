"""Tools for a memory: what an agent does with them, and what it cannot do to others; LangChain's own suites."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from typing_extensions import TypedDict

from mem0_core import ArgumentError, AsyncMemory, Memory, Scope, ScopeError
from mem0_langchain import (
    DeleteMemoryTool,
    Mem0Retriever,
    MemoryHistoryTool,
    SaveMemoryTool,
    SearchMemoryTool,
    UpdateMemoryTool,
    memory_tools,
)
from tests.frameworks.langchain.fakes import Chatbot, calls
from tests.support import open_memory

ANA, BEN = {"configurable": {"user_id": "ana"}}, {"configurable": {"user_id": "ben"}}
NAMES = ["search_memory", "answer_question", "save_memory", "update_memory", "delete_memory", "memory_history"]


class _Standard:
    """What LangChain's suites are told: a tool of ana's, and arguments for it."""

    tool_class: type[BaseTool]
    arguments: dict[str, Any]

    @pytest.fixture(autouse=True)
    def _one_memory(self, tmp_path: Path) -> Iterator[None]:
        with open_memory(tmp_path) as self.memory:
            added = self.memory.add("I drink green tea.", user_id="ana")
            self.id = added["results"][0]["id"]
            yield

    @property
    def tool_constructor(self) -> type[BaseTool]:
        return self.tool_class

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "user_id": "ana"}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {name: self.id if value == "ID" else value for name, value in self.arguments.items()}


class _Search(_Standard):
    tool_class, arguments = SearchMemoryTool, {"query": "Which tea?"}


class _Save(_Standard):
    tool_class, arguments = SaveMemoryTool, {"text": "Ana sings."}


class _Update(_Standard):
    tool_class, arguments = UpdateMemoryTool, {"memory_id": "ID", "text": "I drink black tea."}


class _Delete(_Standard):
    tool_class, arguments = DeleteMemoryTool, {"memory_id": "ID"}


class _History(_Standard):
    tool_class, arguments = MemoryHistoryTool, {"memory_id": "ID"}


class TestSearchUnit(_Search, ToolsUnitTests): ...


class TestSearchIntegration(_Search, ToolsIntegrationTests): ...


class TestSaveUnit(_Save, ToolsUnitTests): ...


class TestSaveIntegration(_Save, ToolsIntegrationTests): ...


class TestUpdateUnit(_Update, ToolsUnitTests): ...


class TestUpdateIntegration(_Update, ToolsIntegrationTests): ...


class TestDeleteUnit(_Delete, ToolsUnitTests): ...


class TestDeleteIntegration(_Delete, ToolsIntegrationTests): ...


class TestHistoryUnit(_History, ToolsUnitTests): ...


class TestHistoryIntegration(_History, ToolsIntegrationTests): ...


# --- what they do -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tools(memory: Memory) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in memory_tools(memory)}


def call(tool: BaseTool, config: Any, mode: str = "sync", **arguments: Any) -> str:
    if mode == "sync":
        return str(tool.invoke(arguments, config))
    return str(asyncio.run(tool.ainvoke(arguments, config)))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_memory_is_saved_found_changed_looked_back_at_and_deleted(
    memory: Memory, tools: dict[str, BaseTool], mode: str
) -> None:
    assert list(tools) == NAMES
    saved = call(tools["save_memory"], ANA, mode, text="Ana lives in Lisbon.")
    (entry,) = memory.get_all(user_id="ana")["results"]
    id = entry["id"]
    assert id in saved
    assert id in call(tools["save_memory"], ANA, mode, text="ana lives in LISBON"), "known already"
    found = [json.loads(line) for line in call(tools["search_memory"], ANA, mode, query="home").splitlines()]
    assert [(line["id"], line["memory"]) for line in found] == [(id, "Ana lives in Lisbon.")]
    assert "now says" in call(tools["update_memory"], ANA, mode, memory_id=id, text="Ana lives in Porto.")
    rows = [json.loads(line) for line in call(tools["memory_history"], ANA, mode, memory_id=id).splitlines()]
    assert [(row["event"], row["memory"]) for row in rows] == [
        ("ADD", "Ana lives in Lisbon."),
        ("UPDATE", "Ana lives in Porto."),
    ]
    assert call(tools["delete_memory"], ANA, mode, memory_id=id) == f"Deleted: {id}."
    assert memory.get_all(user_id="ana")["results"] == []
    assert call(tools["search_memory"], ANA, mode, query="home") == "Nothing is known about this."


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_question_is_answered_with_the_value_that_holds(
    memory: Memory, tools: dict[str, BaseTool], mode: str
) -> None:
    for day, text in (("2022-01-01", "I live in Lisbon."), ("2024-05-01", "I moved to Oslo.")):
        memory.add(text, user_id="ana", timestamp=day)
    now = json.loads(call(tools["answer_question"], ANA, mode, question="Where do I live?"))
    assert (now["answer"], now["since"], now["memories"]) == ("Oslo", "2024-05-01", ["I moved to Oslo."])
    then = json.loads(call(tools["answer_question"], ANA, mode, question="Where did I live in 2023?"))
    assert (then["answer"], then["until"]) == ("Lisbon", "2024-05-01")
    assert json.loads(call(tools["answer_question"], BEN, mode, question="Where do I live?"))["answer"] is None
    assert "empty" in call(tools["answer_question"], ANA, mode, question=" ")


def test_an_id_of_somebody_else_is_an_id_that_does_not_exist(memory: Memory, tools: dict[str, BaseTool]) -> None:
    memory.add("Ben's PIN is 1234.", user_id="ben")
    memory.add("Ana sings.", user_id="ana", agent_id="butler")
    ((bens),) = [entry["id"] for entry in memory.get_all(user_id="ben")["results"]]
    arguments: dict[str, dict[str, Any]] = {
        "update_memory": {"text": "Ana's PIN is 1234."},
        "delete_memory": {},
        "memory_history": {},
    }
    for name, more in arguments.items():
        answers = [call(tools[name], ANA, memory_id=id, **more) for id in (bens, "no such id")]
        assert answers[0] == answers[1].replace("no such id", bens)
        assert "1234" not in answers[0].replace(bens, "")
    before = memory.get(bens)
    assert before is not None
    assert before["memory"] == "Ben's PIN is 1234."
    assert len(memory.history(bens)) == 1
    assert "PIN" not in call(tools["search_memory"], ANA, query="PIN")
    (anas,) = [entry["id"] for entry in memory.get_all(user_id="ana")["results"]]
    narrow = {"configurable": {"user_id": "ana", "agent_id": "other"}}
    assert "no memory" in call(tools["delete_memory"], narrow, memory_id=anas), "another agent of ana's"
    assert "Deleted" in call(tools["delete_memory"], ANA, memory_id=anas)


def test_no_argument_names_a_user_and_one_that_the_model_makes_up_does_nothing(tools: dict[str, BaseTool]) -> None:
    for tool in tools.values():
        assert set(tool.args) <= {"query", "question", "text", "memory_id"}
    call(tools["save_memory"], ANA, text="Ana sings.", user_id="ben")
    assert "sings" in call(tools["search_memory"], ANA, query="sings", user_id="ben", scope="*")
    assert "sings" not in call(tools["search_memory"], BEN, query="sings")


class _Unprintable:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("asynchronous", [False, True])
def test_arguments_that_are_no_json_are_an_error_of_the_library(tools: dict[str, BaseTool], asynchronous: bool) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    config: Any = ANA
    tool = tools["save_memory"]
    for given in (cycle, {"a": cycle}, [_Unprintable()]):
        with pytest.raises(ArgumentError, match="JSON"):
            asyncio.run(tool.ainvoke({"text": given}, config)) if asynchronous else tool.invoke({"text": given}, config)


def test_without_a_scope_nothing_is_done(memory: Memory, tools: dict[str, BaseTool]) -> None:
    for tool, arguments in zip(tools.values(), [{"query": "x"}, {"question": "x"}, {"text": "x"}], strict=False):
        with pytest.raises(ScopeError, match="no user_id, agent_id or run_id is given"):
            tool.invoke(arguments)
    assert memory.store.list_memories(None) == []


def test_what_cannot_be_done_is_told_to_the_model(memory: Memory, tools: dict[str, BaseTool]) -> None:
    assert "empty" in call(tools["search_memory"], ANA, query=" ")
    assert call(tools["save_memory"], ANA, text=" ").startswith("Not saved")
    for text in ("Ana sings.", "Ana dances."):
        call(tools["save_memory"], ANA, text=text)
    id = memory.get_all(user_id="ana")["results"][0]["id"]
    assert "says this already" in call(tools["update_memory"], ANA, memory_id=id, text="ana DANCES")
    assert call(tools["update_memory"], ANA, memory_id=id, text=" ").startswith("Not updated")
    assert "no memory" in call(tools["delete_memory"], ANA, memory_id="")


def test_ids_of_the_constructor_are_fixed(memory: Memory) -> None:
    (search, _, save, *_) = memory_tools(AsyncMemory(memory=memory), scope=Scope(agent_id="butler"))
    call(save, ANA, text="All guests get tea.")
    assert "guests" in call(search, BEN, query="guests")
    with pytest.raises(ScopeError, match="wildcard"):
        SearchMemoryTool(memory=memory, user_id="*")


class Context(TypedDict, total=False):
    user_id: str


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize("given", [{"config": ANA}, {"context": {"user_id": "ana"}}], ids=["configurable", "context"])
def test_an_agent_uses_them(memory: Memory, mode: str, given: dict[str, Any]) -> None:
    def answer(messages: Any) -> Any:
        last = messages[-1]
        if not isinstance(last, ToolMessage):
            return calls("save_memory", text="Ana sings.")
        return calls("search_memory", query="sings") if last.name == "save_memory" else str(last.content)

    agent: Any = create_agent(Chatbot(answer=answer), tools=memory_tools(memory), context_schema=Context)
    asked = {"messages": "Remember that I sing."}
    done = agent.invoke(asked, **given) if mode == "invoke" else asyncio.run(agent.ainvoke(asked, **given))
    assert json.loads(done["messages"][-1].text)["memory"] == "Ana sings."
    searched = done["messages"][-2]
    assert searched.artifact[0]["user_id"] == "ana"
    assert Mem0Retriever(memory=memory, user_id="ana").invoke("sings")[0].page_content == "Ana sings."


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_memory", {"query": " "}),
        ("answer_question", {"question": ""}),
        ("save_memory", {"text": " "}),
        ("save_memory", {"text": "\ud800"}),
        ("update_memory", {"memory_id": "unknown", "text": "I sing."}),
        ("update_memory", {"memory_id": "ID", "text": ""}),
        ("delete_memory", {"memory_id": "unknown"}),
        ("memory_history", {"memory_id": "unknown"}),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_refusal_has_an_artifact(memory: Memory, tool: str, arguments: dict[str, Any], asynchronous: bool) -> None:
    id = memory.add("I drink tea.", user_id="ana")["results"][0]["id"]
    arguments = {name: id if value == "ID" else value for name, value in arguments.items()}
    (chosen,) = [each for each in memory_tools(memory, user_id="ana") if each.name == tool]
    call: Any = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
    message = asyncio.run(chosen.ainvoke(call)) if asynchronous else chosen.invoke(call)
    assert message.artifact == [] or "error" in message.artifact
    assert message.content
