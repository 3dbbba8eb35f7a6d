"""The query language of the graph: reading it into a tree, and writing a tree as text that reads the same.

::

    MATCH (a:person {name: 'Anna'})-[r:works_at|works_for]->(b), (b)<-[*1..3]-(c)
    WHERE r.weight > 1 AND (b.name STARTS WITH 'G' OR SIMILAR(b, 'an oil company', 0.5)) AND NOT c.name = 'Tom'
    RETURN DISTINCT a, b.name AS employer, count(*) ORDER BY employer DESC SKIP 5 LIMIT 10 AS OF '2025-03-01'

Keywords are of any case. A name that is a keyword, or holds other signs than letters, digits and _, stands in
`backquotes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from mem0_core.errors import QueryError

if TYPE_CHECKING:
    from lark import Lark

__all__ = [
    "DEEPEST",
    "All",
    "Any_",
    "Compare",
    "Count",
    "Direction",
    "Expression",
    "IsNull",
    "Item",
    "Literal_",
    "NodePattern",
    "Not",
    "Operand",
    "Order",
    "Pattern",
    "Property",
    "Query",
    "RelationPattern",
    "Similar",
    "Value",
    "Variable",
    "parse",
    "variables_of",
]

DEEPEST = 8
"""Relations that a pattern of variable length may have at most."""
_LONGEST = 20_000  # characters of a query
_NESTED = 40  # levels of AND, OR and NOT

Value = str | int | float | bool | None
Direction = Literal["->", "<-", "-"]


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    at: int = field(default=0, compare=False)
    """Position in the query."""

    def __str__(self) -> str:
        return _name(self.name)


@dataclass(frozen=True, slots=True)
class Property:
    of: str
    name: str
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{_name(self.of)}.{_name(self.name)}"


@dataclass(frozen=True, slots=True)
class Literal_:
    """A value, or a list of them."""

    value: Value | tuple[Value, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(_value, self.value))}]" if isinstance(self.value, tuple) else _value(self.value)

    def __eq__(self, other: object) -> bool:  # 1, 1.0 and true are three things to write
        return isinstance(other, Literal_) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True, slots=True)
class Count:
    """``count(*)``, ``count(a)``, ``count(DISTINCT a.name)``: `of` is None for ``*``."""

    of: Variable | Property | None = None
    distinct: bool = False

    def __str__(self) -> str:
        return f"count({'DISTINCT ' if self.distinct else ''}{'*' if self.of is None else self.of})"


Operand = Variable | Property | Literal_


@dataclass(frozen=True, slots=True)
class Compare:
    left: Operand
    sign: str
    """One of = <> < <= > >= IN CONTAINS STARTS WITH ENDS WITH."""
    right: Operand

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class IsNull:
    of: Operand
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.of} IS {'NOT ' if self.negated else ''}NULL"


@dataclass(frozen=True, slots=True)
class Similar:
    """Whether the vector of a node or relation has at least this cosine to that of a text."""

    of: str
    text: str
    threshold: float
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"SIMILAR({_name(self.of)}, {_value(self.text)}, {_value(self.threshold)})"


@dataclass(frozen=True, slots=True)
class Not:
    part: Expression

    def __str__(self) -> str:
        return f"NOT {_grouped(self.part)}"


@dataclass(frozen=True, slots=True)
class All:
    """Two or more parts joined by AND."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(map(_grouped, self.parts))


@dataclass(frozen=True, slots=True)
class Any_:
    """Two or more parts joined by OR."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(map(_grouped, self.parts))


Expression = Compare | IsNull | Similar | Not | All | Any_


@dataclass(frozen=True, slots=True)
class NodePattern:
    variable: str | None = None
    label: str | None = None
    properties: tuple[tuple[str, Literal_], ...] = ()
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        label = f":{_name(self.label)}" if self.label is not None else ""
        return f"({_head(self.variable, label, _map(self.properties))})"


@dataclass(frozen=True, slots=True)
class RelationPattern:
    """A relation between two nodes of a pattern; `hops` are how many there may be in a row, None for exactly one."""

    variable: str | None = None
    labels: tuple[str, ...] = ()
    hops: tuple[int, int] | None = None
    properties: tuple[tuple[str, Literal_], ...] = ()
    direction: Direction = "->"
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        labels = f":{'|'.join(map(_name, self.labels))}" if self.labels else ""
        hops = f"*{self.hops[0]}..{self.hops[1]}" if self.hops else ""
        inner = _head(self.variable, labels + hops, _map(self.properties))
        left, right = {"->": ("-", "->"), "<-": ("<-", "-"), "-": ("-", "-")}[self.direction]
        return f"{left}[{inner}]{right}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Nodes, and the relations between each and the next."""

    nodes: tuple[NodePattern, ...]
    relations: tuple[RelationPattern, ...] = ()

    def __str__(self) -> str:
        pairs = zip(self.relations, self.nodes[1:], strict=True)
        return str(self.nodes[0]) + "".join(f"{relation}{node}" for relation, node in pairs)


