"""What the PostgreSQL modules share: where the rows of a scope lie, and how a scope is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mem0_core.errors import StoreError
from mem0_core.records import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["exact_of", "ids_of", "integers", "limit_of", "numbers", "part_of", "scope_of", "scope_sql", "stack", "unit"]

_LONGEST = 200  # characters of an id in the name of a part: an index entry has a limit, an id has none


@lru_cache(maxsize=4096)
def part_of(scope: Scope) -> str:
    """The part that what is of `scope` lies in: ``user_id=alice``, the first of its ids."""
    axis, value = scope.partition
    if len(value) > _LONGEST:
        value = f"{value[:64]}#{hashlib.blake2b(value.encode(), digest_size=16).hexdigest()}"
    return f"{axis.value}={value}"


@lru_cache(maxsize=4096)
def exact_of(scope: Scope) -> bytes:
    """Equal for scopes whose ids are all equal. Returns 16 bytes."""
    ids = "\0".join(f"{len(value)}:{value}" if value else "" for value in ids_of(scope))
    return hashlib.blake2b(ids.encode(), digest_size=16).digest()


@lru_cache(maxsize=4096)
def scope_of(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    return Scope(user_id, agent_id, run_id)  # cached: the rows of one search mostly share theirs


def ids_of(scope: Scope) -> tuple[str | None, str | None, str | None]:
    return scope.user_id, scope.agent_id, scope.run_id


def scope_sql(scope: Scope, table: str = "") -> tuple[str, list[Any]]:
    """What is true of the rows of a scope, narrower ones included; `table` is the name they go by in the statement.

    A user's rows lie in one part. Those of an agent or a run may lie in many, and are found by the hash of the id.
    """
    dot = f"{table}." if table else ""
    tests, values = list[str](), list[Any]()
    if scope.user_id is not None:
        tests.append(f"{dot}part = %s")
        values.append(part_of(scope))
    for column, value in (("agent_id", scope.agent_id), ("run_id", scope.run_id)):
        if value is not None:
            tests.append(
                f'hashtextextended({dot}{column}, 0) = hashtextextended(%s::text COLLATE "C", 0) AND {dot}{column} = %s'
            )
            values += [value, value]
    return " AND ".join(tests), values


def limit_of(limit: int | None) -> int | None:
    return limit  # LIMIT NULL is no limit


def integers(rows: Any) -> list[int]:
    """Row numbers as psycopg takes them: NumPy's are unknown to it."""
    return [int(row) for row in rows]


def unit(vector: Any, dims: int) -> Any:
    """The vector as it is stored, checked; the form of the others in its space."""
    import numpy as np

    if vector is None or not dims:
        raise StoreError("what is embedded is stored with its vector, and the commit names the embedder's space")
    array = np.ascontiguousarray(vector, dtype=np.float32)
    if array.shape != (dims,):
        raise StoreError(f"the embedder promised {dims} dims and gave a vector of shape {array.shape}")
    return array


def numbers(rows: Sequence[tuple[Any, ...]]) -> NDArray[np.int64]:
    """The first column of `rows`."""
    import numpy as np

    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def stack(vectors: Sequence[Any]) -> NDArray[np.float32]:
    """Vectors as the driver gives them, as one array (n, dims)."""
    import numpy as np

    if not vectors:
        return np.empty((0, 0), dtype=np.float32)
    return np.stack([vector.to_numpy() for vector in vectors]).astype(np.float32, copy=False)
