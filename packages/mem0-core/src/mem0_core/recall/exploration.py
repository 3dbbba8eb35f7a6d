"""Traversals, queries and drawings of the graph.

The flows here read from the store the input of the computations in `mem0_core.graph`, and return its relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core._system.records import dataclass
from mem0_core.domain.options import TraverseConfig
from mem0_core.domain.records import Entity, MemoryItem, Relation, Scope, entity_key
from mem0_core.domain.timestamps import parse_timestamp
from mem0_core.errors import InputError, QueryError
from mem0_core.flow import Flow, do
from mem0_core.graph.adjacency import Adjacency, AdjacencyIndex
from mem0_core.graph.known_names import restore_names
from mem0_core.graph.lookup import search_neighborhoods, search_relations, self_name
from mem0_core.graph.question_time import edge_masks
from mem0_core.graph.traversal import Path, Step, Track, Walk, k_hop
from mem0_core.interfaces import GraphMemory, Ports
from mem0_core.language.families import load_families
from mem0_core.language.name_similarity import EntityName, compare_names, is_part_of
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.language.question import Question, expand_kinship
from mem0_core.recall._neighbors import find_near_names, load_relations
from mem0_core.recall.cache import read_once
from mem0_core.recall.embedding import embed_texts

if TYPE_CHECKING:
    from mem0_core.graph.query_engine import Bounds, Edge
    from mem0_core.graph.view import Drawing
    from mem0_core.recall.cache import ActiveScope

_MAX_START_NODES = 3  # nodes near a name that the graph does not have
_MAX_DEPTH = 12
_VAGUE_SCORE = 0.3  # of the neighbors of a start, for a question that asks for no relation
_MAX_NAMED_VALUES = 50  # ends among which the value that a question names is looked for
_MAX_EDGES_PER_NODE = 4  # a drawing has up to this many times as many relations as nodes
_MAX_SIMILAR = 256  # nodes or relations that one SIMILAR finds


# --- traversal ---------------------------------------------------------------------------------------------------


def traverse(
    ports: Ports,
    query: ParsedQuery,
    scope: Scope,
    *,
    as_of: str | None = None,
    limit: int = 5,
    depth: int | None = None,
    active: ActiveScope | None = None,
    has_known_names: bool = False,
) -> Flow[list[Path]]:
    """Return the entities that a question leads to in the graph of a scope, best first, each with the path to it.

    "Where does Alice's sister work?" starts at Alice and follows two steps. If a step fits no label by its words or its
    family, the embedder compares it with the labels that exist: one call for each such step.

    Args:
        as_of: ISO 8601 in UTC; follow the relations of that time. By default the last step follows those of the time
            that the question names, and the others those of now.
        depth: maximum number of relations in a path, up to 12; by default the number of steps in the question.
        active: the scope as it is now, if it is kept in memory.
        has_known_names: True if the query is of `restore_query`.

    Raises:
        InputError: `depth` is out of range.
    """
    if depth is not None and not 1 <= depth <= _MAX_DEPTH:
        raise InputError(f"depth must lie in 1..{_MAX_DEPTH}, not {depth!r}; pass, for example, depth=2")
    adjacency = yield from load_adjacency(ports, scope, active)
    query = query if has_known_names else query.with_text(restore_names(adjacency, query.text))
    starts = yield from _find_starts(ports, adjacency, query.question.start, scope, as_of, active)
    if not starts:
        return []
    question = query.question
    if not (question.steps or question.asks_identity):
        starts = dict.fromkeys(starts, _VAGUE_SCORE)
    count = max(limit, _MAX_NAMED_VALUES) if question.value else limit
    walks = _Walks(adjacency, as_of, ports.traversal_weights)
    walk, tracks = yield from walks.search(question, starts, count, depth)
    for longer in expand_kinship(question) if question.path and depth is None else ():
        if tracks:
            break
        _, tracks = yield from walks.search(longer, starts, count, None)
    for _ in question.steps:
        if tracks or not (yield from _learn_labels(ports, walk)):
            break
        tracks = yield from do(walk.search, starts, limit=count, depth=depth)
    tracks = _choose_named_value(adjacency, tracks, question)[:limit]
    return (yield from _build_paths(ports, adjacency, tracks, scope, active))


@dataclass(frozen=True, slots=True)
class _Walks:
    """Walks of one traversal, one for each time that its relations may be of."""

    adjacency: Adjacency
    as_of: str | None
    weights: TraverseConfig

    def search(
        self, question: Question, starts: Mapping[int, float], limit: int, depth: int | None
    ) -> Flow[tuple[Walk, list[Track]]]:
        """Return the first walk, and the tracks of the first one that finds any."""
        first: Walk | None = None
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)  # equal scores all day
        now = round(midnight.timestamp() * 1e6)
        for masks in edge_masks(self.adjacency, question, self.as_of):
            walk = Walk(
                self.adjacency,
                question.steps[:_MAX_DEPTH],
                now=now,
                as_of=self.as_of,
                weights=self.weights,
                families=question.path,
                masks=masks[:_MAX_DEPTH],
            )
            tracks = yield from do(walk.search, starts, limit=limit, depth=depth)
            if tracks:
                return walk, tracks
            first = first or walk
        assert first is not None  # there is a mask for every question
        return first, []


def _choose_named_value(adjacency: Adjacency, tracks: Sequence[Track], question: Question) -> list[Track]:
    """Return tracks with those first that end at the value that a question names.

    "Do I like tea?" is not answered by coffee; "do I live in Rome?" is answered by Oslo, as there is one home.
    """
    wanted = question.value.casefold()
    if not wanted:
        return list(tracks)
    named = [track for track in tracks if wanted in adjacency.names[track.vertices[-1]].casefold()]
    families = load_families()
    is_single = not question.path or any(families[name].is_single for name in question.path[-1])
    if question.asks == "whether" and not is_single:
        return named
    return [*named, *(track for track in tracks if track not in named)]


def _find_starts(
    ports: Ports,
    adjacency: Adjacency,
    name: str | None,
    scope: Scope,
    as_of: str | None,
    active: ActiveScope | None = None,
) -> Flow[dict[int, float]]:
    """Return the vertices of a name (None for the speaker), else those near it, each with a score in (0, 1]."""
    vertices = adjacency.find_vertices(self_name(scope) if name is None else name)
    if vertices:
        return dict.fromkeys(vertices, 1.0)
    graph = ports.graph
    if name is None or graph is None or not adjacency.vertices:
        return {}
    return (yield from _find_similar_vertices(ports, graph, adjacency, name, scope, as_of, active))


def _find_similar_vertices(
    ports: Ports,
    graph: GraphMemory,
    adjacency: Adjacency,
    name: str,
    scope: Scope,
    as_of: str | None,
    active: ActiveScope | None,
) -> Flow[dict[int, float]]:
    """Return the vertices near a name that are the same name, else those that it is a part of."""
    found = yield from find_near_names(ports, graph, scope, [name], _MAX_START_NODES, as_of=as_of, active=active)
    same: dict[int, float] = {}
    partial: dict[int, float] = {}
    for row, cosine in (node for neighborhood in found for node in neighborhood.nodes):
        vertex = adjacency.vertex_of(row)
        if vertex is None:
            continue
        known, score = adjacency.names[vertex], min(1.0, cosine)
        if compare_names(EntityName(name), EntityName(known), cosine).is_same:
            same.setdefault(vertex, score)
        elif is_part_of(name, known):
            partial.setdefault(vertex, score)
    return same or partial


def _learn_labels(ports: Ports, walk: Walk) -> Flow[bool]:
    """Compare the step that a walk failed at with the labels there; returns True if any is near."""
    place, labels = walk.find_unmatched_labels()
    if not labels:
        return False
    vectors = yield from embed_texts(ports, [walk.terms[place], *(label.replace("_", " ") for label in labels)])
    cosines = (vectors[1:] @ vectors[0]).tolist()
    return walk.learn(place, dict(zip(labels, cosines, strict=True)))


def _build_paths(
    ports: Ports, adjacency: Adjacency, tracks: Sequence[Track], scope: Scope, active: ActiveScope | None
) -> Flow[list[Path]]:
    """Return tracks as paths of relations, without those that the store no longer has."""
    edges = dict.fromkeys(edge for track in tracks for edge in track.edges)
    relations = yield from _load_relations(ports, adjacency, edges, scope, active)
    return [
        Path(
            start=adjacency.names[track.vertices[0]],
            end=adjacency.names[track.vertices[-1]],
            steps=tuple(
                Step(relations[edge], bool(adjacency.source[edge] == vertex))
                for edge, vertex in zip(track.edges, track.vertices, strict=False)
            ),
            score=track.score,
        )
        for track in tracks
        if all(edge in relations for edge in track.edges)
    ]


def load_incident_relations(
    ports: Ports, names: Sequence[str], scope: Scope, is_wanted: Callable[[str, bool], bool]
) -> Flow[list[tuple[Relation, bool]]]:
    """Return the relations of some entities, ended ones too, each with True if it leads away from the entity.

    Args:
        is_wanted: returns True for the wanted labels, by the label and that direction.
    """
    adjacency = yield from load_adjacency(ports, scope)
    directions: dict[int, bool] = {}
    for name in names:
        for vertex in adjacency.find_vertices(name):
            incident = adjacency.incident_edges(vertex, ~adjacency.gone)
            labels = adjacency.label[incident.edges].tolist()
            found = zip(incident.edges.tolist(), labels, incident.forward.tolist(), strict=True)
            directions |= {
                edge: forward for edge, label, forward in found if is_wanted(adjacency.labels[label], forward)
            }
    relations = yield from _load_relations(ports, adjacency, directions, scope)
    return [(relations[edge], is_forward) for edge, is_forward in directions.items() if edge in relations]


# --- queries -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphQueryAnswer:
    """Answer to a query of the graph: rows, or for ``EXPLAIN`` the lines of its plan.

    Attributes:
        rows: entities, relations, paths, plain values and lists of these, one for each column. A path is a mapping of
            ``nodes`` and ``relations``.
        notes: remarks on rows that are left out.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()


