"""The cost of graph memory: adds and searches with and without it as the graph grows, and calls to the model."""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.adding import Block, Durability, Site
from benchmarks.corpus import memos, take
from benchmarks.decisions import DecidedChat, ModelCall, Turn, depth, moves, visits
from benchmarks.pace import Pace, Part, quiet
from benchmarks.plan import Plan
from benchmarks.relations import HUB, fresh_name, grown, triplets_of
from benchmarks.report import Bar, Report, mean, median, percentile
from mem0_core import Memory
from mem0_core.testing import HashEmbedder

__all__ = ["measure"]

LARGE = 100_000  # the size that the bars refer to
OWN = 10_000  # also the number of the hub's own relations
DELAY = 0.02  # seconds of one answer, where calls are counted
_WARM_UP = 20
_PART = 25  # adds between two looks at the pace: about as many as there are between two checkpoints
_PUBLISHED = "mem0 1.x with kuzu, as published and not measured here: 16 -> 33 ms, 2.1 x"


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """A memory's configuration, its input, and the number of model calls per add."""

    name: str
    calls: int
    config: Mapping[str, Any] = field(default_factory=dict)
    graph: str | bool = "sqlite"
    turns: Callable[[random.Random], Iterator[Turn]] = visits
    delay: float = 0.0
    inline: bool = False

    def chat(self, turn: Turn) -> DecidedChat:
        return DecidedChat(turn, self.delay, self.inline)

    def open(self, folder: Path, chat: DecidedChat | None, durability: Durability = "process") -> Memory:
        # No summaries: they are not part of an add, and the model writes none.
        config = {"path": folder, "durability": durability, "summary_every": 0, **self.config}
        return Memory(config, embedder=HashEmbedder(), llm=chat, graph=self.graph)


_IN_ONE: Mapping[str, Any] = {"extraction": "fused"}
STAGED = Mode("staged", 6)
FUSED = Mode("fused", 1, _IN_ONE)
WITHOUT = Mode("graph=False", 2, graph=False)
MOVES = Mode("staged, 2 relations begin, 1 ends, 1 is refined", 6, turns=moves)
OTHERS = (
    STAGED,
    FUSED,
    MOVES,
    Mode("fused, 2 relations begin, 1 ends, 1 is refined", 1, _IN_ONE, turns=moves),
    Mode("staged, the model's calls made in no thread of their own", 6, inline=True),
    Mode("staged, the model takes 5 ms a call", 6, delay=0.005),
    Mode("graph=False, the model takes 5 ms a call", 2, graph=False, delay=0.005),
)


def measure(plan: Plan) -> Report:
    report = Report("graph")
    report.details["relations"] = f"a third begin at the hub, {HUB}; every add brings a node with a name of its own"
    report.details["published"] = _PUBLISHED
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as name:
        work = Path(name)
        stores = _filled(report, plan, work)
        pace = Pace(plan.patience)
        _adds(report, plan, work, stores, "process", pace)
        _adds(report, plan, work, stores, "full", pace)
        size = max((size for size in stores if size <= plan.own), default=min(stores))
        _other_adds(report, plan, work, stores[size], size, pace)
        _rules(report, plan, work, stores[size], size)
        _searches(report, plan, stores[size], size)
        _calls(report, plan, work, stores[size], size)
        _growth(report, plan, work)
    return report


def _say(what: str) -> None:
    print(f"graph: {what}", file=sys.stderr, flush=True)


def _filled(report: Report, plan: Plan, work: Path) -> dict[int, Path]:
    stores = {}
    started = time.perf_counter()
    for size, folder in grown(plan.relations, plan.own, work, HashEmbedder()):
        _say(f"filled {size:,}")
        stores[size] = folder
        report.add("the file", f"{size:,} relations, with their memories", _megabytes(folder), "MB")
    report.details["filling, s"] = round(time.perf_counter() - started, 1)
    return stores


def _megabytes(folder: Path) -> float:
    return (folder / "memory.db").stat().st_size / 1e6


# --- adds --------------------------------------------------------------------------------------------------------


