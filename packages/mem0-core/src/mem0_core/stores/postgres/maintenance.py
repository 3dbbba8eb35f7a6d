"""Maintenance of a PostgreSQL store. The server itself keeps pages, indexes and its log consistent."""

from __future__ import annotations

from typing import Any

from mem0_core.domain.records import HistoryRow
from mem0_core.interfaces.maintenance import StoreIssue
from mem0_core.stores.postgres.archive import MEMORY_PARTITION_SQL
from mem0_core.stores.postgres.engine.session import Database
from mem0_core.stores.postgres.lexicon import refresh_words
from mem0_core.stores.sql.engine.steps import Statement, Steps, execute, fetch_rows
from mem0_core.stores.sql.maintenance import LAST_SEQ_SQL, SqlMaintenance
from mem0_core.stores.sql.schema import HISTORY_COLUMNS, TABLES

_INVALID_INDEXES_SQL = (
    "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE NOT i.indisvalid AND c.relkind = 'i' AND c.relnamespace = quote_ident(current_schema())::regnamespace"
    " AND NOT starts_with(c.relname, 'hnsw_') ORDER BY 1"
)
"""HNSW indexes are not listed: they are invalid while they are built, and are rebuilt automatically."""
_COUNT_UNINDEXED_SQL = (
    "SELECT count(*) FROM memories AS m WHERE NOT EXISTS"
    " (SELECT 1 FROM sketches AS s WHERE s.part = m.part AND s.row = m.row)"
)
_TOTAL_SIZE_SQL = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = quote_ident(current_schema())::regnamespace"
)


class PostgresMaintenance(SqlMaintenance):
    """A `StoreMaintenance`."""

    file = None
    last_seq_sql = "(SELECT last_value FROM next_seq)"
    schema_version_sql = "(SELECT value::integer FROM meta WHERE key = 'schema')"
    wrong_dims_condition = "vector_dims(v.vector) <> ?"

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._database = db
        self._server_name = db.server_name

    def disk_usage(self) -> dict[str, Any]:
        [(size,)] = self._tables.fetch_rows(_TOTAL_SIZE_SQL)
        return {"path": self._server_name, "store": size}

    def find_issues(self) -> list[StoreIssue]:
        invalid = [name for (name,) in self._tables.fetch_rows(_INVALID_INDEXES_SQL)]
        [(unindexed,)] = self._tables.fetch_rows(_COUNT_UNINDEXED_SQL)
        issues = [StoreIssue("index", f"the server reports the index {name} as invalid") for name in invalid]
        if unindexed:
            issues.append(StoreIssue("words", f"{unindexed} memories are missing from the word index"))
        return [*issues, *super().find_issues()]

    def scrub(self) -> None:
        """Reclaim deleted rows; a role that does not own the tables leaves that to the server's autovacuum."""
        with self._database.connect("write") as db:
            for table in TABLES:
                db.execute(f"VACUUM {table}".encode())

    def _rebuild_indexes(self) -> Steps[None]:
        for (name,) in (yield from fetch_rows(_INVALID_INDEXES_SQL)):
            quoted = name.replace('"', '""')
            yield from execute(f'REINDEX INDEX "{quoted}"')

    def _rebuild_word_index(self) -> Steps[None]:
        yield from execute("DELETE FROM meta WHERE key = 'words'")
        yield from refresh_words()

    def _raise_counter(self) -> Steps[None]:
        yield from fetch_rows(f"SELECT setval('next_seq', greatest(last_value, ({LAST_SEQ_SQL}))) FROM next_seq")

    def count_missing_relations(self) -> int:
        """Return 0: numbers of failed transactions are missing too, so a gap proves nothing."""
        return 0

    def _history_statement(self, row: HistoryRow) -> Statement:
        values = [int(row.is_deleted) if name == "is_deleted" else getattr(row, name) for name in HISTORY_COLUMNS]
        marks = ", ".join(f"?::{'integer' if name == 'is_deleted' else 'text'}" for name in HISTORY_COLUMNS)
        part = MEMORY_PARTITION_SQL
        return Statement(
            f"INSERT INTO history (part, {', '.join(HISTORY_COLUMNS)}) SELECT {part}, {marks}"
            " WHERE NOT EXISTS (SELECT 1 FROM history WHERE memory_id = ? AND id = ?)",
            (*[row.memory_id] * 3, *values, row.memory_id, row.id),
        )
