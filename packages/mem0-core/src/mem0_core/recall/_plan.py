"""Plan of one search: the request, and everything known of its query before memories are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mem0_core._system.records import dataclass
from mem0_core.domain.filters import Filter
from mem0_core.domain.recipes import HYBRID, Recipe
from mem0_core.domain.records import Hit, MemoryItem, Message, Relation, Scope, Trust, content_hash, is_expired
from mem0_core.flow import Call, Flow, call_all, defer, do
from mem0_core.interfaces import Job, Ports, check_embedding_space
from mem0_core.language.messages import SPEAKER_ROLES
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.language.question import reaches_back
from mem0_core.language.temporal import TimeSpan
from mem0_core.language.terms import extract_terms
from mem0_core.recall._ranking import COMMON_TERM_COUNT, compute_word_weights
from mem0_core.recall._relations import GraphEvidence, recall_relations
from mem0_core.recall._slips import correct_query
from mem0_core.recall.cache import is_current
from mem0_core.recall.embedding import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.recall.cache import ActiveScope
    from mem0_core.recall.validity import SlotAnswer


_MAX_REPLACED_TEXTS = 500  # earlier texts that one search ranks
_MAX_UNPROCESSED = 8  # queued messages that one search takes into account


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Arguments of one search.

    Attributes:
        today: ``YYYY-MM-DD``; memories that expired before it are left out.
        limit: maximum number of hits.
        min_trust: least trusted class of memories, which `filter` selects, and of relations.
        threshold: hits with a lower score are left out; None for the recipe's threshold.
        rerank: False skips the reranker; True and None use it if there is one, and True notes that there is none.
        as_of: ISO 8601 in UTC; search the state of that time. None for now.
        half_life: days after which the score of an untouched memory is halved; None to ignore age.
        include_unprocessed: True to find queued messages that are not remembered yet.
        allow_no_answer: True to find nothing if no memory is about the slot that the query asks for; without a slot,
            if the best hit scores below the recipe's gate.
        include_superseded: True to rank the earlier texts of memories too.
    """

    query: ParsedQuery
    scope: Scope
    today: str
    limit: int = 10
    filter: Filter | None = None
    min_trust: Trust | None = None
    threshold: float | None = None
    rerank: bool | None = None
    as_of: str | None = None
    half_life: float | None = None
    include_unprocessed: bool = True
    recipe: Recipe = HYBRID
    allow_no_answer: bool = False
    include_superseded: bool = False

    @property
    def min_score(self) -> float:
        """The score below which a hit is left out."""
        chosen = self.threshold if self.threshold is not None else self.recipe.threshold
        return 0.0 if chosen is None else chosen


class TransientCandidate(NamedTuple):
    """A memory that is not in the store in the form that is ranked, with its cosine to the query.

    Attributes:
        is_unprocessed: True for a queued message, False for a past text of a memory.
        replaced_at: ISO 8601 time at which a past text was replaced, where that is known.
    """

    item: MemoryItem
    cosine: float
    is_unprocessed: bool = False
    replaced_at: str | None = None


@dataclass(slots=True)
class Search:
    """One search, from its plan to its results.

    Attributes:
        now: the time to which ages count.
        vectors: embedding of the query, (1, dims).
        postings: for each term of the query the rows of the memories that have it.
        word_weights: inverse document frequency of each term, see `compute_word_weights`.
        speaker_words: words of the query that belong to the name of a speaker of the scope.
        time_spans: times that the query names, if the recipe uses them.
        graph: relations that bear on the query.
        allowed_rows: rows that may be found; None for all of the scope.
        transient: memories to rank in addition to those of the store.
        hits: the results, best first.
        untrusted_relations: rows of relations that less trusted origins state or ended, which the search does not use.
        active: the scope in memory, if it is kept there; postings are empty then.
        cosines: cosine of each of its memories to the query, (n,).
        term_counts: occurrences of the words of `word_weights` in each of its memories, (words, n).
        slot_answer: everything known of the slot that the query asks for; None if it asks for none.
        no_answer_probability: that no hit is the answer, by a listwise reranker; None if none compared them.
        notes: remarks for the caller: why there is no result, or why the order differs from the one requested.
    """

    request: SearchRequest
    now: datetime
    vectors: NDArray[np.float32]
    postings: Mapping[str, NDArray[np.int64]]
    word_weights: Mapping[str, float]
    speaker_words: frozenset[str]
    time_spans: tuple[TimeSpan, ...]
    graph: GraphEvidence
    allowed_rows: NDArray[np.int64] | None
    transient: list[TransientCandidate]
    active: ActiveScope | None
    cosines: NDArray[np.float32]
    term_counts: NDArray[np.int64]
    untrusted_relations: Collection[int] = ()
    hits: list[Hit] = field(default_factory=list)
    slot_answer: SlotAnswer | None = None
    no_answer_probability: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def relations(self) -> list[tuple[Relation, float]]:
        """Relations that bear on the query, best first, each with its cosine in [0, 1]."""
        return self.graph.best

    @property
    def note(self) -> str | None:
        """All notes in one text; None if there are none."""
        return "; ".join(self.notes) or None

    @property
    def names(self) -> list[str]:
        """Names in the query, without those of speakers."""
        return [name for name in self.request.query.names if self.speaker_words.isdisjoint(name.split())]

    def filter_rows(self, rows: Collection[int]) -> list[int]:
        """Return those of `rows` that may be found, in order."""
        if self.allowed_rows is None:
            return list(rows)
        allowed = set(self.allowed_rows.tolist())
        return [row for row in rows if row in allowed]


