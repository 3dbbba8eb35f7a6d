"""A server of the Model Context Protocol, with the names of its tools in a file.

Many servers take the owner from the connection, and not from an argument of a tool: each owner then has a connection.
Over HTTP one process serves all of them.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_conformance.api import VERBS, Record, Records, System, Texts

MEM0_CORE: Mapping[str, Any] = {
    "command": ["{python}", "-m", "mem0_core.cli", "serve", "--path={folder}", "--llm-backend=none", "--port={port}"],
    "url": "http://127.0.0.1:{port}/mcp",
    "key": {
        "command": ["{python}", "-m", "mem0_core.cli", "keys", "--path={folder}", "--create=kit", "--user={owner}"],
        "pattern": r"m0k_\S+",
    },
    "headers": {"Authorization": "Bearer {key}"},
    "capabilities": ["ranked", "owned_ids", "durable", "crash_safe"],
    "text": "memory",
    "add": {"tool": "remember", "arguments": {"text": "{text}"}, "records": "changes"},
    "search": {"tool": "recall", "arguments": {"query": "{text}", "limit": "{limit}"}, "records": "memories"},
    "get": {"resource": "memory://memories/{id}", "records": "memory"},
    "update": {"tool": "correct", "arguments": {"memory_id": "{id}", "text": "{text}"}},
    "delete": {"tool": "forget", "arguments": {"memory_id": "{id}"}},
    "history": {"tool": "timeline", "arguments": {"memory_id": "{id}"}, "records": "entries"},
}
PROTOCOL = "2025-06-18"
MAX_PROCESSES = 8  # a process may have an embedder
START_SECONDS = 60.0


class AnswerError(Exception):
    """The server answered a request with an error."""


class McpServer(System):
    """The server that the JSON file of `MEMORY_CONFORMANCE_MCP` describes, else `mem0-core serve`."""

    is_remote = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path = os.environ.get("MEMORY_CONFORMANCE_MCP")
        self._server = json.loads(Path(path).read_text(encoding="utf-8")) if path else MEM0_CORE
        self.capabilities = frozenset(self._server.get("capabilities", ()))
        self.lacks = frozenset(VERBS) - self._server.keys()
        parts = [self._server.get(part) for part in ("command", "url", "headers", "key")]
        self._is_shared = "{owner}" not in json.dumps(parts)  # only arguments of tools name the owner
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        self._program: _Program | None = None
        self._port = 0  # of the program

    def add(self, owner: str, text: str, **_: Any) -> str:
        """Add one text; its id is that of the first record in the answer."""
        return self._read_records("add", owner, text=text)[0].id

    def search(self, owner: str, query: str, *, limit: int = 10, **_: Any) -> Records:
        """Search the memories of a connection."""
        return self._read_records("search", owner, text=query, limit=limit)

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Get a memory; an error of the server is its way to say that there is none."""
        try:
            return next(iter(self._read_records("get", owner, id=memory_id)), None)
        except AnswerError:
            return None

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Replace the text of a memory."""
        self._call("update", owner, id=memory_id, text=text)

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete a memory."""
        self._call("delete", owner, id=memory_id)

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, **_: Any) -> Records:
        """Return the memories of a connection."""
        return self._read_records("list", owner)[offset:][:limit]

    def history(self, owner: str, memory_id: str) -> Texts:
        """Return the texts of a memory."""
        return [record.text for record in self._read_records("history", owner, id=memory_id)]

    def erase(self, owner: str) -> None:
        """Delete everything of a connection."""
        self._call("erase", owner)

    def close(self) -> None:
        """End all connections, and the server."""
        while self._connections:
            self._connections.popitem()[1].close()
        if self._program is not None:
            self._program.close()
            self._program = None

    def _read_records(self, verb: str, owner: str, **values: Any) -> Records:
        found = self._call(verb, owner, **values)
        for name in filter(None, self._server[verb].get("records", "").split(".")):
            found = found[name]
        id_name, text_name = self._server.get("id", "id"), self._server.get("text", "text")
        items = [found] if isinstance(found, Mapping) else found
        return [Record(str(item.get(id_name)), item[text_name]) for item in items if item.get(text_name) is not None]

    def _call(self, verb: str, owner: str, **values: Any) -> Any:
        """Send the request of a verb and return the value of its answer."""
        entry, values = self._server[verb], {"owner": owner, **values}
        connection = self._connect(owner)
        if "resource" in entry:
            answer = connection.request("resources/read", {"uri": fill(entry["resource"], values)})
            return parse(answer["contents"][0]["text"])
        arguments = {name: fill(value, values) for name, value in entry.get("arguments", {}).items()}
        answer = connection.request("tools/call", {"name": entry["tool"], "arguments": arguments})
        texts = [part["text"] for part in answer.get("content", ()) if part["type"] == "text"]
        if answer.get("isError"):
            raise AnswerError(" ".join(texts))
        return answer.get("structuredContent") or parse("".join(texts))

    def _connect(self, owner: str) -> _Connection:
        """Return the connection of an owner; too many processes end the oldest."""
        name = "" if self._is_shared else owner
        if name not in self._connections:
            if "url" not in self._server and len(self._connections) == MAX_PROCESSES:
                self._connections.popitem(last=False)[1].close()
            self._connections[name] = self._open(owner)
        self._connections.move_to_end(name)
        return self._connections[name]

    def _open(self, owner: str) -> _Connection:
        """Open the connection of an owner, and start the server if it has none."""
        server = self._server
        needs_program = "url" in server and "command" in server and self._program is None
        if needs_program:
            self._port = reserve_port()
        values = {"owner": owner, "folder": str(self.folder), "python": sys.executable, "port": str(self._port)}
        if "key" in server:  # before the start: a server may refuse to start without any key
            command = [fill(part, values) for part in server["key"]["command"]]
            shown = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True)
            values["key"] = _find_key(command, server["key"].get("pattern", r"\S+"), shown.stdout)
        if needs_program:
            self._program = _Program(server["command"], server["url"], values)
        connection: _Connection
        if "url" in server:
            headers = {name: fill(value, values) for name, value in server.get("headers", {}).items()}
            connection = _Http(fill(server["url"], values), headers)
        else:
            connection = _Stdio([fill(part, values) for part in server["command"]])
        try:
            client = {"name": "memory-conformance", "version": "1"}
            connection.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
            connection.send({"method": "notifications/initialized"})
        except BaseException:
            connection.close()
            raise
        return connection


