"""Scores of search results, computed without calls to a store or a model.

BM25 (Robertson and Zaragoza, 2009) has two forms here. `bm25` orders a handful of texts among themselves.
`TextMatches.compute_bm25` scores memories, with constants in place of the averages of a corpus: the score of a memory
depends on the query, on the memory and on how many memories share its words, and stays the same when others are added.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from mem0_core.domain.recipes import shortness
from mem0_core.language.temporal import score_day, score_days
from mem0_core.language.terms import split_words
from mem0_core.recall._columns import MemoryColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import DateRange, MemoryItem
    from mem0_core.recall._plan import Search, TransientCandidate


_TOKEN = re.compile(r"[^\W_]+")  # works_at is two words
_MAX_QUERY_WORDS = 512  # BM25 compares each word of a query with every text
_MIN_STEM_CHARS = 4

COMMON_TERM_COUNT = 1024
"""Number of memories from which a shared word weighs nothing; also the assumed size of the corpus."""

_K1, _B, _TYPICAL_TERMS = 1.2, 0.5, 50.0  # parameters of BM25
_HALF_SCORE_BM25 = 25.0  # the BM25 that counts as 0.5
_HALF_CERTAIN_COUNT = 3.0  # mentions that make a relation half certain
_HALF_CERTAIN_MARKS = 3.0  # marks that make feedback half certain
_MONTH_DAYS = 30.44
_DAY_SECONDS = 86_400

_MAX_CONTEXT_LEADERS = 10  # best memories that bring in their neighbors
_MAX_WALK_STARTS = 10  # best memories from which PageRank starts
MAX_WALK_NAMES = 40  # names over which PageRank walks
MAX_NAME_MEMORIES = 50  # a name that more memories share is too common to walk over
_WALK_STEPS, _DAMPING, _HALF_RANK = 2, 0.5, 0.03
_SESSION_LEADERS = 3  # best memories that the score of a session averages
_RANKED_AT_ONCE = 32  # most searches read no more
_DEFERRED_SIGNALS = frozenset({"pagerank", "session"})  # computed from the other signals of all candidates


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25+ score of each text for the words of `query`, among these texts.

    BM25+ (Lv and Zhai, 2011) and not plain BM25, which gives no weight, or a negative one, to a word that half of a
    handful of texts share.
    """
    if not texts:
        return []
    from rank_bm25 import BM25Plus  # a dependency by choice: the formula is kept by others

    asked = _split_words(query)[:_MAX_QUERY_WORDS]
    kept = frozenset(asked)
    words = [[word if word in kept else "" for word in _split_words(text)] for text in texts]
    found = frozenset(word for one in words for word in one if word)
    if not found:
        return [0.0] * len(texts)
    scores: list[float] = BM25Plus(words).get_scores([word for word in asked if word in found]).tolist()
    return scores


def _split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without a final s: "works at" is to match "work"."""
    return [
        word.removesuffix("s") if len(word) >= _MIN_STEM_CHARS and not word.endswith("ss") else word
        for word in _TOKEN.findall(text.casefold())
    ]


# --- words -------------------------------------------------------------------------------------------------------


def compute_word_weights(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the inverse document frequency of each word of a query, from the number of memories that have it."""
    return {
        word: math.log1p((COMMON_TERM_COUNT - count + 0.5) / (count + 0.5))
        for word, count in counts.items()
        if 0 < count < COMMON_TERM_COUNT
    }


def rank_rows_by_words(
    postings: Mapping[str, NDArray[np.int64]],
    weights: Mapping[str, float],
    limit: int,
    allowed_rows: NDArray[np.int64] | None,
) -> list[int]:
    """Return the rows that share the most informative words with a query, best first, the newer of equals first."""
    import numpy as np

    if not weights:
        return []
    found = [postings[word] for word in weights]
    rows, places = np.unique(np.concatenate(found), return_inverse=True)
    sums = np.bincount(places, np.repeat(list(weights.values()), list(map(len, found))))
    return _take_best(rows, sums, limit, allowed_rows)


