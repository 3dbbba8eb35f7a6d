"""Tell the stories to a system, and ask its questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_conformance.api import Said, System
from memory_conformance.stories.data import Person, fold

LIMIT = 10
MAX_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of a system to one question.

    Attributes:
        texts: Texts that it recalls, best first.
        origins: For each text the messages and facts that it repeats: their indexes and ids.
        context: Text for a prompt; None if the system makes none.
        declined: True if it says that it knows no answer; None if it never says so.
    """

    person: str
    language: str
    question: dict[str, Any]
    texts: Sequence[str] = ()
    origins: Sequence[frozenset[int | str]] = field(default=())
    context: str | None = None
    declined: bool | None = None


def play(system: System, people: Sequence[Person]) -> Iterator[Asked]:
    """Tell all stories, then ask all questions: each person is an owner, and all share the system."""
    for person in people:
        for turn in list_turns(person):
            system.tell(person["id"], turn)
    for person in people:
        now = datetime.fromisoformat(person["messages"][-1]["time"])
        known = _read_origins(person)
        for question in person["questions"]:
            texts = list(system.recall(person["id"], question["question"], now=now, limit=LIMIT))
            yield Asked(
                person["id"],
                person.get("language", "en"),
                question,
                texts,
                [_find_origins(text, known) for text in texts],
                system.make_context(person["id"], question["question"], now=now, max_tokens=MAX_TOKENS),
                system.declines(person["id"], question["question"], now=now),
            )


def list_turns(person: Person) -> list[list[Said]]:
    """Return the turns of a person: a message and the reply to it."""
    turns: list[list[Said]] = []
    for message in person["messages"]:
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(Said(message["role"], message["text"], datetime.fromisoformat(message["time"])))
    return turns


def _read_origins(person: Person) -> dict[str, int | str]:
    messages = {fold(message["text"]): message["i"] for message in person["messages"]}
    return messages | {fold(fact["text"]): fact["id"] for message in person["messages"] for fact in message["facts"]}


def _find_origins(text: str, known: dict[str, int | str]) -> frozenset[int | str]:
    folded = fold(text)
    return frozenset(origin for said, origin in known.items() if said in folded)
