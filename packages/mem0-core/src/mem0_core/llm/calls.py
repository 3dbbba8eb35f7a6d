"""One call of a model. Importing this module loads none of the readers of replies, which a search does not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mem0_core._system.boundary import describe_error
from mem0_core.errors import Mem0Error, ModelError
from mem0_core.flow import Call, Flow

P = ParamSpec("P")
T = TypeVar("T")


def call_model(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """Ask the driver for a call of a model; see `flow.do`.

    Raises:
        ModelError: the model raised another error; it is chained.
    """
    try:
        result: T = yield Call(method, args, kwargs)
    except (Mem0Error, MemoryError):
        raise
    except Exception as error:
        model = type(getattr(method, "__self__", method)).__name__
        raise ModelError(f"{model}.{getattr(method, '__name__', 'call')} failed: {describe_error(error)}") from error
    return result
