"""Looking after a truth kept in SQL tables, whichever database it is: all it holds, how much, and what is wrong.

Both databases have the same tables. What is written here once is read by either; in what they differ, a `TableReader`
tells. Putting right what is wrong is each store's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from mem0_core.domain.records import Axis, RelationChange, Scope, Triplet, entity_key
from mem0_core.interfaces.maintenance import OrphanedRelation, StoreIssue, VectorTable
from mem0_core.stores.sql.rows import chunks, placeholders
from mem0_core.stores.sqlite.schema import HISTORY_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LAST_SEQ_SQL", "ORPHAN_CONDITIONS", "VECTOR_TABLES", "SqlMaintenance", "TableReader"]

Row = tuple[Any, ...]

VECTOR_TABLES: dict[VectorTable, str] = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""Where the vectors of each table lie."""

_PAGE_ROWS = 500  # rows read at once

_TABLES_WITH_SEQ = ("memories", "tombstones", "nodes", "edges", "node_tombstones", "edge_tombstones")
LAST_SEQ_SQL = (
    "SELECT max(seq) FROM"
    f" ({' UNION ALL '.join(f'SELECT max(seq) AS seq FROM {table}' for table in _TABLES_WITH_SEQ)}) AS counted"
)
"""The number of the last change there is anything of."""


def _missing_condition(column: str, table: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {table} AS their WHERE their.row = {column})"


ORPHAN_CONDITIONS = {
    "vectors": _missing_condition("vectors.row", "memories"),
    "node_vectors": _missing_condition("node_vectors.row", "nodes"),
    "sources": _missing_condition("sources.message", "messages"),
    "edge_messages": _missing_condition("edge_messages.message", "messages"),
    "job_messages": f"({_missing_condition('job_messages.job', 'jobs')} OR {_missing_condition('job_messages.message', 'messages')})",  # noqa: E501
}
"""What is true of rows that refer to what is not there. (Evidence may: it outlives its memory.)"""


