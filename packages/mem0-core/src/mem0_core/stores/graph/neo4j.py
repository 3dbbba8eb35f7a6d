"""Graph projection in Neo4j 5.20 or newer (Community or Enterprise), open to Neo4j's own tools.

::

    MATCH (n:Entity)-[r:RELATES]->(m:Entity) WHERE n.user_id = 'alice' AND r.valid_to IS NULL
    RETURN n.name, r.name, m.name, r.weight

Entities have ``name, type, row, user_id, agent_id, run_id``; relations ``name, weight, valid_from, valid_to,
invalidated_at, memories, day_first, day_last, row`` and the same ids. Vectors are named by their length
(``n.embedding_384``, and the vector index ``mem0_entity_384``); a relation has the vector of its sentence. Manual
changes in Neo4j are not read back into the primary store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from mem0_core.domain.records import Relation, Scope
from mem0_core.errors import ConfigError, MissingExtraError, StoreError
from mem0_core.flow import arun
from mem0_core.interfaces import GraphNeighborhood, GraphStore
from mem0_core.stores.graph.cypher import CypherGraph, Dialect, ResultRows, Statement, vector_property_name

if TYPE_CHECKING:
    import numpy as np
    from neo4j import AsyncDriver
    from numpy.typing import NDArray

TRANSACTION_TIMEOUT_SECONDS = 10.0  # then the server ends the transaction
_MAX_VECTOR_INDEX_DIMS = 4096  # a limit of Neo4j


class _Neo4jCypher:
    schema = (
        "CREATE CONSTRAINT mem0_cursor IF NOT EXISTS FOR (c:Mem0Cursor) REQUIRE c.store IS UNIQUE",
        "CREATE CONSTRAINT mem0_entity IF NOT EXISTS FOR (n:Entity) REQUIRE n.key IS UNIQUE",
        "CREATE CONSTRAINT mem0_relates IF NOT EXISTS FOR ()-[r:RELATES]-() REQUIRE r.key IS UNIQUE",
        *(
            f"CREATE INDEX mem0_{name}_{axis} IF NOT EXISTS FOR {pattern} ON (x.store, x.{axis})"
            for name, pattern in (("entity", "(x:Entity)"), ("relates", "()-[x:RELATES]-()"))
            for axis in ("user", "agent", "run")
        ),
    )
    newest_clause = (
        "WITH row, similarity, r ORDER BY r.row DESC WITH row, similarity, collect(DISTINCT r.row)[..$limit] AS newest"
    )

    def vector_schema_statements(self, dims: int) -> tuple[str, ...]:
        """Return a vector index for users' own queries; `CypherGraph` scans instead."""
        if dims > _MAX_VECTOR_INDEX_DIMS:
            return ()
        return (
            f"CREATE VECTOR INDEX mem0_entity_{dims} IF NOT EXISTS FOR (n:Entity) ON (n.{vector_property_name(dims)})"
            f" OPTIONS {{indexConfig: {{`vector.dimensions`: {dims}, `vector.similarity_function`: 'cosine'}}}}",
        )

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        # A float32 array is read in half the time of a list of numbers.
        kind = {"n": "Node", "r": "Relationship"}[name]
        return (
            f"WITH {name}, new CALL db.create.set{kind}VectorProperty"
            f"({name}, '{vector_property_name(dims)}', toFloatList(split(btrim(new.embedding, '[]'), ',')))"
        )

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        # Neo4j returns (1 + cos) / 2.
        return f"2 * vector.similarity.cosine({name}.{vector_property_name(dims)}, $vector) - 1"


