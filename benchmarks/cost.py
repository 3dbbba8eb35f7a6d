"""The cost of `add` and `search` as a store grows, with a cheap embedder and the real one.

Searches that are compared with an exact scan use mem0's recipe, which orders by vectors. `latency` measures the default
recipe, which uses every signal.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.adding import Block, Durability, Site, add_block
from benchmarks.corpus import USERS, Memo, embed_memos, fill, memos, take, user_name, user_of
from benchmarks.fresh import import_seconds, in_fresh_process
from benchmarks.latency import report_latency
from benchmarks.naive import FlatStore
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, mean, median, percentile
from benchmarks.searching import Oracle, Searches, flat_searches, search_store
from benchmarks.timed import RenamedEmbedder
from mem0_core import Memory
from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError
from mem0_core.interfaces import Embedder
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector.faiss import FaissIndex
from mem0_core.testing import HashEmbedder

__all__ = ["measure", "real_embedder"]

LARGE = 100_000  # the size that the bars refer to
_NOTE = "2 facts a call"
_BASELINE_ADDS = 5
_REOPEN = Bar("<=", 0.3)
_PEAK = Bar("<=", 400)


def measure(plan: Plan) -> Report:
    report = Report("cost")
    report.details["memories"] = "invented sentences of 10 themes; every user has 3 people and 4 places of their own"
    _imports(report, plan)
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as name:
        work = Path(name)
        _many_users(report, plan, work / "many-users")
        _one_user(report, plan, work / "one-user")
        report_latency(report, plan, work)
    return report


def real_embedder(provider: str = "onnx") -> Embedder | None:
    """Return the default embedder, or None if its weights or libraries are missing."""
    embedder: Embedder = build_component("embedder", provider)
    try:
        embedder.embed(["warm up"])
    except (ConfigError, MissingExtraError):
        return None
    return embedder


def _say(what: str) -> None:
    print(f"cost: {what}", file=sys.stderr, flush=True)


# --- import ------------------------------------------------------------------------------------------------------


def _imports(report: Report, plan: Plan) -> None:
    _say("imports")
    section = "import, each in a fresh process"
    seconds = {name: [] for name in ("mem0_core", "pydantic", "numpy", "faiss")}  # type: dict[str, list[float]]
    brought: set[str] = set()
    for _ in range(plan.processes):
        for name, found in seconds.items():
            took, libraries = import_seconds(name)
            found.append(took)
            brought |= libraries if name == "mem0_core" else set()
    report.add(section, "import mem0_core", median(seconds["mem0_core"]), "s", Bar("<=", 0.3))
    for name in ("pydantic", "numpy", "faiss"):
        note = "part of mem0_core's" if name in brought else "not imported by mem0_core"
        report.add(section, f"import {name}", median(seconds[name]), "s", note=note)
    report.details["imports_s"] = seconds


# --- many users --------------------------------------------------------------------------------------------------


def _many_users(report: Report, plan: Plan, work: Path) -> None:
    embedder = HashEmbedder()
    given = take(memos(), plan.sizes[-1])
    vectors = embed_memos(embedder, given)
    stores = _filled(report, work, given, vectors, embedder, plan.sizes)
    _adds(report, plan, work, stores, embedder, "process")
    _adds(report, plan, work, stores, embedder, "full")
    _searches(report, plan, stores, given, vectors, embedder)
    _with_real_embedder(report, plan, work, stores, given, vectors, embedder.name)
    _baseline(report, plan, work, given, vectors, embedder)
    _reopening(report, plan, stores[plan.sizes[-1]], given)


def _filled(
    report: Report,
    work: Path,
    given: Sequence[Memo],
    vectors: NDArray[np.float32],
    embedder: Embedder,
    sizes: Sequence[int],
) -> dict[int, Path]:
    """Build a store of each size, each grown from the one before."""
    stores: dict[int, Path] = {}
    previous: tuple[int, Path] | None = None
    for size in sizes:
        _say(f"filling {size:,} with {embedder.name}")
        folder = work / f"store-{size}"
        if previous is None:
            folder.mkdir(parents=True)
        else:
            shutil.copytree(previous[1], folder)
        started = time.perf_counter()
        start = previous[0] if previous else 0
        fill(folder, given[:size], vectors, embedder, start=start)
        seconds = time.perf_counter() - started
        report.details[f"fill {embedder.name} {start:,} to {size:,}, s"] = round(seconds, 1)
        previous, stores[size] = (size, folder), folder
    return stores


def _adds(
    report: Report, plan: Plan, work: Path, stores: Mapping[int, Path], embedder: Embedder, durability: Durability
) -> None:
    rounds = plan.full_rounds if durability == "full" else plan.rounds
    blocks, after = _rounds(work, stores, embedder, durability, rounds, plan.calls)
    section = f"add, no model, hash embedder, 2 facts, durability={durability!r}"
    for size, of_size in blocks.items():
        bar = Bar("<=", 1.5) if size in (10_000, LARGE) else None
        note = f"p90 of wall {percentile(_walls(of_size), 0.9):.2f} ms, p50 {median(_walls(of_size)):.2f} ms"
        report.add(section, f"CPU per call at {size:,}", _cpu(of_size), "ms", bar, note)
    if len(blocks) > 1 and 1_000 in blocks:
        largest = max(blocks)
        ratio = median([b.cpu_ms / a.cpu_ms for a, b in zip(blocks[1_000], blocks[largest], strict=True)])
        bar = Bar("<=", 1.3) if largest == LARGE else None
        report.add(section, f"CPU at {largest:,} / CPU at 1,000", ratio, "x", bar, "median of the rounds' ratios")
    if durability == "process":
        for size, took in after.items():
            report.add(section, f"search right after an add, {size:,}, p50", median(took), "ms")
    report.details[f"add {durability} CPU ms"] = {size: [b.cpu_ms for b in found] for size, found in blocks.items()}


def _rounds(
    work: Path,
    stores: Mapping[int, Path],
    embedder: Embedder,
    durability: Durability,
    rounds: int,
    calls: int,
) -> tuple[dict[int, list[Block]], dict[int, list[float]]]:
    """Run blocks of adds at each size, the sizes alternating."""
    fresh = memos(seed=11)
    sites = {size: Site(folder, size, work) for size, folder in stores.items()}
    blocks: dict[int, list[Block]] = {size: [] for size in sites}
    after: dict[int, list[float]] = {size: [] for size in sites}
    for turn, (size, site) in itertools.product(range(rounds), sites.items()):
        _say(f"adding to {size:,}, {embedder.name}, durability {durability}, round {turn + 1}")
        block, searches = add_block(site, embedder, durability, fresh, calls)
        blocks[size].append(block)
        after[size] += searches
    for site in sites.values():
        site.remove()
    return blocks, after


def _cpu(blocks: Sequence[Block]) -> float:
    return median([block.cpu_ms for block in blocks])


def _walls(blocks: Sequence[Block]) -> list[float]:
    return [wall for block in blocks for wall in block.walls_ms]


def _searches(
    report: Report,
    plan: Plan,
    stores: Mapping[int, Path],
    given: Sequence[Memo],
    vectors: NDArray[np.float32],
    embedder: Embedder,
) -> None:
    for size, folder in stores.items():
        _say(f"searching {size:,}, {embedder.name}")
        oracle = Oracle(given[:size], vectors[:size])
        plain = search_store(folder, given[:size], oracle, embedder, plan.queries)
        _search_rows(
            report, f"search of one of {USERS} users, recipe mem0, {embedder.name}, without the embedding", size, plain
        )
        if size:
            themed = search_store(folder, given[:size], oracle, embedder, plan.queries, by_theme=True)
            section = f"search of one user with a metadata filter, recipe mem0, {embedder.name}"
            _search_rows(report, section, size, themed, barred=False)


def _search_rows(report: Report, section: str, size: int, searches: Searches, *, barred: bool = True) -> None:
    barred = barred and size == LARGE
    p95 = percentile(searches.took, 0.95)
    report.add(section, f"p50 at {size:,}", median(searches.took), "ms", Bar("<=", 0.5) if barred else None)
    report.add(section, f"p95 at {size:,}", p95, "ms", note=f"mean CPU {mean(searches.cpu):.2f} ms")
    if searches.recall is not None:
        bar = Bar(">=", 0.99) if size == LARGE else None
        report.add(section, f"recall@10 against exact at {size:,}", searches.recall, "", bar)
        if barred:
            report.add(section, f"a user's first, p50 at {size:,}", median(searches.first), "ms")


def _with_real_embedder(
    report: Report,
    plan: Plan,
    work: Path,
    stores: Mapping[int, Path],
    given: Sequence[Memo],
    vectors: NDArray[np.float32],
    name: str,
) -> None:
    """Measure on the same stores with the real embedder: cost does not depend on the meaning of stored vectors."""
    section = "add, and search by recipe mem0, with mem0-minilm (onnxruntime), durability='full'"
    real = real_embedder()
    if real is None:
        report.skip(section, "the weights or libraries of OnnxEmbedder are not installed")
        return
    embedder = RenamedEmbedder(real, name)
    blocks, _ = _rounds(work, stores, embedder, "full", rounds=2, calls=max(20, plan.calls // 4))
    for size, of_size in blocks.items():
        note = f"CPU {_cpu(of_size):.1f} ms, embedding included"
        report.add(section, f"add of 2 facts at {size:,}, wall p50", median(_walls(of_size)), "ms", note=note)
    for size, folder in stores.items():
        _say(f"searching {size:,}, {real.name}")
        found = search_store(folder, given[:size], Oracle(given[:size], vectors[:size]), embedder, plan.queries // 5)
        whole = [ours + theirs for ours, theirs in zip(found.took, found.embedding, strict=True)]
        note = f"{median(found.took):.2f} ms of it not the embedding"
        report.add(section, f"search at {size:,}, p50", median(whole), "ms", note=note)


# --- the baseline ------------------------------------------------------------------------------------------------


def _baseline(
    report: Report, plan: Plan, work: Path, given: Sequence[Memo], vectors: NDArray[np.float32], embedder: Embedder
) -> None:
    section = "baseline: one flat FAISS index over all users, saved at each add, filtered after the search"
    fresh = memos(seed=13)
    for size in plan.sizes[1:]:
        _say(f"the baseline at {size:,}")
        store = FlatStore(work, embedder.dims)
        users = [user_name(user_of(place)) for place in range(size)]
        store.insert([memo.text for memo in given[:size]], vectors[:size], users, save=False)
        cpu = [_baseline_add(store, take(fresh, 2), embedder) for _ in range(_BASELINE_ADDS)]
        report.add(section, f"add, CPU per call at {size:,}", median(cpu), "ms", note=_NOTE)
        oracle = Oracle(given[:size], vectors[:size])
        searches = flat_searches(store, given[:size], oracle, embedder, min(200, plan.queries))
        report.add(section, f"search, p50 at {size:,}", median(searches.took), "ms")
        report.add(section, f"search, recall@10 against exact at {size:,}", searches.recall)


def _baseline_add(store: FlatStore, pair: Sequence[Memo], embedder: Embedder) -> float:
    texts = [memo.text for memo in pair]
    before = time.process_time()
    store.insert(texts, embedder.embed(texts), ["another user", "another user"])
    return 1e3 * (time.process_time() - before)


# --- opening -----------------------------------------------------------------------------------------------------


def _reopening(report: Report, plan: Plan, folder: Path, given: Sequence[Memo]) -> None:
    size = len(given)
    _say(f"reopening {size:,}")
    section = f"a fresh process on {size:,} memories x 384 dims of {USERS} users"
    barred = size == LARGE
    runs = [
        in_fresh_process("reopen", folder=str(folder), user=user_name(run), question=given[run * 10].question)
        for run in range(plan.processes)
    ]
    opened = median([run["open"] + run["search"] for run in runs])
    note = "modules imported already"
    report.add(section, "Memory() to the first result", opened, "s", _REOPEN if barred else None, note)
    report.add(section, "the imports before that", median([run["imports"] for run in runs]), "s", note="faiss, numpy")
    users = list(dict.fromkeys(user_name(user_of(place)) for place in range(size)))
    visits = [
        in_fresh_process("visit_all", folder=str(folder), users=users, question=given[0].question) for _ in range(3)
    ]
    peak = median([visit["peak_mb"] for visit in visits])
    report.add(section, "peak memory, all users searched", peak, "MB", _PEAK if barred else None)
    report.add(section, "peak memory, one user searched", median([run["peak_mb"] for run in runs]), "MB")
    report.add(section, "searching all users once", median([visit["seconds"] for visit in visits]), "s")
    database = folder / "memory.db"
    report.add(section, "size of the file", database.stat().st_size / 1e6, "MB")


# --- one large scope ---------------------------------------------------------------------------------------------


def _one_user(report: Report, plan: Plan, folder: Path) -> None:
    _say(f"one user with {plan.big:,}")
    folder.mkdir(parents=True)
    embedder, user = HashEmbedder(), "one user"
    given = take(memos(), plan.big)
    fill(folder, given, embed_memos(embedder, given), embedder, user=user)
    section = f"{plan.big:,} memories of ONE user"
    questions = [memo.question for memo in given[:: max(1, len(given) // 300)]]
    took, tenths = _exact_scan(folder, user, questions)
    report.add(section, "exact scan, p50", median(took), "ms", note="embedding included")
    answers = folder / "answers.json"
    answers.write_text(json.dumps(list(zip(questions, tenths, strict=True))), encoding="utf-8")
    _say("building its graph")
    built = in_fresh_process(
        "build_graph", folder=str(folder), user=user, exact_limit=plan.exact_limit, answers=str(answers)
    )
    report.add(section, "first search, which loads the vectors", built["first"], "s")
    report.add(section, "HNSW graph built after", built["built"], "s", note="searches go on meanwhile, exactly")
    if built["meanwhile"]:
        report.add(section, "search while it is built, p50", 1e3 * median(built["meanwhile"]), "ms")
    report.add(section, "HNSW search, p50", 1e3 * median(built["took"]), "ms", note="embedding included")
    report.add(section, "HNSW search, p95", 1e3 * percentile(built["took"], 0.95), "ms")
    report.add(section, "HNSW recall@10 against exact", built["recall"])
    report.add(section, "peak memory while building", built["peak_mb"], "MB", _PEAK if plan.big == LARGE else None)
    again = [in_fresh_process("reopen", folder=str(folder), user=user, question=questions[0]) for _ in range(3)]
    opened = median([run["open"] + run["search"] for run in again])
    reopen, peak = (_REOPEN, _PEAK) if plan.big == LARGE else (None, None)
    note = "from the snapshot of the graph"
    report.add(section, "reopened: Memory() to the first result", opened, "s", reopen, note)
    report.add(section, "reopened: peak memory", median([run["peak_mb"] for run in again]), "MB", peak)


def _exact_scan(folder: Path, user: str, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """Return milliseconds of each search by exact scan, and the score of its tenth result."""
    store = SQLiteStore(folder / "memory.db")
    index = FaissIndex(store, exact_limit=10**9, cache_bytes=10**9)
    took, tenths = [], []
    with Memory({"path": folder, "recipe": "mem0"}, embedder=HashEmbedder(), store=store, index=index) as memory:
        memory.search(questions[0], user_id=user)
        for question in questions:
            started = time.perf_counter()
            results = memory.search(question, user_id=user)["results"]
            took.append(1e3 * (time.perf_counter() - started))
            tenths.append(results[-1]["score"])
    return took, tenths
