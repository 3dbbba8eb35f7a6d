"""The cost of conversations: queued and awaited turns, calls to the model, imports, and LoCoMo replayed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import locomo
from benchmarks.adding import Durability
from benchmarks.corpus import embed_memos, fill, memos, take
from benchmarks.cost import real_embedder
from benchmarks.decisions import ModelCall, Turn
from benchmarks.plan import Plan
from benchmarks.relations import HUB
from benchmarks.replay import part, report_replays
from benchmarks.report import Bar, Report, mean, median, percentile
from benchmarks.talks import SUMMARY_WORDS, TalkChat, messages_of, turns_of_talk
from benchmarks.timed import TimedEmbedder, clocks
from mem0_core import Memory
from mem0_core.interfaces import Embedder
from mem0_core.testing import HashEmbedder

__all__ = ["measure"]

LARGE = 10_000  # memories of the user that the bar refers to
ALL_MESSAGES = 5_000  # of an import
BATCH = 8
_WARM_UP = 20
_FLUSH = 120.0  # seconds
_EDGE = 100
_ESTIMATE = "estimate: characters / 4"


def measure(plan: Plan) -> Report:
    report = Report("converse")
    report.details["turns"] = "an invented sentence of the user that tells a fact and a relation, and a short answer"
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as name:
        work = Path(name)
        store = _fill_store(work / "store", plan.memories)
        for durability in ("process", "full"):
            _adds(report, plan, store, durability)
        _queue(report, plan, store)
        _calls(report, plan, work)
        _with_real_embedder(report, plan, work)
    return report


def _say(what: str) -> None:
    print(f"converse: {what}", file=sys.stderr, flush=True)


# --- adds in the background --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """Measurements of a block of adds: CPU per call of the caller's thread and of the whole process, and wall times.

    Attributes:
        answered: answers that the model gave during the block.
    """

    cpu_ms: float
    process_ms: float
    walls_ms: Sequence[float]
    answered: int


def _fill_store(folder: Path, size: int) -> Path:
    """Build a store with this number of memories of the hub."""
    _say(f"filling {size:,}")
    folder.mkdir(parents=True)
    embedder, given = HashEmbedder(), take(memos(), size)
    fill(folder, given, embed_memos(embedder, given), embedder, user=HUB)
    return folder


def _adds(report: Report, plan: Plan, store: Path, durability: Durability) -> None:
    """Run blocks of the same turns, queued and awaited alternately, each on a copy of the store."""
    rounds = plan.full_rounds if durability == "full" else plan.rounds
    blocks: dict[bool, list[Block]] = {True: [], False: []}
    for turn in range(rounds):
        for background, found in blocks.items():
            _say(f"adding, background={background}, durability {durability}, round {turn + 1}")
            found.append(_block(store, durability, plan.calls, background, seed=turn))
    section = f"add of 2 messages, scripted model, {plan.memories:,} memories of the user, durability={durability!r}"
    _add_rows(report, section, "background=True", blocks[True], Bar("<=", 1) if plan.memories == LARGE else None)
    answered = sum(block.answered for block in blocks[True])
    report.add(section, "answers of the model before they returned", answered, "", Bar("==", 0), "it is held up")
    _add_rows(report, section, "waited for", blocks[False], None)
    ratio = median([there.cpu_ms / here.cpu_ms for here, there in zip(blocks[True], blocks[False], strict=True)])
    report.add(section, "CPU waited for / CPU background=True", ratio, "x", note="median of the rounds' ratios")
    report.details[f"adds {durability}, CPU ms"] = {
        "background" if background else "waited for": [block.cpu_ms for block in found]
        for background, found in blocks.items()
    }


def _add_rows(report: Report, section: str, name: str, blocks: Sequence[Block], bar: Bar | None) -> None:
    walls = [wall for block in blocks for wall in block.walls_ms]
    whole = median([block.process_ms for block in blocks])
    note = f"the whole process {whole:.2f} ms, its workers included"
    report.add(section, f"CPU per call, {name}", median([block.cpu_ms for block in blocks]), "ms", bar, note)
    note = f"p90 {percentile(walls, 0.9):.2f} ms, p99 {percentile(walls, 0.99):.2f} ms"
    report.add(section, f"wall p50, {name}", median(walls), "ms", note=note)


def _block(store: Path, durability: Durability, calls: int, background: bool, seed: int) -> Block:
    turns = list(islice(turns_of_talk(seed + 40), calls + _WARM_UP))
    with _open_memory(store, durability, turns) as (memory, chat):
        _add(memory, turns[:_WARM_UP], False)
        if background:
            _hold_up(memory, chat)
        before, thread, process = len(chat.calls), time.thread_time(), time.process_time()
        walls = _add(memory, turns[_WARM_UP:], background)
        thread, process = time.thread_time() - thread, time.process_time() - process
        answered = len(chat.calls) - before
    return Block(1e3 * thread / calls, 1e3 * process / calls, walls, answered)


@contextmanager
def _open_memory(store: Path, durability: Durability, turns: Sequence[Turn]) -> Iterator[tuple[Memory, TalkChat]]:
    """Open a memory on a copy of the store, without summaries; jobs queued at the end stay queued."""
    chat, embedder = TalkChat(turns), HashEmbedder()
    embedder.embed([text for turn in turns for text in turn.texts])  # hashing a new word is slow
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as name:
        folder = shutil.copytree(store, Path(name) / "copy")
        config = {"path": folder, "durability": durability, "summary_every": 0, "background": {"drain": 0}}
        with Memory(config, embedder=embedder, llm=chat) as memory:
            yield memory, chat
            chat.open.set()


def _hold_up(memory: Memory, chat: TalkChat) -> None:
    """Let a worker wait for an answer about the user's first turn, so that all later jobs have to wait as well."""
    chat.asked.clear()
    chat.open.clear()
    memory.add("Hello.", user_id=HUB, background=True)
    assert chat.asked.wait(_FLUSH), "no worker took up what was put off"


