"""Backups of a live store and going back to them; exports and taking them over; what a store holds."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from mem0_core.admin.backup import restore, restore_into
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError, StoreError
from mem0_core.interchange import import_export
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.sqlite.maintenance import verify_file
from tests.support import MODES, MemoryDriver, Mode, open_memory

SAID = ("I live in Rome.", "I work at Acme.", "I moved to Oslo.")


def filled(folder: Path, truth: Mapping[str, Any] | None = None) -> Any:
    memory = open_memory(folder, config=truth)
    for text in SAID:
        memory.add(text, user_id="ann")
    return memory


@pytest.mark.parametrize("mode", MODES)
def test_a_backup_is_one_file_that_opens_as_a_store(tmp_path: Path, mode: Mode, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "data", truth) as memory:
        driven: Any = MemoryDriver(memory, mode)
        copy = tmp_path / "copy" / "memory.db"
        copy.parent.mkdir()
        told = driven.backup(copy)
        assert told == {"path": str(copy), "bytes": copy.stat().st_size, "memories": 3, "identity": told["identity"]}
        assert [path.name for path in copy.parent.iterdir()] == ["memory.db"]
        with pytest.raises(InputError, match="already exists"):
            driven.backup(copy)
        assert driven.backup(copy, overwrite=True)["memories"] == 3
        mine = {one["memory"] for one in driven.get_all(user_id="ann", limit=None)["results"]}
        theirs = driven.relations(user_id="ann", ended=True)
    with open_memory(tmp_path / "copy") as memory:
        assert {one["memory"] for one in memory.get_all(user_id="ann", limit=None)["results"]} == mine
        assert memory.relations(user_id="ann", ended=True) == theirs
        assert memory.doctor()["findings"] == []


def test_a_backup_of_a_live_store_is_of_one_moment(tmp_path: Path, truth: dict[str, Any]) -> None:
    """While another thread writes: memories, vectors and history of every copy agree, and the writer is not refused."""
    with open_memory(tmp_path / "data", config=truth) as memory:
        memory.add_many([f"ballast {number}" for number in range(300 if truth else 3000)], user_id="ann")
        stop, failed = Event(), list[BaseException]()

        def write() -> None:
            number = 0
            try:
                while not stop.is_set():
                    memory.add(f"I met person {number}.", user_id="ann", infer=False)
                    number += 1
            except BaseException as error:  # noqa: BLE001 - told to the test
                failed.append(error)

        writer = Thread(target=write)
        writer.start()
        try:
            seen: list[int] = []
            for number in range(4):
                copy = tmp_path / f"{number}.db"
                memory.backup(copy, on_progress=lambda done, total: seen.append(done))
                with closing(sqlite3.connect(copy)) as db:
                    counts = [
                        db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                        for table in ("memories", "vectors", "sketches", "history")
                    ]
                assert len(set(counts)) == 1
        finally:
            stop.set()
            writer.join()
        assert failed == []
        assert seen


def test_restoring_goes_back_for_whoever_has_it_open_too(tmp_path: Path) -> None:
    with filled(tmp_path / "data") as memory:
        database, copy = memory.config.database, tmp_path / "copy.db"
        memory.backup(copy)
        memory.add("I like tea.", user_id="ann")
        memory.search("tea", user_id="ann")
        with pytest.raises(InputError, match="already exists"):
            restore(copy, database)
        assert restore(copy, database, overwrite=True)["memories"] == 3
        assert "I like tea." not in [one["memory"] for one in memory.search("tea", user_id="ann")["results"]]
        memory.add("I like milk.", user_id="ann")  # under a number that the tea had
        assert memory.search("milk", user_id="ann")["results"][0]["memory"] == "I like milk."
        assert memory.doctor()["findings"] == []
    assert restore(copy, tmp_path / "elsewhere" / "memory.db")["restored"] == 3


@pytest.mark.needs_server
def test_a_backup_restores_a_store_in_a_server_from_whatever_store_it_is_of(
    tmp_path: Path, postgres_store: PostgresStore
) -> None:
    with filled(tmp_path / "data") as memory:
        memory.pin(memory.get_all(user_id="ann", limit=None)["results"][0]["id"])
        memory.backup(tmp_path / "file.db")
        before = memory.relations(user_id="ann", ended=True), memory.get_all(user_id="ann", limit=None)
    with open_memory(tmp_path / "of the server", store=postgres_store) as memory:
        memory.add("I like tea.", user_id="bob")
        memory.backup(tmp_path / "server.db")
        with pytest.raises(InputError, match="not empty"):
            restore_into(tmp_path / "file.db", postgres_store)
        (tmp_path / "text").write_text("no database")
        with pytest.raises(StoreError, match="is no store"):
            restore_into(tmp_path / "text", postgres_store, overwrite=True)
        assert len(memory.get_all(user_id="bob", limit=None)["results"]) == 1, "nothing has changed"
        assert restore_into(tmp_path / "file.db", postgres_store, overwrite=True)["restored"] == 3
        assert (memory.relations(user_id="ann", ended=True), memory.get_all(user_id="ann", limit=None)) == before
        assert memory.get_all(user_id="bob", limit=None)["results"] == []
        assert memory.search("Where do I live?", user_id="ann")["relations"][0]["destination"] == "Oslo"
        memory.add("I like milk.", user_id="ann")
        assert memory.doctor()["findings"] == []
        assert restore_into(tmp_path / "server.db", postgres_store, overwrite=True)["restored"] == 1
        assert [one["memory"] for one in memory.get_all(user_id="bob", limit=None)["results"]] == ["I like tea."]


@pytest.mark.needs_server
@pytest.mark.parametrize("truth", ["postgres"], indirect=True)
def test_a_restore_that_was_cut_short_is_not_taken_for_a_store_and_is_done_again(
    tmp_path: Path, postgres_store: PostgresStore, truth: dict[str, Any]
) -> None:
    with filled(tmp_path / "data") as memory:
        memory.backup(tmp_path / "file.db")

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore_into(tmp_path / "file.db", postgres_store, on_progress=stop)
    with pytest.raises(StoreError, match="has not finished"):
        open_memory(tmp_path / "of the server", config=truth)
    assert restore_into(tmp_path / "file.db", postgres_store, overwrite=True)["restored"] == 3
    with open_memory(tmp_path / "of the server", config=truth) as memory:
        assert len(memory.get_all(user_id="ann", limit=None)["results"]) == 3


def test_a_copy_is_checked_before_anything_is_touched(tmp_path: Path) -> None:
    with filled(tmp_path / "data") as memory:
        database, copy = memory.config.database, tmp_path / "copy.db"
        memory.backup(copy)
    data = bytearray(copy.read_bytes())
    data[5000:9000] = b"\x5a" * 4000
    copy.write_bytes(data)
    before = database.read_bytes()
    with pytest.raises(StoreError, match=r"copy\.db is"):
        restore(copy, database, overwrite=True)
    (tmp_path / "text").write_text("no database")
    with pytest.raises(StoreError, match="is no store"):
        restore(tmp_path / "text", database, overwrite=True)
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE things (name)")
    with pytest.raises(StoreError, match="has the schema 0"):
        restore(tmp_path / "other.db", database, overwrite=True)
    with pytest.raises(InputError, match="backup not found"):
        restore(tmp_path / "nowhere", database, overwrite=True)
    assert database.read_bytes() == before


def test_a_backup_that_cannot_be_written_leaves_nothing(tmp_path: Path, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "data", truth) as memory:
        with pytest.raises(StoreError):
            memory.backup(tmp_path / "no" / "such" / "folder.db")
        with pytest.raises(InputError, match="is a folder"):
            memory.backup(tmp_path, overwrite=True)
        memory.backup(tmp_path / "copy.db")
    assert verify_file(tmp_path / "copy.db") == 3
    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == ["copy.db"]


# --- exports -----------------------------------------------------------------------------------------------------


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("mode", MODES)
def test_an_export_has_all_that_belongs_to_memories(tmp_path: Path, mode: Mode, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "data", truth) as memory:
        memory.add("I like milk.", user_id="bob")
        (rome, *_) = [one for one in memory.get_all(user_id="ann", limit=None)["results"] if "Rome" in one["memory"]]
        memory.update(rome["id"], "I lived in Rome.")
        (acme, *_) = [one for one in memory.get_all(user_id="ann", limit=None)["results"] if "Acme" in one["memory"]]
        memory.delete(acme["id"])
        driven: Any = MemoryDriver(memory, mode)
        told = driven.export(tmp_path / "all.jsonl")
        every = records(tmp_path / "all.jsonl")
        assert every[0] == {"kind": "header", "format": "mem0-core", "version": 1, "scope": {}}
        counts = {kind: sum(one["kind"] == kind for one in every) for kind in told["written"]}
        assert counts == told["written"]
        held = {one["id"]: one for one in every if one["kind"] == "memory"}
        assert [row["event"] for row in held[rome["id"]]["history"]] == ["ADD", "UPDATE"]
        messages = {one["id"]: one["content"] for one in every if one["kind"] == "message"}
        assert [messages[number] for number in held[rome["id"]]["messages"]] == ["I live in Rome."]
        relations = [one for one in every if one["kind"] == "relation"]
        assert {one["destination"] for one in relations} >= {"Rome", "Oslo"}
        assert all(one["evidence"] or one["withdrawn"] for one in relations)
        gone = [one for one in every if one["kind"] == "history"]
        assert [(one["memory_id"], one["event"]) for one in gone] == [(acme["id"], "ADD"), (acme["id"], "DELETE")]
        driven.export(tmp_path / "bob.jsonl", user_id="bob")
        theirs = records(tmp_path / "bob.jsonl")
        assert {one.get("user_id", "bob") for one in theirs[1:]} == {"bob"}
        assert "ann" not in (tmp_path / "bob.jsonl").read_text()
        with pytest.raises(InputError, match="already exists"):
            driven.export(tmp_path / "bob.jsonl")
        with pytest.raises(InputError, match="unknown format"):
            driven.export(tmp_path / "x", format="xml")


def test_the_graph_as_two_tables(tmp_path: Path, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "data", truth) as memory:
        memory.export(tmp_path / "graph", format="csv")
        relations = memory.relations(user_id="ann", ended=True)
    with (tmp_path / "graph" / "nodes.csv").open(newline="") as file:
        nodes = {row["id"]: row["name"] for row in csv.DictReader(file)}
    with (tmp_path / "graph" / "edges.csv").open(newline="") as file:
        edges = list(csv.DictReader(file))
    assert {(row["source"], row["relationship"], row["destination"], row["evidence"]) for row in edges} == {
        (one["source"], one["relationship"], one["destination"], " ".join(one["memories"])) for one in relations
    }
    assert all(nodes[row["source_id"]] == row["source"] for row in edges)
    assert sum(row["valid_to"] == "" for row in edges) == 2


def test_an_export_is_taken_over_with_ids_history_messages_and_pins(tmp_path: Path, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "one", truth) as memory:
        (rome, *_) = [one for one in memory.get_all(user_id="ann", limit=None)["results"] if "Rome" in one["memory"]]
        memory.pin(rome["id"])
        memory.export(tmp_path / "all.jsonl")
        before, told = memory.get_all(user_id="ann", limit=None)["results"], memory.history(rome["id"])
        related = {(one["source"], one["relationship"], one["destination"]) for one in memory.relations(user_id="ann")}
        memory.reset()
        memory.add("What was here first.", user_id="zoe")
        result = import_export(memory, tmp_path / "all.jsonl")
        assert (result["added"], result["history"], result["adopted_messages"]) == (3, 3, 3)
        after = memory.get_all(user_id="ann", limit=None)["results"]
        assert [(one["id"], one["memory"], one["created_at"]) for one in after] == [
            (one["id"], one["memory"], one["created_at"]) for one in before
        ]
        assert memory.history(rome["id"]) == told
        assert [one["id"] for one in memory.context(user_id="ann")["memories"]] == [rome["id"]]
        assert related == {
            (one["source"], one["relationship"], one["destination"]) for one in memory.relations(user_id="ann")
        }
        assert import_export(memory, tmp_path / "all.jsonl")["known"] == 3
        assert said(memory) == list(SAID), "and none of them twice"


def said(memory: Any) -> list[str]:
    return [message.content for message in memory.store.message_log.messages(Scope("ann"))]


def test_an_export_taken_over_where_it_is_from_changes_nothing(tmp_path: Path, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "one", truth) as memory:
        memory.export(tmp_path / "all.jsonl")
        assert import_export(memory, tmp_path / "all.jsonl")["known"] == 3
        memory.export(tmp_path / "again.jsonl")
    assert records(tmp_path / "again.jsonl") == records(tmp_path / "all.jsonl")


def test_messages_that_came_over_go_with_their_memory_and_stay_gone(tmp_path: Path, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "one", truth) as memory:
        memory.export(tmp_path / "all.jsonl")
        memory.reset()
        import_export(memory, tmp_path / "all.jsonl")
        (acme, *_) = [one for one in memory.get_all(user_id="ann", limit=None)["results"] if "Acme" in one["memory"]]
        memory.delete(acme["id"])
        assert said(memory) == [SAID[0], SAID[2]]
        assert import_export(memory, tmp_path / "all.jsonl")["deleted"] == 1
        assert said(memory) == [SAID[0], SAID[2]]


def test_what_a_policy_refuses_is_in_no_message_that_comes_over(tmp_path: Path) -> None:
    with filled(tmp_path / "one") as memory:
        memory.export(tmp_path / "all.jsonl")

    def policy(text: str, scope: object) -> str | None:
        return None if "Acme" in text else text.replace("Rome", "****")

    with open_memory(tmp_path / "other", policy=policy) as memory:
        import_export(memory, tmp_path / "all.jsonl")
        assert said(memory) == ["I live in ****.", "I moved to Oslo."]


def test_a_broken_export_names_its_line(tmp_path: Path) -> None:
    with filled(tmp_path / "one") as memory:
        memory.export(tmp_path / "all.jsonl")
        with (tmp_path / "all.jsonl").open("a") as file:
            file.write('{"kind": \n')
        with pytest.raises(InputError, match=r"all.jsonl: line \d+ is not valid JSON"):
            import_export(memory, tmp_path / "all.jsonl")


@pytest.mark.parametrize("mode", MODES)
def test_how_much_there_is(tmp_path: Path, mode: Mode, truth: dict[str, Any]) -> None:
    with filled(tmp_path / "data", truth) as memory:
        memory.add("I like milk.", user_id="bob", run_id="r1")
        driven: Any = MemoryDriver(memory, mode)
        whole = driven.stats()
        assert (whole["memories"], whole["users"], whole["runs"], whole["messages"]) == (4, 2, 1, 4)
        assert (whole["relations"], whole["ended_relations"]) == (3, 1)
        assert whole["history"] == {"ADD": 4}
        assert whole["embedder"] == {"name": memory.embedder.name, "dims": memory.embedder.dims}
        assert whole["bytes"]["store"] > 0
        one = driven.stats(user_id="bob")
        assert (one["memories"], one["users"], one["history"]) == (1, 1, {"ADD": 1})
        assert "bytes" not in one
