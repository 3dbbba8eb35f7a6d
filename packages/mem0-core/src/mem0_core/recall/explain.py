"""Why a search did not find a memory: the first thing on its way that stopped it.

In the order of a search: it is not there, not this scope's, expired, filtered out; no source brought it; others scored
higher; the reranker, the threshold or the gate put it aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from mem0_core.domain.filters import matches
from mem0_core.domain.records import Event, Hit, MemoryItem, is_expired
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.recall.ranking import RankedMemory, rank_rows_by_words
from mem0_core.recall.search import (
    PreparedQuery,
    SearchNotes,
    SearchQuery,
    prepare_query,
    rank_hits,
    retrieve_ranked,
)

if TYPE_CHECKING:
    pass

__all__ = ["MissingReason", "SearchDiagnosis", "explain_missing"]

MissingReason = Literal[
    "found",
    "unknown",
    "deleted",
    "other_scope",
    "not_said_yet",
    "expired",
    "filtered",
    "not_in_pool",
    "below_limit",
    "below_threshold",
    "below_gate",
    "lost_at_rerank",
]

_MAX_RANK = 10_000  # places up to which a source is asked where a memory stands


@dataclass(frozen=True, slots=True)
class SearchDiagnosis:
    """What became of a memory in a search.

    Attributes:
        reason: what stopped it, or that nothing did.
        detail: the same in a sentence.
        rank: its place among what was scored, from 1; with "found" its place in the result.
        ranks: its place in each source, from 1; None where that does not know it (or only beyond place 10,000).
        score: what it scored, None where it never was.
        signals, weights: what that was made of.
    """

    reason: MissingReason
    detail: str
    rank: int | None = None
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    score: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


def explain_missing(ports: Ports, query: SearchQuery, memory_id: str) -> Flow[SearchDiagnosis]:
    """Make a search, and tell what became of a memory in it.

    Raises:
        whatever `recall` does.
    """
    reading = yield from prepare_query(ports, query)
    item = yield from do(ports.store.get, memory_id)
    if item is None:
        return (yield from _diagnose_absent(ports, memory_id))
    if not query.scope.ids.items() <= item.scope.ids.items():
        return SearchDiagnosis("other_scope", "it belongs to another user, agent or run than the search is for")
    hits = yield from rank_hits(ports, query, reading, SearchNotes())
    place = next((place for place, hit in enumerate(hits, 1) if hit.item.id == memory_id), None)
    row = yield from do(ports.store.row, memory_id)
    if row is None:
        return (yield from _diagnose_absent(ports, memory_id))  # just now
    if place is None and (stopped := _diagnose_excluded(query, reading, item, row)) is not None:
        return stopped
    ranks = yield from _compute_source_ranks(ports, query, reading, row)
    if place is not None:
        return replace(_diagnose_hit(query, hits, place), ranks=ranks)
    return replace((yield from _diagnose_unranked(ports, query, reading, row, hits)), ranks=ranks)


def _diagnose_absent(ports: Ports, memory_id: str) -> Flow[SearchDiagnosis]:
    history = yield from do(ports.store.history, memory_id)
    if history and history[-1].event == Event.DELETE:
        return SearchDiagnosis(
            "deleted", f"it was deleted on {(history[-1].updated_at or history[-1].created_at or '')[:10]}"
        )
    return SearchDiagnosis("unknown", "no memory has that id, and none is on record to have had it")


def _diagnose_excluded(
    query: SearchQuery, reading: PreparedQuery, item: MemoryItem, row: int
) -> SearchDiagnosis | None:
    """Why a memory may not be found at all, if it may not."""
    if is_expired(item, query.today):
        return SearchDiagnosis("expired", f"it expired on {item.expiration_date}")
    if reading.only is None or row in reading.only:
        return None
    if query.filter is not None and not matches(query.filter, item):
        return SearchDiagnosis("filtered", "the filters leave it out")
    return SearchDiagnosis(
        "not_said_yet", f"it does not say since {(query.as_of or '')[:10]} or before what it says now"
    )


def _diagnose_hit(query: SearchQuery, hits: list[Hit], place: int) -> SearchDiagnosis:
    """What became of a memory that was among the best hits."""
    hit, best = hits[place - 1], hits[0].score
    said = SearchDiagnosis("found", f"it is result {place}", place, {}, hit.score, hit.signals, hit.weights)
    if query.allow_no_answer and best < query.recipe.gate:
        why = f"the best hit scores {best:.3f}, below the gate of {query.recipe.gate:g}: there is no answer"
        return replace(said, reason="below_gate", detail=why)
    if hit.score < query.min_score:
        why = f"it scores {hit.score:.3f}, below the threshold of {query.min_score:g}"
        return replace(said, reason="below_threshold", detail=why)
    if place <= query.limit:
        return said
    if hit.before_rerank is not None:
        why = f"it scores {hit.score:.3f} with the reranker, {hit.before_rerank:.3f} before: place {place}"
        return replace(said, reason="lost_at_rerank", detail=f"{why}, and the limit is {query.limit}")
    return replace(said, reason="below_limit", detail=f"it is in place {place}, and the limit is {query.limit}")


def _diagnose_unranked(
    ports: Ports, query: SearchQuery, reading: PreparedQuery, row: int, hits: list[Hit]
) -> Flow[SearchDiagnosis]:
    """What became of a memory that might have been found, and was not among the best."""
    size = query.recipe.pool if query.recipe.is_dense_only else max(query.recipe.pool, 2 * query.limit)
    found, _ = yield from retrieve_ranked(ports, query, reading, size)
    place, one = _find_place(found, row)
    if one is None:
        why = f"no source brings it: each gives its best {size}"
        return SearchDiagnosis("not_in_pool", why)
    lowest = f", the last that was taken {hits[-1].score:.3f}" if hits else ""
    why = f"it scores {one.score:.3f}{lowest}: place {place}, and {len(hits)} are taken"
    return SearchDiagnosis("below_limit", why, place, {}, one.score, one.signals, one.weights)


def _find_place(found: Iterator[RankedMemory], row: int) -> tuple[int | None, RankedMemory | None]:
    return next(((place, one) for place, one in enumerate(found, 1) if one.row == row), (None, None))


def _compute_source_ranks(
    ports: Ports, query: SearchQuery, reading: PreparedQuery, row: int
) -> Flow[dict[str, int | None]]:
    """The place of a memory in each source of the recipe, asked by itself and further than a search does."""
    ranks: dict[str, int | None] = {}
    if "dense" in query.recipe.sources:
        (near,) = yield from do(ports.index.nearest, query.scope, reading.vectors, _MAX_RANK, allowed_rows=reading.only)
        ranks["dense"] = _find_rank([found for found, _ in near], row)
    if "lexical" in query.recipe.sources:
        ranks["lexical"] = _find_rank(
            rank_rows_by_words(reading.postings, reading.parsed_query.weights, _MAX_RANK, reading.only), row
        )
    if "graph" in query.recipe.sources:
        support = reading.graph_evidence.support
        ranks["graph"] = _find_rank(sorted(support, key=lambda memory: -support[memory][0]), row)
    return ranks


def _find_rank(rows: list[int], row: int) -> int | None:
    return rows.index(row) + 1 if row in rows else None
