"""Comparison of the best hits with one another, by a listwise reranker.

A reranker that reads one text at a time cannot know that another text replaces it: "Ranger failed its MOT, Carys's
cousin found me an Isuzu" and "I drive a Ranger" are both about the car. A listwise reranker reads the best messages
together. Without one, `_current` orders them by features of their texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from mem0_core.domain.records import Hit
from mem0_core.errors import ModelError, ReplyError
from mem0_core.flow import Flow
from mem0_core.interfaces import Candidate, ListwiseReranker, Ports
from mem0_core.llm.calls import call_model
from mem0_core.recall._current import find_short_messages, find_successors, order_hits
from mem0_core.recall._plan import Search, SearchRequest
from mem0_core.recall.rerank import SCORE_TOLERANCE, read_numbers

COMPARED_HITS = 10
"""Number of the best hits that are compared; among these are 94 of 100 answers of the stories in ``training``."""

_DATE_CHARS = len("2024-05-08")


def may_compare(ports: Ports, request: SearchRequest) -> bool:
    """Return True if a search may compare its hits: with a listwise reranker that counts, and not by cosines alone."""
    recipe = request.recipe
    is_wanted = request.rerank is not False and not recipe.is_dense_only and recipe.rerank_weight > 0
    has_reranker = ports.reranker is not None  # to ask None for its protocol takes as long as for any other object
    return is_wanted and has_reranker and isinstance(ports.reranker, ListwiseReranker)


def should_compare(ports: Ports, search: Search, hits: Sequence[Hit]) -> bool:
    """Return True if a search compares its hits: short messages of a user, or facts that were extracted from them.

    The model was trained on these, and on no words of an assistant.
    """
    if not may_compare(ports, search.request) or search.request.query.question.asks_assistant:
        return False
    best = hits[:COMPARED_HITS]
    return 2 * len(find_short_messages(best)) > len(best)


def compare_hits(ports: Ports, search: Search, hits: list[Hit]) -> Flow[list[Hit]]:
    """Return hits with the best ones in the order of the listwise reranker; the scores stay in their places.

    Raises:
        ModelError: the reranker failed, or did not return a probability for each hit.
    """
    assert isinstance(ports.reranker, ListwiseReranker)
    best = [hit for hit in hits[:COMPARED_HITS] if hit.score >= search.request.min_score]
    answer = search.slot_answer
    movable = find_successors(answer, best) if answer is not None and answer.memories else range(len(best))
    if not movable:
        return hits
    candidates = [_describe(hit, search) for hit in best]
    try:
        reply = yield from call_model(ports.reranker.compare, search.request.query.text, candidates)
    except ReplyError as error:
        search.notes.append(f"the order is that before the comparison: {error}")
        return hits
    chances = _check_probabilities(reply, len(best), ports.reranker)
    search.no_answer_probability = 1 - sum(chances)
    compared = [replace(hit, before_rerank=hit.score) for hit in best]
    return [*order_hits(compared, chances, movable), *hits[len(best) :]]


def _check_probabilities(reply: Sequence[float], count: int, reranker: ListwiseReranker) -> list[float]:
    """Return the probabilities of a reranker as numbers."""
    chances = read_numbers(reply, count, reranker, "probabilities", "candidates")
    if not all(math.isfinite(chance) and chance >= 0 for chance in chances) or sum(chances) > 1 + SCORE_TOLERANCE:
        raise ModelError(f"{reranker!r} returned {chances}: probabilities of which at most one candidate is the answer")
    return chances


def _describe(hit: Hit, search: Search) -> Candidate:
    day = hit.item.said_at[:_DATE_CHARS]
    return Candidate(
        text=hit.item.text,
        role=hit.item.role or "user",
        day=day,
        days_ago=max(0, (search.request.query.reference - date.fromisoformat(day)).days),
        score=hit.score,
        is_answer=hit.is_answer,
        cosine=hit.signals.get("dense", 0.0),
    )
