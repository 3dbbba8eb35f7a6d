"""Merges of entities and relationships in the PostgreSQL truth: done, taken back, and pruned of what is erased.

It means what `sqlite_merges` means; what the two decide alike is in `taken`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mem0_core.errors import NotFoundError
from mem0_core.ports import MergePlan, check_space
from mem0_core.records import Merge, MergeKind, Scope, Triplet, entity_key, new_id
from mem0_core.stores.postgres_graph import GraphWriter, bury_edges, bury_nodes, next_rows, stays_called
from mem0_core.stores.postgres_meta import held_space
from mem0_core.stores.postgres_rows import exact_of, ids_of, part_of, scope_of, scope_sql
from mem0_core.stores.postgres_session import Database, Steps, ask, change, every, hold, next_seq, reads, within, writes
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
from mem0_core.stores.truth import vector_of

__all__ = ["PostgresMerges", "forget_merges", "forget_support"]

_MERGE = (
    "m.row, m.id, m.user_id, m.agent_id, m.run_id, m.kind, m.name, m.score, m.reasons, m.at, m.undone, m.taken,"
    " ARRAY(SELECT a.name FROM aliases AS a WHERE a.part = m.part AND a.merge = m.row ORDER BY a.place)"
)
_EXACT = "part = %s AND exact = %s"


def _exact(scope: Scope) -> tuple[str, bytes]:
    return part_of(scope), exact_of(scope)


class PostgresMerges:
    """A `MergeLedger`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _apply(self, plan: MergePlan, *, at: str, space: tuple[str, int]) -> Steps[Merge | None]:
        scope = plan.merge.scope
        yield from within(scope)
        yield from hold(part_of(scope))
        check_space((yield from held_space()), space)
        edges = yield from _edges_of(plan)
        names = yield from _names({end for edge in edges for end in (becomes(plan, edge) or ())[::2]})
        going = _Going(plan, space[1], edges, names)
        return (yield from going.go(at)) if (yield from going.fits()) else None

    apply, aapply = writes(_apply)

    def _texts(self, merge_id: str) -> Steps[list[str]]:
        row, merge, taken = yield from _standing(merge_id)
        return (yield from _coming(row, merge, taken)).texts()

    texts, atexts = reads(_texts)

    def _revert(
        self, merge_id: str, vectors: Mapping[str, Any], *, at: str, space: tuple[str, int]
    ) -> Steps[Merge | None]:
        found = yield from ask("SELECT part FROM merges WHERE id = %s", (merge_id,))
        yield from hold(*(part for (part,) in found))
        check_space((yield from held_space()), space)
        row, merge, taken = yield from _standing(merge_id)
        coming = yield from _coming(row, merge, taken)
        if not vectors.keys() >= set(coming.texts()):
            return None
        yield from coming.come(vectors, space[1], at)
        return dataclasses.replace(merge, undone=at)

    revert, arevert = writes(_revert)

    def _listed(self, scope: Scope) -> Steps[list[Merge]]:
        yield from within(scope)
        where, values = scope_sql(scope, "m")
        rows = yield from ask(f"SELECT {_MERGE} FROM merges AS m WHERE {where} ORDER BY m.row", values)
        return [merge_of(row, row[-1]) for row in rows]

    listed, alisted = reads(_listed)

    def _called(self, scope: Scope, kind: MergeKind, *, exact: bool = False) -> Steps[dict[bytes, str]]:
        yield from within(scope)
        where, values = ("a.part = %s AND a.exact = %s", [*_exact(scope)]) if exact else scope_sql(scope, "a")
        gone = f"aliases AS a JOIN merges AS m ON m.part = a.part AND m.row = a.merge WHERE {where}"
        sql = (
            f"SELECT a.key, m.name, m.node, m.user_id, m.agent_id, m.run_id FROM {gone} AND a.kind = %s AND a.standing"
        )
        found = yield from ask(sql, (*values, kind))
        if kind == "entity":
            names = yield from _names({node for _, _, node, *_ in found})
            return {bytes(key): names[node] for key, _, node, *_ in found if node in names}
        called: dict[bytes, str] = {}
        for key, name, _, *ids in found:
            called[bytes(key)] = (yield from stays_called(scope_of(*ids), [name]))[name]
        return called

    called, acalled = reads(_called)


