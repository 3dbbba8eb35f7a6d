"""Step 5 of the graph pipeline: what was found becomes changes. Pure, so tested without a store."""

from __future__ import annotations

import pytest

from mem0_core.domain.records import (
    Entity,
    Event,
    MemoryChange,
    MemoryItem,
    Node,
    Relation,
    RelationChange,
    Scope,
    Triplet,
    entity_key,
)
from mem0_core.ingest._relation_plan import KnownGraph, attach_evidence, build_relation, merge_relations
from mem0_core.language.name_similarity import EntityName, compare_names
from mem0_core.llm.graph_replies import Refinement

ALICE = Scope("alice")
AT = "2025-01-01T00:00:00+00:00"


def node(row: int, name: str) -> Node:
    return Node(row, Entity(name), ALICE)


def knowing(nodes: dict[str, Node], *relations: Relation) -> KnownGraph:
    """Return a known graph: the node of each name, and relations."""
    return KnownGraph({entity_key(name): found for name, found in nodes.items()}, relations, {})


def held(row: int, *triplet: str) -> Relation:
    return Relation(row, Triplet(*triplet), ALICE, AT, source_node=1, destination_node=2)


def planned(changes: tuple[RelationChange, ...]) -> list[str]:
    return [f"{change.event.value} {change.triplet}" for change in changes]


def merged(
    known: KnownGraph,
    new: list[Triplet],
    outdated: tuple[Triplet, ...] = (),
    refined: tuple[Refinement, ...] = (),
) -> tuple[RelationChange, ...]:
    return merge_relations(new, outdated, refined, known, types={entity_key("bob"): "person"}, messages=[0])


@pytest.mark.parametrize(
    ("found", "rows", "names"),
    [
        ({"alice": node(1, "Alice"), "bob": node(2, "Bob")}, (1, 2), "Alice -- knows -- Bob"),
        ({"alice": node(1, "Alice")}, (1, None), "Alice -- knows -- bob"),
        ({"bob": node(2, "Bob")}, (None, 2), "alice -- knows -- Bob"),
        ({}, (None, None), "alice -- knows -- bob"),
    ],
    ids=["both", "source", "destination", "neither"],
)
def test_the_four_branches(found: dict[str, Node], rows: tuple[int | None, int | None], names: str) -> None:
    """A node that is found keeps its name; a missing node is created (Mem0 paper, section 2.2)."""
    change = build_relation(Triplet("alice", "knows", "bob"), knowing(found).nodes)
    assert (change.source_node, change.destination_node) == rows
    assert str(change.triplet) == names


def test_a_relation_never_joins_a_node_to_itself() -> None:
    """Both names are near one node: the one that is called so has it."""
    stanford = node(1, "Stanford University")
    known = knowing({"Stanford": stanford, "Stanford University": stanford})
    change = build_relation(Triplet("Stanford", "is_part_of", "Stanford University"), known.nodes)
    assert (change.source_node, change.destination_node) == (None, 1)
    change = build_relation(Triplet("Stanford University", "has_part", "Stanford"), known.nodes)
    assert (change.source_node, change.destination_node) == (1, None)


def test_types_and_messages_come_along() -> None:
    (change,) = merged(knowing({}), [Triplet("alice", "knows", "bob")])
    assert (change.types, change.message_indexes) == (("", "person"), (0,))


def test_what_is_outdated_ends_and_what_is_restated_does_not() -> None:
    known = knowing({}, held(7, "alice", "likes", "tea"), held(8, "alice", "likes", "milk"))
    changes = merged(
        known,
        [Triplet("ALICE", "likes", "Tea")],
        (
            Triplet("alice", "likes", "tea"),
            Triplet("alice", "likes", "milk"),
            Triplet("alice", "likes", "nothing known"),
        ),
    )
    assert planned(changes) == ["DELETE alice -- likes -- milk", "ADD ALICE -- likes -- Tea"]
    assert changes[0].relation_row == 8


def test_what_is_refined_is_replaced_and_points_back() -> None:
    works = held(7, "alice", "works_at", "MIT")
    known = knowing({"alice": node(1, "alice"), "MIT": node(2, "MIT")}, works)
    new = [Triplet("alice", "is_professor_at", "MIT"), Triplet("alice", "likes", "MIT")]
    changes = merged(known, new, (works.triplet,), (Refinement(works.triplet, "works_as_professor_at"),))
    assert planned(changes) == [
        "DELETE alice -- works_at -- MIT",
        "ADD alice -- works_as_professor_at -- MIT",
        "ADD alice -- likes -- MIT",
    ]
    assert (changes[1].relation_row, changes[1].source_node, changes[1].destination_node) == (7, 1, 2)


@pytest.mark.parametrize(
    ("name", "other", "one"),
    [
        ("Stanford", "Stanford University", False),
        ("University of Stanford", "Stanford University", True),
        ("football", "soccer", False),
        ("red wine", "white wine", False),
        ("my dog", "my cat", False),
        ("Anna Smith", "Anna Jones", False),
        ("user_1", "user_2", False),
        ("2023", "2024", False),
        ("Boeing 747", "Boeing", False),
        ("🍣", "🍕", False),  # no words: nothing to tell them apart by
    ],
)
def test_names_that_are_near_and_yet_contrast_are_two(name: str, other: str, one: bool) -> None:
    assert compare_names(EntityName(name), EntityName(other), 0.85).is_same is one
    assert compare_names(EntityName(other), EntityName(name), 0.85).is_same is one


def change(event: Event, text: str, *sources: int) -> MemoryChange:
    return MemoryChange(event, MemoryItem("id", text, ALICE, "", AT), message_indexes=sources)


@pytest.mark.parametrize(
    ("changes", "memories"),
    [
        ([change(Event.ADD, "Likes tea", 0), change(Event.ADD, "Lives in Rome", 0)], (0,)),
        ([change(Event.ADD, "Likes tea", 0), change(Event.ADD, "Alice likes tea", 0)], (0, 1)),
        (
            [change(Event.ADD, "Is named Maya", 0), change(Event.ADD, "Likes tea", 0)],
            (1,),
        ),  # all are about the speaker
        (
            [change(Event.ADD, "Likes her sister", 0), change(Event.ADD, "Drinks", 0)],
            (0,),
        ),  # none names it: words decide
        ([change(Event.ADD, "Drinks", 0), change(Event.ADD, "Eats", 0)], (0, 1)),  # neither names it: both may
        ([change(Event.ADD, "Likes tea", 1), change(Event.ADD, "Drinks", 0)], (1,)),  # learnt from the same message
        ([change(Event.DELETE, "Likes tea", 0), change(Event.NONE, "Likes tea")], ()),
        ([change(Event.NONE, "Likes tea", 0)], (0,)),
        ([], ()),
    ],
)
def test_evidence_is_what_was_learnt_with_it_and_names_it(
    changes: list[MemoryChange], memories: tuple[int, ...]
) -> None:
    (relation,) = attach_evidence(
        [RelationChange(Event.ADD, Triplet("alice", "likes", "tea"), message_indexes=(0,))], changes
    )
    assert relation.change_indexes == memories
