"""Search: candidates from several sources, one score for each, and the signals that the score consists of.

`plan_search` parses and embeds the query. Then vectors, words and relations bring memories, `rank_candidates` scores
them and adds those that a walk over shared names reaches, and the reranker, the threshold, the gate and the limit cut
the list. The recipe decides which of these steps take place, and the weight of each signal; see
`mem0_core.domain.recipes`. A search of a past day ranks the texts that memories had then in addition to those they
still have. docs/explanation/recall.md explains the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from mem0_core.domain.recipes import DEFAULT_RERANK_CHARS, DEFAULT_RERANK_POOL
from mem0_core.domain.records import Hit, is_expired
from mem0_core.flow import Flow, do
from mem0_core.interfaces import ContextReranker, Passage, Ports
from mem0_core.recall._absence import explain_no_answer
from mem0_core.recall._asked_time import demote_out_of_time, demote_superseded, prefer_latest
from mem0_core.recall._candidates import rank_candidates
from mem0_core.recall._comparison import COMPARED_HITS, compare_hits, may_compare, should_compare
from mem0_core.recall._current import ORDERED_HITS, prefer_current
from mem0_core.recall._plan import Search, SearchRequest, TransientCandidate, find_items, plan_search
from mem0_core.recall._ranking import (
    RankedMemory,
    clamp_cosine,
    rank_rows_by_cosine,
    rank_rows_by_counts,
    rank_rows_by_words,
)
from mem0_core.recall.cache import find_result, open_scope
from mem0_core.recall.rerank import rerank
from mem0_core.recall.validity import (
    date_hits,
    find_slot_answer,
    prefer_answers,
    prefer_chain_end,
)

__all__ = [
    "Search",
    "SearchRequest",
    "plan_search",
    "rank_hits",
    "recall",
    "retrieve_ranked",
]

_OTHERS_SHARE = 0.6  # of the score that a memory of the user keeps for a question about words of the assistant
_DATE_CHARS = len("2024-05-08")
_OVERFETCH_FACTOR = 4  # more hits are fetched where their age reorders them, or expired memories take places


def recall(ports: Ports, request: SearchRequest) -> Flow[Search]:
    """Find the memories of a scope that answer a query best, and the relations that bear on it.

    Raises:
        ConfigError: the store holds another embedder's vectors.
    """
    if (kept := (yield from find_result(ports, request))) is not None:
        return kept
    active = yield from open_scope(ports, request.scope)
    if active is not None and ports.cache is not None and (kept := active.find_result(request)) is not None:
        ports.cache.count("results")  # the store was changed elsewhere
        return kept
    search = yield from plan_search(ports, request, active)
    search.hits = yield from rank_hits(ports, search)
    _apply_threshold(search)
    search.transient = []  # of no more use, and former texts are many
    if search.active is not None and ports.cache is not None:
        if _is_repeatable(ports, search):
            search.active.keep_result(request, search)
        ports.cache.limit_records(request.scope, search.active)
    return search


def _is_repeatable(ports: Ports, search: Search) -> bool:
    """Return True if the result of a search depends on its request and the store alone."""
    request, graph = search.request, ports.graph
    is_timeless = request.half_life is None and "recency" not in request.recipe.signals
    is_stored = graph is None or not search.relations or graph.index is graph.embedded_index
    return is_timeless and is_stored and (ports.reranker is None or ports.is_reranker_default)


def rank_hits(ports: Ports, search: Search) -> Flow[list[Hit]]:
    """Return the best hits before threshold, gate and limit: as many as are wanted, or as the reranker reads.

    Those that answer the query at the time it asks about come first, whatever their signals; a recipe of cosines alone
    leaves their order.
    """
    hits = yield from _retrieve(ports, search)
    if search.request.rerank or not should_compare(ports, search, hits):
        hits = yield from _rerank(ports, search, hits)
    if search.request.recipe.is_dense_only:
        return hits  # the cosines alone decide, and no other reads are made
    if search.request.query.question.asks_assistant:
        hits = _prefer_assistant(hits)
    hits = prefer_latest(hits, search)
    search.slot_answer = yield from find_slot_answer(ports, search, hits)
    if search.slot_answer is not None:
        hits = prefer_answers(hits, search.slot_answer)
    if search.request.query.question.steps:
        hits = yield from prefer_chain_end(ports, search, hits)
    dated = yield from date_hits(ports, search, hits)
    in_time = demote_out_of_time(demote_superseded(dated, search), search)
    order = compare_hits if should_compare(ports, search, in_time) else prefer_current
    return (yield from order(ports, search, in_time))


def _retrieve(ports: Ports, search: Search) -> Flow[list[Hit]]:
    """Return the best hits by the recipe's signals."""
    request = search.request
    ordered = 0 if request.recipe.is_dense_only or not request.query.asks_of_now else ORDERED_HITS
    compared = COMPARED_HITS if may_compare(ports, request) else 0
    wanted = max(request.limit, ordered, compared, _count_reranked(ports, request))
    fetched = wanted if request.half_life is None else wanted * _OVERFETCH_FACTOR
    size = fetched if request.recipe.is_dense_only else max(request.recipe.pool, 2 * fetched)
    while True:
        ranked, is_exhausted = yield from retrieve_ranked(ports, search, size)
        hits = yield from _fetch_hits(ports, search, ranked, fetched)
        if len(hits) >= fetched or is_exhausted:
            return sorted((_apply_age(hit, search) for hit in hits), key=lambda hit: -hit.score)[:wanted]
        size *= _OVERFETCH_FACTOR  # expired memories took places among the nearest


