"""Recalling: candidates from several sources, one score, and a reason for each (seeds 001, 002, and 003 part 5).

`prepare_query` the query: its words, names and time words, its vector, the relations that bear on it -> memories by
vectors, by words, and by those relations, united -> `gather.rank_candidates`: signals, their weighted sum, and a walk
over shared names that may bring more -> the reranker -> the threshold, the gate and the limit.

What of this happens, and what counts how much, is the recipe's to say (`mem0_core.domain.recipes`). As of a day gone
by, what memories said then and no longer say is ranked beside what they say still.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from mem0_core.domain.filters import Filter
from mem0_core.domain.recipes import HYBRID, Recipe
from mem0_core.domain.records import Hit, MemoryItem, Message, Relation, Scope, content_hash, is_expired, is_valid_text
from mem0_core.errors import ConfigError, QueryError
from mem0_core.flow import Flow, call_all, defer, do
from mem0_core.interfaces import GraphMemory, Job, Ports, check_embedding_space
from mem0_core.language import terms as words
from mem0_core.language.messages import SPEAKER_ROLES
from mem0_core.language.temporal import parse_time_spans
from mem0_core.recall.candidates import CandidatePool, TransientCandidate, clamp_cosine, filter_rows, rank_candidates
from mem0_core.recall.embedding import embed_texts
from mem0_core.recall.ranking import (
    COMMON_TERM_COUNT,
    ParsedQuery,
    RankedMemory,
    compute_word_weights,
    rank_rows_by_words,
)
from mem0_core.recall.relations import GraphEvidence, recall_relations
from mem0_core.recall.rerank import rerank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "PreparedQuery",
    "RecallResult",
    "SearchNotes",
    "SearchQuery",
    "prepare_query",
    "rank_hits",
    "recall",
]

_OVERFETCH_FACTOR = 4  # times as many are fetched as are wanted, where age decides among them
_MAX_UNPROCESSED = 8  # messages that were put off, of which a search takes notice
_MAX_TERMS = 64  # words of a query that are looked up
_MAX_QUERY_CHARS = 4_000  # characters of a query that are read for words, names and times


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One call of `search`.

    Attributes:
        limit: how many hits at most.
        threshold: hits with a lower score are left out; None for the recipe's.
        today: ``YYYY-MM-DD``; memories that expired before it are left out.
        rerank: whether the reranker orders the hits; None for yes where there is one.
        as_of: ISO 8601 in UTC; answer from what held then, None for now.
        half_life: days after which a memory that was not touched again counts half; None where age does not count.
        unlearnt: whether messages that were put off and are not remembered yet are found too.
        reference: the day from which "yesterday" in the query is counted; None for `today`.
        allow_no_answer: whether nothing is found where the best scores below the recipe's gate.
    """

    text: str
    scope: Scope
    today: str
    limit: int = 10
    filter: Filter | None = None
    threshold: float | None = None
    rerank: bool | None = None
    as_of: str | None = None
    half_life: float | None = None
    include_unprocessed: bool = True
    recipe: Recipe = HYBRID
    reference: date | None = None
    allow_no_answer: bool = False

    @property
    def min_score(self) -> float:
        """The score below which a hit is left out."""
        chosen = self.threshold if self.threshold is not None else self.recipe.threshold
        return 0.0 if chosen is None else chosen


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What a search found, best first; each relation with its cosine, in [0, 1].

    Attributes:
        note: why there is nothing, or why it is in another order than asked.
    """

    hits: list[Hit]
    relations: list[tuple[Relation, float]]
    note: str | None = None


@dataclass(slots=True)
class SearchNotes:
    """What a search has to say about itself."""

    notes: list[str] = field(default_factory=list)

    def add(self, note: str) -> None:
        self.notes.append(note)

    @property
    def text(self) -> str | None:
        return "; ".join(self.notes) or None


def recall(ports: Ports, query: SearchQuery) -> Flow[RecallResult]:
    """The memories of a scope that answer a text best, and the relations that bear on it.

    Raises:
        QueryError: the text is empty or not valid Unicode.
        ConfigError: a rerank is asked for and there is no reranker, or the store has another embedder's vectors.
    """
    notes = SearchNotes()
    reading = yield from prepare_query(ports, query)
    hits = yield from rank_hits(ports, query, reading, notes)
    return RecallResult(_apply_threshold(query, hits, notes), reading.graph_evidence.best, notes.text)


def rank_hits(ports: Ports, query: SearchQuery, reading: PreparedQuery, notes: SearchNotes) -> Flow[list[Hit]]:
    """The best hits, before the threshold, the gate and the limit: as many as are wanted, or as the reranker reads."""
    hits = yield from _retrieve(ports, query, reading)
    return (yield from _rerank(ports, query, hits, notes))


def _check_query(ports: Ports, query: SearchQuery) -> None:
    if not isinstance(query.text, str) or not query.text.strip():
        raise QueryError("the query is empty: use get_all to list memories", query=query.text)
    if not is_valid_text(query.text):
        raise QueryError("the query is not valid Unicode (it holds a lone surrogate)", query=query.text)
    if query.rerank and ports.reranker is None:
        raise ConfigError("reranker: rerank=True needs a reranker, and none is configured")


# --- the query ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """What one search knows before it looks at a memory.

    Attributes:
        asked: what the query says besides its vector.
        vectors: the query's, (1, dims).
        matches: for each word of the query the rows of the memories that have it.
        only: the rows that may be found; None for all of the scope.
        beside: memories that are not in the store as they are ranked.
    """

    parsed_query: ParsedQuery
    vectors: NDArray[np.float32]
    postings: Mapping[str, NDArray[np.int64]]
    graph_evidence: GraphEvidence
    only: NDArray[np.int64] | None
    transient: list[TransientCandidate]


def prepare_query(ports: Ports, query: SearchQuery) -> Flow[PreparedQuery]:
    """Read the query: its words, names and times, its vector, the relations that bear on it.

    The names of those who speak in the scope are cut from what is embedded: they tell who said a thing, not what it is
    about, and vectors know nobody. ("What did Maya buy?" lies nearer to all that names Maya than to what she bought.)
    """
    _check_query(ports, query)
    text, recipe = query.text[:_MAX_QUERY_CHARS], query.recipe
    known = yield from _look_up(ports, query, text)
    check_embedding_space(known["space"], (ports.embedder.name, ports.embedder.dims))
    speakers, matches = frozenset(known.get("speakers", ())), known.get("matches", {})
    vectors = yield from embed_texts(ports, [_remove_names(query.text, speakers)], kind="query")
    now = datetime.fromisoformat(query.as_of) if query.as_of else datetime.now(UTC)
    asked = ParsedQuery(
        now=now,
        weights=compute_word_weights(matches),
        speakers=speakers,
        names=_find_names(text, speakers) if "pagerank" in recipe.signals else (),
        dates=parse_time_spans(text, query.reference or now.date()) if "date" in recipe.signals else (),
    )
    related = GraphEvidence()
    if ports.graph is not None and known["relations"].seq:  # there was never any: most users of a store without a model
        related = yield from _recall_graph(ports, ports.graph, query, vectors)
    only = None
    if query.filter is not None or query.as_of is not None:
        only = yield from do(ports.store.rows, query.scope, filter=query.filter, as_of=query.as_of)
    if query.as_of is not None:
        beside = yield from _load_past(ports, query, vectors)
    else:
        beside = yield from _load_unprocessed(ports, known.get("unlearnt", ()), vectors)
    return PreparedQuery(asked, vectors, matches, related, only, beside)


def _look_up(ports: Ports, query: SearchQuery, text: str) -> Flow[dict[str, Any]]:
    """What the store knows of a query that nothing has to be computed for, in one go."""
    store, recipe, scope = ports.store, query.recipe, query.scope
    telling = [word for word in dict.fromkeys(words.split_words(text)) if not words.is_stop_word(word)][:_MAX_TERMS]
    calls = {"space": defer(store.embedding_space)}
    if telling:
        calls["speakers"] = defer(store.lexicon.postings, scope, telling, kind="speaker", limit=1)
    by_words = "lexical" in recipe.sources or not recipe.signals.isdisjoint({"bm25", "context_bm25"})
    if by_words and (terms := list(dict.fromkeys(words.terms(text)))[:_MAX_TERMS]):
        calls["matches"] = defer(store.lexicon.postings, scope, terms, kind="term", limit=COMMON_TERM_COUNT)
    if ports.graph is not None:
        calls["relations"] = defer(store.graph.relation_vectors.position, scope)
    if query.as_of is None and query.filter is None and query.include_unprocessed:
        calls["unlearnt"] = defer(store.jobs.unprocessed_messages, scope, limit=_MAX_UNPROCESSED)
    return dict(zip(calls, (yield from call_all(*calls.values())), strict=True))


def _find_names(text: str, speakers: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in words.extract_names(text) if speakers.isdisjoint(name.split()))


def _recall_graph(
    ports: Ports, graph: GraphMemory, query: SearchQuery, vectors: NDArray[np.float32]
) -> Flow[GraphEvidence]:
    recipe = query.recipe
    return (
        yield from recall_relations(
            ports,
            graph,
            query.text,
            query.scope,
            vectors,
            hops=recipe.hops,
            as_of=query.as_of,
            with_support="graph" in recipe.sources,
            with_paths="path" in recipe.signals,
        )
    )


def _remove_names(text: str, names: frozenset[str]) -> str:
    """A text without these words; as it is where nothing would be left that says something."""
    if not names:
        return text
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    cut = re.sub(rf"(?<!\w)(?:{name})(?:['’]s)?(?!\w)", "", text, flags=re.IGNORECASE)
    return " ".join(cut.split()) if words.terms(cut) else text


# --- candidates --------------------------------------------------------------------------------------------------


def _retrieve(ports: Ports, query: SearchQuery, reading: PreparedQuery) -> Flow[list[Hit]]:
    """The best hits by the recipe's signals: as many as are wanted, or as the reranker reads."""
    wanted = query.limit
    if ports.reranker is not None and query.rerank is not False:
        wanted = max(wanted, query.recipe.rerank_pool)
    fetched = wanted if query.half_life is None else wanted * _OVERFETCH_FACTOR
    size = fetched if query.recipe.is_dense_only else max(query.recipe.pool, 2 * fetched)
    while True:
        found, is_all = yield from retrieve_ranked(ports, query, reading, size)
        hits = yield from _fetch_hits(ports, query, found, fetched)
        if len(hits) >= fetched or is_all:
            return sorted((_apply_age(hit, query) for hit in hits), key=lambda hit: -hit.score)[:wanted]
        size *= _OVERFETCH_FACTOR  # expired memories took places among the nearest


