"""Parser of the graph's query language.

::

    MATCH (a:person {name: $name})-[r:works_at|works_for]->(b), p = (b)<-[*1..3]-(c)
    WHERE r.weight > 1 AND (b.name STARTS WITH 'G' OR SIMILAR(b, 'an oil company', 0.5)) AND NOT c.name = 'Tom'
    MATCH (c)-[s]-(d) WHERE type(s) = 'sister'
    RETURN DISTINCT a, b.name AS employer, collect(p) ORDER BY employer DESC SKIP 5 LIMIT 10 AS OF '2025-03-01';

Without RETURN, a row has the relations of the patterns and all variables. Keywords and functions are case-insensitive.
A name that is a keyword, or has characters other than letters, digits and _, is written in `backquotes`. ``//`` and
``/* */`` enclose comments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import QueryError
from mem0_core.graph._query_builder import MAX_HOPS, TreeBuilder
from mem0_core.graph._query_hints import suggest_form
from mem0_core.graph._query_tree import KEYWORDS, Part, Query, Value, children_of

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["MAX_HOPS", "parse"]

_MAX_QUERY_CHARS = 20_000
_MAX_NESTING = 40  # levels of AND, OR and NOT

_GRAMMAR = r"""
start: EXPLAIN? match+ _returned? order? skip? limit? asof? ";"?
match: MATCH _patterns where?
_returned: RETURN DISTINCT? _items
_patterns: pattern ("," pattern)*
pattern: path? node (relation node)*
path: name SIGN
node: LPAR name? label? mapping? ")"
label: ":" name
relation: dash detail? dash
dash: ARROW_LEFT -> arrow_left | ARROW_RIGHT -> arrow_right | DASH -> plain_dash
detail: "[" name? labels? hops? mapping? "]"
labels: ":" name ("|" ":"? name)*
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
_atom: "(" either ")" | compare | isnull | similar | labeled
compare: operand SIGN operand | operand IN (constants | operand) | operand CONTAINS operand
    | operand STARTS WITH operand | operand ENDS WITH operand
isnull: operand IS NOT? NULL
labeled: name ":" name
similar: SIMILAR "(" operand "," operand ["," literal] ")" [SIGN literal]
    | operand SIMILAR TO? literal -> similar_infix
    | operand SIMILAR TO? "(" literal ["," literal] ")" -> similar_infix
operand: call | owned | variable | literal
call: name "(" (STAR | DISTINCT? operand ("," operand)*)? ")"
owned: name "." name
variable: name
literal: STRING | NUMBER | TRUE | FALSE | NULL | PARAMETER
constants: "[" [literal ("," literal)*] "]"
_items: STAR | item ("," item)*
item: (call | owned | variable) alias?
alias: AS name
order: ORDER BY sort ("," sort)*
sort: (call | owned | variable) (ASC | DESC)?
skip: SKIP (INT | PARAMETER)
limit: LIMIT (INT | PARAMETER)
asof: AS_OF (STRING | PARAMETER)
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
PARAMETER: /\$\w+/
AS_OF.3: /as\s+of\b/i
COMMENT: /\/\/[^\n]*|\/\*.*?\*\//s
%ignore /\s+/
%ignore COMMENT
"""
_TOKEN_SIGNS = """
LPAR ( RPAR ) LSQB [ RSQB ] LBRACE { RBRACE } COMMA , COLON : DOT . VBAR | STAR * RANGE .. ARROW_LEFT <- ARROW_RIGHT ->
DASH - SEMICOLON ;
"""
_TOKEN_NAMES = dict(zip(_TOKEN_SIGNS.split()[::2], _TOKEN_SIGNS.split()[1::2], strict=True))
_TOKEN_NAMES |= {
    "SIGN": "= <> < <= > >=",
    "INT": "a whole number",
    "NUMBER": "a number",
    "$END": "the end of the query",
}
_TOKEN_NAMES |= {
    "NAME": "a name",
    "QUOTED": "a name",
    "STRING": "a 'text'",
    "AS_OF": "AS OF",
    "PARAMETER": "a $parameter",
}
_MAX_EXPECTED = 12  # a longer list of possible tokens is no help


def parse(text: str, parameters: Mapping[str, Any] | None = None) -> Query:
    """Parse a query.

    Args:
        parameters: the values of its ``$parameters``: texts, numbers, true, false, null, and lists of these.

    Raises:
        QueryError: the query cannot be parsed; the message has the position, the tokens expected there and the nearest
            accepted form.
    """
    if not isinstance(text, str):
        raise QueryError(
            f"query must be a text, not {describe_value(text)}; pass, for example, 'MATCH (a)-[r]->(b) RETURN a, r, b'",
            query=text,
        )
    if len(text) > _MAX_QUERY_CHARS:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {_MAX_QUERY_CHARS:,} are accepted", query=text
        )
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

    values = _check_parameters(parameters)
    try:
        query: Query = _builder()(values).transform(_parser().parse(text))
        _check_depth(query)
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


def _check_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Value | tuple[Value, ...]]:
    """Return the parameters of a query, lists as tuples.

    Raises:
        QueryError: a value is of a type that no query accepts.
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise QueryError(f"parameters must be a mapping such as {{'name': 'Anna'}}, not {type(parameters).__name__}")
    return {name: _check_parameter(name, value) for name, value in (parameters or {}).items()}


