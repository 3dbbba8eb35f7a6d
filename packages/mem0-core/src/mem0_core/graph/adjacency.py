"""The relations of one scope as arrays: what is next to what, found without asking the store for each step.

A projection like the vector indexes: `AdjacencyIndex` follows the truth by sequence number, and each `Adjacency` it
gives is one state, which never changes. Nodes of one name are one vertex, whichever agent or run of a user named them;
those of two users, where an agent alone is the scope, are two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.domain.records import Scope, entity_key
from mem0_core.interfaces import ChangePosition, EdgeRow, GraphDelta, GraphStore, NodeRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["STILL", "Adjacency", "AdjacencyIndex", "IncidentEdges", "microseconds"]

STILL = np.iinfo(np.int64).max
"""The end of a relation that holds."""
_TAIL = 4_096  # edges that come one by one before those of each vertex are put together anew
_FAR = 4  # times as many changes in the store as edges held: then it is read anew
_MOST = 2_000_000  # edges kept in memory, of all scopes


@dataclass(frozen=True, slots=True)
class IncidentEdges:
    """What lies around one vertex: edges by their positions, the vertex at the other end, and if it points there."""

    edges: Ints
    ends: Ints
    forward: Bools


@dataclass(frozen=True, slots=True)
class _Order:
    """The edges of each vertex at one of their ends: those of vertex v are ``edges[start[v]:start[v + 1]]``."""

    edges: Ints
    start: Ints

    def of(self, vertex: int) -> Ints:
        if vertex + 1 >= len(self.start):
            return self.edges[:0]
        return self.edges[self.start[vertex] : self.start[vertex + 1]]

    def counts(self, vertices: Ints) -> Ints:
        last = len(self.start) - 1  # vertices that came later have none in order yet
        return self.start[np.minimum(vertices + 1, last)] - self.start[np.minimum(vertices, last)]


@dataclass(frozen=True, slots=True)
class _Vertices:
    """The vertices of a scope; they only ever grow, so that several states can share them."""

    keys: dict[tuple[str | None, bytes], int] = field(default_factory=dict)
    named: dict[bytes, list[int]] = field(default_factory=dict)
    of_row: dict[int, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def add(self, nodes: Iterable[NodeRow]) -> None:
        for row, user, key, name, kind in nodes:
            vertex = self.keys.get((user, key))
            if vertex is None:
                vertex = self.keys[user, key] = len(self.names)
                self.named.setdefault(key, []).append(vertex)
                self.rows.append(row)
                self.names.append(name)
                self.kinds.append(kind)
            elif kind:
                self.kinds[vertex] = kind
            self.of_row[row] = vertex


@dataclass(frozen=True, slots=True)
class _Names:
    """Texts by number, each once."""

    numbers: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return found


@dataclass(frozen=True, slots=True)
class Adjacency:
    """The relations of a scope at one position of the truth, ended ones too; edges are numbered from 0.

    Attributes:
        rows: the store's row of each edge, ascending.
        source, destination: its vertices.
        labels: the relationships there are.
        label: the relationship of each edge, as a number of `labels`.
        weight: how often it was said.
        first, last: the days it is told of, as `date.toordinal` has them; 0 for none, or an open end.
        since, until: microseconds since 1970 between which it held; `STILL` for those that hold.
        gone: edges that the store no longer has.
        kind: the type of each vertex, as a number of `kinds`; (vertices,).
        heaviest, latest: of each label no less than the greatest weight, and the latest `since`, of its edges.
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
    _kinds: _Names
    _numbers: _Names
    _leaving: _Order
    _entering: _Order
    _ordered: int

    @property
    def vertices(self) -> int:
        """How many there are; some may have no edge left."""
        return len(self.kind)

    @property
    def names(self) -> Sequence[str]:
        """Of the vertices, as they were first spelled."""
        return self._vertices.names

    @property
    def kinds(self) -> Sequence[str]:
        """The types there are; empty where a vertex has none."""
        return self._kinds.texts

    @property
    def nodes(self) -> Sequence[int]:
        """A row of the store for each vertex."""
        return self._vertices.rows

    def named(self, name: str) -> list[int]:
        """The vertices of a name, in any case and spacing: one at most, unless the scope is of several users."""
        return [vertex for vertex in self._vertices.named.get(entity_key(name), ()) if vertex < self.vertices]

    def vertex_of(self, node: int) -> int | None:
        """The vertex that a row of the store's nodes is part of."""
        return self._here(self._vertices.of_row.get(node))

    def edge_of(self, row: int) -> int | None:
        """The edge that is a row of the store's relations."""
        _, places = self._places([row])
        return places[0] if places and not self.gone[places[0]] else None

    def _here(self, vertex: int | None) -> int | None:
        """A vertex, unless it came after this state."""
        return vertex if vertex is not None and vertex < self.vertices else None

    def holding(self, as_of: str | None = None) -> Bools:
        """Which edges hold, or held then; (edges,)."""
        if as_of is None:
            held: Bools = self.until == STILL
        else:
            then = microseconds(as_of)
            held = (self.since <= then) & (self.until > then)
        return held & ~self.gone

    def around(self, vertex: int, holding: Bools) -> IncidentEdges:
        """The edges of a vertex that `holding` (see there) is true of; one that joins it to itself comes once."""
        leaving, entering = self._leaving.of(vertex), self._entering.of(vertex)
        if self._ordered < len(self.rows):
            tail = slice(self._ordered, None)
            leaving = np.concatenate((leaving, np.flatnonzero(self.source[tail] == vertex) + self._ordered))
            entering = np.concatenate((entering, np.flatnonzero(self.destination[tail] == vertex) + self._ordered))
        leaving, entering = leaving[holding[leaving]], entering[holding[entering]]
        entering = entering[self.source[entering] != vertex]
        return IncidentEdges(
            np.concatenate((leaving, entering)),
            np.concatenate((self.destination[leaving], self.source[entering])),
            np.arange(len(leaving) + len(entering)) < len(leaving),
        )

    def degrees(self, vertices: Ints) -> Ints:
        """How many edges each of some vertices has, ended ones counted; exact but for the newest."""
        return self._leaving.counts(vertices) + self._entering.counts(vertices)

    def after(self, found: GraphDelta) -> Adjacency | None:
        """The next state; None where an edge has moved, and all must be read anew."""
        self._vertices.add(found.nodes)
        known = dict(zip(*self._places([edge[0] for edge in found.edges]), strict=True))
        old = [edge for edge in found.edges if edge[0] in known]
        new = [edge for edge in found.edges if edge[0] not in known]
        columns = _columns(new, self._vertices, self._numbers)
        weight, until, since, gone = (array.copy() for array in (self.weight, self.until, self.since, self.gone))
        first, last = self.first.copy(), self.last.copy()
        for edge in old:
            place = known[edge[0]]
            if self._moved(edge, place):
                return None
            weight[place], since[place], until[place] = edge[4], microseconds(edge[5]), _until(edge[6])
            first[place], last[place] = _day(edge[7]), _day(edge[8])
            gone[place] = False  # a merge that is taken back brings rows back
        gone[self._places(found.removed_edges)[1]] = True
        places = list(known.values())
        touched: dict[str, Ints] = {
            name: np.concatenate((array[places], columns[name]))
            for name, array in (("label", self.label), ("weight", weight), ("since", since))
        }
        labels = self.labels if len(self.labels) == len(self._numbers.texts) else tuple(self._numbers.texts)
        heaviest, latest = _bounds(len(labels), touched, self.heaviest, self.latest)
        if new and len(self.rows) and columns["rows"][0] <= self.rows[-1]:
            return None
        grown = replace(
            self,
            position=found.position,
            labels=labels,
            kind=self._kinds_after(found.nodes),
            heaviest=heaviest,
            latest=latest,
            rows=np.concatenate((self.rows, columns["rows"])),
            source=np.concatenate((self.source, columns["source"])),
            destination=np.concatenate((self.destination, columns["destination"])),
            label=np.concatenate((self.label, columns["label"])),
            weight=np.concatenate((weight, columns["weight"])),
            since=np.concatenate((since, columns["since"])),
            until=np.concatenate((until, columns["until"])),
            first=np.concatenate((first, columns["first"])),
            last=np.concatenate((last, columns["last"])),
            gone=np.concatenate((gone, np.zeros(len(new), bool))),
        )
        return grown._in_order() if len(grown.rows) - grown._ordered > _TAIL else grown

    def _kinds_after(self, nodes: Sequence[NodeRow]) -> Ints:
        if not nodes:
            return self.kind
        fresh = [self._kinds.number(kind) for kind in self._vertices.kinds[len(self.kind) :]]
        kind = np.concatenate((self.kind, np.array(fresh, np.int64)))
        for row, *_ in nodes:
            vertex = self._vertices.of_row[row]
            kind[vertex] = self._kinds.number(self._vertices.kinds[vertex])
        return kind

    def _places(self, rows: Sequence[int]) -> tuple[list[int], list[int]]:
        """Those of the store's rows that are edges here, and their positions."""
        wanted = np.array(sorted(rows), np.int64)
        places = np.searchsorted(self.rows, wanted)
        found = places < len(self.rows)
        found[found] = self.rows[places[found]] == wanted[found]
        return wanted[found].tolist(), places[found].tolist()

    def _moved(self, edge: EdgeRow, place: int) -> bool:
        ends = self._vertices.of_row.get(edge[1]), self._vertices.of_row.get(edge[3])
        same = ends == (self.source[place], self.destination[place])
        return not (same and self.labels[self.label[place]] == edge[2])

    def _in_order(self) -> Adjacency:
        leaving, entering = (_order(ends, self.vertices) for ends in (self.source, self.destination))
        return replace(self, _leaving=leaving, _entering=entering, _ordered=len(self.rows))


