"""Cells of a CSV export are never formulas, and read back as they were."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core import InputError, Memory
from mem0_core.interchange import read_csv
from mem0_core.interchange._csv import CsvTable, protect_cell, read_cell, read_rows
from mem0_core.testing import HashEmbedder, ScriptedChat

SIGNS = "=+-@\t\r\n＝＋－＠"
TEXTS = st.text(alphabet=st.sampled_from([*SIGNS, "'", '"', ",", ";", "|", "a", "1", " ", "é"]), max_size=12)
FORMULAS = ['=HYPERLINK("http://evil","x")', "@SUM(1+1)*cmd|' /C calc'!A0", "+1", "-2+3", "\t=1", "a;=1", "'=1", "''+a"]


@given(TEXTS | st.text(max_size=20))
def test_a_protected_cell_begins_with_no_sign_and_reads_back(text: str) -> None:
    protected = protect_cell(text)
    assert read_cell(protected) == text
    assert protected[:1] not in SIGNS or not protected
    for separator in ',;|\t\r\n"':
        assert all(part[:1] not in SIGNS or not part for part in protected.split(separator)[1:])


@given(st.lists(TEXTS | st.none() | st.integers() | st.lists(TEXTS, max_size=2), min_size=2, max_size=2))
def test_a_table_reads_back(values: list[object]) -> None:
    file = io.StringIO(newline="")
    CsvTable(file, ("a", "b")).write(dict(zip("ab", values, strict=True)))
    file.seek(0)
    texts = [" ".join(one) if isinstance(one, list) else "" if one is None else str(one) for one in values]
    assert list(read_rows(file)) == [dict(zip("ab", texts, strict=True))]


def test_numbers_stay_numbers() -> None:
    file = io.StringIO(newline="")
    CsvTable(file, ("n",)).write({"n": -1.5})
    assert file.getvalue().splitlines()[1] == '"-1.5"'


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_exported_cell_is_a_formula(tmp_path: Path, formula: str) -> None:
    name = formula.strip()

    def reply(task: str, messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        if task == "facts":
            return {"facts": ["A fact"]}
        if task == "entities":
            return {"entities": [{"entity": name, "entity_type": formula}, {"entity": "Rome", "entity_type": "city"}]}
        if task == "relations":
            return {"entities": [{"source": name, "relationship": "knows", "destination": "Rome"}]}
        return {}

    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder(), llm=ScriptedChat(reply), graph=True) as memory:
        memory.add("anything", user_id=formula)
        relations = memory.relations(user_id=formula)
        memory.export(tmp_path / "out", format="csv")
    assert relations
    for file in ("nodes.csv", "edges.csv"):
        rows = list(csv.reader((tmp_path / "out" / file).open(encoding="utf-8", newline="")))
        assert len(rows) > 1
        assert not [cell for row in rows for cell in row if cell.startswith(tuple(SIGNS))]
    read = read_csv(tmp_path / "out")
    assert {row["user_id"] for row in (*read["nodes"], *read["edges"])} == {formula}
    assert [row["source"] for row in read["edges"]] == [one["source"] for one in relations]


def test_a_folder_without_an_export_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nodes\.csv cannot be read"):
        read_csv(tmp_path)
