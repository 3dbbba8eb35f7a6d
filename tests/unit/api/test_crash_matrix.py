"""Verbs aborted at their boundaries leave the state before or after the call, and no problem for `doctor`.

The slow tests take all boundaries of kills, and a fixed share of other faults. ``python -m benchmarks crashes`` takes
all of them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.faults.matrix import rotate
from benchmarks.faults.states import list_exposed, recovered_digest

ROOT = Path(__file__).parents[3]
NO_SERVER = 3
"""Exit status of ``python -m benchmarks.faults`` where no PostgreSQL can be started."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def abort(share: int, fault: str, *verbs: str, store: str = "sqlite") -> tuple[int, list[str]]:
    """Abort verbs at a share of their boundaries, in a process whose files are watched; return aborts and problems."""
    done = run_python("-m", "benchmarks.faults", store, fault, str(share), *verbs)
    aborts, problems = json.loads(done.stdout)
    return aborts, problems


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    if done.returncode == NO_SERVER:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done


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
def test_every_verb_aborted_at_every_boundary_is_done_or_not_done() -> None:
    aborts, problems = abort(1, "kill")
    assert aborts > 10_000
    assert problems == []


@pytest.mark.slow
def test_every_verb_aborted_within_every_write_is_done_or_not_done() -> None:
    aborts, problems = abort(1, "torn")
    assert aborts > 2_000
    assert problems == []


def test_a_call_of_two_commits_is_reported_as_half_done(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from benchmarks.faults.matrix import SQLiteMatrix
from benchmarks.faults.verbs import Verb

def add_twice(memory, place):
    for text in ("I like tea.", "I like rice."):
        memory.add(text, user_id="ana", infer=False)

report = SQLiteMatrix(Path({str(tmp_path / "mem0-faults-own")!r})).run(Verb("add_twice", add_twice), range)
print(report.boundaries, report.states, {{problem.partition(":")[0] for problem in report.problems}})
"""
    done = run_python("-c", code)
    boundaries, states, problems = done.stdout.split(maxsplit=2)
    assert int(boundaries) > 100
    assert (int(states), problems.strip()) == (3, "{'half'}")


def test_copies_differ_by_what_is_committed_and_not_by_what_is_written(tmp_path: Path) -> None:
    store, scratch = tmp_path / "store", tmp_path / "scratch"
    store.mkdir()
    log = store / "memory.db-wal"
    with closing(sqlite3.connect(store / "memory.db", isolation_level=None)) as db:
        for sql in ("PRAGMA journal_mode = wal", "PRAGMA cache_size = 1", "CREATE TABLE blobs (content)"):
            db.execute(sql)
        digest, size = recovered_digest(store, scratch), log.stat().st_size
        db.execute("BEGIN")
        db.execute("INSERT INTO blobs VALUES (zeroblob(1000000))")
        assert log.stat().st_size > size
        assert recovered_digest(store, scratch) == digest
        db.execute("COMMIT")
        assert recovered_digest(store, scratch) != digest


def test_a_key_ring_survives_an_abort_of_each_change_and_forgets_no_less() -> None:
    pytest.importorskip("cryptography")
    aborts, problems = json.loads(run_python("-m", "benchmarks.faults.keyrings").stdout)
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
    verbs = ("add_infer", "update_by_query", "delete_all_purge", "erase", "merge")
    aborts, problems = abort(1, "kill", *verbs, store="postgres")
    assert aborts > 2_000
    assert problems == []


@pytest.mark.needs_server
@pytest.mark.slow
def test_a_server_that_crashes_leaves_a_call_done_or_not_done() -> None:
    aborts, problems = abort(20, "crash", "add", "delete_purge", "merge", store="postgres")
    assert aborts > 20
    assert problems == []
