"""A search over HTTP beside the library's search and an empty route of the same server, in one run.

The server is a process of its own over the same store; the three calls take turns, so that other work on the machine
affects all alike. A repeated question is one whose result both memories keep; a new one is embedded and ranked.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.corpus import memos, take
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median
from benchmarks.serving import Server, find_free_port, wait_until_ready
from mem0_core import Memory
from mem0_core.server.keys import KEY_FILE, KeyRing

__all__ = ["measure"]

USER = "the user"
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
                "empty route": lambda _: call("GET", "/healthz", None),
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
    ratio = p50["REST"] / (p50["library"] + p50["empty route"])
    report.add(f"{kind} question", "REST / (library + empty route)", ratio, "", Bar("<=", 1.2))


@contextmanager
def _serve(folder: Path) -> Iterator[Callable[[str, str, Any], bytes]]:
    """Yield a function that sends a request to a server over the store of a folder."""
    secret, _ = KeyRing(folder / KEY_FILE).create("bench", user_id=USER)
    headers = {"X-API-Key": secret, "Content-Type": "application/json"}
    server = Server(folder, None, find_free_port(), 1)
    server.start()
    try:
        wait_until_ready(server.port)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def call(method: str, path: str, body: Any) -> bytes:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            text = reply.read()
            assert reply.status == http.HTTPStatus.OK, text
            return text

        yield call
    finally:
        server.kill()
