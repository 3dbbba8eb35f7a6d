"""`Mem0VectorStore`: LangChain's suite for vector stores, and a scope's memories as documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from mem0_core import InputError, Memory, ScopeError
from mem0_langchain import Mem0VectorStore
from tests.support import open_memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path) as opened:
        yield opened


@pytest.fixture
def store(memory: Memory) -> Mem0VectorStore:
    return Mem0VectorStore(memory, user_id="ana")


class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with Memory({"path": tmp_path / "memory"}, embedder=self.get_embeddings()) as memory:
            yield Mem0VectorStore(memory, user_id="ana")


def test_documents_are_memories_and_memories_are_documents(memory: Memory, store: Mem0VectorStore) -> None:
    (id,) = store.add_texts(["Ana's flat has a balcony."], [{"topic": "home"}], ids=["flat"])
    added = memory.add("Ana drinks green tea.", user_id="ana")["results"][0]["id"]
    assert id == "flat"
    assert memory.search("balcony", user_id="ana")["results"][0]["memory"] == "Ana's flat has a balcony."
    assert memory.context(None, user_id="ana", recent=10)["messages"][-1]["content"] == "Ana drinks green tea."
    (found,) = store.similarity_search("green tea", k=1)
    assert (found.id, found.page_content) == (added, "Ana drinks green tea.")
    assert store.get_by_ids([added, "flat"]) == [
        Document("Ana's flat has a balcony.", id="flat", metadata={"topic": "home"}),
        found,
    ]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_documents_are_found_by_a_vector(memory: Memory, store: Mem0VectorStore, mode: str) -> None:
    texts = ["Tea in the morning.", "Tea in the evening.", "The train leaves at nine."]
    store.add_texts(texts, [{"n": number} for number in range(3)], ids=["a", "b", "c"])
    Mem0VectorStore(memory, user_id="ben").add_texts(["Tea in the morning!"])
    assert store.embeddings is not None
    asked = store.embeddings.embed_query("Tea in the morning")
    assert store.embeddings.embed_documents(texts[:1])[0] == pytest.approx(
        memory.embedder.embed(texts[:1])[0].tolist(), abs=1e-6
    )

    def search(name: str, vector: list[float], **options: Any) -> list[str | None]:
        if mode == "sync":
            return [found.id for found in getattr(store, name)(vector, **options)]
        return [found.id for found in asyncio.run(getattr(store, f"a{name}")(vector, **options))]

    assert search("similarity_search_by_vector", asked, k=2) == ["a", "b"]
    assert search("similarity_search_by_vector", asked, filter={"n": {"gte": 1}}) == ["b", "c"]
    diverse = search("max_marginal_relevance_search_by_vector", asked, k=2, lambda_mult=0.1)
    assert diverse == ["a", "c"]
    with pytest.raises(InputError, match="dimensions"):
        search("similarity_search_by_vector", [0.5])


def test_filters_scores_and_retrievers(store: Mem0VectorStore) -> None:
    store.add_texts(["Tea in the morning.", "Tea in the evening."], [{"n": 1}, {"n": 2}], ids=["a", "b"])
    assert [found.id for found in store.similarity_search("tea", filter={"n": {"gt": 1}})] == ["b"]
    scored = store.similarity_search_with_relevance_scores("tea in the morning")
    assert scored[0][0].id == "a"
    assert all(0 <= score <= 1 for _, score in scored)
    retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {"n": 2}})
    assert [found.id for found in retriever.invoke("tea")] == ["b"]
    assert [found.id for found in asyncio.run(retriever.ainvoke("tea"))] == ["b"]


def test_diverse_results_leave_out_a_near_repetition(store: Mem0VectorStore) -> None:
    store.add_texts(["green tea with lemon", "green tea with lemon please", "a train to porto"], ids=["a", "b", "c"])
    chosen = store.max_marginal_relevance_search("green tea with lemon", k=2, lambda_mult=0.1)
    assert [found.id for found in chosen] == ["a", "c"]
    assert asyncio.run(store.amax_marginal_relevance_search("green tea with lemon", k=2, lambda_mult=0.1)) == chosen
    assert Mem0VectorStore(store._documents.memory, user_id="ben").max_marginal_relevance_search("tea") == []


def test_equal_and_blank_texts_are_documents_of_their_own(memory: Memory, store: Mem0VectorStore) -> None:
    ids = store.add_texts(["same", "Same!", "", "same"], [{"n": n} for n in range(4)], ids=["a", "b", "c", "d"])
    assert ids == ["a", "b", "c", "d"]
    found = {one.id: (one.page_content, one.metadata) for one in store.get_by_ids(ids)}
    assert found == {"a": ("same", {"n": 0}), "b": ("Same!", {"n": 1}), "c": ("", {"n": 2}), "d": ("same", {"n": 3})}
    store.add_texts(["same", "new"], ids=["b", "a"])
    assert {one.id: one.page_content for one in store.get_by_ids(["a", "b"])} == {"a": "new", "b": "same"}
    assert store.delete(["a", "b"])
    assert [one.id for one in store.get_by_ids(ids)] == ["c", "d"]
    memory.add("A fact.", user_id="ana")
    store.delete()  # all documents
    assert [row["memory"] for row in memory.get_all(user_id="ana")["results"]] == ["A fact."]


def test_one_id_twice_keeps_the_last_text(store: Mem0VectorStore) -> None:
    assert store.add_texts(["one", "two"], ids=["a", "a"]) == ["a", "a"]
    assert [one.page_content for one in store.get_by_ids(["a"])] == ["two"]


def test_a_store_reaches_one_scope(memory: Memory, store: Mem0VectorStore) -> None:
    ben = Mem0VectorStore(memory, user_id="ben")
    ben.add_texts(["Ben's secret."], ids=["s"])
    store.add_texts(["Ana's own."], ids=["s"])
    assert [one.page_content for one in ben.get_by_ids(["s"])] == ["Ben's secret."]
    assert [one.page_content for one in store.similarity_search("secret")] == ["Ana's own."]
    store.delete(["s"])
    assert len(ben.get_by_ids(["s"])) == 1
    for use in (store.similarity_search, lambda query, filter: store.delete(filter=filter)):
        with pytest.raises(ScopeError):
            use("secret", filter={"user_id": "ben"})
    with pytest.raises(ScopeError):
        Mem0VectorStore(memory)


def test_a_wrong_document_writes_nothing(memory: Memory, store: Mem0VectorStore) -> None:
    metadata: Any = {"when": object()}
    with pytest.raises(InputError):
        store.add_texts(["good", "bad"], [{}, metadata])
    with pytest.raises(InputError, match="ids has 1 entries for 2 texts"):
        store.add_texts(["good", "bad"], ids=["a"])
    assert memory.get_all(user_id="ana")["results"] == []


def test_a_store_is_made_from_texts(tmp_path: Path) -> None:
    config = {"path": tmp_path / "memory"}
    store = Mem0VectorStore.from_texts(
        ["one", "two"], DeterministicFakeEmbedding(size=6), ids=["1", "2"], config=config, user_id="ana"
    )
    assert len(store.get_by_ids(["1", "2"])) == 2
    memory = store._documents.memory
    again = asyncio.run(
        Mem0VectorStore.afrom_texts(["three"], DeterministicFakeEmbedding(size=6), memory=memory, user_id="ana")
    )
    assert len(again.similarity_search("three", k=9)) == 3
    memory.close()
