"""The examples show what they promise: what one session tells, the next one knows, and nobody else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("script", "told", "speaker"),
    [
        ("langchain_agent.py", "I am allergic to peanuts.", "agent"),
        ("langgraph_workflow.py", "My dog Bruno is afraid of thunder.", "graph"),
    ],
)
def test_an_example(script: str, told: str, speaker: str, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "MEM0_EXAMPLE_MODEL"}
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    command = [sys.executable, str(EXAMPLES / script)]
    shown = subprocess.run(command, env=env | home, capture_output=True, text=True, check=True).stdout
    friday = shown.split("Friday\n")[1]
    mayas, bens = friday.split("ben: ")
    assert told in next(line for line in mayas.splitlines() if line.strip().startswith(f"{speaker}:"))
    assert "That is new to me." in bens.splitlines()[1]