def _adds(
    report: Report, plan: Plan, work: Path, stores: Mapping[int, Path], durability: Durability, pace: Pace
) -> None:
    """Run blocks of adds at each size, with and without graph memory; sizes and modes alternate."""
    pace.begin()
    sites = {size: Site(folder, size, work) for size, folder in stores.items()}
    blocks: dict[int, dict[Mode, _Blocks]] = {size: {STAGED: [], WITHOUT: []} for size in sites}
    rounds = plan.full_rounds if durability == "full" else plan.rounds
    for turn, size, mode in itertools.product(range(rounds), sites, (STAGED, WITHOUT)):
        _say(f"adding to {size:,}, {mode.name}, durability {durability}, round {turn + 1}")
        chance = random.Random(f"{durability} {turn} {size} {mode.name}")
        blocks[size][mode].append(_block(sites[size], mode, durability, plan.calls, chance, pace))
    for site in sites.values():
        site.remove()
    section = f"add, scripted model, staged, 1 fact and 1 relation to a new node, durability={durability!r}"
    for size, of_size in blocks.items():
        _add_rows(report, section, size, plan, of_size, pace)
    _ratio_rows(report, section, blocks, plan)
    report.details[f"add {durability} CPU ms"] = {
        f"{size} {mode.name}": [[part.took.cpu_ms for part in block] for block in found]
        for size, of_size in blocks.items()
        for mode, found in of_size.items()
    }


def _block(
    site: Site, mode: Mode, durability: Durability, calls: int, chance: random.Random, pace: Pace
) -> list[Part[Block]]:
    """Time `calls` adds of the hub in small parts."""
    folder = site.folder(calls + _WARM_UP)
    turns = list(itertools.islice(mode.turns(chance), calls + _WARM_UP))
    chat = mode.chat(turns[0])
    with mode.open(folder, chat, durability) as memory:
        _learn(memory, turns)
        for turn in turns[:_WARM_UP]:
            _add(memory, chat, turn, mode)
        parts = []
        for start in range(_WARM_UP, len(turns), _PART):
            some = turns[start : start + _PART]
            look, before = pace.settled(), time.process_time()
            walls = [_add(memory, chat, turn, mode)[0] for turn in some]
            took = 1e3 * (time.process_time() - before)
            parts.append(Part(Block(took / len(some), walls), max(look, pace.look())))
        return parts


def _learn(memory: Memory, turns: Sequence[Turn]) -> None:
    """Show the embedder all words in advance: hashing a new one takes as long as ten texts of known ones."""
    memory._embedder.embed([text for turn in turns for text in turn.texts])


def _add(memory: Memory, chat: DecidedChat, turn: Turn, mode: Mode) -> tuple[float, dict[str, Any]]:
    """Return wall milliseconds and the result."""
    chat.turn = turn
    chat.calls.clear()
    started = time.perf_counter()
    result = memory.add(turn.message, user_id=HUB)
    wall = 1e3 * (time.perf_counter() - started)
    assert (result["usage"]["llm_calls"], result["skipped"]) == (mode.calls, []), result
    begun, ended = result["relations"]["added_entities"], result["relations"]["deleted_entities"]
    assert (len(begun), len(ended)) == _expected(turn, mode), result
    return wall, dict(result)


def _expected(turn: Turn, mode: Mode) -> tuple[int, int]:
    """Return the number of relations that begin and end."""
    if not mode.graph:
        return 0, 0
    return len(turn.relations) + len(turn.refined), len(turn.outdated) + len(turn.refined)


_Blocks: TypeAlias = list[list[Part[Block]]]


def _cpu(block: Sequence[Part[Block]]) -> float:
    return mean([part.took.cpu_ms for part in block])


def _cpu_row(report: Report, section: str, name: str, blocks: _Blocks, pace: Pace, bar: Bar | None = None) -> None:
    parts = [part for block in blocks for part in block]
    value, note = quiet(pace, parts, lambda some: mean([each.cpu_ms for each in some]), "ms")
    walls = [wall for part in parts for wall in part.took.walls_ms]
    said = f"p50 of wall {median(walls):.2f} ms, p90 {percentile(walls, 0.9):.2f} ms"
    report.add(section, name, value, "ms", bar, f"{note}; {said}")


