"""Memories as files: paths, texts, history and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, InputError, Memory
from mem0_core.testing import HashEmbedder
from mem0_core.views import FileAccessError, MemoryFiles


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as opened:
        yield opened


@pytest.fixture
def files(memory: Memory) -> MemoryFiles:
    return MemoryFiles(memory, user_id="maya")


def paths(files: MemoryFiles, folder: str = "/") -> list[str]:
    return [file.path for file in files.list_files(folder)]


def events(memory: Memory, memory_id: str) -> list[Any]:
    return [row["event"] for row in memory.history(memory_id)]


def test_a_written_file_is_a_memory_with_exactly_its_text(memory: Memory, files: MemoryFiles) -> None:
    text = "  Rents a flat in Porto.\n\n\tUntil May.\r\n"
    written = files.write("/home/flat.md", text)
    (stored,) = memory.get_all(user_id="maya")["results"]
    assert stored["memory"] == text == files.read("/home/flat.md").text
    assert stored["metadata"]["mem0_path"] == "/home/flat.md"
    assert stored["id"] == written.memory_id
    assert memory.search("Where is the flat?", user_id="maya")["results"][0]["id"] == written.memory_id


def test_a_written_file_is_no_message_of_the_conversation(memory: Memory, files: MemoryFiles) -> None:
    files.write("/profile.md", "Prefers short answers.")
    assert memory.context(None, user_id="maya", recent=10)["messages"] == []


def test_changes_of_a_file_are_changes_of_its_memory_with_history(memory: Memory, files: MemoryFiles) -> None:
    memory_id = files.write("/a.md", "Lives in Lisbon.").memory_id
    assert files.edit("/a.md", lambda text: text.replace("Lisbon", "Porto")).memory_id == memory_id
    assert files.rename("/a.md", "/homes/b.md") == ["/homes/b.md"]
    assert files.read("/homes/b.md").memory_id == memory_id
    assert files.delete("/homes") == ["/homes/b.md"]
    assert memory.get(memory_id) is None
    assert events(memory, memory_id) == ["ADD", "UPDATE", "DELETE"]  # texts only: a rename changes metadata


def test_a_file_is_only_overwritten_on_request(files: MemoryFiles) -> None:
    files.write("/a.md", "old")
    with pytest.raises(FileAccessError) as caught:
        files.write("/a.md", "new")
    assert caught.value.code == "exists"
    assert files.read("/a.md").text == "old"
    assert files.write("/a.md", "new", overwrite=True).text == "new"


@pytest.mark.parametrize("text", ["", "\n", "  \n\t", "one", "One!", "/b.md\n\nx"])
def test_empty_and_repeated_texts_are_files_of_their_own(files: MemoryFiles, text: str) -> None:
    files.write("/a.md", text)
    files.write("/b.md", text)
    assert files.read("/a.md").text == files.read("/b.md").text == text
    files.edit("/b.md", lambda old: f"{old} more")
    files.rename("/b.md", "/c.md")
    assert [file.text for file in files.list_files()] == [text, f"{text} more"]
    files.write("/c.md", text, overwrite=True)
    assert files.read("/c.md").text == text
    assert len(files.delete("/a.md") + files.delete("/c.md")) == 2


def test_memories_that_were_added_are_files_named_by_their_words(memory: Memory, files: MemoryFiles) -> None:
    memory.add("I can't stand coriander.", user_id="maya")
    (file,) = files.list_files()
    assert file.path.startswith("/facts/i-can-t-stand-coriander-")
    assert file.text == "I can't stand coriander."
    memory.update(file.memory_id, "I love coriander now.")
    assert files.read(file.path).text == "I love coriander now."  # the earlier name still leads to the memory
    edited = files.edit(file.path, lambda text: text.upper())
    assert (edited.path, edited.memory_id) == (file.path, file.memory_id)
    assert paths(files) == [file.path]


def test_a_known_fact_that_is_written_as_a_file_becomes_that_file(memory: Memory, files: MemoryFiles) -> None:
    (added,) = memory.add("I live in Porto.", user_id="maya")["results"]
    assert files.write("/home.md", "I live in Porto.").memory_id == added["id"]
    assert paths(files) == ["/home.md"]


def test_no_path_leaves_the_scope(memory: Memory, files: MemoryFiles) -> None:
    MemoryFiles(memory, user_id="ben").write("/secret.md", "Ben's secret.")
    for path in ("/../secret.md", "/..", "/a/../../secret.md", "/../ben/secret.md"):
        for use in (files.read, files.delete, lambda path: files.write(path, "x"), files.list_files):
            with pytest.raises(FileAccessError) as caught:
                use(path)
            assert caught.value.code == "outside"
    invalid: Any
    for invalid in (
        "secret.md",
        "",
        "C:\\secret.md",
        "/a\0b",
        "/a\nb",
        "/\ud800",
        "/" + "x" * 256,
        "/a" * 513,
        None,
        7,
    ):
        with pytest.raises(FileAccessError) as caught:
            files.write(invalid, "x")
        assert caught.value.code == "invalid_path"
    for path in ("/secret.md", "/%2e%2e/secret.md", "/..\\secret.md", "/ben/secret.md", "/..;/secret.md"):
        with pytest.raises(FileAccessError) as caught:
            files.read(path)
        assert caught.value.code == "not_found"
    assert paths(files) == []
    assert paths(MemoryFiles(memory, user_id="ben")) == ["/secret.md"]


def test_paths_are_normalized(files: MemoryFiles) -> None:
    files.write("//a/./b/../cafe\u0301.md", "x")
    assert paths(files) == ["/a/caf\u00e9.md"]
    assert files.read("/a/caf\u00e9.md/").text == "x"


def test_metadata_of_others_cannot_break_the_tree(memory: Memory, files: MemoryFiles) -> None:
    files.write("/a.md", "the file")
    for number, path in enumerate(["/a.md", "../../etc/passwd", "", "/", 7, "/x\n", "/ok/a.md"]):
        memory.add(f"Fact number {number}.", user_id="maya", metadata={"mem0_path": path})
    assert files.read("/a.md").text == "the file"
    assert files.read("/ok/a.md").text == "Fact number 6."
    assert len(paths(files, "/facts")) == 6


def test_files_and_folders_do_not_replace_each_other(files: MemoryFiles) -> None:
    files.write("/a/b.md", "x")
    for path, code in (("/a", "exists"), ("/a/b.md/c.md", "not_a_directory"), ("/", "exists")):
        with pytest.raises(FileAccessError) as caught:
            files.write(path, "y")
        assert caught.value.code == code
    for old, new, code in (("/a", "/a/c", "inside_itself"), ("/", "/z", "is_root"), ("/no", "/z", "not_found")):
        with pytest.raises(FileAccessError) as caught:
            files.rename(old, new)
        assert caught.value.code == code
    with pytest.raises(FileAccessError) as caught:
        files.read("/a")
    assert caught.value.code == "is_directory"


def test_a_folder_is_moved_with_its_files(files: MemoryFiles) -> None:
    for name in ("a/one.md", "a/b/two.md", "ab/three.md"):
        files.write(f"/{name}", name)
    assert files.rename("/a", "/z") == ["/z/b/two.md", "/z/one.md"]
    assert paths(files) == ["/ab/three.md", "/z/b/two.md", "/z/one.md"]
    assert files.delete("/z") == ["/z/b/two.md", "/z/one.md"]


def test_an_edit_is_repeated_on_the_text_of_another_writer(memory: Memory, files: MemoryFiles) -> None:
    file = files.write("/a.md", "1")
    seen: list[str] = []

    def edit(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            memory.update(file.memory_id, "2")
        return f"{text}+"

    assert files.edit("/a.md", edit).text == "2+"
    assert seen == ["1", "2"]


def test_a_wider_scope_has_the_files_of_narrower_ones(memory: Memory, files: MemoryFiles) -> None:
    run = MemoryFiles(memory, user_id="maya", run_id="r")
    run.write("/a.md", "of the run")
    assert files.read("/a.md").text == "of the run"
    with pytest.raises(FileAccessError):
        MemoryFiles(memory, user_id="ben").read("/a.md")
    memory.add("Own file.", user_id="maya", metadata={"mem0_path": "/a.md"})
    assert files.read("/a.md").text == "Own file."  # and the other one has a derived path
    assert len(paths(files)) == 2
    assert run.read("/a.md").text == "of the run"


def test_a_policy_holds_for_files(tmp_path: Path) -> None:
    def policy(text: str, scope: object) -> str | None:
        return None if "password" in text else text.replace("4711", "****")

    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder(), policy=policy) as memory:
        files = MemoryFiles(memory, user_id="maya")
        assert files.write("/pin.md", "PIN 4711").text == "PIN ****"
        with pytest.raises(InputError, match="policy"):
            files.write("/secret.md", "the password is x")
        with pytest.raises(InputError, match="policy"):
            files.edit("/pin.md", lambda text: "the password is x")
        assert [file.text for file in files.list_files()] == ["PIN ****"]


def test_expired_memories_are_no_files(memory: Memory, files: MemoryFiles) -> None:
    memory.add("Old.", user_id="maya", expiration_date="2020-01-01")
    assert files.list_files() == []
    assert files.write("/old.md", "Old.").text == "Old."


def test_search_finds_files_by_meaning_and_below_a_folder(files: MemoryFiles) -> None:
    files.write("/food/taste.md", "Maya can't stand coriander in soup.")
    files.write("/home.md", "The flat in Porto has a balcony.")
    assert [file.path for file in files.search("coriander soup")][:1] == ["/food/taste.md"]
    assert files.search("coriander soup", path="/home.md") == []


async def test_every_method_has_an_async_form(tmp_path: Path) -> None:
    async with AsyncMemory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
        files = MemoryFiles(memory, user_id="maya")
        await files.awrite("/a.md", "Likes green tea.")
        assert (await files.aedit("/a.md", str.upper)).text == "LIKES GREEN TEA."
        assert await files.arename("/a.md", "/b.md") == ["/b.md"]
        assert (await files.aread("/b.md")).text == "LIKES GREEN TEA."
        assert [file.path for file in await files.asearch("green tea")] == ["/b.md"]
        assert [file.path for file in await files.alist_files()] == ["/b.md"]
        assert await files.adelete("/b.md") == ["/b.md"]
