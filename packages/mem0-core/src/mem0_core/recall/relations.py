"""Recalling relations: both ways of the paper (seed 001), and the memories that say what was found.

`recall_relations`: the query's entities -> nodes near them -> the relations around, as many hops as the recipe says;
and the query against the sentence of each relation. BM25 puts them in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mem0_core.domain.records import Relation, Scope, entity_key
from mem0_core.errors import ModelError
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import extract_entities, search_neighborhoods, search_relations, self_name
from mem0_core.interfaces import GraphMemory, Ports
from mem0_core.language import rule_extractor as rules
from mem0_core.language.messages import mentions_speaker
from mem0_core.language.question import read_question
from mem0_core.language.temporal import is_about_time
from mem0_core.recall.embedding import embed_texts
from mem0_core.recall.ranking import bm25

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MAX_QUERY_NAMES", "GraphEvidence", "recall_relations"]

MAX_QUERY_NAMES = 64
"""Names of one query that are looked up in the graph, each of which is compared with all of its nodes."""

_POOL_SIZE = 40  # relations that BM25 puts in order, from each way to find them


@dataclass(frozen=True, slots=True)
class GraphEvidence:
    """What the graph says of a query.

    Attributes:
        best: relations, best first, each with the cosine of its sentence to the query, in [0, 1].
        support: for rows of memories that say one of the relations found, the highest of those cosines, and how often
            the relations were said.
        paths: for rows of memories that say a step of a path to where the query leads, the score of the path.
    """

    best: list[tuple[Relation, float]] = field(default_factory=list)
    support: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    paths: Mapping[int, float] = field(default_factory=dict)

    @property
    def memory_rows(self) -> set[int]:
        """The rows of all memories that the graph brings."""
        return {*self.support, *self.paths}


def recall_relations(
    ports: Ports,
    graph: GraphMemory,
    text: str,
    scope: Scope,
    vectors: NDArray[np.float32],
    *,
    hops: int = 1,
    as_of: str | None = None,
    with_support: bool = True,
    with_paths: bool = False,
) -> Flow[GraphEvidence]:
    """The relations that bear on a query, whose vector is (1, dims).

    Args:
        supported: find the memories that say them as well.
        routed: follow the query through the graph where it is one to follow, see `_score_paths`.
    """
    options, truth = graph.options, ports.store.graph
    paths = (yield from _score_paths(ports, text, scope, as_of)) if with_paths else {}
    (near,) = yield from search_relations(
        graph, scope, vectors, _POOL_SIZE, threshold=options.triplet_threshold, as_of=as_of
    )
    rows = [row for row, _ in near]
    names = yield from _find_query_entities(graph, text, scope)
    if names:
        names_now = yield from do(ports.store.merges.aliases, scope, "entity")
        names = list(dict.fromkeys(names_now.get(entity_key(name), name) for name in names))
        named = yield from embed_texts(ports, names)
        arounds = yield from search_neighborhoods(
            graph, scope, named, threshold=options.threshold, limit=_POOL_SIZE, as_of=as_of
        )
        rows += [row for around in arounds for row, _ in around.relations]
    if not rows:
        return GraphEvidence(paths=paths)
    held = yield from _follow_hops(ports, list(dict.fromkeys(rows)), scope, hops, as_of)
    theirs, sentences = yield from do(truth.relation_vectors.vectors, list(held))
    cosines = dict(zip(theirs.tolist(), (sentences @ vectors[0]).tolist(), strict=True)) if held else {}
    found = [(relation, min(1.0, max(0.0, cosines.get(row, 0.0)))) for row, relation in held.items()]
    words = bm25(text, [relation.triplet.sentence for relation, _ in found])
    scored = sorted(zip(words, found, strict=True), key=lambda one: (-one[0], -one[1][1]))
    ranked = [pair for _, pair in scored]
    best = [(relation.row, score) for relation, score in ranked[: options.limit]]
    whole = yield from do(truth.relations_by_rows, [row for row, _ in best], scope=scope)
    support = (yield from _score_support(ports, ranked)) if with_support else {}
    return GraphEvidence([(whole[row], score) for row, score in best if row in whole], support, paths)


def _score_paths(ports: Ports, text: str, scope: Scope, as_of: str | None) -> Flow[dict[int, float]]:
    """The memories along the paths of a traversal, for questions that ask for one (seed 003, part 5: the router).

    Those are possessive chains ("my sister's dog"), "who is", and questions about a time.
    """
    from mem0_core.recall.exploration import traverse  # brings NumPy, which importing this package must not

    asked = read_question(text)
    if not (asked.chain or asked.who or is_about_time(text)):
        return {}
    paths = yield from traverse(ports, text, scope, as_of=as_of)
    steps: dict[int, float] = {}
    for path in paths:
        for step in path.steps:
            steps[step.relation.row] = max(path.score, steps.get(step.relation.row, 0.0))
    sayers = yield from do(ports.store.graph.supporting_memory_rows, list(steps))
    found: dict[int, float] = {}
    for relation, memories in sayers.items():
        for memory in memories:
            found[memory] = max(steps[relation], found.get(memory, 0.0))
    return found


def _follow_hops(
    ports: Ports, rows: Sequence[int], scope: Scope, hops: int, as_of: str | None
) -> Flow[dict[int, Relation]]:
    """The relations with these rows, and those that touch them, so many hops from the query's entities."""
    truth = ports.store.graph
    held = yield from do(truth.relations_by_rows, rows, scope=scope, with_evidence=False)
    for _ in range(hops - 1):
        ends = list({node for relation in held.values() for node in (relation.source_node, relation.destination_node)})
        incident_relation_rows = yield from do(
            truth.incident_relation_rows, ends, scope=scope, limit=_POOL_SIZE, as_of=as_of
        )
        fresh = list({row for some in incident_relation_rows.values() for row in some} - held.keys())
        held |= yield from do(truth.relations_by_rows, fresh[: _POOL_SIZE * hops], scope=scope, with_evidence=False)
    return held


def _score_support(ports: Ports, found: Sequence[tuple[Relation, float]]) -> Flow[dict[int, tuple[float, int]]]:
    sayers = yield from do(ports.store.graph.supporting_memory_rows, [relation.row for relation, _ in found])
    support: dict[int, tuple[float, int]] = {}
    for relation, score in found:
        for memory in sayers[relation.row]:
            highest, said = support.get(memory, (0.0, 0))
            support[memory] = max(highest, score), said + relation.weight
    return support


def _find_query_entities(graph: GraphMemory, text: str, scope: Scope) -> Flow[list[str]]:
    """Whom and what a query names. Where the model fails, rules do."""
    if graph.chat is not None and graph.options.query_entities == "model":
        with suppress(ModelError):
            entities, _ = yield from extract_entities(graph, text, scope)
            return [entity.name for entity in entities]
    named = [entity.name for entity in rules.entities(text)]
    named = named[:MAX_QUERY_NAMES]
    return [self_name(scope), *named] if mentions_speaker(text) else named
