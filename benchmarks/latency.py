"""The latency of one user's search among other users' memories: the default recipe and mem0's.

The texts are LoCoMo's turns if available, else synthetic ones. The user's sessions are interleaved with those of the
others, as in a store with many writers.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, zip_longest
from pathlib import Path

from benchmarks import locomo
from benchmarks.collection import Collection, Occasion, Question, Unit
from benchmarks.corpus import memos, take
from benchmarks.plan import Plan
from benchmarks.remembered import add_occasion
from benchmarks.report import Bar, Report, median, percentile
from benchmarks.timed import Clocks, TimedEmbedder, clocks
from mem0_core import Memory
from mem0_core.domain.recipes import HYBRID, MEM0, Recipe
from mem0_core.interfaces import Embedder
from mem0_core.testing import HashEmbedder

__all__ = ["fill", "report_latency", "talk_of"]

USER = "the user"
LARGE = 99_000  # others' memories: the size that the bars refer to
BARS = ((HYBRID, Bar("<=", 5)), (MEM0, Bar("<=", 0.5)))
FLAT = Bar("<=", 1.3)
_SESSION = 20  # turns, if they are synthetic
_WARM_UP = 10

Rounds = list[list[Clocks]]
"""What each search took, by round."""


def report_latency(report: Report, plan: Plan, work: Path) -> None:
    """Search a user's memories in stores with increasing numbers of other users' memories, the stores alternating."""
    embedder, talk = HashEmbedder(), talk_of(plan.own_memories)
    folders = {others: work / f"among-{others}" for others in plan.others}
    for others, folder in folders.items():
        print(f"cost: filling {plan.own_memories:,} among {others:,} of others", file=sys.stderr, flush=True)
        fill(folder, talk.occasions, plan.own_memories, others, embedder)
    questions = [question.text for question in talk.questions][: plan.queries]
    for recipe, bar in BARS:
        print(f"cost: searching by recipe {recipe.name}", file=sys.stderr, flush=True)
        took = _searches(folders, recipe, questions, embedder, plan.rounds)
        section = f"search of {plan.own_memories:,} turns of one user, recipe {recipe.name}, without the embedding"
        _rows(report, section, took, bar)


def _rows(report: Report, section: str, took: Mapping[int, Rounds], bar: Bar) -> None:
    for others, rounds in took.items():
        walls = [1e3 * one.wall for of_round in rounds for one in of_round]
        cpu = median([1e3 * one.cpu for of_round in rounds for one in of_round])
        note = f"p95 {percentile(walls, 0.95):.2f} ms; p50 of CPU {cpu:.2f} ms"
        limit = bar if others == LARGE else None
        report.add(section, f"p50 among {others:,} of others", median(walls), "ms", limit, note)
    fewest, *more = sorted(took)
    limit = FLAT if LARGE in took else None
    for others in more:
        pairs = zip(took[others], took[fewest], strict=True)
        ratios = [median([one.wall for one in many]) / median([one.wall for one in few]) for many, few in pairs]
        name = f"p50 among {others:,} / p50 among {fewest:,}"
        report.add(section, name, median(ratios), "x", limit, "median of the rounds' ratios")


def _searches(
    folders: Mapping[int, Path], recipe: Recipe, questions: Sequence[str], embedder: Embedder, rounds: int
) -> dict[int, Rounds]:
    """Time the searches in each store; some untimed ones before each round reload data that the others evicted."""
    timed = TimedEmbedder(embedder)
    took: dict[int, Rounds] = {others: [] for others in folders}
    with ExitStack() as stack:
        memories = {
            others: stack.enter_context(Memory({"path": folder, "recipe": recipe.name}, embedder=timed))
            for others, folder in folders.items()
        }
        for _ in range(rounds):
            for others, memory in memories.items():
                for question in questions[:_WARM_UP]:
                    memory.search(question, user_id=USER)
                took[others].append([_clocked(memory, timed, question) for question in questions])
    return took


def _clocked(memory: Memory, timed: TimedEmbedder, question: str) -> Clocks:
    timed.take()
    started = clocks()
    found = memory.search(question, user_id=USER)["results"]
    ended, embedding = clocks(), timed.take()
    assert found, "the user has memories"
    return Clocks(ended.wall - started.wall - embedding.wall, ended.cpu - started.cpu - embedding.cpu)


# --- conversations -----------------------------------------------------------------------------------------------


def talk_of(turns: int) -> Collection:
    """Return LoCoMo's conversations in sequence with questions on the first, or else as many synthetic turns."""
    if locomo.PATH.exists():
        conversations = locomo.dataset(locomo.load(locomo.PATH)).collections
        occasions = tuple(occasion for one in conversations for occasion in one.occasions)
        return Collection("LoCoMo", occasions, conversations[0].questions)
    given = take(memos(), turns)
    units = [Unit(str(place), memo.text, speaker="AB"[place % 2]) for place, memo in enumerate(given)]
    days = (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in range(turns))
    sessions = (tuple(units[start : start + _SESSION]) for start in range(0, turns, _SESSION))
    occasions = tuple(Occasion(said, said_at=day.isoformat()) for said, day in zip(sessions, days, strict=False))
    questions = (Question(memo.question, memo.theme, (unit.id,)) for memo, unit in zip(given, units, strict=True))
    return Collection("invented", occasions, tuple(questions))


def fill(folder: Path, talk: Sequence[Occasion], memories: int, others: int, embedder: Embedder) -> None:
    """Add the first `memories` turns of a conversation as the user's, evenly interleaved with those of other users."""
    own = list(_first(talk, memories))
    crowd = list(_crowd(talk, memories, others))
    step = len(crowd) / len(own)
    with Memory({"path": folder, "durability": "process"}, embedder=embedder) as memory:
        for place, occasion in enumerate(own):
            for name, theirs in crowd[round(place * step) : round((place + 1) * step)]:
                add_occasion(memory, name, theirs)
            add_occasion(memory, USER, occasion)


def _crowd(talk: Sequence[Occasion], each: int, turns: int) -> Iterator[tuple[str, Occasion]]:
    """Yield the other users' sessions in turn; each user starts at a different place of one conversation."""
    users = [
        list(_first(islice(cycle(talk), start, None), min(each, turns - before)))
        for start, before in enumerate(range(0, turns, each), 1)
    ]
    for sessions in zip_longest(*users):
        yield from ((f"other {number}", theirs) for number, theirs in enumerate(sessions) if theirs is not None)


def _first(talk: Iterable[Occasion], turns: int) -> Iterator[Occasion]:
    """Return this number of turns of a conversation; the last session may be cut short."""
    for occasion in talk:
        if turns <= 0:
            return
        kept = dataclasses.replace(occasion, units=occasion.units[:turns])
        turns -= len(kept.units)
        yield kept
