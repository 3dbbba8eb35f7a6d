"""Nodes and relations of a graph near a vector, without a search of the index where a scope in memory has none near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from mem0_core.domain.records import Relation, Scope
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import search_neighborhoods, search_relations
from mem0_core.interfaces import GraphMemory, GraphNeighborhood, Ports
from mem0_core.recall.cache import read_once, read_rows
from mem0_core.recall.embedding import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.recall.cache import ActiveScope

_ROUNDING = 0.01  # more than a cosine differs between the store and an index in half precision
_MAX_KEPT_VECTORS = 512  # of the nodes or the relations of a scope
_MAX_KEPT_NAMES = 64  # of a scope, with the nodes near them


def find_near_relations(
    ports: Ports,
    graph: GraphMemory,
    scope: Scope,
    vectors: NDArray[np.float32],
    limit: int,
    *,
    as_of: str | None,
    active: ActiveScope | None,
) -> Flow[list[int]]:
    """Return the rows of the relations near a vector, (1, dims), best first.

    Args:
        active: the scope as it is now, if it is kept in memory.
    """
    threshold = graph.options.triplet_threshold
    kept = _get_kept(graph, active)
    if as_of is None and not (yield from _may_be_near(ports, "relations", scope, vectors, threshold, kept)):
        return []
    (near,) = yield from search_relations(graph, scope, vectors, limit, threshold=threshold, as_of=as_of)
    return [row for row, _ in near]


def find_near_names(
    ports: Ports,
    graph: GraphMemory,
    scope: Scope,
    names: Sequence[str],
    limit: int,
    *,
    as_of: str | None,
    active: ActiveScope | None,
) -> Flow[list[GraphNeighborhood]]:
    """Return the nodes near each of some names, with their relations.

    Args:
        active: as for `find_near_relations`.
    """
    kept = _get_kept(graph, active)
    known: dict[str, GraphNeighborhood] = {}
    if kept is not None:  # each name by itself: the queries of a scope name the same people in many combinations
        known = cast("dict[str, GraphNeighborhood]", kept.reads.setdefault(("near", limit, as_of), {}))
    near = {name: known[name] for name in names if name in known}
    if missing := [name for name in names if name not in near]:
        found = yield from _search_names(ports, graph, scope, missing, limit, as_of, kept)
        near.update(zip(missing, found, strict=True))
        known.update(near)
        for oldest in list(known)[:-_MAX_KEPT_NAMES]:
            known.pop(oldest, None)
    return [near[name] for name in names]


def load_relations(
    ports: Ports, rows: Sequence[int], scope: Scope, active: ActiveScope | None, *, with_evidence: bool = True
) -> Flow[dict[int, Relation]]:
    """Return those of some relations that exist, by row.

    Args:
        with_evidence: fill `Relation.memories`; relations that are kept in memory have it in any case.
        active: as for `find_near_relations`.
    """
    kept = active if active is not None and active.items else None  # once: another search may fill it meanwhile

    def read(wanted: Sequence[int]) -> Flow[dict[int, Relation]]:
        with_all = with_evidence or kept is not None
        return do(ports.store.graph.relations_by_rows, wanted, scope=scope, with_evidence=with_all)

    wanted = rows if kept is None else sorted(rows)  # the order in which SQLite returns them
    return (yield from read_rows(kept, "relations by row", wanted, read))


def _search_names(
    ports: Ports,
    graph: GraphMemory,
    scope: Scope,
    names: Sequence[str],
    limit: int,
    as_of: str | None,
    kept: ActiveScope | None,
) -> Flow[list[GraphNeighborhood]]:
    threshold = graph.options.threshold
    vectors = yield from _embed_names(ports, names)
    if not (yield from _may_be_near(ports, "nodes", scope, vectors, threshold, kept)):
        return [GraphNeighborhood([], []) for _ in names]
    return (yield from search_neighborhoods(graph, scope, vectors, threshold=threshold, limit=limit, as_of=as_of))


def _embed_names(ports: Ports, names: Sequence[str]) -> Flow[NDArray[np.float32]]:
    """Return the embeddings of names, (n, dims): the queries of a scope name the same people again and again."""
    embedder, text = f"{ports.embedder.name}, documents", "\n".join(names)
    known = None if ports.cache is None else ports.cache.embedding(embedder, text)
    if known is not None and len(known) == len(names):  # else a name has several lines
        return known
    vectors = yield from embed_texts(ports, names)
    if ports.cache is not None:
        ports.cache.keep_embedding(embedder, text, vectors)
    return vectors


def _get_kept(graph: GraphMemory, active: ActiveScope | None) -> ActiveScope | None:
    """Return the scope in memory unless another projection answers, which may be behind the store."""
    return active if graph.index is graph.embedded_index else None


def _may_be_near(
    ports: Ports,
    kind: Literal["nodes", "relations"],
    scope: Scope,
    vectors: NDArray[np.float32],
    threshold: float,
    kept: ActiveScope | None,
) -> Flow[bool]:
    """Return False if a scope in memory is known to have nothing near some vectors, as for most queries."""
    # Before a second search, a read of all embeddings may not pay. The first one reaches the index, so that it drops
    # what an erasure in another process has left there.
    if kept is None or not kept.items:
        return True
    known: NDArray[np.float32] | None = yield from read_once(kept, kind, lambda: _read_vectors(ports, kind, scope))
    return known is None or bool((known @ vectors.T >= threshold - _ROUNDING).any())


def _read_vectors(ports: Ports, kind: Literal["nodes", "relations"], scope: Scope) -> Flow[NDArray[np.float32] | None]:
    """Return the embeddings of the nodes or relations of a scope, (n, dims); None if there are none, or many."""
    graph = ports.store.graph
    source = graph.node_vectors if kind == "nodes" else graph.relation_vectors
    rows = yield from do(source.rows, scope)
    if not 0 < len(rows) <= _MAX_KEPT_VECTORS:
        return None
    _, vectors = yield from do(source.vectors, rows.tolist())
    return vectors
