"""Vector projection in an external vector store, shared by the framework adapters.

The external store receives row numbers and vectors, and no text. Vectors always come from the primary store.

Like `faiss`, the projection follows per partition (a user, else an agent, else a run), by sequence number, before each
search. The changes of the primary store are the outbox. The position of the external store is an entry among the
vectors, written after each batch: a store that loses its data loses the position too. Entries that may have been sent
before are sent again under the same id. The external store only proposes candidates, which are scored by the vectors of
the primary store. If it fails, hangs or proposes too few, the primary store is scanned instead. A call that hangs may
still take effect later, so nothing else is sent until it returns.

`ExternalIndex.compare` finds data that a store lost without its position, and `ExternalIndex.repair` restores it.
"""

from __future__ import annotations

import contextvars
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Scope
from mem0_core.errors import ConfigError, StoreError
from mem0_core.interfaces import ChangePosition, VectorSource, drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.vector._tables import Neighbors, scan
from mem0_core.stores.vector.embedded import create_embedded_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

_log = logging.getLogger(__name__)

_UUID_NAMESPACE = uuid.UUID("4f1d0a58-6a3f-4f0e-9a55-6d656d307670")
_BATCH_VECTORS = 500  # sent at once
_EXTRA_CANDIDATES = 16  # requested beyond k, since some may have been deleted from the primary store
_MAX_ENTRIES = 10_000  # partitions that `purge_deleted` reads, and entries that `compare` reads in one search
_HUNG_CALL_GRACE_SECONDS = 0.1  # to wait for a hung call before the next call


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """A vector under an id (a UUID as text), with metadata (texts and numbers)."""

    id: str
    vector: list[float]
    metadata: Mapping[str, Any]


class ExternalStore(Protocol):
    """The operations that a vector store must support. Any exception of a call counts as an outage."""

    @property
    def name(self) -> str:
        """The name for warnings and errors."""
        ...

    @property
    def filter_advice(self) -> str:
        """Advice for users of a store that does not filter by ``mem0_partition``."""
        ...

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries, which are new unless an earlier call failed halfway."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries; ignore missing ones."""
        ...

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        """Return the metadata of the k nearest entries with this ``mem0_partition``, in any order."""
        ...

    def read_metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the metadata of the entries that exist, in any order.

        Raises:
            NotImplementedError: the store cannot look up ids.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """The differences between a partition of an external store and the primary store.

    Attributes:
        missing: rows that the external store lacks.
        extra: rows that were deleted from the primary store.
        mismatched: rows that a search by their own vector does not find; their vectors may be wrong.
    """

    address: Scope
    missing: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    mismatched: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.mismatched)


class _StoreUnavailableError(Exception):
    """The external store failed, or did not answer in time."""


