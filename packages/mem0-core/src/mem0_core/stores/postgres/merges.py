"""Merges of entities and relationships in the PostgreSQL truth: done, taken back, and pruned of what is erased.

It means what `sqlite_merges` means; what the two decide alike is in `taken`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mem0_core.domain.records import Merge, MergeKind, Scope, Triplet, entity_key, new_id
from mem0_core.errors import NotFoundError
from mem0_core.interfaces import MergePlan, check_embedding_space
from mem0_core.stores.postgres.graph import (
    GraphWriter,
    delete_edges,
    delete_nodes,
    reserve_rows,
    resolve_relationship_aliases,
)
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_from_ids, scope_ids, scope_sql
from mem0_core.stores.postgres.session import (
    Database,
    Steps,
    execute,
    execute_many,
    fetch_rows,
    lock_partitions,
    read_methods,
    reserve_seqs,
    set_scope,
    write_methods,
)
from mem0_core.stores.sql.merge_undo import (
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
from mem0_core.stores.sql.meta import read_embedding_space
from mem0_core.stores.sql.rows import to_stored_vector

__all__ = ["PostgresMerges", "erase_from_merges", "erase_merges"]

_MERGE_COLUMNS = (
    "m.row, m.id, m.user_id, m.agent_id, m.run_id, m.kind, m.name, m.score, m.reasons, m.at, m.undone, m.taken,"
    " ARRAY(SELECT a.name FROM aliases AS a WHERE a.part = m.part AND a.merge = m.row ORDER BY a.place)"
)
_EXACT_SCOPE_CONDITION = "part = %s AND exact = %s"


def _exact_scope_values(scope: Scope) -> tuple[str, bytes]:
    return partition_key(scope), scope_digest(scope)


class PostgresMerges:
    """A `MergeLedger`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _apply(self, plan: MergePlan, *, at: str, embedding_space: tuple[str, int]) -> Steps[Merge | None]:
        scope = plan.merge.scope
        yield from set_scope(scope)
        yield from lock_partitions(partition_key(scope))
        check_embedding_space((yield from read_embedding_space()), embedding_space)
        edges = yield from _select_edges(plan)
        names = yield from _select_names({end for edge in edges for end in (merged_ends(plan, edge) or ())[::2]})
        merge_apply = _MergeApply(plan, embedding_space[1], edges, names)
        return (yield from merge_apply.run(at)) if (yield from merge_apply.is_plan_current()) else None

    apply, aapply = write_methods(_apply)

    def _texts_to_embed(self, merge_id: str) -> Steps[list[str]]:
        row, merge, undo = yield from _load_merge(merge_id)
        return (yield from _load_revert(row, merge, undo)).texts()

    texts_to_embed, atexts_to_embed = read_methods(_texts_to_embed)

    def _revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, embedding_space: tuple[str, int]
    ) -> Steps[Merge | None]:
        found = yield from fetch_rows("SELECT part FROM merges WHERE id = %s", (merge_id,))
        yield from lock_partitions(*(part for (part,) in found))
        check_embedding_space((yield from read_embedding_space()), embedding_space)
        row, merge, undo = yield from _load_merge(merge_id)
        merge_revert = yield from _load_revert(row, merge, undo)
        if not vectors.keys() >= set(merge_revert.texts()):
            return None
        yield from merge_revert.run(vectors, embedding_space[1], at)
        return dataclasses.replace(merge, undone_at=at)

    revert, arevert = write_methods(_revert)

    def _list_merges(self, scope: Scope) -> Steps[list[Merge]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope, "m")
        rows = yield from fetch_rows(f"SELECT {_MERGE_COLUMNS} FROM merges AS m WHERE {where} ORDER BY m.row", values)
        return [merge_from_row(row, row[-1]) for row in rows]

    list_merges, alist_merges = read_methods(_list_merges)

    def _aliases(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> Steps[dict[bytes, str]]:
        yield from set_scope(scope)
        where, values = (
            ("a.part = %s AND a.exact = %s", [*_exact_scope_values(scope)]) if exact else scope_sql(scope, "a")
        )
        gone = f"aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge WHERE {where}"
        sql = (
            f"SELECT a.key, m.name, m.node, m.user_id, m.agent_id, m.run_id FROM {gone} AND a.kind = %s AND a.standing"
        )
        found = yield from fetch_rows(sql, (*values, kind))
        if kind == "entity":
            names = yield from _select_names({node for _, _, node, *_ in found})
            return {bytes(key): names[node] for key, _, node, *_ in found if node in names}
        called: dict[bytes, str] = {}
        for key, name, _, *ids in found:
            called[bytes(key)] = (yield from resolve_relationship_aliases(scope_from_ids(*ids), [name]))[name]
        return called

    aliases, aaliases = read_methods(_aliases)


def _select_names(nodes: set[int]) -> Steps[dict[int, str]]:
    return dict((yield from fetch_rows("SELECT row, name FROM nodes WHERE row = ANY(%s)", (list(nodes),))))


# --- doing it ----------------------------------------------------------------------------------------------------


def _select_edges(plan: MergePlan) -> Steps[list[MovedEdge]]:
    """The relations that go over, oldest first, as they are."""
    values: list[Any]
    if plan.kept_node is None:
        which, values = "relationship = ANY(%s)", [list(plan.merge.merged_names)]
    else:
        which, values = (
            "(source = ANY(%s) OR destination = ANY(%s))",
            [list(plan.merged_nodes), list(plan.merged_nodes)],
        )
    rows = yield from fetch_rows(
        "SELECT row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at FROM edges"
        f" WHERE {_EXACT_SCOPE_CONDITION} AND {which} ORDER BY row",
        (*_exact_scope_values(plan.merge.scope), *values),
    )
    edges = {row[0]: MovedEdge(*row) for row in rows}
    for edge, memory, withdrawn, *days in (
        yield from fetch_rows(
            "SELECT edge, memory, withdrawn, day_first, day_last FROM evidence WHERE edge = ANY(%s) ORDER BY memory",
            (list(edges),),
        )
    ):
        edges[edge].evidence.append([memory, int(withdrawn), *days])
    heard = "SELECT h.edge, h.message FROM edge_messages AS h WHERE h.part = %s AND h.edge = ANY(%s) ORDER BY h.message"
    for edge, message in (yield from fetch_rows(heard, (partition_key(plan.merge.scope), list(edges)))):
        edges[edge].messages.append(message)
    return list(edges.values())


@dataclass(frozen=True, slots=True)
class _MergeApply:
    """One merge, within a transaction that holds the part."""

    plan: MergePlan
    dims: int
    edges: list[MovedEdge]
    names: Mapping[int, str]
    """Of the nodes that its relations will join, by their rows."""

    def is_plan_current(self) -> Steps[bool]:
        """Whether the graph is as it was planned on."""
        rows = [row for row in (self.plan.kept_node, *self.plan.merged_nodes) if row is not None]
        sql = f"SELECT count(*) FROM nodes WHERE {_EXACT_SCOPE_CONDITION} AND row = ANY(%s)"
        [(there,)] = yield from fetch_rows(sql, (*_exact_scope_values(self.plan.merge.scope), rows))
        known = all(
            self._sentence(ends) in self.plan.vectors for edge in self.edges if (ends := merged_ends(self.plan, edge))
        )
        return bool(there == len(rows) and (self.edges or self.plan.merged_nodes) and known)

    def run(self, at: str) -> Steps[Merge]:
        gone = list(self.plan.merged_nodes)
        nodes = yield from fetch_rows("SELECT row, name, type FROM nodes WHERE row = ANY(%s) ORDER BY row", (gone,))
        undo = MergeUndo(nodes=[list(row) for row in nodes], relations=len(self.edges))
        for edge in self.edges:
            yield from self._move_edge(edge)
        undo.edges = self.edges
        yield from delete_edges([edge.row for edge in self.edges])
        if self.plan.kept_node is not None:
            undo.type = yield from self._fill_type(undo.nodes)
            part = partition_key(self.plan.merge.scope)
            earlier = yield from fetch_rows(
                "SELECT row, node FROM merges WHERE part = %s AND node = ANY(%s)", (part, gone)
            )
            undo.redirected_merges = [list(row) for row in earlier]
            yield from execute(
                "UPDATE merges SET node = %s WHERE part = %s AND node = ANY(%s)", (self.plan.kept_node, part, gone)
            )
            yield from delete_nodes(gone)
        return (yield from self._save_merge(undo, at))

    def _sentence(self, ends: tuple[int, str, int]) -> str:
        source, relationship, destination = ends
        return Triplet(self.names[source], relationship, self.names[destination]).sentence

    def _move_edge(self, edge: MovedEdge) -> Steps[None]:
        ends = merged_ends(self.plan, edge)
        if ends is None:
            return
        part = partition_key(self.plan.merge.scope)
        found = []
        if edge.valid_to is None:
            found = yield from fetch_rows(
                "SELECT row, valid_from FROM edges WHERE part = %s AND source = %s AND relationship = %s"
                " AND destination = %s AND valid_to IS NULL",
                (part, *ends),
            )
        if not found:
            edge.target, edge.created_target = (yield from self._create_edge(edge, ends)), True
        else:
            edge.target, edge.target_valid_from = found[0]
            edge.target_had_evidence = yield from _has_evidence(part, found[0][0])
            [seq] = yield from reserve_seqs(1)
            yield from execute(
                "UPDATE edges SET weight = weight + %s, valid_from = least(valid_from, %s), changed = %s"
                " WHERE part = %s AND row = %s",
                (edge.weight, edge.valid_from, seq, part, edge.target),
            )
        for memory, withdrawn, *days in edge.evidence:
            if (
                yield from execute(
                    f"{_INSERT_EVIDENCE} ON CONFLICT DO NOTHING", (part, edge.target, memory, bool(withdrawn), *days)
                )
            ):
                edge.added_memories.append(memory)
            elif not withdrawn and (
                yield from execute(
                    "UPDATE evidence SET withdrawn = false WHERE part = %s AND edge = %s AND memory = %s AND withdrawn",
                    (part, edge.target, memory),
                )
            ):
                edge.restored_memories.append(memory)
        for message in edge.messages:
            sql = "INSERT INTO edge_messages (part, edge, message) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            if (yield from execute(sql, (part, edge.target, message))):
                edge.added_messages.append(message)

    def _create_edge(self, edge: MovedEdge, ends: tuple[int, str, int]) -> Steps[int]:
        [row] = yield from reserve_rows(1)
        moved = dataclasses.replace(edge, row=row, source=ends[0], relationship=ends[1], destination=ends[2])
        vector = to_stored_vector(self.plan.vectors[self._sentence(ends)], self.dims)
        yield from _insert_edge(moved, self.plan.merge.scope, vector)
        return row

    def _fill_type(self, nodes: Sequence[Sequence[Any]]) -> Steps[str | None]:
        """Give the node that stays a type, where only those that go have one; returns what it was."""
        known = first_type(nodes)
        if not known:
            return None
        [seq] = yield from reserve_seqs(1)
        sql = "UPDATE nodes SET type = %s, changed = %s WHERE row = %s AND type = ''"
        return "" if (yield from execute(sql, (known, seq, self.plan.kept_node))) else None

    def _save_merge(self, undo: MergeUndo, at: str) -> Steps[Merge]:
        merge = dataclasses.replace(self.plan.merge, id=new_id(), merged_at=at, relations=undo.relations)
        place, ids = _exact_scope_values(merge.scope), scope_ids(merge.scope)
        [(row,)] = yield from fetch_rows(
            "INSERT INTO merges (part, exact, id, user_id, agent_id, run_id, kind, name, node, score, reasons, at,"
            " taken) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING row",
            (
                *(*place, merge.id, *ids, merge.kind, merge.name, self.plan.kept_node, merge.score),
                *(json.dumps(merge.reasons), at, undo.to_json()),
            ),
        )
        yield from execute_many(
            "INSERT INTO aliases (part, exact, merge, user_id, agent_id, run_id, kind, key, name, standing)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, true)",
            [(*place, row, *ids, merge.kind, entity_key(name), name) for name in merge.merged_names],
        )
        return merge


_INSERT_EVIDENCE = (
    "INSERT INTO evidence (part, edge, memory, withdrawn, day_first, day_last) VALUES (%s, %s, %s, %s::boolean, %s, %s)"
)


def _insert_edge(edge: MovedEdge, scope: Scope, vector: Any) -> Steps[None]:
    [seq] = yield from reserve_seqs(1)
    yield from execute(
        "INSERT INTO edges (part, exact, user_id, agent_id, run_id, row, source, relationship, destination, weight,"
        " valid_from, valid_to, invalidated_at, seq, changed)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(
                *_exact_scope_values(scope),
                *scope_ids(scope),
                edge.row,
                edge.source,
                edge.relationship,
                edge.destination,
                edge.weight,
            ),
            *(edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
        ),
    )
    sql = "INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)"
    yield from execute(sql, (partition_key(scope), edge.row, vector))


