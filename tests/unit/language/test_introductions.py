"""Names that speakers give themselves, and sentences that only look like it."""

from __future__ import annotations

import time

import pytest

from mem0_core.language.introductions import read_introductions
from mem0_core.language.naming import get_given_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Maya.", "Maya"),
        ("my name is maya and i love tea", "maya"),
        ("I'm Maya.", "Maya"),
        ("I am Maya", "Maya"),
        ("Hi, I'm Maya, nice to meet you", "Maya"),
        ("Hello! I'm Mara, just moved to Lisbon two weeks ago.", "Mara"),
        ("i'm Leo and i live in rome", "Leo"),
        ("I'm Siân, by the way", "Siân"),
        ("Call me Maya!", "Maya"),
        ("You can call me Bob", "Bob"),
        ("my friends call me Gus", "Gus"),
        ("I go by Alex", "Alex"),
        ("My name's Maya Fischer and I live in Porto.", "Maya Fischer"),
        ("My full name is John F. Kennedy.", "John F. Kennedy"),
        ("My name is O'Neill.", "O'Neill"),
        ("Sorry, my name is Jean-Luc", "Jean-Luc"),
        ("Actually my name is Maja.", "Maja"),
        ("actually, my name is Maja, not Maya", "Maja"),
        ("This is Priya speaking.", "Priya"),
        ("I'm Dr. Okafor.", "Dr. Okafor"),
    ],
)
def test_an_introduction_gives_the_name(text: str, name: str) -> None:
    assert [one.name for one in read_introductions(text)] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "I'm tired.",
        "I'm Danish",
        "I'm Portuguese.",
        "I'm OK.",
        "I'm Maya's sister.",
        "I'm Catholic and proud of it",
        "I'm VP of sales",
        "I'm Team Lead at Zeta",
        "I'm Lactose intolerant",
        "I'm in Porto",
        "I'm Capricorn",
        "Is my name Maya?",
        "what is my name?",
        "If my name is Maya, then what?",
        "My name is not important",
        "My name is on the list",
        "my name is hard to spell",
        "call me later",
        "Call me when you arrive",
        'She said "I\'m Maya"',
        "my dog's name is Rex",
        "My sister's name is Anna",
        "This is Paris from above",
        "",
    ],
)
def test_what_introduces_nobody_gives_no_name(text: str) -> None:
    assert read_introductions(text) == ()


@pytest.mark.parametrize(
    ("name", "given"), [("Maya Fischer", "Maya"), ("Maya", ""), ("Dr. Okafor", ""), ("J. Okafor", "")]
)
def test_the_first_of_several_words_is_the_given_name(name: str, given: str) -> None:
    assert get_given_name(name) == given


def test_long_texts_are_read_in_linear_time() -> None:
    for text in ("my name is " * 4_000, "I'm " * 20_000, "A." * 30_000, "call me Bob and " * 5_000):
        began = time.process_time()
        read_introductions(text)
        assert time.process_time() - began < 2