def plan_search(ports: Ports, request: SearchRequest, active: ActiveScope | None = None) -> Flow[Search]:
    """Embed the query and look it up: the postings of its terms, the relations that bear on it, the rows allowed.

    Names of speakers are removed from the embedded text, because a vector of "Did Maya buy a car?" is nearer to all
    texts that name Maya than to those about the purchase.

    Args:
        active: the scope as it is now, if it is kept in memory.

    Raises:
        ConfigError: the store holds another embedder's vectors.
    """
    import numpy as np

    if not request.recipe.is_dense_only:
        is_whole = request.filter is None and request.min_trust is None  # words of other memories correct nothing
        query = yield from correct_query(ports, request.query, request.scope, active if is_whole else None)
        request = request if query is request.query else replace(request, query=query)
    known = yield from _look_up(ports, request, active)
    if active is not None and "unprocessed" in known and not (yield from is_current(ports, request.scope, active)):
        # A message that was processed meanwhile is in neither: no longer queued, and not yet a memory of `active`.
        active, known = None, (yield from _look_up(ports, request, None))
    if known.get("relations") and not request.recipe.is_dense_only:
        request = yield from _restore_names(ports, request, active, known)
    query, signals = request.query, request.recipe.signals
    check_embedding_space(known["space"], (ports.embedder.name, ports.embedder.dims))
    speaker_words, postings = frozenset(known.get("speakers", ())), known.get("postings", {})
    vectors = yield from _embed_query(ports, _remove_names(query.text, speaker_words))
    word_weights, term_counts = _weigh_words(request, active, postings)
    untrusted = (yield from _find_untrusted(ports, request)) if known.get("relations") else ()
    return Search(
        request=request,
        now=datetime.fromisoformat(request.as_of) if request.as_of else datetime.now(UTC),
        vectors=vectors,
        postings=postings,
        word_weights=word_weights,
        speaker_words=speaker_words,
        time_spans=query.time_spans if "date" in signals else (),
        # A position of 0: the graph never had a relation, as for most users of a store without a model.
        graph=(yield from _recall_graph(ports, request, vectors, untrusted, active))
        if known.get("relations")
        else GraphEvidence(),
        untrusted_relations=untrusted,
        allowed_rows=(yield from _load_allowed_rows(ports, request)),
        transient=(yield from _load_transient(ports, request, known.get("unprocessed", ()), vectors, active)),
        active=active,
        cosines=np.zeros(0, dtype=np.float32) if active is None else active.cosines(vectors[0]),
        term_counts=term_counts,
    )


def _weigh_words(
    request: SearchRequest, active: ActiveScope | None, postings: Mapping[str, NDArray[np.int64]]
) -> tuple[dict[str, float], NDArray[np.int64]]:
    """Return the weights of the query's words, and their counts in the memories of a scope kept in memory."""
    import numpy as np

    if active is not None and not _reads_words(request):
        return {}, np.zeros((0, active.size), dtype=np.int64)
    if active is None:
        weights = compute_word_weights({word: len(rows) for word, rows in postings.items()})
        return weights, np.zeros((0, 0), dtype=np.int64)
    words, counts = active.count_terms(request.query.terms)
    weights = compute_word_weights(
        dict(zip(words, np.add.reduce(counts > 0, axis=1, dtype=np.int64).tolist(), strict=True))
    )
    return weights, counts if len(weights) == len(words) else counts[[word in weights for word in words]]


