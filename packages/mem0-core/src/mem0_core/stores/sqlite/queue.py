"""The queue in the SQLite truth: work put off, leased to one worker at a time, in order within a partition."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mem0_core.domain.records import Message, Scope
from mem0_core.interfaces import Job, JobKind, Lease, QueuedTurn
from mem0_core.stores.sql.messages import MESSAGE_COLUMNS, insert_messages, message_from_row
from mem0_core.stores.sql.rows import batchable_jobs, check_queue_limit
from mem0_core.stores.sqlite.dialect import SQLITE
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    exact_scope_values,
    placeholders,
    save_import_checkpoint,
    scope_from_ids,
    scope_ids,
    scope_sql,
    to_json,
)
from mem0_core.stores.sqlite.session import drive
from mem0_core.stores.sqlite.vectors import ConnectionFactory

__all__ = ["SQLiteJobs", "enqueue_job", "erase_jobs", "finish_jobs"]

_JOB_COLUMNS = "row, kind, user_id, agent_id, run_id, options, at, state, attempts, error, leased_until"

# Of each partition the oldest job that waits, while none of it is being done: what comes after has to wait for it.
_NEXT_JOB_SQL = """
SELECT row FROM jobs
WHERE row IN (SELECT min(row) FROM jobs WHERE state = 'waiting' GROUP BY partition HAVING max(leased_until) <= ?1)
AND ready_at <= ?1 ORDER BY row LIMIT 1
"""


class SQLiteJobs:
    """A `JobQueue`."""

    inline = True  # see `flow`

    def __init__(
        self, read: ConnectionFactory, write: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._read = read
        self._write = write

    def enqueue(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str,
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        max_jobs: int | None = None,
    ) -> int:
        with self._write() as db:
            if max_jobs is not None:
                where, values = scope_sql(scope)
                sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {where} LIMIT ?)"
                check_queue_limit(db.execute(sql, (*values, max_jobs)).fetchone()[0], max_jobs, scope)
            return enqueue_job(db, scope, kind, at=at, messages=messages, options=options)

    def enqueue_turns(
        self, scope: Scope, turns: Sequence[QueuedTurn], *, import_checkpoint: tuple[str, int] | None = None
    ) -> list[int]:
        with self._write() as db:
            if import_checkpoint is not None:
                save_import_checkpoint(db, scope, *import_checkpoint)
            return [
                enqueue_job(db, scope, "remember", at=turn.timestamp, messages=turn.messages, options=turn.options)
                for turn in turns
            ]

    def lease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        now = time.time()
        with self._read() as db:  # so that a worker that looks in vain keeps no writer waiting
            if db.execute(_NEXT_JOB_SQL, (now,)).fetchone() is None:
                return []
        with self._write() as db:
            first = db.execute(_NEXT_JOB_SQL, (now,)).fetchone()
            if first is None:
                return []
            jobs = batchable_jobs(_select_jobs(db, _FOLLOWING_JOBS, (first[0], limit)))
            rows = [job.row for job in jobs]
            db.execute(
                f"UPDATE jobs SET leased_by = ?, leased_until = ? WHERE row IN ({placeholders(rows)})",
                (worker, now + seconds, *rows),
            )
        return jobs

    def renew_lease(self, lease: Lease, *, seconds: float) -> bool:
        with self._write() as db:
            return _update_leased(db, lease, "leased_until = ?", (time.time() + seconds,)) == len(lease.jobs)

    def release_failed(self, lease: Lease, *, error: str, retry_in: float | None) -> None:
        parked = retry_in is None
        with self._write() as db:
            _update_leased(
                db,
                lease,
                "leased_by = NULL, leased_until = 0, attempts = attempts + 1, error = ?, state = ?, ready_at = ?",
                (error, "parked" if parked else "waiting", time.time() + (retry_in or 0)),
            )

    def release_leases(self, worker: str) -> None:
        with self._read() as db:
            if db.execute("SELECT 1 FROM jobs WHERE leased_by = ? LIMIT 1", (worker,)).fetchone() is None:
                return
        with self._write() as db:
            db.execute("UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = ?", (worker,))

    def mark_done(self, lease: Lease) -> bool:
        with self._write() as db:
            return finish_jobs(db, lease)

    def list_jobs(self, scope: Scope | None = None) -> list[Job]:
        where, values = scope_sql(scope) if scope else ("1", [])
        with self._read() as db:
            return _select_jobs(db, f"WHERE {where} ORDER BY row", values)

    def unprocessed_messages(self, scope: Scope, *, limit: int) -> list[tuple[Job, Message]]:
        where, values = scope_sql(scope)
        scoped = " AND ".join(f"jobs.{condition}" for condition in where.split(" AND "))
        columns = ", ".join(f"jobs.{column}" for column in _JOB_COLUMNS.split(", "))
        sql = (
            f"SELECT {columns}, {MESSAGE_COLUMNS} FROM jobs JOIN job_messages ON job = jobs.row"
            f" JOIN messages AS m ON m.row = message WHERE {scoped} AND kind = 'remember'"
            " ORDER BY jobs.row DESC, place DESC LIMIT ?"
        )
        with self._read() as db:
            rows = db.execute(sql, (*values, limit)).fetchall()
        width = len(_JOB_COLUMNS.split(", "))
        return [(_job_from_row(row, ()), message_from_row(row[width:], SQLITE)) for row in reversed(rows)]

    def has_ready_job(self) -> bool:
        with self._read() as db:
            return db.execute(_NEXT_JOB_SQL, (time.time(),)).fetchone() is not None

    def retry(self, job: int) -> bool:
        sql = "UPDATE jobs SET state = 'waiting', attempts = 0, ready_at = 0 WHERE row = ? AND state = 'parked'"
        with self._write() as db:
            return db.execute(sql, (job,)).rowcount > 0

    def next_attempt_at(self) -> float | None:
        sql = (
            "SELECT min(max(ready_at, until)) FROM jobs JOIN (SELECT min(row) AS first, max(leased_until) AS until"
            " FROM jobs WHERE state = 'waiting' GROUP BY partition) ON row = first"
        )
        with self._read() as db:
            found: float | None = db.execute(sql).fetchone()[0]
        return found


_FOLLOWING_JOBS = (
    "WHERE state = 'waiting' AND row >= ?1 AND partition = (SELECT partition FROM jobs WHERE row = ?1)"
    " ORDER BY row LIMIT ?2"
)


def enqueue_job(
    db: sqlite3.Connection,
    scope: Scope,
    kind: JobKind,
    *,
    at: str,
    messages: Sequence[Message] = (),
    options: Mapping[str, Any] | None = None,
) -> int:
    """Put off a job, within a transaction of the store's; a summary that waits already is not put off twice."""
    if kind == "summary":
        waiting = (
            f"SELECT row FROM jobs WHERE kind = 'summary' AND state = 'waiting' AND {EXACT_SCOPE_CONDITION} LIMIT 1"
        )
        if found := db.execute(waiting, exact_scope_values(scope)).fetchone():
            return int(found[0])
    axis, value = scope.partition
    (row,) = db.execute(
        "INSERT INTO jobs (kind, partition, user_id, agent_id, run_id, options, at, state, attempts, ready_at,"
        " leased_until) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', 0, 0, 0) RETURNING row",
        (kind, f"{axis.value}={value}", *scope_ids(scope), to_json(options), at),
    ).fetchone()
    heard = drive(db, insert_messages(SQLITE, messages, scope, at))
    db.executemany("INSERT INTO job_messages VALUES (?, ?, ?)", [(row, place, one) for place, one in enumerate(heard)])
    return int(row)


