"""A search that reads four bits per coordinate first returns the results of a full scan, for any vectors."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.corpus import memos, take
from mem0_core.domain.records import Scope
from mem0_core.interfaces import ChangePosition, VectorChanges
from mem0_core.providers.onnx import OnnxEmbedder
from mem0_core.stores.vector._quantized import QuantizedVectors
from mem0_core.stores.vector._tables import FlatIndex
from mem0_core.stores.vector.faiss import FaissIndex

ALICE = Scope("alice")
DIMS = 384
MANY = 8_400
HALF = 1e-3  # half precision moves a cosine by less

Vectors = NDArray[np.float32]


@dataclass
class Source:
    """A `VectorSource` in memory."""

    held: dict[int, Vectors] = field(default_factory=dict)
    log: list[tuple[int, Vectors | None]] = field(default_factory=list)
    dims: int = DIMS

    def add(self, rows: Sequence[int], vectors: Vectors) -> None:
        self.dims = vectors.shape[1]
        self.held.update(zip(rows, vectors, strict=True))
        self.log += zip(rows, vectors, strict=True)

    def remove(self, rows: Sequence[int]) -> None:
        for row in rows:
            del self.held[row]
            self.log.append((row, None))

    def position(self, scope: Scope) -> ChangePosition:
        return ChangePosition("an epoch", len(self.log))

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        since = dict(self.log[after:])
        rows = [row for row, vector in since.items() if vector is not None]
        removed = [row for row, vector in since.items() if vector is None]
        vectors = np.array([self.held[row] for row in rows], dtype=np.float32).reshape(len(rows), self.dims)
        return VectorChanges(np.array(rows, dtype=np.int64), vectors, removed=np.array(removed, dtype=np.int64))

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], Vectors]:
        living = [row for row in rows if row in self.held]
        return np.array(living, dtype=np.int64), np.array([self.held[row] for row in living], dtype=np.float32)

    def rows(self, scope: Scope) -> NDArray[np.int64]:
        return np.array(sorted(self.held), dtype=np.int64)

    def nearest(self, query: Vectors, k: int) -> list[float]:
        """The cosines of the nearest, by looking at all."""
        return sorted((np.array(list(self.held.values())) @ query).tolist(), reverse=True)[:k]

    def agrees(self, query: Vectors, found: Sequence[tuple[int, float]], k: int) -> bool:
        """Return True if these are the nearest, each with its own cosine."""
        own = all(abs(float(self.held[row] @ query) - cosine) < HALF for row, cosine in found)
        distinct = len({row for row, _ in found}) == len(found)
        return own and distinct and np.allclose([cosine for _, cosine in found], self.nearest(query, k), atol=HALF)


def unit(vectors: NDArray[np.floating]) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def anywhere(count: int, seed: int = 1, dims: int = DIMS) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((count, dims)))


def themes(count: int, seed: int = 1) -> Vectors:
    """Forty clusters, as of a user with forty topics."""
    chance = np.random.default_rng(seed)
    centres = unit(np.random.default_rng(40).standard_normal((40, DIMS)))
    return unit(centres[chance.integers(40, size=count)] + 0.05 * chance.standard_normal((count, DIMS)))


def one_heap(count: int, seed: int = 1) -> Vectors:
    """All so near to one another that four bits cannot tell them apart."""
    chance = np.random.default_rng(seed)
    return unit(np.ones((1, DIMS)) + 0.1 * chance.standard_normal((count, DIMS)))


def one_great_coordinate(count: int, seed: int = 1) -> Vectors:
    """As some language models have it: by their signs alone these look as far apart as vectors can."""
    vectors = anywhere(count, seed)
    vectors[:, 7] = 1
    return unit(vectors)


def equal_ones(count: int, seed: int = 1) -> Vectors:
    return np.repeat(anywhere(-(-count // 50), seed), 50, axis=0)[:count]


def search_until_quantized(source: Source, searches: int = 5) -> tuple[FaissIndex, FlatIndex]:
    """Return an index that has quantized all its vectors, some thousand before each search."""
    index = FaissIndex(source)
    for query in anywhere(searches, seed=99):
        index.nearest(ALICE, query[None], 1)
    (partition,) = index._loaded_partitions()
    assert isinstance(partition._index, FlatIndex)
    return index, partition._index


@pytest.mark.parametrize("k", [1, 10, 20, 60])
@pytest.mark.parametrize("make", [anywhere, themes, one_heap, one_great_coordinate, equal_ones])
def test_finds_what_a_scan_of_all_finds(make: object, k: int) -> None:
    assert callable(make)
    source = Source()
    source.add(range(MANY), make(MANY))
    index, flat = search_until_quantized(source)
    assert flat._quantized is not None
    assert flat._quantized.count == MANY
    for query in [*make(8, 2), *anywhere(8, 3)]:
        (found,) = index.nearest(ALICE, query[None], k)
        assert source.agrees(query, found, k)


@pytest.mark.parametrize(("make", "pays"), [(anywhere, True), (themes, True), (one_heap, False), (equal_ones, True)])
def test_reads_all_full_scans_left_only_where_too_many_are_about_as_near(make: object, pays: bool) -> None:
    assert callable(make)
    source = Source()
    source.add(range(MANY), make(MANY))
    index, flat = search_until_quantized(source)
    flat._full_scans_left = 0
    index.nearest(ALICE, make(MANY)[:1] if pays else make(1, 2), 10)
    assert (flat._full_scans_left == 0) == pays


@pytest.mark.parametrize("threshold", [-0.5, 0.2, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("make", [anywhere, themes, one_heap, equal_ones])
def test_finds_what_is_near_enough(make: object, threshold: float) -> None:
    assert callable(make)
    source = Source()
    source.add(range(MANY), make(MANY))
    index, _ = search_until_quantized(source)
    for query in [*make(4, 2), *make(MANY)[-2:], *anywhere(2, 3)]:
        (found,) = index.nearest(ALICE, query[None], 10, threshold=threshold)
        wanted = [cosine for cosine in source.nearest(query, 10) if cosine >= threshold]
        assert np.allclose([cosine for _, cosine in found], wanted, atol=HALF)


def test_several_queries_at_once() -> None:
    source = Source()
    source.add(range(MANY), themes(MANY))
    index, _ = search_until_quantized(source)
    queries = themes(4, seed=5)
    for query, found in zip(queries, index.nearest(ALICE, queries, 10), strict=True):
        assert source.agrees(query, found, 10)


def test_follows_what_is_added_changed_and_removed() -> None:
    chance = np.random.default_rng(4)
    source = Source()
    source.add(range(MANY), themes(MANY))
    index, flat = search_until_quantized(source)
    for turn in range(25):
        source.add([MANY + turn], themes(1, seed=100 + turn))
        changed, gone = chance.choice(sorted(source.held), 2, replace=False).tolist()
        source.add([changed], themes(1, seed=200 + turn))
        source.remove([gone])
        for query in [*themes(1, seed=300 + turn), source.held[changed], source.held[MANY + turn]]:
            (found,) = index.nearest(ALICE, query[None], 10)
            assert source.agrees(query, found, 10)
    assert flat._quantized is not None


def test_forgets_for_good_once_much_is_removed() -> None:
    source = Source()
    source.add(range(MANY), themes(MANY))
    index, flat = search_until_quantized(source)
    source.remove(range(0, MANY, 4))
    (query,) = themes(1, seed=2)
    for _ in range(6):  # quantized again in between, if enough are left
        (found,) = index.nearest(ALICE, query[None], 10)
        assert source.agrees(query, found, 10)
    assert flat.dead_share == 0
    assert flat.live_count == len(source.held)


@pytest.mark.parametrize("vectors", [3 * anywhere(MANY), anywhere(MANY, dims=32), anywhere(MANY, dims=129)])
def test_what_the_error_is_not_known_of_is_read_full_scans_left(vectors: Vectors) -> None:
    source = Source()
    source.add(range(MANY), vectors)
    index = FaissIndex(source)
    for query in vectors[:6]:
        (found,) = index.nearest(ALICE, query[None], 10)
        assert np.allclose([cosine for _, cosine in found], source.nearest(query, 10), rtol=HALF, atol=HALF)
    (partition,) = index._loaded_partitions()
    flat = partition._index
    assert isinstance(flat, FlatIndex)
    assert flat._quantized is None


def test_estimates_err_as_little_as_they_promise() -> None:
    """Of 640,000 pairs of each kind, some 40 may err by more, to one side or the other."""
    for make in (anywhere, themes, one_heap, one_great_coordinate):
        vectors, queries = make(8_000), [*make(40, 2), *anywhere(40, 3)]
        quantized = QuantizedVectors(DIMS)
        quantized.add(vectors)
        beyond = 0
        for query in queries:
            places, estimates = quantized._find_candidates(query, len(vectors))
            cosines = vectors[places] @ query
            least = np.array([quantized._lower_bound(cosine, 1.0) for cosine in cosines.tolist()])
            beyond += int((np.abs(estimates - cosines) > cosines - least).sum())
        assert beyond < 60


# --- real vectors --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="mem0-models is not installed")
def test_sentences_as_a_model_embeds_them() -> None:
    """Every sentence finds its ten nearest among all others; recall is that of a scan in full."""
    sentences = [memo.text for memo in take(memos(seed=5), 600)]
    vectors = OnnxEmbedder().embed(sentences).astype(np.float16).astype(np.float32)
    quantized = QuantizedVectors(vectors.shape[1])
    assert quantized.supports(vectors)
    quantized.add(vectors)
    answered = hits = 0
    for query in vectors:
        nearest = quantized.nearest(query, 10, np.arange(len(vectors)), vectors.__getitem__)
        if nearest is not None:
            answered += 1
            hits += len(np.intersect1d(nearest[0], np.argsort(-(vectors @ query), kind="stable")[:10]))
    assert answered > 0.9 * len(vectors)
    assert hits / (10 * answered) > 0.999
