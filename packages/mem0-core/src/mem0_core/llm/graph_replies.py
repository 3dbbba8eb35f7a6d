"""Read entities, relations, and outdated or refined relations from model replies.

As in `replies`, `_json_replies` finds the requested list, each item is checked, and unusable parts are reported in
`Reading.problems`. An empty list is an answer. For outdated and refined relations, so is a reply without tool calls and
JSON: that is how models say "nothing".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Entity, Operation, Triplet, entity_key
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.llm._json_replies import (
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
from mem0_core.llm.replies import (
    FactNumbers,
    OperationReply,
    SourcedFactReply,
    StatedFact,
    StrictModel,
    fact_key,
    operation_key,
    read_facts,
    read_operations,
)

T = TypeVar("T")


# --- schemas ---------------------------------------------------------------------------------------------------


class EntityReply(StrictModel):
    """A person or thing that the text names."""

    entity: str
    entity_type: str


class RelationReply(StrictModel):
    """A statement of two entities."""

    source: str
    relationship: str
    destination: str


class RefinedIdReply(StrictModel):
    """A known relation, and its more specific relationship."""

    id: str
    relationship: str


class FusedReply(StrictModel):
    """Everything a conversation changes."""

    facts: list[SourcedFactReply]
    memory: list[OperationReply]
    entities: list[EntityReply]
    relations: list[RelationReply]
    outdated: list[str]
    refined: list[RefinedIdReply]


# --- readers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refinement:
    """A known relation, and the more specific relationship that replaces it."""

    old: Triplet
    relationship: str


@dataclass(frozen=True, slots=True)
class Outdated:
    """A known relation that no longer holds; distinguishes it from a new relation in a fused reading."""

    old: Triplet


FusedItem = StatedFact | Operation | Entity | Triplet | Outdated | Refinement
"""One item of a fused reading; a `Triplet` is a relation."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused reading, sorted by kind."""

    facts: tuple[StatedFact, ...]
    operations: tuple[Operation, ...]
    entities: tuple[Entity, ...]
    relations: tuple[Triplet, ...]
    outdated: tuple[Triplet, ...]
    refined: tuple[Refinement, ...]


def read_entities(reply: Reply, *, self_name: str) -> Reading[Entity]:
    """Read the calls of ``extract_entities``, or ``{"entities": [{"entity", "entity_type"}]}``.

    Names are kept, except those by which users call themselves ("I", "me", "user"): they become `self_name`. Types are
    in ``snake_case``, and empty if missing.
    """
    listed = _find_items(reply, ("entities", "nodes"), _is_entity)
    return _check_items(listed, lambda item: _read_entity(item, self_name), entity_name_key)


def read_relations(reply: Reply, *, self_name: str) -> Reading[Triplet]:
    """Read the calls of ``establish_relationships``, or the same as JSON.

    The format is ``{"entities": [{"source", "relationship", "destination"}]}``. Relationships are in ``snake_case``;
    names are as in `read_entities`.
    """
    listed = _find_items(reply, _RELATIONS, _is_relation)
    return _check_items(listed, lambda item: _read_relation(item, self_name), triplet_key)


def read_outdated(reply: Reply, *, existing: Sequence[Triplet], self_name: str) -> Reading[Triplet]:
    """Read the calls of ``delete_graph_memory``, or ``{"deletions": [{...}]}``.

    Only relations of `existing` are returned, in their own spelling; the model may use other case, spacing and
    underscores. Any other relation is a problem.
    """
    listed = _accept_no_answer(reply, _find_items(reply, ("deletions", "outdated", *_RELATIONS), _is_relation))
    return _check_items(listed, lambda item: _read_ended_relation(item, existing, self_name), triplet_key)


def read_refined(
    reply: Reply, *, existing: Sequence[Triplet], new: Sequence[Triplet] = (), self_name: str
) -> Reading[Refinement]:
    """Read the calls of ``update_graph_memory``, or ``{"updates": [{...}]}``.

    A refinement names two entities that an existing relation joins. If several join them, the one that shares most
    words with the new relationship is meant; a tie is a problem. A refinement to a known relationship is ignored, and
    so is one of a `new` relation, which is not stored yet.
    """
    listed = _accept_no_answer(reply, _find_items(reply, ("updates", "refined", *_RELATIONS), _is_relation))
    return _check_items(listed, lambda item: _read_refinement(item, existing, new, self_name), refinement_key)


