"""Traversal (seed 003, part 6): A* along the terms of a question, the surroundings of some nodes, and components.

All of it is pure, over an `Adjacency`. A path is as good as the product of its steps, each of which is how well the
relation (or the type of the node it leads to) fits the term, times its quality (newer, said more often), and less where
it goes on through a node that everything is connected to. Its cost is the negative logarithm, so that the best path is
the cheapest. What is still to pay is estimated from below: at first by the best fit of each term anywhere in the graph,
which costs nothing; where that leads astray, by the best way on from each node, which takes a look at every relation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mem0_core.domain.records import Relation
from mem0_core.errors import ConfigError
from mem0_core.graph.adjacency import Adjacency, IncidentEdges, microseconds
from mem0_core.language.relation_affinity import affinity, contrasts, kind_affinity, possessive

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Move", "Path", "Step", "Track", "Walk", "Weights", "best_tracks", "components", "connected", "k_hop"]

_DAY = 86_400_000_000  # microseconds
_OTHERWISE = 0.6  # what the type of a node counts where the relation does not say that one has the other
_HAS = 0.9  # and where it does
_CROWD = 8  # log2 of the degree at which half of the share of a hub is lost
_SPARE = 0.3  # what a step counts that no term asks for
_WIDEST = 1_000  # steps taken from one node, the best first
_ASTRAY = 48  # nodes that a search takes steps from before it looks at every relation
_LONGEST = 5_000  # and in all
_MOST_LABELS = 64  # that are embedded to understand one term


@dataclass(frozen=True, slots=True)
class Weights:
    """What makes one path better than another whose labels fit as well: shares of its score that it can lose.

    Attributes:
        recency: lost by a relation of long ago; half of it after `half_life` days.
        evidence: lost by a relation said once; half of it by one said twice.
        degree: lost by going on from a node that everything is related to; half of it where it has 256 relations.
        similar: the cosine from which a label is taken for a term by their vectors.
    """

    recency: float = 0.1
    evidence: float = 0.1
    degree: float = 0.1
    half_life: float = 365.0
    similar: float = 0.55

    def __post_init__(self) -> None:
        shares = (self.recency, self.evidence, self.degree)
        if min(shares) < 0 or self.recency + self.evidence >= 1 or self.degree >= 1 or self.half_life <= 0:
            raise ConfigError(f"weights: shares must lie in [0, 1), recency and evidence together too: {self}")


@dataclass(frozen=True, slots=True)
class Step:
    """A relation on a path, and whether it is walked along its arrow."""

    relation: Relation
    forward: bool


@dataclass(frozen=True, slots=True)
class Path:
    """What a question led to, and how: names of both ends, the relations between, and a score in (0, 1]."""

    start: str
    end: str
    steps: tuple[Step, ...]
    score: float

    def __str__(self) -> str:
        """``maya -[sister]-> Anna <-[owned_by]- Rex``"""
        text = self.start
        for step in self.steps:
            said = step.relation.triplet
            text += (
                f" -[{said.relationship}]-> {said.destination}"
                if step.forward
                else (f" <-[{said.relationship}]- {said.source}")
            )
        return text


class Move(NamedTuple):
    """One step from a vertex: what it costs (>= 0), along which edge, to which vertex."""

    cost: float
    edge: int
    end: int


class Track(NamedTuple):
    """A path that was found: what it costs, its vertices, and the edges between them."""

    cost: float
    vertices: tuple[int, ...]
    edges: tuple[int, ...]

    @property
    def score(self) -> float:
        return math.exp(-self.cost)


def best_tracks(
    starts: Mapping[int, float],
    terms: int,
    moves: Callable[[int, int, int], Iterable[Move]],
    hope: Callable[[int, int, int], float],
    *,
    limit: int,
    spare: Callable[[int], Iterable[Move]] | None = None,
    spares: int = 0,
    most: int = _LONGEST,
) -> tuple[list[Track], bool]:
    """A*: the cheapest path to each of the `limit` ends that are reached most cheaply, and whether it came to an end.

    Args:
        starts: vertex -> what it costs to begin there.
        terms: how many steps a path has that a term asks for.
        moves: the steps from a vertex that fit a term, by the term's place, and how many vertices lie behind.
        hope: no more than what it costs to go on, by place, vertex and the spare steps left; infinite for no way.
        spare: the steps from a vertex that no term asks for, of which a path may have `spares`.
        most: from how many vertices steps are taken.

    A path visits no vertex twice.
    """
    order = count()
    heap: list[tuple[float, int, int, Track]] = []
    found: dict[int, Track] = {}

    def offer(track: Track, place: int) -> None:
        total = track.cost + hope(place, track.vertices[-1], spares - (len(track.edges) - place))
        if total < math.inf:  # of those that promise the same, the one that has come furthest, and came last, goes on
            heapq.heappush(heap, (total, -place, -next(order), track))

    for vertex, cost in starts.items():
        offer(Track(cost, (vertex,), ()), 0)
    for _ in range(most):
        if not heap or len(found) == limit:
            return list(found.values()), True
        _, reached, _, track = heapq.heappop(heap)
        vertex, place = track.vertices[-1], -reached
        if place == terms:
            found.setdefault(vertex, track)
            continue
        onward = [(place + 1, move) for move in moves(vertex, place, len(track.vertices))]
        if spare is not None and len(track.edges) - place < spares:
            onward += [(place, move) for move in spare(vertex)]
        for next_place, (cost, edge, end) in onward:
            if end not in track.vertices:
                offer(Track(track.cost + cost, (*track.vertices, end), (*track.edges, edge)), next_place)
    return list(found.values()), False


@dataclass(slots=True)
class _Term:
    """How well each label (along its arrow and against it), each type and each name fits one term; 0 for not at all."""

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    kinds: NDArray[np.float64]
    named: NDArray[np.int64]

    def cost(self, quality: NDArray[np.float64]) -> float:
        """The least that a step can cost that fits the term, by the best quality of a step along each label."""
        fits = np.maximum(self.forward, self.backward)
        by_label = float((fits * quality).max(initial=0.0))
        kind = max(float(self.kinds.max(initial=0.0)), 1.0 if len(self.named) else 0.0)
        best = max(by_label, kind * _HAS * float(quality.max(initial=0.0)))
        return -math.log(best) if best else math.inf


class Walk:
    """A search: a state of the graph, the terms to follow, and the time it is about.

    Args:
        terms: nearest first; where there is none, one step of any kind is taken.
        as_of: ISO 8601 in UTC; what held then, and how old it was.
        now: microseconds since 1970, for how old things are where there is no `as_of`.
    """

    inline = True  # see `flow`

    def __init__(
        self,
        adjacency: Adjacency,
        terms: Sequence[str],
        *,
        now: int,
        as_of: str | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.adjacency = adjacency
        self.terms = tuple(terms)
        self._weights = weights or Weights()
        self._now = now if as_of is None else microseconds(as_of)
        self._holding = adjacency.holding(as_of)
        self._terms = [self._fits(term) for term in terms] or [self._anything()]
        self._has = np.array([_HAS if possessive(label) else _OTHERWISE for label in adjacency.labels])
        self._wanted = 1
        self._known: dict[tuple[int, int], list[Move]] = {}  # steps from a vertex that fit a term
        self._stuck: dict[int, dict[int, None]] = {}

    def search(self, starts: Mapping[int, float], *, limit: int, depth: int | None = None) -> list[Track]:
        """The best path to each of the best `limit` ends; `starts` has a score in (0, 1] for each vertex.

        Args:
            depth: how many steps a path may have at most; more than there are terms allows steps between them.
        """
        self._stuck.clear()
        self._wanted = limit
        spares = 0 if depth is None else depth - len(self._terms)
        least = self._least_costs()
        if spares < 0:
            return []
        if math.inf in least:  # a term fits nothing: go as far as those before it lead, to see what there is
            self._explore(starts, least.index(math.inf))
            return []
        costs = {vertex: -math.log(score) for vertex, score in starts.items()}
        rest = [sum(least[place:]) for place in range(len(least) + 1)]
        options: Any = {"limit": limit, "spare": self._spare, "spares": spares}
        found, ended = best_tracks(
            costs, len(least), self._moves, lambda place, vertex, left: rest[place], most=_ASTRAY, **options
        )
        if not ended:
            ahead = self._ahead(spares)

            def hope(place: int, vertex: int, left: int) -> float:
                score = float(ahead[place, left][vertex])
                return -math.log(score) if score else math.inf

            found, _ = best_tracks(costs, len(least), self._moves, hope, **options)
        return found

    def puzzling(self) -> tuple[int, list[str]]:
        """Place of the term that the last search got stuck at, and the labels it found there, the frequent first."""
        place = max(self._stuck, default=0)
        found: dict[int, int] = {}
        for vertex in self._stuck.get(place, ()):
            for label in self.adjacency.label[self.adjacency.around(vertex, self._holding).edges].tolist():
                found[label] = found.get(label, 0) + 1
        labels = [self.adjacency.labels[label] for label in sorted(found, key=lambda label: -found[label])]
        if not self.terms:
            return 0, []
        return place, [label for label in labels if not contrasts(self.terms[place], label)][:_MOST_LABELS]

    def learn(self, place: int, cosines: Mapping[str, float]) -> bool:
        """Let labels stand for a term by the cosine of their vectors, in both directions; whether any was near."""
        term, numbers = self._terms[place], {label: number for number, label in enumerate(self.adjacency.labels)}
        self._known.clear()
        near = {label: cosine for label, cosine in cosines.items() if cosine >= self._weights.similar}
        for label, cosine in near.items():
            for fits in (term.forward, term.backward):
                fits[numbers[label]] = max(fits[numbers[label]], min(0.9, cosine))
        return bool(near)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _moves(self, vertex: int, place: int, behind: int) -> list[Move]:
        last = place == len(self._terms) - 1
        steps = self._known.get((vertex, place))
        if steps is None:
            around = self.adjacency.around(vertex, self._holding)
            steps = self._known[vertex, place] = self._steps(around, self._fit(place, around), goes_on=not last)
        if not steps:
            self._stuck.setdefault(place, {})[vertex] = None
        return steps[: self._wanted + behind] if last else steps[:_WIDEST]

    def _fit(self, place: int, around: IncidentEdges) -> NDArray[np.float64]:
        """How well each of some steps fits a term."""
        term, labels = self._terms[place], self.adjacency.label[around.edges]
        fit = np.where(around.forward, term.forward[labels], term.backward[labels])
        if term.kinds.any() or len(term.named):
            kinds = term.kinds[self.adjacency.kind[around.ends]]
            if len(term.named):
                kinds = np.maximum(kinds, np.isin(around.ends, term.named))
            fit = np.maximum(fit, kinds * self._has[labels])
        return fit

    def _spare(self, vertex: int) -> list[Move]:
        around = self.adjacency.around(vertex, self._holding)
        return self._steps(around, np.full(len(around.edges), _SPARE), goes_on=True)[:_WIDEST]

    def _steps(self, around: IncidentEdges, fit: NDArray[np.float64], *, goes_on: bool) -> list[Move]:
        """The best step to each end, the best first."""
        chosen = np.flatnonzero(fit)
        if not len(chosen):
            return []
        edges, ends = around.edges[chosen], around.ends[chosen]
        scores = fit[chosen] * (1 - self._lost(self.adjacency.since[edges], self.adjacency.weight[edges]))
        if goes_on:
            scores *= self._passing(ends)
        best = np.argsort(-scores, kind="stable")
        _, first = np.unique(ends[best], return_index=True)
        best = best[np.sort(first)]
        costs = -np.log(scores[best])
        return [Move(*step) for step in zip(costs.tolist(), edges[best].tolist(), ends[best].tolist(), strict=True)]

    def _lost(self, since: NDArray[np.int64], weight: NDArray[np.int64]) -> NDArray[np.float64]:
        """What steps lose by their age and for how seldom they were said."""
        days = np.maximum(0.0, (self._now - since.astype(np.float64)) / _DAY)
        lost: NDArray[np.float64] = self._weights.recency * (1 - 0.5 ** (days / self._weights.half_life))
        return lost + self._weights.evidence / weight

    def _passing(self, vertices: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is left of a path that goes on through each of some vertices: less, the more are connected to it."""
        crowd = np.log2(np.maximum(1, self.adjacency.degrees(vertices)))
        left: NDArray[np.float64] = 1 - self._weights.degree * crowd / (crowd + _CROWD)
        return left

    # --- terms -------------------------------------------------------------------------------------------------------

    def _fits(self, term: str) -> _Term:
        held = self.adjacency
        fits = np.array([affinity(term, label) for label in held.labels], np.float64).reshape(-1, 2)
        kinds = np.array([kind_affinity(term, kind) for kind in held.kinds], np.float64)
        named = [vertex for name in {term, term.removesuffix("s")} for vertex in held.named(name)]
        return _Term(fits[:, 0].copy(), fits[:, 1].copy(), kinds, np.array(named, np.int64))

    def _anything(self) -> _Term:
        labels = np.ones(len(self.adjacency.labels))
        return _Term(labels, labels.copy(), np.zeros(len(self.adjacency.kinds)), np.empty(0, np.int64))

    def _least_costs(self) -> list[float]:
        """What a step that fits each term costs at least."""
        quality = 1 - self._lost(self.adjacency.latest, self.adjacency.heaviest)
        return [term.cost(quality) for term in self._terms]

    def _ahead(self, spares: int) -> dict[tuple[int, int], NDArray[np.float64]]:
        """For each place, and number of spare steps left, the best score of a way on from each vertex; 0 for none."""
        held, terms = self.adjacency, len(self._terms)
        edges = np.flatnonzero(self._holding)
        around = IncidentEdges(
            np.concatenate((edges, edges)),
            np.concatenate((held.destination[edges], held.source[edges])),
            np.arange(2 * len(edges)) < len(edges),
        )
        here = np.concatenate((held.source[edges], held.destination[edges]))
        spare = np.full(len(here), _SPARE) if spares else here
        best: dict[tuple[int, int], NDArray[np.float64]] = {}
        for left, place in product(range(spares + 1), range(terms, -1, -1)):
            found = best[place, left] = np.full(held.vertices, 1.0 if place == terms else 0.0)
            if place == terms:
                continue
            for fit, after, spent in ((self._fit(place, around), place + 1, 0), (spare, place, 1))[: 1 + min(1, left)]:
                chosen = np.flatnonzero(fit)
                ends, steps = around.ends[chosen], around.edges[chosen]
                scores = fit[chosen] * (1 - self._lost(held.since[steps], held.weight[steps]))
                scores *= best[after, left - spent][ends] * (self._passing(ends) if after < terms else 1.0)
                np.maximum.at(found, here[chosen], scores)
        return best

    def _explore(self, starts: Mapping[int, float], reach: int) -> None:
        frontier = dict.fromkeys(starts)
        for place in range(reach):
            frontier = {
                move.end: None for vertex in list(frontier)[:_MOST_LABELS] for move in self._moves(vertex, place, 1)
            }
        self._stuck[reach] = frontier


