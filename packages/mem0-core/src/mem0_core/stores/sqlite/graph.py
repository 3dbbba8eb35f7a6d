"""The graph in the SQLite truth: its tables changed within the store's transaction, and read for everybody else."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.domain.records import DateRange, Event, Node, Relation, RelationChange, Scope, drops_mention, entity_key
from mem0_core.interfaces import ChangePosition, GraphChanges, GraphDelta, OnConflict, VectorSource
from mem0_core.stores.sql.rows import node_from_row, relation_from_row
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    chunks,
    exact_scope_values,
    first_column,
    from_blob,
    limit_sql,
    placeholders,
    reserve_seqs,
    scope_ids,
    scope_sql,
    scope_sql_unindexed,
    stack_vectors,
    to_blob,
)
from mem0_core.stores.sqlite.vectors import ConnectionFactory, TableVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "GraphWriter",
    "SQLiteGraph",
    "delete_with_tombstones",
    "erase_evidence",
    "erase_graph",
    "resolve_node_alias",
    "resolve_relationship_alias",
]

_NODE_COLUMNS = "row, user_id, agent_id, run_id, name, type"
_RELATION_COLUMNS = (
    "e.row, e.user_id, e.agent_id, e.run_id, s.name, e.relationship, d.name, e.weight, e.valid_from, e.valid_to,"
    " e.invalidated_at, e.source, e.destination"
)
_HAS_DAYS = "(t.day_first IS NOT NULL OR t.day_last IS NOT NULL)"
_EVENT_DAYS = f"FROM evidence AS t WHERE t.edge = edges.row AND NOT t.withdrawn AND {_HAS_DAYS}"
_EDGES_WITH_NODES = "edges AS e JOIN nodes AS s ON s.row = e.source JOIN nodes AS d ON d.row = e.destination"


class SQLiteGraph:
    """The reading side: a `GraphStore`."""

    inline = True  # see `flow`

    def __init__(self, read: ConnectionFactory) -> None:
        self._read = read
        self.node_vectors: VectorSource = TableVectors(read, "nodes", "node_vectors", "node_tombstones")
        self.relation_vectors: VectorSource = TableVectors(
            read, "edges", "edge_vectors", "edge_tombstones", live_condition="valid_to IS NULL"
        )

    def store_id(self) -> str:
        with self._read() as db:
            return str(db.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()[0])

    def relations(
        self, scope: Scope, *, as_of: str | None = None, include_ended: bool = False, limit: int | None = None
    ) -> list[Relation]:
        where, values = scope_sql(scope)
        held, times = ("1", []) if include_ended and as_of is None else _validity_condition(as_of)
        scoped = " AND ".join(f"e.{condition}" for condition in where.split(" AND "))
        tail = f"WHERE {scoped} AND {held} ORDER BY e.valid_from, e.row LIMIT ?"
        with self._read() as db:
            return _relations(db, tail, (*values, *times, limit_sql(limit)))

    def relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, with_evidence: bool = True
    ) -> dict[int, Relation]:
        scoped = scope_sql_unindexed(scope).replace("+", "+e.")
        found: dict[int, Relation] = {}
        with self._read() as db:
            for chunk in chunks(rows):
                tail = f"WHERE e.row IN ({placeholders(chunk)}) AND {scoped}"
                some = _relations(db, tail, (*chunk, *scope.ids.values()), evidence=with_evidence)
                found |= {relation.row: relation for relation in some}
        return found

    def nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, Node]:
        found: dict[int, Node] = {}
        with self._read() as db:
            for chunk in chunks(rows):
                sql = f"SELECT {_NODE_COLUMNS} FROM nodes WHERE row IN ({placeholders(chunk)}) AND {scope_sql_unindexed(scope)}"  # noqa: E501
                found |= {row[0]: node_from_row(row) for row in db.execute(sql, (*chunk, *scope.ids.values()))}
        return found

    def nodes_by_names(self, scope: Scope, names: Sequence[str]) -> dict[bytes, tuple[Node, NDArray[np.float32]]]:
        keys = [entity_key(name) for name in names]
        found: dict[bytes, tuple[Node, NDArray[np.float32]]] = {}
        with self._read() as db:
            for chunk in chunks(keys):
                sql = (
                    f"SELECT {_NODE_COLUMNS}, key, vector FROM nodes JOIN node_vectors USING (row)"
                    f" WHERE {EXACT_SCOPE_CONDITION} AND key IN ({placeholders(chunk)})"
                )
                for row in db.execute(sql, (*exact_scope_values(scope), *chunk)):
                    found[row[-2]] = node_from_row(row), from_blob(row[-1])
                gone = f"kind = 'entity' AND standing AND key IN ({placeholders(chunk)})"
                renamed = (
                    "SELECT n.row, n.user_id, n.agent_id, n.run_id, n.name, n.type, a.key, vector"
                    f" FROM (SELECT merge, key FROM aliases WHERE {EXACT_SCOPE_CONDITION} AND {gone}) AS a"
                    " JOIN merges AS m ON m.row = a.merge JOIN nodes AS n ON n.row = m.node"
                    " JOIN node_vectors AS v ON v.row = n.row"
                )
                for row in db.execute(renamed, (*exact_scope_values(scope), *chunk)):
                    found[row[-2]] = node_from_row(row), from_blob(row[-1])
        return found

    def incident_relation_rows(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> dict[int, list[int]]:
        held, times = _validity_condition(as_of)
        scoped = scope_sql_unindexed(scope).replace("+", "+e.")
        one_way = (
            f"SELECT * FROM (SELECT e.row FROM edges AS e WHERE e.{{end}} = ? AND {scoped} AND {held}"
            " ORDER BY e.row DESC LIMIT ?)"
        )
        sql = f"{one_way.format(end='source')} UNION {one_way.format(end='destination')} ORDER BY 1 DESC LIMIT ?"
        conditions = (*scope.ids.values(), *times, limit)
        with self._read() as db:
            return {
                node: [row for (row,) in db.execute(sql, (node, *conditions, node, *conditions, limit))]
                for node in nodes
            }

    def valid_relation_rows(self, rows: Sequence[int], *, as_of: str | None = None) -> set[int]:
        held, times = _validity_condition(as_of)
        found: set[int] = set()
        with self._read() as db:
            for chunk in chunks(rows):
                sql = f"SELECT e.row FROM edges AS e WHERE e.row IN ({placeholders(chunk)}) AND {held}"
                found.update(row for (row,) in db.execute(sql, (*chunk, *times)))
        return found

    def supporting_memory_rows(self, rows: Sequence[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {row: [] for row in rows}
        with self._read() as db:
            for chunk in chunks(rows):
                sql = (
                    "SELECT v.edge, v.memory FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
                    f" WHERE v.edge IN ({placeholders(chunk)}) AND NOT v.withdrawn"
                )
                for edge, memory in db.execute(sql, chunk):
                    found[edge].append(memory)
        return found

    def event_dates(self, memories: Sequence[int]) -> dict[int, list[DateRange]]:
        found: dict[int, list[DateRange]] = {}
        with self._read() as db:
            for chunk in chunks(memories):
                sql = (
                    "SELECT DISTINCT v.memory, t.day_first, t.day_last"
                    " FROM evidence AS v JOIN evidence AS t USING (edge)"
                    f" WHERE v.memory IN ({placeholders(chunk)}) AND NOT v.withdrawn AND NOT t.withdrawn AND {_HAS_DAYS}"  # noqa: E501
                )
                for memory, *days in db.execute(sql, chunk):
                    found.setdefault(memory, []).append(DateRange(*days))
        return found

    def ended_relation_vectors(self, scope: Scope, *, as_of: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        where, values = scope_sql(scope)
        sql = (
            f"SELECT row, vector FROM edges JOIN edge_vectors USING (row) WHERE {where}"
            " AND valid_to > ? AND valid_from <= ?"
        )
        with self._read() as db:
            rows = db.execute(sql, (*values, as_of, as_of)).fetchall()
        return first_column(rows), stack_vectors([blob for _, blob in rows])

    def position(self) -> ChangePosition:
        with self._read() as db:
            return _position(db)

    def delta_since(self, scope: Scope, *, after: int = 0) -> GraphDelta:
        where, values = scope_sql(scope)
        if after:  # few rows of many: by the index of what changed last, whosever it is
            where, values = f"{scope_sql_unindexed(scope)} AND changed > ?", [*values, after]
        edge = (
            "row, source, relationship, destination, weight, valid_from, valid_to,"
            f" (SELECT min(day_first) {_EVENT_DAYS}), (SELECT max(day_last) {_EVENT_DAYS})"
        )
        with self._read() as db, _open_snapshot(db):
            # The plus signs keep SQLite from walking all rows in their order.
            node = "row, user_id, key, name, type"
            nodes = db.execute(f"SELECT {node} FROM nodes WHERE {where} ORDER BY +row", values).fetchall()
            edges = db.execute(f"SELECT {edge} FROM edges WHERE {where} ORDER BY +row", values).fetchall()
            scoped, ids = scope_sql(scope)
            erased = f"SELECT row FROM edge_tombstones WHERE {scoped} AND erased AND seq > ? ORDER BY seq"
            removed = [row for (row,) in db.execute(erased, (*ids, after))] if after else []
            return GraphDelta(_position(db), nodes, edges, removed)

    def changes(self, *, after: int = 0, limit: int = 500) -> GraphChanges:
        with self._read() as db, _open_snapshot(db):
            nodes = db.execute(
                f"SELECT {_NODE_COLUMNS}, changed, vector FROM nodes JOIN node_vectors USING (row)"
                " WHERE changed > ? ORDER BY changed LIMIT ?",
                (after, limit),
            ).fetchall()
            edges = db.execute(
                "SELECT row, changed, vector FROM edges JOIN edge_vectors USING (row)"
                " WHERE changed > ? ORDER BY changed LIMIT ?",
                (after, limit),
            ).fetchall()
            full = [page[-1][-2] for page in (nodes, edges) if len(page) == limit]
            upto = min(full) if full else _position(db).seq
            nodes = [row for row in nodes if row[-2] <= upto]
            edges = [row for row in edges if row[-2] <= upto]
            found = {relation.row: relation for relation in _select_edges(db, [row for row, _, _ in edges])}
            gone = [
                tuple(row for (row,) in db.execute(f"{sql} AND seq > ? AND seq <= ? ORDER BY seq", (after, upto)))
                for sql in (
                    "SELECT row FROM node_tombstones WHERE 1",
                    "SELECT row FROM edge_tombstones WHERE erased",
                )
            ]
        return GraphChanges(
            nodes=tuple((node_from_row(row), from_blob(row[-1])) for row in nodes),
            relations=tuple((found[row], from_blob(blob)) for row, _, blob in edges),
            removed_nodes=gone[0],
            removed_relations=gone[1],
            last_seq=upto,
            has_more=bool(full),
        )


@contextmanager
def _open_snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """What is read within comes from one state of the file, whoever writes meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