def _check_parameter(name: object, value: object) -> Value | tuple[Value, ...]:
    values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    for one in values:
        is_finite = not isinstance(one, float) or math.isfinite(one)
        if not (isinstance(name, str) and is_finite and (one is None or isinstance(one, str | bool | int | float))):
            raise QueryError(
                f"the parameter {name!r} must be a text, a finite number, a boolean, None or a list of these, "
                f"not {type(one).__name__}"
            )
    return values if isinstance(value, list | tuple | set | frozenset) else values[0]


def _check_depth(query: Query) -> None:
    """Refuse deep conditions and calls: they are parsed without recursion, but written and evaluated with it."""
    level: list[Part] = [match.where for match in query.matches if match.where is not None]
    level += [item.value for item in query.items or ()]
    level += [order.value for order in query.order]
    for _ in range(_MAX_NESTING):
        level = [child for part in level for child in children_of(part)]
    if level:
        raise QueryError(f"the conditions or functions are nested more than {_MAX_NESTING} levels deep")


def _refuse(text: str, position: int, expected: set[str]) -> NoReturn:
    word = re.match(r"\w+|\S", text[position:])
    found = f"unexpected {word.group()[:40]!r}" if word else "the query ends here"
    names = sorted({_TOKEN_NAMES.get(name, name) for name in expected})
    if expected == {"SIGN"}:  # only the name of a path is followed by = and by no other sign
        names = ["="]
    hint = f"; expected {' or '.join(names)}" if 0 < len(names) <= _MAX_EXPECTED else ""
    form = suggest_form(text, position, expected)
    raise QueryError(
        f"{found} at position {position}{hint}: {_excerpt(text, position)}; nearest accepted form: {form}",
        query=text,
        position=position,
    )


def _excerpt(text: str, position: int) -> str:
    start = max(0, position - 30)
    before, after = text[start:position], text[position : position + 20]
    return f"{'...' if start else ''}{before}>>>{after}{'...' if position + 20 < len(text) else ''}"


def _add_excerpt(error: QueryError, text: str) -> QueryError:
    position = error.position or 0
    return QueryError(f"{error} at position {position}: {_excerpt(text, position)}", query=text, position=position)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    endings = dict.fromkeys(("ASC", "DESC"), "(?:ending)?")
    keywords = "\n".join(f"{name}.2: /{name.lower()}{endings.get(name, '')}\\b/i" for name in sorted(KEYWORDS))
    return Lark(_GRAMMAR + keywords + "\n", parser="lalr", lexer="contextual")


@lru_cache(maxsize=1)
def _builder() -> Callable[[Mapping[str, Value | tuple[Value, ...]]], Any]:
    """Return the class that builds the tree; it calls the method of each rule without recursion."""
    from lark.visitors import Transformer_NonRecursive

    return type("Builder", (TreeBuilder, Transformer_NonRecursive), {})
