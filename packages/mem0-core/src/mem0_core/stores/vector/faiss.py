"""FAISS index: nearest vectors of one scope, exact for small partitions and by HNSW for large ones.

A *partition* holds the vectors of one id (a user, else an agent, else a run), so other users do not slow down a
search. Before each search the partition reads the position of the primary store and applies the changes since its own.
That one path serves the writes of this process and of others, and recovery.

- Up to `exact_limit` vectors a partition is a flat index, read from the primary store on first use; the first few
  hundred are a numpy array, for which FAISS is not imported. A scan of 20,000 vectors takes about a millisecond, and an
  approximate index with a filter loses results (recall 0.2 to 0.5 at 1 % selectivity, in FAISS and pgvector). Large
  flat indexes read four bits per coordinate first, see `_quantized`.
- Above that limit a thread builds an HNSW graph while the flat index serves searches. HNSW is costly to build, so it is
  kept as a snapshot: the index file and, written after it, a JSON manifest with its checksum and its position. A
  snapshot that is missing, incomplete, altered or of another epoch is rebuilt from the primary store.
- A search restricted to some rows of an HNSW partition scans these rows. For more than 50,000 rows it searches the
  graph with a filter, which then excludes too little to lose results (recall 0.997 at 10 %).

Nothing is pickled. The least recently used partitions are dropped when `cache_bytes` is exceeded.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np

from mem0_core._system.locks import SignalSafeLock
from mem0_core.domain.records import Scope
from mem0_core.errors import MissingExtraError, StoreError
from mem0_core.interfaces import ChangePosition, VectorSource, drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.vector._snapshots import Snapshot, find_orphaned_files, remove_snapshots
from mem0_core.stores.vector._tables import (
    FIRST_CHANGED_VECTORS,
    MAX_DEAD_SHARE,
    READ_BATCH_VECTORS,
    ArrayIndex,
    FlatIndex,
    HnswIndex,
    Neighbors,
    SmallIndex,
    import_faiss,
    is_faiss_installed,
    limit_threads,
    scan,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

_BUILD_BATCH_VECTORS = 1000  # added to a graph between two checks for a closed index
_MAX_EXACT_ROWS = 50_000  # a search among at most so many rows of an HNSW partition scans them
_MAX_SELECTED_ROWS = 256  # a search among at most so many rows of a flat partition reads only them
_COORDINATE_TOLERANCE = 2e-3  # half precision moves a coordinate by less


class FaissIndex:
    """A `VectorIndex` that follows a `VectorSource`.

    Args:
        source: the vectors of the primary store.
        folder: the folder of the snapshots of large partitions; None for no snapshots.
        exact_limit: the largest number of vectors of a partition that is scanned exactly.
        cache_bytes: memory for the vectors of loaded partitions; the partition being searched is always kept.

    Raises:
        MissingExtraError: FAISS is not installed.
    """

    inline = True  # see `flow.Call.inline`
    _flat_index: type[FlatIndex | ArrayIndex] = FlatIndex

    def __init__(
        self,
        source: VectorSource,
        *,
        folder: str | Path | None = None,
        exact_limit: int = 20_000,
        cache_bytes: int = 256 << 20,
    ) -> None:
        self._check_library()
        self._source = source
        self._folder = Path(folder) if folder is not None else None
        self._exact_limit = exact_limit
        self._cache_bytes = cache_bytes
        self._partitions: OrderedDict[Scope, _Partition] = OrderedDict()
        self._bytes = 0
        self._epoch: str | None = None  # of the partitions
        self._lock = SignalSafeLock()
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
        found = partition.search(np.ascontiguousarray(queries, dtype=np.float32), k, allowed_rows, threshold)
        self._evict_partitions(partition)
        return drop_below_threshold(found, threshold)

    def read_vectors(
        self, scope: Scope, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return the vectors of some rows as they are searched; see `VectorReader`."""
        address = scope.partition_scope
        if self._is_unloaded(address):
            if self._partitions:
                self._drop_former_epochs(self._source.position(address).epoch)
            read, vectors = self._source.vectors(rows.tolist())
            return (read, self._flat_index.round(vectors)) if len(read) else None
        partition = self._partition(address)
        found = partition.read_vectors(rows)
        self._evict_partitions(partition)
        return found

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove snapshots that may contain deleted vectors of a scope; graphs in memory write new ones."""
        addresses = None if scope is None else scope.partition_scopes
        for partition in self._loaded_partitions():
            if addresses is None or partition.address in addresses:
                partition.mark_unsaved()
        if self._folder is not None:
            remove_snapshots(self._folder, addresses)

    def discard(self) -> None:
        """Drop all partitions from memory, and all snapshots; see `ErasableProjection`."""
        self.wait_for_builds()
        with self._lock:
            self._partitions.clear()
            self._bytes = 0
        if self._folder is not None:
            remove_snapshots(self._folder, None)

    def files(self) -> list[Path]:
        """Return the files of all snapshots."""
        return [] if self._folder is None else [path for path in self._folder.rglob("*") if path.is_file()]

    def wait_for_builds(self, timeout: float | None = None) -> None:
        """Wait until no HNSW graph is being built."""
        for partition in self._loaded_partitions():
            partition.join(timeout)

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Compare the snapshots on disk with the primary store; see `VerifiableProjection`."""
        if self._folder is None:
            return []
        self.wait_for_builds()
        found = [
            mismatch for address in addresses if (mismatch := self._examine_snapshot(address, address in partitions))
        ]
        if files := tuple(find_orphaned_files(self._folder, addresses)):
            problem = f"{len(files)} snapshot files without a partition or a manifest ({files[0]})"
            found.append(ProjectionMismatch(problem, files=files))
        return found

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        assert self._folder is not None
        address = mismatch.address
        if address is None:
            for name in mismatch.files:
                (self._folder / name).unlink(missing_ok=True)
            return "removed"
        with self._lock:
            dropped = self._partitions.pop(address, None)
            self._bytes -= dropped.counted_bytes if dropped is not None else 0
        if dropped is not None:
            dropped.join()
        Snapshot(self._folder, address).remove()
        rows = self._source.rows(address)
        if len(rows) <= self._exact_limit:
            return "removed: so few vectors need no snapshot"
        _, vectors = self._source.vectors(rows[:1].tolist())
        self.nearest(address, vectors, 1)
        self.wait_for_builds()
        return "rebuilt from the primary store"

    def _examine_snapshot(self, address: Scope, expected: bool) -> ProjectionMismatch | None:
        assert self._folder is not None
        snapshot, rows = Snapshot(self._folder, address), self._source.rows(address)
        name = f"{snapshot.name} ({address.partition[0]} {address.partition[1]!r})"
        if not snapshot.is_sealed():
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
            return None  # older than a purge; the next search replaces it
        if at.seq > now.seq:
            return ProjectionMismatch(
                f"the snapshot {name} is ahead of the primary store ({at.seq}, {now.seq})", address
            )
        difference = self._describe_difference(address, graph, at, rows)
        return None if difference is None else ProjectionMismatch(f"the snapshot {name} {difference}", address)

    def _describe_difference(
        self, address: Scope, graph: HnswIndex, at: ChangePosition, rows: NDArray[np.int64]
    ) -> str | None:
        """Compare a snapshot and the later changes with the stored vectors; None if they agree."""
        held, later = set(graph.row_numbers().tolist()), set[int]()
        after: int | None = at.seq
        while after is not None:
            changes = self._source.vector_changes(address, after=after, limit=READ_BATCH_VECTORS)
            later |= set(changes.rows.tolist())
            held -= set(changes.removed.tolist())
            after = changes.next_after
        stored = set(rows.tolist())
        if missing := stored - held - later:
            return f"lacks {len(missing)} of {len(stored)} vectors"
        if extra := (held | later) - stored:
            return f"holds {len(extra)} deleted vectors"
        same = np.array(sorted(held - later), dtype=np.int64)
        for start in range(0, len(same), READ_BATCH_VECTORS):
            ours, vectors = graph.vectors(same[start : start + READ_BATCH_VECTORS])
            stored_rows, theirs = self._source.vectors(ours.tolist())
            if not np.allclose(vectors, theirs[np.argsort(stored_rows)], atol=_COORDINATE_TOLERANCE):
                return "holds vectors that differ from the stored ones"
        return None

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

    def _is_unloaded(self, address: Scope) -> bool:
        """Return True if a partition is neither in memory nor in a snapshot: a few rows are read without loading it."""
        with self._lock:
            self._check_open()
            if address in self._partitions:
                return False
        snapshot = self._snapshot(address)
        return snapshot is None or not snapshot.is_sealed()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise StoreError("the vector index is closed")

    def _partition(self, address: Scope) -> _Partition:
        with self._lock:
            self._check_open()
            partition = self._partitions.get(address)
            if partition is None:
                partition = _Partition(
                    self._source,
                    address,
                    self._snapshot(address),
                    self._flat_index,
                    limit_threads=self._limit_threads,
                    exact_limit=self._exact_limit,
                    closing=self._closing,
                )
                self._partitions[address] = partition
            self._partitions.move_to_end(address)
            return partition

    def _check_library(self) -> None:
        if not is_faiss_installed():
            raise MissingExtraError("faiss-cpu", "faiss")

    def _snapshot(self, address: Scope) -> Snapshot | None:
        return Snapshot(self._folder, address) if self._folder else None

    def _limit_threads(self) -> AbstractContextManager[None]:
        return limit_threads(1)

    def _drop_former_epochs(self, epoch: str) -> None:
        """Drop the partitions of other epochs if an erasure, perhaps of another process, has begun a new one."""
        with self._lock:
            if epoch == self._epoch:
                return
            self._epoch = epoch
            for partition in list(self._partitions.values()):
                if partition.epoch not in (None, epoch) and not partition.is_building:
                    self._bytes -= self._partitions.pop(partition.address).counted_bytes

    def _evict_partitions(self, used: _Partition) -> None:
        """Update the size of `used`, and drop the least recently used partitions while the cache is too large."""
        dropped = []
        if used.epoch is not None:
            self._drop_former_epochs(used.epoch)
        with self._lock:
            self._bytes += used.nbytes - used.counted_bytes
            used.counted_bytes = used.nbytes
            if not used.nbytes:  # an id without memories: clients can ask for any number of those
                self._partitions.pop(used.address, None)
            for address, partition in list(self._partitions.items()) if self._bytes > self._cache_bytes else ():
                if self._bytes <= self._cache_bytes:
                    break
                if partition is not used and not partition.is_building:
                    self._bytes -= partition.counted_bytes
                    dropped.append(self._partitions.pop(address))
        for partition in dropped:
            partition.save()


