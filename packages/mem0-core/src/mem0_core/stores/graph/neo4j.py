"""The graph in Neo4j 5.20 or newer, Community or Enterprise: for people who look at it, and query it, with its tools.

::

    MATCH (n:Entity)-[r:RELATES]->(m:Entity) WHERE n.user_id = 'alice' AND r.valid_to IS NULL
    RETURN n.name, r.name, m.name, r.weight

Entities have ``name, type, row, user_id, agent_id, run_id``; relations ``name, weight, valid_from, valid_to,
invalidated_at, memories, day_first, day_last, row`` and the same ids. Vectors are named by their length
(``n.embedding_384``, and the vector index ``mem0_entity_384``); that of a relation is of its sentence. What is written
there by hand is not read back: the truth is elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from mem0_core.domain.records import Relation, Scope
from mem0_core.errors import ConfigError, MissingExtra, StoreError
from mem0_core.flow import arun
from mem0_core.interfaces import GraphNeighborhood, GraphStore
from mem0_core.stores.graph.cypher import CypherGraph, ResultRows, Statement, vector_property_name

if TYPE_CHECKING:
    import numpy as np
    from neo4j import AsyncDriver
    from numpy.typing import NDArray

__all__ = ["Neo4jGraph"]

TRANSACTION_TIMEOUT_SECONDS = 10.0  # seconds, then the server ends it
MAX_VECTOR_INDEX_DIMS = 4096  # that a vector index takes


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
        """A vector index, for people's own queries: why ours do without is said in `cypher`."""
        if dims > MAX_VECTOR_INDEX_DIMS:
            return ()
        return (
            f"CREATE VECTOR INDEX mem0_entity_{dims} IF NOT EXISTS FOR (n:Entity) ON (n.{vector_property_name(dims)})"
            f" OPTIONS {{indexConfig: {{`vector.dimensions`: {dims}, `vector.similarity_function`: 'cosine'}}}}",
        )

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        # As an array of float32 it is read in half the time that a list of numbers takes.
        kind = {"n": "Node", "r": "Relationship"}[name]
        return (
            f"WITH {name}, new CALL db.create.set{kind}VectorProperty"
            f"({name}, '{vector_property_name(dims)}', toFloatList(split(btrim(new.embedding, '[]'), ',')))"
        )

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        return (
            f"2 * vector.similarity.cosine({name}.{vector_property_name(dims)}, $vector) - 1"  # it gives (1 + cos) / 2
        )


class Neo4jGraph(CypherGraph):
    """A `GraphIndex` on a Neo4j server, in sync and async code. Nothing is connected before it is used.

    Args:
        truth: what it follows.
        store_id: tells several truths in one database apart.
        url: ``bolt://`` or ``neo4j://``, with ``+s`` for TLS.
        username, password: None for a server that asks for none.
        database: None for the user's default.
        pause: seconds in which a server that failed is not tried again: calls raise StoreError at once.
        connection_timeout: seconds for a connection to be made.
        base_label: of mem0's configuration; the label is always there.

    Safe to share between threads and event loops.
    """

    name = "neo4j"

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
            raise MissingExtra("neo4j", "neo4j") from error
        super().__init__(primary_graph, store_id, _Neo4jCypher())
        self._where = f"Neo4j at {_redact_password(url)}"
        self._database = database
        self._pause = retry_after
        self._failure: tuple[float, str] | None = None  # when, and why
        self._closed = False
        self._errors = (DriverError, Neo4jError, OSError)
        self._refusals = ClientError  # the server is well
        self._make_async = neo4j.AsyncGraphDatabase.driver
        self._settings: dict[str, Any] = {
            "uri": url,
            "auth": None if username is None else (username, password or ""),
            "connection_timeout": connection_timeout,
            "connection_acquisition_timeout": connection_timeout + 1,
            "max_transaction_retry_time": 0,  # who calls has another graph to ask meanwhile
            "liveness_check_timeout": 0,  # tried before each use: the server may have frozen, or been started anew
            "notifications_min_severity": "OFF",  # or each search of an empty database logs that it knows no Entity
            "telemetry_disabled": True,
        }
        try:
            self._driver = neo4j.GraphDatabase.driver(**self._settings)
        except ConfigurationError as error:
            raise ConfigError(
                f"url: {str(error).replace(url, _redact_password(url))}"
            ) from None  # it may hold a password
        self._keepers: dict[asyncio.AbstractEventLoop, tuple[AsyncDriver, AsyncGenerator[None]]] = {}

    async def aneighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        return await arun(self._around(scope, vectors, threshold=threshold, limit=limit, as_of=as_of))

    async def anearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        return await arun(self._triplets(scope, vectors, k, threshold=threshold, as_of=as_of))

    async def acatch_up(self) -> None:
        await arun(self._follow())

    async def arelations(self, scope: Scope) -> list[Relation]:
        return await arun(self._relations(scope))

    async def apurge_deleted(self, scope: Scope | None) -> None:
        await arun(self._follow())

    def close(self) -> None:
        """Close the connections of sync calls. Those of an event loop end with it, or with `aclose` before."""
        self._closed = True
        self._driver.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        if kept := self._keepers.get(asyncio.get_running_loop()):
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
        """Turns the driver's errors into StoreError, and leaves a server in peace that failed just now."""
        if self._closed:
            raise StoreError(f"{self._where} was closed")
        if self._failure and (since := time.monotonic() - self._failure[0]) < self._pause:
            raise StoreError(f"{self._where} was not reached {since:.1f} seconds ago: {self._failure[1]}")
        try:
            yield
        except self._errors as error:
            from neo4j.exceptions import AuthError

            if not isinstance(error, self._refusals) or isinstance(error, AuthError):
                self._failure = time.monotonic(), str(error)
            raise StoreError(f"{self._where} failed: {error}") from error

    async def _async_driver(self) -> AsyncDriver:
        """The driver of the running event loop: connections cannot move from one loop to another."""
        loop = asyncio.get_running_loop()
        if (kept := self._keepers.get(loop)) is None:
            for other in [other for other in self._keepers if other.is_closed()]:
                self._keepers.pop(other, None)
            driver = self._make_async(**self._settings)
            kept = self._keepers[loop] = driver, self._close_with_loop(driver, loop)
            await anext(kept[1])
        return kept[0]

    async def _close_with_loop(self, driver: AsyncDriver, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        """Closes a driver when its loop ends: `asyncio.run` ends all generators that are still under way then."""
        try:
            yield
        finally:
            self._keepers.pop(loop, None)
            await driver.close()


def _redact_password(url: str) -> str:
    """A URL without the password that may be in it.

    Raises:
        ConfigError: no driver speaks to it.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"url: {error}") from error
    if parts.scheme.partition("+")[0] not in ("bolt", "neo4j"):
        raise ConfigError(f"url must begin with bolt:// or neo4j:// (with +s for TLS), not {parts.scheme!r}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
