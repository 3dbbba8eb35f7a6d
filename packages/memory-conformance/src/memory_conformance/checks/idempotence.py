"""A repeated call changes nothing more."""

from __future__ import annotations

from memory_conformance.registry import CheckError, Kit, check, expect, expect_equal, is_refused


@check("idempotence", "add list keys")
def the_same_key_is_one_memory(kit: Kit) -> None:
    """Adding twice with one key leaves one memory, with the later text."""
    owner = kit.new_owner()
    kit.system.add(owner, "I am 41.", key="age")
    kit.system.add(owner, "I am 42.", key="age")
    expect_equal(kit.list_texts(owner), ["I am 42."], "list after two adds with one key")


@check("idempotence", "add delete list")
def deleting_twice_is_harmless(kit: Kit) -> None:
    """A second deletion is refused or does nothing."""
    owner = kit.new_owner()
    first, _ = kit.add_texts(owner, ["Delete me.", "Keep me."])
    kit.system.delete(owner, first)
    is_refused(kit.system.delete, owner, first)
    expect_equal(kit.list_texts(owner), ["Keep me."], "list after two deletions")


@check("idempotence", "add erase list")
def erasing_twice_is_harmless(kit: Kit) -> None:
    """A second erasure is refused or does nothing, and the owner can return."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["Erase me."])
    kit.system.erase(owner)
    is_refused(kit.system.erase, owner)
    kit.add_texts(owner, ["I am back."])
    expect_equal(kit.list_texts(owner), ["I am back."], "list after the return")


@check("idempotence", "add update list")
def equal_updates_are_one(kit: Kit) -> None:
    """Updating twice to the same text leaves one memory."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["I live in Faro."])
    kit.system.update(owner, memory_id, "I live in Lagos.")
    is_refused(kit.system.update, owner, memory_id, "I live in Lagos.")
    expect_equal(kit.list_texts(owner), ["I live in Lagos."], "list after two equal updates")


@check("idempotence", "add list search get")
def reading_changes_nothing(kit: Kit) -> None:
    """Reads leave the records as they are."""
    owner = kit.new_owner()
    ids = kit.add_texts(owner, ["Alpha is first.", "Beta is second."])
    before = sorted(map(repr, kit.system.list(owner)))
    for _ in range(5):
        kit.system.search(owner, "alpha")
        kit.system.get(owner, ids[0])
        kit.system.list(owner)
    expect_equal(sorted(map(repr, kit.system.list(owner))), before, "records after fifteen reads")


@check("idempotence", "add search")
def equal_searches_have_equal_results(kit: Kit) -> None:
    """The same search twice returns the same ids in the same order."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Candle {number} burns." for number in range(8)])
    first = [record.id for record in kit.system.search(owner, "candle burns")]
    second = [record.id for record in kit.system.search(owner, "candle burns")]
    expect_equal(second, first, "ids of the second search")


@check("idempotence", "add delete get")
def a_deleted_id_does_not_return(kit: Kit) -> None:
    """Adding the deleted text again does not revive the deletion, and updating a deleted id creates nothing."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["I own a canoe."])
    kit.system.delete(owner, memory_id)
    expect(kit.system.get(owner, memory_id) is None, "get() returned a deleted memory")
    again = kit.system.add(owner, "I own a canoe.")
    if kit.system.get(owner, again) is None:
        raise CheckError("a text cannot be added again after its deletion")
