"""What the SQLite modules share: ids, rows, sequence numbers and vectors as the tables hold them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Scope
from mem0_core.stores.sql.rows import chunks, first_column, placeholders, scope_from_ids, scope_ids, to_stored_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "EXACT_SCOPE_CONDITION",
    "chunks",
    "exact_scope_values",
    "first_column",
    "from_blob",
    "limit_sql",
    "placeholders",
    "reserve_seqs",
    "scope_from_ids",
    "scope_ids",
    "scope_sql",
    "scope_sql_unindexed",
    "stack_vectors",
    "to_blob",
    "to_json",
]


EXACT_SCOPE_CONDITION = "ifnull(user_id, '') = ? AND ifnull(agent_id, '') = ? AND ifnull(run_id, '') = ?"
"""Exactly this scope, as the unique indexes have it; its values are `exact_scope_values`. Ids are never empty."""


def exact_scope_values(scope: Scope) -> tuple[str, str, str]:
    return scope.user_id or "", scope.agent_id or "", scope.run_id or ""


def scope_sql(scope: Scope, table: str = "") -> tuple[str, list[Any]]:
    """What is true of the rows of a scope, narrower ones included; `table` is the name they go by in the statement."""
    dot = f"{table}." if table else ""
    return " AND ".join(f"{dot}{axis.value} = ?" for axis in scope.ids), list(scope.ids.values())


def scope_sql_unindexed(scope: Scope) -> str:
    """`scope_sql`, where rows are named too: the plus signs keep SQLite from walking the scope's index instead."""
    return " AND ".join(f"+{axis.value} = ?" for axis in scope.ids)


def limit_sql(limit: int | None) -> int:
    return -1 if limit is None else limit


def to_json(value: Any) -> str:
    return json.dumps(dict(value), ensure_ascii=False, separators=(",", ":")) if value else "{}"


def to_blob(vector: Any, dims: int) -> bytes:
    return to_stored_vector(vector, dims).tobytes()


def from_blob(blob: bytes) -> NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(blob, dtype="<f4")


def stack_vectors(blobs: Sequence[bytes]) -> NDArray[np.float32]:
    import numpy as np

    if not blobs:
        return np.empty((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), -1)


def reserve_seqs(db: sqlite3.Connection, count: int) -> int:
    """Reserve `count` numbers and return the first."""
    if not count:
        return 0
    reserve = "UPDATE meta SET value = value + ? WHERE key = 'seq' RETURNING value"
    last: int = db.execute(reserve, (count,)).fetchone()[0]
    return last - count + 1
