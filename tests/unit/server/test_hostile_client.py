"""A hostile client: requests as no library sends them, pages of other sites, and values that no schema allows."""

from __future__ import annotations

import asyncio
import json
import math
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory
from mem0_core.server import _requests, events
from mem0_core.server._routes import ROUTES
from mem0_core.server.keys import KeyRing
from mem0_core.server.rest import build_rest_app

SECRET = "quagga"
IMAGE = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
FRAME = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def send(url: str, head: str, body: bytes = b"") -> bytes:
    """Return the first bytes of the response to a request, written as it is."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        return connection.recv(65_536)


def connect(memory: Memory, keys: KeyRing | None = None, secret: str = "", **headers: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(build_rest_app(memory, keys))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"X-API-Key": secret, **headers})


@pytest.mark.parametrize(
    "path", ["/memories?user_id=maya", "/ui/graph/drawing?user_id=maya", "/v1/events?user_id=maya"]
)
@pytest.mark.parametrize(
    ("headers", "is_served"),
    [
        ({"Sec-Fetch-Site": "cross-site", **IMAGE}, False),
        ({"Sec-Fetch-Site": "same-site", **IMAGE}, False),
        ({"Sec-Fetch-Site": "cross-site", **FRAME}, False),
        ({"Sec-Fetch-Site": "cross-site", **LINK}, True),
        ({"Sec-Fetch-Site": "same-origin", **FRAME}, True),
        ({"Sec-Fetch-Site": "none", **LINK}, True),
        ({}, True),
    ],
)
async def test_a_page_of_another_site_can_link_here_and_embed_nothing(
    memory: Memory, path: str, headers: dict[str, Any], is_served: bool
) -> None:
    async with connect(memory, **headers) as client:
        assert ((await client.get(path, params={"user_id": "maya"})).status_code != 403) is is_served
        assert (await client.post("/memories", json={"messages": "x", "user_id": "maya"})).status_code == (
            403 if headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") else 200
        )


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /memories HTTP/1.1\nHost: evil.example", 421),
        ("GET /memories HTTP/1.1\nHost: 127.0.0.1.evil.example", 421),
        ("GET /memories HTTP/1.1\nHost: localhost@evil.example", 421),
        ("GET /memories HTTP/1.0", 421),
        ("GET /memories HTTP/1.1\nHost: localhost\nHost: evil.example", 400),
        ("GET http://evil.example/memories HTTP/1.1\nHost: localhost", 404),
        ("POST /search HTTP/1.1\nHost: localhost\nContent-Length: 4\nTransfer-Encoding: chunked", 400),
        ("POST /search HTTP/1.1\nHost: localhost\nContent-Length: 4\nContent-Length: 5", 400),
        ("POST /search HTTP/1.1\nHost: localhost\nContent-Length: -4", 400),
        ("GET /memories HTTP/1.1\nHost: localhost\nX: " + "x" * 200_000, 400),
        ("GET /mcp HTTP/1.1\nHost: evil.example\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13"
         "\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", 421),
    ],
)  # fmt: skip
def test_a_request_that_could_mean_another_one_is_refused(url: str, head: str, status: int) -> None:
    assert send(url, head).startswith(b"HTTP/1.1 %d" % status)


async def test_a_caller_who_leaves_is_no_failure_of_the_server(
    url: str, memory: Memory, keys: KeyRing, caplog: pytest.LogCaptureFixture
) -> None:
    secret = keys.create("laptop", user_id="maya")[0]
    address = urlsplit(url)
    head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {secret}\r\nContent-Length: 99\r\n\r\n{{"
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode())
    async with httpx.AsyncClient(headers={"X-API-Key": secret}) as client:
        assert (await client.get(f"{url}/memories")).status_code == 200
    assert "failed" not in caplog.text


async def test_a_key_cannot_occupy_all_connections_with_streams(
    url: str, keys: KeyRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 2)
    stream = {"Accept": "text/event-stream"}
    one, two = (keys.create("laptop", user_id="maya")[0] for _ in range(2))
    async with httpx.AsyncClient(base_url=url, headers={"X-API-Key": one}) as client:
        async with (
            client.stream("GET", "/v1/events", headers=stream) as first,
            client.stream("GET", "/v1/events", headers=stream) as second,
        ):
            parts = [one.aiter_raw() for one in (first, second)]  # a dropped iterator would close its connection
            await asyncio.gather(*map(anext, parts))
            assert (await client.get("/v1/events", headers=stream)).status_code == 429
            async with client.stream("GET", "/v1/events", headers={**stream, "X-API-Key": two}) as of_another_key:
                assert of_another_key.status_code == 200
        status = 429
        while status == 429:  # until the server has seen that both have left
            async with client.stream("GET", "/v1/events", headers=stream) as third:
                status = third.status_code
        assert status == 200


async def test_mcp_opens_no_stream_that_never_ends(memory: Memory, tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    keys = KeyRing(tmp_path / "keys.json")
    secret = keys.create("laptop", user_id="maya")[0]
    async with connect(memory, keys, secret) as client:
        reply = await client.get("/mcp", headers={"Accept": "text/event-stream"})
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


ODD: list[Any] = [
    math.nan,
    math.inf,
    -1,
    0,
    10**30,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": {"b": []}},
    True,
    "\ud800",
    "x" * 9_999,
]
BODY = {"query": "code", "question": "Which code?", "messages": "I ski.", "space": "mine", "text": "I ski."}


async def test_no_value_of_a_field_makes_the_server_fail_or_tell_of_others(memory: Memory, tmp_path: Path) -> None:
    memory.add(f"The code of the vault is {SECRET}.", user_id="ben")
    keys = KeyRing(tmp_path / "keys.json")
    tried = 0
    async with connect(memory, keys, keys.create("laptop", user_id="maya")[0]) as client:
        for route in ROUTES:
            if route.body is None or "{" in route.path or route.path.startswith("/v3"):
                continue
            for name in route.body:
                for value in ODD:
                    given = {each: BODY[each] for each in route.body if each in BODY} | {name: value}
                    reply = await client.request(
                        route.method,
                        route.path,
                        content=json.dumps(given),
                        headers={"Content-Type": "application/json"},
                    )
                    assert reply.status_code < 500, (route.path, given, reply.text)
                    assert SECRET not in reply.text
                    tried += 1
    assert tried > 900


def test_no_text_of_a_request_is_kept_for_later_requests() -> None:
    """Else an erasure would leave the texts of somebody in the memory of the server."""
    sent = {"headers": {"content-type": "application/json"}, "scope": {_requests.BODY: b'{"query": "Anna Kowalska"}'}}
    first, second = (_requests.read_json(SimpleNamespace(**sent))["query"] for _ in range(2))
    assert first == second
    assert first is not second


def test_a_media_type_is_read_in_any_case() -> None:
    sent = {
        "headers": {"content-type": "Application/JSON; charset=utf-8"},
        "scope": {_requests.BODY: b'{"query": "tea"}'},
    }
    assert _requests.read_json(SimpleNamespace(**sent)) == {"query": "tea"}
