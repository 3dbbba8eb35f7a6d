"""Vectors in four bits a coordinate: what a search reads of all, to learn which few it has to look at in full.

All vectors are turned by one rotation, drawn at random. So the coordinates of each, whatever it was, are spread as
those of a random direction, normally with a variance of 1 / dims, and one ladder of 16 steps serves them all: nothing
is learnt from the vectors, nothing goes stale as they change. A query's product with what is kept of a vector is then
`_KEPT` of their cosine c, but for an error that is normal, too, with `_KEPT` sqrt(((1 - c^2) `_ASIDE` + c^2 `_ALONG`) /
dims) as its standard deviation: by the choice of the rotation, and so for vectors of any kind (Gao and Long, RaBitQ,
2024).

FAISS's fast scan adds up products looked up in tables that fit in registers, and reads a quarter of the bytes that
half precision has: a third of the time of a scan, or less where memory is what it waits for.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QuantizedVectors"]

_STEP = 0.4  # in standard deviations of a coordinate: 16 of them leave one in seven hundred outside
_KEPT = 0.99747  # E[xy] of a normal variable x and its step y
_ASIDE = 0.01377  # E[yy] / E[xy]^2 - 1
_ALONG = 0.01873  # Var[xy / E[xy] - xx]
_SURE = 4  # standard deviations: three vectors in a hundred thousand err by more
_FEWEST_DIMS = 128  # with fewer, coordinates of a random direction are not normal enough
_LONGEST = 1.01  # norm; a longer vector goes beyond the steps
_CHUNK = 250  # vectors rounded at once, which a processor's cache can hold
_LIKELY = 512  # vectors that a search takes to be near, at least
_WORTH = 8  # times as many vectors as that have to be there


class QuantizedVectors:
    """Vectors of norm 1, or less, by place: as they come."""

    def __init__(self, dims: int) -> None:
        import faiss

        self._dims = dims
        self._rotation = _rotation(dims)
        levels = (np.arange(16, dtype=np.float32) - 7.5) * np.float32(_STEP / math.sqrt(dims))
        self._form: Any = faiss.IndexPQ(dims, dims, 4, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(np.tile(levels, dims), self._form.pq.centroids)
        self._form.is_trained = True
        self._codes = np.empty((0, dims // 2), dtype=np.uint8)
        self._index: Any = None

    @staticmethod
    def can_hold(vectors: NDArray[np.float32]) -> bool:
        """Whether what is known of the error holds for such vectors."""
        dims = vectors.shape[1]
        longest = np.einsum("ij,ij->i", vectors, vectors).max(initial=0)
        return dims >= _FEWEST_DIMS and dims % 2 == 0 and bool(longest <= _LONGEST**2)

    @property
    def count(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        return 2 * self._codes.nbytes

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Add vectors at the places after the last: some 2 ms where there are 10,000, for one as for many."""
        import faiss

        codes = [self._rounded(vectors[start : start + _CHUNK]) for start in range(0, len(vectors), _CHUNK)]
        self._codes = np.concatenate([self._codes, *codes])
        faiss.copy_array_to_vector(self._codes.ravel(), self._form.codes)
        self._form.ntotal = len(self._codes)
        self._index = faiss.IndexPQFastScan(self._form)
        self._form.codes.clear()

    def candidates(
        self, query: NDArray[np.float32], k: int, rows: NDArray[np.int64], threshold: float = -math.inf
    ) -> NDArray[np.int64] | None:
        """The places where the k vectors nearest to a query can be, of those whose cosine is `threshold` or more.

        None where too many are about as near for a look at each to pay; see `affords`.

        Args:
            rows: what stands at each place; where that is negative the vector is dead, and not found.
        """
        places, estimates = self._likely(query, _likely_count(k))
        living = rows[places] >= 0
        nearest = estimates[living][:k]
        length = float(np.linalg.norm(query))
        kth = self._at_least(float(nearest[-1]), length) if len(nearest) == k else -math.inf
        floor = self._at_least(max(kth, threshold), length)
        if estimates[-1] >= floor and len(places) < self.count:
            return None
        return places[living & (estimates >= floor)]

    @staticmethod
    def affords(k: int, among: int) -> bool:
        """Whether `candidates`, and to look at each of them, takes less than a scan of `among` vectors."""
        return _WORTH * _likely_count(k) <= among

    def _at_least(self, score: float, length: float) -> float:
        """The least that an estimate is of a score, or a score of which this is an estimate, for a query so long."""
        along = score * score
        spread = math.sqrt((max(0.0, length * length - along) * _ASIDE + along * _ALONG) / self._dims)
        return score - _SURE * spread

    def _likely(self, query: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places of vectors that look near, and estimates of their cosines, best first."""
        scores, places = self._index.search(self._rotation.turn(query[None]), min(count, len(self._codes)))
        return places[0], scores[0] / _KEPT

    def _rounded(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """(n, dims / 2): the step that each coordinate is on, two in a byte."""
        turned = self._rotation.turn(vectors)
        turned *= np.float32(math.sqrt(self._dims) / _STEP)
        turned += 8
        steps = np.clip(turned, 0, 15, out=turned).astype(np.uint8)
        return steps[:, 0::2] | np.left_shift(steps[:, 1::2], 4, dtype=np.uint8)


def _likely_count(k: int) -> int:
    return max(_LIKELY, 6 * k)


class _Rotation:
    """A rotation drawn at random, the same in every process.

    A matrix of dims ** 2 numbers would take longer to read than a scan's tables. So it is made of small ones, two times
    over: the coordinates, shuffled and with signs drawn, as a table whose columns and rows are rotated.
    """

    def __init__(self, dims: int) -> None:
        chance = np.random.default_rng(dims)
        self._high = next(side for side in range(math.isqrt(dims), 0, -1) if dims % side == 0)
        self._wide = dims // self._high
        self._rounds = [
            (
                chance.permutation(dims),
                chance.choice(np.array([-1, 1], dtype=np.float32), dims),
                _orthogonal(chance, self._high),
                _orthogonal(chance, self._wide),
            )
            for _ in range(2)
        ]

    def turn(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, dims), turned."""
        for order, signs, left, right in self._rounds:
            table = (vectors[:, order] * signs).reshape(-1, self._high, self._wide)
            vectors = (left @ table @ right).reshape(len(vectors), -1)
        return vectors


_rotation = lru_cache(maxsize=8)(_Rotation)


def _orthogonal(chance: np.random.Generator, size: int) -> NDArray[np.float32]:
    matrix, _ = np.linalg.qr(chance.standard_normal((size, size)))
    return matrix.astype(np.float32)
