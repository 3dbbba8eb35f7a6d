"""Unicode normalization in linear time.

`unicodedata.normalize` sorts each run of combining marks by insertion, so one letter under 100,000 marks takes minutes.
The Stream-Safe Text Format (UAX #15, section 13) bounds such runs. Every normalization goes through this module.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

MAX_NONSTARTERS = 30
"""Combining marks in a row, as UAX #15 has it: no orthography needs more than a few."""

_JOINER = "\u034f"  # COMBINING GRAPHEME JOINER, a starter that shows nothing: UAX #15 parts long runs with it
_HALF_WIDTH_MARKS = ("\uff9e", "\uff9f")  # the only letters (in the sense of \w) that decompose to marks
_MIN_PATTERN_CHARS = 1_000  # a pattern for one run takes as long to compile as some hundred characters to look at
# Runs that may be too long; mostly there are none, and the characters of a text are not looked at one by one.
_LONG_RUN = re.compile(rf"[^\w\x00-\u02ff]{{{MAX_NONSTARTERS + 1},}}")
_LONG_RUN_WITH_LETTERS = re.compile(rf"[^\x00-\u02ff]{{{MAX_NONSTARTERS + 1},}}")


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a normal form of a text; of its stream-safe form if it has very long runs of combining marks."""
    return text if text.isascii() else unicodedata.normalize(form, stream_safe(text))


def stream_safe(text: str) -> str:
    """Return a text with at most `MAX_NONSTARTERS` combining marks in a row; joiners split longer runs."""
    if text.isascii():
        return text
    has_letters = any(mark in text for mark in _HALF_WIDTH_MARKS)
    return (_LONG_RUN_WITH_LETTERS if has_letters else _LONG_RUN).sub(_insert_joiners, text)


def _insert_joiners(run: re.Match[str]) -> str:
    text = run[0]
    if len(text) < _MIN_PATTERN_CHARS:
        return _insert_one_by_one(text)
    marks = re.escape("".join(sorted(filter(_is_nonstarter, set(text)))))
    return re.sub(f"([{marks}]{{{MAX_NONSTARTERS}}})(?=[{marks}])", rf"\1{_JOINER}", text) if marks else text


def _insert_one_by_one(text: str) -> str:
    parts: list[str] = []
    count = 0
    for character in text:
        count = count + 1 if _is_nonstarter(character) else 0
        if count > MAX_NONSTARTERS:
            parts.append(_JOINER)
            count = 1
        parts.append(character)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _is_nonstarter(character: str) -> bool:
    """Return True if a character, decomposed, begins with a combining mark."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0
