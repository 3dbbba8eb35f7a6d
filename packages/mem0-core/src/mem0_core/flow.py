"""The flow engine: one text of a pipeline, run in sync or async code.

A pipeline is a generator that yields calls it has not made: ``reply = yield from do(chat.complete, messages)``.
`run` makes the calls; `arun` awaits each call's ``a<method>`` twin where its object has one, and runs it in a
thread where it has none. Errors are thrown *into* the flow, so ``try/except`` around a ``yield from`` works.
Two flows run side by side with `both`; `observe` wraps a flow so that a hook sees every step.

The form is that of psycopg 3's generators and httpx's ``auth_flow``.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any, ParamSpec, TypeAlias, TypeVar

__all__ = ["Both", "Call", "Flow", "Step", "StepRecord", "arun", "both", "do", "observe", "run"]

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Call:
    """A call not yet made."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """The method's name, with its owner's class where it has one: ``OpenAIChat.complete``."""
        return getattr(self.method, "__qualname__", repr(self.method))


@dataclass(frozen=True, slots=True)
class Both:
    """Two flows not yet run."""

    first: Generator[Any, Any, Any]
    second: Generator[Any, Any, Any]


Step: TypeAlias = Call | Both
Flow: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
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


def both(first: Flow[A], second: Flow[B]) -> Flow[tuple[A, B]]:
    """Run two flows at once and return both results; the first error (in this order) is raised when both ended."""
    results: tuple[A, B] = yield Both(first, second)
    return results


def observe(flow: Flow[T], hook: Callable[[StepRecord], None]) -> Flow[T]:
    """The same flow, with `hook` told of every call it and its branches make, once the call has ended."""
    try:
        step = next(flow)
        while True:
            started = time.perf_counter()
            try:
                result = yield _observed(step, hook)
            except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                _tell(hook, step, started, error=error)
                step = flow.throw(error)
            else:
                _tell(hook, step, started, result=result)
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _observed(step: Step, hook: Callable[[StepRecord], None]) -> Step:
    return Both(observe(step.first, hook), observe(step.second, hook)) if isinstance(step, Both) else step


def _tell(hook: Callable[[StepRecord], None], step: Step, started: float, **outcome: Any) -> None:
    if isinstance(step, Call):
        hook(StepRecord(step, time.perf_counter() - started, **outcome))


def run(flow: Flow[T]) -> T:
    """Drive `flow` to its end in this thread (a second one serves the second half of each `both`)."""
    try:
        step = next(flow)
        while True:
            try:
                result = _perform(step)
            except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()


def _perform(step: Step) -> Any:
    if isinstance(step, Call):
        return step.method(*step.args, **step.kwargs)
    first: Future[Any] = Future()
    second: Future[Any] = Future()
    # A copied context carries LangChain's callbacks and LangGraph's config into the thread.
    thread = Thread(target=contextvars.copy_context().run, args=(_settle, second, step.second), daemon=True)
    thread.start()
    _settle(first, step.first)
    thread.join()
    return first.result(), second.result()


def _settle(future: Future[Any], flow: Flow[Any]) -> None:
    try:
        future.set_result(run(flow))
    except BaseException as error:  # noqa: BLE001 - carried to the waiting side
        future.set_exception(error)


async def arun(flow: Flow[T]) -> T:
    """Drive `flow` to its end on the running event loop."""
    try:
        step = next(flow)
        while True:
            try:
                result = await _aperform(step)
            except Exception as error:  # noqa: BLE001 - the flow decides, it is thrown in
                step = flow.throw(error)
            else:
                step = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        flow.close()  # a cancellation is not thrown in: the flow's own `finally` blocks run here


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
    owner = getattr(call.method, "__self__", None)
    twin = getattr(owner, f"a{call.method.__name__}", None) if owner is not None else None
    if twin is not None:
        return await twin(*call.args, **call.kwargs)
    return await asyncio.to_thread(call.method, *call.args, **call.kwargs)
