"""The flow engine: one text of a pipeline, run in sync or async code.

A pipeline is a generator that yields calls it has not made: ``reply = yield from do(chat.complete, messages)``.
`run` makes the calls; `arun` awaits each call's ``a<method>`` twin where its object has one, and runs it in a
thread where it has none; those that only compute follow one another in the same thread. Errors are thrown *into* the
flow, so ``try/except`` around a ``yield from`` works.
Two flows run side by side with `both`, calls that need nothing of one another are made in one go with `each`; `observe`
wraps a flow so that a hook sees every step.

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

__all__ = ["Both", "Call", "Flow", "Step", "StepRecord", "arun", "both", "do", "each", "later", "observe", "run"]

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

    def make(self) -> Any:
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


def later(method: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Call:
    """A call for `each`."""
    return Call(method, args, kwargs)


def each(*calls: Call) -> Flow[list[Any]]:
    """Ask the driver for calls that need nothing of one another; their results in this order, or the first error.

    They are made one after the other, unless all of their methods have one attribute ``together``, a function of such
    calls that makes them in one go (and ``atogether``, its twin): a database answers them in one round trip.
    """
    owner = _Each(calls) if all(call.inline for call in calls) else _EachAwaited(calls)
    return (yield from do(owner.make))


class _Each:
    """Calls that are made as one, all of which only compute."""

    inline = True

    def __init__(self, calls: tuple[Call, ...]) -> None:
        self.calls = calls

    def make(self) -> list[Any]:
        together = self._shared("together")
        return [call.make() for call in self.calls] if together is None else together(self.calls)

    def _shared(self, name: str) -> Callable[[tuple[Call, ...]], Any] | None:
        """The attribute that all the methods have, if it is one and the same."""
        found = {getattr(call.method, name, None) for call in self.calls}
        return found.pop() if len(found) == 1 else None


class _EachAwaited(_Each):
    """Calls of which some wait."""

    inline = False

    async def amake(self) -> list[Any]:
        together = self._shared("atogether")
        if together is not None:
            return list(await together(self.calls))
        return [await _acall(call) for call in self.calls]


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows at once and return both results; the first error (in this order) is raised when both ended."""
    results: tuple[A, B] = yield Both(first, second)
    return results


def observe(flow: Flow[T], hook: Callable[[StepRecord], None]) -> Flow[T]:
    """The same flow, with `hook` told of every call it and its branches make, once the call has ended."""
    try:
        step = next(flow)
        while True:
            call = step if isinstance(step, Call) and not isinstance(_owner(step), _Each) else None
            started = time.perf_counter()
            try:
                result = (yield from _observed(step, hook)) if call is None else (yield call)
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


def _observed(step: Step, hook: Callable[[StepRecord], None]) -> Flow[Any]:
    """A `both` whose flows are observed; an `each` call by call, so that `hook` is told of each."""
    if isinstance(step, Both):
        return (yield Both(observe(step.first, hook), observe(step.second, hook)))
    return (yield from observe(_one_by_one(_owner(step).calls), hook))


def _one_by_one(calls: Iterable[Call]) -> Flow[list[Any]]:
    results = []
    for call in calls:
        results.append((yield call))  # noqa: PERF401 - a comprehension cannot yield
    return results


def run(flow: Flow[T]) -> T:
    """Drive `flow` to its end in this thread; see `_Lanes` for what becomes of a `both`."""
    try:
        step = next(flow)
        while True:
            try:
                result = step.make() if isinstance(step, Call) else _Lanes().run(step)
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
class _Lane:
    """One flow among those that are driven together, and the `both` that waits for it."""

    flow: Flow[Any]
    pair: _Pair
    outcome: _Outcome | None = None


@dataclass(eq=False, slots=True)
class _Pair:
    """A `both` under way, and the lane that asked for it."""

    owner: _Lane | None
    lanes: list[_Lane] = field(default_factory=list)

    def outcome(self) -> _Outcome | None:
        """Both results, or the first error, once both flows have ended."""
        first, second = (lane.outcome for lane in self.lanes)
        if first is None or second is None:
            return None
        return _Outcome((first.value, second.value), first.error or second.error)


