"""The contract of the REST interface: its document, its errors, repeated requests, pages and limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory
from mem0_core.admin.replies import REPLY_FILE, count_replies
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError, StoreError
from mem0_core.server import _replies
from mem0_core.server._limits import RateLimiter
from mem0_core.server._problems import HttpError
from mem0_core.server._replies import ReplyStore, RequestIdentity
from mem0_core.server._routes import ROUTES
from mem0_core.server.keys import ApiKey, KeyRing
from mem0_core.server.rest import RestApi, build_rest_app
from tests.support import open_memory

SAID = {"messages": "I live in Lisbon.", "user_id": "maya"}


def connect(memory: Memory, keys: KeyRing | None = None, secret: str = "", **headers: str) -> Any:
    """Return a client of the server in this process."""
    transport = httpx.ASGITransport(build_rest_app(memory, keys))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"X-API-Key": secret, **headers})


@pytest.fixture
async def client(memory: Memory) -> AsyncIterator[Any]:
    async with connect(memory) as client:
        yield client


async def test_the_document_names_every_route_and_each_has_a_handler(client: Any) -> None:
    document = (await client.get("/openapi.json")).json()
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}
    assert all(callable(getattr(RestApi, route.handler)) for route in ROUTES)
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert references <= document["components"]["schemas"].keys()


async def test_every_route_accepts_the_fields_that_the_document_names(client: Any) -> None:
    for route in ROUTES:
        if route.body is not None:
            path = route.path.replace("{memory_id}", "8a3f")
            nothing = dict.fromkeys(route.body)
            reply = await client.request(route.method, path, json=nothing)
            assert "unknown fields" not in reply.text, route
            assert "unknown fields" in (await client.request(route.method, path, json={**nothing, "no": 1})).text


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_route_but_the_public_ones_needs_a_key(memory: Memory, keys: KeyRing, route: Any) -> None:
    keys.create("one", user_id="maya")
    async with connect(memory, keys, "m0k_wrong") as stranger:
        reply = await stranger.request(route.method, re.sub(r"{\w+}", "x", route.path), json={})
    assert reply.status_code == (200 if route.is_public else 401)
    assert route.is_public or reply.headers["www-authenticate"] == "Bearer"


async def test_every_error_is_a_problem_document(memory: Memory, keys: KeyRing, monkeypatch: Any) -> None:
    secret = keys.create("one", user_id="maya")[0]

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")

    async with connect(memory, keys, secret) as client:
        replies = [
            (await client.get("/nothing"), 404),
            (await client.patch("/memories/8a3f"), 405),
            (await client.get("/search"), 405),
            (await client.post("/search", content=b"{"), 415),
            (await client.post("/search", content=b"{", headers={"Content-Type": "application/json"}), 400),
            (await client.get("/v1/memories/8a3f/"), 404),
            (await client.get("/memories", params={"user_id": "ben"}), 403),
            (await client.get("/memories", headers={"Host": "evil.example"}), 421),
            (await client.get("/memories", headers={"X-API-Key": "wrong"}), 401),
        ]
        monkeypatch.setattr(memory, "asearch", fail)
        replies.append((await client.post("/search", json={"query": "tea"}), 503))
        monkeypatch.setattr(memory, "aget", fail)
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
    for reply, status in replies:
        assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json"), reply.text
        assert reply.json().keys() == {"status", "title", "detail"}
        assert reply.json()["status"] == status


# --- repeated requests -----------------------------------------------------------------------------------------------


async def test_a_repeated_request_gets_the_first_response_and_changes_nothing(client: Any, memory: Memory) -> None:
    once = {"Idempotency-Key": "a1"}
    first = await client.post("/memories", json=SAID, headers=once)
    again = await client.post("/memories", json=SAID, headers=once)
    assert again.content == first.content
    assert (first.headers.get("idempotent-replayed"), again.headers.get("idempotent-replayed")) == (None, "true")
    one = f"/memories/{first.json()['results'][0]['id']}"
    assert (await client.delete(one, headers={"Idempotency-Key": "a2"})).status_code == 200
    assert (await client.delete(one, headers={"Idempotency-Key": "a2"})).status_code == 200
    assert (await client.delete(one, headers={"Idempotency-Key": "a3"})).status_code == 404
    failed = await client.delete(one, headers={"Idempotency-Key": "a3"})
    assert (failed.status_code, failed.headers["content-type"]) == (404, "application/problem+json")
    assert memory.get_all(user_id="maya")["results"] == []


async def test_a_key_of_another_request_is_refused(client: Any) -> None:
    once = {"Idempotency-Key": "a1"}
    await client.post("/memories", json=SAID, headers=once)
    assert (await client.post("/memories", json={**SAID, "user_id": "ben"}, headers=once)).status_code == 422
    assert (await client.post("/v3/memories/add/", json=SAID, headers=once)).status_code == 422
    for name in ("", "x" * 256):
        assert (await client.post("/memories", json=SAID, headers={"Idempotency-Key": name})).status_code == 400


async def test_responses_belong_to_an_api_key_and_outlive_the_server(memory: Memory, keys: KeyRing) -> None:
    maya, ben = (keys.create(name, user_id=name)[0] for name in ("maya", "ben"))
    once, said = {"Idempotency-Key": "a1"}, {"messages": "I live in Lisbon."}
    async with connect(memory, keys, maya) as client:
        first = await client.post("/memories", json=said, headers=once)
    async with connect(memory, keys, maya) as client:
        assert (await client.post("/memories", json=said, headers=once)).content == first.content
    async with connect(memory, keys, ben) as client:
        assert (await client.post("/memories", json=said, headers=once)).content != first.content
    files = [file.read_bytes() for file in memory.config.folder.glob(f"{REPLY_FILE}*")]
    assert files
    assert not any(b"Lisbon" in content for content in files)


async def test_a_failed_request_can_be_repeated(client: Any, memory: Memory, monkeypatch: Any) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")

    once = {"Idempotency-Key": "a1"}
    with monkeypatch.context() as patched:
        patched.setattr(memory, "aadd", fail)
        assert (await client.post("/memories", json=SAID, headers=once)).status_code == 503
    assert (await client.post("/memories", json=SAID, headers=once)).json()["results"]


async def test_a_request_in_progress_is_not_made_twice(client: Any, memory: Memory, monkeypatch: Any) -> None:
    began, may_end, add = asyncio.Event(), asyncio.Event(), memory.aadd

    async def wait(*given: Any, **options: Any) -> Any:
        began.set()
        await may_end.wait()
        return await add(*given, **options)

    monkeypatch.setattr(memory, "aadd", wait)
    first = asyncio.create_task(client.post("/memories", json=SAID, headers={"Idempotency-Key": "a1"}))
    await began.wait()
    second = await client.post("/memories", json=SAID, headers={"Idempotency-Key": "a1"})
    assert (second.status_code, int(second.headers["retry-after"]) > 0) == (409, True)
    may_end.set()
    assert (await first).status_code == 200
    assert len(memory.get_all(user_id="maya")["results"]) == 1


@pytest.mark.parametrize("messages", ["I live in Lisbon.", {"role": "user", "content": "I live in Lisbon."}])
async def test_a_request_that_was_committed_before_a_crash_adds_nothing_twice(
    tmp_path: Path, monkeypatch: Any, messages: Any
) -> None:
    script = lambda *_: json.dumps({"facts": ["Lives in Lisbon"]})  # noqa: E731
    said, once = {"messages": messages, "user_id": "maya"}, {"Idempotency-Key": "a1"}

    class Killed(BaseException):
        pass

    def kill(*_: Any) -> None:
        raise Killed

    with open_memory(tmp_path, script) as memory, monkeypatch.context() as patched:
        patched.setattr(ReplyStore, "finish", kill)
        patched.setattr(_replies, "LEASE_SECONDS", -1.0)  # it has ended when the server starts again
        async with connect(memory) as client:
            with pytest.raises(Killed):
                await client.post("/memories", json=said, headers=once)
    with open_memory(tmp_path, script) as memory:
        stored = memory.get_all(user_id="maya")["results"]
        async with connect(memory) as client:
            assert (await client.post("/memories", json=said, headers=once)).status_code == 200
        assert memory.get_all(user_id="maya")["results"] == stored != []


def identify(name: str, owner: str = "maya", request: bytes = b"r") -> RequestIdentity:
    return RequestIdentity(owner, name, request, "m0k_secret")


def test_responses_are_kept_for_a_bounded_time_and_number(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(_replies, "MAX_REPLIES", 3)
    now = [1e9]
    store = ReplyStore(tmp_path / REPLY_FILE, clock=lambda: now[0])
    for place in range(5):
        now[0] += 1
        assert store.begin(identify(f"k{place}")) is None
        store.finish(identify(f"k{place}"), 200, f"reply {place}".encode())
    assert store.begin(identify("k4")) == (200, b"reply 4")
    assert store.begin(identify("k2")) == (200, b"reply 2")
    assert store.begin(identify("k1")) is None
    now[0] += _replies.REPLY_SECONDS + 10
    assert store.begin(identify("k4")) is None
    store.close()


def test_a_lease_ends_with_its_process_and_is_renewed_before(tmp_path: Path) -> None:
    now = [1e9]
    first, second = (ReplyStore(tmp_path / REPLY_FILE, clock=lambda: now[0]) for _ in range(2))
    assert first.begin(identify("a")) is None
    now[0] += _replies.LEASE_SECONDS - 1
    first.renew(identify("a"))
    now[0] += _replies.LEASE_SECONDS - 1
    with pytest.raises(HttpError) as refused:
        second.begin(identify("a"))
    assert refused.value.status == 409
    now[0] += _replies.LEASE_SECONDS
    assert second.begin(identify("a")) is None
    first.finish(identify("a"), 200, b"too late")
    second.finish(identify("a"), 200, b"in time")
    assert first.begin(identify("a")) == (200, b"in time")
    for store in (first, second):
        store.close()


# --- replies of an erased owner --------------------------------------------------------------------------------------


async def test_an_erasure_drops_the_replies_of_its_subject(client: Any, memory: Memory) -> None:
    bens = {**SAID, "user_id": "ben", "agent_id": "guide"}
    answers = {}
    for name, said in {"maya": SAID, "ben": bens}.items():
        answers[name] = await client.post("/memories", json=said, headers={"Idempotency-Key": name})
    stored = memory.get_all(user_id="maya")["results"][0]["id"]
    changed = {"text": "I live in Porto."}
    await client.put(f"/memories/{stored}", json=changed, headers={"Idempotency-Key": "changed"})
    receipt = await memory.aerase(user_id="maya", reason="request 4711")
    assert receipt["complete"]
    assert [(one["searched"], one["found"]) for one in receipt["probes"] if one["where"] == "replies of a server"] == [
        (2, 0)
    ]
    assert (await client.post("/memories", json=SAID, headers={"Idempotency-Key": "maya"})).status_code == 410
    assert (
        await client.put(f"/memories/{stored}", json=changed, headers={"Idempotency-Key": "changed"})
    ).status_code == 410
    assert memory.get_all(user_id="maya")["results"] == []
    again = await client.post("/memories", json=bens, headers={"Idempotency-Key": "ben"})
    assert (again.status_code, again.content) == (200, answers["ben"].content)
    memory.erase(agent_id="guide", reason="request 4712")
    assert (await client.post("/memories", json=bens, headers={"Idempotency-Key": "ben"})).status_code == 410


async def test_a_request_in_progress_at_an_erasure_keeps_no_reply(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Lisbon.", user_id="maya")
        store = ReplyStore(memory.config.folder / REPLY_FILE)
        known = replace(identify("a"), ids={"user_id": "maya"})
        assert store.begin(known) is None
        assert store.begin(identify("b", owner="ben")) is None
        await memory.aerase(user_id="maya", reason="request 4711")
        for identity in (known, identify("b", owner="ben")):
            store.finish(identity, 200, b"Lisbon")
            with pytest.raises(HttpError) as refused:
                store.begin(identity)
            assert refused.value.status == 410
        store.close()


def test_a_killed_erasure_drops_the_replies_when_it_is_resumed(tmp_path: Path, monkeypatch: Any) -> None:
    import mem0_core.admin.erase as erase

    class Killed(BaseException):
        pass

    def kill(*_: Any) -> None:
        raise Killed

    with open_memory(tmp_path) as memory:
        memory.add("I live in Lisbon.", user_id="maya")
        store = ReplyStore(memory.config.folder / REPLY_FILE)
        store.begin(identify("a"))
        store.finish(identify("a"), 200, b"Lisbon")
        store.close()
        with monkeypatch.context() as patched:
            patched.setattr(erase, "erase_replies", kill)
            with pytest.raises(Killed):
                memory.erase(user_id="maya", reason="request 4711")
        subject = Scope(user_id="maya")
        assert count_replies(memory.config.folder, subject) == 1
    with open_memory(tmp_path) as memory:
        memory.search("anything", user_id="ben")
        assert memory.erasures()[0]["complete"]
        assert count_replies(memory.config.folder, subject) == 0


# --- pages and limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_a_cursor_reaches_every_memory_once(client: Any, memory: Memory, size: int) -> None:
    memory.add_many([f"My locker number {number} is blue." for number in range(6)], user_id="maya")  # one time
    for number in range(3):
        memory.add(f"I bought {number} apples.", user_id="maya", timestamp=f"2025-01-0{number + 1}")
    memory.add("I live in Porto.", user_id="ben")
    seen: list[str] = []
    asked: dict[str, Any] = {"user_id": "maya", "limit": size}
    while True:
        page = (await client.get("/memories", params=asked)).json()
        assert 0 < len(page["results"]) <= size
        seen += [one["id"] for one in page["results"]]
        if page["next_cursor"] is None:
            break
        asked["cursor"] = page["next_cursor"]
    assert seen == [one["id"] for one in memory.get_all(user_id="maya")["results"]]


async def test_deletions_between_pages_hide_no_other_memory(client: Any, memory: Memory) -> None:
    memory.add_many([f"My locker number {number} is blue." for number in range(8)], user_id="maya")
    first = (await client.get("/memories", params={"user_id": "maya", "limit": 4})).json()
    for deleted in first["results"][2:]:  # the last of the page too
        memory.delete(deleted["id"])
    asked = {"user_id": "maya", "limit": 100, "cursor": first["next_cursor"]}
    rest = (await client.get("/memories", params=asked)).json()
    left = {one["id"] for one in memory.get_all(user_id="maya")["results"]}
    assert left <= {one["id"] for one in [*first["results"], *rest["results"]]}


@pytest.mark.parametrize("cursor", ["x", "", "e30=", "WzEsMiwzXQ==", "é", "a" * 2_000])
async def test_a_wrong_cursor_is_refused(client: Any, cursor: str) -> None:
    reply = await client.get("/memories", params={"user_id": "maya", "cursor": cursor})
    assert (reply.status_code, "cursor" in reply.json()["detail"]) == (400, True)


async def test_a_key_is_limited_in_rate_and_size(memory: Memory, keys: KeyRing) -> None:
    limits: dict[str, Any] = {"requests_per_minute": 3, "max_body_bytes": 100}
    limited, free = keys.create("limited", user_id="maya", **limits)[0], keys.create("free", user_id="maya")[0]
    async with connect(memory, keys, limited) as client:
        assert (await client.post("/search", json={"query": "x" * 100})).status_code == 413
        assert (await client.post("/search", json={"query": "tea"})).status_code == 200
        assert (await client.get("/memories")).status_code == 200
        refused = await client.get("/memories")
        assert (refused.status_code, refused.headers["x-ratelimit-limit"]) == (429, "3")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    async with connect(memory, keys, free) as client:
        assert (await client.post("/search", json={"query": "x" * 100})).status_code == 200
    with pytest.raises(InputError, match="requests_per_minute must be positive"):
        keys.create("none", requests_per_minute=0)


@pytest.mark.parametrize(("share", "expected"), [(1.0, 60), (0.25, 15)])
def test_a_rate_holds_over_time(share: float, expected: int) -> None:
    now = [0.0]
    limiter = RateLimiter(share, clock=lambda: now[0])
    key = ApiKey("k", "k", "", requests_per_minute=60)

    def count(tries: int) -> int:
        return sum(is_admitted() for _ in range(tries))

    def is_admitted() -> bool:
        try:
            limiter.check(key)
        except HttpError as error:
            return "Retry-After" not in error.headers
        return True

    assert count(200) == expected
    now[0] += 20
    assert count(200) == expected // 3
    now[0] += 600
    assert count(200) == expected


# --- tenants, verbs and roles ----------------------------------------------------------------------------------------


async def test_no_key_reaches_the_memories_of_another_tenant(memory: Memory, keys: KeyRing) -> None:
    hidden = memory.add("My PIN is quagga.", user_id="ben", agent_id="bank", run_id="r9")["results"][0]["id"]
    before = memory.get_all(user_id="ben")
    bound: list[dict[str, Any]] = [
        {"user_id": "maya"},
        {"agent_id": "helper"},
        {"run_id": "r1"},
        {"user_id": "maya", "agent_id": "helper"},
    ]
    named: list[dict[str, Any]] = [
        {},
        {"user_id": "ben"},
        {"filters": {"user_id": "ben"}},
        {"filters": {"AND": [{"user_id": "ben"}, {"agent_id": "bank"}]}},
        {"filters": {"NOT": [{"user_id": "maya"}]}},
    ]
    tried = leaked = 0
    for ids, role in product(bound, (True, False)):
        secret = keys.create("bound", **ids, is_read_only=role)[0]
        async with connect(memory, keys, secret) as client:
            for route, more in product(ROUTES, named):
                path = route.path.replace("{kind}", "user").replace("{name}", "ben").replace("{memory_id}", hidden)
                body = {"query": "PIN", "question": "My PIN?", "messages": "My PIN is 1.", "text": "mine", **more}
                sent = {name: value for name, value in body.items() if name in (route.body or ())}
                flat = {name: value for name, value in more.items() if isinstance(value, str)}
                reply = await client.request(
                    route.method, path, params=flat, json=sent if route.body is not None else None
                )
                assert reply.status_code < 500, (route, reply.text)
                leaked += "quagga" in reply.text
                tried += 1
    assert tried >= 500
    assert leaked == 0
    assert memory.get_all(user_id="ben") == before
