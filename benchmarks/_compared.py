"""One of two commits that `benchmarks compare` runs: it fills a store, then answers each line with times of a block.

The program runs with the packages of its commit on the path, so it uses the public API only.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mem0_core import Memory
from mem0_core.testing import HashEmbedder

__all__ = ["WORKLOADS"]

WORKLOADS = ("search", "search by mem0", "search after an add", "add of two", "first search", "turn of an agent")
RANKINGS = "rankings"  # a line that asks for the results of all questions about real texts
_DEPTH = 20
BLOCK = 20  # calls between two turns of the other commit


def main(folder: Path) -> None:
    """Read the texts, fill a store with them, and run a block of a workload for each line of the input."""
    given = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    with Memory({"path": str(folder), "durability": "process"}, embedder=HashEmbedder()) as memory:
        for user, texts in given["memories"].items():
            memory.add_many(texts, user_id=user)
        calls = {name: _calls(name, memory, given, folder) for name in WORKLOADS}
        for text in ("a dog", "tea", "a car"):  # the second search of a user reads ahead
            for user in given["memories"]:
                memory.search(text, user_id=user, limit=10)
        print("ready", flush=True)
        for line in sys.stdin:
            name = line.strip()
            answer: object = _rank(folder, given["talks"]) if name == RANKINGS else _take_turn(calls[name])
            print(json.dumps(answer), flush=True)


def _take_turn(calls: Iterator[Callable[[], object]]) -> list[float]:
    return [_time(next(calls)) for _ in range(BLOCK)]


def _rank(folder: Path, talks: list[dict[str, Any]]) -> list[Any]:
    """Return the texts and scores that each question finds, and that it finds in lower case."""
    found: list[Any] = []
    with Memory({"path": str(folder / "talks"), "durability": "process"}, embedder=HashEmbedder()) as memory:
        for talk in talks:
            memory.add_many(talk["messages"], user_id=talk["user"])
            for question in talk["questions"]:
                for text in (question, question.lower()):
                    results = memory.search(text, user_id=talk["user"], limit=_DEPTH)["results"]
                    found.append([[one["memory"], round(one["score"], 9), one.get("valid_to")] for one in results])
    return found


def _time(call: Callable[[], object]) -> float:
    """Return the milliseconds of CPU of a call on this thread: neighbors on the machine change its wall time."""
    started = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - started)


def _calls(name: str, memory: Memory, given: dict[str, Any], folder: Path) -> Iterator[Callable[[], object]]:
    """Yield the calls of a workload without end; no question is asked twice."""
    users, questions = list(given["memories"]), given["questions"]
    agent = _make_agent(memory) if name == "turn of an agent" else None
    for number in range(sys.maxsize):
        user, question = users[number % len(users)], f"{questions[number % len(questions)]} ({number})"
        options: dict[str, Any] = {"user_id": user, "limit": 10}
        if name == "search by mem0":
            options["recipe"] = "mem0"
        if name == "add of two":
            texts = [{"role": "user", "content": f"{name} {number}: {text}"} for text in (question, questions[-1])]
            yield lambda texts=texts, user=user: memory.add(texts, user_id=user, infer=False)  # type: ignore[misc]
            continue
        if agent is not None:
            turn = {"messages": question}, {"configurable": {"user_id": user}}
            yield lambda turn=turn: agent.invoke(*turn)  # type: ignore[misc]
            memory.flush()
            continue
        if name == "first search":
            yield lambda question=question, options=options: _search_first(folder, question, options)  # type: ignore[misc]
            continue
        if name == "search after an add":
            memory.add(f"Note {number}.", user_id=user, infer=False)
        yield lambda question=question, options=options: memory.search(question, **options)  # type: ignore[misc]


def _make_agent(memory: Memory) -> Any:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from mem0_langchain import MemoryMiddleware

    model = GenericFakeChatModel(messages=itertools.cycle([AIMessage("Noted.")]))
    return create_agent(model, middleware=[MemoryMiddleware(memory)])


def _search_first(folder: Path, question: str, options: dict[str, Any]) -> None:
    with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:
        memory.search(question, **options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
