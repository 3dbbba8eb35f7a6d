"""Pure scores: what puts the found in order.

BM25 (Robertson and Zaragoza, 2009) is used twice. `bm25` orders a handful of texts by themselves. `lexical` is for
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

from mem0_core.recipes import Recipe, shortness
from mem0_core.timewords import TimeSpan, fit, fit_days
from mem0_core.words import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.ports import Sketch
    from mem0_core.records import Days, MemoryItem

__all__ = [
    "COMMON",
    "CROWD",
    "NAMES",
    "Asked",
    "Bearing",
    "Candidate",
    "Matches",
    "Ranked",
    "Ranking",
    "best_by_words",
    "bm25",
    "informative",
]

_TOKEN = re.compile(r"[^\W_]+")  # works_at is two words
MAX_QUERY_WORDS = 512  # of a query by BM25, which compares each with every text
_LONG_ENOUGH = 4

COMMON = 1024
"""A word that so many memories share says nothing, and weighs nothing. A word weighs as if there were so many."""

_K1, _B, _TYPICAL, _HALF = 1.2, 0.5, 50.0, 25.0  # of BM25; the last is the score that counts as 0.5
_SAID_OFTEN = 3.0  # a relation said so often counts as half certain
_MONTH = 30.44

LEADERS = 10  # memories of which the neighbours are looked at too
SEEDS = 10  # memories from which PageRank starts
NAMES = 40  # names through which it walks
CROWD = 50  # a name that more memories have leads nowhere
_WALKS, _STAY, _HALF_RANK = 2, 0.5, 0.03
_LATER = frozenset({"pagerank", "session"})  # signals that need the others


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
    scores: list[float] = BM25Plus(words).get_scores(_words(query)[:MAX_QUERY_WORDS]).tolist()
    return scores


def _words(text: str) -> list[str]:
    """The words of a text, in lower case and without a final s: who works somewhere is asked for by "work"."""
    return [
        word.removesuffix("s") if len(word) >= _LONG_ENOUGH and not word.endswith("ss") else word
        for word in _TOKEN.findall(text.casefold())
    ]


# --- words -------------------------------------------------------------------------------------------------------


def informative(postings: Mapping[str, NDArray[np.int64]]) -> dict[str, float]:
    """What each word of a query weighs, by how many memories have it: its inverse document frequency."""
    counts = ((word, len(rows)) for word, rows in postings.items())
    return {word: math.log1p((COMMON - count + 0.5) / (count + 0.5)) for word, count in counts if 0 < count < COMMON}


def best_by_words(
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


class Matches:
    """How texts match a query, a place in each array for a text: what scoring does over and over, NumPy does at once.

    Place 0 is that of no text, which has no words and no cosine.

    Args:
        weights: what each word of the query weighs, see `informative`.

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

    def lexical(self, *places: NDArray[np.int64]) -> NDArray[np.float64]:
        """BM25 of each text, as a number in [0, 1); of several places, of the texts in them together."""
        import numpy as np

        counts, lengths = self._counts[places[0]], self._lengths[places[0]]
        typical = np.full(len(counts), _TYPICAL)
        for more in places[1:]:
            counts, lengths = counts + self._counts[more], lengths + self._lengths[more]
            typical[more > 0] = len(places) * _TYPICAL
        norm = _K1 * (1 - _B + _B * lengths / typical)
        total = (counts * (_K1 + 1) / (counts + norm[:, None])) @ self._weights
        scores: NDArray[np.float64] = total / (total + _HALF)
        return scores


