"""Background workers for queued jobs: tasks if the caller runs an event loop, otherwise threads.

The queue is part of the primary store, so workers share no state: workers of several processes lease the oldest free
jobs. The lease of a worker that dies expires, and another worker repeats its uncommitted jobs.
"""

from __future__ import annotations

import contextvars
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Condition, Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol
from weakref import WeakKeyDictionary

from mem0_core.domain.options import BackgroundConfig
from mem0_core.errors import Mem0Error, ReplyError
from mem0_core.flow import Flow, arun, do, run
from mem0_core.interfaces import Job, JobQueue, Lease

if TYPE_CHECKING:
    import asyncio  # imported by the methods for an event loop, so that other programs start sooner

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5  # pause of an idle worker between looks at the queue: other processes enqueue jobs too
_START_DELAY_SECONDS = 0.02  # a worker starts late: it shares the interpreter with its caller, which replies first
_LOOP_GRACE_SECONDS = 2.0  # a call that outlives its event loop has ended by then
_MAX_BACKOFF_SECONDS = 300.0  # longest pause between two tries
_MAX_REPLY_TRIES = 2  # a try has its own repair request; further ones cost much and seldom help
_OUTAGE_TRIES_FACTOR = 4  # a job fails only after that many times the tries if no other job succeeded either


class JobSpan(Protocol):
    """The trace of jobs that run together; a context manager around all their calls."""

    def __enter__(self) -> JobSpan: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def watch(self, flow: Flow[None]) -> Flow[None]:
        """Return the flow with its model calls traced."""
        ...

    def set_failure(self, error: Exception, outcome: Literal["retry", "failed"]) -> None:
        """Record the error of a failed attempt."""
        ...


