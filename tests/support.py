"""Shared helpers of tests: a memory with cheap components, driven by sync or async code."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from mem0_core import Memory
from mem0_core.domain.records import list_added
from mem0_core.testing import HashEmbedder, ScriptedChat

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")


def import_modules(use: Callable[[], object]) -> None:
    """Import all that a function imports, so that forks of this process need not; the function runs in a fork."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        use()
        with os.fdopen(write_end, "w") as names:
            names.write("\n".join(sys.modules))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as names:
        for name in names.read().split("\n"):
            with suppress(ImportError):  # the name of a part of a package that is no module
                import_module(name)
    assert os.waitpid(pid, 0)[1] == 0


class MemoryDriver:
    """A memory that runs methods under one of the two drivers: ``driver.add(...)`` is `add` or an awaited `aadd`."""

    def __init__(self, memory: Memory, mode: Mode) -> None:
        self.memory = memory
        self._mode = mode

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if self._mode == "sync":
            found: Callable[..., Any] = getattr(self.memory, verb)
            return found
        return lambda *args, **kwargs: asyncio.run(getattr(self.memory, f"a{verb}")(*args, **kwargs))


def open_memory(
    folder: Path,
    script: Sequence[Any] | Callable[..., Any] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    **parts: Any,
) -> Memory:
    """Open a memory in `folder` with a cheap embedder and, if a script is given, a scripted model."""
    parts.setdefault("embedder", HashEmbedder())
    if script is not None:
        parts["llm"] = ScriptedChat(script)
    return Memory({"path": str(folder), "durability": "process", **(config or {})}, **parts)


def check_four_parts(message: str, parts: Sequence[str]) -> None:
    """Check that an error names the argument as written, the value, what is accepted, and the next step."""
    labels = ("the argument", "the value", "an accepted value", "the next step")
    missing = [f"{label}: {part}" for label, part in zip(labels, parts, strict=True) if part not in message]
    assert not missing, f"{missing} not in: {message}"


def run_sql(memory: Memory, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements as the database's own shell would, without foreign keys. Returns the rows of the last statement.

    SQLite's shell does not enforce them by default; PostgreSQL's does not while it loads a part of a dump.
    """
    found: list[tuple[Any, ...]] = []
    store: Any = memory.store
    if store.maintenance.file is not None:
        with closing(sqlite3.connect(store.maintenance.file)) as db:
            for statement in statements:
                found = db.execute(statement).fetchall()
            db.commit()
        return found
    with store._db.connect() as server:
        server.execute("SET session_replication_role = replica")
        for statement in statements:
            cursor = server.execute(statement)
            found = cursor.fetchall() if cursor.description else []
    return found


def result_texts(result: Mapping[str, Any]) -> list[str]:
    return [entry["memory"] for entry in result["results"]]


def result_events(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the changes of an add, then the memories that it left unchanged."""
    return [(entry["event"], entry["memory"]) for entry in list_added(result)]


@contextmanager
def hang_guard(seconds: float = 60.0) -> Iterator[None]:
    """Fail a block that hangs, where the system has alarms and the test runs in the main thread.

    The limit is generous: it says that the block ends, not that it is fast.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it did not end within {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def restore_interrupts() -> None:
    """Restore Ctrl-C; a ``preexec_fn`` for `subprocess`. Background runs ignore it, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_python(code: str, *args: object, env: dict[str, str] | None = None) -> str:
    """Run code in another process, which must succeed. Returns its output."""
    command = [sys.executable, "-c", code, *map(str, args)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout


class Canceller:
    """Cancels a task after its memory's n-th call to a store or a model; pass it as `on_step`."""

    def __init__(self) -> None:
        self._left = 0
        self._cancel: Callable[[], object] = lambda: None

    def __call__(self, step: object) -> None:
        self._left -= 1
        if self._left == 0:
            self._cancel()

    async def run(self, call: Coroutine[Any, Any, object], calls: int) -> bool:
        """Run a coroutine, cancelled after so many calls; return True if that ended it."""
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(call)
        self._cancel, self._left = lambda: loop.call_soon_threadsafe(task.cancel), calls
        try:
            await task
        except asyncio.CancelledError:
            return True
        finally:
            self._left = 0
        return False


async def cancel_everywhere(attempt: Callable[[int], Awaitable[bool]]) -> int:
    """Run an attempt with 1, 2, 3, ... calls before its cancellation until one ends by itself; return its number."""
    calls = 1
    while await attempt(calls):
        calls += 1
    return calls