def read_fused(
    reply: Reply,
    *,
    ids: Mapping[str, str],
    texts: Mapping[str, str],
    relations: Mapping[str, Triplet],
    self_name: str,
    numbered: dict[Hashable, int] | None = None,
) -> Reading[FusedItem]:
    """Read ``{"facts", "memory", "entities", "relations", "outdated", "refined"}``, one answer for all steps.

    Every list is required, except the last two if no relations were shown. A relation is either outdated or refined;
    `split_fused` sorts the items.

    Args:
        ids, texts: short id -> id and text of a memory, as in `replies.read_operations`.
        relations: short id -> relation, as in the prompt.
        numbered: `fact_key` -> index of the facts of an earlier reply, to which those of this one are added. Operations
            number the facts of their own reply; in the reading they have the indexes of all facts.
    """
    found = _find_answer(reply)
    if not found.items:
        return Reading((), found.problems, found.raw)
    answer = found.items[0] if relations else {"outdated": [], "refined": [], **found.items[0]}
    facts = read_facts(_extract_list(answer, "facts"))
    indexes = {} if numbered is None else numbered
    for fact in facts.items:
        indexes.setdefault(fact_key(fact), len(indexes))
    operations = read_operations(
        _extract_list(answer, "memory"),
        ids=ids,
        texts=texts,
        facts=[fact.text for fact in facts.items],
        numbers=FactNumbers({fact.position: indexes[fact_key(fact)] for fact in facts.items}, indexes),
    )
    readings: list[Reading[Any]] = [
        operations,
        read_entities(_extract_list(answer, "entities"), self_name=self_name),
        read_relations(_extract_list(answer, "relations"), self_name=self_name),
        *_read_known(answer, relations),
    ]
    others = [replace(problem, loses_facts=False) for reading in readings for problem in reading.problems]
    return Reading(
        (*facts.items, *(item for reading in readings for item in reading.items)),
        (*found.problems, *facts.problems, *others),
        found.raw,
    )


def _find_answer(reply: Reply) -> Reading[dict[str, Any]]:
    """Return the one object of a fused reply, or no item and the reason."""
    found = read_json(reply)
    answers = [value for value in found.items if isinstance(value, dict) and not _FUSED.isdisjoint(value)]
    if any(answer != answers[0] for answer in answers):
        reason = f"{len(answers)} different answers in one reply"
        return Reading((), (*found.problems, problem_with(reason, answers, WHOLE_REPLY)), found.raw)
    if not answers:
        problems = [problem_with("no object with facts and the rest", value, WHOLE_REPLY) for value in found.items]
        return Reading((), (*found.problems, *problems), found.raw)
    return Reading((answers[0],), found.problems, found.raw)


def split_fused(items: Sequence[FusedItem]) -> Fused:
    """Sort the items of a fused reading by kind."""
    return Fused(
        facts=tuple(item for item in items if isinstance(item, StatedFact)),
        operations=tuple(item for item in items if isinstance(item, Operation)),
        entities=tuple(item for item in items if isinstance(item, Entity)),
        relations=tuple(item for item in items if isinstance(item, Triplet)),
        outdated=tuple(item.old for item in items if isinstance(item, Outdated)),
        refined=tuple(item for item in items if isinstance(item, Refinement)),
    )


def entity_name_key(entity: Entity) -> Hashable:
    """Return a key that is equal for entity names that differ only in case and spacing."""
    return entity_key(entity.name)


def triplet_key(triplet: Triplet) -> Hashable:
    """Return a key that is equal for relations that differ only in case and spacing."""
    return triplet.key


def refinement_key(refinement: Refinement) -> Hashable:
    """Return a key that is equal for refinements of one relation, which exclude one another."""
    return "known", refinement.old.key


def fused_key(item: FusedItem) -> Hashable:
    """Return the key of an item of any kind; outdated and refined forms of one relation exclude one another."""
    match item:
        case StatedFact():
            return "fact", fact_key(item)
        case Operation():
            return operation_key(item)
        case Entity():
            return "entity", entity_name_key(item)
        case Triplet():
            return "relation", triplet_key(item)
        case Outdated():
            return "known", item.old.key
        case Refinement():
            return refinement_key(item)


# --- lists and their items -------------------------------------------------------------------------------------

_RELATIONS = ("entities", "relations", "relationships", "triplets")


class _UnusableItemError(Exception):
    """An item that cannot be used; the text is the reason."""


def _find_items(reply: Reply, names: tuple[str, ...], is_item: Callable[[Any], bool]) -> Reading[Any]:
    """Return `read_list`, with the items of calls that a model wrote as text."""
    listed = read_list(reply, names=(*names, "tool_calls"), is_item=is_item)
    items = tuple(part for item in listed.items for part in _unwrap_call(item, names))
    return Reading(items, listed.problems, listed.raw)


def _unwrap_call(item: Any, names: tuple[str, ...]) -> list[Any]:
    """Return an item, or the items of a call written as text: ``{"name", "arguments": {"entities": [...]}}``."""
    arguments = item.get("arguments", item.get("parameters")) if isinstance(item, dict) else None
    if not isinstance(arguments, dict):
        return [item]
    inner = first_of(arguments, names[0], names[1:])
    return inner if isinstance(inner, list) else [arguments]


