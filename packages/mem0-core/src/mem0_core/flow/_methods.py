"""Sync and async methods made of one flow, for classes of which all methods are flows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mem0_core.flow._steps import Flow

__all__ = ["flow_methods"]

P = ParamSpec("P")
T = TypeVar("T")


class _FlowRunner(Protocol):
    def _run(self, flow: Flow[T], /) -> T: ...

    async def _arun(self, flow: Flow[T], /) -> T: ...


Runner = TypeVar("Runner", bound=_FlowRunner)


def flow_methods(
    flow: Callable[Concatenate[Runner, P], Flow[T]], name: str | None = None
) -> tuple[Callable[Concatenate[Runner, P], T], Callable[Concatenate[Runner, P], Coroutine[Any, Any, T]]]:
    """Return the sync and the async method that run a flow of their object, with its signature and docstring.

    A subclass that overrides the flow changes both methods.

    >>> read, aread = flow_methods(read_flow)

    Args:
        name: name of the sync method; by default that of the flow without ``_flow``.
    """

    def method(self: Runner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(getattr(self, flow.__name__)(*args, **kwargs))
        return result

    async def async_method(self: Runner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._arun(getattr(self, flow.__name__)(*args, **kwargs))
        return result

    name = name or flow.__name__.removeprefix("_").removesuffix("_flow")
    _present(method, name, flow)
    _present(async_method, f"a{name}", flow)
    return method, async_method


def _present(method: Any, name: str, flow: Callable[..., Any]) -> None:
    """Give a method its name, and the docstring and the signature of its flow with the result in place of the flow."""
    import inspect  # slow, and most programs make no such methods

    functools.update_wrapper(method, flow)
    method.__name__ = name
    method.__qualname__ = f"{flow.__qualname__.rpartition('.')[0]}.{name}"
    method.__code__ = method.__code__.replace(co_name=name)  # errors name the public method by its frame
    signature = inspect.signature(flow)
    result = str(signature.return_annotation).removeprefix("Flow[").removesuffix("]")
    method.__signature__ = signature.replace(return_annotation=result)
