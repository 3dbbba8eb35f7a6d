"""The PostgreSQL truth as a whole: the `Archive` that migrations read and fill.

It is for the owner of the tables: freezing makes triggers, and who is held back by row-level security sees a part only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mem0_core.domain.records import Scope, new_id
from mem0_core.interfaces.archive import (
    FROZEN_MESSAGE,
    SECTIONS,
    LoadProgress,
    Record,
    Section,
    SectionCursor,
    StoreMetadata,
)
from mem0_core.stores.postgres.lexicon import FEATURE_COLUMNS, feature_values
from mem0_core.stores.postgres.rows import partition_key, scope_digest
from mem0_core.stores.postgres.session import (
    Database,
    DatabaseSnapshot,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    lock_all_partitions,
    read_methods,
    set_scope,
    write_methods,
)
from mem0_core.stores.postgres.text import from_json, to_json
from mem0_core.stores.sql.meta import begin_epoch, set_meta
from mem0_core.stores.sql.rows import scope_from_ids, session_number

__all__ = ["MEMORY_PARTITION_SQL", "PostgresArchive"]

_SOURCE_TABLES = {
    "memories": "memories AS t LEFT JOIN vectors AS v ON v.part = t.part AND v.row = t.row"
    " LEFT JOIN sketches AS s ON s.part = t.part AND s.row = t.row",
    "nodes": "nodes AS t LEFT JOIN node_vectors AS v ON v.part = t.part AND v.row = t.row",
    "edges": "edges AS t LEFT JOIN edge_vectors AS v ON v.part = t.part AND v.row = t.row",
}
_KEY_COLUMNS = {
    "history": ("t.place",),
    "tombstones": ("t.seq",),
    "sources": ("t.memory", "t.message"),
    "evidence": ("t.edge", "t.memory"),
    "edge_messages": ("t.edge", "t.message"),
    "job_messages": ("t.job", "t.place"),
    "aliases": ("t.merge", "t.kind", "encode(t.key, 'hex')"),
    "imports": ("encode(t.exact, 'hex')", "t.key"),
}
"""What sections are read in the order of, within a part, by their indexes; the others in that of their rows."""

_VECTOR_TABLES = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""The table that a section's vectors lie in, where that is one of its own."""

_BOOLEAN_COLUMNS = {
    "memories": {"pinned"},
    "evidence": {"withdrawn"},
    "aliases": {"standing"},
}
"""What is a boolean here, and 0 or 1 in records."""

_JSON_COLUMNS = frozenset({"metadata", "options"})
_TABLES_WITH_SCOPE_DIGEST = frozenset(
    {"memories", "messages", "nodes", "edges", "merges", "aliases", "jobs", "imports", "summaries"}
)
_PARENT_TABLES = {
    "sources": ("messages", "message"),
    "evidence": ("edges", "edge"),
    "edge_messages": ("edges", "edge"),
    "job_messages": ("jobs", "job"),
}
"""Whose part a record lies in that has no ids of its own: of which section's row, and the column that names it."""

MEMORY_PARTITION_SQL = (
    "coalesce((SELECT part FROM memories WHERE id = %s LIMIT 1), (SELECT part FROM past WHERE id = %s LIMIT 1),"
    " (SELECT part FROM tombstones WHERE memory_id = %s LIMIT 1), '')"
)
"""The part of a memory's history; that of a memory nobody knows the scope of (of mem0 1.x) lies in one of its own."""

_TABLES = (*(section.name for section in SECTIONS), "vectors", "node_vectors", "edge_vectors")


