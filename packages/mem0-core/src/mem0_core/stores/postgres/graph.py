"""The graph in the PostgreSQL truth: its tables changed within the store's transaction, and read for everybody else.

It means what `sqlite_graph` means, and says it otherwise: a plan is worked out here, from what a few statements find,
and written by statements that cross the wire together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import DateRange, Event, Node, Relation, RelationChange, Scope, drops_mention, entity_key
from mem0_core.interfaces import ChangePosition, EdgeRow, GraphChanges, GraphDelta, NodeRow, OnConflict, VectorSource
from mem0_core.stores.postgres.rows import (
    first_column,
    partition_key,
    scope_digest,
    scope_ids,
    scope_sql,
    stack_vectors,
    to_int_list,
)
from mem0_core.stores.postgres.session import (
    Database,
    Statement,
    Steps,
    execute_batch,
    execute_many,
    fetch_rows,
    read_methods,
    reserve_seqs,
    safe_read_seq,
    set_scope,
)
from mem0_core.stores.postgres.vectors import PostgresVectors
from mem0_core.stores.sql.rows import node_from_row, relation_from_row, to_stored_vector
from mem0_core.stores.sql.vectors import EDGE_VECTORS, NODE_VECTORS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "GraphWriter",
    "PostgresGraph",
    "delete_edges",
    "delete_nodes",
    "erase_evidence",
    "erase_graph",
    "find_partitions",
    "reserve_rows",
    "resolve_relationship_aliases",
]

_NODE_COLUMNS = "n.row, n.user_id, n.agent_id, n.run_id, n.name, n.type"
_RELATION_COLUMNS = (
    "e.row, e.user_id, e.agent_id, e.run_id, s.name, e.relationship, d.name, e.weight, e.valid_from, e.valid_to,"
    " e.invalidated_at, e.source, e.destination"
)
_HAS_DAYS = "(t.day_first IS NOT NULL OR t.day_last IS NOT NULL)"
_EVENT_DAYS = (
    "(SELECT t.edge, min(t.day_first) AS first, max(t.day_last) AS last FROM evidence AS t"
    f" WHERE NOT t.withdrawn AND {_HAS_DAYS} AND t.edge = e.row GROUP BY t.edge)"
)
_EDGES_WITH_NODES = (
    "edges AS e JOIN nodes AS s ON s.part = e.part AND s.row = e.source"
    " JOIN nodes AS d ON d.part = e.part AND d.row = e.destination"
)


class PostgresGraph:
    """The reading side: a `GraphStore`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.node_vectors: VectorSource = PostgresVectors(db, NODE_VECTORS)
        self.relation_vectors: VectorSource = PostgresVectors(db, EDGE_VECTORS)

    def _store_id(self) -> Steps[str]:
        [(name,)] = yield from fetch_rows("SELECT value FROM meta WHERE key = 'identity'")
        return str(name)

    store_id, astore_id = read_methods(_store_id)

    def _relations(
        self, scope: Scope, *, as_of: str | None = None, include_ended: bool = False, limit: int | None = None
    ) -> Steps[list[Relation]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "e")
        held, times = ("true", []) if include_ended and as_of is None else _validity_condition(as_of)
        tail = f"WHERE {where} AND {held} ORDER BY e.valid_from, e.row LIMIT %s"
        return (yield from _select(tail, (*values, *times, limit)))

    relations, arelations = read_methods(_relations)

    def _relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, with_evidence: bool = True
    ) -> Steps[dict[int, Relation]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "e")
        tail = f"WHERE e.row = ANY(%s) AND {where}"
        found = yield from _select(tail, (to_int_list(rows), *values), evidence=with_evidence)
        return {relation.row: relation for relation in found}

    relations_by_rows, arelations_by_rows = read_methods(_relations_by_rows)

    def _nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> Steps[dict[int, Node]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "n")
        sql = f"SELECT {_NODE_COLUMNS} FROM nodes AS n WHERE n.row = ANY(%s) AND {where}"
        return {row[0]: node_from_row(row) for row in (yield from fetch_rows(sql, (to_int_list(rows), *values)))}

    nodes_by_rows, anodes_by_rows = read_methods(_nodes_by_rows)

    def _nodes_by_names(
        self, scope: Scope, names: Sequence[str]
    ) -> Steps[dict[bytes, tuple[Node, NDArray[np.float32]]]]:
        yield from set_scope(scope)
        keys = list({entity_key(name) for name in names})
        sql = (
            f"SELECT {_NODE_COLUMNS}, n.key, v.vector FROM nodes AS n"
            " JOIN node_vectors AS v USING (part, row) WHERE n.part = %s AND n.exact = %s AND n.key = ANY(%s)"
        )
        renamed = (
            f"SELECT {_NODE_COLUMNS}, a.key, v.vector FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"  # noqa: E501
            " JOIN nodes AS n ON n.part = m.part AND n.row = m.node"
            " JOIN node_vectors AS v ON v.part = n.part AND v.row = n.row"
            " WHERE a.part = %s AND a.exact = %s AND a.kind = 'entity' AND a.standing AND a.key = ANY(%s)"
        )
        asked = (partition_key(scope), scope_digest(scope), keys)
        named, merged = yield from execute_batch(Statement(sql, asked), Statement(renamed, asked))
        found = [*named.rows, *merged.rows]
        vectors = stack_vectors([row[-1] for row in found])
        return {bytes(row[-2]): (node_from_row(row), vectors[place]) for place, row in enumerate(found)}

    nodes_by_names, anodes_by_names = read_methods(_nodes_by_names)

    def _touching(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> Steps[dict[int, list[int]]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "e")
        held, times = _validity_condition(as_of)
        one_way = (
            f"(SELECT e.row FROM edges AS e WHERE e.{{end}} = n.node AND {where} AND {held}"
            " ORDER BY e.row DESC LIMIT %s)"
        )
        sql = (
            "SELECT n.node, t.row FROM unnest(%s::bigint[]) AS n (node) CROSS JOIN LATERAL"
            f" ({one_way.format(end='source')} UNION {one_way.format(end='destination')} ORDER BY 1 DESC LIMIT %s) AS t"
            " ORDER BY n.node, t.row DESC"
        )
        asked = list(dict.fromkeys(to_int_list(nodes)))
        conditions = (*values, *times, limit)
        found: dict[int, list[int]] = {node: [] for node in asked}
        for node, row in (yield from fetch_rows(sql, (asked, *conditions, *conditions, limit))):
            found[node].append(row)
        return found

    incident_relation_rows, atouching = read_methods(_touching)

    def _valid_relation_rows(self, rows: Sequence[int], *, as_of: str | None = None) -> Steps[set[int]]:
        held, times = _validity_condition(as_of)
        sql = f"SELECT e.row FROM edges AS e WHERE e.row = ANY(%s) AND {held}"
        return {row for (row,) in (yield from fetch_rows(sql, (to_int_list(rows), *times)))}

    valid_relation_rows, avalid_relation_rows = read_methods(_valid_relation_rows)

    def _supporting_memory_rows(self, rows: Sequence[int]) -> Steps[dict[int, list[int]]]:
        asked = to_int_list(rows)
        sql = (
            "SELECT v.edge, v.memory FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            " WHERE v.edge = ANY(%s) AND NOT v.withdrawn ORDER BY v.edge, v.memory"
        )
        found: dict[int, list[int]] = {row: [] for row in asked}
        for edge, memory in (yield from fetch_rows(sql, (asked,))):
            found[edge].append(memory)
        return found

    supporting_memory_rows, asupporting_memory_rows = read_methods(_supporting_memory_rows)

    def _event_dates(self, memories: Sequence[int]) -> Steps[dict[int, list[DateRange]]]:
        sql = (
            "SELECT DISTINCT v.memory, t.day_first, t.day_last FROM evidence AS v"
            " JOIN evidence AS t ON t.part = v.part AND t.edge = v.edge"
            f" WHERE v.memory = ANY(%s) AND NOT v.withdrawn AND NOT t.withdrawn AND {_HAS_DAYS}"
        )
        found: dict[int, list[DateRange]] = {}
        for memory, *days in (yield from fetch_rows(sql, (to_int_list(memories),))):
            found.setdefault(memory, []).append(DateRange(*days))
        return found

    event_dates, aevent_dates = read_methods(_event_dates)

    def _ended_vectors(self, scope: Scope, *, as_of: str) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "e")
        sql = (
            "SELECT e.row, v.vector FROM edges AS e JOIN edge_vectors AS v ON v.part = e.part AND v.row = e.row"
            f" WHERE {where} AND e.valid_to > %s AND e.valid_from <= %s"
        )
        found = yield from fetch_rows(sql, (*values, as_of, as_of))
        return first_column(found), stack_vectors([vector for _, vector in found])

    ended_relation_vectors, aended_vectors = read_methods(_ended_vectors)

    # --- what projections follow -------------------------------------------------------------------------------------

    def _position(self) -> Steps[ChangePosition]:
        seen = yield from safe_read_seq()
        return (yield from _read_position(seen))

    position, aposition = read_methods(_position)

    def _rows_since(self, scope: Scope, *, after: int = 0) -> Steps[GraphDelta]:
        # The horizon is read before the rows: what became visible in between is told again the next time.
        seen = yield from safe_read_seq()
        position = yield from _read_position(seen)
        yield from set_scope(scope)
        where, values = scope_sql(scope, "e")
        since, thens = (" AND e.changed > %s", [after]) if after else ("", [])
        # One statement, which sees one state of the database: no relation comes without its nodes.
        sql = (
            "SELECT 0, e.row, e.user_id, e.name, e.type, e.key, NULL::bigint, NULL::bigint, NULL::bigint, NULL, NULL"
            f" FROM nodes AS e WHERE {where}{since} UNION ALL"
            " SELECT 1, e.row, e.relationship, e.valid_from, e.valid_to, NULL::bytea, e.source, e.destination,"
            f" e.weight, t.first, t.last FROM edges AS e LEFT JOIN LATERAL {_EVENT_DAYS} AS t ON true WHERE {where}{since}"  # noqa: E501
        )
        asked = [*values, *thens, *values, *thens]
        if after:
            sql += (
                " UNION ALL SELECT 2, e.row, NULL, NULL, NULL, NULL, e.seq, NULL, NULL, NULL, NULL"
                f" FROM edge_tombstones AS e WHERE {where} AND e.erased AND e.seq > %s"
            )
            asked += [*values, after]
        found = sorted((yield from fetch_rows(sql, asked)), key=lambda row: row[:2])
        nodes: list[NodeRow] = [(row[1], row[2], bytes(row[5]), row[3], row[4]) for row in found if row[0] == 0]
        edges: list[EdgeRow] = [
            (row[1], row[6], row[2], row[7], row[8], row[3], row[4], row[9], row[10]) for row in found if row[0] == 1
        ]
        removed = [row for _, row in sorted((row[6], row[1]) for row in found if row[0] == 2)]
        return GraphDelta(position, nodes, edges, removed)

    delta_since, arows_since = read_methods(_rows_since)

    def _changes(self, *, after: int = 0, limit: int = 500) -> Steps[GraphChanges]:
        # Up to the horizon nothing is under way: what is read by several statements, and changes between them, takes
        # a number above it, and is told the next time.
        seen = yield from safe_read_seq()
        reached = (yield from _read_position(seen)).seq
        page = (
            "SELECT {columns}, v.vector, n.changed FROM {table} AS n"
            " JOIN {vectors} AS v ON v.part = n.part AND v.row = n.row"
            " WHERE n.changed > %s AND n.changed <= %s ORDER BY n.changed LIMIT %s"
        )
        nodes = yield from fetch_rows(
            page.format(columns=_NODE_COLUMNS, table="nodes", vectors="node_vectors"), (after, reached, limit)
        )
        edges = yield from fetch_rows(
            page.format(columns="n.row", table="edges", vectors="edge_vectors"), (after, reached, limit)
        )
        full = [rows[-1][-1] for rows in (nodes, edges) if len(rows) == limit]
        upto = min(full) if full else reached
        nodes = [row for row in nodes if row[-1] <= upto]
        edges = [row for row in edges if row[-1] <= upto]
        found = {relation.row: relation for relation in (yield from _select_edges([row[0] for row in edges]))}
        edges = [row for row in edges if row[0] in found]  # one that was erased in between: its tombstone is next
        gone_nodes, gone_edges = yield from execute_batch(
            *(
                Statement(f"SELECT row FROM {table} seq > %s AND seq <= %s ORDER BY seq", (after, upto))
                for table in ("node_tombstones WHERE", "edge_tombstones WHERE erased AND")
            )
        )
        named, said = stack_vectors([row[-2] for row in nodes]), stack_vectors([row[-2] for row in edges])
        return GraphChanges(
            nodes=tuple((node_from_row(row), named[place]) for place, row in enumerate(nodes)),
            relations=tuple((found[row[0]], said[place]) for place, row in enumerate(edges)),
            removed_nodes=tuple(row for (row,) in gone_nodes.rows),
            removed_relations=tuple(row for (row,) in gone_edges.rows),
            last_seq=upto,
            has_more=bool(full),
        )

    changes, achanges = read_methods(_changes)


