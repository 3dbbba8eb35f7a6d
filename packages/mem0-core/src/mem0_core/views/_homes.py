"""Places that a principal reads, and the arguments and results of their calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mem0_core._system.records import dataclass
from mem0_core.api import search
from mem0_core.api._arguments import ScopeIds
from mem0_core.api._results import hit_dict, relation_dict
from mem0_core.domain.filters import parse_filters
from mem0_core.domain.records import AnswerDict, Axis, ContextDict, Hit, Message, Messages, Scope, SearchResult
from mem0_core.domain.spaces import (
    Membership,
    PendingWrite,
    PendingWriteDict,
    SpaceDict,
    SpaceRole,
    find_space_name,
    member_source,
)
from mem0_core.errors import AccessError, InputError, ScopeError

if TYPE_CHECKING:
    from mem0_core.recall.context import ContextCandidates, PromptFormat
    from mem0_core.recall.explain import SearchDiagnosis
    from mem0_core.recall.search import Search

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Home:
    """A place that a principal reads: their own memories, or those of one space.

    Attributes:
        space: name of the space; None for the principal's own memories.
        ids: ids of the memories.
    """

    space: str | None
    ids: ScopeIds

    @property
    def scope(self) -> Scope:
        return Scope(*self.ids)


def check_filters(filters: Mapping[str, Any] | None) -> None:
    """Refuse a filter on the owner of memories, which is the principal."""
    ids, _ = parse_filters(filters)
    if ids:
        names = ", ".join(sorted(ids))
        raise ScopeError(f"filters name {names}; pass agent_id and run_id as arguments, without user_id")


def waits(membership: Membership | None) -> bool:
    """Return True if the writes of a member wait for approval."""
    return membership is not None and membership.requires_approval and membership.role is not SpaceRole.OWNER


def name_author(messages: Messages, author: str) -> Messages:
    """Return messages with the author as the speaker of those of a user without a name."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(cast(object, messages), Sequence):
        return messages  # refused by `parse_messages`
    return [name_speaker(one, author) for one in messages]


def name_speaker(message: Mapping[str, Any], author: str) -> Mapping[str, Any]:
    is_theirs = isinstance(cast(object, message), Mapping) and message.get("role") == "user" and not message.get("name")
    return {**message, "name": author} if is_theirs else message


def message_input(message: Message) -> dict[str, Any]:
    """Return a message as `add` accepts it."""
    content: Any = message.content
    if message.images:
        text = [{"type": "text", "text": content}] if content else []
        content = text + [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    given: dict[str, Any] = {"role": message.role, "content": content}
    if message.name is not None:
        given["name"] = message.name
    if message.timestamp is not None:
        given["timestamp"] = message.timestamp
    if message.metadata:
        given["metadata"] = dict(message.metadata)
    return given


def compare_places(missing: SearchDiagnosis, found: list[str], memory_id: str) -> SearchDiagnosis:
    """Return the diagnosis of a memory that its own place returns, for a search of all places."""
    if memory_id in found:
        rank = found.index(memory_id) + 1
        return dataclasses.replace(missing, rank=rank, detail=f"it is result {rank} of {len(found)}")
    detail = f"better memories of other places take all {len(found)} results"
    return dataclasses.replace(missing, reason="below_limit", detail=detail)


def label(shaped: T, home: Home) -> T:
    """Name the space of a memory or relation; the id under which the store keeps it is no part of the result."""
    fields = cast("dict[str, Any]", shaped)
    fields["space"] = home.space
    if home.space is not None:
        fields.pop(Axis.USER.value, None)
    return shaped


def label_answer(result: AnswerDict, home: Home) -> AnswerDict:
    """Name the space of an answer and of all that it is from."""
    result["memories"] = [label(memory, home) for memory in result["memories"]]
    if "nearest" in result:
        result["nearest"] = label(result["nearest"], home)
    if "path" in result:
        for step in result["path"]["steps"]:
            label(step, home)
    result["space"] = home.space
    return result


def search_dict(searches: Sequence[tuple[Home, Search]], limit: int, explain: bool) -> SearchResult:
    """Return the results of the searches of all places, the best `limit` of them."""
    from mem0_core.recall.several import merge_hits, merge_relations

    hits = merge_hits([(home, search.hits) for home, search in searches])[:limit]
    relations = merge_relations([(home, search.relations) for home, search in searches])
    result = SearchResult(
        results=[label(hit_dict(hit, explain), home) for home, hit in hits],
        relations=[label(relation_dict(*pair), home) for home, pair in relations],
    )
    notes = dict.fromkeys(search.note for _, search in searches if search.note is not None)
    if notes and not hits:
        result["note"] = "; ".join(notes)
    return result


def label_by_scope(shaped: T, scope: Scope) -> T:
    return label(shaped, Home(find_space_name(scope), (None, None, None)))


def context_line(hit: Hit, number: int | None) -> str:
    from mem0_core.llm.prompts import memory_line

    return memory_line(label_by_scope(hit_dict(hit, False), hit.item.scope), number)


def context_dict(
    gathered: Sequence[tuple[Home, ContextCandidates]], form: PromptFormat, citations: bool
) -> ContextDict:
    """Return the context of the candidates of all places; the line of a memory of a space names the space."""
    from mem0_core.recall.context import pack_context

    packed = pack_context(merge_candidates(gathered), dataclasses.replace(form, line=context_line))
    result = search.context_dict(packed, citations)
    for memory, hit in zip(result["memories"], packed.hits, strict=True):
        label_by_scope(memory, hit.item.scope)
    for shaped, (relation, _) in zip(result["relations"], packed.relations, strict=True):
        label_by_scope(shaped, relation.scope)
    return result


def merge_candidates(gathered: Sequence[tuple[Home, ContextCandidates]]) -> ContextCandidates:
    """Return the candidates of all places as those of one; summary and messages are the principal's own."""
    from mem0_core.recall.context import ContextCandidates
    from mem0_core.recall.several import merge_hits, merge_relations

    own = next((one for home, one in gathered if home.space is None), ContextCandidates())
    every = [one for _, one in gathered]
    return ContextCandidates(
        summary=own.summary,
        pinned=[hit for one in every for hit in one.pinned],
        hits=[hit for _, hit in merge_hits([(None, one.hits) for one in every])],
        limit=max((one.limit for one in every), default=0),
        newer={memory: newer for one in every for memory, newer in one.newer.items()},
        relations=[pair for _, pair in merge_relations([(None, one.relations) for one in every])],
        known_ids=frozenset(memory for one in every for memory in one.known_ids),
        messages=own.messages,
    )


def nearest_score(nearest: Hit | None) -> float:
    return 0.0 if nearest is None else nearest.score


def public_source(source: str | None) -> str | None:
    """Return a source that a caller named; the library's own name members."""
    return None if source is None or source.startswith(member_source("")) else source


def space_dict(membership: Membership) -> SpaceDict:
    return SpaceDict(space=membership.space, role=membership.role.value, requires_approval=membership.requires_approval)


def write_dict(write: PendingWrite) -> PendingWriteDict:
    return PendingWriteDict(
        id=write.id,
        space=write.space,
        author=write.author,
        kind=write.kind,
        arguments=write.arguments,
        created_at=write.at,
    )


def pending_status(write_id: str) -> dict[str, Any]:
    return {"message": "The write waits for approval", "pending_write": write_id}


def unknown_write(write_id: str) -> AccessError:
    return AccessError(f"no pending write {write_id!r} is yours to decide; pending_writes lists those of a space")


def needs_owner(space: str) -> InputError:
    return InputError(f"the space {space!r} would have no owner; make another member owner first, or delete the space")
