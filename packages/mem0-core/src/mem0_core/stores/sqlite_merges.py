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

from mem0_core.errors import NotFoundError
from mem0_core.ports import MergePlan, check_space
from mem0_core.records import Merge, MergeKind, Scope, Triplet, entity_key, new_id
from mem0_core.stores.sqlite_graph import GraphWriter, bury, stays_called
from mem0_core.stores.sqlite_rows import (
    SAME_SCOPE,
    exact_ids,
    held_space,
    ids_of,
    marks,
    next_seq,
    scope_of,
    scope_sql,
    to_blob,
)
from mem0_core.stores.sqlite_vectors import Reader
from mem0_core.stores.taken import (
    Taken,
    TakenEdge,
    becomes,
    left_of,
    merge_of,
    rechained,
    refuse_built_on,
    take_out,
    typed_by,
)

__all__ = ["SQLiteMerges", "forget_merges", "forget_support"]

_MERGE = (
    "m.row, m.id, m.user_id, m.agent_id, m.run_id, m.kind, m.name, m.score, m.reasons, m.at, m.undone, m.taken,"
    " (SELECT json_group_array(name) FROM (SELECT name FROM aliases WHERE merge = m.row ORDER BY rowid))"
)


class SQLiteMerges:
    """A `MergeLedger`."""

    inline = True  # see `flow`

    def __init__(self, read: Reader, write: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._read = read
        self._write = write

    def apply(self, plan: MergePlan, *, at: str, space: tuple[str, int]) -> Merge | None:
        with self._write() as db:
            check_space(held_space(db), space)
            going = _Going(db, plan, space[1])
            if not going.fits():
                return None
            return going.go(at)

    def texts(self, merge_id: str) -> list[str]:
        with self._read() as db:
            row, merge, taken, later = _standing(db, merge_id)
            refuse_built_on(row, merge, taken, later)
            return _Coming(db, row, taken).texts()

    def revert(self, merge_id: str, vectors: Mapping[str, Any], *, at: str, space: tuple[str, int]) -> Merge | None:
        with self._write() as db:
            check_space(held_space(db), space)
            row, merge, taken, later = _standing(db, merge_id)
            refuse_built_on(row, merge, taken, later)
            coming = _Coming(db, row, taken)
            if not vectors.keys() >= set(coming.texts()):
                return None
            coming.come(merge.scope, vectors, space[1], at)
            return dataclasses.replace(merge, undone=at)

    def listed(self, scope: Scope) -> list[Merge]:
        where, values = scope_sql(scope)
        with self._read() as db:
            rows = db.execute(f"SELECT {_MERGE} FROM merges AS m WHERE {where} ORDER BY m.row", values).fetchall()
        return [merge_of(row, json.loads(row[-1])) for row in rows]

    def called(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> dict[bytes, str]:
        where, values = (SAME_SCOPE, list(exact_ids(scope))) if exact else scope_sql(scope)
        gone = f"SELECT key, merge FROM aliases WHERE {where} AND kind = ? AND standing"
        with self._read() as db:
            if kind == "entity":
                named = f"SELECT a.key, n.name FROM ({gone}) AS a JOIN merges AS m ON m.row = a.merge JOIN nodes AS n"
                return dict(db.execute(f"{named} ON n.row = m.node", (*values, kind)).fetchall())
            named = f"SELECT a.key, m.name, m.user_id, m.agent_id, m.run_id FROM ({gone}) AS a JOIN merges AS m"
            found = db.execute(f"{named} ON m.row = a.merge", (*values, kind)).fetchall()
            return {key: stays_called(db, scope_of(*ids), name) for key, name, *ids in found}


# --- doing it ----------------------------------------------------------------------------------------------------


class _Going:
    """One merge, within a transaction."""

    def __init__(self, db: sqlite3.Connection, plan: MergePlan, dims: int) -> None:
        self.db, self.plan, self.dims = db, plan, dims
        self.scope = plan.merge.scope
        self.edges = self._edges()

    def fits(self) -> bool:
        """Whether the graph is as it was planned on."""
        rows = [row for row in (self.plan.node, *self.plan.nodes) if row is not None]
        sql = f"SELECT count(*) FROM nodes WHERE row IN ({marks(rows)}) AND {SAME_SCOPE}"
        there = self.db.execute(sql, (*rows, *exact_ids(self.scope))).fetchone()[0]
        return (
            there == len(rows)
            and bool(self.edges or self.plan.nodes)
            and all(
                self._sentence(edge) in self.plan.vectors for edge in self.edges if becomes(self.plan, edge) is not None
            )
        )

    def go(self, at: str) -> Merge:
        taken = Taken(nodes=self._nodes(), relations=len(self.edges))
        for edge in self.edges:
            self._move(edge)
        taken.edges = self.edges
        bury(self.db, "edges", [edge.row for edge in self.edges])
        if self.plan.node is not None:
            taken.type = self._typed(taken.nodes)
            gone = marks(self.plan.nodes)
            sql = f"SELECT row, node FROM merges WHERE node IN ({gone})"
            taken.repointed = [list(row) for row in self.db.execute(sql, self.plan.nodes)]
            self.db.execute(f"UPDATE merges SET node = ? WHERE node IN ({gone})", (self.plan.node, *self.plan.nodes))
            bury(self.db, "nodes", self.plan.nodes)
        return self._record(taken, at)

    def _edges(self) -> list[TakenEdge]:
        columns = "row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at"
        if self.plan.node is None:
            names = self.plan.merge.merged
            where = f"{SAME_SCOPE} AND relationship IN ({marks(names)})"
            values: tuple[Any, ...] = (*exact_ids(self.scope), *names)
        else:
            gone = marks(self.plan.nodes)
            where, values = f"source IN ({gone}) OR destination IN ({gone})", (*self.plan.nodes, *self.plan.nodes)
        rows = self.db.execute(f"SELECT {columns} FROM edges WHERE {where} ORDER BY row", values).fetchall()
        edges = [TakenEdge(*row) for row in rows]
        for edge in edges:
            said = "SELECT memory, withdrawn, day_first, day_last FROM evidence WHERE edge = ? ORDER BY memory"
            edge.evidence = [list(row) for row in self.db.execute(said, (edge.row,))]
            heard = "SELECT message FROM edge_messages WHERE edge = ? ORDER BY message"
            edge.messages = [message for (message,) in self.db.execute(heard, (edge.row,))]
        return edges

    def _sentence(self, edge: TakenEdge) -> str:
        ends = becomes(self.plan, edge)
        assert ends is not None
        source, relationship, destination = ends
        return Triplet(_name(self.db, source), relationship, _name(self.db, destination)).sentence

    def _move(self, edge: TakenEdge) -> None:
        ends = becomes(self.plan, edge)
        if ends is None:
            return
        sql = "SELECT row, valid_from FROM edges WHERE source = ? AND relationship = ? AND destination = ?"
        found = self.db.execute(f"{sql} AND valid_to IS NULL", ends).fetchone() if edge.valid_to is None else None
        if found is None:
            edge.into, edge.made = self._made(edge, ends), True
        else:
            edge.into, edge.was = found
            edge.said = _is_said(self.db, found[0])
            self.db.execute(
                "UPDATE edges SET weight = weight + ?, valid_from = min(valid_from, ?), changed = ? WHERE row = ?",
                (edge.weight, edge.valid_from, next_seq(self.db, 1), edge.into),
            )
        for memory, withdrawn, *days in edge.evidence:
            inserted = self.db.execute(
                "INSERT OR IGNORE INTO evidence VALUES (?, ?, ?, ?, ?) RETURNING 1",
                (edge.into, memory, withdrawn, *days),
            ).fetchone()
            if inserted:
                edge.lent.append(memory)
            elif (
                not withdrawn
                and self.db.execute(
                    "UPDATE evidence SET withdrawn = 0 WHERE edge = ? AND memory = ? AND withdrawn RETURNING 1",
                    (edge.into, memory),
                ).fetchone()
            ):
                edge.raised.append(memory)
        for message in edge.messages:
            sql = "INSERT OR IGNORE INTO edge_messages VALUES (?, ?) RETURNING 1"
            if self.db.execute(sql, (edge.into, message)).fetchone():
                edge.spoken.append(message)

    def _made(self, edge: TakenEdge, ends: tuple[int, str, int]) -> int:
        seq = next_seq(self.db, 1)
        blob = to_blob(self.plan.vectors[self._sentence(edge)], self.dims)
        (made,) = self.db.execute(
            "INSERT INTO edges (user_id, agent_id, run_id, source, relationship, destination, weight, valid_from,"
            " valid_to, invalidated_at, seq, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (*ids_of(self.scope), *ends, edge.weight, edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
        ).fetchone()
        self.db.execute("INSERT INTO edge_vectors VALUES (?, ?)", (made, blob))
        return int(made)

    def _nodes(self) -> list[list[Any]]:
        sql = f"SELECT row, name, type FROM nodes WHERE row IN ({marks(self.plan.nodes)}) ORDER BY row"
        return [list(row) for row in self.db.execute(sql, self.plan.nodes)]

    def _typed(self, nodes: Sequence[Sequence[Any]]) -> str | None:
        """Give the node that stays a type, where only those that go have one; returns what it was."""
        known = typed_by(nodes)
        seq = next_seq(self.db, 1)
        sql = "UPDATE nodes SET type = ?, changed = ? WHERE row = ? AND type = '' RETURNING 1"
        return "" if known and self.db.execute(sql, (known, seq, self.plan.node)).fetchone() else None

    def _record(self, taken: Taken, at: str) -> Merge:
        merge = dataclasses.replace(self.plan.merge, id=new_id(), at=at, relations=taken.relations)
        (row,) = self.db.execute(
            "INSERT INTO merges (id, user_id, agent_id, run_id, kind, name, node, score, reasons, at, taken)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING row",
            (
                merge.id,
                *ids_of(merge.scope),
                merge.kind,
                merge.name,
                self.plan.node,
                merge.score,
                json.dumps(merge.reasons, ensure_ascii=False),
                at,
                taken.text(),
            ),
        ).fetchone()
        self.db.executemany(
            "INSERT INTO aliases VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
            [(row, *ids_of(merge.scope), merge.kind, entity_key(name), name) for name in merge.merged],
        )
        return merge


def _name(db: sqlite3.Connection, node: int) -> str:
    return str(db.execute("SELECT name FROM nodes WHERE row = ?", (node,)).fetchone()[0])


def _is_said(db: sqlite3.Connection, edge: int) -> bool:
    sql = "SELECT 1 FROM evidence WHERE edge = ?1 UNION ALL SELECT 1 FROM edge_messages WHERE edge = ?1 LIMIT 1"
    return db.execute(sql, (edge,)).fetchone() is not None


# --- taking it back ----------------------------------------------------------------------------------------------


def _standing(db: sqlite3.Connection, merge_id: str) -> tuple[int, Merge, Taken, list[Taken]]:
    """A merge that stands, what it took, and what later ones of its scope took."""
    found = db.execute(f"SELECT {_MERGE} FROM merges AS m WHERE id = ? AND undone IS NULL", (merge_id,)).fetchone()
    if found is None:
        raise NotFoundError(merge_id)
    merge = merge_of(found, json.loads(found[-1]))
    sql = f"SELECT taken FROM merges WHERE {SAME_SCOPE} AND row > ? AND undone IS NULL"
    later = db.execute(sql, (*exact_ids(merge.scope), found[0])).fetchall()
    return found[0], merge, Taken.read(found[11]), [Taken.read(text) for (text,) in later]


class _Coming:
    """What a merge took, coming back, within a transaction."""

    def __init__(self, db: sqlite3.Connection, row: int, taken: Taken) -> None:
        self.db, self.row, self.taken = db, row, taken
        self.names = {node[0]: node[1] for node in taken.nodes}

    def texts(self) -> list[str]:
        sentences = [self._sentence(edge) for edge in self.taken.edges if self._lives(edge)]
        return list(dict.fromkeys([*self.names.values(), *sentences]))

    def come(self, scope: Scope, vectors: Mapping[str, Any], dims: int, at: str) -> None:
        alive = [edge for edge in self.taken.edges if self._lives(edge)]
        for edge in reversed(alive):
            self._take_out(edge, scope, at)
        for node in self.taken.nodes:
            self._node(node, scope, to_blob(vectors[node[1]], dims))
        for edge in alive:
            self._edge(edge, scope, to_blob(vectors[self._sentence(edge)], dims))
        if self.taken.type is not None:
            sql = "UPDATE nodes SET type = ?, changed = ? WHERE row = (SELECT node FROM merges WHERE row = ?)"
            self.db.execute(sql, (self.taken.type, next_seq(self.db, 1), self.row))
        for merge, was in self.taken.repointed:
            self.db.execute("UPDATE merges SET node = ? WHERE row = ?", (was, merge))
        done = Taken(relations=self.taken.relations)
        self.db.execute("UPDATE merges SET undone = ?, taken = ? WHERE row = ?", (at, done.text(), self.row))
        self.db.execute("UPDATE aliases SET standing = 0 WHERE merge = ?", (self.row,))

    def _lives(self, edge: TakenEdge) -> bool:
        """Whether what a relation went into is still there: if not, it was erased."""
        if edge.into is None:
            return True
        return self.db.execute("SELECT 1 FROM edges WHERE row = ?", (edge.into,)).fetchone() is not None

    def _sentence(self, edge: TakenEdge) -> str:
        source, destination = (self.names.get(end) or _name(self.db, end) for end in (edge.source, edge.destination))
        return Triplet(source, edge.relationship, destination).sentence

    def _take_out(self, edge: TakenEdge, scope: Scope, at: str) -> None:
        """Take a relation out of the one that it went into; what became of that meanwhile, became of it as well."""
        if edge.into is None:
            return
        sql = "SELECT weight, valid_from, valid_to, invalidated_at FROM edges WHERE row = ?"
        into = self.db.execute(sql, (edge.into,)).fetchone()
        said = self.db.execute("SELECT memory, withdrawn FROM evidence WHERE edge = ?", (edge.into,)).fetchall()
        left, before = take_out(edge, into, dict(said), at)
        self._give_back(edge)
        # what said it before may have been erased while the merge stood
        if (edge.made and left <= 0) or (edge.said and not _is_said(self.db, edge.into)):
            bury(self.db, "edges", [edge.into])
            return
        self.db.execute(
            "UPDATE edges SET weight = ?, valid_from = ?, changed = ? WHERE row = ?",
            (max(1, left), before, next_seq(self.db, 1), edge.into),
        )
        own = self.db.execute("SELECT withdrawn FROM evidence WHERE edge = ?", (edge.into,)).fetchall()
        if own and all(withdrawn for (withdrawn,) in own):  # its memories were updated while the merge stood
            GraphWriter(self.db, scope, at, 0, "invalidate").settle([edge.into])

    def _give_back(self, edge: TakenEdge) -> None:
        db = self.db
        db.executemany("DELETE FROM evidence WHERE edge = ? AND memory = ?", [(edge.into, one) for one in edge.lent])
        raised = "UPDATE evidence SET withdrawn = 1 WHERE edge = ? AND memory = ?"
        db.executemany(raised, [(edge.into, one) for one in edge.raised])
        spoken = "DELETE FROM edge_messages WHERE edge = ? AND message = ?"
        db.executemany(spoken, [(edge.into, one) for one in edge.spoken])

    def _node(self, node: Sequence[Any], scope: Scope, blob: bytes) -> None:
        row, name, type = node
        seq = next_seq(self.db, 1)
        self.db.execute("DELETE FROM node_tombstones WHERE row = ?", (row,))
        self.db.execute(
            "INSERT INTO nodes (row, user_id, agent_id, run_id, name, key, type, seq, changed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row, *ids_of(scope), name, entity_key(name), type, seq, seq),
        )
        self.db.execute("INSERT INTO node_vectors VALUES (?, ?)", (row, blob))

    def _edge(self, edge: TakenEdge, scope: Scope, blob: bytes) -> None:
        seq = next_seq(self.db, 1)
        self.db.execute("DELETE FROM edge_tombstones WHERE row = ?", (edge.row,))
        columns = "row, user_id, agent_id, run_id, source, relationship, destination, weight, valid_from, valid_to"
        self.db.execute(
            f"INSERT INTO edges ({columns}, invalidated_at, seq, changed) VALUES ({marks(range(13))})",
            (
                *(edge.row, *ids_of(scope), edge.source, edge.relationship, edge.destination, edge.weight),
                *(edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
            ),
        )
        self.db.execute("INSERT INTO edge_vectors VALUES (?, ?)", (edge.row, blob))
        said = "INSERT INTO evidence VALUES (?, ?, ?, ?, ?)"
        self.db.executemany(said, [(edge.row, *one) for one in edge.evidence])
        heard = "INSERT OR IGNORE INTO edge_messages SELECT ?, row FROM messages WHERE row = ?"
        self.db.executemany(heard, [(edge.row, message) for message in edge.messages])


# --- erasing -----------------------------------------------------------------------------------------------------


def forget_merges(db: sqlite3.Connection, scope: Scope) -> None:
    """Erase every merge of a scope."""
    where, values = scope_sql(scope)
    db.execute(f"DELETE FROM merges WHERE {where}", values)


def forget_support(db: sqlite3.Connection, memory: int, scope: Scope) -> None:
    """Before a memory and its messages are erased: merges no longer keep what only it supported."""
    sql = f"SELECT row, taken FROM merges WHERE {SAME_SCOPE} AND undone IS NULL"
    standing = db.execute(sql, exact_ids(scope)).fetchall()
    if not standing:
        return
    sources = db.execute("SELECT message FROM sources WHERE memory = ?", (memory,)).fetchall()
    messages = {message for (message,) in sources}
    for row, text in standing:
        taken = Taken.read(text)
        left = [edge for edge in taken.edges if _left(db, edge, memory, messages)]
        for into, told, since in rechained(taken.edges, left):
            later = "UPDATE edges SET valid_from = ?, changed = ? WHERE row = ? AND valid_from = ?"
            db.execute(later, (since, next_seq(db, 1), into, told))
        if not left:
            db.execute("DELETE FROM merges WHERE row = ?", (row,))
            continue
        ends = {end for edge in left for end in (edge.source, edge.destination)}
        gone = [name for node, name, _ in taken.nodes if node not in ends]
        taken.edges, taken.nodes = left, [node for node in taken.nodes if node[0] in ends]
        db.execute("UPDATE merges SET taken = ? WHERE row = ?", (taken.text(), row))
        erased = "DELETE FROM aliases WHERE merge = ? AND name = ? AND kind = 'entity'"
        db.executemany(erased, [(row, name) for name in gone])


def _left(db: sqlite3.Connection, edge: TakenEdge, memory: int, messages: set[int]) -> bool:
    stays, lost = left_of(edge, memory, messages)
    if edge.into is not None and lost > 0:
        sql = "UPDATE edges SET weight = max(1, weight - ?), changed = ? WHERE row = ?"
        db.execute(sql, (lost, next_seq(db, 1), edge.into))
    return stays
