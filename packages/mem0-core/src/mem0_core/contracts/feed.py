"""Contract of the change feed."""

from __future__ import annotations

import threading

import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    LATER,
    StoreContract,
    commit_plan,
    in_threads,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.domain.feed import ChangeEvent
from mem0_core.domain.records import RESERVED_PREFIX, Event, InternalId, MemoryChange, Message, Scope
from mem0_core.errors import StoreError
from mem0_core.interfaces import MemoryStore

_WRITERS = 8
_ADDS = 6


def _last_seq(store: MemoryStore) -> int:
    """Return the cursor behind all changes so far; a store that was emptied still has an event of that."""
    return max((event.seq for event in store.feed.changes(None, after=0, limit=1_000)), default=0)


class FeedContract(StoreContract):
    """Suite for `ChangeFeed`."""

    def test_every_kind_of_change_is_one_event_in_order(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        (item,) = self.add(store, "Lives in Rome", actor_id="Ann", role="user")
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        store.pin(item.id, True)
        store.pin(item.id, True)
        store.pin(item.id, False)
        store.erase([item.id], at=LATER)
        events = store.feed.changes(None, after=start, limit=100)
        assert [(event.event, event.why) for event in events] == [
            ("ADD", "add"),
            ("UPDATE", "add"),
            ("UPDATE", "pin"),
            ("UPDATE", "unpin"),
            ("DELETE", "delete"),
        ]
        assert {(event.memory_id, event.user_id, event.actor_id, event.role) for event in events} == {
            (item.id, "alice", "Ann", "user")
        }
        seqs = [event.seq for event in events]
        assert seqs == sorted(set(seqs))

    def test_an_event_names_the_source_of_its_messages(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        plan = [MemoryChange(Event.ADD, make_item("I ski"), vector=unit_vectors(1)[0], message_indexes=(1,))]
        said = [Message("user", "hello", source="mail"), Message("user", "I ski", source="chat")]
        commit_plan(store, plan, messages=said)
        assert [event.source for event in store.feed.changes(ALICE, after=start, limit=9)] == ["chat"]

    def test_a_commit_that_changes_nothing_is_no_event(self, store: MemoryStore) -> None:
        self.add(store, "Likes tea")
        start = _last_seq(store)
        commit_plan(store, make_changes([make_item("likes TEA!")]))
        store.commit([], scope=ALICE, messages=[Message("user", "hello")], at=AT)
        assert store.erase(["unknown"], at=LATER) == 0
        assert store.feed.changes(None, after=start, limit=9) == []

    def test_pages_are_disjoint_and_complete(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        self.add(store, *(f"fact {index}" for index in range(7)))
        whole = store.feed.changes(None, after=start, limit=100)
        paged: list[ChangeEvent] = []
        while page := store.feed.changes(None, after=paged[-1].seq if paged else start, limit=3):
            paged += page
        assert paged == whole
        assert len(whole) == 7

    def test_a_scope_reads_its_own_events(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        (mine,) = self.add(store, "mine")
        (run,) = self.add(store, "in a run", scope=Scope("alice", None, "r"))
        (agents,) = self.add(store, "of an agent", scope=Scope(None, "helper"))
        (other,) = self.add(store, "other", scope=BOB)

        def ids(scope: Scope | None) -> list[str | None]:
            return [event.memory_id for event in store.feed.changes(scope, after=start, limit=9)]

        assert ids(ALICE) == [mine.id, run.id]
        assert ids(Scope("alice", None, "r")) == [run.id]
        assert ids(Scope(None, "helper")) == [agents.id]
        assert ids(Scope("nobody")) == []
        assert ids(None) == [mine.id, run.id, agents.id, other.id]

    def test_purging_a_scope_leaves_one_event_without_ids(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        self.add(store, "mine", "also mine")
        (other,) = self.add(store, "other", scope=BOB)
        cursor = store.feed.changes(None, after=start, limit=2)[-1].seq
        for _ in range(2):  # an erasure that is resumed erases again
            store.erase_scope(ALICE, at=LATER, purge=True)
        assert store.feed.changes(ALICE, after=0, limit=9) == []
        left = store.feed.changes(None, after=cursor, limit=9)
        assert [(event.event, event.memory_id, event.user_id) for event in left] == [
            ("ADD", other.id, "bob"),
            ("ERASE", None, None),
        ]
        assert store.feed.changes(None, after=start, limit=9) == left

    @pytest.mark.parametrize("scope", [ALICE, Scope(InternalId(f"{RESERVED_PREFIX}items"))], ids=["user", "internal"])
    def test_the_events_of_a_purged_memory_name_nobody(self, store: MemoryStore, scope: Scope) -> None:
        start = _last_seq(store)
        plan = make_changes([make_item(text, scope, actor_id="Ann") for text in ("I ski", "I row")], sources=(0,))
        said = [Message("user", "I ski and row", source="chat")]
        commit_plan(store, plan, scope=scope, messages=said)
        store.erase([plan[0].after.id], at=LATER, purge=True)
        events = store.feed.changes(None, after=start, limit=9)
        assert [(event.event, event.memory_id == plan[0].after.id, event.actor_id) for event in events] == [
            ("ADD", True, None),
            ("ADD", False, "Ann"),
            ("DELETE", True, None),
        ]
        assert [event.source for event in events] == [None, "chat", None]

    def test_emptying_the_store_is_an_event_behind_all_others(self, store: MemoryStore) -> None:
        self.add(store, "mine")
        cursor = _last_seq(store)
        for _ in range(2):
            store.reset()
        [reset] = store.feed.changes(None, after=cursor, limit=9)
        assert reset.event == "RESET"
        store.reset()
        assert store.feed.changes(None, after=cursor, limit=9) == [reset]
        (item,) = self.add(store, "mine again")
        assert [event.memory_id for event in store.feed.changes(ALICE, after=cursor, limit=9)] == [item.id]

    def test_a_reader_beside_eight_writers_sees_every_change_once_in_order(self, store: MemoryStore) -> None:
        start = _last_seq(store)
        finished = threading.Event()
        seen: list[ChangeEvent] = []

        def read() -> None:
            while True:
                is_last = finished.is_set()
                seen.extend(store.feed.changes(None, after=seen[-1].seq if seen else start, limit=5))
                if is_last and not store.feed.changes(None, after=seen[-1].seq if seen else start, limit=1):
                    return

        def write(index: int) -> None:
            scope = Scope(f"user {index % 4}")
            for number in range(_ADDS):
                (item,) = self.add(store, f"fact {number} of {index}", scope=scope)
                if number % 3 == 0:
                    store.erase([item.id], at=LATER)

        def work(index: int) -> None:
            if index == _WRITERS:
                read()
                return
            try:
                write(index)
            finally:
                done.append(index)
                if len(done) == _WRITERS:
                    finished.set()

        done: list[int] = []
        in_threads(work, _WRITERS + 1)
        assert [event.seq for event in seen] == sorted({event.seq for event in seen})
        assert seen == store.feed.changes(None, after=start, limit=1_000)
        assert len(seen) == _WRITERS * (_ADDS + _ADDS // 3)

    def test_a_write_that_fails_is_no_event(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "mine")
        start = _last_seq(store)
        plan = make_changes([make_item("new", id=item.id)])
        try:
            commit_plan(store, plan)
        except StoreError:
            pass
        else:
            raise AssertionError("an id was stored twice")
        assert store.feed.changes(None, after=start, limit=9) == []
