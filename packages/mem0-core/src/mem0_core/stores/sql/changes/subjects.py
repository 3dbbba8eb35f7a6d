"""Everything that a store holds of one scope: counts before an erasure, and contents to search for residue."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Scope
from mem0_core.stores.sql.engine.dialect import Condition, Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    fetch_rows,
    insert_sql,
    read_method,
    snapshot_method,
    write_method,
)
from mem0_core.stores.sql.meta import read_meta, set_meta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCOPED_TABLES = (
    *("memories", "past", "messages", "summaries", "nodes", "edges", "jobs", "imports", "merges", "aliases"),
    *("tombstones", "node_tombstones", "edge_tombstones", "events"),
    *("spaces", "space_members", "space_writes"),
)
"""Tables whose rows have the ids of a scope."""

_MEMORY_COLUMNS = ("id", "text", "hash", "metadata", "actor_id")

CONTENT_TABLES: dict[str, tuple[str, ...]] = {
    "memories": _MEMORY_COLUMNS,
    "past": (*_MEMORY_COLUMNS, "vector"),
    "history": ("memory_id", "old_memory", "new_memory", "actor_id"),
    "tombstones": ("memory_id",),
    "events": ("memory_id", "actor_id", "source"),
    "messages": ("content", "name", "metadata"),
    "summaries": ("text",),
    "nodes": ("name",),
    "edges": ("relationship",),
    "jobs": ("options", "error"),
    "merges": ("name", "reasons", "taken"),
    "aliases": ("name",),
    "imports": ("key",),
    "space_writes": ("arguments",),
    "sketches": ("terms", "names", "slots"),
    "vectors": ("vector",),
    "node_vectors": ("vector",),
    "edge_vectors": ("vector",),
}
"""Columns with texts or vectors of the users, by table."""

_OWNERS = {"sketches": "memories", "vectors": "memories", "node_vectors": "nodes", "edge_vectors": "edges"}
"""Table with the ids of the rows of a table without ids, which have the same row numbers."""

_KEYS = {"tombstones": "seq", "events": "seq"}
_UNNUMBERED = ("history", "aliases")
_PAGE_ROWS = 2_000
_SECRET_BYTES = 32


def scope_condition(dialect: Dialect, table: str, scope: Scope | None) -> Condition:
    """Return the condition of rows ``t`` of a table that belong to a scope."""
    if table == "history" and scope is not None:
        where, values = dialect.in_scope(scope)
        owners = ("SELECT id FROM memories", "SELECT id FROM past", "SELECT memory_id FROM tombstones")
        among = " UNION ".join(f"{owner} WHERE {where}" for owner in owners)
        return f"t.memory_id IN ({among})", values * len(owners)
    if table in _OWNERS and scope is not None:
        where, values = dialect.in_scope(scope, "o")
        joined = f"SELECT 1 FROM {_OWNERS[table]} AS o WHERE {dialect.same_part('o', 't')}o.row = t.row AND {where}"
        return f"EXISTS ({joined})", values
    return dialect.in_scope(scope, "t")


def _read_page(dialect: Dialect, table: str, scope: Scope | None, after: Any) -> Steps[tuple[list[Any], Any]]:
    """Return a page of a table's texts and vectors, and the position of its last row; None behind the last page."""
    where, values = scope_condition(dialect, table, scope)
    columns = ", ".join(f"t.{column}" for column in CONTENT_TABLES[table])
    if table == "imports":  # a few rows without a number of their own
        found = yield from fetch_rows(f"SELECT {columns} FROM {table} AS t WHERE {where}", values)
        return [value for row in found for value in row], None
    key = f"t.{_KEYS.get(table) or (dialect.insertion_order if table in _UNNUMBERED else 'row')}"
    since, start = ("", []) if after is None else (f" AND {key} > ?", [after])
    found = yield from fetch_rows(
        f"SELECT {columns}, {key} FROM {table} AS t WHERE {where}{since} ORDER BY {key} LIMIT {_PAGE_ROWS}",
        (*values, *start),
    )
    parts = [value for row in found for value in row[:-1] if value is not None]
    return parts, found[-1][-1] if len(found) == _PAGE_ROWS else None


class SqlSubjects(StepMethods):
    """The part of a `StoreMaintenance` that erasures use: the registry, and the contents of one scope or of all."""

    content_tables = tuple(CONTENT_TABLES)

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect = db.dialect

    # --- registry ----------------------------------------------------------------------------------------------------

    @read_method
    def registry(self, kind: str) -> Steps[dict[str, dict[str, Any]]]:
        prefix = _registry_key(kind, "")
        rows = yield from fetch_rows(
            "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key", (len(prefix), prefix)
        )
        return {key[len(prefix) :]: json.loads(value) for key, value in rows}

    @write_method
    def register(
        self, kind: str, entry_id: str, value: Mapping[str, Any], *, replaces: str | None = None
    ) -> Steps[bool]:
        yield from self._dialect.lock_all()
        if replaces is not None and not (
            yield from execute("DELETE FROM meta WHERE key = ?", (_registry_key(replaces, entry_id),))
        ):
            return False
        yield from set_meta(_registry_key(kind, entry_id), json.dumps(value, ensure_ascii=False))
        return True

    @write_method
    def secret(self, name: str) -> Steps[str]:
        key = f"secret:{name}"
        if (found := (yield from read_meta(key))) is None:
            insert = insert_sql("meta", "key, value", "ON CONFLICT DO NOTHING")
            yield from execute(insert, (key, secrets.token_hex(_SECRET_BYTES)))
            found = yield from read_meta(key)  # another process may have been faster
        assert found is not None
        return found

    # --- contents ----------------------------------------------------------------------------------------------------

    @snapshot_method
    def count_scope(self, scope: Scope) -> Steps[dict[str, int]]:
        yield from self._dialect.set_scope(scope)
        counts: dict[str, int] = {}
        for table in (*SCOPED_TABLES, "history"):
            where, values = scope_condition(self._dialect, table, scope)
            [(count,)] = yield from fetch_rows(f"SELECT count(*) FROM {table} AS t WHERE {where}", values)
            counts[table] = int(count)
        return counts

    def iter_contents(self, table: str, scope: Scope | None) -> Iterator[bytes]:
        after: Any = None
        while True:
            parts, after = self._page(table, scope, after)
            for part in parts:
                if isinstance(part, str):
                    yield part.encode(errors="surrogatepass")
                else:
                    yield from _vector_encodings(self._dialect.stack_vectors([part])[0])
            if after is None:
                return

    @read_method
    def _page(self, table: str, scope: Scope | None, after: Any) -> Steps[tuple[list[Any], Any]]:
        yield from self._dialect.set_scope(scope)
        return (yield from _read_page(self._dialect, table, scope, after))


def _vector_encodings(vector: NDArray[np.float32]) -> Iterator[bytes]:
    """Yield the bytes of a vector as stores and vector indexes write them: in single and in half precision."""
    yield vector.astype("<f4").tobytes()
    yield vector.astype("<f2").tobytes()


def _registry_key(kind: str, entry_id: str) -> str:
    return f"registry:{kind}:{entry_id}"
