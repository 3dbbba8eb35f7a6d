"""The rerank stage: a first score, one pass of a model over the best, a blend."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mem0_core
from mem0_core.domain.recipes import RERANK_WEIGHT
from mem0_core.errors import ConfigError, InputError, ModelError, QueryError, ReplyError
from mem0_core.flow import arun, run
from mem0_core.recall.rerank import compute_lexical_scores
from mem0_core.recall.rerank import rerank as flow

TEXTS = ["Maya keeps bees", "Tom sails a boat", "Maya sails on Sundays", "nothing of the kind"]

Ranked = list[tuple[int, float]]


class ScriptedReranker:
    """A reranker with a given answer that records its calls."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str]]] = []

    def __repr__(self) -> str:
        return "ScriptedReranker()"

    def score(self, query: str, texts: Sequence[str]) -> Any:
        self.asked.append((query, list(texts)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(texts) if callable(self.answer) else self.answer


@pytest.fixture(params=["sync", "async"])
def rerank(request: pytest.FixtureRequest) -> Callable[..., Ranked]:
    if request.param == "sync":
        return mem0_core.rerank
    return lambda *args, **kwargs: asyncio.run(mem0_core.arerank(*args, **kwargs))


def test_without_a_reranker_the_first_scores_decide(rerank: Callable[..., Ranked]) -> None:
    texts, scores = ["a", "b", "c"], [0.2, 0.9, 0.5]
    assert rerank("q", texts, scores=scores, reranker=None) == [(1, 0.9), (2, 0.5), (0, 0.2)]
    few = np.array([0.25, 0.5], np.float32)
    assert rerank("q", ["a", "b"], scores=few, reranker=None) == [(1, 0.5), (0, 0.25)]


def test_without_scores_shared_words_decide_on_a_constant_scale(rerank: Callable[..., Ranked]) -> None:
    ranked = rerank("Where does Maya sail?", TEXTS, reranker=None)
    assert ranked[0][0] == 2
    assert ranked[-1] == (3, 0.0)
    assert all(0 <= score < 1 for _, score in ranked)


def test_a_text_that_shares_nothing_scores_nothing_and_a_lone_one_is_not_flattered() -> None:
    assert compute_lexical_scores("bees", ["a boat", "", "!"]) == [0.0, 0.0, 0.0]
    assert compute_lexical_scores("bees", []) == []
    (lone,) = compute_lexical_scores("Does Maya keep bees or sail?", ["Tom keeps goats"])
    assert 0 < lone < 0.5


def test_the_blend_is_the_weighted_mean_and_the_reranker_is_asked_once(rerank: Callable[..., Ranked]) -> None:
    scripted = ScriptedReranker([0.0, 1.0])
    ranked = rerank("q", ["a", "b"], reranker=scripted, scores=[0.8, 0.4], weight=0.25)
    assert [place for place, _ in ranked] == [0, 1]
    assert [score for _, score in ranked] == pytest.approx([0.6, 0.55])
    assert scripted.asked == [("q", ["a", "b"])]
    ranked = rerank("q", ["a", "b"], reranker=scripted, scores=[0.6, 0.4])
    assert [place for place, _ in ranked] == [1, 0]
    assert [score for _, score in ranked] == pytest.approx(
        [(1 - RERANK_WEIGHT) * 0.4 + RERANK_WEIGHT, (1 - RERANK_WEIGHT) * 0.6]
    )


def test_only_the_best_by_first_score_are_read_and_the_others_stay_below_in_their_order(
    rerank: Callable[..., Ranked],
) -> None:
    scripted = ScriptedReranker([0.5, 0.9])
    ranked = rerank("q", list("abcd"), reranker=scripted, scores=[0.1, 0.9, 0.4, 0.8], top_n=2, weight=0.5)
    assert scripted.asked == [("q", ["b", "d"])]
    assert [place for place, _ in ranked] == [3, 1, 2, 0]
    # Texts that the reranker does not read get the lowest score of those that it read (0.5).
    assert [score for _, score in ranked] == pytest.approx([0.85, 0.7, 0.45, 0.3])


def test_an_async_reranker_is_awaited() -> None:
    class Async(ScriptedReranker):
        async def ascore(self, query: str, texts: Sequence[str]) -> Any:
            return [1.0, 0.0]

    reranker = Async(AssertionError("not this one"))
    assert asyncio.run(mem0_core.arerank("q", ["a", "b"], reranker=reranker, scores=[0, 0], weight=1)) == [
        (0, 1.0),
        (1, 0.0),
    ]


def test_ties_keep_the_order_of_the_first_scores_and_then_of_the_texts(rerank: Callable[..., Ranked]) -> None:
    same = ScriptedReranker(lambda texts: [0.5] * len(texts))
    for _ in range(3):
        assert [place for place, _ in rerank("q", list("abcd"), scores=[0.3, 0.7, 0.3, 0.7], reranker=None)] == [
            1,
            3,
            0,
            2,
        ]
        ranked = rerank("q", list("abcd"), reranker=same, scores=[0.3, 0.7, 0.3, 0.7], weight=1, top_n=3)
        assert ranked == [(1, 0.5), (3, 0.5), (0, 0.5), (2, 0.5)]


def test_nothing_to_rerank_or_no_weight_is_no_call(rerank: Callable[..., Ranked]) -> None:
    scripted = ScriptedReranker(AssertionError("asked"))
    assert rerank("q", [], reranker=scripted) == []
    assert rerank("q", ["a", "b"], reranker=scripted, scores=[0.1, 0.2], weight=0) == [(1, 0.2), (0, 0.1)]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([0.5], r"ScriptedReranker\(\) gave 1 scores for 2 texts"),
        ([0.5, 0.5, 0.5], "3 scores for 2"),
        ([0.5, math.nan], "nan"),
        ([0.5, math.inf], "inf"),
        ([0.5, 4.2], r"4\.2.*\[0, 1\]"),
        ([-0.1, 0.5], r"-0\.1"),
        ([0.5, "high"], "high"),
        (None, "no list of scores"),
    ],
)
def test_a_reranker_that_answers_wrongly_is_named(rerank: Callable[..., Ranked], answer: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        rerank("q", ["a", "b"], reranker=ScriptedReranker(answer))


def test_what_rounding_puts_outside_is_cut(rerank: Callable[..., Ranked]) -> None:
    assert rerank("q", ["a", "b"], reranker=ScriptedReranker([-1e-9, 1 + 1e-7]), scores=[0, 0], weight=1) == [
        (1, 1.0),
        (0, 0.0),
    ]


def test_a_reranker_that_fails_is_an_error_but_one_unreadable_reply_is_a_note(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ModelError, match="is down"):
        run(flow(ScriptedReranker(ModelError("is down")), "q", ["a"]))
    notes: list[str] = []
    unreadable = ScriptedReranker(ReplyError("no scores in it"))
    ranked = run(flow(unreadable, "q", ["a", "b"], scores=[0.2, 0.4], note=notes.append))
    assert ranked == [(1, 0.4), (0, 0.2)]
    assert notes == ["the order is that before reranking: no scores in it"]
    assert asyncio.run(arun(flow(unreadable, "q", ["a", "b"], scores=[0.2, 0.4]))) == ranked
    assert "no scores in it" in caplog.text


@pytest.mark.parametrize(
    ("query", "options", "error", "told"),
    [
        ("", {}, QueryError, "empty"),
        (" \n", {}, QueryError, "empty"),
        ("\ud800", {}, QueryError, "Unicode"),
        ("q", {"scores": [0.5]}, InputError, "1 scores for 2 texts"),
        ("q", {"scores": [0.5, 1.5]}, InputError, r"scores\[1\] must lie in \[0, 1\]"),
        ("q", {"scores": [math.nan, 0.5]}, InputError, r"scores\[0\]"),
        ("q", {"top_n": 0}, InputError, "top_n"),
        ("q", {"weight": 1.1}, InputError, "weight"),
        ("q", {"weight": math.nan}, InputError, "weight"),
        ("q", {"reranker": "no_such"}, ConfigError, "no_such"),
        ("q", {"reranker": object()}, ConfigError, "score"),
    ],
)
def test_a_call_that_makes_no_sense_says_why(
    rerank: Callable[..., Ranked], query: str, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        rerank(query, ["a", "b"], **options)


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="list of texts"):
        mem0_core.rerank("q", "abc")


units = st.floats(0, 1)


@given(
    st.lists(st.tuples(units, units), max_size=12),
    st.integers(1, 14) | st.none(),
    units,
)
def test_the_order_is_a_permutation_with_falling_scores_in_the_unit_range(
    pairs: list[tuple[float, float]], top_n: int | None, weight: float
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    scripted = ScriptedReranker(lambda texts: [second[int(text)] for text in texts])
    texts = [str(place) for place in range(len(pairs))]
    ranked = run(flow(scripted, "q", texts, scores=first, top_n=top_n, weight=weight))
    scores = [score for _, score in ranked]
    assert sorted(place for place, _ in ranked) == list(range(len(pairs)))
    assert all(0 <= score <= 1 for score in scores)
    assert all(above >= below for above, below in pairwise(scores))
    assert len(scripted.asked) <= 1
    assert run(flow(scripted, "q", texts, scores=first, top_n=top_n, weight=weight)) == ranked
