"""Search through the public API: sources, signals, comparable scores, and diagnoses of memories not found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mem0_core import ConfigError, InputError, Memory, QueryError
from mem0_core.domain.recipes import HYBRID, MEM0, RECIPES, Recipe, Weights
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, open_memory, result_texts

MAY = "2023-05-10T12:00:00"
JUNE = "2023-06-10T12:00:00"


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    with open_memory(tmp_path, config=truth) as opened:
        yield MemoryDriver(opened, request.param)


@pytest.fixture
def plain(tmp_path: Path, truth: dict[str, Any]) -> Iterator[Memory]:
    with open_memory(tmp_path, config=truth) as opened:
        yield opened


class Blind(HashEmbedder):
    """An embedder that gives every text the same vector, so that only other sources can find a memory."""

    def embed(self, texts: Sequence[str], *, kind: Any = "document") -> Any:
        return super().embed(["same"] * len(texts), kind=kind)


def fill(memory: Any, count: int, user: str = "u") -> None:
    """Add a number of unrelated memories."""
    memory.add_many([f"note {number} of {number * 7919 % 1009} things" for number in range(count)], user_id=user)


def add_turns(memory: Any, *turns: tuple[str, str], **options: Any) -> list[str]:
    """Add one conversation verbatim; return the ids of its turns."""
    messages = [{"role": "user", "name": name, "content": text} for name, text in turns]
    return [entry["id"] for entry in memory.add(messages, user_id="u", infer=False, **options)["results"]]


def signals(memory: Any, query: str, **options: Any) -> dict[str, dict[str, float]]:
    """The signals of each result, by its text."""
    found = memory.search(query, user_id="u", explain=True, **options)["results"]
    return {
        entry["memory"]: {name: signal["value"] for name, signal in entry["explanation"]["signals"].items()}
        for entry in found
    }


# --- sources ----------------------------------------------------------------------------------------------------------


def test_what_only_words_know_is_found(tmp_path: Path, truth: dict[str, Any]) -> None:
    """A rare word among hundreds of memories that all look alike to the embedder."""
    with open_memory(tmp_path, embedder=Blind(), config=truth) as memory:
        fill(memory, 300)
        memory.add("The wifi password is xyzzy", user_id="u", infer=False)
        fill(memory, 300, user="other")
        assert result_texts(memory.search("what was xyzzy", user_id="u", limit=1)) == ["The wifi password is xyzzy"]
        assert "The wifi password is xyzzy" not in result_texts(
            memory.search("xyzzy", user_id="u", limit=1, recipe="mem0")
        )


def test_what_only_the_graph_knows_is_found(tmp_path: Path, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        fill(memory, 100)
        memory.add("I work at Initech", user_id="u")
        recipe = Recipe("graph", Weights(graph=1.0), sources=("graph",))
        found = memory.search("Where do I work?", user_id="u", recipe=recipe)
        assert result_texts(found) == ["I work at Initech"]
        assert found["relations"]


@pytest.mark.parametrize("recipe", ["hybrid", "offline"])
def test_a_chain_of_relations_leads_to_what_is_asked(memory: MemoryDriver, recipe: str) -> None:
    """Neither Anna nor Rex is in the question: the graph knows the way."""
    memory.add("My sister is called Anna", user_id="u")
    memory.add("Anna has a dog named Rex", user_id="u")
    fill(memory, 50)
    found = signals(memory, "What is my sister's dog called?", recipe=recipe)
    assert found["Anna has a dog named Rex"]["path"] > 0.3
    assert all(one["path"] == 0 for text, one in found.items() if text.startswith("note"))


def test_a_source_that_a_recipe_does_not_name_brings_nothing(tmp_path: Path, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, graph=False, config=truth) as memory:
        fill(memory, 100)
        memory.add("tea with xyzzy", user_id="u", infer=False)
        lexical = Recipe("words", Weights(bm25=1.0), sources=("lexical",))
        assert result_texts(memory.search("xyzzy", user_id="u", recipe=lexical)) == ["tea with xyzzy"]
        assert memory.search("plugh", user_id="u", recipe=lexical)["results"] == []


def test_the_answer_beside_the_question_is_found_by_what_was_asked(tmp_path: Path, truth: dict[str, Any]) -> None:
    """The answer shares no word with the query; the turn before it does."""
    with open_memory(tmp_path, embedder=Blind(), graph=False, config=truth) as memory:
        add_turns(memory, ("Ann", "Which bicycle did you buy in the end?"), ("Bob", "A green one"))
        fill(memory, 200)
        found = memory.search("which bicycle was bought", user_id="u", limit=2)
        assert set(result_texts(found)) == {"Which bicycle did you buy in the end?", "A green one"}


def test_names_lead_from_one_page_to_the_next(tmp_path: Path, truth: dict[str, Any]) -> None:
    """A question of two hops: the second page shares a name with the first, and no word with the query."""
    page = "It is told here at some length, in many words and with all of the details that one may want to have. " * 4
    with open_memory(tmp_path, embedder=Blind(), graph=False, config=truth) as memory:
        for number in range(120):
            memory.add(f"{page} Nothing of note happened in the year {number}.", user_id="u", infer=False)
        first = f"{page} The Quarterly of Things is published by Initech Press."
        second = f"{page} The founder of Initech Press was a certain Milton."
        for text in (first, second):
            memory.add(text, user_id="u", infer=False)
        found = result_texts(memory.search("who publishes the Quarterly of Things", user_id="u", limit=2))
        assert found == [first, second]


# --- signals ----------------------------------------------------------------------------------------------------------


def test_who_said_it_counts_where_the_query_names_one(memory: MemoryDriver) -> None:
    add_turns(memory, ("Caroline", "I bought a red scarf"), ("Melanie", "I bought a blue scarf"))
    of = signals(memory, "What did Caroline buy?")
    assert [of[text]["speaker"] for text in ("I bought a red scarf", "I bought a blue scarf")] == [1.0, 0.0]
    assert result_texts(memory.search("what did melanie buy", user_id="u", limit=1)) == ["I bought a blue scarf"]
    both = signals(memory, "What did Caroline and Melanie buy?")
    assert all(one["speaker"] == 0.0 for one in both.values())


def test_the_name_of_a_speaker_is_not_what_a_query_is_about(memory: MemoryDriver) -> None:
    """All turns are of one of two people: their names say nothing of the matter, and vectors would think so."""
    asked: list[str] = []
    embed = memory.memory._embedder.embed

    def listening(some: Sequence[str], **options: Any) -> Any:
        asked.extend(some)
        return embed(some, **options)

    memory.memory._embedder.embed = listening  # type: ignore[method-assign,assignment]
    add_turns(memory, ("Caroline", "I bought a red scarf"))
    asked.clear()
    memory.search("What is Caroline's scarf like?", user_id="u")
    memory.search("Caroline", user_id="u")
    assert asked == ["What is scarf like?", "Caroline"]  # a query that is only a name stays


def test_what_users_say_counts_before_answers(memory: MemoryDriver) -> None:
    memory.add(
        [
            {"role": "user", "content": "My sprint ends on Friday"},
            {"role": "assistant", "content": "Sprint end: Friday"},
        ],
        user_id="u",
        infer=False,
    )
    of = signals(memory, "When does my sprint end?")
    assert [of[text]["role"] for text in ("My sprint ends on Friday", "Sprint end: Friday")] == [1.0, 0.0]


def test_a_question_for_advice_ranks_the_answer_above_the_question(memory: MemoryDriver) -> None:
    turns = [
        {"role": "user", "content": "My sleep is bad after nights on the ward, what can I do about my sleep?"},
        {"role": "assistant", "content": "Keep the bedroom dark and wear sunglasses on the way home."},
        {"role": "user", "content": "I sleep badly after late coffee."},
    ]
    memory.add(turns, user_id="u", infer=False)
    advice = memory.search("What did you suggest about my sleep after nights?", user_id="u")["results"]
    own = memory.search("What is bad about my sleep after nights?", user_id="u")["results"]
    assert advice[0]["memory"] == turns[1]["content"]
    assert own[0]["memory"] == turns[0]["content"]


def test_time_words_find_the_time(memory: MemoryDriver) -> None:
    memory.add("went hiking", user_id="u", infer=False, timestamp=MAY)
    memory.add("went hiking again", user_id="u", infer=False, timestamp=JUNE)
    may = signals(memory, "hiking in May 2023")
    assert may["went hiking"]["date"] > 0.5 > may["went hiking again"]["date"]
    assert result_texts(memory.search("hiking in May 2023", user_id="u", limit=1)) == ["went hiking"]
    month = signals(memory, "hiking last month", reference_date="2023-07-01")
    assert month["went hiking again"]["date"] > month["went hiking"]["date"]
    past = signals(memory, "hiking last month", as_of="2023-07-01")
    assert past == {text: pytest.approx(of_text) for text, of_text in month.items()}


def test_what_asks_tells_little(memory: MemoryDriver) -> None:
    add_turns(memory, ("Ann", "Do you like green tea?"), ("Bob", "Green tea is what I like"))
    of = signals(memory, "who likes green tea")
    assert [of[text]["question"] for text in ("Do you like green tea?", "Green tea is what I like")] == [1.0, 0.0]


def test_a_session_that_is_to_the_point_lifts_what_was_said_in_it(memory: MemoryDriver) -> None:
    add_turns(memory, ("Ann", "the tulip garden"), ("Ann", "tulip bulbs"), ("Ann", "the tulip show"))
    add_turns(memory, ("Ann", "a tulip"))
    of = signals(memory, "tulip")
    assert of["tulip bulbs"]["session"] > of["a tulip"]["session"]


# --- scores mean the same ---------------------------------------------------------------------------------------------


def scores(memory: Memory, query: str) -> dict[str, float]:
    return {entry["id"]: entry["score"] for entry in memory.search(query, user_id="u", limit=1000)["results"]}


def test_two_identical_queries_give_the_same(plain: Memory) -> None:
    fill(plain, 200)
    assert scores(plain, "note of 12 things") == scores(plain, "note of 12 things")
    assert list(scores(plain, "note of 12 things")) == list(scores(plain, "note of 12 things"))


def test_an_unrelated_memory_changes_no_other_score(plain: Memory) -> None:
    add_turns(plain, ("Ann", "We saw tulips in May"), ("Bob", "The tulips were red"))
    fill(plain, 60)
    query = "which tulips did Ann see in May"
    before = scores(plain, query)
    plain.add("Quarterly figures exceed expectations", user_id="u", infer=False)
    plain.add("tulips, tulips, tulips", user_id="somebody else", infer=False)
    after = scores(plain, query)
    assert {id: after[id] for id in before} == pytest.approx(before, abs=1e-6)
    assert [id for id in after if id in before] == list(before)


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_scores_lie_between_0_and_1_and_fall(memory: MemoryDriver, recipe: str) -> None:
    add_turns(memory, ("Ann", "My sister Eve works at Initech"), ("Bob", "Eve likes tulips"), timestamp=MAY)
    fill(memory, 30)
    found = memory.search("Where did Ann say Eve works in May 2023?", user_id="u", recipe=recipe)["results"]
    values = [entry["score"] for entry in found]
    assert found
    assert values == sorted(values, reverse=True)
    assert all(0 <= value <= 1 for value in values)


def test_a_score_is_made_of_what_the_explanation_says(memory: MemoryDriver) -> None:
    add_turns(memory, ("Ann", "We saw tulips in May"), ("Bob", "Where?"))
    fill(memory, 30)
    for recipe in (HYBRID, MEM0, RECIPES["offline"]):
        for entry in memory.search("tulips of Ann in May", user_id="u", explain=True, recipe=recipe)["results"]:
            explained = entry["explanation"]
            total = sum(signal["contribution"] for signal in explained["signals"].values())
            assert explained["score"] == entry["score"] == pytest.approx(max(0.0, recipe.score_scale(total)))
            for signal in explained["signals"].values():
                assert signal["contribution"] == signal["weight"] * signal["value"]
                assert 0 <= signal["value"] <= 1


def test_the_configuration_names_the_recipe(tmp_path: Path) -> None:
    with open_memory(tmp_path, config={"recipe": "mem0"}) as memory:
        memory.add("tea", user_id="u", infer=False)
        (found,) = memory.search("tea", user_id="u", explain=True)["results"]
        assert list(found["explanation"]["signals"]) == ["dense"]
        (found,) = memory.search("tea", user_id="u", explain=True, recipe={"name": "hybrid", "without": ["role"]})[
            "results"
        ]
        assert "bm25" in found["explanation"]["signals"]
        assert "role" not in found["explanation"]["signals"]
        with pytest.raises(ConfigError, match="hybird"):
            memory.search("tea", user_id="u", recipe="hybird")
    with pytest.raises(ConfigError, match="hybird"):
        open_memory(tmp_path, config={"recipe": "hybird"})


# --- queries of all kinds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("кто любит собак", "Анна очень любит собаку"),
        ("谁喜欢绿茶", "我喜欢喝绿茶"),
        ("من يحب القهوة", "أنا أحب القهوة كثيرا"),
        ('"dentist" NEAR( * - AND OR NOT ^ {', "The dentist called on Friday"),
        ("dentist'; DROP TABLE words; --", "The dentist called on Friday"),
        ("dentist " * 12_500, "The dentist called on Friday"),
        ("the dentist caled on fryday", "The dentist called on Friday"),
        ("DENTIST\0", "The dentist called on Friday"),
    ],
)
def test_any_query_finds_what_it_means(memory: MemoryDriver, query: str, expected: str) -> None:
    for text in ("Анна очень любит собаку", "我喜欢喝绿茶", "أنا أحب القهوة كثيرا", "The dentist called on Friday"):
        memory.add(text, user_id="u", infer=False)
    assert result_texts(memory.search(query, user_id="u", limit=1)) == [expected]


@pytest.mark.parametrize("query", ["", "   ", "\ud800", None])
def test_a_query_that_is_none_is_refused(memory: MemoryDriver, query: Any) -> None:
    with pytest.raises((QueryError, InputError)):
        memory.search(query, user_id="u")


@pytest.mark.parametrize("query", ["?", "the of and", "🍣", '- * " ( NEAR', "2023"])
def test_a_query_of_no_words_is_answered_all_the_same(memory: MemoryDriver, query: str) -> None:
    memory.add("tea", user_id="u", infer=False)
    assert result_texts(memory.search(query, user_id="u")) == ["tea"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(min_size=1, max_size=60))
def test_no_query_breaks_a_search(plain: Memory, query: str) -> None:
    plain.add("tea with Ann in May 2023", user_id="u", infer=False)
    try:
        assert len(plain.search(query, user_id="u")["results"]) == 1
    except QueryError:
        assert not query.strip()


# --- the gate, the threshold, diagnoses -----------------------------------------------------------------------


def test_where_nothing_is_good_enough_there_is_no_answer(memory: MemoryDriver) -> None:
    memory.add("The dentist called on Friday", user_id="u", infer=False)
    fill(memory, 20)
    nothing = memory.search("quantum chromodynamics", user_id="u", allow_no_answer=True)
    assert nothing["results"] == []
    assert "gate" in nothing["note"]
    some = memory.search("when did the dentist call", user_id="u", allow_no_answer=True)
    assert result_texts(some)[0] == "The dentist called on Friday"
    assert "note" not in some
    assert memory.search("quantum chromodynamics", user_id="u")["results"]
    high = memory.search("when did the dentist call", user_id="u", threshold=0.99)
    assert high["results"] == []
    assert "threshold" in high["note"]


def why(memory: Any, query: str, memory_id: str, **options: Any) -> Any:
    return memory.explain_missing(query, memory_id, **{"user_id": "u", **options})


def test_what_became_of_a_memory_is_told(memory: MemoryDriver) -> None:
    keep: Callable[..., str] = lambda text, **options: memory.add(  # noqa: E731
        text, **{"user_id": "u", "infer": False, **options}
    )["results"][0]["id"]
    dentist = keep("The dentist called on Friday", metadata={"kind": "call"})
    theirs = keep("The dentist called them", user_id="bob")
    old = keep("The dentist was here", expiration_date="2020-01-01")
    gone = keep("The dentist moved away")
    memory.delete(gone)
    fill(memory, 150)

    found = why(memory, "when did the dentist call", dentist)
    assert (found["reason"], found["rank"], found["ranks"]["lexical"], found["ranks"]["graph"]) == ("found", 1, 1, None)
    assert found["signals"]["bm25"]["value"] > 0

    query = "when did the dentist call"
    foreign = why(memory, query, theirs)
    assert foreign == {**why(memory, query, "nobody"), "id": foreign.get("id")}
    memory.delete(theirs)
    assert why(memory, query, theirs) == foreign
    assert why(memory, query, dentist, run_id="r")["reason"] == "other_scope"
    assert why(memory, query, old)["reason"] == "expired"
    assert why(memory, query, gone)["reason"] == "deleted"
    assert why(memory, query, "nobody")["reason"] == "unknown"
    assert why(memory, query, dentist, filters={"kind": "letter"})["reason"] == "filtered"
    assert why(memory, query, dentist, as_of="2020-01-01")["reason"] == "not_said_yet"
    assert why(memory, query, dentist, threshold=0.99)["reason"] == "below_threshold"
    assert why(memory, "quantum chromodynamics", dentist, allow_no_answer=True, limit=200)["reason"] == "no_answer"
    low = why(memory, "note 7 of 951 things", dentist, limit=1)
    assert low["reason"] in ("below_limit", "not_in_pool")
    assert low["ranks"]["dense"] > 1
    assert all(each["detail"] for each in (found, low))


def test_what_no_source_brings_is_not_in_the_pool(memory: MemoryDriver) -> None:
    fill(memory, 150)
    (entry,) = memory.add("completely else", user_id="u", infer=False)["results"]
    recipe = {"name": "mem0", "pool": 5}
    lost = why(memory, "note 7 of 951 things", entry["id"], recipe=recipe, limit=3)
    assert (lost["reason"], lost["score"]) == ("not_in_pool", None)
    assert lost["ranks"]["dense"] > 5


class Backwards:
    """A reranker that prefers the wrong memories."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [0.0 if "dentist" in text else 1.0 for text in texts]


