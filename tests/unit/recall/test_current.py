"""Questions about the present, asked without a reranker of messages in which a change is mentioned in passing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from mem0_core import Memory
from mem0_core.language.parsed_query import parse_query
from mem0_core.testing import ScriptedChat
from tests.support import MODES, MemoryDriver, result_texts, run_python


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with Memory({"path": tmp_path, "reranker": False}) as opened:
        yield MemoryDriver(opened, request.param)


def tell(memory: MemoryDriver | Memory, *texts: str) -> None:
    for month, text in enumerate(texts, 1):
        memory.add(text, user_id="u", timestamp=f"2024-{month:02}-10T12:00:00")


def found(memory: MemoryDriver | Memory, query: str, limit: int = 10) -> list[str]:
    return result_texts(memory.search(query, user_id="u", reference_date="2024-12-01", limit=limit))


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("which pickup do I drive", "sold the Hilux, got a Ranger", "Ranger failed its test. We found an Isuzu"),
        ("who is my dentist?", "saw Dr Lind today, the dentist", "the new dentist, Dr Okafor, is lovely"),
        ("what's my phone plan?", "I took a phone plan from Orbit", "my phone plan is from Nimbus now, half the price"),
    ],
)
def test_a_later_message_on_the_same_thing_comes_first(memory: MemoryDriver, query: str, old: str, new: str) -> None:
    tell(memory, "We had soup.", old, new, "my brother complains about the weather")
    assert found(memory, query)[0] == new


def test_an_answer_gives_no_value_that_a_later_message_may_replace(memory: MemoryDriver) -> None:
    old, new = "sold the Hilux, got a Ford Ranger", "Ford Ranger failed its test. We found an Isuzu pickup instead"
    tell(memory, old, new, "We had soup.", "The dog barks.")
    answer = memory.answer("What pickup do I drive?", user_id="u", reference_date="2024-12-01")
    assert answer["values"] == []
    assert "may replace Ford Ranger" in answer["note"]
    assert [hit["memory"] for hit in answer["memories"]] == [new, old]


def test_the_change_of_another_person_does_not_count(memory: MemoryDriver) -> None:
    tell(memory, "my gym is Ironworks, by the canal", "my sister left her gym for Pulse")
    assert "Ironworks" in found(memory, "which gym do I go to?")[0]


@pytest.mark.parametrize(
    ("query", "lasting", "later"),
    [
        ("what is my blood type?", "my blood type is O negative", "gave blood for the first time, got a biscuit"),
        ("what's my locker code?", "the code of my locker is 4417", "my locker jammed, the janitor had to open it now"),
        ("what shoe size am I?", "my shoe size is 42", "bought new shoes, finally, red ones"),
        ("what is my passport number?", "my passport number is X1234567", "took my passport along, got the visa"),
    ],
)
def test_a_message_with_all_words_of_the_question_stays_first(
    memory: MemoryDriver, query: str, lasting: str, later: str
) -> None:
    tell(memory, lasting, "We had soup.", later, "The dog barks.")
    assert found(memory, query)[0] == lasting


@pytest.mark.parametrize(
    ("query", "stated", "later"),
    [
        ("What is my dog's name?", "My dog is called Rex.", "my dog got a new bed"),
        ("What is my wife's name?", "My wife is called Anna.", "I met my wife's friend Berta, finally"),
        ("What is my favourite colour?", "My favourite colour is green.", "painted my room, a new colour, blue now"),
        ("What is my dog's name?", "My dog is called Rex.", "Rex got a new bed"),
        ("Where do I live now?", "I live in Leeds.", "drove past my old flat in Leeds, it is painted now"),
        ("Where do I live now?", "I moved to Bergen.", "I was in Oslo for a week now, lovely to live there for a bit"),
    ],
)
def test_a_statement_that_answers_stays_first(memory: MemoryDriver, query: str, stated: str, later: str) -> None:
    tell(memory, stated, later, "We had soup.")
    assert found(memory, query)[0] == stated


@pytest.mark.parametrize(
    ("query", "value", "stated", "later"),
    [
        ("Where do I live?", "Bergen", "I live in Bergen.", "first snow in Bergen, we got the sledge out"),
        ("Where do I work?", "Acme", "I work at Acme.", "promoted at Acme, I got a bigger desk now"),
        ("What do I drive?", "Volvo", "I drive a Volvo.", "I got new tyres for the Volvo"),
        ("What phone do I have?", "Pixel", "My phone is a Pixel.", "dropped my Pixel, got the screen done"),
    ],
)
def test_news_of_a_value_leaves_it_the_answer(
    memory: MemoryDriver, query: str, value: str, stated: str, later: str
) -> None:
    tell(memory, stated, later)
    assert memory.answer(query, user_id="u")["values"] == [value]


def test_a_question_about_the_past_keeps_the_order(memory: MemoryDriver) -> None:
    said = ("I took a phone plan from Orbit", "switched my phone plan to Nimbus, half the price")
    tell(memory, *said)
    assert found(memory, "which phone plan did I have in January 2024?")[0] == said[0]


def test_scores_stay_sorted(memory: MemoryDriver) -> None:
    tell(memory, "I took a phone plan from Orbit", "switched my phone plan to Nimbus, half the price", "We had soup.")
    results = memory.search("what's my phone plan?", user_id="u")["results"]
    scores = [hit["score"] for hit in results]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_first_result_is_the_same_for_each_limit(memory: MemoryDriver, limit: int) -> None:
    tell(
        memory, "I took a phone plan from Orbit", "my phone is dead", "switched my phone plan to Nimbus, half the price"
    )
    assert "Nimbus" in found(memory, "what's my phone plan?", limit=limit)[0]


def test_messages_in_the_queue_are_ordered_too(memory: MemoryDriver) -> None:
    tell(memory, "I took a phone plan from Orbit")
    memory.add(
        "switched my phone plan to Nimbus, half the price",
        user_id="u",
        background=True,
        timestamp="2024-05-01T12:00:00",
    )
    assert "Nimbus" in found(memory, "what's my phone plan?")[0]


@pytest.mark.parametrize("search_cache", [True, False])
def test_messages_are_found_while_all_of_them_are_queued(tmp_path: Path, search_cache: bool) -> None:
    said = ("I took a phone plan from Orbit", "switched my phone plan to Nimbus, half the price")
    with Memory({"path": tmp_path, "reranker": False, "search_cache": search_cache}) as memory:
        with patch.object(memory._background, "start"):
            for month, text in enumerate(said, 1):
                memory.add(text, user_id="u", background=True, timestamp=f"2024-{month:02}-10T12:00:00")
        assert set(found(memory, "what's my phone plan?")) == set(said)


@pytest.mark.parametrize("search_cache", [True, False])
def test_the_order_does_not_depend_on_the_cache(tmp_path: Path, search_cache: bool) -> None:
    said = ("We had soup.", "I took a phone plan from Orbit", "my phone is dead", "switched my phone plan to Nimbus")
    with Memory({"path": tmp_path, "reranker": False, "search_cache": search_cache}) as memory:
        tell(memory, *said)
        assert found(memory, "what's my phone plan?")[0] == said[3]


def test_facts_of_a_model_keep_their_order(tmp_path: Path) -> None:
    facts = ["Has a phone plan of Orbit", "Has looked at Nimbus"]
    replies = [
        reply
        for number, fact in enumerate(facts)
        for reply in ({"facts": [fact]}, {"memory": [{"id": str(number), "text": fact, "event": "ADD"}]})
    ]
    with Memory({"path": tmp_path, "reranker": False}, llm=ScriptedChat(replies)) as memory:
        tell(memory, "Orbit it is.", "Nimbus is cheaper, perhaps.")
        assert found(memory, "what's my phone plan?")[0] == facts[0]


def test_messages_of_named_speakers_keep_their_order(memory: MemoryDriver) -> None:
    for month, text in enumerate(("I took a phone plan from Orbit", "switched to Nimbus, a new phone plan"), 1):
        message = {"role": "user", "name": "Ana", "content": text}
        memory.add([message], user_id="u", infer=False, timestamp=f"2024-{month:02}-10T12:00:00")
    assert "Orbit" in found(memory, "what's my phone plan of Orbit?")[0]


@pytest.mark.parametrize(
    ("query", "is_of_now"),
    [
        ("where do i live rn", True),
        ("Who is my dentist?", True),
        ("Which gym am I with at the moment?", True),
        ("Have I ever been to Oslo?", False),
        ("Where do you think I should work on my essay?", False),
        ("How many areas have I worked on?", False),
        ("Where did I live in 2021?", False),
        ("Which pets do I have?", False),
        ("What did you tell me about stains?", False),
        ("The plan is locked in.", False),
    ],
)
def test_questions_about_one_thing_that_holds_now(query: str, is_of_now: bool) -> None:
    assert parse_query(query).asks_of_now is is_of_now


def test_a_first_question_of_a_relation_compiles_no_patterns_of_utterances(tmp_path: Path) -> None:
    with Memory({"path": str(tmp_path)}, embedder="hash") as memory:
        memory.add("My sister Anna lives in Porto.", user_id="u")
    code = """
import sys
from mem0_core import Memory
with Memory(sys.argv[1], embedder="hash") as memory:
    assert memory.search("Where does Anna live?", user_id="u")["results"]
print("mem0_core.language._utterance_patterns" in sys.modules)
"""
    assert run_python(code, tmp_path) == "False\n"
