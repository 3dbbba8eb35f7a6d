"""LangGraph's store: one suite, run unchanged against `InMemoryStore` and `Mem0Store`; then what only ours does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.embeddings import Embeddings
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from pydantic import BaseModel

from mem0_core import ConfigError, InputError, Memory, ScopeError, StoreError
from mem0_core.domain.records import RESERVED_PREFIX
from mem0_core.testing import HashEmbedder
from mem0_langchain.langgraph import Mem0Store, decode_label, encode_label
from tests.frameworks.langchain.fakes import Chatbot, calls
from tests.support import open_memory

DIMS = 384


class Hashed(Embeddings):
    """The embedder that our memory uses, for LangGraph's own store."""

    def __init__(self) -> None:
        self.inner = HashEmbedder(DIMS)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.inner.embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


MakeStore = Callable[..., BaseStore]


@pytest.fixture(params=["InMemoryStore", "Mem0Store"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    opened: list[Memory] = []

    def make_store(fields: list[str] | None = None) -> BaseStore:
        if request.param == "InMemoryStore":
            return InMemoryStore(index={"dims": DIMS, "embed": Hashed(), "fields": fields or ["$"]})
        opened.append(open_memory(tmp_path / str(len(opened)), embedder=HashEmbedder(DIMS)))
        return Mem0Store(opened[-1], fields=fields)

    yield make_store
    for memory in opened:
        memory.close()


@pytest.fixture
def store(make: MakeStore) -> BaseStore:
    return make(["text"])


ANA, BEN = ("memories", "ana"), ("memories", "ben")


def keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


def fill(store: BaseStore) -> None:
    store.put(ANA, "tea", {"text": "Ana drinks green tea", "n": 1, "tags": ["drink"], "home": {"city": "Porto"}})
    store.put(ANA, "dog", {"text": "Ana has a dog called Bruno", "n": 2, "tags": ["pet"]})
    store.put(BEN, "tea", {"text": "Ben drinks black tea", "n": 3.5, "tags": ["drink", "hot"]})
    store.put((*ANA, "trips"), "rome", {"text": "Ana went to Rome in May", "n": "4", "home": None})


# --- the suite -------------------------------------------------------------------------------------------------------


def test_what_is_put_is_got_and_what_is_not_there_is_none(store: BaseStore) -> None:
    before = datetime.now(UTC)
    store.put(ANA, "tea", {"text": "Ana drinks tea"})
    item = store.get(ANA, "tea")
    assert isinstance(item, Item)
    assert (item.namespace, item.key, item.value) == (ANA, "tea", {"text": "Ana drinks tea"})
    assert before <= item.created_at <= item.updated_at <= datetime.now(UTC)
    assert store.get(ANA, "coffee") is None
    assert store.get(BEN, "tea") is None
    assert store.get(("memories",), "tea") is None


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"text": ""},
        {"a": None, "b": True, "c": False, "d": 0, "e": -1.5, "f": 1e300, "g": 2**80, "h": []},
        {"nested": {"list": [1, [2, {"three": 3}], {}], "text": "deep"}},
        {"text": "Müsli 寿司 🍣 مرحبا \u0000 \ud83d 'quoted' \"twice\" \\ {x} %s"},
        {"": "empty key", "a.b": 1, "$eq": 2, "ключ": 3},
        {"order": 1, "b": 2, "a": 3},
    ],
    ids=lambda value: str(list(value))[:40],
)
def test_values_come_back_equal(store: BaseStore, value: dict[str, Any]) -> None:
    store.put(ANA, "x", value)
    item = store.get(ANA, "x")
    assert item is not None
    assert item.value == value
    assert list(item.value) == list(value)
    assert [found.value for found in store.search(ANA)] == [value]


@pytest.mark.parametrize(
    "key", ["", " ", "a/b", "a.b", "*", "%", "🍣", "x" * 3000, "'; DROP TABLE memories; --", "\u0000"]
)
def test_any_text_is_a_key(store: BaseStore, key: str) -> None:
    store.put(ANA, key, {"text": "this one"})
    store.put(ANA, f"{key}!", {"text": "another"})
    item = store.get(ANA, key)
    assert item is not None
    assert (item.key, item.value) == (key, {"text": "this one"})
    store.delete(ANA, key)
    assert keys(store.search(ANA)) == [f"{key}!"]


@pytest.mark.parametrize(
    "label", [" ", "a/b", "a%2Fb", "*", "%", "memories:ana", "ünï", "🍣", "x" * 3000, "Ana", "ana"]
)
def test_any_text_without_a_period_is_a_label(store: BaseStore, label: str) -> None:
    store.put(("memories", label), "x", {"text": "mine"})
    store.put(("memories", f"{label}/"), "x", {"text": "another's"})
    item = store.get(("memories", label), "x")
    assert item is not None
    assert (item.namespace, item.value["text"]) == (("memories", label), "mine")
    assert [found.value["text"] for found in store.search(("memories", label), query="mine")] == ["mine"]
    assert sorted(store.list_namespaces()) == sorted([("memories", label), ("memories", f"{label}/")])


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph", "x"), ("a", 7)])
def test_namespaces_that_cannot_be_are_refused(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "x", {"text": "x"})


