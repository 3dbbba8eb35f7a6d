"""Searches of several scopes at once: the query is embedded once, and the results are ranked together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mem0_core.domain.records import Hit, Relation
from mem0_core.interfaces import Embedder, Ports

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["merge_hits", "merge_relations", "share_queries"]

T = TypeVar("T")


def share_queries(ports: Ports) -> Ports:
    """Return ports whose embedder embeds each query once, for the searches of one call."""
    return replace(ports, embedder=_QueryCache(ports.embedder))


class _QueryCache:
    """An `Embedder` that keeps the vectors of queries. It lives as long as one call."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, ...], Any] = {}
        self.name, self.dims = embedder.name, embedder.dims
        self.inline = getattr(embedder, "inline", False)
        if hasattr(embedder, "aembed"):
            self.aembed = self._aembed

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Return the embeddings of texts."""
        if kind == "document":
            return self._embedder.embed(texts, kind=kind)
        key = tuple(texts)
        if key not in self._known:
            self._known[key] = self._embedder.embed(texts, kind=kind)
        vectors: NDArray[np.float32] = self._known[key]
        return vectors

    async def _aembed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> NDArray[np.float32]:
        embedder: Any = self._embedder
        key = tuple(texts)
        if kind == "query" and key in self._known:
            return self._known[key]  # type: ignore[no-any-return]
        vectors: NDArray[np.float32] = await embedder.aembed(texts, kind=kind)
        if kind == "query":
            self._known[key] = vectors
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
