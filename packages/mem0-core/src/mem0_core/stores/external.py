"""Vector stores of other people as a memory's vector projection: what is the same for all of them.

The vectors are the truth's. What a store holds of a memory is a number and a vector, and no text.

The projection follows as `stores.faiss` does: per partition (a user, else an agent, else a run), by sequence number,
before each search. How far it came is an entry beside the others, so that it is lost with them, and not without them.
The store only proposes: what is found is scored by the vectors of the truth, and where it fails, hangs, or proposes too
little, the truth is scanned instead.
"""

from __future__ import annotations

import contextvars
import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from mem0_core.care import Unsound
from mem0_core.errors import ConfigError, StoreError
from mem0_core.ports import Position, VectorSource
from mem0_core.records import Scope
from mem0_core.stores.faiss import FaissIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Entry", "ExternalIndex", "ExternalStore"]

T = TypeVar("T")
Found = list[list[tuple[int, float]]]

log = logging.getLogger(__name__)

_IDS = uuid.UUID("4f1d0a58-6a3f-4f0e-9a55-6d656d307670")
_BATCH = 500  # vectors sent at once
_SPARE = 16  # proposals beyond those wanted: some may be gone from the truth by now
_MOST = 10_000  # partitions that `forget` looks through


@dataclass(frozen=True, slots=True)
class Entry:
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
    def advice(self) -> str:
        """What the user is told where the store does not filter by ``mem0_partition``."""
        ...

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries; none of them is there, except where an earlier call failed on the way."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove entries, as far as they are there."""
        ...

    def search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        """Metadata of the k nearest of those whose ``mem0_partition`` is `partition`, in any order."""
        ...

    def read(self, id: str) -> Mapping[str, Any] | None:
        """Metadata of an entry. Raises NotImplementedError where the store has no such call."""
        ...


