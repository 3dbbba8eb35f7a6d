"""A file is the old one or the new one, whole; and only its owner reads it."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core._system.files import clear_abandoned, find_abandoned, make_folder, private_folder, replace_atomically
from mem0_core.admin.backup import restore
from mem0_core.admin.transfer import migrate, open_archive
from mem0_core.cli._logs import log_to_files
from mem0_core.config import load_config
from mem0_core.errors import StoreError
from mem0_core.stores.sqlite.session import Database
from mem0_core.testing import HashEmbedder


def test_what_was_written_takes_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "f[1].txt"
    with replace_atomically(path) as unfinished:
        unfinished.write_text("one")
        assert not path.exists()
    assert path.read_text() == "one"
    with replace_atomically(path) as unfinished:
        unfinished.write_text("two")
        assert path.read_text() == "one"
    assert path.read_text() == "two"
    assert [file.name for file in path.parent.iterdir()] == ["f[1].txt"]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f[1].db"
    path.write_text("one")

    def fail() -> None:
        with replace_atomically(path) as unfinished:
            unfinished.write_text("tw")
            unfinished.with_name(f"{unfinished.name}-wal").write_text("o")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert path.read_text() == "one"
    assert [file.name for file in tmp_path.iterdir()] == ["f[1].db"]


def modes(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): oct(path.stat().st_mode & 0o777) for path in folder.rglob("*")}


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="the modes of files are POSIX's")
@pytest.mark.usefixtures("_open_umask")
class TestModes:
    def test_all_that_is_made_is_its_owners_alone(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "data"
        config = load_config({"path": str(folder), "logging": "DEBUG"})
        with log_to_files(config), Memory(config, embedder=HashEmbedder()) as memory:
            memory.add("My sister is Anna.", user_id="ann")
            logging.getLogger("mem0_core").error("said")
            memory.visualize(user_id="ann")
            memory.backup(tmp_path / "copy.db")
            memory.export(tmp_path / "c" / "out.jsonl")
            memory.export(tmp_path / "d", format="csv", user_id="ann")
            found = modes(tmp_path)
        assert {"a/data/memory.db", "a/data/memory.db-wal", "a/data/app.log", "copy.db", "c/out.jsonl"} <= set(found)
        assert {"d/nodes.csv", "a/data/viz"} <= set(found)
        folders = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_dir()}
        assert {found[name] for name in folders} == {"0o700"}
        assert {mode for name, mode in found.items() if name not in folders} == {"0o600"}

    def test_every_part_of_a_log_is_its_owners_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("mem0_core.cli._logs._MAX_FILE_BYTES", 100)
        with log_to_files(load_config({"path": str(tmp_path), "logging": "INFO"})):
            for _ in range(5):
                logging.getLogger("mem0_core").error("said " * 10)
        logs = {name: mode for name, mode in modes(tmp_path).items() if name.startswith("app.log")}
        assert len(logs) > 1
        assert set(logs.values()) == {"0o600"}

    def test_the_graph_of_ladybug_is_its_owners_alone(self, tmp_path: Path) -> None:
        pytest.importorskip("ladybug")
        graph = {"provider": "ladybug", "config": {"db": str(tmp_path / "data" / "graph" / "g.lbug")}}
        for text in ("My sister is Anna.", "I live in Rome."):
            with Memory({"path": str(tmp_path / "data"), "graph_store": graph}, embedder=HashEmbedder()) as memory:
                memory.add(text, user_id="ann")
                assert memory.relations(user_id="ann")
                found = modes(tmp_path)
                assert {"data/graph/g.lbug", "data/graph/g.lbug.wal"} <= set(found)
                assert set(found.values()) == {"0o700", "0o600"}
        assert set(modes(tmp_path).values()) == {"0o700", "0o600"}

    def test_snapshots_and_copied_stores_are_their_owners_alone(self, tmp_path: Path) -> None:
        config = {"path": str(tmp_path / "a"), "vector_store": {"provider": "faiss", "config": {"exact_limit": 1}}}
        with Memory(config, embedder=HashEmbedder()) as memory:
            for text in ("I like tea", "I live in Rome", "I have a dog"):
                memory.add(text, user_id="ann")
            memory.search("tea", user_id="ann")
        with open_archive(str(tmp_path / "a")) as one, open_archive(str(tmp_path / "b"), create=True) as other:
            migrate(one, other, release=True)
        found = modes(tmp_path)
        assert [name for name in found if name.endswith(".hnsw")]
        assert "b/memory.db" in found
        assert set(found.values()) == {"0o700", "0o600"}

    def test_a_restored_store_is_its_owners_alone(self, tmp_path: Path) -> None:
        with Memory({"path": str(tmp_path / "a")}, embedder=HashEmbedder()) as memory:
            memory.backup(tmp_path / "copy.db")
        restore(tmp_path / "copy.db", tmp_path / "b" / "memory.db")
        assert (modes(tmp_path)["b"], modes(tmp_path)["b/memory.db"]) == ("0o700", "0o600")

    def test_what_exists_keeps_its_mode(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir(mode=0o750)
        (tmp_path / "data" / "memory.db").touch(mode=0o640)
        with Memory({"path": str(tmp_path / "data")}, embedder=HashEmbedder()) as memory:
            memory.add("I like tea", user_id="ann")
            found = modes(tmp_path)
        assert (found["data"], found["data/memory.db"]) == ("0o750", "0o640")


def test_a_file_system_that_takes_no_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: int = 0o777) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "mkdir", refuse)  # as in /proc, where the parent of the new folder exists
    with pytest.raises(FileNotFoundError):
        make_folder(tmp_path / "x")


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(OSError, match="exists"):
        make_folder(tmp_path / "x")
    make_folder(tmp_path)


def leave_copy(path: Path) -> Path:
    """Leave a private folder next to `path`, as a process does that is killed while it writes the file."""
    if not os.fork():
        with replace_atomically(path) as unfinished:
            unfinished.write_text("I like tea", encoding="utf-8")
            os._exit(0)
    os.wait()
    (left,) = find_abandoned([path.parent])
    return left


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestPrivateFolders:
    def test_a_folder_in_use_is_not_abandoned(self, tmp_path: Path) -> None:
        with private_folder(tmp_path) as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            assert find_abandoned([tmp_path]) == clear_abandoned([tmp_path]) == []
            assert folder.is_dir()
        assert list(tmp_path.iterdir()) == []

    def test_the_next_file_in_a_folder_removes_the_remains_of_a_killed_process(self, tmp_path: Path) -> None:
        left = leave_copy(tmp_path / "one.txt")
        assert (left / "one.txt").read_text(encoding="utf-8") == "I like tea"
        assert (left / "one.txt").stat().st_mode & 0o777 == 0o600
        with replace_atomically(tmp_path / "two.txt") as unfinished:
            unfinished.touch()
        assert [file.name for file in tmp_path.iterdir()] == ["two.txt"]

    def test_a_link_with_the_name_of_a_private_folder_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        (tmp_path / ".mem0-core-x").symlink_to(tmp_path / "kept")
        assert clear_abandoned([tmp_path]) == []
        assert (tmp_path / "kept").is_dir()

    @pytest.mark.parametrize("folder", ["data", "copies", "data/viz"])
    def test_doctor_reports_and_removes_the_remains(self, tmp_path: Path, folder: str) -> None:
        with Memory({"path": str(tmp_path / "data")}, embedder=HashEmbedder()) as memory:
            make_folder(tmp_path / "copies")
            memory.backup(tmp_path / "copies" / "a.db")
            left = leave_copy(tmp_path / folder / "b.db")
            reported = [one for one in memory.doctor(repair=False)["findings"] if one["where"] == "files"]
            assert (len(reported), reported[0]["mended"], left.exists()) == (1, False, True)
            assert str(left) in reported[0]["what"]
            assert memory.doctor()["healthy"]
            assert not left.exists()
            assert memory.doctor()["findings"] == []

    @pytest.mark.parametrize("verb", ["purge", "purge_all", "purge_by_query", "reset", "erase"])
    def test_purging_removes_the_remains(self, tmp_path: Path, verb: str) -> None:
        with Memory({"path": str(tmp_path / "data")}, embedder=HashEmbedder()) as memory:
            memory_id = memory.add("I like tea", user_id="ann")["results"][0]["id"]
            make_folder(tmp_path / "copies")
            memory.export(tmp_path / "copies" / "a.jsonl")
            lefts = [leave_copy(tmp_path / folder / "b.db") for folder in ("data", "copies")]
            if verb == "purge":
                memory.delete(memory_id, purge=True)
            elif verb == "purge_all":
                memory.delete_all(user_id="ann", purge=True)
            elif verb == "purge_by_query":
                memory.delete_by_query("tea", user_id="ann", purge=True)
            elif verb == "reset":
                memory.reset()
            else:
                receipt = memory.erase(user_id="ann", reason="request 1")
                assert receipt["complete"]
                assert [copy["kind"] for copy in receipt["out_of_reach"]] == ["export"]
            assert not [left for left in lefts if left.exists()]


def fill(folder: Path) -> None:
    with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:
        memory.add("I like tea", user_id="ann")


class TestCutFiles:
    @pytest.mark.parametrize("is_gone", [False, True])
    def test_a_file_without_content_beside_a_log_is_refused(self, tmp_path: Path, is_gone: bool) -> None:
        fill(tmp_path)
        database, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
        log.write_bytes(b"a log")
        database.unlink() if is_gone else database.write_bytes(b"")
        before = modes(tmp_path)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"its log memory\.db-wal has 5 bytes"):
                Memory({"path": str(tmp_path)}, embedder=HashEmbedder())
        assert (log.read_bytes(), modes(tmp_path)) == (b"a log", before)

    def test_a_file_without_content_beside_a_snapshot_is_refused(self, tmp_path: Path) -> None:
        config = {"path": str(tmp_path), "vector_store": {"provider": "faiss", "config": {"exact_limit": 1}}}
        with Memory(config, embedder=HashEmbedder()) as memory:
            for text in ("I like tea", "I live in Rome", "I have a dog"):
                memory.add(text, user_id="ann")
            memory.search("tea", user_id="ann")
        assert list((tmp_path / "faiss").rglob("*.json"))
        (tmp_path / "memory.db").write_bytes(b"")
        with pytest.raises(StoreError, match="has snapshots of its vectors"):
            Memory(config, embedder=HashEmbedder())
        (tmp_path / "memory.db").unlink()  # the way out that the error names
        with Memory(config, embedder=HashEmbedder()) as memory:
            assert memory.search("tea", user_id="ann")["results"] == []

    def test_a_new_empty_file_is_a_new_store(self, tmp_path: Path) -> None:
        (tmp_path / "memory.db").touch()
        fill(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be removed elsewhere")
class TestRemovedFiles:
    @pytest.mark.parametrize("how", ["folder", "file", "replaced"])
    def test_a_write_to_a_removed_file_is_an_error(self, tmp_path: Path, how: str) -> None:
        folder = tmp_path / "data"
        fill(folder)
        with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:
            memory.search("tea", user_id="ann")
            if how == "folder":
                shutil.rmtree(folder)
            else:
                (folder / "memory.db").unlink()
            if how == "replaced":
                (folder / "memory.db").touch()
            verbs: list[Callable[[], object]] = [
                lambda: memory.add("I live in Rome", user_id="ann"),
                lambda: memory.delete_all(user_id="ann"),
                lambda: memory.delete_all(user_id="ann", purge=True),
                memory.reset,
            ]
            for verb in verbs:
                with pytest.raises(StoreError, match="removed or replaced while it was open"):
                    verb()
        if how == "file":
            assert not (folder / "memory.db").exists()

    def test_a_file_that_is_removed_during_a_write_is_an_error(self, tmp_path: Path) -> None:
        database = Database(tmp_path / "memory.db", durability="process", busy_timeout=1.0)

        def write() -> None:
            with database.write() as db:
                db.execute("CREATE TABLE t (a)")
                (tmp_path / "memory.db").unlink()

        with pytest.raises(StoreError, match="removed or replaced"):
            write()
        database.close()

    def test_another_working_folder_is_no_other_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with Memory({"path": "data"}, embedder=HashEmbedder()) as memory:
            memory.add("I like tea", user_id="ann")
            (tmp_path / "other").mkdir()
            monkeypatch.chdir(tmp_path / "other")
            memory.add("I live in Rome", user_id="ann")
            assert len(memory.search("tea", user_id="ann")["results"]) == 2
        assert list((tmp_path / "other").iterdir()) == []


def as_reader(action: Callable[[], object]) -> str:
    """Run an action in a process that may read everything and write nothing; return its error."""
    read, write = os.pipe()
    if not os.fork():
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            action()
            message = "ok"
        except BaseException as error:  # noqa: BLE001 - the parent judges it
            message = f"{type(error).__name__}: {error}"
        os.write(write, message.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.wait()
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestReadOnlyStores:
    @pytest.fixture(params=["folder", "file"])
    def folder(self, request: pytest.FixtureRequest) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as name:  # another user cannot enter pytest's own folder
            folder = Path(name) / "data"
            fill(folder)
            Path(name).chmod(0o755)
            for path in folder.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o444)
            folder.chmod(0o555 if request.param == "folder" else 0o777)
            yield folder
            folder.chmod(0o755)

    def test_it_is_read_and_not_written(self, folder: Path) -> None:
        before = (folder / "memory.db").read_bytes()

        def use(folder: Path) -> None:
            with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:
                assert [one["memory"] for one in memory.get_all(user_id="ann")["results"]] == ["I like tea"]
                assert memory.search("tea", user_id="ann")["results"]
                assert "tea" in memory.context("tea", user_id="ann")["text"]
                assert memory.stats()["memories"] == 1
                assert memory.history(memory.get_all(user_id="ann")["results"][0]["id"])
                assert memory.doctor(repair=False)["healthy"]
                memory.add("I live in Rome", user_id="ann")

        fill(folder.parent / "warm")
        use(folder.parent / "warm")  # everything is imported before the fork
        error = as_reader(lambda: use(folder))
        assert error.startswith("StoreError: ")
        assert "is read-only" in error
        assert (folder / "memory.db").read_bytes() == before

    def test_it_can_be_exported_and_backed_up(self, folder: Path) -> None:
        (target := folder.parent / "out").mkdir()
        target.chmod(0o777)

        def use(folder: Path, target: Path) -> None:
            with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:
                memory.export(target / "all.jsonl")
                memory.backup(target / "copy.db")

        fill(folder.parent / "warm")
        use(folder.parent / "warm", folder.parent / "warm")
        assert as_reader(lambda: use(folder, target)) == "ok"
        assert restore(target / "copy.db", folder.parent / "new" / "memory.db")["restored"] == 1
