"""Parser of the graph's query language.

::

    MATCH (a:person {name: 'Anna'})-[r:works_at|works_for]->(b), (b)<-[*1..3]-(c)
    WHERE r.weight > 1 AND (b.name STARTS WITH 'G' OR SIMILAR(b, 'an oil company', 0.5)) AND NOT c.name = 'Tom'
    RETURN DISTINCT a, b.name AS employer, count(*) ORDER BY employer DESC SKIP 5 LIMIT 10 AS OF '2025-03-01'

Keywords are case-insensitive. A name that is a keyword, or has characters other than letters, digits and _, is written
in `backquotes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from mem0_core.errors import QueryError
from mem0_core.graph._query_tree import (
    KEYWORDS,
    And,
    Compare,
    Constant,
    Count,
    Direction,
    Expression,
    IsNull,
    Item,
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
    Variable,
)

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["MAX_HOPS", "parse"]

MAX_HOPS = 8
"""Maximum number of relations in a pattern of variable length."""
_MAX_QUERY_CHARS = 20_000
_MAX_NESTING = 40  # levels of AND, OR and NOT
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
T = TypeVar("T")

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
compare: operand SIGN operand | operand IN constants | operand CONTAINS operand | operand STARTS WITH operand
    | operand ENDS WITH operand
isnull: operand IS NOT? NULL
similar: SIMILAR "(" name "," STRING "," NUMBER ")"
operand: owned | variable | literal
owned: name "." name
variable: name
literal: STRING | NUMBER | TRUE | FALSE | NULL
constants: "[" [literal ("," literal)*] "]"
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
_TOKEN_SIGNS = """
LPAR ( RPAR ) LSQB [ RSQB ] LBRACE { RBRACE } COMMA , COLON : DOT . VBAR | STAR * RANGE .. ARROW_LEFT <- ARROW_RIGHT ->
DASH -
"""
_TOKEN_NAMES = dict(zip(_TOKEN_SIGNS.split()[::2], _TOKEN_SIGNS.split()[1::2], strict=True))
_TOKEN_NAMES |= {
    "SIGN": "= <> < <= > >=",
    "INT": "a whole number",
    "NUMBER": "a number",
    "$END": "the end of the query",
}
_TOKEN_NAMES |= {"NAME": "a name", "QUOTED": "a name", "STRING": "a 'text'", "AS_OF": "AS OF"}
_MAX_EXPECTED = 12  # a longer list of possible tokens is no help


def parse(text: str) -> Query:
    """Parse a query.

    Raises:
        QueryError: the query cannot be read; the message has the position and the tokens expected there.
    """
    if not isinstance(text, str):
        raise QueryError(f"a query must be a text, not {type(text).__name__}", query=text)
    if len(text) > _MAX_QUERY_CHARS:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {_MAX_QUERY_CHARS:,} are accepted", query=text
        )
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

    try:
        query: Query = _parser().parse(text)  # type: ignore[assignment]
        _check_depth(query.where)
    except UnexpectedToken as error:
        position = len(text) if error.token.type == "$END" else (error.token.start_pos or 0)
        _refuse(text, position, error.accepts or error.expected)
    except UnexpectedCharacters as error:
        _refuse(text, error.pos_in_stream or 0, error.allowed or set())
    except UnexpectedInput as error:
        _refuse(text, error.pos_in_stream or 0, set())
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError):
            raise _add_excerpt(error.orig_exc, text) from error
        raise
    except QueryError as error:
        raise _add_excerpt(error, text) from error
    return query


def _check_depth(where: Expression | None) -> None:
    """Refuse deep conditions: they are parsed without recursion, but written and evaluated with it."""
    level: list[Expression] = [] if where is None else [where]
    for _ in range(_MAX_NESTING):
        level = [
            inner
            for part in level
            if isinstance(part, Not | And | Or)
            for inner in ((part.part,) if isinstance(part, Not) else part.parts)
        ]
    if level:
        raise QueryError(f"the conditions are nested more than {_MAX_NESTING} levels deep")


def _refuse(text: str, position: int, expected: set[str]) -> NoReturn:
    word = re.match(r"\w+|\S", text[position:])
    found = f"unexpected {word.group()[:40]!r}" if word else "the query ends here"
    names = sorted({_TOKEN_NAMES.get(name, name) for name in expected})
    hint = f"; expected {' or '.join(names)}" if 0 < len(names) <= _MAX_EXPECTED else ""
    raise QueryError(f"{found} at position {position}{hint}: {_excerpt(text, position)}", query=text, position=position)


def _excerpt(text: str, position: int) -> str:
    start = max(0, position - 30)
    before, after = text[start:position], text[position : position + 20]
    return f"{'...' if start else ''}{before}>>>{after}{'...' if position + 20 < len(text) else ''}"


def _add_excerpt(error: QueryError, text: str) -> QueryError:
    position = error.position or 0
    return QueryError(f"{error} at position {position}: {_excerpt(text, position)}", query=text, position=position)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark, Transformer

    keywords = "\n".join(f"{name}.2: /{name.lower()}\\b/i" for name in sorted(KEYWORDS))
    builder: Any = type("Builder", (_TreeBuilder, Transformer), {})()
    return Lark(_GRAMMAR + keywords + "\n", parser="lalr", lexer="contextual", transformer=builder)


_Children = list[Any]
"""Children of a rule: lark's tokens, which are strings, and the results of the rules in it."""