def test_namespaces_that_differ_by_where_they_are_cut_are_two(store: BaseStore) -> None:
    store.put(("a", "b"), "c", {"text": "one"})
    store.put(("a",), "b", {"text": "two"})
    store.put(("a/b",), "c", {"text": "three"})
    got = [store.get(("a", "b"), "c"), store.get(("a",), "b"), store.get(("a/b",), "c")]
    assert [item and item.value["text"] for item in got] == ["one", "two", "three"]


def test_a_second_put_replaces_the_whole_value_and_keeps_one_item(store: BaseStore) -> None:
    store.put(ANA, "home", {"text": "Ana lives in Lisbon", "since": 2019})
    store.put(ANA, "home", {"text": "Ana lives in Porto"})
    (item,) = store.search(ANA)
    assert item.value == {"text": "Ana lives in Porto"}
    assert item.updated_at >= item.created_at
    assert store.search(ANA, query="Porto")[0].score == pytest.approx(
        float(HashEmbedder(DIMS).embed(["Porto"])[0] @ HashEmbedder(DIMS).embed(["Ana lives in Porto"])[0]), abs=1e-3
    )


def test_a_filter_key_is_data_whatever_its_characters(store: BaseStore) -> None:
    hostile = "access') = 'public' OR '1'='1' OR json_extract(value, '$."
    store.put(ANA, "public", {"access": "public", 'it\'s "here"': 1})
    store.put(ANA, "private", {"access": "private"})
    assert store.search(ANA, filter={hostile: "dummy"}) == []
    assert keys(store.search(ANA, filter={'it\'s "here"': 1})) == ["public"]


def test_a_score_is_the_cosine_also_where_it_is_negative(store: BaseStore) -> None:
    texts = {key: f"{key} sails to {key}" for key in ("Porto", "Lima", "Oslo", "Kyoto")}
    for key, text in texts.items():
        store.put(ANA, key, {"text": text})
    embedder = HashEmbedder(DIMS)
    lowest = 1.0
    for query in ("unrelated", "green tea", "mountain", "Oslo"):
        (vector,) = embedder.embed([query])
        found = store.search(ANA, query=query)
        cosines = {key: float(embedder.embed([text])[0] @ vector) for key, text in texts.items()}
        assert [item.key for item in found] == sorted(cosines, key=lambda key: -cosines[key])
        assert [item.score for item in found] == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-3)
        lowest = min(lowest, *cosines.values())
    assert lowest < -0.01


def test_the_same_value_under_two_keys_is_two_items(store: BaseStore) -> None:
    for key in ("a", "b"):
        store.put(ANA, key, {"text": "the same"})
    assert keys(store.search(ANA)) == ["a", "b"]
    assert sorted(keys(store.search(ANA, query="the same"))) == ["a", "b"]


def test_deleting_takes_an_item_out_of_everything(store: BaseStore) -> None:
    fill(store)
    store.delete(ANA, "tea")
    store.delete(ANA, "tea")
    store.delete(("nobody",), "tea")
    store.put(BEN, "tea", None)  # type: ignore[arg-type]
    assert store.get(ANA, "tea") is None
    assert keys(store.search(("memories",), query="tea")) == ["dog", "rome"] or set(
        keys(store.search(("memories",), query="tea"))
    ) == {"dog", "rome"}
    store.put(ANA, "tea", {"text": "Ana drinks mint tea"})
    assert keys(store.search(ANA)) == ["dog", "tea", "rome"]


def test_a_search_is_of_a_namespace_and_those_below_it(store: BaseStore) -> None:
    fill(store)
    assert keys(store.search(ANA)) == ["tea", "dog", "rome"]
    assert keys(store.search(BEN)) == ["tea"]
    assert keys(store.search((*ANA, "trips"))) == ["rome"]
    assert keys(store.search(("memories",))) == ["tea", "dog", "tea", "rome"]
    assert keys(store.search(())) == ["tea", "dog", "tea", "rome"]
    assert store.search(("memory",)) == store.search((*ANA, "trip")) == []
    assert all(item.score is None for item in store.search(()))


def test_a_query_ranks_by_likeness(store: BaseStore) -> None:
    fill(store)
    best, *rest = store.search(ANA, query="Which green tea does Ana drink?")
    assert best.key == "tea"
    assert best.score is not None
    assert 0 < best.score <= 1
    assert [item.score for item in rest] == sorted((item.score for item in rest if item.score), reverse=True)
    assert store.search(("memories",), query="black tea of Ben")[0].namespace == BEN
    assert [item.key for item in store.search((), query="Bruno the dog", limit=1)] == ["dog"]
    assert store.search(("nobody",), query="tea") == []


