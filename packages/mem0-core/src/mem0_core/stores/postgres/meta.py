"""What the PostgreSQL truth keeps of itself: a value by its key."""

from __future__ import annotations

import json

from mem0_core.stores.postgres.session import Steps, execute, fetch_rows

__all__ = ["begin_epoch", "read_embedding_space", "set_meta"]


def set_meta(key: str, value: str) -> Steps[None]:
    yield from execute(
        "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def begin_epoch() -> Steps[None]:
    """Let every projection start anew."""
    yield from execute("UPDATE meta SET value = gen_random_uuid()::text WHERE key = 'epoch'")


def read_embedding_space() -> Steps[tuple[str, int] | None]:
    """The vector space of the store: the embedder's name, and its dims."""
    found = yield from fetch_rows("SELECT value FROM meta WHERE key = 'space'")
    return tuple(json.loads(found[0][0])) if found else None
