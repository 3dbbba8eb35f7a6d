"""Entity resolution: merge entities, or relationships, that have several names.

Load the graph -> compare pairs of names (`name_similarity`) -> group the pairs, so that no group contains two distinct
names -> plan one merge per group, which the store applies (`MergeLedger`). Pairs below the threshold that may mean the
same are reported as candidates. They follow from the names, types, vectors and relations of the graph at that time, so
a candidate never outlives its reasons. Every merge stays within one exact scope of user, agent and run.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core._system.records import dataclass
from mem0_core.domain.records import (
    LaggingProjection,
    Merge,
    MergeKind,
    Node,
    Relation,
    Scope,
    Triplet,
    entity_key,
)
from mem0_core.domain.suggestions import check_list
from mem0_core.errors import InputError, NotFoundError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import self_name
from mem0_core.ingest._node_matching import find_contradiction
from mem0_core.ingest.relations import sync_projections
from mem0_core.interfaces import MergePlan, Ports
from mem0_core.language.name_similarity import (
    CANDIDATE_SCORE,
    DEFAULT_MERGE_THRESHOLD,
    EntityName,
    NameSimilarity,
    compare_names,
    compare_relationships,
    fold_name,
    get_initials,
)
from mem0_core.recall.embedding import check_embedder, embed_texts

_MAX_ATTEMPTS = 3
_MIN_COSINE = 0.6  # names without a common word are compared from this cosine on
_BLOCK_ROWS = 1024  # rows per matrix product
_MAX_NAMES_PER_WORD = 200  # a word that more names share does not select pairs


@dataclass(frozen=True, slots=True)
class SameAs:
    """Two names of one scope that may mean the same, and are not merged unless a caller asks for it.

    Attributes:
        score: in [0, 1], below the threshold of merges.
    """

    kind: MergeKind
    scope: Scope
    names: tuple[str, str]
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class MergeReport:
    """Merges that were applied, or in a dry run proposed, and similar names that are not merged.

    Attributes:
        same_as: pairs that may mean the same, best first.
        apart: (names, reason) per pair of distinct names.
        pending: projections that could not be updated yet.
    """

    merges: tuple[Merge, ...] = ()
    same_as: tuple[SameAs, ...] = ()
    apart: tuple[tuple[tuple[str, ...], str], ...] = ()
    pending: tuple[LaggingProjection, ...] = ()


@dataclass(frozen=True, slots=True)
class _ScopeGraph:
    """The graph of one exact scope."""

    scope: Scope
    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...]

    def degrees(self) -> Counter[str]:
        """Return the number of relations per name."""
        return Counter(end for one in self.relations for end in (one.triplet.source, one.triplet.destination))

    def current_triplets(self) -> dict[str, list[Triplet]]:
        """Return the relations that hold now, by the name of their source."""
        stated: dict[str, list[Triplet]] = defaultdict(list)
        for one in self.relations:
            if one.valid_to is None:
                stated[one.triplet.source].append(one.triplet)
        return stated

    def labels(self) -> Counter[str]:
        return Counter(one.triplet.relationship for one in self.relations)


@dataclass(frozen=True, slots=True)
class _Link:
    """Similarity of two names, given by their indexes."""

    one: int
    other: int
    similarity: NameSimilarity


def merge_duplicates(
    ports: Ports,
    scope: Scope,
    *,
    what: Literal["all", "entities", "relationships"],
    names: Sequence[str] | None,
    into: str | None,
    threshold: float | None,
    at: str,
    dry_run: bool,
) -> Flow[MergeReport]:
    """Merge similar names, or exactly `names`.

    Args:
        into: the name that stays; by default the best-connected one.
        threshold: lowest similarity score of a merge, in [0, 1].
        at: ISO 8601 time of the merge.

    Raises:
        InputError: `what` is unknown, `into` lacks `names`, or `names` are not all in one exact scope.
        StoreError: the graph kept changing; earlier merges of the call stay.
    """
    if what not in ("all", "entities", "relationships"):
        raise InputError(f"what must be 'entities', 'relationships' or 'all', not {what!r}")
    if into is not None and not names:
        raise InputError("into is given without names: give the names to merge")
    check_list(names, "names")
    graphs = yield from _load_graphs(ports, scope)
    found: list[MergeReport] = []
    if names is not None:
        found = [MergeReport(tuple(_plan_named(graphs, what, list(names), into)))]
    else:
        floor = DEFAULT_MERGE_THRESHOLD if threshold is None else threshold
        for held in graphs:
            if what != "relationships":
                found.append((yield from _find_entity_merges(ports, held, floor)))
            if what != "entities":
                found.append((yield from _find_relationship_merges(ports, held, floor)))
    report = MergeReport(
        tuple(merge for one in found for merge in one.merges),
        tuple(sorted((pair for one in found for pair in one.same_as), key=lambda pair: -pair.score)),
        tuple(pair for one in found for pair in one.apart),
    )
    if dry_run or not report.merges:
        return report
    applied: list[Merge] = []
    for merge in report.merges:
        done = yield from _apply_merge(ports, merge, at)
        applied.append(done)
    return dataclasses.replace(report, merges=tuple(applied), pending=(yield from sync_projections(ports)))


def undo_merge(ports: Ports, merge_id: str, *, at: str) -> Flow[Merge]:
    """Undo a merge.

    Raises:
        NotFoundError: no active merge has that id.
        InputError: a later merge depends on it.
        StoreError: the graph kept changing; nothing is undone.
    """
    ledger = ports.store.merges
    for _ in range(_MAX_ATTEMPTS):
        texts = yield from do(ledger.texts_to_embed, merge_id)
        vectors = (yield from embed_texts(ports, texts)) if texts else ()
        ready = dict(zip(texts, vectors, strict=True))
        space = (ports.embedder.name, ports.embedder.dims)
        merge = yield from do(ledger.revert, merge_id, ready, at=at, embedding_space=space)
        if merge is not None:
            yield from sync_projections(ports)
            return merge
    raise StoreError(
        f"the graph changed {_MAX_ATTEMPTS} times during the undo of merge {merge_id!r}; nothing was undone, try again"
    )


# --- graphs ------------------------------------------------------------------------------------------------------


def _load_graphs(ports: Ports, scope: Scope) -> Flow[list[_ScopeGraph]]:
    """Load the graphs of all exact scopes within a scope."""
    store = ports.store.graph
    relations = yield from do(store.relations, scope, include_ended=True)
    rows = list(dict.fromkeys(end for one in relations for end in (one.source_node, one.destination_node)))
    nodes = yield from do(store.nodes_by_rows, rows, scope=scope)
    by_scope: dict[Scope, tuple[list[Node], list[Relation]]] = defaultdict(lambda: ([], []))
    for row in sorted(nodes):
        by_scope[nodes[row].scope][0].append(nodes[row])
    for one in relations:
        by_scope[one.scope][1].append(one)
    return [_ScopeGraph(one, tuple(own), tuple(held)) for one, (own, held) in by_scope.items()]


def _plan_named(graphs: Sequence[_ScopeGraph], what: str, names: list[str], into: str | None) -> list[Merge]:
    """Return the merges of exactly these names, in every scope that has them all."""
    wanted = list(dict.fromkeys([*names, *([into] if into is not None else [])]))
    if len({entity_key(name) for name in wanted}) < 2:
        raise InputError(f"names must be at least two different names, not {wanted!r}")
    merges = []
    for held in graphs:
        nodes = {entity_key(node.entity.name): node.entity.name for node in held.nodes}
        labels = {entity_key(label): label for label in held.labels()}
        if what != "relationships" and all(entity_key(name) in nodes for name in wanted):
            found = [nodes[entity_key(name)] for name in wanted]
            kept = nodes[entity_key(into)] if into is not None else _choose_survivor(held, found)
            merges.append(_propose_merge(held, "entity", found, kept))
        elif what != "entities" and all(entity_key(label) in labels for label in wanted):
            counts = held.labels()
            found = [labels[entity_key(label)] for label in wanted]
            kept = labels[entity_key(into)] if into is not None else max(found, key=counts.__getitem__)
            merges.append(_propose_merge(held, "relationship", found, kept))
    if not merges:
        raise InputError(f"names: no exact scope within the given one has all of {', '.join(map(repr, wanted))}")
    return merges


def _choose_survivor(held: _ScopeGraph, names: Sequence[str]) -> str:
    """Return the name that stays: the speaker's own, else the one with most relations, else the longest."""
    speaker, degrees = entity_key(self_name(held.scope)), held.degrees()
    return max(names, key=lambda name: (entity_key(name) == speaker, degrees[name], len(name)))


