"""A vector store of LangChain's as a memory's vector projection: Qdrant, Milvus, Elasticsearch, pgvector, Chroma, ...

The vectors are the truth's. A vector store of LangChain's embeds what it is given, so it is built with `MemoryVectors`,
embeddings that answer with the vector meant. What it holds of a memory is a number and a vector, and no text.

The projection follows as `mem0_core.stores.faiss` does: per partition (a user, else an agent, else a run), by sequence
number, before each search. How far it came is a document beside the others, so that it is lost with them, and not
without them. The vector store only proposes: what is found is scored by the vectors of the truth, and where it fails,
hangs, or proposes too little, the truth is scanned instead.
"""

from __future__ import annotations

import contextvars
import itertools
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from mem0_core import ConfigError, Scope, StoreError
from mem0_core.ports import Position, VectorSource
from mem0_core.stores.faiss import FaissIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MemoryVectors", "VectorStoreIndex", "vector_store"]

T = TypeVar("T")
Found = list[list[tuple[int, float]]]
AsFilter = Callable[[Mapping[str, str]], Any]

log = logging.getLogger("mem0_langchain")

_IDS = uuid.UUID("4f1d0a58-6a3f-4f0e-9a55-6d656d307670")
_MARK = "mem0:"  # what begins the texts that stand for vectors
_BATCH = 500  # vectors sent at once
_SPARE = 16  # proposals beyond those wanted: some may be gone from the truth by now
_MOST = 10_000  # partitions that `forget` looks through


class MemoryVectors(Embeddings):
    """The embeddings to build a vector store with that is to serve a memory.

    >>> vectors = QdrantVectorStore(client, "memories", embedding=MemoryVectors(384))
    >>> Memory(index=vectors)

    It embeds nothing: the memory's own embedder does.

    Args:
        dims: how long the vectors of the memory's embedder are.
    """

    def __init__(self, dims: int) -> None:
        if dims < 1:
            raise ConfigError(f"dims must be at least 1, not {dims}")
        self.dims = dims
        self._lent: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors that `texts` stand for."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector that `text` stands for; of a text of somebody else's (stores try one, for its length) any."""
        if text in self._lent:
            return self._lent[text]
        if text.startswith(_MARK):
            raise StoreError(f"{text!r} stands for no vector (any more): the call it was part of has been given up")
        return [1.0, *([0.0] * (self.dims - 1))]

    @contextmanager
    def lend(self, vectors: Mapping[str, list[float]]) -> Iterator[None]:
        """Let texts stand for vectors, for a while. The texts are the caller's alone."""
        self._lent.update(vectors)
        try:
            yield
        finally:
            for text in vectors:
                self._lent.pop(text, None)


def vector_store(
    client: VectorStore | Callable[[MemoryVectors], VectorStore],
    *,
    source: VectorSource,
    folder: Path | None = None,
    dims: int | None = None,
    **options: Any,
) -> VectorStoreIndex:
    """For ``vector_store: {"provider": "langchain", "config": {"client": ...}}``; `options` are `VectorStoreIndex`'s.

    Args:
        client: a vector store built with `MemoryVectors`, or, with `dims`, a function that builds one from them.
    """
    if not isinstance(client, VectorStore):
        if dims is None:
            raise ConfigError("vector_store.config: a client that is a function needs dims")
        client = client(MemoryVectors(dims))
    return VectorStoreIndex(client, source=source, **options)


class _Outage(Exception):
    """The vector store failed, or did not answer in time."""


