"""Methods that take the id of a memory: with the ids of an owner, another owner's memory does not exist."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core import NotFoundError
from mem0_core.domain.records import Scope
from tests.support import MODES, MemoryDriver, Mode, open_memory

OWNERS = (
    Scope("ana"),
    Scope("ana", "bot"),
    Scope("ben"),
    Scope("ben", None, "r"),
    Scope(None, "bot"),
    Scope(None, None, "r"),
)

Call = Callable[[MemoryDriver, str, dict[str, Any]], Any]
VERBS: dict[str, Call] = {
    "get": lambda memory, id, ids: memory.get(id, **ids),
    "history": lambda memory, id, ids: memory.history(id, **ids),
    "update": lambda memory, id, ids: memory.update(id, "forged", **ids),
    "pin": lambda memory, id, ids: memory.pin(id, **ids),
    "feedback": lambda memory, id, ids: memory.feedback(id, False, **ids),
    "delete": lambda memory, id, ids: memory.delete(id, **ids),
    "purge": lambda memory, id, ids: memory.delete(id, purge=True, **ids),
}


def ids_of(scope: Scope) -> dict[str, Any]:
    return {axis.value: value for axis, value in scope.ids.items()}


def outcome(call: Call, memory: MemoryDriver, memory_id: str, ids: dict[str, Any]) -> str:
    try:
        return repr(call(memory, memory_id, ids))
    except NotFoundError as error:
        return str(error).replace(memory_id, "ID")


@pytest.mark.parametrize("mode", MODES)
def test_no_verb_tells_another_owners_memory_from_an_unknown_id(mode: Mode, tmp_path: Path) -> None:
    chance = random.Random(7)
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        live = {
            opened.add(f"Note {number}", infer=False, **ids_of(scope))["results"][0]["id"]: scope
            for number, scope in enumerate(OWNERS * 2)
        }
        deleted = {
            opened.add(f"Gone {number}", infer=False, **ids_of(scope))["results"][0]["id"]: scope
            for number, scope in enumerate(OWNERS)
        }
        for memory_id in deleted:
            opened.delete(memory_id)
        before = {memory_id: (opened.get(memory_id), opened.history(memory_id)) for memory_id in (live | deleted)}
        for memory_id, owner in (live | deleted).items():
            for caller in chance.sample(OWNERS, len(OWNERS)):
                if not caller.contains(owner):
                    for name, call in VERBS.items():
                        foreign = outcome(call, memory, memory_id, ids_of(caller))
                        assert foreign == outcome(call, memory, "unknown", ids_of(caller)).replace("unknown", "ID"), (
                            name
                        )
        assert before == {memory_id: (opened.get(memory_id), opened.history(memory_id)) for memory_id in before}
        for memory_id, owner in live.items():
            own = ids_of(owner)
            assert memory.get(memory_id, **own)["id"] == memory_id
            memory.update(memory_id, f"own {memory_id}", **own)
            memory.pin(memory_id, **own)
            assert [row["event"] for row in memory.history(memory_id, **own)] == ["ADD", "UPDATE"]
            memory.delete(memory_id, **own)
            assert memory.history(memory_id, **own)[-1]["event"] == "DELETE"