def _has_evidence(part: str, edge: int) -> Steps[bool]:
    sql = (
        "SELECT 1 FROM evidence WHERE part = %s AND edge = %s UNION ALL"
        " SELECT 1 FROM edge_messages WHERE part = %s AND edge = %s LIMIT 1"
    )
    return bool((yield from fetch_rows(sql, (part, edge, part, edge))))


# --- taking it back ----------------------------------------------------------------------------------------------


def _load_merge(merge_id: str) -> Steps[tuple[int, Merge, MergeUndo]]:
    """A merge that stands, on which no later one builds, and what it took."""
    found = yield from fetch_rows(
        f"SELECT {_MERGE_COLUMNS} FROM merges AS m WHERE m.id = %s AND m.undone IS NULL", (merge_id,)
    )
    if not found:
        raise NotFoundError(merge_id)
    row, merge, undo = found[0][0], merge_from_row(found[0], found[0][-1]), MergeUndo.from_json(found[0][11])
    sql = f"SELECT taken FROM merges WHERE {_EXACT_SCOPE_CONDITION} AND row > %s AND undone IS NULL"
    later = yield from fetch_rows(sql, (*_exact_scope_values(merge.scope), row))
    check_no_later_merge(row, merge, undo, [MergeUndo.from_json(text) for (text,) in later])
    return row, merge, undo


