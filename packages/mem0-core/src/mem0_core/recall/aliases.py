"""Aliases: the names that merged entities and relationships now go by, and the names of the speaker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Scope, Triplet, entity_key
from mem0_core.flow import Flow, do
from mem0_core.graph.lookup import self_name
from mem0_core.interfaces import Ports
from mem0_core.language.naming import NAMING_LABELS, get_given_name, is_naming
from mem0_core.language.rule_extractor import EndedRelation, RuleExtraction

_MAX_CHECKED_RELATIONS = 50  # newest relations of a node that may show that a name is another person's too


@dataclass(frozen=True, slots=True)
class Aliases:
    """Merged names, by `records.entity_key`, each with the name that it was merged into.

    Attributes:
        speaker: the entity that "I" denotes.
        own_names: names of the speaker that denote no other entity, by `records.entity_key`.
    """

    entities: Mapping[bytes, str]
    relationships: Mapping[bytes, str]
    speaker: str = ""
    own_names: Mapping[bytes, str] = field(default_factory=dict)

    def resolve_entity(self, name: str) -> str:
        """Return the present name of an entity."""
        return self.entities.get(entity_key(name), name) if self.entities else name

    def resolve_relationship(self, name: str) -> str:
        """Return the present name of a relationship."""
        return self.relationships.get(entity_key(name), name) if self.relationships else name

    def resolve_triplets(self, triplets: Iterable[Triplet]) -> tuple[Triplet, ...]:
        """Return triplets under present names, without those that would relate an entity to itself.

        A name of the speaker is resolved to the speaker, unless one of the triplets relates the speaker to it: in "my
        friend Maya lives in Rome", Maya is another person, whatever the speaker's name is.
        """
        stated = tuple(triplets)
        own = self._own_names_in(stated)
        resolved = [
            Triplet(
                self._resolve_person(one.source, own),
                self.resolve_relationship(one.relationship),
                self.resolve_entity(one.destination)
                if is_naming(one.relationship)
                else self._resolve_person(one.destination, own),
            )
            for one in stated
        ]
        return tuple(one for one in resolved if entity_key(one.source) != entity_key(one.destination))

    def resolve_extraction(self, extraction: RuleExtraction) -> RuleExtraction:
        """Return an extraction by rules under present names."""
        if not self.entities and not self.relationships and not self.own_names:
            return extraction
        own = self._own_names_in(extraction.relations)
        entities = tuple(replace(entity, name=self._resolve_person(entity.name, own)) for entity in extraction.entities)
        ended = tuple(self._resolve_ending(ending, own) for ending in extraction.ended)
        triplets = self.resolve_triplets(extraction.relations)
        return replace(extraction, entities=entities, relations=triplets, ended=ended)

    def _own_names_in(self, triplets: Iterable[Triplet]) -> frozenset[bytes]:
        """Return the names that denote the speaker in a text that states some triplets."""
        if not self.own_names:
            return frozenset()
        speaker = entity_key(self.speaker)
        others: set[bytes] = set()
        for one in triplets:
            ends = entity_key(one.source), entity_key(one.destination)
            if speaker in ends and not is_naming(one.relationship):
                others.update(ends)
        return frozenset(self.own_names) - others

    def _resolve_person(self, name: str, own: frozenset[bytes]) -> str:
        return self.speaker if own and entity_key(name) in own else self.resolve_entity(name)

    def _resolve_ending(self, ending: EndedRelation, own: frozenset[bytes]) -> EndedRelation:
        destination = ending.destination
        if destination is not None and not is_naming(ending.relationship):
            destination = self._resolve_person(destination, own)
        return EndedRelation(
            self._resolve_person(ending.source, own), self.resolve_relationship(ending.relationship), destination
        )


def load_aliases(ports: Ports, scope: Scope, introduced: Iterable[Triplet] = ()) -> Flow[Aliases]:
    """Read the aliases of exactly this scope.

    Args:
        introduced: relations to names that the speaker gives in the text at hand.
    """
    ledger = ports.store.merges
    entities = yield from do(ledger.aliases, scope, "entity", exact=True)
    relationships = yield from do(ledger.aliases, scope, "relationship", exact=True)
    names = yield from do(ports.store.graph.destinations, scope, self_name(scope), NAMING_LABELS)
    own_names = yield from load_own_names(ports, scope, [*names, *(one.destination for one in introduced)])
    return Aliases(entities, relationships, self_name(scope), own_names)


def load_own_names(ports: Ports, scope: Scope, stated: Iterable[str]) -> Flow[dict[bytes, str]]:
    """Return the names that denote the speaker: the stated ones and their first words.

    A name is left out if the graph relates the speaker to another entity of that name.
    """
    speaker = self_name(scope)
    names = {
        entity_key(name): name
        for whole in stated
        for name in (whole, get_given_name(whole))
        if name and entity_key(name) != entity_key(speaker)
    }
    if not names:
        return {}
    store = ports.store.graph
    nodes = yield from do(store.nodes_by_names, scope, list(names.values()))
    rows = {node.row: key for key, (node, _) in nodes.items()}
    incident = yield from do(store.incident_relation_rows, list(rows), scope=scope, limit=_MAX_CHECKED_RELATIONS)
    listed = list({row for found in incident.values() for row in found})
    relations = yield from do(store.relations_by_rows, listed, scope=scope, with_evidence=False)
    for one in relations.values():
        ends = {entity_key(one.triplet.source), entity_key(one.triplet.destination)}
        if entity_key(speaker) in ends and not is_naming(one.triplet.relationship):
            for key in ends & names.keys():
                del names[key]
    return names
