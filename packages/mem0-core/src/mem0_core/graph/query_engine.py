"""Execution of graph queries: a plan that starts at the most selective part of the patterns, and its rows.

The conditions that a pattern puts on one node or relation alone (names, types, labels, SIMILAR) become a set of
candidates for it. The plan starts at the smallest set and expands from there; each condition is tested as soon as its
variables are bound. As in Cypher, a relation occurs once in a row of a MATCH; two MATCH are joined by their nodes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mem0_core._system.records import dataclass
from mem0_core.errors import QueryError
from mem0_core.graph._query_check import CheckedQuery, is_sorted_by
from mem0_core.graph._query_plan import Link, PathNames, Slot, Stage, plan_stages, split_conjunction
from mem0_core.graph._query_tree import (
    Aggregate,
    Compare,
    Constant,
    NodePattern,
    Pattern,
    Property,
    RelationPattern,
    Similar,
    Variable,
)
from mem0_core.graph._query_values import (
    Binding,
    Bound,
    Edge,
    Evaluator,
    Group,
    Near,
    Route,
    Vertex,
    canonical_property,
    fold_label,
)
from mem0_core.graph.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

__all__ = ["LIMIT", "Bounds", "Edge", "Near", "Plan", "Route", "Vertex"]

LIMIT = 1_000
"""Rows of a query without a LIMIT."""
_STEPS_PER_CLOCK_CHECK = 512


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a query: matches of its patterns, steps on the way to them, and seconds."""

    matches: int = 100_000
    steps: int = 2_000_000
    seconds: float = 5.0


