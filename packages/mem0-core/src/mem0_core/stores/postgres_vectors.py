"""The vectors of memories, nodes and edges in the PostgreSQL truth, and `pgvector`'s search among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mem0_core.ports import Position, VectorChanges
from mem0_core.records import Scope
from mem0_core.stores.postgres_rows import integers, numbers, scope_sql, stack
from mem0_core.stores.postgres_session import Database, Steps, ask, horizon, reads, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TableVectors", "epoch"]


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
        return numbers((yield from ask(f"SELECT row FROM {self.table} WHERE {where} AND {self.living}", values)))

    rows, arows = reads(_rows)

    def _reach(self, scope: Scope, dot: str = "") -> Steps[tuple[str, list[Any]]]:
        if scope.user_id is not None:
            return "", []
        return f" AND {dot}seq <= %s", [(yield from horizon())]


def epoch() -> Steps[str]:
    [(value,)] = yield from ask("SELECT value FROM meta WHERE key = 'epoch'")
    return str(value)
