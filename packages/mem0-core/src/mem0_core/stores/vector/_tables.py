"""Vectors of one partition: a flat index or an HNSW graph in FAISS, or a numpy array where FAISS is not installed.

Those in FAISS hold vectors in half precision, which halves the memory and takes a third off the time of a scan. It
moves a cosine by 2 ** -11 (5e-4) at most, and by 6e-5 on sentences, so results change only among ties. Scoring results
again by the stored vectors would add some 0.06 ms to each search.

A few vectors are a numpy array too, rounded as FAISS rounds them: their scan is as fast, and the import of FAISS takes
longer than all else that the first search of a process does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core.errors import MissingExtraError
from mem0_core.stores.vector._quantized import QuantizedVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_CHANGED_VECTORS = 500  # read at once at first to catch up: SQLite reads so few on the writing connection
READ_BATCH_VECTORS = 5_000  # read from the source at once, so that loading needs little more memory than the index
MAX_DEAD_SHARE = 0.2  # an index with a greater share of removed vectors is rebuilt
_HNSW_M = 32
_EF_CONSTRUCTION = 80
_EF_SEARCH = 192
_QUANTIZED_VECTORS_RANGE = (8_000, 40_000)  # below, a scan is as fast; above, an HNSW graph is being built
_QUANTIZE_BATCH_VECTORS = 2_000  # quantized before one search, so that no search waits for all of them
_FULL_SCANS_AFTER_MISS = 15  # searches without quantization after one that it could not answer
_SMALL_NUMBERS = 1 << 18  # coordinates of few vectors: for more, BLAS wakes a second thread
_LEAST_NORMAL = np.float32(2.0**-14)  # in half precision; smaller numbers are multiples of 2 ** -24

Neighbors = list[list[tuple[int, float]]]
"""For each query the (row, cosine) of its nearest vectors, best first."""


class VectorTable:
    """Vectors by position in a FAISS index. Removing one costs as much as a scan, so its position is marked dead."""

    def __init__(self, dims: int, index: Any, rows: NDArray[np.int64] | None = None) -> None:
        self.dims = dims
        self._index = index
        self._row_buffer = rows if rows is not None else np.empty(0, dtype=np.int64)  # with spare capacity
        self._count = len(self._row_buffer)
        self._places = {row: place for place, row in enumerate(self._rows.tolist()) if row >= 0}

    @property
    def _rows(self) -> NDArray[np.int64]:
        """The row at each position; -1 if dead."""
        return self._row_buffer[: self._count]

    @property
    def live_count(self) -> int:
        return len(self._places)

    @property
    def dead_share(self) -> float:
        return 1 - self.live_count / max(1, self._count)

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        self._mark_dead(rows.tolist())  # rows that were re-embedded, or read twice
        if len(rows):
            self._index.add(np.ascontiguousarray(vectors))
            first, self._count = self._count, self._count + len(rows)
            if self._count > len(self._row_buffer):
                self._row_buffer = enlarge(self._row_buffer[:first], self._count)
            self._row_buffer[first : self._count] = rows
            self._places.update(zip(rows.tolist(), range(first, self._count), strict=True))
        self._mark_dead(map(int, removed))

    def copy_live_vectors(self, target: VectorTable) -> None:
        """Add all vectors that are not removed to an empty table."""
        rows = self.row_numbers()
        for start in range(0, len(rows), READ_BATCH_VECTORS):
            target.replace(*self.vectors(rows[start : start + READ_BATCH_VECTORS]), ())

    def take_over(self, other: VectorTable) -> None:
        """Replace the content by that of `other`, which is not used any more."""
        self._index, self._row_buffer = other._index, other._row_buffer
        self._count, self._places = other._count, other._places

    def _mark_dead(self, rows: Iterable[int]) -> None:
        for row in self._places.keys() & rows:
            self._rows[self._places.pop(row)] = -1

    def row_numbers(self) -> NDArray[np.int64]:
        return self._rows[self._rows >= 0]

    def vectors(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of `rows` that are still stored, with their vectors."""
        places = np.array([self._places.get(row, -1) for row in rows.tolist()], dtype=np.int64)
        is_live = places >= 0
        return rows[is_live], self._index.reconstruct_batch(places[is_live])

    def _selector(self, allowed_rows: NDArray[np.int64] | None) -> Any:
        """Return the positions that a search may find, as FAISS accepts them; None for all."""
        if allowed_rows is None and self.live_count == self._count:
            return None
        selected = np.isin(self._rows, allowed_rows) if allowed_rows is not None else self._rows >= 0
        return None if selected.all() else import_faiss().IDSelectorBitmap(np.packbits(selected, bitorder="little"))

    def _rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(places >= 0, self._rows[places], -1)


