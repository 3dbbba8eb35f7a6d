"""LoCoMo replayed: whole conversations go through the staged pipeline, exchange by exchange.

The dataset's `observation` field replaces a model: extraction returns the facts observed in the messages, and
reconciliation adds the unknown ones. The expected result is therefore known: every fact once, with its source turns.
Searches are scored by the session of those turns.
"""

from __future__ import annotations

import dataclasses
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import locomo
from benchmarks.collection import Question, answered
from benchmarks.locomo import ADVERSARIAL, Conversation, Turn
from benchmarks.remembered import remembered
from benchmarks.report import Bar, Report, mean, median, percentile
from benchmarks.talks import folded, input_of, reconcile_known
from benchmarks.timed import CachedEmbedder, TimedEmbedder
from mem0_core import Memory
from mem0_core.domain.recipes import HYBRID
from mem0_core.evaluation import bootstrap_intervals
from mem0_core.interfaces import Embedder, Reply
from mem0_core.language.messages import format_transcript, parse_messages
from mem0_core.testing import ScriptedChat

__all__ = ["Replayed", "replay", "report_replays"]

EXCHANGE = 2  # messages of one add
DEPTH = 10
_FLUSH = 300.0  # seconds
VERBATIM = "baseline: Memory, turns as they were said (infer=False)"
EXACT = "baseline: NumPy MiniLM over the same facts"

Group = list[dict[str, Any]]
Found = dict[str, list[set[str]]]
"""By the name of a conversation, for each of its questions the sessions found."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to feed a conversation."""

    name: str
    roles: tuple[str, str] = ("user", "assistant")
    background: bool = False


