"""Facts: extract the statements worth keeping, and decide which memories they change (Mem0 paper, section 2.1).

`extract_facts` -> `find_similar_memories` -> `decide_operations` -> `plan_changes`, which is pure. The paper retrieves
s = 10 memories per fact. A scope without memories takes all facts as they are, without a second model call.

Every fact is accounted for (`_settlement`): a fact that no usable operation settles is added unchanged. If nothing
of a reply can be used, `UnusableReplyError` leaves the messages to another try.

Without a chat model, or with ``infer=False``, messages are kept verbatim. A text that the scope already holds, up to
case, spacing and punctuation, is then a NONE.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from mem0_core.domain.records import (
    Event,
    Fact,
    MemoryChange,
    MemoryItem,
    Operation,
    SkippedItem,
    Trust,
    content_hash,
    expires_later,
    is_expired,
    new_id,
    same_fact_key,
)
from mem0_core.errors import ConfigError, ReplyError
from mem0_core.flow import Flow, do
from mem0_core.ingest._provenance import SourceFinder
from mem0_core.ingest._settlement import ReplyLimits, settle_facts
from mem0_core.ingest.request import PROCEDURAL_MEMORY, AddRequest, StoredMessages
from mem0_core.interfaces import ChatModel, Ports
from mem0_core.language.messages import KNOWN_ROLES, SPEAKER_ROLES, format_transcript
from mem0_core.language.utterances import is_statement
from mem0_core.llm._json_replies import WHOLE_REPLY, problem_with
from mem0_core.llm.ask import ask_with_repair, check_usable, collect_skipped
from mem0_core.llm.prompts import (
    NO_CONTEXT,
    Context,
    facts_messages,
    operations_messages,
    operations_tools,
    procedural_messages,
)
from mem0_core.llm.replies import (
    FactsReply,
    OperationsReply,
    Reading,
    SourcedFactsReply,
    StatedFact,
    fact_key,
    operation_key,
    read_facts,
    read_operations,
)
from mem0_core.recall.embedding import embed_texts, find_nearest_items

T = TypeVar("T")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def extract_facts(
    chat: ChatModel | None, request: AddRequest, context: Context = NO_CONTEXT
) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    """Return the facts that a model finds in the messages, or the messages themselves.

    Raises:
        ConfigError: a procedural memory is requested without a chat model.
        ModelError: the call failed.
        ReplyError: the answer was not usable; `UnusableReplyError` unless ``bad_reply="raise"``.
    """
    if request.memory_type == PROCEDURAL_MEMORY:
        if chat is None:
            raise ConfigError('llm: memory_type="procedural_memory" needs a chat model')
        return (yield from _extract_procedure(chat, request))
    if chat is None or not request.infer:
        facts = build_verbatim_facts(request.messages)
        if request.infer and request.keep == "statements":
            facts = tuple(fact for fact in facts if is_statement(fact.text))
        return facts, ()
    return (yield from _extract_with_model(chat, request, context))


def build_verbatim_facts(messages: StoredMessages) -> tuple[Fact, ...]:
    """Return each message of a user or assistant as a fact, with its role and speaker."""
    return tuple(
        Fact(
            message.content,
            actor_id=message.name,
            role=message.role,
            metadata=message.metadata,
            timestamp=message.timestamp,
            sources=(index,),
        )
        for index, message in enumerate(messages)
        if message.role in SPEAKER_ROLES
    )


def _extract_with_model(
    chat: ChatModel, request: AddRequest, context: Context
) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    transcript = format_transcript(request.messages)
    if not transcript:
        return (), ()
    spoken = [message for message in request.messages if message.role in SPEAKER_ROLES]
    by_message = len(spoken) > 1 and request.prompts.facts is None
    reading = yield from ask_with_repair(
        chat,
        facts_messages(
            transcript,
            today=request.at[:10],
            for_agent=request.is_about_agent,
            custom=request.prompts.facts,
            instructions=request.prompts.instructions,
            context=context,
            by_message=by_message,
        ),
        task="facts",
        schema=SourcedFactsReply if by_message else FactsReply,
        read=lambda reply: limit_facts(read_facts(reply), request),
        key=fact_key,
    )
    skipped = collect_skipped(reading, "facts", request.bad_reply)
    check_usable(reading, "facts")
    return build_facts(reading.items, request), skipped


def limit_facts(reading: Reading[T], request: AddRequest) -> Reading[T]:
    """Return a reading without items if it has more facts than one reply may have."""
    facts = sum(isinstance(item, StatedFact) for item in reading.items)
    if facts <= request.max_changes:
        return reading
    reason = f"{facts} facts in one reply; max_changes allows {request.max_changes}"
    return Reading((), (problem_with(reason, facts, WHOLE_REPLY),), reading.raw)


def build_facts(stated: Iterable[StatedFact], request: AddRequest) -> tuple[Fact, ...]:
    """Return the extracted facts with their speaker and source messages."""
    template = _build_template(request)
    finder = SourceFinder(request.messages, template.role or "user")
    return tuple(
        dataclasses.replace(template, text=fact.text, sources=finder.find_sources(fact.text, fact.messages))
        for fact in stated
    )


def _build_template(request: AddRequest) -> Fact:
    """Return a fact without text: role and speaker are the same for all facts of one extraction."""
    names = {message.name for message in request.messages if message.role in SPEAKER_ROLES and message.name}
    actor = names.pop() if len(names) == 1 else None  # with two speakers the author of a fact is unknown
    return Fact("", actor_id=actor, role="assistant" if request.is_about_agent else "user")


def _extract_procedure(chat: ChatModel, request: AddRequest) -> Flow[tuple[tuple[Fact, ...], tuple[SkippedItem, ...]]]:
    prompt = procedural_messages(
        format_transcript(request.messages, KNOWN_ROLES),
        today=request.at[:10],
        custom=None,
        instructions=request.prompts.instructions,
    )
    reply = yield from do(chat.complete, prompt, task="procedural")
    if not reply.text.strip():
        raise ReplyError("the model returned an empty procedural memory", raw=reply.text)
    sources = tuple(range(len(request.messages)))
    return (Fact(reply.text.strip(), role="assistant", sources=sources),), ()


# --- reconciliation ----------------------------------------------------------------------------------------------


def reconcile(
    ports: Ports, request: AddRequest, facts: Sequence[Fact]
) -> Flow[tuple[tuple[MemoryChange, ...], tuple[SkippedItem, ...]]]:
    """Return the changes that `facts` cause, with their vectors, and the unusable operations.

    Raises:
        ModelError: a call failed.
        ReplyError: with ``bad_reply="raise"``, part of the answer was not readable; `UnusableReplyError` if all of it.
    """
    if not facts:
        return (), ()
    if ports.chat is None or not request.infer or request.memory_type == PROCEDURAL_MEMORY:
        return (yield from _reconcile_verbatim(ports, request, facts)), ()
    statements = [fact.text for fact in facts]
    vectors = yield from embed_texts(ports, statements)
    memories = yield from find_similar_memories(ports, request, vectors)
    if not memories and request.prompts.update is None:  # without guidance of the caller, all facts are additions
        added = [MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=fact.sources) for fact in facts]
        return (yield from embed_changes(ports, added, dict(zip(statements, vectors, strict=True)))), ()
    operations, unreadable = yield from decide_operations(ports.chat, request, facts, memories)
    changes, unsettled = plan_changes(operations, facts, {item.id: item for item in memories}, request)
    changes = yield from embed_changes(ports, changes, dict(zip(statements, vectors, strict=True)))
    return changes, unreadable + unsettled


def _reconcile_verbatim(ports: Ports, request: AddRequest, facts: Sequence[Fact]) -> Flow[tuple[MemoryChange, ...]]:
    """Add every fact that the scope does not hold; known ones cost no embedding."""
    keys = [same_fact_key(fact.text, fact.actor_id) for fact in facts]
    known = yield from do(ports.store.find_by_fact_keys, request.scope, list(dict.fromkeys(keys)))
    changes = [
        MemoryChange(Event.NONE, known[key], message_indexes=fact.sources)
        if key in known and not expires_later(request.expiration_date, known[key].expiration_date)
        else MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=fact.sources)
        for key, fact in zip(keys, facts, strict=True)
    ]
    return (yield from embed_changes(ports, changes, {}))


def find_similar_memories(
    ports: Ports, request: AddRequest, vectors: NDArray[np.float32]
) -> Flow[tuple[MemoryItem, ...]]:
    """Return the nearest memories of all facts, each memory once.

    Memories of other users are left out, although a scope of only an agent or a run covers them: this conversation may
    neither see nor change them. Expired memories are left out too.

    Args:
        vectors: one per fact, shape (n, dims).
    """

    def eligible(item: MemoryItem) -> bool:
        return item.scope.user_id == request.scope.user_id and not is_expired(item, request.today)

    found = yield from find_nearest_items(ports, request.scope, vectors, request.neighbours, eligible)
    return tuple({item.id: item for nearest in found for item in nearest}.values())


def decide_operations(
    chat: ChatModel, request: AddRequest, facts: Sequence[Fact], memories: Sequence[MemoryItem]
) -> Flow[tuple[tuple[Operation, ...], tuple[SkippedItem, ...]]]:
    """Ask the model for the operations on the memories, which it refers to by small integers.

    Returns:
        The operations, and the unusable parts of the answer.

    Raises:
        ModelError: the call failed.
        ReplyError: the answer was not usable; `UnusableReplyError` unless ``bad_reply="raise"``.
    """
    texts = {str(number): item.text for number, item in enumerate(memories)}
    ids = {str(number): item.id for number, item in enumerate(memories)}
    statements = [fact.text for fact in facts]
    by_tools = request.operations == "tools" or (request.operations == "auto" and _calls_tools_only(chat))
    reading: Reading[Operation] = yield from ask_with_repair(
        chat,
        operations_messages(list(texts.items()), statements, custom=request.prompts.update, by_tools=by_tools),
        task="operations",
        schema=None if by_tools else OperationsReply,
        tools=operations_tools() if by_tools else (),
        read=lambda reply: read_operations(reply, ids=ids, texts=texts, facts=statements),
        key=operation_key,
    )
    skipped = collect_skipped(reading, "operations", request.bad_reply)
    check_usable(reading, "operations", whole=True)
    return reading.items, skipped


def _calls_tools_only(chat: ChatModel) -> bool:
    """Return True if a model declares that it supports tools and no schema."""
    supports = getattr(chat, "supports", ())
    return "tools" in supports and "schema" not in supports


def plan_changes(
    operations: Sequence[Operation], facts: Sequence[Fact], memories: Mapping[str, MemoryItem], request: AddRequest
) -> tuple[tuple[MemoryChange, ...], tuple[SkippedItem, ...]]:
    """Return the changes that carry out `operations` and add every fact that none of them settles; pure.

    A NONE without a memory (the model finds a fact not worth keeping) changes nothing.

    Returns:
        The changes, and notes on refused operations and unsettled facts.
    """
    limits = ReplyLimits(request.max_changes, request.max_deletions)
    shown = {id: item.text for id, item in memories.items()}
    settlement = settle_facts(operations, [fact.text for fact in facts], shown, limits)
    finder = SourceFinder(request.messages, _build_template(request).role or "user")
    changes = [
        _plan_change(operation, facts, memories, request, finder)
        for operation in settlement.operations
        if operation.memory_id is not None or operation.event is Event.ADD
    ]
    left = [facts[index] for index in settlement.unsettled]
    changes += [MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=fact.sources) for fact in left]
    notes = [
        SkippedItem(reason="operations: no operation settles this fact; it was added unchanged", item=fact.text)
        for fact in left
    ]
    return tuple(_order_changes(changes)), (*settlement.skipped, *notes)


def _plan_change(
    operation: Operation,
    facts: Sequence[Fact],
    memories: Mapping[str, MemoryItem],
    request: AddRequest,
    finder: SourceFinder,
) -> MemoryChange:
    settled = [facts[index] for index in operation.facts]
    if operation.memory_id is not None and operation.event in (Event.DELETE, Event.NONE):
        item = memories[operation.memory_id]
        if operation.event is Event.DELETE:
            return MemoryChange(Event.DELETE, item, before=item.text, message_indexes=_join_sources(settled))
        restated = [fact for fact in settled if same_fact_key(fact.text) == same_fact_key(item.text)]
        return MemoryChange(Event.NONE, item, message_indexes=_join_sources(restated))
    sources = _join_sources(settled) or finder.find_sources(operation.text)
    if operation.memory_id is None:
        fact = dataclasses.replace(_build_template(request), text=operation.text, sources=sources)
        return MemoryChange(Event.ADD, _new_item(fact, request), message_indexes=sources)
    item = memories[operation.memory_id]
    after = dataclasses.replace(
        item,
        text=operation.text,
        hash=content_hash(operation.text),
        metadata={**item.metadata, **request.metadata},
        updated_at=request.at,
        expiration_date=request.expiration_date or item.expiration_date,
        trust=min(item.trust, _least_trust(request, sources)),
    )
    return MemoryChange(Event.UPDATE, after, before=item.text, message_indexes=sources)


def _join_sources(facts: Sequence[Fact]) -> tuple[int, ...]:
    return tuple(sorted({index for fact in facts for index in fact.sources}))


def _order_changes(changes: Sequence[MemoryChange]) -> list[MemoryChange]:
    """Return the changes in an order in which no new text repeats the old text of a memory that changes later.

    A store keeps a text once, so the new text would be lost with that later change. Memories that only exchange their
    texts stay as they are.
    """
    waiting = list(changes)
    if all(change.before is None for change in waiting):
        return waiting
    ordered: list[MemoryChange] = []
    while waiting:
        old_texts = {_text_key(change, change.before): place for place, change in enumerate(waiting) if change.before}
        ready = [
            change
            for place, change in enumerate(waiting)
            if change.event not in (Event.ADD, Event.UPDATE)
            or old_texts.get(_text_key(change, change.after.text), place) == place
        ]
        if not ready:
            return [*ordered, *map(_keep_unchanged, waiting)]
        ordered += ready
        emitted = set(map(id, ready))
        waiting = [change for change in waiting if id(change) not in emitted]
    return ordered


def _text_key(change: MemoryChange, text: str) -> bytes:
    return same_fact_key(text, change.after.actor_id)


def _keep_unchanged(change: MemoryChange) -> MemoryChange:
    """Return a change that leaves the memory of an UPDATE as it is; its new text is the text of another memory."""
    if change.event is not Event.UPDATE:
        return change
    assert change.before is not None
    before = dataclasses.replace(change.after, text=change.before, hash=content_hash(change.before))
    return MemoryChange(Event.NONE, before)


def _new_item(fact: Fact, request: AddRequest) -> MemoryItem:
    return MemoryItem(
        id=new_id(),
        text=fact.text,
        scope=request.scope,
        hash=content_hash(fact.text),
        created_at=fact.timestamp or request.at,
        metadata={**request.metadata, **fact.metadata},
        actor_id=fact.actor_id,
        role=fact.role,
        memory_type=request.memory_type,
        expiration_date=request.expiration_date,
        trust=_least_trust(request, fact.sources),
    )


def _least_trust(request: AddRequest, sources: Sequence[int]) -> Trust:
    """Return the least trusted class of source messages; of all messages if the sources are unknown."""
    messages = [request.messages[index] for index in sources] or request.messages
    return min((message.trust_class for message in messages), default=Trust.USER)


def embed_changes(
    ports: Ports, changes: Sequence[MemoryChange], ready: Mapping[str, NDArray[np.float32]]
) -> Flow[tuple[MemoryChange, ...]]:
    """Return the changes with the vectors of their texts; texts missing from `ready` are embedded in one batch."""
    texts = [change.after.text if change.event in (Event.ADD, Event.UPDATE) else None for change in changes]
    missing = [text for text in dict.fromkeys(texts) if text is not None and text not in ready]
    fresh = (yield from embed_texts(ports, missing)) if missing else ()
    vectors = {**ready, **dict(zip(missing, fresh, strict=True))}
    return tuple(
        MemoryChange(change.event, change.after, change.before, vectors[text], change.message_indexes)
        if text is not None
        else change
        for change, text in zip(changes, texts, strict=True)
    )
