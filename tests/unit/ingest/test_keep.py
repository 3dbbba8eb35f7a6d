"""`keep="statements"`: without a model, questions and greetings stay in the conversation and become no memories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError
from tests.support import MODES, MemoryDriver, Mode, open_memory

TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Hello! How can I help you today?"},
    {"role": "user", "content": "do you know a good way to remove coffee stains from linen?"},
    {"role": "assistant", "content": "Soak the linen in cold water with a spoon of vinegar. Anything else?"},
    {"role": "user", "content": "thanks, that helped a lot! I moved to Oslo, by the way."},
    {"role": "assistant", "content": "ok"},
]
KEPT = [TURN[3]["content"], TURN[4]["content"]]


def stored_texts(memory: MemoryDriver, user: str = "maya") -> list[str]:
    return sorted(entry["memory"] for entry in memory.get_all(user_id=user)["results"])


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("background", [False, True])
def test_statements_become_memories_and_the_rest_stays_in_the_conversation(
    mode: Mode, background: bool, tmp_path: Path
) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add(TURN, user_id="maya", keep="statements", background=background)
        opened.flush()
        assert stored_texts(memory) == sorted(KEPT)
        recent = memory.context(None, user_id="maya", recent=10)["messages"]
        assert [message["content"] for message in recent] == [message["content"] for message in TURN]
        (home,) = [one for one in memory.relations(user_id="maya") if one["relationship"] == "lives_in"]
        assert home["destination"] == "Oslo"
        assert home["memories"]


def test_a_turn_without_a_statement_adds_nothing_and_is_no_error(mode: Mode, tmp_path: Path) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        added = memory.add("what does my sister do", user_id="maya", keep="statements")
        assert (added["results"], added["skipped"]) == ([], [])
        assert stored_texts(memory) == []
        assert len(memory.context(None, user_id="maya", recent=10)["messages"]) == 1


def test_every_message_is_kept_by_default_and_word_for_word(mode: Mode, tmp_path: Path) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add(TURN, user_id="maya")
        memory.add(TURN, user_id="eve", infer=False, keep="statements")
        assert stored_texts(memory) == stored_texts(memory, "eve") == sorted(one["content"] for one in TURN)


def test_a_model_decides_itself(mode: Mode, tmp_path: Path) -> None:
    script = ['{"facts": ["Has a sister"]}', '{"memory": [{"id": "0", "text": "Has a sister", "event": "ADD"}]}']
    with open_memory(tmp_path, script, graph=False) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("what does my sister do", user_id="maya", keep="statements")
        assert stored_texts(memory) == ["Has a sister"]


def test_an_unknown_value_is_refused(mode: Mode, tmp_path: Path) -> None:
    with open_memory(tmp_path) as opened, pytest.raises(InputError, match="accepted: all, statements"):
        MemoryDriver(opened, mode).add("I like tea.", user_id="maya", keep="facts")