def _add_rows(report: Report, section: str, size: int, plan: Plan, blocks: Mapping[Mode, _Blocks], pace: Pace) -> None:
    bar = Bar("<=", 5) if size >= OWN and plan.own == OWN else None
    hub = f"hub's {min(plan.own, size):,} of {size:,}"
    _cpu_row(report, section, f"CPU per call, {hub}", blocks[STAGED], pace, bar)
    _cpu_row(report, section, f"the same, graph=False, {hub}", blocks[WITHOUT], pace)
    own = [_cpu(a) - _cpu(b) for a, b in zip(blocks[STAGED], blocks[WITHOUT], strict=True)]
    report.add(section, f"graph memory's own, {hub}", median(own), "ms", note="median of the rounds' differences")


def _ratio_rows(report: Report, section: str, blocks: Mapping[int, Mapping[Mode, _Blocks]], plan: Plan) -> None:
    """Return the ratio of the largest store to the one that is all the hub's."""
    largest, alone = max(blocks), max((size for size in blocks if size <= plan.own), default=max(blocks))
    if largest == alone:
        return
    for mode in (STAGED, WITHOUT):
        pairs = zip(blocks[alone][mode], blocks[largest][mode], strict=True)
        ratio = median([_cpu(b) / _cpu(a) for a, b in pairs])
        bar = Bar("<=", 1.3) if (largest, alone, mode) == (LARGE, OWN, STAGED) else None
        name = f"CPU at {largest:,} / CPU at {alone:,}, {mode.name}"
        report.add(section, name, ratio, "x", bar, "median of the rounds' ratios")


def _other_adds(report: Report, plan: Plan, work: Path, folder: Path, size: int, pace: Pace) -> None:
    """Add other content for the same hub in other ways."""
    pace.begin()
    site = Site(folder, size, work)
    blocks: dict[Mode, _Blocks] = {mode: [] for mode in OTHERS}
    for turn, mode in itertools.product(range(plan.full_rounds), OTHERS):
        _say(f"adding to {size:,}, {mode.name}, round {turn + 1}")
        calls = plan.calls // 2 if mode.delay else plan.calls
        chance = random.Random(f"{turn} {mode.name}")
        blocks[mode].append(_block(site, mode, "process", max(2, calls), chance, pace))
    site.remove()
    section = f"other adds at {size:,} relations of the hub, durability='process'"
    for mode, found in blocks.items():
        _cpu_row(report, section, f"CPU per call, {mode.name}", found, pace)
    report.details["other adds, CPU ms"] = {mode.name: list(map(_cpu, some)) for mode, some in blocks.items()}


# --- without a model ---------------------------------------------------------------------------------------------


def _rules(report: Report, plan: Plan, work: Path, folder: Path, size: int) -> None:
    """Run verbatim adds, each to two stores: with relations read by rules, and without."""
    chance = random.Random(19)
    told = [memo.text for memo in take(memos(seed=17), plan.calls + _WARM_UP)]
    stated = [_statement(chance) for _ in range(plan.calls + _WARM_UP)]
    sites = [Site(folder, size, work / name) for name in ("rules", "none")]
    for kind, texts in (("that tell of a deed", told), ("that state relations", stated)):
        _say(f"rules, sentences {kind}")
        section = f"verbatim add, no model, durability='process', sentences {kind}, hub's {size:,}"
        _rules_rows(report, section, [site.folder(len(texts)) for site in sites], texts)
    for site in sites:
        site.remove()


def _statement(chance: random.Random) -> str:
    """Return a sentence of one to three relations, to new nodes except the hub."""
    home, firm, friend, food = (fresh_name(chance) for _ in range(4))
    forms = (
        f"I live in {home} now.",
        f"I work at {firm} and I like {food}.",
        f"My sister {friend} lives in {home}, and she loves {food}.",
        f"My friend {friend} works at {firm}.",
    )
    return chance.choice(forms)


