"""Boundaries inside SQLite: each write, sync, truncation, lock and removal of its files.

`watch_sqlite` replaces the functions of SQLite's default VFS by counting ones, in this process and its forks. They call
the original functions, so that the store under test runs the same code as without them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.faults.injector import Injector

__all__ = ["watch_sqlite"]

_OK, _FULL, _IOERR_FSYNC, _IOERR_TRUNCATE, _IOERR_DELETE = 0, 13, 1034, 1546, 2570

_P, _I, _I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64

_WRITE = ctypes.CFUNCTYPE(_I, _P, _P, _I, _I64)
_TRUNCATE = ctypes.CFUNCTYPE(_I, _P, _I64)
_SYNC = ctypes.CFUNCTYPE(_I, _P, _I)
_LOCK = ctypes.CFUNCTYPE(_I, _P, _I)
_SHM_LOCK = ctypes.CFUNCTYPE(_I, _P, _I, _I, _I)
_BARRIER = ctypes.CFUNCTYPE(None, _P)
# Names are passed on as pointers: SQLite reads the parameters of a URI behind their ends.
_OPEN = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_DELETE = ctypes.CFUNCTYPE(_I, _P, _P, _I)


class _IoMethods(ctypes.Structure):
    """``sqlite3_io_methods`` of SQLite 3.7.17 and newer."""

    _fields_ = (
        ("version", _I),
        ("close", _P),
        ("read", _P),
        ("write", _P),
        ("truncate", _P),
        ("sync", _P),
        ("file_size", _P),
        ("lock", _P),
        ("unlock", _P),
        ("check_reserved_lock", _P),
        ("file_control", _P),
        ("sector_size", _P),
        ("device_characteristics", _P),
        ("shm_map", _P),
        ("shm_lock", _P),
        ("shm_barrier", _P),
        ("shm_unmap", _P),
        ("fetch", _P),
        ("unfetch", _P),
    )


class _Vfs(ctypes.Structure):
    """The beginning of ``sqlite3_vfs``."""

    _fields_ = (
        ("version", _I),
        ("file_bytes", _I),
        ("max_path", _I),
        ("next", _P),
        ("name", ctypes.c_char_p),
        ("data", _P),
        ("open", _P),
        ("delete", _P),
    )


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_IoMethods)),)


def watch_sqlite(injector: Injector) -> bool:
    """Make every file that SQLite opens from now on pass the boundaries of `injector`.

    Returns:
        False if this Python hides the functions of its SQLite, so that nothing is watched.
    """
    import _sqlite3

    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    try:
        find = library.sqlite3_vfs_find
    except AttributeError:
        return False
    find.restype = ctypes.POINTER(_Vfs)
    _Watch(injector, find(None).contents)
    return True


_KEPT_ALIVE: list[object] = []
"""Callbacks that SQLite holds pointers to."""


class _Watch:
    def __init__(self, injector: Injector, vfs: _Vfs) -> None:
        self._injector = injector
        self._names: dict[int, str] = {}
        self._patched: dict[int, _IoMethods] = {}
        self._open_file = _OPEN(vfs.open)
        self._delete_file = _DELETE(vfs.delete)
        callbacks = _OPEN(self._open), _DELETE(self._delete)
        _KEPT_ALIVE.extend((self, *callbacks))
        vfs.open, vfs.delete = (ctypes.cast(callback, _P).value for callback in callbacks)

    def _open(self, vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        path = _path(name)
        if name is not None and not path.exists():
            self._injector.reach("create", path.name)
        status: int = self._open_file(vfs, name, file, flags, out)
        if status == _OK:
            self._names[file] = path.name
            opened = _File.from_address(file)
            address = ctypes.addressof(opened.methods.contents)
            if address not in {ctypes.addressof(methods) for methods in self._patched.values()}:
                opened.methods = ctypes.pointer(self._patch(address, opened.methods.contents))
        return status

    def _patch(self, address: int, methods: _IoMethods) -> _IoMethods:
        if address in self._patched:
            return self._patched[address]
        patched = _IoMethods.from_buffer_copy(methods)
        changed: dict[str, Any] = {
            "write": self._watch_write(_WRITE(methods.write)),
            "truncate": self._watch("truncate", _TRUNCATE, methods.truncate, _IOERR_TRUNCATE),
            "sync": self._watch("sync", _SYNC, methods.sync, _IOERR_FSYNC),
            "lock": self._watch("lock", _LOCK, methods.lock, _OK),
            "unlock": self._watch("unlock", _LOCK, methods.unlock, _OK),
            "shm_lock": self._watch("index lock", _SHM_LOCK, methods.shm_lock, _OK),
            "shm_barrier": self._watch_barrier(_BARRIER(methods.shm_barrier)) if methods.shm_barrier else None,
        }
        for name, callback in changed.items():
            if callback is not None and getattr(methods, name):
                setattr(patched, name, ctypes.cast(callback, _P).value)
        _KEPT_ALIVE.extend((patched, *changed.values()))
        self._patched[address] = patched
        return patched

    def _watch(self, kind: str, prototype: Any, original: int | None, failure: int) -> Any:
        call = prototype(original or 0)

        def pass_boundary(file: int, *values: int) -> int:
            if self._injector.reach(kind, self._names.get(file, "")) == "fail":
                return failure
            status: int = call(file, *values)
            return status

        return prototype(pass_boundary)

    def _watch_write(self, call: Callable[[int, int, int, int], int]) -> Any:
        def write(file: int, data: int, size: int, offset: int) -> int:
            outcome = self._injector.reach("write", self._names.get(file, ""))
            if outcome == "fail":
                return _FULL
            if outcome == "torn":
                call(file, data, size // 2, offset)
                self._injector.end()
            return call(file, data, size, offset)

        return _WRITE(write)

    def _watch_barrier(self, call: Callable[[int], None]) -> Any:
        def barrier(file: int) -> None:
            self._injector.reach("barrier", self._names.get(file, ""))
            call(file)

        return _BARRIER(barrier)

    def _delete(self, vfs: int, name: int, sync: int) -> int:
        if self._injector.reach("delete", _path(name).name) == "fail":
            return _IOERR_DELETE
        status: int = self._delete_file(vfs, name, sync)
        return status


def _path(name: int | None) -> Path:
    """Return the path that a pointer of SQLite names; files without a name are temporary."""
    return Path(os.fsdecode(ctypes.string_at(name)) if name else "temporary")
