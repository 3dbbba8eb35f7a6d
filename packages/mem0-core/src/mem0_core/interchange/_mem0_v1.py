"""Read an installation of mem0 1.x: its ``history.db``, and its memories in a local Qdrant or FAISS folder.

Both folders contain pickles. A restricted unpickler loads plain data only, and refuses any other class or function.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import pickle
import sqlite3
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mem0_core.domain.records import HistoryRow
from mem0_core.errors import InputError

__all__ = ["MEM0_V1_FORMAT", "Installation", "is_mem0_v1_folder", "read_installation"]

MEM0_V1_FORMAT = "mem0-v1"

_QDRANT_PATTERNS = (
    "storage.sqlite",
    "*/storage.sqlite",
    "collection/*/storage.sqlite",
    "*/collection/*/storage.sqlite",
)
_FAISS_PATTERNS = ("*.faiss", "*/*.faiss", "*/*/*.faiss")
_MEM0_KEYS = (
    "data",
    "hash",
    "created_at",
    "updated_at",
    "user_id",
    "agent_id",
    "run_id",
    "actor_id",
    "role",
    "memory_type",
)
_HISTORY_COLUMNS = tuple(column.name for column in dataclasses.fields(HistoryRow))


@dataclass(slots=True)
class Installation:
    """Contents of an installation.

    Attributes:
        memories: Arguments of `Memory.adopt`.
        history: Rows of the history table, in their order.
        collections: Number of memories by collection.
        skipped: Number of vector store entries that are not memories.
    """

    memories: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    collections: dict[str, int] = field(default_factory=dict)
    skipped: int = 0


def is_mem0_v1_folder(path: Path) -> bool:
    """Return True if a folder contains data of mem0 1.x."""
    return path.is_dir() and (
        bool(_find_files(path, _QDRANT_PATTERNS + _FAISS_PATTERNS)) or (path / "history.db").is_file()
    )


def read_installation(
    path: Path, *, history: Path | None = None, collection: str | None = None, ids: Mapping[str, str] | None = None
) -> Installation:
    """Read all memories in a folder, and their history.

    Args:
        history: History file, if it is not ``history.db`` in the folder.
        collection: Read only this collection.
        ids: user_id, agent_id and run_id of the memories that have no id.

    Raises:
        InputError: There is no data of mem0, or an entry cannot be read; names the file, the entry and the reason.
    """
    found = Installation()
    for name, location, entry_id, payload in _read_entries(path):
        if collection is not None and name != collection:
            continue
        if not isinstance(payload, Mapping) or not isinstance(payload.get("data"), str):
            found.skipped += 1  # mem0 also keeps settings in its collections
            continue
        found.memories.append(_convert_memory(entry_id, payload, location, ids or {}))
        found.collections[name] = found.collections.get(name, 0) + 1
    file = history if history is not None else path / "history.db"
    if history is not None or file.is_file():
        found.history = list(_read_history(file))
    if not found.memories and not found.history:
        of = f" {collection!r}" if collection else ""
        raise InputError(f"{path} contains no collection{of} of mem0 1.x: no Qdrant or FAISS folder with memories")
    return found


def _convert_memory(
    entry_id: object, payload: Mapping[str, Any], location: str, ids: Mapping[str, str]
) -> dict[str, Any]:
    """Convert a flat payload, which mixes mem0's keys and the caller's metadata, to an argument of `Memory.adopt`."""
    own = {axis: payload[axis] for axis in ("user_id", "agent_id", "run_id") if payload.get(axis)}
    if not own and not ids:
        raise InputError(f"{location}: memory {entry_id} has no user, agent or run; pass an id for it")
    at = payload.get("created_at") or payload.get("updated_at")
    if not isinstance(at, str):
        raise InputError(f"{location}: memory {entry_id} has no created_at")
    more = {"updated_at": payload.get("updated_at"), "actor_id": payload.get("actor_id"), "role": payload.get("role")}
    return {
        "id": str(entry_id),
        "memory": payload["data"],
        "created_at": at,
        "metadata": {key: value for key, value in payload.items() if key not in _MEM0_KEYS},
        **(own or ids),
        **{key: value for key, value in more.items() if value is not None},
    }


# --- the two kinds of folder -------------------------------------------------------------------------------------

VectorEntry = tuple[str, str, object, Any]
"""Collection, file, id and payload of an entry."""


def _read_entries(path: Path) -> Iterator[VectorEntry]:
    if not path.is_dir():
        raise InputError(f"{path} is not a folder")
    for file in _find_files(path, _QDRANT_PATTERNS):
        yield from _read_qdrant(file)
    for file in _find_files(path, _FAISS_PATTERNS):
        yield from _read_faiss(file)


def _find_files(path: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({file for pattern in patterns for file in path.glob(pattern)})


def _read_qdrant(file: Path) -> Iterator[VectorEntry]:
    """Yield the entries of a collection in qdrant-client's local mode, which stores one pickled point per row."""
    rows = list(_query_rows(file, "SELECT point FROM points ORDER BY rowid DESC"))
    seen: set[str] = set()
    for (blob,) in rows:
        point = _load_plain(blob, str(file))
        values = getattr(point, "state", None)
        if not isinstance(values, Mapping) or "id" not in values:
            raise InputError(f"{file}: a row contains no Qdrant point")
        if str(values["id"]) not in seen:  # the latest of several rows of a point is valid
            seen.add(str(values["id"]))
            yield file.parent.name, str(file), values["id"], values.get("payload")


