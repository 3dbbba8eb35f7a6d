"""Functions of the query language: their names, arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

from mem0_core._system.records import dataclass

Kind = Literal["node", "relation", "relations", "path", "nodes", "value"]
"""Value of a variable or function: a node, a relation, the relations of a pattern of variable length, a path, a list of
nodes, or a plain value (a text, a number, true, false, null, or a list of these)."""

_MAX_ARGUMENTS = 20


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one match.

    Attributes:
        name: its spelling in results.
        example: a call, for error messages.
        takes: kinds of value that it accepts.
        gives: kind of its result.
        arguments: minimum and maximum number of arguments.
    """

    name: str
    example: str
    takes: frozenset[Kind]
    gives: Kind = "value"
    arguments: tuple[int, int] = (1, 1)


_VALUE: frozenset[Kind] = frozenset({"value"})
_ALL = (
    Function("type", "type(r)", frozenset({"relation"})),
    Function("labels", "labels(a)", frozenset({"node"})),
    Function("startNode", "startNode(r)", frozenset({"relation"}), "node"),
    Function("endNode", "endNode(r)", frozenset({"relation"}), "node"),
    Function("nodes", "nodes(p)", frozenset({"path"}), "nodes"),
    Function("relationships", "relationships(p)", frozenset({"path", "relations"}), "relations"),
    Function("length", "length(p)", frozenset({"path", "relations"})),
    Function("size", "size(a.name)", frozenset({"value", "nodes", "relations"})),
    Function("toLower", "toLower(a.name)", _VALUE),
    Function("toUpper", "toUpper(a.name)", _VALUE),
    Function("trim", "trim(a.name)", _VALUE),
    Function("date", "date('2025-03-01')", _VALUE),
    Function("datetime", "datetime('2025-03-01T12:00:00+00:00')", _VALUE),
    Function("coalesce", "coalesce(a.type, 'unknown')", _VALUE, arguments=(1, _MAX_ARGUMENTS)),
)
FUNCTIONS: Mapping[str, Function] = {function.name.casefold(): function for function in _ALL} | {
    other: next(function for function in _ALL if function.name == name)
    for other, name in {"lower": "toLower", "upper": "toUpper", "rels": "relationships"}.items()
}
"""Functions of one match, by their names in lower case."""

AGGREGATES = ("count", "collect", "min", "max", "sum", "avg")
"""Functions of a group of matches."""


def suggest(word: str, known: tuple[str, ...]) -> str:
    """Return the words that resemble one, as a question, or the list of all."""
    by_key = {one.casefold(): one for one in known}
    near = get_close_matches(word.casefold(), by_key, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(by_key[one] for one in near)}?" if near else f"there are {', '.join(known)}"
