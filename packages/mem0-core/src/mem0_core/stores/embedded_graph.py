"""The graph beside the truth: nodes and sentences found by vector projections, the hop between them by the truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.care import VectorTable
from mem0_core.ports import Around, GraphTruth, VectorIndex
from mem0_core.records import Relation, Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EmbeddedGraph"]


class EmbeddedGraph:
    """A `GraphIndex` with nothing of its own but two `VectorIndex`, which follow the truth by themselves.

    Args:
        truth: where relations lie.
        nodes, relations: projections of its `node_vectors` and `relation_vectors`.
    """

    name = "sqlite"
    inline = True  # see `flow`

    def __init__(self, truth: GraphTruth, nodes: VectorIndex, relations: VectorIndex) -> None:
        self._truth = truth
        self._nodes = nodes
        self._relations = relations

    def around(
        self,
        scope: Scope,
        vectors: NDArray[np.float32],
        *,
        threshold: float,
        limit: int,
        as_of: str | None = None,
    ) -> list[Around]:
        near = self._nodes.nearest(scope, vectors, limit, threshold=threshold)
        nodes = list({row for found in near for row, _ in found})
        hop = self._truth.touching(nodes, scope=scope, limit=limit, as_of=as_of)
        return [Around(found, _best((row, score) for node, score in found for row in hop[node])) for found in near]

    def triplets(
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
        return self._triplets_then(scope, vectors, k, threshold, as_of)

    def _triplets_then(
        self, scope: Scope, vectors: NDArray[np.float32], k: int, threshold: float, as_of: str
    ) -> list[list[tuple[int, float]]]:
        """What held then: of what holds still, what is old enough; and what has ended since, which is scanned."""
        lasting = self._truth.relation_vectors.rows(scope).tolist()
        only = np.array(sorted(self._truth.holding(lasting, as_of=as_of)), dtype=np.int64)
        found = self._relations.nearest(scope, vectors, k, only=only, threshold=threshold)
        rows, theirs = self._truth.ended_vectors(scope, as_of=as_of)
        scores = vectors @ theirs.T if len(rows) else np.empty((len(vectors), 0))
        merged = [
            _best([*of_vector, *zip(rows.tolist(), of_ended.tolist(), strict=True)])
            for of_vector, of_ended in zip(found, scores, strict=True)
        ]
        return [[(row, score) for row, score in some if score >= threshold][:k] for some in merged]

    def follow(self) -> None:
        """Nothing to do: each search follows."""

    def relations(self, scope: Scope) -> list[Relation]:
        return self._truth.relations(scope, ended=True)

    def forget(self, scope: Scope | None) -> None:
        self._nodes.forget(scope)
        self._relations.forget(scope)

    @property
    def parts(self) -> dict[VectorTable, VectorIndex]:
        """The projections it is made of, by what they are of."""
        return {"nodes": self._nodes, "edges": self._relations}

    def close(self) -> None:
        self._nodes.close()
        self._relations.close()


def _best(found: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each row once, with its best score, best first."""
    best: dict[int, float] = {}
    for row, score in found:
        best[row] = max(score, best.get(row, score))
    return sorted(best.items(), key=lambda pair: -pair[1])
