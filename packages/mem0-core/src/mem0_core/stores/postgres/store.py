"""The truth in PostgreSQL with pgvector, for many workers and hosts: one transaction per add.

Writers of one part (the first id of a scope) wait for one another, so that a plan is weighed on what it was made for;
those of others do not. See `postgres_schema` for where things lie, `postgres_session` for how statements are run.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.domain.filters import Filter
from mem0_core.domain.records import (
    Event,
    HistoryRow,
    MemoryChange,
    MemoryItem,
    Message,
    RelationChange,
    Scope,
    Triplet,
    same_fact_key,
)
from mem0_core.errors import ConfigError, InputError, StoreError
from mem0_core.interfaces import (
    CommitResult,
    EmbeddedItem,
    GraphStore,
    JobQueue,
    Lease,
    Lexicon,
    MergeLedger,
    MessageLog,
    OnConflict,
    Summary,
)
from mem0_core.interfaces.archive import Archive, check_load_complete
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.stores.postgres.archive import PostgresArchive
from mem0_core.stores.postgres.dialect import POSTGRES
from mem0_core.stores.postgres.filters import filter_sql
from mem0_core.stores.postgres.graph import PostgresGraph, find_partitions
from mem0_core.stores.postgres.hnsw import drop_hnsw_indexes
from mem0_core.stores.postgres.lexicon import (
    FEATURE_COLUMNS,
    PostgresLexicon,
    is_word_index_stale,
    memory_feature_values,
    refresh_words,
)
from mem0_core.stores.postgres.maintenance import PostgresMaintenance
from mem0_core.stores.postgres.queue import PostgresJobQueue
from mem0_core.stores.postgres.rows import partition_key, scope_digest, scope_sql, stack_vectors, to_int_list
from mem0_core.stores.postgres.schema import DEFAULT_PARTITIONS, TABLES, Layout, TableLayout, migrate
from mem0_core.stores.postgres.session import (
    Database,
    Steps,
    execute,
    fetch_rows,
    lock_all_partitions,
    lock_partitions,
    read_methods,
    reserve_seqs,
    set_scope,
    snapshot_read_methods,
    write_methods,
)
from mem0_core.stores.postgres.text import from_json, to_json
from mem0_core.stores.postgres.vectors import PostgresVectors
from mem0_core.stores.sql.graph import GraphWriter, erase_evidence, erase_graph
from mem0_core.stores.sql.merges import SqlMerges, erase_from_merges, erase_merges
from mem0_core.stores.sql.messages import SqlMessageLog, erase_summaries, insert_messages, insert_summary
from mem0_core.stores.sql.meta import (
    begin_epoch,
    claim_embedding_space,
    read_embedding_space,
    read_import_checkpoint,
    save_import_checkpoint,
    set_meta,
)
from mem0_core.stores.sql.queue import enqueue_job, erase_jobs, finish_jobs
from mem0_core.stores.sql.rows import (
    CONTENT_COLUMNS,
    StoredMemory,
    content_values,
    first_column,
    history_values,
    is_plan_current,
    memory_from_row,
    resolve_duplicate_add,
    scope_from_ids,
    scope_ids,
    session_number,
    to_stored_vector,
    write_order,
)
from mem0_core.stores.sql.vectors import MEMORY_VECTORS
from mem0_core.stores.sqlite.schema import HISTORY_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PostgresStore"]

_MIN_SERVER_VERSION = 140000
"""The version of the server from which everything here works."""

_MEMORY_COLUMNS = f"row, {CONTENT_COLUMNS}, pinned"
_HISTORY_COLUMNS = ", ".join(HISTORY_COLUMNS)

_VECTOR_TABLES: dict[str, tuple[str, str]] = {
    "memory": ("vectors", "memories"),
    "past": ("past", "past"),
    "node": ("node_vectors", "nodes"),
    "relation": ("edge_vectors", "edges"),
}
"""Where the vector of each kind of `EmbeddedItem` lies, and where its `seq`."""

_REPLACE_VECTORS_SQL = (
    "UPDATE {0} AS v SET vector = new.vector FROM unnest(%s::bigint[], %s::bigint[], %s::text[]::vector[])"
    " AS new (row, seq, vector), {1} AS t"
    " WHERE v.row = new.row AND t.part = v.part AND t.row = v.row AND t.seq = new.seq"
)

_INSERT_MEMORY_SQL = f"""
WITH memory AS (
    INSERT INTO memories (part, exact, same, valid_from, {CONTENT_COLUMNS})
    VALUES ({", ".join(["%s"] * 18)}) ON CONFLICT DO NOTHING RETURNING part, row
), its_vector AS (
    INSERT INTO vectors (part, row, vector) SELECT part, row, %s FROM memory
), its_sketch AS (
    INSERT INTO sketches (part, row, {FEATURE_COLUMNS})
    SELECT part, row, %s::bigint, %s::integer, %s::boolean, %s, %s, %s::bigint[] FROM memory
), its_history AS (
    INSERT INTO history (part, {_HISTORY_COLUMNS}) SELECT part, {", ".join(["%s"] * 7)}, %s::integer, %s, %s FROM memory
)
SELECT row FROM memory
"""


class PostgresStore:
    """A `MemoryStore` in one schema of a PostgreSQL database with pgvector.

    Args:
        url: ``postgresql://user:password@host:port/database?sslmode=...``, with any parameter of libpq.
        schema: where its tables are; made where they are missing, if the role may.
        pool_size: connections at most, for all threads together, and for each event loop.
        timeout: seconds a call waits for a connection before StoreError.
        durability: with ``"process"`` a commit does not wait for the server's disk: what was acknowledged in the last
            half second may be lost if the server, not this process, dies. ``"full"`` leaves that to its settings.
        partitions, halfvec: of the tables, when they are made; see `postgres_schema.TableLayout` and
        `DEFAULT_PARTITIONS`. layout: ``"citus"`` distributes the tables instead.
        filling: open it even where a migration into it has not come to its end.

    Each method has its ``a<method>`` twin. Safe to share between threads and event loops; after a fork, open a new one.

    Raises:
        MissingExtra: psycopg or pgvector's adapter is not installed.
        ConfigError: the URL cannot be read, or the server is older than PostgreSQL 14.
        StoreError: the server cannot be reached, or has no tables and this role may not make them.
    """

    vector_provider = "pgvector"  # see `wiring.build_vector_index`

    def __init__(
        self,
        url: str,
        *,
        schema: str = "mem0",
        pool_size: int = 10,
        timeout: float = 10.0,
        durability: Literal["full", "process"] = "full",
        layout: Layout = "postgres",
        partitions: int = DEFAULT_PARTITIONS,
        halfvec: bool = False,
        is_loading: bool = False,
    ) -> None:
        self._db = Database(
            url, schema=schema, pool_size=pool_size, timeout=timeout, waits_for_disk=durability == "full"
        )
        self.server_name = self._db.server_name
        self._open(TableLayout(layout, partitions, halfvec))
        self.memory_vectors = PostgresVectors(self._db, MEMORY_VECTORS)
        self.graph: GraphStore = PostgresGraph(self._db)
        self.merges: MergeLedger = SqlMerges(self._db)
        self.message_log: MessageLog = SqlMessageLog(self._db)
        self.jobs: JobQueue = PostgresJobQueue(self._db)
        self.lexicon: Lexicon = PostgresLexicon(self._db)
        self.archive: Archive = PostgresArchive(self._db)
        self.maintenance: StoreMaintenance = PostgresMaintenance(self._db)
        vectors: Any = self.memory_vectors
        self.position, self.aposition = vectors.position, vectors.aposition
        self.vectors, self.avectors = vectors.vectors, vectors.avectors
        self.vector_changes, self.avector_changes = vectors.vector_changes, vectors.avector_changes
        if not is_loading:
            check_load_complete(self.archive.load_progress())
        if self.words_are_stale():
            self.refresh_words()

    def _open(self, shape: TableLayout) -> None:
        with self._db.connect() as db:
            if db.info.server_version < _MIN_SERVER_VERSION:
                raise ConfigError(
                    f"store: {self._db.server_name} is PostgreSQL {db.info.server_version // 10000}; 14 is needed"
                )
            if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
                raise ConfigError(f"store: {self._db.server_name} keeps text as {encoding}; UTF8 is needed")
            migrate(db, self._db.schema, shape)
            self._db.probe_types(db)

    # --- writing -------------------------------------------------------------------------------------------------

    def _commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        scope: Scope,
        messages: Sequence[Message] = (),
        at: str,
        embedding_space: tuple[str, int] | None = None,
        reject_duplicates: bool = False,
        relations: Sequence[RelationChange] = (),
        on_conflict: OnConflict = "invalidate",
        lease: Lease | None = None,
        import_checkpoint: tuple[str, int] | None = None,
        distinct_sessions: bool = False,
        replace_relations: bool = False,
    ) -> Steps[CommitResult]:
        parts = {partition_key(scope), *(partition_key(change.after.scope) for change in changes)}
        over = [one.relation_row for one in relations if one.relation_row is not None]
        changed = [one.after.id for one in changes if one.before is not None]
        parts.update((yield from find_partitions(relations=over, memory_ids=changed)))
        yield from set_scope(scope if len(parts) == 1 else None)
        yield from lock_partitions(*parts)
        dims = yield from claim_embedding_space(embedding_space)
        targets = yield from _find_targets(changes)
        conflicts = tuple(i for i, change in enumerate(changes) if change.before is not None and not targets[i])
        if conflicts:
            return CommitResult(conflicts=conflicts)
        if lease is not None and not (yield from finish_jobs(POSTGRES, lease)):
            return CommitResult(lease_lost=True)
        if import_checkpoint is not None:
            yield from save_import_checkpoint(POSTGRES, scope, *import_checkpoint)
        heard = yield from insert_messages(POSTGRES, messages, scope, at)
        numbers = yield from reserve_seqs(len(changes))
        applied, rows = list(changes), dict[int, int]()
        for place in write_order(changes):
            session = numbers[place if distinct_sessions else 0]
            write = _ChangeWriter(numbers[place], at, reject_duplicates, dims, session)
            row, applied[place] = yield from write.apply(changes[place], targets[place])
            if row is not None and applied[place].event is not Event.DELETE:
                rows[place] = row
                yield from _insert_sources(
                    partition_key(scope), row, [heard[i] for i in changes[place].message_indexes]
                )
        graph = GraphWriter(POSTGRES, scope, at, dims, on_conflict)
        retracted: dict[int, list[int]] = {}
        for done, target in zip(applied, targets, strict=True):
            if replace_relations and target is not None and done.event is Event.UPDATE:
                retracted[target[0]] = yield from graph.withdraw_relations(target[0])
        related = yield from graph.apply(relations, rows, heard)
        for done, target in zip(applied, targets, strict=True):
            if target is not None and target[0] in retracted:
                related += yield from graph.close_unsupported(retracted[target[0]])
            elif target is not None and done.event is not Event.NONE:
                left = done.after.text if done.event is Event.UPDATE else None
                related += yield from graph.withdraw(target[0], target[1].text, left)
        return CommitResult(applied=tuple(applied), relations=tuple(related))

    commit, acommit = write_methods(_commit)

    def _pin(self, memory_id: str, pinned: bool) -> Steps[bool]:
        return (yield from execute("UPDATE memories SET pinned = %s WHERE id = %s", (pinned, memory_id))) > 0

    pin, apin = write_methods(_pin)

    def _summarise(self, scope: Scope, summary: Summary, lease: Lease) -> Steps[bool]:
        yield from set_scope(scope)
        yield from lock_partitions(partition_key(scope))
        if not (yield from finish_jobs(POSTGRES, lease)):
            return False
        yield from insert_summary(POSTGRES, scope, summary)
        return True

    save_summary, asummarise = write_methods(_summarise)

    def _erase(self, memory_ids: Sequence[str], *, at: str, purge: bool = False) -> Steps[int]:
        ids = list(dict.fromkeys(memory_ids))
        yield from _lock_partitions_of("id = ANY (%s::text[])", [ids])
        rows = yield from _select("WHERE id = ANY (%s::text[]) ORDER BY row", (ids,))
        bygone = yield from _erase_past(ids, at, keep_ids={item.id for _, item in rows})
        yield from _erase_rows(rows, at)
        if purge:
            yield from _purge(ids)
        return len(rows) + bygone

    erase, aerase = write_methods(_erase)

    def _erase_scope(self, scope: Scope, *, at: str, purge: bool = False) -> Steps[int]:
        where, values = scope_sql(scope)
        yield from set_scope(scope)
        yield from _lock_partitions_of(where, values, partition_key(scope))
        rows = yield from _select(f"WHERE {where} ORDER BY row", values)
        past = yield from fetch_rows(f"SELECT DISTINCT id FROM past WHERE {where}", values)
        yield from _erase_past([memory_id for (memory_id,) in past], at)
        yield from _erase_rows(rows, at)
        yield from erase_merges(POSTGRES, scope)
        yield from erase_graph(POSTGRES, scope)
        yield from erase_jobs(POSTGRES, scope)
        for table in ("summaries", "imports", "messages"):
            yield from execute(f"DELETE FROM {table} WHERE {where}", values)
        if purge:
            gone = yield from fetch_rows(f"SELECT memory_id FROM tombstones WHERE {where}", values)
            yield from _purge([memory_id for (memory_id,) in gone])
            for tombstones in ("tombstones", "node_tombstones", "edge_tombstones"):
                yield from execute(f"DELETE FROM {tombstones} WHERE {where}", values)
            yield from begin_epoch()  # with the tombstones gone, projections cannot follow: they start anew
        return len(rows)

    erase_scope, aerase_scope = write_methods(_erase_scope)

    def _embeddables(self) -> Steps[list[EmbeddedItem]]:
        yield from set_scope(None)
        told = "SELECT row, seq, text FROM"
        said = yield from fetch_rows(f"{told} memories ORDER BY row")
        gone = yield from fetch_rows(f"{told} past ORDER BY row")
        named = yield from fetch_rows("SELECT row, seq, name FROM nodes ORDER BY row")
        joined = yield from fetch_rows(
            "SELECT e.row, e.seq, s.name, e.relationship, d.name FROM edges AS e"
            " JOIN nodes AS s ON s.part = e.part AND s.row = e.source"
            " JOIN nodes AS d ON d.part = e.part AND d.row = e.destination ORDER BY e.row"
        )
        return [
            *(EmbeddedItem("memory", *row) for row in said),
            *(EmbeddedItem("past", *row) for row in gone),
            *(EmbeddedItem("node", *row) for row in named),
            *(EmbeddedItem("relation", row, seq, Triplet(*parts).sentence) for row, seq, *parts in joined),
        ]

    embedded_items, aembeddables = snapshot_read_methods(_embeddables)

    def _reembed(self, vectors: Sequence[tuple[EmbeddedItem, Any]], *, embedding_space: tuple[str, int]) -> Steps[None]:
        yield from set_scope(None)
        yield from lock_all_partitions()
        yield from drop_hnsw_indexes()
        replaced = 0
        for kind, (table, rows) in _VECTOR_TABLES.items():
            new = [
                (part.row, part.seq, to_stored_vector(vector, embedding_space[1]))
                for part, vector in vectors
                if part.kind == kind
            ]
            replaced += yield from _replace_vectors(table, rows, new)
        held = 0
        for table, _ in _VECTOR_TABLES.values():
            [(count,)] = yield from fetch_rows(f"SELECT count(*) FROM {table}")
            held += count
        if not held == replaced == len(vectors):
            raise StoreError("memories changed while they were embedded anew; nothing is replaced, try again")
        yield from set_meta("space", json.dumps(embedding_space))
        yield from begin_epoch()

    replace_vectors, areembed = write_methods(_reembed)

    def _reset(self) -> Steps[None]:
        yield from set_scope(None)
        yield from lock_all_partitions()
        yield from drop_hnsw_indexes()
        for table in TABLES:
            yield from execute(f"DELETE FROM {table}")
        yield from execute("DELETE FROM meta WHERE key = 'space'")
        yield from begin_epoch()

    reset, areset = write_methods(_reset)

    def _refresh_words(self) -> Steps[None]:
        yield from set_scope(None)
        yield from lock_all_partitions()
        yield from refresh_words()

    refresh_words, arefresh_words = write_methods(_refresh_words)

    def _words_are_stale(self) -> Steps[bool]:
        return (yield from is_word_index_stale())

    words_are_stale, awords_are_stale = read_methods(_words_are_stale)

    # --- reading -------------------------------------------------------------------------------------------------

    def _import_checkpoint(self, scope: Scope, key: str) -> Steps[int]:
        yield from set_scope(scope)
        return (yield from read_import_checkpoint(POSTGRES, scope, key))

    import_checkpoint, aimport_checkpoint = read_methods(_import_checkpoint)

    def _embedding_space(self) -> Steps[tuple[str, int] | None]:
        return (yield from read_embedding_space())

    embedding_space, aembedding_space = read_methods(_embedding_space)

    def _get(self, memory_id: str) -> Steps[MemoryItem | None]:
        found = yield from _select("WHERE id = %s", (memory_id,))
        return found[0][1] if found else None

    get, aget = read_methods(_get)

    def _row(self, memory_id: str) -> Steps[int | None]:
        found = yield from fetch_rows("SELECT row FROM memories WHERE id = %s", (memory_id,))
        return int(found[0][0]) if found else None

    row, arow = read_methods(_row)

    def _find_by_fact_keys(self, scope: Scope, keys: Sequence[bytes]) -> Steps[dict[bytes, MemoryItem]]:
        yield from set_scope(scope)
        found = yield from fetch_rows(
            f"SELECT {_MEMORY_COLUMNS}, same FROM memories WHERE part = %s AND exact = %s AND same = ANY (%s::bytea[])",
            (partition_key(scope), scope_digest(scope), list(keys)),
        )
        return {bytes(row[-1]): memory_from_row(row, from_json, row[0]) for row in found}

    find_by_fact_keys, afind_by_fact_keys = read_methods(_find_by_fact_keys)

    def _list_memories(
        self, scope: Scope | None, *, filter: Filter | None = None, limit: int | None = None
    ) -> Steps[list[MemoryItem]]:
        yield from set_scope(scope)
        where, values = _where(scope, filter)
        found = yield from _select(f"WHERE {where} ORDER BY created_at, row LIMIT %s", (*values, limit))
        return [item for _, item in found]

    list_memories, alist_memories = read_methods(_list_memories)

    def _pinned_memories(self, scope: Scope) -> Steps[list[MemoryItem]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope)
        found = yield from _select(f"WHERE {where} AND pinned ORDER BY created_at, row", values)
        return [item for _, item in found]

    pinned_memories, apinned_memories = read_methods(_pinned_memories)

    def _rows(
        self, scope: Scope, *, filter: Filter | None = None, as_of: str | None = None
    ) -> Steps[NDArray[np.int64]]:
        yield from set_scope(scope)
        where, values = _where(scope, filter)
        if as_of is not None:
            where, values = f"{where} AND valid_from <= %s", [*values, as_of]
        return first_column((yield from fetch_rows(f"SELECT row FROM memories WHERE {where} ORDER BY row", values)))

    rows, arows = read_methods(_rows)

    def _past_memories(
        self, scope: Scope, *, as_of: str, filter: Filter | None = None
    ) -> Steps[tuple[list[MemoryItem], NDArray[np.float32]]]:
        yield from set_scope(scope)
        where, values = _where(scope, filter)
        rows = yield from fetch_rows(
            f"SELECT row, {CONTENT_COLUMNS}, false, vector FROM past"
            f" WHERE {where} AND valid_to > %s AND valid_from <= %s ORDER BY row",
            (*values, as_of, as_of),
        )
        return [memory_from_row(row, from_json) for row in rows], stack_vectors([row[-1] for row in rows])

    past_memories, apast_memories = read_methods(_past_memories)

    def _memories_by_rows(self, rows: Sequence[int], *, scope: Scope) -> Steps[dict[int, MemoryItem]]:
        yield from set_scope(scope)
        where, values = scope_sql(scope)
        tail = f"WHERE row = ANY (%s::bigint[]) AND {where} ORDER BY row"
        return dict((yield from _select(tail, (to_int_list(rows), *values))))

    memories_by_rows, amemories_by_rows = read_methods(_memories_by_rows)

    def _history(self, memory_id: str) -> Steps[list[HistoryRow]]:
        rows = yield from fetch_rows(
            f"SELECT {_HISTORY_COLUMNS} FROM history WHERE memory_id = %s ORDER BY place", (memory_id,)
        )
        return [dataclasses.replace(HistoryRow(*row), is_deleted=bool(row[7])) for row in rows]

    history, ahistory = read_methods(_history)

    # --- connections ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._db.close()

    async def aclose(self) -> None:
        """Let the connections of the running event loop go; `close` ends the store."""
        await self._db.aclose()


# --- changes -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _ChangeWriter:
    """How one change of a plan is written.

    Attributes:
        session: of what is added, unless its run says otherwise.
    """

    seq: int
    at: str
    reject_duplicates: bool
    dims: int
    session: int

    def apply(self, change: MemoryChange, target: StoredMemory | None) -> Steps[tuple[int | None, MemoryChange]]:
        """Returns the memory's row (None if it is gone) and the change as it took effect."""
        if change.event is Event.NONE:
            found = (yield from _select("WHERE id = %s", (change.after.id,))) if change.message_indexes else []
            return (found[0][0] if found else None), change
        if target is None:
            return (yield from self._add(change))
        row, item = target
        if change.event is Event.UPDATE and (yield from self._update(row, change)):
            return row, change
        if change.event is Event.UPDATE and self.reject_duplicates:
            raise InputError(f"another memory of this scope says this already: delete {item.id!r} instead")
        # An UPDATE to what another memory of the scope already says would make a twin: this one goes instead.
        yield from _insert_past(row, item, self.at)  # its messages stay, as part of the conversation
        yield from _remove_row(row, item, self.at)
        return row, dataclasses.replace(change, event=Event.DELETE, after=item)

    def _add(self, plan: MemoryChange) -> Steps[tuple[int, MemoryChange]]:
        item = plan.after
        same = same_fact_key(item.text, item.actor_id)
        inserted = yield from fetch_rows(
            _INSERT_MEMORY_SQL,
            (
                *(partition_key(item.scope), scope_digest(item.scope), same, item.created_at),
                *content_values(item, to_json, self.seq),
                to_stored_vector(plan.vector, self.dims),
                *memory_feature_values(item, session_number(*scope_ids(item.scope), self.session)),
                *history_values(item, Event.ADD, None, item.text, None),
            ),
        )
        if inserted:
            return inserted[0][0], MemoryChange(
                plan.event, dataclasses.replace(item, seq=self.seq), message_indexes=plan.message_indexes
            )
        duplicate = yield from _find_duplicate(item.scope, same)
        if duplicate is None:
            raise StoreError(f"a memory with the id {item.id!r} exists already")
        done = resolve_duplicate_add(plan, duplicate[1], self.seq)
        if done.event is Event.UPDATE:
            yield from execute(
                "UPDATE memories SET expiration_date = %s, seq = %s WHERE part = %s AND row = %s",
                (done.after.expiration_date, self.seq, partition_key(item.scope), duplicate[0]),
            )
        return duplicate[0], done

    def _update(self, row: int, plan: MemoryChange) -> Steps[bool]:
        """Whether the memory could take the new text: not if another memory of its scope says the same."""
        item = plan.after
        part, same = partition_key(item.scope), same_fact_key(item.text, item.actor_id)
        duplicate = yield from _find_duplicate(item.scope, same)
        if duplicate is not None and duplicate[0] != row:
            return False
        since = item.updated_at or item.created_at
        said_anew = item.text != plan.before
        if said_anew:
            yield from _insert_past(row, item, since)
        yield from execute(
            "UPDATE memories SET text = %s, hash = %s, same = %s, metadata = %s, actor_id = %s, role = %s,"
            " updated_at = %s, expiration_date = %s, seq = %s,"
            " valid_from = CASE WHEN %s THEN greatest(valid_from, %s) ELSE valid_from END WHERE part = %s AND row = %s",
            (
                *(item.text, item.hash, same, to_json(item.metadata), item.actor_id, item.role),
                *(item.updated_at, item.expiration_date, self.seq, said_anew, since, part, row),
            ),
        )
        _, *words = memory_feature_values(item, 0)  # the session stays what it was
        yield from execute(
            "UPDATE sketches SET length = %s, asks = %s, terms = %s, names = %s, keys = %s::bigint[]"
            " WHERE part = %s AND row = %s",
            (*words, part, row),
        )
        if plan.vector is not None:
            vector = to_stored_vector(plan.vector, self.dims)
            yield from execute("UPDATE vectors SET vector = %s WHERE part = %s AND row = %s", (vector, part, row))
        if said_anew:  # the history is of texts; metadata alone leaves no row
            yield from _insert_history(item, Event.UPDATE, plan.before, item.text, item.updated_at)
        return True


