"""The examples show what they promise: what one session tells, the next one knows, and nobody else does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def shown(script: str, home: Path) -> str:
    """What an example prints in an empty home, with no model named."""
    env = {name: value for name, value in os.environ.items() if name != "MEM0_EXAMPLE_MODEL"}
    command = [sys.executable, str(EXAMPLES / script)]
    homes = {"HOME": str(home), "USERPROFILE": str(home)}
    return subprocess.run(command, env=env | homes, capture_output=True, text=True, check=True).stdout


def test_the_rerank_example_puts_the_right_page_first(tmp_path: Path) -> None:
    lines = shown("langchain_rag_rerank.py", tmp_path).splitlines()
    assert lines[1].endswith("page 3")
    assert "Hot water for tea" in lines[-2]
    assert "I only drink green tea" in lines[-1]


@pytest.mark.parametrize(
    ("script", "told", "speaker"),
    [
        ("langchain_agent.py", "I am allergic to peanuts.", "agent"),
        ("langgraph_workflow.py", "My dog Bruno is afraid of thunder.", "graph"),
        ("langgraph_store.py", "My flight to Rome leaves at nine.", "agent"),
        ("classic_chain.py", "I am allergic to peanuts.", "chain"),
    ],
)
def test_an_example(script: str, told: str, speaker: str, tmp_path: Path) -> None:
    friday = shown(script, tmp_path).split("Friday\n")[1]
    mayas, bens = re.split(r"ben(?:@example\.com)?: ", friday)
    assert told in next(line for line in mayas.splitlines() if line.strip().startswith(f"{speaker}:"))
    assert "That is new to me." in bens.splitlines()[1]


def test_a_retrieval_chain_knows_on_friday_what_it_was_told_on_monday(tmp_path: Path) -> None:
    mayas, bens = shown("langchain_rag_memory.py", tmp_path).split("Friday\n")[1].split("ben: ")
    assert "The office in Oslo opens at eight" in mayas
    assert "Which city is yours?" in bens


def test_the_deep_agent_example_reads_its_notes_in_a_new_thread(tmp_path: Path) -> None:
    pytest.importorskip("deepagents", reason="nox -s deepagents installs it")
    monday, friday = shown("deep_agent.py", tmp_path).split("Friday, in a new thread\n")
    assert "plan: Write the plan down" in monday
    assert "approve write_file /memories/trips/porto.md? yes" in monday
    assert "notes: Night train to Porto, window seat." in friday
    assert "  /trips/porto.md" in friday
