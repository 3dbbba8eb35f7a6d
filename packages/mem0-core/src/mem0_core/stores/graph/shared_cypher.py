"""Graph projections in Memgraph and Amazon Neptune, in the Cypher that both share, over Bolt.

The statements are those of `CypherGraph` without vectors: no procedures, no schema, no lists as properties. The primary
store computes the cosines of entities and relations, and the database takes the hop and holds the relations for its own
tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from mem0_core.domain.records import Relation, Scope
from mem0_core.errors import ConfigError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import GraphNeighborhood, GraphStore
from mem0_core.stores.graph.cypher import validity_condition
from mem0_core.stores.graph.embedded import EmbeddedGraph
from mem0_core.stores.graph.neo4j import Neo4jGraph
from mem0_core.stores.vector.exact import ExactIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NEPTUNE_PORT = 8182


class _SharedCypher:
    """Dialect without schema and vectors."""

    schema: tuple[str, ...] = ()
    newest_clause = ""

    def vector_schema_statements(self, dims: int) -> tuple[str, ...]:
        return ()

    def store_vector_clause(self, name: Literal["n", "r"], dims: int) -> str:
        return ""

    def cosine_expression(self, name: Literal["n", "r"], dims: int) -> str:
        raise NotImplementedError  # `SharedCypherGraph` asks the primary store


class SharedCypherGraph(Neo4jGraph):
    """A `GraphIndex` on a server that speaks openCypher over Bolt; the primary graph computes all cosines."""

    name = "cypher"
    server = "the graph database"
    dialect = _SharedCypher()
    ignored_settings = ("notifications_min_severity",)  # refused by the driver for servers below Bolt 5.2

    @cached_property
    def _cosines(self) -> EmbeddedGraph:
        return EmbeddedGraph(
            self._primary_graph,
            nodes=ExactIndex(self._primary_graph.node_vectors),
            relations=ExactIndex(self._primary_graph.relation_vectors),
        )

    def _find_neighborhoods(
        self, scope: Scope, vectors: NDArray[np.float32], *, threshold: float, limit: int, as_of: str | None
    ) -> Flow[list[GraphNeighborhood]]:
        yield from self._follow()
        near = yield from do(self._nearest_nodes, scope, vectors, threshold, limit)
        nodes = sorted({row for found in near for row, _ in found})
        hop = (yield from self._find_incident_relations(scope, nodes, limit, as_of)) if nodes else {}
        neighborhoods = []
        for found in near:
            scores: dict[int, float] = {}
            for node, score in found:
                for row in hop.get(node, ()):
                    scores[row] = max(score, scores.get(row, score))
            relations = sorted(scores.items(), key=lambda pair: -pair[1])
            neighborhoods.append(GraphNeighborhood([pair for pair in found if pair[0] in hop], relations))
        return neighborhoods

    def _nearest_nodes(
        self, scope: Scope, vectors: NDArray[np.float32], threshold: float, limit: int
    ) -> list[list[tuple[int, float]]]:
        return self._cosines.parts["nodes"].nearest(scope, vectors, limit, threshold=threshold)

    def _find_incident_relations(
        self, scope: Scope, nodes: list[int], limit: int, as_of: str | None
    ) -> Flow[dict[int, list[int]]]:
        """Return the newest relations of each node that the database has; a node without relations has none."""
        matched, values = self._address(scope)
        is_valid, times = validity_condition(as_of)
        text = (
            f"MATCH (n:Entity {{{matched}}}) WHERE n.row IN $rows"
            f" OPTIONAL MATCH (n)-[r:RELATES {{{matched}}}]-(:Entity {{{matched}}}) WHERE {is_valid}"
            " RETURN DISTINCT n.row, r.row ORDER BY n.row, r.row DESC"
        )
        (answer,) = yield from do(self._execute, [(text, {**values, **times, "rows": nodes})])
        hop: dict[int, list[int]] = {}
        for node, relation in answer:
            of_node = hop.setdefault(node, [])
            if relation is not None and len(of_node) < limit:
                of_node.append(relation)
        return hop

    def _find_relations(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, *, threshold: float, as_of: str | None
    ) -> Flow[list[list[tuple[int, float]]]]:
        yield from self._follow()
        near = yield from do(self._nearest_sentences, scope, vectors, k, threshold, as_of)
        rows = sorted({row for found in near for row, _ in found})
        if not rows:
            return near
        matched, values = self._address(scope)
        is_valid, times = validity_condition(as_of)
        text = f"MATCH ()-[r:RELATES {{{matched}}}]->() WHERE {is_valid} AND r.row IN $rows RETURN r.row"
        (answer,) = yield from do(self._execute, [(text, {**values, **times, "rows": rows})])
        stored = {row for (row,) in answer}
        return [[pair for pair in found if pair[0] in stored] for found in near]

    def _nearest_sentences(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, threshold: float, as_of: str | None
    ) -> list[list[tuple[int, float]]]:
        return self._cosines.nearest_relations(scope, vectors, k, threshold=threshold, as_of=as_of)

    def _store_memories(self, memories: Sequence[str]) -> Any:
        return json.dumps(list(memories))  # Neptune has no lists as properties

    def _read_memories(self, stored: Any) -> tuple[str, ...]:
        return tuple(json.loads(stored))

    def _relation(self, relation: Relation, vector: NDArray[np.float32]) -> dict[str, Any]:
        return {**super()._relation(relation, vector), "embedding": None}


class MemgraphGraph(SharedCypherGraph):
    """A `GraphIndex` on a Memgraph server; mem0's provider ``memgraph``."""

    name = "memgraph"
    server = "Memgraph"


