"""Diagnosis of a search that did not find a memory: the first step that excluded it.

The steps are those of a search. The memory does not exist, belongs to another scope, is expired or filtered out; no
source brought it; others scored higher; the reranker, the threshold or the gate removed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from mem0_core._system.records import dataclass
from mem0_core.domain.filters import matches
from mem0_core.domain.records import Event, Hit, MemoryItem, Scope, is_expired
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.recall._absence import explain_no_answer
from mem0_core.recall._ranking import rank_rows_by_words
from mem0_core.recall.search import (
    Search,
    SearchRequest,
    plan_search,
    rank_hits,
    retrieve_ranked,
)

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
    "no_answer",
    "lost_at_rerank",
]

_MAX_RANK = 10_000  # ranks up to which a source is searched for the memory


@dataclass(frozen=True, slots=True)
class SearchDiagnosis:
    """Result of a search for one memory.

    Attributes:
        reason: the step that excluded it, or "found".
        detail: the same in a sentence.
        rank: its rank among the scored memories, from 1; with "found" its rank in the result.
        ranks: its rank in each source, from 1; None if the source does not have it among the first 10,000.
        score: its score; None if it was never scored.
        signals, weights: the parts of that score.
    """

    reason: MissingReason
    detail: str
    rank: int | None = None
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    score: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


_UNKNOWN = SearchDiagnosis("unknown", "no memory of this owner has that id, and the history has none either")


def explain_missing(ports: Ports, request: SearchRequest, memory_id: str) -> Flow[SearchDiagnosis]:
    """Make a search and diagnose why it did not find a memory.

    Raises:
        ConfigError: as `recall` does.
    """
    search = yield from plan_search(ports, request)
    item = yield from do(ports.store.get, memory_id)
    if item is None:
        return (yield from _diagnose_absent(ports, request.scope, memory_id))
    if not request.scope.contains(item.scope):
        return _diagnose_foreign(request.scope, item.scope)
    hits = yield from rank_hits(ports, search)
    rank = next((rank for rank, hit in enumerate(hits, 1) if hit.item.id == memory_id), None)
    row = yield from do(ports.store.row, memory_id)
    if row is None:  # deleted since it was read
        return (yield from _diagnose_absent(ports, request.scope, memory_id))
    if rank is None and (excluded := _diagnose_excluded(search, item, row)) is not None:
        return excluded
    ranks = yield from _compute_source_ranks(ports, search, row)
    if rank is not None:
        return replace(_diagnose_hit(search, hits, rank), ranks=ranks)
    return replace((yield from _diagnose_unranked(ports, search, row, hits)), ranks=ranks)


def _diagnose_foreign(searched: Scope, owner: Scope) -> SearchDiagnosis:
    """Diagnose a memory outside of the scope: as an unknown one, unless both are parts of one user's, or one agent's.

    A caller of one owner must not learn which ids another owner has.
    """
    if owner.ids.get(searched.partition[0]) != searched.partition[1]:
        return _UNKNOWN
    return SearchDiagnosis("other_scope", "it belongs to another agent or run than the search is for")


def _diagnose_absent(ports: Ports, searched: Scope, memory_id: str) -> Flow[SearchDiagnosis]:
    owner = yield from do(ports.store.owner, memory_id)
    if owner is None:
        return _UNKNOWN
    if not searched.contains(owner):
        return _diagnose_foreign(searched, owner)
    history = yield from do(ports.store.history, memory_id)
    if history and history[-1].event == Event.DELETE:
        deleted_at = history[-1].updated_at or history[-1].created_at or ""
        return SearchDiagnosis("deleted", f"it was deleted on {deleted_at[:10]}")
    return _UNKNOWN


def _diagnose_excluded(search: Search, item: MemoryItem, row: int) -> SearchDiagnosis | None:
    """Diagnose a memory that the search may not find at all; None if it may."""
    request = search.request
    if is_expired(item, request.today):
        return SearchDiagnosis("expired", f"it expired on {item.expiration_date}")
    if search.allowed_rows is None or row in search.allowed_rows:
        return None
    if request.filter is not None and not matches(request.filter, item):
        return SearchDiagnosis("filtered", "the filters leave it out")
    day = (request.as_of or "")[:10]
    return SearchDiagnosis("not_said_yet", f"it did not have its present text on {day}")


def _diagnose_hit(search: Search, hits: list[Hit], rank: int) -> SearchDiagnosis:
    """Diagnose a memory that was among the best hits."""
    request, hit = search.request, hits[rank - 1]
    found = SearchDiagnosis("found", f"it is result {rank}", rank, {}, hit.score, hit.signals, hit.weights)
    if request.allow_no_answer and (why := explain_no_answer(search, hits)):
        return replace(found, reason="no_answer", detail=f"there is no answer: {why}")
    if hit.score < request.min_score:
        why = f"it scores {hit.score:.3f}, below the threshold of {request.min_score:g}"
        return replace(found, reason="below_threshold", detail=why)
    if rank <= request.limit:
        return found
    if hit.before_rerank is not None:
        why = f"it scores {hit.score:.3f} with the reranker, {hit.before_rerank:.3f} before: rank {rank}"
        return replace(found, reason="lost_at_rerank", detail=f"{why}, and the limit is {request.limit}")
    return replace(found, reason="below_limit", detail=f"it has rank {rank}, and the limit is {request.limit}")


def _diagnose_unranked(ports: Ports, search: Search, row: int, hits: list[Hit]) -> Flow[SearchDiagnosis]:
    """Diagnose a memory that could have been found and was not among the best."""
    recipe = search.request.recipe
    size = recipe.pool if recipe.is_dense_only else max(recipe.pool, 2 * search.request.limit)
    ranked, _ = yield from retrieve_ranked(ports, search, size)
    rank, memory = next(((rank, one) for rank, one in enumerate(ranked, 1) if one.row == row), (None, None))
    if memory is None:
        return SearchDiagnosis("not_in_pool", f"no source brings it: each gives its best {size}")
    lowest = f", the last that was taken {hits[-1].score:.3f}" if hits else ""
    why = f"it scores {memory.score:.3f}{lowest}: rank {rank}, and {len(hits)} are taken"
    return SearchDiagnosis("below_limit", why, rank, {}, memory.score, memory.signals, memory.weights)


def _compute_source_ranks(ports: Ports, search: Search, row: int) -> Flow[dict[str, int | None]]:
    """Return the rank of a memory in each source of the recipe, searched further than a search does."""
    ranks: dict[str, int | None] = {}
    sources, allowed = search.request.recipe.sources, search.allowed_rows
    if "dense" in sources:
        (near,) = yield from do(
            ports.index.nearest, search.request.scope, search.vectors, _MAX_RANK, allowed_rows=allowed
        )
        ranks["dense"] = _find_rank([found for found, _ in near], row)
    if "lexical" in sources:
        ranked = rank_rows_by_words(search.postings, search.word_weights, _MAX_RANK, allowed)
        ranks["lexical"] = _find_rank(ranked, row)
    if "graph" in sources:
        support = search.graph.support
        ranks["graph"] = _find_rank(sorted(support, key=lambda memory: -support[memory][0]), row)
    return ranks


def _find_rank(rows: list[int], row: int) -> int | None:
    return rows.index(row) + 1 if row in rows else None
