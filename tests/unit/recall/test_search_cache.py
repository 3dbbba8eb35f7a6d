"""Memory of searches: after every kind of write, searches find what they find without it."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mem0_core import Memory, Scope
from mem0_core.domain.records import Message
from mem0_core.flow import run
from mem0_core.language import statements
from mem0_core.language.parsed_query import parse_query
from mem0_core.language.statements import Statement, read_all_statements, read_statements
from mem0_core.recall import _slots
from mem0_core.recall import cache as search_cache
from mem0_core.recall._neighbors import load_relations
from mem0_core.stores.graph.embedded import EmbeddedGraph
from tests.support import MODES, MemoryDriver, Mode, hang_guard, open_memory, result_texts, run_python

NEXT_YEAR = "2099-01-01"
QUERIES = (
    "Where do I live?",
    "Where did I live in 2024?",
    "Who is Anna?",
    "What is my dog called?",
    "tea in Porto",
    "What did Karen say about Oslo?",
)
PEOPLE, TOWNS = ("Anna", "Karen", "Luca"), ("Porto", "Oslo", "Rome", "Lisbon")


class Pair:
    """Two memories over one file, of which the second keeps nothing between searches."""

    def __init__(self, folder: Path, mode: Any = "sync") -> None:
        self.kept = open_memory(folder)
        self.plain = open_memory(folder, config={"search_cache": False})
        self._driver = MemoryDriver(self.kept, mode)

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.kept.close()
        self.plain.close()

    def check(self, *queries: str, **options: Any) -> None:
        """Check that both find the same, whatever was kept before."""
        options = {"user_id": "u", "limit": 30, "explain": True, **options}
        for query in queries or QUERIES:
            expected = flatten(self.plain.search(query, **options))
            for _ in range(2):  # the second search may find the result of the first
                check_same(flatten(self._driver.search(query, **options)), expected)


def check_same(found: dict[tuple[Any, ...], Any], expected: dict[tuple[Any, ...], Any]) -> None:
    """Check that two flattened results are the same, but for the rounding of scores."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == (pytest.approx(value, abs=1e-5) if isinstance(value, float) else value), key


def flatten(result: Any) -> dict[tuple[Any, ...], Any]:
    """Return the values of a result by their place in it; hits of equal scores are in the order of their ids."""
    hits = sorted(result["results"], key=lambda hit: (-round(hit["score"], 5), hit["id"]))
    found: dict[tuple[Any, ...], Any] = {("order",): [hit["id"] for hit in hits], ("note",): result.get("note")}
    for hit in hits:
        for name, value in hit.items():
            found[hit["id"], name] = value
        for name, signal in hit.pop("explanation", {"signals": {}})["signals"].items():
            found[hit["id"], "signal", name] = signal["value"]
        found.pop((hit["id"], "explanation"), None)
    for relation in result["relations"]:
        found["relation", relation["source"], relation["relationship"], relation["destination"]] = relation["score"]
    return found


