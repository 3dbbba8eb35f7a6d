"""Messages of one add that contradict each other: a later message ends what an earlier one states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mem0_core.domain.records import Event, Message, RelationChange, Triplet, entity_key
from mem0_core.ingest._open_relations import plan_later_endings
from mem0_core.language.rule_extractor import extract_by_rules
from tests.graph_model import GraphModel, outdated, relation_replies, set_replies
from tests.support import MODES, MemoryDriver, Mode, open_memory

HISTORIES = (
    ("I live in Rome.", "I moved to Oslo."),
    ("I like tea.", "I no longer like tea."),
    ("I like tea.", "I no longer like tea.", "I like tea."),
    ("I work at Galp.", "I like tea.", "I quit my job at Galp.", "I work at EDP."),
    ("My sister Anna moved to Oslo.", "Anna moved to Rome.", "My sister moved to Paris."),
    ("My name is Ann.", "My name is Ann Smith.", "I moved from Rome to Oslo."),
)


def say(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": text, "timestamp": f"2024-01-{day:02d}T00:00:00+00:00"}
        for day, text in enumerate(texts, 1)
    ]


def describe(driver: MemoryDriver) -> set[tuple[Any, ...]]:
    relations = driver.relations(user_id="u", ended=True)
    return {
        (one["source"], one["relationship"], one["destination"], one["valid_from"], one["valid_to"])
        for one in relations
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("texts", HISTORIES)
def test_one_add_of_messages_equals_one_add_for_each(tmp_path: Path, texts: tuple[str, ...], mode: Mode) -> None:
    with open_memory(tmp_path / "one") as memory, open_memory(tmp_path / "each") as other:
        together, apart = MemoryDriver(memory, mode), MemoryDriver(other, mode)
        together.add(say(texts), user_id="u")
        for message in say(texts):
            apart.add([message], user_id="u")
        assert describe(together) == describe(apart)
        assert memory.doctor(repair=False)["healthy"]
        assert memory.verify()["differences"] == []


def test_a_known_relation_that_is_restated_and_contradicted_ends(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Rome.", user_id="u", timestamp="2023-12-24")
        memory.add(say(["I live in Rome.", "I moved to Oslo."]), user_id="u")
        assert [one["destination"] for one in memory.relations(user_id="u")] == ["Oslo"]


def test_an_old_history_does_not_end_what_was_said_after_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Rome.", user_id="u")
        memory.add(say(["I live in Rome.", "I moved to Oslo."]), user_id="u")
        assert [one["destination"] for one in memory.relations(user_id="u")] == ["Rome"]


@pytest.mark.parametrize("mode", MODES)
def test_within_a_day_the_order_of_calls_decides_what_ends(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        driver.add("I live in Rome.", timestamp="2024-05-01T10:00:05Z", user_id="u")
        driver.add("I moved to Oslo.", timestamp="2024-05-01", user_id="u")
        assert [one["destination"] for one in driver.relations(user_id="u")] == ["Oslo"]


@pytest.mark.parametrize("mode", MODES)
def test_a_model_too_ends_what_began_on_the_day_of_a_message(tmp_path: Path, mode: Mode) -> None:
    model = GraphModel(relation_replies(("u", "lives_in", "Rome")))
    with open_memory(tmp_path, llm=model, graph="sqlite") as memory:
        driver = MemoryDriver(memory, mode)
        driver.add("I live in Rome.", timestamp="2024-05-01T10:00:05Z", user_id="u")
        ending = outdated(("u", "lives_in", "Rome"))
        set_replies(driver, relation_replies(("u", "lives_in", "Oslo"), outdated=ending))
        driver.add("I moved to Oslo.", timestamp="2024-05-01T10:00:02Z", user_id="u")
        assert [one["destination"] for one in driver.relations(user_id="u")] == ["Oslo"]


@pytest.mark.parametrize("mode", MODES)
def test_relations_of_a_model_end_by_a_later_message_too(tmp_path: Path, mode: Mode) -> None:
    found = (("u", "lives_in", "Rome"), ("u", "lives_in", "Oslo"), ("u", "likes", "tea"))
    model = GraphModel(relation_replies(*found))
    with open_memory(tmp_path, llm=model, graph="sqlite") as memory:
        driver = MemoryDriver(memory, mode)
        result = driver.add(say(["I live in Rome and like tea.", "I moved to Oslo."]), user_id="u")
        assert {one["destination"] for one in driver.relations(user_id="u")} == {"Oslo", "tea"}
        assert result["relations"]["deleted_entities"] == ["u -- lives_in -- Rome"]


def test_new_names_beyond_the_bound_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mem0_core.ingest.relations.MAX_NEW_NAMES", 3)
    with open_memory(tmp_path) as memory:
        result = memory.add(say(["I work at Galp.", "I live in Rome.", "I like Acme.", "I like Zeta."]), user_id="u")
        (note,) = result["skipped"]
        assert note["item"] == "Zeta"
        assert "in parts" in note["reason"]
        assert len(memory.relations(user_id="u")) == 4


@pytest.mark.parametrize(
    ("texts", "ended"),
    [
        (("I live in Rome.", "I moved to Oslo."), ["Rome"]),
        (("I moved to Oslo.", "I live in Rome."), []),
        (("I live in Rome.", "I moved to Oslo.", "Rome is my home again."), []),
        (("I live in Rome.", "I moved from Rome to Oslo."), ["Rome"]),
        (("I live in Rome. I moved to Oslo.",), []),
    ],
)
def test_a_later_ending_is_told_from_an_earlier_one(texts: tuple[str, ...], ended: list[str]) -> None:
    stated = [Triplet("u", "lives_in", "Rome"), Triplet("u", "lives_in", "Oslo")]
    read = [(index, extract_by_rules(text, speaker="u")) for index, text in enumerate(texts)]
    messages = [Message("user", text) for text in texts]
    changes = plan_later_endings(stated, read, messages, {})
    assert [change.triplet.destination for change in changes] == ended
    assert all(change == RelationChange(Event.DELETE, change.triplet, message_indexes=(1,)) for change in changes)
    assert all(change.triplet.key[0] == entity_key("u") for change in changes)
