"""Store maintenance: consistency checks, repairs, statistics, export, and adoption of other stores' data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.records import HistoryRow, Message, RelationChange, Scope

ProgressCallback = Callable[[int, int | None], object]
VectorTable = Literal["memories", "nodes", "edges"]


@dataclass(frozen=True, slots=True)
class StoreIssue:
    """An integrity violation in the primary store.

    Attributes:
        kind: "damaged" cannot be repaired; "vectorless" (rows of `table` without a vector) needs the embedder; the
            store repairs all others itself.
        description: the problem in words.
    """

    kind: Literal["damaged", "index", "words", "counter", "stray", "vectorless"]
    description: str
    table: str = ""
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OrphanedRelation:
    """The remains of a relation that was deleted, wholly or in part, outside of this library.

    Attributes:
        row: row of the relation.
        vector: embedding of its sentence, (dims,) float32; None if it is missing too.
        memories: ids of the existing memories that support it.
    """

    row: int
    vector: Any
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectionMismatch:
    """A part of a projection, `address` or `files`, that disagrees with the primary store."""

    description: str
    address: Scope | None = None
    files: tuple[str, ...] = ()


@runtime_checkable
class VerifiableProjection(Protocol):
    """A projection that can be compared with the primary store and rebuilt from it."""

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Return the parts that disagree with the primary store; lagging parts are not reported.

        Args:
            partitions, addresses: those of the primary store, see `StoreMaintenance`.
        """
        ...

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Repair a mismatch. Returns a description of the repair."""
        ...


@runtime_checkable
class ErasableProjection(Protocol):
    """A projection that keeps data in memory or in files of its own."""

    def discard(self) -> None:
        """Drop everything held in memory and in files, once running builds have ended; the next search reads the store.

        A later write of this process contains only data that the primary store holds then.
        """
        ...

    def files(self) -> list[Path]:
        """Return the files of the projection."""
        ...


@runtime_checkable
class RemoteProjection(Protocol):
    """A projection that a server or another library keeps, whose pages and logs this library does not rewrite."""

    @property
    def location(self) -> str:
        """Name of the server or store, without a password."""
        ...


class StoreMaintenance(Protocol):
    """Maintenance of a primary store. Every method raises StoreError when the database fails."""

    @property
    def file(self) -> Path | None:
        """The database file, None for a server."""
        ...

    def disk_usage(self) -> dict[str, Any]:
        """Return its location (``path``) and size in bytes (``store``, and ``log`` if there is a separate log)."""
        ...

    def find_issues(self) -> list[StoreIssue]:
        """Return the integrity violations of the store."""
        ...

    def repair(self, issue: StoreIssue) -> str:
        """Repair an issue that needs no embedder. Returns a description of the repair."""
        ...

    def set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> None:
        """Store vectors for rows."""
        ...

    def embedded_texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        """Return (row, text to embed) for each of these rows."""
        ...

    def orphaned_relations(self) -> list[OrphanedRelation]:
        """Return the relations that were deleted outside of this library."""
        ...

    def has_merges(self) -> bool:
        """Return True if names were merged, so that relations and memories may use different names."""
        ...

    def count_missing_relations(self) -> int:
        """Return the number of missing relation rows, deleted outside of this library or purged; 0 if unknown."""
        ...

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        """Return True if exactly this scope has the relation, ended ones included."""
        ...

    def restore_relation(self, lost: OrphanedRelation | None, memory_id: str, relation: RelationChange) -> None:
        """Restore a relation that a memory supports, under its old row if remains of it exist."""
        ...

    def remove_orphan(self, lost: OrphanedRelation) -> None:
        """Remove the remains of a relation that cannot be restored."""
        ...

    def begin_new_epoch(self) -> None:
        """Begin a new epoch: every projection starts over."""
        ...

    def list_partitions(self, table: VectorTable) -> list[Scope]:
        """Return the partitions with vectors: the first id of each existing scope."""
        ...

    def list_addresses(self, table: VectorTable) -> list[Scope]:
        """Return every existing id as a scope of its own: the possible partitions of searches."""
        ...

    def count_records(self, scope: Scope | None) -> dict[str, Any]:
        """Return the number of records by kind."""
        ...

    def count_jobs_by_state(self) -> dict[str, int]:
        """Return the number of queued jobs by state: waiting, leased or failed."""
        ...

    def count_memories_by_scope(self) -> dict[str, int]:
        """Return the number of memories by the kinds of ids of their scope, as in ``user+run``."""
        ...

    def iter_records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        """Yield all memories with their data as JSON objects, from one snapshot; see `interchange.exporters`."""
        ...

    @property
    def content_tables(self) -> Sequence[str]:
        """The tables with texts or vectors of the users."""
        ...

    def iter_contents(self, table: str, scope: Scope | None) -> Iterator[bytes]:
        """Yield the texts and vectors of a table, each as the bytes that files contain of it.

        Args:
            scope: only rows of this scope; None for all rows.
        """
        ...

    def count_scope(self, scope: Scope) -> dict[str, int]:
        """Return the number of rows of a scope in each table that an erasure empties."""
        ...

    def registry(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the entries of one kind that the store keeps about itself, by id: backups, erasures, receipts."""
        ...

    def register(self, kind: str, entry_id: str, value: Mapping[str, Any], *, replaces: str | None = None) -> bool:
        """Save an entry.

        Args:
            replaces: kind of the entry with the same id that it replaces, in the same transaction. If there is none,
                nothing is written, and the result is False.
        """
        ...

    def scrub(self) -> None:
        """Remove the remains of deleted rows from the log, and from free pages if the database keeps them."""
        ...

    def secret(self, name: str) -> str:
        """Return a random key of the store, made on first use and kept with it."""
        ...

    def adopt_history(self, rows: Sequence[HistoryRow]) -> int:
        """Store the history of another store in place of the ADD row of each memory. Returns the number of new rows."""
        ...

    def adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> list[int]:
        """Store messages of another store, each with its digest (`archive.SECTIONS`). Returns their rows.

        Messages with a known digest are not stored again.
        """
        ...
