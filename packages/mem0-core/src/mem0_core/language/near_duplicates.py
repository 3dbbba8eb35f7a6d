"""Near-duplicates: which of two texts of one speaker need not be shown, since the newer says all that it says.

Vectors cannot tell. On MiniLM "flew from Porto to Lisbon" is 0.998 near to the way back, "takes it before meals" 0.95
to "after meals", "lives in York" 0.97 to "lives in New York", while "has a dog" is 0.57 near to "has a dog named Max".
So the words decide, and the cosine only has to agree: a newer text is a near-duplicate of an older one if it begins
with all of its words, in their order, and then ends, or goes on where a phrase can end. Nothing of the older text is
lost with it. Everything else is two facts, or a contradiction, and is shown twice with its dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from mem0_core.domain.normalization import normalize

__all__ = ["MIN_DUPLICATE_COSINE", "find_restatements", "restates"]

MIN_DUPLICATE_COSINE = 0.6
"""The cosine from which two texts that begin with the same words are about the same: "Thanks!" is not all there is to
"Thanks! I started the course." (0.51 at most among LoCoMo's turns; what is alike there lies above 0.8)."""

_MAX_TEXT_CHARS = 2_000  # characters: what is longer is compared with nothing

# Numbers with what joins their parts (6:30, 1.5, 555-1234), words with theirs (Tom's, well-known), pauses, signs.
_TOKEN = re.compile(
    r"(?P<word>\d+(?:[.,:/-]\d+)+|\w+(?:['-]\w+)*)"
    r"|(?P<pause>[,;:.!…)]+(?=\s|$)|(?<=\s)(?:\(|[-–—](?=\s))|—|[、。，；：！（）،؛।])|(?P<quote>[\"'])|(?P<sign>\S)"
)
_QUOTES = str.maketrans(dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„«»「」", '"'))
_ASKS = re.compile("[?？؟]")
_SHORT_FORMS = (
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
_OPENING_WORDS = frozenset(_OPENINGS.split())  # say nothing where a text begins with them
_CONTINUATION_WORDS = frozenset(_CONTINUATIONS.split())  # what was said before them stands


@dataclass(frozen=True, slots=True)
class _Statement:
    """The words of a text that say something, and the places of those before which it pauses."""

    words: tuple[str, ...]
    pauses: frozenset[int]


def restates(newer: str, older: str) -> bool:
    """Whether a text says all that an older one says: the same words from its beginning on, and perhaps more.

    Questions restate nothing, nor does what is very long.
    """
    return _restates_statement(_parse_statement(newer), _parse_statement(older))


def find_restatements(oldest_first: Sequence[str]) -> list[tuple[int, int, bool]]:
    """Pairs of places, of a text and of an older one that it restates, and whether they have the same words."""
    read = [_parse_statement(text) for text in oldest_first]
    alike: dict[str, list[int]] = {}
    for place, said in enumerate(read):
        if said is not None:
            alike.setdefault(said.words[0], []).append(place)
    return [
        (newer, older, restates(oldest_first[older], oldest_first[newer]))
        for places in alike.values()
        for older, newer in combinations(places, 2)
        if _restates_statement(read[newer], read[older])
    ]


def _restates_statement(newer: _Statement | None, older: _Statement | None) -> bool:
    if newer is None or older is None:
        return False
    end = len(older.words)
    if newer.words[:end] != older.words:
        return False
    return end == len(newer.words) or end in newer.pauses or newer.words[end] in _CONTINUATION_WORDS


@lru_cache(maxsize=4096)  # a memory that is shown once is mostly shown again
def _parse_statement(text: str) -> _Statement | None:
    """What a text says; None for what is not compared."""
    if len(text) > _MAX_TEXT_CHARS or _ASKS.search(text):
        return None
    folded = normalize("NFC", text).translate(_QUOTES).casefold()
    for form, whole in _SHORT_FORMS:
        folded = form.sub(whole, folded)
    words: list[str] = []
    pauses: set[int] = set()
    for token in _TOKEN.finditer(folded):
        if token["pause"]:
            pauses.add(len(words))
        elif not (token["quote"] or token[0] in _EMPTY_WORDS or (not words and token[0] in _OPENING_WORDS)):
            words.append(token[0])
    return _Statement(tuple(words), frozenset(pauses)) if words else None