def run_query(
    ports: Ports,
    text: str,
    scope: Scope,
    *,
    as_of: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    bounds: Bounds | None = None,
) -> Flow[GraphQueryAnswer]:
    """Run a query of the language of `graph.query_language` on the graph of a scope.

    Args:
        parameters: the values of its ``$parameters``.
        as_of: ISO 8601 in UTC; query the relations of that time, unless the query has an ``AS OF``.

    Raises:
        QueryError: the query cannot be read or makes no sense (with the position), or exceeds `bounds`.
    """
    from mem0_core.graph._query_check import check
    from mem0_core.graph.query_engine import LIMIT, Bounds, Plan
    from mem0_core.graph.query_language import parse

    query = check(parse(text, parameters))
    if query.tree.as_of is not None:
        try:
            as_of = parse_timestamp(query.tree.as_of, "AS OF")
        except InputError as error:
            raise QueryError(str(error), query=text, position=max(0, text.rfind(query.tree.as_of))) from error
    adjacency = yield from load_adjacency(ports, scope)
    near, notes = yield from _resolve_similar(ports, query.similar_keys, adjacency, scope, as_of)
    plan = Plan(query, adjacency, near, as_of=as_of, bounds=bounds or Bounds())
    if query.tree.explain:
        return GraphQueryAnswer([], [], notes, tuple(plan.lines()))
    rows, has_more = yield from do(plan.rows)
    if has_more:
        notes = (*notes, f"there are more than {LIMIT:,} rows; give the query a LIMIT")
    edges = [edge.number for row in rows for value in row for edge in _edges_in(value)]
    relations = yield from _load_relations(ports, adjacency, edges, scope)
    public_rows = [
        tuple(_to_public_value(value, adjacency, relations) for value in row)
        for row in rows
        if all(edge.number in relations for value in row for edge in _edges_in(value))
    ]
    return GraphQueryAnswer(plan.columns, public_rows, notes)


