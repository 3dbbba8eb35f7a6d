"""Terms and names of texts."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core.language import terms as words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She was RUNNING to the stores", ["run", "store"]),
        ("don't you see it's Anna's?", ["see", "anna"]),
        ("e-mail, 3.5 km & C++", ["e", "mail", "3", "5", "km", "c"]),
        ("café, Müsli, naïve", ["cafe", "musli", "naiv"]),
        ("кошки и собаки", ["кошк", "и", "собак"]),
        ("مَكْتَبَة", ["مكتب"]),
        ("τις γάτες", ["τισ", "γατ"]),
        ("我喜欢绿茶", ["我喜", "喜欢", "欢绿", "绿茶"]),
        ("茶", ["茶"]),
        ("iPhone用のケース", ["iphon", "用の", "のケ", "ケー", "ース"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("हिन्दी खाना", ["हिन्दी", "खाना"]),
        ("the of and", []),
        ("?!… 🍣", []),
        ("", []),
    ],
)
def test_terms_are_what_a_text_is_about(text: str, expected: list[str]) -> None:
    assert words.extract_terms(text) == expected


@pytest.mark.parametrize(
    ("said", "asked"),
    [("We ran a marathon", "marathons"), ("ΚΑΦΈΣ", "καφές"), ("Ёлка", "елка"), ("مُحَمَّد", "محمد"), ("CAFÉ", "cafe")],
)
def test_spellings_of_one_word_meet(said: str, asked: str) -> None:
    assert set(words.extract_terms(asked)) <= set(words.extract_terms(said))


def test_who_said_it_is_a_term_too() -> None:
    read = words.analyze_text("I like tea", "Anna Smith")
    assert read.terms == ("anna", "smith", "like", "tea")
    assert read.word_count == 3


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Is it?", True),
        ('"Is it?"', True),
        ("Is it? ", True),
        ("是吗？", True),
        ("هل؟", True),
        ("Is it? Yes.", False),
        ("", False),
    ],
)
def test_a_text_asks_where_it_ends_with_a_question(text: str, asks: bool) -> None:
    assert words.analyze_text(text).is_question is asks


def test_names_are_told_apart_by_their_words_only() -> None:
    assert words.extract_names('We saw "The Big Short" with anna and with Anna  SMITH in Paris') == (
        "the big short",
        "anna smith",
        "paris",
    )


def test_what_is_no_word_is_cut() -> None:
    assert [len(term) for term in words.extract_terms("x" * 10_000)] == [40]


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    read = words.analyze_text(text, text[:20])
    assert all(term and " " not in term and "\n" not in term for term in read.terms)
    assert all(name and "\n" not in name for name in read.names)
    assert set(words.extract_terms(text)) <= set(read.terms)


def test_threads_stem_at_once() -> None:
    found: list[list[str]] = []
    work = [
        threading.Thread(target=lambda: found.append(words.extract_terms("running кошки τις γάτες " * 50)))
        for _ in range(8)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert all(terms == found[0] for terms in found)
