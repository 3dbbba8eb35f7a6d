"""Probes of questions about time, chains and names: a short conversation, a question, the right memory or path end.

``python -m tests.stories.probes`` prints the share that is right for each finding and split. Probes of the split
``held`` are only counted: no rule may be written after reading their failures.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mem0_core import Memory
from mem0_core.testing import ScriptedChat, ScriptedReply

__all__ = ["Probe", "load_probes", "run_probe"]

USER = "user"


@dataclass(frozen=True, slots=True)
class Probe:
    """A conversation and a question about it.

    Attributes:
        messages: times and texts of the user's messages.
        first: index of the message that search must return first; None to leave it open.
        end: text that the end of the best path must contain; None to leave it open.
        relations: triples that a model reads in each message; empty to run without a model.
    """

    id: str
    finding: str
    split: str
    messages: Sequence[tuple[str, str]]
    question: str
    reference_date: str | None = None
    first: int | None = None
    end: str | None = None
    relations: Sequence[Sequence[tuple[str, str, str]]] = ()


def load_probes() -> list[Probe]:
    """Return all probes, in the order of the file."""
    path = Path(__file__).parent / "probes_m.jsonl"
    return [Probe(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def run_probe(probe: Probe, folder: str) -> list[str]:
    """Play a probe in a new memory; return its failures, empty if all is right."""
    memory = _play(probe, folder)
    failures = []
    try:
        if probe.first is not None:
            found = memory.search(probe.question, user_id=USER, limit=3, reference_date=probe.reference_date)["results"]
            first = found[0]["memory"] if found else None
            if first != probe.messages[probe.first][1]:
                failures.append(f"search returns {first!r} first")
        if probe.end is not None:
            paths = memory.traverse(probe.question, user_id=USER)
            end = str(paths[0]["end"]) if paths else ""
            if probe.end.casefold() not in end.casefold():
                failures.append(f"traverse ends at {end!r}")
    finally:
        memory.close()
    return failures


def _play(probe: Probe, folder: str) -> Memory:
    config: dict[str, Any] = {"path": folder, "summary_every": 0}
    if not probe.relations:
        memory = Memory(config)
        for time, text in probe.messages:
            memory.add(text, user_id=USER, timestamp=time)
        return memory
    said: dict[str, Any] = {}

    def reply(task: str, messages: Sequence[Mapping[str, Any]]) -> ScriptedReply:
        return _reply(task, messages, said["text"], said["relations"])

    memory = Memory(
        config | {"graph_store": {"provider": "sqlite", "query_entities": "rules"}}, llm=ScriptedChat(reply)
    )
    for (time, text), relations in zip(probe.messages, probe.relations, strict=True):
        said.update(text=text, relations=relations)
        memory.add(text, user_id=USER, timestamp=time)
    return memory


def _reply(
    task: str, messages: Sequence[Mapping[str, Any]], text: str, relations: Sequence[Sequence[str]]
) -> ScriptedReply:
    if task == "facts":
        return {"facts": [text]}
    if task == "operations":
        asked = next((m["content"] for m in reversed(messages) if str(m["content"]).startswith("{")), "{}")
        kept = [{**known, "event": "NONE"} for known in json.loads(asked).get("memories", [])]
        return {"memory": [*kept, {"id": "1000", "text": text, "event": "ADD"}]}
    if task == "entities":
        names = dict.fromkeys(name for source, _, destination in relations for name in (source, destination))
        return _call("extract_entities", [{"entity": name, "entity_type": "person"} for name in names])
    if task == "relations":
        keys = ("source", "relationship", "destination")
        return _call("establish_relationships", [dict(zip(keys, triple, strict=True)) for triple in relations])
    return {"tool_calls": []}


def _call(name: str, entities: list[dict[str, str]]) -> ScriptedReply:
    return {"tool_calls": [{"name": name, "arguments": {"entities": entities}}]}


def main() -> None:
    """Print the share of right probes for each finding and split, and the failures of the development split."""
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for probe in load_probes():
        with TemporaryDirectory() as folder:
            failures = run_probe(probe, folder)
        right[probe.finding, probe.split].append(not failures)
        if failures and probe.split == "dev":
            sys.stdout.write(f"{probe.id}: {probe.question} {'; '.join(failures)}\n")
    for (finding, split), outcomes in sorted(right.items()):
        sys.stdout.write(f"{finding:<4}{split:<6}{sum(outcomes)} of {len(outcomes)}\n")


if __name__ == "__main__":
    main()
