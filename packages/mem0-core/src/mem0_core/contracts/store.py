"""Contract of a whole store."""

from __future__ import annotations

from typing import Any

import numpy as np

from mem0_core.contracts.feed import FeedContract
from mem0_core.contracts.feedback import FeedbackContract
from mem0_core.contracts.graph_store import GraphStoreContract, MergesContract
from mem0_core.contracts.history import HistoryContract
from mem0_core.contracts.lexicon import LexiconContract
from mem0_core.contracts.maintenance import MaintenanceContract
from mem0_core.contracts.messages import MessagesContract
from mem0_core.contracts.queue import ImportsContract, QueueContract
from mem0_core.contracts.records import RecordsContract
from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    LATER,
    commit_plan,
    make_item,
    unit_vectors,
)
from mem0_core.contracts.spaces import SpacesContract
from mem0_core.contracts.vectors import VectorsContract
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    Message,
    Scope,
    Triplet,
)
from mem0_core.interfaces import MemoryStore


class MemoryStoreContract(
    RecordsContract,
    VectorsContract,
    HistoryContract,
    FeedContract,
    FeedbackContract,
    MessagesContract,
    QueueContract,
    ImportsContract,
    LexiconContract,
    GraphStoreContract,
    MergesContract,
    MaintenanceContract,
    SpacesContract,
):
    """Union of all capabilities, and the promises that span several of them."""

    def test_erasing_a_memory_removes_its_vector_and_messages(self, store: MemoryStore) -> None:
        said = [Message("user", "I love opera"), Message("user", "I ski")]
        opera, ski = make_item("I love opera"), make_item("I ski")
        vectors = unit_vectors(2)
        plan = [
            MemoryChange(Event.ADD, opera, vector=vectors[0], message_indexes=(0,)),
            MemoryChange(Event.ADD, ski, vector=vectors[1], message_indexes=(1,)),
        ]
        commit_plan(store, plan, messages=said)
        before = store.position(ALICE)
        assert store.erase([opera.id, "unknown"], at=LATER) == 1
        assert store.get(opera.id) is None
        assert [m.content for m in store.message_log.messages(ALICE)] == ["I ski"]
        assert [row.event for row in store.history(opera.id)] == ["ADD", "DELETE"]
        assert len(store.vector_changes(ALICE, after=before.seq).removed) == 1
        assert len(store.vectors([int(row) for row in store.rows(ALICE)])[0]) == 1
        assert store.erase([opera.id], at=LATER) == 0

    def test_purging_removes_the_messages_of_memories_deleted_by_a_plan(self, store: MemoryStore) -> None:
        item = make_item("Loves pizza")
        plan = [MemoryChange(Event.ADD, item, vector=unit_vectors(1)[0], message_indexes=(0,))]
        commit_plan(store, plan, messages=[Message("user", "I love pizza")])
        self.change(store, Event.DELETE, item, "Loves pizza")
        assert len(store.message_log.messages(ALICE)) == 1
        store.erase([item.id], at=LATER, purge=True)
        assert store.message_log.messages(ALICE) == []
        assert store.history(item.id) == []

    def test_erasing_a_scope_leaves_other_scopes(self, store: MemoryStore) -> None:
        (mine,) = self.add(store, "mine")
        (run,) = self.add(store, "mine in a run", scope=Scope("alice", None, "r"))
        (other,) = self.add(store, "other", scope=BOB)
        store.commit([], scope=ALICE, messages=[Message("user", "hello")], at=AT)
        store.commit([], scope=BOB, messages=[Message("user", "hello")], at=AT)
        assert store.erase_scope(ALICE, at=LATER) == 2
        assert [item.id for item in store.list_memories(None)] == [other.id]
        assert store.message_log.messages(ALICE) == []
        assert len(store.message_log.messages(BOB)) == 1
        assert store.history(run.id)[-1].is_deleted
        assert store.erase_scope(ALICE, at=LATER, purge=True) == 0  # also reaches earlier deletions
        assert store.history(mine.id) == []
        assert len(store.history(other.id)) == 1

    def test_reembedding_covers_earlier_texts_and_the_graph(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome")
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        self.add_relations(store, Triplet("alice", "lives_in", "Oslo"))
        parts = store.embedded_items()
        assert sorted((part.kind, part.text) for part in parts) == [
            ("memory", "Lives in Oslo"),
            ("node", "Oslo"),
            ("node", "alice"),
            ("past", "Lives in Rome"),
            ("relation", "alice lives in Oslo"),
        ]
        fresh = unit_vectors(len(parts), seed=5, dims=8)
        assert store.replace_vectors(dict(zip(parts, fresh, strict=True)), embedding_space=("new", 8))
        places: dict[tuple[str, int], Any] = {(part.kind, part.row): fresh[place] for place, part in enumerate(parts)}
        for source, kind in ((store.graph.node_vectors, "node"), (store.graph.relation_vectors, "relation")):
            changes = source.vector_changes(ALICE)
            for row, vector in zip(changes.rows.tolist(), changes.vectors, strict=True):
                assert np.allclose(vector, places[kind, row])