class _Partition:
    """The vectors of one id: a flat index, or an HNSW graph once there are many."""

    def __init__(
        self,
        source: VectorSource,
        address: Scope,
        snapshot: Snapshot | None,
        flat_index: type[FlatIndex | ArrayIndex],
        *,
        limit_threads: Callable[[], AbstractContextManager[None]],
        exact_limit: int,
        closing: Event,
    ) -> None:
        self._source = source
        self.address = address
        self._snapshot = snapshot
        self._flat_index = flat_index
        self._limit_threads = limit_threads
        self._exact_limit = exact_limit
        self._closing = closing
        self._lock = SignalSafeLock()
        self._builder: Thread | None = None
        self._at: ChangePosition | None = None
        self._index: FlatIndex | ArrayIndex | HnswIndex | None = None
        self._saved_at: ChangePosition | None = None
        self.counted_bytes = 0  # as last added to the total of the index

    @property
    def nbytes(self) -> int:
        return self._index.nbytes if self._index is not None else 0

    @property
    def epoch(self) -> str | None:
        """Epoch of the primary store that the vectors are of; None before the first search."""
        return None if self._at is None else self._at.epoch

    @property
    def is_building(self) -> bool:
        return self._builder is not None and self._builder.is_alive()

    def join(self, timeout: float | None = None) -> None:
        if self._builder is not None:
            self._builder.join(timeout)

    def search(
        self, queries: NDArray[np.float32], k: int, allowed_rows: NDArray[np.int64] | None, threshold: float | None
    ) -> Neighbors:
        """Return the k nearest rows of each query; rows below the threshold may be missing."""
        with self._lock:
            index = self._follow()
            if index is None:
                return [[] for _ in queries]
            if allowed_rows is not None and len(allowed_rows) <= (
                _MAX_EXACT_ROWS if isinstance(index, HnswIndex) else _MAX_SELECTED_ROWS
            ):
                return scan(*index.vectors(allowed_rows), queries, k)
            if isinstance(index, SmallIndex):
                return index.search(queries, k, allowed_rows, threshold)
            with self._limit_threads():
                return index.search(queries, k, allowed_rows, threshold)

    def read_vectors(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return those of `rows` that the index has, with their vectors; None if it is a graph or empty."""
        with self._lock:
            index = self._follow()
            return None if index is None or isinstance(index, HnswIndex) else index.vectors(rows)

    def _follow(self) -> FlatIndex | ArrayIndex | HnswIndex | None:
        """Apply all changes of the primary store; return None if the partition is empty."""
        now = self._source.position(self.address)
        if self._at is None or self._at.epoch != now.epoch:
            self._index, self._at = self._load(now)
        if self._at.seq != now.seq:
            try:
                self._catch_up(self._at.seq)
            except BaseException:
                self._at = None  # it may hold a part of a batch: the next search reads it anew
                raise
            self._at = now
        if self._needs_graph():
            self._builder = Thread(target=self._build, name="mem0-hnsw", daemon=True)
            self._builder.start()
        return self._index if self._index is not None and self._index.live_count else None

    def _catch_up(self, after: int | None) -> None:
        """Apply the changes since `after`, some thousand vectors at a time."""
        limit = FIRST_CHANGED_VECTORS if after else READ_BATCH_VECTORS
        while after is not None:
            changes = self._source.vector_changes(self.address, after=after, limit=limit)
            self._make_room(*changes.vectors.shape)
            if isinstance(self._index, SmallIndex):
                self._index.replace(changes.rows, changes.vectors, changes.removed)
            elif self._index is not None:
                with self._limit_threads():
                    self._index.replace(changes.rows, changes.vectors, changes.removed)
            after, limit = changes.next_after, READ_BATCH_VECTORS

    def _make_room(self, added: int, dims: int) -> None:
        """Create the index for the first vectors, and a larger one when there are no longer few."""
        index = self._index
        if not added or not (index is None or isinstance(index, SmallIndex)):
            return
        if self._flat_index is FlatIndex and SmallIndex.fits(added + (index.live_count if index else 0), dims):
            self._index = index or SmallIndex(dims)
            return
        self._index = self._flat_index(dims)
        if index is not None:
            index.copy_live_vectors(self._index)

    def _load(self, now: ChangePosition) -> tuple[HnswIndex | None, ChangePosition]:
        if self._snapshot is not None and (loaded := self._snapshot.load()):
            graph, at = loaded
            if at.epoch == now.epoch and at.seq <= now.seq:
                self._saved_at = at
                return graph, at
            _log.info("the vector snapshot of %s is of another epoch: reading the primary store", self.address)
            self._snapshot.remove()
        return None, ChangePosition(now.epoch, 0)

    def _needs_graph(self) -> bool:
        if self._index is None or self.is_building or self._closing.is_set():
            return False
        if isinstance(self._index, HnswIndex):
            return self._index.dead_share > MAX_DEAD_SHARE
        return self._index.live_count > self._exact_limit

    def _build(self) -> None:
        """Build a graph in a thread while the current index serves searches, then replace that index."""
        try:
            with self._lock:
                at = self._at
                if at is None or self._index is None:
                    return
                flat, rows = self._index, self._index.row_numbers()
            graph = HnswIndex(flat.dims)
            import_faiss().omp_set_num_threads(
                max(1, (os.cpu_count() or 1) // 2)
            )  # of this thread; searches need the rest
            for start in range(0, len(rows), _BUILD_BATCH_VECTORS):
                if self._closing.is_set():
                    return
                with self._lock:  # in batches: a copy of all vectors would take as much memory again
                    live_rows, vectors = flat.vectors(rows[start : start + _BUILD_BATCH_VECTORS])
                graph.replace(live_rows, vectors, ())
            saved = self._write(graph, at)  # before the graph is used, so that no search waits for the disk
            with self._lock:
                if self._at is not None and self._at.epoch == at.epoch:
                    self._index, self._at = graph, at  # the next search applies later changes
                    self._saved_at = at if saved else None
        except (StoreError, RuntimeError, MemoryError):
            _log.exception("could not build the HNSW graph of %s; exact search continues", self.address)

    def mark_unsaved(self) -> None:
        """Make the next `save` write a snapshot."""
        with self._lock:
            self._saved_at = None

    def save(self) -> None:
        with self._lock:
            if isinstance(self._index, HnswIndex) and self._at is not None and self._at != self._saved_at:
                self._saved_at = self._at if self._write(self._index, self._at) else None

    def _is_current(self, at: ChangePosition) -> bool:
        """Return False if stored data was rewritten since: the graph may contain data that another process purged."""
        try:
            return self._source.position(self.address).epoch == at.epoch
        except StoreError:
            return False

    def _write(self, graph: HnswIndex, at: ChangePosition) -> bool:
        if self._snapshot is None or not self._is_current(at):
            return False
        try:
            self._snapshot.save(graph, at)
        except (OSError, RuntimeError) as error:  # the primary store has all vectors; a snapshot only saves time
            _log.warning("could not write the vector snapshot of %s: %s", self.address, error)
            return False
        return True
