"""`Memory`, the front door: mem0's verbs and shapes over the pipelines.

Each verb is written once, as a flow, in `mem0_core.verbs`; its sync, async (``a...``) and `AsyncMemory` forms are made
here.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from mem0_core.api.add import AddApi
from mem0_core.api.admin import AdminApi
from mem0_core.api.factory import FrameworkModel
from mem0_core.api.graph import GraphApi
from mem0_core.api.search import SearchApi
from mem0_core.api.update import UpdateApi
from mem0_core.config import MemoryConfig, load_config
from mem0_core.domain.policy import Policy
from mem0_core.errors import ConfigError
from mem0_core.flow import Flow, StepRecord, arun, run
from mem0_core.interfaces import ChatModel, Embedder, GraphIndex, MemoryStore, Reranker, VectorIndex

__all__ = ["AsyncMemory", "Memory"]

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _sync_method(verb: Callable[Concatenate[Memory, P], Flow[T]]) -> Callable[Concatenate[Memory, P], T]:
    """The verb as a method that returns when it is done."""

    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = run(self._observe_steps(verb(self, *args, **kwargs)))
        _warn_if_bare_list(result, verb)
        return result

    return _copy_signature(call, verb, "")


def _async_method(
    verb: Callable[Concatenate[Memory, P], Flow[T]],
) -> Callable[Concatenate[Memory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method."""

    async def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self._observe_steps(verb(self, *args, **kwargs)))
        _warn_if_bare_list(result, verb)
        return result

    return _copy_signature(call, verb, "a")


