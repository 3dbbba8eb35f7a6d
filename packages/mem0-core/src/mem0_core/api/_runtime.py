"""Lifecycle of the models and stores of one memory: built or opened on first use, closed together."""

from __future__ import annotations

import glob
import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mem0_core._system.boundary import guard_hook, to_caller_error
from mem0_core._system.files import clear_abandoned, list_private_folders, mem0_home
from mem0_core._system.locks import SignalSafeLock
from mem0_core.api._arguments import ScopeIds, scope_or_all, validate_id
from mem0_core.api._call_log import log_call
from mem0_core.api._clock import StatementClock
from mem0_core.api._telemetry import Telemetry
from mem0_core.api.factory import (
    FrameworkModel,
    build_embedded_graph,
    build_graph_index,
    build_graph_options,
    build_vector_index,
    check_graph_support,
    check_vector_store,
    choose_reranker,
    match_store,
    refuse_plain_projections,
    resolve_component,
    resolve_graph,
    resolve_store,
    snapshot_folder,
)
from mem0_core.config import MemoryConfig, resolve_config
from mem0_core.domain.erasure import ERASURE
from mem0_core.domain.missing_names import SuggestsMethods
from mem0_core.domain.policy import Policy, RateLimiter
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.domain.records import AddResult, Scope, SearchResult
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import CapabilityError, ConfigError, Mem0Error, StoreError
from mem0_core.flow import Flow, StepRecord, arun, do, observe, replace_calls, run, step_listener
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
from mem0_core.interfaces.keys import Keys

if TYPE_CHECKING:
    from mem0_core.graph.adjacency import AdjacencyIndex
    from mem0_core.recall.cache import SearchCache

_log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R", AddResult, SearchResult)

_FOLDER_FILES = ("prompt_history", "app.log", "app.log.1", "app.log.2", "app.log.3")
"""Files that the command writes into the data folder."""


