"""Recipes: the sources and score weights of a search, as data.

A score is a weighted sum of signals. Each signal is in [0, 1] and depends only on the memory and the query, so that
scores are comparable across queries. The weights depend on the typical length of memories: the shorter a memory, the
more its words and the surrounding conversation add to its vector. A recipe has weights for short texts (chat turns of
up to some 30 words) and for long ones (above 100 words); `Recipe.weights` interpolates between them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

from mem0_core._system.records import dataclass
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.errors import ConfigError

Source = Literal["dense", "lexical", "graph"]

RERANK_WEIGHT = 0.2
"""Default share of the reranker in a score.

Its effect is larger than the number suggests: the best 20 first-stage scores span some 0.2 to 0.3, and a text that the
reranker is certain of (1 against 0) overtakes a lead of up to 0.25. A weak reranker does little harm at this weight; at
0.7 it costs many times its benefit (docs/how-to/reranking.md has the measurements).
"""

LEXICAL_RERANK_WEIGHT = 0.6
"""The same where BM25 among the texts gives the first scores, which is weaker than a search.

For 120 questions of LoCoMo, BM25 alone finds 55 of 100 answers among ten, with mem0-reranker 64 or 65 at any weight
from 0.2 to 0.8.
"""

DEFAULT_RERANKER = "mem0-reranker"
"""Reranker of texts outside a memory."""

DEFAULT_LIST_RERANKER = "mem0-list-reranker"
"""Reranker of a memory with the default embedder, on onnxruntime. It compares lists, and reads other texts as
`DEFAULT_RERANKER` does."""

DEFAULT_RERANK_POOL = 5
"""Number of hits that it reads in a search that did not ask for it.

These cost a few embeddings of a query, and give most of what 20 give: LoCoMo's MRR rises from 66.7 to 69.4, with 20 to
69.6, and that of BEAM by 2.8 in both cases.
"""

DEFAULT_RERANK_CHARS = 300
"""It reads nothing if half of these hits are longer: it was trained on turns, and knows passages less well.

Without this limit the MRR of MuSiQue falls from 85.5 to 81.7; with it, it stays.
"""

_MIDPOINT_WORDS = 48  # a memory of this length is halfway between short and long
_STEEPNESS = 8


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal in a score; 0 switches the signal off.

    Signals are in [0, 1], but `feedback`, which is in (-1, 1).

    Attributes:
        dense: cosine of the memory to the query; in [-1, 1] where it is the only signal.
        bm25: BM25 of the memory for the terms of the query.
        context_dense, context_bm25: the same for the memory together with its neighbors in the conversation.
        speaker: 1 if the query names one person and the memory is by that speaker.
        role: 1 if the memory is by the user and the query names no speaker: users' own statements rank above answers.
        question: 1 if the memory ends with a question, which has little content; the weight is negative.
        date: fit of its time, or of the event dates of its relations, to the time expressions of the query
            (`language.temporal`), whichever is better.
        session: mean score of the best three memories of its session.
        graph: cosine of the nearest relation it supports.
        evidence: n / (n + 3), where n is the number of times those relations were stated.
        pagerank: personalized PageRank over memories and names, from the best memories and the query's names.
        path: score of the graph traversal that reached it.
        recency: 0.5 to the power of its age in months.
        feedback: (u - n) / (u + n + 3), where u and n are the numbers of times that the memory was found useful or
            cited, and useless; 0 without feedback.
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
    feedback: float = 0.0

    def __post_init__(self) -> None:
        for name in SIGNALS:
            weight = getattr(self, name)
            if not isinstance(weight, (int, float)) or not math.isfinite(weight) or abs(weight) > 1:
                raise ConfigError(f"recipe: the weight of {name} must lie in [-1, 1], not {weight!r}")


SIGNALS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Weights))


@dataclass(frozen=True)
class Recipe:
    """The settings of one search.

    Attributes:
        short, long: weights for short texts and for long ones (by default the same).
        sources: sources of candidates; their results are combined.
        pool: number of candidates from each source.
        hops: number of relations followed from the query's entities.
        threshold: the lowest score of a hit, unless the search names another.
        gate: with ``allow_no_answer``, the lowest score of the best hit for an answer.
        rerank_pool: number of hits the reranker reads.
        rerank_weight: share of the reranker in the score.
    """

    name: str
    short: Weights
    long: Weights | None = None
    sources: tuple[Source, ...] = ("dense",)
    pool: int = 40
    hops: int = 1
    threshold: float | None = None
    gate: float = 0.3
    rerank_pool: int = 20
    rerank_weight: float = RERANK_WEIGHT

    def __hash__(self) -> int:
        return hash(self.name)  # each search keeps its result by its recipe

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
        """Return the non-zero weights for texts of this shortness (0 for long, 1 for short)."""
        return dict(_weights(self.short, self.long or self.short, shortness))

    @cached_property
    def signals(self) -> frozenset[str]:
        """Signals with a non-zero weight for any kind of text."""
        ends = self.short, self.long or self.short
        return frozenset(name for end in (0.0, 1.0) for name in _weights(*ends, end))

    @cached_property
    def is_dense_only(self) -> bool:
        return self.signals == {"dense"}

    @cached_property
    def score_scale(self) -> Callable[[float], float]:
        """The function from a weighted sum to a score in [0, 1]: tanh if the weights can exceed 1, else identity."""
        ends = self.short, self.long or self.short
        most = max(sum(weight for weight in _weights(*ends, end).values() if weight > 0) for end in (0.0, 1.0))
        return float if most <= 1.0 + 1e-9 else math.tanh

    def without(self, *names: str) -> Recipe:
        """Return the recipe with these signals switched off."""
        off = dict.fromkeys(names, 0.0)
        if unknown := off.keys() - set(SIGNALS):
            raise ConfigError(f"recipe: unknown signals {sorted(unknown)}; known: {', '.join(SIGNALS)}")
        long = None if self.long is None else dataclasses.replace(self.long, **off)
        return dataclasses.replace(self, short=dataclasses.replace(self.short, **off), long=long)


@lru_cache(maxsize=256)
def _weights(short: Weights, long: Weights, shortness: float) -> dict[str, float]:
    found = {name: _interpolate(getattr(long, name), getattr(short, name), shortness) for name in SIGNALS}
    return {name: weight for name, weight in found.items() if weight}


def _interpolate(long: float, short: float, shortness: float) -> float:
    return round(long + (short - long) * shortness, 2)  # a negligible weight becomes 0


def shortness(typical: float) -> float:
    """Return the shortness of texts with this typical word count: 1 for chat, 0 for pages.

    The count is rounded to a power of two, so that one more memory does not change the scores of all others.
    """
    step = 2.0 ** round(math.log2(max(typical, 1.0)))
    return 1.0 / (1.0 + (step / _MIDPOINT_WORDS) ** _STEEPNESS)


MEM0 = Recipe("mem0", Weights(dense=1.0), rerank_weight=1.0)
"""mem0's search: nearest vectors, separate relations, and a reranker if one is configured."""