@dataclass(frozen=True, slots=True)
class Item:
    """What is returned, and under which name."""

    of: Variable | Property | Count
    alias: str | None = None

    @property
    def column(self) -> str:
        return self.alias if self.alias is not None else str(self.of)

    def __str__(self) -> str:
        return str(self.of) if self.alias is None else f"{self.of} AS {_name(self.alias)}"


@dataclass(frozen=True, slots=True)
class Order:
    of: Variable | Property | Count
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.of} DESC" if self.descending else str(self.of)


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query; no `items` means ``RETURN *``."""

    patterns: tuple[Pattern, ...]
    where: Expression | None = None
    items: tuple[Item, ...] = ()
    distinct: bool = False
    order: tuple[Order, ...] = ()
    skip: int = 0
    limit: int | None = None
    as_of: str | None = None
    explain: bool = False

    def __str__(self) -> str:
        parts = ["EXPLAIN"] if self.explain else []
        parts += ["MATCH", ", ".join(map(str, self.patterns))]
        parts += ["WHERE", str(self.where)] if self.where is not None else []
        parts += ["RETURN DISTINCT" if self.distinct else "RETURN", ", ".join(map(str, self.items)) or "*"]
        parts += ["ORDER BY", ", ".join(map(str, self.order))] if self.order else []
        parts += [f"SKIP {self.skip}"] if self.skip else []
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"AS OF {_value(self.as_of)}"] if self.as_of is not None else []
        return " ".join(parts)


def variables_of(part: Expression | Operand | Count | None) -> Iterator[tuple[str, int]]:
    """The variables that a part of a query speaks of, each with its position."""
    match part:
        case Variable(name, at) | Property(name, _, at) | Similar(name, _, _, at):
            yield name, at
        case Compare(left, _, right):
            yield from variables_of(left)
            yield from variables_of(right)
        case IsNull(of) | Count(of):
            yield from variables_of(of)
        case Not(inner):
            yield from variables_of(inner)
        case All(parts) | Any_(parts):
            for one in parts:
                yield from variables_of(one)
        case _:
            pass


# --- writing -----------------------------------------------------------------------------------------------------

_TERMINALS = (
    *("EXPLAIN", "MATCH", "WHERE", "RETURN", "DISTINCT", "ORDER", "BY", "SKIP", "LIMIT", "AS", "AND", "OR", "NOT"),
    *(
        "IN",
        "CONTAINS",
        "STARTS",
        "ENDS",
        "WITH",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "SIMILAR",
        "COUNT",
        "ASC",
        "DESC",
    ),
)
_KEYWORDS = frozenset({"of", *(keyword.lower() for keyword in _TERMINALS)})
_PLAIN = re.compile(r"[^\W\d]\w*")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def _name(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.casefold() not in _KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _value(value: Value) -> str:
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(sign, sign) for sign in value) + "'"
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else (repr(value))
    )


def _map(properties: tuple[tuple[str, Literal_], ...]) -> str:
    return "{" + ", ".join(f"{_name(name)}: {value}" for name, value in properties) + "}" if properties else ""


def _head(variable: str | None, label: str, properties: str) -> str:
    head = ("" if variable is None else _name(variable)) + label
    return f"{head} {properties}" if head and properties else head + properties


def _grouped(part: Expression) -> str:
    return f"({part})" if isinstance(part, All | Any_) else str(part)


# --- reading -----------------------------------------------------------------------------------------------------

_GRAMMAR = r"""
start: EXPLAIN? MATCH _patterns where? RETURN DISTINCT? _items order? skip? limit? asof?
_patterns: pattern ("," pattern)*
pattern: node (relation node)*
node: LPAR name? label? mapping? ")"
label: ":" name
relation: dash detail? dash
dash: ARROW_LEFT -> arrow_left | ARROW_RIGHT -> arrow_right | DASH -> plain_dash
detail: "[" name? labels? hops? mapping? "]"
labels: ":" name ("|" name)*
hops: STAR INT? RANGE INT? -> hops_between
    | STAR INT? -> hops_exactly
