"""Pure scores: what puts the found in order.

BM25 (Robertson and Zaragoza, 2009) is used twice. `bm25` orders a handful of texts by themselves. `compute_bm25` is for
memories: with constants in place of what a corpus has on average, so that the score of a memory depends on the query,
on it and on how many memories share its words, and stays where it is when something else is remembered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from mem0_core.domain.recipes import Recipe, shortness
from mem0_core.language.temporal import TimeSpan, score_day, score_days
from mem0_core.language.terms import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import DateRange, MemoryItem
    from mem0_core.interfaces import MemoryFeatures

__all__ = [
    "COMMON_TERM_COUNT",
    "MAX_NAME_MEMORIES",
    "MAX_WALK_NAMES",
    "Candidate",
    "GraphSignals",
    "ParsedQuery",
    "RankedMemory",
    "Ranker",
    "TextMatches",
    "bm25",
    "compute_word_weights",
    "rank_rows_by_words",
]

_TOKEN = re.compile(r"[^\W_]+")  # works_at is two words
MAX_QUERY_WORDS = 512  # of a query by BM25, which compares each with every text
_MIN_STEM_CHARS = 4

COMMON_TERM_COUNT = 1024
"""A word that so many memories share says nothing, and weighs nothing. A word weighs as if there were so many."""

_K1, _B, _TYPICAL_TERMS, _HALF_SCORE_BM25 = 1.2, 0.5, 50.0, 25.0  # of BM25; the last is the score that counts as 0.5
_HALF_CERTAIN_COUNT = 3.0  # a relation said so often counts as half certain
_MONTH_DAYS = 30.44

MAX_CONTEXT_LEADERS = 10  # memories of which the neighbours are looked at too
MAX_PAGERANK_SEEDS = 10  # memories from which PageRank starts
MAX_WALK_NAMES = 40  # names through which it walks
MAX_NAME_MEMORIES = 50  # a name that more memories have leads nowhere
_WALK_STEPS, _DAMPING, _HALF_RANK = 2, 0.5, 0.03
_DEFERRED_SIGNALS = frozenset({"pagerank", "session"})  # signals that need the others


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """BM25+ of each text for the words of `query`, among these texts; equal where they say nothing of it.

    BM25+ (Lv and Zhai, 2011), not plain BM25: that gives a word which half of a handful of texts share no weight, or
    a negative one.
    """
    if not texts:
        return []
    from rank_bm25 import BM25Plus

    words = [_split_words(text) for text in texts]
    if not any(words):
        return [0.0] * len(texts)
    scores: list[float] = BM25Plus(words).get_scores(_split_words(query)[:MAX_QUERY_WORDS]).tolist()
    return scores


def _split_words(text: str) -> list[str]:
    """The words of a text, in lower case and without a final s: who works somewhere is asked for by "work"."""
    return [
        word.removesuffix("s") if len(word) >= _MIN_STEM_CHARS and not word.endswith("ss") else word
        for word in _TOKEN.findall(text.casefold())
    ]


# --- words -------------------------------------------------------------------------------------------------------


def compute_word_weights(postings: Mapping[str, NDArray[np.int64]]) -> dict[str, float]:
    """What each word of a query weighs, by how many memories have it: its inverse document frequency."""
    counts = ((word, len(rows)) for word, rows in postings.items())
    return {
        word: math.log1p((COMMON_TERM_COUNT - count + 0.5) / (count + 0.5))
        for word, count in counts
        if 0 < count < COMMON_TERM_COUNT
    }


def rank_rows_by_words(
    postings: Mapping[str, NDArray[np.int64]], weights: Mapping[str, float], limit: int, only: NDArray[np.int64] | None
) -> list[int]:
    """The rows that share the most informative words with a query, best first, the newer of equals first."""
    import numpy as np

    if not weights:
        return []
    found = [postings[word] for word in weights]
    rows, places = np.unique(np.concatenate(found), return_inverse=True)
    sums = np.bincount(places, np.repeat(list(weights.values()), list(map(len, found))))
    if only is not None:
        kept = np.isin(rows, only)
        rows, sums = rows[kept], sums[kept]
    rows, sums = rows[::-1], sums[::-1]
    best: list[int] = rows[np.argsort(-sums, kind="stable")[:limit]].tolist()
    return best


class TextMatches:
    """How texts match a query, a place in each array for a text: what scoring does over and over, NumPy does at once.

    Place 0 is that of no text, which has no words and no cosine.

    Args:
        weights: what each word of the query weighs, see `compute_word_weights`.

    Attributes:
        dense: the cosine of each text to the query, in [0, 1], (n,).
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        import numpy as np

        self._columns = {word: column for column, word in enumerate(weights)}
        self._weights = np.array(list(weights.values()), dtype=np.float64)
        self._counts = np.zeros((1, len(weights)))  # how often a text has each of the query's words
        self._lengths = np.zeros(1)  # how many terms it has
        self.dense = np.zeros(1)

    def add(self, texts: Sequence[str], cosines: Sequence[float]) -> int:
        """Add texts, the terms of each between spaces; returns the place of the first."""
        import numpy as np

        first, columns = len(self.dense), len(self._weights)
        terms = [text.split(" ") if text else () for text in texts]
        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        found = np.fromiter(map(self._columns.get, chain.from_iterable(terms), repeat(-1)), np.int64, lengths.sum())
        cells = np.repeat(np.arange(len(texts)) * columns, lengths) + found
        counts = np.bincount(cells[found >= 0], minlength=len(texts) * columns).reshape(len(texts), columns)
        self._counts = np.concatenate([self._counts, counts])
        self._lengths = np.concatenate([self._lengths, lengths])
        self.dense = np.concatenate([self.dense, np.clip(np.array(cosines, dtype=np.float64), 0.0, 1.0)])
        return first

    def compute_bm25(self, *places: NDArray[np.int64]) -> NDArray[np.float64]:
        """BM25 of each text, as a number in [0, 1); of several places, of the texts in them together."""
        import numpy as np

        counts, lengths = self._counts[places[0]], self._lengths[places[0]]
        typical = np.full(len(counts), _TYPICAL_TERMS)
        for more in places[1:]:
            counts, lengths = counts + self._counts[more], lengths + self._lengths[more]
            typical[more > 0] = len(places) * _TYPICAL_TERMS
        norm = _K1 * (1 - _B + _B * lengths / typical)
        total = (counts * (_K1 + 1) / (counts + norm[:, None])) @ self._weights
        scores: NDArray[np.float64] = total / (total + _HALF_SCORE_BM25)
        return scores


