"""Hooks of the middleware: approval of recalled memories and of messages to store, and reports about both."""

from __future__ import annotations

import inspect
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

from langchain_core.runnables.config import var_child_runnable_config

from mem0_core import AddResult, ArgumentError, ConfigError, ContextDict, Scope
from mem0_core.domain.suggestions import describe_value
from mem0_core.llm.prompts import memories_block, memory_line
from mem0_core.llm.tokens import estimate_tokens
from mem0_core.recall.freshness import RecallStamp

__all__ = [
    "Decision",
    "RecallHook",
    "RecalledBlock",
    "RecalledBlocks",
    "RememberHook",
    "StreamWriter",
    "TurnHooks",
    "report_in_metadata",
]

Decision: TypeAlias = bool | Sequence[Mapping[str, Any]] | None
"""True or None approves everything and False nothing; a sequence has the approved entries, which may be edited."""

RecallHook: TypeAlias = Callable[[ContextDict, Scope], Decision | Awaitable[Decision]]
RememberHook: TypeAlias = Callable[[list[dict[str, Any]], Scope], Decision | Awaitable[Decision]]
StreamWriter: TypeAlias = Callable[[Any], None]

_MAX_BLOCKS = 1000  # recalled texts of running turns; a turn without its text recalls again


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    """The text that the model is shown, with its number of memories and of tokens."""

    text: str
    memories: int
    tokens: int
    stamp: RecallStamp

    @classmethod
    def from_context(cls, recalled: ContextDict) -> RecalledBlock:
        return cls(recalled["text"], len(recalled["memories"]), recalled["tokens"], RecallStamp.of(recalled))


class RecalledBlocks:
    """The texts recalled for running turns, by key; the oldest are dropped."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[str, RecalledBlock] = OrderedDict()
        self._lock = Lock()

    def add(self, block: RecalledBlock, key: str | None = None) -> str:
        """Keep a text, and return its key: a new one unless `key` is given."""
        key = key or uuid.uuid4().hex
        with self._lock:
            self._blocks[key] = block
            while len(self._blocks) > _MAX_BLOCKS:
                self._blocks.popitem(last=False)
        return key

    def get(self, key: str) -> RecalledBlock | None:
        return self._blocks.get(key)

    def drop(self, key: str) -> None:
        with self._lock:
            self._blocks.pop(key, None)


class TurnHooks:
    """The hooks of one middleware, and its reports in the custom stream of a run.

    Raises:
        ConfigError: a hook cannot be called.
    """

    def __init__(
        self, on_recall: RecallHook | None, on_remember: RememberHook | None, introduction: str, *, stream: bool
    ) -> None:
        for name, hook in (("on_recall", on_recall), ("on_remember", on_remember)):
            if hook is not None and not callable(hook):
                raise ConfigError(f"{name} must be a function, not {describe_value(hook)}")
        self._on_recall, self._on_remember = on_recall, on_remember
        self._introduction, self._stream = introduction, stream

    def approve_recall(self, recalled: ContextDict, scope: Scope) -> ContextDict:
        """Return the approved part of recalled memories."""
        if self._on_recall is None or not recalled["text"]:
            return recalled
        return self._select_recalled(recalled, _require_sync("on_recall", self._on_recall(recalled, scope)))

    async def aapprove_recall(self, recalled: ContextDict, scope: Scope) -> ContextDict:
        """Async version of `approve_recall`; the hook may be a coroutine function."""
        if self._on_recall is None or not recalled["text"]:
            return recalled
        decision = self._on_recall(recalled, scope)
        return self._select_recalled(recalled, await decision if inspect.isawaitable(decision) else decision)

    def approve_remember(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the arguments of `Memory.add` with the approved messages; None if there are none."""
        if self._on_remember is None:
            return request
        decision = self._on_remember(_get_messages(request), _get_scope(request))
        return _select_messages(request, _require_sync("on_remember", decision))

    async def aapprove_remember(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Async version of `approve_remember`; the hook may be a coroutine function."""
        if self._on_remember is None:
            return request
        decision = self._on_remember(_get_messages(request), _get_scope(request))
        return _select_messages(request, await decision if inspect.isawaitable(decision) else decision)

    def report_recall(self, write: StreamWriter, name: str, recalled: ContextDict) -> None:
        """Write recalled memories to the custom stream, if that is wanted."""
        if self._stream and recalled["text"]:
            shown = {key: recalled[key] for key in ("memories", "relations", "summary", "tokens")}
            write({"type": "mem0.recall", "name": name, **shown})

    def report_remember(self, write: StreamWriter, name: str, request: Mapping[str, Any], result: AddResult) -> None:
        """Write stored messages, and the memories made of them, to the custom stream, if that is wanted."""
        if self._stream:
            changes = result if isinstance(result, list) else result["results"]  # version "v1.0" returns a bare list
            messages = [{key: message[key] for key in ("role", "content")} for message in request["messages"]]
            job = None if isinstance(result, list) else result.get("job_id")
            write({"type": "mem0.remember", "name": name, "messages": messages, "results": changes, "job_id": job})

    def _select_recalled(self, recalled: ContextDict, decision: Any) -> ContextDict:
        if decision is None or decision is True:
            return recalled
        memories: Any = [] if decision is False else _read_entries("on_recall", decision, "memory")
        text = memories_block([memory_line(memory) for memory in memories], introduction=self._introduction)
        return ContextDict(
            text=text, summary="", memories=memories, relations=[], messages=[], tokens=estimate_tokens(text)
        )


@contextmanager
def report_in_metadata(block: RecalledBlock | None) -> Iterator[None]:
    """Add the number of memories and tokens that are shown to the metadata of the model's run."""
    config = var_child_runnable_config.get()
    if config is None or block is None or not block.text:
        yield
        return
    metadata = dict(config.get("metadata") or {})
    for key, count in (("mem0_memories", block.memories), ("mem0_tokens", block.tokens)):
        metadata[key] = metadata.get(key, 0) + count  # another memory of this agent may have counted before
    token = var_child_runnable_config.set({**config, "metadata": metadata})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _get_messages(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(message) for message in request["messages"]]  # a hook that edits its argument changes nothing


def _get_scope(request: Mapping[str, Any]) -> Scope:
    return Scope(**{axis: request.get(axis) for axis in ("user_id", "agent_id", "run_id")})


def _select_messages(request: dict[str, Any], decision: Any) -> dict[str, Any] | None:
    if decision is None or decision is True:
        return request
    messages = [] if decision is False else _read_entries("on_remember", decision, "content")
    return {**request, "messages": messages} if messages else None


def _read_entries(hook: str, decision: Any, key: str) -> list[dict[str, Any]]:
    """Return the entries of a hook's decision.

    Raises:
        ArgumentError: it is no sequence of mappings that have `key`.
    """
    entries = list(decision) if isinstance(decision, (list, tuple)) else [decision]
    for entry in entries:
        if not isinstance(entry, Mapping) or key not in entry:
            raise ArgumentError(
                f"{hook} returned {describe_value(entry)}; return True or None to approve everything, False to"
                f" approve nothing, or a list of the approved entries, each with {key!r}"
            )
    return [dict(entry) for entry in entries]


def _require_sync(hook: str, decision: Any) -> Any:
    if inspect.isawaitable(decision):
        if inspect.iscoroutine(decision):
            decision.close()
        raise ConfigError(f"{hook} is a coroutine function, and the agent runs in sync; use ainvoke or astream")
    return decision
