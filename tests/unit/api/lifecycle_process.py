"""Run as a script: a store while its process forks, is asked to end, or has a clock that goes back.

``python lifecycle_process.py fork|clock|work|finish FOLDER`` prints JSON. ``work`` prints a line when its worker asks
the model, which never answers, and waits for SIGTERM.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
import threading
import time
from typing import Any

DAY_SECONDS = 86_400.0
_real_time = time.time
_offset = 0.0


class Clock(datetime.datetime):
    """A clock that can be set."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
        return cls.fromtimestamp(time.time(), tz)


def set_clock(offset: float) -> None:
    """Let all clocks of this process be wrong by some seconds."""
    global _offset
    _offset = offset


def install_clock() -> None:
    """Replace the clocks of Python; modules that are imported later use them."""
    time.time = lambda: _real_time() + _offset
    datetime.datetime = Clock  # type: ignore[misc]


def open_memory(folder: str, model: Any = None) -> Any:
    from mem0_core import Memory
    from mem0_core.testing import HashEmbedder, ScriptedChat

    config = {"path": folder, "background": {"lease": 0.4, "backoff": 0.01, "workers": 1}}
    return Memory(config, embedder=HashEmbedder(dims=32), llm=model and ScriptedChat(model))


def describe(memory: Any) -> dict[str, Any]:
    return {
        "memories": sorted(one["memory"] for one in memory.get_all(user_id="u")["results"]),
        "findings": memory.doctor(repair=False)["findings"],
        "waiting": len(memory.pending()),
    }


def answer(task: str, messages: Any) -> Any:
    """Answer as a model that keeps one fact."""
    if task == "facts":
        return {"facts": ["Likes tea"]}
    if task == "operations":
        return {"memory": [{"id": "new", "text": "Likes tea", "event": "ADD"}]}
    return {"entities": []} if task in ("entities", "relations") else {"deletions": []} if task == "outdated" else "-"


def fork(folder: str) -> Any:
    """Use a store in a process that forked after it was opened, and in the fork, which opens it again."""
    memory = open_memory(folder)
    memory.add("I live in Rome.", user_id="u")
    pid = os.fork()
    if pid == 0:
        with open_memory(folder) as own:
            own.add("I have a dog.", user_id="u")
        sys.exit(0)  # with all finalizers, also of the inherited memory
    _, status = os.waitpid(pid, 0)
    memory.add("I like tea.", user_id="u")
    memory.close()
    with open_memory(folder) as reopened:
        return {"status": os.waitstatus_to_exitcode(status), **describe(reopened)}


def clock(folder: str) -> Any:
    """Change memories and finish a job after the clock went back by a day."""
    install_clock()
    with open_memory(folder) as memory:
        memory.add("I live in Rome.", user_id="u")
        cat = memory.add("I have a cat.", user_id="u")["results"][0]["id"]
        set_clock(-DAY_SECONDS)
        memory.add("I play chess.", user_id="u")
        memory.update(cat, "I have two cats.")
        history = [row["event"] for row in memory.history(cat)]
        found = {"history": history, "verified": memory.verify()["agrees"], **describe(memory)}
    set_clock(0.0)
    with open_memory(folder, answer) as memory:
        memory.add("I like tea.", user_id="u", background=True)
        set_clock(-DAY_SECONDS)
        return {**found, "is_flushed": memory.flush(60.0), "after": describe(memory)["memories"]}


def work(folder: str) -> Any:
    """Start a job with a model that never answers."""
    asked, never = threading.Event(), threading.Event()

    def hang(task: str, messages: Any) -> Any:
        asked.set()
        never.wait()

    memory = open_memory(folder, hang)
    memory.add("I like tea.", user_id="u", background=True)
    asked.wait()
    sys.stdout.write("asked\n")
    sys.stdout.flush()
    signal.pause()


def finish(folder: str) -> Any:
    with open_memory(folder, answer) as memory:
        return {"is_flushed": memory.flush(60.0), **describe(memory)}


if __name__ == "__main__":
    part = {"fork": fork, "clock": clock, "work": work, "finish": finish}[sys.argv[1]]
    sys.stdout.write(json.dumps(part(sys.argv[2])))
