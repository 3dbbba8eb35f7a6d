"""`Mem0VectorStore`: the memories of one scope as a LangChain vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from mem0_core import AsyncMemory, Memory
from mem0_core.api.options import check_constructor, unwrap_memory
from mem0_core.domain.suggestions import check_list
from mem0_core.flow import Flow, arun, do, run
from mem0_core.views import ScopedDocument, ScopedDocuments

__all__ = ["Mem0VectorStore"]


@check_constructor
class Mem0VectorStore(VectorStore):
    """A vector store over the memories of a user (an agent, a run): all of them are documents.

    Added documents are memories with exactly their text, so `Memory.search` and `Memory.context` find them, and
    searches here find memories of conversations. An existing id is updated. Scores are in [0, 1], from the memory's
    hybrid ranking.

    >>> store = Mem0VectorStore(memory, user_id="maya")
    >>> store.add_texts(["The flat is rented until May."], ids=["contract"])
    >>> store.as_retriever(search_kwargs={"k": 3, "filter": {"topic": "home"}})

    Args:
        memory: a `mem0_core.Memory`; its embedder embeds the documents.
        user_id, agent_id, run_id: owner of the documents; give at least one.
        recipe: the memory's recipe for searches.

    Raises:
        ScopeError: no id is given, or an id is invalid.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        recipe: Any = None,
    ) -> None:
        self._documents = ScopedDocuments(unwrap_memory(memory), user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._recipe = recipe

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Memory | AsyncMemory | None = None,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Create a store and add texts.

        Args:
            embedding: embeddings of a new memory.
            memory: an open memory, which keeps its own embedder; else one is opened from `config`.
            options: arguments of the constructor.
        """
        store = cls(memory or Memory(config, embedder=embedding), **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Memory | AsyncMemory | None = None,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Async version of `from_texts`."""
        store = cls(memory or Memory(config, embedder=embedding), **options)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    @property
    def embeddings(self) -> Embeddings:
        """The memory's embedder."""
        return _MemoryEmbeddings(self._documents.memory)

    # --- Write -------------------------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids; return their ids."""
        return self._documents.add(_to_list(texts), metadatas=metadatas, ids=ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Async version of `add_texts`."""
        return await self._documents.aadd(_to_list(texts), metadatas=metadatas, ids=ids)

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add documents, or replace those with the same ids; return their ids."""
        return self.add_texts(*_to_texts(documents), ids=_ids_of(documents, ids))

    async def aadd_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Async version of `add_documents`."""
        return await self.aadd_texts(*_to_texts(documents), ids=_ids_of(documents, ids))

    def delete(
        self, ids: list[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool | None:
        """Delete documents by id or by mem0's filters; without both, all texts that were added as documents."""
        self._documents.delete(ids, filters=filter)
        return True

    async def adelete(
        self, ids: list[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool | None:
        """Async version of `delete`."""
        await self._documents.adelete(ids, filters=filter)
        return True

    # --- Read --------------------------------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids."""
        return [_to_document(found) for found in self._documents.get(ids)]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Async version of `get_by_ids`."""
        return [_to_document(found) for found in await self._documents.aget(ids)]

    def similarity_search(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents nearest to a query, best first; `filter` is one of mem0's."""
        return [document for document, _ in self.similarity_search_with_score(query, k, filter=filter)]

    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, filter=filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return documents with their scores in [0, 1]."""
        found = self._documents.search(query, k=k, filters=filter, recipe=self._recipe)
        return [(_to_document(one), one.score) for one in found]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Async version of `similarity_search_with_score`."""
        found = await self._documents.asearch(query, k=k, filters=filter, recipe=self._recipe)
        return [(_to_document(one), one.score) for one in found]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents nearest to a vector of `embeddings`."""
        return [_to_document(one) for one in self._documents.search(embedding, k=k, filters=filter)]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `similarity_search_by_vector`."""
        return [_to_document(one) for one in await self._documents.asearch(embedding, k=k, filters=filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are near to a query and different from each other."""
        return run(self._select_diverse(query, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Async version of `max_marginal_relevance_search`."""
        return await arun(self._select_diverse(query, k, fetch_k, lambda_mult, filter))

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are near to a vector of `embeddings` and different from each other."""
        return run(self._select_diverse(embedding, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Async version of `max_marginal_relevance_search_by_vector`."""
        return await arun(self._select_diverse(embedding, k, fetch_k, lambda_mult, filter))

    def _select_diverse(
        self, query: str | list[float], k: int, fetch_k: int, lambda_mult: float, filter: Mapping[str, Any] | None
    ) -> Flow[list[Document]]:
        memory = self._documents.memory
        found = yield from self._documents.search_flow(query, k=fetch_k, filters=filter, recipe=self._recipe)
        if not found:
            return []
        asked: Any = query
        if isinstance(query, str):
            asked = (yield from do(memory.embedder.embed, [query], kind="query"))[0]
        vectors: Any = yield from do(memory.embedder.embed, [one.text for one in found])
        chosen = maximal_marginal_relevance(np.asarray(asked), list(vectors), lambda_mult=lambda_mult, k=k)
        return [_to_document(found[index]) for index in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return _unchanged


class _MemoryEmbeddings(Embeddings):
    """The embedder of a memory as LangChain's embeddings."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._memory.embedder.embed(texts).tolist() if texts else []
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._memory.embedder.embed([text], kind="query")[0].tolist()
        return vector


def _unchanged(score: float) -> float:
    return score


def _to_document(found: ScopedDocument) -> Document:
    return Document(found.text, id=found.id, metadata=dict(found.metadata))


def _to_list(texts: Iterable[str]) -> list[str]:
    check_list(texts, "texts")
    return list(texts)


def _to_texts(documents: Sequence[Document]) -> tuple[list[str], list[dict[str, Any]]]:
    return [one.page_content for one in documents], [one.metadata for one in documents]


def _ids_of(documents: Sequence[Document], ids: Sequence[str | None] | None) -> Sequence[str | None]:
    return [one.id for one in documents] if ids is None else ids
