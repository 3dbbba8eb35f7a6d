"""Count the boundaries that a call passes, and fail at one of them.

A boundary is the moment before an operation that others can see, or that can fail: a statement, a write, a sync, a lock
or a truncation of a database file, and any operation of Python on files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["KILLED", "Fault", "Injector", "Outcome", "Recorder", "digest_files"]

KILLED = 77
"""Exit status of a process that an `Injector` ended."""

Fault = Literal["kill", "torn", "full", "sync", "cancel", "crash"]
"""``kill``: the process ends before the operation. ``torn``: half of a write happens, and the process ends.
``full``: from here on, every write fails because the disk is full. ``sync``: one sync fails. ``cancel``: a coroutine
is cancelled, see `cancellation`. ``crash``: `Injector.crash` runs, and the operation goes on."""

Outcome = Literal["pass", "torn", "fail"]

_WRITES = frozenset({"write", "file write", "file create"})
_SYNCS = frozenset({"sync", "file sync"})


@dataclass(slots=True)
class Recorder:
    """Copies of a folder at chosen boundaries: the files that a process leaves that ends there.

    Boundaries between which no file changes share a copy.

    Attributes:
        source: the folder.
        target: parent of the copies, which are numbered from 0.
        chosen: boundaries.
        taken: boundaries of each copy.
    """

    source: Path
    target: Path
    chosen: frozenset[int]
    taken: list[list[int]] = field(default_factory=list)
    _last: bytes = b""

    def take(self, at: int) -> None:
        """Copy the folder, unless it is as at the boundary before."""
        content = self._read_state()
        if content != self._last:
            self._keep_state()
            self.taken.append([])
            self._last = content
        self.taken[-1].append(at)

    def _read_state(self) -> bytes:
        return digest_files(self.source)

    def _keep_state(self) -> None:
        shutil.copytree(self.source, self.target / str(len(self.taken)))


def digest_files(folder: Path) -> bytes:
    """Return a digest of the names, modes and contents of all files."""
    digest = hashlib.blake2b()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)}\0{path.lstat().st_mode}\0".encode())
        if path.is_file() and not path.name.endswith("-shm"):  # SQLite derives it from the log after a crash
            data = path.read_bytes()
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


@dataclass(slots=True)
class Injector:
    """Counter of boundaries, inactive until `arm`.

    Attributes:
        trace: labels of the boundaries passed, if they are recorded.
        crash: what crashes a server.
        recorder: in place of the end of the process, the state of its files is copied, and the process goes on.
    """

    fault: Fault = "kill"
    at: int | None = None
    records: bool = False
    trace: list[str] = field(default_factory=list)
    count: int = 0
    is_armed: bool = False
    is_full: bool = False
    crash: Callable[[], None] | None = None
    recorder: Recorder | None = None
    _is_copying: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def arm(
        self,
        *,
        at: int | None = None,
        fault: Fault = "kill",
        records: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        """Start to count; fail at boundary `at`, counted from 0 over the boundaries that `fault` can affect."""
        self.at, self.fault, self.records, self.recorder = at, fault, records, recorder
        self.trace, self.count, self.is_full = [], 0, False
        self.is_armed = True

    def disarm(self) -> None:
        """Stop to count, and end a full disk."""
        self.is_armed = self.is_full = False

    def reach(self, kind: str, name: str) -> Outcome:
        """Pass a boundary before an operation; the result says how the operation goes on."""
        if not self.is_armed:
            return "pass"
        with self._lock:
            if self._is_copying:
                return "pass"
            if self.is_full and kind in _WRITES:
                return "fail"
            if not self._counts(kind):
                return "pass"
            if self.records:
                self.trace.append(f"{kind} {name}")
            position, self.count = self.count, self.count + 1
            return self._act(kind) if self._is_chosen(position) else "pass"

    def _is_chosen(self, position: int) -> bool:
        return position == self.at if self.recorder is None else position in self.recorder.chosen

    def _counts(self, kind: str) -> bool:
        """Return True if the fault can happen at this kind of boundary."""
        if self.fault in ("kill", "crash"):
            return True
        return kind in (_SYNCS if self.fault == "sync" else _WRITES)

    def _act(self, kind: str) -> Outcome:
        if self.fault == "kill":
            self.end()
            return "pass"
        if self.fault == "crash":
            if self.crash is not None:
                self.crash()
            return "pass"
        if self.fault == "torn":
            return "torn" if kind != "file create" else "pass"
        self.is_full = self.fault == "full"
        return "fail"

    def end(self) -> None:
        """End the process, or copy its files as if it ended."""
        if self.recorder is None:
            os._exit(KILLED)
        with self._lock:
            self._is_copying = True
            try:
                self.recorder.take(self.count - 1)
            finally:
                self._is_copying = False

    def check(self, kind: str, name: str) -> None:
        """Pass a boundary before an operation of Python.

        Raises:
            OSError: the operation fails, with the error of a full disk or of a failed sync.
        """
        outcome = self.reach(kind, name)
        if outcome == "fail":
            code = errno.ENOSPC if kind in _WRITES else errno.EIO
            raise OSError(code, os.strerror(code), name)
