"""Filters select by metadata, exactly, before the limit."""

from __future__ import annotations

from typing import Any

from memory_conformance.registry import Kit, check, expect_equal, is_refused, read_texts


def add_with(kit: Kit, owner: str, values: dict[str, dict[str, Any]]) -> None:
    """Add each text with its metadata."""
    for text, metadata in values.items():
        kit.system.add(owner, text, metadata=metadata)


def list_where(kit: Kit, owner: str, filters: dict[str, Any]) -> list[str]:
    """Return the texts that a filter selects."""
    return read_texts(kit.system.list(owner, filters=filters))


@check("filters", "add list metadata filters")
def a_list_is_filtered(kit: Kit) -> None:
    """list() with a filter returns exactly the memories that have the value."""
    owner = kit.new_owner()
    add_with(kit, owner, {"Red.": {"color": "red"}, "Blue.": {"color": "blue"}, "None.": {}})
    expect_equal(list_where(kit, owner, {"color": "red"}), ["Red."], "list")
    expect_equal(list_where(kit, owner, {"color": "green"}), [], "list for a value that no memory has")


@check("filters", "add search metadata filters")
def a_search_is_filtered(kit: Kit) -> None:
    """search() with a filter returns only memories that have the value."""
    owner = kit.new_owner()
    add_with(kit, owner, {"A trumpet at home.": {"place": "home"}, "A trumpet at work.": {"place": "work"}})
    found = read_texts(kit.system.search(owner, "trumpet", filters={"place": "work"}))
    expect_equal(found, ["A trumpet at work."], "results")


@check("filters", "add search metadata filters")
def filters_apply_before_the_limit(kit: Kit) -> None:
    """A filter that few memories pass still fills the limit."""
    owner = kit.new_owner()
    for number in range(60):
        kit.system.add(owner, f"A harbor with ship {number}.", metadata={"rare": number % 20 == 19})
    found = kit.system.search(owner, "harbor ship", limit=3, filters={"rare": True})
    expect_equal(len(found), 3, "results of limit=3 where three of sixty memories pass the filter")


@check("filters", "add list metadata filters")
def all_conditions_must_hold(kit: Kit) -> None:
    """Two keys of a filter are joined by AND."""
    owner = kit.new_owner()
    add_with(kit, owner, {"A.": {"x": "1", "y": "1"}, "B.": {"x": "1", "y": "2"}, "C.": {"x": "2", "y": "1"}})
    expect_equal(list_where(kit, owner, {"x": "1", "y": "1"}), ["A."], "list")


@check("filters", "add list metadata filters")
def numbers_are_not_texts(kit: Kit) -> None:
    """A filter on the text '1' does not select the number 1."""
    owner = kit.new_owner()
    add_with(kit, owner, {"Number.": {"n": 1}, "Text.": {"n": "1"}})
    expect_equal(list_where(kit, owner, {"n": 1}), ["Number."], "list for the number 1")
    expect_equal(list_where(kit, owner, {"n": "1"}), ["Text."], "list for the text '1'")


@check("filters", "add list metadata filters")
def booleans_are_filtered(kit: Kit) -> None:
    """Filters on True and False select the memories that have them."""
    owner = kit.new_owner()
    add_with(kit, owner, {"Yes.": {"done": True}, "No.": {"done": False}, "Open.": {}})
    expect_equal(list_where(kit, owner, {"done": True}), ["Yes."], "list for True")
    expect_equal(list_where(kit, owner, {"done": False}), ["No."], "list for False")


@check("filters", "add list metadata filters")
def hostile_values_are_values(kit: Kit) -> None:
    """Quotes and wildcards in a filter are text, not syntax."""
    owner = kit.new_owner()
    values = ["it's", 'say "x"', "100%", "a_b", "*", "' OR '1'='1", "$ne", "naïve 🙂", "back\\slash"]
    for value in values:
        kit.system.add(owner, f"Has {value}", metadata={"v": value})
    for value in values:
        if not is_refused(list_where, kit, owner, {"v": value}):
            expect_equal(list_where(kit, owner, {"v": value}), [f"Has {value}"], f"list for {value!a}")


@check("filters", "add list metadata filters")
def hostile_keys_select_nothing(kit: Kit) -> None:
    """Quotes in the key of a filter are refused or select nothing."""
    owner = kit.new_owner()
    add_with(kit, owner, {"Mine.": {"k": "v"}})
    for key in ("x' OR '1'='1", 'x" OR "1"="1', "x') OR 1=1 --", "x;--", "$where", "[0]"):
        if not is_refused(list_where, kit, owner, {key: "v"}):
            expect_equal(list_where(kit, owner, {key: "v"}), [], f"list for the key {key!r}")


@check("filters", "add list metadata filters operators")
def numbers_are_compared_as_numbers(kit: Kit) -> None:
    """10 is greater than 9."""
    owner = kit.new_owner()
    add_with(kit, owner, {"Nine.": {"n": 9}, "Ten.": {"n": 10}, "Hundred.": {"n": 100}})
    expect_equal(list_where(kit, owner, {"n": {"gt": 9}}), ["Hundred.", "Ten."], "list for n > 9")
    expect_equal(list_where(kit, owner, {"n": {"lt": 10}}), ["Nine."], "list for n < 10")


@check("filters", "add list metadata filters operators")
def ranges_have_two_ends(kit: Kit) -> None:
    """Two operators of one key must both hold."""
    owner = kit.new_owner()
    for number in range(6):
        kit.system.add(owner, f"Number {number}.", metadata={"n": number})
    expect_equal(list_where(kit, owner, {"n": {"gt": 1, "lt": 4}}), ["Number 2.", "Number 3."], "list for 1 < n < 4")


@check("filters", "add list metadata filters operators")
def sets_and_negations_select(kit: Kit) -> None:
    """'in' selects any of the values, 'ne' all others that have the key."""
    owner = kit.new_owner()
    add_with(kit, owner, {"A.": {"c": "a"}, "B.": {"c": "b"}, "C.": {"c": "c"}})
    expect_equal(list_where(kit, owner, {"c": {"in": ["a", "c"]}}), ["A.", "C."], "list for in")
    expect_equal(list_where(kit, owner, {"c": {"ne": "a"}}), ["B.", "C."], "list for ne")
