"""The default index: `FaissIndex` where FAISS is installed, else `NumpyIndex`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mem0_core._system.blas import use_one_blas_thread
from mem0_core.domain.records import Scope
from mem0_core.interfaces import VectorSource
from mem0_core.interfaces.maintenance import ProjectionMismatch
from mem0_core.stores.vector._tables import ArrayIndex, is_faiss_installed
from mem0_core.stores.vector.faiss import FaissIndex


def create_embedded_index(source: VectorSource, **options: Any) -> FaissIndex:
    """Create a `FaissIndex` if FAISS is installed (extra ``faiss``), else a `NumpyIndex`.

    Both find the same vectors; FAISS is faster from some 10,000 vectors of one id on.
    """
    index_class = FaissIndex if is_faiss_installed() else NumpyIndex
    return index_class(source, **options)


create_embedded_index.__signature__ = inspect.signature(FaissIndex)  # type: ignore[attr-defined]  # to check its keys


class NumpyIndex(FaissIndex):
    """A `VectorIndex` on numpy alone: an exact scan for partitions of any size, without snapshots.

    Args:
        source: the vectors of the primary store.
        folder: the folder of snapshots that FAISS has written; they are removed with the data that they contain.
        exact_limit: without effect.
        cache_bytes: memory for the vectors of loaded partitions; the partition being searched is always kept.
    """

    _flat_index = ArrayIndex

    def __init__(
        self,
        source: VectorSource,
        *,
        folder: str | Path | None = None,
        exact_limit: int = 0,
        cache_bytes: int = 256 << 20,
    ) -> None:
        super().__init__(source, folder=folder, exact_limit=sys.maxsize, cache_bytes=cache_bytes)

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Return nothing: all vectors are read from the primary store."""
        return []

    def _check_library(self) -> None:
        """Accept any environment."""

    def _snapshot(self, address: Scope) -> None:
        return None

    def _limit_threads(self) -> AbstractContextManager[None]:
        return use_one_blas_thread()
