"""Merge extracted relations into the known graph; pure functions (Mem0 paper, section 2.2).

`merge_relations` plans the changes of the graph, and `attach_evidence` links each new relation to the memories of the
same plan that state it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from mem0_core._system.records import dataclass
from mem0_core.domain.bounds import MAX_CLAUSES_PER_RELATION
from mem0_core.domain.mention_index import MentionIndex
from mem0_core.domain.records import (
    DateRange,
    Entity,
    Event,
    MemoryChange,
    MemoryItem,
    Node,
    Relation,
    RelationChange,
    Triplet,
    entity_key,
)
from mem0_core.language.temporal import find_event_days
from mem0_core.language.terms import extract_terms
from mem0_core.llm.graph_replies import LINK_WORDS, Refinement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """The part of the graph around some entities.

    Attributes:
        nodes: entity key -> node, for the entities that have one.
        relations: their current relations, nearest first.
        vectors: text -> embedding, of all texts embedded for the look-up.
    """

    nodes: Mapping[bytes, Node]
    relations: tuple[Relation, ...]
    vectors: Mapping[str, NDArray[np.float32]]


def merge_relations(
    new: Sequence[Triplet],
    outdated: Sequence[Triplet],
    refined: Sequence[Refinement],
    known: KnownGraph,
    *,
    types: Mapping[bytes, str],
    messages: Sequence[int],
) -> tuple[RelationChange, ...]:
    """Return the changes for new, outdated and refined relations; pure.

    A restated or refined relation does not count as outdated. A refined relation ends, and a relation with the refined
    relationship replaces it and the new relation that caused the refinement.

    Args:
        types: entity key -> type.
        messages: indexes of the source messages.
    """
    held: dict[Any, list[Relation]] = {}  # several relations of one triplet, in narrower scopes, are possible
    for relation in known.relations:
        held.setdefault(relation.triplet.key, []).append(relation)
    refined_forms = {relation: refinement for refinement in refined for relation in held.get(refinement.old.key, ())}
    joined = [build_relation(triplet, known.nodes) for triplet in new]
    added = [change for change in joined if not any(_is_refined_form(change, *pair) for pair in refined_forms.items())]
    restated = {change.triplet.key for change in added}
    ended = [relation for triplet in outdated if triplet.key not in restated for relation in held.get(triplet.key, ())]
    changes = [
        *(plan_end(relation) for relation in dict.fromkeys([*refined_forms, *ended])),
        *(_plan_refinement(relation, refinement.relationship) for relation, refinement in refined_forms.items()),
        *added,
    ]
    return tuple(
        dataclasses.replace(
            change,
            types=(
                types.get(entity_key(change.triplet.source), ""),
                types.get(entity_key(change.triplet.destination), ""),
            ),
            message_indexes=tuple(messages),
        )
        if change.event is Event.ADD
        else dataclasses.replace(change, message_indexes=tuple(messages))
        for change in changes
    )


def build_relation(triplet: Triplet, nodes: Mapping[bytes, Node]) -> RelationChange:
    """Return a new relation between the nodes of its ends; an end without a node becomes a new node.

    A node keeps its name, and no relation joins a node to itself.
    """
    source = nodes.get(entity_key(triplet.source))
    destination = nodes.get(entity_key(triplet.destination))
    if source is not None and source == destination:
        if entity_key(source.entity.name) == entity_key(triplet.destination):
            source = None
        else:
            destination = None
    named = Triplet(
        source.entity.name if source else triplet.source,
        triplet.relationship,
        destination.entity.name if destination else triplet.destination,
    )
    return RelationChange(
        Event.ADD,
        named,
        source_node=source.row if source else None,
        destination_node=destination.row if destination else None,
    )


def plan_end(held: Relation) -> RelationChange:
    """Return the change that ends a stored relation."""
    return RelationChange(Event.DELETE, held.triplet, relation_row=held.row)


def _plan_refinement(held: Relation, relationship: str) -> RelationChange:
    triplet = dataclasses.replace(held.triplet, relationship=relationship)
    return RelationChange(
        Event.ADD, triplet, relation_row=held.row, source_node=held.source_node, destination_node=held.destination_node
    )


_LINKING_WORDS = LINK_WORDS | {"with"}


def _is_refined_form(change: RelationChange, held: Relation, refinement: Refinement) -> bool:
    """Return True if a new relation causes the refinement of `held`: same ends, and a word in common."""
    if (change.triplet.key[0], change.triplet.key[2]) != (held.triplet.key[0], held.triplet.key[2]):
        return False
    new, old, refined = (
        set(re.split(r"[\W_]+", relationship)) - _LINKING_WORDS
        for relationship in (change.triplet.relationship, held.triplet.relationship, refinement.relationship)
    )
    return not new.isdisjoint(old | refined)


def collect_entity_names(triplets: Iterable[Triplet]) -> list[str]:
    return [name for triplet in triplets for name in (triplet.source, triplet.destination)]


def collect_entity_types(entities: Iterable[Entity]) -> dict[bytes, str]:
    return {entity_key(entity.name): entity.type for entity in entities}


# --- evidence ----------------------------------------------------------------------------------------------------


def attach_evidence(relations: Sequence[RelationChange], changes: Sequence[MemoryChange]) -> tuple[RelationChange, ...]:
    """Return the changes of the graph with the memories of the same plan as evidence.

    The candidates are the memories from the same messages; those that mention most of the two entities are taken, and
    of these those with most words of the relation. Any memory is taken to mention the speaker.
    """
    evidence = Evidence(changes)
    return tuple(
        evidence.attach_memories(relation, evidence.find_memories(relation))
        if relation.event is Event.ADD
        else relation
        for relation in relations
    )


class Evidence:
    """Memories of a plan as evidence for its relations; each text is split into words only once."""

    def __init__(self, changes: Sequence[MemoryChange]) -> None:
        self._changes = changes
        self._texts: dict[int, _MemoryText] = {}
        self._by_message: dict[int, list[int]] = {}
        for index, change in enumerate(changes):
            if change.event is not Event.DELETE:
                for message in change.message_indexes:
                    self._by_message.setdefault(message, []).append(index)

    def find_memories(self, relation: RelationChange) -> tuple[int, ...]:
        """Return the indexes of the changes from a relation's messages that state it most fully."""
        learned = sorted({index for message in relation.message_indexes for index in self._by_message.get(message, ())})
        if len(learned) < 2:
            return tuple(learned)
        named = {index: self._text(index).count_mentioned(relation.triplet) for index in learned}
        most = max(named.values())
        return tuple(index for index, count in named.items() if count == most)

    def attach_memories(self, relation: RelationChange, memories: tuple[int, ...]) -> RelationChange:
        """Return a new relation with its memories as evidence, and with the days that they name for it."""
        days = tuple(self._text(index).find_event_days(relation.triplet.destination) for index in memories)
        return dataclasses.replace(relation, change_indexes=memories, event_dates=days)

    def _text(self, index: int) -> _MemoryText:
        if index not in self._texts:
            self._texts[index] = _MemoryText(self._changes[index].after)
        return self._texts[index]


