"""Abort a verb at each of its boundaries, open the store again, and compare it with the states that are allowed.

A process that ends in the middle of a call, as after ``kill -9``, leaves its files as they are: nothing is flushed,
closed or rolled back. So the call runs once, and its files are copied at the chosen boundaries (`Recorder`). With
`kills`, each abort is a process of its own that really ends. Another process then opens the store, runs `doctor`, and
reads every table. Copies that SQLite recovers to the same bytes, and stores with equal tables that failed calls leave,
are examined once. All processes are forked from one
that has imported everything.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sqlite3
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.injector import KILLED, Fault, Injector, Recorder
from benchmarks.faults.python_files import watch_files, watch_statements
from benchmarks.faults.sqlite_vfs import watch_sqlite
from benchmarks.faults.states import (
    Examined,
    digest,
    digest_words,
    examine,
    list_exposed,
    list_files,
    recovered_digest,
)
from benchmarks.faults.verbs import Place, Verb, build_base, open_place
from mem0_core import Mem0Error

__all__ = [
    "ACKNOWLEDGED",
    "COMPLETE",
    "MEMORY_FOLDER",
    "REFUSED",
    "SQLiteMatrix",
    "VerbReport",
    "call_verb",
    "rotate",
    "run_in_fork",
    "scratch_folder",
]

_REPEATED = 5  # of the processes that really end, the call is repeated after each fifth, if it is one transaction
ACKNOWLEDGED = "acknowledged"
COMPLETE = 78
"""Exit status of a process whose call returned."""
REFUSED = 79
"""Exit status of a process whose call raised an error of the library."""
MEMORY_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Folder of files in memory, if the system has one."""


@dataclass(slots=True)
class VerbReport:
    """Results of one verb."""

    verb: str
    boundaries: int
    aborted: int = 0
    states: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str, at: int, label: str, detail: str) -> None:
        self.problems.append(f"{kind}: {self.verb} at {at} ({label}): {detail}")