def _names(nodes: set[int]) -> Steps[dict[int, str]]:
    return dict((yield from ask("SELECT row, name FROM nodes WHERE row = ANY(%s)", (list(nodes),))))


# --- doing it ----------------------------------------------------------------------------------------------------


def _edges_of(plan: MergePlan) -> Steps[list[TakenEdge]]:
    """The relations that go over, oldest first, as they are."""
    values: list[Any]
    if plan.node is None:
        which, values = "relationship = ANY(%s)", [list(plan.merge.merged)]
    else:
        which, values = "(source = ANY(%s) OR destination = ANY(%s))", [list(plan.nodes), list(plan.nodes)]
    rows = yield from ask(
        "SELECT row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at FROM edges"
        f" WHERE {_EXACT} AND {which} ORDER BY row",
        (*_exact(plan.merge.scope), *values),
    )
    edges = {row[0]: TakenEdge(*row) for row in rows}
    for edge, memory, withdrawn, *days in (
        yield from ask(
            "SELECT edge, memory, withdrawn, day_first, day_last FROM evidence WHERE edge = ANY(%s) ORDER BY memory",
            (list(edges),),
        )
    ):
        edges[edge].evidence.append([memory, int(withdrawn), *days])
    heard = "SELECT h.edge, h.message FROM edge_messages AS h WHERE h.part = %s AND h.edge = ANY(%s) ORDER BY h.message"
    for edge, message in (yield from ask(heard, (part_of(plan.merge.scope), list(edges)))):
        edges[edge].messages.append(message)
    return list(edges.values())


