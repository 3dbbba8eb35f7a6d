"""The log of calls: one line each, with counts and milliseconds, and never a text or a user's id."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory, QueryError, ScopeError
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, open_memory

WORDS = ("zanzibar", "quokka", "verysecretuser", "hushhushagent", "hiddenrun", "mysterious", "saffron")


def call_everything(memory: MemoryDriver, folder: Path) -> None:
    """Call each method with words that the log must not have."""
    ids = {"user_id": "verysecretuser", "agent_id": "hushhushagent"}
    added = memory.add("My sister Zanzibar lives in Quokka.", **ids, metadata={"mysterious": "saffron"})
    first = added["results"][0]["id"]
    memory.add_many([{"role": "user", "content": "I like saffron."}], **ids)
    memory.search("Who is Zanzibar?", **ids, filters={"mysterious": "saffron"})
    memory.context("Who is Zanzibar?", **ids)
    memory.answer("Where does Zanzibar live?", **ids)
    memory.explain_missing("Who is Zanzibar?", first, **ids)
    memory.get(first)
    memory.get("zanzibar")
    memory.get_all(**ids)
    memory.history(first)
    memory.pin(first)
    memory.relations(**ids)
    memory.traverse("Zanzibar's home", **ids)
    memory.query("MATCH (a {name: 'Zanzibar'})-[mysterious]->(b)", **ids)
    memory.update(first, "My sister Quokka lives in Zanzibar.")
    memory.update_by_query("Quokka", "Saffron", **ids, dry_run=True)
    memory.delete_by_query("Quokka", **ids, dry_run=True)
    memory.merge(**ids)
    memory.merges(**ids)
    memory.stats(**ids)
    memory.export(folder / "zanzibar.jsonl")
    memory.pending(**ids)
    memory.flush()
    memory.doctor()
    memory.rebuild()
    memory.delete(first)
    memory.delete_all(**ids)
    memory.reset()
    with pytest.raises(ScopeError):
        memory.add("Zanzibar", run_id=["hiddenrun"])
    with pytest.raises(QueryError):
        memory.query("MATCH (zanzibar", **ids)


@pytest.mark.parametrize("mode", MODES)
def test_every_call_has_one_line_without_any_text(mode: Mode, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_memory(tmp_path / "data") as opened:
        memory = MemoryDriver(opened, mode)
        with caplog.at_level(logging.DEBUG, logger="mem0_core"):
            call_everything(memory, tmp_path)
    lines = [record.getMessage() for record in caplog.records if record.name == "mem0_core"]
    assert all(record.levelno == logging.INFO for record in caplog.records if record.name == "mem0_core")
    logged = caplog.text.casefold()
    assert [word for word in WORDS if word in logged] == []
    assert [line.split()[0] for line in lines] == [
        *(
            "add",
            "add_many",
            "search",
            "context",
            "answer",
            "explain_missing",
            "get",
            "get",
            "get_all",
            "history",
            "pin",
        ),
        *(
            "relations",
            "traverse",
            "query",
            "update",
            "update_by_query",
            "delete_by_query",
            "merge",
            "merges",
            "stats",
            "export",
            "pending",
        ),
        *("flush", "doctor", "rebuild", "delete", "delete_all", "reset", "add", "query"),
    ]
    assert all(re.search(r" ms=\d+\.\d$", line) for line in lines)
    assert re.match(r"add scope=user\+agent results=1 ADD=1 ", lines[0])
    assert re.match(r"search scope=user\+agent results=\d ", lines[2])
    assert all(line.split()[1] == "scope=user+agent" for line in lines[:6])
    assert re.match(r"get scope=all id=[0-9a-f-]{36} ms=", lines[6])
    assert re.match(r"get scope=all ms=", lines[7])
    assert "error=ScopeError" in lines[-2]
    assert "error=QueryError" in lines[-1]


def test_the_async_client_writes_the_same_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        async with AsyncMemory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
            await asyncio.gather(*(memory.add(f"I like tea {number}.", user_id="maya") for number in range(3)))

    with caplog.at_level(logging.INFO, logger="mem0_core"):
        asyncio.run(use())
    lines = [record.getMessage() for record in caplog.records if record.name == "mem0_core"]
    assert [line.split(" results")[0] for line in lines] == ["add scope=user"] * 3


def test_the_log_costs_nothing_when_it_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the log worked although it is off")

    for name in ("_log_call", "_write", "_describe_result"):
        monkeypatch.setattr(f"mem0_core.api._call_log.{name}", fail)
    logging.getLogger("mem0_core").setLevel(logging.WARNING)
    try:
        with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
            assert memory.add("I like tea.", user_id="maya")["results"]
    finally:
        logging.getLogger("mem0_core").setLevel(logging.NOTSET)


def test_steps_are_still_reported_while_calls_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    steps: list[str] = []
    with (
        caplog.at_level(logging.INFO, logger="mem0_core"),
        open_memory(tmp_path, on_step=lambda step: steps.append(step.call.name)) as memory,
    ):
        memory.add("I like tea.", user_id="maya")
    assert steps
    assert caplog.messages[-1].startswith("add scope=user")
