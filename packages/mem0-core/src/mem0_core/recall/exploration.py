"""Exploring the graph: the flows that feed what `graph` computes from the store, and give back what the truth holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mem0_core.domain.records import Entity, MemoryItem, Relation, Scope, entity_key, is_valid_text
from mem0_core.errors import InputError, QueryError
from mem0_core.flow import Flow, do
from mem0_core.graph.adjacency import Adjacency, AdjacencyIndex
from mem0_core.graph.lookup import search_neighborhoods, search_relations, self_name
from mem0_core.graph.query_engine import LIMIT, Bounds, Edge, Plan, Vertex, check, similars_of
from mem0_core.graph.query_language import parse
from mem0_core.graph.traversal import Path, Step, Track, Walk, Weights, k_hop
from mem0_core.graph.view import Drawing
from mem0_core.interfaces import Ports
from mem0_core.language.messages import parse_timestamp
from mem0_core.language.name_similarity import is_part_of, is_same_name
from mem0_core.language.question import Question, read_question
from mem0_core.recall.embedding import embed_texts

__all__ = ["GraphQueryAnswer", "build_drawing", "find_neighborhood", "load_adjacency", "run_query", "traverse"]

_MAX_SEED_NODES = 3  # nodes near a name that the graph has not
_MAX_DEPTH = 12
_MAX_EDGES_PER_NODE = 4  # times as many relations as nodes are drawn at most
_MAX_SINGLE_READS = 100
_MAX_SIMILAR = 256  # nodes or relations that one SIMILAR finds


def traverse(
    ports: Ports,
    question: str,
    scope: Scope,
    *,
    as_of: str | None = None,
    limit: int = 5,
    depth: int | None = None,
    weights: Weights | None = None,
) -> Flow[list[Path]]:
    """Where a question leads to in the graph of a scope, best first, each with the path to it.

    "Alice's sister's dog" begins at Alice and follows two terms. Where the words of a term fit no label, the labels
    that are there are compared with it by their vectors: one call to the embedder for each such term.

    Args:
        as_of: ISO 8601 in UTC; what held then.
        depth: how many relations a path may have, at most 12; by default as many as the question has terms.

    Raises:
        QueryError: the question is empty or not valid Unicode.
        InputError: `depth` is out of range.
    """
    if not isinstance(question, str) or not question.strip():
        raise QueryError("the question is empty", query=question)
    if not is_valid_text(question):
        raise QueryError("the question is not valid Unicode (it holds a lone surrogate)", query=question)
    if depth is not None and not 1 <= depth <= _MAX_DEPTH:
        raise InputError(f"depth must lie in 1..{_MAX_DEPTH}, not {depth!r}")
    asked = read_question(question)
    adjacency = yield from load_adjacency(ports, scope)
    starts = yield from _find_starts(ports, adjacency, asked, scope, as_of)
    if not starts:
        return []
    now = round(datetime.now(UTC).timestamp() * 1e6)
    walk = Walk(
        adjacency, asked.chain[:_MAX_DEPTH], now=now, as_of=as_of, weights=weights or Weights(**ports.traversal_weights)
    )
    tracks = yield from do(walk.search, starts, limit=limit, depth=depth)
    for _ in asked.chain:
        if tracks or not (yield from _learn_labels(ports, walk)):
            break
        tracks = yield from do(walk.search, starts, limit=limit, depth=depth)
    return (yield from _build_paths(ports, adjacency, tracks, scope))


def find_neighborhood(
    ports: Ports,
    names: Sequence[str],
    scope: Scope,
    *,
    k: int = 2,
    limit: int = 200,
    as_of: str | None = None,
    evidence: bool = True,
) -> Flow[list[tuple[Relation, int]]]:
    """The relations within `k` steps of the entities with these names, nearest first, each with its number of steps."""
    adjacency = yield from load_adjacency(ports, scope)
    seeds = [vertex for name in names for vertex in adjacency.named(name)]
    found = k_hop(adjacency, seeds, k, limit=limit, as_of=as_of)
    held = yield from _load_relations(ports, adjacency, (edge for edge, _ in found), scope, evidence=evidence)
    return [(held[edge], hop) for edge, hop in found if edge in held]


@dataclass(frozen=True, slots=True)
class GraphQueryAnswer:
    """What a query gives: rows of entities, relations, lists of relations and plain values; or its plan, by lines."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()


