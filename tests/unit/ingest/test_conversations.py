"""Context of an agent, policy, and expiration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError, LimitError, NotFoundError, Scope
from tests.graph_model import GraphModel, fact_replies
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts

Open = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    mode: Mode = request.param
    made: list[MemoryDriver] = []

    def begin(**options: Any) -> MemoryDriver:
        made.append(MemoryDriver(open_memory(tmp_path, **options), mode))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


# --- context -------------------------------------------------------------------------------------------------------


def test_an_agent_sees_what_it_should(opened: Open) -> None:
    """Summary, memories, relations and the last messages, and one text for the system prompt."""
    memory = opened(config={"summary_every": 2, "background": {"backoff": 0.01}}, llm=GraphModel(), graph="sqlite")
    memory.add([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}], user_id="u")
    memory.flush(timeout=20)
    rules = opened(graph="sqlite", config={"graph_store": {"triplet_threshold": 0.1}})
    rules.add("I live in Porto.", user_id="u", timestamp="2025-07-28")
    rules.add("Where do I live, you ask?", user_id="u", timestamp="2025-07-29")
    seen = rules.context("Where do I live?", user_id="u", filters={"none": "such"})
    assert seen["summary"] == "They talked."
    assert seen["memories"] == []
    assert [relation["destination"] for relation in seen["relations"]] == ["Porto"]
    assert [message["content"] for message in seen["messages"]][:3] == ["Hello", "Hi!", "I live in Porto."]
    lines = seen["text"].splitlines()
    assert (lines[0], lines[-1]) == ("<memories>", "</memories>")
    assert [json.loads(line) for line in lines[2:-1]] == [
        {"summary": "They talked."},
        {"relation": "u lives in Porto", "since": "2025-07-28"},
    ]
    (whole,) = [hit for hit in rules.context("Where do I live?", user_id="u")["memories"] if "Porto" in hit["memory"]]
    assert whole["memory"] == "I live in Porto."
    assert rules.context("Where do I live?", user_id="u")["relations"] == [], "that memory says it already"


def test_the_question_may_be_the_conversation_so_far(opened: Open) -> None:
    memory = opened()
    memory.add("I keep bees.", user_id="u")
    asked = [
        {"role": "user", "content": "What do I keep, bees?"},
        {"role": "assistant", "content": "Let me think."},
    ]
    seen = memory.context(asked, user_id="u", recent=0)
    assert [hit["memory"] for hit in seen["memories"]] == ["I keep bees."]
    assert seen["messages"] == []


@pytest.mark.parametrize("max_tokens", [1, 150, 300, 1000])
def test_the_budget_is_kept(opened: Open, max_tokens: int) -> None:
    memory = opened(graph=False)
    for number in range(30):
        memory.add(f"Fact number {number} about bees and honey.", user_id="u", infer=False)
    seen = memory.context("bees and honey", user_id="u", max_tokens=max_tokens, limit=30)
    assert seen["tokens"] <= max_tokens
    if max_tokens >= 300:
        assert seen["memories"]
        assert seen["messages"][-1]["content"] == "Fact number 29 about bees and honey."
    if max_tokens == 1:
        assert seen["text"] == ""


def test_with_nothing_known_there_is_nothing_to_show(opened: Open) -> None:
    seen = opened().context("bees", user_id="u")
    assert seen == {"text": "", "summary": "", "memories": [], "relations": [], "messages": [], "tokens": 0}


def test_what_is_pinned_is_always_seen(opened: Open) -> None:
    memory = opened(graph=False)
    (entry,) = memory.add("Allergic to nuts", user_id="u")["results"]
    for number in range(30):
        memory.add(f"Fact {number} about bees", user_id="u")
    memory.pin(entry["id"])
    seen = memory.context("bees", user_id="u", limit=3)
    assert seen["memories"][0]["memory"] == "Allergic to nuts"
    assert memory.get(entry["id"])["pinned"] is True
    assert [hit["memory"] for hit in memory.context(user_id="u")["memories"]] == ["Allergic to nuts"]
    assert memory.context(user_id="v")["memories"] == []
    memory.pin(entry["id"], False)
    assert memory.context(user_id="u")["memories"] == []
    with pytest.raises(NotFoundError):
        memory.pin("nope")


def test_a_budget_must_be_one(opened: Open) -> None:
    with pytest.raises(InputError, match="max_tokens"):
        opened().context("x", user_id="u", max_tokens=0)


# --- what was recalled is not learnt again -------------------------------------------------------------------------


def test_what_was_put_into_a_prompt_is_not_learnt_as_new(opened: Open) -> None:
    """mem0's worst case on record: 668 copies of one hallucination, recalled and learnt again."""
    memory = opened(graph=False)
    memory.add("I keep bees.", user_id="u")
    for _ in range(3):
        block = memory.context("bees", user_id="u", recent=0)["text"]
        memory.add(f"{block}\nWhat do I keep?", user_id="u")
        result = memory.add([{"role": "assistant", "content": block}], user_id="u")
        assert result["results"] == []
        assert "recalled" in result["skipped"][0]["reason"]
    assert sorted(result_texts(memory.get_all(user_id="u"))) == ["I keep bees.", "What do I keep?"]
    kept = [message.content for message in memory.memory._store.message_log.messages(Scope("u"))]
    assert [text for text in kept if "<memories>" in text] == []


