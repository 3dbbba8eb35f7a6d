"""What names are called since they were merged (`merge_duplicates`): the same in what is said, asked and looked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mem0_core.domain.records import Scope, Triplet, entity_key
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.rule_extractor import EndedRelation, RuleExtraction

__all__ = ["Aliases", "load_aliases"]


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names that went, by `records.entity_key`, each with the one that stayed."""

    entities: Mapping[bytes, str]
    relationships: Mapping[bytes, str]

    def name(self, name: str) -> str:
        return self.entities.get(entity_key(name), name) if self.entities else name

    def relationship(self, relationship: str) -> str:
        return self.relationships.get(entity_key(relationship), relationship) if self.relationships else relationship

    def triplets(self, said: Iterable[Triplet]) -> tuple[Triplet, ...]:
        """Each as it is called now; what would join a name to itself, being of one thing now, is left out."""
        named = [
            Triplet(self.name(one.source), self.relationship(one.relationship), self.name(one.destination))
            for one in said
        ]
        return tuple(one for one in named if entity_key(one.source) != entity_key(one.destination))

    def resolve_extraction(self, found: RuleExtraction) -> RuleExtraction:
        if not self.entities and not self.relationships:
            return found
        entities = tuple(dataclasses.replace(entity, name=self.name(entity.name)) for entity in found.entities)
        return RuleExtraction(entities, self.triplets(found.relations), tuple(map(self._resolve_ending, found.ended)))

    def _resolve_ending(self, ending: EndedRelation) -> EndedRelation:
        destination = None if ending.destination is None else self.name(ending.destination)
        return EndedRelation(self.name(ending.source), self.relationship(ending.relationship), destination)


def load_aliases(ports: Ports, scope: Scope) -> Flow[Aliases]:
    """What names are called in exactly this scope."""
    ledger = ports.store.merges
    entities = yield from do(ledger.aliases, scope, "entity", exact=True)
    relationships = yield from do(ledger.aliases, scope, "relationship", exact=True)
    return Aliases(entities, relationships)
