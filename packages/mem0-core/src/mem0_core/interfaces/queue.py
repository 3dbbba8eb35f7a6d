"""The queue of background jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.records import Message, Scope

JobKind = Literal["remember", "summary"]

TRACE_OPTION = "trace"
"""Key in the options of a job: the trace context of the call that enqueued it."""

trace_context: ContextVar[Callable[[], Mapping[str, Any]] | None] = ContextVar("mem0_trace_context", default=None)
"""Returns the trace context of the running call, as JSON; None while no call is traced."""


def add_trace_context(options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the options of a new job with the trace context of the call that enqueues it, if there is one."""
    current = trace_context.get()
    return options if current is None else {**(options or {}), TRACE_OPTION: current()}


@dataclass(frozen=True, slots=True)
class Job:
    """A queued job: messages to extract memories from, or a summary to update.

    Attributes:
        options: the other arguments of the add, as JSON, and `TRACE_OPTION`.
        timestamp: ISO 8601 time of the conversation.
        attempts: number of failed attempts; `error` is the last failure.
        state: a failed job waits until `JobQueue.retry` queues it again.
    """

    row: int
    kind: JobKind
    scope: Scope
    messages: tuple[Message, ...]
    options: Mapping[str, Any]
    timestamp: str
    state: Literal["waiting", "leased", "failed"] = "waiting"
    attempts: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    """The messages and options of a job to enqueue; see `Job`."""

    timestamp: str
    messages: tuple[Message, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """The exclusive right of one worker to run some jobs, until it expires."""

    worker: str
    jobs: tuple[int, ...]


class JobQueue(Protocol):
    """A durable queue in the primary store: each job takes effect exactly once, across worker crashes.

    Jobs of one partition (the first id of a scope) run in order; jobs of different partitions run in parallel.
    """

    def enqueue(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str | Callable[[str | None], str],
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        max_jobs: int | None = None,
        error: str | None = None,
    ) -> int | None:
        """Store the messages and a job in one transaction.

        Messages with a key that the scope has already are left out: another agent of the same turn, or an earlier call,
        has enqueued them. The exception is a job with images, the options of which have them by index.

        Returns the number of the job; None if all its messages were left out, so that there is nothing to do.

        Args:
            at: time of the conversation, or a function that returns it for the time of the partition's latest change
                (None without one), so that both are read in one transaction.
            error: the failure of a first attempt; the job then is a failed one, and waits for `retry`.

        Raises:
            LimitError: the scope has `max_jobs` jobs already; nothing is stored.
        """
        ...

    def enqueue_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> list[int]:
        """Store the messages and a job of each turn, and the checkpoint of an import, in one transaction."""
        ...

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        """Lease the oldest ready job, and up to `limit` - 1 following jobs that can run together with it."""
        ...

    def renew_lease(self, lease: Lease, *, seconds: float) -> bool:
        """Extend a lease. Returns False if another worker holds one of the jobs."""
        ...

    def release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> None:
        """Release failed jobs for another attempt in `retry_in` seconds, or park them if it is None."""
        ...

    def release_leases(self, worker: str) -> None:
        """Release the leases of a dead worker."""
        ...

    def mark_done(self, lease: Lease) -> bool:
        """Remove jobs that have nothing to commit. Returns False if another worker holds one of them."""
        ...

    def list_jobs(self, scope: Scope | None = None) -> list[Job]:
        """Return the jobs of a scope, or of all scopes, oldest first."""
        ...

    def unprocessed_messages(self, scope: Scope, *, limit: int) -> list[tuple[Job, Message]]:
        """Return the last `limit` messages that wait for extraction, oldest first.

        Each comes with its job; the messages of these jobs are left empty.
        """
        ...

    def has_ready_job(self) -> bool:
        """Return True if a job can be leased now."""
        ...

    def retry(self, job: int) -> bool:
        """Make a failed job ready again. Returns False if no failed job has that number."""
        ...

    def next_attempt_at(self) -> float | None:
        """Return the Unix time at which the next waiting job becomes ready, or None if there is none."""
        ...
