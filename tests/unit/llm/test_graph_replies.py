"""Replies on the graph as models really give them: what is read of each, and what is reported."""
# ruff: noqa: E501 - one case, one line

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mem0_core.domain.records import Entity, Event, Operation, Triplet
from mem0_core.flow import run
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.llm.ask import ask_with_repair
from mem0_core.llm.graph_replies import (
    Fused,
    FusedItem,
    FusedReply,
    Outdated,
    Refinement,
    entity_name_key,
    fused_key,
    read_entities,
    read_fused,
    read_outdated,
    read_refined,
    read_relations,
    refinement_key,
    split_fused,
    triplet_key,
)
from mem0_core.llm.replies import Reading, StatedFact, merge
from mem0_core.testing import ScriptedChat

SELF = "alice_123"
HOSTILE = ['"quoted"', "O'Hara", "`a` DETACH DELETE n //", "x') DROP TABLE nodes; --", "{self} {0} %s", "張三 🍕", "a\nb", "[1]", "<think>", "x" * 10_000]  # fmt: skip

MIT = Triplet(SELF, "works_at", "MIT")
VISITS = Triplet(SELF, "visited", "MIT")
BOSTON = Triplet(SELF, "lives_in", "Boston")
EXISTING = [MIT, BOSTON]


class Case(NamedTuple):
    name: str
    reply: str | Sequence[Any]
    """A text, or the arguments of tool calls."""
    items: Sequence[Any] = ()
    problems: Sequence[str] = ()


def reply_of(case: Case) -> Reply:
    if isinstance(case.reply, str):
        return Reply(case.reply)
    return Reply("", [ToolCall("some_tool", arguments) for arguments in case.reply])


def check(case: Case, reading: Reading[Any]) -> None:
    assert reading.items == tuple(case.items)
    assert [problem.reason for problem in reading.problems] == list(case.problems)
    for problem in reading.problems:
        str(problem).encode()


def said(source: Any, relationship: Any, destination: Any) -> dict[str, Any]:
    return {"source": source, "relationship": relationship, "destination": destination}


SURROGATE = "a text that is not valid Unicode (half of a surrogate pair)"

# --- entities ----------------------------------------------------------------------------------------------------

ME, STANFORD = Entity(SELF, "person"), Entity("Stanford University", "org")

ENTITY_CASES = [
    Case("mem0's own example", [{"entities": [{"entity": SELF, "entity_type": "person"}, {"entity": "Stanford University", "entity_type": "org"}]}], [ME, STANFORD]),
    Case("as JSON, in a fence", '```json\n{"entities": [{"entity": "alice_123", "entity_type": "person"}]}\n```', [ME]),
    Case("arguments as the raw text", ['{"entities": [{"entity": "alice_123", "entity_type": "person"}]}'], [ME]),
    Case("one call per entity", [{"entity": SELF, "entity_type": "person"}, {"entity": "Stanford University", "entity_type": "org"}], [ME, STANFORD]),
    Case("calls written out", '{"tool_calls": [{"name": "extract_entities", "arguments": {"entities": [{"entity": "I", "entity_type": "person"}]}},]}', [ME]),
    Case("calls written out in a list", '[{"name": "extract_entities", "arguments": {"entity": "I", "entity_type": "person"}}]', [ME]),
    Case("no calls, written out", '{"tool_calls": []}'),
    Case("other keys", '{"nodes": [{"name": "Stanford University", "type": "Org"}]}', [STANFORD]),
    Case("names alone", '{"entities": ["Ann"]}', [Entity("Ann")]),
    Case("no type, an empty one, none, one that is no text", '{"entities": [{"entity": "a"}, {"entity": "b", "entity_type": ""}, {"entity": "c", "entity_type": "None"}, {"entity": "d", "entity_type": 1}]}', [Entity("a"), Entity("b"), Entity("c"), Entity("d")]),
    Case("types in one form", '{"entities": [{"entity": "a", "entity_type": " Programming  Language "}]}', [Entity("a", "programming_language")]),
    Case("spaces around a name, not within", '{"entities": [{"entity": " New  York ", "entity_type": "place"}]}', [Entity("New  York", "place")]),
    Case("one entity in two spellings", '{"entities": [{"entity": "New York"}, {"entity": "new  york"}]}', [Entity("New York")]),
    Case("nothing", '{"entities": []}'),
    Case("empty", "", [], ["the reply is empty"]),
    Case("prose", "There are no entities.", [], ["no JSON in the reply"]),
    Case("a call without arguments", [{}], [], ["the reply is empty"]),
    Case("another list", '{"facts": ["Is 30"]}', [], ['no list under "entities"']),
    Case("names that are none", '{"entities": [{"entity": " "}, {"entity": 3}, {"entity_type": "person"}, null, ["a"]]}', [], ["entity: an empty text", "entity: a number instead of a text", "entity: no text", "null instead of an entity", "a list instead of an entity"]),
    Case("placeholders", '{"entities": [{"entity": "None"}, {"entity": "N/A"}]}', [], ["entity: a placeholder"] * 2),
    Case("half a surrogate pair", r'{"entities": [{"entity": "\ud83d"}, {"entity": "Ann"}]}', [Entity("Ann")], [f"entity: {SURROGATE}"]),
    Case("a list as a text", [{"entities": '[{"entity": "Ann"}]'}], [], ["JSON as a text instead of an entity"]),
    Case("cut off", '{"entities": [{"entity": "Ann"}, {"entity": "Bo', [Entity("Ann")], ["the reply breaks off"]),
    Case("names as keys, whose case is lost", '{"entities": {"Ann": "person"}}', [], ["entity: no text"]),
]  # fmt: skip


