"""Messages with marked statements, for the training of the statement tagger.

A line of `training/statements` is a message in which each value that it states of its speaker is marked, as in
``We left [-lives_in:Bonn] for [+lives_in:Kiel]``. Signs: ``+`` begins, ``-`` ends, ``<`` was true once, none holds.
``[-works_at!quit]`` marks words that state something without naming a value. Everything unmarked states nothing.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "EFFECTS",
    "FOLDER",
    "Mark",
    "Message",
    "Variation",
    "format_message",
    "parse_message",
    "read_messages",
    "split_messages",
]

FOLDER = Path(__file__).parent / "statements"
"""Marked messages, and values that take the place of theirs."""
_MARK = re.compile(r"\[([+<-]?)(\w+)([:!])([^\[\]]+)\]")
EFFECTS = {"": "holds", "+": "begins", "-": "ends", "<": "past"}


class Mark(NamedTuple):
    """A marked span of characters; without a value it names only what is said of the slot."""

    start: int
    stop: int
    family: str
    effect: str
    has_value: bool


class Message(NamedTuple):
    """A message and its marks, in the order of the text."""

    text: str
    marks: tuple[Mark, ...]


def read_messages(folder: Path = FOLDER) -> list[Message]:
    """Return all messages of a folder, in the order of its files."""
    lines = [line for file in sorted(folder.glob("*.txt")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [parse_message(line.strip()) for line in lines if line.strip()]


def parse_message(line: str) -> Message:
    """Return a marked line as a message.

    Raises:
        ValueError: a bracket is left over.
    """
    text, marks, last = "", [], 0
    for match in _MARK.finditer(line):
        text += line[last : match.start()]
        sign, family, kind, value = match.groups()
        marks.append(Mark(len(text), len(text) + len(value), family, EFFECTS[sign], kind == ":"))
        text, last = text + value, match.end()
    text += line[last:]
    if re.search(r"\[[+<-]?\w+[:!]", text):
        raise ValueError(f"a mark is not closed in {line!r}")
    return Message(text, tuple(marks))


def format_message(message: Message) -> str:
    """Return a message as a marked line."""
    signs = {effect: sign for sign, effect in EFFECTS.items()}
    line, last = "", 0
    for mark in message.marks:
        kind = ":" if mark.has_value else "!"
        line += f"{message.text[last : mark.start]}[{signs[mark.effect]}{mark.family}{kind}"
        line += f"{message.text[mark.start : mark.stop]}]"
        last = mark.stop
    return line + message.text[last:]


class Variation:
    """Varies messages: other values of the same kind, no capitals, no punctuation, no apostrophes.

    Args:
        messages: messages whose values are taken too.
    """

    def __init__(self, messages: list[Message], rng: random.Random) -> None:
        self._rng = rng
        self._values: dict[str, list[str]] = {}
        self._kind: dict[str, str] = {}
        for kind, table in tomllib.loads((FOLDER / "values.toml").read_text(encoding="utf-8")).items():
            values = " ".join(table["values"].split())
            self._values[kind] = [value.strip() for value in values.split(";")]
            self._kind |= dict.fromkeys(table["families"].split(), kind)
        for message in messages:
            for mark in message.marks:
                if mark.family in self._kind and mark.has_value:
                    self._values[self._kind[mark.family]].append(message.text[mark.start : mark.stop])
        self._by_case: Mapping[tuple[str, bool], list[str]] = {
            (kind, is_name): [value for value in values if value[:1].isupper() is is_name]
            for kind, values in self._values.items()
            for is_name in (True, False)
        }

    def vary(self, message: Message) -> Message:
        """Return a random variant."""
        changes = (
            (0.7, self._replace_values),
            (0.25, lambda one: one._replace(text=_lower(one.text))),
            (0.15, lambda one: _drop(one, "'’")),
            (0.15, lambda one: _drop(one, ",.;:!")),
        )
        for share, change in changes:
            if self._rng.random() < share:
                message = change(message)
        return message

    def _replace_values(self, message: Message) -> Message:
        text, marks, last = "", [], 0
        is_casual = message.text == message.text.lower()
        for mark in message.marks:
            text += message.text[last : mark.start]
            value = message.text[mark.start : mark.stop]
            choices = self._choices(mark, value, is_casual)
            if choices and self._rng.random() < 0.6:
                value = self._rng.choice(choices)
                value = value.lower() if is_casual else value
            marks.append(mark._replace(start=len(text), stop=len(text) + len(value)))
            text, last = text + value, mark.stop
        return Message(text + message.text[last:], tuple(marks))

    def _choices(self, mark: Mark, value: str, is_casual: bool) -> list[str]:
        kind = self._kind.get(mark.family)
        if kind is None or not mark.has_value:
            return []
        return self._values[kind] if is_casual else self._by_case[kind, value[:1].isupper()]


def _lower(text: str) -> str:
    """Return a text in lower case, character by character, so that offsets stay."""
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _drop(message: Message, chars: str) -> Message:
    """Return a message without some characters."""
    kept = [index for index, char in enumerate(message.text) if char not in chars]
    new = {old: place for place, old in enumerate(kept)}

    def move(offset: int) -> int:
        while offset < len(message.text) and offset not in new:
            offset += 1
        return new.get(offset, len(kept))

    text = "".join(message.text[index] for index in kept)
    return Message(text, tuple(mark._replace(start=move(mark.start), stop=move(mark.stop)) for mark in message.marks))


def split_messages(messages: list[Message], share: float, rng: random.Random) -> tuple[list[Message], list[Message]]:
    """Return messages in random order, in two parts: to train on, and a share that is kept aside."""
    shuffled = rng.sample(messages, len(messages))
    count = int(len(messages) * share)
    return shuffled[count:], shuffled[:count]
