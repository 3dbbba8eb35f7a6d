"""`mem0_core.Memory` on its embedded SQLite store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_conformance.api import Fields, Record, Records, Said, System, Texts
from memory_conformance.systems.embedding import DIMS, embed_all, load_embedder


class CallersEmbedder:
    """The caller's embedding function, as an `Embedder`."""

    name = "conformance"
    dims = DIMS

    def embed(self, texts: Sequence[str], *, kind: str = "document") -> Any:
        """Return the vectors of texts, (n, dims)."""
        import numpy as np

        return np.array(embed_all(texts), dtype=np.float32)


class Mem0Core(System):
    """`Memory` without a chat model, with the caller's embedder, or that for tests of mem0-core."""

    capabilities = frozenset(
        {
            *("metadata", "filters", "operators", "ranked", "owned_ids", "timestamps", "ttl_days", "as_of"),
            *("durable", "crash_safe", "shared", "threads", "files", "erasure", "scales"),
        }
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from mem0_core import Memory
        from mem0_core.testing import HashEmbedder

        self.memory: Any = Memory(path=folder, embedder=CallersEmbedder() if load_embedder() else HashEmbedder())

    def add(self, owner: str, text: str, *, metadata: Fields = None, expires: datetime | None = None, **_: Any) -> str:
        """Add one message verbatim."""
        day = None if expires is None else expires.date()
        added = self.memory.add(text, user_id=owner, metadata=metadata, infer=False, expiration_date=day)
        entries = added["results"] or added["unchanged"]
        return str(entries[0]["id"])

    def search(
        self,
        owner: str,
        query: str,
        *,
        limit: int = 10,
        filters: Fields = None,
        as_of: datetime | None = None,
        **_: Any,
    ) -> Records:
        """Search with the default recipe."""
        found = self.memory.search(query, user_id=owner, limit=limit, filters=make_exact(filters), as_of=as_of)
        return [to_record(item) for item in found["results"]]

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Get one memory of the owner."""
        item = self.memory.get(memory_id, user_id=owner)
        return None if item is None else to_record(item)

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Update one memory of the owner."""
        self.memory.update(memory_id, text, user_id=owner)

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete one memory, and its history from the file."""
        self.memory.delete(memory_id, user_id=owner, purge=True)

    def list(self, owner: str, *, limit: int | None = None, filters: Fields = None, **_: Any) -> Records:
        """Return all memories, oldest first."""
        found = self.memory.get_all(user_id=owner, limit=limit, filters=make_exact(filters))
        return [to_record(item) for item in found["results"]]

    def history(self, owner: str, memory_id: str) -> Texts:
        """Return the new text of each change."""
        changes = self.memory.history(memory_id, user_id=owner)
        return [change["new_memory"] for change in changes if change["new_memory"] is not None]

    def erase(self, owner: str) -> None:
        """Erase the subject with a receipt."""
        self.memory.erase(user_id=owner, reason="conformance")

    def tell(self, owner: str, turn: Sequence[Said]) -> None:
        """Add the messages of a turn at their times."""
        messages = [{"role": one.role, "content": one.text, "timestamp": one.time.isoformat()} for one in turn]
        self.memory.add(messages, user_id=owner, timestamp=turn[-1].time)

    def recall(self, owner: str, question: str, *, now: datetime, limit: int) -> Texts:
        """Search on the day of the question."""
        found = self.memory.search(question, user_id=owner, limit=limit, reference_date=now.date())
        return [item["memory"] for item in found["results"]]

    def make_context(self, owner: str, question: str, *, now: datetime, max_tokens: int) -> str | None:
        """Return the context, without recent messages."""
        options = {"max_tokens": max_tokens, "recent": 0, "reference_date": now.date()}
        return str(self.memory.context(question, user_id=owner, **options)["text"])

    def declines(self, owner: str, question: str, *, now: datetime) -> bool | None:
        """Return True if the search finds no answer."""
        options = {"limit": 1, "reference_date": now.date(), "allow_no_answer": True}
        return not self.memory.search(question, user_id=owner, **options)["results"]

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()


def make_exact(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Write plain values as comparisons, as a plain "*" means any value."""
    if filters is None:
        return None
    return {key: value if isinstance(value, Mapping) else {"eq": value} for key, value in filters.items()}


def to_record(item: Mapping[str, Any]) -> Record:
    """Read one result."""
    return Record(
        str(item["id"]),
        str(item["memory"]),
        item.get("metadata") or {},
        parse_time(item.get("created_at")),
        parse_time(item.get("updated_at")),
    )


def parse_time(value: Any) -> datetime | None:
    """Read an ISO time."""
    return datetime.fromisoformat(value) if value else None
