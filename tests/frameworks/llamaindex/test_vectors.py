"""A vector store of LlamaIndex's as projection: it follows the truth, through outages too, and shows nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from mem0_core import ConfigError, Scope
from mem0_core.contracts import ALICE, BOB, COSINE_TOLERANCE, DIMS, LATER, VectorIndexContract, unit_vectors
from mem0_core.interfaces import MemoryStore, VectorIndex
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from mem0_llamaindex import LlamaIndexVectors
from tests.support import open_memory, result_texts


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


def qdrant(client: QdrantClient) -> QdrantVectorStore:
    return QdrantVectorStore("memories", client=client)


class Minimal(BasePydanticVectorStore):
    """A vector store that has what every one must have, and nothing else, over a `SimpleVectorStore`."""

    stores_text: bool = True
    inner: Any = None
    nodes: dict[str, Any] = {}  # noqa: RUF012 - a pydantic field: each instance has its own

    @property
    def client(self) -> None:
        return None

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        self.nodes.update({node.node_id: node for node in nodes})
        ids: list[str] = self.inner.add(nodes)
        return ids

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        self.nodes.pop(ref_doc_id, None)
        self.inner.delete(ref_doc_id)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        found = self.inner.query(query)
        return VectorStoreQueryResult(nodes=[self.nodes[id] for id in found.ids], ids=found.ids)


class TestQdrantIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self, client: QdrantClient) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: LlamaIndexVectors(qdrant(client), source=store)


class TestSimpleIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: LlamaIndexVectors(SimpleVectorStore(), source=store)


class TestMinimalIndex(VectorIndexContract):
    @pytest.fixture
    def make_index(self) -> Callable[[MemoryStore], VectorIndex]:
        return lambda store: LlamaIndexVectors(Minimal(inner=SimpleVectorStore()), source=store)


fill = VectorIndexContract().fill


class Troubled(QdrantVectorStore):
    """A vector store that can be made to fail, or to hang, at any of its calls."""

    calls: list[str] = []  # noqa: RUF012 - a pydantic field: each instance has its own
    trouble: Any = None

    def _told(self, name: str) -> None:
        self.calls.append(name)
        if self.trouble is not None:
            self.trouble(name)

    def add(self, *args: Any, **kwargs: Any) -> Any:
        self._told("add")
        return super().add(*args, **kwargs)

    def delete_nodes(self, *args: Any, **kwargs: Any) -> Any:
        self._told("delete_nodes")
        return super().delete_nodes(*args, **kwargs)

    def get_nodes(self, *args: Any, **kwargs: Any) -> Any:
        self._told("get_nodes")
        return super().get_nodes(*args, **kwargs)

    def query(self, *args: Any, **kwargs: Any) -> Any:
        self._told("query")
        return super().query(*args, **kwargs)


def in_trouble(client: QdrantClient) -> Troubled:
    made: Any = Troubled  # whose fields are not all of its arguments
    over: Troubled = made("memories", client=client)
    return over


@pytest.fixture
def troubled(client: QdrantClient) -> Troubled:
    return in_trouble(client)


@pytest.fixture
def index(store: MemoryStore, troubled: Troubled) -> Iterator[LlamaIndexVectors]:
    opened = LlamaIndexVectors(troubled, source=store, timeout=30, retry_after=0)
    yield opened
    opened.close()


def held(client: QdrantClient) -> list[int]:
    """The rows that Qdrant holds, whoever's they are."""
    points, _ = client.scroll("memories", limit=10_000)
    return sorted(point.payload["mem0_row"] for point in points if "mem0_row" in (point.payload or {}))  # type: ignore[index]


def same(found: list[list[tuple[int, float]]], expected: list[list[tuple[int, float]]]) -> bool:
    """The same rows with the same scores, but for the order in which floats are added up."""
    rows = [[row for row, _ in of_query] for of_query in found]
    scores = [score for of_query in found for _, score in of_query]
    return rows == [[row for row, _ in of_query] for of_query in expected] and scores == pytest.approx(
        [score for of_query in expected for _, score in of_query], abs=COSINE_TOLERANCE
    )


def test_the_vector_store_is_really_searched_and_holds_no_text(
    store: MemoryStore, troubled: Troubled, index: LlamaIndexVectors, client: QdrantClient
) -> None:
    vectors = fill(store, 40)
    assert index.nearest(ALICE, vectors[:1], 5)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert held(client) == store.rows(ALICE).tolist()
    assert "fact" not in str(client.scroll("memories", limit=100))
    troubled.calls.clear()
    index.nearest(ALICE, vectors[:1], 5)
    assert troubled.calls == ["query"], "nothing changed: one call"


