"""Vector stores of other people as a memory's vector projection: what is the same for all of them.

The vectors are the truth's. What a store holds of a memory is a number and a vector, and no text.

The projection follows as `stores.faiss` does: per partition (a user, else an agent, else a run), by sequence number,
before each search. The truth's changes are the outbox: nothing has to be kept beside them. How far the store came is an
entry beside the others, written after each batch, so that it is lost with them and not without them; what may have been
sent already is sent again under the same id. The store only proposes: what is found is scored by the vectors of the
truth, and where it fails, hangs, or proposes too little, the truth is scanned instead. A call that hangs may still take
effect when it comes back, so until then nothing else is sent.

What a store lost without losing its place, `ExternalIndex.compare` finds and `ExternalIndex.repair` brings back.
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
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from mem0_core.domain.records import Scope
from mem0_core.errors import ConfigError, StoreError
from mem0_core.interfaces import ChangePosition, VectorSource, drop_below_threshold
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.vector.faiss import FaissIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ExternalIndex", "ExternalStore", "IndexDifference", "VectorEntry"]

T = TypeVar("T")
Neighbors = list[list[tuple[int, float]]]

_log = logging.getLogger(__name__)

_UUID_NAMESPACE = uuid.UUID("4f1d0a58-6a3f-4f0e-9a55-6d656d307670")
_BATCH_VECTORS = 500  # vectors sent at once
_EXTRA_CANDIDATES = 16  # proposals beyond those wanted: some may be gone from the truth by now
_MAX_ENTRIES = (
    10_000  # partitions that `purge_deleted` looks through, and entries that `compare` asks for in one search
)
_HUNG_CALL_GRACE_SECONDS = 0.1  # seconds that a call which hung is waited for before the next one


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """What a store holds: a vector under an id (a UUID as text), with metadata (texts and numbers)."""

    id: str
    vector: list[float]
    metadata: Mapping[str, Any]


class ExternalStore(Protocol):
    """What is asked of a vector store. Whatever a call raises is taken for an outage."""

    @property
    def name(self) -> str:
        """For warnings and errors."""
        ...

    @property
    def filter_advice(self) -> str:
        """What the user is told where the store does not filter by ``mem0_partition``."""
        ...

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries; none of them is there, except where an earlier call failed on the way."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries, as far as they are there."""
        ...

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        """Metadata of the k nearest of those whose ``mem0_partition`` is `partition`, in any order."""
        ...

    def read(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """Metadata of those entries that are there, in any order. Raises NotImplementedError where that is no call."""
        ...


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """What a vector store holds of a partition otherwise than the truth.

    Attributes:
        lacking: rows of the truth that it does not have.
        surplus: rows it has that are gone from the truth.
        strange: rows that a search by their own vector does not find, so that it may hold other vectors of them.
    """

    address: Scope
    missing: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()
    mismatched: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.mismatched)


class _StoreUnavailable(Exception):
    """The vector store failed, or did not answer in time."""


