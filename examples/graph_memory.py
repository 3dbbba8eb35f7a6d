"""Graph memory, with no key: MIT retires, Stanford is new, Boston stays, and every day is remembered as it was.

A script stands in for the chat model. With ``NEO4J_URL`` set (``bolt://localhost:7687``), the graph is in your Neo4j as
well; ``MEM0_EXAMPLE_MODEL`` (``openai:gpt-4o-mini``) puts a real model in the script's place.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from mem0_core import Memory
from mem0_core.testing import ScriptedChat

TOLD = {
    "2024-02-01": "I work at MIT, and I live in Boston.",
    "2025-06-01": "I work as a professor at Stanford now!",
}
KNOWN = {
    "2024-02-01": [("alice_123", "works_at", "MIT"), ("alice_123", "lives_in", "Boston")],
    "2025-06-01": [("alice_123", "works_as_professor_at", "Stanford")],
}


def main() -> None:
    url = os.environ.get("NEO4J_URL")
    graph = {"provider": "neo4j", "config": {"url": url}} if url else {"provider": "sqlite"}
    with tempfile.TemporaryDirectory() as folder:
        model = os.environ.get("MEM0_EXAMPLE_MODEL") or ScriptedChat(script)
        with Memory({"path": folder, "graph_store": graph}, llm=model) as memory:
            for day, text in TOLD.items():
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
                memory.delete_all(user_id="alice_123")  # this was only an example: leave nothing on your server


def script(task: str, messages: Any) -> dict[str, Any]:
    """What a chat model would find in the two messages."""
    stanford = "Stanford" in messages[-1]["content"].rpartition('"text"')[2]
    stated = KNOWN["2025-06-01" if stanford else "2024-02-01"]
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
