"""Relations by one model call: lines of SOURCE - RELATION - DESTINATION."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core import ReplyError
from mem0_core.domain.records import Message, Triplet
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.language.messages import format_transcript
from mem0_core.llm.graph_prompts import triplets_messages
from mem0_core.llm.prompts import Context
from mem0_core.llm.triplet_lines import read_triplets, to_third_person
from tests.graph_model import GraphModel, fact_replies, graph_model_of, set_replies
from tests.support import MODES, MemoryDriver, open_memory

TEXT = "user: maya's sister Anna moved to New York. maya likes tea. Tea is good. Anna works at Rolls-Royce."


def read(reply: str, text: str = TEXT) -> list[tuple[str, str, str]]:
    reading = read_triplets(Reply(reply), text=text, self_name="maya")
    assert not reading.problems
    return [(one.source, one.relationship, one.destination) for one in reading.items]


def problems(reply: str, text: str = TEXT) -> list[str]:
    return [problem.reason for problem in read_triplets(Reply(reply), text=text, self_name="maya").problems]


# --- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "ANNA - LIVES IN - NEW YORK",
        "anna - lives in - new york",
        "1. ANNA - LIVES IN - NEW YORK",
        "2) ANNA - LIVES_IN - NEW YORK.",
        "- ANNA - LIVES IN - NEW YORK",
        "* **ANNA - LIVES IN - NEW YORK**",
        "• ANNA – LIVES IN – NEW YORK",
        "ANNA \N{EM DASH} LIVES IN \N{EM DASH} NEW YORK",
        "(ANNA - LIVES IN - NEW YORK)",
        "[ANNA -> LIVES IN -> NEW YORK]",
        "ANNA --LIVES IN--> NEW YORK".replace("--LIVES IN--", " - LIVES IN -"),
        "ANNA | LIVES IN | NEW YORK",
        "ANNA-LIVES IN-NEW YORK",
        '"ANNA - LIVES IN - NEW YORK",',
        "`ANNA - LIVES IN - NEW YORK`",
        "<think>maya - has - sister? hm</think>\nANNA - LIVES IN - NEW YORK",
        "Here are the relations:\n\nANNA - LIVES IN - NEW YORK\n",
        "```\nANNA - LIVES IN - NEW YORK\n```",
    ],
)
def test_a_line_is_read_however_it_is_dressed(line: str) -> None:
    (found,) = read(line)
    assert (found[0].casefold(), found[1], found[2].casefold()) == ("anna", "lives_in", "new york")


def test_names_get_the_spelling_of_the_text_back() -> None:
    assert read("MAYA - HAS SISTER - ANNA\nMAYA - LIKES - TEA\nANNA - LIVES IN - NEW YORK CITY") == [
        ("maya", "has_sister", "Anna"),
        ("maya", "likes", "tea"),
        ("Anna", "lives_in", "New York city"),
    ]
    assert read("ANNA - MARRIED TO - PETER PAN") == [("Anna", "married_to", "Peter Pan")]


@pytest.mark.parametrize("said", ["I", "ME", "USER", "MY", "MAYA", "THE USER"])
def test_the_speaker_is_the_user(said: str) -> None:
    assert read(f"{said} - LIKES - TEA") == [("maya", "likes", "tea")]


def test_dashes_inside_of_names_are_told_by_the_text() -> None:
    assert read("ANNA - WORKS AT - ROLLS-ROYCE") == [("Anna", "works_at", "Rolls-Royce")]
    assert read("ANNA - WORKS AT - ROLLS - ROYCE") == [("Anna", "works_at", "Rolls-Royce")]
    text = "user: Anna flew Paris - Rome with Tom."
    assert read("ANNA - FLEW - PARIS - ROME", text) == [("Anna", "flew", "Paris - Rome")]
    assert problems("A - B - C - D", "user: nothing of it") == [
        "more than two dashes, and the text does not decide which ones are part of a name"
    ]


def test_what_cannot_be_read_is_told_and_the_rest_is_kept() -> None:
    reading = read_triplets(
        Reply("ANNA - LIVES IN - NEW YORK\nThat is all!\nANNA - LIKES -\nMAYA - IS - MAYA\nANNA - LIVES IN - NEW YORK"),
        text=TEXT,
        self_name="maya",
    )
    assert [str(one) for one in reading.items] == ["Anna -- lives_in -- New York"]
    assert [problem.reason for problem in reading.problems] == [
        "not SOURCE - RELATION - DESTINATION",
        "not SOURCE - RELATION - DESTINATION",
        "a relation of an entity to itself",
    ]


def test_none_is_an_answer_and_silence_is_not() -> None:
    for nothing in ("NONE", "None.", "no relations found"):
        assert read(nothing) == []
    assert problems("") == problems("<think>hm</think>") != []


def test_json_and_tool_calls_are_read_as_relations() -> None:
    item = {"source": "Anna", "relationship": "lives in", "destination": "Rome"}
    called = Reply(tool_calls=(ToolCall("establish_relationships", {"entities": [item]}),))
    expected = (Triplet("Anna", "lives_in", "Rome"),)
    assert read_triplets(called, text=TEXT, self_name="maya").items == expected
    written = Reply('[{"source": "Anna", "relationship": "lives in", "destination": "Rome"}]')
    assert read_triplets(written, text=TEXT, self_name="maya").items == expected


@given(st.text(alphabet=st.sampled_from("AB a-–>|.\n1)\"'`*[](){}<think>"), max_size=80))
def test_any_reply_is_read_or_told_of(reply: str) -> None:
    reading = read_triplets(Reply(reply), text=TEXT, self_name="maya")
    assert reading.items or reading.problems or "none" in reply.casefold()


# --- what the model is given ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("I live in Rome", "maya live in Rome"),
        ("I'm from Rome, and my dog is with me", "maya is from Rome, and maya's dog is with maya"),
        ('She said "I love you" to me', 'She said "I love you" to maya'),
        ("The World War I museum", "The World War I museum"),
        ("i like tea; it is mine", "maya like tea; it is maya's"),
        ("Mary and Tim", "Mary and Tim"),
    ],
)
def test_pronouns_become_the_speaker(said: str, given: str) -> None:
    assert format_transcript(to_third_person([Message("user", said)], "maya")) == f"user: {given}"


def test_each_speaker_is_called_by_their_own_name() -> None:
    messages = [Message("user", "I paint", name="Tom"), Message("assistant", "I see"), Message("system", "I rule")]
    assert format_transcript(to_third_person(messages, "maya")) == "user (Tom): Tom paint\nassistant: I see"


def test_the_prompt_names_no_relations_and_is_one_of_its_own() -> None:
    system, user = triplets_messages("user: hi", custom="Only family.", context=Context(summary="About Rome"))
    assert "SOURCE - RELATION - DESTINATION" in system["content"]
    assert "Only family." in system["content"]
    assert "existing" not in system["content"]
    assert user["content"] == '{"summary": "About Rome", "text": "user: hi"}'


# --- through Memory ------------------------------------------------------------------------------------------------

Open = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    made: list[MemoryDriver] = []

    def begin(lines: str, *facts: str, repair: str = "NONE", **config: Any) -> MemoryDriver:
        model = GraphModel({"triplets": lines, "repair": repair, **fact_replies(*facts)})
        memory = open_memory(tmp_path, llm=model, config={"extraction": "triplets", **config}, graph="sqlite")
        made.append(MemoryDriver(memory, request.param))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


def test_one_call_for_the_graph(opened: Open) -> None:
    fact = "Moved to Porto in May with her sister Anna"
    memory = opened("MAYA - MOVED TO - PORTO\nMAYA - HAS SISTER - ANNA", fact)
    said = "I moved to Porto in May, with my sister Anna."
    result = memory.add(said, user_id="maya", timestamp="2025-06-10")
    assert result["relations"]["added_entities"] == ["maya -- moved_to -- Porto", "maya -- has_sister -- Anna"]
    assert sorted(call.task for call in graph_model_of(memory).calls) == ["facts", "triplets"]
    (entry,) = result["results"]
    for relation in memory.relations(user_id="maya"):
        assert relation["memories"] == [entry["id"]]
        assert (relation["date"], relation["time_window"]) == ("2025-05-01", "2025-05-01/2025-05-31")
    again = memory.add("I moved to Porto!", user_id="maya")
    assert again["relations"]["added_entities"] == []
    assert [relation["weight"] for relation in memory.relations(user_id="maya")] == [2, 2]


def test_what_rules_read_as_ended_ends(opened: Open) -> None:
    memory = opened("MAYA - LIVES IN - PORTO")
    memory.add("I live in Porto.", user_id="maya")
    set_replies(memory, {"triplets": "MAYA - LIVES IN - ROME"})
    result = memory.add("I moved to Rome.", user_id="maya")
    assert result["relations"] == {
        "added_entities": ["maya -- lives_in -- Rome"],
        "deleted_entities": ["maya -- lives_in -- Porto"],
    }


def test_a_bad_line_is_asked_for_once_more_and_then_skipped(opened: Open) -> None:
    memory = opened("MAYA - LIKES - TEA\nMAYA LIKES PIZZA", repair="MAYA - LIKES - PIZZA")
    result = memory.add("I like tea and pizza.", user_id="maya")
    assert result["relations"]["added_entities"] == ["maya -- likes -- tea", "maya -- likes -- pizza"]
    assert result["skipped"] == []
    set_replies(memory, {"triplets": "MAYA LIKES RICE", "repair": "nothing to say"})
    skipped = memory.add("I like rice.", user_id="maya")["skipped"]
    assert {one["reason"] for one in skipped} == {"triplets: not SOURCE - RELATION - DESTINATION"}


def test_a_bad_line_can_be_an_error(opened: Open) -> None:
    memory = opened("MAYA LIKES PIZZA", repair="hm", on_bad_reply="raise")
    with pytest.raises(ReplyError, match="triplets"):
        memory.add("I adore pizza.", user_id="maya")
    assert memory.get_all(user_id="maya")["results"] == []


def test_an_update_reads_the_new_text_the_same_way(opened: Open) -> None:
    memory = opened("MAYA - LIKES - TEA", "Likes tea")
    (entry,) = memory.add("I like tea.", user_id="maya")["results"]
    model = set_replies(memory, {"triplets": "MAYA - LIKES - COFFEE"})
    memory.update(entry["id"], "Likes coffee")
    assert [call.task for call in model.calls] == ["triplets"]
    assert [relation["destination"] for relation in memory.relations(user_id="maya")] == ["coffee"]
