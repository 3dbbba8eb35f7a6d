"""Access to the file of a store: how it can be opened, and if it still is the file that was opened."""

from __future__ import annotations

import os
from pathlib import Path

from mem0_core.errors import StoreError

_LOG, _LOG_INDEX = "-wal", "-shm"


def refuse_emptied_file(path: Path) -> None:
    """Raise StoreError if a file is missing or empty, but its log is not: SQLite would drop the log silently."""
    log = _beside(path, _LOG)
    if _size(path) or not _size(log):
        return
    state = "is empty" if path.exists() else "is missing"
    raise StoreError(
        f"{path} {state}, but its log {log.name} has {_size(log)} bytes: the file was cut or replaced, and is left as"
        " it is. Restore a backup (mem0-core restore); or, to begin with an empty store, remove the log"
    )


def is_read_only(path: Path) -> bool:
    """Return True if this process may read a store, but not write to it."""
    if not _size(path):
        return False
    logs = [_beside(path, end) for end in (_LOG, _LOG_INDEX)]
    if not os.access(path, os.W_OK):
        return True
    return not os.access(path.parent, os.W_OK) and not all(os.access(log, os.W_OK) for log in logs)


def writable_uri(path: Path) -> str:
    """Return the address of an existing file for SQLite; a file that is gone is not made again."""
    return f"{_absolute(path).as_uri()}?mode=rw"


def read_only_uri(path: Path) -> str:
    """Return the address of a file for reading.

    Without a log the file is complete. A plain read-only connection would create a log, which it may not be able to.
    """
    is_complete = not _size(_beside(path, _LOG)) and not os.access(path.parent, os.W_OK)
    return f"{_absolute(path).as_uri()}?mode=ro{'&immutable=1' if is_complete else ''}"


class FileIdentity:
    """The file that is open, to be compared with the file at its path."""

    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path)
        self._opened = os.stat(self._path)

    def check(self) -> None:
        """Raise StoreError if the file was removed or replaced."""
        try:
            if os.path.samestat(os.stat(self._path), self._opened):
                return
        except OSError:
            pass
        raise StoreError(
            f"{self._path} was removed or replaced while it was open, and nothing can be saved in it: open it again"
        )


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _beside(path: Path, end: str) -> Path:
    return path.with_name(f"{path.name}{end}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
