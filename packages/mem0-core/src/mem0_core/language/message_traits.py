"""Traits of a message: signs on its surface that it says what holds now, or that it does not."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mem0_core._system.text_caches import text_cache
from mem0_core.language._tables import load_tables
from mem0_core.language.families import load_families

__all__ = ["MAX_TRAIT_CHARS", "MessageTraits", "read_traits"]

MAX_TRAIT_CHARS = 1_000
"""Length of the beginning of a message that is read: more than people write of one thing."""


class MessageTraits(NamedTuple):
    """Traits of one message.

    Attributes:
        reports_change: it has words of a change or an end, such as "sold" or "no longer".
        reports_end: it has words of an end or a replacement, such as "no longer" or "instead".
        looks_back: it has words of memory, such as "used to" or "my old".
        has_speaker: its writer acts in it: "I" or "we" occurs.
        is_owned: it mentions what is its writer's: "my" or "our" occurs.
        begins_with_other: it begins with another person, as in "my brother has moved".
        mentions_other: another person occurs in it, named by a noun or pronoun.
    """

    reports_change: bool
    reports_end: bool
    looks_back: bool
    has_speaker: bool
    is_owned: bool
    begins_with_other: bool
    mentions_other: bool


@text_cache(4_096, max_chars=MAX_TRAIT_CHARS)
def read_traits(text: str) -> MessageTraits:
    """Return the traits of a message, of which the first 1,000 characters are read."""
    head, patterns = _fold(text), _compile_patterns()
    found = {name: pattern.search(head) is not None for name, pattern in patterns.items()}
    return MessageTraits(
        reports_change=found["change"],
        reports_end=found["end"],
        looks_back=found["memory"],
        has_speaker=found["speaker"],
        is_owned=found["own"],
        begins_with_other=found["begins"],
        mentions_other=found["person"],
    )


def find_people(text: str) -> frozenset[str]:
    """Return the nouns and pronouns of other people in a message, folded."""
    return frozenset(match.group() for match in _compile_patterns()["person"].finditer(_fold(text)))


def _fold(text: str) -> str:
    return text[:MAX_TRAIT_CHARS].casefold().replace("’", "'")


@lru_cache(maxsize=1)
def _compile_patterns() -> dict[str, re.Pattern[str]]:
    """Return the pattern of each trait, with the words of all languages: a language is not known before it is read."""
    phrases: dict[str, list[str]] = {}
    tables = load_tables("messages")
    for table in tables.values():
        for name, line in table.items():
            phrases.setdefault(name, []).extend(" ".join(one.split()) for one in line.split(","))
    nouns = (noun for family in load_families().values() if family.answer == "person" for noun in family.nouns)
    phrases["person"] += nouns
    phrases["person"] += (
        noun for name in tables for line in load_tables(name).get("kin", {}).values() for noun in line.split()
    )
    words = {name: _join(found) for name, found in phrases.items()}
    names = ("change", "end", "memory", "speaker", "own", "person")
    patterns = {name: rf"(?<!\w){words[name]}(?!\w)" for name in names}
    person = rf"(?:{words['owner']}\s+)?(?:\w+\s+){{0,2}}?{words['person']}(?:'s)?(?!\w)"
    patterns["begins"] = rf"^\W*(?:{words['lead']}[,\s]+)*{person}"
    return {name: re.compile(pattern) for name, pattern in patterns.items()}


def _join(phrases: list[str]) -> str:
    """Return a pattern of some phrases, longest first."""
    longest = sorted(set(phrases), key=len, reverse=True)
    return "(?:{})".format("|".join(re.escape(one).replace(r"\*", r"\w*") for one in longest))
