"""Stores with one defect each, which the kit must find."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_conformance import Record, Records
from tests.conformance.dict_store import DictStore


class PrefixOwners(DictStore):
    """Lists by the prefix of the owner."""

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, filters: Any = None) -> Records:
        names = dict.fromkeys(name for name, _ in tuple(self.records) if name.startswith(owner))
        found = [one for name in names for one in super(PrefixOwners, self).list(name, filters=filters)]
        return found[offset:][:limit]


class LateFilters(DictStore):
    """Filters after the limit."""

    def search(self, owner: str, query: str, *, limit: int = 10, filters: Any = None, **_: Any) -> Records:
        wanted = {record.id for record in self.list(owner, filters=filters)}
        return [record for record in super().search(owner, query, limit=limit) if record.id in wanted]


class Upserts(DictStore):
    """Creates a memory when an unknown id is updated, and forgets the metadata of known ones."""

    def update(self, owner: str, memory_id: str, text: str) -> None:
        self.records[owner, memory_id] = Record(memory_id, text)


class LeavesText(DictStore):
    """Promises erasure, and keeps a log of everything."""

    capabilities = DictStore.capabilities | {"durable", "files", "erasure"}

    def add(self, owner: str, text: str, *, metadata: Mapping[str, Any] | None = None, **_: Any) -> str:
        with Path(self.folder, "log.txt").open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)
        return super().add(owner, text, metadata=metadata)


class Hangs(DictStore):
    """Never returns from an erasure."""

    def erase(self, owner: str) -> None:
        time.sleep(600)


class Dies(DictStore):
    """Takes the process down."""

    def get(self, owner: str, memory_id: str) -> Record | None:
        os._exit(3)


class Unopened(DictStore):
    """Cannot be opened."""

    def __init__(self, folder: Path) -> None:
        raise OSError("no such database")
