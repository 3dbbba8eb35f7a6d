"""Mixed load on the REST server over PostgreSQL, which is killed twice: ``python -m benchmarks.serving --minutes 2``.

Each client adds, searches, lists and updates memories of its own user over HTTP, and repeats a request without a
response with the same idempotency key. In the end every acknowledged memory must be there once. The milliseconds are
those of requests that were not repeated; the others waited for the server to start again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from mem0_core.server.keys import KEY_FILE, KeyRing
from memory_conformance.systems.mcp import reserve_port
from tests.services.postgres_server import postgres_url

VERBS = ("add",) * 3 + ("search",) * 5 + ("list", "context")
TOPICS = ("tea", "coffee", "a bicycle", "a blue coat", "two lamps", "a train ticket", "a violin", "some bread")
RETRY_SECONDS = 0.2
KEEP_ALIVE_SECONDS = 4.0  # uvicorn closes an idle connection after 5
START_SECONDS = 120.0


@dataclass
class Server:
    """The server's processes."""

    folder: Path
    store: str | None
    port: int
    workers: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "mem0_core.cli", "serve", "--path", str(self.folder)]
        command += [] if self.store is None else ["--store", self.store]
        command += ["--port", str(self.port), "--workers", str(self.workers)]
        self.process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=60)

    def megabytes(self) -> float:
        """Return the resident memory of all processes."""
        assert self.process is not None
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        return float(sum(one.memory_info().rss for one in family if one.is_running()) / 2**20)


@dataclass
class Load:
    """Shared by all clients: the end of the load, and what they saw."""

    port: int
    ends_at: float
    pause: float
    seconds: dict[str, list[float]] = field(default_factory=lambda: {verb: [] for verb in dict.fromkeys(VERBS)})
    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    disturbed: list[float] = field(default_factory=list)
    repeats: int = 0
    refused: list[str] = field(default_factory=list)


class Client:
    """One client, with one connection."""

    def __init__(self, load: Load, user: str, secret: str) -> None:
        self._load, self._user, self._secret = load, user, secret
        self._random = random.Random(user)
        self._connection: http.client.HTTPConnection | None = None
        self._repeats = 0
        load.acknowledged[user] = []

    def run(self) -> None:
        number = 0
        while time.monotonic() < self._load.ends_at:
            verb, topic = self._random.choice(VERBS), self._random.choice(TOPICS)
            started, repeats = time.perf_counter(), self._repeats
            if verb == "add":
                number += 1
                text = f"I bought {topic} number {number} of {self._user}."
                if self.call("POST", "/memories", {"messages": text}) is not None:
                    self._load.acknowledged[self._user].append(text)
            elif verb == "list":
                self.call("GET", "/memories?limit=20")
            else:
                path = "/search" if verb == "search" else "/v1/context"
                self.call("POST", path, {"query": f"Where did I buy {topic}?", "limit": 10})
            seconds = time.perf_counter() - started
            (self._load.seconds[verb] if self._repeats == repeats else self._load.disturbed).append(seconds)
            self._rest(self._load.pause * 2 * self._random.random())

    def _rest(self, seconds: float) -> None:
        """Wait; a connection that the server closes meanwhile is closed here, so that no request fails by it."""
        time.sleep(seconds)
        if seconds > KEEP_ALIVE_SECONDS and self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the result of a request, which is repeated until it has a response; None if it was refused."""
        headers = {"X-API-Key": self._secret, "Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        while True:
            status, result = self._send(method, path, None if body is None else json.dumps(body), headers)
            if status == 200:
                return result
            if status is not None and status < 500 and status != 409:
                self._load.refused.append(f"{status} {result}")
                return None
            self._repeats += 1
            self._load.repeats += 1
            time.sleep(RETRY_SECONDS)

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int | None, Any]:
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._load.port, timeout=60)
            self._connection.request(method, path, body, headers)
            reply = self._connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if reply.status == 200 else text.decode(errors="replace")
        except (OSError, http.client.HTTPException):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            return None, None

    def list_all(self) -> list[str]:
        """Return the texts of all memories, page by page."""
        texts: list[str] = []
        path = "/memories?limit=500"
        while True:
            page = self.call("GET", path)
            texts += [one["memory"] for one in page["results"]]
            if page["next_cursor"] is None:
                return texts
            path = f"/memories?limit=500&cursor={page['next_cursor']}"


def measure(minutes: float, clients: int, workers: int, kills: int, pause: float) -> dict[str, Any]:
    with _serve(clients, workers) as (server, port, secrets):
        load = Load(port, time.monotonic() + minutes * 60, pause)
        crowd = [Client(load, user, secret) for user, secret in secrets.items()]
        threads = [threading.Thread(target=client.run) for client in crowd]
        for thread in threads:
            thread.start()
        memory = _disturb(server, load, minutes * 60, kills)
        for thread in threads:
            thread.join()
        kept = {user: client.list_all() for user, client in zip(secrets, crowd, strict=True)}
        exit_code = server.stop()
    texts = [(user, text) for user, written in load.acknowledged.items() for text in written]
    return {
        "acknowledged": len(texts),
        "lost": sum(text not in kept[user] for user, text in texts),
        "doubled": sum(len(found) - len(set(found)) for found in kept.values()),
        "refused": load.refused[:3],
        "repeats": load.repeats,
        "requests": sum(map(len, load.seconds.values())) + len(load.disturbed),
        "disturbed": len(load.disturbed),
        "longest_disturbance_seconds": round(max(load.disturbed, default=0.0), 1),
        "milliseconds": {verb: _summarize(seconds) for verb, seconds in load.seconds.items()},
        "megabytes": memory,
        "exit_code": exit_code,
    }


@contextmanager
def _serve(clients: int, workers: int) -> Iterator[tuple[Server, int, dict[str, str]]]:
    """Yield a running server, its port, and a key of each user."""
    with postgres_url() as url, tempfile.TemporaryDirectory() as folder:
        keys = KeyRing(Path(folder) / KEY_FILE)
        secrets = {f"user-{number}": keys.create("load", user_id=f"user-{number}")[0] for number in range(clients)}
        port = reserve_port()
        server = Server(Path(folder), f"{url}#mem0_serving", port, workers)
        server.start()
        wait_until_ready(port)
        try:
            yield server, port, secrets
        finally:
            if server.process is not None and server.process.poll() is None:
                server.kill()


def wait_until_ready(port: int) -> None:
    """Wait until the store answers."""
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(RETRY_SECONDS)
    raise TimeoutError("the server did not start")


def _disturb(server: Server, load: Load, seconds: float, kills: int) -> list[list[int]]:
    """Kill the server at equal intervals; return its memory in MB after a third of each life, and at its end."""
    memory: list[list[int]] = []
    life = seconds / (kills + 1)
    for place in range(kills + 1):
        ends_at = load.ends_at - seconds + life * (place + 1)
        time.sleep(max(0.0, ends_at - life * 2 / 3 - time.monotonic()))
        early = server.megabytes()
        time.sleep(max(0.0, ends_at - time.monotonic()))
        memory.append([round(early), round(server.megabytes())])
        if place < kills:
            server.kill()
            server.start()
    return memory


def _summarize(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50": statistics.median(ordered), "p99": ordered[int(len(ordered) * 0.99)]} if ordered else {}
    return {name: round(value * 1e3, 1) for name, value in at.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="mean seconds that a client waits between two requests"
    )
    print(json.dumps(measure(**vars(parser.parse_args())), indent=1))