class PostgresArchive:
    """An `Archive`. Each method has its ``a<method>`` twin."""

    def __init__(self, db: Database | DatabaseSnapshot) -> None:
        self._db = db

    @contextmanager
    def snapshot(self) -> Iterator[PostgresArchive]:
        if isinstance(self._db, DatabaseSnapshot):
            yield self
            return
        with self._db.snapshot() as moment:
            yield PostgresArchive(moment)

    def _store_metadata(self) -> Steps[StoreMetadata]:
        meta = dict((yield from fetch_rows("SELECT key, value FROM meta")))
        [(last, seq)] = yield from fetch_rows("SELECT r.last_value, q.last_value FROM next_row AS r, next_seq AS q")
        space = tuple(json.loads(meta["space"])) if "space" in meta else None
        given = {section.name: last for section in SECTIONS if section.columns[0] == "row"}
        return StoreMetadata(meta["identity"], space, seq, given)

    store_metadata, astore_metadata = read_methods(_store_metadata)

    def _records(
        self, section: Section, *, after: SectionCursor = (), limit: int
    ) -> Steps[tuple[list[Record], SectionCursor]]:
        yield from set_scope(None)
        key = ("t.part", *_KEY_COLUMNS.get(section.name, ("t.row",)))
        where = f"WHERE ({', '.join(key)}) > ({', '.join(['%s'] * len(key))})" if after else ""
        found = yield from fetch_rows(
            f"SELECT {', '.join((*_select_columns(section), *key))} FROM {_SOURCE_TABLES.get(section.name, f'{section.name} AS t')}"  # noqa: E501
            f" {where} ORDER BY {', '.join(key)} LIMIT %s",
            (*after, limit),
        )
        width = len(section.columns)
        return [_record(section, row[:width]) for row in found], tuple(found[-1][width:]) if found else after

    records, arecords = read_methods(_records)

    def _first_nonempty_section(self) -> Steps[str | None]:
        yield from set_scope(None)
        for section in SECTIONS:
            if (yield from fetch_rows(f"SELECT 1 FROM {section.name} LIMIT 1")):
                return section.name
        return None

    first_nonempty_section, afirst_nonempty_section = read_methods(_first_nonempty_section)

    def _freeze(self) -> Steps[str]:
        yield from lock_all_partitions()
        held = yield from _meta("seal")
        if held is not None:
            return held
        seal = new_id()
        yield from set_meta("seal", seal)
        yield from execute(
            "CREATE OR REPLACE FUNCTION mem0_frozen() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{FROZEN_MESSAGE}'; END $$"
        )
        for table in _TABLES:
            yield from execute(
                f"CREATE TRIGGER frozen_{table} BEFORE INSERT OR UPDATE OR DELETE ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION mem0_frozen()"
            )
        return seal

    freeze, afreeze = write_methods(_freeze)

    def _unfreeze(self) -> Steps[None]:
        yield from lock_all_partitions()
        for table in _TABLES:
            yield from execute(f"DROP TRIGGER IF EXISTS frozen_{table} ON {table}")
        yield from execute("DELETE FROM meta WHERE key = 'seal'")

    unfreeze, aunfreeze = write_methods(_unfreeze)

    def _freeze_token(self) -> Steps[str | None]:
        return (yield from _meta("seal"))

    freeze_token, afreeze_token = read_methods(_freeze_token)

    def _load_progress(self) -> Steps[LoadProgress | None]:
        return LoadProgress.from_json((yield from _meta("migration")))

    load_progress, aload_progress = read_methods(_load_progress)

    def _load(self, section: Section, records: Sequence[Record], *, progress: LoadProgress) -> Steps[None]:
        yield from set_scope(None)
        yield from lock_all_partitions()
        yield from _set_progress(progress)
        yield from _insert(section, records)

    load, aload = write_methods(_load)

    def _finish_load(self, label: StoreMetadata, *, progress: LoadProgress) -> Steps[None]:
        yield from set_scope(None)
        yield from lock_all_partitions()
        [(place,)] = yield from fetch_rows("SELECT max(place) FROM history")
        yield from _advance_sequence("next_row", max([*label.max_row_numbers.values(), place or 0]))
        yield from _advance_sequence("next_seq", label.seq)
        yield from begin_epoch()
        if label.space is not None:
            yield from set_meta("space", json.dumps(label.space))
        for table in (*_TABLES, "sketches"):
            yield from execute(f"ANALYZE {table}")  # else the planner takes for empty what was loaded at once
        yield from _set_progress(progress)

    finish_load, afinish_load = write_methods(_finish_load)


# --- reading -----------------------------------------------------------------------------------------------------


def _select_columns(section: Section) -> list[str]:
    flags = _BOOLEAN_COLUMNS.get(section.name, set())
    apart = {"vector": "v.vector", "session": "s.session"} if section.name in _VECTOR_TABLES else {}
    return [apart.get(c) or (f"t.{c}::integer" if c in flags else f"t.{c}") for c in section.columns]


def _record(section: Section, row: Sequence[Any]) -> Record:
    return tuple(_to_plain_value(column, value) for column, value in zip(section.columns, row, strict=True))


