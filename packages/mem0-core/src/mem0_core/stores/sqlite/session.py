"""Connections to one SQLite file, and the loop that runs steps over them.

Write-ahead logging lets other threads and processes read while one writes. Writers of this process wait for a lock,
those of other processes for the file (`busy_timeout`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Literal, TypeVar

from mem0_core._system.files import make_file, make_folder, validate_path
from mem0_core.errors import InputError, StoreError
from mem0_core.stores.sql.engine.steps import Batch, Statement, StatementResult, Step, Steps, TransactionKind
from mem0_core.stores.sqlite._file_access import (
    FileIdentity,
    is_read_only,
    read_only_uri,
    refuse_emptied_file,
    writable_uri,
)
from mem0_core.stores.sqlite._layout import refuse_foreign_file
from mem0_core.stores.sqlite.dialect import SQLITE, SealedDialect, SQLiteDialect
from mem0_core.stores.sqlite.encryption.sealed_tables import create_views, rewrite
from mem0_core.stores.sqlite.encryption.vault import Vault, take_failure
from mem0_core.stores.sqlite.filters import casefold

T = TypeVar("T")


class Database:
    """A pool of reading connections and one writing connection, all opened on first use. Safe to share between threads.

    Args:
        path: the file, created with its folder if missing, or ``":memory:"``.
        durability: with ``"full"`` a commit waits for the disk; with ``"process"`` it survives the process only.
        busy_timeout: seconds that a write waits for another process's write.
        vault: encryption of an encrypted file, used from `unseal` on; None for a plain one.

    Raises:
        StoreError: the file cannot be opened, or belongs to another program.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Literal["full", "process"],
        busy_timeout: float,
        vault: Vault | None = None,
    ) -> None:
        self.path = str(path)
        self.vault = vault
        self.dialect: SQLiteDialect = SQLITE if vault is None else SealedDialect(vault)
        self._is_unsealed = False
        self.in_memory = self.path == ":memory:"
        self.busy_timeout = busy_timeout
        self._durability = durability
        self._lock = _WriterLock()  # held by the one writer of this process
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._observer: sqlite3.Connection | None = None  # of `version`, which compares states of one connection
        self._observer_lock = Lock()
        self._closed = False
        self._identity: FileIdentity | None = None
        self._uri, self.is_read_only = self.path, False
        with self.as_store_error("open"):
            if not self.in_memory:
                self._prepare_file(validate_path(self.path, "path"))

    def _prepare_file(self, path: Path) -> None:
        """Check the file, make a missing one, and choose how it is opened."""
        _make_folder(path)
        refuse_emptied_file(path)
        refuse_foreign_file(path)
        make_file(path)  # its log and its shared memory get its permissions
        self._identity = FileIdentity(path)
        self.is_read_only = is_read_only(path)
        self._uri = read_only_uri(path) if self.is_read_only else writable_uri(path)

    # --- running steps -----------------------------------------------------------------------------------------------

    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        """Run the steps that `make_steps` returns, and return their value."""
        if kind in ("lookup", "read"):
            with self.read(is_short=kind == "lookup") as db:
                return drive(db, make_steps())
        if kind == "snapshot":
            with self.snapshot() as snapshot:
                return snapshot.run(make_steps, kind)
        with self.write() as db:
            return drive(db, make_steps())

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read one state of the file, whatever is committed in the meantime."""
        with self.read() as db:
            db.execute("BEGIN")
            try:
                yield Snapshot(db, self.dialect)
            finally:
                db.execute("COMMIT")

    def version(self) -> int:
        """Return a number that changes with every commit to the file, of this process or of another one."""
        self._check_open()
        if self.in_memory:
            return self.writer.total_changes
        with self._observer_lock, self.as_store_error("read"):
            if self._observer is None:
                # It reads no table: the settings of other connections would take longer than its work.
                self._observer = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
            number: int = self._observer.execute("PRAGMA data_version").fetchone()[0]
            return number

    # --- connections -------------------------------------------------------------------------------------------------

    @property
    def writer(self) -> sqlite3.Connection:
        """The writing connection. Many processes only read: to connect takes as long as some ten statements."""
        if self._writer is None:
            with self._lock:
                self._check_open()
                if self._writer is None:
                    self._writer = self._connect_writer()
        return self._writer

    def _connect_writer(self) -> sqlite3.Connection:
        writer = self._connect()
        try:
            writer.execute("PRAGMA cache_size = -32768")  # KiB: the inner pages of all indexes stay cached
            self._check_file()  # it may be of a file that has taken the place of this one
        except BaseException:
            writer.close()
            raise
        return writer

    def read(self, doing: str = "read", *, is_short: bool = False) -> _ReadConnection:
        """Return a context with a connection for reading, which never waits for a commit of this process.

        Args:
            is_short: borrow the writing connection, if no thread writes: a commit makes the cached pages of all other
                connections stale, and to read them again takes longer than a short read. A writer may wait for it.
        """
        return _ReadConnection(self, doing, is_short)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: committed when the block ends, rolled back when it raises."""
        with self._lock, self.as_store_error("write to"):
            self._check_writable()
            db = self.writer
            db.execute("BEGIN IMMEDIATE")
            if self.vault is not None:
                self.vault.begin()
            try:
                yield db
                db.execute("COMMIT")
                self._check_file()  # what was committed to a removed file is lost
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back by itself
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def exclusive(self, doing: str) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection without a transaction, for statements that cannot run in one."""
        with self._lock, self.as_store_error(doing):
            self._check_writable()
            yield self.writer

    def retry_while_locked(self, statement: str) -> None:
        """Run a statement that does not wait for locks by itself (a switch to WAL, VACUUM)."""
        deadline = time.monotonic() + self.busy_timeout
        while True:
            try:
                self._execute_plainly(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _execute_plainly(self, statement: str) -> None:
        """Run a statement over tables that no view hides: VACUUM creates their indexes again by their names."""
        if not self._is_unsealed or self.in_memory:
            self.writer.execute(statement)
            return
        with closing(self._connect(hide_tables=False)) as db:
            db.execute(statement)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            observers = [] if self._observer is None else [self._observer]
            writers = [] if self._writer is None else [self._writer]
            connections, self._idle, self._writer = [*self._idle, *observers, *writers], [], None
            for connection in connections:
                connection.close()

    def as_store_error(self, doing: str) -> _StoreErrors:
        """Return a context that raises StoreError in place of SQLite's errors."""
        return _StoreErrors(f"{doing} {self.path}")

    def unseal(self) -> None:
        """Make the connections of an encrypted file open and seal its values; its tables must exist."""
        self._is_unsealed = True
        if self._writer is not None:
            self._unseal(self._writer)

    def _unseal(self, db: sqlite3.Connection) -> None:
        assert isinstance(db, _SealedConnection)
        assert self.vault is not None
        for name, (arguments, function) in self.vault.functions().items():
            db.create_function(name, arguments, function)
        db.execute("PRAGMA temp_store = MEMORY")  # sorting writes no plain text to temporary files
        create_views(db)
        db.is_unsealed = True

    def borrow_connection(self, *, is_short: bool = False) -> sqlite3.Connection:
        self._check_open()
        if is_short and (writer := self._reserve_writer()) is not None:
            return writer
        if self.in_memory:
            self._lock.acquire()
            try:
                return self.writer
            except BaseException:  # the store was closed meanwhile
                self._lock.release()
                raise
        try:
            db = self._idle.pop()
        except IndexError:
            return self._connect()
        if self._is_unsealed and isinstance(db, _SealedConnection) and not db.is_unsealed:
            self._unseal(db)  # it was opened for the checks before
        return db

    def is_writer(self, db: sqlite3.Connection) -> bool:
        """Return True for the writing connection."""
        return db is self._writer

    def _reserve_writer(self) -> sqlite3.Connection | None:
        """Take the lock of the writing connection and return it; None if it is in use, or not there yet."""
        writer = self._writer
        if writer is None or not self._lock.acquire_if_free():
            return None
        if self._closed or writer.in_transaction:  # a transaction of this thread: others have the lock
            self._lock.release()
            return None
        return writer

    def return_connection(self, db: sqlite3.Connection, *, is_writer: bool) -> None:
        if is_writer:
            self._lock.release()
        elif self._closed:
            db.close()
        else:
            self._idle.append(db)

    def _connect(self, *, hide_tables: bool = True) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._uri,
            uri=not self.in_memory,
            timeout=self.busy_timeout,
            isolation_level=None,  # BEGIN and COMMIT are written out
            check_same_thread=False,  # a connection serves one thread at a time, but not always the same
            cached_statements=256,
            factory=sqlite3.Connection if self.vault is None else _SealedConnection,
        )
        db.create_function("casefold", 1, casefold, deterministic=True)
        db.create_function("mem0_now", 0, lambda: time.time())
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA cache_size = -8192")  # KiB; the file system's cache holds the rest
        db.execute("PRAGMA wal_autocheckpoint = 4000")  # pages (16 MB): pages that many commits change are copied once
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")
        if self._is_unsealed and hide_tables:
            self._unseal(db)
        return db

    def _check_writable(self) -> None:
        self._check_open()
        if self.is_read_only:
            raise StoreError(f"{self.path} is read-only: this process may not write to the file, or to its folder")
        self._check_file()

    def _check_file(self) -> None:
        if self._identity is not None:
            self._identity.check()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed")


