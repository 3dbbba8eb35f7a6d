"""Serving: connections with bounds, the number of processes, and the application of each."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import httpx

from mem0_core.cli import _serve, main
from mem0_core.cli._errors import UsageError
from mem0_core.config import MemoryConfig, postgres_config
from mem0_core.server import _protocol
from tests.support import hang_guard


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
def test_a_connection_without_headers_is_closed(request: Any, monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(_protocol, "HEADER_SECONDS", 0.05)
    url = urlsplit(request.getfixturevalue("url"))
    with hang_guard(60), socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(begun)
        assert connection.recv(1) == b""


def test_a_connection_serves_many_requests(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert json.load(connection.getresponse()) == {"status": "ok"}
    connection.close()


def test_only_postgresql_is_served_by_several_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = MemoryConfig(path=tmp_path)
    shared = local.replace(store=postgres_config("postgresql://localhost/memories"))
    assert _serve._count_workers(local, None) == 1
    assert _serve._count_workers(shared, None) == _serve._count_cores() >= 1
    assert _serve._count_workers(shared, 3) == 3
    for config, count in ((local, 2), (shared, 0)):
        with pytest.raises(UsageError, match="--workers"):
            _serve._count_workers(config, count)
    assert main(["serve", "--no-keys", "--workers", "2", "--path", str(tmp_path)]) == 2
    assert "--workers needs a store in PostgreSQL" in capsys.readouterr().err


async def test_a_process_opens_and_closes_a_memory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = dict.fromkeys(_serve._INHERITED_OPTIONS)
    options.update(path=str(tmp_path), allow_host=["memory.internal"], no_keys=True, workers=2)
    monkeypatch.setenv(_serve._WORKER_OPTIONS, json.dumps(options))
    app, events = _serve.create_worker_app(), ["startup", "shutdown"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://memory.internal") as client:
        assert (await client.get("/readyz")).status_code == 200
        sent: list[str] = []

        async def receive() -> dict[str, str]:
            return {"type": f"lifespan.{events.pop(0)}"}

        async def send(event: Any) -> None:
            sent.append(event["type"])

        await app({"type": "lifespan"}, receive, send)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert (await client.get("/readyz")).status_code == 503
