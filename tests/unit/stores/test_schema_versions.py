"""Files of earlier schema versions open and keep their content."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.faults.earlier import write_earlier
from mem0_core import Memory, Scope
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite import store as sqlite_store
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from tests.support import open_memory, result_texts

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


def test_a_file_of_the_first_version_gets_the_trust_classes_of_its_roles(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "I like tea."}, {"role": "assistant", "content": "Tea it is."}]
    with open_memory(tmp_path) as memory:
        memory.add(said, user_id="u", infer=False)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        added = [("memories", "trust"), ("memories", "useful"), ("memories", "useless"), ("past", "trust")]
        for table, column in (*added, ("messages", "trust"), ("sources", "seq")):
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DROP INDEX messages_source")
        db.execute("ALTER TABLE messages DROP COLUMN source")
        db.execute("ALTER TABLE sources DROP COLUMN repeats")
        db.execute("DROP TABLE endings")
        for table in ("events", "spaces", "space_members", "space_writes"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 1")
    with open_memory(tmp_path) as memory:
        assert result_texts(memory.get_all(user_id="u")) == ["I like tea.", "Tea it is."]
        assert result_texts(memory.get_all(user_id="u", min_trust="user")) == ["I like tea."]
        memory.add(said[:1], user_id="u", infer=False, source="chat")
        assert memory.retract("chat", user_id="u")["kept"] == 1
        assert memory.doctor(repair=False)["healthy"]


def test_a_file_of_a_development_version_is_refused_and_named(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("ALTER TABLE sketches DROP COLUMN slots")
    before = file.read_bytes()
    with pytest.raises(
        StoreError, match=rf"schema version {len(SCHEMA_VERSIONS)} with layout \w{{8}}, .*mem0-core export FILE"
    ) as raised:
        SQLiteStore(file)
    assert "tables that differ: sketches" in str(raised.value)
    assert file.read_bytes() == before


@pytest.mark.parametrize("version", range(1, len(SCHEMA_VERSIONS)))
def test_a_file_of_each_earlier_version_keeps_all_its_data(tmp_path: Path, version: int) -> None:
    current, earlier = tmp_path / "current", tmp_path / "earlier"
    with Memory({"path": str(current)}, embedder=HashEmbedder()) as memory:
        memory.add("I live in Rome. My sister Anna works at Galp.", user_id="u", timestamp="2025-01-01T00:00:00+00:00")
        memory.add("I moved to Oslo.", user_id="u", timestamp="2025-02-01T00:00:00+00:00")
        memory.update(memory.get_all(user_id="u")["results"][0]["id"], "Lives by the sea")
        expected = describe(memory)
    earlier.mkdir()
    write_earlier(current / "memory.db", earlier / "memory.db", version)
    assert read_version(earlier / "memory.db") == version
    with Memory({"path": str(earlier)}, embedder=HashEmbedder()) as memory:
        assert describe(memory) == expected
        assert memory.doctor(repair=False)["findings"] == []
    assert read_version(earlier / "memory.db") == len(SCHEMA_VERSIONS)


def test_the_feed_of_an_upgraded_file_begins_with_its_history(tmp_path: Path) -> None:
    current, earlier = tmp_path / "current", tmp_path / "earlier"
    with Memory({"path": str(current)}, embedder=HashEmbedder()) as memory:
        kept, gone = (
            memory.add(text, user_id="u", run_id="r", infer=False)["results"][0]["id"] for text in ("Likes tea", "Skis")
        )
        memory.update(kept, "Likes green tea")
        memory.delete(gone)
        expected = [(one["event"], one["memory_id"]) for one in memory.changes()["results"]]
    earlier.mkdir()
    write_earlier(current / "memory.db", earlier / "memory.db", 2)
    with Memory({"path": str(earlier)}, embedder=HashEmbedder()) as memory:
        upgraded = memory.changes()
        assert [(one["event"], one["memory_id"]) for one in upgraded["results"]] == expected
        assert {(one["user_id"], one["run_id"], one["why"]) for one in upgraded["results"]} == {("u", "r", "history")}
        added = memory.add("Sings", user_id="u", infer=False)["results"][0]["id"]
        assert [one["memory_id"] for one in memory.changes(after=upgraded["cursor"])["results"]] == [added]


def describe(memory: Memory) -> list[object]:
    """Return memories, their histories, relations with their past, and the answer to a question."""
    entries = memory.get_all(user_id="u")["results"]
    return [
        entries,
        [memory.history(one["id"]) for one in entries],
        memory.relations(user_id="u", ended=True),
        result_texts(memory.search("Where does Anna work?", user_id="u")),
    ]
