"""SQLite's form of the shared SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mem0_core.domain.filters import Filter
from mem0_core.domain.records import Axis, Scope
from mem0_core.stores.sql.engine.dialect import ColumnType, Condition
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows
from mem0_core.stores.sql.rows import to_stored_vector
from mem0_core.stores.sqlite.encryption.sealed_tables import LOCKED_NAMES
from mem0_core.stores.sqlite.encryption.vault import Vault
from mem0_core.stores.sqlite.filters import filter_sql

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` would create one per value


class SQLiteDialect:
    """A `Dialect` for one file: no partitions, and one writer at a time."""

    part = ""
    exact = ""
    insertion_order = "rowid"
    greatest = "max"
    least = "min"
    now = "mem0_now()"  # see `sqlite.session`
    for_update = ""
    skip_locked = ""

    def part_values(self, scope: Scope) -> tuple[Any, ...]:
        return ()

    def exact_values(self, scope: Scope) -> tuple[Any, ...]:
        return ()

    def to_json(self, value: Mapping[str, Any] | None) -> str:
        return _ENCODER.encode(dict(value)) if value else "{}"

    def from_json(self, text: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(text) if text != "{}" else {}
        return value

    def limit(self, limit: int | None) -> Any:
        return -1 if limit is None else limit

    def vector(self, vector: Any, dims: int) -> Any:
        return to_stored_vector(vector, dims).tobytes()

    def stack_vectors(self, vectors: Sequence[Any]) -> NDArray[np.float32]:
        import numpy as np

        if not vectors:
            return np.empty((0, 0), dtype=np.float32)
        return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)

    def in_scope(self, scope: Scope | None, table: str = "", *, by_row: bool = False) -> Condition:
        if scope is None:
            return "true", []
        ids = scope.ids
        return _compare_ids(tuple(ids), table, by_row=by_row), list(ids.values())

    def in_exact_scope(self, scope: Scope, table: str = "") -> Condition:
        # The expressions of the unique indexes. Ids are never empty.
        dot = f"{table}." if table else ""
        sql = f"ifnull({dot}user_id, '') = ? AND ifnull({dot}agent_id, '') = ? AND ifnull({dot}run_id, '') = ?"
        return sql, [scope.user_id or "", scope.agent_id or "", scope.run_id or ""]

    def in_part(self, scope: Scope, table: str = "") -> Condition:
        return "", []

    def same_part(self, one: str, other: str) -> str:
        return ""

    def among(self, column: str, values: Sequence[Any], type: ColumnType = "bigint") -> Condition:
        if type == "bytea" or (type == "text" and any("\0" in value for value in values)):  # not in SQLite's JSON
            return f"{column} IN ({', '.join('?' * len(values))})", list(values)
        # One placeholder, so that the statement is one text, prepared once, for any number of values.
        listed = f"[{','.join(map(str, values))}]" if type == "bigint" else json.dumps(list(values), ensure_ascii=False)
        return f"{column} IN (SELECT value FROM json_each(?))", [listed]

    def equals_key(self, column: str, keys: Sequence[bytes], scope: Scope) -> Condition:
        return self.among(column, keys, "bytea")

    def equals_text(self, column: str, text: str) -> Condition:
        return f"{column} = ?", [text]

    def matches(self, filter: Filter) -> Condition:
        return filter_sql(filter)

    def set_scope(self, scope: Scope | None) -> Steps[None]:
        yield from ()

    def lock_scope(self, scope: Scope) -> Steps[None]:
        yield from ()  # a write transaction holds the file

    def lock_part(self, part: str) -> Steps[None]:
        yield from ()

    def lock_all(self) -> Steps[None]:
        yield from ()

    def reserve_seqs(self, count: int) -> Steps[list[int]]:
        if not count:
            return []
        reserve = "UPDATE meta SET value = value + ? WHERE key = 'seq' RETURNING value"
        [(last,)] = yield from fetch_rows(reserve, (count,))
        return list(range(last - count + 1, last + 1))

    def safe_read_seq(self) -> Steps[int | None]:
        yield from ()
        return None

    def reserve_rows(self, table: str, count: int) -> Steps[list[int]]:
        if not count:
            return []
        found = yield from fetch_rows("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
        last = found[0][0] if found else 0
        return list(range(last + 1, last + count + 1))


class SealedDialect(SQLiteDialect):
    """The dialect of an encrypted file."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def equals_key(self, column: str, keys: Sequence[bytes], scope: Scope) -> Condition:
        table, dot, name = column.rpartition(".")
        tenant = tenant_of(scope)
        sealed = [self._vault.lookup(key, tenant, LOCKED_NAMES[name]) for key in keys]
        return self.among(f"{table}{dot}sealed_{name}", sealed, "bytea")


@lru_cache
def _compare_ids(axes: Sequence[Axis], table: str, *, by_row: bool) -> str:
    prefix = f"{'+' if by_row else ''}{f'{table}.' if table else ''}"  # a plus sign keeps a column's index unused
    return " AND ".join(f"{prefix}{axis.value} = ?" for axis in axes)


def tenant_of(scope: Scope) -> str:
    """Return the tenant of a scope, as `encryption.sealed_tables.TENANT_SQL` does."""
    axis, value = scope.partition
    return f"{axis.value}={value}"


SQLITE = SQLiteDialect()
