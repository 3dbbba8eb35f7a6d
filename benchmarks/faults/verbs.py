"""Verbs of a memory that write, each with the state that it starts from.

A `Verb` runs in a `Place`, a folder with one store and the files that belong to it. Texts, models and times are fixed,
so that two runs of a verb end in equal states, apart from random ids and the time of day.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.faults.earlier import write_earlier
from mem0_core import Keyring, Memory
from mem0_core.admin import backup, transfer
from mem0_core.interchange._exporters import read_export
from mem0_core.interfaces.keys import KEY_BYTES
from mem0_core.testing import HashEmbedder, ScriptedChat

__all__ = ["VERBS", "Place", "Verb", "build_base", "open_place"]

_MASTER_KEY = bytes(range(KEY_BYTES))
DAY = "2025-03-01T09:00:00+00:00"
OUTAGE = {"lease": 30.0, "backoff": 0.01, "workers": 1}


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with one store, in a file or in a schema of a server.

    Attributes:
        patience: seconds that a call waits for queued jobs.
    """

    folder: Path
    url: str = ""
    patience: float = 20.0

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def database(self) -> Path:
        return self.store / "memory.db"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def keys(self) -> Path:
        """Folder of the keys of an encrypted store."""
        return self.folder / "keys"


def open_place(place: Place, *, has_model: bool = False, has_snapshots: bool = False, **options: Any) -> Memory:
    """Open the memory of a place, with a model or without one.

    Args:
        has_snapshots: keep vectors in HNSW graphs with snapshots, however few they are.
    """
    config: dict[str, Any] = {"path": str(place.store), "background": OUTAGE}
    if place.url:
        config["store"] = {"provider": "postgres", "config": {"url": place.url, "partitions": 1, "timeout": 5.0}}
    if has_snapshots:
        config["vector_store"] = {"provider": "faiss", "config": {"exact_limit": 2}}
    if place.keys.exists():
        options = {"keys": Keyring(place.keys, master_key=_MASTER_KEY), **options}
    llm = ScriptedChat(reply) if has_model else None
    return Memory(config, **{"embedder": HashEmbedder(dims=32), "llm": llm, **options})


def reply(task: str, messages: Sequence[Mapping[str, Any]]) -> Any:
    """Answer as a model that keeps each line, updates one memory and deletes another."""
    data = str(messages[-1]["content"])
    if task == "facts":
        return {"facts": ["Moved to Oslo", "Has a dog named Rex"]}
    if task == "operations":
        known = json.loads(data).get("memories") or json.loads(data).get("existing") or []
        changes = [
            {"id": str(one["id"]), "event": event} for one, event in zip(known, ("UPDATE", "DELETE"), strict=False)
        ]
        for change in changes:
            change["text"] = "Moved to Oslo in spring"
        return {"memory": [*changes, {"id": "new", "text": "Has a dog named Rex", "event": "ADD"}]}
    if task == "entities":
        return {"entities": [{"entity": name, "entity_type": "thing"} for name in ("speaker", "Oslo", "Rex")]}
    if task == "relations":
        ends = (("lives_in", "Oslo"), ("owns", "Rex"))
        return {"entities": [{"source": "speaker", "relationship": verb, "destination": end} for verb, end in ends]}
    return {"deletions": []} if task == "outdated" else "Ana moved."


TEXTS = (
    "I live in Lisbon.",
    "My sister Anna works at Galp.",
    "Anna is married to Marco.",
    "I like hiking and jazz.",
    "My friend Bob lives in Porto.",
    "My friend Robert lives in Porto.",
)


def build_base(place: Place) -> None:
    """Fill a new store with memories, relations, a past, a deleted memory, messages and a second owner."""
    place.store.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.out.mkdir(mode=0o700, exist_ok=True)
    with open_place(place) as memory:
        for number, text in enumerate(TEXTS):
            memory.add(text, user_id="ana", run_id=f"run{number // 4}", timestamp=DAY)
        memory.add("I live in Rome.", user_id="ben", agent_id="guide", timestamp=DAY)
        gone = memory.add("A text to forget.", user_id="ana", timestamp=DAY)["results"][0]["id"]
        memory.delete(gone)
        memory.update(_first(memory, "jazz"), "I like hiking and chess.")
        memory.search("Where do I live?", user_id="ana")


@dataclass(frozen=True, slots=True)
class Verb:
    """A call that writes.

    Attributes:
        run: the call; its return is the acknowledgement.
        prepare: changes of the base state before it.
        has_model: open the memory with a model.
        has_snapshots: keep vectors in snapshots, see `open_place`.
        is_chunked: the call commits in several transactions, each of which is acknowledged by itself.
        is_repeatable: after an abort, the same call completes and ends as one without abort.
        opens: run the call without an open memory; it opens what it needs.
        on_server: the call is another one where the store is in a server.
    """

    name: str
    run: Callable[[Any, Place], object]
    prepare: Callable[[Memory, Place], object] | None = None
    has_model: bool = False
    has_snapshots: bool = False
    is_chunked: bool = False
    is_repeatable: bool = False
    opens: bool = False
    on_server: bool = True


