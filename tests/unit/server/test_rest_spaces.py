"""Spaces over HTTP: a team shares memory, each member with a key, and strangers reach nothing."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory
from mem0_core.server._routes import ROUTES
from mem0_core.server.keys import KeyRing
from mem0_core.server.rest import build_rest_app

TEAM = "/v1/spaces/release team"


class Users:
    """Sends requests, each with the key of a user."""

    def __init__(self, memory: Memory, keys: KeyRing) -> None:
        self._app = build_rest_app(memory, keys)
        self._keys = keys
        self._secrets: dict[str, str] = {}

    def secret(self, user: str, **options: Any) -> str:
        secret: str = self._keys.create(user, user_id=user, **options)[0]
        return secret

    async def send(self, user: str, method: str, path: str, secret: str | None = None, **more: Any) -> httpx.Response:
        key = secret or self._secrets.setdefault(user, self.secret(user))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://localhost")
        async with client:
            return await client.request(method, path, headers={"X-API-Key": key, **more.pop("headers", {})}, **more)


@pytest.fixture
def users(memory: Memory, tmp_path: Path) -> Users:
    return Users(memory, KeyRing(tmp_path / "keys.json"))


async def create_team(users: Users, *, requires_approval: bool = False) -> None:
    body = {"space": "release team", "requires_approval": requires_approval}
    assert (await users.send("ann", "POST", "/v1/spaces", json=body)).json()["role"] == "owner"
    for member, role in (("bob", "writer"), ("cat", "reader")):
        assert (await users.send("ann", "PUT", f"{TEAM}/members/{member}", json={"role": role})).status_code == 200


async def test_a_team_shares_a_space(users: Users, memory: Memory) -> None:
    await create_team(users)
    memory.add("I drink green tea.", user_id="cat")
    added = await users.send("bob", "POST", f"{TEAM}/memories", json={"messages": "We deploy on Thursday."})
    shared = added.json()["results"][0]["id"]

    found = (await users.send("cat", "POST", "/v1/spaces/search", json={"query": "deploy"})).json()["results"]
    assert {one["memory"]: one["space"] for one in found}["We deploy on Thursday."] == "release team"
    own = await users.send("cat", "POST", "/v1/spaces/search", json={"query": "tea", "spaces": []})
    assert [one["space"] for one in own.json()["results"]] == [None]
    context = await users.send("cat", "POST", "/v1/spaces/context", json={"query": "When do we deploy?"})
    assert "release team" in context.json()["text"]
    answer = await users.send("cat", "POST", "/v1/spaces/answer", json={"question": "What do I drink?"})
    assert "green tea" in answer.json()["answer"]

    one = f"{TEAM}/memories/{shared}"
    assert (await users.send("bob", "PUT", one, json={"text": "We deploy on Friday."})).status_code == 200
    listed = (await users.send("cat", "GET", f"{TEAM}/memories", params={"limit": 5})).json()["results"]
    assert [entry["memory"] for entry in listed] == ["We deploy on Friday."]
    members = (await users.send("cat", "GET", f"{TEAM}/members")).json()
    assert {entry["user_id"]: entry["role"] for entry in members} == {"ann": "owner", "bob": "writer", "cat": "reader"}
    assert [entry["space"] for entry in (await users.send("cat", "GET", "/v1/spaces")).json()] == ["release team"]

    assert (await users.send("bob", "DELETE", one)).status_code == 200
    assert (await users.send("bob", "DELETE", one)).status_code == 404
    assert (await users.send("ann", "DELETE", f"{TEAM}/members/bob")).status_code == 200
    assert (await users.send("bob", "GET", f"{TEAM}/memories")).status_code == 403
    receipt = await users.send("ann", "DELETE", TEAM)
    assert receipt.json()["complete"]
    assert (await users.send("ann", "GET", "/v1/spaces")).json() == []


async def test_every_documented_field_of_a_read_is_accepted(users: Users) -> None:
    await create_team(users)
    given: dict[str, Any] = {"query": "deploy", "question": "When?", "filters": {}, "limit": 3, "threshold": 0.1}
    given |= {"rerank": False, "explain": True, "as_of": "2025-01-01", "reference_date": "2025-01-01"}
    given |= {"include_superseded": True, "max_tokens": 100, "recent": 1, "citations": True}
    given |= {"spaces": ["release team"], "own": False}
    for route in ROUTES:
        if route.path in ("/v1/spaces/search", "/v1/spaces/context", "/v1/spaces/answer"):
            assert route.body is not None
            body = {name: given[name] for name in route.body if name != "user_id"}
            reply = await users.send("cat", route.method, route.path, json=body)
            assert reply.status_code == 200, reply.text


async def test_a_write_waits_until_an_owner_settles_it(users: Users) -> None:
    await create_team(users, requires_approval=True)
    proposed = []
    for text in ("The release needs two reviewers.", "Nobody reviews."):
        reply = await users.send("bob", "POST", f"{TEAM}/memories", json={"messages": text})
        proposed.append(reply.json()["pending_write"])
    asked: dict[str, Any] = {"json": {"query": "reviewers"}}
    assert (await users.send("bob", "POST", "/v1/spaces/search", **asked)).json()["results"] == []
    waiting = (await users.send("ann", "GET", f"{TEAM}/writes")).json()
    assert [(one["id"], one["author"]) for one in waiting] == [(one, "bob") for one in proposed]

    first, second = (f"{TEAM}/writes/{one}" for one in proposed)
    assert (await users.send("bob", "POST", first, json={"approve": True})).status_code == 403
    assert (await users.send("ann", "POST", first, json={"approve": "yes"})).status_code == 400
    assert (await users.send("ann", "POST", first, json={"approve": True})).status_code == 200
    assert (await users.send("ann", "POST", second, json={"approve": False})).json() == {"message": "Write rejected"}
    assert (await users.send("ann", "POST", second, json={"approve": True})).status_code == 404
    found = (await users.send("bob", "POST", "/v1/spaces/search", **asked)).json()["results"]
    assert [one["memory"] for one in found] == ["The release needs two reviewers."]
    assert (await users.send("ann", "PATCH", TEAM, json={"requires_approval": False})).status_code == 200
    assert (
        "pending_write" not in (await users.send("bob", "POST", f"{TEAM}/memories", json={"messages": "OK go"})).json()
    )


@pytest.mark.parametrize(
    ("user", "method", "path", "body", "status"),
    [
        ("eve", "GET", f"{TEAM}/memories", None, 403),
        ("eve", "GET", f"{TEAM}/members", None, 403),
        ("eve", "GET", "/v1/spaces/no such space/members", None, 403),
        ("cat", "POST", f"{TEAM}/memories", {"messages": "I write."}, 403),
        ("bob", "PUT", f"{TEAM}/members/eve", {"role": "reader"}, 403),
        ("ann", "PUT", f"{TEAM}/members/eve", {"role": "king"}, 400),
        ("ann", "PUT", f"{TEAM}/members/eve", {}, 400),
        ("ann", "PUT", f"{TEAM}/members/ann", {"role": "reader"}, 400),
        ("ann", "POST", "/v1/spaces", {"space": "release team"}, 400),
        ("ann", "POST", "/v1/spaces", {"space": "a/b"}, 400),
        ("ann", "PATCH", TEAM, {}, 400),
        ("ann", "DELETE", f"{TEAM}/memories/8a3f", None, 404),
        ("cat", "POST", "/v1/spaces/search", {"query": "x", "user_id": "ann"}, 403),
        ("cat", "POST", "/v1/spaces/search", {"query": "x", "spaces": ["other"]}, 403),
        ("cat", "POST", "/v1/spaces/search", {"query": "x", "spaces": "release team"}, 400),
    ],
)
async def test_a_wrong_request_is_refused_with_its_reason(
    users: Users, user: str, method: str, path: str, body: Any, status: int
) -> None:
    await create_team(users)
    reply = await users.send(user, method, path, json=body)
    assert (reply.status_code, reply.json()["status"]) == (status, status), reply.text
    assert len(reply.json()["detail"]) > 10


async def test_spaces_need_a_key_of_a_user_and_a_read_only_one_changes_nothing(users: Users, tmp_path: Path) -> None:
    await create_team(users)
    keys = KeyRing(tmp_path / "keys.json")
    everybody = keys.create("admin")[0]
    assert (await users.send("", "GET", "/v1/spaces", everybody)).status_code == 400
    assert len((await users.send("", "GET", "/v1/spaces", everybody, params={"user_id": "bob"})).json()) == 1
    narrow = keys.create("narrow", user_id="bob", run_id="r1")[0]
    assert (await users.send("", "GET", "/v1/spaces", narrow)).status_code == 403
    reader = users.secret("ann", is_read_only=True)
    assert (await users.send("", "GET", f"{TEAM}/members", reader)).status_code == 200
    assert (await users.send("", "DELETE", TEAM, reader)).status_code == 403


async def test_a_response_that_was_kept_for_a_space_goes_with_an_erasure(users: Users, memory: Memory) -> None:
    await create_team(users)
    said: dict[str, Any] = {"json": {"messages": "My PIN is quagga."}, "headers": {"Idempotency-Key": "a1"}}
    first = await users.send("bob", "POST", f"{TEAM}/memories", **said)
    assert (await users.send("bob", "POST", f"{TEAM}/memories", **said)).content == first.content
    assert memory.erase(user_id="bob", reason="asked")["complete"]
    assert (await users.send("bob", "POST", f"{TEAM}/memories", **said)).status_code == 410
    listed = (await users.send("ann", "GET", f"{TEAM}/memories")).json()["results"]
    assert listed == []


async def test_no_stranger_reaches_a_space(users: Users) -> None:
    await create_team(users)
    added = await users.send("bob", "POST", f"{TEAM}/memories", json={"messages": "Our PIN is quagga."})
    hidden = added.json()["results"][0]["id"]
    await users.send("eve", "POST", "/v1/spaces", json={"space": "evil"})
    spaces = ("release team", "evil", "RELEASE TEAM", "release team ", "mem0.internal:space%2Frelease team")
    more: tuple[dict[str, Any], ...] = ({}, {"user_id": "ann"}, {"spaces": ["release team"]}, {"own": False})
    leaked = tried = 0
    for route, space, extra in product((one for one in ROUTES if "spaces" in one.path), spaces, more):
        path = route.path.replace("{space}", space).replace("{memory_id}", hidden).replace("{member}", "eve")
        body = {"query": "PIN", "question": "Our PIN?", "messages": "hi", "text": "mine", "role": "owner", **extra}
        sent = {name: value for name, value in body.items() if name in (route.body or ())}
        if route.path == "/v1/spaces/{space}" and route.method == "DELETE" and space == "evil":
            continue  # her own
        reply = await users.send("eve", route.method, path, json=sent if route.body is not None else None)
        assert reply.status_code < 500, (route, reply.text)
        leaked += "quagga" in reply.text
        tried += 1
    assert tried > 250
    assert leaked == 0
    listed = (await users.send("ann", "GET", f"{TEAM}/memories")).json()["results"]
    assert [one["memory"] for one in listed] == ["Our PIN is quagga."]
    members = (await users.send("ann", "GET", f"{TEAM}/members")).json()
    assert [one["user_id"] for one in members] == ["ann", "bob", "cat"]
