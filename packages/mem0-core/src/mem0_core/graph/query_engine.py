"""Running a query: a plan that begins at the most selective end, and the rows it gives.

What a pattern asks of one node or relation alone (names, types, labels, SIMILAR) becomes a set of those that may stand
there. The plan begins at the smallest of these sets and goes outwards from what is bound already; each condition is
tested as soon as what it speaks of is bound. As in Cypher, no relation stands twice in one row of a MATCH.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mem0_core.domain.records import DateRange, entity_key
from mem0_core.errors import QueryError
from mem0_core.graph.adjacency import STILL, Adjacency
from mem0_core.graph.query_language import (
    All,
    Any_,
    Compare,
    Count,
    Expression,
    IsNull,
    Item,
    Literal_,
    NodePattern,
    Not,
    Operand,
    Order,
    Property,
    Query,
    RelationPattern,
    Similar,
    Variable,
    variables_of,
)
from mem0_core.graph.traversal import components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

__all__ = ["LIMIT", "Bounds", "Edge", "Near", "Plan", "Vertex", "check", "similars_of"]

LIMIT = 1_000
"""Rows of a query that names no LIMIT."""
_MOST_ROWS = 10_000

Near = Mapping[tuple[str, str, float], frozenset[int]]
"""("node" or "relation", text, threshold) -> the vertices or edges that are that near to the text."""

Kind = Literal["node", "relation", "relations"]
_NODE_PROPERTIES = ("name", "type", "component")
_NEVER = DateRange(None, None)
_RELATION_PROPERTIES = (
    "relationship",
    "source",
    "destination",
    "weight",
    "valid_from",
    "valid_to",
    "date",
    "time_window",
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a query may go: matches of the patterns that are looked at, steps on the way to them, and seconds."""

    matches: int = 100_000
    steps: int = 2_000_000
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node in a row."""

    number: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation in a row."""

    number: int


Bound = Vertex | Edge | tuple[Edge, ...]
Binding = dict[str, Bound]


# --- checking ----------------------------------------------------------------------------------------------------


def check(query: Query) -> dict[str, Kind]:
    """The variables of a query and what they stand for.

    Raises:
        QueryError: one stands for two kinds of thing, is not in a pattern, has no such property, or an ORDER BY or a
            LIMIT makes no sense.
    """
    kinds: dict[str, Kind] = {}
    for name, kind, at in _declared(query):
        if kinds.setdefault(name, kind) != kind:
            _refuse(query, f"{name!r} stands for a {kinds[name]} already", at)
        if kind != "node" and [one for one, _, _ in _declared(query)].count(name) > 1:
            _refuse(query, f"{name!r} stands for two relations; a relation stands once in a pattern", at)
    for pattern in query.patterns:
        parts: list[NodePattern | RelationPattern] = [*pattern.nodes, *pattern.relations]
        for part in parts:
            for name, _ in part.properties:
                _check_property(query, "node" if isinstance(part, NodePattern) else "relation", name, part.at)
    spoken = [query.where, *(item.of for item in query.items), *(order.of for order in query.order)]
    aliases = {item.alias for item in query.items if item.alias is not None}
    for place, one in enumerate(spoken):
        for name, at in variables_of(one):
            in_order = place > len(query.items)
            if name not in kinds and not (in_order and name in aliases and isinstance(one, Variable)):
                _refuse(query, f"{name!r} is in no pattern; there are {', '.join(sorted(kinds)) or 'none'}", at)
        for found in _properties(one):
            _check_property(query, kinds[found.of], found.name, found.at)
    for similar in _similars(query.where):
        if kinds[similar.of] == "relations":
            _refuse(query, "SIMILAR compares one node or one relation, not several in a row", similar.at)
    _check_order(query)
    if query.limit is not None and query.limit > _MOST_ROWS:
        _refuse(query, f"LIMIT {query.limit}: at most {_MOST_ROWS:,} rows are returned", 0)
    columns = [item.column for item in query.items]
    if len(set(columns)) < len(columns):
        _refuse(query, "two columns have one name; name one with AS", 0)
    if not query.items and not kinds:
        _refuse(query, "RETURN * needs a pattern with a variable", 0)
    return kinds


def _declared(query: Query) -> Iterator[tuple[str, Kind, int]]:
    for pattern in query.patterns:
        for node in pattern.nodes:
            if node.variable is not None:
                yield node.variable, "node", node.at
        for relation in pattern.relations:
            if relation.variable is not None:
                yield relation.variable, "relation" if relation.hops is None else "relations", relation.at


