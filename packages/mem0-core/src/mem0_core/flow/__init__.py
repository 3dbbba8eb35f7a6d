"""Pipelines written once as generators, and the drivers that run them in sync and async code.

A flow yields the calls it needs: ``reply = yield from do(chat.complete, messages)``. `run` makes each call in the
calling thread. `arun` awaits the ``a<method>`` counterpart where the object has one, and uses a thread elsewhere.
Errors are thrown into the flow, so ``try/except`` around a ``yield from`` works. The pattern is that of psycopg 3's
generators and httpx's ``auth_flow``.

All packages may import this one. It imports nothing of mem0_core.
"""

from typing import TypeVar

from mem0_core.flow._steps import (
    Both,
    Call,
    Flow,
    Step,
    StepRecord,
    both,
    call_all,
    defer,
    do,
    find_async_method,
    observe,
    replace_calls,
    step_listener,
)
from mem0_core.flow._sync import run

T = TypeVar("T")


async def arun(flow: Flow[T]) -> T:
    """Drive `flow` to its end on the running event loop and return its result; see `_async`."""
    from mem0_core.flow import _async  # imports asyncio, which a program without an event loop does not need

    return await _async.arun(flow)


__all__ = [
    "Both",
    "Call",
    "Flow",
    "Step",
    "StepRecord",
    "arun",
    "both",
    "call_all",
    "defer",
    "do",
    "find_async_method",
    "observe",
    "replace_calls",
    "run",
    "step_listener",
]
