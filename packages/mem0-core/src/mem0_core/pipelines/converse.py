"""Conversing: what was said before, for what is said now (seed 001, extraction phase).

Extraction reads a rolling summary S of the whole conversation and the last m messages before the new ones. The summary
is refreshed off the main path: `due` puts a job off where enough was said since, a worker does it with `summarise`. An
add never waits for it, and does with an old one, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from mem0_core.errors import StoreError
from mem0_core.flow import Flow, do
from mem0_core.pipelines.recall import Query, recall
from mem0_core.pipelines.request import Request
from mem0_core.ports import ChatModel, Job, Lease, Ports, Summary
from mem0_core.prompts import NO_CONTEXT, Context, memories_block, relation_line, summary_line, summary_messages
from mem0_core.records import Hit, Message, Relation, Scope, same_fact_key
from mem0_core.replies import read_summary
from mem0_core.text import transcript

__all__ = ["Brief", "brief", "context_of", "due", "summarise"]

_MOST = 200  # messages that one summary takes in; what is left waits for the next
_FOR_MESSAGES = 0.4  # the share of a budget that is kept for recent messages, where there are enough of them
_FOR_RELATIONS = 0.15
_MOST_SHOWN = 50  # hits that are shown anyway a search makes up for


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
    most = request.summary_every
    if (yield from do(talk.count_since, request.scope, summary.upto if summary else 0, most=most)) < most:
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
    if len(messages) == _MOST:
        yield from do(ports.store.jobs.put, job.scope, "summary", at=at)


# --- what an agent should see now --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Brief:
    """What fits into a budget of tokens; `text` holds all but the messages, as a block for the system prompt."""

    text: str
    summary: str
    hits: list[Hit]
    relations: list[tuple[Relation, float]]
    messages: list[Message]
    tokens: int


def brief(
    ports: Ports,
    query: Query | None,
    scope: Scope,
    *,
    max_tokens: int,
    recent: int,
    count: Callable[[str], int],
    line: Callable[[Hit], str],
    introduction: str,
    exclude: Sequence[str] = (),
    as_of: str | None = None,
) -> Flow[Brief]:
    """The summary, what is pinned, what bears on `query`, and the last messages, as far as they fit.

    Pinned memories come first, then the summary, then memories and relations, best first; what is too long is left
    out, and the next tried. Messages take what is left, the newest first, and are sure of two fifths.

    Args:
        query: None where nothing is asked yet: then nothing is recalled.
        recent: how many messages at most.
        count: tokens of a text.
        line: how a memory is written.
        introduction: what the model is told about the block.
        exclude: texts that are shown anyway: memories that say just the same are left out.
        as_of: the summary of that time; messages are of now, so there are none.
    """
    talk = ports.store.talk
    said = (yield from do(talk.before, scope, None, limit=recent)) if recent and as_of is None else []
    room = _Room(max_tokens - count(memories_block([""], introduction=introduction)), count)
    shown = {same_fact_key(text) for text in exclude}
    kept = room.total * (1 - _FOR_MESSAGES) if said else room.total
    pinned = [Hit(item, 1.0) for item in (yield from do(ports.store.pinned, scope))]
    hits = [hit for hit in pinned if room.take(line(hit), upto=kept)]
    last = yield from do(talk.summary, scope, as_of=as_of)
    summary = last.text if last and room.take(summary_line(last.text), upto=kept) else ""
    relations: list[tuple[Relation, float]] = []
    if query is not None:
        recalled = yield from recall(ports, replace(query, limit=query.limit + min(len(shown), _MOST_SHOWN)))
        known = {hit.item.id for hit in hits}
        new = [hit for hit in recalled.hits if hit.item.id not in known and same_fact_key(hit.item.text) not in shown]
        before = kept - room.total * _FOR_RELATIONS if recalled.relations else kept
        hits += [hit for hit in new[: query.limit] if room.take(line(hit), upto=before)]
        seen = {hit.item.id for hit in hits} | {hit.item.id for hit in recalled.hits} - {hit.item.id for hit in new}
        relations = [
            pair
            for pair in recalled.relations
            if _adds(pair, seen, query) and room.take(relation_line(pair[0]), upto=kept)
        ]
    lines = [*([summary_line(summary)] if summary else []), *map(line, hits)]
    lines += [relation_line(relation) for relation, _ in relations]
    messages = [message for message in reversed(said) if room.take(transcript([message]), upto=room.total)][::-1]
    text = memories_block(lines, introduction=introduction)
    return Brief(text, summary, hits, relations, messages, count(text) + sum(count(transcript([m])) for m in messages))


def _adds(found: tuple[Relation, float], seen: Set[str], query: Query) -> bool:
    """Whether a relation is near enough, and says what the memories that are seen do not say already."""
    relation, score = found
    near = query.threshold is None or score >= query.threshold
    return near and not (relation.memories and seen >= set(relation.memories))


class _Room:
    """What is left of a budget of tokens."""

    def __init__(self, total: int, count: Callable[[str], int]) -> None:
        self.total = total
        self._count = count
        self._taken = 0

    def take(self, text: str, *, upto: float) -> bool:
        """Whether a text fits below `upto`; if it does, it takes its place."""
        cost = self._count(text) + 1  # its line break
        if not text or self._taken + cost > upto:
            return False
        self._taken += cost
        return True