def _accept_no_answer(reply: Reply, listed: Reading[Any]) -> Reading[Any]:
    """Drop the problem of a reply that means "nothing": no tool call and no JSON."""
    said_nothing = not reply.tool_calls and {problem.reason for problem in listed.problems} <= {EMPTY, NO_JSON}
    return replace(listed, problems=()) if said_nothing else listed


def _check_items(listed: Reading[Any], check: Callable[[Any], T | None], key: Callable[[T], Hashable]) -> Reading[T]:
    """Check each item. The first of several with one key is kept; a different second refinement is a problem."""
    kept: dict[Hashable, T] = {}
    problems = list(listed.problems)
    for item in listed.items:
        try:
            read = check(item)
        except _UnusableItemError as why:
            problems.append(problem_with(str(why), item))
            continue
        if read is not None and (first := kept.setdefault(key(read), read)) != read and isinstance(read, Refinement):
            problems.append(problem_with("a second refinement of one relation", item, key(first)))
    return Reading(tuple(kept.values()), tuple(problems), listed.raw)


# --- names -----------------------------------------------------------------------------------------------------

_SELF = frozenset({"i", "me", "my", "mine", "myself", "user", "the user", "user id"})
_PLACEHOLDERS = frozenset({"none", "null", "n/a", "...", "\N{HORIZONTAL ELLIPSIS}"})
_GAP = re.compile(r"[\s_\u2010-\u2015-]+")
"""Separators between the words of a relationship: spaces, underscores, hyphens and dashes."""


def _find_fault(value: Any) -> str | None:
    """Return the reason why `value` cannot be a name, or None."""
    if fault := text_fault(value):
        return fault
    return "a placeholder" if value.strip().casefold() in _PLACEHOLDERS else None


def _read_name(value: Any, what: str, self_name: str) -> str:
    if fault := _find_fault(value):
        raise _UnusableItemError(f"{what}: {fault}")
    return self_name if _fold_name(value) in _SELF else str(value.strip())


def _read_relationship(fields: Mapping[str, Any]) -> str:
    value = first_of(dict(fields), "relationship", _RELATIONSHIPS)
    if fault := _find_fault(value) or (None if _to_snake_case(value) else "no word in it"):
        raise _UnusableItemError(f"relationship: {fault}")
    return _to_snake_case(value)


def _to_snake_case(value: str) -> str:
    return _GAP.sub("_", value.strip().strip("`").casefold()).strip("_")


def _fold_name(name: str) -> str:
    """Fold case, spacing and underscores of a name."""
    return " ".join(name.casefold().replace("_", " ").split())


def _end_key(name: str, self_name: str) -> bytes:
    """Return a key that is equal for names that a model may confuse when it copies them."""
    folded = _fold_name(name)
    return entity_key(_fold_name(self_name) if folded in _SELF else folded)


# --- entities --------------------------------------------------------------------------------------------------

_NAMES = ("name", "entity_name")
_TYPES = ("type", "category", "label")


def _is_entity(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and isinstance(first_of(item, "entity", _NAMES), str))


def _read_entity(item: Any, self_name: str) -> Entity:
    if isinstance(item, str):
        if item.lstrip().startswith(("[", "{")):
            raise _UnusableItemError("JSON as a text instead of an entity")
        return Entity(_read_name(item, "entity", self_name))
    if not isinstance(item, dict):
        raise _UnusableItemError(f"{kind_of(item)} instead of an entity")
    kind = first_of(item, "entity_type", _TYPES)
    name = _read_name(first_of(item, "entity", _NAMES), "entity", self_name)
    return Entity(name, "" if _find_fault(kind) else _to_snake_case(kind))


# --- relations -------------------------------------------------------------------------------------------------

_SOURCES = ("source_entity", "source_node", "subject", "from")
_DESTINATIONS = ("destination_entity", "destination_node", "target", "target_entity", "target_node", "object", "to")
_RELATIONSHIPS = ("relation", "relation_type", "predicate", "type")
LINK_WORDS = frozenset({"a", "an", "and", "as", "at", "by", "for", "from", "has", "in", "is", "of", "on", "the", "to"})
"""Words that do not make relationships similar."""


def _is_relation(item: Any) -> bool:
    if isinstance(item, list):
        return len(item) == 3 and all(isinstance(part, str) for part in item)
    return isinstance(item, dict) and any(
        isinstance(end, str)
        for end in (first_of(item, "source", _SOURCES), first_of(item, "destination", _DESTINATIONS))
    )


