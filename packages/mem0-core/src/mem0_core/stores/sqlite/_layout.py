"""Detection of files whose tables are not those of their schema version, before anything is written to them.

Such a file belongs to another program, or to a version of this package that was never released.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from mem0_core.errors import StoreError

APPLICATION_ID = 0x6D656D30
"""Mark in the header of a store's file: "mem0" in ASCII."""
_ID_PLACE = slice(68, 72)  # see https://www.sqlite.org/fileformat.html

_OUR_TABLES = {"meta", "memories"}  # of every store, in any version

_TABLES_SQL = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'words%'"
    " ORDER BY name"
)
_COLUMNS_SQL = (
    "SELECT m.name, group_concat(c.name) FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'words%' GROUP BY m.name"
)


def refuse_foreign_file(path: Path) -> None:
    """Raise StoreError if a file has tables of another program. Neither it nor its log is changed.

    A file that is missing, empty or unreadable passes.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    with suppress(OSError), path.open("rb") as file:
        if file.read(_ID_PLACE.stop)[_ID_PLACE] == APPLICATION_ID.to_bytes(4, "big"):
            return  # its tables are read once it is open
    # Without a log the file is complete, and a plain read-only connection would create one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as db:
        refuse_foreign(db, path)


def refuse_foreign(db: sqlite3.Connection, path: str | Path) -> None:
    """Raise StoreError if a database has tables, but not those of a store."""
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    tables = {str(name) for (name,) in found}
    if tables and not tables >= _OUR_TABLES:
        raise StoreError(
            f"{path} belongs to another program, and was left as it is: its tables are {', '.join(sorted(tables))}."
            f"{_way_out(Path(path)) if 'history' in tables else ' Name another file.'}"
        )


def _way_out(path: Path) -> str:
    """Return the command that imports the data of mem0."""
    where = shlex.quote(str(path.parent))
    named = "" if path.name == "history.db" else f" --history {shlex.quote(str(path))}"
    return f" To copy what mem0 keeps there, name another file and run `mem0-core adopt {where}{named}`."


def has_newest_layout(db: sqlite3.Connection) -> bool:
    """Return True if the tables of a file are those of the newest schema version."""
    return _digest(db.execute(_TABLES_SQL).fetchall()) == NEWEST_LAYOUT


def refuse_other_layout(db: sqlite3.Connection, path: str | Path, scripts: tuple[str, ...], newest: int) -> None:
    """Raise StoreError if the tables of a file are not those that the scripts of its schema version create."""
    found: dict[str, str] = dict(db.execute(_COLUMNS_SQL).fetchall())
    expected = _columns_of(scripts)
    differing = sorted(name for name, columns in expected.items() if found.get(name) != columns)
    if not differing:
        return
    from importlib.metadata import version  # takes as long as to open a store

    ours = {name: columns for name, columns in found.items() if name in expected}
    raise StoreError(
        f"{path} has schema version {len(scripts)} with layout {_name_layout(ours)}, written by a development version"
        f" of mem0-core; mem0-core {version('mem0-core')} uses schema version {newest}, whose"
        f" version {len(scripts)} has layout {_name_layout(expected)} (tables that differ: {', '.join(differing)})."
        " Nothing was changed. Export the store with the version that wrote it (`mem0-core export FILE`), and import"
        " FILE into a new store with this one (`mem0-core import FILE`)."
    )


NEWEST_LAYOUT = "b6a221435fdb4ef66b122706e11c4239"
"""Digest of the statements that created the tables of the newest version.

It spares each start the creation of an empty store to compare with, which takes half the time to open one. A test
fails if it is another one.
"""


def digest_layout(scripts: tuple[str, ...]) -> str:
    """Return the digest of the tables that scripts create, for `NEWEST_LAYOUT`."""
    with _created(scripts) as db:
        return _digest(db.execute(_TABLES_SQL).fetchall())


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script: `executescript` would commit the transaction around them."""
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            yield buffer
            buffer = ""


@functools.lru_cache(maxsize=8)
def _columns_of(scripts: tuple[str, ...]) -> dict[str, str]:
    """Return the columns of each table that scripts create."""
    with _created(scripts) as db:
        return dict(db.execute(_COLUMNS_SQL).fetchall())


@contextmanager
def _created(scripts: tuple[str, ...]) -> Iterator[sqlite3.Connection]:
    """Create the tables of scripts in memory."""
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in _iter_statements(scripts):
            db.execute(statement)
        yield db


def _iter_statements(scripts: Iterable[str]) -> Iterator[str]:
    for script in scripts:
        yield from split_statements(script)


def _name_layout(columns: dict[str, str]) -> str:
    return hashlib.blake2b(repr(sorted(columns.items())).encode(), digest_size=4).hexdigest()