def _resolve_similar(
    ports: Ports, wanted: Iterable[tuple[str, str, float]], adjacency: Adjacency, scope: Scope, as_of: str | None
) -> Flow[tuple[dict[tuple[str, str, float], frozenset[int]], tuple[str, ...]]]:
    """Return the vertices or edges for which each SIMILAR of a query holds (see `query_engine.Near`), and notes."""
    near: dict[tuple[str, str, float], frozenset[int]] = {}
    notes: list[str] = []
    for kind, text, threshold in sorted(wanted):
        if ports.graph is None:
            raise QueryError("SIMILAR compares vectors, and graph memory is off; configure a graph_store", query=text)
        vectors = yield from embed_texts(ports, [text])
        if kind == "node":
            (found,) = yield from search_neighborhoods(
                ports.graph, scope, vectors, threshold=threshold, limit=_MAX_SIMILAR, as_of=as_of
            )
            rows = [row for row, _ in found.nodes]
            positions = [adjacency.vertex_of(row) for row in rows]
        else:
            (nearest,) = yield from search_relations(
                ports.graph, scope, vectors, _MAX_SIMILAR, threshold=threshold, as_of=as_of
            )
            rows = [row for row, _ in nearest]
            positions = [adjacency.edge_of(row) for row in rows]
        near[kind, text, threshold] = frozenset(position for position in positions if position is not None)
        if len(rows) == _MAX_SIMILAR:
            notes.append(f"more than {_MAX_SIMILAR} are near {text!r}: only the nearest were considered")
    return near, tuple(notes)