def _first(memory: Memory, word: str, user: str = "ana") -> str:
    return next(one["id"] for one in memory.get_all(user_id=user, limit=None)["results"] if word in one["memory"])


def _merge(memory: Memory, place: Place) -> Any:
    return memory.merge("entities", user_id="ana", names=["Bob", "Robert"], into="Robert", dry_run=False)


def _unmerge(memory: Memory, place: Place) -> Any:
    return memory.unmerge(str(memory.merges(user_id="ana")[-1]["id"]))


def _queue(memory: Memory, place: Place) -> None:
    memory.store.jobs.enqueue(
        _scope("ana"), "remember", at=DAY, messages=[_message("I moved to Oslo."), _message("I have a dog, Rex.")]
    )


def _scope(user: str) -> Any:
    from mem0_core import Scope

    return Scope(user)


def _message(text: str) -> Any:
    from mem0_core.domain.records import Message

    return Message("user", text)


def _fail_job(memory: Memory, place: Place) -> None:
    _queue(memory, place)
    (job,) = memory.store.jobs.list_jobs()
    from mem0_core.interfaces import Lease

    memory.store.jobs.lease("worker", seconds=60, limit=1)
    memory.store.jobs.release_failed(Lease("worker", (job.row,)), error="no", retry_in=None)


def _migrate(memory: object, place: Place) -> object:
    target = str(place.folder / "copy")
    with transfer.open_archive(str(place.store)) as source, transfer.open_archive(target, create=True) as archive:
        return transfer.migrate(source, archive, release=True, chunk=4)


def _prepare_upgrade(memory: Memory, place: Place) -> None:
    earlier = place.folder / "copy" / "memory.db"
    earlier.parent.mkdir(mode=0o700)
    earlier.touch(mode=0o600)
    write_earlier(place.database, earlier, 1)


def _upgrade(memory: object, place: Place) -> None:
    Memory({"path": str(place.folder / "copy")}, embedder=HashEmbedder(dims=32), llm=None).close()


def _prepare_restore(memory: Memory, place: Place) -> None:
    memory.backup(place.out / "kept.db")
    memory.add("I bought a boat.", user_id="ana", timestamp=DAY)


def _prepare_adopt(memory: Memory, place: Place) -> None:
    memory.export(place.out / "all.jsonl")
    memory.delete_all("ana", purge=True)


def _adopt(memory: Memory, place: Place) -> object:
    found = read_export(place.out / "all.jsonl")
    return memory.adopt(found.memories, history=found.history, messages=found.messages)


def _add_source(memory: Memory, place: Place) -> None:
    for text in ("I moved to Berlin.", "My sister Anna works at Evilcorp."):
        memory.add(text, user_id="ana", source="tool", trust="tool", timestamp=DAY)


def _encrypt(memory: Memory, place: Place) -> None:
    """Replace the store by an encrypted one with the same content."""
    memory.close()
    shutil.rmtree(place.store)
    place.keys.mkdir(mode=0o700)
    build_base(place)


def _lose_vectors(memory: Memory, place: Place) -> None:
    store: Any = memory.store
    with store._db.write() as db:
        db.execute("DELETE FROM vectors WHERE row = 1")


def _add_many(memory: Memory, place: Place) -> object:
    return memory.add_many([f"Note number {n}." for n in range(6)], user_id="ana", chunk=2, key="notes")


def _count_citations(memory: Memory, place: Place) -> object:
    cited = {"1": _first(memory, "Lisbon"), "2": _first(memory, "Galp")}
    return memory.count_citations("You live in Lisbon [1], and Anna works at Galp [2].", cited, user_id="ana")


def _rename(one: Mapping[str, Any]) -> str:
    return f"{one['memory']} (checked)"


def _update_many(memory: Memory, place: Place) -> object:
    return memory.update_by_query("Where does Anna live?", _rename, user_id="ana", threshold=0.0, limit=50)


def _delete_many(memory: Memory, place: Place) -> object:
    return memory.delete_by_query("jazz", user_id="ana", threshold=0.0, limit=50)


def _save_snapshot(memory: Memory, place: Place) -> None:
    memory.search("jazz", user_id="ana")
    index: Any = memory._index
    index.wait_for_builds()
    memory.close()


def _purge_snapshot(memory: Memory, place: Place) -> None:
    memory.delete(_first(memory, "Lisbon"), purge=True)
    _save_snapshot(memory, place)


