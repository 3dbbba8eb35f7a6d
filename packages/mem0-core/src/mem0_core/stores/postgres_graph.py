"""The graph in the PostgreSQL truth: its tables changed within the store's transaction, and read for everybody else.

It means what `sqlite_graph` means, and says it otherwise: a plan is worked out here, from what a few statements find,
and written by statements that cross the wire together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mem0_core.ports import EdgeRow, GraphChanges, GraphRows, NodeRow, OnConflict, Position, VectorSource
from mem0_core.records import Days, Event, Node, Relation, RelationChange, Scope, entity_key, unsays
from mem0_core.stores.postgres_rows import exact_of, ids_of, integers, numbers, part_of, scope_sql, stack
from mem0_core.stores.postgres_session import (
    Database,
    Statement,
    Steps,
    ask,
    every,
    horizon,
    next_seq,
    reads,
    together,
    within,
)
from mem0_core.stores.postgres_vectors import TableVectors
from mem0_core.stores.truth import node_of, relation_of, vector_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "GraphWriter",
    "PostgresGraph",
    "bury_edges",
    "bury_nodes",
    "erase_graph",
    "erase_support",
    "next_rows",
    "parts_of",
    "stays_called",
]

_NODE = "n.row, n.user_id, n.agent_id, n.run_id, n.name, n.type"
_RELATION = (
    "e.row, e.user_id, e.agent_id, e.run_id, s.name, e.relationship, d.name, e.weight, e.valid_from, e.valid_to,"
    " e.invalidated_at, e.source, e.destination"
)
_DATED = "(t.day_first IS NOT NULL OR t.day_last IS NOT NULL)"
_TOLD = (
    "(SELECT t.edge, min(t.day_first) AS first, max(t.day_last) AS last FROM evidence AS t"
    f" WHERE NOT t.withdrawn AND {_DATED} AND t.edge = e.row GROUP BY t.edge)"
)
_JOINED = (
    "edges AS e JOIN nodes AS s ON s.part = e.part AND s.row = e.source"
    " JOIN nodes AS d ON d.part = e.part AND d.row = e.destination"
)


class PostgresGraph:
    """The reading side: a `GraphTruth`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.node_vectors: VectorSource = TableVectors(db, "nodes", "node_vectors", "node_tombstones")
        self.relation_vectors: VectorSource = TableVectors(
            db, "edges", "edge_vectors", "edge_tombstones", living="valid_to IS NULL"
        )

    def _identity(self) -> Steps[str]:
        [(name,)] = yield from ask("SELECT value FROM meta WHERE key = 'identity'")
        return str(name)

    identity, aidentity = reads(_identity)

    def _relations(
        self, scope: Scope, *, as_of: str | None = None, ended: bool = False, limit: int | None = None
    ) -> Steps[list[Relation]]:
        yield from within(scope)
        where, values = scope_sql(scope, "e")
        held, times = ("true", []) if ended and as_of is None else _held(as_of)
        tail = f"WHERE {where} AND {held} ORDER BY e.valid_from, e.row LIMIT %s"
        return (yield from _select(tail, (*values, *times, limit)))

    relations, arelations = reads(_relations)

    def _relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, evidence: bool = True
    ) -> Steps[dict[int, Relation]]:
        yield from within(scope)
        where, values = scope_sql(scope, "e")
        tail = f"WHERE e.row = ANY(%s) AND {where}"
        found = yield from _select(tail, (integers(rows), *values), evidence=evidence)
        return {relation.row: relation for relation in found}

    relations_by_rows, arelations_by_rows = reads(_relations_by_rows)

    def _nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> Steps[dict[int, Node]]:
        yield from within(scope)
        where, values = scope_sql(scope, "n")
        sql = f"SELECT {_NODE} FROM nodes AS n WHERE n.row = ANY(%s) AND {where}"
        return {row[0]: node_of(row) for row in (yield from ask(sql, (integers(rows), *values)))}

    nodes_by_rows, anodes_by_rows = reads(_nodes_by_rows)

    def _nodes_named(self, scope: Scope, names: Sequence[str]) -> Steps[dict[bytes, tuple[Node, NDArray[np.float32]]]]:
        yield from within(scope)
        keys = list({entity_key(name) for name in names})
        sql = (
            f"SELECT {_NODE}, n.key, v.vector FROM nodes AS n"
            " JOIN node_vectors AS v USING (part, row) WHERE n.part = %s AND n.exact = %s AND n.key = ANY(%s)"
        )
        renamed = (
            f"SELECT {_NODE}, a.key, v.vector FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"
            " JOIN nodes AS n ON n.part = m.part AND n.row = m.node"
            " JOIN node_vectors AS v ON v.part = n.part AND v.row = n.row"
            " WHERE a.part = %s AND a.exact = %s AND a.kind = 'entity' AND a.standing AND a.key = ANY(%s)"
        )
        asked = (part_of(scope), exact_of(scope), keys)
        named, merged = yield from together(Statement(sql, asked), Statement(renamed, asked))
        found = [*named.rows, *merged.rows]
        vectors = stack([row[-1] for row in found])
        return {bytes(row[-2]): (node_of(row), vectors[place]) for place, row in enumerate(found)}

    nodes_named, anodes_named = reads(_nodes_named)

    def _touching(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> Steps[dict[int, list[int]]]:
        yield from within(scope)
        where, values = scope_sql(scope, "e")
        held, times = _held(as_of)
        one_way = (
            f"(SELECT e.row FROM edges AS e WHERE e.{{end}} = n.node AND {where} AND {held}"
            " ORDER BY e.row DESC LIMIT %s)"
        )
        sql = (
            "SELECT n.node, t.row FROM unnest(%s::bigint[]) AS n (node) CROSS JOIN LATERAL"
            f" ({one_way.format(end='source')} UNION {one_way.format(end='destination')} ORDER BY 1 DESC LIMIT %s) AS t"
            " ORDER BY n.node, t.row DESC"
        )
        asked = list(dict.fromkeys(integers(nodes)))
        conditions = (*values, *times, limit)
        found: dict[int, list[int]] = {node: [] for node in asked}
        for node, row in (yield from ask(sql, (asked, *conditions, *conditions, limit))):
            found[node].append(row)
        return found

    touching, atouching = reads(_touching)

    def _holding(self, rows: Sequence[int], *, as_of: str | None = None) -> Steps[set[int]]:
        held, times = _held(as_of)
        sql = f"SELECT e.row FROM edges AS e WHERE e.row = ANY(%s) AND {held}"
        return {row for (row,) in (yield from ask(sql, (integers(rows), *times)))}

    holding, aholding = reads(_holding)

    def _support(self, rows: Sequence[int]) -> Steps[dict[int, list[int]]]:
        asked = integers(rows)
        sql = (
            "SELECT v.edge, v.memory FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            " WHERE v.edge = ANY(%s) AND NOT v.withdrawn ORDER BY v.edge, v.memory"
        )
        found: dict[int, list[int]] = {row: [] for row in asked}
        for edge, memory in (yield from ask(sql, (asked,))):
            found[edge].append(memory)
        return found

    support, asupport = reads(_support)

    def _told(self, memories: Sequence[int]) -> Steps[dict[int, list[Days]]]:
        sql = (
            "SELECT DISTINCT v.memory, t.day_first, t.day_last FROM evidence AS v"
            " JOIN evidence AS t ON t.part = v.part AND t.edge = v.edge"
            f" WHERE v.memory = ANY(%s) AND NOT v.withdrawn AND NOT t.withdrawn AND {_DATED}"
        )
        found: dict[int, list[Days]] = {}
        for memory, *days in (yield from ask(sql, (integers(memories),))):
            found.setdefault(memory, []).append(Days(*days))
        return found

    told, atold = reads(_told)

    def _ended_vectors(self, scope: Scope, *, as_of: str) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        yield from within(scope)
        where, values = scope_sql(scope, "e")
        sql = (
            "SELECT e.row, v.vector FROM edges AS e JOIN edge_vectors AS v ON v.part = e.part AND v.row = e.row"
            f" WHERE {where} AND e.valid_to > %s AND e.valid_from <= %s"
        )
        found = yield from ask(sql, (*values, as_of, as_of))
        return numbers(found), stack([vector for _, vector in found])

    ended_vectors, aended_vectors = reads(_ended_vectors)

    # --- what projections follow -------------------------------------------------------------------------------------

    def _position(self) -> Steps[Position]:
        seen = yield from horizon()
        return (yield from _reached(seen))

    position, aposition = reads(_position)

    def _rows_since(self, scope: Scope, *, after: int = 0) -> Steps[GraphRows]:
        # The horizon is read before the rows: what became visible in between is told again the next time.
        seen = yield from horizon()
        position = yield from _reached(seen)
        yield from within(scope)
        where, values = scope_sql(scope, "e")
        since, thens = (" AND e.changed > %s", [after]) if after else ("", [])
        # One statement, which sees one state of the database: no relation comes without its nodes.
        sql = (
            "SELECT 0, e.row, e.user_id, e.name, e.type, e.key, NULL::bigint, NULL::bigint, NULL::bigint, NULL, NULL"
            f" FROM nodes AS e WHERE {where}{since} UNION ALL"
            " SELECT 1, e.row, e.relationship, e.valid_from, e.valid_to, NULL::bytea, e.source, e.destination,"
            f" e.weight, t.first, t.last FROM edges AS e LEFT JOIN LATERAL {_TOLD} AS t ON true WHERE {where}{since}"
        )
        asked = [*values, *thens, *values, *thens]
        if after:
            sql += (
                " UNION ALL SELECT 2, e.row, NULL, NULL, NULL, NULL, e.seq, NULL, NULL, NULL, NULL"
                f" FROM edge_tombstones AS e WHERE {where} AND e.erased AND e.seq > %s"
            )
            asked += [*values, after]
        found = sorted((yield from ask(sql, asked)), key=lambda row: row[:2])
        nodes: list[NodeRow] = [(row[1], row[2], bytes(row[5]), row[3], row[4]) for row in found if row[0] == 0]
        edges: list[EdgeRow] = [
            (row[1], row[6], row[2], row[7], row[8], row[3], row[4], row[9], row[10]) for row in found if row[0] == 1
        ]
        removed = [row for _, row in sorted((row[6], row[1]) for row in found if row[0] == 2)]
        return GraphRows(position, nodes, edges, removed)

    rows_since, arows_since = reads(_rows_since)

    def _changes(self, *, after: int = 0, limit: int = 500) -> Steps[GraphChanges]:
        # Up to the horizon nothing is under way: what is read by several statements, and changes between them, takes
        # a number above it, and is told the next time.
        seen = yield from horizon()
        reached = (yield from _reached(seen)).seq
        page = (
            "SELECT {columns}, v.vector, n.changed FROM {table} AS n"
            " JOIN {vectors} AS v ON v.part = n.part AND v.row = n.row"
            " WHERE n.changed > %s AND n.changed <= %s ORDER BY n.changed LIMIT %s"
        )
        nodes = yield from ask(
            page.format(columns=_NODE, table="nodes", vectors="node_vectors"), (after, reached, limit)
        )
        edges = yield from ask(
            page.format(columns="n.row", table="edges", vectors="edge_vectors"), (after, reached, limit)
        )
        full = [rows[-1][-1] for rows in (nodes, edges) if len(rows) == limit]
        upto = min(full) if full else reached
        nodes = [row for row in nodes if row[-1] <= upto]
        edges = [row for row in edges if row[-1] <= upto]
        found = {relation.row: relation for relation in (yield from _among([row[0] for row in edges]))}
        edges = [row for row in edges if row[0] in found]  # one that was erased in between: its tombstone is next
        gone_nodes, gone_edges = yield from together(
            *(
                Statement(f"SELECT row FROM {table} seq > %s AND seq <= %s ORDER BY seq", (after, upto))
                for table in ("node_tombstones WHERE", "edge_tombstones WHERE erased AND")
            )
        )
        named, said = stack([row[-2] for row in nodes]), stack([row[-2] for row in edges])
        return GraphChanges(
            nodes=tuple((node_of(row), named[place]) for place, row in enumerate(nodes)),
            relations=tuple((found[row[0]], said[place]) for place, row in enumerate(edges)),
            removed_nodes=tuple(row for (row,) in gone_nodes.rows),
            removed_relations=tuple(row for (row,) in gone_edges.rows),
            upto=upto,
            more=bool(full),
        )

    changes, achanges = reads(_changes)


def _reached(upto: int) -> Steps[Position]:
    """How far the graph of everybody has come, as far as everything is visible."""
    columns = (("changed", "nodes"), ("changed", "edges"), ("seq", "node_tombstones"), ("seq", "edge_tombstones"))
    last = ", ".join(f"(SELECT max({number}) FROM {table} WHERE {number} <= %s)" for number, table in columns)
    sql = f"SELECT (SELECT value FROM meta WHERE key = 'epoch'), {last}"
    [(epoch, *reached)] = yield from ask(sql, [upto] * len(columns))
    return Position(epoch, max(seq or 0 for seq in reached))


def _held(as_of: str | None) -> tuple[str, list[Any]]:
    if as_of is None:
        return "e.valid_to IS NULL", []
    return "e.valid_from <= %s AND (e.valid_to IS NULL OR e.valid_to > %s)", [as_of, as_of]


def _select(tail: str, values: Sequence[Any], *, evidence: bool = True) -> Steps[list[Relation]]:
    rows = yield from ask(f"SELECT {_RELATION} FROM {_JOINED} {tail}", values)
    memories: dict[int, list[str]] = {}
    days: dict[int, Days] = {}
    if evidence and rows:
        memories, days = yield from _evidence([row[0] for row in rows])
    return [relation_of(row, memories.get(row[0], ()), days.get(row[0])) for row in rows]


def _among(edges: Sequence[int]) -> Steps[list[Relation]]:
    return (yield from _select("WHERE e.row = ANY(%s) ORDER BY e.row", (list(edges),))) if edges else []


def _evidence(edges: Sequence[int]) -> Steps[tuple[dict[int, list[str]], dict[int, Days]]]:
    """The living memories that support each edge; from the first to the last of the days that it is told of, if any."""
    said, told = yield from together(
        Statement(
            "SELECT v.edge, m.id FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            " WHERE v.edge = ANY(%s) AND NOT v.withdrawn ORDER BY v.memory",
            (list(edges),),
        ),
        Statement(
            "SELECT t.edge, min(t.day_first), max(t.day_last) FROM evidence AS t WHERE t.edge = ANY(%s)"
            f" AND NOT t.withdrawn AND {_DATED} GROUP BY t.edge",
            (list(edges),),
        ),
    )
    memories: dict[int, list[str]] = {}
    for edge, memory_id in said.rows:
        memories.setdefault(edge, []).append(memory_id)
    return memories, {edge: Days(*days) for edge, *days in told.rows}


# --- writing -----------------------------------------------------------------------------------------------------


def parts_of(*, relations: Sequence[int] = (), memory_ids: Sequence[str] = ()) -> Steps[list[str]]:
    """The parts that a writer has to `hold` to end these relations, and those that came of these memories."""
    if not relations and not memory_ids:
        return []
    sql = (
        "SELECT part FROM edges WHERE row = ANY(%s) UNION SELECT v.part FROM evidence AS v"
        " JOIN memories AS m ON m.row = v.memory WHERE m.id = ANY(%s)"
    )
    return [part for (part,) in (yield from ask(sql, (list(relations), list(memory_ids))))]


@dataclasses.dataclass(slots=True)
class _Edge:
    """A relation that a plan brings, or one that holds and gains weight by it."""

    row: int
    seq: int
    more: int
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
        times = {change.relation: change.at for change in reversed(over.values()) if change.relation is not None}
        ended = yield from self._end(times)
        for place, change in over.items():
            if change.relation is None:
                continue
            if change.relation not in ended:
                applied[place] = dataclasses.replace(change, event=Event.NONE)
            ended.discard(change.relation)  # who ends it a second time does nothing
        return applied

    def withdraw(self, memory: int, before: str, after: str | None) -> Steps[list[RelationChange]]:
        """A memory said `before` and now says `after` (None: it is gone): relations that nothing else says end."""
        found = yield from ask("SELECT edge FROM evidence WHERE memory = %s AND NOT withdrawn", (memory,))
        supported = yield from _among([edge for (edge,) in found])
        unsaid = [one for one in supported if after is None or unsays(before, after, one.triplet)]
        if not unsaid:
            return []
        rows = [relation.row for relation in unsaid]
        seqs = yield from next_seq(len(rows))
        yield from together(_withdrawn(memory, rows), _lighter(rows, seqs, least=1))
        return (yield from self._end_unsaid(unsaid))

    def put_back(self, edge: int, change: RelationChange) -> Steps[None]:
        """Write a relation that was removed by hand, or lost an end, under its number again, to the evidence it has."""
        [(source, destination)] = yield from self._nodes([change])
        part, relationship, at = part_of(self.scope), change.triplet.relationship, change.at or self.at
        [seq] = yield from next_seq(1)
        twin = yield from ask(
            "SELECT row FROM edges WHERE part = %s AND source = %s AND destination = %s AND relationship = %s"
            " AND valid_to IS NULL AND row <> %s",
            (part, source, destination, relationship, edge),
        )
        if twin:  # it was said again meanwhile
            held = "SELECT memory FROM evidence WHERE edge = %s"
            yield from ask(
                f"UPDATE evidence SET edge = %s WHERE edge = %s AND memory NOT IN ({held})",
                (twin[0][0], edge, twin[0][0]),
            )
            for table, column in (("evidence", "edge"), ("edge_vectors", "row"), ("edges", "row")):
                yield from ask(f"DELETE FROM {table} WHERE {column} = %s", (edge,))
            yield from ask("UPDATE edges SET changed = %s WHERE part = %s AND row = %s", (seq, part, twin[0][0]))
            return
        [(ended, weight)] = yield from ask(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM edge_tombstones WHERE part = %s AND row = %s AND NOT erased)"
            " THEN coalesce((SELECT min(valid_from) FROM edges WHERE part = %s AND source = %s AND relationship = %s"
            " AND valid_from > %s), %s) END,"
            " (SELECT greatest(1, count(*)) FROM evidence WHERE edge = %s AND NOT withdrawn)",
            (part, edge, part, source, relationship, at, self.at, edge),
        )
        yield from ask(
            "INSERT INTO edges (part, exact, row, user_id, agent_id, run_id, source, relationship, destination, weight,"
            " valid_from, valid_to, seq, changed) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (part, row) DO UPDATE SET source = excluded.source, destination = excluded.destination,"
            " seq = excluded.seq, changed = excluded.changed",
            (
                *(part, exact_of(self.scope), edge, *ids_of(self.scope), source, relationship, destination, weight),
                *(at, ended, seq, seq),
            ),
        )
        yield from ask(
            "INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)"
            " ON CONFLICT (part, row) DO UPDATE SET vector = excluded.vector",
            (part, edge, vector_of(change.vectors[2], self.dims)),
        )

    def retract(self, memory: int) -> Steps[list[int]]:
        """Take back all that a memory says of what holds, to be said anew by `apply`; returns the rows for `settle`."""
        sql = (
            "SELECT v.edge FROM evidence AS v JOIN edges AS e ON e.part = v.part AND e.row = v.edge"
            " WHERE v.memory = %s AND NOT v.withdrawn AND e.valid_to IS NULL ORDER BY v.edge"
        )
        rows = [edge for (edge,) in (yield from ask(sql, (memory,)))]
        if rows:
            seqs = yield from next_seq(len(rows))
            yield from together(_withdrawn(memory, rows), _lighter(rows, seqs, least=0))
        return rows

    def settle(self, retracted: Sequence[int]) -> Steps[list[RelationChange]]:
        """After a memory was taken back and said anew: what nothing says any longer ends."""
        if not retracted:
            return []
        yield from ask("UPDATE edges SET weight = greatest(1, weight) WHERE row = ANY(%s)", (list(retracted),))
        return (yield from self._end_unsaid((yield from _among(retracted))))

    def _end_unsaid(self, relations: Sequence[Relation]) -> Steps[list[RelationChange]]:
        rows = [relation.row for relation in relations]
        standing = "SELECT DISTINCT edge FROM evidence WHERE edge = ANY(%s) AND NOT withdrawn"
        said = {edge for (edge,) in (yield from ask(standing, (rows,)))}
        ended = yield from self._end({row: None for row in rows if row not in said})
        return [
            RelationChange(Event.DELETE, relation.triplet, relation=relation.row)
            for relation in relations
            if relation.row in ended
        ]

    # --- what is added ---------------------------------------------------------------------------------------------

    def _add(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        if not changes:
            return []
        ends = yield from self._nodes(changes)
        edges, fresh = yield from self._edges(changes, ends)
        part = part_of(self.scope)
        support: list[Statement] = []
        for change, edge in zip(changes, edges, strict=True):
            if change.relation is not None:
                support.append(Statement(_TAKE_EVIDENCE, (part, edge.row, change.relation)))
            told = change.days or (None,) * len(change.memories)
            said = [
                (part, edge.row, memories[position], days and days.first, days and days.last)
                for position, days in zip(change.memories, told, strict=True)
                if position in memories
            ]
            heard = [(part, edge.row, messages[position]) for position in change.messages]
            support += [Statement(sql, rows, many=True) for sql, rows in ((_EVIDENCE, said), (_HEARD, heard)) if rows]
        if support:
            yield from together(*support)
        return [
            dataclasses.replace(change, event=Event.ADD if new else Event.NONE, vectors=(None, None, None))
            for change, new in zip(changes, fresh, strict=True)
        ]

    def _nodes(self, changes: Sequence[RelationChange]) -> Steps[list[tuple[int, int]]]:
        """Of each change the rows of its ends: those that were found, if they are still there, else those of their
        names, else new ones."""
        part, exact = part_of(self.scope), exact_of(self.scope)
        ends = [
            (row, name, entity_key(name), type, vector)
            for change in changes
            for row, name, type, vector in (
                (change.source, change.triplet.source, change.types[0], change.vectors[0]),
                (change.destination, change.triplet.destination, change.types[1], change.vectors[1]),
            )
        ]
        there, known = yield from together(
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
        merged = (yield from stays_for(self.scope, list(missing))) if missing else {}
        missing -= merged.keys()
        numbers = iter((yield from next_rows(len(missing))))
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
                made[named[key][0]] = (name, key, vector_of(vector, self.dims))
            its_row, its_type = named[key]
            if type and not its_type:
                named[key] = (its_row, type)
                types[its_row] = type
            rows.append(its_row)
        yield from self._write_nodes(made, types)
        return list(zip(rows[::2], rows[1::2], strict=True))

    def _write_nodes(self, made: Mapping[int, tuple[str, bytes, Any]], types: Mapping[int, str]) -> Steps[None]:
        part, ids = part_of(self.scope), (exact_of(self.scope), *ids_of(self.scope))
        typed = [row for row in types if row not in made]
        seqs = iter((yield from next_seq(len(made) + len(typed))))
        nodes = [
            (part, *ids, row, name, key, types.get(row, ""), seq, seq)
            for (row, (name, key, _)), seq in zip(made.items(), seqs, strict=False)
        ]
        yield from every(
            "INSERT INTO nodes (part, exact, user_id, agent_id, run_id, row, name, key, type, seq, changed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            nodes,
        )
        vectors = [(part, row, vector) for row, (_, _, vector) in made.items()]
        yield from every("INSERT INTO node_vectors (part, row, vector) VALUES (%s, %s, %s)", vectors)
        yield from every(
            "UPDATE nodes SET type = %s, changed = %s WHERE part = %s AND row = %s",
            [(types[row], next(seqs), part, row) for row in typed],
        )

    def _edges(
        self, changes: Sequence[RelationChange], ends: Sequence[tuple[int, int]]
    ) -> Steps[tuple[list[_Edge], list[bool]]]:
        """Of each change the relation it makes or adds weight to, and whether that is new."""
        part = part_of(self.scope)
        called = yield from stays_called(self.scope, [one.triplet.relationship for one in changes])
        names = [called[one.triplet.relationship] for one in changes]
        asked = [[one for one, _ in ends], [other for _, other in ends], names]
        holding, refined = yield from together(
            Statement(
                "SELECT e.row, e.source, e.destination, e.relationship FROM edges AS e"
                " JOIN (SELECT DISTINCT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[])"
                " AS a (source, destination, relationship)) AS w USING (source, destination, relationship)"
                " WHERE e.part = %s AND e.valid_to IS NULL",
                (*asked, part),
            ),
            Statement(
                "SELECT row, weight FROM edges WHERE row = ANY(%s)",
                ([one.relation for one in changes if one.relation is not None],),
            ),
        )
        held = {(source, destination, name): row for row, source, destination, name in holding.rows}
        weights: dict[int | None, int] = dict(refined.rows)
        seqs = yield from next_seq(len(changes))
        numbers = iter((yield from next_rows(len(changes))))
        open_now: dict[tuple[int, int, str], _Edge] = {}
        edges: list[_Edge] = []
        fresh: list[bool] = []
        for change, relationship, (source, destination), seq in zip(changes, names, ends, seqs, strict=True):
            name, at = (source, destination, relationship), change.at or self.at
            edge = open_now.get(name)
            if edge is None and name in held:
                edge = open_now[name] = _Edge(held[name], seq, 0, at)
            fresh.append(edge is None)
            if edge is None:
                weight = 1 + weights.get(change.relation, 0)
                edge = open_now[name] = _Edge(next(numbers), seq, weight, at, name, change)
            else:
                edge.more, edge.seq, edge.valid_from = edge.more + 1, seq, min(edge.valid_from, at)
                if edge.row in weights:  # what a later change of the plan refines has grown by then
                    weights[edge.row] += 1
            edges.append(edge)
        yield from self._write_edges(list(open_now.values()))
        return edges, fresh

    def _write_edges(self, edges: Sequence[_Edge]) -> Steps[None]:
        part, ids = part_of(self.scope), (exact_of(self.scope), *ids_of(self.scope))
        yield from every(
            "UPDATE edges SET weight = weight + %s, valid_from = least(valid_from, %s), changed = %s"
            " WHERE part = %s AND row = %s",
            [(edge.more, edge.valid_from, edge.seq, part, edge.row) for edge in edges if edge.change is None],
        )
        new = [(edge, edge.change) for edge in edges if edge.change is not None]
        vectors = [(part, edge.row, vector_of(change.vectors[2], self.dims)) for edge, change in new]
        yield from every(
            "INSERT INTO edges (part, exact, user_id, agent_id, run_id, row, source, destination, relationship, weight,"
            " valid_from, seq, changed) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                (
                    part,
                    *ids,
                    edge.row,
                    *edge.name,
                    edge.more,
                    edge.valid_from,
                    edge.seq,
                    edge.seq,
                )
                for edge, change in new
            ],
        )
        yield from every("INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)", vectors)

    # --- what ends -------------------------------------------------------------------------------------------------

    def _end(self, times: Mapping[int, str | None]) -> Steps[set[int]]:
        """End relations, each at its time or now; returns the rows of those that held until then."""
        if not times:
            return set()
        if self.on_conflict == "delete":
            return (yield from _erase_edges(list(times)))
        seqs = yield from next_seq(len(times))
        ended = yield from ask(
            "UPDATE edges AS e SET valid_to = greatest(e.valid_from, w.at), invalidated_at = %s, changed = w.seq"
            " FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS w (row, at, seq)"
            " WHERE e.row = w.row AND e.valid_to IS NULL"
            " RETURNING e.part, w.seq, e.row, e.user_id, e.agent_id, e.run_id",
            (datetime.now(UTC).isoformat(), list(times), [at or self.at for at in times.values()], seqs),
        )
        yield from every(_EDGE_TOMBSTONE, [(*row, False) for row in ended])
        return {row[2] for row in ended}


