"""The cost of a fresh process: an import, and each short use of a store, as ratios to ``python -c 'import numpy'``.

Processes of all kinds alternate, so that the load of the machine affects all alike, and the median of the ratios of
each round counts. Bytecode is cached, as after an installation by pip. Needs the weights of the default embedder.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus import embed_memos, fill, memos, take, user_name
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from benchmarks.timed import RenamedEmbedder
from mem0_core.providers.numpy_embedder import NumpyEmbedder
from mem0_core.testing import HashEmbedder

__all__ = ["measure"]

_NUMPY = "import numpy"
_OWNER = "owner"
_MEMORIES = 10_000


class _Spent(NamedTuple):
    wall: float
    cpu: float


def measure(plan: Plan) -> Report:
    """Measure fresh processes on stores of up to 10,000 memories, of a hundred users and of one."""
    report = Report("cold")
    count = min(_MEMORIES, plan.sizes[-1])
    with tempfile.TemporaryDirectory() as folder:
        stores = _fill_stores(Path(folder), count)
        commands = _commands(*stores, count)
        rounds = [
            {name: _run(command) for name, (command, _) in commands.items()} for _ in range(1 + plan.processes * 3)
        ]
    rounds = rounds[1:] or rounds  # the first one writes bytecode, and reads files into the system's cache
    for name, (_, limit) in commands.items():
        spent = [one[name] for one in rounds]
        numpy = [one[_NUMPY] for one in rounds]
        section = f"median of {len(rounds)} processes, against python -c '{_NUMPY}'"
        cpu = statistics.median(ours.cpu / theirs.cpu for ours, theirs in zip(spent, numpy, strict=True))
        wall = statistics.median(ours.wall / theirs.wall for ours, theirs in zip(spent, numpy, strict=True))
        milliseconds = 1e3 * statistics.median(one.cpu for one in spent)
        report.add(section, name, cpu, "x", limit, note=f"{milliseconds:.0f} ms of CPU; wall {wall:.2f} x")
    report.details["seconds"] = rounds
    return report


def _fill_stores(folder: Path, count: int) -> tuple[Path, Path]:
    """Return a store of many users and one of a single user; the cost does not depend on the meaning of vectors."""
    given = take(memos(), count)
    embedder = HashEmbedder()
    vectors = embed_memos(embedder, given)
    named = RenamedEmbedder(embedder, NumpyEmbedder().name)
    for name, user in (("many", None), ("one", _OWNER)):
        (folder / name).mkdir()
        fill(folder / name, given, vectors, named, user=user)
    return folder / "many", folder / "one"


def _commands(many: Path, one: Path, count: int) -> dict[str, tuple[list[str], Bar | None]]:
    """Return the command lines by name, with their bars."""

    def search(store: Path, user: str) -> list[str]:
        return [*_cli("--path", str(store)), "search", "Who missed the airport transfer in Lisbon?", "--user", user]

    opened = f"from mem0_core import Memory; Memory({str(many)!r}).close()"
    return {
        _NUMPY: (_python(_NUMPY), None),
        "from mem0_core import Memory": (_python("from mem0_core import Memory"), Bar("<=", 1.5)),
        "Memory(folder).close()": (_python(opened), None),
        "mem0-core --version": (_cli("--version"), Bar("<=", 1)),
        f"mem0-core search, {count:,} memories of 100 users": (search(many, user_name(0)), Bar("<=", 3)),
        f"mem0-core search, {count:,} memories of one user": (search(one, _OWNER), Bar("<=", 3)),
    }


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _cli(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mem0_core.cli", *arguments]


def _run(command: list[str]) -> _Spent:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with {process.returncode}")
    return _Spent(wall, usage.ru_utime + usage.ru_stime)