def test_another_process_goes_on_where_the_last_one_ended(store: MemoryStore, client: QdrantClient) -> None:
    fill(store, 30)
    LlamaIndexVectors(qdrant(client), source=store).nearest(ALICE, unit_vectors(1), 3)
    fill(store, 2, seed=9)
    again = in_trouble(client)
    found = LlamaIndexVectors(again, source=store).nearest(ALICE, unit_vectors(1, seed=9), 1)
    assert found[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert again.calls.count("add") == 2, "the new vectors, and how far it came"
    assert held(client) == store.rows(ALICE).tolist()


def test_a_simple_store_that_was_saved_goes_on_too(store: MemoryStore, tmp_path: Path) -> None:
    fill(store, 20)
    simple = SimpleVectorStore()
    LlamaIndexVectors(simple, source=store).nearest(ALICE, unit_vectors(1), 3)
    simple.persist(str(tmp_path / "vectors.json"))
    late = fill(store, 1, seed=5)
    again = SimpleVectorStore.from_persist_path(str(tmp_path / "vectors.json"))
    before = len(again.data.embedding_dict)
    assert LlamaIndexVectors(again, source=store).nearest(ALICE, late, 1)[0][0][1] == pytest.approx(
        1, abs=COSINE_TOLERANCE
    )
    assert len(again.data.embedding_dict) == before + 2, "the vector, and the second of two marks of how far it came"


@pytest.mark.parametrize("failing", ["add", "delete_nodes", "get_nodes", "query"])
def test_an_outage_costs_no_result_and_is_caught_up(
    store: MemoryStore, troubled: Troubled, index: LlamaIndexVectors, client: QdrantClient, failing: str
) -> None:
    vectors = fill(store, 50)

    def fail(name: str) -> None:
        if name == failing:
            raise ConnectionError("connection refused")

    troubled.trouble = fail
    exact = index._exact_index.nearest(ALICE, vectors[:3], 10)
    assert same(index.nearest(ALICE, vectors[:3], 10), exact)
    late = fill(store, 1, seed=5)
    assert index.nearest(ALICE, late, 1)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    troubled.trouble = None
    assert index.nearest(ALICE, late, 1)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert held(client) == store.rows(ALICE).tolist()


def test_one_that_hangs_is_given_up_and_asked_again_later(
    store: MemoryStore, troubled: Troubled, client: QdrantClient
) -> None:
    vectors = fill(store, 20)
    index = LlamaIndexVectors(troubled, source=store, timeout=0.2, retry_after=60)
    release, hung = threading.Event(), threading.Event()

    def hang(name: str) -> None:
        hung.set()
        release.wait(30)

    troubled.trouble = hang
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert hung.is_set()
    troubled.calls.clear()
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert troubled.calls == [], "it is left alone for a while"
    troubled.trouble = None
    release.set()
    index._down_until = 0  # the while is over
    index._timeout = 30
    assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1, abs=COSINE_TOLERANCE)
    assert held(client) == store.rows(ALICE).tolist()


def test_one_that_comes_back_empty_is_filled_again(
    store: MemoryStore, index: LlamaIndexVectors, client: QdrantClient
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
    store: MemoryStore, troubled: Troubled, index: LlamaIndexVectors, client: QdrantClient
) -> None:
    def refuse(name: str) -> None:
        raise ConnectionError("connection refused")

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
    troubled.trouble = None
    index.nearest(ALICE, unit_vectors(1), 1)
    assert held(client) == sorted([*store.rows(ALICE).tolist(), *store.rows(BOB).tolist()])
    store.erase_scope(BOB, at=LATER, purge=True)
    index.purge_deleted(None)
    index.nearest(ALICE, unit_vectors(1), 1)
    assert held(client) == store.rows(ALICE).tolist()


def test_a_process_that_only_deletes_tells_the_store_where_it_knows_how_long_vectors_are(
    store: MemoryStore, client: QdrantClient, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, 3)
    LlamaIndexVectors(qdrant(client), source=store).nearest(ALICE, unit_vectors(1), 1)
    store.reset()
    LlamaIndexVectors(qdrant(client), source=store).purge_deleted(None)
    assert "deletions are sent later" in caplog.text  # an empty store has no vectors of any length
    assert len(held(client)) == 3
    LlamaIndexVectors(qdrant(client), source=store, dims=DIMS).purge_deleted(None)
    assert held(client) == []


