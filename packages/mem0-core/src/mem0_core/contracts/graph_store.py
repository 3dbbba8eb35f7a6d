"""Contracts of the graph in the store, and of merges."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BEFORE,
    BOB,
    HOSTILE_NAMES,
    LATER,
    LATEST,
    LIKES_TEA,
    SPACE,
    StoreContract,
    commit_plan,
    make_changes,
    make_item,
    make_relation_changes,
    unit_vectors,
)
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
    Merge,
    Message,
    RelationChange,
    Scope,
    Triplet,
    entity_key,
)
from mem0_core.errors import NotFoundError
from mem0_core.interfaces import MemoryStore, MergePlan, PlannedUpdate


class GraphStoreContract(StoreContract):
    """Suite for `GraphStore`."""

    def test_relations_are_stored_with_their_memories_or_not_at_all(self, store: MemoryStore) -> None:
        (relation,) = make_relation_changes(LIKES_TEA, change_indexes=(0,))
        item = make_item("Likes tea")
        stale = MemoryChange(Event.UPDATE, make_item("never stored"), before="never stored", vector=unit_vectors(1)[0])
        refused = commit_plan(store, [*make_changes([item]), stale], relations=[relation])
        assert refused.conflicts == (1,)
        assert self.current_relations(store) == []
        commit = commit_plan(store, make_changes([item]), relations=[relation])
        assert [change.event for change in commit.relations] == [Event.ADD]
        (found,) = store.graph.relations(ALICE)
        assert (found.triplet, found.memories, found.weight) == (LIKES_TEA, (item.id,), 1)
        assert (found.valid_from, found.valid_to, found.invalidated_at) == (AT, None, None)

    def test_a_repeat_raises_the_weight(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        commit = self.add_relations(store, Triplet("ALICE", "likes", "Tea"))
        assert [change.event for change in commit.relations] == [Event.NONE]
        (found,) = store.graph.relations(ALICE)
        assert (found.triplet, found.weight) == (LIKES_TEA, 2)

    def test_an_ended_relation_stays_on_record_and_can_hold_again(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        assert [change.event for change in self.end_relation(store, LIKES_TEA).relations] == [Event.DELETE]
        assert self.current_relations(store) == []
        assert self.current_relations(store, as_of=AT) == ["alice -- likes -- tea"]
        assert self.current_relations(store, as_of=LATER) == []
        assert self.current_relations(store, as_of=BEFORE) == []
        commit_plan(store, relations=make_relation_changes(LIKES_TEA), at=LATEST)
        intervals = [(one.valid_from, one.valid_to) for one in store.graph.relations(ALICE, include_ended=True)]
        assert intervals == [(AT, LATER), (LATEST, None)]

    def test_a_statement_about_a_time_when_a_relation_held_belongs_to_it(self, store: MemoryStore) -> None:
        items = [make_item(text) for text in ("Likes tea", "Liked tea then", "Likes tea again")]
        for item, at in zip(items, (AT, LATEST, LATEST), strict=True):
            about = AT if item is not items[2] else LATEST
            relations = make_relation_changes(LIKES_TEA, change_indexes=(0,), effective_at=about)
            commit_plan(store, make_changes([item]), relations=relations, at=at)
            if at == AT:
                self.end_relation(store, LIKES_TEA)
        found = store.graph.relations(ALICE, include_ended=True)
        assert {(one.valid_from, one.valid_to): set(one.memories) for one in found} == {
            (AT, LATER): {items[0].id, items[1].id},
            (LATEST, None): {items[2].id},
        }

    def test_ending_twice_does_nothing(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        (row,) = [one.row for one in store.graph.relations(ALICE)]
        change = RelationChange(Event.DELETE, LIKES_TEA, relation_row=row)
        events = [store.commit((), relations=[change], scope=ALICE, at=at).relations for at in (LATER, LATEST)]
        assert [[one.event for one in changes] for changes in events] == [[Event.DELETE], [Event.NONE]]
        (ended,) = store.graph.relations(ALICE, include_ended=True)
        assert ended.valid_to == LATER

    def test_one_plan_can_start_end_and_restart_a_relation(self, store: MemoryStore) -> None:
        (start,) = make_relation_changes(LIKES_TEA, effective_at=AT)
        end = RelationChange(Event.DELETE, LIKES_TEA, effective_at=LATER)
        (again,) = make_relation_changes(LIKES_TEA, effective_at=LATEST)
        plan = [start, end, again]
        commit = commit_plan(store, relations=plan, at=LATEST)
        assert [change.event for change in commit.relations] == [Event.ADD, Event.DELETE, Event.ADD]
        intervals = [(one.valid_from, one.valid_to) for one in store.graph.relations(ALICE, include_ended=True)]
        assert intervals == [(AT, LATER), (LATEST, None)]

    def test_the_end_of_a_relation_that_no_change_states_does_nothing(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        end = RelationChange(Event.DELETE, LIKES_TEA)
        commit = commit_plan(store, relations=[end], at=LATER)
        assert [change.event for change in commit.relations] == [Event.NONE]
        assert self.current_relations(store) == ["alice -- likes -- tea"]

    def test_an_ended_relation_can_be_removed_instead(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        self.end_relation(store, LIKES_TEA, on_conflict="delete")
        assert self.current_relations(store, include_ended=True) == []
        assert len(store.graph.node_vectors.rows(ALICE)) == 0, "nodes that nothing joins go along"

    def test_a_refined_relation_takes_over_weight_and_evidence(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Works at Stanford")
        works = Triplet("alice", "works_at", "Stanford")
        again = MemoryChange(Event.NONE, item, message_indexes=(0,))
        said = Message("user", "I work at Stanford")
        added = make_relation_changes(works, change_indexes=(0,))
        commit_plan(store, [again], relations=added, messages=[said])
        (row,) = [one.row for one in store.graph.relations(ALICE)]
        (sharper,) = make_relation_changes(Triplet("alice", "works_as_professor_at", "Stanford"), relation_row=row)
        over = RelationChange(Event.DELETE, works, relation_row=row)
        commit_plan(store, relations=[over, sharper], at=LATER)
        (now,) = store.graph.relations(ALICE)
        assert (now.triplet, now.weight, now.memories) == (sharper.triplet, 2, (item.id,))

    def add_supporting_memories(self, store: MemoryStore, triplet: Triplet, *texts: str) -> list[MemoryItem]:
        """Add a relation that memories with these texts support. Returns the memories."""
        items = [make_item(text) for text in texts]
        relations = make_relation_changes(triplet, change_indexes=tuple(range(len(items))))
        commit_plan(store, make_changes(items), relations=relations)
        found = [store.get(item.id) for item in items]
        return [item for item in found if item is not None]

    def test_a_relation_is_erased_with_its_last_memory(self, store: MemoryStore) -> None:
        one, two = self.add_supporting_memories(store, LIKES_TEA, "Likes tea", "Drinks tea")
        store.erase([one.id], at=LATER)
        (left,) = store.graph.relations(ALICE)
        assert left.memories == (two.id,)
        store.erase([two.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == []
        assert len(store.graph.node_vectors.rows(ALICE)) == 0

    def test_a_relation_ends_with_the_last_memory_that_supports_it(self, store: MemoryStore) -> None:
        one, two = self.add_supporting_memories(store, LIKES_TEA, "Likes tea", "Drinks tea")
        assert self.change(store, Event.DELETE, one, one.text).relations == ()
        _, ended = self.change(store, Event.UPDATE, two, "Drinks coffee", Triplet("alice", "likes", "coffee")).relations
        assert (ended.event, ended.triplet) == (Event.DELETE, LIKES_TEA)
        assert self.current_relations(store) == ["alice -- likes -- coffee"]
        assert self.current_relations(store, as_of=AT) == ["alice -- likes -- tea"]
        store.erase([one.id, two.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == [], "to erase reaches what has ended"

    def test_an_update_that_still_supports_a_relation_keeps_it(self, store: MemoryStore) -> None:
        (item,) = self.add_supporting_memories(store, LIKES_TEA, "Likes tea")
        assert self.change(store, Event.UPDATE, item, "Likes tea with milk").relations == ()
        assert self.current_relations(store) == ["alice -- likes -- tea"]

    def test_an_update_keeps_relations_that_its_text_only_leaves_out(self, store: MemoryStore) -> None:
        (item,) = self.add_supporting_memories(store, LIKES_TEA, "Likes tea, and her son is Tom")
        son = Triplet("alice", "son", "Tom")
        assert [one.event for one in self.change(store, Event.UPDATE, item, "Has retired", son).relations] == [
            Event.ADD
        ]
        assert self.current_relations(store) == ["alice -- likes -- tea", "alice -- son -- Tom"]

    def test_a_memory_deleted_with_the_commit_that_states_a_relation_does_not_end_it(self, store: MemoryStore) -> None:
        (item,) = self.add_supporting_memories(store, LIKES_TEA, "Likes tea")
        now = store.get(item.id)
        assert now is not None
        deletion = MemoryChange(Event.DELETE, now, before=now.text)
        again = make_relation_changes(LIKES_TEA, message_indexes=(0,))
        messages = [Message("user", "I do like tea")]
        commit_plan(store, [deletion], relations=again, messages=messages, at=LATER)
        assert self.current_relations(store) == ["alice -- likes -- tea"]

    def test_a_relation_supported_by_messages_is_erased_with_them(self, store: MemoryStore) -> None:
        relations = make_relation_changes(LIKES_TEA, message_indexes=(0,))
        item = make_item("Drinks")
        commit_plan(store, make_changes([item], sources=(0,)), relations=relations, messages=[Message("user", "Tea!")])
        store.erase([item.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == []

    def test_destinations_of_an_entity_are_those_of_its_scope_that_hold_now(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA, Triplet("alice", "name", "Ally"), Triplet("Ally", "name", "Al"))
        self.add_relations(store, Triplet("alice", "name", "Liz"), scope=Scope("alice", run_id="r"))
        assert store.graph.destinations(ALICE, "ALICE", ["name", "likes"]) == ["tea", "Ally"]
        assert store.graph.destinations(ALICE, "alice", ["name"]) == ["Ally"]
        assert store.graph.destinations(BOB, "alice", ["name"]) == []
        store.erase_scope(ALICE, at=LATER)
        assert store.graph.destinations(ALICE, "alice", ["name"]) == []

    def test_the_graph_of_another_scope_cannot_be_read(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        self.add_relations(store, Triplet("bob", "likes", "tea"), scope=BOB)
        self.add_relations(store, Triplet("alice", "likes", "milk"), scope=Scope("alice", run_id="r"))
        assert self.current_relations(store, BOB) == ["bob -- likes -- tea"]
        assert self.current_relations(store) == ["alice -- likes -- tea", "alice -- likes -- milk"]
        assert self.current_relations(store, Scope("alice", run_id="r")) == ["alice -- likes -- milk"]
        rows = [one.row for one in store.graph.relations(ALICE)]
        nodes = store.graph.node_vectors.rows(ALICE).tolist()
        assert store.graph.relations_by_rows(rows, scope=BOB) == {}
        assert store.graph.nodes_by_rows(nodes, scope=BOB) == {}
        assert store.graph.incident_relation_rows(nodes, scope=BOB, limit=9) == {node: [] for node in nodes}
        assert {node.scope for node, _ in store.graph.nodes_by_names(ALICE, ["alice", "bob", "tea"]).values()} == {
            ALICE
        }
        store.erase_scope(BOB, at=LATER)
        assert len(self.current_relations(store)) == 2
        store.erase_scope(ALICE, at=LATER)
        assert self.current_relations(store, include_ended=True) == []

    def test_a_planned_node_that_was_removed_is_created_again(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        (row,) = [node.row for node, _ in store.graph.nodes_by_names(ALICE, ["tea"]).values()]
        store.erase_scope(ALICE, at=LATER)
        (change,) = make_relation_changes(Triplet("alice", "drinks", "tea"), destination_node=row)
        commit_plan(store, relations=[change], at=LATER)
        assert self.current_relations(store) == ["alice -- drinks -- tea"]

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_hostile_names_are_stored_exactly(self, store: MemoryStore, name: str) -> None:
        self.add_relations(store, Triplet("bob", "likes", "tea"), scope=BOB)
        triplet = Triplet(name, name, f"{name} 2")
        self.add_relations(store, triplet)
        assert [one.triplet for one in store.graph.relations(ALICE)] == [triplet]
        assert self.current_relations(store, BOB) == ["bob -- likes -- tea"]

    def test_graph_changes_come_in_order_and_in_pages(self, store: MemoryStore) -> None:
        start = store.graph.position()
        triplets = [Triplet("alice", "knows", f"person {number}") for number in range(5)]
        self.add_relations(store, *triplets)
        assert store.graph.position().epoch == start.epoch
        after, nodes, relations, pages = start.seq, [], [], 0
        while True:
            changes = store.graph.changes(after=after, limit=2)
            nodes += [node.entity.name for node, _ in changes.nodes]
            relations += [relation.triplet for relation, _ in changes.relations]
            after, pages = changes.last_seq, pages + 1
            if not changes.has_more:
                break
        assert pages > 2
        assert sorted(nodes) == sorted(["alice", *(f"person {number}" for number in range(5))])
        assert relations == triplets
        assert after == store.graph.position().seq
        self.end_relation(store, triplets[0])
        (ended,) = store.graph.changes(after=after).relations
        assert (ended[0].triplet, ended[0].valid_to) == (triplets[0], LATER)
        store.erase_scope(ALICE, at=LATER)
        gone = store.graph.changes(after=after)
        assert (len(gone.removed_nodes), len(gone.removed_relations)) == (6, 5)

    def test_relations_list_the_existing_memories_that_support_them(self, store: MemoryStore) -> None:
        items = [make_item("Likes tea"), make_item("Tea, always")]
        relations = make_relation_changes(LIKES_TEA, change_indexes=(0, 1))
        commit_plan(store, make_changes(items), relations=relations)
        (relation,) = store.graph.relations(ALICE)
        assert store.graph.supporting_memory_rows([relation.row]) == {
            relation.row: [store.row(item.id) for item in items]
        }
        store.erase([items[0].id], at=LATER)
        assert store.graph.supporting_memory_rows([relation.row, 999]) == {
            relation.row: [store.row(items[1].id)],
            999: [],
        }

    def test_an_update_can_replace_all_relations_of_its_memory(self, store: MemoryStore) -> None:
        rome, oslo = Triplet("alice", "lives_in", "Rome"), Triplet("alice", "lives_in", "Oslo")
        items = [make_item("In Rome, with tea"), make_item("Tea")]
        both = [
            *make_relation_changes(rome, change_indexes=(0,)),
            *make_relation_changes(LIKES_TEA, change_indexes=(0, 1), seed=3),
        ]
        commit_plan(store, make_changes(items), relations=both)
        told = store.get(items[0].id)
        assert told is not None
        after = dataclasses.replace(told, text="Rome, tea; in Oslo", updated_at=LATER)
        change = MemoryChange(Event.UPDATE, after, before=told.text, vector=unit_vectors(1, seed=9)[0])
        said = [
            *make_relation_changes(oslo, change_indexes=(0,), seed=5),
            *make_relation_changes(LIKES_TEA, change_indexes=(0,), seed=3),
        ]
        update = PlannedUpdate(change, said, replaces_relations=True)
        done = store.commit_updates([update], at=LATER, embedding_space=SPACE)
        ended = [one.triplet for one in done.relations if one.event is Event.DELETE]
        assert ended == [rome]
        held = {one.triplet: (one.weight, one.memories) for one in store.graph.relations(ALICE)}
        assert held == {LIKES_TEA: (1, (items[0].id, items[1].id)), oslo: (1, (items[0].id,))}

    def test_graph_deltas_add_up_to_the_stored_graph(self, store: MemoryStore) -> None:
        """Apply `delta_since` step by step, each from the last position."""
        nodes: dict[int, tuple[str, str]] = {}
        edges: dict[int, tuple[Any, ...]] = {}
        after = 0

        def follow() -> None:
            nonlocal after
            found = store.graph.delta_since(ALICE, after=after)
            assert found.position == store.graph.position()
            after = found.position.seq
            for row, user, key, name, kind in found.nodes:
                assert (user, key) == ("alice", entity_key(name))
                nodes[row] = (name, kind)
            edges.update((edge[0], edge[1:]) for edge in found.edges)
            for row in found.removed_edges:
                edges.pop(row, None)
            held = store.graph.relations(ALICE, include_ended=True)
            assert edges == {
                one.row: (
                    *(one.source_node, one.triplet.relationship, one.destination_node),
                    *(one.weight, one.valid_from, one.valid_to),
                    *((one.event_dates.first, one.event_dates.last) if one.event_dates else (None, None)),
                )
                for one in held
            }
            for one in held:
                assert (nodes[one.source_node][0], nodes[one.destination_node][0]) == (
                    one.triplet.source,
                    one.triplet.destination,
                )

        follow()
        for triplets, scope, at, types in (
            ((LIKES_TEA, Triplet("alice", "lives_in", "Rome")), ALICE, AT, ("", "")),
            ((LIKES_TEA,), BOB, AT, ("", "")),
            ((LIKES_TEA,), ALICE, BEFORE, ("", "")),
            ((Triplet("alice", "lives_in", "Oslo"),), Scope("alice", "a"), AT, ("person", "place")),
        ):
            commit_plan(store, relations=make_relation_changes(*triplets, types=types), scope=scope, at=at)
            follow()
        assert ("Oslo", "place") in nodes.values()
        self.end_relation(store, LIKES_TEA)
        follow()
        self.end_relation(store, Triplet("alice", "lives_in", "Rome"), on_conflict="delete")
        follow()
        assert store.graph.delta_since(ALICE, after=after).edges == []
        assert store.graph.delta_since(Scope("nobody")).edges == []


class MergesContract(StoreContract):
    """Suite for `MergeLedger`."""

    def test_names_are_merged_followed_and_reverted(self, store: MemoryStore) -> None:
        ann, anna = Triplet("ann", "likes", "tea"), Triplet("anna", "likes", "tea")
        lives = Triplet("ann", "lives_in", "Rome")
        items = [make_item("Ann likes tea"), make_item("Anna likes tea")]
        adds = [
            *make_relation_changes(ann, lives, change_indexes=(0,)),
            *make_relation_changes(anna, change_indexes=(1,), seed=3),
        ]
        commit_plan(store, make_changes(items), relations=adds)
        before = store.graph.relations(ALICE, include_ended=True)
        rows = {one.triplet.source: one.source_node for one in before}
        proposed = Merge("entity", ALICE, "anna", ("ann",), 0.9, ("alike",))
        vectors = dict(zip(("anna likes tea", "anna lives in Rome"), unit_vectors(2, seed=7), strict=True))
        plan = MergePlan(proposed, kept_node=rows["anna"], merged_nodes=(rows["ann"],), vectors={})
        assert store.merges.apply(plan, at=LATER, embedding_space=SPACE) is None  # a sentence has no vector
        plan = dataclasses.replace(plan, vectors=vectors)
        done = store.merges.apply(plan, at=LATER, embedding_space=SPACE)
        assert done is not None
        assert done.relations == 2
        (listed,) = store.merges.list_merges(ALICE)
        assert listed == done
        assert store.merges.list_merges(BOB) == []
        merged = {one.triplet: (one.weight, set(one.memories)) for one in store.graph.relations(ALICE)}
        assert merged == {
            anna: (2, {items[0].id, items[1].id}),
            Triplet("anna", "lives_in", "Rome"): (1, {items[0].id}),
        }
        named = store.graph.nodes_by_names(ALICE, ["Ann"])
        assert [node.entity.name for node, _ in named.values()] == ["anna"]
        assert store.merges.aliases(ALICE, "entity") == {entity_key("ann"): "anna"}
        assert store.merges.aliases(BOB, "entity") == {}
        assert store.merges.aliases(Scope("alice", "a"), "entity", exact=True) == {}
        commit_plan(store, at=LATER, relations=make_relation_changes(ann))
        assert {one.triplet.source for one in store.graph.relations(ALICE)} == {"anna"}
        texts = store.merges.texts_to_embed(str(done.id))
        assert set(texts) == {"ann", "ann likes tea", "ann lives in Rome"}
        back = dict(zip(texts, unit_vectors(len(texts), seed=8), strict=True))
        assert store.merges.revert(str(done.id), {}, at=LATER, embedding_space=SPACE) is None
        undone = store.merges.revert(str(done.id), back, at=LATER, embedding_space=SPACE)
        assert undone is not None
        assert undone.undone_at == LATER
        now = store.graph.relations(ALICE, include_ended=True)
        assert [dataclasses.replace(one, weight=1) for one in now] == before
        assert [one.weight for one in now] == [1, 1, 2]  # a statement made since the merge keeps its place
        with pytest.raises(NotFoundError):
            store.merges.revert(str(done.id), back, at=LATER, embedding_space=SPACE)

    def test_a_merge_forgets_erased_relations(self, store: MemoryStore) -> None:
        ann, anna = Triplet("ann", "likes", "tea"), Triplet("anna", "likes", "rice")
        items = [make_item("Ann likes tea"), make_item("Anna likes rice")]
        adds = [
            *make_relation_changes(ann, change_indexes=(0,)),
            *make_relation_changes(anna, change_indexes=(1,), seed=3),
        ]
        commit_plan(store, make_changes(items), relations=adds)
        rows = {one.triplet.source: one.source_node for one in store.graph.relations(ALICE)}
        vectors = {"anna likes tea": unit_vectors(1)[0]}
        plan = MergePlan(Merge("entity", ALICE, "anna", ("ann",)), rows["anna"], (rows["ann"],), vectors)
        assert store.merges.apply(plan, at=LATER, embedding_space=SPACE) is not None
        store.erase([items[0].id], at=LATER)
        assert store.merges.list_merges(ALICE) == []
        assert [one.triplet for one in store.graph.relations(ALICE, include_ended=True)] == [anna]
        store.erase_scope(ALICE, at=LATER)
        assert store.graph.relations(ALICE, include_ended=True) == []