def _read_position(upto: int) -> Steps[ChangePosition]:
    """How far the graph of everybody has come, as far as everything is visible."""
    columns = (("changed", "nodes"), ("changed", "edges"), ("seq", "node_tombstones"), ("seq", "edge_tombstones"))
    last = ", ".join(f"(SELECT max({number}) FROM {table} WHERE {number} <= %s)" for number, table in columns)
    sql = f"SELECT (SELECT value FROM meta WHERE key = 'epoch'), {last}"
    [(epoch, *reached)] = yield from fetch_rows(sql, [upto] * len(columns))
    return ChangePosition(epoch, max(seq or 0 for seq in reached))


def _validity_condition(as_of: str | None) -> tuple[str, list[Any]]:
    if as_of is None:
        return "e.valid_to IS NULL", []
    return "e.valid_from <= %s AND (e.valid_to IS NULL OR e.valid_to > %s)", [as_of, as_of]


def _select(tail: str, values: Sequence[Any], *, evidence: bool = True) -> Steps[list[Relation]]:
    rows = yield from fetch_rows(f"SELECT {_RELATION_COLUMNS} FROM {_EDGES_WITH_NODES} {tail}", values)
    memories: dict[int, list[str]] = {}
    days: dict[int, DateRange] = {}
    if evidence and rows:
        memories, days = yield from _evidence([row[0] for row in rows])
    return [relation_from_row(row, memories.get(row[0], ()), days.get(row[0])) for row in rows]


