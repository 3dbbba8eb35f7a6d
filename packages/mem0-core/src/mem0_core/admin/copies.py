"""Copies of a store: which were made, and temporary files that killed processes left of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mem0_core.domain.records import new_id
from mem0_core.domain.timestamps import utc_now
from mem0_core.errors import CapabilityError, StoreError
from mem0_core.interfaces.maintenance import StoreMaintenance

COPIES = ("backup", "export", "drawing")
"""Kinds of registered copies."""


def register_copy(maintenance: StoreMaintenance, kind: str, path: Path) -> str:
    """Record a copy of data before it is written, so that erasures can name it; return its identity."""
    identity = new_id()
    entry = {"path": str(path.absolute()), "at": utc_now()}
    with suppress(StoreError, CapabilityError):  # a store that is read-only or frozen can be copied too
        maintenance.register(kind, identity, entry)
    return identity


def list_copy_folders(maintenance: StoreMaintenance) -> list[Path]:
    """Return the folders of all registered copies, in which temporary files may be left."""
    with suppress(StoreError, CapabilityError):
        entries = [entry for kind in COPIES for entry in maintenance.registry(kind).values()]
        return list(dict.fromkeys(Path(str(entry["path"])).parent for entry in entries))
    return []
