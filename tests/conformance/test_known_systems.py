"""Results of stores that are installed here: ours passes everything it declares."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest

from memory_conformance import load_checks, run_in_process
from memory_conformance.systems import llamaindex, mcp
from tests.conformance.mcp_server import JsonHandler

SUITES = {check.suite for check in load_checks().values()}
LONG = {"as_of", "concurrency", "cost", "erasure", "names", "paging", "ttl"}
"""Suites that add hundreds of memories, or wait for seconds."""

# Properties of LangGraph's store in memory, which docs/reference/conformance.md describes.
KNOWN_IN_MEMORY = {"reads.records_are_copies", "updates.an_update_keeps_the_time_of_creation"}


def run(spec: str, suites: set[str]) -> dict[str, str]:
    names = [check.name for check in load_checks().values() if check.suite in suites]
    return {result.check: result.detail for result in run_in_process(spec, names) if result.outcome == "fail"}


def open_history(folder: Path, owner: str) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder
    from mem0_langchain import Mem0ChatMessageHistory

    memory = Memory(path=folder, embedder=HashEmbedder())
    return Mem0ChatMessageHistory(memory, user_id="ana", run_id=owner, limit=10_000, infer=False, background=False)


def open_middleware(folder: Path, owner: str) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder
    from mem0_langchain import MemoryMiddleware

    memory = Memory(path=folder, embedder=HashEmbedder())
    return MemoryMiddleware(memory, user_id=owner, infer=False, background=False, threshold=0)


def open_leaking_middleware(folder: Path, owner: str) -> Any:
    return open_middleware(folder, "everybody")


def open_backend(folder: Path) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder
    from mem0_langchain.deepagents import Mem0Backend

    return Mem0Backend(Memory(path=folder, embedder=HashEmbedder()), user_id="ana")


def test_mem0_core_passes_all_it_declares() -> None:
    assert run("mem0-core", SUITES - LONG) == {}


@pytest.mark.slow
def test_mem0_core_passes_the_long_suites() -> None:
    assert run("mem0-core", LONG) == {}


def test_the_store_of_langgraph_in_memory_is_known() -> None:
    pytest.importorskip("langgraph.store.memory")
    suites = {"isolation", "reads", "idempotence", "updates", "erasure", "filters", "paging", "names", "unicode"}
    assert set(run("langgraph-memory", suites)) <= KNOWN_IN_MEMORY


@pytest.mark.parametrize("factory", [None, f"{__file__}:open_history"], ids=["in memory", "ours"])
def test_histories_of_langchain_pass(factory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if factory is not None:
        monkeypatch.setenv("MEMORY_CONFORMANCE_HISTORY", factory)
    assert run("langchain-history", {"isolation", "reads", "erasure", "interchange"}) == {}


@pytest.mark.parametrize("factory", [None, f"{__file__}:open_backend"], ids=["files", "ours"])
def test_backends_of_deepagents_pass(factory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deepagents")  # the session of this name has it
    if factory is not None:
        monkeypatch.setenv("MEMORY_CONFORMANCE_BACKEND", factory)
    assert run("deepagents", {"isolation", "reads", "updates", "erasure", "unicode"}) == {}


@pytest.mark.parametrize("name", ["open_middleware", "open_leaking_middleware"])
def test_middleware_of_langchain_shows_an_agent_the_texts_of_its_owner(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_CONFORMANCE_MIDDLEWARE", f"{__file__}:{name}")
    failed = run("langchain-middleware", {"isolation", "reads", "unicode"})
    leaks = {"isolation.searches_are_separate", "isolation.searches_of_similar_owners_are_separate"}
    assert leaks.isdisjoint(failed) if name == "open_middleware" else leaks <= failed.keys()
    assert name != "open_middleware" or failed == {}


NOTES = {
    "command": ["{python}", str(Path(__file__).with_name("mcp_server.py")), "{folder}"],
    "capabilities": ["durable"],
    "id": "key",
    "text": "content",
    "add": {"tool": "save_note", "arguments": {"who": "{owner}", "content": "{text}"}, "records": "notes"},
    "search": {
        "tool": "find_notes",
        "arguments": {"who": "{owner}", "words": "{text}", "top": "{limit}"},
        "records": "notes",
    },
    "list": {"tool": "find_notes", "arguments": {"who": "{owner}"}, "records": "notes"},
}


@pytest.mark.parametrize("who", ["{owner}", "everybody"])
def test_a_file_describes_the_tools_of_an_mcp_server(who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps(NOTES).replace("{owner}", who))
    monkeypatch.setenv("MEMORY_CONFORMANCE_MCP", str(file))
    failed = run("mcp", {"isolation", "reads", "paging", "names", "unicode"})
    assert failed == {} if who == "{owner}" else "isolation.searches_are_separate" in failed


def test_a_key_that_its_command_does_not_print_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.json"
    key = {"command": ["{python}", "-c", "print('none')"], "pattern": "key-of-.+"}
    file.write_text(json.dumps({**NOTES, "key": key}))
    monkeypatch.setenv("MEMORY_CONFORMANCE_MCP", str(file))
    with pytest.raises(ValueError, match=r"printed no text that matches 'key-of-\.\+'"):
        mcp.McpServer(tmp_path).add("ana", "I ski.")


def test_a_reserved_port_is_given_to_no_other_process_and_can_be_bound() -> None:
    port = mcp.reserve_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))  # without SO_REUSEADDR: whoever asks for any port is refused this one too
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


@pytest.mark.parametrize("who", ["{owner}", "everybody"])
def test_one_server_over_http_serves_the_keys_of_all_owners(
    who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_key = "import sys; print('Keep the key of port', int(sys.argv[2]), 'secret:', 'key-of-' + sys.argv[1])"
    server = {
        **json.loads(json.dumps(NOTES).replace('"who": "{owner}"', '"unused": ""')),
        "command": [*NOTES["command"], "{port}"],
        "url": "http://127.0.0.1:{port}/mcp",
        "key": {"command": ["{python}", "-c", show_key, who, "{port}"], "pattern": "key-of-.+"},
        "headers": {"Authorization": "Bearer {key}"},
    }
    file = tmp_path / "server.json"
    file.write_text(json.dumps(server))
    monkeypatch.setenv("MEMORY_CONFORMANCE_MCP", str(file))
    failed = run("mcp", {"isolation"})
    assert failed == {} if who == "{owner}" else "isolation.searches_are_separate" in failed


def test_a_server_dies_with_the_process_that_started_it() -> None:
    server = [sys.executable, "-c", "import sys, time; print('ready', file=sys.stderr, flush=True); time.sleep(60)"]
    guard = [sys.executable, str(Path(mcp.__file__).with_name("_guard.py")), *server]
    process = subprocess.Popen(guard, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline().strip() == b"ready"
    process.communicate()  # closes its standard input, as the death of this process would
    assert process.returncode != 0


@pytest.mark.parametrize("is_stream", [False, True], ids=["json", "events"])
def test_an_mcp_server_over_http_gets_its_headers(is_stream: bool) -> None:
    seen: list[Any] = []
    with serve_mcp(seen, is_stream=is_stream) as url:
        connection = mcp._Http(url, {"Authorization": "Bearer ana"})
        connection.request("initialize", {})
        assert connection.request("tools/call", {"name": "recall"}) == {"method": "tools/call"}
        with pytest.raises(mcp.AnswerError, match="no such method"):
            connection.request("fail", {})
    assert [headers["Authorization"] for headers in seen] == ["Bearer ana"] * 3
    assert [headers["Mcp-Session-Id"] for headers in seen] == [None, "s1", "s1"]


@contextmanager
def serve_mcp(seen: list[Any], *, is_stream: bool) -> Iterator[str]:
    """Serve answers that repeat the method, as JSON or as an event; give the connection a session."""

    class Handler(JsonHandler):
        def do_POST(self) -> None:
            seen.append(self.headers)
            request = self.read_json()
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"method": request["method"]}}
            if request["method"] == "fail":
                answer = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": "no such method"}}
            text = json.dumps(answer)
            kind = "text/event-stream" if is_stream else "application/json"
            self.send_text(f"event: message\ndata: {text}\n\n" if is_stream else text, kind, {"Mcp-Session-Id": "s1"})

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_mcp_server_of_mem0_core_passes() -> None:
    assert run("mcp", SUITES - {"cost"}) == {}


def test_messages_of_llamaindex_have_the_ids_that_their_additions_returned(tmp_path: Path) -> None:
    pytest.importorskip("llama_index.core.memory")
    system = llamaindex.LlamaIndexMemory(tmp_path)
    ids = [system.add("ana", "first"), system.add("ana", "second")]
    assert [record.id for record in system.list("ana")] == ids