class FlatIndex(VectorTable):
    """A scan of all vectors; a large index first reads four bits per coordinate, then the candidates in full."""

    def __init__(self, dims: int) -> None:
        faiss = import_faiss()
        super().__init__(dims, faiss.IndexScalarQuantizer(dims, _half_precision(), faiss.METRIC_INNER_PRODUCT))
        self._quantized: QuantizedVectors | None = None
        self._is_unquantizable = False  # True once a vector cannot be quantized
        self._full_scans_left = 0  # searches that skip quantization

    @property
    def nbytes(self) -> int:
        quantized = self._quantized.nbytes if self._quantized is not None else 0
        return self._count * (self.dims * 2 + 100) + quantized

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        is_up_to_date = self._quantized is not None and self._quantized.count == self._count
        if is_up_to_date and 0 < len(rows) <= _QUANTIZE_BATCH_VECTORS:
            self._quantize(vectors)  # now, so that they need not be read again
        super().replace(rows, vectors, removed)
        if self.dead_share > MAX_DEAD_SHARE:
            self._compact()

    def _compact(self) -> None:
        fresh = FlatIndex(self.dims)
        self.copy_live_vectors(fresh)
        self.take_over(fresh)
        self._quantized = None

    def search(
        self, queries: NDArray[np.float32], k: int, allowed_rows: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        k = min(k, self.live_count)
        if allowed_rows is None and (found := self._search_quantized(queries, k, threshold)) is not None:
            return found
        selector = self._selector(allowed_rows)
        scores, places = self._index.search(
            queries, k, params=selector and import_faiss().SearchParameters(sel=selector)
        )
        return _pair_rows(scores, self._rows_at(places))

    def _search_quantized(self, queries: NDArray[np.float32], k: int, threshold: float | None) -> Neighbors | None:
        """Return the results of a full scan down to the threshold; None if a full scan is needed."""
        quantized = self._extend_quantized() if QuantizedVectors.is_worthwhile(k, self.live_count) else None
        if quantized is None or self._full_scans_left:
            self._full_scans_left = max(0, self._full_scans_left - 1)
            return None
        found, lowest = [], -np.inf if threshold is None else threshold
        for query in queries:
            nearest = quantized.nearest(query, k, self._rows, self._index.reconstruct_batch, lowest)
            if nearest is None:  # the next searches would most likely miss too
                self._full_scans_left = _FULL_SCANS_AFTER_MISS
                return None
            found.append(pair_row(self._rows[nearest[0]], nearest[1]))
        return found

    def _extend_quantized(self) -> QuantizedVectors | None:
        """Quantize the next batch; return None until all are quantized, or if quantization is not worthwhile."""
        if self._is_unquantizable or not _QUANTIZED_VECTORS_RANGE[0] <= self.live_count <= _QUANTIZED_VECTORS_RANGE[1]:
            return None
        if self._quantized is None:
            self._quantized = QuantizedVectors(self.dims)
        done = self._quantized.count
        if done < self._count:
            self._quantize(self._index.reconstruct_n(done, min(self._count - done, _QUANTIZE_BATCH_VECTORS)))
        return self._quantized if self._quantized is not None and self._quantized.count == self._count else None

    def _quantize(self, vectors: NDArray[np.float32]) -> None:
        """Add vectors to the quantized ones; give up quantization if they are not supported."""
        assert self._quantized is not None
        if QuantizedVectors.supports(vectors):
            self._quantized.add(vectors)
        else:
            self._is_unquantizable, self._quantized = True, None

    @staticmethod
    def round(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return vectors as `vectors` would return them."""
        return round_to_half(vectors)


class HnswIndex(VectorTable):
    """An HNSW graph. It cannot remove vectors, so every search excludes dead positions."""

    def __init__(self, dims: int, index: Any = None, rows: NDArray[np.int64] | None = None) -> None:
        if index is None:
            faiss = import_faiss()
            index = faiss.IndexHNSWSQ(dims, _half_precision(), _HNSW_M, faiss.METRIC_INNER_PRODUCT)
            # A formality: half precision learns nothing.
            index.train(np.zeros((1, dims), dtype=np.float32))
            index.hnsw.efConstruction = _EF_CONSTRUCTION
        super().__init__(dims, index, rows)

    @property
    def nbytes(self) -> int:
        return self._count * (self.dims * 2 + _HNSW_M * 8 + 100)

    def search(
        self, queries: NDArray[np.float32], k: int, allowed_rows: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        breadth = max(_EF_SEARCH, 2 * min(k, self.live_count))
        selector = self._selector(allowed_rows)
        params = import_faiss().SearchParametersHNSW(efSearch=breadth, sel=selector)
        scores, places = self._index.search(queries, min(k, self.live_count), params=params)
        return _pair_rows(scores, self._rows_at(places))

    def write(self, path: Path) -> NDArray[np.int64]:
        import_faiss().write_index(self._index, str(path))
        return self._rows


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
            fresh = type(self)(self.dims)
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

    @staticmethod
    def round(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return vectors as `vectors` would return them."""
        return vectors


class SmallIndex(ArrayIndex):
    """A scan of few vectors, in single precision but with the values of half precision."""

    @staticmethod
    def fits(count: int, dims: int) -> bool:
        """Return True if so many vectors are few."""
        return count * dims <= _SMALL_NUMBERS

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        super().replace(rows, self.round(vectors), removed)

    def _pick_best(self, scores: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Return the best positions: of equal ones those that were added first, in the reverse order, as FAISS does."""
        places = np.argsort(-scores, kind="stable")[:k]
        places = places[np.lexsort((-places, -scores[places]))]
        places = places[scores[places] > -np.inf]
        return pair_row(self._rows[places], scores[places])

    @staticmethod
    def round(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return round_to_half(vectors)


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


def round_to_half(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors as FAISS returns them from half precision: it rounds ties away from zero."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    bits = vectors.view(np.uint32) + np.uint32(0x1000)
    bits &= np.uint32(0xFFFFE000)  # ten bits of the fraction are left
    rounded = bits.view(np.float32)
    tiny = np.flatnonzero((vectors < _LEAST_NORMAL) & (vectors > -_LEAST_NORMAL))
    if len(tiny):
        some = vectors.ravel()[tiny]
        rounded.ravel()[tiny] = np.copysign(np.floor(np.abs(some) * 2**24 + 0.5) / 2**24, some)
    return rounded


def enlarge(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Copy an array into one with room for half as many rows more; the room takes no memory until it is written."""
    wider = np.empty((count * 3 // 2, *values.shape[1:]), dtype=values.dtype)
    wider[: len(values)] = values
    return wider


@cache
def is_faiss_installed() -> bool:
    """Return True if FAISS can be imported; the first call looks into all folders of Python's path."""
    return find_spec("faiss") is not None


def import_faiss() -> Any:
    """Import faiss on first use, untyped: its stubs describe the C++ API, not the Python one."""
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise MissingExtraError("faiss-cpu", "faiss") from error
    return faiss


def _half_precision() -> Any:
    return import_faiss().ScalarQuantizer.QT_fp16


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Limit FAISS to `count` threads for calls of this thread.

    A scan of some thousand vectors takes less time than to wake a second thread, and on a busy machine waiting for that
    thread costs a time slice. The setting is per calling thread.
    """
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def scan(rows: NDArray[np.int64], vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int) -> Neighbors:
    """Search exactly among the given vectors."""
    if not len(rows):
        return [[] for _ in queries]
    found = []
    for scores in queries @ vectors.T:
        best = np.argsort(-scores, kind="stable")[:k]
        found.append(pair_row(rows[best], scores[best]))
    return found


def _pair_rows(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> Neighbors:
    return [pair_row(of_query, points) for of_query, points in zip(rows, scores, strict=True)]


def pair_row(rows: NDArray[np.int64], scores: NDArray[np.float32]) -> list[tuple[int, float]]:
    """Pair rows with scores, without empty positions."""
    return [(row, score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row >= 0]
