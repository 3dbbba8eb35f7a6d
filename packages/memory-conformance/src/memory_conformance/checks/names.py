"""Hostile names of owners are refused or kept apart."""

from __future__ import annotations

import zlib

from memory_conformance.registry import Kit, check, expect_equal, is_refused

NAMES = (
    "a/b", "../../etc/passwd", "a.b", "it's", 'say "x"', "100%", "a_b", "back\\slash", "line\nbreak", "tab\tstop",
    "nul\0byte", "*", "?", "[a]", "{a}", "$(id)", "; DROP TABLE memories; --", "null", "None", "true", "0", "-1",
    "naïve", "nai\u0308ve", "日本", "🙂", "\u202etxt", "a" * 300, "user:1", "a|b", "a&user_id=b", "a=b", "<b>", "#x",
)  # fmt: skip
STRIPPED = (" lead", "trail ", "inner  space")


def add_if_accepted(kit: Kit, owner: str, text: str) -> bool:
    """Add a text, and return False if the store refuses the owner."""
    return not is_refused(kit.system.add, owner, text)


@check("names", "add list")
def names_are_refused_or_kept(kit: Kit) -> None:
    """Each hostile name is refused, or has exactly its own memory."""
    head = kit.new_owner("n")
    names = [f"{head}{name}" for name in NAMES]
    accepted = [name for name in names if add_if_accepted(kit, name, f"Of {name}")]
    for name in accepted:
        expect_equal(kit.list_texts(name), [f"Of {name}"], f"list of {name!a}")


@check("names", "add search")
def searches_of_hostile_names_are_exact(kit: Kit) -> None:
    """A search under a hostile name finds exactly its own memory."""
    head = kit.new_owner("s")
    names = [f"{head}{name}" for name in NAMES]
    accepted = [name for name in names if add_if_accepted(kit, name, f"Gherkin {number_of(name)}")]
    for name in accepted:
        expect_equal(kit.search_texts(name, "gherkin"), [f"Gherkin {number_of(name)}"], f"search of {name!a}")


def number_of(name: str) -> str:
    """Return a text that tells names apart without repeating them."""
    return f"{zlib.crc32(name.encode()):08x}"


@check("names", "add erase list")
def erasing_hostile_names_is_exact(kit: Kit) -> None:
    """Erasing a hostile name leaves all other owners alone."""
    head = kit.new_owner("e")
    kit.add_texts(head, ["The witness."])
    for name in NAMES:
        owner = f"{head}{name}"
        if add_if_accepted(kit, owner, "Short."):
            kit.system.erase(owner)
            expect_equal(kit.list_texts(owner), [], f"list of {owner!a} after its erasure")
    expect_equal(kit.list_texts(head), ["The witness."], "list of the witness")


@check("names", "add list")
def spaces_belong_to_the_name(kit: Kit) -> None:
    """A name with spaces at its ends is refused, or is another owner than the name without."""
    for name in STRIPPED:
        head = kit.new_owner("w")
        owners = (f" {head}", head, f"{head} ") if name != "inner  space" else (f"{head} x", f"{head}  x")
        accepted = [owner for owner in owners if add_if_accepted(kit, owner, f"Of {owner!r}")]
        for owner in accepted:
            expect_equal(kit.list_texts(owner), [f"Of {owner!r}"], f"list of {owner!r}")


@check("names", "add list")
def an_empty_name_is_no_wildcard(kit: Kit) -> None:
    """The empty name is refused, or sees no memory of another owner."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["Of somebody else."])
    for name in ("", " ", "*", "%"):
        texts: list[str] = []
        if not is_refused(kit.list_texts, name):
            texts = kit.list_texts(name)
        expect_equal([text for text in texts if text == "Of somebody else."], [], f"list of {name!r}")
