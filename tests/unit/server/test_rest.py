"""The REST interface: routes of mem0's server and client, keys, and hostile requests."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory
from mem0_core.cli import main
from mem0_core.errors import ConfigError, InputError
from mem0_core.server import _requests
from mem0_core.server.keys import KeyRing
from mem0_core.server.rest import build_rest_app

URL = "http://localhost:8765"


def connect(memory: Memory, keys: KeyRing | None, secret: str | None = None, **headers: str) -> Any:
    """Return a client of the server in this process."""
    transport = httpx.ASGITransport(build_rest_app(memory, keys))
    sent = headers if secret is None else {"Authorization": f"Token {secret}", **headers}
    return httpx.AsyncClient(transport=transport, base_url=URL, headers=sent)


@pytest.fixture
async def maya(memory: Memory, keys: KeyRing) -> AsyncIterator[Any]:
    async with connect(memory, keys, keys.create("laptop", user_id="maya")[0]) as client:
        yield client


async def test_the_routes_of_mem0s_client_keep_their_shapes(maya: Any) -> None:
    assert (await maya.get("/v1/ping/")).json()["status"] == "ok"
    said = [{"role": "user", "content": "I live in Lisbon."}]
    added = (await maya.post("/v3/memories/add/", json={"messages": said, "user_id": "maya", "infer": True})).json()
    assert [(one["event"], one["memory"]) for one in added["results"]] == [("ADD", "I live in Lisbon.")]
    found = (
        await maya.post("/v3/memories/search/", json={"query": "Where do I live?", "filters": {"user_id": "maya"}})
    ).json()["results"][0]
    assert found["memory"] == "I live in Lisbon."
    one = f"/v1/memories/{found['id']}/"
    assert (await maya.get(one)).json()["user_id"] == "maya"
    updated = (await maya.put(one, json={"text": "I live in Porto."})).json()
    assert (updated["id"], updated["memory"]) == (found["id"], "I live in Porto.")
    tagged = (await maya.put(one, json={"metadata": {"place": "home"}})).json()
    assert (tagged["memory"], tagged["metadata"]) == ("I live in Porto.", {"place": "home"})
    for verdict, counts in (("POSITIVE", (1, 0)), ("VERY_NEGATIVE", (1, 1)), (None, (0, 0))):
        rated = (await maya.post("/v1/feedback/", json={"memory_id": found["id"], "feedback": verdict})).json()
        assert rated == {"id": found["id"], "useful": counts[0], "useless": counts[1]}
    assert (await maya.post("/v1/feedback/", json={"memory_id": found["id"], "feedback": "GOOD"})).status_code == 400
    events = [change["event"] for change in (await maya.get(f"{one}history/")).json()]
    assert events[:2] == ["ADD", "UPDATE"]
    assert "message" in (await maya.delete(one)).json()
    gone = await maya.get(one)
    assert (gone.status_code, "no memory has the id" in gone.json()["detail"]) == (404, True)


async def test_pages_hold_every_memory_once(maya: Any) -> None:
    for number in range(5):
        await maya.post("/v3/memories/add/", json={"messages": f"My locker number {number} is blue."})
    seen, url = [], "/v3/memories/?page_size=2&page=1"
    while url:
        page = (await maya.post(url, json={"filters": {"user_id": "maya"}})).json()
        assert page["count"] == 5
        seen += [one["id"] for one in page["results"]]
        url = page["next"]
    assert len(seen) == len(set(seen)) == 5


async def test_the_routes_of_mem0s_server_keep_their_shapes(memory: Memory, keys: KeyRing) -> None:
    async with connect(memory, keys, **{"X-API-Key": keys.create("admin")[0]}) as client:
        said = [{"role": "user", "content": "I drink tea."}]
        added = (await client.post("/memories", json={"messages": said, "user_id": "maya"})).json()["results"][0]
        assert added.keys() >= {"id", "memory", "event"}
        listed = (await client.get("/memories", params={"user_id": "maya", "top_k": 5})).json()["results"]
        assert [one["memory"] for one in listed] == ["I drink tea."]
        found = (await client.post("/search", json={"query": "tea", "user_id": "maya", "top_k": 3})).json()["results"]
        assert found[0]["score"] > 0
        one = f"/memories/{added['id']}"
        assert (await client.get("/memories/8a3f")).json() is None
        assert (await client.put(one, json={"text": "I drink coffee."})).json()["message"]
        assert [change["event"] for change in (await client.get(f"{one}/history")).json()] == ["ADD", "UPDATE"]
        assert (await client.delete(one)).json() == {"message": "Memory deleted successfully"}
        memory.add("I drink milk.", user_id="ben")
        assert (await client.delete("/entities/user/ben")).status_code == 200
        assert memory.get_all(user_id="ben")["results"] == []
        assert (await client.delete("/memories", params={"user_id": "maya"})).status_code == 200
        assert (await client.post("/reset")).json() == {"message": "All memories reset"}


async def test_our_routes_return_the_results_of_the_library(maya: Any, memory: Memory) -> None:
    memory.add("My sister Anna works at Galp.", user_id="maya")
    question = "Where does my sister work?"
    assert (await maya.post("/v1/answer", json={"question": question})).json()["answer"] == "Galp"
    assert "Galp" in (await maya.post("/v1/context", json={"query": question})).json()["text"]
    assert (await maya.get("/v1/relations")).json() == memory.relations(user_id="maya")
    for path in ("/healthz", "/readyz"):
        assert (await maya.get(path)).json() == {"status": "ok"}


async def test_a_key_reaches_only_what_it_is_bound_to(memory: Memory, keys: KeyRing) -> None:
    secret = memory.add("My PIN is quagga.", user_id="ben")["results"][0]["id"]
    memory.add("My PIN is 1234.", user_id="maya", run_id="r1")
    before = memory.stats()
    bound: list[dict[str, Any]] = [
        {"user_id": "maya"},
        {"agent_id": "helper"},
        {"run_id": "r1"},
        {"user_id": "maya", "run_id": "r1"},
    ]
    named = [{}, {"user_id": "ben"}, {"user_id": "ben", "run_id": "r1"}, {"user_id": "*"}, {"agent_id": "ben"}]
    filters = [{"user_id": "ben"}, {"OR": [{"user_id": "ben"}, {"user_id": "maya"}]}, {"NOT": [{"user_id": "maya"}]}]
    tried = 0
    for key_ids, is_read_only in product(bound, (True, False)):
        async with connect(memory, keys, keys.create("bound", **key_ids, is_read_only=is_read_only)[0]) as client:
            for ids, one in product(named, (f"/memories/{secret}", f"/v1/memories/{secret}/")):
                replies = [await client.get(one, params=ids), await client.put(one, json={"text": "mine", **ids})]
                replies += [await client.delete(one, params=ids), await client.get(f"{one}history", params=ids)]
                replies += [await client.post("/v1/answer", json={"question": "What is my PIN?", **ids})]
                assert not any("quagga" in reply.text for reply in replies), (key_ids, ids)
                tried += len(replies)
            for given in filters:
                for path, more in (
                    ("/search", {"query": "PIN"}),
                    ("/v3/memories/", {}),
                    ("/v1/context", {"query": "PIN"}),
                ):
                    assert "quagga" not in (await client.post(path, json={"filters": given, **more})).text
                    tried += 1
            assert (await client.request("DELETE", "/memories", params={"user_id": "ben"})).status_code in (403, 200)
            assert (await client.post("/reset")).status_code == 403
            tried += 2
    assert tried > 400
    assert memory.get(secret, user_id="ben")
    assert memory.stats()["memories"] == before["memories"]


async def test_a_key_that_only_reads_changes_nothing(memory: Memory, keys: KeyRing) -> None:
    kept = memory.add("I drink tea.", user_id="maya")["results"][0]["id"]
    async with connect(memory, keys, keys.create("reader", user_id="maya", is_read_only=True)[0]) as client:
        assert (await client.post("/search", json={"query": "tea"})).json()["results"]
        tries = [
            await client.post("/memories", json={"messages": "I drink coffee."}),
            await client.put(f"/memories/{kept}", json={"text": "I drink coffee."}),
            await client.delete(f"/memories/{kept}"),
            await client.delete("/memories"),
            await client.delete("/v2/entities/user/maya/"),
        ]
        assert [reply.status_code for reply in tries] == [403] * len(tries)
    assert [one["memory"] for one in memory.get_all(user_id="maya")["results"]] == ["I drink tea."]


async def test_a_missing_wrong_or_revoked_key_is_refused(memory: Memory, keys: KeyRing) -> None:
    secret, key = keys.create("laptop", user_id="maya")
    for headers in ({}, {"Authorization": "Token m0k_x"}, {"Authorization": f"Basic {secret}"}, {"X-API-Key": ""}):
        async with connect(memory, keys, **headers) as client:
            reply = await client.post("/search", json={"query": "tea"})
            assert (reply.status_code, reply.json()["title"]) == (401, "Unauthorized")
            assert (await client.get("/healthz")).status_code == 200
    async with connect(memory, keys, secret) as client:
        assert (await client.get("/memories")).status_code == 200
        keys.revoke(key.id)
        assert (await client.get("/memories")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:8765"}, 421),
        ({"Host": "evil.example@localhost:8765"}, 421),
        ({"Host": "["}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": URL}, 200),
    ],
)
async def test_requests_of_other_pages_and_names_are_refused(
    memory: Memory, keys: KeyRing, headers: dict[str, str], status: int
) -> None:
    async with connect(memory, None, **headers) as client:
        reply = await client.get("/memories", params={"user_id": "maya"})
        assert reply.status_code == status
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b'{"query": "tea"}', "text/plain", 415),
        (b"query=tea", "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"query": 5}', "application/json", 400),
        (b'{"query": "tea", "top_k": "many"}', "application/json", 400),
        (b'{"query": "tea", "threshold": NaN}', "application/json", 400),
        (b'{"query": "tea", "user_id": ["maya"]}', "application/json", 400),
        (b'{"query": "tea", "nonsense": 1}', "application/json", 400),
        (b'{"query": "' + b"x" * _requests.MAX_BODY_BYTES + b'"}', "application/json", 413),
    ],
)
async def test_a_wrong_body_is_refused_with_a_reason(maya: Any, content: bytes, kind: str, status: int) -> None:
    reply = await maya.post("/search", content=content, headers={"Content-Type": kind})
    assert (reply.status_code, reply.json()["status"]) == (status, status)
    assert reply.json()["detail"]


async def test_a_slow_body_is_refused(maya: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_requests, "BODY_SECONDS", 0.05)

    async def drip() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    reply = await maya.post("/search", content=drip(), headers={"Content-Type": "application/json"})
    assert reply.status_code == 408


async def test_a_failure_tells_no_secret(maya: Any, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(memory, "asearch", fail)
    reply = await maya.post("/search", json={"query": "tea"})
    assert reply.status_code == 500
    assert "hunter2" not in reply.text


def test_keys_are_stored_as_digests_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    ring = KeyRing(file)
    secret, key = ring.create("laptop", user_id="maya")
    assert secret not in file.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = KeyRing(file)
    assert again.find(secret) == key
    assert again.find(secret + "x") is None
    with pytest.raises(InputError, match="no key has the id"):
        ring.revoke("none")
    file.write_text("[{}]", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a file of keys"):
        KeyRing(file)


def test_the_command_manages_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--path", str(tmp_path), "--json"]
    assert main(["keys", "--create", "laptop", "--user", "maya", *folder]) == 0
    created = json.loads(capsys.readouterr().out)[0]
    assert created["key"].startswith("m0k_")
    assert main(["keys", *folder]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == [{name: value for name, value in created.items() if name != "key"}]
    assert main(["keys", "--revoke", created["id"], *folder]) == 0
    assert main(["keys", "--path", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("no keys\n")


def test_the_command_refuses_to_serve_strangers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--path", str(tmp_path)]) == 2
    assert "there is no key" in capsys.readouterr().err
    assert main(["serve", "--no-keys", "--host", "0.0.0.0", "--path", str(tmp_path)]) == 2
    assert "--no-keys serves every caller" in capsys.readouterr().err


async def test_wrong_requests_are_explained(memory: Memory) -> None:
    wrong = {
        ("POST", "/search", b"{bad"): "the body is not valid JSON: Expecting property name",
        ("POST", "/search", b"[]"): "the body must be a JSON object; send one such as {",
        ("POST", "/search", b'{"querry": "tea"}'): "unknown fields: querry; did you mean 'query'? (accepted: ",
        ("GET", "/memory", None): "there is no path '/memory'; did you mean '/memories'?; GET /openapi.json lists all",
        ("PATCH", "/search", None): "/search does not accept PATCH; accepted: POST; use one of them",
        ("PATCH", "/memories/1", None): "/memories/1 does not accept PATCH; accepted: DELETE, GET, HEAD, PUT; use one",
    }
    async with connect(memory, None) as client:
        for (method, path, body), reason in wrong.items():
            reply = await client.request(method, path, content=body, headers={"Content-Type": "application/json"})
            assert reason in reply.json()["detail"]
        reply = await client.request("PATCH", "/memories/" + "1" * 3000)
        assert len(reply.json()["detail"]) < 200
