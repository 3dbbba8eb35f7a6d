"""Abort every verb that writes at each of its boundaries, and look for lost, half and left data.

All of it takes more than an hour, most of it for the crashes of PostgreSQL.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from benchmarks.faults.cancellation import COROUTINES, CancellationMatrix
from benchmarks.faults.injector import Fault
from benchmarks.faults.matrix import MEMORY_FOLDER, SQLiteMatrix, VerbReport, rotate, scratch_folder
from benchmarks.faults.postgres_matrix import SERVER_VERBS, PostgresMatrix
from benchmarks.faults.verbs import VERBS
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from tests.services.postgres_server import PostgresUnavailable, temporary_server

__all__ = ["measure"]

_FAULTS: dict[Fault, str] = {
    "kill": "process killed at every boundary",
    "torn": "process killed in the middle of every write",
    "full": "disk full from every write on",
    "sync": "every sync fails once",
}
_SERVER_FAULTS: dict[Fault, str] = {
    "kill": "client killed before and after each statement is sent",
    "crash": "server crashed before or after a statement is sent",
}
_PROBLEMS = {
    "lost": "acknowledged changes lost",
    "half": "changes half done",
    "doctor": "complaints of doctor",
    "leftover": "files left behind",
    "exposed": "files and folders that other users can access",
    "repeat": "calls that do not complete when repeated",
    "error": "stores that do not open, or calls that fail otherwise",
    "setup": "verbs that could not be examined",
}


def measure(plan: Plan) -> Report:
    """Abort all verbs on both databases at all boundaries, or at a share of them with ``--quick``."""
    report = Report("crashes")
    if not hasattr(os, "fork"):
        report.skip("SQLite", "this system has no fork")
        return report
    share = plan.crash_share

    def choose(count: int) -> Sequence[int]:
        return rotate(count, share, 0)

    with scratch_folder() as folder:
        matrix = SQLiteMatrix(folder)
        for fault, title in _FAULTS.items():
            _measure_fault(report, matrix, fault, f"SQLite, {title}", choose)
    with scratch_folder() as folder:
        cancelled = CancellationMatrix(folder)
        title = "SQLite, coroutine cancelled at every await"
        _measure_fault(report, cancelled, "cancel", title, lambda count: range(count), verbs=COROUTINES)
    _measure_server(report, choose)
    return report


def _measure_server(report: Report, choose: Callable[[int], Sequence[int]]) -> None:
    try:
        with temporary_server(MEMORY_FOLDER) as server, scratch_folder() as folder:
            matrix = PostgresMatrix(folder, server)
            for fault, title in _SERVER_FAULTS.items():
                _measure_fault(report, matrix, fault, f"PostgreSQL, {title}", choose, verbs=SERVER_VERBS)
    except PostgresUnavailable as error:
        report.skip("PostgreSQL", str(error))


def _measure_fault(
    report: Report,
    matrix: SQLiteMatrix,
    fault: Fault,
    section: str,
    choose: Callable[[int], Sequence[int]],
    verbs: Iterable[str] = tuple(VERBS),
) -> None:
    found: list[VerbReport] = []
    for verb in (VERBS[name] for name in verbs):
        found.append(matrix.run(verb, choose, fault=fault))
        print(f"crashes: {fault} {verb.name}: {found[-1].aborted} aborts", file=sys.stderr, flush=True)
    problems = [problem for one in found for problem in one.problems]
    kinds = Counter(problem.partition(":")[0] for problem in problems)
    report.add(section, "verbs", len(found))
    report.add(section, "boundaries", sum(one.boundaries for one in found))
    report.add(section, "aborts", sum(one.aborted for one in found))
    for kind, label in _PROBLEMS.items():
        report.add(section, label, kinds[kind], bar=Bar("==", 0))
    report.details[section] = {"problems": problems, "verbs": {one.verb: one.boundaries for one in found}}
