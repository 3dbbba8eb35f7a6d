"""Run the checks against a system: each system in a process of its own, which a crash or a hang cannot take along."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from memory_conformance.api import list_verbs, read_capabilities
from memory_conformance.registry import Check, CheckError, Factory, InapplicableError, Kit, load_checks
from memory_conformance.systems import SYSTEMS
from memory_conformance.systems.loading import load_object

Outcome = Literal["pass", "fail", "n/a"]
CHECK_SECONDS = 150.0
START_SECONDS = 150.0
POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of one check, with the reason of a failure or of "n/a"."""

    check: str
    title: str
    outcome: Outcome
    detail: str = ""
    observed: bool = False
    """True if the store does not promise the property: the outcome is "n/a", and the detail says if it was kept."""
    seconds: float = 0.0


@dataclass(slots=True)
class Report:
    """All results of one system."""

    system: str
    version: str = ""
    python: str = ""
    capabilities: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    error: str = ""

    def count(self, outcome: Outcome) -> int:
        """Return the number of checks with an outcome."""
        return sum(result.outcome == outcome for result in self.results)


def find_factory(spec: str) -> Factory:
    """Return the factory that a spec names: a known system, ``module:name`` or ``path/to/file.py:name``."""
    target = SYSTEMS[spec].factory if spec in SYSTEMS else spec
    if ":" not in target:
        raise ValueError(f"{spec!r} is neither one of {', '.join(SYSTEMS)} nor 'module:factory' nor 'file.py:factory'")
    factory: Factory = load_object(target)
    return factory


def run_in_process(spec: str, names: Sequence[str] | None = None, folder: Path | None = None) -> Iterator[Result]:
    """Run checks in this process and yield their results."""
    checks = load_checks()
    root = Path(tempfile.mkdtemp(prefix="memory-conformance-")) if folder is None else folder
    kit = Kit(find_factory(spec), spec, root, uuid.uuid4().hex[:8])
    try:
        available = list_verbs(kit.system) | read_capabilities(kit.system)
        for name in names if names is not None else list(checks):
            started = time.monotonic()
            result = run_check(checks[name], kit, available)
            yield replace(result, seconds=round(time.monotonic() - started, 2))
            if result.outcome != "pass" and not result.detail.startswith("does not declare"):
                kit.renew()
    finally:
        kit.renew()
        if folder is None:
            shutil.rmtree(root, ignore_errors=True)


def run_check(check: Check, kit: Kit, available: frozenset[str]) -> Result:
    """Run one check, unless the system lacks a capability that it needs."""
    if missing := sorted(check.needs - available):
        return Result(check.name, check.title, "n/a", f"does not declare {', '.join(missing)}")
    unpromised = sorted(check.promises - available)
    try:
        outcome: Outcome = "pass"
        detail = check.function(kit) or ""
    except InapplicableError as reason:
        return Result(check.name, check.title, "n/a", str(reason))
    except CheckError as failure:
        outcome, detail = "fail", str(failure)
    except Exception as error:  # noqa: BLE001 any error of the store fails the check
        outcome, detail = "fail", describe_error(error)
    if unpromised:
        note = f"does not promise {', '.join(unpromised)}; observed: {detail if outcome == 'fail' else 'kept'}"
        return Result(check.name, check.title, "n/a", note, observed=True)
    return Result(check.name, check.title, outcome, detail)


