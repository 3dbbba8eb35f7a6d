"""One store of many users: the effect of other users' memories on one user's searches and adds.

The measured user has `Plan.own_memories`; around them are increasing crowds of `EACH` memories per user with
alternating sessions, so that no user's rows are adjacent. SQLite is filled by `Memory.add_many` (rules find no
relations in such sentences), PostgreSQL by migrating such a file. Both are measured alike: a `Site` knows how to open a
store and its size.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import Memo, embed_memos, memos, take
from benchmarks.fresh import in_fresh_process
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median, percentile
from benchmarks.timed import Clocks, TimedEmbedder, clocks
from mem0_core import Memory
from mem0_core.admin.transfer import migrate, open_archive
from mem0_core.domain.recipes import HYBRID, MEM0
from mem0_core.interfaces import Embedder
from mem0_core.testing import HashEmbedder
from tests.services.postgres_server import PostgresUnavailable, postgres_url

__all__ = ["measure"]

USER = "the user"
EACH = 100
"""Memories of each of the others."""
_SESSION = 20  # memories of one import, one transaction
_LARGEST = 1_000_000  # of others on SQLite: the size that the bars refer to
_K = 10
_WARM_UP = 20
_VISITED, _SEARCHES = 100, 1_000  # users, and searches of them all, for the memory measurement
_FLAT = Bar("<=", 1.3)
_PER_RECIPE = {HYBRID.name: Bar("<=", 5), MEM0.name: Bar("<=", 0.5)}


@dataclass(frozen=True, slots=True)
class Site:
    """A store to fill and measure.

    Attributes:
        config: configuration for `Memory`.
        size: bytes on disk.
        remove: deletes it.
        migrated_to: its location for a migration, if it is filled by migrating a SQLite file.
    """

    others: int
    config: Mapping[str, Any]
    size: Callable[[], int]
    remove: Callable[[], None]
    migrated_to: str | None = None

    def open(self, embedder: Embedder, **more: Any) -> Memory:
        return Memory({**self.config, "durability": "process", **more}, embedder=embedder)


def measure(plan: Plan) -> Report:
    report = Report("scale")
    report.details["memories"] = (
        f"invented sentences; {plan.own_memories} of one user, {EACH} of each of the others, in sessions of {_SESSION}"
    )
    with tempfile.TemporaryDirectory(prefix="mem0-scale-") as work:
        if "sqlite" in plan.stores:
            _measure(report, plan, "SQLite", [_sqlite_site(Path(work), others) for others in plan.crowds])
        if "postgres" in plan.stores:
            _measure_postgres(report, plan, Path(work))
    return report


def _sqlite_site(work: Path, others: int) -> Site:
    folder = work / f"among-{others}"
    folder.mkdir()

    def size() -> int:
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

    return Site(others, {"path": str(folder)}, size, lambda: shutil.rmtree(folder, ignore_errors=True))


def _measure_postgres(report: Report, plan: Plan, work: Path) -> None:
    try:
        with postgres_url() as url:
            sites = [_postgres_site(url, work / f"postgres-{others}", others) for others in plan.server_crowds]
            report.details["PostgreSQL"] = "on this machine, over a Unix socket, fsync off, its default settings else"
            _measure(report, dataclasses.replace(plan, queries=plan.queries // 5), "PostgreSQL", sites)
    except PostgresUnavailable as error:
        report.skip("PostgreSQL", str(error))


def _postgres_site(url: str, folder: Path, others: int) -> Site:
    schema = f"mem0_among_{others}"
    folder.mkdir()

    def size() -> int:
        tables = (
            "SELECT sum(pg_total_relation_size(c.oid))"
            " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname = %s"
        )
        return int(_ask(url, tables, (schema,)))

    def remove() -> None:
        _ask(url, f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    store = {"provider": "postgres", "config": {"url": url, "schema": schema}}
    return Site(others, {"path": str(folder), "store": store}, size, remove, migrated_to=f"{url}#{schema}")


def _ask(url: str, sql: str, values: Sequence[Any] = ()) -> Any:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        answer = db.execute(sql.encode(), values or None)
        found = answer.fetchone() if answer.description else None
    return found[0] if found else None


def _measure(report: Report, plan: Plan, truth: str, sites: Sequence[Site]) -> None:
    embedder = HashEmbedder()
    own = take(memos(seed=3), plan.own_memories)
    try:
        for site in sites:
            _fill(report, truth, site, own, embedder)
        for recipe in (HYBRID.name, MEM0.name):
            _searches(report, plan, truth, sites, own, embedder, recipe)
        _adds(report, plan, truth, sites, embedder)
        if truth == "SQLite":
            for site in sites:
                _opening(report, plan, truth, site, own)
    finally:
        for site in sites:
            site.remove()


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} scale: {what}", file=sys.stderr, flush=True)


# --- filling -------------------------------------------------------------------------------------------------------


def _fill(report: Report, truth: str, site: Site, own: Sequence[Memo], embedder: Embedder) -> None:
    _say(f"{truth}: filling {len(own):,} among {site.others:,}")
    if site.migrated_to is None:
        _import(report, truth, site, own, embedder)
    else:
        with tempfile.TemporaryDirectory(prefix="mem0-scale-") as work:
            file = _sqlite_site(Path(work), site.others)
            _import(report, "SQLite, to be migrated", file, own, embedder)
            _migrate(report, truth, str(file.config["path"]), site, len(own))
    every = site.others + len(own)
    section = f"{truth}: on disk, with history, messages and words"
    report.add(section, f"all of {every:,}", site.size() / 1e6, "MB")
    report.add(section, f"a memory, at {every:,}", site.size() / every, "bytes")


def _migrate(report: Report, truth: str, source: str, site: Site, own: int) -> None:
    assert site.migrated_to is not None
    _say(f"{truth}: migrating {site.others:,}")
    started, every = time.perf_counter(), site.others + own
    with open_archive(source) as one, open_archive(site.migrated_to, create=True) as other:
        done = migrate(one, other)
    seconds = time.perf_counter() - started
    assert done.digests["memories"].count == every
    note = f"{sum(done.loaded.values()):,} records, verified, in {seconds:.0f} s"
    report.add(
        f"{truth}: filling, by migrating a SQLite file",
        f"a memory, at {every:,}",
        1e6 * seconds / every,
        "µs",
        note=note,
    )


def _import(report: Report, truth: str, site: Site, own: Sequence[Memo], embedder: Embedder) -> None:
    before = clocks()
    with site.open(embedder) as memory:
        for done, (user, session) in enumerate(_sessions(own, site.others)):
            memory.add_many([memo.text for memo in session], user_id=user, chunk=_SESSION)
            if done % 5_000 == 4_999:
                _say(f"{truth}: {(done + 1) * _SESSION:,} of {site.others:,}")
    after, every = clocks(), site.others + len(own)
    section = f"{truth}: filling, by imports of {_SESSION} messages"
    cpu = f"{1e6 * (after.cpu - before.cpu) / every:.0f} µs of CPU"
    report.add(section, f"a memory, at {every:,}", 1e6 * (after.wall - before.wall) / every, "µs", note=cpu)
    _say(f"{truth}: {every:,} in {after.wall - before.wall:.0f} s")


def _sessions(own: Sequence[Memo], others: int) -> Iterator[tuple[str, list[Memo]]]:
    """Yield sessions of messages with their users: the user's are spread evenly among those of the others."""
    said = memos(seed=5)
    theirs = [f"other {number}" for _ in range(0, EACH, _SESSION) for number in range(others // EACH)]
    mine = [own[start : start + _SESSION] for start in range(0, len(own), _SESSION)]
    step = len(theirs) / max(1, len(mine))
    for place, session in enumerate(mine):
        for user in theirs[round(place * step) : round((place + 1) * step)]:
            yield user, list(islice(said, _SESSION))
        yield USER, list(session)


# --- searching -----------------------------------------------------------------------------------------------------


def _searches(
    report: Report,
    plan: Plan,
    truth: str,
    sites: Sequence[Site],
    own: Sequence[Memo],
    embedder: Embedder,
    recipe: str,
) -> None:
    """Run rounds of searches, the stores alternating, so that noise affects all alike."""
    _say(f"{truth}: searching by recipe {recipe}")
    asked = random.Random(1).sample(own, min(plan.queries, len(own)))
    exact = _Exact(own, asked, embedder) if recipe == MEM0.name else None
    timed = TimedEmbedder(embedder)
    took: dict[int, list[list[float]]] = {site.others: [] for site in sites}
    cpu: dict[int, list[float]] = {site.others: [] for site in sites}
    embedding: list[float] = []
    with ExitStack() as stack:
        memories = {site.others: stack.enter_context(site.open(timed, recipe=recipe)) for site in sites}
        for turn in range(1, plan.rounds + 1):
            for others, memory in memories.items():
                for memo in asked[:_WARM_UP]:
                    memory.search(memo.question, user_id=USER)
                # Spaces change nothing but the key of kept results and embeddings.
                questions = [memo.question + " " * turn for memo in asked]
                ours, spent = zip(*(_timed_search(memory, timed, question) for question in questions), strict=True)
                took[others].append([1e3 * one.wall for one in ours])
                cpu[others] += [1e3 * one.cpu for one in ours]
                embedding += [1e3 * one.wall for one in spent]
        recalls = {others: exact.recall(memory) for others, memory in memories.items()} if exact else {}
    section = f"{truth}: search of {len(own):,} memories of one user, recipe {recipe}, without the embedding"
    for others, rounds in took.items():
        walls = [wall for of_round in rounds for wall in of_round]
        note = f"p95 {percentile(walls, 0.95):.2f} ms; CPU {median(cpu[others]):.2f} ms"
        bar = _PER_RECIPE[recipe] if others == sites[-1].others else None
        report.add(section, f"p50 among {others:,}", median(walls), "ms", bar, note)
    report.add(section, "the embedding, p50", median(embedding), "ms")
    fewest, *more = took
    for others in more:
        ratios = [median(many) / median(few) for many, few in zip(took[others], took[fewest], strict=True)]
        name = f"p50 among {others:,} / p50 among {fewest:,}"
        report.add(section, name, median(ratios), "x", _FLAT, "median of the rounds' ratios")
    for others, recall in recalls.items():
        report.add(section, f"recall@{_K} against exact, among {others:,}", recall, "", Bar(">=", 0.99))


def _timed_search(memory: Memory, timed: TimedEmbedder, question: str) -> tuple[Clocks, Clocks]:
    """Return the time of a search without the embedding, and of the embedding."""
    timed.take()
    started = clocks()
    found = memory.search(question, user_id=USER, limit=_K)["results"]
    ended, spent = clocks(), timed.take()
    assert found, "the user has memories"
    return Clocks(ended.wall - started.wall - spent.wall, ended.cpu - started.cpu - spent.cpu), spent


class _Exact:
    """The exact answers, by NumPy over the user's own vectors."""

    def __init__(self, own: Sequence[Memo], asked: Sequence[Memo], embedder: Embedder) -> None:
        self._ask = asked
        self._place = {memo.text: place for place, memo in enumerate(own)}
        vectors = embed_memos(embedder, own)
        queries = embedder.embed([memo.question for memo in asked], kind="query")
        self._scores: NDArray[np.float32] = queries @ vectors.T

    def recall(self, memory: Memory) -> float:
        """Return the share of the exact ten that were found; a tie with the tenth, up to half precision, counts."""
        good = 0
        wanted = min(_K, len(self._place))
        for memo, scores in zip(self._ask, self._scores, strict=True):
            tenth = np.sort(scores)[-wanted]
            found = memory.search(memo.question, user_id=USER, limit=_K)["results"]
            places = [self._place.get(hit["memory"], -1) for hit in found]
            good += sum(place >= 0 and scores[place] >= tenth - 5e-4 for place in places)
        return good / (wanted * len(self._ask))


# --- adding --------------------------------------------------------------------------------------------------------


def _adds(report: Report, plan: Plan, truth: str, sites: Sequence[Site], embedder: Embedder) -> None:
    """Run adds of two messages each, of one other user after the other, the stores alternating."""
    _say(f"{truth}: adding")
    fresh = memos(seed=17)
    cpu: dict[int, list[float]] = {site.others: [] for site in sites}
    walls: dict[int, list[float]] = {site.others: [] for site in sites}
    chance = random.Random(2)
    with ExitStack() as stack:
        memories = {site.others: stack.enter_context(site.open(embedder)) for site in sites}
        for _ in range(plan.rounds):
            for others, memory in memories.items():
                users = [f"other {chance.randrange(others // EACH)}" for _ in range(_WARM_UP + plan.calls)]
                _timed_adds(memory, users[:_WARM_UP], fresh)
                before = time.process_time()
                walls[others] += _timed_adds(memory, users[_WARM_UP:], fresh)
                cpu[others].append(1e3 * (time.process_time() - before) / plan.calls)
    section = f"{truth}: add of 2 facts, no model, to one of the others, the embedding included"
    for others in walls:
        note = f"p95 {percentile(walls[others], 0.95):.2f} ms; CPU {median(cpu[others]):.2f} ms"
        report.add(section, f"p50 among {others:,}", median(walls[others]), "ms", note=note)
    fewest, *more = cpu
    for others in more:
        ratio = median([many / few for many, few in zip(cpu[others], cpu[fewest], strict=True)])
        report.add(section, f"CPU among {others:,} / CPU among {fewest:,}", ratio, "x", note="median of the rounds'")


def _timed_adds(memory: Memory, users: Sequence[str], fresh: Iterator[Memo]) -> list[float]:
    """Return milliseconds of an add to each of `users`."""
    took = []
    for user in users:
        said, answered = take(fresh, 2)
        messages = [{"role": "user", "content": said.text}, {"role": "assistant", "content": answered.text}]
        started = time.perf_counter()
        memory.add(messages, user_id=user)
        took.append(1e3 * (time.perf_counter() - started))
    return took


# --- opening -------------------------------------------------------------------------------------------------------


def _opening(report: Report, plan: Plan, truth: str, site: Site, own: Sequence[Memo]) -> None:
    _say(f"{truth}: opening {site.others:,}")
    section = f"{truth}: a fresh process"
    barred = site.others == _LARGEST
    folder = site.config["path"]
    runs = [
        in_fresh_process("reopen", folder=folder, user=USER, question=own[run % len(own)].question)
        for run in range(plan.processes)
    ]
    opened = median([run["open"] + run["search"] for run in runs])
    note = f"{median([run['open'] for run in runs]):.3f} s of it to open; modules imported already"
    name = f"Memory() to the first result, among {site.others:,}"
    report.add(section, name, opened, "s", Bar("<=", 0.5) if barred else None, note)
    heads = site.others // EACH
    step = max(1, heads // _VISITED)
    users = [f"other {number}" for number in range(0, heads, step)][:_VISITED]
    questions = [memo.question for memo in own[:50]]
    visited = in_fresh_process("search_many", folder=folder, users=users, questions=questions, count=_SEARCHES)
    name = f"peak memory after {_SEARCHES:,} searches of {len(users)} users, among {site.others:,}"
    note = f"{visited['now_mb']:.0f} MB at the end; {1e3 * visited['seconds'] / _SEARCHES:.1f} ms a search"
    report.add(section, name, visited["peak_mb"], "MB", Bar("<=", 500) if barred else None, note)
