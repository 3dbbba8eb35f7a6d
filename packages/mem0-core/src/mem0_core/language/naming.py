"""Relationships that lead from an entity to another name of it."""

from __future__ import annotations

from mem0_core.language._name_words import get_title, split_name

NAME, NICKNAME = "name", "nickname"
NAMING_LABELS = (
    NAME,
    NICKNAME,
    *("has_name", "is_named", "is_called", "has_nickname", "known_as", "is_known_as", "goes_by", "full_name"),
    *("has_full_name", "first_name", "has_first_name", "given_name", "preferred_name", "prefers_to_be_called"),
)
"""Relationships from an entity to another name of it, as rules and models write them."""


def is_naming(relationship: str) -> bool:
    """Return True if a relationship leads to another name of its source."""
    return relationship in NAMING_LABELS


def get_given_name(name: str) -> str:
    """Return the first name in a name of several words; empty for one word, and for a title with a surname."""
    words = name.split()
    return words[0] if len(words) > 1 and not get_title(split_name(name)) and len(words[0].strip(".")) > 1 else ""
