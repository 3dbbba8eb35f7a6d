"""Values that a store keeps about itself, and the progress of imports."""

from __future__ import annotations

import json

from mem0_core.domain.records import Scope, new_id
from mem0_core.interfaces import check_embedding_space
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import Steps, execute, fetch_rows, insert_sql
from mem0_core.stores.sql.rows import scope_ids


def read_meta(key: str) -> Steps[str | None]:
    """Return the value of a key of the store, or None."""
    found = yield from fetch_rows("SELECT value FROM meta WHERE key = ?", (key,))
    return found[0][0] if found else None


def set_meta(key: str, value: str) -> Steps[None]:
    """Set the value of a key of the store."""
    yield from execute(
        insert_sql("meta", "key, value", "ON CONFLICT (key) DO UPDATE SET value = excluded.value"), (key, value)
    )


def begin_epoch() -> Steps[None]:
    """Make every projection start from the beginning."""
    yield from set_meta("epoch", new_id())


def read_embedding_space() -> Steps[tuple[str, int] | None]:
    """Return the embedder's name and its dims; None before the first vector."""
    found = yield from read_meta("space")
    return None if found is None else tuple(json.loads(found))


def claim_embedding_space(space: tuple[str, int] | None) -> Steps[int]:
    """Check a commit's embedding space against the store's, or set it, and return its dims (0 for None)."""
    if space is None:
        return 0
    stored = yield from read_embedding_space()
    if stored is None:
        sql = insert_sql("meta", "key, value", "ON CONFLICT DO NOTHING")
        yield from execute(sql, ("space", json.dumps(space)))
        stored = yield from read_embedding_space()  # another writer may have been faster
    check_embedding_space(stored, space)
    return space[1]


def save_import_checkpoint(dialect: Dialect, scope: Scope, key: str, done: int) -> Steps[None]:
    """Save the number of messages that an import into exactly this scope has stored. It never decreases."""
    where, values = dialect.in_exact_scope(scope)
    same_key, key_values = dialect.equals_text("key", key)
    update = f"UPDATE imports SET done = {dialect.greatest}(done, ?) WHERE {where} AND {same_key}"
    if not (yield from execute(update, (done, *values, *key_values))):
        columns = f"{dialect.exact}user_id, agent_id, run_id, key, done"
        row = (*dialect.exact_values(scope), *scope_ids(scope), key, done)
        yield from execute(insert_sql("imports", columns), row)


def read_import_checkpoint(dialect: Dialect, scope: Scope, key: str) -> Steps[int]:
    """Return the number of messages that an import has committed."""
    where, values = dialect.in_exact_scope(scope)
    same_key, key_values = dialect.equals_text("key", key)
    found = yield from fetch_rows(f"SELECT done FROM imports WHERE {where} AND {same_key}", (*values, *key_values))
    return int(found[0][0]) if found else 0
