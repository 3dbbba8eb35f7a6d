"""Vectors in four bits a coordinate: what a search reads of all, to learn which few it has to look at in full.

All vectors are turned by one rotation, drawn at random. So the coordinates of each, whatever it was, are spread as
those of a random direction, normally with a variance of 1 / dims, and one ladder of 16 steps serves them all: nothing
is learnt from the vectors, nothing goes stale as they change. A query's product with what is kept of a vector is then
`_EXPECTED_PRODUCT` of their cosine c, but for an error that is normal, too, with `_EXPECTED_PRODUCT` sqrt(((1 - c^2)
`_ORTHOGONAL_ERROR` + c^2 `_PARALLEL_ERROR`) / dims) as its standard deviation: by the choice of the rotation, and so
for vectors of any kind (Gao and Long, RaBitQ, 2024).

FAISS's fast scan adds up products looked up in tables that fit in registers, and reads a quarter of the bytes that
half precision has: a third of the time of a scan, or less where memory is what it waits for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QuantizedVectors"]

_STEP_DEVIATIONS = 0.4  # in standard deviations of a coordinate: 16 of them leave one in seven hundred outside
_EXPECTED_PRODUCT = 0.99747  # E[xy] of a normal variable x and its step y
_ORTHOGONAL_ERROR = 0.01377  # E[yy] / E[xy]^2 - 1
_PARALLEL_ERROR = 0.01873  # Var[xy / E[xy] - xx]
_ERROR_DEVIATIONS = 4  # standard deviations: three vectors in a hundred thousand err by more
_MIN_DIMS = 128  # with fewer, coordinates of a random direction are not normal enough
_MAX_NORM = 1.01  # norm; a longer vector goes beyond the steps
_CHUNK_VECTORS = 250  # vectors rounded at once, which a processor's cache can hold
_MAX_PENDING_VECTORS = 256  # vectors that wait for one another, since to add them takes as long for one as for all
_MIN_CANDIDATES = 256  # vectors that a search takes to be near, at least
_FIRST_READ_FACTOR = 2  # times as many of them as are wanted are read in full to begin with


class QuantizedVectors:
    """Vectors of norm 1, or less, by place: as they come. The latest are kept as they are."""

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
        self._late = np.empty((_MAX_PENDING_VECTORS, dims), dtype=np.float32)
        self._waiting = 0  # how many of them there are

    @staticmethod
    def supports(vectors: NDArray[np.float32]) -> bool:
        """Whether what is known of the error holds for such vectors."""
        dims = vectors.shape[1]
        longest = np.einsum("ij,ij->i", vectors, vectors).max(initial=0)
        return dims >= _MIN_DIMS and dims % 2 == 0 and bool(longest <= _MAX_NORM**2)

    @property
    def count(self) -> int:
        return len(self._codes) + self._waiting

    @property
    def nbytes(self) -> int:
        return 2 * self._codes.nbytes + self._late.nbytes

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Add vectors at the places after the last."""
        if self._waiting + len(vectors) > _MAX_PENDING_VECTORS:
            self._pack_pending(np.concatenate([self._late[: self._waiting], vectors]))
            self._waiting = 0
        else:
            self._late[self._waiting : self._waiting + len(vectors)] = vectors
            self._waiting += len(vectors)

    def nearest(
        self,
        query: NDArray[np.float32],
        k: int,
        rows: NDArray[np.int64],
        vectors_at: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        threshold: float = -math.inf,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """The places of the k vectors nearest to a query, and their cosines, best first; all those from `threshold` on,
        and some of the others.

        None where more are about as near than it pays to look at one by one; see `is_worthwhile`.

        Args:
            rows: what stands at each place; where that is negative the vector is dead, and not found.
            vectors_at: the vectors at some places, in full.
        """
        length = float(np.linalg.norm(query))
        likely, estimates = self._find_candidates(query, _candidate_count(k))
        first = likely[
            : min(_FIRST_READ_FACTOR * k, np.count_nonzero(estimates > self._lower_bound(threshold, length)))
        ]
        late = np.arange(len(self._codes), self.count)
        places = np.concatenate([late, first])
        cosines = np.concatenate([self._late[: len(late)] @ query, vectors_at(first) @ query])
        cosines[rows[places] < 0] = -np.inf
        kth = float(np.partition(cosines, -k)[-k]) if len(cosines) >= k else -math.inf
        floor = self._lower_bound(max(kth, threshold), length)
        if estimates[-1] >= floor and len(likely) < len(self._codes):  # there may be more like it
            return None
        more = likely[len(first) : np.count_nonzero(estimates > floor)]
        if len(more):
            places, cosines = np.concatenate([places, more]), np.concatenate([cosines, vectors_at(more) @ query])
            cosines[rows[places] < 0] = -np.inf
        order = np.argsort(-cosines, kind="stable")[:k]
        order = order[cosines[order] > -np.inf]
        return places[order], cosines[order]

    @staticmethod
    def is_worthwhile(k: int, among: int) -> bool:
        """Whether `nearest` takes less than a scan of `among` vectors."""
        return 8 * _candidate_count(k) <= among

    def _lower_bound(self, score: float, length: float) -> float:
        """The least that an estimate is of a score, of a query so long."""
        along = score * score
        spread = math.sqrt(
            (max(0.0, length * length - along) * _ORTHOGONAL_ERROR + along * _PARALLEL_ERROR) / self._dims
        )
        return score - _ERROR_DEVIATIONS * spread

    def _find_candidates(self, query: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places of vectors that look near, and estimates of their cosines, best first."""
        if self._index is None:
            return np.empty(0, dtype=np.int64), np.full(1, -np.inf, dtype=np.float32)
        scores, places = self._index.search(self._rotation.rotate(query[None]), min(count, len(self._codes)))
        return places[0], scores[0] / _EXPECTED_PRODUCT

    def _pack_pending(self, vectors: NDArray[np.float32]) -> None:
        """Round vectors, and put all that are rounded in the order of a fast scan: some 2 ms for 10,000."""
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
        """(n, dims / 2): the step that each coordinate is on, two in a byte."""
        turned = self._rotation.rotate(vectors)
        turned *= np.float32(math.sqrt(self._dims) / _STEP_DEVIATIONS)
        turned += 8
        steps = np.clip(turned, 0, 15, out=turned).astype(np.uint8)
        return steps[:, 0::2] | np.left_shift(steps[:, 1::2], 4, dtype=np.uint8)


def _candidate_count(k: int) -> int:
    return max(_MIN_CANDIDATES, 6 * k)


class _Rotation:
    """A rotation drawn at random, the same in every process.

    A matrix of dims ** 2 numbers would take longer to read than a scan's tables. So it is made of small ones, two times
    over: the coordinates, shuffled and with signs drawn, as a table whose columns and rows are rotated.
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
        """(n, dims), turned."""
        for order, signs, left, right in self._rounds:
            table = (vectors[:, order] * signs).reshape(-1, self._high, self._wide)
            vectors = (left @ table @ right).reshape(len(vectors), -1)
        return vectors


_rotation = lru_cache(maxsize=8)(_Rotation)


def _random_orthogonal(generator: np.random.Generator, size: int) -> NDArray[np.float32]:
    matrix, _ = np.linalg.qr(generator.standard_normal((size, size)))
    return matrix.astype(np.float32)
