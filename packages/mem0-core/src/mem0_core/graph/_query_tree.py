"""Syntax tree of the query language; the text of a tree reads back as the same tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Literal

from mem0_core._system.records import dataclass

Value = str | int | float | bool | None
Direction = Literal["->", "<-", "-"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; `position` is where the query mentions it."""

    name: str
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return _quote_name(self.name)


@dataclass(frozen=True, slots=True)
class Property:
    """Property `name` of the variable `owner`."""

    owner: str
    name: str
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{_quote_name(self.owner)}.{_quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value, or a list of values."""

    value: Value | tuple[Value, ...]
    position: int = 0

    def __str__(self) -> str:
        return (
            f"[{', '.join(map(_format_value, self.value))}]"
            if isinstance(self.value, tuple)
            else _format_value(self.value)
        )

    def __eq__(self, other: object) -> bool:  # 1, 1.0 and true are equal in Python, but not in a query
        return isinstance(other, Constant) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one match, ``toLower(a.name)``; `function` is spelled as in the documentation."""

    function: str
    arguments: tuple[Operand, ...]
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of a group of matches, ``count(DISTINCT a.name)``; `operand` is None for ``count(*)``."""

    function: str = "count"
    operand: Operand | None = None
    distinct: bool = False
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        inner = "*" if self.operand is None else str(self.operand)
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inner})"


Operand = Variable | Property | Constant | Call
Returned = Variable | Property | Call | Aggregate
"""Value of a column, or of a key of ORDER BY."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; `operator` is one of = <> < <= > >= IN CONTAINS STARTS WITH ENDS WITH."""

    left: Operand
    operator: str
    right: Operand

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class IsNull:
    """``IS NULL``, or ``IS NOT NULL`` if negated."""

    operand: Operand
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.operand} IS {'NOT ' if self.negated else ''}NULL"


@dataclass(frozen=True, slots=True)
class Similar:
    """Condition that the vector of a node or relation has at least a certain cosine to that of a text.

    `threshold` is None for the default.
    """

    variable: str
    text: str
    threshold: float | None = None
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        threshold = "" if self.threshold is None else f", {_format_value(self.threshold)}"
        return f"SIMILAR({_quote_name(self.variable)}, {_format_value(self.text)}{threshold})"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation of a condition."""

    part: Expression

    def __str__(self) -> str:
        return f"NOT {_parenthesize(self.part)}"


@dataclass(frozen=True, slots=True)
class And:
    """Two or more parts joined by AND."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(map(_parenthesize, self.parts))


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more parts joined by OR."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(map(_parenthesize, self.parts))


Expression = Compare | IsNull | Similar | Not | And | Or
Part = Expression | Operand | Aggregate


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A node of a pattern."""

    variable: str | None = None
    label: str | None = None
    properties: tuple[tuple[str, Constant], ...] = ()
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        label = f":{_quote_name(self.label)}" if self.label is not None else ""
        return f"({_join_head(self.variable, label, _format_properties(self.properties))})"


@dataclass(frozen=True, slots=True)
class RelationPattern:
    """A relation between two nodes of a pattern; `hops` is the range of its length, None for exactly one."""

    variable: str | None = None
    labels: tuple[str, ...] = ()
    hops: tuple[int, int] | None = None
    properties: tuple[tuple[str, Constant], ...] = ()
    direction: Direction = "->"
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        labels = f":{'|'.join(map(_quote_name, self.labels))}" if self.labels else ""
        hops = f"*{self.hops[0]}..{self.hops[1]}" if self.hops else ""
        inner = _join_head(self.variable, labels + hops, _format_properties(self.properties))
        left, right = {"->": ("-", "->"), "<-": ("<-", "-"), "-": ("-", "-")}[self.direction]
        return f"{left}[{inner}]{right}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A chain of nodes, with a relation between each and the next; `variable` names the path that matches it."""

    nodes: tuple[NodePattern, ...]
    relations: tuple[RelationPattern, ...] = ()
    variable: str | None = None
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        head = "" if self.variable is None else f"{_quote_name(self.variable)} = "
        pairs = zip(self.relations, self.nodes[1:], strict=True)
        return f"{head}{self.nodes[0]}" + "".join(f"{relation}{node}" for relation, node in pairs)


