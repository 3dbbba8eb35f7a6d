"""Update graph memory over time: a relation ends, one begins, one remains, and past days can be queried.

A script replaces the chat model, so no key is needed. ``MEM0_EXAMPLE_MODEL`` (``openai:gpt-4o-mini``) selects a real
model. ``NEO4J_URL`` (``bolt://localhost:7687``) also writes the graph to your Neo4j server.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from mem0_core import Memory
from mem0_core.testing import ScriptedChat

MESSAGES = {
    "2024-02-01": "I work at MIT, and I live in Boston.",
    "2025-06-01": "I work as a professor at Stanford now!",
}
RELATIONS = {
    "2024-02-01": [("alice_123", "works_at", "MIT"), ("alice_123", "lives_in", "Boston")],
    "2025-06-01": [("alice_123", "works_as_professor_at", "Stanford")],
}


def main() -> None:
    url = os.environ.get("NEO4J_URL")
    graph = {"provider": "neo4j", "config": {"url": url}} if url else {"provider": "sqlite"}
    with tempfile.TemporaryDirectory() as folder:
        model = os.environ.get("MEM0_EXAMPLE_MODEL") or ScriptedChat(script)
        with Memory({"path": folder, "graph_store": graph}, llm=model) as memory:
            for day, text in MESSAGES.items():
                relations = memory.add(text, user_id="alice_123", timestamp=day)["relations"]
                print(f"{day}  alice_123: {text}")
                for relation in relations["added_entities"]:
                    print(f"    began  {relation}")
                for relation in relations["deleted_entities"]:
                    print(f"    ended  {relation}")
            for day in ("2024-06-01", "2025-07-01"):
                held = memory.relations(user_id="alice_123", as_of=day)
                print(f"as of {day}:", "; ".join(f"{one['relationship']} {one['destination']}" for one in held))
            if url:
                memory.delete_all(user_id="alice_123")  # remove the example from your server


def script(task: str, messages: Any) -> dict[str, Any]:
    """Return the answers of a chat model for the two messages."""
    stanford = "Stanford" in messages[-1]["content"].rpartition('"text"')[2]
    stated = RELATIONS["2025-06-01" if stanford else "2024-02-01"]
    names = dict.fromkeys(end for source, _, destination in stated for end in (source, destination))
    answers: dict[str, dict[str, Any]] = {
        "facts": {"facts": []},
        "entities": {"entities": [{"entity": name, "entity_type": ""} for name in names]},
        "relations": {
            "entities": [{"source": s, "relationship": r, "destination": d} for s, r, d in stated],
        },
        "outdated": {
            "deletions": [{"source": "alice_123", "relationship": "works_at", "destination": "MIT"}] if stanford else []
        },
        "refined": {"updates": []},
    }
    return answers[task]


if __name__ == "__main__":
    main()
