"""The FAISS projection: near vectors within one scope, exactly for small scopes, by HNSW for large ones.

A *partition* holds the vectors of one id (a user, else an agent, else a run), so a search costs what that id's
memories cost, whoever else is in the store. Before each search the partition asks the truth how far it has come
and applies what it missed: that one path serves the process's own writes, other processes' writes and recovery.

- Up to `exact_limit` vectors a partition is a flat index, read from the truth when first used: a scan of all
  20,000 takes about a millisecond, and an approximate index with a filter loses results (recall 0.2 to 0.5
  at 1 % selectivity, faiss and pgvector alike). Many are read in four bits a coordinate first, see `quantized`.
- Above it a thread builds an HNSW graph while the flat index goes on answering. HNSW is costly to build, so it is
  kept as a snapshot: the index file and, written after it, a JSON seal with its checksum and its place in the
  truth's order. A snapshot that is missing, torn, altered or of another epoch is built again from the truth.
- A search restricted to some rows of an HNSW partition scans just these rows; where they are more than
  50,000 the graph is searched with a filter, which then is weak enough not to lose results (recall 0.997 at 10 %).

Vectors are held in half precision, by both kinds of index alike: half the memory and two thirds of the time of a scan.
That moves a cosine by 2 ** -11 (5e-4) at most, and by 6e-5 as measured on sentences, so the memories found stay the
same but for ties. Scoring them anew by the vectors of the truth would cost each search some 0.06 ms, to no use.

Nothing is pickled. Partitions least recently used are dropped when `cache_bytes` is exceeded.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock, RLock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from mem0_core._files import make_file, make_folder
from mem0_core.domain.records import Scope
from mem0_core.errors import StoreError
from mem0_core.interfaces import ChangePosition, VectorSource, drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.vector.quantized import QuantizedVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FaissIndex"]

_log = logging.getLogger(__name__)

_HNSW_M = 32  # HNSW's M
_EF_CONSTRUCTION = 80  # HNSW's efConstruction
_EF_SEARCH = 192  # HNSW's efSearch
_READ_BATCH_VECTORS = (
    5000  # vectors read from the truth at once, so that loading takes little more memory than it fills
)
_BUILD_BATCH_VECTORS = 1000  # vectors added between two looks at whether the index is being closed
_MAX_DEAD_SHARE = 0.2  # above this share of removed vectors an index is built anew
_MAX_EXACT_ROWS = 50_000  # a search among at most so many rows of an HNSW partition scans them
_COORDINATE_TOLERANCE = 2e-3  # half precision moves a coordinate by less
_MAX_SELECTED_ROWS = 256  # a search among at most so many rows of a flat partition looks at nothing else
_QUANTIZED_VECTORS_RANGE = (
    8_000,
    40_000,
)  # flat partitions of so many vectors are quantized: more are about to be a graph
_QUANTIZE_BATCH_VECTORS = 2_000  # vectors quantized before one search, so that none waits for all of them
_FULL_SCANS_AFTER_MISS = 15  # searches that scan all in full after one that was quantized in vain
_SUFFIXES = {".json", ".hnsw", ".rows", ".seal"}

Neighbors = list[list[tuple[int, float]]]


class FaissIndex:
    """A `VectorIndex` that follows a `VectorSource`.

    Args:
        source: the truth.
        folder: where snapshots of large partitions are kept; None keeps none.
        exact_limit: number of vectors up to which a partition is scanned exactly.
        cache_bytes: memory for vectors of loaded partitions; the one being searched always stays.
    """

    inline = True  # see `flow`

    def __init__(
        self,
        source: VectorSource,
        *,
        folder: str | Path | None = None,
        exact_limit: int = 20_000,
        cache_bytes: int = 256 << 20,
    ) -> None:
        self._source = source
        self._folder = Path(folder) if folder is not None else None
        self._exact_limit = exact_limit
        self._cache_bytes = cache_bytes
        self._partitions: OrderedDict[Scope, _Partition] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._closing = Event()

    def nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> Neighbors:
        address = scope.partition_scope
        if allowed_rows is None and address != scope:
            allowed_rows = self._source.rows(scope)
        if k <= 0 or not len(queries) or (allowed_rows is not None and not len(allowed_rows)):
            return [[] for _ in queries]
        partition = self._partition(address)
        with _limit_threads(1):
            found = partition.search(np.ascontiguousarray(queries, dtype=np.float32), k, allowed_rows, threshold)
        self._evict_partitions(partition)
        return drop_below_threshold(found, threshold)

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove the snapshots that may hold vectors deleted from a scope; graphs in memory write new ones."""
        addresses = None if scope is None else scope.partition_scopes
        for partition in self._loaded_partitions():
            if addresses is None or partition.address in addresses:
                partition.mark_unsaved()
        if self._folder is not None and self._folder.is_dir():
            names = None if addresses is None else [_Snapshot(self._folder, address).name for address in addresses]
            for path in self._folder.iterdir():
                if path.suffix in _SUFFIXES and (names is None or path.name.startswith(tuple(names))):
                    path.unlink(missing_ok=True)

    def wait_for_builds(self, timeout: float | None = None) -> None:
        """Wait until no HNSW graph is being built."""
        for partition in self._loaded_partitions():
            partition.join(timeout)

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Whether the snapshots on disk are whole, and hold what the truth holds; see `care.VerifiableProjection`."""
        if self._folder is None:
            return []
        self.wait_for_builds()
        found = [
            unsound for address in addresses if (unsound := self._examine_snapshot(address, address in partitions))
        ]
        return [*found, *self._find_orphaned_snapshots(addresses)]

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        assert self._folder is not None
        address = mismatch.address
        if address is None:
            for name in mismatch.files:
                (self._folder / name).unlink(missing_ok=True)
            return "removed"
        with self._lock:
            dropped = self._partitions.pop(address, None)
            self._bytes -= dropped.counted if dropped is not None else 0
        if dropped is not None:
            dropped.join()
        _Snapshot(self._folder, address).remove()
        rows = self._source.rows(address)
        if len(rows) <= self._exact_limit:
            return "removed: so few vectors need none"
        _, vectors = self._source.vectors(rows[:1].tolist())
        self.nearest(address, vectors, 1)
        self.wait_for_builds()
        return "built anew from the truth"

    def _examine_snapshot(self, address: Scope, expected: bool) -> ProjectionMismatch | None:
        assert self._folder is not None
        snapshot, rows = _Snapshot(self._folder, address), self._source.rows(address)
        name = f"{snapshot.name} ({address.partition[0]} {address.partition[1]!r})"
        if not snapshot.files():
            if expected and len(rows) > self._exact_limit:
                return ProjectionMismatch(
                    f"the snapshot {name} is missing: {len(rows)} vectors would be read at the next search", address
                )
            return None
        if (damage := snapshot.damage()) is not None:
            return ProjectionMismatch(f"the snapshot {name} is damaged: {damage}", address)
        loaded = snapshot.load()
        if loaded is None:
            return ProjectionMismatch(f"the snapshot {name} cannot be read", address)
        graph, at = loaded
        now = self._source.position(address)
        if at.epoch != now.epoch:
            return None  # of before a purge or the like: the next search replaces it
        if at.seq > now.seq:
            return ProjectionMismatch(f"the snapshot {name} is ahead of the truth ({at.seq}, {now.seq})", address)
        difference = self._describe_difference(address, graph, at, rows)
        return None if difference is None else ProjectionMismatch(f"the snapshot {name} {difference}", address)

    def _describe_difference(
        self, address: Scope, graph: _HnswIndex, at: ChangePosition, rows: NDArray[np.int64]
    ) -> str | None:
        """How a snapshot, with what came after it, differs from the truth."""
        held, later = set(graph.row_numbers().tolist()), set[int]()
        more: int | None = at.seq
        while more is not None:
            changes = self._source.vector_changes(address, after=more, limit=_READ_BATCH_VECTORS)
            later |= set(changes.rows.tolist())
            held -= set(changes.removed.tolist())
            more = changes.next_after
        truth = set(rows.tolist())
        if missing := truth - held - later:
            return f"lacks {len(missing)} of {len(truth)} vectors"
        if extra := (held | later) - truth:
            return f"holds {len(extra)} vectors that are gone"
        same = np.array(sorted(held - later), dtype=np.int64)
        for start in range(0, len(same), _READ_BATCH_VECTORS):
            ours, vectors = graph.vectors(same[start : start + _READ_BATCH_VECTORS])
            stored_rows, theirs = self._source.vectors(ours.tolist())
            if not np.allclose(vectors, theirs[np.argsort(stored_rows)], atol=_COORDINATE_TOLERANCE):
                return "holds vectors that are not the truth's"
        return None

    def _find_orphaned_snapshots(self, addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        if self._folder is None or not self._folder.is_dir():
            return []
        known = {_Snapshot(self._folder, address).name for address in addresses}
        stray = [
            path.name
            for path in sorted(self._folder.iterdir())
            if path.suffix in _SUFFIXES and path.is_file() and "-".join(path.stem.split("-")[:2]) not in known
        ]
        return (
            [ProjectionMismatch(f"{len(stray)} snapshot files of nobody's ({stray[0]})", files=tuple(stray))]
            if stray
            else []
        )

    def close(self) -> None:
        """Stop builders and write the snapshots of large partitions that changed."""
        self._closing.set()
        for partition in self._loaded_partitions():
            partition.join()
            partition.save()
        self._partitions.clear()

    def _loaded_partitions(self) -> list[_Partition]:
        with self._lock:
            return list(self._partitions.values())

    def _partition(self, address: Scope) -> _Partition:
        with self._lock:
            if self._closing.is_set():
                raise StoreError("the vector index is closed")
            partition = self._partitions.get(address)
            if partition is None:
                snapshot = _Snapshot(self._folder, address) if self._folder else None
                partition = _Partition(self._source, address, snapshot, self._exact_limit, self._closing)
                self._partitions[address] = partition
            self._partitions.move_to_end(address)
            return partition

    def _evict_partitions(self, used: _Partition) -> None:
        """Count what `used` holds now, and drop the partitions least recently used while that is too much."""
        dropped = []
        with self._lock:
            self._bytes += used.nbytes - used.counted
            used.counted = used.nbytes
            if not used.nbytes:  # an id without memories: anybody can ask for any number of those
                self._partitions.pop(used.address, None)
            for address, partition in list(self._partitions.items()) if self._bytes > self._cache_bytes else ():
                if self._bytes <= self._cache_bytes:
                    break
                if partition is not used and not partition.is_building:
                    self._bytes -= partition.counted
                    dropped.append(self._partitions.pop(address))
        for partition in dropped:
            partition.save()


class _Partition:
    """The vectors of one id: a flat index, or an HNSW graph once there are many."""

    def __init__(
        self,
        source: VectorSource,
        address: Scope,
        snapshot: _Snapshot | None,
        exact_limit: int,
        closing: Event,
    ) -> None:
        self._source = source
        self.address = address
        self._snapshot = snapshot
        self._exact_limit = exact_limit
        self._closing = closing
        self._lock = RLock()
        self._builder: Thread | None = None
        self._at: ChangePosition | None = None
        self._index: _FlatIndex | _HnswIndex | None = None
        self._saved_at: ChangePosition | None = None
        self.counted = 0  # bytes the index has accounted for

    @property
    def nbytes(self) -> int:
        return self._index.nbytes if self._index is not None else 0

    @property
    def is_building(self) -> bool:
        return self._builder is not None and self._builder.is_alive()

    def join(self, timeout: float | None = None) -> None:
        if self._builder is not None:
            self._builder.join(timeout)

    def search(
        self, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        """The k nearest; those below a threshold may be among them, or not."""
        with self._lock:
            index = self._follow()
            if index is None:
                return [[] for _ in queries]
            if only is not None and len(only) <= (
                _MAX_EXACT_ROWS if isinstance(index, _HnswIndex) else _MAX_SELECTED_ROWS
            ):
                return _scan(*index.vectors(only), queries, k)
            return index.search(queries, k, only, threshold)

    def _follow(self) -> _FlatIndex | _HnswIndex | None:
        """Bring the index to where the truth is now; None while the partition is empty."""
        now = self._source.position(self.address)
        if self._at is None or self._at.epoch != now.epoch:
            self._index, self._at = self._load(now)
        if self._at.seq != now.seq:
            self._catch_up(self._at.seq)
            self._at = now
        if self._needs_graph():
            self._builder = Thread(target=self._build, name="mem0-hnsw", daemon=True)
            self._builder.start()
        return self._index if self._index is not None and self._index.live_count else None

    def _catch_up(self, after: int | None) -> None:
        """Apply what changed in the truth, some thousand vectors at a time."""
        while after is not None:
            changes = self._source.vector_changes(self.address, after=after, limit=_READ_BATCH_VECTORS)
            if self._index is None and len(changes.rows):
                self._index = _FlatIndex(changes.vectors.shape[1])
            if self._index is not None:
                self._index.replace(changes.rows, changes.vectors, changes.removed)
            after = changes.next_after

    def _load(self, now: ChangePosition) -> tuple[_FlatIndex | _HnswIndex | None, ChangePosition]:
        if self._snapshot is not None and (loaded := self._snapshot.load()):
            graph, at = loaded
            if at.epoch == now.epoch and at.seq <= now.seq:
                self._saved_at = at
                return graph, at
            _log.info("the vector snapshot of %s is of another time: reading the truth", self.address)
            self._snapshot.remove()
        return None, ChangePosition(now.epoch, 0)

    def _needs_graph(self) -> bool:
        if self._index is None or self.is_building or self._closing.is_set():
            return False
        if isinstance(self._index, _HnswIndex):
            return self._index.dead_share > _MAX_DEAD_SHARE
        return self._index.live_count > self._exact_limit

    def _build(self) -> None:
        """In a thread: build a graph beside the serving index, then take its place."""
        try:
            with self._lock:
                at = self._at
                if at is None or self._index is None:
                    return
                flat, rows = self._index, self._index.row_numbers()
            graph = _HnswIndex(flat.dims)
            _faiss().omp_set_num_threads(max(1, (os.cpu_count() or 1) // 2))  # of this thread; searches need the rest
            for start in range(0, len(rows), _BUILD_BATCH_VECTORS):
                if self._closing.is_set():
                    return
                with self._lock:  # a step at a time: the vectors of all would take as much memory again
                    live_count, vectors = flat.vectors(rows[start : start + _BUILD_BATCH_VECTORS])
                graph.replace(live_count, vectors, ())
            saved = self._write(graph, at)  # before others can reach the graph, so that no search waits for the disk
            with self._lock:
                if self._at is not None and self._at.epoch == at.epoch:
                    self._index, self._at = graph, at  # what came meanwhile is caught up by the next search
                    self._saved_at = at if saved else None
        except (StoreError, RuntimeError, MemoryError):
            _log.exception("could not build the HNSW graph of %s; exact search goes on", self.address)

    def mark_unsaved(self) -> None:
        """Forget that there is a snapshot: the next `save` writes one."""
        with self._lock:
            self._saved_at = None

    def save(self) -> None:
        with self._lock:
            if isinstance(self._index, _HnswIndex) and self._at is not None and self._at != self._saved_at:
                self._saved_at = self._at if self._write(self._index, self._at) else None

    def _write(self, graph: _HnswIndex, at: ChangePosition) -> bool:
        if self._snapshot is None:
            return False
        try:
            self._snapshot.save(graph, at)
        except (OSError, RuntimeError) as error:  # a snapshot saves time, the truth saves memories: go on without
            _log.warning("could not write the vector snapshot of %s: %s", self.address, error)
            return False
        return True


class _VectorTable:
    """Vectors by place in a FAISS index. To remove one there costs as much as to scan all, so its place is dead."""

    def __init__(self, dims: int, index: Any, rows: NDArray[np.int64] | None = None) -> None:
        self.dims = dims
        self._index = index
        self._room = rows if rows is not None else np.empty(0, dtype=np.int64)  # with some to spare
        self._count = len(self._room)
        self._places = {row: place for place, row in enumerate(self._rows.tolist()) if row >= 0}

    @property
    def _rows(self) -> NDArray[np.int64]:
        """The row at each place; -1 where dead."""
        return self._room[: self._count]

    @property
    def live_count(self) -> int:
        return len(self._places)

    @property
    def dead_share(self) -> float:
        return 1 - self.live_count / max(1, self._count)

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        self._mark_dead(rows.tolist())  # a row that was re-embedded, or read twice
        if len(rows):
            self._index.add(np.ascontiguousarray(vectors))
            first, self._count = self._count, self._count + len(rows)
            if self._count > len(self._room):
                spare = np.empty(self._count * 3 // 2 - first, dtype=np.int64)
                self._room = np.concatenate([self._room[:first], spare])
            self._room[first : self._count] = rows
            self._places.update(zip(rows.tolist(), range(first, self._count), strict=True))
        self._mark_dead(int(row) for row in removed)

    def _mark_dead(self, rows: Iterable[int]) -> None:
        for row in rows:
            place = self._places.pop(row, None)
            if place is not None:
                self._rows[place] = -1

    def row_numbers(self) -> NDArray[np.int64]:
        return self._rows[self._rows >= 0]

    def vectors(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Those of `rows` that are still there, with their vectors."""
        places = np.array([self._places.get(row, -1) for row in rows.tolist()], dtype=np.int64)
        there = places >= 0
        return rows[there], self._index.reconstruct_batch(places[there])

    def _selector(self, only: NDArray[np.int64] | None) -> Any:
        """The places a search may find, as FAISS takes them; None for all."""
        if only is None and self.live_count == self._count:
            return None
        wanted = np.isin(self._rows, only) if only is not None else self._rows >= 0
        return None if wanted.all() else _faiss().IDSelectorBitmap(np.packbits(wanted, bitorder="little"))

    def _rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(places >= 0, self._rows[places], -1)


