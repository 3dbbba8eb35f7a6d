"""Relations that begin and end within one add: a later message can end what an earlier one states; pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from mem0_core._system.records import dataclass
from mem0_core.domain.mention_index import MentionIndex
from mem0_core.domain.records import Event, Message, Node, Relation, RelationChange, Triplet, entity_key
from mem0_core.ingest._relation_plan import build_relation, plan_end
from mem0_core.language import rule_extractor as rules
from mem0_core.language.name_similarity import is_part_of
from mem0_core.language.naming import is_naming

TripletKey = tuple[bytes, str, bytes]

_DATE_CHARS = len("2024-05-08")


@dataclass(slots=True)
class _Held:
    """The relations of one triplet: those known before the add, and True if a message of the add states it."""

    triplet: Triplet
    known: list[Relation] = field(default_factory=list)
    is_stated: bool = False


class OpenRelations:
    """Relations that hold while the messages of an add are read in order.

    Args:
        known: relations that held before.
    """

    def __init__(self, known: Iterable[Relation]) -> None:
        self._by_slot: dict[tuple[bytes, str], dict[TripletKey, _Held]] = {}
        for relation in known:
            self._hold(relation.triplet).known.append(relation)

    def state(self, triplets: Iterable[Triplet]) -> None:
        """Add the relations that a message states."""
        for triplet in triplets:
            self._hold(triplet).is_stated = True

    def close(
        self, endings: Iterable[rules.EndedRelation], kept: Sequence[Triplet], at: str | None
    ) -> list[RelationChange]:
        """Remove the relations that the endings of a message end, and return the changes that end them.

        A message of an earlier day does not end what began later. Instead, what it states in place of others ends when
        the first of those began.

        Args:
            kept: relations that the message states itself; they stay, and so do names that they shorten or complete.
            at: time of the message; None for now.
        """
        kept_keys = {triplet.key for triplet in kept}
        names = [triplet.destination for triplet in kept if is_naming(triplet.relationship)]
        closed: list[RelationChange] = []
        for ending in endings:
            slot, destination = self._by_slot.get(ending_key(ending), {}), destination_key(ending)
            keys = list(slot) if destination is None else [(*ending_key(ending), destination)]
            later: list[str] = []
            for key in keys:
                if key in slot and key not in kept_keys and not _is_kept_name(slot[key].triplet, names):
                    held = slot.pop(key)
                    begun = [relation for relation in held.known if begins_later(relation, at)]
                    later += [relation.valid_from for relation in begun]
                    closed += _plan_ends(held, begun)
                    if begun:
                        slot[key] = _Held(held.triplet, begun)
            if later and destination is None:
                replaced = [triplet for triplet in kept if triplet.key[:2] == ending_key(ending)]
                closed += [
                    RelationChange(Event.DELETE, one, effective_at=min(later)) for one in dict.fromkeys(replaced)
                ]
        return closed

    def _hold(self, triplet: Triplet) -> _Held:
        slot = self._by_slot.setdefault(triplet.key[:2], {})
        return slot.setdefault(triplet.key, _Held(triplet))


def begins_later(relation: Relation, at: str | None) -> bool:
    """Return True if a relation begins on a later day than that of a message, which is None for now.

    Within a day the order of the calls decides: many messages have the day as their time, and the clocks of machines
    differ.
    """
    return at is not None and relation.valid_from[:_DATE_CHARS] > at[:_DATE_CHARS]


def _plan_ends(held: _Held, later: Sequence[Relation]) -> list[RelationChange]:
    ends = [plan_end(relation) for relation in held.known if relation not in later]
    # The statement of an earlier day is part of a relation that began later, and still holds.
    return [*ends, RelationChange(Event.DELETE, held.triplet)] if held.is_stated and not later else ends


def _is_kept_name(triplet: Triplet, names: Sequence[str]) -> bool:
    return is_naming(triplet.relationship) and any(is_part_of(triplet.destination, name) for name in names)


def ending_key(ending: rules.EndedRelation) -> tuple[bytes, str]:
    return entity_key(ending.source), ending.relationship


def destination_key(ending: rules.EndedRelation) -> bytes | None:
    return None if ending.destination is None else entity_key(ending.destination)


def plan_later_endings(
    stated: Sequence[Triplet],
    read: Sequence[tuple[int, rules.RuleExtraction]],
    messages: Sequence[Message],
    nodes: Mapping[bytes, Node],
) -> tuple[RelationChange, ...]:
    """Return the ends of relations that a model found, and that a later message of the same add ends by rules.

    A relation was stated before an ending if the names of its destination occur in earlier messages only. An ending
    that names the destination also ends a relation whose destination its own message mentions.

    Args:
        stated: relations of all messages.
        read: extractions by rules, with the indexes of their messages.
        nodes: entity key -> node that a new relation joins.
    """
    endings = [(index, ending) for index, found in read for ending in found.ended]
    if len(messages) <= 1 or not endings:
        return ()
    mentions = MentionIndex([message.content for message in messages])
    last_statement = {triplet.key: index for index, found in read for triplet in found.relations}
    by_slot: dict[tuple[bytes, str], list[tuple[int, bytes | None]]] = {}
    for index, ending in endings:
        by_slot.setdefault(ending_key(ending), []).append((index, destination_key(ending)))
    changes = []
    for triplet in stated:
        causes = by_slot.get(triplet.key[:2])
        numbers = mentions.segments(triplet.destination) if causes else ()
        if not causes or not numbers:
            continue
        last = last_statement.get(triplet.key, -1)
        ended = [
            index
            for index, destination in causes
            if numbers[0] < index and last < index and (destination == triplet.key[2] or numbers[-1] < index)
            if destination in (None, triplet.key[2])
        ]
        if ended:
            planned = build_relation(triplet, nodes).triplet
            at = messages[ended[0]].timestamp
            changes.append(RelationChange(Event.DELETE, planned, message_indexes=(ended[0],), effective_at=at))
    return tuple(changes)