def _add(memory: Memory, turns: Sequence[Turn], background: bool) -> list[float]:
    """Return the wall milliseconds of each add."""
    walls = []
    for turn in turns:
        messages = messages_of(turn)
        started = time.perf_counter()
        result = memory.add(messages, user_id=HUB, background=background)
        walls.append(1e3 * (time.perf_counter() - started))
        assert ("job_id" in result, len(result["results"])) == (background, 0 if background else 1), result
    return walls


def _queue(report: Report, plan: Plan, store: Path) -> None:
    """Measure the effect of a long queue on the next add and on searches, which also look at unprocessed messages."""
    _say(f"{plan.waiting:,} turns in the queue")
    edge = min(_EDGE, plan.waiting // 2)
    turns = list(islice(turns_of_talk(60), plan.waiting))
    with _open_memory(store, "process", turns) as (memory, chat):
        none = _search_walls(memory, turns[:edge])
        _hold_up(memory, chat)
        first = _edge(memory, turns[:edge])
        few = _search_walls(memory, turns[:edge])
        _add(memory, turns[edge:-edge], True)
        last = _edge(memory, turns[-edge:])
        many = _search_walls(memory, turns[:edge])
    section = f"while turns of the user wait, durability='process', {plan.memories:,} memories of the user"
    for name, block in ((f"the first {edge}", first), (f"the last {edge} of {plan.waiting:,}", last)):
        _add_rows(report, section, f"background=True, {name}", [block], None)
    for count, walls in ((0, none), (edge, few), (plan.waiting, many)):
        report.add(section, f"search while {count:,} wait, p50 of wall", median(walls), "ms")


def _edge(memory: Memory, turns: Sequence[Turn]) -> Block:
    thread, process = time.thread_time(), time.process_time()
    walls = _add(memory, turns, True)
    thread, process = time.thread_time() - thread, time.process_time() - process
    return Block(1e3 * thread / len(turns), 1e3 * process / len(turns), walls, 0)


def _search_walls(memory: Memory, turns: Sequence[Turn]) -> list[float]:
    walls = []
    for turn in turns[:_WARM_UP]:
        started = time.perf_counter()
        memory.search(turn.fact, user_id=HUB)
        walls.append(1e3 * (time.perf_counter() - started))
    return walls


# --- calls to the model ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A way to remember a conversation."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    graph: str | bool = False
    background: bool = False
    bar: Bar | None = None


_IN_ONE: Mapping[str, Any] = {"extraction": "fused"}
WAYS = (
    Way("staged"),
    Way("staged with graph", graph="sqlite"),
    Way("fused", _IN_ONE),
    Way("fused with graph", _IN_ONE, graph="sqlite"),
    Way("batched", background=True, bar=Bar("<=", 0.5)),
    Way("batched with graph", graph="sqlite", background=True),
    Way("batched, fused with graph", _IN_ONE, graph="sqlite", background=True),
)


def _calls(report: Report, plan: Plan, work: Path) -> None:
    """Remember the same conversation in every way; all must hold the same memories at the end."""
    turns = list(islice(turns_of_talk(31), plan.turns))
    section = f"model calls per turn, {plan.turns} turns of 2 messages; batched: queued up, {BATCH} turns a batch"
    of_tokens = f"tokens of messages per turn ({_ESTIMATE}), {plan.turns} turns"
    asked: dict[str, list[ModelCall]] = {}
    for way in WAYS:
        _say(f"counting calls, {way.name}")
        with tempfile.TemporaryDirectory(dir=work) as folder:
            asked[way.name] = _ask(Path(folder), way, turns)
        _call_row(report, section, way, asked[way.name], plan.turns)
    for way in WAYS:
        _token_row(report, of_tokens, way, asked[way.name], plan.turns)
    report.details["the same memories and relations in every way"] = True
    report.details["words of a summary"] = SUMMARY_WORDS
    report.details["calls and tokens per turn, by task"] = {
        name: _by_task(calls, plan.turns) for name, calls in asked.items()
    }


def _ask(folder: Path, way: Way, turns: Sequence[Turn]) -> list[ModelCall]:
    """Return all requests to the model, summaries included."""
    chat = TalkChat(turns)
    config = {"path": folder, "durability": "process", "background": {"batch": BATCH}, **way.config}
    with Memory(config, embedder=HashEmbedder(), llm=chat, graph=way.graph) as memory:
        if way.background:
            chat.open.clear()
        for turn in turns:
            memory.add(messages_of(turn), user_id=HUB, background=way.background)
            if way.background:  # the first is processed alone, the others queue behind it
                assert chat.asked.wait(_FLUSH), "no worker took up what was put off"
            else:  # a worker has time between two turns to write a due summary
                assert memory.flush(_FLUSH)
        chat.open.set()
        assert memory.flush(_FLUSH)
        _check(memory, way, turns)
    return chat.calls


def _check(memory: Memory, way: Way, turns: Sequence[Turn]) -> None:
    held = memory.get_all(user_id=HUB, limit=None)
    assert sorted(entry["memory"] for entry in held["results"]) == sorted(turn.fact for turn in turns), way.name
    relations = sorted(relation["destination"] for relation in held["relations"])
    expected = [each.destination for turn in turns for each in turn.relations] if way.graph else []
    assert relations == sorted(expected), way.name


def _call_row(report: Report, section: str, way: Way, calls: Sequence[ModelCall], turns: int) -> None:
    summaries = sum(call.task == "summary" for call in calls)
    note = ", ".join(f"{task} {entry['calls']:.2g}" for task, entry in _by_task(calls, turns).items())
    report.add(section, way.name, len(calls) / turns, "", way.bar, note)
    report.add(section, f"of them summaries, {way.name}", summaries / turns)


def _token_row(report: Report, section: str, way: Way, calls: Sequence[ModelCall], turns: int) -> None:
    summaries = sum(call.tokens for call in calls if call.task == "summary") / turns
    forms = sum(call.form_tokens for call in calls) / turns
    note = f"{summaries:,.0f} of them for summaries; tools and schemas, on top: {forms:,.0f}"
    report.add(section, way.name, sum(call.tokens for call in calls) / turns, note=note)


def _by_task(calls: Sequence[ModelCall], turns: int) -> dict[str, dict[str, float]]:
    tokens: dict[str, list[float]] = {}
    for call in calls:
        tokens.setdefault(call.task, []).append(call.tokens)
    return {
        task: {
            "calls": len(found) / turns,
            "tokens": round(sum(found) / turns, 1),
            "tokens of a call": round(mean(found)),
        }
        for task, found in sorted(tokens.items())
    }


# --- with the real embedder --------------------------------------------------------------------------------------


def _with_real_embedder(report: Report, plan: Plan, work: Path) -> None:
    embedder = real_embedder()
    if embedder is None:
        report.skip("imports and LoCoMo", "the weights or libraries of OnnxEmbedder are not installed")
        return
    _imports(report, plan, work, embedder, "onnxruntime")
    if (faster := real_embedder("openvino")) is None:
        report.skip("imports with OpenVINO", "OpenVinoEmbedder's library is not installed (mem0-core[openvino])")
    else:
        _imports(report, plan, work, faster, "OpenVINO")
    if not locomo.PATH.exists():
        report.skip("LoCoMo replayed", "the evaluation data is not here (../shared/data/locomo_dev.json.gz)")
        return
    conversations = [part(one, plan.sessions, plan.questions) for one in locomo.load(locomo.PATH)[: plan.conversations]]
    started = time.perf_counter()
    report_replays(report, conversations, embedder, resamples=plan.resamples)
    report.details["LoCoMo, all of it, s"] = round(time.perf_counter() - started, 1)


@dataclass(frozen=True, slots=True)
class Import:
    """Seconds per message of an import: wall, CPU, and wall time in the embedder."""

    wall: float
    cpu: float
    embedding: float


def _imports(report: Report, plan: Plan, work: Path, embedder: Embedder, library: str) -> None:
    """Import the same messages by `add_many` and, the first of them, one by one; rounds alternate."""
    texts = [memo.text for memo in take(memos(seed=37), plan.messages)]
    for name, graph in (("rules read relations, the default", None), ("graph=False", False)):
        ones, manys = [], []
        for turn in range(plan.imports):
            _say(f"importing, {library}, {name}, round {turn + 1}")
            ones.append(_import(work, embedder, texts[: plan.singles], graph, many=False))
            manys.append(_import(work, embedder, texts, graph, many=True))
        how = f"{embedder.name} on {library}, no model, {name}, durability='full'"
        _import_rows(report, plan, how, ones, manys)


def _import(work: Path, embedder: Embedder, texts: Sequence[str], graph: bool | None, *, many: bool) -> Import:
    timed, count = TimedEmbedder(embedder), len(texts)
    with (
        tempfile.TemporaryDirectory(dir=work) as folder,
        Memory({"path": folder}, embedder=timed, graph=graph) as memory,
    ):
        memory.add("Hello.", user_id="another")
        timed.take()
        before = clocks()
        if many:
            assert memory.add_many(texts, user_id=HUB)["added"] == count
        else:
            for text in texts:
                memory.add(text, user_id=HUB)
        after, embedding = clocks(), timed.take()
        assert len(memory.get_all(user_id=HUB, limit=None)["results"]) == count
    return Import((after.wall - before.wall) / count, (after.cpu - before.cpu) / count, embedding.wall / count)


def _import_rows(report: Report, plan: Plan, how: str, ones: Sequence[Import], manys: Sequence[Import]) -> None:
    section = f"import of {plan.messages:,} messages, {how}"
    pairs = list(zip(ones, manys, strict=True))
    bar = Bar(">=", 5) if plan.messages >= ALL_MESSAGES else None
    ratio = median([one.wall / many.wall for one, many in pairs])
    report.add(section, "time of single adds / of add_many", ratio, "x", bar, "median of the rounds' ratios")
    bound = median([one.wall / many.embedding for one, many in pairs])
    report.add(section, "the same, were add_many all embedding", bound, "x", note="what batches of texts allow")
    own = median([(one.wall - one.embedding) / (many.wall - many.embedding) for one, many in pairs])
    report.add(section, "the same, without the embedding of both", own, "x")
    for name, found in (("add_many", manys), (f"single adds, {plan.singles} measured and scaled", ones)):
        seconds = plan.messages * median([each.wall for each in found])
        cpu, embedding = (median([getattr(each, part) for each in found]) for part in ("cpu", "embedding"))
        note = f"a message: {1e3 * cpu:.2f} ms CPU, {1e3 * embedding:.2f} ms of the wall in the embedder"
        report.add(section, name, seconds, "s", note=note)
