"""Recalling: candidates from several sources, one score, and a reason for each (seeds 001, 002, and 003 part 5).

`read` the query: its words, names and time words, its vector, the relations that bear on it -> memories by vectors, by
words, and by those relations, united -> `gather.rank`: signals, their weighted sum, and a walk over shared names that
may bring more -> the reranker -> the threshold, the gate and the limit.

What of this happens, and what counts how much, is the recipe's to say (`mem0_core.recipes`). As of a day gone by,
what memories said then and no longer say is ranked beside what they say still.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from mem0_core import words
from mem0_core.errors import ConfigError, QueryError
from mem0_core.filters import Filter
from mem0_core.flow import Flow, do, each, later
from mem0_core.pipelines.gather import Outsider, Pool, cut, rank, within
from mem0_core.pipelines.near import embed_texts
from mem0_core.pipelines.related import Related, recall_relations
from mem0_core.pipelines.rerank import rerank
from mem0_core.ports import Graph, Job, Ports, check_space
from mem0_core.ranking import COMMON, Asked, Ranked, best_by_words, informative
from mem0_core.recipes import HYBRID, Recipe
from mem0_core.records import Hit, MemoryItem, Message, Relation, Scope, content_hash, is_expired, is_valid_text
from mem0_core.text import SPEAKERS
from mem0_core.timewords import spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Notes", "Query", "Reading", "Recalled", "considered", "ranked", "read", "recall"]

_SPARE = 4  # times as many are fetched as are wanted, where age decides among them
_UNLEARNT = 8  # messages that were put off, of which a search takes notice
_TERMS = 64  # words of a query that are looked up
_READ = 4_000  # characters of a query that are read for words, names and times


@dataclass(frozen=True, slots=True)
class Query:
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
    unlearnt: bool = True
    recipe: Recipe = HYBRID
    reference: date | None = None
    allow_no_answer: bool = False

    @property
    def floor(self) -> float:
        """The score below which a hit is left out."""
        chosen = self.threshold if self.threshold is not None else self.recipe.threshold
        return 0.0 if chosen is None else chosen


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found, best first; each relation with its cosine, in [0, 1].

    Attributes:
        note: why there is nothing, or why it is in another order than asked.
    """

    hits: list[Hit]
    relations: list[tuple[Relation, float]]
    note: str | None = None


@dataclass(slots=True)
class Notes:
    """What a search has to say about itself."""

    said: list[str] = field(default_factory=list)

    def add(self, note: str) -> None:
        self.said.append(note)

    @property
    def text(self) -> str | None:
        return "; ".join(self.said) or None


def recall(ports: Ports, query: Query) -> Flow[Recalled]:
    """The memories of a scope that answer a text best, and the relations that bear on it.

    Raises:
        QueryError: the text is empty or not valid Unicode.
        ConfigError: a rerank is asked for and there is no reranker, or the store has another embedder's vectors.
    """
    notes = Notes()
    reading = yield from read(ports, query)
    hits = yield from considered(ports, query, reading, notes)
    return Recalled(_judged(query, hits, notes), reading.related.best, notes.text)


def considered(ports: Ports, query: Query, reading: Reading, notes: Notes) -> Flow[list[Hit]]:
    """The best hits, before the threshold, the gate and the limit: as many as are wanted, or as the reranker reads."""
    hits = yield from _found(ports, query, reading)
    return (yield from _reranked(ports, query, hits, notes))


def _check(ports: Ports, query: Query) -> None:
    if not isinstance(query.text, str) or not query.text.strip():
        raise QueryError("the query is empty: use get_all to list memories", query=query.text)
    if not is_valid_text(query.text):
        raise QueryError("the query is not valid Unicode (it holds a lone surrogate)", query=query.text)
    if query.rerank and ports.reranker is None:
        raise ConfigError("reranker: rerank=True needs a reranker, and none is configured")


