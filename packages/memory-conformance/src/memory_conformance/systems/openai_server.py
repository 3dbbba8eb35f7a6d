"""A loopback server with the embeddings and chat routes of OpenAI, for systems that accept nothing else."""

from __future__ import annotations

import base64
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_conformance.systems.embedding import embed


class OpenAIServer:
    """Serve hashed embeddings, and an empty JSON object as the reply of every chat, on a free port.

    Attributes:
        url: Base URL, with ``/v1``.
        requests: Number of requests so far.
    """

    def __init__(self) -> None:
        self.requests = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                """Answer one request."""
                owner.requests += 1
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = answer_embeddings(body) if self.path.endswith("/embeddings") else answer_chat()
                data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def answer_embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Embed the input of a request, as numbers or in base64 as asked."""
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    vectors: list[Any] = [embed(str(text)) for text in texts]
    if body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in vectors]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "hash", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def answer_chat() -> dict[str, Any]:
    """Reply with an empty JSON object."""
    message = {"role": "assistant", "content": "{}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "chat-0",
        "object": "chat.completion",
        "created": 0,
        "model": "echo",
        "choices": [choice],
        "usage": usage,
    }
