"""The MCP server over streamable HTTP: a real server and the client of the official SDK; each key has its scope."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")
pytest.importorskip("uvicorn")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mem0_core import Memory, Principal
from mem0_core.server import _mcp_http
from mem0_core.server._limits import RateLimiter
from mem0_core.server.keys import KeyRing

QUESTION = {"question": "Where do I live?"}


async def use(url: str, secret: str, *calls: tuple[str, dict[str, Any]], mode: Any = "auto") -> list[Any]:
    """Return the results of tools that a client with a key calls one after the other."""
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        return [await client.call_tool(tool, arguments) for tool, arguments in calls]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_http_sees_the_stages_of_its_call(url: str, keys: KeyRing, mode: Any) -> None:
    stages: list[str] = []

    async def note(count: float, total: float | None, message: str) -> None:
        stages.append(message)

    headers = {"Authorization": f"Bearer {keys.create('laptop', user_id='maya')[0]}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        await client.call_tool("remember", {"text": "I live in Lisbon."}, progress_callback=note)
    assert stages == ["embedding", "writing", "done"]


async def test_clients_at_once_act_in_the_scope_of_their_keys(url: str, memory: Memory, keys: KeyRing) -> None:
    places = {"maya": "Lisbon", "ben": "Oslo", "zoe": "Turin"}
    users = list(places) * 2
    results = await asyncio.gather(
        *(
            use(
                url,
                keys.create("laptop", user_id=user)[0],
                ("remember", {"text": f"I live in {places[user]}."}),
                ("answer", QUESTION),
                mode=mode,
            )
            for user, mode in zip(users, ["auto", "legacy"] * 3, strict=True)
        )
    )
    answers = [answered.structured_content["answer"] for _, answered in results]
    assert answers == [places[user] for user in users]
    for user, place in places.items():
        assert [one["memory"] for one in memory.get_all(user_id=user)["results"]] == [f"I live in {place}."]


async def test_a_key_of_a_user_reaches_the_spaces_of_that_user_alone(url: str, memory: Memory, keys: KeyRing) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team")
    ann.set_member("team", "bob", "writer")
    text = {"text": "We deploy on Thursday.", "space": "team"}
    recall = ("recall", {"query": "When do we deploy?"})
    for user, agent, refused in (("dan", None, "not a member"), ("bob", "helper", "has no spaces")):
        secret = keys.create("other", user_id=user, agent_id=agent)[0]
        (written, found) = await use(url, secret, ("remember", text), recall)
        assert refused in written.content[0].text
        assert found.structured_content["memories"] == []
    (written, found) = await use(url, keys.create("laptop", user_id="bob")[0], ("remember", text), recall)
    assert not written.is_error
    assert [one["space"] for one in found.structured_content["memories"]] == ["team"]


async def test_a_key_without_rights_changes_nothing(url: str, memory: Memory, keys: KeyRing) -> None:
    reader = keys.create("reader", user_id="maya", is_read_only=True)[0]
    (refused,) = await use(url, reader, ("remember", {"text": "I live in Lisbon."}))
    assert refused.is_error
    assert "may only read" in refused.content[0].text
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"query": "x"}},
    }
    accepted = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient() as http:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer m0k_x"}, 401),
            ({"Authorization": f"Bearer {keys.create('admin')[0]}"}, 403),
            ({"X-API-Key": reader, "Host": "evil.example"}, 421),
            ({"X-API-Key": reader, "Origin": "https://evil.example"}, 403),
        ):
            reply = await http.post(f"{url}/mcp", json=call, headers={**accepted, **headers})
            assert reply.status_code == status, headers
        large = await http.post(f"{url}/mcp", content=b" " * (2**20 + 1), headers={**accepted, "X-API-Key": reader})
        assert large.status_code == 413
    assert memory.stats()["memories"] == 0


def test_a_server_imports_the_sdk_at_the_first_request_for_mcp() -> None:
    script = (
        "import sys, tempfile; from mem0_core import Memory; from mem0_core.server.rest import build_rest_app\n"
        "with Memory({'path': tempfile.mkdtemp()}) as memory: build_rest_app(memory, None); print('mcp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


async def test_requests_at_once_make_one_endpoint_and_a_failure_is_tried_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endpoint:
        is_running = False

        @asynccontextmanager
        async def run(self) -> AsyncIterator[None]:
            self.is_running = True
            yield
            self.is_running = False

        async def __call__(self, *_: Any) -> None:
            assert self.is_running

    made: list[Endpoint] = []

    def make(*_: Any) -> Endpoint:
        made.append(Endpoint())
        if len(made) == 1:
            raise ImportError("no SDK")
        return made[-1]

    monkeypatch.setattr(_mcp_http, "McpEndpoint", make)
    endpoint: Any = _mcp_http.LazyMcpEndpoint(memory, None, RateLimiter())
    async with endpoint.run():
        with pytest.raises(ImportError):
            await endpoint({}, None, None)
        await asyncio.gather(*(endpoint({}, None, None) for _ in range(3)))
        assert len(made) == 2
    assert not made[-1].is_running
