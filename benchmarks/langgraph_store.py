"""`Mem0Store` compared with LangGraph's own `SqliteStore`, and the overhead of the middleware in an agent's turn."""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.store.base import BaseStore, PutOp, SearchItem
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from benchmarks.cost import real_embedder
from benchmarks.pace import Pace, Part, quiet
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median
from benchmarks.timed import TimedEmbedder
from mem0_core import Memory
from mem0_core.interfaces import Embedder
from mem0_core.testing import HashEmbedder
from mem0_langchain import MemoryMiddleware
from mem0_langchain.langgraph import Mem0Store

__all__ = ["measure"]

SPACES = 100  # namespaces, of a hundred users
ONE = ("one",)  # the namespace with as many items as all the others together
QUERY = "tea and city"
THEIRS = "SqliteStore"
BARE, SEARCHING, REMEMBERING = "bare", "searching", "remembering"
_ROUND = 50  # consecutive calls of one store


def measure(plan: Plan) -> Report:
    report = Report("langgraph_store")
    report.details["SqliteStore, WAL"] = "on a connection of our own, in WAL mode with synchronous=NORMAL"
    report.details["SqliteStore"] = (
        "has no vectors here (they need a loadable extension of SQLite), so its puts embed nothing, and its searches"
        " list a namespace where ours rank it by a query"
    )
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
        _stores(report, plan, Path(folder))
        _turns(report, plan, Path(folder))
    return report


def _say(what: str) -> None:
    print(f"langgraph_store: {what}", file=sys.stderr, flush=True)


# --- stores ----------------------------------------------------------------------------------------------------------


def _stores(report: Report, plan: Plan, folder: Path) -> None:
    """Run puts and searches in all stores alternately, so that noise affects all alike."""
    with ExitStack() as opened:
        stores = _open(opened, folder)
        times = {name: _times(name, store, plan) for name, store in stores.items()}
        for step in ("put", "fill"):
            _say(step)
            _by_turns(times, step)
        for step in ("get", "search", "prefix", "one", "listed", "filter"):
            _say(step)
            _by_turns(times, step)
    sections = {
        "put": f"put, one item a call, until there are {plan.items:,} in {SPACES} namespaces",
        "search": f"search of a namespace of {plan.items // SPACES:,}",
        "prefix": f"search below a prefix, {plan.items:,} items",
        "one": f"search of a namespace of {plan.items:,}",
        "listed": f"the same with no query in either ({plan.items:,})",
        "filter": f"filter by a number, namespace of {plan.items // SPACES:,}",
        "get": "get",
    }
    for step, section in sections.items():
        medians = {name: 1000 * median(taken[step]) for name, taken in ((n, t.taken) for n, t in times.items())}
        for name, milliseconds in medians.items():
            bar = None
            if step in ("put", "one", "prefix") and name.startswith("Mem0Store"):
                bar = Bar("<=", medians[THEIRS])
            report.add(section, name, milliseconds, "ms", bar)


def _open(opened: ExitStack, folder: Path) -> dict[str, BaseStore]:
    import sqlite3

    stores: dict[str, BaseStore] = {}
    theirs = opened.enter_context(SqliteStore.from_conn_string(str(folder / "theirs.db")))
    stores[THEIRS] = theirs
    connection = sqlite3.connect(folder / "wal.db", check_same_thread=False, isolation_level=None)
    opened.callback(connection.close)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    stores[f"{THEIRS}, WAL"] = lazier = SqliteStore(connection)
    for store in (theirs, lazier):
        store.setup()
    for durability in ("full", "process"):
        config = {"path": str(folder / durability), "durability": durability}
        memory = opened.enter_context(Memory(config, embedder=HashEmbedder()))
        stores[f"Mem0Store, {durability}"] = Mem0Store(memory, fields=["text"])
    stores["InMemoryStore"] = InMemoryStore()
    return stores


