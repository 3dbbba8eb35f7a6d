"""Searches and adds beside LangGraph's `SqliteStore`, whose vector search runs in SQLite by the extension sqlite-vec.

Both hold the same memories of a hundred users, with the same vectors, and take turns call by call. The figure is the
median of the ratios of neighboring calls, in CPU time of the process: it counts our background threads, and the load of
the machine moves it little. Query vectors are computed beforehand, so that no ratio is flattered by a slow embedder.

SQLite must load extensions. Where Python's own cannot, the package pysqlite3-binary can.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

from benchmarks.compare import ratio_of
from benchmarks.corpus import USERS, Memo, memos, take, user_name, user_of
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from benchmarks.talks import input_of, reconcile_known
from benchmarks.timed import CachedEmbedder
from mem0_core import Memory
from mem0_core.testing import HashEmbedder, ScriptedChat

__all__ = ["measure"]

THEIRS = "SqliteStore"
_MEMORIES = 10_000
_K = 10
_BATCH = 1_000
_WARM_UP = 20  # calls that are not counted

_Call = Callable[[], object]


def measure(plan: Plan) -> Report:
    """Compare searches by two recipes, and adds of two facts by a scripted model, with those of SqliteStore."""
    report = Report("sqlite_store")
    if (connect := _find_sqlite()) is None:
        report.skip("all", "this Python's sqlite3 loads no extensions; install pysqlite3-binary")
        return report
    given = take(memos(), min(_MEMORIES, plan.sizes[-1]))
    embedder = CachedEmbedder(HashEmbedder())
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder, ExitStack() as opened:
        theirs = _open_theirs(opened, connect, Path(folder) / "theirs.db", embedder)
        config = {"path": str(Path(folder) / "ours"), "durability": "process"}
        bare = {**config, "path": str(Path(folder) / "bare")}
        with Memory(config, embedder=embedder) as ours, Memory(bare, embedder=embedder, graph=False) as without_graph:
            _fill(theirs, (ours, without_graph), given)
            _report_searches(report, plan, theirs, ours, without_graph, embedder, given)
        with Memory(config, embedder=embedder, llm=ScriptedChat(_extract_lines)) as ours:
            _report_adds(report, plan, theirs, ours, embedder)
    return report


def _find_sqlite() -> Callable[..., Any] | None:
    """Return the `connect` of an SQLite that loads extensions; None if there is none."""
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3.connect
    try:
        found: Callable[..., Any] = importlib.import_module("pysqlite3").connect
    except ModuleNotFoundError:
        return None
    return found


def _open_theirs(opened: ExitStack, connect: Callable[..., Any], file: Path, embedder: CachedEmbedder) -> SqliteStore:
    """Open a store in WAL mode, which syncs as seldom as ours with ``durability="process"``."""
    connection = connect(str(file), check_same_thread=False, isolation_level=None)
    opened.callback(connection.close)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return embedder.embed(texts).tolist()  # type: ignore[no-any-return]

    store = SqliteStore(connection, index={"dims": embedder.dims, "embed": embed, "fields": ["text"]})
    store.setup()
    return store


def _fill(theirs: SqliteStore, ours: Sequence[Memory], given: Sequence[Memo]) -> None:
    _say(f"filling each with {len(given):,} memories")
    texts: dict[str, list[str]] = {}
    for place, memo in enumerate(given):
        texts.setdefault(user_name(user_of(place)), []).append(memo.text)
    for user, some in texts.items():
        for memory in ours:
            memory.add_many(some, user_id=user)
        for start in range(0, len(some), _BATCH):
            chunk = enumerate(some[start : start + _BATCH], start)
            theirs.batch([PutOp(("users", user), f"memory {place}", {"text": text}) for place, text in chunk])


def _report_searches(
    report: Report,
    plan: Plan,
    theirs: SqliteStore,
    ours: Memory,
    without_graph: Memory,
    embedder: CachedEmbedder,
    given: Sequence[Memo],
) -> None:
    _say("searches")
    questions: dict[str, list[str]] = {}
    for place, memo in enumerate(given):
        questions.setdefault(user_name(user_of(place)), []).append(memo.question)
    next_question = {user: itertools.cycle(dict.fromkeys(some)) for user, some in questions.items()}
    users = list(questions)
    for text, user in itertools.product(("a dog", "tea", "a car"), users):  # the second search of a user reads ahead
        ours.search(text, user_id=user, limit=_K)
        without_graph.search(text, user_id=user, limit=_K)
    ways: dict[str, Callable[..., object]] = {
        "default": without_graph.search,
        "default, with relations read by rules": ours.search,
        "mem0": partial(without_graph.search, recipe="mem0"),
    }

    def rounds() -> Iterator[Mapping[str, _Call]]:
        for user in itertools.islice(itertools.cycle(users), plan.queries + _WARM_UP):
            asked = {name: next(next_question[user]) for name in (THEIRS, *ways)}  # a query is parsed only once
            embedder.embed(list(asked.values()))
            embedder.embed(list(asked.values()), kind="query")
            yield {
                THEIRS: partial(theirs.search, ("users", user), query=asked[THEIRS], limit=_K),
                **{name: partial(way, asked[name], user_id=user, limit=_K) for name, way in ways.items()},
            }

    section = f"search of one of {len(users)} users among {len(given):,} memories / the same in {THEIRS}"
    bars = {"default": Bar("<=", 1.0), "default, with relations read by rules": None, "mem0": Bar("<=", 0.5)}
    _report_ratios(report, plan, section, bars, rounds())


def _report_adds(report: Report, plan: Plan, theirs: SqliteStore, ours: Memory, embedder: CachedEmbedder) -> None:
    _say("adds")
    fresh = memos(seed=11)

    def rounds() -> Iterator[Mapping[str, _Call]]:
        for number in range(plan.queries // 2 + _WARM_UP):
            user, (first, second) = user_name(number % USERS), take(fresh, 2)
            texts = [f"{memo.text} ({number})" for memo in (first, second)]
            embedder.embed(texts)
            messages = [
                {"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)
            ]
            ops = [PutOp(("users", user), f"{text}", {"text": text}) for text in texts]
            yield {
                THEIRS: partial(theirs.batch, ops),
                "scripted model": partial(ours.add, messages, user_id=user),
                "infer=False": partial(ours.add, messages, user_id=f"{user}, verbatim", infer=False),
            }

    section = f"add of two facts, durability process / put of two in {THEIRS}, WAL"
    _report_ratios(report, plan, section, {"scripted model": Bar("<=", 1.5), "infer=False": None}, rounds())


def _report_ratios(
    report: Report,
    plan: Plan,
    section: str,
    bars: Mapping[str, Bar | None],
    rounds: Iterator[Mapping[str, _Call]],
) -> None:
    took: list[dict[str, float]] = []
    for number, calls in enumerate(rounds):
        first = number % len(calls)  # so that none always follows the same other one
        order = [*calls.items()][first:] + [*calls.items()][:first]
        took.append({name: _time(call) for name, call in order})
    took = took[_WARM_UP:]
    for name, bar in bars.items():
        ratio = ratio_of([(times[THEIRS], times[name]) for times in took], plan.resamples)
        note = f"{ratio.low:.2f} to {ratio.high:.2f}; {ratio.after:.2f} and {ratio.before:.2f} ms of CPU"
        report.add(section, name, ratio.middle, "x", bar, note)


def _time(call: _Call) -> float:
    """Return the milliseconds of CPU of a call."""
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def _extract_lines(task: str, messages: Sequence[Mapping[str, Any]]) -> Any:
    """Reply as a model that takes each message for a fact."""
    content = messages[-1]["content"]
    if task == "facts":
        lines = [line.partition(": ")[2] for line in input_of(content).splitlines() if ": " in line]
        return {"facts": [{"fact": line, "messages": [number]} for number, line in enumerate(lines)]}
    return reconcile_known(content) if task == "operations" else {"entities": [], "relations": []}


def _say(what: str) -> None:
    print(f"sqlite_store: {what}", file=sys.stderr, flush=True)
