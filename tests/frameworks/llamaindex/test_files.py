"""`memory_files_tool`: an agent's files are memories of one owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mem0_core import InputError, Memory, ScopeError
from mem0_llamaindex import memory_files_tool

Use = Callable[..., str]


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, core: Memory) -> Use:
    def called(user_id: str = "maya", **arguments: Any) -> str:
        tool = memory_files_tool(core, user_id=user_id)
        return (tool.call(**arguments) if request.param == "sync" else asyncio.run(tool.acall(**arguments))).content

    return called


def test_files_are_memories_of_the_owner(core: Memory, use: Use) -> None:
    assert use(command="create", path="/memories/a.md", file_text="Maya likes figs.") == (
        "File created successfully at: /memories/a.md"
    )
    assert core.get_all(user_id="maya")["results"][0]["memory"] == "Maya likes figs."
    assert use(command="view", path="/memories/a.md").endswith("     1\tMaya likes figs.")
    with pytest.raises(InputError, match=r"^The path /memories/a.md does not exist. Please provide a valid path.$"):
        use("ben", command="view", path="/memories/a.md")


def test_a_text_that_cannot_be_stored_is_mended(use: Use) -> None:
    use(command="create", path="/memories/a.md", file_text="A lone \ud800 surrogate")
    assert "A lone ? surrogate" in use(command="view", path="/memories/a.md")


def test_the_tool_needs_an_owner_and_has_a_schema(core: Memory) -> None:
    with pytest.raises(ScopeError):
        memory_files_tool(core)
    parameters = memory_files_tool(core, user_id="maya").metadata.get_parameters_dict()
    assert parameters["required"] == ["command"]
