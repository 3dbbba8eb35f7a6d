"""A vector store of LangChain's as projection: it follows the truth, through outages too, and shows nobody else's."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from mem0_core import ConfigError, Scope, StoreError
from mem0_core.contracts import ALICE, BOB, DIMS, LATER, VectorIndexContract, unit_vectors
from mem0_core.interfaces import MemoryStore, VectorIndex
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from mem0_langchain import MemoryVectors, VectorStoreIndex
from tests.support import open_memory, result_texts

NURSERY = Path(__file__).with_name("vectors_process.py")
COSINE = models.Distance.COSINE


def qdrant(client: QdrantClient, dims: int = DIMS, vectors: Any = None) -> QdrantVectorStore:
    if not client.collection_exists("memories"):
        client.create_collection("memories", models.VectorParams(size=dims, distance=COSINE))
    return QdrantVectorStore(client, "memories", embedding=vectors or MemoryVectors(dims))


def same(found: list[list[tuple[int, float]]], expected: list[list[tuple[int, float]]]) -> bool:
    """The same rows with the same scores: the truth is scanned in half precision, good to three digits."""
    rows = [[row for row, _ in of_query] for of_query in found]
    scores = [score for of_query in found for _, score in of_query]
    return rows == [[row for row, _ in of_query] for of_query in expected] and scores == pytest.approx(
        [score for of_query in expected for _, score in of_query], abs=1e-3
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with_file = SQLiteStore(tmp_path / "truth.db", durability="process")
    yield with_file
    with_file.close()


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    opened = QdrantClient(":memory:")
    yield opened
    opened.close()


class TestQdrantIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self, client: QdrantClient) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: VectorStoreIndex(qdrant(client), source=store)


class TestInMemoryIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: VectorStoreIndex(InMemoryVectorStore(MemoryVectors(DIMS)), source=store)


fill = VectorIndexContract().fill


class Troubled(VectorStore):
    """A vector store that can be made to fail, or to hang, at any of its calls; else it is the one within."""

    def __init__(self, inner: VectorStore) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.trouble: Callable[[str], None] = lambda name: None

    @property
    def embeddings(self) -> Any:
        return self.inner.embeddings

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(name)
        self.trouble(name)
        return getattr(self.inner, name)(*args, **kwargs)

    def add_texts(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("add_texts", *args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("delete", *args, **kwargs)

    def get_by_ids(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("get_by_ids", *args, **kwargs)

    def similarity_search(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("similarity_search", *args, **kwargs)

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def refuse(name: str) -> None:
    raise ConnectionError("connection refused")


def filter_of_qdrant(wanted: Any) -> models.Filter:
    ((key, value),) = wanted.items()
    return models.Filter(must=[models.FieldCondition(key=f"metadata.{key}", match=models.MatchValue(value=value))])


@pytest.fixture
def troubled(client: QdrantClient) -> Troubled:
    return Troubled(qdrant(client))


@pytest.fixture
def index(store: MemoryStore, troubled: Troubled) -> Iterator[VectorStoreIndex]:
    opened = VectorStoreIndex(troubled, source=store, as_filter=filter_of_qdrant, timeout=30, retry_after=0)
    yield opened
    opened.close()


def held(client: QdrantClient) -> list[int]:
    """The rows that Qdrant holds, whoever's they are."""
    points, _ = client.scroll("memories", limit=10_000)
    metadata = [(point.payload or {})["metadata"] for point in points]
    return sorted(entry["mem0_row"] for entry in metadata if "mem0_row" in entry)


