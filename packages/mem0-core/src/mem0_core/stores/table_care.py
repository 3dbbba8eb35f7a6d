"""Looking after a truth kept in SQL tables, whichever database it is: all it holds, how much, and what is wrong.

Both databases have the same tables. What is written here once is read by either; in what they differ, a `Tables` tells.
Putting right what is wrong is each store's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from mem0_core.care import Flaw, Lost, VectorTable
from mem0_core.records import Axis, RelationChange, Scope, Triplet, entity_key
from mem0_core.stores.schema import HISTORY_COLUMNS
from mem0_core.stores.truth import chunks, marks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LAST_SEQ", "STRAYS", "VECTORS", "TableCare", "Tables"]

Row = tuple[Any, ...]

VECTORS: dict[VectorTable, str] = {"memories": "vectors", "nodes": "node_vectors", "edges": "edge_vectors"}
"""Where the vectors of each table lie."""

_PAGE = 500  # rows read at once

_COUNTED = ("memories", "tombstones", "nodes", "edges", "node_tombstones", "edge_tombstones")
LAST_SEQ = (
    "SELECT max(seq) FROM"
    f" ({' UNION ALL '.join(f'SELECT max(seq) AS seq FROM {table}' for table in _COUNTED)}) AS counted"
)
"""The number of the last change there is anything of."""


def _without(column: str, table: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {table} AS their WHERE their.row = {column})"


STRAYS = {
    "vectors": _without("vectors.row", "memories"),
    "node_vectors": _without("node_vectors.row", "nodes"),
    "sources": _without("sources.message", "messages"),
    "edge_messages": _without("edge_messages.message", "messages"),
    "job_messages": f"({_without('job_messages.job', 'jobs')} OR {_without('job_messages.message', 'messages')})",
}
"""What is true of rows that refer to what is not there. (Evidence may: it outlives its memory.)"""


class Tables(Protocol):
    """The tables of a truth as one connection reads them. Every method raises StoreError when the database fails.

    Attributes:
        place: the column of `history` that grows in the order in which it was written.
        counter: SQL of the number that the last change took.
        version: SQL of the version of the tables.
        misshapen: SQL that is true of a vector ``v.vector`` that has not so many dims; the one placeholder is for them.
    """

    place: str
    counter: str
    version: str
    misshapen: str

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of a statement, whose placeholders are question marks."""
        ...

    def inside(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        """What is true of the rows of a scope, narrower ones included, and its values."""
        ...

    def exactly(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        """What is true of the rows of just this scope, and its values."""
        ...

    def beside(self, one: str, other: str) -> str:
        """What holds of rows of two tables that belong together besides, ending in AND; empty for nothing."""
        ...

    def read_json(self, text: str) -> dict[str, Any]: ...

    def vector(self, stored: Any) -> NDArray[np.float32]: ...


class TableCare:
    """What `Care` asks of a truth and both databases answer alike.

    Args:
        now: the tables as they are at each statement.
        at_one_moment: the tables as they are when they are opened.
    """

    def __init__(
        self,
        now: Callable[[], AbstractContextManager[Tables]],
        at_one_moment: Callable[[], AbstractContextManager[Tables]],
    ) -> None:
        self._now = now
        self._at_one_moment = at_one_moment

    # --- what is wrong -----------------------------------------------------------------------------------------------

    def flaws(self) -> list[Flaw]:
        with self._at_one_moment() as tables:  # or what is written meanwhile would look half-written
            return [*_miscounted(tables), *_vectorless(tables), *_strays(tables)]

    def texts(self, table: VectorTable, rows: Sequence[int]) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        with self._now() as tables:
            for page in chunks(rows):
                among = f"t.row IN ({marks(page)})"
                if table == "edges":
                    sql = f"SELECT t.row, s.name, t.relationship, d.name FROM {_joined(tables)} WHERE {among}"
                    found += [(row, Triplet(*parts).sentence) for row, *parts in tables.ask(sql, page)]
                else:
                    column = "text" if table == "memories" else "name"
                    sql = f"SELECT t.row, t.{column} FROM {table} AS t WHERE {among}"
                    found += [(row, text) for row, text in tables.ask(sql, page)]
        return found

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def lost(self) -> list[Lost]:
        gone = (
            f"SELECT row FROM edge_vectors WHERE {_without('edge_vectors.row', 'edges')}"
            f" UNION SELECT edge FROM evidence WHERE {_without('evidence.edge', 'edges')}"
            f" UNION SELECT edge FROM edge_messages WHERE {_without('edge_messages.edge', 'edges')}"
            f" UNION SELECT row FROM edges WHERE {_without('edges.source', 'nodes')}"
            f" OR {_without('edges.destination', 'nodes')} ORDER BY 1"
        )
        says = (
            "SELECT m.id FROM evidence AS v JOIN memories AS m ON m.row = v.memory WHERE v.edge = ? AND NOT v.withdrawn"
            " ORDER BY v.memory"
        )
        found = []
        with self._now() as tables:
            for (row,) in tables.ask(gone):
                stored = tables.ask("SELECT vector FROM edge_vectors WHERE row = ?", (row,))
                memories = tuple(memory_id for (memory_id,) in tables.ask(says, (row,)))
                found.append(Lost(row, tables.vector(stored[0][0]) if stored else None, memories))
        return found

    def merged(self) -> bool:
        with self._now() as tables:
            return bool(tables.ask("SELECT 1 FROM aliases WHERE standing LIMIT 1"))

    def has_relation(self, scope: Scope, relation: RelationChange) -> bool:
        triplet = relation.triplet
        with self._now() as tables:
            where, values = tables.exactly(scope, "t")
            sql = (
                f"SELECT 1 FROM {_joined(tables)} WHERE {where} AND t.relationship = ?"
                " AND (s.row = ? OR s.key = ?) AND (d.row = ? OR d.key = ?) LIMIT 1"
            )
            # 0 is the row of no node
            source = (relation.source or 0, entity_key(triplet.source))
            destination = (relation.destination or 0, entity_key(triplet.destination))
            return bool(tables.ask(sql, (*values, triplet.relationship, *source, *destination)))

    # --- sums --------------------------------------------------------------------------------------------------------

    def partitions(self, table: VectorTable) -> list[Scope]:
        sql = (
            f"SELECT DISTINCT user_id, NULL, NULL FROM {table} WHERE user_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, agent_id, NULL FROM {table}"
            " WHERE user_id IS NULL AND agent_id IS NOT NULL"
            f" UNION ALL SELECT DISTINCT NULL, NULL, run_id FROM {table} WHERE user_id IS NULL AND agent_id IS NULL"
        )
        with self._now() as tables:
            return [Scope(*row) for row in tables.ask(sql)]

    def addresses(self, table: VectorTable) -> list[Scope]:
        with self._now() as tables:
            return [
                Scope(**{axis.value: value})
                for axis in Axis
                for (value,) in tables.ask(f"SELECT DISTINCT {axis.value} FROM {table} WHERE {axis.value} IS NOT NULL")
            ]

    def sums(self, scope: Scope | None) -> dict[str, Any]:
        with self._at_one_moment() as tables:
            where, values = _inside(tables, scope)

            def one(columns: str, table: str, condition: str = "true") -> Row:
                return tables.ask(f"SELECT {columns} FROM {table} AS t WHERE {where} AND {condition}", values)[0]

            def count(table: str, condition: str = "true") -> int:
                return int(one("count(*)", table, condition)[0])

            users, agents, runs = one(
                ", ".join(f"count(DISTINCT t.{axis})" for axis in ("user_id", "agent_id", "run_id")), "memories"
            )
            first, last = one("min(t.created_at), max(t.created_at)", "memories")
            summed: dict[str, Any] = {
                "memories": count("memories"),
                "pinned": count("memories", "t.pinned"),
                "users": users,
                "agents": agents,
                "runs": runs,
                "oldest": first,
                "newest": last,
                "history": _events(tables, scope),
                "messages": count("messages"),
                "entities": count("nodes"),
                "relations": count("edges", "t.valid_to IS NULL"),
                "ended_relations": count("edges", "t.valid_to IS NOT NULL"),
                "jobs": {state: count("jobs", f"t.state = '{state}'") for state in ("waiting", "parked")},
            }
            if scope is None:
                name, dims = _space(tables) or (None, None)
                summed["embedder"] = {"name": name, "dims": dims}
                [(summed["changes"], summed["schema"])] = tables.ask(f"SELECT {tables.counter}, {tables.version}")
        return summed

    # --- everything --------------------------------------------------------------------------------------------------

    def records(self, scope: Scope | None) -> Iterator[dict[str, Any]]:
        with self._at_one_moment() as tables:
            yield from _memories(tables, scope)
            yield from _messages(tables, scope)
            yield from _nodes(tables, scope)
            yield from _relations(tables, scope)
            yield from _bygone(tables, scope)


# --- what is wrong -----------------------------------------------------------------------------------------------


def _miscounted(tables: Tables) -> Iterator[Flaw]:
    [(counted, last)] = tables.ask(f"SELECT {tables.counter}, ({LAST_SEQ})")
    if (last or 0) > counted:
        yield Flaw("counter", f"the counter of changes says {counted}, the last change is {last}")


def _vectorless(tables: Tables) -> Iterator[Flaw]:
    space = _space(tables)
    for table, vectors in VECTORS.items():
        sql = (
            f"SELECT t.row FROM {table} AS t LEFT JOIN {vectors} AS v ON {tables.beside('v', 't')} v.row = t.row"
            f" WHERE v.vector IS NULL OR {tables.misshapen} ORDER BY t.row"
        )
        if rows := tuple(row for (row,) in tables.ask(sql, (space[1] if space else 0,))):
            yield Flaw("vectorless", f"{len(rows)} {table} have no vector, or one of another length", table, rows)


def _strays(tables: Tables) -> Iterator[Flaw]:
    for table, condition in STRAYS.items():
        [(count,)] = tables.ask(f"SELECT count(*) FROM {table} WHERE {condition}")
        if count:
            yield Flaw("stray", f"{count} rows of {table} refer to what is not there", table)


def _space(tables: Tables) -> tuple[str, int] | None:
    found = tables.ask("SELECT value FROM meta WHERE key = 'space'")
    return tuple(json.loads(found[0][0])) if found else None


# --- everything, as JSON -----------------------------------------------------------------------------------------

_IDS = ("user_id", "agent_id", "run_id")
_SAID = ("hash", "metadata", "actor_id", "role", "memory_type", "created_at", "updated_at", "valid_from")
_HELD = ("weight", "valid_from", "valid_to", "invalidated_at")


def _memories(tables: Tables, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _named(*_IDS, *_SAID, "expiration_date", "pinned", id="t.id", memory="t.text")
    for page in _read(tables, columns, "memories AS t", scope):
        history = _history(tables, [one["id"] for _, one in page])
        heard = _grouped(tables, "memory", "message", "sources", [row for row, _ in page])
        for row, one in page:
            one |= {"metadata": tables.read_json(one["metadata"]), "pinned": bool(one["pinned"])}
            yield {"kind": "memory", **one, "history": history.get(one["id"], []), "messages": heard.get(row, [])}


def _messages(tables: Tables, scope: Scope | None) -> Iterator[dict[str, Any]]:
    columns = _named(*_IDS, "role", "content", "name", "metadata", "created_at", "digest", id="t.row")
    for page in _read(tables, columns, "messages AS t", scope):
        for _, one in page:
            one |= {"metadata": tables.read_json(one["metadata"]), "digest": bytes(one["digest"]).hex()}
            yield {"kind": "message", **one}


def _nodes(tables: Tables, scope: Scope | None) -> Iterator[dict[str, Any]]:
    for page in _read(tables, _named(*_IDS, "name", "type", id="t.row"), "nodes AS t", scope):
        for _, one in page:
            yield {"kind": "entity", **one}


def _relations(tables: Tables, scope: Scope | None) -> Iterator[dict[str, Any]]:
    ends = {"source": "s.name", "relationship": "t.relationship", "destination": "d.name"}
    ends |= {"source_id": "t.source", "destination_id": "t.destination"}
    columns = {**_named(*_IDS, id="t.row"), **ends, **_named(*_HELD)}
    for page in _read(tables, columns, _joined(tables), scope):
        rows = [row for row, _ in page]
        said = _evidence(tables, rows)
        heard = _grouped(tables, "t.row", "h.message", _heard(tables), rows)
        for row, one in page:
            yield {"kind": "relation", **one, **said.get(row, _UNSAID), "messages": heard.get(row, [])}


_UNSAID: Mapping[str, list[str]] = {"evidence": [], "withdrawn": []}


def _evidence(tables: Tables, edges: Sequence[int]) -> dict[int, dict[str, list[str]]]:
    """The ids of the memories that say a relation, and of those that once did."""
    sql = (
        f"SELECT v.edge, m.id, v.withdrawn FROM evidence AS v JOIN memories AS m ON m.row = v.memory"
        f" WHERE v.edge IN ({marks(edges)}) ORDER BY v.memory"
    )
    found: dict[int, dict[str, list[str]]] = {}
    for edge, memory, withdrawn in tables.ask(sql, edges):
        said = found.setdefault(edge, {"evidence": [], "withdrawn": []})
        said["withdrawn" if withdrawn else "evidence"].append(memory)
    return found


def _bygone(tables: Tables, scope: Scope | None) -> Iterator[dict[str, Any]]:
    """The history of memories that are gone; within a scope, of those that have a tombstone there."""
    where, values = "true", list[Any]()
    if scope is not None:
        where, values = tables.inside(scope, "g")
        where = f"h.memory_id IN (SELECT g.memory_id FROM tombstones AS g WHERE {where})"
    sql = (
        "SELECT DISTINCT h.memory_id FROM history AS h WHERE h.memory_id > ?"
        f" AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = h.memory_id) AND {where}"
        f" ORDER BY h.memory_id LIMIT {_PAGE}"
    )
    last = ""
    while ids := [memory_id for (memory_id,) in tables.ask(sql, (last, *values))]:
        last = ids[-1]
        history = _history(tables, ids)
        for memory_id in ids:
            for row in history[memory_id]:
                yield {"kind": "history", **row}


def _history(tables: Tables, memory_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    columns = ", ".join(HISTORY_COLUMNS)
    sql = f"SELECT {columns} FROM history WHERE memory_id IN ({marks(memory_ids)}) ORDER BY {tables.place}"
    found: dict[str, list[dict[str, Any]]] = {}
    for row in tables.ask(sql, memory_ids):
        entry = _given(HISTORY_COLUMNS, row)
        found.setdefault(entry["memory_id"], []).append({**entry, "is_deleted": bool(entry.get("is_deleted"))})
    return found


def _events(tables: Tables, scope: Scope | None) -> dict[str, int]:
    """How many changes of each kind there were, of everybody, or of the memories that a scope has."""
    where, values = _inside(tables, scope)
    those = f" WHERE memory_id IN (SELECT t.id FROM memories AS t WHERE {where})" if scope is not None else ""
    return dict(tables.ask(f"SELECT event, count(*) FROM history{those} GROUP BY event ORDER BY event", values))


# --- pages of rows -----------------------------------------------------------------------------------------------


def _read(
    tables: Tables, columns: Mapping[str, str], source: str, scope: Scope | None
) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """What a scope has in a table, by its rows, in their order: pages of rows and their columns that are not NULL."""
    where, values = _inside(tables, scope)
    sql = (
        f"SELECT t.row, {', '.join(columns.values())} FROM {source}"
        f" WHERE {where} AND t.row > ? ORDER BY t.row LIMIT {_PAGE}"
    )
    last = 0
    while page := tables.ask(sql, (*values, last)):
        last = page[-1][0]
        yield [(row, _given(columns, rest)) for row, *rest in page]


def _grouped(tables: Tables, of: str, column: str, source: str, rows: Sequence[int]) -> dict[int, list[int]]:
    """For each row the values of a column of what belongs to it, ascending."""
    sql = f"SELECT {of}, {column} FROM {source} WHERE {of} IN ({marks(rows)}) ORDER BY {column}"
    found: dict[int, list[int]] = {}
    for row, value in tables.ask(sql, rows):
        found.setdefault(row, []).append(value)
    return found


def _inside(tables: Tables, scope: Scope | None) -> tuple[str, list[Any]]:
    return ("true", []) if scope is None else tables.inside(scope, "t")


def _joined(tables: Tables) -> str:
    """Relations with the nodes at their ends."""
    return (
        f"edges AS t JOIN nodes AS s ON {tables.beside('s', 't')} s.row = t.source"
        f" JOIN nodes AS d ON {tables.beside('d', 't')} d.row = t.destination"
    )


def _heard(tables: Tables) -> str:
    """Relations with the messages they came from."""
    return f"edges AS t JOIN edge_messages AS h ON {tables.beside('h', 't')} h.edge = t.row"


def _named(*columns: str, **others: str) -> dict[str, str]:
    return {**others, **{column: f"t.{column}" for column in columns}}


def _given(columns: Iterable[str], values: Sequence[Any]) -> dict[str, Any]:
    return {column: value for column, value in zip(columns, values, strict=True) if value is not None}
