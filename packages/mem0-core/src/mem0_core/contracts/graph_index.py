"""Contract of graph indexes.

::

    class TestMyGraph(GraphIndexContract):
        @pytest.fixture
        def store(self, tmp_path): ...  # and other_store, another one

        @pytest.fixture
        def make_index(self):
            database = f"graph-{new_id()}"
            return lambda store: MyGraph(store.graph, database=database)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    COSINE_TOLERANCE,
    DIMS,
    LATER,
    LIKES_TEA,
    assert_nearest,
    commit_plan,
    in_threads,
    make_changes,
    make_item,
    make_relation_changes,
    unit_vectors,
)
from mem0_core.domain.records import DateRange, Event, MemoryChange, Message, Relation, RelationChange, Scope, Triplet
from mem0_core.interfaces import CommitResult, GraphIndex, GraphNeighborhood, MemoryStore

_EVERYTHING: dict[str, Any] = {"threshold": -2.0, "limit": 10_000}
IN_ROME = Triplet("alice", "lives_in", "Rome")
IN_OSLO = Triplet("alice", "lives_in", "Oslo")
_RUN = Scope("alice", None, "r")
_HOSTILE = [
    "O'Brien",
    'a"b\\',
    "`",
    "`}) DETACH DELETE n //",
    "'}) MATCH (n) DETACH DELETE n //",
    "x; DROP TABLE nodes --",
    "--",
    "/*",
    "$store",
    "a\0b",
    "🍣 名前 é",
    "9_lives",
    "null",
    "a:1",
    "a" * 10_000,
]


class GraphIndexContract:
    """Suite for `GraphIndex`.

    Subclasses provide the fixtures `store` and `other_store` (empty stores) and `make_index`, which returns a function
    of a store that makes an index on its graph. All indexes of a test share one database; those of one store share one
    projection in it.
    """

    @pytest.fixture
    def index(self, store: MemoryStore, make_index: Callable[[MemoryStore], GraphIndex]) -> Iterator[GraphIndex]:
        index = make_index(store)
        yield index
        index.close()

    def add(
        self, store: MemoryStore, *triplets: Triplet, scope: Scope = ALICE, at: str = AT, seed: int = 0
    ) -> CommitResult:
        """Commit `triplets`; their vectors are ``unit_vectors(3 * len(triplets), seed=seed)``."""
        return commit_plan(store, relations=make_relation_changes(*triplets, seed=seed), scope=scope, at=at)

    def end_relation(
        self, store: MemoryStore, triplet: Triplet, *, scope: Scope = ALICE, at: str = LATER, **options: Any
    ) -> None:
        """Commit that a relation no longer holds."""
        (held,) = [relation for relation in store.graph.relations(scope) if relation.triplet == triplet]
        gone = RelationChange(Event.DELETE, triplet, relation_row=held.row)
        commit_plan(store, relations=[gone], scope=scope, at=at, **options)

    def add_memory(self, store: MemoryStore, text: str, *triplets: Triplet, scope: Scope = ALICE) -> str:
        """Commit a memory that supports `triplets`. Returns its id."""
        item = make_item(text, scope)
        commit_plan(
            store,
            [MemoryChange(Event.ADD, item, vector=unit_vectors(1)[0], message_indexes=(0,))],
            relations=make_relation_changes(*triplets, change_indexes=(0,), message_indexes=(0,)),
            messages=[Message("user", text)],
            scope=scope,
        )
        return item.id

    def fill(self, store: MemoryStore, count: int, *, scope: Scope = ALICE, seed: int = 1) -> NDArray[np.float32]:
        """Add `count` relations from one hub. Returns their vectors, three per relation."""
        self.add(store, *(Triplet("hub", "knows", f"spoke {seed} {i}") for i in range(count)), scope=scope, seed=seed)
        return unit_vectors(3 * count, seed=seed)

    def assert_in_sync(self, store: MemoryStore, index: GraphIndex, *scopes: Scope) -> None:
        """Check that the index has the relations and vectors of the primary store."""
        for scope in scopes or (ALICE, BOB, _RUN):
            assert index.relations(scope) == store.graph.relations(scope, include_ended=True)
            rows, vectors = _vectors(store.graph.node_vectors.rows(scope), store.graph.node_vectors)
            query = unit_vectors(1, seed=77, dims=vectors.shape[1] or DIMS)
            (found,) = index.neighborhoods(scope, query, **_EVERYTHING)
            assert_nearest(found.nodes, rows, vectors, query[0], len(rows))
            holding = [relation.row for relation in store.graph.relations(scope)]
            rows, vectors = _vectors(holding, store.graph.relation_vectors)
            (near,) = index.nearest_relations(scope, query, 10_000, threshold=-2.0)
            assert_nearest(near, rows, vectors, query[0], len(rows))

    # --- entities and their neighborhoods ---------------------------------------------------------------------------

    def test_finds_the_nearest_nodes_best_first(self, store: MemoryStore, index: GraphIndex) -> None:
        self.fill(store, 100)
        rows, vectors = _vectors(store.graph.node_vectors.rows(ALICE), store.graph.node_vectors)
        queries = unit_vectors(5, seed=3)
        for query, found in zip(queries, index.neighborhoods(ALICE, queries, threshold=-2.0, limit=10), strict=True):
            assert_nearest(found.nodes, rows, vectors, query, 10)

    def test_a_threshold_keeps_the_distant_out(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME, LIKES_TEA)
        (alice,) = _rows_by_name(store, "alice")
        (found,) = index.neighborhoods(ALICE, unit_vectors(1), threshold=0.9, limit=10)
        assert [row for row, _ in found.nodes] == [alice]
        assert found.nodes[0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE)
        (found,) = index.neighborhoods(ALICE, -unit_vectors(1), threshold=0.9, limit=10)
        assert found == GraphNeighborhood([], [])

    def test_takes_one_hop_in_both_directions(self, store: MemoryStore, index: GraphIndex) -> None:
        onward = Triplet("Rome", "lies_in", "Italy")
        self.add(store, IN_ROME, onward, LIKES_TEA)
        rome = unit_vectors(9)[1:2]
        (found,) = index.neighborhoods(ALICE, rome, threshold=0.9, limit=10)
        assert _triplets(store, found.relations) == [onward, IN_ROME]
        assert [score for _, score in found.relations] == [found.nodes[0][1]] * 2

    def test_a_relation_has_the_score_of_its_best_node(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME, LIKES_TEA)
        query = unit_vectors(6)[1:2]  # of Rome
        (found,) = index.neighborhoods(ALICE, query, **_EVERYTHING)
        assert _triplets(store, found.relations)[0] == IN_ROME
        scores = dict(found.nodes)
        for row, score in found.relations:
            relation = store.graph.relations_by_rows([row], scope=ALICE)[row]
            assert score == max(scores[relation.source_node], scores[relation.destination_node])
        assert found.relations == sorted(found.relations, key=lambda pair: -pair[1])

    def test_a_relation_of_a_node_with_itself_is_found_once(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, Triplet("alice", "trusts", "alice"), LIKES_TEA)
        (found,) = index.neighborhoods(ALICE, unit_vectors(1), threshold=0.9, limit=2)
        assert [triplet.relationship for triplet in _triplets(store, found.relations)] == ["likes", "trusts"]
        self.assert_in_sync(store, index)

    def test_takes_the_newest_relations_of_each_node(self, store: MemoryStore, index: GraphIndex) -> None:
        vectors = self.fill(store, 40)
        rows = sorted((relation.row for relation in store.graph.relations(ALICE)), reverse=True)
        (found,) = index.neighborhoods(ALICE, vectors[:1], threshold=0.9, limit=5)
        assert [row for row, _ in found.relations] == rows[:5]
        self.end_relation(store, Triplet("hub", "knows", "spoke 1 39"))
        (found,) = index.neighborhoods(ALICE, vectors[:1], threshold=0.9, limit=5)
        assert [row for row, _ in found.relations] == rows[1:6]

    def test_a_node_whose_relations_ended_is_found_without_them(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME)
        self.end_relation(store, IN_ROME)
        (found,) = index.neighborhoods(ALICE, unit_vectors(1), threshold=0.9, limit=10)
        assert [row for row, _ in found.nodes] == _rows_by_name(store, "alice")
        assert found.relations == []

    def test_answers_each_vector_for_itself(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME, LIKES_TEA)
        vectors = unit_vectors(6)
        rome, tea, nothing = index.neighborhoods(
            ALICE, np.stack([vectors[1], vectors[4], -vectors[0]]), threshold=0.9, limit=5
        )
        assert [row for row, _ in rome.nodes] == _rows_by_name(store, "Rome")
        assert [row for row, _ in tea.nodes] == _rows_by_name(store, "tea")
        assert nothing == GraphNeighborhood([], [])
        assert index.neighborhoods(ALICE, vectors[:0], threshold=0.9, limit=5) == []
        assert index.nearest_relations(ALICE, vectors[:0], 5, threshold=0.9) == []

    def test_an_empty_graph_finds_nothing(self, store: MemoryStore, index: GraphIndex) -> None:
        assert index.neighborhoods(ALICE, unit_vectors(2), threshold=0.0, limit=5) == [
            GraphNeighborhood([], []),
            GraphNeighborhood([], []),
        ]
        assert index.nearest_relations(ALICE, unit_vectors(2), 5, threshold=0.0) == [[], []]
        assert index.relations(ALICE) == []

    def test_a_vector_of_zeros_does_no_harm(self, store: MemoryStore, index: GraphIndex) -> None:
        zeros = np.zeros(DIMS, dtype=np.float32)
        change = RelationChange(Event.ADD, IN_ROME, vectors=(zeros, unit_vectors(1)[0], zeros))
        commit_plan(store, relations=[change])
        self.add(store, LIKES_TEA, seed=4)
        self.add(store, Triplet("Rome", "lies_in", "Italy"), seed=5)
        (found,) = index.neighborhoods(ALICE, unit_vectors(1), threshold=0.9, limit=1)
        assert _triplets(store, found.relations) == [Triplet("Rome", "lies_in", "Italy")]
        (found,) = index.neighborhoods(ALICE, unit_vectors(3, seed=4)[1:2], threshold=0.9, limit=1)
        assert _triplets(store, found.relations) == [LIKES_TEA]
        assert index.relations(ALICE) == store.graph.relations(ALICE)
        assert index.neighborhoods(ALICE, zeros[None], threshold=0.5, limit=5) == [GraphNeighborhood([], [])]
        assert index.nearest_relations(ALICE, zeros[None], 5, threshold=0.5) == [[]]

    # --- sentences ---------------------------------------------------------------------------------------------------

    def test_finds_the_nearest_sentences_best_first(self, store: MemoryStore, index: GraphIndex) -> None:
        self.fill(store, 60)
        rows, vectors = _vectors(
            [relation.row for relation in store.graph.relations(ALICE)], store.graph.relation_vectors
        )
        query = unit_vectors(1, seed=3)
        (found,) = index.nearest_relations(ALICE, query, 7, threshold=-2.0)
        assert_nearest(found, rows, vectors, query[0], 7)
        best = found[0][1]
        assert index.nearest_relations(ALICE, query, 7, threshold=best + 0.01) == [[]]
        assert [row for row, _ in index.nearest_relations(ALICE, query, 7, threshold=best - 1e-4)[0]] == [found[0][0]]

    def test_ended_sentences_do_not_take_the_places_of_others(self, store: MemoryStore, index: GraphIndex) -> None:
        self.fill(store, 30)
        query = unit_vectors(1, seed=3)
        order = [row for row, _ in index.nearest_relations(ALICE, query, 30, threshold=-2.0)[0]]
        for row in order[:20]:
            self.end_relation(store, store.graph.relations_by_rows([row], scope=ALICE)[row].triplet)
        assert [row for row, _ in index.nearest_relations(ALICE, query, 5, threshold=-2.0)[0]] == order[20:25]
        assert [row for row, _ in index.nearest_relations(ALICE, query, 5, threshold=-2.0, as_of=AT)[0]] == order[:5]

    # --- scopes ------------------------------------------------------------------------------------------------------

    def test_never_finds_another_scope(self, store: MemoryStore, index: GraphIndex) -> None:
        places = [ALICE, BOB, _RUN, Scope(None, "agent"), Scope("alice", "agent", "r"), Scope(None, None, "alice")]
        for place in places:
            self.add(store, IN_ROME, LIKES_TEA, scope=place)
        seen = [*places, Scope("nobody"), Scope(None, None, "r"), Scope("alice", "agent"), Scope(None, "agent", "r")]
        for scope in seen:
            nodes, relations = store.graph.node_vectors.rows(scope), store.graph.relations(scope)
            (found,) = index.neighborhoods(scope, unit_vectors(1), **_EVERYTHING)
            assert {row for row, _ in found.nodes} == set(nodes.tolist())
            assert {row for row, _ in found.relations} == {relation.row for relation in relations}
            (sentences,) = index.nearest_relations(scope, unit_vectors(1), 100, threshold=-2.0)
            assert {row for row, _ in sentences} == {relation.row for relation in relations}
        self.assert_in_sync(store, index, *seen)

    def test_a_user_sees_her_runs_and_a_run_sees_itself(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME)
        self.add(store, LIKES_TEA, scope=_RUN)
        assert {relation.triplet for relation in index.relations(ALICE)} == {IN_ROME, LIKES_TEA}
        assert [relation.triplet for relation in index.relations(_RUN)] == [LIKES_TEA]
        (found,) = index.neighborhoods(_RUN, unit_vectors(1), **_EVERYTHING)
        assert _triplets(store, found.relations) == [LIKES_TEA]

    @pytest.mark.parametrize("name", _HOSTILE, ids=range(len(_HOSTILE)))
    def test_hostile_names_are_just_names(self, store: MemoryStore, index: GraphIndex, name: str) -> None:
        self.add(store, LIKES_TEA)
        place, triplet = Scope(name, name, name), Triplet(f"{name} ", name, f"{name}2")
        self.add(store, triplet, scope=place)
        self.add(store, Triplet(name, "is", ""), scope=place, seed=3)
        for scope in (place, Scope(name), Scope(None, name), Scope(None, None, name), Scope(name, None, name)):
            (found,) = index.neighborhoods(scope, unit_vectors(1), threshold=0.9, limit=5)
            assert triplet in _triplets(store, found.relations, scope)
            (found,) = index.neighborhoods(scope, unit_vectors(1), threshold=0.9, limit=5, as_of=AT)
            assert triplet in _triplets(store, found.relations, scope)
        self.assert_in_sync(store, index, place, ALICE)
        self.end_relation(store, triplet, scope=place, on_conflict="delete")
        self.assert_in_sync(store, index, place, ALICE)
        store.erase_scope(place, at=LATER, purge=True)
        self.assert_in_sync(store, index, place, ALICE)
        assert [relation.triplet for relation in index.relations(ALICE)] == [LIKES_TEA]

    # --- time --------------------------------------------------------------------------------------------------------

    def test_what_ended_is_found_only_as_of_its_time(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME)
        self.end_relation(store, IN_ROME)
        self.add(store, IN_OSLO, at=LATER, seed=5)
        (alice,) = unit_vectors(1)

        def relations_at(as_of: str | None) -> list[Triplet]:
            (around,) = index.neighborhoods(ALICE, alice[None], threshold=0.9, limit=9, as_of=as_of)
            (nearest,) = index.nearest_relations(ALICE, alice[None], 9, threshold=-2.0, as_of=as_of)
            assert {row for row, _ in around.relations} == {row for row, _ in nearest}
            return _triplets(store, around.relations)

        assert relations_at(None) == [IN_OSLO]
        assert relations_at("2025-05-31T00:00:00+00:00") == []
        assert relations_at(AT) == [IN_ROME]
        assert relations_at("2025-06-01T20:00:00+00:00") == [IN_ROME]
        assert relations_at(LATER) == [IN_OSLO]
        assert relations_at("2026-01-01T00:00:00+00:00") == [IN_OSLO]

    def test_what_holds_again_opens_a_second_interval(self, store: MemoryStore, index: GraphIndex) -> None:
        again = "2025-07-01T00:00:00+00:00"
        self.add(store, IN_ROME)
        self.end_relation(store, IN_ROME)
        self.add(store, IN_ROME, at=again)
        first, second = index.relations(ALICE)
        assert [(first.valid_from, first.valid_to), (second.valid_from, second.valid_to)] == [
            (AT, LATER),
            (again, None),
        ]
        for as_of, rows in ((AT, [first.row]), (LATER, []), (again, [second.row]), (None, [second.row])):
            (found,) = index.neighborhoods(ALICE, unit_vectors(1), threshold=0.9, limit=9, as_of=as_of)
            assert [row for row, _ in found.relations] == rows

    # --- following ---------------------------------------------------------------------------------------------------

    def test_follows_every_change_to_a_relation(self, store: MemoryStore, index: GraphIndex) -> None:
        self.add(store, IN_ROME, LIKES_TEA)
        self.assert_in_sync(store, index)
        self.add(store, IN_ROME, at="2025-01-01T00:00:00+00:00")
        self.assert_in_sync(store, index)
        assert [relation.weight for relation in index.relations(ALICE)] == [2, 1]
        typed = dataclasses.replace(make_relation_changes(IN_ROME)[0], types=("person", "city"))
        commit_plan(store, relations=[typed])
        self.assert_in_sync(store, index)
        self.end_relation(store, IN_ROME)
        self.assert_in_sync(store, index)
        assert [relation.valid_to for relation in index.relations(ALICE)] == [LATER, None]
        self.add(store, Triplet("alice", "grows", "tea"), seed=3)
        self.assert_in_sync(store, index)
        self.end_relation(store, LIKES_TEA, on_conflict="delete")  # its nodes stay
        self.assert_in_sync(store, index)
        assert [relation.triplet.relationship for relation in index.relations(ALICE)] == ["lives_in", "grows"]

    def test_refining_a_relation_moves_weight_and_evidence(self, store: MemoryStore, index: GraphIndex) -> None:
        told = self.add_memory(store, "I am in Rome", IN_ROME)
        self.assert_in_sync(store, index)
        (old,) = index.relations(ALICE)
        assert old.memories == (told,)
        refined = dataclasses.replace(
            make_relation_changes(Triplet("alice", "lives_in", "Rome, Italy"), seed=3)[0], relation_row=old.row
        )
        plan = [refined, RelationChange(Event.DELETE, IN_ROME, relation_row=old.row)]
        commit_plan(store, relations=plan, at=LATER)
        self.assert_in_sync(store, index)
        assert [(relation.weight, relation.memories) for relation in index.relations(ALICE)] == [
            (1, (told,)),
            (2, (told,)),
        ]

    def test_follows_the_days_that_memories_tell_of(self, store: MemoryStore, index: GraphIndex) -> None:
        items = [make_item("I moved to Rome in May"), make_item("I moved to Rome on 7 June, or after")]
        told = DateRange("2025-05-01", "2025-05-31"), DateRange("2025-06-07", None)
        adds = make_relation_changes(IN_ROME, change_indexes=(0, 1), event_dates=told)
        commit_plan(store, make_changes(items), relations=adds)
        self.assert_in_sync(store, index)
        (relation,) = index.relations(ALICE)
        assert relation.event_dates == DateRange("2025-05-01", "2025-05-31")  # one end is known, the other is open
        rows = [row for item in items if (row := store.row(item.id)) is not None]
        assert store.graph.event_dates(rows) == {row: list(told) for row in rows}
        store.erase([items[0].id], at=LATER)
        self.assert_in_sync(store, index)
        assert [relation.event_dates for relation in index.relations(ALICE)] == [DateRange("2025-06-07", None)]
        store.erase([items[1].id], at=LATER)
        self.assert_in_sync(store, index)
        assert store.graph.event_dates(rows) == {}

    def test_follows_changes_to_memories(self, store: MemoryStore, index: GraphIndex) -> None:
        kept = self.add_memory(store, "I live in Rome", IN_ROME)
        gone = self.add_memory(store, "Rome it is, with tea", IN_ROME, LIKES_TEA)
        self.assert_in_sync(store, index)
        assert [relation.memories for relation in index.relations(ALICE)] == [(kept, gone), (gone,)]
        store.erase([gone], at=LATER)
        self.assert_in_sync(store, index)
        assert [(relation.triplet, relation.memories) for relation in index.relations(ALICE)] == [(IN_ROME, (kept,))]
        item = store.get(kept)
        assert item is not None
        moved = dataclasses.replace(item, text="I live in Oslo", updated_at=LATER)
        change = MemoryChange(Event.UPDATE, moved, before=item.text, vector=unit_vectors(1, seed=8)[0])
        in_oslo = make_relation_changes(Triplet("alice", "lives_in", "Oslo"), change_indexes=(0,))
        commit_plan(store, [change], relations=in_oslo, at=LATER)
        self.assert_in_sync(store, index)
        assert [relation.valid_to for relation in index.relations(ALICE)] == [LATER, None]

    def test_forgets_a_scope_and_spares_the_others(self, store: MemoryStore, index: GraphIndex) -> None:
        for place in (ALICE, _RUN, BOB):
            self.add(store, IN_ROME, LIKES_TEA, scope=place)
        self.assert_in_sync(store, index)
        store.erase_scope(_RUN, at=LATER)
        index.purge_deleted(_RUN)
        self.assert_in_sync(store, index)
        store.erase_scope(ALICE, at=LATER, purge=True)
        index.purge_deleted(ALICE)
        self.assert_in_sync(store, index)
        assert index.relations(ALICE) == []
        assert len(index.relations(BOB)) == 2
        index.purge_deleted(None)
        self.assert_in_sync(store, index)

    def test_begins_anew_when_the_past_is_rewritten(self, store: MemoryStore, index: GraphIndex) -> None:
        told = self.add_memory(store, "I live in Rome", IN_ROME)
        self.add(store, LIKES_TEA)
        self.assert_in_sync(store, index)
        store.erase([told], at=LATER, purge=True)
        self.assert_in_sync(store, index)
        assert [relation.triplet for relation in index.relations(ALICE)] == [LIKES_TEA]
        store.reset()
        self.assert_in_sync(store, index)
        assert index.relations(ALICE) == []
        self.add(store, IN_ROME)
        self.assert_in_sync(store, index)

    def test_embedding_anew_brings_other_vectors(
        self, store: MemoryStore, index: GraphIndex, make_index: Callable[[MemoryStore], GraphIndex]
    ) -> None:
        self.add(store, IN_ROME, LIKES_TEA)
        self.assert_in_sync(store, index)
        for dims in (8, 24):
            parts = store.embedded_items()
            fresh = unit_vectors(len(parts), seed=5, dims=dims)
            assert store.replace_vectors(dict(zip(parts, fresh, strict=True)), embedding_space=("new", dims))
            self.assert_in_sync(store, index)
        late = make_index(store)
        self.assert_in_sync(store, late)
        late.close()

    def test_a_second_index_goes_on_where_the_first_was(
        self, store: MemoryStore, index: GraphIndex, make_index: Callable[[MemoryStore], GraphIndex]
    ) -> None:
        self.add(store, IN_ROME)
        self.assert_in_sync(store, index)
        second = make_index(store)
        self.assert_in_sync(store, second)
        for place, (one, other) in enumerate([(index, second), (second, index)]):
            self.add(store, Triplet("alice", "saw", f"film {place}"), seed=place + 3)
            one.catch_up()
            self.assert_in_sync(store, other)
            self.end_relation(store, Triplet("alice", "saw", f"film {place}"))
            other.catch_up()
            self.assert_in_sync(store, one)
        second.close()

    def test_many_changes_come_page_by_page(self, store: MemoryStore, index: GraphIndex) -> None:
        self.fill(store, 700)
        typed = dataclasses.replace(
            make_relation_changes(Triplet("hub", "knows", "spoke 1 0"))[0], types=("wheel", "part")
        )
        commit_plan(store, relations=[typed])  # the hub comes after its relations now
        self.assert_in_sync(store, index, ALICE)
        (found,) = index.neighborhoods(ALICE, unit_vectors(1, seed=1), threshold=0.9, limit=1000)
        assert len(found.relations) == 700

    def test_follows_a_long_and_mixed_life(self, store: MemoryStore, index: GraphIndex) -> None:
        dice = np.random.default_rng(7)
        ids = [(user, agent, run) for user in ("u", "v", None) for agent in ("a", None) for run in ("r", None)]
        scopes = [Scope(*each) for each in ids if any(each)]
        for step in range(120):
            scope = scopes[dice.integers(len(scopes))]
            held = store.graph.relations(scope)
            said, kind = [f"{kind} {dice.integers(6)}" for kind in ("one", "knows", "other")], dice.integers(8)
            if kind < 3 or not held:
                types = ("", "thing") if dice.integers(2) else ("person", "")
                changes = [
                    dataclasses.replace(change, types=types)
                    for change in make_relation_changes(Triplet(*said), seed=step)
                ]
                at = f"2025-06-{dice.integers(1, 30):02}T00:00:00+00:00"
                commit_plan(store, relations=changes, scope=scope, at=at)
            elif kind < 5:
                self.add_memory(store, " ".join(said), Triplet(*said), scope=scope)
            else:
                gone = held[dice.integers(len(held))]
                end = RelationChange(Event.DELETE, gone.triplet, relation_row=gone.row)
                how: Any = {"on_conflict": "delete" if kind == 7 else "invalidate"}
                commit_plan(store, relations=[end], scope=gone.scope, at=LATER, **how)
            if step % 20 == 0:
                store.erase([item.id for item in store.list_memories(None)[:1]], at=LATER)
            if step % 40 == 39:
                self.assert_in_sync(store, index, *scopes)

    def test_two_stores_in_one_database_never_meet(
        self,
        store: MemoryStore,
        other_store: MemoryStore,
        index: GraphIndex,
        make_index: Callable[[MemoryStore], GraphIndex],
    ) -> None:
        other = make_index(other_store)
        self.add(store, IN_ROME, LIKES_TEA)
        self.add(other_store, IN_OSLO, seed=2)
        self.assert_in_sync(store, index)
        self.assert_in_sync(other_store, other)
        other_store.reset()
        self.assert_in_sync(other_store, other)
        self.assert_in_sync(store, index)
        assert len(index.relations(ALICE)) == 2
        assert other.relations(ALICE) == []
        other.close()

    def test_serves_threads_while_others_write(self, store: MemoryStore, index: GraphIndex) -> None:
        self.fill(store, 20)

        def work(number: int) -> None:
            for step in range(4):
                seed = 1000 + number * 10 + step
                triplet = Triplet(f"someone {seed}", "met", f"another {seed}")
                self.add(store, triplet, seed=seed)
                (found,) = index.neighborhoods(ALICE, unit_vectors(3, seed=seed)[:1], threshold=0.99, limit=3)
                assert triplet in _triplets(store, found.relations)
                if step % 2:
                    self.end_relation(store, triplet, on_conflict="delete")
                    (found,) = index.neighborhoods(ALICE, unit_vectors(3, seed=seed)[:1], threshold=0.99, limit=3)
                    assert found == GraphNeighborhood([], [])

        in_threads(work, 6)
        self.assert_in_sync(store, index)


def _vectors(rows: Any, source: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    found: tuple[NDArray[np.int64], NDArray[np.float32]] = source.vectors([int(row) for row in rows])
    return found


def _rows_by_name(store: MemoryStore, name: str, scope: Scope = ALICE) -> list[int]:
    nodes = store.graph.nodes_by_rows([int(row) for row in store.graph.node_vectors.rows(scope)], scope=scope)
    return [row for row, node in nodes.items() if node.entity.name == name]


def _triplets(store: MemoryStore, found: list[tuple[int, float]], scope: Scope = ALICE) -> list[Triplet]:
    relations: dict[int, Relation] = store.graph.relations_by_rows([row for row, _ in found], scope=scope)
    return [relations[row].triplet for row, _ in found]
