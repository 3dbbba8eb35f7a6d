"""Consistency of the annotations: each problem is a sentence that names its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory_conformance.stories.data import TYPES, Person, has_answers

_MAY_HAVE_ENDED = {"past", "change", "negated", "who", "list", "chain2", "chain3", "advice"}
_MESSAGE_KEYS = {"i", "role", "time", "text", "facts", "begins", "ends"}
_QUESTION_KEYS = {
    *("id", "type", "question", "gold", "gold_facts", "stale", "stale_facts", "answers", "unanswerable"),
}


def find_problems(person: Person) -> list[str]:
    """Return the contradictions in the annotations of a person; an empty list if there is none."""
    try:
        parts = (_check_messages, _check_facts, _check_relations, _check_questions)
        return [f"{person['id']}: {problem}" for check in parts for problem in check(person)]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return [f"{person.get('id', 'a person')}: is not in the schema: {type(error).__name__}: {error}"]


def _check_messages(person: Person) -> Iterator[str]:
    messages = person["messages"]
    times = [datetime.fromisoformat(message["time"]) for message in messages]
    for number, (message, time) in enumerate(zip(messages, times, strict=True)):
        if set(message) != _MESSAGE_KEYS or message["i"] != number or message["role"] not in ("user", "assistant"):
            yield f"message {number} has another shape"
        if number and time <= times[number - 1]:
            yield f"message {number} is not later than the one before it"
        if message["role"] == "assistant" and (not number or messages[number - 1]["role"] != "user"):
            yield f"message {number} replies to no message of the user"
    if len({message["text"] for message in messages}) < len(messages):
        yield "two messages have the same text"


def _facts(person: Person) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((message["i"], fact) for message in person["messages"] for fact in message["facts"])


def _check_facts(person: Person) -> Iterator[str]:
    said_in: dict[str, int] = {}
    ended, replaced = person["ended_facts"], set[str]()
    for number, fact in _facts(person):
        if fact["id"] in said_in:
            yield f"the fact {fact['id']} exists twice"
        if fact["kind"] not in ("state", "event"):
            yield f"the fact {fact['id']} has the kind {fact['kind']!r}"
        for old in fact["replaces"]:
            replaced.add(old)
            if said_in.get(old, number) >= number:
                yield f"the fact {fact['id']} replaces {old}, which was not said before"
            elif ended.get(old, number + 1) > number:
                yield f"the fact {fact['id']} replaces {old}, which does not end by then"
        said_in[fact["id"]] = number
    for old, number in ended.items():
        if old not in said_in or not said_in[old] < number < len(person["messages"]):
            yield f"the ended fact {old} does not exist before message {number}"


def _check_relations(person: Person) -> Iterator[str]:
    """Replay what begins and ends, and compare the relations with it."""
    replayed: list[list[Any]] = []
    for message in person["messages"]:
        for triple in message["begins"]:
            if not any(row[:3] == triple and row[4] is None for row in replayed):
                replayed.append([*triple, message["i"], None])
        for triple in message["ends"]:
            holding = [row for row in replayed if row[:3] == triple and row[4] is None and row[3] < message["i"]]
            if not holding:
                yield f"message {message['i']} ends {triple}, which does not hold"
            for row in holding[:1]:
                row[4] = message["i"]
    columns = ("source", "relationship", "destination", "said_in", "ended_in")
    listed = [[relation[column] for column in columns] for relation in person["relations"]]
    if sorted(map(repr, replayed)) != sorted(map(repr, listed)):
        yield "the relations differ from what begins and ends"
    for relation in person["relations"]:
        if (relation["ended_in"] is None) != (relation["ends"] is None):
            yield f"the relation {relation['source']} {relation['relationship']} has only one of its two ends"
    names = {relation[end] for relation in person["relations"] for end in ("source", "destination")}
    if names != set(person["names"]):
        yield f"the names differ from those of the relations: {sorted(names ^ set(person['names']))}"


def _check_questions(person: Person) -> Iterator[str]:
    for number, question in enumerate(person["questions"]):
        if set(question) != _QUESTION_KEYS or question["id"] != f"{person['id']}-{number}":
            yield f"question {number} has another shape"
        elif question["type"] not in TYPES or question["unanswerable"] != (question["type"] == "unanswerable"):
            yield f"question {question['id']} has the type {question['type']!r}"
        elif question["unanswerable"]:
            if any(question[key] for key in ("gold", "gold_facts", "stale", "stale_facts", "answers")):
                yield f"question {question['id']} is unanswerable and has an answer"
        else:
            for problem in _check_answer(person, question):
                yield f"question {question['id']} {problem}"
    if missing := set(TYPES) - {question["type"] for question in person["questions"]}:
        yield f"no question is of the types {sorted(missing)}"


def _check_answer(person: Person, question: Mapping[str, Any]) -> Iterator[str]:
    said_in = {fact["id"]: number for number, fact in _facts(person)}
    texts = {fact["id"]: fact["text"] for _, fact in _facts(person)}
    gold, gold_facts, answers = question["gold"], question["gold_facts"], question["answers"]
    known = range(len(person["messages"]))
    if not gold or not gold_facts or not answers or not all(answers):
        yield "has no gold or no answers"
        return
    if any(index not in known for index in (*gold, *question["stale"])) or not {
        *gold_facts,
        *question["stale_facts"],
    } <= set(said_in):
        yield "names a message or fact that does not exist"
        return
    if set(gold) & set(question["stale"]) or set(gold_facts) & set(question["stale_facts"]):
        yield "has gold that is stale too"
    if {said_in[fact] for fact in gold_facts} != set(gold):
        yield "has gold facts of other messages than its gold"
    if {said_in[fact] for fact in question["stale_facts"]} - set(gold) != set(question["stale"]):
        yield "has stale facts of other messages than its stale ones"
    if question["type"] == "advice" and any(person["messages"][index]["role"] != "assistant" for index in gold):
        yield "asks for advice that the user gave"
    if question["type"] not in _MAY_HAVE_ENDED and any(fact in person["ended_facts"] for fact in gold_facts):
        yield "has a gold fact that ended"
    said = [person["messages"][index]["text"] for index in gold]
    for side, found in (("message", said), ("fact", [texts[one] for one in gold_facts])):
        whole = [" | ".join(found)] if question["type"] == "list" else found  # parts of a list are in several texts
        yield from (f"has a gold {side} without its answer: {one!r}" for one in whole if not has_answers(one, answers))
