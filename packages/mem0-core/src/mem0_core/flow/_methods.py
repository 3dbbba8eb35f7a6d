"""Decorators that make the sync and the async forms of a public method from one function, which returns its flow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mem0_core.flow._steps import Flow
from mem0_core.flow._sync import run

P = ParamSpec("P")
T = TypeVar("T")


class _FlowOwner(Protocol):
    """An object that runs the flows of its methods, each with the call that began it."""

    def _run(self, flow: Flow[T], call: partial[Any]) -> T: ...

    async def _arun(self, flow: Flow[T], call: partial[Any]) -> T: ...


class RunsFlows:
    """Base of a class whose methods run their flows without a memory, and so without its traces."""

    def _run(self, flow: Flow[T], call: partial[Any]) -> T:
        return run(flow)

    async def _arun(self, flow: Flow[T], call: partial[Any]) -> T:
        from mem0_core.flow import _async  # imports asyncio

        return await _async.arun(flow)


class _HasSyncForm(Protocol):
    """An object of an async class, which has the same methods as its sync form."""

    @property
    def _sync_form(self) -> Any: ...


Owner = TypeVar("Owner", bound=_FlowOwner)
Client = TypeVar("Client", bound=_HasSyncForm)


def sync_method(method: Callable[Concatenate[Owner, P], Flow[T]]) -> Callable[Concatenate[Owner, P], T]:
    """Decorator: make a method that returns a flow run it. Its annotations show the result of the flow."""
    hints = method.__annotations__
    hints["return"] = hints["return"].removeprefix("Flow[").removesuffix("]")

    @wraps(method)
    def run_flow(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self, *args, **kwargs), partial(run_flow, self, *args, **kwargs))

    run_flow.__annotations__ = hints  # `wraps` does not copy them in Python 3.14
    return run_flow


def async_method(
    method: Callable[Concatenate[Owner, P], T],
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
    """Return the async version of a method made by `sync_method`; it is named ``a<name>``."""
    make_flow: Any = inspect.unwrap(method)

    @wraps(make_flow)
    async def await_flow(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._arun(make_flow(self, *args, **kwargs), partial(await_flow, self, *args, **kwargs))
        return result

    await_flow.__annotations__ = make_flow.__annotations__
    await_flow.__name__ = f"a{make_flow.__name__}"
    await_flow.__qualname__ = make_flow.__qualname__.removesuffix(make_flow.__name__) + await_flow.__name__
    await_flow.__doc__ = f"Async version of `{make_flow.__name__}`."
    return await_flow


def client_method(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Client, P], Coroutine[Any, Any, T]]:
    """Return the method of an async class for a method that `sync_method` made in the class of its sync form."""
    make_flow: Any = inspect.unwrap(method)

    @wraps(make_flow)
    async def await_flow(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        owner = self._sync_form
        result: T = await owner._arun(make_flow(owner, *args, **kwargs), partial(await_flow, self, *args, **kwargs))
        return result

    await_flow.__annotations__ = make_flow.__annotations__
    await_flow.__qualname__ = f"Async{make_flow.__qualname__}"
    await_flow.__doc__ = f"Async version of `{make_flow.__qualname__}`."
    return await_flow
