"""Okapi BM25 over a list of texts: the baseline that needs no model."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["BM25"]

_WORD = re.compile(r"\w+")


class BM25:
    """Scores of a query against every text; plain lower-case tokens."""

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        bags = [Counter(_words(text)) for text in texts]
        lengths = np.array([sum(bag.values()) for bag in bags], dtype=float)
        self._norm = k1 * (1 - b + b * lengths / max(1.0, lengths.mean()))
        self._k1 = k1
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, bag in enumerate(bags):
            for word, count in bag.items():
                self._postings[word].append((place, count))

    def scores(self, query: str) -> NDArray[np.float64]:
        total = np.zeros(len(self._norm))
        for word in _words(query):
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (len(total) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                total[place] += rarity * count * (self._k1 + 1) / (count + self._norm[place])
        return total


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