class Plan:
    """Plan of a query on one state of the graph.

    Args:
        near: the sets for each of `CheckedQuery.similar_keys`.
        as_of: ISO 8601 in UTC; query the relations of that time.
        bounds: limits beyond which the query is aborted.
    """

    inline = True  # see `flow`

    def __init__(
        self,
        query: CheckedQuery,
        adjacency: Adjacency,
        near: Near,
        *,
        as_of: str | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._query, self._tree, self._items = query, query.tree, query.items
        self._limit = LIMIT if query.tree.limit is None else query.tree.limit
        self._bounds = bounds or Bounds()
        self._evaluator = Evaluator(query, adjacency, near, as_of)
        self._adjacency = adjacency
        finder = _SlotFinder(query, adjacency, near, as_of, self._evaluator)
        self._slots, links = finder.find()
        self._evaluator.paths = finder.paths
        self._match_names = [
            {link.slot.name for link in links if link.match == one} for one in range(len(query.tree.matches))
        ]
        self._stages = plan_stages(self._slots, links, query.tree.where, finder.paths)
        self._step_count = 0
        self._deadline = 0.0

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [
            item.value.name if isinstance(item.value, Variable) and item.alias is None else item.column
            for item in self._items
        ]

    def lines(self) -> list[str]:
        """Return the plan as EXPLAIN shows it, a line for each stage."""
        lines = []
        for number, stage in enumerate(self._stages, start=1):
            tests = f"; where {' AND '.join(map(str, stage.conditions))}" if stage.conditions else ""
            lines.append(f"{number}. {stage.label}{tests}")
        ends = [f"distinct {', '.join(map(str, self._items))}"] if self._tree.distinct else []
        ends += [f"order by {', '.join(map(str, self._tree.order))}"] if self._tree.order else []
        ends += [f"at most {self._limit} rows" + (f" after {self._tree.skip}" if self._tree.skip else "")]
        return [*lines, f"{len(lines) + 1}. {'; '.join(ends)}"]

    def rows(self) -> tuple[list[tuple[Any, ...]], bool]:
        """Run the query.

        Returns:
            The rows, of `Vertex`, `Edge` and plain values; True if a query without a LIMIT has more than `LIMIT`.

        Raises:
            QueryError: the query exceeds its bounds; the message says which, and how to make it cheaper.
        """
        self._step_count, self._deadline = 0, time.monotonic() + self._bounds.seconds
        has_groups = any(isinstance(item.value, Aggregate) for item in self._items)
        if self._limit == 0 and not has_groups:
            return [], False
        rows = self._group_rows() if has_groups else self._collect_rows()
        for index in reversed(range(len(self._tree.order))):
            rows.sort(key=lambda pair: pair[1][index], reverse=self._tree.order[index].descending)
        end = self._tree.skip + self._limit
        return [row for row, _ in rows[self._tree.skip : end]], self._tree.limit is None and len(rows) > end

    def _collect_rows(self) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Return a row for each match, with its sort key; of an unordered query no more than are shown."""
        wanted = self._tree.skip + self._limit + (self._tree.limit is None)
        rows: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        seen: set[tuple[Any, ...]] = set()
        for binding in self._iter_matches():
            row = tuple(self._evaluator.value(item.value, binding) for item in self._items)
            if self._tree.distinct:
                if row in seen:
                    continue
                seen.add(row)
            rows.append((row, self._sort_key(row, binding)))
            if not self._tree.order and len(rows) == wanted:
                break
        return rows

    def _group_rows(self) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Return a row for each group of matches that share the columns without aggregates, with its sort key."""
        plain = [item for item in self._items if not isinstance(item.value, Aggregate)]
        groups: dict[tuple[Any, ...], Group] = {} if plain else {(): Group()}
        for binding in self._iter_matches():
            key = tuple(self._evaluator.value(item.value, binding) for item in plain)
            groups.setdefault(key, Group()).add(self._evaluator, self._items, binding)
        rows = [group.row(key, self._items, self._evaluator) for key, group in groups.items()]
        return [(row, self._sort_key(row, {})) for row in (dict.fromkeys(rows) if self._tree.distinct else rows)]

    def _sort_key(self, row: tuple[Any, ...], binding: Binding) -> tuple[Any, ...]:
        keys = []
        for order in self._tree.order:
            column = next((index for index, item in enumerate(self._items) if is_sorted_by(order, item)), None)
            value = self._evaluator.value(order.value, binding) if column is None else row[column]
            keys.append(self._evaluator.sort_key(value))
        return tuple(keys)

    # --- matching ----------------------------------------------------------------------------------------------------

    def _iter_matches(self) -> Iterator[Binding]:
        """Yield the bindings of all stages, depth first, without recursion: a stack of iterators, one for each stage.

        Raises:
            QueryError: the patterns match more often than the bounds allow.
        """
        if not self._stages:
            return
        count = 0
        stack: list[Iterator[Binding]] = [self._bind({}, self._stages[0])]
        while stack:
            binding = next(stack[-1], None)
            if binding is None:
                stack.pop()
            elif len(stack) < len(self._stages):
                stack.append(self._bind(binding, self._stages[len(stack)]))
            else:
                if count >= self._bounds.matches:
                    self._abort(f"the patterns match more than {self._bounds.matches:,} times")
                count += 1
                yield binding

    def _bind(self, binding: Binding, stage: Stage) -> Iterator[Binding]:
        """Yield the binding extended by each candidate of a stage that meets its conditions."""
        for added in self._iter_candidates(binding, stage):
            self._count_step()
            extended = binding | added
            if all(self._evaluator.holds(condition, extended) for condition in stage.conditions):
                yield extended

    def _iter_candidates(self, binding: Binding, stage: Stage) -> Iterator[Binding]:
        if stage.link is None:
            for vertex in np.flatnonzero(stage.slot.candidates).tolist():
                yield {stage.slot.name: Vertex(vertex)}
        elif stage.kind == "relation":
            yield from self._iter_edges(binding, stage.link)
        else:
            yield from self._expand(binding, stage, stage.link)

    def _iter_edges(self, binding: Binding, link: Link) -> Iterator[Binding]:
        """Yield each edge that fits a link, with the vertices at its ends."""
        used = self._used_edges(binding, link)
        left, right = self._slots[link.left], self._slots[link.right]
        for edge in np.flatnonzero(link.slot.candidates).tolist():
            self._count_step()
            if edge in used:
                continue
            along = int(self._adjacency.source[edge]), int(self._adjacency.destination[edge])
            ways = {"->": [along], "<-": [along[::-1]], "-": [along, along[::-1]]}[link.relation.direction]
            for one, other in dict.fromkeys(ways):
                fits = left.candidates[one] and right.candidates[other]
                if fits and (link.left != link.right or one == other):
                    yield {link.slot.name: Edge(edge), link.left: Vertex(one), link.right: Vertex(other)}

    def _expand(self, binding: Binding, stage: Stage, link: Link) -> Iterator[Binding]:
        """Yield each way along a link from its bound end."""
        here, there = (link.left, link.right) if stage.from_left else (link.right, link.left)
        start, goal = binding[here], binding.get(there)
        assert isinstance(start, Vertex)
        relation = link.relation
        is_forward = {"->": stage.from_left, "<-": not stage.from_left, "-": None}[relation.direction]
        ways = self._iter_ways(
            start.number, link.slot.candidates, is_forward, relation.hops or (1, 1), self._used_edges(binding, link)
        )
        for edges, end in ways:
            fits = end == goal.number if isinstance(goal, Vertex) else stage.slot.candidates[end]
            if fits and (here != there or end == start.number):
                ordered = edges if stage.from_left else edges[::-1]
                found: Bound = tuple(map(Edge, ordered)) if relation.hops else Edge(edges[0])
                yield {link.slot.name: found, there: Vertex(end)}

    def _iter_ways(
        self, start: int, candidates: Bools, is_forward: bool | None, hops: tuple[int, int], used: set[int]
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield each way of ``hops`` edges from a vertex, without repeated edges: its edges and its end."""
        low, high = hops
        stack = [self._iter_steps(start, candidates, is_forward)]
        edges: list[int] = []
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if edges:
                    edges.pop()
                continue
            edge, end = step
            if edge in used or edge in edges:
                continue
            self._count_step()
            if len(edges) + 1 >= low:
                yield (*edges, edge), end
            if len(edges) + 1 < high:
                edges.append(edge)
                stack.append(self._iter_steps(end, candidates, is_forward))

    def _iter_steps(self, vertex: int, candidates: Bools, is_forward: bool | None) -> Iterator[tuple[int, int]]:
        """Return the edges of a vertex in a direction (None for both), each with its other end."""
        incident = self._adjacency.incident_edges(vertex, candidates)
        edges, ends = incident.edges, incident.ends
        if is_forward is not None:
            kept = (incident.forward == is_forward) | (ends == vertex)
            edges, ends = edges[kept], ends[kept]
        return iter(zip(edges.tolist(), ends.tolist(), strict=True))

    def _used_edges(self, binding: Binding, link: Link) -> set[int]:
        """Return the edges that are bound in the MATCH of a link."""
        used: set[int] = set()
        for name in self._match_names[link.match]:
            found = binding.get(name)
            if isinstance(found, Edge):
                used.add(found.number)
            elif isinstance(found, tuple):
                used.update(edge.number for edge in found)
        return used

    def _count_step(self) -> None:
        self._step_count += 1
        if self._step_count > self._bounds.steps:
            self._abort(f"the query takes more than {self._bounds.steps:,} steps")
        if self._step_count % _STEPS_PER_CLOCK_CHECK == 0 and time.monotonic() > self._deadline:
            self._abort(f"the query takes more than {self._bounds.seconds:g} seconds")

    def _abort(self, why: str) -> NoReturn:
        advice = "name an entity, a type or a label in it, or shorten its patterns"
        raise QueryError(f"{why}: {advice}", query=str(self._tree))


# --- candidates --------------------------------------------------------------------------------------------------


class _SlotFinder:
    """Finds the candidates for each node and relation of a query, by the conditions on it alone."""

    def __init__(
        self, query: CheckedQuery, adjacency: Adjacency, near: Near, as_of: str | None, evaluator: Evaluator
    ) -> None:
        self._query = query
        self._conditions = split_conjunction(query.tree.where)
        self._adjacency = adjacency
        self._near = near
        self._valid = adjacency.valid_edges(as_of)
        self._evaluator = evaluator
        self._unnamed_count = 0
        self.paths: dict[str, PathNames] = {}

    def find(self) -> tuple[dict[str, Slot], list[Link]]:
        """Return the slots by name, and the links between them."""
        slots: dict[str, Slot] = {}
        links: list[Link] = []
        for number, match in enumerate(self._query.tree.matches):
            for pattern in match.patterns:
                self._find_pattern(pattern, number, slots, links)
        return slots, links

    def _find_pattern(self, pattern: Pattern, match: int, slots: dict[str, Slot], links: list[Link]) -> None:
        """Add the slots and links of a pattern; `match` is the number of its MATCH."""
        nodes = [self._name(node) for node in pattern.nodes]
        for name, node in zip(nodes, pattern.nodes, strict=True):
            slots[name] = self._find_nodes(name, node, slots.get(name))
        relations = [self._name(relation) for relation in pattern.relations]
        for index, (name, relation) in enumerate(zip(relations, pattern.relations, strict=True)):
            slots[name] = self._find_relations(name, relation)
            links.append(Link(slots[name], relation, nodes[index], nodes[index + 1], match))
        if pattern.variable is not None:
            self.paths[pattern.variable] = PathNames(tuple(nodes), tuple(relations))

    def _name(self, part: NodePattern | RelationPattern) -> str:
        """Return the variable of a part, or a made name."""
        if part.variable is not None:
            return part.variable
        self._unnamed_count += 1
        return f" {self._unnamed_count}"

    def _find_nodes(self, name: str, node: NodePattern, known: Slot | None) -> Slot:
        """Return the slot of a node; `known` is the slot of an earlier mention of its variable."""
        adjacency = self._adjacency
        reasons = [known.reason] if known is not None and known.reason else []
        if known is None:  # a vertex without valid edges is not in the graph any more
            fits = np.zeros(adjacency.vertices, bool)
            fits[adjacency.source[self._valid]] = fits[adjacency.destination[self._valid]] = True
        else:
            fits = known.candidates.copy()
        if node.label is not None:
            fits &= self._has_type(node.label)
            reasons.append(f"type {node.label}")
        for key, constant in (*node.properties, *self._iter_equalities(name)):
            fits &= self._has_property(key, constant.value)
            reasons.append(f"{key} {constant}")
        for similar in self._iter_similar(name):
            fits &= _mask(adjacency.vertices, self._near[self._query.similar_key(similar)])
            reasons.append(f"near {similar.text!r}")
        return Slot(name, node, fits, int(fits.sum()), ", ".join(dict.fromkeys(reasons)))

    def _find_relations(self, name: str, relation: RelationPattern) -> Slot:
        adjacency = self._adjacency
        fits, reasons = self._valid.copy(), []
        if relation.labels:
            wanted = {fold_label(label) for label in relation.labels}
            fits &= np.array([fold_label(label) in wanted for label in adjacency.labels], bool)[adjacency.label]
            reasons.append("|".join(relation.labels))
        equalities = self._iter_equalities(name) if relation.hops is None else ()
        for key, constant in (*relation.properties, *equalities):
            test = Compare(Property(name, key), "=", constant)
            edges = np.flatnonzero(fits).tolist()
            fits = _mask(
                len(fits), frozenset(edge for edge in edges if self._evaluator.holds(test, {name: Edge(edge)}))
            )
            reasons.append(f"{key} {constant}")
        for similar in self._iter_similar(name):
            fits &= _mask(len(fits), self._near[self._query.similar_key(similar)])
            reasons.append(f"near {similar.text!r}")
        return Slot(name, relation, fits, int(fits.sum()), ", ".join(reasons))

    def _has_property(self, key: str, value: Any) -> Bools:
        """Return the mask of the vertices with a value of a property."""
        if key == "type":
            return self._has_type(value)
        if key == "component":
            mask: Bools = self._evaluator.components() == value
            return mask
        names = self._adjacency.find_vertices(value) if isinstance(value, str) else ()
        return _mask(self._adjacency.vertices, frozenset(names))

    def _has_type(self, kind: Any) -> Bools:
        wanted = kind.casefold() if isinstance(kind, str) else None
        kinds = np.array([one.casefold() == wanted for one in self._adjacency.kinds], bool)
        mask: Bools = kinds[self._adjacency.kind]
        return mask

    def _iter_equalities(self, name: str) -> Iterator[tuple[str, Constant]]:
        """Yield the values that the conditions require of a variable's properties."""
        for one in self._conditions:
            if isinstance(one, Compare) and one.operator == "=":
                left, right = canonical_property(one.left), canonical_property(one.right)
                for side, other in ((left, right), (right, left)):
                    if isinstance(side, Property) and side.owner == name and isinstance(other, Constant):
                        yield side.name, other

    def _iter_similar(self, name: str) -> Iterator[Similar]:
        return (one for one in self._conditions if isinstance(one, Similar) and one.variable == name)


def _mask(size: int, members: frozenset[int]) -> Bools:
    mask = np.zeros(size, bool)
    mask[[member for member in members if member < size]] = True
    return mask
