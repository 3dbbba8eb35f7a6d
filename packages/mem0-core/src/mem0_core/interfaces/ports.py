"""The components of one memory, as the pipelines take them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import clear_text_caches
from mem0_core.domain.options import TraverseConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.domain.records import Scope
    from mem0_core.interfaces.chat import ChatModel
    from mem0_core.interfaces.embedder import Embedder
    from mem0_core.interfaces.graph import GraphMemory
    from mem0_core.interfaces.records import OnConflict
    from mem0_core.interfaces.reranker import Reranker
    from mem0_core.interfaces.store import MemoryStore
    from mem0_core.interfaces.vectors import VectorIndex


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

    def forget(self) -> None:
        """Drop all scopes."""
        ...


class SearchCache(Protocol):
    """Scopes and embedded queries that are kept between searches; implemented by `recall.cache`."""

    def open(self, store: MemoryStore, index: VectorIndex, scope: Scope) -> Any:
        """Return the `recall.cache.ActiveScope` of a scope as it is now; None if it is not kept."""
        ...

    def refresh(self, store: MemoryStore, index: VectorIndex, scope: Scope) -> None:
        """Read what has changed in the kept scopes that hold a scope, so that their next searches need not."""
        ...

    def find_result(self, store: MemoryStore, request: Any) -> Any:
        """Return the `recall.search.Search` of a request if it is kept and nothing was committed since, else None."""
        ...

    def is_current(self, store: MemoryStore, scope: Scope, active: Any) -> bool:
        """Return True if nothing of a scope was changed since it was opened as `active`."""
        ...

    def limit_records(self, scope: Scope, active: Any) -> None:
        """Count what a scope has read and found; of too much, drop that of the scopes not used for longest."""
        ...

    def forget(self, scope: Scope | None) -> None:
        """Drop what is kept of the memories of a scope, and of all that contain it; None for everything."""
        ...

    def count(self, name: str) -> None:
        """Count a use of what is kept."""
        ...

    def embedding(self, embedder: str, text: str) -> NDArray[np.float32] | None:
        """Return the embedding of a query by the embedder of this name, (1, dims), if it is known."""
        ...

    def keep_embedding(self, embedder: str, text: str, vectors: NDArray[np.float32]) -> None:
        """Keep the embedding of a query."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The models and stores of one memory; the first argument of every pipeline.

    Attributes:
        is_reranker_default: the reranker was not chosen by name, so it reads only a few hits, and short ones.
        adjacency: the graph in memory, kept between traversals; without it, each traversal loads its scope.
        cache: what searches keep in memory; without it, each search reads the store.
        traversal_weights: how paths through the graph are ranked.
    """

    store: MemoryStore
    index: VectorIndex
    embedder: Embedder
    chat: ChatModel | None = None
    reranker: Reranker | None = None
    is_reranker_default: bool = False
    graph: GraphMemory | None = None
    adjacency: AdjacencyCache | None = None
    traversal_weights: TraverseConfig = field(default_factory=TraverseConfig)
    cache: SearchCache | None = None

    @property
    def on_conflict(self) -> OnConflict:
        """Treatment of relations that end. Memories can end some even while graph memory is off."""
        return self.graph.options.on_conflict if self.graph else "invalidate"

    def forget(self, scope: Scope | None) -> None:
        """Drop what searches keep in memory of a scope; None for all texts, names and queries of this process."""
        if self.cache is not None:
            self.cache.forget(scope)
        if scope is None:
            if self.adjacency is not None:
                self.adjacency.forget()
            clear_text_caches()
