"""The truth in PostgreSQL, for many workers and hosts: one transaction per add."""

from __future__ import annotations

import json

from mem0_core.stores.postgres_schema import PARTITIONS, TABLES, Layout, migrate
from mem0_core.stores.postgres_session import Database, Steps, ask, change, hold_all, reads, within, writes

__all__ = ["PostgresStore"]


class PostgresStore:
    """A `MemoryStore` in one schema of a PostgreSQL database with pgvector."""

    def __init__(
        self,
        url: str,
        *,
        schema: str = "mem0",
        pool_size: int = 10,
        timeout: float = 10.0,
        layout: Layout = "postgres",
        partitions: int = PARTITIONS,
    ) -> None:
        self._db = Database(url, schema=schema, pool_size=pool_size, timeout=timeout)
        with self._db.connect() as db:
            migrate(db, schema, layout=layout, partitions=partitions)
            self._db.know(db)

    def _reset(self) -> Steps[None]:
        yield from within(None)
        yield from hold_all()
        for table in TABLES:
            yield from change(f"DELETE FROM {table}")
        yield from change("DELETE FROM meta WHERE key = 'space'")
        yield from _new_epoch()

    reset, areset = writes(_reset)

    def _space(self) -> Steps[tuple[str, int] | None]:
        return (yield from _held_space())

    space, aspace = reads(_space)

    def close(self) -> None:
        self._db.close()


def _new_epoch() -> Steps[int]:
    return (yield from change("UPDATE meta SET value = gen_random_uuid()::text WHERE key = 'epoch'"))


def _held_space() -> Steps[tuple[str, int] | None]:
    found = yield from ask("SELECT value FROM meta WHERE key = 'space'")
    return tuple(json.loads(found[0][0])) if found else None
