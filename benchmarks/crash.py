"""kill -9 at random moments of a stream of adds: runs the crash process of the tests many times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.plan import ROOT, Plan
from benchmarks.report import Bar, Report

__all__ = ["measure"]

CRASH_PROCESS = ROOT / "tests" / "unit" / "api" / "crash_process.py"
_NONE = Bar("==", 0)
_WRONG = {
    "lost": "acknowledged memories lost",
    "half_adds": "adds of which only a part is there",
    "vectors_wrong": "vectors that disagree with their texts",
    "history_disagrees": "memories whose history disagrees",
    "corrupt": "files that SQLite finds corrupt",
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
        command = [sys.executable, str(CRASH_PROCESS), folder, str(plan.crash_runs), "11"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
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
    return report