def _find_targets(changes: Sequence[MemoryChange]) -> Steps[list[StoredMemory | None]]:
    """For each change the memory that it was planned on, if that still is what the plan saw."""
    ids = [change.after.id for change in changes if change.before is not None]
    if not ids:
        return [None] * len(changes)
    parts = list({partition_key(change.after.scope) for change in changes if change.before is not None})
    found = yield from _select("WHERE part = ANY (%s::text[]) AND id = ANY (%s::text[])", (parts, ids))
    known = {item.id: (row, item) for row, item in found}
    stored = [known.get(change.after.id) if change.before is not None else None for change in changes]
    return [
        target if target is not None and is_plan_current(change, target[1]) else None
        for change, target in zip(changes, stored, strict=True)
    ]


def _find_duplicate(scope: Scope, same: bytes) -> Steps[StoredMemory | None]:
    where = "WHERE part = %s AND exact = %s AND same = %s"
    found = yield from _select(where, (partition_key(scope), scope_digest(scope), same))
    return found[0] if found else None


def _insert_past(row: int, item: MemoryItem, until: str) -> Steps[None]:
    """Keep what a memory says as what it said before `until`."""
    said = ", ".join(f"m.{column.strip()}" for column in CONTENT_COLUMNS.split(","))
    yield from execute(
        f"INSERT INTO past (part, memory, {CONTENT_COLUMNS}, valid_from, valid_to, vector)"
        f" SELECT m.part, m.row, {said}, m.valid_from, greatest(m.valid_from, %s), v.vector"
        " FROM memories AS m JOIN vectors AS v ON v.part = m.part AND v.row = m.row WHERE m.part = %s AND m.row = %s",
        (until, partition_key(item.scope), row),
    )


