"""An update replaces a text everywhere, and keeps everything else."""

from __future__ import annotations

import time

from memory_conformance.registry import Kit, check, expect, expect_equal, is_refused


@check("updates", "add update get list")
def an_update_replaces_the_text(kit: Kit) -> None:
    """get() and list() return the new text under the same id."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["I work at a bank."])
    kit.system.update(owner, memory_id, "I work at a school.")
    expect_equal(kit.require(owner, memory_id).text, "I work at a school.", "text")
    expect_equal(kit.list_texts(owner), ["I work at a school."], "list")


@check("updates", "add update search")
def a_search_finds_the_new_text(kit: Kit) -> None:
    """search() finds the new words, and never returns the old text."""
    owner = kit.new_owner()
    memory_id, _ = kit.add_texts(owner, ["My car is a saab.", "The weather is fine."])
    kit.system.update(owner, memory_id, "My car is a tesla.")
    expect_equal(kit.search_texts(owner, "tesla")[:1], ["My car is a tesla."], "first result for the new word")
    expect("My car is a saab." not in kit.search_texts(owner, "saab"), "a search returned the replaced text")


@check("updates", "add update search ranked")
def the_index_follows_an_update(kit: Kit) -> None:
    """The old words no longer rank an updated memory first."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["The violin hangs in the attic."])
    kit.add_texts(owner, ["A violin needs strings."])
    kit.system.update(owner, memory_id, "Nothing of note was ever put upstairs.")
    expect_equal(kit.search_texts(owner, "violin")[:1], ["A violin needs strings."], "first result")


@check("updates", "add update get metadata")
def an_update_keeps_the_metadata(kit: Kit) -> None:
    """Metadata that the update does not name remains."""
    owner = kit.new_owner()
    memory_id = kit.system.add(owner, "I drink tea.", metadata={"topic": "drinks", "level": 3})
    kit.system.update(owner, memory_id, "I drink coffee.")
    metadata = kit.require(owner, memory_id).metadata
    expect_equal((metadata.get("topic"), metadata.get("level")), ("drinks", 3), "metadata")


@check("updates", "add update get timestamps")
def an_update_keeps_the_time_of_creation(kit: Kit) -> None:
    """created_at remains, and updated_at does not go back."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["First version."])
    before = kit.require(owner, memory_id)
    pause_for_a_new_second()
    kit.system.update(owner, memory_id, "Second version.")
    after = kit.require(owner, memory_id)
    expect_equal(after.created_at, before.created_at, "created_at after an update")
    earlier, later = before.updated_at or before.created_at, after.updated_at
    expect(later is not None, "the record has no updated_at after an update")
    assert later is not None
    expect(earlier is None or later >= earlier, "updated_at went back")


def pause_for_a_new_second() -> None:
    """Wait until stores that keep whole seconds can tell two times apart."""
    time.sleep(1.05)


@check("updates", "add update list")
def unknown_ids_are_not_created(kit: Kit) -> None:
    """Updating an id that does not exist is refused or does nothing."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["The only one."])
    is_refused(kit.system.update, owner, "00000000-0000-4000-8000-000000000000", "A ghost.")
    expect_equal(kit.list_texts(owner), ["The only one."], "list")


@check("updates", "add update list")
def other_memories_remain(kit: Kit) -> None:
    """An update changes one memory only."""
    owner = kit.new_owner()
    ids = kit.add_texts(owner, [f"Plant {number} is green." for number in range(6)])
    kit.system.update(owner, ids[2], "Plant 2 is dry.")
    expected = sorted(["Plant 2 is dry.", *(f"Plant {number} is green." for number in (0, 1, 3, 4, 5))])
    expect_equal(kit.list_texts(owner), expected, "list")


@check("updates", "add update history")
def the_history_has_every_text(kit: Kit) -> None:
    """history() returns the texts in the order in which they were written."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["I weigh 80 kilos."])
    kit.system.update(owner, memory_id, "I weigh 78 kilos.")
    kit.system.update(owner, memory_id, "I weigh 76 kilos.")
    expected = ["I weigh 80 kilos.", "I weigh 78 kilos.", "I weigh 76 kilos."]
    expect_equal(list(kit.system.history(owner, memory_id)), expected, "history")


@check("updates", "add update list durable")
def updates_remain_after_a_restart(kit: Kit) -> None:
    """close() and another open keep an update."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["Draft."])
    kit.system.update(owner, memory_id, "Final.")
    kit.reopen()
    expect_equal(kit.list_texts(owner), ["Final."], "list after a restart")