def test_what_a_reranker_puts_aside_is_told(tmp_path: Path) -> None:
    with open_memory(tmp_path, reranker=Backwards(), config={"recipe": {"rerank_weight": 0.9}}) as memory:
        (entry,) = memory.add("The dentist called on Friday", user_id="u", infer=False)["results"]
        fill(memory, 20)
        query = "when did the dentist call"
        lost = why(memory, query, entry["id"], limit=3)
        assert lost["reason"] == "lost_at_rerank"
        (first,) = memory.search(query, user_id="u", explain=True, limit=1)["results"]
        assert first["memory"] != "The dentist called on Friday"
        assert first["explanation"]["before_rerank"] < first["score"]
        assert result_texts(memory.search(query, user_id="u", limit=1, rerank=False)) == [
            "The dentist called on Friday"
        ]


def test_a_search_is_one_pass_of_the_reranker(tmp_path: Path) -> None:
    asked: list[int] = []

    class Counting:
        def score(self, query: str, texts: Sequence[str]) -> list[float]:
            asked.append(len(texts))
            return [0.5] * len(texts)

    with open_memory(tmp_path, reranker=Counting()) as memory:
        fill(memory, 100)
        memory.search("note 7", user_id="u", limit=5)
        assert asked == [HYBRID.rerank_pool]


def test_age_of_what_was_said_may_count(memory: MemoryDriver) -> None:
    recent = Recipe("recent", Weights(dense=0.5, recency=0.5), sources=("dense",))
    memory.add("tea", user_id="u", infer=False, timestamp="2020-01-01")
    memory.add("more tea", user_id="u", infer=False, timestamp=datetime.now(UTC))
    of = signals(memory, "tea", recipe=recent)
    assert {text: round(one["recency"]) for text, one in of.items()} == {"tea": 0, "more tea": 1}