def test_a_page_of_results(store: BaseStore) -> None:
    for number in range(25):
        store.put(ANA, f"k{number:02}", {"text": f"word{number} and tea", "n": number})
    assert len(store.search(ANA)) == 10
    listed = [keys(store.search(ANA, limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
    assert listed == [[f"k{n:02}" for n in range(start, min(start + 10, 25))] for start in (0, 10, 20, 30)]
    ranked = keys(store.search(ANA, query="tea", limit=25))
    assert len(set(ranked)) == 25
    assert keys(store.search(ANA, query="tea", limit=7, offset=5)) == ranked[5:12]
    assert keys(store.search(ANA, filter={"n": {"$gte": 10}}, limit=3, offset=2)) == ["k12", "k13", "k14"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": 1}, ["tea"]),
        ({"n": 2.0}, ["dog"]),
        ({"n": {"$eq": 2}}, ["dog"]),
        ({"n": {"$ne": 2}}, ["tea", "tea", "rome"]),
        ({"n": {"$gt": 2}}, ["tea", "rome"]),
        ({"n": {"$gte": 2}}, ["dog", "tea", "rome"]),
        ({"n": {"$lt": 2}}, ["tea"]),
        ({"n": {"$lte": 2}}, ["tea", "dog"]),
        ({"n": {"$gt": 1, "$lt": 4}}, ["dog", "tea"]),
        ({"n": "4"}, ["rome"]),
        ({"tags": ["drink"]}, ["tea"]),
        ({"tags": ["drink", "hot"]}, ["tea"]),
        ({"home": {"city": "Porto"}}, ["tea"]),
        ({"home": {"city": {"$ne": "Porto"}}}, []),
        ({"home": None}, ["dog", "tea", "rome"]),
        ({"missing": None}, ["tea", "dog", "tea", "rome"]),
        ({"missing": {"$ne": 1}}, ["tea", "dog", "tea", "rome"]),
        ({"text": "Ana drinks green tea", "n": 1}, ["tea"]),
        ({"text": "Ana drinks green tea", "n": 2}, []),
        ({}, ["tea", "dog", "tea", "rome"]),
    ],
    ids=str,
)
def test_filters(store: BaseStore, filter: dict[str, Any], expected: list[str]) -> None:
    fill(store)
    assert keys(store.search(("memories",), filter=filter)) == expected
    assert sorted(keys(store.search(("memories",), filter=filter, query="tea"))) == sorted(expected)


HELD: list[Any] = [
    *(0, -0.0, 0.0, 1, 1.0, -1, True, False, None, 5, 5.0, 57, 0.1, 0.5, 1e22, 10**22, 10**400),
    *(2**53, float(2**53), 2**53 + 1, float("inf"), float("nan")),
    *("", "0", "5", "true", "a", "A", 'a"b', "a\\b", "a\nb", "ñ", "😀", "\ud83d", '"n": 5', "%", "_"),
    *([], [5], [5.0, "a"], {}, {"n": 5}, {"n": True}, {"m": {"n": 1}}),
]


@pytest.mark.parametrize("key", ["n", 'n"m', "é: 5"])
def test_filters_find_what_is_equal_in_python_however_it_is_written(store: BaseStore, key: str) -> None:
    store.batch([PutOp(ANA, str(number), {key: held}, index=False) for number, held in enumerate(HELD)])
    store.batch([PutOp(BEN, str(number), {"home": {key: held}}, index=False) for number, held in enumerate(HELD)])
    for wanted in HELD:
        if isinstance(wanted, dict):  # which names parts of what it wants, and not all
            continue
        equal = [str(number) for number, held in enumerate(HELD) if held == wanted]
        assert keys(store.search(ANA, filter={key: wanted}, limit=99)) == equal
        assert keys(store.search(ANA, filter={key: {"$eq": wanted}}, limit=99)) == equal
        assert keys(store.search(BEN, filter={"home": {key: wanted}}, limit=99)) == equal


def test_an_unknown_operator_is_an_error(store: BaseStore) -> None:
    fill(store)
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ANA, filter={"n": {"$near": 1}})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ANA, filter={"n": {"$near": 1}, "text": "nobody said this"})


def test_what_is_not_indexed_is_not_found_by_a_query_and_fills_places_that_are_left(store: BaseStore) -> None:
    store.put(ANA, "secret", {"text": "green tea"}, index=False)
    store.put(ANA, "tea", {"text": "black tea"})
    store.put(ANA, "none", {"other": "no text at all"})
    assert keys(store.search(ANA, query="green tea", limit=1)) == ["tea"]
    assert [(item.key, item.score is None) for item in store.search(ANA, query="green tea")] == [
        *(("tea", False), ("secret", True), ("none", True)),
    ]
    assert keys(store.search(ANA)) == ["secret", "tea", "none"]
    item = store.get(ANA, "secret")
    assert item is not None
    assert item.value == {"text": "green tea"}


@pytest.mark.parametrize(
    ("fields", "query", "expected"),
    [
        (["title"], "kayak", "title"),
        (["meta.body"], "kayak", "body"),
        (["chapters[*].name"], "kayak", "chapter"),
        (["$"], "kayak", None),
    ],
)
def test_fields_say_what_is_indexed(make: MakeStore, fields: list[str], query: str, expected: str | None) -> None:
    store = make(fields)
    store.put(ANA, "title", {"title": "kayak", "meta": {"body": "x1"}, "chapters": [{"name": "y1"}]})
    store.put(ANA, "body", {"title": "z2", "meta": {"body": "kayak"}, "chapters": [{"name": "y2"}]})
    store.put(ANA, "chapter", {"title": "z3", "meta": {"body": "x3"}, "chapters": [{"name": "kayak"}]})
    best = store.search(ANA, query=query)[0]
    assert best.score is not None
    if expected is None:
        assert best.score < 0.9
    else:
        assert best.key == expected
        assert best.score == pytest.approx(1, abs=1e-3)