def _propose_merge(
    held: _ScopeGraph,
    kind: Literal["entity", "relationship"],
    names: Sequence[str],
    kept: str,
    score: float | None = None,
    reasons: Iterable[str] = ("named by the caller",),
) -> Merge:
    merged = tuple(name for name in dict.fromkeys(names) if name != kept)
    if kind == "entity":
        moved = sum(not {one.triplet.source, one.triplet.destination}.isdisjoint(merged) for one in held.relations)
    else:
        moved = sum(one.triplet.relationship in merged for one in held.relations)
    return Merge(kind, held.scope, kept, merged, score, tuple(dict.fromkeys(reasons)), moved)


# --- candidates --------------------------------------------------------------------------------------------------


def _find_entity_merges(ports: Ports, held: _ScopeGraph, floor: float) -> Flow[MergeReport]:
    if len(held.nodes) < 2:
        return MergeReport()
    yield from check_embedder(ports)
    rows = [node.row for node in held.nodes]
    found_rows, vectors = yield from do(ports.store.graph.node_vectors.vectors, rows)
    index_of = {row: index for index, row in enumerate(found_rows.tolist())}
    vectors = vectors[[index_of[row] for row in rows]]
    names = [EntityName(node.entity.name, node.entity.type) for node in held.nodes]
    stated = held.current_triplets()

    def compare(one: int, other: int) -> NameSimilarity:
        return compare_names(names[one], names[other], float(vectors[one] @ vectors[other]))

    def contrast(one: int, other: int) -> NameSimilarity:
        against = find_contradiction(stated[names[one].text], stated[names[other].text])
        return NameSimilarity(0.0, against, is_distinct=True) if against else compare(one, other)

    pairs = _find_pairs([name.text for name in names], vectors)
    links = [_Link(one, other, compare(one, other)) for one, other in sorted(pairs)]
    texts = [name.text for name in names]
    groups, apart = _group_links(_drop_ambiguous(links, texts, floor), texts, contrast)
    merges = [
        _propose_merge(held, "entity", one, _choose_survivor(held, one), score, why) for one, score, why in groups
    ]
    return MergeReport(
        tuple(merges), _find_candidates("entity", held.scope, links, texts, merges, contrast), tuple(apart)
    )


