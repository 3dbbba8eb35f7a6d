"""Run as a script: let a Qdrant on disk follow a truth, and kill it in the middle of that, until it comes to its end.

``python vectors_process.py STORE FOLDER`` prints what the runs said, line by line. They are forked from this process,
which has imported everything and opened nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Any

from langchain_qdrant import QdrantVectorStore
from qdrant_client import QdrantClient, models

from mem0_core.contracts import ALICE, DIMS, unit_vectors
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.stores.vector import external
from mem0_langchain import MemoryVectors, VectorStoreIndex

RUNS = 12
LINES = 3  # that a run may say before it is killed


class Telling(QdrantVectorStore):
    """One that says of each batch that it is added."""

    def add_texts(self, texts: Any, *args: Any, **kwargs: Any) -> Any:
        added = super().add_texts(texts, *args, **kwargs)
        print(f"added {len(texts)}", flush=True)  # noqa: T201
        return added


def follow(path: str, folder: str) -> None:
    external._BATCH_VECTORS = 50
    client = QdrantClient(path=folder)
    if not client.collection_exists("memories"):
        client.create_collection("memories", models.VectorParams(size=DIMS, distance=models.Distance.COSINE))
    store = SQLiteStore(path)
    index = VectorStoreIndex(Telling(client, "memories", embedding=MemoryVectors(DIMS)), source=store)
    index.nearest(ALICE, unit_vectors(1), 1)
    print("done", flush=True)  # noqa: T201
    client.close()
    store.close()


def one_run(path: str, folder: str) -> list[str]:
    """What a run said before it was killed, or had come to its end."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            os.dup2(write_end, 1)
            follow(path, folder)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(1)
    os.close(write_end)
    said: list[str] = []
    with os.fdopen(read_end) as told:
        for line in told:
            said.append(line.strip())
            if len(said) == LINES and "done" not in said:
                os.kill(pid, signal.SIGKILL)
                break
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, "a run failed"
    return said


def main(path: str, folder: str) -> None:
    for _ in range(RUNS):
        said = one_run(path, folder)
        print("\n".join(said), flush=True)  # noqa: T201
        if "done" in said:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
