"""Traversal of a graph: A* along the terms of a question, k-hop neighborhoods and components.

All of it is pure, over an `Adjacency`. The score of a path is the product of the scores of its steps. The score of a
step is how well the relation (or the type of the node at its end) fits the term, times the quality of the relation
(recent, often stated), and is reduced where the path continues through a hub. The cost of a path is the negative
logarithm of its score, so the best path is the cheapest.

The remaining cost is estimated from below: first by the best fit of each term anywhere in the graph, which is cheap;
if that expands too many nodes, by the best way on from each node, which needs a pass over all relations.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mem0_core._system.records import dataclass
from mem0_core.domain.options import TraverseConfig
from mem0_core.domain.records import Relation
from mem0_core.graph.adjacency import Adjacency, IncidentEdges, microseconds
from mem0_core.language.relation_affinity import (
    are_opposed,
    is_possessive,
    kind_affinity,
    label_affinity,
    sex_of_label,
    sex_of_term,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DAY_MICROSECONDS = 86_400_000_000
_TYPE_FIT = 0.6  # weight of the type of a node, if the relation is not possessive
_POSSESSIVE_TYPE_FIT = 0.9  # and if it is: "has" says nothing of the thing, so its type does
_HUB_LOG_DEGREE = 8  # log2 of the degree at which half of `TraverseConfig.degree` is lost
_SPARE_FIT = 0.3  # fit of a step that no term asks for
_MAX_STEPS_PER_NODE = 1_000
_CHEAP_EXPANSIONS = 48  # nodes that are expanded with the cheap estimate
_MAX_EXPANSIONS = 5_000
_FEMALE, _MALE = 1, 2  # bits of the sexes that labels state
_MAX_LABELS = 64  # labels that are embedded to match one term


@dataclass(frozen=True, slots=True)
class Step:
    """A relation on a path; `forward` is True if the path follows its direction."""

    relation: Relation
    forward: bool


@dataclass(frozen=True, slots=True)
class Path:
    """Path from the start of a question to an answer: names of both ends, the relations, and a score in (0, 1]."""

    start: str
    end: str
    steps: tuple[Step, ...]
    score: float

    def __str__(self) -> str:
        """Return the path as text, such as ``maya -[sister]-> Anna <-[owned_by]- Rex``."""
        text = self.start
        for step in self.steps:
            triplet = step.relation.triplet
            if step.forward:
                text += f" -[{triplet.relationship}]-> {triplet.destination}"
            else:
                text += f" <-[{triplet.relationship}]- {triplet.source}"
        return text


class _Move(NamedTuple):
    """One step from a vertex: its cost (>= 0), its edge and the vertex at its end."""

    cost: float
    edge: int
    end: int


class Track(NamedTuple):
    """A path as vertices and the edges between them, with its cost."""

    cost: float
    vertices: tuple[int, ...]
    edges: tuple[int, ...]

    @property
    def score(self) -> float:
        return math.exp(-self.cost)


def _find_best_tracks(
    starts: Mapping[int, float],
    terms: int,
    moves: Callable[[int, int, int], Iterable[_Move]],
    estimate: Callable[[int, int, int], float],
    *,
    limit: int,
    spare_moves: Callable[[int], Iterable[_Move]],
    spares: int,
    max_expansions: int = _MAX_EXPANSIONS,
) -> tuple[list[Track], bool]:
    """Find by A* the cheapest path to each of the `limit` cheapest ends; no path visits a vertex twice.

    Args:
        starts: for each start vertex the cost to start there.
        terms: number of steps in a path that a term asks for.
        moves: returns the steps from a vertex that fit a term, by the term's index and the length of the track.
        estimate: returns a lower bound of the remaining cost, by term, vertex and spare steps left; infinite for none.
        spare_moves: returns the steps from a vertex that no term asks for, of which a path may have `spares`.
        max_expansions: number of vertices from which steps are taken.

    Returns:
        The tracks, and False if the search stopped at `max_expansions`.
    """
    order = count()
    heap: list[tuple[float, int, int, Track]] = []
    found: dict[int, Track] = {}

    def push(track: Track, term: int) -> None:
        total = track.cost + estimate(term, track.vertices[-1], spares - (len(track.edges) - term))
        if total < math.inf:  # among equal totals the longest and latest track is continued
            heapq.heappush(heap, (total, -term, -next(order), track))

    for vertex, cost in starts.items():
        push(Track(cost, (vertex,), ()), 0)
    for _ in range(max_expansions):
        if not heap or len(found) == limit:
            return list(found.values()), True
        _, negative_term, _, track = heapq.heappop(heap)
        vertex, term = track.vertices[-1], -negative_term
        if term == terms:
            found.setdefault(vertex, track)
            continue
        onward = [(term + 1, move) for move in moves(vertex, term, len(track.vertices))]
        if len(track.edges) - term < spares:
            onward += [(term, move) for move in spare_moves(vertex)]
        for next_term, (cost, edge, end) in onward:
            if end not in track.vertices:
                push(Track(track.cost + cost, (*track.vertices, end), (*track.edges, edge)), next_term)
    return list(found.values()), False


@dataclass(slots=True)
class _TermFit:
    """Affinity of one term to each label (forward and backward) and each type, and the vertices that it names.

    Attributes:
        excluded: vertices that are known not to be meant: a father for "mother".
        allowed: mask of the edges that the step may take.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    kinds: NDArray[np.float64]
    vertices: NDArray[np.int64]
    excluded: NDArray[np.bool_] | None = None
    allowed: NDArray[np.bool_] | None = None

    def min_cost(self, quality: NDArray[np.float64]) -> float:
        """Return the lowest cost of a step that fits the term, given the best quality of a step with each label."""
        fits = np.maximum(self.forward, self.backward)
        by_label = float((fits * quality).max(initial=0.0))
        by_type = max(float(self.kinds.max(initial=0.0)), 1.0 if len(self.vertices) else 0.0)
        best = max(by_label, by_type * _POSSESSIVE_TYPE_FIT * float(quality.max(initial=0.0)))
        return -math.log(best) if best else math.inf


