"""Slips of the keyboard in a query, corrected by the words of questions and of the scope's memories.

A word is a slip only if it is none: neither English, nor of the grammar of questions, nor in a memory. Words with a
capital are left alone, as they may be names, and so are queries in other languages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.language.slips import correct_by_grammar, correct_opening, find_nearest_spelling, is_english, is_word
from mem0_core.language.terms import extract_terms, split_words

if TYPE_CHECKING:
    from mem0_core.domain.records import Scope
    from mem0_core.recall.cache import ActiveScope

_WORD = re.compile(r"(?<![\w'’&.-])[a-z]{3,20}(?![\w'’&-]|\.\w)")
_MAX_WORDS = 40  # of a query: a pasted text is no question typed in a hurry
_MAX_UNKNOWN = 8  # of them: more are another language, or noise


def correct_query(ports: Ports, query: ParsedQuery, scope: Scope, active: ActiveScope | None) -> Flow[ParsedQuery]:
    """Return a query with its slips corrected; itself if it has none.

    Args:
        active: the scope, if it is kept in memory; without it, its words correct nothing.
    """
    words = list(_WORD.finditer(query.text))
    if len(words) > _MAX_WORDS:
        return query
    unknown = [match for match in words if _is_unknown(match.group(), active)]
    corrected: dict[int, str] = {}
    for match in unknown if len(unknown) <= _MAX_UNKNOWN else ():
        word = match.group()
        near = correct_by_grammar(word) or (yield from _find_in_scope(ports, word, scope, active))
        if near is not None:
            corrected[match.start()] = near
    if words and (near := correct_opening(words[0].group())) is not None:
        corrected[words[0].start()] = near
    if not corrected or not is_english(query.text):
        return query
    return query.with_text(_WORD.sub(lambda match: corrected.get(match.start(), match.group()), query.text))


def _is_unknown(word: str, active: ActiveScope | None) -> bool:
    if is_word(word):
        return False
    terms = extract_terms(word)
    return bool(terms) and (active is None or active.find_term(terms[0]) is None)


def _find_in_scope(ports: Ports, word: str, scope: Scope, active: ActiveScope | None) -> Flow[str | None]:
    """Return the word of a scope that a word is a slip of, as a memory writes it; None if there is none."""
    (term,) = extract_terms(word)[:1]
    if active is None or (near := find_nearest_spelling(term, active.present_terms)) is None:
        return None
    row = active.find_term(near)
    items = {} if row is None else (yield from do(ports.store.memories_by_rows, [row], scope=scope))
    spellings = (each for item in items.values() for each in split_words(item.text))
    return next((each for each in spellings if extract_terms(each) == [near]), None)