def test_each_indexed_field_has_a_vector_of_its_own(make: MakeStore) -> None:
    store = make(["title", "body"])
    store.put(ANA, "both", {"title": "green tea", "body": "trains leave from platform nine"})
    store.put(ANA, "one", {"title": "black coffee"})
    assert [item.key for item in store.search(ANA, query="green tea")] == ["both", "one"]
    best, other = store.search(ANA, query="trains leave from platform nine")
    assert best.key == "both"
    assert best.score == pytest.approx(1, abs=1e-3)
    assert other.score is not None
    assert other.score < 0.5


def test_a_field_that_an_item_no_longer_has_is_not_found(memory: Memory) -> None:  # InMemoryStore keeps its vector
    store = Mem0Store(memory, fields=["title", "body"])
    store.put(ANA, "both", {"title": "green tea", "body": "trains leave from platform nine"})
    store.put(ANA, "both", {"title": "red wine"})
    [found] = store.search(ANA, query="trains leave from platform nine")
    assert found.score is not None
    assert found.score < 0.5
    store.delete(ANA, "both")
    assert store.search(ANA) == store.search(ANA, query="red wine") == []
    assert not [item for item in memory.store.list_memories(None) if "key" in item.metadata]


@pytest.mark.parametrize("namespace", [("foo.bar",), ("",), ("foo", 1), ("nul\0",)])
def test_a_batch_refuses_labels_that_a_put_refuses(ours: Mem0Store, namespace: Any) -> None:
    for op in (PutOp(namespace, "k", {"a": 1}), GetOp(namespace, "k"), SearchOp(namespace)):
        with pytest.raises(InvalidNamespaceError, match="invalid label"):
            ours.batch([PutOp(ANA, "good", {"a": 1}), op])
    assert ours.get(ANA, "good") is None


def test_a_namespace_may_be_a_list(ours: Mem0Store) -> None:
    ours.put(["memories", "ana"], "k", {"a": 1})  # type: ignore[arg-type]
    assert [item.namespace for item in ours.search(["memories"])] == [ANA]  # type: ignore[arg-type]


def test_a_filter_may_name_a_path(ours: Mem0Store) -> None:
    ours.put(ANA, "deep", {"user": {"home": {"city": "Oslo"}}})
    ours.put(ANA, "flat", {"user.home.city": "Rome"})
    assert keys(ours.search(ANA, filter={"user.home.city": "Oslo"})) == ["deep"]
    assert keys(ours.search(ANA, filter={"user.home.city": "Rome"})) == ["flat"]


def test_puts_and_deletes_of_a_batch_are_one_transaction(ours: Mem0Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ours.put(ANA, "old", {"text": "tea"})

    def fail(*_: Any, **__: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(ours._primary_store, "commit", fail)
    with pytest.raises(StoreError):
        ours.batch([PutOp(ANA, "old", None), PutOp(ANA, "new", {"text": "coffee"})])
    monkeypatch.undo()
    assert keys(ours.search(ANA)) == ["old"]


def test_a_put_may_say_itself_what_is_indexed(store: BaseStore) -> None:
    store.put(ANA, "x", {"text": "kayak", "title": "violin"}, index=["title"])
    (item,) = store.search(ANA, query="violin")
    assert item.score == pytest.approx(1, abs=1e-3)


def test_namespaces_are_listed_sorted_matched_and_cut(store: BaseStore) -> None:
    spaces = [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("b", "b", "c"), ("users", "1"), ("users", "2", "a")]
    for namespace in reversed(spaces):
        store.put(namespace, "k", {"text": "x"})
    assert store.list_namespaces() == spaces
    assert store.list_namespaces(prefix=("a",)) == spaces[:3]
    assert store.list_namespaces(prefix=("a", "*")) == spaces[:3]
    assert store.list_namespaces(prefix=("*", "b")) == [*spaces[:2], spaces[3]]
    assert store.list_namespaces(suffix=("c",)) == [spaces[0], spaces[3]]
    assert store.list_namespaces(suffix=("*", "a")) == [spaces[5]]
    assert store.list_namespaces(prefix=("a",), suffix=("d",)) == [spaces[1]]
    assert store.list_namespaces(max_depth=1) == [("a",), ("b",), ("users",)]
    assert store.list_namespaces(max_depth=2, prefix=("a",)) == [("a", "b"), ("a", "x")]
    assert store.list_namespaces(limit=2, offset=1) == spaces[1:3]
    assert store.list_namespaces(max_depth=2, limit=2, offset=2) == [("b", "b"), ("users", "1")]
    assert store.list_namespaces(prefix=("nobody",)) == []


def test_a_batch_reads_what_was_there_before_it_and_answers_in_order(store: BaseStore) -> None:
    store.put(ANA, "old", {"text": "old tea"})
    results = store.batch(
        [
            GetOp(ANA, "new"),
            PutOp(ANA, "new", {"text": "first"}),
            GetOp(ANA, "old"),
            PutOp(ANA, "new", {"text": "second"}),
            SearchOp(ANA, query="tea"),
            PutOp(ANA, "old", None),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("memories",)),)),
            PutOp(BEN, "x", {"text": "bens"}),
        ]
    )
    assert results[0] is None
    assert isinstance(results[2], Item)
    assert keys(results[4]) == ["old"]  # type: ignore[arg-type]
    assert results[6] == [ANA]
    assert [results[place] for place in (1, 3, 5, 7)] == [None] * 4
    (item,) = store.search(ANA)
    assert (item.key, item.value) == ("new", {"text": "second"})
    assert store.list_namespaces() == [ANA, BEN]
    assert store.batch([]) == []
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["get"])  # type: ignore[list-item]


