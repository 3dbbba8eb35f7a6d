"""Synthetic conversations of any length, and a chat model that knows the content of each turn."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from pydantic import BaseModel

from benchmarks.corpus import memos
from benchmarks.decisions import ModelCall, Turn
from benchmarks.relations import HUB, fresh_name
from mem0_core.domain.records import Triplet
from mem0_core.interfaces import Reply, Tool

__all__ = ["TalkChat", "folded", "input_of", "messages_of", "reconcile_known", "turns_of_talk"]

SUMMARY_WORDS = 150
_PATIENCE = 60.0  # seconds that a blocked model waits at most, so that no run hangs


def turns_of_talk(seed: int) -> Iterator[Turn]:
    """Yield turns without end: each states one fact, and one relation to a new node."""
    chance = random.Random(seed)
    for memo in memos(seed):
        place = fresh_name(chance)
        message = f"{memo.text} And I have been to {place}."
        yield Turn(message, memo.text, (Triplet(HUB, "visited", place),))


def messages_of(turn: Turn) -> list[dict[str, str]]:
    """Return the user's message and the assistant's answer."""
    answer = f"I see. How was {turn.relations[0].destination}? Tell me more of it whenever you like."
    return [{"role": "user", "content": turn.message}, {"role": "assistant", "content": answer}]


class TalkChat:
    """A thread-safe `ChatModel` that answers for the turns in its messages; it can be blocked.

    Attributes:
        calls: the answered calls.
        open: blocks all answers while cleared.
        asked: set on every request.
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = {turn.message: turn for turn in turns}
        self.calls: list[ModelCall] = []
        self.open = Event()
        self.asked = Event()
        self.open.set()

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        started = time.perf_counter()
        self.asked.set()
        assert self.open.wait(_PATIENCE), "the model was held up, and nobody let it through"
        content = messages[-1]["content"]
        reply = _ANSWERS[task](self._find_turns(task, content), content)
        characters = sum(len(message["content"]) for message in messages)
        self.calls.append(ModelCall(task, started, time.perf_counter(), characters, tuple(tools), schema))
        return reply

    def _find_turns(self, task: str, content: str) -> list[Turn]:
        """Return the turns among the new messages of a prompt; `operations` prompts contain facts only."""
        if task == "operations":
            return []
        spoken = input_of(content) if task in ("facts", "summary") else json.loads(content)["text"]
        lines = (line.partition(": ")[2] for line in spoken.splitlines())
        return [self._turns[line] for line in lines if line in self._turns]


# --- answers -----------------------------------------------------------------------------------------------------


def input_of(content: str) -> str:
    """Return the new part of a prompt that shows earlier messages first."""
    return content.rpartition("Input:\n")[2]


def reconcile_known(content: str) -> Reply:
    """Return the operations of a careful model: known facts, up to case and spacing, are kept, all others added."""
    data = json.loads(content)
    known = {folded(memory["text"]): memory["id"] for memory in data["memories"]}
    return _in_json({"memory": _operations(data["facts"], known)})


def _operations(facts: Sequence[str], known: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {
            "id": known.get(folded(fact), f"new {place}"),
            "text": fact,
            "event": "NONE" if folded(fact) in known else "ADD",
        }
        for place, fact in enumerate(facts)
    ]


def folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _facts(turns: Sequence[Turn], _: str) -> Reply:
    return _in_json({"facts": [turn.fact for turn in turns]})


def _summary(_: Sequence[Turn], content: str) -> Reply:
    """Return a summary of realistic length that differs each time."""
    return Reply(text=" ".join(input_of(content).split()[:SUMMARY_WORDS]))


def _entities(turns: Sequence[Turn], _: str) -> Reply:
    return _in_json({"entities": _find_name(turns)})


def _find_name(turns: Sequence[Turn]) -> list[dict[str, str]]:
    places = [{"entity": each.destination, "entity_type": "place"} for turn in turns for each in turn.relations]
    return [{"entity": HUB, "entity_type": "person"}, *places]


def _relations(turns: Sequence[Turn], _: str) -> Reply:
    return _in_json({"entities": _triplets(turns)})


def _triplets(turns: Sequence[Turn]) -> list[dict[str, str]]:
    return [
        {"source": each.source, "relationship": each.relationship, "destination": each.destination}
        for turn in turns
        for each in turn.relations
    ]


def _fused(turns: Sequence[Turn], content: str) -> Reply:
    known = {folded(memory["text"]): memory["id"] for memory in json.loads(content)["memories"]}
    facts = [turn.fact for turn in turns]
    answer = {"facts": facts, "memory": _operations(facts, known), "entities": _find_name(turns)}
    return _in_json({**answer, "relations": _triplets(turns), "outdated": [], "refined": []})


def _in_json(answer: Mapping[str, Any]) -> Reply:
    return Reply(text=json.dumps(answer, ensure_ascii=False))


_ANSWERS: dict[str, Callable[[Sequence[Turn], str], Reply]] = {
    "facts": _facts,
    "operations": lambda _, content: reconcile_known(content),
    "summary": _summary,
    "entities": _entities,
    "relations": _relations,
    "outdated": lambda *_: Reply(),
    "refined": lambda *_: Reply(),
    "fused": _fused,
}
