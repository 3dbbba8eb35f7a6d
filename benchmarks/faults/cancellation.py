"""Cancel a coroutine method at each of its awaits, and compare the store with the states that are allowed."""

from __future__ import annotations

import asyncio
import json
import os
import types
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

from benchmarks.faults.injector import Fault
from benchmarks.faults.matrix import ACKNOWLEDGED, COMPLETE, REFUSED, SQLiteMatrix, run_in_fork
from benchmarks.faults.states import Examined
from benchmarks.faults.verbs import VERBS, Place, Verb, open_place, reply
from mem0_core import AsyncMemory, Memory
from mem0_core.testing import HashEmbedder, ScriptedChat

__all__ = ["COROUTINES", "CancellationMatrix"]

COROUTINES = tuple(name for name, verb in VERBS.items() if not verb.opens and name not in ("close", "purge"))
"""Names of the verbs that have a coroutine."""

_READS = frozenset({"get_all", "merges", "pending"})
"""Methods that a verb calls to find the ids of its own call."""


class CancellationMatrix(SQLiteMatrix):
    """Cancel verbs over stores in files; the boundaries are the awaits of their coroutines."""

    def _trace(self, verb: Verb, place: Place, fault: Fault) -> list[str]:
        counted = self.folder / "awaits"

        def run() -> None:
            canceller = _Canceller(None)
            _call(verb, place, canceller)
            counted.write_text(json.dumps(canceller.count), encoding="utf-8")

        assert run_in_fork(run) == 0, f"{verb.name} does not run"
        count: int = json.loads(counted.read_text(encoding="utf-8"))
        return [*(f"await {number}" for number in range(count)), ACKNOWLEDGED]

    def _abort(self, verb: Verb, base: Place, at: int, fault: Fault) -> Examined:
        place = self._copy(base, "run")

        def run() -> None:
            try:
                _call(verb, place, _Canceller(at))
            except asyncio.CancelledError:
                os._exit(REFUSED)
            os._exit(COMPLETE)

        status = run_in_fork(run, is_quiet=True)
        if status not in (COMPLETE, REFUSED):
            return Examined(error=f"the call failed with status {status}")
        found = self._examine(place, verb.has_snapshots)
        found.is_acknowledged = status == COMPLETE
        return found


def _call(verb: Verb, place: Place, canceller: _Canceller) -> None:
    """Run a verb by its coroutines; then the memory is used and closed, whatever happened."""
    models: dict[str, Any] = {"embedder": _AwaitedEmbedder(dims=32)}
    if verb.has_model:
        models["llm"] = _AwaitedChat(reply)
    memory = open_place(place, has_snapshots=verb.has_snapshots, **models)
    try:
        verb.run(_Coroutines(memory, canceller), place)
    finally:
        memory.search("Where do I live?", user_id="zoe")
        memory.close()


class _AwaitedEmbedder(HashEmbedder):
    """An embedder that waits, as one in another process does."""

    inline = False

    async def aembed(self, texts: Sequence[str], *, kind: Any = "document") -> Any:
        await asyncio.sleep(0)
        return self.embed(texts, kind=kind)


class _AwaitedChat(ScriptedChat):
    """A chat model that waits, as one in another process does."""

    inline = False

    async def acomplete(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        await asyncio.sleep(0)
        return self.complete(messages, **options)


class _Coroutines:
    """A memory whose methods run as those of `AsyncMemory`, each in an event loop of its own."""

    def __init__(self, memory: Memory, canceller: _Canceller) -> None:
        self._memory, self._canceller = memory, canceller
        self._async_memory = AsyncMemory(memory=memory)

    def __getattr__(self, name: str) -> Any:
        if name in _READS or not hasattr(AsyncMemory, name):
            return getattr(self._memory, name)
        method: Callable[..., Coroutine[Any, Any, Any]] = getattr(self._async_memory, name)
        return lambda *args, **kwargs: asyncio.run(self._canceller.run(method(*args, **kwargs)))


class _Canceller:
    """Counts the awaits that suspend a task, and cancels the task at one of them."""

    def __init__(self, at: int | None) -> None:
        self.at, self.count = at, 0

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await self._drive(coroutine)

    @types.coroutine
    def _drive(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return stop.value
            if self.count == self.at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            self.count += 1
            value = error = None
            try:
                value = yield awaited
            except BaseException as raised:  # noqa: BLE001 - for the coroutine
                error = raised
