"""Stories of graph memory from its specification, on every graph store and under both drivers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.graph_model import (
    GraphModel,
    entities,
    outdated,
    refined,
    relation_replies,
    relation_text,
    relations,
    set_replies,
)
from tests.services.postgres_fixture import build_store_config
from tests.support import MODES, MemoryDriver, Mode, open_memory

Story = Callable[..., MemoryDriver]

STORES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.needs_server),
    pytest.param("neo4j", marks=pytest.mark.needs_server),
    "ladybug",
]


@pytest.fixture(params=STORES)
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Configuration of one of the included graph stores: a primary store, or a projection of SQLite."""
    if request.param == "postgres":
        return build_store_config(request, "postgres")
    config = {}
    if request.param == "neo4j":
        config = {"url": request.getfixturevalue("neo4j_server_url")}
    if request.param == "ladybug":
        config = {"db": str(tmp_path / "ladybug")}
    return {"graph_store": {"provider": request.param, "config": config}}


@pytest.fixture(params=MODES)
def story(request: pytest.FixtureRequest, tmp_path: Path, graph: dict[str, Any]) -> Iterator[Story]:
    """Opens a memory with graph memory; its model answers by task, with a reply or a function of the request's data."""
    mode: Mode = request.param
    opened: list[MemoryDriver] = []

    def begin(replies: Mapping[str, Any] | None = None, **config: Any) -> MemoryDriver:
        graph_store = {"provider": "sqlite", **graph.get("graph_store", {}), **config.get("graph_store", {})}
        config = {**graph, **config, "graph_store": graph_store}
        memory = open_memory(tmp_path / str(len(opened)), config=config, llm=GraphModel(replies))
        opened.append(MemoryDriver(memory, mode))
        return opened[-1]

    yield begin
    for driven in opened:
        driven.memory.close()


def list_relations(memory: MemoryDriver, **options: Any) -> list[str]:
    """Return the valid relations as text."""
    return [relation_text(relation) for relation in memory.relations(user_id="alice_123", **options)]


ALICE = ("alice_123", "person")
STANFORD = ("Stanford University", "org")


def begin_with(story: Story, *stated: tuple[str, str, str], at: str = "2025-01-01", **config: Any) -> MemoryDriver:
    memory = story(relation_replies(*stated), **config)
    memory.add("What was known before.", user_id="alice_123", timestamp=at)
    return memory


# --- updating the graph ----------------------------------------------------------------------------------------------


def test_alice_becomes_a_professor_at_stanford(story: Story) -> None:
    """The relation to MIT ends, the one to Stanford is added, and the one to Boston stays."""
    memory = begin_with(story, ("alice_123", "works_at", "MIT"), ("alice_123", "lives_in", "Boston"))
    chat = set_replies(
        memory,
        {
            "facts": {"facts": ["Works as a professor at Stanford University"]},
            "entities": entities(ALICE, STANFORD),
            "relations": relations(("alice_123", "works_as_professor_at", "Stanford University")),
            "outdated": outdated(("alice_123", "works_at", "MIT")),
            "refined": refined(("alice_123", "professor", "Stanford University")),
        },
    )
    result = memory.add(
        "Alice works as a professor at Stanford University.", user_id="alice_123", timestamp="2025-06-01"
    )
    assert result["relations"] == {
        "deleted_entities": ["alice_123 -- works_at -- MIT"],
        "added_entities": ["alice_123 -- works_as_professor_at -- Stanford University"],
    }
    assert result["skipped"] == []
    assert result["usage"]["llm_calls"] == 5
    asked = {call.task: call for call in chat.calls}
    assert sorted(asked) == ["entities", "facts", "outdated", "refined", "relations"]
    tools = {task: call.tools[0].name for task, call in asked.items() if call.tools}
    assert tools == {
        "entities": "extract_entities",
        "relations": "establish_relationships",
        "outdated": "delete_graph_memory",
        "refined": "update_graph_memory",
    }
    data = json.loads(asked["relations"].messages[-1]["content"])
    assert data["entities"] == [
        {"entity": "alice_123", "entity_type": "person"},
        {"entity": "Stanford University", "entity_type": "org"},
    ]
    shown = json.loads(asked["outdated"].messages[-1]["content"])["existing"]
    assert {relation_text(relation) for relation in shown} == {
        "alice_123 -- works_at -- MIT",
        "alice_123 -- lives_in -- Boston",
    }

    assert set(list_relations(memory)) == {
        "alice_123 -- lives_in -- Boston",
        "alice_123 -- works_as_professor_at -- Stanford University",
    }
    (mit,) = [one for one in memory.relations(user_id="alice_123", ended=True) if one["destination"] == "MIT"]
    assert (mit["valid_from"][:10], mit["valid_to"][:10]) == ("2025-01-01", "2025-06-01")
    assert mit["invalidated_at"] is not None


