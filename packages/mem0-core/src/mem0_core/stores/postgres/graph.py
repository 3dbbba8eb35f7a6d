"""Graph statements that are faster in PostgreSQL's own SQL than in the shared one."""

from __future__ import annotations

from collections.abc import Sequence

from mem0_core.domain.records import Scope
from mem0_core.interfaces import EdgeRow, GraphDelta, NodeRow
from mem0_core.stores.postgres.engine.session import Database
from mem0_core.stores.postgres.vectors import PostgresVectors
from mem0_core.stores.sql.engine.steps import Steps, fetch_rows, read_method
from mem0_core.stores.sql.graph.reader import HAS_DAYS, SqlGraph, read_position, validity_condition
from mem0_core.stores.sql.vectors import EDGE_VECTORS, NODE_VECTORS


class PostgresGraph(SqlGraph):
    """A `GraphStore`, for reading."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, PostgresVectors(db, NODE_VECTORS), PostgresVectors(db, EDGE_VECTORS))

    def _select_incident(
        self, nodes: Sequence[int], scope: Scope, limit: int, as_of: str | None
    ) -> Steps[dict[int, list[int]]]:
        # One statement for all nodes. The shared one is planned and executed for each.
        where, values = self._dialect.in_scope(scope, "e")
        valid, times = validity_condition(as_of)
        one_end = (
            f"(SELECT e.row FROM edges AS e WHERE e.{{end}} = n.node AND {where} AND {valid}"
            " ORDER BY e.row DESC LIMIT ?)"
        )
        sql = (
            "SELECT n.node, t.row FROM unnest(?::bigint[]) AS n (node) CROSS JOIN LATERAL"
            f" ({one_end.format(end='source')} UNION {one_end.format(end='destination')} ORDER BY 1 DESC LIMIT ?) AS t"
            " ORDER BY n.node, t.row DESC"
        )
        conditions = (*values, *times, limit)
        found: dict[int, list[int]] = {node: [] for node in nodes}
        for node, row in (yield from fetch_rows(sql, (list(nodes), *conditions, *conditions, limit))):
            found[node].append(row)
        return found

    @read_method
    def delta_since(self, scope: Scope, *, after: int = 0) -> Steps[GraphDelta]:
        # One statement sees one state, without the round trips of a transaction: no relation comes without its nodes.
        # The position is read before it. Rows that became visible in between are returned again by the next call.
        position = yield from read_position(self._dialect)
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "e")
        since, seqs = (" AND e.changed > ?", [after]) if after else ("", [])
        days = (
            "(SELECT t.edge, min(t.day_first) AS first, max(t.day_last) AS last FROM evidence AS t"
            f" WHERE NOT t.withdrawn AND {HAS_DAYS} AND t.edge = e.row GROUP BY t.edge)"
        )
        sql = (
            "SELECT 0, e.row, e.user_id, e.name, e.type, e.key, NULL::bigint, NULL::bigint, NULL::bigint, NULL, NULL"
            f" FROM nodes AS e WHERE {where}{since} UNION ALL"
            " SELECT 1, e.row, e.relationship, e.valid_from, e.valid_to, NULL::bytea, e.source, e.destination,"
            f" e.weight, t.first, t.last FROM edges AS e LEFT JOIN LATERAL {days} AS t ON true WHERE {where}{since}"
        )
        all_values = [*values, *seqs, *values, *seqs]
        if after:
            sql += (
                " UNION ALL SELECT 2, e.row, NULL, NULL, NULL, NULL, e.seq, NULL, NULL, NULL, NULL"
                f" FROM edge_tombstones AS e WHERE {where} AND e.erased AND e.seq > ?"
            )
            all_values += [*values, after]
        found = sorted((yield from fetch_rows(sql, all_values)), key=lambda row: row[:2])
        nodes: list[NodeRow] = [(row[1], row[2], bytes(row[5]), row[3], row[4]) for row in found if row[0] == 0]
        edges: list[EdgeRow] = [
            (row[1], row[6], row[2], row[7], row[8], row[3], row[4], row[9], row[10]) for row in found if row[0] == 1
        ]
        removed = [row for _, row in sorted((row[6], row[1]) for row in found if row[0] == 2)]
        return GraphDelta(position, nodes, edges, removed)


def find_partitions(*, relations: Sequence[int] = (), memory_ids: Sequence[str] = ()) -> Steps[list[str]]:
    """Return the partitions that a writer locks before it ends these relations, or those of these memories."""
    if not relations and not memory_ids:
        return []
    sql = (
        "SELECT part FROM edges WHERE row = ANY(?) UNION SELECT v.part FROM evidence AS v"
        " JOIN memories AS m ON m.row = v.memory WHERE m.id = ANY(?)"
    )
    return [part for (part,) in (yield from fetch_rows(sql, (list(relations), list(memory_ids))))]
