"""`Mem0Compressor`: the rerank stage (BM25 and a cross-encoder) for the documents of any retriever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import ConfigDict, Field

from mem0_core import arerank, rerank
from mem0_core._system.boundary import convert_errors_of
from mem0_core.domain.recipes import DEFAULT_RERANKER
from mem0_langchain._fields import KnownFields

__all__ = ["Mem0Compressor"]


@convert_errors_of("compress_documents", "acompress_documents")
class Mem0Compressor(KnownFields, BaseDocumentCompressor):
    """Rerank documents by their relevance to a query and keep the best.

    First scores are BM25 among the documents. A reranker, by default the small cross-encoder of mem0-models, reads the
    best `top_n` of them, and both scores are blended. With ``reranker=None``, BM25 decides alone. Each returned
    document has its score, in [0, 1], as ``relevance_score`` in its metadata. Callbacks see a run ``mem0.rerank``.

    >>> ContextualCompressionRetriever(base_retriever=any_retriever, base_compressor=Mem0Compressor(k=4))

    Args:
        reranker: as for `mem0_core.rerank`: an instance (LangChain's cross-encoders and compressors too),
            ``"provider:model"`` or ``{"provider", "config"}``.
        k: number of documents to return; by default all.
        top_n: number of documents that the reranker reads; by default all.
        weight: weight of the reranker in the final score, in [0, 1]; by default mem0_core's.

    Raises (by `compress_documents`):
        QueryError: the query is empty.
        ModelError: the reranker failed.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    reranker: Any = DEFAULT_RERANKER
    k: int | None = Field(default=None, ge=1)
    top_n: int | None = Field(default=None, ge=1)
    weight: float | None = Field(default=None, ge=0, le=1)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the documents, best first."""
        if not documents:
            return []

        def rank(query: str) -> list[tuple[int, float]]:
            return rerank(query, [document.page_content for document in documents], **self._rerank_options())

        order = RunnableLambda(rank, name="mem0.rerank").invoke(query, _run_config(callbacks))
        return self._reorder(documents, order)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the documents, best first."""
        if not documents:
            return []

        async def rank(query: str) -> list[tuple[int, float]]:
            return await arerank(query, [document.page_content for document in documents], **self._rerank_options())

        order = await RunnableLambda(rank, name="mem0.rerank").ainvoke(query, _run_config(callbacks))
        return self._reorder(documents, order)

    def _rerank_options(self) -> dict[str, Any]:
        weight = {} if self.weight is None else {"weight": self.weight}
        return {"reranker": self.reranker, "top_n": self.top_n, **weight}

    def _reorder(self, documents: Sequence[Document], order: Sequence[tuple[int, float]]) -> list[Document]:
        return [
            documents[place].model_copy(
                update={"metadata": {**documents[place].metadata, "relevance_score": score}},
            )
            for place, score in order[: self.k]
        ]


def _run_config(callbacks: Callbacks | None) -> RunnableConfig | None:
    return None if callbacks is None else {"callbacks": callbacks}
