"""Contract of spaces: members, roles, and writes that wait for approval."""

from __future__ import annotations

import pytest

from mem0_core.contracts.samples import AT, BOB, LATER, StoreContract, commit_plan, make_changes, make_item
from mem0_core.domain.records import Message, new_id
from mem0_core.domain.spaces import (
    MAX_PENDING_WRITES,
    Member,
    Membership,
    PendingWrite,
    SpaceRole,
    member_source,
    space_scope,
)
from mem0_core.errors import AccessError, LimitError
from mem0_core.interfaces import MemoryStore

READER, WRITER, OWNER = SpaceRole


def _make_write(author: str = "bob", text: str = "I ski") -> PendingWrite:
    return PendingWrite(new_id(), "team", author, "add", {"messages": [{"role": "user", "content": text}]}, AT)


class SpacesContract(StoreContract):
    """Suite for `SpaceLedger`."""

    def make_team(self, store: MemoryStore) -> None:
        """Create a space of the owner ann, the writer bob and the reader cy."""
        assert store.spaces.create("team", "ann", requires_approval=True, at=AT)
        assert store.spaces.set_member("team", "bob", WRITER, by="ann", at=AT)
        assert store.spaces.set_member("team", "cy", READER, by="ann", at=LATER)

    def test_a_space_has_members_with_roles(self, store: MemoryStore) -> None:
        self.make_team(store)
        assert store.spaces.members("team") == [
            Member("ann", OWNER, AT),
            Member("bob", WRITER, AT),
            Member("cy", READER, LATER),
        ]
        assert store.spaces.membership("team", "bob") == Membership("team", WRITER, True)
        assert store.spaces.memberships("bob") == [Membership("team", WRITER, True)]
        assert store.spaces.membership("team", "dan") is None
        assert store.spaces.membership("other", "bob") is None
        assert store.spaces.memberships("dan") == []
        assert store.spaces.members("other") == []

    def test_a_name_is_taken_once(self, store: MemoryStore) -> None:
        self.make_team(store)
        assert not store.spaces.create("team", "eve", requires_approval=False, at=LATER)
        assert store.spaces.create("Team", "eve", requires_approval=False, at=LATER)
        assert [one.space for one in store.spaces.memberships("eve")] == ["Team"]

    def test_only_an_owner_manages_members(self, store: MemoryStore) -> None:
        self.make_team(store)
        for by in ("bob", "cy", "eve"):
            with pytest.raises(AccessError):
                store.spaces.set_member("team", by, OWNER, by=by, at=LATER)
            with pytest.raises(AccessError):
                store.spaces.remove_member("team", "ann", by=by)
            with pytest.raises(AccessError):
                store.spaces.set_approval("team", False, by=by)
        assert store.spaces.set_member("team", "bob", READER, by="ann", at=LATER)
        store.spaces.set_approval("team", False, by="ann")
        assert store.spaces.membership("team", "bob") == Membership("team", READER, False)

    def test_the_last_owner_stays(self, store: MemoryStore) -> None:
        self.make_team(store)
        assert not store.spaces.set_member("team", "ann", WRITER, by="ann", at=LATER)
        assert not store.spaces.remove_member("team", "ann", by="ann")
        assert store.spaces.set_member("team", "bob", OWNER, by="ann", at=LATER)
        assert store.spaces.remove_member("team", "ann", by="ann")
        assert [one.user_id for one in store.spaces.members("team")] == ["bob", "cy"]

    def test_a_member_may_leave_and_takes_their_pending_writes_along(self, store: MemoryStore) -> None:
        self.make_team(store)
        store.spaces.propose(_make_write())
        assert store.spaces.remove_member("team", "bob", by="bob")
        assert store.spaces.pending_writes("team") == []
        assert store.spaces.memberships("bob") == []
        with pytest.raises(AccessError):
            store.spaces.propose(_make_write())

    def test_a_pending_write_waits_until_it_is_settled(self, store: MemoryStore) -> None:
        self.make_team(store)
        first, second = _make_write(), _make_write("ann", "I row")
        for write in (first, second):
            store.spaces.propose(write)
        assert store.spaces.pending_writes("team") == [first, second]
        assert store.spaces.pending_writes("team", author="ann") == [second]
        assert store.spaces.pending_write(first.id) == first
        assert store.spaces.pending_write("unknown") is None
        for by in ("bob", "cy", "eve"):
            with pytest.raises(AccessError):
                store.spaces.settle(first, "APPROVE", by=by)
        assert store.spaces.settle(first, "APPROVE", by="ann")
        assert not store.spaces.settle(first, "REJECT", by="ann")
        assert store.spaces.pending_writes("team") == [second]

    def test_an_author_withdraws_their_own_write(self, store: MemoryStore) -> None:
        self.make_team(store)
        write = _make_write()
        store.spaces.propose(write)
        assert store.spaces.settle(write, "REJECT", by="bob")
        assert store.spaces.pending_write(write.id) is None

    def test_a_reader_cannot_propose(self, store: MemoryStore) -> None:
        self.make_team(store)
        for author in ("cy", "eve"):
            with pytest.raises(AccessError):
                store.spaces.propose(_make_write(author))

    def test_the_pending_writes_of_a_space_are_bounded(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mem0_core.stores.sql.spaces.MAX_PENDING_WRITES", 2)
        assert MAX_PENDING_WRITES > 2
        self.make_team(store)
        for _ in range(2):
            store.spaces.propose(_make_write())
        with pytest.raises(LimitError):
            store.spaces.propose(_make_write())

    def test_approvals_are_events_of_the_space(self, store: MemoryStore) -> None:
        self.make_team(store)
        approved, rejected = _make_write(), _make_write()
        for write in (approved, rejected):
            store.spaces.propose(write)
        store.spaces.settle(approved, "APPROVE", by="ann")
        store.spaces.settle(rejected, "REJECT", by="ann")
        events = store.feed.changes(space_scope("team"), after=0, limit=9)
        assert [(event.event, event.memory_id, event.actor_id, event.why) for event in events] == [
            ("PROPOSE", approved.id, "bob", "approval"),
            ("PROPOSE", rejected.id, "bob", "approval"),
            ("APPROVE", approved.id, "ann", "approval"),
            ("REJECT", rejected.id, "ann", "approval"),
        ]
        assert store.feed.changes_of([space_scope("team"), BOB], after=0, limit=3) == events[:3]
        assert store.feed.changes_of([BOB], after=0, limit=3) == []

    def test_erasing_a_space_leaves_nothing_of_it(self, store: MemoryStore) -> None:
        self.make_team(store)
        scope = space_scope("team")
        plan = make_changes([make_item("we ski", scope)])
        commit_plan(store, plan, scope=scope, messages=[Message("user", "we ski")])
        store.spaces.propose(_make_write())
        assert store.erase_scope(scope, at=LATER, purge=True) == 1
        assert not any(store.maintenance.count_scope(scope).values())
        assert store.spaces.memberships("ann") == []
        assert store.feed.changes(scope, after=0, limit=9) == []
        assert store.spaces.create("team", "eve", requires_approval=False, at=LATER)
        assert store.spaces.members("team") == [Member("eve", OWNER, LATER)]

    def test_a_forgotten_member_is_in_no_space_and_no_event(self, store: MemoryStore) -> None:
        self.make_team(store)
        assert store.spaces.create("own", "ann", requires_approval=False, at=AT)
        write = _make_write()
        store.spaces.propose(write)
        store.spaces.settle(write, "APPROVE", by="ann")
        scope = space_scope("team")
        said = [Message("user", "we ski", source=member_source("ann"))]
        store.commit([], scope=scope, messages=said, at=AT)
        forgotten = store.spaces.forget_member("ann")
        assert (list(forgotten.empty_spaces), forgotten.has_messages) == (["own"], True)
        assert store.spaces.members("team") == [Member("bob", OWNER, AT), Member("cy", READER, LATER)]
        assert [event.actor_id for event in store.feed.changes(scope, after=0, limit=9)] == ["bob", None]
        assert store.spaces.forget_member("ann").empty_spaces == ()

    def test_emptying_the_store_removes_its_spaces(self, store: MemoryStore) -> None:
        self.make_team(store)
        store.reset()
        assert store.spaces.memberships("ann") == []
