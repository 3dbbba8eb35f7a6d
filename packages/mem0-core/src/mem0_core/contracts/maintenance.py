"""Contract of store maintenance."""

from __future__ import annotations

from typing import Any

import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    DIMS,
    HOSTILE_NAMES,
    LATER,
    LIKES_TEA,
    SPACE,
    StoreContract,
    make_changes,
    make_item,
    make_relation_changes,
)
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    Message,
    Scope,
    Triplet,
)
from mem0_core.interfaces import MemoryStore


class MaintenanceContract(StoreContract):
    """Suite for `StoreMaintenance`."""

    @pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: name[:20])
    def test_everything_stored_can_be_exported(self, store: MemoryStore, name: str) -> None:
        said = Message("user", name, name=name, metadata={name: name}, timestamp=LATER)
        item = make_item(name, Scope("u", "a"), metadata={"said": name}, actor_id=name)
        relation = make_relation_changes(Triplet("a", "knows", name), change_indexes=(0,), message_indexes=(0,))
        options: dict[str, Any] = {"scope": item.scope, "at": AT, "embedding_space": SPACE}
        store.commit(make_changes([item], sources=(0,)), messages=[said], relations=relation, **options)
        self.add(store, "another's", scope=BOB)
        memory, message, *entities, knows = store.maintenance.iter_records(Scope("u"))
        assert (memory["id"], memory["memory"], memory["metadata"]) == (item.id, name, {"said": name})
        assert [row["new_memory"] for row in memory["history"]] == [name]
        assert (message["content"], message["name"], message["metadata"]) == (name, name, {name: name})
        assert {entity["name"] for entity in entities} == {"a", name}
        assert (knows["source"], knows["destination"], knows["evidence"]) == ("a", name, [item.id])
        assert memory["messages"] == knows["messages"] == [message["id"]]
        assert store.maintenance.count_records(item.scope)["relations"] == 1
        assert [record["memory"] for record in store.maintenance.iter_records(None) if record["kind"] == "memory"] == [
            name,
            "another's",
        ]

    def test_many_records_are_exported_in_order(self, store: MemoryStore) -> None:
        texts = [f"memory {number}" for number in range(1100)]
        added = self.add(store, *texts)
        store.erase([item.id for item in added[:600]], at=LATER)
        records = list(store.maintenance.iter_records(ALICE))
        assert [record["memory"] for record in records if record["kind"] == "memory"] == texts[600:]
        gone = [record["memory_id"] for record in records if record["kind"] == "history"]
        assert sorted(gone) == sorted(item.id for item in added[:600] for _ in range(2))
        assert gone[::2] == gone[1::2], "what happened to one memory stands together"

    def test_a_changed_store_has_no_issues(self, store: MemoryStore) -> None:
        assert store.maintenance.find_issues() == []
        tea, _, last = self.add(store, "Likes tea", "Likes milk", "Likes cake")
        self.add_relations(store, LIKES_TEA)
        self.end_relation(store, LIKES_TEA)
        self.change(store, Event.UPDATE, tea, "Likes green tea")
        store.erase([last.id], at=LATER, purge=True)
        assert store.maintenance.find_issues() == []
        assert store.maintenance.orphaned_relations() == []
        summed = store.maintenance.count_records(None)
        assert (summed["memories"], summed["users"], summed["ended_relations"]) == (2, 1, 1)
        assert summed["history"] == {"ADD": 2, "UPDATE": 1}
        assert summed["embedder"] == {"name": SPACE[0], "dims": DIMS}
        assert store.maintenance.disk_usage()["store"] >= 0

    def test_partitions_and_addresses_cover_all_scopes(self, store: MemoryStore) -> None:
        for scope in (ALICE, Scope("alice", "a"), Scope(None, "a", "r"), Scope(run_id="r")):
            self.add(store, "Likes tea", scope=scope)
        assert {*store.maintenance.list_partitions("memories")} == {ALICE, Scope(agent_id="a"), Scope(run_id="r")}
        assert {*store.maintenance.list_addresses("memories")} == {ALICE, Scope(agent_id="a"), Scope(run_id="r")}
        assert store.maintenance.list_partitions("nodes") == []

    def test_messages_of_another_store_are_adopted_once(self, store: MemoryStore) -> None:
        theirs = [(bytes([number]) * 16, Message("user", f"said {number}", timestamp=AT)) for number in range(3)]
        rows = store.maintenance.adopt_messages(ALICE, theirs[:2])
        assert store.maintenance.adopt_messages(ALICE, theirs)[:2] == rows
        assert [message.content for message in store.message_log.messages(ALICE)] == ["said 0", "said 1", "said 2"]
        assert store.message_log.messages(BOB) == []

    def test_adopted_history_replaces_the_first_row(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        told: dict[str, Any] = {"memory_id": item.id, "updated_at": None, "is_deleted": False}
        told |= {"actor_id": None, "role": None}
        rows = [
            HistoryRow("h1", old_memory=None, new_memory="Likes milk", event="ADD", created_at=None, **told),
            HistoryRow("h2", old_memory="Likes milk", new_memory="Likes tea", event="UPDATE", created_at=AT, **told),
            HistoryRow("h3", old_memory=None, new_memory="x", event="ADD", created_at=AT, **{**told, "memory_id": "?"}),
        ]
        assert store.maintenance.adopt_history(rows) == 3
        assert store.maintenance.adopt_history(rows) == 0
        assert store.history(item.id) == rows[:2]
        assert [record["id"] for record in store.maintenance.iter_records(None) if record["kind"] == "history"] == [
            "h3"
        ]