def _read_faiss(file: Path) -> Iterator[VectorEntry]:
    """Yield the entries of mem0's FAISS store: a pickle of payloads by id, and of ids by index position."""
    pickled = file.with_suffix(".pkl")
    try:
        data = pickled.read_bytes()
    except OSError as error:
        raise InputError(f"{pickled} cannot be read: {error}") from error
    stored = _load_plain(data, str(pickled))
    if not (isinstance(stored, tuple) and len(stored) == 2 and all(isinstance(part, dict) for part in stored)):
        raise InputError(f"{pickled} is not a payload file of mem0's FAISS store")
    payloads, _ = stored  # positions are reused after a delete, so they do not identify existing entries
    for entry_id, payload in payloads.items():
        yield file.stem, str(pickled), entry_id, payload


def _read_history(file: Path) -> Iterator[dict[str, Any]]:
    stored = {str(row[1]) for row in _query_rows(file, "PRAGMA table_info(history)")}
    if not {"id", "memory_id", "event"} <= stored:
        raise InputError(f"{file} has no history table of mem0")
    # Older versions lack some columns.
    columns = ", ".join(column if column in stored else f"NULL AS {column}" for column in _HISTORY_COLUMNS)
    for row in _query_rows(file, f"SELECT {columns} FROM history ORDER BY rowid"):
        yield dict(zip(_HISTORY_COLUMNS, row, strict=True))


def _query_rows(file: Path, sql: str) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as db:
            yield from db.execute(sql)
    except sqlite3.Error as error:
        raise InputError(f"{file} cannot be read: {error}") from error


# --- pickles -----------------------------------------------------------------------------------------------------


class _InertObject:
    """Placeholder for a class of Qdrant: keeps the pickled state and does nothing."""

    state: Mapping[str, Any] | None = None

    def __init__(self, *args: object) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        inner = state.get("__dict__", state) if isinstance(state, dict) else None
        self.state = inner if isinstance(inner, dict) else None


_PLAIN_TYPES = {
    ("uuid", "UUID"): uuid.UUID,
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "date"): datetime.date,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("collections", "OrderedDict"): OrderedDict,
}


class _Unpickler(pickle.Unpickler):
    """Loads containers, numbers, texts, and placeholders for Qdrant's classes; imports and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN_TYPES:
            return _PLAIN_TYPES[module, name]
        if module.partition(".")[0] == "qdrant_client" and name.isidentifier():
            return _InertObject
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, which is not plain data")


def _load_plain(data: bytes, location: str) -> Any:
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:
        raise InputError(f"{location} cannot be read: {type(error).__name__}: {error}") from error