def _async_client_method(
    verb: Callable[Concatenate[Memory, P], Flow[T]],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method of `AsyncMemory`."""

    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self.memory._observe_steps(verb(self.memory, *args, **kwargs)))
        _warn_if_bare_list(result, verb)
        return result

    return _copy_signature(call, verb, "")


def _copy_signature(call: F, verb: Callable[..., Any], prefix: str) -> F:
    """Give a made method the verb's signature and documentation, under its public name."""
    functools.update_wrapper(call, verb)
    call.__name__ = prefix + verb.__name__.removeprefix("_")
    call.__qualname__ = f"Memory.{call.__name__}"
    returned = str(verb.__annotations__["return"]).removeprefix("Flow[").removesuffix("]")
    call.__annotations__ = {**verb.__annotations__, "return": returned}
    call.__signature__ = inspect.signature(verb).replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call


def _warn_if_bare_list(result: object, verb: Callable[..., Any]) -> None:
    """Tell whoever called a verb that ``version: v1.0`` makes bare lists of what v1.1 returns under "results"."""
    if isinstance(result, list) and verb.__name__ in ("_add", "_search", "_get_all"):
        message = f'version "v1.0" makes {verb.__name__[1:]} return a bare list; "v1.1" has it under "results"'
        warnings.warn(message, DeprecationWarning, stacklevel=3)


class Memory(AddApi, GraphApi, UpdateApi, AdminApi):
    """Long-term memory for agents, kept on this machine unless told otherwise.

    Args:
        config: a `MemoryConfig` or a mapping of its keys (mem0's names).
        llm, embedder, reranker: instances, ``"provider:model"`` or ``{"provider", "config"}``; they take
            precedence over `config`. Instances of a framework's classes serve where its adapter is installed
            (``mem0-langchain``, ``mem0-llamaindex``). With no `llm`, messages are kept verbatim.
        store: a `MemoryStore` in place of the one that `config` names.
        index: a `VectorIndex` in place of the embedded FAISS projection, which must follow the same store; or a
            vector store of a framework, as above.
        graph: where relations are searched, as a provider's name (``"sqlite"``, ``"neo4j"``, ``"ladybug"``), a
            ``graph_store`` mapping, or a `GraphIndex` that follows the same store; False for no graph memory.
        policy: asked for every message and every memory, with its scope, before it is kept: returns the text as it may
            be kept (redacted, or as it is), or None for not at all.
        on_step: told of every call a verb makes to a model or store (name, seconds, result or error), for
            logging and tracing.

    A memory may be shared between threads and tasks. Close it, or use it as a context manager.

    Raises:
        ConfigError: a key is unknown or wrong.
        StoreError: the store cannot be opened.
    """

    add = _sync_method(AddApi._add)
    add_many = _sync_method(AddApi._add_many)
    search = _sync_method(SearchApi._search)
    explain_missing = _sync_method(SearchApi._explain_missing)
    get = _sync_method(SearchApi._get)
    get_all = _sync_method(SearchApi._get_all)
    relations = _sync_method(GraphApi._relations)
    traverse = _sync_method(GraphApi._traverse)
    query = _sync_method(GraphApi._query)
    visualize = _sync_method(GraphApi._visualize)
    pending = _sync_method(AddApi._pending)
    context = _sync_method(SearchApi._context)
    pin = _sync_method(SearchApi._pin)
    flush = _sync_method(AddApi._flush)
    retry = _sync_method(AddApi._retry)
    update = _sync_method(UpdateApi._update)
    update_by_query = _sync_method(UpdateApi._update_by_query)
    delete_by_query = _sync_method(UpdateApi._delete_by_query)
    merge = _sync_method(GraphApi._merge)
    unmerge = _sync_method(GraphApi._unmerge)
    merges = _sync_method(GraphApi._merges)
    delete = _sync_method(UpdateApi._delete)
    delete_all = _sync_method(UpdateApi._delete_all)
    history = _sync_method(SearchApi._history)
    reset = _sync_method(UpdateApi._reset)
    rebuild = _sync_method(UpdateApi._rebuild)
    backup = _sync_method(AdminApi._backup)
    doctor = _sync_method(AdminApi._doctor)
    stats = _sync_method(AdminApi._stats)
    export = _sync_method(AdminApi._export)
    adopt = _sync_method(AdminApi._adopt)

    aadd = _async_method(AddApi._add)
    aadd_many = _async_method(AddApi._add_many)
    asearch = _async_method(SearchApi._search)
    aexplain_missing = _async_method(SearchApi._explain_missing)
    aget = _async_method(SearchApi._get)
    aget_all = _async_method(SearchApi._get_all)
    arelations = _async_method(GraphApi._relations)
    atraverse = _async_method(GraphApi._traverse)
    aquery = _async_method(GraphApi._query)
    avisualize = _async_method(GraphApi._visualize)
    apending = _async_method(AddApi._pending)
    acontext = _async_method(SearchApi._context)
    apin = _async_method(SearchApi._pin)
    aflush = _async_method(AddApi._flush)
    aretry = _async_method(AddApi._retry)
    aupdate = _async_method(UpdateApi._update)
    aupdate_by_query = _async_method(UpdateApi._update_by_query)
    adelete_by_query = _async_method(UpdateApi._delete_by_query)
    amerge = _async_method(GraphApi._merge)
    aunmerge = _async_method(GraphApi._unmerge)
    amerges = _async_method(GraphApi._merges)
    adelete = _async_method(UpdateApi._delete)
    adelete_all = _async_method(UpdateApi._delete_all)
    ahistory = _async_method(SearchApi._history)
    areset = _async_method(UpdateApi._reset)
    arebuild = _async_method(UpdateApi._rebuild)
    abackup = _async_method(AdminApi._backup)
    adoctor = _async_method(AdminApi._doctor)
    astats = _async_method(AdminApi._stats)
    aexport = _async_method(AdminApi._export)
    aadopt = _async_method(AdminApi._adopt)


class AsyncMemory:
    """`Memory` for asyncio: the same verbs, awaited.

    Takes what `Memory` takes, or ``memory=`` to share one.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | None = None,
        *,
        memory: Memory | None = None,
        llm: ChatModel | Mapping[str, Any] | str | FrameworkModel | None = None,
        embedder: Embedder | Mapping[str, Any] | str | FrameworkModel | None = None,
        reranker: Reranker | Mapping[str, Any] | str | FrameworkModel | None = None,
        store: MemoryStore | None = None,
        index: VectorIndex | FrameworkModel | None = None,
        graph: GraphIndex | Mapping[str, Any] | str | bool | None = None,
        policy: Policy | None = None,
        on_step: Callable[[StepRecord], None] | None = None,
    ) -> None:
        parts: dict[str, Any] = {
            "llm": llm,
            "embedder": embedder,
            "reranker": reranker,
            "store": store,
            "index": index,
            "graph": graph,
            "policy": policy,
            "on_step": on_step,
        }
        if memory is not None and any(part is not None for part in (config, *parts.values())):
            raise ConfigError("memory: give a memory to share, or what to make one from, not both")
        self.memory = memory if memory is not None else Memory(config, **parts)

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | Path) -> Self:
        """A memory from mem0's configuration dict, or from a YAML or JSON file of it."""
        return cls(load_config(config))

    add = _async_client_method(Memory._add)
    add_many = _async_client_method(Memory._add_many)
    search = _async_client_method(Memory._search)
    explain_missing = _async_client_method(Memory._explain_missing)
    get = _async_client_method(Memory._get)
    get_all = _async_client_method(Memory._get_all)
    relations = _async_client_method(Memory._relations)
    traverse = _async_client_method(Memory._traverse)
    query = _async_client_method(Memory._query)
    visualize = _async_client_method(Memory._visualize)
    pending = _async_client_method(Memory._pending)
    context = _async_client_method(Memory._context)
    pin = _async_client_method(Memory._pin)
    flush = _async_client_method(Memory._flush)
    retry = _async_client_method(Memory._retry)
    update = _async_client_method(Memory._update)
    update_by_query = _async_client_method(Memory._update_by_query)
    delete_by_query = _async_client_method(Memory._delete_by_query)
    merge = _async_client_method(Memory._merge)
    unmerge = _async_client_method(Memory._unmerge)
    merges = _async_client_method(Memory._merges)
    delete = _async_client_method(Memory._delete)
    delete_all = _async_client_method(Memory._delete_all)
    history = _async_client_method(Memory._history)
    reset = _async_client_method(Memory._reset)
    rebuild = _async_client_method(Memory._rebuild)
    backup = _async_client_method(Memory._backup)
    doctor = _async_client_method(Memory._doctor)
    stats = _async_client_method(Memory._stats)
    export = _async_client_method(Memory._export)
    adopt = _async_client_method(Memory._adopt)

    async def close(self) -> None:
        await self.memory.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
