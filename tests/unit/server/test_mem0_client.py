"""mem0's own client against a running server, unchanged: the package `mem0ai`, which the session `mcp` installs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("mem0") is None:
    pytest.skip("mem0ai is not installed", allow_module_level=True)

from mem0_core import Memory
from mem0_core.server.keys import KeyRing

FILTERS = {"user_id": "maya"}


@pytest.fixture(scope="module")
def mem0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield the package; it writes a file into its folder, and reports calls, unless these variables are set."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        patched.setenv("MEM0_TELEMETRY", "False")
        yield import_module("mem0")


@pytest.fixture(params=["MemoryClient", "AsyncMemoryClient"])
def client(request: pytest.FixtureRequest, mem0: Any, url: str, keys: KeyRing) -> Any:
    return getattr(mem0, request.param)(api_key=keys.create("laptop", user_id="maya")[0], host=url)


async def use(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def test_a_memory_is_added_found_changed_and_deleted(client: Any, memory: Memory) -> None:
    said = [{"role": "user", "content": "I live in Lisbon."}]
    added = await use(client.add(said, user_id="maya", metadata={"topic": "home"}))
    assert [(one["event"], one["memory"]) for one in added["results"]] == [("ADD", "I live in Lisbon.")]
    known = added["results"][0]["id"]
    found = await use(client.search("Where do I live?", filters=FILTERS, top_k=3, rerank=False))
    assert [(one["id"], one["metadata"]) for one in found["results"]] == [(known, {"topic": "home"})]
    assert (await use(client.get(known)))["memory"] == "I live in Lisbon."
    assert (await use(client.update(known, text="I live in Porto.")))["memory"] == "I live in Porto."
    assert (await use(client.update(known, metadata={"topic": "city"})))["metadata"] == {"topic": "city"}
    assert [change["event"] for change in await use(client.history(known))][:2] == ["ADD", "UPDATE"]
    await use(client.delete(known))
    assert memory.get_all(user_id="maya")["results"] == []


async def test_pages_and_deletions_have_its_shapes(client: Any, memory: Memory) -> None:
    for number in range(5):
        await use(client.add(f"My locker number {number} is blue.", filters=FILTERS))
    pages = [await use(client.get_all(filters=FILTERS, page=page, page_size=2)) for page in (1, 2, 3)]
    assert [len(page["results"]) for page in pages] == [2, 2, 1]
    assert ([page["count"] for page in pages], pages[2]["next"]) == ([5, 5, 5], None)
    await use(client.delete_all(user_id="maya"))
    assert memory.get_all(user_id="maya")["results"] == []
    await use(client.add("I drink tea.", user_id="maya"))
    await use(client.delete_users(user_id="maya"))
    assert memory.get_all(user_id="maya")["results"] == []


async def test_errors_are_those_of_its_own_server(client: Any, mem0: Any, url: str) -> None:
    errors = import_module("mem0.exceptions")
    with pytest.raises(errors.MemoryNotFoundError):
        await use(client.get("8a3f"))
    with pytest.raises(errors.AuthenticationError):
        await use(client.delete_all(user_id="ben"))
    with pytest.raises(errors.ValidationError):
        await use(client.add("I drink tea.", user_id="maya", custom_categories=[{"food": "drinks"}]))
    with pytest.raises(ValueError, match="unknown or revoked"):
        mem0.MemoryClient(api_key="m0k_wrong", host=url)