def retrieve_ranked(
    ports: Ports, query: SearchQuery, reading: PreparedQuery, size: int
) -> Flow[tuple[Iterator[RankedMemory], bool]]:
    """What each source brings, at most `size` of it, best first; and whether no source by vectors has more."""
    recipe, only = query.recipe, reading.only
    near: list[tuple[int, float]] = []
    if "dense" in recipe.sources:
        (near,) = yield from do(ports.index.nearest, query.scope, reading.vectors, size, allowed_rows=only)
    if recipe.is_dense_only:
        return _rank_by_vector(near, reading.transient), len(near) < size
    pool = CandidatePool(ports, query.scope, query.today, reading.parsed_query, reading.vectors, near)
    brought = filter_rows(reading.graph_evidence.memory_rows, only)
    if "lexical" in recipe.sources:
        brought += rank_rows_by_words(reading.postings, reading.parsed_query.weights, size, only)
    return (yield from rank_candidates(pool, recipe, brought, reading.graph_evidence, reading.transient, only)), len(
        near
    ) < size


def _rank_by_vector(
    near: Sequence[tuple[int, float]], transient: Sequence[TransientCandidate]
) -> Iterator[RankedMemory]:
    """`rank_candidates` for recipes that count nothing but the cosine, and need to read nothing for it."""
    weights = {"dense": 1.0}
    found = [
        RankedMemory(row, None, False, clamp_cosine(cosine), {"dense": clamp_cosine(cosine)}, weights)
        for row, cosine in near
    ]
    for item, cosine, pending in transient:
        found.append(RankedMemory(None, item, pending, clamp_cosine(cosine), {"dense": clamp_cosine(cosine)}, weights))
    return iter(sorted(found, key=lambda each: -each.score))