def _load_revert(row: int, merge: Merge, undo: MergeUndo) -> Steps[_MergeRevert]:
    target = [edge.target for edge in undo.edges if edge.target is not None]
    there = {row for (row,) in (yield from fetch_rows("SELECT row FROM edges WHERE row = ANY(%s)", (target,)))}
    names = yield from _select_names({end for edge in undo.edges for end in (edge.source, edge.destination)})
    names |= {node[0]: node[1] for node in undo.nodes}
    restorable = [edge for edge in undo.edges if edge.target is None or edge.target in there]  # the others were erased
    return _MergeRevert(row, merge.scope, undo, restorable, names)


@dataclass(frozen=True, slots=True)
class _MergeRevert:
    """What a merge took, coming back, within a transaction that holds the part."""

    row: int
    scope: Scope
    undo: MergeUndo
    restorable: list[MovedEdge]
    names: Mapping[int, str]

    def texts(self) -> list[str]:
        named = [node[1] for node in self.undo.nodes]
        return list(dict.fromkeys([*named, *(self._sentence(edge) for edge in self.restorable)]))

    def _sentence(self, edge: MovedEdge) -> str:
        return Triplet(self.names[edge.source], edge.relationship, self.names[edge.destination]).sentence

    def run(self, vectors: Mapping[str, Any], dims: int, at: str) -> Steps[None]:
        part = partition_key(self.scope)
        for edge in reversed(self.restorable):
            yield from self._split_from_target(edge, at)
        for node in self.undo.nodes:
            yield from self._restore_node(node, to_stored_vector(vectors[node[1]], dims))
        for edge in self.restorable:
            yield from self._restore_edge(edge, to_stored_vector(vectors[self._sentence(edge)], dims))
        if self.undo.type is not None:
            [seq] = yield from reserve_seqs(1)
            yield from execute(
                "UPDATE nodes SET type = %s, changed = %s WHERE part = %s"
                " AND row = (SELECT node FROM merges WHERE part = %s AND row = %s)",
                (self.undo.type, seq, part, part, self.row),
            )
        for merge, was in self.undo.redirected_merges:
            yield from execute("UPDATE merges SET node = %s WHERE part = %s AND row = %s", (was, part, merge))
        done = MergeUndo(relations=self.undo.relations).to_json()
        sql = "UPDATE merges SET undone = %s, taken = %s WHERE part = %s AND row = %s"
        yield from execute(sql, (at, done, part, self.row))
        yield from execute("UPDATE aliases SET standing = false WHERE part = %s AND merge = %s", (part, self.row))

    def _split_from_target(self, edge: MovedEdge, at: str) -> Steps[None]:
        if edge.target is None:
            return
        part = partition_key(self.scope)
        [target] = yield from fetch_rows(
            "SELECT weight, valid_from, valid_to, invalidated_at FROM edges WHERE part = %s AND row = %s",
            (part, edge.target),
        )
        said = yield from fetch_rows(
            "SELECT memory, withdrawn FROM evidence WHERE part = %s AND edge = %s", (part, edge.target)
        )
        withdrawn: dict[int, bool] = dict(said)
        left, before = split_from_target(edge, target, withdrawn, at)
        for sql, rows in (
            ("DELETE FROM evidence WHERE part = %s AND edge = %s AND memory = ANY(%s)", edge.added_memories),
            (
                "UPDATE evidence SET withdrawn = true WHERE part = %s AND edge = %s AND memory = ANY(%s)",
                edge.restored_memories,
            ),
            ("DELETE FROM edge_messages WHERE part = %s AND edge = %s AND message = ANY(%s)", edge.added_messages),
        ):
            yield from execute(sql, (part, edge.target, rows))
        # what said it before may have been erased while the merge stood
        if (edge.created_target and left <= 0) or (
            edge.target_had_evidence and not (yield from _has_evidence(part, edge.target))
        ):
            yield from delete_edges([edge.target])
            return
        [seq] = yield from reserve_seqs(1)
        yield from execute(
            "UPDATE edges SET weight = %s, valid_from = %s, changed = %s WHERE part = %s AND row = %s",
            (max(1, left), before, seq, part, edge.target),
        )
        own = yield from fetch_rows("SELECT withdrawn FROM evidence WHERE part = %s AND edge = %s", (part, edge.target))
        if own and all(withdrawn for (withdrawn,) in own):  # its memories were updated while the merge stood
            yield from GraphWriter(self.scope, at, 0, "invalidate").close_unsupported([edge.target])

    def _restore_node(self, node: Sequence[Any], vector: Any) -> Steps[None]:
        row, name, type = node
        part = partition_key(self.scope)
        [seq] = yield from reserve_seqs(1)
        yield from execute("DELETE FROM node_tombstones WHERE part = %s AND row = %s", (part, row))
        yield from execute(
            "INSERT INTO nodes (part, exact, user_id, agent_id, run_id, row, name, key, type, seq, changed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (*_exact_scope_values(self.scope), *scope_ids(self.scope), row, name, entity_key(name), type, seq, seq),
        )
        yield from execute("INSERT INTO node_vectors (part, row, vector) VALUES (%s, %s, %s)", (part, row, vector))

    def _restore_edge(self, edge: MovedEdge, vector: Any) -> Steps[None]:
        part = partition_key(self.scope)
        yield from execute("DELETE FROM edge_tombstones WHERE part = %s AND row = %s", (part, edge.row))
        yield from _insert_edge(edge, self.scope, vector)
        said = [(part, edge.row, memory, bool(withdrawn), *days) for memory, withdrawn, *days in edge.evidence]
        yield from execute_many(_INSERT_EVIDENCE, said)
        yield from execute(
            "INSERT INTO edge_messages (part, edge, message) SELECT part, %s, row FROM messages"
            " WHERE part = %s AND row = ANY(%s) ON CONFLICT DO NOTHING",
            (edge.row, part, edge.messages),
        )