def retrieve_ranked(ports: Ports, search: Search, size: int) -> Flow[tuple[Iterator[RankedMemory], bool]]:
    """Return the candidates of all sources, at most `size` from each, best first; True if vectors have no more."""
    request, recipe, allowed = search.request, search.request.recipe, search.allowed_rows
    near: list[tuple[int, float]] = []
    active = search.active
    if active is not None and "dense" in recipe.sources:
        near = rank_rows_by_cosine(active.memories.rows, search.cosines, size, allowed)
    elif "dense" in recipe.sources:
        (near,) = yield from do(ports.index.nearest, request.scope, search.vectors, size, allowed_rows=allowed)
    is_exhausted = len(near) < size
    if recipe.is_dense_only:
        return _rank_by_cosine(near, search.transient), is_exhausted
    rows = search.filter_rows(search.graph.memory_rows)
    if active is not None and "lexical" in recipe.sources:
        rows += rank_rows_by_counts(active.memories.rows, search.term_counts, search.word_weights, size, allowed)
    elif "lexical" in recipe.sources:
        rows += rank_rows_by_words(search.postings, search.word_weights, size, allowed)
    return (yield from rank_candidates(ports, search, near, rows)), is_exhausted


def _rank_by_cosine(
    near: Sequence[tuple[int, float]], transient: Sequence[TransientCandidate]
) -> Iterator[RankedMemory]:
    """Rank for recipes with no signal but the cosine, without reading any features; the signal may be negative."""
    weights = {"dense": 1.0}
    scored = [(row, None, False, cosine) for row, cosine in near]
    added = [(None, one.item, one.is_unprocessed, one.cosine) for one in transient]
    ranked = [
        RankedMemory(row, item, is_unprocessed, clamp_cosine(cosine), {"dense": cosine}, weights)
        for row, item, is_unprocessed, cosine in (*scored, *added)
    ]
    return iter(sorted(ranked, key=lambda memory: -memory.signals["dense"]))


def _fetch_hits(ports: Ports, search: Search, ranked: Iterator[RankedMemory], limit: int) -> Flow[list[Hit]]:
    """Read the first `limit` of the ranked memories that exist and are not expired."""
    hits: list[Hit] = []
    while len(hits) < limit and (chunk := list(islice(ranked, limit))):
        rows = [memory.row for memory in chunk if memory.row is not None]
        items = yield from find_items(ports, search, rows)
        for memory in chunk:
            item = memory.item if memory.row is None else items.get(memory.row)
            if item is not None and not is_expired(item, search.request.today):
                hits.append(
                    Hit(
                        item=item,
                        score=memory.score,
                        is_unprocessed=memory.is_unprocessed,
                        signals=memory.signals,
                        weights=memory.weights,
                        has_statements=memory.has_statements,
                        around=memory.around,
                    )
                )
    return hits[:limit]


