"""Searches of several scopes at once: the query is embedded once, and the results are ranked together.

Each scope is searched by itself, and on a server the searches overlap. One read over all scopes is no option there: a
transaction has one scope, which row-level security checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mem0_core.domain.records import Hit, Relation
from mem0_core.flow import Flow, both
from mem0_core.interfaces import Embedder, Ports

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

S = TypeVar("S")
T = TypeVar("T")

MAX_LANES = 4  # of a pool of 10 connections, so that one caller with many spaces does not delay the others


def search_each(places: Sequence[S], search: Callable[[S], Flow[T]]) -> Flow[list[tuple[S, T]]]:
    """Search each place and return the places with their results, in the same order.

    At most four searches are made at a time: they overlap where the calls wait for a server.
    """
    if not places:
        return []
    count = min(MAX_LANES, len(places))
    lanes = yield from _run_lanes([_search_in_turn(places[lane::count], search) for lane in range(count)])
    found = [lanes[place % count][place // count] for place in range(len(places))]
    return list(zip(places, found, strict=True))


def _run_lanes(lanes: Sequence[Flow[T]]) -> Flow[list[T]]:
    if len(lanes) == 1:
        return [(yield from lanes[0])]
    first, rest = yield from both(lanes[0], _run_lanes(lanes[1:]))
    return [first, *rest]


def _search_in_turn(places: Sequence[S], search: Callable[[S], Flow[T]]) -> Flow[list[T]]:
    found = []
    for place in places:
        found.append((yield from search(place)))  # noqa: PERF401 - a comprehension cannot yield
    return found


def share_queries(ports: Ports) -> Ports:
    """Return ports whose embedder embeds each query once, for the searches of one call."""
    return replace(ports, embedder=_QueryCache(ports.embedder))


class _QueryCache:
    """An `Embedder` that keeps the vectors of queries. It lives as long as one call."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, ...], Any] = {}
        self._lock = Lock()  # searches that overlap wait for one embedding
        self._alock: Any = None
        self.name, self.dims = embedder.name, embedder.dims
        self.inline = getattr(embedder, "inline", False)
        if hasattr(embedder, "aembed"):
            self.aembed = self._aembed

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Return the embeddings of texts."""
        if kind == "document":
            return self._embedder.embed(texts, kind=kind)
        key = tuple(texts)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._embedder.embed(texts, kind=kind)
        vectors: NDArray[np.float32] = self._known[key]
        return vectors

    async def _aembed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> NDArray[np.float32]:
        embedder: Any = self._embedder
        key = tuple(texts)
        if kind == "document":
            return await embedder.aembed(texts, kind=kind)  # type: ignore[no-any-return]
        if self._alock is None:
            from asyncio import Lock as AsyncLock  # which a program without an event loop does not need

            self._alock = AsyncLock()
        async with self._alock:
            if key not in self._known:
                self._known[key] = await embedder.aembed(texts, kind=kind)
        vectors: NDArray[np.float32] = self._known[key]
        return vectors


def merge_hits(lists: Sequence[tuple[T, Sequence[Hit]]]) -> list[tuple[T, Hit]]:
    """Merge ranked lists by score, each hit with the label of its list. The order within each list stays.

    A list may rank a hit above others with higher scores, because it answers the query; such a hit counts with the
    highest score behind it.
    """
    ranked: list[tuple[tuple[bool, float], T, Hit]] = []
    for label, hits in lists:
        best = (False, 0.0)
        kept = []
        for hit in reversed(hits):
            best = max(best, (hit.is_answer, hit.score))
            kept.append((best, label, hit))
        ranked += reversed(kept)
    return [(label, hit) for _, label, hit in sorted(ranked, key=lambda one: one[0], reverse=True)]


def merge_relations(
    lists: Sequence[tuple[T, Sequence[tuple[Relation, float]]]],
) -> list[tuple[T, tuple[Relation, float]]]:
    """Merge lists of relations by score, each relation with the label of its list."""
    every = [(label, pair) for label, pairs in lists for pair in pairs]
    return sorted(every, key=lambda one: -one[1][1])
