"""A model's reply -> entities, relations, and what is outdated or refined. Never a silent empty list, never a guess.

As in `replies`, `loose_json` finds the list that was asked for, each item of it is checked, and whatever is not used
ends up in `Reading.problems`. An empty list is an answer. For what is outdated or refined, so is a reply that calls no
tool and holds no JSON: that is how models say "nothing".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from mem0_core.domain.records import Entity, Operation, Triplet, entity_key, same_fact_key
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.llm.json_replies import (
    EMPTY,
    NO_JSON,
    WHOLE_REPLY,
    Reading,
    first_of,
    kind_of,
    problem_with,
    read_json,
    read_list,
    text_fault,
)
from mem0_core.llm.replies import OperationReply, operation_key, read_facts, read_operations

__all__ = [
    "LINK_WORDS",
    "EntitiesReply",
    "Fused",
    "FusedItem",
    "FusedReply",
    "Outdated",
    "OutdatedReply",
    "RefinedReply",
    "Refinement",
    "RelationsReply",
    "entity_of",
    "fused_key",
    "read_entities",
    "read_fused",
    "read_outdated",
    "read_refined",
    "read_relations",
    "refinement_key",
    "relation_of",
    "split_fused",
    "triplet_key",
]

T = TypeVar("T")


# --- what models are asked for (`schema=`) ---------------------------------------------------------------------


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EntityReply(_Asked):
    """Someone or something the text names."""

    entity: str
    entity_type: str


class RelationReply(_Asked):
    """A statement of two entities."""

    source: str
    relationship: str
    destination: str


class RefinedIdReply(_Asked):
    """A known relation, and its more specific relationship."""

    id: str
    relationship: str


class EntitiesReply(_Asked):
    """All entities of a text."""

    entities: list[EntityReply]


class RelationsReply(_Asked):
    """All relations between the entities."""

    entities: list[RelationReply]


class OutdatedReply(_Asked):
    """The existing relations that no longer hold; an empty list if all do."""

    deletions: list[RelationReply]


class RefinedReply(_Asked):
    """Existing relations with their more specific relationship; an empty list if there are none."""

    updates: list[RelationReply]


class FusedReply(_Asked):
    """Everything a conversation changes."""

    facts: list[str]
    memory: list[OperationReply]
    entities: list[EntityReply]
    relations: list[RelationReply]
    outdated: list[str]
    refined: list[RefinedIdReply]


# --- what comes of it ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refinement:
    """A relation that is known, and the more specific relationship that takes its place."""

    old: Triplet
    relationship: str


@dataclass(frozen=True, slots=True)
class Outdated:
    """A relation that is known and no longer holds, in a fused reading, where relations stand beside it."""

    old: Triplet


FusedItem = str | Operation | Entity | Triplet | Outdated | Refinement
"""One item of a fused reading; a str is a fact, a `Triplet` a relation."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused reading, sorted."""

    facts: tuple[str, ...]
    operations: tuple[Operation, ...]
    entities: tuple[Entity, ...]
    relations: tuple[Triplet, ...]
    outdated: tuple[Triplet, ...]
    refined: tuple[Refinement, ...]


def read_entities(reply: Reply, *, self_name: str) -> Reading[Entity]:
    """Read the calls of ``extract_entities``, or ``{"entities": [{"entity", "entity_type"}]}`` (seed 000, step 1).

    Names are kept as they are, but for those the user calls themselves by ("I", "me", "user"): they become
    `self_name`. Types are in ``snake_case``, and empty where there is none.
    """
    listed = _listed(reply, ("entities", "nodes"), _is_entity)
    return _checked(listed, lambda item: _entity(item, self_name), entity_of)


def read_relations(reply: Reply, *, self_name: str) -> Reading[Triplet]:
    """Read the calls of ``establish_relationships``, or the same as JSON (seed 000, step 2).

    The form is ``{"entities": [{"source", "relationship", "destination"}]}``. Relationships are in ``snake_case``;
    names are as in `read_entities`.
    """
    listed = _listed(reply, _RELATIONS, _is_relation)
    return _checked(listed, lambda item: _relation(item, self_name), triplet_key)


def read_outdated(reply: Reply, *, existing: Sequence[Triplet], self_name: str) -> Reading[Triplet]:
    """Read the calls of ``delete_graph_memory``, or ``{"deletions": [{...}]}`` (seed 000, step 4A).

    Only relations of `existing` come out, as they are there; a model may write them with other case, spacing and
    underscores. Any other is a problem.
    """
    listed = _or_nothing(reply, _listed(reply, ("deletions", "outdated", *_RELATIONS), _is_relation))
    return _checked(listed, lambda item: _ended(item, existing, self_name), triplet_key)


