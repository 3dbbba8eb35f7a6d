"""LlamaIndex vector stores as a memory's vector index: Qdrant, Chroma, Milvus, pgvector, Pinecone, ...

`mem0_core.stores.vector.external` describes how the index follows the primary store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from mem0_core import ConfigError
from mem0_core.interfaces import VectorSource
from mem0_core.stores.vector.external import ExternalIndex, VectorEntry

__all__ = ["LlamaIndexVectors", "vector_store"]

_PLACEHOLDER_NODE_ID = "4f1d0a58-6a3f-4f0e-9a55-6d656d300000"
"""The id of a node that says nothing."""


def vector_store(
    client: BasePydanticVectorStore, *, source: VectorSource, folder: Path | None = None, **options: Any
) -> LlamaIndexVectors:
    """Build the index for ``vector_store: {"provider": "llamaindex", "config": {"client": ...}}``.

    Args:
        client: a LlamaIndex vector store.
        options: options of `LlamaIndexVectors`.

    Raises:
        ConfigError: `client` is not a LlamaIndex vector store.
    """
    if not isinstance(client, BasePydanticVectorStore):
        raise ConfigError(f"vector_store.config: client: {client!r} is not a LlamaIndex vector store")
    return LlamaIndexVectors(client, source=source, **options)


class LlamaIndexVectors(ExternalIndex):
    """A `mem0_core.interfaces.VectorIndex` over a LlamaIndex vector store, which must filter by metadata.

    The store receives a vector, a number and a partition per memory; no text.

    Args:
        store: a vector store; other nodes in it are ignored.
        source: the primary store.
        namespace: separates several memories in one vector store.
        dims: length of the vectors; see `mem0_core.stores.vector.external.ExternalIndex`.
        timeout: seconds that one call to the store may take.
        retry_after: seconds after a failure during which the primary store is scanned instead.
    """

    def __init__(
        self,
        store: BasePydanticVectorStore,
        *,
        source: VectorSource,
        namespace: str = "mem0",
        dims: int | None = None,
        timeout: float = 10.0,
        retry_after: float = 5.0,
    ) -> None:
        of_kind = _SimpleNodeStore if isinstance(store, SimpleVectorStore) else _NodeStore
        more: dict[str, Any] = {"namespace": namespace, "dims": dims, "timeout": timeout, "retry_after": retry_after}
        super().__init__(of_kind(store, self._placeholder_vector), source=source, **more)


class _NodeStore:
    """A LlamaIndex vector store behind the interface that `mem0_core.stores.vector.external` needs."""

    filter_advice = "use one whose query() respects MetadataFilters"

    def __init__(self, store: Any, any_vector: Callable[[], list[float]]) -> None:
        self._store = store
        self._any_vector = any_vector
        self._deletes_many = type(store).delete_nodes is not BasePydanticVectorStore.delete_nodes

    @property
    def name(self) -> str:
        return type(self._store).__name__

    def add(self, entries: Sequence[VectorEntry]) -> None:
        self._store.add([_build_node(entry) for entry in entries])

    def delete(self, ids: Sequence[str]) -> None:
        if self._deletes_many:
            self._store.delete_nodes(node_ids=list(ids))
            return
        for id in ids:  # supported by every store: each node is a document of its own
            self._store.delete(ref_doc_id=id)

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        result = self._store.query(_build_query(partition, vector, k))
        return [node.metadata for node in result.nodes or ()]

    def read_metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        try:
            stored = self._store.get_nodes(node_ids=list(ids))
        except NotImplementedError:
            raise
        except Exception:  # noqa: BLE001 - retried below, and raised there
            # Many stores create their collection on the first add and fail until then.
            self._store.add(
                [_build_node(VectorEntry(_PLACEHOLDER_NODE_ID, self._any_vector(), {"mem0_partition": ""}))]
            )
            stored = self._store.get_nodes(node_ids=list(ids))
        return [node.metadata for node in stored or ()]


class _SimpleNodeStore(_NodeStore):
    """LlamaIndex's own `SimpleVectorStore`, which returns ids in place of nodes and is not thread-safe."""

    def __init__(self, store: Any, any_vector: Callable[[], list[float]]) -> None:
        super().__init__(store, any_vector)
        self._lock = Lock()

    def add(self, entries: Sequence[VectorEntry]) -> None:
        with self._lock:
            super().add(entries)

    def delete(self, ids: Sequence[str]) -> None:
        with self._lock:
            super().delete(ids)

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        with self._lock:
            result = self._store.query(_build_query(partition, vector, k))
            return [self._store.data.metadata_dict[id] for id in result.ids or ()]

    def read_metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        with self._lock:
            stored: dict[str, Mapping[str, Any]] = self._store.data.metadata_dict
            return [stored[id] for id in ids if id in stored]


def _build_node(entry: VectorEntry) -> TextNode:
    itself = RelatedNodeInfo(node_id=entry.id)
    return TextNode(
        id_=entry.id,
        text=entry.id,  # some stores reject an empty one
        embedding=entry.vector,
        metadata=dict(entry.metadata),
        relationships={NodeRelationship.SOURCE: itself},
    )


def _build_query(partition: str, vector: list[float], k: int) -> VectorStoreQuery:
    wanted = MetadataFilters(filters=[MetadataFilter(key="mem0_partition", value=partition)])
    return VectorStoreQuery(query_embedding=vector, similarity_top_k=k, filters=wanted)