def rank_rows_by_counts(
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    weights: Mapping[str, float],
    limit: int,
    allowed_rows: NDArray[np.int64] | None,
) -> list[int]:
    """Return the same as `rank_rows_by_words` from the counts of the words in each memory, (words, n)."""
    import numpy as np

    if not weights:
        return []
    # NumPy adds the rows one after another, so that equal sums are equal.
    sums = np.add.reduce((counts > 0) * np.array(list(weights.values()))[:, None], axis=0)
    found = sums > 0
    return _take_best(rows[found], sums[found], limit, allowed_rows)


def _take_best(
    rows: NDArray[np.int64], sums: NDArray[Any], limit: int, allowed_rows: NDArray[np.int64] | None
) -> list[int]:
    """Return the rows with the highest sums, the newer of equals first."""
    import numpy as np

    if allowed_rows is not None:
        kept = np.isin(rows, allowed_rows)
        rows, sums = rows[kept], sums[kept]
    rows, sums = rows[::-1], sums[::-1]
    best: list[int] = rows[np.argsort(-sums, kind="stable")[:limit]].tolist()
    return best


def rank_rows_by_cosine(
    rows: NDArray[np.int64], cosines: NDArray[np.float32], limit: int, allowed_rows: NDArray[np.int64] | None
) -> list[tuple[int, float]]:
    """Return the rows with the highest cosines, best first, each with its cosine."""
    import numpy as np

    if allowed_rows is not None:
        kept = np.isin(rows, allowed_rows)
        rows, cosines = rows[kept], cosines[kept]
    best = np.argsort(-cosines, kind="stable")[:limit]
    return list(zip(rows[best].tolist(), cosines[best].tolist(), strict=True))


def clamp_cosine(cosine: float) -> float:
    """Return a cosine as a signal in [0, 1]."""
    return min(1.0, max(0.0, cosine))


class TextMatches:
    """Matches of texts to a query, as one position per text in NumPy arrays.

    Position 0 is no text: it has no words and a cosine of 0.

    Args:
        weights: the weight of each word of the query, see `compute_word_weights`.

    Attributes:
        dense: cosine of each text to the query, in [0, 1], (n,).
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        import numpy as np

        self._columns = {word: column for column, word in enumerate(weights)}
        self._weights = np.array(list(weights.values()), dtype=np.float64)
        self._counts = np.zeros((1, len(weights)))  # occurrences of each word of the query, (n, words)
        self._lengths = np.zeros(1)  # terms of each text, (n,)
        self.dense = np.zeros(1)

    def add(self, texts: Sequence[str], cosines: Sequence[float]) -> int:
        """Add texts, given as terms separated by spaces; returns the position of the first."""
        import numpy as np

        columns = len(self._weights)
        terms = [text.split(" ") if text else () for text in texts]
        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        found = np.fromiter(map(self._columns.get, chain.from_iterable(terms), repeat(-1)), np.int64, lengths.sum())
        cells = np.repeat(np.arange(len(texts)) * columns, lengths) + found
        counts = np.bincount(cells[found >= 0], minlength=len(texts) * columns).reshape(len(texts), columns)
        return self.add_counted(counts, lengths, np.array(cosines, dtype=np.float64))

    def add_counted(self, counts: NDArray[Any], lengths: NDArray[Any], cosines: NDArray[Any]) -> int:
        """Add texts whose words are counted; returns the position of the first.

        Args:
            counts: occurrences of each word of the query, (n, words).
            lengths: number of terms of each text, (n,).
            cosines: cosine of each text to the query, (n,).
        """
        import numpy as np

        first = len(self.dense)
        self._counts = np.concatenate([self._counts, counts])
        self._lengths = np.concatenate([self._lengths, lengths])
        self.dense = np.concatenate([self.dense, np.clip(cosines.astype(np.float64), 0.0, 1.0)])
        return first

    def compute_bm25(self, *indexes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return BM25 in [0, 1) of the text at each position; given several arrays, of their texts joined."""
        import numpy as np

        counts, lengths = self._counts[indexes[0]], self._lengths[indexes[0]]
        has_others = np.zeros(len(counts), dtype=np.bool_)
        for joined in indexes[1:]:
            counts, lengths = counts + self._counts[joined], lengths + self._lengths[joined]
            has_others |= joined > 0
        typical = np.where(has_others, len(indexes) * _TYPICAL_TERMS, _TYPICAL_TERMS)
        norm = _K1 * (1 - _B + _B * lengths / typical)
        total = (counts * (_K1 + 1) / (counts + norm[:, None])) @ self._weights
        scores: NDArray[np.float64] = total / (total + _HALF_SCORE_BM25)
        return scores


