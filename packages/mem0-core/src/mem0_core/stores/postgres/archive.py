"""Archive of a PostgreSQL store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from mem0_core.domain.records import Axis
from mem0_core.interfaces.archive import FROZEN_MESSAGE, SECTIONS, Section, StoreMetadata
from mem0_core.stores.postgres.engine.dialect import POSTGRES
from mem0_core.stores.postgres.engine.text import from_json, to_json
from mem0_core.stores.postgres.lexicon import FEATURE_COLUMNS, feature_values
from mem0_core.stores.sql.archive import ARCHIVED_TABLES, SqlArchive, record_scope
from mem0_core.stores.sql.engine.steps import Steps, execute, execute_many, fetch_rows, insert_sql
from mem0_core.stores.sql.rows import partition_key, scope_ids, session_number

_JSON_COLUMNS = frozenset({"metadata", "options", "arguments"})
_BOOLEAN_COLUMNS = frozenset({"pinned", "repeats", "withdrawn", "standing", "requires_approval"})
_TABLES_WITH_SCOPE_DIGEST = frozenset(
    {"memories", "messages", "nodes", "edges", "merges", "aliases", "jobs", "imports", "summaries"}
    | {"spaces", "space_members", "space_writes"}
)
_PARENT_TABLES = {
    "sources": ("messages", "message"),
    "endings": ("messages", "message"),
    "evidence": ("edges", "edge"),
    "edge_messages": ("edges", "edge"),
    "job_messages": ("jobs", "job"),
}
"""For records without ids: the section of the row that has their partition, and the column that names the row."""

MEMORY_PARTITION_SQL = (
    "coalesce((SELECT part FROM memories WHERE id = ? LIMIT 1), (SELECT part FROM past WHERE id = ? LIMIT 1),"
    " (SELECT part FROM tombstones WHERE memory_id = ? LIMIT 1), '')"
)
"""Partition of a memory's history; empty where the scope of the memory is unknown, as in data of mem0 1.x."""


class PostgresArchive(SqlArchive):
    """An `Archive` with async methods. It needs the owner of the tables: freezing creates triggers."""

    key_columns: ClassVar = {
        **SqlArchive.key_columns,
        "history": ("t.place",),
        "tombstones": ("t.seq",),
        "events": ("t.seq",),
        "aliases": ("t.merge", "t.kind", "encode(t.key, 'hex')"),
        "imports": ("encode(t.exact, 'hex')", "t.key"),
    }
    default_key = "t.row"

    def _read_counters(self) -> Steps[tuple[int, dict[str, int]]]:
        [(last, seq)] = yield from fetch_rows("SELECT r.last_value, q.last_value FROM next_row AS r, next_seq AS q")
        return seq, {section.name: last for section in SECTIONS if section.columns[0] == "row"}

    def _advance_counters(self, metadata: StoreMetadata) -> Steps[None]:
        [(place,)] = yield from fetch_rows("SELECT max(place) FROM history")
        last_row = max([*metadata.max_row_numbers.values(), place or 0])
        for sequence, last in (("next_row", last_row), ("next_seq", metadata.seq)):
            if last:  # a failed transaction leaves a sequence advanced, which does no harm
                yield from fetch_rows(
                    f"SELECT setval('{sequence}', greatest(last_value, ?::bigint)) FROM {sequence}", (last,)
                )

    def _create_triggers(self) -> Steps[None]:
        yield from execute(
            "CREATE OR REPLACE FUNCTION mem0_frozen() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{FROZEN_MESSAGE}'; END $$"
        )
        for table in ARCHIVED_TABLES:
            yield from execute(
                f"CREATE TRIGGER frozen_{table} BEFORE INSERT OR UPDATE OR DELETE ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION mem0_frozen()"
            )

    def _drop_triggers(self) -> Steps[None]:
        for table in ARCHIVED_TABLES:
            yield from execute(f"DROP TRIGGER IF EXISTS frozen_{table} ON {table}")

    def _insert_rows(
        self, section: Section, columns: Sequence[str], records: Sequence[dict[str, Any]], values: list[list[Any]]
    ) -> Steps[None]:
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        if section.name in _PARENT_TABLES:
            table, column = _PARENT_TABLES[section.name]
            select = f"SELECT part, {_typed_marks(columns)} FROM {table} WHERE row = ?"
            sql = f"INSERT INTO {section.name} (part, {names}) {select}"
            keys = [(record[column],) for record in records]
            yield from execute_many(sql, [(*row, *key) for row, key in zip(values, keys, strict=True)])
            return
        if section.name == "history":
            sql = f"INSERT INTO history (part, {names}) VALUES ({MEMORY_PARTITION_SQL}, {marks})"
            leading: list[tuple[Any, ...]] = [(record["memory_id"],) * 3 for record in records]
        elif section.name in _TABLES_WITH_SCOPE_DIGEST:
            sql = insert_sql(section.name, f"part, exact, {names}")
            leading = [POSTGRES.exact_values(record_scope(record)) for record in records]
        else:
            sql = insert_sql(section.name, f"part, {names}")
            leading = [_part_values(record) for record in records]
        yield from execute_many(sql, [(*first, *row) for first, row in zip(leading, values, strict=True)])

    def _insert_words(self, records: Sequence[dict[str, Any]]) -> Steps[None]:
        rows = []
        for record in records:
            scope = record_scope(record)
            session = session_number(*scope_ids(scope), record["seq"])
            if record["session"] is not None:
                session = record["session"]
            words = feature_values(record["text"], (record["actor_id"], record["role"]), scope, session)
            rows.append((partition_key(scope), record["row"], *words))
        yield from execute_many(insert_sql("sketches", f"part, row, {FEATURE_COLUMNS}"), rows)

    def _analyze(self) -> Steps[None]:
        for table in (*ARCHIVED_TABLES, "sketches"):
            yield from execute(f"ANALYZE {table}")  # otherwise the planner takes tables loaded at once for empty

    def _to_plain(self, column: str, value: Any) -> Any:
        if value is None:
            return None
        if column == "vector":
            return value.to_numpy().astype("<f4").tobytes()
        if column in _JSON_COLUMNS and "\\u0010" in value:
            return json.dumps(from_json(value), ensure_ascii=False, separators=(",", ":"))
        return bytes(value) if isinstance(value, memoryview) else value

    def _to_stored(self, section: Section, column: str, value: Any) -> Any:
        if value is None:
            return None
        if column == "vector":
            import numpy as np

            return np.frombuffer(value, dtype="<f4")
        if column in _JSON_COLUMNS:
            return to_json(json.loads(value))
        return bool(value) if column in _BOOLEAN_COLUMNS else value


def _part_values(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return the partition of a record; the empty one for an event without ids."""
    is_named = any(record[axis.value] is not None for axis in Axis)
    return POSTGRES.part_values(record_scope(record)) if is_named else ("",)


def _typed_marks(columns: Sequence[str]) -> str:
    """Return placeholders of a SELECT, which PostgreSQL takes for text without a type."""
    types = {"withdrawn": "boolean", "repeats": "boolean", "kind": "text", "day_first": "text", "day_last": "text"}
    return ", ".join(f"?::{types.get(column, 'bigint')}" for column in columns)
