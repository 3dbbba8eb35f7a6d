"""Read an installation of mem0 1.x or 2.x: its ``history.db``, and its memories in a local Qdrant or FAISS folder.

Folders of mem0 1.x contain pickles. A restricted unpickler loads plain data only, and refuses any other class or
function.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import pickle
import sqlite3
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import Any

from mem0_core._system.boundary import convert_errors
from mem0_core._system.files import mem0_home, validate_path
from mem0_core._system.records import dataclass
from mem0_core.domain.records import HistoryRow
from mem0_core.errors import InputError

MEM0_V1_FORMAT = "mem0-v1"

_QDRANT_PATTERNS = (
    "storage.sqlite",
    "*/storage.sqlite",
    "collection/*/storage.sqlite",
    "*/collection/*/storage.sqlite",
)
_FAISS_PATTERNS = ("*.faiss", "*/*.faiss", "*/*/*.faiss")
_DEFAULT_VECTOR_FOLDERS = ("/tmp/qdrant", "/tmp/faiss")
"""mem0's folders of vectors for a configuration that names none."""
_ENTITY_SUFFIX = "_entities"
"""End of the name of the collection where mem0 2.x keeps the entities of a collection's memories."""
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
    "expiration_date",
    "text_lemmatized",
    "attributed_to",
)
"""Keys of mem0 in a payload; the last two are derived from the text and the messages."""
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


def find_mem0_folders() -> list[Path]:
    """Return the folders at mem0's default places that contain its data, that of the history first."""
    return [path for path in (mem0_home(), *map(Path, _DEFAULT_VECTOR_FOLDERS)) if is_mem0_v1_folder(path)]


@convert_errors
def is_mem0_v1_folder(path: Path) -> bool:
    """Return True if a folder contains data of mem0 1.x or 2.x."""
    path = validate_path(path, "path")
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
    for name, location, entry_id, payload, vector in _read_entries(path):
        if name != collection and (collection is not None or name.endswith(_ENTITY_SUFFIX)):
            continue
        if not isinstance(payload, Mapping) or not isinstance(payload.get("data"), str):
            found.skipped += 1  # mem0 also keeps settings in its collections
            continue
        memory = _convert_memory(entry_id, payload, location, ids or {})
        found.memories.append(memory if vector is None else {**memory, "vector": vector})
        found.collections[name] = found.collections.get(name, 0) + 1
    file = history if history is not None else path / "history.db"
    if history is not None or file.is_file():
        found.history = list(_read_history(file))
    if not found.memories and not found.history:
        of = f" {collection!r}" if collection else ""
        raise InputError(
            f"{path} contains no collection{of} of mem0: pass the folder in which mem0 keeps Qdrant's or FAISS's files"
        )
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
    more = {key: payload.get(key) for key in ("updated_at", "actor_id", "role", "memory_type", "expiration_date")}
    return {
        "id": str(entry_id),
        "memory": payload["data"],
        "created_at": at,
        "metadata": {key: value for key, value in payload.items() if key not in _MEM0_KEYS},
        **(own or ids),
        **{key: value for key, value in more.items() if value is not None},
    }


# --- the two kinds of folder -------------------------------------------------------------------------------------

_VectorEntry = tuple[str, str, object, Any, Any]
"""Collection, file, id, payload and vector of an entry; the vector is None if the file does not say which it is."""


def _read_entries(path: Path) -> Iterator[_VectorEntry]:
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; pass the folder in which mem0 keeps Qdrant's or FAISS's files")
    for file in _find_files(path, _QDRANT_PATTERNS):
        yield from _read_qdrant(file)
    for file in _find_files(path, _FAISS_PATTERNS):
        yield from _read_faiss(file)


def _find_files(path: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({file for pattern in patterns for file in path.glob(pattern)})


def _read_qdrant(file: Path) -> Iterator[_VectorEntry]:
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
            vector = values.get("vector")
            if isinstance(vector, Mapping):  # named vectors; mem0's own has no name
                vector = vector.get("")
            yield file.parent.name, str(file), values["id"], values.get("payload"), vector


def _read_faiss(file: Path) -> Iterator[_VectorEntry]:
    """Yield the entries of mem0's FAISS store: payloads by id, in JSON (2.x) or a pickle (1.x).

    The file also maps positions of the index to ids. mem0 uses positions again after a delete, so that they identify
    vectors only if nothing was ever deleted.
    """
    place = file.with_suffix(".json")
    if not place.is_file():
        place = file.with_suffix(".pkl")
    try:
        data = place.read_bytes()
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error}") from error
    load = _load_json_payloads if place.suffix == ".json" else _load_pickled_payloads
    payloads, positions = load(data, place)
    vectors = _read_faiss_vectors(file, positions)
    for entry_id, payload in payloads.items():
        yield file.stem, str(place), entry_id, payload, vectors.get(entry_id)


def _read_faiss_vectors(file: Path, positions: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return vectors by the ids of entries; none without FAISS, or if positions do not identify them."""
    try:
        import faiss

        index = faiss.read_index(str(file))
        found = index.reconstruct_n(0, index.ntotal)
        ids = [positions[key] for key in sorted(positions, key=int)]
        is_complete = sorted(map(int, positions)) == list(range(index.ntotal)) and len(set(ids)) == len(ids)
    except Exception:  # noqa: BLE001 - its library is missing, or the file is damaged or of another kind
        return {}
    return dict(zip(ids, found, strict=True)) if is_complete else {}


def _load_json_payloads(data: bytes, place: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} cannot be read: {error}") from error
    payloads = stored.get("docstore") if isinstance(stored, dict) else None
    if not isinstance(payloads, dict):
        raise InputError(f"{place} is not a payload file of mem0's FAISS store")
    return payloads, dict(stored.get("index_to_id") or {})


def _load_pickled_payloads(data: bytes, place: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
    stored = _load_plain(data, str(place))
    if not (isinstance(stored, tuple) and len(stored) == 2 and all(isinstance(part, dict) for part in stored)):
        raise InputError(f"{place} is not a payload file of mem0's FAISS store")
    return stored


def _read_history(file: Path) -> Iterator[dict[str, Any]]:
    stored = {str(row[1]) for row in _query_rows(file, "PRAGMA table_info(history)")}
    if not {"id", "memory_id", "event"} <= stored:
        raise InputError(f"{file} has no history table of mem0")
    # Older versions lack some columns.
    columns = ", ".join(column if column in stored else f"NULL AS {column}" for column in _HISTORY_COLUMNS)
    for row in _query_rows(file, f"SELECT {columns} FROM history ORDER BY rowid"):
        yield dict(zip(_HISTORY_COLUMNS, row, strict=True))


def _query_rows(file: Path, sql: str) -> Iterator[tuple[Any, ...]]:
    # Without a log the file is complete, and a plain read-only connection may create one.
    mode = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True)) as db:
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
