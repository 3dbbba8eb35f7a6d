"""Conversing: what was said before, for what is said now (seed 001, extraction phase).

Extraction reads a rolling summary S of the whole conversation and the last m messages before the new ones. The summary
is refreshed off the main path: `schedule_summary` puts a job off where enough was said since, a worker does it with
`save_summary`. An add never waits for it, and does with an old one, or none.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from mem0_core.domain.records import Hit, Scope, is_expired, same_fact_key
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest.request import AddRequest
from mem0_core.interfaces import ChatModel, Job, Lease, Ports, Summary
from mem0_core.language.messages import format_transcript
from mem0_core.llm.prompts import NO_CONTEXT, Context, summary_messages
from mem0_core.llm.replies import read_summary
from mem0_core.recall.context import (
    ContextCandidates,
    PackedContext,
    PromptFormat,
    find_newer_restatements,
    pack_context,
)
from mem0_core.recall.search import SearchRequest, recall

__all__ = ["assemble_context", "load_context", "refresh_summary", "schedule_summary"]

_MAX_SUMMARY_MESSAGES = 200  # messages that one summary takes in; what is left waits for the next
_MAX_EXCLUDED_HITS = 50  # hits that are shown anyway a search makes up for
_EXTRA_DUPLICATE_HITS = 10  # and near-duplicates


def load_context(ports: Ports, request: AddRequest) -> Flow[Context]:
    """The summary of a request's conversation, and the last m messages before its own."""
    if not request.window:
        return NO_CONTEXT
    talk = ports.store.message_log
    first = min((message.row for message in request.messages if message.row is not None), default=None)
    earlier = yield from do(talk.messages_before, request.scope, first, limit=request.window)
    if not earlier:
        return NO_CONTEXT
    summary = yield from do(talk.latest_summary, request.scope)
    return Context(summary=summary.text if summary else "", earlier=format_transcript(earlier))


def schedule_summary(ports: Ports, request: AddRequest) -> Flow[bool]:
    """Put a new summary off where enough was said since the last one; returns whether it is."""
    if ports.chat is None or not request.summary_every:
        return False
    talk = ports.store.message_log
    summary = yield from do(talk.latest_summary, request.scope)
    most = request.summary_every
    if (
        yield from do(talk.count_messages_since, request.scope, summary.last_message_row if summary else 0, limit=most)
    ) < most:
        return False
    yield from do(ports.store.jobs.enqueue, request.scope, "summary", at=request.at)
    return True


def refresh_summary(ports: Ports, chat: ChatModel, job: Job, lease: Lease, *, max_words: int) -> Flow[None]:
    """Do a job that was put off: what the last summary says and what was said since become the next summary.

    Raises:
        ModelError: the call failed. ReplyError: the answer was empty.
        StoreError: another worker has taken the job.
    """
    talk = ports.store.message_log
    last = yield from do(talk.latest_summary, job.scope)
    messages = yield from do(
        talk.messages_since, job.scope, last.last_message_row if last else 0, limit=_MAX_SUMMARY_MESSAGES
    )
    spoken = format_transcript(messages)
    if not spoken:
        yield from do(ports.store.jobs.mark_done, lease)
        return
    newest = messages[-1]
    assert newest.row is not None
    at = newest.timestamp or job.timestamp
    asked = summary_messages(last.text if last else "", spoken, today=at[:10], max_words=max_words)
    reply = yield from do(chat.complete, asked, task="summary")
    summary = Summary(read_summary(reply), newest.row, at)
    if not (yield from do(ports.store.save_summary, job.scope, summary, lease)):
        raise StoreError("another worker has taken the job")
    if len(messages) == _MAX_SUMMARY_MESSAGES:
        yield from do(ports.store.jobs.enqueue, job.scope, "summary", at=at)


# --- what an agent should see now --------------------------------------------------------------------------------


def assemble_context(
    ports: Ports,
    query: SearchRequest | None,
    scope: Scope,
    form: PromptFormat,
    *,
    today: str,
    recent: int,
    exclude: Sequence[str] = (),
    as_of: str | None = None,
) -> Flow[PackedContext]:
    """The summary, what is pinned, what bears on `query`, and the last messages, as far as they fit; see
    `pack_context`.

    Args:
        query: None where nothing is asked yet: then nothing is recalled.
        today: ``YYYY-MM-DD``; what is pinned and expired before it is left out.
        recent: how many messages at most.
        exclude: texts that are shown anyway: memories that say just the same are left out.
        as_of: the summary and the memories of that time; messages are of now, so there are none.
    """
    talk = ports.store.message_log
    said = (yield from do(talk.messages_before, scope, None, limit=recent)) if recent and as_of is None else []
    last = yield from do(talk.latest_summary, scope, as_of=as_of)
    pinned = yield from _load_pinned(ports, scope, today, as_of)
    found = ContextCandidates(summary=last.text if last else "", pinned=pinned, messages=said)
    if query is not None:
        found = yield from _add_recalled(ports, query, found, {same_fact_key(text) for text in exclude})
    return pack_context(found, form)


def _load_pinned(ports: Ports, scope: Scope, today: str, as_of: str | None) -> Flow[list[Hit]]:
    """What is pinned now, as it was then."""
    items = yield from do(ports.store.pinned_memories, scope)
    if items and as_of is not None:
        ids = {item.id for item in items}
        rows = set((yield from do(ports.store.rows, scope, as_of=as_of)).tolist())
        past, _ = yield from do(ports.store.past_memories, scope, as_of=as_of)
        items = [item for item in items if item.row is None or item.row in rows]
        items += [replace(item, pinned=True) for item in past if item.id in ids]
        items.sort(key=lambda item: item.created_at)
    return [Hit(item, 1.0) for item in items if not is_expired(item, today)]


def _add_recalled(
    ports: Ports, query: SearchRequest, found: ContextCandidates, shown: Set[bytes]
) -> Flow[ContextCandidates]:
    """What was found, and what bears on a query besides what is pinned and what is shown anyway."""
    spare = len(found.pinned) + min(len(shown), _MAX_EXCLUDED_HITS) + _EXTRA_DUPLICATE_HITS
    recalled = yield from recall(ports, replace(query, limit=query.limit + spare))
    pinned = {hit.item.id for hit in found.pinned}
    others = [hit for hit in recalled.hits if hit.item.id not in pinned]
    hits = [hit for hit in others if same_fact_key(hit.item.text) not in shown]
    newer = yield from find_newer_restatements(ports, [*found.pinned, *hits], query.scope, as_of=query.as_of)
    floor = 0.0 if query.threshold is None else query.threshold
    return replace(
        found,
        hits=hits,
        limit=query.limit,
        newer=newer,
        relations=[pair for pair in recalled.relations if pair[1] >= floor],
        known_ids={hit.item.id for hit in others} - {hit.item.id for hit in hits},
    )
