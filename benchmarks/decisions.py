"""A chat model with predetermined answers: the same decisions step by step, or in one answer."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from benchmarks.relations import HUB, fresh_name
from mem0_core.domain.records import Triplet
from mem0_core.interfaces import Reply, Tool, ToolCall

__all__ = ["DecidedChat", "ModelCall", "Turn", "depth", "moves", "visits"]

CHARACTERS_PER_TOKEN = 4  # a rule of thumb for English, in place of a tokenizer


@dataclass(frozen=True, slots=True)
class Turn:
    """The content of one message and the decisions of the model about it."""

    message: str
    fact: str
    relations: tuple[Triplet, ...]
    outdated: tuple[Triplet, ...] = ()
    refined: tuple[tuple[Triplet, str], ...] = ()

    @property
    def texts(self) -> list[str]:
        """Return all texts of the turn, so that an embedder can see their words before timing starts."""
        return [f"user: {self.message}", self.fact, *(triplet.sentence for triplet in self.relations)]


def visits(chance: random.Random) -> Iterator[Turn]:
    """Yield turns with one fact and one relation each, from the hub to a new node; nothing ends."""
    while True:
        place = fresh_name(chance)
        yield Turn(f"I have been to {place}.", f"Has been to {place}", (Triplet(HUB, "visited", place),))


def moves(chance: random.Random) -> Iterator[Turn]:
    """Yield turns with one fact and two relations to a new node each; all but the first also end and refine a relation.

    The messages are short and mention the ended relation twice: a fused question shows only the relations nearest to
        the
    message as a whole.
    """
    place = fresh_name(chance)
    yield Turn(f"Now {place}.", f"Is at {place}", _arrival(place))
    while True:
        left, place = place, fresh_name(chance)
        works, visited = _arrival(left)
        yield Turn(
            f"I left {left}: {left} is over. Now {place}.",
            f"Is at {place}",
            _arrival(place),
            outdated=(works,),
            refined=((visited, "visited_often"),),
        )


def _arrival(place: str) -> tuple[Triplet, Triplet]:
    return Triplet(HUB, "works_at", place), Triplet(HUB, "visited", place)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request: its start, its end, and its length."""

    task: str
    started: float
    ended: float
    characters: int
    tools: tuple[Tool, ...] = ()
    schema: type[BaseModel] | None = None

    @property
    def tokens(self) -> float:
        """Return the estimated tokens of its messages."""
        return self.characters / CHARACTERS_PER_TOKEN

    @property
    def form_tokens(self) -> float:
        """Return the estimated tokens of its tools or schema."""
        forms: list[Any] = [asdict(tool) for tool in self.tools]
        forms += [self.schema.model_json_schema()] if self.schema is not None else []
        return sum(len(json.dumps(form)) for form in forms) / CHARACTERS_PER_TOKEN


def depth(calls: Sequence[ModelCall]) -> int:
    """Return the longest chain of calls in which each began after the one before had ended."""
    longest: list[int] = []
    ordered = sorted(calls, key=lambda call: call.started)
    for place, call in enumerate(ordered):
        before = (longest[at] for at in range(place) if ordered[at].ended <= call.started)
        longest.append(1 + max(before, default=0))
    return max(longest, default=0)


@dataclass(slots=True)
class DecidedChat:
    """A `ChatModel` that answers as the current `turn` decides; each answer takes `delay` seconds.

    Attributes:
        inline: see `mem0_core.flow`. False, as for a model that is awaited: its calls are made in threads.
        calls: its requests since the list was last cleared.
    """

    turn: Turn
    delay: float = 0.0
    inline: bool = False
    calls: list[ModelCall] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        started = time.perf_counter()
        if self.delay:
            time.sleep(self.delay)
        reply = _ANSWERS[task](self.turn, messages)
        characters = sum(len(message["content"]) for message in messages)
        self.calls.append(ModelCall(task, started, time.perf_counter(), characters, tuple(tools), schema))
        return reply


# --- answers -----------------------------------------------------------------------------------------------------

_Messages = Sequence[Mapping[str, Any]]


def _facts(turn: Turn, _: _Messages) -> Reply:
    return Reply(text=json.dumps({"facts": [turn.fact]}))


def _operations(turn: Turn, _: _Messages) -> Reply:
    return Reply(text=json.dumps({"memory": [_operation(turn)]}))


def _operation(turn: Turn) -> dict[str, str]:
    return {"id": "99", "text": turn.fact, "event": "ADD"}


def _entities(turn: Turn, _: _Messages) -> Reply:
    return _build_call("extract_entities", {"entities": _find_name(turn)})


def _find_name(turn: Turn) -> list[dict[str, str]]:
    places = [{"entity": triplet.destination, "entity_type": "place"} for triplet in turn.relations]
    return [{"entity": HUB, "entity_type": "person"}, *places]


def _relations(turn: Turn, _: _Messages) -> Reply:
    return _build_call("establish_relationships", {"entities": [_fields(each) for each in turn.relations]})


def _outdated(turn: Turn, _: _Messages) -> Reply:
    return _build_call("delete_graph_memory", *(_fields(triplet) for triplet in turn.outdated))


def _refined(turn: Turn, _: _Messages) -> Reply:
    return _build_call("update_graph_memory", *(_fields(old) | {"relationship": new} for old, new in turn.refined))


def _fused(turn: Turn, messages: _Messages) -> Reply:
    shown = json.loads(messages[-1]["content"])["relations"]
    ids = {(each["source"], each["relationship"], each["destination"]): each["id"] for each in shown}
    known = [*turn.outdated, *(old for old, _ in turn.refined)]
    assert all(_key(triplet) in ids for triplet in known), f"a relation the message speaks of is not shown: {known}"
    answer = {
        "facts": [turn.fact],
        "memory": [_operation(turn)],
        "entities": _find_name(turn),
        "relations": [_fields(triplet) for triplet in turn.relations],
        "outdated": [ids[_key(triplet)] for triplet in turn.outdated],
        "refined": [{"id": ids[_key(old)], "relationship": new} for old, new in turn.refined],
    }
    return Reply(text=json.dumps(answer))


def _build_call(tool: str, *arguments: dict[str, Any]) -> Reply:
    return Reply(tool_calls=tuple(ToolCall(tool, each) for each in arguments))


def _key(triplet: Triplet) -> tuple[str, str, str]:
    return triplet.source, triplet.relationship, triplet.destination


def _fields(triplet: Triplet) -> dict[str, str]:
    return {"source": triplet.source, "relationship": triplet.relationship, "destination": triplet.destination}


_ANSWERS: dict[str, Callable[[Turn, _Messages], Reply]] = {
    "facts": _facts,
    "operations": _operations,
    "entities": _entities,
    "relations": _relations,
    "outdated": _outdated,
    "refined": _refined,
    "fused": _fused,
}
