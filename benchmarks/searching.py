"""The cost of `search` within one user's memories, and its recall against an exact scan."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import USERS, Memo, user_name, user_of
from benchmarks.naive import FlatStore
from benchmarks.timed import TimedEmbedder, clocks
from mem0_core import Memory
from mem0_core.interfaces import Embedder

__all__ = ["Oracle", "Searches", "flat_searches", "search_store"]

K = 10


class Oracle:
    """The exact answers, by NumPy over the vectors a store was filled with."""

    def __init__(self, memos: Sequence[Memo], vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors
        self._place = {memo.text: place for place, memo in enumerate(memos)}
        users = np.array([user_of(place) for place in range(len(memos))])
        self._of_user = [np.flatnonzero(users == user) for user in range(USERS)]
        self._themes = np.array([memo.theme for memo in memos])

    def recall(self, query: NDArray[np.float32], user: int, theme: str | None, places: Sequence[int]) -> float | None:
        """Return the share of the exact ten in `places`; a tie with the tenth counts."""
        own = self._of_user[user]
        own = own if theme is None else own[self._themes[own] == theme]
        if not len(own):
            return None
        exact = self._vectors[own] @ query
        tenth = np.sort(exact)[-min(K, len(own))]
        allowed = set(own.tolist())
        good = sum(place in allowed and self._vectors[place] @ query >= tenth - 1e-5 for place in places)
        return float(good) / min(K, len(own))

    def place(self, text: str) -> int:
        return self._place[text]


@dataclass(slots=True)
class Searches:
    """Times of a series of searches, in milliseconds without the embedding, and the recall of each."""

    took: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float | None:
        return sum(self.recalls) / len(self.recalls) if self.recalls else None


def search_store(
    folder: Path, memos: Sequence[Memo], oracle: Oracle, embedder: Embedder, count: int, *, by_theme: bool = False
) -> Searches:
    """Search by mem0's recipe: once per user to load their data (`first`), then `count` timed searches."""
    timed = TimedEmbedder(embedder)
    searches = Searches()
    asked = _build_questions(memos, count)
    queries = embedder.embed([memo.question for memo, _ in asked], kind="query")
    with Memory({"path": folder, "recipe": "mem0"}, embedder=timed) as memory:
        for user in range(USERS):
            _timed_search(memory, timed, "anything at all", user, None, searches)
        searches.first = searches.took
        searches.took, searches.cpu, searches.embedding = [], [], []
        themes = [memo.theme if by_theme else None for memo, _ in asked]
        found = [
            _timed_search(memory, timed, memo.question, user, theme, searches)
            for (memo, user), theme in zip(asked, themes, strict=True)
        ]
    # Not between searches: it would evict their data from the processor's caches.
    for (_, user), query, theme, texts in zip(asked, queries, themes, found, strict=True):
        recall = oracle.recall(query, user, theme, [oracle.place(text) for text in texts])
        if recall is not None:
            searches.recalls.append(recall)
    return searches


def _build_questions(memos: Sequence[Memo], count: int) -> list[tuple[Memo, int]]:
    """Yield a question about a memory of each user in turn; for an empty store, about nothing."""
    if not memos:
        return [(Memo("", "food", "Who cooked a lentil soup?"), call % USERS) for call in range(count)]
    chance = random.Random(3)
    places = [chance.randrange(len(memos)) for _ in range(count)]
    return [(memos[place], user_of(place)) for place in places]


def _timed_search(
    memory: Memory, timed: TimedEmbedder, question: str, user: int, theme: str | None, searches: Searches
) -> list[str]:
    """Search once, record the times in `searches`, and return the texts found."""
    filters = None if theme is None else {"theme": theme}
    timed.take()
    started = clocks()
    found = memory.search(question, user_id=user_name(user), filters=filters, limit=K)
    ended = clocks()
    embedding = timed.take()
    searches.took.append(1e3 * (ended.wall - started.wall - embedding.wall))
    searches.cpu.append(1e3 * (ended.cpu - started.cpu - embedding.cpu))
    searches.embedding.append(1e3 * embedding.wall)
    return [result["memory"] for result in found["results"]]


def flat_searches(store: FlatStore, memos: Sequence[Memo], oracle: Oracle, embedder: Embedder, count: int) -> Searches:
    """Run the same questions on the baseline."""
    searches = Searches()
    for memo, user in _build_questions(memos, count):
        (query,) = embedder.embed([memo.question], kind="query")
        started = time.perf_counter()
        places = store.search(query, user_name(user), K)
        searches.took.append(1e3 * (time.perf_counter() - started))
        searches.recalls.append(oracle.recall(query, user, None, places) or 0.0)
    return searches
