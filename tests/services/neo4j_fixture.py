"""One Neo4j for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.neo4j_server import Neo4jUnavailable, neo4j_url


@pytest.fixture(scope="session")
def neo4j_server_url() -> Iterator[str]:
    """URL of a server. Tests share its one database, so each uses its own store ids."""
    try:
        with neo4j_url() as url:
            yield url
    except Neo4jUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def patient_neo4j(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction take a minute: the first one of a server that has just started can be slow."""
    monkeypatch.setattr("mem0_core.stores.graph.neo4j.TRANSACTION_TIMEOUT_SECONDS", 60.0)