@pytest.mark.parametrize("case", ENTITY_CASES, ids=lambda case: case.name)
def test_entities(case: Case) -> None:
    check(case, read_entities(reply_of(case), self_name=SELF))


@pytest.mark.parametrize("word", ["I", "me", "My", "mine", "myself", "user", "The User", "USER_ID", " i "])
def test_the_user_is_known_by_name(word: str) -> None:
    arguments = {"entities": [{"entity": word, "entity_type": "person"}, {"entity": f"{word.strip()}'s dog"}]}
    reading = read_entities(Reply("", [ToolCall("extract_entities", arguments)]), self_name=SELF)
    assert reading.items == (ME, Entity(f"{word.strip()}'s dog"))
    (relation,) = read_relations(Reply(json.dumps([said(word, "likes", "tea")])), self_name=SELF).items
    assert relation == Triplet(SELF, "likes", "tea")


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:12])
def test_a_hostile_name_is_kept_exactly(name: str) -> None:
    entity = json.dumps({"entities": [{"entity": name, "entity_type": "thing"}]})
    assert read_entities(Reply(entity), self_name=SELF).items == (Entity(name, "thing"),)
    relation = Reply("", [ToolCall("establish_relationships", {"entities": [said(name, "likes", "tea")]})])
    assert read_relations(relation, self_name=SELF).items == (Triplet(name, "likes", "tea"),)
    known = Triplet(name, "likes", "tea")
    deleted = Reply("", [ToolCall("delete_graph_memory", said(name, "likes", "tea"))])
    assert read_outdated(deleted, existing=[known], self_name=SELF).items == (known,)


# --- relations ---------------------------------------------------------------------------------------------------

WORKS = Triplet(SELF, "works_as_professor_at", "Stanford University")
LIKES = Triplet(SELF, "likes", "pizza")

