"""Remembering a conversation: what it says is turned into changes, which are committed at once.

`see` images -> the facts branch (`facts`) beside the graph branch (`relate`), as seed 002 draws it, or one question for
both (`fuse`) -> one commit, history and evidence included -> the graph's projection is told.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass

from mem0_core.errors import StoreError
from mem0_core.flow import Flow, both, do
from mem0_core.pipelines.converse import context_of, due
from mem0_core.pipelines.facts import extract, weigh, with_vectors
from mem0_core.pipelines.fuse import fuse
from mem0_core.pipelines.merge import supported
from mem0_core.pipelines.near import space_of
from mem0_core.pipelines.relate import Related, relate, tell
from mem0_core.pipelines.request import PROCEDURAL, Learnt, Request, heard
from mem0_core.policy import REFUSED, judged
from mem0_core.ports import ChatModel, Lease, Ports
from mem0_core.prompts import NO_CONTEXT, Context, describe_image_messages
from mem0_core.records import Change, Event, Message, Pending, RelationChange, Skipped, content_hash

__all__ = ["Remembered", "remember"]

_TRIES = 3  # plans made before giving up, when other writers keep changing the same memories


@dataclass(frozen=True, slots=True)
class Remembered:
    """What an add did, or in a dry run would do.

    Attributes:
        pending: the projections that could not be told of it yet.
        put_off: whether there is a summary to be made anew.
    """

    changes: tuple[Change, ...]
    relations: tuple[RelationChange, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    pending: tuple[Pending, ...] = ()
    put_off: bool = False


def remember(
    ports: Ports,
    request: Request,
    lease: Lease | None = None,
    *,
    mark: tuple[str, int] | None = None,
    apart: bool = False,
) -> Flow[Remembered]:
    """Turn messages into memories, in one commit; with it, the jobs of `lease` are done, and an import is marked.

    Args:
        apart: the messages are not of one conversation, unless they share a run.

    Raises:
        ModelError: a model call failed; nothing is written.
        ReplyError: with ``bad_reply="raise"``, part of an answer stayed unreadable; nothing is written.
        StoreError: the commit failed, or other writers kept changing the same memories; nothing is written.
    """
    messages, unseen = yield from see(ports.chat, request)
    if messages != request.messages:
        request = dataclasses.replace(request, messages=messages)
    learnt = yield from _govern(ports, request, (yield from _learn(ports, request)))
    for _ in range(_TRIES):
        relations = supported(learnt.relations, learnt.changes)
        if request.dry_run:
            return Remembered(learnt.changes, relations, unseen + learnt.skipped)
        commit = yield from do(
            ports.store.commit,
            learnt.changes,
            scope=request.scope,
            messages=heard(request.messages),
            at=request.at,
            space=space_of(ports, learnt.changes, relations),
            relations=relations,
            on_conflict=ports.on_conflict,
            lease=lease,
            mark=mark,
            apart=apart,
        )
        if commit.lost:
            raise StoreError("another worker has taken this job; it is done there")
        if not commit.conflicts:
            pending = (yield from tell(ports)) if commit.relations else ()
            put_off = False
            with suppress(StoreError):  # what was learnt is committed: a summary that is not put off comes due again
                put_off = yield from due(ports, request)
            return Remembered(commit.applied, commit.relations, unseen + learnt.skipped, pending, put_off)
        changes, undecided = yield from weigh(ports, request, learnt.facts)
        again = dataclasses.replace(learnt, changes=changes, skipped=learnt.skipped + undecided)
        learnt = yield from _govern(ports, request, again)
    raise StoreError(f"the memories concerned changed {_TRIES} times while this add was weighed; try again")


def _govern(ports: Ports, request: Request, learnt: Learnt) -> Flow[Learnt]:
    """What the policy leaves of it: what it refuses is neither added nor updated, what it rewrites is embedded anew."""
    if request.policy is None:
        return learnt
    kept: list[Change] = []
    skipped = list(learnt.skipped)
    for change in learnt.changes:
        text = change.after.text
        left = judged(request.policy, text, request.scope) if change.event in (Event.ADD, Event.UPDATE) else text
        if left is None:
            skipped.append(Skipped(reason=f"{change.event.value}: {REFUSED}", item=text))
        elif left == text:
            kept.append(change)
        else:
            after = dataclasses.replace(change.after, text=left, hash=content_hash(left))
            kept.append(dataclasses.replace(change, after=after, vector=None))
    ready = {change.after.text: change.vector for change in kept if change.vector is not None}
    changes = yield from with_vectors(ports, kept, ready)
    return dataclasses.replace(learnt, changes=changes, skipped=tuple(skipped))


def _learn(ports: Ports, request: Request) -> Flow[Learnt]:
    """The facts branch, beside it the graph branch where there is one; or one question for both."""
    inferring = request.infer and request.memory_type != PROCEDURAL
    context = (yield from context_of(ports, request)) if inferring and ports.chat is not None else NO_CONTEXT
    if inferring and request.extraction == "fused" and ports.chat is not None:
        return (yield from fuse(ports, request, context))
    if not inferring or ports.graph is None:
        return (yield from _learn_facts(ports, request, context))
    graph = relate(ports, ports.graph, request.told(context))
    if ports.graph.chat is None:  # rules take no time to wait for, and a thread of their own would
        learnt = yield from _learn_facts(ports, request, context)
        relations, unrelated = yield from graph
    else:
        both_learnt: tuple[Learnt, Related] = yield from both(_learn_facts(ports, request, context), graph)
        learnt, (relations, unrelated) = both_learnt
    return dataclasses.replace(learnt, relations=relations, skipped=learnt.skipped + unrelated)


def _learn_facts(ports: Ports, request: Request, context: Context) -> Flow[Learnt]:
    facts, unreadable = yield from extract(ports.chat, request, context)
    changes, undecided = yield from weigh(ports, request, facts)
    return Learnt(facts, changes, (), unreadable + undecided)


# --- images ------------------------------------------------------------------------------------------------------


def see(chat: ChatModel | None, request: Request) -> Flow[tuple[tuple[Message, ...], tuple[Skipped, ...]]]:
    """Put the model's description of each message's images into its text, where vision is on."""
    seen: list[Message] = []
    skipped: list[Skipped] = []
    for message in request.messages:
        if message.images and chat is not None and request.vision:
            asked = describe_image_messages(message.images, context=message.content)
            reply = yield from do(chat.complete, asked, task="describe_image")
            text = "\n".join(part for part in (message.content, reply.text.strip()) if part)
            message = dataclasses.replace(message, content=text, images=())
        elif message.images:
            why = "no model describes images" if chat is None else "images are described only with enable_vision"
            skipped += [Skipped(reason=why, item=image[:100]) for image in message.images]
        if message.content.strip():
            seen.append(message)
    return tuple(seen), tuple(skipped)
