"""Turn-level recall on LoCoMo: every turn is kept as it was said, every question asked of its conversation.

The memory is used by its front door only (`add` with ``infer=False``, `search`); gold turns are told by the ids that
`add` returned, so that two turns which are one memory are one hit. Baselines rank the same turns in the same run.

R@k is the share of a question's gold turns among the first k, averaged over the questions that have any; all@10 the
share of questions with all of them among the first ten; MRR looks at the first hundred.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mem0_core import Memory
from mem0_core.ports import Embedder
from tests.benchmarks import locomo
from tests.benchmarks.bm25 import BM25
from tests.benchmarks.cost import real_embedder
from tests.benchmarks.locomo import CATEGORIES, Conversation, Question, Turn
from tests.benchmarks.plan import Plan
from tests.benchmarks.report import Bar, Report
from tests.benchmarks.timed import CachedEmbedder

__all__ = ["SCORED", "bare", "by_memory", "intervals", "measure", "score"]

DEPTH = 100
MEASURES = ("R@5", "R@10", "R@20", "all@10", "MRR")
SCORED = (1, 2, 3, 4)
ADVERSARIAL = 5
BAR = Bar(">=", 44)
OURS = "Memory, turns as they were said, name=speaker"

Form = Callable[[Turn], str]
Ranking = list[list[str]]
"""For each question of a conversation the ids of its turns, best first; ``|`` joins those of one memory."""


def bare(turn: Turn) -> str:
    return turn.text


def spoken(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


def captioned(form: Form) -> Form:
    """The same, with what a model saw in the turn's image."""
    return lambda turn: f"{form(turn)} [shares {turn.caption}]" if turn.caption else form(turn)


def measure(plan: Plan) -> Report:
    report = Report("recall")
    section = "LoCoMo, turns"
    if not locomo.PATH.exists():
        report.skip(section, "the evaluation data is not here (../shared/data/locomo_dev.json.gz)")
        return report
    embedder = real_embedder()
    if embedder is None:
        report.skip(section, "the weights or libraries of OnnxEmbedder are not installed")
        return report
    conversations = [
        dataclasses.replace(conversation, questions=conversation.questions[: plan.questions])
        for conversation in locomo.load()[: plan.conversations]
    ]
    whole = plan.conversations is None and plan.questions is None
    return score(report, conversations, embedder, resamples=plan.resamples, bar=BAR if whole else None)


def score(
    report: Report,
    conversations: Sequence[Conversation],
    embedder: Embedder,
    *,
    resamples: int = 2_000,
    bar: Bar | None = None,
) -> Report:
    """Rank with the memory and the baselines, and fill the report."""
    cached = CachedEmbedder(embedder)
    report.details["data"] = _counts(conversations)
    for name, rank in _rankers(cached).items():
        print(f"recall: {name}", file=sys.stderr, flush=True)
        found = _Scores([(question, ranked) for one in conversations for question, ranked in _ranked(one, rank)])
        _report_rows(report, name, found, resamples, bar if name == OURS else None)
    return report


def _rankers(embedder: Embedder) -> dict[str, Callable[[Conversation], Ranking]]:
    return {
        OURS: lambda one: by_memory(one, embedder, bare),
        f"{OURS}, with captions": lambda one: by_memory(one, embedder, captioned(bare)),
        "Memory, content 'speaker: text', no name": lambda one: by_memory(one, embedder, spoken, named=False),
        "Memory, content 'speaker: text', no name, with captions": lambda one: by_memory(
            one, embedder, captioned(spoken), named=False
        ),
        "NumPy MiniLM, the turn alone": lambda one: _by_vectors(one, embedder, bare),
        "NumPy MiniLM, 'speaker: text'": lambda one: _by_vectors(one, embedder, spoken),
        "NumPy MiniLM, the turn alone, names cut from the question": lambda one: _by_vectors(
            _without_names(one), embedder, bare
        ),
        "NumPy MiniLM, 'speaker: text', names cut from the question": lambda one: _by_vectors(
            _without_names(one), embedder, spoken
        ),
        "BM25, the turn alone": lambda one: _by_words(one, bare),
        "BM25, 'speaker: text'": lambda one: _by_words(one, spoken),
        "BM25, 'speaker: text' with captions": lambda one: _by_words(one, captioned(spoken)),
    }


def _without_names(one: Conversation) -> Conversation:
    """Its questions without the speakers' names: they are about one of the two in any case."""
    names = re.compile(rf"\b({'|'.join({re.escape(turn.speaker) for turn in one.turns})})('s)?\b", re.IGNORECASE)
    cut = [dataclasses.replace(question, text=names.sub("", question.text)) for question in one.questions]
    return dataclasses.replace(one, questions=tuple(cut))


def _ranked(one: Conversation, rank: Callable[[Conversation], Ranking]) -> Iterable[tuple[Question, list[str]]]:
    return zip(one.questions, rank(one), strict=True)


def _counts(conversations: Sequence[Conversation]) -> dict[str, Any]:
    questions = [question for one in conversations for question in one.questions]
    return {
        "conversations": [one.name for one in conversations],
        "turns": sum(len(one.turns) for one in conversations),
        "questions": len(questions),
        "questions without gold": sum(not question.gold for question in questions),
    }


