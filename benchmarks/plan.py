"""The amount of measurement: the full run, the quick one, and the tiny one that tests use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FULL", "QUICK", "ROOT", "Plan"]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and repetitions.

    Attributes:
        sizes: numbers of memories in the store, ascending, shared by a hundred users.
        calls, rounds: adds in one timed block, and blocks per size; sizes alternate, so that noise affects all alike.
        full_rounds: rounds with ``durability="full"``, which wait for the disk, and of some more adds of graph memory.
        queries: searches per size.
        own_memories, others: turns of a user, and of other users in the same store, ascending.
        crowds, server_crowds: memories of other users, up to a million, ascending: in SQLite and in PostgreSQL;
            `stores` selects the two.
        big: memories of one user, for the HNSW graph; `exact_limit` is its lower bound (None: the default).
        processes: fresh processes for each median.
        crash_runs: killed writers.
        kill_runs: processes killed during adds, updates, erasures, merges and migrations.
        crash_share: one of so many boundaries is aborted.
        erased_facts: facts of a user that is erased from each kind of store.
        sources: sources of one user, of which one is retracted.
        failovers: crashes of a primary, for each kind of standby.
        fuzz_calls: calls with arguments of any type.
        relations, own: relations in the store, ascending, and those of the user that adds.
        paths: relations of one user, for path searches.
        growth: relations of a user that starts with none.
        talks: adds with counted model calls.
        memories: memories of the user with queued turns.
        waiting, turns: lengths of a queue, and of a conversation with counted calls.
        messages, singles: messages of an import, and those of them added one by one; `imports` are the rounds.
        items: items of a LangGraph store, twice: in a hundred namespaces, and in one.
        agent_memories, turns_of_agent: memories of an agent's user, and turns.
        longest_text: characters of the longest adversarial text.
        conversations, sessions, questions: scored part of LoCoMo (None: all; sessions are cut for replays only).
        chats, batches: scored part of BEAM.
        embedders, rerankers: names or folders of models that `recall` compares; none for the default alone.
        multihops: questions of MuSiQue, over only their passages (None: all, over the whole corpus).
        compared_memories, compared_turns: memories of a hundred users in the stores of two compared commits, and turns
            of twenty calls that each commit takes with each workload.
        stories: people of the life stories that the two answer questions about (None: all).
        patience: seconds that one measurement may wait for quiet moments of the machine, see `pace`.
    """

    sizes: tuple[int, ...] = (0, 1_000, 10_000, 100_000)
    calls: int = 200
    rounds: int = 5
    full_rounds: int = 3
    queries: int = 1_000
    own_memories: int = 1_000
    others: tuple[int, ...] = (0, 9_000, 99_000)
    crowds: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    server_crowds: tuple[int, ...] = (10_000, 100_000, 200_000)
    stores: tuple[str, ...] = ("sqlite", "postgres")
    big: int = 100_000
    exact_limit: int | None = None
    processes: int = 7
    crash_runs: int = 200
    kill_runs: int = 1_000
    crash_share: int = 1
    erased_facts: int = 1_000
    sources: int = 1_000
    failovers: int = 3
    fuzz_calls: int = 20_000
    relations: tuple[int, ...] = (1_000, 10_000, 100_000)
    own: int = 10_000
    paths: tuple[int, ...] = (1_000, 10_000, 100_000)
    growth: int = 300
    talks: int = 20
    memories: int = 10_000
    waiting: int = 5_000
    turns: int = 100
    messages: int = 5_000
    singles: int = 500
    imports: int = 3
    items: int = 10_000
    agent_memories: int = 1_000
    turns_of_agent: int = 60
    longest_text: int = 1_000_000
    embedders: tuple[str, ...] = ()
    rerankers: tuple[str, ...] = ()
    conversations: int | None = None
    sessions: int | None = None
    questions: int | None = None
    chats: int | None = None
    batches: int | None = None
    multihops: int | None = None
    resamples: int = 2_000
    compared_memories: int = 10_000
    compared_turns: int = 30
    stories: int | None = None
    patience: float = 90.0

    @property
    def scores_all(self) -> bool:
        """Return True if recall is scored over whole datasets."""
        cut = (self.conversations, self.sessions, self.questions, self.chats, self.batches, self.multihops)
        return all(part is None for part in cut)


FULL = Plan()
QUICK = Plan(
    sizes=(0, 1_000, 3_000),
    calls=60,
    rounds=2,
    full_rounds=1,
    queries=100,
    own_memories=200,
    others=(0, 800),
    crowds=(1_000, 3_000),
    server_crowds=(1_000, 3_000),
    big=3_000,
    exact_limit=1_000,
    processes=2,
    crash_runs=20,
    kill_runs=25,
    crash_share=100,
    erased_facts=50,
    sources=40,
    failovers=1,
    fuzz_calls=700,
    relations=(1_000, 3_000),
    own=1_000,
    paths=(1_000,),
    growth=60,
    talks=5,
    memories=1_000,
    waiting=300,
    turns=40,
    messages=200,
    singles=40,
    imports=1,
    items=1_000,
    agent_memories=200,
    turns_of_agent=10,
    longest_text=10_000,
    conversations=1,
    sessions=6,
    questions=30,
    chats=1,
    batches=1,
    multihops=3,
    resamples=500,
    compared_memories=1_000,
    compared_turns=5,
    stories=4,
    patience=2.0,
)
