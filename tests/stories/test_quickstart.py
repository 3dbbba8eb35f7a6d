"""The quickstart answers each of its questions with what its conversation says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples import quickstart
from mem0_core import Memory


def test_every_answer_of_the_quickstart_is_right(tmp_path: Path) -> None:
    conversation = json.loads(quickstart.CONVERSATION.read_text(encoding="utf-8"))
    wrong = []
    with Memory({"path": str(tmp_path)}) as memory:
        quickstart.ingest(memory, conversation)
        for question in conversation["questions"]:
            found = memory.answer(question["ask"], user_id=conversation["user_id"])
            if question["expect"] not in (found["answer"] or ""):
                wrong.append((question["ask"], found["answer"]))
    assert wrong == []


def test_the_quickstart_replaces_what_changed_and_adds_nothing_that_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.reconcile()
    later = capsys.readouterr().out.partition("2025-07-28  Maya")[2].partition("history of")[0]
    assert [line.split()[0] for line in later.splitlines()[1:] if line.strip()] == ["UPDATE", "DELETE", "ADD"]