def test_a_vector_that_the_truth_no_longer_has_or_another_scope_has_is_not_returned(
    store: MemoryStore, index: LlamaIndexVectors, client: QdrantClient
) -> None:
    fill(store, 4)
    theirs = fill(store, 3, scope=BOB, seed=2)
    index.nearest(ALICE, theirs, 1)
    index.nearest(BOB, theirs, 1)
    stray = unit_vectors(1, seed=77)
    index._add_rows(ALICE, [999], stray)  # as a hung call of another process might, after the deletion
    mine = set(store.rows(ALICE).tolist())
    assert {row for row, _ in index.nearest(ALICE, stray, 10)[0]} == mine
    assert {row for found in index.nearest(ALICE, theirs, 10) for row, _ in found} == mine
    assert 999 not in held(client), "and it is swept out"


def test_a_store_that_does_not_filter_is_told_of_and_shows_nothing(store: MemoryStore) -> None:
    class Open(Minimal):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            query.filters = None
            return super().query(query)

    fill(store, 3)
    fill(store, 3, scope=BOB, seed=2)
    shared = Open(inner=SimpleVectorStore())
    index = LlamaIndexVectors(shared, source=store)
    with pytest.raises(ConfigError, match=r"Open does not filter.*MetadataFilters"):
        index.nearest(ALICE, unit_vectors(1), 1)


def test_two_memories_share_a_collection_by_namespaces(tmp_path: Path, client: QdrantClient) -> None:
    stores = [SQLiteStore(tmp_path / f"{number}.db", durability="process") for number in (1, 2)]
    for number, store in enumerate(stores):
        index = LlamaIndexVectors(qdrant(client), source=store, namespace=store.path)
        vectors = fill(store, 3 + number, seed=number + 1)
        assert len(index.nearest(ALICE, vectors[:1], 10)[0]) == 3 + number
    assert len(held(client)) == 7
    for store in stores:
        store.close()


@pytest.mark.parametrize("way", ["index", "client"])
def test_a_memory_searches_in_it(tmp_path: Path, client: QdrantClient, way: str) -> None:
    parts: dict[str, Any] = {"index": qdrant(client)} if way == "index" else {}
    if way == "client":
        config = {"client": qdrant(client), "dims": HashEmbedder().dims}
        parts["config"] = {"vector_store": {"provider": "llamaindex", "config": config}}
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


def test_what_is_no_vector_store_is_refused(tmp_path: Path, store: MemoryStore) -> None:
    with (
        pytest.raises(ConfigError, match="client"),
        open_memory(
            tmp_path, config={"vector_store": {"provider": "llamaindex", "config": {"client": "memories"}}}
        ) as memory,
    ):
        memory.search("x", user_id="ana")
    assert LlamaIndexVectors(SimpleVectorStore(), source=store).nearest(Scope("nobody"), unit_vectors(1), 3) == [[]]


@pytest.mark.parametrize("kind", ["qdrant", "simple", "minimal"])
@pytest.mark.parametrize("how", ["missing", "extra"])
def test_what_it_holds_otherwise_than_the_truth_is_found_and_repaired(
    store: MemoryStore, client: QdrantClient, kind: str, how: str
) -> None:
    """Minimal gives nothing by an id, so every row is searched for by its vector."""
    inner = SimpleVectorStore()
    makes: dict[str, Any] = {"qdrant": lambda: qdrant(client), "minimal": lambda: Minimal(inner=inner)}
    index = LlamaIndexVectors(makes.get(kind, lambda: inner)(), source=store)
    vectors = fill(store, 40)
    found = index.nearest(ALICE, vectors[:2], 5)
    assert not index.compare(ALICE)
    rows = [9_998, 9_999] if how == "extra" else store.rows(ALICE).tolist()[3:5]
    if how == "extra":
        index._add_rows(ALICE, rows, unit_vectors(2, seed=8))
    else:
        index._delete_rows(ALICE, rows)
    difference = index.compare(ALICE)
    assert list(getattr(difference, how)) == rows
    index.repair(difference)
    assert not index.compare(ALICE)
    assert same(index.nearest(ALICE, vectors[:2], 5), found)
    index.close()
