"""Context for a prompt: the memories, relations and messages that fit into its budget of tokens.

`find_newer_restatements` finds near-duplicates, and `pack_context` selects and formats. The best memories come first,
because models read the end of a long block less reliably. A memory that is too long is skipped and the next one tried.
Of near-duplicates only the newest is shown, at the rank of the best; of relations, only those that no shown memory
states.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Hit, MemoryItem, Message, Relation, Scope
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.messages import format_transcript
from mem0_core.language.near_duplicates import MIN_DUPLICATE_COSINE, find_restatements
from mem0_core.llm.prompts import CITATIONS_REQUEST, memories_block, relation_line, summary_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MESSAGE_SHARE = 0.4  # share of the budget that is reserved for recent messages
_RELATION_SHARE = 0.15
_UNCOUNTED_SHARE = 0.5  # below this share of the budget, counting line by line would find that all fits too


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """Format of a prompt, and its budget.

    Attributes:
        count: returns the number of tokens in a text.
        line: formats a memory, with the number to cite it by, if any.
        introduction: instruction for the model, above the block.
        citations: True to number the lines and to ask the model to cite them.
    """

    max_tokens: int
    count: Callable[[str], int]
    line: Callable[[Hit, int | None], str]
    introduction: str
    citations: bool = False

    def format_block(self, lines: Sequence[str]) -> str:
        introduction = f"{self.introduction} {CITATIONS_REQUEST}" if self.citations else self.introduction
        return memories_block(lines, introduction=introduction)


@dataclass(frozen=True, slots=True)
class ContextCandidates:
    """Everything that could be shown.

    Attributes:
        summary: summary of the conversation so far; may be empty.
        pinned: memories that are always shown.
        hits: other memories, best first.
        limit: maximum number of `hits` to show.
        newer: for ids of `hits` the ids of newer memories that restate them, newest first.
        relations: relations with their scores, best first.
        known_ids: ids of memories that the prompt contains already.
        messages: the last messages, oldest first.
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
    """The candidates that fit.

    Attributes:
        text: all of them but the messages, as a block for the system prompt.
        hits: pinned memories, then the others, best first.
        tokens: number of tokens in `text` and `messages`.
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
    """Return for ids of hits the ids of the newer hits that restate them, newest first.

    Compared are memories of one speaker to one agent, of one user or else of one run: by their words, and by their
    vectors in the store. Without vectors (of a message that is not remembered yet) the words must be the same.
    """
    newest_first = sorted(hits, key=_recency_key, reverse=True)
    pairs = _pair_by_words(newest_first[::-1])
    if not pairs:
        return {}
    vectors = yield from _load_vectors(ports, [hit.item for new, old, _ in pairs for hit in (new, old)], scope, as_of)
    newer_by_old: dict[str, list[str]] = {}
    for new, old, has_same_words in pairs:
        new_vector, old_vector = vectors.get(new.item.id), vectors.get(old.item.id)
        if new_vector is None or old_vector is None:
            is_restated = has_same_words
        else:
            is_restated = float(new_vector @ old_vector) >= MIN_DUPLICATE_COSINE
        if is_restated:
            newer_by_old.setdefault(old.item.id, []).append(new.item.id)
    restatements: dict[str, list[str]] = {}
    for hit in newest_first:  # restatement is transitive
        direct = newer_by_old.get(hit.item.id, ())
        reached = {each for newer in direct for each in (newer, *restatements.get(newer, ()))}
        if reached:
            restatements[hit.item.id] = [other.item.id for other in newest_first if other.item.id in reached]
    return restatements


def _pair_by_words(oldest_first: Sequence[Hit]) -> list[tuple[Hit, Hit, bool]]:
    """Return pairs of a hit and an older one that it restates by its words; True if it has no other words."""
    by_speaker: dict[tuple[str | None, ...], list[Hit]] = {}
    for hit in oldest_first:
        by_speaker.setdefault(_speaker_key(hit.item), []).append(hit)
    return [
        (hits[new], hits[old], has_same_words)
        for hits in by_speaker.values()
        for new, old, has_same_words in find_restatements([hit.item.text for hit in hits])
    ]


def _speaker_key(item: MemoryItem) -> tuple[str | None, ...]:
    """Return a key of the speaker, the user and the agent; without a user, each run has keys of its own."""
    scope = item.scope
    run = scope.run_id if scope.user_id is None else None
    return scope.user_id, scope.agent_id, run, item.actor_id, item.role, item.memory_type


def _recency_key(hit: Hit) -> tuple[str, int]:
    """Return a sort key by age; memories that are not in the store yet are the newest."""
    item = hit.item
    return item.said_at, sys.maxsize if item.row is None else item.row


def _load_vectors(
    ports: Ports, items: Sequence[MemoryItem], scope: Scope, as_of: str | None
) -> Flow[dict[str, NDArray[np.float32]]]:
    """Return the vectors that the store has of some items, by id."""
    ids = {item.row: item.id for item in items if item.row is not None}
    rows, vectors = yield from do(ports.store.vectors, list(ids))
    found = {ids[row]: vector for row, vector in zip(rows.tolist(), vectors, strict=True)}
    if as_of is not None and any(item.row is None for item in items):
        past, past_vectors = yield from do(ports.store.past_memories, scope, as_of=as_of)
        found |= {item.id: vector for item, vector in zip(past, past_vectors, strict=True)}
    return found


# --- the budget --------------------------------------------------------------------------------------------------


def pack_context(found: ContextCandidates, form: PromptFormat) -> PackedContext:
    """Select the candidates that fit, and format them.

    The order of selection is: recent messages, up to two fifths of the budget; pinned memories; the summary; memories;
    relations (with a reserve of a seventh for those that no found memory states); earlier messages.
    """
    form = replace(form, line=_cache_lines(form.line))
    everything = _select(found, form, _UnlimitedBudget())
    if everything.tokens <= form.max_tokens * _UNCOUNTED_SHARE:  # the usual case, without a count for each line
        return everything
    packed = _select(found, form, _TokenBudget(form))
    while packed.tokens > form.max_tokens:  # some texts have more tokens together than separately
        packed = _drop_last(packed, form)
    return packed


def _cache_lines(line: Callable[[Hit, int | None], str]) -> Callable[[Hit, int | None], str]:
    """Return `line` with a cache by memory and number."""
    cache: dict[tuple[str, int | None], str] = {}

    def cached_line(hit: Hit, number: int | None) -> str:
        key = hit.item.id, number
        if key not in cache:
            cache[key] = line(hit, number)
        return cache[key]

    return cached_line


def _select(found: ContextCandidates, form: PromptFormat, budget: _UnlimitedBudget) -> PackedContext:
    """Select the candidates that a budget allows, and format them."""
    number = len(found.pinned) + len(found.hits) + len(found.relations) if form.citations else None
    taken: set[int] = set()
    taken |= budget.take_messages(found.messages, taken, max_tokens=form.max_tokens * _MESSAGE_SHARE)
    pinned = [hit for hit in found.pinned if budget.take_line(form.line(hit, number))]
    summary = found.summary if found.summary and budget.take_line(summary_line(found.summary)) else ""
    hits = [*pinned, *_select_hits(found, {hit.item.id for hit in pinned}, budget, form, number)]
    seen_ids = found.known_ids | _find_covered_ids({hit.item.id for hit in hits}, found)
    relations = [
        pair
        for pair in found.relations
        if _is_new_relation(pair[0], seen_ids) and budget.take_line(relation_line(pair[0], number))
    ]
    taken |= budget.take_messages(found.messages, taken, max_tokens=form.max_tokens)
    messages = [message for index, message in enumerate(found.messages) if index in taken]
    return _format_context(form, summary, hits, relations, messages)


def _select_hits(
    found: ContextCandidates, pinned_ids: Set[str], budget: _UnlimitedBudget, form: PromptFormat, number: int | None
) -> list[Hit]:
    """Return the best hits that fit, of near-duplicates the newest that fits, at the rank of the best."""
    by_id = {hit.item.id: hit for hit in found.hits}
    all_ids = found.known_ids | pinned_ids | by_id.keys()
    reserved = [relation_line(pair[0], number) for pair in found.relations if _is_new_relation(pair[0], all_ids)]
    max_tokens = budget.compute_memory_limit(reserved)
    selected: dict[str, Hit] = {}
    for hit in found.hits:
        if len(selected) == found.limit:
            break
        newest_first = [*found.newer.get(hit.item.id, ()), hit.item.id]
        if not pinned_ids.isdisjoint(newest_first) or not selected.keys().isdisjoint(newest_first):
            continue
        for memory_id in newest_first:
            newer = by_id.get(memory_id)
            if newer is not None and budget.take_line(form.line(newer, number), max_tokens=max_tokens):
                selected[memory_id] = newer
                break
    return list(selected.values())


def _find_covered_ids(shown_ids: Set[str], found: ContextCandidates) -> set[str]:
    """Return the ids of the shown memories, and of those that they restate."""
    return {*shown_ids, *(older for older, newer in found.newer.items() if not shown_ids.isdisjoint(newer))}


def _is_new_relation(relation: Relation, seen_ids: Set[str]) -> bool:
    """Return True if some memory that states a relation is not among those seen."""
    return not (relation.memories and seen_ids >= set(relation.memories))


class _UnlimitedBudget:
    """Budget that everything fits into."""

    def take_line(self, text: str, *, max_tokens: float = inf) -> bool:
        """Take a line of the block into the budget, if at most `max_tokens` are in use then; return True if taken."""
        return bool(text)

    def take_messages(self, messages: Sequence[Message], taken: Set[int], *, max_tokens: float) -> set[int]:
        """Take the messages that fit, the newest first, without those taken before; return their positions."""
        return {index for index, message in enumerate(messages) if format_transcript([message])}

    def compute_memory_limit(self, relation_lines: Sequence[str]) -> float:
        """Return the number of tokens that may be in use after the memories, with a reserve for relations."""
        return inf


class _TokenBudget(_UnlimitedBudget):
    """Budget of the tokens of one prompt."""

    def __init__(self, form: PromptFormat) -> None:
        self._form = form
        self._used_tokens = 0
        self._frame_tokens = form.count(form.format_block([""]))  # of the block around the first line; 0 once paid

    def take_line(self, text: str, *, max_tokens: float = inf) -> bool:
        if not self._take(text, self._frame_tokens, min(max_tokens, self._form.max_tokens)):
            return False
        self._frame_tokens = 0
        return True

    def take_messages(self, messages: Sequence[Message], taken: Set[int], *, max_tokens: float) -> set[int]:
        untaken = (index for index in reversed(range(len(messages))) if index not in taken)
        return {index for index in untaken if self._take(format_transcript([messages[index]]), 0, max_tokens)}

    def compute_memory_limit(self, relation_lines: Sequence[str]) -> float:
        limit = self._form.max_tokens
        return limit - min(sum(self._form.count(line) + 1 for line in relation_lines), limit * _RELATION_SHARE)

    def _take(self, text: str, extra_tokens: int, max_tokens: float) -> bool:
        cost = self._form.count(text) + 1 + extra_tokens  # with its line break
        if not text or self._used_tokens + cost > max_tokens:
            return False
        self._used_tokens += cost
        return True


def _format_context(
    form: PromptFormat,
    summary: str,
    hits: list[Hit],
    relations: list[tuple[Relation, float]],
    messages: list[Message],
) -> PackedContext:
    """Format a selection. A relation is cited by one of its memories: by a shown one, if possible."""
    numbers: dict[str, int] = {}
    lines = [summary_line(summary)] if summary else []
    lines += [form.line(hit, _assign_number(hit.item.id, numbers, form)) for hit in hits]
    for relation, _ in relations:
        source = next((each for each in relation.memories if each in numbers), next(iter(relation.memories), None))
        lines.append(relation_line(relation, _assign_number(source, numbers, form)))
    text = form.format_block(lines)
    tokens = sum(form.count(each) for each in (text, *(format_transcript([message]) for message in messages)) if each)
    citations = {str(number): memory_id for memory_id, number in numbers.items()}
    return PackedContext(text, summary, hits, relations, messages, tokens, citations)


def _assign_number(memory_id: str | None, numbers: dict[str, int], form: PromptFormat) -> int | None:
    """Return the number to cite a memory by, a new one at its first use; None without citations."""
    return None if memory_id is None or not form.citations else numbers.setdefault(memory_id, len(numbers) + 1)


def _drop_last(packed: PackedContext, form: PromptFormat) -> PackedContext:
    """Return a context without its least important part."""
    summary, hits, relations, messages = packed.summary, packed.hits, packed.relations, packed.messages
    if relations:
        relations = relations[:-1]
    elif hits:
        hits = hits[:-1]
    elif messages:
        messages = messages[1:]
    else:
        summary = ""
    return _format_context(form, summary, hits, relations, messages)
