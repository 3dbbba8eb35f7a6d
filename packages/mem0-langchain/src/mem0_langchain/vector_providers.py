"""LangChain's vector stores by mem0's provider names: ``vector_store: {"provider": "qdrant", "config": {...}}``.

Each provider takes mem0's keys, and the arguments of LangChain's class. A collection that does not exist is created.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from langchain_core.vectorstores import VectorStore

from mem0_core import ConfigError, MissingExtraError
from mem0_core.catalog import FRAMEWORK_PROVIDERS
from mem0_core.domain.suggestions import suggest
from mem0_langchain.vector_dialects import PARTITION, choose_dialect

__all__ = ["VECTOR_STORES", "build_vector_store", "check_keys"]

Keys = dict[str, Any]
Make = Callable[..., Any]

_COLLECTION = "mem0"

_WITHOUT_EFFECT = (
    *("embedding_model_dims", "embedding_dimension", "embedding_model_endpoint_name", "enable_embeddings"),
    *("metric", "metric_type", "distance_metric", "index_measure", "distance_strategy", "normalize_L2"),
    *("hybrid_search", "vector_filter_mode", "query_type", "custom_search_query", "auto_create_index", "batch_size"),
    *("compression_type", "use_float16", "timezone", "environment", "table_name", "warehouse_name"),
    *("hnsw_m", "hnsw_ef_construction", "hnsw_ef_runtime", "endpoint_type", "pipeline_type", "pool_maxsize"),
)
"""Keys of mem0 that decide nothing here: vectors come from the embedder, at length one, and only propose candidates."""


def build_vector_store(provider: str, embedding: Any, dims: int, keys: Keys) -> VectorStore:
    """Build the vector store of a provider from mem0's keys, which `check_keys` has checked.

    Args:
        embedding: `MemoryVectors`, which return the memory's own vectors.
        dims: Length of these vectors.

    Raises:
        ConfigError: A key is wrong, or the server refuses the connection.
        MissingExtraError: The packages of the provider are not installed.
    """
    given = {key: value for key, value in keys.items() if value is not None}
    chosen = VECTOR_STORES[provider]
    try:
        make = _load(chosen.module, chosen.name)
        useful = {key: value for key, value in given.items() if key in chosen.keys or key not in _WITHOUT_EFFECT}
        store: VectorStore = chosen.build(make, embedding, dims, useful)
        if chosen.needs_entry:
            _create_by_entry(store)
    except ImportError as error:
        packages = f"mem0-langchain {FRAMEWORK_PROVIDERS['vector_store'][provider]}"
        raise MissingExtraError(f"vector_store: the library of {provider!r}", packages=packages) from error
    except ConfigError:
        raise
    except Exception as error:  # clients raise errors of their own for wrong keys and unreachable servers
        raise ConfigError(
            f"vector_store.config ({provider}): LangChain cannot open the store with the keys"
            f" {', '.join(sorted(given)) or 'none'}: {type(error).__name__}: {error}; accepted:"
            f" {', '.join(chosen.keys)}; check their values, and that the server answers"
        ) from error
    return store


def _load(module: str, name: str) -> Make:
    loaded: Make = getattr(import_module(module), name)
    return loaded


def check_keys(provider: str, keys: Keys) -> None:
    """Raise ConfigError for a key that neither mem0 nor LangChain's class knows, which is imported for this alone."""
    chosen = VECTOR_STORES[provider]
    others = [key for key in keys if key not in {*chosen.keys, *_WITHOUT_EFFECT, *chosen.passed_on}]
    if not others:
        return
    parameters = inspect.signature(_load(chosen.module, chosen.name)).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    accepted = [*chosen.keys, *(name for name in names if "embedding" not in name and name not in chosen.keys)]
    for key in others:
        if key not in accepted:
            raise ConfigError(
                f"vector_store.config ({provider}): unknown key {key!r}{suggest(key, accepted)}; rename it, or leave it"
                " out"
            )


def _create_by_entry(store: VectorStore) -> None:
    """Let LangChain's class create the index: it does so when it writes its first entry."""
    dialect = choose_dialect(store)
    id = "00000000-0000-5000-8000-000000000000"
    dialect.add(["mem0"], [{PARTITION: "", "mem0_row": 0}], [id])
    dialect.delete([id])


