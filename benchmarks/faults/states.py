"""State of a store after an abort: its files, the problems that `doctor` finds, and a digest of all tables."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.verbs import Place, open_place
from mem0_core.admin.copies import COPIES
from mem0_core.domain.erasure import RECEIPT

__all__ = [
    "Examined",
    "connect_reader",
    "digest",
    "digest_server",
    "digest_words",
    "dump",
    "dump_server",
    "examine",
    "list_exposed",
    "list_files",
    "recovered_digest",
]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NONCE = re.compile(r"(?<=-)[0-9a-f]{12}(?=\.)")
_TIME = re.compile(r"20(?!25-)\d\d-\d\d-\d\dT[\d:.]+\+00:00")
_PLACE = re.compile(r"[^\s\"']*/mem0-faults-[^/]*/[a-z]+(?=/)")
_LOGS = ("-wal", "-shm", "-journal")  # SQLite rolls back or deletes them when the file is opened
_EXPECTED = (
    "vectors would be read at the next search",  # a snapshot is written later, by a close
    "snapshot files without",
    "temporary files",  # the second call of doctor removes them
)
_COPIES = tuple(f"registry:{kind}" for kind in COPIES)  # a copy is registered before it is written
_RANDOM_META = ("epoch", "identity", "freeze", "frozen", "load", "secret:", *_COPIES)
_RECEIPT = f"registry:{RECEIPT}:"


@dataclass(slots=True)
class Examined:
    """The state that an abort left.

    Attributes:
        state: digest of all tables, after random ids and times are replaced.
        files: names of the files, after random names are replaced.
        findings: problems that `doctor` reports.
        error: why the store cannot be used.
        is_acknowledged: the call returned before the process ended.
        is_refused: the call raised an error that says that nothing is written.
        repeated: the state after the same call ran again.
        exposed: files and folders that other users of the host can access; the umask is 0.
    """

    state: str = ""
    files: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    error: str = ""
    is_acknowledged: bool = False
    is_refused: bool = False
    repeated: str = ""
    exposed: list[str] = field(default_factory=list)


def examine(place: Place, *, has_snapshots: bool = False) -> Examined:
    """Open a place as an application does after a crash, and describe it."""
    found = Examined()
    try:
        with open_place(place, has_snapshots=has_snapshots) as memory:
            problems = memory.doctor(repair=False)["findings"]
            found.findings = [
                f"{one['where']}: {one['what']}"
                for one in problems
                if not any(known in one["what"] for known in _EXPECTED)
            ]
            memory.doctor()
            memory.add("I keep bees.", user_id="zoe", timestamp="2025-03-02", dry_run=True)
        found.state = digest(place)
        found.files = list_files(place.folder)
    except Exception as error:  # noqa: BLE001 - any error is a result of the check
        found.error = f"{type(error).__name__}: {error}"
    return found


def list_files(folder: Path) -> list[str]:
    names = (str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file())
    return [_NONCE.sub("nonce", name) for name in names if not name.endswith(_LOGS)]


def list_exposed(folder: Path) -> list[str]:
    """Return the files and folders that others than their owner can access."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.lstat().st_mode & 0o077]


def recovered_digest(folder: Path, scratch: Path) -> bytes:
    """Return a digest of all names, modes and contents, in which a database counts as SQLite recovers it.

    Bytes of a log that no commit follows do not count, as SQLite ignores them.

    Args:
        scratch: a folder that this call makes and removes.
    """
    digest = hashlib.blake2b()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)}\0{path.lstat().st_mode}\0".encode())
        if path.is_file():
            size = path.stat().st_size
            content = bytes([size > 0]) if path.name.endswith(_LOGS) else _recover(path, scratch)
            digest.update(len(content).to_bytes(8, "big") + content)
    return digest.digest()


def _recover(path: Path, scratch: Path) -> bytes:
    """Return the bytes of a file, or the pages of a database after recovery from its log."""
    content = path.read_bytes()
    logs = [log for end in _LOGS if (log := path.with_name(path.name + end)).is_file() and end != "-shm"]
    if not content or not logs:
        return content
    scratch.mkdir()
    try:
        for file in (path, *logs):
            shutil.copyfile(file, scratch / file.name)
        with closing(sqlite3.connect(scratch / path.name)) as db:
            return db.serialize()
    except sqlite3.Error:
        return content + b"".join(log.read_bytes() for log in logs)
    finally:
        shutil.rmtree(scratch)


