"""The workers that do what was put off: tasks where the caller is on an event loop, else threads.

The queue lies in the truth, so workers share nothing: several of them, in several processes, take what is oldest and
free. One that dies leaves a lease behind, which runs out; what it had not committed is done by the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, Event, Thread
from weakref import WeakKeyDictionary

from mem0_core.errors import Mem0Error
from mem0_core.flow import Flow, arun, do, run
from mem0_core.ports import Job, JobQueue, Lease

__all__ = ["Background", "Settings"]

_log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds after which an idle worker looks by itself: other processes put jobs too
_BREATH = 0.02  # seconds in which whoever woke a worker goes on alone: they share an interpreter, replies come first
_SETTLED = 2.0  # seconds after which a call that outlives its event loop is over
_LONGEST = 300.0  # seconds between two tries, at most
_HOPELESS = 4  # times the tries after which a job is parked even where nothing else went well meanwhile


@dataclass(frozen=True, slots=True)
class Settings:
    """How work is done that was put off.

    Attributes:
        workers: threads, or tasks, at once.
        batch: how many turns of one conversation are read in one go, when they queue up.
        tries: how often a job may fail, while others succeed, before it is parked.
        backoff: seconds before the second try; then twice as long each time.
        lease: seconds after which another worker may take the job of one that is gone.
    """

    workers: int = 2
    batch: int = 8
    tries: int = 8
    backoff: float = 1.0
    lease: float = 30.0


class Background:
    """Workers over a queue.

    Args:
        do_jobs: the flow that does some jobs and commits them, with the lease; raises what went wrong.
    """

    def __init__(self, queue: JobQueue, do_jobs: Callable[[list[Job], Lease], Flow[None]], settings: Settings) -> None:
        self._queue = queue
        self._do_jobs = do_jobs
        self._settings = settings
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._changed = Condition()
        self._stopping = Event()
        self._hurry = Event()  # somebody waits until all is done
        self._hurrying = 0
        self._threads: list[Thread] = []
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Task[None]]] = WeakKeyDictionary()
        self._wakes: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = WeakKeyDictionary()
        self._leases: dict[Lease, float] = {}  # lease -> when it is to be held longer
        self._ended: dict[str, float] = {}  # worker -> when its event loop ended under it
        self._succeeded = 0.0  # when a job last went well
        self._failing: dict[int, float] = {}  # job -> when it first failed here

    # --- who works ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let threads work, if none do; and wake them."""
        with self._changed:
            if self._stopping.is_set():
                return
            if not self._threads:
                self._threads = [
                    Thread(target=self._work, args=(f"{self._name}-{number}",), name="mem0-worker", daemon=True)
                    for number in range(self._settings.workers)
                ]
                self._threads.append(Thread(target=self._hold, name="mem0-leases", daemon=True))
                for thread in self._threads:
                    thread.start()
            self._changed.notify_all()

    async def astart(self) -> None:
        """Let tasks of the running event loop work, if none do; and wake them, in a while."""
        loop = asyncio.get_running_loop()
        wake = self._wakes.setdefault(loop, asyncio.Event())
        loop.call_later(0 if self._hurry.is_set() else _BREATH, wake.set)
        if self._stopping.is_set() or any(not task.done() for task in self._tasks.get(loop, ())):
            return
        tasks = [
            loop.create_task(self._awork(f"{self._name}-{uuid.uuid4().hex[:4]}"), name="mem0-worker")
            for _ in range(self._settings.workers)
        ]
        self._tasks[loop] = [*tasks, loop.create_task(self._ahold(), name="mem0-leases")]

    @property
    def working(self) -> bool:
        return bool(self._threads) or any(not task.done() for tasks in self._tasks.values() for task in tasks)

    def stop(self) -> None:
        """Let the threads finish what they are at, and end."""
        self._stopping.set()
        self._hurry.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    async def astop(self) -> None:
        """Let the tasks of the running event loop finish what they are at, and end."""
        self._stopping.set()
        self._hurry.set()
        loop = asyncio.get_running_loop()
        if wake := self._wakes.pop(loop, None):
            wake.set()
        tasks = self._tasks.pop(loop, [])
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- waiting for it ----------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None) -> bool:
        """Wait until nothing is left to do but what is parked; False where that took longer than `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._in_a_hurry():
            while self.left():
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                with self._changed:
                    self._changed.wait(0.05)
        return True

    async def aflush(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._in_a_hurry():
            if wake := self._wakes.get(asyncio.get_running_loop()):
                wake.set()
            while await asyncio.to_thread(self.left):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                await asyncio.sleep(0.02)
        return True

    def drain(self, timeout: float) -> None:
        """Wait for what can be done now, not for what failed and waits for its next try."""
        deadline = time.monotonic() + timeout
        with self._in_a_hurry():
            while (self._leases or self._queue.ready()) and time.monotonic() < deadline:
                self._reap()
                with self._changed:
                    self._changed.wait(0.02)

    async def adrain(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._in_a_hurry():
            while time.monotonic() < deadline and (bool(self._leases) or await asyncio.to_thread(self._queue.ready)):
                await asyncio.sleep(0.01)

    @contextmanager
    def _in_a_hurry(self) -> Iterator[None]:
        """Let no worker wait before it begins."""
        with self._changed:
            self._hurrying += 1
            self._hurry.set()
        try:
            yield
        finally:
            with self._changed:
                self._hurrying -= 1
                if not self._hurrying and not self._stopping.is_set():
                    self._hurry.clear()

    def left(self) -> bool:
        self._reap()
        return self._queue.next_at() is not None

    # --- working -----------------------------------------------------------------------------------------------------

    def _work(self, worker: str) -> None:
        rested = True
        while not self._stopping.is_set():
            if rested:
                self._hurry.wait(_BREATH)
            rested = not run(self._some(worker))
            if rested:
                with self._changed:
                    if not self._stopping.is_set():
                        self._changed.wait(self._pause())

    async def _awork(self, worker: str) -> None:
        try:
            await self._breathe()
            while not self._stopping.is_set():
                if not await arun(self._some(worker)):
                    await self._doze()
        finally:
            self._ended[worker] = time.monotonic()

    async def _breathe(self) -> None:
        """Leave the loop to whoever started the workers."""
        over = time.monotonic() + _BREATH
        while not self._hurry.is_set() and time.monotonic() < over:
            await asyncio.sleep(_BREATH / 4)

    def _reap(self) -> None:
        """Take back what a worker had leased when its event loop ended: the call that does it may outlive the loop."""
        for worker, since in list(self._ended.items()):
            self._queue.forsake(worker)
            if time.monotonic() - since > _SETTLED:
                self._ended.pop(worker, None)

    async def _doze(self) -> None:
        """Until there is something to do, or may be."""
        wake = self._wakes.get(asyncio.get_running_loop())
        if wake is None or self._stopping.is_set():
            return
        wake.clear()
        pause = await asyncio.to_thread(self._pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):  # not wait_for: in 3.11 it swallows a cancellation that meets the wake
                await wake.wait()

    def _pause(self) -> float:
        try:
            self._reap()
            next_at = self._queue.next_at()
        except Mem0Error:
            return _LOOK
        return _LOOK if next_at is None else min(_LOOK, max(0.01, next_at - time.time()))

    def _some(self, worker: str) -> Flow[bool]:
        """Do the oldest jobs that are free; False where there are none."""
        try:
            jobs = yield from do(self._queue.lease, worker, seconds=self._settings.lease, most=self._settings.batch)
        except Mem0Error:
            if not self._stopping.is_set():
                _log.exception("could not look for work")
            return False
        if not jobs:
            return False
        lease = Lease(worker, tuple(job.row for job in jobs))
        self._leases[lease] = time.monotonic() + self._settings.lease / 3
        try:
            yield from self._do_jobs(jobs, lease)
        except GeneratorExit:  # the event loop ends: what is not committed is there for the next worker
            with suppress(Mem0Error):  # a store that was closed on this loop: then the lease runs out
                self._queue.release(lease, error="interrupted", retry_in=0.0)
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model or hook raises: told with the job, and logged
            yield from self._failed(jobs, lease, error)
        else:
            self._succeeded = time.monotonic()
            for job in jobs:
                self._failing.pop(job.row, None)
        finally:
            self._leases.pop(lease, None)
            with self._changed:
                self._changed.notify_all()
        return True

    def _failed(self, jobs: list[Job], lease: Lease, error: Exception) -> Flow[None]:
        tried = max(job.attempts for job in jobs) + 1
        since = min(self._failing.setdefault(job.row, time.monotonic()) for job in jobs)
        # Where nothing went well since this first failed, the model is down, and the job no worse than others.
        enough = self._settings.tries * (1 if self._succeeded > since else _HOPELESS)
        parked = tried >= enough and len(jobs) == 1
        wait = min(_LONGEST, self._settings.backoff * 2 ** (tried - 1))
        _log.warning("job %s failed (%s times)%s: %s", lease.jobs, tried, ", parked" if parked else "", error)
        told = f"{type(error).__name__}: {error}"
        try:
            yield from do(self._queue.release, lease, error=told, retry_in=None if parked else wait)
        except Mem0Error:
            _log.exception("could not give back job %s: its lease runs out", lease.jobs)

    # --- holding on --------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        while not self._stopping.wait(self._settings.lease / 6) or self._leases:
            self._hold_once()
            if self._stopping.is_set():
                time.sleep(0.05)

    async def _ahold(self) -> None:
        while not self._stopping.is_set() or self._leases:
            await asyncio.sleep(min(0.05, self._settings.lease / 6))
            if any(due <= time.monotonic() for due in list(self._leases.values())):
                await asyncio.to_thread(self._hold_once)

    def _hold_once(self) -> None:
        now = time.monotonic()
        for lease, due in list(self._leases.items()):
            if due <= now:
                self._leases[lease] = now + self._settings.lease / 3
                try:
                    self._queue.keep(lease, seconds=self._settings.lease)
                except Mem0Error:
                    _log.exception("could not hold on to job %s", lease.jobs)
