"""The queue in the SQLite truth: work put off, leased to one worker at a time, in order within a partition."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mem0_core.ports import Job, JobKind, Lease, Turn
from mem0_core.records import Message, Scope
from mem0_core.stores.sqlite_messages import MESSAGE, insert_messages, message_of
from mem0_core.stores.sqlite_rows import SAME_SCOPE, exact_ids, ids_of, marks, scope_of, scope_sql, set_mark, to_json
from mem0_core.stores.sqlite_vectors import Reader
from mem0_core.stores.truth import alike, check_room

__all__ = ["SQLiteJobs", "erase_jobs", "finish", "put"]

_JOB = "row, kind, user_id, agent_id, run_id, options, at, state, attempts, error, leased_until"

# Of each partition the oldest job that waits, while none of it is being done: what comes after has to wait for it.
_FIRST = """
SELECT row FROM jobs
WHERE row IN (SELECT min(row) FROM jobs WHERE state = 'waiting' GROUP BY partition HAVING max(leased_until) <= ?1)
AND ready_at <= ?1 ORDER BY row LIMIT 1
"""


class SQLiteJobs:
    """A `JobQueue`."""

    inline = True  # see `flow`

    def __init__(self, read: Reader, write: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._read = read
        self._write = write

    def put(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str,
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        most: int | None = None,
    ) -> int:
        with self._write() as db:
            if most is not None:
                where, values = scope_sql(scope)
                sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {where} LIMIT ?)"
                check_room(db.execute(sql, (*values, most)).fetchone()[0], most, scope)
            return put(db, scope, kind, at=at, messages=messages, options=options)

    def put_turns(self, scope: Scope, turns: Sequence[Turn], *, mark: tuple[str, int] | None = None) -> list[int]:
        with self._write() as db:
            if mark is not None:
                set_mark(db, scope, *mark)
            return [
                put(db, scope, "remember", at=turn.at, messages=turn.messages, options=turn.options) for turn in turns
            ]

    def lease(self, worker: str, *, seconds: float, most: int = 1) -> list[Job]:
        now = time.time()
        with self._read() as db:  # so that a worker that looks in vain keeps no writer waiting
            if db.execute(_FIRST, (now,)).fetchone() is None:
                return []
        with self._write() as db:
            first = db.execute(_FIRST, (now,)).fetchone()
            if first is None:
                return []
            jobs = alike(_jobs(db, _NEXT, (first[0], most)))
            rows = [job.row for job in jobs]
            db.execute(
                f"UPDATE jobs SET leased_by = ?, leased_until = ? WHERE row IN ({marks(rows)})",
                (worker, now + seconds, *rows),
            )
        return jobs

    def keep(self, lease: Lease, *, seconds: float) -> bool:
        with self._write() as db:
            return _held(db, lease, "leased_until = ?", (time.time() + seconds,)) == len(lease.jobs)

    def release(self, lease: Lease, *, error: str, retry_in: float | None) -> None:
        parked = retry_in is None
        with self._write() as db:
            _held(
                db,
                lease,
                "leased_by = NULL, leased_until = 0, attempts = attempts + 1, error = ?, state = ?, ready_at = ?",
                (error, "parked" if parked else "waiting", time.time() + (retry_in or 0)),
            )

    def forsake(self, worker: str) -> None:
        with self._read() as db:
            if db.execute("SELECT 1 FROM jobs WHERE leased_by = ? LIMIT 1", (worker,)).fetchone() is None:
                return
        with self._write() as db:
            db.execute("UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = ?", (worker,))

    def done(self, lease: Lease) -> bool:
        with self._write() as db:
            return finish(db, lease)

    def listed(self, scope: Scope | None = None) -> list[Job]:
        where, values = scope_sql(scope) if scope else ("1", [])
        with self._read() as db:
            return _jobs(db, f"WHERE {where} ORDER BY row", values)

    def unlearnt(self, scope: Scope, *, limit: int) -> list[tuple[Job, Message]]:
        where, values = scope_sql(scope)
        scoped = " AND ".join(f"jobs.{condition}" for condition in where.split(" AND "))
        columns = ", ".join(f"jobs.{column}" for column in _JOB.split(", "))
        sql = (
            f"SELECT {columns}, {MESSAGE} FROM jobs JOIN job_messages ON job = jobs.row"
            f" JOIN messages ON messages.row = message WHERE {scoped} AND kind = 'remember'"
            " ORDER BY jobs.row DESC, place DESC LIMIT ?"
        )
        with self._read() as db:
            rows = db.execute(sql, (*values, limit)).fetchall()
        width = len(_JOB.split(", "))
        return [(_job(row, ()), message_of(row[width:])) for row in reversed(rows)]

    def ready(self) -> bool:
        with self._read() as db:
            return db.execute(_FIRST, (time.time(),)).fetchone() is not None

    def retry(self, job: int) -> bool:
        sql = "UPDATE jobs SET state = 'waiting', attempts = 0, ready_at = 0 WHERE row = ? AND state = 'parked'"
        with self._write() as db:
            return db.execute(sql, (job,)).rowcount > 0

    def next_at(self) -> float | None:
        sql = (
            "SELECT min(max(ready_at, until)) FROM jobs JOIN (SELECT min(row) AS first, max(leased_until) AS until"
            " FROM jobs WHERE state = 'waiting' GROUP BY partition) ON row = first"
        )
        with self._read() as db:
            found: float | None = db.execute(sql).fetchone()[0]
        return found


_NEXT = (
    "WHERE state = 'waiting' AND row >= ?1 AND partition = (SELECT partition FROM jobs WHERE row = ?1)"
    " ORDER BY row LIMIT ?2"
)


def put(
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
        waiting = f"SELECT row FROM jobs WHERE kind = 'summary' AND state = 'waiting' AND {SAME_SCOPE} LIMIT 1"
        if found := db.execute(waiting, exact_ids(scope)).fetchone():
            return int(found[0])
    axis, value = scope.partition
    (row,) = db.execute(
        "INSERT INTO jobs (kind, partition, user_id, agent_id, run_id, options, at, state, attempts, ready_at,"
        " leased_until) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', 0, 0, 0) RETURNING row",
        (kind, f"{axis.value}={value}", *ids_of(scope), to_json(options), at),
    ).fetchone()
    heard = insert_messages(db, messages, scope, at)
    db.executemany("INSERT INTO job_messages VALUES (?, ?, ?)", [(row, place, one) for place, one in enumerate(heard)])
    return int(row)


def finish(db: sqlite3.Connection, lease: Lease) -> bool:
    """Remove the jobs of a lease, if it still holds; else remove none, and say so."""
    rows = (lease.worker, time.time(), *lease.jobs)
    among = f"leased_by = ? AND leased_until > ? AND row IN ({marks(lease.jobs)})"
    held = db.execute(f"SELECT count(*) FROM jobs WHERE {among}", rows).fetchone()[0]
    if held != len(lease.jobs):
        return False
    db.execute(f"DELETE FROM jobs WHERE {among}", rows)
    return True


def erase_jobs(db: sqlite3.Connection, scope: Scope) -> None:
    """Forget what was put off in a scope: nothing may be learnt from messages that are to go."""
    where, values = scope_sql(scope)
    db.execute(f"DELETE FROM jobs WHERE {where}", values)


def _held(db: sqlite3.Connection, lease: Lease, change: str, values: tuple[Any, ...]) -> int:
    """Change the jobs of a lease that no other worker has taken since; returns how many."""
    among = f"leased_by = ? AND row IN ({marks(lease.jobs)})"
    return db.execute(f"UPDATE jobs SET {change} WHERE {among}", (*values, lease.worker, *lease.jobs)).rowcount


def _jobs(db: sqlite3.Connection, tail: str, values: Sequence[Any]) -> list[Job]:
    rows = db.execute(f"SELECT {_JOB} FROM jobs {tail}", values).fetchall()
    return [_job(row, tuple(_messages(db, row[0]))) for row in rows]


def _job(row: Sequence[Any], messages: tuple[Message, ...]) -> Job:
    leased = row[7] == "waiting" and row[10] > time.time()
    return Job(
        row=row[0],
        kind=row[1],
        scope=scope_of(row[2], row[3], row[4]),
        options=json.loads(row[5]),
        at=row[6],
        state="leased" if leased else row[7],
        attempts=row[8],
        error=row[9],
        messages=messages,
    )


def _messages(db: sqlite3.Connection, job: int) -> list[Message]:
    sql = f"SELECT {MESSAGE} FROM job_messages JOIN messages ON messages.row = message WHERE job = ? ORDER BY place"
    return [message_of(row) for row in db.execute(sql, (job,))]
