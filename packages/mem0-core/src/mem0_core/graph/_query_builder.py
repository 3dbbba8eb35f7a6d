"""Build the syntax tree of a graph query from the rules that the parser has found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from mem0_core._system.records import dataclass
from mem0_core.errors import QueryError
from mem0_core.graph._query_functions import AGGREGATES, FUNCTIONS, suggest
from mem0_core.graph._query_tree import (
    Aggregate,
    And,
    Call,
    Compare,
    Constant,
    Direction,
    Expression,
    IsNull,
    Item,
    Match,
    NodePattern,
    Not,
    Operand,
    Or,
    Order,
    Pattern,
    Property,
    Query,
    RelationPattern,
    Similar,
    Value,
    Variable,
)

MAX_HOPS = 8
"""Maximum number of relations in a pattern of variable length."""
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
T = TypeVar("T")

_Children = list[Any]
"""Children of a rule: lark's tokens, which are strings, and the results of the rules in it."""


class TreeBuilder:
    """Builds the syntax tree: lark calls the method of each rule with the results of the rules in it."""

    __visit_tokens__ = False

    def __init__(self, parameters: Mapping[str, Value | tuple[Value, ...]]) -> None:
        self._parameters = parameters

    def name(self, children: _Children) -> Variable:
        (token,) = children
        plain = str(token) if token.type == "NAME" else str(token)[1:-1].replace("``", "`")
        return Variable(plain, token.start_pos)

    def literal(self, children: _Children) -> Constant:
        (token,) = children
        position = token.start_pos
        match token.type:
            case "STRING":
                return Constant(_parse_text(token), position)
            case "NUMBER":
                return Constant(_parse_number(token), position)
            case "PARAMETER":
                return Constant(self._parameter(token), position)
            case kind:
                return Constant({"TRUE": True, "FALSE": False, "NULL": None}[kind], position)

    def _parameter(self, token: Any) -> Value | tuple[Value, ...]:
        """Return the value of a parameter."""
        name = str(token)[1:]
        if name not in self._parameters:
            given = ", ".join(map(repr, self._parameters)) or "none"
            message = f"no value for ${name}; pass parameters={{{name!r}: ...}} (there are {given})"
            raise QueryError(message, position=token.start_pos)
        return self._parameters[name]

    def constants(self, children: _Children) -> Constant:
        literals = [child for child in children if child is not None]
        for one in literals:
            _check_single(one, "a list in a list")
        return Constant(tuple(one.value for one in literals))

    def owned(self, children: _Children) -> Property:
        owner, name = children
        return Property(owner.name, name.name, owner.position)

    def variable(self, children: _Children) -> Variable:
        return children[0]  # type: ignore[no-any-return]

    def operand(self, children: _Children) -> Operand:
        return children[0]  # type: ignore[no-any-return]

    def compare(self, children: _Children) -> Compare:
        left, *tokens, right = children
        operator = " ".join(str(token).upper() for token in tokens)
        _check_operands(left, right)
        if operator == "IN" and not (isinstance(right, Call) or isinstance(getattr(right, "value", None), tuple)):
            raise QueryError("IN needs a list, such as ['Anna', 'Eve']", position=right.position)
        return Compare(left, "<>" if operator == "!=" else operator, right)

    def isnull(self, children: _Children) -> IsNull:
        _check_operands(children[0])
        return IsNull(children[0], _has(children, "NOT"))

    def labeled(self, children: _Children) -> Compare:
        variable, label = children
        return Compare(Property(variable.name, "type", variable.position), "=", Constant(label.name, label.position))

    def similar(self, children: _Children) -> Similar:
        _, subject, text, threshold, sign, minimum = children
        if sign is not None and (sign not in {">", ">="} or threshold is not None):
            message = "a similarity has one threshold: SIMILAR(a, 'text', 0.5) or SIMILAR(a, 'text') >= 0.5"
            raise QueryError(message, position=sign.start_pos)
        if isinstance(subject, Constant):  # in the other order
            subject, text = text, subject
        return _build_similar(subject, text, minimum if threshold is None else threshold)

    def similar_infix(self, children: _Children) -> Similar:
        subject, *rest = children
        text, *threshold = _select(rest, Constant)
        return _build_similar(subject, text, threshold[0] if threshold else None)

    def call(self, children: _Children) -> Call | Aggregate:
        name, *rest = children
        arguments = tuple(child for child in rest if not isinstance(child, str))
        is_distinct, is_star = _has(rest, "DISTINCT"), _has(rest, "STAR")
        if name.name.casefold() in AGGREGATES:
            return _build_aggregate(name, arguments, is_distinct, is_star)
        function = FUNCTIONS.get(name.name.casefold())
        if function is None:
            known = (*AGGREGATES, *dict.fromkeys(one.name for one in FUNCTIONS.values()))
            message = f"there is no function {name.name!r}; {suggest(name.name, known)}"
            raise QueryError(message, position=name.position)
        low, high = function.arguments
        if is_star or is_distinct or not low <= len(arguments) <= high:
            message = f"{function.name} is written {function.example}, without * and DISTINCT"
            raise QueryError(message, position=name.position)
        _check_operands(*arguments)
        return Call(function.name, arguments, name.position)

    def negation(self, children: _Children) -> Not:
        return Not(children[1])

    def either(self, children: _Children) -> Expression:
        parts = [child for child in children if not isinstance(child, str)]
        flat = [one for part in parts for one in (part.parts if isinstance(part, Or) else (part,))]
        return flat[0] if len(flat) == 1 else Or(tuple(flat))

    def every(self, children: _Children) -> Expression:
        parts = [child for child in children if not isinstance(child, str)]
        flat = [one for part in parts for one in (part.parts if isinstance(part, And) else (part,))]
        return flat[0] if len(flat) == 1 else And(tuple(flat))

    def label(self, children: _Children) -> _Labels:
        return _Labels((children[0].name,))

    def labels(self, children: _Children) -> _Labels:
        return _Labels(tuple(child.name for child in children))

    def entry(self, children: _Children) -> tuple[str, Constant]:
        _check_single(children[1], "a list for one property; use WHERE with IN")
        return children[0].name, children[1]

    def mapping(self, children: _Children) -> _Properties:
        return _Properties(tuple(children))

    def node(self, children: _Children) -> NodePattern:
        parts = _collect_parts(children)
        label = parts["labels"][0] if parts["labels"] else None
        return NodePattern(parts["name"], label, parts["properties"], children[0].start_pos)

    def arrow_left(self, children: _Children) -> str:
        return children[0]  # type: ignore[no-any-return]

    arrow_right = plain_dash = arrow_left

    def hops_exactly(self, children: _Children) -> _Hops:
        exactly = int(str(children[1])[:9]) if len(children) > 1 else None
        return _check_hops(exactly or 1, MAX_HOPS if exactly is None else exactly, children[0].start_pos)

    def hops_between(self, children: _Children) -> _Hops:
        kinds = [token.type for token in children]
        low = int(str(children[1])[:9]) if kinds.index("RANGE") == 2 else 1
        high = int(str(children[-1])[:9]) if kinds[-1] == "INT" else MAX_HOPS
        return _check_hops(low, high, children[0].start_pos)

    def detail(self, children: _Children) -> dict[str, Any]:
        return _collect_parts(children)

    def relation(self, children: _Children) -> RelationPattern:
        left, *inner, right = children
        parts = inner[0] if inner else _collect_parts([])
        directions: Mapping[tuple[str, str], Direction] = {("-", "->"): "->", ("<-", "-"): "<-", ("-", "-"): "-"}
        direction = directions.get((str(left), str(right)))
        position = left.start_pos
        if direction is None:
            raise QueryError("a relation points one way, -[]-> or <-[]-, or is of either, -[]-", position=position)
        return RelationPattern(parts["name"], parts["labels"], parts["hops"], parts["properties"], direction, position)

    def path(self, children: _Children) -> _PathName:
        name, sign = children
        if sign != "=":
            raise QueryError("a path is named with =, such as p = (a)-[r]->(b)", position=sign.start_pos)
        return _PathName(name.name, name.position)

    def pattern(self, children: _Children) -> Pattern:
        nodes, relations = _select(children, NodePattern), _select(children, RelationPattern)
        path = children[0] if isinstance(children[0], _PathName) else _PathName(None, 0)
        return Pattern(nodes, relations, path.name, path.position)

    def match(self, children: _Children) -> Match:
        conditions = _select(children, _Clause)
        return Match(_select(children, Pattern), conditions[0].value if conditions else None)

    def alias(self, children: _Children) -> _Alias:
        return _Alias(children[1].name)

    def item(self, children: _Children) -> Item:
        return Item(children[0], children[1].name if len(children) > 1 else None)

    def sort(self, children: _Children) -> Order:
        return Order(children[0], _has(children, "DESC"))

    def where(self, children: _Children) -> _Clause:
        return _Clause("where", children[1])

    def order(self, children: _Children) -> _Clause:
        return _Clause("order", _select(children, Order))

    def skip(self, children: _Children) -> _Clause:
        return _Clause("skip", self._count(children[1], "SKIP"))

    def limit(self, children: _Children) -> _Clause:
        return _Clause("limit", self._count(children[1], "LIMIT"))

    def _count(self, token: Any, clause: str) -> int:
        """Return the number of rows of a clause."""
        value = int(str(token)[:18]) if token.type == "INT" else self._parameter(token)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise QueryError(f"{clause} needs a whole number of rows, not {value!r}", position=token.start_pos)
        return value

    def asof(self, children: _Children) -> _Clause:
        token = children[1]
        value = _parse_text(token) if token.type == "STRING" else self._parameter(token)
        if not isinstance(value, str):
            raise QueryError(f"AS OF needs a time such as '2025-03-01', not {value!r}", position=token.start_pos)
        return _Clause("as_of", value)

    def start(self, children: _Children) -> Query:
        clauses = {clause.name: clause.value for clause in _select(children, _Clause)}
        return Query(
            matches=_select(children, Match),
            items=_select(children, Item) if _has(children, "RETURN") else None,
            distinct=_has(children, "DISTINCT"),
            explain=_has(children, "EXPLAIN"),
            **clauses,
        )


