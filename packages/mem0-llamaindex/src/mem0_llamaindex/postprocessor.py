"""`Mem0Rerank`: the rerank stage of mem0-core for any query engine."""

from __future__ import annotations

from typing import Any

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from mem0_core import InputError
from mem0_core.api.factory import resolve_component
from mem0_core.domain.recipes import DEFAULT_RERANKER
from mem0_core.flow import Flow, arun, run
from mem0_core.recall.rerank import rerank
from mem0_llamaindex.long_term import check_fields, explain_fields

__all__ = ["Mem0Rerank"]

_dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]


class Mem0Rerank(BaseNodePostprocessor):
    """Rerank nodes by BM25 and a reranker, blended; by default the small cross-encoder of mem0-models.

    >>> engine = index.as_query_engine(similarity_top_k=40, node_postprocessors=[Mem0Rerank(top_n=5)])

    Every node gets a new score in [0, 1] that is comparable between queries.

    Args:
        reranker: an instance of ours or of LlamaIndex's, a name, ``"provider:model"`` or ``{"provider", "config"}``;
            None for BM25 alone.
        top_n: maximum number of returned nodes; by default all.
        pool: number of nodes, best first, that the reranker reads; by default all.
        weight: weight of the reranker in the score, in [0, 1]; by default mem0_core's.
        retrieval_scores: use the nodes' scores, in [0, 1], as first scores in place of BM25.

    Raises:
        ConfigError: there is no such reranker.

    Raises (when it is used):
        InputError: there is no query; or a node's score is used and is not in [0, 1].
        ModelError: the reranker failed.
    """

    top_n: int | None = Field(default=None, ge=1)
    pool: int | None = Field(default=None, ge=1)
    weight: float | None = Field(default=None, ge=0, le=1)
    retrieval_scores: bool = False

    _reranker: Any = PrivateAttr()

    def __init__(self, reranker: Any = DEFAULT_RERANKER, **options: Any) -> None:
        check_fields(type(self), options)
        with explain_fields(type(self)):
            super().__init__(**options)
        self._reranker = resolve_component("reranker", "score", reranker)

    @classmethod
    def class_name(cls) -> str:
        return "Mem0Rerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run(self._rerank_nodes(nodes, query_bundle))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await arun(self._rerank_nodes(nodes, query_bundle))

    def _rerank_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> Flow[list[NodeWithScore]]:
        if query_bundle is None:
            raise InputError("Mem0Rerank needs a query: pass query_bundle or query_str")
        if not nodes:
            return []
        model = "bm25" if self._reranker is None else repr(self._reranker)
        top_n = self.top_n or len(nodes)
        _dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=model))
        ranked = yield from rerank(
            self._reranker,
            query_bundle.query_str,
            [node.node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes],
            scores=[node.score or 0.0 for node in nodes] if self.retrieval_scores else None,
            top_n=self.pool,
            weight=self.weight,
        )
        best = [NodeWithScore(node=nodes[place].node, score=score) for place, score in ranked[:top_n]]
        _dispatcher.event(ReRankEndEvent(nodes=best))
        return best