def _select_edges(edges: Sequence[int]) -> Steps[list[Relation]]:
    return (yield from _select("WHERE e.row = ANY(%s) ORDER BY e.row", (list(edges),))) if edges else []


def _evidence(edges: Sequence[int]) -> Steps[tuple[dict[int, list[str]], dict[int, DateRange]]]:
    """The living memories that support each edge; from the first to the last of the days that it is told of, if any."""
    said, told = yield from execute_batch(
        Statement(
            "SELECT v.edge, m.id FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            " WHERE v.edge = ANY(%s) AND NOT v.withdrawn ORDER BY v.memory",
            (list(edges),),
        ),
        Statement(
            "SELECT t.edge, min(t.day_first), max(t.day_last) FROM evidence AS t WHERE t.edge = ANY(%s)"
            f" AND NOT t.withdrawn AND {_HAS_DAYS} GROUP BY t.edge",
            (list(edges),),
        ),
    )
    memories: dict[int, list[str]] = {}
    for edge, memory_id in said.rows:
        memories.setdefault(edge, []).append(memory_id)
    return memories, {edge: DateRange(*days) for edge, *days in told.rows}


# --- writing -----------------------------------------------------------------------------------------------------


def find_partitions(*, relations: Sequence[int] = (), memory_ids: Sequence[str] = ()) -> Steps[list[str]]:
    """The parts that a writer has to `lock_partitions` to end these relations, and those that came of these
    memories."""
    if not relations and not memory_ids:
        return []
    sql = (
        "SELECT part FROM edges WHERE row = ANY(%s) UNION SELECT v.part FROM evidence AS v"
        " JOIN memories AS m ON m.row = v.memory WHERE m.id = ANY(%s)"
    )
    return [part for (part,) in (yield from fetch_rows(sql, (list(relations), list(memory_ids))))]


