"""A scripted model for tests of graph memory, which answers by task, and the forms of its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mem0_core.testing import ScriptedChat
from tests.support import MemoryDriver


def entities(*named: tuple[str, str]) -> dict[str, Any]:
    found = [{"entity": name, "entity_type": type} for name, type in named]
    return {"tool_calls": [{"name": "extract_entities", "arguments": {"entities": found}}]}


def relations(*stated: tuple[str, str, str]) -> dict[str, Any]:
    found = [_fields(*one) for one in stated]
    return {"tool_calls": [{"name": "establish_relationships", "arguments": {"entities": found}}]}


def outdated(*over: tuple[str, str, str]) -> dict[str, Any]:
    return {"tool_calls": [{"name": "delete_graph_memory", "arguments": _fields(*one)} for one in over]}


def refined(*sharper: tuple[str, str, str]) -> dict[str, Any]:
    return {"tool_calls": [{"name": "update_graph_memory", "arguments": _fields(*one)} for one in sharper]}


def _fields(source: str, relationship: str, destination: str) -> dict[str, str]:
    return {"source": source, "relationship": relationship, "destination": destination}


def relation_replies(*stated: tuple[str, str, str], **replies: Any) -> dict[str, Any]:
    """The replies of a model that finds these relations in whatever it is given, and no facts."""
    names = dict.fromkeys(name for s, _, d in stated for name in (s, d))
    return {"entities": entities(*((name, "") for name in names)), "relations": relations(*stated), **replies}


def fact_replies(*facts: str) -> dict[str, Any]:
    """The replies of a model that finds these facts, and adds them all."""
    added = [{"id": f"new {place}", "text": fact, "event": "ADD"} for place, fact in enumerate(facts)]
    return {"facts": {"facts": list(facts)}, "operations": {"memory": added}}


class GraphModel(ScriptedChat):
    """Answers by task: a reply, or a function of the request's data. What `replies` leaves out finds nothing."""

    _NOTHING: Mapping[str, Any] = {
        "facts": {"facts": []},
        "operations": {"memory": []},
        "entities": entities(),
        "relations": relations(),
        "outdated": "",
        "refined": "",
        "summary": "They talked.",
    }

    def __init__(self, replies: Mapping[str, Any] | None = None) -> None:
        super().__init__(self._answer)
        self.replies = dict(replies or {})

    def _answer(self, task: str, messages: Any) -> Any:
        reply = {**self._NOTHING, **self.replies}[task]
        return reply(json.loads(messages[-1]["content"])) if callable(reply) else reply


def graph_model_of(memory: MemoryDriver) -> GraphModel:
    model = memory.memory._chat
    assert isinstance(model, GraphModel)
    return model


def set_replies(memory: MemoryDriver, replies: Mapping[str, Any]) -> GraphModel:
    """Let the memory's model answer otherwise from now on, and forget what it was asked; returns the model."""
    model = graph_model_of(memory)
    model.replies = dict(replies)
    model.calls.clear()
    return model


def relation_text(relation: Mapping[str, Any]) -> str:
    """A relation as seed 000 writes it."""
    return f"{relation['source']} -- {relation['relationship']} -- {relation['destination']}"
