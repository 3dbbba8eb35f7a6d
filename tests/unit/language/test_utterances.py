"""Statements beside questions, greetings and acknowledgements: labeled lines, mixed texts, and long ones."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mem0_core.language.utterances import is_question, is_statement

LINES = [json.loads(line) for line in (Path(__file__).parents[2] / "data/utterances.jsonl").read_text().splitlines()]
"""Lines with the label "memory" (a statement) or "context", written before the rules; half of them are held out."""


@pytest.mark.parametrize("part", ["development", "held out"])
def test_labeled_lines_are_told_apart(part: str) -> None:
    lines = [line for line in LINES if line["part"] == part]
    lost = [line["text"] for line in lines if line["label"] == "memory" and not is_statement(line["text"])]
    stored = [line["text"] for line in lines if line["label"] == "context" and is_statement(line["text"])]
    assert len(lines) > 200
    assert (lost, stored) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Oslo. Any tips?",
        "Any tips for Oslo? I moved there in May.",
        "Hi! I'm Maya, how are you?",
        "thanks, btw my boss is called Karen",
        "I’m vegan – what can I eat?",
        'My boss asked "when are you back?" and I said Monday.',
        "Remember that I hate cilantro.",
        "Lisbon.",
        "42",
        "Which laptop should I buy considering I edit films all day?",
        "How do I word the cover letter to show that I cut the delays of the team by 12 % in my first month at Galp,"
        " beating the target of 10 % that was set for me?",
        "Sure! Soak it in cold water and vinegar for an hour. Anything else?",
        "```\nhow = what + why\n```",
    ],
)
def test_a_text_that_states_something_is_a_statement(text: str) -> None:
    assert is_statement(text)
    assert not is_question(text)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("ok", False),
        ("Thanks, that helped a lot!", False),
        ("hi", False),
        ("what does my sister do", True),
        ("do you know a good way to remove stains?", True),
        ("Thanks! And where does she work?", True),
        ("tell me about my sister", True),
        ("where do I live？", True),
        ("wher do i wrok now", True),
        ("You live in Oslo, don't you?", True),
        ("Which day did Rosa choose for the visit to Dr. A. Silva, the dentist?", True),
        ("Can you list all the friends that I have told you about in our talks so far?", True),
        ("what has happened since I left", True),
        ("   ", False),
        ("", False),
        ("👍", False),
    ],
)
def test_a_text_that_states_nothing_may_ask(text: str, asks: bool) -> None:
    assert not is_statement(text)
    assert is_question(text) == asks


@pytest.mark.parametrize("part", ["e\u0323\u0301", "what ", "hi, ", "is my ", "? ", "(", "thanks for the ", '"?', "a-"])
def test_the_time_grows_with_the_length_of_the_text(part: str) -> None:
    started = time.process_time()
    for length in (1_000, 100_000):
        is_statement(part * (length // len(part)))
    assert time.process_time() - started < 1