def _read_triplet(item: Any, self_name: str) -> Triplet:
    if isinstance(item, list) and len(item) == 3:
        item = dict(zip(("source", "relationship", "destination"), item, strict=True))
    if not isinstance(item, dict):
        raise _UnusableItemError(f"{kind_of(item)} instead of a relation")
    source = _read_name(first_of(item, "source", _SOURCES), "source", self_name)
    destination = _read_name(first_of(item, "destination", _DESTINATIONS), "destination", self_name)
    return Triplet(source, _read_relationship(item), destination)


def _read_relation(item: Any, self_name: str) -> Triplet:
    said = _read_triplet(item, self_name)
    if entity_key(said.source) == entity_key(said.destination):
        raise _UnusableItemError("a relation of an entity to itself")
    return said


def build_triplet(source: str, relationship: str, destination: str, *, self_name: str) -> Triplet | str:
    """Return the relation of three texts, or the reason why there is none."""
    try:
        item = {"source": source, "relationship": relationship, "destination": destination}
        return _read_relation(item, self_name)
    except _UnusableItemError as why:
        return str(why)


def _find_joining(said: Triplet, existing: Sequence[Triplet], self_name: str) -> list[Triplet]:
    """Return the existing relations between the two entities of `said`."""
    ends = _end_key(said.source, self_name), _end_key(said.destination, self_name)
    return [
        each for each in existing if (_end_key(each.source, self_name), _end_key(each.destination, self_name)) == ends
    ]


def _read_ended_relation(item: Any, existing: Sequence[Triplet], self_name: str) -> Triplet:
    said = _read_triplet(item, self_name)
    near = [
        each
        for each in _find_joining(said, existing, self_name)
        if _to_snake_case(each.relationship) == said.relationship
    ]
    return _take_only([each for each in near if each.key == said.key] or near)


def _read_refinement(
    item: Any, existing: Sequence[Triplet], new: Sequence[Triplet], self_name: str
) -> Refinement | None:
    said = _read_triplet(item, self_name)
    joining = _find_joining(said, existing, self_name)
    if not joining and _find_joining(said, new, self_name):
        return None
    if said.relationship in {_to_snake_case(each.relationship) for each in joining}:
        return None
    return Refinement(_take_only(_find_most_similar(joining, said.relationship)), said.relationship)


def _find_most_similar(relations: Sequence[Triplet], relationship: str) -> list[Triplet]:
    """Return the relations that share most words with `relationship`; all of them if none shares any."""
    words = set(relationship.split("_")) - LINK_WORDS
    shared = [len(words.intersection(_to_snake_case(each.relationship).split("_"))) for each in relations]
    return [each for each, count in zip(relations, shared, strict=True) if count == max(shared)]


def _take_only(relations: Sequence[Triplet]) -> Triplet:
    if len({each.key for each in relations}) != 1:
        raise _UnusableItemError(
            "several of the relations given may be meant" if relations else "a relation that was not given"
        )
    return relations[0]


# --- fused -----------------------------------------------------------------------------------------------------

_FUSED = frozenset(FusedReply.model_fields)


def _extract_list(answer: Mapping[str, Any], name: str) -> Reply:
    """Return one list of a fused answer as a reply; a missing list reads as null, which is a problem."""
    return Reply(tool_calls=(ToolCall(name, {name: answer.get(name)}),))


def _read_known(
    answer: Mapping[str, Any], relations: Mapping[str, Triplet]
) -> tuple[Reading[Outdated], Reading[Refinement]]:
    """Read the outdated relations, and the refinements of the others."""
    listed = [
        read_list(_extract_list(answer, name), names=(name,), is_item=_has_id) for name in ("outdated", "refined")
    ]
    ended = _check_items(listed[0], lambda item: Outdated(_find_shown_relation(item, relations)), fused_key)
    gone = {item.old for item in ended.items}
    rest = {id: relation for id, relation in relations.items() if relation not in gone}
    return ended, _check_items(listed[1], lambda item: _read_refinement_by_id(item, rest), refinement_key)


def _has_id(item: Any) -> bool:
    return isinstance(item, dict) and "id" in item


def _find_shown_relation(item: Any, relations: Mapping[str, Triplet]) -> Triplet:
    """Return the relation that the prompt shows under an id."""
    id = item.get("id") if isinstance(item, dict) else item
    short = str(id).strip() if isinstance(id, str | int) else ""
    if short not in relations:
        raise _UnusableItemError("an id that was not given, or is outdated")
    return relations[short]


def _read_refinement_by_id(item: Any, relations: Mapping[str, Triplet]) -> Refinement | None:
    old = _find_shown_relation(item, relations)
    new = _read_relationship(item if isinstance(item, dict) else {})
    return None if new == _to_snake_case(old.relationship) else Refinement(old, new)
