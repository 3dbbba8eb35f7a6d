"""Behavior of the Neo4j graph beyond the contract of graph indexes: outages, crashes, event loops, direct queries."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mem0_core.contracts import ALICE, AT, BOB, LATER, SPACE, make_relation_changes, unit_vectors
from mem0_core.domain.records import Event, RelationChange, Triplet, new_id
from mem0_core.errors import ConfigError, MissingExtraError, StoreError
from mem0_core.interfaces import ChangePosition, GraphChanges, GraphStore
from mem0_core.stores.graph import cypher
from mem0_core.stores.graph.neo4j import Neo4jGraph
from mem0_core.stores.sqlite.store import SQLiteStore
from tests.services.neo4j_server import Neo4jServer, Neo4jUnavailable
from tests.support import hang_guard

pytestmark = pytest.mark.usefixtures("patient_neo4j")
needs_server = pytest.mark.needs_server
MakeGraph = Callable[..., Neo4jGraph]
Ask = Callable[..., list[list[Any]]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "store.db", durability="process")
    yield store
    store.close()


@pytest.fixture
def store_id() -> str:
    return new_id()


@pytest.fixture
def make_graph(store: SQLiteStore, store_id: str, neo4j_server_url: str) -> Iterator[MakeGraph]:
    """Graphs of `store` under one id, as several processes would have them."""
    made = []

    def make(truth: GraphStore = store.graph, **options: Any) -> Neo4jGraph:
        made.append(Neo4jGraph(truth, **{"store_id": store_id, "url": neo4j_server_url, **options}))
        return made[-1]

    yield make
    for graph in made:
        graph.close()


@pytest.fixture
def ask(neo4j_server_url: str) -> Iterator[Ask]:
    """Run a query as a user of the database would."""
    from neo4j import GraphDatabase

    with GraphDatabase.driver(neo4j_server_url) as driver:
        yield lambda text, **values: [record.values() for record in driver.execute_query(text, values).records]


def add(store: SQLiteStore, number: int) -> Triplet:
    triplet = Triplet("alice", f"did_{number}", f"thing {number}")
    store.commit((), relations=make_relation_changes(triplet, seed=number), scope=ALICE, at=AT, embedding_space=SPACE)
    return triplet


def end(store: SQLiteStore, triplet: Triplet, **options: Any) -> None:
    (row,) = [relation.row for relation in store.graph.relations(ALICE) if relation.triplet == triplet]
    change = RelationChange(Event.DELETE, triplet, relation_row=row)
    store.commit((), relations=[change], scope=ALICE, at=LATER, embedding_space=SPACE, **options)


def same(graph: Neo4jGraph, store: SQLiteStore) -> bool:
    return graph.relations(ALICE) == store.graph.relations(ALICE, include_ended=True)


# --- no server ---------------------------------------------------------------------------------------------------


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
    return port


def unreachable(store: SQLiteStore, port: int, **options: Any) -> Neo4jGraph:
    url = f"bolt://127.0.0.1:{port}"
    return Neo4jGraph(store.graph, store_id="s", url=url, username="neo4j", password="hush-hush", **options)


def calls(graph: Neo4jGraph) -> list[Callable[[], Any]]:
    vectors = unit_vectors(1)
    return [
        graph.catch_up,
        lambda: graph.purge_deleted(None),
        lambda: graph.relations(ALICE),
        lambda: graph.neighborhoods(ALICE, vectors, threshold=0.5, limit=5),
        lambda: graph.nearest_relations(ALICE, vectors, 5, threshold=0.5),
        lambda: asyncio.run(graph.acatch_up()),
        lambda: asyncio.run(graph.apurge_deleted(None)),
        lambda: asyncio.run(graph.arelations(ALICE)),
        lambda: asyncio.run(graph.aneighborhoods(ALICE, vectors, threshold=0.5, limit=5)),
        lambda: asyncio.run(graph.anearest_relations(ALICE, vectors, 5, threshold=0.5)),
    ]


def test_a_server_that_is_down_is_left_alone_for_a_while(store: SQLiteStore, closed_port: int) -> None:
    add(store, 1)
    graph = unreachable(store, closed_port, retry_after=3600)
    with pytest.raises(StoreError, match="failed"):
        graph.catch_up()
    for call in calls(graph):
        with pytest.raises(StoreError, match=r"could not be reached \d+\.\d seconds ago") as error:
            call()
        assert "hush-hush" not in str(error.value)
    assert graph._failure
    graph._failure = graph._failure[0] - 3600, graph._failure[1]
    with pytest.raises(StoreError, match="failed"):
        graph.catch_up()
    graph.close()


def test_without_a_pause_each_call_tries(store: SQLiteStore, closed_port: int) -> None:
    graph = unreachable(store, closed_port, retry_after=0)
    for call in calls(graph):
        with pytest.raises(StoreError, match="failed"):
            call()
    graph.close()


@pytest.mark.parametrize("place", [0, 5], ids=["sync", "async"])
def test_a_server_that_never_answers_is_not_waited_for(store: SQLiteStore, silent_port: int, place: int) -> None:
    graph = unreachable(store, silent_port, connection_timeout=0.3)
    with hang_guard(), pytest.raises(StoreError, match="failed"):
        calls(graph)[place]()
    graph.close()


def test_nothing_is_connected_before_it_is_used(store: SQLiteStore, silent_port: int) -> None:
    graph = unreachable(store, silent_port, base_label=True)
    graph.close()
    asyncio.run(graph.aclose())
    for call in calls(graph):
        with pytest.raises(StoreError, match="was closed"):
            call()


def test_a_wrong_url_is_named_without_its_password(store: SQLiteStore) -> None:
    for place in (
        "http://a:hush@localhost",
        "bolt://a:hush@localhost",
        "bolt+x://a:hush@localhost",
        "local",
        "bolt://[",
    ):
        with pytest.raises(ConfigError, match="url") as error:
            Neo4jGraph(store.graph, store_id="s", url=place)
        assert "hush" not in "".join(traceback.format_exception(error.value))


def test_a_missing_driver_is_named(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "neo4j", None)
    with pytest.raises(MissingExtraError, match=r"mem0-core\[neo4j\]"):
        Neo4jGraph(store.graph, store_id="s", url="bolt://localhost")


# --- outages and crashes -----------------------------------------------------------------------------------------


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_was_committed_while_the_server_was_down_arrives(
    store: SQLiteStore, store_id: str, tmp_path: Path, how: str
) -> None:
    try:
        server = Neo4jServer(tmp_path / "neo4j")
        server.start()
    except Neo4jUnavailable as error:
        pytest.skip(str(error))
    with server, closing(Neo4jGraph(store.graph, store_id=store_id, url=server.url, retry_after=0.2)) as graph:
        for number in range(100):
            if number == 40:
                getattr(server, how)()
            triplet = add(store, number)
            if number % 10 == 7:
                end(store, triplet, on_conflict="delete" if number % 20 == 7 else "invalidate")
            if number < 40:
                graph.catch_up()
                continue
            with hang_guard(), pytest.raises(StoreError):
                graph.catch_up()
        server.start()
        time.sleep(0.2)
        assert same(graph, store)
        assert len(graph.relations(ALICE)) == 95
        assert asyncio.run(graph.arelations(ALICE)) == store.graph.relations(ALICE, include_ended=True)


@needs_server
def test_a_server_that_froze_is_not_waited_for(store: SQLiteStore, store_id: str, tmp_path: Path) -> None:
    """Connections it had opened stay open: they are tried before they are used."""
    try:
        server = Neo4jServer(tmp_path / "neo4j")
        server.start()
    except Neo4jUnavailable as error:
        pytest.skip(str(error))
    options: dict[str, Any] = {"retry_after": 0, "connection_timeout": 0.5}
    with server, closing(Neo4jGraph(store.graph, store_id=store_id, url=server.url, **options)) as graph:
        add(store, 1)
        graph.catch_up()
        assert server.pid
        os.kill(server.pid, signal.SIGSTOP)
        try:
            add(store, 2)
            for call in (graph.catch_up, lambda: asyncio.run(graph.acatch_up())):
                with hang_guard(), pytest.raises(StoreError):
                    call()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert same(graph, store)


class Crashing:
    """A primary graph that fails after a given number of pages."""

    def __init__(self, truth: GraphStore, pages: int) -> None:
        self._truth = truth
        self._pages = pages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._truth, name)

    def changes(self, **options: Any) -> GraphChanges:
        if not self._pages:
            raise SystemExit
        self._pages -= 1
        return self._truth.changes(**options)


@needs_server
def test_a_crash_between_pages_leaves_it_behind_and_never_wrong(
    store: SQLiteStore, make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cypher, "PAGE_CHANGES", 3)
    monkeypatch.setattr(cypher, "DELETE_BATCH_NODES", 2)
    for number in range(20):
        add(store, number)
    truth: Any = Crashing(store.graph, 2)
    with pytest.raises(SystemExit):
        make_graph(truth).catch_up()
    assert same(make_graph(), store)
    store.erase_scope(BOB, at=LATER, purge=True)  # the past is rewritten
    truth = Crashing(store.graph, 1)
    with pytest.raises(SystemExit):
        make_graph(truth).catch_up()
    assert same(make_graph(), store)


@needs_server
def test_a_crash_while_it_is_emptied_leaves_nothing_behind(
    store: SQLiteStore, store_id: str, make_graph: MakeGraph, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cypher, "DELETE_BATCH_NODES", 2)
    for number in range(5):
        add(store, number)
    make_graph().catch_up()
    store.reset()
    graph = make_graph()
    execute, calls = graph._execute, iter(range(5))

    def crashing(statements: Any, **options: Any) -> Any:
        if next(calls) == 4:  # the schema, the cursor, its move and two nodes are done
            raise SystemExit
        return execute(statements, **options)

    graph._execute = crashing  # type: ignore[method-assign]
    with pytest.raises(SystemExit):
        graph.catch_up()
    count = "MATCH (n:Entity {store: $store}) RETURN count(n)"
    assert ask(count, store=store_id) == [[4]]
    add(store, 7)
    assert same(make_graph(), store)
    assert ask(count, store=store_id) == [[2]]


@needs_server
def test_writing_a_page_twice_does_no_harm(
    store: SQLiteStore, store_id: str, make_graph: MakeGraph, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cypher, "PAGE_CHANGES", 3)
    for number in range(10):
        add(store, number)
    end(store, add(store, 10), on_conflict="delete")
    graph = make_graph()
    assert same(graph, store)
    for seq in (0, 5):
        ask("MATCH (c:Mem0Cursor {store: $store}) SET c.seq = $seq", store=store_id, seq=seq)
        assert same(make_graph(), store)
    add(store, 11)
    assert same(graph, store)  # which still believed in its cursor
    assert ask("MATCH (n:Entity {store: $store}) RETURN count(n)", store=store_id) == [[12]]


@needs_server
def test_a_page_that_another_process_wrote_is_not_written_again(store: SQLiteStore, make_graph: MakeGraph) -> None:
    """Another process writes the page and the next one between our read and our write."""
    triplet = add(store, 1)
    slow, quick = make_graph(), make_graph()
    add(store, 2)
    slow.catch_up()
    read = store.graph.changes

    class Overtaken(Crashing):
        def changes(self, **options: Any) -> GraphChanges:
            page = read(**options)
            if self._pages:
                self._pages = 0
                end(store, triplet, on_conflict="delete")
                quick.catch_up()
            return page

    truth: Any = Overtaken(store.graph, 1)
    late = make_graph(truth)
    add(store, 3)
    assert len(late.relations(ALICE)) == 2
    assert same(late, store)
    assert same(slow, store)


@needs_server
def test_changes_during_the_read_of_a_page_are_read_again(store: SQLiteStore, make_graph: MakeGraph) -> None:
    """A store may read the position that its page reaches after the page itself."""

    class Torn(Crashing):
        def changes(self, **options: Any) -> GraphChanges:
            page = self._truth.changes(**options)
            if self._pages:
                self._pages = 0
                add(store, 2)
            return dataclasses.replace(page, last_seq=self._truth.position().seq)

    add(store, 1)
    truth: Any = Torn(store.graph, 1)
    graph = make_graph(truth)
    graph.catch_up()
    assert same(graph, store)


@needs_server
def test_several_processes_follow_at_once(
    store: SQLiteStore, make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cypher, "PAGE_CHANGES", 4)
    monkeypatch.setattr(cypher, "DELETE_BATCH_NODES", 5)
    for number in range(30):
        add(store, number)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            graph = make_graph(retry_after=0)
            for step in range(5):
                triplet = add(store, 100 + number * 10 + step)
                graph.catch_up()
                if step == 2:
                    end(store, triplet, on_conflict="delete")
                if step == 3 and number == 0:
                    store.erase_scope(BOB, at=LATER, purge=True)  # all start from the beginning
                graph.catch_up()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert same(make_graph(), store)


@needs_server
def test_a_truth_that_went_back_is_followed_back(store: SQLiteStore, make_graph: MakeGraph) -> None:
    """As one does that is restored from a copy: its epoch is the same."""
    gone = add(store, 1)
    kept = store.graph.position()
    graph = make_graph()
    add(store, 2)
    graph.catch_up()
    whole = store.graph.changes

    class Restored(Crashing):
        def position(self) -> ChangePosition:
            return kept

        def changes(self, **options: Any) -> GraphChanges:
            page = whole(**options)
            first = page.relations[:1] if options["after"] == 0 else ()
            return GraphChanges(page.nodes[:2], first, (), (), kept.seq)

    truth: Any = Restored(store.graph, 0)
    assert [relation.triplet for relation in make_graph(truth).relations(ALICE)] == [gone]


@needs_server
def test_what_people_deleted_comes_back_with_the_next_change(
    store: SQLiteStore, store_id: str, make_graph: MakeGraph, ask: Ask
) -> None:
    add(store, 1)
    graph = make_graph()
    graph.catch_up()
    ask("MATCH (n {store: $store}) DETACH DELETE n", store=store_id)
    add(store, 2)
    assert same(graph, store)
    assert len(graph.relations(ALICE)) == 2


@needs_server
def test_a_store_whose_id_begins_with_that_of_another_is_spared(
    store: SQLiteStore, store_id: str, make_graph: MakeGraph
) -> None:
    add(store, 1)
    longer = make_graph(store_id=f"{store_id}:1")
    longer.catch_up()
    other = SQLiteStore(":memory:")
    shorter = make_graph(other.graph)
    add(other, 2)
    shorter.catch_up()
    other.reset()
    assert shorter.relations(ALICE) == []
    assert same(longer, store)
    other.close()


# --- event loops -------------------------------------------------------------------------------------------------


@needs_server
def test_each_event_loop_has_its_connections_and_takes_them_along(store: SQLiteStore, make_graph: MakeGraph) -> None:
    gc.collect()  # connections that other tests left must not be taken for this one's
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = make_graph()
        for number in range(3):
            add(store, number)
            asyncio.run(graph.acatch_up())
            assert graph._async_drivers == {}
        assert len(asyncio.run(graph.arelations(ALICE))) == 3

        async def closes() -> None:
            await graph.acatch_up()
            await graph.arelations(ALICE)
            await graph.aclose()
            assert graph._async_drivers == {}
            assert len(await graph.arelations(ALICE)) == 3  # as after nothing

        asyncio.run(closes())
        gc.collect()


@needs_server
async def test_many_coroutines_search_and_write_at_once(store: SQLiteStore, make_graph: MakeGraph) -> None:
    graph = make_graph()

    async def work(number: int) -> None:
        triplet = await asyncio.to_thread(add, store, number)
        (found,) = await graph.aneighborhoods(ALICE, unit_vectors(3, seed=number)[1:2], threshold=0.99, limit=3)
        relations = store.graph.relations_by_rows([row for row, _ in found.relations], scope=ALICE)
        assert [relation.triplet for relation in relations.values()] == [triplet]

    await asyncio.gather(*(work(number) for number in range(20)))
    assert await graph.arelations(ALICE) == store.graph.relations(ALICE)
    await graph.aclose()


@needs_server
async def test_a_cancelled_call_leaves_it_usable(store: SQLiteStore, make_graph: MakeGraph) -> None:
    graph = make_graph(retry_after=60)
    for number in range(30):
        add(store, number)
    for wait in (0.0, 0.005, 0.02, 0.05):
        with pytest.raises((asyncio.TimeoutError, asyncio.CancelledError)):
            await asyncio.wait_for(asyncio.gather(graph.acatch_up(), asyncio.sleep(60)), wait)
    assert await graph.arelations(ALICE) == store.graph.relations(ALICE)
    await graph.aclose()


# --- direct queries -- --------------------------------------------------------------------------------------------


@needs_server
def test_people_can_read_it_and_search_it_by_vector(
    store: SQLiteStore, store_id: str, make_graph: MakeGraph, ask: Ask
) -> None:
    change = RelationChange(
        Event.ADD,
        Triplet("alice", "lives_in", "Rome"),
        types=("person", "city"),
        vectors=tuple(unit_vectors(3, seed=4242)),
    )
    store.commit((), relations=[change], scope=ALICE, at=AT, embedding_space=SPACE)
    make_graph().catch_up()
    find = "MATCH (n:Entity {store: $store})-[r:RELATES]->(m) WHERE n.user_id = 'alice'"
    rows = ask(
        f"{find} RETURN n.name, n.type, r.name, m.name, m.type, r.weight, r.valid_from, r.valid_to", store=store_id
    )
    assert rows == [["alice", "person", "lives_in", "Rome", "city", 1, AT, None]]
    assert ask(f"{find} RETURN size(n.embedding_16), size(r.embedding_16)", store=store_id) == [[16, 16]]
    ask("CALL db.awaitIndexes(60)")
    near = "CALL db.index.vector.queryNodes('mem0_entity_16', 50, $vector) YIELD node, score WHERE node.store = $store"
    found = ask(
        f"{near} RETURN node.name, score LIMIT 1", vector=unit_vectors(3, seed=4242)[1].tolist(), store=store_id
    )
    assert found == [["Rome", pytest.approx(1.0, abs=0.02)]]


@needs_server
def test_constraints_and_indexes_are_made_once(make_graph: MakeGraph, store: SQLiteStore, ask: Ask) -> None:
    add(store, 1)
    threads = [threading.Thread(target=make_graph().catch_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ours = "YIELD name WHERE name STARTS WITH 'mem0_' RETURN name ORDER BY name"
    before = ask(f"SHOW INDEXES {ours}")
    make_graph().catch_up()
    assert ask(f"SHOW INDEXES {ours}") == before
    assert ask(f"SHOW CONSTRAINTS {ours}") == [["mem0_cursor"], ["mem0_entity"], ["mem0_relates"]]


@needs_server
def test_a_search_costs_what_its_scope_holds(
    make_graph: MakeGraph, store: SQLiteStore, store_id: str, ask: Ask
) -> None:
    """Every match begins at an index: none reads the nodes or relations of everybody."""
    add(store, 1)
    graph = make_graph()
    graph.catch_up()
    ask(
        "UNWIND range(1, 2000) AS i MERGE (a:Entity {key: $store + i})"
        " SET a.store = $store, a.user = 'user:' + i, a.agent = 'agent:' + i, a.run = 'run:' + i"
        " MERGE (a)-[r:RELATES {key: $store + i}]->(a)"
        " SET r.store = $store, r.user = a.user, r.agent = a.agent, r.run = a.run",
        store=store_id,
    )
    ask("CALL db.prepareForReplanning(60)")  # the planner goes by statistics
    seen: list[tuple[str, dict[str, Any]]] = []
    execute = graph._execute

    def spy(statements: Any, **options: Any) -> Any:
        seen.extend(statements)
        return execute(statements, **options)

    graph._execute = spy  # type: ignore[method-assign]
    graph.relations(ALICE)
    graph.neighborhoods(ALICE, unit_vectors(1), threshold=0.5, limit=5)
    graph.nearest_relations(ALICE, unit_vectors(1), 5, threshold=0.5)
    searches = [statement for statement in seen if statement[0].startswith("MATCH")]
    assert len(searches) >= 3
    from neo4j import GraphDatabase

    with GraphDatabase.driver(graph._settings["uri"]) as driver:
        for text, values in searches:
            plan = driver.execute_query(f"EXPLAIN {text}", values).summary.plan
            assert plan is not None
            assert "Scan" not in str(_operators(plan)), text


def _operators(plan: Any) -> list[str]:
    return [plan["operatorType"], *(name for child in plan.get("children", ()) for name in _operators(child))]