# --- the caller's say ----------------------------------------------------------------------------------------------


def no_secrets(text: str, scope: Scope) -> str | None:
    """Refuses what is secret, and blacks numbers out."""
    if "secret" in text:
        return None
    return "".join("*" if character.isdigit() else character for character in text)


def test_a_policy_redacts_and_refuses_messages(opened: Open, tmp_path: Path) -> None:
    memory = opened(policy=no_secrets, graph=False)
    said = [{"role": "user", "content": "My PIN is 4711."}, {"role": "user", "content": "This is secret 4711."}]
    result = memory.add(said, user_id="u")
    assert result_texts(memory.get_all(user_id="u")) == ["My PIN is ****."]
    assert "policy" in result["skipped"][0]["reason"]
    assert result_texts(memory.search("My PIN is ****.", user_id="u", limit=1)) == ["My PIN is ****."]
    memory.memory.close()
    assert [file for file in tmp_path.rglob("*") if file.is_file() and b"4711" in file.read_bytes()] == []


def test_a_policy_has_the_last_say_on_what_a_model_writes(opened: Open) -> None:
    model = GraphModel(fact_replies("PIN is 4711", "Has a secret", "Likes tea"))
    memory = opened(policy=no_secrets, llm=model)
    result = memory.add("Hello", user_id="u")
    assert sorted(result_events(result)) == [("ADD", "Likes tea"), ("ADD", "PIN is ****")]
    assert [entry["item"] for entry in result["skipped"]] == ["Has a secret"]


def test_a_policy_is_asked_for_updates_and_what_is_put_off_too(opened: Open) -> None:
    memory = opened(policy=no_secrets, graph=False)
    memory.add("My PIN is 4711.", user_id="u", background=True)
    assert memory.flush(timeout=20)
    (entry,) = memory.get_all(user_id="u")["results"]
    assert entry["memory"] == "My PIN is ****."
    memory.update(entry["id"], "My PIN is 1234.")
    assert memory.get(entry["id"])["memory"] == "My PIN is ****."
    with pytest.raises(InputError, match="policy"):
        memory.update(entry["id"], "a secret")


def test_a_policy_that_gives_no_text_is_told(opened: Open) -> None:
    with pytest.raises(InputError, match="policy"):
        opened(policy=lambda text, scope: 7).add("x", user_id="u")


# --- limits --------------------------------------------------------------------------------------------------------


def test_limits_name_themselves(opened: Open) -> None:
    memory = opened(config={"limits": {"message_chars": 10, "messages": 2, "adds_per_minute": 3}})
    with pytest.raises(LimitError, match=r"limits\.message_chars: messages\[1\] has 11, 10 allowed"):
        memory.add([{"role": "user", "content": "short"}, {"role": "user", "content": "x" * 11}], user_id="u")
    with pytest.raises(LimitError, match=r"limits\.messages"):
        memory.add([{"role": "user", "content": "x"}] * 3, user_id="u")
    for number in range(3):
        memory.add(f"number {number}", user_id="u")
    with pytest.raises(LimitError, match=r"limits\.adds_per_minute: user_id='u' may add again in \d+ s"):
        memory.add("number 3", user_id="u")
    memory.add("number 0", user_id="v")
    assert len(result_texts(memory.get_all(user_id="u"))) == 3


# --- how long ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [timedelta(days=2), 2 * 86_400])
def test_a_memory_may_be_given_a_time_to_live(opened: Open, ttl: Any) -> None:
    memory = opened()
    memory.add("x", user_id="u", ttl=ttl)
    (entry,) = memory.get_all(user_id="u")["results"]
    assert entry["expiration_date"] == (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    with pytest.raises(InputError, match="exclude each other"):
        memory.add("x", user_id="u", ttl=ttl, expiration_date="2030-01-01")
    with pytest.raises(InputError, match="ttl"):
        memory.add("x", user_id="u", ttl=0)


def test_age_may_count(opened: Open) -> None:
    """Recent memories replace old ones, except pinned ones."""
    now = datetime.now(UTC)
    memory = opened(config={"half_life": 30}, graph=False)
    old = memory.add("bees and honey", user_id="u", timestamp=now - timedelta(days=90))["results"][0]["id"]
    memory.add("bees and wax and honey", user_id="u", timestamp=now)
    found = memory.search("bees and honey", user_id="u")["results"]
    assert [hit["memory"] for hit in found] == ["bees and wax and honey", "bees and honey"]
    memory.pin(old)
    assert memory.search("bees and honey", user_id="u", limit=1)["results"][0]["id"] == old
    ageless = opened(graph=False).search("bees and honey", user_id="u")["results"]
    assert ageless[0]["id"] == old
    assert found[1]["score"] == pytest.approx(ageless[0]["score"] / 8, abs=0.01)  # three half-lives
