"""What a store holds, and what it takes on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mem0_core.domain.records import Scope
from mem0_core.interfaces.maintenance import StoreMaintenance

__all__ = ["collect_statistics"]


def collect_statistics(care: StoreMaintenance, snapshots: Path, scope: Scope | None) -> dict[str, Any]:
    """How much of everything there is in a scope; of the whole store, with the bytes it takes, where it is None.

    Args:
        snapshots: the folder of those of vector indexes, on this machine.
    """
    counts = care.count_records(scope)
    if scope is not None:
        return counts
    snapshot_bytes = sum(path.stat().st_size for path in snapshots.rglob("*") if path.is_file())
    return {**counts, "bytes": {**care.disk_usage(), "snapshots": snapshot_bytes}}
