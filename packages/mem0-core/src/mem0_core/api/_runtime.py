"""Lifecycle of the models and stores of one memory: built or opened on first use, closed together."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mem0_core.api._call_log import log_call
from mem0_core.api.factory import (
    FrameworkModel,
    build_embedded_graph,
    build_graph_index,
    build_graph_options,
    build_vector_index,
    build_worker_settings,
    check_graph_support,
    resolve_component,
    resolve_graph,
    resolve_reranker,
    resolve_store,
)
from mem0_core.config import MemoryConfig, check_provider, load_config
from mem0_core.domain.policy import Limits, Policy, RateLimiter
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.domain.records import AddResult, SearchResult
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, StepRecord, arun, do, observe, run
from mem0_core.ingest.worker import BackgroundWorkers
from mem0_core.interfaces import (
    ChatModel,
    Embedder,
    GraphIndex,
    GraphMemory,
    Job,
    Lease,
    MemoryStore,
    Ports,
    RecordStore,
    Reranker,
    VectorIndex,
)

if TYPE_CHECKING:
    from mem0_core.graph.adjacency import AdjacencyIndex

__all__ = ["MemoryRuntime"]

T = TypeVar("T")
R = TypeVar("R", AddResult, SearchResult)


class MemoryRuntime:
    """Components of one memory; see `memory.Memory` for the arguments."""

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | None,
        *,
        llm: ChatModel | Mapping[str, Any] | str | FrameworkModel | None,
        embedder: Embedder | Mapping[str, Any] | str | FrameworkModel | None,
        reranker: Reranker | Mapping[str, Any] | str | FrameworkModel | None,
        store: MemoryStore | RecordStore | None,
        index: VectorIndex | FrameworkModel | None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None,
        policy: Policy | None,
        on_step: Callable[[StepRecord], None] | None,
    ) -> None:
        self.config = load_config(config)
        self._on_step = on_step
        self._lock = Lock()
        self._closed = False
        self._chat: ChatModel | None = resolve_component("llm", "complete", llm, self.config.llm)
        self._tokenizer_loaded = False  # the first count may load a vocabulary, off the event loop
        self._embedder: Embedder = resolve_component("embedder", "embed", embedder, self.config.embedder, "onnx")
        self._reranker: Reranker | None = resolve_reranker(self._chat, reranker, self.config.reranker)
        if index is None:
            check_provider(
                "vector_store", self.config.vector_store.provider
            )  # report a wrong name now, not at the first search
        self._graph_config, self._graph_index = resolve_graph(graph, self.config, self._chat)
        self._graph_chat: ChatModel | None = self._chat
        if self._graph_config is not None and self._graph_config.llm is not None:
            self._graph_chat = resolve_component("llm", "complete", self._graph_config.llm)
        self._store: MemoryStore = resolve_store(store, self.config)
        is_requested = graph is not None or self.config.graph_store is not None
        self._graph_config = check_graph_support(self._store, self._graph_config, is_requested=is_requested)
        self._index: VectorIndex | None = self._adapt_index(index)
        self._graph: GraphMemory | None = None
        self._adjacency: AdjacencyIndex | None = None
        self._policy = policy
        self._recipe = resolve_recipe(self.config.recipe)
        self._limits = Limits(**self.config.limits.model_dump())
        self._rates = RateLimiter(self._limits)
        self._background = BackgroundWorkers(
            self._store.jobs, self._do_jobs, build_worker_settings(self.config.background)
        )

    def _close(self) -> None:
        """Drain the workers, then close the projections and the store."""
        if not self._closed and self._background.is_working:
            self._background.drain(self.config.background.drain)
        self._background.stop()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._graph is not None and self._graph.index is not self._graph.embedded_index:
                self._graph.index.close()
            if self._graph is not None:
                self._graph.embedded_index.close()
            if self._index is not None:
                self._index.close()
            self._store.close()

    async def _aclose(self) -> None:
        """Drain the workers and close the connections of this event loop, then close the rest in a thread."""
        if not self._closed and self._background.is_working:
            await self._background.adrain(self.config.background.drain)
        await self._background.astop()
        if self._graph is not None and (disconnect := getattr(self._graph.index, "aclose", None)) is not None:
            await disconnect()
        if (disconnect := getattr(self._store, "aclose", None)) is not None:
            await disconnect()
        await asyncio.to_thread(self._close)

    def __repr__(self) -> str:
        location = getattr(self._store, "where", self.config.database)
        return f"<Memory {location} embedder={self._embedder.name}>"

    def _adapt_index(self, index: VectorIndex | FrameworkModel | None) -> VectorIndex | None:
        """Return the given index; wrap a framework's vector store so that it follows the primary store."""
        try:
            adapted: VectorIndex | None = resolve_component("vector_store", "nearest", index, source=self._store)
        except BaseException:
            self._store.close()
            raise
        return adapted

    def _ports(self) -> Flow[Ports]:
        """Return the components that pipelines need, opened."""
        index = self._index if self._index is not None else (yield from do(self._open_index))
        graph = self._graph
        if graph is None and self._graph_config is not None:
            graph = yield from do(self._open_graph)
        weights = self.config.traverse.model_dump()
        adjacency = self._open_adjacency()
        return Ports(self._store, index, self._embedder, self._chat, self._reranker, graph, adjacency, weights)

    def _open_adjacency(self) -> AdjacencyIndex:
        """Return the adjacency arrays of the graph; the first call imports NumPy."""
        with self._lock:
            if self._adjacency is None:
                from mem0_core.graph.adjacency import AdjacencyIndex

                self._adjacency = AdjacencyIndex(self._store.graph)
            return self._adjacency

    def _open_index(self) -> VectorIndex:
        """Return the vector projection; the first call opens it, which imports FAISS."""
        if self._index is None:
            with self._lock:
                if self._closed:
                    raise StoreError("this memory is closed; open a new one")
                if self._index is None:
                    self._index = build_vector_index(self.config, self._store)
        return self._index

    def _open_graph(self) -> GraphMemory | None:
        """Return graph memory; the first call opens it."""
        with self._lock:
            if self._closed:
                raise StoreError("this memory is closed; open a new one")
            if self._graph is None and self._graph_config is not None:
                embedded = build_embedded_graph(self.config, self._store)
                index = self._graph_index or build_graph_index(self._graph_config, self._store, embedded)
                options = build_graph_options(self._graph_config, self.config)
                self._graph = GraphMemory(index, embedded, self._graph_chat, options)
            return self._graph

    def _run(self, flow: Flow[T]) -> T:
        """Run a flow to its end in this thread."""
        flow = log_call(flow)
        return run(flow if self._on_step is None else observe(flow, self._on_step))

    async def _arun(self, flow: Flow[T]) -> T:
        """Run a flow to its end in the current task."""
        flow = log_call(flow)
        return await arun(flow if self._on_step is None else observe(flow, self._on_step))

    def _to_version(self, result: R, method: str) -> R:
        """Return `result`, or with the configuration ``version: v1.0`` its bare list and a warning to the caller."""
        if self.config.version != "v1.0":
            return result
        message = f'version "v1.0" makes {method} return a bare list; "v1.1" returns it under "results"'
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        return cast(R, result["results"])

    def _do_jobs(self, jobs: list[Job], lease: Lease) -> Flow[None]:
        """Process queued jobs; overridden by `AddApi`."""
        raise NotImplementedError
