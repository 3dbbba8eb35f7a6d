"""What the PostgreSQL modules share: where the rows of a scope lie, and how a scope is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Scope
from mem0_core.stores.sql.rows import first_column, partition_key, scope_from_ids, scope_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "first_column",
    "partition_key",
    "scope_digest",
    "scope_from_ids",
    "scope_ids",
    "scope_sql",
    "stack_vectors",
    "to_int_list",
]


@lru_cache(maxsize=4096)
def scope_digest(scope: Scope) -> bytes:
    """Equal for scopes whose ids are all equal. Returns 16 bytes."""
    ids = "\0".join(f"{len(value)}:{value}" if value else "" for value in scope_ids(scope))
    return hashlib.blake2b(ids.encode(), digest_size=16).digest()


def scope_sql(scope: Scope, table: str = "") -> tuple[str, list[Any]]:
    """What is true of the rows of a scope, narrower ones included; `table` is the name they go by in the statement.

    A user's rows lie in one part. Those of an agent or a run may lie in many, and are found by the hash of the id.
    """
    dot = f"{table}." if table else ""
    tests, values = list[str](), list[Any]()
    if scope.user_id is not None:
        tests.append(f"{dot}part = %s")
        values.append(partition_key(scope))
    for column, value in (("agent_id", scope.agent_id), ("run_id", scope.run_id)):
        if value is not None:
            tests.append(
                f'hashtextextended({dot}{column}, 0) = hashtextextended(%s::text COLLATE "C", 0) AND {dot}{column} = %s'
            )
            values += [value, value]
    return " AND ".join(tests), values


def to_int_list(rows: Any) -> list[int]:
    """Row numbers as psycopg takes them: NumPy's are unknown to it."""
    return [int(row) for row in rows]


def stack_vectors(vectors: Sequence[Any]) -> NDArray[np.float32]:
    """Vectors as the driver gives them, as one array (n, dims)."""
    import numpy as np

    if not vectors:
        return np.empty((0, 0), dtype=np.float32)
    return np.stack([vector.to_numpy() for vector in vectors]).astype(np.float32, copy=False)