def _erase_rows(rows: Iterable[StoredMemory], at: str) -> Steps[None]:
    """A user's delete: memories go with all that came of them and the messages they came from."""
    for row, item in rows:
        yield from _erase_traces(row, item.scope, at)
        yield from _remove_row(row, item, at)


def _erase_past(memory_ids: Sequence[str], at: str, *, keep_ids: Set[str] = frozenset()) -> Steps[int]:
    """Erase what memories said; those not in `keep_ids` are gone, so their traces go too. Returns how many were
    gone."""
    erased = yield from fetch_rows(
        "DELETE FROM past WHERE id = ANY (%s::text[]) RETURNING id, memory, user_id, agent_id, run_id",
        (list(memory_ids),),
    )
    gone = {(memory_id, row): scope_from_ids(*ids) for memory_id, row, *ids in erased if memory_id not in keep_ids}
    for (_, row), scope in gone.items():
        yield from _erase_traces(row, scope, at)
    return len({memory_id for memory_id, _ in gone})


def _erase_traces(row: int, scope: Scope, at: str) -> Steps[None]:
    """Erase what came of a memory: its relations, its messages; summaries of them are to be made anew."""
    yield from erase_from_merges(POSTGRES, row, scope)
    yield from erase_evidence(POSTGRES, row)
    if (yield from erase_summaries(POSTGRES, scope)):
        yield from enqueue_job(POSTGRES, scope, "summary", at=at)
    yield from _erase_messages([row])


