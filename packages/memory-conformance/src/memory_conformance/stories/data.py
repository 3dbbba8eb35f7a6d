"""The people of the set, as their files hold them. README.md describes the schema."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Person: TypeAlias = dict[str, Any]
"""A person with messages, facts, relations and questions."""

TYPES = (
    *("present", "past", "change", "chain2", "chain3", "list", "negated", "who", "advice", "typo", "paraphrase"),
    "unanswerable",
)
LANGUAGES = ("en", "de", "es")

_FOLDER = Path(__file__).parent / "life_stories"


def load_people(paths: Iterable[Path] = (), *, languages: Sequence[str] = LANGUAGES) -> list[Person]:
    """Return the people of some files; by default, all of this package."""
    files = sorted(paths) or sorted(_FOLDER.glob("*.json"))
    people = [person for file in files for person in json.loads(file.read_text(encoding="utf-8"))["personas"]]
    return [person for person in people if person.get("language", "en") in languages]


def fold(text: object) -> str:
    """Return a text without differences of case, width and spacing."""
    return " ".join(unicodedata.normalize("NFKC", str(text)).casefold().replace("_", " ").split())


def has_answers(text: str, answers: Sequence[Sequence[str]]) -> bool:
    """Return True if a text has one alternative of every group of answers."""
    folded = fold(text)
    return bool(answers) and all(any(fold(one) in folded for one in group) for group in answers)