def _build_similar(subject: Operand, text: Operand, threshold: Constant | None) -> Similar:
    """Return a similarity of a node (or its name) or a relation (or its relationship)."""
    owner = subject.name if isinstance(subject, Variable) else subject.owner if isinstance(subject, Property) else None
    if owner is None or (isinstance(subject, Property) and subject.name not in ("name", "relationship")):
        message = f"SIMILAR compares a node or a relation, such as SIMILAR(a, 'text'), not {subject}"
        raise QueryError(message, position=subject.position)
    if not isinstance(text, Constant) or not isinstance(text.value, str) or not text.value.strip():
        raise QueryError("SIMILAR needs a text to compare with", position=text.position)
    if threshold is None:
        return Similar(owner, text.value, None, subject.position)
    value = threshold.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1:
        raise QueryError("a threshold is a cosine, between -1 and 1", position=threshold.position)
    return Similar(owner, text.value, float(value), subject.position)


def _build_aggregate(name: Variable, arguments: tuple[Any, ...], is_distinct: bool, is_star: bool) -> Aggregate:
    function = name.name.casefold()
    if len(arguments) > 1 or (not arguments and not (is_star and function == "count")):
        example = "count(*) or count(DISTINCT a.name)" if function == "count" else f"{function}(r.weight)"
        raise QueryError(f"{function} is written {example}", position=name.position)
    _check_operands(*arguments)
    return Aggregate(function, arguments[0] if arguments else None, is_distinct, name.position)


