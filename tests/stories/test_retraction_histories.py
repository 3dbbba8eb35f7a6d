"""A store without one of its sources equals a store that never had it, whatever was said before and after."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core.domain.trust import TrustClass
from tests.support import open_memory

CITIES = ("Lisbon", "Porto", "Oslo", "Rome", "Berlin", "Paris")
FIRMS = ("Galp", "EDP", "Acme", "Zeta")
NAMES = ("Anna", "Bob", "Carla", "Dinis")
TEMPLATES = (
    "I live in {city}.",
    "I moved to {city}.",
    "I work at {firm}.",
    "I quit my job at {firm}.",
    "My sister {name} works at {firm}.",
    "My brother {name} moved to {city}.",
    "{name} lives in {city}.",
    "I like {firm}.",
    "I no longer like {firm}.",
    "I moved from {city} to Madrid.",
    "{name} moved to {city}.",
    "My new boss is {name}.",
    "I left {firm} and joined Iberdrola.",
    "I love {firm} again.",
)
WITHDRAWN = "tool:web_search"
HISTORIES = 40


def tell_history(seed: int) -> list[tuple[str, str]]:
    """Return the messages of a history with their sources."""
    choose = random.Random(seed)
    sources = ("chat", "notes", WITHDRAWN, WITHDRAWN)
    return [
        (
            choose.choice(TEMPLATES).format(
                city=choose.choice(CITIES), firm=choose.choice(FIRMS), name=choose.choice(NAMES)
            ),
            choose.choice(sources),
        )
        for _ in range(choose.randint(2, 9))
    ]


def remember(memory: Memory, history: list[tuple[str, str]], *, without: str | None = None) -> None:
    for day, (text, source) in enumerate(history, 1):
        if source != without:
            trust: TrustClass | None = "tool" if source == WITHDRAWN else None
            memory.add(text, user_id="ana", source=source, trust=trust, timestamp=f"2024-01-{day:02d}")


def describe(memory: Memory) -> tuple[list[tuple[str, ...]], list[tuple[str | None, ...]]]:
    """Return the memories with class and day, and the relations with the days of their validity."""
    memories = [
        (one["memory"], one.get("trust", "user"), one["created_at"][:10])
        for one in memory.get_all(user_id="ana")["results"]
    ]
    relations = [
        (
            *(one["source"], one["relationship"], one["destination"]),
            *(one["valid_from"][:10], one["valid_to"] and one["valid_to"][:10]),
        )
        for one in memory.relations(user_id="ana", ended=True)
    ]
    return sorted(memories), sorted(relations, key=str)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_retracted_source_leaves_no_trace(tmp_path: Path, seed: int) -> None:
    history = tell_history(seed)
    with open_memory(tmp_path / "with") as memory, open_memory(tmp_path / "without") as other:
        remember(memory, history)
        remember(other, history, without=WITHDRAWN)
        memory.retract(WITHDRAWN, user_id="ana")
        assert describe(memory) == describe(other), history
        assert memory.doctor(repair=False)["healthy"]
        assert memory.verify()["differences"] == []
