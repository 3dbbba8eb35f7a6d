"""The command `hook`: memory for a coding assistant that runs commands at its events.

Before a prompt it adds the relevant memories of the user and of their spaces to the context; after a turn it queues the
user's messages, as memories of the user alone. It reads the event as JSON on standard input, and fails open: an error
never stops the assistant. With the URL of a running server it imports only a small part of the standard library;
otherwise it opens the store itself, which takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

DEFAULT_MAX_TOKENS = 1_000

_MAX_EVENT_BYTES = 1_000_000
MAX_TRANSCRIPT_BYTES = 2_000_000  # of its end: one turn with the output of tools
_MAX_QUERY_CHARS = 4_000
_TIMEOUT_SECONDS = 5.0

_RECALL_EVENTS = ("UserPromptSubmit", "SessionStart")
_CAPTURE_EVENTS = ("Stop", "SessionEnd", "PreCompact")

# As numbers: `http.HTTPStatus` takes a millisecond to import.
_OK = 200
_WITHOUT_SPACES = (400, 403, 404, 501)


class _Backend(Protocol):
    """The two calls of a hook, on a server or on the store."""

    def recall(self, query: str | None, max_tokens: int) -> str:
        """Return the context for a query, or for the start of a session."""

    def capture(self, messages: list[dict[str, Any]], source: str) -> None:
        """Queue messages."""


def ask_server(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Handle the event on standard input with a running server.

    Returns:
        The reply, or None if no server is named or the arguments have options for something else.
    """
    url = os.environ.get("MEM0_SERVER_URL")
    if not arguments:  # the usual command, for which the parser would import a third of everything
        return run_hook(argparse.Namespace(url=url, max_tokens=DEFAULT_MAX_TOKENS)) if url else None
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--url", default=url)
    parser.add_argument("--max-tokens", type=int, default=DEFAULT_MAX_TOKENS)
    try:
        options, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return None
    return run_hook(options) if options.url and not rest else None


def run_hook(options: argparse.Namespace) -> dict[str, Any]:
    """Handle the event on standard input, and return the reply for standard output; empty after any error."""
    try:
        event = json.loads(sys.stdin.buffer.read(_MAX_EVENT_BYTES))
        return _handle(event, options)
    except Exception as error:  # noqa: BLE001 - memory must not stop an assistant
        print(f"mem0-core hook: {type(error).__name__}: {error}", file=sys.stderr)
        return {}


def _handle(event: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    name = event.get("hook_event_name")
    if name in _RECALL_EVENTS:
        query = event.get("prompt") or event.get("user_prompt")
        if name == "UserPromptSubmit" and not query:
            return {}
        text = _choose_backend(options).recall(query and query[:_MAX_QUERY_CHARS], options.max_tokens)
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}} if text else {}
    if name in _CAPTURE_EVENTS and event.get("transcript_path"):
        messages = list(_read_last_turn(Path(event["transcript_path"]).expanduser()))
        if messages:
            _choose_backend(options).capture(messages, f"session:{event.get('session_id', 'unknown')}")
    return {}


def _choose_backend(options: argparse.Namespace) -> _Backend:
    url = options.url or os.environ.get("MEM0_SERVER_URL")
    return _Server(url) if url else _Store(options)


class _RefusedError(ConnectionError):
    """The server has no spaces for the key, or refuses the request for another reason."""


