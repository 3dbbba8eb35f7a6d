"""Graph projection in a Cypher database, written once over a small dialect.

The projection follows the primary store by sequence number. Its cursor, one node per store, moves in the transaction
that writes a page of changes, and only from the position where the page begins. After a crash it is behind, but never
wrong; if two processes write the same page, the second writes nothing.

Queries match digests of ids, because an id can be longer than an index of Neo4j accepts; the ids themselves are stored
for readers. Every value is a parameter, and no statement text contains user data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from mem0_core.domain.records import Axis, DateRange, Node, Relation, Scope, Triplet
from mem0_core.flow import Flow, do, run
from mem0_core.interfaces import ChangePosition, GraphChanges, GraphNeighborhood, GraphStore
from mem0_core.interfaces.maintenance import ProjectionMismatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Statement: TypeAlias = tuple[str, dict[str, Any]]
"""A statement text, and exactly the parameters it names."""
ResultRows: TypeAlias = list[list[Any]]
"""The rows that a statement returned."""

PAGE_CHANGES = 500  # changes written in one transaction
DELETE_BATCH_NODES = 1000  # nodes removed in one transaction
_EMPTYING_SEQ = -1  # the cursor's number while everything of an earlier epoch is being removed

_UNWIND_NEW = "UNWIND $given AS new"
_ID_COLUMNS = tuple(axis.value for axis in Axis)
_DIGEST_PROPERTIES = tuple(axis.name.lower() for axis in Axis)
_END_PROPERTIES = ("row", "name", *_ID_COLUMNS, *_DIGEST_PROPERTIES)
_NODE_PROPERTIES = (*_END_PROPERTIES, "type")
_RELATION_PROPERTIES = (
    *("row", "name", "weight", "valid_from", "valid_to", "invalidated_at", "memories", "day_first", "day_last"),
    *(*_ID_COLUMNS, *_DIGEST_PROPERTIES),
)


class Dialect(Protocol):
    """The differences between Cypher databases."""

    @property
    def schema(self) -> tuple[str, ...]:
        """Idempotent statements that create the constraints and indexes of matched properties."""
        ...

    @property
    def newest_clause(self) -> str:
        """Clauses that turn ``row, similarity, r`` into ``row, similarity, newest``, the `$limit` highest r.row."""
        ...

    def vector_schema_statements(self, dims: int) -> tuple[str, ...]:
        """Return idempotent statements that prepare the schema for vectors of `dims` numbers."""
        ...

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        """Return clauses that store the text `new.embedding` (``[0.6,0.8]``) as the vector of a node n or a relation r.

        It is a text because drivers encode the numbers of a list one by one, which is three to ten times slower.
        """
        ...

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        """Return an expression for the cosine of a stored vector and the list `$vector`; null if either is null."""
        ...


class CypherGraph:
    """A `GraphIndex` in a Cypher database; a subclass implements `_execute`.

    Args:
        primary_graph: the relations to follow.
        store_id: identifies this store among several in one database.
    """

    name = "cypher"

    def __init__(self, primary_graph: GraphStore, store_id: str, dialect: Dialect) -> None:
        self._primary_graph = primary_graph
        self._store = store_id
        self._dialect = dialect
        self._prepared = False
        self._prepared_dims: set[int] = set()
        self._cursor: ChangePosition | None = None  # as last read; the one in the database decides

    def neighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        return run(self._find_neighborhoods(scope, vectors, threshold=threshold, limit=limit, as_of=as_of))

    def nearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        return run(self._find_relations(scope, vectors, k, threshold=threshold, as_of=as_of))

    def catch_up(self) -> None:
        run(self._follow())

    def relations(self, scope: Scope) -> list[Relation]:
        return run(self._relations(scope))

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove deleted relations; the database itself scrubs its pages and logs."""
        run(self._follow())

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Compare the stored relations with the primary store; see `VerifiableProjection`."""
        for scope in partitions:
            ours = {relation.row: _comparison_key(relation) for relation in self.relations(scope)}
            theirs = {
                relation.row: _comparison_key(relation)
                for relation in self._primary_graph.relations(scope, include_ended=True)
            }
            missing, extra = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
            other = [row for row in ours.keys() & theirs.keys() if ours[row] != theirs[row]]
            if missing or extra or other:
                counts = ((missing, "lacks"), (extra, "still has deleted relations:"), (other, "differs in"))
                listed = ", ".join(
                    f"{verb} {len(rows)} ({_describe_first(rows, theirs, ours)})" for rows, verb in counts if rows
                )
                return [ProjectionMismatch(f"of {len(theirs)} relations of {scope.partition[1]!r} it {listed}")]
        return []

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Remove everything of this store, and write it again."""
        run(self._rewrite())
        return "rewritten from the primary store"

    def _rewrite(self) -> Flow[None]:
        while True:
            here = self._cursor or (yield from self._read_cursor())
            # Without an epoch, so that `_follow` starts from the beginning.
            if (yield from self._advance_cursor(here, ChangePosition("", 0))):
                break
        yield from self._follow()

    # --- implemented by subclasses -----------------------------------------------------------------------------------

    def _execute(self, statements: Sequence[Statement], *, is_conditional: bool = False) -> list[ResultRows]:
        """Run statements in one transaction.

        With `is_conditional`, nothing is written if the first statement returns no rows; the result is then [].

        Raises:
            StoreError: the transaction failed; nothing is written.
        """
        raise NotImplementedError

    # --- search ------------------------------------------------------------------------------------------------------

    # The statement that takes the hop computes the similarity of every vector of the scope: exact, and some 10 ms for a
    # thousand vectors. A vector index searches all users first and filters afterwards: of the 100 nearest, one user in
    # twelve kept 8.

    def _find_neighborhoods(
        self, scope: Scope, vectors: NDArray[np.float32], *, threshold: float, limit: int, as_of: str | None
    ) -> Flow[list[GraphNeighborhood]]:
        yield from self._follow()
        yield from self._prepare_vectors(vectors.shape[1])
        matched, values = self._address(scope)
        is_valid, times = validity_condition(as_of)
        text = (
            f"MATCH (n:Entity {{{matched}}})"
            f" WITH n.key AS key, n.row AS row, {self._dialect.cosine_expression('n', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold WITH key, row, similarity ORDER BY similarity DESC, row LIMIT $limit"
            " MATCH (n:Entity {key: key, store: $store})"  # matched again, so that the sort does not carry whole nodes
            f" OPTIONAL MATCH (n)-[r:RELATES {{{matched}}}]-(:Entity {{{matched}}}) WHERE {is_valid}"
            f" {self._dialect.newest_clause} RETURN row, similarity, newest ORDER BY similarity DESC, row"
        )
        values |= {**times, "threshold": threshold, "limit": limit}
        answers = yield from do(self._execute, [(text, {**values, "vector": _to_floats(vector)}) for vector in vectors])
        return [_to_neighborhood(answer) for answer in answers]

    def _find_relations(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, *, threshold: float, as_of: str | None
    ) -> Flow[list[list[tuple[int, float]]]]:
        yield from self._follow()
        yield from self._prepare_vectors(vectors.shape[1])
        matched, values = self._address(scope)
        is_valid, times = validity_condition(as_of)
        text = (
            f"MATCH ()-[r:RELATES {{{matched}}}]->() WHERE {is_valid}"
            f" WITH r.row AS row, {self._dialect.cosine_expression('r', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold RETURN row, similarity ORDER BY similarity DESC, row LIMIT $limit"
        )
        values |= {**times, "threshold": threshold, "limit": k}
        answers = yield from do(self._execute, [(text, {**values, "vector": _to_floats(vector)}) for vector in vectors])
        return [[(row, similarity) for row, similarity in answer] for answer in answers]

    def _relations(self, scope: Scope) -> Flow[list[Relation]]:
        yield from self._follow()
        matched, values = self._address(scope)
        text = (
            f"MATCH (s:Entity {{{matched}}})-[r:RELATES {{{matched}}}]->(d:Entity {{{matched}}})"
            " RETURN r.row, s.name, r.name, d.name, r.user_id, r.agent_id, r.run_id, r.valid_from, r.valid_to,"
            " r.invalidated_at, r.weight, s.row, d.row, r.memories, r.day_first, r.day_last"
            " ORDER BY r.valid_from, r.row"
        )
        (answer,) = yield from do(self._execute, [(text, values)])
        return [
            Relation(
                row=row[0],
                triplet=Triplet(*row[1:4]),
                scope=Scope.from_stored(*row[4:7]),
                valid_from=row[7],
                valid_to=row[8],
                invalidated_at=row[9],
                weight=row[10],
                source_node=row[11],
                destination_node=row[12],
                memories=self._read_memories(row[13]),
                event_dates=DateRange(*row[14:16]) if row[14] or row[15] else None,
            )
            for row in answer
        ]

    def _address(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        """Return the properties to match in this scope, and their values."""
        given = {axis.name.lower(): _digest(value) for axis, value in scope.ids.items()}
        return ", ".join(f"{name}: ${name}" for name in ("store", *given)), {"store": self._store, **given}

    # --- updates -----------------------------------------------------------------------------------------------------

    def _follow(self) -> Flow[None]:
        more = True
        while more:
            # Read before the position of the primary store: then it is ahead only if that store was restored from
            # an older copy.
            here = self._cursor or (yield from self._read_cursor())
            goal = yield from do(self._primary_graph.position)
            if here == goal:
                self._cursor = here
                return
            if here.epoch != goal.epoch or here.seq > goal.seq or here.seq == _EMPTYING_SEQ:
                yield from self._restart_epoch(here, goal.epoch)
            else:
                more = yield from self._write_next_page(here, goal)

    def _read_cursor(self) -> Flow[ChangePosition]:
        """Read the cursor from the database; create it if missing."""
        if not self._prepared:
            if self._dialect.schema:
                yield from do(self._execute, [(text, {}) for text in self._dialect.schema])
            self._prepared = True
        text = "MERGE (c:Mem0Cursor {store: $store}) ON CREATE SET c.epoch = '', c.seq = 0 RETURN c.epoch, c.seq"
        (answer,) = yield from do(self._execute, [(text, {"store": self._store})])
        return ChangePosition(*answer[0])

    def _restart_epoch(self, here: ChangePosition, epoch: str) -> Flow[None]:
        """Remove everything of this store in batches, and set the cursor to the beginning of `epoch`."""
        emptying = ChangePosition(epoch, _EMPTYING_SEQ)
        text = (
            "MATCH (n:Entity) WHERE n.key STARTS WITH $prefix AND n.store = $store"
            " WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
        )
        batch = (text, {"prefix": self._key(""), "store": self._store, "limit": DELETE_BATCH_NODES})
        answers = yield from self._advance_cursor(here, emptying)
        while answers:
            answers = yield from self._advance_cursor(emptying, emptying, batch)
            if answers and not answers[1][0][0]:
                yield from self._advance_cursor(emptying, ChangePosition(epoch, 0))
                return

    def _prepare_vectors(self, dims: int) -> Flow[None]:
        if dims and dims not in self._prepared_dims:
            if statements := self._dialect.vector_schema_statements(dims):
                yield from do(self._execute, [(text, {}) for text in statements])
            self._prepared_dims.add(dims)

    def _write_next_page(self, here: ChangePosition, goal: ChangePosition) -> Flow[bool]:
        """Write the next page of changes; return True if more may follow, or another process wrote first."""
        page = yield from do(self._primary_graph.changes, after=here.seq, limit=PAGE_CHANGES)
        dims = next((vector.shape[0] for _, vector in (*page.nodes, *page.relations)), 0)
        yield from self._prepare_vectors(dims)
        # Changes after `goal` were committed during the read, perhaps not all of them seen: they are read again.
        there = ChangePosition(here.epoch, min(page.last_seq, goal.seq))
        moved = yield from self._advance_cursor(here, there, *self._statements(page, dims))
        return page.has_more or not moved

    def _advance_cursor(
        self, here: ChangePosition, there: ChangePosition, *statements: Statement
    ) -> Flow[list[ResultRows]]:
        """Run statements and move the cursor if it is still at `here`; otherwise do nothing and return []."""
        # The first SET takes the lock, so the comparison reads the value that the previous holder wrote.
        text = (
            "MATCH (c:Mem0Cursor {store: $store}) SET c.held = true WITH c WHERE c.epoch = $epoch AND c.seq = $seq"
            " SET c.epoch = $new_epoch, c.seq = $new_seq RETURN c.seq"
        )
        places = {"epoch": here.epoch, "seq": here.seq, "new_epoch": there.epoch, "new_seq": there.seq}
        guard = (text, {"store": self._store, **places})
        answers = yield from do(self._execute, [guard, *statements], is_conditional=True)
        self._cursor = there if answers else None
        return answers

    def _statements(self, page: GraphChanges, dims: int) -> list[Statement]:
        """Build the idempotent statements of a page, which may have been written before."""
        nodes = [self._node(node, vector) for node, vector in page.nodes]
        relations = [self._relation(relation, vector) for relation, vector in page.relations]
        # A node that changed again comes with a later page than its relations; until then it has no type or vector.
        ends = self._end_properties((relation for relation, _ in page.relations), {node["key"] for node in nodes})
        merge_node = f"{_UNWIND_NEW} MERGE (n:Entity {{key: new.key}}) SET n.store = $store, {_set_clause('n', _NODE_PROPERTIES)}"  # noqa: E501
        merge_end = f"{_UNWIND_NEW} MERGE (n:Entity {{key: new.key}}) ON CREATE SET n.store = $store, {_set_clause('n', _END_PROPERTIES)}"  # noqa: E501
        merge_relation = (
            f"{_UNWIND_NEW} MATCH (s:Entity {{key: new.source, store: $store}}),"
            " (d:Entity {key: new.destination, store: $store})"
            f" MERGE (s)-[r:RELATES {{key: new.key}}]->(d) SET r.store = $store, {_set_clause('r', _RELATION_PROPERTIES)}"  # noqa: E501
        )
        delete_relation = f"{_UNWIND_NEW} MATCH ()-[r:RELATES {{key: new, store: $store}}]->() DELETE r"
        delete_node = f"{_UNWIND_NEW} MATCH (n:Entity {{key: new, store: $store}}) DETACH DELETE n"
        work: list[tuple[str, Sequence[Any]]] = [
            # Separate, because Ladybug casts all texts to null if the first of them is null.
            (
                f"{merge_node} {self._dialect.store_vector_clause('n', dims)}",
                [node for node in nodes if node["embedding"]],
            ),
            (merge_node, [node for node in nodes if not node["embedding"]]),
            (merge_end, ends),
            (
                f"{merge_relation} {self._dialect.store_vector_clause('r', dims)}",
                [each for each in relations if each["embedding"]],
            ),
            (merge_relation, [each for each in relations if not each["embedding"]]),
            (delete_relation, [self._key(row) for row in page.removed_relations]),
            (delete_node, [self._key(row) for row in page.removed_nodes]),
        ]
        return [(text, {"given": given, "store": self._store}) for text, given in work if given]

    def _store_memories(self, memories: Sequence[str]) -> Any:
        """Return ids of memories as a property of the database."""
        return list(memories)

    def _read_memories(self, stored: Any) -> tuple[str, ...]:
        return tuple(stored)

    def _key(self, row: int | str) -> str:
        return f"{self._store}:{row}"

    def _node(self, node: Node, vector: NDArray[np.float32]) -> dict[str, Any]:
        return {
            "key": self._key(node.row),
            "row": node.row,
            "name": node.entity.name,
            "type": node.entity.type,
            **_scope_properties(node.scope),
            "embedding": _to_vector_literal(vector),
        }

    def _end_properties(self, relations: Iterable[Relation], known: set[str]) -> list[dict[str, Any]]:
        """Return the nodes of relations, except those in `known`, with the properties that relations carry."""
        ends: dict[str, dict[str, Any]] = {}
        for relation in relations:
            triplet = relation.triplet
            for row, name in (
                (relation.source_node, triplet.source),
                (relation.destination_node, triplet.destination),
            ):
                if (key := self._key(row)) not in known:
                    ends[key] = {"key": key, "row": row, "name": name, **_scope_properties(relation.scope)}
        return list(ends.values())

    def _relation(self, relation: Relation, vector: NDArray[np.float32]) -> dict[str, Any]:
        return {
            "key": self._key(relation.row),
            "row": relation.row,
            "source": self._key(relation.source_node),
            "destination": self._key(relation.destination_node),
            "name": relation.triplet.relationship,
            "weight": relation.weight,
            "valid_from": relation.valid_from,
            "valid_to": relation.valid_to,
            "invalidated_at": relation.invalidated_at,
            "memories": self._store_memories(relation.memories),
            "day_first": relation.event_dates and relation.event_dates.first,
            "day_last": relation.event_dates and relation.event_dates.last,
            **_scope_properties(relation.scope),
            "embedding": _to_vector_literal(vector),
        }


def _comparison_key(relation: Relation) -> tuple[Any, ...]:
    memories = tuple(sorted(relation.memories))
    return str(relation.triplet), relation.weight, relation.valid_from, relation.valid_to, relation.scope, memories


def _describe_first(rows: Iterable[int], *named: Mapping[int, tuple[Any, ...]]) -> str:
    row = min(rows)
    return str(next(of[row][0] for of in named if row in of))


def _to_neighborhood(answer: ResultRows) -> GraphNeighborhood:
    """Convert a statement's rows, best node first; a relation's score is that of its best node."""
    relations: dict[int, float] = {}
    for _, similarity, newest in answer:
        for row in newest or ():  # Ladybug may collect no rows as null
            relations.setdefault(row, similarity)
    return GraphNeighborhood([(row, similarity) for row, similarity, _ in answer], list(relations.items()))


def validity_condition(as_of: str | None) -> tuple[str, dict[str, str]]:
    """Return the condition of relations `r` that are valid, now or at a time, and its values."""
    if as_of is None:
        return "r.valid_to IS NULL", {}
    return "r.valid_from <= $as_of AND (r.valid_to IS NULL OR r.valid_to > $as_of)", {"as_of": as_of}


def _set_clause(name: str, properties: Iterable[str]) -> str:
    return ", ".join(f"{name}.{each} = new.{each}" for each in properties)


def _scope_properties(scope: Scope) -> dict[str, str | None]:
    """Return the ids of a scope and their digests."""
    given = [getattr(scope, axis.value) for axis in Axis]
    digests = [None if value is None else _digest(value) for value in given]
    return dict(zip((*_ID_COLUMNS, *_DIGEST_PROPERTIES), (*given, *digests), strict=True))


def _digest(value: str) -> str:
    return hashlib.blake2b(value.encode(), digest_size=16).hexdigest()


def vector_property_name(dims: int) -> str:
    """Name the property of vectors of this length; each length has its own, so that compared vectors agree."""
    return f"embedding_{dims}"


def _to_floats(vector: NDArray[np.float32]) -> list[float] | None:
    """Convert a vector to a list; None for a zero or non-finite vector, which has no cosine."""
    import numpy as np

    norm = float(np.linalg.norm(vector))
    numbers: list[float] = vector.tolist()
    return numbers if norm and np.isfinite(norm) else None


def _to_vector_literal(vector: NDArray[np.float32]) -> str | None:
    numbers = _to_floats(vector)
    return (
        None if numbers is None else f"[{','.join(map('%.9g'.__mod__, numbers))}]"
    )  # nine digits restore a float32 exactly
