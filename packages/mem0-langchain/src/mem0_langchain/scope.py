"""Resolution of the owner of memories from the constructor's ids and the run's.

The rules, for the retriever, the middleware and the nodes alike:

1. ``scope=Scope(...)`` in the constructor is the complete scope; the run's ids are ignored.
2. Ids in the constructor are fixed. The run adds the missing ones: first from its runtime context (an attribute or a
   key ``user_id``, ``agent_id``, ``run_id``), else from the ``configurable`` of its config. A run can narrow the
   constructor's scope, and never widen it.
3. A run that names a different id than the constructor is rejected: one user's messages must not be stored for
   another because a constructor still has ``user_id="test"``.
4. ``agent_id`` alone in the constructor is incomplete. It would read the memories of all users of that agent, so the
   run has to name a user or a run; ``scope=Scope(agent_id=...)`` states that all of them are meant.
5. If no id is found, `ScopeError`.

``thread_id`` is not used as an id unless ``thread_as_run=True`` makes it the ``run_id``: memories are then stored and
recalled per thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mem0_core import Scope, ScopeError
from mem0_core.domain.records import Axis
from mem0_core.domain.suggestions import describe_misspelled_id

__all__ = ["ScopeAddress", "get_run_context"]

# LangGraph's servers put the id of each execution into `configurable` as `run_id`, next to these keys. A memory
# stored under it would be unreachable in the next turn.
_SERVER_KEYS = frozenset({"assistant_id", "graph_id", "langgraph_auth_user", "langgraph_auth_user_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeAddress:
    """The owner that a constructor names; `resolve` completes it from a run.

    Raises:
        ScopeError: an id is invalid, or arguments exclude each other.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    scope: Scope | None = None
    thread_as_run: bool = False

    def __post_init__(self) -> None:
        configured = {axis: value for axis in Axis if (value := getattr(self, axis)) is not None}
        if self.scope is not None and (configured or self.thread_as_run):
            raise ScopeError("scope= is complete: pass it, or single ids and thread_as_run, not both")
        if self.run_id is not None and self.thread_as_run:
            raise ScopeError("pass run_id or thread_as_run, not both: both set the run")
        if configured:
            Scope(**configured)  # reject an invalid id here, not in the first turn

    def resolve(self, config: Mapping[str, Any], context: object = None) -> Scope:
        """Return the scope of one run.

        Args:
            config: the run's config, for its ``configurable``.
            context: the run's context (LangGraph's ``runtime.context``): an object, a mapping or None.

        Raises:
            ScopeError: no id is found, the run contradicts the constructor, or an id is invalid.
        """
        if self.scope is not None:
            return self.scope
        configurable: Mapping[str, Any] = config.get("configurable") or {}
        named = {axis: _read_id(axis, configurable, context) for axis in Axis}
        if self.thread_as_run:
            named[Axis.RUN] = _read_thread_id(configurable)
        ids = {axis: self._merge_id(axis, value) for axis, value in named.items()}
        if not any(value is not None for value in ids.values()):
            given = [*configurable, *(context if isinstance(context, Mapping) else ())]
            raise ScopeError(
                "no user_id, agent_id or run_id is given. Name one in the call, with"
                ' context={"user_id": ...} or config={"configurable": {"user_id": ...}}, or in the constructor'
                f"{describe_misspelled_id(given, 'the run')}"
            )
        if ids[Axis.USER] is None and ids[Axis.RUN] is None and self.agent_id is not None:
            raise ScopeError(
                f"agent_id={self.agent_id!r} alone would reach the memories of all its users: name the user_id in"
                f" the call, or construct with scope=Scope(agent_id={self.agent_id!r}) if all of them are meant"
            )
        return Scope(ids[Axis.USER], ids[Axis.AGENT], ids[Axis.RUN])

    def _merge_id(self, axis: Axis, named: Any) -> Any:
        configured: str | None = getattr(self, axis)
        if configured is None or named is None or configured == named:
            return named if configured is None else configured
        raise ScopeError(
            f"the constructor says {axis}={configured!r} and the run {axis}={named!r}; construct with scope=Scope(...)"
            " to ignore the run's ids"
        )


def get_run_context() -> object:
    """Return the context of the enclosing graph run; None outside of a graph or without a context."""
    from langgraph.runtime import get_runtime

    try:
        runtime = get_runtime()
    except RuntimeError:  # called outside of any run
        return None
    return getattr(runtime, "context", None)  # a chain outside of a graph has no runtime


def _read_id(axis: Axis, configurable: Mapping[str, Any], context: object) -> Any:
    value = context.get(axis) if isinstance(context, Mapping) else getattr(context, axis, None)
    if value is not None:
        return value
    if axis is Axis.RUN and not _SERVER_KEYS.isdisjoint(configurable):
        return None
    return configurable.get(axis)


def _read_thread_id(configurable: Mapping[str, Any]) -> Any:
    thread = configurable.get("thread_id")
    if thread is None:
        raise ScopeError('thread_as_run needs a thread: pass config={"configurable": {"thread_id": ...}}')
    return str(thread)  # checkpointers take UUIDs and numbers too
