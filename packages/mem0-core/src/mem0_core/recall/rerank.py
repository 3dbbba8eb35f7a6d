"""Reranking: a second, slower look at the best of what was found (seed 003, part 5).

First scores (given, or BM25) -> one pass of a model over the best `top_n` -> a blend of both. Without a reranker the
first scores decide alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

from mem0_core.domain.recipes import RERANK_WEIGHT
from mem0_core.domain.records import is_valid_text
from mem0_core.errors import InputError, ModelError, QueryError, ReplyError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Reranker
from mem0_core.recall.ranking import bm25

__all__ = ["compute_lexical_scores", "rerank"]

log = logging.getLogger(__name__)

_HALF_SCORE_BM25 = 8.0
"""The BM25 that counts as a score of 0.5: some two rare words shared, among a few dozen texts."""

_SCORE_TOLERANCE = 1e-6  # how far a score may lie outside [0, 1] and still be meant for 0 or 1


def rerank(
    reranker: Reranker | None,
    query: str,
    texts: Sequence[str],
    *,
    scores: Sequence[float] | None = None,
    top_n: int | None = None,
    weight: float = RERANK_WEIGHT,
    note: Callable[[str], object] = log.warning,
) -> Flow[list[tuple[int, float]]]:
    """Order `texts` by what they say of `query`: (position, score in [0, 1]) of each, best first.

    Args:
        reranker: None for the first scores alone.
        scores: first scores in [0, 1], one for each text; by default those of `compute_lexical_scores`.
        top_n: how many of the best by first score the reranker reads; by default all.
        weight: the reranker's part w of the score, in [0, 1]: ``(1 - w) * first + w * reranked``. With 0 it is
            not asked.
        note: told in one sentence where the reranker's reply was of no use; by default the log is.

    The reranker is called once, or not at all. What it does not read is scored as if it found that as poor as the
    poorest it read: so it stays below, in its order, and on the scale of the others. Ties keep the order of the first
    scores, and those the order of the texts.

    A reply that cannot be read (ReplyError) leaves the first scores as they are.

    Raises:
        QueryError: the query is empty or no valid Unicode.
        InputError: `scores`, `top_n` or `weight` cannot be.
        ModelError: the reranker failed, or gave another number of scores, or one that is no number in [0, 1]. (By a
            millionth more it is cut: that is rounding. Logits are not cut, for that would make most of them equal.)
    """
    _check_arguments(query, texts, scores, top_n, weight)
    first = list(map(float, scores)) if scores is not None else compute_lexical_scores(query, texts)
    order = sorted(range(len(texts)), key=lambda place: -first[place])
    read, rest = order[:top_n], order[len(order) if top_n is None else top_n :]
    plain = [(place, first[place]) for place in order]
    if reranker is None or not read or not weight:
        return plain
    try:
        answer = yield from do(reranker.score, query, [texts[place] for place in read])
    except ReplyError as error:
        note(f"the order is that before reranking: {error}")
        return plain
    second = _check_scores(answer, len(read), reranker)
    blended = [(place, (1 - weight) * first[place] + weight * score) for place, score in zip(read, second, strict=True)]
    blended.sort(key=lambda scored: -scored[1])
    poorest = min(second)
    return [*blended, *((place, (1 - weight) * first[place] + weight * poorest) for place in rest)]


def compute_lexical_scores(query: str, texts: Sequence[str]) -> list[float]:
    """BM25 of each text for the words of `query`, among these texts, on one scale for all queries: [0, 1).

    0 where a text shares no word with the query; ``s / (s + 8)`` of the BM25 score s else. Unlike a division by the
    best score, this does not make a best text of a poor lot look good.
    """
    *found, nothing = bm25(query, [*texts, ""])  # BM25+ gives even the empty text something for each word that is known
    above = [max(0.0, score - nothing) for score in found]
    return [score / (score + _HALF_SCORE_BM25) for score in above]


def _check_arguments(
    query: str, texts: Sequence[str], scores: Sequence[float] | None, top_n: int | None, weight: float
) -> None:
    if not isinstance(query, str) or not query.strip():
        raise QueryError("the query to rerank by is empty", query=query)
    if not is_valid_text(query):
        raise QueryError("the query is not valid Unicode (it holds a lone surrogate)", query=query)
    if isinstance(texts, str):
        raise InputError("texts: a list of texts is wanted, not one text")
    if scores is not None and len(scores) != len(texts):
        raise InputError(f"scores: {len(scores)} of them for {len(texts)} texts")
    for place, score in enumerate(() if scores is None else scores):  # it may be an array, which is not true or false
        if not 0 <= score <= 1:
            raise InputError(f"scores: the one at {place} must lie in [0, 1], and is {score!r}")
    if top_n is not None and top_n < 1:
        raise InputError(f"top_n must be at least 1, not {top_n}")
    if not 0 <= weight <= 1:
        raise InputError(f"weight must lie in [0, 1], not {weight!r}")


def _check_scores(answer: Sequence[float], wanted: int, reranker: Reranker) -> list[float]:
    """The scores that a reranker gave, each in [0, 1]."""
    try:
        scores = [float(score) for score in answer]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{reranker!r} gave something that is no list of scores: {error}") from error
    if len(scores) != wanted:
        raise ModelError(f"{reranker!r} gave {len(scores)} scores for {wanted} texts")
    for score in scores:
        if not math.isfinite(score) or not -_SCORE_TOLERANCE <= score <= 1 + _SCORE_TOLERANCE:
            raise ModelError(
                f"{reranker!r} gave the score {score!r}: it must lie in [0, 1] (a sigmoid makes that of a logit)"
            )
    return [min(1.0, max(0.0, score)) for score in scores]