# --- candidates --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query says besides its vector.

    Attributes:
        weights: what each of its words weighs, see `informative`.
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
        place: its place in the `Matches`.
        before, after: those of what was said just before and after it; 0 for nothing.
        item: the memory itself, where it is not in the store as it is ranked.
        pending: it is a message that waits to be remembered.
    """

    sketch: Sketch
    place: int
    before: int = 0
    after: int = 0
    item: MemoryItem | None = None
    pending: bool = False


class Bearing(NamedTuple):
    """What relations say of memories, by their rows.

    Attributes:
        support: the relevance of the nearest relation it supports, and how often those it supports were said.
        paths: how well a traversal of the graph reached it.
        told: the days that the relations it supports are told of.
    """

    support: Mapping[int, tuple[float, int]]
    paths: Mapping[int, float]
    told: Mapping[int, Sequence[Days]]


class Ranked(NamedTuple):
    """What a candidate scores, in [0, 1], with the signals that count for it, and their weights.

    Attributes:
        row: of the memory, in the store; or else it is `item`.
    """

    row: int | None
    item: MemoryItem | None
    pending: bool
    score: float
    signals: Mapping[str, float]
    weights: Mapping[str, float]


class _Batch(NamedTuple):
    """Candidates by columns."""

    sketches: list[Sketch]
    rows: list[int]
    own: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> _Batch:
        import numpy as np

        sketches = [candidate.sketch for candidate in candidates]
        places = np.array([candidate[1:4] for candidate in candidates], dtype=np.int64).reshape(-1, 3)
        return cls(sketches, [sketch.row for sketch in sketches], *places.T)


class Ranking:
    """Scores candidates, in the order: `add` what the sources brought -> `seeds` of the walk -> `add` -> `best`.

    What kind of text it is, and who is named, is told by the first that are added.
    """

    def __init__(self, recipe: Recipe, asked: Asked, matches: Matches, bearing: Bearing) -> None:
        import numpy as np

        self._recipe = recipe
        self._asked = asked
        self._matches = matches
        self._bearing = bearing
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
            lengths = sorted(candidate.sketch.length for candidate in candidates)
            self._weights = self._recipe.weights(shortness(lengths[len(lengths) // 2] if lengths else 0))
            self._named = _the_one(self._asked.speakers, candidates)
        batch, silent = _Batch.of(candidates), self._silent()
        sums = np.zeros(len(candidates))
        for name, weight in self._weights.items():
            if name not in _LATER:
                found = np.zeros(len(candidates)) if name in silent else getattr(self, f"_{name}")(batch)
                values = np.asarray(found, dtype=np.float64)
                self._signals.setdefault(name, []).append(values)
                sums += weight * values
        self._sums = np.concatenate([self._sums, sums])
        self._candidates += candidates
        self._rows = np.concatenate([self._rows, np.array(batch.rows, dtype=np.int64)])

    def beside(self) -> list[int]:
        """Rows of what was said just before and after the best so far, where that counts: answers follow questions."""
        if self._weights.keys().isdisjoint({"context_dense", "context_bm25"}):
            return []
        best = [self._candidates[place].sketch for place in self._first(LEADERS)]
        return [row for sketch in best for row in (sketch.before, sketch.after) if row is not None]

    def seeds(self) -> list[Candidate]:
        """The best so far, from which PageRank walks; none where it counts for nothing."""
        return [self._candidates[place] for place in self._first(SEEDS)] if "pagerank" in self._weights else []

    def best(self, named: Mapping[str, NDArray[np.int64]]) -> Iterator[Ranked]:
        """All candidates, best first; `named` are the rows of those that have each name to walk through."""
        import numpy as np

        if "pagerank" in self._weights:
            self._count("pagerank", self._pagerank(named))
        if "session" in self._weights:
            self._count("session", self._session())
        sums, scale = self._sums.tolist(), self._recipe.scale
        signals = np.array([np.concatenate(parts) for parts in self._signals.values()]).T.tolist()
        for place in self._first(len(self._candidates)):
            one = self._candidates[place]
            own = dict(zip(self._signals, signals[place], strict=True))
            yield Ranked(
                one.sketch.row or None, one.item, one.pending, max(0.0, scale(sums[place])), own, self._weights
            )

    def _count(self, name: str, values: Sequence[float]) -> None:
        """Let a signal of all candidates count that needs the others."""
        import numpy as np

        of_all = np.array(values)
        self._signals[name] = [of_all]
        self._sums = self._sums + self._weights[name] * of_all

    def _first(self, most: int) -> list[int]:
        """Places of the best so far; the newer of equals first."""
        import numpy as np

        found: list[int] = np.lexsort((-self._rows, -self._sums))[:most].tolist()
        return found

    # --- signals: a method for each, over some candidates ----------------------------------------------------------

    def _silent(self) -> set[str]:
        """Those that are 0 for every candidate, as what they go by is not there."""
        bearing = self._bearing
        sources = {
            "speaker": self._named,
            "date": self._asked.dates,
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
        return self._matches.lexical(batch.own)

    def _context_bm25(self, batch: _Batch) -> NDArray[np.float64]:
        return self._matches.lexical(batch.own, batch.before, batch.after)

    def _speaker(self, batch: _Batch) -> list[bool]:
        return [sketch.actor_id == self._named for sketch in batch.sketches]

    def _role(self, batch: _Batch) -> list[bool]:
        return [sketch.actor_id is None and sketch.role == "user" for sketch in batch.sketches]

    def _question(self, batch: _Batch) -> list[bool]:
        return [sketch.asks for sketch in batch.sketches]

    def _date(self, batch: _Batch) -> list[float]:
        dates = self._asked.dates
        days = [sketch.at[:10] for sketch in batch.sketches]
        fits = {day: fit(dates, date.fromisoformat(day)) for day in set(days)}
        told = [self._bearing.told.get(row, ()) for row in batch.rows]
        told_of = [max((fit_days(dates, some) for some in its), default=0.0) for its in told]
        return [max(fits[day], fitting) for day, fitting in zip(days, told_of, strict=True)]

    def _graph(self, batch: _Batch) -> list[float]:
        support = self._bearing.support
        return [support.get(row, (0.0, 0))[0] for row in batch.rows]

    def _evidence(self, batch: _Batch) -> list[float]:
        often = [self._bearing.support.get(row, (0.0, 0))[1] for row in batch.rows]
        return [said / (said + _SAID_OFTEN) for said in often]

    def _path(self, batch: _Batch) -> list[float]:
        return [self._bearing.paths.get(row, 0.0) for row in batch.rows]

    def _recency(self, batch: _Batch) -> list[float]:
        now = self._asked.now
        ages = (now - datetime.fromisoformat(sketch.at) for sketch in batch.sketches)
        return [0.5 ** (max(0.0, age.total_seconds()) / 86_400 / _MONTH) for age in ages]

    def _session(self) -> list[float]:
        """For each candidate a third of the sum of the best three of its session: how much of it is to the point."""
        sessions = [candidate.sketch.session for candidate in self._candidates]
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
        crowds = {name: rows.tolist() for name, rows in named.items() if 0 < len(rows) <= CROWD}
        best = [(self._candidates[place].sketch.row, float(self._sums[place])) for place in self._first(SEEDS)]
        start = _shares({row: max(0.0, total) ** 2 for row, total in best if row})
        asked = [name for name in self._asked.names if name in crowds]
        for name in asked:
            for row in crowds[name]:
                start[row] = start.get(row, 0.0) + 1 / len(asked) / len(crowds[name])
        ranks = start = _shares(start)
        names_of: dict[int, list[str]] = {}
        for name, rows in crowds.items():
            for row in rows if len(rows) > 1 else ():
                names_of.setdefault(row, []).append(name)
        for _ in range(_WALKS):
            ranks = _step(ranks, start, names_of, crowds)
        found = (ranks.get(candidate.sketch.row, 0.0) for candidate in self._candidates)
        return [rank / (rank + _HALF_RANK) for rank in found]


def _step(
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
    after = {row: (1 - _STAY) * rank for row, rank in start.items()}
    for name, rank in reached.items():
        for row in crowds[name]:
            after[row] = after.get(row, 0.0) + _STAY * rank / len(crowds[name])
    return after


def _shares(start: Mapping[int, float]) -> dict[int, float]:
    """The same shares, adding up to 1."""
    total = sum(start.values())
    return {row: share / total for row, share in start.items()} if total else {}


def _the_one(named: frozenset[str], candidates: Sequence[Candidate]) -> str | None:
    """The one speaker among the candidates whose name has one of the words; None where there are none, or several."""
    if not named:
        return None
    speakers = {candidate.sketch.actor_id for candidate in candidates} - {None}
    found = {speaker for speaker in speakers if speaker is not None and not named.isdisjoint(plain(speaker))}
    return next(iter(found)) if len(found) == 1 else None
