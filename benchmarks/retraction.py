"""Retraction of one source among a thousand, compared with a store that the source never reached.

Each source says facts of its own, and facts that other sources say too. One of them also ends a relation of an earlier
source. After `retract`, memories with their days, relations with their validity, words and vectors are those of the
other store, and `verify` derives all of them from the messages.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from mem0_core import Memory
from mem0_core.testing import HashEmbedder
from tests.services.postgres_server import PostgresUnavailable, temporary_server

__all__ = ["measure", "tell_sources"]

USER = "ana"
_SHARED_FACTS = 7  # facts that many sources say
_FIRST_DAY = date(2023, 1, 1)


def measure(plan: Plan) -> Report:
    """Retract one source from a store in a file and from one in PostgreSQL."""
    report = Report("retract")
    with tempfile.TemporaryDirectory(prefix="mem0-retract-") as name:
        _measure_store(report, "SQLite", Path(name), {}, {}, plan.sources)
    try:
        with temporary_server() as server, tempfile.TemporaryDirectory(prefix="mem0-retract-") as name:
            first, second = (
                {"store": {"provider": "postgres", "config": {"url": server.url, "schema": schema}}}
                for schema in ("with_source", "without_source")
            )
            _measure_store(report, "PostgreSQL", Path(name), first, second, plan.sources)
    except PostgresUnavailable as error:
        report.skip("PostgreSQL", str(error))
    return report


def tell_sources(count: int) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the source to retract, and all statements in order: source, text and day."""
    retracted = count // 2
    statements: list[tuple[str, str, str]] = []
    for number in range(count):
        texts = [
            f"My friend Zorblatt{number:05} lives in Kralovice{number:05}.",
            f"My friend Zorblatt{number:05} works at Galp{number % 13}.",
            f"I like tea number {number % _SHARED_FACTS}.",
        ]
        if number == retracted - 1:
            texts.append("I live in Oslo.")
        if number == retracted:
            texts += ["I moved to Porto.", "My sister is Vendla.", "I have a dog."]
        if number == retracted + 1:
            texts.append("I have a dog.")
        day = (_FIRST_DAY + timedelta(days=number)).isoformat()
        statements += [(f"doc:{number:05}", text, day) for text in texts]
    return f"doc:{retracted:05}", statements


def _measure_store(
    report: Report, title: str, folder: Path, with_it: Mapping[str, Any], without: Mapping[str, Any], count: int
) -> None:
    source, statements = tell_sources(count)
    names = ("with", "without")
    memories = [
        Memory({"path": str(folder / name), "durability": "process", **config}, embedder=HashEmbedder(dims=64))
        for name, config in zip(names, (with_it, without), strict=True)
    ]
    try:
        for memory, is_whole in zip(memories, (True, False), strict=True):
            for said_by, text, day in statements:
                if is_whole or said_by != source:
                    memory.add(text, user_id=USER, source=said_by, timestamp=day)
        print(f"retract: {title}: {len(statements)} statements stored twice", file=sys.stderr, flush=True)
        memory, other = memories
        before = len(memory.get_all(user_id=USER, limit=None)["results"])
        started = time.perf_counter()
        done = memory.retract(source, user_id=USER)
        seconds = time.perf_counter() - started
        _compare(report, title, memory, other, statements, source)
        left = len(memory.get_all(user_id=USER, limit=None)["results"])
        report.add(title, "sources", count)
        report.add(title, "memories before", before)
        report.add(title, "memories that left", before - left)
        report.add(title, "retract", seconds, "s")
        report.details[title] = {"retracted": {key: value for key, value in done.items() if isinstance(value, int)}}
    finally:
        for memory in memories:
            memory.close()


def _compare(
    report: Report, title: str, memory: Memory, other: Memory, statements: list[tuple[str, str, str]], source: str
) -> None:
    """Add the number of differences between a store after a retraction and one without the source."""
    ours, theirs = _describe(memory), _describe(other)
    for part in ours:
        differing = set(ours[part]) ^ set(theirs[part])
        report.add(title, f"{part} that differ", len(differing), bar=Bar("==", 0))
    others = {text for said_by, text, _ in statements if said_by != source}
    own = [text for said_by, text, _ in statements if said_by == source and text not in others]
    found = [text for text in own if text in {one["memory"] for one in memory.search(text, user_id=USER)["results"]}]
    report.add(title, "texts of the source that a search finds", len(found), bar=Bar("==", 0))
    verified = memory.verify()
    report.add(title, "items that verify cannot derive alike", len(verified["differences"]), bar=Bar("==", 0))
    report.add(title, "compared words and vectors", sum(verified["counts"].values()))
    report.add(title, "complaints of doctor", len(memory.doctor(repair=False)["findings"]), bar=Bar("==", 0))


def _describe(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Return memories, relations, and search results of a store."""
    memories = memory.get_all(user_id=USER, limit=None)["results"]
    relations = memory.relations(user_id=USER, ended=True, limit=None)
    found = [memory.search(query, user_id=USER)["results"] for query in _QUERIES]
    return {
        "memories": [(one["memory"], one["created_at"][:10], one.get("trust", "user")) for one in memories],
        "relations": [
            (
                *(one["source"], one["relationship"], one["destination"]),
                *(one["valid_from"][:10], one["valid_to"] and one["valid_to"][:10]),
            )
            for one in relations
        ],
        "search results": [
            (query, rank, one["memory"], round(one["score"], 4))
            for query, results in zip(_QUERIES, found, strict=True)
            for rank, one in enumerate(results)
        ],
        "answers": [(query, memory.answer(query, user_id=USER)["answer"]) for query in _QUERIES],
    }


_QUERIES = ("Where do I live?", "Who is my sister?", "Do I have a dog?", "Which tea do I like?")
