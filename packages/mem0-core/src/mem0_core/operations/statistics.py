"""What a store holds, and what it takes on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mem0_core.care import Care
from mem0_core.records import Scope

__all__ = ["statistics"]


def statistics(care: Care, snapshots: Path, scope: Scope | None) -> dict[str, Any]:
    """How much of everything there is in a scope; of the whole store, with the bytes it takes, where it is None.

    Args:
        snapshots: the folder of those of vector indexes, on this machine.
    """
    summed = care.sums(scope)
    if scope is not None:
        return summed
    taken = sum(path.stat().st_size for path in snapshots.rglob("*") if path.is_file())
    return {**summed, "bytes": {**care.size(), "snapshots": taken}}
