"""Searches typed in a hurry: slips are corrected by the words of questions and of the memories, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core.language.slips import find_nearest_spelling
from mem0_core.providers.numpy_embedder import NumpyEmbedder
from tests.support import MODES, MemoryDriver, open_memory, result_texts

EMBEDDER = NumpyEmbedder()


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with open_memory(tmp_path, embedder=EMBEDDER) as opened:
        yield MemoryDriver(opened, request.param)


def found(memory: MemoryDriver, query: str) -> list[str]:
    return result_texts(memory.search(query, user_id="u", limit=1, explain=True))


def tell(memory: MemoryDriver, *texts: str) -> None:
    for text in texts:
        memory.add(text, user_id="u", infer=False)


def test_a_slip_finds_what_the_word_finds(memory: MemoryDriver) -> None:
    tell(memory, "The name of our boat is Petrel", "Dylan, our greyhound, sleeps all day", "Our neighbours like Dylan")
    for query in ("wat is the naem of my greyhoud", "wats my greyhuond caled"):
        assert found(memory, query) == ["Dylan, our greyhound, sleeps all day"]


def test_a_slip_in_a_name_finds_the_person(memory: MemoryDriver) -> None:
    tell(memory, "Halima bakes bread", "Tunde bakes bread too", "Somebody is at the door")
    assert found(memory, "wher does halimma bake") == ["Halima bakes bread"]


def test_equal_scores_show_that_the_query_was_corrected(memory: MemoryDriver) -> None:
    tell(memory, "I play the accordion on Sundays", "I play chess on Mondays")
    right, wrong = (
        memory.search(query, user_id="u", limit=2)["results"]
        for query in ("when do I play the accordion", "wehn do I play the acordeon")
    )
    assert [hit["score"] for hit in wrong] == [hit["score"] for hit in right]


def test_a_word_of_the_language_is_never_taken_for_one_of_the_memories(memory: MemoryDriver) -> None:
    tell(
        memory, "I own a horse", "Bread is expensive", "I keep my stones in the cellar", "He was at the station", "Soda"
    )
    for word, other in (("house", "horse"), ("scones", "stones"), ("statins", "stations"), ("soba", "soda")):
        one, two = (
            memory.search(f"do I like {each}", user_id="u", limit=1)["results"][0]["score"] for each in (word, other)
        )
        assert one != two


def test_a_name_with_a_capital_and_another_language_are_left_alone(memory: MemoryDriver) -> None:
    tell(memory, "Maria Kowalska moved to Lodz", "Mi hermano vive en Lugo")
    for query, other in (
        ("where is Mariah Kowalsky", "where is Maria Kowalska"),
        ("dónde vive mi hermana en Lugo", "dónde vive mi hermano en Lugo"),
    ):
        one, two = (memory.search(each, user_id="u", limit=1)["results"][0]["score"] for each in (query, other))
        assert one != two


def test_a_text_of_many_unknown_words_is_left_alone(memory: MemoryDriver) -> None:
    tell(memory, "I play the accordion on Sundays", "I play chess on Mondays")
    noise = "qwertz asdfgh yxcvbn poiuzt lkjhgf mnbvcx tgbzhn"
    one, two = (
        memory.search(f"{words} acordeon", user_id="u", limit=1)["results"][0]["score"]
        for words in (noise, f"{noise} edcrfv")
    )
    assert two < one


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("greyhoud", "greyhound"),
        ("knnee", "knee"),
        ("kene", "knee"),
        ("ocotber", "october"),
        ("acordeon", "accordion"),
        ("kee", None),  # too short
        ("xylophone", None),
        ("marathonz", None),  # two are as near
        ("bith", None),  # a wrong letter makes another short word
        ("uctober", None),  # another first letter
    ],
)
def test_the_nearest_spelling(word: str, near: str | None) -> None:
    assert (
        find_nearest_spelling(word, ["greyhound", "october", "accordion", "knee", "baths", "marathons", "marathoni"])
        == near
    )
