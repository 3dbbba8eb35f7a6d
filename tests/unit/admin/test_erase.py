"""Erasure of a subject: nothing is left in tables and files, and the receipt proves it."""

from __future__ import annotations

import gc
import json
import os
import platform
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mem0_core import Memory
from mem0_core._system.files import find_abandoned
from mem0_core._system.text_caches import text_cache
from mem0_core.admin._fingerprints import FingerprintBuilder, Fingerprints
from mem0_core.errors import InputError, ScopeError, StoreError
from mem0_core.recall import cache as search_cache
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_texts

SECRETS = [
    f"The secret hobby number {number} of Alice is kite flying in the city of Bergen-{number}" for number in range(40)
]
REASON = "request 4711"


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    return mode


def fill(memory: Memory) -> None:
    for number, text in enumerate(SECRETS):
        memory.add(text, user_id="alice", run_id=f"r{number % 3}", agent_id="guide", metadata={"note": text[::-1]})
    first = memory.get_all(user_id="alice")["results"][0]["id"]
    memory.update(first, "Alice keeps a new and unusual hobby: collecting antique barometers")
    memory.delete(memory.get_all(user_id="alice")["results"][1]["id"])
    memory.add("Bob plays the cello in the orchestra of Tromso every Friday", user_id="bob", agent_id="guide")


def residue(folder: Path) -> list[str]:
    """Return the files that contain a part of the secrets."""
    parts = [text[4:30].encode() for text in SECRETS] + [b"antique barometers"]
    return [
        path.name for path in folder.rglob("*") if path.is_file() and any(part in path.read_bytes() for part in parts)
    ]


