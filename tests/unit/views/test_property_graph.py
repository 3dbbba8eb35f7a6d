"""`ScopedGraph` between reads: it follows the store by its changes, and reads nothing twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core.flow import StepRecord
from mem0_core.views import PropertyGraph, PropertyNode, PropertyRelation, ScopedGraph, property_graph
from mem0_core.views import _graph_records as graph_records
from tests.support import open_memory

NAMES = ("Ana", "Ben", "Initech", "Porto", "Rex")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_graph_is_read_once_until_its_scope_changes(tmp_path: Path, mode: str) -> None:
    calls: Counter[str] = Counter()

    def count(step: StepRecord) -> None:
        calls[step.call.name.rpartition(".")[2]] += 1

    with open_memory(tmp_path, on_step=count) as memory:
        graph = ScopedGraph(memory, user_id="maya")

        def load() -> PropertyGraph:
            calls.clear()
            return graph.load() if mode == "sync" else asyncio.run(graph.aload())

        graph.add([PropertyNode("page", "chunk", {}, "Ana works at Initech.")])
        graph.add(relations=[PropertyRelation("Ana", "WORKS_AT", "Initech", {"source": "page"})])
        first = load()
        assert load() is first
        assert set(calls) <= {"position"}
        memory.add("I keep bees.", user_id="ben")
        assert load() is first
        assert not {"list_memories", "relations", "memories_by_rows", "relations_by_rows"} & calls.keys()
        graph.add([PropertyNode("Ana", "person")])
        assert load().find("Ana") == PropertyNode("Ana", "person")
        assert not {"list_memories", "relations"} & calls.keys()


def shown(graph: PropertyGraph) -> tuple[Any, ...]:
    relations = [graph.relations[place] for places in graph.incident.values() for place in places]
    return dict(graph.nodes), list(graph.relations), sorted(map(repr, relations))


@pytest.mark.parametrize("limit", [1, 2_000])
def test_a_graph_that_follows_the_changes_equals_one_that_is_read_anew(
    tmp_path: Path, truth: dict[str, Any], monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(graph_records, "_MAX_CHANGED", limit)
    chance = random.Random(5)
    with open_memory(tmp_path, config=truth) as memory:
        followed, other = ScopedGraph(memory, user_id="maya"), ScopedGraph(memory, user_id="maya")

        def forget() -> None:
            if stored := memory.get_all(user_id="maya")["results"]:
                memory.delete(chance.choice(stored)["id"])

        def write_node() -> None:
            text = chance.choice([None, f"Text {chance.random()}"])
            id = chance.choice(NAMES) if text is None else chance.choice("pq")
            other.add([PropertyNode(id, "kind", {"n": chance.random()}, text)])

        def write_relation() -> None:
            source, target = chance.sample(NAMES, 2)
            held = chance.choice([{}, {"source": "p"}, {"source": "q"}])
            chance.choice([other, followed]).add(relations=[PropertyRelation(source, "KNOWS", target, held)])

        def delete_some() -> None:
            graph = other.load()
            nodes, relations = list(graph.nodes.values()), list(graph.relations)
            other.delete(nodes[:1] if chance.random() < 0.5 else [], relations[:1])

        def say() -> None:
            name, place = chance.sample(NAMES, 2)
            memory.add(f"My friend {name} lives in {place}.", user_id=chance.choice(["maya", "ben"]))

        def erase() -> None:
            memory.erase(user_id="ben", reason="request 7")

        steps: list[Callable[[], None]] = [write_node, write_relation, write_relation, say, say, forget, delete_some]
        for step in [*chance.choices(steps, k=60), erase, *chance.choices(steps, k=10)]:
            step()
            assert shown(followed.load()) == shown(ScopedGraph(memory, user_id="maya").load()), step


def test_a_graph_above_the_bound_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(property_graph, "_MAX_KEPT", 1)
    with open_memory(tmp_path) as memory:
        graph = ScopedGraph(memory, user_id="maya")
        graph.add([PropertyNode("Ana"), PropertyNode("Ben")])
        assert graph.load() == graph.load()
        assert graph.load() is not graph.load()