_TAKE_EVIDENCE = (
    "INSERT INTO evidence (part, edge, memory, withdrawn, day_first, day_last)"
    " SELECT %s, %s, memory, withdrawn, day_first, day_last FROM evidence WHERE edge = %s ON CONFLICT DO NOTHING"
)
_EVIDENCE = (
    "INSERT INTO evidence (part, edge, memory, day_first, day_last) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (part, edge, memory) DO UPDATE SET withdrawn = false,"
    " day_first = excluded.day_first, day_last = excluded.day_last"
)
_HEARD = "INSERT INTO edge_messages (part, edge, message) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_EDGE_TOMBSTONE = (
    "INSERT INTO edge_tombstones (part, seq, row, user_id, agent_id, run_id, erased)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_NODE_TOMBSTONE = (
    "INSERT INTO node_tombstones (part, seq, row, user_id, agent_id, run_id) VALUES (%s, %s, %s, %s, %s, %s)"
)


def next_rows(count: int) -> Steps[list[int]]:
    """Reserve `count` row numbers, ascending."""
    if not count:
        return []
    rows = yield from ask("SELECT nextval('next_row') FROM generate_series(1, %s)", (count,))
    return [row for (row,) in rows]


def _withdrawn(memory: int, edges: Sequence[int]) -> Statement:
    sql = "UPDATE evidence SET withdrawn = true WHERE memory = %s AND edge = ANY(%s)"
    return Statement(sql, (memory, list(edges)))


