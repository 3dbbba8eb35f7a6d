"""Contracts of the job queue and of import checkpoints."""

from __future__ import annotations

import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    DIMS,
    LATER,
    StoreContract,
    commit_plan,
    in_threads,
    make_changes,
    make_item,
)
from mem0_core.domain.records import (
    Message,
    Scope,
)
from mem0_core.errors import ConfigError, LimitError
from mem0_core.interfaces import Lease, MemoryStore, QueuedTurn


class QueueContract(StoreContract):
    """Suite for `JobQueue`."""

    def enqueue(self, store: MemoryStore, *texts: str, scope: Scope = ALICE) -> list[int]:
        """Enqueue one job for each text."""
        messages = [(Message("user", text),) for text in texts]
        rows = [store.jobs.enqueue(scope, "remember", at=AT, messages=each) for each in messages]
        return [row for row in rows if row is not None]

    def lease_jobs(self, store: MemoryStore, worker: str, *, seconds: float = 60.0, most: int = 1) -> list[int]:
        return [job.row for job in store.jobs.lease(worker, seconds=seconds, limit=most)]

    def test_jobs_of_one_partition_run_one_after_the_other(self, store: MemoryStore) -> None:
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

    def test_the_number_of_jobs_of_a_scope_is_limited(self, store: MemoryStore) -> None:
        def ask(scope: Scope, most: int) -> int | None:
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

    def test_jobs_that_can_run_together_are_leased_together(self, store: MemoryStore) -> None:
        rows = self.enqueue(store, "one", "two", "three")
        store.jobs.enqueue(ALICE, "summary", at=AT)
        (job, *others) = store.jobs.lease("a", seconds=60, limit=9)
        assert [one.row for one in (job, *others)] == rows
        assert [one.messages[0].content for one in (job, *others)] == ["one", "two", "three"]
        store.jobs.release_failed(Lease("a", tuple(rows)), error="down", retry_in=0.0)
        assert self.lease_jobs(store, "a", most=9) == rows[:1], "what failed is tried alone"

    def test_an_expired_lease_goes_to_another_worker(self, store: MemoryStore) -> None:
        (row,) = self.enqueue(store, "one")
        assert self.lease_jobs(store, "slow", seconds=-1.0) == [row]
        assert self.lease_jobs(store, "next") == [row]
        assert not store.jobs.renew_lease(Lease("slow", (row,)), seconds=60)
        assert not store.jobs.mark_done(Lease("slow", (row,)))
        lost = commit_plan(store, make_changes([make_item("tea")]), lease=Lease("slow", (row,)))
        assert (lost.lease_lost, lost.applied) == (True, ())
        assert store.list_memories(ALICE) == []
        store.jobs.release_failed(Lease("slow", (row,)), error="late", retry_in=None)
        assert [(job.state, job.attempts) for job in store.jobs.list_jobs()] == [("leased", 0)]
        done = commit_plan(store, make_changes([make_item("tea")]), lease=Lease("next", (row,)))
        assert not done.lease_lost
        assert store.jobs.list_jobs() == []

    def test_a_commit_removes_all_jobs_of_its_lease_or_none(self, store: MemoryStore) -> None:
        one, two = self.enqueue(store, "one", "two")
        assert self.lease_jobs(store, "a", most=2) == [one, two]
        store.jobs.release_failed(Lease("a", (two,)), error="", retry_in=60.0)
        assert store.commit((), scope=ALICE, at=AT, lease=Lease("a", (one, two))).lease_lost
        assert [job.row for job in store.jobs.list_jobs()] == [one, two]

    def test_a_failed_job_waits_before_the_next_attempt(self, store: MemoryStore) -> None:
        one, _ = self.enqueue(store, "one", "two")
        self.lease_jobs(store, "a")
        store.jobs.release_failed(Lease("a", (one,)), error="down", retry_in=60.0)
        assert self.lease_jobs(store, "a") == [], "what comes after it waits for it"
        later = store.jobs.next_attempt_at()
        assert later is not None
        assert later > 1e9, "so that idle workers sleep until then"
        assert not store.jobs.retry(one), "it has not failed"
        assert [(job.attempts, job.error) for job in store.jobs.list_jobs()] == [(1, "down"), (0, None)]

    def test_a_failed_job_lets_others_pass_until_it_is_retried(self, store: MemoryStore) -> None:
        one, two = self.enqueue(store, "one", "two")
        self.lease_jobs(store, "a")
        store.jobs.release_failed(Lease("a", (one,)), error="bad", retry_in=None)
        assert self.lease_jobs(store, "a") == [two]
        assert store.jobs.retry(one)
        assert self.lease_jobs(store, "b") == [], "no two jobs of a partition are done at once"
        assert store.jobs.mark_done(Lease("a", (two,)))
        assert self.lease_jobs(store, "b") == [one]

    def test_leases_of_a_dead_worker_can_be_released(self, store: MemoryStore) -> None:
        (row,) = self.enqueue(store, "one")
        self.lease_jobs(store, "gone")
        store.jobs.release_leases("somebody else")
        assert self.lease_jobs(store, "a") == []
        store.jobs.release_leases("gone")
        assert self.lease_jobs(store, "a") == [row]

    def test_a_job_may_be_dated_by_the_latest_change_of_its_partition(self, store: MemoryStore) -> None:
        def stamp(latest: str | None) -> str:
            seen.append(latest)
            return LATER

        seen: list[str | None] = []
        item = make_item("Likes tea", Scope("alice", run_id="r"))
        commit_plan(store, make_changes([item]), scope=item.scope)
        for scope in (ALICE, BOB):
            store.jobs.enqueue(scope, "remember", at=stamp, messages=[Message("user", "one")])
        assert seen == [store.feed.latest_time(ALICE), None]
        assert [job.timestamp for job in store.jobs.list_jobs()] == [LATER, LATER]

    def test_a_job_may_be_enqueued_as_failed(self, store: MemoryStore) -> None:
        failed = store.jobs.enqueue(ALICE, "remember", at=AT, messages=[Message("user", "one")], error="bad reply")
        assert failed is not None
        (later,) = self.enqueue(store, "two")
        (job, _) = store.jobs.list_jobs(ALICE)
        assert (job.row, job.state, job.attempts, job.error) == (failed, "failed", 1, "bad reply")
        assert [job.row for job in store.jobs.lease("a", seconds=30.0, limit=9)] == [later], "it blocks no other"
        assert store.jobs.retry(failed)
        assert store.jobs.mark_done(Lease("a", (later,)))
        (again,) = store.jobs.lease("a", seconds=30.0)
        assert [message.content for message in again.messages] == ["one"]

    def test_a_summary_is_enqueued_once(self, store: MemoryStore) -> None:
        rows = {store.jobs.enqueue(scope, "summary", at=AT) for scope in (ALICE, ALICE, BOB)}
        assert len(rows) == 2
        store.erase_scope(ALICE, at=LATER)
        assert [job.scope for job in store.jobs.list_jobs()] == [BOB]

    def test_unprocessed_messages_come_with_their_jobs(self, store: MemoryStore) -> None:
        rows = self.enqueue(store, "one", "two", "three")
        found = store.jobs.unprocessed_messages(ALICE, limit=2)
        assert [(job.row, message.content) for job, message in found] == [(rows[1], "two"), (rows[2], "three")]
        assert store.jobs.unprocessed_messages(BOB, limit=2) == []

    def test_many_workers_run_each_job_once_and_in_order(self, store: MemoryStore) -> None:
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


