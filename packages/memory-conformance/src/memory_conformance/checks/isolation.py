"""Owners see and change only their own memories."""

from __future__ import annotations

from collections.abc import Iterator

from memory_conformance.registry import Kit, check, expect, expect_equal, is_refused

CONFUSABLE = (("ann", "anna"), ("team", "TEAM"), ("a_c", "abc"), ("p%", "path"), ("x*", "xyz"), ("1", "01"))
"""Pairs that patterns of LIKE and GLOB, prefixes, case folding or number conversion take for one another."""


def add_for_similar_owners(kit: Kit, text: str, other: str) -> Iterator[tuple[str, str, str]]:
    """Add a text for the first of two similar owners and another for the second; yield them, and their short names."""
    for first, second in CONFUSABLE:
        tail = kit.new_owner("")
        if not is_refused(kit.add_texts, f"{tail}{first}", [text]):
            kit.add_texts(f"{tail}{second}", [other])
            yield f"{tail}{first}", f"{tail}{second}", f"{first!r} and {second!r}"


@check("isolation", "add list")
def lists_are_separate(kit: Kit) -> None:
    """A list contains only memories of its owner."""
    first, second = kit.new_owner(), kit.new_owner()
    kit.add_texts(first, ["I keep bees."])
    kit.add_texts(second, ["I keep goats."])
    expect_equal(kit.list_texts(first), ["I keep bees."], "list of the first owner")
    expect_equal(kit.list_texts(second), ["I keep goats."], "list of the second owner")


@check("isolation", "add search")
def searches_are_separate(kit: Kit) -> None:
    """A search finds only memories of its owner."""
    first, second = kit.new_owner(), kit.new_owner()
    kit.add_texts(first, ["The marmalade is mine."])
    kit.add_texts(second, ["The bread is mine."])
    found = kit.search_texts(second, "marmalade")
    expect("The marmalade is mine." not in found, "a search found a memory of another owner")


@check("isolation", "add list")
def similar_owners_are_different(kit: Kit) -> None:
    """Owners that differ in case, in a suffix or in a wildcard are different owners."""
    for first, second, names in add_for_similar_owners(kit, "First.", "Second."):
        expect_equal(kit.list_texts(first), ["First."], f"list of the first of {names}")
        expect_equal(kit.list_texts(second), ["Second."], f"list of the second of {names}")


@check("isolation", "add search")
def searches_of_similar_owners_are_separate(kit: Kit) -> None:
    """A search does not take a similar name for its owner."""
    for first, _, names in add_for_similar_owners(kit, "A quokka of the first.", "A quokka of the second."):
        found = kit.search_texts(first, "quokka")
        expect_equal(found, ["A quokka of the first."], f"search of the first of {names}")


@check("isolation", "add erase list")
def erasing_spares_similar_owners(kit: Kit) -> None:
    """Erasing an owner leaves owners with a similar name alone."""
    for first, second, names in add_for_similar_owners(kit, "First.", "Second."):
        kit.system.erase(first)
        expect_equal(kit.list_texts(first), [], f"list of the first of {names} after its erasure")
        expect_equal(kit.list_texts(second), ["Second."], f"list of the second of {names} after the first was erased")


@check("isolation", "add get owned_ids")
def ids_open_only_own_memories(kit: Kit) -> None:
    """An id of one owner opens nothing for another."""
    first, second = kit.new_owner(), kit.new_owner()
    (memory_id,) = kit.add_texts(first, ["My code is 4711."])
    kit.add_texts(second, ["I am new."])
    expect_equal(kit.require(first, memory_id).text, "My code is 4711.", "text for the owner")
    opened = None
    if not is_refused(kit.system.get, second, memory_id):
        opened = kit.system.get(second, memory_id)
    expect(opened is None, "get() returned a memory of another owner")


@check("isolation", "add get update delete owned_ids")
def ids_change_only_own_memories(kit: Kit) -> None:
    """An id of one owner lets another neither update nor delete."""
    first, second = kit.new_owner(), kit.new_owner()
    (memory_id,) = kit.add_texts(first, ["I pay the rent."])
    kit.add_texts(second, ["I am new."])
    is_refused(kit.system.update, second, memory_id, "I do not.")
    expect_equal(kit.require(first, memory_id).text, "I pay the rent.", "text after the update of a stranger")
    is_refused(kit.system.delete, second, memory_id)
    expect_equal(kit.require(first, memory_id).text, "I pay the rent.", "text after the deletion of a stranger")


@check("isolation", "add list filters metadata")
def filters_do_not_widen_the_owner(kit: Kit) -> None:
    """A filter cannot name another owner."""
    first, second = kit.new_owner(), kit.new_owner()
    kit.system.add(first, "A secret.", metadata={"topic": "x"})
    kit.system.add(second, "A remark.", metadata={"topic": "x"})
    for key in ("user_id", "owner", "namespace", "prefix", "thread_id"):
        records = []
        if not is_refused(kit.system.list, second, filters={key: first}):
            records = [record.text for record in kit.system.list(second, filters={key: first})]
        expect("A secret." not in records, f"a filter on {key!r} listed the memory of another owner")


@check("isolation", "add list metadata")
def metadata_does_not_change_the_owner(kit: Kit) -> None:
    """Metadata cannot place a memory with another owner."""
    first, second = kit.new_owner(), kit.new_owner()
    kit.add_texts(first, ["Mine."])
    for key in ("user_id", "owner", "namespace", "prefix", "thread_id"):
        is_refused(kit.system.add, second, f"By {key}.", metadata={key: first})
    expect_equal(kit.list_texts(first), ["Mine."], "list of the owner that the metadata named")