def _position(db: sqlite3.Connection) -> ChangePosition:
    epoch, *reached = db.execute(
        "SELECT (SELECT value FROM meta WHERE key = 'epoch'), (SELECT max(changed) FROM nodes),"
        " (SELECT max(changed) FROM edges), (SELECT max(seq) FROM node_tombstones),"
        " (SELECT max(seq) FROM edge_tombstones)"
    ).fetchone()
    return ChangePosition(epoch, max(seq or 0 for seq in reached))


def _validity_condition(as_of: str | None) -> tuple[str, list[Any]]:
    if as_of is None:
        return "e.valid_to IS NULL", []
    return "e.valid_from <= ? AND (e.valid_to IS NULL OR e.valid_to > ?)", [as_of, as_of]


def _relations(db: sqlite3.Connection, tail: str, values: Sequence[Any], *, evidence: bool = True) -> list[Relation]:
    rows = db.execute(f"SELECT {_RELATION_COLUMNS} FROM {_EDGES_WITH_NODES} {tail}", values).fetchall()
    edges = [row[0] for row in rows]
    memories, days = (_select_memories(db, edges), _select_days(db, edges)) if evidence else ({}, {})
    return [relation_from_row(row, memories.get(row[0], ()), days.get(row[0])) for row in rows]


def _select_edges(db: sqlite3.Connection, edges: Sequence[int]) -> list[Relation]:
    return [
        relation
        for chunk in chunks(edges)
        for relation in _relations(db, f"WHERE e.row IN ({placeholders(chunk)}) ORDER BY e.row", chunk)
    ]