def _find_key(command: list[str], pattern: str, shown: str) -> str:
    """Return the first text that a command has printed and that matches a pattern."""
    if not (found := re.findall(pattern, shown)):
        raise ValueError(f"key: {command[0]!r} printed no text that matches {pattern!r}")
    return str(found[0])


def reserve_port() -> int:
    """Return a port that a server can bind for the next minute, and that no other process receives by chance.

    A connection that the server's side closes first stays in the state TIME_WAIT. The system then gives its port to no
    process that asks for any free one. A server that names it binds it, with SO_REUSEADDR as is usual.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address: tuple[str, int] = server.getsockname()
        with socket.create_connection(address), server.accept()[0]:
            return address[1]


class _Program:
    """A server over HTTP, which ends with this process."""

    def __init__(self, command: list[str], url: str, values: Mapping[str, str]) -> None:
        guard = [sys.executable, str(Path(__file__).with_name("_guard.py"))]
        self._guard = subprocess.Popen([*guard, *(fill(part, values) for part in command)], stdin=subprocess.PIPE)
        address = urllib.parse.urlsplit(fill(url, values))
        deadline = time.monotonic() + START_SECONDS
        while self._guard.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection((address.hostname, address.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.close()
        raise ConnectionError(f"the server does not listen at {address.netloc}")

    def close(self) -> None:
        self._guard.communicate(b"end")


class _Connection:
    """JSON-RPC over a transport."""

    _last = 0

    def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result; an error of the server raises AnswerError."""
        self._last += 1
        for line in self.send({"id": self._last, "method": method, "params": params}):
            message = json.loads(line)
            if message.get("id") == self._last and "method" not in message:
                if "error" in message:
                    raise AnswerError(message["error"]["message"])
                return message["result"]
        raise ConnectionError(f"the server ended the connection before it answered {method}")

    def send(self, message: Mapping[str, Any]) -> Any:
        """Send a message and return the lines of JSON that come back."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection."""


class _Stdio(_Connection):
    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, message: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(encode(message) + b"\n")
        self._process.stdin.flush()
        return self._process.stdout

    def close(self) -> None:
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


class _Http(_Connection):
    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._headers = {**accepted, "MCP-Protocol-Version": PROTOCOL, **headers}

    def send(self, message: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(self._url, data=encode(message), headers=self._headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            if session := response.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            text = response.read().decode("utf-8")
            is_stream = response.headers.get_content_type() == "text/event-stream"
        lines = (line.removeprefix("data:") for line in text.split("\n") if line.startswith("data:"))
        return lines if is_stream else iter([text] if text else [])


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as UTF-8; a text with half a surrogate pair raises, as servers leave one unanswered."""
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its values; one that is nothing but a name becomes the value, with its type."""
    if not isinstance(template, str):
        return template
    if template[1:-1] in values and template == f"{{{template[1:-1]}}}":
        return values[template[1:-1]]
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template


def parse(text: str) -> Any:
    """Return the JSON of a text, or None if the text is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
