"""PostgreSQL's form of the shared SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Scope
from mem0_core.stores.postgres.engine import locks, text
from mem0_core.stores.postgres.engine.filters import filter_sql
from mem0_core.stores.postgres.engine.rows import scope_digest, scope_sql, stack_vectors, to_int_list
from mem0_core.stores.sql.engine.dialect import ColumnType, Condition
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows
from mem0_core.stores.sql.rows import partition_key, to_stored_vector


class PostgresDialect:
    """A `Dialect` for partitioned tables and many writers."""

    part = "part, "
    exact = "part, exact, "
    insertion_order = "place"
    greatest = "greatest"
    least = "least"
    now = "extract(epoch FROM statement_timestamp())::double precision"  # the server's clock, which all hosts share
    for_update = " FOR UPDATE"
    skip_locked = " FOR UPDATE OF {} SKIP LOCKED"

    to_json = staticmethod(text.to_json)
    from_json = staticmethod(text.from_json)
    vector = staticmethod(to_stored_vector)
    stack_vectors = staticmethod(stack_vectors)
    matches = staticmethod(filter_sql)
    set_scope = staticmethod(locks.set_scope)
    lock_part = staticmethod(locks.lock_partitions)
    reserve_seqs = staticmethod(locks.reserve_seqs)
    safe_read_seq = staticmethod(locks.safe_read_seq)

    def part_values(self, scope: Scope) -> tuple[Any, ...]:
        return (partition_key(scope),)

    def exact_values(self, scope: Scope) -> tuple[Any, ...]:
        return partition_key(scope), scope_digest(scope)

    def limit(self, limit: int | None) -> Any:
        return limit

    def in_scope(self, scope: Scope | None, table: str = "", *, by_row: bool = False) -> Condition:
        return scope_sql(scope, table) if scope is not None else ("true", [])

    def in_exact_scope(self, scope: Scope, table: str = "") -> Condition:
        dot = f"{table}." if table else ""
        return f"{dot}part = ? AND {dot}exact = ?", [partition_key(scope), scope_digest(scope)]

    def in_part(self, scope: Scope, table: str = "") -> Condition:
        return f"{f'{table}.' if table else ''}part = ? AND ", [partition_key(scope)]

    def same_part(self, one: str, other: str) -> str:
        return f"{one}.part = {other}.part AND "

    def among(self, column: str, values: Sequence[Any], type: ColumnType = "bigint") -> Condition:
        return f"{column} = ANY (?::{type}[])", [to_int_list(values) if type == "bigint" else list(values)]

    def equals_key(self, column: str, keys: Sequence[bytes], scope: Scope) -> Condition:
        return (f"{column} = ?", [keys[0]]) if len(keys) == 1 else self.among(column, keys, "bytea")

    def equals_text(self, column: str, text: str) -> Condition:
        sql = f'hashtextextended({column}, 0) = hashtextextended(?::text COLLATE "C", 0) AND {column} = ?'
        return sql, [text, text]

    def lock_scope(self, scope: Scope) -> Steps[None]:
        yield from locks.set_scope(scope.partition_scope)  # a change can end a relation of a wider scope
        yield from locks.lock_partitions(partition_key(scope))

    def lock_all(self) -> Steps[None]:
        yield from locks.set_scope(None)
        yield from locks.lock_all_partitions()

    def reserve_rows(self, table: str, count: int) -> Steps[list[int]]:
        if not count:
            return []
        rows = yield from fetch_rows("SELECT nextval('next_row') FROM generate_series(1, ?)", (count,))
        return [row for (row,) in rows]


POSTGRES = PostgresDialect()
