"""Changes of the graph within a transaction of the store.

A change is planned in Python from a few statements, then written by batches. So PostgreSQL needs few round trips.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Event, Relation, RelationChange, Scope, Triplet, drops_mention, entity_key
from mem0_core.domain.timestamps import utc_now
from mem0_core.interfaces import OnConflict
from mem0_core.language.families import family_of_label
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
from mem0_core.stores.sql.graph.erasure import TOMBSTONE_COLUMNS, erase_edges
from mem0_core.stores.sql.graph.reader import (
    resolve_node_aliases,
    resolve_relationship_aliases,
    select_relations_by_rows,
)
from mem0_core.stores.sql.rows import scope_ids

_TripletKey = tuple[bytes, str, bytes]


@dataclass(slots=True)
class _EdgeWrite:
    """A new relation, or a valid one that gains weight.

    Attributes:
        row: row of the relation.
        seq: number of the change.
        added_weight: weight of a new relation, or the weight added to an existing one.
        valid_from: time since when it holds.
        ends: source, relationship and destination of a new relation.
        change: change that brings a new relation; None for a relation that exists.
    """

    row: int
    seq: int
    added_weight: int
    valid_from: str
    ends: tuple[int, str, int] = (0, "", 0)
    change: RelationChange | None = None


@dataclass(slots=True)
class _Endpoint:
    """One end of an added relation: row of the node that was found for it, if any, and data of a new node."""

    row: int | None
    name: str
    key: bytes
    type: str
    vector: Any


@dataclass(frozen=True, slots=True)
class GraphWriter:
    """Changes to the graph of one scope, within a write transaction that holds its partition.

    Attributes:
        dialect: SQL of the database.
        scope: exactly the scope of new nodes and relations.
        at: ISO 8601 time of changes that name none.
        dims: length of the vectors.
        on_conflict: ``"invalidate"`` ends relations that no longer hold, ``"delete"`` erases them.
    """

    dialect: Dialect
    scope: Scope
    at: str
    dims: int
    on_conflict: OnConflict
    _stated: dict[_TripletKey, int] = dataclasses.field(default_factory=dict)  # rows of added relations

    def apply(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[RelationChange]]:
        """Write a plan and return the changes that took place.

        Additions come first: a refined relation takes weight and evidence from the one it replaces. A relation that is
        stated again after its end is a new one, so its addition and the rest of the plan come after that end.

        Args:
            changes: the plan.
            memories: rows of memories by their position in the plan of memories.
            messages: rows of the messages of the plan.
        """
        applied: list[RelationChange] = []
        for part in _split_restated(changes):
            applied += yield from self._apply_part(part, memories, messages)
        return applied

    def _apply_part(
        self,
        changes: Sequence[RelationChange],
        memories: Mapping[int, int],
        messages: Sequence[int],
    ) -> Steps[list[RelationChange]]:
        """Write the additions of a part of the plan, then its ends."""
        applied = list(changes)
        adds = [index for index, change in enumerate(changes) if change.event is Event.ADD]
        added = yield from self._add([changes[index] for index in adds], memories, messages)
        for index, (outcome, row) in zip(adds, added, strict=True):
            applied[index] = outcome
            self._stated[outcome.triplet.key] = row
        deletes = {
            index: change
            if change.relation_row is not None
            else dataclasses.replace(change, relation_row=self._stated.get(change.triplet.key))
            for index, change in enumerate(changes)
            if change.event is not Event.ADD
        }
        times = {
            change.relation_row: change.effective_at
            for change in reversed(deletes.values())
            if change.relation_row is not None
        }
        ended = yield from self._close_relations(times)
        for index, change in deletes.items():
            has_ended = change.relation_row in ended
            applied[index] = change if has_ended else dataclasses.replace(change, event=Event.NONE)
            if change.relation_row is not None:
                ended.discard(change.relation_row)  # a second DELETE of the same relation does nothing
        return applied

    def withdraw(
        self, memory: int, before: str, after: str | None, *, is_by_model: bool = False
    ) -> Steps[list[RelationChange]]:
        """Withdraw the support of a memory after its text changed, and end relations without any other support.

        Relations that `apply` has just written keep theirs.

        Args:
            memory: row of the memory.
            before: its text so far.
            after: its new text; None for a deleted memory.
            is_by_model: True to keep relations that the new text only leaves out, as it is often the shorter one: to
                persons, and of families with several values. They end if `apply` has just written another value.
        """
        stated = list(self._stated.values())
        found = yield from fetch_rows("SELECT edge FROM evidence WHERE memory = ? AND NOT withdrawn", (memory,))
        supported = yield from select_relations_by_rows(self.dialect, [edge for (edge,) in found if edge not in stated])
        dropped = [each for each in supported if after is None or drops_mention(before, after, each.triplet)]
        if dropped and after is not None and is_by_model:
            slots = {_slot_of(one.triplet) for one in (yield from select_relations_by_rows(self.dialect, stated))}
            dropped = [one for one in dropped if not _is_lasting(one.triplet) or _slot_of(one.triplet) in slots]
        if not dropped:
            return []
        yield from self._withdraw_evidence(memory, [relation.row for relation in dropped], min_weight=1)
        return (yield from self._close_without_support(dropped))

    def withdraw_relations(self, memory: int) -> Steps[list[int]]:
        """Withdraw the support of a memory for all valid relations, before `apply` adds those of its new text.

        Returns:
            rows of the relations, for `close_unsupported`.
        """
        found = yield from fetch_rows(
            f"SELECT v.edge FROM evidence AS v JOIN edges AS e ON {self.dialect.same_part('e', 'v')}e.row = v.edge"
            " WHERE v.memory = ? AND NOT v.withdrawn AND e.valid_to IS NULL ORDER BY v.edge",
            (memory,),
        )
        rows = [edge for (edge,) in found]
        yield from self._withdraw_evidence(memory, rows, min_weight=0)
        return rows

    def close_unsupported(self, withdrawn_rows: Sequence[int]) -> Steps[list[RelationChange]]:
        """End those of the relations that no memory supports any more."""
        if not withdrawn_rows:
            return []
        among, listed = self.dialect.among("row", withdrawn_rows)
        yield from execute(f"UPDATE edges SET weight = {self.dialect.greatest}(1, weight) WHERE {among}", listed)
        relations = yield from select_relations_by_rows(self.dialect, withdrawn_rows)
        return (yield from self._close_without_support(relations))

    def restore_relation(self, edge: int, change: RelationChange) -> Steps[None]:
        """Rewrite a relation that was removed by hand, or lost a node, under its row number, for its evidence."""
        dialect, relationship, at = self.dialect, change.triplet.relationship, change.effective_at or self.at
        [(source, destination)] = yield from self._resolve_nodes([change])
        [seq] = yield from dialect.reserve_seqs(1)
        part, part_values = dialect.in_part(self.scope)
        duplicate = yield from fetch_rows(
            f"SELECT row FROM edges WHERE {part}source = ? AND destination = ? AND relationship = ?"
            " AND valid_to IS NULL AND row <> ?",
            (*part_values, source, destination, relationship, edge),
        )
        if duplicate:  # it was added again in the meantime
            yield from self._move_evidence(edge, duplicate[0][0], seq)
            return
        [(ended, weight)] = yield from fetch_rows(
            f"SELECT CASE WHEN EXISTS (SELECT 1 FROM edge_tombstones WHERE {part}row = ? AND NOT erased)"
            f" THEN coalesce((SELECT min(valid_from) FROM edges WHERE {part}source = ? AND relationship = ?"
            " AND valid_from > ?), ?) END,"
            f" (SELECT {dialect.greatest}(1, count(*)) FROM evidence WHERE edge = ? AND NOT withdrawn)",
            (*part_values, edge, *part_values, source, relationship, at, self.at, edge),
        )
        upsert = (
            f"ON CONFLICT ({dialect.part}row) DO UPDATE SET source = excluded.source,"
            " destination = excluded.destination, seq = excluded.seq, changed = excluded.changed"
        )
        yield from execute(
            insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}", upsert),
            (
                *dialect.exact_values(self.scope),
                *(*scope_ids(self.scope), edge, source, relationship, destination, weight, at, ended, None, seq, seq),
            ),
        )
        upsert = f"ON CONFLICT ({dialect.part}row) DO UPDATE SET vector = excluded.vector"
        vector = dialect.vector(change.vectors[2], self.dims)
        insert = insert_sql("edge_vectors", f"{dialect.part}row, vector", upsert)
        yield from execute(insert, (*dialect.part_values(self.scope), edge, vector))

    def insert_edge(
        self, row: int, ends: tuple[int, str, int], weight: int, times: tuple[str, str | None, str | None], vector: Any
    ) -> Steps[None]:
        """Insert a relation.

        Args:
            row: its row number.
            ends: source, relationship and destination.
            weight: its weight.
            times: valid_from, valid_to and invalidated_at.
            vector: its vector, as the database stores it.
        """
        dialect = self.dialect
        [seq] = yield from dialect.reserve_seqs(1)
        yield from execute(
            insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}"),
            (*dialect.exact_values(self.scope), *scope_ids(self.scope), row, *ends, weight, *times, seq, seq),
        )
        insert = insert_sql("edge_vectors", f"{dialect.part}row, vector")
        yield from execute(insert, (*dialect.part_values(self.scope), row, vector))

    # --- additions ---------------------------------------------------------------------------------------------------

    def _add(
        self, changes: Sequence[RelationChange], memories: Mapping[int, int], messages: Sequence[int]
    ) -> Steps[list[tuple[RelationChange, int]]]:
        """Write additions, and return them as they took effect with the rows of their relations."""
        if not changes:
            return []
        ends = yield from self._resolve_nodes(changes)
        edges, is_new = yield from self._resolve_edges(changes, ends)
        if statements := self._evidence_statements(changes, edges, memories, messages):
            yield from execute_batch(*statements)
        return [
            (
                dataclasses.replace(change, event=Event.ADD if new else Event.NONE, vectors=(None, None, None)),
                edge.row,
            )
            for change, new, edge in zip(changes, is_new, edges, strict=True)
        ]

    def _evidence_statements(
        self,
        changes: Sequence[RelationChange],
        edges: Sequence[_EdgeWrite],
        memories: Mapping[int, int],
        messages: Sequence[int],
    ) -> list[Statement]:
        """Return the statements that write the evidence and source messages of added relations."""
        part_values = self.dialect.part_values(self.scope)
        copy, insert, insert_message = _evidence_sql(self.dialect.part)
        statements: list[Statement] = []
        evidence: list[Sequence[Any]] = []
        sources: list[Sequence[Any]] = []
        for change, edge in zip(changes, edges, strict=True):
            if change.relation_row is not None:  # copies evidence that changes before it may add
                statements += [
                    Statement(insert, evidence, many=True),
                    Statement(copy, (*part_values, edge.row, change.relation_row)),
                ]
                evidence = []
            dates = change.event_dates or (None,) * len(change.change_indexes)
            evidence += [
                (*part_values, edge.row, memories[index], False, days and days.first, days and days.last)
                for index, days in zip(change.change_indexes, dates, strict=True)
                if index in memories
            ]
            sources += [(*part_values, edge.row, messages[index]) for index in change.message_indexes]
        statements += [Statement(insert, evidence, many=True), Statement(insert_message, sources, many=True)]
        return [statement for statement in statements if statement.values]

    def _resolve_nodes(self, changes: Sequence[RelationChange]) -> Steps[list[tuple[int, int]]]:
        """Return the rows of both ends of each change.

        An end is the node that was found for it, if that still exists, else the node of its name, else a new one.
        """
        ends = [
            _Endpoint(row, name, entity_key(name), type, vector)
            for change in changes
            for row, name, type, vector in (
                (change.source_node, change.triplet.source, change.types[0], change.vectors[0]),
                (change.destination_node, change.triplet.destination, change.types[1], change.vectors[1]),
            )
        ]
        existing, named = yield from self._find_nodes(ends)
        missing = {end.key for end in ends if end.row not in existing and end.key not in named}
        merged = yield from resolve_node_aliases(self.dialect, self.scope, list(missing))
        missing -= merged.keys()
        numbers = iter((yield from self.dialect.reserve_rows("nodes", len(missing))))
        new: dict[int, _Endpoint] = {}
        types: dict[int, str] = {}  # of nodes that had none, or are new
        rows: list[int] = []
        for end in ends:
            if end.row is not None and end.row in existing:
                rows.append(end.row)
                continue
            if end.key in merged:
                rows.append(merged[end.key])
                continue
            if end.key not in named:
                named[end.key] = (next(numbers), "")
                new[named[end.key][0]] = end
            row, type = named[end.key]
            if end.type and not type:
                named[end.key] = (row, end.type)
                types[row] = end.type
            rows.append(row)
        yield from self._write_nodes(new, types)
        return list(zip(rows[::2], rows[1::2], strict=True))

    def _find_nodes(self, ends: Sequence[_Endpoint]) -> Steps[tuple[set[int], dict[bytes, tuple[int, str]]]]:
        """Return which rows of `ends` still exist, and row and type of the nodes that have their names."""
        where, values = self.dialect.in_exact_scope(self.scope)
        rows = [end.row for end in ends if end.row is not None]
        by_row, listed = self.dialect.among("row", rows)
        by_key, keys = self.dialect.equals_key("key", list({end.key for end in ends}), self.scope)
        statements = [Statement(f"SELECT key, row, type FROM nodes WHERE {where} AND {by_key}", values + keys)]
        if rows:
            statements.append(Statement(f"SELECT row FROM nodes WHERE {by_row} AND {where}", listed + values))
        named, *existing = yield from execute_batch(*statements)
        return (
            {row for result in existing for (row,) in result.rows},
            {bytes(key): (row, type) for key, row, type in named.rows},
        )

    def _write_nodes(self, new: Mapping[int, _Endpoint], types: Mapping[int, str]) -> Steps[None]:
        """Insert nodes, and set the types of others."""
        dialect = self.dialect
        typed = [row for row in types if row not in new]
        seqs = iter((yield from dialect.reserve_seqs(len(new) + len(typed))))
        prefix = (*dialect.exact_values(self.scope), *scope_ids(self.scope))
        nodes = [
            (*prefix, row, end.name, end.key, types.get(row, ""), seq, seq)
            for (row, end), seq in zip(new.items(), seqs, strict=False)
        ]
        yield from execute_many(insert_sql("nodes", f"{dialect.exact}{_NODE_COLUMNS}"), nodes)
        part_values = dialect.part_values(self.scope)
        vectors = [(*part_values, row, dialect.vector(end.vector, self.dims)) for row, end in new.items()]
        yield from execute_many(insert_sql("node_vectors", f"{dialect.part}row, vector"), vectors)
        part, part_where = dialect.in_part(self.scope)
        yield from execute_many(
            f"UPDATE nodes SET type = ?, changed = ? WHERE {part}row = ?",
            [(types[row], next(seqs), *part_where, row) for row in typed],
        )

    def _resolve_edges(
        self, changes: Sequence[RelationChange], ends: Sequence[tuple[int, int]]
    ) -> Steps[tuple[list[_EdgeWrite], list[bool]]]:
        """Write the relation of each change, and return it with a flag that says if it is new."""
        labels = [change.triplet.relationship for change in changes]
        names = yield from resolve_relationship_aliases(self.dialect, self.scope, labels)
        triples = [
            (source, names[label], destination) for (source, destination), label in zip(ends, labels, strict=True)
        ]
        times = [change.effective_at or self.at for change in changes]
        known = yield from self._find_known_edges(list(zip(triples, times, strict=True)))
        weights = yield from self._read_weights(changes)
        seqs = yield from self.dialect.reserve_seqs(len(changes))
        new_count = len({triple for triple, row in zip(triples, known, strict=True) if row is None})
        rows = iter((yield from self.dialect.reserve_rows("edges", new_count)))
        writes: dict[tuple[int, str, int] | int, _EdgeWrite] = {}
        edges: list[_EdgeWrite] = []
        is_new: list[bool] = []
        for change, triple, at, row, seq in zip(changes, triples, times, known, seqs, strict=True):
            edge = writes.get(triple if row is None else row)
            if edge is None and row is not None:
                edge = writes[row] = _EdgeWrite(row, seq, 0, at)
            is_new.append(edge is None)
            if edge is None:
                weight = 1 + weights.get(change.relation_row, 0)
                edge = writes[triple] = _EdgeWrite(next(rows), seq, weight, at, triple, change)
            else:
                edge.added_weight, edge.seq, edge.valid_from = edge.added_weight + 1, seq, min(edge.valid_from, at)
                if edge.row in weights:  # a later change of the plan that refines it takes over this weight too
                    weights[edge.row] += 1
            edges.append(edge)
        yield from self._write_edges(list(writes.values()))
        return edges, is_new

    def _find_known_edges(self, stated: Sequence[tuple[tuple[int, str, int], str]]) -> Steps[list[int | None]]:
        """Return the row of the relation that held when each triple was stated, else of the one that holds, or None.

        A relation without a memory that still states it was withdrawn, so a new statement is a new relation.
        """
        part, part_values = self.dialect.in_part(self.scope)
        supported = f"SELECT 1 FROM evidence AS v WHERE {self.dialect.same_part('v', 'e')}v.edge = e.row"
        sql = (
            f"SELECT row FROM edges AS e WHERE {part}source = ? AND relationship = ? AND destination = ?"
            " AND (valid_to IS NULL OR (valid_from <= ? AND valid_to > ?"
            f" AND EXISTS ({supported} AND NOT v.withdrawn))) ORDER BY valid_to IS NULL LIMIT 1"
        )
        distinct = list(dict.fromkeys(stated))
        batch = (Statement(sql, (*part_values, *triple, at, at)) for triple, at in distinct)
        results = yield from execute_batch(*batch)
        rows = {one: result.rows[0][0] for one, result in zip(distinct, results, strict=True) if result.rows}
        return [rows.get(one) for one in stated]

    def _read_weights(self, changes: Sequence[RelationChange]) -> Steps[dict[int | None, int]]:
        """Return the weights of the relations that the changes refine."""
        refined = [change.relation_row for change in changes if change.relation_row is not None]
        if not refined:
            return {}
        among, listed = self.dialect.among("row", refined)
        return dict((yield from fetch_rows(f"SELECT row, weight FROM edges WHERE {among}", listed)))

    def _write_edges(self, edges: Sequence[_EdgeWrite]) -> Steps[None]:
        dialect = self.dialect
        part, part_where = dialect.in_part(self.scope)
        yield from execute_many(
            f"UPDATE edges SET weight = weight + ?, valid_from = {dialect.least}(valid_from, ?), changed = ?"
            f" WHERE {part}row = ?",
            [
                (edge.added_weight, edge.valid_from, edge.seq, *part_where, edge.row)
                for edge in edges
                if edge.change is None
            ],
        )
        new = [(edge, edge.change) for edge in edges if edge.change is not None]
        part_values = dialect.part_values(self.scope)
        vectors = [(*part_values, edge.row, dialect.vector(change.vectors[2], self.dims)) for edge, change in new]
        prefix = (*dialect.exact_values(self.scope), *scope_ids(self.scope))
        rows = [
            (*prefix, edge.row, *edge.ends, edge.added_weight, edge.valid_from, None, None, edge.seq, edge.seq)
            for edge, _ in new
        ]
        yield from execute_many(insert_sql("edges", f"{dialect.exact}{_EDGE_COLUMNS}"), rows)
        yield from execute_many(insert_sql("edge_vectors", f"{dialect.part}row, vector"), vectors)

    # --- ends --------------------------------------------------------------------------------------------------------

    def _withdraw_evidence(self, memory: int, edges: Sequence[int], *, min_weight: int) -> Steps[None]:
        """Withdraw the support of a memory for these relations, each of which loses 1 of its weight."""
        if not edges:
            return
        seqs = yield from self.dialect.reserve_seqs(len(edges))
        among, listed = self.dialect.among("edge", edges)
        yield from execute_batch(
            Statement(f"UPDATE evidence SET withdrawn = true WHERE memory = ? AND {among}", [memory, *listed]),
            Statement(
                f"UPDATE edges SET weight = {self.dialect.greatest}(?, weight - 1), changed = ? WHERE row = ?",
                [(min_weight, seq, edge) for edge, seq in zip(edges, seqs, strict=True)],
                many=True,
            ),
        )

    def _close_without_support(self, relations: Sequence[Relation]) -> Steps[list[RelationChange]]:
        rows = [relation.row for relation in relations]
        among, listed = self.dialect.among("edge", rows)
        sql = f"SELECT DISTINCT edge FROM evidence WHERE {among} AND NOT withdrawn"
        supported = {edge for (edge,) in (yield from fetch_rows(sql, listed))}
        ended = yield from self._close_relations({row: None for row in rows if row not in supported})
        return [
            RelationChange(Event.DELETE, relation.triplet, relation_row=relation.row)
            for relation in relations
            if relation.row in ended
        ]

    def _close_relations(self, times: Mapping[int, str | None]) -> Steps[set[int]]:
        """End relations, each at its time or now, and return the rows of those that held until then."""
        if not times:
            return set()
        if self.on_conflict == "delete":
            return (yield from erase_edges(self.dialect, list(times)))
        now, seqs = utc_now(), (yield from self.dialect.reserve_seqs(len(times)))
        sql = (
            f"UPDATE edges SET valid_to = {self.dialect.greatest}(valid_from, ?), invalidated_at = ?, changed = ?"
            f" WHERE row = ? AND valid_to IS NULL RETURNING {self.dialect.part}row, user_id, agent_id, run_id"
        )
        results = yield from execute_batch(
            *(
                Statement(sql, (at or self.at, now, seq, row))
                for (row, at), seq in zip(times.items(), seqs, strict=True)
            )
        )
        ended = [(*row, seq, False) for result, seq in zip(results, seqs, strict=True) for row in result.rows]
        yield from execute_many(insert_sql("edge_tombstones", f"{self.dialect.part}{TOMBSTONE_COLUMNS}, erased"), ended)
        return {row[-6] for row in ended}

    def _move_evidence(self, edge: int, target: int, seq: int) -> Steps[None]:
        """Move the evidence of a damaged relation to a valid one, and delete the rest of it."""
        yield from execute(
            "UPDATE evidence SET edge = ? WHERE edge = ?"
            " AND memory NOT IN (SELECT memory FROM evidence WHERE edge = ?)",
            (target, edge, target),
        )
        for table, column in (("evidence", "edge"), ("edge_vectors", "row"), ("edges", "row")):
            yield from execute(f"DELETE FROM {table} WHERE {column} = ?", (edge,))
        part, part_values = self.dialect.in_part(self.scope)
        yield from execute(f"UPDATE edges SET changed = ? WHERE {part}row = ?", (seq, *part_values, target))


def _split_restated(changes: Sequence[RelationChange]) -> list[Sequence[RelationChange]]:
    """Split a plan before each addition of a relation that an earlier change of the same part ends."""
    parts: list[Sequence[RelationChange]] = []
    first, ended = 0, set[_TripletKey]()
    for index, change in enumerate(changes):
        if change.event is not Event.ADD:
            ended.add(change.triplet.key)
        elif change.triplet.key in ended:
            parts.append(changes[first:index])
            first, ended = index, set()
    return [*parts, changes[first:]] if changes else []


_NODE_COLUMNS = "user_id, agent_id, run_id, row, name, key, type, seq, changed"
_EDGE_COLUMNS = (
    "user_id, agent_id, run_id, row, source, relationship, destination, weight, valid_from, valid_to, invalidated_at,"
    " seq, changed"
)


def _slot_of(triplet: Triplet) -> tuple[bytes, str]:
    """Return what a relation is a value of: its source, and its family or a label of no family."""
    family = family_of_label(triplet.relationship)
    return triplet.key[0], triplet.relationship if family is None else family.name


def _is_lasting(triplet: Triplet) -> bool:
    """Return True for a relation that holds although a text does not repeat it, unlike a home or a job."""
    family = family_of_label(triplet.relationship)
    return family is not None and (family.answer == "person" or not family.is_single)


@functools.cache
def _evidence_sql(part: str) -> tuple[str, str, str]:
    """Return the SQL that copies evidence from one edge to another, inserts evidence, and inserts a source message."""
    columns = f"{part}edge, memory, withdrawn, day_first, day_last"
    marks = "?, " * len(part.split(",")[:-1])
    copy = (
        f"INSERT INTO evidence ({columns}) SELECT {marks}?, memory, withdrawn, day_first, day_last FROM evidence"
        " WHERE edge = ? ON CONFLICT DO NOTHING"
    )
    upsert = (
        f"ON CONFLICT ({part}edge, memory) DO UPDATE SET withdrawn = false, day_first = excluded.day_first,"
        " day_last = excluded.day_last"
    )
    messages = insert_sql("edge_messages", f"{part}edge, message", "ON CONFLICT DO NOTHING")
    return copy, insert_sql("evidence", columns, upsert), messages
