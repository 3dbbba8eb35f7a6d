"""Run as a script, ``python concurrent_writer.py FOLDER NAME COUNT``: adds COUNT facts of its own and COUNT shared."""

from __future__ import annotations

import sys

from mem0_core import Memory
from mem0_core.testing import HashEmbedder

folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Memory({"path": folder}, embedder=HashEmbedder(dims=32)) as memory:
    sys.stdin.readline()  # both processes start to write when told
    for index in range(count):
        memory.add(f"{name} says {index}", user_id="shared")
        memory.add(f"both say {index}", user_id="shared")
        found = memory.search(f"{name} says {index}", user_id="shared", limit=1)["results"]
        assert found[0]["memory"] == f"{name} says {index}", found
