"""`Mem0Retriever` and `Mem0Rerank` in LlamaIndex's query and chat engines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms.mock import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from mem0_core import ArgumentError, AsyncMemory, ConfigError, InputError, Memory, ModelError, QueryError, ScopeError
from mem0_llamaindex import Mem0Memory, Mem0Rerank, Mem0Retriever

from .events import heard


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def retrieve(retriever: Mem0Retriever, query: str, mode: str) -> list[NodeWithScore]:
    return retriever.retrieve(query) if mode == "sync" else asyncio.run(retriever.aretrieve(query))


# --- the retriever -----------------------------------------------------------------------------------------------


def test_memories_are_nodes_best_first(core: Memory, mode: str) -> None:
    core.add("Maya likes figs.", user_id="maya", metadata={"user_id": "mallory"}, timestamp="2024-05-02")
    core.add("Maya lives in Porto.", user_id="maya")
    core.add("Ben likes figs.", user_id="ben")
    first, second = retrieve(Mem0Retriever(core, user_id="maya", relations=False), "Who likes figs?", mode)
    memory = core.get(first.node.node_id)
    assert memory is not None
    assert first.node.get_content() == memory["memory"] == "Maya likes figs."
    assert 1 >= (first.score or 0) > (second.score or 0) >= 0
    assert first.node.metadata["user_id"] == "maya"
    assert first.node.metadata["metadata"] == {"user_id": "mallory"}  # the caller's own stays apart
    assert first.node.metadata["created_at"].startswith("2024-05-02")


def test_a_model_sees_when_it_was_said_and_none_of_the_bookkeeping(core: Memory) -> None:
    core.add("Maya likes figs.", user_id="maya", timestamp="2024-05-02")
    (found,) = Mem0Retriever(core, user_id="maya", relations=False).retrieve("Who likes figs?")
    assert "created_at: 2024-05-02" in found.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "hash" not in found.node.get_content(metadata_mode=MetadataMode.LLM)
    assert found.node.get_content(metadata_mode=MetadataMode.EMBED) == "Maya likes figs."


def test_relations_stand_with_the_memory_that_says_them_and_else_by_themselves(core: Memory, mode: str) -> None:
    core.add("Maya lives in Porto.", user_id="maya")
    (found,) = retrieve(Mem0Retriever(core, user_id="maya"), "Where does Maya live?", mode)
    assert found.node.metadata["relations"] == ["Maya lives in Porto"]
    core.add("Maya said hello from the house by the sea.", user_id="maya")  # says nothing that a rule reads
    nodes = retrieve(
        Mem0Retriever(core, user_id="maya", k=1), "Maya lives in Porto: hello from the house by the sea", mode
    )
    texts = [node.node.get_content() for node in nodes]
    assert texts == ["Maya said hello from the house by the sea.", "Maya lives in Porto"]
    assert nodes[1].node.metadata["valid_from"]
    assert 0 <= (nodes[1].score or 0) <= 1
    assert len(Mem0Retriever(core, user_id="maya", k=1, relations=False).retrieve("Maya by the sea")) == 1


def test_options_reach_the_search(core: Memory, mode: str) -> None:
    core.add("Maya likes figs.", user_id="maya", metadata={"kind": "fruit"})
    core.add("Maya likes plums.", user_id="maya")
    only = Mem0Retriever(core, user_id="maya", filters={"kind": "fruit"}, relations=False)
    assert [node.node.get_content() for node in retrieve(only, "plums", mode)] == ["Maya likes figs."]
    assert retrieve(Mem0Retriever(core, user_id="maya", threshold=1.0, relations=False), "plums", mode) == []
    with pytest.raises(QueryError):
        retrieve(only, " ", mode)


def test_whose_memories_must_be_said(core: Memory) -> None:
    with pytest.raises(ScopeError):
        Mem0Retriever(core)
    with pytest.raises(ArgumentError, match=r"must be a mem0_core\.Memory"):
        Mem0Retriever("memory", user_id="maya")  # type: ignore[arg-type]
    assert Mem0Retriever(AsyncMemory(memory=core), user_id="maya").retrieve("figs") == []


async def test_it_serves_query_and_chat_engines(core: Memory) -> None:
    core.add("Maya lives in Porto.", user_id="maya")
    retriever = Mem0Retriever(core, user_id="maya")
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[Mem0Rerank(top_n=1)])
    for response in (engine.query("Where does Maya live?"), await engine.aquery("Where does Maya live?")):
        assert "Maya lives in Porto." in str(response)
        assert len(response.source_nodes) == 1
    memory = Mem0Memory.from_defaults(core, user_id="maya", run_id="7")
    chat = ContextChatEngine.from_defaults(retriever=retriever, llm=MockLLM(), memory=memory)
    assert "Maya lives in Porto." in str(await chat.achat("Where does Maya live?"))


# --- reranking ---------------------------------------------------------------------------------------------------

TEXTS = ["Tom sails a boat", "Maya keeps bees", "Maya sails on Sundays", "nothing of the kind"]


def nodes(scores: Sequence[float | None] = (0.9, 0.8, 0.7, 0.6)) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text), score=score) for text, score in zip(TEXTS, scores, strict=True)]


def order(reranked: list[NodeWithScore]) -> list[int]:
    return [TEXTS.index(node.node.get_content()) for node in reranked]


class Longest:
    """A reranker of ours: the longer the better."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(list(texts))
        return [len(text) / 100 for text in texts]


