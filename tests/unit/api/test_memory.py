"""The front door: verbs, shapes, scopes and errors, under both drivers."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mem0_core import (
    AsyncMemory,
    ConfigError,
    InputError,
    Memory,
    ModelError,
    NotFoundError,
    QueryError,
    ReplyError,
    ScopeError,
    StoreError,
)
from mem0_core.admin.transfer import compute_digests
from mem0_core.domain.records import Usage
from mem0_core.flow import StepRecord
from mem0_core.interfaces import Reply
from mem0_core.interfaces.archive import SECTIONS
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts

on_a_file = pytest.mark.parametrize("truth", ["sqlite"], indirect=True)
"""For what is decided before any store is asked, and what is about a file."""


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    """A memory without a model."""
    with open_memory(tmp_path, config=truth) as opened:
        yield MemoryDriver(opened, request.param)


def script(memory: MemoryDriver, *replies: Any) -> ScriptedChat:
    """Give the memory a model that answers with `replies`."""
    chat = memory.memory._chat = ScriptedChat(list(replies))
    return chat


def added(*facts: str) -> list[dict[str, Any]]:
    """The two replies that add `facts` to a memory that holds others; an empty one takes only the first."""
    return [
        {"facts": list(facts)},
        {"memory": [{"id": str(i), "text": f, "event": "ADD"} for i, f in enumerate(facts)]},
    ]


# --- verbatim ---------------------------------------------------------------------------------------------------------


def test_without_a_model_messages_are_kept_as_said(memory: MemoryDriver) -> None:
    result = memory.add(
        [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "name": "Maya", "content": "I moved to Porto."},
            {"role": "assistant", "name": "Nova", "content": "How exciting!"},
            {"role": "tool", "content": "{}", "tool_call_id": "1"},
        ],
        user_id="maya",
        metadata={"session": 3},
        timestamp="2025-03-08T18:30:00+01:00",
    )
    assert result_events(result) == [("ADD", "I moved to Porto."), ("ADD", "How exciting!")]
    assert result["relations"] == {"added_entities": ["Maya -- lives_in -- Porto"], "deleted_entities": []}
    assert result["usage"]["llm_calls"] == 0
    first, second = memory.get_all(user_id="maya")["results"]
    assert (first["actor_id"], first["role"], second["actor_id"], second["role"]) == (
        "Maya",
        "user",
        "Nova",
        "assistant",
    )
    assert first["metadata"] == {"session": 3}
    assert first["created_at"] == "2025-03-08T17:30:00+00:00"
    assert (first["user_id"], first["updated_at"]) == ("maya", None)


@on_a_file
def test_infer_false_asks_no_model(memory: MemoryDriver) -> None:
    script(memory)
    assert result_events(memory.add("I ski.", user_id="u", infer=False)) == [("ADD", "I ski.")]


def test_repeats_are_none_and_nothing_else_is_dropped(memory: MemoryDriver) -> None:
    memory.add("I like tea.", user_id="u")
    for same in ("I like tea.", "i LIKE  tea", "I like tea!!"):
        assert result_events(memory.add(same, user_id="u")) == [("NONE", "I like tea.")]
    for other in ("I like teas.", "I like tea and cake.", "I do not like tea."):
        assert result_events(memory.add(other, user_id="u")) == [("ADD", other)]


def test_running_an_add_again_changes_nothing(memory: MemoryDriver) -> None:
    turn = [{"role": "user", "content": "I ski."}, {"role": "assistant", "content": "Nice."}]
    first = memory.add(turn, user_id="u", timestamp=1_700_000_000)
    before = compute_digests(memory.memory.store.archive)
    again = memory.add(turn, user_id="u", timestamp=1_700_000_000)
    assert [entry["id"] for entry in again["unchanged"]] == [entry["id"] for entry in first["results"]]
    assert compute_digests(memory.memory.store.archive) == before


def test_a_dry_run_tells_and_changes_nothing(memory: MemoryDriver) -> None:
    memory.add("I ski.", user_id="u")
    result = memory.add(
        [{"role": "user", "content": text} for text in ("I ski.", "I swim.")], user_id="u", dry_run=True
    )
    assert result_events(result) == [("ADD", "I swim."), ("NONE", "I ski.")]
    script(memory, *added("Runs"))
    assert result_events(memory.add("I run", user_id="u", dry_run=True)) == [("ADD", "Runs")]
    assert result_texts(memory.get_all(user_id="u")) == ["I ski."]
    assert len(memory.memory._store.message_log.messages(_scope("u"))) == 1


def _scope(user: str) -> Any:
    from mem0_core import Scope

    return Scope(user)


# --- with a model -----------------------------------------------------------------------------------------------------


@on_a_file
def test_usage_counts_calls_and_tokens(memory: MemoryDriver) -> None:
    memory.add("Walks", user_id="u", infer=False)
    facts, operations = added("Skis")
    script(
        memory,
        Reply(json.dumps(facts), usage=Usage(100, 10)),
        Reply(json.dumps(operations), usage=Usage(200, 20)),
    )
    usage = memory.add("I ski", user_id="u")["usage"]
    assert (usage["llm_calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 300, 30)
    assert usage["seconds"] > 0


@on_a_file
def test_system_messages_and_tools_are_not_shown_to_extraction(memory: MemoryDriver) -> None:
    chat = script(memory, {"facts": []})
    memory.add(
        [
            {"role": "system", "content": "SECRET INSTRUCTIONS"},
            {"role": "user", "content": "Hi"},
            {"role": "tool", "content": "TOOL OUTPUT"},
            {"role": "assistant", "content": "Hello"},
        ],
        user_id="u",
    )
    (call,) = chat.calls
    assert call.task == "facts"
    assert call.messages[-1]["content"] == "Input:\nuser: Hi\nassistant: Hello"


@on_a_file
def test_timestamp_is_the_day_prompts_call_today(memory: MemoryDriver) -> None:
    chat = script(memory, *added("Met John on 2023-05-07"))
    memory.add("I met John yesterday", user_id="u", timestamp=datetime(2023, 5, 8, tzinfo=UTC))
    assert "2023-05-08" in chat.calls[0].messages[0]["content"]
    assert memory.get_all(user_id="u")["results"][0]["created_at"].startswith("2023-05-08")


@on_a_file
def test_an_agents_own_scope_uses_the_agent_prompt(memory: MemoryDriver) -> None:
    turn = [{"role": "user", "content": "Who are you?"}, {"role": "assistant", "content": "I answer in rhymes."}]
    systems = []
    for ids in ({"agent_id": "bot"}, {"user_id": "u"}, {"user_id": "u", "agent_id": "bot"}):
        chat = script(memory, {"facts": []})
        memory.add(turn, **ids)
        systems.append(chat.calls[0].messages[0]["content"])
    assert systems[0] != systems[1]
    assert systems[0] == systems[2], "as in mem0 1.x"
    chat = script(memory, {"facts": []}, {"facts": []})
    memory.add(turn[:1], agent_id="bot2")
    memory.add(turn[:1], user_id="v")
    mine, users = (call.messages[0]["content"] for call in chat.calls)
    assert mine == users, "without a message of the agent, facts are the user's"


def test_custom_prompts_are_used(tmp_path: Path) -> None:
    config = {"custom_fact_extraction_prompt": "ONLY FOOD", "custom_update_memory_prompt": "NEVER DELETE"}
    with open_memory(tmp_path, added("Eats"), config=config) as memory:
        memory.add("I eat", user_id="u", prompt="AND DRINKS")
        facts, operations = (call.messages[0]["content"] for call in memory._chat.calls)  # type: ignore[union-attr]
    assert facts.startswith("ONLY FOOD")
    assert "AND DRINKS" in facts
    assert "NEVER DELETE" in operations


def test_facts_belong_to_the_one_who_spoke(memory: MemoryDriver) -> None:
    script(memory, *added("Skis"), *added("Swims"))
    one = memory.add([{"role": "user", "name": "Ann", "content": "I ski"}], user_id="u")
    two = memory.add([{"role": "user", "name": n, "content": "We swim"} for n in ("Ann", "Ben")], user_id="v")
    assert one["results"][0]["actor_id"] == "Ann"
    assert "actor_id" not in two["results"][0]


def test_procedural_memory_is_one_summary(memory: MemoryDriver) -> None:
    chat = script(memory, "1. Opened the page. 2. Found 3 offers.")
    turn = [
        {"role": "user", "content": "Find offers"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "3 offers"},
    ]
    result = memory.add(turn, agent_id="scout", memory_type="procedural_memory")
    assert result_events(result) == [("ADD", "1. Opened the page. 2. Found 3 offers.")]
    assert [call.task for call in chat.calls] == ["procedural"]
    assert "3 offers" in chat.calls[0].messages[-1]["content"]
    assert memory.get_all(agent_id="scout")["results"][0]["memory_type"] == "procedural_memory"


@on_a_file
def test_procedural_memory_needs_a_model(memory: MemoryDriver) -> None:
    with pytest.raises(ConfigError, match="llm"):
        memory.add("x", agent_id="a", memory_type="procedural_memory")
    with pytest.raises(InputError, match="memory_type"):
        memory.add("x", agent_id="a", memory_type="episodic")


def test_images_are_described_when_vision_is_on(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + base64.b64encode(b"png").decode()
    message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "My dog:"},
            {"type": "image_url", "image_url": {"url": picture}},
            {"type": "input_audio", "input_audio": {"data": "..."}},
        ],
    }
    with open_memory(
        tmp_path / "on", ["A brown dog.", {"facts": ["Has a brown dog"]}], config={"enable_vision": True}
    ) as on:
        result = on.add([message], user_id="u")
        calls = on._chat.calls  # type: ignore[union-attr]
        assert [call.task for call in calls] == ["describe_image", "facts"]
        assert picture in json.dumps(calls[0].messages)
        assert calls[1].messages[-1]["content"] == 'Input:\nuser: "My dog:\\nA brown dog."'
        assert ["input_audio" in entry["reason"] for entry in result["skipped"]] == [True]
    with open_memory(tmp_path / "off", [{"facts": []}]) as off:
        result = off.add([message], user_id="u")
        assert any("enable_vision" in entry["reason"] for entry in result["skipped"])


def test_a_bad_reply_is_repaired_once_by_asking_again(memory: MemoryDriver) -> None:
    chat = script(memory, "I found: Skis", {"facts": ["Skis"]})
    result = memory.add("I ski", user_id="u")
    assert result_events(result) == [("ADD", "Skis")]
    assert [call.task for call in chat.calls] == ["facts", "repair"]
    assert result["usage"]["llm_calls"] == 2
    assert result["skipped"] == []


def test_what_stays_unreadable_is_reported(memory: MemoryDriver) -> None:
    script(memory, {"facts": ["Skis", 42]}, {"facts": [42]})
    result = memory.add("I ski", user_id="u")
    assert result_events(result) == [("ADD", "Skis")]
    assert result["skipped"]
    assert all(entry["reason"] for entry in result["skipped"])


def test_or_raised_when_asked_for(tmp_path: Path) -> None:
    with open_memory(tmp_path, ["nonsense", "nonsense"], config={"on_bad_reply": "raise"}) as memory:
        with pytest.raises(ReplyError) as caught:
            memory.add("I ski", user_id="u")
        assert "nonsense" in caught.value.raw
        assert memory.get_all(user_id="u")["results"] == []
        assert memory._store.message_log.messages(_scope("u")) == []


def test_a_failing_model_writes_nothing(memory: MemoryDriver) -> None:
    memory.memory._chat = ScriptedChat(lambda task, messages: ModelError("down"))
    with pytest.raises(ModelError, match="down"):
        memory.add("I ski", user_id="u")
    assert memory.get_all(user_id="u")["results"] == []
    assert memory.memory._store.message_log.messages(_scope("u")) == []


def test_a_memory_changed_while_the_model_thought_is_weighed_again(memory: MemoryDriver) -> None:
    """Another writer's update between reading and committing is not overwritten."""
    known = memory.add("Lives in Lisbon", user_id="u")["results"][0]["id"]
    seen: list[str] = []

    def model(task: str, messages: Any) -> Any:
        if task == "facts":
            return {"facts": ["Lives in Porto by the river"]}
        shown = json.loads(messages[-1]["content"])["memories"][0]
        seen.append(shown["text"])
        if len(seen) == 1:
            memory.memory.update(known, "Lives in Porto")
        return {"memory": [{"id": "0", "text": "Lives in Porto by the river", "event": "UPDATE"}]}

    memory.memory._chat = ScriptedChat(model)
    assert result_events(memory.add("by the river", user_id="u")) == [("UPDATE", "Lives in Porto by the river")]
    assert seen == ["Lives in Lisbon", "Lives in Porto"]
    assert [row["new_memory"] for row in memory.history(known)] == [
        "Lives in Lisbon",
        "Lives in Porto",
        "Lives in Porto by the river",
    ]


