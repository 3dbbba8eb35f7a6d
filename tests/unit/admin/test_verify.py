"""Replay: contents that history and messages do not lead to are found and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from tests.support import MODES, MemoryDriver, Mode, open_memory, run_sql

DAMAGES = {
    "memories": "UPDATE memories SET text = 'I live in Oslo.' WHERE text = 'I live in Lisbon.'",
    "words": "UPDATE sketches SET terms = 'wrong' WHERE row = (SELECT min(row) FROM memories)",
    "relations": "UPDATE edges SET relationship = 'hates' WHERE row = (SELECT min(row) FROM edges)",
}


def fill(memory: Memory) -> None:
    memory.add("I live in Lisbon.", user_id="ana")
    memory.add("My sister Anna works at Galp.", user_id="ana", source="chat")
    memory.add("I moved to Porto.", user_id="ana", source="tool", trust="tool")
    memory.add_many(["I like tea.", "I work at Acme."], user_id="bob")
    memory.delete(memory.add("I like jazz.", user_id="bob")["results"][0]["id"])
    memory.retract("tool", user_id="ana")


@pytest.mark.parametrize("mode", MODES)
def test_a_sound_store_agrees_with_its_history(tmp_path: Path, truth: dict[str, Any], mode: Mode) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        fill(memory)
        report = MemoryDriver(memory, mode).verify()
        assert report["agrees"], report["differences"]
        assert report["digest"] == report["derived"]
        assert report["underivable"] == []
        assert memory.doctor(repair=False, deep=True)["healthy"]


@pytest.mark.parametrize("part", DAMAGES)
def test_damage_is_found_and_named(tmp_path: Path, part: str) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        run_sql(memory, DAMAGES[part])
    with open_memory(tmp_path) as memory:
        report = memory.verify()
        assert not report["agrees"]
        assert report["digest"] != report["derived"]
        assert part in {one["part"] for one in report["differences"]}
        assert not memory.doctor(repair=False, deep=True)["healthy"]


def test_a_vector_of_another_text_is_found(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        run_sql(
            memory,
            "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE row = (SELECT max(row) FROM vectors))"
            " WHERE row = (SELECT min(row) FROM vectors)",
        )
    with open_memory(tmp_path) as memory:
        assert [one["part"] for one in memory.verify()["differences"]] == ["vectors"]


def test_relations_of_a_manual_update_cannot_be_derived_from_messages_alone(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        [added] = memory.add("I live in Lisbon.", user_id="ana")["results"]
        memory.update(added["id"], "My home town is lovely and I live in Oslo.")
        report = memory.verify()
        assert report["agrees"], report