RELATION_CASES = [
    Case("mem0's own example", [{"entities": [said(SELF, "works_as_professor_at", "Stanford University")]}], [WORKS]),
    Case("as JSON", json.dumps({"entities": [said(SELF, "likes", "pizza")]}), [LIKES]),
    Case("under another key", json.dumps({"relations": [said(SELF, "likes", "pizza")]}), [LIKES]),
    Case("several calls", [{"entities": [said(SELF, "likes", "pizza")]}, said("I", "works_as_professor_at", "Stanford University")], [LIKES, WORKS]),
    Case("other keys in an item", '[{"source_entity": "I", "relation": "likes", "destination_entity": "pizza"}, {"source_node": "Ann", "type": "knows", "target": "Bo"}]', [LIKES, Triplet("Ann", "knows", "Bo")]),
    Case("lists of three", '{"entities": [["I", "likes", "pizza"]]}', [LIKES]),
    Case("a bare list of three", '[["I", "likes", "pizza"]]', [LIKES]),
    Case("one statement twice", json.dumps([said(SELF, "likes", "pizza"), said("me", "LIKES", "Pizza")]), [LIKES]),
    Case("nothing", '{"entities": []}'),
    Case("empty", " ", [], ["the reply is empty"]),
    Case("prose", "Nothing is related.", [], ["no JSON in the reply"]),
    Case("an entity and itself", json.dumps([said("I", "is", "me"), said("New York", "is", "new  york")]), [], ["a relation of an entity to itself"] * 2),
    Case("parts missing", '{"entities": [{"source": "a", "destination": "b"}, {"source": "a", "relationship": "r"}, {"relationship": "r", "destination": "b"}]}', [], ["relationship: no text", "destination: no text", "source: no text"]),
    Case("parts that are no texts", json.dumps([said("Ann", "is_aged", 30), said("Ann", ["r"], "b"), said("Ann", " ", "b"), said("", "r", "b")]), [], ["destination: a number instead of a text", "relationship: a list instead of a text", "relationship: an empty text", "source: an empty text"]),
    Case("placeholders", json.dumps([said("none", "r", "b"), said("a", "N/A", "b"), said("a", "r", "null"), said("a", "`-_`", "b")]), [], ["source: a placeholder", "relationship: a placeholder", "destination: a placeholder", "relationship: no word in it"]),
    Case("half a surrogate pair", r'[{"source": "\ud83d", "relationship": "r", "destination": "b"}]', [], [f"source: {SURROGATE}"]),
    Case("two sources", '[{"source": "a", "source": "c", "relationship": "r", "destination": "b"}]', [], ["source: two values instead of a text"]),
    Case("aliases that differ", '[{"source": "a", "relation": "r", "type": "s", "destination": "b"}]', [], ["relationship: no text"]),
    Case("a statement as a text", '{"entities": ["alice -- likes -- pizza"]}', [], ["a text instead of a relation"]),
    Case("entities instead of relations", '{"entities": [{"entity": "Ann", "entity_type": "person"}]}', [], ["source: no text"]),
    Case("cut off", '{"entities": [["I", "likes", "pizza"], ["I", "lik', [LIKES], ["the reply breaks off"]),
]  # fmt: skip


@pytest.mark.parametrize("case", RELATION_CASES, ids=lambda case: case.name)
def test_relations(case: Case) -> None:
    check(case, read_relations(reply_of(case), self_name=SELF))


@pytest.mark.parametrize(
    "relationship", ["works_at", "Works At", " WORKS-AT ", "`works_at`", "works  -  at", "_works__at_", "works–at"]
)
def test_a_relationship_has_one_form(relationship: str) -> None:
    reading = read_relations(Reply(json.dumps([said("I", relationship, "MIT")])), self_name=SELF)
    assert reading.items == (MIT,)


# --- outdated ----------------------------------------------------------------------------------------------------

GONE = said(SELF, "works_at", "MIT")
OUTDATED_CASES = [
    Case("mem0's own example", [GONE], [MIT]),
    Case("several calls", [GONE, said(SELF, "lives_in", "Boston")], [MIT, BOSTON]),
    Case("one call with a list", [{"deletions": [GONE]}], [MIT]),
    Case("as JSON", json.dumps({"deletions": [GONE]}), [MIT]),
    Case("under the key of other tools", json.dumps({"entities": [GONE]}), [MIT]),
    Case("one object", json.dumps(GONE), [MIT]),
    Case("lists of three", '{"deletions": [["I", "works_at", "MIT"]]}', [MIT]),
    Case("twice", [GONE, GONE], [MIT]),
    Case("in another spelling", [said("ALICE 123", "Works At", " mit ")], [MIT]),
    Case("a call written out", '{"name": "delete_graph_memory", "arguments": {"source": "I", "relationship": "works_at", "destination": "MIT"}}', [MIT]),
    Case("no call", ""),
    Case("prose", "There is nothing to delete."),
    Case("only thoughts", "<think>It all holds.</think>"),
    Case("nothing", '{"deletions": []}'),
    Case("no calls, written out", '{"tool_calls": []}'),
    Case("one that is not known", [GONE, said(SELF, "works_at", "Stanford")], [MIT], ["a relation that was not given"]),
    Case("the wrong way round", [said("MIT", "works_at", SELF)], [], ["a relation that was not given"]),
    Case("another relationship", [said(SELF, "left", "MIT")], [], ["a relation that was not given"]),
    Case("a placeholder", [said("none", "none", "none")], [], ["source: a placeholder"]),
    Case("a call without arguments", [{}], [], ["the reply is empty"]),
    Case("a call whose arguments are prose", ["alice works at MIT"], [], ["no JSON in the reply"]),
    Case("another tool's arguments", [{"query": "MIT"}], [], ['no list under "deletions"']),
    Case("an empty object", "{}", [], ['no list under "deletions"']),
    Case("cut off in thoughts", "<think>It all", [], ["the reply breaks off within its thoughts"]),
]  # fmt: skip


