"""`Mem0Backend`: the files of a deep agent are memories of the run's owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from mem0_core import Memory, ScopeError
from mem0_langchain import MemoryMiddleware
from tests.frameworks.langchain.fakes import Chatbot, calls, system_text
from tests.support import open_memory

deepagents = pytest.importorskip("deepagents", reason="nox -s deepagents installs it")

from deepagents.backends import CompositeBackend, StateBackend, StoreBackend  # noqa: E402

from mem0_langchain.deepagents import Mem0Backend  # noqa: E402

ANA: Any = {"configurable": {"user_id": "ana", "thread_id": "1"}}
Use = Callable[..., Any]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, memory: Memory) -> Use:
    """Call a method of ana's backend, or of an owner who is named."""

    def called(method: str, *arguments: Any, user_id: str = "ana", **more: Any) -> Any:
        backend = Mem0Backend(memory, user_id=user_id)
        if request.param == "sync":
            return getattr(backend, method)(*arguments, **more)
        return asyncio.run(getattr(backend, f"a{method}")(*arguments, **more))

    return called


# --- The backend -------------------------------------------------------------------------------------------------


def test_a_file_is_written_read_edited_and_deleted(memory: Memory, use: Use) -> None:
    assert use("write", "/a/b.md", "one\ntwo\nthree\n").path == "/a/b.md"
    page = use("read", "/a/b.md", 1, 1)
    assert (page.file_data["content"], page.total_lines, page.start_line, page.next_offset) == ("two\n", 3, 2, 2)
    assert use("edit", "/a/b.md", "two", "2").occurrences == 1
    assert use("write", "/a/b.md", "new").error is None  # as the other backends do
    (stored,) = memory.get_all(user_id="ana")["results"]
    assert [row["event"] for row in memory.history(stored["id"])] == ["ADD", "UPDATE", "UPDATE"]
    assert use("delete", "/a").path == "/a"
    assert memory.get_all(user_id="ana")["results"] == []


def test_failures_are_results(use: Use) -> None:
    use("write", "/a/b.md", "one one")
    assert use("read", "/no.md").error == "File '/no.md' not found"
    assert use("edit", "/no.md", "a", "b").error == "Error: File '/no.md' not found"
    assert use("delete", "/no.md").error == "Error: File '/no.md' not found"
    assert "2 times" in use("edit", "/a/b.md", "one", "b").error
    assert use("edit", "/a/b.md", "one", "b", True).occurrences == 2
    for result in (use("write", "/../b.md", "x"), use("write", "/a", "x"), use("ls", "/.."), use("grep", "x", "/..")):
        assert result.error.startswith("Error: ")
    assert use("read", "/a/b.md", user_id="ben").error == "File '/a/b.md' not found"


def test_folders_are_listed_one_level_deep(use: Use) -> None:
    for path in ("/a.md", "/d/b.md", "/d/e/c.md", "/da.md"):
        use("write", path, path)
    entries = use("ls", "/").entries
    assert [(entry["path"], entry["is_dir"]) for entry in entries] == [
        ("/a.md", False),
        ("/d/", True),
        ("/da.md", False),
    ]
    assert [entry["path"] for entry in use("ls", "/d/").entries] == ["/d/b.md", "/d/e/"]
    assert entries[0]["size"] == 5
    assert entries[0]["modified_at"]
    assert use("ls", "/none").entries == []


def test_globs_match_as_in_the_other_backends(use: Use) -> None:
    for path in ("/a.md", "/d/b.md", "/d/e/c.txt"):
        use("write", path, path)
    found = {
        pattern: {match["path"] for match in use("glob", pattern, folder).matches}
        for pattern, folder in (("*.md", "/"), ("/*.md", "/"), ("**/*.txt", None), ("e/*.txt", "/d"), ("*.{py,c}", "/"))
    }
    assert found == {
        "*.md": {"/a.md", "/d/b.md"},
        "/*.md": {"/a.md"},
        "**/*.txt": {"/d/e/c.txt"},
        "e/*.txt": {"/d/e/c.txt"},
        "*.{py,c}": set(),
    }
    assert use("glob", "../*.md").error


