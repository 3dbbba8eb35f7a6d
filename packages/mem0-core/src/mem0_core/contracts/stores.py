"""The contract suites: what every backend must do, as pytest classes to subclass.

::

    class TestMyStore(MemoryStoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            store = MyStore(tmp_path)
            yield store
            store.close()

Needs pytest; nothing else in the package does.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.domain.filters import Filter, matches, parse_filters
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Merge,
    Message,
    RelationChange,
    Scope,
    Triplet,
    content_hash,
    entity_key,
    new_id,
    same_fact_key,
)
from mem0_core.errors import ConfigError, InputError, LimitError, NotFoundError, StoreError
from mem0_core.interfaces import CommitResult, Lease, MemoryFeatures, MemoryStore, MergePlan, QueuedTurn, VectorIndex
from mem0_core.language.terms import read as read_words
from mem0_core.language.terms import terms

__all__ = [
    "COSINE_TOLERANCE",
    "MemoryStoreContract",
    "VectorIndexContract",
    "assert_nearest",
    "in_threads",
    "make_changes",
    "make_item",
    "make_relation_changes",
    "unit_vectors",
]

AT = "2025-06-01T12:00:00+00:00"
BEFORE = "2025-05-31T12:00:00+00:00"
LATER = "2025-06-02T12:00:00+00:00"
LATEST = "2025-06-03T12:00:00+00:00"
DIMS = 16
SPACE = ("test-space", DIMS)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
LIKES_TEA = Triplet("alice", "likes", "tea")
COSINE_TOLERANCE = 1e-3
"""How far a cosine that an index gives may be from that of the truth's vectors; rows that are closer may change places.

