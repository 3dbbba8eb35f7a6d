"""Recall on real texts: turns of LoCoMo, messages of BEAM, passages of MuSiQue.

The memory is used through its public API only (`remembered`); the baselines rank the same units in the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from benchmarks import ablation, beam, gate, locomo, musique
from benchmarks.baselines import Baseline
from benchmarks.collection import Dataset
from benchmarks.cost import real_embedder
from benchmarks.plan import Plan
from benchmarks.remembered import Found, Remembered, Search, remembered
from benchmarks.report import Bar, Report, median
from benchmarks.scores import MEASURES, Figure, Scores
from benchmarks.timed import CachedEmbedder, TimedEmbedder, clocks
from mem0_core.domain.recipes import HYBRID, MEM0, OFFLINE
from mem0_core.evaluation.receipt import describe_models, hash_path
from mem0_core.interfaces import Embedder

__all__ = ["BARS", "FUSED", "OURS", "PLAIN", "measure", "score"]

OURS = "Memory, the default (hybrid)"
PLAIN = "Memory, recipe mem0"
FUSED = "RRF k=60 of both"
RELATED = "with relations, read by rules"
DEFAULT_EMBEDDER = "onnx"
_SOURCES: Mapping[str, Any] = {"LoCoMo": locomo, "BEAM": beam, "MuSiQue": musique}  # modules with their PATH
BARS: Mapping[str, Mapping[str, float]] = {
    "LoCoMo": {"R@10": 80, "R@5": 70, "MRR": 60},
    "BEAM": {"R@10": 62},
    "MuSiQue": {"R@5": 64},
}


def measure(plan: Plan) -> Report:
    report = Report("recall")
    datasets = load_datasets(plan)
    for name in [name for name in BARS if name not in datasets]:
        report.skip(name, "the evaluation data is not here (../shared/data)")
    for name in plan.embedders or (DEFAULT_EMBEDDER,) if datasets else ():
        _measure_embedder(report, plan, datasets, name)
    return report


def _measure_embedder(report: Report, plan: Plan, datasets: Mapping[str, Dataset], name: str) -> None:
    """Score one embedder, by its name or folder, on all datasets; the bars are those of the default."""
    embedder = real_embedder(name)
    is_default = not plan.embedders and not plan.rerankers
    for dataset in datasets.values():
        if embedder is None:
            report.skip(dataset.name, f"the weights or libraries of the embedder {name} are not installed")
            continue
        labelled = dataset if is_default else replace(dataset, name=f"{dataset.name} by {name}")
        bars = BARS[dataset.name] if plan.scores_all and is_default else {}
        strangers = gate.strangers(dataset, list(datasets.values()))
        score(report, labelled, embedder, plan.resamples, bars, strangers, plan.rerankers)
        report.details[labelled.name] |= {
            "models": describe_models(embedder, None, (name, *plan.rerankers)),
            "file": hash_path(_SOURCES[dataset.name].PATH),
        }


def load_datasets(plan: Plan) -> dict[str, Dataset]:
    """Return the datasets with files on this machine, reduced as planned."""
    found = []
    if locomo.PATH.exists():
        conversations = locomo.dataset(locomo.load(locomo.PATH)[: plan.conversations])
        found.append(conversations.part(plan.sessions, plan.questions))
    if beam.PATH.exists():
        found.append(beam.dataset(beam.load(beam.PATH)[: plan.chats]).part(plan.batches, None))
    if musique.PATH.exists():
        found.append(musique.dataset(musique.load(musique.PATH, plan.multihops)))
    return {dataset.name: dataset for dataset in found}


def score(
    report: Report,
    dataset: Dataset,
    embedder: Embedder,
    resamples: int,
    bars: Mapping[str, float] | None = None,
    strangers: Sequence[str] = (),
    rerankers: Sequence[str] = (),
) -> None:
    """Rank with the memory and with the baselines, and fill the report.

    Args:
        bars: the least that the default must reach, by measure.
        strangers: questions that the dataset does not answer.
        rerankers: names or folders of rerankers, each of which the default is also measured with.
    """
    ranked = _rank(dataset, TimedEmbedder(CachedEmbedder(embedder)), strangers, rerankers)
    scores = _scores(dataset, ranked.systems)
    _system_rows(report, dataset, ranked.systems, scores, resamples)
    _lead_rows(report, dataset, scores, resamples)
    _kind_rows(report, dataset, scores, resamples)
    for label, least in (bars or {}).items():
        figure = scores[OURS].figures(resamples)[label]
        name = f"{dataset.name}, {label}"
        report.add("the default must reach", name, figure[0], "%", Bar(">=", least), _span(figure))
    gate.rows(report, dataset, ranked.systems[OURS].best, ranked.strange)
    changed, related = _scores(dataset, ranked.changed), _scores(dataset, ranked.related)
    ablation.rows(report, dataset, scores[OURS], changed, resamples)
    ablation.rows(report, dataset, changed[RELATED], related, resamples, f", {RELATED}")


def _say(what: str) -> None:
    print(f"recall: {what}", file=sys.stderr, flush=True)


# --- ranking -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """The results for each question of a dataset, and milliseconds without the embedding."""

    ranked: list[Sequence[str]] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


class Ranked(NamedTuple):
    """All runs over one dataset: of each system, of each change of the default, and of changes to relations.

    `strange` are the best scores for questions that the dataset does not answer.
    """

    systems: dict[str, Run]
    changed: dict[str, Run]
    related: dict[str, Run]
    strange: list[float]


def _rank(dataset: Dataset, timed: TimedEmbedder, strangers: Sequence[str], rerankers: Sequence[str]) -> Ranked:
    def runs(searches: Mapping[str, Search]) -> dict[str, Run]:
        return {name: _run(dataset, timed, name, search) for name, search in searches.items()}

    _say(f"{dataset.name}: adding")
    with remembered(dataset, timed) as memory:
        systems = runs(_systems(dataset, memory, timed))
        systems |= runs({f"{OURS} + {name}": memory.with_reranker(name).by(HYBRID) for name in rerankers})
        changed = runs({name: memory.by(recipe) for name, recipe in ablation.variants(HYBRID).items()})
        ask = memory.by(HYBRID)
        strange = [ask(one.name, text).best for one in dataset.collections for text in strangers]
    _say(f"{dataset.name}: adding, {RELATED}")
    with remembered(dataset, timed, relations=True) as memory:
        changed |= runs({RELATED: memory.by(HYBRID)})
        related = runs({name: memory.by(recipe) for name, recipe in ablation.without_relations(HYBRID).items()})
    return Ranked(systems, changed, related, strange)


def _systems(dataset: Dataset, memory: Remembered, embedder: Embedder) -> dict[str, Search]:
    plain = {one.name: Baseline(one, embedder) for one in dataset.collections}
    return {
        OURS: memory.by(HYBRID),
        PLAIN: memory.by(MEM0),
        "Memory, recipe offline": memory.by(OFFLINE),
        "NumPy, MiniLM": lambda user, question: Found(plain[user].dense(question)),
        "rank-bm25, Okapi": lambda user, question: Found(plain[user].bm25(question)),
        FUSED: lambda user, question: Found(plain[user].fused(question)),
    }


def _run(dataset: Dataset, timed: TimedEmbedder, name: str, search: Search) -> Run:
    _say(f"{dataset.name}: {name}")
    run = Run()
    for collection, question in dataset.questions:
        timed.take()
        started = clocks()
        found = search(collection.name, question.text)
        ended, embedding = clocks(), timed.take()
        run.took.append(1e3 * (ended.wall - started.wall - embedding.wall))
        run.cpu.append(1e3 * (ended.cpu - started.cpu - embedding.cpu))
        run.ranked.append(found.ranked)
        run.best.append(found.best)
    return run


def _scores(dataset: Dataset, runs: Mapping[str, Run]) -> dict[str, Scores]:
    return {name: Scores(dataset, run.ranked) for name, run in runs.items()}


# --- rows --------------------------------------------------------------------------------------------------------


def _system_rows(
    report: Report, dataset: Dataset, runs: Mapping[str, Run], scores: Mapping[str, Scores], resamples: int
) -> None:
    """Return the headline of each system as the value, and the other measures next to it."""
    section = f"{_title(dataset)}: {dataset.headline}"
    for name, run in runs.items():
        figures = scores[name].figures(resamples)
        others = "  ".join(f"{label} {figures[label][0]:4.1f}" for label in MEASURES if label != dataset.headline)
        wall, cpu = median(run.took), median(run.cpu)
        note = f"{_span(figures[dataset.headline])}  {others}  p50 {wall:.2f} ms, CPU {cpu:.2f}"
        report.add(section, name, figures[dataset.headline][0], "%", note=note)
        _detail(report, dataset, "systems")[name] = {**figures, "p50 ms": wall, "p50 CPU ms": cpu}
    report.details[dataset.name] |= {
        "collections": [one.name for one in dataset.collections],
        "units": sum(len(one.units) for one in dataset.collections),
        "questions": {"all": len(list(dataset.questions)), "scored": len(scores[OURS].of())},
        "headline": dataset.headline,
    }


def _lead_rows(report: Report, dataset: Dataset, scores: Mapping[str, Scores], resamples: int) -> None:
    """Return the lead of the default on the same questions: its interval is narrower than those of both systems."""
    section = f"{dataset.name}, {dataset.headline} of the default above that of"
    for name in [name for name in scores if name != OURS]:
        figure = scores[OURS].above(scores[name], resamples)[dataset.headline]
        report.add(section, name, round(figure[0], 9), "points", note=_span(figure))
        _detail(report, dataset, "lead")[name] = figure


def _kind_rows(report: Report, dataset: Dataset, scores: Mapping[str, Scores], resamples: int) -> None:
    section = f"{dataset.name}, {dataset.headline} by kind of question: {OURS}"
    kinds = {question.kind for _, question in dataset.questions if question.gold}
    for kind in sorted(kinds, key=lambda kind: (kind == dataset.unanswerable, kind)):
        by_system = {name: scores[name].figures(resamples, kind) for name in (OURS, PLAIN, FUSED)}
        others = "  ".join(f"{name} {by_system[name][dataset.headline][0]:.1f}" for name in (PLAIN, FUSED))
        aside = "; not in the score" if kind == dataset.unanswerable else ""
        figure = by_system[OURS][dataset.headline]
        count = len(scores[OURS].of(kind))
        report.add(section, f"{kind} ({count})", figure[0], "%", note=f"{_span(figure)}  {others}{aside}")
        _detail(report, dataset, "kinds")[kind] = {"questions": count, **by_system}


def _title(dataset: Dataset) -> str:
    units = sum(len(one.units) for one in dataset.collections)
    questions = sum(dataset.scored(question) for _, question in dataset.questions)
    return f"{dataset.name}, {questions} questions over {units:,} {dataset.unit}s"


def _span(figure: Figure) -> str:
    _, low, high = figure
    return f"{low:.1f} to {high:.1f}"


def _detail(report: Report, dataset: Dataset, name: str) -> dict[str, Any]:
    found: dict[str, Any] = report.details.setdefault(dataset.name, {}).setdefault(name, {})
    return found