STAGED = Way("staged, the speakers are user and assistant")
WAYS = (
    STAGED,
    Way("staged, both speakers are users", ("user", "user")),
    Way("in the background, user and assistant", background=True),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory, its recorded speaker, and the source turns of its messages."""

    text: str
    actor: str | None
    turns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of one replayed conversation.

    Attributes:
        told: the source turns of each fact, by the fact up to case and spacing.
        speakers: the speaker of each turn.
        left: jobs left at the end.
        skipped: unusable parts of the model's answers.
        walls_ms, embedding_ms: of each add, and the embedder's part of it.
        asked: calls to the model, by task.
        found: for each question the sessions of the first ten memories.
    """

    told: Mapping[str, frozenset[str]]
    speakers: Mapping[str, str]
    kept: tuple[Kept, ...]
    left: int
    skipped: int
    seconds: float
    walls_ms: tuple[float, ...]
    embedding_ms: tuple[float, ...]
    asked: Mapping[str, int]
    found: tuple[frozenset[str], ...]

    @property
    def duplicates(self) -> int:
        return len(self.kept) - len({folded(memory.text) for memory in self.kept})

    @property
    def lost(self) -> int:
        return len(self.told.keys() - {folded(memory.text) for memory in self.kept})

    @property
    def traced(self) -> int:
        """Return the number of memories with messages of all their source turns, or more."""
        return sum(self.told.get(folded(memory.text), {"nobody"}) <= memory.turns for memory in self.kept)

    @property
    def misnamed(self) -> int:
        """Return the number of memories attributed to the wrong speaker."""
        tellers = [
            (memory.actor, {self.speakers[turn] for turn in self.told.get(folded(memory.text), ())})
            for memory in self.kept
        ]
        return sum(actor is not None and actor not in names for actor, names in tellers)


def report_replays(
    report: Report, conversations: Sequence[Conversation], embedder: Embedder, *, resamples: int
) -> None:
    """Replay in each way, and score against the baselines."""
    report.details["LoCoMo"] = _counts(conversations)
    found: dict[str, list[Sequence[frozenset[str]]]] = {}
    for way in WAYS:
        runs = [replay(one, way, embedder) for one in conversations]
        _rows(report, way, runs)
        found[f"Memory, {way.name}"] = [run.found for run in runs]
    cached = CachedEmbedder(embedder)
    for name, rank in ((VERBATIM, _by_turns), (EXACT, _by_facts)):
        _say(name)
        found[name] = [rank(one, cached) for one in conversations]
    questions = [question for one in conversations for question in one.questions]
    for name, of_all in found.items():
        sessions = [some for of_one in of_all for some in of_one]
        _score_rows(report, name, list(zip(questions, sessions, strict=True)), resamples)


def _say(what: str) -> None:
    print(f"converse: {what}", file=sys.stderr, flush=True)


def _counts(conversations: Sequence[Conversation]) -> dict[str, Any]:
    return {
        "conversations": [one.name for one in conversations],
        "turns": sum(len(one.turns) for one in conversations),
        "facts, each turn's": sum(len(facts) for one in conversations for facts in one.facts.values()),
        "questions": sum(len(one.questions) for one in conversations),
    }


# --- replaying ---------------------------------------------------------------------------------------------------


def replay(one: Conversation, way: Way, embedder: Embedder) -> Replayed:
    """Feed a conversation to a new memory, inspect its contents, and ask its questions."""
    _say(f"{one.name}, {way.name}")
    timed = TimedEmbedder(embedder)
    groups = _groups(one, way)
    chat = ScriptedChat(Observer(one, groups))
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
        config = {"path": folder, "durability": "process"}
        with Memory(config, embedder=timed, llm=chat) as memory:
            started = time.perf_counter()
            adds = [_add(memory, timed, one.name, group, way) for group in groups]
            memory.flush(_FLUSH)
            seconds = time.perf_counter() - started
            left = len(memory.pending())
            kept = _read_memories(Path(folder) / "memory.db")
            found = [_sessions(memory, one.name, question, kept) for question in one.questions]
    return Replayed(
        told=_source_turns(one),
        speakers={turn.id: turn.speaker for turn in one.turns},
        kept=tuple(kept.values()),
        left=left,
        skipped=sum(skipped for _, _, skipped in adds),
        seconds=seconds,
        walls_ms=tuple(wall for wall, _, _ in adds),
        embedding_ms=tuple(embedding for _, embedding, _ in adds),
        asked=_by_task(chat),
        found=tuple(found),
    )


def _groups(one: Conversation, way: Way) -> list[Group]:
    """Return the exchanges of each session as messages."""
    first = one.turns[0].speaker
    return [
        [_message(turn, way.roles[turn.speaker != first]) for turn in session[at : at + EXCHANGE]]
        for session in one.sessions
        for at in range(0, len(session), EXCHANGE)
    ]


def _message(turn: Turn, role: str) -> dict[str, Any]:
    said = {"role": role, "name": turn.speaker, "content": turn.text, "timestamp": turn.said_at}
    return {**said, "metadata": {"dia_id": turn.id}}


def _add(memory: Memory, timed: TimedEmbedder, user: str, group: Group, way: Way) -> tuple[float, float, int]:
    """Return wall milliseconds, the embedder's part of them, and the number of unusable parts of answers."""
    timed.take()
    started = time.perf_counter()
    result = memory.add(group, user_id=user, background=way.background)
    wall = 1e3 * (time.perf_counter() - started)
    return wall, 0.0 if way.background else 1e3 * timed.take().wall, len(result["skipped"])


def _source_turns(one: Conversation) -> dict[str, frozenset[str]]:
    told: dict[str, frozenset[str]] = {}
    for turn, facts in one.facts.items():
        for fact in map(folded, facts):
            told[fact] = told.get(fact, frozenset()) | {turn}
    return told


def _by_task(chat: ScriptedChat) -> dict[str, int]:
    tasks = [call.task for call in chat.calls]
    return {task: tasks.count(task) for task in dict.fromkeys(tasks)}


class Observer:
    """The script of a model that has observed a conversation, and names the messages of each fact."""

    def __init__(self, one: Conversation, groups: Sequence[Group]) -> None:
        self._facts: dict[str, list[tuple[str, int]]] = {}  # what was said -> facts, with positions of their messages
        self._sizes: dict[str, int] = {}
        for group in groups:
            messages = parse_messages(group).messages
            spoken = format_transcript(messages)
            self._sizes[spoken] = len(messages)
            self._facts.setdefault(spoken, []).extend(
                (fact, position)
                for position, message in enumerate(messages)
                for fact in one.facts.get(message.metadata["dia_id"], ())
            )

    def __call__(self, task: str, messages: Sequence[Mapping[str, Any]]) -> Any:
        content = messages[-1]["content"]
        if task == "facts":
            positions: dict[str, list[int]] = {}
            for fact, position in self._observed_facts(input_of(content)):
                positions.setdefault(fact, []).append(position)
            return {"facts": [{"fact": fact, "messages": named} for fact, named in positions.items()]}
        return reconcile_known(content) if task == "operations" else Reply(text="They talked.")

    def _observed_facts(self, spoken: str) -> Iterator[tuple[str, int]]:
        """Yield the facts of what was said: of one exchange, or of several that were queued up."""
        framed = f"\n{spoken}\n"
        exchanges = [spoken] if spoken in self._facts else [one for one in self._facts if f"\n{one}\n" in framed]
        before = 0
        for exchange in sorted(exchanges, key=framed.index):
            yield from ((fact, before + position) for fact, position in self._facts[exchange])
            before += self._sizes[exchange]


# --- contents of the memory --------------------------------------------------------------------------------------

_KEPT = """
SELECT memories.id, memories.text, memories.actor_id, json_extract(messages.metadata, '$.dia_id') FROM memories
LEFT JOIN sources ON sources.memory = memories.row LEFT JOIN messages ON messages.row = sources.message
"""


def _read_memories(database: Path) -> dict[str, Kept]:
    """Return all memories by id, as stored in the file."""
    kept: dict[str, Kept] = {}
    with closing(sqlite3.connect(database)) as db:
        for id, text, actor, turn in db.execute(_KEPT):
            before = kept[id].turns if id in kept else frozenset()
            kept[id] = Kept(text, actor, before | {turn} if turn else before)
    return kept


def _sessions(memory: Memory, user: str, question: Question, kept: Mapping[str, Kept]) -> frozenset[str]:
    found = memory.search(question.text, user_id=user, limit=DEPTH)["results"]
    return _sessions_of(turn for entry in found for turn in kept[entry["id"]].turns)


def _sessions_of(turns: Any) -> frozenset[str]:
    """Return the sessions of turns: D3:11 belongs to session D3."""
    return frozenset(turn.partition(":")[0] for turn in turns)


# --- baselines ---------------------------------------------------------------------------------------------------


def _by_turns(one: Conversation, embedder: Embedder) -> list[frozenset[str]]:
    with remembered(locomo.dataset([one]), embedder) as memory:
        found = [memory.by(HYBRID)(one.name, question.text).ranked for question in one.questions]
    return [_sessions_of(turn for entry in ranked[:DEPTH] for turn in entry.split("|")) for ranked in found]


def _by_facts(one: Conversation, embedder: Embedder) -> list[frozenset[str]]:
    """Rank the same facts without a memory: vectors of their bare texts, and all cosines."""
    told = _source_turns(one)
    texts = {folded(fact): fact for facts in one.facts.values() for fact in facts}
    queries = embedder.embed([question.text for question in one.questions], kind="query")
    scores = queries @ embedder.embed(list(texts.values())).T
    turns = [told[fact] for fact in texts]
    best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH].tolist()
    return [_sessions_of(turn for place in places for turn in turns[place]) for places in best]


