"""Check a parsed query of the graph: its variables, their properties, its order and its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from mem0_core.errors import QueryError
from mem0_core.graph._query_tree import (
    Count,
    Item,
    NodePattern,
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

Kind = Literal["node", "relation", "relations"]
"""Value of a variable: a node, a relation, or the relations of a pattern of variable length."""

_NODE_PROPERTIES = ("name", "type", "component")
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
class CheckedQuery:
    """A query that makes sense, with the kind of each of its variables."""

    tree: Query
    kinds: Mapping[str, Kind]

    @property
    def similar_keys(self) -> set[tuple[str, str, float]]:
        """Keys of `query_engine.Near` that the query needs."""
        parts = iter_parts(self.tree.where)
        return {(self.kinds[one.variable], one.text, one.threshold) for one in parts if isinstance(one, Similar)}

    @property
    def items(self) -> tuple[Item, ...]:
        """Columns of the result; for ``RETURN *`` all variables."""
        return self.tree.items or tuple(Item(Variable(name)) for name in self.kinds)


def check(query: Query) -> CheckedQuery:
    """Check a query.

    Raises:
        QueryError: a variable has two kinds, is in no pattern or has no such property; or ORDER BY or LIMIT makes no
            sense.
    """
    kinds = _check_variables(query)
    _check_properties(query, kinds)
    for part in iter_parts(query.where):
        if isinstance(part, Similar) and kinds[part.variable] == "relations":
            _refuse(query, "SIMILAR compares one node or one relation, not several in a row", part.position)
    _check_order(query)
    if query.limit is not None and query.limit > MAX_ROWS:
        _refuse(query, f"LIMIT {query.limit}: at most {MAX_ROWS:,} rows are returned")
    columns = [item.column for item in query.items]
    if len(set(columns)) < len(columns):
        _refuse(query, "two columns have one name; rename one with AS")
    if not query.items and not kinds:
        _refuse(query, "RETURN * needs a pattern with a variable")
    return CheckedQuery(query, kinds)


def _check_variables(query: Query) -> dict[str, Kind]:
    """Return the kind of each variable, in the order of the query."""
    kinds: dict[str, Kind] = {}
    first_positions: dict[str, int] = {}
    for name, kind, position in _iter_declared(query):
        if kinds.setdefault(name, kind) != kind:
            _refuse(query, f"{name!r} stands for a {kinds[name]} already", position)
        if name in first_positions and kind != "node":
            first = first_positions[name]
            _refuse(query, f"{name!r} stands for two relations; a relation stands once in a pattern", first)
        first_positions.setdefault(name, position)
    aliases = {item.alias for item in query.items if item.alias is not None}
    for part, in_order in _iter_mentions(query):
        for name, position in iter_variables(part):
            if name not in kinds and not (in_order and name in aliases and isinstance(part, Variable)):
                known = ", ".join(sorted(kinds)) or "none"
                _refuse(query, f"{name!r} is in no pattern; there are {known}", position)
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


def _check_property(query: Query, kind: Kind, name: str, position: int) -> None:
    if kind == "relations":
        _refuse(query, "several relations in a row have no properties; count them, or return them", position)
    known = _NODE_PROPERTIES if kind == "node" else _RELATION_PROPERTIES
    if name not in known:
        _refuse(query, f"a {kind} has no property {name!r}; it has {', '.join(known)}", position)


def _check_order(query: Query) -> None:
    """Check ORDER BY: with counts or DISTINCT a row joins several matches, so only its own columns can order it."""
    is_joined = query.distinct or any(isinstance(item.value, Count) for item in query.items)
    for order in query.order:
        needs_column = is_joined or isinstance(order.value, Count)
        if needs_column and not any(is_sorted_by(order, item) for item in query.items):
            position = getattr(order.value, "position", 0)
            _refuse(query, f"ORDER BY {order.value} is not among the returned columns", position)


def is_sorted_by(order: Order, item: Item) -> bool:
    """Return True if a key of ORDER BY is this column."""
    by_alias = isinstance(order.value, Variable) and order.value.name == item.alias
    return by_alias or order.value == item.value


def _iter_declared(query: Query) -> Iterator[tuple[str, Kind, int]]:
    """Yield the variables of the patterns, each with its kind and position."""
    for pattern in query.patterns:
        for node in pattern.nodes:
            if node.variable is not None:
                yield node.variable, "node", node.position
        for relation in pattern.relations:
            if relation.variable is not None:
                yield relation.variable, "relation" if relation.hops is None else "relations", relation.position


def _iter_mentions(query: Query) -> Iterator[tuple[Part | None, bool]]:
    """Yield the condition, the columns and the keys of ORDER BY; True for the keys."""
    yield query.where, False
    for item in query.items:
        yield item.value, False
    for order in query.order:
        yield order.value, True


def _refuse(query: Query, message: str, position: int = 0) -> NoReturn:
    where = f" at position {position}" if position else ""
    raise QueryError(f"{message}{where}", query=str(query), position=position)
