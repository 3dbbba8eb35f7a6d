"""Store nine months of conversation and search them, without a key, server or download.

A second run adds nothing, because everything is known. ``--fresh`` starts over.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from mem0_core import Memory
from mem0_core.config import MemoryConfig
from mem0_core.testing import ScriptedChat

CONVERSATION = Path(__file__).with_name("conversation.json")
DATA = MemoryConfig().folder / "quickstart"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--path", type=Path, default=DATA, help=f"data folder (default: {DATA})")
    options.add_argument("--fresh", action="store_true", help="delete the data of an earlier run")
    chosen = options.parse_args()
    if chosen.fresh:
        shutil.rmtree(chosen.path, ignore_errors=True)
    conversation = json.loads(CONVERSATION.read_text(encoding="utf-8"))
    user = conversation["user_id"]
    with Memory({"path": str(chosen.path)}) as memory:
        ingest(memory, conversation)
        heading("What do you remember?")
        for question in conversation["questions"]:
            ask(memory, question["ask"], user)
        show_graph(memory, user)
        whole = len(memory.get_all(user_id=user, limit=None)["results"])
    reconcile()
    heading("Files")
    files = [file for file in chosen.path.rglob("*") if file.is_file()]
    print(f"  {whole} memories of {user}, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")
    print(f"  {chosen.path / 'memory.db'}   one SQLite file with memories, vectors, messages, history")
    print("\n  Next: examples/langchain_agent.py, langgraph_workflow.py, llamaindex_chat.py")


def ingest(memory: Memory, conversation: dict[str, Any]) -> None:
    """Add the sessions, each at its own date. Without a model, messages are stored verbatim."""
    sessions = conversation["sessions"]
    total = sum(len(session["messages"]) for session in sessions)
    heading(f"{conversation['title']}: {len(sessions)} sessions, {total} messages")
    started, new = time.perf_counter(), 0
    for session in sessions:
        result = memory.add(
            session["messages"],
            user_id=conversation["user_id"],
            metadata={"session": session["id"]},
            timestamp=session["date"],
        )
        fresh = sum(entry["event"] == "ADD" for entry in result["results"])
        new += fresh
        print(f"  {session['date'][:10]}  {bar(len(session['messages']), 24)}  {fresh:3} new", flush=True)
    seconds = time.perf_counter() - started
    known = "" if new else "; everything was known already"
    print(f"  {new} memories added in {seconds:.1f} s{known}")


def ask(memory: Memory, question: str, user: str) -> None:
    """Answer a question without a model, and show since when the answer holds and the memory that proves it."""
    print(f"\n{bold('? ' + question)}")
    found = memory.answer(question, user_id=user)
    if found["values"]:
        since = f", since {found['since'][:10]}" if found["since"] else ""
        print(f"  {', '.join(found['values'])}{dim(since)}")
    for proof in found["memories"][:1]:
        said = f"{proof.get('actor_id', 'somebody')}, {proof['created_at'][:10]}"
        print(textwrap.indent("\n".join(textwrap.wrap(f"{said}: {proof['memory']}", 92)), "      "))


def show_graph(memory: Memory, user: str) -> None:
    """Follow relations, and compare what holds now with what held on a day in the past."""
    heading("Relations, read from the messages without a model")
    for question in ("my sister's dog", "where does my partner work"):
        for path in memory.traverse(question, user_id=user, limit=1):
            steps = [f"-- {step['relationship']} --> {step['destination']}" for step in path["steps"]]
            print(f"  {question}:  {path['start']} {' '.join(steps)}")
    for day in ("2025-05-01", "2025-12-01"):
        held = memory.relations(user_id=user, as_of=day)
        shown = [one for one in held if one["source"] == "Maya" and one["relationship"] in ("lives_in", "works_at")]
        print(f"  on {day}:  {', '.join(' '.join((one['relationship'], one['destination'])) for one in shown)}")


def reconcile() -> None:
    """Reconcile a new statement with known facts by a chat model, and show the history.

    A script replaces the model, so no key is needed. With a model:
    ``Memory(llm="openai:gpt-4o-mini")``, or ``llm={"provider": "ollama", "config": {"model": "qwen3"}}``.
    """
    heading("With a chat model, changed facts are reconciled (a script replaces the model here)")
    said = [
        ("2025-03-08", "I live in Lisbon, in Graça, and arroz de marisco is my favourite dish."),
        ("2025-07-28", "We moved to Bonfim in Porto, and I turned out to be allergic to crustaceans."),
    ]
    with tempfile.TemporaryDirectory() as path, Memory({"path": path}, llm=ScriptedChat(answer_as_model)) as memory:
        for day, text in said:
            print(f"  {dim(day)}  Maya: {text}")
            for change in memory.add(text, user_id="maya", timestamp=day)["results"]:
                print(f"      {change['event']:<6}  {change['memory']}")
        home = memory.search("Where does Maya live?", user_id="maya", limit=1)["results"][0]
        print()
        show_history(memory, home["id"])


def answer_as_model(task: str, messages: Any) -> dict[str, Any]:
    """Return the answers of a chat model to the two requests of each `add`."""
    asked = messages[-1]["content"]
    if task == "facts":
        if "Porto" in asked:  # the request has the messages before, too
            return {"facts": ["Lives in Porto, in Bonfim", "Is allergic to crustaceans"]}
        return {"facts": ["Lives in Lisbon, in Graça", "Favourite dish is arroz de marisco"]}
    data = json.loads(asked)
    known = {memory["text"]: memory["id"] for memory in data["memories"]}
    if not known:
        return {"memory": [{"id": "new", "text": fact, "event": "ADD"} for fact in data["facts"]]}
    return {
        "memory": [
            {"id": known["Lives in Lisbon, in Graça"], "text": "Lives in Porto, in Bonfim", "event": "UPDATE"},
            {"id": known["Favourite dish is arroz de marisco"], "text": "", "event": "DELETE"},
            {"id": "new", "text": "Is allergic to crustaceans", "event": "ADD"},
        ]
    }


def show_history(memory: Memory, memory_id: str) -> None:
    print(f"  {dim('history of ' + memory_id)}")
    for row in memory.history(memory_id):
        when = (row["updated_at"] or row["created_at"] or "")[:10]
        print(f"      {when}  {row['event']:<6}  {row['new_memory'] or row['old_memory']}")


def heading(text: str) -> None:
    print(f"\n{bold(text)}\n{'-' * min(len(text), 100)}")


def bar(count: int, width: int) -> str:
    return "█" * min(count, width) + "·" * max(0, width - count)


def bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def dim(text: str) -> str:
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text


if __name__ == "__main__":
    main()
