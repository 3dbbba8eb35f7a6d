"""Check a parsed query of the graph: its variables, their properties, its order and its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import NoReturn

from mem0_core._system.records import dataclass
from mem0_core.errors import QueryError
from mem0_core.graph._query_functions import FUNCTIONS, Kind, suggest
from mem0_core.graph._query_tree import (
    Aggregate,
    Call,
    Item,
    Match,
    NodePattern,
    Operand,
    Order,
    Part,
    Property,
    Query,
    RelationPattern,
    Similar,
    Variable,
    iter_parts,
    iter_variables,
)

MAX_ROWS = 10_000
"""Maximum LIMIT of a query."""
DEFAULT_SIMILARITY = 0.4
"""Threshold of a SIMILAR without one; unrelated texts have lower cosines."""

_NODE_PROPERTIES = ("name", "type", "component")
_RELATION_PROPERTIES = (
    "relationship",
    "type",  # the relationship by its name in Cypher
    "source",
    "destination",
    "weight",
    "valid_from",
    "valid_to",
    "date",
    "time_window",
)


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that makes sense, with the kind of each of its variables."""

    tree: Query
    kinds: Mapping[str, Kind]

    @property
    def similar_keys(self) -> set[tuple[str, str, float]]:
        """Keys of `query_engine.Near` that the query needs."""
        return {self.similar_key(one) for one in iter_parts(self.tree.where) if isinstance(one, Similar)}

    def similar_key(self, similar: Similar) -> tuple[str, str, float]:
        """Return the key of `query_engine.Near` for one SIMILAR."""
        threshold = DEFAULT_SIMILARITY if similar.threshold is None else similar.threshold
        return self.kinds[similar.variable], similar.text, threshold

    @property
    def items(self) -> tuple[Item, ...]:
        """Columns of the result: for ``RETURN *`` all variables, without RETURN the same with relations first."""
        if self.tree.items:
            return self.tree.items
        names = list(self.kinds)
        if self.tree.items is None:
            names.sort(key=lambda name: self.kinds[name] not in ("relation", "relations"))
        return tuple(Item(Variable(name)) for name in names)


def check(query: Query) -> CheckedQuery:
    """Check a query.

    Raises:
        QueryError: a variable has two kinds, is in no pattern or has no such property; a function does not take its
            argument; or ORDER BY or LIMIT makes no sense.
    """
    if query.items is None:
        query = _name_unnamed_parts(query)
    kinds = _check_variables(query)
    _check_properties(query, kinds)
    for part in iter_parts(query.where):
        if isinstance(part, Similar) and kinds[part.variable] not in ("node", "relation"):
            _refuse(query, "SIMILAR compares one node or one relation, not several in a row", part.position)
    _check_order(query)
    if query.limit is not None and query.limit > MAX_ROWS:
        _refuse(query, f"LIMIT {query.limit}: at most {MAX_ROWS:,} rows are returned")
    columns = [item.column for item in query.items or ()]
    if len(set(columns)) < len(columns):
        _refuse(query, "two columns have one name; rename one with AS")
    if not query.items and not kinds:
        _refuse(query, "RETURN * needs a pattern with a variable, such as MATCH (a)")
    return CheckedQuery(query, kinds)


def _name_unnamed_parts(query: Query) -> Query:
    """Return a query without RETURN whose relations all have a variable; its nodes, if there are no relations."""
    patterns = query.patterns
    used = {name for name, _, _ in _iter_declared(query)}
    has_relations = any(pattern.relations for pattern in patterns)
    stem = "relation" if has_relations else "node"
    free = (name for number in count(1) if (name := f"{stem}{number if number > 1 else ''}") not in used)
    matches: list[Match] = []
    for match in query.matches:
        named = []
        for pattern in match.patterns:
            relations = tuple(replace(one, variable=one.variable or next(free)) for one in pattern.relations)
            nodes = pattern.nodes
            if not has_relations:
                nodes = tuple(replace(one, variable=one.variable or next(free)) for one in nodes)
            named.append(replace(pattern, nodes=nodes, relations=relations))
        matches.append(replace(match, patterns=tuple(named)))
    return replace(query, matches=tuple(matches))


def _check_variables(query: Query) -> dict[str, Kind]:
    """Return the kind of each variable, in the order of the query."""
    kinds: dict[str, Kind] = {}
    first_positions: dict[str, int] = {}
    for name, kind, position in _iter_declared(query):
        if kinds.setdefault(name, kind) != kind:
            _refuse(query, f"{name!r} stands for a {kinds[name]} already", position)
        if name in first_positions and kind != "node":
            first = first_positions[name]
            plural = {"path": "paths"}.get(kind, "relations")
            _refuse(query, f"{name!r} stands for two {plural}; give one of them another name", first)
        first_positions.setdefault(name, position)
    aliases = {item.alias for item in query.items or () if item.alias is not None}
    for part, in_order in _iter_mentions(query):
        for name, position in iter_variables(part):
            if name not in kinds and not (in_order and name in aliases and isinstance(part, Variable)):
                _refuse(query, f"{name!r} is in no pattern; there are {', '.join(sorted(kinds)) or 'none'}", position)
    return kinds