An index may hold vectors in half precision, whose 11 bits move the cosine of two unit vectors by 2 ** -11 (5e-4) at
most, and the difference of two cosines by twice as much. The truth's own vectors are float32, and come back exactly.
"""
HOSTILE_NAMES = (
    *("'", '"', "`", "``", "\\", "--", "'; DROP TABLE edges; --", "}) DETACH DELETE n //", "$scope", "%s", "{x}"),
    *("a\0b", "🍣", "مرحبا", "  spaced  ", "1st", "-1", "NULL", "x" * 10_000),
)
"""Names that mean something to somebody: quotes, comments, Cypher, SQL, NUL, no letters, very many."""


def unit_vectors(count: int, *, seed: int = 0, dims: int = DIMS) -> NDArray[np.float32]:
    """(count, dims) random float32 rows of norm 1."""
    rows = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def make_item(text: str, scope: Scope = ALICE, **fields: Any) -> MemoryItem:
    """A new memory that says `text`."""
    fields = {"id": new_id(), "created_at": AT, "hash": content_hash(text), **fields}
    return MemoryItem(text=text, scope=scope, **fields)


def make_changes(items: Sequence[MemoryItem], *, seed: int = 0, sources: tuple[int, ...] = ()) -> list[MemoryChange]:
    """ADDs of `items`, with random vectors."""
    vectors = unit_vectors(len(items), seed=seed)
    return [MemoryChange(Event.ADD, item, vector=vectors[i], message_indexes=sources) for i, item in enumerate(items)]


def make_relation_changes(*triplets: Triplet, seed: int = 0, **fields: Any) -> list[RelationChange]:
    """ADDs of `triplets`, with random vectors."""
    vectors = unit_vectors(3 * len(triplets), seed=seed)
    return [
        RelationChange(Event.ADD, triplet, vectors=tuple(vectors[3 * place : 3 * place + 3]), **fields)
        for place, triplet in enumerate(triplets)
    ]


def assert_nearest(
    found: Sequence[tuple[int, float]],
    rows: NDArray[np.int64],
    vectors: NDArray[np.float32],
    query: NDArray[np.float32],
    k: int,
) -> None:
    """`found` are the k of `rows` that are nearest to `query`, best first, each with its cosine; up to
    `COSINE_TOLERANCE`."""
    exact = dict(zip(rows.tolist(), (vectors @ query).tolist() if len(rows) else (), strict=True))
    scores = [score for _, score in found]
    assert {row for row, _ in found} <= exact.keys()
    assert len(dict(found)) == len(found)
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([exact[row] for row, _ in found], abs=COSINE_TOLERANCE)
    assert scores == pytest.approx(sorted(exact.values(), reverse=True)[:k], abs=COSINE_TOLERANCE)


class MemoryStoreContract:
    """What a `MemoryStore` must do. Subclasses give the `store` fixture: an empty store."""

    def add(self, store: MemoryStore, *texts: str, scope: Scope = ALICE, **fields: Any) -> list[MemoryItem]:
        """Commit memories with `texts`; returns them as stored."""
        items = [make_item(text, scope, **fields) for text in texts]
        commit = store.commit(make_changes(items), scope=scope, at=AT, embedding_space=SPACE)
        return [change.after for change in commit.applied]

    # --- what is committed is there ---------------------------------------------------------------------------------

    def test_an_added_memory_comes_back_whole(self, store: MemoryStore) -> None:
        item = make_item(
            "Müsli & 寿司 🍣 'quoted' \"twice\"",
            Scope("u", "a", "r"),
            metadata={"k": [1, {"n": None}], "ü": True},
            actor_id="Zoë",
            role="user",
            memory_type="procedural_memory",
            expiration_date="2030-01-01",
        )
        store.commit(make_changes([item]), scope=item.scope, at=AT, embedding_space=SPACE)
        found = store.get(item.id)
        assert found is not None
        assert found.seq > 0
        assert found == MemoryItem(**{**_fields(item), "seq": found.seq})

    def test_unknown_id_is_none(self, store: MemoryStore) -> None:
        assert store.get("nope") is None

    def test_history_tells_every_change_in_order(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Has a sister", actor_id="Desmond", role="user")
        self.change(store, Event.UPDATE, item, "Has a sister named Jesica")
        self.change(store, Event.DELETE, item, "Has a sister named Jesica")
        rows = store.history(item.id)
        assert [(row.event, row.old_memory, row.new_memory, row.is_deleted) for row in rows] == [
            ("ADD", None, "Has a sister", False),
            ("UPDATE", "Has a sister", "Has a sister named Jesica", False),
            ("DELETE", "Has a sister named Jesica", None, True),
        ]
        assert {(row.memory_id, row.actor_id, row.role, row.created_at) for row in rows} == {
            (item.id, "Desmond", "user", AT)
        }
        assert [row.updated_at for row in rows] == [None, LATER, LATER]
        assert len({row.id for row in rows}) == 3

    def change(self, store: MemoryStore, event: Event, item: MemoryItem, text: str) -> CommitResult:
        """UPDATE `item` to `text`, or DELETE it while it says `text`."""
        now = store.get(item.id)
        assert now is not None
        if event is Event.DELETE:
            change = MemoryChange(Event.DELETE, now, before=text)
        else:
            after = MemoryItem(**{**_fields(now), "text": text, "hash": content_hash(text), "updated_at": LATER})
            change = MemoryChange(Event.UPDATE, after, before=now.text, vector=unit_vectors(1, seed=9)[0])
        return store.commit([change], scope=item.scope, at=LATER, embedding_space=SPACE)

    def add_relations(
        self, store: MemoryStore, *triplets: Triplet, scope: Scope = ALICE, **options: Any
    ) -> CommitResult:
        """Commit `triplets` as new relations."""
        return store.commit(
            (), relations=make_relation_changes(*triplets), scope=scope, at=AT, embedding_space=SPACE, **options
        )

    # --- same fact, same scope --------------------------------------------------------------------------------------

    def test_the_same_fact_is_stored_once_per_scope(self, store: MemoryStore) -> None:
        (first,) = self.add(store, "Likes cheese pizza.")
        commit = store.commit(
            make_changes([make_item("likes  CHEESE pizza!")]), scope=ALICE, at=AT, embedding_space=SPACE
        )
        assert [(change.event, change.after.id) for change in commit.applied] == [(Event.NONE, first.id)]
        (others,) = self.add(store, "Likes cheese pizza.", scope=BOB)
        assert others.id != first.id
        assert len(store.list_memories(None)) == 2
        assert len(store.history(first.id)) == 1

    def test_the_same_words_of_two_speakers_are_two_memories(self, store: MemoryStore) -> None:
        self.add(store, "Thanks!", actor_id="Ann")
        self.add(store, "Thanks!", actor_id="Ben")
        assert len(store.list_memories(ALICE)) == 2

    def test_twins_within_one_plan_become_one(self, store: MemoryStore) -> None:
        commit = store.commit(
            make_changes([make_item("Same"), make_item("same!")]), scope=ALICE, at=AT, embedding_space=SPACE
        )
        assert [change.event for change in commit.applied] == [Event.ADD, Event.NONE]

    def test_known_answers_for_exactly_one_scope(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        key = same_fact_key("LIKES tea")
        assert store.find_by_fact_keys(ALICE, [key]) == {key: item}
        assert store.find_by_fact_keys(BOB, [key]) == {}
        assert store.find_by_fact_keys(Scope("alice", run_id="r"), [key]) == {}

    def test_an_update_to_what_another_memory_says_leaves_one(self, store: MemoryStore) -> None:
        kept, merged = self.add(store, "Likes tea", "Likes green tea")
        commit = self.change(store, Event.UPDATE, merged, "likes TEA")
        assert [change.event for change in commit.applied] == [Event.DELETE]
        assert [item.id for item in store.list_memories(ALICE)] == [kept.id]
        assert store.history(merged.id)[-1].event == "DELETE"

    # --- all or nothing ---------------------------------------------------------------------------------------------

    def test_a_plan_on_an_outdated_text_writes_nothing(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Lisbon")
        self.change(store, Event.UPDATE, item, "Lives in Porto")
        stale = MemoryChange(Event.DELETE, item, before="Lives in Lisbon")
        plan = [*make_changes([make_item("New fact")]), stale]
        commit = store.commit(plan, scope=ALICE, messages=[Message("user", "hello")], at=AT, embedding_space=SPACE)
        assert commit.conflicts == (1,)
        assert commit.applied == ()
        assert [found.text for found in store.list_memories(ALICE)] == ["Lives in Porto"]
        assert store.message_log.messages(ALICE) == []

    def test_a_failing_change_takes_the_whole_plan_back(self, store: MemoryStore) -> None:
        before = store.position(ALICE)
        broken = MemoryChange(Event.ADD, make_item("Broken"), vector=unit_vectors(1, dims=DIMS + 1)[0])
        with pytest.raises(StoreError):
            store.commit(
                [*make_changes([make_item("Good")]), broken],
                scope=ALICE,
                messages=[Message("user", "hello")],
                at=AT,
                embedding_space=SPACE,
            )
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

    def test_a_plan_cannot_remove_a_fact_with_its_twin(self, store: MemoryStore) -> None:
        """Small models consolidate by renaming one memory to another they delete."""
        tea, coffee = self.add(store, "Likes tea", "Likes coffee")
        renamed = MemoryItem(**{**_fields(tea), "text": "Likes coffee", "hash": content_hash("Likes coffee")})
        plan = [
            MemoryChange(Event.UPDATE, renamed, before="Likes tea", vector=unit_vectors(1)[0]),
            MemoryChange(Event.DELETE, coffee, before="Likes coffee"),
        ]
        store.commit(plan, scope=ALICE, at=LATER, embedding_space=SPACE)
        (left,) = store.list_memories(ALICE)
        assert left.text == "Likes coffee"
        plan = [*make_changes([make_item("likes COFFEE!")]), MemoryChange(Event.DELETE, left, before="Likes coffee")]
        store.commit(plan, scope=ALICE, at=LATER, embedding_space=SPACE)
        assert [item.text for item in store.list_memories(ALICE)] == ["likes COFFEE!"]

    def test_metadata_changed_meanwhile_is_a_conflict_too(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        for number, conflicts in ((1, ()), (2, (0,))):
            after = MemoryItem(**{**_fields(item), "metadata": {"n": number}})
            done = store.commit([MemoryChange(Event.UPDATE, after, before="Likes tea")], scope=ALICE, at=LATER)
            assert done.conflicts == conflicts

    def test_a_plan_can_be_held_to_a_memory_that_it_leaves_alone(self, store: MemoryStore) -> None:
        (seen,) = self.add(store, "Likes tea")
        there = MemoryChange(Event.NONE, seen, before=seen.text)
        done = store.commit(
            [there, *make_changes([make_item("Likes milk in it")])], scope=ALICE, at=LATER, embedding_space=SPACE
        )
        assert [change.event for change in done.applied] == [Event.NONE, Event.ADD]
        assert store.get(seen.id) == seen
        store.erase([seen.id], at=LATER)
        done = store.commit(
            [there, *make_changes([make_item("Likes sugar in it")])], scope=ALICE, at=LATER, embedding_space=SPACE
        )
        assert (done.conflicts, done.applied) == ((0,), ())
        assert [item.text for item in store.list_memories(ALICE)] == ["Likes milk in it"]

    def test_twins_can_be_refused(self, store: MemoryStore) -> None:
        _, other = self.add(store, "Likes tea", "Likes coffee")
        after = MemoryItem(**{**_fields(other), "text": "likes TEA", "hash": content_hash("likes TEA")})
        change = MemoryChange(Event.UPDATE, after, before="Likes coffee", vector=unit_vectors(1)[0])
        with pytest.raises(InputError, match="says this already"):
            store.commit([change], scope=ALICE, at=LATER, embedding_space=SPACE, reject_duplicates=True)
        assert len(store.list_memories(ALICE)) == 2

    def test_saying_it_again_can_only_prolong_a_memory(self, store: MemoryStore) -> None:
        self.add(store, "On a diet", expiration_date="2020-01-01")
        for until, event, kept in (
            ("2019-01-01", Event.NONE, "2020-01-01"),
            ("2030-01-01", Event.UPDATE, "2030-01-01"),
            (None, Event.UPDATE, None),
            ("2040-01-01", Event.NONE, None),
        ):
            again = make_changes([make_item("on a diet", expiration_date=until)])
            (done,) = store.commit(again, scope=ALICE, at=LATER, embedding_space=SPACE).applied
            assert (done.event, done.after.expiration_date) == (event, kept)
        assert len(store.list_memories(ALICE)) == 1

    # --- scopes -----------------------------------------------------------------------------------------------------

    def test_an_id_left_out_does_not_restrict_and_one_given_does(self, store: MemoryStore) -> None:
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

    # --- filters ----------------------------------------------------------------------------------------------------

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
    def test_filters_mean_what_matches_says(self, store: MemoryStore, filters: dict[str, Any]) -> None:
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

    # --- messages ---------------------------------------------------------------------------------------------------

    def test_messages_are_kept_in_order_and_once_per_add(self, store: MemoryStore) -> None:
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

    # --- imports ----------------------------------------------------------------------------------------------------

    def test_how_far_an_import_came_is_kept_with_what_it_brought(self, store: MemoryStore) -> None:
        assert store.import_checkpoint(ALICE, "diary") == 0
        store.commit(
            make_changes([make_item("tea")]), scope=ALICE, at=AT, embedding_space=SPACE, import_checkpoint=("diary", 10)
        )
        assert store.import_checkpoint(ALICE, "diary") == 10
        cake = make_changes([make_item("cake")])
        with pytest.raises(ConfigError):
            store.commit(cake, scope=ALICE, at=AT, embedding_space=("another", DIMS), import_checkpoint=("diary", 20))
        assert store.import_checkpoint(ALICE, "diary") == 10, "what is not written is not marked"
        store.commit([], scope=ALICE, at=AT, import_checkpoint=("diary", 7))
        assert store.import_checkpoint(ALICE, "diary") == 10, "of two imports that run at once, the further one tells"

    def test_a_mark_is_of_one_key_and_exactly_one_scope(self, store: MemoryStore) -> None:
        run = Scope("alice", None, "r")
        for place, scope in enumerate((ALICE, run, BOB), start=1):
            store.commit([], scope=scope, at=AT, import_checkpoint=("diary", place))
        assert [store.import_checkpoint(scope, "diary") for scope in (ALICE, run, BOB)] == [1, 2, 3]
        assert store.import_checkpoint(ALICE, "letters") == 0
        store.erase_scope(ALICE, at=LATER)
        assert [store.import_checkpoint(scope, "diary") for scope in (ALICE, run, BOB)] == [0, 0, 3]
        store.reset()
        assert store.import_checkpoint(BOB, "diary") == 0

    def test_turns_are_put_off_together_and_marked(self, store: MemoryStore) -> None:
        turns = [QueuedTurn(AT, (Message("user", text),), {"metadata": {"k": 1}}) for text in ("one", "two", "one")]
        jobs = store.jobs.enqueue_turns(ALICE, turns, import_checkpoint=("diary", 3))
        listed = store.jobs.list_jobs(ALICE)
        assert [job.row for job in listed] == jobs
        assert [job.messages[0].content for job in listed] == ["one", "two", "one"]
        assert {(job.kind, job.timestamp, str(job.options)) for job in listed} == {
            ("remember", AT, str(turns[0].options))
        }
        assert store.import_checkpoint(ALICE, "diary") == 3

    # --- the queue --------------------------------------------------------------------------------------------------

    def enqueue(self, store: MemoryStore, *texts: str, scope: Scope = ALICE) -> list[int]:
        """Put off one job for each text."""
        messages = [(Message("user", text),) for text in texts]
        return [store.jobs.enqueue(scope, "remember", at=AT, messages=each) for each in messages]

    def lease_jobs(self, store: MemoryStore, worker: str, *, seconds: float = 60.0, most: int = 1) -> list[int]:
        return [job.row for job in store.jobs.lease(worker, seconds=seconds, limit=most)]

    def test_jobs_of_one_partition_are_done_one_after_the_other(self, store: MemoryStore) -> None:
        first, second = self.enqueue(store, "one", "two")
        (other,) = self.enqueue(store, "three", scope=BOB)
        (run,) = self.enqueue(store, "four", scope=Scope("alice", run_id="r"))
        assert [self.lease_jobs(store, worker) for worker in ("a", "b", "c")] == [[first], [other], []]
        assert not store.jobs.has_ready_job()
        assert store.jobs.mark_done(Lease("a", (first,)))
        assert [self.lease_jobs(store, "c"), self.lease_jobs(store, "d")] == [[second], []]
        assert store.jobs.mark_done(Lease("c", (second,)))
        assert self.lease_jobs(store, "d") == [run]
        assert [job.state for job in store.jobs.list_jobs()] == ["leased", "leased"]

    def test_no_more_jobs_of_a_scope_wait_than_may(self, store: MemoryStore) -> None:
        def ask(scope: Scope, most: int) -> int:
            return store.jobs.enqueue(scope, "remember", at=AT, messages=[Message("user", "more")], max_jobs=most)

        self.enqueue(store, "one", "two")
        self.enqueue(store, "three", scope=BOB)
        with pytest.raises(LimitError, match="max_pending: 2 adds of user_id='alice'"):
            ask(ALICE, 2)
        assert len(store.jobs.list_jobs()) == 3
        assert [message.content for message in store.message_log.messages_before(ALICE, None, limit=9)] == [
            "one",
            "two",
        ], "nothing is kept"
        assert ask(ALICE, 3) in {job.row for job in store.jobs.list_jobs(ALICE)}
        ask(BOB, 2)

    def test_what_can_be_done_together_is_leased_together(self, store: MemoryStore) -> None:
        rows = self.enqueue(store, "one", "two", "three")
        store.jobs.enqueue(ALICE, "summary", at=AT)
        (job, *others) = store.jobs.lease("a", seconds=60, limit=9)
        assert [one.row for one in (job, *others)] == rows
        assert [one.messages[0].content for one in (job, *others)] == ["one", "two", "three"]
        store.jobs.release_failed(Lease("a", tuple(rows)), error="down", retry_in=0.0)
        assert self.lease_jobs(store, "a", most=9) == rows[:1], "what failed is tried alone"

    def test_a_lease_that_ran_out_is_anothers(self, store: MemoryStore) -> None:
        (row,) = self.enqueue(store, "one")
        assert self.lease_jobs(store, "slow", seconds=-1.0) == [row]
        assert self.lease_jobs(store, "next") == [row]
        assert not store.jobs.renew_lease(Lease("slow", (row,)), seconds=60)
        assert not store.jobs.mark_done(Lease("slow", (row,)))
        lost = store.commit(
            make_changes([make_item("tea")]), scope=ALICE, at=AT, embedding_space=SPACE, lease=Lease("slow", (row,))
        )
        assert (lost.lease_lost, lost.applied) == (True, ())
        assert store.list_memories(ALICE) == []
        store.jobs.release_failed(Lease("slow", (row,)), error="late", retry_in=None)
        assert [(job.state, job.attempts) for job in store.jobs.list_jobs()] == [("leased", 0)]
        done = store.commit(
            make_changes([make_item("tea")]), scope=ALICE, at=AT, embedding_space=SPACE, lease=Lease("next", (row,))
        )
        assert not done.lease_lost
        assert store.jobs.list_jobs() == []

    def test_a_commit_removes_all_jobs_of_its_lease_or_none(self, store: MemoryStore) -> None:
        one, two = self.enqueue(store, "one", "two")
        assert self.lease_jobs(store, "a", most=2) == [one, two]
        store.jobs.release_failed(Lease("a", (two,)), error="", retry_in=60.0)
        assert store.commit((), scope=ALICE, at=AT, lease=Lease("a", (one, two))).lease_lost
        assert [job.row for job in store.jobs.list_jobs()] == [one, two]

    def test_what_failed_waits_is_parked_and_comes_back(self, store: MemoryStore) -> None:
        one, _ = self.enqueue(store, "one", "two")
        self.lease_jobs(store, "a")
        store.jobs.release_failed(Lease("a", (one,)), error="down", retry_in=60.0)
        assert self.lease_jobs(store, "a") == [], "what comes after it waits for it"
        later = store.jobs.next_attempt_at()
        assert later is not None
        assert later > 1e9, "so that idle workers sleep until then"
        assert not store.jobs.retry(one), "it is not parked"
        assert [(job.attempts, job.error) for job in store.jobs.list_jobs()] == [(1, "down"), (0, None)]

    def test_what_is_parked_lets_others_pass_and_comes_back_in_its_turn(self, store: MemoryStore) -> None:
        one, two = self.enqueue(store, "one", "two")
        self.lease_jobs(store, "a")
        store.jobs.release_failed(Lease("a", (one,)), error="bad", retry_in=None)
        assert self.lease_jobs(store, "a") == [two]
        assert store.jobs.retry(one)
        assert self.lease_jobs(store, "b") == [], "no two jobs of a partition are done at once"
        assert store.jobs.mark_done(Lease("a", (two,)))
        assert self.lease_jobs(store, "b") == [one]

    def test_what_a_worker_left_behind_can_be_freed(self, store: MemoryStore) -> None:
        (row,) = self.enqueue(store, "one")
        self.lease_jobs(store, "gone")
        store.jobs.release_leases("somebody else")
        assert self.lease_jobs(store, "a") == []
        store.jobs.release_leases("gone")
        assert self.lease_jobs(store, "a") == [row]

    def test_a_summary_waits_once(self, store: MemoryStore) -> None:
        rows = {store.jobs.enqueue(scope, "summary", at=AT) for scope in (ALICE, ALICE, BOB)}
        assert len(rows) == 2
        store.erase_scope(ALICE, at=LATER)
        assert [job.scope for job in store.jobs.list_jobs()] == [BOB]

    def test_the_last_unlearnt_messages_are_told_with_their_jobs(self, store: MemoryStore) -> None:
        rows = self.enqueue(store, "one", "two", "three")
        found = store.jobs.unprocessed_messages(ALICE, limit=2)
        assert [(job.row, message.content) for job, message in found] == [(rows[1], "two"), (rows[2], "three")]
        assert store.jobs.unprocessed_messages(BOB, limit=2) == []

    def test_many_workers_do_each_job_once_and_in_order(self, store: MemoryStore) -> None:
        users = [Scope(f"user {number}") for number in range(4)]
        done: dict[Scope, list[str]] = {user: [] for user in users}
        for number in range(40):
            self.enqueue(store, f"{number}", scope=users[number % 4])

        def work(number: int) -> None:
            while store.jobs.next_attempt_at() is not None:
                for job in store.jobs.lease(f"worker {number}", seconds=60):
                    done[job.scope].append(job.messages[0].content)
                    assert store.jobs.mark_done(Lease(f"worker {number}", (job.row,)))

        in_threads(work, 6)
        assert list(done.values()) == [[f"{number}" for number in range(each, 40, 4)] for each in range(4)]

    # --- erasing ----------------------------------------------------------------------------------------------------

    def test_erasing_takes_vector_and_messages_along(self, store: MemoryStore) -> None:
        said = [Message("user", "I love opera"), Message("user", "I ski")]
        opera, ski = make_item("I love opera"), make_item("I ski")
        vectors = unit_vectors(2)
        plan = [
            MemoryChange(Event.ADD, opera, vector=vectors[0], message_indexes=(0,)),
            MemoryChange(Event.ADD, ski, vector=vectors[1], message_indexes=(1,)),
        ]
        store.commit(plan, scope=ALICE, messages=said, at=AT, embedding_space=SPACE)
        before = store.position(ALICE)
        assert store.erase([opera.id, "unknown"], at=LATER) == 1
        assert store.get(opera.id) is None
        assert [m.content for m in store.message_log.messages(ALICE)] == ["I ski"]
        assert [row.event for row in store.history(opera.id)] == ["ADD", "DELETE"]
        assert len(store.vector_changes(ALICE, after=before.seq).removed) == 1
        assert len(store.vectors([int(row) for row in store.rows(ALICE)])[0]) == 1
        assert store.erase([opera.id], at=LATER) == 0

    def test_an_erased_fact_can_be_learnt_again(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Likes tea")
        store.erase([item.id], at=LATER)
        (again,) = self.add(store, "Likes tea")
        assert again.id != item.id
        assert [found.id for found in store.list_memories(ALICE)] == [again.id]

    def test_purging_takes_the_history_too(self, store: MemoryStore) -> None:
        one, two = self.add(store, "one", "two")
        store.erase([one.id], at=LATER)
        store.erase([one.id, two.id], at=LATER, purge=True)
        assert store.history(one.id) == []
        assert store.history(two.id) == []

    def test_purging_finds_the_messages_of_what_a_model_deleted(self, store: MemoryStore) -> None:
        item = make_item("Loves pizza")
        plan = [MemoryChange(Event.ADD, item, vector=unit_vectors(1)[0], message_indexes=(0,))]
        store.commit(plan, scope=ALICE, messages=[Message("user", "I love pizza")], at=AT, embedding_space=SPACE)
        self.change(store, Event.DELETE, item, "Loves pizza")
        assert len(store.message_log.messages(ALICE)) == 1
        store.erase([item.id], at=LATER, purge=True)
        assert store.message_log.messages(ALICE) == []
        assert store.history(item.id) == []

    def test_erasing_a_scope_spares_the_others(self, store: MemoryStore) -> None:
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
        assert store.erase_scope(ALICE, at=LATER, purge=True) == 0  # reaches what was deleted before
        assert store.history(mine.id) == []
        assert len(store.history(other.id)) == 1

    def test_reset_empties_everything_and_frees_the_embedder(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "one")
        epoch = store.position(ALICE).epoch
        store.reset()
        assert store.list_memories(None) == []
        assert store.history(item.id) == []
        assert store.embedding_space() is None
        assert store.position(ALICE).epoch != epoch

    # --- what projections read --------------------------------------------------------------------------------------

    def test_positions_move_with_their_scope_only(self, store: MemoryStore) -> None:
        start = store.position(ALICE)
        self.add(store, "bob's", scope=BOB)
        assert store.position(ALICE) == start
        (item,) = self.add(store, "one")
        added = store.position(ALICE)
        assert added.seq > start.seq
        self.change(store, Event.UPDATE, item, "two")
        updated = store.position(ALICE)
        assert updated.seq > added.seq
        changes = store.vector_changes(ALICE, after=added.seq)
        assert np.allclose(changes.vectors, unit_vectors(1, seed=9))
        self.change(store, Event.DELETE, item, "two")
        changes = store.vector_changes(ALICE, after=updated.seq)
        assert (len(changes.rows), len(changes.removed)) == (0, 1)

    def test_reembedding_replaces_all_vectors_at_once(self, store: MemoryStore) -> None:
        self.add(store, "one", "two")
        one, two = store.embedded_items()
        assert [(part.kind, part.text) for part in (one, two)] == [("memory", "one"), ("memory", "two")]
        epoch = store.position(ALICE).epoch
        fresh = unit_vectors(2, seed=5, dims=8)
        with pytest.raises(StoreError):
            store.replace_vectors([(one, fresh[0])], embedding_space=("new", 8))
        assert store.embedding_space() == SPACE
        store.replace_vectors([(one, fresh[0]), (two, fresh[1])], embedding_space=("new", 8))
        assert store.embedding_space() == ("new", 8)
        assert store.position(ALICE).epoch != epoch
        assert np.allclose(np.sort(store.vector_changes(ALICE).vectors, axis=0), np.sort(fresh, axis=0))

    def test_reembedding_reaches_what_was_said_before_and_the_graph(self, store: MemoryStore) -> None:
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
        store.replace_vectors(list(zip(parts, fresh, strict=True)), embedding_space=("new", 8))
        places: dict[tuple[str, int], Any] = {(part.kind, part.row): fresh[place] for place, part in enumerate(parts)}
        for source, kind in ((store.graph.node_vectors, "node"), (store.graph.relation_vectors, "relation")):
            changes = source.vector_changes(ALICE)
            for row, vector in zip(changes.rows.tolist(), changes.vectors, strict=True):
                assert np.allclose(vector, places[kind, row])

    def test_reembedding_notices_every_change_meanwhile(self, store: MemoryStore) -> None:
        one, _ = self.add(store, "one", "two")
        fresh = unit_vectors(9, seed=5)
        read = store.embedded_items()
        self.change(store, Event.UPDATE, one, "one more")
        with pytest.raises(StoreError):
            store.replace_vectors(list(zip(read, fresh, strict=False)), embedding_space=SPACE)
        read = store.embedded_items()
        store.erase([one.id], at=LATER)
        self.add(store, "three", "four")
        with pytest.raises(StoreError):
            store.replace_vectors(list(zip(read, fresh, strict=False)), embedding_space=SPACE)

    # --- what memories said before ----------------------------------------------------------------------------------

    def test_the_past_is_kept_for_searches_of_its_day(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome")
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        self.change(store, Event.DELETE, item, "Lives in Oslo")
        (kept,) = self.add(store, "Likes tea", created_at=AT)
        then = {day: store.past_memories(ALICE, as_of=day) for day in (BEFORE, AT, LATER)}
        assert [[past.text for past in items] for items, _ in then.values()] == [[], ["Lives in Rome"], []]
        items, vectors = then[AT]
        assert items[0].id == item.id
        assert np.allclose(vectors, unit_vectors(1))
        assert store.memories_by_rows(store.rows(ALICE, as_of=AT).tolist(), scope=ALICE).keys() == {
            row
            for row, found in store.memories_by_rows(store.rows(ALICE).tolist(), scope=ALICE).items()
            if found.id == kept.id
        }
        assert len(store.rows(ALICE, as_of=BEFORE)) == 0

    def test_a_memory_that_is_read_knows_its_row(self, store: MemoryStore) -> None:
        """So that its vector can be found; what it said before has none of its own."""
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
        self.change(store, Event.UPDATE, item, "Lives in Oslo")
        assert [each.row for each in store.past_memories(ALICE, as_of=BEFORE)[0]] == [None]

    def test_metadata_alone_leaves_no_past(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Lives in Rome")
        after = MemoryItem(**{**_fields(item), "metadata": {"k": 1}, "updated_at": LATER})
        store.commit([MemoryChange(Event.UPDATE, after, before=item.text)], scope=ALICE, at=LATER)
        assert store.past_memories(ALICE, as_of=AT)[0] == []
        assert len(store.rows(ALICE, as_of=AT)) == 1

    def test_erasing_reaches_the_past(self, store: MemoryStore) -> None:
        updated, deleted, other = self.add(store, "Lives in Rome", "Works in Rome", "Was in Rome")
        for item in (updated, other):
            self.change(store, Event.UPDATE, item, f"{item.text} no more")
        self.change(store, Event.DELETE, deleted, "Works in Rome")
        assert len(store.past_memories(ALICE, as_of=AT)[0]) == 3
        assert store.erase([updated.id], at=LATER) == 1
        assert store.erase([deleted.id], at=LATER) == 1, "what a plan deleted is still there to be erased"
        assert store.erase([deleted.id], at=LATER) == 0
        assert [item.id for item in store.past_memories(ALICE, as_of=AT)[0]] == [other.id]
        store.erase_scope(ALICE, at=LATER)
        assert store.past_memories(ALICE, as_of=AT)[0] == []

    # --- the graph --------------------------------------------------------------------------------------------------

    def current_relations(self, store: MemoryStore, scope: Scope = ALICE, **options: Any) -> list[str]:
        return [str(relation.triplet) for relation in store.graph.relations(scope, **options)]

    def end_relation(self, store: MemoryStore, triplet: Triplet, at: str = LATER, **options: Any) -> CommitResult:
        (row,) = [one.row for one in store.graph.relations(ALICE) if one.triplet == triplet]
        change = RelationChange(Event.DELETE, triplet, relation_row=row)
        return store.commit((), relations=[change], scope=ALICE, at=at, **options)

    def test_relations_come_with_their_memories_or_not_at_all(self, store: MemoryStore) -> None:
        (relation,) = make_relation_changes(LIKES_TEA, change_indexes=(0,))
        item = make_item("Likes tea")
        stale = MemoryChange(Event.UPDATE, make_item("never stored"), before="never stored", vector=unit_vectors(1)[0])
        refused = store.commit(
            [*make_changes([item]), stale], relations=[relation], scope=ALICE, at=AT, embedding_space=SPACE
        )
        assert refused.conflicts == (1,)
        assert self.current_relations(store) == []
        commit = store.commit(make_changes([item]), relations=[relation], scope=ALICE, at=AT, embedding_space=SPACE)
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

    def test_what_ended_stays_on_record_and_may_begin_again(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        assert [change.event for change in self.end_relation(store, LIKES_TEA).relations] == [Event.DELETE]
        assert self.current_relations(store) == []
        assert self.current_relations(store, as_of=AT) == ["alice -- likes -- tea"]
        assert self.current_relations(store, as_of=LATER) == []
        assert self.current_relations(store, as_of=BEFORE) == []
        store.commit((), relations=make_relation_changes(LIKES_TEA), scope=ALICE, at=LATEST, embedding_space=SPACE)
        intervals = [(one.valid_from, one.valid_to) for one in store.graph.relations(ALICE, include_ended=True)]
        assert intervals == [(AT, LATER), (LATEST, None)]

    def test_ending_twice_does_nothing(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        (row,) = [one.row for one in store.graph.relations(ALICE)]
        change = RelationChange(Event.DELETE, LIKES_TEA, relation_row=row)
        events = [store.commit((), relations=[change], scope=ALICE, at=at).relations for at in (LATER, LATEST)]
        assert [[one.event for one in changes] for changes in events] == [[Event.DELETE], [Event.NONE]]
        (ended,) = store.graph.relations(ALICE, include_ended=True)
        assert ended.valid_to == LATER

    def test_what_ends_can_be_removed_instead(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        self.end_relation(store, LIKES_TEA, on_conflict="delete")
        assert self.current_relations(store, include_ended=True) == []
        assert len(store.graph.node_vectors.rows(ALICE)) == 0, "nodes that nothing joins go along"

    def test_a_refined_relation_takes_weight_and_evidence(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Works at Stanford")
        works = Triplet("alice", "works_at", "Stanford")
        again = MemoryChange(Event.NONE, item, message_indexes=(0,))
        said = Message("user", "I work at Stanford")
        added = make_relation_changes(works, change_indexes=(0,))
        store.commit([again], relations=added, messages=[said], scope=ALICE, at=AT, embedding_space=SPACE)
        (row,) = [one.row for one in store.graph.relations(ALICE)]
        (sharper,) = make_relation_changes(Triplet("alice", "works_as_professor_at", "Stanford"), relation_row=row)
        over = RelationChange(Event.DELETE, works, relation_row=row)
        store.commit((), relations=[over, sharper], scope=ALICE, at=LATER, embedding_space=SPACE)
        (now,) = store.graph.relations(ALICE)
        assert (now.triplet, now.weight, now.memories) == (sharper.triplet, 2, (item.id,))

    def add_supporting_memories(self, store: MemoryStore, triplet: Triplet, *texts: str) -> list[MemoryItem]:
        """A relation that memories with these texts support."""
        items = [make_item(text) for text in texts]
        relations = make_relation_changes(triplet, change_indexes=tuple(range(len(items))))
        store.commit(make_changes(items), relations=relations, scope=ALICE, at=AT, embedding_space=SPACE)
        found = [store.get(item.id) for item in items]
        return [item for item in found if item is not None]

    def test_a_relation_is_erased_with_the_last_memory_it_came_from(self, store: MemoryStore) -> None:
        one, two = self.add_supporting_memories(store, LIKES_TEA, "Likes tea", "Drinks tea")
        store.erase([one.id], at=LATER)
        (left,) = store.graph.relations(ALICE)
        assert left.memories == (two.id,)
        store.erase([two.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == []
        assert len(store.graph.node_vectors.rows(ALICE)) == 0

    def test_a_relation_ends_with_the_last_memory_that_says_it(self, store: MemoryStore) -> None:
        one, two = self.add_supporting_memories(store, LIKES_TEA, "Likes tea", "Drinks tea")
        assert self.change(store, Event.DELETE, one, one.text).relations == ()
        (ended,) = self.change(store, Event.UPDATE, two, "Drinks coffee").relations
        assert (ended.event, ended.triplet) == (Event.DELETE, LIKES_TEA)
        assert self.current_relations(store) == []
        assert self.current_relations(store, as_of=AT) == ["alice -- likes -- tea"]
        store.erase([one.id, two.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == [], "to erase reaches what has ended"

    def test_an_update_that_says_it_still_keeps_it(self, store: MemoryStore) -> None:
        (item,) = self.add_supporting_memories(store, LIKES_TEA, "Likes tea")
        assert self.change(store, Event.UPDATE, item, "Likes tea with milk").relations == ()
        assert self.current_relations(store) == ["alice -- likes -- tea"]

    def test_what_only_messages_support_goes_with_them(self, store: MemoryStore) -> None:
        relations = make_relation_changes(LIKES_TEA, message_indexes=(0,))
        item = make_item("Drinks")
        store.commit(
            make_changes([item], sources=(0,)),
            relations=relations,
            messages=[Message("user", "Tea!")],
            scope=ALICE,
            at=AT,
            embedding_space=SPACE,
        )
        store.erase([item.id], at=LATER)
        assert self.current_relations(store, include_ended=True) == []

    def test_nobody_reaches_the_graph_of_another(self, store: MemoryStore) -> None:
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

    def test_a_node_found_and_gone_meanwhile_is_made_anew(self, store: MemoryStore) -> None:
        self.add_relations(store, LIKES_TEA)
        (row,) = [node.row for node, _ in store.graph.nodes_by_names(ALICE, ["tea"]).values()]
        store.erase_scope(ALICE, at=LATER)
        (change,) = make_relation_changes(Triplet("alice", "drinks", "tea"), destination_node=row)
        store.commit((), relations=[change], scope=ALICE, at=LATER, embedding_space=SPACE)
        assert self.current_relations(store) == ["alice -- drinks -- tea"]

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_hostile_names_are_kept_exactly(self, store: MemoryStore, name: str) -> None:
        self.add_relations(store, Triplet("bob", "likes", "tea"), scope=BOB)
        triplet = Triplet(name, name, f"{name} 2")
        self.add_relations(store, triplet)
        assert [one.triplet for one in store.graph.relations(ALICE)] == [triplet]
        assert self.current_relations(store, BOB) == ["bob -- likes -- tea"]

    def test_graph_changes_are_told_in_order_and_by_pages(self, store: MemoryStore) -> None:
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

    def test_a_closed_store_says_so(self, store: MemoryStore) -> None:
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.list_memories(ALICE)

    # --- words ------------------------------------------------------------------------------------------------------

    def memories_with_term(
        self, store: MemoryStore, word: str, scope: Scope = ALICE, *, kind: Any = "term"
    ) -> list[str]:
        """The texts of the memories of a scope that have a word."""
        rows = store.lexicon.postings(scope, [word], kind=kind, limit=100).get(word, np.empty(0, dtype=np.int64))
        return [item.text for item in store.memories_by_rows(rows.tolist(), scope=scope).values()]

    def features_of(self, store: MemoryStore, item: MemoryItem, scope: Scope | None = None) -> MemoryFeatures | None:
        row = store.row(item.id)
        rows = [] if row is None else [row]
        found = store.lexicon.memory_features(scope or item.scope, rows, today="2024-01-01", vector=unit_vectors(1)[0])
        return next(iter(found.memories), None)

    def test_a_memory_is_found_by_its_words_its_names_and_its_speaker(self, store: MemoryStore) -> None:
        self.add(store, "We went running with Anna Smith", actor_id="Bob Marley")
        for word in ("run", "anna", "bob"):
            assert self.memories_with_term(store, word) == ["We went running with Anna Smith"], word
        assert self.memories_with_term(store, "anna smith", kind="name") == ["We went running with Anna Smith"]
        assert self.memories_with_term(store, "marley", kind="speaker") == ["We went running with Anna Smith"]
        assert (
            self.memories_with_term(store, "anna", kind="speaker")
            == self.memories_with_term(store, "run", kind="name")
            == []
        )

    def test_words_of_any_script_are_found(self, store: MemoryStore) -> None:
        said = {"чай": "Анна любит чай", "绿茶": "我喜欢喝绿茶", "قهوة": "أحب قهوة", "चाय": "मुझे चाय पसंद है"}
        self.add(store, *said.values())
        for word, text in said.items():
            (term, *_) = terms(word)
            assert self.memories_with_term(store, term) == [text], word

    def test_no_word_of_another_scope_is_found_or_counted(self, store: MemoryStore) -> None:
        self.add(store, "Likes tea")
        self.add(store, "Hates tea", scope=BOB)
        assert self.memories_with_term(store, "tea") == ["Likes tea"]
        assert self.memories_with_term(store, "tea", BOB) == ["Hates tea"]
        assert self.memories_with_term(store, "tea", Scope(user_id="carol")) == []

    def test_words_are_found_by_any_ids_a_memory_has(self, store: MemoryStore) -> None:
        self.add(store, "Likes tea", scope=Scope("u", "a", "r"))
        self.add(store, "Drinks tea", scope=Scope("u", "a", "s"))
        both = ["Likes tea", "Drinks tea"]
        for scope in (Scope(user_id="u"), Scope(agent_id="a"), Scope("u", "a")):
            assert self.memories_with_term(store, "tea", scope) == both
        for scope in (Scope(run_id="r"), Scope("u", None, "r"), Scope("u", "a", "r")):
            assert self.memories_with_term(store, "tea", scope) == ["Likes tea"]
        assert self.memories_with_term(store, "tea", Scope("u", "b")) == []

    def test_words_follow_a_memory_through_update_and_delete(self, store: MemoryStore) -> None:
        one, two = self.add(store, "Likes tea", "Likes jazz")
        self.change(store, Event.UPDATE, one, "Likes coffee")
        assert self.memories_with_term(store, "tea") == []
        assert self.memories_with_term(store, "coffe") == ["Likes coffee"]
        self.change(store, Event.DELETE, two, "Likes jazz")
        store.erase([one.id], at=LATER)
        assert self.memories_with_term(store, "like") == []
        assert store.row(one.id) is store.row(two.id) is None
        self.add(store, "Likes rain")
        store.erase_scope(ALICE, at=LATER)
        assert self.memories_with_term(store, "rain") == []
        self.add(store, "Likes snow")
        store.reset()
        assert self.memories_with_term(store, "snow") == []

    def test_no_more_rows_than_asked_for_come(self, store: MemoryStore) -> None:
        self.add(store, *(f"tea number {number}" for number in range(8)))
        assert len(store.lexicon.postings(ALICE, ["tea"], kind="term", limit=5)["tea"]) == 5

    def test_a_sketch_tells_what_ranking_needs(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Did Anna buy the red car?", actor_id="Bob", role="user")
        sketch = self.features_of(store, item)
        assert sketch is not None
        words = read_words("Did Anna buy the red car?", "Bob")
        assert (sketch.terms, sketch.names) == (" ".join(words.terms), "\n".join(words.names))
        assert (sketch.word_count, sketch.is_question, sketch.names) == (6, True, "anna")
        assert (sketch.actor_id, sketch.role, sketch.timestamp) == ("Bob", "user", AT)
        assert (sketch.previous_row, sketch.next_row) == (None, None)
        assert self.features_of(store, item, BOB) is None

    def test_what_has_expired_has_no_sketch(self, store: MemoryStore) -> None:
        gone, there = self.add(store, "one", expiration_date="2023-12-31") + self.add(
            store, "two", expiration_date="2024-01-01"
        )
        assert self.features_of(store, gone) is None
        assert self.features_of(store, there) is not None

    def test_what_was_said_in_one_add_or_run_stands_side_by_side(self, store: MemoryStore) -> None:
        one, two, three = self.add(store, "tea first", "tea then", "tea last")
        self.add(store, "tea elsewhere")
        middle = self.features_of(store, two)
        assert middle is not None
        assert (middle.previous_row, middle.next_row) == (store.row(one.id), store.row(three.id))
        rows, query = [store.row(item.id) or 0 for item in (one, two, three)], unit_vectors(1, seed=5)[0]
        stored, vectors = store.vectors(rows)
        cosines = dict(zip(stored.tolist(), (vectors @ query).tolist(), strict=True))
        beside = {rows[0]: "tea first", rows[2]: "tea last"}
        for asked in ([rows[1]], rows[:2], rows):
            found = store.lexicon.memory_features(ALICE, asked, today="2024-01-01", vector=query)
            assert sorted(sketch.row for sketch in found.memories) == asked
            assert found.neighbor_terms == {row: terms for row, terms in beside.items() if row not in asked}
            assert found.cosines in (
                {},
                {row: pytest.approx(cosines[row], abs=1e-3) for row in {*asked, *found.neighbor_terms}},
            )
        last = self.features_of(store, three)
        assert last is not None
        assert last.next_row is None
        run = Scope("alice", None, "r")
        (early,) = self.add(store, "rain first", scope=run)
        (late,) = self.add(store, "rain then", scope=run)
        shown = self.features_of(store, early)
        assert shown is not None
        assert (shown.previous_row, shown.next_row) == (None, store.row(late.id))

    def test_what_was_added_apart_stands_alone_unless_it_shares_a_run(self, store: MemoryStore) -> None:
        for scope, is_alone in ((ALICE, True), (Scope("alice", None, "r"), False)):
            items = [make_item(text, scope) for text in ("one here", "two here")]
            store.commit(make_changes(items), scope=scope, at=AT, embedding_space=SPACE, distinct_sessions=True)
            sketch = self.features_of(store, items[0])
            assert sketch is not None
            assert (sketch.next_row is None) == is_alone

    def test_a_memory_keeps_its_place_in_a_conversation_when_it_is_updated(self, store: MemoryStore) -> None:
        one, two = self.add(store, "tea first", "tea then")
        self.change(store, Event.UPDATE, one, "coffee first")
        sketch = self.features_of(store, one)
        assert sketch is not None
        assert sketch.next_row == store.row(two.id)

    def test_relations_tell_which_living_memories_say_them(self, store: MemoryStore) -> None:
        items = [make_item("Likes tea"), make_item("Tea, always")]
        relations = make_relation_changes(LIKES_TEA, change_indexes=(0, 1))
        store.commit(make_changes(items), scope=ALICE, at=AT, embedding_space=SPACE, relations=relations)
        (relation,) = store.graph.relations(ALICE)
        assert store.graph.supporting_memory_rows([relation.row]) == {
            relation.row: [store.row(item.id) for item in items]
        }
        store.erase([items[0].id], at=LATER)
        assert store.graph.supporting_memory_rows([relation.row, 999]) == {
            relation.row: [store.row(items[1].id)],
            999: [],
        }

    def test_an_update_takes_back_all_that_the_memory_said_if_told_so(self, store: MemoryStore) -> None:
        rome, oslo = Triplet("alice", "lives_in", "Rome"), Triplet("alice", "lives_in", "Oslo")
        items = [make_item("In Rome, with tea"), make_item("Tea")]
        both = [
            *make_relation_changes(rome, change_indexes=(0,)),
            *make_relation_changes(LIKES_TEA, change_indexes=(0, 1), seed=3),
        ]
        store.commit(make_changes(items), scope=ALICE, at=AT, embedding_space=SPACE, relations=both)
        told = store.get(items[0].id)
        assert told is not None
        after = dataclasses.replace(told, text="Rome, tea; in Oslo", updated_at=LATER)
        change = MemoryChange(Event.UPDATE, after, before=told.text, vector=unit_vectors(1, seed=9)[0])
        said = [
            *make_relation_changes(oslo, change_indexes=(0,), seed=5),
            *make_relation_changes(LIKES_TEA, change_indexes=(0,), seed=3),
        ]
        done = store.commit(
            [change], scope=ALICE, at=LATER, embedding_space=SPACE, relations=said, replace_relations=True
        )
        ended = [one.triplet for one in done.relations if one.event is Event.DELETE]
        assert ended == [rome]
        held = {one.triplet: (one.weight, one.memories) for one in store.graph.relations(ALICE)}
        assert held == {LIKES_TEA: (1, (items[0].id, items[1].id)), oslo: (1, (items[0].id,))}

    def test_names_are_merged_followed_and_taken_back(self, store: MemoryStore) -> None:
        ann, anna = Triplet("ann", "likes", "tea"), Triplet("anna", "likes", "tea")
        lives = Triplet("ann", "lives_in", "Rome")
        items = [make_item("Ann likes tea"), make_item("Anna likes tea")]
        adds = [
            *make_relation_changes(ann, lives, change_indexes=(0,)),
            *make_relation_changes(anna, change_indexes=(1,), seed=3),
        ]
        store.commit(make_changes(items), scope=ALICE, at=AT, embedding_space=SPACE, relations=adds)
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
        store.commit((), scope=ALICE, at=LATER, embedding_space=SPACE, relations=make_relation_changes(ann))
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
        assert [one.weight for one in now] == [1, 1, 2]  # what was said since stays where it was said
        with pytest.raises(NotFoundError):
            store.merges.revert(str(done.id), back, at=LATER, embedding_space=SPACE)

    def test_a_merge_loses_what_is_erased(self, store: MemoryStore) -> None:
        ann, anna = Triplet("ann", "likes", "tea"), Triplet("anna", "likes", "rice")
        items = [make_item("Ann likes tea"), make_item("Anna likes rice")]
        adds = [
            *make_relation_changes(ann, change_indexes=(0,)),
            *make_relation_changes(anna, change_indexes=(1,), seed=3),
        ]
        store.commit(make_changes(items), scope=ALICE, at=AT, embedding_space=SPACE, relations=adds)
        rows = {one.triplet.source: one.source_node for one in store.graph.relations(ALICE)}
        vectors = {"anna likes tea": unit_vectors(1)[0]}
        plan = MergePlan(Merge("entity", ALICE, "anna", ("ann",)), rows["anna"], (rows["ann"],), vectors)
        assert store.merges.apply(plan, at=LATER, embedding_space=SPACE) is not None
        store.erase([items[0].id], at=LATER)
        assert store.merges.list_merges(ALICE) == []
        assert [one.triplet for one in store.graph.relations(ALICE, include_ended=True)] == [anna]
        store.erase_scope(ALICE, at=LATER)
        assert store.graph.relations(ALICE, include_ended=True) == []

    def test_a_walk_in_memory_follows_what_came_ended_grew_and_went(self, store: MemoryStore) -> None:
        """`delta_since` once, and then from where it was, comes to what the truth holds."""
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
            store.commit(
                (), relations=make_relation_changes(*triplets, types=types), scope=scope, at=at, embedding_space=SPACE
            )
            follow()
        assert ("Oslo", "place") in nodes.values()
        self.end_relation(store, LIKES_TEA)
        follow()
        self.end_relation(store, Triplet("alice", "lives_in", "Rome"), on_conflict="delete")
        follow()
        assert store.graph.delta_since(ALICE, after=after).edges == []
        assert store.graph.delta_since(Scope("nobody")).edges == []

    # --- looking after it -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: name[:20])
    def test_all_it_holds_can_be_taken_out(self, store: MemoryStore, name: str) -> None:
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

    def test_more_than_is_read_at_once_comes_out_whole_and_in_order(self, store: MemoryStore) -> None:
        texts = [f"memory {number}" for number in range(1100)]
        added = self.add(store, *texts)
        store.erase([item.id for item in added[:600]], at=LATER)
        records = list(store.maintenance.iter_records(ALICE))
        assert [record["memory"] for record in records if record["kind"] == "memory"] == texts[600:]
        gone = [record["memory_id"] for record in records if record["kind"] == "history"]
        assert sorted(gone) == sorted(item.id for item in added[:600] for _ in range(2))
        assert gone[::2] == gone[1::2], "what happened to one memory stands together"

    def test_nothing_is_wrong_with_it_whatever_was_done(self, store: MemoryStore) -> None:
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

    def test_partitions_and_addresses_name_everybody(self, store: MemoryStore) -> None:
        for scope in (ALICE, Scope("alice", "a"), Scope(None, "a", "r"), Scope(run_id="r")):
            self.add(store, "Likes tea", scope=scope)
        assert {*store.maintenance.list_partitions("memories")} == {ALICE, Scope(agent_id="a"), Scope(run_id="r")}
        assert {*store.maintenance.list_addresses("memories")} == {ALICE, Scope(agent_id="a"), Scope(run_id="r")}
        assert store.maintenance.list_partitions("nodes") == []

    def test_messages_of_another_store_are_taken_in_once(self, store: MemoryStore) -> None:
        theirs = [(bytes([number]) * 16, Message("user", f"said {number}", timestamp=AT)) for number in range(3)]
        rows = store.maintenance.adopt_messages(ALICE, theirs[:2])
        assert store.maintenance.adopt_messages(ALICE, theirs)[:2] == rows
        assert [message.content for message in store.message_log.messages(ALICE)] == ["said 0", "said 1", "said 2"]
        assert store.message_log.messages(BOB) == []

    def test_history_of_another_store_takes_the_place_of_our_own_beginning(self, store: MemoryStore) -> None:
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


class VectorIndexContract:
    """What a `VectorIndex` must do. Subclasses give `store` (an empty MemoryStore) and `make_index`."""

    @pytest.fixture
    def index(self, store: MemoryStore, make_index: Callable[[MemoryStore], VectorIndex]) -> Any:
        index = make_index(store)
        yield index
        index.close()

    def fill(self, store: MemoryStore, count: int, *, scope: Scope = ALICE, seed: int = 1) -> NDArray[np.float32]:
        """Add `count` memories in batches; returns their vectors, in the order of their rows."""
        items = [make_item(f"fact {seed} {i}", scope, metadata={"i": i}) for i in range(count)]
        store.commit(make_changes(items, seed=seed), scope=scope, at=AT, embedding_space=SPACE)
        return unit_vectors(count, seed=seed)

    def test_finds_the_nearest_best_first(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 200)
        rows = store.rows(ALICE)
        queries = unit_vectors(20, seed=3)
        for query, found in zip(queries, index.nearest(ALICE, queries, 10), strict=True):
            assert_nearest(found, rows, vectors, query, 10)

    def test_finds_none_below_a_threshold(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 100)
        rows = store.rows(ALICE)
        (query,) = unit_vectors(1, seed=3)
        cosines = np.sort(vectors @ query)[::-1]
        threshold = float(cosines[4] + cosines[5]) / 2
        for only in (None, rows):
            assert_nearest(
                index.nearest(ALICE, query[None], 3, allowed_rows=only, threshold=threshold)[0], rows, vectors, query, 3
            )
            (found,) = index.nearest(ALICE, query[None], 30, allowed_rows=only, threshold=threshold)
            assert_nearest(found, rows, vectors, query, 5)
            assert index.nearest(ALICE, query[None], 3, allowed_rows=only, threshold=1.0) == [[]]

    def test_an_empty_scope_finds_nothing(self, store: MemoryStore, index: VectorIndex) -> None:
        assert index.nearest(ALICE, unit_vectors(2), 5) == [[], []]
        self.fill(store, 3, scope=BOB)
        assert index.nearest(ALICE, unit_vectors(1), 5) == [[]]

    def test_never_finds_another_scope(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 50, scope=ALICE)
        theirs = self.fill(store, 50, scope=BOB, seed=2)
        run = Scope("alice", None, "r")
        self.fill(store, 5, scope=run, seed=4)
        mine = set(store.rows(ALICE).tolist())
        assert {row for found in index.nearest(ALICE, theirs, 60) for row, _ in found} == mine
        assert {row for row, _ in index.nearest(run, theirs[:1], 60)[0]} == set(store.rows(run).tolist())

    def test_follows_additions_updates_and_deletions(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 10)
        index.nearest(ALICE, unit_vectors(1), 1)
        late = self.fill(store, 1, seed=7)
        (row, score) = index.nearest(ALICE, late, 1)[0][0]
        assert score == pytest.approx(1.0, abs=COSINE_TOLERANCE)
        item = store.memories_by_rows([row], scope=ALICE)[row]
        moved = unit_vectors(1, seed=8)
        store.commit(
            [MemoryChange(Event.UPDATE, item, before=item.text, vector=moved[0])],
            scope=ALICE,
            at=AT,
            embedding_space=SPACE,
        )
        (nearest, score) = index.nearest(ALICE, moved, 1)[0][0]
        assert nearest == row
        assert score == pytest.approx(1.0, abs=COSINE_TOLERANCE)
        assert len(index.nearest(ALICE, moved, 50)[0]) == 11
        store.erase([item.id], at=LATER)
        assert row not in {found for found, _ in index.nearest(ALICE, moved, 50)[0]}
        store.erase_scope(ALICE, at=LATER, purge=True)
        assert index.nearest(ALICE, moved, 5) == [[]]

    def test_searches_only_among_given_rows(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 300)
        rows = store.rows(ALICE)
        for share in (1, 3, 30, 299):
            only = np.sort(np.random.default_rng(share).choice(rows, share, replace=False))
            query = unit_vectors(1, seed=share)
            among = np.isin(rows, only)
            (found,) = index.nearest(ALICE, query, 10, allowed_rows=only)
            assert_nearest(found, rows[among], vectors[among], query[0], 10)
        assert index.nearest(ALICE, query, 10, allowed_rows=np.empty(0, dtype=np.int64)) == [[]]

    def test_a_scope_that_lost_everything_can_begin_again(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 3)
        store.erase([item.id for item in store.list_memories(ALICE)], at=LATER)
        assert index.nearest(ALICE, unit_vectors(1), 1) == [[]]
        vectors = self.fill(store, 3, seed=2)
        assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE)

    def test_forgets_what_it_kept(self, store: MemoryStore, index: VectorIndex) -> None:
        vectors = self.fill(store, 60)
        index.nearest(ALICE, vectors[:1], 1)
        for scope in (ALICE, Scope("nobody"), None):
            index.purge_deleted(scope)
            assert index.nearest(ALICE, vectors[:1], 1)[0][0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE)

    def test_serves_threads_while_others_write(self, store: MemoryStore, index: VectorIndex) -> None:
        self.fill(store, 50)

        def work(number: int) -> None:
            for step in range(5):
                vectors = self.fill(store, 2, seed=1000 + number * 10 + step)
                found = index.nearest(ALICE, vectors, 1)
                assert all(of_query[0][1] == pytest.approx(1.0, abs=COSINE_TOLERANCE) for of_query in found)

        in_threads(work, 4)


def _fields(item: MemoryItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__slots__}


def _texts(store: MemoryStore, filter: Filter | None) -> list[str]:
    return [item.text for item in store.list_memories(ALICE, filter=filter)]


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Run `work` in threads, and raise the first error of any."""
    errors: list[BaseException] = []

    def run_guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run_guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