# --- erasing, within a transaction of the store's ----------------------------------------------------------------


def erase_merges(scope: Scope) -> Steps[None]:
    """Erase every merge of a scope."""
    where, values = scope_sql(scope)
    yield from execute(f"DELETE FROM merges WHERE {where}", values)


def erase_from_merges(memory: int, scope: Scope) -> Steps[None]:
    """Before a memory and its messages are erased: merges no longer keep what only it supported."""
    sql = f"SELECT row, taken FROM merges WHERE {_EXACT_SCOPE_CONDITION} AND undone IS NULL ORDER BY row"
    standing = yield from fetch_rows(sql, _exact_scope_values(scope))
    if not standing:
        return
    part = partition_key(scope)
    messages = {
        message for (message,) in (yield from fetch_rows("SELECT message FROM sources WHERE memory = %s", (memory,)))
    }
    for row, text in standing:
        undo, left = MergeUndo.from_json(text), list[MovedEdge]()
        for edge in undo.edges:
            stays, lost = remove_memory(edge, memory, messages)
            if edge.target is not None and lost > 0:
                [seq] = yield from reserve_seqs(1)
                lighter = (
                    "UPDATE edges SET weight = greatest(1, weight - %s), changed = %s WHERE part = %s AND row = %s"
                )
                yield from execute(lighter, (lost, seq, part, edge.target))
            if stays:
                left.append(edge)
        for target, told, since in relink_edges(undo.edges, left):
            [seq] = yield from reserve_seqs(1)
            later = "UPDATE edges SET valid_from = %s, changed = %s WHERE part = %s AND row = %s AND valid_from = %s"
            yield from execute(later, (since, seq, part, target, told))
        if not left:
            yield from execute("DELETE FROM merges WHERE part = %s AND row = %s", (part, row))
            continue
        ends = {end for edge in left for end in (edge.source, edge.destination)}
        gone = [name for node, name, _ in undo.nodes if node not in ends]
        undo.edges, undo.nodes = left, [node for node in undo.nodes if node[0] in ends]
        yield from execute("UPDATE merges SET taken = %s WHERE part = %s AND row = %s", (undo.to_json(), part, row))
        yield from execute(
            "DELETE FROM aliases WHERE part = %s AND merge = %s AND name = ANY(%s) AND kind = 'entity'",
            (part, row, gone),
        )
