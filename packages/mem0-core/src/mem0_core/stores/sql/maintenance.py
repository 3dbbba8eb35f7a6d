"""Maintenance of a store in SQL tables: consistency problems and their repair, statistics, export and adoption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from mem0_core.domain.records import Axis, HistoryRow, Message, RelationChange, Scope, Triplet, Trust, entity_key
from mem0_core.domain.trust import trust_name
from mem0_core.errors import StoreError
from mem0_core.interfaces.maintenance import OrphanedRelation, StoreIssue, VectorTable
from mem0_core.stores.sql.changes.subjects import SqlSubjects
from mem0_core.stores.sql.engine.dialect import Engine
from mem0_core.stores.sql.engine.steps import (
    Statement,
    Steps,
    execute,
    execute_batch,
    fetch_rows,
    write_method,
)
from mem0_core.stores.sql.graph.reader import edges_with_nodes
from mem0_core.stores.sql.graph.writer import GraphWriter
from mem0_core.stores.sql.messages import find_message_rows, insert_unique_messages
from mem0_core.stores.sql.meta import begin_epoch, read_embedding_space
from mem0_core.stores.sql.rows import chunks, placeholders, scope_from_ids
from mem0_core.stores.sql.schema import HISTORY_COLUMNS, VECTOR_TABLES

T = TypeVar("T")
Row = tuple[Any, ...]

_PAGE_ROWS = 500  # rows read at once

_TABLES_WITH_SEQ = ("memories", "tombstones", "nodes", "edges", "node_tombstones", "edge_tombstones", "events")
LAST_SEQ_SQL = (
    "SELECT max(seq) FROM"
    f" ({' UNION ALL '.join(f'SELECT max(seq) AS seq FROM {table}' for table in _TABLES_WITH_SEQ)}) AS counted"
)
"""Number of the last change that left any row."""


def _missing_condition(column: str, table: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {table} AS their WHERE their.row = {column})"


ORPHAN_CONDITIONS = {
    "vectors": _missing_condition("vectors.row", "memories"),
    "node_vectors": _missing_condition("node_vectors.row", "nodes"),
    "sources": _missing_condition("sources.message", "messages"),
    "endings": _missing_condition("endings.message", "messages"),
    "edge_messages": _missing_condition("edge_messages.message", "messages"),
    "job_messages": f"({_missing_condition('job_messages.job', 'jobs')} OR {_missing_condition('job_messages.message', 'messages')})",  # noqa: E501
}
"""Condition of rows that refer to missing rows. Evidence is not listed: it outlives its memory."""


class TableReader:
    """Rows of all scopes, read over one engine. Every method raises StoreError if the database fails."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.dialect = engine.dialect

    def run(self, make_steps: Callable[[], Steps[T]]) -> T:
        """Run steps over the rows of all scopes."""

        def steps() -> Steps[T]:
            yield from self.dialect.set_scope(None)
            return (yield from make_steps())

        return self._engine.run(steps, "read")

    def fetch_rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a statement."""
        return self.run(lambda: fetch_rows(sql, values))


class SqlMaintenance(SqlSubjects):
    """A `StoreMaintenance`. Methods that only read are synchronous: async code runs them in a thread.

    Attributes:
        last_seq_sql: SQL of the number of the last change.
        schema_version_sql: SQL of the schema version.
        wrong_dims_condition: condition of vectors ``v.vector`` that have not as many dims as the placeholder says.
    """

    last_seq_sql: ClassVar[str]
    schema_version_sql: ClassVar[str]
    wrong_dims_condition: ClassVar[str]

    def __init__(self, db: Engine) -> None:
        super().__init__(db)
        self._tables = TableReader(db)

    @contextmanager
    def _snapshot(self) -> Iterator[TableReader]:
        with self._db.snapshot() as engine:
            yield TableReader(engine)

    # --- issues ------------------------------------------------------------------------------------------------------

    def find_issues(self) -> list[StoreIssue]:
        with self._snapshot() as tables:  # a concurrent write would look incomplete otherwise
            return [*self._check_counter(tables), *self._check_vectors(tables), *_check_orphans(tables)]

    @write_method
    def repair(self, issue: StoreIssue) -> Steps[str]:
        yield from self._dialect.lock_all()
        if issue.kind == "index":
            yield from self._rebuild_indexes()
            return "rebuilt the indexes"
        if issue.kind == "words":
            yield from self._rebuild_word_index()
            return "rebuilt the word index of all memories"
        if issue.kind == "counter":
            yield from self._raise_counter()
            return "set to the last change"
        if issue.kind == "stray":
            yield from execute(f"DELETE FROM {issue.table} WHERE {ORPHAN_CONDITIONS[issue.table]}")
            return "removed"
        raise StoreError(f"{issue.description}: cannot be repaired automatically; restore a backup")

    def _rebuild_indexes(self) -> Steps[None]:
        raise NotImplementedError

    def _rebuild_word_index(self) -> Steps[None]:
        raise NotImplementedError

    def _raise_counter(self) -> Steps[None]:
        """Set the number of the last change to `LAST_SEQ_SQL` if it is lower."""
        raise NotImplementedError

    @write_method
    def set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> Steps[None]:
        dialect = self._dialect
        yield from dialect.lock_all()
        _, dims = (yield from read_embedding_space()) or ("", 0)
        seqs = yield from dialect.reserve_seqs(len(vectors))
        upsert = (
            f"INSERT INTO {VECTOR_TABLES[table]} ({dialect.part}row, vector) SELECT {dialect.part}row, ? FROM {table}"
            f" WHERE row = ? ON CONFLICT ({dialect.part}row) DO UPDATE SET vector = excluded.vector"
        )
        columns = "seq = ?" if table == "memories" else "seq = ?, changed = ?"
        for (row, vector), seq in zip(vectors, seqs, strict=True):
            yield from execute(upsert, (dialect.vector(vector, dims), row))
            values = (seq, row) if table == "memories" else (seq, seq, row)
            yield from execute(f"UPDATE {table} SET {columns} WHERE row = ?", values)

    @write_method
    def begin_new_epoch(self) -> Steps[None]:
        yield from begin_epoch()

    def embedded_texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        tables = self._tables
        for page in chunks(rows):
            among = f"t.row IN ({placeholders(page)})"
            if table == "edges":
                source = edges_with_nodes(tables.dialect, "t")
                sql = f"SELECT t.row, s.name, t.relationship, d.name FROM {source} WHERE {among}"
                found += [(row, Triplet(*parts).sentence) for row, *parts in tables.fetch_rows(sql, page)]
            else:
                column = "text" if table == "memories" else "name"
                sql = f"SELECT t.row, t.{column} FROM {table} AS t WHERE {among}"
                found += [(row, text) for row, text in tables.fetch_rows(sql, page)]
        return found

    def _check_counter(self, tables: TableReader) -> Iterator[StoreIssue]:
        [(counted, last)] = tables.fetch_rows(f"SELECT {self.last_seq_sql}, ({LAST_SEQ_SQL})")
        if (last or 0) > counted:
            yield StoreIssue("counter", f"the change counter is {counted}, but the last change is {last}")

    def _check_vectors(self, tables: TableReader) -> Iterator[StoreIssue]:
        space = tables.run(read_embedding_space)
        for table, vectors in VECTOR_TABLES.items():
            sql = (
                f"SELECT t.row FROM {table} AS t"
                f" LEFT JOIN {vectors} AS v ON {tables.dialect.same_part('v', 't')}v.row = t.row"
                f" WHERE v.vector IS NULL OR {self.wrong_dims_condition} ORDER BY t.row"
            )
            if rows := tuple(row for (row,) in tables.fetch_rows(sql, (space[1] if space else 0,))):
                yield StoreIssue(
                    "vectorless", f"{len(rows)} {table} have no vector, or one of another length", table, rows
                )

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def orphaned_relations(self) -> list[OrphanedRelation]:
        gone = (
            f"SELECT row FROM edge_vectors WHERE {_missing_condition('edge_vectors.row', 'edges')}"
            f" UNION SELECT edge FROM evidence WHERE {_missing_condition('evidence.edge', 'edges')}"
            f" UNION SELECT edge FROM edge_messages WHERE {_missing_condition('edge_messages.edge', 'edges')}"
            f" UNION SELECT row FROM edges WHERE {_missing_condition('edges.source', 'nodes')}"
            f" OR {_missing_condition('edges.destination', 'nodes')} ORDER BY 1"
        )
        says = (
            "SELECT m.id FROM evidence AS v JOIN memories AS m ON m.row = v.memory WHERE v.edge = ? AND NOT v.withdrawn"
            " ORDER BY v.memory"
        )
        found = []
        tables = self._tables
        for (row,) in tables.fetch_rows(gone):
            stored = tables.fetch_rows("SELECT vector FROM edge_vectors WHERE row = ?", (row,))
            memories = tuple(memory_id for (memory_id,) in tables.fetch_rows(says, (row,)))
            vector = tables.dialect.stack_vectors([stored[0][0]])[0] if stored else None
            found.append(OrphanedRelation(row, vector, memories))
        return found

    def has_merges(self) -> bool:
        tables = self._tables
        return bool(tables.fetch_rows("SELECT 1 FROM aliases WHERE standing LIMIT 1"))

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        triplet = relation.triplet
        tables = self._tables
        where, values = tables.dialect.in_exact_scope(scope, "t")
        sql = (
            f"SELECT 1 FROM {edges_with_nodes(tables.dialect, 't')} WHERE {where} AND t.relationship = ?"
            " AND (s.row = ? OR s.key = ?) AND (d.row = ? OR d.key = ?) LIMIT 1"
        )
        # No node has the row 0.
        source = (relation.source_node or 0, entity_key(triplet.source))
        destination = (relation.destination_node or 0, entity_key(triplet.destination))
        return bool(tables.fetch_rows(sql, (*values, triplet.relationship, *source, *destination)))

    @write_method
    def restore_relation(self, lost: OrphanedRelation | None, memory_id: str, relation: RelationChange) -> Steps[None]:
        yield from self._dialect.lock_all()
        [(row, *ids, created_at)] = yield from fetch_rows(
            "SELECT row, user_id, agent_id, run_id, created_at FROM memories WHERE id = ?", (memory_id,)
        )
        _, dims = (yield from read_embedding_space()) or ("", 0)
        at = relation.effective_at or created_at
        writer = GraphWriter(self._dialect, scope_from_ids(*ids), at, dims, "invalidate")
        if lost is None:
            yield from writer.apply([relation], dict.fromkeys(relation.change_indexes, row), ())
        else:
            yield from writer.restore_relation(lost.row, relation)

    @write_method
    def remove_orphan(self, lost: OrphanedRelation) -> Steps[None]:
        yield from self._dialect.lock_all()
        columns = {"edge_vectors": "row", "evidence": "edge", "edge_messages": "edge", "edges": "row"}
        for table, column in columns.items():
            yield from execute(f"DELETE FROM {table} WHERE {column} = ?", (lost.row,))
        yield from begin_epoch()  # projections may contain it, and there is no tombstone for it

    # --- statistics --------------------------------------------------------------------------------------------------

    def list_partitions(self, table: VectorTable) -> list[Scope]:
        sql = (
            f"SELECT DISTINCT user_id, NULL, NULL FROM {table} WHERE user_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, agent_id, NULL FROM {table}"
            " WHERE user_id IS NULL AND agent_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, NULL, run_id FROM {table} WHERE user_id IS NULL AND agent_id IS NULL"
        )
        tables = self._tables
        return [Scope.from_stored(*row) for row in tables.fetch_rows(sql)]

    def list_addresses(self, table: VectorTable) -> list[Scope]:
        tables = self._tables
        return [
            Scope.from_stored(**{axis.value: value})
            for axis in Axis
            for (value,) in tables.fetch_rows(
                f"SELECT DISTINCT {axis.value} FROM {table} WHERE {axis.value} IS NOT NULL"
            )
        ]

    def count_records(self, scope: Scope | None) -> dict[str, Any]:
        with self._snapshot() as tables:
            where, values = tables.dialect.in_scope(scope, "t")

            def one(columns: str, table: str, condition: str = "true") -> Row:
                return tables.fetch_rows(f"SELECT {columns} FROM {table} AS t WHERE {where} AND {condition}", values)[0]

            def count(table: str, condition: str = "true") -> int:
                return int(one("count(*)", table, condition)[0])

            users, agents, runs = one(
                ", ".join(f"count(DISTINCT t.{axis})" for axis in ("user_id", "agent_id", "run_id")), "memories"
            )
            first, last = one("min(t.created_at), max(t.created_at)", "memories")
            totals: dict[str, Any] = {
                "memories": count("memories"),
                "pinned": count("memories", "t.pinned"),
                "users": users,
                "agents": agents,
                "runs": runs,
                "oldest": first,
                "newest": last,
                "history": _count_events(tables, scope),
                "messages": count("messages"),
                "entities": count("nodes"),
                "relations": count("edges", "t.valid_to IS NULL"),
                "ended_relations": count("edges", "t.valid_to IS NOT NULL"),
                "jobs": {state: count("jobs", f"t.state = '{state}'") for state in ("waiting", "failed")},
            }
            if scope is None:
                name, dims = tables.run(read_embedding_space) or (None, None)
                totals["embedder"] = {"name": name, "dims": dims}
                [(totals["changes"], totals["schema"])] = tables.fetch_rows(
                    f"SELECT {self.last_seq_sql}, {self.schema_version_sql}"
                )
        return totals

    def count_jobs_by_state(self) -> dict[str, int]:
        leased = f"t.state = 'waiting' AND t.leased_until > {self._dialect.now}"
        state = f"CASE WHEN {leased} THEN 'leased' ELSE t.state END"
        with self._snapshot() as tables:
            rows = tables.fetch_rows(f"SELECT {state}, count(*) FROM jobs AS t GROUP BY 1")
        return {"waiting": 0, "leased": 0, "failed": 0} | {name: int(count) for name, count in rows}

    def count_memories_by_scope(self) -> dict[str, int]:
        kinds = ("user", "agent", "run")
        given = ", ".join(f"t.{kind}_id IS NOT NULL" for kind in kinds)
        with self._snapshot() as tables:
            rows = tables.fetch_rows(f"SELECT {given}, count(*) FROM memories AS t GROUP BY 1, 2, 3")
        return {
            "+".join(kind for kind, has in zip(kinds, flags, strict=True) if has): int(count) for *flags, count in rows
        }

    # --- adoption from other stores ----------------------------------------------------------------------------------

    @write_method
    def adopt_history(self, rows: Sequence[HistoryRow]) -> Steps[int]:
        yield from self._dialect.lock_all()
        added = list(dict.fromkeys(row.memory_id for row in rows if row.event == "ADD"))
        of_memories, memory_ids = self._dialect.among("memory_id", added, "text")
        adopted, row_ids = self._dialect.among("id", [row.id for row in rows], "text")
        yield from execute(
            f"DELETE FROM history WHERE {of_memories} AND event = 'ADD' AND NOT ({adopted})", memory_ids + row_ids
        )
        results = yield from execute_batch(*(self._history_statement(row) for row in rows))
        return sum(result.count for result in results)

    def _history_statement(self, row: HistoryRow) -> Statement:
        """Return the statement that inserts a row of history if its memory has none of this id."""
        raise NotImplementedError

    @write_method
    def adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> Steps[list[int]]:
        yield from self._dialect.lock_scope(scope)
        rows = yield from find_message_rows(self._dialect, [digest for digest, _ in messages], scope)
        # A conflict would use up a number: a repeated call would number its messages differently.
        new = {digest: message for digest, message in messages if digest not in rows}
        inserted = yield from insert_unique_messages(self._dialect, list(new.items()), scope, "")
        rows |= {digest: row for digest, (row, _) in zip(new, inserted, strict=True)}
        return [rows[digest] for digest, _ in messages]

    # --- export ------------------------------------------------------------------------------------------------------

    def iter_records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        with self._snapshot() as tables:
            yield from _read_memories(tables, scope)
            yield from _read_messages(tables, scope)
            yield from _read_nodes(tables, scope)
            yield from _read_relations(tables, scope)
            yield from _read_deleted_history(tables, scope)


# --- problems ---------------------------------------------------------------------------------------------------


def _check_orphans(tables: TableReader) -> Iterator[StoreIssue]:
    for table, condition in ORPHAN_CONDITIONS.items():
        [(count,)] = tables.fetch_rows(f"SELECT count(*) FROM {table} WHERE {condition}")
        if count:
            yield StoreIssue("stray", f"{count} rows of {table} refer to missing rows", table)


# --- everything, as JSON -----------------------------------------------------------------------------------------

_ID_COLUMNS = ("user_id", "agent_id", "run_id")
_MEMORY_COLUMNS = ("hash", "metadata", "actor_id", "role", "memory_type", "created_at", "updated_at", "valid_from")
_FLAG_COLUMNS = ("expiration_date", "pinned", "useful", "useless", "trust")
_RELATION_COLUMNS = ("weight", "valid_from", "valid_to", "invalidated_at")


def _read_memories(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _qualified_columns(*_ID_COLUMNS, *_MEMORY_COLUMNS, *_FLAG_COLUMNS, id="t.id", memory="t.text")
    for page in _read_pages(tables, columns, "memories AS t", scope):
        history = _read_history(tables, [one["id"] for _, one in page])
        messages = _read_grouped(tables, "memory", "message", "sources", [row for row, _ in page])
        for row, one in page:
            one |= {"metadata": tables.dialect.from_json(one["metadata"]), "pinned": bool(one["pinned"])}
            one["trust"] = trust_name(Trust(one["trust"]))
            yield {"kind": "memory", **one, "history": history.get(one["id"], []), "messages": messages.get(row, [])}


def _read_messages(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _qualified_columns(
        *_ID_COLUMNS, "role", "content", "name", "metadata", "created_at", "digest", "source", "trust", id="t.row"
    )
    for page in _read_pages(tables, columns, "messages AS t", scope):
        for _, one in page:
            one |= {"metadata": tables.dialect.from_json(one["metadata"]), "digest": bytes(one["digest"]).hex()}
            one["trust"] = trust_name(Trust(one["trust"]))
            yield {"kind": "message", **one}


def _read_nodes(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    for page in _read_pages(tables, _qualified_columns(*_ID_COLUMNS, "name", "type", id="t.row"), "nodes AS t", scope):
        for _, one in page:
            yield {"kind": "entity", **one}


def _read_relations(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    ends = {"source": "s.name", "relationship": "t.relationship", "destination": "d.name"}
    ends |= {"source_id": "t.source", "destination_id": "t.destination"}
    columns = {**_qualified_columns(*_ID_COLUMNS, id="t.row"), **ends, **_qualified_columns(*_RELATION_COLUMNS)}
    for page in _read_pages(tables, columns, edges_with_nodes(tables.dialect, "t"), scope):
        rows = [row for row, _ in page]
        evidence = _read_evidence(tables, rows)
        messages = _read_grouped(tables, "t.row", "h.message", _edges_with_messages(tables), rows)
        for row, one in page:
            yield {"kind": "relation", **one, **evidence.get(row, _NO_EVIDENCE), "messages": messages.get(row, [])}


_NO_EVIDENCE: Mapping[str, list[str]] = {"evidence": [], "withdrawn": []}


def _read_evidence(tables: TableReader, edges: Sequence[int]) -> dict[int, dict[str, list[str]]]:
    """Return the ids of the memories that support each relation, and of those that did."""
    sql = (
        f"SELECT v.edge, m.id, v.withdrawn FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
        f" WHERE v.edge IN ({placeholders(edges)}) ORDER BY v.memory"
    )
    found: dict[int, dict[str, list[str]]] = {}
    for edge, memory, withdrawn in tables.fetch_rows(sql, edges):
        said = found.setdefault(edge, {"evidence": [], "withdrawn": []})
        said["withdrawn" if withdrawn else "evidence"].append(memory)
    return found


def _read_deleted_history(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    """Yield the history of deleted memories; within a scope, of those with a tombstone there."""
    where, values = "true", list[Any]()
    if scope is not None:
        where, values = tables.dialect.in_scope(scope, "g")
        where = f"h.memory_id IN (SELECT g.memory_id FROM tombstones AS g WHERE {where})"
    sql = (
        "SELECT DISTINCT h.memory_id FROM history AS h WHERE h.memory_id > ?"
        f" AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = h.memory_id) AND {where}"
        f" ORDER BY h.memory_id LIMIT {_PAGE_ROWS}"
    )
    last = ""
    while ids := [memory_id for (memory_id,) in tables.fetch_rows(sql, (last, *values))]:
        last = ids[-1]
        history = _read_history(tables, ids)
        for memory_id in ids:
            for row in history[memory_id]:
                yield {"kind": "history", **row}


def _read_history(tables: TableReader, memory_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    columns = ", ".join(HISTORY_COLUMNS)
    sql = f"SELECT {columns} FROM history WHERE memory_id IN ({placeholders(memory_ids)}) ORDER BY {tables.dialect.insertion_order}"  # noqa: E501
    found: dict[str, list[dict[str, Any]]] = {}
    for row in tables.fetch_rows(sql, memory_ids):
        entry = _without_nulls(HISTORY_COLUMNS, row)
        found.setdefault(entry["memory_id"], []).append({**entry, "is_deleted": bool(entry.get("is_deleted"))})
    return found


def _count_events(tables: TableReader, scope: Scope | None) -> dict[str, int]:
    """Return the number of changes of each kind, of the memories of a scope or of all."""
    where, values = tables.dialect.in_scope(scope, "t")
    those = f" WHERE memory_id IN (SELECT t.id FROM memories AS t WHERE {where})" if scope is not None else ""
    return dict(tables.fetch_rows(f"SELECT event, count(*) FROM history{those} GROUP BY event ORDER BY event", values))


# --- pages of rows -----------------------------------------------------------------------------------------------


def _read_pages(
    tables: TableReader, columns: Mapping[str, str], source: str, scope: Scope | None
) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Yield pages of a table's rows in a scope, in order: each row with its columns that are not NULL."""
    where, values = tables.dialect.in_scope(scope, "t")
    sql = (
        f"SELECT t.row, {', '.join(columns.values())} FROM {source}"
        f" WHERE {where} AND t.row > ? ORDER BY t.row LIMIT {_PAGE_ROWS}"
    )
    last = 0
    while page := tables.fetch_rows(sql, (*values, last)):
        last = page[-1][0]
        yield [(row, _without_nulls(columns, rest)) for row, *rest in page]


def _read_grouped(tables: TableReader, of: str, column: str, source: str, rows: Sequence[int]) -> dict[int, list[int]]:
    """Return for each row the values of a column of the rows that belong to it, ascending."""
    sql = f"SELECT {of}, {column} FROM {source} WHERE {of} IN ({placeholders(rows)}) ORDER BY {column}"
    found: dict[int, list[int]] = {}
    for row, value in tables.fetch_rows(sql, rows):
        found.setdefault(row, []).append(value)
    return found


def _edges_with_messages(tables: TableReader) -> str:
    """Return the SQL of relations with their source messages."""
    return f"edges AS t JOIN edge_messages AS h ON {tables.dialect.same_part('h', 't')}h.edge = t.row"


def _qualified_columns(*columns: str, **others: str) -> dict[str, str]:
    return {**others, **{column: f"t.{column}" for column in columns}}


def _without_nulls(columns: Iterable[str], values: Sequence[Any]) -> dict[str, Any]:
    return {column: value for column, value in zip(columns, values, strict=True) if value is not None}
