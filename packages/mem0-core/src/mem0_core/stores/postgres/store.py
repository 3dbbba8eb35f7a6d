"""Store in PostgreSQL with pgvector, for many workers and hosts: one transaction per add.

Writers of one partition (the first id of a scope) wait for one another, so that a plan is applied to the texts it was
made from. Writers of different partitions do not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mem0_core.domain.records import Event, HistoryEvent, MemoryChange, MemoryItem, RelationChange, Scope, same_fact_key
from mem0_core.errors import ConfigError
from mem0_core.interfaces import GraphStore, Job, JobQueue, Lexicon
from mem0_core.interfaces.archive import Archive, check_load_complete
from mem0_core.interfaces.maintenance import StoreMaintenance
from mem0_core.stores.postgres.archive import PostgresArchive
from mem0_core.stores.postgres.engine.dialect import POSTGRES
from mem0_core.stores.postgres.engine.locks import lock_partitions
from mem0_core.stores.postgres.engine.session import Database
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
from mem0_core.stores.postgres.schema import DEFAULT_PARTITIONS, Layout, TableLayout, migrate
from mem0_core.stores.postgres.vectors import PostgresVectors
from mem0_core.stores.sql.changes.memories import Cause, event_values
from mem0_core.stores.sql.engine.dialect import Condition
from mem0_core.stores.sql.engine.steps import Steps, execute, fetch_rows, read_method, write_method
from mem0_core.stores.sql.feed import latest_time_sql
from mem0_core.stores.sql.queue import SqlJobQueue
from mem0_core.stores.sql.rows import (
    CONTENT_COLUMNS,
    content_values,
    history_values,
    pages,
    partition_key,
    scope_ids,
    session_number,
)
from mem0_core.stores.sql.schema import EVENT_COLUMNS, HISTORY_COLUMNS
from mem0_core.stores.sql.store import SqlStore
from mem0_core.stores.sql.vectors import MEMORY_VECTORS

_MIN_SERVER_VERSION = 140000

_REPLACE_VECTORS_SQL = (
    "UPDATE {} AS v SET vector = new.vector FROM unnest(?::text[]::vector[], ?::bigint[]) AS new (vector, row)"
    " WHERE v.row = new.row"
)

# One statement, and so one round trip, for all that an ADD inserts: four would make an add slower on a network.
_INSERT_MEMORY_SQL = f"""
WITH memory AS (
    INSERT INTO memories (part, exact, same, valid_from, {CONTENT_COLUMNS})
    VALUES ({", ".join("?" * 19)}) ON CONFLICT DO NOTHING RETURNING part, row
), added_vector AS (
    INSERT INTO vectors (part, row, vector) SELECT part, row, ? FROM memory
), added_features AS (
    INSERT INTO sketches (part, row, {FEATURE_COLUMNS})
    SELECT part, row, ?::bigint, ?::integer, ?::boolean, ?, ?, ?, ?::bigint[] FROM memory
), added_history AS (
    INSERT INTO history (part, {", ".join(HISTORY_COLUMNS)})
    SELECT part, {", ".join("?" * 7)}, ?::integer, ?, ? FROM memory
), added_event AS (
    INSERT INTO events (part, {", ".join(EVENT_COLUMNS)})
    SELECT part, ?::bigint, {", ".join("?" * (len(EVENT_COLUMNS) - 2))}, greatest(?, {{latest}}) FROM memory
)
SELECT row FROM memory
"""


class PostgresStore(SqlStore):
    """A `MemoryStore` in one schema of a PostgreSQL database with pgvector.

    Each method has an async version ``a<method>``. Safe to share between threads and event loops. After a fork, open
    a new one.

    Args:
        url: ``postgresql://user:password@host:port/database?sslmode=...``, with any parameter of libpq.
        schema: schema of the tables, which are created if missing and permitted.
        pool_size: maximum number of connections for all threads together, and for each event loop.
        timeout: seconds that a call waits for a connection before StoreError.
        statement_timeout: seconds after which the server ends a statement, with StoreError; 0 for never.
        lock_timeout: seconds that a statement waits for a lock before StoreError; 0 for no limit.
        durability: with ``"process"`` a commit does not wait for the server's disk: if the server fails, commits of the
            last half second may be lost. With ``"full"`` the server's settings apply.
        layout: ``"citus"`` distributes the tables when they are created; ``"postgres"`` partitions them.
        partitions: number of partitions of each table, when they are created.
        halfvec: store vectors in half precision, when the tables are created; see `schema.TableLayout`.
        is_loading: open the store although a transfer into it is not complete.

    Raises:
        MissingExtraError: psycopg or the adapter of pgvector is not installed.
        ConfigError: the URL cannot be parsed, or the server is older than PostgreSQL 14.
        StoreError: the server cannot be reached, or has no tables and this role may not create them.
    """

    vector_provider = "pgvector"  # see `factory.build_vector_index`

    _db: Database
    acommit: Any

    def __init__(
        self,
        url: str,
        *,
        schema: str = "mem0",
        pool_size: int = 10,
        timeout: float = 10.0,
        statement_timeout: float = 300.0,
        lock_timeout: float = 30.0,
        durability: Literal["full", "process"] = "full",
        layout: Layout = "postgres",
        partitions: int = DEFAULT_PARTITIONS,
        halfvec: bool = False,
        is_loading: bool = False,
    ) -> None:
        db = Database(
            url,
            schema=schema,
            pool_size=pool_size,
            timeout=timeout,
            statement_timeout=statement_timeout,
            lock_timeout=lock_timeout,
            waits_for_disk=durability == "full",
        )
        super().__init__(db, _PostgresMemoryWriter())
        self.server_name = db.server_name
        self._open(TableLayout(layout, partitions, halfvec))
        self.memory_vectors = PostgresVectors(db, MEMORY_VECTORS)
        self.graph: GraphStore = PostgresGraph(db)
        self.jobs: JobQueue = _PostgresJobQueue(db)
        self.lexicon: Lexicon = PostgresLexicon(db)
        self.archive: Archive = PostgresArchive(db)
        self.maintenance: StoreMaintenance = PostgresMaintenance(db)
        if not is_loading:
            check_load_complete(self.archive.load_progress())
        if self._is_word_index_stale():
            self._refresh_words()

    def _open(self, layout: TableLayout) -> None:
        with self._db.connect() as db:
            if db.info.server_version < _MIN_SERVER_VERSION:
                raise ConfigError(
                    f"store: {self.server_name} is PostgreSQL {db.info.server_version // 10000}; 14 or newer is needed"
                )
            if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
                raise ConfigError(f"store: {self.server_name} has the encoding {encoding}; UTF8 is needed")
            migrate(db, self._db.schema, layout)
            self._db.probe_types(db)

    # --- differences from SQLite -------------------------------------------------------------------------------------

    def _lock_plan(
        self, scope: Scope, changes: Sequence[MemoryChange], relations: Sequence[RelationChange]
    ) -> Steps[None]:
        parts = {partition_key(scope), *(partition_key(change.after.scope) for change in changes)}
        ended = [change.relation_row for change in relations if change.relation_row is not None]
        changed = [change.after.id for change in changes if change.before is not None]
        parts.update((yield from find_partitions(relations=ended, memory_ids=changed)))
        yield from self._dialect.set_scope(scope.partition_scope if len(parts) == 1 else None)
        yield from lock_partitions(*parts)

    def _lock_memories(self, condition: Condition, scope: Scope | None = None) -> Steps[None]:
        where, values = condition
        rows = f"SELECT row FROM memories WHERE {where} UNION SELECT memory FROM past WHERE {where}"
        sql = (
            f"SELECT part FROM memories WHERE {where} UNION SELECT part FROM past WHERE {where}"
            f" UNION SELECT part FROM evidence WHERE memory IN ({rows})"
        )
        locked = set[str]()
        found = set[str]() if scope is None else {partition_key(scope)}
        while True:
            found |= {part for (part,) in (yield from fetch_rows(sql, [*values] * 4))}
            if found <= locked:  # otherwise another writer added a partition before it was locked
                break
            yield from lock_partitions(*(found - locked))
            locked |= found
        if scope is not None and locked == {partition_key(scope)}:
            yield from self._dialect.set_scope(scope.partition_scope)

    def _replace_vectors(self, table: str, new: Sequence[tuple[Any, int]]) -> Steps[None]:
        for page in pages(new):
            columns = [list(column) for column in zip(*page, strict=True)]
            yield from execute(_REPLACE_VECTORS_SQL.format(table), columns)

    def _clear_indexes(self, *, keep_words: bool) -> Steps[None]:
        return drop_hnsw_indexes()  # words are deleted with the tables

    # --- connections -------------------------------------------------------------------------------------------------

    @write_method
    def _refresh_words(self) -> Steps[None]:
        yield from self._dialect.lock_all()
        yield from refresh_words()

    @read_method
    def _is_word_index_stale(self) -> Steps[bool]:
        return is_word_index_stale()

    def close(self) -> None:
        self._db.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; `close` closes the store."""
        await self._db.aclose()


