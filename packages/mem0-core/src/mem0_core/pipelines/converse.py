"""Conversing: what was said before, for what is said now (seed 001, extraction phase).

Extraction reads a rolling summary S of the whole conversation and the last m messages before the new ones. The summary
is refreshed off the main path: `due` puts a job off where enough was said since, a worker does it with `summarise`. An
add never waits for it, and does with an old one, or none.
"""

from __future__ import annotations

from mem0_core.errors import StoreError
from mem0_core.flow import Flow, do
from mem0_core.pipelines.request import Request
from mem0_core.ports import ChatModel, Job, Lease, Ports, Summary
from mem0_core.prompts import NO_CONTEXT, Context, summary_messages
from mem0_core.replies import read_summary
from mem0_core.text import transcript

__all__ = ["context_of", "due", "summarise"]

_MOST = 200  # messages that one summary takes in; what is left waits for the next


def context_of(ports: Ports, request: Request) -> Flow[Context]:
    """The summary of a request's conversation, and the last m messages before its own."""
    if not request.window:
        return NO_CONTEXT
    talk = ports.store.talk
    first = min((message.row for message in request.messages if message.row is not None), default=None)
    earlier = yield from do(talk.before, request.scope, first, limit=request.window)
    if not earlier:
        return NO_CONTEXT
    summary = yield from do(talk.summary, request.scope)
    return Context(summary=summary.text if summary else "", earlier=transcript(earlier))


def due(ports: Ports, request: Request) -> Flow[bool]:
    """Put a new summary off where enough was said since the last one; returns whether it is."""
    if ports.chat is None or not request.summary_every:
        return False
    talk = ports.store.talk
    summary = yield from do(talk.summary, request.scope)
    since = yield from do(talk.since, request.scope, summary.upto if summary else 0, limit=request.summary_every)
    if len(since) < request.summary_every:
        return False
    yield from do(ports.store.jobs.put, request.scope, "summary", at=request.at)
    return True


def summarise(ports: Ports, chat: ChatModel, job: Job, lease: Lease, *, max_words: int) -> Flow[None]:
    """Do a job that was put off: what the last summary says and what was said since become the next summary.

    Raises:
        ModelError: the call failed. ReplyError: the answer was empty.
        StoreError: another worker has taken the job.
    """
    talk = ports.store.talk
    last = yield from do(talk.summary, job.scope)
    messages = yield from do(talk.since, job.scope, last.upto if last else 0, limit=_MOST)
    spoken = transcript(messages)
    if not spoken:
        yield from do(ports.store.jobs.done, lease)
        return
    newest = messages[-1]
    assert newest.row is not None
    at = newest.timestamp or job.at
    asked = summary_messages(last.text if last else "", spoken, today=at[:10], max_words=max_words)
    reply = yield from do(chat.complete, asked, task="summary")
    summary = Summary(read_summary(reply), newest.row, at)
    if not (yield from do(ports.store.summarise, job.scope, summary, lease)):
        raise StoreError("another worker has taken the job")