class _Lanes:
    """Drives the flows of a `both`, and of those within it, in one thread.

    A call is made in a thread of its own, so that what waits for other machines overlaps. But what an object computes
    that says so of itself (``inline = True``: our stores, for instance) is computed here: two threads that both compute
    only fight for the interpreter, at half as much CPU again.
    """

    def __init__(self) -> None:
        self._ended: SimpleQueue[tuple[_Lane, _Outcome]] = SimpleQueue()
        self._ready: deque[tuple[_Lane, _Outcome]] = deque()
        self._away = 0  # calls under way in threads
        self._flows: list[Flow[Any]] = []

    def run(self, step: Both) -> Any:
        pair = self._fork(step, None)
        try:
            while (whole := pair.outcome()) is None:
                if not self._ready:
                    self._ready.append(self._ended.get())
                    self._away -= 1
                self._advance(*self._ready.popleft())
            return whole.get()
        finally:
            for flow in self._flows:
                flow.close()

    def _fork(self, step: Both, owner: _Lane | None) -> _Pair:
        pair = _Pair(owner)
        for flow in (step.first, step.second):
            pair.lanes.append(_Lane(flow, pair))
            self._flows.append(flow)
        self._ready.extend((lane, _Outcome()) for lane in pair.lanes)
        return pair

    def _advance(self, lane: _Lane, last: _Outcome) -> None:
        """Let a flow go on with what its last step came to, until it has to wait, or ends."""
        while True:
            try:
                step = _next(lane.flow, last)
            except BaseException as error:  # noqa: BLE001 - raised where the `both` stands
                return self._end(lane, _Outcome(error=error))
            if isinstance(step, _End):
                return self._end(lane, _Outcome(step.value))
            if isinstance(step, Both):
                self._fork(step, lane)
                return None
            if not step.inline and (self._ready or self._away):
                return self._send(lane, step)
            last = _made(step)

    def _send(self, lane: _Lane, call: Call) -> None:
        """Make a call in a thread; a copied context carries LangChain's callbacks and LangGraph's config into it."""
        self._away += 1
        context = contextvars.copy_context()

        def work() -> None:
            self._ended.put((lane, context.run(_made, call)))

        _threads.start(work)

    def _end(self, lane: _Lane, outcome: _Outcome) -> None:
        lane.outcome = outcome
        whole = lane.pair.outcome()
        if whole is not None and lane.pair.owner is not None:
            self._ready.append((lane.pair.owner, whole))


class _Threads:
    """Threads that stay for a second after their work, to be used again: to start one costs some 0.2 ms."""

    _STAY = 1.0

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
                work = mine.get(timeout=self._STAY)
            except Empty:
                try:
                    self._idle.remove(mine)
                except ValueError:  # taken at this very moment: the work is on its way
                    work = mine.get()
                else:
                    return


_threads = _Threads()


def _made(call: Call) -> _Outcome:
    try:
        return _Outcome(call.make())
    except BaseException as error:  # noqa: BLE001 - the flow decides, it is thrown in
        return _Outcome(error=error)


@dataclass(frozen=True, slots=True)
class _End:
    """What a flow returned."""

    value: Any


def _next(flow: Flow[Any], last: _Outcome) -> Step | _End:
    """Let a flow go on with what its last step came to."""
    try:
        return flow.send(last.value) if last.error is None else flow.throw(last.error)
    except StopIteration as stop:
        return _End(stop.value)


