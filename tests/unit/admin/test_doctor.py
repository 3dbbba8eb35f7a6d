"""The doctor: what was broken by hand is found, named and mended, and a sound store is left alone."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.cli import main
from mem0_core.errors import ConfigError
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.sql.engine.steps import Steps
from mem0_core.stores.sql.maintenance import TableReader
from mem0_core.stores.sql.meta import read_embedding_space
from mem0_core.stores.sqlite.maintenance import find_log_damage
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, open_memory, run_sql

SAID = ("I live in Rome.", "I work at Acme.", "My sister is Anna.", "I moved to Oslo.", "Anna likes tea.")


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    config = {"vector_store": {"provider": "faiss", "config": {"exact_limit": 20}}, **truth}
    with open_memory(tmp_path, config=config) as made:
        yield MemoryDriver(made, mode)


def fill(memory: Any) -> None:
    for text in SAID:
        memory.add(text, user_id="ann")


def is_file(memory: Any) -> bool:
    return memory.memory.store.maintenance.file is not None


def triplets(memory: Any) -> set[tuple[str, str, str, bool]]:
    return {
        (one["source"], one["relationship"], one["destination"], one["valid_to"] is None)
        for one in memory.relations(user_id="ann", ended=True)
    }


def told(result: dict[str, Any]) -> str:
    return "; ".join(f"{finding['where']}: {finding['what']}" for finding in result["findings"])


def test_a_sound_store_is_left_alone(memory: Any) -> None:
    fill(memory)
    before = memory.export(memory.memory.config.folder / "before.jsonl")
    result = memory.doctor()
    assert result["healthy"]
    assert result["findings"] == []
    assert {"store", "graph", "vectors: FaissIndex"} <= set(result["checked"])
    assert ("log" in result["checked"]) is is_file(memory)
    after = memory.export(memory.memory.config.folder / "after.jsonl")
    assert Path(before["files"][0]).read_text() == Path(after["files"][0]).read_text()


def test_an_edge_removed_by_hand_is_named_and_put_back(memory: Any) -> None:
    fill(memory)
    before = triplets(memory)
    for (row,) in run_sql(memory.memory, "SELECT row FROM edges ORDER BY row"):
        run_sql(memory.memory, f"DELETE FROM edges WHERE row = {row}")
        looked = memory.doctor(repair=False)
        assert not looked["healthy"]
        assert f"relation {row} was removed by hand: " in told(looked)
        assert triplets(memory) != before
        mended = memory.doctor()
        assert mended["healthy"]
        assert triplets(memory) == before
        assert memory.doctor()["findings"] == []
    assert memory.search("Where do I live?", user_id="ann")["relations"][0]["destination"] == "Oslo"
    assert all(one["memories"] for one in memory.relations(user_id="ann"))


@pytest.mark.parametrize("truth", ["sqlite"], indirect=True)  # elsewhere nothing tells that a number is missing
def test_an_edge_removed_with_all_its_traces_is_read_again(memory: Any) -> None:
    fill(memory)
    before = triplets(memory)
    run_sql(memory.memory, "PRAGMA foreign_keys = ON", "DELETE FROM edges WHERE relationship = 'works_at'")
    looked = memory.doctor(repair=False)
    assert "was removed by hand: ann -- works_at -- Acme" in told(looked)
    assert memory.doctor()["healthy"]
    assert triplets(memory) == before
    assert memory.doctor()["findings"] == []


def test_an_entity_removed_by_hand_comes_back_with_its_relations(memory: Any) -> None:
    fill(memory)
    before = triplets(memory)
    run_sql(memory.memory, "DELETE FROM nodes WHERE name = 'Acme'")
    assert "ann -- works_at -- Acme" in told(memory.doctor(repair=False))
    assert memory.doctor()["healthy"]
    assert triplets(memory) == before
    assert memory.doctor()["findings"] == []


def test_what_is_left_of_a_relation_that_nobody_can_name_is_removed(memory: Any) -> None:
    fill(memory)
    run_sql(memory.memory, "DELETE FROM edges WHERE relationship = 'works_at'", "UPDATE memories SET text = '?'")
    ((gone,),) = run_sql(memory.memory, "SELECT row FROM edge_vectors WHERE row NOT IN (SELECT row FROM edges)")
    assert f"relation {gone} was removed by hand" in told(memory.doctor())
    assert memory.doctor()["findings"] == []


def test_relations_that_ended_lawfully_stay_ended(memory: Any) -> None:
    fill(memory)
    (entry,) = [one for one in memory.get_all(user_id="ann", limit=None)["results"] if "Acme" in one["memory"]]
    memory.delete(entry["id"])
    before = triplets(memory)
    run_sql(memory.memory, "DELETE FROM edges WHERE relationship = 'likes'")
    memory.doctor()
    assert triplets(memory) == before


BROKEN: dict[str, tuple[dict[str, str] | str, str]] = {
    "a vector": ("DELETE FROM vectors WHERE row = (SELECT min(row) FROM memories)", "1 memories have no vector"),
    "half a vector": (
        {"sqlite": "UPDATE vectors SET vector = x'0000' WHERE row = 1"}
        | {"postgres": "UPDATE vectors SET vector = '[1, 0]' WHERE row = (SELECT min(row) FROM memories)"},
        "1 memories have no vector, or one",
    ),
    "a node's vector": ("DELETE FROM node_vectors WHERE row = (SELECT min(row) FROM nodes)", "1 nodes have no vector"),
    "an edge's vector": ("DELETE FROM edge_vectors WHERE row = (SELECT min(row) FROM edges)", "1 edges have no vector"),
    "a sketch": (
        "DELETE FROM sketches WHERE row = (SELECT min(row) FROM memories)",
        "1 memories are missing from the word index",
    ),
    "all words": ({"sqlite": "INSERT INTO words (words) VALUES ('delete-all')"}, "word index"),
    "a message": ("DELETE FROM messages WHERE row = (SELECT min(row) FROM messages)", "refer to missing rows"),
    "the counter": (
        {"sqlite": "UPDATE meta SET value = 1 WHERE key = 'seq'", "postgres": "SELECT setval('next_seq', 1)"},
        "the change counter is 1",
    ),
    "an index": (
        {
            "postgres": "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
            " (SELECT min(inhrelid::regclass::text)::regclass FROM pg_inherits WHERE inhparent = 'edges_row'::regclass)"
        },
        "the server reports the index",
    ),
}


def breakable() -> Iterator[Any]:
    """What can be broken, of each database what it has."""
    for what, (broken, named) in BROKEN.items():
        for database, marks in (("sqlite", ()), ("postgres", pytest.mark.needs_server)):
            statement = broken if isinstance(broken, str) else broken.get(database)
            if statement is not None:
                yield pytest.param(database, statement, named, id=f"{database}-{what}", marks=marks)


@pytest.mark.parametrize(("truth", "statement", "named"), list(breakable()), indirect=["truth"])
def test_what_the_truth_lacks_is_found_and_mended(memory: Any, statement: str, named: str) -> None:
    fill(memory)
    run_sql(memory.memory, statement)
    looked = memory.doctor(repair=False)
    assert named in told(looked)
    assert not looked["healthy"]
    assert memory.doctor()["healthy"]
    assert memory.doctor()["findings"] == []
    (best, *_) = memory.search("I live in Rome", user_id="ann")["results"]
    assert best["memory"] == "I live in Rome."


def test_a_memory_removed_by_hand_leaves_nothing_in_searches(memory: Any) -> None:
    fill(memory)
    run_sql(memory.memory, "DELETE FROM memories WHERE text = 'I work at Acme.'")
    assert not memory.doctor(repair=False)["healthy"]
    memory.doctor()
    assert memory.doctor()["findings"] == []
    assert "I work at Acme." not in [one["memory"] for one in memory.search("Acme", user_id="ann")["results"]]


# --- snapshots ---------------------------------------------------------------------------------------------------


def flip_a_byte(folder: Path) -> str:
    (path,) = folder.glob("*.hnsw")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return "its checksum does not match"


def delete_all(folder: Path) -> str:
    for path in list(folder.iterdir()):
        if path.is_file():
            path.unlink()
    return "is missing"


def delete_one(folder: Path) -> str:
    (path,) = folder.glob("*.rows")
    path.unlink()
    return f"{path.name} is missing"


def truncate(folder: Path) -> str:
    (path,) = folder.glob("*.hnsw")
    os.truncate(path, path.stat().st_size // 2)
    return "its manifest says"


def garble_the_seal(folder: Path) -> str:
    (path,) = folder.glob("*.json")
    path.write_text("{")
    return "its manifest cannot be read"


def leave_a_stranger(folder: Path) -> str:
    (folder / "user_id-0123-456.hnsw").write_bytes(b"?")
    return "snapshot files without a partition"


@pytest.mark.parametrize(
    "damage",
    [flip_a_byte, delete_all, delete_one, truncate, garble_the_seal, leave_a_stranger],
    ids=lambda d: d.__name__,
)
def test_a_snapshot_that_was_tampered_with_is_named_and_built_anew(
    tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    config = {"vector_store": {"provider": "faiss", "config": {"exact_limit": 50}}}
    folder = tmp_path / "faiss" / "memory"
    with open_memory(tmp_path, config=config) as memory:
        memory.add_many([f"memory number {number} of things" for number in range(80)], user_id="ann")
        memory.doctor()  # builds the snapshot, if a search's thread has not yet
    assert len(list(folder.glob("*.hnsw"))) == 1
    expected = damage(folder)
    with open_memory(tmp_path, config=config) as memory:
        looked = memory.doctor(repair=False)
        assert expected in told(looked)
        assert not looked["healthy"]
        assert memory.doctor()["healthy"]
        assert memory.doctor()["findings"] == []
        (best, *_) = memory.search("memory number 7 of things", user_id="ann")["results"]
        assert best["memory"] == "memory number 7 of things"
    assert len(list(folder.glob("*.hnsw"))) == 1


def test_a_snapshot_that_lacks_vectors_is_told_from_the_truth(tmp_path: Path) -> None:
    """Its checksum is right, its content is of another store: only a comparison finds it."""
    config = {"vector_store": {"provider": "faiss", "config": {"exact_limit": 50}}}
    for name, count in (("one", 80), ("other", 60)):
        with open_memory(tmp_path / name, config=config) as memory:
            memory.add_many([f"memory number {number} of things" for number in range(count)], user_id="ann")
            memory.doctor()
    with closing(sqlite3.connect(tmp_path / "one" / "memory.db")) as db:
        (epoch,) = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        (seq,) = db.execute("SELECT max(seq) FROM memories").fetchone()
    ours, theirs = (tmp_path / name / "faiss" / "memory" for name in ("one", "other"))
    for path in ours.glob("*.*"):
        path.unlink()
    for path in theirs.glob("*.*"):
        path.rename(ours / path.name)
    (seal,) = ours.glob("*.json")
    seal.write_text(json.dumps({**json.loads(seal.read_text()), "epoch": epoch, "seq": seq}))
    with open_memory(tmp_path / "one", config=config) as memory:
        assert "lacks 20 of 80 vectors" in told(memory.doctor(repair=False))
        assert memory.doctor()["healthy"]
        assert memory.doctor()["findings"] == []


# --- the log -----------------------------------------------------------------------------------------------------


def crashed(tmp_path: Path, *, with_index: bool = False) -> Path:
    """A store whose process died: the last commits are in its log only."""
    alive = tmp_path / "alive"
    with open_memory(alive) as memory:
        memory.add("I live in Rome.", user_id="ann")
    memory = open_memory(alive)
    memory.add("I work at Acme.", user_id="ann")
    memory.add("Anna likes tea.", user_id="ann")
    dead = tmp_path / "dead"
    dead.mkdir()
    for name in ("memory.db", "memory.db-wal", *(["memory.db-shm"] if with_index else [])):
        (dead / name).write_bytes((alive / name).read_bytes())
    memory.close()
    return dead / "memory.db"


def doctor(folder: Path, *more: str) -> int:
    config = folder / "config.json"
    config.write_text('{"embedder": "hash", "durability": "process"}')
    return main(["doctor", "--path", str(folder), "--config", str(config), *more])


def test_a_log_that_ends_with_a_commit_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = crashed(tmp_path)
    assert find_log_damage(database) is None
    assert doctor(database.parent) == 0
    assert "no problems found" in capsys.readouterr().out
    assert find_log_damage(tmp_path / "nowhere.db") is None


@pytest.mark.parametrize("cut", [10, 4096, 5000], ids=["in a page", "in a transaction", "in a page's head"])
def test_a_truncated_log_is_found_named_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: int
) -> None:
    database = crashed(tmp_path)
    log = database.with_name("memory.db-wal")
    os.truncate(log, log.stat().st_size - cut)
    before = log.read_bytes()
    assert doctor(database.parent, "--check") == 3
    assert "log: memory.db-wal ends in the middle of a" in capsys.readouterr().out
    assert log.read_bytes() == before  # looking mends nothing
    assert doctor(database.parent) == 0
    assert "repaired: log: memory.db-wal ends in the middle of a" in capsys.readouterr().out
    assert find_log_damage(database) is None
    assert doctor(database.parent, "--check") == 0
    with open_memory(database.parent) as memory:
        assert [one["memory"] for one in memory.get_all(user_id="ann", limit=None)["results"]][:1] == [
            "I live in Rome."
        ]
        assert memory.add("Anna likes tea.", user_id="ann")["skipped"] == []


@pytest.mark.parametrize("left", [0, 1], ids=["nothing", "the first commit"])
def test_a_log_that_was_cut_between_commits_is_told_by_its_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left: int
) -> None:
    """It looks whole; but what a crashed process left beside it knows how long it was."""
    database = crashed(tmp_path, with_index=True)
    assert find_log_damage(database) is None
    log = database.with_name("memory.db-wal")
    data, frame = log.read_bytes(), 24 + 4096
    ends = [at + frame for at in range(32, len(data), frame) if data[at + 4 : at + 8] != bytes(4)]
    os.truncate(log, ends[0] if left else 0)
    assert doctor(database.parent) == 0
    assert "repaired: log: memory.db-wal ends in the middle: it has" in capsys.readouterr().out
    assert doctor(database.parent, "--check") == 0


@pytest.mark.slow
def test_a_store_that_is_being_written_is_not_called_broken(tmp_path: Path, truth: dict[str, Any]) -> None:
    config = {"vector_store": {"provider": "faiss"}, **truth}
    with open_memory(tmp_path, config=config) as memory:
        stop = Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                memory.add(f"I met person {number}.", user_id="ann")
                number += 1
                stop.wait(0.01)

        writer = Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                assert find_log_damage(memory.config.database) is None
                assert memory.doctor(repair=False)["findings"] == []
        finally:
            stop.set()
            writer.join()


def test_the_first_memory_may_come_while_the_doctor_looks(
    tmp_path: Path, truth: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said of the embedder, and the vectors, are read one after the other, but as of one moment."""
    run = TableReader.run

    with open_memory(tmp_path, config={"vector_store": {"provider": "faiss"}, **truth}) as memory:

        def write_meanwhile(tables: TableReader, make_steps: Callable[[], Steps[Any]]) -> Any:
            found = run(tables, make_steps)
            if make_steps is read_embedding_space:
                memory.add("I met Ben.", user_id="ann")
            return found

        monkeypatch.setattr(TableReader, "run", write_meanwhile)
        assert memory.doctor(repair=False)["findings"] == []
        monkeypatch.undo()
        assert len(memory.get_all(user_id="ann", limit=None)["results"]) == 1


