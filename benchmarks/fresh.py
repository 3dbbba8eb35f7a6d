"""Measurements that need a fresh process: imports, opening a store, peak memory.

Run as ``python -m benchmarks.fresh TASK ARGUMENTS`` (JSON in, JSON out); it imports nothing of ours before the clock
starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["import_seconds", "in_fresh_process"]

ROOT = Path(__file__).parents[1]

_CLOCKED_IMPORT = """
import sys, time
started = time.perf_counter()
import {module}
print(time.perf_counter() - started, *({{"numpy", "pydantic", "faiss"}} & set(sys.modules)))
"""


def in_fresh_process(task: str, **arguments: Any) -> dict[str, Any]:
    """Run a task of this module in a new process and return its result."""
    command = [sys.executable, "-m", "benchmarks.fresh", task, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{task} failed in its process:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def import_seconds(module: str) -> tuple[float, set[str]]:
    """Return seconds to import `module` in a new process, and the heavier libraries that it loaded."""
    code = _CLOCKED_IMPORT.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *libraries = done.stdout.split()
    return float(seconds), set(libraries)


# --- in the new process ------------------------------------------------------------------------------------------


def reopen(folder: str, user: str, question: str) -> dict[str, float]:
    """Import, open, and search once."""
    clock = [time.perf_counter()]
    import faiss  # noqa: F401

    from mem0_core import Memory
    from mem0_core.stores.sqlite import store as _truth  # noqa: F401
    from mem0_core.stores.vector import faiss as _projection  # noqa: F401 - imported by Memory on demand
    from mem0_core.testing import HashEmbedder

    clock.append(time.perf_counter())
    memory = Memory({"path": folder}, embedder=HashEmbedder())
    clock.append(time.perf_counter())
    found = memory.search(question, user_id=user)["results"]
    clock.append(time.perf_counter())
    assert found, "the store is empty"
    memory.close()
    return {
        "imports": clock[1] - clock[0],
        "open": clock[2] - clock[1],
        "search": clock[3] - clock[2],
        "peak_mb": peak_mb(),
    }


def visit_all(folder: str, users: list[str], question: str) -> dict[str, float]:
    """Open, and search every user's memories once."""
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder

    started = time.perf_counter()
    with Memory({"path": folder}, embedder=HashEmbedder()) as memory:
        after_opening = peak_mb()
        for user in users:
            assert memory.search(question, user_id=user)["results"], f"{user} has no memories"
        return {"seconds": time.perf_counter() - started, "peak_mb": peak_mb(), "opened_mb": after_opening}


def search_many(folder: str, users: list[str], questions: list[str], count: int) -> dict[str, float]:
    """Open, and search `count` times, user after user."""
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder

    with Memory({"path": folder}, embedder=HashEmbedder()) as memory:
        started = time.perf_counter()
        for place in range(count):
            user = users[place % len(users)]
            assert memory.search(questions[place % len(questions)], user_id=user)["results"], f"{user} has no memories"
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "peak_mb": peak_mb(), "now_mb": now_mb()}


def build_graph(folder: str, user: str, exact_limit: int | None, answers: str) -> dict[str, Any]:
    """Build the HNSW graph of a large scope during searches, then score it against exact `answers`."""
    from mem0_core import Memory
    from mem0_core.stores.sqlite.store import SQLiteStore
    from mem0_core.stores.vector.faiss import FaissIndex
    from mem0_core.testing import HashEmbedder

    store = SQLiteStore(Path(folder) / "memory.db")
    limits: dict[str, Any] = {} if exact_limit is None else {"exact_limit": exact_limit}
    index = FaissIndex(store, folder=Path(folder) / "faiss" / "memory", **limits)
    config = {"path": folder, "recipe": "mem0"}  # its scores are cosines, like those of the answers
    memory = Memory(config, embedder=HashEmbedder(), store=store, index=index)
    asked: list[tuple[str, float]] = json.loads(Path(answers).read_text(encoding="utf-8"))
    started = time.perf_counter()
    memory.search(asked[0][0], user_id=user)
    first = time.perf_counter() - started
    meanwhile = _search_while_building(memory, index, user, [question for question, _ in asked])
    index.wait_for_builds()
    built = time.perf_counter() - started
    took, recall = _search_graph(memory, user, asked)
    memory.close()
    return {
        "first": first,
        "built": built - first,
        "meanwhile": meanwhile,
        "took": took,
        "recall": recall,
        "peak_mb": peak_mb(),
    }


def _search_while_building(memory: Any, index: Any, user: str, questions: list[str]) -> list[float]:
    """Return seconds of searches, a hundred at most, until the graph is ready."""
    took: list[float] = []
    for question in questions[:100]:
        if not any(partition.is_building for partition in index._loaded_partitions()):
            break
        started = time.perf_counter()
        memory.search(question, user_id=user)
        took.append(time.perf_counter() - started)
        time.sleep(0.05)
    return took


def _search_graph(memory: Any, user: str, asked: list[tuple[str, float]]) -> tuple[list[float], float]:
    """Return seconds of each search, and the share of results that score at least as well as the exact tenth."""
    took, good, wanted = [], 0, 0
    for question, tenth in asked:
        started = time.perf_counter()
        results = memory.search(question, user_id=user)["results"]
        took.append(time.perf_counter() - started)
        good += sum(result["score"] >= tenth - 1e-5 for result in results)
        wanted += 10
    return took, good / wanted


def peak_mb() -> float:
    """Return the peak memory (10^6 bytes) of this process.

    On Linux it reads VmHWM: ``ru_maxrss`` includes the parent's memory from before the exec.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def now_mb() -> float:
    """Return the memory (10^6 bytes) of this process now, or its peak if the current value is unavailable."""
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_mb()
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "reopen": reopen,
    "visit_all": visit_all,
    "search_many": search_many,
    "build_graph": build_graph,
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
