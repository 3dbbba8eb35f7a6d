"""Packing: what of all that could be shown is put into a prompt, within its budget of tokens.

`find_newer_restatements` finds near-duplicates; `pack_context` chooses and writes: best first, for what stands late in
a long block is read worse, and what is too long is left out and the next tried. Of near-duplicates the newest is
shown, in the place of the best of them, and of relations those that no memory shown says already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from mem0_core.domain.records import Hit, MemoryItem, Message, Relation, Scope
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.messages import format_transcript
from mem0_core.language.near_duplicates import MIN_DUPLICATE_COSINE, find_restatements
from mem0_core.llm.prompts import CITATIONS_REQUEST, memories_block, relation_line, summary_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ContextCandidates", "PackedContext", "PromptFormat", "find_newer_restatements", "pack_context"]

_MESSAGE_SHARE = 0.4  # the share of a budget of which recent messages are sure, where there are enough of them
_RELATION_SHARE = 0.15
_UNCOUNTED_SHARE = 0.5  # what takes no more of a budget fits line by line too, however a count rounds


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """How a prompt is written, and how much of it there may be.

    Attributes:
        count: tokens of a text.
        line: how a memory is written, with the number to cite it by, if any.
        introduction: what the model is told about the block.
        citations: whether lines are numbered, and the model is asked to cite them.
    """

    max_tokens: int
    count: Callable[[str], int]
    line: Callable[[Hit, int | None], str]
    introduction: str
    citations: bool = False

    def format_block(self, lines: Sequence[str]) -> str:
        asked = f"{self.introduction} {CITATIONS_REQUEST}" if self.citations else self.introduction
        return memories_block(lines, introduction=asked)


@dataclass(frozen=True, slots=True)
class ContextCandidates:
    """All that could be shown.

    Attributes:
        summary: of the conversation so far; empty where there is none.
        pinned: memories that are always shown.
        hits: other memories, best first.
        limit: how many of `hits` at most.
        newer: for ids of `hits` the ids of newer memories that say all they say, newest first.
        relations: best first, with their scores.
        known: ids of memories that are in the prompt anyway.
        messages: the last ones, oldest first.
    """

    summary: str = ""
    pinned: Sequence[Hit] = ()
    hits: Sequence[Hit] = ()
    limit: int = 0
    newer: Mapping[str, Sequence[str]] = field(default_factory=dict)
    relations: Sequence[tuple[Relation, float]] = ()
    known_ids: Set[str] = frozenset()
    messages: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class PackedContext:
    """What fits; `text` holds all but the messages, as a block for the system prompt.

    Attributes:
        hits: what is pinned, then the others, best first.
        citations: ids of memories by the numbers in `text`.
    """

    text: str
    summary: str
    hits: list[Hit]
    relations: list[tuple[Relation, float]]
    messages: list[Message]
    tokens: int
    citations: dict[str, str]


# --- near-duplicates ---------------------------------------------------------------------------------------------


def find_newer_restatements(
    ports: Ports, hits: Sequence[Hit], scope: Scope, *, as_of: str | None = None
) -> Flow[dict[str, list[str]]]:
    """For ids of hits the ids of those that are newer and say all that they say, newest first.

    Compared is what one speaker said to one agent, of one user, or else of one run: by their words, and by the vectors
    that the store has of them. Where it has none (of a message that is not remembered yet), the words must be the same.
    """
    newest_first = sorted(hits, key=_recency_key, reverse=True)
    pairs = _pair_by_words(newest_first[::-1])
    if not pairs:
        return {}
    vectors = yield from _load_vectors(ports, [hit.item for new, old, _ in pairs for hit in (new, old)], scope, as_of)
    nearer: dict[str, list[str]] = {}
    for new, old, same_words in pairs:
        mine, theirs = vectors.get(new.item.id), vectors.get(old.item.id)
        if same_words if mine is None or theirs is None else float(mine @ theirs) >= MIN_DUPLICATE_COSINE:
            nearer.setdefault(old.item.id, []).append(new.item.id)
    found: dict[str, list[str]] = {}
    for hit in newest_first:  # what says all that a newer one says, says all that the older one does
        reached = {each for newer in nearer.get(hit.item.id, ()) for each in (newer, *found.get(newer, ()))}
        if reached:
            found[hit.item.id] = [other.item.id for other in newest_first if other.item.id in reached]
    return found


def _pair_by_words(oldest_first: Sequence[Hit]) -> list[tuple[Hit, Hit, bool]]:
    """Pairs of a hit and an older one all of whose words it has, and whether it has no others."""
    voices: dict[tuple[str | None, ...], list[Hit]] = {}
    for hit in oldest_first:
        voices.setdefault(_speaker_key(hit.item), []).append(hit)
    return [
        (said[new], said[old], same_words)
        for said in voices.values()
        for new, old, same_words in find_restatements([hit.item.text for hit in said])
    ]


def _speaker_key(item: MemoryItem) -> tuple[str | None, ...]:
    """Equal for what one speaker said of one user to one agent; where no user is named, each run has its own."""
    scope = item.scope
    run = scope.run_id if scope.user_id is None else None
    return scope.user_id, scope.agent_id, run, item.actor_id, item.role, item.memory_type


def _recency_key(hit: Hit) -> tuple[str, int]:
    """Higher for what is newer; what is not in the store yet is newest."""
    item = hit.item
    return item.updated_at or item.created_at, sys.maxsize if item.row is None else item.row


def _load_vectors(
    ports: Ports, items: Sequence[MemoryItem], scope: Scope, as_of: str | None
) -> Flow[dict[str, NDArray[np.float32]]]:
    """By id the vectors of those items that the store has vectors of."""
    ids = {item.row: item.id for item in items if item.row is not None}
    rows, vectors = yield from do(ports.store.vectors, list(ids))
    found = {ids[row]: vector for row, vector in zip(rows.tolist(), vectors, strict=True)}
    if as_of is not None and any(item.row is None for item in items):
        past, theirs = yield from do(ports.store.past_memories, scope, as_of=as_of)
        found |= {item.id: vector for item, vector in zip(past, theirs, strict=True)}
    return found


# --- the budget --------------------------------------------------------------------------------------------------


def pack_context(found: ContextCandidates, form: PromptFormat) -> PackedContext:
    """What fits of all that was found, written.

    Recent messages come first, up to two fifths of the budget, then what is pinned, the summary, memories,
    relations (which are sure of a seventh, so far as they say what no memory found says), and earlier messages.
    """
    form = replace(form, line=_cache_lines(form.line))
    whole = _choose(found, form, _UnlimitedBudget())
    if whole.tokens <= form.max_tokens * _UNCOUNTED_SHARE:  # as mostly: then nothing has to be counted by itself
        return whole
    packed = _choose(found, form, _TokenBudget(form))
    while packed.tokens > form.max_tokens:  # a count need not add up: some texts take more together than by themselves
        packed = _shorten(packed, form)
    return packed


def _choose(found: ContextCandidates, form: PromptFormat, room: _UnlimitedBudget) -> PackedContext:
    """What there is room for, written."""
    number = len(found.pinned) + len(found.hits) + len(found.relations) if form.citations else None
    said: set[int] = set()
    said |= room.messages(found.messages, said, upto=form.max_tokens * _MESSAGE_SHARE)
    pinned = [hit for hit in found.pinned if room.line(form.line(hit, number))]
    summary = found.summary if found.summary and room.line(summary_line(found.summary)) else ""
    hits = [*pinned, *_choose_hits(found, {hit.item.id for hit in pinned}, room, form, number)]
    seen = found.known_ids | _find_covered_ids({hit.item.id for hit in hits}, found)
    relations = [
        pair
        for pair in found.relations
        if _is_new_relation(pair[0], seen) and room.line(relation_line(pair[0], number))
    ]
    said |= room.messages(found.messages, said, upto=form.max_tokens)
    messages = [message for place, message in enumerate(found.messages) if place in said]
    return _write_context(form, summary, hits, relations, messages)


def _cache_lines(line: Callable[[Hit, int | None], str]) -> Callable[[Hit, int | None], str]:
    """`line`, which writes each memory once under each number, however often it is asked for."""
    written: dict[tuple[str, int | None], str] = {}

    def remembered(hit: Hit, number: int | None) -> str:
        key = hit.item.id, number
        if key not in written:
            written[key] = line(hit, number)
        return written[key]

    return remembered


def _choose_hits(
    found: ContextCandidates, pinned: Set[str], room: _UnlimitedBudget, form: PromptFormat, number: int | None
) -> list[Hit]:
    """The best hits that fit, each near-duplicate once: the newest that fits, in the place of the best."""
    by_id = {hit.item.id: hit for hit in found.hits}
    everything = found.known_ids | pinned | by_id.keys()
    upto = room.memory_budget(
        [relation_line(pair[0], number) for pair in found.relations if _is_new_relation(pair[0], everything)]
    )
    shown: dict[str, Hit] = {}
    for hit in found.hits:
        if len(shown) == found.limit:
            break
        sayings = [*found.newer.get(hit.item.id, ()), hit.item.id]
        if not pinned.isdisjoint(sayings) or not shown.keys().isdisjoint(sayings):
            continue
        fitting = (by_id[each] for each in sayings if each in by_id)
        newest = next((each for each in fitting if room.line(form.line(each, number), upto=upto)), None)
        if newest is not None:
            shown[newest.item.id] = newest
    return list(shown.values())


def _find_covered_ids(shown: Set[str], found: ContextCandidates) -> set[str]:
    """Ids of what is shown, and of what it says as well."""
    return {*shown, *(older for older, newer in found.newer.items() if not shown.isdisjoint(newer))}


def _is_new_relation(relation: Relation, seen: Set[str]) -> bool:
    """Whether a relation says what the memories that are seen do not say already."""
    return not (relation.memories and seen >= set(relation.memories))


class _UnlimitedBudget:
    """Room for everything."""

    def line(self, text: str, *, upto: float = inf) -> bool:
        """Whether a line fits into the block below `upto`, or at all; if it does, it takes its place."""
        return bool(text)

    def messages(self, messages: Sequence[Message], taken: Set[int], *, upto: float) -> set[int]:
        """Places of the messages that fit besides those that were taken, the newest first."""
        return {place for place, message in enumerate(messages) if format_transcript([message])}

    def memory_budget(self, relations: Sequence[str]) -> float:
        """Up to where memories go, beside the relations found."""
        return inf


class _TokenBudget(_UnlimitedBudget):
    """What is left of a budget of tokens."""

    def __init__(self, form: PromptFormat) -> None:
        self._form = form
        self._used_tokens = 0
        self._frame_tokens: int | None = form.count(
            form.format_block([""])
        )  # of a block around the first line; then paid for

    def line(self, text: str, *, upto: float = inf) -> bool:
        if not self._take(text, self._frame_tokens or 0, min(upto, self._form.max_tokens)):
            return False
        self._frame_tokens = None
        return True

    def messages(self, messages: Sequence[Message], taken: Set[int], *, upto: float) -> set[int]:
        left = (place for place in reversed(range(len(messages))) if place not in taken)
        return {place for place in left if self._take(format_transcript([messages[place]]), 0, upto)}

    def memory_budget(self, relations: Sequence[str]) -> float:
        most = self._form.max_tokens
        return most - min(sum(self._form.count(line) + 1 for line in relations), most * _RELATION_SHARE)

    def _take(self, text: str, more: int, upto: float) -> bool:
        cost = self._form.count(text) + 1 + more  # with its line break
        if not text or self._used_tokens + cost > upto:
            return False
        self._used_tokens += cost
        return True


def _write_context(
    form: PromptFormat,
    summary: str,
    hits: list[Hit],
    relations: list[tuple[Relation, float]],
    messages: list[Message],
) -> PackedContext:
    """What was chosen as text. A relation is cited by a memory it came from: one that is shown, if there is one."""
    numbers: dict[str, int] = {}
    lines = [summary_line(summary)] if summary else []
    lines += [form.line(hit, _assign_citation(hit.item.id, numbers, form)) for hit in hits]
    for relation, _ in relations:
        source = next((each for each in relation.memories if each in numbers), next(iter(relation.memories), None))
        lines.append(relation_line(relation, _assign_citation(source, numbers, form)))
    text = form.format_block(lines)
    tokens = sum(form.count(each) for each in (text, *(format_transcript([message]) for message in messages)) if each)
    citations = {str(number): memory_id for memory_id, number in numbers.items()}
    return PackedContext(text, summary, hits, relations, messages, tokens, citations)


def _assign_citation(memory_id: str | None, numbers: dict[str, int], form: PromptFormat) -> int | None:
    """The number of a memory in this prompt; a new one where it has none."""
    return None if memory_id is None or not form.citations else numbers.setdefault(memory_id, len(numbers) + 1)


def _shorten(packed: PackedContext, form: PromptFormat) -> PackedContext:
    """The same without what matters least."""
    summary, hits, relations, messages = packed.summary, packed.hits, packed.relations, packed.messages
    if relations:
        relations = relations[:-1]
    elif hits:
        hits = hits[:-1]
    elif messages:
        messages = messages[1:]
    else:
        summary = ""
    return _write_context(form, summary, hits, relations, messages)
