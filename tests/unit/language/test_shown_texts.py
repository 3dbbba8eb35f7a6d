"""Texts that a prompt shows are recognized however they are written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mem0_core.domain.records import same_fact_key
from mem0_core.language.shown_texts import ShownTexts

_PARTS = (
    "Tea",
    "TEA!",
    "(tea",
    "e\u0301",
    "\u00e9",
    "\u212a",
    "k",
    "_tea",
    ":)",
    "...",
    "1.5",
    ".5",
    "C++",
    "\u00df",
    "SS",
)
_TEXTS = st.lists(st.sampled_from((*_PARTS, " ", "\n")), max_size=5).map(" ".join)


@given(shown=st.lists(_TEXTS, max_size=3), text=_TEXTS)
def test_a_text_with_the_key_of_a_shown_one_is_shown(shown: list[str], text: str) -> None:
    keys = {same_fact_key(each) for each in shown if each.strip()}
    assert (text in ShownTexts(shown)) >= (same_fact_key(text) in keys)


def test_a_text_is_shown_as_it_is_or_sentence_by_sentence() -> None:
    shown = ShownTexts(["Hello! I like tea. \u2018Rex\u2019 is my dog."])
    for text in ("i like TEA", "'Rex' is my dog! Hello?", "HELLO. I like tea.\n'Rex' is my dog"):
        assert text in shown
    for text in ("I like tea with milk", "Rex", "", "Hello Rex"):
        assert text not in shown