# --- rows --------------------------------------------------------------------------------------------------------


def _rows(report: Report, way: Way, runs: Sequence[Replayed]) -> None:
    section = f"LoCoMo replayed, {len(runs)} conversations, MiniLM, 2 messages an add, {way.name}"
    memories = sum(len(run.kept) for run in runs)
    walls = [wall for run in runs for wall in run.walls_ms]
    messages = mean([len(memory.turns) for run in runs for memory in run.kept])
    distinct = sum(len(run.told) for run in runs)
    left, skipped = sum(run.left for run in runs), sum(run.skipped for run in runs)
    report.add(section, "jobs left, and answers not understood", left + skipped, "", Bar("==", 0))
    report.add(section, "duplicate memories", sum(run.duplicates for run in runs), "", Bar("==", 0), f"of {memories:,}")
    report.add(section, "facts lost", sum(run.lost for run in runs), "", Bar("==", 0), f"of {distinct:,} distinct")
    traced = 100 * sum(run.traced for run in runs) / memories
    note = f"every turn that told it; {messages:.1f} messages each"
    report.add(section, "memories traced to their turns", traced, "%", Bar(">=", 90), note)
    misnamed = 100 * sum(run.misnamed for run in runs) / memories
    report.add(section, "memories that name a speaker who did not tell them", misnamed, "%")
    asked = {task: sum(run.asked.get(task, 0) for run in runs) for task in ("facts", "operations", "summary")}
    note = ", ".join(f"{task} {count:,}" for task, count in asked.items())
    report.add(section, "model calls", sum(asked.values()), note=note)
    report.add(section, f"{len(walls):,} adds, all done", sum(run.seconds for run in runs), "s")
    embedding = median([wall for run in runs for wall in run.embedding_ms])
    note = f"p95 {percentile(walls, 0.95):.2f} ms" + ("" if way.background else f"; the embedder's p50 {embedding:.2f}")
    report.add(section, "add, p50 of wall", median(walls), "ms", note=note)


def _score_rows(report: Report, name: str, answered: Sequence[tuple[Question, frozenset[str]]], resamples: int) -> None:
    """Return rows of the share of a question's evidence sessions among those of its first ten memories."""
    scored = [(question, found) for question, found in answered if question.gold and question.kind != ADVERSARIAL]
    shares = [len(_sessions_of(asked.gold) & found) / len(_sessions_of(asked.gold)) for asked, found in scored]
    rows = 100 * np.array([[share, float(share > 0)] for share in shares])
    (low, high), _ = bootstrap_intervals(rows, resamples)
    by_category = {
        kind: 100 * mean([share for share, (asked, _) in zip(shares, scored, strict=True) if asked.kind == kind])
        for kind in sorted({asked.kind for asked, _ in scored})
    }
    each = "  ".join(f"{kind} {share:.1f}" for kind, share in by_category.items())
    sessions = mean([len(found) for _, found in scored])
    note = f"{low:.1f}-{high:.1f}  any {rows[:, 1].mean():.1f}  {each}  ({sessions:.1f} sessions found)"
    section = f"recall@10 of evidence sessions, categories 1-4 ({len(scored)} questions)"
    report.add(section, name, float(rows[:, 0].mean()), "%", note=note)
    report.details.setdefault("recall of sessions", {})[name] = {
        "mean": float(rows[:, 0].mean()),
        "interval_95": (low, high),
        "any": float(rows[:, 1].mean()),
        "by category": by_category,
    }


def part(one: Conversation, sessions: int | None, questions: int | None) -> Conversation:
    """Return the first sessions of a conversation, and the first questions that they answer."""
    kept = one.sessions[:sessions]
    known = {turn.id for session in kept for turn in session}
    facts = {turn: facts for turn, facts in one.facts.items() if turn in known}
    return dataclasses.replace(one, sessions=kept, facts=facts, questions=answered(one.questions, known, questions))
