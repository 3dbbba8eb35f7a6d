"""Names of a graph in questions typed in a hurry, and names of the speaker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core import AsyncMemory, Memory, Scope
from mem0_core.graph.adjacency import Adjacency, AdjacencyIndex
from mem0_core.graph.known_names import restore_names
from mem0_core.providers.onnx import OnnxEmbedder
from tests.graph_model import GraphModel, relation_replies

SAID = (
    "Karen works at Zeta.",
    "Karen lives in New York.",
    "Duncan Ferris owns a bakery.",
    "My friend Will lives in Rome.",
    "I live in Lisbon.",
)


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, embedder: OnnxEmbedder) -> Iterator[Memory]:
    with Memory({"path": str(tmp_path_factory.mktemp("names"))}, embedder=embedder) as opened:
        for text in SAID:
            opened.add(text, user_id="u")
        yield opened


def starts(memory: Memory, question: str, user: str = "u") -> set[str]:
    return {path["start"] for path in memory.traverse(question, user_id=user)}


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("where does karen work", "Karen"),
        ("WHERE DOES KAREN WORK", "Karen"),
        ("Where does 'karen' work?", "Karen"),
        ("karen's home", "Karen"),
        ("what does duncan ferris own", "Duncan Ferris"),
        ("what does duncan own", "Duncan Ferris"),
        ("where do i live", "u"),
        ("where will i live", "u"),
    ],
)
def test_a_known_name_starts_the_path_in_any_case(memory: Memory, question: str, start: str) -> None:
    assert starts(memory, question) == {start}


def test_a_search_in_lower_case_finds_the_relations_of_the_name(memory: Memory) -> None:
    for question in ("where does karen work", "Where does Karen work"):
        found = memory.search(question, user_id="u")
        assert (found["relations"][0]["source"], found["relations"][0]["destination"]) == ("Karen", "Zeta")
        assert found["results"][0]["memory"] == "Karen works at Zeta."


# --- names of the speaker ----------------------------------------------------------------------------------------


def ends(memory: Memory, question: str) -> list[tuple[str, str]]:
    return [(path["start"], path["end"]) for path in memory.traverse(question, user_id="u")]


def relations(memory: Memory) -> set[str]:
    found = memory.relations(user_id="u")
    return {f"{one['source']} {one['relationship']} {one['destination']}" for one in found}


@pytest.fixture
def fresh(tmp_path: Path, embedder: OnnxEmbedder) -> Iterator[Memory]:
    with Memory({"path": str(tmp_path)}, embedder=embedder) as opened:
        yield opened


@pytest.mark.parametrize("introduction", ["My name is Maya.", "I'm Maya.", "Call me Maya.", "my name is maya"])
def test_a_name_of_the_speaker_denotes_the_user(fresh: Memory, introduction: str) -> None:
    for text in (introduction, "My sister Anna lives in Porto.", "I live in Lisbon.", "Maya works at Galp."):
        fresh.add(text, user_id="u")
    assert {"u works_at Galp", "u sister Anna", "u lives_in Lisbon"} < relations(fresh)
    assert ends(fresh, "Maya's sister") == ends(fresh, "maya's sister") == [("u", "Anna")]
    assert ends(fresh, "Maya's sister's home") == [("u", "Porto")]
    assert fresh.search("Where does Maya live?", user_id="u")["results"][0]["memory"] == "I live in Lisbon."


def test_facts_told_before_the_introduction_are_found_under_the_name(fresh: Memory) -> None:
    fresh.add("Maya lives in Lisbon.", user_id="u")
    fresh.add("I'm Maya Fischer, and I own a boat.", user_id="u")
    assert ("Maya", "Lisbon") in ends(fresh, '"Maya" home')


def test_a_corrected_name_takes_the_place_of_the_old_one(fresh: Memory) -> None:
    for text in ("My name is Maya.", "My sister is Anna.", "Actually my name is Maja."):
        fresh.add(text, user_id="u")
    assert relations(fresh) == {"u name Maja", "u sister Anna"}
    assert ends(fresh, "Maja's sister") == [("u", "Anna")]
    assert ends(fresh, "Maya's sister") == []


def test_a_longer_name_keeps_the_shorter_one(fresh: Memory) -> None:
    for text in ("My name is Maya.", "My name is Maya Fischer.", "Call me May."):
        fresh.add(text, user_id="u")
    assert relations(fresh) == {"u name Maya", "u name Maya Fischer", "u nickname May"}


def test_a_friend_of_the_same_name_stays_a_friend(fresh: Memory) -> None:
    for text in ("My name is Maya Fischer.", "My friend Maya lives in Rome.", "I live in Oslo.", "Maya likes tea."):
        fresh.add(text, user_id="u")
    assert {"u friend Maya", "Maya lives_in Rome", "u lives_in Oslo", "Maya likes tea"} < relations(fresh)
    assert ends(fresh, "Maya's home") == [("Maya", "Rome")]
    assert ends(fresh, "Maya Fischer's home") == [("u", "Oslo")]


def test_deleting_the_introduction_unties_the_name(fresh: Memory) -> None:
    (introduction,) = fresh.add("My name is Maya.", user_id="u")["results"]
    fresh.add("My sister is Anna.", user_id="u")
    fresh.delete(introduction["id"])
    assert ends(fresh, "Maya's sister") == []


async def test_the_names_of_the_speaker_work_without_blocking(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    async with AsyncMemory({"path": str(tmp_path)}, embedder=embedder) as memory:
        for text in ("My name is Maya.", "My sister is Anna."):
            await memory.add(text, user_id="u")
        assert [path["end"] for path in await memory.traverse("maya's sister", user_id="u")] == ["Anna"]


def test_a_named_speaker_introduces_only_themselves(fresh: Memory) -> None:
    said = [
        {"role": "user", "name": "Tom", "content": "I'm Tommy. I live in Rome."},
        {"role": "user", "content": "I live in Oslo."},
    ]
    fresh.add(said, user_id="u")
    assert relations(fresh) == {"Tom name Tommy", "Tom lives_in Rome", "u lives_in Oslo"}
    assert ends(fresh, "Tommy's home") != [("u", "Oslo")]


# --- with a model ------------------------------------------------------------------------------------------------

FORMS = ("staged", "triplets", "fused")


def open_with_model(tmp_path: Path, embedder: OnnxEmbedder, form: str, *stated: tuple[str, str, str]) -> Memory:
    lines = "\n".join(" - ".join(one).replace("_", " ").upper() for one in stated) or "NONE"
    links = [dict(zip(("source", "relationship", "destination"), one, strict=True)) for one in stated]
    fused = {"facts": [], "memory": [], "entities": [], "relations": links, "outdated": [], "refined": []}
    model = GraphModel({**relation_replies(*stated), "triplets": lines, "fused": fused})
    config = {"path": str(tmp_path), "graph_store": {"provider": "sqlite"}, "extraction": form}
    return Memory(config, embedder=embedder, llm=model)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_takes_the_name_for_another_person_does_no_harm(
    tmp_path: Path, embedder: OnnxEmbedder, form: str
) -> None:
    with open_with_model(tmp_path, embedder, form, ("Maya", "lives_in", "Lisbon")) as memory:
        memory.add("I'm Maya and I live in Lisbon.", user_id="u")
        assert relations(memory) == {"u name Maya", "u lives_in Lisbon"}
        assert ends(memory, "Maya's home") == [("u", "Lisbon")]


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_says_nothing_leaves_the_name_and_its_correction(
    tmp_path: Path, embedder: OnnxEmbedder, form: str
) -> None:
    with open_with_model(tmp_path, embedder, form) as memory:
        memory.add("My name is Maya.", user_id="u")
        assert relations(memory) == {"u name Maya"}
        memory.add("Actually my name is Maja.", user_id="u")
        assert relations(memory) == {"u name Maja"}


def test_a_name_that_a_model_gives_is_not_given_twice(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    with open_with_model(tmp_path, embedder, "staged", ("u", "is_named", "Maya")) as memory:
        memory.add("My name is Maya.", user_id="u")
        assert relations(memory) == {"u is_named Maya"}
        assert ends(memory, "Maya's name") != []


@pytest.mark.parametrize("form", FORMS)
def test_a_user_called_as_their_id_says_gets_no_name(tmp_path: Path, embedder: OnnxEmbedder, form: str) -> None:
    with open_with_model(tmp_path, embedder, form) as memory:
        memory.add("Hi, I'm U, just moved here.", user_id="u")
        assert relations(memory) == set()


@pytest.mark.parametrize(
    "text",
    [
        "where does karen work",
        "What did I say about new york?",
        'is "karen" at zeta',
        "tell me of duncan ferris's bakery",
        "KAREN?",
        "Karén's café in zeta",
        "no name at all",
        "who is 'karen'",
    ],
)
def test_a_question_without_the_opening_of_a_name_is_left_as_it_is(
    text: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = memory.store.graph
    adjacency = AdjacencyIndex(graph).of(Scope(user_id="u"))
    quick = restore_names(adjacency, text)
    monkeypatch.setattr(Adjacency, "find_openings", lambda self, openings: openings)
    assert quick == restore_names(adjacency, text)
