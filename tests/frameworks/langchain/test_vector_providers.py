"""mem0's vector stores by their keys, on the classes of LangChain that are installed (`nox -s vector_stores`: all).

Chroma, Milvus Lite and Qdrant are searched. Pinecone and S3 Vectors run on a client in memory. The others are built
with the real signatures of their classes and clients, and no server answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec, patch

import numpy as np
import pytest

from mem0_core import ConfigError
from mem0_core.catalog import CLIENT_ONLY_STORES, FRAMEWORK_PROVIDERS
from mem0_core.components import module_of
from mem0_core.contracts import DIMS, VectorIndexContract
from mem0_core.interfaces import MemoryStore, VectorIndex
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from mem0_langchain import MemoryVectors
from mem0_langchain.vector_dialects import PARTITION, choose_dialect
from mem0_langchain.vector_providers import VECTOR_STORES, build_vector_store
from mem0_langchain.vectors import vector_store
from tests.support import check_four_parts, open_memory, result_texts

PARTITION_OF_ALICE = '["mem0", "user_id", "al\'ice|1"]'


def require(provider: str) -> None:
    """Skip the test if a package of the provider is not installed."""
    for package in FRAMEWORK_PROVIDERS["vector_store"][provider].split():
        pytest.importorskip(module_of(package))


class PineconeIndex:
    """The calls of Pinecone's index that LangChain's class makes. Numbers come back as floats, as from Pinecone."""

    config = SimpleNamespace(host="localhost", api_key="k")

    def __init__(self) -> None:
        self.entries: dict[str, tuple[list[float], dict[str, Any]]] = {}

    def upsert(self, vectors: list[Any], namespace: Any = None, *, async_req: bool = False) -> Any:
        self.entries.update({id: (vector, dict(metadata)) for id, vector, metadata in vectors})
        return SimpleNamespace(get=lambda: None)

    def delete(self, ids: list[str], namespace: Any = None) -> None:
        for id in ids:
            self.entries.pop(id, None)

    def query(self, *, vector: list[float], top_k: int, filter: dict[str, Any], **options: Any) -> dict[str, Any]:
        ranked = rank(self.entries, vector, filter)[:top_k]
        return {"matches": [{"id": id, "metadata": self._returned(id), "score": score} for score, id in ranked]}

    def fetch(self, ids: list[str], namespace: Any = None) -> Any:
        found = {id: SimpleNamespace(metadata=self._returned(id)) for id in ids if id in self.entries}
        return SimpleNamespace(vectors=found)

    def _returned(self, id: str) -> dict[str, Any]:
        metadata = self.entries[id][1]
        return {key: float(value) if isinstance(value, int) else value for key, value in metadata.items()}


class PineconeClient:
    def __init__(self) -> None:
        self.indexes: dict[str, PineconeIndex] = {}

    def has_index(self, name: str) -> bool:
        return name in self.indexes

    def create_index(self, *, name: str, dimension: int, metric: str, spec: Any) -> None:
        assert (dimension, metric, spec.region) == (DIMS, "cosine", "eu-west-1")
        self.indexes[name] = PineconeIndex()

    def Index(self, name: str) -> PineconeIndex:
        return self.indexes[name]


class S3Client:
    """The calls of boto3's s3vectors client: a missing index is an error, and 100 results are the limit."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[list[float], dict[str, Any]]] | None = None

    def _index(self) -> dict[str, tuple[list[float], dict[str, Any]]]:
        if self.entries is None:
            error = {"Error": {"Code": "NotFoundException"}}
            raise import_module("botocore.exceptions").ClientError(error, "GetIndex")
        return self.entries

    def get_index(self, **place: Any) -> dict[str, Any]:
        self._index()
        return {"index": place}

    def create_index(self, *, dimension: int, distanceMetric: str, **place: Any) -> None:
        assert (dimension, distanceMetric) == (DIMS, "cosine")
        self.entries = {}

    def put_vectors(self, *, vectors: list[dict[str, Any]], **place: Any) -> None:
        self._index().update({one["key"]: (one["data"]["float32"], one["metadata"]) for one in vectors})

    def delete_vectors(self, *, keys: list[str], **place: Any) -> None:
        for key in keys:
            self._index().pop(key, None)

    def get_vectors(self, *, keys: list[str], **place: Any) -> dict[str, Any]:
        found = [{"key": key, "metadata": dict(self._index()[key][1])} for key in keys if key in self._index()]
        return {"vectors": found}

    def query_vectors(self, *, topK: int, queryVector: Any, filter: Any, **place: Any) -> dict[str, Any]:
        assert 1 <= topK <= 100
        ranked = rank(self._index(), queryVector["float32"], filter)[:topK]
        return {"vectors": [{"key": id, "metadata": dict(self._index()[id][1])} for _, id in ranked]}