def test_async_code_gets_the_same(store: BaseStore) -> None:
    async def use() -> None:
        await store.aput(ANA, "tea", {"text": "Ana drinks green tea"})
        await store.aput(ANA, "dog", {"text": "Ana has a dog"})
        item = await store.aget(ANA, "tea")
        assert item is not None
        assert item.value == {"text": "Ana drinks green tea"}
        assert keys(await store.asearch(ANA, query="tea", limit=1)) == ["tea"]
        assert await store.alist_namespaces() == [ANA]
        await store.adelete(ANA, "tea")
        assert await store.aget(ANA, "tea") is None
        await asyncio.gather(*(store.aput(BEN, f"k{n}", {"text": f"word{n}"}) for n in range(20)))
        assert len(await store.asearch(BEN, limit=100)) == 20
        results = await store.abatch([GetOp(ANA, "dog"), SearchOp(BEN, query="word7", limit=1)])
        assert keys(results[1]) == ["k7"]  # type: ignore[arg-type]

    asyncio.run(use())


def test_threads_put_and_search_at_once(store: BaseStore) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                store.put(("memories", f"user{number}"), f"k{step}", {"text": f"user{number} step{step}"})
                store.put(ANA, "shared", {"text": f"by {number} at {step}"})
                found = store.search(("memories", f"user{number}"), query=f"step{step}", limit=1)
                assert found[0].key == f"k{step}"
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(store.search(("memories",), limit=100)) == 41
    assert len(store.list_namespaces()) == 5


# --- time to live: InMemoryStore has none, so LangGraph's SqliteStore stands beside ours ------------------------------


@pytest.fixture(params=["SqliteStore", "Mem0Store"])
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    ttl: Any = {"default_ttl": None, "refresh_on_read": True, "omit_expired": True}
    if request.param == "SqliteStore":
        with SqliteStore.from_conn_string(":memory:", ttl=ttl) as theirs:
            theirs.setup()
            yield theirs
    else:
        with open_memory(tmp_path, embedder=HashEmbedder(DIMS)) as memory:
            yield Mem0Store(memory, ttl=ttl)


SECOND = 1 / 60  # times to live are in minutes


def test_what_has_expired_is_gone_and_is_swept(mortal: Any) -> None:
    mortal.put(ANA, "brief", {"text": "for a moment"}, ttl=SECOND)
    mortal.put(ANA, "long", {"text": "for an hour"}, ttl=60)
    mortal.put(ANA, "ever", {"text": "for ever"})
    assert sorted(keys(mortal.search(ANA, refresh_ttl=False))) == ["brief", "ever", "long"]
    time.sleep(2.1)  # SQLite's clock, by which theirs goes, counts whole seconds
    assert mortal.sweep_ttl() == 1
    assert mortal.sweep_ttl() == 0
    assert mortal.get(ANA, "brief", refresh_ttl=False) is None
    assert sorted(keys(mortal.search(ANA, refresh_ttl=False))) == ["ever", "long"]
    assert mortal.get(ANA, "ever") is not None


def test_reading_begins_the_time_anew_unless_it_is_told_not_to(mortal: Any) -> None:
    for key in ("got", "found", "left"):
        mortal.put((key,), key, {"text": key}, ttl=3 * SECOND)
    time.sleep(2)
    assert mortal.get(("got",), "got") is not None
    assert keys(mortal.search(("found",))) == ["found"]
    assert mortal.get(("left",), "left", refresh_ttl=False) is not None
    time.sleep(2)
    assert mortal.sweep_ttl() == 1
    assert mortal.get(("got",), "got", refresh_ttl=False) is not None
    assert keys(mortal.search(("found",), refresh_ttl=False)) == ["found"]
    assert mortal.get(("left",), "left") is None


# --- what only ours does ----------------------------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path, embedder=HashEmbedder(DIMS)) as opened:
        yield opened


@pytest.fixture
def ours(memory: Memory) -> Mem0Store:
    return Mem0Store(memory, fields=["text"])