def _select_memories(db: sqlite3.Connection, edges: Sequence[int]) -> dict[int, list[str]]:
    """The living memories that support each edge."""
    found: dict[int, list[str]] = {}
    for chunk in chunks(edges):
        sql = (
            "SELECT edge, id FROM evidence JOIN memories ON memories.row = evidence.memory"
            f" WHERE edge IN ({placeholders(chunk)}) AND NOT withdrawn ORDER BY memory"
        )
        for edge, memory_id in db.execute(sql, chunk):
            found.setdefault(edge, []).append(memory_id)
    return found


def _select_days(db: sqlite3.Connection, edges: Sequence[int]) -> dict[int, DateRange]:
    """From the first to the last of the days that each edge is told of, where it is told of any."""
    found: dict[int, DateRange] = {}
    for chunk in chunks(edges):
        sql = (
            f"SELECT edge, min(day_first), max(day_last) FROM evidence AS t WHERE edge IN ({placeholders(chunk)})"
            f" AND NOT withdrawn AND {_HAS_DAYS} GROUP BY edge"
        )
        found |= {edge: DateRange(*days) for edge, *days in db.execute(sql, chunk)}
    return found


# --- writing -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class GraphWriter:
    """Changes to the graph of one scope, within a transaction of the store's."""

    db: sqlite3.Connection
    scope: Scope
    at: str
    dims: int
    on_conflict: OnConflict

    def apply(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> list[RelationChange]:
        """Write a plan; `memories` and `messages` are the rows of the plan's positions.

        What is added comes first: a refined relation takes weight and evidence from the one it replaces.
        """
        applied = list(changes)
        for place in sorted(range(len(changes)), key=lambda place: changes[place].event is Event.DELETE):
            change = changes[place]
            if change.event is Event.ADD:
                told = change.event_dates or (None,) * len(change.change_indexes)
                named = zip(change.change_indexes, told, strict=True)
                support = [(memories[position], days) for position, days in named if position in memories]
                applied[place] = self._add(change, support, [messages[position] for position in change.message_indexes])
            elif change.relation_row is not None and not self._close_relation(change.relation_row, change.effective_at):
                applied[place] = dataclasses.replace(change, event=Event.NONE)
        return applied

    def withdraw(self, memory: int, before: str, after: str | None) -> list[RelationChange]:
        """A memory said `before` and now says `after` (None: it is gone): relations that nothing else says end."""
        sql = "SELECT edge FROM evidence WHERE memory = ? AND NOT withdrawn"
        supported = _select_edges(self.db, [edge for (edge,) in self.db.execute(sql, (memory,)).fetchall()])
        ended = []
        for relation in supported:
            if after is not None and not drops_mention(before, after, relation.triplet):
                continue
            self.db.execute("UPDATE evidence SET withdrawn = 1 WHERE edge = ? AND memory = ?", (relation.row, memory))
            self._bump_seq(relation.row)
            self.db.execute("UPDATE edges SET weight = max(1, weight - 1) WHERE row = ?", (relation.row,))
            standing = "SELECT 1 FROM evidence WHERE edge = ? AND NOT withdrawn"
            if not self.db.execute(standing, (relation.row,)).fetchone() and self._close_relation(relation.row):
                ended.append(RelationChange(Event.DELETE, relation.triplet, relation_row=relation.row))
        return ended

    def restore_relation(self, edge: int, change: RelationChange) -> None:
        """Write a relation that was removed by hand, or lost an end, under its number again, to the evidence it has."""
        source = self._resolve_node(change.source_node, change.triplet.source, change.types[0], change.vectors[0])
        destination = self._resolve_node(
            change.destination_node, change.triplet.destination, change.types[1], change.vectors[1]
        )
        relationship, at, seq = (
            change.triplet.relationship,
            change.effective_at or self.at,
            reserve_seqs(self.db, 1),
        )
        twin = "SELECT row FROM edges WHERE source = ? AND destination = ? AND relationship = ? AND valid_to IS NULL"
        found = self.db.execute(f"{twin} AND row <> ?", (source, destination, relationship, edge)).fetchone()
        if found:  # it was said again meanwhile
            self.db.execute("UPDATE OR IGNORE evidence SET edge = ? WHERE edge = ?", (found[0], edge))
            for table, column in (("edges", "row"), ("edge_vectors", "row"), ("evidence", "edge")):
                self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (edge,))
            self._bump_seq(found[0])
            return
        ended = None
        if self.db.execute("SELECT 1 FROM edge_tombstones WHERE row = ? AND NOT erased", (edge,)).fetchone():
            next_one = "SELECT min(valid_from) FROM edges WHERE source = ? AND relationship = ? AND valid_from > ?"
            ended = self.db.execute(next_one, (source, relationship, at)).fetchone()[0] or self.at
        (weight,) = self.db.execute(
            "SELECT max(1, count(*)) FROM evidence WHERE edge = ? AND NOT withdrawn", (edge,)
        ).fetchone()
        self.db.execute(
            "INSERT INTO edges (row, user_id, agent_id, run_id, source, relationship, destination, weight, valid_from,"
            " valid_to, seq, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE"
            " SET source = excluded.source, destination = excluded.destination, seq = excluded.seq,"
            " changed = excluded.changed",
            (edge, *scope_ids(self.scope), source, relationship, destination, weight, at, ended, seq, seq),
        )
        blob = to_blob(change.vectors[2], self.dims)
        self.db.execute("INSERT OR REPLACE INTO edge_vectors VALUES (?, ?)", (edge, blob))

    def withdraw_relations(self, memory: int) -> list[int]:
        """Take back all that a memory says of what holds, to be said anew by `apply`; returns the rows for
        `close_unsupported`."""
        sql = (
            "SELECT v.edge FROM evidence AS v JOIN edges AS e ON e.row = v.edge"
            " WHERE v.memory = ? AND NOT v.withdrawn AND e.valid_to IS NULL ORDER BY v.edge"
        )
        edges = [edge for (edge,) in self.db.execute(sql, (memory,)).fetchall()]
        for edge in edges:
            self.db.execute("UPDATE evidence SET withdrawn = 1 WHERE edge = ? AND memory = ?", (edge, memory))
            self.db.execute("UPDATE edges SET weight = weight - 1 WHERE row = ?", (edge,))
            self._bump_seq(edge)
        return edges

    def close_unsupported(self, withdrawn_rows: Sequence[int]) -> list[RelationChange]:
        """After a memory was taken back and said anew: what nothing says any longer ends."""
        self.db.executemany(
            "UPDATE edges SET weight = max(1, weight) WHERE row = ?", [(edge,) for edge in withdrawn_rows]
        )
        ended = []
        for relation in _select_edges(self.db, withdrawn_rows):
            standing = "SELECT 1 FROM evidence WHERE edge = ? AND NOT withdrawn"
            if not self.db.execute(standing, (relation.row,)).fetchone() and self._close_relation(relation.row):
                ended.append(RelationChange(Event.DELETE, relation.triplet, relation_row=relation.row))
        return ended

    def _add(
        self, change: RelationChange, memories: Iterable[tuple[int, DateRange | None]], messages: Iterable[int]
    ) -> RelationChange:
        source = self._resolve_node(change.source_node, change.triplet.source, change.types[0], change.vectors[0])
        destination = self._resolve_node(
            change.destination_node, change.triplet.destination, change.types[1], change.vectors[1]
        )
        relationship = resolve_relationship_alias(self.db, self.scope, change.triplet.relationship)
        seq = reserve_seqs(self.db, 1)
        raised = self.db.execute(
            "UPDATE edges SET weight = weight + 1, valid_from = min(valid_from, ?), changed = ?"
            " WHERE source = ? AND destination = ? AND relationship = ? AND valid_to IS NULL RETURNING row",
            (change.effective_at or self.at, seq, source, destination, relationship),
        ).fetchone()
        edge = raised[0] if raised else self._resolve_edge(change, source, relationship, destination, seq)
        if change.relation_row is not None:
            copied = (
                "INSERT OR IGNORE INTO evidence SELECT ?, memory, withdrawn, day_first, day_last FROM evidence"
                " WHERE edge = ?"
            )
            self.db.execute(copied, (edge, change.relation_row))
        self.db.executemany(
            "INSERT INTO evidence VALUES (?, ?, 0, ?, ?) ON CONFLICT DO UPDATE SET withdrawn = 0,"
            " day_first = excluded.day_first, day_last = excluded.day_last",
            [(edge, memory, days and days.first, days and days.last) for memory, days in memories],
        )
        self.db.executemany(
            "INSERT OR IGNORE INTO edge_messages VALUES (?, ?)", [(edge, message) for message in messages]
        )
        return dataclasses.replace(change, event=Event.NONE if raised else Event.ADD, vectors=(None, None, None))

    def _resolve_node(self, row: int | None, name: str, type: str, vector: Any) -> int:
        """The node that was found, if it is still there, else the one of this name, else a new one."""
        if row is not None:
            sql = f"SELECT row FROM nodes WHERE row = ? AND {EXACT_SCOPE_CONDITION}"
            if self.db.execute(sql, (row, *exact_scope_values(self.scope))).fetchone():
                return row
        key = entity_key(name)
        named = f"SELECT row, type FROM nodes WHERE {EXACT_SCOPE_CONDITION} AND key = ?"
        found = self.db.execute(named, (*exact_scope_values(self.scope), key)).fetchone()
        if found is None and (stayed := resolve_node_alias(self.db, self.scope, key)) is not None:
            return stayed
        if found and (found[1] or not type):
            return int(found[0])
        seq = reserve_seqs(self.db, 1)
        if found:
            self.db.execute("UPDATE nodes SET type = ?, changed = ? WHERE row = ?", (type, seq, found[0]))
            return int(found[0])
        blob = to_blob(vector, self.dims)
        (made,) = self.db.execute(
            "INSERT INTO nodes (user_id, agent_id, run_id, name, key, type, seq, changed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (*scope_ids(self.scope), name, key, type, seq, seq),
        ).fetchone()
        self.db.execute("INSERT INTO node_vectors VALUES (?, ?)", (made, blob))
        return int(made)

    def _resolve_edge(self, change: RelationChange, source: int, relationship: str, destination: int, seq: int) -> int:
        blob = to_blob(change.vectors[2], self.dims)
        (made,) = self.db.execute(
            "INSERT INTO edges (user_id, agent_id, run_id, source, relationship, destination, weight, valid_from,"
            " seq, changed) VALUES (?, ?, ?, ?, ?, ?, 1 + ifnull((SELECT weight FROM edges WHERE row = ?), 0), ?, ?, ?)"
            " RETURNING row",
            (
                *scope_ids(self.scope),
                source,
                relationship,
                destination,
                change.relation_row,
                change.effective_at or self.at,
                seq,
                seq,
            ),
        ).fetchone()
        self.db.execute("INSERT INTO edge_vectors VALUES (?, ?)", (made, blob))
        return int(made)

    def _close_relation(self, edge: int, at: str | None = None) -> bool:
        """Whether the relation still held."""
        if self.on_conflict == "delete":
            return bool(_erase_edges(self.db, [edge]))
        seq = reserve_seqs(self.db, 1)
        ended = self.db.execute(
            "UPDATE edges SET valid_to = max(valid_from, ?), invalidated_at = ?, changed = ?"
            " WHERE row = ? AND valid_to IS NULL RETURNING user_id, agent_id, run_id",
            (at or self.at, datetime.now(UTC).isoformat(), seq, edge),
        ).fetchone()
        if ended is None:
            return False
        self.db.execute("INSERT INTO edge_tombstones VALUES (?, ?, ?, ?, ?, 0)", (seq, edge, *ended))
        return True

    def _bump_seq(self, edge: int) -> None:
        self.db.execute("UPDATE edges SET changed = ? WHERE row = ?", (reserve_seqs(self.db, 1), edge))


