"""Stories of the specification, on every store and under both drivers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.testing import ScriptedChat
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts

Story = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def story(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[Story]:
    """Opens a memory whose model follows a script: replies, or functions of the task and the messages."""
    mode: Mode = request.param
    opened: list[MemoryDriver] = []

    def begin(*script: Any, **options: Any) -> MemoryDriver:
        replies = iter(script)

        def model(task: str, messages: Any) -> Any:
            reply = next(replies)
            return reply(task, messages) if callable(reply) else reply

        options["config"] = {**truth, **options.get("config", {})}
        driven = MemoryDriver(open_memory(tmp_path / str(len(opened)), model, **options), mode)
        opened.append(driven)
        return driven

    yield begin
    for driven in opened:
        driven.memory.close()


def op(id: str, text: str, event: str, old: str | None = None) -> dict[str, str]:
    return {"id": id, "text": text, "event": event, **({"old_memory": old} if old else {})}


def known(memory: MemoryDriver, *facts: str) -> dict[str, str]:
    """Put facts into the memory as they stand; returns text -> id."""
    return {fact: memory.add(fact, user_id="u", infer=False)["results"][0]["id"] for fact in facts}


# --- mem0's documentation, part 1 ----------------------------------------------------------------------------------


def test_alice_loves_pizza(story: Story) -> None:
    """Bob becomes Alice, the burgers stay, the pizza is new."""

    def model(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["Name is Alice", "Loves pizza"]}
        return {
            "memory": [
                op("0", "Name is Alice", "UPDATE", "Name is Bob"),
                op("1", "Likes burgers", "NONE"),
                op("2", "Loves pizza", "ADD"),
            ]
        }

    memory = story()
    ids = known(memory, "Name is Bob", "Likes burgers")
    chat = memory.memory._chat = ScriptedChat(model)
    result = memory.add(
        [
            {"role": "user", "content": "Hi, my name is Alice. I love pizza."},
            {"role": "assistant", "content": "Nice to meet you, Alice!"},
        ],
        user_id="u",
    )
    assert result_events(result) == [("UPDATE", "Name is Alice"), ("ADD", "Loves pizza"), ("NONE", "Likes burgers")]
    assert result["results"][0]["previous_memory"] == "Name is Bob"
    assert result["results"][0]["id"] == ids["Name is Bob"]
    assert sorted(result_texts(memory.get_all(user_id="u"))) == ["Likes burgers", "Loves pizza", "Name is Alice"]
    asked = chat.calls[0].messages
    assert asked[1]["content"].endswith(
        "Input:\nuser: Hi, my name is Alice. I love pizza.\nassistant: Nice to meet you, Alice!"
    )


def test_an_empty_memory_takes_all_facts_without_a_second_call(story: Story) -> None:
    memory = story({"facts": ["Name is Alice", "Loves pizza"]})
    result = memory.add("Hi, my name is Alice. I love pizza.", user_id="alice_123")
    assert result_events(result) == [("ADD", "Name is Alice"), ("ADD", "Loves pizza")]
    assert result["usage"]["llm_calls"] == 1
    assert result["skipped"] == []


# --- mem0's default prompts -----------------------------------------------------------------------------------------


def test_desmond_jesica_and_the_dog(story: Story) -> None:
    """Four turns make three memories and exactly four history rows."""
    memory = story(
        {"facts": ["Name is Desmond"]},
        {"facts": ["Has a sister"]},
        {"memory": [op("0", "Name is Desmond", "NONE"), op("1", "Has a sister", "ADD")]},
        {"facts": ["Sister's name is Jesica"]},
        lambda task, messages: {"memory": _update_the_sister(messages)},
        {"facts": ["Jesica has a dog"]},
        {"memory": [op("9", "Jesica has a dog", "ADD")]},
    )
    said = ["Hi, my name is Desmond.", "I have a sister.", "Her name is Jesica.", "She has a dog."]
    results = [memory.add(text, user_id="desmond") for text in said]
    ids = {entry["memory"]: entry["id"] for result in results for entry in result["results"] if entry["event"] == "ADD"}
    rows = [
        (row["memory_id"], row["old_memory"] or "", row["new_memory"], row["event"])
        for memory_id in ids.values()
        for row in memory.history(memory_id)
    ]
    assert rows == [
        (ids["Name is Desmond"], "", "Name is Desmond", "ADD"),
        (ids["Has a sister"], "", "Has a sister", "ADD"),
        (ids["Has a sister"], "Has a sister", "Has a sister named Jesica", "UPDATE"),
        (ids["Jesica has a dog"], "", "Jesica has a dog", "ADD"),
    ]
    assert sorted(result_texts(memory.get_all(user_id="desmond"))) == [
        "Has a sister named Jesica",
        "Jesica has a dog",
        "Name is Desmond",
    ]


def _update_the_sister(messages: Any) -> list[dict[str, str]]:
    return [op(_short(messages, "Has a sister"), "Has a sister named Jesica", "UPDATE", "Has a sister")]


def test_cheese_and_chicken_pizza_with_cricket(story: Story) -> None:
    """A fact with more information replaces a memory; one without new information does not."""
    memory = story()
    ids = known(memory, "I really like cheese pizza", "User is a software engineer", "User likes to play cricket")
    memory.memory._chat = ScriptedChat(
        lambda task, messages: (
            {"facts": ["Loves chicken pizza", "Loves to play cricket with friends"]}
            if task == "facts"
            else {
                "memory": [
                    op(
                        _short(messages, "I really like cheese pizza"),
                        "Loves cheese and chicken pizza",
                        "UPDATE",
                        "I really like cheese pizza",
                    ),
                    op(_short(messages, "User is a software engineer"), "User is a software engineer", "NONE"),
                    op(
                        _short(messages, "User likes to play cricket"),
                        "Loves to play cricket with friends",
                        "UPDATE",
                        "User likes to play cricket",
                    ),
                ]
            }
        )
    )
    result = memory.add("I love chicken pizza and cricket with my friends", user_id="u")
    assert result_events(result) == [
        ("UPDATE", "Loves cheese and chicken pizza"),
        ("UPDATE", "Loves to play cricket with friends"),
        ("NONE", "User is a software engineer"),
    ]
    assert {entry["id"] for entry in [*result["results"], *result["unchanged"]]} == set(ids.values())
    (found,) = memory.search("cheese and chicken pizza", user_id="u", limit=1)["results"]
    assert found["memory"] == "Loves cheese and chicken pizza"
    assert found["id"] == ids["I really like cheese pizza"]


def _short(messages: Any, text: str) -> str:
    """The small integer under which the model was shown a memory."""
    (short,) = [memory["id"] for memory in json.loads(messages[-1]["content"])["memories"] if memory["text"] == text]
    return str(short)


def test_dislikes_cheese_pizza(story: Story) -> None:
    """A contradicted memory goes, and its history says so."""
    memory = story()
    ids = known(memory, "Name is John", "Loves cheese pizza")
    memory.memory._chat = ScriptedChat(
        lambda task, messages: (
            {"facts": ["Dislikes cheese pizza"]}
            if task == "facts"
            else {
                "memory": [
                    op(_short(messages, "Name is John"), "Name is John", "NONE"),
                    op(_short(messages, "Loves cheese pizza"), "Loves cheese pizza", "DELETE"),
                ]
            }
        )
    )
    result = memory.add("I don't like cheese pizza any more", user_id="u")
    assert result_events(result) == [("DELETE", "Loves cheese pizza"), ("NONE", "Name is John")]
    assert result_texts(memory.get_all(user_id="u")) == ["Name is John"]
    assert result_texts(memory.search("cheese pizza", user_id="u")) == ["Name is John"]
    last = memory.history(ids["Loves cheese pizza"])[-1]
    assert (last["event"], last["old_memory"], last["new_memory"], last["is_deleted"]) == (
        "DELETE",
        "Loves cheese pizza",
        None,
        True,
    )


def test_name_is_john(story: Story) -> None:
    """A known fact changes nothing and leaves no history."""
    memory = story()
    ids = known(memory, "Name is John", "Loves cheese pizza")
    memory.memory._chat = ScriptedChat(
        lambda task, messages: (
            {"facts": ["Name is John"]}
            if task == "facts"
            else {
                "memory": [
                    op(_short(messages, "Name is John"), "Name is John", "NONE"),
                    op(_short(messages, "Loves cheese pizza"), "Loves cheese pizza", "NONE"),
                ]
            }
        )
    )
    result = memory.add("As I said, I'm John", user_id="u")
    assert {event for event, _ in result_events(result)} == {"NONE"}
    assert all(len(memory.history(memory_id)) == 1 for memory_id in ids.values())


def test_nothing_worth_remembering(story: Story) -> None:
    memory = story({"facts": []})
    result = memory.add("Hi.", user_id="u")
    assert result["results"] == []
    assert result["skipped"] == []
    assert result["usage"]["llm_calls"] == 1


# --- Mem0 paper, section 2.1 ----------------------------------------------------------------------------------------


def test_memories_are_shown_once_and_under_small_integers(story: Story) -> None:
    """Facts that retrieve the same memory show it once, and the model never sees a UUID."""
    shown: list[str] = []

    def model(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["Likes green tea", "Drinks tea at five"]}
        shown.append(messages[-1]["content"])
        return {"memory": [op("0", "Likes green tea", "UPDATE", "Likes tea"), op("7", "Drinks tea at five", "ADD")]}

    memory = story()
    ids = known(memory, "Likes tea")
    memory.memory._chat = ScriptedChat(model)
    result = memory.add("I like green tea, at five", user_id="u")
    assert shown == [
        '{"memories": [{"id": "0", "text": "Likes tea"}], "facts": ["Likes green tea", "Drinks tea at five"]}'
    ]
    assert result["results"][0]["id"] == ids["Likes tea"]


def test_each_fact_brings_its_s_nearest_memories(story: Story) -> None:
    memory = story(config={"neighbours": 2})
    known(memory, "red apples", "red pears", "red plums", "blue boats")
    counted: list[int] = []

    def model(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["red cherries"]}
        counted.append(len(json.loads(messages[-1]["content"])["memories"]))
        return {"memory": [op("5", "red cherries", "ADD")]}

    memory.memory._chat = ScriptedChat(model)
    memory.add("I like red cherries", user_id="u")
    assert counted == [2]


def test_what_has_expired_takes_no_places_among_the_nearest(story: Story) -> None:
    memory = story(config={"neighbours": 2})
    known(memory, "red apples", "red pears", "blue boats")
    for gone in ("red cherries", "sour red cherries"):
        memory.add(gone, user_id="u", infer=False, expiration_date="2020-01-01")
    shown: list[str] = []

    def model(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["sweet red cherries"]}
        shown.extend(one["text"] for one in json.loads(messages[-1]["content"])["memories"])
        return {"memory": [op("5", "sweet red cherries", "ADD")]}

    memory.memory._chat = ScriptedChat(model)
    memory.add("I like sweet red cherries", user_id="u")
    assert sorted(shown) == ["red apples", "red pears"]


# --- Mem0 paper: the update phase by tool call ---------------------------------------------------------------------

TOOLS = {"UPDATE": "update_memory", "NOOP": "noop", "DELETE": "delete_memory", "ADD": "add_memory"}


@pytest.mark.parametrize("form", ["json", "tools"])
def test_both_forms_of_the_update_phase_come_to_the_same(story: Story, form: str) -> None:
    """The paper's tools and mem0's JSON: the same decisions are the same operations."""

    def model(task: str, messages: Any) -> dict[str, Any]:
        if task == "facts":
            return {"facts": ["Name is Alice", "Is not from Rome", "Loves pizza"]}
        ids = {memory["text"]: memory["id"] for memory in json.loads(messages[-1]["content"])["memories"]}
        decisions = [
            ("UPDATE", {"id": ids["Name is Bob"], "text": "Name is Alice"}),
            ("NOOP", {"id": ids["Likes burgers"]}),
            ("DELETE", {"id": ids["Is from Rome"]}),
            ("ADD", {"text": "Loves pizza"}),
        ]
        if form == "json":
            return {"memory": [{"id": "new", "text": "", "event": event, **fields} for event, fields in decisions]}
        return {"tool_calls": [{"name": TOOLS[event], "arguments": fields} for event, fields in decisions]}

    memory = story(config={"operations": form})
    known(memory, "Name is Bob", "Likes burgers", "Is from Rome")
    chat = memory.memory._chat = ScriptedChat(model)
    result = memory.add("I am Alice, not from Rome, and I love pizza.", user_id="u")
    assert sorted(result_events(result)) == [
        ("ADD", "Loves pizza"),
        ("DELETE", "Is from Rome"),
        ("NONE", "Likes burgers"),
        ("UPDATE", "Name is Alice"),
    ]
    offered = sorted(tool.name for tool in chat.calls[1].tools)
    assert offered == (sorted(TOOLS.values()) if form == "tools" else [])


def test_desmond_turn_by_turn(story: Story) -> None:
    """Desmond's example in separate adds: the model resolves "her" and "she" from the window."""
    turns = ["My name is Desmond.", "I have a sister.", "Her name is Jesica.", "She has a dog."]
    facts = ["Name is Desmond", "Has a sister", "Has a sister named Jesica", "Jesica has a dog"]
    read: list[str] = []

    def model(task: str, messages: Any) -> Any:
        content = messages[-1]["content"]
        if task == "facts":
            read.append(content)
            turn = len(read) - 1
            assert content.endswith(f"Input:\nuser: {turns[turn]}")
            assert [line for line in turns[:turn] if f"user: {line}" not in content] == [], "the window has them all"
            return {"facts": [facts[turn]]}
        data = json.loads(content)
        known_as = {memory["text"]: memory["id"] for memory in data["memories"]}
        (fact,) = data["facts"]
        if fact == "Has a sister named Jesica":
            return {"memory": [op(known_as["Has a sister"], fact, "UPDATE", "Has a sister")]}
        return {"memory": [op("new", fact, "ADD")]}

    memory = story()
    memory.memory._chat = ScriptedChat(model)
    ids = [memory.add(turn, user_id="desmond")["results"][0]["id"] for turn in turns]
    rows = [
        (row["event"], row["old_memory"], row["new_memory"]) for id in dict.fromkeys(ids) for row in memory.history(id)
    ]
    assert rows == [
        ("ADD", None, "Name is Desmond"),
        ("ADD", None, "Has a sister"),
        ("UPDATE", "Has a sister", "Has a sister named Jesica"),
        ("ADD", None, "Jesica has a dog"),
    ]