mapping: "{" entry ("," entry)* "}"
entry: name ":" literal
where: WHERE _expression
_expression: either
either: every (OR every)*
every: _unary (AND _unary)*
_unary: negation | _atom
negation: NOT _unary
_atom: "(" either ")" | compare | isnull | similar
compare: operand SIGN operand | operand IN listed | operand CONTAINS operand | operand STARTS WITH operand
    | operand ENDS WITH operand
isnull: operand IS NOT? NULL
similar: SIMILAR "(" name "," STRING "," NUMBER ")"
operand: owned | variable | literal
owned: name "." name
variable: name
literal: STRING | NUMBER | TRUE | FALSE | NULL
listed: "[" [literal ("," literal)*] "]"
_items: STAR | item ("," item)*
item: (owned | variable | count) alias?
alias: AS name
count: COUNT "(" (STAR | DISTINCT? (owned | variable)) ")"
order: ORDER BY sort ("," sort)*
sort: (owned | variable | count) (ASC | DESC)?
skip: SKIP INT
limit: LIMIT INT
asof: AS_OF STRING
name: NAME | QUOTED

LPAR: "("
STAR: "*"
RANGE: ".."
ARROW_LEFT: "<-"
ARROW_RIGHT: "->"
DASH: "-"
SIGN: "=" | "<>" | "!=" | "<=" | ">=" | "<" | ">"
STRING: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/s
INT: /\d+/
NUMBER: /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/
QUOTED: /`(?:[^`]|``)+`/
NAME: /[^\W\d]\w*/
AS_OF.3: /as\s+of\b/i
%ignore /\s+/
"""
_SIGNS = """
LPAR ( RPAR ) LSQB [ RSQB ] LBRACE { RBRACE } COMMA , COLON : DOT . VBAR | STAR * RANGE .. ARROW_LEFT <- ARROW_RIGHT ->
DASH -
"""
_SHOWN = dict(zip(_SIGNS.split()[::2], _SIGNS.split()[1::2], strict=True))
_SHOWN |= {"SIGN": "= <> < <= > >=", "INT": "a whole number", "NUMBER": "a number", "$END": "the end of the query"}
_SHOWN |= {"NAME": "a name", "QUOTED": "a name", "STRING": "a 'text'", "AS_OF": "AS OF"}
_MOST_EXPECTED = 12  # what could stand somewhere is told where it is a help


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        QueryError: it cannot be read; says where, and what was expected there.
    """
    if not isinstance(text, str):
        raise QueryError(f"a query is a text, not {type(text).__name__}", query=text)
    if len(text) > _LONGEST:
        raise QueryError(f"the query has {len(text):,} characters; at most {_LONGEST:,} are read", query=text)
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

    try:
        query: Query = _parser().parse(text)  # type: ignore[assignment]
        _check_depth(query.where)
    except UnexpectedToken as error:
        at = len(text) if error.token.type == "$END" else (error.token.start_pos or 0)
        _refuse(text, at, _found(text, at), error.accepts or error.expected)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        _refuse(text, at, _found(text, at), error.allowed or set())
    except UnexpectedInput as error:
        _refuse(text, error.pos_in_stream or 0, "this", set())
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError):
            raise _placed(error.orig_exc, text) from error
        raise
    except QueryError as error:
        raise _placed(error, text) from error
    return query


def _check_depth(where: Expression | None) -> None:
    """Conditions are run and written by recursion; they are read without."""
    level: list[Expression] = [] if where is None else [where]
    for _ in range(_NESTED):
        level = [
            part
            for one in level
            if isinstance(one, Not | All | Any_)
            for part in ((one.part,) if isinstance(one, Not) else one.parts)
        ]
    if level:
        raise QueryError(f"the conditions are nested more than {_NESTED} levels deep")


def _found(text: str, at: int) -> str:
    word = re.match(r"\w+|\S", text[at:])
    return f"unexpected {word.group()[:40]!r}" if word else "the query ends here"


def _refuse(text: str, at: int, found: str, expected: set[str]) -> NoReturn:
    shown = sorted({_SHOWN.get(name, name) for name in expected})
    wanted = f"; expected {' or '.join(shown)}" if 0 < len(shown) <= _MOST_EXPECTED else ""
    raise QueryError(f"{found} at position {at}{wanted}: {_excerpt(text, at)}", query=text, position=at)


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - 30)
    before, after = text[start:at], text[at : at + 20]
    return f"{'...' if start else ''}{before}>>>{after}{'...' if at + 20 < len(text) else ''}"


def _placed(error: QueryError, text: str) -> QueryError:
    at = error.position or 0
    return QueryError(f"{error} at position {at}: {_excerpt(text, at)}", query=text, position=at)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    keywords = "\n".join(f"{name}.2: /{name.lower()}\\b/i" for name in _TERMINALS)
    return Lark(_GRAMMAR + keywords + "\n", parser="lalr", lexer="contextual", transformer=_builder())


def _builder() -> Any:
    """What makes the tree: lark calls a method for each rule as soon as it is read, so that nothing recurses."""
    from lark import Token, Transformer

    def of(children: _Children, kind: type) -> list[Any]:
        return [child for child in children if isinstance(child, kind) and not isinstance(child, Token)]

    def has(children: _Children, terminal: str) -> bool:
        return any(isinstance(child, Token) and child.type == terminal for child in children)

    class Builder(Transformer):  # type: ignore[type-arg]
        def name(self, children: _Children) -> Variable:
            (token,) = children
            plain = str(token) if token.type == "NAME" else str(token)[1:-1].replace("``", "`")
            return Variable(plain, token.start_pos)

        def literal(self, children: _Children) -> Literal_:
            (token,) = children
            if token.type == "STRING":
                return Literal_(_text(token))
            if token.type == "NUMBER":
                return Literal_(_number(token))
            return Literal_({"TRUE": True, "FALSE": False, "NULL": None}[token.type])

        def listed(self, children: _Children) -> Literal_:
            values = [child.value for child in children if child is not None]
            return Literal_(tuple(values))

        def owned(self, children: _Children) -> Property:
            owner, name = children
            return Property(owner.name, name.name, owner.at)

        def variable(self, children: _Children) -> Variable:
            return children[0]  # type: ignore[no-any-return]

        def operand(self, children: _Children) -> Operand:
            return children[0]  # type: ignore[no-any-return]

        def compare(self, children: _Children) -> Compare:
            left, *signs, right = children
            sign = " ".join(str(token).upper() for token in signs)
            return Compare(left, "<>" if sign == "!=" else sign, right)

        def isnull(self, children: _Children) -> IsNull:
            return IsNull(children[0], has(children, "NOT"))

        def similar(self, children: _Children) -> Similar:
            _, name, text, number = children
            threshold = float(_number(number))
            if not -1 <= threshold <= 1:
                raise QueryError("a threshold is a cosine, between -1 and 1", position=number.start_pos)
            words = _text(text)
            if not words.strip():
                raise QueryError("SIMILAR needs a text to compare with", position=text.start_pos)
            return Similar(name.name, words, threshold, name.at)

        def negation(self, children: _Children) -> Not:
            return Not(children[1])

        def either(self, children: _Children) -> Expression:
            parts = [child for child in children if not isinstance(child, Token)]
            flat = [one for part in parts for one in (part.parts if isinstance(part, Any_) else (part,))]
            return flat[0] if len(flat) == 1 else Any_(tuple(flat))

        def every(self, children: _Children) -> Expression:
            parts = [child for child in children if not isinstance(child, Token)]
            flat = [one for part in parts for one in (part.parts if isinstance(part, All) else (part,))]
            return flat[0] if len(flat) == 1 else All(tuple(flat))

        def label(self, children: _Children) -> _Label:
            return _Label((children[0].name,))

        def labels(self, children: _Children) -> _Label:
            return _Label(tuple(child.name for child in children))

        def entry(self, children: _Children) -> tuple[str, Literal_]:
            return children[0].name, children[1]

        def mapping(self, children: _Children) -> _Map:
            return _Map(tuple(children))

        def node(self, children: _Children) -> NodePattern:
            parts = _parts(children)
            label = parts["label"]
            return NodePattern(parts["name"], label[0] if label else None, parts["map"], children[0].start_pos)

        def arrow_left(self, children: _Children) -> Token:
            return children[0]  # type: ignore[no-any-return]

        arrow_right = plain_dash = arrow_left

        def hops_exactly(self, children: _Children) -> _Hops:
            exactly = int(str(children[1])[:9]) if len(children) > 1 else None
            return _hops(exactly or 1, DEEPEST if exactly is None else exactly, children[0].start_pos)

        def hops_between(self, children: _Children) -> _Hops:
            kinds = [token.type for token in children]
            middle = kinds.index("RANGE")
            low = int(str(children[1])[:9]) if middle == 2 else 1
            high = int(str(children[-1])[:9]) if kinds[-1] == "INT" else DEEPEST
            return _hops(low, high, children[0].start_pos)

        def detail(self, children: _Children) -> dict[str, Any]:
            return _parts(children)

        def relation(self, children: _Children) -> RelationPattern:
            left, *inner, right = children
            parts = inner[0] if inner else _parts([])
            directions: Mapping[tuple[str, str], Direction] = {("-", "->"): "->", ("<-", "-"): "<-", ("-", "-"): "-"}
            direction = directions.get((str(left), str(right)))
            if direction is None:
                raise QueryError(
                    "a relation points one way, -[]-> or <-[]-, or is of either, -[]-", position=left.start_pos
                )
            return RelationPattern(
                parts["name"], parts["label"], parts["hops"], parts["map"], direction, left.start_pos
            )

        def pattern(self, children: _Children) -> Pattern:
            return Pattern(tuple(of(children, NodePattern)), tuple(of(children, RelationPattern)))

        def count(self, children: _Children) -> Count:
            counted = next((child for child in children if not isinstance(child, Token)), None)
            return Count(counted, has(children, "DISTINCT"))

        def alias(self, children: _Children) -> _Alias:
            return _Alias(children[1].name)

        def item(self, children: _Children) -> Item:
            return Item(children[0], children[1].name if len(children) > 1 else None)

        def sort(self, children: _Children) -> Order:
            return Order(children[0], has(children, "DESC"))

        def where(self, children: _Children) -> _Clause:
            return _Clause("where", children[1])

        def order(self, children: _Children) -> _Clause:
            return _Clause("order", tuple(of(children, Order)))

        def skip(self, children: _Children) -> _Clause:
            return _Clause("skip", int(str(children[1])[:18]))

        def limit(self, children: _Children) -> _Clause:
            return _Clause("limit", int(str(children[1])[:18]))

        def asof(self, children: _Children) -> _Clause:
            return _Clause("as_of", _text(children[1]))

        def start(self, children: _Children) -> Query:
            clauses = {clause.kind: clause.value for clause in of(children, _Clause)}
            return Query(
                patterns=tuple(of(children, Pattern)),
                items=tuple(of(children, Item)),
                distinct=has(children, "DISTINCT"),
                explain=has(children, "EXPLAIN"),
                **clauses,
            )

    return Builder()