class TableReader(Protocol):
    """The tables of a truth as one connection reads them. Every method raises StoreError when the database fails.

    Attributes:
        place: the column of `history` that grows in the order in which it was written.
        counter: SQL of the number that the last change took.
        version: SQL of the version of the tables.
        misshapen: SQL that is true of a vector ``v.vector`` that has not so many dims; the one placeholder is for them.
    """

    history_order_column: str
    last_seq_sql: str
    schema_version_sql: str
    wrong_dims_condition: str

    def fetch_rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of a statement, whose placeholders are question marks."""
        ...

    def scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        """What is true of the rows of a scope, narrower ones included, and its values."""
        ...

    def exact_scope_condition(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        """What is true of the rows of just this scope, and its values."""
        ...

    def same_partition_condition(self, one: str, other: str) -> str:
        """What holds of rows of two tables that belong together besides, ending in AND; empty for nothing."""
        ...

    def read_json(self, text: str) -> dict[str, Any]: ...

    def vector(self, stored: Any) -> NDArray[np.float32]: ...


class SqlMaintenance:
    """What `StoreMaintenance` asks of a truth and both databases answer alike.

    Args:
        now: the tables as they are at each statement.
        at_one_moment: the tables as they are when they are opened.
    """

    def __init__(
        self,
        open_tables: Callable[[], AbstractContextManager[TableReader]],
        snapshot: Callable[[], AbstractContextManager[TableReader]],
    ) -> None:
        self._open_tables = open_tables
        self._open_snapshot = snapshot

    # --- what is wrong -----------------------------------------------------------------------------------------------

    def find_issues(self) -> list[StoreIssue]:
        with self._open_snapshot() as tables:  # or what is written meanwhile would look half-written
            return [*_check_counter(tables), *_check_vectors(tables), *_check_orphans(tables)]

    def embedded_texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        with self._open_tables() as tables:
            for page in chunks(rows):
                among = f"t.row IN ({placeholders(page)})"
                if table == "edges":
                    sql = f"SELECT t.row, s.name, t.relationship, d.name FROM {_edges_with_nodes(tables)} WHERE {among}"
                    found += [(row, Triplet(*parts).sentence) for row, *parts in tables.fetch_rows(sql, page)]
                else:
                    column = "text" if table == "memories" else "name"
                    sql = f"SELECT t.row, t.{column} FROM {table} AS t WHERE {among}"
                    found += [(row, text) for row, text in tables.fetch_rows(sql, page)]
        return found

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
        with self._open_tables() as tables:
            for (row,) in tables.fetch_rows(gone):
                stored = tables.fetch_rows("SELECT vector FROM edge_vectors WHERE row = ?", (row,))
                memories = tuple(memory_id for (memory_id,) in tables.fetch_rows(says, (row,)))
                found.append(OrphanedRelation(row, tables.vector(stored[0][0]) if stored else None, memories))
        return found

    def has_merges(self) -> bool:
        with self._open_tables() as tables:
            return bool(tables.fetch_rows("SELECT 1 FROM aliases WHERE standing LIMIT 1"))

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        triplet = relation.triplet
        with self._open_tables() as tables:
            where, values = tables.exact_scope_condition(scope, "t")
            sql = (
                f"SELECT 1 FROM {_edges_with_nodes(tables)} WHERE {where} AND t.relationship = ?"
                " AND (s.row = ? OR s.key = ?) AND (d.row = ? OR d.key = ?) LIMIT 1"
            )
            # 0 is the row of no node
            source = (relation.source_node or 0, entity_key(triplet.source))
            destination = (relation.destination_node or 0, entity_key(triplet.destination))
            return bool(tables.fetch_rows(sql, (*values, triplet.relationship, *source, *destination)))

    # --- sums --------------------------------------------------------------------------------------------------------

    def list_partitions(self, table: VectorTable) -> list[Scope]:
        sql = (
            f"SELECT DISTINCT user_id, NULL, NULL FROM {table} WHERE user_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, agent_id, NULL FROM {table}"
            " WHERE user_id IS NULL AND agent_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, NULL, run_id FROM {table} WHERE user_id IS NULL AND agent_id IS NULL"
        )
        with self._open_tables() as tables:
            return [Scope(*row) for row in tables.fetch_rows(sql)]

    def list_addresses(self, table: VectorTable) -> list[Scope]:
        with self._open_tables() as tables:
            return [
                Scope(**{axis.value: value})
                for axis in Axis
                for (value,) in tables.fetch_rows(
                    f"SELECT DISTINCT {axis.value} FROM {table} WHERE {axis.value} IS NOT NULL"
                )
            ]

    def count_records(self, scope: Scope | None) -> dict[str, Any]:
        with self._open_snapshot() as tables:
            where, values = _scope_condition(tables, scope)

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
                name, dims = _read_embedding_space(tables) or (None, None)
                totals["embedder"] = {"name": name, "dims": dims}
                [(totals["changes"], totals["schema"])] = tables.fetch_rows(
                    f"SELECT {tables.last_seq_sql}, {tables.schema_version_sql}"
                )
        return totals

    # --- everything --------------------------------------------------------------------------------------------------

    def iter_records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        with self._open_snapshot() as tables:
            yield from _read_memories(tables, scope)
            yield from _read_messages(tables, scope)
            yield from _read_nodes(tables, scope)
            yield from _read_relations(tables, scope)
            yield from _read_deleted_history(tables, scope)


# --- what is wrong -----------------------------------------------------------------------------------------------


def _check_counter(tables: TableReader) -> Iterator[StoreIssue]:
    [(counted, last)] = tables.fetch_rows(f"SELECT {tables.last_seq_sql}, ({LAST_SEQ_SQL})")
    if (last or 0) > counted:
        yield StoreIssue("counter", f"the counter of changes says {counted}, the last change is {last}")


def _check_vectors(tables: TableReader) -> Iterator[StoreIssue]:
    space = _read_embedding_space(tables)
    for table, vectors in VECTOR_TABLES.items():
        sql = (
            f"SELECT t.row FROM {table} AS t LEFT JOIN {vectors} AS v ON {tables.same_partition_condition('v', 't')} v.row = t.row"  # noqa: E501
            f" WHERE v.vector IS NULL OR {tables.wrong_dims_condition} ORDER BY t.row"
        )
        if rows := tuple(row for (row,) in tables.fetch_rows(sql, (space[1] if space else 0,))):
            yield StoreIssue("vectorless", f"{len(rows)} {table} have no vector, or one of another length", table, rows)


def _check_orphans(tables: TableReader) -> Iterator[StoreIssue]:
    for table, condition in ORPHAN_CONDITIONS.items():
        [(count,)] = tables.fetch_rows(f"SELECT count(*) FROM {table} WHERE {condition}")
        if count:
            yield StoreIssue("stray", f"{count} rows of {table} refer to what is not there", table)


def _read_embedding_space(tables: TableReader) -> tuple[str, int] | None:
    found = tables.fetch_rows("SELECT value FROM meta WHERE key = 'space'")
    return tuple(json.loads(found[0][0])) if found else None


# --- everything, as JSON -----------------------------------------------------------------------------------------

_ID_COLUMNS = ("user_id", "agent_id", "run_id")
_MEMORY_COLUMNS = ("hash", "metadata", "actor_id", "role", "memory_type", "created_at", "updated_at", "valid_from")
_RELATION_COLUMNS = ("weight", "valid_from", "valid_to", "invalidated_at")


def _read_memories(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _qualified_columns(
        *_ID_COLUMNS, *_MEMORY_COLUMNS, "expiration_date", "pinned", id="t.id", memory="t.text"
    )
    for page in _read_pages(tables, columns, "memories AS t", scope):
        history = _read_history(tables, [one["id"] for _, one in page])
        heard = _read_grouped(tables, "memory", "message", "sources", [row for row, _ in page])
        for row, one in page:
            one |= {"metadata": tables.read_json(one["metadata"]), "pinned": bool(one["pinned"])}
            yield {"kind": "memory", **one, "history": history.get(one["id"], []), "messages": heard.get(row, [])}


def _read_messages(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _qualified_columns(
        *_ID_COLUMNS, "role", "content", "name", "metadata", "created_at", "digest", id="t.row"
    )
    for page in _read_pages(tables, columns, "messages AS t", scope):
        for _, one in page:
            one |= {"metadata": tables.read_json(one["metadata"]), "digest": bytes(one["digest"]).hex()}
            yield {"kind": "message", **one}


def _read_nodes(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    for page in _read_pages(tables, _qualified_columns(*_ID_COLUMNS, "name", "type", id="t.row"), "nodes AS t", scope):
        for _, one in page:
            yield {"kind": "entity", **one}


def _read_relations(tables: TableReader, scope: Scope | None) -> Iterator[dict[str, Any]]:
    ends = {"source": "s.name", "relationship": "t.relationship", "destination": "d.name"}
    ends |= {"source_id": "t.source", "destination_id": "t.destination"}
    columns = {**_qualified_columns(*_ID_COLUMNS, id="t.row"), **ends, **_qualified_columns(*_RELATION_COLUMNS)}
    for page in _read_pages(tables, columns, _edges_with_nodes(tables), scope):
        rows = [row for row, _ in page]
        said = _read_evidence(tables, rows)
        heard = _read_grouped(tables, "t.row", "h.message", _edges_with_messages(tables), rows)
        for row, one in page:
            yield {"kind": "relation", **one, **said.get(row, _NO_EVIDENCE), "messages": heard.get(row, [])}


_NO_EVIDENCE: Mapping[str, list[str]] = {"evidence": [], "withdrawn": []}


def _read_evidence(tables: TableReader, edges: Sequence[int]) -> dict[int, dict[str, list[str]]]:
    """The ids of the memories that say a relation, and of those that once did."""
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
    """The history of memories that are gone; within a scope, of those that have a tombstone there."""
    where, values = "true", list[Any]()
    if scope is not None:
        where, values = tables.scope_condition(scope, "g")
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
    sql = f"SELECT {columns} FROM history WHERE memory_id IN ({placeholders(memory_ids)}) ORDER BY {tables.history_order_column}"  # noqa: E501
    found: dict[str, list[dict[str, Any]]] = {}
    for row in tables.fetch_rows(sql, memory_ids):
        entry = _without_nulls(HISTORY_COLUMNS, row)
        found.setdefault(entry["memory_id"], []).append({**entry, "is_deleted": bool(entry.get("is_deleted"))})
    return found


def _count_events(tables: TableReader, scope: Scope | None) -> dict[str, int]:
    """How many changes of each kind there were, of everybody, or of the memories that a scope has."""
    where, values = _scope_condition(tables, scope)
    those = f" WHERE memory_id IN (SELECT t.id FROM memories AS t WHERE {where})" if scope is not None else ""
    return dict(tables.fetch_rows(f"SELECT event, count(*) FROM history{those} GROUP BY event ORDER BY event", values))


# --- pages of rows -----------------------------------------------------------------------------------------------


def _read_pages(
    tables: TableReader, columns: Mapping[str, str], source: str, scope: Scope | None
) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """What a scope has in a table, by its rows, in their order: pages of rows and their columns that are not NULL."""
    where, values = _scope_condition(tables, scope)
    sql = (
        f"SELECT t.row, {', '.join(columns.values())} FROM {source}"
        f" WHERE {where} AND t.row > ? ORDER BY t.row LIMIT {_PAGE_ROWS}"
    )
    last = 0
    while page := tables.fetch_rows(sql, (*values, last)):
        last = page[-1][0]
        yield [(row, _without_nulls(columns, rest)) for row, *rest in page]


def _read_grouped(tables: TableReader, of: str, column: str, source: str, rows: Sequence[int]) -> dict[int, list[int]]:
    """For each row the values of a column of what belongs to it, ascending."""
    sql = f"SELECT {of}, {column} FROM {source} WHERE {of} IN ({placeholders(rows)}) ORDER BY {column}"
    found: dict[int, list[int]] = {}
    for row, value in tables.fetch_rows(sql, rows):
        found.setdefault(row, []).append(value)
    return found


def _scope_condition(tables: TableReader, scope: Scope | None) -> tuple[str, list[Any]]:
    return ("true", []) if scope is None else tables.scope_condition(scope, "t")


def _edges_with_nodes(tables: TableReader) -> str:
    """Relations with the nodes at their ends."""
    return (
        f"edges AS t JOIN nodes AS s ON {tables.same_partition_condition('s', 't')} s.row = t.source"
        f" JOIN nodes AS d ON {tables.same_partition_condition('d', 't')} d.row = t.destination"
    )


def _edges_with_messages(tables: TableReader) -> str:
    """Relations with the messages they came from."""
    return f"edges AS t JOIN edge_messages AS h ON {tables.same_partition_condition('h', 't')} h.edge = t.row"


def _qualified_columns(*columns: str, **others: str) -> dict[str, str]:
    return {**others, **{column: f"t.{column}" for column in columns}}


def _without_nulls(columns: Iterable[str], values: Sequence[Any]) -> dict[str, Any]:
    return {column: value for column, value in zip(columns, values, strict=True) if value is not None}