class _PostgresMemoryWriter:
    """A `MemoryWriter` whose words are keys in the table of features."""

    def insert(
        self, item: MemoryItem, vector: Any, seq: int, session: int, cause: Cause, event: HistoryEvent = Event.ADD
    ) -> Steps[int | None]:
        latest, latest_values = latest_time_sql(POSTGRES, item.scope)
        inserted = yield from fetch_rows(
            _INSERT_MEMORY_SQL.format(latest=latest),
            (
                *(*POSTGRES.exact_values(item.scope), same_fact_key(item.text, item.actor_id), item.created_at),
                *content_values(item, POSTGRES.to_json, seq),
                vector,
                *memory_feature_values(item, session_number(*scope_ids(item.scope), session)),
                *history_values(item, event, None, item.text, None),
                *event_values(item, event, seq, cause),
                *latest_values,
            ),
        )
        return inserted[0][0] if inserted else None

    def clear_words(self, row: int) -> Steps[int]:
        yield from ()  # they are updated in place, and deleted with the memory
        return 0

    def write_words(self, row: int, item: MemoryItem, session: int) -> Steps[None]:
        _, *words = memory_feature_values(item, session)  # the session stays
        yield from execute(
            "UPDATE sketches SET length = ?, asks = ?, terms = ?, names = ?, slots = ?, keys = ?::bigint[]"
            " WHERE part = ? AND row = ?",
            (*words, partition_key(item.scope), row),
        )


class _PostgresJobQueue(SqlJobQueue):
    """A `JobQueue` with async methods."""

    ahas_ready_job: Any
    alease_ready: Any

    async def alease(self, worker: str, *, seconds: float, limit: int = 1) -> list[Job]:
        jobs: list[Job] = []
        if await self.ahas_ready_job():
            jobs = await self.alease_ready(worker, seconds=seconds, limit=limit)
        return jobs
