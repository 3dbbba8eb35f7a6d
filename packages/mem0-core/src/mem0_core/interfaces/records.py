"""Memory records: the smallest store (`RecordStore`), and the records of a full one (`MemoryRecords`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.filters import Filter
    from mem0_core.domain.records import MemoryChange, MemoryItem, Message, RelationChange, Scope
    from mem0_core.interfaces.queue import Lease

OnConflict = Literal["invalidate", "delete"]
"""Treatment of a relation that no longer holds: end it and keep it on record, or remove it."""


class RecordStore(Protocol):
    """The smallest store a `Memory` works with: memories and their vectors.

    `stores.minimal` derives the rest of a `MemoryStore` from these seven methods, or refuses it with an error.
    docs/how-to/write-a-store.md builds one in about 100 lines.

    One process uses the store at a time. Writes come one after another; reads may come from several threads.
    Methods raise StoreError when the underlying storage fails. A store with methods that never block sets
    ``inline = True``. An attribute ``lexicon``, ``maintenance`` or ``archive`` is used as that capability.
    """

    def get(self, memory_id: str) -> MemoryItem | None:
        """Return a memory with all its fields as they were saved, or None."""
        ...

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        """Return the memories of a scope (None: of all scopes) that pass the filter, ordered by `created_at`.

        `Scope.contains` and `domain.filters.matches` define membership and filters.
        """
        ...

    def vectors_by_id(self, memory_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors, (dims,) float32, of the existing memories among `memory_ids`."""
        ...

    def embedding_space(self) -> tuple[str, int] | None:
        """Return the (name, dims) given with the last write that had one, None for an empty store."""
        ...

    def write(
        self,
        saved: Sequence[tuple[MemoryItem, NDArray[np.float32]]],
        deleted_ids: Sequence[str],
        *,
        embedding_space: tuple[str, int] | None,
    ) -> None:
        """Save memories (new or changed, by id) with their vectors and delete others, all or nothing.

        Args:
            embedding_space: (name, dims) to remember; None to keep the current one.
        """
        ...

    def reset(self) -> None:
        """Remove all memories and the embedding space."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The outcome of a commit, change by change.

    Attributes:
        applied: each planned change as it took effect. An ADD of a fact the scope already holds comes back as NONE
            with the existing memory.
        relations: the changes to the graph, likewise. An ADD of an existing relation is NONE (its weight rose).
            Changes that followed from changed memories are included.
        conflicts: indexes of UPDATEs and DELETEs of memories that had changed since the plan was made. If there is one,
            nothing of the plan was written and `applied` is empty.
        lease_lost: True if another worker holds a job of the lease; nothing was written.
    """

    applied: tuple[MemoryChange, ...] = ()
    relations: tuple[RelationChange, ...] = ()
    conflicts: tuple[int, ...] = ()
    lease_lost: bool = False


@dataclass(frozen=True, slots=True)
class PlannedUpdate:
    """A planned UPDATE of one memory, with the changes of the graph that follow from its new text.

    Attributes:
        relations: changes to the graph of the memory's scope; index 0 of their memories is this one.
        replaces_relations: `relations` are all relations of the memory. Their earlier support is withdrawn first,
            unsupported relations end, and repeated relations keep their weight.
    """

    change: MemoryChange
    relations: Sequence[RelationChange] = ()
    replaces_relations: bool = False


@dataclass(frozen=True, slots=True)
class RetractionResult:
    """Counts of a retraction.

    Attributes:
        messages: erased messages of the source.
        memories: memories that left.
        restored: memories that have an earlier text again, or came back.
        kept: memories that other messages support too.
        relations: relations that left.
        relations_restored: relations that hold again, or end at another time.
        summaries: erased summaries.
        jobs: messages of others that are queued to be read again.
    """

    messages: int = 0
    memories: int = 0
    restored: int = 0
    kept: int = 0
    relations: int = 0
    relations_restored: int = 0
    summaries: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddedItem:
    """An item of a store that has a vector: a memory, a past memory, a node or a relation."""

    kind: Literal["memory", "past", "node", "relation"]
    row: int
    seq: int
    text: str


