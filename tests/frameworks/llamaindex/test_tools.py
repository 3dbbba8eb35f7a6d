"""`memory_tools`: what an agent may do with a memory, and that it cannot leave its scope."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from mem0_core import ArgumentError, Memory, NotFoundError, ScopeError
from mem0_core.testing import HashEmbedder, ScriptedChat
from mem0_llamaindex import memory_tools

Use = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, core: Memory) -> Use:
    """Call a tool of Maya's, or of whoever else."""

    def called(tool: str, user_id: str = "maya", **arguments: Any) -> dict[str, Any]:
        (made,) = memory_tools(core, user_id=user_id, only=[tool])
        output = made.call(**arguments) if request.param == "sync" else asyncio.run(made.acall(**arguments))
        result: dict[str, Any] = json.loads(output.content)
        return result

    return called


def test_a_memory_is_saved_found_corrected_told_of_and_forgotten(core: Memory, use: Use) -> None:
    (saved,) = use("save_memory", text="Maya likes figs.")["changes"]
    assert (saved["memory"], saved["event"]) == ("Maya likes figs.", "ADD")
    (found,) = use("search_memory", query="What does Maya like?")["memories"]
    assert found["id"] == saved["id"]
    assert found.keys() == {"id", "memory", "from", "date", "score"}
    use("update_memory", memory_id=saved["id"], text="Maya likes plums.")
    assert [row["event"] for row in use("memory_history", memory_id=saved["id"])["history"]] == ["ADD", "UPDATE"]
    assert use("search_memory", query="plums")["memories"][0]["memory"] == "Maya likes plums."
    assert use("delete_memory", memory_id=saved["id"]) == {"deleted": saved["id"]}
    assert use("search_memory", query="plums")["memories"] == []
    with pytest.raises(NotFoundError):
        use("memory_history", memory_id=saved["id"])


def test_a_question_is_answered_with_the_value_that_holds(core: Memory, use: Use) -> None:
    for day, text in (("2022-01-01", "I live in Lisbon."), ("2024-05-01", "I moved to Oslo.")):
        core.add(text, user_id="maya", timestamp=day, infer=False)
    now = use("answer_question", question="Where do I live?")
    assert (now["answer"], now["since"][:10], [one["memory"] for one in now["memories"]]) == (
        "Oslo",
        "2024-05-01",
        ["I moved to Oslo."],
    )
    assert use("answer_question", user_id="ben", question="Where do I live?")["answer"] is None
    assert [one.get("until") for one in use("search_memory", query="Where do I live?")["memories"]] == [
        None,
        "2024-05-01",
    ]


@pytest.mark.parametrize("tool", ["update_memory", "delete_memory", "memory_history"])
def test_another_users_memory_is_as_if_it_did_not_exist(core: Memory, use: Use, tool: str) -> None:
    theirs = core.add("Ben's PIN is 7421.", user_id="ben")["results"][0]["id"]
    more = {"text": "Ben's PIN is 0000."} if tool == "update_memory" else {}
    with pytest.raises(NotFoundError) as foreign:
        use(tool, memory_id=theirs, **more)
    with pytest.raises(NotFoundError) as unknown:
        use(tool, memory_id="no-such-id", **more)
    assert str(foreign.value).replace(theirs, "X") == str(unknown.value).replace("no-such-id", "X")
    assert core.get(theirs)["memory"] == "Ben's PIN is 7421."  # type: ignore[index]
    assert use("search_memory", query="What is the PIN?") == {"memories": [], "relations": []}
    assert use("search_memory", user_id="ben", query="What is the PIN?")["memories"]


def test_a_run_of_the_same_user_is_a_scope_of_its_own(core: Memory) -> None:
    other = core.add("In the other run.", user_id="maya", run_id="2")["results"][0]["id"]
    tools = {tool.metadata.name: tool for tool in memory_tools(core, user_id="maya", run_id="1")}
    with pytest.raises(NotFoundError):
        tools["delete_memory"].call(memory_id=other)
    (wide,) = memory_tools(core, user_id="maya", only=["delete_memory"])  # which sees all runs of hers
    assert json.loads(wide.call(memory_id=other).content) == {"deleted": other}


def test_no_argument_of_a_tool_names_a_scope(core: Memory) -> None:
    tools = memory_tools(core, user_id="maya")
    names = ["search_memory", "answer_question", "save_memory", "update_memory", "delete_memory", "memory_history"]
    assert [tool.metadata.name for tool in tools] == names
    for tool in tools:
        schema = tool.metadata.to_openai_tool()["function"]["parameters"]
        assert set(schema["properties"]) <= {"query", "question", "text", "memory_id"}
        assert all(argument["description"] for argument in schema["properties"].values())
        assert not tool.requires_context
    with pytest.raises(TypeError):
        tools[0].call(query="PIN", user_id="ben")


def test_what_makes_no_sense_is_refused(core: Memory) -> None:
    with pytest.raises(ScopeError):
        memory_tools(core)
    with pytest.raises(ArgumentError, match=r"must be a mem0_core\.Memory"):
        memory_tools("memory", user_id="maya")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no tool 'drop'.*search_memory"):
        memory_tools(core, user_id="maya", only=["drop"])


def test_what_is_saved_is_weighed_against_what_is_known(tmp_path: Path) -> None:
    known: list[str] = []

    def weigh(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["Lives in Berlin"]}
        return {"memory": [{"id": "0", "text": "Lives in Berlin", "event": "UPDATE", "old_memory": "Lives in Porto"}]}

    with Memory({"path": str(tmp_path)}, llm=ScriptedChat(weigh), embedder=HashEmbedder()) as core:
        known += [change["id"] for change in core.add("Lives in Porto", user_id="maya", infer=False)["results"]]
        (save,) = memory_tools(core, user_id="maya", only=["save_memory"])
        assert json.loads(save.call(text="Maya lives in Berlin.").content)["changes"] == [
            {"id": known[0], "memory": "Lives in Berlin", "event": "UPDATE"}
        ]
        (save,) = memory_tools(core, user_id="maya", only=["save_memory"], infer=False)
        assert json.loads(save.call(text="Word for word.").content)["changes"][0]["memory"] == "Word for word."


async def test_an_agent_that_knows_anothers_id_gets_nowhere(core: Memory) -> None:
    theirs = core.add("Ben's PIN is 7421.", user_id="ben")["results"][0]["id"]
    told: list[str] = []
    calls = [
        ToolCallBlock(tool_call_id=tool, tool_name=tool, tool_kwargs=arguments)
        for tool, arguments in (
            ("search_memory", {"query": "What is Ben's PIN?", "user_id": "ben"}),
            ("search_memory", {"query": "What is Ben's PIN?"}),
            ("memory_history", {"memory_id": theirs}),
            ("update_memory", {"memory_id": theirs, "text": "Ben's PIN is 0000."}),
            ("delete_memory", {"memory_id": theirs}),
        )
    ]

    def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        if messages[-1].role == MessageRole.TOOL:
            told.extend(str(message.content) for message in messages if message.role == MessageRole.TOOL)
            return ChatMessage(role="assistant", content="I could not.")
        return ChatMessage(role="assistant", blocks=calls)

    llm = MockFunctionCallingLLM(response_generator=answer)
    await FunctionAgent(tools=list(memory_tools(core, user_id="maya")), llm=llm).run("What is Ben's PIN?")
    assert len(told) == 5
    assert "7421" not in "\n".join(told)
    assert [history["event"] for history in core.history(theirs)] == ["ADD"]