_Children = list[Any]
"""What a rule is made of: tokens, and what was made of the rules in it."""


@dataclass(frozen=True, slots=True)
class _Clause:
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Alias:
    name: str


class _Label(tuple[str, ...]):
    """The labels of a node or relation."""


class _Map(tuple[tuple[str, Literal_], ...]):
    """The properties of a node or relation."""


class _Hops(tuple[int, int]):
    """How many relations may stand in a row."""


def _hops(low: int, high: int, at: int) -> _Hops:
    if not 1 <= low <= high <= DEEPEST:
        raise QueryError(f"*{low}..{high} must lie in *1..{DEEPEST}, the shorter first", position=at)
    return _Hops((low, high))


def _parts(children: _Children) -> dict[str, Any]:
    """What stands in the brackets of a node or relation, by kind."""
    found: dict[str, Any] = {"name": None, "label": (), "map": (), "hops": None}
    for child in children:
        match child:
            case _Label():
                found["label"] = tuple(child)
            case _Map():
                found["map"] = tuple(child)
            case _Hops():
                found["hops"] = (child[0], child[1])
            case Variable(name):
                found["name"] = name
    return found


def _text(token: Any) -> str:
    def plain(match: re.Match[str]) -> str:
        sign = match.group(1)
        if sign not in _UNESCAPED:
            raise QueryError(
                f"\\{sign} is no escape in a text; there are \\\\ \\' \\\" \\n \\r \\t",
                position=token.start_pos + 1 + match.start(),
            )
        return _UNESCAPED[sign]

    return re.sub(r"\\(.)", plain, str(token)[1:-1], flags=re.DOTALL)


def _number(token: Any) -> int | float:
    text = str(token)
    value = int(text) if re.fullmatch(r"-?\d{1,18}", text) else float(text)
    if value in (float("inf"), float("-inf")):
        raise QueryError("a number is out of range", position=token.start_pos)
    return value
