"""Stages of a plan: start at the smallest set of candidates and go outwards from the variables that are bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from mem0_core._system.records import dataclass
from mem0_core.graph._query_tree import And, Expression, NodePattern, RelationPattern, iter_variables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slot:
    """A node or a relation of a pattern.

    Attributes:
        name: its variable, or a made name that starts with a space.
        candidates: mask of the vertices or edges that fit the slot by themselves.
        size: number of candidates.
        reason: the properties that the candidates are chosen by, for EXPLAIN.
    """

    name: str
    pattern: NodePattern | RelationPattern
    candidates: Bools
    size: int
    reason: str

    @property
    def label(self) -> str:
        """Description of the slot in a plan."""
        kind = "node" if isinstance(self.pattern, NodePattern) else "relation"
        name = "" if self.name.startswith(" ") else f" {self.name}"
        return f"{kind}{name} ({self.reason + ', ' if self.reason else ''}{self.size:,} to look at)"


@dataclass(frozen=True, slots=True)
class Link:
    """A relation of a pattern, between two slots of nodes, in the MATCH with a number."""

    slot: Slot
    relation: RelationPattern
    left: str
    right: str
    match: int

    @property
    def names(self) -> set[str]:
        """Names that the link binds."""
        return {self.slot.name, self.left, self.right}

    def other_end(self, bound: set[str]) -> str:
        """Return the name of the node to which the link leads from a bound one."""
        return self.right if self.left in bound else self.left


@dataclass(frozen=True, slots=True)
class PathNames:
    """Names of the slots of a path."""

    nodes: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a plan.

    Attributes:
        kind: "node" and "relation" start at candidates of `slot`, "expand" follows `link` to it.
        link: the relation; None for "node".
        from_left: True to follow the link in the order of the query.
        conditions: conditions that can be tested once the stage is bound.
        label: description of the stage in a plan.
    """

    kind: Literal["node", "relation", "expand"]
    slot: Slot
    link: Link | None
    from_left: bool
    conditions: tuple[Expression, ...]
    label: str


def plan_stages(
    slots: Mapping[str, Slot], links: Sequence[Link], where: Expression | None, paths: Mapping[str, PathNames]
) -> list[Stage]:
    """Return the stages that bind all slots, each with the conditions that can be tested after it."""
    conditions = split_conjunction(where)
    nodes = {name: slot for name, slot in slots.items() if isinstance(slot.pattern, NodePattern)}
    open_links = list(links)
    bound: set[str] = set()
    stages: list[Stage] = []
    while open_links or not nodes.keys() <= bound:
        stage = _next_stage(nodes, open_links, bound)
        bound |= {stage.slot.name} if stage.link is None else stage.link.names
        open_links = [link for link in open_links if link is not stage.link]
        testable = [one for one in conditions if _names_in(one, paths) <= bound]
        conditions = [one for one in conditions if one not in testable]
        stages.append(Stage(stage.kind, stage.slot, stage.link, stage.from_left, tuple(testable), stage.label))
    return stages


def _names_in(condition: Expression, paths: Mapping[str, PathNames]) -> set[str]:
    """Return the names that have to be bound to test a condition."""
    names: set[str] = set()
    for name, _ in iter_variables(condition):
        names.update((*paths[name].nodes, *paths[name].relations) if name in paths else (name,))
    return names


def _next_stage(nodes: Mapping[str, Slot], links: Sequence[Link], bound: set[str]) -> Stage:
    """Return the stage that binds most cheaply, without its conditions."""
    reachable = [link for link in links if link.left in bound or link.right in bound]
    if reachable:
        link = min(reachable, key=lambda one: _expansion_cost(one, nodes, bound))
        from_left = link.left in bound
        end = nodes[link.other_end(bound)]
        return Stage("expand", end, link, from_left, (), f"expand {_describe_link(link, from_left)} to {end.label}")
    single = (link for link in links if link.relation.hops is None)
    smallest = min(single, key=lambda one: one.slot.size, default=None)
    node = min((slot for name, slot in nodes.items() if name not in bound), key=lambda slot: slot.size)
    if smallest is not None and smallest.slot.size < node.size:
        between = f"between {_describe_node(smallest.left)} and {_describe_node(smallest.right)}"
        return Stage("relation", smallest.slot, smallest, True, (), f"begin at {smallest.slot.label} {between}")
    return Stage("node", node, None, True, (), f"begin at {node.label}")


def _expansion_cost(link: Link, nodes: Mapping[str, Slot], bound: set[str]) -> tuple[bool, int, int]:
    """Return a sort key: links that only test come first, then single relations, then ends with few candidates."""
    is_test = link.left in bound and link.right in bound
    return not is_test, 0 if link.relation.hops is None else 1, nodes[link.other_end(bound)].size


def split_conjunction(where: Expression | None) -> list[Expression]:
    """Return the parts of a condition that all have to hold."""
    if where is None:
        return []
    return list(where.parts) if isinstance(where, And) else [where]


def _describe_link(link: Link, from_left: bool) -> str:
    labels = f" along {link.slot.reason}" if link.slot.reason else ""
    hops = f", {link.relation.hops[0]} to {link.relation.hops[1]} in a row" if link.relation.hops else ""
    return f"from {_describe_node(link.left if from_left else link.right)}{labels}{hops}"


def _describe_node(name: str) -> str:
    return "a node" if name.startswith(" ") else name
