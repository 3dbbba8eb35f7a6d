"""Run as a script: put jobs off, let two processes do them, kill one of them all the time, and check what came of it.

``python worker_nursery.py FOLDER JOBS SEED`` prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from mem0_core import Memory, Scope
from mem0_core.records import Message
from mem0_core.stores.sqlite import SQLiteStore
from mem0_core.testing import HashEmbedder, ScriptedChat

USERS = 10
KILL_EVERY = 0.1
PATIENCE = 240.0
BACKGROUND = {"lease": 0.4, "backoff": 0.01, "batch": 4, "workers": 2}


def model(task: str, messages: Any) -> Any:
    """Every line is a fact, and every fact is new."""
    content = messages[-1]["content"]
    if task == "facts":
        said = content.rpartition("Input:\n")[2]
        return {"facts": [line.removeprefix("user: ") for line in said.splitlines()]}
    if task == "operations":
        return {
            "memory": [{"id": f"new {fact}", "text": fact, "event": "ADD"} for fact in json.loads(content)["facts"]]
        }
    return "Somebody counts."


def work(folder: Path) -> None:
    config = {"durability": "process", "path": str(folder), "background": BACKGROUND}
    with Memory(config, embedder=HashEmbedder(dims=32), llm=ScriptedChat(model)) as memory:
        memory.flush()


def start(folder: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(folder)
        except BaseException:  # noqa: BLE001 - told, and the process ends
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def fill(folder: Path, jobs: int) -> None:
    store = SQLiteStore(folder / "history.db", durability="process")
    for number in range(jobs):
        message = Message("user", f"user{number % USERS} says{number}")
        store.jobs.put(Scope(f"user {number % USERS}"), "remember", at="2025-01-01T00:00:00+00:00", messages=[message])
    store.close()


def left(folder: Path) -> int:
    with sqlite3.connect(folder / "history.db", timeout=30) as db:
        return int(db.execute("SELECT count(*) FROM jobs WHERE kind = 'remember'").fetchone()[0])


def main(folder: Path, jobs: int, seed: int) -> None:
    chance = random.Random(seed)
    fill(folder, jobs)
    workers = [start(folder), start(folder)]
    kills, deadline = 0, time.monotonic() + PATIENCE
    while left(folder) and time.monotonic() < deadline:
        time.sleep(KILL_EVERY)
        place = chance.randrange(len(workers))
        os.kill(workers[place], signal.SIGKILL)
        os.waitpid(workers[place], 0)
        kills += 1
        workers[place] = start(folder)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with sqlite3.connect(folder / "history.db") as db:
        added = [text for (text,) in db.execute("SELECT new_memory FROM history WHERE event = 'ADD' ORDER BY rowid")]
        messages = db.execute("SELECT count(*), count(DISTINCT content) FROM messages").fetchone()
    wanted = [f"user{number % USERS} says{number}" for number in range(jobs)]
    of_user = {user: [text for text in wanted if text.startswith(f"user{user} ")] for user in range(USERS)}
    report = {
        "left": left(folder),
        "lost": len(set(wanted) - set(added)),
        "twice": len(added) - len(set(added)),
        "out_of_order": sum(
            [text for text in added if text.startswith(f"user{user} ")] != of_user[user] for user in range(USERS)
        ),
        "messages_twice": messages[0] - messages[1],
    }
    print(json.dumps({**report, "jobs": jobs, "kills": kills}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
