"""Questions whose answer was never told, although memories are about the same things."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core import Memory
from tests.support import MODES, MemoryDriver, Mode, result_texts

TOLD = (
    "I drive a Hyundai Kona.",
    "I play football on Thursdays.",
    "My doctor is Dr Smeets.",
    "I live in Palo Alto.",
    "My name is Maya Lind.",
    "We painted the kitchen sage green.",
    "My sister Ingrid Berg lives in Malmö.",
    "I take 50 mg of losartan.",
    "I have a dog called Rex.",
    "My phone is a Pixel.",
)


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with Memory({"path": tmp_path}) as opened:
        for text in TOLD:
            opened.add(text, user_id="u")
        yield MemoryDriver(opened, request.param)


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("what colour is my car?", "no memory near the question states the color"),
        ("what position do I play?", "no memory near the question states the position"),
        ("what is my shoe size?", "no memory near the question states the amount"),
        ("how tall am I?", "no memory near the question states the amount"),
        ("what was my maiden name?", "no memory near the question states the maiden name"),
        ("what street do I live in?", "no memory near the question states the street"),
        ("what year is my car?", "no memory near the question states the amount"),
        ("which city was I born in?", "no memory is about is from of that subject"),
        ("who is my dentist?", "no memory is about doctor of that subject"),
        ("where does my brother live?", "no memory is about lives in of that subject"),
        ("what's my cat called?", "no memory is about has pet of that subject"),
    ],
)
def test_what_was_never_told_is_unknown(memory: MemoryDriver, question: str, note: str) -> None:
    answered = memory.answer(question, user_id="u")
    assert (answered["answer"], answered["confidence"]) == (None, 0.0)
    assert answered["note"] == note
    refused = memory.search(question, user_id="u", allow_no_answer=True)
    assert refused["results"] == []
    assert "no answer" in refused["note"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what colour is the kitchen?", "sage green"),
        ("what's my surname?", "Lind"),
        ("what is Ingrid's last name?", "Berg"),
        ("what strength is my losartan?", "I take 50 mg of losartan."),
        ("what car do I drive?", "Hyundai Kona"),
        ("who is my doctor?", "Dr Smeets"),
        ("what is my dog's name?", "Rex"),
        ("which phone do I have?", "Pixel"),
    ],
)
def test_what_was_told_is_answered(memory: MemoryDriver, question: str, answer: str) -> None:
    assert memory.answer(question, user_id="u")["answer"] == answer
    assert memory.search(question, user_id="u", allow_no_answer=True)["results"]


def test_a_question_of_which_no_memory_has_a_word_needs_a_better_memory(memory: MemoryDriver) -> None:
    assert memory.search("which bank am I with?", user_id="u", allow_no_answer=True)["results"] == []
    assert len(result_texts(memory.search("which bank am I with?", user_id="u"))) == len(TOLD)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (["My salary is 52,000 euros."], "what is my salary?", "My salary is 52,000 euros."),
        (["My height is 182 cm."], "how tall am I?", "My height is 182 cm."),
        (["My dress size is M."], "what is my dress size?", "My dress size is M."),
        (["I'm Maya Lind and I moved to Oslo."], "what is my surname?", "Lind"),
        (["My name is Maya.", "Yesterday Ben came by."], "what is my surname?", None),
        (["My favorite color is vermilion."], "what's my favorite color?", "vermilion"),
        (["My boss is called Karen van der Berg."], "what's my boss's surname?", "van der Berg"),
        (["Tom drives a red car.", "I drive a Volvo."], "what color is my car?", None),
        (["My sister's cat is black.", "I have a cat called Mia."], "what color is my cat?", None),
        (["We live at 12 Baker Street."], "what street do I live on?", "We live at 12 Baker Street."),
        (["I have a beagle named Max, who chases the cat."], "what is my dog called?", "Max"),
        (["My doctor is Dr Smeets."], "who is my gp?", "Dr Smeets"),
        (["I love tacos from street food stalls."], "what street food do I love?", "tacos"),
    ],
)
def test_the_property_of_the_thing_itself(
    tmp_path: Path, mode: Mode, told: list[str], question: str, answer: str | None
) -> None:
    with Memory({"path": tmp_path}) as opened:
        memory = MemoryDriver(opened, mode)
        for text in told:
            memory.add(text, user_id="u")
        assert memory.answer(question, user_id="u")["answer"] == answer


@pytest.mark.parametrize("mode", MODES)
def test_the_death_of_a_stranger_is_not_that_of_a_pet(tmp_path: Path, mode: Mode) -> None:
    with Memory({"path": tmp_path}) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("Mama Njeri has passed on, God rest her.", user_id="u")
        assert memory.answer("What's my cat called?", user_id="u")["answer"] is None
        memory.add("I have a cat named Tosti.", user_id="u")
        assert memory.answer("What's my cat called?", user_id="u")["answer"] == "Tosti"
        memory.add("Tosti has passed on.", user_id="u")
        assert memory.answer("Do I have a cat?", user_id="u")["answer"] == "no"
