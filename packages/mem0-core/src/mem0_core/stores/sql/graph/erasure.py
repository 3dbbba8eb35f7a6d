"""Erasure of evidence, relations and nodes, within a transaction of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mem0_core.domain.records import Axis, Scope
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import (
    Statement,
    Steps,
    execute,
    execute_batch,
    execute_many,
    fetch_rows,
    insert_sql,
)

TOMBSTONE_COLUMNS = "row, user_id, agent_id, run_id, seq"


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
    erased = yield from erase_edges(dialect, [row for (row,) in unsupported])
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
    yield from erase_edges(dialect, [row for (row,) in edges])
    nodes = yield from fetch_rows(f"SELECT row FROM nodes WHERE {where}", values)
    yield from _erase_nodes(dialect, [row for (row,) in nodes])


def erase_edges(dialect: Dialect, edges: Sequence[int]) -> Steps[set[int]]:
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
    same_scope = " AND ".join(f"coalesce(a.{axis}, '') = coalesce(n.{axis}, '')" for axis in Axis)
    # Reverted merges remain on record as long as their names exist.
    yield from execute(
        f"DELETE FROM merges WHERE ({dialect.part}row) IN (SELECT {_qualify(dialect.part, 'a')}a.merge FROM nodes AS n"
        f" JOIN aliases AS a ON {dialect.same_part('a', 'n')}a.key = n.key AND {same_scope}"
        f" WHERE {among} AND a.kind = 'entity' AND NOT a.standing)",
        listed,
    )
    yield from delete_nodes(dialect, nodes)


def _qualify(columns: str, table: str) -> str:
    """Put the alias of a table before the columns of a prefix such as ``"part, "``."""
    return "".join(f"{table}.{column}, " for column in columns.split(", ")[:-1])


def delete_edges(dialect: Dialect, edges: Sequence[int]) -> Steps[list[tuple[int, int, int]]]:
    """Delete relations, write tombstones for projections, and return the rows of the relations and of their nodes."""
    deleted = yield from _delete_rows(dialect, "edges", edges, ", source, destination")
    tombstones = [(*row[:-3], row[-1], True) for row in deleted]
    yield from execute_many(insert_sql("edge_tombstones", f"{dialect.part}{TOMBSTONE_COLUMNS}, erased"), tombstones)
    return [(row[-7], row[-3], row[-2]) for row in deleted]


def delete_nodes(dialect: Dialect, nodes: Sequence[int]) -> Steps[None]:
    """Delete nodes, and write tombstones for projections."""
    deleted = yield from _delete_rows(dialect, "nodes", nodes)
    yield from execute_many(insert_sql("node_tombstones", f"{dialect.part}{TOMBSTONE_COLUMNS}"), deleted)


def _delete_rows(dialect: Dialect, table: str, rows: Sequence[int], columns: str = "") -> Steps[list[tuple[Any, ...]]]:
    """Delete rows, and return of each its part, its row, its ids, further columns, and a number for its tombstone."""
    if not rows:
        return []
    among, listed = dialect.among("row", rows)
    sql = f"DELETE FROM {table} WHERE {among} RETURNING {dialect.part}row, user_id, agent_id, run_id{columns}"
    deleted = yield from fetch_rows(sql, listed)
    seqs = yield from dialect.reserve_seqs(len(deleted))
    return [(*row, seq) for row, seq in zip(deleted, seqs, strict=True)]
