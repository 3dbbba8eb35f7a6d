"""Writing a store out: everything as JSON Lines, or its graph as two CSV files (seed 003, part 11).

Each line of the JSON Lines is an object with a ``kind``:

- ``header``: ``format``, ``version``, ``scope``;
- ``memory``: as `Memory.get` shows it, with its ``history`` and the ids of the ``messages`` it came from;
- ``message``: ``id``, ``role``, ``content``, ``name``, ``metadata``, ``created_at``, its scope and its ``digest``, by
  which it is known where it is imported again;
- ``entity``: ``id``, ``name``, ``type`` and its scope;
- ``relation``: ends, ``weight``, the time it held, the memories that say it (``evidence``), those that once did
  (``withdrawn``), and its ``messages``;
- ``history``: a row of a memory that is gone.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from mem0_core._files import refuse_existing, replace_atomically
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError
from mem0_core.interfaces.maintenance import StoreMaintenance

__all__ = [
    "EXPORT_FORMAT",
    "EXPORT_VERSION",
    "ExportContents",
    "export_csv",
    "export_jsonl",
    "is_export_file",
    "iter_export_lines",
    "read_export",
]

EXPORT_FORMAT, EXPORT_VERSION = "mem0-core", 1

NODE_COLUMNS = ("id", "name", "type", "user_id", "agent_id", "run_id")
EDGE_COLUMNS = (
    *("id", "source_id", "source", "relationship", "destination_id", "destination", "weight"),
    *("valid_from", "valid_to", "invalidated_at", "evidence", "user_id", "agent_id", "run_id"),
)

ProgressCallback = Callable[[int, int | None], object]


def iter_export_lines(care: StoreMaintenance, scope: Scope | None) -> Iterator[str]:
    """The lines of an export, without their ends."""
    ids = {axis.value: value for axis, value in scope.ids.items()} if scope else {}
    yield _to_json({"kind": "header", "format": EXPORT_FORMAT, "version": EXPORT_VERSION, "scope": ids})
    for record in care.iter_records(scope):
        yield _to_json(record)


def export_jsonl(
    care: StoreMaintenance,
    path: Path,
    scope: Scope | None,
    *,
    overwrite: bool = False,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Write everything of a scope (None: of everybody), as of one moment; the file is whole or not there.

    Raises:
        InputError: the file cannot be written, or exists and `overwrite` is not set.
    """
    counts: dict[str, int] = {}
    with _open_for_writing(path, overwrite) as file:
        for number, line in enumerate(iter_export_lines(care, scope)):
            file.write(line + "\n")
            kind = line.split('"', 4)[3]
            counts[kind] = counts.get(kind, 0) + 1
            if on_progress is not None and number % 500 == 0:
                on_progress(number, None)
    counts.pop("header")
    return {"files": [str(path)], "written": counts}


def is_export_file(path: Path) -> bool:
    """Whether a file is what `export_jsonl` wrote."""
    try:
        with path.open("rb") as file:
            head = file.readline(10_000)
        held = json.loads(head)
    except (OSError, ValueError):
        return False
    return isinstance(held, dict) and held.get("kind") == "header" and held.get("format") == EXPORT_FORMAT


@dataclass(slots=True)
class ExportContents:
    """The records of an export that another store takes in: memories, messages, and all rows of history."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


def read_export(path: Path) -> ExportContents:
    """What is in an export.

    Raises:
        InputError: a line is no JSON, or the file is of a later version; it names the line.
    """
    found = ExportContents()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                record = _parse_record(line, f"{path}: line {number}")
                if record["kind"] == "header" and record.get("version") != EXPORT_VERSION:
                    raise InputError(f"{path} is of the version {record.get('version')!r}; known: {EXPORT_VERSION}")
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
        raise InputError(f"{location} is no JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InputError(f"{location} has no kind")
    return record


def export_csv(care: StoreMaintenance, folder: Path, scope: Scope | None, *, overwrite: bool = False) -> dict[str, Any]:
    """Write ``nodes.csv`` and ``edges.csv`` into a folder; several memory ids in one cell have spaces between them.

    Raises:
        InputError: a file cannot be written, or exists and `overwrite` is not set.
    """
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    counts = {"entity": 0, "relation": 0}
    with _open_for_writing(nodes, overwrite) as of_nodes, _open_for_writing(edges, overwrite) as of_edges:
        tables = {
            "entity": csv.DictWriter(of_nodes, NODE_COLUMNS, extrasaction="ignore"),
            "relation": csv.DictWriter(of_edges, EDGE_COLUMNS, extrasaction="ignore"),
        }
        for table in tables.values():
            table.writeheader()
        for record in care.iter_records(scope):
            if record["kind"] in tables:
                tables[record["kind"]].writerow(_to_csv_row(record))
                counts[record["kind"]] += 1
    return {"files": [str(nodes), str(edges)], "written": counts}


def _to_csv_row(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: " ".join(value) if key == "evidence" else value for key, value in record.items()}


def _to_json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


@contextmanager
def _open_for_writing(path: Path, overwrite: bool) -> Iterator[TextIO]:
    """A file that takes its place when all of it is written."""
    refuse_existing(path, overwrite)
    try:
        with replace_atomically(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}") from error
