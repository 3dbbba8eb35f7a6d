"""One PostgreSQL for all tests of a run, and an empty store in it for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.services.postgres_server import PostgresUnavailable, postgres_url

if TYPE_CHECKING:
    from mem0_core.stores.postgres.store import PostgresStore

SCHEMA = "mem0_tests"


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """A URL of its one database."""
    try:
        with postgres_url() as url:
            yield url
    except PostgresUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def postgres_reset_store(postgres_server_url: str) -> Iterator[PostgresStore]:
    """Empties the schema before each test: a store that stays open has planned that once."""
    from mem0_core.stores.postgres.store import PostgresStore

    store = PostgresStore(postgres_server_url, schema=SCHEMA, partitions=2)  # few: each is planned for in each test
    yield store
    store.close()


@pytest.fixture
def postgres_store(postgres_server_url: str, postgres_reset_store: PostgresStore) -> Iterator[PostgresStore]:
    """An empty store in the schema ``mem0_tests``, which tests share one after the other."""
    import psycopg

    from mem0_core.stores.postgres.store import PostgresStore

    postgres_reset_store.reset()
    with psycopg.connect(postgres_server_url) as db:  # `reset` keeps the entries of copies, which contain the data
        db.execute(f"DELETE FROM {SCHEMA}.meta WHERE key LIKE 'registry:%'")
    store = PostgresStore(postgres_server_url, schema=SCHEMA)
    yield store
    store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_server)])
def truth(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Configuration of a primary store: SQLite, or an empty PostgreSQL."""
    return build_store_config(request, request.param)


def build_store_config(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    if name != "postgres":
        return {}
    request.getfixturevalue("postgres_store")
    url = request.getfixturevalue("postgres_server_url")
    return {"store": {"provider": "postgres", "config": {"url": url, "schema": SCHEMA}}}