def _erase_messages(memories: Sequence[int]) -> Steps[None]:
    """Erase the messages that memories were learnt from."""
    yield from execute(
        "DELETE FROM messages AS m USING sources AS s"
        " WHERE s.memory = ANY (%s::bigint[]) AND m.part = s.part AND m.row = s.message",
        (list(memories),),
    )


def _remove_row(row: int, item: MemoryItem, at: str) -> Steps[None]:
    part = partition_key(item.scope)
    [number] = yield from reserve_seqs(1)
    yield from execute("DELETE FROM memories WHERE part = %s AND row = %s", (part, row))
    yield from execute(
        "INSERT INTO tombstones (part, seq, row, memory_id, user_id, agent_id, run_id)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (part, number, row, item.id, *scope_ids(item.scope)),
    )
    yield from _insert_history(item, Event.DELETE, item.text, None, at)


def _purge(memory_ids: Sequence[str]) -> Steps[None]:
    """Remove the history of memories that are gone, and what is left of the messages they came from.

    Their tombstones stay, without text, so that projections still learn what to drop.
    """
    gone = yield from fetch_rows("SELECT row FROM tombstones WHERE memory_id = ANY (%s::text[])", (list(memory_ids),))
    yield from _erase_messages([row for (row,) in gone])
    yield from execute("DELETE FROM history WHERE memory_id = ANY (%s::text[])", (list(memory_ids),))