def test_a_search_sees_the_graph_of_its_day(story: Story) -> None:
    """Before, between and after a change; found by entity, and by the text of the relation."""
    memory = begin_with(story, ("alice_123", "works_at", "MIT"))
    set_replies(
        memory,
        relation_replies(("alice_123", "works_at", "Stanford"), outdated=outdated(("alice_123", "works_at", "MIT"))),
    )
    memory.add("Alice moved on.", user_id="alice_123", timestamp="2025-06-01")
    by_entity = {"entities": entities(ALICE)}
    by_sentence: dict[str, Any] = {"entities": entities()}
    for replies in (by_entity, by_sentence):
        set_replies(memory, replies)

        def find(as_of: str | None) -> list[str]:
            result = memory.search("alice_123 works at which university?", user_id="alice_123", as_of=as_of)
            return [relation_text(relation) for relation in result["relations"]]

        assert find("2024-12-31") == []
        assert find("2025-03-01") == ["alice_123 -- works_at -- MIT"]
        assert find("2025-06-01") == ["alice_123 -- works_at -- Stanford"]
        assert find(None) == ["alice_123 -- works_at -- Stanford"]
    assert list_relations(memory, as_of="2025-03-01") == ["alice_123 -- works_at -- MIT"]
    assert list_relations(memory, as_of="2024-03-01") == []


def test_what_is_refined_takes_the_place_of_what_it_refines(story: Story) -> None:
    """Step 4B: works_at becomes works_as_professor_at, with its weight and its evidence."""
    memory = begin_with(story, ("alice_123", "works_at", "Stanford"))
    memory.add("She still works there.", user_id="alice_123", timestamp="2025-02-01")
    set_replies(
        memory,
        relation_replies(
            ("alice_123", "works_as_professor_at", "Stanford"),
            refined=refined(("alice_123", "works_as_professor_at", "Stanford")),
        ),
    )
    result = memory.add("She is a professor there.", user_id="alice_123", timestamp="2025-06-01")
    assert result["relations"] == {
        "deleted_entities": ["alice_123 -- works_at -- Stanford"],
        "added_entities": ["alice_123 -- works_as_professor_at -- Stanford"],
    }
    (now,) = memory.relations(user_id="alice_123")
    assert (relation_text(now), now["weight"]) == ("alice_123 -- works_as_professor_at -- Stanford", 3)
    assert list_relations(memory, as_of="2025-03-01") == ["alice_123 -- works_at -- Stanford"]


def test_every_repeat_raises_the_weight(story: Story) -> None:
    memory = begin_with(story, ("alice_123", "likes", "tea"))
    for day in ("2025-01-02", "2025-01-03"):
        result = memory.add("Tea again.", user_id="alice_123", timestamp=day)
        assert result["relations"] == {"added_entities": [], "deleted_entities": []}
    (relation,) = memory.relations(user_id="alice_123")
    assert relation["weight"] == 3
    assert relation["valid_from"][:10] == "2025-01-01"


