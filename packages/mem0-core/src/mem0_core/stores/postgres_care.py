"""Looking after the PostgreSQL truth: what the server cannot know to be wrong, and putting it right.

Pages, indexes and the log are the server's business; an index that it calls invalid is told all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mem0_core.care import Flaw, Lost, VectorTable
from mem0_core.errors import StoreError
from mem0_core.records import HistoryRow, Message, RelationChange, Scope
from mem0_core.stores.postgres_archive import PART_OF_MEMORY
from mem0_core.stores.postgres_graph import GraphWriter
from mem0_core.stores.postgres_meta import begin_epoch, held_space
from mem0_core.stores.postgres_rows import exact_of, part_of, scope_of, scope_sql
from mem0_core.stores.postgres_session import (
    Database,
    Moment,
    Steps,
    ask,
    change,
    hold,
    hold_all,
    next_seq,
    reads,
    within,
    writes,
)
from mem0_core.stores.postgres_talk import insert_digested
from mem0_core.stores.postgres_text import from_json
from mem0_core.stores.postgres_words import refresh_words
from mem0_core.stores.schema import HISTORY_COLUMNS
from mem0_core.stores.table_care import LAST_SEQ, STRAYS, VECTORS, TableCare
from mem0_core.stores.truth import vector_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PostgresCare"]

_INVALID = (
    "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE NOT i.indisvalid AND c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace"
    " AND NOT starts_with(c.relname, 'hnsw_') ORDER BY 1"
)
"""Those of vector graphs are invalid while they are built, and are made anew by themselves."""
_WORDLESS = (
    "SELECT count(*) FROM memories AS m WHERE NOT EXISTS"
    " (SELECT 1 FROM sketches AS s WHERE s.part = m.part AND s.row = m.row)"
)
_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)


class PostgresTables:
    """The `Tables` of a database, or of a moment of it."""

    place = "place"
    counter = "(SELECT last_value FROM next_seq)"
    version = "(SELECT value::integer FROM meta WHERE key = 'schema')"
    misshapen = "vector_dims(v.vector) <> ?"

    def __init__(self, db: Database | Moment) -> None:
        self._db = db

    def _ask(self, sql: str, values: Sequence[Any] = ()) -> Steps[list[tuple[Any, ...]]]:
        yield from within(None)
        return (yield from ask(sql.replace("?", "%s"), values))

    ask, aask = reads(_ask)

    def inside(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        where, values = scope_sql(scope, table)
        return where.replace("%s", "?"), values

    def exactly(self, scope: Scope, table: str) -> tuple[str, list[Any]]:
        return f"{table}.part = ? AND {table}.exact = ?", [part_of(scope), exact_of(scope)]

    def beside(self, one: str, other: str) -> str:
        return f"{one}.part = {other}.part AND"

    def read_json(self, text: str) -> dict[str, Any]:
        return from_json(text)

    def vector(self, stored: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = stored.to_numpy()
        return found


class PostgresCare(TableCare):
    """A `Care`. What only reads has no ``a<method>`` twin: it is for upkeep, and async code has a thread for it."""

    file = None

    def __init__(self, db: Database) -> None:
        super().__init__(self._tables, self._tables_at_one_moment)
        self._db = db

    @contextmanager
    def _tables(self) -> Iterator[PostgresTables]:
        yield PostgresTables(self._db)

    @contextmanager
    def _tables_at_one_moment(self) -> Iterator[PostgresTables]:
        with self._db.at_one_moment() as moment:
            yield PostgresTables(moment)

    def size(self) -> dict[str, Any]:
        with self._tables() as tables:
            [(size,)] = tables.ask(_SIZE)
        return {"path": self._db.where, "store": size}

    # --- soundness ---------------------------------------------------------------------------------------------------

    def flaws(self) -> list[Flaw]:
        with self._tables() as tables:
            invalid = [name for (name,) in tables.ask(_INVALID)]
            [(wordless,)] = tables.ask(_WORDLESS)
        found = [Flaw("index", f"the server calls the index {name} invalid") for name in invalid]
        if wordless:
            found.append(Flaw("words", f"the words of {wordless} memories are missing"))
        return [*found, *super().flaws()]

    def _mend(self, flaw: Flaw) -> Steps[str]:
        yield from hold_all()
        if flaw.kind == "index":
            for (name,) in (yield from ask(_INVALID)):
                quoted = name.replace('"', '""')
                yield from change(f'REINDEX INDEX "{quoted}"')
            return "indexes built anew"
        if flaw.kind == "words":
            yield from change("DELETE FROM meta WHERE key = 'words'")
            yield from refresh_words()
            return "read the words of all memories anew"
        if flaw.kind == "counter":
            yield from ask(f"SELECT setval('next_seq', greatest(last_value, ({LAST_SEQ}))) FROM next_seq")
            return "set to the last change"
        if flaw.kind == "stray":
            yield from change(f"DELETE FROM {flaw.table} WHERE {STRAYS[flaw.table]}")
            return "removed"
        raise StoreError(f"{flaw.what}: not the truth's own to mend")

    mend, amend = writes(_mend)

    def _set_vectors(self, table: VectorTable, vectors: Sequence[tuple[int, Any]]) -> Steps[None]:
        yield from hold_all()
        _, dims = (yield from held_space()) or ("", 0)
        numbers = yield from next_seq(len(vectors))
        changed = "" if table == "memories" else ", changed = %s"
        for (row, vector), number in zip(vectors, numbers, strict=True):
            yield from change(
                f"INSERT INTO {VECTORS[table]} (part, row, vector) SELECT part, row, %s FROM {table} WHERE row = %s"
                " ON CONFLICT (part, row) DO UPDATE SET vector = excluded.vector",
                (vector_of(vector, dims), row),
            )
            taken = [number] if table == "memories" else [number, number]
            yield from change(f"UPDATE {table} SET seq = %s{changed} WHERE row = %s", (*taken, row))

    set_vectors, aset_vectors = writes(_set_vectors)

    def _begin_epoch(self) -> Steps[None]:
        yield from begin_epoch()

    begin_epoch, abegin_epoch = writes(_begin_epoch)

    # --- relations removed by hand -----------------------------------------------------------------------------------

    def holes(self) -> int:
        """Nothing tells: numbers of transactions that failed are not given again either."""
        return 0

    def _regain(self, lost: Lost | None, memory_id: str, relation: RelationChange) -> Steps[None]:
        yield from hold_all()
        [(row, *ids, created_at)] = yield from ask(
            "SELECT row, user_id, agent_id, run_id, created_at FROM memories WHERE id = %s", (memory_id,)
        )
        _, dims = (yield from held_space()) or ("", 0)
        writer = GraphWriter(scope_of(*ids), relation.at or created_at, dims, "invalidate")
        if lost is None:
            yield from writer.apply([relation], dict.fromkeys(relation.memories, row), ())
        else:
            yield from writer.put_back(lost.row, relation)

    regain, aregain = writes(_regain)

    def _give_up(self, lost: Lost) -> Steps[None]:
        yield from hold_all()
        for table, column in (
            ("edge_vectors", "row"),
            ("evidence", "edge"),
            ("edge_messages", "edge"),
            ("edges", "row"),
        ):
            yield from change(f"DELETE FROM {table} WHERE {column} = %s", (lost.row,))
        yield from begin_epoch()  # projections may have it, and no tombstone tells them

    give_up, agive_up = writes(_give_up)

    # --- taking in ---------------------------------------------------------------------------------------------------

    def _adopt_history(self, rows: Sequence[HistoryRow]) -> Steps[int]:
        yield from hold_all()
        theirs = [row.id for row in rows]
        added = [row.memory_id for row in rows if row.event == "ADD"]
        yield from change(
            "DELETE FROM history WHERE memory_id = ANY (%s::text[]) AND event = 'ADD' AND id <> ALL (%s::text[])",
            (list(dict.fromkeys(added)), theirs),
        )
        new = 0
        for row in rows:
            values = [int(row.is_deleted) if name == "is_deleted" else getattr(row, name) for name in HISTORY_COLUMNS]
            marks = ", ".join(f"%s::{'integer' if name == 'is_deleted' else 'text'}" for name in HISTORY_COLUMNS)
            new += yield from change(
                f"INSERT INTO history (part, {', '.join(HISTORY_COLUMNS)}) SELECT {PART_OF_MEMORY}, {marks}"
                " WHERE NOT EXISTS (SELECT 1 FROM history WHERE memory_id = %s AND id = %s)",
                (*[row.memory_id] * 3, *values, row.memory_id, row.id),
            )
        return new

    adopt_history, aadopt_history = writes(_adopt_history)

    def _adopt_messages(self, scope: Scope, messages: Sequence[tuple[bytes, Message]]) -> Steps[list[int]]:
        yield from within(scope)
        yield from hold(part_of(scope))
        return (yield from insert_digested(messages, scope, ""))

    adopt_messages, aadopt_messages = writes(_adopt_messages)
