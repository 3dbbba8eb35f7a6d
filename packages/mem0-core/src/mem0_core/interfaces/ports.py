"""The components of one memory, as the pipelines take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from mem0_core._system.records import dataclass

if TYPE_CHECKING:
    from mem0_core.domain.records import Scope
    from mem0_core.interfaces.chat import ChatModel
    from mem0_core.interfaces.embedder import Embedder
    from mem0_core.interfaces.graph import GraphMemory
    from mem0_core.interfaces.records import OnConflict
    from mem0_core.interfaces.reranker import Reranker
    from mem0_core.interfaces.store import MemoryStore
    from mem0_core.interfaces.vectors import VectorIndex

__all__ = ["AdjacencyCache", "Ports"]


class AdjacencyCache(Protocol):
    """Adjacency arrays of scopes, kept between traversals; implemented by `graph.adjacency`."""

    def of(self, scope: Scope) -> Any:
        """Return the `graph.adjacency.Adjacency` of a scope as it is now."""
        ...

    def get_aliased(self, scope: Scope, adjacency: Any) -> Any:
        """Return a state of a scope with its aliases, if `keep_aliased` has got it; else None."""
        ...

    def keep_aliased(self, scope: Scope, adjacency: Any, aliased: Any) -> None:
        """Keep a state with its aliases until the scope has another state."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The models and stores of one memory; the first argument of every pipeline.

    Attributes:
        adjacency: the graph in memory, kept between traversals; without it, each traversal loads its scope.
        traversal_weights: overrides of `graph.traversal.Weights`.
    """

    store: MemoryStore
    index: VectorIndex
    embedder: Embedder
    chat: ChatModel | None = None
    reranker: Reranker | None = None
    graph: GraphMemory | None = None
    adjacency: AdjacencyCache | None = None
    traversal_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def on_conflict(self) -> OnConflict:
        """Treatment of relations that end. Memories can end some even while graph memory is off."""
        return self.graph.options.on_conflict if self.graph else "invalidate"