def test_a_flipped_byte_in_the_log_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = crashed(tmp_path)
    log = database.with_name("memory.db-wal")
    data = bytearray(log.read_bytes())
    data[-100] ^= 1
    log.write_bytes(data)
    assert doctor(database.parent) == 0
    assert "is altered behind page" in capsys.readouterr().out


def test_projections_that_were_ahead_of_a_torn_log_start_anew(tmp_path: Path) -> None:
    """Numbers of what was lost are given again: a projection that went by them would be wrong without a word."""
    config = {"vector_store": {"provider": "faiss", "config": {"exact_limit": 5}}}
    memory = open_memory(tmp_path, config=config)
    memory.add_many([f"old memory {number}" for number in range(10)], user_id="ann")
    epoch = memory.store.position(memory.store.list_memories(None)[0].scope).epoch
    memory.doctor(torn="memory.db-wal ends in the middle of a page")
    assert memory.store.position(memory.store.list_memories(None)[0].scope).epoch != epoch
    memory.close()


# --- what cannot be mended ---------------------------------------------------------------------------------------


def test_a_damaged_file_is_named_with_the_way_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.backup(tmp_path / "backup.db")
    database = tmp_path / "memory.db"
    data = bytearray(database.read_bytes())
    data[4096 : 4096 * 12] = b"\x5a" * (4096 * 11)
    database.write_bytes(data)
    assert doctor(tmp_path) == 3
    assert "restore a backup" in capsys.readouterr().out
    arguments = ["--path", str(tmp_path), "--config", str(tmp_path / "config.json")]
    assert main(["restore", str(tmp_path / "backup.db"), "--force", *arguments]) == 0
    assert doctor(tmp_path) == 0