def test_grep_finds_literal_text_and_then_meaning(use: Use, memory: Memory) -> None:
    use("write", "/food.md", "# Food\nNo coriander in the soup.\nTea (green) only.")
    use("write", "/d/other.txt", "Green tea (green) is best.")
    matches = use("grep", "(green)").matches
    assert matches[:2] == [
        {"path": "/d/other.txt", "line": 1, "text": "Green tea (green) is best."},
        {"path": "/food.md", "line": 3, "text": "Tea (green) only."},
    ]
    assert [match["path"] for match in use("grep", "(green)", glob="*.txt").matches] == ["/d/other.txt"]
    assert use("grep", "(green)", max_count=1).truncated
    (near,) = use("grep", "the soup without coriander", "/food.md").matches
    assert (near["line"], near["text"]) == (2, "No coriander in the soup.")
    assert use("grep", "quantum chromodynamics").matches == []
    assert Mem0Backend(memory, user_id="ana", grep_by_meaning=False).grep("soup without coriander").matches == []


def test_it_does_what_the_backend_of_deepagents_over_a_store_does(memory: Memory) -> None:
    ours = Mem0Backend(memory, user_id="ana", grep_by_meaning=False)
    theirs = StoreBackend(store=InMemoryStore(), namespace=lambda runtime: ("files",))

    def plain(result: Any) -> Any:
        """Return the fields of a result, its entries in one order, without times and sizes."""
        if isinstance(result, list):
            return [plain(part) for part in result]
        if isinstance(result, dict):
            return {
                name: plain(part) for name, part in result.items() if name not in ("modified_at", "created_at", "size")
            }
        fields = plain(vars(result)) if hasattr(result, "__dict__") else result
        for name in ("entries", "matches"):
            if isinstance(fields, dict) and fields.get(name):
                fields[name].sort(key=str)
        return fields

    def both(method: str, *calls: Any) -> None:
        for arguments in calls:
            positional, named = arguments if isinstance(arguments[-1], dict) else (arguments, {})
            results = [plain(getattr(backend, method)(*positional, **named)) for backend in (ours, theirs)]
            assert results[0] == results[1], (method, arguments)

    paths = ("/docs/a.md", "/docs/api/b.md", "/src/m.py", "/src/u/h.py", "/c.json", "/ü b.md", "/[id].md", "/x.tar.gz")
    both("write", *((path, f"content of {path}\nsecond hi\nthird") for path in paths), ("/empty.txt", ""))
    both("write", ("/docs/a.md", "hello store\nhi"))
    both("ls", *((path,) for path in ("/", "/src/", "/src", "/none/", "/docs/a.md", "/src/u")))
    patterns = ("*.md", "**/*.md", "*", "**", "/src/*.py", "src/**/*.py", "*.{md,py}", "[[]id].md", "?.md", "h.py")
    both("glob", *((pattern, path) for pattern in patterns for path in ("/", "/docs", "/src", "/none", None)))
    both(
        "grep", *((pattern, path) for pattern in ("hi", "content", "zz", "(", "") for path in (None, "/src", "/c.json"))
    )
    both("grep", *((("content",), {"glob": pattern}) for pattern in ("*.py", "**/*.md", "*.{md,py}", "none")))
    both("read", *(("/src/m.py", *page) for page in ((), (0, 1), (1, 1), (2, 9), (7, 9), (0, 0))))
    both("read", ("/empty.txt",), ("/none.md",))
    both("edit", ("/none", "a", "b"), ("/c.json", "zz", "b"), ("/c.json", "n", "b"), ("/c.json", "n", "b", True))
    both("edit", ("/empty.txt", "", "full"), ("/c.json", "", "x"), ("/c.json", "second", "second"))
    both("upload_files", ([("/u.md", b"up"), ("/src/m.py", b"new")],))
    both("download_files", (["/u.md", "/none", "/src/m.py"],))
    both("delete", ("/u.md",), ("/none",), ("/src",))
    both("ls", ("/",))


def test_files_are_uploaded_and_downloaded(use: Use) -> None:
    uploaded = use("upload_files", [("/a.md", "ü".encode()), ("/b.png", b"\xff\xfe"), ("/..", b"x")])
    assert [response.error for response in uploaded] == [
        None,
        "a memory holds text only: the file is not UTF-8",
        "invalid_path",
    ]
    found = use("download_files", ["/a.md", "/none.md", "/"])
    assert [(response.content, response.error) for response in found] == [
        ("ü".encode(), None),
        (None, "file_not_found"),
        (None, "is_directory"),
    ]


def test_a_run_without_an_owner_is_refused(memory: Memory) -> None:
    with pytest.raises(ScopeError):
        Mem0Backend(memory).ls("/")


