"""The queue in the PostgreSQL truth, for workers in many processes on many hosts.

A worker takes the first job of a part with FOR UPDATE SKIP LOCKED, so that none waits for another. What keeps the order
within a part is the lock that every writer of it holds (`postgres_session.lock_partitions`): jobs become visible in
the order of their rows, so none turns up before one that is being done. Leases run by the server's clock, which all
hosts share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core.domain.records import Message, Scope
from mem0_core.interfaces import Job, JobKind, Lease, QueuedTurn
from mem0_core.stores.postgres.dialect import POSTGRES
from mem0_core.stores.postgres.import_checkpoint import save_import_checkpoint
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_from_ids, scope_ids, scope_sql
from mem0_core.stores.postgres.session import (
    Database,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    lock_partitions,
    read_methods,
    set_scope,
    write_methods,
)
from mem0_core.stores.postgres.text import from_json, to_json
from mem0_core.stores.sql.messages import MESSAGE_COLUMNS, insert_messages, message_from_row
from mem0_core.stores.sql.rows import batchable_jobs, check_queue_limit

__all__ = ["PostgresJobs", "enqueue_job", "erase_jobs", "finish_jobs"]

_NOW_SQL = "extract(epoch FROM statement_timestamp())::double precision"
_JOB_COLUMNS = (
    "j.row, j.kind, j.user_id, j.agent_id, j.run_id, j.options, j.at, j.state, j.attempts, j.error,"
    f" j.leased_until > {_NOW_SQL}"
)
_JOB_COLUMN_COUNT = 11

# Of each part the oldest job that waits, while none of the part is being done: what comes after has to wait for it.
_NEXT_JOB_SQL = (
    f"SELECT j.part, j.row FROM jobs AS j WHERE j.state = 'waiting' AND j.ready_at <= {_NOW_SQL}"
    f" AND j.leased_until <= {_NOW_SQL}"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.state = 'waiting' AND b.row < j.row)"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.leased_by IS NOT NULL"
    f" AND b.leased_until > {_NOW_SQL})"
    " ORDER BY j.row LIMIT 1"
)


class PostgresJobs:
    """A `JobQueue`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # --- putting off -------------------------------------------------------------------------------------------------

    def _enqueue(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str,
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        max_jobs: int | None = None,
    ) -> Steps[int]:
        yield from set_scope(scope)
        yield from lock_partitions(partition_key(scope))
        if max_jobs is not None:
            where, values = scope_sql(scope, "j")
            sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE {where} LIMIT %s) AS counted"
            [(waiting,)] = yield from fetch_rows(sql, (*values, max_jobs))
            check_queue_limit(waiting, max_jobs, scope)
        return (yield from enqueue_job(scope, kind, at=at, messages=messages, options=options))

    enqueue, aenqueue = write_methods(_enqueue)

    def _put_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> Steps[list[int]]:
        yield from set_scope(scope)
        yield from lock_partitions(partition_key(scope))
        if import_checkpoint is not None:
            yield from save_import_checkpoint(scope, *import_checkpoint)
        rows = []
        for turn in turns:
            row = yield from enqueue_job(
                scope, "remember", at=turn.timestamp, messages=turn.messages, options=turn.options
            )
            rows.append(row)
        return rows

    enqueue_turns, aput_turns = write_methods(_put_turns)

    # --- being done --------------------------------------------------------------------------------------------------

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        # a worker that looks in vain opens no transaction
        return self._lease_once(worker, seconds=seconds, limit=limit) if self.has_ready_job() else []

    async def alease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        return await self._alease_once(worker, seconds=seconds, limit=limit) if await self.ahas_ready_job() else []

    def _lease(self, worker: str, *, seconds: float, limit: int) -> Steps[list[Job]]:
        first = yield from fetch_rows(f"{_NEXT_JOB_SQL} FOR UPDATE OF j SKIP LOCKED")
        if not first:
            return []
        ((part, row),) = first
        rows = yield from fetch_rows(
            f"SELECT {_JOB_COLUMNS} FROM jobs AS j WHERE j.part = %s AND j.row >= %s AND j.state = 'waiting'"
            " ORDER BY j.row LIMIT %s",
            (part, row, limit),
        )
        chosen = [job.row for job in batchable_jobs([_job_from_row(found, ()) for found in rows])]
        leased = yield from fetch_rows(
            f"UPDATE jobs SET leased_by = %s, leased_until = {_NOW_SQL} + %s"
            " WHERE part = %s AND row = ANY(%s) AND state = 'waiting' RETURNING row",
            (worker, seconds, part, chosen),
        )
        return (yield from _select("WHERE j.part = %s AND j.row = ANY(%s)", (part, [row for (row,) in leased])))

    _lease_once, _alease_once = write_methods(_lease)

    def _renew_lease(self, lease: Lease, *, seconds: float) -> Steps[bool]:
        sql = f"UPDATE jobs SET leased_until = {_NOW_SQL} + %s WHERE leased_by = %s AND row = ANY(%s)"
        return (yield from execute(sql, (seconds, lease.worker, list(lease.jobs)))) == len(lease.jobs)

    renew_lease, arenew_lease = write_methods(_renew_lease)

    def _release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> Steps[None]:
        yield from execute(
            "UPDATE jobs SET leased_by = NULL, leased_until = 0, attempts = attempts + 1, error = %s, state = %s,"
            f" ready_at = {_NOW_SQL} + %s WHERE leased_by = %s AND row = ANY(%s)",
            (error, "parked" if retry_in is None else "waiting", retry_in or 0.0, lease.worker, list(lease.jobs)),
        )

    release_failed, arelease_failed = write_methods(_release_failed)

    def _forsake(self, worker: str) -> Steps[None]:
        yield from execute("UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = %s", (worker,))

    release_leases, aforsake = write_methods(_forsake)

    def _mark_done(self, lease: Lease) -> Steps[bool]:
        return (yield from finish_jobs(lease))

    mark_done, amark_done = write_methods(_mark_done)

    def _retry(self, job: int) -> Steps[bool]:
        found = yield from fetch_rows("SELECT part FROM jobs WHERE row = %s AND state = 'parked'", (job,))
        if not found:
            return False
        ((part,),) = found
        yield from lock_partitions(part)
        # It goes before what waits: who is about to lease some of that is waited for, and then has done so.
        yield from fetch_rows(
            "SELECT row FROM jobs WHERE part = %s AND state = 'waiting' ORDER BY row FOR UPDATE", (part,)
        )
        again = (
            "UPDATE jobs SET state = 'waiting', attempts = 0, ready_at = 0"
            " WHERE part = %s AND row = %s AND state = 'parked'"
        )
        return (yield from execute(again, (part, job))) > 0

    retry, aretry = write_methods(_retry)

    # --- looking -----------------------------------------------------------------------------------------------------

    def _list_jobs(self, scope: Scope | None = None) -> Steps[list[Job]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "j") if scope else ("true", [])
        return (yield from _select(f"WHERE {where}", values))

    list_jobs, alist_jobs = read_methods(_list_jobs)

    def _unlearnt(self, scope: Scope, *, limit: int) -> Steps[list[tuple[Job, Message]]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "j")
        sql = (
            f"SELECT {_JOB_COLUMNS}, {MESSAGE_COLUMNS} FROM jobs AS j JOIN job_messages AS h ON h.part = j.part AND h.job = j.row"  # noqa: E501
            f" JOIN messages AS m ON m.part = h.part AND m.row = h.message WHERE {where} AND j.kind = 'remember'"
            " ORDER BY j.row DESC, h.place DESC LIMIT %s"
        )
        rows = yield from fetch_rows(sql, (*values, limit))
        return [(_job_from_row(row, ()), message_from_row(row[_JOB_COLUMN_COUNT:], POSTGRES)) for row in reversed(rows)]

    unprocessed_messages, aunlearnt = read_methods(_unlearnt)

    def _has_ready_job(self) -> Steps[bool]:
        return bool((yield from fetch_rows(_NEXT_JOB_SQL)))

    has_ready_job, ahas_ready_job = read_methods(_has_ready_job)

    def _next_at(self) -> Steps[float | None]:
        sql = (
            "SELECT min(greatest(j.ready_at, h.until)) FROM jobs AS j JOIN (SELECT part, min(row) AS first,"
            " max(leased_until) AS until FROM jobs WHERE state = 'waiting' GROUP BY part) AS h"
            " ON h.part = j.part AND h.first = j.row"
        )
        [(found,)] = yield from fetch_rows(sql)
        return None if found is None else float(found)

    next_attempt_at, anext_at = read_methods(_next_at)


