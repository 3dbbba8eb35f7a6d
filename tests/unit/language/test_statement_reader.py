"""Statements of everyday English: the subject, its relation family, the value, and whether it begins or ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from mem0_core.domain.records import DateRange
from mem0_core.language.families import family_of_label
from mem0_core.language.statements import SPEAKER, read_statements

SAID_ON = date(2024, 6, 5)
LABELS = Path(__file__).parents[2] / "data" / "rules_en.jsonl"
Key = tuple[str, str, str]


def read(text: str) -> list[str]:
    """Return the certain statements of a text: effect, subject, family, value."""
    return [
        " ".join(part for part in (each.effect, each.subject or "I", each.family, each.value) if part)
        for each in read_statements(text, said_on=SAID_ON)
        if each.is_certain
    ]


STATED = {
    "i live in berlin": ["holds I lives_in berlin"],
    "I moved from Rome to Milan.": ["begins I lives_in Milan", "ends I lives_in Rome"],
    "We're in an apartment in Superior now": ["begins I lives_in Superior"],
    "found a flat in York. its only one bed but its mine": ["begins I lives_in York"],
    "from Monday I'm at Banco Atlas, in the payroll team": ["begins I works_at Banco Atlas"],
    "first day at Boston Children's!!": ["begins I works_at Boston Children's"],
    "Works as a bookkeeper at the hotel Casa Blu.": ["holds I works_as bookkeeper", "holds I works_at Casa Blu"],
    "Jim is the CEO of Zeta.": ["holds Jim works_as CEO", "holds Jim works_at Zeta"],
    "Karen is my boss.": ["holds I boss Karen"],
    "My sister lives in Oslo.": ["holds my sister lives_in Oslo"],
    "Anna, who works at Galp, lives in Porto.": ["holds Anna works_at Galp", "holds Anna lives_in Porto"],
    "Anna and Bob live in Oslo.": ["holds Anna lives_in Oslo", "holds Bob lives_in Oslo"],
    "Her sister Ingrid lives in Malmö.": ["holds I sister Ingrid", "holds Ingrid lives_in Malmö"],
    "Marco is my cousin. He works for Fiat.": ["holds I cousin Marco", "holds Marco works_at Fiat"],
    "sold the Corsa, got an electric Zoe": [
        "ends I drives Corsa",
        "ends I owns Corsa",
        "begins I drives electric Zoe",
    ],
    "Adopted a kitten!! Her name's Miso.": ["begins I has_pet Miso"],
    "Had Rex put down on Monday.": ["ends I has_pet Rex"],
    "seeing someone new, his name is Duarte": ["holds I partner Duarte"],
    "The doctor swapped the ramipril for candesartan.": [
        "begins I takes candesartan",
        "ends I takes ramipril",
    ],
    "I speak French, German and a bit of Italian.": [
        "holds I speaks French",
        "holds I speaks German",
        "holds I speaks Italian",
    ],
    "I love hiking and playing the guitar.": ["holds I likes hiking", "holds I likes playing the guitar"],
    "My favourite food is lasagna.": ["holds I favorite lasagna"],
    "Takes 50 mg of losartan instead of lisinopril.": ["holds I takes losartan", "ends I takes lisinopril"],
    "gave up surfing, the water is freezing": ["ends I hobby surfing"],
    "I used to live in Prague.": ["past I lives_in Prague"],
    "divorce came through today": ["ends I married_to"],
    "Correction: I live in Leeds, not Leicester.": ["holds I lives_in Leeds", "ends I lives_in Leicester"],
}


@pytest.mark.parametrize("text", STATED)
def test_everyday_sentences_are_read(text: str) -> None:
    assert read(text) == STATED[text]


SILENT = [
    "Does Anna live in Paris?",
    "I wish I lived in Rome.",
    "My friend says he works at NASA.",
    "I'm in Paris for work this week.",
    "I'm over the moon about it!",
    "Losing a job is hard.",
    "I take the bus.",
    "I'm 5 minutes late.",
    "I've been my own boss.",
    "She works at Audi.",
    "I live for weekends.",
    "I left my keys at home.",
]


@pytest.mark.parametrize("text", SILENT)
def test_other_sentences_state_nothing(text: str) -> None:
    assert read(text) == []


def test_a_plan_touches_its_slot_without_certainty() -> None:
    (said,) = read_statements("I'm moving to Rome.", said_on=SAID_ON)
    assert (said.subject, said.family, said.value, said.is_certain) == (SPEAKER, "lives_in", "Rome", False)


def test_quitting_leaves_the_occupation_open() -> None:
    said = read_statements("I quit my job at Tesco.", said_on=SAID_ON)
    assert [(each.family, each.effect, each.is_certain) for each in said] == [
        ("works_at", "ends", True),
        ("works_as", "ends", False),
    ]


def test_the_days_of_a_clause_are_read() -> None:
    (said,) = read_statements("I moved to Oslo in May 2023.", said_on=SAID_ON)
    assert said.days == DateRange("2023-05-01", "2023-05-31")


def test_a_relation_keeps_the_word_that_says_more_than_its_family() -> None:
    (said,) = read_statements("My girlfriend is Ines.", said_on=SAID_ON)
    assert (said.family, said.relation, said.value) == ("partner", "girlfriend", "Ines")


def labeled(split: str) -> Iterator[tuple[str, set[Key], set[Key]]]:
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["split"] == split:
            yield case["text"], {key(*each) for each in case["begins"]}, {key(*each) for each in case["ends"]}


def key(subject: str, relation: str, value: str) -> Key:
    family = family_of_label(relation)
    folded = value.casefold().removeprefix("a ").removeprefix("an ").removeprefix("the ")
    return subject.casefold() or "user", family.name if family else relation, folded


def score(split: str) -> tuple[float, float]:
    """Return precision and recall of beginnings and endings; an ending of another family of the value is no error."""
    right = stated = wanted = 0
    for text, begins, ends in labeled(split):
        begun, ended = set[Key](), set[Key]()
        for each in read_statements(text, said_on=SAID_ON):
            found = key(each.subject, each.family, each.value)
            if each.is_certain and (each.effect in ("holds", "begins") or each.relation == "studied_at"):
                begun |= {found} if each.value else set()
            elif each.is_certain:
                ended.add(found)
                begun.discard(found)
        known = {(subject, value) for subject, _, value in ends} | {(subject, "") for subject, _, _ in ends}
        right += len(begun & begins) + len(ended & ends)
        stated += len(begun) + len(ended & ends) + sum((one[0], one[2]) not in known for one in ended)
        wanted += len(begins) + len(ends)
    return right / stated, right / wanted


@pytest.mark.parametrize(("split", "precision", "recall"), [("dev", 0.97, 0.95), ("held", 0.92, 0.76)])
def test_labeled_sentences_are_read_with_precision_and_recall(split: str, precision: float, recall: float) -> None:
    measured = score(split)
    assert measured >= (precision, 0)
    assert measured[1] >= recall
