"""The flow engine: one text of a pipeline, run in sync or async code.

A pipeline is a generator that yields calls it has not made: ``reply = yield from do(chat.complete, messages)``.
`run` makes the calls; `arun` awaits each call's ``a<method>`` twin where its object has one, and runs it in a
thread where it has none; those that only compute follow one another in the same thread. Errors are thrown *into* the
flow, so ``try/except`` around a ``yield from`` works.
Two flows run side by side with `both`, calls that need nothing of one another are made in one go with `call_all`;
`observe` wraps a flow so that a hook sees every step.

The form is that of psycopg 3's generators and httpx's ``auth_flow``.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, ParamSpec, TypeAlias, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["Both", "Call", "Flow", "Step", "StepRecord", "arun", "both", "call_all", "defer", "do", "observe", "run"]

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


# What is made for every step is not frozen: that would take three times as long.


@dataclass(slots=True)
class Call:
    """A call not yet made."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def inline(self) -> bool:
        """Whether it only computes: its object says so, by an attribute ``inline``."""
        return getattr(_owner(self), "inline", False) is True

    def execute(self) -> Any:
        return self.method(*self.args, **self.kwargs)

    @property
    def name(self) -> str:
        """The method's name, with its owner's class where it has one: ``OpenAIChat.complete``."""
        return getattr(self.method, "__qualname__", repr(self.method))


def _owner(call: Call) -> Any:
    """The object whose method it is; None where it is a function."""
    return getattr(call.method, "__self__", None)


@dataclass(frozen=True, slots=True)
class Both:
    """Two flows not yet run."""

    first: Generator[Any, Any, Any]
    second: Generator[Any, Any, Any]


Step: TypeAlias = Call | Both
Flow: TypeAlias = Generator[Step, Any, T]


@dataclass(slots=True)
class StepRecord:
    """What `observe`'s hook is told of one call, once it has ended."""

    call: Call
    seconds: float
    result: Any = None
    error: BaseException | None = None