@dataclasses.dataclass(slots=True)
class _EdgeWrite:
    """A relation that a plan brings, or one that holds and gains weight by it."""

    row: int
    seq: int
    added_weight: int
    """The weight of a new one, or what is added to that of the other."""
    valid_from: str
    name: tuple[int, int, str] = (0, 0, "")
    """Of a new one: source, destination, relationship."""
    change: RelationChange | None = None
    """What brings it; None where it held before."""


@dataclasses.dataclass(frozen=True, slots=True)
class GraphWriter:
    """Changes to the graph of one scope, within a transaction of the store's that holds its part."""

    scope: Scope
    at: str
    dims: int
    on_conflict: OnConflict

    def apply(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        """Write a plan; `memories` and `messages` are the rows of the plan's positions.

        What is added comes first: a refined relation takes weight and evidence from the one it replaces.
        """
        applied = list(changes)
        adds = [place for place, change in enumerate(changes) if change.event is Event.ADD]
        added = yield from self._add([changes[place] for place in adds], memories, messages)
        for place, outcome in zip(adds, added, strict=True):
            applied[place] = outcome
        over = {place: change for place, change in enumerate(changes) if change.event is not Event.ADD}
        times = {
            change.relation_row: change.effective_at
            for change in reversed(over.values())
            if change.relation_row is not None
        }
        ended = yield from self._close_relations(times)
        for place, change in over.items():
            if change.relation_row is None:
                continue
            if change.relation_row not in ended:
                applied[place] = dataclasses.replace(change, event=Event.NONE)
            ended.discard(change.relation_row)  # who ends it a second time does nothing
        return applied

    def withdraw(self, memory: int, before: str, after: str | None) -> Steps[list[RelationChange]]:
        """A memory said `before` and now says `after` (None: it is gone): relations that nothing else says end."""
        found = yield from fetch_rows("SELECT edge FROM evidence WHERE memory = %s AND NOT withdrawn", (memory,))
        supported = yield from _select_edges([edge for (edge,) in found])
        unsaid = [one for one in supported if after is None or drops_mention(before, after, one.triplet)]
        if not unsaid:
            return []
        rows = [relation.row for relation in unsaid]
        seqs = yield from reserve_seqs(len(rows))
        yield from execute_batch(_withdraw_statement(memory, rows), _reduce_weight_statement(rows, seqs, min_weight=1))
        return (yield from self._close_unsupported(unsaid))

    def restore_relation(self, edge: int, change: RelationChange) -> Steps[None]:
        """Write a relation that was removed by hand, or lost an end, under its number again, to the evidence it has."""
        [(source, destination)] = yield from self._resolve_nodes([change])
        part, relationship, at = (
            partition_key(self.scope),
            change.triplet.relationship,
            change.effective_at or self.at,
        )
        [seq] = yield from reserve_seqs(1)
        twin = yield from fetch_rows(
            "SELECT row FROM edges WHERE part = %s AND source = %s AND destination = %s AND relationship = %s"
            " AND valid_to IS NULL AND row <> %s",
            (part, source, destination, relationship, edge),
        )
        if twin:  # it was said again meanwhile
            held = "SELECT memory FROM evidence WHERE edge = %s"
            yield from fetch_rows(
                f"UPDATE evidence SET edge = %s WHERE edge = %s AND memory NOT IN ({held})",
                (twin[0][0], edge, twin[0][0]),
            )
            for table, column in (("evidence", "edge"), ("edge_vectors", "row"), ("edges", "row")):
                yield from fetch_rows(f"DELETE FROM {table} WHERE {column} = %s", (edge,))
            yield from fetch_rows("UPDATE edges SET changed = %s WHERE part = %s AND row = %s", (seq, part, twin[0][0]))
            return
        [(ended, weight)] = yield from fetch_rows(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM edge_tombstones WHERE part = %s AND row = %s AND NOT erased)"
            " THEN coalesce((SELECT min(valid_from) FROM edges WHERE part = %s AND source = %s AND relationship = %s"
            " AND valid_from > %s), %s) END,"
            " (SELECT greatest(1, count(*)) FROM evidence WHERE edge = %s AND NOT withdrawn)",
            (part, edge, part, source, relationship, at, self.at, edge),
        )
        yield from fetch_rows(
            "INSERT INTO edges (part, exact, row, user_id, agent_id, run_id, source, relationship, destination, weight,"
            " valid_from, valid_to, seq, changed) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (part, row) DO UPDATE SET source = excluded.source, destination = excluded.destination,"
            " seq = excluded.seq, changed = excluded.changed",
            (
                *(
                    part,
                    scope_digest(self.scope),
                    edge,
                    *scope_ids(self.scope),
                    source,
                    relationship,
                    destination,
                    weight,
                ),
                *(at, ended, seq, seq),
            ),
        )
        yield from fetch_rows(
            "INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)"
            " ON CONFLICT (part, row) DO UPDATE SET vector = excluded.vector",
            (part, edge, to_stored_vector(change.vectors[2], self.dims)),
        )

    def withdraw_relations(self, memory: int) -> Steps[list[int]]:
        """Take back all that a memory says of what holds, to be said anew by `apply`; returns the rows for
        `close_unsupported`."""
        sql = (
            "SELECT v.edge FROM evidence AS v JOIN edges AS e ON e.part = v.part AND e.row = v.edge"
            " WHERE v.memory = %s AND NOT v.withdrawn AND e.valid_to IS NULL ORDER BY v.edge"
        )
        rows = [edge for (edge,) in (yield from fetch_rows(sql, (memory,)))]
        if rows:
            seqs = yield from reserve_seqs(len(rows))
            yield from execute_batch(
                _withdraw_statement(memory, rows), _reduce_weight_statement(rows, seqs, min_weight=0)
            )
        return rows

    def close_unsupported(self, withdrawn_rows: Sequence[int]) -> Steps[list[RelationChange]]:
        """After a memory was taken back and said anew: what nothing says any longer ends."""
        if not withdrawn_rows:
            return []
        yield from fetch_rows(
            "UPDATE edges SET weight = greatest(1, weight) WHERE row = ANY(%s)", (list(withdrawn_rows),)
        )
        return (yield from self._close_unsupported((yield from _select_edges(withdrawn_rows))))

    def _close_unsupported(self, relations: Sequence[Relation]) -> Steps[list[RelationChange]]:
        rows = [relation.row for relation in relations]
        standing = "SELECT DISTINCT edge FROM evidence WHERE edge = ANY(%s) AND NOT withdrawn"
        said = {edge for (edge,) in (yield from fetch_rows(standing, (rows,)))}
        ended = yield from self._close_relations({row: None for row in rows if row not in said})
        return [
            RelationChange(Event.DELETE, relation.triplet, relation_row=relation.row)
            for relation in relations
            if relation.row in ended
        ]

    # --- what is added ---------------------------------------------------------------------------------------------

    def _add(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        if not changes:
            return []
        ends = yield from self._resolve_nodes(changes)
        edges, fresh = yield from self._resolve_edges(changes, ends)
        part = partition_key(self.scope)
        support: list[Statement] = []
        for change, edge in zip(changes, edges, strict=True):
            if change.relation_row is not None:
                support.append(Statement(_COPY_EVIDENCE, (part, edge.row, change.relation_row)))
            told = change.event_dates or (None,) * len(change.change_indexes)
            said = [
                (part, edge.row, memories[position], days and days.first, days and days.last)
                for position, days in zip(change.change_indexes, told, strict=True)
                if position in memories
            ]
            heard = [(part, edge.row, messages[position]) for position in change.message_indexes]
            support += [
                Statement(sql, rows, many=True)
                for sql, rows in ((_INSERT_EVIDENCE, said), (_INSERT_EDGE_MESSAGE, heard))
                if rows
            ]
        if support:
            yield from execute_batch(*support)
        return [
            dataclasses.replace(change, event=Event.ADD if new else Event.NONE, vectors=(None, None, None))
            for change, new in zip(changes, fresh, strict=True)
        ]

    def _resolve_nodes(self, changes: Sequence[RelationChange]) -> Steps[list[tuple[int, int]]]:
        """Of each change the rows of its ends: those that were found, if they are still there, else those of their
        names, else new ones."""
        part, exact = partition_key(self.scope), scope_digest(self.scope)
        ends = [
            (row, name, entity_key(name), type, vector)
            for change in changes
            for row, name, type, vector in (
                (change.source_node, change.triplet.source, change.types[0], change.vectors[0]),
                (change.destination_node, change.triplet.destination, change.types[1], change.vectors[1]),
            )
        ]
        there, known = yield from execute_batch(
            Statement(
                "SELECT row FROM nodes WHERE part = %s AND exact = %s AND row = ANY(%s)",
                (part, exact, [row for row, *_ in ends if row is not None]),
            ),
            Statement(
                "SELECT key, row, type FROM nodes WHERE part = %s AND exact = %s AND key = ANY(%s)",
                (part, exact, list({key for _, _, key, _, _ in ends})),
            ),
        )
        found = {row for (row,) in there.rows}
        named = {bytes(key): (row, type) for key, row, type in known.rows}
        missing = {key for row, _, key, _, _ in ends if row not in found and key not in named}
        merged = (yield from resolve_node_aliases(self.scope, list(missing))) if missing else {}
        missing -= merged.keys()
        numbers = iter((yield from reserve_rows(len(missing))))
        made: dict[int, tuple[str, bytes, Any]] = {}
        types: dict[int, str] = {}  # of nodes that had none, or are new
        rows: list[int] = []
        for row, name, key, type, vector in ends:
            if row is not None and row in found:
                rows.append(row)
                continue
            if key in merged:
                rows.append(merged[key])
                continue
            if key not in named:
                named[key] = (next(numbers), "")
                made[named[key][0]] = (name, key, to_stored_vector(vector, self.dims))
            its_row, its_type = named[key]
            if type and not its_type:
                named[key] = (its_row, type)
                types[its_row] = type
            rows.append(its_row)
        yield from self._write_nodes(made, types)
        return list(zip(rows[::2], rows[1::2], strict=True))

    def _write_nodes(self, made: Mapping[int, tuple[str, bytes, Any]], types: Mapping[int, str]) -> Steps[None]:
        part, ids = partition_key(self.scope), (scope_digest(self.scope), *scope_ids(self.scope))
        typed = [row for row in types if row not in made]
        seqs = iter((yield from reserve_seqs(len(made) + len(typed))))
        nodes = [
            (part, *ids, row, name, key, types.get(row, ""), seq, seq)
            for (row, (name, key, _)), seq in zip(made.items(), seqs, strict=False)
        ]
        yield from execute_many(
            "INSERT INTO nodes (part, exact, user_id, agent_id, run_id, row, name, key, type, seq, changed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            nodes,
        )
        vectors = [(part, row, vector) for row, (_, _, vector) in made.items()]
        yield from execute_many("INSERT INTO node_vectors (part, row, vector) VALUES (%s, %s, %s)", vectors)
        yield from execute_many(
            "UPDATE nodes SET type = %s, changed = %s WHERE part = %s AND row = %s",
            [(types[row], next(seqs), part, row) for row in typed],
        )

    def _resolve_edges(
        self, changes: Sequence[RelationChange], ends: Sequence[tuple[int, int]]
    ) -> Steps[tuple[list[_EdgeWrite], list[bool]]]:
        """Of each change the relation it makes or adds weight to, and whether that is new."""
        part = partition_key(self.scope)
        called = yield from resolve_relationship_aliases(self.scope, [one.triplet.relationship for one in changes])
        names = [called[one.triplet.relationship] for one in changes]
        asked = [[one for one, _ in ends], [other for _, other in ends], names]
        holding, refined = yield from execute_batch(
            Statement(
                "SELECT e.row, e.source, e.destination, e.relationship FROM edges AS e"
                " JOIN (SELECT DISTINCT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[])"
                " AS a (source, destination, relationship)) AS w USING (source, destination, relationship)"
                " WHERE e.part = %s AND e.valid_to IS NULL",
                (*asked, part),
            ),
            Statement(
                "SELECT row, weight FROM edges WHERE row = ANY(%s)",
                ([one.relation_row for one in changes if one.relation_row is not None],),
            ),
        )
        held = {(source, destination, name): row for row, source, destination, name in holding.rows}
        weights: dict[int | None, int] = dict(refined.rows)
        seqs = yield from reserve_seqs(len(changes))
        numbers = iter((yield from reserve_rows(len(changes))))
        open_now: dict[tuple[int, int, str], _EdgeWrite] = {}
        edges: list[_EdgeWrite] = []
        fresh: list[bool] = []
        for change, relationship, (source, destination), seq in zip(changes, names, ends, seqs, strict=True):
            name, at = (source, destination, relationship), change.effective_at or self.at
            edge = open_now.get(name)
            if edge is None and name in held:
                edge = open_now[name] = _EdgeWrite(held[name], seq, 0, at)
            fresh.append(edge is None)
            if edge is None:
                weight = 1 + weights.get(change.relation_row, 0)
                edge = open_now[name] = _EdgeWrite(next(numbers), seq, weight, at, name, change)
            else:
                edge.added_weight, edge.seq, edge.valid_from = edge.added_weight + 1, seq, min(edge.valid_from, at)
                if edge.row in weights:  # what a later change of the plan refines has grown by then
                    weights[edge.row] += 1
            edges.append(edge)
        yield from self._write_edges(list(open_now.values()))
        return edges, fresh

    def _write_edges(self, edges: Sequence[_EdgeWrite]) -> Steps[None]:
        part, ids = partition_key(self.scope), (scope_digest(self.scope), *scope_ids(self.scope))
        yield from execute_many(
            "UPDATE edges SET weight = weight + %s, valid_from = least(valid_from, %s), changed = %s"
            " WHERE part = %s AND row = %s",
            [(edge.added_weight, edge.valid_from, edge.seq, part, edge.row) for edge in edges if edge.change is None],
        )
        new = [(edge, edge.change) for edge in edges if edge.change is not None]
        vectors = [(part, edge.row, to_stored_vector(change.vectors[2], self.dims)) for edge, change in new]
        yield from execute_many(
            "INSERT INTO edges (part, exact, user_id, agent_id, run_id, row, source, destination, relationship, weight,"
            " valid_from, seq, changed) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                (
                    part,
                    *ids,
                    edge.row,
                    *edge.name,
                    edge.added_weight,
                    edge.valid_from,
                    edge.seq,
                    edge.seq,
                )
                for edge, change in new
            ],
        )
        yield from execute_many("INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)", vectors)

    # --- what ends -------------------------------------------------------------------------------------------------

    def _close_relations(self, times: Mapping[int, str | None]) -> Steps[set[int]]:
        """End relations, each at its time or now; returns the rows of those that held until then."""
        if not times:
            return set()
        if self.on_conflict == "delete":
            return (yield from _erase_edges(list(times)))
        seqs = yield from reserve_seqs(len(times))
        ended = yield from fetch_rows(
            "UPDATE edges AS e SET valid_to = greatest(e.valid_from, w.at), invalidated_at = %s, changed = w.seq"
            " FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS w (row, at, seq)"
            " WHERE e.row = w.row AND e.valid_to IS NULL"
            " RETURNING e.part, w.seq, e.row, e.user_id, e.agent_id, e.run_id",
            (datetime.now(UTC).isoformat(), list(times), [at or self.at for at in times.values()], seqs),
        )
        yield from execute_many(_INSERT_EDGE_TOMBSTONE, [(*row, False) for row in ended])
        return {row[2] for row in ended}


