"""Searches of an earlier time."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from memory_conformance.registry import Kit, check, expect_equal

PAUSE_SECONDS = 1.1


def pause() -> datetime:
    """Return a time that stores which keep whole seconds distinguish from the writes around it."""
    time.sleep(PAUSE_SECONDS)
    now = datetime.now(UTC)
    time.sleep(PAUSE_SECONDS)
    return now


def search_at(kit: Kit, owner: str, query: str, moment: datetime) -> list[str]:
    """Return the texts that a search of an earlier time finds."""
    return sorted(record.text for record in kit.system.search(owner, query, as_of=moment))


@check("as_of", "add update search as_of")
def an_earlier_time_has_the_earlier_text(kit: Kit) -> None:
    """A search of the time before an update returns the text of that time."""
    owner = kit.new_owner()
    before = pause()
    (memory_id,) = kit.add_texts(owner, ["My manager is Ivo."])
    between = pause()
    kit.system.update(owner, memory_id, "My manager is Rosa.")
    expect_equal(search_at(kit, owner, "manager", before), [], "results before the add")
    expect_equal(search_at(kit, owner, "manager", between), ["My manager is Ivo."], "results before the update")
    expect_equal(kit.search_texts(owner, "manager"), ["My manager is Rosa."], "results of today")
