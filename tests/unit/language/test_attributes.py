"""Properties that questions ask for, and texts that state them."""

from __future__ import annotations

import pytest

from mem0_core.language.attributes import find_color, find_surnames, names_amount, states_attribute
from mem0_core.language.question import compile_question


@pytest.mark.parametrize(
    ("question", "attribute"),
    [
        ("what colour is my car?", "color"),
        ("which color did we paint the hall", "color"),
        ("whats my shoe size", "amount"),
        ("What is the number of my house?", "amount"),
        ("what is my salary?", "amount"),
        ("how tall am I", "amount"),
        ("how much did the car cost?", "amount"),
        ("What year is my pickup?", "amount"),
        ("What is Henrik's surname?", "surname"),
        ("what was my maiden name", "maiden_name"),
        ("In what street is our house?", "street"),
        ("what position do I play", "position"),
    ],
)
def test_the_attribute_that_a_question_asks_for(question: str, attribute: str) -> None:
    assert compile_question(question).attribute == attribute


@pytest.mark.parametrize(
    "question",
    [
        "At which bank do I get my salary?",
        "what car do I drive?",
        "what year did I move to Rome?",
        "In what year was my daughter born?",
        "how much do I trust Bob?",
        "what street food do I love?",
        "which road bike do I own?",
        "which colour printer do I have?",
        "which floor lamp did I buy?",
        "what weight class do I box in?",
        "what is my budget app?",
        "what position did I apply for?",
        "what's my favorite color?",
        "How old is my daughter?",
        "",
    ],
)
def test_questions_that_ask_for_no_attribute(question: str) -> None:
    assert compile_question(question).attribute == ""


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("color", "The Kona is pearl-white."),
        ("amount", "I take 50 mg of losartan."),
        ("amount", "There were six of us."),
        ("amount", "My dress size is M."),
        ("surname", "ann is my friend"),
        ("maiden_name", "Eleanor Brandt, née Lund"),
        ("street", "Dunc's shop is on Otley Road."),
        ("street", "Ze woont in de Kerkstraat."),
        ("street", "We moved to the Rue de Rivoli."),
        ("position", "He plays left back."),
    ],
)
def test_texts_that_state_an_attribute(attribute: str, text: str) -> None:
    assert states_attribute(attribute, text)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("color", "I drive a Kona since January 2024."),
        ("amount", "I moved in March 2021."),
        ("surname", "Henrik works at the university in Oslo."),
        ("maiden_name", "My name is Maya Lind."),
        ("street", "We live in a row house, and drive a lot."),
        ("position", "I play football on Thursdays."),
    ],
)
def test_texts_that_do_not(attribute: str, text: str) -> None:
    assert not states_attribute(attribute, text)


def test_a_surname_follows_the_name_that_was_asked_about() -> None:
    text = "Travis works for Mesa Turbine, with Shawna Diaz."
    assert find_surnames(text, ["shawna"]) == ["Diaz"]
    assert find_surnames(text, ["travis"]) == []
    assert find_surnames("My name is Maya. Yesterday Ben came by.", []) == []


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("We painted it sage green.", "sage green"),
        ("mint condition Chevrolet, bright yellow", ""),
        ("I drive a Volvo.", ""),
    ],
)
def test_a_color_is_read_where_it_is_plain(text: str, color: str) -> None:
    assert find_color(text) == color


def test_dates_are_no_amounts() -> None:
    assert not names_amount("since 2021 and from 3 May 2022")
    assert names_amount("since 2021 with two dogs")
