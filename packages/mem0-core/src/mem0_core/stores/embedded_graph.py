"""The graph beside the truth: nodes and sentences found by vector projections, the hop between them by the truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mem0_core.ports import Around, GraphTruth, VectorIndex
from mem0_core.records import Relation, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EmbeddedGraph"]

_SPARE = 2  # times as many are fetched at first as are wanted, since some may hold no longer


class EmbeddedGraph:
    """A `GraphIndex` with nothing of its own but two `VectorIndex`, which follow the truth by themselves.

    Args:
        truth: where relations lie.
        nodes, relations: projections of its `node_vectors` and `relation_vectors`.
    """

    name = "sqlite"

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
        near = [
            [(row, score) for row, score in found if score >= threshold]
            for found in self._nodes.nearest(scope, vectors, limit)
        ]
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
        wanted = k * _SPARE
        while True:
            found = self._relations.nearest(scope, vectors, wanted)
            rows = list({row for of_vector in found for row, score in of_vector if score >= threshold})
            holding = self._truth.holding(rows, as_of=as_of)
            kept = [
                [(row, score) for row, score in of_vector if score >= threshold and row in holding][:k]
                for of_vector in found
            ]
            enough = all(
                len(some) == k or len(all_) < wanted or all_[-1][1] < threshold
                for some, all_ in zip(kept, found, strict=True)
            )
            if enough:
                return kept
            wanted *= 4

    def follow(self) -> None:
        """Nothing to do: each search follows."""

    def relations(self, scope: Scope) -> list[Relation]:
        return self._truth.relations(scope, ended=True)

    def forget(self, scope: Scope | None) -> None:
        self._nodes.forget(scope)
        self._relations.forget(scope)

    def close(self) -> None:
        self._nodes.close()
        self._relations.close()


def _best(found: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each row once, with its best score, best first."""
    best: dict[int, float] = {}
    for row, score in found:
        best[row] = max(score, best.get(row, score))
    return sorted(best.items(), key=lambda pair: -pair[1])
