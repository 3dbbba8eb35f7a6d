"""Vectors of four bits per coordinate, by which a search selects the few candidates that it reads in full.

One random rotation is applied to all vectors. The coordinates of a rotated vector are distributed like those of a
random direction: normally, with variance 1 / dims. So one scale of 16 levels fits all vectors; nothing is learned from
the data, and nothing becomes stale as the data changes. The product of a query and a quantized vector is
`_EXPECTED_PRODUCT` times their cosine c plus a normal error. Its standard deviation is `_EXPECTED_PRODUCT`
sqrt(((1 - c^2) `_ORTHOGONAL_ERROR` + c^2 `_PARALLEL_ERROR`) / dims). The rotation alone causes this error, so the bound
holds for any vectors (Gao and Long, RaBitQ, 2024).

FAISS's fast scan adds products from lookup tables in registers and reads a quarter of the bytes of half precision, in
a third of the time of a scan or less. On 10,000 random vectors of 384 dimensions, FAISS's own RaBitQ is less exact at
one and two bits with as many candidates, and slower at four bits. Its 4-bit scalar quantizer is four times slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEP_DEVIATIONS = 0.4  # of a coordinate; 16 steps leave one coordinate in 700 outside the scale
_EXPECTED_PRODUCT = 0.99747  # E[xy] of a normal variable x and its level y
_ORTHOGONAL_ERROR = 0.01377  # E[yy] / E[xy]^2 - 1
_PARALLEL_ERROR = 0.01873  # Var[xy / E[xy] - xx]
_ERROR_DEVIATIONS = 4  # three vectors in 100,000 have a larger error
_MIN_DIMS = 128  # with fewer, the coordinates of a random direction are not normal enough
_MAX_NORM = 1.01  # a longer vector exceeds the scale
_CHUNK_VECTORS = 250  # rounded at once, to fit in the processor's cache
_MAX_PENDING_VECTORS = 256  # kept in full, since packing one vector takes as long as packing all
_MIN_CANDIDATES = 256  # per search
_FIRST_READ_FACTOR = 2  # first candidates read in full, as a multiple of k


class QuantizedVectors:
    """Vectors of norm 1 or less, in the order of their addition. The latest are kept in full."""

    def __init__(self, dims: int) -> None:
        import faiss

        self._dims = dims
        self._rotation = _rotation(dims)
        levels = (np.arange(16, dtype=np.float32) - 7.5) * np.float32(_STEP_DEVIATIONS / math.sqrt(dims))
        self._codec: Any = faiss.IndexPQ(dims, dims, 4, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(np.tile(levels, dims), self._codec.pq.centroids)
        self._codec.is_trained = True
        self._codes = np.empty((0, dims // 2), dtype=np.uint8)
        self._index: Any = None
        self._pending = np.empty((_MAX_PENDING_VECTORS, dims), dtype=np.float32)
        self._pending_count = 0

    @staticmethod
    def supports(vectors: NDArray[np.float32]) -> bool:
        """Return True if the error bound holds for such vectors."""
        dims = vectors.shape[1]
        longest = np.einsum("ij,ij->i", vectors, vectors).max(initial=0)
        return dims >= _MIN_DIMS and dims % 2 == 0 and bool(longest <= _MAX_NORM**2)

    @property
    def count(self) -> int:
        return len(self._codes) + self._pending_count

    @property
    def nbytes(self) -> int:
        return 2 * self._codes.nbytes + self._pending.nbytes

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors."""
        if self._pending_count + len(vectors) > _MAX_PENDING_VECTORS:
            self._pack_pending(np.concatenate([self._pending[: self._pending_count], vectors]))
            self._pending_count = 0
        else:
            self._pending[self._pending_count : self._pending_count + len(vectors)] = vectors
            self._pending_count += len(vectors)

    def nearest(
        self,
        query: NDArray[np.float32],
        k: int,
        rows: NDArray[np.int64],
        vectors_at: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        threshold: float = -math.inf,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return the positions of the k vectors nearest to a query and their cosines, best first.

        Results below `threshold` may be missing. None if too many vectors are about equally near to read them in full;
        then a full scan is needed.

        Args:
            rows: the row at each position; a negative row marks a removed vector.
            vectors_at: returns the vectors at some positions in full.
        """
        length = float(np.linalg.norm(query))
        likely, estimates = self._find_candidates(query, _candidate_count(k))
        first = likely[
            : min(_FIRST_READ_FACTOR * k, np.count_nonzero(estimates > self._lower_bound(threshold, length)))
        ]
        pending = np.arange(len(self._codes), self.count)
        places = np.concatenate([pending, first])
        cosines = np.concatenate([self._pending[: len(pending)] @ query, vectors_at(first) @ query])
        cosines[rows[places] < 0] = -np.inf
        kth = float(np.partition(cosines, -k)[-k]) if len(cosines) >= k else -math.inf
        floor = self._lower_bound(max(kth, threshold), length)
        if estimates[-1] >= floor and len(likely) < len(self._codes):  # vectors beyond the candidates may be as near
            return None
        more = likely[len(first) : np.count_nonzero(estimates > floor)]
        if len(more):
            places, cosines = np.concatenate([places, more]), np.concatenate([cosines, vectors_at(more) @ query])
            cosines[rows[places] < 0] = -np.inf
        order = np.argsort(-cosines, kind="stable")[:k]
        order = order[cosines[order] > -np.inf]
        return places[order], cosines[order]

    @staticmethod
    def is_worthwhile(k: int, vector_count: int) -> bool:
        """Return True if `nearest` is faster than a scan of `vector_count` vectors."""
        return 8 * _candidate_count(k) <= vector_count

    def _lower_bound(self, score: float, length: float) -> float:
        """Return the lower bound of the estimate of a score, for a query of norm `length`."""
        parallel = score * score
        spread = math.sqrt(
            (max(0.0, length * length - parallel) * _ORTHOGONAL_ERROR + parallel * _PARALLEL_ERROR) / self._dims
        )
        return score - _ERROR_DEVIATIONS * spread

    def _find_candidates(self, query: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the positions of likely near vectors and estimates of their cosines, best first."""
        if self._index is None:
            return np.empty(0, dtype=np.int64), np.full(1, -np.inf, dtype=np.float32)
        scores, places = self._index.search(self._rotation.rotate(query[None]), min(count, len(self._codes)))
        return places[0], scores[0] / _EXPECTED_PRODUCT

    def _pack_pending(self, vectors: NDArray[np.float32]) -> None:
        """Quantize vectors and rebuild the fast-scan layout of all: some 2 ms for 10,000 vectors."""
        import faiss

        codes = [
            self._round(vectors[start : start + _CHUNK_VECTORS]) for start in range(0, len(vectors), _CHUNK_VECTORS)
        ]
        self._codes = np.concatenate([self._codes, *codes])
        faiss.copy_array_to_vector(self._codes.ravel(), self._codec.codes)
        self._codec.ntotal = len(self._codes)
        self._index = faiss.IndexPQFastScan(self._codec)
        self._codec.codes.clear()

    def _round(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the level of each coordinate, two per byte: (n, dims / 2)."""
        rotated = self._rotation.rotate(vectors)
        rotated *= np.float32(math.sqrt(self._dims) / _STEP_DEVIATIONS)
        rotated += 8
        levels = np.clip(rotated, 0, 15, out=rotated).astype(np.uint8)
        return levels[:, 0::2] | np.left_shift(levels[:, 1::2], 4, dtype=np.uint8)


def _candidate_count(k: int) -> int:
    return max(_MIN_CANDIDATES, 6 * k)


class _Rotation:
    """A random rotation, the same in every process.

    Reading a matrix of dims ** 2 numbers would take longer than the scan. So the rotation consists of two rounds: each
    shuffles the coordinates, draws their signs, and rotates the rows and columns of a table of them by small matrices.
    """

    def __init__(self, dims: int) -> None:
        generator = np.random.default_rng(dims)
        self._high = next(side for side in range(math.isqrt(dims), 0, -1) if dims % side == 0)
        self._wide = dims // self._high
        self._rounds = [
            (
                generator.permutation(dims),
                generator.choice(np.array([-1, 1], dtype=np.float32), dims),
                _random_orthogonal(generator, self._high),
                _random_orthogonal(generator, self._wide),
            )
            for _ in range(2)
        ]

    def rotate(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rotated vectors: (n, dims)."""
        for order, signs, left, right in self._rounds:
            table = (vectors[:, order] * signs).reshape(-1, self._high, self._wide)
            vectors = (left @ table @ right).reshape(len(vectors), -1)
        return vectors


_rotation = lru_cache(maxsize=8)(_Rotation)


def _random_orthogonal(generator: np.random.Generator, size: int) -> NDArray[np.float32]:
    matrix, _ = np.linalg.qr(generator.standard_normal((size, size)))
    return matrix.astype(np.float32)