def test_what_has_expired_is_not_returned_before_it_is_swept_and_can_be_put_again(ours: Mem0Store) -> None:
    for key, index in (("tea", None), ("plain", False)):
        ours.put(ANA, key, {"text": "green tea"}, index=index, ttl=0.0001)  # type: ignore[arg-type]
    time.sleep(0.05)
    assert ours.get(ANA, "tea") is None
    assert ours.search(ANA) == ours.search(ANA, query="tea") == ours.list_namespaces() == []
    ours.put(ANA, "tea", {"text": "mint tea"})
    assert [item.value for item in ours.search(ANA, query="tea")] == [{"text": "mint tea"}]
    assert ours.sweep_ttl() == 1


@pytest.mark.parametrize("minutes", [np.int64(60), np.float32(60), Fraction(60)])
def test_a_time_to_live_is_any_finite_number(ours: Mem0Store, minutes: Any) -> None:
    ours.put(ANA, "tea", {"text": "green tea"}, ttl=minutes)
    assert ours.get(ANA, "tea") is not None


@pytest.mark.parametrize("minutes", [-1, float("inf"), float("nan"), 10**400, "60"])
def test_a_time_to_live_that_never_ends_or_is_no_number_is_refused(ours: Mem0Store, minutes: Any) -> None:
    with pytest.raises(InputError, match="ttl must be a number of minutes"):
        ours.batch([PutOp(ANA, "tea", {"text": "green tea"}, ttl=minutes)])


def test_a_value_that_is_missing_or_no_number_is_neither_more_nor_less(ours: Mem0Store) -> None:
    ours.put(ANA, "none", {"text": "x"})
    ours.put(ANA, "word", {"text": "x", "n": "many"})
    ours.put(ANA, "five", {"text": "x", "n": 5})
    assert keys(ours.search(ANA, filter={"n": {"$gt": 1}})) == ["five"]
    assert keys(ours.search(ANA, filter={"n": {"$lte": 9}})) == ["five"]


@pytest.mark.parametrize("how", ["its name alone", "everything"])
def test_a_namespace_that_another_process_took_away_is_there_again_with_the_next_item(
    memory: Memory, ours: Mem0Store, tmp_path: Path, how: str
) -> None:
    ours.put(ANA, "tea", {"text": "Ana drinks tea"})
    ours.put(ANA, "dog", {"text": "Ana has a dog"})
    with open_memory(tmp_path, embedder=HashEmbedder(DIMS)) as another:
        if how == "everything":
            another.reset()
        else:
            another.delete_all(agent_id=ours._namespaces.scope.agent_id)
    ours.put(ANA, "home", {"text": "Ana lives in Porto"})
    assert ours.list_namespaces() == [ANA]
    assert keys(ours.search(ANA)) == (["home"] if how == "everything" else ["tea", "dog", "home"])
    assert keys(ours.search((), query="Porto", limit=1)) == ["home"]


def test_an_item_is_a_memory_with_a_history_and_its_deletion_is_the_memorys(memory: Memory, ours: Mem0Store) -> None:
    ours.put(ANA, "home", {"text": "Ana lives in Lisbon"})
    ours.put(ANA, "home", {"text": "Ana lives in Porto"})
    ((id, text),) = [
        (entry["id"], entry["memory"]) for entry in memory.get_all(user_id=ours._user_id(ANA, True))["results"]
    ]
    assert text == "Ana lives in Porto"
    assert [row["new_memory"] for row in memory.history(id)] == ["Ana lives in Lisbon", "Ana lives in Porto"]
    memory.delete(id, purge=True)
    assert ours.get(ANA, "home") is None
    assert ours.search(ANA) == ours.search(ANA, query="Porto") == ours.list_namespaces() == []
    assert b"Porto" not in Path(memory.config.database).read_bytes()


def test_items_and_conversations_do_not_meet(memory: Memory, ours: Mem0Store) -> None:
    memory.add("I drink green tea.", user_id="ana")
    ours.put(ANA, "tea", {"text": "Ana drinks black tea"})
    assert [entry["memory"] for entry in memory.search("tea", user_id="ana")["results"]] == ["I drink green tea."]
    assert keys(ours.search((), query="green tea")) == ["tea"]


def test_two_stores_of_one_memory_are_apart(memory: Memory, ours: Mem0Store) -> None:
    other = Mem0Store(memory, name="other")
    other.put(ANA, "x", {"text": "other"})
    assert ours.get(ANA, "x") is None
    assert ours.search((), query="other") == ours.list_namespaces() == []


def test_another_process_sees_what_was_put(memory: Memory, ours: Mem0Store, tmp_path: Path) -> None:
    ours.put(ANA, "tea", {"text": "Ana drinks green tea"})
    with open_memory(tmp_path, embedder=HashEmbedder(DIMS)) as second:
        theirs = Mem0Store(second, fields=["text"])
        assert keys(theirs.search(("memories",), query="tea")) == ["tea"]
        theirs.put(BEN, "x", {"text": "Ben"})
        theirs.put(ANA, "tea", {"text": "Ana drinks mint tea"})
    assert ours.list_namespaces() == [ANA, BEN]
    assert ours.search(ANA, query="mint")[0].value["text"] == "Ana drinks mint tea"


def test_writers_in_several_memories_on_one_file_lose_nothing(tmp_path: Path) -> None:
    memories = [open_memory(tmp_path, embedder=HashEmbedder(DIMS)) for _ in range(3)]
    stores = [Mem0Store(memory, fields=["text"]) for memory in memories]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                stores[number].put(ANA, f"k{step}", {"text": f"{number} {step}"})
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(keys(stores[0].search(ANA, limit=50))) == sorted(f"k{step}" for step in range(10))
    for memory in memories:
        memory.close()


