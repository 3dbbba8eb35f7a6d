"""Residue of erasures: fingerprints of a user's data in every table, file and projection, before and after `erase`.

Each part fills one kind of store or projection with a thousand facts of one user and some of another, counts the facts
whose name is still found in its files, or that its server still returns, and erases the user. The process of some
erasures is killed at each of their boundaries, and another process resumes them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.faults.injector import KILLED, Injector
from benchmarks.faults.matrix import rotate, run_in_fork
from benchmarks.faults.python_files import watch_files, watch_statements
from benchmarks.faults.sqlite_vfs import watch_sqlite
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from mem0_core import Memory
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.records import Scope
from mem0_core.testing import HashEmbedder
from tests.services.neo4j_server import Neo4jUnavailable, neo4j_url
from tests.services.postgres_server import PostgresUnavailable, temporary_server

__all__ = ["count_residue", "list_facts", "measure"]

USER, OTHER = "ana", "ben"
REASON = "request 7"
_KILLED_FACTS = 20
_REPLIES = 100
_FEWEST = 10  # facts that every part stores, whatever the plan


def measure(plan: Plan) -> Report:
    """Erase a user from each kind of store and projection, and count what is left."""
    report = Report("erasure")
    facts = list_facts(max(_FEWEST, plan.erased_facts))
    for title, part in _PARTS.items():
        try:
            with tempfile.TemporaryDirectory(prefix="mem0-erasure-", ignore_cleanup_errors=True) as name:
                before, after, receipt = part(Path(name), facts)
        except (ModuleNotFoundError, PostgresUnavailable, Neo4jUnavailable) as error:
            report.skip(title, str(error))
            continue
        report.add(title, "facts stored", len(facts))
        report.add(title, "facts found before", before)
        report.add(title, "facts found after", after, bar=Bar("==", 0))
        report.add(title, "receipt is complete and verified", float(receipt), bar=Bar("==", 1))
        print(f"erasure: {title}: {before} facts, then {after}", file=sys.stderr, flush=True)
    _measure_kills(report, plan.crash_share)
    return report


def list_facts(count: int) -> dict[str, str]:
    """Return facts by a name that each of them has alone."""
    return {f"Zorblatt{n:05}": f"My friend Zorblatt{n:05} lives in Kralovice{n:05}." for n in range(count)}


def count_residue(folder: Path, names: Iterable[str]) -> int:
    """Return the number of names that a file of a folder contains, as it is or in two bytes per character."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return sum(
        any(name.encode() in content or name.encode("utf-16-le") in content for content in contents) for name in names
    )


# --- parts -----------------------------------------------------------------------------------------------------------

Outcome = tuple[int, int, bool]


def _open(folder: Path, **options: Any) -> Memory:
    return Memory({"path": str(folder), **options}, embedder=HashEmbedder(dims=32))


def _fill(memory: Memory, facts: Mapping[str, str]) -> None:
    texts = list(facts.values())
    memory.add_many(texts[1:], user_id=USER, run_id="r", metadata={"note": "about Zorblatt"})
    first = memory.add(texts[0], user_id=USER)["results"][0]["id"]
    memory.update(first, f"{texts[0]} Since May.")
    memory.delete(memory.get_all(user_id=USER, limit=2)["results"][1]["id"])
    memory.add("My friend Bobby lives in Oslo.", user_id=OTHER)
    memory.search("Where does Zorblatt00001 live?", user_id=USER)


def _check(memory: Memory, receipt: ErasureReceipt) -> bool:
    healthy = memory.doctor(repair=False)["healthy"] and len(memory.get_all(user_id=OTHER)["results"]) == 1
    return receipt["complete"] and memory.verify_receipt(receipt, user_id=USER) and healthy


def _erase_files(folder: Path, facts: Mapping[str, str], options: dict[str, Any]) -> Outcome:
    """Erase from a store of files with a projection of files."""
    with _open(folder / "store", **options) as memory:
        _fill(memory, facts)
    before = count_residue(folder, facts)
    with _open(folder / "store", **options) as memory:
        memory.search("Zorblatt00001", user_id=USER)
        holds = _check(memory, memory.erase(user_id=USER, reason=REASON))
        after = count_residue(folder, facts)
    return before, max(after, count_residue(folder, facts)), holds


