"""Graph index of the primary store: vector projections find nodes and sentences, SQL takes the hop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.domain.records import Relation, Scope
from mem0_core.interfaces import GraphNeighborhood, GraphStore, VectorIndex
from mem0_core.interfaces.maintenance import ErasableProjection, VectorTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EmbeddedGraph:
    """A `GraphIndex` made of the primary store and two `VectorIndex` projections of it.

    Args:
        primary_graph: the store of relations.
        nodes, relations: projections of its `node_vectors` and `relation_vectors`.
    """

    name = "sqlite"
    inline = True  # see `flow.Call.inline`

    def __init__(self, primary_graph: GraphStore, nodes: VectorIndex, relations: VectorIndex) -> None:
        self._primary_graph = primary_graph
        self._nodes = nodes
        self._relations = relations

    def neighborhoods(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[GraphNeighborhood]:
        near = self._nodes.nearest(scope, vectors, limit, threshold=threshold)
        nodes = list({row for found in near for row, _ in found})
        hop = self._primary_graph.incident_relation_rows(nodes, scope=scope, limit=limit, as_of=as_of)
        return [
            GraphNeighborhood(found, _best_scores((row, score) for node, score in found for row in hop[node]))
            for found in near
        ]

    def nearest_relations(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        k: int,
        *,
        threshold: float,
        as_of: str | None = None,
    ) -> list[list[tuple[int, float]]]:
        if as_of is None:
            return self._relations.nearest(scope, vectors, k, threshold=threshold)
        return self._find_relations_as_of(scope, vectors, k, threshold, as_of)

    def _find_relations_as_of(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, threshold: float, as_of: str
    ) -> list[list[tuple[int, float]]]:
        """Search the relations valid at `as_of`: current ones that are old enough, and a scan of those ended since."""
        current_rows = self._primary_graph.relation_vectors.rows(scope).tolist()
        allowed_rows = np.array(
            sorted(self._primary_graph.valid_relation_rows(current_rows, as_of=as_of)), dtype=np.int64
        )
        found = self._relations.nearest(scope, vectors, k, allowed_rows=allowed_rows, threshold=threshold)
        rows, theirs = self._primary_graph.ended_relation_vectors(scope, as_of=as_of)
        scores = vectors @ theirs.T if len(rows) else np.empty((len(vectors), 0))
        merged = [
            _best_scores([*of_vector, *zip(rows.tolist(), of_ended.tolist(), strict=True)])
            for of_vector, of_ended in zip(found, scores, strict=True)
        ]
        return [[(row, score) for row, score in pairs if score >= threshold][:k] for pairs in merged]

    def catch_up(self) -> None:
        """Do nothing: each search reads the latest changes."""

    def relations(self, scope: Scope) -> list[Relation]:
        return self._primary_graph.relations(scope, include_ended=True)

    def purge_deleted(self, scope: Scope | None) -> None:
        self._nodes.purge_deleted(scope)
        self._relations.purge_deleted(scope)

    def discard(self) -> None:
        """Drop everything held in memory and in snapshots; see `ErasableProjection`."""
        for part in self.parts.values():
            if isinstance(part, ErasableProjection):
                part.discard()

    def files(self) -> list[Path]:
        """Return the files of both projections."""
        kept = [part for part in self.parts.values() if isinstance(part, ErasableProjection)]
        return [path for part in kept for path in part.files()]

    @property
    def parts(self) -> dict[VectorTable, VectorIndex]:
        """The two projections by their table."""
        return {"nodes": self._nodes, "edges": self._relations}

    def close(self) -> None:
        self._nodes.close()
        self._relations.close()


def _best_scores(found: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return each row once with its best score, best first."""
    best: dict[int, float] = {}
    for row, score in found:
        best[row] = max(score, best.get(row, score))
    return sorted(best.items(), key=lambda pair: -pair[1])
