"""Nodes of a LangGraph workflow that recall and remember.

They are runnables, not functions, so that LangGraph runs them in sync and in async graphs alike.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config

from mem0_core import AddResult, AsyncMemory, ContextDict, InputError, Memory, Scope
from mem0_core.api.options import check_constructor
from mem0_langchain.convert import (
    extract_question,
    extract_shown_texts,
    find_last_turn,
    read_messages,
)
from mem0_langchain.runs import MemoryRuns, build_recall_request, build_remember_request
from mem0_langchain.scope import ScopeAddress, get_run_context
from mem0_langchain.turn import identify_messages, is_run_by_tool, to_remembered_messages

__all__ = ["RecallNode", "RememberNode"]


_UNLIMITED_TOKENS = 10**9  # `k` alone limits the memories


class _MemoryNode(Runnable[Any, dict[str, Any]]):
    """Base of both nodes: a call of a memory, its owner, and the state key of the messages."""

    def __init__(self, call: Any, name: str, messages_key: str, address: ScopeAddress) -> None:
        self.name = name
        self._call = call
        self._messages_key = messages_key
        self._address = address

    def __call__(self, state: Any, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Run the node, as a node that is a function runs."""
        return self.invoke(state, config)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return the state update."""
        request = self._build_request(input, config)
        return self._state_update(None if request is None else self._call.invoke(request, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return the state update."""
        request = self._build_request(input, config)
        return self._state_update(None if request is None else await self._call.ainvoke(request, config))

    @abstractmethod
    def _build_request(self, state: Any, config: RunnableConfig | None) -> dict[str, Any] | None:
        """Return the arguments of the call; None if there is nothing to do."""

    @abstractmethod
    def _state_update(self, result: Any) -> dict[str, Any]:
        """Return the state update for the result of the call, or for None without a call."""

    def _resolve_scope(self, config: RunnableConfig | None) -> Scope:
        return self._address.resolve(ensure_config(config), get_run_context())

    def _read_messages(self, state: Any) -> list[BaseMessage]:
        key = self._messages_key
        value = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
        if value is None:
            raise InputError(f"{self.name}: the state has no {key!r}; messages_key= names where the messages are")
        return read_messages(value)


@check_constructor
class RecallNode(_MemoryNode):
    """Node that writes the memories relevant to the user's last message into the graph's state.

    >>> class State(MessagesState):
    ...     memories: list[MemoryDict]
    >>> builder.add_node("recall", RecallNode(memory))

    Memories that do not bear on the message, and those that only repeat messages of the state, are left out.
    `format_memory_prompt` formats them as a block for a system prompt.

    Args:
        memory: a `mem0_core.Memory`.
        k: maximum number of memories.
        threshold: minimum score (0 to 1). Default: the calibrated floor of `Memory.context`; 0 switches it off.
        filters: mem0's filters on metadata.
        recipe: the memory's recipe for these searches.
        messages_key: state key of the messages; a text there is read as the user's message.
        output_key: state key for the memories, as `Memory.search` returns them. The state must declare it: LangGraph
            drops unknown keys.
        user_id, agent_id, run_id, scope, thread_as_run: owner of the memories, if the same in every run; the
            run's context or ``configurable`` names the rest (see `mem0_langchain.scope`).
        name: name of the node in graphs and traces.

    Raises (when it runs):
        ScopeError: neither the run nor the constructor names an owner, or they contradict each other.
        InputError: the state has no messages.
        ModelError, StoreError: the memory failed; a retry policy of the node may try again.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        k: int = 10,
        threshold: float | None = None,
        filters: Mapping[str, Any] | None = None,
        recipe: Any = None,
        messages_key: str = "messages",
        output_key: str = "memories",
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        thread_as_run: bool = False,
        name: str = "recall",
    ) -> None:
        address = ScopeAddress(
            user_id=user_id, agent_id=agent_id, run_id=run_id, scope=scope, thread_as_run=thread_as_run
        )
        super().__init__(MemoryRuns(memory).context, name, messages_key, address)
        self._k, self._threshold, self._filters, self._recipe = k, threshold, filters, recipe
        self._output_key = output_key

    def _build_request(self, state: Any, config: RunnableConfig | None) -> dict[str, Any] | None:
        scope, messages = self._resolve_scope(config), self._read_messages(state)
        query = extract_question(messages)
        if not query:
            return None
        options: dict[str, Any] = {"threshold": self._threshold, "filters": self._filters, "recipe": self._recipe}
        arguments = build_recall_request(query, scope, k=self._k, **options)
        prompt = {"recent": 0, "max_tokens": _UNLIMITED_TOKENS, "exclude": extract_shown_texts(messages)}
        return {**arguments, **prompt}

    def _state_update(self, result: ContextDict | None) -> dict[str, Any]:
        return {self._output_key: [] if result is None else result["memories"]}


@check_constructor
class RememberNode(_MemoryNode):
    """Node that remembers the last turn: the user's last message (or consecutive messages) and the replies.

    Only the user's and the assistant's messages are stored; tool calls, tool results, system messages, structured
    output and the tasks of a sub-agent that a tool runs are not. A message is learned from once, by its id or else by
    its place in the thread, so that running the node twice does no harm.

    Args:
        memory: a `mem0_core.Memory`.
        infer: False stores messages verbatim, without extracting facts.
        keep: without a chat model, ``"statements"`` makes memories of statements only; questions, greetings and
            acknowledgements stay in the conversation. ``"all"`` makes a memory of each message.
        background: store the messages durably and return; a worker of the memory learns from them.
        messages_key: state key of the messages; a text there is read as the user's message.
        output_key: state key for the result of `Memory.add`, for graphs that use it.
        user_id, agent_id, run_id, scope, thread_as_run, name: as for `RecallNode`.

    Raises (when it runs):
        ScopeError, InputError, ModelError, StoreError: as for `RecallNode`; nothing is remembered then.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        infer: bool = True,
        keep: Literal["all", "statements"] = "statements",
        background: bool = False,
        messages_key: str = "messages",
        output_key: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        thread_as_run: bool = False,
        name: str = "remember",
    ) -> None:
        address = ScopeAddress(
            user_id=user_id, agent_id=agent_id, run_id=run_id, scope=scope, thread_as_run=thread_as_run
        )
        super().__init__(MemoryRuns(memory).remember, name, messages_key, address)
        self._infer, self._keep, self._background = infer, keep, background
        self._output_key = output_key

    def _build_request(self, state: Any, config: RunnableConfig | None) -> dict[str, Any] | None:
        scope, messages = self._resolve_scope(config), self._read_messages(state)
        merged, start = ensure_config(config), find_last_turn(messages)
        ids = identify_messages(messages, merged["configurable"].get("thread_id"))
        turn_messages = to_remembered_messages(messages[start:], ids[start:], by_user=not is_run_by_tool(merged))
        if not turn_messages:
            return None
        return build_remember_request(
            turn_messages, scope, infer=self._infer, keep=self._keep, background=self._background
        )

    def _state_update(self, result: AddResult | None) -> dict[str, Any]:
        return {} if self._output_key is None else {self._output_key: result}
