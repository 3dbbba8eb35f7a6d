"""The change feed over HTTP: pages and streams, within the scope of a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory
from mem0_core.server.keys import KeyRing

STREAM = {"Accept": "text/event-stream"}


def add(memory: Memory, text: str, user_id: str) -> str:
    added: str = memory.add(text, user_id=user_id, infer=False)["results"][0]["id"]
    return added


def connect(url: str, secret: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"X-API-Key": secret}, timeout=60)


def read_stream(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    """Return the next changes of a stream, each checked against the number of its event."""
    found: list[dict[str, Any]] = []
    number = 0
    for line in lines:
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
            assert found[-1]["seq"] == number
            if len(found) == count:
                break
    return found


def test_pages_contain_each_change_of_the_keys_scope_once(url: str, memory: Memory, keys: KeyRing) -> None:
    mine = [add(memory, f"I know song {number}", "ana") for number in range(5)]
    add(memory, "I like tea", "ben")
    ana, admin = keys.create("ana", user_id="ana", is_read_only=True)[0], keys.create("all")[0]
    with connect(url, ana) as client:
        found, cursor = [], 0
        while page := client.get("/v1/events", params={"after": cursor, "limit": 2}).json()["results"]:
            found += page
            cursor = page[-1]["seq"]
        assert [one["memory_id"] for one in found] == mine
        assert client.get("/v1/events", params={"user_id": "ben"}).status_code == 403
    with connect(url, admin) as client:
        assert [one["user_id"] for one in client.get("/v1/events").json()["results"]] == [*["ana"] * 5, "ben"]
        assert len(client.get("/v1/events", params={"user_id": "ben"}).json()["results"]) == 1


def test_a_stream_continues_where_the_client_left_it(url: str, memory: Memory, keys: KeyRing) -> None:
    first = add(memory, "I like tea", "ana")
    with connect(url, keys.create("ana", user_id="ana")[0]) as client:
        with client.stream("GET", "/v1/events", headers=STREAM) as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            lines = reply.iter_lines()
            (seen,) = read_stream(lines, 1)
            assert seen["memory_id"] == first
            add(memory, "I sing", "ben")
            second = add(memory, "I ski", "ana")  # while the stream is open
            assert [one["memory_id"] for one in read_stream(lines, 1)] == [second]
        third = add(memory, "I swim", "ana")
        with client.stream("GET", "/v1/events", headers={**STREAM, "Last-Event-ID": str(seen["seq"])}) as reply:
            assert [one["memory_id"] for one in read_stream(reply.iter_lines(), 2)] == [second, third]


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ({"after": "-1"}, {}),
        ({"after": "9" * 30}, {}),
        ({"after": "\u0663"}, {}),
        ({"limit": "0"}, {}),
        ({"limit": "1001"}, {}),
        ({"limit": "many"}, {}),
        ({}, {**STREAM, "Last-Event-ID": "x"}),
    ],
)
def test_a_cursor_of_another_form_is_a_problem(
    url: str, keys: KeyRing, query: dict[str, str], headers: dict[str, str]
) -> None:
    with connect(url, keys.create("all")[0]) as client:
        reply = client.get("/v1/events", params=query, headers=headers)
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
