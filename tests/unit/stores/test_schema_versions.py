"""Files of earlier versions open, and keep what they hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mem0_core import Memory, Scope
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from tests.support import result_texts


def written_at(step: int, file: Path) -> None:
    """A file as it was after so many steps, with one memory in it that was updated once."""
    with sqlite3.connect(file) as db:
        for script in SCHEMA_VERSIONS[:step]:
            db.executescript(script)
        db.execute(f"PRAGMA user_version = {step}")
        rows = [
            ("1", "m", None, "Lives in Rome", "ADD", "2025-01-01T00:00:00+00:00", None, 0, None, None),
            ("2", "m", "Lives in Rome", "Lives in Oslo", "UPDATE", "2025-01-01T00:00:00+00:00",
             "2025-06-01T00:00:00+00:00", 0, None, None),
        ]  # fmt: skip
        db.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        embedder = HashEmbedder()
        db.execute(
            "INSERT INTO memories (id, user_id, text, hash, same, metadata, created_at, updated_at, seq)"
            " VALUES ('m', 'u', 'Lives in Oslo', 'h', x'00', '{}', '2025-01-01T00:00:00+00:00',"
            " '2025-06-01T00:00:00+00:00', 1)"
        )
        vector = embedder.embed(["Lives in Oslo"])[0].astype("<f4").tobytes()
        db.execute("INSERT INTO vectors VALUES (1, ?)", (vector,))
        db.execute("INSERT INTO meta VALUES ('space', ?)", (f'["{embedder.name}", {embedder.dims}]',))


@pytest.mark.parametrize("step", range(1, len(SCHEMA_VERSIONS)))
def test_a_file_of_an_earlier_version_opens_whole(tmp_path: Path, step: int) -> None:
    file = tmp_path / "memory.db"
    written_at(step, file)
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
        assert [row["new_memory"] for row in memory.history("m")] == ["Lives in Rome", "Lives in Oslo"]
        known = ["Lives in Oslo"]
        assert result_texts(memory.get_all(user_id="u")) == known
        assert result_texts(memory.search("lives in", user_id="u")) == known
        memory.add("I live in Porto.", user_id="u")
        assert [relation["destination"] for relation in memory.relations(user_id="u")] == ["Porto"]


def test_what_a_memory_says_is_known_to_hold_since_its_last_update(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    written_at(1, file)
    store = SQLiteStore(file)
    assert len(store.rows(Scope("u"), as_of="2025-03-01T00:00:00+00:00")) == 0
    assert len(store.rows(Scope("u"), as_of="2025-07-01T00:00:00+00:00")) == 1
    store.close()