def _erase_sqlite(folder: Path, facts: Mapping[str, str]) -> Outcome:
    return _erase_files(folder, facts, {"vector_store": {"provider": "faiss", "config": {"exact_limit": 5}}})


def _erase_ladybug(folder: Path, facts: Mapping[str, str]) -> Outcome:
    import ladybug  # noqa: F401 - the part is skipped without it

    config = {"db": str(folder / "graph" / "graph.lbug")}
    return _erase_files(folder, facts, {"graph_store": {"provider": "ladybug", "config": config}})


def _erase_replies(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase the replies of a server; they are sealed, so they are counted by asking for them again."""
    import httpx

    from mem0_core.server.rest import build_rest_app

    async def repeat(memory: Memory) -> int:
        transport = httpx.ASGITransport(build_rest_app(memory, None))
        known = 0
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for name, text in facts.items():
                said = {"messages": text, "user_id": USER}
                reply = await client.post("/memories", json=said, headers={"Idempotency-Key": name})
                known += name in reply.text
        return known

    facts = dict(list(facts.items())[:_REPLIES])
    with _open(folder) as memory:
        asyncio.run(repeat(memory))
        before = asyncio.run(repeat(memory))
        memory.add("My friend Bobby lives in Oslo.", user_id=OTHER)
        holds = _check(memory, memory.erase(user_id=USER, reason=REASON))
        after = count_residue(folder, facts) + asyncio.run(repeat(memory))
    return before, after, holds


def _erase_neo4j(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase from a Neo4j server, which is asked for the names; its pages and log are named as out of reach."""
    from neo4j import GraphDatabase

    with neo4j_url() as url, GraphDatabase.driver(url) as driver:
        graph = {"provider": "neo4j", "config": {"url": url}}

        def count() -> int:
            rows, _, _ = driver.execute_query("MATCH (n:Entity) RETURN DISTINCT n.name AS name")
            return len({row["name"].casefold() for row in rows} & {name.casefold() for name in facts})

        with _open(folder, graph_store=graph) as memory:
            _fill(memory, facts)
            memory.relations(user_id=USER)
            before = count()
            receipt = memory.erase(user_id=USER, reason=REASON)
            named = any(one["kind"] == "server pages" for one in receipt["out_of_reach"])
            return before, count() + count_residue(folder, facts), _check(memory, receipt) and named


def _erase_qdrant(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase from a vector store of LangChain, which holds vectors by row and no text."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    from mem0_langchain import MemoryVectors

    client = QdrantClient(":memory:")
    client.create_collection("m", vectors_config=models.VectorParams(size=32, distance=models.Distance.COSINE))
    index = QdrantVectorStore(client, "m", embedding=MemoryVectors(32))

    def count() -> int:
        return client.count("m").count

    with Memory({"path": str(folder)}, embedder=HashEmbedder(dims=32), index=index) as memory:
        _fill(memory, facts)
        memory.search("Bobby", user_id=OTHER)
        others = 2  # the vector of the other user, and the position of the partition
        before = count() - others
        holds = _check(memory, memory.erase(user_id=USER, reason=REASON))
        return before, max(0, count() - others) + count_residue(folder, facts), holds


def _erase_items(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase the items of LangGraph's store below a namespace."""
    from mem0_langchain.langgraph import Mem0Store

    with _open(folder) as memory:
        store = Mem0Store(memory)
        for number, (name, text) in enumerate(facts.items()):
            store.put(("memories", USER, f"n{number % 3}"), name, {"text": text}, index=None if number % 2 else False)
        store.delete(("memories", USER, "n1"), next(iter(facts)))
        store.put(("memories", OTHER), "k", {"text": "Bobby lives in Oslo."})
        before = count_residue(folder, facts)
        receipts = store.erase(("memories", USER), reason=REASON)
        holds = all(one["complete"] and memory.verify_receipt(one) for one in receipts)
        others = store.list_namespaces() == [("memories", OTHER)]
        return before, count_residue(folder, facts), holds and others


def _erase_chats(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase the messages of LlamaIndex's chat store."""
    from llama_index.core.llms import ChatMessage

    from mem0_llamaindex import Mem0ChatStore

    with _open(folder) as memory:
        store = Mem0ChatStore(memory)
        store.set_messages(USER, [ChatMessage(role="user", content=text) for text in facts.values()])
        store.add_message(OTHER, ChatMessage(role="user", content="Bobby lives in Oslo."))
        before = count_residue(folder, facts)
        ids = {"user_id": "chats", "agent_id": "llamaindex chat", "run_id": f"key {USER}"}
        receipt = memory.erase(**ids, reason=REASON)
        holds = receipt["complete"] and memory.verify_receipt(receipt, **ids) and len(store.get_messages(OTHER)) == 1
        return before, count_residue(folder, facts), holds


def _erase_postgres(folder: Path, facts: Mapping[str, str]) -> Outcome:
    """Erase the rows of PostgreSQL; its pages and log are named as out of reach."""
    with temporary_server() as server:
        store = {"provider": "postgres", "config": {"url": server.url}}
        with _open(folder, store=store) as memory:
            _fill(memory, facts)
            maintenance = memory.store.maintenance

            def count() -> int:
                tables = maintenance.content_tables
                parts = b"\n".join(part for table in tables for part in maintenance.iter_contents(table, None))
                return sum(name.encode() in parts for name in facts)

            before = count()
            holds = _check(memory, memory.erase(user_id=USER, reason=REASON))
            return before, count(), holds


_PARTS: dict[str, Callable[[Path, Mapping[str, str]], Outcome]] = {
    "SQLite, its log, and FAISS snapshots": _erase_sqlite,
    "Ladybug": _erase_ladybug,
    "replies of a server": _erase_replies,
    "Neo4j": _erase_neo4j,
    "Qdrant through LangChain": _erase_qdrant,
    "items of LangGraph": _erase_items,
    "chats of LlamaIndex": _erase_chats,
    "PostgreSQL": _erase_postgres,
}


# --- killed erasures -------------------------------------------------------------------------------------------------


def _measure_kills(report: Report, share: int) -> None:
    """Kill erasures at their boundaries, and let another process resume each."""
    section = "SQLite, process killed at boundaries of erase, and resumed"
    if not hasattr(os, "fork"):
        report.skip(section, "this system has no fork")
        return
    logging.getLogger("mem0_core").setLevel(logging.ERROR)
    injector = Injector()
    watch_files(injector)
    watch_statements(injector)
    watch_sqlite(injector)
    facts = list_facts(_KILLED_FACTS)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mem0-erasure-")))
        boundaries = int(_run_killed(scratch / "whole", facts, injector, None).removeprefix("count "))
        left = [
            (at, found)
            for at in rotate(boundaries, share, 0)
            if (found := _run_killed(scratch / str(at), facts, injector, at))
        ]
    report.add(section, "boundaries", boundaries)
    report.add(section, "aborts", len(rotate(boundaries, share, 0)))
    report.add(section, "erasures with residue, or without a receipt", len(left), bar=Bar("==", 0))
    report.details[section] = left


def _run_killed(folder: Path, facts: Mapping[str, str], injector: Injector, at: int | None) -> str:
    """Erase with a kill at a boundary, resume, and return the problem that is left; without `at`, count boundaries."""
    result = folder.with_suffix(".txt")

    def erase() -> None:
        with _open(folder) as memory:
            _fill(memory, facts)
            injector.arm(at=at)
            memory.erase(user_id=USER, reason=REASON)
            result.write_text(f"count {injector.count}", encoding="utf-8")

    def resume() -> None:
        with _open(folder) as memory:
            memory.search("Bobby", user_id=OTHER)
            if not memory.erasures():  # it was killed before it was on record
                memory.erase(user_id=USER, reason=REASON)
            rows = memory.store.maintenance.count_scope(Scope(USER))
            problem = "" if _check(memory, memory.erasures()[-1]) else "no receipt, or not healthy; "
            problem += f"rows {rows}; " if any(rows.values()) else ""
        names = count_residue(folder, facts)
        result.write_text(problem + (f"{names} names" if names else ""), encoding="utf-8")

    status = run_in_fork(erase, is_quiet=True)
    if at is None:
        return result.read_text(encoding="utf-8") if status == 0 else f"the erasure failed with status {status}"
    if status not in (0, KILLED):
        return f"the erasure failed with status {status}"
    return result.read_text(encoding="utf-8") if run_in_fork(resume) == 0 else "it cannot be resumed"
