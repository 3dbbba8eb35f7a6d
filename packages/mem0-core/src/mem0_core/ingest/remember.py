"""The add pipeline: turn a conversation into changes and commit them at once (Mem0 paper, sections 2.1 and 2.2).

`_describe_images` -> facts (`_facts`) and relations (`relations`) in parallel, or one call for both (`_fused`) -> one
commit with history and evidence -> synchronization of the graph projection.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from mem0_core.domain.bounds import MAX_NAME_TEXT_CHARS, MAX_NAMES, MAX_TIME_TEXT_CHARS
from mem0_core.domain.policy import POLICY_REFUSAL, apply_policy
from mem0_core.domain.records import Event, MemoryChange, Message, SkippedItem, content_hash
from mem0_core.errors import CapabilityError, StoreError
from mem0_core.flow import Flow, both, do
from mem0_core.ingest._facts import embed_changes, extract_facts, reconcile
from mem0_core.ingest._fused import plan_fused_ingest
from mem0_core.ingest._relation_plan import attach_evidence
from mem0_core.ingest.conversation import load_context, schedule_summary
from mem0_core.ingest.relations import RelationPlan, extract_relations, sync_projections
from mem0_core.ingest.request import (
    PROCEDURAL_MEMORY,
    AddRequest,
    IngestResult,
    StoredMessages,
    stored_messages,
    to_job_options,
)
from mem0_core.interfaces import ChatModel, CommitResult, Lease, Ports
from mem0_core.llm.ask import UnusableReplyError
from mem0_core.llm.prompts import NO_CONTEXT, Context, describe_image_messages
from mem0_core.recall.embedding import embedding_space_of

_MAX_SHOWN_CHARS = 500  # of an unusable reply
_LONG_TEXT = (
    f"names: the first {MAX_NAME_TEXT_CHARS:,} characters of a memory are searched for {MAX_NAMES} names, and"
    f" {MAX_TIME_TEXT_CHARS:,} of a clause for times; its words can all be found"
)
_MAX_ATTEMPTS = 3  # plans made before giving up, when other writers keep changing the same memories


def ingest(
    ports: Ports,
    request: AddRequest,
    lease: Lease | None = None,
    *,
    import_checkpoint: tuple[str, int] | None = None,
    distinct_sessions: bool = False,
) -> Flow[IngestResult]:
    """Turn messages into memories in one commit.

    The same commit marks the jobs of `lease` as done and stores the checkpoint of an import. If a reply of the model is
    unusable as a whole, the messages are enqueued as a failed job, so that they can be processed again.

    Args:
        import_checkpoint: (key, processed messages) of an import.
        distinct_sessions: True if the messages belong to different conversations, unless they share a run.

    Raises:
        ModelError: a model call failed; nothing is written.
        ReplyError: with ``bad_reply="raise"``, part of an answer was not readable; with `lease`, an answer was unusable
            as a whole. Nothing is written.
        StoreError: the commit failed, or other writers kept changing the same memories; nothing is written.
    """
    try:
        return (
            yield from _ingest(
                ports, request, lease, import_checkpoint=import_checkpoint, distinct_sessions=distinct_sessions
            )
        )
    except UnusableReplyError as error:
        if lease is not None or import_checkpoint is not None:  # the caller keeps the messages
            raise
        return (yield from _defer(ports, request, error))


def _defer(ports: Ports, request: AddRequest, error: UnusableReplyError) -> Flow[IngestResult]:
    """Enqueue the messages of an unusable reply as a failed job; a dry run only reports it."""
    reason, raw = f"{error.task}: {'; '.join(error.problems)}", error.raw[:_MAX_SHOWN_CHARS]
    if request.dry_run:
        return IngestResult(skipped=(SkippedItem(reason=f"{reason}; nothing is planned", item=raw),))
    try:
        job = yield from do(
            ports.store.jobs.enqueue,
            request.scope,
            "remember",
            at=request.at,
            messages=request.messages,
            options=to_job_options(request),
            error=f"{type(error).__name__}: {error}",
        )
    except CapabilityError:  # a store without a queue: the caller keeps the messages
        raise error from None
    note = SkippedItem(reason=f"{reason}; the messages wait as failed job {job} for a retry", item=raw)
    return IngestResult(skipped=(note,), failed_job=job)


def _ingest(
    ports: Ports,
    request: AddRequest,
    lease: Lease | None,
    *,
    import_checkpoint: tuple[str, int] | None,
    distinct_sessions: bool,
) -> Flow[IngestResult]:
    undescribed: tuple[SkippedItem, ...] = ()
    if any(message.images or not message.content.strip() for message in request.messages):
        messages, undescribed = yield from _describe_images(ports.chat, request)
        request = dataclasses.replace(request, messages=messages)
    plan = yield from _plan_ingest(ports, request)
    if undescribed:
        plan = dataclasses.replace(plan, skipped=undescribed + plan.skipped)
    for _ in range(_MAX_ATTEMPTS):
        plan = yield from _apply_policy(ports, request, plan)
        relations = attach_evidence(plan.relations, plan.changes)
        if request.dry_run:
            return dataclasses.replace(plan, relations=relations)
        commit = yield from do(
            ports.store.commit,
            plan.changes,
            scope=request.scope,
            messages=request.messages,
            at=request.at,
            embedding_space=embedding_space_of(ports, plan.changes, relations),
            relations=relations,
            on_conflict=ports.on_conflict,
            lease=lease,
            import_checkpoint=import_checkpoint,
            distinct_sessions=distinct_sessions,
        )
        if commit.lease_lost:
            raise StoreError("another worker has taken this job and will finish it")
        if not commit.conflicts:
            return (yield from _finish(ports, request, plan, commit))
        changes, undecided = yield from reconcile(ports, request, plan.facts)
        plan = dataclasses.replace(plan, changes=changes, skipped=plan.skipped + undecided)
    raise StoreError(f"other writers changed the same memories {_MAX_ATTEMPTS} times; nothing was written, try again")


def _finish(ports: Ports, request: AddRequest, plan: IngestResult, commit: CommitResult) -> Flow[IngestResult]:
    """Synchronize the projection of the graph, schedule a summary, and return the committed changes."""
    pending = (yield from sync_projections(ports)) if commit.relations else ()
    is_queued = False
    with suppress(StoreError):  # the changes are committed; a summary that was not queued becomes due again
        is_queued = yield from schedule_summary(ports, request)
    return dataclasses.replace(
        plan, changes=commit.applied, relations=commit.relations, pending=pending, summary_queued=is_queued
    )


def _apply_policy(ports: Ports, request: AddRequest, plan: IngestResult) -> Flow[IngestResult]:
    """Return the plan without the texts that the policy refuses; rewritten texts are embedded again."""
    if request.policy is None:
        return plan
    kept: list[MemoryChange] = []
    skipped = list(plan.skipped)
    for change in plan.changes:
        text = change.after.text
        is_new = change.event in (Event.ADD, Event.UPDATE)
        allowed = apply_policy(request.policy, text, request.scope) if is_new else text
        if allowed is None:
            skipped.append(SkippedItem(reason=f"{change.event.value}: {POLICY_REFUSAL}", item=text))
        elif allowed == text:
            kept.append(change)
        else:
            after = dataclasses.replace(change.after, text=allowed, hash=content_hash(allowed))
            kept.append(dataclasses.replace(change, after=after, vector=None))
    ready = {change.after.text: change.vector for change in kept if change.vector is not None}
    changes = yield from embed_changes(ports, kept, ready)
    return dataclasses.replace(plan, changes=changes, skipped=tuple(skipped))


def _plan_ingest(ports: Ports, request: AddRequest) -> Flow[IngestResult]:
    """Plan the facts and relations of a conversation, in parallel or with one call for both."""
    infers = request.infer and request.memory_type != PROCEDURAL_MEMORY
    context = (yield from load_context(ports, request)) if infers and ports.chat is not None else NO_CONTEXT
    if infers and request.extraction == "fused" and ports.chat is not None:
        return (yield from plan_fused_ingest(ports, request, context))
    facts = _plan_facts(ports, request, context)
    if not infers or ports.graph is None:
        return (yield from facts)
    graph = extract_relations(ports, ports.graph, request.to_relation_input(context))
    if ports.graph.chat is None:  # rules need no waiting: a thread of their own would cost more than it saves
        plan = yield from facts
        relations, unrelated = yield from graph
    else:
        both_plans: tuple[IngestResult, RelationPlan] = yield from both(facts, graph)
        plan, (relations, unrelated) = both_plans
    return dataclasses.replace(plan, relations=relations, skipped=plan.skipped + unrelated)


def _plan_facts(ports: Ports, request: AddRequest, context: Context) -> Flow[IngestResult]:
    facts, unreadable = yield from extract_facts(ports.chat, request, context)
    changes, undecided = yield from reconcile(ports, request, facts)
    unsearched = tuple(
        SkippedItem(reason=_LONG_TEXT, item=fact.text[:_MAX_SHOWN_CHARS])
        for fact in facts
        if len(fact.text) > MAX_NAME_TEXT_CHARS
    )
    return IngestResult(facts, changes, skipped=unreadable + undecided + unsearched)


# --- images ------------------------------------------------------------------------------------------------------


def _describe_images(
    chat: ChatModel | None, request: AddRequest
) -> Flow[tuple[StoredMessages, tuple[SkippedItem, ...]]]:
    """Replace the images of each message by the model's description, if vision is enabled.

    Returns:
        The messages that have a text, and the images that were skipped.
    """
    described: list[Message] = []
    skipped: list[SkippedItem] = []
    for message in request.messages:
        if message.images and chat is not None and request.vision:
            prompt = describe_image_messages(message.images, context=message.content)
            reply = yield from do(chat.complete, prompt, task="describe_image")
            text = "\n".join(part for part in (message.content, reply.text.strip()) if part)
            message = dataclasses.replace(message, content=text, images=())
        elif message.images:
            reason = "no model describes images" if chat is None else "images are described only with enable_vision"
            skipped += [SkippedItem(reason=reason, item=image[:100]) for image in message.images]
        if message.content.strip():
            described.append(message)
    return stored_messages(described), tuple(skipped)
