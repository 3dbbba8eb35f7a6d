"""Command line of the benchmarks: ``python -m benchmarks [VERB]`` measures, prints tables and writes bench-results/.

``python -m benchmarks compare BEFORE AFTER`` runs two commits alternately; its status is 1 if the second is slower by
more than a tenth.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    adversarial,
    chart,
    cold,
    compare,
    context,
    converse,
    cost,
    crash,
    crashes,
    erasure,
    feedback,
    fuzz,
    graph,
    langgraph_store,
    loop,
    paths,
    recall,
    retraction,
    route,
    scale,
    sqlite_store,
    standby,
    together,
    tracing,
)
from benchmarks.plan import FULL, QUICK, ROOT, Plan
from benchmarks.report import Report

BENCHMARKS: dict[str, Callable[[Plan], Report]] = {
    "adversarial": adversarial.measure,
    "cold": cold.measure,
    "recall": recall.measure,
    "context": context.measure,
    "crash": crash.measure,
    "crashes": crashes.measure,
    "erasure": erasure.measure,
    "feedback": feedback.measure,
    "fuzz": fuzz.measure,
    "graph": graph.measure,
    "paths": paths.measure,
    "converse": converse.measure,
    "cost": cost.measure,
    "langgraph_store": langgraph_store.measure,
    "loop": loop.measure,
    "retract": retraction.measure,
    "route": route.measure,
    "scale": scale.measure,
    "sqlite_store": sqlite_store.measure,
    "standby": standby.measure,
    "together": together.measure,
    "tracing": tracing.measure,
}
LONG = {"scale"}
"""Those that fill a disk for an hour; they run when they are named."""


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    if options.verb == "compare":
        sys.exit(_compare(options))
    chosen = [name for name in BENCHMARKS if name not in LONG] if options.verb == "all" else [options.verb]
    for name in chosen:
        report = BENCHMARKS[name](_plan(options))
        path = report.write(options.out)
        print(f"\n{report.table()}\n{path}\n{_draw_chart(report, options.out)}", flush=True)


def _compare(options: argparse.Namespace) -> int:
    """Compare two commits; return 1 if a workload became slower, else 0."""
    if len(options.commits) != 2:
        raise SystemExit("compare takes two commits, for example: python -m benchmarks compare HEAD~1 HEAD")
    report = compare.compare(_plan(options), *options.commits)
    print(f"\n{report.table()}\n{report.write(options.out)}", flush=True)
    return int(any(row.verdict == "MISS" for row in report.rows))


def _draw_chart(report: Report, folder: Path) -> str:
    """Draw the chart of a report and return its path; None if the report has no chart."""
    if report.name != "recall" or not report.details:
        return ""
    try:
        return f"{chart.draw(report.details, folder / 'recall.png')}\n"
    except ModuleNotFoundError as error:
        return f"no chart: {error.name} is not installed\n"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("verb", nargs="?", default="all", choices=[*BENCHMARKS, "all", "compare"])
    parser.add_argument("commits", nargs="*", help="the two commits that compare runs")
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute in all")
    sizes = "numbers of memories for cost, as in 0,1000,10000,100000, of others' for scale, of relations for graph"
    parser.add_argument("--sizes", type=_sizes, help=sizes)
    parser.add_argument("--store", choices=FULL.stores, help="scale of this store only")
    models = "by name or folder, that recall measures; repeat it for several"
    parser.add_argument("--embedder", action="append", default=[], metavar="NAME", help=f"embedder, {models}")
    parser.add_argument("--reranker", action="append", default=[], metavar="NAME", help=f"reranker, {models}")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results", help="folder of the JSON files")
    return parser.parse_args(arguments)


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else FULL
    if options.sizes:
        plan = dataclasses.replace(plan, sizes=options.sizes, big=options.sizes[-1])
        some = tuple(filter(None, options.sizes))
        plan = dataclasses.replace(plan, relations=some or plan.relations, crowds=some or plan.crowds)
        plan = dataclasses.replace(plan, server_crowds=some or plan.server_crowds)
    if options.store:
        plan = dataclasses.replace(plan, stores=(options.store,))
    return dataclasses.replace(plan, embedders=tuple(options.embedder), rerankers=tuple(options.reranker))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(part) for part in text.split(",")}))


if __name__ == "__main__":
    main(sys.argv[1:])
