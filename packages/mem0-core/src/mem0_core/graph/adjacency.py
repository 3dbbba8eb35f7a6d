"""Relations of one scope as arrays, for steps from node to node without calls to the store.

A projection like the vector indexes: `AdjacencyIndex` follows the store by sequence number, and each `Adjacency` that
it returns is one immutable state. Nodes of one name are one vertex, for all agents and runs of a user; those of two
users, in the scope of an agent alone, are two.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core._system.locks import SignalSafeLock
from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import clear_for_epoch
from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import Scope, entity_key
from mem0_core.interfaces import ChangePosition, EdgeRow, GraphDelta, GraphStore, NodeRow
from mem0_core.language.naming import get_given_name, is_naming

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""End of a relation that is valid now."""
_OPENING = re.compile(r"\w+")
_MAX_TAIL_EDGES = 4_096  # new edges of a larger graph that are scanned before all are sorted by vertex again
_MAX_CHANGES_PER_EDGE = 4  # with more changes since the last state, the whole graph is read
_MAX_CACHED_EDGES = 2_000_000  # of all scopes


@dataclass(frozen=True, slots=True)
class IncidentEdges:
    """Edges of one vertex.

    Attributes:
        edges: positions of the edges.
        ends: the vertices at their other ends.
        forward: True for edges that lead away from the vertex.
    """

    edges: Ints
    ends: Ints
    forward: Bools


@dataclass(frozen=True, slots=True)
class _EdgeOrder:
    """Edges sorted by the vertex at one of their ends: those of vertex v are ``edges[start[v]:start[v + 1]]``."""

    edges: Ints
    start: Ints

    def of(self, vertex: int) -> Ints:
        if vertex + 1 >= len(self.start):
            return self.edges[:0]
        return self.edges[self.start[vertex] : self.start[vertex + 1]]

    def counts(self, vertices: Ints) -> Ints:
        last = len(self.start) - 1  # later vertices have no sorted edges yet
        return self.start[np.minimum(vertices + 1, last)] - self.start[np.minimum(vertices, last)]


