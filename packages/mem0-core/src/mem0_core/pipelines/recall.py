"""Recalling: one search flow (seed 002, memory search, left branch).

embed the query -> nearest memories of the scope -> optional rerank -> threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mem0_core.errors import ConfigError, QueryError
from mem0_core.filters import Filter
from mem0_core.flow import Flow, do
from mem0_core.pipelines.near import embed_texts, nearest_items
from mem0_core.ports import Ports
from mem0_core.records import Hit, Scope, is_expired, is_valid_text

__all__ = ["Query", "recall"]


@dataclass(frozen=True, slots=True)
class Query:
    """One call of `search`.

    Attributes:
        limit: how many hits at most.
        threshold: hits with a lower score are left out; scores are cosines cut to [0, 1].
        today: ``YYYY-MM-DD``; memories that expired before it are left out.
        rerank: whether the reranker orders the hits; None for yes where there is one.
    """

    text: str
    scope: Scope
    today: str
    limit: int = 10
    filter: Filter | None = None
    threshold: float | None = None
    rerank: bool | None = None


def recall(ports: Ports, query: Query) -> Flow[list[Hit]]:
    """The memories of a scope nearest to a text, best first.

    Raises:
        QueryError: the text is empty or not valid Unicode.
        ConfigError: a rerank is asked for and there is no reranker, or the store has another embedder's vectors.
    """
    _check(ports, query)
    vectors = yield from embed_texts(ports, [query.text], kind="query")
    only = None
    if query.filter is not None:
        only = yield from do(ports.store.rows, query.scope, filter=query.filter)
    wanted = query.limit
    while True:
        (found,) = yield from nearest_items(ports, query.scope, vectors, wanted, only=only)
        hits = [Hit(item, min(1.0, max(0.0, score))) for item, score in found if not is_expired(item, query.today)]
        if len(hits) >= query.limit or len(found) < wanted:
            break
        wanted *= 4  # expired memories took places in the pool
    hits = hits[: query.limit]
    if ports.reranker is not None and query.rerank is not False:
        hits = yield from _rerank(ports, query.text, hits)
    return [hit for hit in hits if query.threshold is None or hit.score >= query.threshold]


def _check(ports: Ports, query: Query) -> None:
    if not isinstance(query.text, str) or not query.text.strip():
        raise QueryError("the query is empty: use get_all to list memories", query=query.text)
    if not is_valid_text(query.text):
        raise QueryError("the query is not valid Unicode (it holds a lone surrogate)", query=query.text)
    if query.rerank and ports.reranker is None:
        raise ConfigError("reranker: rerank=True needs a reranker, and none is configured")


def _rerank(ports: Ports, text: str, hits: Sequence[Hit]) -> Flow[list[Hit]]:
    assert ports.reranker is not None
    if not hits:
        return []
    scores = yield from do(ports.reranker.score, text, [hit.item.text for hit in hits])
    rescored = [Hit(hit.item, min(1.0, max(0.0, float(score)))) for hit, score in zip(hits, scores, strict=True)]
    return sorted(rescored, key=lambda hit: -hit.score)
