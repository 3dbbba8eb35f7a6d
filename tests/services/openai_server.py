"""A server for the OpenAI protocol on the loopback interface, with configurable failures.

::

    with OpenAIServer() as server:
        server.replies.append("hello")          # the next chat completion; a dict is a whole message
        server.refuse = {"json_schema"}         # 400 to requests that use one of these
        server.failures.append(500)             # statuses of the next answers, before anything else
        chat = OpenAIChat("m", base_url=server.base_url)
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Request:
    """A received request; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass
class OpenAIServer:
    """Serves ``/v1/chat/completions`` and ``/v1/embeddings`` while it is open.

    Attributes:
        replies: chat messages to come, as text or as a message dict; the last user message is echoed when empty.
        refuse: answered with 400: ``json_schema``, ``json_object``, ``tools``, ``dimensions``; and, as OpenAI does
            it, with the parameter named: ``temperature``, ``max_tokens``, ``top_p``.
        failures: a status (400 and above) or raw bytes (sent as JSON with status 200) for each of the next answers.
        error: what the body of a failure says.
        delay: seconds to wait before answering.
        dims: length of the embeddings (a request's ``dimensions`` wins).
        embedding: a function of the text that makes the embedding instead.
        shuffle: give embeddings last first, as the protocol allows: each carries its index.
        usage: whether completions count tokens, 11 in and 7 out.
        requests: what came, in order.
        most_at_once: how many requests waited for `delay` at one time.
    """

    replies: deque[str | dict[str, Any]] = field(default_factory=deque)
    refused_parameters: set[str] = field(default_factory=set)
    failures: deque[int | bytes] = field(default_factory=deque)
    error: Any = field(default_factory=lambda: {"message": "scripted failure"})
    delay: float = 0.0
    dims: int = 8
    embedding: Any = None
    shuffle: bool = False
    usage: bool = True
    requests: list[Request] = field(default_factory=list)
    max_concurrent: int = 0

    def __enter__(self) -> OpenAIServer:
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._waiting = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def bodies(self, path: str = "/v1/chat/completions") -> list[Mapping[str, Any]]:
        return [request.body for request in self.requests if request.path == path]

    def answer(self, request: Request) -> tuple[int, bytes]:
        with self._lock:
            self.requests.append(request)
            failure = self.failures.popleft() if self.failures else None
        if self.delay:
            self._delay_answer()
        if isinstance(failure, bytes):
            return 200, failure
        if failure is not None:
            return failure, _to_json({"error": self.error})
        if refusal := next(self._iter_refusals(request.body), None):
            return 400, _to_json({"error": refusal})
        if request.path == "/v1/chat/completions":
            return 200, _to_json(self._completion(request.body))
        if request.path == "/v1/embeddings":
            return 200, _to_json(self._embeddings(request.body))
        return 404, _to_json({"error": {"message": f"no such path: {request.path}"}})

    def _delay_answer(self) -> None:
        with self._lock:
            self._waiting += 1
            self.max_concurrent = max(self.max_concurrent, self._waiting)
        self._closing.wait(self.delay)
        with self._lock:
            self._waiting -= 1

    def _iter_refusals(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        form = body.get("response_format", {}).get("type")
        if form in self.refused_parameters:
            yield {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}
        for part in ("tools", "dimensions"):
            if part in body and part in self.refused_parameters:
                yield {"message": f"this model does not support {part}", "type": "api_error"}
        for option in ("temperature", "max_tokens", "top_p"):
            if option in body and option in self.refused_parameters:
                yield {"message": f"Unsupported value: {option}", "param": option, "code": "unsupported_value"}

    def _completion(self, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            reply: Any = self.replies.popleft() if self.replies else body["messages"][-1]["content"]
        message = {"role": "assistant", "content": reply} if isinstance(reply, str) else {"role": "assistant", **reply}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            **({"usage": usage} if self.usage else {}),
        }

    def _embeddings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        dims = body.get("dimensions", self.dims)
        make = self.embedding or (lambda text: [float(len(text) + 1), *(3.0 for _ in range(dims - 1))])
        data = [{"object": "embedding", "index": at, "embedding": make(text)} for at, text in enumerate(body["input"])]
        if self.shuffle:
            data.reverse()
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _to_json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _build_handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = server.answer(
                Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("retry-after-ms", "1")  # clients that retry shall not make the tests wait
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # the client gave up waiting

        def log_message(self, format: str, *args: Any) -> None:
            """Be quiet."""

    return Handler