def _check_operands(*operands: Any) -> None:
    """Refuse functions of a group where a value of one match is needed."""
    for operand in operands:
        if isinstance(operand, Aggregate):
            message = f"{operand} describes several matches; it can be a column of RETURN or a key of ORDER BY only"
            raise QueryError(message, position=operand.position)


def _check_single(constant: Constant, message: str) -> None:
    if isinstance(constant.value, tuple):
        raise QueryError(f"a parameter is {message}", position=constant.position)


@dataclass(frozen=True, slots=True)
class _PathName:
    """Variable of a path, None without one."""

    name: str | None
    position: int


@dataclass(frozen=True, slots=True)
class _Clause:
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Alias:
    name: str


class _Labels(tuple[str, ...]):
    """Labels of a node or relation."""


class _Properties(tuple[tuple[str, Constant], ...]):
    """Properties of a node or relation."""


class _Hops(tuple[int, int]):
    """Minimum and maximum number of relations in a row."""


def _select(children: _Children, kind: type[T]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def _has(children: _Children, terminal: str) -> bool:
    return any(isinstance(child, str) and getattr(child, "type", None) == terminal for child in children)


def _check_hops(low: int, high: int, position: int) -> _Hops:
    if not 1 <= low <= high <= MAX_HOPS:
        raise QueryError(f"*{low}..{high} must lie in *1..{MAX_HOPS}, the shorter first", position=position)
    return _Hops((low, high))


def _collect_parts(children: _Children) -> dict[str, Any]:
    """Return the contents of the brackets of a node or relation, by kind."""
    parts: dict[str, Any] = {"name": None, "labels": (), "properties": (), "hops": None}
    for child in children:
        match child:
            case _Labels():
                parts["labels"] = tuple(child)
            case _Properties():
                parts["properties"] = tuple(child)
            case _Hops():
                parts["hops"] = (child[0], child[1])
            case Variable(name):
                parts["name"] = name
    return parts


def _parse_text(token: Any) -> str:
    def unescape(match: re.Match[str]) -> str:
        sign = match.group(1)
        if sign not in _UNESCAPED:
            raise QueryError(
                f"\\{sign} is no escape in a text; there are \\\\ \\' \\\" \\n \\r \\t",
                position=token.start_pos + 1 + match.start(),
            )
        return _UNESCAPED[sign]

    return re.sub(r"\\(.)", unescape, str(token)[1:-1], flags=re.DOTALL)


def _parse_number(token: Any) -> int | float:
    text = str(token)
    value = int(text) if re.fullmatch(r"-?\d{1,18}", text) else float(text)
    if value in (float("inf"), float("-inf")):
        raise QueryError("a number is out of range", position=token.start_pos)
    return value
