"""Neo4j goes away in the middle of a conversation, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core.domain.records import Scope
from tests.graph_model import GraphModel, fact_replies, relation_replies, relation_text
from tests.services.neo4j_server import Neo4jServer, Neo4jUnavailable
from tests.support import MODES, MemoryDriver, Mode, open_memory

pytestmark = [pytest.mark.needs_server, pytest.mark.slow, pytest.mark.usefixtures("patient_neo4j")]

USERS = 5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Neo4jServer]:
    server = Neo4jServer(tmp_path / "neo4j")
    try:
        server.start()
    except Neo4jUnavailable as error:
        pytest.skip(str(error))
    yield server
    server.close()


@pytest.mark.parametrize("mode", MODES)
def test_every_add_is_acknowledged_and_both_graphs_are_equal_afterwards(
    tmp_path: Path, server: Neo4jServer, mode: Mode
) -> None:
    """Stopped in the middle of 100 adds, then started again."""
    store = {"provider": "neo4j", "config": {"url": server.url, "retry_after": 0.0}}
    model = GraphModel()
    with open_memory(tmp_path, config={"graph_store": store}, llm=model) as memory:
        driven = MemoryDriver(memory, mode)
        pending = 0
        for number in range(100):
            if number == 40:
                server.stop()
            if number == 80:
                server.start()
            thing = f"thing{number}"  # one word of its own: no two are near one another
            model.replies = {**relation_replies(("me", "likes", thing)), **fact_replies(f"Likes {thing}")}
            result = driven.add(f"I like {thing}.", user_id=f"user {number % USERS}")
            assert [entry["event"] for entry in result["results"]] == ["ADD"]
            assert len(result["relations"]["added_entities"]) == 1
            pending += "pending" in result
            if number == 60:
                found = driven.search(f"likes {thing}", user_id=f"user {number % USERS}")["relations"]
                assert any(relation["destination"] == thing for relation in found), "the truth answers meanwhile"
        assert pending == 40
        graph = memory._open_graph()
        assert graph is not None
        for user in range(USERS):
            scope = Scope(f"user {user}")
            truth = memory._store.graph.relations(scope, include_ended=True)
            assert len(truth) == 100 // USERS
            assert graph.index.relations(scope) == truth
        last = driven.search("likes thing99", user_id=f"user {99 % USERS}")["relations"][0]
        assert relation_text(last) == f"user {99 % USERS} -- likes -- thing99"
