"""The command `hook`, with events and transcripts in the form of a coding assistant."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.cli import _hook, main
from mem0_core.views import Principal

Send = Callable[..., Any]


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Send:
    """Return a function that sends one event to the command, and returns its reply."""

    def run(event: Any, *options: str) -> Any:
        raw = event if isinstance(event, bytes) else json.dumps(event).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert main(["hook", "--user", "maya", "--path", str(tmp_path / "data"), *options]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def line(role: str, content: Any, number: int, **more: Any) -> str:
    message = {"role": role, "content": content}
    row = {"type": role, "uuid": f"m{number}", "timestamp": f"2026-03-0{number}T10:00:00Z", "message": message, **more}
    return json.dumps(row)


def write_transcript(file: Path) -> dict[str, Any]:
    """Write a session of two turns, and return the event at its end."""
    lines = [
        line("user", "I live in Lisbon.", 1),
        line("assistant", [{"type": "text", "text": "Nice."}], 2),
        line("user", [{"type": "text", "text": "My sister Anna works at Galp."}], 3),
        line("user", "And I drink tea.", 4),
        line("assistant", [{"type": "tool_use", "name": "ls", "input": {}}], 5),
        line("user", [{"type": "tool_result", "content": "I live in Nowhere."}], 6),
        line("user", "<command-name>/clear</command-name>", 7),
        line("user", "I live in Metaland.", 8, isMeta=True),
        '{"type": "summary"}',
        "{broken",
        line("assistant", [{"type": "text", "text": "Done."}], 9),
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return {"hook_event_name": "Stop", "session_id": "s1", "transcript_path": str(file)}


def test_a_turn_is_queued_and_recalled_at_the_next_prompt(send: Send, tmp_path: Path) -> None:
    event = write_transcript(tmp_path / "session.jsonl")
    assert send(event) == send(event) == {}  # the second time nothing is new
    with Memory({"path": str(tmp_path / "data")}) as memory:
        assert memory.flush()
        kept = [one["memory"] for one in memory.get_all(user_id="maya")["results"]]
        assert sorted(kept) == ["And I drink tea.", "My sister Anna works at Galp."]
    for field in ("prompt", "user_prompt"):
        reply = send({"hook_event_name": "UserPromptSubmit", field: "Where does Anna work?"})["hookSpecificOutput"]
        assert reply["hookEventName"] == "UserPromptSubmit"
        assert "My sister Anna works at Galp." in reply["additionalContext"]
    with Memory({"path": str(tmp_path / "data")}) as memory:
        assert memory.retract("session:s1", user_id="maya")["memories"] == 2


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{",
        b"[]",
        {},
        {"hook_event_name": "Notification"},
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": "UserPromptSubmit", "prompt": 5},
        {"hook_event_name": "Stop", "transcript_path": "/nowhere/session.jsonl"},
        {"hook_event_name": "Stop"},
    ],
)
def test_an_event_that_cannot_be_handled_changes_nothing(send: Send, event: Any) -> None:
    assert send(event) == {}


def test_an_unreachable_server_does_not_stop_the_assistant(send: Send) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "Where do I live?"}
    assert send(event, "--url", "http://127.0.0.1:9") == {}
    assert send(event, "--url", "file:///etc/passwd") == {}


def test_a_server_that_does_not_speak_http_is_named_without_the_password_of_its_url() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

        def answer() -> bytes:
            connection, _ = listening.accept()
            with connection:
                got = connection.recv(10_000)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            return got

        request, place = pool.submit(answer), f"127.0.0.1:{listening.getsockname()[1]}"
        server = _hook._Server(f"http://maya:secret@{place}")
        with pytest.raises(ConnectionError, match=f"^{place} gave no response in HTTP; check --url"):
            server.recall("Where do I live?", 100)
        assert f"Host: {place}\r\n".encode() in request.result()


def test_a_long_transcript_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hook, "MAX_TRANSCRIPT_BYTES", 400)
    file = tmp_path / "session.jsonl"
    lines = [line("user", f"Message {number} " + "x" * 100, number) for number in range(1, 9)]
    file.write_text("\n".join([*lines, line("user", "I live in Porto.", 9)]), encoding="utf-8")
    turn = list(_hook._read_last_turn(file))
    assert turn[-1]["content"] == "I live in Porto."
    assert len(turn) < 4


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """Yield the URL of a server that answers every request with a context, and the requests it got."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            key = self.headers["X-API-Key"]
            is_refused = key == "of an agent" and self.path.startswith("/v1/spaces/")
            status = 401 if key == "wrong" else 403 if is_refused else 200
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.path, self.headers["X-API-Key"], body))
            reply = json.dumps({"text": "I live in Lisbon."}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}", got
        http.shutdown()
        thread.join()


