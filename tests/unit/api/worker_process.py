"""Run as a script: let processes add and do what was put off, kill one of them all the time, and check what came of it.

``python worker_process.py FOLDER JOBS SEED [WORKERS ADDS KILL_EVERY [URL]]``, with the repository on the path of
Python, prints one JSON object. JOBS are put off before the workers start; of ADDS each worker adds its share by itself,
one now and the next in the background, and the one that takes the place of a killed one goes on where that was last
known to be. The store is a file in FOLDER, or the PostgreSQL at URL, in a schema of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mem0_core import Memory, Scope
from mem0_core.domain.records import Event, Message
from mem0_core.interfaces import MemoryStore
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import import_modules

USERS = 10
PATIENCE = 120.0  # seconds in which nobody comes any further, after which nobody will
SCHEMA = "mem0_nursery"
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


State = tuple[tuple[int, ...], int]
"""How many of its adds each worker has told, and how many jobs wait."""


@dataclass(frozen=True)
class Nursery:
    folder: Path
    jobs: int
    seed: int
    workers: int = 2
    adds: int = 0
    kill_every: float = 0.1
    url: str = ""

    @contextmanager
    def store(self) -> Iterator[MemoryStore]:
        store = self.opened()
        try:
            yield store
        finally:
            store.close()

    def opened(self) -> MemoryStore:
        if not self.url:
            return SQLiteStore(self.folder / "memory.db", durability="process")
        from mem0_core.stores.postgres.store import PostgresStore

        return PostgresStore(self.url, schema=SCHEMA)

    # --- what is to be learnt ----------------------------------------------------------------------------------------

    def wanted(self, kind: str, count: int) -> dict[Scope, list[str]]:
        """For each user what is said, in its order."""
        said: dict[Scope, list[str]] = {}
        for number in range(count):
            user = f"{kind}{number % USERS}"
            said.setdefault(Scope(user), []).append(f"{user} says{number}")
        return said

    def fill(self) -> None:
        with self.store() as store:
            if self.url:
                store.reset()
            for scope, texts in self.wanted("user", self.jobs).items():
                for text in texts:
                    message = Message("user", text)
                    store.jobs.enqueue(scope, "remember", at="2025-01-01T00:00:00+00:00", messages=[message])

    # --- the workers -------------------------------------------------------------------------------------------------

    def work(self, place: int) -> None:
        config = {"durability": "process", "path": str(self.folder), "background": BACKGROUND}
        with Memory(config, embedder=HashEmbedder(dims=32), llm=ScriptedChat(model), store=self.opened()) as memory:
            told = self.folder / f"told {place}"
            done = int(told.read_text()) if told.exists() else 0
            for number in range(place, self.adds, self.workers):
                if number < done:
                    continue
                user = f"adder{number % USERS}"
                memory.add(f"{user} says{number}", user_id=user, timestamp="2025-01-01", background=bool(number % 2))
                fresh = told.with_suffix(f".{os.getpid()}")
                fresh.write_text(str(number + 1))
                fresh.replace(told)  # lost with the process at worst: then it is added once more
            memory.flush()
            signal.pause()  # its part is done; its threads wait for work that another leaves behind

    def add_once(self) -> None:
        """Do the work of a worker once, in a store of its own."""
        parts: dict[str, Any] = {"embedder": HashEmbedder(dims=32), "llm": ScriptedChat(model)}
        with tempfile.TemporaryDirectory() as folder, Memory({"path": folder}, **parts) as memory:
            memory.add("I count.", user_id="user", background=True)
            memory.flush()

    def start(self, place: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                self.work(place)
            except BaseException:  # noqa: BLE001 - told, and the process ends
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        return pid

    def state(self) -> State:
        """How far they came."""
        told = [self.folder / f"told {place}" for place in range(min(self.workers, self.adds))]
        with self.store() as store:
            waiting = sum(job.kind == "remember" for job in store.jobs.list_jobs())
        return tuple(int(file.read_text()) if file.exists() else 0 for file in told), waiting

    def is_end(self, state: State) -> bool:
        last = (range(place, self.adds, self.workers)[-1] + 1 for place in range(min(self.workers, self.adds)))
        return state == (tuple(last), 0)

    def beyond(self, state: State) -> State:
        """Wait until they came further, or nobody does any more."""
        deadline = time.monotonic() + PATIENCE
        while (now := self.state()) == state and time.monotonic() < deadline:
            time.sleep(0.05)
        return now

    def run(self) -> int:
        """Let them work, and kill one all the time; returns how many were killed.

        However slow the machine is, between two kills something is done: it is the workers that are tested.
        """
        import_modules(self.add_once)
        chance = random.Random(self.seed)
        workers = [self.start(place) for place in range(self.workers)]
        kills, before, now = 0, None, self.state()
        while not self.is_end(now) and now != before:
            time.sleep(self.kill_every)
            place = chance.randrange(len(workers))
            _kill(workers[place])
            kills += 1
            workers[place] = self.start(place)
            before, now = now, self.beyond(now)
        for pid in workers:
            _kill(pid)
        return kills

    # --- what came of it ---------------------------------------------------------------------------------------------

    def report(self) -> dict[str, int]:
        put_off, added = self.wanted("user", self.jobs), self.wanted("adder", self.adds)
        found: dict[str, int] = {"left": int(not self.is_end(self.state())), "lost": 0, "twice": 0, "out_of_order": 0}
        found["messages_lost"] = found["messages_twice"] = 0
        with self.store() as store:
            for scope, texts in {**put_off, **added}.items():
                items = sorted(store.list_memories(scope), key=lambda item: item.row or 0)
                learnt = [item.text for item in items]
                adds = [row for item in items for row in store.history(item.id) if row.event == Event.ADD.value]
                heard = [message.content for message in store.message_log.messages(scope)]
                found["lost"] += len(set(texts) - set(learnt))
                found["twice"] += len(learnt) - len(set(learnt)) + len(adds) - len(items)
                found["out_of_order"] += scope in put_off and learnt != texts
                found["messages_lost"] += len(set(texts) - set(heard))
                found["messages_twice"] += len(heard) - len(set(heard))
        return found


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main(folder: str, jobs: str, seed: str, *more: str) -> None:
    read: tuple[Callable[[str], Any], ...] = (int, int, float, str)
    nursery = Nursery(Path(folder), int(jobs), int(seed), *(as_(text) for as_, text in zip(read, more, strict=False)))
    nursery.fill()
    kills = nursery.run()
    print(json.dumps({**nursery.report(), "jobs": nursery.jobs, "kills": kills}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
