"""The contract suite of graph indexes, run on those that ship."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.contracts import ALICE
from mem0_core.contracts.graph_index import IN_OSLO, IN_ROME, GraphIndexContract
from mem0_core.contracts.samples import LIKES_TEA
from mem0_core.domain.records import new_id
from mem0_core.errors import ConfigError, MissingExtraError, StoreError
from mem0_core.interfaces import GraphIndex, MemoryStore
from mem0_core.stores.graph.embedded import EmbeddedGraph
from mem0_core.stores.graph.ladybug import LadybugGraph
from mem0_core.stores.graph.neo4j import Neo4jGraph
from mem0_core.stores.graph.shared_cypher import MemgraphGraph, NeptuneGraph, SharedCypherGraph
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector.faiss import FaissIndex
from tests.services.bolt_proxy import MEMGRAPH, NEPTUNE, BoltProxy, Profile, find_fault, pack, unpack

MakeIndex = Callable[[MemoryStore], GraphIndex]
FOLLOW = """\
from mem0_core.stores.graph.ladybug import LadybugGraph
from mem0_core.stores.sqlite.store import SQLiteStore

graph = LadybugGraph(SQLiteStore({store!r}).graph, store_id="theirs", db={graph!r})
graph.catch_up()
{then}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    store = SQLiteStore(tmp_path / "store.db", durability="process")
    yield store
    store.close()


@pytest.fixture
def other_store(tmp_path: Path) -> Iterator[MemoryStore]:
    store = SQLiteStore(tmp_path / "other.db", durability="process")
    yield store
    store.close()


class StoreIds(dict[MemoryStore, str]):
    """An id for each store, new in every test: the server is the same for all."""

    def __missing__(self, store: MemoryStore) -> str:
        return self.setdefault(store, new_id())


class Awaited:
    """A graph index with awaited calls, each in an event loop of its own."""

    def __init__(self, graph: Neo4jGraph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._graph, f"a{name}")
        return lambda *args, **kwargs: asyncio.run(call(*args, **kwargs))

    def close(self) -> None:
        self._graph.close()


class TestEmbedded(GraphIndexContract):
    @pytest.fixture
    def make_index(self) -> MakeIndex:
        return lambda store: EmbeddedGraph(
            store.graph, FaissIndex(store.graph.node_vectors), FaissIndex(store.graph.relation_vectors)
        )


