"""The `VectorSource` of each kind of thing that has vectors: memories, nodes and edges, told apart by their tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mem0_core.domain.records import Scope
from mem0_core.interfaces import ChangePosition, VectorChanges
from mem0_core.stores.sqlite.rows import chunks, first_column, limit_sql, placeholders, scope_sql, stack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ConnectionFactory", "TableVectors", "snapshot"]

ConnectionFactory = Callable[[], AbstractContextManager[sqlite3.Connection]]


@contextmanager
def snapshot(read: ConnectionFactory) -> Iterator[sqlite3.Connection]:
    """A connection all of whose statements see one state of the file, whatever is committed meanwhile."""
    with read() as db:
        db.execute("BEGIN")
        try:
            yield db
        finally:
            db.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class TableVectors:
    """A `VectorSource` over three tables: rows with a scope and a `seq`, their vectors, their tombstones.

    A row that `live_condition` is not true of has a tombstone too.
    """

    read: ConnectionFactory
    table: str
    vector_table: str
    tombstones: str
    live_condition: str = "1"
    inline: ClassVar[bool] = True  # see `flow`

    def position(self, scope: Scope) -> ChangePosition:
        where, values = scope_sql(scope)
        with self.read() as db:
            epoch, added, removed = db.execute(
                "SELECT (SELECT value FROM meta WHERE key = 'epoch'),"
                f" (SELECT max(seq) FROM {self.table} WHERE {where}),"
                f" (SELECT max(seq) FROM {self.tombstones} WHERE {where})",
                (*values, *values),
            ).fetchone()
        return ChangePosition(epoch, max(added or 0, removed or 0))

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        where, values = scope_sql(scope)
        with self.read() as db:
            added = db.execute(
                f"SELECT row, vector, seq FROM {self.table} JOIN {self.vector_table} USING (row)"
                f" WHERE {where} AND {self.live_condition} AND seq > ? ORDER BY seq LIMIT ?",
                (*values, after, limit_sql(limit)),
            ).fetchall()
            removed = db.execute(
                f"SELECT row FROM {self.tombstones} WHERE {where} AND seq > ? ORDER BY seq", (*values, after)
            ).fetchall()
        upto = added[-1][2] if limit is not None and len(added) == limit else None
        return VectorChanges(
            first_column(added),
            stack_vectors([row[1] for row in added]),
            removed=first_column(removed),
            next_after=upto,
        )

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        found: list[tuple[int, bytes]] = []
        with self.read() as db:
            for chunk in chunks(rows):
                sql = f"SELECT row, vector FROM {self.vector_table} WHERE row IN ({placeholders(chunk)})"
                found += db.execute(sql, chunk).fetchall()
        return first_column(found), stack_vectors([blob for _, blob in found])

    def rows(self, scope: Scope) -> NDArray[np.int64]:
        where, values = scope_sql(scope)
        with self.read() as db:
            sql = f"SELECT row FROM {self.table} WHERE {where} AND {self.live_condition}"
            return first_column(db.execute(sql, values).fetchall())
