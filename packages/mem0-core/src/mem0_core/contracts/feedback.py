"""Contract of feedback: the counts of a memory, and their end."""

from __future__ import annotations

from mem0_core.contracts.samples import (
    ALICE,
    BOB,
    LATER,
    StoreContract,
    in_threads,
    unit_vectors,
)
from mem0_core.domain.records import Event
from mem0_core.interfaces import MemoryStore


class FeedbackContract(StoreContract):
    """Suite for `MemoryRecords.mark`."""

    def counts(self, store: MemoryStore, memory_id: str) -> tuple[int, int]:
        found = store.get(memory_id)
        assert found is not None
        return found.useful, found.useless

    def test_marks_add_up_and_every_read_has_them(self, store: MemoryStore) -> None:
        one, other = self.add(store, "Lives in Rome", "Likes tea")
        assert store.mark([one.id, one.id, "unknown"], useful=2) == 1
        assert store.mark([one.id, other.id], useless=1) == 2
        (row, _) = store.rows(ALICE).tolist()
        features = store.lexicon.memory_features(ALICE, [row], today="2024-01-01", vector=unit_vectors(1)[0])
        assert [(one.useful, one.useless) for one in features.memories] == [(2, 1)]
        read = [*store.list_memories(ALICE), store.memories_by_rows([row], scope=ALICE)[row]]
        assert [(item.useful, item.useless) for item in read] == [(2, 1), (0, 1), (2, 1)]

    def test_clearing_begins_at_zero(self, store: MemoryStore) -> None:
        (one,) = self.add(store, "Lives in Rome")
        store.mark([one.id], useful=3, useless=2)
        store.mark([one.id], useful=1, clear=True)
        assert self.counts(store, one.id) == (1, 0)
        store.mark([one.id], clear=True)
        assert self.counts(store, one.id) == (0, 0)

    def test_a_new_text_keeps_the_marks_and_an_earlier_text_has_none(self, store: MemoryStore) -> None:
        (one,) = self.add(store, "Lives in Rome")
        store.mark([one.id], useful=1)
        self.change(store, Event.UPDATE, one, "Lives in Oslo")
        assert self.counts(store, one.id) == (1, 0)
        ((before, _),), _ = store.replaced_texts(ALICE, limit=9)
        assert (before.text, before.useful) == ("Lives in Rome", 0)

    def test_marks_leave_with_their_memory(self, store: MemoryStore) -> None:
        (one,) = self.add(store, "Lives in Rome")
        (others,) = self.add(store, "Lives in Rome", scope=BOB)
        store.mark([one.id], useful=1)
        store.erase([one.id], at=LATER)
        assert store.mark([one.id], useful=1) == 0
        (again,) = self.add(store, "Lives in Rome")
        assert [self.counts(store, memory_id) for memory_id in (again.id, others.id)] == [(0, 0), (0, 0)]

    def test_each_changed_count_is_an_event(self, store: MemoryStore) -> None:
        (one,) = self.add(store, "Lives in Rome")
        seq = store.feed.changes(ALICE, after=0, limit=9)[-1].seq
        store.mark([one.id], useful=1)
        store.mark([one.id], clear=True)
        store.mark([one.id], clear=True)  # changes nothing
        events = store.feed.changes(ALICE, after=seq, limit=9)
        assert [(event.event, event.why, event.memory_id) for event in events] == [("UPDATE", "feedback", one.id)] * 2

    def test_concurrent_marks_all_count(self, store: MemoryStore) -> None:
        items = self.add(store, "Lives in Rome", "Likes tea", "Has a dog")
        ids = [item.id for item in items]

        def mark_all(number: int) -> None:
            store.mark(ids[number % 3 :] + ids[: number % 3], useful=1)

        in_threads(mark_all, 6)
        assert [self.counts(store, memory_id) for memory_id in ids] == [(6, 0)] * 3
