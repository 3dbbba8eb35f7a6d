"""Merges of entities and relationships in the SQLite truth: done, taken back, and pruned of what is erased.

The rows that go are kept in `merges.taken` as they were (`taken`), in the numbers of the store and without vectors.
Readers of the graph know nothing of merges: they see the rows that are there.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mem0_core.domain.records import Merge, MergeKind, Scope, Triplet, entity_key, new_id
from mem0_core.errors import NotFoundError
from mem0_core.interfaces import MergePlan, check_embedding_space
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
from mem0_core.stores.sqlite.graph import GraphWriter, delete_with_tombstones, resolve_relationship_alias
from mem0_core.stores.sqlite.rows import (
    EXACT_SCOPE_CONDITION,
    exact_scope_values,
    placeholders,
    reserve_seqs,
    scope_from_ids,
    scope_ids,
    scope_sql,
    to_blob,
)
from mem0_core.stores.sqlite.session import drive
from mem0_core.stores.sqlite.vectors import ConnectionFactory

__all__ = ["SQLiteMerges", "erase_from_merges", "erase_merges"]

_MERGE_COLUMNS = (
    "m.row, m.id, m.user_id, m.agent_id, m.run_id, m.kind, m.name, m.score, m.reasons, m.at, m.undone, m.taken,"
    " (SELECT json_group_array(name) FROM (SELECT name FROM aliases WHERE merge = m.row ORDER BY rowid))"
)


class SQLiteMerges:
    """A `MergeLedger`."""

    inline = True  # see `flow`

    def __init__(
        self, read: ConnectionFactory, write: Callable[[], AbstractContextManager[sqlite3.Connection]]
    ) -> None:
        self._read = read
        self._write = write

    def apply(self, plan: MergePlan, *, at: str, embedding_space: tuple[str, int]) -> Merge | None:
        with self._write() as db:
            check_embedding_space(drive(db, read_embedding_space()), embedding_space)
            going = _MergeApply(db, plan, embedding_space[1])
            if not going.is_plan_current():
                return None
            return going.run(at)

    def texts_to_embed(self, merge_id: str) -> list[str]:
        with self._read() as db:
            row, merge, undo, later = _load_merge(db, merge_id)
            check_no_later_merge(row, merge, undo, later)
            return _MergeRevert(db, row, undo).texts()

    def revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, embedding_space: tuple[str, int]
    ) -> Merge | None:
        with self._write() as db:
            check_embedding_space(drive(db, read_embedding_space()), embedding_space)
            row, merge, undo, later = _load_merge(db, merge_id)
            check_no_later_merge(row, merge, undo, later)
            coming = _MergeRevert(db, row, undo)
            if not vectors.keys() >= set(coming.texts()):
                return None
            coming.run(merge.scope, vectors, embedding_space[1], at)
            return dataclasses.replace(merge, undone_at=at)

    def list_merges(self, scope: Scope) -> list[Merge]:
        where, values = scope_sql(scope)
        with self._read() as db:
            rows = db.execute(
                f"SELECT {_MERGE_COLUMNS} FROM merges AS m WHERE {where} ORDER BY m.row", values
            ).fetchall()
        return [merge_from_row(row, json.loads(row[-1])) for row in rows]

    def aliases(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> dict[bytes, str]:
        where, values = (EXACT_SCOPE_CONDITION, list(exact_scope_values(scope))) if exact else scope_sql(scope)
        gone = f"SELECT key, merge FROM aliases WHERE {where} AND kind = ? AND standing"
        with self._read() as db:
            if kind == "entity":
                named = f"SELECT a.key, n.name FROM ({gone}) AS a JOIN merges AS m ON m.row = a.merge JOIN nodes AS n"
                return dict(db.execute(f"{named} ON n.row = m.node", (*values, kind)).fetchall())
            named = f"SELECT a.key, m.name, m.user_id, m.agent_id, m.run_id FROM ({gone}) AS a JOIN merges AS m"
            found = db.execute(f"{named} ON m.row = a.merge", (*values, kind)).fetchall()
            return {key: resolve_relationship_alias(db, scope_from_ids(*ids), name) for key, name, *ids in found}


# --- doing it ----------------------------------------------------------------------------------------------------


class _MergeApply:
    """One merge, within a transaction."""

    def __init__(self, db: sqlite3.Connection, plan: MergePlan, dims: int) -> None:
        self.db, self.plan, self.dims = db, plan, dims
        self.scope = plan.merge.scope
        self.edges = self._select_edges()

    def is_plan_current(self) -> bool:
        """Whether the graph is as it was planned on."""
        rows = [row for row in (self.plan.kept_node, *self.plan.merged_nodes) if row is not None]
        sql = f"SELECT count(*) FROM nodes WHERE row IN ({placeholders(rows)}) AND {EXACT_SCOPE_CONDITION}"
        there = self.db.execute(sql, (*rows, *exact_scope_values(self.scope))).fetchone()[0]
        return (
            there == len(rows)
            and bool(self.edges or self.plan.merged_nodes)
            and all(
                self._sentence(edge) in self.plan.vectors
                for edge in self.edges
                if merged_ends(self.plan, edge) is not None
            )
        )

    def run(self, at: str) -> Merge:
        undo = MergeUndo(nodes=self._select_nodes(), relations=len(self.edges))
        for edge in self.edges:
            self._move_edge(edge)
        undo.edges = self.edges
        delete_with_tombstones(self.db, "edges", [edge.row for edge in self.edges])
        if self.plan.kept_node is not None:
            undo.type = self._fill_type(undo.nodes)
            gone = placeholders(self.plan.merged_nodes)
            sql = f"SELECT row, node FROM merges WHERE node IN ({gone})"
            undo.redirected_merges = [list(row) for row in self.db.execute(sql, self.plan.merged_nodes)]
            self.db.execute(
                f"UPDATE merges SET node = ? WHERE node IN ({gone})", (self.plan.kept_node, *self.plan.merged_nodes)
            )
            delete_with_tombstones(self.db, "nodes", self.plan.merged_nodes)
        return self._save_merge(undo, at)

    def _select_edges(self) -> list[MovedEdge]:
        columns = "row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at"
        if self.plan.kept_node is None:
            names = self.plan.merge.merged_names
            where = f"{EXACT_SCOPE_CONDITION} AND relationship IN ({placeholders(names)})"
            values: tuple[Any, ...] = (*exact_scope_values(self.scope), *names)
        else:
            gone = placeholders(self.plan.merged_nodes)
            where, values = (
                f"source IN ({gone}) OR destination IN ({gone})",
                (*self.plan.merged_nodes, *self.plan.merged_nodes),
            )
        rows = self.db.execute(f"SELECT {columns} FROM edges WHERE {where} ORDER BY row", values).fetchall()
        edges = [MovedEdge(*row) for row in rows]
        for edge in edges:
            said = "SELECT memory, withdrawn, day_first, day_last FROM evidence WHERE edge = ? ORDER BY memory"
            edge.evidence = [list(row) for row in self.db.execute(said, (edge.row,))]
            heard = "SELECT message FROM edge_messages WHERE edge = ? ORDER BY message"
            edge.messages = [message for (message,) in self.db.execute(heard, (edge.row,))]
        return edges

    def _sentence(self, edge: MovedEdge) -> str:
        ends = merged_ends(self.plan, edge)
        assert ends is not None
        source, relationship, destination = ends
        return Triplet(_select_name(self.db, source), relationship, _select_name(self.db, destination)).sentence

    def _move_edge(self, edge: MovedEdge) -> None:
        ends = merged_ends(self.plan, edge)
        if ends is None:
            return
        sql = "SELECT row, valid_from FROM edges WHERE source = ? AND relationship = ? AND destination = ?"
        found = self.db.execute(f"{sql} AND valid_to IS NULL", ends).fetchone() if edge.valid_to is None else None
        if found is None:
            edge.target, edge.created_target = self._create_edge(edge, ends), True
        else:
            edge.target, edge.target_valid_from = found
            edge.target_had_evidence = _has_evidence(self.db, found[0])
            self.db.execute(
                "UPDATE edges SET weight = weight + ?, valid_from = min(valid_from, ?), changed = ? WHERE row = ?",
                (edge.weight, edge.valid_from, reserve_seqs(self.db, 1), edge.target),
            )
        for memory, withdrawn, *days in edge.evidence:
            inserted = self.db.execute(
                "INSERT OR IGNORE INTO evidence VALUES (?, ?, ?, ?, ?) RETURNING 1",
                (edge.target, memory, withdrawn, *days),
            ).fetchone()
            if inserted:
                edge.added_memories.append(memory)
            elif (
                not withdrawn
                and self.db.execute(
                    "UPDATE evidence SET withdrawn = 0 WHERE edge = ? AND memory = ? AND withdrawn RETURNING 1",
                    (edge.target, memory),
                ).fetchone()
            ):
                edge.restored_memories.append(memory)
        for message in edge.messages:
            sql = "INSERT OR IGNORE INTO edge_messages VALUES (?, ?) RETURNING 1"
            if self.db.execute(sql, (edge.target, message)).fetchone():
                edge.added_messages.append(message)

    def _create_edge(self, edge: MovedEdge, ends: tuple[int, str, int]) -> int:
        seq = reserve_seqs(self.db, 1)
        blob = to_blob(self.plan.vectors[self._sentence(edge)], self.dims)
        (made,) = self.db.execute(
            "INSERT INTO edges (user_id, agent_id, run_id, source, relationship, destination, weight, valid_from,"
            " valid_to, invalidated_at, seq, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (*scope_ids(self.scope), *ends, edge.weight, edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
        ).fetchone()
        self.db.execute("INSERT INTO edge_vectors VALUES (?, ?)", (made, blob))
        return int(made)

    def _select_nodes(self) -> list[list[Any]]:
        sql = f"SELECT row, name, type FROM nodes WHERE row IN ({placeholders(self.plan.merged_nodes)}) ORDER BY row"
        return [list(row) for row in self.db.execute(sql, self.plan.merged_nodes)]

    def _fill_type(self, nodes: Sequence[Sequence[Any]]) -> str | None:
        """Give the node that stays a type, where only those that go have one; returns what it was."""
        known = first_type(nodes)
        seq = reserve_seqs(self.db, 1)
        sql = "UPDATE nodes SET type = ?, changed = ? WHERE row = ? AND type = '' RETURNING 1"
        return "" if known and self.db.execute(sql, (known, seq, self.plan.kept_node)).fetchone() else None

    def _save_merge(self, undo: MergeUndo, at: str) -> Merge:
        merge = dataclasses.replace(self.plan.merge, id=new_id(), merged_at=at, relations=undo.relations)
        (row,) = self.db.execute(
            "INSERT INTO merges (id, user_id, agent_id, run_id, kind, name, node, score, reasons, at, taken)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (
                merge.id,
                *scope_ids(merge.scope),
                merge.kind,
                merge.name,
                self.plan.kept_node,
                merge.score,
                json.dumps(merge.reasons, ensure_ascii=False),
                at,
                undo.to_json(),
            ),
        ).fetchone()
        self.db.executemany(
            "INSERT INTO aliases (merge, user_id, agent_id, run_id, kind, key, name, standing)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
            [(row, *scope_ids(merge.scope), merge.kind, entity_key(name), name) for name in merge.merged_names],
        )
        return merge


def _select_name(db: sqlite3.Connection, node: int) -> str:
    return str(db.execute("SELECT name FROM nodes WHERE row = ?", (node,)).fetchone()[0])


def _has_evidence(db: sqlite3.Connection, edge: int) -> bool:
    sql = "SELECT 1 FROM evidence WHERE edge = ?1 UNION ALL SELECT 1 FROM edge_messages WHERE edge = ?1 LIMIT 1"
    return db.execute(sql, (edge,)).fetchone() is not None


# --- taking it back ----------------------------------------------------------------------------------------------


def _load_merge(db: sqlite3.Connection, merge_id: str) -> tuple[int, Merge, MergeUndo, list[MergeUndo]]:
    """A merge that stands, what it took, and what later ones of its scope took."""
    found = db.execute(
        f"SELECT {_MERGE_COLUMNS} FROM merges AS m WHERE id = ? AND undone IS NULL", (merge_id,)
    ).fetchone()
    if found is None:
        raise NotFoundError(merge_id)
    merge = merge_from_row(found, json.loads(found[-1]))
    sql = f"SELECT taken FROM merges WHERE {EXACT_SCOPE_CONDITION} AND row > ? AND undone IS NULL"
    later = db.execute(sql, (*exact_scope_values(merge.scope), found[0])).fetchall()
    return found[0], merge, MergeUndo.from_json(found[11]), [MergeUndo.from_json(text) for (text,) in later]


class _MergeRevert:
    """What a merge took, coming back, within a transaction."""

    def __init__(self, db: sqlite3.Connection, row: int, undo: MergeUndo) -> None:
        self.db, self.row, self.undo = db, row, undo
        self.names = {node[0]: node[1] for node in undo.nodes}

    def texts(self) -> list[str]:
        sentences = [self._sentence(edge) for edge in self.undo.edges if self._target_exists(edge)]
        return list(dict.fromkeys([*self.names.values(), *sentences]))

    def run(self, scope: Scope, vectors: Mapping[str, Any], dims: int, at: str) -> None:
        restorable = [edge for edge in self.undo.edges if self._target_exists(edge)]
        for edge in reversed(restorable):
            self._split_from_target(edge, scope, at)
        for node in self.undo.nodes:
            self._restore_node(node, scope, to_blob(vectors[node[1]], dims))
        for edge in restorable:
            self._restore_edge(edge, scope, to_blob(vectors[self._sentence(edge)], dims))
        if self.undo.type is not None:
            sql = "UPDATE nodes SET type = ?, changed = ? WHERE row = (SELECT node FROM merges WHERE row = ?)"
            self.db.execute(sql, (self.undo.type, reserve_seqs(self.db, 1), self.row))
        for merge, was in self.undo.redirected_merges:
            self.db.execute("UPDATE merges SET node = ? WHERE row = ?", (was, merge))
        done = MergeUndo(relations=self.undo.relations)
        self.db.execute("UPDATE merges SET undone = ?, taken = ? WHERE row = ?", (at, done.to_json(), self.row))
        self.db.execute("UPDATE aliases SET standing = 0 WHERE merge = ?", (self.row,))

    def _target_exists(self, edge: MovedEdge) -> bool:
        """Whether what a relation went into is still there: if not, it was erased."""
        if edge.target is None:
            return True
        return self.db.execute("SELECT 1 FROM edges WHERE row = ?", (edge.target,)).fetchone() is not None

    def _sentence(self, edge: MovedEdge) -> str:
        source, destination = (
            self.names.get(end) or _select_name(self.db, end) for end in (edge.source, edge.destination)
        )
        return Triplet(source, edge.relationship, destination).sentence

    def _split_from_target(self, edge: MovedEdge, scope: Scope, at: str) -> None:
        """Take a relation out of the one that it went into; what became of that meanwhile, became of it as well."""
        if edge.target is None:
            return
        sql = "SELECT weight, valid_from, valid_to, invalidated_at FROM edges WHERE row = ?"
        target = self.db.execute(sql, (edge.target,)).fetchone()
        said = self.db.execute("SELECT memory, withdrawn FROM evidence WHERE edge = ?", (edge.target,)).fetchall()
        left, before = split_from_target(edge, target, dict(said), at)
        self._remove_added_evidence(edge)
        # what said it before may have been erased while the merge stood
        if (edge.created_target and left <= 0) or (
            edge.target_had_evidence and not _has_evidence(self.db, edge.target)
        ):
            delete_with_tombstones(self.db, "edges", [edge.target])
            return
        self.db.execute(
            "UPDATE edges SET weight = ?, valid_from = ?, changed = ? WHERE row = ?",
            (max(1, left), before, reserve_seqs(self.db, 1), edge.target),
        )
        own = self.db.execute("SELECT withdrawn FROM evidence WHERE edge = ?", (edge.target,)).fetchall()
        if own and all(withdrawn for (withdrawn,) in own):  # its memories were updated while the merge stood
            GraphWriter(self.db, scope, at, 0, "invalidate").close_unsupported([edge.target])

    def _remove_added_evidence(self, edge: MovedEdge) -> None:
        db = self.db
        db.executemany(
            "DELETE FROM evidence WHERE edge = ? AND memory = ?", [(edge.target, one) for one in edge.added_memories]
        )
        restored_memories = "UPDATE evidence SET withdrawn = 1 WHERE edge = ? AND memory = ?"
        db.executemany(restored_memories, [(edge.target, one) for one in edge.restored_memories])
        added_messages = "DELETE FROM edge_messages WHERE edge = ? AND message = ?"
        db.executemany(added_messages, [(edge.target, one) for one in edge.added_messages])

    def _restore_node(self, node: Sequence[Any], scope: Scope, blob: bytes) -> None:
        row, name, type = node
        seq = reserve_seqs(self.db, 1)
        self.db.execute("DELETE FROM node_tombstones WHERE row = ?", (row,))
        self.db.execute(
            "INSERT INTO nodes (row, user_id, agent_id, run_id, name, key, type, seq, changed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row, *scope_ids(scope), name, entity_key(name), type, seq, seq),
        )
        self.db.execute("INSERT INTO node_vectors VALUES (?, ?)", (row, blob))

    def _restore_edge(self, edge: MovedEdge, scope: Scope, blob: bytes) -> None:
        seq = reserve_seqs(self.db, 1)
        self.db.execute("DELETE FROM edge_tombstones WHERE row = ?", (edge.row,))
        columns = "row, user_id, agent_id, run_id, source, relationship, destination, weight, valid_from, valid_to"
        self.db.execute(
            f"INSERT INTO edges ({columns}, invalidated_at, seq, changed) VALUES ({placeholders(range(13))})",
            (
                *(edge.row, *scope_ids(scope), edge.source, edge.relationship, edge.destination, edge.weight),
                *(edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
            ),
        )
        self.db.execute("INSERT INTO edge_vectors VALUES (?, ?)", (edge.row, blob))
        said = "INSERT INTO evidence VALUES (?, ?, ?, ?, ?)"
        self.db.executemany(said, [(edge.row, *one) for one in edge.evidence])
        heard = "INSERT OR IGNORE INTO edge_messages SELECT ?, row FROM messages WHERE row = ?"
        self.db.executemany(heard, [(edge.row, message) for message in edge.messages])


# --- erasing -----------------------------------------------------------------------------------------------------


def erase_merges(db: sqlite3.Connection, scope: Scope) -> None:
    """Erase every merge of a scope."""
    where, values = scope_sql(scope)
    db.execute(f"DELETE FROM merges WHERE {where}", values)


def erase_from_merges(db: sqlite3.Connection, memory: int, scope: Scope) -> None:
    """Before a memory and its messages are erased: merges no longer keep what only it supported."""
    sql = f"SELECT row, taken FROM merges WHERE {EXACT_SCOPE_CONDITION} AND undone IS NULL"
    standing = db.execute(sql, exact_scope_values(scope)).fetchall()
    if not standing:
        return
    sources = db.execute("SELECT message FROM sources WHERE memory = ?", (memory,)).fetchall()
    messages = {message for (message,) in sources}
    for row, text in standing:
        undo = MergeUndo.from_json(text)
        left = [edge for edge in undo.edges if _remove_memory(db, edge, memory, messages)]
        for target, told, since in relink_edges(undo.edges, left):
            later = "UPDATE edges SET valid_from = ?, changed = ? WHERE row = ? AND valid_from = ?"
            db.execute(later, (since, reserve_seqs(db, 1), target, told))
        if not left:
            db.execute("DELETE FROM merges WHERE row = ?", (row,))
            continue
        ends = {end for edge in left for end in (edge.source, edge.destination)}
        gone = [name for node, name, _ in undo.nodes if node not in ends]
        undo.edges, undo.nodes = left, [node for node in undo.nodes if node[0] in ends]
        db.execute("UPDATE merges SET taken = ? WHERE row = ?", (undo.to_json(), row))
        erased = "DELETE FROM aliases WHERE merge = ? AND name = ? AND kind = 'entity'"
        db.executemany(erased, [(row, name) for name in gone])


def _remove_memory(db: sqlite3.Connection, edge: MovedEdge, memory: int, messages: set[int]) -> bool:
    stays, lost = remove_memory(edge, memory, messages)
    if edge.target is not None and lost > 0:
        sql = "UPDATE edges SET weight = max(1, weight - ?), changed = ? WHERE row = ?"
        db.execute(sql, (lost, reserve_seqs(db, 1), edge.target))
    return stays
