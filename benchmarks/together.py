"""Many concurrent searches on one event loop: the gain over sequential ones, and the time the loop is blocked.

Each search is of another user. The store is a SQLite file, which runs in threads, or PostgreSQL, which is awaited.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import psutil

from benchmarks.corpus import Memo, memos
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median, percentile
from mem0_core import AsyncMemory, Memory
from mem0_core.domain.recipes import HYBRID, MEM0
from mem0_core.errors import MissingExtraError
from mem0_core.testing import HashEmbedder
from tests.services.postgres_server import PostgresUnavailable, postgres_url

__all__ = ["measure"]

AT_ONCE = 64
_EACH = 100
"""Memories of each user."""
_SCHEMA = "mem0_bench_together"
_TICK = 1e-3  # seconds between two looks at the loop


def measure(plan: Plan) -> Report:
    report = Report("together")
    report.details["memories"] = f"invented sentences, {_EACH} of each of {AT_ONCE} users"
    with tempfile.TemporaryDirectory(prefix="mem0-together-") as folder:
        _measure(report, plan, "SQLite", {"path": folder})
    with tempfile.TemporaryDirectory(prefix="mem0-together-") as folder, _postgres(report) as store:
        if store is not None:
            _measure(report, plan, "PostgreSQL", {"path": folder, "store": store})
    return report


@contextmanager
def _postgres(report: Report) -> Iterator[Mapping[str, Any] | None]:
    """Return the configuration of an empty store, or None without a server."""
    try:
        with postgres_url() as url:
            from mem0_core.stores.postgres.store import PostgresStore

            store = PostgresStore(url, schema=_SCHEMA)
            store.reset()
            store.close()
            yield {"provider": "postgres", "config": {"url": url, "schema": _SCHEMA}}
    except (PostgresUnavailable, MissingExtraError) as error:
        report.skip("PostgreSQL", str(error))
        yield None


def _measure(report: Report, plan: Plan, truth: str, config: Mapping[str, Any]) -> None:
    said = memos(seed=5)
    told = {f"user {number}": list(islice(said, _EACH)) for number in range(AT_ONCE)}
    with Memory({**config, "durability": "process"}, embedder=HashEmbedder()) as memory:
        for user, theirs in told.items():
            memory.add_many([memo.text for memo in theirs], user_id=user, chunk=_EACH)
    for recipe in (HYBRID.name, MEM0.name):
        asyncio.run(_searched(report, plan, truth, {**config, "recipe": recipe}, told))


async def _searched(
    report: Report, plan: Plan, truth: str, config: Mapping[str, Any], told: Mapping[str, Sequence[Memo]]
) -> None:
    one_by_one, at_once, busy, lags = list[float](), list[float](), list[float](), list[float]()
    async with AsyncMemory({**config, "durability": "process"}, embedder=HashEmbedder()) as memory:
        for turn in range(plan.rounds + 1):  # the first is not counted: it loads indexes and opens connections
            asked = [(user, theirs[turn % _EACH].question) for user, theirs in told.items()]
            started, worked = time.perf_counter(), _worked()
            for user, question in asked:
                await memory.search(question, user_id=user)
            between, worked = time.perf_counter(), _worked() - worked
            held: list[float] = []
            ticker = asyncio.create_task(_tick(held))
            await asyncio.gather(*(memory.search(question, user_id=user) for user, question in asked))
            ended = time.perf_counter()
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
            if turn:
                one_by_one.append(between - started)
                at_once.append(ended - between)
                busy.append(worked)
                lags += held or [ended - between]  # all of it was shorter than a tick
    section = f"{truth}: {AT_ONCE} searches on one event loop, recipe {config['recipe']}"
    note = f"{AT_ONCE / median(one_by_one):.0f}/s one after the other, {AT_ONCE / median(at_once):.0f}/s at once"
    ratios = [alone / together for alone, together in zip(one_by_one, at_once, strict=True)]
    bar = Bar(">=", 3) if truth == "PostgreSQL" else None
    report.add(section, "throughput at once / one after the other", median(ratios), "x", bar, note)
    cores = os.cpu_count() or 1
    bound = cores * sum(one_by_one) / max(0.01, sum(busy))
    report.add(section, f"the same, were all {cores} processors busy", bound, "x", note="the most this machine allows")
    worst = f"median {1e3 * median(lags):.1f} ms, longest {1e3 * max(lags):.1f} ms"
    report.add(section, "the loop held up, p99", 1e3 * percentile(lags, 0.99), "ms", Bar("<=", 5), worst)


def _worked() -> float:
    """Return CPU seconds of all processors, in hundredths, by all processes including the server."""
    times = psutil.cpu_times()
    return float(times.user + times.system)


async def _tick(held: list[float]) -> None:
    """Measure the delay of the loop, tick after tick."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(_TICK)
        held.append(time.perf_counter() - started - _TICK)
