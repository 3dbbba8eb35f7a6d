"""A write is visible to the next call, as it was written."""

from __future__ import annotations

from typing import Any

from memory_conformance.registry import Kit, check, expect, expect_equal

VALUES: dict[str, Any] = {
    "quoted": "a 'quoted' \"text\"",
    "empty": "",
    "integer": 3,
    "negative": -7,
    "large": 2**53 + 1,
    "fraction": 0.1,
    "yes": True,
    "no": False,
    "list": ["a", "b"],
    "digits": "007",
}


@check("reads", "add get")
def added_memories_can_be_read(kit: Kit) -> None:
    """get() returns an added text at once."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["I was born in Porto."])
    record = kit.require(owner, memory_id)
    expect_equal((record.id, record.text), (memory_id, "I was born in Porto."), "record")


@check("reads", "add list")
def added_memories_are_listed(kit: Kit) -> None:
    """list() returns every added text at once."""
    owner = kit.new_owner()
    texts = [f"Fact number {number}." for number in range(5)]
    for count, text in enumerate(texts, 1):
        kit.add_texts(owner, [text])
        expect_equal(kit.list_texts(owner), texts[:count], "list after an add")


@check("reads", "add search")
def added_memories_are_found(kit: Kit) -> None:
    """search() finds an added text at once."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["I collect stamps.", "My sister plays the oboe.", "We rent a boat in summer."])
    expect_equal(kit.search_texts(owner, "oboe")[:1], ["My sister plays the oboe."], "first result")


@check("reads", "add search ranked")
def the_closest_memory_is_first(kit: Kit) -> None:
    """The memory with the words of the query is the first result, among many."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Room {number} has a blue carpet." for number in range(20)])
    kit.add_texts(owner, ["The walnut cake is in the pantry."])
    kit.add_texts(owner, [f"Hall {number} has a red door." for number in range(20)])
    found = kit.search_texts(owner, "walnut cake pantry")
    expect_equal(found[:1], ["The walnut cake is in the pantry."], "first result")


@check("reads", "add search")
def a_search_respects_its_limit(kit: Kit) -> None:
    """search(limit=3) returns three of many matches."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Lantern number {number}." for number in range(12)])
    found = kit.system.search(owner, "lantern", limit=3)
    expect_equal(len(found), 3, "number of results")
    expect_equal(len({record.id for record in found}), 3, "number of different results")


@check("reads", "add list search")
def strangers_have_nothing(kit: Kit) -> None:
    """An owner without memories gets empty results, not errors."""
    owner = kit.new_owner()
    expect_equal(list(kit.system.list(owner)), [], "list")
    expect_equal(list(kit.system.search(owner, "anything")), [], "search")


@check("reads", "add get")
def unknown_ids_return_none(kit: Kit) -> None:
    """get() of a well-formed id that does not exist returns None."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["I exist."])
    record = kit.system.get(owner, "00000000-0000-4000-8000-000000000000")
    expect(record is None, "get() returned a memory for an id that was never given")


@check("reads", "add get metadata")
def metadata_returns_unchanged(kit: Kit) -> None:
    """Numbers, booleans, empty texts and lists of metadata keep value and type."""
    owner = kit.new_owner()
    memory_id = kit.system.add(owner, "With metadata.", metadata=VALUES)
    metadata = kit.require(owner, memory_id).metadata
    for key, value in VALUES.items():
        expect_equal((key, type(metadata.get(key)), metadata.get(key)), (key, type(value), value), "metadata")


@check("reads", "add get metadata")
def records_are_copies(kit: Kit) -> None:
    """Changing a returned or given mapping does not change the store."""
    owner = kit.new_owner()
    given: dict[str, Any] = {"tags": ["a"]}
    memory_id = kit.system.add(owner, "Handle with care.", metadata=given)
    given["tags"].append("given")
    tags = kit.require(owner, memory_id).metadata.get("tags")
    expect_equal(tags, ["a"], "metadata after the caller changed the given mapping")
    assert isinstance(tags, list)
    tags.append("returned")
    expect_equal(kit.require(owner, memory_id).metadata.get("tags"), ["a"], "metadata after a returned list changed")


@check("reads", "add list durable")
def memories_remain_after_a_restart(kit: Kit) -> None:
    """close() and another open keep all memories."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["One.", "Two.", "Three."])
    kit.reopen()
    expect_equal(kit.list_texts(owner), ["One.", "Three.", "Two."], "list after a restart")


@check("reads", "add search durable")
def memories_are_found_after_a_restart(kit: Kit) -> None:
    """close() and another open keep the search index."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["The ladder is in the shed.", "The kettle is in the kitchen."])
    kit.reopen()
    expect_equal(kit.search_texts(owner, "ladder")[:1], ["The ladder is in the shed."], "first result")


@check("reads", "add get timestamps")
def records_have_their_time(kit: Kit) -> None:
    """created_at is a time with a zone, near the time of the call."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["Now."])
    created = kit.require(owner, memory_id).created_at
    expect(created is not None, "the record has no created_at")
    assert created is not None
    expect(created.tzinfo is not None, f"created_at has no time zone: {created!r}")
