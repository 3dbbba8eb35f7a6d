"""A file is the old one or the new one, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from mem0_core.files import replacing


def test_what_was_written_takes_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "f[1].txt"
    with replacing(path) as unfinished:
        unfinished.write_text("one")
        assert not path.exists()
    assert path.read_text() == "one"
    with replacing(path) as unfinished:
        unfinished.write_text("two")
        assert path.read_text() == "one"
    assert path.read_text() == "two"
    assert [file.name for file in path.parent.iterdir()] == ["f[1].txt"]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "f[1].db"
    path.write_text("one")

    def fail() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("tw")
            unfinished.with_name(f"{unfinished.name}-wal").write_text("o")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert path.read_text() == "one"
    assert [file.name for file in tmp_path.iterdir()] == ["f[1].db"]


def test_what_was_not_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"), replacing(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []
