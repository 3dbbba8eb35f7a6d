"""Record counts of a store and its size on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mem0_core.domain.records import Scope
from mem0_core.interfaces.maintenance import StoreMaintenance


def collect_statistics(maintenance: StoreMaintenance, snapshots: Path, scope: Scope | None) -> dict[str, Any]:
    """Return the record counts of a scope; for None, of the whole store with its size in bytes.

    Args:
        snapshots: Folder of the vector index snapshots on this machine.
    """
    counts = maintenance.count_records(scope)
    if scope is not None:
        return counts
    snapshot_bytes = sum(path.stat().st_size for path in snapshots.rglob("*") if path.is_file())
    return {**counts, "bytes": {**maintenance.disk_usage(), "snapshots": snapshot_bytes}}