def read_refined(
    reply: Reply, *, existing: Sequence[Triplet], new: Sequence[Triplet] = (), self_name: str
) -> Reading[Refinement]:
    """Read the calls of ``update_graph_memory``, or ``{"updates": [{...}]}`` (seed 000, step 4B).

    A refinement names two entities that an existing relation joins, as `read_outdated` names relations. Where several
    join them, the one that shares most words with the new relationship is meant; where that leaves a choice, it is a
    problem. A refinement to what is known already is none, nor is one of a `new` relation: nothing is known yet that
    could be refined (seed 000's own example has the model do that).
    """
    listed = _or_nothing(reply, _listed(reply, ("updates", "refined", *_RELATIONS), _is_relation))
    return _checked(listed, lambda item: _refined(item, existing, new, self_name), refinement_key)


def read_fused(
    reply: Reply,
    *,
    ids: Mapping[str, str],
    texts: Mapping[str, str],
    relations: Mapping[str, Triplet],
    self_name: str,
) -> Reading[FusedItem]:
    """Read ``{"facts", "memory", "entities", "relations", "outdated", "refined"}``, one answer for all steps.

    Every list must be there, but for the last two where no relations were shown. A relation is either outdated or
    refined; `split_fused` sorts the items.

    Args:
        ids, texts: short id -> id and text of a memory, as in `replies.read_operations`.
        relations: short id -> relation, as the model was given them.
    """
    found = read_json(reply)
    answers = [value for value in found.items if isinstance(value, dict) and not _FUSED.isdisjoint(value)]
    if any(answer != answers[0] for answer in answers):
        reason = f"{len(answers)} different answers in one reply"
        return Reading((), (*found.problems, problem_with(reason, answers, WHOLE_REPLY)), found.raw)
    if not answers:
        problems = [problem_with("no object with facts and the rest", value, WHOLE_REPLY) for value in found.items]
        return Reading((), (*found.problems, *problems), found.raw)
    answer = answers[0] if relations else {"outdated": [], "refined": [], **answers[0]}
    facts = read_facts(_part(answer, "facts"))
    readings: list[Reading[Any]] = [
        facts,
        read_operations(_part(answer, "memory"), ids=ids, texts=texts, facts=facts.items),
        read_entities(_part(answer, "entities"), self_name=self_name),
        read_relations(_part(answer, "relations"), self_name=self_name),
        *_read_known(answer, relations),
    ]
    return Reading(
        tuple(item for reading in readings for item in reading.items),
        (*found.problems, *(problem for reading in readings for problem in reading.problems)),
        found.raw,
    )


def split_fused(items: Sequence[FusedItem]) -> Fused:
    """The items of a fused reading by kind, each kind in its order."""
    return Fused(
        facts=tuple(item for item in items if isinstance(item, str)),
        operations=tuple(item for item in items if isinstance(item, Operation)),
        entities=tuple(item for item in items if isinstance(item, Entity)),
        relations=tuple(item for item in items if isinstance(item, Triplet)),
        outdated=tuple(item.old for item in items if isinstance(item, Outdated)),
        refined=tuple(item for item in items if isinstance(item, Refinement)),
    )


def entity_of(entity: Entity) -> Hashable:
    """Equal for entities whose names differ only in case and spacing."""
    return entity_key(entity.name)


def triplet_key(triplet: Triplet) -> Hashable:
    """Equal for relations that differ only in case and spacing."""
    return triplet.key


def refinement_key(refinement: Refinement) -> Hashable:
    """Equal for refinements of one relation, which exclude one another."""
    return "known", refinement.old.key


def fused_key(item: FusedItem) -> Hashable:
    """The key of the item's kind; a relation that is outdated and one that is refined exclude one another."""
    match item:
        case str():
            return "fact", same_fact_key(item)
        case Operation():
            return operation_key(item)
        case Entity():
            return "entity", entity_of(item)
        case Triplet():
            return "relation", triplet_key(item)
        case Outdated():
            return "known", item.old.key
        case Refinement():
            return refinement_key(item)


# --- lists and their items -------------------------------------------------------------------------------------

_RELATIONS = ("entities", "relations", "relationships", "triplets")


class _Unfit(Exception):
    """Why an item cannot be used."""


def _listed(reply: Reply, names: tuple[str, ...], is_item: Callable[[Any], bool]) -> Reading[Any]:
    """`read_list`, with the items of calls that a model wrote out as text."""
    listed = read_list(reply, names=(*names, "tool_calls"), is_item=is_item)
    items = tuple(part for item in listed.items for part in _parts(item, names))
    return Reading(items, listed.problems, listed.raw)


