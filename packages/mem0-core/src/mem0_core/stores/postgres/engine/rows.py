"""Partition, digest and conditions of a scope in PostgreSQL, and values of its driver."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Scope
from mem0_core.stores.sql.rows import partition_key, scope_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@text_cache(4096)
def scope_digest(scope: Scope) -> bytes:
    """Return 16 bytes that are equal for scopes with equal ids."""
    ids = "\0".join(f"{len(value)}:{value}" if value else "" for value in scope_ids(scope))
    return hashlib.blake2b(ids.encode(), digest_size=16).digest()


def scope_sql(scope: Scope, table: str = "") -> tuple[str, list[Any]]:
    """Return the condition of rows in a scope or a narrower one; `table` is their alias in the statement.

    A user's rows are in one partition. Those of an agent or a run may be in many, and are found by the hash of the id.
    """
    dot = f"{table}." if table else ""
    tests, values = list[str](), list[Any]()
    if scope.user_id is not None:
        tests.append(f"{dot}part = ?")
        values.append(partition_key(scope))
    for column, value in (("agent_id", scope.agent_id), ("run_id", scope.run_id)):
        if value is not None:
            tests.append(
                f'hashtextextended({dot}{column}, 0) = hashtextextended(?::text COLLATE "C", 0) AND {dot}{column} = ?'
            )
            values += [value, value]
    return " AND ".join(tests), values


def to_int_list(rows: Any) -> list[int]:
    """Return row numbers as Python's integers: psycopg does not accept NumPy's."""
    return [int(row) for row in rows]


def stack_vectors(vectors: Sequence[Any]) -> NDArray[np.float32]:
    """Return vectors of the driver as one array (n, dims)."""
    import numpy as np

    if not vectors:
        return np.empty((0, 0), dtype=np.float32)
    return np.stack([vector.to_numpy() for vector in vectors]).astype(np.float32, copy=False)
