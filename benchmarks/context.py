"""Precision of a context: the share of the memories in it that bear on the query, and the share of those that came.

Each query is asked with the calibrated floor and without one, through the public API. The cases are facts of invented
people and requests to their agents (`benchmarks/data`): the floor was calibrated on `dev`, and `held` is only scored.
LoCoMo and BEAM add turns and long messages.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import beam, locomo
from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from benchmarks.cost import real_embedder
from benchmarks.plan import Plan
from benchmarks.remembered import add_occasion
from benchmarks.report import Bar, Report, mean
from benchmarks.timed import CachedEmbedder
from mem0_core import Memory
from mem0_core.interfaces import Embedder

__all__ = ["CASES", "Injected", "load_cases", "measure", "score"]

CASES = {name: Path(__file__).parent / "data" / f"context_cases_{name}.json" for name in ("dev", "held")}
_BARS = {"precision": 40.0, "recall": 88.0}
_FLOORS: Mapping[str, float | None] = {"calibrated floor": None, "no floor": 0.0}


@dataclass(frozen=True, slots=True)
class Injected:
    """Memories in the context of one query: wanted ones among them, all of them, and all wanted ones."""

    right: int
    shown: int
    wanted: int


def measure(plan: Plan) -> Report:
    report = Report("context")
    embedder = real_embedder()
    if embedder is None:
        report.skip("context", "the weights or libraries of OnnxEmbedder are not installed")
        return report
    cached = CachedEmbedder(embedder)
    for name, path in CASES.items():
        cases = load_cases(path).part(None, plan.questions)
        score(report, cases, cached, _BARS if name == "held" and plan.scores_all else {})
    for dataset in _conversations(plan):
        score(report, dataset, cached)
    return report


def load_cases(path: Path) -> Dataset:
    """Return facts, each with its own day, and the queries with the facts that bear on them."""
    given = json.loads(path.read_text(encoding="utf-8"))
    return Dataset(f"cases, {given['name']}", "fact", tuple(map(_read_person, given["people"])), unanswerable="none")


def score(report: Report, dataset: Dataset, embedder: Embedder, bars: Mapping[str, float] | None = None) -> None:
    """Ask every question of a dataset, and fill the report."""
    found = _inject(dataset, embedder)
    for floor, injected in found.items():
        asked = [one for one in injected if one.wanted]
        figures = {
            "precision": 100 * mean([one.right / one.shown if one.shown else 0.0 for one in asked]),
            "precision of all lines": 100 * sum(one.right for one in asked) / max(1, sum(one.shown for one in asked)),
            "recall": 100 * mean([one.right / one.wanted for one in asked]),
        }
        for name, value in figures.items():
            least = (bars or {}).get(name) if floor == "calibrated floor" else None
            bar = None if least is None else Bar(">=", least)
            report.add(f"{dataset.name}, {floor}", name, value, "%", bar, f"{len(asked)} queries")
        report.add(f"{dataset.name}, {floor}", "memories shown", mean([one.shown for one in asked]))
        if strange := [one.shown for one in injected if not one.wanted]:
            report.add(f"{dataset.name}, {floor}", "shown where nothing bears on the query", mean(strange))


def _conversations(plan: Plan) -> Sequence[Dataset]:
    found = []
    if locomo.PATH.exists():
        talks = locomo.load(locomo.PATH)[: plan.conversations]
        found.append(locomo.dataset(talks).part(plan.sessions, plan.questions))
    if beam.PATH.exists():
        found.append(beam.dataset(beam.load(beam.PATH)[: plan.chats]).part(plan.batches, None))
    return found


def _read_person(person: Mapping[str, Any]) -> Collection:
    occasions = tuple(Occasion((Unit(one["id"], one["text"]),), said_at=one["date"]) for one in person["memories"])
    questions = tuple(
        Question(case["query"], "request" if case["wanted"] else "none", tuple(case["wanted"]))
        for case in person["cases"]
    )
    return Collection(person["id"], occasions, questions)


def _inject(dataset: Dataset, embedder: Embedder) -> dict[str, list[Injected]]:
    """Return the counts of the context of each question, by floor."""
    found: dict[str, list[Injected]] = {floor: [] for floor in _FLOORS}
    for collection in dataset.collections:
        with (
            tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder,
            Memory({"path": Path(folder), "durability": "process"}, embedder=embedder) as memory,
        ):
            units = _add(memory, collection)
            for question in collection.questions:
                if not dataset.scored(question) and question.kind != "none":
                    continue
                for floor, threshold in _FLOORS.items():
                    seen = memory.context(
                        question.text, user_id=collection.name, recent=0, threshold=threshold, max_tokens=10**9
                    )
                    shown = [units[each["id"]] for each in seen["memories"]]
                    gold = set(question.gold)
                    right = sum(not gold.isdisjoint(ids) for ids in shown)
                    wanted = sum(not gold.isdisjoint(ids) for ids in units.values())
                    found[floor].append(Injected(right, len(shown), wanted))
    return found


def _add(memory: Memory, collection: Collection) -> dict[str, set[str]]:
    """Add a collection; return for each memory the ids of its units."""
    units: dict[str, set[str]] = {}
    for occasion in collection.occasions:
        ids = add_occasion(memory, collection.name, occasion)
        for unit, memory_id in zip(occasion.units, ids, strict=True):
            units.setdefault(memory_id, set()).add(unit.id)
    return units