def digest(place: Place) -> str:
    """Return a digest of all tables and written files, in which random ids and times of day do not count."""
    lines = dump_server(place.url) if place.url else dump(place.database)
    for path in sorted(place.out.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            lines += [path.name, *(dump(path) if path.suffix == ".db" else _mask_lines([path.read_text("utf-8")]))]
    if (copy := place.folder / "copy" / "memory.db").is_file():
        lines += ["copy", *dump(copy)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()


def dump(database: Path) -> list[str]:
    """Return all rows of a file as lines."""
    with closing(sqlite3.connect(database)) as db:
        return _mask_lines(f"{table} {row!r}" for table, row in _rows(db))


def digest_words(database: Path) -> str:
    """Return a digest of the index of words, which `dump` leaves out as equal texts can have different ones."""
    found = hashlib.blake2b()
    with closing(sqlite3.connect(database)) as db:
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'words\\_%' ESCAPE '\\' ORDER BY name"
        ).fetchall():
            found.update(repr(db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()).encode())
    return found.hexdigest()


def _mask_lines(lines: Iterable[str]) -> list[str]:
    """Replace random ids by the number of their first appearance, and times of day and folders by a word."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"id{len(numbers)}")

    return [_PLACE.sub("place", _TIME.sub("now", _UUID.sub(number, line))) for line in lines]


def _rows(db: sqlite3.Connection) -> Iterator[tuple[str, tuple[Any, ...]]]:
    tables = db.execute(
        "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'words%'"
        " AND name NOT LIKE 'sqlite%' ORDER BY name = 'memories' DESC, name"
    ).fetchall()
    for table, is_keyed in tables:
        cursor = db.execute(f"SELECT * FROM {table} ORDER BY {'1, 2' if is_keyed else 'rowid'}")
        columns = [column[0] for column in cursor.description]
        for row in cursor:
            if table != "meta":
                yield table, tuple(_plain(name, value) for name, value in zip(columns, row, strict=True))
            elif (plain := _plain_meta(*row)) is not None:
                yield table, plain


def _plain_meta(key: str, value: Any) -> tuple[Any, ...] | None:
    """Return the row of a key without random values; None if it is random."""
    if key.startswith(_RANDOM_META):
        return None
    if not key.startswith("registry:"):
        return key, value
    entry = json.loads(value)
    if key.startswith(_RECEIPT):
        return key, *(entry[name] for name in _SETTLED)
    return (key, value) if Path(entry.get("path", "/")).exists() else None  # registered before it is written


_SETTLED = ("reason", "erased", "complete", "fingerprints", "unsearchable")
"""Entries of a receipt that do not depend on times, sizes of files and the number of attempts."""


def _plain(column: str, value: Any) -> Any:
    if column in ("digest", "ready_at", "leased_until", "leased_by", "session"):
        return None  # derived from times and random ids
    return hashlib.blake2b(value, digest_size=6).hexdigest() if isinstance(value, bytes) else value


# --- PostgreSQL --------------------------------------------------------------------------------------------------

_ROW_COLUMNS = frozenset(
    {"row", "memory", "message", "edge", "source", "destination", "upto", "node", "merge", "place", "job", "target"}
)
_SEQ_COLUMNS = frozenset({"seq", "changed"})
_TABLES_SQL = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),
    array_agg(a.atttypid = 'bigint'::regtype ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'mem0'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
GROUP BY c.relname ORDER BY c.relname <> 'memories', c.relname
"""


_Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""Name, columns and rows."""


def dump_server(url: str) -> list[str]:
    """Return all rows of a database as lines. Numbers of rows and changes are replaced by their ranks.

    An aborted transaction uses numbers up, as the sequences of PostgreSQL are never rolled back.
    """
    import psycopg

    with psycopg.connect(url) as db:
        tables = [
            (name, columns, list(db.execute(_select_sql(name, columns, numeric).encode())))
            for name, columns, numeric in db.execute(_TABLES_SQL.encode()).fetchall()
        ]
    ranks = {kind: _ranks(tables, kind) for kind in (_ROW_COLUMNS, _SEQ_COLUMNS)}
    return _mask_lines(
        f"{name} {row!r}" for name, columns, rows in tables for row in _ranked(name, columns, rows, ranks)
    )


def connect_reader(url: str) -> Any:
    """Open a connection that never waits long for a lock."""
    import psycopg

    return psycopg.connect(url, autocommit=True, options="-c lock_timeout=100")


def digest_server(db: Any) -> bytes:
    """Return a digest of all committed rows of a database; another one where a table is locked against readers."""
    import psycopg

    rows = "md5(string_agg(t::text, ' ' ORDER BY t::text))"
    names = [str(name) for name, *_ in db.execute(_TABLES_SQL).fetchall()]
    parts = (f"SELECT '{name}', {rows} FROM mem0.{name} AS t" for name in names)
    try:
        return repr(db.execute(" UNION ALL ".join(parts)).fetchall()).encode()
    except psycopg.errors.LockNotAvailable:
        return b"locked"


def _select_sql(table: str, columns: Sequence[str], numeric: Sequence[bool]) -> str:
    """Return the statement that reads a table; all but numbers are read as text."""
    parts = (f'"{name}"' if plain else f'"{name}"::text' for name, plain in zip(columns, numeric, strict=True))
    return f"SELECT {', '.join(parts)} FROM mem0.{table}"


def _ranks(
    tables: Iterable[tuple[str, Sequence[str], Sequence[Sequence[Any]]]], kind: frozenset[str]
) -> dict[int, int]:
    numbers = {
        value
        for _, columns, rows in tables
        for row in rows
        for name, value in zip(columns, row, strict=True)
        if name in kind and isinstance(value, int)
    }
    return {number: rank for rank, number in enumerate(sorted(numbers))}


def _ranked(
    table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], ranks: dict[frozenset[str], dict[int, int]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in the order of their numbers."""
    found: list[tuple[list[int], tuple[Any, ...]]] = []
    for row in rows:
        if table == "meta":
            if (plain := _plain_meta(*row)) is not None:
                found.append(([], plain))
            continue
        values = []
        for name, value in zip(columns, row, strict=True):
            rank = next((ranks[kind].get(value) for kind in ranks if name in kind and isinstance(value, int)), None)
            values.append(_plain(name, value) if rank is None else rank)
        order = [value for name, value in zip(columns, values, strict=True) if name in _ROW_COLUMNS | _SEQ_COLUMNS]
        found.append(([-1 if value is None else value for value in order], tuple(values)))
    return (row for _, row in sorted(found, key=lambda one: (one[0], repr(one[1]))))
