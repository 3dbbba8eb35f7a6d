"""The vectors of memories, nodes and edges in the PostgreSQL truth, and `pgvector`'s search among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mem0_core.domain.records import Axis, Scope
from mem0_core.errors import ConfigError
from mem0_core.interfaces import drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.postgres.dialect import POSTGRES
from mem0_core.stores.postgres.hnsw import HnswIndexes
from mem0_core.stores.postgres.locks import set_scope
from mem0_core.stores.postgres.rows import partition_key, to_int_list
from mem0_core.stores.postgres.session import Database
from mem0_core.stores.sql.steps import Statement, StepMethods, Steps, execute_batch, fetch_rows, read_method
from mem0_core.stores.sql.vectors import SqlVectors, VectorTables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PgvectorIndex", "PostgresVectors"]


class PostgresVectors(SqlVectors):
    """The vectors of one kind, and the search among them by comparison with each."""

    vector_provider: ClassVar = "pgvector"  # see `factory.build_vector_index`

    def __init__(self, db: Database, tables: VectorTables) -> None:
        super().__init__(db, tables)
        self.db = db
        self.tables = tables

    def search_exact(
        self, scope: Scope, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None
    ) -> Steps[list[list[tuple[int, float]]]]:
        """For each query the k nearest in a scope, each vector of which is compared with it."""
        tables, where, values = self._tables_to_scan(scope)
        if only is not None:
            where, values = f"{where} AND v.row = ANY (?::bigint[])", [*values, to_int_list(only)]
        sql = f"SELECT v.row, -(v.vector <#> ?) AS score FROM {tables} WHERE {where} ORDER BY 2 DESC, 1 LIMIT ?"
        if len(queries) == 1:
            return [(yield from fetch_rows(sql, (queries[0], *values, k)))]
        answers = yield from execute_batch(*(Statement(sql, (query, *values, k)) for query in queries))
        return [answer.rows for answer in answers]

    def _tables_to_scan(self, scope: Scope) -> tuple[str, str, list[Any]]:
        """The tables that have to be read for a scope; a user's vectors are known by their part."""
        if self.tables.live_condition == "true" and list(scope.ids) == [Axis.USER]:
            return f"{self.tables.vectors} AS v", "v.part = ?", [partition_key(scope)]
        where, values = POSTGRES.in_scope(scope, "t")
        joined = f"{self.tables.rows} AS t JOIN {self.tables.vectors} AS v ON v.part = t.part AND v.row = t.row"
        return joined, f"{where} AND {self.tables.live_condition}", values


_MAX_EXACT_VECTORS = 50_000
"""Vectors of one user up to which they are compared one by one; see docs/how-to/postgres.md for what that takes."""


class PgvectorIndex(StepMethods):
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
        if not isinstance(tables, PostgresVectors):
            raise ConfigError("vector_store: pgvector searches where memories lie: set store to a postgresql:// URL")
        self._tables = tables
        self._db = tables.db
        self._hnsw = HnswIndexes(tables, exact_limit)

    @read_method
    def nearest(
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