def run_query(
    ports: Ports, text: str, scope: Scope, *, as_of: str | None = None, bounds: Bounds | None = None
) -> Flow[GraphQueryAnswer]:
    """Run a query of the language of `graph.language` in the graph of a scope.

    Args:
        as_of: ISO 8601 in UTC; what held then, unless the query says another time itself.

    Raises:
        QueryError: the query cannot be read or makes no sense, and where; or it goes further than `bounds` allow.
    """
    tree = parse(text)
    kinds = check(tree)
    then = as_of
    if tree.as_of is not None:
        try:
            then = parse_timestamp(tree.as_of, "AS OF")
        except InputError as error:
            raise QueryError(str(error), query=text, position=text.rfind(tree.as_of)) from error
    adjacency = yield from load_adjacency(ports, scope)
    near, notes = yield from _resolve_similar(ports, similars_of(tree, kinds), adjacency, scope, then)
    plan = Plan(tree, adjacency, near, as_of=then, bounds=bounds or Bounds())
    if tree.explain:
        return GraphQueryAnswer([], [], notes, tuple(plan.lines()))
    rows, more = yield from do(plan.rows)
    if more:
        notes = (*notes, f"there are more rows than {LIMIT:,}: say LIMIT")
    edges = [edge.number for row in rows for value in row for edge in _edges_in(value)]
    held = yield from _load_relations(ports, adjacency, edges, scope)
    shown = [
        tuple(_to_public_value(value, adjacency, held) for value in row)
        for row in rows
        if all(edge.number in held for value in row for edge in _edges_in(value))
    ]
    return GraphQueryAnswer(plan.columns, shown, notes)


def _resolve_similar(
    ports: Ports, wanted: set[tuple[str, str, float]], adjacency: Adjacency, scope: Scope, as_of: str | None
) -> Flow[tuple[dict[tuple[str, str, float], frozenset[int]], tuple[str, ...]]]:
    """What each SIMILAR of a query is true of, and what has to be said about that."""
    found: dict[tuple[str, str, float], frozenset[int]] = {}
    notes: list[str] = []
    for key in sorted(wanted):
        kind, text, threshold = key
        if ports.graph is None:
            raise QueryError("SIMILAR compares vectors, and graph memory is off", query=text)
        vectors = yield from embed_texts(ports, [text])
        if kind == "node":
            (around,) = yield from search_neighborhoods(
                ports.graph, scope, vectors, threshold=threshold, limit=_MAX_SIMILAR, as_of=as_of
            )
            rows = [row for row, _ in around.nodes]
            places = (adjacency.vertex_of(row) for row in rows)
        else:
            (near,) = yield from search_relations(
                ports.graph, scope, vectors, _MAX_SIMILAR, threshold=threshold, as_of=as_of
            )
            rows = [row for row, _ in near]
            places = (adjacency.edge_of(row) for row in rows)
        found[key] = frozenset(place for place in places if place is not None)
        if len(rows) == _MAX_SIMILAR:
            notes.append(f"more than {_MAX_SIMILAR} are near {text!r}: only the nearest were looked at")
    return found, tuple(notes)


def _edges_in(value: Any) -> tuple[Edge, ...]:
    return (value,) if isinstance(value, Edge) else value if isinstance(value, tuple) else ()


def _to_public_value(value: Any, adjacency: Adjacency, held: dict[int, Relation]) -> Any:
    match value:
        case Vertex(number):
            return Entity(adjacency.names[number], adjacency.kinds[adjacency.kind[number]])
        case Edge(number):
            return held[number]
        case tuple():
            return [held[edge.number] for edge in value]
        case _:
            return value


def build_drawing(
    ports: Ports, scope: Scope, *, entities: Sequence[str] | None = None, depth: int = 2, limit: int = 5_000
) -> Flow[Drawing]:
    """The graph of a scope to be drawn, ended relations too, or what lies within `depth` steps of some entities.

    Of more than `limit` nodes those with most relations are taken, and with `entities` the nearest relations.

    Raises:
        InputError: an entity is not in the graph.
    """
    adjacency = yield from load_adjacency(ports, scope)
    alive = np.flatnonzero(~adjacency.gone)
    if entities is not None:
        seeds = []
        for name in entities:
            found = yield from _find_vertices(ports, adjacency, name, scope)
            if not found:
                raise InputError(f"no entity is called {name!r} here")
            seeds += found
        near = k_hop(adjacency, seeds, depth, limit=_MAX_EDGES_PER_NODE * limit, ended=True)
        alive = np.array([edge for edge, _ in near], np.int64)
    ends = np.concatenate((adjacency.source[alive], adjacency.destination[alive]))
    vertices, degrees = np.unique(ends, return_counts=True)
    kept = np.zeros(adjacency.vertices, bool)
    kept[vertices[np.argsort(-degrees, kind="stable")[:limit]]] = True
    if entities is not None:
        kept[seeds] = True
    alive = alive[kept[adjacency.source[alive]] & kept[adjacency.destination[alive]]][: _MAX_EDGES_PER_NODE * limit]
    held = yield from _load_relations(ports, adjacency, alive.tolist(), scope)
    relations = [held[edge] for edge in sorted(held)]
    shown = np.unique(np.concatenate((adjacency.source[alive], adjacency.destination[alive])))
    types = {entity_key(adjacency.names[vertex]): adjacency.kinds[adjacency.kind[vertex]] for vertex in shown.tolist()}
    return Drawing(
        title=f"Memory of {', '.join(scope.ids.values())}",
        relations=relations,
        types=types,
        memories=(yield from _load_evidence(ports, relations, scope)),
        marked=list(entities or ()),
        left_out=len(vertices) - len(shown),
    )


