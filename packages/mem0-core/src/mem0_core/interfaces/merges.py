"""Merges of entities and relationships, and how to undo them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.records import Merge, MergeKind, Scope


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A planned merge.

    Attributes:
        kept_node: row of the entity that remains; None for relationships.
        merged_nodes: rows of the entities that are merged into it.
        vectors: sentence of each moved relation, as it will read -> its embedding.
    """

    merge: Merge
    kept_node: int | None = None
    merged_nodes: tuple[int, ...] = ()
    vectors: Mapping[str, Any] = field(default_factory=dict)


class MergeLedger(Protocol):
    """The merges of a store, applied and reverted, with the data that undoes them.

    A merge moves relations to the remaining name: an existing relation gains their weight and evidence, a new one is
    created otherwise. The undo data holds no texts or vectors, and shrinks when memories are erased. While a merge is
    in effect, commits under a merged name are stored under the remaining name.
    """

    def apply(self, plan: MergePlan, *, at: str, embedding_space: tuple[str, int]) -> Merge | None:
        """Apply a merge. Returns None, and changes nothing, if the graph has changed since it was planned.

        Raises:
            ConfigError: the store holds the vectors of another embedder.
        """
        ...

    def texts_to_embed(self, merge_id: str) -> list[str]:
        """Return the names and sentences that `revert` restores; it needs their vectors."""
        ...

    def revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, embedding_space: tuple[str, int]
    ) -> Merge | None:
        """Undo a merge. Returns None, and changes nothing, if it needs other vectors by now.

        Relations erased, ended or withdrawn since the merge stay so. Relations added since stay under their names.

        Raises:
            NotFoundError: no merge in effect has that id.
            InputError: a later merge builds on it.
        """
        ...

    def list_merges(self, scope: Scope) -> list[Merge]:
        """Return the merges of a scope, oldest first, reverted ones included."""
        ...

    def aliases(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> dict[bytes, str]:
        """Return `records.entity_key` of each merged name -> the remaining name.

        Args:
            exact: read only exactly this scope, without narrower ones.
        """
        ...
