"""Conversation state: rolling summary, recent messages, and the context block of an agent (Mem0 paper, section 2.1).

Extraction reads new messages together with a summary of the whole conversation and the last few messages before them.
The summary is refreshed off the main path: `schedule_summary` enqueues a job after enough new messages, and a worker
runs it with `refresh_summary`. An add never waits for it; it uses the last summary, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mem0_core.domain.records import Hit, Scope, Trust, is_expired
from mem0_core.errors import StoreError
from mem0_core.flow import Flow, do
from mem0_core.ingest.request import AddRequest
from mem0_core.interfaces import ChatModel, Job, Lease, Ports, Summary
from mem0_core.language.messages import format_transcript
from mem0_core.language.shown_texts import ShownTexts
from mem0_core.llm.prompts import NO_CONTEXT, Context, summary_messages
from mem0_core.recall.context import (
    ContextCandidates,
    PackedContext,
    PromptFormat,
    find_newer_restatements,
    pack_context,
)
from mem0_core.recall.relevance import order_for_prompt, recall_relevant, select_relations
from mem0_core.recall.search import SearchRequest

_MAX_SUMMARY_MESSAGES = 200  # messages per summary; later ones wait for the next summary
_MAX_EXCLUDED_HITS = 20  # further hits requested at most to replace those that the prompt already holds
_EXTRA_DUPLICATE_HITS = 10  # further hits requested to replace near-duplicates


def load_context(ports: Ports, request: AddRequest) -> Flow[Context]:
    """Return the summary of a request's conversation and the last messages before its own."""
    if not request.window:
        return NO_CONTEXT
    log = ports.store.message_log
    first = min((message.row for message in request.messages if message.row is not None), default=None)
    earlier = yield from do(log.messages_before, request.scope, first, limit=request.window)
    if not earlier:
        return NO_CONTEXT
    summary = yield from do(log.latest_summary, request.scope)
    return Context(summary=summary.text if summary else "", earlier=format_transcript(earlier))


def schedule_summary(ports: Ports, request: AddRequest) -> Flow[bool]:
    """Enqueue a summary job if enough messages followed the last summary; return True if it was enqueued."""
    if ports.chat is None or not request.summary_every:
        return False
    limit = request.summary_every
    if (yield from do(ports.store.message_log.count_unsummarized, request.scope, limit=limit)) < limit:
        return False
    yield from do(ports.store.jobs.enqueue, request.scope, "summary", at=request.at)
    return True


def refresh_summary(ports: Ports, chat: ChatModel, job: Job, lease: Lease, *, max_words: int) -> Flow[None]:
    """Run a summary job: summarize the last summary and the messages since.

    Args:
        max_words: target length of the summary.

    Raises:
        ModelError: the call failed. ReplyError: the answer was empty.
        StoreError: another worker has taken the job.
    """
    from mem0_core.llm.replies import read_summary  # imports pydantic, which a context does without

    log = ports.store.message_log
    last = yield from do(log.latest_summary, job.scope)
    messages = yield from do(
        log.messages_since, job.scope, last.last_message_row if last else 0, limit=_MAX_SUMMARY_MESSAGES
    )
    transcript = format_transcript(messages)
    if not transcript:
        yield from do(ports.store.jobs.mark_done, lease)
        return
    newest = messages[-1]
    assert newest.row is not None
    at = newest.timestamp or job.timestamp
    prompt = summary_messages(last.text if last else "", transcript, today=at[:10], max_words=max_words)
    reply = yield from do(chat.complete, prompt, task="summary")
    summary = Summary(read_summary(reply), newest.row, at)
    if not (yield from do(ports.store.save_summary, job.scope, summary, lease)):
        raise StoreError("another worker has taken the job and will finish it")
    if len(messages) == _MAX_SUMMARY_MESSAGES:
        yield from do(ports.store.jobs.enqueue, job.scope, "summary", at=at)


# --- context of an agent -----------------------------------------------------------------------------------------


def assemble_context(
    ports: Ports,
    query: SearchRequest | None,
    scope: Scope,
    prompt_format: PromptFormat,
    *,
    today: str,
    recent: int,
    exclude: Sequence[str] = (),
    as_of: str | None = None,
    min_trust: Trust | None = None,
) -> Flow[PackedContext]:
    """Pack the candidates of `gather_context` into a context; see `pack_context`."""
    candidates = yield from gather_context(
        ports, query, scope, today=today, recent=recent, exclude=exclude, as_of=as_of, min_trust=min_trust
    )
    return pack_context(candidates, prompt_format)


def gather_context(
    ports: Ports,
    query: SearchRequest | None,
    scope: Scope,
    *,
    today: str,
    recent: int,
    exclude: Sequence[str] = (),
    as_of: str | None = None,
    min_trust: Trust | None = None,
) -> Flow[ContextCandidates]:
    """Return summary, pinned memories, recalled memories and recent messages as candidates of a context.

    Args:
        query: None to recall nothing.
        today: ``YYYY-MM-DD``; pinned memories that expired before it are left out.
        recent: maximum number of messages.
        exclude: texts that the prompt already holds; memories that only repeat them are left out.
        as_of: ISO 8601 time for the summary and the memories. Messages are always current, so there are none then.
        min_trust: least trusted class of messages and memories. A summary is of all messages, so there is none then.
    """
    log = ports.store.message_log
    show_messages = recent and as_of is None
    messages = (yield from do(log.messages_before, scope, None, limit=recent)) if show_messages else []
    last = (yield from do(log.latest_summary, scope, as_of=as_of)) if min_trust is None else None
    pinned = yield from _load_pinned(ports, scope, today, as_of)
    if min_trust is not None:
        messages = [message for message in messages if message.trust_class >= min_trust]
        pinned = [hit for hit in pinned if hit.item.trust >= min_trust]
    candidates = ContextCandidates(summary=last.text if last else "", pinned=pinned, messages=messages)
    if query is not None:
        candidates = yield from _add_recalled(ports, query, candidates, ShownTexts(exclude))
    return candidates


def _load_pinned(ports: Ports, scope: Scope, today: str, as_of: str | None) -> Flow[list[Hit]]:
    """Return the currently pinned memories as they were at a time."""
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
    ports: Ports, query: SearchRequest, candidates: ContextCandidates, shown: ShownTexts
) -> Flow[ContextCandidates]:
    """Return the candidates with the relevant search hits that are neither pinned nor shown already."""
    extra = len(candidates.pinned) + min(len(shown), _MAX_EXCLUDED_HITS) + _EXTRA_DUPLICATE_HITS
    search, left_out = yield from recall_relevant(ports, replace(query, limit=query.limit + extra))
    pinned = {hit.item.id for hit in candidates.pinned}
    best_by_id = {hit.item.id: hit for hit in reversed(search.hits)}  # a search may find two texts of one memory
    others = [hit for hit in search.hits if hit.item.id not in pinned and hit is best_by_id[hit.item.id]]
    hits = [hit for hit in others if hit.item.text not in shown]
    newer = yield from find_newer_restatements(ports, [*candidates.pinned, *hits], query.scope, as_of=query.as_of)
    return replace(
        candidates,
        hits=order_for_prompt(hits, query.query.question),
        limit=query.limit,
        newer=newer,
        relations=search.relations if query.threshold == 0 else select_relations(search.relations, query.threshold),
        known_ids={hit.item.id for hit in (*others, *left_out)} - {hit.item.id for hit in hits},
    )