def test_a_running_server_is_asked(
    send: Send, server: tuple[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, got = server
    monkeypatch.setenv("MEM0_SERVER_KEY", "m0k_secret")
    monkeypatch.setenv("MEM0_SERVER_URL", url)
    reply = send({"hook_event_name": "UserPromptSubmit", "prompt": "Where do I live?"})
    assert reply["hookSpecificOutput"]["additionalContext"] == "I live in Lisbon."
    assert send(write_transcript(tmp_path / "session.jsonl")) == {}
    (recall, capture) = got
    assert recall[:2] == ("/v1/spaces/context", "m0k_secret")
    assert recall[2]["query"] == "Where do I live?"
    assert capture[0] == "/memories"
    assert [one["content"] for one in capture[2]["messages"]] == ["My sister Anna works at Galp.", "And I drink tea."]
    assert capture[2]["background"] is True
    assert not (tmp_path / "data").exists()
    for key in ("wrong", "m0k_secret\r\nX-Other: 1"):
        monkeypatch.setenv("MEM0_SERVER_KEY", key)
        assert send({"hook_event_name": "UserPromptSubmit", "prompt": "Where do I live?"}) == {}
    assert len(got) == 3, "no header was split"


def test_a_key_without_spaces_recalls_its_own_memories(
    send: Send, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, got = server
    monkeypatch.setenv("MEM0_SERVER_KEY", "of an agent")
    reply = send({"hook_event_name": "UserPromptSubmit", "prompt": "Where do I live?"}, "--url", url)
    assert reply["hookSpecificOutput"]["additionalContext"] == "I live in Lisbon."
    assert [path for path, _, _ in got] == ["/v1/spaces/context", "/v1/context"]


def test_memories_of_a_team_are_recalled_at_a_prompt(send: Send, tmp_path: Path) -> None:
    with Memory({"path": str(tmp_path / "data")}) as memory:
        ann = Principal(memory, "ann")
        ann.create_space("team")
        ann.set_member("team", "maya", "reader")
        ann.add("We deploy on Thursday.", space="team", infer=False)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "When do we deploy?"}
    assert "We deploy on Thursday." in send(event)["hookSpecificOutput"]["additionalContext"]
    assert send(event, "--agent", "helper") == {}


def test_asking_a_server_loads_no_part_of_the_library() -> None:
    script = (
        "import sys; from mem0_core.cli import main; main(['hook']);"
        "heavy = [name for name in ('numpy', 'pydantic', 'sqlite3', 'http', 'ssl', 'shutil') if name in sys.modules];"
        "ours = {name for name in sys.modules if name.startswith('mem0_core.')};"
        "print(heavy, sorted(ours - {'mem0_core.' + part for part in ('errors', 'cli', 'cli._errors', 'cli._hook')}),"
        " file=sys.stderr)"
    )
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "Where do I live?"})
    env = {**os.environ, "MEM0_SERVER_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", script], input=event, capture_output=True, text=True, check=True, env=env
    )
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("{}\n", "[] []")