def k_hop(
    adjacency: Adjacency,
    seeds: Iterable[int],
    k: int = 2,
    *,
    limit: int = 200,
    as_of: str | None = None,
    ended: bool = False,
) -> list[tuple[int, int]]:
    """The edges within `k` steps of some vertices, each with its number of steps (1 for those at a seed).

    The nearest first, of those the newest; at most `limit`. With `ended` those that hold no longer too.
    """
    holding = ~adjacency.gone if ended else adjacency.holding(as_of)
    seen = set(seeds)
    frontier, found = sorted(seen), dict[int, int]()
    for hop in range(1, k + 1):
        near = [adjacency.around(vertex, holding) for vertex in frontier]
        edges = np.unique(np.concatenate([around.edges for around in near])) if near else np.empty(0, np.int64)
        fresh = [edge for edge in edges[::-1].tolist() if edge not in found]
        found |= dict.fromkeys(fresh[: limit - len(found)], hop)
        if len(found) >= limit or not fresh:
            break
        ends = np.unique(np.concatenate([around.ends for around in near])).tolist()
        frontier = [vertex for vertex in ends if vertex not in seen]
        seen.update(frontier)
    return list(found.items())


def components(adjacency: Adjacency, *, as_of: str | None = None) -> NDArray[np.int64]:
    """For each vertex the least vertex it is connected with, itself where it has no edge; (vertices,)."""
    holding = adjacency.holding(as_of)
    return connected(adjacency.vertices, adjacency.source[holding], adjacency.destination[holding])


def connected(count: int, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of `count` things the least it is connected with, where each of `one` is joined to that of `other`."""
    least = np.arange(count)
    while True:
        lower = least.copy()
        np.minimum.at(lower, one, least[other])
        np.minimum.at(lower, other, least[one])
        lower = lower[lower]  # follow what was followed: halves the way each time
        if np.array_equal(lower, least):
            return least
        least = lower
