"""Everything of one store comes to be in another: through kills too, verified, with nothing written meanwhile lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory, Principal, Scope, StoreError
from mem0_core.admin.transfer import compute_digests, describe_differences, migrate, open_archive
from mem0_core.domain.records import Message
from mem0_core.interfaces import Lease, MemoryStore, Summary
from mem0_core.interfaces.archive import SECTIONS, Archive
from mem0_core.stores.sqlite.store import SQLiteStore
from tests.support import open_memory

TRANSFER_PROCESS = Path(__file__).with_name("transfer_process.py")
LATER = "2026-01-01T00:00:00+00:00"
ANA = Scope("ana")


def live(folder: Path, **parts: Any) -> None:
    """A store with something of everything in it."""
    with open_memory(folder, **parts) as memory:
        for number in range(12):
            said = f"I live in Porto and my {number}th bee is called Zoé-{number}."
            memory.add(said, user_id="ana", run_id="r" if number % 3 else None, metadata={"b": 1.5, "a": number})
        memory.add("I moved to Berlin.", user_id="ana", timestamp="2026-02-01")
        memory.add([{"role": "assistant", "content": "I keep 日本 notes.\nTwo lines."}], agent_id="helper", infer=False)
        memory.add("I drink tea.", user_id="ben", expiration_date="2099-01-01")
        tea, bee, gone, last = (memory.add(f"I own {what}.", user_id="ben")["results"][0]["id"] for what in "abcd")
        memory.update(tea, "I drink coffee.")
        memory.pin(bee)
        memory.feedback(bee, True)
        memory.delete(gone)
        memory.delete(last, purge=True)  # so that the highest number given is of a memory that is gone
        memory.add_many([{"role": "user", "content": "Imported."}], user_id="ana", key="mails")
        store: Any = memory.store
        if hasattr(store, "merges"):
            memory.merge("entities", names=["Porto", "Berlin"], user_id="ana", dry_run=False)
        lease = put_off(store)
        store.save_summary(ANA, Summary("They talked about bees.", 3, LATER), lease)
        store.jobs.enqueue(
            Scope("ben"), "remember", at=LATER, messages=[Message("user", "Wait for me.")], options={"a": 1}
        )
        failed = store.jobs.lease("w", seconds=60)
        store.jobs.release_failed(Lease("w", (failed[0].row,)), error="down", retry_in=None)
        store.jobs.enqueue(Scope("cleo"), "remember", at=LATER, messages=[Message("user", "Me too.", name="Cleo")])
        if hasattr(store, "spaces"):
            share(memory)


def share(memory: Memory) -> None:
    """Let two users share a space, in which a write waits."""
    ana, ben = Principal(memory, "ana"), Principal(memory, "ben")
    ana.create_space("bees", requires_approval=True)
    ana.set_member("bees", "ben", "writer")
    ben.add("The hive needs honey.", space="bees")


def put_off(store: Any) -> Any:
    store.jobs.enqueue(ANA, "summary", at=LATER)
    (job,) = store.jobs.lease("w", seconds=60)
    return Lease("w", (job.row,))


def seen(memory: Memory, *, exactly: bool = False) -> Any:
    """What users see of a store."""
    found: dict[str, Any] = {}
    for user in ("ana", "ben"):
        ids: Any = {"user_id": user}
        found[user] = {
            "all": memory.get_all(**ids),
            "search": memory.search("Where do I live with my bees?", **ids),
            "then": memory.search("Where do I live?", as_of="2026-01-15", **ids),
            "merges": memory.merges(**ids) if hasattr(memory.store, "merges") else [],
            "relations": memory.relations(ended=True, **ids),
            "context": memory.context("bees", **ids),
            "history": [memory.history(entry["id"]) for entry in memory.get_all(**ids)["results"]],
            "pending": memory.pending(**ids),
            "spaces": [Principal(memory, user).spaces(), *map(Principal(memory, user).pending_writes, ["bees"])],
        }
    found["agent"] = memory.search("notes", agent_id="helper")
    return found if exactly else _without_scores(found)


def _without_scores(found: Any) -> Any:
    """FAISS counts in half precision, pgvector does not."""
    if isinstance(found, dict):
        return {name: _without_scores(part) for name, part in found.items() if name != "score"}
    return [_without_scores(part) for part in found] if isinstance(found, list) else found


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived") / "one"
    live(folder)
    return folder


@pytest.fixture
def source(tmp_path: Path, lived: Path) -> Path:
    return Path(shutil.copytree(lived, tmp_path / "one"))


def at_both(every: Iterable[Any], *, server: Iterable[Any]) -> list[Any]:
    """Each of `every` at a file, and some at a server, where all take minutes; they go the same way there."""
    files = [pytest.param("sqlite", one, id=f"sqlite-{one}") for one in every]
    marks = pytest.mark.needs_server
    return files + [pytest.param("postgres", one, id=f"postgres-{one}", marks=marks) for one in server]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where there is nothing yet."""
    if request.param == "sqlite":
        return str(tmp_path / "two")
    return empty_schema(request.getfixturevalue("postgres_server_url"), "mem0_two")


