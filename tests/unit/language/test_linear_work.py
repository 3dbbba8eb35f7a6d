"""Adding and searching hostile texts takes work in proportion to their length."""

from __future__ import annotations

import contextlib
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.adversarial import FUNCTIONS, KINDS, fit_exponent
from mem0_core import Mem0Error, Memory
from mem0_core.domain import mention_index
from mem0_core.domain.bounds import MAX_RELATIONS
from mem0_core.domain.mention_index import MentionIndex
from mem0_core.domain.normalization import MAX_NONSTARTERS, normalize, stream_safe
from mem0_core.domain.records import Message, mentions_name, same_fact_key
from mem0_core.ingest._relation_plan import split_clauses
from mem0_core.ingest.relations import StatementLog
from mem0_core.language._phrases import read_phrases
from mem0_core.language.messages import strip_recalled
from mem0_core.language.rule_extractor import extract_by_rules
from mem0_core.llm.triplet_lines import to_third_person
from mem0_core.recall._relations import MAX_QUERY_NAMES
from mem0_core.server._problems import HttpError
from mem0_core.testing import HashEmbedder

MARKS = "\u0323\u0301\u0316"


def calls_of(call: Callable[[], Any]) -> int:
    """Count the Python functions that are called."""
    count = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def opened(path: Path) -> Memory:
    return Memory({"path": str(path)}, embedder=HashEmbedder())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_steps_in_proportion_to_its_text(name: str) -> None:
    def steps(text: str) -> int:
        with contextlib.suppress(Mem0Error, HttpError):
            return calls_of(lambda: FUNCTIONS[name](text))
        return 0

    for build in KINDS.values():
        steps(build(100))  # tables that are loaded on first use
        assert steps(build(3_600)) <= 5 * steps(build(900)) + 2_500