def _whole(found: GraphDelta) -> Adjacency:
    vertices, labels, kinds = _Vertices(), _Names(), _Names()
    vertices.add(found.nodes)
    kinds.number("")
    none = np.empty(0, np.int64)
    empty = _Order(none, np.zeros(1, np.int64))
    columns = _columns(found.edges, vertices, labels)
    heaviest, latest = _bounds(len(labels.texts), columns, none, none)
    gone = np.zeros(len(found.edges), bool)
    made = Adjacency(
        position=found.position,
        gone=gone,
        labels=tuple(labels.texts),
        heaviest=heaviest,
        latest=latest,
        kind=np.array([kinds.number(kind) for kind in vertices.kinds], np.int64),
        **columns,
        _vertices=vertices,
        _kinds=kinds,
        _numbers=labels,
        _leaving=empty,
        _entering=empty,
        _ordered=0,
    )
    return made._in_order()


def _columns(edges: Sequence[EdgeRow], vertices: _Vertices, labels: _Names) -> dict[str, Ints]:
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
        "until": np.array([STILL if text is None else times[text] for text in until], np.int64),
        "first": np.array([_day(text) for text in first], np.int64),
        "last": np.array([_day(text) for text in last], np.int64),
    }


def _bounds(labels: int, edges: Mapping[str, Ints], heaviest: Ints, latest: Ints) -> tuple[Ints, Ints]:
    """`Adjacency.heaviest` and `latest`, raised to what some edges have."""
    missing = labels - len(heaviest)
    heaviest = np.concatenate((heaviest, np.ones(missing, np.int64)))
    latest = np.concatenate((latest, np.full(missing, np.iinfo(np.int64).min)))
    np.maximum.at(heaviest, edges["label"], edges["weight"])
    np.maximum.at(latest, edges["label"], edges["since"])
    return heaviest, latest


