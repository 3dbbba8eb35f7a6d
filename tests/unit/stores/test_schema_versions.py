"""Files of earlier schema versions open and keep their content."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mem0_core import Memory, Scope
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite import store as sqlite_store
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from tests.support import result_texts

NEXT_STEP = """
ALTER TABLE memories ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
CREATE INDEX memories_mood ON memories (mood);
"""


def use_next_version(monkeypatch: pytest.MonkeyPatch, step: str = NEXT_STEP) -> None:
    monkeypatch.setattr(sqlite_store, "SCHEMA_VERSIONS", (*SCHEMA_VERSIONS, step))


def read_version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of the current version with one memory that was updated once."""
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
        (added,) = memory.add("Lives in Rome", user_id="u", infer=False, timestamp="2025-01-01T00:00:00+00:00")[
            "results"
        ]
        memory.update(added["id"], "Lives in Oslo")
    return tmp_path / "memory.db"


def test_a_new_file_has_the_current_version(file: Path) -> None:
    assert read_version(file) == len(SCHEMA_VERSIONS)


def test_a_file_of_an_earlier_version_opens_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_next_version(monkeypatch)
    with Memory({"path": str(file.parent)}, embedder=HashEmbedder()) as memory:
        (kept,) = memory.get_all(user_id="u")["results"]
        assert kept["memory"] == "Lives in Oslo"
        assert [row["new_memory"] for row in memory.history(kept["id"])] == ["Lives in Rome", "Lives in Oslo"]
        assert result_texts(memory.search("lives in", user_id="u")) == ["Lives in Oslo"]
        memory.add("I live in Porto.", user_id="u")
        assert "Porto" in [relation["destination"] for relation in memory.relations(user_id="u")]
    assert read_version(file) == len(SCHEMA_VERSIONS) + 1
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT DISTINCT mood FROM memories").fetchall() == [("calm",)]


def test_a_step_runs_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_next_version(monkeypatch)
    for _ in range(2):
        SQLiteStore(file).close()
    assert read_version(file) == len(SCHEMA_VERSIONS) + 1


def test_a_step_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        use_next_version(patch, f"{NEXT_STEP}\nINSERT INTO no_such_table VALUES (1);")
        with pytest.raises(StoreError, match="no_such_table"):
            SQLiteStore(file)
    assert read_version(file) == len(SCHEMA_VERSIONS)
    with closing(sqlite3.connect(file)) as db:
        assert "mood" not in [column for _, column, *_ in db.execute("PRAGMA table_info(memories)")]
    with Memory({"path": str(file.parent)}, embedder=HashEmbedder()) as memory:
        assert result_texts(memory.get_all(user_id="u")) == ["Lives in Oslo"]


def test_a_migrated_memory_holds_since_its_last_update(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_next_version(monkeypatch)
    with closing(sqlite3.connect(file)) as db:
        db.execute("UPDATE memories SET valid_from = '2025-06-01T00:00:00+00:00'")
        db.commit()
    store = SQLiteStore(file)
    assert len(store.rows(Scope("u"), as_of="2025-03-01T00:00:00+00:00")) == 0
    assert len(store.rows(Scope("u"), as_of="2025-07-01T00:00:00+00:00")) == 1
    store.close()
