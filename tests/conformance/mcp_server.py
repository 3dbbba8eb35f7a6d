"""A small MCP server with names of its own, on standard input and output, or over HTTP.

The owner is an argument of its tools; over HTTP it is the owner of the bearer token.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any


def answer(notes: list[list[str]], tool: str, arguments: dict[str, Any]) -> Any:
    who = arguments["who"]
    if tool == "save_note":
        notes.append([who, arguments["content"]])
    if tool == "remove_note":
        notes[arguments["note"]] = ["", ""]
    words = str(arguments.get("words", "")).casefold().split()
    found = [
        {"key": number, "content": text}
        for number, (owner, text) in enumerate(notes)
        if owner == who and all(word in text.casefold() for word in words)
    ]
    return found[-1] if tool == "save_note" else found[: arguments.get("top")]


def respond(request: dict[str, Any], path: Path, bound: dict[str, str]) -> str:
    """Return the response to a request, as a line of JSON."""
    notes = json.loads(path.read_text()) if path.exists() else []
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"], "result": {}}
    if request["method"] == "tools/call":
        try:
            found = answer(notes, request["params"]["name"], {**request["params"]["arguments"], **bound})
            content = [{"type": "text", "text": json.dumps({"notes": found})}]
            response["result"] = {"content": content}
            path.write_text(json.dumps(notes))
        except (LookupError, TypeError) as error:
            response["result"] = {"isError": True, "content": [{"type": "text", "text": str(error)}]}
    return json.dumps(response) + "\n"


class JsonHandler(BaseHTTPRequestHandler):
    """Reads JSON and sends text, and logs nothing."""

    def read_json(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send_text(self, text: str, kind: str = "application/json", headers: Mapping[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(200)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def serve_http(path: Path, port: int) -> None:
    class Handler(JsonHandler):
        def do_POST(self) -> None:
            request = self.read_json()
            who = self.headers["Authorization"].removeprefix("Bearer key-of-")
            self.send_text(respond(request, path, {"who": who}) if "id" in request else "")

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main(folder: Path, port: str | None = None) -> None:
    path = folder / "notes.json"
    if port is not None:
        serve_http(path, int(port))
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            sys.stdout.write(respond(request, path, {}))
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
