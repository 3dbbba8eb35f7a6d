"""Results of stores that are installed here: ours passes everything it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory_conformance import load_checks, run_in_process

SUITES = {check.suite for check in load_checks().values()}
LONG = {"as_of", "concurrency", "cost", "erasure", "names", "paging", "ttl"}
"""Suites that add hundreds of memories, or wait for seconds."""

# Properties of LangGraph's store in memory, which docs/reference/conformance.md describes.
KNOWN_IN_MEMORY = {"reads.records_are_copies", "updates.an_update_keeps_the_time_of_creation"}


def run(spec: str, suites: set[str]) -> dict[str, str]:
    names = [check.name for check in load_checks().values() if check.suite in suites]
    return {result.check: result.detail for result in run_in_process(spec, names) if result.outcome == "fail"}


def open_history(folder: Path, owner: str) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder
    from mem0_langchain import Mem0ChatMessageHistory

    memory = Memory(path=folder, embedder=HashEmbedder())
    return Mem0ChatMessageHistory(memory, user_id="ana", run_id=owner, limit=10_000, infer=False, background=False)


def open_backend(folder: Path) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder
    from mem0_langchain.deepagents import Mem0Backend

    return Mem0Backend(Memory(path=folder, embedder=HashEmbedder()), user_id="ana")


def test_mem0_core_passes_all_it_declares() -> None:
    assert run("mem0-core", SUITES - LONG) == {}


@pytest.mark.slow
def test_mem0_core_passes_the_long_suites() -> None:
    assert run("mem0-core", LONG) == {}


def test_the_store_of_langgraph_in_memory_is_known() -> None:
    pytest.importorskip("langgraph.store.memory")
    suites = {"isolation", "reads", "idempotence", "updates", "erasure", "filters", "paging", "names", "unicode"}
    assert set(run("langgraph-memory", suites)) <= KNOWN_IN_MEMORY


@pytest.mark.parametrize("factory", [None, f"{__file__}:open_history"], ids=["in memory", "ours"])
def test_histories_of_langchain_pass(factory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if factory is not None:
        monkeypatch.setenv("MEMORY_CONFORMANCE_HISTORY", factory)
    assert run("langchain-history", {"isolation", "reads", "erasure", "interchange"}) == {}


@pytest.mark.parametrize("factory", [None, f"{__file__}:open_backend"], ids=["files", "ours"])
def test_backends_of_deepagents_pass(factory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deepagents")  # the session of this name has it
    if factory is not None:
        monkeypatch.setenv("MEMORY_CONFORMANCE_BACKEND", factory)
    assert run("deepagents", {"isolation", "reads", "updates", "erasure", "unicode"}) == {}
