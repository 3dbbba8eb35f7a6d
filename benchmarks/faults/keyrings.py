"""Abort each change of a key ring at each of its boundaries: ``python -m benchmarks.faults.keyrings``.

It prints the number of aborts and the problems as JSON. After an abort the ring opens, other tenants keep their keys,
and the repeated call completes; a forgotten key is then in no file.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.faults.injector import KILLED, Injector
from benchmarks.faults.matrix import run_in_fork, scratch_folder
from benchmarks.faults.python_files import watch_files
from mem0_core import EncryptionError, Keyring
from mem0_core.interfaces.keys import KEY_BYTES

_MASTERS = bytes(range(KEY_BYTES)), bytes(range(1, KEY_BYTES + 1))
_TENANT, _OTHER = "user_id=ana", "user_id=ben"
_COMPLETE = 78


def _create(ring: Keyring) -> object:
    return ring.key("user_id=cleo", create=True)


def _forget(ring: Keyring) -> object:
    return ring.forget(_TENANT)


def _rotate(ring: Keyring) -> object:
    return ring.rotate(_MASTERS[1])


_CHANGES: dict[str, Callable[[Keyring], object]] = {"create": _create, "forget": _forget, "rotate": _rotate}


def abort_changes(folder: Path) -> tuple[int, list[str]]:
    """Abort each change at each boundary, in a process that really ends; return the aborts and the problems."""
    injector = Injector()
    watch_files(injector)
    base, place, aborts = folder / "base", folder / "ring", 0
    ring = Keyring(base, master_key=_MASTERS[0])
    keys = {tenant: ring.key(tenant, create=True) for tenant in (_TENANT, _OTHER)}
    problems: list[str] = []
    for name, change in _CHANGES.items():
        status, at = KILLED, 0
        while status == KILLED:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(base, place)
            status = run_in_fork(functools.partial(_change, injector, change, place, at), is_quiet=True)
            problems += [f"{name} at {at}: {problem}" for problem in _check(place, name, keys)]
            at += 1
        aborts += at
        if status != _COMPLETE:
            problems.append(f"{name} at {at}: status {status}")
    return aborts, problems


def _change(injector: Injector, change: Callable[[Keyring], object], place: Path, at: int) -> None:
    ring = Keyring(place, master_key=_MASTERS[0])
    injector.arm(at=at)
    change(ring)
    os._exit(_COMPLETE)


def _check(place: Path, name: str, keys: dict[str, bytes | None]) -> Iterator[str]:
    rings = list(_open(place))
    if not rings:
        yield "no master key opens the ring"
        return
    ring = rings[0]
    if name == "rotate":
        ring.rotate(_MASTERS[1])
        ring = Keyring(place, master_key=_MASTERS[1])
    if name != "forget" and ring.key(_TENANT) != keys[_TENANT]:
        yield "a key is lost"
    if ring.key(_OTHER) != keys[_OTHER]:
        yield "the key of another tenant is lost"
    ring.forget(_TENANT)
    if ring.key(_TENANT) is not None:
        yield "a key cannot be forgotten"
    if any(_TENANT.encode() in path.read_bytes() for path in place.rglob("*") if path.is_file()):
        yield "a forgotten key is in a file"
    ring.rotate(_MASTERS[0])
    if Keyring(place, master_key=_MASTERS[0]).key(_OTHER) != keys[_OTHER]:
        yield "the ring cannot be rotated"


def _open(place: Path) -> Iterator[Keyring]:
    for master in _MASTERS:
        with suppress(EncryptionError):
            yield Keyring(place, master_key=master)


def main() -> int:
    with scratch_folder() as folder:
        print(json.dumps(abort_changes(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
