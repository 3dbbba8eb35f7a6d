"""kill -9 in the middle of adds: what was acknowledged is there, whole, and everything agrees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mem0_core.testing import HashEmbedder
from tests.support import open_memory

CRASH_PROCESS = Path(__file__).with_name("crash_process.py")
ROOT = Path(__file__).parents[3]
WORKER_PROCESS = Path(__file__).with_name("worker_process.py")


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run_program(*arguments: str, timeout: float | None = None) -> dict[str, Any]:
    """Run a program of the repository and return the JSON that it prints."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    print(report)  # noqa: T201 - shown with -s, and when the test fails
    return report


def killed(folder: Path, runs: int, *graph: str) -> dict[str, int]:
    """Kill this many writers and return the problems found, by kind."""
    report = run_program(str(CRASH_PROCESS), str(folder), str(runs), "7", *graph, timeout=500)
    assert report.pop("runs") == runs
    assert report.pop("killed_before_the_first_add") < runs, "no writer lived long enough to be a test"
    assert report.pop("memories")
    return {name: count for name, count in report.items() if count}


@needs_fork
@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost(tmp_path: Path, runs: int) -> None:
    assert killed(tmp_path, runs) == {}
    with open_memory(tmp_path, embedder=HashEmbedder(dims=32)) as memory:
        everything = memory.get_all(user_id="user 1", limit=None)["results"]
        for entry in everything[-5:]:
            assert memory.search(entry["memory"], user_id="user 1", limit=1)["results"][0]["id"] == entry["id"]


@needs_fork
@pytest.mark.slow
def test_a_write_of_any_kind_that_is_killed_is_done_or_not_done() -> None:
    report = run_program("-m", "benchmarks.faults.kills", "25")
    assert sum(report["kills"].values()) == 25
    assert report["problems"] == []


@needs_fork
@pytest.mark.parametrize(
    ("graph", "runs"),
    [
        ("sqlite", 5),
        pytest.param("sqlite", 100, marks=pytest.mark.slow),
        pytest.param("ladybug", 10, marks=pytest.mark.slow),
    ],
)
def test_no_relation_is_without_its_memory_and_no_memory_without_its_relation(
    tmp_path: Path, graph: str, runs: int
) -> None:
    assert killed(tmp_path, runs, graph) == {}


@needs_fork
@pytest.mark.parametrize("jobs", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_what_was_put_off_is_learnt_once_and_in_order_whoever_is_killed(tmp_path: Path, jobs: int) -> None:
    """Two workers in two processes, one of them killed every 100 ms."""
    assert worked(tmp_path, jobs, "3") == {}


@needs_fork
@pytest.mark.needs_server
@pytest.mark.parametrize("half", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_fleet_on_postgres_loses_and_doubles_nothing(tmp_path: Path, postgres_server_url: str, half: int) -> None:
    """Four worker processes, as many adds as jobs, one of the four killed every second."""
    assert worked(tmp_path, half, "3", "4", str(half), "1.0" if half > 100 else "0.5", postgres_server_url) == {}


def worked(folder: Path, jobs: int, *more: str) -> dict[str, int]:
    """Kill workers and return the problems found; stops if no worker makes progress."""
    report = run_program(str(WORKER_PROCESS), str(folder), str(jobs), *more)
    assert report.pop("jobs") == jobs
    assert report.pop("kills") > 0
    return {name: count for name, count in report.items() if count}
