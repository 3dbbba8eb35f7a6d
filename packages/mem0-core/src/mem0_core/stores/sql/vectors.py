"""Vectors of memories, nodes and relations, as vector indexes read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Scope
from mem0_core.interfaces import ChangePosition, VectorChanges
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    MAX_LOOKUP_ROWS,
    StepMethods,
    Steps,
    fetch_rows,
    lookup_method,
    lookup_method_if,
    read_method,
)
from mem0_core.stores.sql.rows import first_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VectorTables:
    """Tables of one kind of vectors.

    Attributes:
        rows: table of rows with a scope and a `seq`.
        vectors: table of their vectors.
        tombstones: table of deleted rows, and of rows for which `live_condition` no longer holds.
        live_condition: condition of the rows that an index contains.
    """

    rows: str
    vectors: str
    tombstones: str
    live_condition: str = "true"


MEMORY_VECTORS = VectorTables("memories", "vectors", "tombstones")
NODE_VECTORS = VectorTables("nodes", "node_vectors", "node_tombstones")
EDGE_VECTORS = VectorTables("edges", "edge_vectors", "edge_tombstones", "valid_to IS NULL")


def _reads_few_changes(scope: Scope, *, after: int = 0, limit: int | None = None) -> bool:
    return after > 0 and limit is not None and limit <= MAX_LOOKUP_ROWS


class SqlVectors(StepMethods):
    """A `VectorSource` over three tables.

    A PostgreSQL scope without a user spans several partitions, where a lower number may become visible after a higher
    one. Such a scope is read up to `Dialect.safe_read_seq` only.
    """

    def __init__(self, db: Engine, tables: VectorTables) -> None:
        self._db = db
        self._dialect: Dialect = db.dialect
        self._tables = tables

    @property
    def is_encrypted(self) -> bool:
        """True if the store is encrypted, so that an index may keep vectors in memory only."""
        return getattr(self._db, "vault", None) is not None

    @lookup_method
    def position(self, scope: Scope) -> Steps[ChangePosition]:
        yield from self._dialect.set_scope(scope)
        limit, limit_values = yield from self._seq_limit(scope)
        where, values = self._dialect.in_scope(scope)
        sql = (
            "SELECT (SELECT value FROM meta WHERE key = 'epoch'),"
            f" (SELECT max(seq) FROM {self._tables.rows} WHERE {where}{limit}),"
            f" (SELECT max(seq) FROM {self._tables.tombstones} WHERE {where}{limit})"
        )
        values = [*values, *limit_values]
        [(epoch, added, removed)] = yield from fetch_rows(sql, values + values)
        return ChangePosition(epoch, max(added or 0, removed or 0))

    @lookup_method_if(_reads_few_changes)
    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> Steps[VectorChanges]:
        tables, dialect = self._tables, self._dialect
        yield from dialect.set_scope(scope)
        reach, reach_values = yield from self._seq_limit(scope)
        where, values = dialect.in_scope(scope, "t")
        added = yield from fetch_rows(
            f"SELECT t.row, v.vector, t.seq FROM {tables.rows} AS t"
            f" JOIN {tables.vectors} AS v ON {dialect.same_part('v', 't')}v.row = t.row"
            f" WHERE {where} AND {tables.live_condition} AND seq > ?{reach} ORDER BY seq LIMIT ?",
            (*values, after, *reach_values, dialect.limit(limit)),
        )
        removed = yield from fetch_rows(
            f"SELECT t.row FROM {tables.tombstones} AS t WHERE {where} AND seq > ?{reach} ORDER BY seq",
            (*values, after, *reach_values),
        )
        return VectorChanges(
            first_column(added),
            dialect.stack_vectors([row[1] for row in added]),
            removed=first_column(removed),
            next_after=added[-1][2] if limit is not None and len(added) == limit else None,
        )

    @read_method
    def vectors(self, rows: Sequence[int]) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        among, values = self._dialect.among("row", rows)
        found = yield from fetch_rows(f"SELECT row, vector FROM {self._tables.vectors} WHERE {among}", values)
        return first_column(found), self._dialect.stack_vectors([vector for _, vector in found])

    @read_method
    def rows(self, scope: Scope) -> Steps[NDArray[np.int64]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope)
        sql = f"SELECT row FROM {self._tables.rows} WHERE {where} AND {self._tables.live_condition} ORDER BY row"
        return first_column((yield from fetch_rows(sql, values)))

    def _seq_limit(self, scope: Scope) -> Steps[tuple[str, list[Any]]]:
        limit = None if scope.user_id is not None else (yield from self._dialect.safe_read_seq())
        return ("", []) if limit is None else (" AND seq <= ?", [limit])