class _Server:
    """A running `mem0-core serve`, with the key in $MEM0_SERVER_KEY."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        if self._url.scheme not in ("http", "https"):
            raise ValueError(f"--url must start with http:// or https://, not {url!r}")
        self._headers = {"Content-Type": "application/json", "X-API-Key": os.environ.get("MEM0_SERVER_KEY", "")}

    def recall(self, query: str | None, max_tokens: int) -> str:
        asked = {"query": query, "max_tokens": max_tokens, "recent": 0}
        try:
            return str(self._post("/v1/spaces/context", asked)["text"])
        except _RefusedError:  # a key without a user, or of an agent or a run; a store without spaces
            return str(self._post("/v1/context", asked)["text"])

    def capture(self, messages: list[dict[str, Any]], source: str) -> None:
        self._post("/memories", {"messages": messages, "source": source, "keep": "statements", "background": True})

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        send = _send_encrypted if self._url.scheme == "https" else _send
        status, reply = send(self._url, self._url.path.rstrip("/") + path, self._headers, json.dumps(body).encode())
        found: dict[str, Any] = json.loads(reply)
        if status != _OK:
            kind_of_error = _RefusedError if status in _WITHOUT_SPACES else ConnectionError
            raise kind_of_error(found.get("detail", status))
        return found


def _send_encrypted(url: SplitResult, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Send a request over HTTPS, and return the status and the body of its response."""
    from contextlib import closing
    from http.client import HTTPSConnection

    with closing(HTTPSConnection(url.netloc, timeout=_TIMEOUT_SECONDS)) as connection:
        connection.request("POST", path, body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()


def _send(url: SplitResult, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Do the same over HTTP, in version 1.0, whose responses end with the connection.

    The import of `http.client` takes as long as the rest of the command.
    """
    given = {"Host": url.netloc.rpartition("@")[2], "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    if not all(value.isprintable() for value in given.values()):
        raise ValueError("$MEM0_SERVER_KEY or the URL has a character that no header can hold")
    with socket.create_connection((url.hostname or "", url.port or 80), _TIMEOUT_SECONDS) as connection:
        connection.sendall(f"POST {path} HTTP/1.0\r\n{head}\r\n".encode() + body)
        with connection.makefile("rb") as reply:
            match reply.readline().split():
                case [_, code, *_] if code.isdigit():
                    status = int(code)
                case _:
                    raise ConnectionError(f"{given['Host']} gave no response in HTTP; check --url or $MEM0_SERVER_URL")
            while reply.readline().strip():
                pass
            return status, reply.read()


class _Store:
    """The store of the configuration; the next process with a memory on it works on the queue."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def recall(self, query: str | None, max_tokens: int) -> str:
        from mem0_core.views import Principal, has_spaces

        ids = self._find_ids()
        with self._open() as memory:
            if has_spaces(memory, **ids):
                principal = Principal(memory, ids["user_id"])
                return str(principal.context(query, max_tokens=max_tokens, recent=0)["text"])
            return str(memory.context(query, max_tokens=max_tokens, recent=0, **ids)["text"])

    def capture(self, messages: list[dict[str, Any]], source: str) -> None:
        with self._open() as memory:
            memory.add(messages, source=source, keep="statements", background=True, **self._find_ids())

    def _open(self) -> Any:
        from mem0_core.cli import load_config
        from mem0_core.memory import Memory

        config = load_config(self._options)
        return Memory(config.replace(background=config.background.replace(drain=0)))

    def _find_ids(self) -> dict[str, Any]:
        from mem0_core.cli._commands import own_ids

        return own_ids(self._options)


def _read_last_turn(transcript: Path) -> Iterator[dict[str, Any]]:
    """Yield the user's messages since the last reply of the assistant before them, from a file of JSON lines."""
    with transcript.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_TRANSCRIPT_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    if size > MAX_TRANSCRIPT_BYTES:
        del lines[0]  # a part of a line
    turn: list[dict[str, Any]] = []
    for line in reversed(lines):
        role, message = _parse_line(line)
        if message is not None:
            turn.append(message)
        elif role == "assistant" and turn:
            break
    yield from reversed(turn)


def _parse_line(line: str) -> tuple[str | None, dict[str, Any] | None]:
    """Return the role of a line, and its message if the user wrote it."""
    try:
        row = json.loads(line)
        said = row["message"]
        role, content = said["role"], said["content"]
    except (ValueError, KeyError, TypeError):
        return None, None
    if role != "user" or row.get("isMeta"):
        return role, None
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if isinstance(part, dict) and part.get("type") == "text")
    if not isinstance(content, str) or not content.strip() or content.startswith("<"):
        return None, None  # the output of a tool, or a command of the assistant
    more = {"id": row.get("uuid"), "timestamp": row.get("timestamp")}
    return role, {"role": "user", "content": content, **{name: value for name, value in more.items() if value}}
