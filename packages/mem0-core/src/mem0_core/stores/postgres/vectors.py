"""The vectors of memories, nodes and edges in the PostgreSQL truth, and `pgvector`'s search among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mem0_core.domain.records import Axis, Scope
from mem0_core.errors import ConfigError
from mem0_core.interfaces import ChangePosition, VectorChanges, drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.postgres.hnsw import HnswIndexes
from mem0_core.stores.postgres.rows import first_column, partition_key, scope_sql, stack_vectors, to_int_list
from mem0_core.stores.postgres.session import (
    Database,
    Statement,
    Steps,
    execute_batch,
    fetch_rows,
    read_methods,
    safe_read_seq,
    set_scope,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PgvectorIndex", "TableVectors"]


@dataclass(frozen=True)
class TableVectors:
    """A `VectorSource` over three tables: rows with a scope and a `seq`, their vectors, their tombstones.

    A row that `live_condition` is not true of has a tombstone too. A scope without a user lies in several parts, where
    a lower number may become visible after a higher one: it is told no further than the horizon.
    """

    db: Database
    table: str
    vector_table: str
    tombstones: str
    live_condition: str = "true"
    vector_provider: ClassVar[str] = "pgvector"  # see `wiring.build_vector_index`

    @property
    def _db(self) -> Database:
        return self.db

    def _position(self, scope: Scope) -> Steps[ChangePosition]:
        yield from set_scope(scope)
        upto, limit = yield from self._safe_seq_condition(scope)
        where, values = scope_sql(scope)
        [(its_epoch, added, removed)] = yield from fetch_rows(
            "SELECT (SELECT value FROM meta WHERE key = 'epoch'),"
            f" (SELECT max(seq) FROM {self.table} WHERE {where}{upto}),"
            f" (SELECT max(seq) FROM {self.tombstones} WHERE {where}{upto})",
            (*values, *limit, *values, *limit),
        )
        return ChangePosition(its_epoch, max(added or 0, removed or 0))

    position, aposition = read_methods(_position)

    def _vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> Steps[VectorChanges]:
        yield from set_scope(scope)
        upto, reach = yield from self._safe_seq_condition(scope, "t.")
        where, values = scope_sql(scope, "t")
        added = yield from fetch_rows(
            f"SELECT t.row, v.vector, t.seq FROM {self.table} AS t"
            f" JOIN {self.vector_table} AS v ON v.part = t.part AND v.row = t.row"
            f" WHERE {where} AND {self.live_condition} AND t.seq > %s{upto} ORDER BY t.seq LIMIT %s",
            (*values, after, *reach, limit),
        )
        removed = yield from fetch_rows(
            f"SELECT t.row FROM {self.tombstones} AS t WHERE {where} AND t.seq > %s{upto} ORDER BY t.seq",
            (*values, after, *reach),
        )
        more = added[-1][2] if limit is not None and len(added) == limit else None
        return VectorChanges(
            first_column(added),
            stack_vectors([row[1] for row in added]),
            removed=first_column(removed),
            next_after=more,
        )

    vector_changes, avector_changes = read_methods(_vector_changes)

    def _vectors(self, rows: Sequence[int]) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        found = yield from fetch_rows(
            f"SELECT row, vector FROM {self.vector_table} WHERE row = ANY (%s::bigint[])", (to_int_list(rows),)
        )
        return first_column(found), stack_vectors([vector for _, vector in found])

    vectors, avectors = read_methods(_vectors)

    def _rows(self, scope: Scope) -> Steps[NDArray[np.int64]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope)
        sql = f"SELECT row FROM {self.table} WHERE {where} AND {self.live_condition} ORDER BY row"
        return first_column((yield from fetch_rows(sql, values)))

    rows, arows = read_methods(_rows)

    def search_exact(
        self, scope: Scope, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None
    ) -> Steps[list[list[tuple[int, float]]]]:
        """For each query the k nearest in a scope, each vector of which is compared with it."""
        tables, where, values = self._tables_to_scan(scope)
        if only is not None:
            where, values = f"{where} AND v.row = ANY (%s::bigint[])", [*values, to_int_list(only)]
        sql = f"SELECT v.row, -(v.vector <#> %s) AS score FROM {tables} WHERE {where} ORDER BY 2 DESC, 1 LIMIT %s"
        if len(queries) == 1:
            return [(yield from fetch_rows(sql, (queries[0], *values, k)))]
        answers = yield from execute_batch(*(Statement(sql, (query, *values, k)) for query in queries))
        return [answer.rows for answer in answers]

    def _tables_to_scan(self, scope: Scope) -> tuple[str, str, list[Any]]:
        """The tables that have to be read for a scope; a user's vectors are known by their part."""
        if self.live_condition == "true" and list(scope.ids) == [Axis.USER]:
            return f"{self.vector_table} AS v", "v.part = %s", [partition_key(scope)]
        where, values = scope_sql(scope, "t")
        joined = f"{self.table} AS t JOIN {self.vector_table} AS v ON v.part = t.part AND v.row = t.row"
        return joined, f"{where} AND t.{self.live_condition}" if self.live_condition != "true" else where, values

    def _safe_seq_condition(self, scope: Scope, dot: str = "") -> Steps[tuple[str, list[Any]]]:
        if scope.user_id is not None:
            return "", []
        return f" AND {dot}seq <= %s", [(yield from safe_read_seq())]


_MAX_EXACT_VECTORS = 50_000
"""Vectors of one user up to which they are compared one by one; see docs/how-to/postgres.md for what that takes."""


class PgvectorIndex:
    """A `VectorIndex` that is no projection: it searches the truth's own vectors, where they lie.

    The vectors of a scope are compared one by one, found by the index on the scope, so that a search is exact and costs
    what the scope holds, whoever else is in the store. Only a user with more than `exact_limit` of them gets an HNSW
    graph, over that user's vectors alone (a partial index): nothing it finds has to be filtered away afterwards, as it
    has with a graph that all share, which so comes to return too few. What names an agent, a run or rows besides is
    compared one by one.

    Args:
        source: the `PostgresStore`, or the vectors of its graph.
        exact_limit: see above; None for never a graph.
        folder: not needed; nothing is kept on this machine.

    Raises:
        ConfigError: `source` is not in PostgreSQL.
    """

    def __init__(self, source: object, *, exact_limit: int | None = _MAX_EXACT_VECTORS, folder: object = None) -> None:
        tables = getattr(source, "memory_vectors", source)
        if not isinstance(tables, TableVectors):
            raise ConfigError("vector_store: pgvector searches where memories lie: set store to a postgresql:// URL")
        self._tables = tables
        self._db = tables.db
        self._hnsw = HnswIndexes(tables, exact_limit)

    def _nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> Steps[list[list[tuple[int, float]]]]:
        yield from set_scope(scope)
        if k < 1 or not len(queries) or (allowed_rows is not None and not len(allowed_rows)):
            return [[] for _ in queries]
        if allowed_rows is None and (yield from self._hnsw.find_or_start(scope)):
            found = yield from self._hnsw.nearest(scope, queries, k)
        else:
            found = yield from self._tables.search_exact(scope, queries, k, allowed_rows)
        return drop_below_threshold(found, threshold)

    nearest, anearest = read_methods(_nearest)

    def purge_deleted(self, scope: Scope | None) -> None:
        """Nothing: what is deleted is deleted here."""

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Nothing: it searches the truth itself, which cannot differ from it; see `care.VerifiableProjection`."""
        return []

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Nothing, as nothing is found."""
        return ""

    def close(self) -> None:
        self._hnsw.close()
