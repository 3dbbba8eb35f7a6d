"""`Mem0Retriever`: a memory as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from mem0_core import ArgumentError, MemoryDict, ScopeError, SearchResult
from mem0_core.api.options import check_options
from mem0_core.domain.suggestions import describe_unknown
from mem0_langchain._fields import OwnedFields
from mem0_langchain.convert import extract_memories, memory_to_document, relation_to_document
from mem0_langchain.runs import build_recall_request, langsmith_params

__all__ = ["Mem0Retriever"]

_CALL_OPTIONS = ("k", "filters", "threshold", "recipe")

_WRAPPER_ADVICE = (
    "Retrievers that wrap another one (ContextualCompressionRetriever, MultiQueryRetriever) do not pass on the ids of"
    " their config: invoke the outer one in a chain, RunnablePassthrough() | retriever, or name the ids in the"
    " constructor of Mem0Retriever"
)


class Mem0Retriever(OwnedFields, BaseRetriever):
    """Retrieve the memories of a user (an agent, a run) that are nearest to a query, as documents.

    Ids given here are fixed; ``configurable`` of the config, or the context of the enclosing graph, names the others.
    See `mem0_langchain.scope`. It works called directly, in chains, and in graphs and their tools. A retriever that
    wraps it and is invoked outside of a chain passes on no ids: name them here.

    >>> retriever = Mem0Retriever(memory=memory, k=4)
    >>> retriever.invoke("Where does she live?", {"configurable": {"user_id": "maya"}})

    Args:
        memory: a `mem0_core.Memory`.
        k: maximum number of documents. `k`, `filters` and `threshold` may be given to `invoke` too.
        filters: mem0's filters on metadata.
        threshold: minimum score (0 to 1).
        recipe: the memory's recipe for these searches. It may be given to `invoke` too.
        relations: ``"documents"`` appends relevant relations after the memories, as sentences, beyond `k`;
            ``"metadata"`` adds the list of them to every document, under that key.
        user_id, agent_id, run_id, scope, thread_as_run: owner of the memories, as far as it is the same in every call.

    Raises:
        ScopeError: an id is invalid, or ids exclude each other.
        ArgumentError: an argument is unknown, missing or wrong.

    Raises (by `invoke` and `ainvoke`):
        ScopeError: no id is named, or the run contradicts the constructor.
        QueryError: the query is empty, or a filter cannot be read.
    """

    k: int = Field(default=10, ge=1)
    filters: dict[str, Any] | None = None
    threshold: float | None = Field(default=None, ge=0, le=1)
    recipe: Any = None
    relations: Literal["none", "documents", "metadata"] = "none"

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Return the documents for a query, best first."""
        # BaseRetriever does not pass on its config, which names the owner of the memories.
        return super().invoke(input, config, config_=config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Return the documents for a query, best first."""
        return await super().ainvoke(input, config, config_=config, **kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._to_documents(self.memory.search(**self._build_request(query, **options)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._to_documents(await self.memory.asearch(**self._build_request(query, **options)))

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        return langsmith_params(self.memory)

    def _to_documents(self, result: SearchResult | list[MemoryDict]) -> list[Document]:
        documents = [memory_to_document(memory) for memory in extract_memories(result)]
        relations = result["relations"] if isinstance(result, Mapping) else []  # version "v1.0" returns no relations
        if self.relations == "documents":
            return [*documents, *map(relation_to_document, relations)]
        if self.relations == "metadata":
            for document in documents:
                document.metadata["relations"] = relations
        return documents

    def _build_request(self, query: str, *, config_: RunnableConfig | None = None, **options: Any) -> dict[str, Any]:
        for name, value in options.items():
            if name not in _CALL_OPTIONS:
                raise ArgumentError(f"Mem0Retriever.invoke() {describe_unknown(name, value, _CALL_OPTIONS)}")
        check_options(options)
        chosen = {name: getattr(self, name) for name in _CALL_OPTIONS}
        chosen |= {name: value for name, value in options.items() if value is not None}
        try:
            scope = self._resolve_scope(config_)
        except ScopeError as error:
            if config_ and "configurable" not in config_:
                error.add_note(_WRAPPER_ADVICE)
            raise
        return build_recall_request(query, scope, **chosen)
