"""Adding and searching hostile texts takes work in proportion to their length."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core import Memory
from mem0_core.domain import mention_index
from mem0_core.domain.mention_index import MentionIndex
from mem0_core.domain.normalization import MAX_NONSTARTERS, normalize, stream_safe
from mem0_core.domain.records import mentions_name, same_fact_key
from mem0_core.ingest._relation_plan import split_clauses
from mem0_core.ingest.relations import StatementLog
from mem0_core.language.messages import strip_recalled
from mem0_core.language.rule_extractor import extract_by_rules
from mem0_core.recall._relations import MAX_QUERY_NAMES
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