def _fetch_hits(ports: Ports, query: SearchQuery, ranked: Iterator[RankedMemory], limit: int) -> Flow[list[Hit]]:
    """The first `most` of the ranked that live."""
    hits: list[Hit] = []
    while len(hits) < limit and (some := list(islice(ranked, limit))):
        items = yield from do(
            ports.store.memories_by_rows, [one.row for one in some if one.row is not None], scope=query.scope
        )
        for one in some:
            item = one.item if one.row is None else items.get(one.row)
            if item is not None and not is_expired(item, query.today):
                hits.append(Hit(item, one.score, one.is_unprocessed, one.signals, one.weights))
    return hits[:limit]


def _apply_age(hit: Hit, query: SearchQuery) -> Hit:
    """The hit with its score as its age leaves it; what is pinned does not age."""
    if query.half_life is None or hit.item.pinned:
        return hit
    then = datetime.fromisoformat(hit.item.updated_at or hit.item.created_at)
    now = datetime.fromisoformat(query.as_of) if query.as_of else datetime.now(UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return replace(hit, score=hit.score * 0.5 ** (days / query.half_life))


def _load_unprocessed(
    ports: Ports, waiting: Sequence[tuple[Job, Message]], vectors: NDArray[np.float32]
) -> Flow[list[TransientCandidate]]:
    """The last messages that were put off and are not remembered yet: an agent must not forget the last turn."""
    messages = [(job, said) for job, said in waiting if said.role in SPEAKER_ROLES and said.content.strip()]
    if not messages:
        return []
    theirs = yield from embed_texts(ports, [message.content for _, message in messages])
    cosines = (theirs @ vectors[0]).tolist()
    return [
        TransientCandidate(_as_item(job, message), cosine, is_unprocessed=True)
        for (job, message), cosine in zip(messages, cosines, strict=True)
    ]


def _as_item(job: Job, message: Message) -> MemoryItem:
    return MemoryItem(
        id=f"pending:{message.row}",
        text=message.content,
        scope=job.scope,
        hash=content_hash(message.content),
        created_at=message.timestamp or job.timestamp,
        metadata={**job.options.get("metadata", {}), **message.metadata},
        actor_id=message.name,
        role=message.role,
    )


def _load_past(ports: Ports, query: SearchQuery, vectors: NDArray[np.float32]) -> Flow[list[TransientCandidate]]:
    """What memories said then and say no longer. There is little of it: it is scanned."""
    assert query.as_of is not None
    items, theirs = yield from do(ports.store.past_memories, query.scope, as_of=query.as_of, filter=query.filter)
    if not items:
        return []
    cosines = (theirs @ vectors[0]).tolist()
    return [
        TransientCandidate(item, cosine)
        for item, cosine in zip(items, cosines, strict=True)
        if not is_expired(item, query.today)
    ]


# --- the last word -----------------------------------------------------------------------------------------------


def _rerank(ports: Ports, query: SearchQuery, hits: list[Hit], notes: SearchNotes) -> Flow[list[Hit]]:
    if ports.reranker is None or query.rerank is False or not hits:
        return hits
    order = yield from rerank(
        ports.reranker,
        query.text,
        [hit.item.text for hit in hits],
        scores=[hit.score for hit in hits],
        top_n=query.recipe.rerank_pool,
        weight=query.recipe.rerank_weight,
        note=notes.add,
    )
    return [replace(hits[place], score=score, before_rerank=hits[place].score) for place, score in order]


def _apply_threshold(query: SearchQuery, hits: list[Hit], notes: SearchNotes) -> list[Hit]:
    """The hits that are good enough, none where the best is not."""
    best = hits[0].score if hits else 0.0
    if query.allow_no_answer and hits and best < query.recipe.gate:
        notes.add(f"no answer: the best hit scores {best:.2f}, below the gate of {query.recipe.gate:g}")
        return []
    kept = [hit for hit in hits if hit.score >= query.min_score][: query.limit]
    if hits and not kept:
        notes.add(f"nothing reaches the threshold of {query.min_score:g}; the best hit scores {best:.2f}")
    return kept