def do(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """Ask the driver to call `method`; the value of the expression is what it returns."""
    result: T = yield Call(method, args, kwargs)
    return result


def defer(method: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Call:
    """A call for `call_all`."""
    return Call(method, args, kwargs)


def call_all(*calls: Call) -> Flow[list[Any]]:
    """Ask the driver for calls that need nothing of one another; their results in this order, or the first error.

    They are made one after the other, unless all of their methods have one attribute ``together``, a function of such
    calls that makes them in one go (and ``atogether``, its twin): a database answers them in one round trip.
    """
    owner = _CallBatch(calls) if all(call.inline for call in calls) else _AsyncCallBatch(calls)
    return (yield from do(owner.execute))


class _CallBatch:
    """Calls that are made as one, all of which only compute."""

    inline = True

    def __init__(self, calls: tuple[Call, ...]) -> None:
        self.calls = calls

    def execute(self) -> list[Any]:
        together = self._shared_attribute("together")
        return [call.execute() for call in self.calls] if together is None else together(self.calls)

    def _shared_attribute(self, name: str) -> Callable[[tuple[Call, ...]], Any] | None:
        """The attribute that all the methods have, if it is one and the same."""
        found = {getattr(call.method, name, None) for call in self.calls}
        return found.pop() if len(found) == 1 else None


class _AsyncCallBatch(_CallBatch):
    """Calls of which some wait."""

    inline = False

    async def aexecute(self) -> list[Any]:
        together = self._shared_attribute("atogether")
        if together is not None:
            return list(await together(self.calls))
        return [await _await_call(call) for call in self.calls]


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows at once and return both results; the first error (in this order) is raised when both ended."""
    results: tuple[A, B] = yield Both(first, second)
    return results


def observe(flow: Flow[T], hook: Callable[[StepRecord], None]) -> Flow[T]:
    """The same flow, with `hook` told of every call it and its branches make, once the call has ended."""
    try:
        step = next(flow)
        while True:
            call = step if isinstance(step, Call) and not isinstance(_owner(step), _CallBatch) else None
            started = time.perf_counter()
            try:
                result = (yield from _observe_step(step, hook)) if call is None else (yield call)
            except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                if call is not None:
                    hook(StepRecord(call, time.perf_counter() - started, error=error))
                step = flow.throw(error)
            else:
                if call is not None:
                    hook(StepRecord(call, time.perf_counter() - started, result))
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _observe_step(step: Step, hook: Callable[[StepRecord], None]) -> Flow[Any]:
    """A `both` whose flows are observed; an `call_all` call by call, so that `hook` is told of each."""
    if isinstance(step, Both):
        return (yield Both(observe(step.first, hook), observe(step.second, hook)))
    return (yield from observe(_run_sequentially(_owner(step).calls), hook))


def _run_sequentially(calls: Iterable[Call]) -> Flow[list[Any]]:
    results = []
    for call in calls:
        results.append((yield call))  # noqa: PERF401 - a comprehension cannot yield
    return results


def run(flow: Flow[T]) -> T:
    """Drive `flow` to its end in this thread; see `_BranchDriver` for what becomes of a `both`."""
    try:
        step = next(flow)
        while True:
            try:
                result = step.execute() if isinstance(step, Call) else _BranchDriver().run(step)
            except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


@dataclass(slots=True)
class _Outcome:
    """What a call, or a flow, came to."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(eq=False, slots=True)
class _Branch:
    """One flow among those that are driven together, and the `both` that waits for it."""

    flow: Flow[Any]
    pair: _Pair
    outcome: _Outcome | None = None


@dataclass(eq=False, slots=True)
class _Pair:
    """A `both` under way, and the lane that asked for it."""

    owner: _Branch | None
    branches: list[_Branch] = field(default_factory=list)

    def outcome(self) -> _Outcome | None:
        """Both results, or the first error, once both flows have ended."""
        first, second = (branch.outcome for branch in self.branches)
        if first is None or second is None:
            return None
        return _Outcome((first.value, second.value), first.error or second.error)


class _BranchDriver:
    """Drives the flows of a `both`, and of those within it, in one thread.

    A call is made in a thread of its own, so that what waits for other machines overlaps. But what an object computes
    that says so of itself (``inline = True``: our stores, for instance) is computed here: two threads that both compute
    only fight for the interpreter, at half as much CPU again.
    """

    def __init__(self) -> None:
        self._ended: SimpleQueue[tuple[_Branch, _Outcome]] = SimpleQueue()
        self._ready: deque[tuple[_Branch, _Outcome]] = deque()
        self._running_calls = 0  # calls under way in threads
        self._flows: list[Flow[Any]] = []

    def run(self, step: Both) -> Any:
        pair = self._fork(step, None)
        try:
            while (whole := pair.outcome()) is None:
                if not self._ready:
                    self._ready.append(self._ended.get())
                    self._running_calls -= 1
                self._advance(*self._ready.popleft())
            return whole.get()
        finally:
            for flow in self._flows:
                flow.close()

    def _fork(self, step: Both, owner: _Branch | None) -> _Pair:
        pair = _Pair(owner)
        for flow in (step.first, step.second):
            pair.branches.append(_Branch(flow, pair))
            self._flows.append(flow)
        self._ready.extend((branch, _Outcome()) for branch in pair.branches)
        return pair

    def _advance(self, branch: _Branch, last: _Outcome) -> None:
        """Let a flow go on with what its last step came to, until it has to wait, or ends."""
        while True:
            try:
                step = _advance_flow(branch.flow, last)
            except BaseException as error:  # noqa: BLE001 - raised where the `both` stands
                return self._end(branch, _Outcome(error=error))
            if isinstance(step, _FlowReturn):
                return self._end(branch, _Outcome(step.value))
            if isinstance(step, Both):
                self._fork(step, branch)
                return None
            if not step.inline and (self._ready or self._running_calls):
                return self._send(branch, step)
            last = _make_call(step)

    def _send(self, branch: _Branch, call: Call) -> None:
        """Make a call in a thread; a copied context carries LangChain's callbacks and LangGraph's config into it."""
        self._running_calls += 1
        context = contextvars.copy_context()

        def work() -> None:
            self._ended.put((branch, context.run(_make_call, call)))

        _threads.start(work)

    def _end(self, branch: _Branch, outcome: _Outcome) -> None:
        branch.outcome = outcome
        whole = branch.pair.outcome()
        if whole is not None and branch.pair.owner is not None:
            self._ready.append((branch.pair.owner, whole))


class _ThreadPool:
    """Threads that stay for a second after their work, to be used again: to start one costs some 0.2 ms."""

    _IDLE_SECONDS = 1.0

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []  # the last to come is the first to go

    def start(self, work: Callable[[], None]) -> None:
        try:
            self._idle.pop().put(work)
        except IndexError:
            Thread(target=self._serve, args=(work,), name="mem0-flow", daemon=True).start()

    def _serve(self, work: Callable[[], None]) -> None:
        mine: SimpleQueue[Callable[[], None]] = SimpleQueue()
        while True:
            work()
            self._idle.append(mine)
            try:
                work = mine.get(timeout=self._IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(mine)
                except ValueError:  # taken at this very moment: the work is on its way
                    work = mine.get()
                else:
                    return


_threads = _ThreadPool()


def _make_call(call: Call) -> _Outcome:
    try:
        return _Outcome(call.execute())
    except BaseException as error:  # noqa: BLE001 - the flow decides, it is thrown in
        return _Outcome(error=error)


@dataclass(frozen=True, slots=True)
class _FlowReturn:
    """What a flow returned."""

    value: Any


def _advance_flow(flow: Flow[Any], last: _Outcome) -> Step | _FlowReturn:
    """Let a flow go on with what its last step came to."""
    try:
        return flow.send(last.value) if last.error is None else flow.throw(last.error)
    except StopIteration as stop:
        return _FlowReturn(stop.value)


async def arun(flow: Flow[T]) -> T:
    """Drive `flow` to its end on the running event loop.

    What a flow does between calls that it awaits, it does on the loop. Of many flows one goes on in each round of the
    loop, which is held up by what one does, then, and not by what all do.
    """
    turns = _scheduler_of(asyncio.get_running_loop())
    try:
        await turns.take()
        step = _advance_flow(flow, _Outcome())
        while not isinstance(step, _FlowReturn):
            if _needs_thread(step):
                reached = await _run_in_thread(flow, step)
                if not isinstance(reached, _Outcome):
                    step = reached
                    continue
                last = reached
            else:
                try:
                    last = _Outcome(await _perform_step(step))
                except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                    last = _Outcome(error=error)
            await turns.take()
            step = _advance_flow(flow, last)
        value: T = step.value
        return value
    finally:
        with suppress(ValueError):  # cancelled while a thread drives it: that one closes it, see `_run_in_thread`
            flow.close()  # a cancellation is not thrown in: the flow's own `finally` blocks run here


def _needs_thread(step: Step | _FlowReturn) -> TypeGuard[Call]:
    """Whether a step is a call that nobody can await."""
    return isinstance(step, Call) and _async_method(step) is None


async def _run_in_thread(flow: Flow[Any], call: Call) -> Step | _FlowReturn | _Outcome:
    """Make a call in a thread, and drive the flow on in there until there is something to await.

    What only computes has a place in the room, which is left for a call that may wait. Where there is none to come back
    to, the loop goes on with what that call came to. A thread for every call would take half the time of a search.

    When this is cancelled the thread ends its call, and closes the flow.
    """
    limiter = _limiter_of(asyncio.get_running_loop())
    started_lock, cancelled = Lock(), Event()

    def work() -> Step | _FlowReturn | _Outcome:
        step: Step | _FlowReturn = call
        holds_permit = call.inline
        if not started_lock.acquire(blocking=False):  # cancelled before
            return step
        try:
            while _needs_thread(step) and not cancelled.is_set():
                if holds_permit and not step.inline:
                    limiter.leave()
                    holds_permit = False
                last = _make_call(step)
                if cancelled.is_set():
                    break
                holds_permit = holds_permit or limiter.try_acquire()
                if not holds_permit:
                    return last
                step = _advance_flow(flow, last)
            if cancelled.is_set():
                flow.close()
            return step
        finally:
            if holds_permit:
                limiter.leave()

    if call.inline:
        await limiter.enter()
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        if started_lock.acquire(blocking=False) and call.inline:  # it waits for a thread yet, and may do so for ever
            limiter.leave()
        raise


class _ConcurrencyLimiter:
    """Places for the threads that compute beside an event loop. They may be left, or taken at once, in any thread."""

    def __init__(self, permits: int) -> None:
        self._free_permits = permits
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = Lock()

    async def enter(self) -> None:
        with self._lock:
            if self._free_permits:
                self._free_permits -= 1
                return
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def try_acquire(self) -> bool:
        with self._lock:
            if not self._free_permits:
                return False
            self._free_permits -= 1
            return True

    def leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free_permits += 1
                return
            turn = self._waiting.popleft()
        with suppress(RuntimeError):  # the loop is closed, and with it all that waited
            turn.get_loop().call_soon_threadsafe(self._admit, turn)

    def _admit(self, turn: asyncio.Future[None]) -> None:
        if turn.done():  # cancelled
            self.leave()
        else:
            turn.set_result(None)


_MAX_COMPUTING_THREADS = 2  # threads beside an event loop: more of them fight for the interpreter, and hold up the loop
_limiters: WeakKeyDictionary[asyncio.AbstractEventLoop, _ConcurrencyLimiter] = WeakKeyDictionary()


def _limiter_of(loop: asyncio.AbstractEventLoop) -> _ConcurrencyLimiter:
    limiter = _limiters.get(loop)
    if limiter is None:
        limiter = _limiters[loop] = _ConcurrencyLimiter(_MAX_COMPUTING_THREADS)
    return limiter


class _FairScheduler:
    """Whose turn it is on one event loop: who asks first goes first, one in each round of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turn_taken = False

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        if self._turn_taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
        self._turn_taken = True
        loop.call_soon(self._wake_next)  # runs in the next round

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._turn_taken = False


_schedulers: WeakKeyDictionary[asyncio.AbstractEventLoop, _FairScheduler] = WeakKeyDictionary()


def _scheduler_of(loop: asyncio.AbstractEventLoop) -> _FairScheduler:
    turns = _schedulers.get(loop)
    if turns is None:
        turns = _schedulers[loop] = _FairScheduler()
    return turns


async def _perform_step(step: Step) -> Any:
    if isinstance(step, Call):
        return await _await_call(step)
    tasks = [asyncio.create_task(arun(step.first)), asyncio.create_task(arun(step.second))]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    return tasks[0].result(), tasks[1].result()


async def _await_call(call: Call) -> Any:
    twin = _async_method(call)
    if twin is not None:
        return await twin(*call.args, **call.kwargs)
    return await asyncio.to_thread(call.method, *call.args, **call.kwargs)


def _async_method(call: Call) -> Callable[..., Any] | None:
    owner = _owner(call)
    twin: Callable[..., Any] | None = getattr(owner, f"a{call.method.__name__}", None) if owner is not None else None
    return twin