# --- Deep agents -------------------------------------------------------------------------------------------------


def reply_in_turn(replies: Iterator[AIMessage], messages: list[BaseMessage]) -> AIMessage:
    return next(replies)


def deep_agent(store: Memory, *replies: AIMessage, **options: Any) -> tuple[Any, Chatbot]:
    model = Chatbot(answer=partial(reply_in_turn, iter(replies)))
    backend = CompositeBackend(default=StateBackend(), routes={"/memories/": Mem0Backend(store)})
    return deepagents.create_deep_agent(model, backend=backend, **options), model


def invoke(agent: Any, given: Any, mode: str) -> Any:
    return agent.invoke(given, ANA) if mode == "sync" else asyncio.run(agent.ainvoke(given, ANA))


def tool_results(state: Any) -> list[str]:
    return [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]


ASK = {"messages": [{"role": "user", "content": "Go on, I live in Porto."}]}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_files_under_memories_are_memories_of_the_runs_user(memory: Memory, mode: str) -> None:
    agent, _ = deep_agent(
        memory,
        calls("write_file", file_path="/memories/plan.md", content="Book the train."),
        calls("write_file", file_path="/scratch.md", content="Not a memory."),
        calls("edit_file", file_path="/memories/plan.md", old_string="train", new_string="night train"),
        calls("grep", pattern="night", path="/memories/", output_mode="content"),
        calls("ls", path="/memories/"),
        calls("read_file", file_path="/memories/plan.md"),
        AIMessage("Done."),
    )
    results = tool_results(invoke(agent, ASK, mode))
    assert [row["memory"] for row in memory.get_all(user_id="ana")["results"]] == ["Book the night train."]
    assert "/memories/plan.md" in results[3]
    assert "/memories/plan.md" in results[4]
    assert "Book the night train." in results[5]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_our_middleware_and_theirs_work_next_to_each_other(memory: Memory, mode: str) -> None:
    Mem0Backend(memory, user_id="ana").write("/profile.md", "Ana answers in Portuguese.")
    memory.add("Ana lives in Porto.", user_id="ana")
    agent, model = deep_agent(
        memory,
        AIMessage("Olá."),
        middleware=[MemoryMiddleware(memory)],
        memory=["/memories/profile.md", "/memories/none.md"],
    )
    invoke(agent, {"messages": [{"role": "user", "content": "Where does Ana live?"}]}, mode)
    shown = system_text(model.heard[0])
    assert "Ana answers in Portuguese." in shown
    assert "Ana lives in Porto." in shown


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_write_waits_for_approval(memory: Memory, mode: str) -> None:
    agent, _ = deep_agent(
        memory,
        calls("write_file", file_path="/memories/plan.md", content="Sell the flat."),
        AIMessage("Noted."),
        interrupt_on={"write_file": True},
        checkpointer=InMemorySaver(),
    )
    paused = invoke(agent, ASK, mode)
    assert "__interrupt__" in paused
    assert memory.get_all(user_id="ana")["results"] == []
    invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), mode)
    assert [row["memory"] for row in memory.get_all(user_id="ana")["results"]] == ["Sell the flat."]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_sub_agent_writes_memories_of_the_same_user(memory: Memory, mode: str) -> None:
    agent, _ = deep_agent(
        memory,
        calls("task", description="Note the plan.", subagent_type="general-purpose"),
        calls("write_file", file_path="/memories/plan.md", content="Rent a van."),
        AIMessage("Noted by the sub-agent."),
        AIMessage("Done."),
    )
    assert "Noted by the sub-agent." in tool_results(invoke(agent, ASK, mode))[0]
    assert Mem0Backend(memory, user_id="ana").read("/plan.md").file_data["content"] == "Rent a van."


def test_permissions_of_deepagents_hold_for_memories(memory: Memory) -> None:
    from deepagents import FilesystemPermission

    Mem0Backend(memory, user_id="ana").write("/secret/pin.md", "4711")
    agent, _ = deep_agent(
        memory,
        calls("read_file", file_path="/memories/secret/pin.md"),
        calls("glob", pattern="**/*.md", path="/memories/"),
        AIMessage("Done."),
        permissions=[FilesystemPermission(operations=["read", "write"], paths=["/memories/secret/**"], mode="deny")],
    )
    results = tool_results(agent.invoke(ASK, ANA))
    assert "permission denied" in results[0]
    assert "pin.md" not in results[1]
