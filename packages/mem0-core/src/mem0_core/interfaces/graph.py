"""The graph: the store's side (`GraphStore`), the search side (`GraphIndex`) and the options of graph memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import DateRange, Node, Relation, Scope, Trust
    from mem0_core.interfaces.chat import ChatModel
    from mem0_core.interfaces.records import OnConflict
    from mem0_core.interfaces.vectors import ChangePosition, VectorSource


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """The changes a graph projection applies to catch up with the primary store.

    Attributes:
        nodes, relations: new and changed items, each with its vector.
        last_seq: sequence number of the last change.
        has_more: True if more changes follow.
    """

    nodes: tuple[tuple[Node, NDArray[np.float32]], ...]
    relations: tuple[tuple[Relation, NDArray[np.float32]], ...]
    removed_nodes: tuple[int, ...]
    removed_relations: tuple[int, ...]
    last_seq: int
    has_more: bool = False


NodeRow = tuple[int, str | None, bytes, str, str]
"""A node as a plain tuple: row, user_id, `records.entity_key`, name, type."""

EdgeRow = tuple[int, int, str, int, int, str, str | None, str | None, str | None]
"""A relation as a plain tuple: row, source row, relationship, destination row, weight, valid_from, valid_to, and the
first and last event date of its memories (`records.Relation.event_dates`)."""


@dataclass(frozen=True, slots=True)
class GraphDelta:
    """The graph of one scope at `position`, or its changes since an earlier one, without vectors and evidence.

    Attributes:
        nodes, edges: new and changed rows, ended relations included.
        removed_edges: rows of removed relations.
    """

    position: ChangePosition
    nodes: list[NodeRow]
    edges: list[EdgeRow]
    removed_edges: list[int]


class GraphStore(Protocol):
    """The graph in the primary store. Every result shown to users is read from here, whichever index found it.

    `as_of` (ISO 8601 in UTC) selects the relations valid at that time; without it, those valid now.
    """

    def store_id(self) -> str:
        """Return a unique name of the store, so that several stores can share one projection database."""
        ...

    @property
    def node_vectors(self) -> VectorSource: ...
    @property
    def relation_vectors(self) -> VectorSource:
        """Vectors of the relations that hold now; `vectors` also returns those of ended ones."""
        ...

    def relations(
        self, scope: Scope, *, as_of: str | None = None, include_ended: bool = False, limit: int | None = None
    ) -> list[Relation]:
        """Return the relations of a scope, oldest first."""
        ...

    def relations_by_rows(
        self, rows: Sequence[int], *, scope: Scope, with_evidence: bool = True
    ) -> dict[int, Relation]:
        """Return the relations among `rows` in `scope`, ended ones included, by row.

        Args:
            with_evidence: fill `Relation.memories`.
        """
        ...

    def nodes_by_rows(self, rows: Sequence[int], *, scope: Scope) -> dict[int, Node]:
        """Return the nodes among `rows` in `scope`, by row."""
        ...

    def nodes_by_names(self, scope: Scope, names: Sequence[str]) -> dict[bytes, tuple[Node, NDArray[np.float32]]]:
        """Return the nodes of exactly this scope with one of these names, and their vectors, by `entity_key`."""
        ...

    def destinations(self, scope: Scope, source: str, relationships: Sequence[str]) -> list[str]:
        """Return the names that an entity of exactly this scope has now at the other end of some relationships."""
        ...

    def incident_relation_rows(
        self, nodes: Sequence[int], *, scope: Scope, limit: int, as_of: str | None = None
    ) -> dict[int, list[int]]:
        """Return the rows of the relations from or to each node, newest first, at most `limit` per node."""
        ...

    def valid_relation_rows(self, rows: Sequence[int], *, as_of: str | None = None) -> set[int]:
        """Return the rows of the relations that hold."""
        ...

    def supporting_memory_rows(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """Return the rows of the memories that support each relation."""
        ...

    def untrusted_relation_rows(self, scope: Scope, min_trust: Trust) -> set[int]:
        """Return the rows of the relations that only less trusted messages and memories state, or ended."""
        ...

    def event_dates(self, memories: Sequence[int]) -> dict[int, list[DateRange]]:
        """Return the event dates of the relations that each memory supports, by the row of the memory."""
        ...

    def ended_relation_vectors(self, scope: Scope, *, as_of: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return rows and embeddings, (n, dims), of the relations valid at `as_of` that have ended since."""
        ...

    def position(self) -> ChangePosition:
        """Return the position of the last change in the graph of all scopes."""
        ...

    def delta_since(self, scope: Scope, *, after: int = 0) -> GraphDelta:
        """Return the nodes and relations of a scope that changed after a sequence number, from one snapshot.

        The in-memory adjacency index follows it. It carries no vectors, so 100,000 rows load fast.
        """
        ...

    def changes(self, *, after: int = 0, limit: int = 500) -> GraphChanges:
        """Return the changes in the graph of all scopes after a sequence number, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class GraphNeighborhood:
    """Search results around one vector: (row, cosine), best first. A relation has the cosine of its node."""

    nodes: list[tuple[int, float]]
    relations: list[tuple[int, float]]


class GraphIndex(Protocol):
    """A projection that searches the graph by vectors, within a scope. Each search catches up first.

    Raises (by every method but `close`):
        StoreError: the projection cannot be reached. The primary store is complete; the next call catches up.
    """

    @property
    def name(self) -> str: ...

    def neighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        """Return the nodes near each vector (n, dims) and the relations one hop from them.

        Args:
            threshold: the lowest cosine of a node.
            limit: the number of nodes per vector, and of the newest relations per node.
        """
        ...

    def nearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        """Return up to k (row, cosine) of relations for each vector, by the relation's sentence, best first."""
        ...

    def catch_up(self) -> None:
        """Apply the changes of the primary store that the projection has not seen yet."""
        ...

    def relations(self, scope: Scope) -> list[Relation]:
        """Return the projection's copy of all relations of a scope, ended ones included, for comparison."""
        ...

    def purge_deleted(self, scope: Scope | None) -> None:
        """Remove the deleted items of a scope (None: of all scopes)."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """Options of graph memory; docs/how-to/graph.md explains the thresholds.

    Attributes:
        threshold: the cosine from which two names are one node (Mem0 paper, section 2.2).
        prompt: instructions added to the relations prompt (mem0's `custom_prompt`).
        strict: use the strict structured-output form of tools.
        existing: number of known relations shown to the model around each entity and near each new relation.
        limit: number of relations that a search returns.
        triplet_threshold: the cosine from which a relation's sentence answers a query by itself.
        query_entities: "model" names the entities of a query with one model call per search, "rules" without.
        relations: "staged" finds entities, then relations; "triplets" asks for both in one call.
        on_conflict: treatment of relations that no longer hold.
    """

    threshold: float = 0.7
    prompt: str | None = None
    strict: bool = False
    existing: int = 10
    limit: int = 5
    triplet_threshold: float = 0.4
    query_entities: Literal["model", "rules"] = "model"
    relations: Literal["staged", "triplets"] = "staged"
    on_conflict: OnConflict = "invalidate"


@dataclass(frozen=True, slots=True)
class GraphMemory:
    """The components of graph memory.

    Attributes:
        index: the projection that searches use.
        embedded_index: the projection next to the primary store, used while `index` cannot be reached.
        chat: the model that extracts entities and relations; None for rules.
    """

    index: GraphIndex
    embedded_index: GraphIndex
    chat: ChatModel | None = None
    options: GraphOptions = GraphOptions()