class _Times:
    """The steps of one store, each a generator of timed calls."""

    def __init__(self, name: str, store: BaseStore, plan: Plan) -> None:
        self.store, self.plan = store, plan
        self.query: dict[str, Any] = {"query": QUERY} if name.startswith("Mem0") else {}
        self.taken: dict[str, list[float]] = {}

    def calls(self, step: str) -> Iterator[Callable[[], object]]:
        store, items = self.store, self.plan.items
        spaces = itertools.cycle([("users", f"user {number}") for number in range(SPACES)])
        if step == "put":
            for number, space in zip(range(items), spaces, strict=False):
                yield lambda space=space, number=number: store.put(space, f"key {number}", _value(number))  # type: ignore[misc]
        elif step == "fill":
            for start in range(0, items, 1000):
                ops = [PutOp(ONE, f"key {number}", _value(number)) for number in range(start, min(start + 1000, items))]
                yield lambda ops=ops: store.batch(ops)  # type: ignore[misc]
        else:
            for number, space in zip(range(self.plan.queries // 5), spaces, strict=False):
                yield self._reading(step, space, number)

    def _reading(self, step: str, space: tuple[str, ...], number: int) -> Callable[[], object]:
        store = self.store
        if step == "get":
            return lambda: store.get(space, f"key {number}")
        if step == "filter":
            return lambda: store.search(space, filter={"number": number})
        if step == "listed":
            return lambda: store.search(ONE)
        among = {"search": space, "prefix": ("users",), "one": ONE}[step]
        return lambda: store.search(among, **self.query)


def _times(name: str, store: BaseStore, plan: Plan) -> _Times:
    return _Times(name, store, plan)


def _by_turns(stores: dict[str, _Times], step: str) -> None:
    waiting = {name: iter(times.calls(step)) for name, times in stores.items()}
    for times in stores.values():
        times.taken[step] = []
    while waiting:
        for name, calls in list(waiting.items()):
            some = list(itertools.islice(calls, _ROUND))
            if not some:
                waiting.pop(name)
            for call in some:
                started = time.perf_counter()
                call()
                stores[name].taken[step].append(time.perf_counter() - started)


def _value(number: int) -> dict[str, Any]:
    # A thousand words or so: to hash a new one takes the embedder as long as ten texts of known ones.
    user, tea, city = number % 1000, number // 1000, number % 97
    return {"text": f"user {user} drinks tea number {tea} in city {city}", "number": number}


# --- turns -----------------------------------------------------------------------------------------------------------


def _turns(report: Report, plan: Plan, folder: Path) -> None:
    """Run turns of an agent with a scripted model, with and without the middleware, alternately."""
    _say("turns of an agent")
    minilm, pace = real_embedder(), Pace(plan.patience)
    ways: list[tuple[str, Embedder | None, str]] = [
        *(("hash", HashEmbedder(), "process"), ("hash", HashEmbedder(), "full"), ("MiniLM", minilm, "process")),
    ]
    for name, embedder, durability in ways:
        section = f'a turn of an agent, {plan.agent_memories:,} memories, {name} embedder, durability="{durability}"'
        if embedder is None:
            report.skip(section, "no local weights")
            continue
        timed = TimedEmbedder(embedder)
        path = folder / f"{name}-{durability}"
        config = {"path": str(path), "durability": durability, "background": {"workers": 1}}
        with Memory(config, embedder=timed) as memory:
            memory.add_many([_value(number)["text"] for number in range(plan.agent_memories)], user_id="u")
            memory.search(QUERY, user_id="u")
            middleware = MemoryMiddleware(memory, k=10)
            agents = {
                BARE: _agent([]),
                SEARCHING: _agent([_StoreSearch(_fill_memory_store(timed, plan.agent_memories))]),
                REMEMBERING: _agent([middleware]),
            }
            for way, take in (("invoke", _measure_turns), ("ainvoke", _ameasure_turns)):
                pace.begin()
                _turn_rows(report, section, way, pace, take(agents, middleware, timed, pace, plan.turns_of_agent))


def _turn_rows(report: Report, section: str, way: str, pace: Pace, turns: Sequence[Part[_Turn]]) -> None:
    def row(name: str, figure: Callable[[list[_Turn]], float], bar: Bar | None = None, unit: str = "ms") -> None:
        value, note = quiet(pace, turns, lambda some: (1000 if unit == "ms" else 1) * figure(some), unit)
        report.add(section, f"{way}, {name}", value, unit, bar, note)

    def middle(some: list[_Turn], agent: str, clock: str) -> float:
        return median([getattr(turn[agent], clock) for turn in some])

    def added(some: list[_Turn], agent: str) -> float:
        return middle(some, agent, "own") - middle(some, BARE, "wall")

    row("without", lambda some: middle(some, BARE, "wall"))
    row("a search of InMemoryStore adds, but for the query's embedding", lambda some: added(some, SEARCHING))
    row("added, but for the query's embedding", lambda some: added(some, REMEMBERING), Bar("<=", 3.9))
    row("ratio to a search of InMemoryStore", lambda some: added(some, REMEMBERING) / added(some, SEARCHING), unit="x")
    row("the query's embedding", lambda some: middle(some, REMEMBERING, "embedding"))
    row("CPU added to the calling thread", lambda some: middle(some, REMEMBERING, "cpu") - middle(some, BARE, "cpu"))


class _Spent(NamedTuple):
    """Seconds of a turn: wall time, CPU of the calling thread (without workers), and embedding."""

    wall: float
    cpu: float
    embedding: float

    @property
    def own(self) -> float:
        """Return the time without the embedding."""
        return self.wall - self.embedding


_Turn: TypeAlias = dict[str, _Spent]  # times of the same turn by agent


class _StoreSearch(AgentMiddleware[Any, Any]):
    """The least that an agent with a store does: search it for the question, and put the result into the prompt."""

    def __init__(self, store: InMemoryStore) -> None:
        super().__init__()
        self._store = store

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        found = self._store.search(ONE, query=str(request.messages[-1].text))
        return handler(_show(request, found))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        found = await self._store.asearch(ONE, query=str(request.messages[-1].text))
        return await handler(_show(request, found))


def _show(request: ModelRequest[Any], found: Sequence[SearchItem]) -> ModelRequest[Any]:
    return request.override(system_message=SystemMessage("\n".join(item.value["text"] for item in found)))


def _fill_memory_store(embedder: Embedder, items: int) -> InMemoryStore:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return cast(list[list[float]], embedder.embed(texts).tolist())

    store = InMemoryStore(index={"dims": embedder.dims, "embed": embed, "fields": ["text"]})
    for start in range(0, items, 1000):
        ops = [PutOp(ONE, f"key {number}", _value(number)) for number in range(start, min(start + 1000, items))]
        store.batch(ops)
    return store


def _agent(middleware: list[Any]) -> Any:
    model = GenericFakeChatModel(messages=itertools.cycle([AIMessage("Noted.")]))
    return create_agent(model, middleware=middleware)


# `converse` measures learning; here it would share the processor, so each turn is learned before the next.


def _measure_turns(
    agents: Mapping[str, Any], middleware: MemoryMiddleware, embedder: TimedEmbedder, pace: Pace, turns: int
) -> list[Part[_Turn]]:
    """Measure the turns of each agent alternately, until enough of them ran on a quiet machine."""
    parts: list[Part[_Turn]] = []
    while not _enough(parts, pace, turns):
        before, spent, message = pace.settled(), {}, _build_message("invoke", len(parts))
        for name, agent in agents.items():
            embedder.take()
            wall, cpu = time.perf_counter(), time.thread_time()
            agent.invoke(message, _WHO)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            spent[name] = _Spent(wall, cpu, embedder.take().wall)
        parts.append(Part(spent, max(before, pace.look())))
        middleware.flush(60)
    return parts


def _ameasure_turns(
    agents: Mapping[str, Any], middleware: MemoryMiddleware, embedder: TimedEmbedder, pace: Pace, turns: int
) -> list[Part[_Turn]]:
    """Async version of `_measure_turns`: all turns on one event loop, as in a server."""

    async def all_turns() -> list[Part[_Turn]]:
        parts: list[Part[_Turn]] = []
        while not _enough(parts, pace, turns):
            before, spent, message = pace.settled(), {}, _build_message("ainvoke", len(parts))
            for name, agent in agents.items():
                embedder.take()
                wall, cpu = time.perf_counter(), time.thread_time()
                await agent.ainvoke(message, _WHO)
                wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
                spent[name] = _Spent(wall, cpu, embedder.take().wall)
            parts.append(Part(spent, max(before, pace.look())))
            await middleware.aflush(60)
        return parts

    return asyncio.run(all_turns())


def _enough(parts: Sequence[Part[_Turn]], pace: Pace, turns: int) -> bool:
    return len(parts) >= turns and (len(parts) >= 4 * turns or sum(map(pace.is_quiet, parts)) >= turns)


_WHO: Any = {"configurable": {"user_id": "u"}}


def _build_message(way: str, number: int) -> dict[str, str]:
    """Return a question that was not asked before: the embeddings of questions are kept."""
    return {"messages": f"Which tea, {way} {number}?"}
