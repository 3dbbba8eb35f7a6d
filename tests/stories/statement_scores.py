"""Precision and recall of the rule-based extraction on labeled statements that were written apart from the rules.

``python -m tests.stories.statement_scores`` prints both for each split. Labels are compared by relation family and
values without case and articles; a value may have some words more. An end without a value ends any value.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mem0_core.language.families import family_of_label, load_families
from mem0_core.language.rule_extractor import extract_by_rules

__all__ = ["LabeledStatement", "load_statements"]

SPEAKER = "user"
_ARTICLES = {"a", "an", "the"}
_ENDED_TOGETHER = {"partner": "couple", "engaged_to": "couple", "married_to": "couple", "drives": "owns"}

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class LabeledStatement:
    """A message with the triples that it begins and ends; `SPEAKER` is its author."""

    text: str
    begins: Sequence[Key]
    ends: Sequence[Key]
    split: str


def load_statements() -> list[LabeledStatement]:
    """Return all labeled statements, in the order of the file."""
    path = Path(__file__).parents[1] / "data" / "statements.jsonl"
    return [LabeledStatement(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _count(statement: LabeledStatement) -> tuple[int, int, int, int]:
    """Return the numbers of right and all extracted triples, and of found and all labeled ones."""
    read = extract_by_rules(statement.text, speaker=SPEAKER)
    begun = {_key(relation.source, relation.relationship, relation.destination) for relation in read.relations}
    ended = {_key(end.source, end.relationship, end.destination) for end in read.ended}
    ended = {_joint(key) for key in ended if not _is_implied(key, begun)}
    counts = [0, 0, 0, 0]
    for found, gold in (
        (begun, [_key(*triple) for triple in statement.begins]),
        (ended, [_joint(_key(*triple)) for triple in statement.ends]),
    ):
        counts[0] += sum(any(_is_same(key, label) for label in gold) for key in found)
        counts[1] += len(found)
        counts[2] += sum(any(_is_same(key, label) for key in found) for label in gold)
        counts[3] += len(gold)
    return counts[0], counts[1], counts[2], counts[3]


def _is_implied(ended: Key, begun: set[Key]) -> bool:
    """Return True if an end follows from a new value: of the former value, of the opposite, of an earlier bond."""
    source, family, value = ended
    opposite = load_families()[family].opposite if family in load_families() else ""
    return any(
        source == new[0]
        and (
            (family == new[1] and not value)
            or (value == new[2] and (opposite == new[1] or _joint(ended) == _joint(new)))
        )
        for new in begun
    )


def _joint(key: Key) -> Key:
    """Return the key of an end, with relations that one sentence ends together under one name."""
    return key[0], _ENDED_TOGETHER.get(key[1], key[1]), key[2]


def _key(source: str, relationship: str, destination: str | None) -> Key:
    family = family_of_label("favorite" if relationship.startswith("favorite_") else relationship)
    return _fold(source), family.name if family else relationship, _fold(destination or "")


def _fold(name: str) -> str:
    words = name.casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in _ARTICLES else words)


def _is_same(found: Key, gold: Key) -> bool:
    """Return True if both mean one relation: a value may have some words more, or be open in an end."""
    if found[:2] != gold[:2]:
        return False
    return f" {found[2]} " in f" {gold[2]} " or f" {gold[2]} " in f" {found[2]} " or "" in (found[2], gold[2])


def main() -> None:
    """Print the scores of both splits."""
    for split in ("dev", "held"):
        counts = [_count(statement) for statement in load_statements() if statement.split == split]
        right, stated, found, labeled = map(sum, zip(*counts, strict=True))
        precision, recall = right / max(stated, 1), found / max(labeled, 1)
        sys.stdout.write(f"{split:<6}precision {precision:.1%} of {stated}, recall {recall:.1%} of {labeled}\n")


if __name__ == "__main__":
    main()
