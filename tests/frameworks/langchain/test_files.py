"""`MemoryFilesTool`: an agent's files are memories of the run's owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from mem0_core import Memory, ScopeError
from mem0_langchain import MemoryFilesTool
from tests.frameworks.langchain.fakes import Chatbot, calls
from tests.support import open_memory

ANA, BEN = {"configurable": {"user_id": "ana"}}, {"configurable": {"user_id": "ben"}}
Use = Callable[..., ToolMessage]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, memory: Memory) -> Use:
    tool = MemoryFilesTool(memory=memory)

    def called(config: Any, **arguments: Any) -> ToolMessage:
        call: Any = {"type": "tool_call", "id": "1", "name": "memory", "args": arguments}
        message = tool.invoke(call, config) if request.param == "sync" else asyncio.run(tool.ainvoke(call, config))
        assert isinstance(message, ToolMessage)
        return message

    return called


class _Standard:
    @pytest.fixture(autouse=True)
    def _one_memory(self, tmp_path: Path) -> Iterator[None]:
        with open_memory(tmp_path) as self.memory:
            yield

    @property
    def tool_constructor(self) -> type[BaseTool]:
        return MemoryFilesTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "user_id": "ana"}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"command": "view", "path": "/memories"}


class TestUnit(_Standard, ToolsUnitTests): ...


class TestIntegration(_Standard, ToolsIntegrationTests): ...


def test_files_belong_to_the_owner_of_the_run(memory: Memory, use: Use) -> None:
    created = use(ANA, command="create", path="/memories/a.md", file_text="Ana drinks tea.")
    assert (created.content, created.status) == ("File created successfully at: /memories/a.md", "success")
    assert memory.get_all(user_id="ana")["results"][0]["memory"] == "Ana drinks tea."
    assert use(ANA, command="rename", old_path="/memories/a.md", new_path="/memories/b.md").status == "success"
    assert use(ANA, command="insert", path="/memories/b.md", insert_line=0, insert_text="Top").status == "success"
    missing = use(BEN, command="view", path="/memories/b.md")
    assert missing.status == "error"
    assert missing.content == "The path /memories/b.md does not exist. Please provide a valid path."
    with pytest.raises(ScopeError):
        use({}, command="view", path="/memories")


def test_an_agent_reads_what_an_earlier_conversation_wrote(memory: Memory) -> None:
    write = calls("memory", command="create", path="/memories/plan.md", file_text="Book the train.")
    view = calls("memory", command="view", path="/memories/plan.md")
    for call, expected in ((write, "created successfully"), (view, "     1\tBook the train.")):
        replies = iter([call, AIMessage("Done.")])
        agent: Any = create_agent(Chatbot(answer=partial(_next_reply, replies)), tools=[MemoryFilesTool(memory=memory)])
        messages = agent.invoke({"messages": [("user", "Go on.")]}, ANA)["messages"]
        (result,) = (message for message in messages if isinstance(message, ToolMessage))
        assert expected in str(result.content)


def _next_reply(replies: Iterator[AIMessage], messages: list[BaseMessage]) -> AIMessage:
    return next(replies)
