"""The graph as a projection in a database that speaks Cypher: written once, over what differs between them.

A projection follows the truth by sequence number. Its cursor, one node for each truth, moves in the transaction that
writes the page it stands for, and only from where the page begins: a crash leaves it behind, never wrong, and of two
processes that write one page the second writes nothing.

What may be matched is a digest of an id, since an id can be longer than an index of Neo4j's holds; the ids themselves
stand beside it for people to read. Every value is a parameter; texts are made of our own words only.
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

__all__ = ["CypherGraph", "Dialect", "ResultRows", "Statement", "vector_property_name"]

Statement: TypeAlias = tuple[str, dict[str, Any]]
"""A text, and exactly the parameters it names."""
ResultRows: TypeAlias = list[list[Any]]
"""What a statement returned, row by row."""

PAGE_CHANGES = 500  # changes written in one transaction
DELETE_BATCH_NODES = 1000  # nodes removed in one transaction
EMPTYING_SEQ = -1  # the cursor's number while all that an epoch wrote is being removed

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
    """What differs between the databases that speak Cypher."""

    @property
    def schema(self) -> tuple[str, ...]:
        """Statements that make what is matched unique and quick to find; they do nothing the second time."""
        ...

    @property
    def newest_clause(self) -> str:
        """Clauses from ``row, similarity, r`` to ``row, similarity, newest_clause``: the `$limit` highest r.row of
        each."""
        ...

    def vector_schema_statements(self, dims: int) -> tuple[str, ...]:
        """Statements that make room for vectors of this length; they do nothing the second time."""
        ...

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        """Clauses that store the vector of a node n or a relation r, which is the text `new.embedding`: ``[0.6,0.8]``.

        A text, because drivers take each number of a list by itself, which makes the whole three to ten times
        slower.
        """
        ...

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        """An expression for the cosine of a stored vector and the list `$vector`: null where one of them is null."""
        ...


class CypherGraph:
    """A `GraphIndex` in a Cypher database; a subclass brings the connection, as `_execute`.

    Args:
        truth: what it follows.
        store_id: tells several truths in one database apart.
    """

    name = "cypher"

    def __init__(self, primary_graph: GraphStore, store_id: str, dialect: Dialect) -> None:
        self._primary_graph = primary_graph
        self._store = store_id
        self._dialect = dialect
        self._prepared = False
        self._room: set[int] = set()  # lengths of vectors that there is room for
        self._cursor: ChangePosition | None = None  # as last seen; the one in the database decides

    def neighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        return run(self._around(scope, vectors, threshold=threshold, limit=limit, as_of=as_of))

    def nearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        return run(self._triplets(scope, vectors, k, threshold=threshold, as_of=as_of))

    def catch_up(self) -> None:
        run(self._follow())

    def relations(self, scope: Scope) -> list[Relation]:
        return run(self._relations(scope))

    def purge_deleted(self, scope: Scope | None) -> None:
        """What was deleted goes as the projection follows; pages and logs are the database's own to scrub."""
        run(self._follow())

    def find_mismatches(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[ProjectionMismatch]:
        """Whether it holds the relations of the truth, and no others; see `care.VerifiableProjection`."""
        for scope in partitions:
            ours = {relation.row: _comparison_key(relation) for relation in self.relations(scope)}
            theirs = {
                relation.row: _comparison_key(relation)
                for relation in self._primary_graph.relations(scope, include_ended=True)
            }
            missing, extra = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
            other = [row for row in ours.keys() & theirs.keys() if ours[row] != theirs[row]]
            if missing or extra or other:
                counts = ((missing, "lacks"), (extra, "has gone relations:"), (other, "tells otherwise of"))
                told = ", ".join(
                    f"{verb} {len(rows)} ({_describe_first(rows, theirs, ours)})" for rows, verb in counts if rows
                )
                return [ProjectionMismatch(f"of {len(theirs)} relations of {scope.partition[1]!r} it {told}")]
        return []

    def repair_mismatch(self, mismatch: ProjectionMismatch) -> str:
        """Remove all there is of this truth, and write it anew."""
        run(self._rewrite())
        return "written anew from the truth"

    def _rewrite(self) -> Flow[None]:
        while True:
            here = self._cursor or (yield from self._read_cursor())
            if (
                yield from self._advance_cursor(here, ChangePosition("", 0))
            ):  # of no epoch, so that following begins anew
                break
        yield from self._follow()

    # --- what a subclass brings --------------------------------------------------------------------------------------

    def _execute(self, statements: Sequence[Statement], *, is_conditional: bool = False) -> list[ResultRows]:
        """Run statements in one transaction.

        With `is_conditional` the first of them decides: where it returns nothing, nothing is written, and the result
        is [].

        Raises:
            StoreError: it failed; nothing is written.
        """
        raise NotImplementedError

    # --- searching ---------------------------------------------------------------------------------------------------

    # The similarity is computed for every vector of the scope, in the statement that takes the hop: exact, and some
    # 10 ms for a thousand of them. A vector index answers for everybody's first, and what it is then filtered to may
    # be nearly nothing: of the 100 nearest of one user's in twelve, 8 were left.

    def _around(
        self, scope: Scope, vectors: NDArray[np.float32], *, threshold: float, limit: int, as_of: str | None
    ) -> Flow[list[GraphNeighborhood]]:
        yield from self._follow()
        yield from self._prepare_vectors(vectors.shape[1])
        matched, values = self._address(scope)
        held, times = _validity_condition(as_of)
        text = (
            f"MATCH (n:Entity {{{matched}}})"
            f" WITH n.key AS key, n.row AS row, {self._dialect.cosine_expression('n', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold WITH key, row, similarity ORDER BY similarity DESC, row LIMIT $limit"
            " MATCH (n:Entity {key: key, store: $store})"  # once more: whole nodes are not carried through the sort
            f" OPTIONAL MATCH (n)-[r:RELATES {{{matched}}}]-(:Entity {{{matched}}}) WHERE {held}"
            f" {self._dialect.newest_clause} RETURN row, similarity, newest ORDER BY similarity DESC, row"
        )
        values |= {**times, "threshold": threshold, "limit": limit}
        found = yield from do(self._execute, [(text, {**values, "vector": _to_floats(vector)}) for vector in vectors])
        return [_to_around(answer) for answer in found]

    def _triplets(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, *, threshold: float, as_of: str | None
    ) -> Flow[list[list[tuple[int, float]]]]:
        yield from self._follow()
        yield from self._prepare_vectors(vectors.shape[1])
        matched, values = self._address(scope)
        held, times = _validity_condition(as_of)
        text = (
            f"MATCH ()-[r:RELATES {{{matched}}}]->() WHERE {held}"
            f" WITH r.row AS row, {self._dialect.cosine_expression('r', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold RETURN row, similarity ORDER BY similarity DESC, row LIMIT $limit"
        )
        values |= {**times, "threshold": threshold, "limit": k}
        found = yield from do(self._execute, [(text, {**values, "vector": _to_floats(vector)}) for vector in vectors])
        return [[(row, similarity) for row, similarity in answer] for answer in found]

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
                scope=Scope(*row[4:7]),
                valid_from=row[7],
                valid_to=row[8],
                invalidated_at=row[9],
                weight=row[10],
                source_node=row[11],
                destination_node=row[12],
                memories=tuple(row[13]),
                event_dates=DateRange(*row[14:16]) if row[14] or row[15] else None,
            )
            for row in answer
        ]

    def _address(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        """The properties that a match in this scope asks for, and their values."""
        given = {axis.name.lower(): _digest(value) for axis, value in scope.ids.items()}
        return ", ".join(f"{name}: ${name}" for name in ("store", *given)), {"store": self._store, **given}

    # --- following ---------------------------------------------------------------------------------------------------

    def _follow(self) -> Flow[None]:
        more = True
        while more:
            # Read before the truth's position: then it is ahead of that only where the truth went back, as one does
            # that is restored from a copy.
            here = self._cursor or (yield from self._read_cursor())
            goal = yield from do(self._primary_graph.position)
            if here == goal:
                self._cursor = here
                return
            if here.epoch != goal.epoch or here.seq > goal.seq or here.seq == EMPTYING_SEQ:
                yield from self._restart_epoch(here, goal.epoch)
            else:
                more = yield from self._write_next_page(here, goal)

    def _read_cursor(self) -> Flow[ChangePosition]:
        """The cursor as the database has it; made where there is none."""
        if not self._prepared:
            yield from do(self._execute, [(text, {}) for text in self._dialect.schema])
            self._prepared = True
        text = "MERGE (c:Mem0Cursor {store: $store}) ON CREATE SET c.epoch = '', c.seq = 0 RETURN c.epoch, c.seq"
        (answer,) = yield from do(self._execute, [(text, {"store": self._store})])
        return ChangePosition(*answer[0])

    def _restart_epoch(self, here: ChangePosition, epoch: str) -> Flow[None]:
        """Remove everything of this truth, some at a time, and set the cursor to the beginning of `epoch`."""
        emptying = ChangePosition(epoch, EMPTYING_SEQ)
        text = (
            "MATCH (n:Entity) WHERE n.key STARTS WITH $prefix AND n.store = $store"
            " WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
        )
        some = (text, {"prefix": self._key(""), "store": self._store, "limit": DELETE_BATCH_NODES})
        left = yield from self._advance_cursor(here, emptying)
        while left:
            left = yield from self._advance_cursor(emptying, emptying, some)
            if left and not left[1][0][0]:
                yield from self._advance_cursor(emptying, ChangePosition(epoch, 0))
                return

    def _prepare_vectors(self, dims: int) -> Flow[None]:
        if dims and dims not in self._room:
            yield from do(self._execute, [(text, {}) for text in self._dialect.vector_schema_statements(dims)])
            self._room.add(dims)

    def _write_next_page(self, here: ChangePosition, goal: ChangePosition) -> Flow[bool]:
        """Write what changed next; returns whether there is more to come, or another process was quicker."""
        page = yield from do(self._primary_graph.changes, after=here.seq, limit=PAGE_CHANGES)
        dims = next((vector.shape[0] for _, vector in (*page.nodes, *page.relations)), 0)
        yield from self._prepare_vectors(dims)
        # What is younger than `goal` came while we read, some of it perhaps unseen: it is read once more.
        there = ChangePosition(here.epoch, min(page.last_seq, goal.seq))
        moved = yield from self._advance_cursor(here, there, *self._statements(page, dims))
        return page.has_more or not moved

    def _advance_cursor(
        self, here: ChangePosition, there: ChangePosition, *statements: Statement
    ) -> Flow[list[ResultRows]]:
        """Run statements and move the cursor, if it is where we believe; returns [] and does nothing if it is not."""
        # The first SET takes the lock: what is compared after it is what the last one to hold it wrote.
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
        """Whatever `page` holds may be written already: each statement does the same once more."""
        nodes = [self._node(node, vector) for node, vector in page.nodes]
        relations = [self._relation(relation, vector) for relation, vector in page.relations]
        # A node that changed again comes with a later page than its relations: until then it has no type or vector.
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
            # Apart, for Ladybug: where the first of several texts is null, it casts the others to nothing.
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
        """The nodes of relations, but for those `known`, as far as the relations tell."""
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
            "memories": list(relation.memories),
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


def _to_around(answer: ResultRows) -> GraphNeighborhood:
    """Of a statement's nodes, best first, each with its relations: a relation's score is that of its best node."""
    relations: dict[int, float] = {}
    for _, similarity, newest_clause in answer:
        for row in newest_clause or ():  # Ladybug collected nothing as null once
            relations.setdefault(row, similarity)
    return GraphNeighborhood([(row, similarity) for row, similarity, _ in answer], list(relations.items()))


def _validity_condition(as_of: str | None) -> tuple[str, dict[str, str]]:
    if as_of is None:
        return "r.valid_to IS NULL", {}
    return "r.valid_from <= $as_of AND (r.valid_to IS NULL OR r.valid_to > $as_of)", {"as_of": as_of}


def _set_clause(name: str, properties: Iterable[str]) -> str:
    return ", ".join(f"{name}.{each} = new.{each}" for each in properties)


def _scope_properties(scope: Scope) -> dict[str, str | None]:
    """The ids of a scope as given, and by their digests."""
    given = [getattr(scope, axis.value) for axis in Axis]
    digests = [None if value is None else _digest(value) for value in given]
    return dict(zip((*_ID_COLUMNS, *_DIGEST_PROPERTIES), (*given, *digests), strict=True))


def _digest(value: str) -> str:
    return hashlib.blake2b(value.encode(), digest_size=16).hexdigest()


def vector_property_name(dims: int) -> str:
    """Where vectors of this length are kept: each length has its own, so that no two that meet can differ."""
    return f"embedding_{dims}"


def _to_floats(vector: NDArray[np.float32]) -> list[float] | None:
    """The vector, or None for one that has no direction: there is no cosine with it, and databases refuse it."""
    import numpy as np

    norm = float(np.linalg.norm(vector))
    numbers: list[float] = vector.tolist()
    return numbers if norm and np.isfinite(norm) else None


def _to_vector_literal(vector: NDArray[np.float32]) -> str | None:
    numbers = _to_floats(vector)
    return None if numbers is None else f"[{','.join(map('%.9g'.__mod__, numbers))}]"  # nine digits give float32 back