# --- rankings ----------------------------------------------------------------------------------------------------


def by_memory(one: Conversation, embedder: Embedder, form: Form, *, named: bool = True) -> Ranking:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory({"path": Path(folder), "durability": "process"}, embedder=embedder) as memory,
    ):
        turns_of = _remember(memory, one, form, named)
        return [_recalled(memory, one.name, question.text, turns_of) for question in one.questions]


def _remember(memory: Memory, one: Conversation, form: Form, named: bool) -> dict[str, list[str]]:
    """Add session by session; returns the turns of each memory."""
    turns_of: dict[str, list[str]] = {}
    first = one.turns[0].speaker
    for session in filter(None, one.sessions):
        messages = [
            {
                "role": "user" if turn.speaker == first else "assistant",
                "name": turn.speaker if named else None,
                "content": form(turn),
                "metadata": {"dia_id": turn.id},
            }
            for turn in session
        ]
        added = memory.add(messages, user_id=one.name, infer=False, timestamp=session[0].said_at)
        for turn, entry in zip(session, added["results"], strict=True):
            turns_of.setdefault(entry["id"], []).append(turn.id)
    return turns_of


def _recalled(memory: Memory, user: str, question: str, turns_of: Mapping[str, list[str]]) -> list[str]:
    """The turns of each memory found."""
    found = memory.search(question, user_id=user, limit=DEPTH)["results"]
    return ["|".join(turns_of[entry["id"]]) for entry in found]


def _by_vectors(one: Conversation, embedder: Embedder, form: Form) -> Ranking:
    vectors = embedder.embed([form(turn) for turn in one.turns])
    queries = embedder.embed([question.text for question in one.questions], kind="query")
    return [_best(one, scores) for scores in queries @ vectors.T]


def _by_words(one: Conversation, form: Form) -> Ranking:
    words = BM25([form(turn) for turn in one.turns])
    return [_best(one, words.scores(question.text)) for question in one.questions]


def _best(one: Conversation, scores: NDArray[Any]) -> list[str]:
    turns = one.turns
    return [turns[place].id for place in np.argsort(-scores, kind="stable")[:DEPTH]]


# --- scores ------------------------------------------------------------------------------------------------------


class _Scores:
    """The measures of every question that has gold, one row a question."""

    def __init__(self, answered: Sequence[tuple[Question, list[str]]]) -> None:
        scored = [(question, ranked) for question, ranked in answered if question.gold]
        self._categories = np.array([question.category for question, _ in scored])
        self._values = np.array([_measures(question.gold, ranked) for question, ranked in scored])

    def of(self, categories: Sequence[int]) -> NDArray[np.float64]:
        """(questions, measures), in percent."""
        rows: NDArray[np.float64] = 100 * self._values[np.isin(self._categories, categories)]
        return rows


def _measures(gold: Sequence[str], ranked: Sequence[str]) -> list[float]:
    """The values of `MEASURES` for one question."""
    rank_of = {turn: rank for rank, turns in reversed(list(enumerate(ranked, 1))) for turn in turns.split("|")}
    ranks = [rank_of.get(turn, DEPTH + 1) for turn in gold]
    shares = [sum(rank <= k for rank in ranks) / len(ranks) for k in (5, 10, 20)]
    first = min(ranks)
    return [*shares, float(max(ranks) <= 10), 1 / first if first <= DEPTH else 0.0]


def _report_rows(report: Report, name: str, scores: _Scores, resamples: int, bar: Bar | None) -> None:
    """R@10 as the value of a row for all scored categories and one for each; the other measures beside it."""
    groups: dict[str, Sequence[int]] = {"categories 1-4": SCORED}
    groups |= {f"category {number}, {label}": (number,) for number, label in CATEGORIES.items()}
    for group, categories in groups.items():
        rows = scores.of(categories)
        if not len(rows):
            continue
        means = dict(zip(MEASURES, rows.mean(axis=0).tolist(), strict=True))
        bounds = dict(zip(MEASURES, intervals(rows, resamples), strict=True))
        low, high = bounds["R@10"]
        others = "  ".join(f"{label} {means[label]:4.1f}" for label in MEASURES if label != "R@10")
        aside = ", not in the above" if categories == (ADVERSARIAL,) else ""
        section = f"R@10, {group} ({len(rows)} questions{aside})"
        report.add(
            section, name, means["R@10"], "%", bar if categories == SCORED else None, f"{low:.1f}-{high:.1f}  {others}"
        )
        found = {label: {"mean": means[label], "interval_95": bounds[label]} for label in MEASURES}
        report.details.setdefault(name, {})[group] = found


def intervals(rows: NDArray[np.float64], resamples: int) -> list[tuple[float, float]]:
    """For each measure the middle 95 % of its means over questions drawn with replacement."""
    drawn = np.random.default_rng(5).integers(len(rows), size=(resamples, len(rows)))
    bounds = [np.percentile(column[drawn].mean(axis=1), [2.5, 97.5]) for column in rows.T]
    return [(float(low), float(high)) for low, high in bounds]
