"""Statements in further languages: clauses of fixed words and slots, one line each in a data file.

A language is chosen for a text by its function words. The reader knows names, relatives, negation and lists, and skips
questions, suppositions and hearsay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from mem0_core._system.records import dataclass
from mem0_core.domain.bounds import MAX_STATEMENTS
from mem0_core.language._reader import SPEAKER, Effect, Statement
from mem0_core.language._tables import load_tables

LANGUAGES = ("spanish",)
MAX_NAME_WORDS = 4
MAX_ITEM_WORDS = 3
MIN_FUNCTION_WORDS = 2  # of a text that is not English
MIN_FUNCTION_SHARE = 0.3
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*|\n|\S")
_ENDS = frozenset(".!?…\n")
_EFFECTS: Mapping[str, Effect] = {"present": "holds", "change": "begins", "past": "past"}


class _Phrase(NamedTuple):
    """A clause: its words and slots, the families that it states by slot, and its person."""

    parts: tuple[str, ...]
    meanings: tuple[tuple[str, str, int], ...]
    effect: Effect
    is_first_person: bool


@dataclass(frozen=True)
class _Language:
    words: Mapping[str, frozenset[str]]
    kin: Mapping[str, str]
    phrases: Mapping[str, tuple[_Phrase, ...]]
    diets: frozenset[str]


@lru_cache(maxsize=4)
def _load(language: str) -> _Language:
    table = load_tables(language)
    diets = frozenset(table["clauses"].pop("diets").split())
    phrases: dict[str, list[_Phrase]] = {}
    for group, text in table["clauses"].items():
        for phrase in _read_phrases(group, text):
            phrases.setdefault(phrase.parts[0], []).append(phrase)
    return _Language(
        {name: frozenset(text.split()) for name, text in table["words"].items()},
        {noun: family for family, nouns in table["kin"].items() for noun in nouns.split()},
        {head: tuple(sorted(each, key=lambda one: -len(one.parts))) for head, each in phrases.items()},
        diets,
    )


def _read_phrases(group: str, text: str) -> Iterator[_Phrase]:
    for line in re.sub(r",\s*\n\s*", ", ", text.strip()).splitlines():
        about, _, forms = line.partition(": ")
        meanings = tuple(_read_meaning(part.strip()) for part in about.split(";"))
        for number, side in enumerate(forms.split("|")):
            for form in filter(None, map(str.split, side.split(","))):
                yield _Phrase(tuple(form), meanings, _EFFECTS[group], number == 0)


def _read_meaning(text: str) -> tuple[str, str, int]:
    family, _, slot = text.lstrip("+-").partition(" ")
    return text[0] if text[0] in "+-" else "", family, int(slot or 1) - 1


def detect_language(text: str) -> str:
    """Return the language of a text, by its function words; ``english`` in doubt."""
    lows = [token.lower() for token in _TOKEN.findall(text[:1_000]) if token[0].isalpha()]
    for language in LANGUAGES:
        count = sum(map(_load(language).words["function"].__contains__, lows))
        if count >= MIN_FUNCTION_WORDS and count >= MIN_FUNCTION_SHARE * len(lows):
            return language
    return "english"


def read_phrases(text: str, language: str) -> list[Statement]:
    """Return the statements of a text in a language other than English, in its order."""
    return _PhraseReader(text, _load(language)).read()


class _PhraseReader:
    """One pass over the sentences of a text."""

    def __init__(self, text: str, language: _Language) -> None:
        self._language, self._words = language, language.words
        self.tokens: list[str] = _TOKEN.findall(text)
        self.lows = [token.lower() for token in self.tokens]
        self.statements: list[Statement] = []

    def read(self) -> list[Statement]:
        """Return the statements of the text; no further ones once there are `MAX_STATEMENTS`."""
        start = 0
        for index, token in enumerate([*self.tokens, "."]):
            if token in _ENDS:
                if token != "?":
                    self._sentence(start, index)
                start = index + 1
        return self.statements

    def _sentence(self, start: int, end: int) -> None:
        subject, index = SPEAKER, start
        while index < end and len(self.statements) < MAX_STATEMENTS:
            low = self.lows[index]
            if low in self._words["unreal"] or low in {'"', "«", "“"}:
                return
            person = self._person(index, end)
            if person is not None:
                subject, index = person
                continue
            stop = self._phrase(subject, index, end)
            if stop == index and low in self._words["speaker"]:
                subject = SPEAKER
            index = max(stop, index + 1)

    def _name_end(self, at: int, end: int) -> int:
        stop = at
        while stop < min(end, at + MAX_NAME_WORDS) and self.tokens[stop][0].isupper() and self._is_name(stop):
            stop += 1
        return stop

    def _is_name(self, index: int) -> bool:
        return self.lows[index] not in self._words["no_names"]

    def _person(self, at: int, end: int) -> tuple[str, int] | None:
        """Read ``mi hermana Ana``, ``mi hermana se llama Ana``, ``mi hermana``, or a name before its verb."""
        if self.lows[at] not in self._words["own"]:
            stop = self._name_end(at, end)
            is_subject = at < stop < end and self._starts_third(stop, end)
            return (" ".join(self.tokens[at:stop]), stop) if is_subject else None
        noun = at + 1
        while noun < end and self.lows[noun] in self._words["adjectives"] and self.lows[noun] not in self._language.kin:
            noun += 1
        family = self._language.kin.get(self.lows[noun]) if noun < end else None
        if family is None:
            return None
        first = noun + 1
        if self.lows[first : first + 2] == ["se", "llama"]:
            first += 2
        elif self.lows[first : first + 1] == ["es"]:
            first += 1
        stop = self._name_end(first, end)
        if stop == first:
            return f"my {self.lows[noun]}", noun + 1
        name = " ".join(self.tokens[first:stop])
        self.statements.append(Statement(SPEAKER, family, name, "holds"))
        return name, stop

    def _starts_third(self, at: int, end: int) -> bool:
        at += self.lows[at] in {"ya", "no", "ahora"} and at + 1 < end
        at += self.lows[at] in {"no"} and at + 1 < end
        return any(not phrase.is_first_person for phrase in self._language.phrases.get(self.lows[at], ()))

    def _phrase(self, subject: str, at: int, end: int) -> int:
        for phrase in self._language.phrases.get(self.lows[at], ()):
            if not phrase.is_first_person and subject == SPEAKER:
                continue
            found = self._match(phrase, at, end)
            if found is not None:
                values, stop = found
                owner = SPEAKER if phrase.is_first_person else subject
                self._say(owner, phrase, values, is_negative=self.lows[max(0, at - 1)] == "no" and at > 0)
                return stop
        return at

    def _match(self, phrase: _Phrase, at: int, end: int) -> tuple[list[list[str]], int] | None:
        values: list[list[str]] = []
        for part in phrase.parts:
            if at >= end:
                return None
            if part.islower():
                if self.lows[at] != part:
                    return None
                at += 1
                continue
            items, stop = self._value(part, at, end)
            if not items:
                return None
            values.append(items)
            at = stop
        return values, at

    def _value(self, slot: str, at: int, end: int) -> tuple[list[str], int]:
        first = at + (self.lows[at] in self._words["articles"])
        stop = self._name_end(first, end)
        if slot == "NAME" or (slot == "ORG" and stop > first):
            return ([" ".join(self.tokens[first:stop])] if stop > first else []), stop
        if slot == "DIET":
            return ([self.tokens[at]], at + 1) if self.lows[at] in self._language.diets else ([], at)
        if slot == "THINGS":
            return self._items(at, end)
        stop = self._item_end(first, end)
        fits = 0 < stop - first <= MAX_ITEM_WORDS and (slot == "ROLE" or first > at)
        return ([" ".join(self.tokens[first:stop])] if fits else []), stop

    def _items(self, at: int, end: int) -> tuple[list[str], int]:
        """Read ``el café, los perros y nadar``."""
        items: list[str] = []
        while at < end:
            first = at + (self.lows[at] in self._words["articles"])
            stop = self._item_end(first, end)
            if not 0 < stop - first <= MAX_ITEM_WORDS or not self._words["vague"].isdisjoint(self.lows[first:stop]):
                break
            items.append(" ".join(self.tokens[first:stop]))
            at = stop
            if at + 1 >= end or self.lows[at] not in self._words["joins"] or self._starts_clause(at + 1):
                break
            at += 1
        return items, at

    def _starts_clause(self, at: int) -> bool:
        return self.lows[at] in self._language.phrases or self.lows[at] in self._words["own"]

    def _item_end(self, at: int, end: int) -> int:
        stop = at
        while stop < min(end, at + MAX_ITEM_WORDS + 1) and self.tokens[stop][0].isalnum():
            if self.lows[stop] in self._words["breaks"] or self.lows[stop] in self._words["joins"]:
                break
            stop += 1
        return stop

    def _say(self, subject: str, phrase: _Phrase, values: list[list[str]], *, is_negative: bool) -> None:
        for sign, family, slot in phrase.meanings:
            effect: Effect = "ends" if sign == "-" else phrase.effect
            if is_negative:
                if phrase.effect != "holds":
                    continue
                effect = "ends"
            for value in values[slot]:
                if value.casefold() != subject.casefold():
                    self.statements.append(Statement(subject, family, value, effect))
