"""Pure scores: what puts the found in order."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["bm25"]

_TOKEN = re.compile(r"[^\W_]+")  # works_at is two words
_LONG_ENOUGH = 4


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """BM25+ of each text for the words of `query`, among these texts; equal where they say nothing of it.

    BM25+ (Lv and Zhai, 2011), not plain BM25: that gives a word which half of a handful of texts share no weight, or
    a negative one.
    """
    if not texts:
        return []
    from rank_bm25 import BM25Plus

    words = [_words(text) for text in texts]
    if not any(words):
        return [0.0] * len(texts)
    scores: list[float] = BM25Plus(words).get_scores(_words(query)).tolist()
    return scores


def _words(text: str) -> list[str]:
    """The words of a text, in lower case and without a final s: who works somewhere is asked for by "work"."""
    return [
        word.removesuffix("s") if len(word) >= _LONG_ENOUGH and not word.endswith("ss") else word
        for word in _TOKEN.findall(text.casefold())
    ]
