"""The MCP server, used by the client of the official SDK: in process, and as a command over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from mcp import Client, StdioServerParameters

from mem0_core import Memory
from mem0_core.server import ServerScope
from mem0_core.server.mcp import build_mcp_server
from tests.support import open_memory

Connect = Callable[[], Any]
MAYA = ServerScope(user_id="maya")


@pytest.fixture(params=["auto", "legacy"])
def connect(memory: Memory, request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Return a function that connects a client in process; it speaks the newest protocol, or the one before."""
    return lambda: Client(build_mcp_server(memory, MAYA), mode=request.param)


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    structured: dict[str, Any] = result.structured_content
    return structured


async def watch(client: Any, tool: str, **arguments: Any) -> list[Any]:
    """Return the progress of a call: its count, total and message."""
    seen: list[Any] = []

    async def note(*progress: Any) -> None:
        seen.append(progress)

    await client.call_tool(tool, arguments, progress_callback=note)
    return seen


async def call_wrongly(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    text: str = result.content[0].text
    return text


async def test_tools_have_descriptions_annotations_and_schemas(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["recall", "remember", "answer", "correct", "forget", "rate", "timeline"]
        hints = {
            name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint) for name, tool in tools.items()
        }
        assert hints == {
            "recall": (True, None),
            "remember": (None, False),
            "answer": (True, None),
            "correct": (None, True),
            "forget": (None, True),
            "rate": (None, False),
            "timeline": (True, None),
        }
        for tool in tools.values():
            assert tool.title
            assert 40 < len(tool.description) < 2_000
            assert tool.output_schema
            assert not {"user_id", "agent_id", "run_id"} & set(tool.input_schema["properties"])
            assert all("description" in one for one in tool.input_schema["properties"].values()), tool.name


async def test_a_fact_is_remembered_recalled_corrected_and_forgotten(connect: Connect, memory: Memory) -> None:
    async with connect() as client:
        added = await call(client, "remember", text="I live in Lisbon.")
        assert [change["event"] for change in added["changes"]] == ["ADD"]
        found = (await call(client, "recall", query="Where do I live?"))["memories"][0]
        assert (found["memory"], found["trust"]) == ("I live in Lisbon.", "assistant")

        corrected = await call(client, "correct", memory_id=found["id"], text="I live in Porto.")
        assert corrected["previous_memory"] == "I live in Lisbon."
        assert (await call(client, "answer", question="Where do I live?"))["answer"] == "Porto"
        assert await call(client, "rate", memory_id=found["id"], useful=True) == {
            "id": found["id"],
            "useful": 1,
            "useless": 0,
        }
        changes = (await call(client, "timeline", memory_id=found["id"]))["entries"]
        assert [entry["event"] for entry in changes] == ["ADD", "UPDATE"]

        assert (await call(client, "forget", memory_id=found["id"]))["memory"] == "I live in Porto."
        assert (await call(client, "recall", query="Where do I live?"))["memories"] == []
        assert memory.get_all(user_id="maya")["results"] == []


async def test_a_timeline_of_a_topic_shows_when_each_value_held(connect: Connect) -> None:
    async with connect() as client:
        await call(client, "remember", text="I live in Lisbon.", happened_at="2024-02-01")
        await call(client, "remember", text="I moved to Porto.", happened_at="2025-03-01")
        first, second = (await call(client, "timeline", query="Where do I live?"))["entries"]
        assert (first["memory"], first["until"][:10]) == ("I live in Lisbon.", "2025-03-01")
        assert (second["memory"], second["until"]) == ("I moved to Porto.", None)
        assert (await call(client, "answer", question="Where do I live?", as_of="2024-06-01"))["answer"] == "Lisbon"


async def test_memories_of_another_user_are_out_of_reach(connect: Connect, memory: Memory) -> None:
    async with connect() as client:
        secret = memory.add("My PIN is quagga.", user_id="ben")["results"][0]["id"]
        assert (await call(client, "recall", query="My PIN is quagga."))["memories"] == []
        for tool, arguments in (("correct", {"text": "none"}), ("forget", {}), ("timeline", {})):
            assert "no memory has the id" in await call_wrongly(client, tool, memory_id=secret, **arguments)
        assert "unexpected" in await call_wrongly(client, "recall", query="PIN", user_id="ben")
        with pytest.raises(Exception, match="no memory has the id"):
            await client.read_resource(f"memory://memories/{secret}")
        assert memory.get(secret, user_id="ben")


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("recall", {"query": " "}, "empty"),
        ("recall", {"query": "tea", "limit": 0}, "greater than or equal to 1, not 0; pass such a value, or"),
        ("recall", {"query": "tea", "limit": "many"}, "valid integer, not 'many'; pass such a value, or"),
        ("recall", {"query": "tea", "top_k": 3}, "'top_k' (top_k=3); did you mean 'limit'? (accepted: query, limit, "),
        ("recall", {"q": "tea"}, "'q' (q='tea'); did you mean 'query'? (accepted: query, limit, as_of)"),
        ("recall", {"query": "tea", "as_of": "yesterday-ish"}, "as_of"),
        ("recall", {}, "missing the required argument 'query'; pass it by name"),
        ("remember", {"text": 3}, "text must be a valid string, not 3; pass such a value"),
        ("remember", {"text": " "}, "empty"),
        ("correct", {"memory_id": "8a3f", "text": "x"}, "call recall"),
        ("timeline", {}, "exactly one"),
        ("timeline", {"query": "tea", "memory_id": "8a3f"}, "exactly one"),
        ("rembmer", {}, "there is no tool 'rembmer'; did you mean 'remember'? (accepted: recall, remember, "),
    ],
)
async def test_an_error_names_its_reason(connect: Connect, tool: str, arguments: dict[str, Any], reason: str) -> None:
    async with connect() as client:
        assert reason in await call_wrongly(client, tool, **arguments)


