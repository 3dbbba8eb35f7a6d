"""Results of stores that are installed here: ours passes everything it declares."""

from __future__ import annotations

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


def test_mem0_core_passes_all_it_declares() -> None:
    assert run("mem0-core", SUITES - LONG) == {}


@pytest.mark.slow
def test_mem0_core_passes_the_long_suites() -> None:
    assert run("mem0-core", LONG) == {}


def test_the_store_of_langgraph_in_memory_is_known() -> None:
    pytest.importorskip("langgraph.store.memory")
    suites = {"isolation", "reads", "idempotence", "updates", "erasure", "filters", "paging", "names", "unicode"}
    assert set(run("langgraph-memory", suites)) <= KNOWN_IN_MEMORY
