"""The queue in the PostgreSQL truth, for workers in many processes on many hosts.

A worker takes the first job of a part with FOR UPDATE SKIP LOCKED, so that none waits for another. What keeps the order
within a part is the lock that every writer of it holds (`postgres_session.hold`): jobs become visible in the order of
their rows, so none turns up before one that is being done. Leases run by the server's clock, which all hosts share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core.ports import Job, JobKind, Lease, Turn
from mem0_core.records import Message, Scope
from mem0_core.stores.postgres_marks import set_mark
from mem0_core.stores.postgres_rows import exact_of, ids_of, part_of, scope_of, scope_sql
from mem0_core.stores.postgres_session import Database, Steps, ask, change, every, hold, reads, within, writes
from mem0_core.stores.postgres_talk import MESSAGE, insert_messages, message_of
from mem0_core.stores.postgres_text import from_json, to_json
from mem0_core.stores.truth import alike, check_room

__all__ = ["PostgresJobs", "erase_jobs", "finish", "put"]

_NOW = "extract(epoch FROM statement_timestamp())::double precision"
_JOB = (
    "j.row, j.kind, j.user_id, j.agent_id, j.run_id, j.options, j.at, j.state, j.attempts, j.error,"
    f" j.leased_until > {_NOW}"
)
_WIDTH = 11

# Of each part the oldest job that waits, while none of the part is being done: what comes after has to wait for it.
_FIRST = (
    f"SELECT j.part, j.row FROM jobs AS j WHERE j.state = 'waiting' AND j.ready_at <= {_NOW}"
    f" AND j.leased_until <= {_NOW}"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.state = 'waiting' AND b.row < j.row)"
    " AND NOT EXISTS (SELECT 1 FROM jobs AS b WHERE b.part = j.part AND b.leased_by IS NOT NULL"
    f" AND b.leased_until > {_NOW})"
    " ORDER BY j.row LIMIT 1"
)


class PostgresJobs:
    """A `JobQueue`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # --- putting off -------------------------------------------------------------------------------------------------

    def _put(
        self,
        scope: Scope,
        kind: JobKind,
        *,
        at: str,
        messages: Sequence[Message] = (),
        options: Mapping[str, Any] | None = None,
        most: int | None = None,
    ) -> Steps[int]:
        yield from within(scope)
        yield from hold(part_of(scope))
        if most is not None:
            where, values = scope_sql(scope, "j")
            sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs AS j WHERE {where} LIMIT %s) AS counted"
            [(waiting,)] = yield from ask(sql, (*values, most))
            check_room(waiting, most, scope)
        return (yield from put(scope, kind, at=at, messages=messages, options=options))

    put, aput = writes(_put)

    def _put_turns(
        self, scope: Scope, turns: Sequence[Turn], *, mark: tuple[str, int] | None = None
    ) -> Steps[list[int]]:
        yield from within(scope)
        yield from hold(part_of(scope))
        if mark is not None:
            yield from set_mark(scope, *mark)
        rows = []
        for turn in turns:
            row = yield from put(scope, "remember", at=turn.at, messages=turn.messages, options=turn.options)
            rows.append(row)
        return rows

    put_turns, aput_turns = writes(_put_turns)

    # --- being done --------------------------------------------------------------------------------------------------

    def lease(self, worker: str, *, seconds: float, most: int = 1) -> list[Job]:
        # a worker that looks in vain opens no transaction
        return self._take(worker, seconds=seconds, most=most) if self.ready() else []

    async def alease(self, worker: str, *, seconds: float, most: int = 1) -> list[Job]:
        return await self._atake(worker, seconds=seconds, most=most) if await self.aready() else []

    def _lease(self, worker: str, *, seconds: float, most: int) -> Steps[list[Job]]:
        first = yield from ask(f"{_FIRST} FOR UPDATE OF j SKIP LOCKED")
        if not first:
            return []
        ((part, row),) = first
        rows = yield from ask(
            f"SELECT {_JOB} FROM jobs AS j WHERE j.part = %s AND j.row >= %s AND j.state = 'waiting'"
            " ORDER BY j.row LIMIT %s",
            (part, row, most),
        )
        chosen = [job.row for job in alike([_job(found, ()) for found in rows])]
        leased = yield from ask(
            f"UPDATE jobs SET leased_by = %s, leased_until = {_NOW} + %s"
            " WHERE part = %s AND row = ANY(%s) AND state = 'waiting' RETURNING row",
            (worker, seconds, part, chosen),
        )
        return (yield from _select("WHERE j.part = %s AND j.row = ANY(%s)", (part, [row for (row,) in leased])))

    _take, _atake = writes(_lease)

    def _keep(self, lease: Lease, *, seconds: float) -> Steps[bool]:
        sql = f"UPDATE jobs SET leased_until = {_NOW} + %s WHERE leased_by = %s AND row = ANY(%s)"
        return (yield from change(sql, (seconds, lease.worker, list(lease.jobs)))) == len(lease.jobs)

    keep, akeep = writes(_keep)

    def _release(self, lease: Lease, *, error: str, retry_in: float | None) -> Steps[None]:
        yield from change(
            "UPDATE jobs SET leased_by = NULL, leased_until = 0, attempts = attempts + 1, error = %s, state = %s,"
            f" ready_at = {_NOW} + %s WHERE leased_by = %s AND row = ANY(%s)",
            (error, "parked" if retry_in is None else "waiting", retry_in or 0.0, lease.worker, list(lease.jobs)),
        )

    release, arelease = writes(_release)

    def _forsake(self, worker: str) -> Steps[None]:
        yield from change("UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = %s", (worker,))

    forsake, aforsake = writes(_forsake)

    def _done(self, lease: Lease) -> Steps[bool]:
        return (yield from finish(lease))

    done, adone = writes(_done)

    def _retry(self, job: int) -> Steps[bool]:
        found = yield from ask("SELECT part FROM jobs WHERE row = %s AND state = 'parked'", (job,))
        if not found:
            return False
        ((part,),) = found
        yield from hold(part)
        # It goes before what waits: who is about to lease some of that is waited for, and then has done so.
        yield from ask("SELECT row FROM jobs WHERE part = %s AND state = 'waiting' ORDER BY row FOR UPDATE", (part,))
        again = (
            "UPDATE jobs SET state = 'waiting', attempts = 0, ready_at = 0"
            " WHERE part = %s AND row = %s AND state = 'parked'"
        )
        return (yield from change(again, (part, job))) > 0

    retry, aretry = writes(_retry)

    # --- looking -----------------------------------------------------------------------------------------------------

    def _listed(self, scope: Scope | None = None) -> Steps[list[Job]]:
        yield from within(scope)
        where, values = scope_sql(scope, "j") if scope else ("true", [])
        return (yield from _select(f"WHERE {where}", values))

    listed, alisted = reads(_listed)

    def _unlearnt(self, scope: Scope, *, limit: int) -> Steps[list[tuple[Job, Message]]]:
        yield from within(scope)
        where, values = scope_sql(scope, "j")
        sql = (
            f"SELECT {_JOB}, {MESSAGE} FROM jobs AS j JOIN job_messages AS h ON h.part = j.part AND h.job = j.row"
            f" JOIN messages AS m ON m.part = h.part AND m.row = h.message WHERE {where} AND j.kind = 'remember'"
            " ORDER BY j.row DESC, h.place DESC LIMIT %s"
        )
        rows = yield from ask(sql, (*values, limit))
        return [(_job(row, ()), message_of(row[_WIDTH:])) for row in reversed(rows)]

    unlearnt, aunlearnt = reads(_unlearnt)

    def _ready(self) -> Steps[bool]:
        return bool((yield from ask(_FIRST)))

    ready, aready = reads(_ready)

    def _next_at(self) -> Steps[float | None]:
        sql = (
            "SELECT min(greatest(j.ready_at, h.until)) FROM jobs AS j JOIN (SELECT part, min(row) AS first,"
            " max(leased_until) AS until FROM jobs WHERE state = 'waiting' GROUP BY part) AS h"
            " ON h.part = j.part AND h.first = j.row"
        )
        [(found,)] = yield from ask(sql)
        return None if found is None else float(found)

    next_at, anext_at = reads(_next_at)