def _edges_in(value: Any) -> tuple[Edge, ...]:
    """Return the relations in a value of a row."""
    from mem0_core.graph.query_engine import Edge, Route

    match value:
        case Edge():
            return (value,)
        case Route():
            return value.edges
        case tuple():
            return tuple(edge for one in value for edge in _edges_in(one))
        case _:
            return ()


def _to_public_value(value: Any, adjacency: Adjacency, relations: dict[int, Relation]) -> Any:
    from mem0_core.graph.query_engine import Edge, Route, Vertex

    match value:
        case Vertex(number):
            return Entity(adjacency.names[number], adjacency.kinds[adjacency.kind[number]])
        case Edge(number):
            return relations[number]
        case Route():
            nodes = [_to_public_value(vertex, adjacency, relations) for vertex in value.vertices]
            return {"nodes": nodes, "relations": [relations[edge.number] for edge in value.edges]}
        case tuple():
            return [_to_public_value(one, adjacency, relations) for one in value]
        case _:
            return value


# --- drawings ----------------------------------------------------------------------------------------------------


def build_drawing(
    ports: Ports, scope: Scope, *, entities: Sequence[str] | None = None, depth: int = 2, limit: int = 5_000
) -> Flow[Drawing]:
    """Return the graph of a scope to draw, ended relations included.

    Args:
        entities: draw only the relations within `depth` steps of these.
        limit: maximum number of nodes; those with most relations are kept.

    Raises:
        InputError: an entity is not in the graph.
    """
    from mem0_core.graph.view import Drawing

    adjacency = yield from load_adjacency(ports, scope)
    starts: list[int] = []
    for name in entities or ():
        vertices = adjacency.find_vertices(name)
        if not vertices:
            raise InputError(f"no entity is called {name!r} here")
        starts += vertices
    edges, omitted_count = _choose_edges(adjacency, None if entities is None else starts, depth, limit)
    loaded = yield from _load_relations(ports, adjacency, edges.tolist(), scope)
    relations = [loaded[edge] for edge in sorted(loaded)]
    drawn = np.unique(np.concatenate((adjacency.source[edges], adjacency.destination[edges]))).tolist()
    types = {entity_key(adjacency.names[vertex]): adjacency.kinds[adjacency.kind[vertex]] for vertex in drawn}
    return Drawing(
        title=f"Memory of {', '.join(scope.ids.values())}",
        relations=relations,
        types=types,
        memories=(yield from _load_evidence(ports, relations)),
        marked=[adjacency.names[vertex] for vertex in starts],
        omitted_count=omitted_count,
    )


