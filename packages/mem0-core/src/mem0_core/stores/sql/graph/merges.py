"""Merges of entities and of relationships: applied, reverted, and pruned of erased memories.

A merge keeps the rows that it deletes (`merge_undo`), with their row numbers and without their vectors. Readers of the
graph do not know merges: they see the rows that exist.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Merge, MergeKind, Scope, Triplet, entity_key, new_id
from mem0_core.errors import NotFoundError
from mem0_core.interfaces import MergePlan, check_embedding_space
from mem0_core.stores.sql.engine.dialect import Dialect, Engine
from mem0_core.stores.sql.engine.steps import (
    StepMethods,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    insert_sql,
    read_method,
    write_method,
)
from mem0_core.stores.sql.graph.erasure import delete_edges, delete_nodes
from mem0_core.stores.sql.graph.merge_undo import (
    MergeUndo,
    MovedEdge,
    check_no_later_merge,
    first_type,
    merge_from_row,
    merged_ends,
    relink_edges,
    remove_memory,
    split_from_target,
)
from mem0_core.stores.sql.graph.reader import resolve_relationship_aliases
from mem0_core.stores.sql.graph.writer import GraphWriter
from mem0_core.stores.sql.meta import read_embedding_space
from mem0_core.stores.sql.rows import scope_from_ids, scope_ids

_MERGE_COLUMNS = (
    "m.row, m.id, m.user_id, m.agent_id, m.run_id, m.kind, m.name, m.score, m.reasons, m.at, m.undone, m.taken"
)


class SqlMerges(StepMethods):
    """A `MergeLedger`."""

    def __init__(self, db: Engine) -> None:
        self._db = db
        self._dialect = db.dialect

    @write_method
    def apply(self, plan: MergePlan, *, at: str, embedding_space: tuple[str, int]) -> Steps[Merge | None]:
        yield from self._dialect.lock_scope(plan.merge.scope)
        check_embedding_space((yield from read_embedding_space()), embedding_space)
        edges = yield from _select_edges(self._dialect, plan)
        ends = {end for edge in edges for end in (merged_ends(plan, edge) or ())[::2]}
        names = yield from _select_names(self._dialect, ends)
        merge_apply = _MergeApply(self._dialect, plan, embedding_space[1], edges, names)
        return (yield from merge_apply.run(at)) if (yield from merge_apply.is_plan_current()) else None

    @read_method
    def texts_to_embed(self, merge_id: str) -> Steps[list[str]]:
        return (yield from _load_revert(self._dialect, merge_id)).texts()

    @write_method
    def revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, embedding_space: tuple[str, int]
    ) -> Steps[Merge | None]:
        for ids in (yield from fetch_rows("SELECT user_id, agent_id, run_id FROM merges WHERE id = ?", (merge_id,))):
            yield from self._dialect.lock_scope(scope_from_ids(*ids))
        check_embedding_space((yield from read_embedding_space()), embedding_space)
        merge_revert = yield from _load_revert(self._dialect, merge_id)
        if not vectors.keys() >= set(merge_revert.texts()):
            return None
        yield from merge_revert.run(vectors, embedding_space[1], at)
        return dataclasses.replace(merge_revert.merge, undone_at=at)

    @read_method
    def list_merges(self, scope: Scope) -> Steps[list[Merge]]:
        yield from self._dialect.set_scope(scope)
        where, values = self._dialect.in_scope(scope, "m")
        return [merge for _, merge, _ in (yield from _select_merges(self._dialect, where, values))]

    @read_method
    def aliases(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> Steps[dict[bytes, str]]:
        dialect = self._dialect
        yield from dialect.set_scope(scope)
        where, values = dialect.in_exact_scope(scope, "a") if exact else dialect.in_scope(scope, "a")
        found = yield from fetch_rows(
            "SELECT a.key, m.name, m.node, m.user_id, m.agent_id, m.run_id FROM aliases AS a"
            f" JOIN merges AS m ON {dialect.same_part('m', 'a')}m.row = a.merge"
            f" WHERE {where} AND a.kind = ? AND a.standing",
            [*values, kind],
        )
        if kind == "entity":
            names = yield from _select_names(dialect, {node for _, _, node, *_ in found})
            return {bytes(key): names[node] for key, _, node, *_ in found if node in names}
        present: dict[bytes, str] = {}
        for key, name, _, *ids in found:
            resolved = yield from resolve_relationship_aliases(dialect, scope_from_ids(*ids), [name])
            present[bytes(key)] = resolved[name]
        return present


def _select_names(dialect: Dialect, nodes: set[int]) -> Steps[dict[int, str]]:
    if not nodes:
        return {}
    among, listed = dialect.among("row", list(nodes))
    return dict((yield from fetch_rows(f"SELECT row, name FROM nodes WHERE {among}", listed)))


def _select_merges(dialect: Dialect, where: str, values: Sequence[Any]) -> Steps[list[tuple[int, Merge, MergeUndo]]]:
    """Return the merges ``m`` that a condition holds for, in order, each with its row and its undo data."""
    rows = yield from fetch_rows(f"SELECT {_MERGE_COLUMNS} FROM merges AS m WHERE {where} ORDER BY m.row", values)
    among, listed = dialect.among("merge", [row[0] for row in rows])
    aliases = f"SELECT merge, name FROM aliases WHERE {among} ORDER BY {dialect.insertion_order}"
    names: dict[int, list[str]] = {row[0]: [] for row in rows}
    for merge, name in (yield from fetch_rows(aliases, listed)):
        names[merge].append(name)
    undo = {row[0]: MergeUndo.from_json(row[-1]) for row in rows}
    return [(row[0], merge_from_row(row, names[row[0]], undo[row[0]]), undo[row[0]]) for row in rows]


def _has_evidence(dialect: Dialect, scope: Scope, edge: int) -> Steps[bool]:
    part, part_values = dialect.in_part(scope)
    sql = " UNION ALL ".join(f"SELECT 1 FROM {table} WHERE {part}edge = ?" for table in ("evidence", "edge_messages"))
    return bool((yield from fetch_rows(f"{sql} LIMIT 1", [*part_values, edge] * 2)))


# --- applying ----------------------------------------------------------------------------------------------------


def _select_edges(dialect: Dialect, plan: MergePlan) -> Steps[list[MovedEdge]]:
    """Return the relations that a merge moves, oldest first."""
    exact, exact_values = dialect.in_exact_scope(plan.merge.scope)
    if plan.kept_node is None:
        which, values = dialect.among("relationship", plan.merge.merged_names, "text")
    else:
        (source, rows), (destination, _) = (dialect.among(end, plan.merged_nodes) for end in ("source", "destination"))
        which, values = f"({source} OR {destination})", rows * 2
    found = yield from fetch_rows(
        "SELECT row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at FROM edges"
        f" WHERE {exact} AND {which} ORDER BY row",
        exact_values + values,
    )
    edges = {row[0]: MovedEdge(*row) for row in found}
    among, listed = dialect.among("edge", list(edges))
    evidence = f"SELECT edge, memory, withdrawn, day_first, day_last FROM evidence WHERE {among} ORDER BY memory"
    for edge, memory, withdrawn, *days in (yield from fetch_rows(evidence, listed)):
        edges[edge].evidence.append([memory, int(withdrawn), *days])
    part, part_values = dialect.in_part(plan.merge.scope)
    messages = f"SELECT edge, message FROM edge_messages WHERE {part}{among} ORDER BY message"
    for edge, message in (yield from fetch_rows(messages, part_values + listed)):
        edges[edge].messages.append(message)
    return list(edges.values())


@dataclass(frozen=True, slots=True)
class _MergeApply:
    """One merge, within a write transaction that holds its partition.

    Attributes:
        dialect: SQL of the database.
        plan: the planned merge, with vectors of the moved relations.
        dims: length of the vectors.
        edges: relations that move.
        names: names of the nodes that these relations will join, by row.
    """

    dialect: Dialect
    plan: MergePlan
    dims: int
    edges: list[MovedEdge]
    names: Mapping[int, str]

    def is_plan_current(self) -> Steps[bool]:
        """Return True if the graph has not changed since the plan was made."""
        rows = [row for row in (self.plan.kept_node, *self.plan.merged_nodes) if row is not None]
        exact, values = self.dialect.in_exact_scope(self.plan.merge.scope)
        among, listed = self.dialect.among("row", rows)
        [(count,)] = yield from fetch_rows(f"SELECT count(*) FROM nodes WHERE {among} AND {exact}", listed + values)
        is_embedded = all(
            self._sentence(ends) in self.plan.vectors for edge in self.edges if (ends := merged_ends(self.plan, edge))
        )
        return bool(count == len(rows) and (self.edges or self.plan.merged_nodes) and is_embedded)

    def run(self, at: str) -> Steps[Merge]:
        merged = list(self.plan.merged_nodes)
        among, listed = self.dialect.among("row", merged)
        nodes = yield from fetch_rows(f"SELECT row, name, type FROM nodes WHERE {among} ORDER BY row", listed)
        undo = MergeUndo(nodes=[list(row) for row in nodes], relations=len(self.edges))
        for edge in self.edges:
            yield from self._move_edge(edge)
        undo.edges = self.edges
        yield from delete_edges(self.dialect, [edge.row for edge in self.edges])
        if self.plan.kept_node is not None:
            undo.type = yield from self._fill_type(undo.nodes)
            part, part_values = self.dialect.in_part(self.plan.merge.scope)
            among, listed = self.dialect.among("node", merged)
            earlier = f"FROM merges WHERE {part}{among}"
            redirected = yield from fetch_rows(f"SELECT row, node {earlier}", part_values + listed)
            undo.redirected_merges = [list(row) for row in redirected]
            yield from execute(
                f"UPDATE merges SET node = ? WHERE {part}{among}", [self.plan.kept_node, *part_values, *listed]
            )
            yield from delete_nodes(self.dialect, merged)
        return (yield from self._save_merge(undo, at))

    def _sentence(self, ends: tuple[int, str, int]) -> str:
        source, relationship, destination = ends
        return Triplet(self.names[source], relationship, self.names[destination]).sentence

    def _move_edge(self, edge: MovedEdge) -> Steps[None]:
        """Move a relation to its merged ends: into the relation that holds there, or into a new one."""
        ends = merged_ends(self.plan, edge)
        if ends is None:
            return
        part, part_values = self.dialect.in_part(self.plan.merge.scope)
        found = []
        if edge.valid_to is None:
            found = yield from fetch_rows(
                f"SELECT row, valid_from FROM edges WHERE {part}source = ? AND relationship = ? AND destination = ?"
                " AND valid_to IS NULL",
                (*part_values, *ends),
            )
        if not found:
            edge.target, edge.created_target = (yield from self._create_edge(edge, ends)), True
        else:
            edge.target, edge.target_valid_from = found[0]
            edge.target_had_evidence = yield from _has_evidence(self.dialect, self.plan.merge.scope, found[0][0])
            [seq] = yield from self.dialect.reserve_seqs(1)
            yield from execute(
                f"UPDATE edges SET weight = weight + ?, valid_from = {self.dialect.least}(valid_from, ?), changed = ?"
                f" WHERE {part}row = ?",
                (edge.weight, edge.valid_from, seq, *part_values, edge.target),
            )
        yield from self._move_evidence(edge)

    def _move_evidence(self, edge: MovedEdge) -> Steps[None]:
        part, part_where = self.dialect.in_part(self.plan.merge.scope)
        part_values = self.dialect.part_values(self.plan.merge.scope)
        insert = insert_sql("evidence", f"{self.dialect.part}{_EVIDENCE_COLUMNS}", "ON CONFLICT DO NOTHING")
        support = f"UPDATE evidence SET withdrawn = false WHERE {part}edge = ? AND memory = ? AND withdrawn"
        for memory, withdrawn, *days in edge.evidence:
            if (yield from execute(insert, (*part_values, edge.target, memory, bool(withdrawn), *days))):
                edge.added_memories.append(memory)
            elif not withdrawn and (yield from execute(support, (*part_where, edge.target, memory))):
                edge.restored_memories.append(memory)
        insert = insert_sql("edge_messages", f"{self.dialect.part}edge, message", "ON CONFLICT DO NOTHING")
        for message in edge.messages:
            if (yield from execute(insert, (*part_values, edge.target, message))):
                edge.added_messages.append(message)

    def _create_edge(self, edge: MovedEdge, ends: tuple[int, str, int]) -> Steps[int]:
        [row] = yield from self.dialect.reserve_rows("edges", 1)
        vector = self.dialect.vector(self.plan.vectors[self._sentence(ends)], self.dims)
        yield from _insert_edge(self.dialect, self.plan.merge.scope, row, ends, edge, vector)
        return row

    def _fill_type(self, nodes: Sequence[Sequence[Any]]) -> Steps[str | None]:
        """Give the kept node a type if only merged ones have one, and return its former type; None if it keeps it."""
        type = first_type(nodes)
        if not type:
            return None
        [seq] = yield from self.dialect.reserve_seqs(1)
        sql = "UPDATE nodes SET type = ?, changed = ? WHERE row = ? AND type = ''"
        return "" if (yield from execute(sql, (type, seq, self.plan.kept_node))) else None

    def _save_merge(self, undo: MergeUndo, at: str) -> Steps[Merge]:
        merge = dataclasses.replace(self.plan.merge, id=new_id(), merged_at=at, relations=undo.relations)
        exact, prefix = self.dialect.exact, (*self.dialect.exact_values(merge.scope), *scope_ids(merge.scope))
        columns = f"{exact}user_id, agent_id, run_id, id, kind, name, node, score, reasons, at, taken"
        values = (merge.id, merge.kind, merge.name, self.plan.kept_node, merge.score)
        reasons = json.dumps(merge.reasons, ensure_ascii=False)
        [(row,)] = yield from fetch_rows(
            insert_sql("merges", columns, "RETURNING row"), (*prefix, *values, reasons, at, undo.to_json())
        )
        yield from execute_many(
            insert_sql("aliases", f"{exact}user_id, agent_id, run_id, merge, kind, key, name, standing"),
            [(*prefix, row, merge.kind, entity_key(name), name, True) for name in merge.merged_names],
        )
        return merge


_EVIDENCE_COLUMNS = "edge, memory, withdrawn, day_first, day_last"


def _insert_edge(
    dialect: Dialect, scope: Scope, row: int, ends: tuple[int, str, int], edge: MovedEdge, vector: Any
) -> Steps[None]:
    times = (edge.valid_from, edge.valid_to, edge.invalidated_at)
    writer = GraphWriter(dialect, scope, edge.valid_from, 0, "invalidate")
    yield from writer.insert_edge(row, ends, edge.weight, times, vector)


# --- reverting ---------------------------------------------------------------------------------------------------


def _load_revert(dialect: Dialect, merge_id: str) -> Steps[_MergeRevert]:
    """Return the revert of a merge that is in force.

    Raises:
        NotFoundError: there is no such merge, or it was reverted.
        InputError: a later merge builds on it.
    """
    found = yield from _select_merges(dialect, "m.id = ? AND m.undone IS NULL", (merge_id,))
    if not found:
        raise NotFoundError(merge_id, "merge")
    row, merge, undo = found[0]
    exact, values = dialect.in_exact_scope(merge.scope)
    later = yield from fetch_rows(
        f"SELECT taken FROM merges WHERE {exact} AND row > ? AND undone IS NULL", [*values, row]
    )
    check_no_later_merge(row, merge, undo, [MergeUndo.from_json(text) for (text,) in later])
    among, listed = dialect.among("row", [edge.target for edge in undo.edges if edge.target is not None])
    existing = {row for (row,) in (yield from fetch_rows(f"SELECT row FROM edges WHERE {among}", listed))}
    names = yield from _select_names(dialect, {end for edge in undo.edges for end in (edge.source, edge.destination)})
    names |= {node[0]: node[1] for node in undo.nodes}
    edges = [edge for edge in undo.edges if edge.target is None or edge.target in existing]  # the others were erased
    return _MergeRevert(dialect, row, merge, undo, edges, names)


@dataclass(frozen=True, slots=True)
class _MergeRevert:
    """Revert of one merge, within a write transaction that holds its partition.

    Attributes:
        dialect: SQL of the database.
        row: row of the merge.
        merge: the merge.
        undo: rows that the merge deleted.
        edges: those relations that can be restored.
        names: names of the nodes of these relations, by row.
    """

    dialect: Dialect
    row: int
    merge: Merge
    undo: MergeUndo
    edges: list[MovedEdge]
    names: Mapping[int, str]

    def texts(self) -> list[str]:
        """Return the texts of restored nodes and relations, for their vectors."""
        nodes = [node[1] for node in self.undo.nodes]
        return list(dict.fromkeys([*nodes, *(self._sentence(edge) for edge in self.edges)]))

    def _sentence(self, edge: MovedEdge) -> str:
        return Triplet(self.names[edge.source], edge.relationship, self.names[edge.destination]).sentence

    def run(self, vectors: Mapping[str, Any], dims: int, at: str) -> Steps[None]:
        dialect = self.dialect
        part, part_values = dialect.in_part(self.merge.scope)
        for edge in reversed(self.edges):
            yield from self._split_from_target(edge, at)
        for node in self.undo.nodes:
            yield from self._restore_node(node, dialect.vector(vectors[node[1]], dims))
        for edge in self.edges:
            yield from self._restore_edge(edge, dialect.vector(vectors[self._sentence(edge)], dims))
        if self.undo.type is not None:
            [seq] = yield from dialect.reserve_seqs(1)
            yield from execute(
                f"UPDATE nodes SET type = ?, changed = ? WHERE {part}row"
                f" = (SELECT node FROM merges WHERE {part}row = ?)",
                (self.undo.type, seq, *part_values, *part_values, self.row),
            )
        for merge, former_node in self.undo.redirected_merges:
            yield from execute(f"UPDATE merges SET node = ? WHERE {part}row = ?", (former_node, *part_values, merge))
        undo = MergeUndo(relations=self.undo.relations).to_json()
        sql = f"UPDATE merges SET undone = ?, taken = ? WHERE {part}row = ?"
        yield from execute(sql, (at, undo, *part_values, self.row))
        yield from execute(f"UPDATE aliases SET standing = false WHERE {part}merge = ?", (*part_values, self.row))

    def _split_from_target(self, edge: MovedEdge, at: str) -> Steps[None]:
        """Take a relation out of the one that it was moved into. Later changes of that one apply to both."""
        if edge.target is None:
            return
        dialect = self.dialect
        part, part_values = dialect.in_part(self.merge.scope)
        of_target = f"WHERE {part}edge = ?", (*part_values, edge.target)
        [target] = yield from fetch_rows(
            f"SELECT weight, valid_from, valid_to, invalidated_at FROM edges WHERE {part}row = ?", of_target[1]
        )
        withdrawn = yield from fetch_rows(f"SELECT memory, withdrawn FROM evidence {of_target[0]}", of_target[1])
        weight, valid_from = split_from_target(edge, target, dict(withdrawn), at)
        yield from self._remove_added_evidence(edge)
        # Its own evidence may have been erased while the merge was in force.
        if (edge.created_target and weight <= 0) or (
            edge.target_had_evidence and not (yield from _has_evidence(dialect, self.merge.scope, edge.target))
        ):
            yield from delete_edges(dialect, [edge.target])
            return
        [seq] = yield from dialect.reserve_seqs(1)
        yield from execute(
            f"UPDATE edges SET weight = ?, valid_from = ?, changed = ? WHERE {part}row = ?",
            (max(1, weight), valid_from, seq, *of_target[1]),
        )
        remaining = yield from fetch_rows(f"SELECT withdrawn FROM evidence {of_target[0]}", of_target[1])
        if remaining and all(withdrawn for (withdrawn,) in remaining):  # its memories changed while it was in force
            yield from GraphWriter(dialect, self.merge.scope, at, 0, "invalidate").close_unsupported([edge.target])

    def _remove_added_evidence(self, edge: MovedEdge) -> Steps[None]:
        part, part_values = self.dialect.in_part(self.merge.scope)
        for statement, column, rows in (
            ("DELETE FROM evidence", "memory", edge.added_memories),
            ("UPDATE evidence SET withdrawn = true", "memory", edge.restored_memories),
            ("DELETE FROM edge_messages", "message", edge.added_messages),
        ):
            among, listed = self.dialect.among(column, rows)
            yield from execute(f"{statement} WHERE {part}edge = ? AND {among}", [*part_values, edge.target, *listed])

    def _restore_node(self, node: Sequence[Any], vector: Any) -> Steps[None]:
        row, name, type = node
        dialect, scope = self.dialect, self.merge.scope
        part, part_values = dialect.in_part(scope)
        [seq] = yield from dialect.reserve_seqs(1)
        yield from execute(f"DELETE FROM node_tombstones WHERE {part}row = ?", (*part_values, row))
        columns = f"{dialect.exact}user_id, agent_id, run_id, row, name, key, type, seq, changed"
        values = (*dialect.exact_values(scope), *scope_ids(scope), row, name, entity_key(name), type, seq, seq)
        yield from execute(insert_sql("nodes", columns), values)
        insert = insert_sql("node_vectors", f"{dialect.part}row, vector")
        yield from execute(insert, (*dialect.part_values(scope), row, vector))

    def _restore_edge(self, edge: MovedEdge, vector: Any) -> Steps[None]:
        dialect, scope = self.dialect, self.merge.scope
        part, part_where = dialect.in_part(scope)
        part_values = dialect.part_values(scope)
        yield from execute(f"DELETE FROM edge_tombstones WHERE {part}row = ?", (*part_where, edge.row))
        ends = (edge.source, edge.relationship, edge.destination)
        yield from _insert_edge(dialect, scope, edge.row, ends, edge, vector)
        yield from execute_many(
            insert_sql("evidence", f"{dialect.part}{_EVIDENCE_COLUMNS}"),
            [(*part_values, edge.row, memory, bool(withdrawn), *days) for memory, withdrawn, *days in edge.evidence],
        )
        among, listed = dialect.among("row", edge.messages)
        yield from execute(
            f"INSERT INTO edge_messages ({dialect.part}edge, message) SELECT {dialect.part}?, row FROM messages"
            f" WHERE {part}{among} ON CONFLICT DO NOTHING",
            [edge.row, *part_where, *listed],
        )


# --- erasing, within a transaction of the store ------------------------------------------------------------------


def erase_merges(dialect: Dialect, scope: Scope) -> Steps[None]:
    """Erase every merge of a scope."""
    where, values = dialect.in_scope(scope)
    yield from execute(f"DELETE FROM merges WHERE {where}", values)


def erase_from_merges(dialect: Dialect, memory: int, scope: Scope) -> Steps[None]:
    """Erase from merges the relations that only this memory supported. Call it before the memory is erased."""
    exact, values = dialect.in_exact_scope(scope)
    merges = yield from fetch_rows(
        f"SELECT row, taken FROM merges WHERE {exact} AND undone IS NULL ORDER BY row", values
    )
    if not merges:
        return
    sources = yield from fetch_rows("SELECT message FROM sources WHERE memory = ?", (memory,))
    messages = {message for (message,) in sources}
    for row, text in merges:
        yield from _erase_from_merge(dialect, scope, row, MergeUndo.from_json(text), memory, messages)


def _erase_from_merge(
    dialect: Dialect, scope: Scope, row: int, undo: MergeUndo, memory: int, messages: set[int]
) -> Steps[None]:
    part, part_values = dialect.in_part(scope)
    edges: list[MovedEdge] = []
    for edge in undo.edges:
        is_supported, lost_weight = remove_memory(edge, memory, messages)
        if edge.target is not None and lost_weight > 0:
            [seq] = yield from dialect.reserve_seqs(1)
            weight = f"weight = {dialect.greatest}(1, weight - ?)"
            sql = f"UPDATE edges SET {weight}, changed = ? WHERE {part}row = ?"
            yield from execute(sql, (lost_weight, seq, *part_values, edge.target))
        if is_supported:
            edges.append(edge)
    for target, expected, valid_from in relink_edges(undo.edges, edges):
        [seq] = yield from dialect.reserve_seqs(1)
        sql = f"UPDATE edges SET valid_from = ?, changed = ? WHERE {part}row = ? AND valid_from = ?"
        yield from execute(sql, (valid_from, seq, *part_values, target, expected))
    if not edges:
        yield from execute(f"DELETE FROM merges WHERE {part}row = ?", (*part_values, row))
        return
    ends = {end for edge in edges for end in (edge.source, edge.destination)}
    removed_names = [name for node, name, _ in undo.nodes if node not in ends]
    undo.edges, undo.nodes = edges, [node for node in undo.nodes if node[0] in ends]
    yield from execute(f"UPDATE merges SET taken = ? WHERE {part}row = ?", (undo.to_json(), *part_values, row))
    among, listed = dialect.among("name", removed_names, "text")
    sql = f"DELETE FROM aliases WHERE {part}merge = ? AND {among} AND kind = 'entity'"
    yield from execute(sql, [*part_values, row, *listed])