# --- within a transaction of the store's -------------------------------------------------------------------------


def put(
    scope: Scope,
    kind: JobKind,
    *,
    at: str,
    messages: Sequence[Message] = (),
    options: Mapping[str, Any] | None = None,
) -> Steps[int]:
    """Put off a job, while the part of `scope` is held; a summary that waits already is not put off twice."""
    part, exact = part_of(scope), exact_of(scope)
    if kind == "summary":
        waiting = (
            "SELECT row FROM jobs WHERE part = %s AND exact = %s AND kind = 'summary' AND state = 'waiting' LIMIT 1"
        )
        if found := (yield from ask(waiting, (part, exact))):
            return int(found[0][0])
    [(row,)] = yield from ask(
        "INSERT INTO jobs (part, exact, kind, user_id, agent_id, run_id, options, at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING row",
        (part, exact, kind, *ids_of(scope), to_json(options), at),
    )
    heard = yield from insert_messages(messages, scope, at)
    yield from every(
        "INSERT INTO job_messages (part, job, place, message) VALUES (%s, %s, %s, %s)",
        [(part, row, place, message) for place, message in enumerate(heard)],
    )
    return int(row)


def finish(lease: Lease) -> Steps[bool]:
    """Remove the jobs of a lease, if it still holds; else remove none, and say so."""
    held = f"SELECT part, row FROM jobs WHERE row = ANY(%s) AND leased_by = %s AND leased_until > {_NOW} FOR UPDATE"
    rows = list(lease.jobs)
    removed = yield from change(
        f"WITH held AS MATERIALIZED ({held}) DELETE FROM jobs AS j USING held"
        " WHERE j.part = held.part AND j.row = held.row AND (SELECT count(*) FROM held) = %s",
        (rows, lease.worker, len(rows)),
    )
    return removed == len(rows)


