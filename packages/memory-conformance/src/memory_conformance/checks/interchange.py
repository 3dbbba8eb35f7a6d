"""A store can be left: its data passes through JSON lines and returns."""

from __future__ import annotations

import json

from memory_conformance.registry import Kit, check, expect_equal

MEMORIES = (
    ("I have two sons.", {"topic": "family", "weight": 3}),
    ("Ich wohne in Köln. 🙂", {"topic": "home", "weight": 0.5}),
    ('A "quoted"\nsecond line', {"topic": "misc", "done": False}),
    ("I have two sons and a dog.", {"topic": "near duplicate", "weight": 1}),
)


def export_lines(kit: Kit, owner: str) -> str:
    """Return all memories of an owner as JSON lines."""
    records = sorted(kit.system.list(owner), key=lambda record: record.text)
    return "\n".join(json.dumps({"text": record.text, "metadata": dict(record.metadata)}) for record in records)


def import_lines(kit: Kit, owner: str, lines: str) -> None:
    """Add memories from JSON lines."""
    for line in lines.split("\n"):
        memory = json.loads(line)
        kit.system.add(owner, memory["text"], metadata=memory["metadata"] or None)


@check("interchange", "add list")
def texts_pass_to_another_owner(kit: Kit) -> None:
    """Export and import keep all texts."""
    first, second = kit.new_owner(), kit.new_owner()
    kit.add_texts(first, [text for text, _ in MEMORIES])
    exported = kit.list_texts(first)
    expect_equal(len(exported), len(MEMORIES), "number of exported memories")
    kit.add_texts(second, exported)
    expect_equal(kit.list_texts(second), exported, "imported texts")


@check("interchange", "add list metadata")
def an_export_is_a_fixed_point(kit: Kit) -> None:
    """The export of an imported export is equal, with metadata."""
    first, second = kit.new_owner(), kit.new_owner()
    for text, metadata in MEMORIES:
        kit.system.add(first, text, metadata=metadata)
    exported = export_lines(kit, first)
    import_lines(kit, second, exported)
    expect_equal(export_lines(kit, second), exported, "second export")
