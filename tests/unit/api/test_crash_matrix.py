"""Verbs aborted at their boundaries leave the state before or after the call, and no problem for `doctor`.

The tests take a fixed share of the boundaries. ``python -m benchmarks crashes`` takes all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.matrix import rotate
from benchmarks.faults.states import list_exposed

ROOT = Path(__file__).parents[3]
NO_SERVER = 3
"""Exit status of ``python -m benchmarks.faults`` where no PostgreSQL can be started."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def abort(share: int, fault: str, *verbs: str, store: str = "sqlite") -> tuple[int, list[str]]:
    """Abort verbs at a share of their boundaries, in a process whose files are watched; return aborts and problems."""
    command = [sys.executable, "-m", "benchmarks.faults", store, fault, str(share), *verbs]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    if done.returncode == NO_SERVER:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    aborts, problems = json.loads(done.stdout)
    return aborts, problems


def test_the_shares_of_all_turns_are_all_boundaries() -> None:
    taken = {at for turn in range(7) for at in rotate(100, 7, turn)}
    assert taken == set(range(100))
    assert all(99 in rotate(100, 7, turn) for turn in range(7))


def test_an_aborted_write_is_done_or_not_done() -> None:
    aborts, problems = abort(40, "kill", "add", "delete", "merge")
    assert aborts > 10
    assert problems == []


def test_a_process_that_really_ends_leaves_a_write_done_or_not_done() -> None:
    aborts, problems = abort(100, "kill", "add", store="killed")
    assert aborts > 2
    assert problems == []


@pytest.mark.slow
def test_every_verb_aborted_at_a_share_of_its_boundaries_is_done_or_not_done() -> None:
    aborts, problems = abort(60, "kill")
    assert aborts > 100
    assert problems == []


@pytest.mark.slow
def test_every_verb_aborted_within_a_write_is_done_or_not_done() -> None:
    aborts, problems = abort(40, "torn")
    assert aborts > 30
    assert problems == []


def test_a_file_that_others_can_read_is_exposed(tmp_path: Path) -> None:
    (tmp_path / "open").touch(mode=0o644)
    (tmp_path / "shut").touch(mode=0o600)
    (tmp_path / "open").chmod(0o604)
    assert list_exposed(tmp_path) == ["open"]


def test_a_cancelled_call_is_done_or_not_done() -> None:
    aborts, problems = abort(1, "cancel", "add", "merge")
    assert aborts > 5
    assert problems == []


def test_a_full_disk_and_a_failed_sync_leave_a_call_done_or_not_done() -> None:
    for fault in ("full", "sync"):
        aborts, problems = abort(40, fault, "add", "update_by_query")
        assert aborts > 1
        assert problems == []


@pytest.mark.slow
def test_every_verb_cancelled_at_every_await_is_done_or_not_done() -> None:
    aborts, problems = abort(1, "cancel")
    assert aborts > 100
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["full", "sync"])
def test_every_verb_on_a_failing_disk_is_done_or_not_done(fault: str) -> None:
    aborts, problems = abort(60, fault)
    assert aborts > 20
    assert problems == []


@pytest.mark.needs_server
@pytest.mark.slow
def test_a_client_that_ends_leaves_a_call_done_or_not_done() -> None:
    aborts, problems = abort(60, "kill", "add_infer", "update_by_query", "erase", "merge", store="postgres")
    assert aborts > 8
    assert problems == []


@pytest.mark.needs_server
@pytest.mark.slow
def test_a_server_that_crashes_leaves_a_call_done_or_not_done() -> None:
    aborts, problems = abort(100, "crash", "add", "delete_purge", store="postgres")
    assert aborts > 2
    assert problems == []
