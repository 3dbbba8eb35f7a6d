"""The past of memories: the audit log of their changes, and their earlier texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.filters import Filter
    from mem0_core.domain.records import HistoryRow, MemoryItem, Scope


class MemoryHistory(Protocol):
    """The changes of memories, and searches as of an earlier time."""

    def history(self, memory_id: str) -> list[HistoryRow]:
        """Return every change of a memory, oldest first, including those of a deleted memory."""
        ...

    def owner(self, memory_id: str) -> Scope | None:
        """Return the scope of a memory, or of a deleted one that is still on record; None if it is unknown."""
        ...

    def past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> tuple[list[MemoryItem], NDArray[np.float32]]:
        """Return the texts of a scope that were valid at `as_of` and were changed or deleted since.

        Returns:
            The memories with these texts, and their vectors, (n, dims).
        """
        ...

    def replaced_texts(
        self, scope: Scope, *, filter: Filter | None = None, limit: int
    ) -> tuple[list[tuple[MemoryItem, str]], NDArray[np.float32]]:
        """Return the last `limit` texts of a scope that were changed or deleted by a plan, oldest first.

        Returns:
            Each memory with its former text and the ISO 8601 time at which it was replaced, and the vectors of these
            texts, (n, dims). A store without history returns none.
        """
        ...