class _Outage(Exception):
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
        self._positions: dict[Scope, Position] = {}
        self._locks: defaultdict[Scope, Lock] = defaultdict(Lock)
        self._truth = FaissIndex(source, folder=None)
        self._closed = False

    def nearest(
        self, scope: Scope, queries: NDArray[np.float32], k: int, *, only: NDArray[np.int64] | None = None
    ) -> Found:
        """For each query (n, dims) up to k (row, cosine), best first, among `only` where given."""
        if self._closed:
            raise StoreError("the vector index is closed")
        address = _address(scope)
        if only is not None or address != scope or k <= 0 or not len(queries):
            # Among some rows the truth is scanned exactly: a filtered approximate search loses results silently.
            return self._truth.nearest(scope, queries, k, only=only)
        if not self._source.position(address).seq:
            return [[] for _ in queries]
        self._dims = queries.shape[1]
        try:
            found = self._proposed(address, queries, k)
        except _Outage as outage:
            log.warning("%s: %s; the truth is scanned instead", self._store.name, outage)
            found = None
        return self._truth.nearest(scope, queries, k) if found is None else found

    def forget(self, scope: Scope | None) -> None:
        """Tell the vector store what was deleted. Where it cannot be reached, the next search does."""
        try:
            addresses = self._known() if scope is None else [_address(Scope(**ids)) for ids in _single_ids(scope)]
            for address in addresses:
                self._follow(address)
        except _Outage as outage:
            log.warning("%s: %s; it is told of deletions later", self._store.name, outage)
        self._truth.forget(scope)

    def examine(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[Unsound]:
        """Whether the vector store holds the rows of the truth; see `care.Examined`."""
        found = []
        for address in partitions:
            rows = set(self._source.rows(address).tolist())
            name = f"the partition of {address.partition[0]} {address.partition[1]!r} in {self._store.name}"
            try:
                self._follow(address)
                asked = self._search(self._partition(address), self._any_vector(), min(len(rows) + _SPARE, _MOST))
            except _Outage as outage:
                found.append(Unsound(f"{self._store.name} cannot be asked: {outage}"))
                break
            held = {int(entry["mem0_row"]) for entry in asked}
            if len(rows) < _MOST and (lacking := rows - held):
                found.append(Unsound(f"{name} lacks {len(lacking)} of {len(rows)} vectors", address))
            elif surplus := held - rows:
                found.append(Unsound(f"{name} holds {len(surplus)} vectors that are gone", address))
        return found

    def renew(self, unsound: Unsound) -> str:
        """Empty the partition and fill it from the truth."""
        if unsound.address is None:
            raise StoreError(unsound.what)
        try:
            with self._locks[unsound.address]:
                self._positions.pop(unsound.address, None)
                self._drain(self._partition(unsound.address))
            self._follow(unsound.address)
        except _Outage as outage:
            raise StoreError(f"{self._store.name}: {outage}") from outage
        return "filled anew from the truth"

    def close(self) -> None:
        """Let go of it; the vector store is the caller's, and stays open."""
        self._closed = True
        self._truth.close()

    # --- searching -------------------------------------------------------------------------------------------------

    def _proposed(self, address: Scope, queries: NDArray[np.float32], k: int) -> Found | None:
        """What the store proposes, scored by the truth; None where it proposes less than there is."""
        self._follow(address)
        wanted = k + _SPARE
        found: Found = []
        for query in queries:
            rows = [int(held["mem0_row"]) for held in self._search(self._partition(address), query.tolist(), wanted)]
            living, vectors = self._source.vectors(rows)
            if len(living) < min(wanted, len(rows)):
                self._drop(address, set(rows) - set(living.tolist()))
            if len(living) < k and len(living) < len(self._source.rows(address)):
                self._positions.pop(address, None)  # it may have lost something: let it say again how far it is
                return None
            scores = vectors @ query if len(living) else np.zeros(0, np.float32)
            best = np.argsort(-scores, kind="stable")[:k]
            found.append([(int(living[place]), float(scores[place])) for place in best])
        return found

    def _search(self, partition: str, vector: list[float], k: int) -> list[Mapping[str, Any]]:
        found = self._called(lambda: self._store.search(partition, vector, k))
        if any(held.get("mem0_partition") != partition for held in found):
            raise ConfigError(f"vector_store: {self._store.name} does not filter by metadata: {self._store.advice}")
        return found

    # --- following -------------------------------------------------------------------------------------------------

    def _follow(self, address: Scope) -> None:
        """Bring the partition in the store to where the truth is."""
        with self._locks[address]:
            now = self._source.position(address)
            at = self._positions.get(address) or self._marked(address)
            if at == now:
                self._positions[address] = now
                return
            if at is None or at.epoch != now.epoch:
                self._positions.pop(address, None)
                self._drain(self._partition(address))
                at = Position(now.epoch, 0)
            after: int | None = at.seq
            while after is not None:
                changes = self._source.vector_changes(address, after=after, limit=_BATCH)
                gone = changes.removed.tolist()
                self._drop(address, [*gone, *changes.rows.tolist()] if at.seq else gone)
                self._put(address, changes.rows.tolist(), changes.vectors)
                after = changes.upto
            if now.seq:  # else nobody is there any more, and not even the name is kept
                self._mark(address, now)
            self._positions[address] = now

    def _put(self, address: Scope, rows: Sequence[int], vectors: NDArray[np.float32]) -> None:
        partition = self._partition(address)
        for start in range(0, len(rows), _BATCH):
            some, theirs = rows[start : start + _BATCH], vectors[start : start + _BATCH].tolist()
            self._add(
                [
                    Entry(self._id(address, row), vector, {"mem0_partition": partition, "mem0_row": row})
                    for row, vector in zip(some, theirs, strict=True)
                ]
            )

    def _add(self, entries: list[Entry]) -> None:
        self._called(lambda: self._store.add(entries))

    def _drop(self, address: Scope, rows: Sequence[int] | set[int]) -> None:
        self._delete([self._id(address, row) for row in rows])

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), _BATCH):
            some = ids[start : start + _BATCH]
            try:
                self._called(lambda some=some: self._store.delete(some))  # type: ignore[misc]
            except _Outage as outage:
                if isinstance(outage.__cause__, NotImplementedError):
                    name = self._store.name
                    raise ConfigError(f"vector_store: {name} cannot delete, so it cannot follow a memory") from outage
                raise

    def _drain(self, partition: str) -> None:
        """Remove a partition, whatever it holds, and how far it came."""
        self._delete([self._marker(partition)])
        while found := self._search(partition, self._any_vector(), _BATCH):
            self._delete([self._id_in(partition, int(held["mem0_row"])) for held in found])

    # --- how far it came -------------------------------------------------------------------------------------------

    def _marked(self, address: Scope) -> Position | None:
        """How far the partition is by its own account; None where it has none, or the store cannot say."""
        marker = self._marker(self._partition(address))
        try:
            held = self._called(lambda: self._store.read(marker))
        except _Outage as outage:
            if isinstance(outage.__cause__, NotImplementedError):
                return None
            raise
        return Position(held["mem0_epoch"], int(held["mem0_seq"])) if held else None

    def _mark(self, address: Scope, at: Position) -> None:
        partition = self._partition(address)
        metadata = {"mem0_partition": self._markers, "mem0_epoch": at.epoch, "mem0_seq": at.seq, "mem0_of": partition}
        self._delete([self._marker(partition)])
        self._add([Entry(self._marker(partition), self._any_vector(), metadata)])

    def _known(self) -> list[Scope]:
        """The addresses that have a partition in the store, of earlier processes too."""
        found = self._search(self._markers, self._any_vector(), _MOST)
        return [Scope(**{axis: value}) for _, axis, value in (json.loads(held["mem0_of"]) for held in found)]

    def _any_vector(self) -> list[float]:
        """A vector where one is needed and it does not matter which."""
        if self._dims is None:
            space = getattr(self._source, "space", None)
            self._dims = (space() or (None, None))[1] if space is not None else None
        if self._dims is None:
            raise _Outage("nobody said how long its vectors are (dims)")
        return [1.0, *([0.0] * (self._dims - 1))]

    # --- names -----------------------------------------------------------------------------------------------------

    @property
    def _markers(self) -> str:
        return json.dumps([self._namespace, "markers"])

    def _partition(self, address: Scope) -> str:
        axis, value = address.partition
        return json.dumps([self._namespace, str(axis), value])

    def _marker(self, partition: str) -> str:
        return str(uuid.uuid5(_IDS, f"{partition} marker"))

    def _id(self, address: Scope, row: int) -> str:
        return self._id_in(self._partition(address), row)

    def _id_in(self, partition: str, row: int) -> str:
        return str(uuid.uuid5(_IDS, f"{partition} {row}"))  # a UUID, since Qdrant takes no other texts

    # --- calling ---------------------------------------------------------------------------------------------------

    def _called(self, work: Callable[[], T]) -> T:
        """What a call to the store returns; it is made in a thread, so that one that hangs can be given up.

        Raises:
            _Outage: it failed, took too long, or did so a moment ago.
        """
        if time.monotonic() < self._down_until:
            raise _Outage("it failed a moment ago")
        ended: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()
        context = contextvars.copy_context()
        Thread(target=lambda: ended.put(context.run(_outcome, work)), name="mem0-vectors", daemon=True).start()
        try:
            result, error = ended.get(timeout=self._timeout)
        except Empty:
            error = _Outage(f"no answer within {self._timeout} seconds")
        if error is not None:
            self._positions.clear()  # it may come back without what it had
            if not isinstance(error, NotImplementedError):
                self._down_until = time.monotonic() + self._retry_after
            raise _Outage(f"{type(error).__name__}: {error}") from error
        value: T = result
        return value


def _outcome(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - raised in the thread that waits
        return None, error


def _address(scope: Scope) -> Scope:
    axis, value = scope.partition
    return Scope(**{axis.value: value})


def _single_ids(scope: Scope) -> list[dict[str, str]]:
    return [{axis.value: value} for axis, value in scope.ids.items()]
