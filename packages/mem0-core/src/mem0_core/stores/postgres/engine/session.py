"""Connections to one PostgreSQL database, and the loops that run steps over them, in sync and async code.

A read runs statement by statement, or over one snapshot. A write is one transaction. It is retried where that is safe:
the server refused it (a deadlock), or the connection broke before COMMIT was sent. If the connection breaks during
COMMIT, the server is asked for the state of the transaction, so that the caller learns if it was written.
"""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mem0_core._system.locks import SignalSafeLock
from mem0_core.errors import ConfigError, InputError, MissingExtraError, StoreError
from mem0_core.stores.postgres.engine.dialect import POSTGRES
from mem0_core.stores.sql.engine.steps import Batch, SetScope, Statement, StatementResult, Step, Steps, TransactionKind

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection
    from psycopg_pool import AsyncConnectionPool, ConnectionPool


T = TypeVar("T")

_MAX_LIMIT_SECONDS = 1_000_000  # PostgreSQL counts in milliseconds, in 31 bits
_MAX_ATTEMPTS = 4  # of a transaction that a deadlock or a broken connection ended
_COMMIT_CHECK_SECONDS = 10.0  # to ask the server for the state of a transaction whose COMMIT was interrupted


# --- connections -------------------------------------------------------------------------------------------------


class _CommitUnknownError(Exception):
    """The connection broke while COMMIT was under way.

    Args:
        transaction: its number, and the timeline of the server that gave the number.
    """

    def __init__(self, transaction: Sequence[Any], value: Any, cause: BaseException) -> None:
        super().__init__(*transaction)
        self.xid, self.timeline = transaction
        self.value, self.cause = value, cause