def empty_schema(url: str, name: str) -> str:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
    return f"{url}#{name}"


def store_at(place: str | Path) -> MemoryStore:
    if str(place).startswith("postgres"):
        from mem0_core.stores.postgres.store import PostgresStore

        url, _, schema = str(place).partition("#")
        return PostgresStore(url, schema=schema)
    return SQLiteStore(Path(place) / "memory.db", durability="process")


@contextlib.contextmanager
def memory_at(place: str | Path, tmp_path: Path) -> Iterator[Memory]:
    store = store_at(place)
    with open_memory(tmp_path / "of the memory", store=store, config={"background": {"drain": 0}}) as memory:
        yield memory


@contextlib.contextmanager
def both(source: str | Path, target: str | Path) -> Iterator[tuple[Archive, Archive]]:
    with open_archive(str(source)) as one, open_archive(str(target), create=True) as other:
        yield one, other


def test_the_store_of_these_tests_has_something_of_everything(source: Path) -> None:
    with open_archive(str(source)) as archive:
        held = compute_digests(archive)
    assert [name for name, digest in held.items() if not digest.count] == []


@pytest.mark.parametrize(("place", "chunk"), at_both([1, 5, 1000], server=[7, 1000]), indirect=["place"])
def test_everything_comes_over_and_is_seen_as_before(tmp_path: Path, source: Path, place: str, chunk: int) -> None:
    with memory_at(source, tmp_path) as memory:
        before = seen(memory)
    with both(source, place) as (one, other):
        done = migrate(one, other, chunk=chunk)
        assert done.loaded == {name: digest.count for name, digest in done.digests.items() if name != "vectors"}
        assert describe_differences(compute_digests(one, chunk=4), compute_digests(other, chunk=7)) == []
        assert one.store_metadata().identity != other.store_metadata().identity
    with memory_at(place, tmp_path) as memory:
        assert seen(memory) == before
        assert memory.add("Imported again.", user_id="ana")["results"][0]["event"] == "ADD"
        mails = memory.add_many([{"role": "user", "content": "Imported."}], user_id="ana", key="mails")
        assert (mails["added"], mails["known"]) == (0, 0), "the mark of the import came too"


@pytest.mark.needs_server
def test_there_and_back_again(tmp_path: Path, source: Path, postgres_server_url: str) -> None:
    there = empty_schema(postgres_server_url, "mem0_there")
    with memory_at(source, tmp_path) as memory:
        before = seen(memory, exactly=True)
    with both(source, there) as (one, other):
        migrate(one, other, chunk=20)
    with both(there, tmp_path / "back") as (one, other):
        migrate(one, other, chunk=30)
    with both(source, tmp_path / "back") as (one, other):
        assert describe_differences(compute_digests(one), compute_digests(other)) == []
    with memory_at(tmp_path / "back", tmp_path) as memory:
        assert seen(memory, exactly=True) == before


@pytest.mark.needs_server
def test_a_store_that_lived_in_postgresql_moves_into_a_file(tmp_path: Path, postgres_server_url: str) -> None:
    there = empty_schema(postgres_server_url, "mem0_there")
    live(tmp_path / "of the memory", store=store_at(there))
    with memory_at(there, tmp_path) as memory:
        before = seen(memory)
    with both(there, tmp_path / "file") as (one, other):
        migrate(one, other, chunk=30)
    with memory_at(tmp_path / "file", tmp_path) as memory:
        assert seen(memory) == before


def test_numbers_of_what_is_gone_are_not_given_again(tmp_path: Path, source: Path, place: str) -> None:
    with both(source, place) as (one, other):
        given = dict(one.store_metadata().max_row_numbers)
        migrate(one, other)
        assert all(other.store_metadata().max_row_numbers[name] >= last for name, last in given.items())
        assert other.store_metadata().seq >= one.store_metadata().seq
    with memory_at(place, tmp_path) as memory:
        new = memory.store.get(memory.add("I own a boat.", user_id="ben")["results"][0]["id"])
        assert new is not None
        assert new.row is not None
        assert new.row > given["memories"]
        with open_archive(str(source)) as one:
            assert new.seq > one.store_metadata().seq


