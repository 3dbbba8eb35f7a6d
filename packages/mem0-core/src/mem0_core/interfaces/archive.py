"""A whole store as plain records: what every truth can give away and take in, whatever database it lies in.

A store shows itself as sections of records. Together they are everything that cannot be worked out again: rows keep
their numbers, so that what refers to what needs no translating, and so that records that were copied can be compared
with those they were copied from. What a store derives (words, partitions of the queue) it derives as it
loads. What it has of its own (identity, epoch, leases, tombstones that only projections of this epoch read) stays.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mem0_core.errors import StoreError

__all__ = [
    "FROZEN_MESSAGE",
    "SECTIONS",
    "Archive",
    "LoadProgress",
    "Record",
    "RecordReader",
    "Section",
    "SectionCursor",
    "StoreMetadata",
    "check_load_complete",
]

Record = tuple[Any, ...]
"""The values of a section's columns, in their order: text, whole numbers, floats, bytes or None.

Times are ISO 8601 text in UTC, flags 0 or 1, metadata and options a JSON object as text, ids that are left out None,
vectors float32 in little-endian bytes.
"""


SectionCursor = tuple[str | int, ...]
"""Where a store stands in a section as it reads it, in its own order; JSON can hold it. () is the beginning."""

FROZEN_MESSAGE = "it was migrated, or is being: nothing may be written (mem0-core migrate --release lets it again)"
"""What whoever writes to a frozen store is told."""

SectionGroup = Literal["memories", "history", "messages", "graph", "queue"]


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of record.

    Attributes:
        group: what it counts as, where a migration is told of.
    """

    group: SectionGroup
    name: str
    columns: tuple[str, ...]


def _section(group: SectionGroup, name: str, columns: str) -> Section:
    return Section(group, name, tuple(columns.split()))


_SCOPE_COLUMNS = "user_id agent_id run_id"
_MEMORY_COLUMNS = "text hash metadata actor_id role memory_type created_at updated_at expiration_date seq valid_from"

SECTIONS: tuple[Section, ...] = (
    # same: `records.same_fact_key`; session: which memories were said together, see `ports.MemoryFeatures`.
    _section("memories", "memories", f"row id {_SCOPE_COLUMNS} {_MEMORY_COLUMNS} same pinned session vector"),
    _section("memories", "past", f"row id memory {_SCOPE_COLUMNS} {_MEMORY_COLUMNS} valid_to vector"),
    _section("memories", "tombstones", f"seq row memory_id {_SCOPE_COLUMNS}"),
    # place: a number that grows in the order in which history was written
    _section(
        "history",
        "history",
        "place id memory_id old_memory new_memory event created_at updated_at is_deleted actor_id role",
    ),
    _section("messages", "messages", f"row digest {_SCOPE_COLUMNS} role content name metadata created_at"),
    _section("messages", "sources", "memory message"),
    _section("messages", "summaries", f"row {_SCOPE_COLUMNS} text upto valid_from"),
    # key: `records.entity_key`; seq: when the vector came, changed: when anything of it did
    _section("graph", "nodes", f"row {_SCOPE_COLUMNS} name key type seq changed vector"),
    _section(
        "graph",
        "edges",
        f"row {_SCOPE_COLUMNS} source relationship destination weight valid_from valid_to invalidated_at seq changed vector",  # noqa: E501
    ),
    _section("graph", "evidence", "edge memory withdrawn day_first day_last"),
    _section("graph", "edge_messages", "edge message"),
    _section("graph", "merges", f"row id {_SCOPE_COLUMNS} kind name node score reasons at undone taken"),
    _section("graph", "aliases", f"merge {_SCOPE_COLUMNS} kind key name standing"),
    # A lease is left out: who holds one cannot be done with it where nothing may be written any more.
    _section("queue", "jobs", f"row kind {_SCOPE_COLUMNS} options at state attempts ready_at error"),
    _section("queue", "job_messages", "job place message"),
    _section("queue", "imports", f"{_SCOPE_COLUMNS} key done"),
)
"""In the order in which they are loaded: those that others refer to first."""


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """What is to know of a store beside its records.

    Attributes:
        identity: the store's own name, `ports.GraphStore.identity`.
        space: (name, dims) of the embedder whose vectors it holds.
        seq: number of the last change.
        given: the highest row number ever given, by section: numbers of what is gone are never given again, since
            sources and evidence may still name them.
    """

    identity: str
    space: tuple[str, int] | None
    seq: int
    max_row_numbers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a store has been filled.

    Attributes:
        origin: identity of the store that it is filled from.
        seal: what that store's `Archive.freeze` returned: with another, it may have changed meanwhile.
        section, after: what was loaded last; () where a section is yet to begin.
        done: all is loaded and verified; the store serves.
    """

    source_identity: str
    freeze_token: str
    section: str
    after: SectionCursor = ()
    done: bool = False

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> LoadProgress | None:
        if text is None:
            return None
        values = json.loads(text)
        return cls(**values | {"after": tuple(values["after"])})


def check_load_complete(progress: LoadProgress | None) -> None:
    """Refuse a store that a migration has not finished filling.

    Raises:
        StoreError: it has not.
    """
    if progress is not None and not progress.done:
        raise StoreError("a migration into this store has not come to its end: run it again, or remove the store")


class RecordReader(Protocol):
    """What a store has in it. Every method raises StoreError when the database fails."""

    def store_metadata(self) -> StoreMetadata: ...

    def records(self, section: Section, *, after: SectionCursor = (), limit: int) -> tuple[list[Record], SectionCursor]:
        """Up to `limit` records of a section behind `after`, and the position of the last of them."""
        ...


class Archive(RecordReader, Protocol):
    """A store as a whole, to be read and filled."""

    def snapshot(self) -> AbstractContextManager[RecordReader]:
        """What is in it now, while others write, for as long as the block lasts."""
        ...

    def first_nonempty_section(self) -> str | None:
        """The name of a section that has records, None for a store without any."""
        ...

    def freeze(self) -> str:
        """Let nothing be written, through restarts too; returns the seal, which is the same until it is thawed."""
        ...

    def unfreeze(self) -> None:
        """Let it be written again."""
        ...

    def freeze_token(self) -> str | None:
        """That of `freeze`, None where writing is allowed."""
        ...

    def load_progress(self) -> LoadProgress | None:
        """How far it has been filled from elsewhere, None where it never was."""
        ...

    def load(self, section: Section, records: Sequence[Record], *, progress: LoadProgress) -> None:
        """Write records and how far that is, in one transaction. Until `finish_load` nobody else can open the store.

        Raises:
            StoreError: it holds one of them already.
            InputError: this database cannot hold such a text, say a NUL; it names the record.
        """
        ...

    def finish_load(self, label: StoreMetadata, *, progress: LoadProgress) -> None:
        """Go on counting where the origin was, begin a new epoch, and serve."""
        ...
