"""Precision and recall of `merge` on labeled pairs.

`tests/data/same_or_not.jsonl` has names as users and models write them, and contrasts that embedders place near.
A pair is the same if a reader of one person's notes would bet on it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mem0_core.language.name_similarity import (
    DEFAULT_MERGE_THRESHOLD,
    EntityName,
    NameSimilarity,
    compare_names,
    compare_relationships,
)
from mem0_core.providers.onnx import OnnxEmbedder

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "same_or_not.jsonl").read_text(encoding="utf-8").splitlines()
]
KINDS = ("entity", "relationship")


@pytest.fixture(scope="module")
def judged() -> list[tuple[dict[str, Any], NameSimilarity]]:
    """Every pair, as the default embedder (mem0-minilm) and the rules see it."""
    embedder = OnnxEmbedder()
    found = []
    for pair in PAIRS:
        one, other = pair["one"], pair["other"]
        vectors = embedder.embed([one.replace("_", " "), other.replace("_", " ")])
        cosine = float(vectors[0] @ vectors[1])
        if pair["kind"] == "entity":
            likeness = compare_names(EntityName(one, pair["type"]), EntityName(other, pair["type"]), cosine)
        else:
            likeness = compare_relationships(one, other, cosine)
        found.append((pair, likeness))
    return found


def counts(judged: list[tuple[dict[str, Any], NameSimilarity]], threshold: float, kind: str) -> tuple[int, int, int]:
    """Count the pairs merged rightly, merged wrongly, and the pairs that are one."""
    of_kind = [(pair["same"], likeness.score >= threshold) for pair, likeness in judged if pair["kind"] == kind]
    right = sum(same and taken for same, taken in of_kind)
    wrong = sum(taken and not same for same, taken in of_kind)
    return right, wrong, sum(same for same, _ in of_kind)


def report(judged: list[tuple[dict[str, Any], NameSimilarity]]) -> Iterator[str]:
    yield "threshold  kind          precision        recall"
    for threshold in (0.95, 0.9, 0.85, DEFAULT_MERGE_THRESHOLD, 0.75, 0.7, 0.6):
        for kind in KINDS:
            right, wrong, same = counts(judged, threshold, kind)
            precision = right / (right + wrong) if right + wrong else 1.0
            found = f"{precision:.3f} ({right}/{right + wrong})"
            yield f"{threshold:9}  {kind:12}  {found:15}  {right / same:.3f} ({right}/{same})"


def test_there_are_pairs_enough_of_every_sort() -> None:
    for kind, most in (("entity", 150), ("relationship", 60)):
        of_kind = [pair for pair in PAIRS if pair["kind"] == kind]
        assert len(of_kind) >= most
        assert min(sum(pair["same"] is same for pair in of_kind) for same in (True, False)) >= len(of_kind) / 3


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_merged_by_default_is_one_thing(judged: list[tuple[dict[str, Any], NameSimilarity]], kind: str) -> None:
    sys.stdout.write("\n" + "\n".join(report(judged)) + "\n")  # shown by pytest -s
    right, wrong, same = counts(judged, DEFAULT_MERGE_THRESHOLD, kind)
    assert right / (right + wrong) >= 0.95
    assert right / same >= 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_comparing_is_the_same_both_ways(kind: str) -> None:
    for pair in PAIRS:
        one, other = pair["one"], pair["other"]
        if pair["kind"] != kind:
            continue
        if kind == "entity":
            assert (
                compare_names(EntityName(one), EntityName(other), 0.7).score
                == compare_names(EntityName(other), EntityName(one), 0.7).score
            )
        else:
            assert compare_relationships(one, other, 0.7).score == compare_relationships(other, one, 0.7).score


def test_what_is_of_two_types_is_two() -> None:
    assert compare_names(EntityName("Jordan", "person"), EntityName("jordan", "place"), 1.0).is_distinct


WORDS = (
    *(
        "York",
        "New",
        "Porto",
        "Stanford",
        "Hospital",
        "University",
        "London",
        "West",
        "Maria",
        "Lopez",
        "Smith",
        "Lake",
    ),
    *("coffee", "machine", "football", "american", "pizza", "pineapple", "green", "tea", "garden", "brother", "school"),
)
JOINTS = (" ", " of ", "'s ", "-", " and ")


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True),
    st.sampled_from(JOINTS),
    st.booleans(),
    st.sampled_from(("", "person", "place", "organization")),
    st.floats(0.7, 1.0),
)
def test_a_name_is_never_one_with_a_name_that_contains_it(
    part: list[str], rest: list[str], joint: str, is_first: bool, type_: str, cosine: float
) -> None:
    assume(not {word.casefold() for word in part} & {word.casefold() for word in rest})
    name, other = " ".join(part), " ".join(rest)
    whole = f"{name}{joint}{other}" if is_first else f"{other}{joint}{name}"
    for pair in ((name, whole), (whole, name)):
        one, two = (EntityName(text, type_) for text in pair)
        assert not compare_names(one, two, cosine).is_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cooking for kids", "cooking with kids"),
        ("Vitamin C", "Vitamin D"),
        ("Plan A", "Plan B"),
        ("hepatitis A", "hepatitis B"),
        ("Sandra Voss", "Alexandra Voss"),
        ("Bank of England", "Bank in England"),
        ("desk", "desk lamp"),
        ("Delft", "Delft University of Technology"),
    ],
)
def test_near_names_that_no_rule_joins_keep_their_nodes(one: str, other: str) -> None:
    assert not compare_names(EntityName(one), EntityName(other), 0.95).is_same
