"""A whole store as plain records, independent of its database: the format of backups and migrations.

A store is read as sections of records, which hold all data that cannot be derived. Rows keep their numbers, so that
references need no translation and copies can be compared with their source. Derived data (words, partitions of the
queue) is derived again while loading. Data of one database (identity, epoch, leases) is not copied.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from mem0_core._system.records import dataclass
from mem0_core.errors import StoreError

Record = tuple[Any, ...]
"""The values of a section's columns, in their order: text, integers, floats, bytes or None.

Times are ISO 8601 text in UTC, flags 0 or 1, metadata and options JSON objects as text, omitted ids None, and vectors
float32 in little-endian bytes.
"""


SectionCursor = tuple[str | int, ...]
"""A position in a section, in the store's own order, as JSON values; () is the beginning."""

FROZEN_MESSAGE = (
    "the store is frozen by a migration: writes are refused (mem0-core migrate --release allows them again)"
)
"""Error text of writes to a frozen store."""

SectionGroup = Literal["memories", "history", "messages", "graph", "queue", "spaces"]


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of record.

    Attributes:
        group: heading under which the progress of a migration counts it.
    """

    group: SectionGroup
    name: str
    columns: tuple[str, ...]


def _section(group: SectionGroup, name: str, columns: str) -> Section:
    return Section(group, name, tuple(columns.split()))


_SCOPE_COLUMNS = "user_id agent_id run_id"
_MEMORY_COLUMNS = (
    "text hash metadata actor_id role memory_type created_at updated_at expiration_date seq valid_from trust"
)

SECTIONS: tuple[Section, ...] = (
    # same: `records.same_fact_key`; session: the run or add of the memory, see `lexicon.MemoryFeatures`.
    _section(
        "memories", "memories", f"row id {_SCOPE_COLUMNS} {_MEMORY_COLUMNS} same pinned useful useless session vector"
    ),
    _section("memories", "past", f"row id memory {_SCOPE_COLUMNS} {_MEMORY_COLUMNS} valid_to vector"),
    _section("memories", "tombstones", f"seq row memory_id {_SCOPE_COLUMNS}"),
    # place: a number that increases in the order in which history was written
    _section(
        "history",
        "history",
        "place id memory_id old_memory new_memory event created_at updated_at is_deleted actor_id role",
    ),
    _section("history", "events", f"seq event memory_id {_SCOPE_COLUMNS} actor_id role source why at"),
    _section("messages", "messages", f"row digest {_SCOPE_COLUMNS} role content name metadata created_at source trust"),
    _section("messages", "sources", "memory message seq repeats"),
    _section("messages", "summaries", f"row {_SCOPE_COLUMNS} text upto valid_from"),
    # key: `records.entity_key`; seq: last change of the vector, changed: last change of the row
    _section("graph", "nodes", f"row {_SCOPE_COLUMNS} name key type seq changed vector"),
    _section(
        "graph",
        "edges",
        f"row {_SCOPE_COLUMNS} source relationship destination weight valid_from valid_to invalidated_at seq changed vector",  # noqa: E501
    ),
    _section("graph", "evidence", "edge memory withdrawn day_first day_last"),
    _section("graph", "edge_messages", "edge message"),
    _section("graph", "endings", "kind target message"),
    _section("graph", "merges", f"row id {_SCOPE_COLUMNS} kind name node score reasons at undone taken"),
    _section("graph", "aliases", f"merge {_SCOPE_COLUMNS} kind key name standing"),
    # Leases are left out: a worker cannot complete its job in a frozen store.
    _section("queue", "jobs", f"row kind {_SCOPE_COLUMNS} options at state attempts ready_at error"),
    _section("queue", "job_messages", "job place message"),
    _section("queue", "imports", f"{_SCOPE_COLUMNS} key done"),
    _section("spaces", "spaces", f"row {_SCOPE_COLUMNS} requires_approval created_at"),
    _section("spaces", "space_members", f"row {_SCOPE_COLUMNS} member role since"),
    _section("spaces", "space_writes", f"row {_SCOPE_COLUMNS} id author kind arguments at"),
)
"""All sections in loading order: referenced sections come first."""


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """The state of a store outside of its records.

    Attributes:
        identity: unique name of the store, `GraphStore.store_id`.
        space: (name, dims) of the embedder of its vectors.
        seq: sequence number of the last change.
        max_row_numbers: the highest row number ever used, by section. Numbers are never reused, because sources and
            evidence may still refer to deleted rows.
    """

    identity: str
    space: tuple[str, int] | None
    seq: int
    max_row_numbers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The progress of loading a store from another one.

    Attributes:
        source_identity: identity of the source store.
        freeze_token: the token of the source's `Archive.freeze`; another token means that it may have changed.
        section, after: the last section and position loaded; () before the first record of a section.
        done: True once everything is loaded and verified.
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
    """Refuse a store with an unfinished migration into it.

    Raises:
        StoreError: the migration has not finished.
    """
    if progress is not None and not progress.done:
        raise StoreError("a migration into this store has not finished: run it again, or remove the store")


class RecordReader(Protocol):
    """Read access to the records of a store. Every method raises StoreError when the database fails."""

    def store_metadata(self) -> StoreMetadata: ...

    def records(self, section: Section, *, after: SectionCursor = (), limit: int) -> tuple[list[Record], SectionCursor]:
        """Return up to `limit` records of a section after a position, and the position of the last one."""
        ...


class Archive(RecordReader, Protocol):
    """Access to a whole store, for backups and migrations."""

    def snapshot(self) -> AbstractContextManager[RecordReader]:
        """Return a context manager that reads one snapshot while others write."""
        ...

    def first_nonempty_section(self) -> str | None:
        """Return the name of a section with records, or None for an empty store."""
        ...

    def freeze(self) -> str:
        """Refuse all writes, across restarts. Returns a token that stays the same until `unfreeze`."""
        ...

    def unfreeze(self) -> None:
        """Allow writes again."""
        ...

    def freeze_token(self) -> str | None:
        """Return the token of `freeze`, or None if writes are allowed."""
        ...

    def load_progress(self) -> LoadProgress | None:
        """Return the progress of the last load into this store, or None if there was none."""
        ...

    def load(self, section: Section, records: Sequence[Record], *, progress: LoadProgress) -> None:
        """Write records and the progress in one transaction. The store cannot be opened normally until `finish_load`.

        A load begins with no records of the first section.

        Raises:
            StoreError: the store already has one of the records.
            InputError: the database cannot store a text, for instance one with NUL; the message names the record.
        """
        ...

    def finish_load(self, label: StoreMetadata, *, progress: LoadProgress) -> None:
        """Take over the counters of the source, begin a new epoch, and open the store for use."""
        ...