class _FlatIndex(_VectorTable):
    """All vectors, scanned; where there are many, in four bits a coordinate first, and what can be near in full."""

    def __init__(self, dims: int) -> None:
        faiss = _faiss()
        super().__init__(dims, faiss.IndexScalarQuantizer(dims, _half_precision(), faiss.METRIC_INNER_PRODUCT))
        self._quantized: QuantizedVectors | None = None
        self._plain = False  # whether there is something among them that cannot be quantized
        self._in_full = 0  # searches to come that scan all in full

    @property
    def nbytes(self) -> int:
        quantized = self._quantized.nbytes if self._quantized is not None else 0
        return self._count * (self.dims * 2 + 100) + quantized

    def replace(self, rows: NDArray[np.int64], vectors: NDArray[np.float32], removed: Iterable[int]) -> None:
        is_up_to_date = self._quantized is not None and self._quantized.count == self._count
        if is_up_to_date and 0 < len(rows) <= _QUANTIZE_BATCH_VECTORS:
            self._quantize(vectors)  # from here they need not be read again
        super().replace(rows, vectors, removed)
        if self.dead_share > _MAX_DEAD_SHARE:
            self._compact()

    def _compact(self) -> None:
        live_count, fresh = self.row_numbers(), _FlatIndex(self.dims)
        for start in range(0, len(live_count), _READ_BATCH_VECTORS):
            fresh.replace(*self.vectors(live_count[start : start + _READ_BATCH_VECTORS]), ())
        self._index, self._room, self._count, self._places = fresh._index, fresh._room, fresh._count, fresh._places
        self._quantized = None

    def search(
        self, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        k = min(k, self.live_count)
        if only is None and (found := self._search_quantized(queries, k, threshold)) is not None:
            return found
        selector = self._selector(only)
        scores, places = self._index.search(queries, k, params=selector and _faiss().SearchParameters(sel=selector))
        return _pair_rows(scores, self._rows_at(places))

    def _search_quantized(self, queries: NDArray[np.float32], k: int, threshold: float | None) -> Neighbors | None:
        """What a scan of all in full would find, from the threshold on; None where it takes that."""
        quantized = self._extend_quantized() if QuantizedVectors.is_worthwhile(k, self.live_count) else None
        if quantized is None or self._in_full:
            self._in_full = max(0, self._in_full - 1)
            return None
        found, lowest = [], -np.inf if threshold is None else threshold
        for query in queries:
            nearest = quantized.nearest(query, k, self._rows, self._index.reconstruct_batch, lowest)
            if nearest is None:  # the next searches will hardly fare better
                self._in_full = _FULL_SCANS_AFTER_MISS
                return None
            found.append(_pair_row(self._rows[nearest[0]], nearest[1]))
        return found

    def _extend_quantized(self) -> QuantizedVectors | None:
        """The vectors quantized; None where that does not pay or cannot be, and until it has come to its end."""
        if self._plain or not _QUANTIZED_VECTORS_RANGE[0] <= self.live_count <= _QUANTIZED_VECTORS_RANGE[1]:
            return None
        if self._quantized is None:
            self._quantized = QuantizedVectors(self.dims)
        done = self._quantized.count
        if done < self._count:
            self._quantize(self._index.reconstruct_n(done, min(self._count - done, _QUANTIZE_BATCH_VECTORS)))
        return self._quantized if self._quantized is not None and self._quantized.count == self._count else None

    def _quantize(self, vectors: NDArray[np.float32]) -> None:
        """Let those that are quantized go on with these."""
        assert self._quantized is not None
        if QuantizedVectors.supports(vectors):
            self._quantized.add(vectors)
        else:
            self._plain, self._quantized = True, None


class _HnswIndex(_VectorTable):
    """An HNSW graph. It cannot forget a vector at all, so dead places are left out of every search."""

    def __init__(self, dims: int, index: Any = None, rows: NDArray[np.int64] | None = None) -> None:
        if index is None:
            faiss = _faiss()
            index = faiss.IndexHNSWSQ(dims, _half_precision(), _HNSW_M, faiss.METRIC_INNER_PRODUCT)
            # Asked for as a form only: half precision has nothing to learn.
            index.train(np.zeros((1, dims), dtype=np.float32))
            index.hnsw.efConstruction = _EF_CONSTRUCTION
        super().__init__(dims, index, rows)

    @property
    def nbytes(self) -> int:
        return self._count * (self.dims * 2 + _HNSW_M * 8 + 100)

    def search(
        self, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        breadth = max(_EF_SEARCH, 2 * min(k, self.live_count))
        selector = self._selector(only)
        params = _faiss().SearchParametersHNSW(efSearch=breadth, sel=selector)
        scores, places = self._index.search(queries, min(k, self.live_count), params=params)
        return _pair_rows(scores, self._rows_at(places))

    def write(self, path: Path) -> NDArray[np.int64]:
        _faiss().write_index(self._index, str(path))
        return self._rows


@dataclass(frozen=True, slots=True)
class _SnapshotManifest:
    """What a snapshot says of itself; written last, so that a snapshot without a seal does not count."""

    file: str
    checksum: int
    length: int
    epoch: str
    seq: int
    dims: int


class _Snapshot:
    """One partition on disk: ``<name>.json`` seals ``<name>-<nonce>.hnsw`` and ``....rows``."""

    def __init__(self, folder: Path, address: Scope) -> None:
        axis, value = address.partition
        self._folder = folder
        self.name = f"{axis.value}-{hashlib.blake2b(value.encode(), digest_size=12).hexdigest()}"

    @property
    def _manifest_path(self) -> Path:
        return self._folder / f"{self.name}.json"

    def remove(self) -> None:
        """Leave nothing of it on disk."""
        with suppress(OSError):
            self._manifest_path.unlink(missing_ok=True)
        self._remove_stale_files(keep=None)

    def save(self, graph: _HnswIndex, at: ChangePosition) -> None:
        make_folder(self._folder)
        stem = f"{self.name}-{uuid.uuid4().hex[:12]}"
        index, rows = self._folder / f"{stem}.hnsw", self._folder / f"{stem}.rows"
        draft = self._folder / f"{stem}.seal"
        for path in (index, rows, draft):
            make_file(path)
        rows.write_bytes(graph.write(index).astype("<i8").tobytes())
        seal = _SnapshotManifest(stem, _checksum(index, rows), _length(index, rows), at.epoch, at.seq, graph.dims)
        draft.write_text(json.dumps(asdict(seal)))
        for path in (index, rows, draft):
            _sync(path)
        os.replace(draft, self._manifest_path)
        _sync(self._folder)
        self._remove_stale_files(keep=stem)

    def load(self) -> tuple[_HnswIndex, ChangePosition] | None:
        """The snapshot, or None where there is none that can be trusted (the reason is logged)."""
        try:
            seal = _SnapshotManifest(**json.loads(self._manifest_path.read_bytes()))
            index, rows = self._folder / f"{seal.file}.hnsw", self._folder / f"{seal.file}.rows"
            if (_length(index, rows), _checksum(index, rows)) != (seal.length, seal.checksum):
                raise ValueError("its checksum does not match")
            graph = _HnswIndex(
                seal.dims, _faiss().read_index(str(index)), np.frombuffer(rows.read_bytes(), dtype="<i8").copy()
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            _log.warning("the vector snapshot %s cannot be used (%s): reading the truth", self._manifest_path, error)
            return None
        return graph, ChangePosition(seal.epoch, seal.seq)

    def files(self) -> list[Path]:
        """All there is of it on disk."""
        held = [self._manifest_path] if self._manifest_path.exists() else []
        return [*held, *self._folder.glob(f"{self.name}-*")] if self._folder.is_dir() else held

    def damage(self) -> str | None:
        """What is wrong with its files; None where they are what the seal says."""
        try:
            seal = _SnapshotManifest(**json.loads(self._manifest_path.read_bytes()))
            index, rows = self._folder / f"{seal.file}.hnsw", self._folder / f"{seal.file}.rows"
            if (length := _length(index, rows)) != seal.length:
                return f"its files have {length} bytes, its seal says {seal.length}"
            if _checksum(index, rows) != seal.checksum:
                return "its checksum does not match"
        except FileNotFoundError as error:
            return f"{Path(str(error.filename)).name} is missing"
        except (OSError, ValueError, TypeError) as error:
            return f"its seal cannot be read ({error})"
        return None

    def _remove_stale_files(self, *, keep: str | None) -> None:
        for path in self._folder.glob(f"{self.name}-*"):
            if path.stem != keep:
                with suppress(OSError):
                    path.unlink()


def _faiss() -> Any:
    """faiss, imported when first needed; its stubs describe C++, not the Python that is called."""
    import faiss

    return faiss


def _half_precision() -> Any:
    return _faiss().ScalarQuantizer.QT_fp16


@contextmanager
def _limit_threads(count: int) -> Iterator[None]:
    """Let FAISS use `count` threads for what this thread asks of it.

    A scan of some thousand vectors takes less time than waking a second thread, and on a busy machine waiting for
    it costs a time slice. The setting is the calling thread's own.
    """
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _checksum(*paths: Path) -> int:
    """CRC-32 of files, one after the other: it finds damage, in a fifth of the time a cryptographic digest takes."""
    checksum = 0
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                checksum = zlib.crc32(chunk, checksum)
    return checksum


def _length(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _scan(rows: NDArray[np.int64], vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int) -> Neighbors:
    """Exact search among given vectors."""
    if not len(rows):
        return [[] for _ in queries]
    found = []
    for scores in queries @ vectors.T:
        best = np.argsort(-scores, kind="stable")[:k]
        found.append(_pair_row(rows[best], scores[best]))
    return found


def _pair_rows(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> Neighbors:
    return [_pair_row(of_query, points) for of_query, points in zip(rows, scores, strict=True)]


def _pair_row(rows: NDArray[np.int64], scores: NDArray[np.float32]) -> list[tuple[int, float]]:
    """Rows with their scores, without the places of none."""
    return [(row, score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True) if row >= 0]
