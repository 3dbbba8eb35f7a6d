"""Where our files lie, and writing them: whole, whoever reads them, and readable by their owner alone."""

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
"""The name of a store's file in its folder."""

_POSIX = os.name == "posix"


def home() -> Path:
    """The folder of all data unless told otherwise: ``$MEM0_CORE_HOME``, else ours in the platform's data folder."""
    if given := os.environ.get("MEM0_CORE_HOME"):
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("mem0-core", appauthor=False)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where they are missing: on POSIX for the owner alone (0700).

    A folder that exists keeps its permissions.
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
    """Make an empty file where there is none, on POSIX for the owner alone (0600).

    A file that exists keeps its content and its permissions.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if _POSIX else 0o666))


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Refuse to write where something lies already (InputError), unless that may be overwritten."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; say that it may be overwritten, or name another")


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """A new file beside `path` to be written, which takes its place when the block ends without an error.

    The folder is made where there is none, and the file is the owner's alone (0600). Whoever reads `path`, at any
    time, finds all of what it held or all of what it holds now. What the block leaves under longer names (a database's
    log, say) is removed.

    Raises:
        OSError: it cannot be written; `path` is as it was.
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
