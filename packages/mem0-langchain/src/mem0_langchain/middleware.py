"""`MemoryMiddleware`: long-term memory for agents made with `create_agent`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.runtime import Runtime

from mem0_core import (
    AsyncMemory,
    ContextDict,
    InputError,
    LimitError,
    Memory,
    ModelError,
    Scope,
    StoreError,
)
from mem0_core.api.options import check_constructor, unwrap_memory
from mem0_core.flow import Flow, arun, do, run
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION
from mem0_langchain.convert import extract_shown_texts
from mem0_langchain.hooks import RecalledBlock, RecalledBlocks, RecallHook, RememberHook, TurnHooks, report_in_metadata
from mem0_langchain.runs import MemoryRuns, build_recall_request, build_remember_request, current_config
from mem0_langchain.scope import ScopeAddress
from mem0_langchain.turn import (
    TurnState,
    begin_turn,
    find_question,
    finish_turn,
    identify_messages,
    is_run_by_tool,
    keep_open,
    to_remembered_messages,
    turn_scope,
    unremembered_messages,
)

__all__ = ["MemoryMiddleware", "MemoryState"]

NAME = "Mem0Middleware"

logger = logging.getLogger("mem0_langchain")

# Failures of the memory itself. Errors of the caller are always raised.
_MEMORY_ERRORS = (ModelError, StoreError, InputError, LimitError)


def _merge_turns(left: dict[str, TurnState], right: dict[str, TurnState]) -> dict[str, TurnState]:
    return {**left, **right}


class MemoryState(AgentState[Any]):
    """State of an agent with the turns of its memory middlewares by name; neither input nor output."""

    mem0_turns: NotRequired[Annotated[dict[str, TurnState], PrivateStateAttr, _merge_turns]]


@check_constructor
class MemoryMiddleware(AgentMiddleware[AgentState[Any], Any]):
    """Recall memories when a turn of an agent begins, and remember the turn when it ends.

    - **Recall**: once per turn, with the user's message as the query. The memories are added to the system message of
      every model call of the turn, delimited and marked as data. They never enter the agent's messages. Memories that
      do not bear on the message, and those that only repeat messages of the thread, are left out.
    - **Remember**: the user's and the assistant's messages of the turn, once. Tool calls, tool results, system
      messages, structured output and recalled memories are left out. A message counts once by its id within its
      thread, however often the turn is replayed, and however many agents of a graph remember it. In an agent that a
      tool runs, the human messages are tasks that a model wrote: they are not remembered. Nor are human messages that
      a middleware adds after an answer, to have it corrected. When the turn ends it is stored durably, and a worker of
      the memory learns from it while the agent goes on (`flush` waits for that). A crash in between loses nothing.
    - A turn that fails midway (on a model error, for example) is remembered with the next turn of its thread, if the
      agent has a checkpointer.

    The owner of the memories is resolved by `mem0_langchain.scope`. In short, ``context`` or ``configurable`` names a
    ``user_id`` (``agent_id``, ``run_id``), and ids given here are fixed. The owner is resolved when a turn begins and
    stays the same to its end, even if another caller resumes it after an interrupt.

    Args:
        memory: a `mem0_core.Memory`.
        k: maximum number of memories to recall.
        threshold: minimum score (0 to 1). Default: the calibrated floor of `Memory.context`; 0 switches it off.
        filters: mem0's filters on metadata, for recall.
        recipe: the memory's recipe for recall.
        remember: False only recalls.
        user_input: True if the user writes all human messages, those after an answer too, such as a reply to an
            interrupt; False if another agent does. By default the user, except in an agent that a tool runs, writes
            those that do not follow an answer of the same run.
        infer: False stores messages verbatim, without extracting facts.
        keep: without a chat model, ``"statements"`` makes memories of statements only; questions, greetings and
            acknowledgements stay in the conversation. ``"all"`` makes a memory of each message.
        background: False learns from a turn before it ends.
        max_pending: maximum number of queued turns of one scope. Beyond it the next turn is not remembered and fails
            with LimitError; see `on_error`.
        user_id, agent_id, run_id, scope, thread_as_run: owner of the memories, as far as it is the same in every run.
        on_error: the action when the memory fails (its store, a model it calls, or a message it cannot store).
            ``"raise"`` ends the turn with the error. ``"log"`` logs it and goes on: a failed recall shows no memories,
            and a turn that could not be remembered is remembered with the next one of its thread, if the agent has a
            checkpointer. Errors of the caller, such as `ScopeError`, are always raised.
        max_tokens: token budget for the recalled text, summary and relations included.
        introduction: text that introduces the memories to the model.
        on_recall: a function of the recalled context (as `Memory.context` returns it) and the scope, called before the
            model sees anything of it. It returns True or None to show everything, False to show nothing, or a list of
            memories to show, possibly edited, without the summary and relations.
        on_remember: a function of the messages that are about to be stored and the scope. It returns True or None to
            store all of them, False to store nothing, or a list of messages to store, possibly edited. Both hooks may
            call LangGraph's ``interrupt`` to ask a person, and may be coroutine functions in async runs. Their errors
            end the turn.
        stream_memories: True writes recalled memories, stored messages and the memories made of them to the custom
            stream of the run (``stream_mode="custom"``), for programs that show them to the user.
        name: name of this middleware and of its nodes; required if an agent has two. By default ``"Mem0Middleware"``
            (for a subclass, the name of the class): deepagents has a ``MemoryMiddleware`` and replaces by name.

    Raises (when the agent runs):
        ScopeError: neither the run nor the constructor names an owner, or they contradict each other.
        ModelError, StoreError, InputError: the memory failed; with ``on_error="raise"``.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        k: int = 10,
        threshold: float | None = None,
        filters: Mapping[str, Any] | None = None,
        recipe: Any = None,
        remember: bool = True,
        user_input: bool | None = None,
        infer: bool = True,
        keep: Literal["all", "statements"] = "statements",
        background: bool = True,
        max_pending: int = 1000,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        thread_as_run: bool = False,
        on_error: Literal["raise", "log"] = "raise",
        max_tokens: int = 2000,
        introduction: str = MEMORIES_INTRODUCTION,
        on_recall: RecallHook | None = None,
        on_remember: RememberHook | None = None,
        stream_memories: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.tools = []
        self._memory = unwrap_memory(memory)
        self._runs = MemoryRuns(memory)
        self._address = ScopeAddress(
            user_id=user_id, agent_id=agent_id, run_id=run_id, scope=scope, thread_as_run=thread_as_run
        )
        self._k, self._threshold, self._filters, self._recipe = k, threshold, filters, recipe
        self._remember, self._infer, self._keep, self._background = remember, infer, keep, background
        self._max_pending = max_pending
        self._user_input = user_input
        self._blocks = RecalledBlocks()
        self._hooks = TurnHooks(on_recall, on_remember, introduction, stream=stream_memories)
        self._on_error = on_error
        self._max_tokens = max_tokens
        self._introduction = introduction
        self._name = name or (NAME if type(self) is MemoryMiddleware else type(self).__name__)

    @property
    def name(self) -> str:
        return self._name

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the worker has learned from all turns; return False after `timeout` seconds."""
        return self._memory.flush(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:
        """Async version of `flush`."""
        return await self._memory.aflush(timeout)

    # --- recall --------------------------------------------------------------------------------------------------

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall memories for this turn."""
        return run(self._recall(state, runtime))

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall memories for this turn."""
        return await arun(self._recall(state, runtime))

    def _recall(self, state: AgentState[Any], runtime: Runtime[Any]) -> Flow[dict[str, Any]]:
        turn, scope, request = self._begin_turn(state, runtime)
        if request is not None:
            try:
                recalled = yield from do(self._runs.context.invoke, request)
            except _MEMORY_ERRORS as error:
                self._report_failure("recall", turn, error, "the turn goes on without memories")
            else:
                self._set_recalled(turn, (yield from do(self._hooks.approve_recall, recalled, scope)), runtime)
        return self._state_update(turn)

    def _begin_turn(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> tuple[TurnState, Scope, dict[str, Any] | None]:
        """Return a new turn, its owner, and the recall request if the user said anything."""
        messages = state["messages"]
        scope = self._address.resolve(current_config(), runtime.context)
        turn = begin_turn(messages, self._current_turn(state), scope)
        return turn, scope, self._build_recall_request(messages, turn, scope)

    def _build_recall_request(
        self, messages: Sequence[BaseMessage], turn: TurnState, scope: Scope
    ) -> dict[str, Any] | None:
        """Return the arguments of `Memory.context`, or None if the user said nothing."""
        query = find_question(messages, turn, all_by_user=bool(self._user_input))
        if not query:
            return None
        options: dict[str, Any] = {"threshold": self._threshold, "filters": self._filters, "recipe": self._recipe}
        arguments = build_recall_request(query, scope, k=self._k, **options)
        shown = extract_shown_texts(messages)
        prompt = {"recent": 0, "max_tokens": self._max_tokens, "introduction": self._introduction, "exclude": shown}
        return {**arguments, **prompt}

    def _set_recalled(self, turn: TurnState, recalled: ContextDict, runtime: Runtime[Any]) -> None:
        turn["recalled"] = [memory["id"] for memory in recalled["memories"] if "id" in memory]  # a hook may drop it
        turn["key"] = self._blocks.add(RecalledBlock.from_context(recalled)) if recalled["text"] else ""
        self._hooks.report_recall(runtime.stream_writer, self._name, recalled)

    # --- model calls -----------------------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the recalled memories to the system message."""
        block = run(self._find_block(request.state))
        with report_in_metadata(block):
            return handler(_show_block(request, block))

    # A plain function, since LangChain wraps coroutine functions in LangSmith's `traceable`, which switches threads
    # before and after the call even when tracing is off: 0.4 ms per model call. In a trace this span therefore ends
    # where the model's run begins.
    def awrap_model_call(  # type: ignore[override]
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Awaitable[ModelResponse[Any]]:
        """Add the recalled memories to the system message."""
        return self._call_model(request, handler)

    async def _call_model(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        block = await arun(self._find_block(request.state))
        with report_in_metadata(block):
            return await handler(_show_block(request, block))

    def _find_block(self, state: Mapping[str, Any]) -> Flow[RecalledBlock | None]:
        """Return the text recalled for a turn.

        A process that resumes a turn may not have its text; if the turn had to wait, its memories may have changed.
        """
        turn = self._current_turn(state)
        if turn is None or turn["scope"] is None or not turn["key"]:
            return None
        held = self._blocks.get(turn["key"])
        if held is not None and held.stamp.is_fresh:
            return held
        scope = Scope(**turn["scope"])
        request = self._build_recall_request(state["messages"], turn, scope)
        if request is None:
            return held
        try:
            is_current = held is not None and (yield from held.stamp.is_current(self._memory.store))
            recalled = None if is_current else (yield from do(self._runs.context.invoke, request))
        except _MEMORY_ERRORS as error:
            self._report_failure("recall", turn, error, "the turn goes on without memories")
            return None
        if recalled is not None:
            block = RecalledBlock.from_context((yield from do(self._hooks.approve_recall, recalled, scope)))
        else:
            assert held is not None
            block = replace(held, stamp=held.stamp.renew())
        self._blocks.add(block, turn["key"])
        return block

    # --- remember --------------------------------------------------------------------------------------------------

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember this turn."""
        return run(self._remember_turn(state, runtime))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remember this turn."""
        return await arun(self._remember_turn(state, runtime))

    def _remember_turn(self, state: AgentState[Any], runtime: Runtime[Any]) -> Flow[dict[str, Any] | None]:
        proposed = self._build_remember_request(state, runtime)
        request = proposed and (yield from do(self._hooks.approve_remember, proposed))
        if request:
            try:
                result = yield from do(self._runs.remember.invoke, request)
            except _MEMORY_ERRORS as error:
                return self._handle_remember_failure(state, error)
            self._hooks.report_remember(runtime.stream_writer, self._name, request, result)
        return self._finish(state)

    def _finish(self, state: AgentState[Any]) -> dict[str, Any]:
        """Return the state update that ends the turn, and drop its recalled text."""
        if (turn := self._current_turn(state)) is not None and turn["key"]:
            self._blocks.drop(turn["key"])
        return self._state_update(finish_turn(state["messages"]))

    def _build_remember_request(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Return the arguments of `Memory.add`, or None if there is nothing to add."""
        if not self._remember:
            return None
        turn, config, history = self._current_turn(state), current_config(), state["messages"]
        new = unremembered_messages(history, turn)
        if not new:
            return None
        by_user = not is_run_by_tool(config) if self._user_input is None else self._user_input
        ids = identify_messages(history, (config.get("configurable") or {}).get("thread_id"))
        known = None if self._user_input else turn
        messages = to_remembered_messages(new, ids[-len(new) :], by_user=by_user, turn=known)
        if not messages:
            return None
        # A turn that another middleware ended before this one saw it has no scope yet.
        scope = turn_scope(turn) or self._address.resolve(config, runtime.context)
        arguments = build_remember_request(
            messages, scope, infer=self._infer, keep=self._keep, background=self._background
        )
        return {**arguments, "max_pending": self._max_pending} if self._background else arguments

    def _handle_remember_failure(self, state: AgentState[Any], error: Exception) -> dict[str, Any] | None:
        """Leave the turn open after a failure, so that the next turn of its thread includes it."""
        turn = self._current_turn(state)
        if isinstance(error, InputError):  # a retry would fail again, and block every later turn
            self._report_failure("remember", turn, error, "this turn is lost")
            return self._finish(state)
        self._report_failure("remember", turn, error, "it is tried again with the next turn of this thread")
        return turn and self._state_update(keep_open(state["messages"], turn))

    # --- shared ----------------------------------------------------------------------------------------------------

    def _current_turn(self, state: Mapping[str, Any]) -> TurnState | None:
        turns: dict[str, TurnState] = state.get("mem0_turns") or {}
        return turns.get(self._name)

    def _state_update(self, turn: TurnState) -> dict[str, Any]:
        return {"mem0_turns": {self._name: turn}}

    def _report_failure(self, what: str, turn: TurnState | None, error: Exception, then: str) -> None:
        """Log the error that is being handled, or raise it, as `on_error` demands."""
        if self._on_error == "raise":
            raise error
        logger.error("%s could not %s for %s; %s", self._name, what, turn and turn["scope"], then, exc_info=error)


def _show_block(request: ModelRequest[Any], block: RecalledBlock | None) -> ModelRequest[Any]:
    if block is None or not block.text:
        return request
    return request.override(system_message=_append_to_system(request.system_message, block.text))


def _append_to_system(system: SystemMessage | None, block: str) -> SystemMessage:
    """Append a block to the system message; the constant part stays in front, where providers cache it."""
    if system is None:
        return SystemMessage(block)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{block}" if system.content else block})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": block}]})