def _choose_edges(
    adjacency: Adjacency, starts: Sequence[int] | None, depth: int, limit: int
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """Return the edges to draw, and the number of nodes that are left out; `starts` is None for the whole graph."""
    max_edges = _MAX_EDGES_PER_NODE * limit
    if starts is None:
        edges = np.flatnonzero(~adjacency.gone)
    else:
        near = k_hop(adjacency, starts, depth, limit=max_edges, ended=True)
        edges = np.array([edge for edge, _ in near], np.int64)
    ends = np.concatenate((adjacency.source[edges], adjacency.destination[edges]))
    vertices, degrees = np.unique(ends, return_counts=True)
    is_drawn = np.zeros(adjacency.vertices, bool)
    is_drawn[vertices[np.argsort(-degrees, kind="stable")[:limit]]] = True
    is_drawn[list(starts or ())] = True
    edges = edges[is_drawn[adjacency.source[edges]] & is_drawn[adjacency.destination[edges]]][:max_edges]
    drawn = np.unique(np.concatenate((adjacency.source[edges], adjacency.destination[edges])))
    return edges, len(vertices) - len(drawn)


def _load_evidence(ports: Ports, relations: Sequence[Relation]) -> Flow[dict[str, MemoryItem]]:
    """Read the memories that support some relations, by id."""
    ids = dict.fromkeys(memory for relation in relations for memory in relation.memories)
    return (yield from do(ports.store.get_many, list(ids)))


# --- the store ---------------------------------------------------------------------------------------------------


def load_adjacency(ports: Ports, scope: Scope, active: ActiveScope | None = None) -> Flow[Adjacency]:
    """Return the present graph of a scope, with the former names of its entities and the names of the speaker."""
    return (yield from read_once(active, "adjacency", lambda: _load_adjacency(ports, scope)))


def _load_adjacency(ports: Ports, scope: Scope) -> Flow[Adjacency]:
    index = ports.adjacency or AdjacencyIndex(ports.store.graph)
    adjacency: Adjacency = yield from do(index.of, scope)
    aliased: Adjacency | None = index.get_aliased(scope, adjacency) if adjacency.vertices else adjacency
    if aliased is None:
        merged = yield from do(ports.store.merges.aliases, scope, "entity")
        aliased = adjacency.with_aliases(merged, self_name(scope))
        index.keep_aliased(scope, adjacency, aliased)
    return aliased


def restore_query(
    ports: Ports, query: ParsedQuery, scope: Scope, active: ActiveScope | None = None
) -> Flow[ParsedQuery]:
    """Return a query with the names of a scope's graph as the graph has them."""
    adjacency = yield from load_adjacency(ports, scope, active)
    return query.with_text(restore_names(adjacency, query.text))


def _load_relations(
    ports: Ports, adjacency: Adjacency, edges: Iterable[int], scope: Scope, active: ActiveScope | None = None
) -> Flow[dict[int, Relation]]:
    """Read the relations of some edges, by edge."""
    rows = {int(adjacency.rows[edge]): edge for edge in edges}
    if not rows:
        return {}
    relations = yield from load_relations(ports, list(rows), scope, active)
    return {rows[row]: relation for row, relation in relations.items()}
