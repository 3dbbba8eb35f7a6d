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

from mem0_core.care import Unsound
from mem0_core.flow import Flow, do, run
from mem0_core.ports import Around, GraphChanges, GraphTruth, Position
from mem0_core.records import Axis, Days, Node, Relation, Scope, Triplet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Answer", "CypherGraph", "Dialect", "Statement", "vector_property"]

Statement: TypeAlias = tuple[str, dict[str, Any]]
"""A text, and exactly the parameters it names."""
Answer: TypeAlias = list[list[Any]]
"""What a statement returned, row by row."""

PAGE = 500  # changes written in one transaction
BATCH = 1000  # nodes removed in one transaction
EMPTYING = -1  # the cursor's number while all that an epoch wrote is being removed

_NEW = "UNWIND $given AS new"
_IDS = tuple(axis.value for axis in Axis)
_DIGESTS = tuple(axis.name.lower() for axis in Axis)
_END = ("row", "name", *_IDS, *_DIGESTS)
_NODE = (*_END, "type")
_RELATION = (
    *("row", "name", "weight", "valid_from", "valid_to", "invalidated_at", "memories", "day_first", "day_last"),
    *(*_IDS, *_DIGESTS),
)


class Dialect(Protocol):
    """What differs between the databases that speak Cypher."""

    @property
    def schema(self) -> tuple[str, ...]:
        """Statements that make what is matched unique and quick to find; they do nothing the second time."""
        ...

    @property
    def newest(self) -> str:
        """Clauses from ``row, similarity, r`` to ``row, similarity, newest``: the `$limit` highest r.row of each."""
        ...

    def room(self, dims: int) -> tuple[str, ...]:
        """Statements that make room for vectors of this length; they do nothing the second time."""
        ...

    def keep(self, name: Literal["n", "r"], dims: int) -> str:
        """Clauses that store the vector of a node n or a relation r, which is the text `new.embedding`: ``[0.6,0.8]``.

        A text, because drivers take each number of a list by itself, which makes the whole three to ten times
        slower.
        """
        ...

    def cosine(self, name: Literal["n", "r"], dims: int) -> str:
        """An expression for the cosine of a stored vector and the list `$vector`: null where one of them is null."""
        ...


