"""Merging what was found into the graph: step 5 of `relate`, pure (seed 000 part 2; seed 002's four branches)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from mem0_core.graph_replies import LINK_WORDS, Refinement
from mem0_core.records import (
    Change,
    Days,
    Entity,
    Event,
    MemoryItem,
    Node,
    Relation,
    RelationChange,
    Triplet,
    entity_key,
    mentions,
)
from mem0_core.timewords import days_told

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Surroundings", "ends_of", "join", "may_be_one", "merge", "said_by", "supported", "types_of"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the graph holds around some entities (step 3).

    Attributes:
        nodes: entity key -> its node, where one is near enough.
        relations: what holds around them, nearest first.
        vectors: text -> embedding, of what was embedded to look.
    """

    nodes: Mapping[bytes, Node]
    relations: tuple[Relation, ...]
    vectors: Mapping[str, NDArray[np.float32]]


def merge(
    new: Sequence[Triplet],
    outdated: Sequence[Triplet],
    refined: Sequence[Refinement],
    known: Surroundings,
    *,
    types: Mapping[bytes, str],
    messages: Sequence[int],
) -> tuple[RelationChange, ...]:
    """Step 5: the changes that carry out what was found; pure.

    What is stated again is not outdated, and what is refined is neither: its refined form takes its place, and that of
    the new relation that said so.
    """
    held: dict[Any, list[Relation]] = {}  # of one triplet there may be several, in narrower scopes
    for relation in known.relations:
        held.setdefault(relation.triplet.key, []).append(relation)
    sharper = {relation: refinement for refinement in refined for relation in held.get(refinement.old.key, ())}
    joined = [join(triplet, known.nodes) for triplet in new]
    added = [change for change in joined if not any(_says(change, *pair) for pair in sharper.items())]
    restated = {change.triplet.key for change in added}
    ended = [relation for triplet in outdated if triplet.key not in restated for relation in held.get(triplet.key, ())]
    changes = [
        *(_end(relation) for relation in dict.fromkeys([*sharper, *ended])),
        *(_sharpen(relation, refinement.relationship) for relation, refinement in sharper.items()),
        *added,
    ]
    return tuple(
        dataclasses.replace(
            change,
            types=(
                types.get(entity_key(change.triplet.source), ""),
                types.get(entity_key(change.triplet.destination), ""),
            ),
            messages=tuple(messages),
        )
        if change.event is Event.ADD
        else change
        for change in changes
    )


def may_be_one(name: str, other: str) -> bool:
    """Whether two names that an embedder finds near can mean one thing, by their words.

    Embedders put contrasts near one another: all-MiniLM-L6-v2 gives red wine and white wine 0.78, user_1 and user_2
    0.91. So names with other numbers are two, and so are names that share a word where each has one of its own.
    """
    words, others = _words_of(name), _words_of(other)
    numbers, their_numbers = ({word for word in some if word.isdigit()} for some in (words, others))
    return numbers == their_numbers and (words <= others or others <= words or words.isdisjoint(others))


def _words_of(name: str) -> set[str]:
    return set(re.findall(r"\d+|[^\W\d_]+", name.casefold())) - _SMALL_WORDS


def join(triplet: Triplet, nodes: Mapping[bytes, Node]) -> RelationChange:
    """A new relation between the nodes of its ends. Four cases: both are found, only one, only the other, neither.

    A found node keeps its name; a relation never joins a node to itself.
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
        source=source.row if source else None,
        destination=destination.row if destination else None,
    )


def _end(held: Relation) -> RelationChange:
    return RelationChange(Event.DELETE, held.triplet, relation=held.row)


def _sharpen(held: Relation, relationship: str) -> RelationChange:
    triplet = dataclasses.replace(held.triplet, relationship=relationship)
    return RelationChange(Event.ADD, triplet, relation=held.row, source=held.source, destination=held.destination)


_SMALL_WORDS = LINK_WORDS | {"with"}


def _says(change: RelationChange, held: Relation, refinement: Refinement) -> bool:
    """Whether a new relation is the one that refines `held`: between the same two, with a word in common."""
    if (change.triplet.key[0], change.triplet.key[2]) != (held.triplet.key[0], held.triplet.key[2]):
        return False
    said, old, refined = (
        set(re.split(r"[\W_]+", relationship)) - _SMALL_WORDS
        for relationship in (change.triplet.relationship, held.triplet.relationship, refinement.relationship)
    )
    return not said.isdisjoint(old | refined)


def ends_of(triplets: Iterable[Triplet]) -> list[str]:
    return [name for triplet in triplets for name in (triplet.source, triplet.destination)]


def types_of(entities: Iterable[Entity]) -> dict[bytes, str]:
    return {entity_key(entity.name): entity.type for entity in entities}


# --- evidence ----------------------------------------------------------------------------------------------------


def supported(relations: Sequence[RelationChange], changes: Sequence[Change]) -> tuple[RelationChange, ...]:
    """The changes to the graph, each with the memories of the same plan that it came from.

    Those learnt from the same messages come into question; of them, those that name most of its two entities.
    """
    return tuple(
        said_by(relation, _evidence(relation, changes), changes) if relation.event is Event.ADD else relation
        for relation in relations
    )


def said_by(relation: RelationChange, memories: tuple[int, ...], changes: Sequence[Change]) -> RelationChange:
    """An ADD with the memories that say it, and the days they tell of where they do."""
    days = tuple(_days_of(relation.triplet, changes[place].after) for place in memories)
    return dataclasses.replace(relation, memories=memories, days=days)


def _days_of(triplet: Triplet, item: MemoryItem) -> Days | None:
    """The days that a memory tells of where it says a relation.

    "I moved to Porto in May and visit Rome in June" tells two, each with its own days: those of the clauses that name
    the destination; where none does (a model called it otherwise), those of the whole text.
    """
    said = date.fromisoformat((item.updated_at or item.created_at)[:10])
    naming = [clause for clause in _CLAUSE.split(item.text) if mentions(clause, triplet.destination)]
    told = [days for clause in naming or [item.text] if (days := days_told(clause, said))]
    return told[0] if len(told) == 1 else None


_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and|but|while|then)\s+(?=I\b|[a-z])")


def _evidence(relation: RelationChange, changes: Sequence[Change]) -> tuple[int, ...]:
    heard = set(relation.messages)
    named = {
        place: sum(
            mentions(change.after.text, name) for name in (relation.triplet.source, relation.triplet.destination)
        )
        for place, change in enumerate(changes)
        if change.event is not Event.DELETE and not heard.isdisjoint(change.sources)
    }
    most = max(named.values(), default=0)
    return tuple(place for place, count in named.items() if count == most)