def _check_properties(query: Query, kinds: Mapping[str, Kind]) -> None:
    for pattern in query.patterns:
        parts: list[NodePattern | RelationPattern] = [*pattern.nodes, *pattern.relations]
        for part in parts:
            for name, _ in part.properties:
                kind: Kind = "node" if isinstance(part, NodePattern) else "relation"
                _check_property(query, kind, name, part.position)
    for mention, _ in _iter_mentions(query):
        for one in iter_parts(mention):
            if isinstance(one, Property):
                _check_property(query, kinds[one.owner], one.name, one.position)
            elif isinstance(one, Call):
                _check_call(query, kinds, one)
            elif isinstance(one, Aggregate) and one.function in ("min", "max", "sum", "avg"):
                _check_plain_value(query, kinds, one)


def _check_property(query: Query, kind: Kind, name: str, position: int) -> None:
    if kind not in ("node", "relation"):
        several = "a path has" if kind == "path" else "several relations in a row have"
        _refuse(query, f"{several} no properties; count them, or return them", position)
    known = _NODE_PROPERTIES if kind == "node" else _RELATION_PROPERTIES
    if name not in known:
        meant = suggest(name, known)
        hint = f" ({meant})" if meant.startswith("did") else ""
        _refuse(query, f"a {kind} has no property {name!r}; it has {', '.join(known)}{hint}", position)


def _check_call(query: Query, kinds: Mapping[str, Kind], call: Call) -> None:
    """Refuse a function whose arguments are of another kind."""
    function = FUNCTIONS[call.function.casefold()]
    for argument in call.arguments:
        kind = _kind_of(argument, kinds)
        if kind not in function.takes:
            accepted = " or ".join(sorted(function.takes))
            message = f"{call} gets a {kind} and takes a {accepted}: {function.example}"
            _refuse(query, message, call.position)


def _check_plain_value(query: Query, kinds: Mapping[str, Kind], aggregate: Aggregate) -> None:
    operand = aggregate.operand
    if operand is not None and _kind_of(operand, kinds) != "value":
        message = f"{aggregate} needs a value: {aggregate.function}({operand}.name) or {aggregate.function}(r.weight)"
        _refuse(query, message, aggregate.position)


def _kind_of(operand: Operand, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of an operand's value."""
    match operand:
        case Variable(name):
            return kinds[name]
        case Call(function):
            return FUNCTIONS[function.casefold()].gives
        case _:
            return "value"


def _check_order(query: Query) -> None:
    """Check ORDER BY: with counts or DISTINCT a row joins several matches, so only its own columns can order it."""
    items = query.items or ()
    is_joined = query.distinct or any(isinstance(item.value, Aggregate) for item in items)
    for order in query.order:
        needs_column = is_joined or isinstance(order.value, Aggregate)
        if needs_column and not any(is_sorted_by(order, item) for item in items):
            position = getattr(order.value, "position", 0)
            _refuse(query, f"ORDER BY {order.value} is not among the returned columns", position)


def is_sorted_by(order: Order, item: Item) -> bool:
    """Return True if a key of ORDER BY is this column."""
    by_alias = isinstance(order.value, Variable) and order.value.name == item.alias
    return by_alias or order.value == item.value


def _iter_declared(query: Query) -> Iterator[tuple[str, Kind, int]]:
    """Yield the variables of the patterns, each with its kind and position."""
    for pattern in query.patterns:
        if pattern.variable is not None:
            yield pattern.variable, "path", pattern.position
        for node in pattern.nodes:
            if node.variable is not None:
                yield node.variable, "node", node.position
        for relation in pattern.relations:
            if relation.variable is not None:
                yield relation.variable, "relation" if relation.hops is None else "relations", relation.position


def _iter_mentions(query: Query) -> Iterator[tuple[Part | None, bool]]:
    """Yield the condition, the columns and the keys of ORDER BY; True for the keys."""
    yield query.where, False
    for item in query.items or ():
        yield item.value, False
    for order in query.order:
        yield order.value, True


def _refuse(query: Query, message: str, position: int = 0) -> NoReturn:
    where = f" at position {position}" if position else ""
    raise QueryError(f"{message}{where}", query=str(query), position=position)
