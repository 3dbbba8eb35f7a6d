"""The examples show what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(script: str, home: Path) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEM0_EXAMPLE")}
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / script)]
    env |= {"HOME": str(home), "USERPROFILE": str(home)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_a_chat_engine_knows_on_friday_what_it_was_told_on_monday(tmp_path: Path) -> None:
    mayas, bens = run("llamaindex_chat.py", tmp_path).split("Friday\n")[1].split("ben: ")
    assert "I am allergic to peanuts." in mayas
    assert "That is new to me." in bens.splitlines()[1]


def test_an_agent_goes_on_from_its_saved_context_and_another_user_is_told_nothing(tmp_path: Path) -> None:
    mayas, bens = run("llamaindex_agent.py", tmp_path).split("Friday\n")[1].split("ben: ")
    food, visit = [line for line in mayas.splitlines() if "agent:" in line]
    assert "I am allergic to peanuts." in food  # said to the agent
    assert "Maya's sister Ines visits in May." in visit  # saved by its tool
    assert "That is new to me." in bens.splitlines()[1]


def test_the_second_look_finds_what_the_first_did_not(tmp_path: Path) -> None:
    shown = run("llamaindex_rag_rerank.py", tmp_path)
    first = [line for line in shown.splitlines() if line.startswith("  ")]
    assert all(line.startswith("  1.00") for line in first[:5])  # all alike
    assert "Dogs are not allowed on the ferry" in shown.split("With BM25 and a reranker:\n")[1].splitlines()[0]
    assert "a dog called Bruno" in shown.split("Of Maya's memories:\n")[1]


def test_a_retrieval_engine_knows_on_friday_what_it_was_told_on_monday(tmp_path: Path) -> None:
    friday, query = run("llamaindex_rag_memory.py", tmp_path).split("Friday\n")[1].split("A query engine\n")
    mayas, bens = friday.split("ben: ")
    assert "The office in Oslo opens at eight" in mayas
    assert "Which city is yours?" in bens
    assert "Oslo" in query
