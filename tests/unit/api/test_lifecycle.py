"""Processes that fork, are asked to end, or have a clock that goes back lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("lifecycle_process.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run(part: str, folder: Path) -> Any:
    command = [sys.executable, str(SCRIPT), part, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_store_survives_a_fork_that_opens_it_again(tmp_path: Path) -> None:
    found = run("fork", tmp_path)
    assert found["status"] == 0
    assert found["memories"] == ["I have a dog.", "I like tea.", "I live in Rome."]
    assert found["findings"] == []


def test_a_clock_that_goes_back_loses_nothing(tmp_path: Path) -> None:
    found = run("clock", tmp_path)
    assert found["memories"] == ["I have two cats.", "I live in Rome.", "I play chess."]
    assert found["history"] == ["ADD", "UPDATE"]
    assert found["findings"] == []
    assert found["verified"]
    assert found["is_flushed"]
    assert "Likes tea" in found["after"]


def test_a_worker_that_is_asked_to_end_leaves_its_job_to_others(tmp_path: Path) -> None:
    worker = subprocess.Popen([sys.executable, str(SCRIPT), "work", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "asked\n"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(300) == -signal.SIGTERM
    worker.stdout.close()
    found = run("finish", tmp_path)
    assert found["is_flushed"]
    assert found["memories"] == ["Likes tea"]
    assert found["waiting"] == 0
    assert found["findings"] == []