class MemoryRecords(Protocol):
    """The memories of a full store: commits, reads, deletion and re-embedding."""

    def commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
    ) -> CommitResult:
        """Write a plan and its messages in one transaction.

        Text replaced by an UPDATE or DELETE stays on record for searches as of an earlier time. A memory whose UPDATE
        would repeat another memory of the scope is deleted. Relations end that only an updated memory supported, if
        its new text no longer names them; those to persons and with several values end only if the plan has another
        value. Those that only a deleted memory supported end, except those of the plan. Messages already stored by an
        identical add are not stored again.

        Args:
            at: ISO 8601 time of the change, for rows without their own.
            embedding_space: (name, dims) of the embedder that made the vectors. The first commit fixes it for the
                store; a later commit with another one raises ConfigError.
            relations: changes to the graph of `scope`. A planned node that was removed since is created again. An ADD
                of an existing relation raises its weight; a DELETE of an ended relation does nothing.
            on_conflict: treatment of relations that end.
            lease: jobs completed by this commit. If another worker holds one of them, nothing is written.
            import_checkpoint: the key of an import into `scope`, and the number of its messages done with this commit.
            distinct_sessions: the added memories do not belong to one conversation, unless they share a run.
        """
        ...

    def commit_updates(
        self,
        updates: Sequence[PlannedUpdate],
        *,
        at: str,
        embedding_space: tuple[str, int] | None = None,
        on_conflict: OnConflict = "invalidate",
    ) -> CommitResult:
        """Write updates of memories, of one scope or of several, in their order and in one transaction.

        Args:
            at: ISO 8601 time of the change.
            embedding_space: as for `commit`.
            on_conflict: treatment of relations that end.

        Raises:
            InputError: another memory of a scope has the new text; nothing is written.
        """
        ...

    def embedding_space(self) -> tuple[str, int] | None:
        """Return (name, dims) of the embedder of the stored vectors, or None for a store without vectors."""
        ...

    def get(self, memory_id: str) -> MemoryItem | None:
        """Return a memory, or None."""
        ...

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, MemoryItem]:
        """Return the existing memories among `memory_ids`, by id, in one read."""
        ...

    def row(self, memory_id: str) -> int | None:
        """Return the row of a memory, or None."""
        ...

    def rows(self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None) -> NDArray[np.int64]:
        """Return a scope's rows that pass the filter, ascending; with `as_of`, only of memories unchanged since."""
        ...

    def memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, MemoryItem]:
        """Return the memories among `rows` in `scope`, by row."""
        ...

    def find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> dict[bytes, MemoryItem]:
        """Return the memories of exactly this scope (the same ids, no more) by `records.same_fact_key`."""
        ...

    def list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> list[MemoryItem]:
        """Return the memories of a scope (None: of all scopes, for maintenance), ordered by `created_at`."""
        ...

    def pin(self, memory_id: str, pinned: bool) -> bool:
        """Pin or unpin a memory. Returns False if no memory has that id."""
        ...

    def mark(self, memory_ids: Sequence[str], *, useful: int = 0, useless: int = 0, clear: bool = False) -> int:
        """Add to the counts of feedback of memories, all or nothing. Returns the number of memories that exist.

        Args:
            clear: begin at 0 instead of the current counts.
        """
        ...

    def pinned_memories(self, scope: Scope) -> list[MemoryItem]:
        """Return the pinned memories of a scope, oldest first."""
        ...

    def erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> int:
        """Delete memories with all their texts and vectors, their source messages and unsupported relations.

        Args:
            purge: also delete their history, and scrub the database's remains of deleted rows (free pages, a log).

        Returns:
            The number of memories deleted.
        """
        ...

    def erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> int:
        """Delete everything in a scope, messages included; `purge` also reaches earlier deletions."""
        ...

    def retract(
        self, source: str, scope: Scope | None, *, at: str, relearn: bool = False, purge: bool = False
    ) -> RetractionResult:
        """Withdraw in one transaction everything that was learned in a scope from a source and from nothing else.

        Memories return to their last text that does not depend on the source. Relations and memories that only this
        source ended hold again. Its messages are erased.

        Args:
            scope: None for all scopes.
            relearn: queue the messages of others behind withdrawn texts, to be read again.
            purge: as in `erase`, for the memories that left.
        """
        ...

    def embedded_items(self) -> list[EmbeddedItem]:
        """Return every item that has a vector."""
        ...

    def replace_vectors(self, vectors: Mapping[EmbeddedItem, Any], *, embedding_space: tuple[str, int]) -> bool:
        """Replace all vectors and the embedding space in one transaction; one that is missing stays so for `repair`.

        Return False if an item was added, changed or deleted since it was read; then nothing is replaced.
        """
        ...

    def reset(self) -> None:
        """Remove everything from the store, history included."""
        ...

    def close(self) -> None: ...