class SQLiteMatrix:
    """Abort verbs over stores in files.

    Args:
        folder: an empty folder for all stores; by default one in memory, as a kill needs no disk.
        kills: end a process at each boundary, and do not copy the files of one process.
    """

    def __init__(self, folder: Path, *, kills: bool = False) -> None:
        self.folder, self.kills = folder, kills
        self.injector = Injector()
        self._examined: dict[tuple[object, ...], Examined] = {}
        watch_files(self.injector)
        watch_statements(self.injector)
        self.sees_pages = watch_sqlite(self.injector)
        self._base = Place(folder / "base")
        umask = os.umask(0o077)
        build_base(self._base)
        examine(self._copy(self._base, "run"))  # imports what each check needs, before the forks
        os.umask(umask)

    # --- one verb ----------------------------------------------------------------------------------------------------

    def run(self, verb: Verb, choose: Callable[[int], Sequence[int]], *, fault: Fault = "kill") -> VerbReport:
        """Abort a verb at the chosen of its boundaries."""
        base = self._prepare(verb)
        before = self._examine(self._copy(base, "before"), verb.has_snapshots)
        whole = self._copy(base, "whole")
        trace = self._trace(verb, whole, fault)
        after = self._examine(whole, verb.has_snapshots)
        report = VerbReport(verb.name, len(trace))
        if before.error or after.error or after.findings:
            report.add("setup", -1, "", before.error or after.error or str(after.findings))
            return report
        states: set[str] = set()
        for at, left in self._aborts(verb, base, choose(len(trace)), fault, acknowledged=len(trace) - 1):
            states.add(left.state)
            report.aborted += 1
            self._judge(report, verb, at, trace[at], left, before, after)
        report.states = len(states | {before.state, after.state})
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        return report

    def _aborts(
        self, verb: Verb, base: Place, chosen: Sequence[int], fault: Fault, *, acknowledged: int
    ) -> Iterator[tuple[int, Examined]]:
        """Yield what each abort leaves; aborts that leave the same files after recovery share one examination."""
        if self.kills or fault not in ("kill", "torn"):
            for at in chosen:
                yield at, self._abort(verb, base, at, fault)
            return
        known: dict[bytes, Examined] = {}
        for number, taken in enumerate(self._record(verb, base, chosen, fault, acknowledged)):
            place = Place(self.folder / "run")
            shutil.rmtree(place.folder)
            (self.folder / "states" / str(number)).rename(place.folder)  # the store knows paths in it
            digest = recovered_digest(place.folder, self.folder / "recovered")
            if digest not in known:
                known[digest] = self._look(verb, place, repeats=verb.is_repeatable)
            for at in taken:
                yield at, dataclasses.replace(known[digest], is_acknowledged=at == acknowledged)

    def _judge(
        self, report: VerbReport, verb: Verb, at: int, label: str, left: Examined, before: Examined, after: Examined
    ) -> None:
        if left.exposed:
            report.add("exposed", at, label, ", ".join(left.exposed))
        if left.error:
            report.add("error", at, label, left.error)
            return
        if new := set(left.findings) - set(before.findings):
            report.add("doctor", at, label, "; ".join(sorted(new)))
        if extra := sorted(Counter(left.files) - (Counter(before.files) | Counter(after.files))):
            report.add("leftover", at, label, ", ".join(extra))
        if left.state not in (before.state, after.state) and not verb.is_chunked:
            report.add("half", at, label, "neither the state before nor the one after")
        if left.is_acknowledged and left.state != after.state and not verb.is_chunked:
            report.add("lost", at, label, "the call returned, and its changes are missing")
        if left.is_refused and left.state != before.state and not verb.is_chunked:
            report.add("half", at, label, "the error says that nothing is written, and something is")
        if left.repeated and left.repeated != after.state:
            report.add("repeat", at, label, f"repeating the call does not complete it: {left.repeated}")

    # --- processes ---------------------------------------------------------------------------------------------------

    def _prepare(self, verb: Verb) -> Place:
        if verb.prepare is None:
            return self._base
        place = self._copy(self._base, "prepared")
        prepare = verb.prepare

        def change() -> None:
            with open_place(place, has_model=verb.has_model, has_snapshots=verb.has_snapshots) as memory:
                prepare(memory, place)

        status = run_in_fork(change)
        assert status == 0, f"{verb.name} cannot be prepared"
        return place

    def _copy(self, place: Place, name: str) -> Place:
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(place.folder, target)
        return Place(target)

    def _trace(self, verb: Verb, place: Place, fault: Fault) -> list[str]:
        labels = self.folder / "trace"

        def run() -> None:
            self.injector.arm(fault=fault, records=True)
            call_verb(verb, place)
            trace = [*self.injector.trace, ACKNOWLEDGED]
            self.injector.disarm()
            labels.write_text(json.dumps(trace), encoding="utf-8")

        assert run_in_fork(run) == 0, f"{verb.name} does not run"
        found: list[str] = json.loads(labels.read_text(encoding="utf-8"))
        return found

    def _abort(self, verb: Verb, base: Place, at: int, fault: Fault) -> Examined:
        place = self._copy(base, "run")
        if fault == "full":  # a job on a full disk is never done
            place = dataclasses.replace(place, patience=1.0)

        def run() -> None:
            self.injector.arm(at=at, fault=fault)
            try:
                call_verb(verb, place)
            except Mem0Error:
                os._exit(REFUSED)
            os._exit(COMPLETE)

        status = run_in_fork(run, is_quiet=True)
        if status not in (COMPLETE, KILLED if fault in ("kill", "torn") else REFUSED):
            return Examined(error=f"the call failed with status {status}")
        found = self._look_once(verb, place, repeats=self._repeats(verb, at))
        return dataclasses.replace(found, is_acknowledged=status == COMPLETE)

    def _repeats(self, verb: Verb, at: int) -> bool:
        return verb.is_repeatable and (verb.is_chunked or at % _REPEATED == 0)

    def _record(
        self, verb: Verb, base: Place, chosen: Sequence[int], fault: Fault, acknowledged: int
    ) -> list[list[int]]:
        """Run a verb once, record its state at the chosen boundaries, and return the boundaries of each state."""
        place, states = self._copy(base, "run"), self.folder / "states"
        shutil.rmtree(states, ignore_errors=True)
        states.mkdir()
        taken = self.folder / "taken"

        def run() -> None:
            recorder = self._new_recorder(place, states, frozenset(chosen))
            self.injector.arm(fault=fault, recorder=recorder)
            call_verb(verb, place)
            self.injector.disarm()
            recorder.take(acknowledged)
            taken.write_text(json.dumps(recorder.taken), encoding="utf-8")

        assert run_in_fork(run) == 0, f"{verb.name} does not run"
        found: list[list[int]] = json.loads(taken.read_text(encoding="utf-8"))
        return found

    def _new_recorder(self, place: Place, states: Path, chosen: frozenset[int]) -> Recorder:
        return Recorder(place.folder, states, chosen)

    def _look_once(self, verb: Verb, place: Place, *, repeats: bool) -> Examined:
        """Examine a place; one with the rows and files of an earlier one, apart from random ids and times, is known."""
        shown = (verb.name, repeats, self._digest(place), *list_files(place.folder))
        if shown not in self._examined:
            self._examined[shown] = self._look(verb, place, repeats=repeats)
            return self._examined[shown]
        return dataclasses.replace(self._examined[shown], exposed=list_exposed(place.folder))

    def _digest(self, place: Place) -> object:
        """Return a digest of all tables of a copy, as reading a database changes its files."""
        copy = self._copy(place, "digested")
        try:
            return digest(copy), digest_words(copy.database)
        except sqlite3.Error:
            return object()  # equal to no other

    def _look(self, verb: Verb, place: Place, *, repeats: bool) -> Examined:
        """Examine the place that an abort left; then repeat the call, if asked."""
        exposed = list_exposed(place.folder)
        found = self._examine(place, verb.has_snapshots)
        found.exposed = sorted({*exposed, *list_exposed(place.folder)})
        if repeats and not found.error:
            found.repeated = self._repeat(verb, place)
        return found

    def _repeat(self, verb: Verb, place: Place) -> str:
        """Run the verb again after an abort, and return the state that it ends in."""
        if run_in_fork(lambda: call_verb(verb, place)):
            return "the call fails when it is repeated"
        found = self._examine(place, verb.has_snapshots)
        return found.error or found.state

    def _examine(self, place: Place, has_snapshots: bool = False) -> Examined:
        result = self.folder / "examined"

        def look() -> None:
            found = examine(place, has_snapshots=has_snapshots)
            result.write_text(json.dumps([found.state, found.files, found.findings, found.error]), encoding="utf-8")

        if run_in_fork(look) != 0:
            return Examined(error="the check itself failed")
        return Examined(*json.loads(result.read_text(encoding="utf-8")))