# --- candidates --------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Memories to score at once.

    Attributes:
        memories: their features.
        positions: positions of their texts in the `TextMatches`, (n,).
        previous, following: positions of the texts said just before and after them; 0 for none, (n,).
        is_candidate: False for a memory that may become a candidate later, (n,).
        transient: the last of these memories, which the store does not have in the form that is ranked.
    """

    memories: MemoryColumns
    positions: NDArray[np.int64]
    previous: NDArray[np.int64]
    following: NDArray[np.int64]
    is_candidate: NDArray[np.bool_]
    transient: Sequence[TransientCandidate] = ()

    def join(self, other: Batch) -> Batch:
        """Return these memories, none of which is transient, and then the others."""
        import numpy as np

        return Batch(
            self.memories.join(other.memories),
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.previous, other.previous]),
            np.concatenate([self.following, other.following]),
            np.concatenate([self.is_candidate, other.is_candidate]),
            other.transient,
        )


class RankedMemory(NamedTuple):
    """Score of a candidate in [0, 1], with its signals and their weights.

    Attributes:
        row: row of the memory in the store; None if it is only in `item`.
        has_statements: False if its text is known to make no statements about slots.
        around: rows of the memories said just before and after it; 0 for none.
    """

    row: int | None
    item: MemoryItem | None
    is_unprocessed: bool
    score: float
    signals: Mapping[str, float]
    weights: Mapping[str, float]
    has_statements: bool = True
    around: tuple[int, int] = (0, 0)


class Ranker:
    """Scores the candidates of one search.

    The order of calls is `add` for the candidates of all sources, `get_context_rows` and `get_walk_starts`, each with
    `select` and `add` for the rows that follow from them, then `iter_ranked`. The first candidates decide the weights,
    by the length of their texts, and the speaker that the query names.

    Args:
        event_dates: for rows of memories the days of the events that their relations describe.
    """

    def __init__(self, search: Search, matches: TextMatches, event_dates: Mapping[int, Sequence[DateRange]]) -> None:
        import numpy as np

        self._search = search
        self._recipe = search.request.recipe
        self._matches = matches
        self._event_dates = event_dates
        self._memories = _no_memories()  # that are scored
        self._is_candidate = np.zeros(0, dtype=np.bool_)  # for each of the memories
        self._indexes: dict[int, int] | None = None  # of the memories, by row
        self._transient: dict[int, TransientCandidate] = {}  # by index
        self._names: list[str] = []  # of the signals, in the order in which they were computed
        self._signals = np.zeros((0, 0))  # of the memories, (names, n)
        self._sums = np.zeros(0)  # weighted sum of the signals of each memory
        self._weights: dict[str, float] = {}
        self._speaker: str | None = None

    def add(self, batch: Batch) -> None:
        """Score more memories by all signals but the deferred ones."""
        import numpy as np

        count, memories = len(batch.positions), batch.memories
        if self._weights and not count:
            return
        if not self._weights:
            lengths = np.sort(memories.word_counts[batch.is_candidate])
            self._weights = self._recipe.weights(shortness(int(lengths[len(lengths) // 2]) if len(lengths) else 0))
            if self._search.speaker_words:
                actor_ids = memories.actor_ids[batch.is_candidate]
                self._speaker = _find_single_speaker(self._search.speaker_words, actor_ids)
            self._names = [name for name in self._weights if name not in _DEFERRED_SIGNALS]
        zero_signals, signals, sums = self._find_zero_signals(), np.zeros((len(self._names), count)), np.zeros(count)
        for name, values in zip(self._names, signals, strict=True):
            if name not in zero_signals:
                values[:] = getattr(self, f"_compute_{name}")(batch)
                sums += self._weights[name] * values
        if len(self._sums):
            self._memories = self._memories.join(memories)
            self._is_candidate = np.concatenate([self._is_candidate, batch.is_candidate])
            self._signals, self._sums = np.hstack([self._signals, signals]), np.concatenate([self._sums, sums])
        else:
            self._memories, self._is_candidate = memories, batch.is_candidate.copy()
            self._signals, self._sums = signals, sums
        self._transient.update(enumerate(batch.transient, len(self._sums) - len(batch.transient)))
        self._indexes = None

    def select(self, rows: Iterable[int]) -> list[int]:
        """Make scored memories candidates; returns those of `rows` that are not scored yet."""
        if self._indexes is None:
            self._indexes = dict(zip(self._memories.rows.tolist(), count()))
        found = {row: self._indexes.get(row) for row in rows}
        self._is_candidate[[index for index in found.values() if index is not None]] = True
        return [row for row, index in found.items() if index is None]

    def get_context_rows(self) -> list[int]:
        """Return the rows said just before and after the best, if the recipe weighs them: answers follow questions."""
        if self._weights.keys().isdisjoint({"context_dense", "context_bm25"}):
            return []
        best = self._get_top_indexes(_MAX_CONTEXT_LEADERS)
        around = self._memories.previous_rows[best].tolist() + self._memories.next_rows[best].tolist()
        return [row for row in dict.fromkeys(around) if row]

    def get_walk_starts(self) -> list[str]:
        """Return the names in each of the best candidates so far, from which PageRank walks, separated by newlines.

        The list is empty if the recipe does not weigh PageRank.
        """
        if "pagerank" not in self._weights:
            return []
        names: list[str] = self._memories.names[self._get_top_indexes(_MAX_WALK_STARTS)].tolist()
        return names

    def iter_ranked(self, rows_by_name: Mapping[str, NDArray[np.int64]]) -> Iterator[RankedMemory]:
        """Yield the candidates, best first.

        Args:
            rows_by_name: for each name to walk over the rows of the memories that contain it.
        """
        if "pagerank" in self._weights:
            self._add_deferred("pagerank", self._compute_pagerank(rows_by_name))
        if "session" in self._weights:
            self._add_deferred("session", self._compute_session())
        best = self._get_top_indexes(None)
        for start in range(0, len(best), _RANKED_AT_ONCE):
            yield from self._make_ranked(best[start : start + _RANKED_AT_ONCE])

    def _make_ranked(self, indexes: NDArray[np.int64]) -> Iterator[RankedMemory]:
        names, scale, memories = self._names, self._recipe.score_scale, self._memories
        columns = (
            indexes,
            memories.rows[indexes],
            self._sums[indexes],
            memories.has_slots[indexes],
            memories.previous_rows[indexes],
            memories.next_rows[indexes],
            self._signals[:, indexes].T,
        )
        for index, row, total, has_slots, before, after, signals in zip(*(c.tolist() for c in columns), strict=True):
            transient = self._transient.get(index)
            yield RankedMemory(
                row or None,
                transient.item if transient else None,
                transient.is_unprocessed if transient else False,
                max(0.0, scale(total)),
                dict(zip(names, signals, strict=True)),
                self._weights,
                has_slots,
                (before, after),
            )

    def _add_deferred(self, name: str, signal: NDArray[np.float64]) -> None:
        """Add a signal that is computed from the others, for all memories at once."""
        import numpy as np

        self._names.append(name)
        self._signals = np.vstack([self._signals, signal])
        self._sums = self._sums + self._weights[name] * signal

    def _get_top_indexes(self, limit: int | None) -> NDArray[np.int64]:
        """Return the indexes of the best candidates so far, the newer of equals first."""
        import numpy as np

        candidates = self._is_candidate.nonzero()[0]
        best = np.lexsort((-self._memories.rows[candidates], -self._sums[candidates]))[:limit]
        found: NDArray[np.int64] = candidates[best]
        return found

    # --- signals: one method for each, over a batch of memories -----------------------------------------------------

    def _find_zero_signals(self) -> set[str]:
        """Return the signals that are 0 for every memory, because their source is empty."""
        sources = {
            "speaker": self._speaker,
            "date": self._search.time_spans,
            "graph": self._search.graph.support,
            "evidence": self._search.graph.support,
            "path": self._search.graph.paths,
        }
        return {name for name, source in sources.items() if not source}

    def _compute_dense(self, batch: Batch) -> NDArray[np.float64]:
        return self._matches.dense[batch.positions]

    def _compute_context_dense(self, batch: Batch) -> NDArray[np.float64]:
        dense, previous, following = self._matches.dense, batch.previous, batch.following
        total = dense[batch.positions] + dense[previous] + dense[following]
        mean: NDArray[np.float64] = total / (1 + (previous > 0) + (following > 0))
        return mean

    def _compute_bm25(self, batch: Batch) -> NDArray[np.float64]:
        return self._matches.compute_bm25(batch.positions)

    def _compute_context_bm25(self, batch: Batch) -> NDArray[np.float64]:
        return self._matches.compute_bm25(batch.positions, batch.previous, batch.following)

    def _compute_speaker(self, batch: Batch) -> NDArray[np.bool_]:
        is_speaker: NDArray[np.bool_] = batch.memories.actor_ids == self._speaker
        return is_speaker

    def _compute_role(self, batch: Batch) -> NDArray[np.bool_]:
        role = "assistant" if self._search.request.query.question.asks_assistant else "user"
        has_role: NDArray[np.bool_] = batch.memories.roles == role
        return has_role

    def _compute_question(self, batch: Batch) -> NDArray[np.bool_]:
        return batch.memories.is_question

    def _compute_date(self, batch: Batch) -> list[float]:
        spans = self._search.time_spans
        days = [timestamp[:10] for timestamp in batch.memories.timestamps]
        day_scores = {day: score_day(spans, date.fromisoformat(day)) for day in set(days)}
        events = [self._event_dates.get(row, ()) for row in batch.memories.rows.tolist()]
        event_scores = [max((score_days(spans, dates) for dates in of_memory), default=0.0) for of_memory in events]
        return [max(day_scores[day], score) for day, score in zip(days, event_scores, strict=True)]

    def _compute_graph(self, batch: Batch) -> list[float]:
        support = self._search.graph.support
        return [support.get(row, (0.0, 0))[0] for row in batch.memories.rows.tolist()]

    def _compute_evidence(self, batch: Batch) -> list[float]:
        support = self._search.graph.support
        mentions = [support.get(row, (0.0, 0))[1] for row in batch.memories.rows.tolist()]
        return [count / (count + _HALF_CERTAIN_COUNT) for count in mentions]

    def _compute_path(self, batch: Batch) -> list[float]:
        return [self._search.graph.paths.get(row, 0.0) for row in batch.memories.rows.tolist()]

    def _compute_recency(self, batch: Batch) -> list[float]:
        now = self._search.now
        ages = (now - datetime.fromisoformat(timestamp) for timestamp in batch.memories.timestamps)
        return [0.5 ** (max(0.0, age.total_seconds()) / _DAY_SECONDS / _MONTH_DAYS) for age in ages]

    def _compute_feedback(self, batch: Batch) -> NDArray[np.float64]:
        useful, useless = batch.memories.useful, batch.memories.useless
        feedback: NDArray[np.float64] = (useful - useless) / (useful + useless + _HALF_CERTAIN_MARKS)
        return feedback

    def _compute_session(self) -> NDArray[np.float64]:
        """Return for each candidate a third of the sum of the best three of its session: its share in the subject."""
        import numpy as np

        candidates = self._is_candidate.nonzero()[0]
        candidates = candidates[np.lexsort((-self._sums[candidates], self._memories.sessions[candidates]))]
        sums, sessions = self._sums[candidates], self._memories.sessions[candidates]  # session by session, best first
        is_first = np.ones(len(sessions), dtype=np.bool_)
        is_first[1:] = sessions[1:] != sessions[:-1]
        group = is_first.cumsum() - 1
        leads = np.arange(len(sessions)) - is_first.nonzero()[0][group] < _SESSION_LEADERS
        totals = np.bincount(group[leads], sums[leads])[group]
        scores = np.zeros(len(self._sums))
        is_alone = sessions == 0  # a memory without a session
        scores[candidates] = np.where(is_alone, sums, totals) / _SESSION_LEADERS
        return scores.clip(0.0, 1.0)

    def _compute_pagerank(self, rows_by_name: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return personalized PageRank (Haveliwala, 2002) over memories and the names in them, as p / (p + 0.03).

        It restarts at the best memories, by the square of their score, and at those that have a name of the query.
        """
        import numpy as np

        members = {name: rows.tolist() for name, rows in rows_by_name.items() if 0 < len(rows) <= MAX_NAME_MEMORIES}
        start = self._compute_restart(members)
        names_by_row: dict[int, list[str]] = {}
        for name, rows in members.items():
            for row in rows if len(rows) > 1 else ():
                names_by_row.setdefault(row, []).append(name)
        ranks = start
        for _ in range(_WALK_STEPS):
            ranks = _walk_step(ranks, start, names_by_row, members)
        reached = np.array([ranks.get(row, 0.0) for row in self._memories.rows.tolist()])
        scores: NDArray[np.float64] = reached / (reached + _HALF_RANK)
        return scores

    def _compute_restart(self, members: Mapping[str, Sequence[int]]) -> dict[int, float]:
        """Return the share of each memory in the restarts of PageRank."""
        top = self._get_top_indexes(_MAX_WALK_STARTS)
        best = zip(self._memories.rows[top].tolist(), self._sums[top].tolist(), strict=True)
        start = _normalize_shares({row: max(0.0, total) ** 2 for row, total in best if row})
        names = [name for name in self._search.names if name in members]
        for name in names:
            for row in members[name]:
                start[row] = start.get(row, 0.0) + 1 / len(names) / len(members[name])
        return _normalize_shares(start)