def _to_plain_value(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column == "vector":
        return value.to_numpy().astype("<f4").tobytes()
    if column in _JSON_COLUMNS and "\\u0010" in value:
        return json.dumps(from_json(value), ensure_ascii=False, separators=(",", ":"))
    return bytes(value) if isinstance(value, memoryview) else value


# --- writing -----------------------------------------------------------------------------------------------------


def _insert(section: Section, records: Sequence[Record]) -> Steps[None]:
    rows = [dict(zip(section.columns, record, strict=True)) for record in records]
    columns = [c for c in section.columns if section.name not in _VECTOR_TABLES or c not in ("vector", "session")]
    flags = _BOOLEAN_COLUMNS.get(section.name, set())
    values = [[_to_database_value(column, row[column], column in flags) for column in columns] for row in rows]
    names, marks = list(columns), ["%s"] * len(columns)
    if section.name in _PARENT_TABLES:
        table, column = _PARENT_TABLES[section.name]
        yield from execute_many(
            f"INSERT INTO {section.name} (part, {', '.join(names)}) SELECT part, {', '.join(_typed_placeholders(columns))}"  # noqa: E501
            f" FROM {table} WHERE row = %s",
            [[*of, row[column]] for of, row in zip(values, rows, strict=True)],
        )
        return
    if section.name == "history":
        part, leading = MEMORY_PARTITION_SQL, [[row["memory_id"]] * 3 for row in rows]
    else:
        part, leading = "%s", [[partition_key(_scope(row))] for row in rows]
    if section.name in _TABLES_WITH_SCOPE_DIGEST:
        part, leading = (
            f"{part}, %s",
            [[*first, scope_digest(_scope(row))] for first, row in zip(leading, rows, strict=True)],
        )
        names = ["exact", *names]
    yield from execute_many(
        f"INSERT INTO {section.name} (part, {', '.join(names)}) VALUES ({part}, {', '.join(marks)})",
        [[*first, *of] for first, of in zip(leading, values, strict=True)],
    )
    if section.name in _VECTOR_TABLES:
        yield from execute_many(
            f"INSERT INTO {_VECTOR_TABLES[section.name]} (part, row, vector) VALUES (%s, %s, %s)",
            [
                (partition_key(_scope(row)), row["row"], _to_database_value("vector", row["vector"]))
                for row in rows
                if row["vector"] is not None
            ],
        )
    if section.name == "memories":
        yield from _insert_features(rows)


def _insert_features(rows: Sequence[dict[str, Any]]) -> Steps[None]:
    """Read the words of memories, as `postgres_words` does when one is written."""
    sketches = []
    for row in rows:
        ids = row["user_id"], row["agent_id"], row["run_id"]
        session = session_number(*ids, row["seq"]) if row["session"] is None else row["session"]
        words = feature_values(row["text"], row["actor_id"], scope_from_ids(*ids), session)
        sketches.append((partition_key(scope_from_ids(*ids)), row["row"], *words))
    marks = ", ".join(["%s"] * 8)
    yield from execute_many(f"INSERT INTO sketches (part, row, {FEATURE_COLUMNS}) VALUES ({marks})", sketches)


def _typed_placeholders(columns: Sequence[str]) -> list[str]:
    """Placeholders of a SELECT, which PostgreSQL takes for text unless told."""
    types = {"withdrawn": "boolean", "day_first": "text", "day_last": "text"}
    return [f"%s::{types.get(column, 'bigint')}" for column in columns]


def _to_database_value(column: str, value: Any, flag: bool = False) -> Any:
    """A record's value as this database takes it."""
    if value is None:
        return None
    if column == "vector":
        import numpy as np

        return np.frombuffer(value, dtype="<f4")
    if column in _JSON_COLUMNS:
        return to_json(json.loads(value))
    return bool(value) if flag else value


def _scope(row: dict[str, Any]) -> Scope:
    return scope_from_ids(row["user_id"], row["agent_id"], row["run_id"])


def _advance_sequence(sequence: str, last: int) -> Steps[None]:
    """Let no number up to `last` be given again. It stays so even if the transaction fails, which harms nobody."""
    if last:
        yield from fetch_rows(f"SELECT setval('{sequence}', greatest(last_value, %s::bigint)) FROM {sequence}", (last,))


def _meta(key: str) -> Steps[str | None]:
    found = yield from fetch_rows("SELECT value FROM meta WHERE key = %s", (key,))
    return found[0][0] if found else None


def _set_progress(progress: LoadProgress) -> Steps[None]:
    yield from set_meta("migration", progress.to_json())