class TestLadybug(GraphIndexContract):
    @pytest.fixture
    def make_index(self, tmp_path: Path) -> MakeIndex:
        ids = StoreIds()
        return lambda store: LadybugGraph(store.graph, store_id=ids[store], db=tmp_path / "graph" / "graph.lbug")

    def test_what_it_holds_survives_closing(self, store: MemoryStore, make_index: MakeIndex) -> None:
        first = make_index(store)
        self.add(store, IN_ROME, LIKES_TEA)
        first.catch_up()
        first.close()
        with pytest.raises(StoreError, match="closed"):
            first.relations(ALICE)
        second = make_index(store)
        self.add(store, IN_OSLO, seed=2)
        self.assert_in_sync(store, second)
        second.close()

    def test_one_that_is_never_closed_does_no_harm(self, tmp_path: Path) -> None:
        script = FOLLOW.format(store=str(tmp_path / "store.db"), graph=str(tmp_path / "graph.lbug"), then="")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    def test_a_file_that_another_process_has_open_says_so(self, store: MemoryStore, tmp_path: Path) -> None:
        graph = tmp_path / "graph.lbug"
        script = FOLLOW.format(store=str(tmp_path / "theirs.db"), graph=str(graph), then="print(flush=True); input()")
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as other:
            assert other.stdout
            assert other.stdout.readline() == b"\n"
            index = LadybugGraph(store.graph, store_id="mine", db=graph)
            with pytest.raises(StoreError, match=f"Could not set lock on file.* {other.pid}"):
                index.catch_up()
            other.communicate(b"\n", timeout=60)
        self.add(store, IN_ROME)
        self.assert_in_sync(store, index)
        index.close()

    def test_a_missing_library_is_named(self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ladybug", None)
        with pytest.raises(MissingExtraError, match=r"mem0-core\[ladybug\]"):
            LadybugGraph(store.graph, store_id="s")


@pytest.mark.needs_server
@pytest.mark.usefixtures("patient_neo4j")
class TestNeo4j(GraphIndexContract):
    @pytest.fixture
    def make_index(self, neo4j_server_url: str) -> MakeIndex:
        ids = StoreIds()
        return lambda store: Neo4jGraph(store.graph, store_id=ids[store], url=neo4j_server_url)


@pytest.mark.needs_server
@pytest.mark.usefixtures("patient_neo4j")
class TestNeo4jAwaited(GraphIndexContract):
    @pytest.fixture
    def make_index(self, neo4j_server_url: str) -> Any:
        ids = StoreIds()
        return lambda store: Awaited(Neo4jGraph(store.graph, store_id=ids[store], url=neo4j_server_url))


@pytest.fixture(scope="module")
def memgraph(neo4j_server_url: str) -> Iterator[BoltProxy]:
    with BoltProxy(neo4j_server_url, MEMGRAPH) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def neptune(neo4j_server_url: str) -> Iterator[BoltProxy]:
    with BoltProxy(neo4j_server_url, NEPTUNE) as proxy:
        yield proxy


@pytest.mark.needs_server
@pytest.mark.usefixtures("patient_neo4j")
class TestMemgraph(GraphIndexContract):
    @pytest.fixture
    def make_index(self, memgraph: BoltProxy) -> Iterator[MakeIndex]:
        ids = StoreIds()
        yield lambda store: MemgraphGraph(store.graph, store_id=ids[store], url=memgraph.url)
        assert memgraph.refused == []


@pytest.mark.needs_server
@pytest.mark.usefixtures("patient_neo4j")
class TestNeptuneAwaited(GraphIndexContract):
    @pytest.fixture
    def make_index(self, neptune: BoltProxy) -> Iterator[Any]:
        ids = StoreIds()
        yield lambda store: Awaited(NeptuneGraph(store.graph, store_id=ids[store], endpoint=neptune.url))
        assert neptune.refused == []


@pytest.mark.needs_server
@pytest.mark.usefixtures("patient_neo4j")
@pytest.mark.parametrize("profile", [MEMGRAPH, NEPTUNE], ids=["memgraph", "neptune"])
def test_the_dialect_of_neo4j_is_refused(store: MemoryStore, neo4j_server_url: str, profile: Profile) -> None:
    with BoltProxy(neo4j_server_url, profile) as proxy:
        graph = SharedCypherGraph(store.graph, store_id=new_id(), url=proxy.url)
        graph._dialect = Neo4jGraph(store.graph, store_id="s", url=neo4j_server_url)._dialect
        with pytest.raises(StoreError, match="mismatched input"):
            graph.catch_up()
        graph.close()
        assert len(proxy.refused) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CALL db.labels()", "1:0 mismatched input 'CALL'"),
        ("MATCH (n) CALL { WITH n RETURN 1 } RETURN n", "'CALL'"),
        ("CREATE CONSTRAINT c FOR (n:Entity) REQUIRE n.key IS UNIQUE", "'CONSTRAINT'"),
        ("CREATE VECTOR INDEX v FOR (n:Entity) ON n.embedding", "'VECTOR'"),
        ("MATCH (n) RETURN vector.similarity.cosine(n.a, $v)", "unknown function 'cosine'"),
        ("MATCH (n) RETURN apoc.convert.toJson(n)", "unknown function 'toJson'"),
        ("MATCH (n) RETURN toFloatList(n.a)", "function 'toFloatList' does not exist"),
        ("MATCH (n) WHERE EXISTS { (n)--() } RETURN n", "'{' after 'EXISTS'"),
        ("MATCH (n) RETURN collect(n.row)[..$limit]", "mismatched input '..'"),
        ("MATCH (n) RETURN $unset", "$unset not provided"),
        ("UNWIND $given AS new MERGE (n {key: new.key}) SET n.memories = new.memories", "'memories' is a list"),
    ],
)
def test_statements_of_neo4j_alone_have_a_fault(text: str, reason: str) -> None:
    values = {"v": [0.5], "limit": 1, "given": [{"key": "a", "memories": ["m"]}]}
    assert reason in str(find_fault(text, values))


def test_values_survive_packing() -> None:
    value = {"text": "ü" * 300, "list": [None, True, False, -1, 0, 127, -128, 2**40], "map": {"": []}}
    assert unpack(pack(value)) == value
    with pytest.raises(ValueError, match="cut off"):
        unpack(pack(value)[:-1])


def test_endpoints_of_neptune_become_bolt_urls(store: MemoryStore) -> None:
    graph = NeptuneGraph(store.graph, store_id="s", endpoint="neptune-db://db.example.org")
    assert graph._settings["uri"] == "bolt+s://db.example.org:8182"
    graph.close()
    with pytest.raises(ConfigError, match=r"endpoint.*Analytics.*pass a Neptune database"):
        NeptuneGraph(store.graph, store_id="s", endpoint="neptune-graph://g-1")
    with pytest.raises(ConfigError, match="'endpoint' is missing; add it"):
        NeptuneGraph(store.graph, store_id="s")