# --- searching --------------------------------------------------------------------------------------------------------


def test_search_finds_and_scores(memory: MemoryDriver) -> None:
    for text in ("I like green tea", "My bike is broken", "We fly to Rome in May"):
        memory.add(text, user_id="u", metadata={"words": len(text.split())})
    results = memory.search("green tea", user_id="u")["results"]
    assert results[0]["memory"] == "I like green tea"
    assert all(0 <= entry["score"] <= 1 for entry in results)
    assert [entry["score"] for entry in results] == sorted((entry["score"] for entry in results), reverse=True)
    assert set(results[0]) >= {"id", "memory", "score", "hash", "metadata", "created_at", "updated_at", "user_id"}
    assert len(memory.search("green tea", user_id="u", limit=1)["results"]) == 1
    assert len(memory.search("green tea", user_id="u", top_k=2)["results"]) == 2
    assert result_texts(memory.search("green tea", user_id="u", threshold=0.5)) == ["I like green tea"]
    assert result_texts(memory.search("tea", user_id="u", filters={"words": {"lt": 4}})) == []
    assert result_texts(memory.search("tea", filters={"user_id": "u", "words": {"gt": 5}})) == ["We fly to Rome in May"]
    assert "explanation" in memory.search("tea", user_id="u", explain=True)["results"][0]


