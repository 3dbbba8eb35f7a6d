"""Recipes: how a search finds candidates and what it weighs them by, as data.

A score is the weighted sum of signals, each of them in [0, 1] and the same function of a memory and a query wherever
they meet, so that scores mean the same from one query to the next. The weights follow the kind of text by one rule:
the shorter the typical memory, the more its words and the conversation around it say beside its vector. A recipe names
the weights for short texts (turns of a chat, a few words to some thirty) and for long ones (above a hundred), and
`Recipe.weights` lies between them.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from mem0_core.errors import ConfigError

__all__ = ["HYBRID", "MEM0", "OFFLINE", "PAPER", "RECIPES", "SIGNALS", "Recipe", "Source", "Weights", "resolve_recipe"]

Source = Literal["dense", "lexical", "graph"]

RERANK_WEIGHT = 0.2
"""How much of a score is the reranker's, unless told otherwise.

It is more than it looks: the best twenty first scores of a search lie some 0.2 to 0.3 apart, and a text that the
reranker is sure of (1 against 0) passes those that lead by up to 0.25. A weak model costs little so; at 0.7 it costs
many times what it can bring (docs/how-to/reranking.md has the measurements).
"""

_MIDPOINT_WORDS = 48  # words: a memory of that length is as much a short text as a long one
_STEEPNESS = 8


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal adds to a score; 0 switches it off.

    Attributes:
        dense: cosine of the memory to the query.
        bm25: BM25 of the memory for the query's words.
        context_dense, context_bm25: the same of the memory with those said just before and after it.
        speaker: 1 where the query names one person, and this one said it.
        role: 1 where the user said it, and no speaker is named: what users say of themselves counts before answers.
        question: 1 where the memory ends with a question, which tells little; its weight is negative.
        date: how well its time fits the time words of the query (`timewords.fit`), or the days that a relation it says
            is told of (`timewords.score_days`), whichever fits better.
        session: mean score of the best three of what was said with it.
        graph: the nearest relation it supports.
        evidence: how often those relations were said, as n / (n + 3).
        pagerank: personalised PageRank over memories and names, from the best memories and the query's names.
        path: what a traversal of the graph for the query reached it with.
        recency: 0.5 to the number of months since it was said.
    """

    dense: float = 0.0
    bm25: float = 0.0
    context_dense: float = 0.0
    context_bm25: float = 0.0
    speaker: float = 0.0
    role: float = 0.0
    question: float = 0.0
    date: float = 0.0
    session: float = 0.0
    graph: float = 0.0
    evidence: float = 0.0
    pagerank: float = 0.0
    path: float = 0.0
    recency: float = 0.0

    def __post_init__(self) -> None:
        for name in SIGNALS:
            weight = getattr(self, name)
            if not isinstance(weight, (int, float)) or not math.isfinite(weight) or abs(weight) > 1:
                raise ConfigError(f"recipe: the weight of {name} must lie in [-1, 1], not {weight!r}")


