"""Relevance of search results: which of them are worth a place in a prompt.

A search ranks everything it has, and most of it does not bear on the query. The scores of one query show which
memories do: each hit is placed between the background (the hits of the lower half) and the best hit,
by its score and by its cosine. Both are relative, so that one floor serves small stores and large ones, and other
embedders. The absolute score counts too: hits of a high score stay, and where even the best one has a low score, only
hits as good as it stay. docs/explanation/recall.md tells how the floor was calibrated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from mem0_core.domain.records import Hit, Relation, fact_opening, same_fact_key
from mem0_core.flow import Flow
from mem0_core.interfaces import Ports
from mem0_core.recall._asked_time import is_over
from mem0_core.recall._plan import Search, SearchRequest
from mem0_core.recall.search import recall

if TYPE_CHECKING:
    from mem0_core.language.question import Question

_BACKGROUND_HITS = 20  # hits that show the background of a query
_FULL_BACKGROUND_HITS = 12  # with fewer, the lower half may consist of relevant hits: the background is lowered
_MAX_BACKGROUND_SHARE = 0.7  # of the highest value: of hits that are all equally good, all are relevant
_LONG_WORDS = 48  # median length from which texts are long messages
_MAX_FLOOR = 0.95


class _Calibration(NamedTuple):
    """Floor for one kind of text.

    Attributes:
        floor: lowest relevance of a hit.
        score_weight: weight of the absolute score; the rest is that of the relative place.
        weak_score: score of the best hit below which the floor rises, up to 1 for a score of 0.
    """

    floor: float
    score_weight: float
    weak_score: float


_FACTS = _Calibration(0.36, 0.1, 0.26)
_TURNS = _Calibration(0.33, 0.1, 0.26)
_LONG = _Calibration(0.3, 0.1, 0.26)
_NEAR_ANSWER_FLOOR = 0.6  # for other hits of a query that is answered
_NOTHING_SHARE = 0.55  # of the gate of a recipe: below it not even the best hit is relevant
_RELATION_SHARE = 0.7  # of the score of the best relation


class RelevantHits(NamedTuple):
    """A search with its relevant hits, and the hits that were left out."""

    search: Search
    left_out: list[Hit]


def recall_relevant(ports: Ports, request: SearchRequest) -> Flow[RelevantHits]:
    """Find the memories that answer a query, and leave out those that do not bear on it.

    With a threshold of its own, the request decides alone.

    Raises:
        ConfigError: as `recall`.
    """
    if request.threshold is not None:
        return RelevantHits((yield from recall(ports, request)), [])
    search = yield from recall(ports, replace(request, limit=max(request.limit, _BACKGROUND_HITS)))
    found = _without_question(search.hits, request.query.text)
    over = frozenset() if search.slot_answer is None else search.slot_answer.over
    selected = select_relevant(found, request.query.question, gate=request.recipe.gate, over=over)
    search.hits = selected[: request.limit]
    kept = {(hit.item.id, hit.item.text) for hit in search.hits}
    return RelevantHits(search, [hit for hit in found if (hit.item.id, hit.item.text) not in kept])


def _without_question(hits: list[Hit], query: str) -> list[Hit]:
    """Return hits without those that are the query itself, if it is a question: they answer nothing."""
    opening = fact_opening(query)
    others = [
        hit
        for hit in hits
        if fact_opening(hit.item.text) != opening or same_fact_key(hit.item.text) != same_fact_key(query)
    ]
    if len(others) == len(hits):
        return hits
    from mem0_core.language.utterances import is_question  # compiles long patterns

    return others if is_question(query) else hits


def select_relevant(
    hits: Sequence[Hit], question: Question, *, gate: float, over: Set[tuple[str, str]] = frozenset()
) -> list[Hit]:
    """Return the hits that bear on a question, in order.

    Args:
        hits: results of one search, best first, with those that do not bear on it.
        gate: the score that the recipe demands of an answer.
        over: ids and texts of memories that do not hold at the time of the question.
    """
    if not hits or hits[0].score < gate * _NOTHING_SHARE:
        return []
    calibration = _calibration(hits)
    values, floor = _measure_relevance(hits, calibration), _find_floor(hits, calibration)
    has_answer = any(hit.is_answer for hit in hits)
    if has_answer:
        floor = max(floor, _NEAR_ANSWER_FLOOR)
    is_about_now = _is_about_now(question)
    return [
        hit
        for hit, value in zip(hits, values, strict=True)
        if hit.is_answer
        or (
            value >= floor
            and not (has_answer and ((hit.item.id, hit.item.text) in over or (is_about_now and is_over(hit))))
        )
    ]


def select_relations(
    relations: Sequence[tuple[Relation, float]], threshold: float | None
) -> list[tuple[Relation, float]]:
    """Return the relations above a threshold; without one, those near the best of them."""
    if threshold is None:
        threshold = _RELATION_SHARE * max((score for _, score in relations), default=0.0)
    return [pair for pair in relations if pair[1] >= threshold]


def order_for_prompt(hits: Sequence[Hit], question: Question) -> list[Hit]:
    """Return hits in the order in which a short prompt takes them.

    For a question about now, hits that are over come last. For a list, each day of a conversation gives its best hit
    before one gives a second.
    """
    ordered = sorted(hits, key=is_over) if _is_about_now(question) else list(hits)
    if not question.is_list:
        return ordered
    turns: Counter[tuple[str | None, str]] = Counter()
    places = []
    for hit in ordered:
        session = hit.item.scope.run_id, hit.item.created_at[:10]
        places.append((not hit.is_answer, is_over(hit), turns[session]))
        turns[session] += 1
    return [hit for _, hit in sorted(zip(places, ordered, strict=True), key=lambda pair: pair[0])]


def _is_about_now(question: Question) -> bool:
    return question.tense in ("now", "any") and not (question.spans or question.anchor or question.event)


def _measure_relevance(hits: Sequence[Hit], calibration: _Calibration) -> list[float]:
    """Return the relevance of each hit: about 1 for the best, 0 for the background."""
    weight = calibration.score_weight
    scores = [hit.score for hit in hits]
    cosines = [hit.signals.get("dense", hit.score) for hit in hits]
    places = zip(_place(scores), _place(cosines), scores, strict=True)
    return [(by_score + by_cosine) / 2 + weight * score for by_score, by_cosine, score in places]


def _place(values: Sequence[float]) -> list[float]:
    """Return the place of each value between the background (0) and the highest (1)."""
    descending = sorted(values, reverse=True)[:_BACKGROUND_HITS]
    count = len(descending)
    background = median(descending[count // 2 :]) * min(1.0, count / _FULL_BACKGROUND_HITS)
    background = min(background, _MAX_BACKGROUND_SHARE * descending[0])
    span = descending[0] - background
    return [max(-1.0, (value - background) / span) if span > 0 else 1.0 for value in values]


def _find_floor(hits: Sequence[Hit], calibration: _Calibration) -> float:
    """Return the lowest relevance of a hit; higher where even the best has a low score."""
    weakness = max(0.0, 1 - max(hit.score for hit in hits) / calibration.weak_score)
    return min(_MAX_FLOOR, calibration.floor + (1 - calibration.floor) * weakness)


def _calibration(hits: Sequence[Hit]) -> _Calibration:
    """Return the calibration for the kind of text that most hits are."""
    if median(len(hit.item.text.split()) for hit in hits) >= _LONG_WORDS:
        return _LONG
    replies = sum(hit.item.role == "assistant" or hit.item.actor_id is not None for hit in hits)
    return _TURNS if 2 * replies >= len(hits) else _FACTS
