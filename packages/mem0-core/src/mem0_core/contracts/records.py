"""Contract of memory records: commits, duplicates, conflicts, scopes, filters, deletion, re-embedding."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BEFORE,
    BOB,
    DIMS,
    LATER,
    SPACE,
    StoreContract,
    commit_plan,
    in_threads,
    item_fields,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.domain.filters import Filter, matches, parse_filters
from mem0_core.domain.records import (
    Event,
    MemoryChange,
    MemoryItem,
    Message,
    Scope,
    content_hash,
    same_fact_key,
)
from mem0_core.errors import ConfigError, InputError, StoreError
from mem0_core.interfaces import MemoryStore, PlannedUpdate


class RecordsContract(StoreContract):
    """Suite for `MemoryRecords`, and for a `RecordStore` that `complete_store` wraps."""

    def test_an_added_memory_is_read_back_with_every_field(self, store: MemoryStore) -> None:
        item = make_item(
            "Müsli & 寿司 🍣 'quoted' \"twice\"",
            Scope("u", "a", "r"),
            metadata={"k": [1, {"n": None}], "ü": True},
            actor_id="Zoë",
            role="user",
            memory_type="procedural_memory",
            expiration_date="2030-01-01",
        )
        commit_plan(store, make_changes([item]), scope=item.scope)
        found = store.get(item.id)
        assert found is not None
        assert found.seq > 0
        assert found == MemoryItem(**{**item_fields(item), "seq": found.seq})

    def test_memories_are_read_together_by_id_without_unknown_ones(self, store: MemoryStore) -> None:
        (first,) = self.add(store, "Likes pizza.")
        (others,) = self.add(store, "Likes opera.", scope=BOB)
        found = store.get_many([others.id, "nope", first.id, others.id])
        assert found == {first.id: store.get(first.id), others.id: store.get(others.id)}
        assert store.get_many([]) == {}

    def test_an_unknown_id_is_none(self, store: MemoryStore) -> None:
        assert store.get("nope") is None

    def test_the_same_fact_is_stored_once_per_scope(self, store: MemoryStore) -> None:
        (first,) = self.add(store, "Likes cheese pizza.")
        commit = commit_plan(store, make_changes([make_item("likes  CHEESE pizza!")]))
        assert [(change.event, change.after.id) for change in commit.applied] == [(Event.NONE, first.id)]
        (others,) = self.add(store, "Likes cheese pizza.", scope=BOB)
        assert others.id != first.id
        assert len(store.list_memories(None)) == 2

    def test_the_same_words_of_two_speakers_are_two_memories(self, store: MemoryStore) -> None:
        self.add(store, "Thanks!", actor_id="Ann")
        self.add(store, "Thanks!", actor_id="Ben")
        assert len(store.list_memories(ALICE)) == 2

    def test_duplicates_within_one_plan_become_one_memory(self, store: MemoryStore) -> None:
        commit = commit_plan(store, make_changes([make_item("Same"), make_item("same!")]))
        assert [change.event for change in commit.applied] == [Event.ADD, Event.NONE]

    def test_fact_keys_are_looked_up_in_exactly_one_scope(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        key = same_fact_key("LIKES tea")
        assert store.find_by_fact_keys(ALICE, [key]) == {key: item}
        assert store.find_by_fact_keys(BOB, [key]) == {}
        assert store.find_by_fact_keys(Scope("alice", run_id="r"), [key]) == {}

    def test_an_update_to_the_text_of_another_memory_leaves_one(self, store: MemoryStore) -> None:
        kept, merged = self.add(store, "Likes tea", "Likes green tea")
        commit = self.change(store, Event.UPDATE, merged, "likes TEA")
        assert [change.event for change in commit.applied] == [Event.DELETE]
        assert [item.id for item in store.list_memories(ALICE)] == [kept.id]

    def test_a_plan_on_an_outdated_text_writes_nothing(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Lisbon")
        self.change(store, Event.UPDATE, item, "Lives in Porto")
        stale = MemoryChange(Event.DELETE, item, before="Lives in Lisbon")
        plan = [*make_changes([make_item("New fact")]), stale]
        commit = commit_plan(store, plan, messages=[Message("user", "hello")])
        assert commit.conflicts == (1,)
        assert commit.applied == ()
        assert [found.text for found in store.list_memories(ALICE)] == ["Lives in Porto"]
        assert store.message_log.messages(ALICE) == []

    def test_a_failing_change_rolls_back_the_whole_plan(self, store: MemoryStore) -> None:
        before = store.position(ALICE)
        broken = MemoryChange(Event.ADD, make_item("Broken"), vector=unit_vectors(1, dims=DIMS + 1)[0])
        with pytest.raises(StoreError):
            commit_plan(store, [*make_changes([make_item("Good")]), broken], messages=[Message("user", "hello")])
        assert store.list_memories(ALICE) == []
        assert store.message_log.messages(ALICE) == []
        assert store.position(ALICE) == before

    def test_a_store_keeps_one_embedder(self, store: MemoryStore) -> None:
        assert store.embedding_space() is None
        self.add(store, "One")
        assert store.embedding_space() == SPACE
        with pytest.raises(ConfigError, match="rebuild"):
            store.commit(make_changes([make_item("Two")]), scope=ALICE, at=AT, embedding_space=("another", DIMS))
        assert [item.text for item in store.list_memories(ALICE)] == ["One"]

    def test_concurrent_adds_of_one_fact_make_one_memory(self, store: MemoryStore) -> None:
        def work(index: int) -> None:
            self.add(store, "the same", f"number {index}")

        in_threads(work, 8)
        texts = sorted(item.text for item in store.list_memories(ALICE))
        assert texts == sorted(["the same", *(f"number {index}" for index in range(8))])

    def test_a_plan_that_deletes_a_duplicate_keeps_the_fact(self, store: MemoryStore) -> None:
        """Small models consolidate memories by renaming one to another that they delete."""
        tea, coffee = self.add(store, "Likes tea", "Likes coffee")
        renamed = MemoryItem(**{**item_fields(tea), "text": "Likes coffee", "hash": content_hash("Likes coffee")})
        plan = [
            MemoryChange(Event.UPDATE, renamed, before="Likes tea", vector=unit_vectors(1)[0]),
            MemoryChange(Event.DELETE, coffee, before="Likes coffee"),
        ]
        commit_plan(store, plan, at=LATER)
        (left,) = store.list_memories(ALICE)
        assert left.text == "Likes coffee"
        plan = [*make_changes([make_item("likes COFFEE!")]), MemoryChange(Event.DELETE, left, before="Likes coffee")]
        commit_plan(store, plan, at=LATER)
        assert [item.text for item in store.list_memories(ALICE)] == ["likes COFFEE!"]

    def test_metadata_changed_since_the_plan_is_a_conflict(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        for number, conflicts in ((1, ()), (2, (0,))):
            after = MemoryItem(**{**item_fields(item), "metadata": {"n": number}})
            done = store.commit([MemoryChange(Event.UPDATE, after, before="Likes tea")], scope=ALICE, at=LATER)
            assert done.conflicts == conflicts

    def test_a_plan_can_depend_on_a_memory_it_does_not_change(self, store: MemoryStore) -> None:
        (seen,) = self.add(store, "Likes tea")
        there = MemoryChange(Event.NONE, seen, before=seen.text)
        done = commit_plan(store, [there, *make_changes([make_item("Likes milk in it")])], at=LATER)
        assert [change.event for change in done.applied] == [Event.NONE, Event.ADD]
        assert store.get(seen.id) == seen
        store.erase([seen.id], at=LATER)
        done = commit_plan(store, [there, *make_changes([make_item("Likes sugar in it")])], at=LATER)
        assert (done.conflicts, done.applied) == ((0,), ())
        assert [item.text for item in store.list_memories(ALICE)] == ["Likes milk in it"]

    def test_duplicates_can_be_rejected(self, store: MemoryStore) -> None:
        _, other = self.add(store, "Likes tea", "Likes coffee")
        after = MemoryItem(**{**item_fields(other), "text": "likes TEA", "hash": content_hash("likes TEA")})
        change = MemoryChange(Event.UPDATE, after, before="Likes coffee", vector=unit_vectors(1)[0])
        with pytest.raises(InputError, match="says this already"):
            store.commit_updates([PlannedUpdate(change)], at=LATER, embedding_space=SPACE)
        assert len(store.list_memories(ALICE)) == 2

    def test_updates_of_several_scopes_are_written_together_or_not_at_all(self, store: MemoryStore) -> None:
        ours, kept = self.add(store, "Likes tea", "Likes coffee")
        (theirs,) = self.add(store, "Likes milk", scope=BOB)

        def update(item: MemoryItem, text: str) -> PlannedUpdate:
            stored = store.get(item.id)
            assert stored is not None
            after = dataclasses.replace(stored, text=text, hash=content_hash(text), updated_at=LATER)
            return PlannedUpdate(MemoryChange(Event.UPDATE, after, before=stored.text, vector=unit_vectors(1)[0]))

        def texts() -> list[str]:
            return sorted(item.text for item in store.list_memories(None))

        stale, repeated = update(kept, "Likes rum"), update(theirs, "Likes water")
        store.commit_updates([repeated], at=LATER, embedding_space=SPACE)
        refused = store.commit_updates([update(ours, "Likes gin"), repeated], at=LATER, embedding_space=SPACE)
        assert (refused.conflicts, refused.applied) == ((1,), ())
        with pytest.raises(InputError, match="says this already"):
            store.commit_updates(
                [update(theirs, "Likes ale"), update(ours, "Likes coffee")], at=LATER, embedding_space=SPACE
            )
        assert texts() == ["Likes coffee", "Likes tea", "Likes water"]
        done = store.commit_updates(
            [stale, update(ours, "Likes coffee"), update(theirs, "Likes ale")], at=LATER, embedding_space=SPACE
        )
        assert [change.event for change in done.applied] == [Event.UPDATE] * 3
        assert texts() == ["Likes ale", "Likes coffee", "Likes rum"]

    def test_repeating_a_fact_can_only_postpone_its_expiration(self, store: MemoryStore) -> None:
        self.add(store, "On a diet", expiration_date="2020-01-01")
        for until, event, kept in (
            ("2019-01-01", Event.NONE, "2020-01-01"),
            ("2030-01-01", Event.UPDATE, "2030-01-01"),
            (None, Event.UPDATE, None),
            ("2040-01-01", Event.NONE, None),
        ):
            again = make_changes([make_item("on a diet", expiration_date=until)])
            (done,) = commit_plan(store, again, at=LATER).applied
            assert (done.event, done.after.expiration_date) == (event, kept)
        assert len(store.list_memories(ALICE)) == 1

    def test_an_omitted_id_matches_everything_and_a_given_one_restricts(self, store: MemoryStore) -> None:
        places = [Scope("u"), Scope("u", "a"), Scope("u", "a", "r"), Scope(None, "a"), Scope(None, None, "r"), BOB]
        for place in places:
            self.add(store, f"in {place}", scope=place)

        def count(*ids: str | None) -> int:
            scope = Scope(*ids)
            assert len(store.rows(scope)) == len(store.list_memories(scope))
            return len(store.list_memories(scope))

        assert count("u") == 3
        assert count("u", "a") == 2
        assert count("u", None, "r") == 1
        assert count(None, "a") == 3
        assert count(None, None, "r") == 2
        assert count("nobody") == 0

    def test_rows_of_another_scope_cannot_be_read(self, store: MemoryStore) -> None:
        self.add(store, "Alice's secret")
        (row,) = store.rows(ALICE)
        assert store.memories_by_rows([int(row)], scope=BOB) == {}
        assert [item.text for item in store.memories_by_rows([int(row)], scope=ALICE).values()] == ["Alice's secret"]

    @pytest.mark.parametrize(
        "name", ["O'Brien", 'a"b', "x; DROP TABLE memories", "é", "名前", "a" * 5000, "%", "_", "--"]
    )
    def test_hostile_ids_are_just_names(self, store: MemoryStore, name: str) -> None:
        self.add(store, "mine", scope=Scope(name))
        self.add(store, "other")
        assert [item.text for item in store.list_memories(Scope(name))] == ["mine"]

    @pytest.mark.parametrize(
        "filters",
        [
            {"topic": "food"},
            {"topic": {"ne": "food"}},
            {"topic": "*"},
            {"stars": {"gte": 3, "lt": 5}},
            {"stars": {"gt": "3"}},
            {"stars": 1},
            {"stars": True},
            {"topic": None},
            {"topic": {"in": ["food", None]}},
            {"topic": {"nin": ["food"]}},
            {"topic": {"contains": "oo"}},
            {"topic": {"icontains": "FOO"}},
            {"tags": {"contains": "b"}},
            {"tags": {"contains": 1}},
            {"tags": {"icontains": "B"}},
            {"tags": {"contains": True}},
            {"stars": {"in": [*range(3000), "4", True]}},
            {"topic": {"nin": [str(n) for n in range(3000)]}},
            {"created_at": {"gte": "2025-06-01T15:00:00+03:00"}},
            {"created_at": {"lt": "2025-06-01T13:00:00+03:00"}},
            {"OR": [{"topic": "food"}, {"stars": {"gte": 4}}]},
            {"AND": [{"topic": "food"}, {"stars": {"gte": 4}}]},
            {"NOT": [{"topic": "food"}, {"stars": 5}]},
            {"role": "user"},
            {"role": {"ne": "user"}},
            {"created_at": {"gte": "2025-01-01"}},
            {"actor_id": "*"},
            {"actor_id": None},
            {'we"ird.key': "x"},
            {"metadata.role": "chef"},
        ],
        ids=lambda filters: str(filters)[:60],
    )
    def test_filters_agree_with_the_reference_implementation(self, store: MemoryStore, filters: dict[str, Any]) -> None:
        metadatas: list[dict[str, Any]] = [
            {},
            {"topic": "food", "stars": 5, "tags": ["a", "B"]},
            {"topic": "Foot", "stars": 3.0, "tags": [1, True]},
            {"topic": None, "stars": "4", "tags": "abc"},
            {"topic": 7, "stars": 1, "tags": []},
            {"topic": ["food"], "stars": True, 'we"ird.key': "x"},
            {"topic": {"food": 1}, "stars": None, "role": "chef"},
        ]
        for index, metadata in enumerate(metadatas):
            self.add(
                store,
                f"memory {index}",
                metadata=metadata,
                role="user" if index % 2 else None,
                actor_id="Ann" if index % 3 else None,
            )
        _, filter = parse_filters(filters)
        assert _texts(store, filter) == [item.text for item in store.list_memories(ALICE) if matches(filter, item)]
        assert len(store.rows(ALICE, filter=filter)) == len(_texts(store, filter))

    def test_erasing_removes_the_memory_and_its_vector(self, store: MemoryStore) -> None:
        opera, _ = self.add(store, "I love opera", "I ski")
        before = store.position(ALICE)
        assert store.erase([opera.id, "unknown"], at=LATER) == 1
        assert store.get(opera.id) is None
        assert len(store.vector_changes(ALICE, after=before.seq).removed) == 1
        assert len(store.vectors([int(row) for row in store.rows(ALICE)])[0]) == 1
        assert store.erase([opera.id], at=LATER) == 0

    def test_an_erased_fact_can_be_added_again(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        store.erase([item.id], at=LATER)
        (again,) = self.add(store, "Likes tea")
        assert again.id != item.id
        assert [found.id for found in store.list_memories(ALICE)] == [again.id]

    def test_erasing_a_scope_leaves_the_others(self, store: MemoryStore) -> None:
        self.add(store, "mine")
        self.add(store, "mine in a run", scope=Scope("alice", None, "r"))
        (other,) = self.add(store, "other", scope=BOB)
        assert store.erase_scope(ALICE, at=LATER) == 2
        assert [item.id for item in store.list_memories(None)] == [other.id]
        assert store.erase_scope(ALICE, at=LATER, purge=True) == 0

    def test_reset_empties_the_store_and_forgets_the_embedder(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "one")
        epoch = store.position(ALICE).epoch
        store.reset()
        assert store.list_memories(None) == []
        assert store.history(item.id) == []
        assert store.embedding_space() is None
        assert store.position(ALICE).epoch != epoch

    def test_a_memory_that_is_read_has_its_row(self, store: MemoryStore) -> None:
        """The row identifies its vector."""
        (item,) = self.add(store, "Lives in Rome", created_at=BEFORE)
        store.pin(item.id, True)
        (row,) = store.rows(ALICE).tolist()
        read = [
            store.get(item.id),
            *store.list_memories(ALICE),
            *store.pinned_memories(ALICE),
            *store.memories_by_rows([row], scope=ALICE).values(),
        ]
        assert [each and each.row for each in read] == [row] * 4

    def test_reembedding_replaces_all_vectors_at_once(self, store: MemoryStore) -> None:
        self.add(store, "one", "two")
        one, two = store.embedded_items()
        assert [(part.kind, part.text) for part in (one, two)] == [("memory", "one"), ("memory", "two")]
        epoch = store.position(ALICE).epoch
        fresh = unit_vectors(2, seed=5, dims=8)
        assert not store.replace_vectors({one: fresh[0]}, embedding_space=("new", 8))
        assert store.embedding_space() == SPACE
        assert store.replace_vectors({one: fresh[0], two: fresh[1]}, embedding_space=("new", 8))
        assert store.embedding_space() == ("new", 8)
        assert store.position(ALICE).epoch != epoch
        assert np.allclose(np.sort(store.vector_changes(ALICE).vectors, axis=0), np.sort(fresh, axis=0))

    def test_reembedding_notices_every_concurrent_change(self, store: MemoryStore) -> None:
        one, _ = self.add(store, "one", "two")
        fresh = unit_vectors(9, seed=5)
        read = store.embedded_items()
        self.change(store, Event.UPDATE, one, "one more")
        assert not store.replace_vectors(dict(zip(read, fresh, strict=False)), embedding_space=SPACE)
        read = store.embedded_items()
        store.erase([one.id], at=LATER)
        self.add(store, "three", "four")
        assert not store.replace_vectors(dict(zip(read, fresh, strict=False)), embedding_space=SPACE)

    def test_a_closed_store_raises(self, store: MemoryStore) -> None:
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.list_memories(ALICE)


def _texts(store: MemoryStore, filter: Filter | None) -> list[str]:
    return [item.text for item in store.list_memories(ALICE, filter=filter)]
