"""A vector index without an index structure: each search scans the vectors of the scope."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mem0_core.interfaces import VectorSource, drop_below_threshold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import Scope


class ExactIndex:
    """A `VectorIndex` that reads its source on every search and keeps nothing. Fit for some 10,000 vectors a scope.

    Args:
        source: the vectors to search.
        folder: unused; other indexes keep snapshots there.
    """

    def __init__(self, source: VectorSource, *, folder: Path | None = None) -> None:
        self._source = source
        self.inline = getattr(source, "inline", False)  # see `flow`

    def nearest(
        self,
        scope: Scope,
        queries: NDArray[np.float32],
        k: int,
        *,
        allowed_rows: NDArray[np.int64] | None = None,
        threshold: float | None = None,
    ) -> list[list[tuple[int, float]]]:
        import numpy as np

        from mem0_core.stores.vector._tables import scan

        rows = self._source.rows(scope)
        if allowed_rows is not None:
            rows = np.intersect1d(rows, allowed_rows)
        return drop_below_threshold(scan(*self._source.vectors(rows.tolist()), queries, k), threshold)

    def purge_deleted(self, scope: Scope | None) -> None:
        """Do nothing: no copy of a vector is kept."""

    def close(self) -> None:
        """Do nothing: the source belongs to the store."""