@dataclass(frozen=True, slots=True)
class Match:
    """One MATCH and its WHERE; no relation occurs twice in one row of it."""

    patterns: tuple[Pattern, ...]
    where: Expression | None = None

    def __str__(self) -> str:
        where = "" if self.where is None else f" WHERE {self.where}"
        return f"MATCH {', '.join(map(str, self.patterns))}{where}"


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result, with its name."""

    value: Returned
    alias: str | None = None

    @property
    def column(self) -> str:
        return self.alias if self.alias is not None else str(self.value)

    def __str__(self) -> str:
        return str(self.value) if self.alias is None else f"{self.value} AS {_quote_name(self.alias)}"


@dataclass(frozen=True, slots=True)
class Order:
    """A key of ORDER BY."""

    value: Returned
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.value} DESC" if self.descending else str(self.value)


@dataclass(frozen=True, slots=True)
class Query:
    """A query; `items` is None without a RETURN, and empty for ``RETURN *``."""

    matches: tuple[Match, ...]
    items: tuple[Item, ...] | None = ()
    distinct: bool = False
    order: tuple[Order, ...] = ()
    skip: int = 0
    limit: int | None = None
    as_of: str | None = None
    explain: bool = False

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Patterns of all MATCH clauses."""
        return tuple(pattern for match in self.matches for pattern in match.patterns)

    @property
    def where(self) -> Expression | None:
        """The conditions of all WHERE clauses together."""
        conditions = [match.where for match in self.matches if match.where is not None]
        parts = [part for one in conditions for part in (one.parts if isinstance(one, And) else (one,))]
        return And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None

    def __str__(self) -> str:
        parts = ["EXPLAIN"] if self.explain else []
        parts += map(str, self.matches)
        if self.items is not None:
            parts += ["RETURN DISTINCT" if self.distinct else "RETURN", ", ".join(map(str, self.items)) or "*"]
        parts += ["ORDER BY", ", ".join(map(str, self.order))] if self.order else []
        parts += [f"SKIP {self.skip}"] if self.skip else []
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"AS OF {_format_value(self.as_of)}"] if self.as_of is not None else []
        return " ".join(parts)


def iter_parts(part: Part | None) -> Iterator[Part]:
    """Yield a part of a query and all parts in it, in the order of the text."""
    if part is None:
        return
    yield part
    for child in children_of(part):
        yield from iter_parts(child)


def children_of(part: Part) -> tuple[Part, ...]:
    """Return the parts that a part of a query is made of."""
    match part:
        case Compare(left, _, right):
            return (left, right)
        case IsNull(operand):
            return (operand,)
        case Aggregate(_, inner):
            return () if inner is None else (inner,)
        case Not(negated):
            return (negated,)
        case And(parts) | Or(parts):
            return parts
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def iter_variables(part: Part | None) -> Iterator[tuple[str, int]]:
    """Yield the variables that a part of a query mentions, each with its position."""
    for one in iter_parts(part):
        match one:
            case Variable(name, position) | Property(name, _, position) | Similar(name, _, _, position):
                yield name, position


# --- text -----------------------------------------------------------------------------------------------------

_KEYWORD_LIST = """
EXPLAIN MATCH WHERE RETURN DISTINCT ORDER BY SKIP LIMIT AS AND OR NOT IN CONTAINS STARTS ENDS WITH IS NULL TRUE FALSE
SIMILAR TO ASC DESC
"""
KEYWORDS = frozenset(_KEYWORD_LIST.split())
_RESERVED = frozenset({"of", *(keyword.lower() for keyword in KEYWORDS)})
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quote_name(name: str) -> str:
    plain = _PLAIN_NAME.fullmatch(name) and name.casefold() not in _RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def _format_value(value: Value) -> str:
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(sign, sign) for sign in value) + "'"
    return (
        {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)
    )


def _format_properties(properties: tuple[tuple[str, Constant], ...]) -> str:
    return "{" + ", ".join(f"{_quote_name(name)}: {value}" for name, value in properties) + "}" if properties else ""


def _join_head(variable: str | None, label: str, properties: str) -> str:
    head = ("" if variable is None else _quote_name(variable)) + label
    return f"{head} {properties}" if head and properties else head + properties


def _parenthesize(part: Expression) -> str:
    return f"({part})" if isinstance(part, And | Or) else str(part)
