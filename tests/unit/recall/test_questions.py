"""Searches by questions: about past times, about what was before an event, about relatives, and without an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, open_memory, result_texts


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with open_memory(tmp_path, embedder=HashEmbedder()) as opened:
        yield MemoryDriver(opened, request.param)


def tell(memory: MemoryDriver, *said: tuple[str, str]) -> None:
    for day, text in said:
        memory.add(text, user_id="u", infer=False, timestamp=f"{day}T12:00:00")


def first(memory: MemoryDriver, query: str, **options: str) -> str:
    return result_texts(memory.search(query, user_id="u", limit=3, **options))[0]


def test_a_question_where_somebody_was_finds_nothing_that_began_later(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2022-01-10", "Tunde is in Mombasa for his firm"),
        ("2024-02-01", "Where Tunde was is no secret: Tunde is in London since February 2024"),
    )
    assert "Mombasa" in first(memory, "Where was Tunde in the middle of 2022?", reference_date="2024-06-01")


def test_what_happened_in_a_month_may_be_told_later(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2022-05-02", "Dinner at home"),
        ("2022-06-15", "The race that Ana ran: she won it, twelve people took part"),
    )
    assert "won" in first(memory, "Who won the race that Ana ran in May 2022?", reference_date="2022-07-01")


def test_a_question_about_before_an_event_passes_over_the_event(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2020-02-16", "My brother Thiago has a coconut stand on the beach"),
        ("2022-06-30", "Thiago does cars now, Thiago sells cars in Recife"),
    )
    assert "coconut" in first(memory, "What did Thiago do before cars?")


def test_a_memory_that_says_before_itself_answers(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2022-06-30", "Before the cars, Thiago sold ice"),
        ("2023-06-30", "Thiago likes the beach"),
    )
    assert "ice" in first(memory, "What did Thiago do before cars?")


@pytest.mark.parametrize("noun", ["mum", "mother"])
def test_a_relative_without_a_name_is_told_from_the_user(memory: MemoryDriver, noun: str) -> None:
    tell(
        memory,
        ("2024-07-01", "A room in Newtown is where I sleep"),
        ("2024-10-04", "my mum is back at the old house by the sea"),
    )
    assert "old house" in first(memory, f"where is my {noun} living now")


def test_children_are_found_as_sons_and_daughters(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2021-01-01", "my son Travis joined the army"),
        ("2021-02-01", "my daughter Kayla sings"),
        ("2021-03-01", "I know the names of all birds"),
    )
    found = result_texts(memory.search("what are my kids' names?", user_id="u", limit=2))
    assert sorted(text.split()[2] for text in found) == ["Kayla", "Travis"]


def test_the_job_of_a_relative_by_marriage_is_found(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2021-01-01", "My daughter Kayla is married to Omar"),
        ("2021-02-01", "Omar works as an accountant"),
        ("2021-03-01", "I work as a dispatcher"),
    )
    assert "accountant" in first(memory, "What does my son-in-law do for work?")


def test_the_work_of_someone_unknown_is_not_that_of_the_user(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2021-01-01", "I work at McGill"),
        ("2021-02-01", "Florence, my labmate until then, does work in Basel"),
    )
    assert "McGill" not in memory.answer("Where does my labmate work?", user_id="u")["values"]


@pytest.mark.parametrize("query", ["Where did I work while I was in first year, 2022?", "where did I work in 2022"])
def test_a_time_counts_where_its_event_is_unknown(memory: MemoryDriver, query: str) -> None:
    tell(memory, ("2022-05-21", "I work at the Thistle"), ("2024-01-25", "I work at Greater Wellington now"))
    assert "Thistle" in first(memory, query, reference_date="2024-06-01")


def test_a_question_for_an_amount_wants_a_number(memory: MemoryDriver) -> None:
    tell(memory, ("2021-01-01", "The flat by the river was sold to us at last"))
    query = "How much did the flat by the river cost?"
    assert result_texts(memory.search(query, user_id="u", allow_no_answer=True)) == []
    tell(memory, ("2021-02-01", "The flat by the river did cost 90,000 in the end"))
    assert "90,000" in result_texts(memory.search(query, user_id="u", allow_no_answer=True))[0]


@pytest.mark.parametrize(
    "query", ["How much did the flat by the river cost?", "What did we pay for the flat by the river?"]
)
def test_a_date_and_a_number_of_something_else_are_no_amount(memory: MemoryDriver, query: str) -> None:
    tell(
        memory,
        ("2021-01-01", "The flat by the river was sold to us on 1 November 2020"),
        ("2021-01-02", "Bus 11 takes 40 minutes"),
    )
    assert result_texts(memory.search(query, user_id="u", allow_no_answer=True)) == []


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("We did pay the man for the roof", "What did we pay the man for?"),
        ("I did pay the plumber to fix the sink", "What did I pay the plumber to fix?"),
        ("My sister is a nurse to earn money", "What does my sister do to earn money?"),
        ("We did use the card of my dad to pay the deposit", "What did we use to pay the deposit?"),
        ("How much my running shoes did cost: by 1999 crowns too much", "How much did my running shoes cost?"),
    ],
)
def test_what_was_paid_for_is_no_amount(memory: MemoryDriver, said: str, query: str) -> None:
    tell(memory, ("2021-01-01", said))
    assert len(memory.search(query, user_id="u", allow_no_answer=True)["results"]) == 1


def test_the_reason_of_a_missing_memory_is_that_of_the_search(memory: MemoryDriver) -> None:
    tell(memory, ("2021-01-01", "The flat by the river was sold to us at last"))
    query = "How much did the flat by the river cost?"
    (flat,) = memory.get_all(user_id="u")["results"]
    why = memory.explain_missing(query, flat["id"], user_id="u", allow_no_answer=True)
    note = memory.search(query, user_id="u", allow_no_answer=True)["note"]
    assert why["reason"] == "no_answer"
    assert why["detail"] == f"there is {note}"


def test_a_question_about_oneself_needs_less_than_one_about_anything(memory: MemoryDriver) -> None:
    tell(memory, ("2021-01-01", "On Sundays there are crosswords, and then some more crosswords, until it is dark"))

    def found(query: str) -> list[str]:
        return result_texts(memory.search(query, user_id="u", allow_no_answer=True, recipe={"gate": gate}))

    best = memory.search("Why some crosswords on my mind", user_id="u")["results"][0]["score"]
    gate = best / 0.85  # between the two shares of it
    assert found("Why some crosswords on my mind") != []
    assert found("Why some crosswords on the mind") == []


def test_advice_need_not_repeat_the_words_of_the_question(memory: MemoryDriver) -> None:
    advice = "Write one paragraph by noon, then walk; nights are for the tired"
    memory.add(
        [{"role": "user", "content": "Help"}, {"role": "assistant", "content": advice}], user_id="u", infer=False
    )
    found = memory.search("What did you advise about nights?", user_id="u", allow_no_answer=True)
    assert result_texts(found)[0] == advice


def test_a_sister_in_law_may_be_a_sister_of_the_husband(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2021-01-01", "My husband is Gareth"),
        ("2021-01-02", "Gareth's sister is Cerys"),
        ("2021-01-03", "Cerys works at the harbour"),
        ("2021-01-04", "My brother Tariq works at the airport"),
    )
    assert "harbour" in first(memory, "Where does my sister-in-law work?")


@pytest.mark.parametrize("said", ["Our rent is 2000 euros", "The bike did cost EUR500", "I paid half of it"])
def test_an_amount_may_be_written_in_many_ways(memory: MemoryDriver, said: str) -> None:
    tell(memory, ("2021-01-01", f"{said}, how much did we pay for it then"))
    found = memory.search("How much did we pay for it then?", user_id="u", allow_no_answer=True)
    assert len(found["results"]) == 1


def test_a_question_about_before_the_first_job_is_not_answered_with_it(memory: MemoryDriver) -> None:
    tell(memory, ("2020-01-01", "I work at Google"), ("2022-01-01", "I work at Meta now"))
    assert memory.answer("Where did I work before Google?", user_id="u")["values"] == []


def test_an_adjective_before_a_noun_is_no_past_tense(memory: MemoryDriver) -> None:
    tell(memory, ("2020-01-01", "I work at Acme"), ("2022-01-01", "I work at Initech now"))
    assert "Initech" in first(memory, "Which named company do I work for?")


@pytest.mark.parametrize("wish", ["I want to live in Oslo one day.", "I'm thinking of moving to Oslo."])
def test_a_wish_ends_nothing(memory: MemoryDriver, wish: str) -> None:
    tell(memory, ("2024-01-01", "I live in Rome."), ("2024-02-01", wish))
    assert memory.answer("Where do I live?", user_id="u")["values"] == ["Rome"]
    assert all("valid_to" not in hit for hit in memory.search("Where do I live?", user_id="u")["results"])
