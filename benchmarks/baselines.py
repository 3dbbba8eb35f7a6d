"""Baselines for search: vectors, words, and both fused by rank, over all units of a collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from benchmarks.collection import Collection
from benchmarks.scores import DEPTH
from mem0_core.interfaces import Embedder

__all__ = ["Baseline"]

_FUSED = 100  # of each ranking
_K = 60
_WORD = re.compile(r"\w+")


class Baseline:
    """Plain rankings of one collection: units as they are embedded, with the speaker's name.

    BM25 is Okapi's, of rank-bm25 with its own constants, over lower-case words; reciprocal rank fusion (Cormack et al.,
    2009) uses k = 60, over the first hundred of either ranking.
    """

    def __init__(self, collection: Collection, embedder: Embedder) -> None:
        texts = [unit.spoken for unit in collection.units]
        self._ids = [unit.id for unit in collection.units]
        self._embedder = embedder
        self._vectors = embedder.embed(texts)
        self._words = BM25Okapi([_words(text) for text in texts])

    def dense(self, question: str) -> list[str]:
        return self._with_speaker(self._by_vectors(question))

    def bm25(self, question: str) -> list[str]:
        return self._with_speaker(self._by_words(question))

    def fused(self, question: str) -> list[str]:
        sums: dict[int, float] = {}
        for places in (self._by_vectors(question), self._by_words(question)):
            for rank, place in enumerate(places, 1):
                sums[place] = sums.get(place, 0.0) + 1 / (_K + rank)
        return self._with_speaker(sorted(sums, key=lambda place: -sums[place]))

    def _by_vectors(self, question: str) -> list[int]:
        (query,) = self._embedder.embed([question], kind="query")
        return _best(self._vectors @ query)

    def _by_words(self, question: str) -> list[int]:
        scores = self._words.get_scores(_words(question))
        return [place for place in _best(scores) if scores[place] > 0]

    def _with_speaker(self, places: Sequence[int]) -> list[str]:
        return [self._ids[place] for place in places[:DEPTH]]


def _best(scores: NDArray[Any]) -> list[int]:
    """Return the first places; of equal ones the earlier."""
    places: list[int] = np.argsort(-scores, kind="stable")[:_FUSED].tolist()
    return places


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