def _find_candidates(
    kind: MergeKind,
    scope: Scope,
    links: Sequence[_Link],
    names: Sequence[str],
    merges: Sequence[Merge],
    compare: Callable[[int, int], NameSimilarity],
) -> tuple[SameAs, ...]:
    """Return the linked pairs that no merge joins and nothing speaks against."""
    group = {name: number for number, one in enumerate(merges) for name in (one.name, *one.merged_names)}
    found = []
    for link in links:
        one, other = names[link.one], names[link.other]
        if link.similarity.score < CANDIDATE_SCORE or (one in group and group[one] == group.get(other)):
            continue
        if not compare(link.one, link.other).is_distinct:
            found.append(SameAs(kind, scope, (one, other), link.similarity.score, link.similarity.reason))
    return tuple(found)


def _find_relationship_merges(ports: Ports, held: _ScopeGraph, floor: float) -> Flow[MergeReport]:
    counts = held.labels()
    labels = sorted(counts)
    if len(labels) < 2:
        return MergeReport()
    vectors = yield from embed_texts(ports, [label.replace("_", " ") for label in labels])

    def compare(one: int, other: int) -> NameSimilarity:
        return compare_relationships(labels[one], labels[other], float(vectors[one] @ vectors[other]))

    links = [_Link(one, other, compare(one, other)) for one, other in combinations(range(len(labels)), 2)]
    groups, apart = _group_links([link for link in links if link.similarity.score >= floor], labels, compare)
    merges = [
        _propose_merge(held, "relationship", found, max(found, key=counts.__getitem__), score, reasons)
        for found, score, reasons in groups
    ]
    candidates = _find_candidates("relationship", held.scope, links, labels, merges, compare)
    return MergeReport(tuple(merges), candidates, tuple(apart))


def _find_pairs(names: Sequence[str], vectors: NDArray[np.float32]) -> set[tuple[int, int]]:
    """Return the pairs worth comparing: they share a word, letters or initials, or their vectors are near."""
    shared: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        keys = {
            ("letters", fold_name(name)),
            ("initials", get_initials(name)),
            ("initials", name.replace(".", "").upper()),
        }
        keys |= {("word", word) for word in name.casefold().split()}
        for key in keys:
            if key[1]:
                shared[key].append(index)
    pairs = {
        pair
        for indexes in shared.values()
        if len(indexes) <= _MAX_NAMES_PER_WORD
        for pair in combinations(sorted(set(indexes)), 2)
    }
    for start in range(0, len(names), _BLOCK_ROWS):
        near = vectors[start : start + _BLOCK_ROWS] @ vectors.T >= _MIN_COSINE
        pairs |= {(one + start, other) for one, other in np.argwhere(near).tolist() if one + start < other}
    return pairs


