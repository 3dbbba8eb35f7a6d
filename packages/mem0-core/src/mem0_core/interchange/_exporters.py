"""Export a store: all records as JSON Lines, or its graph as two CSV files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TextIO

from mem0_core._system.boundary import convert_errors
from mem0_core._system.files import describe_unwritable, refuse_existing, replace_atomically, replace_together
from mem0_core._system.records import dataclass
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError
from mem0_core.interchange._csv import CsvTable, read_rows
from mem0_core.interchange._portable import PortableFormat, build_document
from mem0_core.interfaces.maintenance import ProgressCallback, StoreMaintenance

EXPORT_FORMAT, EXPORT_VERSION = "mem0-core", 1

_NODE_COLUMNS = ("id", "name", "type", "user_id", "agent_id", "run_id")
_EDGE_COLUMNS = (
    *("id", "source_id", "source", "relationship", "destination_id", "destination", "weight"),
    *("valid_from", "valid_to", "invalidated_at", "evidence", "user_id", "agent_id", "run_id"),
)

_CSV_FILES = ("nodes.csv", "edges.csv")


def _export_lines(maintenance: StoreMaintenance, scope: Scope | None) -> Iterator[str]:
    """Yield the lines of an export without line ends."""
    ids = {axis.value: value for axis, value in scope.ids.items()} if scope else {}
    yield _to_json({"kind": "header", "format": EXPORT_FORMAT, "version": EXPORT_VERSION, "scope": ids})
    for record in maintenance.iter_records(scope):
        yield _to_json(record)


@convert_errors
def export_jsonl(
    maintenance: StoreMaintenance,
    path: Path,
    scope: Scope | None,
    *,
    overwrite: bool = False,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Write a consistent snapshot of a scope (None: of all scopes) to a file, atomically.

    Each line is a JSON object with a ``kind``:

    - ``header``: ``format``, ``version``, ``scope``;
    - ``memory``: the keys of `Memory.get`, its ``history`` and the ids of its source ``messages``;
    - ``message``: ``id``, ``role``, ``content``, ``name``, ``metadata``, ``created_at``, ``source``, ``trust``, its
      ids, and the ``digest`` that identifies it in a later import;
    - ``entity``: ``id``, ``name``, ``type`` and its ids;
    - ``relation``: both ends, ``weight``, its validity, its supporting memories (``evidence``), earlier ones
      (``withdrawn``), and its ``messages``;
    - ``history``: a row of a deleted memory.

    Raises:
        InputError: The file cannot be written, or it exists and `overwrite` is not set.
    """
    counts: dict[str, int] = {}
    with _open_for_writing(path, overwrite) as file:
        for number, line in enumerate(_export_lines(maintenance, scope)):
            file.write(line + "\n")
            kind = line.split('"', 4)[3]
            counts[kind] = counts.get(kind, 0) + 1
            if on_progress is not None and number % 500 == 0:
                on_progress(number, None)
    counts.pop("header")
    return {"files": [str(path)], "written": counts}


@convert_errors
def export_portable(
    maintenance: StoreMaintenance,
    path: Path,
    scope: Scope | None,
    *,
    format: PortableFormat,
    version: str,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the memories of a scope as one JSON document of PAM 1.0 (``pam``) or MIF 2.0 (``mif``).

    Raises:
        InputError: The file cannot be written, or it exists and `overwrite` is not set; or the form has one owner, and
            the scope has several.
    """
    document = build_document(maintenance.iter_records(scope), format, version)
    with _open_for_writing(path, overwrite) as file:
        json.dump(document, file, ensure_ascii=False, indent=1)
    return {"files": [str(path)], "written": {"memory": len(document["memories"])}}


@convert_errors
def is_export_file(path: Path) -> bool:
    """Return True if `export_jsonl` wrote this file."""
    try:
        with path.open("rb") as file:
            head = file.readline(10_000)
        header = json.loads(head)
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("kind") == "header" and header.get("format") == EXPORT_FORMAT


@dataclass(slots=True)
class _ExportContents:
    """Records of an export that can be imported: memories, messages, and all history rows."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


def read_export(path: Path) -> _ExportContents:
    """Return the records of an export.

    Raises:
        InputError: A line is not valid (the error has its number), or the file has an unknown version.
    """
    found = _ExportContents()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                record = _parse_record(line, f"{path}: line {number}")
                if record["kind"] == "header" and record.get("version") != EXPORT_VERSION:
                    raise InputError(
                        f"{path} has the export version {record.get('version')!r}; supported: {EXPORT_VERSION}"
                    )
                if record["kind"] == "memory":
                    found.history += record.pop("history", [])
                    found.memories.append(record)
                elif record["kind"] == "message":
                    found.messages.append(record)
                elif record["kind"] == "history":
                    found.history.append(record)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return found


def _parse_record(line: str, location: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{location} is not valid JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InputError(f"{location} has no 'kind'; expected a line of an export")
    return record


@convert_errors
def export_csv(
    maintenance: StoreMaintenance, folder: Path, scope: Scope | None, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write ``nodes.csv`` and ``edges.csv`` to a folder; spaces separate several memory ids in a cell.

    A new folder appears with both files. An apostrophe precedes a sign that could begin a formula; `read_csv` removes
    it.

    Raises:
        InputError: A file cannot be written, or exists and `overwrite` is not set.
    """
    for name in _CSV_FILES:
        refuse_existing(folder / name, overwrite)
    counts = {"entity": 0, "relation": 0}
    try:
        with replace_together(folder, _CSV_FILES) as unfinished, ExitStack() as stack:
            of_nodes, of_edges = (
                stack.enter_context((unfinished / name).open("w", encoding="utf-8", newline="")) for name in _CSV_FILES
            )
            tables = {"entity": CsvTable(of_nodes, _NODE_COLUMNS), "relation": CsvTable(of_edges, _EDGE_COLUMNS)}
            for record in maintenance.iter_records(scope):
                if record["kind"] in tables:
                    tables[record["kind"]].write(record)
                    counts[record["kind"]] += 1
    except OSError as error:
        raise InputError(describe_unwritable(folder, error)) from error
    return {"files": [str(folder / name) for name in _CSV_FILES], "written": counts}


@convert_errors
def read_csv(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows that `export_csv` wrote, with their original texts, under ``nodes`` and ``edges``.

    Raises:
        InputError: A file cannot be read.
    """
    found = {}
    for name in _CSV_FILES:
        try:
            with (folder / name).open(encoding="utf-8", newline="") as file:
                found[Path(name).stem] = list(read_rows(file))
        except (OSError, ValueError) as error:
            raise InputError(f"{folder / name} cannot be read: {error}") from error
    return found


def _to_json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


@contextmanager
def _open_for_writing(path: Path, overwrite: bool) -> Iterator[TextIO]:
    """Open a temporary file that replaces `path` once it is complete."""
    refuse_existing(path, overwrite)
    try:
        with replace_atomically(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(describe_unwritable(path, error)) from error
