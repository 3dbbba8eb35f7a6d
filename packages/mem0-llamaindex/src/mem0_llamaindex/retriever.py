"""`Mem0Retriever`: a memory as a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType

from mem0_core import ArgumentError, AsyncMemory, Memory, Scope
from mem0_core.api.options import check_constructor, unwrap_memory
from mem0_core.domain.suggestions import describe_value
from mem0_llamaindex.convert import to_nodes

__all__ = ["Mem0Retriever"]


@check_constructor
class Mem0Retriever(BaseRetriever):
    """Retrieve the memories of a user (an agent, a run) relevant to a query, as nodes for any query or chat engine.

    >>> retriever = Mem0Retriever(memory, user_id="maya", k=4)
    >>> RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=[Mem0Rerank(...)])

    A node's id is the memory's, and its score is in [0, 1]. Its metadata has the time and the speaker, the caller's
    own metadata under ``metadata``, and the relations that graph memory read in it under ``relations``.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id: owner of the memories; give at least one. A query cannot widen it.
        k: maximum number of memories.
        filters: mem0's filters on metadata.
        threshold: minimum score (0 to 1).
        recipe: name of the search recipe; by default as the memory is configured.
        relations: append relations relevant to the query that none of the memories found states.

    Raises:
        ScopeError: no id is given, or an id is invalid. ConfigError: `memory` is not a memory.

    Raises (by `retrieve` and `aretrieve`):
        ArgumentError: the query is neither a text nor a QueryBundle.
        QueryError: the query is empty, or a filter cannot be read. ModelError, StoreError: the search failed.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        k: int = 10,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        recipe: Any = None,
        relations: bool = True,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        Scope(user_id, agent_id, run_id)
        self._memory = unwrap_memory(memory)
        self._relations = relations
        options: dict[str, Any] = {"filters": filters, "threshold": threshold, "recipe": recipe}
        self._options: dict[str, Any] = {
            "user_id": user_id,
            "agent_id": agent_id,
            "run_id": run_id,
            "limit": k,
            **{name: value for name, value in options.items() if value is not None},
        }

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Retrieve the nodes of a query, as any retriever of LlamaIndex."""
        _check_query(str_or_query_bundle)  # before LlamaIndex makes an event of it
        return super().retrieve(str_or_query_bundle)

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Async version of `retrieve`."""
        _check_query(str_or_query_bundle)
        return await super().aretrieve(str_or_query_bundle)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return to_nodes(self._memory.search(query_bundle.query_str, **self._options), relations=self._relations)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._memory.asearch(query_bundle.query_str, **self._options)
        return to_nodes(found, relations=self._relations)


def _check_query(query: object) -> None:
    if not isinstance(query, (str, QueryBundle)):
        given = describe_value(query)
        raise ArgumentError(f"retrieve(): the query must be a text or a QueryBundle, not {given}; pass such a value")