def _properties(part: Expression | Operand | Count | None) -> Iterator[Property]:
    match part:
        case Property():
            yield part
        case Compare(left, _, right):
            yield from _properties(left)
            yield from _properties(right)
        case IsNull(of) | Count(of):
            yield from _properties(of)
        case Not(inner):
            yield from _properties(inner)
        case All(parts) | Any_(parts):
            for one in parts:
                yield from _properties(one)
        case _:
            pass


def _similars(part: Expression | None) -> Iterator[Similar]:
    match part:
        case Similar():
            yield part
        case Not(inner):
            yield from _similars(inner)
        case All(parts) | Any_(parts):
            for one in parts:
                yield from _similars(one)
        case _:
            pass


def similars_of(query: Query, kinds: Mapping[str, Kind]) -> set[tuple[str, str, float]]:
    """What `Near` must tell to run a query."""
    return {(kinds[one.of], one.text, one.threshold) for one in _similars(query.where)}


def _check_property(query: Query, kind: Kind, name: str, at: int) -> None:
    if kind == "relations":
        _refuse(query, "several relations in a row have no properties; count them, or return them", at)
    known = _NODE_PROPERTIES if kind == "node" else _RELATION_PROPERTIES
    if name not in known:
        _refuse(query, f"a {kind} has no property {name!r}; it has {', '.join(known)}", at)


def _check_order(query: Query) -> None:
    """With counts or DISTINCT, rows are made of several matches: they are ordered by what is in them."""
    joined = query.distinct or any(isinstance(item.of, Count) for item in query.items)
    for order in query.order:
        if (joined or isinstance(order.of, Count)) and not any(_refers(order, item) for item in query.items):
            _refuse(query, f"ORDER BY {order.of} is not among what is returned", getattr(order.of, "at", 0))


def _refers(order: Order, item: Item) -> bool:
    """Whether rows are ordered by what is returned here."""
    by_alias = isinstance(order.of, Variable) and order.of.name == item.alias
    return by_alias or order.of == item.of


def _refuse(query: Query, message: str, at: int) -> None:
    where = f" at position {at}" if at else ""
    raise QueryError(f"{message}{where}", query=str(query), position=at)


# --- planning ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slot:
    """A node or a relation of a pattern under its name, its own or a made one, with those that may stand there."""

    name: str
    pattern: NodePattern | RelationPattern
    fits: Bools
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class _Link:
    """A relation between two slots of nodes, as it is written."""

    relation: _Slot
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class _Stage:
    """One step of a plan: what it binds, and the conditions that can be tested then."""

    kind: Literal["node", "relation", "expand"]
    slot: _Slot
    link: _Link | None
    from_left: bool
    conditions: tuple[Expression, ...]
    shown: str


