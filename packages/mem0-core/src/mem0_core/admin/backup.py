"""Copies of a store: one consistent file, made while others write; and going back to one.

A copy is a SQLite file, whatever database the store lies in: it is read by any SQLite, and opens as a store. One in a
file is copied by SQLite itself. Of one in a server everything is read at one moment, as `mem0-core migrate` does, and
compared with what was written.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mem0_core._files import refuse_existing, replace_atomically
from mem0_core.admin import transfer as migration
from mem0_core.errors import InputError, StoreError
from mem0_core.interfaces import MemoryStore
from mem0_core.interfaces.archive import RecordReader
from mem0_core.interfaces.maintenance import ProgressCallback
from mem0_core.stores.sqlite.maintenance import copy_file, merge_into_one_file, restore_file, verify_file
from mem0_core.stores.sqlite.store import SQLiteStore

__all__ = ["restore", "restore_into", "write_backup"]


def write_backup(
    store: MemoryStore, path: Path, *, overwrite: bool = False, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Write all that is committed into one new file, checked, which any SQLite reads.

    Projections (FAISS snapshots, Neo4j) are not in it: they are built anew from it.

    Raises:
        InputError: the file exists, and `overwrite` is not set.
        StoreError: it cannot be written.
    """
    path = _check_target(path, overwrite)
    with _write_atomically(path) as file:
        if store.maintenance.file is not None:
            copy_file(store.maintenance.file, file, on_progress=on_progress)
        else:
            with store.archive.snapshot() as records:
                _write_records(records, file, on_progress)
        memories = verify_file(file)
    return {"path": str(path), "bytes": path.stat().st_size, "memories": memories}


def restore(
    source: Path, database: Path, *, overwrite: bool = False, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Make the store in `database` what the copy in `source` is, after checking the copy.

    Who has the store open sees it restored from their next call on. Projections start anew.

    Raises:
        InputError: there is no such copy; or there is a store already, and `overwrite` is not set.
        StoreError: the copy is damaged, or no store; nothing has changed.
    """
    memories = _check_source(source)
    _check_target(database, overwrite)
    restore_file(source, database, on_progress=on_progress)
    return {"path": str(database), "memories": memories, "restored": verify_file(database)}


def restore_into(
    source: Path, store: MemoryStore, *, overwrite: bool = False, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """`restore` for a store in a server, which nobody else may have open: it is emptied, filled, and compared.

    One that this was interrupted in refuses to open, until it is done again.

    Raises:
        InputError: there is no such copy; or the store is not empty, and `overwrite` is not set.
        StoreError: the copy is damaged, or no store, and nothing has changed; or the database failed.
    """
    memories = _check_source(source)
    held = store.archive.first_nonempty_section()
    if held is not None and not overwrite:
        raise InputError(f"the store is not empty (it has {held}); say that it may be overwritten")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(source, file := Path(folder) / "copy.db")  # opening it may bring its tables up to date
        with closing(SQLiteStore(file)) as copy:
            if held is not None:
                store.reset()
            done = migration.copy_store(copy.archive, store.archive, on_progress=_adapt_progress(on_progress))
    return {
        "path": str(store.maintenance.disk_usage()["path"]),
        "memories": memories,
        "restored": done.digests["memories"].count,
    }


def _write_records(records: RecordReader, file: Path, on_progress: ProgressCallback | None) -> None:
    with closing(SQLiteStore(file, durability="process", is_loading=True)) as target:
        migration.copy_store(records, target.archive, on_progress=_adapt_progress(on_progress))
    merge_into_one_file(file)


def _adapt_progress(on_progress: ProgressCallback | None) -> Callable[[str, int], object] | None:
    return None if on_progress is None else lambda section, count: on_progress(count, None)


def _check_source(source: Path) -> int:
    if not source.is_file():
        raise InputError(f"there is no file {source}")
    return verify_file(source)


def _check_target(path: Path, overwrite: bool) -> Path:
    refuse_existing(path, overwrite)
    if path.is_dir():
        raise InputError(f"{path} is a folder")
    return path


@contextmanager
def _write_atomically(path: Path) -> Iterator[Path]:
    """A file that takes its place when all of it is written, and is one file: no log lies beside it."""
    if not path.parent.is_dir():
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}")
    try:
        with replace_atomically(path) as file:
            yield file
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error}") from error