class Neo4jGraph(CypherGraph):
    """A `GraphIndex` on a Neo4j server, for sync and async code. It connects on first use.

    Safe to share between threads and event loops.

    Args:
        primary_graph: the relations to follow.
        store_id: identifies this store among several in one database.
        url: ``bolt://`` or ``neo4j://``, with ``+s`` for TLS.
        username, password: None for a server without authentication.
        database: None for the user's default database.
        retry_after: seconds after a failure in which calls raise StoreError at once.
        connection_timeout: seconds to establish a connection.
        base_label: accepted for mem0's configuration; the label ``Entity`` is always set.

    Raises:
        MissingExtraError: `neo4j` is not installed.
        ConfigError: `url` is invalid.
    """

    name = "neo4j"
    server = "Neo4j"
    dialect: Dialect = _Neo4jCypher()
    ignored_settings: tuple[str, ...] = ()
    """Settings of the driver that servers of this kind refuse."""

    def __init__(
        self,
        primary_graph: GraphStore,
        *,
        store_id: str,
        url: str,
        username: str | None = None,
        password: str | None = None,
        database: str | None = None,
        retry_after: float = 5.0,
        connection_timeout: float = 3.0,
        base_label: object = None,
    ) -> None:
        try:
            import neo4j
            from neo4j.exceptions import ClientError, ConfigurationError, DriverError, Neo4jError
        except ModuleNotFoundError as error:
            raise MissingExtraError("neo4j", "neo4j") from error
        super().__init__(primary_graph, store_id, self.dialect)
        self._server_name = f"{self.server} at {_redact_password(url)}"
        self._database = database
        self._retry_after = retry_after
        self._failure: tuple[float, str] | None = None  # time and reason
        self._closed = False
        self._errors = (DriverError, Neo4jError, OSError)
        self._refusals = ClientError  # the server works
        self._make_async = neo4j.AsyncGraphDatabase.driver
        self._settings: dict[str, Any] = {
            "uri": url,
            "auth": None if username is None else (username, password or ""),
            "connection_timeout": connection_timeout,
            "connection_acquisition_timeout": connection_timeout + 1,
            "max_transaction_retry_time": 0,  # the caller falls back to the primary graph
            "liveness_check_timeout": 0,  # checked before each use: the server may hang, or have been restarted
            "notifications_min_severity": "OFF",  # else each search of an empty database logs an unknown label
            "telemetry_disabled": True,
        }
        for name in self.ignored_settings:
            self._settings.pop(name)
        try:
            self._driver = neo4j.GraphDatabase.driver(**self._settings)
        except ConfigurationError as error:
            # Without a cause, which may contain the password.
            raise ConfigError(f"url: {str(error).replace(url, _redact_password(url))}") from None
        self._async_drivers: dict[asyncio.AbstractEventLoop, tuple[AsyncDriver, AsyncGenerator[None]]] = {}

    @property
    def location(self) -> str:
        """Name and URL of the server; see `RemoteProjection`."""
        return self._server_name

    async def aneighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        return await arun(self._find_neighborhoods(scope, vectors, threshold=threshold, limit=limit, as_of=as_of))

    async def anearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        return await arun(self._find_relations(scope, vectors, k, threshold=threshold, as_of=as_of))

    async def acatch_up(self) -> None:
        await arun(self._follow())

    async def arelations(self, scope: Scope) -> list[Relation]:
        return await arun(self._relations(scope))

    async def apurge_deleted(self, scope: Scope | None) -> None:
        await arun(self._follow())

    def close(self) -> None:
        """Close the connections of sync calls. Those of an event loop close with the loop, or by `aclose`."""
        self._closed = True
        self._driver.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        if kept := self._async_drivers.get(asyncio.get_running_loop()):
            await kept[1].aclose()

    # --- transactions ------------------------------------------------------------------------------------------------

    def _execute(self, statements: Sequence[Statement], *, is_conditional: bool = False) -> list[ResultRows]:
        answers: list[ResultRows] = []
        with (
            self._map_driver_errors(),
            self._driver.session(database=self._database) as session,
            session.begin_transaction(timeout=TRANSACTION_TIMEOUT_SECONDS) as transaction,
        ):
            for text, values in statements:
                result = transaction.run(text, values)
                answers.append([record.values() for record in result])
                if is_conditional and not answers[0]:
                    return []
            transaction.commit()
        return answers

    async def a_execute(self, statements: Sequence[Statement], *, is_conditional: bool = False) -> list[ResultRows]:
        answers: list[ResultRows] = []
        with self._map_driver_errors():
            async with (
                (await self._async_driver()).session(database=self._database) as session,
                await session.begin_transaction(timeout=TRANSACTION_TIMEOUT_SECONDS) as transaction,
            ):
                for text, values in statements:
                    result = await transaction.run(text, values)
                    answers.append([record.values() async for record in result])
                    if is_conditional and not answers[0]:
                        return []
                await transaction.commit()
        return answers

    @contextmanager
    def _map_driver_errors(self) -> Iterator[None]:
        """Raise the driver's errors as StoreError, and fail fast for a while after a failure."""
        if self._closed:
            raise StoreError(f"{self._server_name} was closed")
        if self._failure and (since := time.monotonic() - self._failure[0]) < self._retry_after:
            raise StoreError(f"{self._server_name} could not be reached {since:.1f} seconds ago: {self._failure[1]}")
        try:
            yield
        except self._errors as error:
            from neo4j.exceptions import AuthError

            if not isinstance(error, self._refusals) or isinstance(error, AuthError):
                self._failure = time.monotonic(), str(error)
            raise StoreError(f"{self._server_name} failed: {error}") from error

    async def _async_driver(self) -> AsyncDriver:
        """Return the driver of the running event loop; connections cannot move between loops."""
        loop = asyncio.get_running_loop()
        if (kept := self._async_drivers.get(loop)) is None:
            for other in [other for other in self._async_drivers if other.is_closed()]:
                self._async_drivers.pop(other, None)
            driver = self._make_async(**self._settings)
            kept = self._async_drivers[loop] = driver, self._close_with_loop(driver, loop)
            await anext(kept[1])
        return kept[0]

    async def _close_with_loop(self, driver: AsyncDriver, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        """Close a driver when its loop ends: `asyncio.run` then closes all running async generators."""
        try:
            yield
        finally:
            self._async_drivers.pop(loop, None)
            await driver.close()


def _redact_password(url: str) -> str:
    """Remove the password from a URL.

    Raises:
        ConfigError: the URL is malformed, or its scheme is not supported.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"url: {error}") from error
    if parts.scheme.partition("+")[0] not in ("bolt", "neo4j"):
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        raise ConfigError(
            f"graph_store.config.url: {shown!r} must begin with bolt:// or neo4j:// (with +s for TLS); pass, for"
            " example, bolt://localhost:7687"
        )
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