def test_the_same_question_gets_the_same_answer(memory: MemoryDriver) -> None:
    for index in range(20):
        memory.add(f"fact number {index}", user_id="u")
    first = memory.search("fact", user_id="u")
    assert memory.search("fact", user_id="u") == first
    memory.add("something else entirely", user_id="other")
    assert memory.search("fact", user_id="u") == first


def test_a_reranker_orders_the_hits(tmp_path: Path, truth: dict[str, Any]) -> None:
    class ByLength:
        def score(self, query: str, texts: list[str]) -> list[float]:
            return [len(text) / 100 for text in texts]

    with open_memory(tmp_path, reranker=ByLength(), config=truth) as memory:
        for text in ("tea", "tea with milk", "tea with milk and sugar"):
            memory.add(text, user_id="u")
        # In this recipe it has the last word.
        assert result_texts(memory.search("tea", user_id="u", recipe="mem0"))[0] == "tea with milk and sugar"
        assert result_texts(memory.search("tea", user_id="u", recipe="mem0", rerank=False))[0] == "tea"


def test_expired_memories_are_not_recalled(memory: MemoryDriver) -> None:
    memory.add("old tea offer", user_id="u", expiration_date="2020-01-01")
    memory.add("tea is good", user_id="u", expiration_date="2999-01-01")
    assert result_texts(memory.search("tea", user_id="u", limit=1)) == ["tea is good"]
    assert result_texts(memory.get_all(user_id="u")) == ["tea is good"]
    assert len(memory.get_all(user_id="u", show_expired=True)["results"]) == 2