def _load_evidence(ports: Ports, relations: Sequence[Relation], scope: Scope) -> Flow[dict[str, MemoryItem]]:
    """The memories that relations came from, by id: one by one where they are few, else from all of the scope."""
    ids = list(dict.fromkeys(memory for relation in relations for memory in relation.memories))
    if len(ids) > _MAX_SINGLE_READS:
        return {item.id: item for item in (yield from do(ports.store.list_memories, scope))}
    found: dict[str, MemoryItem] = {}
    for memory in ids:
        item = yield from do(ports.store.get, memory)
        if item is not None:
            found[memory] = item
    return found


def load_adjacency(ports: Ports, scope: Scope) -> Flow[Adjacency]:
    """The graph of a scope as it is now."""
    index = ports.adjacency or AdjacencyIndex(ports.store.graph)
    adjacency: Adjacency = yield from do(index.of, scope)
    return adjacency


def _find_starts(
    ports: Ports, adjacency: Adjacency, asked: Question, scope: Scope, as_of: str | None
) -> Flow[dict[int, float]]:
    """The vertices a question begins at, each with a score: the one of its name, else those near it."""
    name = asked.seed if asked.seed is not None else self_name(scope)
    named = yield from _find_vertices(ports, adjacency, name, scope)
    if named:
        return dict.fromkeys(named, 1.0)
    if asked.seed is None or ports.graph is None or not adjacency.vertices:
        return {}
    vectors = yield from embed_texts(ports, [name])
    (around,) = yield from search_neighborhoods(
        ports.graph, scope, vectors, threshold=ports.graph.options.threshold, limit=_MAX_SEED_NODES, as_of=as_of
    )
    same: dict[int, float] = {}
    partial: dict[int, float] = {}
    for row, cosine in around.nodes:
        near = adjacency.vertex_of(row)
        if near is None:
            continue
        known, score = adjacency.names[near], min(1.0, cosine)
        if is_same_name(name, known, cosine):
            same.setdefault(near, score)
        elif is_part_of(name, known):
            partial.setdefault(near, score)
    return same or partial


def _find_vertices(ports: Ports, adjacency: Adjacency, name: str, scope: Scope) -> Flow[list[int]]:
    """The vertices of a name, or of what it was merged into."""
    named = adjacency.named(name)
    if named or not adjacency.vertices:
        return named
    stays = (yield from do(ports.store.merges.aliases, scope, "entity")).get(entity_key(name))
    return [] if stays is None else adjacency.named(stays)


def _learn_labels(ports: Ports, walk: Walk) -> Flow[bool]:
    """Whether the labels where a walk got stuck, or some of them, mean what its term says."""
    place, labels = walk.puzzling()
    if not labels:
        return False
    vectors = yield from embed_texts(ports, [walk.terms[place], *(label.replace("_", " ") for label in labels)])
    cosines = (vectors[1:] @ vectors[0]).tolist()
    return walk.learn(place, dict(zip(labels, cosines, strict=True)))


def _build_paths(ports: Ports, adjacency: Adjacency, tracks: Sequence[Track], scope: Scope) -> Flow[list[Path]]:
    """Tracks as the truth has them; what it no longer has is left out."""
    edges = dict.fromkeys(edge for track in tracks for edge in track.edges)
    held = yield from _load_relations(ports, adjacency, edges, scope)
    return [
        Path(
            start=adjacency.names[track.vertices[0]],
            end=adjacency.names[track.vertices[-1]],
            steps=tuple(
                Step(held[edge], bool(adjacency.source[edge] == vertex))
                for edge, vertex in zip(track.edges, track.vertices, strict=False)
            ),
            score=track.score,
        )
        for track in tracks
        if all(edge in held for edge in track.edges)
    ]


def _load_relations(
    ports: Ports, adjacency: Adjacency, edges: Iterable[int], scope: Scope, *, evidence: bool = True
) -> Flow[dict[int, Relation]]:
    """The relations of some edges, by edge."""
    rows = {int(adjacency.rows[edge]): edge for edge in edges}
    if not rows:
        return {}
    held = yield from do(ports.store.graph.relations_by_rows, list(rows), scope=scope, with_evidence=evidence)
    return {rows[row]: relation for row, relation in held.items()}