def finish_jobs(db: sqlite3.Connection, lease: Lease) -> bool:
    """Remove the jobs of a lease, if it still holds; else remove none, and say so."""
    rows = (lease.worker, time.time(), *lease.jobs)
    among = f"leased_by = ? AND leased_until > ? AND row IN ({placeholders(lease.jobs)})"
    held = db.execute(f"SELECT count(*) FROM jobs WHERE {among}", rows).fetchone()[0]
    if held != len(lease.jobs):
        return False
    db.execute(f"DELETE FROM jobs WHERE {among}", rows)
    return True


def erase_jobs(db: sqlite3.Connection, scope: Scope) -> None:
    """Forget what was put off in a scope: nothing may be learnt from messages that are to go."""
    where, values = scope_sql(scope)
    db.execute(f"DELETE FROM jobs WHERE {where}", values)


def _update_leased(db: sqlite3.Connection, lease: Lease, change: str, values: tuple[Any, ...]) -> int:
    """Change the jobs of a lease that no other worker has taken since; returns how many."""
    among = f"leased_by = ? AND row IN ({placeholders(lease.jobs)})"
    return db.execute(f"UPDATE jobs SET {change} WHERE {among}", (*values, lease.worker, *lease.jobs)).rowcount


def _select_jobs(db: sqlite3.Connection, tail: str, values: Sequence[Any]) -> list[Job]:
    rows = db.execute(f"SELECT {_JOB_COLUMNS} FROM jobs {tail}", values).fetchall()
    return [_job_from_row(row, tuple(_select_messages(db, row[0]))) for row in rows]


def _job_from_row(row: Sequence[Any], messages: tuple[Message, ...]) -> Job:
    leased = row[7] == "waiting" and row[10] > time.time()
    return Job(
        row=row[0],
        kind=row[1],
        scope=scope_from_ids(row[2], row[3], row[4]),
        options=json.loads(row[5]),
        timestamp=row[6],
        state="leased" if leased else row[7],
        attempts=row[8],
        error=row[9],
        messages=messages,
    )


def _select_messages(db: sqlite3.Connection, job: int) -> list[Message]:
    sql = (
        f"SELECT {MESSAGE_COLUMNS} FROM job_messages JOIN messages AS m ON m.row = message WHERE job = ? ORDER BY place"
    )
    return [message_from_row(row, SQLITE) for row in db.execute(sql, (job,))]