_COPY_EVIDENCE = (
    "INSERT INTO evidence (part, edge, memory, withdrawn, day_first, day_last)"
    " SELECT %s, %s, memory, withdrawn, day_first, day_last FROM evidence WHERE edge = %s ON CONFLICT DO NOTHING"
)
_INSERT_EVIDENCE = (
    "INSERT INTO evidence (part, edge, memory, day_first, day_last) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (part, edge, memory) DO UPDATE SET withdrawn = false,"
    " day_first = excluded.day_first, day_last = excluded.day_last"
)
_INSERT_EDGE_MESSAGE = "INSERT INTO edge_messages (part, edge, message) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_INSERT_EDGE_TOMBSTONE = (
    "INSERT INTO edge_tombstones (part, seq, row, user_id, agent_id, run_id, erased)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_INSERT_NODE_TOMBSTONE = (
    "INSERT INTO node_tombstones (part, seq, row, user_id, agent_id, run_id) VALUES (%s, %s, %s, %s, %s, %s)"
)


def reserve_rows(count: int) -> Steps[list[int]]:
    """Reserve `count` row numbers, ascending."""
    if not count:
        return []
    rows = yield from fetch_rows("SELECT nextval('next_row') FROM generate_series(1, %s)", (count,))
    return [row for (row,) in rows]


