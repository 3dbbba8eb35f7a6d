"""Contract of the past of memories: their history, and their earlier texts."""

from __future__ import annotations

import numpy as np

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BEFORE,
    BOB,
    LATER,
    StoreContract,
    commit_plan,
    item_fields,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
)
from mem0_core.interfaces import MemoryStore


class HistoryContract(StoreContract):
    """Suite for `MemoryHistory`."""

    def test_history_lists_every_change_in_order(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Has a sister", actor_id="Desmond", role="user")
        self.change(store, Event.UPDATE, item, "Has a sister named Jesica")
        self.change(store, Event.DELETE, item, "Has a sister named Jesica")
        rows = store.history(item.id)
        assert [(row.event, row.old_memory, row.new_memory, row.is_deleted) for row in rows] == [
            ("ADD", None, "Has a sister", False),
            ("UPDATE", "Has a sister", "Has a sister named Jesica", False),
            ("DELETE", "Has a sister named Jesica", None, True),
        ]
        assert {(row.memory_id, row.actor_id, row.role, row.created_at) for row in rows} == {
            (item.id, "Desmond", "user", AT)
        }
        assert [row.updated_at for row in rows] == [None, LATER, LATER]
        assert len({row.id for row in rows}) == 3

    def test_a_repeated_fact_adds_no_history(self, store: MemoryStore) -> None:
        (first,) = self.add(store, "Likes cheese pizza.")
        commit_plan(store, make_changes([make_item("likes  CHEESE pizza!")]))
        self.add(store, "Likes cheese pizza.", scope=BOB)
        assert len(store.history(first.id)) == 1

    def test_a_memory_that_became_a_duplicate_is_deleted_on_record(self, store: MemoryStore) -> None:
        _, merged = self.add(store, "Likes tea", "Likes green tea")
        self.change(store, Event.UPDATE, merged, "likes TEA")
        assert store.history(merged.id)[-1].event == "DELETE"

    def test_purging_removes_the_history(self, store: MemoryStore) -> None:
        one, two = self.add(store, "one", "two")
        store.erase([one.id], at=LATER)
        store.erase([one.id, two.id], at=LATER, purge=True)
        assert store.history(one.id) == []
        assert store.history(two.id) == []

    def test_earlier_texts_are_kept_for_searches_as_of_their_time(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome")
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        self.change(store, Event.DELETE, item, "Lives in Oslo")
        (kept,) = self.add(store, "Likes tea", created_at=AT)
        then = {day: store.past_memories(ALICE, as_of=day) for day in (BEFORE, AT, LATER)}
        assert [[past.text for past in items] for items, _ in then.values()] == [[], ["Lives in Rome"], []]
        items, vectors = then[AT]
        assert items[0].id == item.id
        assert [(past.text, end) for past, end in store.replaced_texts(ALICE, limit=9)[0]] == [
            ("Lives in Rome", LATER),
            ("Lives in Oslo", LATER),
        ]
        assert np.allclose(vectors, unit_vectors(1))
        assert store.memories_by_rows(store.rows(ALICE, as_of=AT).tolist(), scope=ALICE).keys() == {
            row
            for row, found in store.memories_by_rows(store.rows(ALICE).tolist(), scope=ALICE).items()
            if found.id == kept.id
        }
        assert len(store.rows(ALICE, as_of=BEFORE)) == 0

    def test_earlier_texts_have_no_row(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome", created_at=BEFORE)
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        assert [each.row for each in store.past_memories(ALICE, as_of=BEFORE)[0]] == [None]

    def test_a_change_of_metadata_leaves_no_earlier_text(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome")
        after = MemoryItem(**{**item_fields(item), "metadata": {"k": 1}, "updated_at": LATER})
        store.commit([MemoryChange(Event.UPDATE, after, before=item.text)], scope=ALICE, at=LATER)
        assert store.past_memories(ALICE, as_of=AT)[0] == []
        assert len(store.rows(ALICE, as_of=AT)) == 1

    def test_erasing_removes_earlier_texts(self, store: MemoryStore) -> None:
        updated, deleted, other = self.add(store, "Lives in Rome", "Works in Rome", "Was in Rome")
        for item in (updated, other):
            self.change(store, Event.UPDATE, item, f"{item.text} no more")
        self.change(store, Event.DELETE, deleted, "Works in Rome")
        assert len(store.past_memories(ALICE, as_of=AT)[0]) == 3
        assert store.erase([updated.id], at=LATER) == 1
        assert store.erase([deleted.id], at=LATER) == 1, "what a plan deleted is still there to be erased"
        assert store.erase([deleted.id], at=LATER) == 0
        assert [item.id for item in store.past_memories(ALICE, as_of=AT)[0]] == [other.id]
        store.erase_scope(ALICE, at=LATER)
        assert store.past_memories(ALICE, as_of=AT)[0] == []