@pytest.mark.parametrize("case", OUTDATED_CASES, ids=lambda case: case.name)
def test_outdated(case: Case) -> None:
    check(case, read_outdated(reply_of(case), existing=EXISTING, self_name=SELF))


def test_what_is_outdated_comes_as_it_was_given() -> None:
    known = Triplet("User", "Works At!", "New_York")
    reply = Reply("", [ToolCall("delete_graph_memory", said("I", "works_at!", "new york"))])
    assert read_outdated(reply, existing=[known], self_name=SELF).items == (known,)


def test_of_two_that_look_alike_only_the_exact_one_is_meant() -> None:
    existing = [Triplet(SELF, "lives_in", "New_York"), Triplet(SELF, "lives_in", "New York")]
    exact = Reply(json.dumps([said(SELF, "lives_in", "new york")]))
    assert read_outdated(exact, existing=existing, self_name=SELF).items == (existing[1],)
    either = Reply(json.dumps([said(SELF, "lives_in", "New__York")]))
    (problem,) = read_outdated(either, existing=existing, self_name=SELF).problems
    assert problem.reason == "several of the relations given may be meant"


# --- refined -----------------------------------------------------------------------------------------------------

PROFESSOR = Refinement(MIT, "works_as_professor_at")
FINER = said(SELF, "works_as_professor_at", "MIT")
REFINED_CASES = [
    Case("mem0's own example", [FINER], [PROFESSOR]),
    Case("as JSON", json.dumps({"updates": [FINER]}), [PROFESSOR]),
    Case("several calls", [FINER, said("I", "owns_house_in", "Boston")], [PROFESSOR, Refinement(BOSTON, "owns_house_in")]),
    Case("twice", [FINER, FINER], [PROFESSOR]),
    Case("in another spelling", [said("me", "Works as Professor-at", "mit")], [PROFESSOR]),
    Case("to the same", [said(SELF, "Works At", "MIT")]),
    Case("no call", ""),
    Case("prose", "Nothing to refine."),
    Case("nothing", '{"updates": []}'),
    Case("entities that nothing joins", [said(SELF, "works_at", "Stanford")], [], ["a relation that was not given"]),
    Case("two refinements of one", [FINER, said(SELF, "works_as_dean_at", "MIT")], [PROFESSOR], ["a second refinement of one relation"]),
    Case("no relationship", [{"source": SELF, "destination": "MIT"}], [], ["relationship: no text"]),
    Case("cut off", ['{"source": "alice_123", "destination": "MIT", "relationship": "works_as_prof'], [], ["the reply breaks off"]),
]  # fmt: skip


@pytest.mark.parametrize("case", REFINED_CASES, ids=lambda case: case.name)
def test_refined(case: Case) -> None:
    check(case, read_refined(reply_of(case), existing=EXISTING, self_name=SELF))


@pytest.mark.parametrize(
    ("relationships", "new", "old"),
    [
        (["works_at", "visited"], "works_as_professor_at", "works_at"),
        (["works_at", "works_as_teacher_at"], "works_as_math_teacher_at", "works_as_teacher_at"),
        (["visited"], "works_as_professor_at", "visited"),
        (["studied_at", "visited"], "works_as_professor_at", None),  # "at" is no likeness
        (["works_at", "works_for"], "works_as_professor_at", None),
    ],
)
def test_of_several_relations_the_most_alike_is_refined(relationships: list[str], new: str, old: str | None) -> None:
    existing = [Triplet(SELF, relationship, "MIT") for relationship in relationships]
    reading = read_refined(Reply(json.dumps([said(SELF, new, "MIT")])), existing=existing, self_name=SELF)
    assert [item.old.relationship for item in reading.items] == ([old] if old else [])
    assert bool(reading.problems) == (old is None)