class MemoryRuntime(SuggestsMethods):
    """Components of one memory; see `memory.Memory` for the arguments."""

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None,
        *,
        path: str | Path | None,
        llm: ChatModel | Mapping[str, Any] | str | FrameworkModel | None,
        embedder: Embedder | Mapping[str, Any] | str | FrameworkModel | None,
        reranker: Reranker | Mapping[str, Any] | str | FrameworkModel | bool | None,
        store: MemoryStore | RecordStore | Mapping[str, Any] | str | Path | None,
        index: VectorIndex | FrameworkModel | None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None,
        keys: Keys | None,
        policy: Policy | None,
        on_step: Callable[[StepRecord], None] | None,
    ) -> None:
        self.config = resolve_config(config, path=path, store=store)
        _check_callable("on_step", on_step, "a step record")
        _check_callable("policy", policy, "a text and its scope")
        self._on_step = guard_hook("on_step", on_step)
        self._lock = SignalSafeLock()
        self._closed = False
        self._chat: ChatModel | None = resolve_component("llm", "complete", llm, self.config.llm)
        self._tokenizer_loaded = False  # the first count may load a vocabulary, off the event loop
        self._embedder: Embedder = resolve_component("embedder", "embed", embedder, self.config.embedder, "local")
        self._reranker, self._is_reranker_default = choose_reranker(self.config, self._chat, embedder, reranker)
        _check_index(index, self.config)
        self._graph_config, self._graph_index = resolve_graph(graph, self.config, self._chat)
        self._graph_chat: ChatModel | None = self._chat
        if self._graph_config is not None and self._graph_config.llm is not None:
            self._graph_chat = resolve_component("llm", "complete", self._graph_config.llm)
        self._name_mem0_store(store)
        given_store = None if isinstance(store, (str, Path, Mapping)) else store
        self._is_given_store = given_store is not None
        self._store: MemoryStore = resolve_store(given_store, self.config, keys)
        self._embedder = match_store(self._embedder, self._store)
        is_requested = graph is not None or self.config.graph_store is not None
        self._graph_config = check_graph_support(self._store, self._graph_config, is_requested=is_requested)
        self._index: VectorIndex | None = self._adapt_index(index)
        self._graph: GraphMemory | None = None
        self._adjacency: AdjacencyIndex | None = None
        self._cache: SearchCache | None = None
        self._has_interrupted_erasures = self._resume_rows()
        self._policy = policy
        self._recipe = resolve_recipe(self.config.recipe)
        self._limits = self.config.limits
        self._rates = RateLimiter(self._limits)
        self._clock = StatementClock()
        self._telemetry = Telemetry(self.config.telemetry, self._store, self.config.database)
        self._background = self._build_workers()

    def _build_workers(self) -> BackgroundWorkers:
        settings, trace_jobs = self.config.background, self._telemetry.trace_jobs
        return BackgroundWorkers(self._store.jobs, self._do_jobs, settings, trace_jobs)

    def _name_mem0_store(self, store: object) -> None:
        """Log how to copy a store of mem0, before the file in the default folder is first created."""
        is_default = store is None and {"path", "history_db_path", "store"}.isdisjoint(self.config.given_keys)
        if not is_default or self.config.store_config is not None or self.config.database.exists():
            return
        history = mem0_home() / "history.db"
        if history.is_file():
            _log.warning(
                "mem0 has a store at %s, which stays as it is; `mem0-core adopt` copies its memories and history to %s",
                history.parent,
                self.config.folder,
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
        import asyncio

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
        refuse_plain_projections(self._store, self.config, self._graph_config, index, self._graph_index)
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
        adjacency, cache = self._adjacency or self._open_adjacency(), self._cache
        if cache is None and self.config.search_cache:
            cache = self._open_cache()
        ports = Ports(
            store=self._store,
            index=index,
            embedder=self._embedder,
            chat=self._chat,
            reranker=self._reranker,
            is_reranker_default=self._is_reranker_default,
            graph=graph,
            adjacency=adjacency,
            traversal_weights=self.config.traverse,
            cache=cache,
        )
        if self._has_interrupted_erasures:
            yield from self._resume_erasures(ports)
        return ports

    # --- interrupted erasures ----------------------------------------------------------------------------------------

    def _data_files(self) -> list[Path]:
        """Return the files and folders of this memory: its database with logs, unfinished copies, and its folder."""
        from mem0_core.admin.replies import REPLY_FILE

        paths = list_private_folders(self._copy_folders())
        paths += self.config.folder.glob(f"{REPLY_FILE}*")
        if (path := self._database()) is not None:
            paths += path.parent.glob(f"{glob.escape(path.name)}*")
        if not self._is_given_store:  # the folder of a store that the caller made is unknown
            paths += [snapshot_folder(self.config), *(self.config.folder / name for name in _FOLDER_FILES)]
        return paths

    def _database(self) -> Path | None:
        """Return the file of the store; None for a server or a store in memory."""
        path = getattr(self._store, "path", None)
        return None if path is None or path == ":memory:" else Path(path)

    def _copy_folders(self) -> list[Path]:
        """Return the folders in which killed processes may have left temporary copies of this memory."""
        from mem0_core.admin.copies import list_copy_folders

        database = self._database()
        folders = [] if database is None else [database.parent]
        if not self._is_given_store:
            folders.append(self.config.folder)
        return [*folders, *(folder / "viz" for folder in folders), *list_copy_folders(self._store.maintenance)]

    def _clear_temporary_files(self) -> None:
        """Remove the temporary copies that killed processes left."""
        clear_abandoned(self._copy_folders())

    def _resume_rows(self) -> bool:
        """Erase the rows of interrupted erasures, before anything is read; return True if there are any."""
        try:
            if not self._store.maintenance.registry(ERASURE):
                return False
            from mem0_core.admin.erase import resume_rows

            resume_rows(self._store)
        except CapabilityError:  # a store without maintenance holds no jobs
            return False
        except StoreError as error:  # a store that is read-only or frozen: the next process tries again
            _log.warning("an interrupted erasure cannot be resumed now: %s", error)
        return True

    def _resume_erasures(self, ports: Ports) -> Flow[None]:
        from mem0_core.admin.erase import resume_erasures

        self._has_interrupted_erasures = False
        try:
            yield from do(self._clear_temporary_files)
            yield from resume_erasures(ports, folder=self.config.folder, files=self._data_files())
        except StoreError as error:
            self._has_interrupted_erasures = True
            _log.warning("an interrupted erasure cannot be finished now: %s", error)

    def _open_cache(self) -> SearchCache:
        """Return the memory of searches; the first call imports the analysis of texts."""
        with self._lock:
            if self._cache is None:
                from mem0_core.recall.cache import SearchCache

                self._cache = SearchCache()
            return self._cache

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
                    self._index = build_vector_index(self.config, self._store, embedder=self._embedder)
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

    def _statement_time(self, scope: Scope | None) -> Flow[str]:
        """Return the time of a statement that is made now, later than those of its partition."""
        if scope is None:
            return self._clock.now()
        latest: str | None = None
        with suppress(CapabilityError):  # a store without a change feed
            latest = yield from do(self._store.feed.latest_time, scope)
        return self._clock.now(scope.partition_scope, latest)

    def _is_owner(self, memory_id: str, ids: ScopeIds) -> Flow[bool]:
        """Return True if the ids contain a memory or a deleted one; without ids, always."""
        owner = scope_or_all(ids)
        if owner is None:
            return True
        scope = yield from do(self._store.owner, validate_id(memory_id))
        return scope is not None and owner.contains(scope)

    def _run(self, flow: Flow[T]) -> T:
        """Run a flow to its end in this thread."""
        span = self._telemetry.trace_call(flow)
        flow = self._watch(flow)
        try:
            return run(flow) if span is None else span.run(flow)
        except (Mem0Error, MemoryError):
            raise
        except Exception as error:
            raise to_caller_error(error, sys._getframe(1)) from error

    async def _arun(self, flow: Flow[T]) -> T:
        """Run a flow to its end in the current task."""
        span = self._telemetry.trace_call(flow)
        flow = self._watch(flow)
        try:
            return await (arun(flow) if span is None else span.arun(flow))
        except (Mem0Error, MemoryError):
            raise
        except Exception as error:
            raise to_caller_error(error, sys._getframe(1)) from error

    def _watch(self, flow: Flow[T]) -> Flow[T]:
        """Wrap the flow of a method for the log, for a listener of the current task and for `on_step`."""
        flow = log_call(flow)
        listener = step_listener.get()
        if listener is not None:
            flow = replace_calls(flow, listener)
        return flow if self._on_step is None else observe(flow, self._on_step)

    def _to_version(self, result: R, method: str) -> R:
        """Return `result`, or with the configuration ``version: v1.0`` its bare list and a warning to the caller."""
        if self.config.version != "v1.0":
            return result
        message = f'version "v1.0" makes {method} return a bare list; "v1.1" returns it under "results"'
        warnings.warn(message, DeprecationWarning, stacklevel=_caller_level())
        return cast(R, result["results"])

    def _do_jobs(self, jobs: list[Job], lease: Lease) -> Flow[None]:
        """Process queued jobs; overridden by `AddApi`."""
        raise NotImplementedError


def _check_callable(argument: str, given: object, takes: str) -> None:
    if given is not None and not callable(given):
        raise ConfigError(
            f"{argument} must be a function of {takes}, not {describe_value(given)}; pass a function, or leave it out"
        )


def _check_index(index: object, config: MemoryConfig) -> None:
    if index is None:
        check_vector_store(config)
    elif isinstance(index, (str, Mapping)):
        named = describe_value(index if isinstance(index, Mapping) else {"provider": index})
        raise ConfigError(
            f"index: an object is required, not {describe_value(index)}; a provider is named by the configuration: pass"
            f" Memory({{'vector_store': {named}}})"
        )


def _caller_level() -> int:
    """Return the `stacklevel` of a warning in the calling method that points at the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("mem0_core."):
        frame, level = frame.f_back, level + 1
    return level
