"""Aliases: the names that merged entities and relationships now go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mem0_core.domain.records import Scope, Triplet, entity_key
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.rule_extractor import EndedRelation, RuleExtraction

__all__ = ["Aliases", "load_aliases"]


@dataclass(frozen=True, slots=True)
class Aliases:
    """Merged names, by `records.entity_key`, each with the name that it was merged into."""

    entities: Mapping[bytes, str]
    relationships: Mapping[bytes, str]

    def resolve_entity(self, name: str) -> str:
        """Return the present name of an entity."""
        return self.entities.get(entity_key(name), name) if self.entities else name

    def resolve_relationship(self, name: str) -> str:
        """Return the present name of a relationship."""
        return self.relationships.get(entity_key(name), name) if self.relationships else name

    def resolve_triplets(self, triplets: Iterable[Triplet]) -> tuple[Triplet, ...]:
        """Return triplets under present names, without those that would relate an entity to itself."""
        resolved = [
            Triplet(
                self.resolve_entity(one.source),
                self.resolve_relationship(one.relationship),
                self.resolve_entity(one.destination),
            )
            for one in triplets
        ]
        return tuple(one for one in resolved if entity_key(one.source) != entity_key(one.destination))

    def resolve_extraction(self, extraction: RuleExtraction) -> RuleExtraction:
        """Return an extraction by rules under present names."""
        if not self.entities and not self.relationships:
            return extraction
        entities = tuple(replace(entity, name=self.resolve_entity(entity.name)) for entity in extraction.entities)
        ended = tuple(map(self._resolve_ending, extraction.ended))
        return RuleExtraction(entities, self.resolve_triplets(extraction.relations), ended)

    def _resolve_ending(self, ending: EndedRelation) -> EndedRelation:
        destination = None if ending.destination is None else self.resolve_entity(ending.destination)
        return EndedRelation(
            self.resolve_entity(ending.source), self.resolve_relationship(ending.relationship), destination
        )


def load_aliases(ports: Ports, scope: Scope) -> Flow[Aliases]:
    """Read the aliases of exactly this scope."""
    ledger = ports.store.merges
    entities = yield from do(ledger.aliases, scope, "entity", exact=True)
    relationships = yield from do(ledger.aliases, scope, "relationship", exact=True)
    return Aliases(entities, relationships)
