"""`Mem0PropertyGraphStore`: LlamaIndex's property graph retrievers on the graph of a scope."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import Document, PropertyGraphIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.graph_stores.types import KG_NODES_KEY, KG_RELATIONS_KEY, EntityNode, LabelledNode, Relation
from llama_index.core.indices.property_graph import LLMSynonymRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode, TransformComponent
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery, VectorStoreQueryMode

from mem0_core import InputError, Memory, ScopeError
from mem0_llamaindex import Mem0PropertyGraphStore


@pytest.fixture
def store(core: Memory) -> Mem0PropertyGraphStore:
    core.add("My sister Ana works at Initech.", user_id="maya")
    core.add("I live in Porto.", user_id="maya")
    core.add("I live in Rome.", user_id="ben")
    return Mem0PropertyGraphStore(core, user_id="maya")


def call(store: Mem0PropertyGraphStore, mode: str, method: str, *arguments: Any, **more: Any) -> Any:
    if mode == "sync":
        return getattr(store, method)(*arguments, **more)
    return asyncio.run(getattr(store, f"a{method}")(*arguments, **more))


def names(triplets: Any) -> set[str]:
    return {node.id.lower() for source, _, destination in triplets for node in (source, destination)}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_entities_and_relations_of_a_scope_are_read(store: Mem0PropertyGraphStore, mode: str) -> None:
    every = {node.id.lower() for node in call(store, mode, "get")}
    assert {"ana", "initech", "porto"} <= every
    assert "rome" not in every
    (ana,) = call(store, mode, "get", ids=["ANA"])
    assert "initech" in names(call(store, mode, "get_triplets", entity_names=["ana"]))
    assert call(store, mode, "get_triplets") == []
    (job,) = call(store, mode, "get_triplets", entity_names=["Initech"])
    assert call(store, mode, "get_triplets", ids=["initech"], relation_names=[job[1].label]) == [job]
    assert "porto" not in names(call(store, mode, "get_rel_map", [ana], depth=1))
    around = {"depth": 1, "ignore_rels": [job[1].label]}
    assert call(store, mode, "get_rel_map", [EntityNode(name="Initech")], **around) == []
    rows = call(store, mode, "structured_query", "MATCH (a)-[r]->(b) RETURN b.name AS name")
    assert "Porto" in {row["name"] for row in rows}
    assert job[1].label in store.get_schema_str()


def test_a_retriever_of_a_property_graph_index_finds_relations(store: Mem0PropertyGraphStore) -> None:
    class Keywords(MockLLM):
        def predict(self, *arguments: Any, **more: Any) -> str:
            return "INITECH^PARIS"

        async def apredict(self, *arguments: Any, **more: Any) -> str:
            return "INITECH^PARIS"

    llm, embeddings = Keywords(max_tokens=9), MockEmbedding(embed_dim=1)
    index = PropertyGraphIndex.from_existing(property_graph_store=store, llm=llm, embed_model=embeddings)
    retriever = index.as_retriever(sub_retrievers=[LLMSynonymRetriever(store, llm=llm, include_text=False)])
    (found, *_) = retriever.retrieve("Who works at Initech?")
    assert "Initech" in found.text


class Extractor(TransformComponent):
    """Finds "NAME VERB NAME" in texts of three words."""

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        for node in nodes:
            source, verb, target = node.get_content().split()
            node.metadata[KG_NODES_KEY] = [EntityNode(name=source, label="PERSON"), EntityNode(name=target)]
            node.metadata[KG_RELATIONS_KEY] = [Relation(label=verb.upper(), source_id=source, target_id=target)]
        return list(nodes)


def link(source: str, label: str, target: str, **properties: Any) -> Relation:
    return Relation(label=label, source_id=source, target_id=target, properties=properties)


def labels(triplets: Any) -> list[tuple[str, str, str]]:
    return [(source.id, relation.label, target.id) for source, relation, target in triplets]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_nodes_and_relations_are_written_read_and_deleted(store: Mem0PropertyGraphStore, mode: str) -> None:
    tom = EntityNode(name="Tom", label="person", properties={"age": 40, "tags": ["a", "b"]})
    call(store, mode, "upsert_nodes", [tom, EntityNode(name="Rex", label="dog")])
    call(store, mode, "upsert_relations", [link("Tom", "OWNS", "Rex", since=2020)])
    assert call(store, mode, "get", ids=["tom"]) == [tom]
    assert call(store, mode, "get", properties={"age": 40}) == [tom]
    (owns,) = call(store, mode, "get_triplets", entity_names=["Rex"])
    assert owns[0] == tom
    assert owns[1] == link("Tom", "OWNS", "Rex", since=2020)
    assert call(store, mode, "get_triplets", properties={"since": 2020}) == [owns]
    call(store, mode, "upsert_nodes", [EntityNode(name="Tom", label="person", properties={"age": 41})])
    call(store, mode, "upsert_relations", [link("Tom", "OWNS", "Rex", since=2021)])
    (owns,) = call(store, mode, "get_triplets", entity_names=["Rex"])
    assert owns[0].properties == {"age": 41}
    assert owns[1].properties == {"since": 2021}
    rows = call(store, mode, "structured_query", "MATCH (a:person)-[:owns]->(b:dog) RETURN b.name AS dog")
    assert rows == [{"dog": "Rex"}]
    call(store, mode, "delete", relation_names=["OWNS"])
    assert call(store, mode, "get_triplets", entity_names=["Rex"]) == []
    assert [node.id for node in call(store, mode, "get", ids=["Rex", "Tom"])] == ["Rex", "Tom"]
    call(store, mode, "delete", entity_names=["Tom"])
    assert call(store, mode, "get", ids=["Rex", "Tom"]) == [EntityNode(name="Rex", label="dog")]
    call(store, mode, "delete", ids=[])
    assert call(store, mode, "get", ids=["Rex"])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_chunks_are_memories_and_take_their_relations_along(store: Mem0PropertyGraphStore, mode: str) -> None:
    chunks = [TextNode(id_=f"chunk-{name}", text=f"{name} owns Rex", metadata={"page": 3}) for name in ("Tom", "Eve")]
    call(store, mode, "upsert_llama_nodes", chunks)
    assert call(store, mode, "get_llama_nodes", ["chunk-Tom", "chunk-Eve"]) == chunks
    call(
        store,
        mode,
        "upsert_relations",
        [link(name, "OWNS", "Rex", triplet_source_id=f"chunk-{name}") for name in ("Tom", "Eve")],
    )
    held = store.client.get_all(user_id="maya", filters={"metadata.page": 3})["results"]
    assert [memory["memory"] for memory in held] == ["Tom owns Rex", "Eve owns Rex"]
    (owns,) = [one for one in store.client.relations(user_id="maya") if one["source"] == "Tom"]
    assert owns["memories"] == [held[0]["id"]]
    call(store, mode, "delete_llama_nodes", node_ids=["chunk-Tom"])
    assert labels(call(store, mode, "get_triplets", relation_names=["owns"])) == [("Eve", "OWNS", "Rex")]
    store.client.delete(held[1]["id"])
    assert call(store, mode, "get_triplets", relation_names=["owns"]) == []


def test_chunks_are_deleted_by_their_document(store: Mem0PropertyGraphStore) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="contract")}
    store.upsert_llama_nodes([TextNode(id_="page", text="The flat is rented.", relationships=source)])
    store.upsert_llama_nodes([TextNode(id_="same", text="The flat is rented.")])  # a scope holds each text once
    assert [node.get_content() for node in store.get_llama_nodes(["page", "same"])] == ["The flat is rented."] * 2
    store.delete_llama_nodes(ref_doc_ids=["contract"])
    assert [node.id for node in store.get(ids=["page", "same"])] == ["same"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_relations_of_conversations_end_when_they_are_deleted(store: Mem0PropertyGraphStore, mode: str) -> None:
    call(store, mode, "delete", entity_names=["Initech"])
    assert call(store, mode, "get", ids=["Initech"]) == []
    assert "Initech" in {one["destination"] for one in store.client.relations(user_id="maya", ended=True)}
    assert any("Initech" in one["memory"] for one in store.client.get_all(user_id="maya")["results"])
    assert store.get(ids=["Porto"])


def test_a_written_relation_that_a_conversation_ends_is_not_read(core: Memory) -> None:
    store = Mem0PropertyGraphStore(core, user_id="maya")
    store.upsert_relations([link("maya", "LIVES_IN", "Porto")])
    assert labels(store.get_triplets(entity_names=["Porto"])) == [("maya", "LIVES_IN", "Porto")]
    core.add("I moved from Porto to Rome.", user_id="maya")
    assert labels(store.get_triplets(entity_names=["Porto"])) == []
    store.upsert_relations([link("maya", "LIVES_IN", "Porto")])
    assert labels(store.get_triplets(entity_names=["Porto"])) == [("maya", "LIVES_IN", "Porto")]


def test_the_map_of_relations_is_bounded_and_distinct(core: Memory) -> None:
    chain = [("A", "R", "B"), ("B", "R", "C"), ("C", "R", "D")]
    store = Mem0PropertyGraphStore(core, user_id="maya")
    store.upsert_relations([link(*edge) for edge in [*chain, ("D", "SELF", "D"), ("D", "R", "A"), ("A", "NOT_R", "B")]])
    start: list[LabelledNode] = [EntityNode(name="A"), EntityNode(name="A")]
    every = labels(store.get_rel_map(start, depth=9))
    assert sorted(every) == sorted([*chain, ("D", "SELF", "D"), ("D", "R", "A"), ("A", "NOT_R", "B")])
    assert store.get_rel_map(start, depth=0) == store.get_rel_map(start, limit=0) == store.get_rel_map([]) == []
    assert labels(store.get_rel_map(start, depth=1, limit=1)) == [("A", "R", "B")]
    assert ("C", "R", "D") in labels(store.get_rel_map(start, depth=2, ignore_rels=["NOT_R"]))
    assert store.get_rel_map([EntityNode(name="missing")]) == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_names_are_searched_by_text_and_vector(store: Mem0PropertyGraphStore, mode: str) -> None:
    model = store.embed_model
    for query in (
        VectorStoreQuery(query_str="Initech", similarity_top_k=1),
        VectorStoreQuery(query_embedding=model.get_query_embedding("Initech"), similarity_top_k=1),
    ):
        nodes, scores = call(store, mode, "vector_query", query)
        assert [node.id for node in nodes] == ["Initech"]
        assert scores[0] == pytest.approx(1.0, abs=0.01)
    for wrong, message in (
        (VectorStoreQuery(query_embedding=[1.0]), "dimensions"),
        (VectorStoreQuery(), "no text and no vector"),
        (VectorStoreQuery(query_str="a", mode=VectorStoreQueryMode.MMR), "query mode 'mmr'"),
        (
            VectorStoreQuery(query_str="a", filters=MetadataFilters(filters=[MetadataFilter(key="a", value=1)])),
            "filters",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call(store, mode, "vector_query", wrong)


@pytest.mark.parametrize("use_async", [False, True])
def test_an_index_is_built_into_a_scope_and_answers(core: Memory, use_async: bool) -> None:
    store = Mem0PropertyGraphStore(core, user_id="maya")
    documents = [Document(text=text, doc_id=text[:3]) for text in ("Tom owns Rex", "Eve likes Tom")]
    options: dict[str, Any] = {"kg_extractors": [Extractor()], "embed_model": store.embed_model, "use_async": use_async}
    index = PropertyGraphIndex.from_documents(
        documents, property_graph_store=store, llm=MockLLM(), transformations=[], **options
    )
    assert sorted(labels(store.get_triplets(entity_names=["Tom"]))) == [("Eve", "LIKES", "Tom"), ("Tom", "OWNS", "Rex")]
    found = index.as_retriever(similarity_top_k=1, include_text=True).retrieve("Rex")
    assert "Tom -> OWNS -> Rex" in found[0].text
    assert core.search("Rex", user_id="maya")["results"][0]["memory"] == "Tom owns Rex"
    index.insert_nodes([TextNode(id_="more", text="Eve owns Rex")])
    index.insert_nodes([TextNode(id_="more", text="Eve owns Rex")])
    assert len(store.get_triplets(entity_names=["Rex"])) == 2
    assert len(core.get_all(user_id="maya")["results"]) == 3
    assert Mem0PropertyGraphStore(core, user_id="ben").get() == []


def test_unusable_graphs_are_refused(core: Memory) -> None:
    with pytest.raises(ScopeError):
        Mem0PropertyGraphStore(core)
    store = Mem0PropertyGraphStore(core, user_id="maya")
    with pytest.raises(InputError, match="the target of a relation"):
        store.upsert_relations([link("Tom", "OWNS", "Rex"), link("Tom", "OWNS", " ")])
    with pytest.raises(InputError, match="stored as JSON"):
        store.upsert_nodes([EntityNode(name="Tom", properties={"when": object()})])
    assert store.get() == []
