"""Time limits of a PostgreSQL store: a statement that runs or waits too long ends with an error that says so."""

from __future__ import annotations

import asyncio

import pytest

from mem0_core.contracts import AT, SPACE, make_changes, make_item
from mem0_core.domain.records import Scope
from mem0_core.errors import ConfigError, StoreError
from mem0_core.stores.postgres.engine.locks import lock_partitions
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows
from mem0_core.stores.sql.rows import partition_key
from tests.support import MODES, Mode

pytestmark = pytest.mark.needs_server

ALICE = Scope("alice")


def sleep() -> Steps[None]:
    yield from fetch_rows("SELECT pg_sleep(60)::text")


@pytest.mark.parametrize("mode", MODES)
def test_a_statement_that_takes_too_long_is_ended_and_named(
    postgres_store: PostgresStore, postgres_server_url: str, mode: Mode
) -> None:
    store = PostgresStore(postgres_server_url, schema="mem0_tests", statement_timeout=0.2)
    try:
        with pytest.raises(StoreError, match="raise statement_timeout of the store"):
            _sleep_in(store, mode)
        assert store.list_memories(ALICE) == []
    finally:
        store.close()


def _sleep_in(store: PostgresStore, mode: Mode) -> None:
    if mode == "sync":
        store._db.run(sleep, "read")
    else:
        asyncio.run(_asleep(store))


async def _asleep(store: PostgresStore) -> None:
    try:
        await store._db.arun(sleep, "read")
    finally:
        await store.aclose()


def test_a_writer_that_waits_too_long_for_another_writes_nothing(
    postgres_store: PostgresStore, postgres_server_url: str
) -> None:
    store = PostgresStore(postgres_server_url, schema="mem0_tests", lock_timeout=0.2)
    plan = make_changes([make_item("late")])

    def hold_lock() -> Steps[None]:
        yield from lock_partitions(partition_key(ALICE))
        with pytest.raises(StoreError, match="raise lock_timeout of the store"):
            store.commit(plan, scope=ALICE, at=AT, embedding_space=SPACE)

    try:
        postgres_store._db.run(hold_lock, "write")
        assert store.list_memories(ALICE) == []
        assert store.commit(plan, scope=ALICE, at=AT, embedding_space=SPACE).applied
    finally:
        store.close()


@pytest.mark.parametrize("limit", [-1, "30s", True, float("nan"), 1e300])
def test_a_limit_that_is_no_number_of_seconds_is_refused(limit: object) -> None:
    with pytest.raises(ConfigError, match="lock_timeout"):
        PostgresStore("postgresql://127.0.0.1:1/d", lock_timeout=limit)  # type: ignore[arg-type]