# --- the query ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What one search knows before it looks at a memory.

    Attributes:
        asked: what the query says besides its vector.
        vectors: the query's, (1, dims).
        matches: for each word of the query the rows of the memories that have it.
        only: the rows that may be found; None for all of the scope.
        beside: memories that are not in the store as they are ranked.
    """

    asked: Asked
    vectors: NDArray[np.float32]
    matches: Mapping[str, NDArray[np.int64]]
    related: Related
    only: NDArray[np.int64] | None
    beside: list[Outsider]


def read(ports: Ports, query: Query) -> Flow[Reading]:
    """Read the query: its words, names and times, its vector, the relations that bear on it.

    The names of those who speak in the scope are cut from what is embedded: they tell who said a thing, not what it is
    about, and vectors know nobody. ("What did Maya buy?" lies nearer to all that names Maya than to what she bought.)
    """
    _check(ports, query)
    text, recipe = query.text[:_READ], query.recipe
    known = yield from _looked_up(ports, query, text)
    check_space(known["space"], (ports.embedder.name, ports.embedder.dims))
    speakers, matches = frozenset(known.get("speakers", ())), known.get("matches", {})
    vectors = yield from embed_texts(ports, [_without(query.text, speakers)], kind="query")
    now = datetime.fromisoformat(query.as_of) if query.as_of else datetime.now(UTC)
    asked = Asked(
        now=now,
        weights=informative(matches),
        speakers=speakers,
        names=_names(text, speakers) if "pagerank" in recipe.signals else (),
        dates=spans(text, query.reference or now.date()) if "date" in recipe.signals else (),
    )
    related = Related()
    if ports.graph is not None and known["relations"].seq:  # there was never any: most users of a store without a model
        related = yield from _related(ports, ports.graph, query, vectors)
    only = None
    if query.filter is not None or query.as_of is not None:
        only = yield from do(ports.store.rows, query.scope, filter=query.filter, as_of=query.as_of)
    if query.as_of is not None:
        beside = yield from _past(ports, query, vectors)
    else:
        beside = yield from _pending(ports, known.get("unlearnt", ()), vectors)
    return Reading(asked, vectors, matches, related, only, beside)


def _looked_up(ports: Ports, query: Query, text: str) -> Flow[dict[str, Any]]:
    """What the store knows of a query that nothing has to be computed for, in one go."""
    store, recipe, scope = ports.store, query.recipe, query.scope
    telling = [word for word in dict.fromkeys(words.plain(text)) if not words.is_stop_word(word)][:_TERMS]
    calls = {"space": later(store.space)}
    if telling:
        calls["speakers"] = later(store.lexicon.postings, scope, telling, kind="speaker", most=1)
    by_words = "lexical" in recipe.sources or not recipe.signals.isdisjoint({"bm25", "context_bm25"})
    if by_words and (terms := list(dict.fromkeys(words.terms(text)))[:_TERMS]):
        calls["matches"] = later(store.lexicon.postings, scope, terms, kind="term", most=COMMON)
    if ports.graph is not None:
        calls["relations"] = later(store.graph.relation_vectors.position, scope)
    if query.as_of is None and query.filter is None and query.unlearnt:
        calls["unlearnt"] = later(store.jobs.unlearnt, scope, limit=_UNLEARNT)
    return dict(zip(calls, (yield from each(*calls.values())), strict=True))


def _names(text: str, speakers: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in words.names(text) if speakers.isdisjoint(name.split()))


def _related(ports: Ports, graph: Graph, query: Query, vectors: NDArray[np.float32]) -> Flow[Related]:
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
            supported="graph" in recipe.sources,
            routed="path" in recipe.signals,
        )
    )


def _without(text: str, names: frozenset[str]) -> str:
    """A text without these words; as it is where nothing would be left that says something."""
    if not names:
        return text
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    cut = re.sub(rf"(?<!\w)(?:{name})(?:['’]s)?(?!\w)", "", text, flags=re.IGNORECASE)
    return " ".join(cut.split()) if words.terms(cut) else text


# --- candidates --------------------------------------------------------------------------------------------------


def _found(ports: Ports, query: Query, reading: Reading) -> Flow[list[Hit]]:
    """The best hits by the recipe's signals: as many as are wanted, or as the reranker reads."""
    wanted = query.limit
    if ports.reranker is not None and query.rerank is not False:
        wanted = max(wanted, query.recipe.rerank_pool)
    fetched = wanted if query.half_life is None else wanted * _SPARE
    size = fetched if query.recipe.is_dense_only else max(query.recipe.pool, 2 * fetched)
    while True:
        found, is_all = yield from ranked(ports, query, reading, size)
        hits = yield from _fetch(ports, query, found, fetched)
        if len(hits) >= fetched or is_all:
            return sorted((_aged(hit, query) for hit in hits), key=lambda hit: -hit.score)[:wanted]
        size *= _SPARE  # expired memories took places among the nearest


