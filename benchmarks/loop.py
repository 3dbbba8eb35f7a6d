"""Lag of the event loop during turns of a LlamaIndex agent's memory, next to the lag of an idle loop."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage

from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median
from mem0_core import AsyncMemory
from mem0_core.testing import HashEmbedder, ScriptedChat
from mem0_llamaindex import Mem0Memory

__all__ = ["measure", "measure_lag"]

MODEL_SECONDS = 0.3
IDLE_SECONDS = 0.7
TICK_SECONDS = 0.001


@dataclass(slots=True)
class Lag:
    """Greatest delays of a loop, in seconds.

    Attributes:
        late: delay of a callback after the time at which it was due. Other work on the machine adds to it.
        busy: CPU time of the loop's thread between two callbacks.
    """

    late: float = 0.0
    busy: float = 0.0


def measure(plan: Plan) -> Report:
    report = Report("loop")
    for background in (True, False):
        turns, idle = asyncio.run(_measure_turns(plan, background))
        section = f"a turn of an agent, model of {MODEL_SECONDS * 1000:.0f} ms, background={background}"
        for name, lags in (("during a turn", turns), ("idle loop", idle)):
            report.add(section, f"latest callback, {name}", 1000 * median([lag.late for lag in lags]), "ms")
        busy = 1000 * median([lag.busy for lag in turns])
        report.add(section, "longest computation on the thread of the loop", busy, "ms", Bar("<=", 5))
    return report


async def _measure_turns(plan: Plan, background: bool) -> tuple[list[Lag], list[Lag]]:
    """Return the lags of turns, each in a new memory, and of the idle loop before each."""
    turns, idle = [], []
    for _ in range(plan.rounds):
        with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
            async with AsyncMemory({"path": Path(folder)}, llm=_model(), embedder=HashEmbedder()) as core:
                memory = Mem0Memory.from_defaults(core, user_id="maya", background=background)
                await memory.aget("What do I prefer?")  # opens the index
                with measure_lag() as lag:
                    await asyncio.sleep(IDLE_SECONDS)
                idle.append(lag)
                with measure_lag() as lag:
                    await memory.aput(ChatMessage(role="user", content="I prefer oolong. Make some."))
                    await memory.aget()
                    await memory.aput(ChatMessage(role="assistant", content="Here it is."))
                    await core.flush(timeout=60)
                turns.append(lag)
    return turns, idle


def _model() -> ScriptedChat:
    """Build a chat model that takes its time and finds one fact in everything."""

    def answer(task: str, messages: Any) -> dict[str, Any]:
        time.sleep(MODEL_SECONDS)
        if task == "facts":
            return {"facts": ["Prefers oolong"]}
        facts = json.loads(messages[-1]["content"])["facts"]
        return {"memory": [{"id": "new", "text": fact, "event": "ADD"} for fact in facts]}

    return ScriptedChat(answer)


@contextmanager
def measure_lag() -> Iterator[Lag]:
    """Measure the lag of the running loop by a callback that is due every millisecond."""
    loop = asyncio.get_running_loop()
    lag, computed = Lag(), time.thread_time()
    timer: asyncio.Handle = loop.call_soon(lambda: None)

    def tick(due: float) -> None:
        nonlocal computed, timer
        before, computed = computed, time.thread_time()
        lag.late, lag.busy = max(lag.late, loop.time() - due), max(lag.busy, computed - before)
        due = loop.time() + TICK_SECONDS
        timer = loop.call_at(due, tick, due)

    timer = loop.call_soon(tick, loop.time())
    try:
        yield lag
    finally:
        timer.cancel()