@pytest.fixture(params=MODES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with Pair(tmp_path, request.param) as opened:
        memory = opened.kept
        memory.add("I live in Lisbon.", user_id="u", timestamp="2020-01-05", metadata={"tags": ["home"]})
        memory.add("My sister Anna lives in Porto.", user_id="u", timestamp="2021-01-05", run_id="r1")
        memory.add("My dog is called Rex.", user_id="u", timestamp="2021-02-05", agent_id="bot")
        karen = [{"role": "user", "name": "Karen", "content": "Oslo is cold in winter."}]
        memory.add(karen, user_id="u", timestamp="2022-01-05", run_id="r1", infer=False)
        memory.add("I like tea from Porto.", user_id="u", timestamp="2022-02-05", source="diary")
        memory.add("I drink coffee.", user_id="other")
        opened.check()
        yield opened


def id_of(memory: Memory, text: str) -> str:
    return next(hit["id"] for hit in memory.get_all(user_id="u", limit=1000)["results"] if hit["memory"] == text)


def move(memory: Memory, folder: Path) -> None:
    memory.add("I moved to Oslo.", user_id="u", timestamp="2024-05-01")


def correct(memory: Memory, folder: Path) -> None:
    memory.update(id_of(memory, "I live in Lisbon."), "I live in Rome.")


def delete(memory: Memory, folder: Path) -> None:
    memory.delete(id_of(memory, "Oslo is cold in winter."))


def purge(memory: Memory, folder: Path) -> None:
    memory.delete(id_of(memory, "I like tea from Porto."), purge=True)


def delete_run(memory: Memory, folder: Path) -> None:
    memory.delete_all(run_id="r1")


def delete_user(memory: Memory, folder: Path) -> None:
    memory.delete_all(user_id="u", purge=True)


def retract(memory: Memory, folder: Path) -> None:
    memory.retract("diary", user_id="u")


def pin(memory: Memory, folder: Path) -> None:
    memory.pin(id_of(memory, "My dog is called Rex."))


def give_feedback(memory: Memory, folder: Path) -> None:
    memory.feedback(id_of(memory, "My dog is called Rex."), useful=True)


def merge(memory: Memory, folder: Path) -> None:
    memory.add("Annie Smith works at Galp. Anna Smith works at Zeta.", user_id="u")
    memory.merge(user_id="u", names=["Annie Smith"], into="Anna Smith")


def queue(memory: Memory, folder: Path) -> None:
    message = Message("user", "I moved to Rome, and the tea there is good.")
    memory.store.jobs.enqueue(Scope("u"), "remember", at="2024-05-01T00:00:00+00:00", messages=[message])


def learn_in_the_background(memory: Memory, folder: Path) -> None:
    memory.add("I moved to Rome, and the tea there is good.", user_id="u", background=True)
    memory.flush(60)


def reset(memory: Memory, folder: Path) -> None:
    memory.reset()


def write_elsewhere(memory: Memory, folder: Path) -> None:
    code = """
import sys
from mem0_core import Memory, Scope
from mem0_core.domain.records import Message
from mem0_core.testing import HashEmbedder
with Memory({"path": sys.argv[1]}, embedder=HashEmbedder()) as memory:
    memory.add("I moved to Oslo.", user_id="u", timestamp="2024-05-01")
    memory.delete(memory.search("My dog is called Rex.", user_id="u", limit=1)["results"][0]["id"])
"""
    run_python(code, folder)


WRITES = (
    *(
        move,
        correct,
        delete,
        purge,
        delete_run,
        delete_user,
        retract,
        pin,
        give_feedback,
        merge,
        queue,
        learn_in_the_background,
    ),
    *(reset, write_elsewhere),
)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_search_after_a_write_finds_the_same_as_without_a_cache(
    pair: Pair, tmp_path: Path, write: Callable[[Memory, Path], None]
) -> None:
    write(pair.kept, tmp_path)
    pair.check()
    pair.check(run_id="r1")
    pair.check(recipe="mem0")


def test_a_memory_that_expires_is_left_out_on_that_day(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.kept.add("I live in a tent for now.", user_id="u", expiration_date="2098-12-31")
    assert "I live in a tent for now." in result_texts(pair.kept.search("tent", user_id="u"))
    monkeypatch.setattr("mem0_core.api.search.utc_today", lambda: NEXT_YEAR)
    assert "I live in a tent for now." not in result_texts(pair.kept.search("tent", user_id="u"))
    pair.check()


def test_filters_times_and_recipes_find_the_same_as_without_a_cache(pair: Pair) -> None:
    pair.check(filters={"tags": {"contains": "home"}})
    pair.check(as_of="2021-06-01")
    pair.check(reference_date="2023-01-01", limit=2, threshold=0.1)
    pair.check(user_id=None, agent_id="bot")
    pair.check(recipe="offline")
    pair.check(user_id="nobody")


_steps = st.lists(
    st.tuples(st.sampled_from(("add", "add", "add", "update", "delete", "search", "run")), st.integers(0, 10**6)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_after_any_history_a_search_finds_the_same_as_without_a_cache(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Pair(tmp_path_factory.mktemp("history")) as pair:
        ids: list[str] = []
        for day, (kind, seed) in enumerate(steps):
            change(pair.kept, kind, random.Random(seed), ids, f"2024-01-{day + 1:02}")
        pair.check()
        pair.check(run_id="r")


def change(memory: Memory, kind: str, chance: random.Random, ids: list[str], day: str) -> None:
    """Make one change, or a search that keeps the present state."""
    person, town = chance.choice(PEOPLE), chance.choice(TOWNS)
    text = chance.choice(
        (f"I live in {town}.", f"I moved to {town}.", f"{person} lives in {town}.", f"We had tea in {town}, {day}.")
    )
    run: dict[str, Any] = {"run_id": "r"} if kind == "run" else {}
    if kind in ("add", "run"):
        message = {"role": "user", "content": text, **({"name": person} if chance.random() < 0.3 else {})}
        added = memory.add([message], user_id="u", infer=False, timestamp=day, **run)["results"]
        ids += [entry["id"] for entry in added if entry["event"] == "ADD"]
    elif kind == "search":
        memory.search(chance.choice(QUERIES), user_id="u")
    elif ids and kind == "update":
        memory.update(chance.choice(ids), f"{text} ({day})")
    elif ids:
        memory.delete(ids.pop(chance.randrange(len(ids))))


# --- bounds -----------------------------------------------------------------------------------------------------------


def kept_by(memory: Memory) -> dict[str, int]:
    kept: dict[str, int] = memory.stats()["search_cache"]
    return kept


def test_a_search_of_an_unchanged_store_runs_no_statement_but_for_new_results(tmp_path: Path) -> None:
    statements: list[str] = []
    with open_memory(tmp_path, graph=False) as memory:
        memory.add("I like tea from Porto.", user_id="u")
        memory.search("tea", user_id="u")
        for connection in memory.store._db._idle:  # type: ignore[attr-defined]
            connection.set_trace_callback(statements.append)
        assert memory.search("tea in Porto", user_id="u")["results"]
        assert statements == []
        memory.add("I like tea from Assam.", user_id="u")
        assert memory.search("tea in Porto", user_id="u")["results"]
        assert statements


def test_what_is_kept_of_a_user_outlives_the_writes_of_others(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.kept.add("I live in Lisbon. My sister Anna lives in Porto.", user_id="u")
        pair.check()
        for write in (move_another, correct_another, delete_another, queue_for_another):
            before, found = kept_by(pair.kept), pair.kept.search(QUERIES[0], user_id="u", limit=30, explain=True)
            assert kept_by(pair.kept)["results"] == before["results"] + 1
            write(pair.plain)
            assert pair.kept.search(QUERIES[0], user_id="u", limit=30, explain=True) == found
            after = kept_by(pair.kept)
            assert (after["updated"], after["results"]) == (before["updated"], before["results"] + 2), write.__name__


def move_another(memory: Memory) -> None:
    memory.add("I moved to Oslo, to my sister Anna.", user_id="other")


def correct_another(memory: Memory) -> None:
    memory.update(memory.get_all(user_id="other")["results"][0]["id"], "I live in Rome.")


def delete_another(memory: Memory) -> None:
    memory.delete_all(user_id="other")


def queue_for_another(memory: Memory) -> None:
    memory.store.jobs.enqueue(
        Scope("other"), "remember", at="2024-05-01T00:00:00+00:00", messages=[Message("user", "!")]
    )


def test_what_is_kept_of_a_user_ends_with_each_write_to_that_user_by_another_memory(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        memory = pair.kept
        for text in ("I live in Lisbon.", "My dog is called Rex.", "I like tea from Porto.", "Oslo is cold in winter."):
            memory.add(text, user_id="u", source="diary" if "tea" in text else None)
        for write in (move, correct, pin, give_feedback, merge, queue, delete, retract, delete_user, reset):
            before = kept_by(memory)
            pair.check()
            assert kept_by(memory)["results"] > before["results"]
            before = kept_by(memory)
            write(pair.plain, tmp_path)
            memory.search(QUERIES[0], user_id="u", limit=30, explain=True)
            assert kept_by(memory)["results"] == before["results"], write.__name__
            pair.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_memory_that_searched_before_a_merge_finds_what_a_new_one_finds(tmp_path: Path, mode: Mode) -> None:
    query = "Where does Bob work?"
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        for text in ("My name is Bob.", "I work at Galp.", "Dora works at Acme."):
            memory.add(text, user_id="u")
        memory.search(query, user_id="u")
        memory.merge("entities", names=["Dora", "Bob"], dry_run=False, user_id="u")
        found = memory.search(query, user_id="u")
    with open_memory(tmp_path) as opened:
        assert MemoryDriver(opened, mode).search(query, user_id="u") == found


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Return a list that grows with each call of a method of the graph index."""
    calls: list[str] = []
    method = getattr(EmbeddedGraph, name)

    def count(*given: Any, **options: Any) -> Any:
        calls.append(name)
        return method(*given, **options)

    monkeypatch.setattr(EmbeddedGraph, name, count)
    return calls


def test_a_name_is_looked_up_in_the_graph_once_until_the_scope_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("My sister Anna lives in Porto. Anna works at Zeta.", user_id="u")
        looked_up = count_calls(monkeypatch, "neighborhoods")
        for question in ("Where does Anna live?", "Where does Anna work?", "Who is Anna?"):
            assert memory.search(question, user_id="u")["relations"]
        assert len(looked_up) == 1
        memory.add("Anna likes tea.", user_id="other")
        memory.add("It rains.", user_id="u")
        looked_up.clear()  # to add is to look up too
        memory.search("What is Anna like?", user_id="u")
        assert not looked_up
        memory.add("Anna likes tea.", user_id="u")
        looked_up.clear()
        memory.search("What does Anna want?", user_id="u")
        assert looked_up


def test_relations_are_searched_only_if_one_may_be_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(tmp_path) as memory, open_memory(tmp_path, config={"search_cache": False}) as plain:
        memory.add("My sister Anna lives in Porto. Anna works at Zeta.", user_id="u")
        memory.search("tea", user_id="u")
        near, far = "Anna works at Zeta", "an unrelated question on astronomy"
        expected = plain.search(near, user_id="u")["relations"]
        assert expected
        assert plain.search(far, user_id="u")["relations"] == []
        searched = count_calls(monkeypatch, "nearest_relations")
        assert memory.search(far, user_id="u")["relations"] == []
        assert not searched
        assert memory.search(near, user_id="u")["relations"] == expected
        assert searched


def test_changes_are_read_from_the_last_one_on(pair: Pair) -> None:
    before = kept_by(pair.kept)
    pair.kept.add("I moved to Oslo.", user_id="u")
    pair.kept.search("Oslo", user_id="u")
    after = kept_by(pair.kept)
    assert (after["loaded"], after["updated"]) == (before["loaded"], before["updated"] + 1)
    assert after["active_memories"] == before["active_memories"] + 1


def test_statements_are_read_from_the_store_and_those_of_other_rules_from_the_text(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after an update, and in a memory that has not read them."""
    pair.kept.update(id_of(pair.kept, "I live in Lisbon."), "I live in Rome.")
    expected = flatten(pair.plain.search("Where do I live?", user_id="u", explain=True))
    read: list[str] = []

    def read_counted(text: str) -> tuple[Statement, ...]:
        read.append(text)
        return read_all_statements(text)

    monkeypatch.setattr(statements, "read_all_statements", read_counted)
    with open_memory(tmp_path) as memory:
        check_same(flatten(memory.search("Where do I live?", user_id="u", explain=True)), expected)
    assert read == []
    monkeypatch.setattr(statements, "_digest_rules", lambda: "changed rules")
    with open_memory(tmp_path) as memory:
        check_same(flatten(memory.search("Where do I live?", user_id="u", explain=True)), expected)
    assert "I live in Rome." in read


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_reads_what_it_learned_for_the_next_search(mode: Mode, tmp_path: Path) -> None:
    async def learn(memory: Memory) -> list[str]:
        await memory.aadd("I like tea.", user_id="u", run_id="r", background=True)
        while not kept_by(memory)["updated"]:
            await asyncio.sleep(0.01)
        return result_texts(await memory.asearch("What do I like?", user_id="u"))

    with open_memory(tmp_path) as memory, hang_guard():
        memory.add("I live in Lisbon.", user_id="u")
        memory.search("Where do I live?", user_id="u")
        if mode == "sync":
            memory.add("I like tea.", user_id="u", run_id="r", background=True)
            while not kept_by(memory)["updated"]:
                memory.flush()
            found = result_texts(memory.search("What do I like?", user_id="u"))
        else:
            found = asyncio.run(learn(memory))
        assert found[0] == "I like tea."
        assert kept_by(memory)["updated"] == 1, "by the worker, none by the search"


def test_a_search_reads_no_memories_that_a_worker_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, prepare = threading.Event(), search_cache._prepare

    def prepare_then_tell(*args: Any) -> None:
        prepare(*args)
        prepared.set()

    monkeypatch.setattr(search_cache, "_prepare", prepare_then_tell)
    with open_memory(tmp_path) as memory, hang_guard():
        memory.add("I live in Lisbon.", user_id="u")
        memory.search("Where do I live?", user_id="u")
        memory.add("I like tea.", user_id="u", background=True)
        prepared.wait()
        monkeypatch.setattr(type(memory.store), "memories_by_rows", None)
        assert result_texts(memory.search("What do I like?", user_id="u"))[0] == "I like tea."


def test_what_a_search_leaves_behind_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Lisbon.", user_id="u")
        memory.search("Where do I live?", user_id="u")
        assert memory._cache is not None
        former = weakref.ref(memory._cache.open(memory.store, memory._open_index(), Scope("u")))
        gc.collect()
        gc.disable()
        try:
            memory.add("I like tea.", user_id="u")
            memory.search("Where do I live?", user_id="u")
            assert former() is None
        finally:
            gc.enable()


def test_uses_are_counted(pair: Pair) -> None:
    before = kept_by(pair.kept)
    pair.kept.search("a new question", user_id="u")
    pair.kept.search("a new question", user_id="u")
    pair.kept.search("a new question", user_id="other")
    after = kept_by(pair.kept)
    assert {name: after[name] - before[name] for name in ("loaded", "results", "embeddings")} == {
        "loaded": 1,
        "results": 1,
        "embeddings": 1,
    }


def test_a_caller_may_change_a_result(pair: Pair) -> None:
    for _ in range(2):
        hit = pair.kept.search("I live in Lisbon.", user_id="u", limit=1)["results"][0]
        assert hit["metadata"] == {"tags": ["home"]}
        hit["metadata"]["tags"].append("changed")
        hit["memory"] = "changed"
    assert pair.kept.get(hit["id"])["metadata"] == {"tags": ["home"]}  # type: ignore[index]


def test_a_scope_above_the_limit_is_read_at_each_search(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_cache, "_MAX_SCOPE_MEMORIES", 3)
    pair.kept.add("I moved to Oslo.", user_id="u")
    pair.check()
    assert kept_by(pair.kept)["active_scopes"] == 0


def test_the_scopes_that_were_not_used_for_longest_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_cache, "_MAX_MEMORIES", 5)
    with open_memory(tmp_path) as memory:
        for user in "abc":
            memory.add_many([f"note {number}" for number in range(2)], user_id=user)
            memory.search("note", user_id=user)
        assert (kept_by(memory)["active_scopes"], kept_by(memory)["active_memories"]) == (2, 4)
        memory.search("note", user_id="a")
        assert (kept_by(memory)["loaded"], kept_by(memory)["active_memories"]) == (4, 4)


def test_results_of_all_scopes_are_limited_and_those_not_used_for_longest_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_cache, "_MAX_RECORDS", 120)
    with open_memory(tmp_path) as memory:
        for user in "abcd":
            memory.add_many(["I like tea.", "I like coffee."], user_id=user)
        most = 0
        for number in range(12):
            for user in "abcd":
                memory.search(f"Which of {number} drinks?", user_id=user)
                most = max(most, kept_by(memory)["records"])
        assert 60 < most <= 120
        before = kept_by(memory)
        assert before["active_scopes"] == 4, "their memories are kept"
        memory.search("Which of 11 drinks?", user_id="d")
        memory.search("Which of 0 drinks?", user_id="a")
        after = kept_by(memory)
        assert (after["results"] - before["results"], after["loaded"] - before["loaded"]) == (1, 0)


def test_results_of_one_scope_alone_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_cache, "_MAX_RECORDS", 40)
    with open_memory(tmp_path) as memory:
        memory.add("I like tea.", user_id="a")
        for number in range(8):
            memory.search(f"Which of {number} drinks?", user_id="a")
            assert kept_by(memory)["records"] <= 40


def test_a_result_of_a_long_query_is_not_kept(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I like tea.", user_id="a")
        for _ in range(2):
            memory.search("tea " * 2_000, user_id="a")
        assert kept_by(memory)["results"] == 0


def test_a_scope_that_is_forgotten_leaves_no_records(pair: Pair) -> None:
    pair.kept.search("tea in Porto", user_id="u")
    assert kept_by(pair.kept)["records"] > 0
    pair.kept.delete_all(user_id="u")
    assert kept_by(pair.kept)["records"] == 0


def test_deleted_memories_do_not_stay_in_memory(pair: Pair) -> None:
    pair.kept.search("tea in Porto", user_id="other")
    pair.kept.delete(id_of(pair.kept, "I like tea from Porto."))
    assert kept_by(pair.kept)["active_scopes"] == 1, "that of the other user"
    pair.kept.delete_all(user_id="u")
    assert kept_by(pair.kept)["active_memories"] == 0


def test_a_question_that_names_the_user_finds_the_same_as_without_a_cache(tmp_path: Path) -> None:
    """Its words are those of the question that the graph restores: "Who is married to me?"."""
    with Pair(tmp_path) as pair:
        pair.kept.add("My name is Carl.", user_id="u")
        pair.kept.add("Carl moved to Leith.", user_id="u")
        pair.check("Who is married to Carl?")
        pair.check("Who is married to Carl?", min_trust="user")


def test_the_statements_of_a_memory_are_read_once_although_others_are_added(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_counted(text: str, **options: Any) -> Any:
        read.append(text)
        return read_statements(text, **options)

    monkeypatch.setattr(_slots, "read_statements", read_counted)
    pair.kept.update(id_of(pair.kept, "I live in Lisbon."), "I live in Rome.")
    for query in ("Where do I live?", "Where is my home?"):
        pair.kept.search(query, user_id="u")
        pair.kept.add(f"Note of {query}", user_id="u")
    assert (read.count("I live in Lisbon."), read.count("I live in Rome.")) == (0, 1)


def test_a_query_is_parsed_once_for_each_day() -> None:
    day = date(2025, 3, 1)
    assert parse_query("Where was I yesterday?", reference=day) is parse_query("Where was I yesterday?", reference=day)
    other = parse_query("Where was I yesterday?", reference=date(2025, 3, 2))
    assert other.time_spans != parse_query("Where was I yesterday?", reference=day).time_spans
    long = "tea " * 2_000
    assert parse_query(long, reference=day) is not parse_query(long, reference=day)


def test_the_switch_turns_everything_off(pair: Pair) -> None:
    pair.plain.search("tea", user_id="u")
    assert "search_cache" not in pair.plain.stats()


@pytest.mark.parametrize("mode", MODES)
def test_a_queued_message_that_is_processed_during_a_search_is_found(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(tmp_path) as memory, open_memory(tmp_path) as writer:
        driver = MemoryDriver(memory, mode)
        memory.add("I live in Oslo.", user_id="u")
        driver.search("Where do I live?", user_id="u")
        queue(memory, tmp_path)
        open_scope = search_cache.SearchCache.open

        def open_and_process(self: Any, *arguments: Any) -> Any:
            monkeypatch.setattr(search_cache.SearchCache, "open", open_scope)
            active = open_scope(self, *arguments)
            assert writer.flush(60)
            return active

        monkeypatch.setattr(search_cache.SearchCache, "open", open_and_process)
        found = result_texts(driver.search("tea in Rome", user_id="u"))
        assert found.count("I moved to Rome, and the tea there is good.") == 1


def test_relations_are_kept_with_their_evidence_although_a_search_asked_for_none() -> None:
    """Also if another search of the scope reads the first memory between two steps of this one."""
    graph = SimpleNamespace(relations_by_rows=lambda rows, with_evidence, **_: dict.fromkeys(rows, with_evidence))
    ports: Any = SimpleNamespace(store=SimpleNamespace(graph=graph))

    class FilledMeanwhile:
        def __init__(self) -> None:
            self.reads: dict[str, Any] = {}
            self._items: Iterator[dict[int, str]] = iter([{}])

        @property
        def items(self) -> dict[int, str]:
            return next(self._items, {1: "I live in Oslo."})

    active: Any = FilledMeanwhile()
    run(load_relations(ports, [7], Scope("u"), active, with_evidence=False))
    found: Any = run(load_relations(ports, [7], Scope("u"), active))
    assert found == {7: True}


def test_a_repeated_search_on_an_event_loop_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def search_often(memory: Memory) -> None:
        first = await memory.asearch("Where do I live?", user_id="u")
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "to_thread", refuse)
            assert await memory.asearch("Where do I live?", user_id="u") == first
        await memory.aadd("I live in Oslo.", user_id="u")
        assert result_texts(await memory.asearch("Where do I live?", user_id="u")) == ["I live in Oslo."]
        await memory.aclose()

    def refuse(*_: Any) -> Any:
        raise AssertionError("a thread was asked for")

    with open_memory(tmp_path) as memory:
        asyncio.run(search_often(memory))