@dataclass(frozen=True, slots=True)
class _Going:
    """One merge, within a transaction that holds the part."""

    plan: MergePlan
    dims: int
    edges: list[TakenEdge]
    names: Mapping[int, str]
    """Of the nodes that its relations will join, by their rows."""

    def fits(self) -> Steps[bool]:
        """Whether the graph is as it was planned on."""
        rows = [row for row in (self.plan.node, *self.plan.nodes) if row is not None]
        sql = f"SELECT count(*) FROM nodes WHERE {_EXACT} AND row = ANY(%s)"
        [(there,)] = yield from ask(sql, (*_exact(self.plan.merge.scope), rows))
        known = all(
            self._sentence(ends) in self.plan.vectors for edge in self.edges if (ends := becomes(self.plan, edge))
        )
        return bool(there == len(rows) and (self.edges or self.plan.nodes) and known)

    def go(self, at: str) -> Steps[Merge]:
        gone = list(self.plan.nodes)
        nodes = yield from ask("SELECT row, name, type FROM nodes WHERE row = ANY(%s) ORDER BY row", (gone,))
        taken = Taken(nodes=[list(row) for row in nodes], relations=len(self.edges))
        for edge in self.edges:
            yield from self._move(edge)
        taken.edges = self.edges
        yield from bury_edges([edge.row for edge in self.edges])
        if self.plan.node is not None:
            taken.type = yield from self._typed(taken.nodes)
            part = part_of(self.plan.merge.scope)
            earlier = yield from ask("SELECT row, node FROM merges WHERE part = %s AND node = ANY(%s)", (part, gone))
            taken.repointed = [list(row) for row in earlier]
            yield from change(
                "UPDATE merges SET node = %s WHERE part = %s AND node = ANY(%s)", (self.plan.node, part, gone)
            )
            yield from bury_nodes(gone)
        return (yield from self._record(taken, at))

    def _sentence(self, ends: tuple[int, str, int]) -> str:
        source, relationship, destination = ends
        return Triplet(self.names[source], relationship, self.names[destination]).sentence

    def _move(self, edge: TakenEdge) -> Steps[None]:
        ends = becomes(self.plan, edge)
        if ends is None:
            return
        part = part_of(self.plan.merge.scope)
        found = []
        if edge.valid_to is None:
            found = yield from ask(
                "SELECT row, valid_from FROM edges WHERE part = %s AND source = %s AND relationship = %s"
                " AND destination = %s AND valid_to IS NULL",
                (part, *ends),
            )
        if not found:
            edge.into, edge.made = (yield from self._made(edge, ends)), True
        else:
            edge.into, edge.was = found[0]
            edge.said = yield from _is_said(part, found[0][0])
            [seq] = yield from next_seq(1)
            yield from change(
                "UPDATE edges SET weight = weight + %s, valid_from = least(valid_from, %s), changed = %s"
                " WHERE part = %s AND row = %s",
                (edge.weight, edge.valid_from, seq, part, edge.into),
            )
        for memory, withdrawn, *days in edge.evidence:
            if (
                yield from change(f"{_SAID} ON CONFLICT DO NOTHING", (part, edge.into, memory, bool(withdrawn), *days))
            ):
                edge.lent.append(memory)
            elif not withdrawn and (
                yield from change(
                    "UPDATE evidence SET withdrawn = false WHERE part = %s AND edge = %s AND memory = %s AND withdrawn",
                    (part, edge.into, memory),
                )
            ):
                edge.raised.append(memory)
        for message in edge.messages:
            sql = "INSERT INTO edge_messages (part, edge, message) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            if (yield from change(sql, (part, edge.into, message))):
                edge.spoken.append(message)

    def _made(self, edge: TakenEdge, ends: tuple[int, str, int]) -> Steps[int]:
        [row] = yield from next_rows(1)
        moved = dataclasses.replace(edge, row=row, source=ends[0], relationship=ends[1], destination=ends[2])
        vector = vector_of(self.plan.vectors[self._sentence(ends)], self.dims)
        yield from _insert_edge(moved, self.plan.merge.scope, vector)
        return row

    def _typed(self, nodes: Sequence[Sequence[Any]]) -> Steps[str | None]:
        """Give the node that stays a type, where only those that go have one; returns what it was."""
        known = typed_by(nodes)
        if not known:
            return None
        [seq] = yield from next_seq(1)
        sql = "UPDATE nodes SET type = %s, changed = %s WHERE row = %s AND type = ''"
        return "" if (yield from change(sql, (known, seq, self.plan.node))) else None

    def _record(self, taken: Taken, at: str) -> Steps[Merge]:
        merge = dataclasses.replace(self.plan.merge, id=new_id(), at=at, relations=taken.relations)
        place, ids = _exact(merge.scope), ids_of(merge.scope)
        [(row,)] = yield from ask(
            "INSERT INTO merges (part, exact, id, user_id, agent_id, run_id, kind, name, node, score, reasons, at,"
            " taken) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING row",
            (
                *(*place, merge.id, *ids, merge.kind, merge.name, self.plan.node, merge.score),
                *(json.dumps(merge.reasons), at, taken.text()),
            ),
        )
        yield from every(
            "INSERT INTO aliases (part, exact, merge, user_id, agent_id, run_id, kind, key, name, standing)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, true)",
            [(*place, row, *ids, merge.kind, entity_key(name), name) for name in merge.merged],
        )
        return merge


_SAID = (
    "INSERT INTO evidence (part, edge, memory, withdrawn, day_first, day_last) VALUES (%s, %s, %s, %s::boolean, %s, %s)"
)


def _insert_edge(edge: TakenEdge, scope: Scope, vector: Any) -> Steps[None]:
    [seq] = yield from next_seq(1)
    yield from change(
        "INSERT INTO edges (part, exact, user_id, agent_id, run_id, row, source, relationship, destination, weight,"
        " valid_from, valid_to, invalidated_at, seq, changed)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(*_exact(scope), *ids_of(scope), edge.row, edge.source, edge.relationship, edge.destination, edge.weight),
            *(edge.valid_from, edge.valid_to, edge.invalidated_at, seq, seq),
        ),
    )
    sql = "INSERT INTO edge_vectors (part, row, vector) VALUES (%s, %s, %s)"
    yield from change(sql, (part_of(scope), edge.row, vector))


def _is_said(part: str, edge: int) -> Steps[bool]:
    sql = (
        "SELECT 1 FROM evidence WHERE part = %s AND edge = %s UNION ALL"
        " SELECT 1 FROM edge_messages WHERE part = %s AND edge = %s LIMIT 1"
    )
    return bool((yield from ask(sql, (part, edge, part, edge))))


# --- taking it back ----------------------------------------------------------------------------------------------


