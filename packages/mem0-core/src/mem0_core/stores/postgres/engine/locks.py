"""Order of concurrent writers in PostgreSQL.

A writer first locks each partition that it changes. So within a partition changes become visible in the order of their
sequence numbers, and two plans are never made from the same texts. Across partitions they do not: a number may become
visible after a higher one. A reader of several partitions reads up to `safe_read_seq` only, below which no transaction
is in progress.
"""

from __future__ import annotations

from mem0_core.domain.records import Axis, Scope, SpaceId
from mem0_core.stores.sql.engine.steps import SetScope, Statement, Steps, execute_batch, fetch_rows
from mem0_core.stores.sql.rows import partition_key


def set_scope(scope: Scope | None) -> Steps[None]:
    """Restrict the statements that follow to rows of `scope` (None: of all), where row-level security is active."""
    if scope is None:
        yield SetScope("*")
        return
    axis, _ = scope.partition
    further = {other: value for other, value in scope.ids.items() if other is not axis}
    member = scope.user_id.member if isinstance(scope.user_id, SpaceId) else ""
    yield SetScope(partition_key(scope), further.get(Axis.AGENT, ""), further.get(Axis.RUN, ""), member or "*")


def lock_partitions(*parts: str) -> Steps[None]:
    """Make other writers of these partitions wait until this transaction has ended. Call it before any of them is read.

    All writers lock in one order, so that no two of them wait for each other.
    """
    yield from execute_batch(
        Statement("SELECT pg_advisory_xact_lock_shared(mem0_lock('*'))"),
        *(Statement("SELECT pg_advisory_xact_lock(mem0_lock(?))", (part,)) for part in sorted(set(parts))),
        Statement("SELECT pg_advisory_xact_lock_shared(mem0_mark(last_value)) FROM next_seq"),
    )


def lock_all_partitions() -> Steps[None]:
    """Make all other writers wait until this transaction has ended."""
    yield from execute_batch(
        Statement("SELECT pg_advisory_xact_lock(mem0_lock('*'))"),
        Statement("SELECT pg_advisory_xact_lock_shared(mem0_mark(last_value)) FROM next_seq"),
    )


def reserve_seqs(count: int) -> Steps[list[int]]:
    """Reserve `count` ascending sequence numbers, not necessarily contiguous. Call it after `lock_partitions`."""
    if not count:
        return []
    rows = yield from fetch_rows("SELECT nextval('next_seq') FROM generate_series(1, ?)", (count,))
    return [row[0] for row in rows]


def safe_read_seq() -> Steps[int]:
    """Return a sequence number up to which later statements see every change there will ever be.

    A writer locks, under its mark, the last number before its own. The first of these statements must be done before
    the second: a writer that sets its mark after the second one takes higher numbers than the first one saw.
    """
    [(last,)] = yield from fetch_rows("SELECT last_value FROM next_seq")
    [(under_way,)] = yield from fetch_rows("SELECT mem0_under_way()")
    return int(last if under_way is None else min(last, under_way))
