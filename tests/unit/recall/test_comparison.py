"""Comparison of hits by a listwise reranker: which searches it serves, and what it may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core.errors import ModelError, ReplyError
from mem0_core.interfaces import Candidate
from tests.support import MODES, MemoryDriver, result_texts

OLD, NEW = "I drive a Ranger, the grey one", "Ranger failed its test, my mate found me an Isuzu"


class Recorder:
    """A listwise reranker that prefers the newest message, and keeps what it read."""

    def __init__(self) -> None:
        self.lists: list[Sequence[Candidate]] = []
        self.scored = 0

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.scored += 1
        return [0.5] * len(texts)

    def compare(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        self.lists.append(candidates)
        days = sorted(one.day for one in candidates)
        return [(1 + days.index(one.day)) / 1000 for one in candidates]


@pytest.fixture
def reranker() -> Recorder:
    return Recorder()


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, reranker: Recorder) -> Iterator[MemoryDriver]:
    with Memory({"path": tmp_path}, reranker=reranker) as opened:
        yield MemoryDriver(opened, request.param)


def add_messages(memory: MemoryDriver, *texts: str, **options: str) -> None:
    for month, text in enumerate(texts, 1):
        memory.add(text, user_id="u", timestamp=f"2024-{month:02}-10T12:00:00", **options)


def test_messages_come_in_the_order_of_the_comparison_and_scores_stay_in_their_places(
    memory: MemoryDriver, reranker: Recorder
) -> None:
    add_messages(memory, OLD, NEW, "my sister has a Ranger too")
    found = memory.search("what do I drive?", user_id="u", reference_date="2024-12-10")["results"]
    assert [hit["memory"] for hit in found] == ["my sister has a Ranger too", NEW, OLD]
    scores = [hit["score"] for hit in found]
    assert scores == sorted(scores, reverse=True)
    (candidates,) = reranker.lists
    assert reranker.scored == 0
    by_text = {one.text: one for one in candidates}
    assert by_text[OLD].day == "2024-01-10"
    assert by_text[OLD].days_ago == 335
    assert by_text[OLD].role == "user"
    assert max(one.score for one in candidates) == scores[0]


def test_ten_hits_are_compared_however_few_are_wanted(memory: MemoryDriver, reranker: Recorder) -> None:
    add_messages(memory, *(f"my car number {number} is red" for number in range(1, 13)))
    found = memory.search("which car do I have?", user_id="u", limit=1)
    assert len(reranker.lists[0]) == 10
    assert len(found["results"]) == 1


def test_rerank_false_skips_it_and_rerank_true_reads_the_texts_too(memory: MemoryDriver, reranker: Recorder) -> None:
    add_messages(memory, OLD, NEW)
    memory.search("what do I drive?", user_id="u", rerank=False)
    assert (len(reranker.lists), reranker.scored) == (0, 0)
    memory.search("what do I drive?", user_id="u", rerank=True)
    assert (len(reranker.lists), reranker.scored) == (1, 1)


def test_words_of_named_speakers_and_long_texts_are_not_compared(memory: MemoryDriver, reranker: Recorder) -> None:
    for month, name in enumerate(("Ana", "Ben", "Ana"), 1):
        said = [{"role": "user", "name": name, "content": f"I drive a red car since month {month}"}]
        memory.add(said, user_id="u", timestamp=f"2024-{month:02}-10T12:00:00")
    memory.search("what does Ana drive?", user_id="u")
    long = [f"I drive car {number}. " + "The road went on and on through the hills. " * 12 for number in range(3)]
    for text in long:
        memory.add(text, user_id="v")
    memory.search("what do I drive?", user_id="v")
    assert (len(reranker.lists), reranker.scored) == (0, 2)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ([0.5], "1 probabilities for 2 candidates"),
        ([0.5, float("nan")], "at most one"),
        ([0.9, 0.9], "at most one"),
        ([-0.1, 0.5], "at most one"),
        (None, "no list of probabilities"),
        (["much", "little"], "no list of probabilities"),
    ],
)
def test_an_unusable_reply_is_an_error_and_nothing_is_lost(
    memory: MemoryDriver, reranker: Recorder, monkeypatch: pytest.MonkeyPatch, reply: object, said: str
) -> None:
    add_messages(memory, OLD, NEW)
    monkeypatch.setattr(reranker, "compare", lambda query, candidates: reply)
    with pytest.raises(ModelError, match=said):
        memory.search("what do I drive?", user_id="u")
    assert sorted(result_texts(memory.get_all(user_id="u"))) == sorted([OLD, NEW])


def test_a_reply_that_cannot_be_read_leaves_the_order_and_a_note(
    memory: MemoryDriver, reranker: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_messages(memory, "the bins go out on Tuesday", "we had soup")

    def fail(query: str, candidates: Sequence[Candidate]) -> list[float]:
        raise ReplyError("no numbers in it")

    monkeypatch.setattr(reranker, "compare", fail)
    found = memory.search("which day do the bins go out?", user_id="u")
    assert found["results"][0]["memory"] == "the bins go out on Tuesday"
    assert "no numbers in it" in found["note"]


def test_a_statement_that_answers_gives_way_only_to_the_end_of_its_value(memory: MemoryDriver) -> None:
    home, pet = "I moved to Bath in March.", "We adopted a cat called Mimi."
    add_messages(memory, "I live in Porto.", home, pet, "the dog of the neighbour ate my shoes")
    assert result_texts(memory.search("Where do I live?", user_id="u"))[0] == home
    answer = memory.answer("Where do I live?", user_id="u")
    assert (answer["answer"], answer["values"]) == ("Bath", ["Bath"])
    assert memory.answer("What pets do I have?", user_id="u")["values"] == ["Mimi"]


def test_a_recipe_without_a_reranker_compares_nothing(memory: MemoryDriver, reranker: Recorder) -> None:
    add_messages(memory, OLD, NEW)
    memory.search("what do I drive?", user_id="u", recipe="mem0")
    memory.search("what do I drive?", user_id="u", recipe={"name": "hybrid", "rerank_weight": 0.0})
    assert not reranker.lists


def test_a_low_score_gets_no_place_above_the_threshold(memory: MemoryDriver, reranker: Recorder) -> None:
    add_messages(memory, OLD, "my sister has a Ranger too", "we had soup")
    found = memory.search("what do I drive?", user_id="u", threshold=0.3, limit=1)["results"]
    assert found[0]["memory"] != "we had soup"
    assert all(one.score >= 0.3 for one in reranker.lists[0])
