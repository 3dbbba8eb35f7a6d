"""`changes`: the feed through the public methods, sync and async."""

from __future__ import annotations

from pathlib import Path

import pytest

from mem0_core import InputError, ScopeError
from tests.support import MODES, MemoryDriver, Mode, open_memory


@pytest.mark.parametrize("mode", MODES)
def test_each_verb_is_an_event_with_its_reason(mode: Mode, tmp_path: Path) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        said = memory.add("I live in Rome.", user_id="ana", infer=False, source="chat")["results"][0]["id"]
        kept = memory.add("I like tea.", user_id="ana", infer=False)["results"][0]["id"]
        memory.update(kept, "Likes green tea")
        memory.pin(kept)
        memory.feedback(kept, True)
        memory.retract("chat", user_id="ana")
        memory.delete(kept)
        page = memory.changes(user_id="ana")
        assert [(one["memory_id"], one["event"], one["why"], one["source"]) for one in page["results"]] == [
            (said, "ADD", "add", "chat"),
            (kept, "ADD", "add", None),
            (kept, "UPDATE", "update", None),
            (kept, "UPDATE", "pin", None),
            (kept, "UPDATE", "feedback", None),
            (said, "RETRACT", "retract", "chat"),
            (kept, "DELETE", "delete", None),
        ]
        assert memory.changes(after=page["cursor"]) == {"results": [], "cursor": page["cursor"]}
        assert memory.changes(user_id="ben")["results"] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_cursor_continues_behind_an_erasure_and_a_restart(mode: Mode, tmp_path: Path) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("I live in Rome.", user_id="ana", infer=False)
        cursor = memory.changes()["cursor"]
        memory.add("I like tea.", user_id="ana", infer=False)
        receipt = memory.erase(user_id="ana", reason="request 7")
        assert receipt["complete"]
        assert receipt["erased"]["events"] == 2
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("I sing.", user_id="ben", infer=False)
        page = memory.changes(after=cursor)["results"]
        assert [(one["event"], one["user_id"]) for one in page] == [("ERASE", None), ("ADD", "ben")]


@pytest.mark.parametrize("arguments", [{"after": -1}, {"after": "3"}, {"after": True}, {"limit": 0}, {"limit": 1.5}])
def test_a_cursor_or_limit_of_another_form_is_refused(arguments: dict[str, object], tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(InputError, match=next(iter(arguments))):
        memory.changes(**arguments)  # type: ignore[arg-type]


def test_a_cursor_behind_every_number_returns_nothing(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I like tea.", user_id="ana", infer=False)
        assert memory.changes(after=2**70)["results"] == []
        with pytest.raises(ScopeError):
            memory.changes(user_id="")
