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

from mem0_core.config import MemoryConfig, load_config
from mem0_core.errors import ConfigError
from mem0_core.flow import Flow, StepRecord, arun, run
from mem0_core.policy import Policy
from mem0_core.ports import ChatModel, Embedder, GraphIndex, MemoryStore, Reranker, VectorIndex
from mem0_core.verbs.changing import Changing
from mem0_core.verbs.exploring import Exploring
from mem0_core.verbs.keeping import Keeping
from mem0_core.verbs.learning import Learning
from mem0_core.verbs.recalling import Recalling
from mem0_core.wiring import Foreign

__all__ = ["AsyncMemory", "Memory"]

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _sync(verb: Callable[Concatenate[Memory, P], Flow[T]]) -> Callable[Concatenate[Memory, P], T]:
    """The verb as a method that returns when it is done."""

    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = run(self._watch(verb(self, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "")


def _async(verb: Callable[Concatenate[Memory, P], Flow[T]]) -> Callable[Concatenate[Memory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method."""

    async def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self._watch(verb(self, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "a")


def _awaited(
    verb: Callable[Concatenate[Memory, P], Flow[T]],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """The verb as a coroutine method of `AsyncMemory`."""

    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = await arun(self.memory._watch(verb(self.memory, *args, **kwargs)))
        _warn_of_bare_list(result, verb)
        return result

    return _named(call, verb, "")


def _named(call: F, verb: Callable[..., Any], prefix: str) -> F:
    """Give a made method the verb's signature and documentation, under its public name."""
    functools.update_wrapper(call, verb)
    call.__name__ = prefix + verb.__name__.removeprefix("_")
    call.__qualname__ = f"Memory.{call.__name__}"
    returned = str(verb.__annotations__["return"]).removeprefix("Flow[").removesuffix("]")
    call.__annotations__ = {**verb.__annotations__, "return": returned}
    call.__signature__ = inspect.signature(verb).replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call


def _warn_of_bare_list(result: object, verb: Callable[..., Any]) -> None:
    """Tell whoever called a verb that ``version: v1.0`` makes bare lists of what v1.1 returns under "results"."""
    if isinstance(result, list) and verb.__name__ in ("_add", "_search", "_get_all"):
        message = f'version "v1.0" makes {verb.__name__[1:]} return a bare list; "v1.1" has it under "results"'
        warnings.warn(message, DeprecationWarning, stacklevel=3)


class Memory(Learning, Exploring, Changing, Keeping):
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

    add = _sync(Learning._add)
    add_many = _sync(Learning._add_many)
    search = _sync(Recalling._search)
    explain_missing = _sync(Recalling._explain_missing)
    get = _sync(Recalling._get)
    get_all = _sync(Recalling._get_all)
    relations = _sync(Exploring._relations)
    traverse = _sync(Exploring._traverse)
    query = _sync(Exploring._query)
    visualize = _sync(Exploring._visualize)
    pending = _sync(Learning._pending)
    context = _sync(Recalling._context)
    pin = _sync(Recalling._pin)
    flush = _sync(Learning._flush)
    retry = _sync(Learning._retry)
    update = _sync(Changing._update)
    update_by_query = _sync(Changing._update_by_query)
    delete_by_query = _sync(Changing._delete_by_query)
    merge = _sync(Exploring._merge)
    unmerge = _sync(Exploring._unmerge)
    merges = _sync(Exploring._merges)
    delete = _sync(Changing._delete)
    delete_all = _sync(Changing._delete_all)
    history = _sync(Recalling._history)
    reset = _sync(Changing._reset)
    rebuild = _sync(Changing._rebuild)
    backup = _sync(Keeping._backup)
    doctor = _sync(Keeping._doctor)
    stats = _sync(Keeping._stats)
    export = _sync(Keeping._export)
    adopt = _sync(Keeping._adopt)

    aadd = _async(Learning._add)
    aadd_many = _async(Learning._add_many)
    asearch = _async(Recalling._search)
    aexplain_missing = _async(Recalling._explain_missing)
    aget = _async(Recalling._get)
    aget_all = _async(Recalling._get_all)
    arelations = _async(Exploring._relations)
    atraverse = _async(Exploring._traverse)
    aquery = _async(Exploring._query)
    avisualize = _async(Exploring._visualize)
    apending = _async(Learning._pending)
    acontext = _async(Recalling._context)
    apin = _async(Recalling._pin)
    aflush = _async(Learning._flush)
    aretry = _async(Learning._retry)
    aupdate = _async(Changing._update)
    aupdate_by_query = _async(Changing._update_by_query)
    adelete_by_query = _async(Changing._delete_by_query)
    amerge = _async(Exploring._merge)
    aunmerge = _async(Exploring._unmerge)
    amerges = _async(Exploring._merges)
    adelete = _async(Changing._delete)
    adelete_all = _async(Changing._delete_all)
    ahistory = _async(Recalling._history)
    areset = _async(Changing._reset)
    arebuild = _async(Changing._rebuild)
    abackup = _async(Keeping._backup)
    adoctor = _async(Keeping._doctor)
    astats = _async(Keeping._stats)
    aexport = _async(Keeping._export)
    aadopt = _async(Keeping._adopt)


class AsyncMemory:
    """`Memory` for asyncio: the same verbs, awaited.

    Takes what `Memory` takes, or ``memory=`` to share one.
    """

    def __init__(
        self,
        config: MemoryConfig | Mapping[str, Any] | None = None,
        *,
        memory: Memory | None = None,
        llm: ChatModel | Mapping[str, Any] | str | Foreign | None = None,
        embedder: Embedder | Mapping[str, Any] | str | Foreign | None = None,
        reranker: Reranker | Mapping[str, Any] | str | Foreign | None = None,
        store: MemoryStore | None = None,
        index: VectorIndex | Foreign | None = None,
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

    add = _awaited(Memory._add)
    add_many = _awaited(Memory._add_many)
    search = _awaited(Memory._search)
    explain_missing = _awaited(Memory._explain_missing)
    get = _awaited(Memory._get)
    get_all = _awaited(Memory._get_all)
    relations = _awaited(Memory._relations)
    traverse = _awaited(Memory._traverse)
    query = _awaited(Memory._query)
    visualize = _awaited(Memory._visualize)
    pending = _awaited(Memory._pending)
    context = _awaited(Memory._context)
    pin = _awaited(Memory._pin)
    flush = _awaited(Memory._flush)
    retry = _awaited(Memory._retry)
    update = _awaited(Memory._update)
    update_by_query = _awaited(Memory._update_by_query)
    delete_by_query = _awaited(Memory._delete_by_query)
    merge = _awaited(Memory._merge)
    unmerge = _awaited(Memory._unmerge)
    merges = _awaited(Memory._merges)
    delete = _awaited(Memory._delete)
    delete_all = _awaited(Memory._delete_all)
    history = _awaited(Memory._history)
    reset = _awaited(Memory._reset)
    rebuild = _awaited(Memory._rebuild)
    backup = _awaited(Memory._backup)
    doctor = _awaited(Memory._doctor)
    stats = _awaited(Memory._stats)
    export = _awaited(Memory._export)
    adopt = _awaited(Memory._adopt)

    async def close(self) -> None:
        await self.memory.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
