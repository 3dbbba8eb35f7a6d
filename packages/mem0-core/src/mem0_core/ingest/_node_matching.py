"""Match new names with the nodes of a graph: one node per entity, and no name lost to another one.

A name takes the node of a near name if `compare_names` finds them to be one, and nothing that is known of both
contradicts. Otherwise it becomes a node of its own, and `merge` may propose the pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Node, Scope, Triplet, entity_key
from mem0_core.flow import Flow, do
from mem0_core.interfaces import GraphNeighborhood, Ports
from mem0_core.language.families import family_of_label
from mem0_core.language.name_similarity import EntityName, compare_names

_MAX_CHECKED_RELATIONS = 200  # newest relations of a node that are compared with those of a name


@dataclass(frozen=True, slots=True)
class Mentions:
    """Names in a text, with its statements about them.

    Attributes:
        names: all names, those at the ends of `triplets` included.
        types: entity key -> type, as far as known.
        changed: (entity key, family) of the single-valued relations that the text says have a new value.
    """

    names: Sequence[str]
    triplets: Sequence[Triplet] = ()
    types: Mapping[bytes, str] = field(default_factory=dict)
    changed: Collection[tuple[bytes, str]] = frozenset()

    def get_entity(self, name: str) -> EntityName:
        """Return a name with its type."""
        return EntityName(name, self.types.get(entity_key(name), ""))


def single_family(relationship: str) -> str:
    """Return the family of a relationship if a subject has one value of it at a time; else nothing."""
    family = family_of_label(relationship)
    return family.name if family is not None and family.is_single and family.name != "name" else ""


def find_contradiction(one: Iterable[Triplet], other: Iterable[Triplet]) -> str:
    """Return the reason why the subjects of some relations are two: a single-valued relation with distinct values.

    Args:
        one, other: current relations of each subject.
    """
    values: dict[str, list[str]] = defaultdict(list)
    for triplet in one:
        if family := single_family(triplet.relationship):
            values[family].append(triplet.destination)
    for triplet in other:
        for value in values.get(single_family(triplet.relationship), ()):
            if compare_names(EntityName(value), EntityName(triplet.destination), 1.0).is_distinct:
                return f"{triplet.relationship}: {value} and {triplet.destination}"
    return ""


def find_only_match(name: EntityName, near: Sequence[tuple[float, EntityName]]) -> str | None:
    """Return the first of some near names that is the same as a name; None where two that differ both are.

    "Alex Morgan" is the same as Alexander Morgan and as Alexandra Morgan: it stays a name of its own.
    """
    fits = [known for cosine, known in near if compare_names(name, known, cosine).is_same]
    if not fits or not all(compare_names(fits[0], fit, 1.0).is_same for fit in fits[1:]):
        return None
    return fits[0].text


def match_nodes(
    ports: Ports,
    scope: Scope,
    mentions: Mentions,
    names: Mapping[bytes, str],
    arounds: Mapping[bytes, GraphNeighborhood],
) -> Flow[dict[bytes, Node]]:
    """Return the node for each name that has none: the nearest that is the same name, unless several could be it.

    Args:
        names: entity key -> name.
        arounds: entity key -> the nodes near the name.
    """
    rows = [row for around in arounds.values() for row, _ in around.nodes]
    by_row = (yield from do(ports.store.graph.nodes_by_rows, rows, scope=scope)) if rows else {}
    own = {row: node for row, node in by_row.items() if node.scope == scope}  # relations join nodes of one scope
    chosen: dict[bytes, Node] = {}
    for key, around in arounds.items():
        near = [(cosine, own[row]) for row, cosine in around.nodes if row in own]
        entities = [(cosine, EntityName(node.entity.name, node.entity.type)) for cosine, node in near]
        name = find_only_match(mentions.get_entity(names[key]), entities)
        if name is not None:
            chosen[key] = next(node for _, node in near if node.entity.name == name)
    return (yield from _drop_contradicted(ports, scope, mentions, chosen))


def _drop_contradicted(
    ports: Ports, scope: Scope, mentions: Mentions, chosen: dict[bytes, Node]
) -> Flow[dict[bytes, Node]]:
    """Return the matches, except with nodes that have another value of a single-valued relation."""
    stated: dict[bytes, list[Triplet]] = {}
    for triplet in mentions.triplets:
        key, family = entity_key(triplet.source), single_family(triplet.relationship)
        if family and key in chosen and (key, family) not in mentions.changed:
            stated.setdefault(key, []).append(triplet)
    if not stated:
        return chosen
    store = ports.store.graph
    nodes = [chosen[key].row for key in stated]
    rows = yield from do(store.incident_relation_rows, nodes, scope=scope, limit=_MAX_CHECKED_RELATIONS)
    listed = list({row for found in rows.values() for row in found})
    relations = yield from do(store.relations_by_rows, listed, scope=scope, with_evidence=False)
    held: dict[int, list[Triplet]] = defaultdict(list)
    for relation in relations.values():
        if relation.valid_to is None:
            held[relation.source_node].append(relation.triplet)
    return {
        key: node for key, node in chosen.items() if not find_contradiction(stated.get(key, ()), held.get(node.row, ()))
    }
