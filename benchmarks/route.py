"""A search over HTTP compared with the library's search and an empty route of the same server, in one run.

The server is a process of its own over the same store. Its empty route is added to the table of routes, and returns
nothing to a POST with the body of the search: it passes the same checks of host, key and rate, and its body is read,
but not parsed. So the ratio shows the work that the search's handler adds to the search itself: it parses the request,
and writes the result as JSON. `GET /healthz`, without a key and a body, is measured as the least that a request takes.

The calls take turns, so that other work on the machine affects all alike. A repeated question is one whose result both
memories keep; a new one is embedded and ranked.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.corpus import memos, take
from benchmarks.plan import ROOT, Plan
from benchmarks.report import Bar, Report, median
from benchmarks.serving import wait_until_ready
from mem0_core import Memory
from mem0_core.server import rest
from mem0_core.server._routes import ROUTES, Route
from mem0_core.server.keys import KEY_FILE, ApiKey, KeyRing
from memory_conformance.systems.mcp import reserve_port

__all__ = ["measure"]

USER = "the user"
_EMPTY = Route("POST", "/empty", "empty", "Done", body={})
_MEMORIES = 100
_QUESTIONS = 10  # that are repeated


def measure(plan: Plan) -> Report:
    report = Report("route")
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder, Memory({"path": Path(folder)}) as memory:
        for memo in take(memos(), _MEMORIES):
            memory.add(memo.text, user_id=USER, infer=False)
        with _serve(Path(folder)) as call:
            calls: dict[str, Callable[[str], Any]] = {
                "REST": lambda text: call("POST", "/search", {"query": text, "limit": 10}),
                "library": lambda text: memory.search(text, user_id=USER, limit=10),
                "empty route": lambda text: call(_EMPTY.method, _EMPTY.path, {"query": text, "limit": 10}),
                "GET /healthz": lambda _: call("GET", "/healthz", None),
            }
            for kind in ("repeated", "new"):
                _compare(report, calls, kind, plan.queries)
    return report


def _compare(report: Report, calls: dict[str, Callable[[str], Any]], kind: str, rounds: int) -> None:
    took: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for number in range(rounds):
        for name in order:
            question = f"{number} {name}" if kind == "new" else str(number % _QUESTIONS)
            started = time.perf_counter()
            calls[name](f"How far did I walk in week {question}?")
            took[name].append(1e3 * (time.perf_counter() - started))
        order.append(order.pop(0))
    p50 = {name: median(values[rounds // 5 :]) for name, values in took.items()}
    for name, value in p50.items():
        report.add(f"{kind} question", f"p50, {name}", value, "ms")
    for name, bar in (("empty route", Bar("<=", 1.2)), ("GET /healthz", None)):
        ratio = p50["REST"] / (p50["library"] + p50[name])
        report.add(f"{kind} question", f"REST / (library + {name})", ratio, "", bar)


@contextmanager
def _serve(folder: Path) -> Iterator[Callable[[str, str, Any], bytes]]:
    """Yield a function that sends a request to a server over the store of a folder."""
    secret, _ = KeyRing(folder / KEY_FILE).create("bench", user_id=USER)
    headers = {"X-API-Key": secret, "Content-Type": "application/json"}
    port = reserve_port()
    with subprocess.Popen([sys.executable, "-m", "benchmarks.route", str(folder), str(port)], cwd=ROOT) as server:
        try:
            wait_until_ready(port)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

            def call(method: str, path: str, body: Any) -> bytes:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                reply = connection.getresponse()
                text = reply.read()
                assert reply.status == http.HTTPStatus.OK, text
                return text

            yield call
        finally:
            server.kill()


def _run_server(folder: Path, port: int) -> None:
    """Serve the store of a folder, with the empty route, until the process ends."""

    class Api(rest.RestApi):
        async def empty(self, request: Any, key: ApiKey) -> Any:
            """Return nothing."""
            return {}

    rest.RestApi, rest.ROUTES = Api, (*ROUTES, _EMPTY)  # type: ignore[misc, attr-defined]
    with Memory({"path": folder}) as memory:
        rest.run_rest(rest.build_rest_app(memory, KeyRing(folder / KEY_FILE)), host="127.0.0.1", port=port)


if __name__ == "__main__":
    _run_server(Path(sys.argv[1]), int(sys.argv[2]))