class ExternalIndex:
    """A `VectorIndex` over an external vector store.

    Args:
        store: the external store; it may contain other entries.
        source: the vectors of the primary store.
        namespace: separates several memories in one store.
        dims: length of the vectors; default: taken from the primary store or the first query. Without it, a process
            that only deletes leaves the deletions to the first search of another process.
        timeout: seconds that one call to the store may take.
        retry_after: seconds after a failure in which the primary store is scanned instead.
    """

    def __init__(
        self,
        store: ExternalStore,
        *,
        source: VectorSource,
        namespace: str = "mem0",
        dims: int | None = None,
        timeout: float = 10.0,
        retry_after: float = 5.0,
    ) -> None:
        self._store = store
        self._source = source
        self._namespace = namespace
        self._dims = dims
        self._timeout, self._retry_after = timeout, retry_after
        self._down_until = 0.0
        self._hung: list[Thread] = []
        self._positions: dict[Scope, ChangePosition] = {}
        self._marker_slots: dict[str, int] = {}  # which of a partition's two markers holds its position
        self._locks: defaultdict[Scope, Lock] = defaultdict(Lock)
        self._exact_index = create_embedded_index(source)
        self._closed = False

    def nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> Neighbors:
        """Return for each query (n, dims) up to k pairs (row, cosine) of at least `threshold`, best first.

        Only `allowed_rows` are searched if given.
        """
        if self._closed:
            raise StoreError("the vector index is closed")
        address = scope.partition_scope
        if allowed_rows is not None or address != scope or k <= 0 or not len(queries):
            # Some rows are scanned exactly: a filtered approximate search loses results silently.
            return self._exact_index.nearest(scope, queries, k, allowed_rows=allowed_rows, threshold=threshold)
        if not self._source.position(address).seq:
            return [[] for _ in queries]
        self._dims = queries.shape[1]
        try:
            found = self._search_store(address, queries, k)
        except _StoreUnavailableError as unavailable:
            _log.warning("%s: %s; the primary store is scanned instead", self._store.name, unavailable)
            found = None
        if found is None:
            return self._exact_index.nearest(scope, queries, k, threshold=threshold)
        return drop_below_threshold(found, threshold)

    def purge_deleted(self, scope: Scope | None) -> None:
        """Delete removed rows from the external store; if it is unavailable, the next search does so."""
        try:
            addresses = self._list_partitions() if scope is None else scope.partition_scopes
            for address in addresses:
                self._follow(address)
        except _StoreUnavailableError as unavailable:
            _log.warning("%s: %s; deletions are sent later", self._store.name, unavailable)
        self._exact_index.purge_deleted(scope)

    @property
    def location(self) -> str:
        """Name of the external store; see `RemoteProjection`."""
        return self._store.name

    def discard(self) -> None:
        """Drop the vectors and positions held in memory; see `ErasableProjection`."""
        self._exact_index.discard()
        self._positions.clear()

    def files(self) -> list[Path]:
        """Return no files: the external store keeps its own."""
        return []

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Compare partitions of the external store with the primary store; see `VerifiableProjection`."""
        found = []
        for address in partitions:
            if difference := self.compare(address):
                kinds = (
                    (difference.missing, "lacks"),
                    (difference.extra, "still has"),
                    (difference.mismatched, "has wrong vectors:"),
                )
                listed = ", ".join(f"{kind} {len(rows)}" for rows, kind in kinds if rows)
                name = f"the partition of {address.partition[0]} {address.partition[1]!r} in {self._store.name}"
                found.append(
                    ProjectionMismatch(f"{name}, of {len(self._source.rows(address))} vectors: {listed}", address)
                )
        return found

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Make the partition equal to the primary store."""
        assert mismatch.address is not None
        self.repair(self.compare(mismatch.address))
        return "repaired from the primary store"

    def close(self) -> None:
        """Close the index. The external store belongs to the caller and stays open."""
        self._closed = True
        self._exact_index.close()

    # --- search ----------------------------------------------------------------------------------------------------

    def _search_store(self, address: Scope, queries: NDArray[np.float32], k: int) -> Neighbors | None:
        """Return the proposed rows, scored by the primary store; None if the store proposes too few."""
        self._follow(address)
        wanted = k + _EXTRA_CANDIDATES
        found: Neighbors = []
        for query in queries:
            rows = [int(entry["mem0_row"]) for entry in self._search(self._partition(address), query.tolist(), wanted)]
            stored_rows, vectors = self._source.vectors(rows)
            if len(stored_rows) < min(wanted, len(rows)):
                self._delete_rows(address, set(rows) - set(stored_rows.tolist()))
            if len(stored_rows) < k and len(stored_rows) < len(self._source.rows(address)):
                self._positions.pop(address, None)  # it may have lost data: read its position again
                return None
            found += scan(stored_rows, vectors, query[None], k)
        return found

    def _search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        found = self._call_with_timeout(lambda: self._store.search(partition, vector, k))
        if any(entry.get("mem0_partition") != partition for entry in found):
            raise ConfigError(
                f"vector_store: {self._store.name} does not filter by metadata: {self._store.filter_advice}"
            )
        return found

    # --- updates ---------------------------------------------------------------------------------------------------

    def _follow(self, address: Scope) -> None:
        """Send the changes of the primary store since the partition's position."""
        with self._locks[address]:
            now = self._source.position(address)
            if self._positions.get(address) == now:
                return
            # Read each time: another process may have moved it, or the store was restored from an older copy.
            at = self._read_position(address, now.epoch)
            if at != now:
                self._positions.pop(address, None)
                self._sync_partition(address, at, now)
            self._positions[address] = now

    def _sync_partition(self, address: Scope, at: ChangePosition | None, now: ChangePosition) -> None:
        if at is None or at.epoch != now.epoch or at.seq > now.seq:
            self._delete_partition(self._partition(address))
            at = ChangePosition(now.epoch, 0)
        after: int | None = at.seq
        while after is not None:
            changes = self._source.vector_changes(address, after=after, limit=_BATCH_VECTORS)
            rows = changes.rows.tolist()
            # Some stores keep two entries of one id, so entries that may exist are deleted first.
            self._delete_rows(address, [*changes.removed.tolist(), *(rows if at.seq else ())])
            self._add_rows(address, rows, changes.vectors)
            after = changes.next_after
            if after is not None:
                self._write_position(address, ChangePosition(now.epoch, after))
        if now.seq:  # otherwise the partition is empty, and its name is not kept
            self._write_position(address, now)

    def _add_rows(self, address: Scope, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        partition = self._partition(address)
        for start in range(0, len(rows), _BATCH_VECTORS):
            batch = slice(start, start + _BATCH_VECTORS)
            self._add(
                [
                    VectorEntry(self._id(address, row), vector, {"mem0_partition": partition, "mem0_row": row})
                    for row, vector in zip(rows[batch], vectors[batch].tolist(), strict=True)
                ]
            )

    def _add(self, entries: list[VectorEntry]) -> None:
        self._call_with_timeout(lambda: self._store.add(entries))

    def _delete_rows(self, address: Scope, rows: Sequence[int] | set[int]) -> None:
        self._delete([self._id(address, row) for row in rows])

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), _BATCH_VECTORS):
            some = ids[start : start + _BATCH_VECTORS]
            try:
                self._call_with_timeout(lambda some=some: self._store.delete(some))  # type: ignore[misc]
            except _StoreUnavailableError as unavailable:
                if isinstance(unavailable.__cause__, NotImplementedError):
                    name = self._store.name
                    raise ConfigError(
                        f"vector_store: {name} cannot delete, so it cannot follow a memory"
                    ) from unavailable
                raise

    def _delete_partition(self, partition: str) -> None:
        """Remove all entries of a partition and its position."""
        self._delete(self._marker_ids(partition))
        while found := self._search(partition, self._placeholder_vector(), _BATCH_VECTORS):
            self._delete([self._entry_id(partition, int(entry["mem0_row"])) for entry in found])

    # --- positions -------------------------------------------------------------------------------------------------

    def _read_position(self, address: Scope, epoch: str) -> ChangePosition | None:
        """Return the position that the partition records for an epoch; None if it has none.

        If the store cannot look up ids, return the position known to this process.
        """
        partition = self._partition(address)
        found = self._read_metadata(self._marker_ids(partition))
        if found is None:
            return self._positions.get(address)
        markers = [
            (int(entry["mem0_seq"]), int(entry.get("mem0_place", 0))) for entry in found if entry["mem0_epoch"] == epoch
        ]
        if not markers:
            return None
        seq, self._marker_slots[partition] = max(markers)
        return ChangePosition(epoch, seq)

    def _read_metadata(self, ids: list[str]) -> list[Mapping[str, Any]] | None:
        """Read the metadata of entries; None if the store cannot look up ids."""
        try:
            return self._call_with_timeout(lambda: self._store.read_metadata(ids))
        except _StoreUnavailableError as unavailable:
            if isinstance(unavailable.__cause__, NotImplementedError):
                return None
            raise

    def _write_position(self, address: Scope, at: ChangePosition) -> None:
        """Write the position to the older of two markers, so that one remains if the write fails."""
        partition = self._partition(address)
        slot = 1 - self._marker_slots.get(partition, 1)
        id = self._marker_ids(partition)[slot]
        self._delete([id])
        metadata = {
            "mem0_partition": self._marker_partition,
            "mem0_epoch": at.epoch,
            "mem0_seq": at.seq,
            "mem0_of": partition,
        }
        self._add([VectorEntry(id, self._placeholder_vector(), {**metadata, "mem0_place": slot})])
        self._marker_slots[partition] = slot

    def _list_partitions(self) -> list[Scope]:
        """Return the addresses with a partition in the store, including those of earlier processes."""
        found = self._search(self._marker_partition, self._placeholder_vector(), 2 * _MAX_ENTRIES)
        partitions = dict.fromkeys(entry["mem0_of"] for entry in found)
        return [Scope.from_stored(**{axis: value}) for _, axis, value in map(json.loads, partitions)]

    def _placeholder_vector(self) -> list[float]:
        """Return an arbitrary vector, for calls that require one."""
        if self._dims is None:
            space = getattr(self._source, "embedding_space", None)
            self._dims = (space() or (None, None))[1] if space is not None else None
        if self._dims is None:
            raise _StoreUnavailableError("the length of its vectors is unknown: give dims")
        return [1.0, *([0.0] * (self._dims - 1))]

    # --- comparison ------------------------------------------------------------------------------------------------

    def list_partitions(self) -> list[Scope]:
        """Return the partitions in the external store, including those of earlier processes and deleted users.

        Raises:
            StoreError: the external store is unavailable.
        """
        with self._raise_outage():
            return self._list_partitions()

    def compare(self, address: Scope, *, sample_size: int = 20) -> IndexDifference:
        """Bring a partition up to date, and compare it with the primary store.

        Every row is looked up by its id. Not every store returns vectors, so `sample_size` of them are searched for.

        Raises:
            StoreError: the external store is unavailable.
        """
        with self._raise_outage():
            self._follow(address)
            rows = self._source.rows(address).tolist()
            found = self._search(
                self._partition(address), self._placeholder_vector(), min(len(rows) + _EXTRA_CANDIDATES, _MAX_ENTRIES)
            )
            listed = {int(entry["mem0_row"]) for entry in found}
            stored = self._find_stored_rows(address, [row for row in rows if row not in listed]) | listed
            sample = [row for row in rows if row in stored][:: max(1, len(rows) // max(1, sample_size))][:sample_size]
            return IndexDifference(
                address,
                missing=tuple(row for row in rows if row not in stored),
                extra=tuple(sorted(listed - set(rows))),
                mismatched=tuple(
                    sorted(
                        row
                        for row, vector in self._iterate_vectors(sample)
                        if not self._is_findable(address, row, vector)
                    )
                ),
            )

    def repair(self, difference: IndexDifference) -> None:
        """Make a partition of the external store equal to the primary store.

        Missing rows are sent again and extra ones removed. If rows are mismatched, the whole partition is rewritten.

        Raises:
            StoreError: the external store is unavailable.
        """
        address = difference.address
        with self._raise_outage():
            with self._locks[address]:
                if difference.mismatched:
                    self._positions.pop(address, None)
                    self._delete_partition(self._partition(address))
                else:
                    self._delete_rows(address, [*difference.extra, *difference.missing])
                    for start in range(0, len(difference.missing), _BATCH_VECTORS):
                        rows, vectors = self._source.vectors(difference.missing[start : start + _BATCH_VECTORS])
                        self._add_rows(address, rows.tolist(), vectors)
            self._follow(address)

    def _find_stored_rows(self, address: Scope, rows: Sequence[int]) -> set[int]:
        """Return the rows that exist, looked up by id, or by vector if the store cannot look up ids."""
        stored: set[int] = set()
        for start in range(0, len(rows), _BATCH_VECTORS):
            some = rows[start : start + _BATCH_VECTORS]
            found = self._read_metadata([self._id(address, row) for row in some])
            if found is None:
                return stored | {
                    row
                    for row, vector in self._iterate_vectors(rows[start:])
                    if self._is_findable(address, row, vector)
                }
            stored.update(int(entry["mem0_row"]) for entry in found)
        return stored

    def _iterate_vectors(self, rows: Sequence[int]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for start in range(0, len(rows), _BATCH_VECTORS):
            stored_rows, vectors = self._source.vectors(rows[start : start + _BATCH_VECTORS])
            yield from zip(stored_rows.tolist(), vectors, strict=True)

    def _is_findable(self, address: Scope, row: int, vector: NDArray[np.float32]) -> bool:
        """Return True if a search by the row's own vector proposes it."""
        found = self._search(self._partition(address), vector.tolist(), _EXTRA_CANDIDATES)
        return any(int(entry["mem0_row"]) == row for entry in found)

    @contextmanager
    def _raise_outage(self) -> Iterator[None]:
        try:
            yield
        except _StoreUnavailableError as unavailable:
            raise StoreError(f"{self._store.name}: {unavailable}") from unavailable

    # --- names -----------------------------------------------------------------------------------------------------

    @property
    def _marker_partition(self) -> str:
        return json.dumps([self._namespace, "markers"])

    def _partition(self, address: Scope) -> str:
        axis, value = address.partition
        return json.dumps([self._namespace, str(axis), value])

    def _marker_ids(self, partition: str) -> list[str]:
        return [str(uuid.uuid5(_UUID_NAMESPACE, f"{partition} {name}")) for name in ("marker", "other marker")]

    def _id(self, address: Scope, row: int) -> str:
        return self._entry_id(self._partition(address), row)

    def _entry_id(self, partition: str, row: int) -> str:
        return str(uuid.uuid5(_UUID_NAMESPACE, f"{partition} {row}"))  # a UUID, since Qdrant takes no other texts

    # --- calls -----------------------------------------------------------------------------------------------------

    def _call_with_timeout(self, work: Callable[[], T]) -> T:
        """Make a call to the store in a thread, so that a call that hangs can be abandoned.

        Raises:
            _StoreUnavailableError: the call failed or took too long, or an earlier one did a moment ago.
        """
        if time.monotonic() < self._down_until:
            raise _StoreUnavailableError("it failed a moment ago")
        self._await_hung()
        results: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()
        context = contextvars.copy_context()
        thread = Thread(
            target=lambda: results.put(context.run(_capture_result, work)), name="mem0-vectors", daemon=True
        )
        thread.start()
        try:
            result, error = results.get(timeout=self._timeout)
        except Empty:
            self._hung.append(thread)
            error = _StoreUnavailableError(f"no answer within {self._timeout} seconds")
        if error is not None:
            self._positions.clear()  # the store may return without its data
            if not isinstance(error, NotImplementedError):
                self._down_until = time.monotonic() + self._retry_after
            raise _StoreUnavailableError(f"{type(error).__name__}: {error}") from error
        value: T = result
        return value

    def _await_hung(self) -> None:
        """Wait for abandoned calls: a late deletion would undo a later addition."""
        for thread in list(self._hung):
            thread.join(_HUNG_CALL_GRACE_SECONDS)
            if thread.is_alive():
                raise _StoreUnavailableError("an earlier call has not returned yet")
            with suppress(ValueError):  # another thread removed it first
                self._hung.remove(thread)


def _capture_result(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - raised in the thread that waits
        return None, error
