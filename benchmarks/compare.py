"""Two commits, run alternately: the ratio of their times, with an interval that neighbors on the machine do not move.

Each commit runs in a process of its own, from a worktree. The two take turns of a few calls, so that whatever else the
machine does slows down both. The ratio of a pair of turns is that of their medians; the figure is the median of these
ratios, and the interval is that of 95 % of resampled medians.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._compared import RANKINGS, WORKLOADS
from benchmarks.corpus import memos, user_name, user_of
from benchmarks.plan import ROOT, Plan
from benchmarks.recall import load_datasets
from benchmarks.report import Bar, Report, median, percentile
from memory_conformance.stories import load_people

__all__ = ["WORKLOADS", "Ratio", "compare", "ratio_of"]

_REGRESSION = Bar("<=", 1.1)
_QUESTIONS = 500


def compare(plan: Plan, before: str, after: str) -> Report:
    """Measure the workloads of `_compared` at two commits; the rows are those of the second over the first."""
    report = Report("compare")
    report.details["commits"] = {name: _git("rev-parse", name) for name in (before, after)}
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mem0-compare-")))
        runners = [
            stack.enter_context(_start(work / side, commit, plan))
            for side, commit in (("before", before), ("after", after))
        ]
        for runner in runners:
            runner.wait_until_ready()
        turns: dict[str, list[tuple[float, float]]] = {name: [] for name in WORKLOADS}
        for number in range(plan.compared_turns):
            for name in WORKLOADS:
                order = runners if number % 2 == 0 else runners[::-1]
                took = {runner: median(runner.run(name)) for runner in order}
                turns[name].append((took[runners[0]], took[runners[1]]))
        rankings = [runner.rank() for runner in runners]
    for name, pairs in turns.items():
        ratio = ratio_of(pairs, plan.resamples)
        note = f"{ratio.low:.3f} to {ratio.high:.3f}; {ratio.before:.2f} and {ratio.after:.2f} ms of CPU"
        is_certain = ratio.low > 1
        report.add("time after / time before", name, ratio.middle, "x", _REGRESSION if is_certain else None, note)
    asked = len(rankings[0])
    changed = sum(one != other for one, other in zip(*rankings, strict=True))
    note = f"of {asked:,}: memories, order and scores of the first 20"
    report.add("results", "searches with other results", changed, note=note)
    return report


class Ratio(NamedTuple):
    """Median of the ratios of pairs of times, its 95 % interval, and the medians of the times."""

    middle: float
    low: float
    high: float
    before: float
    after: float


def ratio_of(pairs: Sequence[tuple[float, float]], resamples: int) -> Ratio:
    """Return the ratio of second over first times, with a bootstrap interval over the pairs."""
    ratios, chance = [after / before for before, after in pairs], random.Random(7)
    medians = [median(chance.choices(ratios, k=len(ratios))) for _ in range(resamples)]
    low, high = percentile(medians, 0.025), percentile(medians, 0.975)
    return Ratio(median(ratios), low, high, *(median(times) for times in zip(*pairs, strict=True)))


class _Runner:
    """The process of one commit."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait_until_ready(self) -> None:
        self._read()

    def run(self, workload: str) -> list[float]:
        """Run a block of a workload and return the time of each call."""
        times: list[float] = self._ask(workload)
        return times

    def rank(self) -> list[object]:
        """Return the results of each question about real texts."""
        found: list[object] = self._ask(RANKINGS)
        return found

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)
        return json.loads(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a compared commit ended with status {self._process.wait()}; its error is above")
        return line


@contextmanager
def _start(folder: Path, commit: str, plan: Plan) -> Iterator[_Runner]:
    """Run `_compared` with the packages of a commit, from a worktree that is removed afterwards."""
    tree, data = folder / "tree", folder / "data"
    data.mkdir(parents=True)
    _write_texts(data / "texts.json", plan)
    _git("worktree", "add", "--detach", str(tree), commit)
    try:
        sources = sorted(map(str, tree.glob("packages/*/src")))
        path = os.pathsep.join([*sources, str(ROOT)])
        command = [sys.executable, str(ROOT / "benchmarks" / "_compared.py"), str(data)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as process:
            try:
                yield _Runner(process)
            finally:
                process.kill()
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _write_texts(file: Path, plan: Plan) -> None:
    memories: dict[str, list[str]] = {}
    questions = []
    for place, memo in enumerate(islice(memos(), plan.compared_memories)):
        memories.setdefault(user_name(user_of(place)), []).append(memo.text)
        questions.append(memo.question)
    given = {"memories": memories, "questions": questions[:_QUESTIONS], "talks": list(_iter_talks(plan))}
    file.write_text(json.dumps(given), encoding="utf-8")


def _iter_talks(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield the messages and questions of LoCoMo and BEAM, where they are on this machine, and of the life stories."""
    datasets = (dataset for name, dataset in load_datasets(plan).items() if name != "MuSiQue")
    for collection in (one for dataset in datasets for one in dataset.collections):
        messages = [
            {"role": unit.role, "name": unit.speaker, "content": unit.text, "timestamp": occasion.said_at}
            for occasion in collection.occasions
            for unit in occasion.units
        ]
        given = [{key: value for key, value in message.items() if value is not None} for message in messages]
        yield {
            "user": collection.name,
            "messages": given,
            "questions": [question.text for question in collection.questions],
        }
    for person in load_people()[: plan.stories]:
        messages = [
            {"role": said["role"], "content": said["text"], "timestamp": said["time"]} for said in person["messages"]
        ]
        yield {
            "user": person["id"],
            "messages": messages,
            "questions": [asked["question"] for asked in person["questions"]],
        }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
