"""Archive of a SQLite store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.interfaces.archive import FROZEN_MESSAGE, SECTIONS, Section, StoreMetadata
from mem0_core.stores.sql.archive import ARCHIVED_TABLES, SqlArchive, record_scope
from mem0_core.stores.sql.engine.steps import Steps, execute, execute_many, fetch_rows, insert_sql
from mem0_core.stores.sql.rows import partition_key, scope_ids, session_number
from mem0_core.stores.sqlite.lexicon import index_text
from mem0_core.stores.sqlite.session import Database

_TRIGGERS = [
    (f"frozen_{table}_{event.lower()}", table, event)
    for table in ARCHIVED_TABLES
    for event in ("INSERT", "UPDATE", "DELETE")
]


class SQLiteArchive(SqlArchive):
    """An `Archive` of one file."""

    _db: Database

    default_key = "t.rowid"

    def _read_counters(self) -> Steps[tuple[int, dict[str, int]]]:
        [(seq,)] = yield from fetch_rows("SELECT value FROM meta WHERE key = 'seq'")
        sections = {section.name for section in SECTIONS}
        used = yield from fetch_rows("SELECT name, seq FROM sqlite_sequence")
        return seq, {name: last for name, last in used if name in sections}

    def _advance_counters(self, metadata: StoreMetadata) -> Steps[None]:
        for name, last in metadata.max_row_numbers.items():
            update = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
            if not (yield from execute(update, (last, name))):
                yield from execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, last))
        yield from execute("UPDATE meta SET value = max(value, ?) WHERE key = 'seq'", (metadata.seq,))

    def _create_triggers(self) -> Steps[None]:
        for name, table, event in _TRIGGERS:
            yield from execute(
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, '{FROZEN_MESSAGE}'); END"
            )

    def _drop_triggers(self) -> Steps[None]:
        for name, _, _ in _TRIGGERS:
            yield from execute(f"DROP TRIGGER IF EXISTS {name}")

    def _insert_rows(
        self, section: Section, columns: Sequence[str], records: Sequence[dict[str, Any]], values: list[list[Any]]
    ) -> Steps[None]:
        names = ["rowid" if (section.name, column) == ("history", "place") else column for column in columns]
        if section.name == "jobs":
            names.append("part")
            values = [[*row, partition_key(record_scope(record))] for row, record in zip(values, records, strict=True)]
        yield from execute_many(insert_sql(section.name, ", ".join(names)), values)

    def _insert_words(self, records: Sequence[dict[str, Any]]) -> Steps[None]:
        yield from ()
        for record in records:
            ids = scope_ids(record_scope(record))
            session = session_number(*ids, record["seq"]) if record["session"] is None else record["session"]
            speaker = record["actor_id"], record["role"]
            index_text(self._db.writer, record["row"], record["text"], speaker, ids, session, self._db.vault)
