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

from mem0_core.care import Care
from mem0_core.errors import InputError
from mem0_core.files import check_free, replacing
from mem0_core.records import Scope

__all__ = ["FORMAT", "VERSION", "Exported", "export_csv", "export_jsonl", "is_export", "lines", "read_export"]

FORMAT, VERSION = "mem0-core", 1

NODE_COLUMNS = ("id", "name", "type", "user_id", "agent_id", "run_id")
EDGE_COLUMNS = (
    *("id", "source_id", "source", "relationship", "destination_id", "destination", "weight"),
    *("valid_from", "valid_to", "invalidated_at", "evidence", "user_id", "agent_id", "run_id"),
)

Progress = Callable[[int, int | None], object]


def lines(care: Care, scope: Scope | None) -> Iterator[str]:
    """The lines of an export, without their ends."""
    ids = {axis.value: value for axis, value in scope.ids.items()} if scope else {}
    yield _json({"kind": "header", "format": FORMAT, "version": VERSION, "scope": ids})
    for record in care.records(scope):
        yield _json(record)


def export_jsonl(
    care: Care, path: Path, scope: Scope | None, *, overwrite: bool = False, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Write everything of a scope (None: of everybody), as of one moment; the file is whole or not there.

    Raises:
        InputError: the file cannot be written, or exists and `overwrite` is not set.
    """
    counts: dict[str, int] = {}
    with _writing(path, overwrite) as file:
        for number, line in enumerate(lines(care, scope)):
            file.write(line + "\n")
            kind = line.split('"', 4)[3]
            counts[kind] = counts.get(kind, 0) + 1
            if on_progress is not None and number % 500 == 0:
                on_progress(number, None)
    counts.pop("header")
    return {"files": [str(path)], "written": counts}


def is_export(path: Path) -> bool:
    """Whether a file is what `export_jsonl` wrote."""
    try:
        with path.open("rb") as file:
            head = file.readline(10_000)
        held = json.loads(head)
    except (OSError, ValueError):
        return False
    return isinstance(held, dict) and held.get("kind") == "header" and held.get("format") == FORMAT


@dataclass(slots=True)
class Exported:
    """The records of an export that another store takes in: memories, messages, and all rows of history."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


def read_export(path: Path) -> Exported:
    """What is in an export.

    Raises:
        InputError: a line is no JSON, or the file is of a later version; it names the line.
    """
    found = Exported()
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                record = _record(line, f"{path}: line {number}")
                if record["kind"] == "header" and record.get("version") != VERSION:
                    raise InputError(f"{path} is of the version {record.get('version')!r}; known: {VERSION}")
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


def _record(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place} is no JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InputError(f"{place} has no kind")
    return record


def export_csv(care: Care, folder: Path, scope: Scope | None, *, overwrite: bool = False) -> dict[str, Any]:
    """Write ``nodes.csv`` and ``edges.csv`` into a folder; several memory ids in one cell have spaces between them.

    Raises:
        InputError: a file cannot be written, or exists and `overwrite` is not set.
    """
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    counts = {"entity": 0, "relation": 0}
    with _writing(nodes, overwrite) as of_nodes, _writing(edges, overwrite) as of_edges:
        tables = {
            "entity": csv.DictWriter(of_nodes, NODE_COLUMNS, extrasaction="ignore"),
            "relation": csv.DictWriter(of_edges, EDGE_COLUMNS, extrasaction="ignore"),
        }
        for table in tables.values():
            table.writeheader()
        for record in care.records(scope):
            if record["kind"] in tables:
                tables[record["kind"]].writerow(_flat(record))
                counts[record["kind"]] += 1
    return {"files": [str(nodes), str(edges)], "written": counts}


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: " ".join(value) if key == "evidence" else value for key, value in record.items()}


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


@contextmanager
def _writing(path: Path, overwrite: bool) -> Iterator[TextIO]:
    """A file that takes its place when all of it is written."""
    check_free(path, overwrite)
    try:
        with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}") from error
