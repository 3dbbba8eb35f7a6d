"""Differences between LangChain's vector stores: how each one filters, limits its results and looks up ids.

`mem0_langchain.vectors` writes entries with the metadata ``mem0_partition`` and searches within one partition. The
stores share a base class, and name their filters differently. A dialect is found by the name of the store's class.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

__all__ = ["PARTITION", "Dialect", "choose_dialect"]

PARTITION = "mem0_partition"
"""Metadata key that each search filters by."""

Metadata = Mapping[str, Any]

_NUMBERS = ("mem0_row", "mem0_seq", "mem0_place")
"""Metadata keys with whole numbers, which some stores return as floats or as text."""

_LOOKUP_IDS = 100  # ids in one request, the lowest limit of the services


class Dialect:
    """The calls to one store. This class serves stores that take ``filter={key: value}`` (Chroma, pgvector, ...)."""

    max_results = 10_000
    """Number of results that one search may ask for."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def add(self, texts: list[str], metadatas: list[dict[str, Any]], ids: list[str]) -> None:
        """Write entries under their ids."""
        self.store.add_texts(texts, metadatas=metadatas, ids=ids)

    def delete(self, ids: list[str]) -> None:
        """Remove entries; missing ones are ignored."""
        self.store.delete(ids)

    def search(self, text: str, k: int, partition: str) -> list[Metadata]:
        """Return the metadata of the k nearest entries of a partition."""
        k = min(k, self.max_results)
        found = self.store.similarity_search(text, k=k, **self.search_arguments(partition, k))
        return [read_numbers(document.metadata) for document in found]

    def read(self, ids: list[str]) -> list[Metadata]:
        """Return the metadata of the entries that exist.

        Raises:
            NotImplementedError: the store cannot look up ids.
        """
        found = [self.look_up(ids[start : start + _LOOKUP_IDS]) for start in range(0, len(ids), _LOOKUP_IDS)]
        return [read_numbers(metadata) for some in found for metadata in some]

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        """Return the arguments of ``similarity_search`` that keep to a partition."""
        return {"filter": {PARTITION: partition}}

    def look_up(self, ids: list[str]) -> list[Metadata]:
        """Return the metadata of some entries by id."""
        return [document.metadata for document in self.store.get_by_ids(ids)]


def read_numbers(metadata: Metadata) -> Metadata:
    """Return metadata with whole numbers as `int`."""
    numbers = {key: int(float(metadata[key])) for key in _NUMBERS if metadata.get(key) is not None}
    return {**metadata, **numbers}


class FilteredDialect(Dialect):
    """A store with a filter that the caller makes."""

    def __init__(self, store: Any, make_filter: Callable[[Mapping[str, str]], Any]) -> None:
        super().__init__(store)
        self._make_filter = make_filter

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"filter": self._make_filter({PARTITION: partition})}


