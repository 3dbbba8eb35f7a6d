"""Every fact of a reply is stored, settled or left in the queue, whatever the model answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory, ReplyError, Scope
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.contracts.test_minimal import DictStore
from tests.support import MODES, MemoryDriver, open_memory, result_events, result_texts

Open = Callable[..., MemoryDriver]
BABBLE = ["", "I cannot help with that.", "<think>Hm", '{"answer": 1}', '{"facts": null}', "[1]"]


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[Open]:
    made: list[MemoryDriver] = []

    def begin(replies: dict[str, Any], *known: str, **config: Any) -> MemoryDriver:
        memory = open_memory(tmp_path / str(len(made)), config={**truth, **config}, llm=model(replies))
        for text in known:
            memory.add(text, user_id="u", infer=False)
        made.append(MemoryDriver(memory, request.param))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


def model(replies: dict[str, Any]) -> ScriptedChat:
    """A model with one reply per task; the repair repeats the last one."""
    last: list[Any] = [None]

    def answer(task: str, messages: Any) -> Any:
        last[0] = replies[task] if task in replies else last[0]
        return last[0]

    return ScriptedChat(answer)


def tasks(memory: MemoryDriver) -> list[str]:
    chat: Any = memory.memory._chat
    return [call.task for call in chat.calls]


def change_model(memory: MemoryDriver, replies: dict[str, Any]) -> None:
    memory.memory._chat = model(replies)


def stored(memory: MemoryDriver) -> list[str]:
    return sorted(result_texts(memory.get_all(user_id="u")))


# --- one fact at a time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operations",
    [
        {"memory": []},
        {"memory": ["Likes milk", "Has a dog"]},
        {"memory": [{"id": "0", "text": "Likes milk", "event": "MERGE"}]},
        {"memory": [{"id": "7", "text": "Likes milk and has a dog", "event": "UPDATE"}]},
        {"memory": [{"id": "0", "text": "Likes tea", "event": "NONE", "facts": []}]},
        {"tool_calls": [{"name": "forget", "arguments": {"facts": [0, 1]}}]},
    ],
)
def test_facts_without_a_usable_operation_are_added_unchanged(opened: Open, operations: Any) -> None:
    memory = opened({"facts": {"facts": ["Likes milk", "Has a dog"]}, "operations": operations}, "Likes tea")
    result = memory.add("Milk! And my dog.", user_id="u")
    assert stored(memory) == ["Has a dog", "Likes milk", "Likes tea"]
    assert [entry["item"] for entry in result["skipped"] if "added unchanged" in entry["reason"]] == [
        "Likes milk",
        "Has a dog",
    ]
    assert memory.pending() == []


@pytest.mark.parametrize("form", ["json", "tools"])
def test_only_facts_that_nothing_settles_are_added(opened: Open, form: str) -> None:
    facts = ["Moved to Porto", "Said hello", "Has a dog", "Likes tea"]
    decided: list[tuple[str, str, dict[str, Any]]] = [
        ("UPDATE", "update_memory", {"id": "0", "text": "Lives in Porto", "facts": [0]}),
        ("NONE", "noop", {"facts": ["1"]}),
    ]
    listed = {"memory": [{"event": event, **fields} for event, _, fields in decided]}
    called = {"tool_calls": [{"name": name, "arguments": fields} for _, name, fields in decided]}
    operations = listed if form == "json" else called
    memory = opened(
        {"facts": {"facts": facts}, "operations": operations}, "Lives in Rome", operations=form, neighbours=1
    )
    result = memory.add("Hello! I moved to Porto with my dog. I like tea.", user_id="u")
    assert result_events(result) == [("UPDATE", "Lives in Porto"), ("ADD", "Has a dog"), ("ADD", "Likes tea")]
    assert len(result["skipped"]) == 2


def test_a_fused_reply_is_accounted_for_too(opened: Open) -> None:
    fused = {
        "facts": [None, {"fact": "Likes milk", "messages": [0]}, "Has a dog", "Lives in Porto"],
        "memory": [{"id": "0", "text": "Loves tea and milk", "event": "UPDATE", "facts": [1]}, {"event": "ADD"}],
        "entities": [],
        "relations": [],
        "outdated": [],
        "refined": [],
    }
    memory = opened({"fused": fused}, "Loves tea", extraction="fused")
    result = memory.add("Milk! And my dog, in Porto.", user_id="u")
    assert stored(memory) == ["Has a dog", "Lives in Porto", "Loves tea and milk"]
    assert "null instead of a fact" in result["skipped"][0]["reason"]


def test_numbers_of_a_repaired_fused_reply_mean_its_own_facts(opened: Open) -> None:
    lists: dict[str, Any] = {"entities": [], "relations": [], "outdated": [], "refined": []}
    first = {"facts": ["Likes milk", 7], "memory": [], **lists}
    known = {"id": "0", "text": "Loves tea", "event": "NONE", "facts": [1]}
    again = {"facts": ["Has a dog", "Likes milk"], "memory": [known], **lists}
    memory = opened({"fused": first, "repair": again}, "Loves tea", extraction="fused")
    memory.add("Milk! And my dog.", user_id="u")
    assert stored(memory) == ["Has a dog", "Loves tea"]


def test_texts_that_memories_exchange_are_not_lost(opened: Open) -> None:
    swapped = [
        {"id": str(number), "text": text, "event": "UPDATE"} for number, text in enumerate(["Likes tea", "Likes milk"])
    ]

    def answer(task: str, messages: Any) -> Any:
        if task != "operations":
            return {"facts": ["Likes tea", "Likes milk"]}
        shown = [memory["text"] for memory in json.loads(messages[-1]["content"])["memories"]]
        return {
            "memory": [swapped[0], swapped[1]]
            if shown[0] == "Likes milk"
            else [{**swapped[0], "text": "Likes milk"}, {**swapped[1], "text": "Likes tea"}]
        }

    memory = opened({}, "Likes milk", "Likes tea")
    memory.memory._chat = ScriptedChat(answer)
    memory.add("Tea and milk!", user_id="u")
    assert stored(memory) == ["Likes milk", "Likes tea"]


def test_a_text_that_replaces_another_ones_old_text_is_kept(opened: Open) -> None:
    def answer(task: str, messages: Any) -> Any:
        if task != "operations":
            return {"facts": ["Likes tea", "Likes cocoa"]}
        ids = {memory["text"]: memory["id"] for memory in json.loads(messages[-1]["content"])["memories"]}
        return {
            "memory": [
                {"id": "new", "text": "Likes tea", "event": "ADD"},
                {"id": ids["Likes tea"], "text": "Likes cocoa", "event": "UPDATE"},
            ]
        }

    memory = opened({}, "Likes tea")
    memory.memory._chat = ScriptedChat(answer)
    memory.add("Tea and cocoa!", user_id="u")
    assert stored(memory) == ["Likes cocoa", "Likes tea"]


# --- limits ------------------------------------------------------------------------------------------------------


def test_one_reply_deletes_no_more_than_allowed(opened: Open) -> None:
    known = [f"Likes tea number {number}" for number in range(8)]
    operations = {"memory": [{"id": str(number), "event": "DELETE"} for number in range(8)]}
    memory = opened({"facts": {"facts": ["Hates everything"]}, "operations": operations}, *known, max_deletions=2)
    result = memory.add("I hate everything.", user_id="u")
    assert len(stored(memory)) == 8 - 2 + 1
    assert "6 deletions refused; max_deletions allows 2" in result["skipped"][0]["reason"]


def test_a_reply_with_too_many_facts_is_unusable(opened: Open) -> None:
    memory = opened({"facts": {"facts": [f"Fact {number}" for number in range(3_000)]}})
    result = memory.add("Hello.", user_id="u")
    assert stored(memory) == []
    assert "3000 facts in one reply; max_changes allows 200" in result["skipped"][0]["reason"]
    assert [job["id"] for job in memory.pending(user_id="u")] == [result["job_id"]]


# --- unusable replies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["facts", "operations", "fused"])
@pytest.mark.parametrize("babble", BABBLE)
def test_messages_of_an_unusable_reply_wait_for_a_retry(opened: Open, task: str, babble: str) -> None:
    lists: dict[str, Any] = {"entities": [], "relations": [], "outdated": [], "refined": []}
    good = {
        "facts": {"facts": ["Likes milk"]},
        "operations": {"memory": [{"text": "Likes milk", "event": "ADD", "facts": [0]}]},
        "fused": {"facts": ["Likes milk"], "memory": [{"text": "Likes milk", "event": "ADD"}], **lists},
    }
    memory = opened({**good, task: babble}, "Likes tea", extraction="fused" if task == "fused" else "staged")
    result = memory.add("Milk!", user_id="u", metadata={"turn": 7}, timestamp="2025-03-08")
    if task == "operations" and babble == "[1]":  # a list, of which each item is unusable: the fact is added
        assert stored(memory) == ["Likes milk", "Likes tea"]
        return
    assert stored(memory) == ["Likes tea"]
    assert result["results"] == []
    (note,) = result["skipped"]
    assert note["reason"].startswith(f"{task}: ")
    assert f"failed job {result['job_id']}" in note["reason"]
    (job,) = memory.pending(user_id="u")
    assert (job["id"], job["state"], job["attempts"]) == (result["job_id"], "failed", 1)
    assert "could not be used" in job["error"]
    assert "Milk!" in result_texts(memory.search("Milk!", user_id="u")), "searches see the message meanwhile"
    change_model(memory, good)
    memory.retry(result["job_id"])
    assert memory.flush(timeout=20)
    assert memory.pending() == []
    (learned,) = [entry for entry in memory.get_all(user_id="u")["results"] if entry["memory"] == "Likes milk"]
    assert learned["metadata"] == {"turn": 7}
    assert learned["created_at"].startswith("2025-03-08")
    assert [each.content for each in memory.memory._store.message_log.messages(Scope("u"))] == ["Likes tea", "Milk!"]


@pytest.mark.parametrize("empty", [{"facts": []}, {"facts": ["None"]}, {"facts": [""]}, {"facts": [None]}, "[]"])
def test_a_reply_that_means_nothing_is_no_failure(opened: Open, empty: Any) -> None:
    memory = opened({"facts": empty})
    assert memory.add("Hi.", user_id="u")["results"] == []
    assert memory.pending() == []


def test_a_reply_that_is_readable_in_part_is_no_failure(opened: Open) -> None:
    memory = opened({"facts": '{"facts": ["Likes milk", "Has a do'})
    result = memory.add("Milk! And my dog.", user_id="u")
    assert stored(memory) == ["Likes milk"]
    assert result["skipped"]
    assert memory.pending() == []


def test_a_dry_run_only_reports_an_unusable_reply(opened: Open) -> None:
    memory = opened({"facts": "Hm."})
    result = memory.add("Milk!", user_id="u", dry_run=True)
    assert "nothing is planned" in result["skipped"][0]["reason"]
    assert "job_id" not in result
    assert memory.pending() == []
    assert memory.memory._store.message_log.messages(Scope("u")) == []


def test_an_error_instead_of_a_job_if_asked_for(opened: Open) -> None:
    memory = opened({"facts": "Hm."}, on_bad_reply="raise")
    with pytest.raises(ReplyError, match="no JSON"):
        memory.add("Milk!", user_id="u")
    assert memory.pending() == []


@pytest.mark.parametrize("choice", ["skip", "raise"])
def test_a_background_job_of_an_unusable_reply_fails_after_two_tries(opened: Open, choice: str) -> None:
    memory = opened({"facts": "Hm."}, on_bad_reply=choice, background={"backoff": 0.01})
    memory.add("Milk!", user_id="u", background=True)
    assert memory.flush(timeout=20)
    (job,) = memory.pending(user_id="u")
    assert (job["state"], job["attempts"]) == ("failed", 2)
    change_model(memory, {"facts": {"facts": ["Likes milk"]}})
    memory.retry(job["id"])
    assert memory.flush(timeout=20)
    assert stored(memory) == ["Likes milk"]


def test_one_bad_turn_of_an_import_leaves_the_others_alone(opened: Open) -> None:
    def answer(task: str, messages: Any) -> Any:
        spoken = [line.partition(": ")[2] for line in messages[1]["content"].rpartition("Input:\n")[2].splitlines()]
        if task in ("facts", "repair"):
            return "Hm." if "poison" in spoken else {"facts": spoken}
        facts = json.loads(messages[-1]["content"])["facts"]
        return {"memory": [{"text": fact, "event": "ADD"} for fact in facts]}

    memory = opened({}, background={"backoff": 0.01}, window=0)
    memory.memory._chat = ScriptedChat(answer)
    memory.add_many(["Likes tea", "poison", "Likes milk"], user_id="u", infer=True)
    assert memory.flush(timeout=20)
    assert stored(memory) == ["Likes milk", "Likes tea"]
    (job,) = memory.pending(user_id="u")
    assert job["state"] == "failed"


# --- calls and sources -------------------------------------------------------------------------------------------


def test_the_second_call_is_made_only_where_memories_are_near(opened: Open) -> None:
    memory = opened({"facts": {"facts": ["Likes tea"]}, "operations": {"memory": []}})
    memory.add("Tea!", user_id="u")
    assert tasks(memory) == ["facts"]
    memory.add("Tea!", user_id="v")
    assert tasks(memory) == ["facts"] * 2
    memory.add("Tea again!", user_id="u")
    assert tasks(memory)[2:] == ["facts", "operations", "repair"]


def test_a_custom_update_prompt_decides_on_the_first_facts_too(opened: Open) -> None:
    replies = {"facts": {"facts": ["Likes tea"]}, "operations": {"memory": [{"event": "NONE", "facts": [0]}]}}
    memory = opened(replies, custom_update_memory_prompt="Keep nothing about drinks.")
    memory.add("Tea!", user_id="u")
    assert tasks(memory) == ["facts", "operations"]
    assert stored(memory) == []


def test_deleting_a_memory_deletes_only_its_own_messages(opened: Open) -> None:
    facts = [{"fact": "Likes tea", "messages": [0]}, {"fact": "Has a dog", "messages": [1]}, "Lives in Porto"]
    memory = opened({"facts": {"facts": facts}})
    said = ["I like tea.", "There is a dog, too.", "My home is Porto."]
    memory.add([{"role": "user", "content": text} for text in said], user_id="u")
    ids = {entry["memory"]: entry["id"] for entry in memory.get_all(user_id="u")["results"]}
    for deleted, left in (("Likes tea", said[1:]), ("Lives in Porto", said[1:2]), ("Has a dog", [])):
        memory.delete(ids[deleted])
        assert [each.content for each in memory.memory._store.message_log.messages(Scope("u"))] == left


def test_messages_are_named_only_where_there_are_several(opened: Open) -> None:
    memory = opened({"facts": {"facts": []}})
    memory.add("Tea!", user_id="u")
    memory.add([{"role": "user", "content": "Tea!"}, {"role": "assistant", "content": "Milk?"}], user_id="u")
    chat: Any = memory.memory._chat
    asked = ['"messages": [0]' in call.messages[0]["content"] for call in chat.calls]
    assert asked == [False, True]
    assert [call.schema.__name__ for call in chat.calls] == ["FactsReply", "SourcedFactsReply"]


def test_a_store_without_a_queue_raises_the_error(tmp_path: Path) -> None:
    chat = model({"facts": "Hm."})

    with (
        Memory({"path": str(tmp_path)}, llm=chat, store=DictStore(), embedder=HashEmbedder()) as memory,
        pytest.raises(ReplyError, match="could not be used"),
    ):
        memory.add("Milk!", user_id="u")