def test_an_item_may_become_unindexed_and_indexed_again(ours: Mem0Store) -> None:
    ours.put(ANA, "x", {"text": "green tea"})
    ours.put(ANA, "x", {"text": "green tea"}, index=False)
    assert [item.score for item in ours.search(ANA, query="tea")] == [None]
    ours.put(ANA, "x", {"text": "green tea"})
    assert [item.score is None for item in ours.search(ANA, query="tea")] == [False]
    assert len(ours.search(ANA)) == 1


def test_a_new_embedder_takes_items_along(memory: Memory, ours: Mem0Store, tmp_path: Path) -> None:
    ours.put(ANA, "tea", {"text": "green tea"})
    ours.put(ANA, "plain", {"text": "green tea"}, index=False)
    with open_memory(tmp_path, embedder=HashEmbedder(64)) as other:
        other.rebuild()
        again = Mem0Store(other, fields=["text"])
        assert [(item.key, item.score is None) for item in again.search(ANA, query="tea")] == [
            *(("tea", False), ("plain", True)),
        ]
        again.put(BEN, "x", {"text": "Ben"})
        assert again.list_namespaces() == [ANA, BEN]


def test_many_namespaces_under_one_prefix_are_searched_together(ours: Mem0Store) -> None:
    ours.batch([PutOp(("users", f"u{n}", "facts"), "k", {"text": f"word{n}"}) for n in range(300)])
    ours.put(("other",), "k", {"text": "word7"})
    assert ours.search(("users",), query="word7", limit=1)[0].namespace == ("users", "u7", "facts")
    assert ours.search(("users", "u9"), query="word7", limit=1)[0].namespace == ("users", "u9", "facts")


def test_what_is_no_json_is_refused_and_nothing_of_its_batch_is_written(ours: Mem0Store) -> None:
    for value in ({"x": object()}, {"x": {1, 2}}, ["a list"]):
        with pytest.raises(InputError, match="bad"):
            ours.batch([PutOp(ANA, "good", {"text": "x"}), PutOp(ANA, "bad", value)])  # type: ignore[arg-type]
    assert ours.search(ANA) == []


def test_a_closed_memory_is_a_store_error(tmp_path: Path) -> None:
    memory = open_memory(tmp_path)
    store = Mem0Store(memory)
    memory.close()
    with pytest.raises(StoreError):
        store.put(ANA, "x", {"text": "x"})


def test_labels_for_texts_that_cannot_be_ones() -> None:
    for text in ("ana@example.com", "100%", "%2E", "a.b.c", "nul\0"):
        label = encode_label(text)
        assert "." not in label
        assert decode_label(label) == text
    with pytest.raises(InputError):
        encode_label("")


def test_a_sweeper_sweeps_until_it_is_stopped(ours: Mem0Store, monkeypatch: pytest.MonkeyPatch) -> None:
    swept = threading.Event()
    monkeypatch.setattr(ours, "sweep_ttl", swept.set)
    ours.start_ttl_sweeper(sweep_interval_minutes=0.0001)  # type: ignore[arg-type]
    assert swept.wait(30)
    assert ours.stop_ttl_sweeper(10)


