"""Snapshots of HNSW graphs on disk, sealed by a manifest with a checksum."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
import zlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mem0_core._files import make_file, make_folder
from mem0_core.domain.records import Scope
from mem0_core.interfaces import ChangePosition
from mem0_core.stores.vector._tables import HnswIndex, import_faiss

__all__ = ["Snapshot", "find_orphaned_files", "remove_snapshots"]

_log = logging.getLogger(__name__)

_SUFFIXES = {".json", ".hnsw", ".rows", ".seal"}


@dataclass(frozen=True, slots=True)
class _Manifest:
    """Description of a snapshot. It is written last, so that an unfinished snapshot is not used."""

    file: str
    checksum: int
    length: int
    epoch: str
    seq: int
    dims: int


class Snapshot:
    """One partition on disk: the manifest ``<name>.json`` names ``<name>-<nonce>.hnsw`` and ``....rows``."""

    def __init__(self, folder: Path, address: Scope) -> None:
        axis, value = address.partition
        self._folder = folder
        self.name = f"{axis.value}-{hashlib.blake2b(value.encode(), digest_size=12).hexdigest()}"

    @property
    def _manifest_path(self) -> Path:
        return self._folder / f"{self.name}.json"

    def remove(self) -> None:
        """Remove all files of the snapshot."""
        with suppress(OSError):
            self._manifest_path.unlink(missing_ok=True)
        self._remove_stale_files(keep=None)

    def save(self, graph: HnswIndex, at: ChangePosition) -> None:
        make_folder(self._folder)
        stem = f"{self.name}-{uuid.uuid4().hex[:12]}"
        index, rows = self._folder / f"{stem}.hnsw", self._folder / f"{stem}.rows"
        draft = self._folder / f"{stem}.seal"
        for path in (index, rows, draft):
            make_file(path)
        rows.write_bytes(graph.write(index).astype("<i8").tobytes())
        manifest = _Manifest(stem, _checksum(index, rows), _length(index, rows), at.epoch, at.seq, graph.dims)
        draft.write_text(json.dumps(asdict(manifest)))
        for path in (index, rows, draft):
            _sync(path)
        os.replace(draft, self._manifest_path)
        _sync(self._folder)
        self._remove_stale_files(keep=stem)

    def load(self) -> tuple[HnswIndex, ChangePosition] | None:
        """Read the graph and its position; None if there is no valid snapshot (the reason is logged)."""
        try:
            manifest = _Manifest(**json.loads(self._manifest_path.read_bytes()))
            index, rows = self._folder / f"{manifest.file}.hnsw", self._folder / f"{manifest.file}.rows"
            if (_length(index, rows), _checksum(index, rows)) != (manifest.length, manifest.checksum):
                raise ValueError("its checksum does not match")
            graph = HnswIndex(
                manifest.dims,
                import_faiss().read_index(str(index)),
                np.frombuffer(rows.read_bytes(), dtype="<i8").copy(),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            _log.warning(
                "the vector snapshot %s cannot be used (%s): reading the primary store", self._manifest_path, error
            )
            return None
        return graph, ChangePosition(manifest.epoch, manifest.seq)

    def files(self) -> list[Path]:
        """Return all files of the snapshot."""
        manifest = [self._manifest_path] if self._manifest_path.exists() else []
        return [*manifest, *self._folder.glob(f"{self.name}-*")] if self._folder.is_dir() else manifest

    def damage(self) -> str | None:
        """Describe the damage of the files; None if they match the manifest."""
        try:
            manifest = _Manifest(**json.loads(self._manifest_path.read_bytes()))
            index, rows = self._folder / f"{manifest.file}.hnsw", self._folder / f"{manifest.file}.rows"
            if (length := _length(index, rows)) != manifest.length:
                return f"its files have {length} bytes, its manifest says {manifest.length}"
            if _checksum(index, rows) != manifest.checksum:
                return "its checksum does not match"
        except FileNotFoundError as error:
            return f"{Path(str(error.filename)).name} is missing"
        except (OSError, ValueError, TypeError) as error:
            return f"its manifest cannot be read ({error})"
        return None

    def _remove_stale_files(self, *, keep: str | None) -> None:
        for path in self._folder.glob(f"{self.name}-*"):
            if path.stem != keep:
                with suppress(OSError):
                    path.unlink()


def remove_snapshots(folder: Path, addresses: Collection[Scope] | None) -> None:
    """Remove the snapshots of some partitions; None removes those of all."""
    names = None if addresses is None else [Snapshot(folder, address).name for address in addresses]
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.suffix in _SUFFIXES and (names is None or path.name.startswith(tuple(names))):
            path.unlink(missing_ok=True)


def find_orphaned_files(folder: Path, addresses: Collection[Scope]) -> list[str]:
    """Return the names of snapshot files that belong to none of these partitions."""
    known = {Snapshot(folder, address).name for address in addresses}
    return [
        path.name
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if path.suffix in _SUFFIXES and path.is_file() and "-".join(path.stem.split("-")[:2]) not in known
    ]


def _checksum(*paths: Path) -> int:
    """Return the CRC-32 of files in order. It finds damage in a fifth of the time of a cryptographic digest."""
    checksum = 0
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                checksum = zlib.crc32(chunk, checksum)
    return checksum


def _length(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