class NeptuneGraph(SharedCypherGraph):
    """A `GraphIndex` on an Amazon Neptune database; mem0's providers ``neptune`` and ``neptunedb``.

    Args:
        endpoint: ``neptune-db://host``, as in mem0, or the URL of its Bolt endpoint. Requests are not signed: the
            database must accept connections without IAM authentication.
        options: options of `Neo4jGraph`.

    Raises:
        ConfigError: the endpoint is of Neptune Analytics, which has no Bolt endpoint.
    """

    name = "neptune"
    server = "Neptune"

    def __init__(
        self,
        primary_graph: GraphStore,
        *,
        store_id: str,
        endpoint: str | None = None,
        url: str | None = None,
        username: str | None = None,
        password: str | None = None,
        retry_after: float = 5.0,
        connection_timeout: float = 3.0,
        base_label: object = None,
        collection_name: object = None,
    ) -> None:
        super().__init__(
            primary_graph,
            store_id=store_id,
            url=_neptune_url(endpoint or url),
            username=username,
            password=password,
            retry_after=retry_after,
            connection_timeout=connection_timeout,
        )


def _neptune_url(endpoint: str | None) -> str:
    """Return the Bolt URL of mem0's endpoint.

    Raises:
        ConfigError: there is no endpoint, or it is of Neptune Analytics.
    """
    if not endpoint:
        raise ConfigError("graph_store.config (neptune): the key 'endpoint' is missing; add it, as neptune-db://HOST")
    if "://" not in endpoint:
        raise ConfigError(
            f"graph_store.config.endpoint (neptune): {endpoint!r} has no scheme; accepted: neptune-db://HOST or the URL"
            f" of a Bolt endpoint; pass, for example, 'neptune-db://{endpoint}'"
        )
    if endpoint.startswith("neptune-graph://"):
        raise ConfigError(
            f"graph_store.config.endpoint (neptune): {endpoint!r} is of Neptune Analytics, which has no Bolt endpoint;"
            " pass a Neptune database, as neptune-db://HOST"
        )
    if not endpoint.startswith("neptune-db://"):
        return endpoint
    host = endpoint.removeprefix("neptune-db://").rstrip("/")
    return f"bolt+s://{host}" if re.search(r":\d+$", host) else f"bolt+s://{host}:{_NEPTUNE_PORT}"