PAPER = Recipe("paper", Weights(dense=0.5, graph=0.5), sources=("dense", "graph"))
"""The two graph searches of the Mem0 paper (section 2.2), by entities and by triplets, applied to memories."""

OFFLINE = Recipe(
    "offline",
    Weights(dense=0.55, graph=0.15, path=0.1, date=0.1, recency=0.05, evidence=0.05),
    sources=("dense", "graph"),
    hops=2,
)
"""Search for stores without a model: vectors, two hops around the query's entities, boosts for paths and times."""

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
        feedback=0.02,
    ),
    Weights(dense=0.75, bm25=0.25, speaker=0.15, role=0.1, date=0.2, graph=0.1, path=0.1, pagerank=0.3, feedback=0.02),
    sources=("dense", "lexical", "graph"),
    gate=0.3,
)
"""The default: everything that was measured to help (docs/explanation/recall.md)."""

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (HYBRID, MEM0, PAPER, OFFLINE)}


def resolve_recipe(given: Recipe | Mapping[str, Any] | str) -> Recipe:
    """Return a recipe by name, or from a mapping of fields over the recipe it names (by default `HYBRID`).

    ``{"name": "hybrid", "without": ["date"], "pool": 200}``, with ``short`` and ``long`` as mappings of weights.

    Raises:
        ConfigError: the name or a field is unknown, or a value is invalid.
    """
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str):
        if given not in RECIPES:
            raise ConfigError(f"recipe: unknown recipe {given!r}{suggest(given, RECIPES)}; pass one of them")
        return RECIPES[given]
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"recipe: a name, a Recipe or a mapping is required, not {describe_value(given)}; pass, for example,"
            f" 'hybrid' (accepted names: {', '.join(RECIPES)})"
        )
    fields = dict(given)
    _check_keys(fields, ("without", *(field.name for field in dataclasses.fields(Recipe))), "recipe")
    try:
        base = resolve_recipe(fields.pop("name", "hybrid")).without(*fields.pop("without", ()))
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
            raise ConfigError(f"{where}: unknown key {key!r}{suggest(str(key), known)}; rename it, or leave it out")