# --- candidates --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What a query says besides its vector.

    Attributes:
        weights: what each of its words weighs, see `compute_word_weights`.
        speakers: its words that belong to the names of those who say things in its scope.
        names: other names in it.
        dates: the spans of its time words.
        now: for recency.
    """

    now: datetime
    weights: Mapping[str, float] = field(default_factory=dict)
    speakers: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    dates: tuple[TimeSpan, ...] = ()


class Candidate(NamedTuple):
    """A memory that a source brought.

    Attributes:
        place: its place in the `TextMatches`.
        before, after: those of what was said just before and after it; 0 for nothing.
        item: the memory itself, where it is not in the store as it is ranked.
        pending: it is a message that waits to be remembered.
    """

    features: MemoryFeatures
    position: int
    before: int = 0
    after: int = 0
    item: MemoryItem | None = None
    is_unprocessed: bool = False


class GraphSignals(NamedTuple):
    """What relations say of memories, by their rows.

    Attributes:
        support: the relevance of the nearest relation it supports, and how often those it supports were said.
        paths: how well a traversal of the graph reached it.
        told: the days that the relations it supports are told of.
    """

    support: Mapping[int, tuple[float, int]]
    paths: Mapping[int, float]
    told: Mapping[int, Sequence[DateRange]]


class RankedMemory(NamedTuple):
    """What a candidate scores, in [0, 1], with the signals that count for it, and their weights.

    Attributes:
        row: of the memory, in the store; or else it is `item`.
    """

    row: int | None
    item: MemoryItem | None
    is_unprocessed: bool
    score: float
    signals: Mapping[str, float]
    weights: Mapping[str, float]


class _Batch(NamedTuple):
    """Candidates by columns."""

    sketches: list[MemoryFeatures]
    rows: list[int]
    own: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> _Batch:
        import numpy as np

        sketches = [candidate.features for candidate in candidates]
        places = np.array([candidate[1:4] for candidate in candidates], dtype=np.int64).reshape(-1, 3)
        return cls(sketches, [sketch.row for sketch in sketches], *places.T)


class Ranker:
    """Scores candidates, in the order: `add` what the sources brought -> `seeds` of the walk -> `add` -> `best`.

    What kind of text it is, and who is named, is told by the first that are added.
    """

    def __init__(
        self, recipe: Recipe, parsed_query: ParsedQuery, matches: TextMatches, graph_signals: GraphSignals
    ) -> None:
        import numpy as np

        self._recipe = recipe
        self._parsed_query = parsed_query
        self._matches = matches
        self._graph_signals = graph_signals
        self._candidates: list[Candidate] = []
        self._rows = np.zeros(0, dtype=np.int64)  # of the candidates, 0 for what is not in the store
        self._signals: dict[str, list[NDArray[np.float64]]] = {}  # of the candidates, as they were added
        self._sums = np.zeros(0)  # of the signals of each candidate, by their weights
        self._weights: dict[str, float] = {}
        self._named: str | None = None

    def add(self, candidates: Sequence[Candidate]) -> None:
        import numpy as np

        if self._weights and not candidates:
            return
        if not self._weights:
            lengths = sorted(candidate.features.word_count for candidate in candidates)
            self._weights = self._recipe.weights(shortness(lengths[len(lengths) // 2] if lengths else 0))
            self._named = _find_single_speaker(self._parsed_query.speakers, candidates)
        batch, silent = _Batch.of(candidates), self._find_zero_signals()
        sums = np.zeros(len(candidates))
        for name, weight in self._weights.items():
            if name not in _DEFERRED_SIGNALS:
                found = np.zeros(len(candidates)) if name in silent else getattr(self, f"_{name}")(batch)
                values = np.asarray(found, dtype=np.float64)
                self._signals.setdefault(name, []).append(values)
                sums += weight * values
        self._sums = np.concatenate([self._sums, sums])
        self._candidates += candidates
        self._rows = np.concatenate([self._rows, np.array(batch.rows, dtype=np.int64)])

    def get_context_rows(self) -> list[int]:
        """Rows of what was said just before and after the best so far, where that counts: answers follow questions."""
        if self._weights.keys().isdisjoint({"context_dense", "context_bm25"}):
            return []
        best = [self._candidates[place].features for place in self._get_top_indexes(MAX_CONTEXT_LEADERS)]
        return [row for sketch in best for row in (sketch.previous_row, sketch.next_row) if row is not None]

    def seeds(self) -> list[Candidate]:
        """The best so far, from which PageRank walks; none where it counts for nothing."""
        return (
            [self._candidates[place] for place in self._get_top_indexes(MAX_PAGERANK_SEEDS)]
            if "pagerank" in self._weights
            else []
        )

    def iter_ranked(self, named: Mapping[str, NDArray[np.int64]]) -> Iterator[RankedMemory]:
        """All candidates, best first; `named` are the rows of those that have each name to walk through."""
        import numpy as np

        if "pagerank" in self._weights:
            self._add_signal("pagerank", self._pagerank(named))
        if "session" in self._weights:
            self._add_signal("session", self._session())
        sums, scale = self._sums.tolist(), self._recipe.score_scale
        signals = np.array([np.concatenate(parts) for parts in self._signals.values()]).T.tolist()
        for place in self._get_top_indexes(len(self._candidates)):
            one = self._candidates[place]
            own = dict(zip(self._signals, signals[place], strict=True))
            yield RankedMemory(
                one.features.row or None, one.item, one.is_unprocessed, max(0.0, scale(sums[place])), own, self._weights
            )

    def _add_signal(self, name: str, values: Sequence[float]) -> None:
        """Let a signal of all candidates count that needs the others."""
        import numpy as np

        of_all = np.array(values)
        self._signals[name] = [of_all]
        self._sums = self._sums + self._weights[name] * of_all

    def _get_top_indexes(self, limit: int) -> list[int]:
        """Places of the best so far; the newer of equals first."""
        import numpy as np

        found: list[int] = np.lexsort((-self._rows, -self._sums))[:limit].tolist()
        return found

    # --- signals: a method for each, over some candidates ----------------------------------------------------------

    def _find_zero_signals(self) -> set[str]:
        """Those that are 0 for every candidate, as what they go by is not there."""
        bearing = self._graph_signals
        sources = {
            "speaker": self._named,
            "date": self._parsed_query.dates,
            "graph": bearing.support,
            "evidence": bearing.support,
            "path": bearing.paths,
        }
        return {name for name, source in sources.items() if not source}

    def _dense(self, batch: _Batch) -> NDArray[np.float64]:
        return self._matches.dense[batch.own]

    def _context_dense(self, batch: _Batch) -> NDArray[np.float64]:
        dense, before, after = self._matches.dense, batch.before, batch.after
        mean: NDArray[np.float64] = (dense[batch.own] + dense[before] + dense[after]) / (1 + (before > 0) + (after > 0))
        return mean

    def _bm25(self, batch: _Batch) -> NDArray[np.float64]:
        return self._matches.compute_bm25(batch.own)

    def _context_bm25(self, batch: _Batch) -> NDArray[np.float64]:
        return self._matches.compute_bm25(batch.own, batch.before, batch.after)

    def _speaker(self, batch: _Batch) -> list[bool]:
        return [sketch.actor_id == self._named for sketch in batch.sketches]

    def _role(self, batch: _Batch) -> list[bool]:
        return [sketch.actor_id is None and sketch.role == "user" for sketch in batch.sketches]

    def _question(self, batch: _Batch) -> list[bool]:
        return [sketch.is_question for sketch in batch.sketches]

    def _date(self, batch: _Batch) -> list[float]:
        dates = self._parsed_query.dates
        days = [sketch.timestamp[:10] for sketch in batch.sketches]
        fits = {day: score_day(dates, date.fromisoformat(day)) for day in set(days)}
        told = [self._graph_signals.told.get(row, ()) for row in batch.rows]
        told_of = [max((score_days(dates, some) for some in its), default=0.0) for its in told]
        return [max(fits[day], fitting) for day, fitting in zip(days, told_of, strict=True)]

    def _graph(self, batch: _Batch) -> list[float]:
        support = self._graph_signals.support
        return [support.get(row, (0.0, 0))[0] for row in batch.rows]

    def _evidence(self, batch: _Batch) -> list[float]:
        often = [self._graph_signals.support.get(row, (0.0, 0))[1] for row in batch.rows]
        return [said / (said + _HALF_CERTAIN_COUNT) for said in often]

    def _path(self, batch: _Batch) -> list[float]:
        return [self._graph_signals.paths.get(row, 0.0) for row in batch.rows]

    def _recency(self, batch: _Batch) -> list[float]:
        now = self._parsed_query.now
        ages = (now - datetime.fromisoformat(sketch.timestamp) for sketch in batch.sketches)
        return [0.5 ** (max(0.0, age.total_seconds()) / 86_400 / _MONTH_DAYS) for age in ages]

    def _session(self) -> list[float]:
        """For each candidate a third of the sum of the best three of its session: how much of it is to the point."""
        sessions = [candidate.features.session for candidate in self._candidates]
        sums = self._sums.tolist()
        of_session: dict[int | None, list[float]] = {}
        for session, total in zip(sessions, sums, strict=True):
            of_session.setdefault(session, []).append(total)
        thirds = {
            session: sum(totals if len(totals) <= 3 else sorted(totals)[-3:]) / 3
            for session, totals in of_session.items()
        }
        return [
            min(1.0, max(0.0, total / 3 if session is None else thirds[session]))
            for session, total in zip(sessions, sums, strict=True)
        ]

    def _pagerank(self, named: Mapping[str, NDArray[np.int64]]) -> list[float]:
        """Personalised PageRank (Haveliwala, 2002) over memories and the names in them, as p / (p + 0.03).

        It restarts at the best memories, by the square of their score, and at those that have a name of the query.
        """
        crowds = {name: rows.tolist() for name, rows in named.items() if 0 < len(rows) <= MAX_NAME_MEMORIES}
        best = [
            (self._candidates[place].features.row, float(self._sums[place]))
            for place in self._get_top_indexes(MAX_PAGERANK_SEEDS)
        ]
        start = _normalize_shares({row: max(0.0, total) ** 2 for row, total in best if row})
        asked = [name for name in self._parsed_query.names if name in crowds]
        for name in asked:
            for row in crowds[name]:
                start[row] = start.get(row, 0.0) + 1 / len(asked) / len(crowds[name])
        ranks = start = _normalize_shares(start)
        names_of: dict[int, list[str]] = {}
        for name, rows in crowds.items():
            for row in rows if len(rows) > 1 else ():
                names_of.setdefault(row, []).append(name)
        for _ in range(_WALK_STEPS):
            ranks = _walk_step(ranks, start, names_of, crowds)
        found = (ranks.get(candidate.features.row, 0.0) for candidate in self._candidates)
        return [rank / (rank + _HALF_RANK) for rank in found]


def _walk_step(
    ranks: Mapping[int, float],
    start: Mapping[int, float],
    names_of: Mapping[int, Sequence[str]],
    crowds: Mapping[str, Sequence[int]],
) -> dict[int, float]:
    """One step from memories to their names, the rarer the likelier, and on to all that have them; half starts anew."""
    reached: dict[str, float] = {}
    for row, rank in ranks.items():
        names = names_of.get(row, ())
        total = sum(1 / len(crowds[name]) for name in names)
        for name in names:
            reached[name] = reached.get(name, 0.0) + rank / len(crowds[name]) / total
    after = {row: (1 - _DAMPING) * rank for row, rank in start.items()}
    for name, rank in reached.items():
        for row in crowds[name]:
            after[row] = after.get(row, 0.0) + _DAMPING * rank / len(crowds[name])
    return after


def _normalize_shares(start: Mapping[int, float]) -> dict[int, float]:
    """The same shares, adding up to 1."""
    total = sum(start.values())
    return {row: share / total for row, share in start.items()} if total else {}


def _find_single_speaker(named: frozenset[str], candidates: Sequence[Candidate]) -> str | None:
    """The one speaker among the candidates whose name has one of the words; None where there are none, or several."""
    if not named:
        return None
    speakers = {candidate.features.actor_id for candidate in candidates} - {None}
    found = {speaker for speaker in speakers if speaker is not None and not named.isdisjoint(split_words(speaker))}
    return next(iter(found)) if len(found) == 1 else None
