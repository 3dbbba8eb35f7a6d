"""`Mem0VectorStore`: the memories of one scope as a LlamaIndex vector store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from mem0_core import AsyncMemory, Memory
from mem0_core.api.options import check_options, unwrap_memory
from mem0_core.domain.recipes import Recipe, Weights
from mem0_core.flow import Flow, arun, do, run
from mem0_core.views import ScopedDocument, ScopedDocuments
from mem0_llamaindex.convert import replace_lone_surrogates

__all__ = ["Mem0VectorStore"]

_OPERATORS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.CONTAINS: "contains",
    FilterOperator.TEXT_MATCH: "contains",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "icontains",
}

_EMPTY_KEY = "mem0_empty"
"""Metadata key with the keys of a node that have an empty list, which no filter of a memory finds."""

_MMR_THRESHOLD = 0.5
_MMR_PREFETCH_FACTOR = 4  # as in LlamaIndex's own stores


class Mem0VectorStore(BasePydanticVectorStore):
    """A vector store over the memories of a user (an agent, a run): all of them are nodes.

    >>> store = Mem0VectorStore(memory, user_id="maya")
    >>> index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=1))

    Added nodes are memories with exactly their text, so `Memory.search` and `Memory.context` find them, and queries
    find memories of conversations. A node with a known id is updated. The memory's embedder embeds nodes and queries;
    embeddings of the index are not used, so give it a `MockEmbedding`.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the nodes; give at least one.
        recipe: the memory's recipe for queries.

    Raises:
        ScopeError: no id is given, or an id is invalid. ConfigError: `memory` is not a memory.

    The modes of a query are ``default`` (the recipe), ``hybrid`` and ``semantic_hybrid`` (`alpha` is the share of the
    vectors, else the recipe), ``text_search`` and ``sparse`` (words only), and ``mmr`` (`mmr_threshold`: 1 for nearness
    only, 0 for variety). Filters may have any operator.

    Raises (by `query`):
        ValueError: the query has no text, a mode that learns a classifier, or a filter with a value of another kind
            than its operator takes.
    """

    stores_text: bool = True
    is_embedding_query: bool = False

    _documents: ScopedDocuments = PrivateAttr()
    _recipe: Any = PrivateAttr()

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        recipe: Any = None,
    ) -> None:
        check_options({"recipe": recipe})
        super().__init__(stores_text=True, is_embedding_query=False)
        self._documents = ScopedDocuments(unwrap_memory(memory), user_id=user_id, agent_id=agent_id, run_id=run_id)
        self._recipe = recipe

    @classmethod
    def class_name(cls) -> str:
        return "Mem0VectorStore"

    @property
    def client(self) -> Memory:
        """Memory of the nodes."""
        return self._documents.memory

    # --- Write -------------------------------------------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those with the same ids; return their ids."""
        return self._documents.add(**_to_documents(nodes))

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Async version of `add`."""
        return await self._documents.aadd(**_to_documents(nodes))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        self._documents.delete(filters={"metadata.ref_doc_id": ref_doc_id})

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Async version of `delete`."""
        await self._documents.adelete(filters={"metadata.ref_doc_id": ref_doc_id})

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by filters, or both."""
        if node_ids is not None or filters is not None:
            self._documents.delete(node_ids, filters=_to_filters(filters))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Async version of `delete_nodes`."""
        if node_ids is not None or filters is not None:
            await self._documents.adelete(node_ids, filters=_to_filters(filters))

    def clear(self) -> None:
        """Delete all nodes that were added here; other memories stay."""
        self._documents.delete()

    async def aclear(self) -> None:
        """Async version of `clear`."""
        await self._documents.adelete()

    # --- Read --------------------------------------------------------------------------------------------------------

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by id, by filters, or both; without both, all."""
        return [_to_node(one) for one in self._documents.get(node_ids, filters=_to_filters(filters))]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Async version of `get_nodes`."""
        return [_to_node(one) for one in await self._documents.aget(node_ids, filters=_to_filters(filters))]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the nodes nearest to the text of a query, with scores in [0, 1]."""
        return _to_result(run(self._search(query, **kwargs)))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Async version of `query`."""
        return _to_result(await arun(self._search(query, **kwargs)))

    def _search(self, query: VectorStoreQuery, **kwargs: Any) -> Flow[list[ScopedDocument]]:
        asked: str | list[float] | None = query.query_str and replace_lone_surrogates(query.query_str)
        if not asked:
            asked = query.query_embedding
        if asked is None:
            raise ValueError("the query has no text and no vector; set query_str, or query_embedding by Mem0Embedding")
        filters = [found for found in (_to_filters(query.filters),) if found]
        filters += [{"mem0_document": {"in": query.node_ids}}] if query.node_ids else []
        filters += [{"metadata.ref_doc_id": {"in": query.doc_ids}}] if query.doc_ids is not None else []
        k = query.hybrid_top_k or query.similarity_top_k
        options: dict[str, Any] = {"filters": {"AND": filters} if filters else None}
        options["recipe"] = _choose_recipe(query, self._recipe)
        if query.mode is not VectorStoreQueryMode.MMR:
            return (yield from self._documents.search_flow(asked, k=k, **options))
        wanted = round(k * kwargs.get("mmr_prefetch_factor", _MMR_PREFETCH_FACTOR))
        found = yield from self._documents.search_flow(asked, k=max(k, wanted), **options)
        return (yield from self._select_diverse(asked, found, k, kwargs.get("mmr_threshold", query.mmr_threshold)))

    def _select_diverse(
        self, query: str | list[float], found: Sequence[ScopedDocument], k: int, threshold: float | None
    ) -> Flow[list[ScopedDocument]]:
        """Return `k` documents that are near to a query and different from each other."""
        if not found:
            return []
        embedder = self._documents.memory.embedder
        asked = query if not isinstance(query, str) else (yield from do(embedder.embed, [query], kind="query"))[0]
        vectors: Any = yield from do(embedder.embed, [one.text for one in found])
        _, chosen = get_top_k_mmr_embeddings(
            list(asked),
            vectors.tolist(),
            similarity_top_k=min(k, len(found)),
            embedding_ids=list(range(len(found))),
            mmr_threshold=_MMR_THRESHOLD if threshold is None else threshold,
        )
        return [found[index] for index in chosen]