def ranked(ports: Ports, query: Query, reading: Reading, size: int) -> Flow[tuple[Iterator[Ranked], bool]]:
    """What each source brings, at most `size` of it, best first; and whether no source by vectors has more."""
    recipe, only = query.recipe, reading.only
    near: list[tuple[int, float]] = []
    if "dense" in recipe.sources:
        (near,) = yield from do(ports.index.nearest, query.scope, reading.vectors, size, only=only)
    if recipe.is_dense_only:
        return _by_vector(near, reading.beside), len(near) < size
    pool = Pool(ports, query.scope, query.today, reading.asked, reading.vectors, near)
    brought = within(reading.related.memories, only)
    if "lexical" in recipe.sources:
        brought += best_by_words(reading.matches, reading.asked.weights, size, only)
    return (yield from rank(pool, recipe, brought, reading.related, reading.beside, only)), len(near) < size


def _by_vector(near: Sequence[tuple[int, float]], beside: Sequence[Outsider]) -> Iterator[Ranked]:
    """`rank` for recipes that count nothing but the cosine, and need to read nothing for it."""
    weights = {"dense": 1.0}
    found = [Ranked(row, None, False, cut(cosine), {"dense": cut(cosine)}, weights) for row, cosine in near]
    for item, cosine, pending in beside:
        found.append(Ranked(None, item, pending, cut(cosine), {"dense": cut(cosine)}, weights))
    return iter(sorted(found, key=lambda each: -each.score))


def _fetch(ports: Ports, query: Query, ranked: Iterator[Ranked], most: int) -> Flow[list[Hit]]:
    """The first `most` of the ranked that live."""
    hits: list[Hit] = []
    while len(hits) < most and (some := list(islice(ranked, most))):
        items = yield from do(ports.store.by_rows, [one.row for one in some if one.row is not None], scope=query.scope)
        for one in some:
            item = one.item if one.row is None else items.get(one.row)
            if item is not None and not is_expired(item, query.today):
                hits.append(Hit(item, one.score, one.pending, one.signals, one.weights))
    return hits[:most]


def _aged(hit: Hit, query: Query) -> Hit:
    """The hit with its score as its age leaves it; what is pinned does not age."""
    if query.half_life is None or hit.item.pinned:
        return hit
    then = datetime.fromisoformat(hit.item.updated_at or hit.item.created_at)
    now = datetime.fromisoformat(query.as_of) if query.as_of else datetime.now(UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return replace(hit, score=hit.score * 0.5 ** (days / query.half_life))


def _pending(
    ports: Ports, waiting: Sequence[tuple[Job, Message]], vectors: NDArray[np.float32]
) -> Flow[list[Outsider]]:
    """The last messages that were put off and are not remembered yet: an agent must not forget the last turn."""
    messages = [(job, said) for job, said in waiting if said.role in SPEAKERS and said.content.strip()]
    if not messages:
        return []
    theirs = yield from embed_texts(ports, [message.content for _, message in messages])
    cosines = (theirs @ vectors[0]).tolist()
    return [
        Outsider(_as_item(job, message), cosine, pending=True)
        for (job, message), cosine in zip(messages, cosines, strict=True)
    ]


def _as_item(job: Job, message: Message) -> MemoryItem:
    return MemoryItem(
        id=f"pending:{message.row}",
        text=message.content,
        scope=job.scope,
        hash=content_hash(message.content),
        created_at=message.timestamp or job.at,
        metadata={**job.options.get("metadata", {}), **message.metadata},
        actor_id=message.name,
        role=message.role,
    )


def _past(ports: Ports, query: Query, vectors: NDArray[np.float32]) -> Flow[list[Outsider]]:
    """What memories said then and say no longer. There is little of it: it is scanned."""
    assert query.as_of is not None
    items, theirs = yield from do(ports.store.past, query.scope, as_of=query.as_of, filter=query.filter)
    if not items:
        return []
    cosines = (theirs @ vectors[0]).tolist()
    return [
        Outsider(item, cosine) for item, cosine in zip(items, cosines, strict=True) if not is_expired(item, query.today)
    ]


# --- the last word -----------------------------------------------------------------------------------------------


def _reranked(ports: Ports, query: Query, hits: list[Hit], notes: Notes) -> Flow[list[Hit]]:
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


def _judged(query: Query, hits: list[Hit], notes: Notes) -> list[Hit]:
    """The hits that are good enough, none where the best is not."""
    best = hits[0].score if hits else 0.0
    if query.allow_no_answer and hits and best < query.recipe.gate:
        notes.add(f"no answer: the best hit scores {best:.2f}, below the gate of {query.recipe.gate:g}")
        return []
    kept = [hit for hit in hits if hit.score >= query.floor][: query.limit]
    if hits and not kept:
        notes.add(f"nothing reaches the threshold of {query.floor:g}; the best hit scores {best:.2f}")
    return kept
