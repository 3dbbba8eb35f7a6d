"""Values of a query: bound nodes, relations and paths, the conditions on them, functions and groups."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core._system.records import dataclass
from mem0_core.domain.records import DateRange
from mem0_core.errors import QueryError
from mem0_core.graph._query_check import CheckedQuery
from mem0_core.graph._query_plan import PathNames
from mem0_core.graph._query_tree import (
    Aggregate,
    And,
    Call,
    Compare,
    Constant,
    Expression,
    IsNull,
    Item,
    Not,
    Operand,
    Or,
    Property,
    Returned,
    Similar,
    Variable,
)
from mem0_core.graph.adjacency import NEVER, Adjacency
from mem0_core.graph.traversal import components

if TYPE_CHECKING:
    from numpy.typing import NDArray

Near = Mapping[tuple[str, str, float], frozenset[int]]
"""("node" or "relation", text, threshold) -> the vertices or edges with at least that cosine to the text."""

_NO_DATES = DateRange(None, None)


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node in a row."""

    number: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation in a row."""

    number: int


@dataclass(frozen=True, slots=True)
class Route:
    """A path in a row: its nodes, and the relations between them."""

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


Bound = Vertex | Edge | tuple[Edge, ...]
Binding = dict[str, Bound]


class Evaluator:
    """Evaluates conditions and properties for a binding."""

    def __init__(self, query: CheckedQuery, adjacency: Adjacency, near: Near, as_of: str | None) -> None:
        self._query = query
        self._adjacency = adjacency
        self._near = near
        self._as_of = as_of
        self._component_numbers: NDArray[np.int64] | None = None
        self.paths: Mapping[str, PathNames] = {}

    def holds(self, condition: Expression, binding: Binding) -> bool:
        """Return True if a condition is true, and neither false nor unknown."""
        return self._truth(condition, binding) is True

    def _truth(self, condition: Expression, binding: Binding) -> bool | None:
        """Return True, False, or None if the condition depends on an unknown value (null)."""
        match condition:
            case Compare():
                return self._compare(condition, binding)
            case IsNull(operand, negated):
                return (self.operand(operand, binding) is None) != negated
            case Similar(variable):
                found = binding[variable]
                assert isinstance(found, Vertex | Edge)
                return found.number in self._near[self._query.similar_key(condition)]
            case Not(part):
                inner = self._truth(part, binding)
                return None if inner is None else not inner
            case And(parts):
                values = [self._truth(part, binding) for part in parts]
                return False if False in values else None if None in values else True
            case Or(parts):
                values = [self._truth(part, binding) for part in parts]
                return True if True in values else None if None in values else False

    def _compare(self, condition: Compare, binding: Binding) -> bool | None:
        sides = canonical_property(condition.left), canonical_property(condition.right)
        left, right = (self.operand(side, binding) for side in sides)
        if left is None or right is None:
            return None
        if condition.operator in ("=", "<>", "IN"):
            fold = next((one for one in (self._fold_of(side) for side in sides) if one is not None), None)
            if fold is not None:
                left, right = _fold(left, fold), _fold(right, fold)
        return _OPERATORS[condition.operator](left, right)

    def _fold_of(self, side: Operand) -> Callable[[str], Any] | None:
        """Return the function that removes the differences in writing that an operand ignores."""
        if isinstance(side, Call):
            return str.casefold if side.function == "labels" else None
        if not isinstance(side, Property):
            return None
        if side.name == "type" and self._query.kinds[side.owner] == "relation":
            return fold_label
        return self._adjacency.present_key if side.name in _NAMES else _FOLDS.get(side.name)

    def operand(self, operand: Operand, binding: Binding) -> Any:
        """Return the value of an operand."""
        return operand.value if isinstance(operand, Constant) else self.value(operand, binding)

    def value(self, part: Returned, binding: Binding) -> Any:
        """Return the value of a variable, property or function of one match."""
        match part:
            case Variable(name):
                return self._route(self.paths[name], binding) if name in self.paths else binding[name]
            case Call(function, arguments):
                values = [self.operand(argument, binding) for argument in arguments]
                return self._call(function, values)
            case Property(owner, name):
                found = binding[owner]
                if isinstance(found, Vertex):
                    return self._node_property(found.number, name)
                assert isinstance(found, Edge)
                return self._relation_property(found.number, name)
            case Aggregate():
                raise AssertionError("an aggregate has no value in one match")

    def _route(self, names: PathNames, binding: Binding) -> Route:
        """Return the path along the slots of a pattern."""
        start = binding[names.nodes[0]]
        assert isinstance(start, Vertex)
        vertices, edges = [start], list[Edge]()
        for name in names.relations:
            found = binding[name]
            assert not isinstance(found, Vertex)
            for edge in (found,) if isinstance(found, Edge) else found:
                ends = int(self._adjacency.source[edge.number]), int(self._adjacency.destination[edge.number])
                edges.append(edge)
                vertices.append(Vertex(ends[0] if vertices[-1].number == ends[1] else ends[1]))
        return Route(tuple(vertices), tuple(edges))

    def _call(self, function: str, values: list[Any]) -> Any:
        """Return the result of a function; that of an unknown value (null) is unknown."""
        if function == "coalesce":
            return next((value for value in values if value is not None), None)
        (value,) = values
        if value is None:
            return None
        match function:
            case "type":
                return self._relation_property(value.number, "type")
            case "labels":
                kind = self._node_property(value.number, "type")
                return () if kind is None else (kind,)
            case "startNode" | "endNode":
                ends = self._adjacency.source if function == "startNode" else self._adjacency.destination
                return Vertex(int(ends[value.number]))
            case "nodes":
                return value.vertices
            case "relationships":
                return value.edges if isinstance(value, Route) else value
            case "length":
                return len(value.edges if isinstance(value, Route) else value)
            case "size":
                return len(value) if isinstance(value, str | tuple) else None
            case _:
                return _TEXT_FUNCTIONS[function](value) if isinstance(value, str) else None

    def components(self) -> NDArray[np.int64]:
        """Return the component of each vertex among the valid relations, computed on first use."""
        if self._component_numbers is None:
            self._component_numbers = components(self._adjacency, as_of=self._as_of)
        return self._component_numbers

    def _node_property(self, vertex: int, name: str) -> str | int | None:
        adjacency = self._adjacency
        if name == "component":
            return int(self.components()[vertex])
        return adjacency.names[vertex] if name == "name" else adjacency.kinds[adjacency.kind[vertex]] or None

    def _relation_property(self, edge: int, name: str) -> Any:
        adjacency = self._adjacency
        match name:
            case "relationship" | "type":
                return adjacency.labels[adjacency.label[edge]]
            case "source":
                return adjacency.names[adjacency.source[edge]]
            case "destination":
                return adjacency.names[adjacency.destination[edge]]
            case "weight":
                return int(adjacency.weight[edge])
            case "valid_from":
                return _format_time(int(adjacency.since[edge]))
            case "date":
                return _format_day(int(adjacency.first[edge]))
            case "time_window":
                days = DateRange(_format_day(int(adjacency.first[edge])), _format_day(int(adjacency.last[edge])))
                return None if days == _NO_DATES else days.iso_interval
            case _:
                return None if adjacency.until[edge] == NEVER else _format_time(int(adjacency.until[edge]))

    def sort_key(self, value: Any) -> tuple[int, Any]:
        """Return a key that orders values of all kinds: numbers, texts and nodes by name, relations, null last."""
        match value:
            case None:
                return (9, 0)
            case bool() | int() | float():
                return (0, value)
            case str():
                return (1, (value.casefold(), value))
            case Vertex(number):
                return (1, (self._adjacency.names[number].casefold(), self._adjacency.names[number]))
            case Edge(number):
                return (2, number)
            case Route():
                return (3, tuple(map(self.sort_key, value.vertices)))
            case _:
                return (4, tuple(map(self.sort_key, value)))


_Values = dict[Any, None] | list[Any]


@dataclass(slots=True)
class Group:
    """Values of the aggregates over the matches that share the other columns."""

    values: dict[int, _Values] = field(default_factory=dict)

    def add(self, evaluator: Evaluator, items: Sequence[Item], binding: Binding) -> None:
        """Add one match."""
        for index, item in enumerate(items):
            if not isinstance(item.value, Aggregate):
                continue
            operand = item.value.operand
            value = True if operand is None else evaluator.operand(operand, binding)
            if value is None:
                continue
            if item.value.distinct and operand is not None:
                distinct = self.values.setdefault(index, {})
                assert isinstance(distinct, dict)
                distinct[value] = None
            else:
                every = self.values.setdefault(index, [])
                assert isinstance(every, list)
                every.append(value)

    def row(self, key: tuple[Any, ...], items: Sequence[Item], evaluator: Evaluator) -> tuple[Any, ...]:
        """Return the row of the group; `key` has the values of the columns without aggregates."""
        plain = iter(key)
        return tuple(
            _aggregate(item.value, list(self.values.get(index, ())), evaluator)
            if isinstance(item.value, Aggregate)
            else next(plain)
            for index, item in enumerate(items)
        )


def _aggregate(aggregate: Aggregate, values: list[Any], evaluator: Evaluator) -> Any:
    """Return the result of an aggregate; all its values are known."""
    match aggregate.function:
        case "count":
            return len(values)
        case "collect":
            return tuple(values)
        case "min":
            return min(values, key=evaluator.sort_key, default=None)
        case "max":
            return max(values, key=evaluator.sort_key, default=None)
    wrong = next((one for one in values if isinstance(one, bool) or not isinstance(one, int | float)), None)
    if wrong is not None:
        raise QueryError(f"{aggregate} needs numbers, such as r.weight, not {wrong!r}", position=aggregate.position)
    if aggregate.function == "sum":
        return sum(values)
    return sum(values) / len(values) if values else None


def _equals(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _is_in(value: Any, values: Any) -> bool | None:
    if not isinstance(values, tuple):
        return None
    return True if any(_equals(value, one) for one in values) else None if None in values else False


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    """Return an ordering of two numbers or two texts, unknown for other values."""

    def ordering(left: Any, right: Any) -> bool | None:
        if isinstance(left, bool) or isinstance(right, bool):
            return None
        are_numbers = isinstance(left, int | float) and isinstance(right, int | float)
        are_texts = isinstance(left, str) and isinstance(right, str)
        return bool(compare(left, right)) if are_numbers or are_texts else None

    return ordering


def _text_test(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool | None]:
    """Return a test of two texts that ignores case, unknown for other values."""

    def text_test(left: Any, right: Any) -> bool | None:
        if not (isinstance(left, str) and isinstance(right, str)):
            return None
        return test(left.casefold(), right.casefold())

    return text_test


_OPERATORS: Mapping[str, Callable[[Any, Any], bool | None]] = {
    "=": _equals,
    "<>": lambda left, right: not _equals(left, right),
    "IN": _is_in,
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "CONTAINS": _text_test(lambda text, part: part in text),
    "STARTS WITH": _text_test(str.startswith),
    "ENDS WITH": _text_test(str.endswith),
}


def fold_label(label: str) -> str:
    """Return a label without case, with spaces and dashes as underscores: LIVES_IN is lives_in."""
    return "_".join(label.casefold().replace("-", " ").replace("_", " ").split())


def canonical_property(operand: Operand) -> Operand:
    """Return ``type(r)`` as the property that it reads, so that it compares alike; other operands as they are."""
    if isinstance(operand, Call) and operand.function == "type" and isinstance(operand.arguments[0], Variable):
        return Property(operand.arguments[0].name, "type", operand.position)
    return operand


_TEXT_FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "toLower": str.lower,
    "toUpper": str.upper,
    "trim": str.strip,
    "date": str,  # times are ISO 8601, and compare as texts
    "datetime": str,
}
_NAMES = frozenset({"name", "source", "destination"})  # compared as entities, under all their names
_FOLDS: Mapping[str, Callable[[str], Any]] = {"type": str.casefold, "relationship": fold_label}
"""Properties that are compared without case and spacing, as in the graph itself."""


def _fold(value: Any, fold: Callable[[str], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_fold(one, fold) for one in value)
    return fold(value) if isinstance(value, str) else value


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _format_time(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _format_day(ordinal: int) -> str | None:
    return date.fromordinal(ordinal).isoformat() if ordinal else None