def _order(ends: Ints, vertices: int) -> _Order:
    edges = np.argsort(ends, kind="stable")
    return _Order(edges, np.searchsorted(ends[edges], np.arange(vertices + 1)))


def microseconds(time: str) -> int:
    """Since 1970, of ISO 8601 with an offset."""
    return round(datetime.fromisoformat(time).timestamp() * 1e6)


def _day(day: str | None) -> int:
    return 0 if day is None else date.fromisoformat(day).toordinal()


def _until(time: str | None) -> int:
    return int(STILL) if time is None else microseconds(time)


class _Times(dict[str, int]):
    """`microseconds`, each text read once: many relations share theirs."""

    def __missing__(self, time: str) -> int:
        found = self[time] = microseconds(time)
        return found


class AdjacencyIndex:
    """The `Adjacency` of each scope that was asked for, brought to where the truth is. Safe to share."""

    inline = True  # see `flow`

    def __init__(self, truth: GraphStore) -> None:
        self._truth = truth
        self._lock = Lock()
        self._held: OrderedDict[Scope, Adjacency] = OrderedDict()

    def of(self, scope: Scope) -> Adjacency:
        """The relations of a scope as they are now."""
        with self._lock:
            held = self._held.pop(scope, None)
            now = self._truth.position()
            if held is None or held.position != now:
                held = self._brought(scope, held, now)
            self._held[scope] = held
            self._trim()
            return held

    def _brought(self, scope: Scope, held: Adjacency | None, now: ChangePosition) -> Adjacency:
        if held is not None and held.position.epoch == now.epoch and _near(held, now):
            found = self._truth.delta_since(scope, after=held.position.seq)
            if found.position.epoch == now.epoch and (grown := held.after(found)) is not None:
                return grown
        return _whole(self._truth.delta_since(scope))

    def _trim(self) -> None:
        size = sum(len(adjacency.rows) for adjacency in self._held.values())
        while size > _MOST and len(self._held) > 1:
            size -= len(self._held.popitem(last=False)[1].rows)


def _near(held: Adjacency, now: ChangePosition) -> bool:
    return now.seq - held.position.seq <= max(1_000, _FAR * len(held.rows))
