"""What remembering and recalling share: texts to vectors, vectors to the memories near them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from mem0_core.errors import ConfigError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports, check_embedding_space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import MemoryChange, MemoryItem, RelationChange, Scope

__all__ = ["check_embedder", "embed_texts", "embedding_space_of", "find_nearest_items"]

_OVERFETCH_FACTOR = 2  # times as many neighbours are searched as are wanted, since some may not be eligible


def embed_texts(
    ports: Ports, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
) -> Flow[NDArray[np.float32]]:
    """(n, dims) embeddings, checked against what the embedder says of itself.

    Raises:
        ConfigError: their shape is not as promised.
    """
    vectors = yield from do(ports.embedder.embed, texts, kind=kind)
    expected = (len(texts), ports.embedder.dims)
    if vectors.shape != expected:
        raise ConfigError(f"embedder: {ports.embedder.name!r} gave vectors of shape {vectors.shape}, not {expected}")
    return vectors


def embedding_space_of(
    ports: Ports, changes: Sequence[MemoryChange], relations: Sequence[RelationChange] = ()
) -> tuple[str, int] | None:
    """The vector space of a plan; None where it has no vector, so that an embedder nobody needed is not asked."""
    embedded = any(c.vector is not None for c in changes) or any(r.vectors[2] is not None for r in relations)
    return (ports.embedder.name, ports.embedder.dims) if embedded else None


def check_embedder(ports: Ports) -> Flow[None]:
    """Refuse to search a store that holds the vectors of another embedder (ConfigError)."""
    held = yield from do(ports.store.embedding_space)
    check_embedding_space(held, (ports.embedder.name, ports.embedder.dims))


def find_nearest_items(
    ports: Ports, scope: Scope, vectors: NDArray[np.float32], k: int, is_eligible: Callable[[MemoryItem], bool]
) -> Flow[list[list[MemoryItem]]]:
    """For each vector the memories of a scope nearest to it, best first: k of the `is_eligible` among the nearest 2k.

    Raises:
        ConfigError: the store holds the vectors of another embedder.
    """
    yield from check_embedder(ports)
    found = yield from do(ports.index.nearest, scope, vectors, _OVERFETCH_FACTOR * k)
    near = [[row for row, _ in of_vector] for of_vector in found]
    items = yield from _read_items(ports, scope, [rows[:k] for rows in near])

    def chosen(rows: Sequence[int]) -> list[MemoryItem]:
        return [item for row in rows if (item := items.get(row)) is not None and is_eligible(item)][:k]

    if spare := [rows[k:] for rows in near if len(chosen(rows)) < k < len(rows)]:
        items |= yield from _read_items(ports, scope, spare)
    return [chosen(rows) for rows in near]


def _read_items(ports: Ports, scope: Scope, wanted: Iterable[Sequence[int]]) -> Flow[dict[int, MemoryItem]]:
    rows = list({row for some in wanted for row in some})
    return (yield from do(ports.store.memories_by_rows, rows, scope=scope)) if rows else {}