# --- within a transaction of the store's -------------------------------------------------------------------------


def enqueue_job(
    scope: Scope,
    kind: JobKind,
    *,
    at: str,
    messages: Sequence[Message] = (),
    options: Mapping[str, Any] | None = None,
) -> Steps[int]:
    """Put off a job, while the part of `scope` is held; a summary that waits already is not put off twice."""
    part, exact = partition_key(scope), scope_digest(scope)
    if kind == "summary":
        waiting = (
            "SELECT row FROM jobs WHERE part = %s AND exact = %s AND kind = 'summary' AND state = 'waiting' LIMIT 1"
        )
        if found := (yield from fetch_rows(waiting, (part, exact))):
            return int(found[0][0])
    [(row,)] = yield from fetch_rows(
        "INSERT INTO jobs (part, exact, kind, user_id, agent_id, run_id, options, at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING row",
        (part, exact, kind, *scope_ids(scope), to_json(options), at),
    )
    heard = yield from insert_messages(POSTGRES, messages, scope, at)
    yield from execute_many(
        "INSERT INTO job_messages (part, job, place, message) VALUES (%s, %s, %s, %s)",
        [(part, row, place, message) for place, message in enumerate(heard)],
    )
    return int(row)


def finish_jobs(lease: Lease) -> Steps[bool]:
    """Remove the jobs of a lease, if it still holds; else remove none, and say so."""
    held = f"SELECT part, row FROM jobs WHERE row = ANY(%s) AND leased_by = %s AND leased_until > {_NOW_SQL} FOR UPDATE"
    rows = list(lease.jobs)
    removed = yield from execute(
        f"WITH held AS MATERIALIZED ({held}) DELETE FROM jobs AS j USING held"
        " WHERE j.part = held.part AND j.row = held.row AND (SELECT count(*) FROM held) = %s",
        (rows, lease.worker, len(rows)),
    )
    return removed == len(rows)


