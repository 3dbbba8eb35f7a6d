"""Run as a script: start writers, kill them in the middle, and check what they left.

``python crash_nursery.py FOLDER RUNS SEED`` prints one JSON object. Writers are forked from this process, which has
imported everything and opened nothing, so that a run takes milliseconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np

from mem0_core import Memory, Scope
from mem0_core.stores.sqlite import SQLiteStore
from mem0_core.testing import HashEmbedder

CONFIG = {"durability": "process"}
FACTS_PER_ADD = 2


def write(folder: Path, run: int, acknowledge: int) -> None:
    """Add forever, and say of each add that returned what it was given."""
    memory = Memory({**CONFIG, "path": str(folder)}, embedder=HashEmbedder(dims=32))
    for step in range(1_000_000):
        said = [f"run {run} step {step} part {part}" for part in range(FACTS_PER_ADD)]
        result = memory.add([{"role": "user", "content": text} for text in said], user_id=f"user {step % 5}")
        if step % 7 == 3:
            memory.delete(result["results"][0]["id"])
            said = said[1:]
        os.write(acknowledge, "".join(f"{text}\n" for text in said).encode())


def one_run(folder: Path, run: int, wait: float) -> list[str]:
    """The texts that a writer acknowledged before it was killed."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            write(folder, run, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    time.sleep(wait)
    os.kill(pid, signal.SIGKILL)
    with os.fdopen(read_end) as acknowledged:
        lines = acknowledged.read().split("\n")
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    return lines[:-1]  # what follows the last line's end was cut


def check(folder: Path, acknowledged: set[str]) -> dict[str, int]:
    """Count what is lost and what does not agree."""
    store = SQLiteStore(folder / "history.db", durability="process")
    items = {item.text: item for item in store.find(None)}
    embedder = HashEmbedder(dims=32)
    wrong = 0
    for user in range(5):
        scope = Scope(f"user {user}")
        changes = store.vector_changes(scope)
        found = store.by_rows(changes.rows.tolist(), scope=scope)
        texts = [found[int(row)].text for row in changes.rows]
        wrong += len(store.find(scope)) != len(texts)
        wrong += bool(texts) and not np.allclose(embedder.embed(texts), changes.vectors, atol=1e-5)
    with sqlite3.connect(folder / "history.db") as db:
        integrity = db.execute("PRAGMA integrity_check").fetchone()[0]
        living = {row[0] for row in db.execute("SELECT id FROM memories")}
        past = db.execute("SELECT memory_id, sum(event = 'ADD') - sum(event = 'DELETE') FROM history GROUP BY 1")
        standing = {memory_id for memory_id, count in past if count == 1}
        halves = db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM history WHERE event = 'ADD'"
            " GROUP BY substr(new_memory, 1, instr(new_memory, ' part')) HAVING count(*) <> ?)",
            (FACTS_PER_ADD,),
        ).fetchone()[0]
    store.close()
    return {
        "lost": len(acknowledged - set(items)),
        "vectors_wrong": wrong,
        "history_disagrees": len(living ^ standing),
        "half_adds": halves,
        "corrupt": integrity != "ok",
        "memories": len(items),
    }


def main(folder: Path, runs: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    empty = 0
    for run in range(runs):
        said = one_run(folder, run, chance.uniform(0.005, 0.12))
        empty += not said
        acknowledged.update(said)
        if run % 20 == 19 or run == runs - 1:
            report = check(folder, acknowledged)
            if any(value for name, value in report.items() if name != "memories"):
                break
    print(json.dumps({**report, "runs": run + 1, "killed_before_the_first_add": empty}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
