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
from mem0_core.interfaces import Job, JobQueue, Lease

__all__ = ["BackgroundWorkers", "WorkerSettings"]

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5  # seconds after which an idle worker looks by itself: other processes put jobs too
_START_DELAY_SECONDS = (
    0.02  # seconds in which whoever woke a worker goes on alone: they share an interpreter, replies come first
)
_LOOP_GRACE_SECONDS = 2.0  # seconds after which a call that outlives its event loop is over
_MAX_BACKOFF_SECONDS = 300.0  # seconds between two tries, at most
_OUTAGE_TRIES_FACTOR = 4  # times the tries after which a job is parked even where nothing else went well meanwhile


@dataclass(frozen=True, slots=True)
class WorkerSettings:
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


class BackgroundWorkers:
    """Workers over a queue.

    Args:
        do_jobs: the flow that does some jobs and commits them, with the lease; raises what went wrong.
    """

    def __init__(
        self, queue: JobQueue, do_jobs: Callable[[list[Job], Lease], Flow[None]], settings: WorkerSettings
    ) -> None:
        self._queue = queue
        self._do_jobs = do_jobs
        self._settings = settings
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._changed = Condition()
        self._stopping = Event()
        self._urgent = Event()  # somebody waits until all is done
        self._waiting_callers = 0
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
                self._threads.append(Thread(target=self._renew_leases_until_stopped, name="mem0-leases", daemon=True))
                for thread in self._threads:
                    thread.start()
            self._changed.notify_all()

    async def astart(self) -> None:
        """Let tasks of the running event loop work, if none do; and wake them, in a while."""
        loop = asyncio.get_running_loop()
        wake = self._wakes.setdefault(loop, asyncio.Event())
        loop.call_later(0 if self._urgent.is_set() else _START_DELAY_SECONDS, wake.set)
        if self._stopping.is_set() or any(not task.done() for task in self._tasks.get(loop, ())):
            return
        tasks = [
            loop.create_task(self._awork(f"{self._name}-{uuid.uuid4().hex[:4]}"), name="mem0-worker")
            for _ in range(self._settings.workers)
        ]
        self._tasks[loop] = [*tasks, loop.create_task(self._arenew_leases_until_stopped(), name="mem0-leases")]

    @property
    def is_working(self) -> bool:
        return bool(self._threads) or any(not task.done() for tasks in self._tasks.values() for task in tasks)

    def stop(self) -> None:
        """Let the threads finish what they are at, and end."""
        self._stopping.set()
        self._urgent.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    async def astop(self) -> None:
        """Let the tasks of the running event loop finish what they are at, and end."""
        self._stopping.set()
        self._urgent.set()
        loop = asyncio.get_running_loop()
        if wake := self._wakes.pop(loop, None):
            wake.set()
        tasks = self._tasks.pop(loop, [])
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- waiting for it ----------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None) -> bool:
        """Wait until nothing is left to do but what is parked; False where that took longer than `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._urgent_mode():
            while self.has_unfinished_jobs():
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                with self._changed:
                    self._changed.wait(0.05)
        return True

    async def aflush(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._urgent_mode():
            if wake := self._wakes.get(asyncio.get_running_loop()):
                wake.set()
            while await asyncio.to_thread(self.has_unfinished_jobs):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                await asyncio.sleep(0.02)
        return True

    def drain(self, timeout: float) -> None:
        """Wait for what can be done now, not for what failed and waits for its next try."""
        deadline = time.monotonic() + timeout
        with self._urgent_mode():
            while (self._leases or self._queue.has_ready_job()) and time.monotonic() < deadline:
                self._release_ended_workers()
                with self._changed:
                    self._changed.wait(0.02)

    async def adrain(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._urgent_mode():
            while time.monotonic() < deadline and (
                bool(self._leases) or await asyncio.to_thread(self._queue.has_ready_job)
            ):
                await asyncio.sleep(0.01)

    @contextmanager
    def _urgent_mode(self) -> Iterator[None]:
        """Let no worker wait before it begins."""
        with self._changed:
            self._waiting_callers += 1
            self._urgent.set()
        try:
            yield
        finally:
            with self._changed:
                self._waiting_callers -= 1
                if not self._waiting_callers and not self._stopping.is_set():
                    self._urgent.clear()

    def has_unfinished_jobs(self) -> bool:
        self._release_ended_workers()
        return self._queue.next_attempt_at() is not None

    # --- working -----------------------------------------------------------------------------------------------------

    def _work(self, worker: str) -> None:
        is_idle = True
        while not self._stopping.is_set():
            if is_idle:
                self._urgent.wait(_START_DELAY_SECONDS)
            is_idle = not run(self._run_next_jobs(worker))
            if is_idle:
                with self._changed:
                    if not self._stopping.is_set():
                        self._changed.wait(self._poll_delay())

    async def _awork(self, worker: str) -> None:
        try:
            await self._yield_to_caller()
            while not self._stopping.is_set():
                if not await arun(self._run_next_jobs(worker)):
                    await self._wait_for_jobs()
        finally:
            self._ended[worker] = time.monotonic()

    async def _yield_to_caller(self) -> None:
        """Leave the loop to whoever started the workers."""
        over = time.monotonic() + _START_DELAY_SECONDS
        while not self._urgent.is_set() and time.monotonic() < over:
            await asyncio.sleep(_START_DELAY_SECONDS / 4)

    def _release_ended_workers(self) -> None:
        """Take back what a worker had leased when its event loop ended: the call that does it may outlive the loop."""
        for worker, since in list(self._ended.items()):
            self._queue.release_leases(worker)
            if time.monotonic() - since > _LOOP_GRACE_SECONDS:
                self._ended.pop(worker, None)

    async def _wait_for_jobs(self) -> None:
        """Until there is something to do, or may be."""
        wake = self._wakes.get(asyncio.get_running_loop())
        if wake is None or self._stopping.is_set():
            return
        wake.clear()
        pause = await asyncio.to_thread(self._poll_delay)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):  # not wait_for: in 3.11 it swallows a cancellation that meets the wake
                await wake.wait()

    def _poll_delay(self) -> float:
        try:
            self._release_ended_workers()
            next_attempt_at = self._queue.next_attempt_at()
        except Mem0Error:
            return _POLL_SECONDS
        return (
            _POLL_SECONDS if next_attempt_at is None else min(_POLL_SECONDS, max(0.01, next_attempt_at - time.time()))
        )

    def _run_next_jobs(self, worker: str) -> Flow[bool]:
        """Do the oldest jobs that are free; False where there are none."""
        try:
            jobs = yield from do(self._queue.lease, worker, seconds=self._settings.lease, limit=self._settings.batch)
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
                self._queue.release_failed(lease, error="interrupted", retry_in=0.0)
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model or hook raises: told with the job, and logged
            yield from self._handle_failure(jobs, lease, error)
        else:
            self._succeeded = time.monotonic()
            for job in jobs:
                self._failing.pop(job.row, None)
        finally:
            self._leases.pop(lease, None)
            with self._changed:
                self._changed.notify_all()
        return True

    def _handle_failure(self, jobs: list[Job], lease: Lease, error: Exception) -> Flow[None]:
        attempts_made = max(job.attempts for job in jobs) + 1
        since = min(self._failing.setdefault(job.row, time.monotonic()) for job in jobs)
        # Where nothing went well since this first failed, the model is down, and the job no worse than others.
        enough = self._settings.tries * (1 if self._succeeded > since else _OUTAGE_TRIES_FACTOR)
        is_failed = attempts_made >= enough and len(jobs) == 1
        wait = min(_MAX_BACKOFF_SECONDS, self._settings.backoff * 2 ** (attempts_made - 1))
        _log.warning(
            "job %s failed (%s times)%s: %s", lease.jobs, attempts_made, ", parked" if is_failed else "", error
        )
        error_text = f"{type(error).__name__}: {error}"
        try:
            yield from do(self._queue.release_failed, lease, error=error_text, retry_in=None if is_failed else wait)
        except Mem0Error:
            _log.exception("could not give back job %s: its lease runs out", lease.jobs)

    # --- holding on --------------------------------------------------------------------------------------------------

    def _renew_leases_until_stopped(self) -> None:
        while not self._stopping.wait(self._settings.lease / 6) or self._leases:
            self._renew_due_leases()
            if self._stopping.is_set():
                time.sleep(0.05)

    async def _arenew_leases_until_stopped(self) -> None:
        while not self._stopping.is_set() or self._leases:
            await asyncio.sleep(min(0.05, self._settings.lease / 6))
            if any(renew_at <= time.monotonic() for renew_at in list(self._leases.values())):
                await asyncio.to_thread(self._renew_due_leases)

    def _renew_due_leases(self) -> None:
        now = time.monotonic()
        for lease, renew_at in list(self._leases.items()):
            if renew_at <= now:
                self._leases[lease] = now + self._settings.lease / 3
                try:
                    self._queue.renew_lease(lease, seconds=self._settings.lease)
                except Mem0Error:
                    _log.exception("could not hold on to job %s", lease.jobs)