def erase_jobs(scope: Scope) -> Steps[None]:
    """Forget what was put off in a scope: nothing may be learnt from messages that are to go."""
    where, values = scope_sql(scope)
    yield from change(f"DELETE FROM jobs WHERE {where}", values)


# --- rows --------------------------------------------------------------------------------------------------------


def _select(where: str, values: Sequence[Any]) -> Steps[list[Job]]:
    rows = yield from ask(f"SELECT {_JOB} FROM jobs AS j {where} ORDER BY j.row", values)
    heard: dict[int, list[Message]] = {row[0]: [] for row in rows}
    if not rows:
        return []
    sql = (
        f"SELECT {MESSAGE}, h.job FROM jobs AS j JOIN job_messages AS h ON h.part = j.part AND h.job = j.row"
        f" JOIN messages AS m ON m.part = h.part AND m.row = h.message {where} ORDER BY h.job, h.place"
    )
    for row in (yield from ask(sql, values)):
        if row[-1] in heard:  # not of a job that came in between
            heard[row[-1]].append(message_of(row))
    return [_job(row, tuple(heard[row[0]])) for row in rows]


def _job(row: Sequence[Any], messages: tuple[Message, ...]) -> Job:
    return Job(
        row=row[0],
        kind=row[1],
        scope=scope_of(row[2], row[3], row[4]),
        options=from_json(row[5]),
        at=row[6],
        state="leased" if row[7] == "waiting" and row[10] else row[7],
        attempts=row[8],
        error=row[9],
        messages=messages,
    )