def _parts(item: Any, names: tuple[str, ...]) -> list[Any]:
    """The item itself, or those of a call written out: ``{"name", "arguments": {"entities": [...]}}``."""
    arguments = item.get("arguments", item.get("parameters")) if isinstance(item, dict) else None
    if not isinstance(arguments, dict):
        return [item]
    inner = first_of(arguments, names[0], names[1:])
    return inner if isinstance(inner, list) else [arguments]


def _or_nothing(reply: Reply, listed: Reading[Any]) -> Reading[Any]:
    """A list that may be answered by calling no tool and writing no JSON."""
    said_nothing = not reply.tool_calls and {problem.reason for problem in listed.problems} <= {EMPTY, NO_JSON}
    return replace(listed, problems=()) if said_nothing else listed


def _checked(listed: Reading[Any], check: Callable[[Any], T | None], key: Callable[[T], Hashable]) -> Reading[T]:
    """Check each item. Of those with one key the first is kept; a refinement that differs from it is a problem."""
    kept: dict[Hashable, T] = {}
    problems = list(listed.problems)
    for item in listed.items:
        try:
            read = check(item)
        except _Unfit as why:
            problems.append(problem_with(str(why), item))
            continue
        if read is not None and (first := kept.setdefault(key(read), read)) != read and isinstance(read, Refinement):
            problems.append(problem_with("a second refinement of one relation", item, key(first)))
    return Reading(tuple(kept.values()), tuple(problems), listed.raw)


# --- names -----------------------------------------------------------------------------------------------------

_SELF = frozenset({"i", "me", "my", "mine", "myself", "user", "the user", "user id"})
_PLACEHOLDERS = frozenset({"none", "null", "n/a", "...", "\N{HORIZONTAL ELLIPSIS}"})
_GAP = re.compile(r"[\s_\u2010-\u2015-]+")
"""What stands between the words of a relationship: spaces, underscores, hyphens and dashes."""


def _fault(value: Any) -> str | None:
    """Why `value` cannot name anything."""
    if fault := text_fault(value):
        return fault
    return "a placeholder" if value.strip().casefold() in _PLACEHOLDERS else None


def _name(value: Any, what: str, self_name: str) -> str:
    if fault := _fault(value):
        raise _Unfit(f"{what}: {fault}")
    return self_name if _folded(value) in _SELF else str(value.strip())


def _relationship(fields: Mapping[str, Any]) -> str:
    value = first_of(dict(fields), "relationship", _RELATIONSHIPS)
    if fault := _fault(value) or (None if _snake(value) else "no word in it"):
        raise _Unfit(f"relationship: {fault}")
    return _snake(value)


def _snake(value: str) -> str:
    return _GAP.sub("_", value.strip().strip("`").casefold()).strip("_")


def _folded(name: str) -> str:
    """Equal for names that differ only in case, spacing and underscores."""
    return " ".join(name.casefold().replace("_", " ").split())


def _end(name: str, self_name: str) -> bytes:
    """Equal for names that a model may take for one another when it copies them."""
    folded = _folded(name)
    return entity_key(_folded(self_name) if folded in _SELF else folded)


# --- entities --------------------------------------------------------------------------------------------------

_NAMES = ("name", "entity_name")
_TYPES = ("type", "category", "label")


def _is_entity(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and isinstance(first_of(item, "entity", _NAMES), str))


def _entity(item: Any, self_name: str) -> Entity:
    if isinstance(item, str):
        if item.lstrip().startswith(("[", "{")):
            raise _Unfit("JSON as a text instead of an entity")
        return Entity(_name(item, "entity", self_name))
    if not isinstance(item, dict):
        raise _Unfit(f"{kind_of(item)} instead of an entity")
    kind = first_of(item, "entity_type", _TYPES)
    name = _name(first_of(item, "entity", _NAMES), "entity", self_name)
    return Entity(name, "" if _fault(kind) else _snake(kind))


# --- relations -------------------------------------------------------------------------------------------------

_SOURCES = ("source_entity", "source_node", "subject", "from")
_DESTINATIONS = ("destination_entity", "destination_node", "target", "target_entity", "target_node", "object", "to")
_RELATIONSHIPS = ("relation", "relation_type", "predicate", "type")
LINK_WORDS = frozenset({"a", "an", "and", "as", "at", "by", "for", "from", "has", "in", "is", "of", "on", "the", "to"})
"""Words that relationships share without being alike."""


