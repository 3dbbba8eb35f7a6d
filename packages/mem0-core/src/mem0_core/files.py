"""Writing files that are whole, whoever reads them and whenever the process ends."""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mem0_core.errors import InputError

__all__ = ["check_free", "replacing"]


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse to write where something lies already (InputError), unless that may be overwritten."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; say that it may be overwritten, or name another")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` to be written, which takes its place when the block ends without an error.

    The folder is made where there is none. Whoever reads `path`, at any time, finds all of what it held or all of what
    it holds now. What the block leaves under longer names (a database's log, say) is removed.

    Raises:
        OSError: it cannot be written; `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield unfinished
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
    finally:
        for left in path.parent.glob(f"{glob.escape(unfinished.name)}*"):
            with suppress(OSError):
                left.unlink()
