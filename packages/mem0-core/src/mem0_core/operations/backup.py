"""Copies of a store: one consistent file, made while others write; and going back to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mem0_core.care import Progress, care_of
from mem0_core.errors import InputError
from mem0_core.ports import MemoryStore
from mem0_core.stores.sqlite_care import check_file, restore_file

__all__ = ["back_up", "restore"]


def back_up(
    store: MemoryStore, path: Path, *, overwrite: bool = False, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Write all that is committed into one new file, checked, which any SQLite reads.

    Projections (FAISS snapshots, Neo4j) are not in it: they are built anew from it.

    Raises:
        InputError: the file exists, and `overwrite` is not set.
        StoreError: it cannot be written.
    """
    path = _target(path, overwrite)
    care_of(store).copy(path, on_progress=on_progress)
    return {"path": str(path), "bytes": path.stat().st_size, "memories": check_file(path)}


def restore(
    source: Path, database: Path, *, overwrite: bool = False, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Make the store in `database` what the copy in `source` is, after checking the copy.

    Who has the store open sees it restored from their next call on. Projections start anew.

    Raises:
        InputError: there is no such copy; or there is a store already, and `overwrite` is not set.
        StoreError: the copy is damaged, or no store; nothing has changed.
    """
    if not source.is_file():
        raise InputError(f"there is no file {source}")
    memories = check_file(source)
    _target(database, overwrite)
    restore_file(source, database, on_progress=on_progress)
    return {"path": str(database), "memories": memories, "restored": check_file(database)}


def _target(path: Path, overwrite: bool) -> Path:
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; say that it may be overwritten, or name another")
    if path.is_dir():
        raise InputError(f"{path} is a folder")
    return path