@dataclass(frozen=True, slots=True)
class _Vertices:
    """Vertices of a scope. They are only ever added, so that several states can share them.

    `first_words` has the vertices whose names are several words, by the folded first word, if it is capitalized;
    `openings` has the `name_opening` of every name.
    """

    keys: dict[tuple[str | None, bytes], int] = field(default_factory=dict)
    named: dict[bytes, list[int]] = field(default_factory=dict)
    of_row: dict[int, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    first_words: dict[str, list[int]] = field(default_factory=dict)
    openings: set[str] = field(default_factory=set)

    def add(self, nodes: Iterable[NodeRow]) -> None:
        for row, user, key, name, kind in nodes:
            vertex = self.keys.get((user, key))
            if vertex is None:
                vertex = self.keys[user, key] = len(self.names)
                self.named.setdefault(key, []).append(vertex)
                self.rows.append(row)
                self.names.append(name)
                self.kinds.append(kind)
                self.openings.add(name_opening(name))
                first, *others = name.split() or [name]
                if others and first[:1].isupper():
                    self.first_words.setdefault(first.casefold(), []).append(vertex)
            elif kind:
                self.kinds[vertex] = kind
            self.of_row[row] = vertex


@dataclass(frozen=True, slots=True)
class _TextNumbers:
    """Numbers of distinct texts."""

    numbers: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Adjacency:
    """Relations of a scope at one position of the store, ended ones included; edges are numbered from 0.

    Attributes:
        rows: the store's row of each edge, ascending; (edges,), as are the other attributes unless noted.
        source, destination: vertices at its ends.
        labels: the distinct relationships; (labels,).
        label: relationship of each edge, as an index of `labels`.
        weight: number of times it was stated.
        first, last: first and last day of the event it describes, as `date.toordinal`; 0 for none, or an open end.
        since, until: microseconds since 1970 between which it is valid; `NEVER` if it has not ended.
        gone: True for edges that the store no longer has.
        kind: type of each vertex, as an index of `kinds`; (vertices,).
        heaviest, latest: upper bounds of the weight and of `since` of the edges with each label; (labels,).
        aliases: other names of vertices, by `records.entity_key`: merged names, and the names of the speaker.
        own_names: those keys of `aliases` that are names of the speaker.
        alias_openings: the `name_opening` of each alias; None if some are unknown, as merged names are kept by key.
    """

    position: ChangePosition
    rows: Ints
    source: Ints
    destination: Ints
    labels: tuple[str, ...]
    label: Ints
    weight: Ints
    since: Ints
    until: Ints
    first: Ints
    last: Ints
    gone: Bools
    kind: Ints
    heaviest: Ints
    latest: Ints
    _vertices: _Vertices
    _kind_numbers: _TextNumbers
    _label_numbers: _TextNumbers
    _leaving: _EdgeOrder
    _entering: _EdgeOrder
    _sorted_count: int
    aliases: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    own_names: frozenset[bytes] = frozenset()
    alias_openings: frozenset[str] | None = frozenset()

    @property
    def vertices(self) -> int:
        """Number of vertices; some may have no edge left."""
        return len(self.kind)

    @property
    def names(self) -> Sequence[str]:
        """Names of the vertices, in their first spelling."""
        return self._vertices.names

    @property
    def kinds(self) -> Sequence[str]:
        """The distinct types; the type of an untyped vertex is empty."""
        return self._kind_numbers.texts

    @property
    def nodes(self) -> Sequence[int]:
        """One row of the store for each vertex."""
        return self._vertices.rows

    def find_vertices(self, name: str) -> list[int]:
        """Return the vertices of a name, in any case and spacing, those that have it as an alias included."""
        key = entity_key(name)
        named = (*self._vertices.named.get(key, ()), *self.aliases.get(key, ()))
        return [vertex for vertex in dict.fromkeys(named) if vertex < self.vertices]

    def find_openings(self, openings: AbstractSet[str]) -> AbstractSet[str]:
        """Return those of some `name_opening` that a name or an alias may have."""
        known = self.alias_openings
        return openings if known is None else (openings & self._vertices.openings) | (openings & known)

    def present_key(self, name: str) -> bytes:
        """Return the `records.entity_key` of the present name of an entity."""
        key = entity_key(name)
        aliased = self.aliases.get(key)
        return entity_key(self.names[aliased[0]]) if aliased else key

    def with_aliases(self, merged: Mapping[bytes, str], speaker: str) -> Adjacency:
        """Return the same state with aliases.

        Args:
            merged: keys of former names -> present name.
            speaker: name of the entity that "I" denotes. The names that its relations give it denote it too, unless
                another relation joins it to an entity of that name.
        """
        aliases = {key: self.find_vertices(name) for key, name in merged.items()}
        own = {vertex: list(self._find_own_names(vertex)) for vertex in self.find_vertices(speaker)}
        for vertex, names in own.items():
            for name in names:
                aliases.setdefault(entity_key(name), []).append(vertex)
        found = {key: tuple(vertices) for key, vertices in aliases.items() if vertices}
        own_names = [name for names in own.values() for name in names]
        return (
            replace(
                self,
                aliases=found,
                own_names=frozenset(map(entity_key, own_names)),
                alias_openings=None if merged else frozenset(map(name_opening, own_names)),
            )
            if found
            else self
        )

    def _find_own_names(self, vertex: int) -> Iterator[str]:
        """Yield the names that a vertex has by its present relations."""
        naming = np.array([is_naming(label) for label in self.labels], bool)
        incident = self.incident_edges(vertex, self.valid_edges())
        gives = naming[self.label[incident.edges]]
        others = set(incident.ends[~gives].tolist())
        for end in dict.fromkeys(incident.ends[gives & incident.forward].tolist()):
            for name in (self.names[end], get_given_name(self.names[end])):
                if name and others.isdisjoint(self.find_vertices(name)):
                    yield name

    def find_first_word(self, word: str) -> str:
        """Return the first word of a longer name ("Karen" of Karen Smith) in its spelling there; empty for none."""
        longer = self._vertices.first_words.get(word.casefold())
        return self.names[longer[0]].split()[0] if longer and longer[0] < self.vertices else ""

    def find_longer_names(self, name: str) -> list[int]:
        """Return the vertices whose names begin with the words of a name and have more."""
        words = name.casefold().split()
        longer = self._vertices.first_words.get(words[0], ()) if words else ()
        return [
            vertex
            for vertex in longer
            if vertex < self.vertices and self.names[vertex].casefold().split()[: len(words)] == words
        ]

    def vertex_of(self, node: int) -> int | None:
        """Return the vertex of a row of the store's nodes."""
        vertex = self._vertices.of_row.get(node)
        return vertex if vertex is not None and vertex < self.vertices else None  # later vertices are not in this state

    def edge_of(self, row: int) -> int | None:
        """Return the edge of a row of the store's relations."""
        _, edges = self._find_edges([row])
        return edges[0] if edges and not self.gone[edges[0]] else None

    def valid_edges(self, as_of: str | None = None) -> Bools:
        """Return the mask of the edges that are valid now, or were at a time; (edges,)."""
        if as_of is None:
            valid: Bools = self.until == NEVER
        else:
            then = microseconds(as_of)
            valid = (self.since <= then) & (self.until > then)
        return valid & ~self.gone

    def incident_edges(self, vertex: int, mask: Bools) -> IncidentEdges:
        """Return the edges of a vertex that are in `mask`; a loop occurs once."""
        leaving, entering = self._leaving.of(vertex), self._entering.of(vertex)
        if self._sorted_count < len(self.rows):
            tail = slice(self._sorted_count, None)
            leaving = np.concatenate((leaving, np.flatnonzero(self.source[tail] == vertex) + self._sorted_count))
            entering = np.concatenate((entering, np.flatnonzero(self.destination[tail] == vertex) + self._sorted_count))
        leaving, entering = leaving[mask[leaving]], entering[mask[entering]]
        entering = entering[self.source[entering] != vertex]
        return IncidentEdges(
            np.concatenate((leaving, entering)),
            np.concatenate((self.destination[leaving], self.source[entering])),
            np.arange(len(leaving) + len(entering)) < len(leaving),
        )

    def has_edge(self, vertex: int, mask: Bools) -> bool:
        """Return True if a vertex has an edge that is in `mask`."""
        tail = slice(self._sorted_count, None)
        is_new = (self.source[tail] == vertex) | (self.destination[tail] == vertex)
        sorted_edges = (self._leaving.of(vertex), self._entering.of(vertex))
        return any(mask[edges].any() for edges in sorted_edges) or bool((is_new & mask[tail]).any())

    def degrees(self, vertices: Ints) -> Ints:
        """Return the number of edges of each vertex, ended ones included, without the newest of a large graph."""
        return self._leaving.counts(vertices) + self._entering.counts(vertices)

    def apply(self, delta: GraphDelta) -> Adjacency | None:
        """Return the next state; None if the whole graph must be read: an edge has moved, or a vertex has none left."""
        self._vertices.add(delta.nodes)
        known = dict(zip(*self._find_edges([edge[0] for edge in delta.edges]), strict=True))
        new = [edge for edge in delta.edges if edge[0] not in known]
        added = _columns(new, self._vertices, self._label_numbers)
        if new and len(self.rows) and added["rows"][0] <= self.rows[-1]:
            return None
        columns: dict[str, Any] = {name: getattr(self, name).copy() for name in _CHANGING_COLUMNS}
        for edge in delta.edges:
            if edge[0] in known:
                if self._has_moved(edge, known[edge[0]]):
                    return None
                _change_edge(columns, known[edge[0]], edge)
        removed = self._find_edges(delta.removed_edges)[1]
        columns["gone"][removed] = True
        if removed and self._has_bare_end(removed, columns["gone"], added):
            return None
        columns |= {name: getattr(self, name) for name in added if name not in columns}
        changed = list(known.values())
        touched = {name: np.concatenate((columns[name][changed], added[name])) for name in ("label", "weight", "since")}
        texts = self._label_numbers.texts
        labels = self.labels if len(self.labels) == len(texts) else tuple(texts)
        heaviest, latest = _bounds(len(labels), touched, self.heaviest, self.latest)
        added["gone"] = np.zeros(len(new), bool)
        joined: dict[str, Any] = {name: np.concatenate((columns[name], added[name])) for name in added}
        grown = replace(
            self,
            position=delta.position,
            labels=labels,
            kind=self._extend_kinds(delta.nodes),
            heaviest=heaviest,
            latest=latest,
            **joined,
        )
        count = len(grown.rows)
        is_scanned = count > _MAX_TAIL_EDGES >= count - grown._sorted_count
        return grown if is_scanned or count == grown._sorted_count else grown._sort_edges()

    def _has_bare_end(self, removed: Sequence[int], gone: Bools, added: Mapping[str, Any]) -> bool:
        """Return True if removed edges leave a vertex without any: its entity may be deleted or merged."""
        ends = np.concatenate((self.source[removed], self.destination[removed]))
        kept = (self.source[~gone], self.destination[~gone], added["source"], added["destination"])
        return not np.isin(ends, np.concatenate(kept)).all()

    def _extend_kinds(self, nodes: Sequence[NodeRow]) -> Ints:
        if not nodes:
            return self.kind
        added = [self._kind_numbers.number(kind) for kind in self._vertices.kinds[len(self.kind) :]]
        kind = np.concatenate((self.kind, np.array(added, np.int64)))
        for row, *_ in nodes:
            vertex = self._vertices.of_row[row]
            kind[vertex] = self._kind_numbers.number(self._vertices.kinds[vertex])
        return kind

    def _find_edges(self, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return those of the store's rows that are edges here, and the edges."""
        wanted = np.array(sorted(rows), np.int64)
        edges = np.searchsorted(self.rows, wanted)
        found = edges < len(self.rows)
        found[found] = self.rows[edges[found]] == wanted[found]
        return wanted[found].tolist(), edges[found].tolist()

    def _has_moved(self, row: EdgeRow, edge: int) -> bool:
        """Return True if a row has other ends or another label than its edge."""
        ends = self._vertices.of_row.get(row[1]), self._vertices.of_row.get(row[3])
        has_same_ends = ends == (self.source[edge], self.destination[edge])
        return not (has_same_ends and self.labels[self.label[edge]] == row[2])

    def _sort_edges(self) -> Adjacency:
        leaving, entering = (_order_edges(ends, self.vertices) for ends in (self.source, self.destination))
        return replace(self, _leaving=leaving, _entering=entering, _sorted_count=len(self.rows))


_CHANGING_COLUMNS = ("weight", "since", "until", "first", "last", "gone")


def _change_edge(columns: Mapping[str, NDArray[Any]], edge: int, row: EdgeRow) -> None:
    """Write the changing columns of a row to an edge; after a merge is undone, the edge is present again."""
    values = (row[4], microseconds(row[5]), _end_time(row[6]), _ordinal(row[7]), _ordinal(row[8]), False)
    for name, value in zip(_CHANGING_COLUMNS, values, strict=True):
        columns[name][edge] = value


def _build(delta: GraphDelta) -> Adjacency:
    """Return the state of a whole graph."""
    vertices, labels, kinds = _Vertices(), _TextNumbers(), _TextNumbers()
    vertices.add(delta.nodes)
    kinds.number("")
    none = np.empty(0, np.int64)
    unsorted = _EdgeOrder(none, np.zeros(1, np.int64))
    columns: dict[str, Any] = _columns(delta.edges, vertices, labels)
    heaviest, latest = _bounds(len(labels.texts), columns, none, none)
    adjacency = Adjacency(
        position=delta.position,
        gone=np.zeros(len(delta.edges), bool),
        labels=tuple(labels.texts),
        heaviest=heaviest,
        latest=latest,
        kind=np.array([kinds.number(kind) for kind in vertices.kinds], np.int64),
        **columns,
        _vertices=vertices,
        _kind_numbers=kinds,
        _label_numbers=labels,
        _leaving=unsorted,
        _entering=unsorted,
        _sorted_count=0,
    )
    return adjacency._sort_edges()


def _columns(edges: Sequence[EdgeRow], vertices: _Vertices, labels: _TextNumbers) -> dict[str, Ints]:
    of_row, times = vertices.of_row, _Times()
    columns = zip(*edges, strict=True) if edges else [()] * 9
    rows, sources, relationships, destinations, weights, since, until, first, last = columns
    return {
        "rows": np.array(rows, np.int64),
        "source": np.array([of_row[row] for row in sources], np.int64),
        "destination": np.array([of_row[row] for row in destinations], np.int64),
        "label": np.array([labels.number(text) for text in relationships], np.int64),
        "weight": np.array(weights, np.int64),
        "since": np.array([times[text] for text in since], np.int64),
        "until": np.array([NEVER if text is None else times[text] for text in until], np.int64),
        "first": np.array([_ordinal(text) for text in first], np.int64),
        "last": np.array([_ordinal(text) for text in last], np.int64),
    }


def _bounds(labels: int, edges: Mapping[str, Ints], heaviest: Ints, latest: Ints) -> tuple[Ints, Ints]:
    """Return `Adjacency.heaviest` and `latest`, raised to the values of some edges."""
    missing = labels - len(heaviest)
    heaviest = np.concatenate((heaviest, np.ones(missing, np.int64)))
    latest = np.concatenate((latest, np.full(missing, np.iinfo(np.int64).min)))
    np.maximum.at(heaviest, edges["label"], edges["weight"])
    np.maximum.at(latest, edges["label"], edges["since"])
    return heaviest, latest


def _order_edges(ends: Ints, vertices: int) -> _EdgeOrder:
    edges = np.argsort(ends, kind="stable")
    return _EdgeOrder(edges, np.searchsorted(ends[edges], np.arange(vertices + 1)))


def name_opening(name: str) -> str:
    """Return the letters and digits that begin a name, folded as `records.entity_key` folds it; empty for none."""
    opening = _OPENING.match(normalize("NFC", name.lstrip()).casefold())
    return opening.group() if opening is not None else ""


def microseconds(time: str) -> int:
    """Return the microseconds since 1970 of a time in ISO 8601 with an offset."""
    return round(datetime.fromisoformat(time).timestamp() * 1e6)


def _ordinal(day: str | None) -> int:
    return 0 if day is None else date.fromisoformat(day).toordinal()


def _end_time(time: str | None) -> int:
    return int(NEVER) if time is None else microseconds(time)


class _Times(dict[str, int]):
    """Cache of `microseconds`: many relations share their times."""

    def __missing__(self, time: str) -> int:
        found = self[time] = microseconds(time)
        return found


class AdjacencyIndex:
    """The `Adjacency` of each scope in use, kept up to date with the store. Thread-safe."""

    inline = True  # see `flow`

    def __init__(self, primary: GraphStore) -> None:
        self._primary = primary
        self._lock = SignalSafeLock()
        self._cache: OrderedDict[Scope, Adjacency] = OrderedDict()  # the least recently used first
        self._edge_count = 0  # in the cache
        self._aliased: dict[Scope, tuple[Adjacency, Adjacency]] = {}  # a state without and with aliases
        self._epoch = ""  # of the states in the cache

    def of(self, scope: Scope) -> Adjacency:
        """Return the present relations of a scope."""
        with self._lock:
            if scope not in self._cache:
                adjacency = _build(self._primary.delta_since(scope))
                self._enter(adjacency.position.epoch)
            else:
                position = self._primary.position()
                self._enter(position.epoch)
                known = self._cache.get(scope)
                if known is not None and known.position == position:
                    self._cache.move_to_end(scope)
                    return known
                adjacency = self._update(scope, known, position)
            known = self._cache.get(scope)
            self._cache[scope] = adjacency
            self._cache.move_to_end(scope)
            self._edge_count += len(adjacency.rows) - (0 if known is None else len(known.rows))
            self._evict()
            return adjacency

    def _enter(self, epoch: str) -> None:
        """Drop all states of another epoch: an erasure, perhaps of another process, whose names must not stay here."""
        if epoch != self._epoch:
            self._drop_all()
            clear_for_epoch(self._epoch, epoch)
            self._epoch = epoch

    def get_aliased(self, scope: Scope, adjacency: Adjacency) -> Adjacency | None:
        """Return a state with its aliases, if `keep_aliased` has got it; a merge changes the state."""
        bare, aliased = self._aliased.get(scope, (None, None))
        return aliased if bare is adjacency else None

    def keep_aliased(self, scope: Scope, adjacency: Adjacency, aliased: Adjacency) -> None:
        """Keep a state with its aliases until the scope has another state."""
        with self._lock:
            if self._cache.get(scope) is adjacency:
                self._aliased[scope] = adjacency, aliased

    def forget(self) -> None:
        """Drop all states."""
        with self._lock:
            self._drop_all()

    def _drop_all(self) -> None:
        self._cache.clear()
        self._aliased.clear()
        self._edge_count = 0

    def _update(self, scope: Scope, known: Adjacency | None, position: ChangePosition) -> Adjacency:
        """Return the state of a scope at a position, from the changes since a known state if they are few."""
        if known is not None and known.position.epoch == position.epoch and _has_few_changes(known, position):
            delta = self._primary.delta_since(scope, after=known.position.seq)
            if delta.position.epoch == position.epoch and (grown := known.apply(delta)) is not None:
                return grown
        return _build(self._primary.delta_since(scope))

    def _evict(self) -> None:
        while self._edge_count > _MAX_CACHED_EDGES and len(self._cache) > 1:
            scope, adjacency = self._cache.popitem(last=False)
            self._aliased.pop(scope, None)
            self._edge_count -= len(adjacency.rows)


def _has_few_changes(known: Adjacency, position: ChangePosition) -> bool:
    return position.seq - known.position.seq <= max(1_000, _MAX_CHANGES_PER_EDGE * len(known.rows))
