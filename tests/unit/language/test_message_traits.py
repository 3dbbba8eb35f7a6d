"""Traits of messages: of changes, memories, and the people that they are about."""

from __future__ import annotations

import pytest

from mem0_core.language.message_traits import MAX_TRAIT_CHARS, read_traits


@pytest.mark.parametrize(
    "text",
    [
        "Sold the boat.",
        "we're no longer with that bank",
        "first week at the bakery, my feet hurt",
        "swapped buses, the 9 is quicker",
        "I’ve given up sugar",
        "Ahora vivo en Sevilla",
    ],
)
def test_words_of_a_change_are_found(text: str) -> None:
    assert read_traits(text).reports_change


@pytest.mark.parametrize("text", ["I live by the river.", "Knowing her, she waits.", "snow and lasting frost"])
def test_parts_of_words_are_no_change(text: str) -> None:
    assert not read_traits(text).reports_change


def test_an_end_is_told_from_other_news() -> None:
    assert read_traits("the Ranger failed, we found an Isuzu instead").reports_end
    assert not read_traits("first snow, we got the sledge out").reports_end


def test_a_look_back_is_told_from_news() -> None:
    assert read_traits("Drove past my old flat today").looks_back
    assert not read_traits("My flat is cold today").looks_back


@pytest.mark.parametrize(
    "text",
    ["my brother has moved", "oh, and our neighbour's got a Tesla", "Her older sister sings", "mi hermana canta"],
)
def test_a_message_can_begin_with_another_person(text: str) -> None:
    traits = read_traits(text)
    assert traits.begins_with_other
    assert traits.mentions_other


@pytest.mark.parametrize("text", ["I moved in with my brother", "Sold the boat to a friend of a friend"])
def test_another_person_later_in_a_message_does_not_begin_it(text: str) -> None:
    traits = read_traits(text)
    assert not traits.begins_with_other
    assert traits.mentions_other


def test_the_speaker_and_what_is_the_speakers_are_two_traits() -> None:
    assert read_traits("I’m home").has_speaker
    assert read_traits("My bike is red").is_owned
    assert not read_traits("My bike is red").has_speaker


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert not read_traits("x " * MAX_TRAIT_CHARS + "I sold it").has_speaker
