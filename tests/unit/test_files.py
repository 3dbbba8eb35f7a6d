"""A file is the old one or the new one, whole; and only its owner reads it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core._files import make_folder, replace_atomically
from mem0_core.admin.backup import restore
from mem0_core.cli._logs import log_to_files
from mem0_core.config import load_config
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


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(OSError, match="exists"):
        make_folder(tmp_path / "x")
    make_folder(tmp_path)