def _reads_words(request: SearchRequest) -> bool:
    recipe = request.recipe
    return "lexical" in recipe.sources or not recipe.signals.isdisjoint({"bm25", "context_bm25"})


def _look_up(ports: Ports, request: SearchRequest, active: ActiveScope | None) -> Flow[dict[str, Any]]:
    """Make all the calls to the store that need no vector, in one go; returns their results by name."""
    store, scope, query = ports.store, request.scope, request.query
    calls: dict[str, Call] = {}
    is_present = request.as_of is None and request.filter is None and request.include_unprocessed
    if is_present and (active is None or any(active.state.queued)):
        calls["unprocessed"] = defer(store.jobs.unprocessed_messages, scope, limit=_MAX_UNPROCESSED)
    if active is None:
        calls["space"] = defer(store.embedding_space)
        if ports.graph is not None:
            calls["position"] = defer(store.graph.relation_vectors.position, scope)
        words, terms = list(query.content_words), list(query.terms) if _reads_words(request) else []
        if words:
            calls["speakers"] = defer(store.lexicon.postings, scope, words, kind="speaker", limit=1)
        if terms:
            calls["postings"] = defer(store.lexicon.postings, scope, terms, kind="term", limit=COMMON_TERM_COUNT)
    known = dict(zip(calls, (yield from call_all(*calls.values())), strict=True)) if calls else {}
    if "position" in known:
        known["relations"] = known["position"].seq
    if active is not None:
        known["space"] = active.state.space
        known["relations"] = 0 if ports.graph is None else active.state.relations
        if active.speaker_words:
            known["speakers"] = active.speaker_words.intersection(query.content_words)
    return known


def find_postings(
    ports: Ports, search: Search, words: Sequence[str], *, kind: Literal["name", "slot"], limit: int
) -> Flow[dict[str, NDArray[np.int64]]]:
    """Return the rows of the memories that have each word, at most `limit` per word."""
    if not words:
        return {}
    if search.active is not None:
        return search.active.postings(words, kind=kind, limit=limit)
    return (yield from do(ports.store.lexicon.postings, search.request.scope, words, kind=kind, limit=limit))


def find_items(ports: Ports, search: Search, rows: Sequence[int]) -> Flow[Mapping[int, MemoryItem]]:
    """Return memories by row: those of `rows` that exist, and perhaps others."""
    active = search.active
    kept = {} if active is None else active.items
    if missing := [row for row in rows if row not in kept]:
        missing = (active.find_unread_rows() if active is not None else []) or missing
        kept |= yield from do(ports.store.memories_by_rows, missing, scope=search.request.scope)
    return kept


def _embed_query(ports: Ports, text: str) -> Flow[NDArray[np.float32]]:
    """Return the embedding of a query, (1, dims)."""
    known = None if ports.cache is None else ports.cache.embedding(ports.embedder.name, text)
    if known is not None:
        return known
    vectors = yield from embed_texts(ports, [text], kind="query")
    if ports.cache is not None:
        ports.cache.keep_embedding(ports.embedder.name, text, vectors)
    return vectors


def _restore_names(
    ports: Ports, request: SearchRequest, active: ActiveScope | None, known: dict[str, Any]
) -> Flow[SearchRequest]:
    """Return the request with names as the graph has them, so that a name in lower case is seen.

    Postings in `known` become those of its words: "Who is married to Carl?", asked by Carl, is "married to me".
    """
    from mem0_core.recall.exploration import restore_query  # imports NumPy, which importing this package must not

    query = yield from restore_query(ports, request.query, request.scope, active)
    if active is None and _reads_words(request) and query.terms != request.query.terms:
        find = ports.store.lexicon.postings
        known["postings"] = yield from do(find, request.scope, query.terms, kind="term", limit=COMMON_TERM_COUNT)
    return request if query is request.query else replace(request, query=query)


def _remove_names(text: str, names: frozenset[str]) -> str:
    """Return a text without some words; unchanged if no term would be left."""
    if not names:
        return text
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    cut = re.sub(rf"(?<!\w)(?:{name})(?:['’]s)?(?!\w)", "", text, flags=re.IGNORECASE)
    return " ".join(cut.split()) if extract_terms(cut) else text