def reranked(rerank: Mem0Rerank, mode: str, given: list[NodeWithScore] | None = None) -> list[NodeWithScore]:
    given = nodes() if given is None else given
    query = QueryBundle("When does Maya sail?")
    if mode == "sync":
        return rerank.postprocess_nodes(given, query_bundle=query)
    return asyncio.run(rerank.apostprocess_nodes(given, query_bundle=query))


def test_without_a_reranker_shared_words_decide(mode: str) -> None:
    found = reranked(Mem0Rerank(top_n=2), mode)
    assert order(found)[0] == 2
    assert len(found) == 2
    assert all(0 <= (node.score or 0) <= 1 for node in found)


def test_a_reranker_has_its_part_in_the_score(mode: str) -> None:
    model = Longest()
    assert order(reranked(Mem0Rerank(model, weight=1), mode)) == [2, 3, 0, 1]
    found = reranked(Mem0Rerank(model, weight=0.5, retrieval_scores=True, pool=2), mode)
    assert model.asked[-1] == TEXTS[:2]
    assert order(found) == [0, 1, 2, 3]
    assert found[0].score == pytest.approx(0.5 * 0.9 + 0.5 * 0.16)


def test_a_postprocessor_of_llamaindex_is_a_reranker_too(mode: str) -> None:
    class Last(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
            return [NodeWithScore(node=node.node, score=place / 10) for place, node in enumerate(nodes)][::-1]

    found = reranked(Mem0Rerank(Last(), weight=1, retrieval_scores=True, top_n=2), mode)
    assert order(found) == [3, 2]


def test_nothing_to_order_and_nothing_to_order_by(mode: str) -> None:
    assert reranked(Mem0Rerank(), mode, []) == []
    with pytest.raises(InputError, match="needs a query"):
        Mem0Rerank().postprocess_nodes(nodes())
    with pytest.raises(InputError, match="scores"):
        reranked(Mem0Rerank(retrieval_scores=True), mode, nodes([7.5, 1, 1, 1]))
    with pytest.raises(ConfigError, match="no_such"):
        Mem0Rerank("no_such:model")


def test_a_reranker_that_fails_is_heard_of(mode: str) -> None:
    class Broken:
        def score(self, query: str, texts: Sequence[str]) -> list[float]:
            raise ModelError("is down")

    with pytest.raises(ModelError, match="is down"):
        reranked(Mem0Rerank(Broken()), mode)


def test_reranking_tells_llamaindexs_instrumentation() -> None:
    with heard() as log:
        reranked(Mem0Rerank(None, top_n=2), "sync")
    started, ended = log.of(ReRankStartEvent, ReRankEndEvent)
    assert (started.top_n, started.model_name) == (2, "bm25")
    assert len(ended.nodes) == 2
