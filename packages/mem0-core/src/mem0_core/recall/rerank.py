"""Reranking: a second model scores the best of the results more thoroughly.

The first scores (given, or BM25) select the best `top_n`; the reranker scores them in one call; the result blends both
scores. Without a reranker the first scores decide alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

from mem0_core.domain.recipes import LEXICAL_RERANK_WEIGHT, RERANK_WEIGHT
from mem0_core.domain.records import is_valid_text
from mem0_core.errors import InputError, ModelError, QueryError, ReplyError
from mem0_core.flow import Flow
from mem0_core.interfaces import ContextReranker, Passage, Reranker
from mem0_core.llm.calls import call_model
from mem0_core.recall._ranking import bm25

__all__ = ["compute_lexical_scores", "rerank"]

log = logging.getLogger(__name__)

_HALF_SCORE_BM25 = 8.0
"""The BM25 that counts as a score of 0.5: about two rare words in common, among a few dozen texts."""

SCORE_TOLERANCE = 1e-6
"""Rounding by which a score may exceed [0, 1]."""


def rerank(
    reranker: Reranker | None,
    query: str,
    texts: Sequence[str],
    *,
    scores: Sequence[float] | None = None,
    top_n: int | None = None,
    weight: float | None = None,
    note: Callable[[str], object] = log.warning,
    passages: Sequence[Passage] | None = None,
) -> Flow[list[tuple[int, float]]]:
    """Order `texts` by their relevance to `query`: (position, score in [0, 1]) of each, best first.

    Args:
        reranker: None for the first scores alone.
        scores: first scores in [0, 1], one for each text; by default those of `compute_lexical_scores`.
        top_n: number of the best by first score that the reranker reads; by default all.
        weight: weight w of the reranker in the score, in [0, 1]: ``(1 - w) * first + w * reranked``. With 0 it is
            not called. Default: 0.2 with `scores`, 0.6 without.
        note: called with one sentence if the reranker's reply was unusable; by default it is logged.
        passages: the texts with their context, for a `ContextReranker`.

    The reranker is called at most once. Texts that it does not read get its lowest score of those that it read, so they
    stay below these, in their order and on the same scale. Ties keep the order of the first scores, then that of the
    texts. If the reply cannot be read (ReplyError), the first scores stay as they are.

    Raises:
        QueryError: the query is empty or not valid Unicode.
        InputError: `scores`, `top_n` or `weight` is invalid.
        ModelError: the reranker failed, or returned another number of scores, or a score outside [0, 1]. A score
            outside by a rounding error is clipped; logits are not, as most of them would become equal.
    """
    if weight is None:
        weight = LEXICAL_RERANK_WEIGHT if scores is None else RERANK_WEIGHT
    _check_arguments(query, texts, scores, top_n, weight)
    first = list(map(float, scores)) if scores is not None else compute_lexical_scores(query, texts)
    order = sorted(range(len(texts)), key=lambda index: -first[index])
    read, unread = order[:top_n], order[len(order) if top_n is None else top_n :]
    unchanged = [(index, first[index]) for index in order]
    if reranker is None or not read or not weight:
        return unchanged
    try:
        if passages is not None and isinstance(reranker, ContextReranker):
            reply = yield from call_model(reranker.score_passages, query, [passages[index] for index in read])
        else:
            reply = yield from call_model(reranker.score, query, [texts[index] for index in read])
    except ReplyError as error:
        note(f"the order is that before reranking: {error}")
        return unchanged
    second = _check_scores(reply, len(read), reranker)
    blended = [(index, (1 - weight) * first[index] + weight * score) for index, score in zip(read, second, strict=True)]
    blended.sort(key=lambda scored: -scored[1])
    lowest = min(second)
    return [*blended, *((index, (1 - weight) * first[index] + weight * lowest) for index in unread)]


def compute_lexical_scores(query: str, texts: Sequence[str]) -> list[float]:
    """Return BM25 of each text for the words of `query`, among these texts, on one scale for all queries: [0, 1).

    A text without a word of the query scores 0, others ``s / (s + 8)`` of their BM25 score s. Dividing by the best
    score instead would give the best of poor texts a high score.
    """
    *scores, empty_score = bm25(query, [*texts, ""])  # BM25+ scores even the empty text above 0
    above = [max(0.0, score - empty_score) for score in scores]
    return [score / (score + _HALF_SCORE_BM25) for score in above]


def _check_arguments(
    query: str, texts: Sequence[str], scores: Sequence[float] | None, top_n: int | None, weight: float
) -> None:
    if not isinstance(query, str) or not query.strip():
        raise QueryError("the query to rerank by is empty; give a text", query=query)
    if not is_valid_text(query):
        raise QueryError("the query is not valid Unicode (it holds a lone surrogate)", query=query)
    if isinstance(texts, str):
        raise InputError("texts must be a list of texts, not one text")
    if scores is not None and len(scores) != len(texts):
        raise InputError(f"scores must have one score for each text: {len(scores)} scores for {len(texts)} texts")
    for index, score in enumerate(() if scores is None else scores):  # `or ()` fails for an array
        if not 0 <= score <= 1:
            raise InputError(f"scores[{index}] must lie in [0, 1], not {score!r}")
    if top_n is not None and top_n < 1:
        raise InputError(f"top_n must be at least 1, not {top_n}")
    if not 0 <= weight <= 1:
        raise InputError(f"weight must lie in [0, 1], not {weight!r}")


def _check_scores(reply: Sequence[float], count: int, reranker: Reranker) -> list[float]:
    """Return the scores of a reranker, each clipped to [0, 1]."""
    scores = read_numbers(reply, count, reranker, "scores", "texts")
    for score in scores:
        if not math.isfinite(score) or not -SCORE_TOLERANCE <= score <= 1 + SCORE_TOLERANCE:
            raise ModelError(f"{reranker!r} gave the score {score!r}: it must lie in [0, 1]; apply a sigmoid to logits")
    return [min(1.0, max(0.0, score)) for score in scores]


def read_numbers(reply: Sequence[float], count: int, reranker: Reranker, numbers: str, texts: str) -> list[float]:
    """Return the reply of a reranker as numbers, one for each text.

    Raises:
        ModelError: it has none, or another number of them; the error says so with the nouns `numbers` and `texts`.
    """
    try:
        found = [float(number) for number in reply]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{reranker!r} returned no list of {numbers}: {error}") from error
    if len(found) != count:
        raise ModelError(f"{reranker!r} gave {len(found)} {numbers} for {count} {texts}")
    return found