def _take(keys: Keys, *names: str) -> Keys:
    """Remove some keys, and return those that are given."""
    return {name: keys.pop(name) for name in names if name in keys}


def _rename(keys: Keys, **names: str) -> Keys:
    """Return keys under the names of LangChain's class: ``_rename(keys, path="persist_directory")``."""
    return {names.get(key, key): value for key, value in keys.items()}


def _build_qdrant(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    models = import_module("qdrant_client").models
    on_disk = bool(keys.pop("on_disk", False))
    options = _take(keys, *_QDRANT_CLIENT)
    client = keys.pop("client", None)
    if client is None:
        client = _load("qdrant_client", "QdrantClient")(**(options or {"location": ":memory:"}))
    name = keys.pop("collection_name", _COLLECTION)
    if not client.collection_exists(name):
        vectors = models.VectorParams(size=dims, distance=models.Distance.COSINE, on_disk=on_disk)
        client.create_collection(name, vectors_config=vectors)
    return make(client=client, collection_name=name, embedding=embedding, **keys)


def _build_chroma(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    space = {"collection_name": _COLLECTION, "collection_metadata": {"hnsw:space": "cosine"}}
    options = _rename(keys, path="persist_directory", api_key="chroma_cloud_api_key")
    return make(**{**space, **options, "embedding_function": embedding})


def _build_pinecone(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    pinecone = import_module("pinecone")
    extra = keys.pop("extra_params", {})
    client = keys.pop("client", None) or pinecone.Pinecone(**_take(keys, "api_key"), **extra)
    name = keys.pop("collection_name", _COLLECTION)
    pod, serverless = keys.pop("pod_config", None), keys.pop("serverless_config", None)
    if not client.has_index(name):
        place = serverless or {"cloud": "aws", "region": "us-west-2"}  # mem0's default
        spec = pinecone.PodSpec(**pod) if pod else pinecone.ServerlessSpec(**place)
        client.create_index(name=name, dimension=dims, metric="cosine", spec=spec)
    return make(index=client.Index(name), embedding=embedding, **keys)


def _build_milvus(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    place = {"uri": "http://localhost:19530", **_rename(_take(keys, "url", "token", "db_name"), url="uri")}
    options = {
        "collection_name": _COLLECTION,
        "connection_args": place,
        "index_params": {"metric_type": "COSINE", "index_type": "AUTOINDEX", "params": {}},
        "enable_dynamic_field": True,
        "consistency_level": "Strong",
    }
    return make(embedding, **{**options, **keys})


def _build_weaviate(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    name = keys.pop("collection_name", _COLLECTION)
    client = _connect_to_weaviate(keys) if "client" not in keys else keys.pop("client")
    texts = [{"name": "text", "dataType": ["text"]}]
    texts += [{"name": PARTITION, "dataType": ["text"], "tokenization": "field"}]  # filters compare whole values
    schema = {"class": name[:1].upper() + name[1:], "properties": texts, "vectorizer": "none"}
    options = {"index_name": schema["class"], "schema": schema, "text_key": "text"}
    return make(client=client, embedding=embedding, **{**options, **keys})


def _connect_to_weaviate(keys: Keys) -> Any:
    weaviate = import_module("weaviate")
    url = urlsplit(keys.pop("cluster_url", "http://localhost:8080"))
    secret, headers = keys.pop("auth_client_secret", None), keys.pop("additional_headers", None)
    auth = None if secret is None else weaviate.auth.Auth.api_key(secret)
    if auth is not None and url.hostname not in ("localhost", "127.0.0.1"):
        return weaviate.connect_to_weaviate_cloud(cluster_url=url.geturl(), auth_credentials=auth, headers=headers)
    secure = url.scheme == "https"
    return weaviate.connect_to_custom(
        http_host=url.hostname or "localhost",
        http_port=url.port or (443 if secure else 8080),
        http_secure=secure,
        grpc_host=url.hostname or "localhost",
        grpc_port=50051,
        grpc_secure=secure,
        auth_credentials=auth,
        headers=headers,
    )


def _build_redis(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    # JSON text has no control characters, so no partition is split; by default tags ignore case.
    tag = {"name": PARTITION, "type": "tag", "attrs": {"separator": "\x1f", "case_sensitive": True}}
    options = {
        "index_name": keys.pop("collection_name", _COLLECTION),
        "embedding_dimensions": dims,
        "distance_metric": "COSINE",
        "metadata_schema": [tag],
    }
    return make(embedding, config=_load("langchain_redis", "RedisConfig")(**{**options, **keys}))


def _build_valkey(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    name = keys.pop("collection_name", _COLLECTION)
    kind = str(keys.pop("index_type", "hnsw")).upper()
    schema = {"name": "content_vector", "algorithm": kind, "dims": dims, "distance_metric": "COSINE"}
    store = make(index_name=name, embedding=embedding, **{"vector_schema": schema, **keys})
    _create_valkey_index(store, dims, kind)
    return store


def _create_valkey_index(store: Any, dims: int, kind: str) -> None:
    """Create the index with a field to filter by, which LangChain's class does not."""
    if _load("langchain_aws.utilities.valkey", "check_index_exists")(store.client, store.index_name):
        return
    fields = import_module("glide_shared.commands.server_modules.ft_options.ft_create_options")
    attributes = fields.VectorFieldAttributesFlat if kind == "FLAT" else fields.VectorFieldAttributesHnsw
    vector = fields.VectorField(
        name="content_vector",
        algorithm=fields.VectorAlgorithm[kind],
        attributes=attributes(
            dimensions=dims, distance_metric=fields.DistanceMetricType.COSINE, type=fields.VectorType.FLOAT32
        ),
        alias="content_vector",
    )
    tag = fields.TagField(PARTITION, separator="\x1f", case_sensitive=True)
    options = fields.FtCreateOptions(prefixes=[store.key_prefix])
    import_module("glide_sync.ft").create(store.client, store.index_name, [vector, tag], options=options)


def _address(keys: Keys, *, is_secure: bool) -> str:
    """Return the URL of mem0's keys ``host``, ``port`` and ``use_ssl``."""
    host, port = str(keys.pop("host", "localhost")), keys.pop("port", 9200)
    secure = keys.pop("use_ssl", is_secure)
    url = urlsplit(host if "://" in host else f"{'https' if secure else 'http'}://{host}")
    return url.geturl() if url.port or url.path.strip("/") else f"{url.scheme}://{url.netloc}:{port}"


def _build_elasticsearch(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    place = {"es_cloud_id": keys.pop("cloud_id")} if "cloud_id" in keys else {}
    url = _address(keys, is_secure=True)
    options = {
        "index_name": keys.pop("collection_name", _COLLECTION),
        "num_dimensions": dims,
        "metadata_mappings": {PARTITION: {"type": "keyword"}},
        "es_params": _take(keys, "verify_certs", "headers"),
        **({} if "client" in keys else place or {"es_url": url}),
    }
    named = _rename(keys, user="es_user", password="es_password", api_key="es_api_key")
    return make(embedding=embedding, **{**options, **named})


def _build_opensearch(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    user = _take(keys, "user", "password")
    options = {
        "opensearch_url": _address(keys, is_secure=False),
        "index_name": keys.pop("collection_name", _COLLECTION),
        "engine": "faiss",  # it filters while it searches
        **({"http_auth": (user["user"], user.get("password", ""))} if "user" in user else {}),
    }
    if "api_key" in keys:
        options["headers"] = {"Authorization": f"ApiKey {keys.pop('api_key')}"}
    return make(embedding_function=embedding, **{**options, **keys})


def _build_mongodb(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    uri = keys.pop("mongo_uri", "mongodb://localhost:27017")
    client = keys.pop("client", None) or _load("pymongo", "MongoClient")(uri)
    collection = client[keys.pop("db_name", "mem0_db")][keys.pop("collection_name", _COLLECTION)]
    store = make(collection, embedding, **{"index_name": "mem0_vectors", "auto_create_index": False, **keys})
    if not any(index["name"] == store._index_name for index in collection.list_search_indexes()):
        store.create_vector_search_index(dimensions=dims, filters=[PARTITION], wait_until_complete=_INDEX_SECONDS)
    return store


_INDEX_SECONDS = 60  # to wait for a new search index of MongoDB


def _build_azure_ai_search(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    index = import_module("azure.search.documents.indexes.models")
    text = index.SearchFieldDataType.String
    fields = [
        index.SimpleField(name="id", type=text, key=True, filterable=True),
        index.SearchableField(name="content", type=text),
        index.SearchField(
            name="content_vector",
            type=index.SearchFieldDataType.Collection(index.SearchFieldDataType.Single),
            searchable=True,
            vector_search_dimensions=dims,
            vector_search_profile_name="myHnswProfile",  # the class makes a profile of this name
        ),
        index.SearchableField(name="metadata", type=text),
        index.SimpleField(name=PARTITION, type=text, filterable=True),
    ]
    options: Keys = {"azure_search_key": keys.pop("api_key", None), "fields": fields, "search_type": "similarity"}
    if "service_name" in keys:
        options["azure_search_endpoint"] = f"https://{keys.pop('service_name')}.search.windows.net"
    options["index_name"] = keys.pop("collection_name", _COLLECTION)
    return make(embedding_function=embedding, vector_search_dimensions=dims, **{**options, **keys})


def _build_upstash(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    options = _rename(keys, url="index_url", token="index_token", client="index", collection_name="namespace")
    return make(embedding=embedding, **{"namespace": _COLLECTION, **options})


def _build_turbopuffer(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    extra = keys.pop("extra_params", {})
    place = {"region": "gcp-us-central1", **_take(keys, "api_key", "region")}
    client = _load("turbopuffer", "Turbopuffer")(**place, **extra)
    namespace = client.namespace(keys.pop("collection_name", _COLLECTION))
    return make(**{"namespace": namespace, "embedding": embedding, **keys})


def _build_s3_vectors(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    options = {"index_name": keys.pop("collection_name", _COLLECTION), "distance_metric": "cosine"}
    return make(embedding=embedding, **{**options, **keys})


def _build_cassandra(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    keyspace, table = keys.pop("keyspace", "mem0"), keys.pop("collection_name", "memories")
    session = keys.pop("session", None) or _connect_to_cassandra(keys)
    if not keyspace.isidentifier():  # it is part of a statement
        raise ConfigError(
            f"vector_store.config.keyspace (cassandra): a name of letters, digits and _ is required, not {keyspace!r};"
            " pass, for example, 'mem0'"
        )
    session.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace}"
        " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    return make(embedding=embedding, session=session, keyspace=keyspace, table_name=table, **keys)


def _connect_to_cassandra(keys: Keys) -> Any:
    options = {"protocol_version": 4, **_take(keys, "port", "protocol_version", "load_balancing_policy")}
    user = _take(keys, "username", "password")
    if user:
        options["auth_provider"] = _load("cassandra.auth", "PlainTextAuthProvider")(**user)
    points, bundle = keys.pop("contact_points", ["127.0.0.1"]), keys.pop("secure_connect_bundle", None)
    place = {"cloud": {"secure_connect_bundle": bundle}} if bundle else {"contact_points": points}
    return _load("cassandra.cluster", "Cluster")(**place, **options).connect()


def _build_databricks(make: Make, embedding: Any, dims: int, keys: Keys) -> Any:
    kind = keys.pop("index_type", "DIRECT_ACCESS")
    kind = getattr(kind, "value", kind)  # mem0 has an enumeration for it
    if kind != "DIRECT_ACCESS":
        raise ConfigError(
            f"vector_store.config.index_type (databricks): {kind!r} cannot be written; pass 'DIRECT_ACCESS', with the"
            " collection_name of an index of this type or of none"
        )
    login = _rename(
        _take(keys, "workspace_url", "access_token", "client_id", "client_secret"),
        access_token="personal_access_token",
        client_id="service_principal_client_id",
        client_secret="service_principal_client_secret",
    )
    client = _load("databricks.ai_search.client", "VectorSearchClient")(disable_notice=True, **login)
    places = _take(keys, "catalog", "schema")
    name = ".".join([*places.values(), keys.pop("collection_name", _COLLECTION)])
    endpoint = keys.pop("endpoint_name", None)
    if not client.index_exists(index_name=name):
        client.create_direct_access_index(
            endpoint_name=endpoint,
            index_name=name,
            primary_key="id",
            embedding_dimension=dims,
            embedding_vector_column="vector",
            schema={"id": "string", "text": "string", "vector": "array<float>", **_DATABRICKS_COLUMNS},
        )
    options = {"text_column": "text", "columns": ["id", *_DATABRICKS_COLUMNS], "client_args": login}
    return make(index_name=name, embedding=embedding, **{**options, **keys})


_DATABRICKS_COLUMNS = {
    **dict.fromkeys([PARTITION, "mem0_epoch", "mem0_of"], "string"),
    **dict.fromkeys(["mem0_row", "mem0_seq", "mem0_place"], "long"),
}
"""Columns of the metadata of entries and of positions."""

_QDRANT_CLIENT = ("url", "host", "port", "path", "api_key", "location", "https", "grpc_port", "prefer_grpc", "prefix")


class Provider(NamedTuple):
    """LangChain's class of a provider."""

    module: str
    name: str
    build: Callable[[Make, Any, int, Keys], Any]
    keys: tuple[str, ...]
    """mem0's keys."""
    passed_on: tuple[str, ...] = ()
    """Names that the class takes beyond its signature."""
    needs_entry: bool = False
    """The class creates its index with the first entry, and fails to search before."""


def _named(keys: str) -> tuple[str, ...]:
    return ("collection_name", *keys.split())


VECTOR_STORES: dict[str, Provider] = {
    "azure_ai_search": Provider(
        "langchain_azure_ai.vectorstores", "AzureSearch", _build_azure_ai_search, _named("service_name api_key")
    ),
    "cassandra": Provider(
        "langchain_community.vectorstores",
        "Cassandra",
        _build_cassandra,
        _named(
            "contact_points port username password keyspace secure_connect_bundle protocol_version"
            " load_balancing_policy"
        ),
    ),
    "chroma": Provider("langchain_chroma", "Chroma", _build_chroma, _named("client path host port api_key tenant")),
    "databricks": Provider(
        "databricks_langchain",
        "DatabricksVectorSearch",
        _build_databricks,
        _named("workspace_url access_token client_id client_secret endpoint_name catalog schema index_type"),
    ),
    "elasticsearch": Provider(
        "langchain_elasticsearch",
        "ElasticsearchStore",
        _build_elasticsearch,
        _named("host port user password cloud_id api_key verify_certs use_ssl headers"),
        needs_entry=True,
    ),
    "milvus": Provider("langchain_milvus", "Milvus", _build_milvus, _named("url token db_name")),
    "mongodb": Provider(
        "langchain_mongodb", "MongoDBAtlasVectorSearch", _build_mongodb, _named("db_name mongo_uri client")
    ),
    "opensearch": Provider(
        "langchain_community.vectorstores",
        "OpenSearchVectorSearch",
        _build_opensearch,
        _named("host port user password api_key verify_certs use_ssl http_auth"),
        passed_on=("engine", "bulk_size", "routing", "headers", "timeout", "connection_class", "ca_certs"),
        needs_entry=True,
    ),
    "pinecone": Provider(
        "langchain_pinecone",
        "PineconeVectorStore",
        _build_pinecone,
        _named("client api_key serverless_config pod_config extra_params namespace"),
    ),
    "qdrant": Provider(
        "langchain_qdrant", "QdrantVectorStore", _build_qdrant, _named(f"client on_disk {' '.join(_QDRANT_CLIENT)}")
    ),
    "redis": Provider(
        "langchain_redis",
        "RedisVectorStore",
        _build_redis,
        _named("redis_url"),
        passed_on=("key_prefix", "redis_client"),
    ),
    "s3_vectors": Provider(
        "langchain_aws.vectorstores",
        "AmazonS3Vectors",
        _build_s3_vectors,
        _named("vector_bucket_name region_name"),
        needs_entry=True,
    ),
    "turbopuffer": Provider(
        "langchain_turbopuffer",
        "TurbopufferVectorStore",
        _build_turbopuffer,
        _named("api_key region extra_params"),
        needs_entry=True,
    ),
    "upstash_vector": Provider(
        "langchain_community.vectorstores", "UpstashVectorStore", _build_upstash, _named("url token client")
    ),
    "valkey": Provider(
        "langchain_aws.vectorstores",
        "ValkeyVectorStore",
        _build_valkey,
        _named("valkey_url index_type"),
        passed_on=("request_timeout", "use_tls"),
    ),
    "weaviate": Provider(
        "langchain_weaviate",
        "WeaviateVectorStore",
        _build_weaviate,
        _named("client cluster_url auth_client_secret additional_headers"),
    ),
}
"""LangChain's class of each provider, and mem0's keys for it."""
