"""Contract of the message log."""

from __future__ import annotations

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
from mem0_core.interfaces import MemoryStore

__all__ = ["MessagesContract"]


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