def test_nothing_of_an_erased_user_is_left(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert residue(tmp_path)
        receipt = MemoryDriver(memory, mode).erase(user_id="alice", reason=REASON)
        assert receipt["complete"], receipt["probes"]
        assert receipt["erased"]["memories"] >= 39
        assert receipt["fingerprints"] > 100
        assert residue(tmp_path) == []
        assert memory.get_all(user_id="alice")["results"] == []
        assert len(result_texts(memory.search("cello", user_id="bob"))) == 1
        assert memory.doctor()["healthy"]
    assert residue(tmp_path) == []


def list_texts_in_memory(word: str) -> list[str]:
    """Return the texts with a word that objects of this process hold; local variables do not count."""
    gc.collect()
    found: list[str] = []
    for one in gc.get_objects():
        if isinstance(one, dict):
            values = [*one, *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            values = list(one)
        elif str(type(one).__module__).startswith("mem0_"):
            slots = {name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())}
            values = [getattr(one, name, None) for name in slots]
        else:
            continue
        arrays = [value for value in values if isinstance(value, np.ndarray) and value.dtype == object]
        values += [text for array in arrays for text in array]
        found += [value for value in values if isinstance(value, str) and word in value.casefold()]
    return found


def use(memory: Memory, word: str) -> None:
    """Call what keeps texts, names, queries or vectors of a user in memory."""
    user_id = f"{word} id"
    memory.add(f"My friend {word.title()} lives in Bergen.", user_id=user_id)
    memory.add(f"It rained a lot. {word.title()} sings in a choir. " * 200, user_id=user_id)
    for _ in range(2):
        memory.search(f"Where does {word.title()} live?", user_id=user_id)
    memory.context(f"Where does {word.title()} live?", user_id=user_id)
    memory.traverse(word.title(), user_id=user_id)
    memory.relations(user_id=user_id)


def test_nothing_of_an_erased_user_stays_in_the_memory_of_the_process(tmp_path: Path, mode: Mode) -> None:
    word = "".join(reversed("tsafpmilp"))  # no constant of a module
    with open_memory(tmp_path) as memory:
        use(memory, word)
        assert list_texts_in_memory(word)
        MemoryDriver(memory, mode).erase(user_id=f"{word} id", reason=REASON)
        assert list_texts_in_memory(word) == []


def test_the_next_search_of_anyone_drops_what_another_process_erased(tmp_path: Path, mode: Mode) -> None:
    word = "".join(reversed("tsafpmilp"))  # no constant of a module
    with open_memory(tmp_path) as memory, open_memory(tmp_path) as other:
        use(memory, word)
        memory.add("I live in Oslo.", user_id="bob")
        other.erase(user_id=f"{word} id", reason=REASON)
        assert list_texts_in_memory(word)
        MemoryDriver(memory, mode).search("Where do I live?", user_id="bob")
        memory.traverse("bob", user_id="bob")
        assert list_texts_in_memory(word) == []


@pytest.mark.parametrize("scope_size", ["small", "large"])
def test_the_first_search_of_a_process_drops_what_another_one_erased(
    tmp_path: Path, mode: Mode, scope_size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    keep = text_cache(8)(read.append)
    with open_memory(tmp_path, graph=False) as memory, open_memory(tmp_path) as other:
        memory.add("I live in Bergen.", user_id="ana")
        memory.add("I live in Oslo.", user_id="bob")
        other.erase(user_id="ana", reason=REASON)
        keep("a text of Ana")  # the erasure was in this process, and has dropped what the adds left
        if scope_size == "large":
            monkeypatch.setattr(search_cache, "_MAX_SCOPE_MEMORIES", 0)
        MemoryDriver(memory, mode).search("Where do I live?", user_id="bob")
        keep("a text of Ana")
    assert len(read) == 2


def test_searches_of_a_large_scope_drop_what_another_process_erased(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "".join(reversed("tsafpmilp"))  # no constant of a module
    with open_memory(tmp_path, graph=False) as memory, open_memory(tmp_path, graph=False) as other:
        memory.add(f"My friend {word} lives in Bergen.", user_id="ana")
        for number in range(4):
            memory.add(f"I like soup {number}.", user_id="bob")
        monkeypatch.setattr(search_cache, "_MAX_SCOPE_MEMORIES", 2)
        for user_id in ("bob", "ana"):
            memory.search("soup", user_id=user_id)
        other.erase(user_id="ana", reason=REASON)
        assert list_texts_in_memory(word)
        MemoryDriver(memory, mode).search("soup", user_id="bob")
        assert list_texts_in_memory(word) == []


def test_a_receipt_is_signed_and_holds_no_text(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        driver = MemoryDriver(memory, mode)
        receipt = driver.erase("alice", reason=REASON)
        text = json.dumps(receipt)
        assert "alice" not in text
        assert "hobby" not in text
        assert driver.verify_receipt(receipt)
        assert driver.verify_receipt(json.loads(text), user_id="alice")
        assert not driver.verify_receipt(receipt, user_id="bob")
        assert not driver.verify_receipt({**receipt, "reason": "another"})
        assert not driver.verify_receipt({**receipt, "signature": 3})
        assert driver.erasures() == [receipt]


def test_earlier_backups_are_named(tmp_path: Path) -> None:
    with open_memory(tmp_path / "store") as memory:
        fill(memory)
        copy = memory.backup(tmp_path / "copy.db")
        receipt = memory.erase("alice", reason=REASON)
        memory.backup(tmp_path / "later.db")
        assert [(one["kind"], one["id"], one["path"]) for one in receipt["out_of_reach"]] == [
            ("backup", copy["identity"], str(tmp_path / "copy.db"))
        ]
    assert residue(tmp_path) == ["copy.db"]


def test_data_that_others_have_too_is_no_residue(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("The museum of maritime history opens at nine", user_id="alice")
        memory.add("The museum of maritime history opens at nine", user_id="bob")
        receipt = memory.erase("alice", reason=REASON)
        assert receipt["complete"]
        assert receipt["shared"] > 0
        assert len(memory.get_all(user_id="bob")["results"]) == 1


def test_residue_in_a_file_is_reported(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        (tmp_path / "prompt_history").write_text(f"add {SECRETS[3]}\n")
        receipt = memory.erase("alice", reason=REASON)
        assert not receipt["complete"]
        assert [probe["where"] for probe in receipt["probes"] if probe["found"]] == ["file prompt_history"]


@pytest.mark.parametrize("reason", ["", 3, "x" * 2000, f"because {SECRETS[3]}"])
def test_a_wrong_reason_erases_nothing(tmp_path: Path, reason: Any) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        with pytest.raises(InputError, match="reason"):
            memory.erase("alice", reason=reason)
        with pytest.raises(ScopeError):
            memory.erase(reason=REASON)
        assert memory.get_all(user_id="alice")["results"]
        assert memory.erasures() == []


@pytest.mark.parametrize("boundary", ["after the record", "after the rows", "before the receipt", "before the scrub"])
def test_a_killed_erasure_is_resumed(tmp_path: Path, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import mem0_core.admin.erase as erase

    def die(*args: object) -> Any:
        raise KilledError

    with open_memory(tmp_path) as memory:
        fill(memory)
        store: Any = memory.store
        if boundary == "after the record":
            monkeypatch.setattr(store, "erase_scope", lambda *args, **kwargs: die())
        elif boundary == "after the rows":
            monkeypatch.setattr(erase, "_erase_projections", die)
        elif boundary == "before the receipt":
            monkeypatch.setattr(erase, "_close", die)
        else:
            monkeypatch.setattr(store.maintenance, "scrub", die)
        with pytest.raises(KilledError):
            memory.erase("alice", reason=REASON)
        monkeypatch.undo()
    with open_memory(tmp_path) as memory:
        assert memory.store.list_memories(None)[0].scope.user_id == "bob"
        memory.search("cello", user_id="bob")
        [receipt] = memory.erasures()
        assert receipt["complete"]
        assert receipt["erased"]["memories"] >= 39
        assert memory.verify_receipt(receipt, user_id="alice")
    assert residue(tmp_path) == []
    with sqlite3.connect(tmp_path / "memory.db") as db:
        assert not db.execute("SELECT 1 FROM meta WHERE key LIKE 'registry:erasure:%'").fetchall()


def test_a_failed_erasure_says_that_it_was_begun_and_a_repeat_finishes_it(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise StoreError("cannot write to the server: connection lost; nothing is written") from OSError("lost")

    with open_memory(tmp_path) as memory:
        fill(memory)
        driver = MemoryDriver(memory, mode)
        monkeypatch.setattr(memory.store, "erase_scope", fail)
        with pytest.raises(StoreError, match=r"^the erasure was begun, and is not finished: lost; repeat the call"):
            driver.erase(user_id="alice", reason=REASON)
        monkeypatch.undo()
        assert driver.erase(user_id="alice", reason=REASON)["complete"]
        assert memory.get_all(user_id="alice")["results"] == []


def test_fingerprints_find_windows_at_any_offset(tmp_path: Path) -> None:
    builder = FingerprintBuilder().add_all([text.encode() for text in SECRETS] + [b"a short text", b"tiny", bytes(100)])
    fingerprints = Fingerprints.from_record(json.loads(json.dumps(builder.build().to_record())))
    assert builder.unsearchable == 2
    for offset in (0, 1, 4095, (4 << 20) - 20):
        file = tmp_path / "data"
        file.write_bytes(bytes(offset) + SECRETS[7].encode() + b"." * 100)
        assert fingerprints.find_in_file(file)
    file.write_bytes(b"a sho" * 1000 + SECRETS[7][:11].encode())
    assert not fingerprints.find_in_file(file)


def test_an_erasure_empties_every_table_of_either_database(tmp_path: Path, mode: Mode, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        fill(memory)
        store = memory.store
        driver = MemoryDriver(memory, mode)
        memory.add("Alice still waits for her parcel from Narvik", user_id="alice", background=True)
        copy = memory.backup(tmp_path.with_name(f"{tmp_path.name}.copy"))
        receipt = driver.erase(user_id="alice", reason=REASON)
        assert receipt["complete"], receipt["probes"]
        assert copy["identity"] in [one["id"] for one in receipt["out_of_reach"]]
        server = {"server pages", "server log"} if truth else set()
        assert {one["kind"] for one in receipt["out_of_reach"]} == {"backup", *server}
        assert driver.verify_receipt(receipt, user_id="alice")
        contents = b"\n".join(
            part for table in store.maintenance.content_tables for part in store.maintenance.iter_contents(table, None)
        )
        assert not any(text[4:30].encode() in contents for text in SECRETS)
        assert [item.scope.user_id for item in store.list_memories(None)] == ["bob"]
        assert memory.doctor()["healthy"]


def test_an_erasure_rewrites_the_file_of_a_graph_projection(tmp_path: Path, mode: Mode) -> None:
    ladybug = pytest.importorskip("ladybug")
    path = tmp_path / "it's" / "graph.lbug"
    config = {"graph_store": {"provider": "ladybug", "config": {"db": str(path)}}}
    with open_memory(tmp_path / "other", config=config) as memory:
        memory.add("Ingrid works at Statoil.", user_id="carol")
    with open_memory(tmp_path / "store", config=config) as memory:
        memory.add("My friend Torvald lives in Kirkenes.", user_id="alice")
        memory.add("My friend Bjarne lives in Tromso.", user_id="bob")
        receipt = MemoryDriver(memory, mode).erase(user_id="alice", reason=REASON)
        assert receipt["complete"], receipt["probes"]
        assert f"file {path.name}" in [probe["where"] for probe in receipt["probes"]]
        assert len(memory.relations(user_id="bob")) == 2
        assert memory.doctor()["healthy"]
    content = b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())
    assert [name in content for name in (b"Torvald", b"Kirkenes", b"Bjarne", b"Ingrid")] == [False, False, True, True]
    database = ladybug.Database(str(path))
    stores = ladybug.Connection(database).execute("MATCH (c:Mem0Cursor) RETURN count(*)").get_all()
    database.close()
    assert stores == [[2]]  # the relations of another store in the same file stay


_FILL_A_GRAPH = """
import os, pathlib, sys
from mem0_core import Memory
from mem0_core.stores.graph import ladybug
from mem0_core.testing import HashEmbedder
config = {"path": sys.argv[1], "graph_store": {"provider": "ladybug", "config": {"db": sys.argv[2]}}}
with Memory(config, embedder=HashEmbedder()) as memory:
    memory.add("My friend Torvald lives in Kirkenes.", user_id="alice")
    memory.add("My friend Bjarne lives in Tromso.", user_id="bob")
    if sys.argv[3] == "before the copy":
        ladybug._import = lambda *paths: os._exit(9)
    if sys.argv[3] == "before the exchange":
        pathlib.Path.replace = lambda *paths: os._exit(9)
    memory.erase(user_id="alice", reason="request 7")
    memory.add("My friend Bjarne works at Statoil.", user_id="bob")
"""


def fill_graph(tmp_path: Path, *, killed: str = "", **environment: str) -> Path:
    """Add and erase in another process, which may be killed during the erasure; return the file of the graph."""
    graph = tmp_path / "graph" / "graph.lbug"
    command = [sys.executable, "-c", _FILL_A_GRAPH, str(tmp_path / "store"), str(graph), killed]
    assert subprocess.run(command, env={**os.environ, **environment}, check=False).returncode == (9 if killed else 0)
    return graph


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library cannot fill memory")
def test_a_graph_projection_never_writes_memory_that_the_process_has_freed(tmp_path: Path) -> None:
    pytest.importorskip("ladybug")
    graph = fill_graph(tmp_path, MALLOC_PERTURB_=str(0xA5))  # until something else is set, new memory holds 0x5A
    content = graph.read_bytes()
    assert (b"Bjarne" in content, b"\x5a" * 8 in content) == (True, False)


@pytest.mark.parametrize("killed", ["before the copy", "before the exchange"])
def test_a_killed_rewriting_of_a_graph_leaves_no_copy_and_is_done_again(
    tmp_path: Path, mode: Mode, killed: str
) -> None:
    pytest.importorskip("ladybug")
    graph = fill_graph(tmp_path, killed=killed)
    assert find_abandoned([graph.parent])
    config = {"graph_store": {"provider": "ladybug", "config": {"db": str(graph)}}}
    with open_memory(tmp_path / "store", config=config) as memory:
        MemoryDriver(memory, mode).search("Where does Bjarne live?", user_id="bob")
        assert [receipt["complete"] for receipt in memory.erasures()] == [True]
        assert len(memory.relations(user_id="bob")) == 2
    content = {file.name: file.read_bytes() for file in graph.parent.rglob("*") if file.is_file()}
    assert not find_abandoned([graph.parent])
    assert [name in content[graph.name] for name in (b"Torvald", b"Bjarne")] == [False, True]