def test_a_refinement_that_is_known_already_is_none() -> None:
    existing = [MIT, Triplet(SELF, "works_as_professor_at", "MIT")]
    reading = read_refined(Reply(json.dumps([FINER])), existing=existing, self_name=SELF)
    assert reading == Reading((), (), reading.raw)


# --- fused -------------------------------------------------------------------------------------------------------

PIZZA = StatedFact("Likes pizza", (0,))
IDS, TEXTS = {"0": "mem-a"}, {"0": "Works at MIT"}
SHOWN = {"r0": MIT, "r1": BOSTON}
WHOLE: dict[str, Any] = {
    "facts": [{"fact": "Likes pizza", "messages": [0]}],
    "memory": [{"id": "0", "text": "Works at MIT", "event": "DELETE", "facts": []}, {"id": "1", "text": "Likes pizza", "event": "ADD", "facts": [0]}],
    "entities": [{"entity": "I", "entity_type": "person"}],
    "relations": [said("I", "likes", "pizza")],
    "outdated": ["r0"],
    "refined": [{"id": "r1", "relationship": "owns house in"}],
}  # fmt: skip
PARTS = Fused(
    facts=(PIZZA,),
    operations=(Operation(Event.DELETE, "Works at MIT", "mem-a"), Operation(Event.ADD, "Likes pizza", facts=(0,))),
    entities=(ME,),
    relations=(LIKES,),
    outdated=(MIT,),
    refined=(Refinement(BOSTON, "owns_house_in"),),
)


def read(text: str, shown: dict[str, Triplet] = SHOWN) -> Reading[Any]:
    return read_fused(Reply(text), ids=IDS, texts=TEXTS, relations=shown, self_name=SELF)


def fused(**changed: Any) -> Reading[Any]:
    return read(json.dumps({name: value for name, value in {**WHOLE, **changed}.items() if value is not ...}))


def reasons(reading: Reading[Any]) -> list[str]:
    return [problem.reason for problem in reading.problems]


def test_one_answer_holds_everything() -> None:
    reading = fused()
    assert split_fused(reading.items) == PARTS
    assert not reading.problems
    assert json.loads(reading.raw) == WHOLE
    assert split_fused(read(f"Sure!\n```json\n{json.dumps(WHOLE)}\n```").items) == PARTS


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        ({"facts": []}, []),
        ({"facts": ..., "relations": ...}, ['null instead of a list under "facts"', 'null instead of a list under "relations"']),
        ({"memory": []}, ["no operation for the facts"]),
        ({"memory": [{"id": "7", "event": "DELETE"}]}, ["an id that was not given"]),
        ({"entities": [{"entity": ""}]}, ["entity: an empty text"]),
        ({"relations": [said("I", "is", "me")]}, ["a relation of an entity to itself"]),
        ({"outdated": ["r7"]}, ["an id that was not given, or is outdated"]),
        ({"outdated": [{"id": " r0 "}, "r0"]}, []),
        ({"outdated": [None, True, 0]}, ["an id that was not given, or is outdated"] * 3),
        ({"refined": [{"id": "r0", "relationship": "ran"}]}, ["an id that was not given, or is outdated"]),
        ({"refined": [{"id": "r1", "relationship": " "}, "r1"]}, ["relationship: an empty text", "relationship: no text"]),
        ({"refined": [{"id": "r1", "relationship": "Lives in"}]}, []),
    ],
)  # fmt: skip
def test_each_list_is_checked_on_its_own(changed: dict[str, Any], problems: list[str]) -> None:
    reading = fused(**changed)
    assert reasons(reading) == problems
    intact = WHOLE.keys() - changed.keys()
    parts = split_fused(reading.items)
    for name in intact:
        kind = "operations" if name == "memory" else name
        expected = getattr(PARTS, kind)
        if kind == "operations" and "facts" in changed:  # the numbers name nothing without the facts
            expected = tuple(replace(operation, facts=()) for operation in expected)
        assert getattr(parts, kind) == expected


