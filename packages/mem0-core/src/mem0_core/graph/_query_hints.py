"""The nearest accepted form for a query that cannot be parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from mem0_core.graph._query_tree import KEYWORDS

_FORMS = {
    "": "MATCH (a)-[r]->(b) RETURN a, r, b",
    "MATCH": "MATCH (a:person {name: 'Anna'})-[r:works_at*1..3]->(b)",
    "WHERE": "WHERE a.name = 'Anna' AND NOT b.type IN ['city', 'country']",
    "SIMILAR": "SIMILAR(b, 'an oil company', 0.5)",
    "RETURN": "RETURN DISTINCT a, b.name AS name, count(*)",
    "ORDER": "ORDER BY b.name DESC",
    "SKIP": "SKIP 5 LIMIT 10",
    "LIMIT": "LIMIT 10",
    "AS OF": "AS OF '2025-03-01'",
}
_READ_ONLY = "MATCH ... RETURN ...; queries only read, and add, update and delete change memories"
_ONE_QUERY = "one query of MATCH ... WHERE ... RETURN ..., with as many MATCH as needed"
_OTHER_FORMS = {
    **dict.fromkeys(("CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "DROP", "INSERT", "UPDATE"), _READ_ONLY),
    **dict.fromkeys(("WITH", "UNWIND", "CALL", "UNION", "FOREACH", "LOAD"), _ONE_QUERY),
    **dict.fromkeys(("SELECT", "FROM"), _FORMS[""]),
    "OPTIONAL": "MATCH (a)-[r]->(b), without OPTIONAL",
    "==": "a.name = 'Anna'",
    "=~": "a.name CONTAINS 'nn', a.name STARTS WITH 'An' or a.name ENDS WITH 'na'",
    "EXISTS": "a.name IS NOT NULL",
    "LIKE": "a.name CONTAINS 'nn'",
    "XOR": "(a.name = 'Anna' OR b.name = 'Anna') AND NOT (a.name = 'Anna' AND b.name = 'Anna')",
    "&&": "a.name = 'Anna' AND b.name = 'Acme'",
    "||": "a.name = 'Anna' OR a.name = 'Eve'",
    "~": "SIMILAR(b, 'an oil company', 0.5)",
}
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL)
_CLAUSE = re.compile(r"\b(MATCH|WHERE|SIMILAR|RETURN|ORDER|SKIP|LIMIT|AS\s+OF)\b", re.IGNORECASE)
_WORD = re.compile(r"==|=~|&&|\|\||\w+|\S")


def suggest_form(text: str, position: int, expected: Iterable[str]) -> str:
    """Return the accepted form nearest to a query that goes wrong at a position.

    Args:
        expected: names of the tokens that the position accepts.
    """
    start = (
        position - 1
        if text[position : position + 1] in {"=", "~"} and text[position - 1 : position] == "="
        else position
    )
    match = _WORD.match(text, max(0, start))
    word = match.group().upper() if match else ""
    if word in _OTHER_FORMS:
        return _OTHER_FORMS[word]
    previous = re.search(r"(\w+)\s*(?:\([^()]*\)\s*)?\Z", text[max(0, position - 60) : position])
    if previous and previous.group(1).upper() in _OTHER_FORMS:
        return _OTHER_FORMS[previous.group(1).upper()]
    meant = get_close_matches(word, KEYWORDS & set(expected), n=1, cutoff=0.7)
    clause = meant[0] if meant else _find_clause(text[:position])
    return _FORMS.get(clause, _FORMS["WHERE"])


def _find_clause(before: str) -> str:
    """Return the last clause that begins in a text, outside its quotes."""
    found = _CLAUSE.findall(_TEXTS.sub("''", before))
    return " ".join(found[-1].upper().split()) if found else ""