@dataclass(slots=True)
class Plan:
    """How a query is run on a state of the graph.

    Args:
        near: see `Near`, for each of `similars_of`.
        bounds: beyond which it is given up.
    """

    query: Query
    adjacency: Adjacency
    near: Near
    as_of: str | None = None
    bounds: Bounds = field(default_factory=Bounds)
    _kinds: dict[str, Kind] = field(init=False)
    _holding: Bools = field(init=False)
    _slot_of: dict[str, _Slot] = field(init=False)
    _stages: list[_Stage] = field(init=False)
    _steps: int = field(init=False, default=0)
    _until: float = field(init=False, default=0.0)
    _connected: NDArray[np.int64] | None = field(init=False, default=None)

    inline = True  # see `flow`

    def __post_init__(self) -> None:
        self._kinds = check(self.query)
        self._holding = self.adjacency.holding(self.as_of)
        self._stages = self._planned()

    def lines(self) -> list[str]:
        """The plan, a line for each step, as EXPLAIN shows it."""
        lines = []
        for number, stage in enumerate(self._stages, start=1):
            tests = f"; where {' AND '.join(map(str, stage.conditions))}" if stage.conditions else ""
            lines.append(f"{number}. {stage.shown}{tests}")
        ends = [f"distinct {', '.join(map(str, self.query.items))}"] if self.query.distinct else []
        ends += [f"order by {', '.join(map(str, self.query.order))}"] if self.query.order else []
        ends += [f"at most {self._limit} rows" + (f" after {self.query.skip}" if self.query.skip else "")]
        return [*lines, f"{len(lines) + 1}. {'; '.join(ends)}"]

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        named = [name for name, _, _ in _declared(self.query)]
        return [item.column for item in self._items()] if self.query.items else list(dict.fromkeys(named))

    @property
    def _limit(self) -> int:
        return LIMIT if self.query.limit is None else self.query.limit

    def rows(self) -> tuple[list[tuple[Any, ...]], bool]:
        """The rows, with `Vertex`, `Edge` and plain values, and whether there were more than an unsaid LIMIT allows.

        Raises:
            QueryError: the query goes further than `bounds` allow; says which and what to do.
        """
        self._steps, self._until = 0, time.monotonic() + self.bounds.seconds
        items = self._items()
        counted = any(isinstance(item.of, Count) for item in items)
        whole = counted or bool(self.query.order)
        wanted = self.query.skip + self._limit + (self.query.limit is None)
        rows: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        seen: set[Any] = set()
        groups: dict[Any, _Group] = {}
        if self._limit == 0 and not counted:
            return [], False
        for number, binding in enumerate(self._matches()):
            if number >= self.bounds.matches:
                self._give_up(f"the patterns match more than {self.bounds.matches:,} times")
            if counted:
                key = tuple(self._value(item.of, binding) for item in items if not isinstance(item.of, Count))
                groups.setdefault(key, _Group()).add(self, items, binding)
                continue
            row = tuple(self._value(item.of, binding) for item in items)
            if self.query.distinct and row in seen:
                continue
            seen.add(row)
            rows.append((row, self._sort_key(row, items, binding)))
            if not whole and len(rows) == wanted:
                break
        if counted:
            plain = not any(not isinstance(item.of, Count) for item in items)
            if plain and not groups:
                groups[()] = _Group()
            made = [group.row(key, items) for key, group in groups.items()]
            made = list(dict.fromkeys(made)) if self.query.distinct else made
            rows = [(row, self._sort_key(row, items, {})) for row in made]
        for place in reversed(range(len(self.query.order))):
            rows.sort(key=lambda pair: pair[1][place], reverse=self.query.order[place].descending)
        cut = [row for row, _ in rows[self.query.skip : self.query.skip + self._limit]]
        return cut, self.query.limit is None and len(rows) > self.query.skip + self._limit

    def _items(self) -> tuple[Item, ...]:
        if self.query.items:
            return self.query.items
        return tuple(Item(Variable(name)) for name in dict.fromkeys(name for name, _, _ in _declared(self.query)))

    # --- what may stand where ----------------------------------------------------------------------------------------

    def _planned(self) -> list[_Stage]:
        slots, links = self._slots()
        self._slot_of = slots
        conditions = _conjuncts(self.query.where)
        bound: set[str] = set()
        stages: list[_Stage] = []

        def ready() -> tuple[Expression, ...]:
            now = [one for one in conditions if {name for name, _ in variables_of(one)} <= bound]
            for one in now:
                conditions.remove(one)
            return tuple(now)

        waiting = list(links)
        unbound = {name: slot for name, slot in slots.items() if isinstance(slot.pattern, NodePattern)}
        while waiting or unbound:
            link: _Link | None = None
            incident_relation_rows = [link for link in waiting if link.left in bound or link.right in bound]
            if incident_relation_rows:
                link = min(incident_relation_rows, key=lambda one: self._reach(one, slots, bound))
                from_left = link.left in bound
                end = slots[link.right if from_left else link.left]
                bound |= {link.relation.name, link.left, link.right}
                shown = f"expand {_shown_link(link, from_left)} to {_shown(end)}"
                stages.append(_Stage("expand", end, link, from_left, ready(), shown))
            else:
                link_start = min(
                    (one for one in waiting if _is_single(one)), key=lambda one: one.relation.size, default=None
                )
                node = min(unbound.values(), key=lambda slot: slot.size)
                if link_start is not None and link_start.relation.size < node.size:
                    link = link_start
                    bound |= {link.relation.name, link.left, link.right}
                    shown = f"begin at {_shown(link.relation)} between {_called(link.left)} and {_called(link.right)}"
                    stages.append(_Stage("relation", link.relation, link, True, ready(), shown))
                else:
                    bound.add(node.name)
                    stages.append(_Stage("node", node, None, True, ready(), f"begin at {_shown(node)}"))
            waiting = [one for one in waiting if one is not link]
            unbound = {name: slot for name, slot in unbound.items() if name not in bound}
        return stages

    def _reach(self, link: _Link, slots: Mapping[str, _Slot], bound: set[str]) -> tuple[bool, int, int]:
        """What to expand first: what only tests, then one relation before several, then to the fewest."""
        both = link.left in bound and link.right in bound
        end = slots[link.right if link.left in bound else link.left]
        return not both, 0 if _is_single(link) else 1, end.size

    def _slots(self) -> tuple[dict[str, _Slot], list[_Link]]:
        slots: dict[str, _Slot] = {}
        links: list[_Link] = []
        fixed = [one for one in _conjuncts(self.query.where) if isinstance(one, Compare | Similar)]
        made = 0
        for pattern in self.query.patterns:
            names: list[str] = []
            for node in pattern.nodes:
                made += node.variable is None
                names.append(node.variable if node.variable is not None else f" {made}")
                slots[names[-1]] = self._node_slot(names[-1], node, slots.get(names[-1]), fixed)
            for place, relation in enumerate(pattern.relations):
                made += relation.variable is None
                name = relation.variable if relation.variable is not None else f" {made}"
                slots[name] = self._relation_slot(name, relation, fixed)
                links.append(_Link(slots[name], names[place], names[place + 1]))
        return slots, links

    def _node_slot(self, name: str, node: NodePattern, known: _Slot | None, fixed: Sequence[Expression]) -> _Slot:
        held = self.adjacency
        fits = np.ones(held.vertices, bool) if known is None else known.fits.copy()
        why = [] if known is None or not known.why else [known.why]
        if known is None:
            standing = np.zeros(held.vertices, bool)  # a vertex that nothing joins is there no longer
            standing[held.source[self._holding]] = standing[held.destination[self._holding]] = True
            fits &= standing
        if node.label is not None:
            fits &= self._of_type(node.label)
            why.append(f"type {node.label}")
        for key, literal in (*node.properties, *_equalities(name, fixed)):
            match key:
                case "type":
                    fits &= self._of_type(literal.value)
                case "component":
                    fits &= self._components() == literal.value
                case _:
                    fits &= self._named(literal.value)
            why.append(f"{key} {literal}")
        for similar in fixed:
            if isinstance(similar, Similar) and similar.of == name:
                fits &= _mask(held.vertices, self.near["node", similar.text, similar.threshold])
                why.append(f"near {similar.text!r}")
        return _Slot(name, node, fits, int(fits.sum()), ", ".join(dict.fromkeys(why)))

    def _relation_slot(self, name: str, relation: RelationPattern, fixed: Sequence[Expression]) -> _Slot:
        held = self.adjacency
        fits, why = self._holding.copy(), []
        if relation.labels:
            wanted = {_plain(label) for label in relation.labels}
            fits &= np.array([_plain(label) in wanted for label in held.labels], bool)[held.label]
            why.append("|".join(relation.labels))
        places = np.flatnonzero(fits)
        for key, literal in (*relation.properties, *(_equalities(name, fixed) if relation.hops is None else ())):
            test = Compare(Property(name, key), "=", literal)
            kept = [edge for edge in places.tolist() if self._holds(test, {name: Edge(edge)})]
            places = np.array(kept, np.int64)
            fits = _mask(len(fits), frozenset(kept))
            why.append(f"{key} {literal}")
        for similar in fixed:
            if isinstance(similar, Similar) and similar.of == name:
                fits &= _mask(len(fits), self.near["relation", similar.text, similar.threshold])
                why.append(f"near {similar.text!r}")
        return _Slot(name, relation, fits, int(fits.sum()), ", ".join(why))

    def _of_type(self, kind: Any) -> Bools:
        wanted = kind.casefold() if isinstance(kind, str) else None
        fits: Bools = np.array([one.casefold() == wanted for one in self.adjacency.kinds], bool)[self.adjacency.kind]
        return fits

    def _named(self, name: Any) -> Bools:
        return _mask(self.adjacency.vertices, frozenset(self.adjacency.named(name) if isinstance(name, str) else ()))

    # --- matching ----------------------------------------------------------------------------------------------------

    def _matches(self) -> Iterator[Binding]:
        """Depth first, without recursion: an iterator of what each stage may bind."""
        if not self._stages:
            return
        open_: list[Iterator[Binding]] = [self._bound({}, self._stages[0])]
        while open_:
            binding = next(open_[-1], None)
            if binding is None:
                open_.pop()
            elif len(open_) == len(self._stages):
                yield binding
            else:
                open_.append(self._bound(binding, self._stages[len(open_)]))

    def _bound(self, binding: Binding, stage: _Stage) -> Iterator[Binding]:
        """The ways in which a stage goes on from what is bound."""
        for more in self._candidates(binding, stage):
            self._count()
            longer = binding | more
            if all(self._holds(condition, longer) for condition in stage.conditions):
                yield longer

    def _candidates(self, binding: Binding, stage: _Stage) -> Iterator[Binding]:
        if stage.kind == "node":
            for vertex in np.flatnonzero(stage.slot.fits).tolist():
                yield {stage.slot.name: Vertex(vertex)}
        elif stage.kind == "relation":
            assert stage.link is not None
            yield from self._from_relation(binding, stage.link)
        else:
            assert stage.link is not None
            yield from self._expanded(binding, stage, stage.link)

    def _from_relation(self, binding: Binding, link: _Link) -> Iterator[Binding]:
        used = _used(binding)
        left, right = self._slot_of[link.left], self._slot_of[link.right]
        for edge in np.flatnonzero(link.relation.fits).tolist():
            self._count()
            if edge in used:
                continue
            source, destination = int(self.adjacency.source[edge]), int(self.adjacency.destination[edge])
            ways = {"->": [(source, destination)], "<-": [(destination, source)]}.get(
                _direction(link), [(source, destination), (destination, source)]
            )
            for one, other in dict.fromkeys(ways):
                if left.fits[one] and right.fits[other] and (link.left != link.right or one == other):
                    yield {
                        link.relation.name: Edge(edge),
                        link.left: Vertex(one),
                        link.right: Vertex(other),
                    }

    def _expanded(self, binding: Binding, stage: _Stage, link: _Link) -> Iterator[Binding]:
        here, there = (link.left, link.right) if stage.from_left else (link.right, link.left)
        start, goal = binding[here], binding.get(there)
        assert isinstance(start, Vertex)
        relation = link.relation.pattern
        assert isinstance(relation, RelationPattern)
        forward = {"->": stage.from_left, "<-": not stage.from_left, "-": None}[relation.direction]
        low, high = relation.hops or (1, 1)
        used = _used(binding)
        fits = stage.slot.fits
        for edges, end in self._ways(start.number, link.relation.fits, forward, low, high, used):
            if (end == goal.number if isinstance(goal, Vertex) else fits[end]) and (
                here != there or end == start.number
            ):
                ordered = edges if stage.from_left else edges[::-1]
                found: Bound = tuple(map(Edge, ordered)) if relation.hops else Edge(edges[0])
                yield {link.relation.name: found, there: Vertex(end)}

    def _ways(
        self, start: int, fits: Bools, forward: bool | None, low: int, high: int, used: set[int]
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Each way of `low` to `high` relations from a vertex, none twice: its edges, and where it ends."""
        open_ = [self._next(start, fits, forward)]
        edges: list[int] = []
        while open_:
            step = next(open_[-1], None)
            if step is None:
                open_.pop()
                if edges:
                    edges.pop()
                continue
            edge, end = step
            if edge in used or edge in edges:
                continue
            self._count()
            if len(edges) + 1 >= low:
                yield (*edges, edge), end
            if len(edges) + 1 < high:
                edges.append(edge)
                open_.append(self._next(end, fits, forward))

    def _next(self, vertex: int, fits: Bools, forward: bool | None) -> Iterator[tuple[int, int]]:
        around = self.adjacency.around(vertex, fits)
        kept = np.arange(len(around.edges))
        if forward is not None:
            loops = around.ends == vertex
            kept = kept[(around.forward == forward) | loops]
        return iter(zip(around.edges[kept].tolist(), around.ends[kept].tolist(), strict=True))

    def _count(self) -> None:
        self._steps += 1
        if self._steps > self.bounds.steps:
            self._give_up(f"the query takes more than {self.bounds.steps:,} steps")
        if self._steps % 512 == 0 and time.monotonic() > self._until:
            self._give_up(f"the query takes more than {self.bounds.seconds:g} seconds")

    def _give_up(self, why: str) -> None:
        raise QueryError(
            f"{why}: name an entity, a type or a label in it, or shorten its patterns", query=str(self.query)
        )

    # --- conditions --------------------------------------------------------------------------------------------------

    def _holds(self, condition: Expression, binding: Binding) -> bool:
        return self._truth(condition, binding) is True

    def _truth(self, condition: Expression, binding: Binding) -> bool | None:
        """True, False, or None where it hangs on something that is not known (null)."""
        match condition:
            case Compare(left, sign, right):
                return self._compared(left, sign, right, binding)
            case IsNull(of, negated):
                return (self._operand(of, binding) is None) != negated
            case Similar(of, text, threshold):
                found = binding[of]
                assert isinstance(found, Vertex | Edge)
                return found.number in self.near[self._kinds[of], text, threshold]
            case Not(part):
                inner = self._truth(part, binding)
                return None if inner is None else not inner
            case All(parts):
                values = [self._truth(part, binding) for part in parts]
                return False if False in values else None if None in values else True
            case Any_(parts):
                values = [self._truth(part, binding) for part in parts]
                return True if True in values else None if None in values else False

    def _compared(self, left: Operand, sign: str, right: Operand, binding: Binding) -> bool | None:
        one, other = self._operand(left, binding), self._operand(right, binding)
        if one is None or other is None:
            return None
        fold = next(
            (_FOLDS[side.name] for side in (left, right) if isinstance(side, Property) and side.name in _FOLDS), None
        )
        if fold is not None and sign in ("=", "<>", "IN"):
            one, other = _folded(one, fold), _folded(other, fold)
        if sign == "IN":
            if not isinstance(other, tuple):
                return None
            return True if any(_same(one, value) for value in other) else None if None in other else False
        if sign in ("=", "<>"):
            return _same(one, other) == (sign == "=")
        if sign in _ORDERS:
            if isinstance(one, bool) or isinstance(other, bool):
                return None
            both_numbers = isinstance(one, int | float) and isinstance(other, int | float)
            both_texts = isinstance(one, str) and isinstance(other, str)
            return bool(_ORDERS[sign](one, other)) if both_numbers or both_texts else None
        if not (isinstance(one, str) and isinstance(other, str)):
            return None
        one, other = one.casefold(), other.casefold()
        return {"CONTAINS": other in one, "STARTS WITH": one.startswith(other)}.get(sign, one.endswith(other))

    def _operand(self, operand: Operand, binding: Binding) -> Any:
        return operand.value if isinstance(operand, Literal_) else self._value(operand, binding)

    def _value(self, of: Variable | Property | Count, binding: Binding) -> Any:
        if isinstance(of, Variable):
            return binding[of.name]
        assert isinstance(of, Property)
        found = binding[of.of]
        if isinstance(found, Vertex):
            return self._of_node(found.number, of.name)
        assert isinstance(found, Edge)
        return self._of_relation(found.number, of.name)

    def _components(self) -> NDArray[np.int64]:
        """The number of the component of each vertex, among what holds; reckoned where a query asks for it."""
        if self._connected is None:
            self._connected = components(self.adjacency, as_of=self.as_of)
        return self._connected

    def _of_node(self, vertex: int, name: str) -> str | int | None:
        held = self.adjacency
        if name == "component":
            return int(self._components()[vertex])
        return held.names[vertex] if name == "name" else held.kinds[held.kind[vertex]] or None

    def _of_relation(self, edge: int, name: str) -> Any:
        held = self.adjacency
        match name:
            case "relationship":
                return held.labels[held.label[edge]]
            case "source":
                return held.names[held.source[edge]]
            case "destination":
                return held.names[held.destination[edge]]
            case "weight":
                return int(held.weight[edge])
            case "valid_from":
                return _time(int(held.since[edge]))
            case "date":
                return _day(int(held.first[edge]))
            case "time_window":
                days = DateRange(_day(int(held.first[edge])), _day(int(held.last[edge])))
                return None if days == _NEVER else days.iso_interval
            case _:
                return None if held.until[edge] == STILL else _time(int(held.until[edge]))

    def _sort_key(self, row: tuple[Any, ...], items: Sequence[Item], binding: Binding) -> tuple[Any, ...]:
        keys = []
        for order in self.query.order:
            place = next((at for at, item in enumerate(items) if _refers(order, item)), None)
            keys.append(self._orderable(self._value(order.of, binding) if place is None else row[place]))
        return tuple(keys)

    def _orderable(self, value: Any) -> tuple[int, Any]:
        """A key by which values of all kinds have an order: numbers, texts, nodes by name, relations, null last."""
        match value:
            case None:
                return (9, 0)
            case bool() | int() | float():
                return (0, value)
            case str():
                return (1, (value.casefold(), value))
            case Vertex(number):
                return (1, (self.adjacency.names[number].casefold(), self.adjacency.names[number]))
            case Edge(number):
                return (2, number)
            case _:
                return (3, tuple(edge.number for edge in value))


@dataclass(slots=True)
class _Group:
    """The matches that share what is not counted."""

    counts: dict[int, int] = field(default_factory=dict)
    seen: dict[int, set[Any]] = field(default_factory=dict)

    def add(self, plan: Plan, items: Sequence[Item], binding: Binding) -> None:
        for place, item in enumerate(items):
            if not isinstance(item.of, Count):
                continue
            value = True if item.of.of is None else plan._value(item.of.of, binding)
            if value is None:
                continue
            self.counts[place] = self.counts.get(place, 0) + 1
            if item.of.distinct:
                self.seen.setdefault(place, set()).add(value)

    def row(self, key: tuple[Any, ...], items: Sequence[Item]) -> tuple[Any, ...]:
        plain = iter(key)
        return tuple(
            (len(self.seen.get(place, ())) if item.of.distinct and item.of.of else self.counts.get(place, 0))
            if isinstance(item.of, Count)
            else next(plain)
            for place, item in enumerate(items)
        )


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _conjuncts(where: Expression | None) -> list[Expression]:
    if where is None:
        return []
    return list(where.parts) if isinstance(where, All) else [where]


def _equalities(name: str, fixed: Sequence[Expression]) -> Iterator[tuple[str, Literal_]]:
    """What the conditions say a variable's properties are equal to."""
    for one in fixed:
        if isinstance(one, Compare) and one.sign == "=":
            for side, other in ((one.left, one.right), (one.right, one.left)):
                if isinstance(side, Property) and side.of == name and isinstance(other, Literal_):
                    yield side.name, other


def _mask(size: int, members: frozenset[int]) -> Bools:
    mask = np.zeros(size, bool)
    mask[[member for member in members if member < size]] = True
    return mask


def _plain(label: str) -> str:
    """A label without case, with spaces and dashes as underscores: LIVES_IN is lives_in."""
    return "_".join(label.casefold().replace("-", " ").replace("_", " ").split())


_FOLDS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("name", "source", "destination"), entity_key),
    "type": str.casefold,
    "relationship": _plain,
}
"""Properties that are compared without case and spacing, as the graph itself does."""