SIGNALS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Weights))


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one search is made.

    Attributes:
        short, long: weights for short texts, and for long ones (by default the same).
        sources: where candidates come from; they are united.
        pool: how many candidates each source brings.
        hops: how far from the query's entities relations are followed.
        threshold: hits that score lower are left out, unless the search names another.
        gate: with ``allow_no_answer``, the score that the best hit has to reach, or there is none.
        rerank_pool: how many of the best a reranker reads.
        rerank_weight: its part of the score.
    """

    name: str
    short: Weights
    long: Weights | None = None
    sources: tuple[Source, ...] = ("dense",)
    pool: int = 40
    hops: int = 1
    threshold: float | None = None
    gate: float = 0.3
    rerank_pool: int = 30
    rerank_weight: float = RERANK_WEIGHT

    def __post_init__(self) -> None:
        if not self.sources or not set(self.sources) <= {"dense", "lexical", "graph"}:
            raise ConfigError(f"recipe {self.name!r}: sources are dense, lexical and graph, not {self.sources!r}")
        for name in ("pool", "rerank_pool"):
            if getattr(self, name) < 1:
                raise ConfigError(f"recipe {self.name!r}: {name} must be at least 1, not {getattr(self, name)!r}")
        if not 1 <= self.hops <= 4:
            raise ConfigError(f"recipe {self.name!r}: hops must lie between 1 and 4, not {self.hops!r}")
        for name in ("gate", "rerank_weight", *(("threshold",) if self.threshold is not None else ())):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"recipe {self.name!r}: {name} must lie in [0, 1], not {getattr(self, name)!r}")

    def weights(self, shortness: float) -> dict[str, float]:
        """The weight of each signal where texts are as short as this (0 for long, 1 for short); none that is 0."""
        return dict(_weights(self.short, self.long or self.short, shortness))

    @property
    def signals(self) -> frozenset[str]:
        """Those that count for any kind of text."""
        return _signals(self.short, self.long or self.short)

    @property
    def is_dense_only(self) -> bool:
        return self.signals == {"dense"}

    @property
    def score_scale(self) -> Callable[[float], float]:
        """What makes a score in [0, 1] of a weighted sum: nothing where weights add up to 1 at most, else tanh."""
        return _scale(self.short, self.long or self.short)

    def without(self, *names: str) -> Recipe:
        """The recipe with these signals switched off."""
        off = dict.fromkeys(names, 0.0)
        if unknown := off.keys() - set(SIGNALS):
            raise ConfigError(f"recipe: unknown signals {sorted(unknown)}; known: {', '.join(SIGNALS)}")
        long = None if self.long is None else dataclasses.replace(self.long, **off)
        return dataclasses.replace(self, short=dataclasses.replace(self.short, **off), long=long)


@lru_cache(maxsize=256)  # one search asks several times
def _weights(short: Weights, long: Weights, shortness: float) -> dict[str, float]:
    found = {name: _interpolate(getattr(long, name), getattr(short, name), shortness) for name in SIGNALS}
    return {name: weight for name, weight in found.items() if weight}


@lru_cache(maxsize=256)
def _signals(short: Weights, long: Weights) -> frozenset[str]:
    return frozenset({**_weights(short, long, 0.0), **_weights(short, long, 1.0)})


@lru_cache(maxsize=256)
def _scale(short: Weights, long: Weights) -> Callable[[float], float]:
    most = max(sum(w for w in _weights(short, long, end).values() if w > 0) for end in (0.0, 1.0))
    return float if most <= 1.0 + 1e-9 else math.tanh


def _interpolate(long: float, short: float, shortness: float) -> float:
    return round(long + (short - long) * shortness, 2)  # a weight that makes no difference is none


def shortness(typical: float) -> float:
    """How short texts are whose typical length is so many words: 1 for chat, 0 for pages.

    Lengths count by powers of two, so that one more memory does not change what all others score.
    """
    step = 2.0 ** round(math.log2(max(typical, 1.0)))
    return 1.0 / (1.0 + (step / _MIDPOINT_WORDS) ** _STEEPNESS)


MEM0 = Recipe("mem0", Weights(dense=1.0), rerank_weight=1.0)
"""mem0's search: the nearest vectors, relations beside them, a reranker where one is configured."""

PAPER = Recipe("paper", Weights(dense=0.5, graph=0.5), sources=("dense", "graph"))
"""Seed 001's two ways through the graph, by entities and by triplets: memories that say the relations so found."""

OFFLINE = Recipe(
    "offline",
    Weights(dense=0.55, graph=0.15, path=0.1, date=0.1, recency=0.05, evidence=0.05),
    sources=("dense", "graph"),
    hops=2,
)
"""Seed 003, part 5: vector pre-recall, two hops around the query's entities, boosts for paths and times."""

HYBRID = Recipe(
    "hybrid",
    Weights(
        dense=0.35,
        bm25=0.15,
        context_dense=0.15,
        context_bm25=0.45,
        speaker=0.15,
        role=0.1,
        question=-0.05,
        date=0.2,
        session=0.35,
        graph=0.1,
        path=0.1,
    ),
    Weights(dense=0.75, bm25=0.25, speaker=0.15, role=0.1, date=0.2, graph=0.1, path=0.1, pagerank=0.3),
    sources=("dense", "lexical", "graph"),
    gate=0.4,
)
"""The default: everything that was measured to help (docs/explanation/recall.md)."""

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (HYBRID, MEM0, PAPER, OFFLINE)}


def resolve_recipe(given: Recipe | Mapping[str, Any] | str) -> Recipe:
    """The recipe that is named, or made from a mapping of its fields over the one it names (by default `HYBRID`).

    ``{"name": "hybrid", "without": ["date"], "pool": 200}``, with ``short`` and ``long`` as mappings of weights.

    Raises:
        ConfigError: there is none of that name, or a field is unknown or wrong.
    """
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str):
        if given not in RECIPES:
            raise ConfigError(f"recipe: unknown recipe {given!r}; known: {', '.join(RECIPES)}")
        return RECIPES[given]
    if not isinstance(given, Mapping):
        raise ConfigError(f"recipe: a name, a Recipe or a mapping, not {type(given).__name__}")
    fields = dict(given)
    _check_keys(fields, ("without", *(field.name for field in dataclasses.fields(Recipe))), "recipe")
    base = resolve_recipe(fields.pop("name", "hybrid")).without(*fields.pop("without", ()))
    try:
        for end in ("short", "long"):
            if isinstance(fields.get(end), Mapping):
                _check_keys(fields[end], SIGNALS, f"recipe.{end}")
                fields[end] = dataclasses.replace(getattr(base, end) or base.short, **fields[end])
        if "sources" in fields:
            fields["sources"] = tuple(fields["sources"])
        return dataclasses.replace(base, **fields)
    except TypeError as error:
        raise ConfigError(f"recipe: {error}") from error


def _check_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
            raise ConfigError(f"{where}: unknown key {key!r}; {hint}")