@pytest.mark.parametrize(
    "text", ["", "I can't.", '{"answer": 1}', f"[{json.dumps(WHOLE)}]", '{"facts": []} {"facts": ["a"]}']
)
def test_no_answer_or_two_are_reported(text: str) -> None:
    assert not read(text).items
    assert len(read(text).problems) == 1


def test_where_no_relations_were_shown_none_need_be_judged() -> None:
    part = {name: value for name, value in WHOLE.items() if name not in ("outdated", "refined")}
    assert not read(json.dumps(part), {}).problems
    assert len(read(json.dumps(part)).problems) == 2


def test_a_cut_answer_is_read_as_far_as_it_goes() -> None:
    reading = read(json.dumps(WHOLE)[:70])
    assert split_fused(reading.items).facts == PARTS.facts
    assert "what follows the list is not JSON" in reasons(reading)


def test_a_broken_answer_is_asked_for_again_and_joined() -> None:
    broken = {**WHOLE, "memory": [], "relations": [said("I", "likes", None)]}
    chat = ScriptedChat([broken, WHOLE])
    question = [{"role": "system", "content": "?"}, {"role": "user", "content": "{}"}]
    reading = run(
        ask_with_repair(
            chat, question, task="fused", read=lambda reply: read(reply.text), key=fused_key, schema=FusedReply
        )
    )
    assert [call.task for call in chat.calls] == ["fused", "repair"]
    assert split_fused(reading.items) == PARTS
    assert not reading.problems


# --- keys and schemas --------------------------------------------------------------------------------------------


def test_keys_tell_what_excludes_what() -> None:
    assert entity_name_key(Entity("New York", "place")) == entity_name_key(Entity("new  york"))
    assert triplet_key(LIKES) == triplet_key(Triplet(SELF.upper(), "likes", "Pizza")) != triplet_key(MIT)
    assert refinement_key(PROFESSOR) == refinement_key(Refinement(MIT, "teaches_at")) == fused_key(Outdated(MIT))
    every: list[FusedItem] = [PIZZA, *PARTS.operations, ME, LIKES, Outdated(LIKES), PROFESSOR]
    assert len({fused_key(item) for item in every}) == len(every)


def test_a_contested_refinement_gives_way_to_the_repaired_one() -> None:
    dean = said(SELF, "works_as_dean_at", "MIT")
    first = read_refined(Reply(json.dumps([FINER, dean])), existing=EXISTING, self_name=SELF)
    again = read_refined(Reply(json.dumps([dean])), existing=EXISTING, self_name=SELF)
    assert merge(first, again, refinement_key) == Reading((Refinement(MIT, "works_as_dean_at"),), (), again.raw)


def test_the_schema_describes_the_agreed_form() -> None:
    FusedReply.model_validate(WHOLE)
    with pytest.raises(ValidationError):
        FusedReply.model_validate({**WHOLE, "more": 1})
    with pytest.raises(ValidationError):
        FusedReply.model_validate({})
    described = FusedReply.model_json_schema()
    for each in [described, *described["$defs"].values()]:
        assert each["additionalProperties"] is False
        assert set(each["properties"]) - set(each["required"]) <= {"old_memory"}


# --- whatever comes ----------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["I", "MIT", "works_at", "r0", "\ud83d"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from([*WHOLE, "entity", "source", "relationship", "destination", "id", "arguments", "deletions"]), inner, max_size=4
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(values)
def test_no_reply_raises_and_each_leaves_a_trace(value: Any) -> None:
    reply = Reply(json.dumps(value))
    needed: list[Reading[Any]] = [read_entities(reply, self_name=SELF), read_relations(reply, self_name=SELF)]
    assert all(reading.items or reading.problems or "[]" in reply.text for reading in needed)
    optional: list[Reading[Any]] = [
        read_outdated(reply, existing=EXISTING, self_name=SELF),
        read_refined(reply, existing=EXISTING, self_name=SELF),
        read(reply.text),
    ]
    for problem in [problem for reading in needed + optional for problem in reading.problems]:
        str(problem).encode()
