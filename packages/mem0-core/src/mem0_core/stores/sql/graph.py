"""Graph of entities and relations: reading, and changes within a transaction of the store.

A change is planned in Python from a few statements, then written by batches. So PostgreSQL needs few round trips.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import DateRange, Event, Node, Relation, RelationChange, Scope, drops_mention, entity_key
from mem0_core.interfaces import ChangePosition, GraphChanges, GraphDelta, OnConflict, VectorSource
from mem0_core.stores.sql.dialect import Dialect, Engine
from mem0_core.stores.sql.rows import first_column, node_from_row, relation_from_row, scope_ids
from mem0_core.stores.sql.steps import (
    Statement,
    StepMethods,
    Steps,
    execute,
    execute_batch,
    execute_many,
    fetch_rows,
    insert_sql,
    read_method,
    snapshot_method,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "HAS_DAYS",
    "GraphWriter",
    "SqlGraph",
    "delete_edges",
    "delete_nodes",
    "erase_evidence",
    "erase_graph",
    "read_position",
    "resolve_relationship_aliases",
    "validity_condition",
]

_NODE_COLUMNS = "n.row, n.user_id, n.agent_id, n.run_id, n.name, n.type"
_RELATION_COLUMNS = (
    "e.row, e.user_id, e.agent_id, e.run_id, s.name, e.relationship, d.name, e.weight, e.valid_from, e.valid_to,"
    " e.invalidated_at, e.source, e.destination"
)
HAS_DAYS = "(t.day_first IS NOT NULL OR t.day_last IS NOT NULL)"


class SqlGraph(StepMethods):
    """A `GraphStore`, for reading. Relations are written by `GraphWriter`."""

    def __init__(self, db: Engine, node_vectors: VectorSource, relation_vectors: VectorSource) -> None:
        self._db = db
        self._dialect = db.dialect
        self.node_vectors = node_vectors
        self.relation_vectors = relation_vectors

    @read_method
    def store_id(self) -> Steps[str]:
        [(name,)] = yield from fetch_rows("SELECT value FROM meta WHERE key = 'identity'")
        return str(name)

    @read_method
    def relations(
        self, scope: Scope, *, as_of: str | None = None, include_ended: bool = False, limit: int | None = None
    ) -> Steps[list[Relation]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "e")
        if not include_ended or as_of is not None:
            valid, times = validity_condition(as_of)
            where, values = f"{where} AND {valid}", [*values, *times]
        tail = f"WHERE {where} ORDER BY e.valid_from, e.row LIMIT ?"
        return (yield from _select_relations(self._dialect, tail, [*values, self._dialect.limit(limit)]))

    @read_method
    def relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, with_evidence: bool = True
    ) -> Steps[dict[int, Relation]]:
        yield from self._dialect.set_scope(scope)
        among, listed = self._dialect.among("e.row", rows)
        where, values = self._dialect.in_scope(scope, "e", by_row=True)
        tail = f"WHERE {among} AND {where}"
        found = yield from _select_relations(self._dialect, tail, listed + values, with_evidence=with_evidence)
        return {relation.row: relation for relation in found}

    @read_method
    def nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> Steps[dict[int, Node]]:
        yield from self._dialect.set_scope(scope)
        among, listed = self._dialect.among("n.row", rows)
        where, values = self._dialect.in_scope(scope, "n", by_row=True)
        sql = f"SELECT {_NODE_COLUMNS} FROM nodes AS n WHERE {among} AND {where}"
        return {row[0]: node_from_row(row) for row in (yield from fetch_rows(sql, listed + values))}

    @read_method
    def nodes_by_names(
        self, scope: Scope, names: Sequence[str]
    ) -> Steps[dict[bytes, tuple[Node, NDArray[np.float32]]]]:
        dialect = self._dialect
        yield from dialect.set_scope(scope)
        keys = list({entity_key(name) for name in names})
        exact, exact_values = dialect.in_exact_scope(scope, "n")
        among, listed = dialect.among("n.key", keys, "bytea")
        vectors = f"JOIN node_vectors AS v ON {dialect.same_part('v', 'n')}v.row = n.row"
        named = f"SELECT {_NODE_COLUMNS}, n.key, v.vector FROM nodes AS n {vectors} WHERE {exact} AND {among}"
        aliases, alias_values = _alias_condition(dialect, scope, "entity", keys)
        merged = (
            f"SELECT {_NODE_COLUMNS}, a.key, v.vector FROM aliases AS a"
            f" JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
            f" JOIN nodes AS n ON {dialect.same_part('n', 'm')}n.row = m.node {vectors} WHERE {aliases}"
        )
        results = yield from execute_batch(Statement(named, exact_values + listed), Statement(merged, alias_values))
        found = [row for result in results for row in result.rows]
        stacked = dialect.stack_vectors([row[-1] for row in found])
        return {bytes(row[-2]): (node_from_row(row), vector) for row, vector in zip(found, stacked, strict=True)}

    @read_method
    def incident_relation_rows(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> Steps[dict[int, list[int]]]:
        yield from self._dialect.set_scope(scope)
        return (yield from self._select_incident([int(node) for node in dict.fromkeys(nodes)], scope, limit, as_of))

    def _select_incident(
        self, nodes: Sequence[int], scope: Scope, limit: int, as_of: str | None
    ) -> Steps[dict[int, list[int]]]:
        where, values = self._dialect.in_scope(scope, "e", by_row=True)
        valid, times = validity_condition(as_of)
        one_end = (
            f"SELECT * FROM (SELECT e.row FROM edges AS e WHERE e.{{end}} = ? AND {where} AND {valid}"
            " ORDER BY e.row DESC LIMIT ?)"
        )
        sql = f"{one_end.format(end='source')} UNION {one_end.format(end='destination')} ORDER BY 1 DESC LIMIT ?"
        conditions = (*values, *times, limit)
        statements = [Statement(sql, (node, *conditions, node, *conditions, limit)) for node in nodes]
        results = yield from execute_batch(*statements)
        return {node: [row for (row,) in result.rows] for node, result in zip(nodes, results, strict=True)}

    @read_method
    def valid_relation_rows(self, rows: Sequence[int], *, as_of: str | None = None) -> Steps[set[int]]:
        among, listed = self._dialect.among("e.row", rows)
        valid, times = validity_condition(as_of)
        found = yield from fetch_rows(f"SELECT e.row FROM edges AS e WHERE {among} AND {valid}", listed + times)
        return {row for (row,) in found}

    @read_method
    def supporting_memory_rows(self, rows: Sequence[int]) -> Steps[dict[int, list[int]]]:
        among, listed = self._dialect.among("v.edge", rows)
        sql = (
            "SELECT v.edge, v.memory FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            f" WHERE {among} AND NOT v.withdrawn ORDER BY v.edge, v.memory"
        )
        found: dict[int, list[int]] = {int(row): [] for row in rows}
        for edge, memory in (yield from fetch_rows(sql, listed)):
            found[edge].append(memory)
        return found

    @read_method
    def event_dates(self, memories: Sequence[int]) -> Steps[dict[int, list[DateRange]]]:
        among, listed = self._dialect.among("v.memory", memories)
        sql = (
            "SELECT DISTINCT v.memory, t.day_first, t.day_last FROM evidence AS v"
            f" JOIN evidence AS t ON {self._dialect.same_part('t', 'v')}t.edge = v.edge"
            f" WHERE {among} AND NOT v.withdrawn AND NOT t.withdrawn AND {HAS_DAYS}"
        )
        found: dict[int, list[DateRange]] = {}
        for memory, *days in (yield from fetch_rows(sql, listed)):
            found.setdefault(memory, []).append(DateRange(*days))
        return found

    @read_method
    def ended_relation_vectors(
        self, scope: Scope, *, as_of: str
    ) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "e")
        sql = (
            f"SELECT e.row, v.vector FROM edges AS e JOIN edge_vectors AS v ON {self._dialect.same_part('v', 'e')}"
            f"v.row = e.row WHERE {where} AND e.valid_to > ? AND e.valid_from <= ?"
        )
        found = yield from fetch_rows(sql, [*values, as_of, as_of])
        return first_column(found), self._dialect.stack_vectors([vector for _, vector in found])

    # --- changes for projections -------------------------------------------------------------------------------------

    @read_method
    def position(self) -> Steps[ChangePosition]:
        return (yield from read_position(self._dialect))

    @snapshot_method
    def delta_since(self, scope: Scope, *, after: int = 0) -> Steps[GraphDelta]:
        position = yield from read_position(self._dialect)
        scoped, ids = self._dialect.in_scope(scope, "e")
        where, values = scoped, ids
        if after:  # few rows of many, found by their change numbers and not by the scope
            where, values = self._dialect.in_scope(scope, "e", by_row=True)
            where, values = f"{where} AND e.changed > ?", [*values, after]
        days = (
            f"FROM evidence AS t WHERE {self._dialect.same_part('t', 'e')}t.edge = e.row"
            f" AND NOT t.withdrawn AND {HAS_DAYS}"
        )
        # The plus signs keep SQLite from reading all rows in their order.
        nodes, edges, erased = yield from execute_batch(
            Statement(
                f"SELECT e.row, e.user_id, e.key, e.name, e.type FROM nodes AS e WHERE {where} ORDER BY +e.row", values
            ),
            Statement(
                "SELECT e.row, e.source, e.relationship, e.destination, e.weight, e.valid_from, e.valid_to,"
                f" (SELECT min(t.day_first) {days}), (SELECT max(t.day_last) {days})"
                f" FROM edges AS e WHERE {where} ORDER BY +e.row",
                values,
            ),
            Statement(
                f"SELECT e.row FROM edge_tombstones AS e WHERE {scoped} AND e.erased AND e.seq > ? ORDER BY e.seq",
                [*ids, after],
            ),
        )
        removed = [row for (row,) in erased.rows] if after else []
        return GraphDelta(position, nodes.rows, edges.rows, removed)

    @read_method
    def changes(self, *, after: int = 0, limit: int = 500) -> Steps[GraphChanges]:
        # Several statements may read several states. A row that changes between them takes a number above `reached`,
        # so a later call returns it.
        dialect = self._dialect
        reached = (yield from read_position(dialect)).seq
        pages = [
            f"SELECT {columns}, v.vector, n.changed FROM {table} AS n"
            f" JOIN {vectors} AS v ON {dialect.same_part('v', 'n')}v.row = n.row"
            " WHERE n.changed > ? AND n.changed <= ? ORDER BY n.changed LIMIT ?"
            for columns, table, vectors in (
                (_NODE_COLUMNS, "nodes", "node_vectors"),
                ("n.row", "edges", "edge_vectors"),
            )
        ]
        results = yield from execute_batch(*(Statement(page, (after, reached, limit)) for page in pages))
        full = [result.rows[-1][-1] for result in results if len(result.rows) == limit]
        last = min(full) if full else reached
        nodes, edges = ([row for row in result.rows if row[-1] <= last] for result in results)
        selected = yield from _select_relations_by_rows(dialect, [row[0] for row in edges])
        relations = {relation.row: relation for relation in selected}
        edges = [row for row in edges if row[0] in relations]  # a relation erased in the meantime has a tombstone
        removed_nodes, removed_edges = yield from execute_batch(
            *(
                Statement(f"SELECT row FROM {table} seq > ? AND seq <= ? ORDER BY seq", (after, last))
                for table in ("node_tombstones WHERE", "edge_tombstones WHERE erased AND")
            )
        )
        node_vectors, edge_vectors = (dialect.stack_vectors([row[-2] for row in rows]) for rows in (nodes, edges))
        return GraphChanges(
            nodes=tuple((node_from_row(row), vector) for row, vector in zip(nodes, node_vectors, strict=True)),
            relations=tuple((relations[row[0]], vector) for row, vector in zip(edges, edge_vectors, strict=True)),
            removed_nodes=tuple(row for (row,) in removed_nodes.rows),
            removed_relations=tuple(row for (row,) in removed_edges.rows),
            last_seq=last,
            has_more=bool(full),
        )


def read_position(dialect: Dialect) -> Steps[ChangePosition]:
    """Return the position of the whole graph, up to which every change is visible."""
    visible = yield from dialect.safe_read_seq()
    columns = (("changed", "nodes"), ("changed", "edges"), ("seq", "node_tombstones"), ("seq", "edge_tombstones"))
    limits = [f" WHERE {number} <= ?" if visible is not None else "" for number, _ in columns]
    last = ", ".join(
        f"(SELECT max({number}) FROM {table}{limit})" for (number, table), limit in zip(columns, limits, strict=True)
    )
    values = [visible] * len(columns) if visible is not None else []
    [(epoch, *seqs)] = yield from fetch_rows(f"SELECT (SELECT value FROM meta WHERE key = 'epoch'), {last}", values)
    return ChangePosition(epoch, max(seq or 0 for seq in seqs))


def validity_condition(as_of: str | None) -> tuple[str, list[Any]]:
    """Return the condition of relations ``e`` that hold at `as_of`; None means now."""
    if as_of is None:
        return "e.valid_to IS NULL", []
    return "e.valid_from <= ? AND (e.valid_to IS NULL OR e.valid_to > ?)", [as_of, as_of]


def _select_relations(
    dialect: Dialect, tail: str, values: Sequence[Any], *, with_evidence: bool = True
) -> Steps[list[Relation]]:
    tables = (
        f"edges AS e JOIN nodes AS s ON {dialect.same_part('s', 'e')}s.row = e.source"
        f" JOIN nodes AS d ON {dialect.same_part('d', 'e')}d.row = e.destination"
    )
    rows = yield from fetch_rows(f"SELECT {_RELATION_COLUMNS} FROM {tables} {tail}", values)
    memories: dict[int, list[str]] = {}
    days: dict[int, DateRange] = {}
    if with_evidence and rows:
        memories, days = yield from _select_evidence(dialect, [row[0] for row in rows])
    return [relation_from_row(row, memories.get(row[0], ()), days.get(row[0])) for row in rows]


def _select_relations_by_rows(dialect: Dialect, edges: Sequence[int]) -> Steps[list[Relation]]:
    if not edges:
        return []
    among, listed = dialect.among("e.row", edges)
    return (yield from _select_relations(dialect, f"WHERE {among} ORDER BY e.row", listed))


def _select_evidence(
    dialect: Dialect, edges: Sequence[int]
) -> Steps[tuple[dict[int, list[str]], dict[int, DateRange]]]:
    """Return the ids of the memories that support each edge, and the span of the days that they name for it."""
    among, listed = dialect.among("t.edge", edges)
    support, spans = yield from execute_batch(
        Statement(
            "SELECT t.edge, m.id FROM evidence AS t JOIN memories AS m ON m.row = t.memory"
            f" WHERE {among} AND NOT t.withdrawn ORDER BY t.memory",
            listed,
        ),
        Statement(
            f"SELECT t.edge, min(t.day_first), max(t.day_last) FROM evidence AS t WHERE {among}"
            f" AND NOT t.withdrawn AND {HAS_DAYS} GROUP BY t.edge",
            listed,
        ),
    )
    memories: dict[int, list[str]] = {}
    for edge, memory_id in support.rows:
        memories.setdefault(edge, []).append(memory_id)
    return memories, {edge: DateRange(*days) for edge, *days in spans.rows}


# --- writing -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class _EdgeWrite:
    """A new relation, or a valid one that gains weight.

    Attributes:
        row: row of the relation.
        seq: number of the change.
        added_weight: weight of a new relation, or the weight added to an existing one.
        valid_from: time since when it holds.
        ends: source, relationship and destination of a new relation.
        change: change that brings a new relation; None for a relation that exists.
    """

    row: int
    seq: int
    added_weight: int
    valid_from: str
    ends: tuple[int, str, int] = (0, "", 0)
    change: RelationChange | None = None


@dataclasses.dataclass(slots=True)
class _Endpoint:
    """One end of an added relation: row of the node that was found for it, if any, and data of a new node."""

    row: int | None
    name: str
    key: bytes
    type: str
    vector: Any


@dataclasses.dataclass(frozen=True, slots=True)
class GraphWriter:
    """Changes to the graph of one scope, within a write transaction that holds its partition.

    Attributes:
        dialect: SQL of the database.
        scope: exactly the scope of new nodes and relations.
        at: ISO 8601 time of changes that name none.
        dims: length of the vectors.
        on_conflict: ``"invalidate"`` ends relations that no longer hold, ``"delete"`` erases them.
    """

    dialect: Dialect
    scope: Scope
    at: str
    dims: int
    on_conflict: OnConflict

    def apply(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        """Write a plan and return the changes that took place.

        Additions come first: a refined relation takes weight and evidence from the one it replaces.

        Args:
            changes: the plan.
            memories: rows of memories by their position in the plan of memories.
            messages: rows of the messages of the plan.
        """
        if not changes:
            return []
        applied = list(changes)
        adds = [index for index, change in enumerate(changes) if change.event is Event.ADD]
        added = yield from self._add([changes[index] for index in adds], memories, messages)
        for index, outcome in zip(adds, added, strict=True):
            applied[index] = outcome
        deletes = {index: change for index, change in enumerate(changes) if change.event is not Event.ADD}
        times = {
            change.relation_row: change.effective_at
            for change in reversed(deletes.values())
            if change.relation_row is not None
        }
        ended = yield from self._close_relations(times)
        for index, change in deletes.items():
            if change.relation_row is None:
                continue
            if change.relation_row not in ended:
                applied[index] = dataclasses.replace(change, event=Event.NONE)
            ended.discard(change.relation_row)  # a second DELETE of the same relation does nothing
        return applied

    def withdraw(self, memory: int, before: str, after: str | None) -> Steps[list[RelationChange]]:
        """Withdraw the support of a memory after its text changed, and end relations without any other support.

        Args:
            memory: row of the memory.
            before: its text so far.
            after: its new text; None for a deleted memory.
        """
        found = yield from fetch_rows("SELECT edge FROM evidence WHERE memory = ? AND NOT withdrawn", (memory,))
        supported = yield from _select_relations_by_rows(self.dialect, [edge for (edge,) in found])
        dropped = [each for each in supported if after is None or drops_mention(before, after, each.triplet)]
        if not dropped:
            return []
        yield from self._withdraw_evidence(memory, [relation.row for relation in dropped], min_weight=1)
        return (yield from self._close_without_support(dropped))

    def withdraw_relations(self, memory: int) -> Steps[list[int]]:
        """Withdraw the support of a memory for all valid relations, before `apply` adds those of its new text.

        Returns:
            rows of the relations, for `close_unsupported`.
        """
        found = yield from fetch_rows(
            f"SELECT v.edge FROM evidence AS v JOIN edges AS e ON {self.dialect.same_part('e', 'v')}e.row = v.edge"
            " WHERE v.memory = ? AND NOT v.withdrawn AND e.valid_to IS NULL ORDER BY v.edge",
            (memory,),
        )
        rows = [edge for (edge,) in found]
        yield from self._withdraw_evidence(memory, rows, min_weight=0)
        return rows

    def close_unsupported(self, withdrawn_rows: Sequence[int]) -> Steps[list[RelationChange]]:
        """End those of the relations that no memory supports any more."""
        if not withdrawn_rows:
            return []
        among, listed = self.dialect.among("row", withdrawn_rows)
        yield from execute(f"UPDATE edges SET weight = {self.dialect.greatest}(1, weight) WHERE {among}", listed)
        relations = yield from _select_relations_by_rows(self.dialect, withdrawn_rows)
        return (yield from self._close_without_support(relations))

    def restore_relation(self, edge: int, change: RelationChange) -> Steps[None]:
        """Rewrite a relation that was removed by hand, or lost a node, under its row number, for its evidence."""
        dialect, relationship, at = self.dialect, change.triplet.relationship, change.effective_at or self.at
        [(source, destination)] = yield from self._resolve_nodes([change])
        [seq] = yield from dialect.reserve_seqs(1)
        part, part_values = dialect.in_part(self.scope)
        duplicate = yield from fetch_rows(
            f"SELECT row FROM edges WHERE {part}source = ? AND destination = ? AND relationship = ?"
            " AND valid_to IS NULL AND row <> ?",
            (*part_values, source, destination, relationship, edge),
        )
        if duplicate:  # it was added again in the meantime
            yield from self._move_evidence(edge, duplicate[0][0], seq)
            return
        [(ended, weight)] = yield from fetch_rows(
            f"SELECT CASE WHEN EXISTS (SELECT 1 FROM edge_tombstones WHERE {part}row = ? AND NOT erased)"
            f" THEN coalesce((SELECT min(valid_from) FROM edges WHERE {part}source = ? AND relationship = ?"
            " AND valid_from > ?), ?) END,"
            f" (SELECT {dialect.greatest}(1, count(*)) FROM evidence WHERE edge = ? AND NOT withdrawn)",
            (*part_values, edge, *part_values, source, relationship, at, self.at, edge),
        )
        upsert = (
            f"ON CONFLICT ({dialect.part}row) DO UPDATE SET source = excluded.source,"
            " destination = excluded.destination, seq = excluded.seq, changed = excluded.changed"
        )
        yield from execute(
            insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}", upsert),
            (
                *dialect.exact_values(self.scope),
                *(*scope_ids(self.scope), edge, source, relationship, destination, weight, at, ended, None, seq, seq),
            ),
        )
        upsert = f"ON CONFLICT ({dialect.part}row) DO UPDATE SET vector = excluded.vector"
        vector = dialect.vector(change.vectors[2], self.dims)
        insert = insert_sql("edge_vectors", f"{dialect.part}row, vector", upsert)
        yield from execute(insert, (*dialect.part_values(self.scope), edge, vector))

    def insert_edge(
        self, row: int, ends: tuple[int, str, int], weight: int, times: tuple[str, str | None, str | None], vector: Any
    ) -> Steps[None]:
        """Insert a relation.

        Args:
            row: its row number.
            ends: source, relationship and destination.
            weight: its weight.
            times: valid_from, valid_to and invalidated_at.
            vector: its vector, as the database stores it.
        """
        dialect = self.dialect
        [seq] = yield from dialect.reserve_seqs(1)
        yield from execute(
            insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}"),
            (*dialect.exact_values(self.scope), *scope_ids(self.scope), row, *ends, weight, *times, seq, seq),
        )
        insert = insert_sql("edge_vectors", f"{dialect.part}row, vector")
        yield from execute(insert, (*dialect.part_values(self.scope), row, vector))

    # --- additions ---------------------------------------------------------------------------------------------------

    def _add(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        if not changes:
            return []
        ends = yield from self._resolve_nodes(changes)
        edges, is_new = yield from self._resolve_edges(changes, ends)
        part_values = self.dialect.part_values(self.scope)
        copy, insert, insert_message = _evidence_statements(self.dialect)
        statements: list[Statement] = []
        for change, edge in zip(changes, edges, strict=True):
            if change.relation_row is not None:
                statements.append(Statement(copy, (*part_values, edge.row, change.relation_row)))
            dates = change.event_dates or (None,) * len(change.change_indexes)
            evidence = [
                (*part_values, edge.row, memories[index], False, days and days.first, days and days.last)
                for index, days in zip(change.change_indexes, dates, strict=True)
                if index in memories
            ]
            sources = [(*part_values, edge.row, messages[index]) for index in change.message_indexes]
            statements += [
                Statement(sql, rows, many=True) for sql, rows in ((insert, evidence), (insert_message, sources)) if rows
            ]
        if statements:
            yield from execute_batch(*statements)
        return [
            dataclasses.replace(change, event=Event.ADD if new else Event.NONE, vectors=(None, None, None))
            for change, new in zip(changes, is_new, strict=True)
        ]

    def _resolve_nodes(self, changes: Sequence[RelationChange]) -> Steps[list[tuple[int, int]]]:
        """Return the rows of both ends of each change.

        An end is the node that was found for it, if that still exists, else the node of its name, else a new one.
        """
        ends = [
            _Endpoint(row, name, entity_key(name), type, vector)
            for change in changes
            for row, name, type, vector in (
                (change.source_node, change.triplet.source, change.types[0], change.vectors[0]),
                (change.destination_node, change.triplet.destination, change.types[1], change.vectors[1]),
            )
        ]
        existing, named = yield from self._find_nodes(ends)
        missing = {end.key for end in ends if end.row not in existing and end.key not in named}
        merged = yield from _resolve_node_aliases(self.dialect, self.scope, list(missing))
        missing -= merged.keys()
        numbers = iter((yield from self.dialect.reserve_rows("nodes", len(missing))))
        new: dict[int, _Endpoint] = {}
        types: dict[int, str] = {}  # of nodes that had none, or are new
        rows: list[int] = []
        for end in ends:
            if end.row is not None and end.row in existing:
                rows.append(end.row)
                continue
            if end.key in merged:
                rows.append(merged[end.key])
                continue
            if end.key not in named:
                named[end.key] = (next(numbers), "")
                new[named[end.key][0]] = end
            row, type = named[end.key]
            if end.type and not type:
                named[end.key] = (row, end.type)
                types[row] = end.type
            rows.append(row)
        yield from self._write_nodes(new, types)
        return list(zip(rows[::2], rows[1::2], strict=True))

    def _find_nodes(self, ends: Sequence[_Endpoint]) -> Steps[tuple[set[int], dict[bytes, tuple[int, str]]]]:
        """Return which rows of `ends` still exist, and row and type of the nodes that have their names."""
        where, values = self.dialect.in_exact_scope(self.scope)
        rows = [end.row for end in ends if end.row is not None]
        by_row, listed = self.dialect.among("row", rows)
        by_key, keys = self.dialect.among("key", list({end.key for end in ends}), "bytea")
        statements = [Statement(f"SELECT key, row, type FROM nodes WHERE {where} AND {by_key}", values + keys)]
        if rows:
            statements.append(Statement(f"SELECT row FROM nodes WHERE {by_row} AND {where}", listed + values))
        named, *existing = yield from execute_batch(*statements)
        return (
            {row for result in existing for (row,) in result.rows},
            {bytes(key): (row, type) for key, row, type in named.rows},
        )

    def _write_nodes(self, new: Mapping[int, _Endpoint], types: Mapping[int, str]) -> Steps[None]:
        """Insert nodes, and set the types of others."""
        dialect = self.dialect
        typed = [row for row in types if row not in new]
        seqs = iter((yield from dialect.reserve_seqs(len(new) + len(typed))))
        prefix = (*dialect.exact_values(self.scope), *scope_ids(self.scope))
        nodes = [
            (*prefix, row, end.name, end.key, types.get(row, ""), seq, seq)
            for (row, end), seq in zip(new.items(), seqs, strict=False)
        ]
        yield from execute_many(insert_sql("nodes", f"{dialect.exact}{NODE_INSERT_COLUMNS}"), nodes)
        part_values = dialect.part_values(self.scope)
        vectors = [(*part_values, row, dialect.vector(end.vector, self.dims)) for row, end in new.items()]
        yield from execute_many(insert_sql("node_vectors", f"{dialect.part}row, vector"), vectors)
        part, part_where = dialect.in_part(self.scope)
        yield from execute_many(
            f"UPDATE nodes SET type = ?, changed = ? WHERE {part}row = ?",
            [(types[row], next(seqs), *part_where, row) for row in typed],
        )

    def _resolve_edges(
        self, changes: Sequence[RelationChange], ends: Sequence[tuple[int, int]]
    ) -> Steps[tuple[list[_EdgeWrite], list[bool]]]:
        """Write the relation of each change, and return it with a flag that says if it is new."""
        labels = [change.triplet.relationship for change in changes]
        names = yield from resolve_relationship_aliases(self.dialect, self.scope, labels)
        triples = [
            (source, names[label], destination) for (source, destination), label in zip(ends, labels, strict=True)
        ]
        valid = yield from self._find_valid_edges(triples)
        weights = yield from self._read_weights(changes)
        seqs = yield from self.dialect.reserve_seqs(len(changes))
        new_count = len({triple for triple in triples if triple not in valid})
        rows = iter((yield from self.dialect.reserve_rows("edges", new_count)))
        writes: dict[tuple[int, str, int], _EdgeWrite] = {}
        edges: list[_EdgeWrite] = []
        is_new: list[bool] = []
        for change, triple, seq in zip(changes, triples, seqs, strict=True):
            at = change.effective_at or self.at
            edge = writes.get(triple)
            if edge is None and triple in valid:
                edge = writes[triple] = _EdgeWrite(valid[triple], seq, 0, at)
            is_new.append(edge is None)
            if edge is None:
                weight = 1 + weights.get(change.relation_row, 0)
                edge = writes[triple] = _EdgeWrite(next(rows), seq, weight, at, triple, change)
            else:
                edge.added_weight, edge.seq, edge.valid_from = edge.added_weight + 1, seq, min(edge.valid_from, at)
                if edge.row in weights:  # a later change of the plan that refines it takes over this weight too
                    weights[edge.row] += 1
            edges.append(edge)
        yield from self._write_edges(list(writes.values()))
        return edges, is_new

    def _find_valid_edges(self, triples: Sequence[tuple[int, str, int]]) -> Steps[dict[tuple[int, str, int], int]]:
        """Return the rows of those triples that hold."""
        part, part_values = self.dialect.in_part(self.scope)
        sql = (
            f"SELECT row FROM edges WHERE {part}source = ? AND relationship = ? AND destination = ?"
            " AND valid_to IS NULL"
        )
        distinct = list(dict.fromkeys(triples))
        results = yield from execute_batch(*(Statement(sql, (*part_values, *triple)) for triple in distinct))
        return {triple: result.rows[0][0] for triple, result in zip(distinct, results, strict=True) if result.rows}

    def _read_weights(self, changes: Sequence[RelationChange]) -> Steps[dict[int | None, int]]:
        """Return the weights of the relations that the changes refine."""
        refined = [change.relation_row for change in changes if change.relation_row is not None]
        if not refined:
            return {}
        among, listed = self.dialect.among("row", refined)
        return dict((yield from fetch_rows(f"SELECT row, weight FROM edges WHERE {among}", listed)))

    def _write_edges(self, edges: Sequence[_EdgeWrite]) -> Steps[None]:
        dialect = self.dialect
        part, part_where = dialect.in_part(self.scope)
        yield from execute_many(
            f"UPDATE edges SET weight = weight + ?, valid_from = {dialect.least}(valid_from, ?), changed = ?"
            f" WHERE {part}row = ?",
            [
                (edge.added_weight, edge.valid_from, edge.seq, *part_where, edge.row)
                for edge in edges
                if edge.change is None
            ],
        )
        new = [(edge, edge.change) for edge in edges if edge.change is not None]
        part_values = dialect.part_values(self.scope)
        vectors = [(*part_values, edge.row, dialect.vector(change.vectors[2], self.dims)) for edge, change in new]
        prefix = (*dialect.exact_values(self.scope), *scope_ids(self.scope))
        rows = [
            (*prefix, edge.row, *edge.ends, edge.added_weight, edge.valid_from, None, None, edge.seq, edge.seq)
            for edge, _ in new
        ]
        yield from execute_many(insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}"), rows)
        yield from execute_many(insert_sql("edge_vectors", f"{dialect.part}row, vector"), vectors)

    # --- ends --------------------------------------------------------------------------------------------------------

    def _withdraw_evidence(self, memory: int, edges: Sequence[int], *, min_weight: int) -> Steps[None]:
        """Withdraw the support of a memory for these relations, each of which loses 1 of its weight."""
        if not edges:
            return
        seqs = yield from self.dialect.reserve_seqs(len(edges))
        among, listed = self.dialect.among("edge", edges)
        yield from execute_batch(
            Statement(f"UPDATE evidence SET withdrawn = true WHERE memory = ? AND {among}", [memory, *listed]),
            Statement(
                f"UPDATE edges SET weight = {self.dialect.greatest}(?, weight - 1), changed = ? WHERE row = ?",
                [(min_weight, seq, edge) for edge, seq in zip(edges, seqs, strict=True)],
                many=True,
            ),
        )

    def _close_without_support(self, relations: Sequence[Relation]) -> Steps[list[RelationChange]]:
        rows = [relation.row for relation in relations]
        among, listed = self.dialect.among("edge", rows)
        sql = f"SELECT DISTINCT edge FROM evidence WHERE {among} AND NOT withdrawn"
        supported = {edge for (edge,) in (yield from fetch_rows(sql, listed))}
        ended = yield from self._close_relations({row: None for row in rows if row not in supported})
        return [
            RelationChange(Event.DELETE, relation.triplet, relation_row=relation.row)
            for relation in relations
            if relation.row in ended
        ]

    def _close_relations(self, times: Mapping[int, str | None]) -> Steps[set[int]]:
        """End relations, each at its time or now, and return the rows of those that held until then."""
        if not times:
            return set()
        if self.on_conflict == "delete":
            return (yield from _erase_edges(self.dialect, list(times)))
        now, seqs = datetime.now(UTC).isoformat(), (yield from self.dialect.reserve_seqs(len(times)))
        sql = (
            f"UPDATE edges SET valid_to = {self.dialect.greatest}(valid_from, ?), invalidated_at = ?, changed = ?"
            f" WHERE row = ? AND valid_to IS NULL RETURNING {self.dialect.part}row, user_id, agent_id, run_id"
        )
        results = yield from execute_batch(
            *(
                Statement(sql, (at or self.at, now, seq, row))
                for (row, at), seq in zip(times.items(), seqs, strict=True)
            )
        )
        ended = [(*row, seq, False) for result, seq in zip(results, seqs, strict=True) for row in result.rows]
        yield from execute_many(
            insert_sql("edge_tombstones", f"{self.dialect.part}{_TOMBSTONE_COLUMNS}, erased"), ended
        )
        return {row[-6] for row in ended}

    def _move_evidence(self, edge: int, target: int, seq: int) -> Steps[None]:
        """Move the evidence of a damaged relation to a valid one, and delete the rest of it."""
        yield from execute(
            "UPDATE evidence SET edge = ? WHERE edge = ?"
            " AND memory NOT IN (SELECT memory FROM evidence WHERE edge = ?)",
            (target, edge, target),
        )
        for table, column in (("evidence", "edge"), ("edge_vectors", "row"), ("edges", "row")):
            yield from execute(f"DELETE FROM {table} WHERE {column} = ?", (edge,))
        part, part_values = self.dialect.in_part(self.scope)
        yield from execute(f"UPDATE edges SET changed = ? WHERE {part}row = ?", (seq, *part_values, target))


NODE_INSERT_COLUMNS = "user_id, agent_id, run_id, row, name, key, type, seq, changed"
_EDGE_COLUMNS = (
    "user_id, agent_id, run_id, row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at,"
    " seq, changed"
)
_TOMBSTONE_COLUMNS = "row, user_id, agent_id, run_id, seq"


def _evidence_statements(dialect: Dialect) -> tuple[str, str, str]:
    """Return the SQL that copies evidence from one edge to another, inserts evidence, and inserts a source message."""
    columns = f"{dialect.part}edge, memory, withdrawn, day_first, day_last"
    marks = "?, " * len(dialect.part.split(",")[:-1])
    copy = (
        f"INSERT INTO evidence ({columns}) SELECT {marks}?, memory, withdrawn, day_first, day_last FROM evidence"
        " WHERE edge = ? ON CONFLICT DO NOTHING"
    )
    upsert = (
        f"ON CONFLICT ({dialect.part}edge, memory) DO UPDATE SET withdrawn = false, day_first = excluded.day_first,"
        " day_last = excluded.day_last"
    )
    messages = insert_sql("edge_messages", f"{dialect.part}edge, message", "ON CONFLICT DO NOTHING")
    return copy, insert_sql("evidence", columns, upsert), messages


# --- merged names ------------------------------------------------------------------------------------------------


def _alias_condition(dialect: Dialect, scope: Scope, kind: str, keys: Sequence[bytes]) -> tuple[str, list[Any]]:
    """Return the condition of aliases ``a`` of exactly this scope that are in force."""
    where, values = dialect.in_exact_scope(scope, "a")
    among, listed = dialect.among("a.key", keys, "bytea")
    return f"{where} AND a.kind = '{kind}' AND a.standing AND {among}", values + listed


def _resolve_node_aliases(dialect: Dialect, scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, int]]:
    """Return the rows of the nodes that names were merged into, by the keys of the names."""
    if not keys:
        return {}
    where, values = _alias_condition(dialect, scope, "entity", keys)
    sql = f"SELECT a.key, m.node FROM aliases AS a JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
    found = yield from fetch_rows(f"{sql} WHERE {where}", values)
    return {bytes(key): node for key, node in found if node is not None}


def resolve_relationship_aliases(dialect: Dialect, scope: Scope, relationships: Sequence[str]) -> Steps[dict[str, str]]:
    """Return the present name of each relationship, which may have been merged several times."""
    names = {name: name for name in relationships}
    unresolved = set(names)
    sql = f"SELECT a.key, m.name FROM aliases AS a JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
    while unresolved:
        keys = list({entity_key(names[name]) for name in unresolved})
        where, values = _alias_condition(dialect, scope, "relationship", keys)
        merged = {bytes(key): name for key, name in (yield from fetch_rows(f"{sql} WHERE {where}", values))}
        unresolved = {name for name in unresolved if entity_key(names[name]) in merged}
        names |= {name: merged[entity_key(names[name])] for name in unresolved}
    return names


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_evidence(dialect: Dialect, memory: int) -> Steps[None]:
    """Erase the evidence of a memory, and relations that came from nothing else.

    Call it before the memory and its messages are erased.
    """
    of_memory = f"({dialect.part}message) IN (SELECT {dialect.part}message FROM sources WHERE memory = ?)"
    evidence, messages, *_ = yield from execute_batch(
        Statement("SELECT edge, withdrawn FROM evidence WHERE memory = ?", (memory,)),
        Statement(f"SELECT edge FROM edge_messages WHERE {of_memory}", (memory,)),
        Statement("DELETE FROM evidence WHERE memory = ?", (memory,)),
        Statement(f"DELETE FROM edge_messages WHERE {of_memory}", (memory,)),
    )
    withdrawn: dict[int, bool] = dict(evidence.rows)
    supported = list(withdrawn)
    edges = list(dict.fromkeys([*supported, *(edge for (edge,) in messages.rows)]))
    if not edges:
        return
    among, listed = dialect.among("e.row", edges)
    among_supported, listed_supported = dialect.among("e.row", supported)
    unsupported = yield from fetch_rows(
        f"SELECT e.row FROM edges AS e WHERE {among}"
        f" AND NOT EXISTS (SELECT 1 FROM evidence AS v WHERE {dialect.same_part('v', 'e')}v.edge = e.row)"
        f" AND ({among_supported}"
        f" OR NOT EXISTS (SELECT 1 FROM edge_messages AS h WHERE {dialect.same_part('h', 'e')}h.edge = e.row))",
        listed + listed_supported,
    )
    erased = yield from _erase_edges(dialect, [row for (row,) in unsupported])
    lighter = [edge for edge in supported if edge not in erased]
    seqs = yield from dialect.reserve_seqs(len(lighter))
    yield from execute_many(
        f"UPDATE edges SET weight = {dialect.greatest}(1, weight - ?), changed = ? WHERE row = ?",
        [(0 if withdrawn[edge] else 1, seq, edge) for seq, edge in zip(seqs, lighter, strict=True)],
    )


def erase_graph(dialect: Dialect, scope: Scope) -> Steps[None]:
    """Erase every node and relation of a scope."""
    where, values = dialect.in_scope(scope)
    edges = yield from fetch_rows(f"SELECT row FROM edges WHERE {where}", values)
    yield from _erase_edges(dialect, [row for (row,) in edges])
    nodes = yield from fetch_rows(f"SELECT row FROM nodes WHERE {where}", values)
    yield from _erase_nodes(dialect, [row for (row,) in nodes])


def _erase_edges(dialect: Dialect, edges: Sequence[int]) -> Steps[set[int]]:
    """Erase relations and the nodes that are left without any; return the rows of the relations that existed."""
    deleted = yield from delete_edges(dialect, edges)
    if not deleted:
        return set()
    among, listed = dialect.among("n.row", list({end for _, *ends in deleted for end in ends}))
    isolated = yield from fetch_rows(
        f"SELECT n.row FROM nodes AS n WHERE {among}"
        f" AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE {dialect.same_part('e', 'n')}e.source = n.row)"
        f" AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE {dialect.same_part('e', 'n')}e.destination = n.row)",
        listed,
    )
    yield from _erase_nodes(dialect, [row for (row,) in isolated])
    return {row for row, _, _ in deleted}


def _erase_nodes(dialect: Dialect, nodes: Sequence[int]) -> Steps[None]:
    if not nodes:
        return
    among, listed = dialect.among("n.row", nodes)
    same_scope = " AND ".join(f"coalesce(a.{axis}, '') = coalesce(n.{axis}, '')" for axis in _ID_COLUMNS)
    # Reverted merges remain on record as long as their names exist.
    yield from execute(
        f"DELETE FROM merges WHERE ({dialect.part}row) IN (SELECT {_qualify(dialect.part, 'a')}a.merge FROM nodes AS n"
        f" JOIN aliases AS a ON {dialect.same_part('a', 'n')}a.key = n.key AND {same_scope}"
        f" WHERE {among} AND a.kind = 'entity' AND NOT a.standing)",
        listed,
    )
    yield from delete_nodes(dialect, nodes)


_ID_COLUMNS = ("user_id", "agent_id", "run_id")


def _qualify(columns: str, table: str) -> str:
    """Put the alias of a table before the columns of a prefix such as ``"part, "``."""
    return "".join(f"{table}.{column}, " for column in columns.split(", ")[:-1])


def delete_edges(dialect: Dialect, edges: Sequence[int]) -> Steps[list[tuple[int, int, int]]]:
    """Delete relations, write tombstones for projections, and return the rows of the relations and of their nodes."""
    deleted = yield from _delete_rows(dialect, "edges", edges, ", source, destination")
    tombstones = [(*row[:-3], row[-1], True) for row in deleted]
    yield from execute_many(insert_sql("edge_tombstones", f"{dialect.part}{_TOMBSTONE_COLUMNS}, erased"), tombstones)
    return [(row[-7], row[-3], row[-2]) for row in deleted]


def delete_nodes(dialect: Dialect, nodes: Sequence[int]) -> Steps[None]:
    """Delete nodes, and write tombstones for projections."""
    deleted = yield from _delete_rows(dialect, "nodes", nodes)
    yield from execute_many(insert_sql("node_tombstones", f"{dialect.part}{_TOMBSTONE_COLUMNS}"), deleted)


def _delete_rows(dialect: Dialect, table: str, rows: Sequence[int], columns: str = "") -> Steps[list[tuple[Any, ...]]]:
    """Delete rows, and return of each its part, its row, its ids, further columns, and a number for its tombstone."""
    if not rows:
        return []
    among, listed = dialect.among("row", rows)
    sql = f"DELETE FROM {table} WHERE {among} RETURNING {dialect.part}row, user_id, agent_id, run_id{columns}"
    deleted = yield from fetch_rows(sql, listed)
    seqs = yield from dialect.reserve_seqs(len(deleted))
    return [(*row, seq) for row, seq in zip(deleted, seqs, strict=True)]