def call_verb(verb: Verb, place: Place) -> None:
    """Open the store and run a verb; what follows the last boundary of the trace is acknowledged."""
    if verb.opens:
        verb.run(None, place)
        return
    memory = open_place(place, has_model=verb.has_model, has_snapshots=verb.has_snapshots)
    verb.run(memory, place)


def run_in_fork(
    action: Callable[[], None], *, is_quiet: bool = False, meanwhile: Callable[[], None] | None = None
) -> int:
    """Run an action in a forked process, another one in this process, and return the status of the former."""
    pid = os.fork()
    if pid == 0:
        os.umask(0)  # the library's own modes count
        status = 1
        try:
            action()
            status = 0
        except BaseException:  # noqa: BLE001 - the process ends here, whatever happened
            traceback.print_exc()
        finally:
            os._exit(status)
    if meanwhile is not None:
        meanwhile()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def rotate(count: int, share: int, turn: int) -> list[int]:
    """Return every `share`-th boundary from the last one down, moved by `turn`, and always the acknowledgement."""
    last = count - 1
    return sorted({last, *range(last - turn % share, -1, -share)})


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a folder in memory if the system has one, else in the temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mem0-faults-", dir=MEMORY_FOLDER, ignore_cleanup_errors=True) as name:
        yield Path(name)
