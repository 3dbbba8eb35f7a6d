"""BM25 over the units of one pool, with the terms of the product's keyword search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mem0_core.language.terms import extract_terms

__all__ = ["Bm25"]

_K1 = 0.9
_B = 0.4  # short turns differ little in length


class Bm25:
    """Scores of texts against a query (Robertson et al., 1994)."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(extract_terms(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], np.float64)
        norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1.0))
        postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for term, frequency in count.items():
                postings.setdefault(term, []).append((place, frequency))
        self._count = len(texts)
        self._postings = {term: _weigh_postings(found, norms, len(texts)) for term, found in postings.items()}

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of each text."""
        total = np.zeros(self._count)
        for term in extract_terms(query):
            if term in self._postings:
                places, weights = self._postings[term]
                total[places] += weights
        return total


def _weigh_postings(
    found: Sequence[tuple[int, int]], norms: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    places = np.array([place for place, _ in found])
    frequencies = np.array([frequency for _, frequency in found], np.float64)
    idf = math.log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
    return places, idf * frequencies * (1 + _K1) / (frequencies + norms[places])