class _TreeBuilder:
    """Builds the syntax tree: lark calls the method of each rule as soon as it is read, so nothing recurses."""

    def name(self, children: _Children) -> Variable:
        (token,) = children
        plain = str(token) if token.type == "NAME" else str(token)[1:-1].replace("``", "`")
        return Variable(plain, token.start_pos)

    def literal(self, children: _Children) -> Constant:
        (token,) = children
        if token.type == "STRING":
            return Constant(_parse_text(token))
        if token.type == "NUMBER":
            return Constant(_parse_number(token))
        return Constant({"TRUE": True, "FALSE": False, "NULL": None}[token.type])

    def constants(self, children: _Children) -> Constant:
        return Constant(tuple(child.value for child in children if child is not None))

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
        return Compare(left, "<>" if operator == "!=" else operator, right)

    def isnull(self, children: _Children) -> IsNull:
        return IsNull(children[0], _has(children, "NOT"))

    def similar(self, children: _Children) -> Similar:
        _, name, text, number = children
        threshold = float(_parse_number(number))
        if not -1 <= threshold <= 1:
            raise QueryError("a threshold is a cosine, between -1 and 1", position=number.start_pos)
        words = _parse_text(text)
        if not words.strip():
            raise QueryError("SIMILAR needs a text to compare with", position=text.start_pos)
        return Similar(name.name, words, threshold, name.position)

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

    def pattern(self, children: _Children) -> Pattern:
        return Pattern(_select(children, NodePattern), _select(children, RelationPattern))

    def count(self, children: _Children) -> Count:
        operand = next((child for child in children if not isinstance(child, str)), None)
        return Count(operand, _has(children, "DISTINCT"))

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
        return _Clause("skip", int(str(children[1])[:18]))

    def limit(self, children: _Children) -> _Clause:
        return _Clause("limit", int(str(children[1])[:18]))

    def asof(self, children: _Children) -> _Clause:
        return _Clause("as_of", _parse_text(children[1]))

    def start(self, children: _Children) -> Query:
        clauses = {clause.name: clause.value for clause in _select(children, _Clause)}
        return Query(
            patterns=_select(children, Pattern),
            items=_select(children, Item),
            distinct=_has(children, "DISTINCT"),
            explain=_has(children, "EXPLAIN"),
            **clauses,
        )


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