# --- names that went (see sqlite_merges) -------------------------------------------------------------------------


def resolve_node_alias(db: sqlite3.Connection, scope: Scope, key: bytes) -> int | None:
    """The node that a name was merged into."""
    sql = (
        f"SELECT node FROM merges WHERE row = (SELECT merge FROM aliases WHERE {EXACT_SCOPE_CONDITION} AND kind = 'entity'"  # noqa: E501
        " AND key = ? AND standing)"
    )
    found = db.execute(sql, (*exact_scope_values(scope), key)).fetchone()
    return None if found is None else int(found[0])


def resolve_relationship_alias(db: sqlite3.Connection, scope: Scope, relationship: str) -> str:
    """What a relationship is called since it was merged, and that one was, ..."""
    sql = (
        f"SELECT name FROM merges WHERE row = (SELECT merge FROM aliases WHERE {EXACT_SCOPE_CONDITION} AND kind = 'relationship'"  # noqa: E501
        " AND key = ? AND standing)"
    )
    while found := db.execute(sql, (*exact_scope_values(scope), entity_key(relationship))).fetchone():
        relationship = str(found[0])
    return relationship


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_evidence(db: sqlite3.Connection, memory: int) -> None:
    """Before a memory and its messages are erased: relations that came from nothing else go with them."""
    supports = dict(db.execute("SELECT edge, withdrawn FROM evidence WHERE memory = ?", (memory,)).fetchall())
    supported = list(supports)
    heard = "SELECT edge FROM edge_messages WHERE message IN (SELECT message FROM sources WHERE memory = ?)"
    spoken = [edge for (edge,) in db.execute(heard, (memory,))]
    db.execute("DELETE FROM evidence WHERE memory = ?", (memory,))
    db.execute("DELETE FROM edge_messages WHERE message IN (SELECT message FROM sources WHERE memory = ?)", (memory,))
    gone = []
    for edge in dict.fromkeys([*supported, *spoken]):
        if db.execute("SELECT 1 FROM evidence WHERE edge = ?", (edge,)).fetchone():
            continue
        if edge in supported or not db.execute("SELECT 1 FROM edge_messages WHERE edge = ?", (edge,)).fetchone():
            gone.append(edge)
    _erase_edges(db, gone)
    seq = reserve_seqs(db, len(supported))
    lighter = "UPDATE edges SET weight = max(1, weight - ?), changed = ? WHERE row = ?"
    lost = [(0 if supports[edge] else 1, seq + place, edge) for place, edge in enumerate(supported)]
    db.executemany(lighter, lost)


