"""Relations that bear on a query, and the memories that state them.

`recall_relations` finds them in the two ways of the Mem0 paper (section 2.2). The entities of the query lead to nodes
near them and, hop by hop, to the relations around; and the query is compared with the sentence of each relation. BM25
orders the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Relation, Scope
from mem0_core.errors import ModelError
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import extract_entities, self_name
from mem0_core.interfaces import GraphMemory, Ports
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.recall._neighbors import find_near_names, find_near_relations, load_relations
from mem0_core.recall._ranking import bm25
from mem0_core.recall.cache import read_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.recall.cache import ActiveScope


MAX_QUERY_NAMES = 64
"""Names of one query that are looked up in the graph; each is compared with all of its nodes."""

_POOL_SIZE = 40  # relations that each of the two ways contributes


@dataclass(frozen=True, slots=True)
class GraphEvidence:
    """Evidence from the graph for a query.

    Attributes:
        best: relations, best first, each with the cosine of its sentence to the query, in [0, 1].
        support: for rows of memories that state one of the relations, the highest of those cosines, and the number of
            times that the relations were stated.
        paths: for rows of memories that state a step of a path that the query describes, the score of the path.
    """

    best: list[tuple[Relation, float]] = field(default_factory=list)
    support: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    paths: Mapping[int, float] = field(default_factory=dict)

    @property
    def memory_rows(self) -> set[int]:
        """Rows of all memories that the graph contributes."""
        return {*self.support, *self.paths}


def recall_relations(
    ports: Ports,
    graph: GraphMemory,
    query: ParsedQuery,
    scope: Scope,
    vectors: NDArray[np.float32],
    *,
    hops: int = 1,
    as_of: str | None = None,
    with_support: bool = True,
    with_paths: bool = False,
    active: ActiveScope | None = None,
) -> Flow[GraphEvidence]:
    """Return the relations that bear on a query.

    Args:
        vectors: embedding of the query, (1, dims).
        with_support: find the memories that state them too.
        with_paths: follow the query through the graph if it describes a path, see `_score_paths`.
        active: the scope as it is now, if it is kept in memory.
    """
    paths = (yield from _score_paths(ports, query, scope, as_of, active)) if with_paths else {}
    rows = yield from _find_rows(ports, graph, query, scope, vectors, as_of, active)
    if not rows:
        return GraphEvidence(paths=paths)
    relations = yield from _follow_hops(ports, list(dict.fromkeys(rows)), scope, hops, as_of, active)
    cosines = yield from _compare_sentences(ports, sorted(relations), vectors[0], active)
    scored = [(relation, min(1.0, max(0.0, cosines.get(row, 0.0)))) for row, relation in relations.items()]
    by_words = bm25(query.text, [relation.triplet.sentence for relation, _ in scored])
    order = sorted(zip(by_words, scored, strict=True), key=lambda pair: (-pair[0], -pair[1][1]))
    ranked = [pair for _, pair in order]
    best = [(relation.row, score) for relation, score in ranked[: graph.options.limit]]
    complete = yield from load_relations(ports, [row for row, _ in best], scope, active)
    support = (yield from _score_support(ports, ranked, active)) if with_support else {}
    return GraphEvidence([(complete[row], score) for row, score in best if row in complete], support, paths)


def _find_rows(
    ports: Ports,
    graph: GraphMemory,
    query: ParsedQuery,
    scope: Scope,
    vectors: NDArray[np.float32],
    as_of: str | None,
    active: ActiveScope | None,
) -> Flow[list[int]]:
    """Return the rows of relations near the query, then of those around the entities that it names."""
    rows = yield from find_near_relations(ports, graph, scope, vectors, _POOL_SIZE, as_of=as_of, active=active)
    names = yield from _find_query_entities(graph, query, scope)
    if names:
        names = yield from _resolve_names(ports, scope, names, active)
        around = yield from find_near_names(ports, graph, scope, names, _POOL_SIZE, as_of=as_of, active=active)
        rows += [row for neighborhood in around for row, _ in neighborhood.relations]
    return rows


def _resolve_names(ports: Ports, scope: Scope, names: Sequence[str], active: ActiveScope | None) -> Flow[list[str]]:
    """Return names as the graph has them: merged names under their present name, names of the speaker under its own."""
    from mem0_core.recall.exploration import load_adjacency  # imports NumPy, which importing this package must not

    adjacency = yield from load_adjacency(ports, scope, active)
    found = ([adjacency.names[vertex] for vertex in adjacency.find_vertices(name)] or [name] for name in names)
    return list(dict.fromkeys(known for some in found for known in some))


def _find_query_entities(graph: GraphMemory, query: ParsedQuery, scope: Scope) -> Flow[list[str]]:
    """Return the entities that a query names, read by the model if configured so, else by rules."""
    if graph.chat is not None and graph.options.query_entities == "model":
        with suppress(ModelError):
            entities, _ = yield from extract_entities(graph, query.text, scope)
            return [entity.name for entity in entities]
    names = [entity.name for entity in query.entities[:MAX_QUERY_NAMES]]
    return [self_name(scope), *names] if query.mentions_speaker else names


def _compare_sentences(
    ports: Ports, rows: Sequence[int], vector: NDArray[np.float32], active: ActiveScope | None
) -> Flow[dict[int, float]]:
    """Return the cosine of the sentence of each of some relations to a vector."""

    def read(wanted: Sequence[int]) -> Flow[dict[int, NDArray[np.float32]]]:
        found, sentences = yield from do(ports.store.graph.relation_vectors.vectors, wanted)
        return dict(zip(found.tolist(), sentences, strict=True))

    import numpy as np

    sentences = yield from read_rows(active, "sentences", rows, read)
    scores = (np.stack(list(sentences.values())) @ vector).tolist() if sentences else []
    return dict(zip(sentences, scores, strict=True))


def _follow_hops(
    ports: Ports, rows: Sequence[int], scope: Scope, hops: int, as_of: str | None, active: ActiveScope | None
) -> Flow[dict[int, Relation]]:
    """Return the relations in `rows`, and those up to ``hops - 1`` hops from them."""
    primary = ports.store.graph
    relations = yield from load_relations(ports, rows, scope, active, with_evidence=False)
    for _ in range(hops - 1):
        nodes = list({node for one in relations.values() for node in (one.source_node, one.destination_node)})
        incident = yield from do(primary.incident_relation_rows, nodes, scope=scope, limit=_POOL_SIZE, as_of=as_of)
        added = list({row for node_rows in incident.values() for row in node_rows} - relations.keys())
        added = added[: _POOL_SIZE * hops]
        relations |= yield from load_relations(ports, added, scope, active, with_evidence=False)
    return relations


def _score_support(
    ports: Ports, ranked: Sequence[tuple[Relation, float]], active: ActiveScope | None
) -> Flow[dict[int, tuple[float, int]]]:
    """Return `GraphEvidence.support`."""
    memories = yield from _find_supporting_rows(ports, [relation.row for relation, _ in ranked], active)
    support: dict[int, tuple[float, int]] = {}
    for relation, score in ranked:
        for memory in memories[relation.row]:
            highest, mentions = support.get(memory, (0.0, 0))
            support[memory] = max(highest, score), mentions + relation.weight
    return support


def _find_supporting_rows(ports: Ports, rows: Sequence[int], active: ActiveScope | None) -> Flow[dict[int, list[int]]]:
    """Return for each of some relations the rows of the memories that state it."""
    return (
        yield from read_rows(
            active, "support", rows, lambda wanted: do(ports.store.graph.supporting_memory_rows, wanted)
        )
    )


def _score_paths(
    ports: Ports, query: ParsedQuery, scope: Scope, as_of: str | None, active: ActiveScope | None
) -> Flow[dict[int, float]]:
    """Return `GraphEvidence.paths`: a traversal, for the queries that call for one.

    Those are possessive chains ("my sister's dog"), questions of identity, and questions about a time.
    """
    from mem0_core.recall.exploration import traverse  # imports NumPy, which importing this package must not

    if not (query.question.steps or query.question.asks_identity or query.is_about_time):
        return {}
    paths = yield from traverse(ports, query, scope, as_of=as_of, active=active, has_known_names=True)
    step_scores: dict[int, float] = {}
    for path in paths:
        for step in path.steps:
            step_scores[step.relation.row] = max(path.score, step_scores.get(step.relation.row, 0.0))
    if not step_scores:
        return {}
    memories = yield from _find_supporting_rows(ports, list(step_scores), active)
    scores: dict[int, float] = {}
    for relation, rows in memories.items():
        for row in rows:
            scores[row] = max(step_scores[relation], scores.get(row, 0.0))
    return scores