def _choose_recipe(query: VectorStoreQuery, default: Any) -> Any:
    """Return the recipe for the mode of a query."""
    modes = VectorStoreQueryMode
    if query.mode in (modes.TEXT_SEARCH, modes.SPARSE):
        return Recipe("text_search", Weights(bm25=1.0), sources=("lexical",))
    if query.mode in (modes.HYBRID, modes.SEMANTIC_HYBRID) and query.alpha is not None:
        if not 0 <= query.alpha <= 1:
            raise ValueError(f"alpha must lie in [0, 1], not {query.alpha!r}: 0 for words only, 1 for vectors only")
        weights = Weights(dense=query.alpha, bm25=1 - query.alpha)
        return Recipe("alpha", weights, sources=("dense", "lexical"))
    if query.mode not in (modes.DEFAULT, modes.HYBRID, modes.SEMANTIC_HYBRID, modes.MMR):
        raise ValueError(
            f"memories have no query mode {query.mode.value!r}; use default, hybrid, semantic_hybrid, text_search,"
            " sparse or mmr"
        )
    return default


def _to_documents(nodes: Sequence[BaseNode]) -> dict[str, Any]:
    return {
        "texts": [replace_lone_surrogates(node.get_content(MetadataMode.NONE)) for node in nodes],
        "metadatas": [_to_metadata(node) for node in nodes],
        "ids": [node.node_id for node in nodes],
    }


def _to_metadata(node: BaseNode) -> dict[str, Any]:
    metadata: dict[str, Any] = node_to_metadata_dict(node, remove_text=True, flat_metadata=False)
    empty = [key for key, value in node.metadata.items() if value == []]
    return {**metadata, _EMPTY_KEY: empty} if empty else metadata


def _to_node(document: ScopedDocument) -> BaseNode:
    """Return the node as it was added, or a new one for a memory that was not a node."""
    if "_node_content" not in document.metadata:
        return TextNode(id_=document.id, text=document.text, metadata=dict(document.metadata))
    node: BaseNode = metadata_dict_to_node(dict(document.metadata))
    node.set_content(document.text)
    return node


def _to_result(found: Sequence[ScopedDocument]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[_to_node(one) for one in found],
        similarities=[one.score for one in found],
        ids=[one.id for one in found],
    )


def _to_filters(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """Translate LlamaIndex's filters to mem0's; keys always name metadata, never an owner."""
    if filters is None or not filters.filters:
        return None
    groups = {FilterCondition.AND: "AND", FilterCondition.OR: "OR", FilterCondition.NOT: "NOT", None: "AND"}
    parts = [
        _to_filters(one) or {} if isinstance(one, MetadataFilters) else _to_condition(one) for one in filters.filters
    ]
    return {groups[filters.condition]: parts}


def _to_condition(filter: MetadataFilter) -> Mapping[str, Any]:
    field, operator, value = f"metadata.{filter.key}", filter.operator, filter.value
    if operator is FilterOperator.IS_EMPTY:
        return {"OR": [{field: {"in": [None, ""]}}, {f"metadata.{_EMPTY_KEY}": {"contains": filter.key}}]}
    if operator in (FilterOperator.ANY, FilterOperator.ALL):
        if not isinstance(value, list):
            raise ValueError(f"the filter operator {operator.value!r} takes a list, not {value!r}")
        parts = [{field: {"contains": one}} for one in value]
        if operator is FilterOperator.ALL:
            return {"AND": [{field: "*"}, *parts]}  # a missing key has not all of no values
        return {"OR": parts} if parts else {"AND": [{field: {"eq": None}}, {field: {"ne": None}}]}
    if operator not in _OPERATORS:
        known = ", ".join(sorted(one.value for one in FilterOperator))
        raise ValueError(f"memories have no filter operator {operator.value!r}; use one of {known}")
    return {field: {_OPERATORS[operator]: value}}