def test_the_store_of_a_graph_and_of_an_agents_tools(ours: Mem0Store) -> None:
    @tool
    def note(text: str, runtime: ToolRuntime) -> str:
        """Note something."""
        assert runtime.store is not None
        runtime.store.put(ANA, text, {"text": text})
        return "noted"

    def answer(messages: Any) -> Any:
        return "Done." if messages[-1].type == "tool" else calls("note", text="Ana sings")

    agent: Any = create_agent(Chatbot(answer=answer), tools=[note], store=ours)
    agent.invoke({"messages": "Note that I sing."})
    asyncio.run(agent.ainvoke({"messages": "Note that I sing."}))

    def recall(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        return {"messages": [item.value["text"] for item in store.search(ANA, query="sing")]}

    graph: Any = StateGraph(MessagesState).add_node("recall", recall).add_edge(START, "recall").compile(store=ours)
    assert graph.invoke({"messages": "x"})["messages"][-1].text == "Ana sings"


def test_a_recipe_says_what_a_query_is_weighed_by(memory: Memory, ours: Mem0Store) -> None:
    ours.put(ANA, "tea", {"text": "Ana drinks green tea"})
    hybrid = Mem0Store(memory, fields=["text"], recipe="hybrid")
    cosine, weighed = (store.search(ANA, query="green tea of Ana")[0].score for store in (ours, hybrid))
    assert cosine is not None
    assert weighed is not None
    assert cosine != pytest.approx(weighed, abs=1e-3)
    with pytest.raises(ConfigError, match="recipe"):
        Mem0Store(memory, recipe="none such").search(ANA, query="tea")


class Mood(Enum):
    CALM = "calm"


@dataclass
class Place:
    city: str
    since: date


class Guest(BaseModel):
    name: str
    born: date


@pytest.mark.parametrize("asynchronous", [False, True])
def test_times_and_other_types_are_stored_as_json(memory: Memory, asynchronous: bool) -> None:
    store = Mem0Store(memory)
    value = {
        "at": datetime(2026, 11, 23, 13, 5, tzinfo=UTC),
        "days": [date(2026, 1, 2), (time_of_day(7, 30), Mood.CALM)],
        "id": UUID(int=7),
        "place": Place("Porto", date(2024, 5, 1)),
        "guest": Guest(name="Ana", born=date(1990, 1, 2)),
    }
    plain = {
        "at": "2026-11-23T13:05:00+00:00",
        "days": ["2026-01-02", ["07:30:00", "calm"]],
        "id": str(UUID(int=7)),
        "place": {"city": "Porto", "since": "2024-05-01"},
        "guest": {"name": "Ana", "born": "1990-01-02"},
    }
    wanted: Any = {"at": {"$eq": value["at"]}, "place": Place("Porto", date(2024, 5, 1))}

    async def use() -> tuple[Any, Any]:
        await store.aput(ANA, "k", value)
        return await store.aget(ANA, "k"), await store.asearch(ANA, filter=wanted)

    if asynchronous:
        item, found = asyncio.run(use())
    else:
        store.put(ANA, "k", value)
        item, found = store.get(ANA, "k"), store.search(ANA, filter=wanted)
    assert item.value == plain
    assert keys(found) == ["k"]
    assert store.search(ANA, filter={"at": datetime(2020, 1, 1, tzinfo=UTC)}) == []


def test_a_value_without_a_json_form_is_refused(memory: Memory) -> None:
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle
    for value in ({"a": {1, 2}}, {"a": object()}, cycle):
        with pytest.raises(InputError, match="not JSON"):
            Mem0Store(memory).put(ANA, "k", value)


@pytest.mark.parametrize("axis", ["user_id", "agent_id", "run_id"])
def test_no_id_of_a_caller_reaches_an_item(memory: Memory, ours: Mem0Store, axis: str) -> None:
    ours.put(ANA, "home", {"text": "Ana lives in Lisbon"})
    ours.put(ANA, "plain", {"text": "Ana has a dog"}, index=False)
    scopes = [item.scope for item in memory.store.list_memories(None)]
    stored = {"".join(value) for scope in scopes for value in scope.ids.values()}  # the texts, as in a request
    assert all(value.startswith(RESERVED_PREFIX) for value in stored)
    for value in stored:
        verbs: tuple[Any, ...] = (memory.get_all, memory.delete_all, memory.stats, memory.relations)
        for call in verbs:
            with pytest.raises(ScopeError, match="reserved"):
                call(**{axis: value})
    for value in ("langgraph", "langgraph:memories/ana", "langgraph plain", "memories/ana", "langgraph/items"):
        ids: Any = {axis: value}
        assert memory.get_all(**ids)["results"] == []
        memory.delete_all(**ids)
    assert ours.get(ANA, "home") is not None
    assert ours.get(ANA, "plain") is not None


def test_items_survive_an_export_and_an_erasure_of_others(memory: Memory, ours: Mem0Store, tmp_path: Path) -> None:
    ours.put(ANA, "home", {"text": "Ana lives in Lisbon"})
    memory.add("Ben lives in Rome", user_id="ben")
    memory.export(tmp_path / "all.jsonl")
    memory.erase(user_id="ben", reason="request 1")
    assert memory.doctor()["healthy"]
    assert keys(ours.search(ANA, query="Lisbon")) == ["home"]
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    with open_memory(tmp_path / "other", embedder=HashEmbedder(DIMS)) as other:
        other.adopt([record for record in records if record["kind"] == "memory"])
        assert keys(Mem0Store(other).search(ANA, query="Lisbon")) == ["home"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_erasing_a_namespace_leaves_nothing_of_its_items(tmp_path: Path, mode: str) -> None:
    with open_memory(tmp_path) as memory:
        store = Mem0Store(memory)
        for number in range(6):
            place = ("memories", "torvald", f"topic {number % 2}")
            store.put(place, f"k{number}", {"text": f"Kirkenes harbor {number}"}, index=None if number % 3 else False)
        store.delete(("memories", "torvald", "topic 0"), "k2")
        store.put(("memories", "bjarne"), "k", {"text": "Tromso"})
        if mode == "sync":
            receipts = store.erase(("memories", "torvald"), reason="request 4711")
        else:
            receipts = asyncio.run(store.aerase(["memories", "torvald"], reason="request 4711"))
        assert receipts
        assert all(one["complete"] and memory.verify_receipt(one) for one in receipts)
        assert store.list_namespaces() == [("memories", "bjarne")]
        assert store.erase(("memories", "torvald"), reason="request 4711") == []
        content = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        assert [word in content for word in (b"Kirkenes", b"torvald", b"Tromso")] == [False, False, True]
        store.put(("memories", "torvald", "topic 0"), "k2", {"text": "again"})
        assert store.get(("memories", "torvald", "topic 0"), "k2") is not None
        with pytest.raises(InvalidNamespaceError):
            store.erase(("a.b",), reason="request 4711")
