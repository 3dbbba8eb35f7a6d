"""Relations that the rules read in plain English, and texts that they leave alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core.domain.records import Entity
from mem0_core.language.rule_extractor import RuleExtraction, entities, extract_by_rules


def said(text: str) -> list[str]:
    """The relations of a text that Eve says, ``source relation destination``."""
    return [
        f"{each.source} {each.relationship} {each.destination}"
        for each in extract_by_rules(text, speaker="Eve").relations
    ]


def over(text: str) -> list[str]:
    """What the text ends, without "no longer disliked" and the like, which every liking says."""
    ended = extract_by_rules(text, speaker="Eve").ended
    return [
        f"{each.source} {each.relationship} {each.destination}" for each in ended if each.relationship != "dislikes"
    ]


def names(text: str) -> list[str]:
    return [entity.name for entity in entities(text)]


STATED = {
    "I live in Paris.": ["Eve lives_in Paris"],
    "We live in New York now": ["Eve lives_in New York"],
    "Anna Smith lives in San Francisco with her dog.": ["Anna Smith lives_in San Francisco"],
    "I've been living in São Paulo since May.": ["Eve lives_in São Paulo"],
    "I have lived in Rome for ten years.": ["Eve lives_in Rome"],
    "Élodie O’Brien lives in the Netherlands.": ["Élodie O’Brien lives_in Netherlands"],
    "Иван Петров lives in Москва.": ["Иван Петров lives_in Москва"],
    "My wife and I live in Boston.": ["Eve lives_in Boston"],
    "I'm from St. Louis.": ["Eve is_from St. Louis"],
    "Bob’s from the U.S.": ["Bob is_from U.S."],
    "Anna was born in New Delhi in 1990.": ["Anna born_in New Delhi"],
    "I work at the University of Oxford.": ["Eve works_at University of Oxford"],
    "Hi, I work for a small bakery in Lyon.": ["Eve works_at small bakery"],
    "Bob works at McDonald's.": ["Bob works_at McDonald's"],
    "I work as a tour guide.": ["Eve works_as tour guide"],
    "I'm a software engineer and I live in Ulm.": ["Eve works_as software engineer", "Eve lives_in Ulm"],
    "Anna is an architect.": ["Anna works_as architect"],
    "I graduated from Brown University last year.": ["Eve studied_at Brown University"],
    "I like tea.": ["Eve likes tea"],
    "I really love Anna's cooking!": ["Eve likes Anna's cooking"],
    "I like fish and chips.": ["Eve likes fish", "Eve likes chips"],
    "Anna enjoys hiking, old maps and jazz.": ["Anna likes hiking", "Anna likes old maps", "Anna likes jazz"],
    "I like tea and Bob likes coffee.": ["Eve likes tea", "Bob likes coffee"],
    "I like tea and milk, and I am well.": ["Eve likes tea", "Eve likes milk"],
    "I like tea, Bob and I like the Beatles.": ["Eve likes tea", "Eve likes Beatles"],
    "I'm a big fan of C++": ["Eve likes C++"],
    "I hate olives.": ["Eve dislikes olives"],
    "Bob can't stand loud music.": ["Bob dislikes loud music"],
    "I prefer tea to coffee.": ["Eve prefers tea"],
    "I'm allergic to nuts, eggs and dairy.": ["Eve allergic_to nuts", "Eve allergic_to eggs", "Eve allergic_to dairy"],
    "Anna is married to Tom Reed.": ["Anna married_to Tom Reed"],
    "I speak French and German.": ["Eve speaks French", "Eve speaks German"],
    "I play the piano and tennis.": ["Eve plays piano", "Eve plays tennis"],
    "Anna owns a red bicycle.": ["Anna owns red bicycle"],
    "My name is Eva Braun-Meyer.": ["Eve name Eva Braun-Meyer"],
    "My sister Anna called.": ["Eve sister Anna"],
    "My older sister is Anna.": ["Eve sister Anna"],
    "My sister's name is Anna.": ["Eve sister Anna"],
    "Tom's brother is Bob Reed.": ["Tom brother Bob Reed"],
    "I met my friend John's boss.": ["Eve friend John"],
    "My sister Anna lives in Rome": ["Eve sister Anna", "Anna lives_in Rome"],
    "My dog Rex likes bones.": ["Eve has_pet Rex", "Rex likes bones"],
    "My cat is called Milo.": ["Eve has_pet Milo"],
    "My cats are called Milo and Otis.": ["Eve has_pet Milo", "Eve has_pet Otis"],
    "Anna has a dog named Rex.": ["Anna has_pet Rex"],
    "I live in Paris and work at Acme.": ["Eve lives_in Paris", "Eve works_at Acme"],
    "I live in Paris, how do I get to Lyon?": ["Eve lives_in Paris"],
    "I live in Paris. i like tea": ["Eve lives_in Paris", "Eve likes tea"],
}


@pytest.mark.parametrize("text", STATED)
def test_plain_statements_become_relations(text: str) -> None:
    assert said(text) == STATED[text]


NOTHING = [
    # asked, wished, supposed, commanded
    "Do I like tea? Does Anna live in Paris?",
    "I live in Paris, right?",
    "Where does Anna work at Acme?",
    "If I lived in Rome, I would like it. If I win, I live in Rome.",
    "I would like tea. I'd like milk.",
    "I want to live in Rome.",
    "I might work at Acme. Maybe I like tea.",
    "I wish I lived in Rome. I hope Anna works at Acme.",
    "I'm moving to Rome.",
    "Live in Rome and like tea!",
    # of whom?
    "He lives in Paris. She likes tea. They work at Acme.",
    "My sister lives in Paris.",
    "The man Anna knows lives in Paris.",
    "Nobody likes tea. Everyone in Rome speaks Italian.",
    "Anna or Bob lives in Rome. I know people who live in Rome and work at Acme.",
    # others say it
    'Anna said "I live in Paris".',
    "“I like tea. I live in Rome.”",
    'She wrote: "I work at Acme and never said more',
    "Anna: I live in Paris",
    "Anna said I like tea. Bob told me Anna likes tea.",
    # past and passing
    "I lived in Rome. I liked the film. I was a teacher. I am enjoying the party.",
    # objects that do not speak for themselves
    "I like it. I love the colours. I love your idea. I like how you sing.",
    "I live in a small town. I work at night. I live in Anna's house.",
    "I love making this cake.",
    "I'm a mess. I play a big role.",
    "My brother is Italian.",
    "It's my dog, Anna!",
    "I'm used to living in Rome.",
    "I feel like tea.",
    "",
]


@pytest.mark.parametrize("text", NOTHING)
def test_anything_less_than_a_plain_statement_says_nothing(text: str) -> None:
    assert said(text) == []
    assert over(text) == []


CHANGED: dict[str, tuple[list[str], list[str]]] = {
    "I don't like tea.": ([], ["Eve likes tea"]),
    "I do not really like tea or milk anymore.": ([], ["Eve likes tea", "Eve likes milk"]),
    "Anna doesn't work at Acme.": ([], ["Anna works_at Acme"]),
    "Anna isn't married to Bob.": ([], ["Anna married_to Bob"]),
    "I no longer work at Acme.": ([], ["Eve works_at Acme"]),
    "Anna no longer lives in Rome, she left.": ([], ["Anna lives_in Rome"]),
    "I used to live in Rome.": ([], ["Eve lives_in Rome"]),
    "I used to be a teacher.": ([], ["Eve works_as teacher"]),
    "I've stopped liking jazz.": ([], ["Eve likes jazz"]),
    "I quit my job at Acme last week.": ([], ["Eve works_at Acme"]),
    "I quit my job.": ([], ["Eve works_at None"]),
    "Anna left Acme in May.": ([], ["Anna works_at Acme"]),
    "I moved from Rome.": ([], ["Eve lives_in Rome"]),
    "I moved to San Diego last week.": (["Eve lives_in San Diego"], ["Eve lives_in None"]),
    "Anna has moved to Rome with Bob.": (["Anna lives_in Rome"], ["Anna lives_in None"]),
    "I now work at Acme.": (["Eve works_at Acme"], ["Eve works_at None"]),
    "Now I live in Rome.": (["Eve lives_in Rome"], ["Eve lives_in None"]),
    "I got a new job at Acme.": (["Eve works_at Acme"], ["Eve works_at None"]),
    "I now like tea.": (["Eve likes tea"], []),
    "I hate tea.": (["Eve dislikes tea"], ["Eve likes tea"]),
    "I used to work at Acme but now I work at Initech.": (["Eve works_at Initech"], ["Eve works_at None"]),
    "I moved to Rome. Then we moved to Oslo. I moved to Bonn.": (["Eve lives_in Bonn"], ["Eve lives_in None"]),
    # what limits a "not" says nothing
    "I don't like tea in the morning.": ([], []),
    "I don't like tea as much as milk.": ([], []),
    "I don't always like tea.": ([], []),
    "I don't just like tea, I love tea.": (["Eve likes tea"], []),
    "I never moved to Rome.": ([], []),
    "I didn't like the film.": ([], []),
}


@pytest.mark.parametrize("text", CHANGED)
def test_negation_and_change_end_what_was(text: str) -> None:
    assert (said(text), over(text)) == CHANGED[text]


def test_the_last_word_of_a_text_on_a_relation_counts() -> None:
    assert (said("I like tea. I don't like tea."), over("I like tea. I don't like tea.")) == ([], ["Eve likes tea"])
    assert (said("I don't like tea. I like tea."), over("I don't like tea. I like tea.")) == (["Eve likes tea"], [])


def test_a_liking_ends_a_dislike() -> None:
    assert [(each.relationship, each.destination) for each in extract_by_rules("I like tea.", speaker="Eve").ended] == [
        ("dislikes", "tea")
    ]


def test_entities_hold_both_ends_of_every_relation_with_their_types() -> None:
    found = extract_by_rules("My sister Anna moved to Rome and likes tea.", speaker="eve_1").entities
    assert found == (Entity("Anna", "person"), Entity("Rome", "place"), Entity("eve_1", "person"), Entity("tea"))


def test_without_a_speaker_i_is_nobody() -> None:
    assert extract_by_rules("I like tea. My sister Anna likes milk. Bob likes gin.", speaker=" ").relations == (
        *extract_by_rules("Anna likes milk. Bob likes gin.", speaker="").relations,
    )


NAMED = {
    "Where does Anna live?": ["Anna"],
    "What did Anna's brother tell Dr. Smith about Mont Blanc on Monday?": ["Anna", "Dr. Smith", "Mont Blanc"],
    "Paris": ["Paris"],
    'Did Bob read "a tale of a tub"?': ["a tale of a tub", "Bob"],
    "She read «War and Peace» and “Emma”.": ["War and Peace", "Emma"],
    'Then Bob said "Yes, I met Anna."': ["Bob", "Anna"],
    "The University of Oxford, the Bank of England": ["University of Oxford", "Bank of England"],
    "We saw Ludwig van Beethoven & Co": ["Ludwig van Beethoven & Co"],
    "Thanks Anna! Don't worry. Didn't Bob call? I'm OK.": ["Anna", "Bob"],
    "Cooking is fun. Yesterday it rained.": [],
    "Lisbon is great. I miss Lisbon.": ["Lisbon"],
    "Anna works at Acme.": ["Anna", "Acme"],
    "Yes, ANNA met anna and Anna": ["ANNA"],
    "nothing here": [],
}


@pytest.mark.parametrize("text", NAMED)
def test_entities_are_quoted_then_capitalised(text: str) -> None:
    assert sorted(names(text)) == sorted(NAMED[text])
    assert [name for name in names(text) if name in NAMED[text][:1]] == NAMED[text][:1]


UNITS = [
    "I like ",
    "Anna ",
    "a, ",
    '"',
    '"a ',
    "“",
    "'s ",
    "A.",
    "a'",
    "my big sister ",
    "I moved to Rome. ",
    "Bank of ",
]
UNITS += [
    "I like tea and ",
    "I never really ",
    "big ",
    "\0",
    "\ud800",
    "😀",
    "\n",
    "a-",
    "I like tea, how ",
    ".",
    "«a» ",
]


def steps(call: Callable[[], Any]) -> int:
    """Count the lines of Python that run: a clock that no other process can slow down."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += 1
        return trace if "rules" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_work_grows_with_the_text_and_no_faster(unit: str) -> None:
    small, large = unit * 200, unit * 800
    once = steps(lambda: extract_by_rules(small, speaker="Eve"))
    assert steps(lambda: extract_by_rules(large, speaker="Eve")) < 4.5 * once + 200


@pytest.mark.parametrize("unit", [*UNITS, "a", "A", "Ab ", "“a b c d e f "])
def test_a_hundred_thousand_characters_of_anything_are_read(unit: str) -> None:
    check(extract_by_rules(unit * (100_000 // len(unit)) + "?", speaker="Eve"))


@given(st.text(), st.text())
def test_any_text_is_read(text: str, speaker: str) -> None:
    check(extract_by_rules(text, speaker=speaker))


PARTS = st.sampled_from([*UNITS, *(f"{word} " for text in STATED for word in text.split())])


@settings(max_examples=300)
@given(st.lists(PARTS, max_size=16).map("".join))
def test_any_words_in_any_order_are_read(text: str) -> None:
    check(extract_by_rules(text, speaker="Eve"))


def check(found: RuleExtraction) -> None:
    keys = {entity.name.casefold() for entity in found.entities}
    ends = [name for each in found.relations for name in (each.source, each.destination)]
    assert all(name.strip() for name in (*keys, *ends, *(each.source for each in found.ended)))
    assert all(each.destination is None or each.destination.strip() for each in found.ended)
    assert {name.casefold() for name in ends} <= keys
    assert not any("\0" in key or "\ud800" in key for key in keys)
