"""Locations of data files, and atomic writes of files that only their owner can read."""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mem0_core.errors import InputError

__all__ = ["DATABASE", "home", "make_file", "make_folder", "refuse_existing", "replace_atomically"]

DATABASE = "memory.db"
"""Name of a store's file in its folder."""

_POSIX = os.name == "posix"


def home() -> Path:
    """Return the default data folder: ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    if given := os.environ.get("MEM0_CORE_HOME"):
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("mem0-core", appauthor=False)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents; on POSIX only the owner may access them (0700).

    An existing folder keeps its permissions.
    """
    try:
        path.mkdir(mode=0o700 if _POSIX else 0o777)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_folder(path.parent)
        make_folder(path)
    except OSError:
        if not path.is_dir():
            raise


def make_file(path: Path) -> None:
    """Create an empty file if there is none; on POSIX only the owner may access it (0600).

    An existing file keeps its content and its permissions.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if _POSIX else 0o666))


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raise InputError if `path` exists and `overwrite` is False."""
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} already exists; pass overwrite=True (--force) to overwrite it, or choose another path"
        )


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield a new file in the folder of `path` that replaces `path` if the block ends without an error.

    A missing folder is created, and only the owner may access the file (0600). Readers of `path` see either the old or
    the new content, never a mixture. Files that the block leaves under longer names (a database's log) are removed.

    Raises:
        OSError: The file cannot be written; `path` is unchanged.
    """
    make_folder(path.parent)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        make_file(unfinished)
        yield unfinished
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
    finally:
        for left in path.parent.glob(f"{glob.escape(unfinished.name)}*"):
            with suppress(OSError):
                left.unlink()
