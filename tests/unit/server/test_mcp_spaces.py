"""Spaces over MCP: the user of a connection recalls and writes what a team shares, and names no other owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from mcp import Client

from mem0_core import Memory, Principal
from mem0_core.server import ServerScope
from mem0_core.server.mcp import build_mcp_server


def connect(memory: Memory, user: str, **options: Any) -> Any:
    return Client(build_mcp_server(memory, ServerScope(user_id=user, **options)))


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    structured: dict[str, Any] = result.structured_content
    return structured


async def call_wrongly(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    text: str = result.content[0].text
    return text


async def read(client: Any, address: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await client.read_resource(address)).contents[0].text)
    return found


@pytest.fixture
def team(memory: Memory) -> Principal:
    """Return the owner of the space "team", of which Bob is a writer and Cat is a reader."""
    ann = Principal(memory, "ann")
    ann.create_space("team")
    ann.set_member("team", "bob", "writer")
    ann.set_member("team", "cat", "reader")
    return ann


async def test_what_one_member_shares_another_recalls_with_its_space_and_its_author(
    memory: Memory, team: Principal
) -> None:
    async with connect(memory, "bob") as bob, connect(memory, "cat") as cat, connect(memory, "dan") as dan:
        shared = await call(bob, "remember", text="We deploy on Thursday.", space="team")
        assert shared["pending_write"] is None
        await call(bob, "remember", text="I deploy my garden robot on Monday.")
        await call(cat, "remember", text="I like to deploy in the morning.")

        found = (await call(cat, "recall", query="When do we deploy?"))["memories"]
        assert {one["memory"]: one["space"] for one in found} == {
            "We deploy on Thursday.": "team",
            "I like to deploy in the morning.": None,
        }
        (one,) = [one for one in found if one["space"] == "team"]
        assert (one["actor_id"], one["trust"]) == ("bob", "assistant")
        assert (await call(dan, "recall", query="When do we deploy?"))["memories"] == []
        entries = (await call(cat, "timeline", query="deploy"))["entries"]
        assert {entry["space"] for entry in entries} == {"team", None}
        prompt = await cat.get_prompt("with_memory", {"question": "When do we deploy?"})
        assert "team" in prompt.messages[0].content.text
        assert (await read(cat, f"memory://memories/{one['id']}"))["memory"]["space"] == "team"


async def test_an_answer_names_the_space_that_knows_it(memory: Memory, team: Principal) -> None:
    team.add("My sister Anna works at Galp.", space="team")
    async with connect(memory, "cat") as cat:
        answer = await call(cat, "answer", question="Where does Anna work?")
        assert (answer["answer"], answer["space"]) == ("Galp", "team")


async def test_a_write_that_waits_says_so_and_changes_nothing(memory: Memory, team: Principal) -> None:
    kept = team.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    team.set_approval("team", True)
    async with connect(memory, "bob") as bob, connect(memory, "ann") as ann:
        added = await call(bob, "remember", text="The release needs two reviewers.", space="team")
        changed = await call(bob, "correct", memory_id=kept, text="We deploy on Friday.")
        gone = await call(bob, "forget", memory_id=kept)
        waiting = [one["pending_write"] for one in (added, changed, gone)]
        assert waiting == [write["id"] for write in team.pending_writes("team")]
        assert added["changes"] == []
        (space,) = (await read(bob, "memory://spaces"))["spaces"]
        assert (space["role"], space["requires_approval"], space["pending_writes"]) == ("writer", True, 3)
        assert space["members"] == {"ann": "owner", "bob": "writer", "cat": "reader"}
        found = (await call(ann, "recall", query="release reviewers deploy"))["memories"]
        assert [one["memory"] for one in found] == ["We deploy on Thursday."]

        team.approve(waiting[0])
        found = (await call(ann, "recall", query="reviewers"))["memories"]
        (one,) = [one for one in found if "reviewers" in one["memory"]]
        assert (one["actor_id"], one["trust"]) == ("bob", "assistant")


async def test_a_connection_writes_to_no_space_beyond_the_role_of_its_user(memory: Memory, team: Principal) -> None:
    kept = team.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    async with connect(memory, "cat") as cat, connect(memory, "dan") as dan:
        assert "not writer" in await call_wrongly(cat, "remember", text="No.", space="team")
        assert "spaces to share with: none" in await call_wrongly(dan, "remember", text="No.", space="team")
        for tool, arguments in (("correct", {"text": "No."}), ("forget", {})):
            assert "not writer" in await call_wrongly(cat, tool, memory_id=kept, **arguments)
            assert "no memory has the id" in await call_wrongly(dan, tool, memory_id=kept, **arguments)
        assert "no memory has the id" in await call_wrongly(dan, "timeline", memory_id=kept)
        for name in ("mem0.internal:space/team", "team/", "", "ben"):
            assert await call_wrongly(dan, "remember", text="No.", space=name)
        assert (await read(dan, "memory://spaces"))["spaces"] == []
    async with connect(memory, "bob", is_read_only=True) as bob:
        assert "may only read" in await call_wrongly(bob, "remember", text="No.", space="team")
    assert [one["memory"] for one in team.get_all()["results"]] == ["We deploy on Thursday."]


@pytest.mark.parametrize("narrow", [{"has_spaces": False}, {"agent_id": "helper"}, {"run_id": "one"}])
async def test_a_connection_can_be_kept_to_its_own_memories(
    memory: Memory, team: Principal, narrow: dict[str, Any]
) -> None:
    shared = team.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    async with connect(memory, "bob", **narrow) as bob:
        assert (await call(bob, "recall", query="When do we deploy?"))["memories"] == []
        assert "has no spaces" in await call_wrongly(bob, "remember", text="No.", space="team")
        assert "no memory has the id" in await call_wrongly(bob, "forget", memory_id=shared)
        assert (await read(bob, "memory://spaces"))["spaces"] == []


async def test_a_removed_member_loses_the_space_at_once(memory: Memory, team: Principal) -> None:
    team.add("We deploy on Thursday.", space="team")
    async with connect(memory, "bob") as bob:
        assert (await call(bob, "recall", query="When do we deploy?"))["memories"]
        team.remove_member("team", "bob")
        assert (await call(bob, "recall", query="When do we deploy?"))["memories"] == []
