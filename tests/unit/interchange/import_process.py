"""Run as a script: import numbered messages under a key, until done or killed, and print one number for each chunk.

``python import_nursery.py FOLDER COUNT``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core import Memory
from mem0_core.testing import HashEmbedder


class SlowEmbedder(HashEmbedder):
    """Takes its time, so that there is a middle to be killed in."""

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        time.sleep(0.02)
        return super().embed(texts, kind=kind)


def said(count: int) -> list[str]:
    return [f"message {number}" for number in range(count)]


def tell(done: int, total: int | None) -> None:
    print(done, flush=True)  # noqa: T201


def main(folder: Path, count: int) -> None:
    with Memory({"path": str(folder), "durability": "process"}, embedder=SlowEmbedder(dims=32)) as memory:
        memory.add_many(said(count), user_id="u", chunk=4, key="import", on_progress=tell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
