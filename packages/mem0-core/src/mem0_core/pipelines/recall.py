"""Recalling: memories beside relations (seed 002, memory search).

`recall_memories`: embed the query -> nearest memories of the scope -> optional rerank -> threshold.
`recall_relations`, both ways of the paper (seed 001): the query's entities -> nodes near them -> one hop; and the query
against the sentence of each relation. BM25 then orders what was found.

As of a day gone by, what memories said then and no longer say is searched beside what they say still.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mem0_core import rules
from mem0_core.errors import ConfigError, ModelError, QueryError
from mem0_core.filters import Filter
from mem0_core.flow import Flow, both, do
from mem0_core.pipelines.near import embed_texts, nearest_items, voiced
from mem0_core.pipelines.relate import look, name_entities, self_name
from mem0_core.ports import Around, Graph, Job, Ports
from mem0_core.ranking import bm25
from mem0_core.records import Hit, MemoryItem, Message, Relation, Scope, content_hash, is_expired, is_valid_text
from mem0_core.text import SPEAKERS, speaks_of_self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Query", "Recalled", "recall"]

_SPARE = 4  # times as many are fetched as are wanted, where age decides among them
_UNLEARNT = 8  # messages that were put off, of which a search takes notice
_POOL = 40  # relations that BM25 puts in order, from each way to find them


@dataclass(frozen=True, slots=True)
class Query:
    """One call of `search`.

    Attributes:
        limit: how many hits at most.
        threshold: hits with a lower score are left out; scores are cosines cut to [0, 1].
        today: ``YYYY-MM-DD``; memories that expired before it are left out.
        rerank: whether the reranker orders the hits; None for yes where there is one.
        as_of: ISO 8601 in UTC; answer from what held then, None for now.
        unlearnt: whether messages that were put off and are not remembered yet are found too.
        half_life: days after which a memory that was not touched again counts half; None where age does not count.
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


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found, best first; each relation with its cosine, in [0, 1]."""

    hits: list[Hit]
    relations: list[tuple[Relation, float]]


def recall(ports: Ports, query: Query) -> Flow[Recalled]:
    """The memories of a scope nearest to a text, and the relations that bear on it, best first.

    Raises:
        QueryError: the text is empty or not valid Unicode.
        ConfigError: a rerank is asked for and there is no reranker, or the store has another embedder's vectors.
    """
    _check(ports, query)
    vectors = yield from embed_texts(ports, [query.text], kind="query")
    memories = recall_memories(ports, query, vectors)
    if ports.graph is None:
        return Recalled((yield from memories), [])
    relations = recall_relations(ports, ports.graph, query, vectors)
    if _asks_model(ports.graph):
        hits, found = yield from both(memories, relations)
        return Recalled(hits, found)
    return Recalled((yield from memories), (yield from relations))


# --- memories ----------------------------------------------------------------------------------------------------


def recall_memories(ports: Ports, query: Query, vectors: NDArray[np.float32]) -> Flow[list[Hit]]:
    """The memories nearest to a query's vector (1, dims); the reranker and the threshold have the last word."""
    only = None
    if query.filter is not None or query.as_of is not None:
        only = yield from do(ports.store.rows, query.scope, filter=query.filter, as_of=query.as_of)
    beside = yield from (_past if query.as_of is not None else _unlearnt)(ports, query, vectors)
    wanted = query.limit if query.half_life is None else query.limit * _SPARE
    while True:
        (found,) = yield from nearest_items(ports, query.scope, vectors, wanted, only=only)
        hits = [Hit(item, min(1.0, max(0.0, score))) for item, score in found if not is_expired(item, query.today)]
        if len(hits) >= query.limit or len(found) < wanted:
            break
        wanted *= 4  # expired memories took places in the pool
    hits = sorted((_aged(hit, query) for hit in (*hits, *beside)), key=lambda hit: -hit.score)[: query.limit]
    if ports.reranker is not None and query.rerank is not False:
        hits = yield from _rerank(ports, query.text, hits)
    return [hit for hit in hits if query.threshold is None or hit.score >= query.threshold]


