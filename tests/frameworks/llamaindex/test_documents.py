"""`Mem0VectorStore`: an index over one scope of a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from mem0_core import InputError, Memory, ScopeError
from mem0_llamaindex import Mem0Embedding, Mem0VectorStore


@pytest.fixture
def store(core: Memory) -> Mem0VectorStore:
    return Mem0VectorStore(core, user_id="maya")


def query(store: Mem0VectorStore, mode: str, /, **options: Any) -> list[str]:
    asked = VectorStoreQuery(**options)
    return list((store.query(asked) if mode == "sync" else asyncio.run(store.aquery(asked))).ids or ())


def where(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_index_over_a_scope_finds_documents_and_memories(core: Memory, store: Mem0VectorStore, mode: str) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))
    index.insert(Document(text="Maya's flat has a balcony.", doc_id="flat", metadata={"topic": "home"}))
    core.add("Maya drinks green tea.", user_id="maya")
    retriever = index.as_retriever(similarity_top_k=1)

    def ask(question: str) -> Any:
        (found,) = retriever.retrieve(question) if mode == "sync" else asyncio.run(retriever.aretrieve(question))
        return found

    assert ask("green tea").text == "Maya drinks green tea."
    found = ask("balcony of the flat")
    assert (found.text, found.metadata, found.node.ref_doc_id) == (
        "Maya's flat has a balcony.",
        {"topic": "home"},
        "flat",
    )
    assert 0 < found.score <= 1
    assert core.search("balcony", user_id="maya")["results"][0]["memory"] == "Maya's flat has a balcony."
    index.delete_ref_doc("flat")
    assert ask("balcony of the flat").text == "Maya drinks green tea."


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_nodes_are_returned_as_they_were_added(store: Mem0VectorStore, mode: str) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")}
    nodes = [
        TextNode(id_="a", text="same", metadata={"n": 1, "file_path": "/x.txt"}, relationships=source),
        TextNode(id_="b", text="same", metadata={"n": 2, "user_id": "ben"}),
        TextNode(id_="c", text="", metadata={}),
    ]
    ids = store.add(nodes) if mode == "sync" else asyncio.run(store.async_add(nodes))
    assert ids == ["a", "b", "c"]
    found = store.get_nodes(["a", "b", "c"]) if mode == "sync" else asyncio.run(store.aget_nodes(["a", "b", "c"]))
    assert sorted(found, key=lambda node: node.node_id) == nodes
    store.add([TextNode(id_="a", text="new")])
    assert [node.get_content() for node in store.get_nodes(["a"])] == ["new"]
    if mode == "sync":
        store.delete_nodes(["a"])
        store.delete_nodes()  # names no node
        assert len(store.get_nodes()) == 2
        store.clear()
    else:
        asyncio.run(store.adelete_nodes(["a"]))
        asyncio.run(store.aclear())
    assert store.get_nodes() == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_filters_are_translated(store: Mem0VectorStore, mode: str) -> None:
    store.add(
        [
            TextNode(id_=str(n), text=f"tea number {n}", metadata={"n": n, "tag": tag, "user_id": "x"})
            for n, tag in enumerate(("green", "black", "Greenish"))
        ]
    )
    either = FilterCondition.OR
    for filters, expected in (
        (MetadataFilters(filters=[where("n", 1)]), {"1"}),
        (MetadataFilters(filters=[where("n", 1, FilterOperator.GTE)]), {"1", "2"}),
        (MetadataFilters(filters=[where("n", [0, 2], FilterOperator.IN), where("n", 0, FilterOperator.NE)]), {"2"}),
        (MetadataFilters(filters=[where("n", 0), where("tag", "black")], condition=either), {"0", "1"}),
        (MetadataFilters(filters=[where("tag", "green", FilterOperator.TEXT_MATCH_INSENSITIVE)]), {"0", "2"}),
        (MetadataFilters(filters=[where("user_id", "x")]), {"0", "1", "2"}),
        (MetadataFilters(filters=[where("user_id", "maya")]), set()),
        (MetadataFilters(filters=[where("none", None, FilterOperator.IS_EMPTY)]), {"0", "1", "2"}),
        (
            MetadataFilters(
                filters=[MetadataFilters(filters=[where("n", 0)], condition=FilterCondition.NOT), where("tag", "black")]
            ),
            {"1"},
        ),
    ):
        assert set(query(store, mode, query_str="tea", similarity_top_k=9, filters=filters)) == expected
    assert set(query(store, mode, query_str="tea", similarity_top_k=9, node_ids=["0", "1"])) == {"0", "1"}
    with pytest.raises(ValueError, match="'any' takes a list"):
        query(store, mode, query_str="tea", filters=MetadataFilters(filters=[where("n", "1", FilterOperator.ANY)]))
    with pytest.raises(ValueError, match="no text and no vector"):
        query(store, mode)
    with pytest.raises(InputError, match="dimensions"):
        query(store, mode, query_embedding=[0.1])
    vector = Mem0Embedding(store.client).get_query_embedding("green tea")
    (best, *_) = query(store, mode, query_embedding=vector, similarity_top_k=3)
    assert best == query(store, mode, query_str="green tea", similarity_top_k=1)[0]
    near_black = MetadataFilters(filters=[where("tag", "black")])
    assert set(query(store, mode, query_embedding=vector, similarity_top_k=3, filters=near_black)) == {"1"}
    diverse = query(store, mode, query_embedding=vector, similarity_top_k=2, mode=VectorStoreQueryMode.MMR)
    assert len(set(diverse)) == 2


METADATA: dict[str, dict[str, Any]] = {
    str(number): {} if value is ... else {"x": value, "y": number % 3}
    for number, value in enumerate((1, 2.5, -1, "a", "ab", "Ab", "", ["a", "b"], ["ab"], [1], [], None, ...))
}


TESTS: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: lambda found, value: found == value,
    FilterOperator.GT: lambda found, value: found > value,
    FilterOperator.LT: lambda found, value: found < value,
    FilterOperator.GTE: lambda found, value: found >= value,
    FilterOperator.LTE: lambda found, value: found <= value,
    FilterOperator.IN: lambda found, value: found in value,
    FilterOperator.ANY: lambda found, value: any(one in found for one in value),
    FilterOperator.ALL: lambda found, value: all(one in found for one in value),
    FilterOperator.CONTAINS: lambda found, value: value in found,
    FilterOperator.TEXT_MATCH: lambda found, value: value in found + "",  # an error for a list
    FilterOperator.TEXT_MATCH_INSENSITIVE: lambda found, value: value in (found + "").lower(),
}


def is_match(operator: FilterOperator, found: Any, value: Any) -> bool | None:
    """Return the result of a filter as LlamaIndex's own stores define it; None where they raise an error."""
    if operator is FilterOperator.IS_EMPTY:
        return found in (None, "", [])
    if operator in (FilterOperator.NE, FilterOperator.NIN):
        return found != value if operator is FilterOperator.NE else found not in value
    try:
        return found is not None and TESTS[operator](found, value)
    except TypeError:
        return None


