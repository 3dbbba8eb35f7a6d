"""LangChain's vector stores by mem0's provider names: ``vector_store: {"provider": "qdrant", "config": {...}}``.

Each builder takes mem0's keys of its provider; further keys go to LangChain's class as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from mem0_core import ConfigError, MissingExtraError
from mem0_core.catalog import FRAMEWORK_PROVIDERS

__all__ = ["VECTOR_STORES", "build_vector_store"]

Keys = dict[str, Any]

_COLLECTION = "mem0"
_CLIENT_KEYS = ("url", "host", "port", "path", "api_key", "location", "https", "grpc_port", "prefer_grpc", "prefix")


def build_vector_store(provider: str, embedding: Embeddings, dims: int, keys: Keys) -> VectorStore:
    """Build the vector store of a provider from mem0's keys.

    Args:
        embedding: Embeddings that return the memory's own vectors.
        dims: Length of these vectors.

    Raises:
        ConfigError: A key is unknown or wrong, or the server refuses the connection.
        MissingExtraError: The packages of the provider are not installed.
    """
    given = {key: value for key, value in keys.items() if value is not None}
    given.pop("embedding_model_dims", None)  # the embedder's length counts
    try:
        return VECTOR_STORES[provider](embedding, dims, given)
    except ImportError as error:
        packages = f"mem0-langchain {FRAMEWORK_PROVIDERS['vector_store'][provider]}"
        raise MissingExtraError(f"vector_store: the library of {provider!r}", packages=packages) from error
    except Exception as error:  # clients raise errors of their own for wrong keys and unreachable servers
        raise ConfigError(
            f"vector_store.config ({provider}): LangChain cannot open the store with the keys"
            f" {', '.join(sorted(keys)) or 'none'}: {type(error).__name__}: {error}"
        ) from error


def _load_class(module: str, name: str) -> Callable[..., Any]:
    loaded: Callable[..., Any] = getattr(import_module(module), name)
    return loaded


def _build_qdrant(embedding: Embeddings, dims: int, keys: Keys) -> VectorStore:
    models = import_module("qdrant_client").models
    on_disk = bool(keys.pop("on_disk", False))
    client = keys.pop("client", None)
    if client is None:
        options = {key: keys.pop(key) for key in _CLIENT_KEYS if key in keys}
        client = _load_class("qdrant_client", "QdrantClient")(**(options or {"location": ":memory:"}))
    name = keys.pop("collection_name", _COLLECTION)
    if not client.collection_exists(name):
        vectors = models.VectorParams(size=dims, distance=models.Distance.COSINE, on_disk=on_disk)
        client.create_collection(name, vectors_config=vectors)
    store: VectorStore = _load_class("langchain_qdrant", "QdrantVectorStore")(
        client=client, collection_name=name, embedding=embedding, **keys
    )
    return store


def _build_chroma(embedding: Embeddings, dims: int, keys: Keys) -> VectorStore:
    names = {"path": "persist_directory", "api_key": "chroma_cloud_api_key"}
    options = {names.get(key, key): value for key, value in keys.items()}
    store: VectorStore = _load_class("langchain_chroma", "Chroma")(
        **{
            "collection_name": _COLLECTION,
            "collection_metadata": {"hnsw:space": "cosine"},
            **options,
            "embedding_function": embedding,
        }
    )
    return store


VECTOR_STORES: dict[str, Callable[[Embeddings, int, Keys], VectorStore]] = {
    "qdrant": _build_qdrant,
    "chroma": _build_chroma,
}
"""Builder of each provider."""
