"""An encrypted SQLite store: a key per tenant, nothing readable in the file, and erasure by forgetting the key."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mem0_core import ConfigError, EncryptionError, Keyring, Memory, new_key
from mem0_core.stores.sql.changes.subjects import CONTENT_TABLES
from mem0_core.stores.sqlite.encryption.sealed_tables import SEALED_TABLES
from mem0_core.stores.sqlite.encryption.vault import MAGIC
from mem0_core.stores.sqlite.store import SQLiteStore
from tests.support import MODES, MemoryDriver, Mode, open_memory

MASTER = new_key()
ALICE: dict[str, Any] = {"user_id": "alice"}
BOB: dict[str, Any] = {"user_id": "bob"}
SAID = "My sister Quintessa lives in Zanzibar and plays the xylophone."
WORDS = ("quintessa", "zanzibar", "xylophon", "sister", "musicology", "lives", "plays")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


def open_encrypted(folder: Path, *, keys: Any = None, **parts: Any) -> Memory:
    given = Keyring(folder / "keys", master_key=MASTER) if keys is None else keys
    return open_memory(folder / "data", keys=given, **parts)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_encrypted(tmp_path) as memory:
        yield memory


def read_files(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()).lower()


def find_words(folder: Path, *words: str) -> list[str]:
    """Return the words that a folder contains, in UTF-8 or UTF-16."""
    content = read_files(folder)
    return [word for word in words if word.encode() in content or word.encode("utf-16-le") in content]


def fill(driver: Any) -> str:
    """Write to every table that has sealed columns, and return the id of a memory."""
    added = driver.add(
        [{"role": "user", "content": SAID, "name": "Melchior"}], metadata={"topic": "musicology"}, **ALICE
    )
    memory_id: str = added["results"][0]["id"]
    driver.add("My brother Bartholomew lives in Reykjavik.", **BOB)
    driver.update(memory_id, "My sister Quintessa moved to Ouagadougou.")
    driver.add("Quintessa lives in Tegucigalpa.", background=True, **ALICE)
    driver.flush()
    return memory_id


def test_a_search_finds_by_words_filters_and_relations(memory: Memory, mode: Mode) -> None:
    driver = MemoryDriver(memory, mode)
    driver.add(SAID, metadata={"topic": "musicology"}, **ALICE)
    driver.add("I cook soup.", **ALICE)
    assert driver.search("xylophone", **ALICE)["results"][0]["memory"] == SAID
    [found] = driver.search("anything", filters={"topic": "musicology"}, **ALICE)["results"]
    assert found["memory"] == SAID
    assert found["metadata"] == {"topic": "musicology"}
    assert driver.search("xylophone", **BOB)["results"] == []
    assert "Quintessa" in str(driver.search("Where does my sister live?", **ALICE)["relations"])


def test_a_search_without_a_user_finds_memories_of_all_tenants(memory: Memory, mode: Mode) -> None:
    driver = MemoryDriver(memory, mode)
    driver.add("The xylophone is red.", agent_id="bot", **ALICE)
    driver.add("The xylophone is green.", agent_id="bot", **BOB)
    driver.add("The xylophone is blue.", agent_id="bot")
    driver.add("The xylophone is black.", agent_id="other")
    found = {hit["memory"] for hit in driver.search("xylophone", agent_id="bot")["results"]}
    assert found == {"The xylophone is red.", "The xylophone is green.", "The xylophone is blue."}


def test_no_file_contains_a_word(tmp_path: Path, mode: Mode) -> None:
    with open_encrypted(tmp_path) as memory:
        fill(MemoryDriver(memory, mode))
        assert find_words(tmp_path, *WORDS, "ouagadougou", "melchior", "tegucigalpa", "bartholomew", "reykjavik") == []
    assert find_words(tmp_path, *WORDS, "ouagadougou", "melchior", "tegucigalpa", "bartholomew", "reykjavik") == []


def test_a_plain_store_contains_the_words_that_the_encrypted_one_hides(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
    assert set(find_words(tmp_path, *WORDS)) == set(WORDS)


def test_a_reopened_store_reads_everything(tmp_path: Path, mode: Mode) -> None:
    with open_encrypted(tmp_path) as memory:
        memory_id = fill(MemoryDriver(memory, mode))
    with open_encrypted(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        assert driver.get(memory_id)["memory"] == "My sister Quintessa moved to Ouagadougou."
        assert [row["old_memory"] for row in driver.history(memory_id)] == [None, SAID]
        assert driver.search("Reykjavik", **BOB)["results"]
        assert driver.doctor(repair=False)["findings"] == []


def test_every_content_column_is_sealed(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        fill(memory)
        path = memory.store.maintenance.file
    assert path is not None
    plain = {"id", "memory_id", "key", "source"}  # ids of memories; the key of an import; the source of messages
    with closing(sqlite3.connect(path)) as db:
        for table, columns in CONTENT_TABLES.items():
            for column in set(columns) - plain:
                assert column in SEALED_TABLES[table].columns, f"{table}.{column}"
                values = [value for (value,) in db.execute(f"SELECT {column} FROM {table}") if value is not None]
                assert all(value.startswith(MAGIC) for value in values), f"{table}.{column}"


def test_a_statement_that_stores_a_plain_value_is_refused(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        fill(memory)
        path = memory.store.maintenance.file
    assert path is not None
    with closing(sqlite3.connect(path)) as db:
        for table, spec in SEALED_TABLES.items():
            for column in spec.columns:
                db.execute(f"UPDATE {table} SET {column} = {column}")
                if db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                    with pytest.raises(sqlite3.IntegrityError, match=f"{table}.{column} must be sealed"):
                        db.execute(f"UPDATE {table} SET {column} = 'plain'")


# --- keys --------------------------------------------------------------------------------------------------------


def test_an_encrypted_store_is_refused_without_keys(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add(SAID, **ALICE)
    with pytest.raises(EncryptionError, match="is encrypted: pass its keys"):
        open_memory(tmp_path / "data")


def test_another_keyring_is_refused(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add(SAID, **ALICE)
    with pytest.raises(EncryptionError, match="pass those, not others"):
        open_encrypted(tmp_path, keys=Keyring(tmp_path / "others", master_key=MASTER))


def test_another_key_of_a_tenant_is_refused(tmp_path: Path, mode: Mode) -> None:
    keys = {"user_id=alice": new_key(), "user_id=bob": new_key()}
    with open_encrypted(tmp_path, keys=dict(keys)) as memory:
        memory.add(SAID, **ALICE)
        memory.add("I ski.", **BOB)
    with open_encrypted(tmp_path, keys={**keys, "user_id=alice": new_key()}) as memory:
        driver = MemoryDriver(memory, mode)
        with pytest.raises(EncryptionError, match="another key encrypted this data of user_id=alice"):
            driver.get_all(**ALICE)
        assert driver.get_all(**BOB)["results"][0]["memory"] == "I ski."


def test_a_missing_key_is_an_error_that_names_the_tenant(tmp_path: Path, mode: Mode) -> None:
    with open_encrypted(tmp_path, keys={"user_id=alice": new_key()}.get) as memory:
        driver = MemoryDriver(memory, mode)
        driver.add(SAID, **ALICE)
        with pytest.raises(EncryptionError, match="no key for user_id=bob"):
            driver.add("I ski.", **BOB)
        assert driver.get_all(**BOB)["results"] == []


def test_a_function_of_keys_that_fails_is_an_error_without_its_text(tmp_path: Path) -> None:
    def fail(tenant: str) -> bytes:
        raise RuntimeError("token s3cret")

    with open_encrypted(tmp_path, keys=fail) as memory, pytest.raises(EncryptionError) as raised:
        memory.add(SAID, **ALICE)
    assert "s3cret" not in str(raised.value)
    assert "RuntimeError" in str(raised.value)


@pytest.mark.parametrize("keys", [3, b"x" * 32, ["a"]])
def test_other_forms_of_keys_are_refused(tmp_path: Path, keys: Any) -> None:
    with pytest.raises(ConfigError, match="keys: the folder of a Keyring"):
        open_encrypted(tmp_path, keys=keys)


def test_the_keys_of_a_configuration_encrypt_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM0_CORE_MASTER_KEY", MASTER)
    config = {"keys": str(tmp_path / "keys")}
    with open_memory(tmp_path / "data", config=config) as memory:
        memory.add(SAID, **ALICE)
    assert find_words(tmp_path, *WORDS) == []
    with open_memory(tmp_path / "data", config=config) as memory:
        assert memory.search("xylophone", **ALICE)["results"]


def test_a_store_with_plain_data_is_not_encrypted(tmp_path: Path) -> None:
    with open_memory(tmp_path / "data") as memory:
        memory.add(SAID, **ALICE)
    with pytest.raises(EncryptionError, match="contains data that is not encrypted"):
        open_encrypted(tmp_path)
    with open_memory(tmp_path / "data") as memory:
        assert memory.get_all(**ALICE)["results"]


def test_an_empty_plain_store_becomes_encrypted(tmp_path: Path) -> None:
    open_memory(tmp_path / "data").close()
    with open_encrypted(tmp_path) as memory:
        memory.add(SAID, **ALICE)
    assert find_words(tmp_path, *WORDS) == []


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"vector_store": {"provider": "pgvector"}}, "vector_store 'pgvector'"),
        ({"graph_store": {"provider": "ladybug"}}, "graph_store 'ladybug'"),
    ],
)
def test_a_projection_with_plain_data_is_refused(tmp_path: Path, config: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        open_encrypted(tmp_path, config=config)


def test_keys_beside_a_store_that_the_caller_made_are_refused(tmp_path: Path) -> None:
    with closing(SQLiteStore(":memory:")) as store, pytest.raises(ConfigError, match="pass them to the store"):
        open_memory(tmp_path, store=store, keys={})


# --- authenticity ------------------------------------------------------------------------------------------------


def alter(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories SET text = (SELECT o.text FROM memories AS o WHERE o.row <> memories.row)",
        "UPDATE memories SET text = metadata",
        "UPDATE memories SET text = CAST(substr(text, 1, length(text) - 4) || x'00000000' AS BLOB)",
    ],
    ids=["of another record", "of another column", "with another tag"],
)
def test_an_altered_or_moved_value_is_an_error(tmp_path: Path, statement: str) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add("I ski.", **ALICE)
        memory.add("I sing.", **ALICE)
        path = memory.store.maintenance.file
    assert path is not None
    alter(path, statement)
    with open_encrypted(tmp_path) as memory, pytest.raises(EncryptionError, match="altered, or moved"):
        memory.get_all(**ALICE)


# --- forgetting --------------------------------------------------------------------------------------------------


def test_erasing_a_user_makes_earlier_backups_of_the_user_unreadable(tmp_path: Path, mode: Mode) -> None:
    backup = tmp_path / "backup.db"
    with open_encrypted(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        fill(driver)
        driver.backup(backup)
        receipt = driver.erase(reason="request 7", **ALICE)
        assert receipt["complete"]
        assert driver.get_all(**BOB)["results"]
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").mkdir()
    shutil.copy(backup, tmp_path / "data" / "memory.db")
    with open_encrypted(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        assert driver.get_all(**BOB)["results"][0]["memory"] == "My brother Bartholomew lives in Reykjavik."
        with pytest.raises(EncryptionError, match="if the key was forgotten, the data is erased"):
            driver.get_all(**ALICE)


def test_a_user_who_was_erased_can_come_back_and_the_backup_stays_unreadable(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add(SAID, **ALICE)
        memory.backup(tmp_path / "backup.db")
        memory.delete_all(purge=True, **ALICE)
        memory.add("I ski.", **ALICE)
        assert memory.get_all(**ALICE)["results"][0]["memory"] == "I ski."
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").mkdir()
    shutil.copy(tmp_path / "backup.db", tmp_path / "data" / "memory.db")
    with open_encrypted(tmp_path) as memory, pytest.raises(EncryptionError, match="another key encrypted"):
        memory.get_all(**ALICE)


def test_erasing_a_part_of_a_user_keeps_the_key(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add("I ski.", run_id="r", **ALICE)
        memory.add("I sing.", **ALICE)
        memory.delete_all(purge=True, run_id="r", **ALICE)
        memory.delete_all(**BOB)
        assert [one["memory"] for one in memory.get_all(**ALICE)["results"]] == ["I sing."]


def test_another_process_does_not_write_with_a_forgotten_key(tmp_path: Path) -> None:
    """Two memories over one file stand for two processes: each keeps keys of its own."""
    with open_encrypted(tmp_path) as first, open_encrypted(tmp_path) as second:
        first.add("I ski.", **ALICE)
        second.add("I sing.", **ALICE)
        first.erase(reason="request 7", **ALICE)
        second.add("I cook.", **ALICE)
        assert [one["memory"] for one in first.get_all(**ALICE)["results"]] == ["I cook."]
    with open_encrypted(tmp_path) as third:
        assert [one["memory"] for one in third.get_all(**ALICE)["results"]] == ["I cook."]


def test_a_mapping_loses_the_key_of_an_erased_user(tmp_path: Path) -> None:
    keys = {"user_id=alice": new_key(), "user_id=bob": new_key()}
    with open_encrypted(tmp_path, keys=keys) as memory:
        memory.add(SAID, **ALICE)
        memory.erase(reason="request 7", **ALICE)
    assert list(keys) == ["user_id=bob"]


# --- key rings ---------------------------------------------------------------------------------------------------


def test_a_new_master_key_opens_the_store_and_the_old_one_does_not(tmp_path: Path) -> None:
    with open_encrypted(tmp_path) as memory:
        memory.add(SAID, **ALICE)
        memory.add("I ski.", **BOB)
    new = new_key()
    assert Keyring(tmp_path / "keys", master_key=MASTER).rotate(new) == 2
    with open_encrypted(tmp_path, keys=Keyring(tmp_path / "keys", master_key=new)) as memory:
        assert memory.get_all(**ALICE)["results"][0]["memory"] == SAID
    with pytest.raises(EncryptionError, match="not the one that wrapped the keys"):
        Keyring(tmp_path / "keys", master_key=MASTER)


def test_an_interrupted_rotation_can_be_repeated(tmp_path: Path) -> None:
    ring = Keyring(tmp_path / "keys", master_key=MASTER)
    keys = {tenant: ring.key(tenant, create=True) for tenant in ("user_id=alice", "user_id=bob")}
    before = (tmp_path / "keys" / "keyring.json").read_bytes()
    first = sorted((tmp_path / "keys").glob("??/*.key"))[0]
    held, new = first.read_bytes(), new_key()
    ring.rotate(new)
    first.write_bytes(held)
    (tmp_path / "keys" / "keyring.json").write_bytes(before)
    assert Keyring(tmp_path / "keys", master_key=MASTER).rotate(new) == 2
    ring = Keyring(tmp_path / "keys", master_key=new)
    assert {tenant: ring.key(tenant) for tenant in keys} == keys


def test_a_key_file_of_another_tenant_is_refused(tmp_path: Path) -> None:
    ring = Keyring(tmp_path / "keys", master_key=MASTER)
    ring.key("user_id=alice", create=True)
    [alice] = (tmp_path / "keys").glob("??/*.key")
    held = alice.read_bytes()
    ring.key("user_id=bob", create=True)
    [bob] = set((tmp_path / "keys").glob("??/*.key")) - {alice}
    bob.write_bytes(held)
    with pytest.raises(EncryptionError, match="of another tenant"):
        ring.key("user_id=bob")


def test_a_forgotten_key_leaves_no_file(tmp_path: Path) -> None:
    ring = Keyring(tmp_path / "keys", master_key=MASTER)
    first = ring.key("user_id=alice", create=True)
    assert ring.forget("user_id=alice")
    assert list((tmp_path / "keys").glob("??/*")) == []
    assert ring.key("user_id=alice") is None
    assert ring.key("user_id=alice", create=True) != first


def test_the_files_of_a_key_ring_belong_to_their_owner(tmp_path: Path) -> None:
    Keyring(tmp_path / "keys", master_key=MASTER).key("user_id=alice", create=True)
    for path in (tmp_path / "keys").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_master_key_comes_from_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "master.key"
    file.write_text(f"{MASTER}\n")
    file.chmod(0o600)
    Keyring(tmp_path / "keys", master_key=MASTER)
    assert Keyring(tmp_path / "keys", master_key=file).identity
    monkeypatch.setenv("MEM0_CORE_MASTER_KEY", str(file))
    assert Keyring(tmp_path / "keys").identity
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        Keyring(tmp_path / "keys")


@pytest.mark.parametrize("given", ["", "short", "x" * 44, b"x" * 31])
def test_a_malformed_master_key_is_refused_without_being_quoted(tmp_path: Path, given: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        Keyring(tmp_path / "keys", master_key=given)
    assert not given or str(given) not in str(raised.value)


def test_a_missing_master_key_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_CORE_MASTER_KEY", raising=False)
    with pytest.raises(ConfigError, match="set MEM0_CORE_MASTER_KEY"):
        Keyring(tmp_path / "keys")


@pytest.mark.parametrize("content", [b"{", b"[]", json.dumps({"master": "x"}).encode(), b"\xff"])
def test_a_damaged_key_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    ring = Keyring(tmp_path / "keys", master_key=MASTER)
    ring.key("user_id=alice", create=True)
    [file] = (tmp_path / "keys").glob("??/*.key")
    file.write_bytes(content)
    with pytest.raises(EncryptionError):
        ring.key("user_id=alice")


def test_zeros_and_copies_that_a_killed_process_left_of_a_key_are_no_key(tmp_path: Path) -> None:
    ring = Keyring(tmp_path, master_key=bytes(32))
    ring.key("user_id=ana", create=True)
    (path,) = tmp_path.glob("??/*.key")
    copies = tmp_path / ".mem0-core-of-a-killed-process"
    copies.mkdir()
    (copies / path.name).write_bytes(path.read_bytes())
    assert ring.forget("user_id=ana")
    assert not list(tmp_path.glob("**/*.key"))
    path.write_bytes(bytes(100))
    assert ring.key("user_id=ana") is None
    assert ring.rotate(bytes(range(32))) == 0
    assert ring.key("user_id=ana", create=True) is not None