@pytest.mark.parametrize(
    ("query", "options", "error"),
    [
        ("", {"user_id": "u"}, QueryError),
        ("  \n", {"user_id": "u"}, QueryError),
        ("\ud83d", {"user_id": "u"}, QueryError),
        (None, {"user_id": "u"}, QueryError),
        ("tea", {}, ScopeError),
        ("tea", {"filters": {"topic": "x"}}, ScopeError),
        ("tea", {"user_id": "u", "filters": {"user_id": "v"}}, ScopeError),
        ("tea", {"user_id": "*"}, ScopeError),
        ("tea", {"user_id": "u", "limit": 0}, InputError),
        ("tea", {"user_id": "u", "limit": 2, "top_k": 3}, InputError),
        ("tea", {"user_id": "u", "filters": {"a": {"near": 1}}}, QueryError),
    ],
)
@on_a_file
def test_a_search_that_makes_no_sense_says_why(
    memory: MemoryDriver, query: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    memory.add("I like tea", user_id="u")
    with pytest.raises(error):
        memory.search(query, **options)


def test_a_very_long_query_is_answered(memory: MemoryDriver) -> None:
    memory.add("I like tea", user_id="u")
    assert result_texts(memory.search("tea " * 25_000, user_id="u")) == ["I like tea"]


# --- scopes -----------------------------------------------------------------------------------------------------------


def test_users_never_see_one_another(memory: MemoryDriver) -> None:
    memory.add("The code is 1234", user_id="ann")
    memory.add("The code is 9999", user_id="ben")
    memory.add("The code is 5555", user_id="ann", metadata={"user_id": "ben"})
    assert sorted(result_texts(memory.search("code", user_id="ben"))) == ["The code is 9999"]
    assert len(memory.search("code", user_id="ann")["results"]) == 2
    assert memory.search("code", user_id="ben", filters={"metadata.user_id": "ben"})["results"] == []


def test_an_id_left_out_does_not_restrict(memory: MemoryDriver) -> None:
    memory.add("tea at home", user_id="u", run_id="r1")
    memory.add("tea at work", user_id="u", agent_id="a", run_id="r2")
    assert len(memory.search("tea", user_id="u")["results"]) == 2
    assert result_texts(memory.search("tea", user_id="u", run_id="r1")) == ["tea at home"]
    assert result_texts(memory.search("tea", agent_id="a")) == ["tea at work"]
    assert result_texts(memory.get_all(run_id="r2")) == ["tea at work"]


# --- get, update, delete, history -------------------------------------------------------------------------------------


def test_update_changes_text_vector_and_history(memory: MemoryDriver) -> None:
    (entry,) = memory.add("I live in Lisbon", user_id="u", metadata={"a": 1})["results"]
    assert memory.update(entry["id"], "I live in Porto", {"b": 2}) == {"message": "Memory updated successfully!"}
    now = memory.get(entry["id"])
    assert (now["memory"], now["metadata"]) == ("I live in Porto", {"a": 1, "b": 2})
    assert now["updated_at"] is not None
    assert memory.search("Porto", user_id="u")["results"][0]["score"] > 0.3
    assert [row["event"] for row in memory.history(entry["id"])] == ["ADD", "UPDATE"]
    memory.update(entry["id"], "I live in Porto", {"c": 3})
    assert memory.get(entry["id"])["metadata"] == {"a": 1, "b": 2, "c": 3}
    assert len(memory.history(entry["id"])) == 2


def test_update_to_what_another_memory_says_is_refused(memory: MemoryDriver) -> None:
    memory.add("I like tea", user_id="u")
    (other,) = memory.add("I like coffee", user_id="u")["results"]
    with pytest.raises(InputError, match="says this already"):
        memory.update(other["id"], "i like TEA")
    assert memory.get(other["id"])["memory"] == "I like coffee"


def test_unknown_ids(memory: MemoryDriver) -> None:
    assert memory.get("nope") is None
    assert memory.history("nope") == []
    with pytest.raises(NotFoundError, match="nope"):
        memory.update("nope", "x")
    with pytest.raises(NotFoundError, match="nope"):
        memory.delete("nope")
    for bad in ("", 7, None):
        with pytest.raises(InputError):
            memory.get(bad)


def test_delete_leaves_only_the_history(memory: MemoryDriver) -> None:
    (entry,) = memory.add("The safe code is Xq77", user_id="u")["results"]
    memory.search("code", user_id="u")
    memory.delete(entry["id"])
    assert memory.get(entry["id"]) is None
    assert memory.search("code", user_id="u")["results"] == []
    assert memory.memory._store.message_log.messages(_scope("u")) == []
    archive = memory.memory.store.archive
    held = [section.name for section in SECTIONS if "Xq77" in repr(archive.records(section, limit=100))]
    assert held == ["history"]
    assert [row["event"] for row in memory.history(entry["id"])] == ["ADD", "DELETE"]


@on_a_file
def test_purging_leaves_no_byte(memory: MemoryDriver, tmp_path: Path) -> None:
    for user in ("u", "v"):
        for index in range(50):
            memory.add(f"{user} keeps the Xq77 number {index} in the safe", user_id=user)
    (entry, *_) = memory.get_all(user_id="u")["results"]
    memory.update(entry["id"], "another Xq77")
    memory.delete(entry["id"])
    memory.delete_all(user_id="u", purge=True)
    assert b"u keeps the Xq77" not in _bytes(tmp_path)
    assert b"another Xq77" not in _bytes(tmp_path)
    assert memory.history(entry["id"]) == []
    assert len(memory.search("safe", user_id="v", limit=100)["results"]) == 50
    (other, *_) = memory.get_all(user_id="v")["results"]
    memory.delete(other["id"], purge=True)
    assert other["memory"].encode() + b"\0" not in _bytes(tmp_path)
    assert memory.history(other["id"]) == []


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_delete_all_needs_to_know_whose(memory: MemoryDriver) -> None:
    memory.add("tea", user_id="u")
    memory.add("cake", user_id="v")
    with pytest.raises(ScopeError):
        memory.delete_all()
    memory.delete_all(user_id="u")
    assert memory.get_all(user_id="u")["results"] == []
    assert result_texts(memory.get_all(user_id="v")) == ["cake"]


def test_reset_empties_everything(memory: MemoryDriver) -> None:
    (entry,) = memory.add("tea", user_id="u")["results"]
    memory.search("tea", user_id="u")
    memory.reset()
    assert memory.get_all(user_id="u")["results"] == []
    assert memory.search("tea", user_id="u")["results"] == []
    assert memory.history(entry["id"]) == []
    assert result_events(memory.add("tea", user_id="u")) == [("ADD", "tea")]


# --- bad input --------------------------------------------------------------------------------------------------------

BAD_SCOPES: list[dict[str, Any]] = [
    {},
    {"user_id": ""},
    {"user_id": "  "},
    {"user_id": 7},
    {"user_id": b"x"},
    {"user_id": "*"},
    {"user_id": "\ud800"},
    {"user_id": "u", "run_id": ""},
]

BAD_MESSAGES: list[Any] = [
    "",
    "   ",
    None,
    b"bytes",
    42,
    [],
    ["text"],
    [{"role": "user"}],
    [{"role": "user", "content": None}],
    [{"role": "user", "content": b"bytes"}],
    [{"role": "user", "content": 3}],
    [{"role": "user", "content": [b"x"]}],
    [{"role": "narrator", "content": "x"}],
    [{"content": "x"}],
    [{"role": ["user"], "content": "x"}],
    [{"role": "user", "content": "half an emoji \ud83d"}],
    [{"role": "user", "content": "x", "name": 3}],
    [{"role": "user", "content": "x", "metadata": [1]}],
    [{"role": "user", "content": "x", "timestamp": "yesterday"}],
    [{"role": "user", "content": "fine"}, {"role": "user", "content": "broken \udfff"}],
]

BAD_METADATA: list[Any] = [
    {"when": datetime(2025, 1, 1)},
    {"tags": {1, 2}},
    {"n": float("nan")},
    {"n": float("inf")},
    {1: "x"},
    {"text": "\ud800"},
    [("a", 1)],
    "text",
]


@pytest.mark.parametrize("ids", BAD_SCOPES, ids=repr)
@on_a_file
def test_bad_ids_are_refused(memory: MemoryDriver, ids: dict[str, Any]) -> None:
    with pytest.raises(ScopeError):
        memory.add("x", **ids)
    _nothing_written(memory)


@pytest.mark.parametrize("messages", BAD_MESSAGES, ids=repr)
@on_a_file
def test_bad_messages_are_refused_whole(memory: MemoryDriver, messages: Any) -> None:
    with pytest.raises(InputError):
        memory.add(messages, user_id="u")
    _nothing_written(memory)


@pytest.mark.parametrize("metadata", BAD_METADATA, ids=repr)
@on_a_file
def test_metadata_that_is_no_json_is_refused(memory: MemoryDriver, metadata: Any) -> None:
    with pytest.raises(InputError, match="metadata"):
        memory.add("x", user_id="u", metadata=metadata)
    _nothing_written(memory)


@pytest.mark.parametrize(
    "options", [{"timestamp": "soon"}, {"timestamp": True}, {"timestamp": 1e20}, {"expiration_date": "never"}], ids=repr
)
@on_a_file
def test_times_that_are_none_are_refused(memory: MemoryDriver, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        memory.add("x", user_id="u", **options)
    _nothing_written(memory)


def _nothing_written(memory: MemoryDriver) -> None:
    assert memory.memory._store.list_memories(None) == []
    assert memory.memory._store.message_log.messages(_scope("u")) == []


@pytest.mark.parametrize(
    "text", ["a\0b", "🍣" * 1000, "مرحبا", "x" * 10_000_000, "Robert'); DROP TABLE memories;--"], ids=len
)
def test_unusual_texts_are_stored_exactly(memory: MemoryDriver, text: str) -> None:
    (entry,) = memory.add(text, user_id="u")["results"]
    assert memory.get(entry["id"])["memory"] == text
    assert memory.search(text[:1000], user_id="u")["results"][0]["id"] == entry["id"]


# --- life of the object -----------------------------------------------------------------------------------------------


def test_memories_survive_reopening(tmp_path: Path, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        memory.add("I like tea", user_id="u")
    with open_memory(tmp_path, config=truth) as memory:
        assert result_texts(memory.search("tea", user_id="u")) == ["I like tea"]


def test_a_closed_memory_says_so_and_closes_twice(tmp_path: Path, truth: dict[str, Any]) -> None:
    memory = open_memory(tmp_path, config=truth)
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.add("x", user_id="u")


def test_another_embedder_is_refused_until_rebuilt(tmp_path: Path, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        memory.add("I like tea", user_id="u")
    with open_memory(tmp_path, embedder=HashEmbedder(dims=64), config=truth) as other:
        for act in (lambda: other.search("tea", user_id="u"), lambda: other.add("cake", user_id="u")):
            with pytest.raises(ConfigError, match="rebuild"):
                act()
        assert result_texts(other.get_all(user_id="u")) == ["I like tea"]
        assert other.rebuild() == 1
        assert result_texts(other.search("tea", user_id="u")) == ["I like tea"]
    with open_memory(tmp_path, config=truth) as old, pytest.raises(ConfigError, match="rebuild"):
        old.search("tea", user_id="u")


@pytest.mark.parametrize("mode", MODES)
def test_what_others_write_during_a_rebuild_is_embedded_too(tmp_path: Path, mode: Mode, truth: dict[str, Any]) -> None:
    with (
        open_memory(tmp_path, config=truth) as old,
        open_memory(tmp_path, embedder=HashEmbedder(dims=64), config=truth) as new,
    ):
        (tea,) = old.add("I like tea", user_id="u")["results"]
        said = iter(["I like cake", "I like jam"])

        def write(*_: Any) -> None:
            if text := next(said, None):
                old.add(text, user_id="u")
            else:
                old.update(tea["id"], "I like green tea")

        driver = MemoryDriver(new, mode)
        with pytest.raises(StoreError, match=r"nothing was replaced.*rebuild again"):
            driver.rebuild(on_progress=write)
        assert "I like cake" in result_texts(old.search("cake", user_id="u")), "the old vectors still serve"
        rounds = iter([True])
        assert driver.rebuild(on_progress=lambda *_: next(rounds, False) and old.add("I like figs", user_id="u")) == 4
        assert result_texts(driver.search("figs", user_id="u", limit=1)) == ["I like figs"]
        assert result_texts(driver.search("green tea", user_id="u", limit=1)) == ["I like green tea"]


def test_deleting_by_query_after_a_search_reads_no_relations(memory: MemoryDriver) -> None:
    memory.add("I like tea.", user_id="u")
    memory.search("What do I like?", user_id="u")
    assert len(memory.delete_by_query("tea", user_id="u", dry_run=True)["results"]) == 1


def test_work_on_something_at_a_place_is_no_other_employer(memory: MemoryDriver) -> None:
    memory.add("I work at Galp.", user_id="u", timestamp="2025-01-01")
    memory.add("I work on my novel at Starbucks every Sunday.", user_id="u", timestamp="2025-02-01")
    assert memory.answer("Where do I work?", user_id="u")["answer"] == "Galp"


def test_version_one_returns_bare_lists(tmp_path: Path) -> None:
    with open_memory(tmp_path, config={"version": "v1.0"}) as memory:
        with pytest.warns(DeprecationWarning, match=r"v1\.1") as warned:
            assert result_events({"results": memory.add("tea", user_id="u")}) == [("ADD", "tea")]
        assert warned[0].filename == __file__, "Python shows a deprecation only where it is attributed to the caller"
        with pytest.warns(DeprecationWarning, match="bare list"):
            assert isinstance(memory.search("tea", user_id="u"), list)
        with pytest.warns(DeprecationWarning, match="bare list"):
            assert isinstance(memory.get_all(user_id="u"), list)
        for client in (memory.aadd, AsyncMemory(memory=memory).add):
            with pytest.warns(DeprecationWarning, match="bare list") as warned:
                assert isinstance(asyncio.run(_await_call(client)), list)
            assert warned[0].filename == __file__


async def _await_call(add: Callable[..., Awaitable[Any]]) -> Any:
    return await add("tea", user_id="u")


def test_async_memory_has_the_same_verbs(tmp_path: Path, truth: dict[str, Any]) -> None:
    async def main() -> None:
        async with AsyncMemory({"path": str(tmp_path), **truth}, embedder=HashEmbedder()) as memory:
            (entry,) = (await memory.add("I like tea", user_id="u"))["results"]
            assert result_texts(await memory.search("tea", user_id="u")) == ["I like tea"]
            await memory.update(entry["id"], "I like green tea")
            assert len(await memory.history(entry["id"])) == 2
            await memory.delete(entry["id"])
            assert (await memory.get(entry["id"])) is None

    asyncio.run(main())
    shared = open_memory(tmp_path / "shared")
    assert AsyncMemory(memory=shared).memory is shared
    with pytest.raises(ConfigError):
        AsyncMemory({"path": str(tmp_path)}, memory=shared)
    shared.close()


@pytest.mark.parametrize(
    "verb", ["add", "search", "get", "get_all", "update", "delete", "delete_all", "history", "reset", "rebuild"]
)
def test_every_verb_is_documented_in_all_its_forms(verb: str) -> None:
    forms = (getattr(Memory, verb), getattr(Memory, f"a{verb}"), getattr(AsyncMemory, verb))
    assert [form.__name__ for form in forms] == [verb, f"a{verb}", verb]
    assert all(form.__doc__ for form in forms)
    assert len({str(inspect.signature(form)) for form in forms}) == 1
    assert [inspect.iscoroutinefunction(form) for form in forms] == [False, True, True]


def test_on_step_sees_what_happens(tmp_path: Path) -> None:
    seen: list[StepRecord] = []
    with open_memory(tmp_path, on_step=seen.append) as memory:
        memory.search("tea", user_id="u")
        seen.clear()
        memory.add("tea, again", user_id="u")
    assert [record.call.name for record in seen] == [
        "SqlChangeFeed.latest_time",
        "SqlStore.find_by_fact_keys",
        "HashEmbedder.embed",
        "SqlStore.commit",
    ]


def test_a_question_that_names_a_speaker_finds_what_they_said(memory: MemoryDriver) -> None:
    memory.add(
        [
            {"role": "user", "name": "Ann", "content": "I bought a kayak."},
            {"role": "user", "name": "Ben", "content": "I bought a canoe."},
        ],
        user_id="u",
    )
    assert result_texts(memory.search("What has Ben bought?", user_id="u", limit=1)) == ["I bought a canoe."]
    found = memory.get_all(user_id="u")["results"][1]
    memory.update(found["id"], "I sold a raft.")
    assert result_texts(memory.search("What has Ben got?", user_id="u", limit=1)) == ["I sold a raft."]
    assert memory.rebuild() == 2
    assert result_texts(memory.search("What has Ben got?", user_id="u", limit=1)) == ["I sold a raft."]


def test_deleting_a_memory_takes_along_every_message_that_said_it(memory: MemoryDriver) -> None:
    """Also one that came later, and added nothing to what was known."""
    (entry,) = memory.add("The code is Xq77", user_id="u")["results"]
    memory.add([{"role": "user", "content": text} for text in ("the code is Xq77!", "I ski")], user_id="u")
    memory.delete(entry["id"])
    assert [message.content for message in memory.memory._store.message_log.messages(_scope("u"))] == ["I ski"]


def test_a_memory_deleted_while_the_model_thought_is_not_brought_back(memory: MemoryDriver) -> None:
    known = memory.add("Likes tea", user_id="u")["results"][0]["id"]

    def model(task: str, messages: Any) -> Any:
        if task == "facts":
            return {"facts": ["Likes tea"]}
        memory.memory.delete(known)
        return {"memory": [{"id": "0", "text": "Likes tea", "event": "NONE"}]}

    memory.memory._chat = ScriptedChat(model)
    memory.add("I like tea", user_id="u")
    assert memory.get_all(user_id="u")["results"] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like C", "I like C++"),
        ("I like C", "I like C#"),
        ("It is -5 degrees", "It is 5 degrees"),
        ("It costs $5", "It costs €5"),
        ("I feel 😀", "I feel 😢"),
        ("From 🇫🇷", "From 🇩🇪"),
        ("Version 1.5", "Version 15"),
        ("Use .5 mg", "Use 5 mg"),
        ("10% off", "10 off"),
        ("a > b", "a < b"),
        ("Mood :-)", "Mood :-("),
        ("मेरी माता", "मेरी मीत"),
        ("ปู", "ปี"),
        ("m²", "m2"),
        ("re-sign", "resign"),
    ],
)
def test_different_facts_stay_different(memory: MemoryDriver, one: str, other: str) -> None:
    assert [result_events(memory.add(text, user_id="u")) for text in (one, other)] == [[("ADD", one)], [("ADD", other)]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea.", "i LIKE  tea"),
        ("“Don’t worry”, she said", "Don't worry, she said!"),
        ("Tea (green)", "tea green"),
        ("Tea ... and cake", "tea and cake"),
        ("¿Qué tal?", "qué tal"),
        ("Cafe\u0301", "café"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_case_spacing_and_punctuation_make_no_difference(memory: MemoryDriver, one: str, other: str) -> None:
    assert [result_events(memory.add(text, user_id="u")) for text in (one, other)] == [[("ADD", one)], [("NONE", one)]]


def test_what_expired_can_be_remembered_again(memory: MemoryDriver) -> None:
    memory.add("On a diet", user_id="u", expiration_date="2020-01-01")
    assert result_texts(memory.get_all(user_id="u")) == []
    assert result_events(memory.add("on a diet!", user_id="u")) == [("UPDATE", "On a diet")]
    assert result_texts(memory.search("diet", user_id="u")) == ["On a diet"]


def test_an_agents_conversation_neither_sees_nor_changes_a_users_memory(memory: MemoryDriver) -> None:
    secret = memory.add("Has a diagnosis", user_id="alice", agent_id="bot")["results"][0]["id"]
    chat = script(memory, {"facts": ["Has a new version"]}, *added("Has a new version")[1:])
    memory.add("I have a new version", agent_id="bot")
    assert "diagnosis" not in json.dumps([list(call.messages) for call in chat.calls])
    assert memory.get(secret)["memory"] == "Has a diagnosis"


def test_a_message_the_model_found_nothing_new_in_goes_with_the_memory_it_repeats(memory: MemoryDriver) -> None:
    (entry,) = memory.add("Name is John", user_id="u")["results"]
    script(memory, {"facts": ["Name is John"]}, {"memory": [{"id": "0", "text": "Name is John", "event": "NONE"}]})
    memory.add("As I said, my name is John", user_id="u")
    memory.delete(entry["id"], purge=True)
    assert memory.memory._store.message_log.messages(_scope("u")) == []


@on_a_file
def test_deleted_text_does_not_wait_in_the_log(memory: MemoryDriver, tmp_path: Path) -> None:
    script(memory, *added("Loves pizza"))
    memory.add("my card is 4111-SECRETX and I love pizza", user_id="u")
    memory.delete_all(user_id="u")
    assert b"SECRETX" not in _bytes(tmp_path)


def test_facts_are_of_the_time_of_the_last_message(memory: MemoryDriver) -> None:
    chat = script(memory, *added("Meets Tom on 2019-05-06"))
    memory.add([{"role": "user", "content": "I meet Tom tomorrow", "timestamp": "2019-05-05"}], user_id="u")
    assert "2019-05-05" in chat.calls[0].messages[0]["content"]
    assert memory.get_all(user_id="u")["results"][0]["created_at"] == "2019-05-05T00:00:00+00:00"


def test_memories_are_listed_and_filtered_by_when_they_were_made(memory: MemoryDriver) -> None:
    for year, offset in ((2030, "Z"), (1938, "+09:00"), (1960, "-05:00")):
        memory.add(f"in {year}", user_id="u", timestamp=f"{year}-01-01T05:00:00{offset}")
    assert result_texts(memory.get_all(user_id="u")) == ["in 1938", "in 1960", "in 2030"]
    assert result_texts(memory.get_all(user_id="u", limit=1)) == ["in 1938"]
    assert result_texts(memory.get_all(user_id="u", filters={"created_at": "1938-01-01T05:00:00+09:00"})) == ["in 1938"]
    assert result_texts(memory.get_all(user_id="u", filters={"created_at": {"lt": "1938-01-01"}})) == ["in 1938"]


@pytest.mark.parametrize("threshold", ["x", 5, -0.1, True])
@on_a_file
def test_a_threshold_is_a_score(memory: MemoryDriver, threshold: Any) -> None:
    with pytest.raises(InputError, match="threshold"):
        memory.search("tea", user_id="u", threshold=threshold)


@pytest.mark.parametrize("metadata", [{"s": "a\0b"}, {"n": 2**63}, {"deep": [{"n": -(2**70)}]}], ids=repr)
@on_a_file
def test_metadata_no_database_takes_is_refused(memory: MemoryDriver, metadata: Any) -> None:
    with pytest.raises(InputError, match="metadata"):
        memory.add("x", user_id="u", metadata=metadata)


def test_the_first_call_leaves_the_event_loop_free_and_asks_no_idle_embedder(
    tmp_path: Path, truth: dict[str, Any]
) -> None:
    class Shy(HashEmbedder):
        @property
        def dims(self) -> int:
            raise AssertionError("nobody needs to know")

    with open_memory(tmp_path, config=truth) as memory:
        memory.add("tea, again", user_id="u")
    with open_memory(tmp_path, embedder=Shy(), config=truth) as memory:
        assert result_events(asyncio.run(memory.aadd("TEA, again!", user_id="u"))) == [("NONE", "tea, again")]


def test_help_shows_what_a_verb_returns() -> None:
    assert inspect.signature(Memory.add).return_annotation == "AddResult"
    assert inspect.signature(AsyncMemory.get).return_annotation == "MemoryDict | None"
    assert Memory.asearch.__qualname__ == "Memory.asearch"


def test_importing_the_package_brings_no_heavy_library() -> None:
    heavy = "{'numpy', 'faiss', 'lark', 'rank_bm25', 'Stemmer', 'sqlite3', 'onnxruntime', 'torch', 'openai', 'neo4j'}"
    code = f"import sys, mem0_core; found = {heavy} & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