def _rules_rows(report: Report, section: str, folders: Sequence[Path], texts: Sequence[str]) -> None:
    pairs, read = [], []
    with ExitStack() as opened:
        memories = [
            opened.enter_context(mode.open(folder, None))
            for mode, folder in zip((STAGED, WITHOUT), folders, strict=True)
        ]
        for memory in memories:
            memory._embedder.embed(texts)
        for text in texts:
            (rules, relations), (none, _) = (_cpu_of_add(memory, text) for memory in memories)
            pairs.append((rules, none))
            read.append(relations)
    _pair_rows(report, section, "CPU p50", "rules", pairs[_WARM_UP:], f"{mean(read):.2g} relations each")


def _pair_rows(
    report: Report, section: str, what: str, with_: str, pairs: Sequence[tuple[float, float]], note: str
) -> None:
    """Return rows of milliseconds with graph memory, without it, and of the difference."""
    report.add(section, f"{what}, {with_}", median([ours for ours, _ in pairs]), "ms", note=note)
    report.add(section, f"{what}, graph=False", median([none for _, none in pairs]), "ms")
    own = median([ours - none for ours, none in pairs])
    report.add(section, f"{what}, {with_}' own", own, "ms", note="median of the pairs' differences")


def _cpu_of_add(memory: Memory, text: str) -> tuple[float, int]:
    """Return milliseconds and the number of relations that began."""
    before = time.process_time()
    result = memory.add(text, user_id=HUB)
    took = 1e3 * (time.process_time() - before)
    assert [entry["event"] for entry in result["results"]] == ["ADD"]
    return took, len(result["relations"]["added_entities"])


def _searches(report: Report, plan: Plan, folder: Path, size: int) -> None:
    """Run the hub's searches, each on a memory with graph and on one without."""
    _say(f"searching {size:,}")
    pairs, found = [], []
    with ExitStack() as opened:
        memories = [opened.enter_context(mode.open(folder, None)) for mode in (STAGED, WITHOUT)]
        for question in _questions(size, plan.queries + _WARM_UP):
            (rules, relations), (none, _) = (_wall_of_search(memory, question) for memory in memories)
            pairs.append((rules, none))
            found.append(relations)
    pairs = pairs[_WARM_UP:]
    section = f"search, no model, hub's {size:,} relations and memories, embedding included"
    _pair_rows(report, section, "p50", "rules", pairs, f"{mean(found):.2g} relations found")
    report.add(section, "p95, rules", percentile([rules for rules, _ in pairs], 0.95), "ms")
    report.add(section, "p95, graph=False", percentile([none for _, none in pairs], 0.95), "ms")


def _wall_of_search(memory: Memory, question: str) -> tuple[float, int]:
    """Return milliseconds and the number of relations found."""
    started = time.perf_counter()
    result = memory.search(question, user_id=HUB)
    return 1e3 * (time.perf_counter() - started), len(result["relations"])


def _questions(size: int, count: int) -> list[str]:
    """Yield questions about places in the graph; every second one also names the hub."""
    chance = random.Random(23)
    places = [triplet.destination for triplet in triplets_of(HUB, range(min(100, size)))]
    forms = ("What did I hear of {}?", "Who has been to {}?")
    return [forms[place % 2].format(chance.choice(places)) for place in range(count)]


# --- calls -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """The requests to a model during a series of adds."""

    calls: list[list[ModelCall]] = field(default_factory=list)
    walls_ms: list[float] = field(default_factory=list)
    relations: list[dict[str, list[str]]] = field(default_factory=list)


def _calls(report: Report, plan: Plan, work: Path, folder: Path, size: int) -> None:
    """Run the same decisions step by step and in one answer."""
    section = f"calls to the model per add, the same decisions in {plan.talks} adds, hub's {size:,} relations"
    turns = list(itertools.islice(moves(random.Random(29)), plan.talks + 2))
    asked: dict[str, Asked] = {}
    for mode, longest in ((STAGED, 3), (FUSED, 1)):
        _say(f"counting calls, {mode.name}")
        site = Site(folder, size, work)
        asked[mode.name] = found = _ask(site, mode, turns)
        site.remove()
        _call_rows(report, section, mode, found, longest)
    staged, fused = asked.values()
    assert staged.relations == fused.relations, "the same decisions, and another graph"
    report.details["the same graph from staged and fused"] = True
    report.details["estimated tokens of messages, by task"] = {
        name: _tokens_by_task(found) for name, found in asked.items()
    }