def _lighter(edges: Sequence[int], seqs: Sequence[int], *, least: int) -> Statement:
    return Statement(
        "UPDATE edges AS e SET weight = greatest(%s, e.weight - 1), changed = w.seq"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS w (row, seq) WHERE e.row = w.row",
        (least, list(edges), list(seqs)),
    )


# --- names that went (see MergeLedger) ---------------------------------------------------------------------------


def stays_for(scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, int]]:
    """The nodes that names were merged into, by their keys."""
    sql = (
        "SELECT a.key, m.node FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"
        " WHERE a.part = %s AND a.exact = %s AND a.kind = 'entity' AND a.standing AND a.key = ANY(%s)"
    )
    found = yield from ask(sql, (part_of(scope), exact_of(scope), list(keys)))
    return {bytes(key): node for key, node in found if node is not None}


def stays_called(scope: Scope, relationships: Sequence[str]) -> Steps[dict[str, str]]:
    """What relationships are called since they were merged, and those were, ..."""
    called = {name: name for name in relationships}
    left = set(called)
    sql = (
        "SELECT a.key, m.name FROM aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge"
        " WHERE a.part = %s AND a.exact = %s AND a.kind = 'relationship' AND a.standing AND a.key = ANY(%s)"
    )
    while left:
        keys = list({entity_key(called[name]) for name in left})
        found = {bytes(key): name for key, name in (yield from ask(sql, (part_of(scope), exact_of(scope), keys)))}
        left = {name for name in left if entity_key(called[name]) in found}
        called |= {name: found[entity_key(called[name])] for name in left}
    return called


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_support(memory: int) -> Steps[None]:
    """Before a memory and its messages are erased: relations that came from nothing else go with them."""
    said, heard, *_ = yield from together(
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
    gone = yield from ask(
        "SELECT e.row FROM edges AS e WHERE e.row = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM evidence AS v WHERE v.part = e.part AND v.edge = e.row)"
        " AND (e.row = ANY(%s)"
        " OR NOT EXISTS (SELECT 1 FROM edge_messages AS h WHERE h.part = e.part AND h.edge = e.row))",
        (left, supported),
    )
    erased = yield from _erase_edges([row for (row,) in gone])
    lighter = [edge for edge in supported if edge not in erased]
    seqs = yield from next_seq(len(lighter))
    yield from every(
        "UPDATE edges SET weight = greatest(1, weight - %s), changed = %s WHERE row = %s",
        [(0 if supports[edge] else 1, seq, edge) for seq, edge in zip(seqs, lighter, strict=True)],
    )


def erase_graph(scope: Scope) -> Steps[None]:
    """Erase every node and relation of a scope."""
    where, values = scope_sql(scope)
    edges = yield from ask(f"SELECT row FROM edges WHERE {where}", values)
    yield from _erase_edges([row for (row,) in edges])
    nodes = yield from ask(f"SELECT row FROM nodes WHERE {where}", values)
    yield from _erase_nodes([row for (row,) in nodes])


def _erase_edges(edges: Sequence[int]) -> Steps[set[int]]:
    """Remove relations, and the nodes that no relation is left to; returns the rows of the relations there were."""
    if not edges:
        return set()
    gone = yield from bury_edges(edges)
    alone = yield from ask(
        "SELECT n.row FROM nodes AS n WHERE n.row = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE e.part = n.part AND e.source = n.row)"
        " AND NOT EXISTS (SELECT 1 FROM edges AS e WHERE e.part = n.part AND e.destination = n.row)",
        ([end for _, *ends in gone for end in ends],),
    )
    yield from _erase_nodes([row for (row,) in alone])
    return {row for row, _, _ in gone}


def bury_edges(edges: Sequence[int]) -> Steps[list[tuple[int, int, int]]]:
    """Delete edges, and tell projections by tombstones; returns their rows and those of their ends."""
    gone = yield from ask(
        "DELETE FROM edges WHERE row = ANY(%s) RETURNING part, row, user_id, agent_id, run_id, source, destination",
        (list(edges),),
    )
    seqs = yield from next_seq(len(gone))
    buried = [(part, seq, *row, True) for seq, (part, *row, _, _) in zip(seqs, gone, strict=True)]
    yield from every(_EDGE_TOMBSTONE, buried)
    return [(row[1], row[5], row[6]) for row in gone]


def _erase_nodes(nodes: Sequence[int]) -> Steps[None]:
    if not nodes:
        return
    # what was taken back is on record while its names are
    yield from ask(
        "DELETE FROM merges AS m USING nodes AS n, aliases AS a WHERE n.row = ANY(%s) AND a.part = n.part"
        " AND a.exact = n.exact AND a.key = n.key AND a.kind = 'entity' AND NOT a.standing"
        " AND m.part = a.part AND m.row = a.merge",
        (list(nodes),),
    )
    yield from bury_nodes(nodes)


def bury_nodes(nodes: Sequence[int]) -> Steps[None]:
    """Delete nodes, and tell projections by tombstones."""
    gone = yield from ask(
        "DELETE FROM nodes WHERE row = ANY(%s) RETURNING part, row, user_id, agent_id, run_id", (list(nodes),)
    )
    seqs = yield from next_seq(len(gone))
    yield from every(_NODE_TOMBSTONE, [(part, seq, *row) for seq, (part, *row) in zip(seqs, gone, strict=True)])