async def arun(flow: Flow[T]) -> T:
    """Drive `flow` to its end on the running event loop.

    What a flow does between calls that it awaits, it does on the loop. Of many flows one goes on in each round of the
    loop, which is held up by what one does, then, and not by what all do.
    """
    turns = _turns_of(asyncio.get_running_loop())
    try:
        await turns.take()
        step = _next(flow, _Outcome())
        while not isinstance(step, _End):
            if _is_for_a_thread(step):
                reached = await _in_thread(flow, step)
                if not isinstance(reached, _Outcome):
                    step = reached
                    continue
                last = reached
            else:
                try:
                    last = _Outcome(await _aperform(step))
                except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                    last = _Outcome(error=error)
            await turns.take()
            step = _next(flow, last)
        value: T = step.value
        return value
    finally:
        with suppress(ValueError):  # cancelled while a thread drives it: that one closes it, see `_in_thread`
            flow.close()  # a cancellation is not thrown in: the flow's own `finally` blocks run here


def _is_for_a_thread(step: Step | _End) -> TypeGuard[Call]:
    """Whether a step is a call that nobody can await."""
    return isinstance(step, Call) and _twin(step) is None


async def _in_thread(flow: Flow[Any], call: Call) -> Step | _End | _Outcome:
    """Make a call in a thread, and drive the flow on in there until there is something to await.

    What only computes has a place in the room, which is left for a call that may wait. Where there is none to come back
    to, the loop goes on with what that call came to. A thread for every call would take half the time of a search.

    When this is cancelled the thread ends its call, and closes the flow.
    """
    room = _room_beside(asyncio.get_running_loop())
    begun, cancelled = Lock(), Event()

    def work() -> Step | _End | _Outcome:
        step: Step | _End = call
        inside = call.inline
        if not begun.acquire(blocking=False):  # cancelled before
            return step
        try:
            while _is_for_a_thread(step) and not cancelled.is_set():
                if inside and not step.inline:
                    room.leave()
                    inside = False
                last = _made(step)
                if cancelled.is_set():
                    break
                inside = inside or room.enter_at_once()
                if not inside:
                    return last
                step = _next(flow, last)
            if cancelled.is_set():
                flow.close()
            return step
        finally:
            if inside:
                room.leave()

    if call.inline:
        await room.enter()
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        if begun.acquire(blocking=False) and call.inline:  # it waits for a thread yet, and may do so for ever
            room.leave()
        raise


class _Room:
    """Places for the threads that compute beside an event loop. They may be left, or taken at once, in any thread."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = Lock()

    async def enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def enter_at_once(self) -> bool:
        with self._lock:
            if not self._free:
                return False
            self._free -= 1
            return True

    def leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            turn = self._waiting.popleft()
        with suppress(RuntimeError):  # the loop is closed, and with it all that waited
            turn.get_loop().call_soon_threadsafe(self._let_in, turn)

    def _let_in(self, turn: asyncio.Future[None]) -> None:
        if turn.done():  # cancelled
            self.leave()
        else:
            turn.set_result(None)


_COMPUTING = 2  # threads beside an event loop: more of them fight for the interpreter, and hold up the loop
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, _Room] = WeakKeyDictionary()


def _room_beside(loop: asyncio.AbstractEventLoop) -> _Room:
    room = _rooms.get(loop)
    if room is None:
        room = _rooms[loop] = _Room(_COMPUTING)
    return room


class _Turns:
    """Whose turn it is on one event loop: who asks first goes first, one in each round of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        if self._taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self._taken = True
        loop.call_soon(self._pass_on)  # runs in the next round

    def _pass_on(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


def _turns_of(loop: asyncio.AbstractEventLoop) -> _Turns:
    turns = _of_loops.get(loop)
    if turns is None:
        turns = _of_loops[loop] = _Turns()
    return turns


async def _aperform(step: Step) -> Any:
    if isinstance(step, Call):
        return await _acall(step)
    tasks = [asyncio.create_task(arun(step.first)), asyncio.create_task(arun(step.second))]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    return tasks[0].result(), tasks[1].result()


async def _acall(call: Call) -> Any:
    twin = _twin(call)
    if twin is not None:
        return await twin(*call.args, **call.kwargs)
    return await asyncio.to_thread(call.method, *call.args, **call.kwargs)


def _twin(call: Call) -> Callable[..., Any] | None:
    owner = _owner(call)
    twin: Callable[..., Any] | None = getattr(owner, f"a{call.method.__name__}", None) if owner is not None else None
    return twin