class Database:
    """Pools of connections to one database: one for threads, one for each event loop. Nothing is opened before use.

    Args:
        url: ``postgresql://user:password@host:port/database?...``, with any parameter of libpq.
        schema: where the tables are.
        pool_size: connections at most, for all threads together and for each event loop.
        timeout: seconds that a call waits for a connection.
        statement_timeout: seconds after which the server ends a statement; 0 for never.
        lock_timeout: seconds that a statement waits for a lock; 0 for no limit.
        wait: whether a commit waits for the server's disk, where its settings say so.

    Raises:
        MissingExtraError: psycopg, its pool or pgvector's adapter is not installed.
        ConfigError: the URL cannot be read.
    """

    dialect = POSTGRES

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        pool_size: int = 10,
        timeout: float = 10.0,
        statement_timeout: float = 300.0,
        lock_timeout: float = 30.0,
        waits_for_disk: bool = True,
    ) -> None:
        try:
            import psycopg
            import psycopg_pool
            from pgvector.psycopg.halfvec import register_halfvec_info
            from pgvector.psycopg.vector import register_vector_info
            from psycopg.conninfo import conninfo_to_dict
        except ModuleNotFoundError as error:
            raise MissingExtraError("psycopg (with its pool) or pgvector", "postgres") from error
        except ImportError as error:  # psycopg without a libpq
            raise MissingExtraError(f"a libpq for psycopg ({error})", "postgres") from error
        try:
            parameters = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ConfigError(f"store: no URL of PostgreSQL: {str(error).replace(url, '...')}") from None
        self.server_name = describe_server(parameters)
        self.schema = schema
        self._psycopg, self._pools = psycopg, psycopg_pool
        self._registers = {"vector": register_vector_info, "halfvec": register_halfvec_info}
        self._url, self._size, self._timeout = url, pool_size, timeout
        self._parameters: dict[str, Any] = {"connect_timeout": max(2, int(timeout)), "client_encoding": "utf8"}
        self._session_sql = (
            _SESSION_SQL if waits_for_disk else f"{_SESSION_SQL}, set_config('synchronous_commit', 'off', false)"
        )
        limits = {"statement_timeout": statement_timeout, "lock_timeout": lock_timeout}
        settings = (f"set_config('{name}', '{_to_milliseconds(limit, name)}', false)" for name, limit in limits.items())
        self._limits_sql = f"SELECT {', '.join(settings)}"
        self._lock = SignalSafeLock()
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._pools_by_loop: dict[asyncio.AbstractEventLoop, AsyncConnectionPool[AsyncConnection[Any]]] = {}
        self._closed = False
        self._types: dict[str, Any] = {}  # pgvector's, as this database numbers them
        self._timeline_sql = "NULL"
        self.is_row_security_active = False
        """True if the server restricts this role to `mem0.scope`, which each transaction then sets."""

    # --- driving ---------------------------------------------------------------------------------------------------

    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        """Run the steps that `make_steps` returns over a connection of the threads' pool."""
        with self._as_store_error(kind):
            attempts = 0
            while True:
                attempts += 1
                try:
                    pool = self._open_pool()
                    with pool.connection(self._timeout) as db:
                        return _drive(db, self._with_transaction(make_steps(), kind), self)
                except _CommitUnknownError as lost:
                    settled: T = self._resolve_commit(lost)
                    return settled
                except self._psycopg.OperationalError as error:
                    self._raise_unless_retryable(error, attempts)
                    if not _is_retryable(error):
                        pool.check()

    async def arun(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        """`run`, over a connection of the running event loop's pool."""
        with self._as_store_error(kind):
            attempts = 0
            while True:
                attempts += 1
                try:
                    pool = await self._aopen_pool()
                    async with pool.connection(self._timeout) as db:
                        return await _adrive(db, self._with_transaction(make_steps(), kind), self)
                except _CommitUnknownError as lost:
                    asettled: T = await asyncio.to_thread(self._resolve_commit, lost)
                    return asettled
                except self._psycopg.OperationalError as error:
                    self._raise_unless_retryable(error, attempts)
                    if not _is_retryable(error):
                        await pool.check()

    def _with_transaction(self, steps: Steps[T], kind: TransactionKind) -> Steps[T]:
        if kind == "write":
            return _transaction_steps(steps, self._psycopg.OperationalError, self._timeline_sql)
        if kind == "snapshot":
            return _read_only_steps(steps, "REPEATABLE READ")
        # not one snapshot: `safe_read_seq` covers only the statements after it
        return _read_only_steps(steps, "READ COMMITTED") if self.is_row_security_active else steps

    def _raise_unless_retryable(self, error: Exception, attempts: int) -> None:
        """Raise `error`, unless a retry is safe and may succeed."""
        is_pool_exhausted = isinstance(
            error, (self._pools.PoolTimeout, self._pools.PoolClosed, self._pools.TooManyRequests)
        )
        if attempts >= _MAX_ATTEMPTS or is_pool_exhausted or not (_is_retryable(error) or _is_disconnected(error)):
            raise error

    def _resolve_commit(self, lost: _CommitUnknownError) -> Any:
        """Return the value of a committed transaction; raise the error of an aborted one."""
        deadline = time.monotonic() + _COMMIT_CHECK_SECONDS
        sql = f"SELECT pg_xact_status(%s::text::xid8), {self._timeline_sql}, pg_is_in_recovery()"
        while time.monotonic() < deadline:
            try:
                with self._psycopg.connect(self._url, autocommit=True, connect_timeout=5) as db:
                    found, timeline, is_standby = db.execute(sql.encode(), (lost.xid,)).fetchone()  # type: ignore[misc]
            except self._psycopg.OperationalError:
                time.sleep(0.2)  # the server starts
                continue
            except self._psycopg.Error:
                break  # another server answered, which does not know the transaction
            if is_standby:  # it may not have received the commit yet
                time.sleep(0.2)
                continue
            if found == "committed" and timeline != lost.timeline:
                break  # a promoted standby, which may have given the number to another transaction
            if found == "committed":
                return lost.value
            if found == "aborted":
                raise StoreError(
                    f"cannot write to {self.server_name}: {lost.cause}; nothing is written"
                ) from lost.cause
            time.sleep(0.05)
        raise StoreError(
            f"lost {self.server_name} during a commit, and its outcome is unknown: {lost.cause}; to repeat the call is"
            " safe"
        ) from lost.cause

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        """Read the current state for any length of time, over a connection outside of the pools."""
        with self.connect("read") as db:
            self._adapt(db)
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            db.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")  # a reader may be slow
            db.execute("SELECT set_config('mem0.scope', '*', true), set_config('mem0.member', '*', true)")
            yield DatabaseSnapshot(self, db)

    # --- pools -----------------------------------------------------------------------------------------------------

    @contextmanager
    def connect(self, kind: str = "open") -> Iterator[Connection[Any]]:
        """Open a connection outside of the pools and of transactions, for migrations, and close it.

        Args:
            kind: action that the StoreError of a failure names: "open", "read" or "write".
        """
        with self._as_store_error(kind), self._psycopg.connect(self._url, autocommit=True, **self._parameters) as db:
            db.execute(self._session_sql, (self.schema,))
            yield db

    def probe_types(self, db: Connection[Any]) -> None:
        """Read the ids of pgvector's types in this database, and the state of row-level security."""
        from psycopg.types import TypeInfo

        self._types = {name: TypeInfo.fetch(db, name) for name in self._registers}
        if None in self._types.values():
            raise StoreError(
                f"{self.server_name} has no extension vector: CREATE EXTENSION vector (pgvector 0.7 or newer)"
            )
        with suppress(self._psycopg.Error):  # some services lack these functions, and fail over without a new timeline
            db.execute(f"SELECT {_TIMELINE_SQL}".encode())
            self._timeline_sql = _TIMELINE_SQL
        self.is_row_security_active = bool(db.execute("SELECT row_security_active('memories')").fetchone()[0])  # type: ignore[index]

    def _open_pool(self) -> ConnectionPool[Connection[Any]]:
        if self._pool is None or self._closed:
            with self._lock:
                self._check_open()
                if self._pool is None:
                    self._pool = self._pools.ConnectionPool(
                        self._url, configure=self._configure, name="mem0", **self._options()
                    )
        return self._pool

    async def _aopen_pool(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            for bygone in [each for each in self._pools_by_loop if each.is_closed()]:
                _close_pool(self._pools_by_loop.pop(bygone))
            pool = self._pools_by_loop.get(loop)
            if pool is None:
                pool = self._pools.AsyncConnectionPool(
                    self._url, configure=self._aconfigure, name="mem0", **{**self._options(), "open": False}
                )
                self._pools_by_loop[loop] = pool
        if pool.closed:
            await pool.open()
        return pool

    def _options(self) -> dict[str, Any]:
        return {
            "min_size": 0,
            "max_size": self._size,
            "timeout": self._timeout,
            "reconnect_timeout": self._timeout,
            "max_idle": 300.0,
            "open": True,
            "kwargs": {**self._parameters, "autocommit": True, "prepare_threshold": 1},
        }

    def _configure(self, db: Connection[Any]) -> None:
        self._adapt(db)
        db.execute(self._session_sql, (self.schema,))
        db.execute(self._limits_sql)

    async def _aconfigure(self, db: AsyncConnection[Any]) -> None:
        self._adapt(db)
        await db.execute(self._session_sql, (self.schema,))
        await db.execute(self._limits_sql)

    def _adapt(self, db: Any) -> None:
        from mem0_core.stores.postgres.engine.text import adapt_text

        adapt_text(db)
        for name, register in self._registers.items():
            register(db, self._types[name])

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            loop_pools, self._pools_by_loop = list(self._pools_by_loop.values()), {}
        if pool is not None:
            pool.close()
        for each in loop_pools:
            _close_pool(each)

    async def aclose(self) -> None:
        """Close the pool of the running event loop."""
        with self._lock:
            pool = self._pools_by_loop.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.server_name} is closed")

    @contextmanager
    def _as_store_error(self, kind: str) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            raise InputError(f"not valid Unicode (a lone surrogate): {error.object[:40]!r}") from error
        except self._psycopg.Error as error:
            doing = {"write": "write to", "open": "open"}.get(kind, "read")
            state = getattr(error, "sqlstate", None) or ""
            advice = _ADVICE.get(state, "")
            if kind == "open" and not state:  # no server has answered
                advice = "; start the server, or correct the URL of the store"
            reason = " ".join(str(error).split())
            raise StoreError(f"cannot {doing} {self.server_name}: {reason}{advice}") from error


class DatabaseSnapshot:
    """A `Database` in one state, see `Database.snapshot`."""

    dialect = POSTGRES

    def __init__(self, database: Database, db: Connection[Any]) -> None:
        self._database = database
        self._connection = db

    @contextmanager
    def snapshot(self) -> Iterator[DatabaseSnapshot]:
        yield self

    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        """Run steps that read, within the transaction of the snapshot."""
        if kind == "write":
            raise StoreError("a snapshot is read-only")
        return _drive(self._connection, make_steps(), self._database)

    async def arun(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        return await asyncio.to_thread(self.run, make_steps, kind)


# A generic plan serves all values of a statement: they do not change how rows are found, and planning over all
# partitions takes longer than reading one. Its guessed costs would trigger compilation, which never pays here.
_SESSION_SQL = (
    "SELECT set_config('search_path', quote_ident(%s) || ', ' || current_setting('search_path'), false),"
    " set_config('idle_in_transaction_session_timeout', '60s', false),"
    " set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)"
)


_TIMELINE_SQL = "CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
"""The timeline of a primary. A promoted standby begins a new one, and numbers transactions as the old primary did."""

_ADVICE = {
    "57014": "; nothing is written: raise statement_timeout of the store, or narrow the call",
    "25006": "; nothing is written: the server is a standby or read-only, and answers searches and exports; give the"
    " store the URL of the primary, or of all servers with target_session_attrs=read-write",
    "55P03": "; nothing is written: another writer holds the lock; repeat the call, or raise lock_timeout of the store",
}
"""Next step, by SQLSTATE: query_canceled and lock_not_available."""


def _to_milliseconds(seconds: object, name: str) -> int:
    """Return a time limit for PostgreSQL's settings; 0 is none.

    Raises:
        ConfigError: it is not a number of seconds between 0 and 1,000,000.
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= _MAX_LIMIT_SECONDS:  # type: ignore[operator]
        raise ConfigError(f"store: {name} must be a number of seconds in [0, {_MAX_LIMIT_SECONDS}], not {seconds!r}")
    return int(-(-seconds * 1000 // 1))  # type: ignore[operator]


def describe_server(parameters: dict[str, Any]) -> str:
    """Return the host, port and database, without user and password."""
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = f":{parameters['port']}" if parameters.get("port") else ""
    return f"PostgreSQL at {host}{port}/{parameters.get('dbname') or ''}"


def _close_pool(pool: Any) -> None:
    """Close the connections of an event loop that has ended, or that cannot be awaited."""
    for db in list(getattr(pool, "_pool", ())):
        db.pgconn.finish()


def _is_retryable(error: BaseException) -> bool:
    """Return True if the server ended a transaction that may succeed when it is repeated."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01")


def _is_disconnected(error: BaseException) -> bool:
    """Return True if the connection is gone: it was cut, or the server stops or starts."""
    state = getattr(error, "sqlstate", None)
    return state is None or state in ("57P01", "57P02", "57P03") or state.startswith("08")


# --- running steps over one connection ---------------------------------------------------------------------------


def _transaction_steps(steps: Steps[T], connection_error: type[Exception], timeline_sql: str) -> Steps[T]:
    identify = Statement(f"SELECT pg_current_xact_id()::text, {timeline_sql}")
    _, known = yield Batch((Statement("BEGIN"), identify))
    yield SetScope("*")
    value = yield from steps
    try:
        yield Statement("COMMIT")
    except connection_error as error:
        if _is_retryable(error):
            raise
        raise _CommitUnknownError(known.rows[0], value, error) from error
    return value


def _read_only_steps(steps: Steps[T], isolation: str) -> Steps[T]:
    yield Statement(f"BEGIN ISOLATION LEVEL {isolation} READ ONLY")
    yield SetScope("*")
    value = yield from steps
    yield Statement("COMMIT")
    return value


def _drive(db: Connection[Any], steps: Steps[T], database: Database) -> T:
    """Run steps to their end. The pool rolls back a transaction that they leave open."""
    try:
        step = next(steps)
        while True:
            try:
                result = _execute_step(db, step, database)
            except Exception as error:  # noqa: BLE001 - the steps may handle it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        steps.close()


async def _adrive(db: AsyncConnection[Any], steps: Steps[T], database: Database) -> T:
    try:
        step = next(steps)
        while True:
            try:
                result = await _aexecute_step(db, step, database)
            except Exception as error:  # noqa: BLE001 - the steps may handle it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        steps.close()


def _execute_step(db: Connection[Any], step: Step, database: Database) -> Any:
    if isinstance(step, Batch):
        with db.pipeline():
            cursors = [_send(db, statement) for statement in step.statements]
        return [StatementResult(each.fetchall() if each.description else [], each.rowcount) for each in cursors]
    statement = _to_statement(step, database)
    if statement is None:
        return None
    cursor = _send(db, statement)
    return StatementResult(cursor.fetchall() if cursor.description else [], cursor.rowcount)


async def _aexecute_step(db: AsyncConnection[Any], step: Step, database: Database) -> Any:
    if isinstance(step, Batch):
        async with db.pipeline():
            cursors = [await _asend(db, statement) for statement in step.statements]
        return [StatementResult(await each.fetchall() if each.description else [], each.rowcount) for each in cursors]
    statement = _to_statement(step, database)
    if statement is None:
        return None
    cursor = await _asend(db, statement)
    return StatementResult(await cursor.fetchall() if cursor.description else [], cursor.rowcount)


def _to_statement(step: Step, database: Database) -> Statement | None:
    if isinstance(step, SetScope):
        if not database.is_row_security_active:
            return None
        return Statement(_SET_SCOPE_SQL, (step.part, step.agent_id, step.run_id, step.member))
    assert isinstance(step, Statement)
    return step


_SET_SCOPE_SQL = (
    "SELECT set_config('mem0.scope', ?, true), set_config('mem0.agent_id', ?, true),"
    " set_config('mem0.run_id', ?, true), set_config('mem0.member', ?, true)"
)


@functools.lru_cache(maxsize=1024)
def _to_psycopg(sql: str) -> str:
    """Replace the question marks outside of literals by psycopg's placeholders, and double its percent signs."""
    if "?" not in sql:
        return sql
    return "".join(_PSYCOPG_MARKS.get(part, part) for part in _TOKENS.split(sql.replace("%", "%%")))


_PSYCOPG_MARKS = {"?": "%s"}
_TOKENS = re.compile(r"('[^']*'|\?)")


def _send(db: Connection[Any], statement: Statement) -> Any:
    if not statement.many:
        return db.execute(_to_psycopg(statement.sql), statement.values or None, binary=True)
    cursor = db.cursor()
    cursor.executemany(_to_psycopg(statement.sql), statement.values)
    return cursor


async def _asend(db: AsyncConnection[Any], statement: Statement) -> Any:
    if not statement.many:
        return await db.execute(_to_psycopg(statement.sql), statement.values or None, binary=True)
    cursor = db.cursor()
    await cursor.executemany(_to_psycopg(statement.sql), statement.values)
    return cursor