class _InMemory(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        def is_inside(document: Document) -> bool:
            return document.metadata.get(PARTITION) == partition

        return {"filter": is_inside}


class _Qdrant(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        models = import_module("qdrant_client").models
        inside = models.FieldCondition(key=f"metadata.{PARTITION}", match=models.MatchValue(value=partition))
        return {"filter": models.Filter(must=[inside])}


class _Pinecone(Dialect):
    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store.index.fetch(ids=ids, namespace=self.store._namespace)
        return [vector.metadata for vector in found.vectors.values()]


class _Milvus(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"expr": f"{PARTITION} == {json.dumps(partition)}"}

    def delete(self, ids: list[str]) -> None:
        if self._exists():
            super().delete(ids)

    def look_up(self, ids: list[str]) -> list[Metadata]:
        if not self._exists():
            return []
        found: list[Metadata] = self.store.client.get(self.store.collection_name, ids=ids, output_fields=["*"])
        return found

    def _exists(self) -> bool:
        return bool(self.store.client.has_collection(self.store.collection_name))


class _Weaviate(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        by_property = import_module("weaviate.classes.query").Filter.by_property
        return {"filters": by_property(PARTITION).equal(partition), "alpha": 1}  # 1: vectors only

    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store._collection.query.fetch_objects_by_ids(ids, limit=len(ids))
        return [entry.properties for entry in found.objects]


class _Redis(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"filter": import_module("redisvl.query.filter").Tag(PARTITION) == partition}


class _Valkey(Dialect):
    """LangChain's class ignores ``ids``: its keys are ids with a prefix."""

    def add(self, texts: list[str], metadatas: list[dict[str, Any]], ids: list[str]) -> None:
        self.store.add_texts(texts, metadatas=metadatas, keys=self._keys(ids))

    def delete(self, ids: list[str]) -> None:
        super().delete(self._keys(ids))

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        tag = import_module("langchain_aws.vectorstores.valkey.filters").ValkeyTag(PARTITION)
        return {"filter": str(tag == partition)}

    def _keys(self, ids: Sequence[str]) -> list[str]:
        return [f"{self.store.key_prefix}:{id}" for id in ids]


class _Elasticsearch(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"filter": [{"term": {f"metadata.{PARTITION}": partition}}], "fetch_k": max(k, 50)}

    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store.client.mget(index=self.store._store.index, ids=ids)["docs"]
        return [entry["_source"]["metadata"] for entry in found if entry.get("found")]


class _OpenSearch(Dialect):
    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        inside = {"term": {f"metadata.{PARTITION}.keyword": partition}}
        return {"efficient_filter": {"bool": {"filter": [inside]}}}

    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store.client.mget(body={"ids": ids}, index=self.store.index_name)["docs"]
        return [entry["_source"]["metadata"] for entry in found if entry.get("found")]


class _MongoDB(Dialect):
    max_results = 1_000  # ten candidates are examined for each, and 10,000 at most

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"pre_filter": {PARTITION: {"$eq": partition}}}


class _AzureSearch(Dialect):
    max_results = 1_000

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        quoted = partition.replace("'", "''")
        return {"search_type": "similarity", "filters": f"{PARTITION} eq '{quoted}'"}

    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store.client.search(search_text="*", filter=f"search.in(id, '{','.join(ids)}')", top=len(ids))
        return [json.loads(entry["metadata"]) for entry in found]


class _Upstash(Dialect):
    max_results = 1_000

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        quoted = partition.replace("\\", "\\\\").replace("'", "\\'")
        return {"filter": f"{PARTITION} = '{quoted}'"}

    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = self.store._index.fetch(ids=ids, include_metadata=True, namespace=self.store._namespace)
        return [entry.metadata for entry in found if entry is not None]


class _Turbopuffer(Dialect):
    max_results = 1_200

    def search_arguments(self, partition: str, k: int) -> dict[str, Any]:
        return {"filters": (PARTITION, "Eq", partition)}


class _S3Vectors(Dialect):
    max_results = 100

    def look_up(self, ids: list[str]) -> list[Metadata]:
        place = {"vectorBucketName": self.store.vector_bucket_name, "indexName": self.store.index_name}
        found = self.store.client.get_vectors(**place, keys=ids, returnData=False, returnMetadata=True)
        return [entry["metadata"] for entry in found["vectors"]]


class _Cassandra(Dialect):
    def look_up(self, ids: list[str]) -> list[Metadata]:
        found = [self.store.get_by_document_id(id) for id in ids]
        return [document.metadata for document in found if document is not None]


_DIALECTS: dict[str, type[Dialect]] = {
    "AmazonS3Vectors": _S3Vectors,
    "AzureSearch": _AzureSearch,
    "Cassandra": _Cassandra,
    "ElasticsearchStore": _Elasticsearch,
    "InMemoryVectorStore": _InMemory,
    "Milvus": _Milvus,
    "MongoDBAtlasVectorSearch": _MongoDB,
    "OpenSearchVectorSearch": _OpenSearch,
    "PineconeVectorStore": _Pinecone,
    "QdrantVectorStore": _Qdrant,
    "RedisVectorStore": _Redis,
    "TurbopufferVectorStore": _Turbopuffer,
    "UpstashVectorStore": _Upstash,
    "ValkeyVectorStore": _Valkey,
    "WeaviateVectorStore": _Weaviate,
}


def choose_dialect(store: VectorStore) -> Dialect:
    """Return the dialect of a store by the names of its classes, which need not be imported for this."""
    names = (base.__name__ for base in type(store).__mro__)
    return next((_DIALECTS[name] for name in names if name in _DIALECTS), Dialect)(store)