def _find_untrusted(ports: Ports, request: SearchRequest) -> Flow[Collection[int]]:
    if request.min_trust is None:
        return ()
    return (yield from do(ports.store.graph.untrusted_relation_rows, request.scope, request.min_trust))


def _recall_graph(
    ports: Ports,
    request: SearchRequest,
    vectors: NDArray[np.float32],
    untrusted: Collection[int],
    active: ActiveScope | None,
) -> Flow[GraphEvidence]:
    """Return the relations that bear on a query. Where some are not trusted, no path is followed through them."""
    assert ports.graph is not None
    recipe = request.recipe
    evidence = yield from recall_relations(
        ports,
        ports.graph,
        request.query,
        request.scope,
        vectors,
        hops=recipe.hops,
        as_of=request.as_of,
        with_support="graph" in recipe.sources,
        with_paths="path" in recipe.signals and not untrusted,
        active=active,
    )
    if not untrusted:
        return evidence
    return replace(evidence, best=[pair for pair in evidence.best if pair[0].row not in untrusted])


def _load_allowed_rows(ports: Ports, request: SearchRequest) -> Flow[NDArray[np.int64] | None]:
    if request.filter is None and request.as_of is None:
        return None
    return (yield from do(ports.store.rows, request.scope, filter=request.filter, as_of=request.as_of))


# --- transient candidates ----------------------------------------------------------------------------------------


def _load_transient(
    ports: Ports,
    request: SearchRequest,
    unprocessed: Sequence[tuple[Job, Message]],
    vectors: NDArray[np.float32],
    active: ActiveScope | None,
) -> Flow[list[TransientCandidate]]:
    if request.as_of is not None:
        return (yield from _load_past(ports, request, request.as_of, vectors))
    unprocessed_candidates = yield from _embed_unprocessed(ports, unprocessed, vectors)
    is_wanted = not request.recipe.is_dense_only and reaches_back(request.query.question)
    if not (request.include_superseded or is_wanted):
        return unprocessed_candidates
    return [*unprocessed_candidates, *(yield from _load_replaced(ports, request, vectors, active))]


def _embed_unprocessed(
    ports: Ports, unprocessed: Sequence[tuple[Job, Message]], vectors: NDArray[np.float32]
) -> Flow[list[TransientCandidate]]:
    """Return the last queued messages as candidates: an agent must not forget the last turn."""
    spoken = [
        (job, message) for job, message in unprocessed if message.role in SPEAKER_ROLES and message.content.strip()
    ]
    if not spoken:
        return []
    embedded = yield from embed_texts(ports, [message.content for _, message in spoken])
    cosines = (embedded @ vectors[0]).tolist()
    return [
        TransientCandidate(_to_item(job, message), cosine, is_unprocessed=True)
        for (job, message), cosine in zip(spoken, cosines, strict=True)
    ]


def _to_item(job: Job, message: Message) -> MemoryItem:
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


def _load_replaced(
    ports: Ports, request: SearchRequest, vectors: NDArray[np.float32], active: ActiveScope | None
) -> Flow[list[TransientCandidate]]:
    """Return the last earlier texts of memories as candidates."""
    if active is not None and not any(active.state.past):
        return []  # as in most scopes
    replaced, embedded = yield from do(
        ports.store.replaced_texts, request.scope, filter=request.filter, limit=_MAX_REPLACED_TEXTS
    )
    if not replaced:
        return []
    return [
        TransientCandidate(item, cosine, replaced_at=end)
        for (item, end), cosine in zip(replaced, (embedded @ vectors[0]).tolist(), strict=True)
        if not is_expired(item, request.today)
    ]


def _load_past(
    ports: Ports, request: SearchRequest, as_of: str, vectors: NDArray[np.float32]
) -> Flow[list[TransientCandidate]]:
    """Return the texts that memories had then and no longer have. They are few, so all are compared."""
    items, embedded = yield from do(ports.store.past_memories, request.scope, as_of=as_of, filter=request.filter)
    if not items:
        return []
    return [
        TransientCandidate(item, cosine)
        for item, cosine in zip(items, (embedded @ vectors[0]).tolist(), strict=True)
        if not is_expired(item, request.today)
    ]
