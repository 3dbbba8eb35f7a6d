"""Pipelines written once as generators, and the drivers that run them in sync and async code.

A flow yields the calls it needs: ``reply = yield from do(chat.complete, messages)``. `run` makes each call in the
calling thread. `arun` awaits the ``a<method>`` counterpart where the object has one, and uses a thread elsewhere.
Errors are thrown into the flow, so ``try/except`` around a ``yield from`` works. The pattern is that of psycopg 3's
generators and httpx's ``auth_flow``.

All packages may import this one. It imports nothing of mem0_core.
"""

from mem0_core.flow._async import arun
from mem0_core.flow._steps import Both, Call, Flow, Step, StepRecord, both, call_all, defer, do, observe
from mem0_core.flow._sync import run

__all__ = ["Both", "Call", "Flow", "Step", "StepRecord", "arun", "both", "call_all", "defer", "do", "observe", "run"]
