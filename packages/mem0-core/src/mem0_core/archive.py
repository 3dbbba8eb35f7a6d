"""A whole store as plain records: what every truth can give away and take in, whatever database it lies in.

A store shows itself as sections of records. Together they are everything that cannot be worked out again: rows keep
their numbers, so that what refers to what needs no translating, and so that records that were copied can be compared
with those they were copied from. What a store derives (words, partitions of the queue) it derives as it
loads. What it has of its own (identity, epoch, leases, tombstones that only projections of this epoch read) stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["SECTIONS", "Archive", "Archived", "Label", "Progress", "Record", "Section"]

Record = tuple[Any, ...]
"""The values of a section's columns, in their order: text, whole numbers, floats, bytes or None.

Times are ISO 8601 text in UTC, flags 0 or 1, metadata and options a JSON object as text, ids that are left out None,
vectors float32 in little-endian bytes.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of record.

    Attributes:
        key: the columns that tell its records apart, in whose order they are read.
        group: what it counts as, where a migration is verified.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    group: Literal["memories", "history", "messages", "graph", "queue"]

    def position(self, record: Record) -> tuple[str | int, ...]:
        """The key of a record, with "" for an id that is left out (no id is empty)."""
        values = (record[self.columns.index(column)] for column in self.key)
        return tuple("" if value is None else value for value in values)


_IDS = "user_id agent_id run_id"


def _section(
    group: Literal["memories", "history", "messages", "graph", "queue"], name: str, columns: str, key: str = "row"
) -> Section:
    return Section(name, tuple(columns.split()), tuple(key.split()), group)


_SAID = "text hash metadata actor_id role memory_type created_at updated_at expiration_date seq valid_from"

SECTIONS: tuple[Section, ...] = (
    # same: `records.same_fact_key`; session: which memories were said together, see `ports.Sketch`.
    _section("memories", "memories", f"row id {_IDS} {_SAID} same pinned session vector"),
    _section("memories", "past", f"row id memory {_IDS} {_SAID} valid_to vector"),
    _section("memories", "tombstones", f"seq row memory_id {_IDS}", key="seq"),
    # place: the order in which history was written
    _section(
        "history",
        "history",
        "place id memory_id old_memory new_memory event created_at updated_at is_deleted actor_id role",
        key="place",
    ),
    _section("messages", "messages", f"row digest {_IDS} role content name metadata created_at"),
    _section("messages", "sources", "memory message", key="memory message"),
    _section("messages", "summaries", f"row {_IDS} text upto valid_from"),
    # key: `records.entity_key`; seq: when the vector came, changed: when anything of it did
    _section("graph", "nodes", f"row {_IDS} name key type seq changed vector"),
    _section(
        "graph",
        "edges",
        f"row {_IDS} source relationship destination weight valid_from valid_to invalidated_at seq changed vector",
    ),
    _section("graph", "evidence", "edge memory withdrawn", key="edge memory"),
    _section("graph", "edge_messages", "edge message", key="edge message"),
    # A lease is left out: who holds one cannot be done with it where nothing may be written any more.
    _section("queue", "jobs", f"row kind {_IDS} options at state attempts ready_at error"),
    _section("queue", "job_messages", "job place message", key="job place"),
    _section("queue", "imports", f"{_IDS} key done", key=f"{_IDS} key"),
)
"""In the order in which they are loaded: those that others refer to first."""


@dataclass(frozen=True, slots=True)
class Label:
    """What is to know of a store beside its records.

    Attributes:
        identity: the store's own name, `ports.GraphTruth.identity`.
        space: (name, dims) of the embedder whose vectors it holds.
        seq: number of the last change.
        given: the highest row number ever given, by section: numbers of what is gone are never given again, since
            sources and evidence may still name them.
    """

    identity: str
    space: tuple[str, int] | None
    seq: int
    given: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a store has been filled.

    Attributes:
        origin: identity of the store that it is filled from.
        seal: what that store's `Archive.freeze` returned: with another, it may have changed meanwhile.
        section, after: what was loaded last; () where a section is yet to begin.
        done: all is loaded and verified; the store serves.
    """

    origin: str
    seal: str
    section: str
    after: tuple[str | int, ...] = ()
    done: bool = False


class Archive(Protocol):
    """A store as a whole. Every method raises StoreError when the database fails."""

    def label(self) -> Label: ...

    def records(self, section: Section, *, after: tuple[str | int, ...] = (), limit: int) -> list[Record]:
        """Up to `limit` records of a section whose `Section.position` is above `after`, in its order."""
        ...

    def holds(self) -> str | None:
        """The name of a section that has records, None for a store without any."""
        ...

    def freeze(self) -> str:
        """Let nothing be written, through restarts too; returns the seal, which is the same until it is thawed."""
        ...

    def thaw(self) -> None:
        """Let it be written again."""
        ...

    def seal(self) -> str | None:
        """That of `freeze`, None where writing is allowed."""
        ...

    def progress(self) -> Progress | None:
        """How far it has been filled from elsewhere, None where it never was."""
        ...

    def load(self, section: Section, records: Sequence[Record], *, progress: Progress) -> None:
        """Write records and how far that is, in one transaction. Until `finish` nobody else can open the store.

        Raises:
            StoreError: it holds one of them already.
            InputError: this database cannot hold such a text, say a NUL; it names the record.
        """
        ...

    def finish(self, label: Label, *, progress: Progress) -> None:
        """Go on counting where the origin was, begin a new epoch, and serve."""
        ...


@runtime_checkable
class Archived(Protocol):
    """A store that can be migrated."""

    @property
    def archive(self) -> Archive: ...
