"""Relevance: which search results are worth a place in a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.contracts import make_item
from mem0_core.domain.recipes import HYBRID
from mem0_core.domain.records import Hit, Relation, Scope, Triplet, Validity
from mem0_core.language.question import Question
from mem0_core.recall.relevance import order_for_prompt, select_relations, select_relevant
from tests.support import MODES, MemoryDriver, Mode, open_memory

Open = Callable[..., MemoryDriver]
NOW, PAST, LIST = Question(None, tense="now"), Question(None, tense="past"), Question(None, is_list=True)


@pytest.fixture(params=MODES)
def start_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    mode: Mode = request.param
    made: list[MemoryDriver] = []

    def begin(**options: Any) -> MemoryDriver:
        made.append(MemoryDriver(open_memory(tmp_path, **options), mode))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


def a_hit(score: float, text: str = "", *, over: bool = False, answer: bool = False, **fields: Any) -> Hit:
    validity = Validity(None, "2022-06-01", None) if over else None
    item = make_item(text or f"score {score}", **fields)
    return Hit(item, score, signals={"dense": score}, is_answer=answer, validity=validity)


def scores(hits: list[Hit]) -> list[float]:
    return [hit.score for hit in hits]


def kept(*given: float) -> list[float]:
    return scores(select_relevant([a_hit(score) for score in given], Question(None), gate=HYBRID.gate))


# --- the floor -----------------------------------------------------------------------------------------------------


def test_hits_near_the_background_are_left_out() -> None:
    assert kept(0.6, 0.5, *[0.2] * 18) == [0.6, 0.5]


def test_hits_that_are_all_equally_good_are_all_kept() -> None:
    given = [0.6 - place / 1000 for place in range(20)]
    assert kept(*given) == given


def test_the_floor_is_relative_so_a_dense_store_needs_higher_scores() -> None:
    assert kept(0.7, 0.66, *[0.5] * 18) == [0.7, 0.66]
    assert kept(0.7, *[0.4] * 19) == [0.7]


def test_a_few_good_hits_are_not_taken_for_the_background() -> None:
    assert kept(0.6, 0.5) == [0.6, 0.5]
    assert kept(0.6, 0.5, 0.1) == [0.6, 0.5]


def test_nothing_is_kept_where_even_the_best_score_is_that_of_a_stranger() -> None:
    assert kept(0.12, 0.11) == []
    assert kept() == []


def test_beside_a_weak_best_hit_only_its_equals_are_kept() -> None:
    assert kept(0.18, 0.1, 0.05) == [0.18]
    assert kept(0.54, 0.3, 0.15) == [0.54, 0.3]


# --- questions that are answered -----------------------------------------------------------------------------------


def test_beside_an_answer_only_near_hits_are_kept() -> None:
    hits = [a_hit(0.8, answer=True), a_hit(0.75), a_hit(0.4), *(a_hit(0.1) for _ in range(10))]
    assert scores(select_relevant(hits, NOW, gate=HYBRID.gate)) == [0.8, 0.75]
    assert scores(select_relevant(hits, NOW, gate=HYBRID.gate)) != kept(*scores(hits))


def test_every_answer_is_kept_whatever_its_score() -> None:
    hits = [a_hit(0.9, answer=True), a_hit(0.5, answer=True), *(a_hit(0.1) for _ in range(10))]
    assert scores(select_relevant(hits, NOW, gate=HYBRID.gate)) == [0.9, 0.5]


def test_what_is_over_is_left_out_beside_an_answer_about_now_and_kept_for_the_past() -> None:
    hits = [a_hit(0.8, answer=True), a_hit(0.78, over=True), *(a_hit(0.1) for _ in range(10))]
    assert scores(select_relevant(hits, NOW, gate=HYBRID.gate)) == [0.8]
    assert scores(select_relevant(hits, PAST, gate=HYBRID.gate)) == [0.8, 0.78]


# --- order ---------------------------------------------------------------------------------------------------------


def test_what_is_over_comes_after_what_holds() -> None:
    hits = [a_hit(0.5, over=True), a_hit(0.4)]
    assert scores(order_for_prompt(hits, NOW)) == [0.4, 0.5]
    assert scores(order_for_prompt(hits, PAST)) == [0.5, 0.4]


def test_for_a_list_each_day_gives_one_hit_before_one_gives_two() -> None:
    days = {0.9: "2024-01-01", 0.8: "2024-01-01", 0.7: "2024-02-01", 0.6: "2024-03-01"}
    hits = [a_hit(score, created_at=f"{day}T10:00:00+00:00") for score, day in days.items()]
    assert scores(order_for_prompt(hits, LIST)) == [0.9, 0.7, 0.6, 0.8]
    assert scores(order_for_prompt(hits, NOW)) == [0.9, 0.8, 0.7, 0.6]


def test_relations_far_below_the_best_one_are_left_out() -> None:
    found = [
        (Relation(row, Triplet("u", "is", str(row)), Scope("u"), "2024-01-01"), score)
        for row, score in enumerate((0.8, 0.7, 0.3))
    ]
    assert [score for _, score in select_relations(found, None)] == [0.8, 0.7]
    assert [score for _, score in select_relations(found, 0.75)] == [0.8]
    assert select_relations(found, 0) == found
    assert select_relations([], None) == []


# --- the context of an agent ---------------------------------------------------------------------------------------


def texts(seen: Any) -> list[str]:
    return [memory["memory"] for memory in seen["memories"]]


def tell(memory: MemoryDriver) -> None:
    for day, text in enumerate(["I live in Porto.", "I am allergic to peanuts.", "My sister Anna works at Galp."], 1):
        memory.add(text, user_id="u", timestamp=f"2024-01-{day:02}")


def test_a_question_about_a_home_shows_no_peanuts(start_memory: Open) -> None:
    memory = start_memory(graph="sqlite")
    tell(memory)
    seen = memory.context("Where do I live?", user_id="u", recent=0)
    assert texts(seen) == ["I live in Porto."]
    assert "peanuts" not in seen["text"]
    assert "Galp" not in seen["text"]


def test_a_threshold_of_0_shows_everything(start_memory: Open) -> None:
    memory = start_memory(graph=False)
    tell(memory)
    seen = memory.context("Where do I live?", user_id="u", recent=0, threshold=0)
    assert len(texts(seen)) == 3
    assert texts(seen)[0] == "I live in Porto."


def test_the_messages_of_the_conversation_are_not_shown_again_as_memories(start_memory: Open) -> None:
    memory = start_memory(graph=False)
    tell(memory)
    said = [
        {"role": "user", "content": "Hello! I live in Porto. And you?"},
        {"role": "assistant", "content": "In a data center."},
        {"role": "user", "content": "Where do I live?"},
    ]
    assert texts(memory.context(said, user_id="u", recent=0, threshold=0)) == [
        text for text in texts(memory.context(said[-1:], user_id="u", recent=0, threshold=0)) if "Porto" not in text
    ]


def test_a_sentence_about_another_person_hides_no_memory(start_memory: Open) -> None:
    memory = start_memory(graph=False)
    memory.add("Lives in Porto.", user_id="u", infer=False)
    seen = memory.context(
        "Where do I live?", user_id="u", recent=0, exclude=["My brother lives in Porto."], threshold=0
    )
    assert texts(seen) == ["Lives in Porto."]