def _insert_history(
    item: MemoryItem, event: Event, old: str | None, new: str | None, updated_at: str | None
) -> Steps[None]:
    yield from execute(
        f"INSERT INTO history (part, {_HISTORY_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (partition_key(item.scope), *history_values(item, event, old, new, updated_at)),
    )


def _insert_sources(part: str, memory: int, messages: Sequence[int]) -> Steps[None]:
    if messages:
        yield from execute(
            "INSERT INTO sources (part, memory, message) SELECT %s, %s, message"
            " FROM unnest(%s::bigint[]) AS message ON CONFLICT DO NOTHING",
            (part, memory, list(messages)),
        )


def _lock_partitions_of(where: str, values: Sequence[Any], *parts: str) -> Steps[None]:
    """Hold these parts, and those in which there is something of these memories; again, if others came meanwhile."""
    rows = f"SELECT row FROM memories WHERE {where} UNION SELECT memory FROM past WHERE {where}"
    sql = (
        f"SELECT part FROM memories WHERE {where} UNION SELECT part FROM past WHERE {where}"
        f" UNION SELECT part FROM evidence WHERE memory IN ({rows})"
    )
    held, found = set[str](), set(parts)
    while True:
        found |= {part for (part,) in (yield from fetch_rows(sql, [*values] * 4))}
        if found <= held:
            return
        yield from lock_partitions(*(found - held))
        held |= found


# --- rows and SQL ------------------------------------------------------------------------------------------------


def _select(tail: str, values: Sequence[Any]) -> Steps[list[StoredMemory]]:
    rows = yield from fetch_rows(f"SELECT {_MEMORY_COLUMNS} FROM memories {tail}", values)
    return [(row[0], memory_from_row(row, from_json, row[0])) for row in rows]


def _where(scope: Scope | None, filter: Filter | None) -> tuple[str, list[Any]]:
    where, values = scope_sql(scope) if scope else ("true", [])
    if filter is not None:
        condition, more = filter_sql(filter)
        where, values = f"{where} AND {condition}", values + more
    return where, values


def _replace_vectors(table: str, rows: str, new: Sequence[tuple[int, int, Any]]) -> Steps[int]:
    """Replace the vectors of those rows that still have the sequence number; returns how many."""
    total = 0
    for start in range(0, len(new), 500):
        some = new[start : start + 500]
        columns = [list(column) for column in zip(*some, strict=True)]
        total += yield from execute(_REPLACE_VECTORS_SQL.format(table, rows), columns)
    return total
