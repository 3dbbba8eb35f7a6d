"""Relation families: the canonical relationships, and the words and labels by which people and models refer to them.

`families.toml` holds one table for each family. Rules, questions, traversal and validity share it, so that "work at",
"employer", "job" and ``employed_by`` mean the same everywhere.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["Family", "family_of_label", "load_families"]

_AUXILIARIES = frozenset({"is", "are", "was", "were", "has", "have", "been", "currently", "now"})


@dataclass(frozen=True, slots=True)
class Family:
    """A canonical relationship.

    Attributes:
        name: its label, such as ``lives_in``.
        answer: the kind of its value: person, place, organization, job, animal, thing, activity, date, number or name.
        is_single: True if a subject has one value at a time.
        nouns, verbs, asks: words and phrases that ask for the value; `asks` has * for the subject.
        labels: other labels that mean the same.
        inverse: name of the family of the opposite direction; empty if there is none.
        opposite: name of the family that contradicts it for the same value; empty if there is none.
        closes: names of other families of which a new value here ends the values: a new employer ends a job.
    """

    name: str
    answer: str
    is_single: bool = False
    nouns: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    inverse: str = ""
    opposite: str = ""
    closes: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_families() -> Mapping[str, Family]:
    """Return all families by name."""
    tables = tomllib.loads((Path(__file__).parent / "data" / "families.toml").read_text(encoding="utf-8"))
    return {
        name: Family(
            name=name,
            answer=table["answer"],
            is_single=table.get("single", False),
            nouns=tuple(table.get("nouns", "").split()),
            verbs=_split_phrases(table.get("verbs", "")),
            asks=_split_phrases(table.get("asks", "")),
            labels=tuple(table.get("labels", "").split()),
            inverse=table.get("inverse", ""),
            opposite=table.get("opposite", ""),
            closes=tuple(table.get("closes", "").split()),
        )
        for name, table in tables.items()
    }


def _split_phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(",") if phrase.strip())


@lru_cache(maxsize=4096)
def family_of_label(label: str) -> Family | None:
    """Return the family of a relation's label, such as ``employed_by``; None for a label that no family knows."""
    families, by_label = load_families(), _families_by_label()
    words = [word for word in label.casefold().replace("-", "_").replace(" ", "_").split("_") if word]
    while words:
        name = by_label.get("_".join(words))
        if name is not None:
            return families[name]
        if words[0] not in _AUXILIARIES:
            return None
        words = words[1:]
    return None


@lru_cache(maxsize=1)
def _families_by_label() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, family in load_families().items():
        for label in family.labels:
            found.setdefault(label, name)
    return found | {name: name for name in load_families()}