class BackgroundWorkers:
    """Workers that process the jobs of a queue.

    Args:
        do_jobs: flow that runs jobs and commits them with the lease; raises the error of a job.
        trace_jobs: returns the span of leased jobs; None to trace nothing.
    """

    def __init__(
        self,
        queue: JobQueue,
        do_jobs: Callable[[list[Job], Lease], Flow[None]],
        settings: BackgroundConfig,
        trace_jobs: Callable[[list[Job]], JobSpan | None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._do_jobs = do_jobs
        self._settings = settings
        self._trace_jobs = trace_jobs
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._changed = Condition()
        self._stopping = Event()
        self._urgent = Event()  # set while a caller waits for the jobs
        self._waiting_callers = 0
        self._threads: list[Thread] = []
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Task[None]]] = WeakKeyDictionary()
        self._wakes: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = WeakKeyDictionary()
        self._leases: dict[Lease, float] = {}  # lease -> time of its next renewal
        self._ended: dict[str, float] = {}  # worker -> time at which its event loop ended
        self._succeeded = 0.0  # time of the last success
        self._failing: dict[int, float] = {}  # job -> time of its first failure

    # --- start and stop ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads if none run, and wake them."""
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
        """Start tasks on the running event loop if none run, and wake them after a short delay."""
        import asyncio

        loop = asyncio.get_running_loop()
        wake = self._wakes.setdefault(loop, asyncio.Event())
        loop.call_later(0 if self._urgent.is_set() else _START_DELAY_SECONDS, wake.set)
        if self._stopping.is_set() or any(not task.done() for task in self._tasks.get(loop, ())):
            return
        context = contextvars.Context()  # as a thread: the work outlives the call that starts it
        tasks = [
            loop.create_task(
                self._awork(f"{self._name}-{os.urandom(2).hex()}"), name="mem0-worker", context=context.copy()
            )
            for _ in range(self._settings.workers)
        ]
        renewal = loop.create_task(self._arenew_leases_until_stopped(), name="mem0-leases", context=context)
        self._tasks[loop] = [*tasks, renewal]

    @property
    def is_working(self) -> bool:
        return bool(self._threads) or any(not task.done() for tasks in self._tasks.values() for task in tasks)

    def stop(self) -> None:
        """Stop the threads after their current jobs."""
        self._stopping.set()
        self._urgent.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    async def astop(self) -> None:
        """Stop the tasks of the running event loop after their current jobs."""
        import asyncio

        self._stopping.set()
        self._urgent.set()
        loop = asyncio.get_running_loop()
        if wake := self._wakes.pop(loop, None):
            wake.set()
        tasks = self._tasks.pop(loop, [])
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- waiting -----------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None) -> bool:
        """Wait until only failed jobs remain; return False on timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._urgent_mode():
            while self.has_unfinished_jobs():
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                with self._changed:
                    self._changed.wait(0.05)
        return True

    async def aflush(self, timeout: float | None) -> bool:
        import asyncio

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
        """Wait for the jobs that are ready now, not for those that wait for their next try."""
        deadline = time.monotonic() + timeout
        with self._urgent_mode():
            while (self._leases or self._queue.has_ready_job()) and time.monotonic() < deadline:
                self._release_ended_workers()
                with self._changed:
                    self._changed.wait(0.02)

    async def adrain(self, timeout: float) -> None:
        import asyncio

        deadline = time.monotonic() + timeout
        with self._urgent_mode():
            while time.monotonic() < deadline and (
                bool(self._leases) or await asyncio.to_thread(self._queue.has_ready_job)
            ):
                await asyncio.sleep(0.01)

    @contextmanager
    def _urgent_mode(self) -> Iterator[None]:
        """Make workers start without their delay."""
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

    # --- jobs --------------------------------------------------------------------------------------------------------

    def _work(self, worker: str) -> None:
        is_idle = True
        while not self._stopping.is_set():
            if is_idle:
                self._urgent.wait(_START_DELAY_SECONDS)
            is_idle = not self._run_next_jobs(worker)
            if is_idle:
                with self._changed:
                    if not self._stopping.is_set():
                        self._changed.wait(self._poll_delay())

    async def _awork(self, worker: str) -> None:
        try:
            await self._yield_to_caller()
            while not self._stopping.is_set():
                if not await self._arun_next_jobs(worker):
                    await self._wait_for_jobs()
        finally:
            self._ended[worker] = time.monotonic()

    async def _yield_to_caller(self) -> None:
        """Leave the event loop to the caller for a moment."""
        import asyncio

        deadline = time.monotonic() + _START_DELAY_SECONDS
        while not self._urgent.is_set() and time.monotonic() < deadline:
            await asyncio.sleep(_START_DELAY_SECONDS / 4)

    def _release_ended_workers(self) -> None:
        """Release the leases of workers after their event loop ended; a call of theirs may outlive the loop."""
        for worker, since in list(self._ended.items()):
            self._queue.release_leases(worker)
            if time.monotonic() - since > _LOOP_GRACE_SECONDS:
                self._ended.pop(worker, None)

    async def _wait_for_jobs(self) -> None:
        """Wait until a job may be ready."""
        import asyncio

        wake = self._wakes.get(asyncio.get_running_loop())
        if wake is None or self._stopping.is_set():
            return
        wake.clear()
        pause = await asyncio.to_thread(self._poll_delay)
        with suppress(TimeoutError):
            async with asyncio.timeout(
                pause
            ):  # not wait_for: in 3.11 it swallows a cancellation at the time of the wake
                await wake.wait()

    def _poll_delay(self) -> float:
        try:
            self._release_ended_workers()
            next_attempt_at = self._queue.next_attempt_at()
        except Exception:  # noqa: BLE001 - as above
            return _POLL_SECONDS
        return (
            _POLL_SECONDS if next_attempt_at is None else min(_POLL_SECONDS, max(0.01, next_attempt_at - time.time()))
        )

    def _run_next_jobs(self, worker: str) -> bool:
        """Run the oldest free jobs; return False if there are none."""
        jobs = run(self._lease_jobs(worker))
        if jobs:
            with self._trace_jobs(jobs) or nullcontext() as span:
                run(self._run_jobs(jobs, worker, span))
        return bool(jobs)

    async def _arun_next_jobs(self, worker: str) -> bool:
        jobs = await arun(self._lease_jobs(worker))
        if jobs:
            with self._trace_jobs(jobs) or nullcontext() as span:
                await arun(self._run_jobs(jobs, worker, span))
        return bool(jobs)

    def _lease_jobs(self, worker: str) -> Flow[list[Job]]:
        """Lease the oldest free jobs."""
        try:
            return (yield from do(self._queue.lease, worker, seconds=self._settings.lease, limit=self._settings.batch))
        except Exception:  # noqa: BLE001 - whatever a store raises, the worker goes on
            if not self._stopping.is_set():
                _log.exception("could not lease jobs")
            return []

    def _run_jobs(self, jobs: list[Job], worker: str, span: JobSpan | None) -> Flow[None]:
        lease = Lease(worker, tuple(job.row for job in jobs))
        self._leases[lease] = time.monotonic() + self._settings.lease / 3
        try:
            flow = self._do_jobs(jobs, lease)
            yield from flow if span is None else span.watch(flow)
        except GeneratorExit:  # the event loop ends: the next worker repeats uncommitted jobs
            with suppress(Mem0Error):  # the store was closed on this loop: the lease expires
                self._queue.release_failed(lease, error="interrupted", retry_in=0.0)
            raise
        except Exception as error:  # noqa: BLE001 - any error of a model or hook is stored with the job and logged
            yield from self._handle_failure(jobs, lease, error, span)
        else:
            self._succeeded = time.monotonic()
            for job in jobs:
                self._failing.pop(job.row, None)
        finally:
            self._leases.pop(lease, None)
            with self._changed:
                self._changed.notify_all()

    def _handle_failure(self, jobs: list[Job], lease: Lease, error: Exception, span: JobSpan | None) -> Flow[None]:
        attempts_made = max(job.attempts for job in jobs) + 1
        since = min(self._failing.setdefault(job.row, time.monotonic()) for job in jobs)
        # If no job succeeded since this one first failed, the model is probably down, and the job is not at fault.
        max_attempts = self._settings.tries * (1 if self._succeeded > since else _OUTAGE_TRIES_FACTOR)
        if (
            isinstance(error, ReplyError) and jobs[0].kind == "remember"
        ):  # the model is up, and babbles on these messages
            max_attempts = min(_MAX_REPLY_TRIES, self._settings.tries)
        is_failed = attempts_made >= max_attempts and len(jobs) == 1
        wait = min(_MAX_BACKOFF_SECONDS, self._settings.backoff * 2 ** (attempts_made - 1))
        _log.warning(
            "job %s failed (%s times)%s: %s", lease.jobs, attempts_made, ", given up" if is_failed else "", error
        )
        if span is not None:
            span.set_failure(error, "failed" if is_failed else "retry")
        error_text = f"{type(error).__name__}: {error}"
        try:
            yield from do(self._queue.release_failed, lease, error=error_text, retry_in=None if is_failed else wait)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("could not release job %s; its lease will expire", lease.jobs)

    # --- leases ------------------------------------------------------------------------------------------------------

    def _renew_leases_until_stopped(self) -> None:
        while not self._stopping.wait(self._settings.lease / 6) or self._leases:
            self._renew_due_leases()
            if self._stopping.is_set():
                time.sleep(0.05)

    async def _arenew_leases_until_stopped(self) -> None:
        import asyncio

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
                except Exception:  # noqa: BLE001 - as above
                    _log.exception("could not renew the lease of job %s", lease.jobs)
