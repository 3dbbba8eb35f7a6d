"""Deleted data is not returned, and leaves the files of a store that says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memory_conformance.registry import InapplicableError, Kit, check, expect, expect_equal


def find_files_with(folder: Path, word: str) -> list[str]:
    """Return the names of files that contain a word in UTF-8 or UTF-16."""
    forms = (word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be"))
    return sorted({path.name for path, data in read_files(folder) if any(form in data for form in forms)})


def read_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file below a folder with its bytes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


def require_readable(kit: Kit, word: str) -> None:
    """Check that the search of the files would find a stored word."""
    kit.close()
    if not find_files_with(kit.folder, word):
        raise InapplicableError("the files hold no readable text")


def expect_no_residue(kit: Kit, word: str) -> None:
    """Check that no file has the word after the store was closed."""
    kit.close()
    files = find_files_with(kit.folder, word)
    expect(not files, f"the text is still in {', '.join(files)}")


@check("erasure", "add delete list search get")
def deleted_memories_are_gone(kit: Kit) -> None:
    """list(), search() and get() do not return a deleted memory."""
    owner = kit.new_owner()
    memory_id, _ = kit.add_texts(owner, ["My pin is marigold.", "My cat is gray."])
    kit.system.delete(owner, memory_id)
    expect_equal(kit.list_texts(owner), ["My cat is gray."], "list")
    expect("My pin is marigold." not in kit.search_texts(owner, "marigold"), "a search found the deleted memory")
    expect(kit.system.get(owner, memory_id) is None, "get() returned the deleted memory")


@check("erasure", "add delete list durable")
def deletions_remain_after_a_restart(kit: Kit) -> None:
    """close() and another open do not bring a deleted memory back."""
    owner = kit.new_owner()
    memory_id, _ = kit.add_texts(owner, ["Delete me.", "Keep me."])
    kit.system.delete(owner, memory_id)
    kit.reopen()
    expect_equal(kit.list_texts(owner), ["Keep me."], "list after a restart")


@check("erasure", "add erase list")
def an_erased_owner_has_nothing(kit: Kit) -> None:
    """erase() deletes all memories of an owner, however many."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Note {number}." for number in range(105)])
    kit.system.erase(owner)
    expect_equal(len(kit.list_texts(owner)), 0, "number of memories after the erasure")


@check("erasure", "add delete files durable", "erasure")
def deleted_text_leaves_the_files(kit: Kit) -> None:
    """The text of a deleted memory is in no file after close()."""
    owner, word = kit.new_owner(), "Zyxwquartz"
    memory_id, _ = kit.add_texts(owner, [f"My phrase is {word} indeed.", "I like tea."])
    require_readable(kit, word)
    kit.system.delete(owner, memory_id)
    expect_no_residue(kit, word)


@check("erasure", "add erase files durable", "erasure")
def erased_owners_leave_the_files(kit: Kit) -> None:
    """The texts of an erased owner are in no file after close()."""
    owner, word = kit.new_owner(), "Vyxquokkaberg"
    kit.add_texts(owner, [f"Entry {number} of {word}." for number in range(30)])
    require_readable(kit, word)
    kit.system.erase(owner)
    expect_no_residue(kit, word)


@check("erasure", "add update erase files durable", "erasure")
def replaced_text_leaves_the_files_with_its_owner(kit: Kit) -> None:
    """Earlier texts of an erased owner's memories are in no file after close()."""
    owner, word = kit.new_owner(), "Qwoxfjordling"
    (memory_id,) = kit.add_texts(owner, [f"The first text was {word}."])
    kit.system.update(owner, memory_id, "The second text is plain.")
    kit.system.erase(owner)
    expect_no_residue(kit, word)


@check("erasure", "add erase history")
def an_erased_owner_has_no_history(kit: Kit) -> None:
    """history() of an erased memory returns no text."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["Forget that I was here."])
    kit.system.erase(owner)
    try:
        texts = list(kit.system.history(owner, memory_id))
    except Exception:  # noqa: BLE001 a refusal is a good answer
        texts = []
    expect_equal(texts, [], "history after the erasure")
