"""The facts that operations of a reply settle, by number or by words, and the limits of a reply."""

from __future__ import annotations

from typing import Any

import pytest

from mem0_core.domain.records import Event, Operation
from mem0_core.ingest._settlement import ReplyLimits, Settlement, settle_facts
from mem0_core.language import terms

ADD, UPDATE, DELETE, NONE = Event.ADD, Event.UPDATE, Event.DELETE, Event.NONE
LIMITS = ReplyLimits(changes=200, deletions=5)


def settle(
    operations: list[Operation], *facts: str, limits: ReplyLimits = LIMITS, **memories: Any
) -> tuple[Settlement, list[str]]:
    settlement = settle_facts(operations, facts, memories, limits)
    return settlement, [facts[index] for index in settlement.unsettled]


# --- by number ---------------------------------------------------------------------------------------------------


def test_an_operation_settles_the_facts_that_it_names() -> None:
    operations = [Operation(UPDATE, "Lives in Porto since May", "m", facts=(0,)), Operation(NONE, facts=(2,))]
    settlement, left = settle(operations, "Moved to Porto", "Has a dog", "Said hello", m="Lives in Rome")
    assert left == ["Has a dog"]
    assert [operation.facts for operation in settlement.operations] == [(0,), (2,)]


def test_a_deletion_settles_the_facts_that_it_names() -> None:
    assert settle([Operation(DELETE, "Likes tea", "m", facts=(0,))], "Cannot stand it", m="Likes tea")[1] == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Likes tea", "Likes milk"),
        ("Likes green tea", "Has a sister"),
        ("Lives in Porto", "Moved to Porto with Anna"),
        ("Likes tea", "Likes coffee, bread and butter"),
    ],
)
def test_a_new_text_that_tells_nothing_of_a_fact_does_not_settle_it(text: str, fact: str) -> None:
    assert settle([Operation(ADD, text, facts=(0,))], fact)[1] == [fact]


def test_a_long_text_that_names_a_fact_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Moved to Porto with a dog, a cat and a parrot. " * 100  # longer than the texts whose terms are cached
    read: list[str] = []
    extract = terms.extract_terms
    monkeypatch.setattr(terms, "extract_terms", lambda text: read.append(text) or extract(text))  # type: ignore[func-returns-value]
    assert settle([Operation(ADD, text, facts=(0,))], "Moved to Porto with a dog and a cat")[1] == []
    assert read == [text]


def test_numbers_that_were_not_given_name_nothing() -> None:
    settlement, left = settle([Operation(NONE, facts=(7, -1))], "Likes tea")
    assert left == ["Likes tea"]
    assert settlement.operations[0].facts == ()


# --- by words ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "fact"),
    [
        (Operation(ADD, "likes TEA."), "Likes tea"),
        (Operation(UPDATE, "Loves cheese and chicken pizza", "m"), "Loves chicken pizza"),
        (Operation(UPDATE, "Has a sister named Jesica", "m"), "Sister's name is Jesica"),
        (Operation(NONE, "Likes tea"), "Likes tea"),
        (Operation(NONE, "", "m"), "Likes pizza"),
        (Operation(DELETE, "", "m"), "Dislikes pizza"),
    ],
)
def test_without_numbers_the_words_decide(operation: Operation, fact: str) -> None:
    assert settle([operation], fact, m="Likes pizza")[1] == []


@pytest.mark.parametrize(
    ("operation", "memory", "fact"),
    [
        (Operation(ADD, "Likes tea"), "x", "Likes milk"),
        (Operation(ADD, "Likes tea"), "x", "Does not like tea"),
        (Operation(ADD, ""), "x", "It is."),
        (Operation(NONE), "x", "Likes tea"),
        (Operation(NONE, "", "m"), "Had a dog named Rex until 2019", "Has a dog"),
        (Operation(NONE, "", "m"), "Lives in Rome", "Lives in Porto"),
        (Operation(DELETE, "", "m"), "Moved to Rome", "Moved from Rome to Milan"),
        (Operation(DELETE, "", "m"), "Likes tea", "Likes tea"),
        (Operation(DELETE, "", "m"), "Likes tea", "Has a dog"),
    ],
)
def test_words_that_do_not_decide_leave_the_fact(operation: Operation, memory: str, fact: str) -> None:
    assert settle([operation], fact, m=memory)[1] == [fact]


def test_a_fact_that_an_unnamed_memory_states_is_known() -> None:
    settlement, left = settle([Operation(ADD, "Has a dog")], "Has a dog", "Likes tea", m="likes tea")
    assert left == []
    assert settlement.operations[-1] == Operation(NONE, "likes tea", "m", facts=(1,))


def test_a_fact_is_settled_by_the_new_text_rather_than_by_a_deletion() -> None:
    operations = [Operation(DELETE, "Dislikes tea", "m"), Operation(ADD, "Likes tea")]
    settlement, _ = settle(operations, "Likes tea", m="Dislikes tea")
    assert [operation.facts for operation in settlement.operations] == [(), (0,)]


# --- limits ------------------------------------------------------------------------------------------------------


def test_deletions_beyond_the_limit_are_refused_and_their_facts_left() -> None:
    memories: dict[str, Any] = {f"m{number}": f"Likes tea {number}" for number in range(10)}
    operations = [Operation(DELETE, text, id) for id, text in memories.items()]
    operations.append(Operation(DELETE, "Owns a cat", "cat", facts=(0,)))
    settlement, left = settle(operations, "Gave the cat away", "Likes tea 9", **memories, cat="Owns a cat")
    deleted = [operation.memory_id for operation in settlement.operations if operation.event is DELETE]
    assert deleted == ["m0", "m1", "m2", "m3", "cat"], "a deletion for a fact comes first"
    assert left == []
    assert settlement.operations[-1] == Operation(NONE, "Likes tea 9", "m9", facts=(1,)), "it stays, and is known"
    (note,) = settlement.skipped
    assert note["reason"] == "operations: 6 deletions refused; max_deletions allows 5 per reply"
    assert len(note["item"]) == 6


def test_a_fact_of_a_refused_deletion_is_left() -> None:
    operation = Operation(DELETE, "Likes tea", "m", facts=(0,))
    assert settle([operation], "Hates tea", limits=ReplyLimits(9, 0), m="Likes tea")[1] == ["Hates tea"]


def test_additions_beyond_the_limit_are_refused() -> None:
    operations = [Operation(ADD, f"Invented {number}") for number in range(3_000)]
    settlement, left = settle([*operations, Operation(ADD, "Likes tea")], "Likes tea")
    assert [operation.facts for operation in settlement.operations].count((0,)) == 1
    assert len(settlement.operations) == 10
    assert left == []
    (note,) = settlement.skipped
    assert note["reason"].startswith("operations: 2991 additions and updates refused")
    assert len(note["item"]) == 20


def test_each_fact_may_be_split() -> None:
    facts = [f"Likes thing {number} and other {number}" for number in range(30)]
    operations = [Operation(ADD, text) for number in range(30) for text in (f"thing {number}", f"other {number}")]
    assert len(settle(operations, *facts)[0].operations) == 60
    assert len(settle(operations, *facts, limits=ReplyLimits(40, 5))[0].operations) == 40