def rank(entries: dict[str, Any], vector: list[float], filter: dict[str, Any]) -> list[tuple[float, str]]:
    ((key, value),) = filter.items()
    inside = [id for id, (_, metadata) in entries.items() if metadata[key] == value]
    return sorted(((float(np.dot(entries[id][0], vector)), id) for id in inside), reverse=True)


class IndexContract(VectorIndexContract):
    """The contract of every vector index, for a provider by its keys."""

    provider: str

    def keys(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[MemoryStore]:
        with_file = SQLiteStore(tmp_path / "memory.db", durability="process")
        yield with_file
        with_file.close()

    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Iterator[Callable[[MemoryStore], VectorIndex]]:
        require(self.provider)
        keys = self.keys(tmp_path)
        with ExitStack() as opened:

            def make(store: MemoryStore) -> VectorIndex:
                index = vector_store(source=store, provider=self.provider, dims=DIMS, **keys)
                opened.callback(index.close)
                return index

            yield make


class TestChroma(IndexContract):
    provider = "chroma"

    def keys(self, folder: Path) -> dict[str, Any]:
        return {"path": str(folder / "chroma"), "embedding_model_dims": 1536}


class TestMilvus(IndexContract):
    provider = "milvus"

    def keys(self, folder: Path) -> dict[str, Any]:
        return {"url": str(folder / "milvus.db"), "metric_type": "L2"}


class TestPinecone(IndexContract):
    provider = "pinecone"

    def keys(self, folder: Path) -> dict[str, Any]:
        return {"client": PineconeClient(), "serverless_config": {"cloud": "aws", "region": "eu-west-1"}}


class TestS3Vectors(IndexContract):
    provider = "s3_vectors"

    def keys(self, folder: Path) -> dict[str, Any]:
        return {"client": S3Client(), "vector_bucket_name": "facts", "collection_name": "mem0"}


@pytest.mark.parametrize("provider", ["chroma", "milvus", "qdrant"])
def test_a_memory_searches_in_a_store_of_mem0s_keys_and_finds_it_again(tmp_path: Path, provider: str) -> None:
    require(provider)
    place = {"url": str(tmp_path / "milvus.db")} if provider == "milvus" else {"path": str(tmp_path / provider)}
    config = {"vector_store": {"provider": provider, "config": {**place, "embedding_model_dims": 1536}}}
    for turn in range(2):
        with open_memory(tmp_path, config=config) as memory:
            if not turn:
                memory.add("I like tea", user_id="al'ice|1")
                memory.add("I like coffee", user_id="Al'ice|1")
            assert result_texts(memory.search("tea", user_id="al'ice|1")) == ["I like tea"]
            assert result_texts(memory.search("coffee", user_id="Al'ice|1")) == ["I like coffee"]
            index: Any = memory._index
            assert not [difference for user in index.list_partitions() if (difference := index.compare(user))]
            assert len(index.list_partitions()) == 2


class Build:
    """The arguments of LangChain's class for a provider, checked against its signature."""

    def __init__(self, provider: str, *clients: str) -> None:
        require(provider)
        self.provider = provider
        self.clients = clients

    def arguments(self, **keys: Any) -> dict[str, Any]:
        chosen = VECTOR_STORES[self.provider]
        module = import_module(chosen.module)
        real = getattr(module, chosen.name)
        made = create_autospec(real)
        made.return_value.embeddings = None
        made.return_value._index_name = "mem0_vectors"
        with ExitStack() as patches:
            for client in self.clients:
                place, _, name = client.rpartition(".")
                patches.enter_context(patch.object(import_module(place), name, autospec=True))
            patches.enter_context(patch.object(module, chosen.name, made))
            patches.enter_context(patch("mem0_langchain.vector_providers._create_by_entry"))
            patches.enter_context(patch("mem0_langchain.vector_providers._create_valkey_index"))
            build_vector_store(self.provider, MemoryVectors(DIMS), DIMS, keys)
        bound = inspect.signature(real).bind(*made.call_args.args, **made.call_args.kwargs).arguments
        return {**bound, **bound.get("kwargs", {})}


def test_elasticsearch_by_mem0s_keys() -> None:
    build = Build("elasticsearch")
    given = build.arguments(host="https://es.example", port=9243, user="me", password="p", verify_certs=False)
    assert given["es_url"] == "https://es.example:9243"
    assert (given["es_user"], given["es_password"], given["es_params"]) == ("me", "p", {"verify_certs": False})
    assert given["metadata_mappings"] == {PARTITION: {"type": "keyword"}}
    assert build.arguments(host="localhost", use_ssl=False)["es_url"] == "http://localhost:9200"
    cloud = build.arguments(cloud_id="c", api_key="k", collection_name="facts")
    assert (cloud["es_cloud_id"], cloud["es_api_key"], cloud["index_name"]) == ("c", "k", "facts")
    assert "es_url" not in cloud


def test_opensearch_by_mem0s_keys() -> None:
    given = Build("opensearch").arguments(host="os.example", user="me", password="p", use_ssl=True, verify_certs=True)
    assert given["opensearch_url"] == "https://os.example:9200"
    assert (given["http_auth"], given["verify_certs"]) == (("me", "p"), True)


def test_redis_by_mem0s_keys() -> None:
    given = Build("redis").arguments(redis_url="redis://r.example:6379", collection_name="facts")
    config = given["config"]
    assert (config.redis_url, config.index_name, config.embedding_dimensions) == (
        "redis://r.example:6379",
        "facts",
        DIMS,
    )
    assert config.metadata_schema[0]["attrs"]["case_sensitive"] is True


def test_valkey_by_mem0s_keys() -> None:
    given = Build("valkey").arguments(valkey_url="valkey://v.example:6379", collection_name="facts", timezone="UTC")
    assert (given["valkey_url"], given["index_name"]) == ("valkey://v.example:6379", "facts")
    assert given["vector_schema"]["algorithm"] == "HNSW"


@pytest.mark.parametrize(
    ("keys", "called", "given"),
    [
        ({"cluster_url": "http://localhost:8080"}, "connect_to_custom", {"http_port": 8080, "http_secure": False}),
        ({"cluster_url": "http://w:80"}, "connect_to_custom", {"http_host": "w", "http_port": 80, "grpc_port": 50051}),
        (
            {"cluster_url": "https://x.weaviate.cloud", "auth_client_secret": "s"},
            "connect_to_weaviate_cloud",
            {"cluster_url": "https://x.weaviate.cloud"},
        ),
    ],
)
def test_weaviate_by_mem0s_keys(keys: dict[str, Any], called: str, given: dict[str, Any]) -> None:
    build = Build("weaviate")
    with patch(f"weaviate.{called}", autospec=True) as connect:
        assert build.arguments(**keys, collection_name="mem0")["index_name"] == "Mem0"
    assert given.items() <= connect.call_args.kwargs.items()


def test_mongodb_by_mem0s_keys() -> None:
    build = Build("mongodb", "pymongo.MongoClient")
    given = build.arguments(mongo_uri="mongodb://m.example", db_name="facts")
    assert (given["auto_create_index"], given["index_name"]) == (False, "mem0_vectors")


def test_azure_ai_search_by_mem0s_keys() -> None:
    given = Build("azure_ai_search").arguments(service_name="facts", api_key="k", compression_type="scalar")
    assert (given["azure_search_endpoint"], given["azure_search_key"]) == ("https://facts.search.windows.net", "k")
    assert [field.name for field in given["fields"] if field.filterable] == ["id", PARTITION]


def test_upstash_by_mem0s_keys() -> None:
    given = Build("upstash_vector").arguments(url="https://u.example", token="t", collection_name="facts")
    assert (given["index_url"], given["index_token"], given["namespace"]) == ("https://u.example", "t", "facts")


def test_turbopuffer_by_mem0s_keys() -> None:
    given = Build("turbopuffer").arguments(api_key="k", region="aws-eu-west-1", collection_name="facts")
    assert given["namespace"]._client.api_key == "k"


def test_cassandra_by_mem0s_keys() -> None:
    build = Build("cassandra", "cassandra.cluster.Cluster")
    given = build.arguments(contact_points=["10.0.0.1"], username="me", password="p", keyspace="facts")
    assert (given["keyspace"], given["table_name"]) == ("facts", "memories")
    with pytest.raises(ConfigError) as raised:
        build.arguments(keyspace="facts; DROP KEYSPACE mem0")
    check_four_parts(str(raised.value), ("keyspace", "'facts; DROP", "letters, digits and _", "pass, for example"))


def test_databricks_by_mem0s_keys() -> None:
    build = Build("databricks", "databricks.ai_search.client.VectorSearchClient")
    keys = {"workspace_url": "https://d.example", "access_token": "t", "catalog": "main", "schema": "ai"}
    given = build.arguments(**keys, endpoint_name="e", table_name="facts", collection_name="mem0")
    assert given["index_name"] == "main.ai.mem0"
    assert given["client_args"]["personal_access_token"] == "t"
    with pytest.raises(ConfigError) as raised:
        build.arguments(**keys, index_type="DELTA_SYNC")
    check_four_parts(str(raised.value), ("index_type", "'DELTA_SYNC'", "'DIRECT_ACCESS'", "pass 'DIRECT_ACCESS'"))


@pytest.mark.parametrize("provider", sorted(VECTOR_STORES))
def test_the_arguments_of_a_search_are_those_of_the_class(provider: str) -> None:
    require(provider)
    chosen = VECTOR_STORES[provider]
    real = getattr(import_module(chosen.module), chosen.name)
    dialect = choose_dialect(real.__new__(real))
    arguments = dialect.search_arguments(PARTITION_OF_ALICE, 10)
    inspect.signature(real.similarity_search).bind(None, "tea", k=10, **arguments)


@pytest.mark.parametrize("provider", ["milvus", "chroma", "redis", "qdrant"])
def test_a_misspelled_key_is_refused_when_the_memory_is_opened(tmp_path: Path, provider: str) -> None:
    require(provider)
    chosen = {"provider": provider, "config": {"colection_name": "facts", "namespace": "mine"}}
    with pytest.raises(ConfigError) as raised:
        open_memory(tmp_path, config={"vector_store": chosen})
    where = f"vector_store.config ({provider})"
    check_four_parts(str(raised.value), (where, "'colection_name'", "accepted: ", "did you mean 'collection_name'?"))


@pytest.mark.parametrize("provider", sorted(CLIENT_ONLY_STORES))
def test_a_store_without_a_class_says_why(tmp_path: Path, provider: str) -> None:
    with pytest.raises(ConfigError) as raised, open_memory(tmp_path, config={"vector_store": provider}) as memory:
        memory.add("I like tea", user_id="alice")
    parts = ("vector_store", repr(provider), "providers: azure_ai_search", "choose another provider, or pass")
    check_four_parts(str(raised.value), parts)


def test_a_client_that_the_memory_opened_is_closed_with_it(tmp_path: Path) -> None:
    config = {"vector_store": {"provider": "qdrant", "config": {"path": str(tmp_path / "qdrant")}}}
    for _ in range(2):  # a second client of the folder is refused while the first is open
        with open_memory(tmp_path, config=config, embedder=HashEmbedder()) as memory:
            memory.add("I like tea", user_id="alice")
            assert result_texts(memory.search("tea", user_id="alice")) == ["I like tea"]
