"""Embedding of texts, and the memories nearest to a vector; shared by search and ingest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from mem0_core.errors import ConfigError, ModelError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports, check_embedding_space
from mem0_core.llm.calls import call_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import MemoryChange, MemoryItem, RelationChange, Scope

_OVERFETCH_FACTOR = 2  # more neighbors are searched than wanted, since some may not be eligible


def embed_texts(
    ports: Ports, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
) -> Flow[NDArray[np.float32]]:
    """Return the embeddings of texts, (n, dims).

    Raises:
        ConfigError: the embedder returned another shape than it declares.
        ModelError: it failed, or returned no finite numbers.
    """
    vectors = yield from call_model(ports.embedder.embed, texts, kind=kind)
    return _check_vectors(vectors, (len(texts), ports.embedder.dims), ports.embedder.name)


def placeholder_vector(dims: int) -> NDArray[np.float32]:
    """Return the vector of a memory that no search is to find, (dims,)."""
    import numpy as np  # only where vectors exist: the import takes 0.1 s

    vector = np.zeros(dims, np.float32)
    vector[0] = 1
    return vector


def _check_vectors(vectors: NDArray[np.float32], expected: tuple[int, int], name: str) -> NDArray[np.float32]:
    import numpy as np  # only where vectors exist: the import takes 0.1 s

    if not isinstance(vectors, np.ndarray) or vectors.dtype.kind not in "fiu":
        kind = vectors.dtype if isinstance(vectors, np.ndarray) else type(vectors).__name__
        raise ModelError(f"embedder: {name!r} returned {kind}, not an array of numbers")
    if vectors.shape != expected:
        raise ConfigError(f"embedder: {name!r} returned vectors of shape {vectors.shape}, not {expected}")
    if not np.isfinite(vectors).all():
        raise ModelError(f"embedder: {name!r} returned vectors with numbers that are not finite")
    return np.asarray(vectors, dtype=np.float32)


def embedding_space_of(
    ports: Ports, changes: Sequence[MemoryChange], relations: Sequence[RelationChange] = ()
) -> tuple[str, int] | None:
    """Return the embedding space of a plan; None if it has no vectors, so that an unused embedder stays unloaded."""
    has_vectors = any(change.vector is not None for change in changes) or any(
        relation.vectors[2] is not None for relation in relations
    )
    return (ports.embedder.name, ports.embedder.dims) if has_vectors else None


def check_embedder(ports: Ports) -> Flow[None]:
    """Check that the store's vectors are of this embedder.

    Raises:
        ConfigError: the store holds the vectors of another embedder.
    """
    stored = yield from do(ports.store.embedding_space)
    check_embedding_space(stored, (ports.embedder.name, ports.embedder.dims))


def find_nearest_items(
    ports: Ports, scope: Scope, vectors: NDArray[np.float32], limit: int, is_eligible: Callable[[MemoryItem], bool]
) -> Flow[list[list[MemoryItem]]]:
    """Return for each vector the nearest eligible memories of a scope, best first.

    Args:
        limit: how many for each vector at most, chosen from twice as many neighbors.

    Raises:
        ConfigError: the store holds the vectors of another embedder.
    """
    yield from check_embedder(ports)
    found = yield from do(ports.index.nearest, scope, vectors, _OVERFETCH_FACTOR * limit)
    near = [[row for row, _ in of_vector] for of_vector in found]
    items = yield from _read_items(ports, scope, [rows[:limit] for rows in near])

    def select(rows: Sequence[int]) -> list[MemoryItem]:
        return [item for row in rows if (item := items.get(row)) is not None and is_eligible(item)][:limit]

    chosen = [select(rows) for rows in near]
    if further := [rows[limit:] for rows, some in zip(near, chosen, strict=True) if len(some) < limit < len(rows)]:
        items |= yield from _read_items(ports, scope, further)
        chosen = [select(rows) for rows in near]
    return chosen


def _read_items(ports: Ports, scope: Scope, row_lists: Iterable[Sequence[int]]) -> Flow[dict[int, MemoryItem]]:
    rows = list({row for rows in row_lists for row in rows})
    return (yield from do(ports.store.memories_by_rows, rows, scope=scope)) if rows else {}
