"""LangChain vector stores as a memory's vector index: Qdrant, Milvus, Elasticsearch, pgvector, Chroma, ...

The vectors are copies of those in the primary store. A LangChain vector store embeds the texts it is given, so it is
built with `MemoryVectors`, embeddings that return the vector bound to a text. `mem0_core.stores.vector.external`
describes how the index follows the primary store.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from mem0_core import ConfigError, StoreError
from mem0_core.domain.suggestions import describe_value
from mem0_core.interfaces import VectorSource
from mem0_core.stores.vector.external import ExternalIndex, VectorEntry
from mem0_langchain.vector_dialects import Dialect, FilteredDialect, choose_dialect

__all__ = ["MemoryVectors", "VectorStoreIndex", "vector_store"]

FilterFactory = Callable[[Mapping[str, str]], Any]

_INDEX_OPTIONS = ("namespace", "as_filter", "timeout", "retry_after")
_VECTOR_PREFIX = "mem0:"  # prefix of the texts bound to vectors


class MemoryVectors(Embeddings):
    """Embeddings to build a vector store with that serves a memory.

    >>> vectors = QdrantVectorStore(client, "memories", embedding=MemoryVectors(384))
    >>> Memory(index=vectors)

    They embed nothing: the memory's own embedder does.

    Args:
        dims: length of the vectors of the memory's embedder.
    """

    def __init__(self, dims: int) -> None:
        if not isinstance(dims, int) or dims < 1:
            raise ConfigError(
                f"dims must be a whole number of at least 1, not {describe_value(dims)}; pass the length of the"
                " memory's vectors, for example 384"
            )
        self.dims = dims
        self._vectors_by_text: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors bound to `texts`."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector bound to `text`; any vector for an unbound text (stores probe the length with one)."""
        if text in self._vectors_by_text:
            return self._vectors_by_text[text]
        if text.startswith(_VECTOR_PREFIX):
            raise StoreError(f"{text!r} has no vector: the call that it belonged to was abandoned")
        return [1.0, *([0.0] * (self.dims - 1))]

    @contextmanager
    def bind_vectors(self, vectors: Mapping[str, list[float]]) -> Iterator[None]:
        """Bind texts to vectors within a context. The texts must not be used by other callers."""
        self._vectors_by_text.update(vectors)
        try:
            yield
        finally:
            for text in vectors:
                self._vectors_by_text.pop(text, None)


def vector_store(
    client: Any = None,
    *,
    source: VectorSource,
    folder: Path | None = None,
    dims: int | None = None,
    provider: str | None = None,
    **options: Any,
) -> VectorStoreIndex:
    """Build the index for ``vector_store: {"provider": "langchain", "config": {"client": ...}}``, or for a provider.

    Args:
        client: a vector store built with `MemoryVectors`, or, with `dims`, a function that builds one from them. For a
            `provider`, the client of its library.
        dims: length of the vectors.
        provider: mem0's name of a vector store; `options` then hold mem0's keys too.
        options: options of `VectorStoreIndex`.
    """
    if provider is not None:
        from mem0_langchain.vector_providers import build_vector_store

        ours = {key: options.pop(key) for key in _INDEX_OPTIONS if key in options}
        vectors = MemoryVectors(dims or 0)
        built = build_vector_store(provider, vectors, vectors.dims, {"client": client, **options})
        index = VectorStoreIndex(built, source=source, **ours)
        index.owned_client = None if client is not None else _find_client(built)
        return index
    if client is None:
        raise ConfigError("vector_store.config (langchain): the key 'client' is required: a LangChain vector store")
    if not isinstance(client, VectorStore):
        if dims is None:
            raise ConfigError("vector_store.config: a client that is a function needs dims")
        client = client(MemoryVectors(dims))
    return VectorStoreIndex(client, source=source, **options)


def _check_keys(provider: str, keys: Mapping[str, Any]) -> None:
    """Check the keys of a provider before it is built."""
    from mem0_langchain.vector_providers import check_keys

    check_keys(provider, {key: value for key, value in keys.items() if key not in _INDEX_OPTIONS})


vector_store.check_keys = _check_keys  # type: ignore[attr-defined]  # mem0-core calls it when a memory is opened


class VectorStoreIndex(ExternalIndex):
    """A `mem0_core.interfaces.VectorIndex` over a LangChain vector store, which must have ``delete`` and keep ids.

    Args:
        store: built with `MemoryVectors`; other documents in it are ignored.
        source: the primary store.
        namespace: separates several memories in one vector store.
        as_filter: converts wanted metadata (a mapping of texts) to the ``filter`` of the store's ``similarity_search``.
            By default the form of the stores that `mem0_langchain.vector_dialects` knows, else the mapping itself.
        timeout: seconds that one call to the store may take.
        retry_after: seconds after a failure during which the primary store is scanned instead.

    Raises:
        ConfigError: the store was built with other embeddings.
    """

    owned_client: Any = None
    """Client to close with the index, if the index belongs to the memory that opened it."""

    def __init__(
        self,
        store: VectorStore,
        *,
        source: VectorSource,
        namespace: str = "mem0",
        as_filter: FilterFactory | None = None,
        timeout: float = 10.0,
        retry_after: float = 5.0,
    ) -> None:
        if not isinstance(store, VectorStore):
            raise ConfigError(
                f"store must be a vector store of LangChain, not {describe_value(store)}; pass, for example,"
                " InMemoryVectorStore(MemoryVectors(384))"
            )
        vectors = store.embeddings
        if not isinstance(vectors, MemoryVectors):
            raise ConfigError(
                f"vector_store: {type(store).__name__} was built with {type(vectors).__name__}; build it with"
                " mem0_langchain.MemoryVectors(dims), since the memory's embedder makes the vectors"
            )
        super().__init__(
            _DocumentStore(vectors, choose_dialect(store) if as_filter is None else FilteredDialect(store, as_filter)),
            source=source,
            namespace=namespace,
            dims=vectors.dims,
            timeout=timeout,
            retry_after=retry_after,
        )

    def close(self) -> None:
        super().close()
        client, self.owned_client = self.owned_client, None
        if client is not None:
            client.close()


def _find_client(store: VectorStore) -> Any:
    """Return the client of a store if it can be closed."""
    client = getattr(store, "client", None) or getattr(store, "_client", None)
    return client if callable(getattr(client, "close", None)) else None


class _DocumentStore:
    """A LangChain vector store behind the interface that `mem0_core.stores.vector.external` needs."""

    filter_advice = "give VectorStoreIndex an as_filter= that makes what it understands"

    def __init__(self, vectors: MemoryVectors, dialect: Dialect) -> None:
        self._vectors = vectors
        self._dialect = dialect
        self._numbers = itertools.count()

    @property
    def name(self) -> str:
        return type(self._dialect.store).__name__

    def add(self, entries: Sequence[VectorEntry]) -> None:
        texts = [_VECTOR_PREFIX + entry.id for entry in entries]
        vectors = [entry.vector for entry in entries]
        metadatas = [dict(entry.metadata) for entry in entries]
        with self._vectors.bind_vectors(dict(zip(texts, vectors, strict=True))):
            self._dialect.add(texts, metadatas, [entry.id for entry in entries])

    def delete(self, ids: Sequence[str]) -> None:
        self._dialect.delete(list(ids))

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        text = f"{_VECTOR_PREFIX}query {next(self._numbers)} {uuid.uuid4()}"
        with self._vectors.bind_vectors({text: vector}):
            return self._dialect.search(text, k, partition)

    def read_metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        return self._dialect.read(list(ids))
