"""Job queue: each job is leased to one worker at a time, and jobs of a partition run in order.

PostgreSQL workers take the first job of a partition with FOR UPDATE SKIP LOCKED, so that none waits for another. Every
writer locks its partition, so jobs become visible in the order of their rows, and none appears before one that runs.
SQLite has one writer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mem0_core.domain.records import Message, Scope
from mem0_core.interfaces import Job, JobKind, Lease, QueuedTurn
from mem0_core.interfaces.queue import add_trace_context
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    insert_sql,
    read_method,
    write_method,
)
from mem0_core.stores.sql.feed import fetch_latest_time
from mem0_core.stores.sql.messages import MESSAGE_COLUMNS, insert_messages, message_from_row
from mem0_core.stores.sql.meta import save_import_checkpoint
from mem0_core.stores.sql.rows import batchable_jobs, check_queue_limit, partition_key, scope_from_ids, scope_ids

_JOB_COLUMNS = (
    "j.row, j.kind, j.user_id, j.agent_id, j.run_id, j.options, j.at, j.state, j.attempts, j.error,"
    " j.leased_until > {now}"
)
_JOB_COLUMN_COUNT = 11

# The oldest waiting job of each partition of which no job is leased: later jobs have to wait for it.
_NEXT_JOB_SQL = (
    "SELECT j.part, j.row FROM jobs AS j WHERE j.state = 'waiting' AND j.ready_at <= {now} AND j.leased_until <= {now}"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.state = 'waiting' AND b.row < j.row)"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.state = 'waiting'"
    " AND b.leased_by IS NOT NULL AND b.leased_until > {now}) ORDER BY j.row LIMIT 1"
)


class SqlJobQueue(StepMethods):
    """A `JobQueue`. Leases run by the clock of the database."""

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect = db.dialect
        self._next_job_sql = _NEXT_JOB_SQL.format(now=db.dialect.now)

    # --- enqueueing --------------------------------------------------------------------------------------------------

    @write_method
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
    ) -> Steps[int | None]:
        yield from self._dialect.lock_scope(scope)
        if callable(at):
            at = at((yield from fetch_latest_time(self._dialect, scope)))
        return (
            yield from enqueue_job(
                self._dialect,
                scope,
                kind,
                at=at,
                messages=messages,
                options=options,
                max_jobs=max_jobs,
                error=error,
            )
        )

    @write_method
    def enqueue_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> Steps[list[int]]:
        yield from self._dialect.lock_scope(scope)
        if import_checkpoint is not None:
            yield from save_import_checkpoint(self._dialect, scope, *import_checkpoint)
        rows = []
        for turn in turns:
            row = yield from enqueue_job(
                self._dialect, scope, "remember", at=turn.timestamp, messages=turn.messages, options=turn.options
            )
            rows.append(row)
        return [row for row in rows if row is not None]

    # --- leases ------------------------------------------------------------------------------------------------------

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        # A worker that finds no job opens no write transaction.
        return self.lease_ready(worker, seconds=seconds, limit=limit) if self.has_ready_job() else []

    @write_method
    def lease_ready(self, worker: str, *, seconds: float, limit: int) -> Steps[list[Job]]:
        """Lease the next job, and those after it that can be done with it."""
        dialect = self._dialect
        first = yield from fetch_rows(f"{self._next_job_sql}{dialect.skip_locked.format('j')}")
        if not first:
            return []
        ((part, row),) = first
        following = yield from fetch_rows(
            f"SELECT {self._columns} FROM jobs AS j WHERE j.part = ? AND j.row >= ? AND j.state = 'waiting'"
            " ORDER BY j.row LIMIT ?",
            (part, row, limit),
        )
        chosen = [job.row for job in batchable_jobs([_job_from_row(found, (), dialect) for found in following])]
        among, values = dialect.among("row", chosen)
        leased = yield from fetch_rows(
            f"UPDATE jobs SET leased_by = ?, leased_until = {dialect.now} + ?"
            f" WHERE part = ? AND {among} AND state = 'waiting' RETURNING row",
            (worker, seconds, part, *values),
        )
        among, values = dialect.among("j.row", [row for (row,) in leased])
        return (yield from self._select(f"j.part = ? AND {among}", (part, *values)))

    @write_method
    def renew_lease(self, lease: Lease, *, seconds: float) -> Steps[bool]:
        change = f"leased_until = {self._dialect.now} + ?"
        return (yield from self._update_leased(lease, change, (seconds,))) == len(lease.jobs)

    @write_method
    def release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> Steps[None]:
        change = (
            "leased_by = NULL, leased_until = 0, attempts = attempts + 1, error = ?, state = ?,"
            f" ready_at = {self._dialect.now} + ?"
        )
        state = "failed" if retry_in is None else "waiting"
        yield from self._update_leased(lease, change, (error, state, retry_in or 0.0))

    def _update_leased(self, lease: Lease, change: str, values: tuple[Any, ...]) -> Steps[int]:
        """Change the jobs of a lease that no other worker has taken since, and return their number."""
        among, rows = self._dialect.among("row", lease.jobs)
        sql = f"UPDATE jobs SET {change} WHERE leased_by = ? AND {among}"
        return (yield from execute(sql, (*values, lease.worker, *rows)))

    @write_method
    def release_leases(self, worker: str) -> Steps[None]:
        yield from execute("UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = ?", (worker,))

    @write_method
    def mark_done(self, lease: Lease) -> Steps[bool]:
        return (yield from finish_jobs(self._dialect, lease))

    @write_method
    def retry(self, job: int) -> Steps[bool]:
        found = yield from fetch_rows("SELECT part FROM jobs WHERE row = ? AND state = 'failed'", (job,))
        if not found:
            return False
        ((part,),) = found
        yield from self._dialect.lock_part(part)
        # The job comes before those that wait. A worker about to lease one of them finishes that first.
        yield from fetch_rows(
            f"SELECT row FROM jobs WHERE part = ? AND state = 'waiting' ORDER BY row{self._dialect.for_update}", (part,)
        )
        sql = (
            "UPDATE jobs SET state = 'waiting', attempts = 0, ready_at = 0"
            " WHERE part = ? AND row = ? AND state = 'failed'"
        )
        return (yield from execute(sql, (part, job))) > 0

    # --- reading -----------------------------------------------------------------------------------------------------

    @read_method
    def list_jobs(self, scope: Scope | None = None) -> Steps[list[Job]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "j")
        return (yield from self._select(where, values))

    @read_method
    def unprocessed_messages(self, scope: Scope, *, limit: int) -> Steps[list[tuple[Job, Message]]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "j")
        sql = (
            f"SELECT {self._columns}, {MESSAGE_COLUMNS} FROM {self._jobs_with_messages} WHERE {where}"
            " AND j.kind = 'remember' ORDER BY j.row DESC, h.place DESC LIMIT ?"
        )
        rows = yield from fetch_rows(sql, (*values, limit))
        return [
            (_job_from_row(row, (), self._dialect), message_from_row(row[_JOB_COLUMN_COUNT:], self._dialect))
            for row in reversed(rows)
        ]

    @read_method
    def has_ready_job(self) -> Steps[bool]:
        return bool((yield from fetch_rows(self._next_job_sql)))

    @read_method
    def next_attempt_at(self) -> Steps[float | None]:
        sql = (
            f"SELECT min({self._dialect.greatest}(j.ready_at, h.until)) FROM jobs AS j JOIN"
            " (SELECT part, min(row) AS first, max(leased_until) AS until FROM jobs"
            " WHERE state = 'waiting' GROUP BY part) AS h ON h.part = j.part AND h.first = j.row"
        )
        [(found,)] = yield from fetch_rows(sql)
        return None if found is None else float(found)

    # --- rows --------------------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> str:
        return _JOB_COLUMNS.format(now=self._dialect.now)

    @property
    def _jobs_with_messages(self) -> str:
        same = self._dialect.same_part
        return (
            f"jobs AS j JOIN job_messages AS h ON {same('h', 'j')}h.job = j.row"
            f" JOIN messages AS m ON {same('m', 'h')}m.row = h.message"
        )

    def _select(self, where: str, values: Sequence[Any]) -> Steps[list[Job]]:
        rows = yield from fetch_rows(f"SELECT {self._columns} FROM jobs AS j WHERE {where} ORDER BY j.row", values)
        if not rows:
            return []
        messages: dict[int, list[Message]] = {row[0]: [] for row in rows}
        sql = f"SELECT {MESSAGE_COLUMNS}, h.job FROM {self._jobs_with_messages} WHERE {where} ORDER BY h.job, h.place"
        for row in (yield from fetch_rows(sql, values)):
            if row[-1] in messages:  # not of a job that was queued between the two statements
                messages[row[-1]].append(message_from_row(row, self._dialect))
        return [_job_from_row(row, tuple(messages[row[0]]), self._dialect) for row in rows]


def _job_from_row(row: Sequence[Any], messages: tuple[Message, ...], dialect: Dialect) -> Job:
    return Job(
        row=row[0],
        kind=row[1],
        scope=scope_from_ids(row[2], row[3], row[4]),
        options=dialect.from_json(row[5]),
        timestamp=row[6],
        state="leased" if row[7] == "waiting" and row[10] else row[7],
        attempts=row[8],
        error=row[9],
        messages=messages,
    )


# --- steps of a write transaction that holds the scope's partition -------------------------------------------------


def enqueue_job(
    dialect: Dialect,
    scope: Scope,
    kind: JobKind,
    *,
    at: str,
    messages: Sequence[Message] = (),
    options: Mapping[str, Any] | None = None,
    max_jobs: int | None = None,
    error: str | None = None,
) -> Steps[int | None]:
    """Queue a job and return its row; see `JobQueue.enqueue`. A scope has one waiting summary job at most."""
    if kind == "summary":
        where, values = dialect.in_exact_scope(scope)
        sql = f"SELECT row FROM jobs WHERE {where} AND kind = 'summary' AND state = 'waiting' LIMIT 1"
        if found := (yield from fetch_rows(sql, values)):
            return int(found[0][0])
    # The options of the job have images by index, so that it keeps all its messages then.
    has_images = any(message.images for message in messages)
    stored = yield from insert_messages(dialect, messages, scope, at, skips_repeated=not has_images)
    if messages and not stored and error is None:
        return None
    if max_jobs is not None:
        where, values = dialect.in_scope(scope)
        sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {where} LIMIT ?) AS counted"
        [(waiting,)] = yield from fetch_rows(sql, (*values, max_jobs))
        check_queue_limit(waiting, max_jobs, scope)
    columns = f"{dialect.exact or 'part, '}kind, user_id, agent_id, run_id, options, at, state, attempts, error"
    outcome = ("waiting", 0, None) if error is None else ("failed", 1, error)
    part = dialect.exact_values(scope) or (partition_key(scope),)  # in SQLite only jobs have one
    [(row,)] = yield from fetch_rows(
        insert_sql("jobs", columns, "RETURNING row"),
        (*part, kind, *scope_ids(scope), dialect.to_json(add_trace_context(options)), at, *outcome),
    )
    yield from execute_many(
        insert_sql("job_messages", f"{dialect.part}job, place, message"),
        [(*dialect.part_values(scope), row, index, message) for index, message in enumerate(stored)],
    )
    return int(row)


def finish_jobs(dialect: Dialect, lease: Lease) -> Steps[bool]:
    """Delete the jobs of a lease if all of them are still leased; otherwise delete none and return False."""
    among, rows = dialect.among("row", lease.jobs)
    leased = yield from fetch_rows(
        f"SELECT row FROM jobs WHERE {among} AND leased_by = ? AND leased_until > {dialect.now}{dialect.for_update}",
        (*rows, lease.worker),
    )
    if len(leased) != len(lease.jobs):
        return False
    yield from execute(f"DELETE FROM jobs WHERE {among}", rows)
    return True


def erase_jobs(dialect: Dialect, scope: Scope) -> Steps[None]:
    """Delete the queued jobs of a scope: the messages that they would process are being erased."""
    where, values = dialect.in_scope(scope)
    yield from execute(f"DELETE FROM jobs WHERE {where}", values)
