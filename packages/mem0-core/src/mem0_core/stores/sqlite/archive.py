"""The SQLite truth as a whole: the `Archive` that migrations read and fill."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from mem0_core.domain.records import Axis, new_id
from mem0_core.interfaces.archive import (
    FROZEN_MESSAGE,
    SECTIONS,
    LoadProgress,
    Record,
    Section,
    SectionCursor,
    StoreMetadata,
)
from mem0_core.stores.sql.meta import begin_epoch
from mem0_core.stores.sqlite.lexicon import index_text, session_number
from mem0_core.stores.sqlite.rows import placeholders
from mem0_core.stores.sqlite.session import drive
from mem0_core.stores.sqlite.vectors import ConnectionFactory, snapshot

__all__ = ["SQLiteArchive"]

_SOURCE_TABLES = {
    "memories": "memories LEFT JOIN vectors USING (row) LEFT JOIN sketches USING (row)",
    "nodes": "nodes LEFT JOIN node_vectors USING (row)",
    "edges": "edges LEFT JOIN edge_vectors USING (row)",
}
"""Where a section's columns are, where that is not the one table of its name."""

_VECTOR_TABLES = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""The table that a section's vectors lie in, where that is one of its own."""

_COLUMNS = {("history", "place"): "rowid"}
_KEY_COLUMNS = {
    "sources": ("memory", "message"),
    "evidence": ("edge", "memory"),
    "edge_messages": ("edge", "message"),
    "job_messages": ("job", "place"),
}
"""What tables without a rowid are read in the order of; the others are in that of theirs."""

_TABLES = (*(section.name for section in SECTIONS), "vectors", "node_vectors", "edge_vectors")


class SQLiteArchive:
    """An `Archive`."""

    inline = True  # see `flow`

    def __init__(
        self, read: ConnectionFactory, write: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._read = read
        self._write = write

    def store_metadata(self) -> StoreMetadata:
        with self._read() as db:
            meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
            given = dict(db.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
        space = tuple(json.loads(meta["space"])) if "space" in meta else None
        known = {section.name for section in SECTIONS}
        return StoreMetadata(
            meta["identity"], space, meta["seq"], {name: last for name, last in given.items() if name in known}
        )

    def records(self, section: Section, *, after: SectionCursor = (), limit: int) -> tuple[list[Record], SectionCursor]:
        columns = [_COLUMNS.get((section.name, column), column) for column in section.columns]
        key = _KEY_COLUMNS.get(section.name, (f"{section.name}.rowid",))
        where = f"WHERE ({', '.join(key)}) > ({placeholders(key)})" if after else ""
        sql = (
            f"SELECT {', '.join((*columns, *key))} FROM {_SOURCE_TABLES.get(section.name, section.name)} {where}"
            f" ORDER BY {', '.join(key)} LIMIT ?"
        )
        with self._read() as db:
            found = db.execute(sql, (*after, limit)).fetchall()
        width = len(columns)
        return [row[:width] for row in found], found[-1][width:] if found else after

    @contextmanager
    def snapshot(self) -> Iterator[SQLiteArchive]:
        with snapshot(self._read) as db:
            yield SQLiteArchive(lambda: nullcontext(db), self._write)

    def first_nonempty_section(self) -> str | None:
        with self._read() as db:
            for section in SECTIONS:
                if db.execute(f"SELECT 1 FROM {section.name} LIMIT 1").fetchone():
                    return section.name
        return None

    def freeze(self) -> str:
        with self._write() as db:
            seal = _meta(db, "seal")
            if seal is None:
                seal = new_id()
                db.execute("INSERT INTO meta VALUES ('seal', ?)", (seal,))
                for name, table, event in _triggers():
                    # Triggers, so that processes of earlier versions are refused too.
                    db.execute(
                        f"CREATE TRIGGER {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, '{FROZEN_MESSAGE}'); END"  # noqa: E501
                    )
            return seal

    def unfreeze(self) -> None:
        with self._write() as db:
            for name, _, _ in _triggers():
                db.execute(f"DROP TRIGGER IF EXISTS {name}")
            db.execute("DELETE FROM meta WHERE key = 'seal'")

    def freeze_token(self) -> str | None:
        with self._read() as db:
            return _meta(db, "seal")

    def load_progress(self) -> LoadProgress | None:
        with self._read() as db:
            return LoadProgress.from_json(_meta(db, "migration"))

    def load(self, section: Section, records: Sequence[Record], *, progress: LoadProgress) -> None:
        with self._write() as db:
            _set_progress(db, progress)
            _insert(db, section, records)

    def finish_load(self, label: StoreMetadata, *, progress: LoadProgress) -> None:
        with self._write() as db:
            for name, last in label.max_row_numbers.items():
                held = db.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, name))
                if not held.rowcount:
                    db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, last))
            db.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'seq'", (label.seq,))
            drive(db, begin_epoch())
            if label.space is not None:
                db.execute("INSERT OR REPLACE INTO meta VALUES ('space', ?)", (json.dumps(label.space),))
            _set_progress(db, progress)


def _insert(db: sqlite3.Connection, section: Section, records: Sequence[Record]) -> None:
    apart = _VECTOR_TABLES.get(section.name)
    columns = [c for c in section.columns if apart is None or c not in ("vector", "session")]
    places = [section.columns.index(column) for column in columns]
    values: list[Record] = [tuple(record[place] for place in places) for record in records]
    names = [_COLUMNS.get((section.name, column), column) for column in columns]
    if section.name == "jobs":
        names += ["part", "leased_until"]
        values = [(*of, _partition(section, record), 0) for of, record in zip(values, records, strict=True)]
    db.executemany(f"INSERT INTO {section.name} ({', '.join(names)}) VALUES ({placeholders(names)})", values)
    if apart is not None:
        place = section.columns.index("vector")
        vectors = [(record[0], record[place]) for record in records if record[place] is not None]
        db.executemany(f"INSERT INTO {apart} VALUES (?, ?)", vectors)
    if section.name == "memories":
        _index(db, section, records)


def _partition(section: Section, record: Record) -> str:
    given = ((axis, record[section.columns.index(axis.value)]) for axis in Axis)
    return next(f"{axis.value}={value}" for axis, value in given if value is not None)


def _index(db: sqlite3.Connection, section: Section, records: Sequence[Record]) -> None:
    """Read the words of memories, as `sqlite_words` does when it writes one."""
    for record in records:
        found = dict(zip(section.columns, record, strict=True))
        ids = found["user_id"], found["agent_id"], found["run_id"]
        session = session_number(*ids, found["seq"]) if found["session"] is None else found["session"]
        index_text(db, found["row"], found["text"], found["actor_id"], ids, session)


def _triggers() -> list[tuple[str, str, str]]:
    return [
        (f"frozen_{table}_{event.lower()}", table, event)
        for table in _TABLES
        for event in ("INSERT", "UPDATE", "DELETE")
    ]


def _meta(db: sqlite3.Connection, key: str) -> str | None:
    found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def _set_progress(db: sqlite3.Connection, progress: LoadProgress) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES ('migration', ?)", (progress.to_json(),))
