"""Snapshots of HNSW graphs on disk, sealed by a manifest with a checksum."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mem0_core._system.files import (
    clear_abandoned,
    list_private_folders,
    make_file,
    make_folder,
    private_folder,
    sync_folder,
)
from mem0_core._system.records import dataclass
from mem0_core.domain.records import Scope
from mem0_core.interfaces import ChangePosition
from mem0_core.stores.vector._tables import HnswIndex, import_faiss

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
        clear_abandoned([self._folder])
        stem = f"{self.name}-{os.urandom(6).hex()}"
        with private_folder(self._folder) as private:
            index, rows, draft = (private / f"{stem}{suffix}" for suffix in (".hnsw", ".rows", ".seal"))
            for path in (index, rows, draft):
                make_file(path)
            rows.write_bytes(graph.write(index).astype("<i8").tobytes())
            manifest = _Manifest(stem, _checksum(index, rows), _length(index, rows), at.epoch, at.seq, graph.dims)
            draft.write_text(json.dumps(asdict(manifest)))
            for path in (index, rows, draft):
                _sync(path)
            for path in (index, rows):
                path.replace(self._folder / path.name)
            draft.replace(self._manifest_path)
            sync_folder(self._folder)
        self._remove_stale_files(keep=stem)

    def load(self) -> tuple[HnswIndex, ChangePosition] | None:
        """Read the graph and its position; None if there is no valid snapshot (the reason is logged)."""
        try:
            manifest, index, rows = self._read_manifest()
            if (damage := _find_damage(manifest, index, rows)) is not None:
                raise ValueError(damage)
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

    def is_sealed(self) -> bool:
        """Return True if there is a manifest; files without one are unfinished, and the next save removes them."""
        return self._manifest_path.exists()

    def stem(self) -> str | None:
        """Return the common beginning of the names of the sealed files; None if no manifest names them."""
        try:
            return str(json.loads(self._manifest_path.read_bytes())["file"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def damage(self) -> str | None:
        """Describe the damage of the files; None if they match the manifest."""
        try:
            return _find_damage(*self._read_manifest())
        except FileNotFoundError as error:
            return f"{Path(str(error.filename)).name} is missing"
        except (OSError, ValueError, TypeError) as error:
            return f"its manifest cannot be read ({error})"

    def _read_manifest(self) -> tuple[_Manifest, Path, Path]:
        """Return the manifest, and the paths of the index and of its rows."""
        manifest = _Manifest(**json.loads(self._manifest_path.read_bytes()))
        return manifest, self._folder / f"{manifest.file}.hnsw", self._folder / f"{manifest.file}.rows"

    def _remove_stale_files(self, *, keep: str | None) -> None:
        for path in self._folder.glob(f"{self.name}-*"):
            if path.stem != keep:
                with suppress(OSError):
                    path.unlink()


def remove_snapshots(folder: Path, addresses: Collection[Scope] | None) -> None:
    """Remove the snapshots of some partitions; None removes those of all."""
    names = None if addresses is None else [Snapshot(folder, address).name for address in addresses]
    clear_abandoned([folder])
    files = folder.iterdir() if folder.is_dir() else ()
    for path in sorted(files, key=lambda file: file.suffix != ".json"):  # without its manifest, a file is not used
        if path.suffix in _SUFFIXES and (names is None or path.name.startswith(tuple(names))):
            path.unlink(missing_ok=True)


def find_orphaned_files(folder: Path, addresses: Collection[Scope]) -> list[str]:
    """Return the names of snapshot files that belong to none of these partitions, or that no manifest names.

    A process that is killed while it saves a snapshot leaves files without a manifest. While a process saves one, only
    files of other partitions are returned.
    """
    snapshots = [Snapshot(folder, address) for address in addresses]
    named = {stem for snapshot in snapshots for stem in (snapshot.name, snapshot.stem()) if stem is not None}
    known = {snapshot.name for snapshot in snapshots}
    is_saving = bool(list_private_folders([folder]))
    return [
        path.name
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if path.suffix in _SUFFIXES and path.is_file()
        if (path.stem not in named if not is_saving else "-".join(path.stem.split("-")[:2]) not in known)
    ]


def _find_damage(manifest: _Manifest, index: Path, rows: Path) -> str | None:
    """Describe the difference of the files from their manifest; None if they match."""
    if (length := _length(index, rows)) != manifest.length:
        return f"its files have {length} bytes, its manifest says {manifest.length}"
    return None if _checksum(index, rows) == manifest.checksum else "its checksum does not match"


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