def _withdraw_statement(memory: int, edges: Sequence[int]) -> Statement:
    sql = "UPDATE evidence SET withdrawn = true WHERE memory = %s AND edge = ANY(%s)"
    return Statement(sql, (memory, list(edges)))


def _reduce_weight_statement(edges: Sequence[int], seqs: Sequence[int], *, min_weight: int) -> Statement:
    return Statement(
        "UPDATE edges AS e SET weight = greatest(%s, e.weight - 1), changed = w.seq"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS w (row, seq) WHERE e.row = w.row",
        (min_weight, list(edges), list(seqs)),
    )


# --- names that went (see MergeLedger) ---------------------------------------------------------------------------


def resolve_node_aliases(scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, int]]:
    """The nodes that names were merged into, by their keys."""
    sql = (
        "SELECT a.key, m.node FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"
        " WHERE a.part = %s AND a.exact = %s AND a.kind = 'entity' AND a.standing AND a.key = ANY(%s)"
    )
    found = yield from fetch_rows(sql, (partition_key(scope), scope_digest(scope), list(keys)))
    return {bytes(key): node for key, node in found if node is not None}


def resolve_relationship_aliases(scope: Scope, relationships: Sequence[str]) -> Steps[dict[str, str]]:
    """What relationships are called since they were merged, and those were, ..."""
    called = {name: name for name in relationships}
    left = set(called)
    sql = (
        "SELECT a.key, m.name FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"
        " WHERE a.part = %s AND a.exact = %s AND a.kind = 'relationship' AND a.standing AND a.key = ANY(%s)"
    )
    while left:
        keys = list({entity_key(called[name]) for name in left})
        found = {
            bytes(key): name
            for key, name in (yield from fetch_rows(sql, (partition_key(scope), scope_digest(scope), keys)))
        }
        left = {name for name in left if entity_key(called[name]) in found}
        called |= {name: found[entity_key(called[name])] for name in left}
    return called


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_evidence(memory: int) -> Steps[None]:
    """Before a memory and its messages are erased: relations that came from nothing else go with them."""
    said, heard, *_ = yield from execute_batch(
        Statement("SELECT edge, withdrawn FROM evidence WHERE memory = %s", (memory,)),
        Statement(
            "SELECT h.edge FROM edge_messages AS h JOIN sources AS s ON s.part = h.part AND s.message = h.message"
            " WHERE s.memory = %s",
            (memory,),
        ),
        Statement("DELETE FROM evidence WHERE memory = %s", (memory,)),
        Statement(
            "DELETE FROM edge_messages AS h USING sources AS s"
            " WHERE s.part = h.part AND s.message = h.message AND s.memory = %s",
            (memory,),
        ),
    )
    supports: dict[int, bool] = dict(said.rows)
    supported = list(supports)
    left = list(dict.fromkeys([*supported, *(edge for (edge,) in heard.rows)]))
    if not left:
        return
    gone = yield from fetch_rows(
        "SELECT e.row FROM edges AS e WHERE e.row = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM evidence AS v WHERE v.part = e.part AND v.edge = e.row)"
        " AND (e.row = ANY(%s)"
        " OR NOT EXISTS (SELECT 1 FROM edge_messages AS h WHERE h.part = e.part AND h.edge = e.row))",
        (left, supported),
    )
    erased = yield from _erase_edges([row for (row,) in gone])
    lighter = [edge for edge in supported if edge not in erased]
    seqs = yield from reserve_seqs(len(lighter))
    yield from execute_many(
        "UPDATE edges SET weight = greatest(1, weight - %s), changed = %s WHERE row = %s",
        [(0 if supports[edge] else 1, seq, edge) for seq, edge in zip(seqs, lighter, strict=True)],
    )


