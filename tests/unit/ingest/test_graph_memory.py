"""Graph memory through `Memory`: evidence, time, bad answers, one call in place of five, and no model at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import ConfigError, Memory, ModelError, ReplyError
from mem0_core.domain.records import Relation, Scope, Usage
from mem0_core.errors import StoreError
from mem0_core.interfaces import GraphNeighborhood, Reply
from mem0_core.testing import HashEmbedder
from tests.graph_model import (
    GraphModel,
    entities,
    fact_replies,
    graph_model_of,
    outdated,
    refined,
    relation_replies,
    relation_text,
    relations,
    set_replies,
)
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts

Open = Callable[..., MemoryDriver]

ME = ("u", "person")


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[Open]:
    """Opens memories with graph, on one truth; by default with a `GraphModel` that finds nothing."""
    mode: Mode = request.param
    made: list[MemoryDriver] = []

    def begin(replies: dict[str, Any] | None = None, *, graph: Any = "sqlite", **options: Any) -> MemoryDriver:
        config = {**truth, **options.pop("config", {})}
        parts = {"llm": GraphModel(replies), "graph": graph, "config": config, **options}
        made.append(MemoryDriver(open_memory(tmp_path, **parts), mode))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


def held(memory: MemoryDriver, user: str = "u", **options: Any) -> list[str]:
    return [relation_text(relation) for relation in memory.relations(user_id=user, **options)]


# --- evidence ------------------------------------------------------------------------------------------------------


def test_a_relation_comes_from_the_memory_that_names_it(opened: Open) -> None:
    memory = opened(
        {
            **relation_replies(("u", "likes", "tea"), ("u", "lives_in", "Rome")),
            **fact_replies("Likes tea", "Lives in Rome"),
        }
    )
    ids = {entry["memory"]: entry["id"] for entry in memory.add("Tea, in Rome.", user_id="u")["results"]}
    evidence = {relation_text(relation): relation["memories"] for relation in memory.relations(user_id="u")}
    assert evidence == {"u -- likes -- tea": [ids["Likes tea"]], "u -- lives_in -- Rome": [ids["Lives in Rome"]]}


def test_a_delete_reaches_the_graph(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    (entry,) = memory.add("Tea!", user_id="u")["results"]
    memory.delete(entry["id"])
    assert held(memory, ended=True) == []
    assert memory.search("tea", user_id="u")["relations"] == []


def test_a_relation_two_memories_support_survives_the_first_deletion(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    first = memory.add("Tea!", user_id="u")["results"][0]["id"]
    set_replies(memory, {**relation_replies(("u", "likes", "tea")), **fact_replies("Drinks tea every day")})
    second = memory.add("Tea, every day!", user_id="u")["results"][0]["id"]
    (relation,) = memory.relations(user_id="u")
    assert (relation["weight"], sorted(relation["memories"])) == (2, sorted([first, second]))
    memory.delete(first)
    (relation,) = memory.relations(user_id="u")
    assert (relation["weight"], relation["memories"]) == (1, [second])
    memory.delete(second)
    assert held(memory, ended=True) == []


def test_what_is_said_again_is_evidence_too(opened: Open) -> None:
    """A fact that is known is NONE; its memory supports the relation all the same."""
    memory = opened(fact_replies("Likes tea"))
    (entry,) = memory.add("Tea!", user_id="u")["results"]
    said_again = {"memory": [{"id": "0", "text": "Likes tea", "event": "NONE"}]}
    set_replies(
        memory, {**relation_replies(("u", "likes", "tea")), "facts": {"facts": ["Likes tea"]}, "operations": said_again}
    )
    result = memory.add("Tea, I said.", user_id="u")
    assert result_events(result) == [("NONE", "Likes tea")]
    assert [relation["memories"] for relation in memory.relations(user_id="u")] == [[entry["id"]]]


def test_an_update_derives_the_relations_anew(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "lives_in", "Rome")), **fact_replies("Lives in Rome")})
    (entry,) = memory.add("I live in Rome.", user_id="u")["results"]
    set_replies(memory, relation_replies(("u", "lives_in", "Oslo")))
    memory.update(entry["id"], "Lives in Oslo")
    (relation,) = memory.relations(user_id="u")
    assert (relation_text(relation), relation["memories"]) == ("u -- lives_in -- Oslo", [entry["id"]])
    assert sorted(held(memory, ended=True)) == ["u -- lives_in -- Oslo", "u -- lives_in -- Rome"]


def test_an_update_that_fails_changes_nothing(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "lives_in", "Rome")), **fact_replies("Lives in Rome")})
    (entry,) = memory.add("I live in Rome.", user_id="u")["results"]
    set_replies(memory, {"entities": ModelError("no answer")})
    with pytest.raises(ModelError):
        memory.update(entry["id"], "Lives in Oslo")
    assert memory.get(entry["id"])["memory"] == "Lives in Rome"
    assert held(memory) == ["u -- lives_in -- Rome"]


def test_what_a_model_updates_takes_its_relations_along(opened: Open) -> None:
    """Step 4A was silent, but the memory that said Rome says Oslo now."""
    memory = opened({**relation_replies(("u", "lives_in", "Rome")), **fact_replies("Lives in Rome")})
    memory.add("I live in Rome.", user_id="u", timestamp="2025-01-01")
    moved = {"memory": [{"id": "0", "text": "Lives in Oslo", "event": "UPDATE", "old_memory": "Lives in Rome"}]}
    set_replies(
        memory,
        {**relation_replies(("u", "lives_in", "Oslo")), "facts": {"facts": ["Lives in Oslo"]}, "operations": moved},
    )
    result = memory.add("I live in Oslo now.", user_id="u", timestamp="2025-06-01")
    assert result["relations"] == {
        "added_entities": ["u -- lives_in -- Oslo"],
        "deleted_entities": ["u -- lives_in -- Rome"],
    }
    assert held(memory, as_of="2025-03-01") == ["u -- lives_in -- Rome"]


def test_what_an_update_only_leaves_out_still_holds(opened: Open) -> None:
    memory = opened(
        {
            **relation_replies(("Ann", "works_as", "nurse"), ("Ann", "son", "Tom")),
            **fact_replies("Ann, a nurse, has Tom"),
        }
    )
    memory.add("Ann is a nurse, and Tom's mother.", user_id="u", timestamp="2025-01-01")
    shorter = {"id": "0", "text": "Ann is a baker", "event": "UPDATE", "old_memory": "Ann, a nurse, has Tom"}
    stated = relation_replies(("Ann", "works_as", "baker"))
    set_replies(memory, {**stated, "facts": {"facts": ["Ann is a baker"]}, "operations": {"memory": [shorter]}})
    memory.add("Ann is a baker now.", user_id="u", timestamp="2025-06-01")
    assert sorted(held(memory)) == ["Ann -- son -- Tom", "Ann -- works_as -- baker"]


def test_a_job_that_an_update_leaves_out_is_over(opened: Open) -> None:
    memory = opened({**relation_replies(("Ann", "works_at", "Acme")), **fact_replies("Ann works at Acme")})
    memory.add("Ann works at Acme.", user_id="u", timestamp="2025-01-01")
    retired = {"id": "0", "text": "Ann has retired", "event": "UPDATE", "old_memory": "Ann works at Acme"}
    set_replies(memory, {"facts": {"facts": ["Ann has retired"]}, "operations": {"memory": [retired]}})
    memory.add("Ann has retired.", user_id="u", timestamp="2025-06-01")
    assert held(memory) == []
    assert memory.answer("Where does Ann work?", user_id="u")["values"] == []


def test_a_text_that_was_redacted_does_not_come_back(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "brother", "Tom")), **fact_replies("My brother is Tom, his PIN is 4711")})
    (entry,) = memory.add("My brother is Tom, his PIN is 4711", user_id="u")["results"]
    memory.update(entry["id"], "(removed)")
    assert result_texts(memory.search("Where does my brother work?", user_id="u")) == ["(removed)"]


@pytest.mark.parametrize("truth", [{}], ids=["sqlite"])
def test_purging_leaves_nothing_of_the_graph_in_the_file(opened: Open, tmp_path: Path) -> None:
    memory = opened({**relation_replies(("u", "knows", "Wolkenstein")), **fact_replies("Knows Wolkenstein")})
    (entry,) = memory.add("I know Wolkenstein.", user_id="u")["results"]
    memory.delete(entry["id"], purge=True)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if b"Wolkenstein" in file.read_bytes()] == []


def test_deleting_everything_of_a_user_spares_the_others(opened: Open) -> None:
    memory = opened(relation_replies(("u", "likes", "tea")))
    memory.add("Tea!", user_id="u")
    set_replies(memory, relation_replies(("v", "likes", "tea")))
    memory.add("Tea!", user_id="v")
    memory.delete_all(user_id="u")
    assert held(memory, ended=True) == []
    assert held(memory, "v") == ["v -- likes -- tea"]
    memory.reset()
    assert held(memory, "v", ended=True) == []


# --- time ----------------------------------------------------------------------------------------------------------


def test_facts_are_answered_as_of_their_day(opened: Open) -> None:
    """UPDATE and DELETE close an interval, and a search of a day gone by sees what held then."""
    memory = opened(fact_replies("Lives in Rome", "Has a cat"), graph=False)
    memory.add("I live in Rome, with a cat.", user_id="u", timestamp="2025-01-01")

    def changed(request: dict[str, Any]) -> dict[str, Any]:
        short = {memory["text"]: memory["id"] for memory in request["memories"]}
        return {
            "memory": [
                {"id": short["Lives in Rome"], "text": "Lives in Oslo", "event": "UPDATE"},
                {"id": short["Has a cat"], "text": "Has a cat", "event": "DELETE"},
            ]
        }

    set_replies(memory, {"facts": {"facts": ["Lives in Oslo", "Has no cat"]}, "operations": changed})
    memory.add("Oslo, without the cat.", user_id="u", timestamp="2025-06-01")

    def found(as_of: str | None) -> list[str]:
        return sorted(result_texts(memory.search("lives with a cat in", user_id="u", as_of=as_of)))

    assert found("2024-12-31") == []
    assert found("2025-03-01") == ["Has a cat", "Lives in Rome"]
    assert found("2025-06-01") == ["Lives in Oslo"]
    assert found(None) == ["Lives in Oslo"]


def test_a_filter_and_an_expiry_hold_in_the_past_too(opened: Open) -> None:
    memory = opened(fact_replies("Likes tea"), graph=False)
    memory.add("Tea!", user_id="u", timestamp="2025-01-01", metadata={"k": 1}, expiration_date="2025-02-01")

    def found(**options: Any) -> list[str]:
        return result_texts(memory.search("tea", user_id="u", **options))

    assert found() == []
    assert found(as_of="2025-01-15") == ["Likes tea"]
    assert found(as_of="2025-03-01") == []
    assert found(as_of="2025-01-15", filters={"k": 1}) == ["Likes tea"]
    assert found(as_of="2025-01-15", filters={"k": 2}) == []


def test_what_a_user_deletes_no_day_brings_back(opened: Open) -> None:
    memory = opened(fact_replies("Lives in Rome"), graph=False)
    (entry,) = memory.add("Rome.", user_id="u", timestamp="2025-01-01")["results"]
    memory.update(entry["id"], "Lives in Oslo")
    assert result_texts(memory.search("lives in", user_id="u", as_of="2025-03-01")) == ["Lives in Rome"]
    memory.delete(entry["id"])
    assert result_texts(memory.search("lives in", user_id="u", as_of="2025-03-01")) == []


def test_as_of_must_be_a_time(opened: Open) -> None:
    memory = opened()
    with pytest.raises(ValueError, match="as_of"):
        memory.search("x", user_id="u", as_of="soon")
    with pytest.raises(ValueError, match="as_of"):
        memory.relations(user_id="u", as_of="soon")


# --- answers, good and bad -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["entities", "relations", "outdated", "refined"])
def test_an_answer_that_cannot_be_read_is_told_and_the_rest_is_kept(opened: Open, task: str) -> None:
    replies = {**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")}
    memory = opened(replies)
    memory.add("Tea!", user_id="u")
    broken = '{"entities": [{"entity": 7}], "deletions": [{"source": 7}], "updates": [{"source": 7}]}'
    set_replies(memory, {**replies, **fact_replies("Likes milk"), task: broken, "repair": broken})
    result = memory.add("Milk!", user_id="u")
    assert ("ADD", "Likes milk") in result_events(result)
    assert [entry["reason"].split(":")[0] for entry in result["skipped"]] == [task] * len(result["skipped"])
    assert result["skipped"]
    assert held(memory) == ["u -- likes -- tea"]


def test_an_answer_is_mended_once(opened: Open) -> None:
    mended = relations(("u", "likes", "tea"))
    memory = opened({**relation_replies(("u", "likes", "tea")), "relations": "hm", "repair": mended})
    result = memory.add("Tea!", user_id="u")
    assert result["relations"]["added_entities"] == ["u -- likes -- tea"]
    assert result["skipped"] == []
    assert [call.task for call in graph_model_of(memory).calls].count("repair") == 1


def test_with_raise_nothing_is_written(opened: Open) -> None:
    replies = {**fact_replies("Likes tea"), "entities": "hm", "repair": "hm"}
    memory = opened(replies, config={"on_bad_reply": "raise"})
    with pytest.raises(ReplyError):
        memory.add("Tea!", user_id="u")
    assert result_texts(memory.get_all(user_id="u")) == []


@pytest.mark.parametrize("task", ["facts", "entities", "relations", "outdated", "refined"])
def test_a_call_that_fails_leaves_nothing_half_written(opened: Open, task: str) -> None:
    replies = {**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")}
    memory = opened(replies)
    memory.add("Tea!", user_id="u")
    set_replies(
        memory,
        {**relation_replies(("u", "likes", "milk")), **fact_replies("Likes milk"), task: ModelError("no answer")},
    )
    with pytest.raises(ModelError):
        memory.add("Milk!", user_id="u")
    assert result_texts(memory.get_all(user_id="u")) == ["Likes tea"]
    assert held(memory, ended=True) == ["u -- likes -- tea"]


def test_what_is_stated_again_is_not_outdated(opened: Open) -> None:
    """mem0 deletes a relation and adds it again when a model says both."""
    memory = opened(relation_replies(("u", "likes", "tea")))
    memory.add("Tea!", user_id="u")
    set_replies(memory, relation_replies(("u", "likes", "tea"), outdated=outdated(("u", "likes", "tea"))))
    result = memory.add("Tea again!", user_id="u")
    assert result["relations"] == {"added_entities": [], "deleted_entities": []}
    assert [relation["weight"] for relation in memory.relations(user_id="u")] == [2]


def test_a_new_relation_that_only_says_what_is_refined_is_not_added_beside_it(opened: Open) -> None:
    memory = opened(relation_replies(("u", "works_at", "MIT")))
    memory.add("MIT.", user_id="u")
    both = relation_replies(
        ("u", "is_professor_at", "MIT"), ("u", "likes", "MIT"), refined=refined(("u", "works_as_professor_at", "MIT"))
    )
    set_replies(memory, both)
    memory.add("A professor, who likes it.", user_id="u")
    assert sorted(held(memory)) == ["u -- likes -- MIT", "u -- works_as_professor_at -- MIT"]


def test_nothing_is_asked_that_has_no_object(opened: Open) -> None:
    """No entities: no second question. Nothing known: neither 4A nor 4B. Nothing new: only 4A."""

    def asked(replies: dict[str, Any]) -> list[str]:
        model = set_replies(memory, replies)
        memory.add("Something.", user_id="u")
        return [call.task for call in model.calls if call.task not in ("facts", "operations")]

    memory = opened()
    assert asked({}) == ["entities"]
    assert asked(relation_replies(("u", "likes", "tea"))) == ["entities", "relations"]
    assert asked({"entities": entities(ME)}) == ["entities", "relations", "outdated"]


def test_a_custom_prompt_and_strict_tools_reach_the_model(opened: Open) -> None:
    graph = {"provider": "sqlite", "custom_prompt": "Only food.", "strict": True}
    memory = opened(relation_replies(("u", "likes", "tea")), graph=graph)
    memory.add("Tea!", user_id="u")
    asked = {call.task: call for call in graph_model_of(memory).calls}
    assert "Only food." in asked["relations"].messages[0]["content"]
    assert all(tool.strict for task in ("entities", "relations") for tool in asked[task].tools)


def test_the_graph_may_have_a_model_of_its_own(opened: Open) -> None:
    own = GraphModel(relation_replies(("u", "likes", "tea")))
    memory = opened(fact_replies("Likes tea"), graph={"llm": own})
    memory.add("Tea!", user_id="u")
    assert {call.task for call in own.calls} == {"entities", "relations"}
    assert {call.task for call in graph_model_of(memory).calls} == {"facts"}


def test_infer_false_reads_nothing_into_it(opened: Open) -> None:
    memory = opened(relation_replies(("u", "likes", "tea")))
    memory.add("Tea!", user_id="u", infer=False)
    assert held(memory) == []
    assert graph_model_of(memory).calls == []


def test_a_dry_run_tells_and_changes_nothing(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    result = memory.add("Tea!", user_id="u", dry_run=True)
    assert result["relations"]["added_entities"] == ["u -- likes -- tea"]
    assert held(memory) == []


def test_a_run_is_seen_from_its_user_and_not_from_another_run(opened: Open) -> None:
    memory = opened(relation_replies(("u", "likes", "tea")))
    memory.add("Tea!", user_id="u", run_id="one")
    set_replies(memory, relation_replies(("u", "likes", "milk")))
    memory.add("Milk!", user_id="u", run_id="two")
    assert sorted(held(memory)) == ["u -- likes -- milk", "u -- likes -- tea"]
    assert held(memory, run_id="two") == ["u -- likes -- milk"]
    set_replies(memory, {"entities": entities(ME)})
    found = memory.search("likes what?", user_id="u", run_id="one")["relations"]
    assert [relation_text(relation) for relation in found] == ["u -- likes -- tea"]


def test_an_agents_add_does_not_touch_its_users_relations(opened: Open) -> None:
    memory = opened(relation_replies(("bot", "likes", "tea")))
    memory.add("Tea!", user_id="u", agent_id="bot")
    model = set_replies(memory, relation_replies(("bot", "likes", "milk"), outdated=outdated(("bot", "likes", "tea"))))
    memory.add("Milk!", agent_id="bot")
    assert [call.task for call in model.calls if call.task == "outdated"] == [], "there is nothing of its own to show"
    assert sorted(relation_text(one) for one in memory.relations(agent_id="bot")) == [
        "bot -- likes -- milk",
        "bot -- likes -- tea",
    ]


# --- one call ------------------------------------------------------------------------------------------------------


def test_one_answer_in_place_of_five(opened: Open) -> None:
    """``extraction="fused"``: the same outcome from one call, which is shown what is known and nearest."""
    usage = Usage(input_tokens=900, output_tokens=100)
    memory = opened({**relation_replies(("u", "works_at", "MIT")), **fact_replies("Works at MIT")})
    memory.add("I work at MIT.", user_id="u", timestamp="2025-01-01")
    fused = {
        "facts": ["Works at Stanford"],
        "memory": [{"id": "0", "text": "Works at Stanford", "event": "UPDATE", "old_memory": "Works at MIT"}],
        "entities": [{"entity": "u", "entity_type": "person"}, {"entity": "Stanford", "entity_type": "org"}],
        "relations": [{"source": "u", "relationship": "works_at", "destination": "Stanford"}],
        "outdated": ["r0"],
        "refined": [],
    }
    one = opened({"fused": Reply(text=json.dumps(fused), usage=usage)}, config={"extraction": "fused"})
    result = one.add("I work at Stanford now.", user_id="u", timestamp="2025-06-01")
    assert result_events(result) == [("UPDATE", "Works at Stanford")]
    assert result["relations"] == {
        "added_entities": ["u -- works_at -- Stanford"],
        "deleted_entities": ["u -- works_at -- MIT"],
    }
    counted = {key: result["usage"][key] for key in ("llm_calls", "input_tokens", "output_tokens")}
    assert counted == {"llm_calls": 1, "input_tokens": 900, "output_tokens": 100}
    (call,) = graph_model_of(one).calls
    shown = json.loads(call.messages[-1]["content"])
    assert shown["memories"] == [{"id": "0", "text": "Works at MIT"}]
    assert [relation_text(relation) for relation in shown["relations"]] == ["u -- works_at -- MIT"]
    assert held(one, as_of="2025-03-01") == ["u -- works_at -- MIT"]
    (relation,) = one.relations(user_id="u")
    assert relation["memories"] == [result["results"][0]["id"]]


@pytest.mark.parametrize(
    ("fact", "added", "left"),
    [("Likes tea", [], []), ("Likes milk", [("ADD", "Likes milk")], ["Tea, with milk."])],
    ids=["the memory's own fact", "another fact"],
)
def test_one_answer_adds_evidence_to_the_memory_it_confirms(
    opened: Open, fact: str, added: list[tuple[str, str]], left: list[str]
) -> None:
    """A NONE traces its memory to the new message, and lets it support relations, only where a fact says the same."""
    memory = opened(fact_replies("Likes tea"))
    (entry,) = memory.add("Tea!", user_id="u")["results"]
    fused = {
        "facts": [fact],
        "memory": [{"id": "0", "text": "Likes tea", "event": "NONE"}],
        "entities": [{"entity": "u", "entity_type": "person"}, {"entity": "tea", "entity_type": "drink"}],
        "relations": [{"source": "u", "relationship": "likes", "destination": "tea"}],
        "outdated": [],
        "refined": [],
    }
    one = opened({"fused": fused}, config={"extraction": "fused"})
    result = one.add("Tea, with milk.", user_id="u")
    assert result_events(result) == [*added, ("NONE", "Likes tea")]
    (relation,) = one.relations(user_id="u")
    assert (entry["id"] in relation["memories"]) == (not left)
    one.delete(entry["id"])
    assert [message.content for message in one.memory._store.message_log.messages(Scope("u"))] == left
    assert held(one) == (["u -- likes -- tea"] if left else [])


def test_one_answer_that_lacks_something_is_mended_or_told(opened: Open) -> None:
    partly = {"facts": ["Likes tea"], "memory": [{"id": "x", "text": "Likes tea", "event": "ADD"}]}
    memory = opened({"fused": partly, "repair": "hm"}, config={"extraction": "fused"})
    result = memory.add("Tea!", user_id="u")
    assert result_events(result) == [("ADD", "Likes tea")]
    assert result["skipped"]
    assert result["usage"]["llm_calls"] == 2


def test_one_answer_does_without_a_graph(opened: Open) -> None:
    fused = {"facts": ["Likes tea"], "memory": [{"id": "x", "text": "Likes tea", "event": "ADD"}]}
    whole = {**fused, "entities": [], "relations": [], "outdated": [], "refined": []}
    memory = opened({"fused": whole}, config={"extraction": "fused"}, graph=False)
    assert result_events(memory.add("Tea!", user_id="u")) == [("ADD", "Likes tea")]


# --- recall --------------------------------------------------------------------------------------------------------


def test_five_relations_in_the_order_of_bm25(opened: Open) -> None:
    stated = [("u", "likes", f"thing {number}") for number in range(9)] + [("u", "works_at", "MIT")]
    memory = opened(relation_replies(*stated))
    memory.add("Many things.", user_id="u")
    set_replies(memory, {"entities": entities(ME)})
    found = memory.search("Where does u work?", user_id="u")["relations"]
    assert len(found) == 5
    assert relation_text(found[0]) == "u -- works_at -- MIT", "works_at is two words, and one of them is asked for"
    assert all(0 <= relation["score"] <= 1 for relation in found)
    more = opened(relation_replies(*stated), graph={"limit": 8})
    assert len(more.search("Where does u work?", user_id="u")["relations"]) == 8


def test_a_search_does_without_the_model_if_told_to(opened: Open) -> None:
    memory = opened(
        relation_replies(("u", "likes", "tea"), ("Zoe", "likes", "milk")), graph={"query_entities": "rules"}
    )
    memory.add("Tea, milk.", user_id="u")
    model = set_replies(memory, {})
    assert (
        relation_text(memory.search("What is it that Zoe drinks?", user_id="u")["relations"][0])
        == "Zoe -- likes -- milk"
    )
    assert "u -- likes -- tea" in [
        relation_text(one) for one in memory.search("what do I drink", user_id="u")["relations"]
    ]
    assert model.calls == []


def test_a_search_goes_on_where_the_model_fails(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    memory.add("Tea!", user_id="u")
    set_replies(memory, {"entities": ModelError("no answer")})
    found = memory.search("who likes tea", user_id="u")
    assert result_texts(found) == ["Likes tea"]
    assert [relation_text(one) for one in found["relations"]] == ["u -- likes -- tea"]


def test_all_relations_come_with_all_memories(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    memory.add("Tea!", user_id="u")
    everything = memory.get_all(user_id="u")
    assert (result_texts(everything), [relation_text(one) for one in everything["relations"]]) == (
        ["Likes tea"],
        ["u -- likes -- tea"],
    )


# --- where it is on, and where it is not ---------------------------------------------------------------------------


def test_without_a_model_rules_read_relations(opened: Open) -> None:
    memory = opened(llm=None, graph=None)
    result = memory.add("I live in Lisbon.", user_id="u", timestamp="2025-01-01")
    assert result["relations"]["added_entities"] == ["u -- lives_in -- Lisbon"]
    result = memory.add("I moved to Porto.", user_id="u", timestamp="2025-06-01")
    assert result["relations"] == {
        "added_entities": ["u -- lives_in -- Porto"],
        "deleted_entities": ["u -- lives_in -- Lisbon"],
    }
    assert held(memory, as_of="2025-03-01") == ["u -- lives_in -- Lisbon"]
    (relation,) = memory.relations(user_id="u")
    assert relation["memories"] == [result["results"][0]["id"]]
    assert relation_text(memory.search("Where do I live?", user_id="u")["relations"][0]) == "u -- lives_in -- Porto"


def test_each_speaker_speaks_for_themselves(opened: Open) -> None:
    memory = opened(llm=None, graph=None)
    said = [
        {"role": "user", "name": "Maya", "content": "I live in Porto."},
        {"role": "assistant", "name": "Omar", "content": "I live in Oslo."},
        {"role": "assistant", "content": "I live in a server."},
        {"role": "system", "content": "I live in Atlantis."},
    ]
    memory.add(said, user_id="u")
    assert sorted(held(memory)) == ["Maya -- lives_in -- Porto", "Omar -- lives_in -- Oslo"]


def test_with_a_model_it_is_on_when_asked_for(opened: Open) -> None:
    memory = opened(relation_replies(("u", "likes", "tea")), graph=None)
    memory.add("Tea!", user_id="u")
    assert held(memory) == []
    for no in ({"graph": False}, {"graph": None, "config": {"graph_store": False}}, {"graph": "none"}):
        off = opened(llm=None, **no)
        off.add("I live in Lisbon.", user_id="u")
        assert held(off) == []


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("neo", "graph_store: unknown provider 'neo'; did you mean 'neo4j'"),
        ({"provider": "sqlite", "treshold": 1}, "unknown key 'treshold'; did you mean 'threshold'"),
        ({"threshold": 2}, "threshold"),
    ],
)
def test_a_wrong_choice_is_told_when_it_is_made(tmp_path: Path, graph: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder(), graph=graph)


def test_changing_the_embedder_reaches_the_graph(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    memory.add("Tea!", user_id="u")
    memory.memory.close()
    other = opened({"entities": entities(ME)}, embedder=HashEmbedder(dims=64))
    assert other.rebuild() == 1
    assert [relation_text(one) for one in other.search("u likes what", user_id="u")["relations"]] == [
        "u -- likes -- tea"
    ]


class _Unreachable:
    """A graph projection whose server is down."""

    name = "elsewhere"

    def neighborhoods(self, *args: Any, **options: Any) -> list[GraphNeighborhood]:
        raise StoreError("elsewhere is not reached")

    def nearest_relations(self, *args: Any, **options: Any) -> list[list[tuple[int, float]]]:
        raise StoreError("elsewhere is not reached")

    def catch_up(self) -> None:
        raise StoreError("elsewhere is not reached")

    def relations(self, scope: Scope) -> list[Relation]:
        raise StoreError("elsewhere is not reached")

    def purge_deleted(self, scope: Scope | None) -> None:
        raise StoreError("elsewhere is not reached")

    def close(self) -> None: ...


def test_where_the_projection_is_down_the_truth_answers_and_says_what_is_pending(opened: Open) -> None:
    memory = opened({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")}, graph=_Unreachable())
    pending = [{"store": "elsewhere", "reason": "elsewhere is not reached"}]
    result = memory.add("Tea!", user_id="u")
    assert (result_events(result), result["pending"]) == ([("ADD", "Likes tea")], pending)
    assert [relation_text(one) for one in memory.search("u likes tea", user_id="u")["relations"]] == [
        "u -- likes -- tea"
    ]
    entry = result["results"][0]
    assert memory.update(entry["id"], "Likes green tea")["pending"] == pending
    assert memory.delete(entry["id"])["pending"] == pending
    assert memory.delete_all(user_id="u")["pending"] == pending


def test_the_example_tells_the_story(tmp_path: Path) -> None:
    hidden = ("MEM0_EXAMPLE_MODEL", "NEO4J_URL")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    script = Path(__file__).parents[3] / "examples" / "graph_memory.py"
    shown = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True).stdout
    assert "ended  alice_123 -- works_at -- MIT" in shown
    assert "as of 2024-06-01: works_at MIT; lives_in Boston" in shown
    assert "as of 2025-07-01: lives_in Boston; works_as_professor_at Stanford" in shown
