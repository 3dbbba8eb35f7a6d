"""Memories end at the time that was given."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from memory_conformance.registry import Kit, check, expect, expect_equal

TOMORROW_OR_LATER = timedelta(days=3)


def expect_hidden(kit: Kit, owner: str, memory_id: str, word: str) -> None:
    """Check that no read returns an ended memory."""
    expect_equal(kit.list_texts(owner), ["It stays."], "list after the end")
    texts = kit.search_texts(owner, word)
    expect(not any(word in text for text in texts), "a search found a memory whose time was over")
    record = kit.system.get(owner, memory_id)
    expect(record is None, "get() returned a memory whose time was over")


@check("ttl", "add list search get ttl")
def memories_end_on_time(kit: Kit) -> None:
    """No read returns a memory two seconds after its time."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["It stays."])
    memory_id = kit.system.add(owner, "The parcel comes.", expires=datetime.now(UTC) + timedelta(seconds=1))
    time.sleep(2.1)
    expect_hidden(kit, owner, memory_id, "parcel")


@check("ttl", "add list ttl")
def reading_does_not_revive(kit: Kit) -> None:
    """A memory whose time is over does not return after it was read."""
    owner = kit.new_owner()
    kit.system.add(owner, "The sale ends.", expires=datetime.now(UTC) + timedelta(seconds=1))
    time.sleep(2.1)
    for _ in range(2):
        expect_equal(kit.list_texts(owner), [], "list after the end")


@check("ttl", "add list search ttl_days")
def memories_of_yesterday_are_hidden(kit: Kit) -> None:
    """list() and search() do not return a memory whose last day was two days ago."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["It stays."])
    kit.system.add(owner, "The parcel comes.", expires=datetime.now(UTC) - timedelta(days=2))
    expect_equal(kit.list_texts(owner), ["It stays."], "list after the end")
    expect("The parcel comes." not in kit.search_texts(owner, "parcel"), "a search found a memory of the past")


@check("ttl", "add list search ttl_days")
def expired_memories_take_no_places(kit: Kit) -> None:
    """Expired memories do not fill the limit of a search or a list."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["The ferry of today leaves."])
    for number in range(64):
        kit.system.add(owner, f"The ferry number {number} left.", expires=datetime.now(UTC) - timedelta(days=2))
    kit.add_texts(owner, ["The ferry of tomorrow leaves."])
    expected = ["The ferry of today leaves.", "The ferry of tomorrow leaves."]
    found = sorted(record.text for record in kit.system.search(owner, "ferry", limit=5))
    expect_equal(found, expected, "results of limit=5")
    expect_equal(sorted(record.text for record in kit.system.list(owner, limit=5)), expected, "list of limit=5")


@check("ttl", "add list search get ttl")
def memories_do_not_end_early(kit: Kit) -> None:
    """A memory that ends in three days is returned today."""
    expect_visible(kit)


@check("ttl", "add list search get ttl_days")
def memories_do_not_end_days_early(kit: Kit) -> None:
    """A memory whose last day is in three days is returned today."""
    expect_visible(kit)


def expect_visible(kit: Kit) -> None:
    """Check that all reads return a memory whose time is not over."""
    owner = kit.new_owner()
    memory_id = kit.system.add(owner, "The fair is on.", expires=datetime.now(UTC) + TOMORROW_OR_LATER)
    expect_equal(kit.list_texts(owner), ["The fair is on."], "list")
    expect_equal(kit.search_texts(owner, "fair"), ["The fair is on."], "search")
    kit.require(owner, memory_id)
