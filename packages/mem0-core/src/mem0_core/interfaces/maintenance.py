"""What looking after a store needs of the truth: whether it is sound, all it holds, how much, and taking more in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mem0_core.domain.records import HistoryRow, Message, RelationChange, Scope

__all__ = [
    "OrphanedRelation",
    "ProgressCallback",
    "ProjectionMismatch",
    "StoreIssue",
    "StoreMaintenance",
    "VectorTable",
    "VerifiableProjection",
]

ProgressCallback = Callable[[int, int | None], object]
VectorTable = Literal["memories", "nodes", "edges"]


@dataclass(frozen=True, slots=True)
class StoreIssue:
    """Something in the truth that cannot be as it is.

    Attributes:
        kind: "damaged" is beyond mending, "vectorless" (rows of `table` without a vector) needs the embedder,
            the others are the truth's own to mend.
        what: the same in words.
    """

    kind: Literal["damaged", "index", "words", "counter", "stray", "vectorless"]
    description: str
    table: str = ""
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OrphanedRelation:
    """A relation that was removed by hand, or lost an end to such a hand, and what is left of it.

    Attributes:
        row: its number.
        vector: embedding of its sentence, (dims,) float32; None where that is gone too.
        memories: ids of the living memories that say it.
    """

    row: int
    vector: Any
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectionMismatch:
    """What a projection holds that does not agree with the truth; `address` or `files` name the part."""

    description: str
    address: Scope | None = None
    files: tuple[str, ...] = ()


@runtime_checkable
class VerifiableProjection(Protocol):
    """A projection that can be compared with the truth, and renewed from it."""

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """What does not agree with the truth; what is merely behind it is not unsound.

        Args:
            partitions, addresses: of the truth, see `StoreMaintenance`.
        """
        ...

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Make it agree, and say how."""
        ...


class StoreMaintenance(Protocol):
    """How a truth is looked after. Every method raises StoreError when the database fails."""

    @property
    def file(self) -> Path | None:
        """The file that the truth is, None where it is none."""
        ...

    def disk_usage(self) -> dict[str, Any]:
        """Where it lies (``path``), and the bytes it takes there (``store``, and ``log`` where that is apart)."""
        ...

    def find_issues(self) -> list[StoreIssue]:
        """What is wrong with the truth by itself."""
        ...

    def repair(self, issue: StoreIssue) -> str:
        """Mend a flaw that is the truth's own to mend, and say how."""
        ...

    def set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> None:
        """Give rows their vectors."""
        ...

    def embedded_texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        """What is embedded of each of these rows."""
        ...

    def orphaned_relations(self) -> list[OrphanedRelation]:
        """Relations that were removed by hand."""
        ...

    def has_merges(self) -> bool:
        """Whether names were made one, so that relations are not called as memories call them."""
        ...

    def count_missing_relations(self) -> int:
        """How many relations are gone without a trace, removed by hand or purged; 0 where nothing tells."""
        ...

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        """Whether exactly this scope has the relation, or had it until it ended."""
        ...

    def restore_relation(self, lost: OrphanedRelation | None, memory_id: str, relation: RelationChange) -> None:
        """Put a relation back that `memory_id` says: under its number, where there is something left of it."""
        ...

    def remove_orphan(self, lost: OrphanedRelation) -> None:
        """Remove what is left of a relation that nobody can name any more."""
        ...

    def begin_new_epoch(self) -> None:
        """Let every projection start anew."""
        ...

    def list_partitions(self, table: VectorTable) -> list[Scope]:
        """The ids that vectors are kept by: the first of each scope there is."""
        ...

    def list_addresses(self, table: VectorTable) -> list[Scope]:
        """Every id there is, by itself: what a partition may be of, where searches name no other."""
        ...

    def count_records(self, scope: Scope | None) -> dict[str, Any]:
        """How much there is of what."""
        ...

    def iter_records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        """All memories with what belongs to them, as JSON objects, of one moment; see `interchange.exporting`."""
        ...

    def adopt_history(self, rows: Sequence[HistoryRow]) -> int:
        """Take in the history of another store, in place of our own ADD of each memory; returns how many are new."""
        ...

    def adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> list[int]:
        """Take in messages of another store, each by its digest (`archive.SECTIONS`); returns the rows they have here.

        One that is here already, by its digest, stays.
        """
        ...
