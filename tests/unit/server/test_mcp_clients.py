"""The MCP server, used by the clients of LangChain and LlamaIndex over stdio."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.server.keys import KeyRing

QUESTION = "Where do I live?"


def command_args(folder: Path) -> list[str]:
    return ["-m", "mem0_core.cli", "--path", str(folder), "mcp", "--user", "maya"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def stored_texts(folder: Path) -> list[str]:
    with Memory({"path": str(folder)}) as memory:
        return [one["memory"] for one in memory.get_all(user_id="maya")["results"]]


async def test_tools_work_for_an_agent_of_langchain(tmp_path: Path) -> None:
    pytest.importorskip("langchain_mcp_adapters")
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    connection = {
        "command": sys.executable,
        "args": command_args(tmp_path),
        "env": environment(),
        "transport": "stdio",
    }
    client = MultiServerMCPClient({"memory": connection})  # type: ignore[dict-item, unused-ignore]
    async with client.session("memory") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        assert list(tools) == ["recall", "remember", "answer", "correct", "forget", "rate", "timeline"]

        async def call(name: str, **arguments: Any) -> Any:
            return await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})

        added = (await call("remember", text="I live in Lisbon.")).artifact["structured_content"]
        assert [change["event"] for change in added["changes"]] == ["ADD"]
        assert (await call("answer", question=QUESTION)).artifact["structured_content"]["answer"] == "Lisbon"
        both = await asyncio.gather(*(call("recall", query=QUESTION, limit=one) for one in (1, 2)))
        assert all("I live in Lisbon." in reply.text for reply in both)
        wrong = await call("forget", memory_id="8a3f")
        assert wrong.status == "error"
        assert "call recall to find ids" in str(wrong.content)
        wrong = await call("recall", query=3)
        assert "query must be a valid string, not 3; pass such a value" in str(wrong.content)
        stages: list[str | None] = []

        async def note(count: float, total: float | None, message: str | None) -> None:
            stages.append(message)

        await session.call_tool("recall", {"query": "My boat"}, progress_callback=note)
        assert (stages[0], stages[-1]) == ("embedding", "done")
        assert (await call("forget", memory_id=added["changes"][0]["id"])).status == "success"
    assert stored_texts(tmp_path) == []


async def test_a_server_gives_each_agent_of_langchain_the_scope_of_its_key(
    url: str, memory: Memory, keys: KeyRing
) -> None:
    pytest.importorskip("langchain_mcp_adapters")
    from langchain_mcp_adapters.client import MultiServerMCPClient

    async def answer(user: str, place: str) -> str:
        headers = {"Authorization": f"Bearer {keys.create('agent', user_id=user)[0]}"}
        connection = {"url": f"{url}/mcp", "headers": headers, "transport": "http"}
        client = MultiServerMCPClient({"memory": connection})  # type: ignore[dict-item, unused-ignore]
        tools = {tool.name: tool for tool in await client.get_tools()}
        await tools["remember"].ainvoke({"text": f"I live in {place}."})
        return str(await tools["answer"].ainvoke({"question": QUESTION}))

    maya, ben = await asyncio.gather(answer("maya", "Lisbon"), answer("ben", "Oslo"))
    assert ("Lisbon" in maya, "Oslo" in maya) == (True, False)
    assert ("Lisbon" in ben, "Oslo" in ben) == (False, True)


async def test_tools_work_for_an_agent_of_llamaindex(url: str, memory: Memory, keys: KeyRing) -> None:
    pytest.importorskip("llama_index.tools.mcp")
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    headers = {"Authorization": f"Bearer {keys.create('agent', user_id='maya')[0]}"}
    client = BasicMCPClient(f"{url}/mcp", headers=headers)
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client).to_tool_list_async()}
    assert list(tools) == ["recall", "remember", "answer", "correct", "forget", "rate", "timeline"]
    await tools["remember"].acall(text="I live in Lisbon.")
    assert "Lisbon" in (await tools["answer"].acall(question=QUESTION)).content
    wrong = await tools["forget"].acall(memory_id="8a3f")
    assert "call recall to find ids" in wrong.content
    assert [one["memory"] for one in memory.get_all(user_id="maya")["results"]] == ["I live in Lisbon."]


async def test_the_command_serves_an_agent_of_llamaindex(tmp_path: Path) -> None:
    pytest.importorskip("llama_index.tools.mcp")
    from llama_index.tools.mcp import BasicMCPClient

    client = BasicMCPClient(sys.executable, args=command_args(tmp_path), env=environment())
    added = await client.call_tool("remember", {"text": "I live in Lisbon."})
    assert "ADD" in str(added.content)
    assert stored_texts(tmp_path) == ["I live in Lisbon."]
