"""Pages cover a list exactly once."""

from __future__ import annotations

from memory_conformance.registry import Kit, check, expect, expect_equal


@check("paging", "add list")
def a_long_list_is_complete(kit: Kit) -> None:
    """list() without a limit returns all of 110 memories."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Item {number}." for number in range(110)])
    expect_equal(len({record.id for record in kit.system.list(owner)}), 110, "number of listed memories")


@check("paging", "add list paging")
def pages_cover_everything_once(kit: Kit) -> None:
    """Pages of seven return 30 memories once each."""
    owner = kit.new_owner()
    ids = set(kit.add_texts(owner, [f"Item {number}." for number in range(30)]))
    pages = [list(kit.system.list(owner, limit=7, offset=offset)) for offset in range(0, 42, 7)]
    expect_equal([len(page) for page in pages], [7, 7, 7, 7, 2, 0], "sizes of the pages")
    listed = [record.id for page in pages for record in page]
    expect_equal(len(set(listed)), 30, "number of different memories on the pages")
    expect(set(listed) == ids, "the pages have other ids than the adds returned")


@check("paging", "add list update paging")
def pages_have_the_order_of_the_list(kit: Kit) -> None:
    """Pages together have the order of the whole list, after updates too."""
    owner = kit.new_owner()
    ids = kit.add_texts(owner, [f"Item {number}." for number in range(20)])
    for position in (3, 11, 17):
        kit.system.update(owner, ids[position], f"Changed {position}.")
    whole = [record.id for record in kit.system.list(owner, limit=20)]
    pages = [record.id for offset in range(0, 20, 6) for record in kit.system.list(owner, limit=6, offset=offset)]
    expect_equal(pages, whole, "ids on the pages")


@check("paging", "add search search_paging")
def pages_of_a_search_go_on(kit: Kit) -> None:
    """Pages of five of a search return twenty matches once each."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Beacon {number} on the coast." for number in range(20)])
    pages = [list(kit.system.search(owner, "beacon coast", limit=5, offset=offset)) for offset in range(0, 20, 5)]
    expect_equal([len(page) for page in pages], [5, 5, 5, 5], "sizes of the pages of a search")
    found = {record.id for page in pages for record in page}
    expect_equal(len(found), 20, "number of different memories on the pages")
