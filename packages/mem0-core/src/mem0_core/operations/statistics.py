"""What a store holds, and what it takes on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mem0_core.care import Care
from mem0_core.records import Scope

__all__ = ["statistics"]


def statistics(care: Care, database: Path, scope: Scope | None) -> dict[str, Any]:
    """How much of everything there is in a scope; of the whole store, with its files, where it is None."""
    summed = care.sums(scope)
    if scope is not None:
        return summed
    snapshots = database.parent / "faiss" / database.stem
    files = {
        "path": str(database),
        "store": _size(database),
        "log": _size(database.with_name(f"{database.name}-wal")),
        "snapshots": sum(_size(path) for path in snapshots.rglob("*") if path.is_file()),
    }
    return {**summed, "bytes": files}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