def _folded(value: Any, fold: Callable[[str], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_folded(one, fold) for one in value)
    return fold(value) if isinstance(value, str) else value


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _used(binding: Binding) -> set[int]:
    """The edges that are bound already."""
    used: set[int] = set()
    for found in binding.values():
        if isinstance(found, Edge):
            used.add(found.number)
        elif isinstance(found, tuple):
            used.update(edge.number for edge in found)
    return used


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _time(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _day(ordinal: int) -> str | None:
    return date.fromordinal(ordinal).isoformat() if ordinal else None


def _is_single(link: _Link) -> bool:
    return isinstance(link.relation.pattern, RelationPattern) and link.relation.pattern.hops is None


def _direction(link: _Link) -> str:
    assert isinstance(link.relation.pattern, RelationPattern)
    return link.relation.pattern.direction


def _shown(slot: _Slot) -> str:
    kind = "node" if isinstance(slot.pattern, NodePattern) else "relation"
    name = "" if slot.name.startswith(" ") else f" {slot.name}"
    return f"{kind}{name} ({slot.why + ', ' if slot.why else ''}{slot.size:,} to look at)"


def _shown_link(link: _Link, from_left: bool) -> str:
    start = link.left if from_left else link.right
    labels = f" along {link.relation.why}" if link.relation.why else ""
    pattern = link.relation.pattern
    hops = (
        f", {pattern.hops[0]} to {pattern.hops[1]} in a row"
        if isinstance(pattern, RelationPattern) and pattern.hops
        else ""
    )
    return f"from {_called(start)}{labels}{hops}"


def _called(name: str) -> str:
    return "a node" if name.startswith(" ") else name
