"""How far imports came, in the PostgreSQL truth."""

from __future__ import annotations

from mem0_core.domain.records import Scope
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_ids
from mem0_core.stores.postgres.session import Steps, execute, fetch_rows

__all__ = ["read_import_checkpoint", "save_import_checkpoint"]


def save_import_checkpoint(scope: Scope, key: str, done: int) -> Steps[None]:
    """Keep how many messages of an import into exactly this scope are done; of two that run at once, the further."""
    yield from execute(
        "INSERT INTO imports (part, exact, user_id, agent_id, run_id, key, done) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (part, exact, hashtextextended(key, 0))"
        " DO UPDATE SET done = greatest(imports.done, excluded.done)",
        (partition_key(scope), scope_digest(scope), *scope_ids(scope), key, done),
    )


def read_import_checkpoint(scope: Scope, key: str) -> Steps[int]:
    found = yield from fetch_rows(
        "SELECT done FROM imports WHERE part = %s AND exact = %s"
        ' AND hashtextextended(key, 0) = hashtextextended(%s::text COLLATE "C", 0) AND key = %s',
        (partition_key(scope), scope_digest(scope), key, key),
    )
    return int(found[0][0]) if found else 0
