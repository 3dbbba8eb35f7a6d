"""`feedback` and `count_citations`: bounded, explained, withdrawn, exported, and 0 without marks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import CapabilityError, InputError, Memory, NotFoundError
from mem0_core.domain.recipes import HYBRID
from mem0_core.interchange import import_export
from tests.contracts.test_minimal import DictStore
from tests.support import MODES, MemoryDriver, Mode, open_memory

TEXTS = ("Anna, Ben and Carl like roses.", "Ben, Carl and Anna like roses.", "Carl, Anna and Ben like roses.")
"""The same words: no other signal tells them apart."""


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with open_memory(tmp_path) as opened:
        yield MemoryDriver(opened, request.param)


def add_texts(memory: Any) -> list[str]:
    return [memory.add(text, user_id="ana", infer=False)["results"][0]["id"] for text in TEXTS]


def rank(memory: Any, **options: Any) -> list[dict[str, Any]]:
    found = memory.search("Who likes roses?", user_id="ana", **options)["results"]
    return list(found)


def contribution(hit: dict[str, Any]) -> dict[str, float]:
    signal: dict[str, float] = hit["explanation"]["signals"]["feedback"]
    return signal


def test_feedback_orders_memories_that_match_alike(memory: MemoryDriver) -> None:
    ids = add_texts(memory)
    *_, last = [hit["id"] for hit in rank(memory)]
    for _ in range(3):
        memory.feedback(last, True, user_id="ana")
    assert rank(memory)[0]["id"] == last
    for _ in range(9):
        memory.feedback(last, False, user_id="ana")
    assert [hit["id"] for hit in rank(memory)][-1] == last
    assert set(ids) == {hit["id"] for hit in rank(memory)}


def test_the_contribution_is_explained_and_bounded_by_the_weight(memory: MemoryDriver) -> None:
    first, *_ = add_texts(memory)
    assert {contribution(hit)["contribution"] for hit in rank(memory, explain=True)} == {0.0}
    for count in (1, 2, 3):
        assert memory.feedback(first, True) == {"id": first, "useful": count, "useless": 0}
    hit = next(hit for hit in rank(memory, explain=True) if hit["id"] == first)
    assert contribution(hit) == {"value": 0.5, "weight": HYBRID.short.feedback, "contribution": 0.01}
    assert (hit["useful"], hit["useless"]) == (3, 0)
    memory.memory._store.mark([first], useful=10**6)
    (most,) = [contribution(hit)["contribution"] for hit in rank(memory, explain=True) if hit["id"] == first]
    assert 0.01 < most <= HYBRID.short.feedback


def test_withdrawn_feedback_leaves_no_trace_in_a_search(memory: MemoryDriver) -> None:
    first, second, _ = add_texts(memory)
    before = rank(memory, explain=True)
    memory.feedback(first, False)
    memory.count_citations("Ben [1].", {"1": second})
    assert rank(memory, explain=True) != before
    for marked in (first, second):
        assert memory.feedback(marked, None) == {"id": marked, "useful": 0, "useless": 0}
    assert rank(memory, explain=True) == before


def test_the_citations_of_an_answer_count_once_each_as_useful(memory: MemoryDriver) -> None:
    ids = add_texts(memory)
    context = memory.context("Who likes roses?", user_id="ana", citations=True)
    numbers = {memory_id: number for number, memory_id in context["citations"].items()}
    answer = f"Anna [{numbers[ids[0]]}] and Ben [{numbers[ids[2]]}], Anna [{numbers[ids[0]]}] first. See [99]."
    assert set(memory.count_citations(answer, context["citations"], user_id="ana")) == {ids[0], ids[2]}
    assert [memory.get(one).get("useful", 0) for one in ids] == [1, 0, 1]
    assert memory.count_citations(answer, context["citations"], user_id="ben") == []
    memory.delete(ids[0])
    assert memory.count_citations(answer, context["citations"], user_id="ana") == [ids[2]]


def test_feedback_on_an_unknown_memory_or_of_another_form_is_refused(memory: MemoryDriver) -> None:
    with pytest.raises(NotFoundError):
        memory.feedback("unknown", True)
    first, *_ = add_texts(memory)
    with pytest.raises(InputError, match="useful must be True, False, or None"):
        memory.feedback(first, "yes")
    with pytest.raises(InputError, match="citations must be ids by numbers"):
        memory.count_citations("[1]", {"one": first})


def test_an_export_carries_the_counts_to_another_store(tmp_path: Path) -> None:
    with open_memory(tmp_path / "one") as memory:
        first, second, _ = add_texts(memory)
        memory.feedback(first, True)
        memory.feedback(second, False)
        memory.export(tmp_path / "all.jsonl")
    with open_memory(tmp_path / "two") as other:
        import_export(other, tmp_path / "all.jsonl")
        import_export(other, tmp_path / "all.jsonl")  # adds nothing twice
        kept = {one["id"]: (one.get("useful"), one.get("useless")) for one in other.get_all(user_id="ana")["results"]}
        assert (kept[first], kept[second]) == ((1, 0), (0, 1))
        with pytest.raises(InputError, match="useful must be a whole number"):
            other.adopt([{"id": "x", "memory": "y", "created_at": "2024-01-01", "user_id": "ana", "useful": -1}])


@pytest.mark.parametrize("mode", MODES)
def test_a_store_without_the_capability_refuses_feedback_by_name(mode: Mode, tmp_path: Path) -> None:
    with Memory(store=DictStore()) as opened:
        memory = MemoryDriver(opened, mode)
        (added,) = memory.add("I live in Rome.", user_id="ana", infer=False)["results"]
        with pytest.raises(CapabilityError, match=r"feedback\(\)"):
            memory.feedback(added["id"], True)
        with pytest.raises(CapabilityError, match=r"feedback\(\)"):
            memory.count_citations("Rome [1].", {"1": added["id"]})
