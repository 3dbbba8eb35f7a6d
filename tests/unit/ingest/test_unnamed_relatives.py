"""Statements about relatives without a name change the person whom the graph knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import MODES, MemoryDriver, Mode, open_memory


@pytest.fixture(params=MODES)
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path / "data") as opened:
        yield MemoryDriver(opened, mode)


def relations_of(memory: MemoryDriver, name: str) -> set[tuple[str, str]]:
    found = memory.relations(user_id="maya")
    return {(one["relationship"], one["destination"]) for one in found if one["source"] == name}


def test_a_relative_that_is_known_by_name_moves(memory: MemoryDriver) -> None:
    memory.add("My sister Leila lives in Leeds.", user_id="maya")
    memory.add("My sister moved to Oslo.", user_id="maya")
    assert relations_of(memory, "Leila") == {("lives_in", "Oslo")}


def test_a_correction_of_a_pet_reaches_its_owner(memory: MemoryDriver) -> None:
    memory.add("My sister Leila has a dog called Biscuit.", user_id="maya")
    memory.add("My sister's dog isn't called Biscuit. His name is Brisket.", user_id="maya")
    assert relations_of(memory, "Leila") == {("has_pet", "Brisket")}


def test_the_name_may_come_in_the_same_import(memory: MemoryDriver) -> None:
    memory.add_many(["My sister Leila lives in Leeds.", "My sister moved to Oslo."], user_id="maya")
    assert relations_of(memory, "Leila") == {("lives_in", "Oslo")}


def test_one_of_two_relatives_is_not_guessed(memory: MemoryDriver) -> None:
    memory.add("My sisters Leila and Noor live in Leeds.", user_id="maya")
    memory.add("My sister moved to Oslo.", user_id="maya")
    assert relations_of(memory, "Leila") == relations_of(memory, "Noor") == {("lives_in", "Leeds")}


def test_a_relative_of_another_user_is_not_taken(memory: MemoryDriver) -> None:
    memory.add("My sister Leila lives in Leeds.", user_id="ben")
    memory.add("My sister moved to Oslo.", user_id="maya")
    assert memory.relations(user_id="maya") == []


def test_friends_and_pets_without_a_name_stay_without_one(memory: MemoryDriver) -> None:
    memory.add("My friend Leila lives in Leeds.", user_id="maya")
    memory.add("My friend moved to Oslo.", user_id="maya")
    assert relations_of(memory, "Leila") == {("lives_in", "Leeds")}