def erase_graph(db: sqlite3.Connection, scope: Scope) -> None:
    """Erase every node and relation of a scope."""
    where, values = scope_sql(scope)
    _erase_edges(db, [edge for (edge,) in db.execute(f"SELECT row FROM edges WHERE {where}", values)])
    _erase_nodes(db, [node for (node,) in db.execute(f"SELECT row FROM nodes WHERE {where}", values)])


def _erase_edges(db: sqlite3.Connection, edges: Sequence[int]) -> int:
    """Remove relations, and the nodes that no relation is left to; returns how many relations there were."""
    ends: list[int] = []
    for edge in edges:
        found = db.execute("SELECT source, destination FROM edges WHERE row = ?", (edge,)).fetchone()
        ends += found or ()
    count = delete_with_tombstones(db, "edges", edges)
    linked = "SELECT 1 FROM edges WHERE source = ?1 UNION ALL SELECT 1 FROM edges WHERE destination = ?1 LIMIT 1"
    _erase_nodes(db, [node for node in dict.fromkeys(ends) if not db.execute(linked, (node,)).fetchone()])
    return count


def _erase_nodes(db: sqlite3.Connection, nodes: Sequence[int]) -> int:
    bygone = (
        "DELETE FROM merges WHERE row IN (SELECT a.merge FROM nodes AS n JOIN aliases AS a ON a.key = n.key"
        " AND a.user_id IS n.user_id AND a.agent_id IS n.agent_id AND a.run_id IS n.run_id"
        " WHERE n.row = ? AND a.kind = 'entity' AND NOT a.standing)"
    )
    db.executemany(bygone, [(node,) for node in nodes])  # what was taken back is on record while its names are
    return delete_with_tombstones(db, "nodes", nodes)


_INSERT_TOMBSTONE = {
    "edges": "INSERT INTO edge_tombstones VALUES (?, ?, ?, ?, ?, 1)",
    "nodes": "INSERT INTO node_tombstones VALUES (?, ?, ?, ?, ?)",
}


def delete_with_tombstones(db: sqlite3.Connection, table: Literal["edges", "nodes"], rows: Sequence[int]) -> int:
    """Delete rows, and tell projections by tombstones; returns how many there were."""
    seq, count = reserve_seqs(db, len(rows)), 0
    for offset, row in enumerate(rows):
        gone = db.execute(f"DELETE FROM {table} WHERE row = ? RETURNING user_id, agent_id, run_id", (row,)).fetchone()
        if gone:
            db.execute(_INSERT_TOMBSTONE[table], (seq + offset, row, *gone))
            count += 1
    return count
