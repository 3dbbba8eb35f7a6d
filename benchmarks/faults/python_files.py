"""Boundaries of Python's own operations: statements sent to SQLite, and changes of files and folders."""

from __future__ import annotations

import builtins
import errno
import io
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.faults.injector import Injector

__all__ = ["watch_files", "watch_statements"]

_CHANGES = {
    "os.rename": "file rename",
    "os.remove": "file remove",
    "os.mkdir": "file folder",
    "os.rmdir": "file folder",
    "os.link": "file link",
    "os.symlink": "file link",
    "os.truncate": "file truncate",
    "os.chmod": "file mode",
}
"""Audit events of CPython that stand for a change of the file system."""

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def watch_files(injector: Injector) -> None:
    """Make Python's changes of files pass the boundaries of `injector`, in this process and its forks."""

    def audit(event: str, values: tuple[Any, ...]) -> None:
        if not injector.is_armed:
            return
        if event in _CHANGES:
            injector.check(_CHANGES[event], _name(values[0]))
        elif event == "open" and isinstance(values[2], int) and values[2] & _WRITE_FLAGS:
            injector.check("file create", _name(values[0]))

    sys.addaudithook(audit)
    _watch_sync(injector)
    _watch_open(injector)


def _name(path: Any) -> str:
    return Path(os.fsdecode(path)).name if isinstance(path, str | bytes | os.PathLike) else str(path)


def _watch_sync(injector: Injector) -> None:
    sync = os.fsync

    def watched_sync(handle: Any) -> None:
        injector.check("file sync", "")
        sync(handle)

    os.fsync = watched_sync  # type: ignore[assignment]


class _WatchedFile(io.FileIO):
    """A raw file whose writes pass boundaries: one for each system call."""

    injector: Injector

    def write(self, data: Any) -> int:
        outcome = self.injector.reach("file write", _name(self.name))
        if outcome == "fail":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        if outcome == "torn":
            half = len(bytes(data)) // 2
            super().write(bytes(data)[:half])
            self.injector.end()
            return half  # the caller writes the rest
        return super().write(data) or 0


def _watch_open(injector: Injector) -> None:
    original: Callable[..., Any] = io.open

    def watched_open(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **options: Any) -> Any:
        is_plain = injector.is_armed and not more and not options.get("opener") and not isinstance(file, int)
        if not is_plain or not set(mode) & set("wax+"):
            return original(file, mode, buffering, *more, **options)
        raw = _WatchedFile(file, mode.replace("b", "").replace("t", ""))
        raw.injector = injector
        buffer: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffer if buffering else raw
        text = {key: value for key, value in options.items() if key in ("encoding", "errors", "newline")}
        return io.TextIOWrapper(buffer, **text)

    io.open = builtins.open = watched_open


def watch_statements(injector: Injector) -> None:
    """Make each statement of every new SQLite connection pass a boundary of `injector`."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    class WatchedConnection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            injector.reach("statement", sql.split(None, 1)[0])
            return super().execute(sql, *values)

        def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
            injector.reach("statement", sql.split(None, 1)[0])
            return super().executemany(sql, values)

        def backup(self, *values: Any, **options: Any) -> None:
            injector.reach("statement", "backup")
            super().backup(*values, **options)

        def commit(self) -> None:
            injector.reach("statement", "commit")
            super().commit()

    def watched_connect(*values: Any, **options: Any) -> sqlite3.Connection:
        return connect(*values, **{"factory": WatchedConnection, **options})

    sqlite3.connect = watched_connect  # type: ignore[assignment]
