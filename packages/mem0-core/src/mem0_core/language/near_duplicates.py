"""Near-duplicates: texts of one speaker that a newer text restates, so that they need not be shown.

Vectors cannot decide. For MiniLM "flew from Porto to Lisbon" has a cosine of 0.998 to the way back, "takes it before
meals" 0.95 to "after meals", and "lives in York" 0.97 to "lives in New York", but "has a dog" only 0.57 to "has a dog
named Max". So the words decide, and the cosine has to agree. A newer text restates an older one if it begins with all
of its words, in their order, and then ends or continues at the end of a phrase; the older text adds nothing. All other
pairs are two facts, or a contradiction, and both are shown with their dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.normalization import normalize

MIN_DUPLICATE_COSINE = 0.6
"""Cosine from which two texts with the same first words have one subject, unlike "Thanks!" and "Thanks! I started the
course." (Such pairs reach 0.51 among LoCoMo's turns; true restatements are above 0.8.)"""

_MAX_TEXT_CHARS = 2_000  # longer texts are not compared

# Numbers with inner signs (6:30, 1.5, 555-1234), words with inner signs (Tom's, well-known), pauses, other signs.
_TOKEN = re.compile(
    r"(?P<word>\d+(?:[.,:/-]\d+)+|\w+(?:['-]\w+)*)"
    r"|(?P<pause>[,;:.!…)]+(?=\s|$)|(?<=\s)(?:\(|[-–—](?=\s))|—|[、。，；：！（）،؛।])|(?P<quote>[\"'])|(?P<sign>\S)"
)
_QUOTES = str.maketrans(dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„«»「」", '"'))
_ASKS = re.compile("[?？؟]")
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:no|')t\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
)
_EMPTY_WORD_LIST = "a an the is am are really very also still now currently actually"
_OPENINGS = "user user's yes yeah well oh so and"
_CONTINUATIONS = """
about after and around at because before by called during each every for from in into named near on since together when
where which while who with
"""
_EMPTY_WORDS = frozenset(_EMPTY_WORD_LIST.split())
_OPENING_WORDS = frozenset(_OPENINGS.split())  # without meaning at the start of a text
_CONTINUATION_WORDS = frozenset(_CONTINUATIONS.split())  # they leave the words before them true


@dataclass(frozen=True, slots=True)
class _Statement:
    """Meaningful words of a text, and the positions of those that follow a pause."""

    words: tuple[str, ...]
    pauses: frozenset[int]


def restates(newer: str, older: str) -> bool:
    """Return True if a text begins with all the words of an older one; questions and very long texts do not count."""
    return _restates(_parse_statement(newer), _parse_statement(older))


def find_restatements(oldest_first: Sequence[str]) -> list[tuple[int, int, bool]]:
    """Return pairs of positions, of a text and an older one that it restates; True if they have the same words."""
    statements = [_parse_statement(text) for text in oldest_first]
    by_first_word: dict[str, list[int]] = {}
    for index, statement in enumerate(statements):
        if statement is not None:
            by_first_word.setdefault(statement.words[0], []).append(index)
    return [
        (newer, older, _restates(statements[older], statements[newer]))
        for indexes in by_first_word.values()
        for older, newer in combinations(indexes, 2)
        if _restates(statements[newer], statements[older])
    ]


def _restates(newer: _Statement | None, older: _Statement | None) -> bool:
    if newer is None or older is None:
        return False
    end = len(older.words)
    if newer.words[:end] != older.words:
        return False
    return end == len(newer.words) or end in newer.pauses or newer.words[end] in _CONTINUATION_WORDS


@text_cache(4096)  # memories that were shown once are often shown again
def _parse_statement(text: str) -> _Statement | None:
    """Return the statement of a text; None for a text that is not compared."""
    if len(text) > _MAX_TEXT_CHARS or _ASKS.search(text):
        return None
    folded = normalize("NFC", text).translate(_QUOTES).casefold()
    for contraction, full_form in _CONTRACTIONS:
        folded = contraction.sub(full_form, folded)
    words: list[str] = []
    pauses: set[int] = set()
    for token in _TOKEN.finditer(folded):
        if token["pause"]:
            pauses.add(len(words))
        elif not (token["quote"] or token[0] in _EMPTY_WORDS or (not words and token[0] in _OPENING_WORDS)):
            words.append(token[0])
    return _Statement(tuple(words), frozenset(pauses)) if words else None
