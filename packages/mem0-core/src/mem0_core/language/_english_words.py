"""English words, from the lists of SCOWL; those in every dictionary are common."""

from __future__ import annotations

from functools import lru_cache

from mem0_core.language._tables import load_lines


def is_common(word: str) -> bool:
    """Return True for a common English word, as ``waiter``; ``wat`` is a rare one."""
    return _has_line(_load("common_words"), word.encode())


def is_english_word(word: str) -> bool:
    """Return True for a common or rare English word."""
    return is_common(word) or _has_line(_load("rare_words"), word.encode())


@lru_cache(maxsize=2)
def _load(name: str) -> bytes:
    return load_lines(name)


def _has_line(lines: bytes, line: bytes) -> bool:
    """Return True if a line is one of some sorted lines; as they are, they take a tenth of the memory of a set."""
    low, high = 0, len(lines)
    while low < high:
        start = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = lines.index(b"\n", start)
        found = lines[start:end]
        if found == line:
            return True
        low, high = (end + 1, high) if found < line else (low, start)
    return False
