"""The cost of a traversal: a chain of three terms through all relations of one user, cold and warm.

A third of the relations begin at the user, the others at people, each with a sister, a boss, a dog and their likes. All
nodes and relations share one vector here: these traversals do not use vectors.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median, percentile
from mem0_core import Event, Memory, Scope
from mem0_core.domain.records import RelationChange, Triplet
from mem0_core.interfaces import Embedder
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder

__all__ = ["measure"]

USER = "alice_123"
LARGE = 100_000  # relations; the bar refers to this size
_AT = "2025-03-01T09:00:00+00:00"
_BATCH = 1_000
_TIES = ("sister", "boss", "has_dog", "likes", "visited", "works_at")
_CHAINS = (
    ("from a person", "{}'s sister's boss's dog"),
    ("from the user, who is a third of the graph", "my sister's boss's dog"),
    ("from the user, over 1 in 30 relations at every step", "my friend's friend's dog"),
)


def measure(plan: Plan) -> Report:
    report = Report("paths")
    for size in plan.paths:
        _say(f"filling {size:,}")
        with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
            embedder = HashEmbedder()
            people = _fill(Path(folder), embedder, size)
            _walks(report, plan, Path(folder), embedder, size, people)
    return report


def _say(what: str) -> None:
    print(f"paths: {what}", file=sys.stderr, flush=True)


def _walks(report: Report, plan: Plan, folder: Path, embedder: Embedder, size: int, people: Sequence[str]) -> None:
    chance = random.Random(5)
    bar = Bar("<=", 10) if size == LARGE else None
    store = SQLiteStore(folder / "memory.db", durability="process")
    section = f"traverse, three terms, {size:,} relations of one user"
    with Memory({"path": folder, "durability": "process"}, embedder=embedder) as memory:
        memory.traverse("my dog", user_id="somebody else")  # imports, connections
        report.add(section, "the first walk, which reads the graph", _wall(memory, "my sister's boss's dog")[0], "ms")
        for name, form in _CHAINS:
            questions = [form.format(chance.choice(people)) for _ in range(plan.queries)]
            before = time.process_time()
            runs = [_wall(memory, question) for question in questions]
            cpu = 1e3 * (time.process_time() - before) / len(runs)
            walls = [wall for wall, _ in runs]
            found = sum(bool(paths) for _, paths in runs) / len(runs)
            wide = form == _CHAINS[-1][1]
            report.add(
                section, f"p50, {name}", median(walls), "ms", None if wide else bar, f"{found:.0%} led somewhere"
            )
            report.add(section, f"p95, {name}", percentile(walls, 0.95), "ms")
            report.add(section, f"CPU per walk, {name}", cpu, "ms")
        after = []
        for number in range(20):
            _commit(store, embedder, {Triplet(USER, "cousin", f"Cousin {number}"): None})
            after.append(_wall(memory, "my sister's boss's dog")[0])
        report.add(section, "p50, right after another relation came", median(after), "ms", bar)
    store.close()


def _wall(memory: Memory, question: str) -> tuple[float, list[Any]]:
    started = time.perf_counter()
    paths: list[Any] = list(memory.traverse(question, user_id=USER))
    return 1e3 * (time.perf_counter() - started), paths


def _fill(folder: Path, embedder: Embedder, size: int) -> list[str]:
    """Build a store with `size` relations of one user; return the people in it."""
    people = [f"Person {number}" for number in range(max(3, size // 10))]
    store = SQLiteStore(folder / "memory.db", durability="process")
    batch: dict[Triplet, None] = {}
    for triplet in _triplets(people, size):
        batch[triplet] = None
        if len(batch) == _BATCH:
            _commit(store, embedder, batch)
    _commit(store, embedder, batch)
    store.close()
    return people


def _triplets(people: Sequence[str], size: int) -> Iterator[Triplet]:
    chance = random.Random(1)
    for number in range(3):
        yield Triplet(USER, "sister", people[number])
    for number in range(3, size):
        if number % 3 == 0:
            tie = "friend" if number % 10 == 0 else chance.choice(_TIES[3:])
            yield Triplet(USER, tie, people[chance.randrange(len(people))] if tie == "friend" else f"Thing {number}")
        else:
            person, tie = people[number % len(people)], _TIES[number // len(people) % len(_TIES)]
            others = {"has_dog": f"Dog {number}", "sister": chance.choice(people), "boss": chance.choice(people)}
            friend = number % 30 == 1
            yield Triplet(
                person,
                "friend" if friend else tie,
                chance.choice(people) if friend else others.get(tie, f"Thing {number}"),
            )


def _commit(store: SQLiteStore, embedder: Embedder, batch: dict[Triplet, None]) -> None:
    (vector,) = embedder.embed(["the vector of everything"])
    changes = [RelationChange(Event.ADD, triplet, vectors=(vector, vector, vector)) for triplet in batch]
    store.commit((), relations=changes, scope=Scope(USER), at=_AT, embedding_space=(embedder.name, embedder.dims))
    batch.clear()