def describe_error(error: BaseException) -> str:
    """Return the type, the first line and the origin of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    origin = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    lines = str(error).strip().splitlines()
    text = lines[0][:200] if lines else ""
    return f"raised {type(error).__name__}: {text}{origin}".encode("utf-8", "backslashreplace").decode()


def run_system(
    spec: str,
    *,
    python: str | None = None,
    names: Sequence[str] | None = None,
    check_seconds: float = CHECK_SECONDS,
) -> Report:
    """Run checks in other processes, and start a new one after a crash or a hang."""
    checks = load_checks()
    started, used = time.monotonic(), read_child_seconds()
    report = Report(spec)
    waiting = [name for name in checks if names is None or name in names]
    while waiting and not report.error:
        done = run_worker(spec, python or sys.executable, waiting, report, check_seconds)
        if not done:
            break
        waiting = waiting[done:]
    report.seconds = round(time.monotonic() - started, 1)
    report.cpu_seconds = round(read_child_seconds() - used, 1)
    return report


def read_child_seconds() -> float:
    """Return the processor time of all child processes that ended."""
    times = os.times()
    return times.children_user + times.children_system


def run_worker(spec: str, python: str, waiting: Sequence[str], report: Report, check_seconds: float) -> int:
    """Run one worker until it ends or hangs; add its results, and return the number of checks that are settled."""
    with tempfile.TemporaryDirectory(prefix="memory-conformance-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "results.jsonl"
        command = [python, "-m", "memory_conformance", "work", spec, folder, *waiting]
        errors = Path(folder) / "errors.txt"
        with errors.open("wb") as stream:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream, env=child_environment())
            hung = wait_for(process, log, check_seconds)
        before = len(report.results)
        read_log(log, report)
        done = len(report.results) - before
        if done < len(waiting):
            reason = (
                f"did not end within {check_seconds:.0f} s" if hung else f"ended its process ({process.returncode})"
            )
            if not report.python:  # it failed before the first check
                report.error = errors.read_text(encoding="utf-8", errors="replace").strip()[-400:] or reason
                return 0
            check = load_checks()[waiting[done]]
            report.results.append(Result(check.name, check.title, "fail", reason))
            done += 1
    return done


def wait_for(process: subprocess.Popen[bytes], log: Path, check_seconds: float) -> bool:
    """Wait for a worker; kill it, and return True, if its log does not grow for the time of a check."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        now_size = log.stat().st_size if log.exists() else 0
        if now_size != size:
            size, since = now_size, time.monotonic()
        elif time.monotonic() - since > (check_seconds if size > 0 else START_SECONDS):
            process.kill()
            process.wait()
            return True
        time.sleep(POLL_SECONDS)
    return False


def read_log(log: Path, report: Report) -> None:
    """Add the lines of a worker's log to the report."""
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        item = json.loads(line)
        if "check" in item:
            report.results.append(Result(**item))
        else:
            report.version, report.python = item["version"], item["python"]
            report.capabilities = item["capabilities"]


def work(spec: str, folder: Path, names: Sequence[str]) -> None:
    """Run checks as a worker process, and write each result as soon as it is known."""
    with (folder / "results.jsonl").open("a", encoding="utf-8") as log:

        def write(item: dict[str, Any]) -> None:
            log.write(json.dumps(item) + "\n")
            log.flush()

        write(describe_system(spec, folder / "probe"))
        for result in run_in_process(spec, names, folder / "data"):
            write(asdict(result))


def describe_system(spec: str, folder: Path) -> dict[str, Any]:
    """Open a system once, and return its version and declared capabilities."""
    folder.mkdir(parents=True)
    system = find_factory(spec)(folder)
    try:
        declared = sorted(list_verbs(system) | read_capabilities(system))
    finally:
        system.close()
    version = SYSTEMS[spec].find_version() if spec in SYSTEMS else ""
    return {"version": version, "python": platform.python_version(), "capabilities": declared}


def write_until_killed(spec: str, folder: Path, owner: str, log: Path) -> None:
    """Add memories for ever, and log each text after the system acknowledged it; the checks of crashes kill it."""
    system = find_factory(spec)(folder)
    prefix = uuid.uuid4().hex[:6]
    with log.open("a", encoding="utf-8") as acknowledged:
        for number in range(10_000):
            text = f"Entry w{prefix}{number} was acknowledged."
            system.add(owner, text)
            acknowledged.write(text + "\n")
            acknowledged.flush()


def child_environment() -> dict[str, str]:
    """Return an environment in which a child finds this package and the modules of the working folder."""
    root = str(Path(__file__).resolve().parents[1])
    paths = [root, os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