class ExternalIndex:
    """A `ports.VectorIndex` over a vector store of other people's.

    Args:
        store: other entries in it do no harm.
        source: the truth.
        namespace: keeps several memories in one store apart.
        dims: how long the vectors are; by default the truth or the first query tells. Without it a process that only
            deletes leaves it to the next one's first search to tell the store.
        timeout: seconds that one call to the store may take.
        retry_after: seconds after a failure in which the store is not asked; the truth is scanned meanwhile.
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
        self._marker_slots: dict[str, int] = {}  # of each partition's two markers, which one holds how far it came
        self._locks: defaultdict[Scope, Lock] = defaultdict(Lock)
        self._exact_index = FaissIndex(source, folder=None)
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
        """For each query (n, dims) up to k (row, cosine), best first; among `allowed_rows`, and of `threshold` or
        more."""
        if self._closed:
            raise StoreError("the vector index is closed")
        address = scope.partition_scope
        if allowed_rows is not None or address != scope or k <= 0 or not len(queries):
            # Among some rows the truth is scanned exactly: a filtered approximate search loses results silently.
            return self._exact_index.nearest(scope, queries, k, allowed_rows=allowed_rows, threshold=threshold)
        if not self._source.position(address).seq:
            return [[] for _ in queries]
        self._dims = queries.shape[1]
        try:
            found = self._search_store(address, queries, k)
        except _StoreUnavailable as unavailable:
            _log.warning("%s: %s; the truth is scanned instead", self._store.name, unavailable)
            found = None
        if found is None:
            return self._exact_index.nearest(scope, queries, k, threshold=threshold)
        return drop_below_threshold(found, threshold)

    def purge_deleted(self, scope: Scope | None) -> None:
        """Tell the vector store what was deleted. Where it cannot be reached, the next search does."""
        try:
            addresses = self._list_partitions() if scope is None else scope.partition_scopes
            for address in addresses:
                self._follow(address)
        except _StoreUnavailable as unavailable:
            _log.warning("%s: %s; it is told of deletions later", self._store.name, unavailable)
        self._exact_index.purge_deleted(scope)

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Whether the vector store holds the rows of the truth; see `care.VerifiableProjection`."""
        found = []
        for address in partitions:
            if difference := self.compare(address):
                kinds = (
                    (difference.missing, "lacks"),
                    (difference.extra, "still has"),
                    (difference.mismatched, "garbled"),
                )
                told = ", ".join(f"{kind} {len(rows)}" for rows, kind in kinds if rows)
                name = f"the partition of {address.partition[0]} {address.partition[1]!r} in {self._store.name}"
                found.append(
                    ProjectionMismatch(f"{name}, of {len(self._source.rows(address))} vectors: {told}", address)
                )
        return found

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Bring the partition to what the truth has."""
        assert mismatch.address is not None
        self.repair(self.compare(mismatch.address))
        return "repaired from the truth"

    def close(self) -> None:
        """Let go of it; the vector store is the caller's, and stays open."""
        self._closed = True
        self._exact_index.close()

    # --- searching -------------------------------------------------------------------------------------------------

    def _search_store(self, address: Scope, queries: NDArray[np.float32], k: int) -> Neighbors | None:
        """What the store proposes, scored by the truth; None where it proposes less than there is."""
        self._follow(address)
        wanted = k + _EXTRA_CANDIDATES
        found: Neighbors = []
        for query in queries:
            rows = [int(held["mem0_row"]) for held in self._search(self._partition(address), query.tolist(), wanted)]
            stored_rows, vectors = self._source.vectors(rows)
            if len(stored_rows) < min(wanted, len(rows)):
                self._delete_rows(address, set(rows) - set(stored_rows.tolist()))
            if len(stored_rows) < k and len(stored_rows) < len(self._source.rows(address)):
                self._positions.pop(address, None)  # it may have lost something: let it say again how far it is
                return None
            scores = vectors @ query if len(stored_rows) else np.zeros(0, np.float32)
            best = np.argsort(-scores, kind="stable")[:k]
            found.append([(int(stored_rows[place]), float(scores[place])) for place in best])
        return found

    def _search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        found = self._call_with_timeout(lambda: self._store.search(partition, vector, k))
        if any(held.get("mem0_partition") != partition for held in found):
            raise ConfigError(
                f"vector_store: {self._store.name} does not filter by metadata: {self._store.filter_advice}"
            )
        return found

    # --- following -------------------------------------------------------------------------------------------------

    def _follow(self, address: Scope) -> None:
        """Bring the partition in the store to where the truth is."""
        with self._locks[address]:
            now = self._source.position(address)
            if self._positions.get(address) == now:
                return
            # Asked each time: another process may have moved it, or the store gone back to an older copy of itself.
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
            # Some stores keep two entries of one id, so what may be there already goes first.
            self._delete_rows(address, [*changes.removed.tolist(), *(rows if at.seq else ())])
            self._add_rows(address, rows, changes.vectors)
            after = changes.next_after
            if after is not None:
                self._write_position(address, ChangePosition(now.epoch, after))
        if now.seq:  # else nobody is there any more, and not even the name is kept
            self._write_position(address, now)

    def _add_rows(self, address: Scope, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        partition = self._partition(address)
        for start in range(0, len(rows), _BATCH_VECTORS):
            some, theirs = rows[start : start + _BATCH_VECTORS], vectors[start : start + _BATCH_VECTORS].tolist()
            self._add(
                [
                    VectorEntry(self._id(address, row), vector, {"mem0_partition": partition, "mem0_row": row})
                    for row, vector in zip(some, theirs, strict=True)
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
            except _StoreUnavailable as unavailable:
                if isinstance(unavailable.__cause__, NotImplementedError):
                    name = self._store.name
                    raise ConfigError(
                        f"vector_store: {name} cannot delete, so it cannot follow a memory"
                    ) from unavailable
                raise

    def _delete_partition(self, partition: str) -> None:
        """Remove a partition, whatever it holds, and how far it came."""
        self._delete(self._marker_ids(partition))
        while found := self._search(partition, self._placeholder_vector(), _BATCH_VECTORS):
            self._delete([self._entry_id(partition, int(held["mem0_row"])) for held in found])

    # --- how far it came -------------------------------------------------------------------------------------------

    def _read_position(self, address: Scope, epoch: str) -> ChangePosition | None:
        """How far the partition is in an epoch by its own account; None where it has none.

        Where the store cannot say, it is what this process knows of it.
        """
        partition = self._partition(address)
        found = self._read(self._marker_ids(partition))
        if found is None:
            return self._positions.get(address)
        marked = [
            (int(held["mem0_seq"]), int(held.get("mem0_place", 0))) for held in found if held["mem0_epoch"] == epoch
        ]
        if not marked:
            return None
        seq, self._marker_slots[partition] = max(marked)
        return ChangePosition(epoch, seq)

    def _read(self, ids: list[str]) -> list[Mapping[str, Any]] | None:
        """Metadata of entries; None where the store has no such call."""
        try:
            return self._call_with_timeout(lambda: self._store.read(ids))
        except _StoreUnavailable as unavailable:
            if isinstance(unavailable.__cause__, NotImplementedError):
                return None
            raise

    def _write_position(self, address: Scope, at: ChangePosition) -> None:
        """Note how far the partition is, in the older of its two markers: one of them stands, whatever fails."""
        partition = self._partition(address)
        place = 1 - self._marker_slots.get(partition, 1)
        id = self._marker_ids(partition)[place]
        self._delete([id])
        metadata = {
            "mem0_partition": self._marker_partition,
            "mem0_epoch": at.epoch,
            "mem0_seq": at.seq,
            "mem0_of": partition,
        }
        self._add([VectorEntry(id, self._placeholder_vector(), {**metadata, "mem0_place": place})])
        self._marker_slots[partition] = place

    def _list_partitions(self) -> list[Scope]:
        """The addresses that have a partition in the store, of earlier processes too."""
        found = self._search(self._marker_partition, self._placeholder_vector(), 2 * _MAX_ENTRIES)
        partitions = dict.fromkeys(held["mem0_of"] for held in found)
        return [Scope(**{axis: value}) for _, axis, value in map(json.loads, partitions)]

    def _placeholder_vector(self) -> list[float]:
        """A vector where one is needed and it does not matter which."""
        if self._dims is None:
            space = getattr(self._source, "embedding_space", None)
            self._dims = (space() or (None, None))[1] if space is not None else None
        if self._dims is None:
            raise _StoreUnavailable("nobody said how long its vectors are (dims)")
        return [1.0, *([0.0] * (self._dims - 1))]

    # --- comparing -------------------------------------------------------------------------------------------------

    def list_partitions(self) -> list[Scope]:
        """The partitions that the vector store has, of earlier processes and of users who are gone too.

        Raises:
            StoreError: it cannot be reached.
        """
        with self._raise_outage():
            return self._list_partitions()

    def compare(self, address: Scope, *, sample_size: int = 20) -> IndexDifference:
        """What the vector store holds of a partition otherwise than the truth, once it has caught up.

        Every row is looked up by its id. Vectors cannot be read back everywhere, so `sample_size` of them are searched
        for.

        Raises:
            StoreError: it cannot be reached.
        """
        with self._raise_outage():
            self._follow(address)
            rows = self._source.rows(address).tolist()
            found = self._search(
                self._partition(address), self._placeholder_vector(), min(len(rows) + _EXTRA_CANDIDATES, _MAX_ENTRIES)
            )
            held = {int(entry["mem0_row"]) for entry in found}
            here = self._find_stored_rows(address, [row for row in rows if row not in held]) | held
            asked = [row for row in rows if row in here][:: max(1, len(rows) // max(1, sample_size))][:sample_size]
            return IndexDifference(
                address,
                missing=tuple(row for row in rows if row not in here),
                extra=tuple(sorted(held - set(rows))),
                mismatched=tuple(
                    row for row, vector in self._iterate_vectors(asked) if not self._is_findable(address, row, vector)
                ),
            )

    def repair(self, difference: IndexDifference) -> None:
        """Bring a partition of the vector store to what the truth has.

        Rows that it lacks are sent again and those that are gone removed; where vectors are strange, all of it is.

        Raises:
            StoreError: it cannot be reached.
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
        """Those of the rows that are there, by their ids; where the store has no such call, by their vectors."""
        here: set[int] = set()
        for start in range(0, len(rows), _BATCH_VECTORS):
            some = rows[start : start + _BATCH_VECTORS]
            found = self._read([self._id(address, row) for row in some])
            if found is None:
                return here | {
                    row
                    for row, vector in self._iterate_vectors(rows[start:])
                    if self._is_findable(address, row, vector)
                }
            here.update(int(entry["mem0_row"]) for entry in found)
        return here

    def _iterate_vectors(self, rows: Sequence[int]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for start in range(0, len(rows), _BATCH_VECTORS):
            stored_rows, vectors = self._source.vectors(rows[start : start + _BATCH_VECTORS])
            yield from zip(stored_rows.tolist(), vectors, strict=True)

    def _is_findable(self, address: Scope, row: int, vector: NDArray[np.float32]) -> bool:
        """Whether a search by a row's own vector proposes it."""
        found = self._search(self._partition(address), vector.tolist(), _EXTRA_CANDIDATES)
        return any(int(entry["mem0_row"]) == row for entry in found)

    @contextmanager
    def _raise_outage(self) -> Iterator[None]:
        try:
            yield
        except _StoreUnavailable as unavailable:
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

    # --- calling ---------------------------------------------------------------------------------------------------

    def _call_with_timeout(self, work: Callable[[], T]) -> T:
        """What a call to the store returns; it is made in a thread, so that one that hangs can be given up.

        Raises:
            _Outage: it failed, took too long, or did so a moment ago.
        """
        if time.monotonic() < self._down_until:
            raise _StoreUnavailable("it failed a moment ago")
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
            error = _StoreUnavailable(f"no answer within {self._timeout} seconds")
        if error is not None:
            self._positions.clear()  # it may come back without what it had
            if not isinstance(error, NotImplementedError):
                self._down_until = time.monotonic() + self._retry_after
            raise _StoreUnavailable(f"{type(error).__name__}: {error}") from error
        value: T = result
        return value

    def _await_hung(self) -> None:
        """Let nothing overtake a call that was given up: a deletion of then would undo what is added now."""
        for thread in list(self._hung):
            thread.join(_HUNG_CALL_GRACE_SECONDS)
            if thread.is_alive():
                raise _StoreUnavailable("a call of before has not come back yet")
            with suppress(ValueError):  # another thread has seen it too
                self._hung.remove(thread)


def _capture_result(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - raised in the thread that waits
        return None, error
