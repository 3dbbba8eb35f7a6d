"""The vectors of memories, nodes and edges in the PostgreSQL truth, and `pgvector`'s search among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mem0_core.care import Unsound
from mem0_core.errors import ConfigError
from mem0_core.ports import Position, VectorChanges, near_enough
from mem0_core.records import Axis, Scope
from mem0_core.stores.postgres_hnsw import Graphs
from mem0_core.stores.postgres_rows import integers, numbers, part_of, scope_sql, stack
from mem0_core.stores.postgres_session import Database, Statement, Steps, ask, horizon, reads, together, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PgvectorIndex", "TableVectors"]


@dataclass(frozen=True)
class TableVectors:
    """A `VectorSource` over three tables: rows with a scope and a `seq`, their vectors, their tombstones.

    A row that `living` is not true of has a tombstone too. A scope without a user lies in several parts, where a lower
    number may become visible after a higher one: it is told no further than the horizon.
    """

    db: Database
    table: str
    vector_table: str
    tombstones: str
    living: str = "true"
    searched_by: ClassVar[str] = "pgvector"  # see `wiring.vector_index`

    @property
    def _db(self) -> Database:
        return self.db

    def _position(self, scope: Scope) -> Steps[Position]:
        yield from within(scope)
        upto, limit = yield from self._reach(scope)
        where, values = scope_sql(scope)
        [(its_epoch, added, removed)] = yield from ask(
            "SELECT (SELECT value FROM meta WHERE key = 'epoch'),"
            f" (SELECT max(seq) FROM {self.table} WHERE {where}{upto}),"
            f" (SELECT max(seq) FROM {self.tombstones} WHERE {where}{upto})",
            (*values, *limit, *values, *limit),
        )
        return Position(its_epoch, max(added or 0, removed or 0))

    position, aposition = reads(_position)

    def _vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> Steps[VectorChanges]:
        yield from within(scope)
        upto, reach = yield from self._reach(scope, "t.")
        where, values = scope_sql(scope, "t")
        added = yield from ask(
            f"SELECT t.row, v.vector, t.seq FROM {self.table} AS t"
            f" JOIN {self.vector_table} AS v ON v.part = t.part AND v.row = t.row"
            f" WHERE {where} AND {self.living} AND t.seq > %s{upto} ORDER BY t.seq LIMIT %s",
            (*values, after, *reach, limit),
        )
        removed = yield from ask(
            f"SELECT t.row FROM {self.tombstones} AS t WHERE {where} AND t.seq > %s{upto} ORDER BY t.seq",
            (*values, after, *reach),
        )
        more = added[-1][2] if limit is not None and len(added) == limit else None
        return VectorChanges(numbers(added), stack([row[1] for row in added]), removed=numbers(removed), upto=more)

    vector_changes, avector_changes = reads(_vector_changes)

    def _vectors(self, rows: Sequence[int]) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        found = yield from ask(
            f"SELECT row, vector FROM {self.vector_table} WHERE row = ANY (%s::bigint[])", (integers(rows),)
        )
        return numbers(found), stack([vector for _, vector in found])

    vectors, avectors = reads(_vectors)

    def _rows(self, scope: Scope) -> Steps[NDArray[np.int64]]:
        yield from within(scope)
        where, values = scope_sql(scope)
        sql = f"SELECT row FROM {self.table} WHERE {where} AND {self.living} ORDER BY row"
        return numbers((yield from ask(sql, values)))

    rows, arows = reads(_rows)

    def compared(
        self, scope: Scope, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None
    ) -> Steps[list[list[tuple[int, float]]]]:
        """For each query the k nearest in a scope, each vector of which is compared with it."""
        tables, where, values = self._scanned(scope)
        if only is not None:
            where, values = f"{where} AND v.row = ANY (%s::bigint[])", [*values, integers(only)]
        sql = f"SELECT v.row, -(v.vector <#> %s) AS score FROM {tables} WHERE {where} ORDER BY 2 DESC, 1 LIMIT %s"
        if len(queries) == 1:
            return [(yield from ask(sql, (queries[0], *values, k)))]
        answers = yield from together(*(Statement(sql, (query, *values, k)) for query in queries))
        return [answer.rows for answer in answers]

    def _scanned(self, scope: Scope) -> tuple[str, str, list[Any]]:
        """The tables that have to be read for a scope; a user's vectors are known by their part."""
        if self.living == "true" and list(scope.ids) == [Axis.USER]:
            return f"{self.vector_table} AS v", "v.part = %s", [part_of(scope)]
        where, values = scope_sql(scope, "t")
        joined = f"{self.table} AS t JOIN {self.vector_table} AS v ON v.part = t.part AND v.row = t.row"
        return joined, f"{where} AND t.{self.living}" if self.living != "true" else where, values

    def _reach(self, scope: Scope, dot: str = "") -> Steps[tuple[str, list[Any]]]:
        if scope.user_id is not None:
            return "", []
        return f" AND {dot}seq <= %s", [(yield from horizon())]


_EXACT_LIMIT = 50_000
"""Vectors of one user up to which they are compared one by one; see docs/postgres.md for what that takes."""


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

    def __init__(self, source: object, *, exact_limit: int | None = _EXACT_LIMIT, folder: object = None) -> None:
        tables = getattr(source, "memory_vectors", source)
        if not isinstance(tables, TableVectors):
            raise ConfigError("vector_store: pgvector searches where memories lie: set store to a postgresql:// URL")
        self._tables = tables
        self._db = tables.db
        self._graphs = Graphs(tables, exact_limit)

    def _nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        only: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> Steps[list[list[tuple[int, float]]]]:
        yield from within(scope)
        if k < 1 or not len(queries) or (only is not None and not len(only)):
            return [[] for _ in queries]
        if only is None and (yield from self._graphs.has(scope)):
            found = yield from self._graphs.nearest(scope, queries, k)
        else:
            found = yield from self._tables.compared(scope, queries, k, only)
        return near_enough(found, threshold)

    nearest, anearest = reads(_nearest)

    def forget(self, scope: Scope | None) -> None:
        """Nothing: what is deleted is deleted here."""

    def examine(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[Unsound]:
        """Nothing: it searches the truth itself, which cannot differ from it; see `care.Examined`."""
        return []

    def renew(self, unsound: Unsound) -> str:
        """Nothing, as nothing is found."""
        return ""

    def close(self) -> None:
        self._graphs.close()