def _ask(site: Site, mode: Mode, turns: Sequence[Turn]) -> Asked:
    chat = DecidedChat(turns[0], DELAY)
    asked = Asked()
    with mode.open(site.folder(len(turns)), chat) as memory:
        _learn(memory, turns)
        for turn in turns:
            wall, result = _add(memory, chat, turn, mode)
            asked.walls_ms.append(wall)
            asked.calls.append(list(chat.calls))
            asked.relations.append({kind: sorted(some) for kind, some in result["relations"].items()})
    asked.walls_ms, asked.calls = asked.walls_ms[2:], asked.calls[2:]
    return asked


def _call_rows(report: Report, section: str, mode: Mode, asked: Asked, longest: int) -> None:
    name = mode.name
    count = mean([len(calls) for calls in asked.calls])
    report.add(section, f"calls, {name}", count, "", Bar("==", mode.calls))
    chain = median([depth(calls) for calls in asked.calls])
    report.add(section, f"longest chain, {name}", chain, "", Bar("<=", longest), "from when calls began and ended")
    waits = median(asked.walls_ms) / 1e3 / DELAY
    report.add(section, f"wall / {1e3 * DELAY:g} ms a call, {name}", waits, "x", note="p50, our own time included")
    tokens = mean([sum(call.tokens for call in calls) for calls in asked.calls])
    forms = mean([sum(call.form_tokens for call in calls) for calls in asked.calls])
    note = f"estimate: characters / 4; tools and schemas, on top: {forms:,.0f}"
    report.add(section, f"tokens of messages, {name}", tokens, "", note=note)


def _tokens_by_task(asked: Asked) -> dict[str, float]:
    tokens: dict[str, list[float]] = {}
    for call in itertools.chain.from_iterable(asked.calls):
        tokens.setdefault(call.task, []).append(call.tokens)
    return {task: round(mean(found)) for task, found in tokens.items()}


# --- growth ------------------------------------------------------------------------------------------------------


def _growth(report: Report, plan: Plan, work: Path) -> None:
    """Measure a user's first adds."""
    section = f"add, scripted model, staged, a user's first {plan.growth} adds, durability='process'"
    for mode, what, note in ((STAGED, "1 relation each", _PUBLISHED), (MOVES, "2 begin, 1 ends, 1 is refined", "")):
        runs = []
        for run in range(plan.full_rounds):
            _say(f"growing to {plan.growth}, {what}, round {run + 1}")
            with tempfile.TemporaryDirectory(dir=work) as folder:
                runs.append(_grow(Path(folder), mode, plan.growth, random.Random(f"growth {run}")))
        _growth_rows(report, section, what, runs, note)


def _growth_rows(report: Report, section: str, what: str, runs: Sequence[Sequence[float]], note: str) -> None:
    edge = max(1, len(runs[0]) // 6)
    first, last = [mean(cpu[:edge]) for cpu in runs], [mean(cpu[-edge:]) for cpu in runs]
    report.add(section, f"CPU per call, {what}, the first {edge}", median(first), "ms")
    report.add(section, f"CPU per call, {what}, the last {edge}", median(last), "ms")
    ratio = median([b / a for a, b in zip(first, last, strict=True)])
    report.add(section, f"last / first, {what}", ratio, "x", note=note)
    report.details[f"growth, {what}, CPU ms of each add, median of the rounds"] = [
        round(median(of_place), 3) for of_place in zip(*runs, strict=True)
    ]


def _grow(folder: Path, mode: Mode, count: int, chance: random.Random) -> list[float]:
    """Return CPU milliseconds of each add to a new store, after another user has warmed up the process."""
    warming = list(itertools.islice(visits(chance), _WARM_UP))
    turns = list(itertools.islice(mode.turns(chance), count))
    chat = DecidedChat(turns[0])
    took = []
    with mode.open(folder, chat) as memory:
        _learn(memory, [*warming, *turns])
        for place, turn in enumerate([*warming, *turns]):
            chat.turn = turn
            before = time.process_time()
            memory.add(turn.message, user_id="another" if place < _WARM_UP else HUB)
            took.append(1e3 * (time.process_time() - before))
    return took[_WARM_UP:]