def erase_jobs(scope: Scope) -> Steps[None]:
    """Forget what was put off in a scope: nothing may be learnt from messages that are to go."""
    where, values = scope_sql(scope)
    yield from execute(f"DELETE FROM jobs WHERE {where}", values)


# --- rows --------------------------------------------------------------------------------------------------------


def _select(where: str, values: Sequence[Any]) -> Steps[list[Job]]:
    rows = yield from fetch_rows(f"SELECT {_JOB_COLUMNS} FROM jobs AS j {where} ORDER BY j.row", values)
    heard: dict[int, list[Message]] = {row[0]: [] for row in rows}
    if not rows:
        return []
    sql = (
        f"SELECT {MESSAGE_COLUMNS}, h.job FROM jobs AS j JOIN job_messages AS h ON h.part = j.part AND h.job = j.row"
        f" JOIN messages AS m ON m.part = h.part AND m.row = h.message {where} ORDER BY h.job, h.place"
    )
    for row in (yield from fetch_rows(sql, values)):
        if row[-1] in heard:  # not of a job that came in between
            heard[row[-1]].append(message_from_row(row, POSTGRES))
    return [_job_from_row(row, tuple(heard[row[0]])) for row in rows]


def _job_from_row(row: Sequence[Any], messages: tuple[Message, ...]) -> Job:
    return Job(
        row=row[0],
        kind=row[1],
        scope=scope_from_ids(row[2], row[3], row[4]),
        options=from_json(row[5]),
        timestamp=row[6],
        state="leased" if row[7] == "waiting" and row[10] else row[7],
        attempts=row[8],
        error=row[9],
        messages=messages,
    )
