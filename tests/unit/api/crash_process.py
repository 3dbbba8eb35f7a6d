"""Run as a script: start writers, kill them in the middle, and check what they left.

``python crash_process.py FOLDER RUNS SEED [GRAPH_STORE]``, with the repository on the path of Python, prints one JSON
object. Writers are forked from this process, which has imported everything and opened nothing, so that a run takes
milliseconds. With a graph store, every fact comes with a relation, and now and then one of them ends.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from mem0_core import Memory, Scope
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import import_modules

CONFIG = {"durability": "process"}
FACTS_PER_ADD = 2
LONGEST = {None: 0.12, "sqlite": 0.5, "ladybug": 2.0}
"""Seconds that a writer runs at most, most of them from its first add on."""
KILLED_AT_ANY_TIME = 10  # one writer of so many is killed at any time, the others after their first add


def open_memory(folder: Path, graph: str | None) -> Memory:
    embedder = HashEmbedder(dims=32)
    if graph is None:
        return Memory({**CONFIG, "path": str(folder)}, embedder=embedder, graph=False)
    config = {"db": str(folder / "ladybug")} if graph == "ladybug" else {}
    store = {"provider": graph, "config": config, "threshold": 1.0}
    return Memory({**CONFIG, "path": str(folder), "graph_store": store}, embedder=embedder, llm=ScriptedChat(model))


def model(task: str, messages: Any) -> Any:
    """Every line is a fact, and a relation of its own; what the last step said is outdated."""
    data = messages[-1]["content"]
    if task == "facts":
        said = data.rpartition("Input:\n")[2]
        return {"facts": [line.removeprefix("user: ") for line in said.splitlines()]}
    if task == "summary":
        return "Somebody counts."
    data = json.loads(data)
    if task == "operations":
        return {"memory": [{"id": f"new {fact}", "text": fact, "event": "ADD"} for fact in data["facts"]]}
    said = [line.removeprefix("user: ") for line in data["text"].splitlines()]
    if task == "entities":
        return {"entities": [{"entity": name, "entity_type": ""} for name in ("speaker", *said)]}
    if task == "relations":
        return {"entities": [{"source": "speaker", "relationship": "said", "destination": line} for line in said]}
    return {"deletions": data["existing"][-1:]} if task == "outdated" and "step5" in said[0] else ""


def write(folder: Path, run: int, graph: str | None, acknowledge: int) -> None:
    """Add forever, and say of each add that returned what it was given, in words of its own."""
    memory = open_memory(folder, graph)
    for step in range(1_000_000):
        said = [f"run{run}step{step} part {part}" for part in range(FACTS_PER_ADD)]
        result = memory.add([{"role": "user", "content": text} for text in said], user_id=f"user {step % 5}")
        if step % 7 == 3:
            memory.delete(result["results"][0]["id"])
            said = said[1:]
        os.write(acknowledge, "".join(f"{text}\n" for text in said).encode())


def add_once(graph: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder, open_memory(Path(folder), graph) as memory:
        memory.add("I count.", user_id="user 0")


def one_run(folder: Path, run: int, graph: str | None, wait: float) -> list[str]:
    """The texts that a writer acknowledged before it was killed."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            write(folder, run, graph, write_end)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(1)
    os.close(write_end)
    first = os.read(read_end, 1) if run % KILLED_AT_ANY_TIME else b""  # waits for the first add
    time.sleep(wait)
    os.kill(pid, signal.SIGKILL)
    with os.fdopen(read_end) as acknowledged:
        lines = (first.decode() + acknowledged.read()).split("\n")
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    return lines[:-1]  # what follows the last line's end was cut


def check_graph(folder: Path, graph: str) -> dict[str, int]:
    """Count the relations and memories that lack one another, and what a projection has otherwise than the truth."""
    embedder = HashEmbedder(dims=32)
    alone = unsaid = wrong = differ = 0
    with open_memory(folder, graph) as memory:
        for user in range(5):
            scope = Scope(f"user {user}")
            truth = memory._store.graph
            relations = truth.relations(scope, include_ended=True)
            memories = {item.id: item.text for item in memory._store.list_memories(scope)}
            alone += sum(
                not relation.memories or not set(relation.memories) <= memories.keys() for relation in relations
            )
            unsaid += len(set(memories.values()) - {relation.triplet.destination for relation in relations})
            sentences = [relation.triplet.sentence for relation in relations if relation.valid_to is None]
            stored = truth.relation_vectors.vector_changes(scope).vectors
            expected = embedder.embed(sentences)
            wrong += len(stored) != len(expected) or not np.allclose(
                np.sort(stored, axis=0).ravel(), np.sort(expected, axis=0).ravel(), atol=1e-5
            )
            opened = memory._open_graph()
            assert opened is not None
            differ += opened.index.relations(scope) != relations
            if memories:
                text = next(reversed(memories.values()))
                found = memory._store.graph.relations_by_rows(
                    [
                        row
                        for row, _ in opened.index.nearest_relations(scope, embedder.embed([text]), 50, threshold=0.0)[
                            0
                        ]
                    ],
                    scope=scope,
                )
                differ += not found
    return {"relations_alone": alone, "memories_unsaid": unsaid, "graph_vectors_wrong": wrong, "graphs_differ": differ}


def check(folder: Path, acknowledged: set[str]) -> dict[str, int]:
    """Count what is lost and what does not agree."""
    store = SQLiteStore(folder / "memory.db", durability="process")
    items = {item.text: item for item in store.list_memories(None)}
    embedder = HashEmbedder(dims=32)
    wrong = 0
    for user in range(5):
        scope = Scope(f"user {user}")
        changes = store.vector_changes(scope)
        found = store.memories_by_rows(changes.rows.tolist(), scope=scope)
        texts = [found[int(row)].text for row in changes.rows]
        wrong += len(store.list_memories(scope)) != len(texts)
        wrong += bool(texts) and not np.allclose(embedder.embed(texts), changes.vectors, atol=1e-5)
    with sqlite3.connect(folder / "memory.db") as db:
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


def main(folder: Path, runs: int, seed: int, graph: str | None = None) -> None:
    import_modules(lambda: add_once(graph))
    chance = random.Random(seed)
    acknowledged: set[str] = set()
    empty = 0
    for run in range(runs):
        said = one_run(folder, run, graph, chance.uniform(0.005, LONGEST[graph]))
        empty += not said
        acknowledged.update(said)
        if run % 20 == 19 or run == runs - 1:
            report = check(folder, acknowledged) | (check_graph(folder, graph) if graph else {})
            if any(value for name, value in report.items() if name != "memories"):
                break
    print(json.dumps({**report, "runs": run + 1, "killed_before_the_first_add": empty}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