def test_jobs_are_done_once_and_after_the_move(tmp_path: Path, source: Path) -> None:
    first = SQLiteStore(source / "memory.db")
    leased = first.jobs.lease("old", seconds=600)
    with both(source, tmp_path / "two") as (one, other):
        migrate(one, other)
    with pytest.raises(StoreError, match="frozen by a migration"):
        first.jobs.mark_done(Lease("old", tuple(job.row for job in leased)))
    first.close()
    with open_memory(tmp_path / "two") as memory:
        assert memory.flush(timeout=20)
        assert [entry["memory"] for entry in memory.get_all(user_id="cleo")["results"]] == ["Me too."]


# --- the source meanwhile ------------------------------------------------------------------------------------------


WRITES: dict[str, Callable[[Memory, str], Any]] = {
    "add": lambda memory, id: memory.add("I write.", user_id="ana"),
    "add in the background": lambda memory, id: memory.add("I write.", user_id="ana", background=True),
    "update": lambda memory, id: memory.update(id, "I change."),
    "delete": lambda memory, id: memory.delete(id),
    "purge": lambda memory, id: memory.delete(id, purge=True),
    "pin": lambda memory, id: memory.pin(id),
    "feedback": lambda memory, id: memory.feedback(id, True),
    "delete_all": lambda memory, id: memory.delete_all(user_id="ana"),
    "reset": lambda memory, id: memory.reset(),
    "rebuild": lambda memory, id: memory.rebuild(),
}


@pytest.mark.parametrize(
    ("place", "verb"), at_both(WRITES, server=["add", "delete", "pin", "reset"]), indirect=["place"]
)
def test_nothing_is_written_to_the_source_from_the_beginning_on(
    tmp_path: Path, source: Path, place: str, verb: str
) -> None:
    with both(source, place) as (one, other):
        migrate(one, other)
    with memory_at(place, tmp_path) as elsewhere:  # opened before it is migrated on
        id = elsewhere.get_all(user_id="ana")["results"][0]["id"]
        with both(place, tmp_path / "three") as (one, other):
            before = compute_digests(one)

            def write(section: str, count: int) -> None:
                with pytest.raises(StoreError, match="migrate"):
                    WRITES[verb](elsewhere, id)

            migrate(one, other, chunk=100, on_progress=write)
            write("", 0)
            assert compute_digests(one) == before
            one.unfreeze()
            WRITES[verb](elsewhere, id)


def test_it_can_be_released_at_the_end(tmp_path: Path, source: Path) -> None:
    with both(source, tmp_path / "two") as (one, other):
        migrate(one, other, release=True)
        assert one.freeze_token() is None
        assert migrate(one, other, release=True).already, "a second time does nothing"
    with open_memory(source) as memory:
        assert memory.add("I write.", user_id="ana")["results"]


# --- interrupted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.needs_server, pytest.mark.slow])],
    indirect=True,
)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_one_that_is_killed_again_and_again_goes_on_and_comes_to_its_end(source: Path, place: str) -> None:
    killed, done = 0, ""
    for run in range(40):
        process = start(source, place)
        assert process.stdin is not None
        assert process.stdout is not None
        for line_number, line in enumerate(process.stdout):
            if line.startswith("done"):
                done = line
                break
            process.stdin.write("\n")
            process.stdin.flush()
            if line_number == 7 + run % 3:  # some chunks further than the last one
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        if done:
            break
        killed += 1
        with pytest.raises(StoreError, match="has not finished"):
            store_at(place)
    assert done == "done, resumed: True\n"
    assert killed > 2
    with both(source, place) as (one, other):
        assert describe_differences(compute_digests(one), compute_digests(other)) == []


def start(source: Path, target: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, str(TRANSFER_PROCESS), str(source), target]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, env={**os.environ, "PYTHONPATH": root})


class Stopped(BaseException):
    """As KeyboardInterrupt."""


def stop_at(name: str) -> Callable[[str, int], None]:
    def on_progress(section: str, count: int) -> None:
        if section == name:
            raise Stopped

    return on_progress


@pytest.mark.parametrize(
    ("place", "section"),
    at_both([section.name for section in SECTIONS] + ["verify"], server=["memories", "evidence", "aliases", "verify"]),
    indirect=["place"],
)
def test_it_goes_on_from_wherever_it_stopped(source: Path, place: str, section: str) -> None:
    with both(source, place) as (one, other):
        with pytest.raises(Stopped):
            migrate(one, other, chunk=2, on_progress=stop_at(section))
        loaded: list[str] = []
        done = migrate(one, other, chunk=2, on_progress=lambda name, count: loaded.append(name))
        assert done.resumed
        names = [one.name for one in SECTIONS]
        begun = names.index(section) if section in names else len(names)
        assert {names.index(name) for name in loaded if name != "verify"} <= set(range(begun, len(names)))


