"""Detection of SQLite files of other programs, before anything is written to them."""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from mem0_core.errors import StoreError

__all__ = ["refuse_foreign", "refuse_foreign_file"]

_OURS = {"meta", "memories"}
"""Tables of every store, in any version."""


def refuse_foreign_file(path: Path) -> None:
    """Raise StoreError if a file has tables of another program. Neither it nor its log is changed.

    A file that is missing, empty or unreadable passes.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    # Without a log the file is complete, and a plain read-only connection would create one.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as db:
        refuse_foreign(db, path)


def refuse_foreign(db: sqlite3.Connection, path: str | Path) -> None:
    """Raise StoreError if a database has tables, but not those of a store."""
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    tables = {str(name) for (name,) in found}
    if tables and not tables >= _OURS:
        raise StoreError(
            f"{path} belongs to another program, and was left as it is: its tables are {', '.join(sorted(tables))}."
            f"{_way_out(Path(path)) if 'history' in tables else ' Name another file.'}"
        )


def _way_out(path: Path) -> str:
    """Return the command that imports the data of mem0."""
    where = shlex.quote(str(path.parent))
    named = "" if path.name == "history.db" else f" --history {shlex.quote(str(path))}"
    return f" To copy what mem0 keeps there, name another file and run `mem0-core adopt {where}{named}`."
