"""Recorded layouts of SQLite stores."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mem0_core.errors import StoreError
from mem0_core.stores.sqlite._layout import NEWEST_LAYOUT, digest_layout
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.store import SQLiteStore


def test_the_recorded_layout_is_the_one_that_the_newest_scripts_create() -> None:
    assert digest_layout(SCHEMA_VERSIONS) == NEWEST_LAYOUT


def test_a_store_whose_tables_differ_from_the_recorded_layout_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    SQLiteStore(file).close()
    SQLiteStore(file).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("ALTER TABLE memories ADD COLUMN mood TEXT")
        db.commit()
    with pytest.raises(StoreError, match="tables that differ: memories"):
        SQLiteStore(file)


def test_a_file_with_our_mark_and_tables_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    SQLiteStore(file).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("DROP TABLE sources")
        db.execute("ALTER TABLE memories RENAME TO notes")
        db.commit()
    with pytest.raises(StoreError, match="belongs to another program"):
        SQLiteStore(file)