def test_there_is_a_store_or_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(tmp_path) == 1
    assert "there is no store" in capsys.readouterr().err
    assert not (tmp_path / "memory.db").exists()


# --- other projections -------------------------------------------------------------------------------------------


def test_an_edge_removed_from_ladybug_by_hand_comes_back(tmp_path: Path) -> None:
    ladybug = pytest.importorskip("ladybug")
    path = tmp_path / "graph"
    config = {"graph_store": {"provider": "ladybug", "config": {"db": str(path)}}}
    with open_memory(tmp_path, config=config) as memory:
        for text in SAID:
            memory.add(text, user_id="ann")
        assert memory.doctor()["findings"] == []
    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)
    connection.execute("MATCH ()-[r:RELATES]->() WHERE r.name = 'works_at' DELETE r")
    connection.close()
    database.close()
    with open_memory(tmp_path, config=config) as memory:
        looked = memory.doctor(repair=False)
        assert "lacks 1 (ann -- works_at -- Acme)" in told(looked)
        assert memory.doctor()["healthy"]
        assert memory.doctor()["findings"] == []


@pytest.mark.needs_server
def test_a_truth_that_searches_its_own_vectors_agrees_with_itself(
    postgres_store: PostgresStore, tmp_path: Path
) -> None:
    with open_memory(tmp_path, store=postgres_store) as memory:
        fill(memory)
        result = memory.doctor()
        assert (result["healthy"], result["findings"]) == (True, [])
        assert "vectors: PgvectorIndex" in result["checked"]


def test_how_far_it_came_is_told(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Rome.", user_id="ann")
        seen: list[tuple[int, int | None]] = []
        memory.doctor(on_progress=lambda *at: seen.append(at))
        assert seen[0] == (0, 4)
        assert seen[-1] == (4, 4)
        seen.clear()
        memory.rebuild(on_progress=lambda *at: seen.append(at))
        assert seen[-1] == (4, 4)  # a memory, two entities, their relation


def test_a_memory_of_another_embedder_is_not_mixed_in(tmp_path: Path) -> None:
    """Mending a vector takes the embedder of the store."""
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder(dims=32)) as memory:
        memory.add("I live in Rome.", user_id="ann")
        with closing(sqlite3.connect(memory.config.database)) as db:
            db.execute("DELETE FROM vectors")
            db.commit()
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder(dims=48)) as memory, pytest.raises(ConfigError):
        memory.doctor()
