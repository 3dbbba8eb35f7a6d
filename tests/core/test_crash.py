"""kill -9 in the middle of adds: what was acknowledged is there, whole, and everything agrees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mem0_core.testing import HashEmbedder
from tests.support import open_memory

NURSERY = Path(__file__).with_name("crash_nursery.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost(tmp_path: Path, runs: int) -> None:
    done = subprocess.run(
        [sys.executable, str(NURSERY), str(tmp_path), str(runs), "7"], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    print(report)  # noqa: T201 - shown with -s, and when the test fails
    wrong = {name: report[name] for name in ("lost", "vectors_wrong", "history_disagrees", "half_adds", "corrupt")}
    assert wrong == {"lost": 0, "vectors_wrong": 0, "history_disagrees": 0, "half_adds": 0, "corrupt": 0}
    assert report["runs"] == runs
    assert report["killed_before_the_first_add"] < runs, "no writer lived long enough to be a test"
    with open_memory(tmp_path, embedder=HashEmbedder(dims=32)) as memory:
        everything = memory.get_all(user_id="user 1")["results"]
        for entry in everything[-5:]:
            assert memory.search(entry["memory"], user_id="user 1", limit=1)["results"][0]["id"] == entry["id"]
