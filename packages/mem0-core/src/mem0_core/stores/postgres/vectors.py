"""Vectors of a PostgreSQL store, and the search of `pgvector` among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from mem0_core.domain.records import Axis, Scope
from mem0_core.errors import ConfigError
from mem0_core.interfaces import drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.postgres.engine.dialect import POSTGRES
from mem0_core.stores.postgres.engine.locks import set_scope
from mem0_core.stores.postgres.engine.rows import to_int_list
from mem0_core.stores.postgres.engine.session import Database
from mem0_core.stores.postgres.hnsw import HnswIndexes
from mem0_core.stores.sql.engine.steps import Statement, StepMethods, Steps, execute_batch, fetch_rows, read_method
from mem0_core.stores.sql.rows import partition_key
from mem0_core.stores.sql.vectors import SqlVectors, VectorTables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PostgresVectors(SqlVectors):
    """Vectors of one kind, with an exact search."""

    vector_provider: ClassVar = "pgvector"  # see `factory.build_vector_index`

    def __init__(self, db: Database, tables: VectorTables) -> None:
        super().__init__(db, tables)
        self.db = db
        self.tables = tables

    def search_exact(
        self, scope: Scope, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None
    ) -> Steps[list[list[tuple[int, float]]]]:
        """Return the k nearest (row, cosine) of each query, compared with every vector of the scope."""
        tables, where, values = self._tables_to_scan(scope)
        if only is not None:
            where, values = f"{where} AND v.row = ANY (?::bigint[])", [*values, to_int_list(only)]
        sql = f"SELECT v.row, -(v.vector <#> ?) AS score FROM {tables} WHERE {where} ORDER BY 2 DESC, 1 LIMIT ?"
        if len(queries) == 1:
            return [(yield from fetch_rows(sql, (queries[0], *values, k)))]
        answers = yield from execute_batch(*(Statement(sql, (query, *values, k)) for query in queries))
        return [answer.rows for answer in answers]

    def _tables_to_scan(self, scope: Scope) -> tuple[str, str, list[Any]]:
        """Return the tables to read for a scope and their condition; a user's vectors are found by their partition."""
        if self.tables.live_condition == "true" and list(scope.ids) == [Axis.USER]:
            return f"{self.tables.vectors} AS v", "v.part = ?", [partition_key(scope)]
        where, values = POSTGRES.in_scope(scope, "t")
        joined = f"{self.tables.rows} AS t JOIN {self.tables.vectors} AS v ON v.part = t.part AND v.row = t.row"
        return joined, f"{where} AND {self.tables.live_condition}", values


_MAX_EXACT_VECTORS = 50_000
"""Vectors of one user up to which a search is exact; docs/how-to/postgres.md has its cost."""


class PgvectorIndex(StepMethods):
    """A `VectorIndex` over the store's own vectors, without a copy of them.

    A search is exact: it compares the vectors of the scope, found by the index on the scope, so its cost depends on
    the scope alone. Only a user with more than `exact_limit` vectors gets an HNSW index, a partial one over that user's
    vectors, so that no result is filtered out afterwards. Searches that also name an agent, a run or rows stay exact.

    Args:
        source: the `PostgresStore`, or the vectors of its graph.
        exact_limit: vectors of one user up to which a search is exact; None for any number.
        folder: unused; nothing is stored on this machine.

    Raises:
        ConfigError: `source` is not in PostgreSQL.
    """

    def __init__(self, source: object, *, exact_limit: int | None = _MAX_EXACT_VECTORS, folder: object = None) -> None:
        tables = getattr(source, "memory_vectors", source)
        if not isinstance(tables, PostgresVectors):
            raise ConfigError(
                "vector_store: pgvector needs the memories in PostgreSQL: set store to a postgresql:// URL"
            )
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
        """Do nothing: the index reads the store's own vectors."""

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Return no mismatches: the index has no copy that could differ from the store."""
        return []

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Return an empty text: there are no mismatches."""
        return ""

    def close(self) -> None:
        self._hnsw.close()
