"""An agent that keeps its memory on a REST server, which runs in a process of its own.

The agent needs only the standard library; any language with HTTP and JSON will do. Needs no key of a model and no
network: a small function replaces the chat model, and the data is stored in a temporary folder.

    pip install "mem0-core[server]"
    python examples/server_agent.py
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# mem0-minilm if its weights are installed, else the test embedder, which compares words only.
EMBEDDER = "local" if find_spec("mem0_models") else "hash"

COMMAND = [sys.executable, "-m", "mem0_core.cli"]


class MemoryServer:
    """Client of a server; the key determines the user."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def post(self, path: str, body: dict[str, Any], *, attempts: int = 3) -> Any:
        """Return the result of a request; a repeated one changes nothing twice."""
        headers = {"Content-Type": "application/json", "X-API-Key": self._key, "Idempotency-Key": uuid.uuid4().hex}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        for attempt in range(1, attempts + 1):
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                raise RuntimeError(json.load(error)["detail"]) from error
            except OSError:  # no response: perhaps the change was made, and perhaps it was not
                if attempt == attempts:
                    raise
                time.sleep(0.2)
        return None


def complete(context: str, question: str) -> str:
    """Answer like a chat model: with the memory that shares most words with the question."""
    words = set(question.casefold().strip("?").split())
    memories = [json.loads(line)["memory"] for line in context.splitlines() if line.startswith("{")]
    return max(memories, key=lambda text: len(words & set(text.casefold().split())), default="I do not know.")


def take_turn(memory: MemoryServer, text: str) -> str:
    """Answer a message with the memory's context, and store the message."""
    context = memory.post("/v1/context", {"query": text, "max_tokens": 500, "recent": 0})
    reply = complete(context["text"], text) if text.endswith("?") else "Noted."
    memory.post("/memories", {"messages": [{"role": "user", "content": text}], "keep": "statements"})
    return reply


@contextmanager
def serve(folder: Path) -> Iterator[MemoryServer]:
    """Start a server with a key for one user, and stop it in the end."""
    config = folder / "config.json"
    config.write_text(json.dumps({"path": str(folder / "data"), "embedder": {"provider": EMBEDDER}}), encoding="utf-8")
    options = ["--config", str(config)]
    created = subprocess.check_output([*COMMAND, *options, "--json", "keys", "--create", "agent", "--user", "maya"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([*COMMAND, *options, "serve", "--port", str(port)])
    try:
        wait_until_ready(f"http://127.0.0.1:{port}/readyz", server)
        yield MemoryServer(f"http://127.0.0.1:{port}", json.loads(created)[0]["key"])
    finally:
        server.terminate()
        server.wait()


def wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=10).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server ended before it was ready")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for conversation in (["I live in Lisbon.", "My sister Anna works at Galp."], ["Where does my sister work?"]):
            with serve(Path(folder)) as memory:  # the second conversation begins after a restart
                for text in conversation:
                    print(f"user:  {text}\nagent: {take_turn(memory, text)}")


if __name__ == "__main__":
    main()
