"""The commands of Anthropic's memory tool: every result text as its reference implementation writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from mem0_core.views import MemoryFiles, MemoryToolHandler, ToolReply


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as opened:
        yield opened


@pytest.fixture
def handler(memory: Memory) -> MemoryToolHandler:
    return MemoryToolHandler(memory, user_id="maya")


def run(handler: MemoryToolHandler, command: str, path: str | None = None, **more: Any) -> str:
    """Return the text of a command that succeeds."""
    reply = handler.handle({"command": command, **({} if path is None else {"path": path}), **more})
    assert not reply.is_error, reply.text
    return reply.text


def fail(handler: MemoryToolHandler, command: str, path: object = None, **more: Any) -> str:
    """Return the text of a command that fails."""
    reply = handler.handle({"command": command, **({} if path is None else {"path": path}), **more})
    assert reply.is_error, reply.text
    return reply.text


def test_a_folder_is_listed_two_levels_deep_with_sizes(handler: MemoryToolHandler) -> None:
    heading = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert run(handler, "view", "/memories") == f"{heading}\n4K\t/memories"
    for path, text in (
        ("a.md", "twelve chars"),
        ("d/b.txt", "five!"),
        ("d/e/f.md", "x"),
        (".hidden/x", "x"),
        ("empty", ""),
        ("k", "x" * 4096),
        ("n", "ü" * 700),
    ):
        run(handler, "create", f"/memories/{path}", file_text=text)
    assert run(handler, "view", "/memories").split("\n") == [
        heading,
        "4K\t/memories",
        "12B\t/memories/a.md",
        "4K\t/memories/d/",
        "5B\t/memories/d/b.txt",
        "4K\t/memories/d/e/",
        "0B\t/memories/empty",
        "4K\t/memories/k",
        "1.4K\t/memories/n",
    ]
    assert run(handler, "view", "/memories/d").split("\n")[1:] == [
        "4K\t/memories/d",
        "5B\t/memories/d/b.txt",
        "4K\t/memories/d/e/",
        "1B\t/memories/d/e/f.md",
    ]


def test_a_file_is_shown_with_line_numbers(handler: MemoryToolHandler) -> None:
    heading = "Here's the content of /memories/a.md with line numbers:\n"
    assert run(handler, "create", "/memories/a.md", file_text="one\ntwo\n") == (
        "File created successfully at: /memories/a.md"
    )
    assert run(handler, "view", "/memories/a.md") == f"{heading}     1\tone\n     2\ttwo\n     3\t"
    assert run(handler, "view", "/memories/a.md", view_range=[2, -1]) == f"{heading}     2\ttwo\n     3\t"
    assert run(handler, "view", "/memories/a.md", view_range=[0, 1]) == f"{heading}     1\tone"
    assert run(handler, "view", "/memories/a.md", view_range=[9, 12]) == heading
    assert fail(handler, "view", "/memories/a.md", view_range=[1]).startswith("Invalid `view_range` parameter: [1].")


def test_create_does_not_overwrite(handler: MemoryToolHandler) -> None:
    run(handler, "create", "/memories/d/a.md", file_text="old")
    for path in ("/memories/d/a.md", "/memories/d", "/memories"):
        assert fail(handler, "create", path, file_text="new") == f"File {path} already exists"
    assert fail(handler, "create", "/memories/d/a.md/b.md", file_text="x") == (
        "The path /memories/d/a.md is not a directory."
    )


def test_str_replace_shows_two_lines_on_either_side(handler: MemoryToolHandler) -> None:
    run(handler, "create", "/memories/a.md", file_text="1\n2\n3\n4\nfive\n6\n7\n8")
    assert run(handler, "str_replace", "/memories/a.md", old_str="five", new_str="5\n5b") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     3\t3\n     4\t4\n     5\t5\n     6\t5b\n     7\t6"
    )
    assert fail(handler, "str_replace", "/memories/a.md", old_str="nine", new_str="9") == (
        "No replacement was performed, old_str `nine` did not appear verbatim in /memories/a.md."
    )
    assert fail(handler, "str_replace", "/memories/a.md", old_str="5", new_str="9") == (
        "No replacement was performed. Multiple occurrences of old_str `5` in lines: 5, 6. Please ensure it is unique"
    )
    run(handler, "str_replace", "/memories/a.md", old_str="\n8")  # without new_str, the text is removed
    assert run(handler, "view", "/memories/a.md", view_range=[8, -1]).endswith("     8\t7")


def test_insert_adds_lines_after_a_line(handler: MemoryToolHandler, memory: Memory) -> None:
    run(handler, "create", "/memories/a.md", file_text="b\nc")
    assert run(handler, "insert", "/memories/a.md", insert_line=0, insert_text="a\n") == (
        "The file /memories/a.md has been edited."
    )
    run(handler, "insert", "/memories/a.md", insert_line=3, insert_text="d")
    assert MemoryFiles(memory, user_id="maya").read("/a.md").text == "a\nb\nc\nd\n"
    for line in (-1, 99):
        assert fail(handler, "insert", "/memories/a.md", insert_line=line, insert_text="x") == (
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 4]."
        )


def test_delete_removes_files_and_folders(handler: MemoryToolHandler) -> None:
    run(handler, "create", "/memories/d/a.md", file_text="x")
    run(handler, "create", "/memories/d/b.md", file_text="y")
    assert run(handler, "delete", "/memories/d/a.md") == "Successfully deleted /memories/d/a.md"
    assert run(handler, "delete", "/memories/d") == "Successfully deleted /memories/d"
    assert fail(handler, "delete", "/memories/d") == "The path /memories/d does not exist"
    assert fail(handler, "delete", "/memories") == "Cannot delete the /memories directory itself"
    assert fail(handler, "delete", "/memories/") == "Cannot delete the /memories directory itself"


def test_rename_does_not_overwrite(handler: MemoryToolHandler) -> None:
    run(handler, "create", "/memories/a.md", file_text="x")
    run(handler, "create", "/memories/b.md", file_text="y")
    assert run(handler, "rename", old_path="/memories/a.md", new_path="/memories/d/c.md") == (
        "Successfully renamed /memories/a.md to /memories/d/c.md"
    )
    for old, new, text in (
        ("a.md", "z.md", "The path /memories/a.md does not exist"),
        ("d/c.md", "b.md", "The destination /memories/b.md already exists"),
        ("d", "d/e", "Cannot move a directory into itself: /memories/d/e"),
        ("", "z", "Cannot rename the /memories directory itself"),
    ):
        assert fail(handler, "rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}") == text


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
def test_a_missing_file_is_said(handler: MemoryToolHandler, command: str) -> None:
    more: Mapping[str, Any] = {"old_str": "a", "new_str": "b", "insert_line": 0, "insert_text": "x"}
    assert fail(handler, command, "/memories/no.md", **more) == (
        "The path /memories/no.md does not exist. Please provide a valid path."
    )


@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "delete", "rename"])
def test_no_command_leaves_the_folder(handler: MemoryToolHandler, memory: Memory, command: str) -> None:
    more = {"file_text": "x", "old_str": "a", "new_str": "b", "insert_line": 0, "insert_text": "x"}
    for path in ("/etc/passwd", "memories/a", "", "/memoriesX", "/memories../a", "\\memories\\a", "/Memories/a"):
        text = fail(handler, command, path, old_path=path, new_path="/memories/z", **more)
        assert text == f"Path must start with /memories, got: {path}"
    for path in ("/memories/../etc/passwd", "/memories/..", "/memories/a/../../b", "/memories//../x"):
        text = fail(handler, command, path, old_path=path, new_path="/memories/z", **more)
        assert text == f"Path {path} would escape /memories directory"
    assert memory.get_all(user_id="maya")["results"] == []


def test_malformed_input_is_answered_and_not_raised(handler: MemoryToolHandler) -> None:
    commands: list[dict[str, Any]] = [{}, {"command": "format"}, {"command": None}, {"command": ["view"]}]
    for command in commands:
        reply = handler.handle(command)
        assert reply.is_error
        assert reply.text.startswith("Unknown command: ")
    for name in ("view", "create", "str_replace", "insert", "delete"):
        assert fail(handler, name) == f"Invalid command {name}: the parameter `path` is missing."
        assert fail(handler, name, 7) == f"Invalid command {name}: the parameter `path` must be a string, not int."
    assert fail(handler, "insert", "/memories/a", insert_line="1") == (
        "Invalid command insert: the parameter `insert_line` must be an integer, not str."
    )
    assert "no path may have" in fail(handler, "create", "/memories/a\nb", file_text="x")
    assert "Unicode" in fail(handler, "create", "/memories/a", file_text="\ud800")


def test_refusals_of_limits_are_answered(tmp_path: Path) -> None:
    config = {"path": tmp_path / "memory", "limits": {"message_chars": 10}}
    with Memory(config, embedder=HashEmbedder()) as memory:
        handler = MemoryToolHandler(memory, user_id="maya")
        assert "limits.message_chars" in fail(handler, "create", "/memories/a", file_text="x" * 11)


async def test_commands_run_on_an_event_loop(handler: MemoryToolHandler) -> None:
    created = await handler.ahandle({"command": "create", "path": "/memories/a.md", "file_text": "x"})
    assert created == ToolReply("File created successfully at: /memories/a.md")
    assert (await handler.ahandle({"command": "view", "path": "/memories/b.md"})).is_error