@pytest.mark.parametrize("text", ["", "\n", " \n\u2028\t", "\u3000", "\x85", "\x1c"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_reads_a_text_of_spaces(name: str, text: str) -> None:
    with contextlib.suppress(Mem0Error, HttpError):
        FUNCTIONS[name](text)


def test_the_exponent_of_a_growth_is_fitted() -> None:
    assert fit_exponent([(size, size**2 / 1e6) for size in (100, 1_000, 10_000)]) == pytest.approx(2)
    assert fit_exponent([(100, 0.001), (1_000, 0.002)]) == 0


@pytest.mark.parametrize(
    "sentence",
    ["My friend P{0} lives in T{0}.", "I like Tea{0}.", "I moved to T{0}.", "P{0} lives in Oslo.", "I left T{0}."],
)
def test_each_sentence_of_an_add_costs_the_same(tmp_path: Path, sentence: str) -> None:
    def adding(count: int) -> int:
        with opened(tmp_path / str(count)) as memory:
            memory.add("I am well.", user_id="u")
            text = " ".join(sentence.format(number) for number in range(count))
            return calls_of(lambda: memory.add(text, user_id="u"))

    adding(5)  # imports
    assert adding(100) < 5 * adding(25)


@pytest.mark.parametrize("sentence", ["My friend P{0} lives in T{0}.", "I moved to T{0}.", "I LIVE IN ROME and"])
def test_one_message_adds_a_bounded_number_of_relations_and_says_so(tmp_path: Path, sentence: str) -> None:
    text = " ".join(sentence.format(number) for number in range(400))
    with opened(tmp_path) as memory:
        result = memory.add(text, user_id="u")
        assert len(result["relations"]["added_entities"]) <= MAX_RELATIONS
        assert any(one["reason"].startswith("relations: ") for one in result["skipped"])
        assert memory.add("My friend Ada lives in Oslo.", user_id="u")["skipped"] == []


def test_a_message_too_long_for_the_search_of_names_is_reported_and_found_by_its_last_word(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        skipped = memory.add("It rained all day. " * 300 + "Then the xylophone came.", user_id="u")["skipped"]
        assert [one["reason"].partition(":")[0] for one in skipped] == ["names"]
        assert memory.search("xylophone", user_id="u")["results"]


@pytest.mark.parametrize("text", ["World War I and I ", "me \u201cmy ", "\u201c", '"I said ', "I MY "])
def test_third_person_looks_back_a_bounded_number_of_characters(text: str) -> None:
    written = to_third_person([Message("user", text * 20_000)], "Maya")[0].content
    assert len(written) >= 20_000


def test_a_spanish_item_without_an_end_is_read_once() -> None:
    def reading(count: int) -> int:
        return calls_of(lambda: read_phrases("mi hermana se llama Ana y " + "trabajo de " * count, "spanish"))

    assert reading(4_000) < 6 * reading(1_000)


def test_the_text_of_an_add_is_split_into_words_a_bounded_number_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    split = mention_index.words_of

    def counted(text: str) -> list[str]:
        nonlocal read
        read += len(text)
        return split(text)

    monkeypatch.setattr(mention_index, "words_of", counted)
    text = " ".join(f"My friend P{number} lives in T{number}." for number in range(200))
    with opened(tmp_path) as memory:
        memory.add(text, user_id="u")
    assert read < 6 * len(text)


def test_a_query_of_thousands_of_names_looks_up_a_bounded_number(tmp_path: Path) -> None:
    class Counting(HashEmbedder):
        texts = 0

        def embed(self, texts: Any, *, kind: Any = "document") -> Any:
            self.texts += len(texts)
            return super().embed(texts, kind=kind)

    embedder = Counting()
    text = " ".join(f"My friend P{number} lives in T{number}." for number in range(300))
    with Memory({"path": str(tmp_path)}, embedder=embedder) as memory:
        memory.add(text, user_id="u")
        before = embedder.texts
        memory.search(text, user_id="u")
    assert embedder.texts - before < 2 * MAX_QUERY_NAMES


def test_messages_at_odds_are_found_without_comparing_all_pairs() -> None:
    def checking(count: int) -> int:
        likes = extract_by_rules(" ".join(f"I like Tea{number}." for number in range(count)), speaker="Eve")
        hates = extract_by_rules(" ".join(f"I hate Fog{number}." for number in range(count)), speaker="Eve")

        def check() -> None:
            said = StatementLog()
            said.add(likes)
            assert not said.conflicts_with(hates)

        return calls_of(check)

    assert checking(800) < 6 * checking(200)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("marks", [MARKS, "\uff9e", "\u0344", "\u0323\uff9f", "\u05b0\u05bc"])
def test_no_run_of_combining_marks_reaches_normalization_whole(form: Any, marks: str) -> None:
    text = stream_safe("e" + marks * 50_000)
    longest = run = 0
    for character in text:
        decomposed = unicodedata.normalize("NFKD", character)
        run = run + 1 if unicodedata.combining(decomposed[0]) else 0
        longest = max(longest, run)
    assert longest <= MAX_NONSTARTERS
    assert text.replace("\u034f", "") == "e" + marks * 50_000
    assert normalize(form, "e" + marks * 50_000) == unicodedata.normalize(form, text)


@given(st.text())
def test_ordinary_text_is_normalized_as_by_the_standard_library(text: str) -> None:
    assert normalize("NFKC", text) == unicodedata.normalize("NFKC", text)
    assert stream_safe(text) == text


def test_a_letter_under_a_hundred_thousand_marks_can_be_added_and_found(tmp_path: Path) -> None:
    text = "e" + MARKS * 33_000
    with opened(tmp_path) as memory:
        memory.add(text, user_id="u")
        assert [item["memory"] for item in memory.search(text, user_id="u")["results"]] == [text]
    assert same_fact_key(text) == same_fact_key(text + "!")


NAMES = st.lists(
    st.sampled_from(["Anna", "anna", "York", "New", "New York", "C++", "++", " ", "O'Neil", "ß"]), max_size=4
)


@given(st.lists(st.lists(st.sampled_from(["Anna", "York", "New", "C++", "!", "O'Neil", "SS", ""])), max_size=4), NAMES)
def test_an_index_mentions_what_each_text_mentions(texts: list[list[str]], name: list[str]) -> None:
    segments, wanted = [" ".join(words) for words in texts], " ".join(name)
    found = MentionIndex(segments).segments(wanted)
    assert sorted(found) == [number for number, text in enumerate(segments) if mentions_name(text, wanted)]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("I live in Rome.  I work.", ["I live in Rome.", "I work."]),
        ("I live in Rome,   and  I work", ["I live in Rome", "I work"]),
        ("one\n \n two", ["one", "two"]),
        ("a" + " " * 300_000 + "b", ["a b"]),
    ],
)
def test_clauses_end_at_sentences_lines_and_conjunctions(text: str, clauses: list[str]) -> None:
    assert split_clauses(text) == clauses


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a \t<memories>\nold\n</memories>\t \nb", "ab"),
        ("<memories>\nx\n</memories>\n<memories>\ny\n</memories>\nb", "b"),
        ("<memories>\nopen", "<memories>\nopen"),
        ("<memories>\n" * 50_000, "<memories>\n" * 50_000),
        ("<memories>\n</memories>", "<memories>\n</memories>"),
        (" " * 300_000 + "<memories>", " " * 300_000 + "<memories>"),
    ],
)
def test_recalled_blocks_are_taken_out_and_open_ones_left(text: str, left: str) -> None:
    assert strip_recalled(text) == left