def _apply_age(hit: Hit, search: Search) -> Hit:
    """Return a hit with its score reduced by its age; pinned memories do not age."""
    half_life = search.request.half_life
    if half_life is None or hit.item.pinned:
        return hit
    changed_at = datetime.fromisoformat(hit.item.said_at)
    days = max(0.0, (search.now - changed_at).total_seconds() / 86_400)
    return replace(hit, score=hit.score * 0.5 ** (days / half_life))


def _prefer_assistant(hits: list[Hit]) -> list[Hit]:
    """Return hits with the words of the assistant higher, for a question that asks for them."""
    if not any(hit.item.role == "assistant" for hit in hits):
        return hits  # a chat model keeps advice as facts, and facts have no role
    lowered = [hit if hit.item.role == "assistant" else replace(hit, score=hit.score * _OTHERS_SHARE) for hit in hits]
    return sorted(lowered, key=lambda hit: -hit.score)


def _count_reranked(ports: Ports, request: SearchRequest) -> int:
    """Return the number of hits that the reranker reads; a default one reads few, and none after cosines alone."""
    if ports.reranker is None or request.rerank is False:
        return 0
    recipe = request.recipe
    if not _reranks_unasked(ports, request):
        return recipe.rerank_pool
    return 0 if recipe.is_dense_only else min(DEFAULT_RERANK_POOL, recipe.rerank_pool)


def _reranks_unasked(ports: Ports, request: SearchRequest) -> bool:
    """Return True if neither the memory nor the search names a reranker, so that a default one may read a little."""
    return ports.is_reranker_default and not request.rerank


def _rerank(ports: Ports, search: Search, hits: list[Hit]) -> Flow[list[Hit]]:
    request = search.request
    if ports.reranker is None and request.rerank:
        search.notes.append("rerank=True has no effect: no reranker is configured")
    count = _count_reranked(ports, request)
    read = hits[:count]
    if not read:
        return hits
    if _reranks_unasked(ports, request):
        long = sum(len(hit.item.text) > DEFAULT_RERANK_CHARS for hit in read)
        if 2 * long >= len(read):
            return hits
    passages = None
    if isinstance(ports.reranker, ContextReranker):
        passages = yield from _read_passages(ports, search, read)
    order = yield from rerank(
        ports.reranker,
        request.query.text,
        [hit.item.text for hit in hits],
        passages=passages,
        scores=[hit.score for hit in hits],
        top_n=count,
        weight=request.recipe.rerank_weight,
        note=search.notes.append,
    )
    return [replace(hits[index], score=score, before_rerank=hits[index].score) for index, score in order]


def _read_passages(ports: Ports, search: Search, hits: Sequence[Hit]) -> Flow[list[Passage]]:
    """Return the texts of hits with who said them and when, and with the texts around them."""
    rows = search.filter_rows(sorted({row for hit in hits for row in hit.around if row}))
    items = yield from find_items(ports, search, rows)
    texts = {row: items[row].text for row in rows if row in items}
    return [
        Passage(
            hit.item.text,
            hit.item.actor_id or hit.item.role or "",
            hit.item.created_at[:_DATE_CHARS],
            texts.get(hit.around[0], ""),
            texts.get(hit.around[1], ""),
        )
        for hit in hits
    ]


def _apply_threshold(search: Search) -> None:
    """Keep the hits above the threshold, up to the limit; none if there is no answer and that is wanted."""
    request, hits = search.request, search.hits
    best = hits[0].score if hits else 0.0
    if request.allow_no_answer and hits and (reason := explain_no_answer(search, hits)):
        search.notes.append(f"no answer: {reason}")
        search.hits = []
        return
    search.hits = [hit for hit in hits if hit.score >= request.min_score][: request.limit]
    if hits and not search.hits:
        search.notes.append(f"nothing reaches the threshold of {request.min_score:g}; the best hit scores {best:.2f}")