def test_saying_it_again_opens_a_new_interval(story: Story) -> None:
    """Adding a relation again does not rewrite the past."""
    memory = begin_with(story, ("alice_123", "lives_in", "Rome"))
    set_replies(memory, {"entities": entities(ALICE), "outdated": outdated(("alice_123", "lives_in", "Rome"))})
    memory.add("She left Rome.", user_id="alice_123", timestamp="2025-03-01")
    assert list_relations(memory) == []
    set_replies(memory, relation_replies(("alice_123", "lives_in", "Rome")))
    memory.add("She is back in Rome.", user_id="alice_123", timestamp="2025-05-01")
    intervals = [
        (one["valid_from"][:10], one["valid_to"] and one["valid_to"][:10])
        for one in memory.relations(user_id="alice_123", ended=True)
    ]
    assert intervals == [("2025-01-01", "2025-03-01"), ("2025-05-01", None)]
    assert [bool(list_relations(memory, as_of=day)) for day in ("2025-02-01", "2025-04-01", "2025-06-01")] == [
        True,
        False,
        True,
    ]


def test_with_delete_what_is_outdated_is_gone(story: Story) -> None:
    """``on_conflict="delete"`` removes outdated relations."""
    memory = begin_with(story, ("alice_123", "works_at", "MIT"), on_conflict="delete")
    set_replies(
        memory,
        relation_replies(("alice_123", "works_at", "Stanford"), outdated=outdated(("alice_123", "works_at", "MIT"))),
    )
    result = memory.add("Alice moved on.", user_id="alice_123", timestamp="2025-06-01")
    assert result["relations"]["deleted_entities"] == ["alice_123 -- works_at -- MIT"]
    assert [relation_text(one) for one in memory.relations(user_id="alice_123", ended=True)] == [
        "alice_123 -- works_at -- Stanford"
    ]


@pytest.mark.parametrize("word", ["I", "me", "My", "USER_ID"])
def test_the_user_goes_by_the_user_id(story: Story, word: str) -> None:
    memory = story(relation_replies((word, "likes", "tea")))
    memory.add("I like tea.", user_id="alice_123")
    assert list_relations(memory) == ["alice_123 -- likes -- tea"]


# --- finding and adding nodes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "names"),
    [
        (("ALICE_123", "knows", "bob"), {"alice_123", "bob"}),  # both are found: names keep their first spelling
        (("alice_123", "knows", "Carol"), {"alice_123", "bob", "Carol"}),  # only the source
        (("Dan", "knows", "Bob"), {"alice_123", "bob", "Dan"}),  # only the destination
        (("Eve", "knows", "Frank"), {"alice_123", "bob", "Eve", "Frank"}),  # neither
    ],
)
def test_nodes_are_found_or_made(story: Story, new: tuple[str, str, str], names: set[str]) -> None:
    memory = begin_with(story, ("alice_123", "likes", "bob"))
    set_replies(memory, relation_replies(new))
    memory.add("Somebody knows somebody.", user_id="alice_123")
    everyone = memory.relations(user_id="alice_123")
    assert {name for relation in everyone for name in (relation["source"], relation["destination"])} == names


def test_a_name_near_enough_is_the_same_node(story: Story) -> None:
    """T = 0.7: in the embedding of these tests, "University of Stanford" is near "Stanford University"."""
    memory = begin_with(story, ("alice_123", "works_at", "Stanford University"))
    set_replies(memory, relation_replies(("bob", "studies_at", "University Stanford")))
    memory.add("Bob studies there too.", user_id="alice_123")
    assert list_relations(memory)[-1] == "bob -- studies_at -- Stanford University"
    strict = begin_with(story, ("alice_123", "works_at", "Stanford University"), graph_store={"threshold": 1.0})
    set_replies(strict, relation_replies(("bob", "studies_at", "University of Stanford")))
    strict.add("Bob studies there too.", user_id="alice_123")
    assert list_relations(strict)[-1] == "bob -- studies_at -- University of Stanford"
