"""Slips of the keyboard: words that are spelled nearly as a known one."""

from __future__ import annotations

from collections.abc import Iterable

from mem0_core._system.text_caches import text_cache
from mem0_core.language._english_words import is_english_word
from mem0_core.language._phrases import detect_language
from mem0_core.language._question_words import LISTS, correct_word, drop_doubled, expand, is_known

_LONG_WORD = 7  # letters from which two edits are a slip; one, in a shorter word
_SHORT_WORD = 6  # letters up to which only two that changed places or one that is doubled make a slip
_MIN_LETTERS = 4
_SPELLINGS = str.maketrans("cz", "ss")  # "practise" and "practice" are both right


def is_english(text: str) -> bool:
    """Return True unless the function words of a text are those of another language."""
    return detect_language(text) == "english"


@text_cache(16_384)
def is_word(word: str) -> bool:
    """Return True for a word of English or of the grammar of questions, or one that it writes out, as "whats"."""
    return is_known(word) or expand(word) is not None or is_english_word(word)


def correct_by_grammar(word: str) -> str | None:
    """Return the word of the grammar of questions that a word is a slip of; None if there is none."""
    near = correct_word(word)
    return None if near.translate(_SPELLINGS) == word.translate(_SPELLINGS) else near


def correct_opening(word: str) -> str | None:
    """Return the question word that the first word of a query is a slip of, as in "wat is"; None if there is none."""
    is_free = not is_known(word) and expand(word) is None
    return near if is_free and (near := correct_word(word)) in LISTS["wh"] else None


def find_nearest_spelling(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` from which a word differs by the fewest edits; None if none or several are as near.

    An edit is a letter too many, too few or wrong, or two that have changed places (Damerau, 1964).
    """
    limit = 2 if len(word) >= _LONG_WORD else 1
    best: list[str] = []
    if len(word) < _MIN_LETTERS:
        return None
    for near in words:
        if len(near) < _MIN_LETTERS or abs(len(near) - len(word)) > limit or near[0] not in word[:2]:
            continue
        if len(word) <= _SHORT_WORD and sorted(near) != sorted(word) and drop_doubled(near) != drop_doubled(word):
            continue  # "soba" is not "soda", and "statin" no "station"
        edits = _count_edits(word, near)
        if edits < limit:
            best = []
        if edits <= limit:
            limit = edits
            best.append(near)
    return best[0] if len(best) == 1 else None


def _count_edits(word: str, near: str) -> int:
    """Return the edits that make one word of another; two letters that change places count once."""
    before: list[int] = []
    row = list(range(len(near) + 1))
    for at, letter in enumerate(word, 1):
        last, before, row = before, row, [at]
        for to, other in enumerate(near, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != other))
            if at > 1 and to > 1 and letter == near[to - 2] and word[at - 2] == other:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
    return row[-1]
