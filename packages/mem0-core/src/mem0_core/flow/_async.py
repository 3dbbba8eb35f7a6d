"""The async driver: awaits calls on the event loop, and makes calls without an async counterpart in threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Event, Lock
from typing import Any, TypeGuard, TypeVar

from mem0_core.flow._steps import (
    Both,
    Call,
    Flow,
    FlowReturn,
    Outcome,
    Step,
    advance_flow,
    find_async_method,
    make_call,
)

T = TypeVar("T")

_MAX_COMPUTING_THREADS = 2  # an event loop; more compete with it for the interpreter lock, and delay it


async def arun(flow: Flow[T]) -> T:
    """Drive `flow` to its end on the running event loop and return its result.

    Code of the flow between two awaited calls runs on the loop. Only one of many flows resumes in each iteration of
    the loop, so that the loop is delayed by one flow's work at a time. A call that only computes, and still has an
    async counterpart, is too short to end the flow's turn.
    """
    state = _state_of(asyncio.get_running_loop())
    try:
        await state.take_turn()
        step = advance_flow(flow, Outcome())
        while not isinstance(step, FlowReturn):
            keeps_turn = False
            if isinstance(step, Both):
                last = await _await_outcome(_run_both, step.first, step.second)
            elif (method := find_async_method(step)) is not None:
                last = await _await_outcome(method, *step.args, **step.kwargs)
                keeps_turn = step.inline
            else:
                reached = await _run_in_thread(flow, step, state.permits)
                if not isinstance(reached, Outcome):
                    step = reached
                    continue
                last = reached
            if not keeps_turn:
                await state.take_turn()
            step = advance_flow(flow, last)
        value: T = step.value
        return value
    finally:
        with suppress(ValueError):  # cancelled while a thread drives the flow; that thread closes it
            flow.close()  # a cancellation is not thrown in: the flow's own `finally` blocks run here


async def _await_outcome(method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Outcome:
    """Await a call, and keep its error for the flow."""
    try:
        return Outcome(await method(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - thrown into the flow, which decides
        return Outcome(error=error)


async def _run_both(first: Flow[Any], second: Flow[Any]) -> tuple[Any, Any]:
    tasks = [asyncio.create_task(arun(first)), asyncio.create_task(arun(second))]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    return tasks[0].result(), tasks[1].result()


def _needs_thread(step: Step | FlowReturn) -> TypeGuard[Call]:
    """Return True for a call without an async counterpart."""
    return isinstance(step, Call) and find_async_method(step) is None


async def _run_in_thread(flow: Flow[Any], call: Call, permits: _ThreadPermits) -> Step | FlowReturn | Outcome:
    """Make a call in a thread, and drive the flow on there until it yields a step to await.

    A thread for every call would take half the time of a search. A thread that computes holds a permit, and releases
    it before a call that may wait. If no permit is free after that call, its outcome is returned to the loop.

    On cancellation the thread ends its call and closes the flow.
    """
    started, cancelled = Lock(), Event()

    def work() -> Step | FlowReturn | Outcome:
        step: Step | FlowReturn = call
        holds_permit = call.inline
        if not started.acquire(blocking=False):  # cancelled before the thread began
            return step
        try:
            while _needs_thread(step) and not cancelled.is_set():
                if holds_permit and not step.inline:
                    permits.release()
                    holds_permit = False
                last = make_call(step)
                if cancelled.is_set():
                    break
                holds_permit = holds_permit or permits.try_acquire()
                if not holds_permit:
                    return last
                step = advance_flow(flow, last)
            if cancelled.is_set():
                flow.close()
            return step
        finally:
            if holds_permit:
                permits.release()

    if call.inline:
        await permits.acquire()
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        if started.acquire(blocking=False) and call.inline:  # no thread was free, and perhaps none ever will be
            permits.release()
        raise


class _ThreadPermits:
    """A semaphore that coroutines of one loop await, and that threads acquire without waiting and release.

    `asyncio.Semaphore` is not thread-safe: with it a thread would have to return to the loop after every call.
    """

    def __init__(self, count: int) -> None:
        self._free_permits = count
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = Lock()

    async def acquire(self) -> None:
        with self._lock:
            if self._free_permits:
                self._free_permits -= 1
                return
            permit = asyncio.get_running_loop().create_future()
            self._waiting.append(permit)
        try:
            await permit
        except asyncio.CancelledError:
            if permit.done() and not permit.cancelled():
                self.release()
            raise

    def try_acquire(self) -> bool:
        with self._lock:
            if not self._free_permits:
                return False
            self._free_permits -= 1
            return True

    def release(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free_permits += 1
                return
            permit = self._waiting.popleft()
        with suppress(RuntimeError):  # the loop is closed, and its waiting coroutines with it
            permit.get_loop().call_soon_threadsafe(self._admit, permit)

    def _admit(self, permit: asyncio.Future[None]) -> None:
        if permit.done():  # cancelled
            self.release()
        else:
            permit.set_result(None)


class _LoopState:
    """The turns and thread permits that the flows of one event loop share."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = asyncio.Lock()
        self.permits = _ThreadPermits(_MAX_COMPUTING_THREADS)

    async def take_turn(self) -> None:
        """Wait, first come first served, until no other flow resumes in this iteration of the loop."""
        await self._turn.acquire()
        self._loop.call_soon(self._turn.release)  # runs in the next iteration


_loop_states: dict[asyncio.AbstractEventLoop, _LoopState] = {}


def _state_of(loop: asyncio.AbstractEventLoop) -> _LoopState:
    state = _loop_states.get(loop)
    if state is None:
        for other in [other for other in list(_loop_states) if other.is_closed()]:
            _loop_states.pop(other, None)
        state = _loop_states[loop] = _LoopState(loop)
    return state
