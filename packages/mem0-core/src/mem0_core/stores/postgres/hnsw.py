"""HNSW indexes over the vectors of one user each, for users with many.

An index that all users share finds the nearest vectors of everyone, and the scope's filter may leave none of them.
Therefore each index is partial, ``WHERE part = '...'``, on the partition of its user. It holds vectors in half
precision, as the FAISS indexes do.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol

from mem0_core._system.locks import SignalSafeLock
from mem0_core.domain.records import Axis, Scope
from mem0_core.stores.postgres.engine.session import Database
from mem0_core.stores.sql.engine.steps import Statement, Steps, execute, execute_batch, fetch_rows
from mem0_core.stores.sql.rows import partition_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.stores.sql.vectors import VectorTables

_log = logging.getLogger(__name__)

_SIZE_CHECK_SECONDS = 60.0  # after which the size of a partition is read again
_MIN_EF_SEARCH = 200  # candidates that a search keeps, at least; pgvector allows 1000
_MAX_EF_SEARCH = 1000
_MAX_HALFVEC_DIMS = 4000  # the limit of an index over halfvec


class _VectorSource(Protocol):
    @property
    def db(self) -> Database: ...
    @property
    def tables(self) -> VectorTables: ...
    def search_exact(
        self, scope: Scope, queries: NDArray[np.float32], k: int, only: NDArray[np.int64] | None
    ) -> Steps[list[list[tuple[int, float]]]]: ...


class HnswIndexes:
    """HNSW indexes over one table of vectors: lookup, search, and creation in a background thread.

    Without permission to create an index, searches stay exact, and the log has the statement for the tables' owner.
    """

    def __init__(self, source: _VectorSource, exact_limit: int | None) -> None:
        self._source = source
        self._limit = exact_limit
        self._indexes: dict[str, tuple[float, str | None]] = {}  # when a partition was checked, and its index
        self._lock = SignalSafeLock()
        self._building: dict[str, threading.Thread] = {}
        self._closed = False

    def find_or_start(self, scope: Scope) -> Steps[bool]:
        """Return True if a scope has an index. Start to build one if the scope is large and has none."""
        if self._limit is None or list(scope.ids) != [Axis.USER] or self._source.tables.live_condition != "true":
            return False
        part = partition_key(scope)
        checked_at, index = self._indexes.get(part, (-_SIZE_CHECK_SECONDS, None))
        if time.monotonic() - checked_at < _SIZE_CHECK_SECONDS:
            return index is not None
        table = self._source.tables.vectors
        [(size,)] = yield from fetch_rows(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE part = ? LIMIT ?) AS counted", (part, self._limit + 1)
        )
        name = self._name(part)
        index = None
        if size > self._limit:
            found = yield from fetch_rows(_IS_INDEX_VALID, (name,))
            index = name if found == [(True,)] else None
            if index is None:
                self._start_build(part)
        self._indexes[part] = (time.monotonic(), index)
        return index is not None

    def nearest(self, scope: Scope, queries: NDArray[np.float32], k: int) -> Steps[list[list[tuple[int, float]]]]:
        """Return the k nearest (row, cosine) of each query by the index; search exactly if it finds fewer than k."""
        part, dims = partition_key(scope), queries.shape[1]
        if k > _MAX_EF_SEARCH // 2:
            return (yield from self._source.search_exact(scope, queries, k, None))
        column, its = f"(vector::halfvec({dims}))", _literal(part)
        sql = (
            f"SELECT row, -({column} <#> ?::vector::halfvec({dims})) AS score FROM {self._source.tables.vectors}"
            f" WHERE part = {its} ORDER BY {column} <#> ?::vector::halfvec({dims}) LIMIT ?"
        )
        searches = [Statement(sql, (query, query, k)) for query in queries]
        wide = Statement(f"SELECT set_config('hnsw.ef_search', '{max(_MIN_EF_SEARCH, 2 * k)}', true)")
        if self._source.db.is_row_security_active:  # within a transaction already
            _, *answers = yield from execute_batch(wide, *searches)
        else:
            begin, end = Statement("BEGIN READ ONLY"), Statement("COMMIT")
            _, _, *answers, _ = yield from execute_batch(begin, wide, *searches, end)
        if any(len(answer.rows) < k for answer in answers):
            return (yield from self._source.search_exact(scope, queries, k, None))
        return [sorted(answer.rows, key=lambda hit: -hit[1]) for answer in answers]

    def build(self, part: str) -> bool:
        """Build the index of a partition. Return False if another host builds it, or this role may not."""
        import psycopg

        with self._source.db.connect("write") as db:
            if db.execute("SELECT pg_try_advisory_lock(mem0_lock(%s))", (f"hnsw {part}",)).fetchone() != (True,):
                return False
            table, name = self._source.tables.vectors, self._name(part)
            row = db.execute(
                f"SELECT tableoid::regclass::text, vector_dims(vector) FROM {table} WHERE part = %s LIMIT 1".encode(),
                (part,),
            ).fetchone()
            if row is None or row[1] > _MAX_HALFVEC_DIMS:
                return False
            create = (
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {row[0]} USING hnsw"
                f" ((vector::halfvec({row[1]})) halfvec_ip_ops) WHERE part = {_literal(part)}"
            )
            try:
                valid = db.execute(_IS_INDEX_VALID.replace("?", "%s").encode(), (name,)).fetchone()
                if valid == (False,):  # an interrupted build left it
                    db.execute(f"DROP INDEX CONCURRENTLY {name}".encode())
                db.execute(create.encode())
            except psycopg.errors.InsufficientPrivilege:
                _log.warning(
                    "no HNSW index for a large user: this role may not create it; the owner of the tables may: %s",
                    create,
                )
                return False
        with self._lock:
            self._indexes.pop(part, None)
        return True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads = list(self._building.values())
        for thread in threads:
            thread.join(timeout=0.1)  # the server completes a build in progress

    def _start_build(self, part: str) -> None:
        with self._lock:
            if self._closed or part in self._building:
                return
            thread = threading.Thread(target=self._build_logged, args=(part,), name="mem0-hnsw", daemon=True)
            self._building[part] = thread
        thread.start()

    def _build_logged(self, part: str) -> None:
        from mem0_core.errors import StoreError

        try:
            self.build(part)
        except StoreError as error:
            _log.warning("no HNSW index for a large user: %s", error)

    def _name(self, part: str) -> str:
        return f"hnsw_{self._source.tables.vectors}_{hashlib.blake2b(part.encode(), digest_size=12).hexdigest()}"


def drop_hnsw_indexes() -> Steps[None]:
    """Drop all indexes, before vectors are deleted or replaced by others; searches build them again."""
    found = yield from fetch_rows(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = quote_ident(current_schema())::regnamespace"
        " AND c.relkind = 'i' AND starts_with(c.relname, 'hnsw_')"
    )
    for (name,) in found:
        yield from execute(f'DROP INDEX "{name}"')


_IS_INDEX_VALID = (
    "SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
    " WHERE c.relname = ? AND c.relnamespace = quote_ident(current_schema())::regnamespace"
)


def _literal(text: str) -> str:
    """Return an SQL literal: PostgreSQL matches the predicate of a partial index with constants, not parameters."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