def _aged(hit: Hit, query: Query) -> Hit:
    """The hit with its score as its age leaves it; what is pinned does not age."""
    if query.half_life is None or hit.item.pinned:
        return hit
    then = datetime.fromisoformat(hit.item.updated_at or hit.item.created_at)
    now = datetime.fromisoformat(query.as_of) if query.as_of else datetime.now(UTC)
    days = max(0.0, (now - then).total_seconds() / 86_400)
    return replace(hit, score=hit.score * 0.5 ** (days / query.half_life))


def _unlearnt(ports: Ports, query: Query, vectors: NDArray[np.float32]) -> Flow[list[Hit]]:
    """The last messages that were put off and are not remembered yet: an agent must not forget the last turn."""
    if query.filter is not None or not query.unlearnt:
        return []
    waiting = yield from do(ports.store.jobs.unlearnt, query.scope, limit=_UNLEARNT)
    messages = [(job, said) for job, said in waiting if said.role in SPEAKERS and said.content.strip()]
    if not messages:
        return []
    theirs = yield from embed_texts(ports, [voiced(message.content, message.name) for _, message in messages])
    scores = (theirs @ vectors[0]).tolist()
    return [
        Hit(_as_item(job, message), min(1.0, max(0.0, score)), pending=True)
        for (job, message), score in zip(messages, scores, strict=True)
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


def _past(ports: Ports, query: Query, vectors: NDArray[np.float32]) -> Flow[list[Hit]]:
    """What memories said then and say no longer. There is little of it: it is scanned."""
    assert query.as_of is not None
    items, theirs = yield from do(ports.store.past, query.scope, as_of=query.as_of, filter=query.filter)
    if not items:
        return []
    scores = (theirs @ vectors[0]).tolist()
    return [
        Hit(item, min(1.0, max(0.0, score)))
        for item, score in zip(items, scores, strict=True)
        if not is_expired(item, query.today)
    ]


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


# --- relations ---------------------------------------------------------------------------------------------------


def recall_relations(
    ports: Ports, graph: Graph, query: Query, vectors: NDArray[np.float32]
) -> Flow[list[tuple[Relation, float]]]:
    """The relations that bear on a query, each with the cosine of its sentence to the query's vector (1, dims).

    They are found by the query's entities and by its vector, and BM25 puts them in order.
    """
    options, truth = graph.options, ports.store.graph
    if not (yield from do(truth.relation_vectors.position, query.scope)).seq:
        return []  # there was never any: most users of a store without a model, say
    (near,) = yield from look(
        graph, "triplets", query.scope, vectors, _POOL, threshold=options.triplet_threshold, as_of=query.as_of
    )
    rows = [row for row, _ in near]
    names = yield from _entities_of(graph, query)
    if names:
        named = yield from embed_texts(ports, names)
        arounds: list[Around] = yield from look(
            graph, "around", query.scope, named, threshold=options.threshold, limit=_POOL, as_of=query.as_of
        )
        rows += [row for around in arounds for row, _ in around.relations]
    if not rows:
        return []
    distinct = list(dict.fromkeys(rows))
    held = yield from do(truth.relations_by_rows, distinct, scope=query.scope, evidence=False)
    theirs, sentences = yield from do(truth.relation_vectors.vectors, list(held))
    cosines = dict(zip(theirs.tolist(), (sentences @ vectors[0]).tolist(), strict=True)) if held else {}
    found = [(relation, min(1.0, max(0.0, cosines.get(row, 0.0)))) for row, relation in held.items()]
    words = bm25(query.text, [relation.triplet.sentence for relation, _ in found])
    ranked = sorted(zip(words, found, strict=True), key=lambda pair: (-pair[0], -pair[1][1]))
    best = [(relation.row, score) for _, (relation, score) in ranked[: options.limit]]
    whole = yield from do(truth.relations_by_rows, [row for row, _ in best], scope=query.scope)
    return [(whole[row], score) for row, score in best if row in whole]


def _asks_model(graph: Graph) -> bool:
    return graph.chat is not None and graph.options.query_entities == "model"


def _entities_of(graph: Graph, query: Query) -> Flow[list[str]]:
    """Whom and what a query names. Where the model fails, rules do."""
    if _asks_model(graph):
        with suppress(ModelError):
            entities, _ = yield from name_entities(graph, query.text, query.scope)
            return [entity.name for entity in entities]
    named = [entity.name for entity in rules.entities(query.text)]
    return [self_name(query.scope), *named] if speaks_of_self(query.text) else named
