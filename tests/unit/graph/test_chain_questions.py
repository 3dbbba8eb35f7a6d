"""Chains in many phrasings, over relations with the labels that models write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Scope
from mem0_core.domain.records import Event, RelationChange, Triplet
from tests.support import MODES, MemoryDriver, Mode, open_memory

PEOPLE = (
    ("maya", "sister", "Anna"),
    ("Anna", "husband", "Marco"),
    ("Marco", "works_at", "Galp"),
    ("Marco", "works_as", "chemist"),
    ("Marco", "brother", "Rui"),
    ("Rui", "opened", "Casa Azul"),
    ("Anna", "daughter", "Ira"),
    ("Anna", "has_pet", "Rex"),
    ("maya", "manager", "Carla"),
    ("Carla", "resides_in", "Porto"),
    ("maya", "son", "Pete"),
    ("Pete", "wife", "Dawn"),
    ("Dawn", "likes", "chess"),
    ("maya", "works_as_professor_at", "Stanford"),
    ("maya", "likes", "lasagna"),
    ("maya", "lives_in", "Lisbon"),
    ("maya", "best_friend", "Tom"),
    ("Tom", "runs", "chip shop"),
)


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path) as opened:
        yield MemoryDriver(opened, mode)


def tell(memory: MemoryDriver, relations: Sequence[tuple[str, str, str]], user: str = "maya") -> None:
    store, embedder = memory.memory._store, memory.memory._embedder
    changes = []
    for triplet in (Triplet(*relation) for relation in relations):
        vectors = embedder.embed([triplet.source, triplet.destination, triplet.sentence])
        changes.append(RelationChange(Event.ADD, triplet, vectors=(vectors[0], vectors[1], vectors[2])))
    space = (embedder.name, embedder.dims)
    store.commit((), relations=changes, scope=Scope(user), at="2025-01-01T00:00:00+00:00", embedding_space=space)


def find_ends(memory: MemoryDriver, question: str, **options: Any) -> list[str]:
    return [path["end"] for path in memory.traverse(question, user_id="maya", **options)]


@pytest.mark.parametrize(
    ("question", "end"),
    [
        ("Where does my sister's husband work?", "Galp"),
        ("where does my sisters husband work", "Galp"),
        ("Which company does my sister's husband work for?", "Galp"),
        ("Who does my sister's husband work for?", "Galp"),
        ("my sister's husband's employer", "Galp"),
        ("the employer of my sister's husband", "Galp"),
        ("What is the employer of the husband of my sister?", "Galp"),
        ("Which company employs my sister's husband?", "Galp"),
        ("Tell me where Anna's husband works.", "Galp"),
        ("Do you know who Marco works for?", "Galp"),
        ("Who employs Marco?", "Galp"),
        ("wher dose my sister's husband wrok", "Galp"),
        ("What does my sister's husband do for a living?", "chemist"),
        ("What's my sister's husband's job?", "chemist"),
        ("Who is my sister married to?", "Marco"),
        ("Who is Marco's wife?", "Anna"),
        ("Who is Marco married to?", "Anna"),
        ("What did the brother of the man my sister married open?", "Casa Azul"),
        ("my brother-in-law's job", "chemist"),
        ("What is my niece called?", "Ira"),
        ("what's my sister's dog called", "Rex"),
        ("Which pet does my sister have?", "Rex"),
        ("Who is Rex's owner?", "Anna"),
        ("Where does my boss live?", "Porto"),
        ("In which city does my boss live?", "Porto"),
        ("the city of my boss", "Porto"),
        ("Who is my son Pete's wife?", "Dawn"),
        ("What does my son's wife like?", "chess"),
        ("what does my daughter-in-law like?", "chess"),
        ("Where do I work?", "Stanford"),
        ("my employer", "Stanford"),
        ("Which university employs me?", "Stanford"),
        ("what food do I like", "lasagna"),
        ("Do I like lasagna?", "lasagna"),
        ("What does my best friend run?", "chip shop"),
        ("Where does Mum's daughter live?", None),
    ],
)
def test_a_chain_ends_at_its_answer(memory: MemoryDriver, question: str, end: str | None) -> None:
    tell(memory, PEOPLE)
    assert find_ends(memory, question)[:1] == ([end] if end else [])


def test_a_slot_that_was_never_filled_is_not_answered_by_a_neighbor(memory: MemoryDriver) -> None:
    tell(memory, [("maya", "likes", "lasagna"), ("maya", "sister", "Anna"), ("Luca", "father", "Piero")])
    for question in (
        "Where do I work?",
        "Which car do I drive?",
        "What is my sister's job?",
        "Luca's mother",
        "Who is Luca's mother?",
        "my brother",
        "Where does my sister live?",
    ):
        assert find_ends(memory, question) == [], question


def test_a_question_that_names_a_value_is_answered_by_it_or_by_the_one_there_is(memory: MemoryDriver) -> None:
    tell(memory, [("maya", "likes", "green tea"), ("maya", "likes", "jazz"), ("maya", "lives_in", "Oslo")])
    assert find_ends(memory, "Do I like tea?") == ["green tea"]
    assert find_ends(memory, "Do I like coffee?") == []
    assert find_ends(memory, "Do I live in Rome?") == ["Oslo"]
    assert find_ends(memory, "Which tea do I like?")[0] == "green tea"
    assert find_ends(memory, "where do i live rn") == ["Oslo"]


@pytest.mark.parametrize(
    "label",
    [
        "works_at",
        "works_for",
        "WORKS_FOR",
        "employed_by",
        "is_employed_by",
        "is_employed_at",
        "currently_works_at",
        "works_as_professor_at",
        "works_in_sales_at",
        "employer",
        "has_employer",
        "current_employer",
        "employee_of",
        "is_an_employee_of",
        "workplace",
    ],
)
def test_labels_of_an_employer_answer_all_its_phrasings(memory: MemoryDriver, label: str) -> None:
    tell(memory, [("maya", label, "Galp"), ("maya", "likes", "lasagna"), ("maya", "lives_in", "Lisbon")])
    for question in ("Where do I work?", "my employer", "Who do I work for?", "Which company employs me?"):
        assert find_ends(memory, question)[:1] == ["Galp"], question


@pytest.mark.parametrize(
    "label",
    ["lives_in", "resides_in", "living_in", "home", "is_based_in", "has_home_in", "moved_to", "lives_with_family_in"],
)
def test_labels_of_a_home_answer_all_its_phrasings(memory: MemoryDriver, label: str) -> None:
    tell(memory, [("maya", label, "Lisbon"), ("maya", "works_at", "Galp"), ("maya", "likes", "lasagna")])
    for question in ("Where do I live?", "my home", "Which city do I live in?", "where am I based"):
        assert find_ends(memory, question)[:1] == ["Lisbon"], question


@pytest.mark.parametrize(
    "relation",
    [
        ("Luca", "mother", "Rosa"),
        ("Luca", "has_mother", "Rosa"),
        ("Luca", "mom", "Rosa"),
        ("Rosa", "mother_of", "Luca"),
        ("Rosa", "is_the_mother_of", "Luca"),
        ("Rosa", "son", "Luca"),
        ("Rosa", "has_son", "Luca"),
        ("Luca", "son_of", "Rosa"),
        ("Rosa", "parent_of", "Luca"),
    ],
)
def test_a_mother_is_found_and_a_father_is_not(memory: MemoryDriver, relation: tuple[str, str, str]) -> None:
    tell(memory, [relation, ("Luca", "father", "Piero"), ("Piero", "son", "Luca"), ("Rosa", "husband", "Piero")])
    assert find_ends(memory, "Luca's mother") == ["Rosa"]
    assert find_ends(memory, "who is luca's dad?")[:1] == ["Piero"]


def test_relations_that_ended_answer_questions_about_then(memory: MemoryDriver) -> None:
    for text, day in (
        ("I live in Lisbon.", "2020-02-01"),
        ("I work at Acme.", "2020-03-01"),
        ("I moved to Porto.", "2022-05-01"),
        ("I moved to Oslo.", "2024-06-01"),
    ):
        memory.add(text, user_id="maya", timestamp=day)
    assert find_ends(memory, "Where do I live?") == ["Oslo"]
    assert find_ends(memory, "Where did I live in 2021?") == ["Lisbon"]
    assert find_ends(memory, "Where did I live in 2023?") == ["Porto"]
    assert find_ends(memory, "Where did I live before Oslo?") == ["Porto"]
    assert find_ends(memory, "Where did I live after Lisbon?") == ["Porto"]
    assert find_ends(memory, "Where did I live before?")[:1] == ["Porto"]
    assert find_ends(memory, "Where did I live in 2021?", as_of="2025-01-01") == ["Oslo"], "an explicit time decides"