def _walk_step(
    ranks: Mapping[int, float],
    start: Mapping[int, float],
    names_by_row: Mapping[int, Sequence[str]],
    members: Mapping[str, Sequence[int]],
) -> dict[int, float]:
    """Step from memories to their names, rare ones with a higher probability, and on to all memories with that name."""
    reached: dict[str, float] = {}
    for row, rank in ranks.items():
        names = names_by_row.get(row, ())
        total = sum(1 / len(members[name]) for name in names)
        for name in names:
            reached[name] = reached.get(name, 0.0) + rank / len(members[name]) / total
    after = {row: (1 - _DAMPING) * rank for row, rank in start.items()}
    for name, rank in reached.items():
        for row in members[name]:
            after[row] = after.get(row, 0.0) + _DAMPING * rank / len(members[name])
    return after


def _normalize_shares(shares: Mapping[int, float]) -> dict[int, float]:
    """Scale shares to a sum of 1."""
    total = sum(shares.values())
    return {row: share / total for row, share in shares.items()} if total else {}


@cache
def _no_memories() -> MemoryColumns:
    return MemoryColumns.of(())


def _find_single_speaker(words: frozenset[str], actor_ids: Iterable[str | None]) -> str | None:
    """Return the one speaker of the candidates that the words name; None if there are none, or several."""
    if not words:
        return None
    named = {speaker for speaker in set(actor_ids) if speaker and not words.isdisjoint(split_words(speaker))}
    return next(iter(named)) if len(named) == 1 else None
