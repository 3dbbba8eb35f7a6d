"""Vectors of one partition in a numpy array, for environments without FAISS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core.stores.vector._tables import MAX_DEAD_SHARE, Neighbors, VectorTable, enlarge, pair_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ArrayIndex"]


class ArrayIndex(VectorTable):
    """A scan of all vectors in single precision: 15 MB and some 2 ms for 10,000 vectors of 384 dimensions."""

    _index: _Array

    def __init__(self, dims: int) -> None:
        super().__init__(dims, _Array(dims))

    @property
    def nbytes(self) -> int:
        return self._count * (self.dims * 4 + 100)

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        super().replace(rows, vectors, removed)
        if self.dead_share > MAX_DEAD_SHARE:
            fresh = ArrayIndex(self.dims)
            self.copy_live_vectors(fresh)
            self.take_over(fresh)

    def search(
        self, queries: NDArray[np.float32], k: int, allowed_rows: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        k = min(k, self.live_count)
        scores = queries @ self._index.vectors.T
        if allowed_rows is not None:
            scores[:, ~np.isin(self._rows, allowed_rows)] = -np.inf
        elif self.live_count < self._count:
            scores[:, self._rows < 0] = -np.inf
        return [self._pick_best(of_query, k) for of_query in scores]

    def _pick_best(self, scores: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        places: NDArray[Any] = np.arange(len(scores)) if k >= len(scores) else np.argpartition(-scores, k - 1)[:k]
        places = places[np.lexsort((places, -scores[places]))]
        places = places[scores[places] > -np.inf]
        return pair_row(self._rows[places], scores[places])


class _Array:
    """Rows of numbers, with spare capacity and the method names of a FAISS index."""

    def __init__(self, dims: int) -> None:
        self._buffer = np.empty((0, dims), dtype=np.float32)
        self._count = 0

    @property
    def vectors(self) -> NDArray[np.float32]:
        return self._buffer[: self._count]

    def add(self, vectors: NDArray[np.float32]) -> None:
        first, self._count = self._count, self._count + len(vectors)
        if self._count > len(self._buffer):
            self._buffer = enlarge(self._buffer[:first], self._count)
        self._buffer[first : self._count] = vectors

    def reconstruct_batch(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.vectors[places]