CORE: tuple[Verb, ...] = (
    Verb("open", lambda memory, place: open_place(place).close(), opens=True, is_repeatable=True),
    Verb("add", lambda memory, place: memory.add("I moved to Oslo. I have a dog.", user_id="ana", timestamp=DAY)),
    Verb(
        "add_infer", lambda memory, place: memory.add("We moved to Oslo.", user_id="ana", timestamp=DAY), has_model=True
    ),
    Verb(
        "add_background",
        lambda memory, place: memory.add("I moved.", user_id="ana", timestamp=DAY, background=True),
        has_model=True,
        is_chunked=True,
    ),
    Verb("flush", lambda memory, place: memory.flush(place.patience), prepare=_queue, has_model=True, is_chunked=True),
    Verb("retry", lambda memory, place: memory.retry(memory.pending()[0]["id"]), prepare=_fail_job),
    Verb("add_many", _add_many, is_chunked=True, is_repeatable=True),
    Verb("update", lambda memory, place: memory.update(_first(memory, "Lisbon"), "I live in Madrid.", {"a": 1})),
    Verb(
        "update_by_query",
        lambda memory, place: memory.update_by_query(
            "Where does Anna live?", _rename, user_id="ana", threshold=0.0, limit=50
        ),
    ),
    Verb("pin", lambda memory, place: memory.pin(_first(memory, "Lisbon"))),
    Verb("feedback", lambda memory, place: memory.feedback(_first(memory, "Lisbon"), True)),
    Verb("count_citations", _count_citations),
    Verb("delete", lambda memory, place: memory.delete(_first(memory, "Lisbon"))),
    Verb("delete_purge", lambda memory, place: memory.delete(_first(memory, "Lisbon"), purge=True)),
    Verb(
        "delete_by_query", lambda memory, place: memory.delete_by_query("jazz", user_id="ana", threshold=0.0, limit=50)
    ),
    Verb("delete_all", lambda memory, place: memory.delete_all("ana"), is_repeatable=True),
    Verb("delete_all_purge", lambda memory, place: memory.delete_all("ana", purge=True), is_repeatable=True),
    Verb("retract", lambda memory, place: memory.retract("tool", user_id="ana"), prepare=_add_source),
    Verb("erase", lambda memory, place: memory.erase(user_id="ana", reason="request 7")),
    Verb("reset", lambda memory, place: memory.reset(), is_repeatable=True),
    Verb("merge", _merge),
    Verb("unmerge", _unmerge, prepare=_merge),
    Verb("rebuild", lambda memory, place: memory.rebuild(), is_repeatable=True, is_chunked=True),
    Verb("backup", lambda memory, place: memory.backup(place.out / "b.db"), on_server=False),
    Verb("export", lambda memory, place: memory.export(place.out / "all.jsonl")),
    Verb("export_csv", lambda memory, place: memory.export(place.out / "csv", format="csv")),
    Verb("visualize", lambda memory, place: memory.visualize(place.out / "graph.html", user_id="ana")),
    Verb("adopt", _adopt, prepare=_prepare_adopt, is_chunked=True, is_repeatable=True),
    Verb("doctor", lambda memory, place: memory.doctor(), prepare=_lose_vectors, is_chunked=True, on_server=False),
    Verb("search", lambda memory, place: memory.search("Where do I live?", user_id="ana"), is_repeatable=True),
    Verb("close", _save_snapshot, has_snapshots=True, is_repeatable=True, on_server=False),
    Verb("purge", _purge_snapshot, _save_snapshot, has_snapshots=True, on_server=False),
)

FILES: tuple[Verb, ...] = (
    Verb("migrate", _migrate, opens=True, is_chunked=True, is_repeatable=True, on_server=False),
    Verb("upgrade", _upgrade, prepare=_prepare_upgrade, opens=True, is_repeatable=True, on_server=False),
    Verb(
        "restore",
        lambda memory, place: backup.restore(place.out / "kept.db", place.database, overwrite=True),
        prepare=_prepare_restore,
        opens=True,
        is_chunked=True,
        is_repeatable=True,
        on_server=False,
    ),
)

ENCRYPTED: tuple[Verb, ...] = (
    Verb(
        "encrypted_erase",
        lambda memory, place: memory.erase(user_id="ana", reason="request 7"),
        prepare=_encrypt,
        on_server=False,
    ),
    Verb(
        "encrypted_delete_all_purge",
        lambda memory, place: memory.delete_all("ana", purge=True),
        prepare=_encrypt,
        is_repeatable=True,
        on_server=False,
    ),
    Verb(
        "encrypted_delete",
        lambda memory, place: memory.delete(_first(memory, "Lisbon"), purge=True),
        prepare=_encrypt,
        on_server=False,
    ),
)

HAS_ENCRYPTION = find_spec("cryptography") is not None

VERBS: dict[str, Verb] = {verb.name: verb for verb in (*CORE, *FILES, *(ENCRYPTED if HAS_ENCRYPTION else ()))}
