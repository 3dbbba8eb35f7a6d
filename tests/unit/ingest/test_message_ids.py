"""Ids of messages: a replayed or shared message is learned once, and repeated words with other ids are kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError, Memory
from tests.support import open_memory


def said(id: Any, content: str = "I like tea.", role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content, "id": id}


def log_of(memory: Memory, **ids: str) -> list[str]:
    assert memory.flush(timeout=20)
    scope: Any = ids or {"user_id": "u"}
    return [str(message["content"]) for message in memory.context(None, **scope, recent=100)["messages"]]


def add(memory: Memory, messages: Any, mode: str, **options: Any) -> Any:
    options = {"user_id": "u", "background": mode.startswith("background"), **options}
    if mode.endswith("async"):
        return asyncio.run(memory.aadd(messages, **options))
    return memory.add(messages, **options)


MODES = ("sync", "async", "background sync", "background async")


@pytest.mark.parametrize("mode", MODES)
def test_a_replayed_turn_asks_no_model_and_adds_nothing(tmp_path: Path, mode: str) -> None:
    tasks: list[str] = []

    def script(task: str, messages: Any) -> Any:
        tasks.append(task)
        return {"facts": ["Likes tea"]} if task == "facts" else {"memory": []}

    with open_memory(tmp_path, script) as memory:
        turn = [said("1"), said("2", "Noted.", "assistant")]
        for _ in range(3):
            result = add(memory, turn, mode)
            assert memory.flush(timeout=20)
        assert (result["results"], result["skipped"], "job_id" in result) == ([], [], False)
        assert tasks == ["facts"]
        assert log_of(memory) == ["I like tea.", "Noted."]


@pytest.mark.parametrize("mode", MODES)
def test_of_a_regenerated_answer_only_the_answer_is_new(tmp_path: Path, mode: str) -> None:
    inputs: list[str] = []

    def script(task: str, messages: Any) -> Any:
        inputs.append(messages[-1]["content"].partition("Input:")[2])
        return {"facts": []}

    with open_memory(tmp_path, script) as memory:
        add(memory, [said("1"), said("2", "Noted.", "assistant")], mode)
        assert memory.flush(timeout=20)
        add(memory, [said("1"), said("3", "I see.", "assistant")], mode)
        assert log_of(memory) == ["I like tea.", "Noted.", "I see."]
        assert "I like tea." in inputs[0]
        assert "I like tea." not in inputs[1]


@pytest.mark.parametrize("mode", MODES)
def test_identical_words_with_other_ids_are_other_messages(tmp_path: Path, mode: str) -> None:
    with open_memory(tmp_path) as memory:
        for turn in range(3):
            add(memory, [said(f"u{turn}", "yes"), said(f"a{turn}", "ok", "assistant")], mode, keep="statements")
        assert log_of(memory) == ["yes", "ok"] * 3


def test_an_edited_message_and_another_scope_are_new(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add(said("1"), user_id="u")
        memory.add(said("1", "I like coffee."), user_id="u")
        memory.add(said("1"), user_id="v")
        assert log_of(memory) == ["I like tea.", "I like coffee."]
        assert log_of(memory, user_id="v") == ["I like tea."]


def test_a_deleted_message_can_be_added_again(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add(said("1"), user_id="u")
        memory.delete_all(user_id="u")
        assert memory.add(said("1"), user_id="u")["results"]
        assert log_of(memory) == ["I like tea."]


def test_agents_that_share_a_message_at_once_learn_it_once(tmp_path: Path) -> None:
    heard: list[str] = []

    def script(task: str, messages: Any) -> Any:
        heard.append(messages[-1]["content"].partition("Input:")[2])
        return {"facts": []}

    with open_memory(tmp_path, script) as memory, ThreadPoolExecutor(8) as pool:
        turns = [[said("1"), said(f"a{n}", f"Answer {n}.", "assistant")] for n in range(8)]
        list(pool.map(lambda turn: memory.add(turn, user_id="u", background=True), turns))
        assert sorted(log_of(memory)) == [*(f"Answer {n}." for n in range(8)), "I like tea."]
        assert "\n".join(heard).count("I like tea.") == 1


@pytest.mark.parametrize("given", [None, ""])
def test_no_id_is_no_identity(tmp_path: Path, given: Any) -> None:
    with open_memory(tmp_path) as memory:
        assert memory.add(said(given), user_id="u")["results"][0]["event"] == "ADD"
        assert memory.add(said(given), user_id="u")["unchanged"]
        memory.add(said(7, "Seven."), user_id="u")
        memory.add(said("7", "Seven."), user_id="u")
        assert log_of(memory) == ["I like tea.", "Seven."]


def test_an_id_of_another_type_is_refused(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(InputError, match=r"messages\[0\].*id"):
        memory.add(said(["x"]), user_id="u")
