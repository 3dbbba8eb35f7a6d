"""The interface between the kit and a memory store: eight verbs, and the capabilities that an adapter declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

VERBS = ("add", "search", "get", "update", "delete", "list", "history", "erase")

CAPABILITIES: Mapping[str, str] = {
    "metadata": "add() keeps a flat mapping of metadata, and records return it",
    "filters": "search() and list() accept exact values of metadata",
    "operators": "filters accept {'gt': 3}, {'lt': 3}, {'ne': 'x'} and {'in': [...]}",
    "paging": "list() accepts limit and offset",
    "search_paging": "search() accepts offset",
    "ranked": "search() returns the closest memory first, not only exact words",
    "keys": "add(key=...) replaces the memory that has this key",
    "owned_ids": "get(), update() and delete() check the owner of an id",
    "timestamps": "records have created_at and updated_at",
    "ttl": "add(expires=...) hides a memory from that moment, to the second",
    "ttl_days": "add(expires=...) hides a memory after that day, and accepts a day that is over",
    "as_of": "search(as_of=...) returns memories as they were at a time",
    "durable": "memories remain after close() and another open of the same folder",
    "crash_safe": "memories of an add() that returned remain after the process is killed",
    "shared": "two objects opened in one folder see each other's memories",
    "threads": "threads may share one object",
    "files": "all data is in files of the folder that the factory received",
    "erasure": "deleted and replaced text is removed from the files by close()",
    "scales": "the cost of one call hardly grows with the number of memories",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One memory as a store returns it."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation.

    Attributes:
        role: ``user`` or ``assistant``.
    """

    role: str
    text: str
    time: datetime


Records: TypeAlias = Sequence[Record]
Texts: TypeAlias = Sequence[str]
Fields: TypeAlias = Mapping[str, Any] | None
"""Metadata of a memory, or conditions on it."""


class System:
    """Base class of adapters: override the verbs that the store has, and declare its other capabilities.

    A verb that is not overridden is not applicable, and so are the checks that need it. A verb may raise any error to
    refuse its input; a store that accepts the input must then keep it.

    Args of the constructor:
        folder: Empty or earlier folder of the data. The factory of a system is called with it.
    """

    capabilities: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    """Verbs that this class overrides and the store lacks, for example without an optional package."""
    is_remote: bool = False
    """True if the store works in another process, where the kit counts neither calls nor bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self, owner: str, text: str, *, metadata: Fields = None, key: str | None = None, expires: datetime | None = None
    ) -> str:
        """Store one text verbatim and return its id."""
        raise NotImplementedError

    def search(
        self,
        owner: str,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: Fields = None,
        as_of: datetime | None = None,
    ) -> Records:
        """Return the memories of an owner that match the query, best first."""
        raise NotImplementedError

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Return one memory, or None."""
        raise NotImplementedError

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Replace the text of a memory."""
        raise NotImplementedError

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete one memory."""
        raise NotImplementedError

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, filters: Fields = None) -> Records:
        """Return the memories of an owner; without a limit, all of them."""
        raise NotImplementedError

    def history(self, owner: str, memory_id: str) -> Texts:
        """Return the texts that a memory had, oldest first."""
        raise NotImplementedError

    def erase(self, owner: str) -> None:
        """Delete all memories of an owner."""
        raise NotImplementedError

    def tell(self, owner: str, turn: Sequence[Said]) -> None:
        """Remember a message and the reply to it. Only the life stories call it; by default, it adds each text."""
        for said in turn:
            self.add(owner, said.text)

    def recall(self, owner: str, question: str, *, now: datetime, limit: int) -> Texts:
        """Return the texts that answer a question, best first. By default, it searches for them."""
        return [record.text for record in self.search(owner, question, limit=limit)]

    def make_context(self, owner: str, question: str, *, now: datetime, max_tokens: int) -> str | None:
        """Return the text that goes into a prompt; None, the default, if the store makes none."""

    def declines(self, owner: str, question: str, *, now: datetime) -> bool | None:
        """Return True if the store says that it knows no answer; None, the default, if it never says so."""

    def close(self) -> None:
        """Release files and connections; everything acknowledged is stored."""


def list_verbs(system: System) -> frozenset[str]:
    """Return the verbs that an adapter overrides, without those that it lacks."""
    overridden = (verb for verb in VERBS if getattr(type(system), verb) is not getattr(System, verb))
    return frozenset(overridden) - system.lacks


def read_capabilities(system: System) -> frozenset[str]:
    """Return the declared capabilities; an unknown one raises ValueError."""
    declared = frozenset(system.capabilities)
    if unknown := sorted(declared - CAPABILITIES.keys()):
        raise ValueError(f"unknown capabilities {unknown}; the kit knows {sorted(CAPABILITIES)}")
    return declared