def _drop_ambiguous(links: Sequence[_Link], names: Sequence[str], floor: float) -> list[_Link]:
    """Drop links below the threshold, and those of a name within several others (Bob: Bob Smith, Bob Jones)."""
    strong = [link for link in links if link.similarity.score >= floor]
    wholes: dict[int, set[int]] = defaultdict(set)
    for link in links:
        shorter, longer = sorted((link.one, link.other), key=lambda index: len(names[index].split()))
        part, whole = (set(names[index].casefold().split()) for index in (shorter, longer))
        if part < whole and not link.similarity.is_distinct:
            wholes[shorter].add(longer)
    return [
        link
        for link in strong
        if not any(len(wholes[one]) > 1 and other in wholes[one] for one, other in _both_ways(link))
    ]


def _both_ways(link: _Link) -> Iterator[tuple[int, int]]:
    yield link.one, link.other
    yield link.other, link.one


def _group_links(
    links: Sequence[_Link], names: Sequence[str], compare: Callable[[int, int], NameSimilarity]
) -> tuple[list[tuple[list[str], float, list[str]]], list[tuple[tuple[str, ...], str]]]:
    """Join linked names into groups, best links first, unless two names of the joined groups are distinct."""
    group = {index: [index] for link in links for index in (link.one, link.other)}
    used: dict[int, list[_Link]] = defaultdict(list)
    apart: list[tuple[tuple[str, ...], str]] = []
    for link in sorted(links, key=lambda link: (-link.similarity.score, link.one, link.other)):
        ours, theirs = group[link.one], group[link.other]
        if ours is theirs:
            continue
        against = next(
            (
                ((names[one], names[other]), verdict.reason)
                for one in ours
                for other in theirs
                if (verdict := compare(one, other)).is_distinct
            ),
            None,
        )
        if against is not None:
            apart.append(against)
            continue
        used[id(ours)] += [*used.pop(id(theirs), []), link]
        ours += theirs
        for index in theirs:
            group[index] = ours
    distinct = {id(found): found for found in group.values()}
    groups = [
        (
            [names[index] for index in sorted(found)],
            min(link.similarity.score for link in used[key]),
            [link.similarity.reason for link in used[key]],
        )
        for key, found in distinct.items()
        if len(found) > 1
    ]
    return groups, apart


# --- changes -----------------------------------------------------------------------------------------------------


def _apply_merge(ports: Ports, merge: Merge, at: str) -> Flow[Merge]:
    for _ in range(_MAX_ATTEMPTS):
        plan = yield from _build_plan(ports, merge)
        space = (ports.embedder.name, ports.embedder.dims)
        done = yield from do(ports.store.merges.apply, plan, at=at, embedding_space=space)
        if done is not None:
            return done
    raise StoreError(f"the graph changed {_MAX_ATTEMPTS} times during the merge into {merge.name!r}; try again")


def _build_plan(ports: Ports, merge: Merge) -> Flow[MergePlan]:
    """Return the rows of a merge, and the vectors of the sentences that change."""
    held = yield from _load_graphs(ports, merge.scope)
    (graph,) = [one for one in held if one.scope == merge.scope] or [_ScopeGraph(merge.scope, (), ())]
    rows = {node.entity.name: node.row for node in graph.nodes}
    gone = set(merge.merged_names)
    if merge.kind == "entity" and not {merge.name, *gone} <= rows.keys():
        raise NotFoundError(merge.name)
    sentences = dict.fromkeys(
        triplet.sentence for one in graph.relations if (triplet := _rewrite_triplet(one.triplet, merge)) != one.triplet
    )
    vectors: Any = (yield from embed_texts(ports, list(sentences))) if sentences else ()
    plan = MergePlan(merge, vectors=dict(zip(sentences, vectors, strict=True)))
    if merge.kind == "relationship":
        return plan
    return dataclasses.replace(
        plan, kept_node=rows[merge.name], merged_nodes=tuple(rows[name] for name in merge.merged_names)
    )


def _rewrite_triplet(triplet: Triplet, merge: Merge) -> Triplet:
    if merge.kind == "relationship":
        gone = triplet.relationship in merge.merged_names
        return dataclasses.replace(triplet, relationship=merge.name) if gone else triplet
    source, destination = (
        merge.name if name in merge.merged_names else name for name in (triplet.source, triplet.destination)
    )
    return Triplet(source, triplet.relationship, destination)
