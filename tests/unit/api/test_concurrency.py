"""Many writers: every add succeeds, nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mem0_core.domain.records import list_added
from mem0_core.testing import HashEmbedder
from tests.support import open_memory, result_texts

THREADS = 8
ADDS = 64
WRITER = Path(__file__).with_name("concurrent_writer.py")


@pytest.mark.parametrize("users", [THREADS, 1], ids=["one user each", "one user for all"])
def test_threads(tmp_path: Path, users: int) -> None:
    with open_memory(tmp_path) as memory:

        def work(number: int) -> list[str]:
            user = f"user {number % users}"
            made = []
            for index in range(ADDS):
                (entry,) = memory.add(f"thread {number} fact {index}", user_id=user)["results"]
                made.append(entry["id"])
                memory.add(f"everybody knows {index}", user_id=user)
            return made

        with ThreadPoolExecutor(THREADS) as pool:
            made = [memory_id for ids in pool.map(work, range(THREADS)) for memory_id in ids]
        assert len(set(made)) == THREADS * ADDS
        for user in range(users):
            found = Counter(entry["memory"] for entry in memory.get_all(user_id=f"user {user}", limit=None)["results"])
            assert max(found.values()) == 1
            assert len(found) == ADDS + ADDS * THREADS // users
        assert all(memory.history(memory_id) for memory_id in made[::50])


def test_tasks(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_memory(tmp_path) as memory:
            adds = [memory.aadd(f"fact {index % 32}", user_id=f"user {index % 2}") for index in range(64)]
            await asyncio.gather(*adds)
            for user in ("user 0", "user 1"):
                assert len((await memory.aget_all(user_id=user))["results"]) == 16

    asyncio.run(main())


def test_two_concurrent_adds_of_one_fact_through_a_model_make_one_memory(tmp_path: Path) -> None:
    def model(task: str, messages: Any) -> Any:
        if task == "facts":
            return {"facts": ["Likes tea"]}
        return {"memory": [{"id": "0", "text": "Likes tea", "event": "ADD"}]}

    with open_memory(tmp_path, model) as memory, ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda _: memory.add("I like tea", user_id="u"), range(16)))
        results = [entry for one in added for entry in list_added(one)]
        assert Counter(entry["event"] for entry in results) == {"ADD": 1, "NONE": 15}
        assert len({entry["id"] for entry in results}) == 1
        assert len(memory.history(results[0]["id"])) == 1


def test_two_processes_on_one_path(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, str(WRITER), str(tmp_path), name, str(ADDS)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "ben")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    with open_memory(tmp_path, embedder=HashEmbedder(dims=32)) as memory:
        found = result_texts(memory.get_all(user_id="shared", limit=None))
        wanted = [f"{who} {index}" for index in range(ADDS) for who in ("ann says", "ben says", "both say")]
        assert sorted(found) == sorted(wanted)


def test_readers_go_on_while_another_process_writes(tmp_path: Path) -> None:
    import sqlite3

    with open_memory(tmp_path) as memory:
        memory.add("I like tea", user_id="u")
        other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM memories")
        assert result_texts(memory.search("tea", user_id="u")) == ["I like tea"]
        other.execute("ROLLBACK")
        other.close()