async def test_calls_build_the_schemas_of_the_tools_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    server, listed = build_mcp_server(memory, MAYA), []

    async def count_tools() -> Any:
        listed.append(await list_tools())
        return listed[-1]

    list_tools = server.list_tools
    monkeypatch.setattr(server, "list_tools", count_tools)
    async with Client(server) as client:
        await call(client, "recall", query="tea")
        lists_before = len(listed)  # one of the client, and one of the server
        await call(client, "recall", query="coffee")
    assert len(listed) == lists_before


async def test_a_tool_that_is_added_later_can_be_called(memory: Memory) -> None:
    server = build_mcp_server(memory, MAYA)
    async with Client(server) as client:
        await call(client, "recall", query="tea")
        server.add_tool(lambda: "3 cups", name="count_cups")
        assert (await client.call_tool("count_cups", {})).content[0].text == "3 cups"


class Reranker:
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [0.5 for _ in texts]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_stages_of_a_call_are_reported_as_progress(tmp_path: Path, mode: Any) -> None:
    def script(task: str, messages: Any) -> Any:
        return {"facts": ["Lives in Lisbon", "Owns a boat"]} if task == "facts" else {}

    with open_memory(tmp_path, script, reranker=Reranker()) as memory:
        async with Client(build_mcp_server(memory, MAYA), mode=mode) as client:
            added = await watch(client, "remember", text="I live in Lisbon and own a boat.")
            found = await watch(client, "recall", query="Where do I live?")
    assert [message for *_, message in added] == ["model: facts", "embedding", "searching", "writing", "done"]
    assert found == [(1, None, "embedding"), (2, None, "reranking"), (3, None, "done")]


async def test_a_connection_that_may_only_read_changes_nothing(memory: Memory) -> None:
    kept = memory.add("I drink tea.", user_id="maya")["results"][0]["id"]
    async with Client(build_mcp_server(memory, ServerScope(user_id="maya", is_read_only=True))) as client:
        assert (await call(client, "recall", query="tea"))["memories"]
        for tool, arguments in (
            ("remember", {"text": "I drink coffee."}),
            ("correct", {"memory_id": kept, "text": "I drink coffee."}),
            ("forget", {"memory_id": kept}),
        ):
            assert "may only read" in await call_wrongly(client, tool, **arguments)
    assert [one["memory"] for one in memory.get_all(user_id="maya")["results"]] == ["I drink tea."]


async def test_resources_and_prompts_show_the_memory(connect: Connect, memory: Memory) -> None:
    async with connect() as client:
        added = memory.add("My sister Anna works at Galp.", user_id="maya")["results"][0]["id"]
        profile = json.loads((await client.read_resource("memory://profile")).contents[0].text)
        assert [one["memory"] for one in profile["memories"]] == ["My sister Anna works at Galp."]
        one = json.loads((await client.read_resource(f"memory://memories/{added}")).contents[0].text)
        assert one["memory"]["id"] == added
        assert [entry["event"] for entry in one["history"]["entries"]] == ["ADD"]

        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert prompts == ["with_memory", "review_memories"]
        shown = await client.get_prompt("with_memory", {"question": "Where does Anna work?"})
        text = shown.messages[0].content.text
        assert "My sister Anna works at Galp." in text
        assert text.endswith("Where does Anna work?")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_the_client_gives_up_ends_and_the_connection_goes_on(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    search = memory.asearch

    async def wait_at_first(*arguments: Any, **named: Any) -> Any:
        if begun.is_set():
            return await search(*arguments, **named)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    memory.add("I drink tea.", user_id="maya")
    monkeypatch.setattr(memory, "asearch", wait_at_first)
    server = build_mcp_server(memory, ServerScope(user_id="maya", has_spaces=False))
    async with Client(server, mode=mode) as client:
        calling = asyncio.create_task(client.call_tool("recall", {"query": "tea"}))
        await asyncio.wait_for(begun.wait(), 60)
        calling.cancel()
        await asyncio.wait_for(ended.wait(), 60)
        assert [one["memory"] for one in (await call(client, "recall", query="tea"))["memories"]] == ["I drink tea."]


async def test_two_clients_share_one_memory_in_their_own_scopes(memory: Memory) -> None:
    ben = build_mcp_server(memory, ServerScope(user_id="ben"))
    async with Client(build_mcp_server(memory, MAYA)) as first, Client(ben) as second:
        await call(first, "remember", text="I live in Lisbon.")
        await call(second, "remember", text="I live in Oslo.")
        assert (await call(first, "answer", question="Where do I live?"))["answer"] == "Lisbon"
        assert (await call(second, "answer", question="Where do I live?"))["answer"] == "Oslo"


async def test_the_command_serves_a_client_over_stdio(tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mem0_core.cli", "--path", str(tmp_path), "mcp", "--user", "maya", "--no-spaces"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    async with Client(command) as client:
        await call(client, "remember", text="I live in Lisbon.")
        assert (await call(client, "answer", question="Where do I live?"))["answer"] == "Lisbon"
        assert [message for *_, message in await watch(client, "recall", query="My home")][-1] == "done"
        assert "no memory has the id" in await call_wrongly(client, "forget", memory_id="8a3f")
        assert "has no spaces" in await call_wrongly(client, "remember", text="I ski.", space="team")
    with Memory({"path": str(tmp_path)}) as memory:
        assert [one["memory"] for one in memory.get_all(user_id="maya")["results"]] == ["I live in Lisbon."]
