"""Vectors: the store's side (`VectorSource`) and the search side (`VectorIndex`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import Scope


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """The last change in one scope of the primary store; equal positions mean that nothing changed.

    Attributes:
        epoch: a new value after a purge, a reset or a re-embedding; projections then start over.
        seq: sequence number of the last change in the scope, 0 for none.
    """

    epoch: str
    seq: int


@dataclass(frozen=True, slots=True)
class VectorChanges:
    """The changes a projection applies to catch up with the primary store.

    Attributes:
        rows: int64 row numbers that were added or re-embedded, (n,).
        vectors: their embeddings, (n, dims) float32.
        removed: int64 row numbers of removed items.
        next_after: sequence number to continue from if there are more changes, None at the end.
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    removed: NDArray[np.int64]
    next_after: int | None = None


class VectorSource(Protocol):
    """The vectors of a primary store, as projections read them. Row numbers are never reused."""

    def position(self, scope: Scope) -> ChangePosition:
        """Return the position of the last change in a scope."""
        ...

    def vector_changes(self, scope: Scope, *, after: int = 0, limit: int | None = None) -> VectorChanges:
        """Return the changes in `scope` with a sequence number above `after`, oldest first, at most `limit` rows."""
        ...

    def vectors(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the existing rows among `rows` and their embeddings, in any order."""
        ...

    def rows(self, scope: Scope) -> NDArray[np.int64]:
        """Return the row numbers in a scope, ascending."""
        ...


class VectorIndex(Protocol):
    """A projection that finds the nearest vectors within a scope."""

    def nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> list[list[tuple[int, float]]]:
        """Return up to k (row, cosine) pairs for each query (n, dims), best first.

        Args:
            allowed_rows: search only among these rows; None for all rows of the scope.
            threshold: leave out rows with a lower cosine.
        """
        ...

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove deleted vectors of a scope (None: of all scopes) from disk. The index may rebuild itself later."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class VectorReader(Protocol):
    """A `VectorIndex` that returns the vectors that it searches."""

    def read_vectors(
        self, scope: Scope, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Return those of `rows` that the scope's partition has, with their vectors; None if it is searched by a graph.

        The scalar product of such a vector and a query is the cosine that `nearest` returns.
        """
        ...


def drop_below_threshold(
    found: list[list[tuple[int, float]]], threshold: float | None
) -> list[list[tuple[int, float]]]:
    """Leave out pairs of `VectorIndex.nearest` with a cosine below `threshold`."""
    if threshold is None:
        return found
    return [[pair for pair in of_query if pair[1] >= threshold] for of_query in found]
