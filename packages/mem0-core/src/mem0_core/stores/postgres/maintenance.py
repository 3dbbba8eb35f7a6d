"""Looking after the PostgreSQL truth: what the server cannot know to be wrong, and putting it right.

Pages, indexes and the log are the server's business; an index that it calls invalid is told all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import HistoryRow, Message, RelationChange, Scope
from mem0_core.errors import StoreError
from mem0_core.interfaces.maintenance import OrphanedRelation, StoreIssue, VectorTable
from mem0_core.stores.postgres.archive import MEMORY_PARTITION_SQL
from mem0_core.stores.postgres.dialect import POSTGRES
from mem0_core.stores.postgres.lexicon import refresh_words
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_from_ids, scope_sql
from mem0_core.stores.postgres.session import (
    Database,
    DatabaseSnapshot,
    Steps,
    execute,
    fetch_rows,
    lock_all_partitions,
    lock_partitions,
    read_methods,
    reserve_seqs,
    set_scope,
    write_methods,
)
from mem0_core.stores.postgres.text import from_json
from mem0_core.stores.sql.graph import GraphWriter
from mem0_core.stores.sql.maintenance import LAST_SEQ_SQL, ORPHAN_CONDITIONS, VECTOR_TABLES, SqlMaintenance
from mem0_core.stores.sql.messages import insert_unique_messages
from mem0_core.stores.sql.meta import begin_epoch, read_embedding_space
from mem0_core.stores.sql.rows import to_stored_vector
from mem0_core.stores.sqlite.schema import HISTORY_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PostgresMaintenance"]

_INVALID_INDEXES_SQL = (
    "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE NOT i.indisvalid AND c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace"
    " AND NOT starts_with(c.relname, 'hnsw_') ORDER BY 1"
)
"""Those of vector graphs are invalid while they are built, and are made anew by themselves."""
_COUNT_UNINDEXED_SQL = (
    "SELECT count(*) FROM memories AS m WHERE NOT EXISTS"
    " (SELECT 1 FROM sketches AS s WHERE s.part = m.part AND s.row = m.row)"
)
_TOTAL_SIZE_SQL = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)


class PostgresTableReader:
    """The `TableReader` of a database, or of a moment of it."""

    history_order_column = "place"
    last_seq_sql = "(SELECT last_value FROM next_seq)"
    schema_version_sql = "(SELECT value::integer FROM meta WHERE key = 'schema')"
    wrong_dims_condition = "vector_dims(v.vector) <> ?"

    def __init__(self, db: Database | DatabaseSnapshot) -> None:
        self._db = db

    def _fetch_rows(self, sql: str, values: Sequence[Any] = ()) -> Steps[list[tuple[Any, ...]]]:
        yield from set_scope(None)
        return (yield from fetch_rows(sql.replace("?", "%s"), values))

    fetch_rows, afetch_rows = read_methods(_fetch_rows)

    def scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        where, values = scope_sql(scope, table)
        return where.replace("%s", "?"), values

    def exact_scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        return f"{table}.part = ? AND {table}.exact = ?", [partition_key(scope), scope_digest(scope)]

    def same_partition_condition(self, one: str, other: str) -> str:
        return f"{one}.part = {other}.part AND"

    def read_json(self, text: str) -> dict[str, Any]:
        return from_json(text)

    def vector(self, stored: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = stored.to_numpy()
        return found


class PostgresMaintenance(SqlMaintenance):
    """A `StoreMaintenance`. What only reads has no ``a<method>`` twin: it is for upkeep, and async code has a thread
    for it."""

    file = None

    def __init__(self, db: Database) -> None:
        super().__init__(self._tables, self._snapshot_tables)
        self._db = db

    @contextmanager
    def _tables(self) -> Iterator[PostgresTableReader]:
        yield PostgresTableReader(self._db)

    @contextmanager
    def _snapshot_tables(self) -> Iterator[PostgresTableReader]:
        with self._db.snapshot() as moment:
            yield PostgresTableReader(moment)

    def disk_usage(self) -> dict[str, Any]:
        with self._tables() as tables:
            [(size,)] = tables.fetch_rows(_TOTAL_SIZE_SQL)
        return {"path": self._db.server_name, "store": size}

    # --- soundness ---------------------------------------------------------------------------------------------------

    def find_issues(self) -> list[StoreIssue]:
        with self._tables() as tables:
            invalid = [name for (name,) in tables.fetch_rows(_INVALID_INDEXES_SQL)]
            [(wordless,)] = tables.fetch_rows(_COUNT_UNINDEXED_SQL)
        found = [StoreIssue("index", f"the server calls the index {name} invalid") for name in invalid]
        if wordless:
            found.append(StoreIssue("words", f"the words of {wordless} memories are missing"))
        return [*found, *super().find_issues()]

    def _repair(self, issue: StoreIssue) -> Steps[str]:
        yield from lock_all_partitions()
        if issue.kind == "index":
            for (name,) in (yield from fetch_rows(_INVALID_INDEXES_SQL)):
                quoted = name.replace('"', '""')
                yield from execute(f'REINDEX INDEX "{quoted}"')
            return "indexes built anew"
        if issue.kind == "words":
            yield from execute("DELETE FROM meta WHERE key = 'words'")
            yield from refresh_words()
            return "read the words of all memories anew"
        if issue.kind == "counter":
            yield from fetch_rows(f"SELECT setval('next_seq', greatest(last_value, ({LAST_SEQ_SQL}))) FROM next_seq")
            return "set to the last change"
        if issue.kind == "stray":
            yield from execute(f"DELETE FROM {issue.table} WHERE {ORPHAN_CONDITIONS[issue.table]}")
            return "removed"
        raise StoreError(f"{issue.description}: not the truth's own to mend")

    repair, arepair = write_methods(_repair)

    def _set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> Steps[None]:
        yield from lock_all_partitions()
        _, dims = (yield from read_embedding_space()) or ("", 0)
        first_column = yield from reserve_seqs(len(vectors))
        changed = "" if table == "memories" else ", changed = %s"
        for (row, vector), number in zip(vectors, first_column, strict=True):
            yield from execute(
                f"INSERT INTO {VECTOR_TABLES[table]} (part, row, vector) SELECT part, row, %s FROM {table} WHERE row = %s"  # noqa: E501
                " ON CONFLICT (part, row) DO UPDATE SET vector = excluded.vector",
                (to_stored_vector(vector, dims), row),
            )
            taken = [number] if table == "memories" else [number, number]
            yield from execute(f"UPDATE {table} SET seq = %s{changed} WHERE row = %s", (*taken, row))

    set_vectors, aset_vectors = write_methods(_set_vectors)

    def _begin_new_epoch(self) -> Steps[None]:
        yield from begin_epoch()

    begin_new_epoch, abegin_new_epoch = write_methods(_begin_new_epoch)

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def count_missing_relations(self) -> int:
        """Nothing tells: numbers of transactions that failed are not given again either."""
        return 0

    def _regain(self, lost: OrphanedRelation | None, memory_id: str, relation: RelationChange) -> Steps[None]:
        yield from lock_all_partitions()
        [(row, *ids, created_at)] = yield from fetch_rows(
            "SELECT row, user_id, agent_id, run_id, created_at FROM memories WHERE id = %s", (memory_id,)
        )
        _, dims = (yield from read_embedding_space()) or ("", 0)
        writer = GraphWriter(POSTGRES, scope_from_ids(*ids), relation.effective_at or created_at, dims, "invalidate")
        if lost is None:
            yield from writer.apply([relation], dict.fromkeys(relation.change_indexes, row), ())
        else:
            yield from writer.restore_relation(lost.row, relation)

    restore_relation, aregain = write_methods(_regain)

    def _remove_orphan(self, lost: OrphanedRelation) -> Steps[None]:
        yield from lock_all_partitions()
        for table, column in (
            ("edge_vectors", "row"),
            ("evidence", "edge"),
            ("edge_messages", "edge"),
            ("edges", "row"),
        ):
            yield from execute(f"DELETE FROM {table} WHERE {column} = %s", (lost.row,))
        yield from begin_epoch()  # projections may have it, and no tombstone tells them

    remove_orphan, aremove_orphan = write_methods(_remove_orphan)

    # --- taking in ---------------------------------------------------------------------------------------------------

    def _adopt_history(self, rows: Sequence[HistoryRow]) -> Steps[int]:
        yield from lock_all_partitions()
        theirs = [row.id for row in rows]
        added = [row.memory_id for row in rows if row.event == "ADD"]
        yield from execute(
            "DELETE FROM history WHERE memory_id = ANY (%s::text[]) AND event = 'ADD' AND id <> ALL (%s::text[])",
            (list(dict.fromkeys(added)), theirs),
        )
        new = 0
        for row in rows:
            values = [int(row.is_deleted) if name == "is_deleted" else getattr(row, name) for name in HISTORY_COLUMNS]
            marks = ", ".join(f"%s::{'integer' if name == 'is_deleted' else 'text'}" for name in HISTORY_COLUMNS)
            new += yield from execute(
                f"INSERT INTO history (part, {', '.join(HISTORY_COLUMNS)}) SELECT {MEMORY_PARTITION_SQL}, {marks}"
                " WHERE NOT EXISTS (SELECT 1 FROM history WHERE memory_id = %s AND id = %s)",
                (*[row.memory_id] * 3, *values, row.memory_id, row.id),
            )
        return new

    adopt_history, aadopt_history = write_methods(_adopt_history)

    def _adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> Steps[list[int]]:
        yield from set_scope(scope)
        yield from lock_partitions(partition_key(scope))
        return (yield from insert_unique_messages(POSTGRES, messages, scope, ""))

    adopt_messages, aadopt_messages = write_methods(_adopt_messages)
