"""Accounting of facts: which operation of a reply settles which fact, and which facts none settles; pure functions.

A model names the facts of an operation by number. A reply without numbers (mem0's own form) is matched by the words of
its texts. Limits on the changes of one reply are applied here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Event, Operation, SkippedItem, same_fact_key
from mem0_core.language.terms import extract_names, extract_terms, split_words, term_set

_ADDITIONS_PER_FACT = 2  # a fact may be split
_MIN_ADDITIONS = 10  # additions that any reply may make, if its facts are few
_MIN_TOLD_SHARE = 0.5  # of a fact's terms, in a new text that names the fact
_MIN_DELETED_SHARE = 0.5  # of a fact's terms, in the deleted memory, for a deletion that names no facts
_MAX_SHOWN_ITEMS = 20  # refused operations that a note lists

_NEGATION = re.compile(r"\b(?:not|no|never|none|without|neither|nor|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_ARTICLES = frozenset({"a", "an", "the", "user"})


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """Limits on the changes of one reply.

    Attributes:
        changes: additions and updates.
        deletions: deletions of memories.
    """

    changes: int
    deletions: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """The usable operations of a reply, and the facts that none of them settles.

    Attributes:
        operations: operations within the limits, each with the facts that it settles.
        unsettled: indexes of the other facts.
        skipped: refused operations.
    """

    operations: tuple[Operation, ...]
    unsettled: tuple[int, ...]
    skipped: tuple[SkippedItem, ...] = ()


def settle_facts(
    operations: Sequence[Operation], facts: Sequence[str], memories: Mapping[str, str], limits: ReplyLimits
) -> Settlement:
    """Assign the facts to the operations that settle them.

    Args:
        operations: as read from the reply; each may name its facts.
        facts: texts of the facts.
        memories: id -> text of the memories that the model was shown.
    """
    assigned = _assign_facts(operations, facts, memories)
    allowed = _select_allowed(assigned, len(facts), limits)
    skipped = _report_refused([operation for place, operation in enumerate(operations) if place not in allowed], limits)
    if skipped:
        assigned = _assign_facts([operations[place] for place in sorted(allowed)], facts, memories)
    named = {operation.memory_id for operation in assigned}
    settled = {index for operation in assigned for index in operation.facts}
    unsettled = [index for index in range(len(facts)) if index not in settled]
    if unsettled:
        known = {same_fact_key(text): (text, id) for id, text in memories.items() if id not in named}
        repeated = {index: known[key] for index in unsettled if (key := same_fact_key(facts[index])) in known}
        assigned += [Operation(Event.NONE, *found, facts=(index,)) for index, found in repeated.items()]
        unsettled = [index for index in unsettled if index not in repeated]
    return Settlement(tuple(assigned), tuple(unsettled), skipped)


# --- assignment --------------------------------------------------------------------------------------------------


def _assign_facts(
    operations: Sequence[Operation], facts: Sequence[str], memories: Mapping[str, str]
) -> list[Operation]:
    """Return the operations with the facts that each settles: the named ones, and for others the first that fits."""
    named = [_check_named(operation, facts) for operation in operations]
    left = sorted(set(range(len(facts))).difference(*named))
    by_preference = sorted(range(len(operations)), key=lambda place: _PREFERENCE.index(operations[place].event))
    for index in left:
        for place in by_preference:
            if _settles_by_text(operations[place], facts[index], memories):
                named[place] = (*named[place], index)
                break
    return [replace(operation, facts=own) for operation, own in zip(operations, named, strict=True)]


_PREFERENCE = (Event.ADD, Event.UPDATE, Event.NONE, Event.DELETE)


def _check_named(operation: Operation, facts: Sequence[str]) -> tuple[int, ...]:
    """Return the facts that an operation names; a new text has to tell something of such a fact."""
    named = tuple(dict.fromkeys(index for index in operation.facts if 0 <= index < len(facts)))
    if operation.event in (Event.DELETE, Event.NONE):
        return named
    return tuple(index for index in named if _tells(operation.text, facts[index]))


def _tells(text: str, fact: str) -> bool:
    """Return True if a text has the names of a fact, and half of the other terms after the first, mostly a verb.

    "Lives in Porto" tells of "Moved to Porto", but "Likes tea" does not tell of "Likes milk".
    """
    if same_fact_key(text) == same_fact_key(fact):
        return True
    terms = list(dict.fromkeys(extract_terms(fact)))
    later = terms[1:] or terms
    stated = term_set(text)
    told = sum(term in stated for term in later)
    return bool(told) and told >= _MIN_TOLD_SHARE * len(later) and _names(fact) <= set(split_words(text))


def _settles_by_text(operation: Operation, fact: str, memories: Mapping[str, str]) -> bool:
    """Return True if an operation that does not name a fact settles it, by its text or that of its memory."""
    if operation.event in (Event.ADD, Event.UPDATE):
        return _restates(operation.text, fact)
    if operation.memory_id is None:
        return bool(operation.text) and _restates(operation.text, fact)
    text = memories.get(operation.memory_id, operation.text)
    return _holds(text, fact) if operation.event is Event.NONE else _contradicts(text, fact)


def _restates(text: str, fact: str) -> bool:
    """Return True if a text has all the terms of a fact."""
    if same_fact_key(text) == same_fact_key(fact):
        return True
    terms = term_set(fact)
    return bool(terms) and terms <= term_set(text) and _is_negated(text) == _is_negated(fact)


def _holds(memory: str, fact: str) -> bool:
    """Return True if a memory that stays as it is has all the words of a fact, also "has" and "had"."""
    return _restates(memory, fact) and set(split_words(fact)) - _ARTICLES <= set(split_words(memory))


def _contradicts(memory: str, fact: str) -> bool:
    """Return True if a fact does no more than contradict a deleted memory: it has most of its words and nothing new.

    "Dislikes cheese pizza" ends with the deletion of "Loves cheese pizza". "Moved from Rome to Milan" does not end with
    that of "Moved to Rome", and "Likes tea" does not end with that of "Likes tea".
    """
    terms = term_set(fact)
    if not terms or _restates(memory, fact) or len(terms & term_set(memory)) < _MIN_DELETED_SHARE * len(terms):
        return False
    return _names(fact).union(_NUMBER.findall(fact)) <= set(split_words(memory))


@text_cache(4096)
def _is_negated(text: str) -> bool:
    return _NEGATION.search(text) is not None


@text_cache(4096)
def _names(text: str) -> frozenset[str]:
    """Return the words of the names in a text; its first word is in upper case without being one."""
    return frozenset(word for name in extract_names(text) for word in name.split()).difference(split_words(text)[:1])


# --- limits ------------------------------------------------------------------------------------------------------


def _select_allowed(operations: Sequence[Operation], facts: int, limits: ReplyLimits) -> set[int]:
    """Return the positions of the operations within the limits; those that settle a fact come first."""
    additions = min(limits.changes, max(_ADDITIONS_PER_FACT * facts, _MIN_ADDITIONS))
    allowed: set[int] = set()
    left = {"additions": additions, "changes": limits.changes, "deletions": limits.deletions}
    for place in sorted(range(len(operations)), key=lambda place: not operations[place].facts):
        used = _LIMITS_OF[operations[place].event]
        if all(left[name] > 0 for name in used):
            allowed.add(place)
            for name in used:
                left[name] -= 1
    return allowed


_LIMITS_OF: Mapping[Event, tuple[str, ...]] = {
    Event.ADD: ("additions", "changes"),
    Event.UPDATE: ("changes",),
    Event.DELETE: ("deletions",),
    Event.NONE: (),
}


def _report_refused(refused: Iterable[Operation], limits: ReplyLimits) -> tuple[SkippedItem, ...]:
    """Return one note for the refused deletions, and one for the other refused operations."""
    deletions: list[str] = []
    others: list[str] = []
    for operation in refused:
        (deletions if operation.event is Event.DELETE else others).append(operation.text)
    notes = []
    if deletions:
        reason = f"operations: {len(deletions)} deletions refused; max_deletions allows {limits.deletions} per reply"
        notes.append(SkippedItem(reason=reason, item=deletions[:_MAX_SHOWN_ITEMS]))
    if others:
        reason = (
            f"operations: {len(others)} additions and updates refused: too many for the facts of this add"
            f" (max_changes allows {limits.changes} per reply)"
        )
        notes.append(SkippedItem(reason=reason, item=others[:_MAX_SHOWN_ITEMS]))
    return tuple(notes)
