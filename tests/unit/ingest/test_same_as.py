"""Names that may mean the same: candidates of `merge`, merged and reverted by hand, and answered under every name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.cli._output import format_merge_plan
from mem0_core.providers.onnx import OnnxEmbedder


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture
def memory(tmp_path: Path, embedder: OnnxEmbedder) -> Iterator[Memory]:
    with Memory({"path": str(tmp_path)}, embedder=embedder) as opened:
        yield opened


def add(memory: Memory, *texts: str) -> None:
    for text in texts:
        memory.add(text, user_id="u")


def candidates(memory: Memory, **options: Any) -> set[frozenset[str]]:
    return {frozenset(one["names"]) for one in memory.merge("entities", user_id="u", **options)["same_as"]}


def test_an_uncertain_pair_is_a_candidate_with_its_score_and_reason(memory: Memory) -> None:
    add(memory, "Robert Smith lives in Rome.", "Bob likes tea.", "Sofia Petrova likes jazz.", "Sofia plays tennis.")
    result = memory.merge(user_id="u")
    pairs = {frozenset(one["names"]): one for one in result["same_as"]}
    assert result["merges"] == []
    pair = pairs[frozenset({"Sofia", "Sofia Petrova"})]
    assert 0.7 <= pair["score"] < 0.8
    assert "part of" in pair["reason"]
    assert pair["user_id"] == "u"
    assert any(str(line).startswith("maybe one: Sofia") for line in format_merge_plan(result))


def test_names_that_contain_one_another_are_no_candidates(memory: Memory) -> None:
    add(memory, "I live in York.", "Tom lives in New York.", "I like pizza.", "I dislike pineapple pizza.")
    add(memory, "Anna works at Stanford Hospital.", "Ben studies at Stanford.", "Kim plays football.")
    assert not candidates(memory) & {
        frozenset(pair)
        for pair in (("York", "New York"), ("pizza", "pineapple pizza"), ("Stanford", "Stanford Hospital"))
    }


def test_what_contradicts_speaks_against_a_candidate(memory: Memory) -> None:
    add(memory, "Sofia Petrova lives in Rome.", "Sofia lives in Oslo.", "Bob Smith was born in Rome.")
    add(memory, "Robert Smith was born in Oslo.")
    result = memory.merge("entities", user_id="u")
    assert (result["merges"], result["same_as"]) == ([], [])
    reasons = {frozenset(one["names"]): one["reason"] for one in result["apart"]}
    assert "Rome" in reasons[frozenset({"Bob Smith", "Robert Smith"})]


def test_a_candidate_is_merged_by_name_and_reverted(memory: Memory) -> None:
    add(memory, "Sofia Petrova lives in Rome.", "Sofia plays tennis.")
    before = memory.relations(user_id="u")
    (pair,) = memory.merge("entities", user_id="u")["same_as"]
    (merge,) = memory.merge(user_id="u", names=pair["names"], into="Sofia Petrova", dry_run=False)["merges"]
    assert {one["source"] for one in memory.relations(user_id="u")} == {"Sofia Petrova"}
    assert candidates(memory) == set()
    assert merge["id"] is not None
    memory.unmerge(merge["id"])
    assert memory.relations(user_id="u") == before
    assert candidates(memory) == {frozenset(pair["names"])}


def test_a_threshold_decides_what_is_a_candidate(memory: Memory) -> None:
    add(memory, "Anna Meyer lives in Rome.", "Anna likes tea.")
    assert candidates(memory) == {frozenset({"Anna", "Anna Meyer"})}
    assert candidates(memory, threshold=0.7) == set()


# --- every verb under every name ---------------------------------------------------------------------------------


@pytest.fixture
def merged(memory: Memory) -> Memory:
    add(memory, "Robert Smith lives in Rome.", "Bobby works at Zeta.", "Bobby's sister is Carla.")
    memory.merge(user_id="u", names=["Bobby", "Robert Smith"], into="Robert Smith", dry_run=False)
    return memory


@pytest.mark.parametrize("name", ["Bobby", "bobby", "Robert Smith", "robert smith", "'bobby'"])
def test_traverse_answers_under_every_name(merged: Memory, name: str) -> None:
    for question, end in ((f"{name}'s home", "Rome"), (f"{name}'s sister", "Carla")):
        assert [(one["start"], one["end"]) for one in merged.traverse(question, user_id="u")] == [("Robert Smith", end)]


@pytest.mark.parametrize("name", ["Bobby", "Robert Smith"])
def test_query_answers_under_every_name(merged: Memory, name: str) -> None:
    for pattern in (f'(p {{name: "{name}"}})-[:lives_in]->(x)', f'(p)-[:lives_in]->(x) WHERE p.name = "{name}"'):
        found = merged.query(f"MATCH {pattern} RETURN p.name, x.name", user_id="u")
        assert found["rows"] == [{"p.name": "Robert Smith", "x.name": "Rome"}]


@pytest.mark.parametrize("name", ["Bobby", "Robert Smith"])
def test_search_and_context_answer_under_every_name(merged: Memory, name: str) -> None:
    question = f"Where does {name} live?"
    found = merged.search(question, user_id="u")
    assert "Rome" in {one["destination"] for one in found["relations"]}
    assert "Robert Smith lives in Rome." in [hit["memory"] for hit in found["results"]]
    assert "Robert Smith lives in Rome." in merged.context(question, user_id="u")["text"]


def test_a_drawing_and_a_past_day_answer_under_every_name(merged: Memory, tmp_path: Path) -> None:
    page = merged.visualize(tmp_path / "graph.html", user_id="u", entities=["Bobby"])
    assert "Rome" in Path(page).read_text(encoding="utf-8")
    now = merged.relations(user_id="u")[0]["valid_from"]
    paths = merged.traverse("Bobby's home", user_id="u", as_of=now)
    assert [one["end"] for one in paths] == ["Rome"]


def test_later_facts_under_a_merged_name_belong_to_the_present_one(merged: Memory) -> None:
    add(merged, "Bobby likes jazz.", "Bobby moved to Oslo.")
    held = {(one["source"], one["relationship"], one["destination"]) for one in merged.relations(user_id="u")}
    assert ("Robert Smith", "likes", "jazz") in held
    assert {(source, end) for source, label, end in held if label == "lives_in"} == {("Robert Smith", "Oslo")}