class _MemoryText:
    """The text of a memory: mentioned names, and the days that its clauses name."""

    def __init__(self, item: MemoryItem) -> None:
        self._item = item
        self._date = date.fromisoformat(item.said_at[:10])
        self._words = MentionIndex([item.text])
        self._clauses = split_clauses(item.text)
        self._clause_words = MentionIndex(self._clauses)
        self._parse_days = lru_cache(maxsize=None)(partial(find_event_days, reference=self._date))
        self._days_of: dict[str, DateRange | None] = {}

    def count_mentioned(self, triplet: Triplet) -> tuple[int, int]:
        """Return the number of mentioned entities, and the number of the relation's words that occur in any form."""
        names, speaker = (triplet.source, triplet.destination), self._item.scope.partition[1]
        entities = sum(name == speaker or self._words.mentions_name(name) for name in names)
        return entities, len(self._terms.intersection(extract_terms(f"{triplet.relationship} {triplet.destination}")))

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(extract_terms(self._item.text))

    def find_event_days(self, destination: str) -> DateRange | None:
        """Return the days that the memory names for a relation to `destination`.

        "I moved to Porto in May and visit Rome in June" has two relations with different days: those in the clause that
        mentions the destination. If no clause mentions it, the days of the whole text are taken.
        """
        if destination not in self._days_of:
            numbers = islice(self._clause_words.segments(destination), MAX_CLAUSES_PER_RELATION)
            naming = [self._clauses[number] for number in numbers]
            found = [days for clause in naming or [self._item.text] if (days := self._parse_days(clause))]
            self._days_of[destination] = found[0] if len(found) == 1 else None
        return self._days_of[destination]


def split_clauses(text: str) -> list[str]:
    """Split a text into clauses; long runs of white space, on which the pattern is quadratic, are collapsed first."""
    return _CLAUSE.split(_SPACES.sub(lambda run: "\n" if "\n" in run[0] else " ", text))


_SPACES = re.compile(r"\s{2,}")
_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and|but|while|then)\s+(?=I\b|[a-z])")
