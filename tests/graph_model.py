"""A scripted model for tests of graph memory that replies by task, and the forms of its replies."""

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
    """Return replies with these relations and no facts, for any input."""
    names = dict.fromkeys(name for s, _, d in stated for name in (s, d))
    return {"entities": entities(*((name, "") for name in names)), "relations": relations(*stated), **replies}


def fact_replies(*facts: str) -> dict[str, Any]:
    """Return replies with these facts, all added."""
    added = [{"id": f"new {place}", "text": fact, "event": "ADD"} for place, fact in enumerate(facts)]
    return {"facts": {"facts": list(facts)}, "operations": {"memory": added}}


class GraphModel(ScriptedChat):
    """A model that replies by task: a reply, or a function of the request's data. Other tasks find nothing."""

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
    """Change the replies of the memory's model and clear its recorded calls. Returns the model."""
    model = graph_model_of(memory)
    model.replies = dict(replies)
    model.calls.clear()
    return model


def relation_text(relation: Mapping[str, Any]) -> str:
    """Return a relation in mem0's notation."""
    return f"{relation['source']} -- {relation['relationship']} -- {relation['destination']}"
