"""A dict as a memory store, written from the README of the kit alone."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_conformance import Record, Records, System, Texts


class DictStore(System):
    capabilities = frozenset({"metadata", "filters", "paging", "owned_ids", "timestamps", "threads"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.records: dict[tuple[str, str], Record] = {}
        self.texts: dict[tuple[str, str], list[str]] = {}
        self.ids = itertools.count()

    def add(self, owner: str, text: str, *, metadata: Mapping[str, Any] | None = None, **_: Any) -> str:
        memory_id, now = str(next(self.ids)), datetime.now(UTC)
        self.records[owner, memory_id] = Record(memory_id, text, copy.deepcopy(dict(metadata or {})), now, now)
        self.texts[owner, memory_id] = [text]
        return memory_id

    def search(self, owner: str, query: str, *, limit: int = 10, filters: Any = None, **_: Any) -> Records:
        words = query.casefold().split()
        return [one for one in self.list(owner, filters=filters) if any(w in one.text.casefold() for w in words)][
            :limit
        ]

    def get(self, owner: str, memory_id: str) -> Record | None:
        return copy.deepcopy(self.records.get((owner, memory_id)))

    def update(self, owner: str, memory_id: str, text: str) -> None:
        old = self.records[owner, memory_id]
        self.records[owner, memory_id] = Record(old.id, text, old.metadata, old.created_at, datetime.now(UTC))
        self.texts[owner, memory_id].append(text)

    def delete(self, owner: str, memory_id: str) -> None:
        del self.records[owner, memory_id], self.texts[owner, memory_id]

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, filters: Any = None) -> Records:
        wanted = [(key, type(value), value) for key, value in (filters or {}).items()]
        found = [
            copy.deepcopy(record)
            for (name, _), record in tuple(self.records.items())
            if name == owner
            and all((k, type(record.metadata.get(k)), record.metadata.get(k)) in wanted for k, _, _ in wanted)
        ]
        return found[offset:][:limit]

    def history(self, owner: str, memory_id: str) -> Texts:
        return self.texts.get((owner, memory_id), [])

    def erase(self, owner: str) -> None:
        for name, memory_id in tuple(self.records):
            if name == owner:
                self.delete(name, memory_id)