def _is_relation(item: Any) -> bool:
    if isinstance(item, list):
        return len(item) == 3 and all(isinstance(part, str) for part in item)
    return isinstance(item, dict) and any(
        isinstance(end, str)
        for end in (first_of(item, "source", _SOURCES), first_of(item, "destination", _DESTINATIONS))
    )


def _triplet(item: Any, self_name: str) -> Triplet:
    if isinstance(item, list) and len(item) == 3:
        item = dict(zip(("source", "relationship", "destination"), item, strict=True))
    if not isinstance(item, dict):
        raise _Unfit(f"{kind_of(item)} instead of a relation")
    source = _name(first_of(item, "source", _SOURCES), "source", self_name)
    destination = _name(first_of(item, "destination", _DESTINATIONS), "destination", self_name)
    return Triplet(source, _relationship(item), destination)


def _relation(item: Any, self_name: str) -> Triplet:
    said = _triplet(item, self_name)
    if entity_key(said.source) == entity_key(said.destination):
        raise _Unfit("a relation of an entity to itself")
    return said


def relation_of(source: str, relationship: str, destination: str, *, self_name: str) -> Triplet | str:
    """A relation of three texts, or why they are none."""
    try:
        item = {"source": source, "relationship": relationship, "destination": destination}
        return _relation(item, self_name)
    except _Unfit as why:
        return str(why)


def _joining(said: Triplet, existing: Sequence[Triplet], self_name: str) -> list[Triplet]:
    """The existing relations between the two entities of `said`."""
    ends = _end(said.source, self_name), _end(said.destination, self_name)
    return [each for each in existing if (_end(each.source, self_name), _end(each.destination, self_name)) == ends]


def _ended(item: Any, existing: Sequence[Triplet], self_name: str) -> Triplet:
    said = _triplet(item, self_name)
    near = [each for each in _joining(said, existing, self_name) if _snake(each.relationship) == said.relationship]
    return _only([each for each in near if each.key == said.key] or near)


def _refined(item: Any, existing: Sequence[Triplet], new: Sequence[Triplet], self_name: str) -> Refinement | None:
    said = _triplet(item, self_name)
    joining = _joining(said, existing, self_name)
    if not joining and _joining(said, new, self_name):
        return None
    if said.relationship in {_snake(each.relationship) for each in joining}:
        return None
    return Refinement(_only(_most_alike(joining, said.relationship)), said.relationship)


def _most_alike(relations: Sequence[Triplet], relationship: str) -> list[Triplet]:
    """Those of `relations` that share most words with `relationship`; all of them where none shares any."""
    words = set(relationship.split("_")) - LINK_WORDS
    shared = [len(words.intersection(_snake(each.relationship).split("_"))) for each in relations]
    return [each for each, count in zip(relations, shared, strict=True) if count == max(shared)]


def _only(relations: Sequence[Triplet]) -> Triplet:
    if len({each.key for each in relations}) != 1:
        raise _Unfit("several of the relations given may be meant" if relations else "a relation that was not given")
    return relations[0]


# --- fused -----------------------------------------------------------------------------------------------------

_FUSED = frozenset(FusedReply.model_fields)


def _part(answer: Mapping[str, Any], name: str) -> Reply:
    """One list of a fused answer, as a reply of its own; one that is missing reads as null, which is a problem."""
    return Reply(tool_calls=(ToolCall(name, {name: answer.get(name)}),))


def _read_known(
    answer: Mapping[str, Any], relations: Mapping[str, Triplet]
) -> tuple[Reading[Outdated], Reading[Refinement]]:
    """What is outdated, and what of the rest is refined."""
    listed = [read_list(_part(answer, name), names=(name,), is_item=_has_id) for name in ("outdated", "refined")]
    ended = _checked(listed[0], lambda item: Outdated(_given(item, relations)), fused_key)
    gone = {item.old for item in ended.items}
    rest = {id: relation for id, relation in relations.items() if relation not in gone}
    return ended, _checked(listed[1], lambda item: _refined_id(item, rest), refinement_key)


def _has_id(item: Any) -> bool:
    return isinstance(item, dict) and "id" in item


def _given(item: Any, relations: Mapping[str, Triplet]) -> Triplet:
    """The relation that was shown under an id."""
    id = item.get("id") if isinstance(item, dict) else item
    short = str(id).strip() if isinstance(id, str | int) else ""
    if short not in relations:
        raise _Unfit("an id that was not given, or is outdated")
    return relations[short]


def _refined_id(item: Any, relations: Mapping[str, Triplet]) -> Refinement | None:
    old = _given(item, relations)
    new = _relationship(item if isinstance(item, dict) else {})
    return None if new == _snake(old.relationship) else Refinement(old, new)