def _standing(merge_id: str) -> Steps[tuple[int, Merge, Taken]]:
    """A merge that stands, on which no later one builds, and what it took."""
    found = yield from ask(f"SELECT {_MERGE} FROM merges AS m WHERE m.id = %s AND m.undone IS NULL", (merge_id,))
    if not found:
        raise NotFoundError(merge_id)
    row, merge, taken = found[0][0], merge_of(found[0], found[0][-1]), Taken.read(found[0][11])
    sql = f"SELECT taken FROM merges WHERE {_EXACT} AND row > %s AND undone IS NULL"
    later = yield from ask(sql, (*_exact(merge.scope), row))
    refuse_built_on(row, merge, taken, [Taken.read(text) for (text,) in later])
    return row, merge, taken


def _coming(row: int, merge: Merge, taken: Taken) -> Steps[_Coming]:
    into = [edge.into for edge in taken.edges if edge.into is not None]
    there = {row for (row,) in (yield from ask("SELECT row FROM edges WHERE row = ANY(%s)", (into,)))}
    names = yield from _names({end for edge in taken.edges for end in (edge.source, edge.destination)})
    names |= {node[0]: node[1] for node in taken.nodes}
    alive = [edge for edge in taken.edges if edge.into is None or edge.into in there]  # the others were erased
    return _Coming(row, merge.scope, taken, alive, names)


@dataclass(frozen=True, slots=True)
class _Coming:
    """What a merge took, coming back, within a transaction that holds the part."""

    row: int
    scope: Scope
    taken: Taken
    alive: list[TakenEdge]
    names: Mapping[int, str]

    def texts(self) -> list[str]:
        named = [node[1] for node in self.taken.nodes]
        return list(dict.fromkeys([*named, *(self._sentence(edge) for edge in self.alive)]))

    def _sentence(self, edge: TakenEdge) -> str:
        return Triplet(self.names[edge.source], edge.relationship, self.names[edge.destination]).sentence

    def come(self, vectors: Mapping[str, Any], dims: int, at: str) -> Steps[None]:
        part = part_of(self.scope)
        for edge in reversed(self.alive):
            yield from self._take_out(edge, at)
        for node in self.taken.nodes:
            yield from self._node(node, vector_of(vectors[node[1]], dims))
        for edge in self.alive:
            yield from self._edge(edge, vector_of(vectors[self._sentence(edge)], dims))
        if self.taken.type is not None:
            [seq] = yield from next_seq(1)
            yield from change(
                "UPDATE nodes SET type = %s, changed = %s WHERE part = %s"
                " AND row = (SELECT node FROM merges WHERE part = %s AND row = %s)",
                (self.taken.type, seq, part, part, self.row),
            )
        for merge, was in self.taken.repointed:
            yield from change("UPDATE merges SET node = %s WHERE part = %s AND row = %s", (was, part, merge))
        done = Taken(relations=self.taken.relations).text()
        sql = "UPDATE merges SET undone = %s, taken = %s WHERE part = %s AND row = %s"
        yield from change(sql, (at, done, part, self.row))
        yield from change("UPDATE aliases SET standing = false WHERE part = %s AND merge = %s", (part, self.row))

    def _take_out(self, edge: TakenEdge, at: str) -> Steps[None]:
        if edge.into is None:
            return
        part = part_of(self.scope)
        [into] = yield from ask(
            "SELECT weight, valid_from, valid_to, invalidated_at FROM edges WHERE part = %s AND row = %s",
            (part, edge.into),
        )
        said = yield from ask("SELECT memory, withdrawn FROM evidence WHERE part = %s AND edge = %s", (part, edge.into))
        withdrawn: dict[int, bool] = dict(said)
        left, before = take_out(edge, into, withdrawn, at)
        for sql, rows in (
            ("DELETE FROM evidence WHERE part = %s AND edge = %s AND memory = ANY(%s)", edge.lent),
            ("UPDATE evidence SET withdrawn = true WHERE part = %s AND edge = %s AND memory = ANY(%s)", edge.raised),
            ("DELETE FROM edge_messages WHERE part = %s AND edge = %s AND message = ANY(%s)", edge.spoken),
        ):
            yield from change(sql, (part, edge.into, rows))
        # what said it before may have been erased while the merge stood
        if (edge.made and left <= 0) or (edge.said and not (yield from _is_said(part, edge.into))):
            yield from bury_edges([edge.into])
            return
        [seq] = yield from next_seq(1)
        yield from change(
            "UPDATE edges SET weight = %s, valid_from = %s, changed = %s WHERE part = %s AND row = %s",
            (max(1, left), before, seq, part, edge.into),
        )
        own = yield from ask("SELECT withdrawn FROM evidence WHERE part = %s AND edge = %s", (part, edge.into))
        if own and all(withdrawn for (withdrawn,) in own):  # its memories were updated while the merge stood
            yield from GraphWriter(self.scope, at, 0, "invalidate").settle([edge.into])

    def _node(self, node: Sequence[Any], vector: Any) -> Steps[None]:
        row, name, type = node
        part = part_of(self.scope)
        [seq] = yield from next_seq(1)
        yield from change("DELETE FROM node_tombstones WHERE part = %s AND row = %s", (part, row))
        yield from change(
            "INSERT INTO nodes (part, exact, user_id, agent_id, run_id, row, name, key, type, seq, changed)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (*_exact(self.scope), *ids_of(self.scope), row, name, entity_key(name), type, seq, seq),
        )
        yield from change("INSERT INTO node_vectors (part, row, vector) VALUES (%s, %s, %s)", (part, row, vector))

    def _edge(self, edge: TakenEdge, vector: Any) -> Steps[None]:
        part = part_of(self.scope)
        yield from change("DELETE FROM edge_tombstones WHERE part = %s AND row = %s", (part, edge.row))
        yield from _insert_edge(edge, self.scope, vector)
        said = [(part, edge.row, memory, bool(withdrawn), *days) for memory, withdrawn, *days in edge.evidence]
        yield from every(_SAID, said)
        yield from change(
            "INSERT INTO edge_messages (part, edge, message) SELECT part, %s, row FROM messages"
            " WHERE part = %s AND row = ANY(%s) ON CONFLICT DO NOTHING",
            (edge.row, part, edge.messages),
        )


