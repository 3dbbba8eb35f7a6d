"""Graph of entities and relations: reading, and the names that were merged into others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import DateRange, Node, Relation, Scope, Trust, entity_key
from mem0_core.interfaces import ChangePosition, GraphChanges, GraphDelta, VectorSource
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    Statement,
    StepMethods,
    Steps,
    execute_batch,
    fetch_rows,
    read_method,
    snapshot_method,
)
from mem0_core.stores.sql.rows import first_column, node_from_row, relation_from_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        among, listed = dialect.equals_key("n.key", keys, scope)
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
    def destinations(self, scope: Scope, source: str, relationships: Sequence[str]) -> Steps[list[str]]:
        dialect = self._dialect
        yield from dialect.set_scope(scope)
        where, values = dialect.in_exact_scope(scope, "s")
        among, listed = dialect.among("e.relationship", list(relationships), "text")
        same_key, key = dialect.equals_key("s.key", [entity_key(source)], scope)
        sql = (
            f"SELECT d.name FROM nodes AS s JOIN edges AS e ON {dialect.same_part('e', 's')}e.source = s.row"
            f" JOIN nodes AS d ON {dialect.same_part('d', 'e')}d.row = e.destination"
            f" WHERE {where} AND {same_key} AND e.valid_to IS NULL AND {among} ORDER BY e.row"
        )
        return [name for (name,) in (yield from fetch_rows(sql, [*values, *key, *listed]))]

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
    def untrusted_relation_rows(self, scope: Scope, min_trust: Trust) -> Steps[set[int]]:
        yield from self._dialect.set_scope(scope)
        same = self._dialect.same_part
        where, values = self._dialect.in_scope(scope, "e")
        stated = (
            f"EXISTS (SELECT 1 FROM edge_messages AS h JOIN messages AS m ON {same('m', 'h')}m.row = h.message"
            f" WHERE {same('h', 'e')}h.edge = e.row AND m.trust >= ?)"
        )
        proven = (
            "EXISTS (SELECT 1 FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
            f" WHERE {same('v', 'e')}v.edge = e.row AND NOT v.withdrawn AND m.trust >= ?)"
        )
        ended = (
            f"SELECT 1 FROM endings AS d JOIN messages AS m ON {same('m', 'd')}m.row = d.message"
            f" WHERE {same('d', 'e')}d.kind = 'relation' AND d.target = e.row"
        )
        least = int(min_trust)
        found = yield from fetch_rows(
            f"SELECT e.row FROM edges AS e WHERE {where} AND (NOT ({stated} OR {proven})"
            f" OR (EXISTS ({ended}) AND NOT EXISTS ({ended} AND m.trust >= ?)))",
            [*values, least, least, least],
        )
        return {row for (row,) in found}

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
        statements = [
            Statement(
                f"SELECT e.row, e.user_id, e.key, e.name, e.type FROM nodes AS e WHERE {where} ORDER BY +e.row", values
            ),
            Statement(
                "SELECT e.row, e.source, e.relationship, e.destination, e.weight, e.valid_from, e.valid_to,"
                f" (SELECT min(t.day_first) {days}), (SELECT max(t.day_last) {days})"
                f" FROM edges AS e WHERE {where} ORDER BY +e.row",
                values,
            ),
        ]
        if after:
            sql = f"SELECT e.row FROM edge_tombstones AS e WHERE {scoped} AND e.erased AND e.seq > ? ORDER BY e.seq"
            statements.append(Statement(sql, [*ids, after]))
        nodes, edges, *erased = yield from execute_batch(*statements)
        removed = [row for result in erased for (row,) in result.rows]
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
        selected = yield from select_relations_by_rows(dialect, [row[0] for row in edges])
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


def edges_with_nodes(dialect: Dialect, edge: str = "e") -> str:
    """Return the SQL of relations, under an alias, with both of their nodes: ``s``, the source, and ``d``."""
    return (
        f"edges AS {edge} JOIN nodes AS s ON {dialect.same_part('s', edge)}s.row = {edge}.source"
        f" JOIN nodes AS d ON {dialect.same_part('d', edge)}d.row = {edge}.destination"
    )


def _select_relations(
    dialect: Dialect, tail: str, values: Sequence[Any], *, with_evidence: bool = True
) -> Steps[list[Relation]]:
    rows = yield from fetch_rows(f"SELECT {_RELATION_COLUMNS} FROM {edges_with_nodes(dialect)} {tail}", values)
    memories: dict[int, list[str]] = {}
    days: dict[int, DateRange] = {}
    if with_evidence and rows:
        memories, days = yield from _select_evidence(dialect, [row[0] for row in rows])
    return [relation_from_row(row, memories.get(row[0], ()), days.get(row[0])) for row in rows]


def select_relations_by_rows(dialect: Dialect, edges: Sequence[int]) -> Steps[list[Relation]]:
    """Return relations with their evidence, in the order of their rows."""
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


# --- merged names -----------------------------------------------------------------------------------------------


def _alias_condition(dialect: Dialect, scope: Scope, kind: str, keys: Sequence[bytes]) -> tuple[str, list[Any]]:
    """Return the condition of aliases ``a`` of exactly this scope that are in force."""
    where, values = dialect.in_exact_scope(scope, "a")
    among, listed = dialect.equals_key("a.key", keys, scope)
    return f"{where} AND a.kind = '{kind}' AND a.standing AND {among}", values + listed


def resolve_node_aliases(dialect: Dialect, scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, int]]:
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
