"""Remembering a conversation: what it says is turned into changes, which are committed at once.

`describe_images` images -> the facts branch (`facts`) beside the graph branch (`extract_relations`), as seed 002 draws
it, or one question for both (`plan_fused_ingest`) -> one commit, history and evidence included -> the graph's
projection is told.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass

from mem0_core.domain.policy import POLICY_REFUSAL, apply_policy
from mem0_core.domain.records import (
    Event,
    LaggingProjection,
    MemoryChange,
    Message,
    RelationChange,
    SkippedItem,
    content_hash,
)
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, both, do
from mem0_core.ingest.conversation import load_context, schedule_summary
from mem0_core.ingest.facts import embed_changes, extract_facts, reconcile
from mem0_core.ingest.fused import plan_fused_ingest
from mem0_core.ingest.relation_plan import attach_evidence
from mem0_core.ingest.relations import RelationPlan, extract_relations, sync_projections
from mem0_core.ingest.request import PROCEDURAL_MEMORY, AddRequest, IngestPlan, stored_messages
from mem0_core.interfaces import ChatModel, Lease, Ports
from mem0_core.llm.prompts import NO_CONTEXT, Context, describe_image_messages
from mem0_core.recall.embedding import embedding_space_of

__all__ = ["IngestResult", "ingest"]

_MAX_ATTEMPTS = 3  # plans made before giving up, when other writers keep changing the same memories


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an add did, or in a dry run would do.

    Attributes:
        pending: the projections that could not be told of it yet.
        put_off: whether there is a summary to be made anew.
    """

    changes: tuple[MemoryChange, ...]
    relations: tuple[RelationChange, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()
    summary_queued: bool = False


def ingest(
    ports: Ports,
    request: AddRequest,
    lease: Lease | None = None,
    *,
    mark: tuple[str, int] | None = None,
    apart: bool = False,
) -> Flow[IngestResult]:
    """Turn messages into memories, in one commit; with it, the jobs of `lease` are done, and an import is marked.

    Args:
        apart: the messages are not of one conversation, unless they share a run.

    Raises:
        ModelError: a model call failed; nothing is written.
        ReplyError: with ``bad_reply="raise"``, part of an answer stayed unreadable; nothing is written.
        StoreError: the commit failed, or other writers kept changing the same memories; nothing is written.
    """
    messages, unseen = yield from describe_images(ports.chat, request)
    if messages != request.messages:
        request = dataclasses.replace(request, messages=messages)
    learnt = yield from _apply_policy(ports, request, (yield from _plan_ingest(ports, request)))
    for _ in range(_MAX_ATTEMPTS):
        relations = attach_evidence(learnt.relations, learnt.changes)
        if request.dry_run:
            return IngestResult(learnt.changes, relations, unseen + learnt.skipped)
        commit = yield from do(
            ports.store.commit,
            learnt.changes,
            scope=request.scope,
            messages=stored_messages(request.messages),
            at=request.at,
            embedding_space=embedding_space_of(ports, learnt.changes, relations),
            relations=relations,
            on_conflict=ports.on_conflict,
            lease=lease,
            import_checkpoint=mark,
            distinct_sessions=apart,
        )
        if commit.lease_lost:
            raise StoreError("another worker has taken this job; it is done there")
        if not commit.conflicts:
            pending = (yield from sync_projections(ports)) if commit.relations else ()
            put_off = False
            with suppress(StoreError):  # what was learnt is committed: a summary that is not put off comes due again
                put_off = yield from schedule_summary(ports, request)
            return IngestResult(commit.applied, commit.relations, unseen + learnt.skipped, pending, put_off)
        changes, undecided = yield from reconcile(ports, request, learnt.facts)
        again = dataclasses.replace(learnt, changes=changes, skipped=learnt.skipped + undecided)
        learnt = yield from _apply_policy(ports, request, again)
    raise StoreError(f"the memories concerned changed {_MAX_ATTEMPTS} times while this add was weighed; try again")


def _apply_policy(ports: Ports, request: AddRequest, learnt: IngestPlan) -> Flow[IngestPlan]:
    """What the policy leaves of it: what it refuses is neither added nor updated, what it rewrites is embedded anew."""
    if request.policy is None:
        return learnt
    kept: list[MemoryChange] = []
    skipped = list(learnt.skipped)
    for change in learnt.changes:
        text = change.after.text
        left = apply_policy(request.policy, text, request.scope) if change.event in (Event.ADD, Event.UPDATE) else text
        if left is None:
            skipped.append(SkippedItem(reason=f"{change.event.value}: {POLICY_REFUSAL}", item=text))
        elif left == text:
            kept.append(change)
        else:
            after = dataclasses.replace(change.after, text=left, hash=content_hash(left))
            kept.append(dataclasses.replace(change, after=after, vector=None))
    ready = {change.after.text: change.vector for change in kept if change.vector is not None}
    changes = yield from embed_changes(ports, kept, ready)
    return dataclasses.replace(learnt, changes=changes, skipped=tuple(skipped))


def _plan_ingest(ports: Ports, request: AddRequest) -> Flow[IngestPlan]:
    """The facts branch, beside it the graph branch where there is one; or one question for both."""
    inferring = request.infer and request.memory_type != PROCEDURAL_MEMORY
    context = (yield from load_context(ports, request)) if inferring and ports.chat is not None else NO_CONTEXT
    if inferring and request.extraction == "fused" and ports.chat is not None:
        return (yield from plan_fused_ingest(ports, request, context))
    if not inferring or ports.graph is None:
        return (yield from _plan_facts(ports, request, context))
    graph = extract_relations(ports, ports.graph, request.to_relation_input(context))
    if ports.graph.chat is None:  # rules take no time to wait for, and a thread of their own would
        learnt = yield from _plan_facts(ports, request, context)
        relations, unrelated = yield from graph
    else:
        both_learnt: tuple[IngestPlan, RelationPlan] = yield from both(_plan_facts(ports, request, context), graph)
        learnt, (relations, unrelated) = both_learnt
    return dataclasses.replace(learnt, relations=relations, skipped=learnt.skipped + unrelated)


def _plan_facts(ports: Ports, request: AddRequest, context: Context) -> Flow[IngestPlan]:
    facts, unreadable = yield from extract_facts(ports.chat, request, context)
    changes, undecided = yield from reconcile(ports, request, facts)
    return IngestPlan(facts, changes, (), unreadable + undecided)


# --- images ------------------------------------------------------------------------------------------------------


def describe_images(
    chat: ChatModel | None, request: AddRequest
) -> Flow[tuple[tuple[Message, ...], tuple[SkippedItem, ...]]]:
    """Put the model's description of each message's images into its text, where vision is on."""
    seen: list[Message] = []
    skipped: list[SkippedItem] = []
    for message in request.messages:
        if message.images and chat is not None and request.vision:
            asked = describe_image_messages(message.images, context=message.content)
            reply = yield from do(chat.complete, asked, task="describe_image")
            text = "\n".join(part for part in (message.content, reply.text.strip()) if part)
            message = dataclasses.replace(message, content=text, images=())
        elif message.images:
            why = "no model describes images" if chat is None else "images are described only with enable_vision"
            skipped += [SkippedItem(reason=why, item=image[:100]) for image in message.images]
        if message.content.strip():
            seen.append(message)
    return tuple(seen), tuple(skipped)