# --- erasing, within a transaction of the store's ----------------------------------------------------------------


def forget_merges(scope: Scope) -> Steps[None]:
    """Erase every merge of a scope."""
    where, values = scope_sql(scope)
    yield from change(f"DELETE FROM merges WHERE {where}", values)


def forget_support(memory: int, scope: Scope) -> Steps[None]:
    """Before a memory and its messages are erased: merges no longer keep what only it supported."""
    sql = f"SELECT row, taken FROM merges WHERE {_EXACT} AND undone IS NULL ORDER BY row"
    standing = yield from ask(sql, _exact(scope))
    if not standing:
        return
    part = part_of(scope)
    messages = {message for (message,) in (yield from ask("SELECT message FROM sources WHERE memory = %s", (memory,)))}
    for row, text in standing:
        taken, left = Taken.read(text), list[TakenEdge]()
        for edge in taken.edges:
            stays, lost = left_of(edge, memory, messages)
            if edge.into is not None and lost > 0:
                [seq] = yield from next_seq(1)
                lighter = (
                    "UPDATE edges SET weight = greatest(1, weight - %s), changed = %s WHERE part = %s AND row = %s"
                )
                yield from change(lighter, (lost, seq, part, edge.into))
            if stays:
                left.append(edge)
        for into, told, since in rechained(taken.edges, left):
            [seq] = yield from next_seq(1)
            later = "UPDATE edges SET valid_from = %s, changed = %s WHERE part = %s AND row = %s AND valid_from = %s"
            yield from change(later, (since, seq, part, into, told))
        if not left:
            yield from change("DELETE FROM merges WHERE part = %s AND row = %s", (part, row))
            continue
        ends = {end for edge in left for end in (edge.source, edge.destination)}
        gone = [name for node, name, _ in taken.nodes if node not in ends]
        taken.edges, taken.nodes = left, [node for node in taken.nodes if node[0] in ends]
        yield from change("UPDATE merges SET taken = %s WHERE part = %s AND row = %s", (taken.text(), part, row))
        yield from change(
            "DELETE FROM aliases WHERE part = %s AND merge = %s AND name = ANY(%s) AND kind = 'entity'",
            (part, row, gone),
        )
