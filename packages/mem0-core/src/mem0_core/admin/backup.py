"""Back up a store to one consistent file while others write, and restore it.

A backup of a store in any database is a SQLite file, which opens as a store. SQLite itself copies a store in a file. A
store in a server is read in one snapshot, as by `mem0-core migrate`, and compared with the written file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from mem0_core._system.boundary import convert_errors, guard_hook
from mem0_core._system.files import (
    clear_abandoned,
    describe_unwritable,
    home,
    make_file,
    make_folder,
    private_folder,
    refuse_existing,
    replace_atomically,
)
from mem0_core.admin.copies import register_copy
from mem0_core.admin.transfer import copy_store
from mem0_core.errors import InputError, StoreError
from mem0_core.interfaces import MemoryStore
from mem0_core.interfaces.archive import RecordReader
from mem0_core.interfaces.maintenance import ProgressCallback
from mem0_core.stores.sqlite.maintenance import copy_file, merge_into_one_file, restore_file, verify_file
from mem0_core.stores.sqlite.store import SQLiteStore


@convert_errors
def write_backup(
    store: MemoryStore, path: Path, *, overwrite: bool = False, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Write all committed data to one new SQLite file, and verify it.

    The file contains no projections (FAISS snapshots, Neo4j): they are rebuilt from it.

    Raises:
        InputError: The file exists, and `overwrite` is not set.
        StoreError: The file cannot be written.
    """
    path = _check_target(path, overwrite)
    identity = register_copy(store.maintenance, "backup", path)
    with _write_atomically(path) as file:
        if store.maintenance.file is not None:
            copy_file(store.maintenance.file, file, on_progress=on_progress)
        else:
            with store.archive.snapshot() as records:
                _write_records(records, file, on_progress)
        memories = verify_file(file)
    return {"path": str(path), "bytes": path.stat().st_size, "memories": memories, "identity": identity}


@convert_errors
def restore(
    source: Path, database: Path, *, overwrite: bool = False, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Verify the backup in `source`, and restore the store in `database` from it.

    Processes that have the store open see the restored data from their next call on. Projections are rebuilt.

    Raises:
        InputError: There is no such backup; or a store exists, and `overwrite` is not set.
        StoreError: The backup is damaged or not a store; nothing has changed.
    """
    memories = _check_source(source)
    _check_target(database, overwrite)
    restore_file(source, database, on_progress=guard_hook("on_progress", on_progress))
    return {"path": str(database), "memories": memories, "restored": verify_file(database)}


@convert_errors
def restore_into(
    source: Path,
    store: MemoryStore,
    *,
    overwrite: bool = False,
    folder: Path | None = None,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Restore a store in a server: empty it, load the backup, and compare. No other process may have it open.

    After an interruption the store refuses to open until the restore is repeated.

    Args:
        folder: the folder for a temporary copy of the backup, by default the data folder.

    Raises:
        InputError: There is no such backup; or the store is not empty, and `overwrite` is not set.
        StoreError: The backup is damaged or not a store, and nothing has changed; or the database failed.
    """
    memories = _check_source(source)
    section = store.archive.first_nonempty_section()
    if section is not None and not overwrite:
        raise InputError(f"the store is not empty (it has {section}); pass overwrite=True (--force) to overwrite it")
    report = guard_hook("on_progress", on_progress)
    with _copy_privately(source, folder or home()) as file, closing(SQLiteStore(file)) as copy:
        if section is not None:
            store.reset()
        result = copy_store(copy.archive, store.archive, on_progress=_adapt_progress(report))
    return {
        "path": str(store.maintenance.disk_usage()["path"]),
        "memories": memories,
        "restored": result.digests["memories"].count,
    }


@contextmanager
def _copy_privately(source: Path, folder: Path) -> Iterator[Path]:
    """Yield a temporary copy of a backup: opening it may upgrade its schema."""
    with ExitStack() as stack:
        try:
            make_folder(folder)
            clear_abandoned([folder])
            make_file(copy := stack.enter_context(private_folder(folder)) / "copy.db")
            shutil.copyfile(source, copy)
        except OSError as error:
            raise StoreError(f"cannot copy {source} to {folder}: {error}") from error
        yield copy


def _write_records(records: RecordReader, file: Path, on_progress: ProgressCallback | None) -> None:
    with closing(SQLiteStore(file, durability="process", is_loading=True)) as target:
        copy_store(records, target.archive, on_progress=_adapt_progress(on_progress))
    merge_into_one_file(file)


def _adapt_progress(on_progress: ProgressCallback | None) -> Callable[[str, int], object] | None:
    return None if on_progress is None else lambda section, count: on_progress(count, None)


def _check_source(source: Path) -> int:
    if not source.is_file():
        raise InputError(f"backup not found: {source}; pass a file that backup wrote")
    return verify_file(source)


def _check_target(path: Path, overwrite: bool) -> Path:
    refuse_existing(path, overwrite)
    if path.is_dir():
        raise InputError(f"{path} is a folder")
    return path


@contextmanager
def _write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` once it is complete."""
    if not path.parent.is_dir():
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}; make it, or choose another path")
    try:
        with replace_atomically(path) as file:
            yield file
    except OSError as error:
        raise StoreError(describe_unwritable(path, error)) from error