@pytest.mark.parametrize("operator", list(FilterOperator))
def test_filters_mean_what_they_mean_in_stores_of_llamaindex(store: Mem0VectorStore, operator: FilterOperator) -> None:
    store.add([TextNode(id_=id, text=f"node {id}", metadata=metadata) for id, metadata in METADATA.items()])
    values: dict[FilterOperator, list[Any]] = {
        FilterOperator.IN: [["a", "ab"], [1, 2], []],
        FilterOperator.NIN: [["a", "ab"], [1, 2], []],
        FilterOperator.ANY: [["a"], ["a", "ab"], []],
        FilterOperator.ALL: [["a"], ["a", "b"], []],
        FilterOperator.IS_EMPTY: [None],
        FilterOperator.CONTAINS: ["a", 1],
    }
    for value in values.get(operator, ["a", "b"] if "text" in operator else ["a", 1, 2.5]):
        for condition in FilterCondition:
            filters = MetadataFilters(filters=[where("x", value, operator), where("y", 1)], condition=condition)
            found = {node.node_id for node in store.get_nodes(filters=filters)}
            for id, metadata in METADATA.items():
                results = [is_match(operator, metadata.get("x"), value), metadata.get("y") == 1]
                expected = all(results) if condition is FilterCondition.AND else any(results)
                if results[0] is not None:
                    assert (id in found) == (expected != (condition is FilterCondition.NOT)), (metadata, filters)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_queries_have_modes(store: Mem0VectorStore, mode: str) -> None:
    texts = ("green tea", "green tea.", "green tea!", "a bicycle", "tea of the green mountains")
    store.add([TextNode(id_=str(number), text=text) for number, text in enumerate(texts)])
    modes = VectorStoreQueryMode
    by_words = query(store, mode, query_str="bicycle", similarity_top_k=5, mode=modes.TEXT_SEARCH)
    assert by_words == query(store, mode, query_str="bicycle", similarity_top_k=5, mode=modes.SPARSE) == ["3"]
    assert query(store, mode, query_str="bicycle", mode=modes.HYBRID, alpha=0.0) == ["3"]
    assert query(store, mode, query_str="bicycle", mode=modes.SEMANTIC_HYBRID) == ["3"]
    alike = {"query_str": "green tea", "similarity_top_k": 2, "mode": modes.MMR}
    varied = query(store, mode, **alike, mmr_threshold=0.1)
    assert set(query(store, mode, **alike, mmr_threshold=1.0)) <= {"0", "1", "2"}
    assert set(varied) & {"3", "4"}
    assert len(query(store, mode, query_str="tea", similarity_top_k=1, hybrid_top_k=3, mode=modes.HYBRID)) == 3
    with pytest.raises(ValueError, match="no query mode 'svm'"):
        query(store, mode, query_str="tea", mode=modes.SVM)
    with pytest.raises(ValueError, match="alpha must lie"):
        query(store, mode, query_str="tea", mode=modes.HYBRID, alpha=2.0)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_index_updates_and_deletes_documents(core: Memory, store: Mem0VectorStore, mode: str) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))
    documents = [Document(text=f"The flat costs {price}.", doc_id=f"flat {price}") for price in (700, 800)]

    def change(method: str, *arguments: Any) -> None:
        if mode == "sync":
            getattr(index, method)(*arguments)
        else:
            asyncio.run(getattr(index, f"a{method}")(*arguments))

    for document in documents:
        change("insert", document)
    change("update_ref_doc", Document(text="The flat costs 750.", doc_id="flat 700"))
    assert [one["memory"] for one in core.get_all(user_id="maya")["results"]] == [
        "The flat costs 800.",
        "The flat costs 750.",
    ]
    (node,) = store.get_nodes(filters=MetadataFilters(filters=[where("ref_doc_id", "flat 800")]))
    change("delete_nodes", [node.node_id])
    change("delete_ref_doc", "flat 700")
    assert core.get_all(user_id="maya")["results"] == []


def test_a_store_reaches_one_scope(core: Memory, store: Mem0VectorStore) -> None:
    ben = Mem0VectorStore(core, user_id="ben")
    ben.add([TextNode(id_="s", text="Ben's secret.")])
    assert store.get_nodes(["s"]) == []
    store.clear()
    assert len(ben.get_nodes(["s"])) == 1
    with pytest.raises(ScopeError):
        Mem0VectorStore(core)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_query_for_no_document_finds_none(store: Mem0VectorStore, mode: str) -> None:
    store.add([TextNode(text="Maya's flat has a balcony.", id_="flat")])
    assert query(store, mode, query_str="balcony", doc_ids=[]) == []
    assert query(store, mode, query_str="balcony", doc_ids=None) == ["flat"]