def erase_graph(scope: Scope) -> Steps[None]:
    """Erase every node and relation of a scope."""
    where, values = scope_sql(scope)
    edges = yield from fetch_rows(f"SELECT row FROM edges WHERE {where}", values)
    yield from _erase_edges([row for (row,) in edges])
    nodes = yield from fetch_rows(f"SELECT row FROM nodes WHERE {where}", values)
    yield from _erase_nodes([row for (row,) in nodes])


def _erase_edges(edges: Sequence[int]) -> Steps[set[int]]:
    """Remove relations, and the nodes that no relation is left to; returns the rows of the relations there were."""
    if not edges:
        return set()
    gone = yield from delete_edges(edges)
    alone = yield from fetch_rows(
        "SELECT n.row FROM nodes AS n WHERE n.row = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE e.part = n.part AND e.source = n.row)"
        " AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE e.part = n.part AND e.destination = n.row)",
        ([end for _, *ends in gone for end in ends],),
    )
    yield from _erase_nodes([row for (row,) in alone])
    return {row for row, _, _ in gone}


def delete_edges(edges: Sequence[int]) -> Steps[list[tuple[int, int, int]]]:
    """Delete edges, and tell projections by tombstones; returns their rows and those of their ends."""
    gone = yield from fetch_rows(
        "DELETE FROM edges WHERE row = ANY(%s) RETURNING part, row, user_id, agent_id, run_id, source, destination",
        (list(edges),),
    )
    seqs = yield from reserve_seqs(len(gone))
    buried = [(part, seq, *row, True) for seq, (part, *row, _, _) in zip(seqs, gone, strict=True)]
    yield from execute_many(_INSERT_EDGE_TOMBSTONE, buried)
    return [(row[1], row[5], row[6]) for row in gone]


def _erase_nodes(nodes: Sequence[int]) -> Steps[None]:
    if not nodes:
        return
    # what was taken back is on record while its names are
    yield from fetch_rows(
        "DELETE FROM merges AS m USING nodes AS n, aliases AS a WHERE n.row = ANY(%s) AND a.part = n.part"
        " AND a.exact = n.exact AND a.key = n.key AND a.kind = 'entity' AND NOT a.standing"
        " AND m.part = a.part AND m.row = a.merge",
        (list(nodes),),
    )
    yield from delete_nodes(nodes)


def delete_nodes(nodes: Sequence[int]) -> Steps[None]:
    """Delete nodes, and tell projections by tombstones."""
    gone = yield from fetch_rows(
        "DELETE FROM nodes WHERE row = ANY(%s) RETURNING part, row, user_id, agent_id, run_id", (list(nodes),)
    )
    seqs = yield from reserve_seqs(len(gone))
    yield from execute_many(
        _INSERT_NODE_TOMBSTONE, [(part, seq, *row) for seq, (part, *row) in zip(seqs, gone, strict=True)]
    )
