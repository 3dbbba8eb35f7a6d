"""How far imports came, in the PostgreSQL truth."""

from __future__ import annotations

from mem0_core.records import Scope
from mem0_core.stores.postgres_rows import exact_of, ids_of, part_of
from mem0_core.stores.postgres_session import Steps, ask, change

__all__ = ["marked", "set_mark"]


def set_mark(scope: Scope, key: str, done: int) -> Steps[None]:
    """Keep how many messages of an import into exactly this scope are done; of two that run at once, the further."""
    yield from change(
        "INSERT INTO imports (part, exact, user_id, agent_id, run_id, key, done) VALUES (%s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (part, exact, hashtextextended(key, 0))"
        " DO UPDATE SET done = greatest(imports.done, excluded.done)",
        (part_of(scope), exact_of(scope), *ids_of(scope), key, done),
    )


def marked(scope: Scope, key: str) -> Steps[int]:
    found = yield from ask(
        "SELECT done FROM imports WHERE part = %s AND exact = %s"
        ' AND hashtextextended(key, 0) = hashtextextended(%s::text COLLATE "C", 0) AND key = %s',
        (part_of(scope), exact_of(scope), key, key),
    )
    return int(found[0][0]) if found else 0
