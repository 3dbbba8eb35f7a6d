"""Kill processes at random moments of adds, updates, erasures, merges and migrations, and compare what they left.

``python -m benchmarks.faults.kills RUNS [SEED]`` prints the numbers of kills and problems as JSON.

A run has a store of its own and calls one kind of verb again and again. It reports each call that returned. A run
without a kill gives the state after each call: a killed one must leave the state after its last reported call, or after
the next one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.matrix import run_in_fork, scratch_folder
from benchmarks.faults.states import examine
from benchmarks.faults.verbs import DAY, TEXTS, Place, open_place
from mem0_core import Memory
from mem0_core.admin import transfer
from mem0_core.testing import HashEmbedder

__all__ = ["KINDS", "KillReport", "kill_runs"]

CALLS = 8
"""Calls of a run that is not killed."""

_USER = "ana"


def _add(memory: Memory, place: Place, number: int) -> object:
    text = f"I live in City{number}. I have a dog named Rex{number}."
    return memory.add(text, user_id=_USER, timestamp=DAY)


def _update(memory: Memory, place: Place, number: int) -> object:
    if number == 0:
        return memory.add("I like tea.", user_id=_USER, timestamp=DAY)
    (entry,) = memory.get_all(user_id=_USER)["results"]
    return memory.update(entry["id"], f"I like tea number {number}.")


def _erase(memory: Memory, place: Place, number: int) -> object:
    if number % 3 == 2:
        return memory.erase(user_id=_USER, reason="request 7")
    return memory.add(TEXTS[number % 3], user_id=_USER, timestamp=DAY)


def _merge(memory: Memory, place: Place, number: int) -> object:
    if number < 2:
        return memory.add(TEXTS[-2 + number], user_id=_USER, timestamp=DAY)
    if number % 2:
        return memory.unmerge(str(memory.merges(user_id=_USER)[-1]["id"]))
    return memory.merge("entities", user_id=_USER, names=["Bob", "Robert"], into="Robert", dry_run=False)


def _migrate(memory: Memory, place: Place, number: int) -> object:
    if number % 2 == 0:
        return _add(memory, place, number)
    target = str(place.folder / f"copy{number}")
    with transfer.open_archive(str(place.store)) as source, transfer.open_archive(target, create=True) as archive:
        return transfer.migrate(source, archive, release=True, chunk=4)


KINDS: dict[str, Callable[[Memory, Place, int], object]] = {
    "adds": _add,
    "updates": _update,
    "erasures": _erase,
    "merges": _merge,
    "migrations": _migrate,
}
"""Calls by their kind; each is given the number of the call."""


@dataclass(slots=True)
class KillReport:
    """Kills by kind, and problems by what went wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reference:
    """States after each call, from that of the new store on, and the seconds that one call took."""

    states: list[str]
    seconds: float


def kill_runs(folder: Path, runs: int, *, seed: int = 5) -> KillReport:
    """Kill `runs` processes, as many of each kind."""
    umask = os.umask(0o077)
    examine(_new_place(folder))  # imports all that a run needs, before the forks
    os.umask(umask)
    choices = random.Random(seed)
    report = KillReport()
    references = {kind: _run_whole(folder, kind) for kind in KINDS}
    for run in range(runs):
        kind = list(KINDS)[run % len(KINDS)]
        reference = references[kind]
        place = _new_place(folder)
        reported = _kill(place, kind, choices.randrange(CALLS), choices.uniform(0.0, reference.seconds))
        report.kills[kind] += 1
        report.calls += reported
        report.problems += [f"{problem}: {kind} {run}" for problem in _check(folder, place, kind, reference, reported)]
    return report


def _new_place(folder: Path) -> Place:
    place = Place(folder / "run")
    shutil.rmtree(place.folder, ignore_errors=True)
    place.store.mkdir(parents=True)
    return place


def _run_whole(folder: Path, kind: str) -> _Reference:
    place, found = _new_place(folder), folder / "reference"

    def run() -> None:
        started = time.perf_counter()
        with open_place(place) as memory:
            states = [_state(memory)]
            for number in range(CALLS):
                KINDS[kind](memory, place, number)
                states.append(_state(memory))
        found.write_text(json.dumps([states, (time.perf_counter() - started) / CALLS]), encoding="utf-8")

    assert run_in_fork(run) == 0, f"{kind} do not run"
    return _Reference(*json.loads(found.read_text(encoding="utf-8")))


def _kill(place: Place, kind: str, calls: int, wait: float) -> int:
    """Kill a run some seconds after a number of calls, and return the number of calls that it reported."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.umask(0)
        os.close(read_end)
        try:
            memory = open_place(place)
            for number in range(CALLS):
                KINDS[kind](memory, place, number)
                os.write(write_end, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as reports:
        first = reports.read(calls)
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "the run ended by itself"
        return len(first) + len(reports.read())


def _check(folder: Path, place: Place, kind: str, reference: _Reference, reported: int) -> list[str]:
    """Return the problems of the store that a killed run left."""
    result = folder / "checked"

    def check() -> None:
        found = examine(place)
        problems = [f"doctor {text}" for text in found.findings] + ([f"error {found.error}"] if found.error else [])
        if not found.error:
            with open_place(place) as memory:
                state = _state(memory)
            problems += _compare(state, reference.states, reported)
            if kind == "migrations":
                problems += _compare_copies(place, reference.states, reported)
        result.write_text(json.dumps(problems), encoding="utf-8")

    if run_in_fork(check) != 0:
        return ["error the check itself failed"]
    problems: list[str] = json.loads(result.read_text(encoding="utf-8"))
    return problems


def _compare(state: str, states: list[str], reported: int) -> list[str]:
    if state in states[reported : reported + 2]:
        return []
    return ["lost" if state in states[:reported] else "half"]


def _compare_copies(place: Place, states: list[str], reported: int) -> list[str]:
    """Complete the copy that a kill interrupted, and compare all copies with the states that were copied."""
    problems = []
    for number in range(1, min(reported + 1, CALLS), 2):
        copy = place.folder / f"copy{number}"
        if number >= reported:
            if not copy.exists():
                continue
            _migrate_again(place, number)
        with _open_copy(copy) as memory:
            if _state(memory) != states[number]:
                problems.append("lost" if number < reported else "half")
    return problems


def _migrate_again(place: Place, number: int) -> None:
    with open_place(place) as memory:
        _migrate(memory, place, number)


def _open_copy(folder: Path) -> Memory:
    return Memory({"path": str(folder)}, embedder=HashEmbedder(dims=32), llm=None)


def _state(memory: Memory) -> str:
    """Return memories with their histories, relations and merges, as one text without ids and times."""
    entries = memory.get_all(user_id=_USER, limit=1_000)["results"]
    memories = sorted(
        [one["memory"], [[row["event"], row["old_memory"], row["new_memory"]] for row in memory.history(one["id"])]]
        for one in entries
    )
    relations = sorted(
        [one["source"], one["relationship"], one["destination"]] for one in memory.relations(user_id=_USER)
    )
    return json.dumps([memories, relations, len(memory.merges(user_id=_USER))])


def main(runs: str, seed: str = "5") -> int:
    """Print the kills and problems of some runs."""
    with scratch_folder() as folder:
        report = kill_runs(folder, int(runs), seed=int(seed))
    print(json.dumps({"kills": report.kills, "calls": report.calls, "problems": report.problems}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
