"""Steps of a flow: calls that a driver makes, and pairs of flows that it runs concurrently."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mem0_core._system.records import dataclass

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


# Objects made for every step are not frozen: creating frozen ones takes three times as long.


@dataclass(slots=True)
class Call:
    """A call that a driver is asked to make."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def inline(self) -> bool:
        """True if the call only computes: its object has an attribute ``inline = True``."""
        return getattr(_owner(self), "inline", False) is True

    def execute(self) -> Any:
        return self.method(*self.args, **self.kwargs)

    @property
    def name(self) -> str:
        """The method's name, with the class of its object: ``OpenAIChat.complete``."""
        return getattr(self.method, "__qualname__", repr(self.method))


def _owner(call: Call) -> Any:
    """Return the object that the method is bound to; None for a function."""
    return getattr(call.method, "__self__", None)


def find_async_method(call: Call) -> Callable[..., Any] | None:
    """Return the ``a<method>`` of the call's object; None if it has none."""
    owner = _owner(call)
    return getattr(owner, f"a{call.method.__name__}", None) if owner is not None else None


async def await_call(call: Call) -> Any:
    """Await a call's async counterpart; make a call that has none in a thread."""
    import asyncio

    method = find_async_method(call)
    if method is None:
        # An outcome, as a StopIteration raised in a thread would never reach the event loop.
        return (await asyncio.to_thread(make_call, call)).get()
    return await method(*call.args, **call.kwargs)


@dataclass(frozen=True, slots=True)
class Both:
    """Two flows to run concurrently."""

    first: Generator[Any, Any, Any]
    second: Generator[Any, Any, Any]


Step: TypeAlias = Call | Both
Flow: TypeAlias = Generator[Step, Any, T]


@dataclass(slots=True)
class StepRecord:
    """A finished call, as `observe` reports it to its hook."""

    call: Call
    seconds: float
    result: Any = None
    error: BaseException | None = None


def do(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """Ask the driver to call `method`; the value of the expression is its result."""
    result: T = yield Call(method, args, kwargs)
    return result


def defer(method: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Call:
    """Return a call for `call_all`."""
    return Call(method, args, kwargs)


def call_all(*calls: Call) -> Flow[list[Any]]:
    """Ask the driver for independent calls; return their results in order, or raise the first error.

    The calls are made one after another, unless all methods share one attribute ``together``: a function that takes
    the calls and makes them in one round trip to a database. Its async counterpart is ``atogether``.
    """
    owner = _CallBatch(calls) if all(call.inline for call in calls) else _AsyncCallBatch(calls)
    return (yield from do(owner.execute))


class _CallBatch:
    """Calls made as one, all of which only compute."""

    inline = True

    def __init__(self, calls: tuple[Call, ...]) -> None:
        self.calls = calls

    def execute(self) -> list[Any]:
        together = self._shared_attribute("together")
        return [call.execute() for call in self.calls] if together is None else together(self.calls)

    def _shared_attribute(self, name: str) -> Callable[[tuple[Call, ...]], Any] | None:
        """Return the attribute of all methods if it is the same object for all."""
        found = {getattr(call.method, name, None) for call in self.calls}
        return found.pop() if len(found) == 1 else None


class _AsyncCallBatch(_CallBatch):
    """Calls made as one, some of which wait."""

    inline = False

    async def aexecute(self) -> list[Any]:
        together = self._shared_attribute("atogether")
        if together is not None:
            return list(await together(self.calls))
        return [await await_call(call) for call in self.calls]


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows concurrently and return both results.

    If one fails, the error is raised after both have ended; if both fail, the error of `first` is raised.
    """
    results: tuple[A, B] = yield Both(first, second)
    return results


def observe(flow: Flow[T], hook: Callable[[StepRecord], None]) -> Flow[T]:
    """Wrap a flow so that `hook` receives every finished call of the flow and of its branches."""
    try:
        step = next(flow)
        while True:
            call = step if isinstance(step, Call) and not isinstance(_owner(step), _CallBatch) else None
            started = time.perf_counter()
            try:
                result = (yield from _observe_step(step, hook)) if call is None else (yield call)
            except Exception as error:  # noqa: BLE001 - thrown into the flow, which decides
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
    """Observe the flows of a `both`, or the calls of a `call_all` one by one."""
    if isinstance(step, Both):
        return (yield Both(observe(step.first, hook), observe(step.second, hook)))
    return (yield from observe(_run_sequentially(_owner(step).calls), hook))


def _run_sequentially(calls: Iterable[Call]) -> Flow[list[Any]]:
    results = []
    for call in calls:
        results.append((yield call))  # noqa: PERF401 - a comprehension cannot yield
    return results


step_listener: ContextVar[Callable[[Call], Call] | None] = ContextVar("mem0_step_listener", default=None)
"""Receives each call of the methods that the current task calls, before a driver makes it, and returns it."""


def replace_calls(flow: Flow[T], replace: Callable[[Call], Call]) -> Flow[T]:
    """Wrap a flow so that the driver makes ``replace(call)`` in place of each call of the flow and of its branches."""
    try:
        step = next(flow)
        while True:
            try:
                result = yield _replace_step(step, replace)
            except Exception as error:  # noqa: BLE001 - thrown into the flow, which decides
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _replace_step(step: Step, replace: Callable[[Call], Call]) -> Step:
    if isinstance(step, Both):
        return Both(replace_calls(step.first, replace), replace_calls(step.second, replace))
    batch = _owner(step)
    if not isinstance(batch, _CallBatch):
        return replace(step)
    calls = tuple(replace(call) for call in batch.calls)
    return step if calls == batch.calls else Call(type(batch)(calls).execute, (), {})


# --- for the drivers ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Outcome:
    """The result or the error of a call or of a flow."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class FlowReturn:
    """The return value of a flow that has ended."""

    value: Any


def make_call(call: Call) -> Outcome:
    """Make a call in this thread, and keep its error for the flow."""
    try:
        return Outcome(call.execute())
    except BaseException as error:  # noqa: BLE001 - thrown into the flow, which decides
        return Outcome(error=error)


def advance_flow(flow: Flow[Any], last: Outcome) -> Step | FlowReturn:
    """Resume a flow with the outcome of its last step; return its next step, or its return value."""
    try:
        return flow.send(last.value) if last.error is None else flow.throw(last.error)
    except StopIteration as stop:
        return FlowReturn(stop.value)