class VectorStoreIndex:
    """A `mem0_core.ports.VectorIndex` over a LangChain vector store, which must have ``delete`` and keep ids.

    Args:
        store: built with `MemoryVectors`; other documents in it do no harm.
        source: the truth.
        namespace: keeps several memories in one store apart.
        as_filter: from wanted metadata, text by text, to what the store's ``similarity_search`` takes as ``filter``.
            By default it is that mapping itself (Chroma, pgvector, Pinecone, ...), or what Qdrant and
            `InMemoryVectorStore` take.
        timeout: seconds that one call to the store may take.
        retry_after: seconds after a failure in which the store is not asked; the truth is scanned meanwhile.

    Raises:
        ConfigError: the store was built with other embeddings.
    """

    def __init__(
        self,
        store: VectorStore,
        *,
        source: VectorSource,
        namespace: str = "mem0",
        as_filter: AsFilter | None = None,
        timeout: float = 10.0,
        retry_after: float = 5.0,
    ) -> None:
        vectors = store.embeddings
        if not isinstance(vectors, MemoryVectors):
            raise ConfigError(
                f"vector_store: {type(store).__name__} was built with {type(vectors).__name__}; build it with"
                " mem0_langchain.MemoryVectors(dims), for the vectors are those of the memory's embedder"
            )
        self._store = store
        self._vectors = vectors
        self._source = source
        self._namespace = namespace
        self._as_filter = as_filter or _filter_of(store)
        self._timeout, self._retry_after = timeout, retry_after
        self._down_until = 0.0
        self._positions: dict[Scope, Position] = {}
        self._locks: defaultdict[Scope, Lock] = defaultdict(Lock)
        self._numbers = itertools.count()
        self._truth = FaissIndex(source, folder=None)
        self._closed = False

    def nearest(
        self, scope: Scope, queries: NDArray[np.float32], k: int, *, only: NDArray[np.int64] | None = None
    ) -> Found:
        """For each query (n, dims) up to k (row, cosine), best first, among `only` where given."""
        if self._closed:
            raise StoreError("the vector index is closed")
        address = _address(scope)
        if only is not None or address != scope or k <= 0 or not len(queries):
            # Among some rows the truth is scanned exactly: a filtered approximate search loses results silently.
            return self._truth.nearest(scope, queries, k, only=only)
        if not self._source.position(address).seq:
            return [[] for _ in queries]
        try:
            found = self._proposed(address, queries, k)
        except _Outage as outage:
            log.warning("%s: %s; the truth is scanned instead", type(self._store).__name__, outage)
            found = None
        return self._truth.nearest(scope, queries, k) if found is None else found

    def forget(self, scope: Scope | None) -> None:
        """Tell the vector store what was deleted. Where it cannot be reached, the next search does."""
        try:
            addresses = self._known() if scope is None else [_address(Scope(**ids)) for ids in _single_ids(scope)]
            for address in addresses:
                self._follow(address)
        except _Outage as outage:
            log.warning("%s: %s; it is told of deletions later", type(self._store).__name__, outage)
        self._truth.forget(scope)

    def close(self) -> None:
        """Let go of it; the vector store is the caller's, and stays open."""
        self._closed = True
        self._truth.close()

    # --- searching -------------------------------------------------------------------------------------------------

    def _proposed(self, address: Scope, queries: NDArray[np.float32], k: int) -> Found | None:
        """What the store proposes, scored by the truth; None where it proposes less than there is."""
        self._follow(address)
        wanted = k + _SPARE
        found: Found = []
        for query in queries:
            documents = self._search(self._partition(address), query.tolist(), wanted)
            rows = [int(document.metadata["mem0_row"]) for document in documents]
            living, vectors = self._source.vectors(rows)
            if len(living) < min(wanted, len(rows)):
                self._drop(address, set(rows) - set(living.tolist()))
            if len(living) < k and len(living) < len(self._source.rows(address)):
                self._positions.pop(address, None)  # it may have lost something: let it say again how far it is
                return None
            scores = vectors @ query if len(living) else np.zeros(0, np.float32)
            best = np.argsort(-scores, kind="stable")[:k]
            found.append([(int(living[place]), float(scores[place])) for place in best])
        return found

    def _search(self, partition: str, vector: list[float], k: int) -> list[Document]:
        text = f"{_MARK}query {next(self._numbers)} {uuid.uuid4()}"
        wanted = self._as_filter({"mem0_partition": partition})
        with self._vectors.lend({text: vector}):
            documents = self._called(lambda: self._store.similarity_search(text, k=k, filter=wanted))
        if any(document.metadata.get("mem0_partition") != partition for document in documents):
            raise ConfigError(
                f"vector_store: {type(self._store).__name__} does not filter by {wanted!r}: give VectorStoreIndex an"
                " as_filter= that makes what it understands"
            )
        return documents

    # --- following -------------------------------------------------------------------------------------------------

    def _follow(self, address: Scope) -> None:
        """Bring the partition in the store to where the truth is."""
        with self._locks[address]:
            now = self._source.position(address)
            at = self._positions.get(address) or self._marked(address)
            if at == now:
                self._positions[address] = now
                return
            if at is None or at.epoch != now.epoch:
                self._positions.pop(address, None)
                self._drain(self._partition(address))
                at = Position(now.epoch, 0)
            after: int | None = at.seq
            while after is not None:
                changes = self._source.vector_changes(address, after=after, limit=_BATCH)
                gone = changes.removed.tolist()
                self._drop(address, [*gone, *changes.rows.tolist()] if at.seq else gone)
                self._put(address, changes.rows.tolist(), changes.vectors)
                after = changes.upto
            if now.seq:  # else nobody is there any more, and not even the name is kept
                self._mark(address, now)
            self._positions[address] = now

    def _put(self, address: Scope, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        for start in range(0, len(rows), _BATCH):
            some, theirs = rows[start : start + _BATCH], vectors[start : start + _BATCH].tolist()
            places = [{"mem0_partition": self._partition(address), "mem0_row": row} for row in some]
            self._add([self._id(address, row) for row in some], theirs, places)

    def _add(self, ids: list[str], vectors: list[list[float]], metadatas: list[dict[str, Any]]) -> None:
        if ids:
            texts = [_MARK + id for id in ids]
            with self._vectors.lend(dict(zip(texts, vectors, strict=True))):
                self._called(lambda: self._store.add_texts(texts, metadatas=metadatas, ids=ids))

    def _drop(self, address: Scope, rows: Sequence[int] | set[int]) -> None:
        self._delete([self._id(address, row) for row in rows])

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), _BATCH):
            some = ids[start : start + _BATCH]
            try:
                self._called(lambda some=some: self._store.delete(some))  # type: ignore[misc]
            except _Outage as outage:
                if isinstance(outage.__cause__, NotImplementedError):
                    name = type(self._store).__name__
                    raise ConfigError(f"vector_store: {name} cannot delete, so it cannot follow a memory") from outage
                raise

    def _drain(self, partition: str) -> None:
        """Remove a partition, whatever it holds, and how far it came."""
        self._delete([self._marker(partition)])
        while documents := self._search(partition, self._vectors.embed_query(""), _BATCH):
            ids = [self._id_in(partition, int(document.metadata["mem0_row"])) for document in documents]
            self._delete(ids)

    # --- how far it came -------------------------------------------------------------------------------------------

    def _marked(self, address: Scope) -> Position | None:
        """How far the partition is by its own account; None where it has none, or the store cannot say."""
        marker = self._marker(self._partition(address))
        try:
            documents = self._called(lambda: self._store.get_by_ids([marker]))
        except _Outage as outage:
            if isinstance(outage.__cause__, NotImplementedError):
                return None
            raise
        held = [document.metadata for document in documents]
        return Position(held[0]["mem0_epoch"], int(held[0]["mem0_seq"])) if held else None

    def _mark(self, address: Scope, at: Position) -> None:
        partition = self._partition(address)
        metadata = {"mem0_partition": self._markers, "mem0_epoch": at.epoch, "mem0_seq": at.seq, "mem0_of": partition}
        self._delete([self._marker(partition)])
        self._add([self._marker(partition)], [self._vectors.embed_query("")], [metadata])

    def _known(self) -> list[Scope]:
        """The addresses that have a partition in the store, of earlier processes too."""
        documents = self._search(self._markers, self._vectors.embed_query(""), _MOST)
        held = [json.loads(document.metadata["mem0_of"])[1:] for document in documents]
        return [Scope(**{axis: value}) for axis, value in held]

    # --- names -----------------------------------------------------------------------------------------------------

    @property
    def _markers(self) -> str:
        return json.dumps([self._namespace, "markers"])

    def _partition(self, address: Scope) -> str:
        axis, value = address.partition
        return json.dumps([self._namespace, str(axis), value])

    def _marker(self, partition: str) -> str:
        return str(uuid.uuid5(_IDS, f"{partition} marker"))

    def _id(self, address: Scope, row: int) -> str:
        return self._id_in(self._partition(address), row)

    def _id_in(self, partition: str, row: int) -> str:
        return str(uuid.uuid5(_IDS, f"{partition} {row}"))  # a UUID, since Qdrant takes no other texts

    # --- calling ---------------------------------------------------------------------------------------------------

    def _called(self, work: Callable[[], T]) -> T:
        """What a call to the store returns; it is made in a thread, so that one that hangs can be given up.

        Raises:
            _Outage: it failed, took too long, or did so a moment ago.
        """
        if time.monotonic() < self._down_until:
            raise _Outage("it failed a moment ago")
        ended: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()
        context = contextvars.copy_context()
        Thread(target=lambda: ended.put(context.run(_outcome, work)), name="mem0-vectors", daemon=True).start()
        try:
            result, error = ended.get(timeout=self._timeout)
        except Empty:
            error = _Outage(f"no answer within {self._timeout} seconds")
        if error is not None:
            self._positions.clear()  # it may come back without what it had
            if not isinstance(error, NotImplementedError):
                self._down_until = time.monotonic() + self._retry_after
            raise _Outage(f"{type(error).__name__}: {error}") from error
        value: T = result
        return value


def _outcome(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - raised in the thread that waits
        return None, error


def _address(scope: Scope) -> Scope:
    axis, value = scope.partition
    return Scope(**{axis.value: value})


def _single_ids(scope: Scope) -> list[dict[str, str]]:
    return [{axis.value: value} for axis, value in scope.ids.items()]


def _filter_of(store: VectorStore) -> AsFilter:
    names = {base.__name__ for base in type(store).__mro__}
    if "QdrantVectorStore" in names:
        return _for_qdrant
    return _for_in_memory if "InMemoryVectorStore" in names else dict


def _for_qdrant(wanted: Mapping[str, str]) -> Any:
    from qdrant_client import models

    return models.Filter(
        must=[
            models.FieldCondition(key=f"metadata.{key}", match=models.MatchValue(value=value))
            for key, value in wanted.items()
        ]
    )


def _for_in_memory(wanted: Mapping[str, str]) -> Callable[[Document], bool]:
    return lambda document: all(document.metadata.get(key) == value for key, value in wanted.items())