def test_a_source_that_was_released_in_between_is_not_mixed_in(tmp_path: Path, source: Path) -> None:
    with both(source, tmp_path / "two") as (one, other):
        with pytest.raises(Stopped):
            migrate(one, other, on_progress=stop_at("nodes"))
        one.unfreeze()
        with pytest.raises(StoreError, match="released"):
            migrate(one, other)


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_target_with_something_in_it_is_refused_and_the_source_stays_free(
    tmp_path: Path, source: Path, place: str
) -> None:
    with memory_at(place, tmp_path) as memory:
        memory.add("I was here first.", user_id="zed")
    with both(source, place) as (one, other):
        before = compute_digests(other)
        with pytest.raises(StoreError, match="not empty"):
            migrate(one, other)
        assert compute_digests(other) == before
        assert one.freeze_token() is None


def test_half_of_another_migration_is_refused_as_target_and_as_source(tmp_path: Path, source: Path) -> None:
    live(tmp_path / "three")
    with both(source, tmp_path / "two") as (one, other):
        with pytest.raises(Stopped):
            migrate(one, other, on_progress=stop_at("nodes"))
        with open_archive(str(tmp_path / "three")) as foreign, pytest.raises(StoreError, match="another store"):
            migrate(foreign, other)
        with (
            open_archive(str(tmp_path / "four"), create=True) as empty,
            pytest.raises(StoreError, match="unfinished migration"),
        ):
            migrate(other, empty)


def test_a_store_is_not_migrated_to_itself(source: Path) -> None:
    with both(source, source) as (one, other), pytest.raises(StoreError, match="same store"):
        migrate(one, other)


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"), open_archive(str(tmp_path / "nowhere")):
        pass
    assert not (tmp_path / "nowhere").exists()


def test_a_target_that_was_emptied_since_is_filled_anew(tmp_path: Path, source: Path) -> None:
    with both(source, tmp_path / "two") as (one, other):
        migrate(one, other)
        with open_memory(tmp_path / "two") as memory:
            memory.reset()
        assert migrate(one, other).loaded["memories"]


# --- verified --------------------------------------------------------------------------------------------------------

DAMAGE = {
    "memories": "UPDATE memories SET text = text || ' not' WHERE row = 2",
    "vectors": "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE row = 3) WHERE row = 2",
    "history": "UPDATE history SET event = 'ADD' WHERE event = 'DELETE'",
    "edges": "UPDATE edges SET weight = weight + 1",
    "evidence": "DELETE FROM evidence WHERE memory = (SELECT max(memory) FROM evidence)",
    "messages": "DELETE FROM messages WHERE row = 1",
    "jobs": "UPDATE jobs SET state = 'failed'",
}


def execute(place: str, sql: str) -> int:
    """Change a store behind its back; returns how many rows."""
    if not place.startswith("postgres"):
        with contextlib.closing(sqlite3.connect(Path(place) / "memory.db")) as db, db:
            return db.execute(sql).rowcount
    import psycopg

    url, _, schema = place.partition("#")
    with psycopg.connect(url, options=f"-c search_path={schema},public") as server:
        return server.execute(sql.encode()).rowcount


@pytest.mark.parametrize(
    ("place", "what"), at_both(DAMAGE, server=["vectors", "history", "evidence"]), indirect=["place"]
)
def test_what_was_copied_wrongly_is_found_and_the_target_does_not_serve(source: Path, place: str, what: str) -> None:
    def damage(section: str, count: int) -> None:
        if section == SECTIONS[-1].name:
            assert execute(place, DAMAGE[what]) > 0

    differs = pytest.raises(StoreError, match=f"differs from the source in .*{what}")
    with both(source, place) as (one, other), differs:
        migrate(one, other, on_progress=damage)
    with pytest.raises(StoreError, match="has not finished"):
        store_at(place)


def test_every_column_is_carried_or_known_to_be_derived(source: Path) -> None:
    """A table or column that is new in the schema has to be thought of here."""
    derived = {
        *("meta", "words", "sketches", "node_tombstones", "edge_tombstones", "sqlite_sequence"),
        *("vectors", "node_vectors", "edge_vectors"),  # columns of the sections that they are of
    }
    own = {"jobs": {"part", "leased_by", "leased_until"}}
    carried = {section.name: set(section.columns) for section in SECTIONS}
    carried["memories"] -= {"vector", "session"}
    for name in ("nodes", "edges"):
        carried[name] -= {"vector"}
    carried["history"] -= {"place"}
    with contextlib.closing(sqlite3.connect(source / "memory.db")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        held = {name: {row[1] for row in db.execute(f"PRAGMA table_info({name})")} for name in tables}
    held = {name: columns for name, columns in held.items() if name not in derived and not name.startswith("words_")}
    assert {name: columns - own.get(name, set()) for name, columns in held.items()} == carried
