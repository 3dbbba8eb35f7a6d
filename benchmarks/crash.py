"""kill -9 at random moments: of a stream of adds, by the crash process of the tests, and of each kind of write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter

from benchmarks.faults.kills import kill_runs
from benchmarks.faults.matrix import scratch_folder
from benchmarks.plan import ROOT, Plan
from benchmarks.report import Bar, Report

__all__ = ["measure"]

CRASH_PROCESS = "tests.unit.api.crash_process"
_NONE = Bar("==", 0)
_WRONG = {
    "lost": "acknowledged memories lost",
    "half_adds": "adds of which only a part is there",
    "vectors_wrong": "vectors that disagree with their texts",
    "history_disagrees": "memories whose history disagrees",
    "corrupt": "files that SQLite finds corrupt",
}
_WRONG_WRITES = {
    "lost": "calls that returned, and whose changes are missing",
    "half": "calls half done",
    "doctor": "complaints of doctor",
    "error": "stores that do not open",
}


def measure(plan: Plan) -> Report:
    report = Report("crash")
    section = "kill -9 during a stream of adds and deletes"
    if not hasattr(os, "fork"):
        report.skip(section, "this system has no fork")
        return report
    print(f"crash: {plan.crash_runs} runs", file=sys.stderr, flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
        command = [sys.executable, "-m", CRASH_PROCESS, folder, str(plan.crash_runs), "11"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the crash process failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    report.details["crash_process"] = found
    report.add(section, "writers killed", found["runs"], bar=Bar("==", plan.crash_runs))
    for name, label in _WRONG.items():
        report.add(section, label, found[name], bar=_NONE)
    report.add(section, "killed before their first add", found["killed_before_the_first_add"])
    report.add(section, "memories at the end", found["memories"])
    report.add(section, "seconds", time.perf_counter() - started, "s")
    _measure_writes(report, plan.kill_runs)
    return report


def _measure_writes(report: Report, runs: int) -> None:
    """Kill processes during adds, updates, erasures, merges and migrations."""
    section = "kill -9 during adds, updates, erasures, merges and migrations"
    print(f"crash: {runs} kills during each kind of write", file=sys.stderr, flush=True)
    with scratch_folder() as folder:
        found = kill_runs(folder, runs)
    report.details["kills"] = {"kills": found.kills, "problems": found.problems}
    kinds = Counter(problem.partition(" ")[0].rstrip(":") for problem in found.problems)
    report.add(section, "processes killed", found.kills.total(), bar=Bar("==", runs))
    report.add(section, "calls that returned before", found.calls)
    for kind, label in _WRONG_WRITES.items():
        report.add(section, label, kinds[kind], bar=_NONE)
