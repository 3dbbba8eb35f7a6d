"""Contract of the message log."""

from __future__ import annotations

import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    LATER,
    StoreContract,
)
from mem0_core.domain.records import (
    Message,
)
from mem0_core.errors import LimitError
from mem0_core.interfaces import MemoryStore


class MessagesContract(StoreContract):
    """Suite for `MessageLog`."""

    def test_messages_are_stored_in_order_and_once_per_add(self, store: MemoryStore) -> None:
        turn = [Message("user", "hi", name="Ann", metadata={"id": 1}), Message("assistant", "hello")]
        for _ in range(2):
            store.commit([], scope=ALICE, messages=turn, at=AT)
        store.commit([], scope=ALICE, messages=[Message("user", "hi", name="Ann")], at=LATER)
        kept = store.message_log.messages(ALICE)
        assert [(m.role, m.content, m.name) for m in kept] == [
            ("user", "hi", "Ann"),
            ("assistant", "hello", None),
            ("user", "hi", "Ann"),
        ]
        assert kept[0].metadata == {"id": 1}
        assert [m.content for m in store.message_log.messages(ALICE, limit=2)] == ["hello", "hi"]
        assert store.message_log.messages(BOB) == []

    def test_a_message_with_a_key_is_stored_once_in_its_scope(self, store: MemoryStore) -> None:
        first, second = Message("user", "hi", key="a"), Message("user", "hi", key="b")
        assert store.message_log.are_stored(ALICE, [first, Message("user", "hi")]) == [False, False]
        store.commit([], scope=ALICE, messages=[first, Message("assistant", "hello")], at=AT)
        store.commit([], scope=ALICE, messages=[first, second], at=LATER)
        assert store.message_log.are_stored(ALICE, [second, first, Message("user", "hi")]) == [True, True, False]
        assert store.message_log.are_stored(BOB, [first]) == [False]
        assert store.message_log.are_stored(ALICE, []) == []
        assert [message.content for message in store.message_log.messages(ALICE)] == ["hi", "hello", "hi"]

    def test_jobs_have_only_the_messages_that_are_new(self, store: MemoryStore) -> None:
        first, second = Message("user", "one", key="a"), Message("user", "two", key="b")
        store.jobs.enqueue(ALICE, "remember", at=AT, messages=[first])
        store.jobs.enqueue(ALICE, "remember", at=AT, messages=[first, second])
        said = [[message.content for message in job.messages] for job in store.jobs.list_jobs(ALICE)]
        assert said == [["one"], ["two"]]

    def test_messages_that_are_all_known_make_no_job_and_meet_no_limit(self, store: MemoryStore) -> None:
        known = Message("user", "one", key="a")
        store.jobs.enqueue(ALICE, "remember", at=AT, messages=[known])
        assert store.jobs.enqueue(ALICE, "remember", at=AT, messages=[known], max_jobs=1) is None
        with pytest.raises(LimitError):
            store.jobs.enqueue(ALICE, "remember", at=AT, messages=[known, Message("user", "two")], max_jobs=1)
        assert [message.content for message in store.message_log.messages(ALICE)] == ["one"]
        assert len(store.jobs.list_jobs(ALICE)) == 1