class CypherGraph:
    """A `GraphIndex` in a Cypher database; a subclass brings the connection, as `_execute`.

    Args:
        truth: what it follows.
        store_id: tells several truths in one database apart.
    """

    name = "cypher"

    def __init__(self, truth: GraphTruth, store_id: str, dialect: Dialect) -> None:
        self._truth = truth
        self._store = store_id
        self._dialect = dialect
        self._prepared = False
        self._room: set[int] = set()  # lengths of vectors that there is room for
        self._cursor: Position | None = None  # as last seen; the one in the database decides

    def around(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[Around]:
        return run(self._around(scope, vectors, threshold=threshold, limit=limit, as_of=as_of))

    def triplets(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        return run(self._triplets(scope, vectors, k, threshold=threshold, as_of=as_of))

    def follow(self) -> None:
        run(self._follow())

    def relations(self, scope: Scope) -> list[Relation]:
        return run(self._relations(scope))

    def forget(self, scope: Scope | None) -> None:
        """What was deleted goes as the projection follows; pages and logs are the database's own to scrub."""
        run(self._follow())

    def examine(self, partitions: Sequence[Scope], addresses: Sequence[Scope]) -> list[Unsound]:
        """Whether it holds the relations of the truth, and no others; see `care.Examined`."""
        for scope in partitions:
            ours = {relation.row: _compared(relation) for relation in self.relations(scope)}
            theirs = {relation.row: _compared(relation) for relation in self._truth.relations(scope, ended=True)}
            lacking, surplus = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
            other = [row for row in ours.keys() & theirs.keys() if ours[row] != theirs[row]]
            if lacking or surplus or other:
                counts = ((lacking, "lacks"), (surplus, "has gone relations:"), (other, "tells otherwise of"))
                told = ", ".join(f"{verb} {len(rows)} ({_first(rows, theirs, ours)})" for rows, verb in counts if rows)
                return [Unsound(f"of {len(theirs)} relations of {scope.partition[1]!r} it {told}")]
        return []

    def renew(self, unsound: Unsound) -> str:
        """Remove all there is of this truth, and write it anew."""
        run(self._renewed())
        return "written anew from the truth"

    def _renewed(self) -> Flow[None]:
        while True:
            here = self._cursor or (yield from self._found())
            if (yield from self._move(here, Position("", 0))):  # of no epoch, so that following begins anew
                break
        yield from self._follow()

    # --- what a subclass brings --------------------------------------------------------------------------------------

    def _execute(self, statements: Sequence[Statement], *, guarded: bool = False) -> list[Answer]:
        """Run statements in one transaction.

        With `guarded` the first of them decides: where it returns nothing, nothing is written, and the result is [].

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
    ) -> Flow[list[Around]]:
        yield from self._follow()
        yield from self._make_room(vectors.shape[1])
        matched, values = self._address(scope)
        held, times = _held(as_of)
        text = (
            f"MATCH (n:Entity {{{matched}}})"
            f" WITH n.key AS key, n.row AS row, {self._dialect.cosine('n', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold WITH key, row, similarity ORDER BY similarity DESC, row LIMIT $limit"
            " MATCH (n:Entity {key: key, store: $store})"  # once more: whole nodes are not carried through the sort
            f" OPTIONAL MATCH (n)-[r:RELATES {{{matched}}}]-(:Entity {{{matched}}}) WHERE {held}"
            f" {self._dialect.newest} RETURN row, similarity, newest ORDER BY similarity DESC, row"
        )
        values |= {**times, "threshold": threshold, "limit": limit}
        found = yield from do(self._execute, [(text, {**values, "vector": _numbers(vector)}) for vector in vectors])
        return [_shape(answer) for answer in found]

    def _triplets(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, *, threshold: float, as_of: str | None
    ) -> Flow[list[list[tuple[int, float]]]]:
        yield from self._follow()
        yield from self._make_room(vectors.shape[1])
        matched, values = self._address(scope)
        held, times = _held(as_of)
        text = (
            f"MATCH ()-[r:RELATES {{{matched}}}]->() WHERE {held}"
            f" WITH r.row AS row, {self._dialect.cosine('r', vectors.shape[1])} AS similarity"
            " WHERE similarity >= $threshold RETURN row, similarity ORDER BY similarity DESC, row LIMIT $limit"
        )
        values |= {**times, "threshold": threshold, "limit": k}
        found = yield from do(self._execute, [(text, {**values, "vector": _numbers(vector)}) for vector in vectors])
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
                source=row[11],
                destination=row[12],
                memories=tuple(row[13]),
                days=Days(*row[14:16]) if row[14] or row[15] else None,
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
            here = self._cursor or (yield from self._found())
            goal = yield from do(self._truth.position)
            if here == goal:
                self._cursor = here
                return
            if here.epoch != goal.epoch or here.seq > goal.seq or here.seq == EMPTYING:
                yield from self._begin_anew(here, goal.epoch)
            else:
                more = yield from self._turn_page(here, goal)

    def _found(self) -> Flow[Position]:
        """The cursor as the database has it; made where there is none."""
        if not self._prepared:
            yield from do(self._execute, [(text, {}) for text in self._dialect.schema])
            self._prepared = True
        text = "MERGE (c:Mem0Cursor {store: $store}) ON CREATE SET c.epoch = '', c.seq = 0 RETURN c.epoch, c.seq"
        (answer,) = yield from do(self._execute, [(text, {"store": self._store})])
        return Position(*answer[0])

    def _begin_anew(self, here: Position, epoch: str) -> Flow[None]:
        """Remove everything of this truth, some at a time, and set the cursor to the beginning of `epoch`."""
        emptying = Position(epoch, EMPTYING)
        text = (
            "MATCH (n:Entity) WHERE n.key STARTS WITH $prefix AND n.store = $store"
            " WITH n LIMIT $limit DETACH DELETE n RETURN count(*)"
        )
        some = (text, {"prefix": self._key(""), "store": self._store, "limit": BATCH})
        left = yield from self._move(here, emptying)
        while left:
            left = yield from self._move(emptying, emptying, some)
            if left and not left[1][0][0]:
                yield from self._move(emptying, Position(epoch, 0))
                return

    def _make_room(self, dims: int) -> Flow[None]:
        if dims and dims not in self._room:
            yield from do(self._execute, [(text, {}) for text in self._dialect.room(dims)])
            self._room.add(dims)

    def _turn_page(self, here: Position, goal: Position) -> Flow[bool]:
        """Write what changed next; returns whether there is more to come, or another process was quicker."""
        page = yield from do(self._truth.changes, after=here.seq, limit=PAGE)
        dims = next((vector.shape[0] for _, vector in (*page.nodes, *page.relations)), 0)
        yield from self._make_room(dims)
        # What is younger than `goal` came while we read, some of it perhaps unseen: it is read once more.
        there = Position(here.epoch, min(page.upto, goal.seq))
        moved = yield from self._move(here, there, *self._statements(page, dims))
        return page.more or not moved

    def _move(self, here: Position, there: Position, *statements: Statement) -> Flow[list[Answer]]:
        """Run statements and move the cursor, if it is where we believe; returns [] and does nothing if it is not."""
        # The first SET takes the lock: what is compared after it is what the last one to hold it wrote.
        text = (
            "MATCH (c:Mem0Cursor {store: $store}) SET c.held = true WITH c WHERE c.epoch = $epoch AND c.seq = $seq"
            " SET c.epoch = $new_epoch, c.seq = $new_seq RETURN c.seq"
        )
        places = {"epoch": here.epoch, "seq": here.seq, "new_epoch": there.epoch, "new_seq": there.seq}
        guard = (text, {"store": self._store, **places})
        answers = yield from do(self._execute, [guard, *statements], guarded=True)
        self._cursor = there if answers else None
        return answers

    def _statements(self, page: GraphChanges, dims: int) -> list[Statement]:
        """Whatever `page` holds may be written already: each statement does the same once more."""
        nodes = [self._node(node, vector) for node, vector in page.nodes]
        relations = [self._relation(relation, vector) for relation, vector in page.relations]
        # A node that changed again comes with a later page than its relations: until then it has no type or vector.
        ends = self._ends((relation for relation, _ in page.relations), {node["key"] for node in nodes})
        merge_node = f"{_NEW} MERGE (n:Entity {{key: new.key}}) SET n.store = $store, {_set('n', _NODE)}"
        merge_end = f"{_NEW} MERGE (n:Entity {{key: new.key}}) ON CREATE SET n.store = $store, {_set('n', _END)}"
        merge_relation = (
            f"{_NEW} MATCH (s:Entity {{key: new.source, store: $store}}),"
            " (d:Entity {key: new.destination, store: $store})"
            f" MERGE (s)-[r:RELATES {{key: new.key}}]->(d) SET r.store = $store, {_set('r', _RELATION)}"
        )
        delete_relation = f"{_NEW} MATCH ()-[r:RELATES {{key: new, store: $store}}]->() DELETE r"
        delete_node = f"{_NEW} MATCH (n:Entity {{key: new, store: $store}}) DETACH DELETE n"
        work: list[tuple[str, Sequence[Any]]] = [
            # Apart, for Ladybug: where the first of several texts is null, it casts the others to nothing.
            (f"{merge_node} {self._dialect.keep('n', dims)}", [node for node in nodes if node["embedding"]]),
            (merge_node, [node for node in nodes if not node["embedding"]]),
            (merge_end, ends),
            (f"{merge_relation} {self._dialect.keep('r', dims)}", [each for each in relations if each["embedding"]]),
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
            **_ids(node.scope),
            "embedding": _text(vector),
        }

    def _ends(self, relations: Iterable[Relation], known: set[str]) -> list[dict[str, Any]]:
        """The nodes of relations, but for those `known`, as far as the relations tell."""
        ends: dict[str, dict[str, Any]] = {}
        for relation in relations:
            triplet = relation.triplet
            for row, name in ((relation.source, triplet.source), (relation.destination, triplet.destination)):
                if (key := self._key(row)) not in known:
                    ends[key] = {"key": key, "row": row, "name": name, **_ids(relation.scope)}
        return list(ends.values())

    def _relation(self, relation: Relation, vector: NDArray[np.float32]) -> dict[str, Any]:
        return {
            "key": self._key(relation.row),
            "row": relation.row,
            "source": self._key(relation.source),
            "destination": self._key(relation.destination),
            "name": relation.triplet.relationship,
            "weight": relation.weight,
            "valid_from": relation.valid_from,
            "valid_to": relation.valid_to,
            "invalidated_at": relation.invalidated_at,
            "memories": list(relation.memories),
            "day_first": relation.days and relation.days.first,
            "day_last": relation.days and relation.days.last,
            **_ids(relation.scope),
            "embedding": _text(vector),
        }


def _compared(relation: Relation) -> tuple[Any, ...]:
    memories = tuple(sorted(relation.memories))
    return str(relation.triplet), relation.weight, relation.valid_from, relation.valid_to, relation.scope, memories


def _first(rows: Iterable[int], *named: Mapping[int, tuple[Any, ...]]) -> str:
    row = min(rows)
    return str(next(of[row][0] for of in named if row in of))


def _shape(answer: Answer) -> Around:
    """Of a statement's nodes, best first, each with its relations: a relation's score is that of its best node."""
    relations: dict[int, float] = {}
    for _, similarity, newest in answer:
        for row in newest or ():  # Ladybug collected nothing as null once
            relations.setdefault(row, similarity)
    return Around([(row, similarity) for row, similarity, _ in answer], list(relations.items()))


def _held(as_of: str | None) -> tuple[str, dict[str, str]]:
    if as_of is None:
        return "r.valid_to IS NULL", {}
    return "r.valid_from <= $as_of AND (r.valid_to IS NULL OR r.valid_to > $as_of)", {"as_of": as_of}


def _set(name: str, properties: Iterable[str]) -> str:
    return ", ".join(f"{name}.{each} = new.{each}" for each in properties)


def _ids(scope: Scope) -> dict[str, str | None]:
    """The ids of a scope as given, and by their digests."""
    given = [getattr(scope, axis.value) for axis in Axis]
    digests = [None if value is None else _digest(value) for value in given]
    return dict(zip((*_IDS, *_DIGESTS), (*given, *digests), strict=True))


def _digest(value: str) -> str:
    return hashlib.blake2b(value.encode(), digest_size=16).hexdigest()


def vector_property(dims: int) -> str:
    """Where vectors of this length are kept: each length has its own, so that no two that meet can differ."""
    return f"embedding_{dims}"


def _numbers(vector: NDArray[np.float32]) -> list[float] | None:
    """The vector, or None for one that has no direction: there is no cosine with it, and databases refuse it."""
    import numpy as np

    norm = float(np.linalg.norm(vector))
    numbers: list[float] = vector.tolist()
    return numbers if norm and np.isfinite(norm) else None


def _text(vector: NDArray[np.float32]) -> str | None:
    numbers = _numbers(vector)
    return None if numbers is None else f"[{','.join(map('%.9g'.__mod__, numbers))}]"  # nine digits give float32 back
