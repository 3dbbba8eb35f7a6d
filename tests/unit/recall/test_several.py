"""Searches of several scopes at once: they overlap on a server, keep their order, and embed the query once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import pytest

from mem0_core.flow import Flow, arun, do, run
from mem0_core.interfaces import Embedder, Ports
from mem0_core.recall import several
from mem0_core.recall.several import search_each, share_queries
from tests.support import hang_guard


class Server:
    """A server that answers when as many calls as fit wait for it."""

    def __init__(self, together: int) -> None:
        self._barrier = threading.Barrier(together)
        self._waiting: list[asyncio.Future[None]] = []
        self._together = together
        self.asked: list[int] = []

    def ask(self, number: int) -> int:
        self.asked.append(number)
        self._barrier.wait(30)
        return number * 10

    async def aask(self, number: int) -> int:
        self.asked.append(number)
        self._waiting.append(asyncio.get_running_loop().create_future())
        if len(self._waiting) == self._together:
            for one in self._waiting:
                one.set_result(None)
        await asyncio.gather(*self._waiting)
        return number * 10


def ask_each(server: Server, places: Sequence[int]) -> Any:
    def search(place: int) -> Flow[int]:
        return (yield from do(server.ask, place))

    return search_each(places, search)


def test_searches_of_a_server_overlap_and_keep_their_order() -> None:
    with hang_guard(60):
        assert run(ask_each(Server(3), [1, 2, 3])) == [(1, 10), (2, 20), (3, 30)]
        assert asyncio.run(arun(ask_each(Server(3), [1, 2, 3]))) == [(1, 10), (2, 20), (3, 30)]


def test_no_more_than_four_searches_are_made_at_a_time() -> None:
    server = Server(several.MAX_LANES)
    with hang_guard(60):
        assert run(ask_each(server, list(range(8)))) == [(place, place * 10) for place in range(8)]
    assert sorted(server.asked[:4]) == [0, 1, 2, 3]
    assert run(ask_each(server, [])) == []


def test_an_error_of_one_search_is_raised_after_the_others_have_ended() -> None:
    ended: list[int] = []

    def search(place: int) -> Flow[int]:
        yield from do(ended.append, place)
        if place == 1:
            raise LookupError("gone")
        return place

    with pytest.raises(LookupError, match="gone"):
        run(search_each([0, 1, 2], search))
    assert sorted(ended) == [0, 1, 2]


class SlowEmbedder:
    """An embedder on a server, which counts its calls."""

    name, dims, inline = "slow", 2, False

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> Any:
        self.calls += 1
        threading.Event().wait(0.01)
        return np.ones((len(texts), 2), np.float32)

    async def aembed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> Any:
        self.calls += 1
        await asyncio.sleep(0.01)
        return np.ones((len(texts), 2), np.float32)


@pytest.mark.parametrize("driver", [run, lambda flow: asyncio.run(arun(flow))], ids=["sync", "async"])
def test_searches_that_overlap_embed_the_query_once(driver: Any) -> None:
    embedder = SlowEmbedder()
    ports = share_queries(Ports(store=cast(Any, None), index=cast(Any, None), embedder=cast(Embedder, embedder)))

    def search(place: int) -> Flow[Any]:
        return (yield from do(ports.embedder.embed, ["Who?"], kind="query"))

    found = driver(search_each(list(range(8)), search))
    assert [vectors.shape for _, vectors in found] == [(1, 2)] * 8
    assert embedder.calls == 1
