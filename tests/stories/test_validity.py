"""Answers that hold at their time: a memory knows by what and when it was superseded, and questions respect it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.testing import ScriptedChat
from tests.graph_model import GraphModel, fact_replies, outdated, relation_replies, set_replies
from tests.support import MODES, MemoryDriver, Mode, open_memory

MAYA: dict[str, Any] = {"user_id": "maya"}
TODAY = "2024-09-01"


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    chosen: Mode = request.param
    return chosen


@pytest.fixture
def memory(mode: Mode, tmp_path: Path) -> Iterator[MemoryDriver]:
    opened = open_memory(tmp_path)
    yield MemoryDriver(opened, mode)
    opened.close()


def tell(memory: MemoryDriver, *said: tuple[str, str]) -> dict[str, str]:
    """Add texts, each with its day; returns the ids of their memories by text."""
    ids: dict[str, str] = {}
    for day, text in said:
        (added,) = memory.add(text, timestamp=day, **MAYA)["results"]
        ids[text] = added["id"]
    return ids


def found(memory: MemoryDriver, query: str, **options: Any) -> list[str]:
    results = memory.search(query, reference_date=TODAY, **MAYA, **options)["results"]
    return [one["memory"] for one in results]


HOMES = (("2020-01-05", "I live in Lisbon."), ("2022-03-01", "I moved to Porto."), ("2024-05-01", "I moved to Oslo."))


def test_a_question_about_now_ranks_what_is_over_below_what_replaced_it(memory: MemoryDriver) -> None:
    ids = tell(memory, *HOMES)
    results = memory.search("Where do I live?", reference_date=TODAY, **MAYA)["results"]
    assert results[0]["memory"] == "I moved to Oslo."
    assert "valid_to" not in results[0]
    by_text = {one["memory"]: one for one in results}
    assert by_text["I live in Lisbon."]["valid_to"][:10] == "2022-03-01"
    assert by_text["I live in Lisbon."]["superseded_by"] == ids["I moved to Porto."]
    assert by_text["I moved to Porto."]["superseded_by"] == ids["I moved to Oslo."]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Where did I live in 2021?", "I live in Lisbon."),
        ("Where was I living in summer 2023?", "I moved to Porto."),
        ("Where did I live before Oslo?", "I moved to Porto."),
    ],
)
def test_a_question_about_then_ranks_first_what_held_then(memory: MemoryDriver, question: str, first: str) -> None:
    tell(memory, *HOMES)
    assert found(memory, question)[0] == first


def test_what_ended_without_a_successor_is_no_answer_to_a_question_about_now(memory: MemoryDriver) -> None:
    tell(memory, ("2021-01-01", "I work at Galp."), ("2023-01-01", "I quit my job at Galp."))
    assert found(memory, "Where do I work?")[0] == "I quit my job at Galp."


def test_a_history_that_is_told_twice_has_each_relation_once(memory: MemoryDriver) -> None:
    tell(memory, *HOMES)
    once = memory.relations(ended=True, **MAYA)
    for day, text in HOMES:
        memory.add(text, timestamp=day, **MAYA)
    held = [(one["destination"], one["valid_from"], one["valid_to"]) for one in once]
    assert held == [
        (one["destination"], one["valid_from"], one["valid_to"]) for one in memory.relations(ended=True, **MAYA)
    ]


def test_an_old_message_that_is_told_late_does_not_end_what_began_after_it(memory: MemoryDriver) -> None:
    tell(memory, ("2024-05-01", "I moved to Oslo."), ("2021-05-01", "I moved to Madrid."))
    held = {one["destination"]: one["valid_to"] for one in memory.relations(ended=True, **MAYA)}
    assert held["Oslo"] is None
    assert str(held["Madrid"])[:10] == "2024-05-01"
    assert found(memory, "Where do I live?")[0] == "I moved to Oslo."
    assert found(memory, "Where did I live in 2022?")[0] == "I moved to Madrid."


@pytest.mark.parametrize("own_time", [True, False])
def test_an_old_message_ends_no_later_relation_by_a_model_either(mode: Mode, tmp_path: Path, own_time: bool) -> None:
    model = GraphModel({**fact_replies(), **relation_replies(("maya", "lives_in", "Oslo"))})
    with open_memory(tmp_path, llm=model, config={"graph_store": {"provider": "sqlite"}}) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("I moved to Oslo.", timestamp="2024-05-01", **MAYA)
        ending = outdated(("maya", "lives_in", "Oslo"))
        set_replies(memory, {**fact_replies(), **relation_replies(("maya", "likes", "Madrid"), outdated=ending)})
        for day, is_over in (("2021-05-01", False), ("2025-05-01", True)):
            message = {"role": "user", "content": "I like Madrid.", **({"timestamp": day} if own_time else {})}
            memory.add([message], **({} if own_time else {"timestamp": day}), **MAYA)
            held = [one["destination"] for one in memory.relations(**MAYA)]
            assert ("Oslo" not in held) == is_over


def test_a_statement_is_true_again_after_its_memory_was_deleted(memory: MemoryDriver) -> None:
    day, text = HOMES[0]
    memory.delete(tell(memory, HOMES[0])[text])
    assert memory.relations(**MAYA) == []
    memory.add(text, timestamp=day, **MAYA)
    assert [one["destination"] for one in memory.relations(**MAYA)] == ["Lisbon"]


def test_an_erased_cause_gives_the_validity_back(memory: MemoryDriver) -> None:
    ids = tell(memory, *HOMES[:2])
    memory.delete(ids["I moved to Porto."])
    (only,) = memory.search("Where do I live?", **MAYA)["results"]
    assert "valid_to" not in only


def test_the_context_marks_what_is_over(memory: MemoryDriver) -> None:
    tell(memory, *HOMES)
    lines = memory.context("Where do I live?", reference_date=TODAY, threshold=0.0, **MAYA)["text"].splitlines()
    lisbon = [line for line in lines if "Lisbon" in line]
    assert all('"until"' in line for line in lisbon)
    assert any("Oslo" in line and '"until"' not in line for line in lines)


def test_an_answer_is_a_value_with_its_proof(memory: MemoryDriver) -> None:
    ids = tell(memory, *HOMES)
    now = memory.answer("Where do I live?", reference_date=TODAY, **MAYA)
    assert (now["answer"], now["since"][:10]) == ("Oslo", "2024-05-01")
    assert [one["id"] for one in now["memories"]] == [ids["I moved to Oslo."]]
    then = memory.answer("Where did I live in 2021?", reference_date=TODAY, **MAYA)
    assert (then["answer"], then["until"][:10]) == ("Lisbon", "2022-03-01")


def test_a_question_for_yes_or_no_is_answered_from_what_was_said_last(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2020-01-01", "I hate sardines."),
        ("2024-01-01", "I love sardines now."),
        ("2024-01-02", "I am allergic to peanuts."),
    )
    assert memory.answer("Do I like sardines?", **MAYA)["answer"] == "yes"
    assert memory.answer("Am I allergic to peanuts?", **MAYA)["answer"] == "yes"
    assert memory.answer("Am I allergic to any food?", **MAYA)["answer"] == "peanuts", "nobody denied it"


def test_a_reason_or_a_day_is_not_answered_with_a_place(memory: MemoryDriver) -> None:
    reason = "I moved to Graz because my wife found a job there."
    tell(memory, ("2020-01-05", "I work at Kone."), ("2023-02-01", "I left Kone."), ("2023-02-10", reason))
    assert memory.answer("Why did I move to Graz?", **MAYA)["answer"] == reason
    left = memory.answer("When did I leave the elevator company?", **MAYA)
    assert left["path"]["end"] == "Kone", "the graph tells it"
    assert left["answer"] == "2023-02-01"


def test_an_answer_that_nobody_gave_is_unknown(memory: MemoryDriver) -> None:
    tell(memory, *HOMES)
    unknown = memory.answer("What is my brother's name?", **MAYA)
    assert (unknown["answer"], unknown["values"], unknown["memories"]) == (None, [], [])
    assert unknown["nearest"]["memory"]
    assert "brother" in unknown["note"]
    refused = memory.search("What is my brother's name?", allow_no_answer=True, **MAYA)
    assert refused["results"] == []
    assert "brother" in refused["note"]


def test_an_unread_slot_is_refused_only_where_silence_tells_something(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2023-05-01", "We have the keys to the house in the town of Harrogate!"),
        ("2023-06-01", "The mother of my husband cooks for us until summer."),
    )
    for question in ("Which town do I live in?", "Where does my husband work?"):
        assert memory.search(question, allow_no_answer=True, **MAYA)["results"], question
    assert memory.search("Am I allergic to anything?", allow_no_answer=True, **MAYA)["results"] == []


@pytest.mark.parametrize("question", ["Which company pays my wife?", "Which company does my wife get her pay from?"])
def test_memories_that_name_the_end_of_a_chain_rank_higher_though_they_were_not_read(
    memory: MemoryDriver, question: str
) -> None:
    other, own = "A company in the next street pays nobody at all.", "RHI Magnesita pays Liisa from June on."
    tell(memory, ("2023-02-01", other), ("2023-03-01", own))

    def measure_lead() -> float:
        results = memory.search(question, reference_date=TODAY, **MAYA)["results"]
        scores = {one["memory"]: one["score"] for one in results}
        return float(scores[other] / scores[own])

    before = measure_lead()
    tell(memory, ("2023-04-01", "Wife = Liisa, for the record."))
    assert measure_lead() < 0.95 * before, "the wife is known to be Liisa"


def test_a_chain_is_followed_to_its_last_hop(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2023-01-01", "My sister is Anna."),
        ("2023-01-02", "Anna is married to Marco."),
        ("2023-01-03", "Marco works at Galp."),
        ("2023-01-04", "I work at Fjord Bank."),
    )
    assert found(memory, "Where does my sister's husband work?")[0] == "Marco works at Galp."
    assert memory.answer("Where does my sister's husband work?", **MAYA)["values"] == ["Galp"]


def test_a_memory_of_a_later_time_ranks_below_for_a_question_about_an_earlier_one(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2019-03-01", "The van is an office: all week on the road for Brightside, work without end."),
        ("2023-10-02", "Since October 2023 the back room of the bakery is where the work is."),
    )
    assert found(memory, "Where did I work in 2019?")[0].startswith("The van")
    assert found(memory, "Where did I work in 2024?")[0].startswith("Since October 2023")


def test_the_name_of_a_thing_matches_an_event_without_its_article(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2020-02-11", "I live in Halifax."),
        ("2021-09-22", "I live in a condominium in Dartmouth since September 2021."),
    )
    assert found(memory, "Where did we live before the condominium?")[0] == "I live in Halifax."


def test_a_short_name_finds_the_entity_of_the_graph_that_it_begins(mode: Mode, tmp_path: Path) -> None:
    model = GraphModel(
        {
            **fact_replies("Raj Malhotra trains pupils at Riverview High."),
            **relation_replies(("Raj Malhotra", "works_as", "teacher")),
        }
    )
    with open_memory(tmp_path, llm=model, config={"graph_store": {"provider": "sqlite"}}) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("Raj trains pupils.", timestamp="2023-07-15", **MAYA)
        set_replies(memory, fact_replies("Raj gave Maya a lamp for work."))
        memory.add("Raj gave me a lamp for work.", timestamp="2023-08-15", **MAYA)
        assert found(memory, "What does Raj do for work?")[0] == "Raj Malhotra trains pupils at Riverview High."


def test_an_update_by_a_model_leaves_the_earlier_text_to_be_found(mode: Mode, tmp_path: Path) -> None:
    facts = iter((["Lives in Lisbon"], ["Lives in Oslo"]))

    def reply(task: str, messages: Any) -> Any:
        if task == "facts":
            return {"facts": next(facts)}
        return {"memory": [{"id": "0", "text": "Lives in Oslo", "event": "UPDATE", "old_memory": "Lives in Lisbon"}]}

    with open_memory(tmp_path, llm=ScriptedChat(reply), config={"graph_store": None}) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("I live in Lisbon.", timestamp="2020-01-05", **MAYA)
        memory.add("I moved to Oslo.", timestamp="2024-05-01", **MAYA)
        assert found(memory, "Where do I live?") == ["Lives in Oslo"]
        both = memory.search("my home", include_superseded=True, **MAYA)["results"]
        assert {one["memory"]: one.get("valid_to", "")[:10] for one in both} == {
            "Lives in Oslo": "",
            "Lives in Lisbon": "2024-05-01",
        }


def test_a_home_with_a_known_end_holds_from_the_day_it_is_told(memory: MemoryDriver) -> None:
    tell(
        memory,
        ("2023-09-10", "I live in Bristol."),
        ("2025-01-15", "I live in Tromsø until June 2025."),
        ("2025-06-20", "I moved back to Bristol."),
    )
    before = memory.search("Where did I live in winter 2023?", reference_date="2025-12-01", **MAYA)["results"]
    during = memory.search("Where did I live in February 2025?", reference_date="2025-12-01", **MAYA)["results"]
    assert before[0]["memory"] == "I live in Bristol."
    assert during[0]["memory"] == "I live in Tromsø until June 2025."


def homes_on(memory: MemoryDriver, day: str) -> list[str]:
    return list(memory.answer("Where do I live?", reference_date=day, **MAYA)["values"])


@pytest.mark.parametrize(
    ("plan", "begins"),
    [
        ("We are moving to Oslo next month.", "2026-03-01"),
        ("I'm moving to Oslo in two weeks.", "2026-02-21"),
        ("I'll be living in Oslo from May.", "2026-05-01"),
        ("Next week I move to Oslo.", "2026-02-16"),
        ("I move to Oslo on 1 June 2026.", "2026-06-01"),
        ("I'm going to move to Oslo.", "2026-03-12"),  # a plan without a time counts as done after 30 days
        ("I'm moving to Oslo this year.", "2026-03-12"),
        ("I'm moving to Oslo this month.", "2026-02-28"),
    ],
)
def test_a_plan_holds_from_its_day_and_not_from_its_telling(memory: MemoryDriver, plan: str, begins: str) -> None:
    tell(memory, ("2026-01-10", "I live in Rome."), ("2026-02-10", plan))
    assert homes_on(memory, "2026-02-11") == ["Rome"]
    assert homes_on(memory, begins) == ["Oslo"]


def test_a_planned_end_leaves_the_job_until_its_day(memory: MemoryDriver) -> None:
    tell(memory, ("2026-01-10", "I work at Galp."), ("2026-02-10", "I'm leaving Galp in May."))
    jobs = [
        memory.answer("Where do I work?", reference_date=day, **MAYA)["values"] for day in ("2026-04-01", "2026-06-02")
    ]
    assert jobs == [["Galp"], []]


def test_a_plan_that_comes_true_early_or_is_dropped_ends_at_once(memory: MemoryDriver) -> None:
    tell(memory, ("2026-01-10", "I live in Rome."), ("2026-02-10", "I'm moving to Oslo in April."))
    tell(memory, ("2026-02-20", "I moved to Oslo yesterday."))
    assert homes_on(memory, "2026-02-25") == ["Oslo"]
    tell(memory, ("2026-03-01", "I'm moving to Bergen in May."), ("2026-03-20", "I live in Oslo, and we are staying."))
    assert homes_on(memory, "2026-06-01") == ["Oslo"]


def test_a_plan_that_is_postponed_holds_from_its_new_day(memory: MemoryDriver) -> None:
    tell(memory, ("2026-01-10", "I live in Rome."), ("2026-02-10", "I'm moving to Oslo in May."))
    tell(memory, ("2026-04-10", "I'm moving to Oslo in June."))
    assert homes_on(memory, "2026-05-15") == ["Rome"]
    assert homes_on(memory, "2026-06-15") == ["Oslo"]


def test_a_plan_enters_the_graph_when_it_is_told_as_done(memory: MemoryDriver) -> None:
    tell(memory, ("2026-01-10", "My sister Anna lives in Rome."), ("2026-02-10", "Anna is moving to Oslo in May."))
    homes = [one["destination"] for one in memory.relations(**MAYA) if one["relationship"] == "lives_in"]
    assert homes == ["Rome"]
    tell(memory, ("2026-03-10", "Anna moved to Bergen."))
    homes = [one["destination"] for one in memory.relations(**MAYA) if one["relationship"] == "lives_in"]
    assert homes == ["Bergen"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("My sister Anna is moving to Oslo in May. I moved to Bergen last week.", "maya lives_in Bergen"),
        ("Anna has a concert in May and she works at Galp.", "Anna works_at Galp"),
        ("I'm getting married to Tom in June.", "maya engaged_to Tom"),
        ("I'm flying to Rome in May.", "maya plans_trip_to Rome"),
    ],
)
def test_what_holds_already_has_not_the_day_of_a_plan_beside_it(memory: MemoryDriver, text: str, holds: str) -> None:
    tell(memory, ("2026-02-10", text))
    found = memory.relations(as_of="2026-02-11", **MAYA)
    assert holds in [f"{one['source']} {one['relationship']} {one['destination']}" for one in found]


def test_a_plan_beside_an_introduction_is_no_relation_yet(memory: MemoryDriver) -> None:
    tell(memory, ("2026-02-10", "Call me Kai. My sister Anna is moving to Oslo in May."))
    assert [one for one in memory.relations(**MAYA) if one["relationship"] == "lives_in"] == []
