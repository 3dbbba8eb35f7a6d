"""Stores of earlier schema versions with the content of a current one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.stores.postgres.schema import TableLayout, migration_statements
from mem0_core.stores.sql.schema import TABLES
from mem0_core.stores.sqlite._layout import split_statements
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["write_earlier", "write_earlier_schema"]

_TABLES_SQL = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'words%'"
    " AND (name NOT LIKE 'sqlite%' OR name = 'sqlite_sequence')"
)


def write_earlier(source: Path, target: Path, version: int) -> None:
    """Write the content of a store to a new file with the tables of an earlier version.

    Columns and tables that the version lacks are left out. The word index stays empty and is marked as old, so that it
    is filled when the file is opened.
    """
    with closing(sqlite3.connect(target)) as db:
        for script in SCHEMA_VERSIONS[:version]:
            for statement in split_statements(script):
                db.execute(statement)
        db.execute("ATTACH ? AS source", (str(source),))
        for (table,) in db.execute(_TABLES_SQL).fetchall():
            columns = ", ".join(f'"{row[1]}"' for row in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"DELETE FROM main.{table}")
            db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}")
        db.execute("DELETE FROM main.meta WHERE key = 'words'")
        db.execute(f"PRAGMA main.user_version = {version}")
        db.commit()


def write_earlier_schema(db: Connection[Any], source: str, target: str, version: int) -> None:
    """Write the content of a PostgreSQL store to a new schema with the tables of an earlier version.

    Columns and tables that the version lacks are left out, as in `write_earlier`.

    Args:
        db: a connection in autocommit mode, of the owner of both schemas.
        source: schema of a store of the current version.
        target: schema that is dropped and written.
    """
    with db.transaction():
        db.execute(f"DROP SCHEMA IF EXISTS {target} CASCADE".encode())
        db.execute(f"CREATE SCHEMA {target}".encode())
        db.execute(f"SET LOCAL search_path = {target}, public".encode())
        for statement in migration_statements(TableLayout(partitions=2), until=version):
            db.execute(statement.encode())
        for table in reversed(TABLES):
            _copy_table(db, table, source, target)
        db.execute(f"DELETE FROM {target}.meta WHERE key <> 'schema'".encode())
        kept = "key NOT IN ('schema', 'words')"
        db.execute(f"INSERT INTO {target}.meta SELECT * FROM {source}.meta WHERE {kept}".encode())
        for sequence in ("next_row", "next_seq"):
            db.execute(f"SELECT setval('{target}.{sequence}', last_value) FROM {source}.{sequence}".encode())


def _copy_table(db: Connection[Any], table: str, source: str, target: str) -> None:
    """Copy the columns that a table has in the target; do nothing where it has no such table."""
    rows = db.execute(
        "SELECT quote_ident(column_name) FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (target, table),
    )
    if columns := ", ".join(name for (name,) in rows):
        db.execute(f"INSERT INTO {target}.{table} ({columns}) SELECT {columns} FROM {source}.{table}".encode())
