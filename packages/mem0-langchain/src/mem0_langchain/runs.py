"""A memory's `search` and `add` as LangChain runs: visible to callbacks and tracing, but not in message streams."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Literal, TypeVar

from langchain_core.callbacks import BaseCallbackManager, CallbackManager, Callbacks
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.constants import TAG_NOSTREAM

from mem0_core import AddResult, AsyncMemory, ContextDict, Memory, Scope
from mem0_core.api.options import unwrap_memory

__all__ = ["MemoryRuns", "build_recall_request", "build_remember_request", "langsmith_params", "to_ids"]

T = TypeVar("T")

_STREAM_HANDLERS = frozenset({"_StreamingCallbackHandler", "_V2StreamingCallbackHandler"})
"""Classes that LangChain derives its handlers for streams of events and messages from."""

logger = logging.getLogger("mem0_langchain")


class MemoryRuns:
    """The memory calls of one turn of a conversation.

    Attributes:
        context: takes the arguments of `Memory.context` and returns the packed context.
        remember: takes the arguments of `Memory.add` and returns its result; skipped items are logged.
    """

    def __init__(self, memory: Memory | AsyncMemory) -> None:
        self._memory = unwrap_memory(memory)
        metadata = langsmith_params(self._memory)
        self.context = _TracedCall("mem0.recall", self._context, self._acontext, metadata)
        self.remember = _TracedCall("mem0.remember", self._remember, self._aremember)

    def _context(self, request: dict[str, Any]) -> ContextDict:
        with _outside_streams():
            return self._memory.context(**request)

    async def _acontext(self, request: dict[str, Any]) -> ContextDict:
        with _outside_streams():
            return await self._memory.acontext(**request)

    def _remember(self, request: dict[str, Any]) -> AddResult:
        with _outside_streams():
            return _log_skipped(self._memory.add(**request))

    async def _aremember(self, request: dict[str, Any]) -> AddResult:
        with _outside_streams():
            return _log_skipped(await self._memory.aadd(**request))


class _TracedCall(Generic[T]):
    """A memory call that becomes a LangChain run only if a handler would see it: a run costs up to 0.5 ms."""

    def __init__(
        self,
        name: str,
        call: Callable[[dict[str, Any]], T],
        acall: Callable[[dict[str, Any]], Awaitable[T]],
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._call, self._acall = call, acall
        # The tag reaches LangChain models that the memory calls: their output is not part of the reply.
        self._run: Runnable[dict[str, Any], T] = RunnableLambda(call, acall, name=name).with_config(
            tags=[TAG_NOSTREAM], metadata=dict(metadata or {})
        )

    def invoke(self, request: dict[str, Any], config: RunnableConfig | None = None) -> T:
        return self._run.invoke(request, config) if _is_traced(config) else self._call(request)

    async def ainvoke(self, request: dict[str, Any], config: RunnableConfig | None = None) -> T:
        return await (self._run.ainvoke(request, config) if _is_traced(config) else self._acall(request))


def current_config() -> RunnableConfig:
    """Return the config of the enclosing run itself; empty outside of any. `ensure_config` copies its collections."""
    return var_child_runnable_config.get() or RunnableConfig()


@contextmanager
def _outside_streams() -> Iterator[None]:
    """Hide LangChain models that the memory calls from the handlers of streams; tracers still see their runs."""
    config = current_config()
    callbacks = config.get("callbacks")
    if not isinstance(callbacks, BaseCallbackManager) or not _has_handlers(callbacks):
        yield
        return
    quiet = callbacks.copy()
    for handler in {*quiet.handlers, *quiet.inheritable_handlers}:
        if _STREAM_HANDLERS.intersection(kind.__name__ for kind in type(handler).__mro__):
            quiet.remove_handler(handler)
    token = var_child_runnable_config.set({**config, "callbacks": quiet})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _is_traced(config: RunnableConfig | None) -> bool:
    """Return True if a handler of the enclosing run or of the context (such as a tracer) would see a run."""
    given = (config or {}).get("callbacks")
    callbacks = current_config().get("callbacks") if given is None else given
    # Handlers of the context need not be inherited, and are then missing from the enclosing run.
    return _has_handlers(callbacks) or bool(CallbackManager.configure().handlers)


def _has_handlers(callbacks: Callbacks) -> bool:
    if isinstance(callbacks, BaseCallbackManager):
        return bool(callbacks.handlers or callbacks.inheritable_handlers)
    return bool(callbacks)


def build_recall_request(
    query: str,
    scope: Scope,
    *,
    k: int,
    threshold: float | None,
    filters: Mapping[str, Any] | None,
    recipe: Any = None,
) -> dict[str, Any]:
    """Return the arguments of `Memory.search`, with the recipe only if one is set."""
    arguments = {"query": query, **to_ids(scope), "limit": k, "threshold": threshold, "filters": filters}
    return arguments if recipe is None else {**arguments, "recipe": recipe}


def build_remember_request(
    messages: Sequence[Mapping[str, Any]],
    scope: Scope,
    *,
    infer: bool,
    keep: Literal["all", "statements"],
    background: bool,
) -> dict[str, Any]:
    """Return the arguments of `Memory.add`."""
    options = {"infer": infer, "keep": keep, "facts_about": "owner", "background": background}
    return {"messages": list(messages), **to_ids(scope), **options}


def langsmith_params(memory: Memory) -> LangSmithRetrieverParams:
    """Return the metadata by which LangSmith groups retrievals."""
    return LangSmithRetrieverParams(
        ls_retriever_name="mem0",
        ls_vector_store_provider=type(memory.store).__name__,
        ls_embedding_provider=type(memory.embedder).__name__,
        ls_embedding_model=memory.embedder.name,
    )


def to_ids(scope: Scope) -> dict[str, Any]:
    """Return the ids of a scope as keyword arguments of `Memory`'s methods."""
    return {str(axis): value for axis, value in scope.ids.items()}


def _log_skipped(result: AddResult) -> AddResult:
    """Log the items that could not be remembered."""
    skipped = result["skipped"] if isinstance(result, Mapping) else []  # version "v1.0" returns a bare list
    for entry in skipped:
        logger.warning("not remembered: %s: %r", entry["reason"], entry["item"])
    return result