class Snapshot:
    """An engine over one connection whose transaction is open."""

    def __init__(self, db: sqlite3.Connection, dialect: SQLiteDialect) -> None:
        self.db = db
        self.dialect = dialect

    def run(self, make_steps: Callable[[], Steps[T]], kind: TransactionKind) -> T:
        if kind == "write":
            raise StoreError("a snapshot is read-only")
        return drive(self.db, make_steps())

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        yield self


class _SealedConnection(sqlite3.Connection):
    """A connection to an encrypted file: its statements are rewritten once it is unsealed."""

    is_unsealed = False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(self._rewrite(sql) if self.is_unsealed else sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        return super().executemany(self._rewrite(sql) if self.is_unsealed else sql, parameters)

    def _rewrite(self, sql: str) -> str:
        rewritten = _rewritten.get(sql)
        if rewritten is None:
            if len(_rewritten) >= _MAX_REWRITTEN:
                _rewritten.clear()
            rewritten = _rewritten[sql] = rewrite(sql, self._columns_of)
        return rewritten

    def _columns_of(self, table: str) -> list[str]:
        return [name for (name,) in super().execute(f"SELECT name FROM pragma_table_info('{table}', 'main')")]


_rewritten: dict[str, str] = {}
_MAX_REWRITTEN = 1_024  # statements: their texts are few, but some contain a number of placeholders


class _WriterLock:
    """A reentrant lock of the writing connection, which a lookup takes only if no thread waits for it.

    A thread that is woken would otherwise lose the lock to the next lookup of a busy reader, again and again.
    """

    __slots__ = ("_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = RLock()
        self._waiting: set[object] = set()  # one mark of each waiting thread

    def acquire(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        mark = object()
        self._waiting.add(mark)
        try:
            self._lock.acquire()
        finally:
            self._waiting.discard(mark)

    def acquire_if_free(self) -> bool:
        """Return True if the lock was free, no thread waited for it, and it is held now."""
        return not self._waiting and self._lock.acquire(blocking=False)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class _ReadConnection:
    """A connection lent for a block; a class, as `contextmanager` takes as long as the shortest statements."""

    __slots__ = ("_database", "_db", "_doing", "_is_short", "_is_writer")

    def __init__(self, database: Database, doing: str, is_short: bool) -> None:
        self._database, self._doing, self._is_short = database, doing, is_short

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._db = self._database.borrow_connection(is_short=self._is_short)
        except sqlite3.Error as error:
            _raise_store_error(error, f"{self._doing} {self._database.path}")
            raise
        self._is_writer = self._database.is_writer(self._db)
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._database.return_connection(self._db, is_writer=self._is_writer)
        if error is not None:
            _raise_store_error(error, f"{self._doing} {self._database.path}")


class _StoreErrors:
    """A context that raises StoreError in place of SQLite's errors."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            _raise_store_error(error, self._doing)


def drive(db: sqlite3.Connection, steps: Steps[T]) -> T:
    """Run steps to their end over one connection, and return their value."""
    try:
        step = next(steps)
        while True:
            try:
                if type(step) is Statement and not step.many:  # nearly all of them, so without a call
                    cursor = db.execute(step.sql, step.values)
                    result: Any = StatementResult(cursor.fetchall(), cursor.rowcount)
                else:
                    result = _execute_step(db, step)
            except Exception as error:  # noqa: BLE001 - the steps may handle it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        steps.close()


def _execute_step(db: sqlite3.Connection, step: Step) -> Any:
    if isinstance(step, Statement):
        if step.many:
            return StatementResult([], db.executemany(step.sql, step.values).rowcount)
        cursor = db.execute(step.sql, step.values)
        return StatementResult(cursor.fetchall(), cursor.rowcount)
    if isinstance(step, Batch):
        return [_execute_step(db, statement) for statement in step.statements]
    return None


def _raise_store_error(error: BaseException, doing: str) -> None:
    """Raise the store's error for an error of SQLite; return for any other error."""
    if isinstance(error, UnicodeEncodeError):
        raise InputError(f"not valid Unicode (a lone surrogate): {error.object[:40]!r}") from error
    if isinstance(error, OSError) and doing.startswith("open "):
        raise StoreError(f"cannot {doing}: {error.strerror or error}{_advise(error)}") from error
    if isinstance(error, sqlite3.Error | sqlite3.Warning):
        if (failure := take_failure()) is not None:
            raise failure from error
        raise StoreError(f"cannot {doing}: {error}{_advise(error)}") from error


def _advise(error: BaseException) -> str:
    """Return the next step for an error of SQLite about the file itself."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_CANTOPEN" or isinstance(error, OSError):
        return "; pass a file that this process may read and write, or its folder as path="
    return "; pass another file, or restore a backup (mem0-core restore)" if name == "SQLITE_NOTADB" else ""


def _make_folder(path: Path) -> None:
    try:
        make_folder(path.parent)
    except OSError as error:
        reason = "it is a file" if path.parent.is_file() else error.strerror or str(error)
        step = "pass path= or set MEM0_CORE_HOME to a folder that can be made"
        raise StoreError(f"cannot make the folder {path.parent}: {reason}; {step}") from error
