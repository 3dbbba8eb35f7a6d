"""Graph projection in Ladybug, the maintained fork of Kuzu: an embedded Cypher database in one file.

One process at a time may have the file open; all users in that process share one handle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast

from mem0_core._system.files import clear_abandoned, make_file, make_folder, replace_atomically
from mem0_core.domain.records import Scope
from mem0_core.errors import MissingExtraError, StoreError
from mem0_core.interfaces import GraphStore
from mem0_core.stores.graph.cypher import CypherGraph, ResultRows, Statement, vector_property_name

_ID_COLUMNS_DDL = "user_id STRING, agent_id STRING, run_id STRING, user STRING, agent STRING, run STRING"


class _LadybugCypher:
    schema = (
        "CREATE NODE TABLE IF NOT EXISTS Mem0Cursor(store STRING PRIMARY KEY, epoch STRING, seq INT64, held BOOLEAN)",
        "CREATE NODE TABLE IF NOT EXISTS Entity(key STRING PRIMARY KEY, store STRING, row INT64, name STRING,"
        f" type STRING, {_ID_COLUMNS_DDL})",
        "CREATE REL TABLE IF NOT EXISTS RELATES(FROM Entity TO Entity, key STRING, store STRING, row INT64,"
        " name STRING, weight INT64, valid_from STRING, valid_to STRING, invalidated_at STRING, memories STRING[],"
        f" {_ID_COLUMNS_DDL})",
        *(f"ALTER TABLE RELATES ADD IF NOT EXISTS {day} STRING" for day in ("day_first", "day_last")),  # added later
    )
    newest_clause = "WITH row, similarity, list_slice(list_reverse_sort(collect(DISTINCT r.row)), 1, $limit) AS newest"

    def vector_schema_statements(self, dims: int) -> tuple[str, ...]:
        # Arrays of a fixed length: variable lists are read a thousand times more slowly from a file.
        return tuple(
            f"ALTER TABLE {table} ADD IF NOT EXISTS {vector_property_name(dims)} FLOAT[{dims}]"
            for table in ("Entity", "RELATES")
        )

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        return f"SET {name}.{vector_property_name(dims)} = CAST(new.embedding AS FLOAT[{dims}])"

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        return f"array_cosine_similarity({name}.{vector_property_name(dims)}, CAST($vector AS FLOAT[{dims}]))"


class LadybugGraph(CypherGraph):
    """A `GraphIndex` in a Ladybug file, which is opened on first use.

    Safe to share between threads; calls run one at a time.

    Args:
        primary_graph: the relations to follow.
        store_id: identifies this store among several in one database.
        db: the file (created with its folder if missing), or ``":memory:"``.
    """

    name = "ladybug"

    def __init__(self, primary_graph: GraphStore, *, store_id: str, db: str | Path = ":memory:") -> None:
        try:
            import ladybug  # noqa: F401 - fail now, not in the middle of an add
        except ModuleNotFoundError as error:
            raise MissingExtraError("ladybug", "ladybug") from error
        super().__init__(primary_graph, store_id, _LadybugCypher())
        self._path = str(db) if str(db) == ":memory:" else str(Path(db).expanduser().resolve())
        self._lock = Lock()
        self._handle: _Handle | None = None
        self._closed = False

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove deleted relations, and the bytes that Ladybug keeps of them: the file is replaced by a new one."""
        super().purge_deleted(scope)
        try:
            self._open_handle().compact()
        except (RuntimeError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise StoreError(f"the graph in {self._path} cannot be rewritten: {reason}") from error

    def discard(self) -> None:
        """Do nothing: `purge_deleted` removes what was deleted; see `ErasableProjection`."""

    def files(self) -> list[Path]:
        """Return the file and its logs."""
        if self._path == ":memory:":
            return []
        return [path for end in ("", *_LOGS) if (path := Path(f"{self._path}{end}")).is_file()]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            handle, self._handle = self._handle, None
        if handle:
            handle.release()

    def _execute(self, statements: Sequence[Statement], *, is_conditional: bool = False) -> list[ResultRows]:
        try:
            return self._open_handle().execute(statements, is_conditional)
        except (RuntimeError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise StoreError(f"the graph in {self._path} failed: {reason}") from error

    def _open_handle(self) -> _Handle:
        with self._lock:
            if self._closed:
                raise StoreError(f"the graph in {self._path} is closed")
            if self._handle is None:
                self._handle = _Handle.open_shared(self._path)
            return self._handle


_LOGS = (".wal", ".shadow")


class _Handle:
    """An open database, shared by all users in this process: Ladybug's file lock excludes other processes only."""

    _handles_by_path: dict[str, _Handle] = {}  # noqa: RUF012 - shared on purpose
    _open_lock = Lock()

    def __init__(self, path: str) -> None:
        self._path = path
        self._users = 0
        self._busy = Lock()
        self._connect()

    def _connect(self) -> None:
        import ladybug

        if self._path != ":memory:":
            make_folder(folder := Path(self._path).parent)
            clear_abandoned([folder])  # files of a process that was killed in `compact`
            make_file(Path(self._path))
            _clear_new_memory()
        self._database = ladybug.Database(self._path)
        self._connection = ladybug.Connection(self._database)

    def _disconnect(self) -> None:
        self._make_logs()
        self._connection.close()
        self._database.close()

    @classmethod
    def open_shared(cls, path: str) -> _Handle:
        with cls._open_lock:
            handle = cls._handles_by_path.get(path) or cls(path)
            if path != ":memory:":
                cls._handles_by_path[path] = handle
            handle._users += 1
            return handle

    def release(self) -> None:
        with self._open_lock, self._busy:
            self._users -= 1
            if not self._users:
                self._handles_by_path.pop(self._path, None)
                self._disconnect()

    def execute(self, statements: Sequence[Statement], is_conditional: bool) -> list[ResultRows]:
        answers: list[ResultRows] = []
        with self._busy:
            self._make_logs()
            self._run("BEGIN TRANSACTION")
            try:
                for text, values in statements:
                    answers.append(self._run(text, values))
                    if is_conditional and not answers[0]:
                        self._run("ROLLBACK")
                        return []
                self._run("COMMIT")
            except BaseException:
                with suppress(RuntimeError):  # the error may have rolled back already
                    self._run("ROLLBACK")
                raise
        return answers

    def compact(self) -> None:
        """Copy everything into a new file, and replace the file by it: Ladybug keeps the bytes of deleted rows."""
        if self._path == ":memory:":
            return
        path = Path(self._path)
        with self._busy:
            self._make_logs()
            try:
                with replace_atomically(path) as unfinished:
                    exported = unfinished.parent / "export"
                    self._run(f"EXPORT DATABASE {_quote(exported)} (format='parquet')")
                    _import(exported, unfinished)
                    self._disconnect()
                    for end in _LOGS:
                        Path(f"{path}{end}").unlink(missing_ok=True)
            finally:
                if self._database.is_closed:
                    self._connect()

    def _make_logs(self) -> None:
        """Make the logs that Ladybug is about to write: those that it makes itself are readable by everybody."""
        if self._path != ":memory:":
            with suppress(OSError):  # the folder is gone; Ladybug reports that
                for end in _LOGS:
                    make_file(Path(f"{self._path}{end}"))

    def _run(self, text: str, values: Any = None) -> ResultRows:
        result = self._connection.execute(text, dict(values or {}))
        assert not isinstance(result, list)  # one statement, one result
        try:
            return cast(ResultRows, result.get_all())
        finally:
            result.close()


_M_PERTURB, _FREED_BYTE = -6, 0xFF  # of glibc, which fills new memory with the complement


def _clear_new_memory() -> None:
    """Make glibc fill all memory with zeros that this process allocates from now on; other C libraries cannot.

    Ladybug writes the unused ends of some pages as they are in memory: texts and secrets that this process has freed.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # musl
            ctypes.CDLL(None).mallopt(_M_PERTURB, _FREED_BYTE)


def _import(exported: Path, path: Path) -> None:
    """Create a database in an empty file from an export."""
    import ladybug

    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)
    try:
        connection.execute(f"IMPORT DATABASE {_quote(exported)}")
    finally:
        connection.close()
        database.close()


def _quote(path: Path) -> str:
    """Return a path as a text of Cypher."""
    escaped = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
