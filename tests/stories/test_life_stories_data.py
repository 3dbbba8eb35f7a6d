"""Consistency of the annotated life stories in `benchmarks/data`."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "benchmarks" / "data"
TYPES = {"present", "past", "change", "chain2", "chain3", "list", "negated"} | {
    *("who", "advice", "typo", "paraphrase", "unanswerable")
}
PERSONAS: list[dict[str, Any]] = [
    persona
    for path in sorted(DATA.glob("life_stories_own_*.json"))
    for persona in json.loads(path.read_text(encoding="utf-8"))["personas"]
]

every_persona = pytest.mark.parametrize("persona", PERSONAS, ids=[p["id"] for p in PERSONAS])


def fold(text: str) -> str:
    return " ".join(text.casefold().split())


def fact_texts(persona: dict[str, Any]) -> dict[str, str]:
    return {fact["id"]: fact["text"] for message in persona["messages"] for fact in message["facts"]}


@every_persona
def test_messages_are_numbered_and_in_order_of_time(persona: dict[str, Any]) -> None:
    messages = persona["messages"]
    times = [datetime.fromisoformat(message["time"]) for message in messages]
    assert [message["i"] for message in messages] == list(range(len(messages)))
    assert all(earlier < later for earlier, later in pairwise(times))


@every_persona
def test_fact_ids_are_unique_and_replaced_facts_were_stated_before(persona: dict[str, Any]) -> None:
    known: set[str] = set()
    ended: dict[str, int] = {}
    for message in persona["messages"]:
        for fact in message["facts"]:
            assert fact["id"] not in known
            assert set(fact["replaces"]) <= known
            known.add(fact["id"])
            for replaced in fact["replaces"]:
                ended.setdefault(replaced, message["i"])
    assert persona["ended_facts"] == ended


@every_persona
def test_relations_follow_from_what_the_messages_begin_and_end(persona: dict[str, Any]) -> None:
    open_since: dict[tuple[str, ...], int] = {}
    spans: list[tuple[Any, ...]] = []
    for message in persona["messages"]:
        spans += [(*ended, open_since.pop(tuple(ended)), message["i"]) for ended in message["ends"]]
        for begun in message["begins"]:
            open_since.setdefault(tuple(begun), message["i"])
    spans += [(*triple, said_in, None) for triple, said_in in open_since.items()]
    keys = ("source", "relationship", "destination", "said_in", "ended_in")
    assert sorted(map(str, spans)) == sorted(str(tuple(r[key] for key in keys)) for r in persona["relations"])
    assert persona["names"] == sorted({r[end] for r in persona["relations"] for end in ("source", "destination")})


@every_persona
def test_questions_cover_every_type_and_name_known_messages_and_facts(persona: dict[str, Any]) -> None:
    facts = fact_texts(persona)
    assert {question["type"] for question in persona["questions"]} == TYPES
    for question in persona["questions"]:
        assert set(question["gold_facts"] + question["stale_facts"]) <= set(facts), question["id"]
        assert set(question["gold"] + question["stale"]) <= set(range(len(persona["messages"]))), question["id"]
        assert not set(question["gold"]) & set(question["stale"]), question["id"]
        assert question["unanswerable"] == (not question["gold"]) == (question["type"] == "unanswerable")


@every_persona
def test_gold_messages_and_gold_facts_contain_the_answers(persona: dict[str, Any]) -> None:
    facts = fact_texts(persona)
    for question in persona["questions"]:
        said = [fold(persona["messages"][i]["text"]) for i in question["gold"]]
        learned = [fold(facts[i]) for i in question["gold_facts"]]
        for group in question["answers"]:
            for texts in (said, learned):
                assert any(fold(answer) in text for answer in group for text in texts), (question["id"], group)
            assert all(any(fold(answer) in text for text in said + learned) for answer in group), question["id"]