class ImportsContract(StoreContract):
    """Suite for import checkpoints."""

    def test_a_checkpoint_is_stored_with_the_memories_of_the_import(self, store: MemoryStore) -> None:
        assert store.import_checkpoint(ALICE, "diary") == 0
        commit_plan(store, make_changes([make_item("tea")]), import_checkpoint=("diary", 10))
        assert store.import_checkpoint(ALICE, "diary") == 10
        cake = make_changes([make_item("cake")])
        with pytest.raises(ConfigError):
            store.commit(cake, scope=ALICE, at=AT, embedding_space=("another", DIMS), import_checkpoint=("diary", 20))
        assert store.import_checkpoint(ALICE, "diary") == 10, "what is not written is not marked"
        store.commit([], scope=ALICE, at=AT, import_checkpoint=("diary", 7))
        assert store.import_checkpoint(ALICE, "diary") == 10, "of two imports that run at once, the further one tells"

    def test_a_checkpoint_belongs_to_one_key_and_exactly_one_scope(self, store: MemoryStore) -> None:
        run = Scope("alice", None, "r")
        for place, scope in enumerate((ALICE, run, BOB), start=1):
            store.commit([], scope=scope, at=AT, import_checkpoint=("diary", place))
        assert [store.import_checkpoint(scope, "diary") for scope in (ALICE, run, BOB)] == [1, 2, 3]
        assert store.import_checkpoint(ALICE, "letters") == 0
        store.erase_scope(ALICE, at=LATER)
        assert [store.import_checkpoint(scope, "diary") for scope in (ALICE, run, BOB)] == [0, 0, 3]
        store.reset()
        assert store.import_checkpoint(BOB, "diary") == 0

    def test_turns_are_enqueued_together_with_their_checkpoint(self, store: MemoryStore) -> None:
        turns = [QueuedTurn(AT, (Message("user", text),), {"metadata": {"k": 1}}) for text in ("one", "two", "one")]
        jobs = store.jobs.enqueue_turns(ALICE, turns, import_checkpoint=("diary", 3))
        listed = store.jobs.list_jobs(ALICE)
        assert [job.row for job in listed] == jobs
        assert [job.messages[0].content for job in listed] == ["one", "two", "one"]
        assert {(job.kind, job.timestamp, str(job.options)) for job in listed} == {
            ("remember", AT, str(turns[0].options))
        }
        assert store.import_checkpoint(ALICE, "diary") == 3