def test_the_vector_store_is_really_searched_and_holds_no_text(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    vectors = fill(store, 40)
    found = index.nearest(ALICE, vectors[:1], 5)
    assert found[0][0][1] == pytest.approx(1, abs=1e-3)
    assert "similarity_search" in troubled.calls
    assert held(client) == store.rows(ALICE).tolist()
    assert "fact" not in str(client.scroll("memories", limit=100))
    troubled.calls.clear()
    index.nearest(ALICE, vectors[:1], 5)
    assert troubled.calls == ["similarity_search"], "nothing changed: one call"


def test_another_process_goes_on_where_the_last_one_ended(store: MemoryStore, client: QdrantClient) -> None:
    vectors = fill(store, 30)
    VectorStoreIndex(qdrant(client), source=store).nearest(ALICE, vectors, 3)
    fill(store, 2, seed=9)
    again = Troubled(qdrant(client))
    sent: list[int] = []
    add = again.inner.add_texts
    again.inner.add_texts = lambda *args, **kw: (sent.append(len(args[0])), add(*args, **kw))[1]  # type: ignore
    index = VectorStoreIndex(again, source=store, as_filter=filter_of_qdrant)
    assert index.nearest(ALICE, unit_vectors(1, seed=9), 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert sent == [2, 1], "two new vectors, and how far it came"


@pytest.mark.parametrize("failing", ["add_texts", "delete", "get_by_ids", "similarity_search"])
def test_an_outage_costs_no_result_and_is_caught_up(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient, failing: str
) -> None:
    vectors = fill(store, 50)

    def fail(name: str) -> None:
        if name == failing:
            raise ConnectionError("connection refused")

    troubled.trouble = fail
    exact = index._exact_index.nearest(ALICE, vectors[:3], 10)
    assert same(index.nearest(ALICE, vectors[:3], 10), exact)
    late = fill(store, 1, seed=5)
    assert index.nearest(ALICE, late, 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    troubled.trouble = lambda name: None
    assert index.nearest(ALICE, late, 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert held(client) == store.rows(ALICE).tolist()


def test_one_that_hangs_is_given_up_and_asked_again_later(
    store: MemoryStore, troubled: Troubled, client: QdrantClient
) -> None:
    vectors = fill(store, 20)
    index = VectorStoreIndex(troubled, source=store, as_filter=filter_of_qdrant, timeout=0.2, retry_after=60)
    release, hung = threading.Event(), threading.Event()

    def hang(name: str) -> None:
        hung.set()
        release.wait(30)

    troubled.trouble = hang
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert hung.is_set()
    troubled.calls.clear()
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert troubled.calls == [], "it is left alone for a while"
    release.set()
    troubled.trouble = lambda name: None
    index._down_until = 0  # the while is over
    index._timeout = 30
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert held(client) == store.rows(ALICE).tolist()


def test_a_deletion_that_hung_does_not_undo_what_came_after_it(
    store: MemoryStore, troubled: Troubled, client: QdrantClient
) -> None:
    vectors = fill(store, 20)
    index = VectorStoreIndex(troubled, source=store, as_filter=filter_of_qdrant, timeout=30, retry_after=0)
    index.nearest(ALICE, vectors[:1], 1)
    fill(store, 3, seed=4)
    index._timeout = 0.2
    release, hung = threading.Event(), threading.Event()

    def hang(name: str) -> None:
        if name == "delete" and not hung.is_set():
            hung.set()
            release.wait(30)

    troubled.trouble = hang
    late = unit_vectors(3, seed=4)
    assert same(index.nearest(ALICE, late, 1), index._exact_index.nearest(ALICE, late, 1))
    assert hung.is_set()
    troubled.calls.clear()
    assert same(index.nearest(ALICE, late, 1), index._exact_index.nearest(ALICE, late, 1))
    assert troubled.calls == [], "nothing overtakes it"
    release.set()
    for thread in list(index._hung):
        thread.join(30)
    index._timeout = 30
    assert same(index.nearest(ALICE, late, 1), index._exact_index.nearest(ALICE, late, 1))
    assert held(client) == store.rows(ALICE).tolist()


def test_filling_goes_on_behind_the_last_batch_after_an_outage(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    vectors = fill(store, 1200)
    sent: list[int] = []
    add = troubled.inner.add_texts
    troubled.inner.add_texts = lambda *args, **kw: (sent.append(len(args[0])), add(*args, **kw))[1]  # type: ignore

    def fail(name: str) -> None:
        if name == "add_texts" and sum(sent) > 600:
            raise ConnectionError("connection reset")

    troubled.trouble = fail
    index.nearest(ALICE, vectors[:1], 1)
    assert sent == [500, 1, 500], "two batches, and how far the first one is"
    troubled.trouble = lambda name: None
    index.nearest(ALICE, vectors[:1], 1)
    assert sent[3:] == [500, 1, 200, 1], "the batch whose place was not noted, and what comes after it"
    assert held(client) == store.rows(ALICE).tolist()


def test_one_that_is_set_back_to_an_older_copy_of_itself_catches_up(store: MemoryStore, tmp_path: Path) -> None:
    live, copy = tmp_path / "qdrant", tmp_path / "copy"

    def used(seed: int) -> list[int]:
        with contextlib.closing(QdrantClient(path=str(live))) as client:
            index = VectorStoreIndex(qdrant(client), source=store)
            index.nearest(ALICE, unit_vectors(1, seed=seed), 1)
            return held(client)

    fill(store, 10)
    used(1)
    shutil.copytree(live, copy)
    fill(store, 5, seed=3)
    store.erase([store.list_memories(ALICE)[0].id], at=LATER)
    assert used(3) == store.rows(ALICE).tolist()
    shutil.rmtree(live)
    copy.rename(live)
    assert used(3) == store.rows(ALICE).tolist()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_one_whose_process_is_killed_while_it_is_filled_comes_to_hold_everything(
    store: MemoryStore, tmp_path: Path
) -> None:
    """Qdrant runs within the process here: it is killed with it, in the middle of what it was writing."""
    fill(store, 110)
    command = [sys.executable, str(NURSERY), store.path, str(tmp_path / "qdrant")]  # type: ignore[attr-defined]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout.split("\n")[:-1]
    assert said[-1] == "done", said
    assert said[:4] == ["added 50", "added 1", "added 50", "added 50"], "killed, and gone on behind what was noted"
    with contextlib.closing(QdrantClient(path=str(tmp_path / "qdrant"))) as client:
        assert held(client) == store.rows(ALICE).tolist()
        assert not VectorStoreIndex(qdrant(client), source=store).compare(ALICE)


def test_one_that_restarts_in_the_middle_of_catching_up_is_filled_again(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    vectors = fill(store, 1200)
    adds = iter(range(10))

    def lose_everything(name: str) -> None:
        if name == "add_texts" and next(adds) == 1:
            client.delete_collection("memories")
            troubled.inner = qdrant(client, vectors=troubled.embeddings)
            raise ConnectionError("connection reset")

    troubled.trouble = lose_everything
    exact = index._exact_index.nearest(ALICE, vectors[:5], 10)
    assert same(index.nearest(ALICE, vectors[:5], 10), exact)
    assert same(index.nearest(ALICE, vectors[:5], 10), exact)
    assert held(client) == store.rows(ALICE).tolist()


def test_one_that_comes_back_empty_without_a_word_is_filled_again(
    store: MemoryStore, index: VectorStoreIndex, client: QdrantClient
) -> None:
    vectors = fill(store, 30)
    index.nearest(ALICE, vectors[:1], 5)
    client.delete("memories", models.FilterSelector(filter=models.Filter(must=[])))
    assert held(client) == []
    exact = index._exact_index.nearest(ALICE, vectors[:2], 5)
    assert same(index.nearest(ALICE, vectors[:2], 5), exact), "the truth is asked"
    assert same(index.nearest(ALICE, vectors[:2], 5), exact)
    assert held(client) == store.rows(ALICE).tolist()


def test_what_is_deleted_leaves_the_vector_store_at_once_or_when_it_is_back(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    fill(store, 10)
    fill(store, 5, scope=BOB, seed=2)
    for scope in (ALICE, BOB):
        index.nearest(scope, unit_vectors(1), 1)
    item, other = store.list_memories(ALICE)[:2]
    store.erase([item.id], at=LATER)
    index.purge_deleted(ALICE)
    assert held(client) == sorted([*store.rows(ALICE).tolist(), *store.rows(BOB).tolist()])
    troubled.trouble = refuse
    store.erase([other.id], at=LATER)
    index.purge_deleted(ALICE)
    troubled.trouble = lambda name: None
    index.nearest(ALICE, unit_vectors(1), 1)
    assert held(client) == sorted([*store.rows(ALICE).tolist(), *store.rows(BOB).tolist()])
    store.erase_scope(BOB, at=LATER, purge=True)
    index.purge_deleted(None)
    index.nearest(ALICE, unit_vectors(1), 1)
    assert held(client) == store.rows(ALICE).tolist()


def test_a_store_of_earlier_processes_forgets_too(store: MemoryStore, client: QdrantClient) -> None:
    fill(store, 3)
    fill(store, 3, scope=Scope(agent_id="é.b c"), seed=3)
    first = VectorStoreIndex(qdrant(client), source=store)
    for scope in (ALICE, Scope(agent_id="é.b c")):
        first.nearest(scope, unit_vectors(1), 1)
    assert len(held(client)) == 6
    store.reset()
    VectorStoreIndex(qdrant(client), source=store).purge_deleted(None)
    assert held(client) == []


def test_a_vector_that_the_truth_no_longer_has_is_not_returned(
    store: MemoryStore, index: VectorStoreIndex, client: QdrantClient
) -> None:
    fill(store, 4)
    stray = unit_vectors(1, seed=77)
    index.nearest(ALICE, stray, 1)
    index._add_rows(ALICE, [999], stray)  # as a hung call of another process might, after the deletion
    assert 999 not in {row for row, _ in index.nearest(ALICE, stray, 10)[0]}
    assert held(client) == store.rows(ALICE).tolist(), "and it is swept out"


def damaged(client: QdrantClient, index: VectorStoreIndex, rows: list[int], how: str) -> None:
    """Do to what Qdrant holds of some rows what a crash, or a hand in the wrong collection, may have done."""
    ids = [index._id(ALICE, row) for row in rows]
    if how == "missing":
        client.delete("memories", models.PointIdsList(points=[*ids]))
    elif how == "mismatched":
        client.update_vectors("memories", [models.PointVectors(id=id, vector=[0.0] * (DIMS - 1) + [1.0]) for id in ids])


@pytest.mark.parametrize("how", ["missing", "mismatched", "extra"])
def test_what_it_holds_otherwise_than_the_truth_is_found_and_repaired(
    store: MemoryStore, index: VectorStoreIndex, client: QdrantClient, how: str
) -> None:
    vectors = fill(store, 60)
    index.nearest(ALICE, vectors[:1], 1)
    assert not index.compare(ALICE)
    rows = store.rows(ALICE).tolist()
    touched = [9_998, 9_999] if how == "extra" else [rows[3], rows[40]]
    if how == "extra":
        index._add_rows(ALICE, touched, unit_vectors(2, seed=8))
    damaged(client, index, touched, how)
    found = index.compare(ALICE, sample_size=60)
    assert list(getattr(found, how)) == touched
    assert [bool(found.missing), bool(found.extra), bool(found.mismatched)].count(True) == 1
    index.repair(found)
    assert not index.compare(ALICE, sample_size=60)
    assert held(client) == rows


def test_a_partition_of_someone_who_is_gone_is_known(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    fill(store, 3)
    fill(store, 3, scope=BOB, seed=2)
    for scope in (ALICE, BOB):
        index.nearest(scope, unit_vectors(1), 1)
    store.erase_scope(BOB, at=LATER, purge=True)
    assert set(index.list_partitions()) == {ALICE, BOB}
    assert not index.compare(BOB)
    assert (index.list_partitions(), held(client)) == ([ALICE], store.rows(ALICE).tolist())


def test_one_that_cannot_be_reached_is_not_said_to_be_sound(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex
) -> None:
    fill(store, 3)
    difference = index.compare(ALICE)
    troubled.trouble = refuse
    for asked in (index.list_partitions, lambda: index.compare(ALICE), lambda: index.repair(difference)):
        with pytest.raises(StoreError, match="connection refused"):
            asked()


def test_two_memories_share_a_collection_by_namespaces(tmp_path: Path, client: QdrantClient) -> None:
    stores = [SQLiteStore(tmp_path / f"{number}.db", durability="process") for number in (1, 2)]
    indexes = [VectorStoreIndex(qdrant(client), source=store, namespace=store.path) for store in stores]
    for number, (store, index) in enumerate(zip(stores, indexes, strict=True)):
        vectors = fill(store, 3 + number, seed=number + 1)
        assert len(index.nearest(ALICE, vectors[:1], 10)[0]) == 3 + number
    indexes[0].nearest(ALICE, unit_vectors(1), 1)
    assert len(held(client)) == 7
    for store in stores:
        store.close()


def test_a_filter_that_does_nothing_is_told_of_and_shows_nothing(store: MemoryStore, client: QdrantClient) -> None:
    fill(store, 3)
    fill(store, 3, scope=BOB, seed=2)
    VectorStoreIndex(qdrant(client), source=store).nearest(BOB, unit_vectors(1), 1)
    index = VectorStoreIndex(qdrant(client), source=store, as_filter=lambda wanted: None)
    with pytest.raises(ConfigError, match="as_filter"):
        index.nearest(ALICE, unit_vectors(1), 1)


def test_a_vector_store_that_cannot_delete_is_refused(store: MemoryStore, troubled: Troubled) -> None:
    fill(store, 3)

    def cannot(name: str) -> None:
        if name == "delete":
            raise NotImplementedError("delete method must be implemented by subclass.")

    troubled.trouble = cannot
    index = VectorStoreIndex(troubled, source=store, as_filter=filter_of_qdrant)
    with pytest.raises(ConfigError, match="cannot delete"):
        index.nearest(ALICE, unit_vectors(1), 1)


def test_one_that_gives_nothing_by_id_is_filled_anew_by_each_process(
    store: MemoryStore, troubled: Troubled, index: VectorStoreIndex, client: QdrantClient
) -> None:
    vectors = fill(store, 5)

    def cannot(name: str) -> None:
        if name == "get_by_ids":
            raise NotImplementedError

    troubled.trouble = cannot
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=1e-3)
    assert "similarity_search" in troubled.calls
    assert held(client) == store.rows(ALICE).tolist()


def test_a_purged_user_leaves_no_name_in_the_vector_store(
    store: MemoryStore, index: VectorStoreIndex, client: QdrantClient
) -> None:
    fill(store, 3)
    index.nearest(ALICE, unit_vectors(1), 1)
    assert "alice" in str(client.scroll("memories", limit=100))
    store.erase_scope(ALICE, at=LATER, purge=True)
    index.purge_deleted(None)
    assert "alice" not in str(client.scroll("memories", limit=100))


def test_a_vector_store_with_embeddings_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MemoryVectors"):
        open_memory(tmp_path, index=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)))


@pytest.mark.parametrize("way", ["index", "client", "function"])
def test_a_memory_searches_in_it(tmp_path: Path, client: QdrantClient, way: str) -> None:
    dims = HashEmbedder().dims
    parts: dict[str, Any] = {"index": qdrant(client, dims)} if way == "index" else {}
    config: dict[str, Any] = {}
    if way == "client":
        config = {"client": qdrant(client, dims)}
    elif way == "function":
        qdrant(client, dims)
        config = {"dims": dims, "client": lambda vectors: QdrantVectorStore(client, "memories", embedding=vectors)}
    if config:
        parts["config"] = {"vector_store": {"provider": "langchain", "config": config}}
    with open_memory(tmp_path, **parts) as memory:
        memory.add("I drink green tea.", user_id="ana")
        memory.add("I live in Porto.", user_id="ana")
        memory.add("I drink coffee.", user_id="ben")
        assert result_texts(memory.search("What tea?", user_id="ana", limit=1)) == ["I drink green tea."]
        assert result_texts(memory.search("coffee", user_id="ana", threshold=0.5)) == []
        assert len(held(client)) == 2
        memory.delete_all(user_id="ana", purge=True)
        assert held(client) == []
        assert memory.search("tea", user_id="ana")["results"] == []


@pytest.mark.parametrize("given", ["nothing", "folder", "client"])
def test_qdrant_by_mem0s_keys(tmp_path: Path, given: str) -> None:
    client = QdrantClient(":memory:")
    keys: dict[str, dict[str, Any]] = {
        "nothing": {},
        "folder": {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 1536},
    }
    config = {**keys.get(given, {"client": client}), "collection_name": "facts"}
    with open_memory(tmp_path, config={"vector_store": {"provider": "qdrant", "config": config}}) as memory:
        memory.add("I like tea", user_id="alice")
        memory.add("I like coffee", user_id="bob")
        assert result_texts(memory.search("tea", user_id="alice")) == ["I like tea"]
        assert isinstance(memory._index, VectorStoreIndex)
    if given == "client":
        assert client.count("facts").count


def test_a_wrong_key_of_qdrant_is_named(tmp_path: Path) -> None:
    config = {"provider": "qdrant", "config": {"colection_name": "facts"}}
    with pytest.raises(ConfigError, match=r"vector_store\.config \(qdrant\): .*colection_name.*'collection_name'"):
        open_memory(tmp_path, config={"vector_store": config})