class Walk:
    """Search for paths on one state of the graph.

    Args:
        terms: terms to follow, nearest first; without terms, one step of any kind.
        now: microseconds since 1970, from which the age of relations counts if there is no `as_of`.
        as_of: ISO 8601 in UTC; follow the relations of that time, with their age then.
        families: for each term the names of the families that it may mean, best first.
        masks: for each term the edges that its step may take; by default those that hold at `as_of`.
    """

    inline = True  # see `flow`

    def __init__(
        self,
        adjacency: Adjacency,
        terms: Sequence[str],
        *,
        now: int,
        as_of: str | None = None,
        weights: TraverseConfig | None = None,
        families: Sequence[tuple[str, ...]] = (),
        masks: Sequence[NDArray[np.bool_]] = (),
    ) -> None:
        self.adjacency = adjacency
        self.terms = tuple(terms)
        self._families = tuple(families[: len(self.terms)]) or ((),) * len(self.terms)
        self._weights = weights or TraverseConfig()
        self._now = now if as_of is None else microseconds(as_of)
        self._valid = np.logical_or.reduce(masks) if masks else adjacency.valid_edges(as_of)
        self._sexes: NDArray[np.int8] | None = None
        self._fits = [*map(self._fit_term, self.terms, self._families)] or [self._fit_anything()]
        if len(masks) > 1:
            for fit, mask in zip(self._fits, masks, strict=False):
                fit.allowed = mask
        labels = adjacency.labels
        self._type_fits = np.array([_POSSESSIVE_TYPE_FIT if is_possessive(label) else _TYPE_FIT for label in labels])
        self._limit = 1
        self._moves_cache: dict[tuple[int, int], list[_Move]] = {}  # by vertex and term
        self._dead_ends: dict[int, dict[int, None]] = {}  # for each term the vertices without a fitting step, in order

    def search(self, starts: Mapping[int, float], *, limit: int, depth: int | None = None) -> list[Track]:
        """Return the best path to each of the best `limit` ends.

        Args:
            starts: a score in (0, 1] for each start vertex.
            depth: maximum number of steps; a depth above the number of terms allows steps between them.
        """
        self._dead_ends.clear()
        if not any(self.adjacency.has_edge(vertex, self._valid) for vertex in starts):
            return []  # as in most graphs, for a time that a question names
        self._limit = limit
        spares = 0 if depth is None else depth - len(self._fits)
        min_costs = self._compute_min_costs()
        if spares < 0:
            return []
        if math.inf in min_costs:  # a term fits nothing: find the labels that there are in its place
            self._explore(starts, min_costs.index(math.inf))
            return []
        costs = {vertex: -math.log(score) for vertex, score in starts.items()}
        rest = [sum(min_costs[term:]) for term in range(len(min_costs) + 1)]
        search = partial(
            _find_best_tracks,
            costs,
            len(min_costs),
            self._find_moves,
            limit=limit,
            spare_moves=self._find_spare_moves,
            spares=spares,
        )
        found, is_complete = search(lambda term, vertex, left: rest[term], max_expansions=_CHEAP_EXPANSIONS)
        if not is_complete:
            best_scores = self._compute_best_scores(spares)

            def estimate(term: int, vertex: int, left: int) -> float:
                score = float(best_scores[term, left][vertex])
                return -math.log(score) if score else math.inf

            found, _ = search(estimate)
        return found

    def find_unmatched_labels(self) -> tuple[int, list[str]]:
        """Return the index of the term at which the last search failed, and the labels there, frequent ones first."""
        if not self.terms:
            return 0, []
        term = max(self._dead_ends, default=0)
        counts: dict[int, int] = {}
        for vertex in self._dead_ends.get(term, ()):
            for label in self.adjacency.label[self.adjacency.incident_edges(vertex, self._valid).edges].tolist():
                counts[label] = counts.get(label, 0) + 1
        labels = [self.adjacency.labels[label] for label in sorted(counts, key=lambda label: -counts[label])]
        return term, [label for label in labels if not self._is_opposed(term, label)][:_MAX_LABELS]

    def _is_opposed(self, term: int, label: str) -> bool:
        return are_opposed(self.terms[term], label, self._families[term])

    def learn(self, term: int, cosines: Mapping[str, float]) -> bool:
        """Let labels fit a term by the cosine of their vectors, in both directions; returns True if any is near."""
        fit, numbers = self._fits[term], {label: number for number, label in enumerate(self.adjacency.labels)}
        self._moves_cache.clear()
        near = {label: cosine for label, cosine in cosines.items() if cosine >= self._weights.similar}
        for label, cosine in near.items():
            for scores in (fit.forward, fit.backward):
                scores[numbers[label]] = max(scores[numbers[label]], min(0.9, cosine))
        return bool(near)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _find_moves(self, vertex: int, term: int, track_length: int) -> list[_Move]:
        """Return the steps from a vertex that fit a term, the best first."""
        is_last = term == len(self._fits) - 1
        moves = self._moves_cache.get((vertex, term))
        if moves is None:
            incident = self.adjacency.incident_edges(vertex, self._valid)
            moves = self._build_moves(incident, self._fit_steps(term, incident), is_last=is_last)
            self._moves_cache[vertex, term] = moves
        if not moves:
            self._dead_ends.setdefault(term, {})[vertex] = None
        return moves[: self._limit + track_length] if is_last else moves[:_MAX_STEPS_PER_NODE]

    def _find_spare_moves(self, vertex: int) -> list[_Move]:
        """Return all steps from a vertex, the best first."""
        incident = self.adjacency.incident_edges(vertex, self._valid)
        fits = np.full(len(incident.edges), _SPARE_FIT)
        return self._build_moves(incident, fits, is_last=False)[:_MAX_STEPS_PER_NODE]

    def _fit_steps(self, term: int, steps: IncidentEdges) -> NDArray[np.float64]:
        """Return how well each of some steps fits a term."""
        fit, labels = self._fits[term], self.adjacency.label[steps.edges]
        scores = np.where(steps.forward, fit.forward[labels], fit.backward[labels])
        if fit.kinds.any() or len(fit.vertices):
            kinds = fit.kinds[self.adjacency.kind[steps.ends]]
            if len(fit.vertices):
                kinds = np.maximum(kinds, np.isin(steps.ends, fit.vertices))
            scores = np.maximum(scores, kinds * self._type_fits[labels])
        if fit.excluded is not None:
            scores = np.where(fit.excluded[steps.ends], 0.0, scores)
        if fit.allowed is not None:
            scores = np.where(fit.allowed[steps.edges], scores, 0.0)
        return scores

    def _build_moves(self, steps: IncidentEdges, fits: NDArray[np.float64], *, is_last: bool) -> list[_Move]:
        """Return the best step to each end, the best first."""
        chosen = np.flatnonzero(fits)
        if not len(chosen):
            return []
        edges, ends = steps.edges[chosen], steps.ends[chosen]
        scores = fits[chosen] * (1 - self._compute_losses(self.adjacency.since[edges], self.adjacency.weight[edges]))
        if not is_last:
            scores *= self._compute_hub_factors(ends)
        best = np.argsort(-scores, kind="stable")
        _, first = np.unique(ends[best], return_index=True)
        best = best[np.sort(first)]
        costs = -np.log(scores[best])
        return [_Move(*step) for step in zip(costs.tolist(), edges[best].tolist(), ends[best].tolist(), strict=True)]

    def _compute_losses(self, since: NDArray[np.int64], weight: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the shares that steps lose by their age and by how rarely they were stated."""
        days = np.maximum(0.0, (self._now - since.astype(np.float64)) / _DAY_MICROSECONDS)
        losses: NDArray[np.float64] = self._weights.recency * (1 - 0.5 ** (days / self._weights.half_life))
        return losses + self._weights.evidence / weight

    def _compute_hub_factors(self, vertices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share that a path keeps if it continues through each of some vertices."""
        log_degrees = np.log2(np.maximum(1, self.adjacency.degrees(vertices)))
        factors: NDArray[np.float64] = 1 - self._weights.degree * log_degrees / (log_degrees + _HUB_LOG_DEGREE)
        return factors

    # --- terms -------------------------------------------------------------------------------------------------------

    def _fit_term(self, term: str, families: tuple[str, ...]) -> _TermFit:
        adjacency = self.adjacency
        fits = np.array([label_affinity(term, label, families) for label in adjacency.labels], np.float64).reshape(
            -1, 2
        )
        kinds = np.array([kind_affinity(term, kind) for kind in adjacency.kinds], np.float64)
        vertices = [vertex for name in {term, term.removesuffix("s")} for vertex in adjacency.find_vertices(name)]
        excluded = self._find_excluded_vertices(term)
        return _TermFit(fits[:, 0].copy(), fits[:, 1].copy(), kinds, np.array(vertices, np.int64), excluded)

    def _find_excluded_vertices(self, term: str) -> NDArray[np.bool_] | None:
        """Return the vertices that are known to be of the other sex than a term means; None if it means either."""
        sex = sex_of_term(term)
        if not sex:
            return None
        if self._sexes is None:
            self._sexes = self._find_sexes()
        excluded: NDArray[np.bool_] = self._sexes == (_MALE if sex == "female" else _FEMALE)
        return excluded

    def _find_sexes(self) -> NDArray[np.int8]:
        """Return the sexes that labels state of each vertex: 0 for none, both for labels that contradict each other."""
        adjacency = self.adjacency
        sexes = np.zeros(adjacency.vertices, np.int8)
        codes = {"": 0, "female": _FEMALE, "male": _MALE}
        stated = [sex_of_label(label) for label in adjacency.labels]
        for ends, index in ((adjacency.source, 0), (adjacency.destination, 1)):
            of_label = np.array([codes[both[index]] for both in stated], np.int8)
            edges = np.flatnonzero(~adjacency.gone & (of_label[adjacency.label] > 0)) if len(of_label) else ()
            if len(edges):
                np.bitwise_or.at(sexes, ends[edges], of_label[adjacency.label[edges]])
        return sexes

    def _fit_anything(self) -> _TermFit:
        labels = np.ones(len(self.adjacency.labels))
        return _TermFit(labels, labels.copy(), np.zeros(len(self.adjacency.kinds)), np.empty(0, np.int64))

    def _compute_min_costs(self) -> list[float]:
        """Return the lowest cost of a step for each term."""
        quality = 1 - self._compute_losses(self.adjacency.latest, self.adjacency.heaviest)
        return [fit.min_cost(quality) for fit in self._fits]

    def _compute_best_scores(self, spares: int) -> dict[tuple[int, int], NDArray[np.float64]]:
        """Return the best score of a way on from each vertex (0 for none), by term and number of spare steps left."""
        adjacency, terms = self.adjacency, len(self._fits)
        edges = np.flatnonzero(self._valid)
        steps = IncidentEdges(
            np.concatenate((edges, edges)),
            np.concatenate((adjacency.destination[edges], adjacency.source[edges])),
            np.arange(2 * len(edges)) < len(edges),
        )
        starts = np.concatenate((adjacency.source[edges], adjacency.destination[edges]))
        spare_fits = np.full(len(starts), _SPARE_FIT)
        best: dict[tuple[int, int], NDArray[np.float64]] = {}
        for left, term in product(range(spares + 1), range(terms, -1, -1)):
            scores = best[term, left] = np.full(adjacency.vertices, 1.0 if term == terms else 0.0)
            if term == terms:
                continue
            choices = [(self._fit_steps(term, steps), term + 1, left)]
            if left:
                choices.append((spare_fits, term, left - 1))
            for fits, next_term, next_left in choices:
                chosen = np.flatnonzero(fits)
                ends, taken = steps.ends[chosen], steps.edges[chosen]
                through = fits[chosen] * (1 - self._compute_losses(adjacency.since[taken], adjacency.weight[taken]))
                onward = best[next_term, next_left][ends]
                through *= onward * self._compute_hub_factors(ends) if next_term < terms else onward
                np.maximum.at(scores, starts[chosen], through)
        return best

    def _explore(self, starts: Mapping[int, float], reach: int) -> None:
        """Take all steps that fit the first `reach` terms, and note the vertices reached as dead ends."""
        frontier = dict.fromkeys(starts)
        for term in range(reach):
            moves = (move for vertex in list(frontier)[:_MAX_LABELS] for move in self._find_moves(vertex, term, 1))
            frontier = {move.end: None for move in moves}
        self._dead_ends[reach] = frontier


def k_hop(
    adjacency: Adjacency,
    starts: Iterable[int],
    k: int = 2,
    *,
    limit: int = 200,
    as_of: str | None = None,
    ended: bool = False,
) -> list[tuple[int, int]]:
    """Return the edges within `k` steps of some vertices, each with its number of steps (1 for those at a start).

    Args:
        limit: maximum number of edges; the nearest are kept, of those the newest.
        ended: include ended relations.
    """
    mask = ~adjacency.gone if ended else adjacency.valid_edges(as_of)
    seen = set(starts)
    frontier, found = sorted(seen), dict[int, int]()
    for hop in range(1, k + 1):
        incident = [adjacency.incident_edges(vertex, mask) for vertex in frontier]
        edges = np.unique(np.concatenate([one.edges for one in incident])) if incident else np.empty(0, np.int64)
        new_edges = [edge for edge in edges[::-1].tolist() if edge not in found]
        found |= dict.fromkeys(new_edges[: limit - len(found)], hop)
        if len(found) >= limit or not new_edges:
            break
        ends = np.unique(np.concatenate([one.ends for one in incident])).tolist()
        frontier = [vertex for vertex in ends if vertex not in seen]
        seen.update(frontier)
    return list(found.items())


def components(adjacency: Adjacency, *, as_of: str | None = None) -> NDArray[np.int64]:
    """Return for each vertex the lowest vertex in its component, itself if it has no edge; (vertices,)."""
    valid = adjacency.valid_edges(as_of)
    return connect(adjacency.vertices, adjacency.source[valid], adjacency.destination[valid])


def connect(count: int, sources: NDArray[np.int64], destinations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of `count` nodes the lowest node in its component, given the ends of the edges; (count,)."""
    lowest = np.arange(count)
    while True:
        lower = lowest.copy()
        np.minimum.at(lower, sources, lowest[destinations])
        np.minimum.at(lower, destinations, lowest[sources])
        lower = lower[lower]  # follow the previous round's links, which halves the distance each time
        if np.array_equal(lower, lowest):
            return lowest
        lowest = lower
